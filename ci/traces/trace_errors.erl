%% What the trace interface says to what it is not made for: each argument of each function in turn is another term,
%% match specifications have each function with each number of arguments, tracers die and sessions are gone.
%% `trace_shapes` runs these groups with its own.
-module(trace_errors).
-compile([nowarn_deprecated_catch]).

-export([groups/0, traced/1]).

groups() ->
    [{arguments_of_erlang, arguments_of_erlang()},
     {arguments_of_trace, arguments_of_trace()},
     {arguments_of_seq_trace, arguments_of_seq_trace()},
     {bad_specs, bad_specs()},
     {functions_of_specs, functions_of_specs()},
     {nested_specs, nested_specs()},
     {dying, dying()},
     {saved_calls, saved_calls()}].

traced(X) -> X.

%% Terms of all kinds, by name.
terms() ->
    [{atom, none}, {true, true}, {small, 1}, {negative, -1}, {big, 1 bsl 70}, {float, 1.5}, {nil, []}, {string, "ab"}, {improper, [a | b]},
     {binary, <<"b">>}, {bits, <<1:1>>}, {tuple_0, {}}, {pair, {a, b}}, {triple, {a, b, c}}, {map, #{}}, {self, self()}, {dead, dead()},
     {foreign_pid, binary_to_term(<<131, 88, 119, 3, "a@b", 77:32, 0:32, 1:32>>)}, {foreign_port, binary_to_term(<<131, 89, 119, 3, "a@b", 7:32, 1:32>>)},
     {no_port, closed_port()}, {reference, make_ref()}, {'fun', fun traced/1}].

dead() ->
    {P, M} = spawn_monitor(fun() -> ok end),
    receive {'DOWN', M, _, _, _} -> P end.

closed_port() ->
    Port = open_port({spawn_executable, "/bin/cat"}, []),
    port_close(Port),
    Port.

%% A case for each argument: it is each of the terms, and those of `Others`, while the rest are as they should be.
vary(Module, Function, Base, Others) ->
    Arity = length(Base),
    [{{Function, Arity, N}, fun() -> varied(Module, Function, Base, N, maps:get(N, Others, [])) end} || N <- lists:seq(1, Arity)].

varied(M, F, Base, N, Others) ->
    Terms = terms() ++ [{{other, I}, T} || {I, T} <- lists:enumerate(Others)],
    grouped([begin
         Args = [case A of {make, Fun} -> Fun(); _ -> A end || A <- lists:sublist(Base, N - 1) ++ [Term] ++ lists:nthtail(N, Base)],
         Result = attempt(M, F, Args),
         clean(),
         {Name, Result}
     end || {Name, Term0} <- Terms, Term <- [case Term0 of {make, Fun} -> Fun(); _ -> Term0 end]]).

%% Each result with the names of what gave it.
grouped(Named) ->
    [{Result, [short(Name) || {Name, R} <- Named, R =:= Result]} || Result <- lists:uniq([R || {_, R} <- Named])].

short({other, I}) -> I;
short(Name) -> Name.

%% How many processes, ports and functions there are depends on the runtime, and so do handles.
attempt(M, F, Args) ->
    Result = try apply(M, F, Args) of
                 N when is_integer(N), N > 1 -> many;
                 {Ref, {Name, _}} when is_reference(Ref) -> {session, Name};
                 {Pid, Options} when is_pid(Pid), is_list(Options) -> {Pid, lists:sort(Options)};
                 Sessions when F =:= session_info, is_list(Sessions) -> [S || {Name, _} = S <- Sessions, Name =/= shapes];
                 Value -> Value
             catch Class:Reason:Stack -> trace_shapes:failure(Class, Reason, Stack)
             end,
    _ = [receive _ -> ok after 0 -> ok end || _ <- lists:seq(1, 1000)],
    Result.

clean() ->
    erlang:trace(all, false, [all]),
    erlang:trace(new, false, [all]),
    _ = [erlang:trace_pattern(P, false, Flags) || P <- [{?MODULE, '_', '_'}, {erlang, abs, 1}, on_load], Flags <- [[local, meta, call_count, call_time, call_memory], [global]]],
    _ = [erlang:trace_pattern(E, true, []) || E <- [send, 'receive']],
    erlang:system_monitor(undefined),
    erlang:system_profile(undefined, []),
    seq_trace:set_token([]),
    seq_trace:set_system_tracer(false),
    _ = [trace:session_destroy(S) || {_, Name} = S <- all_sessions(), is_integer(Name)],
    ok.

all_sessions() -> [{Name, Id} || {Name, Id} <- trace:session_info(all), Name =:= errors].

session() -> trace:session_create(errors, self(), []).

destroyed() -> S = session(), trace:session_destroy(S), S.

arguments_of_erlang() ->
    Me = self(),
    Function = {?MODULE, traced, 1},
    Flags = [all, send, 'receive', procs, ports, call, return_to, arity, silent, running, running_procs, running_ports, exiting, garbage_collection, timestamp, monotonic_timestamp,
             strict_monotonic_timestamp, cpu_timestamp, set_on_spawn, set_on_first_spawn, set_on_link, set_on_first_link, tracer, scheduler_id],
    Tracers = [[{tracer, T}] || {_, T} <- terms()] ++ [[{tracer, a, b, c}], [{tracer}], [{tracer, 1, s}], [{tracer, no_such_tracer, s}], [{tracer, lists, s}], [{tracer, erl_tracer, s}], [{tracer, erl_tracer, Me}],
                                                      [{tracer, Me}, {tracer, Me}], [call, send, call], [call | x], [[call]], [call, {a, b}], [{tracer, Me} | x]],
    Metas = [[{meta, T}] || {_, T} <- terms()] ++ [[{meta}], [{meta, a, b, c}], [{meta, 1, s}], [{meta, no_such_tracer, s}], [{meta, lists, s}], [meta, {meta, Me}], [global, {meta, Me}], [local | x]],
    Kinds = [global, local, meta, call_count, call_time, call_memory, none],
    Pairs = [[A, B] || A <- Kinds, B <- Kinds, A < B],
    Functions = [{?MODULE, traced, '_'}, {?MODULE, '_', '_'}, {?MODULE, '_', 1}, {'_', traced, 1}, {'_', '_', 1}, {?MODULE, traced, 255}, {?MODULE, traced, 256}, {?MODULE, traced, -1}, {?MODULE, traced, a},
                 {?MODULE, "traced", 1}, {?MODULE, 1, 1}, {1, traced, 1}, {no_module, f, 1}, {no_module, '_', '_'}, {?MODULE, none, 1}, {?MODULE, traced, 1, 1}, {?MODULE, traced, 1 bsl 70}, {?MODULE, traced, 1.0}, send, 'receive', on_load],
    Specs = [true, false, restart, pause, []] ++ specs(),
    Lots = [[busy_port], [busy_dist_port], [{long_gc, 1}, {large_heap, 100}], [{long_gc, T} || {_, T} <- terms()]] ++ [[{Key, T}] || Key <- [long_gc, large_heap, long_schedule, long_message_queue], T <- [0, 1, 100, -1, a, 1.5, 1 bsl 70, {1, 2}, {2, 1}, {1, 1}, []]] ++ [[busy_port | x], [{busy_port, true}], [busy_port, busy_port]],
    Profile = [[runnable_procs], [runnable_ports], [scheduler], [exclusive], [timestamp], [monotonic_timestamp], [strict_monotonic_timestamp], [runnable_procs, none], [runnable_procs | x], [{a, b}], [runnable_procs, scheduler, exclusive, timestamp]],
    Items = [flags, tracer, traced, match_spec, meta, meta_match_spec, call_count, call_time, call_memory, all, none],
    vary(erlang, trace, [{make, fun self/0}, false, [call]], #{1 => [all, new, existing, processes, ports, new_processes, new_ports, existing_processes, existing_ports, new_, undefined], 2 => [false, 1, restart], 3 => [[F] || F <- Flags] ++ Tracers})
        ++ vary(erlang, trace, [{make, fun dead/0}, true, [call]], #{3 => [[F] || F <- Flags] ++ Tracers})
        ++ [{{on, trace_3}, fun() -> [{F, attempt(erlang, trace, [self(), true, F]), element(2, erlang:trace_info(self(), flags)), clean()} || F <- [[X] || X <- Flags, X =/= running] ++ Tracers] end}]
        ++ vary(erlang, trace_pattern, [Function, true], #{1 => Functions, 2 => Specs})
        ++ vary(erlang, trace_pattern, [Function, true, [local]], #{1 => Functions, 2 => Specs, 3 => [[K] || K <- Kinds] ++ Pairs ++ Metas})
        ++ [{{trace_pattern_with, Flag}, fun() -> varied(erlang, trace_pattern, [Function, true, Flag], 2, Specs) end} || Flag <- [[], [global], [meta], [call_count], [call_time], [call_memory], [local, call_count], [meta, call_time]]]
        ++ [{{trace_pattern_of, Event}, fun() -> varied(erlang, trace_pattern, [Event, true, []], 2, Specs) ++ varied(erlang, trace_pattern, [Event, true, []], 3, [[K] || K <- Kinds]) end} || Event <- [send, 'receive', on_load]]
        ++ vary(erlang, trace_info, [{make, fun self/0}, flags], #{1 => [new, new_processes, new_ports, on_load, send, 'receive', existing, all | Functions], 2 => Items})
        ++ [{{trace_info_of, What}, fun() -> [{I, attempt(erlang, trace_info, [W, I])} || W <- [case What of no_port -> closed_port(); dead -> dead(); _ -> What end], I <- Items] end} ||
               What <- [new, new_processes, new_ports, on_load, send, 'receive', dead, no_port, Function, {no_module, f, 1}, {?MODULE, none, 3}, {erlang, abs, 1}]]
        ++ vary(erlang, trace_delivered, [all], #{})
        ++ vary(erlang, system_monitor, [undefined], #{1 => [{Me, []}, {Me, [busy_port]}, {Me, bad}, {bad, [busy_port]}, {Me, [busy_port], x}, {Me}, {undefined, []}, false]})
        ++ vary(erlang, system_monitor, [{make, fun self/0}, [busy_port]], #{1 => [undefined], 2 => Lots})
        ++ [{{set, system_monitor}, fun() -> [{O, attempt(erlang, system_monitor, [self(), O]), attempt(erlang, system_monitor, []), clean()} || O <- Lots] end}]
        ++ vary(erlang, system_profile, [{make, fun self/0}, [exclusive]], #{1 => [undefined], 2 => Profile})
        ++ [{{set, system_profile}, fun() -> [{O, attempt(erlang, system_profile, [self(), O]), attempt(erlang, system_profile, []), clean()} || O <- Profile] end}]
        ++ [{{system_flag, F}, fun() -> R = [{N, attempt(erlang, system_flag, [F, T])} || {N, T} <- terms() ++ [{other, (1 bsl 32) - 1}, {other, 1 bsl 32}]], erlang:system_flag(trace_control_word, 0), R end} || F <- [trace_control_word]].

arguments_of_trace() ->
    Session = {make, fun session/0},
    Function = {?MODULE, traced, 1},
    Flags = [all, send, 'receive', procs, ports, call, return_to, arity, silent, running, running_procs, running_ports, exiting, garbage_collection, timestamp, monotonic_timestamp,
             strict_monotonic_timestamp, cpu_timestamp, set_on_spawn, set_on_first_spawn, set_on_link, set_on_first_link, tracer, {tracer, self()}, {tracer, lists, s}],
    Kinds = [global, local, meta, call_count, call_time, call_memory, none, {meta, self()}],
    Lists = [[F] || F <- Flags] ++ [[], [call, call], [call | x], [[call]]],
    Handles = [{make, fun destroyed/0}, {make, fun() -> element(2, destroyed()) end}, {make, fun() -> element(2, session()) end}, {make, fun() -> {make_ref(), element(2, session())} end}, {make, fun() -> {element(1, session()), {errors, 77}} end},
               {make, fun() -> element(1, session()) end}, {make, fun() -> {_, {_, N}} = session(), {other_name, N} end}, {errors, 1}, {errors, -1}, {errors, 1 bsl 70}, {a, {b, 1}}, {make_ref(), {b, 1}}],
    Pids = [new, existing, all, processes, ports, new_processes, new_ports, existing_processes, existing_ports],
    Functions = [{?MODULE, traced, '_'}, {?MODULE, '_', '_'}, {?MODULE, '_', 1}, {'_', traced, 1}, {?MODULE, traced, 256}, {?MODULE, traced, -1}, {?MODULE, traced, a}, {?MODULE, "f", 1}, {1, traced, 1}, {no_module, f, 1}, {?MODULE, none, 1}, {?MODULE, traced, 1, 1}, send, 'receive', on_load],
    Specs = [true, false, restart, pause, []] ++ specs(),
    Of = fun(F, Base, Others) -> vary(trace, F, Base, Others#{1 => Handles}) end,
    Of(process, [Session, {make, fun self/0}, true, [send]], #{2 => Pids, 3 => [false, 1], 4 => Lists})
        ++ Of(process, [Session, {make, fun dead/0}, true, [send]], #{4 => Lists})
        ++ Of(port, [Session, {make, fun closed_port/0}, true, [send]], #{2 => Pids, 3 => [false, 1], 4 => Lists})
        ++ Of(function, [Session, Function, true, [local]], #{2 => Functions, 3 => Specs, 4 => [[K] || K <- Kinds] ++ [[A, B] || A <- Kinds, B <- Kinds, A < B] ++ [[local | x]]})
        ++ Of(send, [Session, true, []], #{2 => Specs, 3 => [[K] || K <- Kinds]})
        ++ Of(recv, [Session, true, []], #{2 => Specs, 3 => [[K] || K <- Kinds]})
        ++ Of(info, [Session, {make, fun self/0}, flags], #{2 => Pids ++ Functions ++ [system], 3 => [flags, tracer, traced, match_spec, meta, meta_match_spec, call_count, call_time, call_memory, all, none, large_heap]})
        ++ [{{info_of, What}, fun() -> grouped([{I, attempt(trace, info, [session(), case What of no_port -> closed_port(); dead -> dead(); _ -> What end, I])} || I <- [flags, tracer, traced, match_spec, all, session, none]]) end} ||
               What <- [new, new_processes, new_ports, on_load, send, 'receive', system, dead, no_port, Function, {no_module, f, 1}, {?MODULE, none, 3}, {erlang, abs, 1}]]
        ++ Of(delivered, [Session, all], #{})
        ++ Of(system, [Session, large_heap, 1000], #{2 => [long_gc, long_schedule, long_message_queue, busy_port, busy_dist_port], 3 => [0, 1, 100, false, true, {1, 2}, {2, 1}, (1 bsl 59) - 1, 1 bsl 59, 1 bsl 60, (1 bsl 64) - 1, 1 bsl 64]})
        ++ Of(session_destroy, [Session], #{})
        ++ vary(trace, session_info, [all], #{1 => Functions ++ Pids ++ [new_, undefined]})
        ++ vary(trace, session_create, [errors, {make, fun self/0}, []], #{1 => ['', legacy, default], 2 => [{a, s}, {erl_tracer, s}, {1, s}, {erl_tracer, self()}, {erl_tracer}, {erl_tracer, a, b}], 3 => [[x], [{a, b}], [x | y], #{}]}).

arguments_of_seq_trace() ->
    Low = [send, 'receive', print, timestamp, monotonic_timestamp, strict_monotonic_timestamp, label, serial, token, spawn, none],
    Values = [true, false, 1, -1, 0, a, {1, 2}, {0, 0}, {1 bsl 70, 0}, {a, 1}, {1}, [], 1 bsl 70, {-1, -1}],
    vary(seq_trace, set_token, [label, 17], #{1 => Low, 2 => Values})
        ++ vary(seq_trace, set_token, [{1, 17, 0, self(), 0}], #{1 => [{F, L, S, P, C} || {F, L, S, P, C} <- [{0, 0, 0, self(), 0}, {63, a, 1, self(), 1}, {64, a, 1, self(), 1}, {-1, a, 1, self(), 1}, {a, a, 1, self(), 1}, {1, a, a, self(), 1}, {1, a, 1, a, 1}, {1, a, 1, self(), a}, {1 bsl 70, a, 1, self(), 1}, {1, a, 1 bsl 70, self(), 1}, {1, a, 1, self(), 1 bsl 70}]] ++ [{1, 2, 3, 4}, {1, 2, 3, 4, 5, 6}]})
        ++ vary(seq_trace, get_token, [label], #{1 => Low})
        ++ vary(seq_trace, print, [x], #{})
        ++ vary(seq_trace, print, [17, x], #{1 => Values})
        ++ vary(seq_trace, set_system_tracer, [false], #{1 => [{lists, s}, {no_such_tracer, s}, {erl_tracer, s}, {1, s}, {erl_tracer, self()}, undefined]})
        ++ vary(erlang, seq_trace_info, [label], #{1 => Low})
        ++ vary(erlang, seq_trace_print, [17, x], #{1 => Values})
        ++ [{{set_token, Item}, fun() -> [{V, attempt(seq_trace, set_token, [Item, V]), seq_trace:get_token(), seq_trace:set_token([])} || V <- Values] end} || Item <- Low]
        ++ [{{low, Item}, fun() -> [{V, attempt(erlang, seq_trace, [Item, V]), seq_trace:get_token(), seq_trace:set_token([])} || V <- [[] | Values]] end} || Item <- [sequential_trace_token | Low]]
        ++ [{tracer_gone, fun() -> D = dead(), [attempt(seq_trace, set_system_tracer, [D]), seq_trace:get_system_tracer(), clean()] end},
            {tracer_dies, fun() ->
                                  {T, M} = spawn_monitor(fun() -> receive stop -> ok end end),
                                  Old = seq_trace:set_system_tracer(T),
                                  T ! stop, receive {'DOWN', M, _, _, _} -> ok end,
                                  seq_trace:set_token(label, 1), seq_trace:set_token(send, true), seq_trace:set_token(print, true),
                                  self() ! x, seq_trace:print(x),
                                  Now = seq_trace:get_system_tracer(),
                                  seq_trace:set_token([]),
                                  [Old, Now, seq_trace:set_system_tracer(false)]
                          end}].

%% Match specifications that are wrong, or nearly.
specs() ->
    [[x], [{}], [{'_'}], [{'_', []}], [{'_', [], [], []}], [{'_', x, []}], [{'_', [], x}], [{'_', [a | b], []}], [{'_', [], [a | b]}], [{'_', [], []} | x], [{'_', [], []}, x],
     [{x, [], []}], [{1, [], []}], [{"ab", [], []}], [{[], [], []}], [{['_' | '_'], [], []}], [{'$1', [], []}], [{['$0'], [], []}], [{['$99999999'], [], []}], [{['$100000000'], [], []}], [{['$a'], [], []}], [{#{}, [], []}], [{[#{a => '$1'}], [], []}], [{[#{'$1' => a}], [], []}], [{[{'$1', '$1'}], [], []}],
     [{'_', ['$1'], []}], [{['$1'], ['$2'], []}], [{['$1'], [], ['$2']}], [{'_', [{}], []}], [{'_', [{{}}], []}], [{'_', [{1, 2}], []}], [{'_', [{none}], []}], [{'_', [none], []}], [{'_', [true], []}], [{'_', [false], []}], [{'_', [1], []}], [{'_', [[]], []}], [{'_', [[{hd}]], []}], [{'_', [#{a => {none}}], []}],
     [{'_', [], [{}]}], [{'_', [], [{{}}]}], [{'_', [], [{{1, {none}}}]}], [{'_', [], [none]}], [{'_', [], [1]}], [{'_', [], [{none}]}], [{'_', [], [[{none}]]}], [{'_', [], [#{a => {none}}]}], [{'_', [], [{const}]}], [{'_', [], [{const, 1, 2}]}], [{'_', [], [{const, {none}}]}],
     [{'_', [{message, true}], []}], [{'_', [{return_trace}], []}], [{'_', [{caller}], []}], [{'_', [], [{message, {message, true}}]}], [{'_', [], [{message, {return_trace}}]}], [{'_', [], [{'and', {return_trace}, true}]}], [{'_', [], [{'and'}]}], [{'_', [], [{'and', true}]}], [{'_', [], [{'orelse'}]}],
     [{'_', [{is_record, '$_', a}], []}], [{'_', [{is_record, '$_', a, 2}], []}], [{'_', [{is_record, '$_', 1, 2}], []}], [{'_', [{is_record, '$_', a, b}], []}], [{'_', [{is_function, '$_', 1}], []}],
     [{'_', [], [{silent, 1}]}], [{'_', [], [{enable_trace, x}]}], [{'_', [], [{set_seq_token, x, y}]}], [{'_', [], [{set_tcw, a}]}]].

bad_specs() ->
    [{{How, I}, fun() -> [attempt(erlang, match_spec_test, [Against, Spec, How])] end} || {How, Against} <- [{trace, [1]}, {table, {1}}], {I, Spec} <- lists:enumerate(specs())]
        ++ [{{compiled, I}, fun() -> [is_reference(R) orelse R || R <- [attempt(ets, match_spec_compile, [Spec])]] end} || {I, Spec} <- lists:enumerate(specs())]
        ++ vary(erlang, match_spec_test, [[1], [{'_', [], []}], trace], #{2 => [[]], 3 => [table, other, ""]})
        ++ vary(erlang, match_spec_test, [{1}, [{'_', [], []}], table], #{3 => [trace, other]}).

%% Each function of match specifications (but `{trace, _, _}`, of which OTP dies when there is no session) with none to four arguments, as a condition and in a body.
functions_of_specs() ->
    Conditions = [is_atom, is_float, is_integer, is_list, is_number, is_pid, is_port, is_reference, is_tuple, is_map, is_map_key, is_binary, is_bitstring, is_boolean, is_function, is_record, 'and', 'or', 'not', 'xor', 'andalso', 'orelse',
                  abs, element, hd, length, map_get, map_size, max, min, node, float, round, floor, ceil, size, bit_size, byte_size, tuple_size, tl, trunc, binary_part, '+', '-', '*', '/', 'div', 'rem', 'band', 'bor', 'bxor', 'bnot', 'bsl', 'bsr', '>', '>=', '<', '=<', '=:=', '==', '=/=', '/=', self, get_tcw, const, is_seq_trace,
                  is_process_alive, tuple_to_list],
    Actions = [set_seq_token, get_seq_token, message, return_trace, exception_trace, process_dump, enable_trace, disable_trace, trace, silent, set_tcw, caller, caller_line, current_stacktrace, display],
    [{F, fun() -> grouped([{{Kind, Place, Arity}, Result} || {Kind, Place} <- [{trace, condition}, {trace, body}, {table, condition}, {table, body}], {Arity, Result} <- of_all_arities(F, Place, Kind)]) end} || F <- Conditions ++ Actions].

of_all_arities(F, Place, Kind) ->
    [begin
         Call = list_to_tuple([F | lists:sublist(['$1', '$1', a, b], Arity)]),
         Spec = case Place of condition -> [{head(Kind), [Call], [true]}]; body -> [{head(Kind), [], [Call]}] end,
         Against = case Kind of trace -> [c]; table -> {c} end,
         R = fresh(fun() -> attempt(erlang, match_spec_test, [Against, Spec, Kind]) end),
         erlang:system_flag(trace_control_word, 0),
         {Arity, dumped(F, R)}
     end || Arity <- lists:seq(0, 4), not (F =:= display andalso Arity =:= 1), not (F =:= trace andalso Arity > 1 andalso Kind =:= trace)].

head(trace) -> ['$1'];
head(table) -> {'$1'}.

%% A dump is another one in each runtime.
dumped(process_dump, {ok, Dump, Flags, Messages}) when is_binary(Dump) -> {ok, dump, Flags, Messages};
dumped(_, Result) -> Result.

%% Actions are those of a process of their own.
fresh(Fun) ->
    Me = self(),
    {P, M} = spawn_monitor(fun() -> put(names, #{}), R = Fun(), Me ! {self(), R} end),
    receive
        {P, R} -> receive {'DOWN', M, _, _, _} -> R end;
        {'DOWN', M, _, _, Reason} -> {died, Reason}
    end.

nested_specs() ->
    Nests = [{hd, fun(T) -> {hd, T} end}, {list, fun(T) -> [T] end}, {tuple, fun(T) -> {{T}} end}, {map, fun(T) -> #{a => T} end}, {'and', fun(T) -> {'and', T, true} end}, {'andalso', fun(T) -> {'andalso', T, true} end}, {'orelse', fun(T) -> {'orelse', false, T} end}],
    Plain = [{list, fun(T) -> [T] end}, {tuple, fun(T) -> {T} end}, {map, fun(T) -> #{a => T} end}],
    [{{Place, Kind, Depth}, fun() -> [{By, class(Do)} || {By, Do} <- ways(spec(Place, nest(Nest, Depth)))] end} ||
        {Place, Nestings} <- [{condition, Nests}, {body, Nests}, {message, Nests}, {const, Plain}, {head, Plain}], {Kind, Nest} <- Nestings, Depth <- [10, 1000, 1000000], {Place, Kind, Depth} =/= {head, map, 1000000}].

nest(Nest, Depth) -> lists:foldl(fun(_, T) -> Nest(T) end, true, lists:seq(1, Depth)).

spec(condition, T) -> [{['$1'], [T], []}];
spec(body, T) -> [{['$1'], [], [T]}];
spec(message, T) -> [{['$1'], [], [{message, T}]}];
spec(const, T) -> [{['$1'], [], [{const, T}]}];
spec(head, T) -> [{[T], [], []}].

ways(Spec) ->
    S = session(),
    [{function, fun() -> trace:function(S, {?MODULE, traced, 1}, Spec, [local]) end},
     {send, fun() -> trace:send(S, Spec, []) end},
     {recv, fun() -> trace:recv(S, Spec, []) end},
     {legacy, fun() -> R = erlang:trace_pattern({?MODULE, traced, 1}, Spec, [local]), erlang:trace_pattern({?MODULE, traced, 1}, false, [local]), R end},
     {test, fun() -> {ok, _, _, Warnings} = erlang:match_spec_test([true], Spec, trace), Warnings end}].

%% Arguments of the error would be as deep.
class(Do) ->
    try Do()
    catch
        error:{badmatch, {error, [{_, Text} | _]}} -> {error, lists:sublist(Text, 40)};
        Class:Reason:Stack when is_atom(Reason) ->
            [{M, F, _, Info} | _] = Stack,
            {Class, Reason, M, F, [maps:get(cause, E, none) || {error_info, E} <- Info]};
        Class:_ -> Class
    end.

dying() ->
    Tracer = fun() -> spawn(fun() -> receive stop -> ok end end) end,
    Kill = fun(T) -> M = monitor(process, T), exit(T, kill), receive {'DOWN', M, _, _, _} -> ok end end,
    Worker = fun() -> spawn(fun W() -> receive {P, F} -> P ! {self(), catch F()}, W() end end) end,
    Do = fun(W, F) -> W ! {self(), F}, receive {W, R} -> R end end,
    All = [send, 'receive', procs, call, return_to, running, garbage_collection, set_on_spawn],
    [{{session, Flag}, fun() ->
                               T = Tracer(), S = trace:session_create(errors, T, []), W = Worker(),
                               1 = trace:process(S, W, true, [Flag]),
                               1 = trace:function(S, {?MODULE, traced, 1}, [{'_', [], [{return_trace}]}], [local]),
                               Kill(T),
                               R = Do(W, fun() -> ?MODULE:traced(1), self() ! x, receive x -> ok end, erlang:garbage_collect(), P = spawn(fun() -> receive stop -> ok end end), P ! stop, ok end),
                               [R, trace:info(S, W, flags), trace:info(S, W, tracer), attempt(trace, process, [S, W, true, [send]]), trace:info(S, W, flags), attempt(trace, function, [S, {?MODULE, traced, 1}, true, [local]]), attempt(trace, delivered, [S, W]) =/= x]
                       end} || Flag <- All]
        ++ [{{legacy, Flag}, fun() ->
                               T = Tracer(), W = Worker(),
                               1 = erlang:trace(W, true, [Flag, {tracer, T}]),
                               1 = erlang:trace_pattern({?MODULE, traced, 1}, [{'_', [], [{return_trace}]}], [local]),
                               Kill(T),
                               R = Do(W, fun() -> ?MODULE:traced(1), self() ! x, receive x -> ok end, erlang:garbage_collect(), P = spawn(fun() -> receive stop -> ok end end), P ! stop, ok end),
                               X = [R, erlang:trace_info(W, flags), erlang:trace_info(W, tracer), erlang:trace(W, true, [send]), erlang:trace_info(W, tracer)],
                               clean(), X
                       end} || Flag <- All]
        ++ [{new_processes, fun() ->
                               T = Tracer(), S = trace:session_create(errors, T, []),
                               0 = trace:process(S, new, true, [procs]), Kill(T),
                               P = spawn(fun() -> receive stop -> ok end end),
                               [trace:info(S, P, flags), trace:info(S, new, flags), trace:info(S, new, tracer)]
                       end},
            {events, fun() ->
                               T = Tracer(), S = trace:session_create(errors, T, []), ok = trace:system(S, long_message_queue, {1, 3}), Kill(T),
                               [self() ! N || N <- lists:seq(1, 10)],
                               [attempt(trace, system, [S, long_message_queue, {1, 4}]), until({system, []}, fun() -> trace:info(S, system, all) end, 100)]
                       end},
            {system_monitor, fun() ->
                               T = Tracer(), erlang:system_monitor(T, [busy_port]), A = element(2, erlang:system_monitor()), Kill(T),
                               [A, erlang:system_monitor(), clean()]
                       end},
            {system_profile, fun() ->
                               T = Tracer(), erlang:system_profile(T, [exclusive]), Kill(T),
                               [erlang:system_profile(), clean()]
                       end},
            {port, fun() ->
                               P = open_port({spawn_executable, "/bin/cat"}, [binary]), S = trace:session_create(errors, P, []), W = Worker(),
                               1 = trace:process(S, W, true, [send]), port_close(P),
                               R = Do(W, fun() -> self() ! x, receive x -> ok end end),
                               [R, trace:info(S, W, flags), attempt(trace, process, [S, W, true, [call]])]
                       end},
            {port_is_no_driver, fun() ->
                               P = open_port({spawn_executable, "/bin/cat"}, [binary]),
                               [attempt(erlang, trace, [self(), true, [send, {tracer, P}]]), attempt(erlang, trace_info, [self(), tracer]), clean()]
                       end},
            {session_gone_while_tracing, fun() ->
                               S = session(), W = Worker(),
                               1 = trace:process(S, W, true, [call, return_to]), 1 = trace:function(S, {?MODULE, traced, 1}, [{'_', [], [{return_trace}]}], [local]),
                               Me = self(),
                               Do(W, fun() -> [begin N =:= 500 andalso (Me ! go), ?MODULE:traced(N) end || N <- lists:seq(1, 1000)], ok end),
                               true = trace:session_destroy(S),
                               R = Do(W, fun() -> ?MODULE:traced(1), ok end),
                               [R, trace:session_info(W), trace:session_info({?MODULE, traced, 1})]
                       end},
            {tracee_traces_itself, fun() ->
                               S = session(),
                               [attempt(trace, process, [S, self(), true, [F]]) || F <- [send, call, procs, 'receive', all]] ++ [trace:info(S, self(), flags), attempt(trace, process, [S, all, true, [send]]), trace:info(S, self(), flags), trace:info(S, self(), tracer)]
                       end},
            {tracee_traces_itself_old, fun() -> [{F, attempt(erlang, trace, [self(), true, F]), erlang:trace_info(self(), flags)} || F <- [[send], [send, {tracer, self()}], [call, {tracer, self()}]]] ++ [clean()] end},
            {meta_of_itself, fun() -> S = session(), 1 = trace:function(S, {?MODULE, traced, 1}, true, [meta]), ?MODULE:traced(7), receive M -> [element(3, M)] after 50 -> none end end}].

%% What was set for one that is gone goes when that is noticed.
until(Last, Get, N) ->
    case Get() of
        Last -> Last;
        Other when N =:= 0 -> Other;
        _ -> timer:sleep(10), until(Last, Get, N - 1)
    end.

saved_calls() ->
    [{process_flag, fun() -> [{N, attempt(erlang, process_flag, [save_calls, T])} || {N, T} <- terms() ++ [{other, 0}, {other, 10000}, {other, 10001}, {other, 0}]] end},
     {process_flag_of_other, fun() -> P = spawn(fun() -> receive stop -> ok end end), [{N, attempt(erlang, process_flag, [P, save_calls, T])} || {N, T} <- terms() ++ [{other, 0}, {other, 10000}, {other, 10001}, {other, 0}]] end},
     {process_flag_of, fun() -> [{N, attempt(erlang, process_flag, [T, save_calls, 1])} || {N, T} <- terms()] end},
     {process_flag_name, fun() -> P = spawn(fun() -> receive stop -> ok end end), [{N, attempt(erlang, process_flag, [P, T, 1])} || {N, T} <- terms()] end},
     {flag_name, fun() -> [{N, attempt(erlang, process_flag, [T, 1])} || {N, T} <- terms()] end}]
        ++ [{{calls, I}, fun() -> process_flag(save_calls, 20), _ = catch F(), {last_calls, L} = process_info(self(), last_calls), L end} || {I, F} <- lists:enumerate(calls())].

calls() ->
    M = ?MODULE,
    [fun() -> ?MODULE:traced(1) end, fun() -> traced(1) end, fun() -> apply(?MODULE, traced, [1]) end, fun() -> (fun ?MODULE:traced/1)(1) end, fun() -> (fun traced/1)(1) end, fun() -> apply(fun ?MODULE:traced/1, [1]) end,
     fun() -> (traced(M)):traced(1), ok end, fun() -> apply(erlang, apply, [M, traced, [1]]), (fun erlang:apply/3)(M, traced, [1]), (fun erlang:apply/2)(fun M:traced/1, [1]) end,
     fun() -> self() ! x, receive x -> ok end end, fun() -> receive after 0 -> ok end end, fun() -> receive after 1 -> ok end end, fun() -> erlang:send(self(), x, []), nobody ! x end, fun() -> {1, node()} ! x end, fun() -> {a, b@c} ! x end, fun() -> "" ! x end,
     fun() -> atom_to_list(traced(a)), erlang:md5("a"), lists:reverse([1, 2], []), abs(traced(1)) end, fun() -> erlang:yield(), erlang:garbage_collect() end, fun() -> catch throw(traced(x)), exit(y) end,
     fun() -> process_flag(sensitive, true), ?MODULE:traced(1), process_flag(sensitive, false), ?MODULE:traced(2) end, fun() -> [?MODULE:traced(N) || N <- lists:seq(1, 30)] end, fun() -> process_flag(save_calls, 0), process_flag(save_calls, 3), ?MODULE:traced(1) end,
     fun() -> lists:map(fun ?MODULE:traced/1, [1, 2]), maps:map(fun(_, V) -> ?MODULE:traced(V) end, #{a => 1}) end].
