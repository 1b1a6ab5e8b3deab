%% Exceptions: class, reason, the top of the stack trace with its `error_info`, and what `erl_erts_errors` makes of it.
-module(errors).
-export([guards_make_no_words/0, maps_of_many_keys/0, native_records/0, iovec_parts/0, max_heap_sizes/0,
         external_options/0, send_options/0, register_causes/0, timer_causes/0, port_info_causes/0, bumped_reductions/0,
         apply_of_funs/0, nif_errors/0, error_arguments/0, unary_plus/0, bad_segments/0, atoms_of_maps/0,
         flags_of_none/0, tracees_of_none/0, tables_without_patterns/0, bytes_referenced/0]).
-export([g_size/1, g_key/1, g_get/1, g_tuple/1, g_hd/1, g_length/1, g_plus/1, g_element/1, g_float/1, g_rem/1]).

-record #nrec{zeta = 1, eta = undefined}.
-record #empty{}.
-record #xrec{theta = 1, iota = undefined}.
-export_record([xrec]).

id(X) -> X.

of_call(Fun) ->
    try Fun()
    catch Class:Reason:Stack -> {Class, Reason, [frame(F) || F <- lists:sublist(Stack, 2)], told(Reason, Stack)}
    end.

%% Frames of this module are told by function alone: how many arguments a fun has is the compiler's business.
frame({?MODULE, _, _, Info}) -> {?MODULE, lists:keyfind(error_info, 1, Info)};
frame({M, F, A, Info}) when is_list(A) -> {M, F, [argument(X) || X <- A], lists:keyfind(error_info, 1, Info)};
frame({M, F, A, Info}) -> {M, F, A, lists:keyfind(error_info, 1, Info)}.

argument(Pid) when is_pid(Pid) -> pid;
argument(Other) -> Other.

told(Reason, [{_, _, _, Info} | _] = Stack) ->
    case lists:keyfind(error_info, 1, Info) of
        {error_info, #{module := Module}} -> Module:format_error(Reason, Stack);
        _ -> none
    end.

in_process(Fun) ->
    {_, Ref} = spawn_monitor(fun() -> exit({result, of_call(Fun)}) end),
    receive {'DOWN', Ref, _, _, {result, Result}} -> Result; {'DOWN', Ref, _, _, Reason} -> {died, Reason} end.

%% A guard that fails allocates nothing.
guards_make_no_words() ->
    Functions = [g_size, g_key, g_get, g_tuple, g_hd, g_length, g_plus, g_element, g_float, g_rem],
    Session = trace:session_create(?MODULE, self(), []),
    Go = fun() -> receive go -> [?MODULE:F(A) || F <- Functions, A <- [[x], {}]] end end,
    {Pid, Ref} = spawn_monitor(Go),
    [trace:function(Session, {?MODULE, F, 1}, true, [call_memory]) || F <- Functions],
    trace:process(Session, Pid, true, [call]),
    Pid ! go,
    receive {'DOWN', Ref, _, _, _} -> ok end,
    Words = fun(F) ->
        {call_memory, Counts} = trace:info(Session, {?MODULE, F, 1}, call_memory),
        {F, [{N, W} || {_, N, W} <- Counts]}
    end,
    Result = [Words(F) || F <- Functions],
    trace:session_destroy(Session),
    Result.

g_size(A) when map_size(A) > 1 -> 1; g_size(_) -> 2.
g_key(A) when is_map_key(a, A) -> 1; g_key(_) -> 2.
g_get(A) when map_get(a, A) =:= 1 -> 1; g_get(_) -> 2.
g_tuple(A) when tuple_size(A) > 1 -> 1; g_tuple(_) -> 2.
g_hd(A) when hd(A) =:= 1 -> 1; g_hd(_) -> 2.
g_length(A) when length(A) > 1 -> 1; g_length(_) -> 2.
g_plus(A) when A + 1 > 1 -> 1; g_plus(_) -> 2.
g_element(A) when element(2, A) > 1 -> 1; g_element(_) -> 2.
g_float(A) when float(A) > 1 -> 1; g_float(_) -> 2.
g_rem(A) -> case <<1, 2>> of <<_:(A rem 50)>> -> 1; _ -> 2 end.

maps_of_many_keys() ->
    Map = maps:from_list([{I, I} || I <- lists:seq(1, 50)]),
    Children = erts_internal:map_hashmap_children(Map),
    {erts_debug:size(Map), erts_debug:flat_size(Map), lists:usort([erts_internal:term_type(C) || C <- Children])}.

native_records() ->
    Records = [#nrec{}, #empty{}, #xrec{}, [#xrec{}, #xrec{}]],
    {[erts_debug:flat_size(R) || R <- Records], [erlang:phash2(R) || R <- Records], erts_debug:size_shared(#nrec{})}.

iovec_parts() ->
    [length(erlang:iolist_to_iovec(["e" | binary:copy(<<"x">>, N)])) || N <- [200, 256, 257, 511, 512, 513]].

max_heap_sizes() ->
    Values = [0, 5, 232, 233, -1, foo, #{size => 5}, #{size => 233}, #{}, #{size => 0, kill => no}],
    Spawn = fun(Options) -> of_call(fun() -> is_pid(spawn_opt(fun() -> ok end, Options)) end) end,
    {[Spawn([{max_heap_size, V}]) || V <- Values],
     [Spawn([{max_heap_size, 5000}, {min_heap_size, S}]) || S <- [1, 4184, 6000]],
     [in_process(fun() -> process_flag(max_heap_size, V), ok end) || V <- Values],
     [of_call(fun() -> erlang:system_flag(max_heap_size, V), ok end) || V <- [5, 232, -1, foo, #{size => 5}]]}.

external_options() ->
    Fun = fun no_such_module:no_such_function/3,
    [of_call(fun() -> binary_to_term(<<131, 106>>, id(O)) end) || O <- [[bad], foo, [safe | x], [safe], [used]]]
        ++ [of_call(fun() -> binary_to_term(term_to_binary(Fun), [safe]) end),
            of_call(fun() -> binary_to_term(id(a), id([bad])) end)].

send_options() ->
    Calls = [fun() -> erlang:send(id([]), x, id([bad])) end, fun() -> erlang:send(self(), x, id([bad])) end,
             fun() -> erlang:send(self(), x, id([noconnect | x])) end, fun() -> erlang:send(self(), x, id(foo)) end,
             fun() -> erlang:send(id(no_such_name), x, []) end, fun() -> erlang:send(id([]), x, []) end,
             fun() -> erlang:send_nosuspend(self(), x, id(bad)) end, fun() -> erlang:send_nosuspend(id([]), x) end],
    [in_process(Call) || Call <- Calls].

register_causes() ->
    Gone = element(1, spawn_monitor(fun() -> ok end)),
    receive {'DOWN', _, _, Gone, _} -> ok end,
    [in_process(fun() -> register(aaa, self()), register(bbb, self()) end),
     in_process(fun() -> register(init, self()) end),
     in_process(fun() -> register(id(3), self()) end),
     in_process(fun() -> register(undefined, self()) end),
     in_process(fun() -> register(ccc, id(foo)) end),
     in_process(fun() -> register(ccc, Gone) end)].

timer_causes() ->
    Times = [-1, foo, 1 bsl 70, -(1 bsl 70)],
    [in_process(fun() -> erlang:F(T, id(a), x) end) || F <- [send_after, start_timer], T <- Times]
        ++ [in_process(fun() -> erlang:F(T, id("a"), x, O) end)
            || F <- [send_after, start_timer], T <- [1, foo], O <- [[], foo, [{abs, 1}], [{async, true}]]]
        ++ [in_process(fun() -> erlang:F(id(T), id(O)) end)
            || F <- [cancel_timer, read_timer], T <- [a, make_ref()], O <- [foo, [{abs, true}]], is_atom(T)].

port_info_causes() ->
    [in_process(fun() -> erlang:port_info(id(P), id(I)) end) || P <- [[], foo, 1], I <- [bar, name, 1]]
        ++ [in_process(fun() -> erlang:port_info(id(P)) end) || P <- [[], foo, 1]].

bumped_reductions() ->
    [in_process(fun() -> erlang:bump_reductions(id(N)) end) || N <- [1 bsl 70, -1, 1 bsl 58, a]].

apply_of_funs() ->
    Fun = fun lists:map/2,
    [of_call(fun() -> apply(id(Fun), id(foo)) end), of_call(fun() -> [apply(id(Fun), id([a | b]))] end),
     of_call(fun() -> [apply(id(foo), id(foo))] end), of_call(fun() -> apply(id(foo), id([])) end),
     element(1, element(2, of_call(fun() -> apply(id(Fun), id(lists:seq(1, 300))) end))),
     of_call(fun() -> apply(erlang, apply, [id(Fun), id(foo)]) end),
     of_call(fun() -> apply(id(erlang), apply, [id(Fun), id(foo)]) end)].

nif_errors() ->
    [of_call(fun() -> erlang:nif_error(id(foo)) end), of_call(fun() -> erlang:nif_error(id(foo), id([a])) end),
     of_call(fun() -> [erlang:nif_error(id(foo), id(z))] end)].

error_arguments() ->
    Top = fun(Fun) -> try Fun() catch error:foo:Stack -> element(3, hd(Stack)) end end,
    [Top(fun() -> error(foo, id(A)) end) || A <- [{no, list}, none, [a, b], [a | b], []]]
        ++ [Top(fun() -> error(foo, id(A), [{error_info, #{}}]) end) || A <- [{no, list}, none, [a, b]]].

unary_plus() ->
    [of_call(fun() -> + id(A) end) || A <- [a, [], 1.5, -0.0, 1 bsl 70]]
        ++ [of_call(fun() -> - id(a) end), of_call(fun() -> 1 + id(a) end), of_call(fun() -> 1 - id(a) end)].

%% Of several wrong segments, the one that is told.
bad_segments() ->
    {X, Y} = id({x, y}),
    Big = id(1 bsl 70),
    [of_call(F) || F <- [fun() -> <<X:8, Y/utf8>> end, fun() -> <<X/utf8, Y:8>> end, fun() -> <<X:8, Y:8>> end,
                         fun() -> <<X/utf16, Y/utf8>> end, fun() -> <<X/utf16, Y/utf32>> end,
                         fun() -> <<X:8, (id(16#D800))/utf8>> end, fun() -> <<X:8, Big/utf8>> end,
                         fun() -> <<X/float, Y/binary>> end, fun() -> <<X:8, 1:Y>> end, fun() -> <<X:8, 1:Big>> end,
                         fun() -> <<X:8, 1:(id(-1))>> end, fun() -> <<Y/binary, X:(id(-1))>> end]].

%% Keys of small maps stand in the order in which their atoms were made.
atoms_of_maps() ->
    Key = fun(C) -> list_to_atom("errors_key_" ++ [C]) end,
    [K3, K1, K2] = [Key(C) || C <- "cab"],
    maps:keys(#{K1 => 1, K2 => 2, K3 => 3}) =:= [K3, K1, K2].

flags_of_none() ->
    [of_call(fun() -> erlang:system_flag(F, V) end)
     || {F, V} <- [{no_such_flag, 1}, {1, 1}, {backtrace_depth, foo}, {time_offset, foo}, {system_logger, foo},
                   {reset_seq_trace, foo}, {fullsweep_after, -1}]]
        ++ [of_call(fun() -> erlang:system_monitor(undefined, foo) end)].

tracees_of_none() -> [of_call(fun() -> erlang:trace_info(T, foo) end) || T <- [1, [], "a", #{}, {a, b}, nobody]]
    ++ [of_call(fun() -> erlang:trace_info(T, 1) end) || T <- [1, new, {a, b, 1}]].

%% A match specification without clauses matches nothing.
tables_without_patterns() ->
    Calls = [fun(T) -> ets:select(T, []) end, fun(T) -> ets:select(T, [], 1) end, fun(T) -> ets:select(T, [], 0) end,
             fun(T) -> ets:select_reverse(T, []) end, fun(T) -> ets:select_reverse(T, [], 2) end,
             fun(T) -> ets:select_count(T, []) end, fun(T) -> ets:select_delete(T, []) end,
             fun(T) -> ets:select_replace(T, []) end, fun(T) -> ets:tab2list(T) end],
    Table = fun(Type) -> T = ets:new(t, [Type]), ets:insert(T, {1, 2}), T end,
    [[try Call(Table(Type)) catch C:R -> {C, R} end || Call <- Calls] || Type <- [set, ordered_set, bag, duplicate_bag]].

bytes_referenced() -> [binary:referenced_byte_size(B) || B <- [<<>>, <<5:3>>, <<1, 5:3>>, <<1, 2>>]].
