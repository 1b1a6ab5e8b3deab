%% Receives without time to wait: what has come by then is chance.
-module(timeouts).
-export([main/0]).

main() ->
    Me = self(),
    spawn(fun() -> [begin erlang:yield(), Me ! N end || N <- lists:seq(1, 200)], Me ! done end),
    io:format("~w~n", [poll(0, [])]).

poll(Missed, Seen) ->
    receive
        done -> lists:reverse([{missed, Missed} | Seen]);
        N -> poll(0, [{Missed, N} | Seen])
    after 0 -> erlang:yield(), poll(Missed + 1, Seen)
    end.
