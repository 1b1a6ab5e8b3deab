%% A receive that chooses, while other messages come: what it leaves behind is printed in the order of the queue.
-module(selective).
-export([main/0]).

main() ->
    Me = self(),
    [spawn(fun() -> [Me ! {K, N} || N <- lists:seq(1, 20)] end) || K <- [a, b, c]],
    B = [receive {b, N} -> N end || _ <- lists:seq(1, 20)],
    Rest = [receive {K, N} -> {K, N} end || _ <- lists:seq(1, 40)],
    io:format("~w~n~w~n", [B, Rest]).
