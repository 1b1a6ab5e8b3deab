%% Functions that are first called, and so first compiled, in a run: each run compiles others at the same place.
-module(compiled).
-export([run/0, traced/0]).

run() ->
    Me = self(),
    [spawn(fun() -> Me ! I end) || I <- [1, 2, 3]],
    [receive I -> work(I) end || _ <- [1, 2, 3]].

work(1) -> one(10, 0);
work(2) -> two([a, b, c], []);
work(3) -> three(#{x => 1}).

one(0, Sum) -> Sum;
one(N, Sum) -> one(N - 1, Sum + N * N).

two([], Done) -> list_to_tuple(Done);
two([H | T], Done) -> two(T, [{H, length(T)} | Done]).

three(#{x := X} = Map) -> Map#{x := X + 1, y => <<X:32, "three">>}.

%% A function that is compiled before all runs, and that calls itself, is traced in the runs in which 1 comes first.
traced() ->
    Me = self(),
    [spawn(fun() -> Me ! I end) || I <- [1, 2, 3]],
    First = receive I -> I end,
    [receive _ -> ok end || _ <- [2, 3]],
    Numbers = lists:seq(1, 100),
    Function = {lists, foldl_1, 3},
    if First =:= 1 -> 1 = erlang:trace_pattern(Function, true, [local, call_count]); true -> ok end,
    5050 = lists:foldl(fun(N, Sum) -> N + Sum end, 0, Numbers),
    {call_count, Count} = erlang:trace_info(Function, call_count),
    if First =:= 1 -> 100 = Count; true -> false = Count end.
