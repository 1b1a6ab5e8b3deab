%% Processes that make processes: results come up the tree as they are ready.
-module(tree).
-export([main/0]).

main() ->
    Me = self(),
    spawn(fun() -> node(5, [], Me) end),
    receive Leaves -> io:format("~w~n", [erlang:phash2(Leaves)]) end.

node(0, Path, Up) -> Up ! [Path];
node(Depth, Path, Up) ->
    Me = self(),
    [spawn(fun() -> node(Depth - 1, [N | Path], Me) end) || N <- [1, 2, 3]],
    Up ! lists:append([receive Leaves -> Leaves end || _ <- [1, 2, 3]]).
