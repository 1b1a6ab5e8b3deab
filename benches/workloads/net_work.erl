%% Sockets on the loopback, for `cargo xtask compare --net`. Each workload prints a line "RESULT Value Digest", as those of
%% compare_work do: nanoseconds of one exchange, or bytes of one connection. Both ends are in the runtime that is measured.
%% `serve` is a server for requests from outside: it prints "PORT Number" and ends with its standard input. The workloads
%% node_* start two nodes, and measure from one to the other.
%%
%%   erl -noshell -run net_work main NAME
-module(net_work).
-behaviour(gen_server).
-export([main/1, between/2, gather/0]).
-export([init/1, handle_call/3, handle_cast/2]).

-define(ADDRESS, {127, 0, 0, 1}).
-define(KILOBYTE, <<0:8192>>).
-define(BLOCK, <<0:(64 * 8192)>>).

main(["serve"]) ->
    {Listener, Port} = listener([]),
    [spawn_link(fun() -> serve_http(Listener) end) || _ <- lists:seq(1, 8)],
    io:format("PORT ~b~n", [Port]),
    eof = io:get_line(""),
    erlang:halt(0);
main([Name]) ->
    {Value, Outcome} = measure(Name),
    io:format("RESULT ~b ~b~n", [Value, erlang:phash2(Outcome)]),
    erlang:halt(0).

%% 1 KB there and back, on one connection.
measure("echo") -> echo([], 20000);
measure("echo_socket") -> echo([{inet_backend, socket}], 20000);
%% The slowest of a hundred of these.
measure("echo_p99") ->
    {Listener, Port} = listener([]),
    spawn_link(fun() -> serve(Listener) end),
    Socket = connect(Port, []),
    {percentile_99(times(Socket, 20000)), ok};
%% The same on each of many connections, all at once.
measure("echo_many") ->
    {Count, Rounds} = {1000, 20},
    Clients = clients(Count, fun(Socket) -> exchange(Socket, Rounds) end),
    per(Count * Rounds, fun() -> length(at_once(Clients)) end);
measure("echo_many_p99") ->
    Clients = clients(1000, fun(Socket) -> times(Socket, 20) end),
    {percentile_99(lists:append(at_once(Clients))), length(Clients)};
%% 1 KB there and back, encrypted.
measure("tls") ->
    {ok, _} = application:ensure_all_started(ssl),
    #{server_config := ServerConfig, client_config := ClientConfig} = certificates(),
    Options = [binary, {active, false}, {packet, 4}, {nodelay, true}, {versions, ['tlsv1.3']}],
    {ok, Listener} = ssl:listen(0, [{ip, ?ADDRESS}] ++ Options ++ ServerConfig),
    {ok, {_, Port}} = ssl:sockname(Listener),
    spawn_link(fun() ->
                   {ok, Accepted} = ssl:transport_accept(Listener),
                   {ok, Socket} = ssl:handshake(Accepted),
                   send_back_encrypted(Socket)
               end),
    Verify = [{verify, verify_peer}, {server_name_indication, disable}],
    {ok, Socket} = ssl:connect(?ADDRESS, Port, Options ++ Verify ++ ClientConfig),
    Count = 5000,
    per(Count, fun() -> [exchange_encrypted(Socket) || _ <- lists:seq(1, Count)], Count end);
%% Blocks in one direction, to an active socket.
measure("blocks") ->
    Count = 10000,
    {Listener, Port} = listener([]),
    Self = self(),
    spawn_link(fun() ->
                   {ok, Socket} = gen_tcp:accept(Listener),
                   ok = inet:setopts(Socket, [{packet, raw}, {active, true}]),
                   Self ! {all, take(Socket, Count * byte_size(?BLOCK))}
               end),
    Socket = connect(Port, []),
    ok = inet:setopts(Socket, [{packet, raw}]),
    per(Count, fun() ->
                   [ok = gen_tcp:send(Socket, ?BLOCK) || _ <- lists:seq(1, Count)],
                   receive {all, Bytes} -> Bytes end
               end);
%% Connections, each accepted, used once and reset.
measure("accept") ->
    Count = 5000,
    {Listener, Port} = listener([]),
    spawn_link(fun() -> accept_each(Listener) end),
    per(Count, fun() -> [once(Port) || _ <- lists:seq(1, Count)], Count end);
%% Datagrams there and back.
measure("datagrams") ->
    Count = 20000,
    {ok, Server} = gen_udp:open(0, [binary, {ip, ?ADDRESS}, {active, false}]),
    {ok, Port} = inet:port(Server),
    Pid = spawn_link(fun() -> receive go -> return(Server) end end),
    ok = gen_udp:controlling_process(Server, Pid),
    Pid ! go,
    {ok, Client} = gen_udp:open(0, [binary, {ip, ?ADDRESS}, {active, false}]),
    per(Count, fun() -> [datagram(Client, Port) || _ <- lists:seq(1, Count)], Count end);
%% Requests of a server that reads them by lines of HTTP.
measure("http") ->
    Count = 10000,
    {Listener, Port} = listener([]),
    spawn_link(fun() ->
                   {ok, Socket} = gen_tcp:accept(Listener),
                   ok = inet:setopts(Socket, [{packet, http_bin}]),
                   answer(Socket)
               end),
    Socket = connect(Port, []),
    ok = inet:setopts(Socket, [{packet, raw}]),
    per(Count, fun() -> [request(Socket) || _ <- lists:seq(1, Count)], Count end);
%% Memory of a connection that waits: both of its ends. There are 10,000 ends.
measure("idle") ->
    Count = 5000,
    {Listener, Port} = listener([]),
    Before = resident(),
    Pairs = [begin
                 Client = connect(Port, []),
                 {ok, Server} = gen_tcp:accept(Listener),
                 ok = inet:setopts(Client, [{active, true}]),
                 ok = inet:setopts(Server, [{active, once}]),
                 {Client, Server}
             end || _ <- lists:seq(1, Count)],
    {(resident() - Before) div length(Pairs), length(Pairs)};
measure("node_" ++ Name) ->
    %% An address for each, and so no daemon that knows their ports.
    {Here, _} = node(here, "127.0.0.1"),
    {_, There} = node(there, "127.0.0.2"),
    peer:call(Here, ?MODULE, between, [Name, There], infinity).

node(Name, Address) ->
    Interface = "{" ++ lists:flatten(string:replace(Address, ".", ",", all)) ++ "}",
    Args = ["-setcookie", "net_work", "-pa", filename:dirname(code:which(?MODULE)),
            "-start_epmd", "false", "-erl_epmd_port", "9871", "-kernel", "inet_dist_use_interface", Interface],
    {ok, Peer, Node} = peer:start_link(#{name => Name, host => Address, longnames => true, connection => standard_io, args => Args}),
    {Peer, Node}.

%% A call of a server on the other node.
between("call", There) ->
    Count = 20000,
    {ok, Server} = erpc:call(There, gen_server, start, [?MODULE, [], []]),
    per(Count, fun() -> lists:sum([gen_server:call(Server, N) || N <- lists:seq(1, Count)]) end);
%% 1 MB in one direction: a binary, and a list, of which each term is encoded.
between("large", There) ->
    send(There, 500, binary:copy(<<"large">>, 200000));
between("terms", There) ->
    send(There, 50, [{N, <<"a binary">>, [atom, N * 1.5]} || N <- lists:seq(1, 20000)]);
%% A process on the other node, which ends at once.
between("spawn", There) ->
    Count = 100000,
    per(Count, fun() -> length([spawn(There, erlang, self, []) || _ <- lists:seq(1, Count)]) end);
%% Groups that a process of one node joins, until the other one, which hears of them in their order, knows of the last.
between("groups", There) ->
    Count = 10000,
    [{ok, _} = erpc:call(Node, pg, start, [?MODULE]) || Node <- [node(), There]],
    Groups = [{group, N} || N <- lists:seq(1, Count)],
    per(Count, fun() ->
                   [ok = pg:join(?MODULE, Group, self()) || Group <- Groups],
                   await_group(There, lists:last(Groups))
               end).

send(Node, Count, Data) ->
    Gatherer = spawn_link(Node, ?MODULE, gather, []),
    per(Count, fun() ->
                   [Gatherer ! {take, Data} || _ <- lists:seq(1, Count)],
                   Gatherer ! {times, self()},
                   receive {times, Times} -> Times end
               end).

await_group(Node, Group) ->
    case erpc:call(Node, pg, get_members, [?MODULE, Group]) of
        [_] -> known;
        [] -> await_group(Node, Group)
    end.

%% Takes data, and says how often.
gather() -> gather(0).

gather(Times) ->
    receive
        {take, _} -> gather(Times + 1);
        {times, From} -> From ! {times, Times}
    end.

init([]) -> {ok, none}.

handle_call(Number, _, State) -> {reply, Number + 1, State}.

handle_cast(_, State) -> {noreply, State}.

%% Nanoseconds of one of `Count`, and what comes out of all.
per(Count, Fun) ->
    Begin = erlang:monotonic_time(nanosecond),
    Outcome = Fun(),
    {(erlang:monotonic_time(nanosecond) - Begin) div Count, Outcome}.

listener(Backend) ->
    Options = [binary, {ip, ?ADDRESS}, {active, false}, {packet, 4}, {nodelay, true}, {backlog, 1024}],
    {ok, Listener} = gen_tcp:listen(0, Backend ++ Options),
    {ok, Port} = inet:port(Listener),
    {Listener, Port}.

connect(Port, Backend) ->
    {ok, Socket} = gen_tcp:connect(?ADDRESS, Port, Backend ++ [binary, {active, false}, {packet, 4}, {nodelay, true}]),
    Socket.

echo(Backend, Count) ->
    {Listener, Port} = listener(Backend),
    spawn_link(fun() -> {ok, Socket} = gen_tcp:accept(Listener), send_back(Socket) end),
    Socket = connect(Port, Backend),
    per(Count, fun() -> exchange(Socket, Count) end).

%% Clients of a server that sends back what comes, each a process with a connection of its own.
clients(Count, Work) ->
    {Listener, Port} = listener([]),
    spawn_link(fun() -> serve(Listener) end),
    Sockets = [connect(Port, []) || _ <- lists:seq(1, Count)],
    [start(fun() -> Work(Socket) end, Socket) || Socket <- Sockets].

serve(Listener) ->
    {ok, Socket} = gen_tcp:accept(Listener),
    Pid = spawn_link(fun() -> receive go -> send_back(Socket) end end),
    ok = gen_tcp:controlling_process(Socket, Pid),
    Pid ! go,
    serve(Listener).

send_back(Socket) ->
    case gen_tcp:recv(Socket, 0) of
        {ok, Data} -> ok = gen_tcp:send(Socket, Data), send_back(Socket);
        {error, closed} -> ok
    end.

exchange(_, 0) -> ok;
exchange(Socket, Count) ->
    ok = gen_tcp:send(Socket, ?KILOBYTE),
    {ok, ?KILOBYTE} = gen_tcp:recv(Socket, 0),
    exchange(Socket, Count - 1).

%% Nanoseconds of each of `Count` exchanges.
times(Socket, Count) ->
    [begin {Time, ok} = per(1, fun() -> exchange(Socket, 1) end), Time end || _ <- lists:seq(1, Count)].

percentile_99(Times) -> lists:nth(length(Times) * 99 div 100, lists:sort(Times)).

%% A process that has the socket and begins when it is told to.
start(Fun, Socket) ->
    Pid = spawn_link(fun() -> receive {go, From} -> From ! {self(), Fun()} end end),
    ok = gen_tcp:controlling_process(Socket, Pid),
    Pid.

at_once(Pids) ->
    [Pid ! {go, self()} || Pid <- Pids],
    [receive {Pid, Outcome} -> Outcome end || Pid <- Pids].

certificates() ->
    Key = {key, {namedCurve, secp256r1}},
    Chain = #{root => [{digest, sha256}, Key], intermediates => [], peer => [{digest, sha256}, Key]},
    public_key:pkix_test_data(#{server_chain => Chain, client_chain => Chain}).

send_back_encrypted(Socket) ->
    case ssl:recv(Socket, 0) of
        {ok, Data} -> ok = ssl:send(Socket, Data), send_back_encrypted(Socket);
        {error, closed} -> ok
    end.

exchange_encrypted(Socket) ->
    ok = ssl:send(Socket, ?KILOBYTE),
    {ok, ?KILOBYTE} = ssl:recv(Socket, 0).

take(_, 0) -> all;
take(Socket, Left) ->
    receive {tcp, Socket, Data} -> take(Socket, Left - byte_size(Data)) end.

accept_each(Listener) ->
    {ok, Socket} = gen_tcp:accept(Listener),
    {ok, Data} = gen_tcp:recv(Socket, 0),
    ok = gen_tcp:send(Socket, Data),
    _ = gen_tcp:recv(Socket, 0),
    ok = gen_tcp:close(Socket),
    accept_each(Listener).

once(Port) ->
    Socket = connect(Port, []),
    ok = inet:setopts(Socket, [{linger, {true, 0}}]),
    ok = exchange(Socket, 1),
    ok = gen_tcp:close(Socket).

return(Socket) ->
    {ok, {Address, Port, Data}} = gen_udp:recv(Socket, 0),
    ok = gen_udp:send(Socket, Address, Port, Data),
    return(Socket).

datagram(Socket, Port) ->
    ok = gen_udp:send(Socket, ?ADDRESS, Port, ?KILOBYTE),
    {ok, {_, _, ?KILOBYTE}} = gen_udp:recv(Socket, 0).

request(Socket) ->
    ok = gen_tcp:send(Socket, <<"GET /a/path?with=query HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\nUser-Agent: net_work\r\n\r\n">>),
    {ok, <<"HTTP/1.1 200 OK\r\n", _/binary>>} = gen_tcp:recv(Socket, 0).

serve_http(Listener) ->
    {ok, Socket} = gen_tcp:accept(Listener),
    Pid = spawn(fun() -> receive go -> answer(Socket) end end),
    ok = gen_tcp:controlling_process(Socket, Pid),
    ok = inet:setopts(Socket, [{packet, http_bin}]),
    Pid ! go,
    serve_http(Listener).

answer(Socket) ->
    case gen_tcp:recv(Socket, 0) of
        {ok, http_eoh} ->
            ok = gen_tcp:send(Socket, <<"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok">>),
            answer(Socket);
        {ok, _} -> answer(Socket);
        {error, _} -> ok
    end.

%% Bytes of the process that are in memory.
resident() ->
    {ok, File} = file:open("/proc/self/statm", [read, raw, binary]),
    {ok, Text} = file:read(File, 100),
    ok = file:close(File),
    [_, Pages | _] = binary:split(Text, <<" ">>, [global]),
    binary_to_integer(Pages) * 4096.
