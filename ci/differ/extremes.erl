%% Operands and sizes at their extremes against each BIF and each instruction for bitstrings.
%%
%% `main([Seed, Calls | Parts])`: Parts are of `bifs`, `natives`, `internals`, `bits`, `deep`; all but `internals` where
%% none is named. Each call is made in a process of its own, under a time limit, and prints one line:
%%
%%     Module:Function(Arguments) -> Class:Result
%%
%% Arguments stand there by the names that `value/1` knows them by, results without what differs from run to run.
%% `internals` are called for the sake of the machine that is tested: OTP itself does not survive all such calls.
-module(extremes).
-export([main/1]).
-compile([nowarn_deprecated_function, {no_auto_import, [size/1]}]).

-define(LIMIT_MS, 3000).

main([Seed, Calls | Parts]) ->
    process_flag(trap_exit, true),
    Wanted = case Parts of [] -> ["bifs", "natives", "bits", "deep"]; _ -> Parts end,
    [part(Part, list_to_integer(Seed), list_to_integer(Calls)) || Part <- Wanted],
    halt(0).

part("bifs", Seed, Calls) ->
    [call(MFA, Seed, Calls) || MFA <- lists:sort(erlang:system_info(snifs)), is_tried(MFA), not is_internal(MFA)];
part("internals", Seed, Calls) ->
    [call(MFA, Seed, Calls) || MFA <- lists:sort(erlang:system_info(snifs)), is_tried(MFA), is_internal(MFA)];
part("natives", Seed, Calls) ->
    [call({M, F, A}, Seed, Calls) || M <- native_modules(), {F, A} <- lists:sort(M:module_info(exports)),
                                     is_tried({M, F, A}), F =/= module_info];
part("bits", _, _) ->
    [print("bits", [Name], run(fun() -> F(value(V)) end))
     || {Name0, F} <- bits(), V <- sizes(), Name <- [atom_to_list(Name0) ++ " " ++ atom_to_list(V)]];
part("deep", _, _) ->
    [print("deep", [atom_to_list(Name), atom_to_list(V)], run(fun() -> F(value(V)) end))
     || {Name, F} <- deep(), V <- [deep_list, deep_tail, deep_tuple, deep_map, deep_binary_list, deep_fun]].

%% Modules of OTP with functions of their own in C.
native_modules() -> [prim_buffer, prim_file, zlib, re, unicode, math, lists, maps, binary, string, erl_scan].

%% What ends, stops or reconfigures the machine, waits for ever, or answers with what others do.
is_tried({M, F, A}) -> not lists:member({M, F}, left_out()) andalso not lists:member({M, F, A}, too_large()).

left_out() ->
    [{erlang, F} || F <- [halt, hibernate, system_flag, set_cookie, set_node, setnode, disconnect_node, dist_ctrl_get_data,
                          suspend_process, yield, open_port, delay_trap, spawn_opt, spawn_request, process_flag,
                          group_leader, display, display_string, raise, system_monitor, system_profile, trace,
                          trace_pattern, trace_info, trace_delivered, dmonitor_node, crasher, exit, send, '!', send_after,
                          start_timer, load_nif, purge_module, garbage_collect, module_loaded, memory, statistics,
                          processes, ports, loaded, pre_loaded, get_module_info, registered, nodes, erase, get, get_keys,
                          now, timestamp, universaltime, localtime, date, time, monotonic_time, system_time, make_ref,
                          unique_integer, time_offset, system_info, spawn, spawn_link, processes_iterator,
                          localtime_to_universaltime, universaltime_to_localtime, '$delay_trap', crc32_combine,
                          adler32_combine, process_info, port_info, read_timer, cancel_timer, alloc_info, alloc_sizes]] ++
    [{os, F} || F <- [putenv, unsetenv, set_signal, getpid, timestamp, system_time, perf_counter, env, getenv]] ++
    [{erl_ddll, F} || F <- [try_load, try_unload, info, loaded_drivers, format_error_int, monitor, demonitor]] ++
    [{code, F} || F <- [coverage_support, set_coverage_mode, get_coverage_mode, reset_coverage, get_coverage]] ++
    [{erts_debug, F} || F <- [set_internal_state, get_internal_state, breakpoint, instructions, lock_counters,
                              dump_monitors, dump_links, display, dist_ext_to_term, lcnt_control, lcnt_collect,
                              lcnt_clear, interpreter_size, unaligned_bitstring]] ++
    [{trace, F} || F <- [session_create, session_destroy, process, port, function, recv, send, system, session_info,
                         info, delivered]] ++
    [{ets, F} || F <- [all, internal_request_all, internal_delete_all, whereis, i, i2]] ++
    [{persistent_term, F} || F <- [get, info, erase_all]] ++
    [{erl_tracer, enabled}, {erl_tracer, trace}, {erts_internal, processes}, {zlib, load}, {zlib, on_load},
     {lists, seq}, {lists, duplicate}, {zlib, set_controlling_process}, {string, chars}, {string, copies},
     {string, pad}, {string, left}, {string, right}, {string, centre}, {unicode, characters_to_nfc_list},
     {prim_buffer, on_load}, {prim_file, file_desc_to_ref}, {prim_file, on_load},
     {prim_file, get_cwd}, {prim_file, read_file_info}, {prim_file, read_link_info}, {prim_file, read_handle_info},
     {erts_internal, map_hashmap_children}].

%% Calls that may ask for as much memory as a size says: the machine ends with a message, which `bits` leaves to others.
too_large() -> [{binary, copy, 2}, {erts_internal, atomics_new, 2}, {erts_internal, counters_new, 1}].

is_internal({M, _, _}) -> lists:member(M, [erts_internal, erts_debug, erts_code_purger, erts_literal_area_collector,
                                           prim_socket, prim_net, erl_prim_loader, erl_debugger]).

%% -- Calls ------------------------------------------------------------------------------------------------------

call({M, F, A} = MFA, Seed, Calls) ->
    Same = [lists:duplicate(A, V) || V <- names(), A > 0],
    Random = random_arguments(A, Calls, rand:seed_s(exsss, {Seed, erlang:phash2(MFA), 1})),
    Handled = [[draw_one(handles(M), N) | tl(Arguments)] || {N, Arguments} <- lists:enumerate(Random), A > 0],
    [try_call(M, F, Arguments) || Arguments <- lists:usort([[] || A =:= 0] ++ Same ++ Random ++ Handled)].

%% What the functions of a module are about: a call with none of it comes to nothing.
handles(ets) -> [table, ordered_table];
handles(atomics) -> [array];
handles(erts_internal) -> [counters, array, tuple255, map1000, large_binary];
handles(zlib) -> [deflater, inflater];
handles(prim_buffer) -> [buffer];
handles(prim_file) -> [file];
handles(re) -> [binary, string, large_binary];
handles(binary) -> [binary, large_binary, empty_binary];
handles(maps) -> [map0, map33, map1000, function];
handles(lists) -> [integers, pairs, function, one];
handles(_) -> names().

draw_one(List, N) -> lists:nth(1 + N rem length(List), List).

random_arguments(0, _, _) -> [];
random_arguments(_, 0, _) -> [];
random_arguments(A, N, State0) ->
    {Arguments, State} = lists:mapfoldl(fun(_, S) -> draw(names(), S) end, State0, lists:seq(1, A)),
    [Arguments | random_arguments(A, N - 1, State)].

draw(List, State0) ->
    {N, State} = rand:uniform_s(length(List), State0),
    {lists:nth(N, List), State}.

try_call(M, F, Names) ->
    Result = run(fun() -> apply(M, F, [value(Name) || Name <- Names]) end),
    print([atom_to_list(M), ":", atom_to_list(F)], [atom_to_list(Name) || Name <- Names], Result).

print(What, Names, {Class, Result}) ->
    Line = [What, "(", lists:join(", ", Names), ") -> ", atom_to_list(Class), ":", Result, "\n"],
    io:put_chars(Line).

%% What `F` gives, in a process of its own: `{Class, Text}`.
run(F) ->
    {Pid, Ref} = spawn_monitor(fun() -> exit({?MODULE, outcome(F)}) end),
    receive
        {'DOWN', Ref, _, _, {?MODULE, Outcome}} -> Outcome;
        {'DOWN', Ref, _, _, Reason} -> {exit, text(Reason)}
    after ?LIMIT_MS ->
        exit(Pid, kill),
        receive {'DOWN', Ref, _, _, _} -> {timeout, ""} end
    end.

outcome(F) ->
    try F() of
        Value -> {ok, text(Value)}
    catch
        Class:Reason -> {Class, text(Reason)}
    end.

%% A value as a line of bounded length: the shape of what is deep, and a hash of what is large.
text(Value) ->
    case erts_debug:flat_size(Value) of
        Words when Words < 500 -> io_lib:format("~0tP", [steady(Value), 40]);
        Words -> io_lib:format("~w words", [Words])
    end.

%% `Value` without what differs from run to run.
steady(Value) when is_pid(Value) -> '<pid>';
steady(Value) when is_port(Value) -> '<port>';
steady(Value) when is_reference(Value) -> '<ref>';
steady(Value) when is_function(Value) -> '<fun>';
steady([Head | Tail]) -> [steady(Head) | steady(Tail)];
steady(Value) when is_tuple(Value) -> list_to_tuple([steady(Element) || Element <- tuple_to_list(Value)]);
steady(Value) when is_map(Value) -> {map, map_size(Value), steady(lists:sort(maps:to_list(Value)))};
steady(Value) -> Value.

%% -- Values -----------------------------------------------------------------------------------------------------

sizes() ->
    [zero, one, minus_one, seven, bit27, bit56, bit57, bit58, max_small, min_small, bit59, bit60, bit61, bit62, bit63,
     bit64, bit70, minus_bit70, large_float, atom].

names() ->
    sizes() ++
        [max_u32, bit31, minus_bit63, max_u64, huge, minus_huge, float, minus_zero, tiny_float, nil, improper,
         string, binary, large_binary, odd_bits, one_bit, empty_binary, empty_atom, unicode_atom, true, false, infinity,
         tuple0, tuple2, tuple255, map0, map32, map33, map1000, function, external_function, reference, dead_pid, self,
         integers, pairs, atoms, iolist, invalid_utf8, surrogates, invalid_list, options, key_list, deep_list, external,
         pattern, match_spec, table, ordered_table, array, counters, deflater, inflater, buffer, file, regex, searcher,
         alias, monitor_ref].

value(zero) -> 0;
value(one) -> 1;
value(minus_one) -> -1;
value(seven) -> 7;
value(bit27) -> 1 bsl 27;
value(bit31) -> 1 bsl 31;
value(bit56) -> 1 bsl 56;
value(bit57) -> 1 bsl 57;
value(bit58) -> 1 bsl 58;
value(max_small) -> (1 bsl 59) - 1;
value(min_small) -> -(1 bsl 59);
value(bit59) -> 1 bsl 59;
value(bit60) -> 1 bsl 60;
value(bit61) -> 1 bsl 61;
value(bit62) -> 1 bsl 62;
value(bit63) -> 1 bsl 63;
value(minus_bit63) -> -(1 bsl 63);
value(bit64) -> 1 bsl 64;
value(max_u32) -> (1 bsl 32) - 1;
value(max_u64) -> (1 bsl 64) - 1;
value(bit70) -> 1 bsl 70;
value(minus_bit70) -> -(1 bsl 70);
value(huge) -> 1 bsl 4000;
value(minus_huge) -> -(1 bsl 4000);
value(float) -> 1.5;
value(minus_zero) -> -0.0;
value(large_float) -> 1.0e308;
value(tiny_float) -> 5.0e-324;
value(nil) -> [];
value(improper) -> [1, 2 | 3];
value(string) -> "abc";
value(binary) -> <<"abcabc">>;
value(large_binary) -> binary:copy(<<"0123456789">>, 1000);
value(odd_bits) -> <<5:13>>;
value(one_bit) -> <<1:1>>;
value(empty_binary) -> <<>>;
value(atom) -> extreme_atom;
value(empty_atom) -> '';
value(unicode_atom) -> 'ätöm日本𝄞';
value(true) -> true;
value(false) -> false;
value(infinity) -> infinity;
value(tuple0) -> {};
value(tuple2) -> {1, 2};
value(tuple255) -> list_to_tuple(lists:seq(1, 255));
value(map0) -> #{};
value(map32) -> maps:from_keys(lists:seq(1, 32), v);
value(map33) -> maps:from_keys(lists:seq(1, 33), v);
value(map1000) -> maps:from_keys(lists:seq(1, 1000), v);
value(function) -> fun() -> ok end;
value(external_function) -> fun extreme_atom:extreme_atom/255;
value(reference) -> make_ref();
value(dead_pid) -> {Pid, Ref} = spawn_monitor(fun() -> ok end), receive {'DOWN', Ref, _, _, _} -> Pid end;
value(self) -> self();
value(integers) -> lists:seq(1, 300);
value(pairs) -> [{K, K} || K <- lists:seq(1, 40)];
value(atoms) -> [a, b, 'ä'];
value(iolist) -> [<<"abc">>, [$d, <<"e">>] | <<"f">>];
value(invalid_utf8) -> <<16#ff, 16#fe, 16#c0>>;
value(surrogates) -> [16#d800, 16#10ffff];
value(invalid_list) -> [16#110000, -1];
value(options) -> [{capture, all, list}, global, {scope, {0, 1 bsl 59}}];
value(key_list) -> [{a, 1}, {b, 2} | {c, 3}];
value(external) -> term_to_binary({a, [1.5, <<"x">>, #{1 => 2}]});
value(pattern) -> {'$1', '_', '$100000000'};
value(table) -> T = ets:new(table, [public]), ets:insert(T, [{1, 2}, {a, 1 bsl 59}, {<<"b">>, [], 0}]), T;
value(ordered_table) ->
    T = ets:new(table, [ordered_set, public, {keypos, 1}]), ets:insert(T, [{1, 2}, {1.5, -1}, {a, 1 bsl 59}]), T;
value(array) -> atomics:new(3, []);
value(counters) -> counters:new(3, [write_concurrency]);
value(deflater) -> Z = zlib:open(), ok = zlib:deflateInit(Z), Z;
value(inflater) -> Z = zlib:open(), ok = zlib:inflateInit(Z), Z;
value(buffer) -> B = prim_buffer:new(), prim_buffer:write(B, [<<"0123456789">>]), B;
value(file) ->
    ok = prim_file:write_file("extremes.data", <<"0123456789">>),
    {ok, File} = prim_file:open("extremes.data", [read, write, binary]),
    File;
value(regex) -> {ok, Regex} = re:compile("b+|(c)"), Regex;
value(searcher) -> binary:compile_pattern([<<"b">>, <<"abc">>]);
value(alias) -> alias();
value(monitor_ref) -> erlang:monitor(process, self());
value(match_spec) -> [{{'$1', '_'}, [{'>', '$1', 1}], ['$_', '$$', {{'$1'}}]}];
value(deep_list) -> lists:foldl(fun(_, Acc) -> [Acc] end, [], lists:seq(1, 200_000));
value(deep_tail) -> lists:foldl(fun(_, Acc) -> [Acc | b] end, [], lists:seq(1, 200_000));
value(deep_tuple) -> lists:foldl(fun(_, Acc) -> {Acc} end, {}, lists:seq(1, 200_000));
value(deep_map) -> lists:foldl(fun(_, Acc) -> #{a => Acc} end, #{}, lists:seq(1, 100_000));
value(deep_binary_list) -> lists:foldl(fun(_, Acc) -> [Acc, <<"x">>] end, [], lists:seq(1, 200_000));
value(deep_fun) -> lists:foldl(fun(_, Acc) -> fun() -> Acc end end, [], lists:seq(1, 100_000)).

%% -- Bitstrings -------------------------------------------------------------------------------------------------

%% Construction that needs much memory ends the machine: what is built here is refused, or small.
bits() ->
    Bin = <<1, 2, 3, 4, 5, 6, 7, 8, 9, 10>>,
    [{integer_small, fun(N) -> <<0:(refused(N, 1))>> end},
     {integer_unit8, fun(N) -> <<0:(refused(N, 8))/unit:8>> end},
     {integer_unit256, fun(N) -> <<0:(refused(N, 256))/unit:256>> end},
     {little_unit7, fun(N) -> <<-1:(refused(N, 7))/little-signed-unit:7>> end},
     {float, fun(N) -> <<1.0:(refused(N, 1))/float>> end},
     {float_unit16, fun(N) -> <<1.0:(refused(N, 16))/float-unit:16>> end},
     {float_value, fun(N) -> <<N:64/float>> end},
     {float_value32, fun(N) -> <<N:32/float>> end},
     {float_value16, fun(N) -> <<N:16/float>> end},
     {part, fun(N) -> <<Bin:(refused(N, 8))/binary>> end},
     {part_bits, fun(N) -> <<Bin:(refused(N, 1))/bitstring>> end},
     {append, fun(N) -> <<Bin/binary, 0:(refused(N, 1))>> end},
     {append_unit, fun(N) -> <<Bin/binary, 0:(refused(N, 200))/unit:200>> end},
     {twice, fun(N) -> <<0:(refused(N, 3)), 1:(refused(N, 3)), 2:(refused(N, 3))>> end},
     {utf8, fun(N) -> <<N/utf8>> end},
     {utf16, fun(N) -> <<N/utf16-little>> end},
     {utf32, fun(N) -> <<N/utf32>> end},
     {value, fun(N) -> <<N:7, N:64, N:65/little, N:100, N:3>> end},
     {comprehension, fun(N) -> << <<X:(refused(N, 1))>> || <<X>> <= Bin >> end},
     {match_integer, fun(N) -> <<X:N, _/bits>> = Bin, X end},
     {match_unit, fun(N) -> <<X:N/unit:256, _/bits>> = Bin, X end},
     {match_little, fun(N) -> <<X:N/little-signed-unit:3, _/bits>> = Bin, X end},
     {match_float, fun(N) -> <<X:N/float, _/bits>> = Bin, X end},
     {match_binary, fun(N) -> <<X:N/binary, _/bits>> = Bin, X end},
     {match_bits, fun(N) -> <<X:N/binary-unit:255, _/bits>> = Bin, X end},
     {match_skip, fun(N) -> <<_:N/unit:100, R/bits>> = Bin, R end},
     {match_skip_two, fun(N) -> <<_:N, _:N, R/bits>> = Bin, R end},
     {match_tail, fun(N) -> <<_:5, X:N/binary-unit:7>> = Bin, X end},
     {binary_part_length, fun(N) -> {binary_part(Bin, 0, min(N, 5)), binary_part(Bin, 5, N)} end},
     {binary_part_start, fun(N) -> binary_part(Bin, N, -N) end},
     {shift_left, fun(N) -> 1 bsl shiftable(N) end},
     {shift_zero, fun(N) -> 0 bsl N end},
     {shift_right, fun(N) -> {1 bsr shiftable(N), -1 bsr abs(N), (1 bsl 70) bsr abs(N)} end},
     {multiply, fun(N) -> [N * X || X <- [N, -1, 1 bsl 59, -(1 bsl 59), 3.0]] end},
     {divide, fun(N) -> [{X div N, X rem N} || X <- [N, -1, 1 bsl 59, -(1 bsl 59), 1 bsl 64]] end},
     {add, fun(N) -> [{N + X, N - X, X - N, N band X, N bor X, N bxor X} || X <- [N, -1, 1 bsl 59, -(1 bsl 59)]] end},
     {element, fun(N) -> element(N, {1, 2, 3}) end},
     {after_time, fun(N) -> receive nothing -> ok after timeout(N) -> late end end}].

%% Sizes of which `Unit` bits each would fit an address space, but no memory, are left out.
refused(N, Unit) when is_integer(N), N > 1 bsl 20, N * Unit < 1 bsl 63, N < 1 bsl 59 -> throw(left_out);
refused(N, _) -> N.

%% Times that are not waited for.
timeout(N) when is_integer(N), N > 100, N < 1 bsl 32 -> throw(left_out);
timeout(N) -> N.

shiftable(N) when is_integer(N), N < 0 -> N;
shiftable(N) when is_integer(N), N > 1 bsl 20, N < 1 bsl 28 -> throw(left_out);
shiftable(N) -> N.

%% -- Deep terms -------------------------------------------------------------------------------------------------

deep() ->
    [{equal, fun(T) -> T =:= copy(T) end},
     {compare, fun(T) -> {T < copy(T), [T, 1] < [copy(T), 2], T == {T}} end},
     {copy, fun(T) -> self() ! T, receive X -> erts_debug:flat_size(X) end end},
     {send, fun(T) -> Me = self(), P = spawn(fun() -> receive X -> Me ! erts_debug:flat_size(X) end end), P ! T,
                      receive N -> N end end},
     {collect, fun(T) -> erlang:garbage_collect(), erts_debug:flat_size(T) end},
     {hash, fun(T) -> {erlang:phash2(T), erlang:phash(T, 1 bsl 32)} end},
     {size, fun(T) -> {erts_debug:flat_size(T), erlang:external_size(T)} end},
     {encode, fun(T) -> B = term_to_binary(T), {byte_size(B), erlang:md5(B)} end},
     {encode_deterministic, fun(T) -> byte_size(term_to_binary(T, [deterministic])) end},
     {encode_compressed, fun(T) -> is_binary(term_to_binary(T, [compressed])) end},
     {to_iovec, fun(T) -> iolist_size(term_to_iovec(T)) end},
     {decode, fun(T) -> binary_to_term(term_to_binary(T)) =:= T end},
     {decode_safe, fun(T) -> binary_to_term(term_to_binary(T), [safe, used]) =:= {T, byte_size(term_to_binary(T))} end},
     {print, fun(T) -> length(io_lib:format("~tP", [T, 20])) end},
     {iolist_size, fun(T) -> iolist_size(T) end},
     {iolist_to_binary, fun(T) -> byte_size(iolist_to_binary(T)) end},
     {iolist_to_iovec, fun(T) -> iolist_size(erlang:iolist_to_iovec(T)) end},
     {list_to_bitstring, fun(T) -> bit_size(list_to_bitstring(T)) end},
     {md5, fun(T) -> erlang:md5(T) end},
     {crc32, fun(T) -> erlang:crc32(T) end},
     {adler32, fun(T) -> erlang:adler32(T) end},
     {characters, fun(T) -> byte_size(unicode:characters_to_binary(T)) end},
     {characters_list, fun(T) -> length(unicode:characters_to_list(T)) end},
     {re_run, fun(T) -> re:run(T, "xx", [{capture, none}]) end},
     {re_compile, fun(T) -> element(1, re:compile(T)) end},
     {zlib, fun(T) -> is_binary(zlib:compress(T)) end},
     {deflate, fun(T) -> Z = zlib:open(), ok = zlib:deflateInit(Z), is_list(zlib:deflate(Z, T, finish)) end},
     {ets_insert, fun(T) -> E = ets:new(e, []), ets:insert(E, {T, T}), [{X, _}] = ets:lookup(E, T), X =:= T end},
     {ets_ordered, fun(T) -> E = ets:new(e, [ordered_set]), ets:insert(E, {T, 1}), ets:insert(E, {[T], 2}),
                             {ets:lookup_element(E, T, 2), ets:info(E, size)} end},
     {ets_compressed, fun(T) -> E = ets:new(e, [compressed]), ets:insert(E, {1, T}), ets:lookup_element(E, 1, 2) =:= T end},
     {ets_pattern, fun(T) -> E = ets:new(e, []), ets:insert(E, {1, T}),
                             {length(ets:match_object(E, {'_', T})), length(ets:match(E, {'$1', T}))} end},
     {ets_match_delete, fun(T) -> E = ets:new(e, []), ets:insert(E, {1, T}), ets:match_delete(E, {'_', T}), ets:info(E, size) end},
     {ets_select, fun(T) -> E = ets:new(e, []), ets:insert(E, {1, T}),
                            ets:select(E, [{{'$1', '$2'}, [{'=:=', '$2', {const, T}}], ['$1']}]) end},
     {match_spec_body, fun(T) -> element(1, erlang:match_spec_test(a, [{'_', [], [T]}], table)) end},
     {match_spec_guard, fun(T) -> element(1, erlang:match_spec_test(a, [{'_', [T], ['$_']}], table)) end},
     {match_spec_head, fun(T) -> element(1, erlang:match_spec_test(T, [{T, [], [x]}], table)) end},
     {match_spec_compile, fun(T) -> is_reference(ets:match_spec_compile([{{T}, [T], [T]}])) end},
     {persistent_term, fun(T) -> persistent_term:put({?MODULE, deep}, T), X = persistent_term:get({?MODULE, deep}) =:= T,
                                 persistent_term:erase({?MODULE, deep}), X end},
     {dictionary, fun(T) -> put(T, T), get(T) =:= T end},
     {map_key, fun(T) -> M = maps:from_list([{{N, T}, N} || N <- lists:seq(1, 40)]), maps:get({7, T}, M) end},
     {map_merge, fun(T) -> M = maps:from_keys([{N, T} || N <- lists:seq(1, 40)], T), map_size(maps:merge(M, #{T => 1})) end},
     {exit, fun(T) -> {_, Ref} = spawn_monitor(fun() -> exit(T) end), receive {'DOWN', Ref, _, _, X} -> X =:= T end end},
     {raise, fun(T) -> try error(T) catch error:X -> X =:= T end end},
     {spawn_args, fun(T) -> {_, Ref} = spawn_monitor(erlang, exit, [T]), receive {'DOWN', Ref, _, _, X} -> X =:= T end end},
     {lists, fun(T) -> {lists:member(T, [1, copy(T)]), lists:keyfind(T, 1, [{copy(T)}]) =/= false, lists:keymember(T, 1, [{1}])} end},
     {subtract, fun(T) -> [T, 1] -- [copy(T)] end},
     {sort, fun(T) -> length(lists:usort([T, copy(T), [T]])) end}].

copy(T) -> binary_to_term(term_to_binary(T)).
