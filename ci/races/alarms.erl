%% Timers send to a name that a process takes and gives up meanwhile: it prints which of them found it.
-module(alarms).
-export([main/0]).

main() ->
    Me = self(),
    Pid = spawn_link(fun() -> take(Me, 30) end),
    [begin erlang:send_after(N rem 3, here, {alarm, N}), spin(500 + N rem 7 * 500) end || N <- lists:seq(1, 60)],
    Pid ! stop,
    receive {Pid, Seen} -> io:format("~w~n", [Seen]) end.

take(Main, 0) -> Main ! {self(), seen([])};
take(Main, Left) ->
    true = register(here, self()),
    spin(3000),
    true = unregister(here),
    spin(1500),
    take(Main, Left - 1).

seen(Seen) ->
    receive
        {alarm, N} -> seen([N | Seen]);
        stop -> lists:reverse(Seen)
    end.

spin(0) -> ok;
spin(N) -> _ = erlang:phash2(lists:seq(1, 40)), spin(N - 1).
