%% Nodes that suites start by test_server:start_node/3, where they start any.
%%
%% Each has a connection to a socket of this node, apart from distribution, by which it tells that it has started. It
%% halts when that connection closes.
-module(ctlite_nodes).

-export([start/2, stop/1, started/1]).

-define(START_MS, 30000).
-define(STOP_MS, 10000).

%% Starts a node with the arguments `{args, String}` of the options.
start(Name, Options) ->
    case proplists:get_value(erl, Options, [this]) of
        [this] -> start_this(Name, Options);
        _ -> {error, not_available}
    end.

start_this(Name, Options) ->
    Line = fun(Port) -> command(Name, proplists:get_value(args, Options, ""), Port) end,
    case owner_call({start, Line, proplists:get_value(wait, Options, true)}) of
        {ok, Node} ->
            _ = net_adm:ping(Node),
            {ok, Node};
        no_wait ->
            {ok, full_name(Name)};
        {error, _} = Error ->
            Error
    end.

full_name(Name) ->
    [_, Host] = string:split(atom_to_list(node()), "@"),
    list_to_atom(lists:concat([Name, "@", Host])).

command(Name, Arguments, Port) ->
    Switch = case net_kernel:longnames() of
                 true -> " -name ";
                 false -> " -sname "
             end,
    Cookie = case string:find(Arguments, "-setcookie") of
                 nomatch -> lists:concat([" -setcookie ", erlang:get_cookie()]);
                 _ -> ""
             end,
    Here = filename:absname(filename:dirname(code:which(?MODULE))),
    lists:concat([ct:get_progname(), " -noinput", Switch, Name, Cookie, " -pa ", Here,
                  " -run ", ?MODULE, " started ", Port, " ", Arguments]).

%% In a node that was started.
started([Port]) ->
    spawn(fun() -> report(list_to_integer(Port)) end).

report(Port) ->
    {ok, Socket} = gen_tcp:connect({127, 0, 0, 1}, Port, [binary, {packet, 2}, {active, false}]),
    ok = gen_tcp:send(Socket, atom_to_binary(node())),
    {error, closed} = gen_tcp:recv(Socket, 0),
    erlang:halt().

%% Whether the node was there and is gone.
stop(Node) ->
    true = erlang:monitor_node(Node, true),
    case net_adm:ping(Node) of
        pong -> _ = rpc:cast(Node, erlang, halt, []);
        pang -> ok
    end,
    IsGone = receive {nodedown, Node} -> true after ?STOP_MS -> false end,
    erlang:monitor_node(Node, false),
    owner_call({stopped, Node}),
    IsGone.

%% The sockets belong to a process of their own, so that a node outlives the case that has started it.
owner_call(Request) ->
    Monitor = erlang:monitor(process, owner()),
    ?MODULE ! {Request, self(), Monitor},
    receive
        {Monitor, Answer} ->
            erlang:demonitor(Monitor, [flush]),
            Answer;
        {'DOWN', Monitor, process, _, Reason} ->
            {error, Reason}
    end.

owner() ->
    case whereis(?MODULE) of
        undefined ->
            Asker = self(),
            Owner = spawn(fun() -> own(Asker) end),
            receive {Owner, ready} -> owner() end;
        Owner ->
            Owner
    end.

own(Asker) ->
    group_leader(whereis(init), self()),
    true = register(?MODULE, self()),
    Asker ! {self(), ready},
    own_nodes(#{}).

own_nodes(Sockets) ->
    receive
        {{start, Line, Waits}, From, Ref} ->
            {Answer, Node, Socket} = open(Line, Waits),
            From ! {Ref, Answer},
            own_nodes(Sockets#{Node => Socket});
        {{stopped, Node}, From, Ref} ->
            From ! {Ref, ok},
            own_nodes(maps:remove(Node, Sockets));
        _Output ->
            own_nodes(Sockets)
    end.

open(Line, Waits) ->
    {ok, Listen} = gen_tcp:listen(0, [{ip, {127, 0, 0, 1}}, binary, {packet, 2}, {active, false}]),
    {ok, Number} = inet:port(Listen),
    Port = open_port({spawn, Line(Number)}, [stream]),
    case Waits of
        false ->
            {no_wait, Listen, Port};
        true ->
            Opened = accept(Listen),
            gen_tcp:close(Listen),
            case Opened of
                {ok, Node, Socket} -> {{ok, Node}, Node, {Socket, Port}};
                {error, _} = Error -> {Error, Port, Port}
            end
    end.

accept(Listen) ->
    maybe
        {ok, Socket} ?= gen_tcp:accept(Listen, ?START_MS),
        {ok, Name} ?= gen_tcp:recv(Socket, 0, ?START_MS),
        {ok, binary_to_atom(Name), Socket}
    end.
