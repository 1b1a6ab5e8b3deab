%% Programs in which a process looks again and again for what another one makes. Each time that it looks is an order of its own: there is
%% no end of them.
-module(polls).
-export([yields/0, sleeps/0, receives/0, looks_up/0]).

yields() -> waits_for_name(fun erlang:yield/0).
sleeps() -> waits_for_name(fun() -> timer:sleep(1) end).
receives() -> waits_for_name(fun() -> receive nothing -> ok after 0 -> ok end end).

waits_for_name(Pause) ->
    {_, Ended} = spawn_monitor(fun() -> register(served, self()), receive stop -> ok end end),
    again(fun() -> whereis(served) =/= undefined end, Pause),
    served ! stop,
    receive {'DOWN', Ended, process, _, normal} -> ok end.

looks_up() ->
    Table = ets:new(table, [public]),
    spawn(fun() -> ets:insert(Table, {key, 1}) end),
    again(fun() -> ets:lookup(Table, key) =/= [] end, fun erlang:yield/0).

again(Is, Pause) ->
    case Is() of
        true -> ok;
        false -> Pause(), again(Is, Pause)
    end.
