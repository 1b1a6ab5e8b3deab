%% Programs in which several hear of one end, or give up what would tell of it.
-module(heard).
-behaviour(gen_server).
-export([looked_up/0, looked_up_monitored/0, asked/0, asked_server/0, asked_server_in_time/0, cleaned_up/0, linked_and_told/0]).
-export([limited/0, limited_and_flushed/0, limited_and_cancelled/0, tidied/0, tidied_or_ended/0, given_up_and_kept/0]).
-export([monitored_again/0, monitored_twice/0, told_and_monitored_again/0, asked_twice/0, given_up_when_gone/0]).
-export([collected/0, collected_in_table/0, collected_linked/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

%% A server answers and ends: its name is free, or taken still.
looked_up() ->
    start_named(),
    served ! {stop, self()},
    receive stopped -> ok end,
    undefined = whereis(served),
    ok.

%% The same by who monitors it: whether the monitor is given up before the end, or behind it, shows to nobody.
looked_up_monitored() ->
    start_named(),
    Monitor = monitor(process, served),
    served ! {stop, self()},
    receive stopped -> ok end,
    demonitor(Monitor, [flush]),
    undefined = whereis(served),
    ok.

start_named() ->
    Me = self(),
    spawn(fun() ->
        register(served, self()),
        Me ! started,
        receive {stop, From} -> From ! stopped end
    end),
    receive started -> ok end.

%% Two monitor one process. Who hears of its end first asks the other one, which has not heard of it yet, or has.
asked() ->
    Me = self(),
    Short = spawn(fun() -> receive stop -> ok end end),
    Other = spawn(fun() ->
        Monitor = monitor(process, Short),
        Me ! watching,
        receive
            {question, From} -> From ! {heard, receive {'DOWN', Monitor, _, _, _} -> true after 0 -> false end}
        end
    end),
    receive watching -> ok end,
    stop(Short),
    Other ! {question, Me},
    receive {heard, true} -> ok; {heard, false} -> exit(not_heard) end.

stop(Pid) ->
    Monitor = monitor(process, Pid),
    Pid ! stop,
    receive {'DOWN', Monitor, _, _, _} -> ok end.

%% The same where a gen_server is asked, for ever or in time.
asked_server() -> asks_server(infinity).
asked_server_in_time() -> asks_server(5000).

asks_server(Time) ->
    Short = spawn(fun() -> receive stop -> ok end end),
    {ok, Server} = gen_server:start(?MODULE, Short, []),
    stop(Short),
    case gen_server:call(Server, has_heard, Time) of
        true -> gen_server:stop(Server);
        false -> exit(not_heard)
    end.

%% Who gives up a monitor in time monitors again: the end comes before both, before the time-out, between, or behind both.
monitored_again() ->
    Short = spawn(fun() -> receive after 100 -> ok end end),
    First = monitor(process, Short),
    receive {'DOWN', First, _, _, _} -> ok after 5 -> demonitor(First, [flush]) end,
    Second = monitor(process, Short),
    receive {'DOWN', Second, _, _, _} -> ok end.

%% Who keeps two monitors waits for what the second one tells.
monitored_twice() ->
    Short = spawn(fun() -> receive after 100 -> ok end end),
    _ = monitor(process, Short),
    Second = monitor(process, Short),
    receive {'DOWN', Second, _, _, _} -> ok after 5 -> ok end.

%% Who has a message of the process before: whether its end had come to the first monitor by then shows to nobody.
told_and_monitored_again() ->
    Me = self(),
    Short = spawn(fun() -> Me ! told, receive never -> ok after 5 -> ok end end),
    First = monitor(process, Short),
    receive told -> demonitor(First, [flush]); {'DOWN', First, _, _, _} -> ok after 5 -> demonitor(First, [flush]) end,
    Second = monitor(process, Short),
    receive {'DOWN', Second, _, _, _} -> ok after 5 -> ok end.

%% Who asks twice in time: an answer to the first question that comes late is dropped.
asked_twice() ->
    Server = spawn(fun() -> answer(), answer() end),
    [asks(Server) || _ <- [1, 2]],
    ok.

answer() -> receive {call, Alias} -> Alias ! {Alias, answer} after 100 -> ok end.

asks(Server) ->
    Reference = monitor(process, Server, [{alias, demonitor}]),
    Server ! {call, Reference},
    receive
        {Reference, answer} -> demonitor(Reference, [flush]);
        {'DOWN', Reference, _, _, _} -> ok
    after 5 -> demonitor(Reference, [flush])
    end.

%% Who monitors a process that is gone may have another message first, and gives up the monitor then.
given_up_when_gone() ->
    Short = spawn(fun() -> ok end),
    erlang:send_after(5, self(), late),
    Reference = monitor(process, Short),
    receive {'DOWN', Reference, _, _, _} -> ok; late -> demonitor(Reference, [flush]) end.

%% A server keeps processes in a table, and deletes those that have ended: a call behind the end does not mean that it has.
cleaned_up() ->
    {ok, Server} = gen_server:start_link(?MODULE, table, []),
    Pid = gen_server:call(Server, {start, milk}),
    stop(Pid),
    _ = gen_server:call(Server, {start, bread}),
    case ets:lookup(heard, milk) of
        [] -> ok;
        [_] -> exit(not_heard)
    end.

%% Who is linked to a process that fails takes a message of who has heard of that already, or is ended before.
linked_and_told() ->
    Me = self(),
    Short = spawn(fun() -> receive stop -> exit(failed) end end),
    spawn(fun() ->
        link(Short),
        Me ! {linked, self()},
        receive question -> Me ! answer end
    end),
    Linked = receive {linked, Pid} -> Pid end,
    stop(Short),
    Monitor = monitor(process, Linked),
    Linked ! question,
    receive answer -> exit(answered); {'DOWN', Monitor, _, _, _} -> ok end.

init(table) -> {ok, ets:new(heard, [named_table])};
init(Pid) -> {ok, {monitor(process, Pid), false}}.

handle_call(has_heard, _, {_, Heard} = State) -> {reply, Heard, State};
handle_call({start, Key}, _, Table) ->
    {Pid, Monitor} = spawn_monitor(fun() -> receive stop -> ok end end),
    ets:insert(Table, [{Key, Pid}, {Monitor, Key}]),
    {reply, Pid, Table}.

handle_cast(_, State) -> {noreply, State}.

handle_info({'DOWN', Monitor, _, _, _}, {Monitor, _}) -> {noreply, {Monitor, true}};
handle_info({'DOWN', Monitor, _, _, _}, Table) ->
    [{_, Key}] = ets:lookup(Table, Monitor),
    ets:delete(Table, Key),
    {noreply, Table}.

%% An answer, the end of who gives it, or a limit of time.
limited() ->
    {_, Monitor} = asks_with_limit(),
    receive answer -> ok; {'DOWN', Monitor, _, _, _} -> ok; limit -> ok end.

%% The same; the monitor is given up.
limited_and_flushed() ->
    {_, Monitor} = asks_with_limit(),
    receive answer -> demonitor(Monitor, [flush]); {'DOWN', Monitor, _, _, _} -> ok; limit -> ok end,
    ok.

%% The timer is cancelled, too.
limited_and_cancelled() ->
    {Timer, Monitor} = asks_with_limit(),
    receive answer -> demonitor(Monitor, [flush]); limit -> ok end,
    erlang:cancel_timer(Timer).

%% And what it has sent is dropped.
tidied() ->
    {Timer, Monitor} = asks_with_limit(),
    receive answer -> demonitor(Monitor, [flush]); limit -> ok end,
    tidy(Timer).

tidied_or_ended() ->
    {Timer, Monitor} = asks_with_limit(),
    receive answer -> demonitor(Monitor, [flush]), tidy(Timer); limit -> exit(timed_out) end.

tidy(Timer) ->
    erlang:cancel_timer(Timer),
    receive limit -> ok after 0 -> ok end.

asks_with_limit() ->
    Me = self(),
    Timer = erlang:send_after(5000, Me, limit),
    {_, Monitor} = spawn_monitor(fun() -> Me ! answer end),
    {Timer, Monitor}.

%% What a monitor has told is waited for although it was given up.
given_up_and_kept() ->
    Me = self(),
    {_, Monitor} = spawn_monitor(fun() -> Me ! answer end),
    receive answer -> ok end,
    demonitor(Monitor),
    receive {'DOWN', Monitor, _, _, _} -> ok after 10 -> ok end.

%% Two answers within one limit of time.
collected() -> collects(fun(N) -> N end, fun erlang:spawn/1).
collected_in_table() ->
    Table = ets:new(answers, [public]),
    collects(fun(N) -> ets:insert(Table, {last, N}) end, fun erlang:spawn/1).
collected_linked() ->
    Table = ets:new(answers, [public]),
    collects(fun(N) -> ets:insert(Table, {last, N}) end, fun erlang:spawn_link/1).

collects(Does, Spawn) ->
    Me = self(),
    Monitors = [begin
        Pid = Spawn(fun() -> receive {go, Monitor} -> Me ! {Monitor, Does(N)} end end),
        Monitor = monitor(process, Pid),
        Pid ! {go, Monitor},
        Monitor
    end || N <- [1, 2]],
    Timer = erlang:send_after(5000, Me, limit),
    [receive
        {Monitor, _} -> demonitor(Monitor, [flush]);
        {'DOWN', Monitor, _, _, Reason} -> exit(Reason);
        limit -> exit(timed_out)
    end || Monitor <- Monitors],
    tidy(Timer).
