%% Sizes that cannot be had, and operands at their extremes.
-module(sizes).
-export([integer_size/0, integer_unit/0, binary_size/0, float_size/0, append_size/0, bsl_size/0, copy_size/0,
         tuple_size_limit/0, min_heap_size/0, min_bin_vheap_size/0, heap_sizes/0, fullsweep_after/0, match_sizes/0,
         unalias_of_no_alias/0, restored_tag/0, referenced_bytes/0, atom_length/0, atomics_size/0, deep_pattern/0,
         deep_map_pattern/0, deep_body/0]).

sizes() -> [1 bsl 60, (1 bsl 63) - 1, 1 bsl 64, 1 bsl 70, -1, -(1 bsl 70), 1.0, a].

outcome(F, Argument) ->
    try F(Argument) of
        Value -> {Argument, Value}
    catch
        Class:Reason:Stack ->
            [{_, _, _, Info} | _] = Stack,
            Cause = case proplists:get_value(error_info, Info) of #{cause := C} -> C; _ -> none end,
            {Argument, Class, Reason, Cause}
    end.

integer_size() -> [outcome(fun(N) -> <<0:N>> end, Size) || Size <- sizes()].
integer_unit() -> [outcome(fun(N) -> <<1:8, 0:N/unit:256>> end, Size) || Size <- [(1 bsl 59) - 1 | sizes()]].
binary_size() -> [outcome(fun(N) -> <<(<<1, 2>>):N/binary>> end, Size) || Size <- sizes()].
float_size() -> [outcome(fun(N) -> <<1.0:N/float>> end, Size) || Size <- sizes()].
append_size() -> [outcome(fun(N) -> B = <<1>>, <<B/binary, 0:N/unit:64>> end, Size) || Size <- [(1 bsl 59) - 1 | sizes()]].
bsl_size() -> [outcome(fun(N) -> 1 bsl N end, Size) || Size <- sizes()].
copy_size() -> [outcome(fun(N) -> binary:copy(<<0:1024>>, N) end, Size) || Size <- [(1 bsl 59) - 1 | sizes()]].
tuple_size_limit() ->
    [outcome(fun(N) -> erlang:make_tuple(N, a) end, Size) || Size <- [1 bsl 24, 1 bsl 27, (1 bsl 59) - 1 | sizes()]].

min_heap_size() ->
    Old = process_flag(min_heap_size, 5_000_000_000),
    Set = element(2, process_info(self(), min_heap_size)),
    process_flag(min_heap_size, Old),
    Set.

min_bin_vheap_size() ->
    Old = process_flag(min_bin_vheap_size, 500_000_000_000_000),
    Set = element(2, process_info(self(), min_bin_vheap_size)),
    process_flag(min_bin_vheap_size, Old),
    Set.

heap_sizes() -> lists:nthtail(100, erlang:system_info(heap_sizes)).

fullsweep_after() -> [outcome(fun(N) -> process_flag(fullsweep_after, N) end, Size) || Size <- [65535, 1 bsl 31, 1 bsl 70, -1]].

match_sizes() ->
    Bin = <<1, 2, 3>>,
    [{outcome(fun(N) -> case Bin of <<X:N/unit:256, _/bits>> -> X; _ -> no end end, Size),
      outcome(fun(N) -> case Bin of <<_:N/binary, X/bits>> -> X; _ -> no end end, Size),
      outcome(fun(N) -> case Bin of <<_:8, X:N/float, _/bits>> -> X; _ -> no end end, Size)}
     || Size <- [0, (1 bsl 59) - 1 | sizes()]].

unalias_of_no_alias() -> [unalias(make_ref()), unalias(element(2, atomics:new(1, [])))].

restored_tag() -> [outcome(fun erlang:dt_restore_tag/1, Tag) || Tag <- [true, false, 1]].

referenced_bytes() -> [binary:referenced_byte_size(Bits) || Bits <- [<<>>, <<1:1>>, <<5:13>>, <<1:65>>, <<0:800>>]].

atom_length() -> [outcome(fun(N) -> length(atom_to_list(list_to_atom(lists:duplicate(N, $a)))) end, Size) || Size <- [255, 256, 70000]].

atomics_size() -> [outcome(fun(N) -> atomics:new(N, []) end, Size) || Size <- [0, -1, 1 bsl 62, 1 bsl 64, a]].

nested(F, Innermost, Depth) -> lists:foldl(fun(_, Inner) -> F(Inner) end, Innermost, lists:seq(1, Depth)).

deep_pattern() -> deep(fun(Inner) -> {[Inner], a} end).
deep_map_pattern() -> deep(fun(Inner) -> #{a => Inner} end).

deep(F) ->
    [erlang:match_spec_test(nested(F, 1, Depth), [{nested(F, '$1', Depth), [], ['$1']}], table) || Depth <- [1, 1000]].

deep_body() ->
    F = fun(Inner) -> {{Inner}} end,
    [element(1, erlang:match_spec_test({1}, [{{'$1'}, [], [nested(F, '$1', Depth)]}], table)) || Depth <- [100, 100_000]].
