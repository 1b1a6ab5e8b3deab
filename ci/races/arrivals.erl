%% Ten processes send to one: it prints in which order they came.
-module(arrivals).
-export([main/0]).

main() ->
    Me = self(),
    [spawn(fun() -> work(N), Me ! {N, self()} end) || N <- lists:seq(1, 10)],
    io:format("~w~n", [[receive {N, _} -> N end || _ <- lists:seq(1, 10)]]).

work(N) -> lists:foldl(fun(I, Sum) -> (I * N + Sum) rem 7919 end, 0, lists:seq(1, 2000)).
