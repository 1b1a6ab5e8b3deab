%% Receives without time to wait, where it is chance what has come by then, and receives whose time is none.
-module(timeouts).
-export([main/0]).

main() ->
    Me = self(),
    spawn(fun() -> [begin erlang:yield(), Me ! N end || N <- lists:seq(1, 200)], Me ! done end),
    io:format("~w~n", [poll(0, [])]),
    [spawn(fun() -> Me ! {N, late} end) || N <- lists:seq(1, 9)],
    io:format("~w~n", [[receive {N, Seen} -> {no_time(N), Seen} end || N <- lists:seq(1, 9)]]).

no_time(N) ->
    self() ! {N + 1, soon},
    try receive {never, _} -> ok after node() -> ok end
    catch error:timeout_value -> N
    end.

poll(Missed, Seen) ->
    receive
        done -> lists:reverse([{missed, Missed} | Seen]);
        N -> poll(0, [{Missed, N} | Seen])
    after 0 -> erlang:yield(), poll(Missed + 1, Seen)
    end.
