%% Calls of the libraries' functions, with arguments made from their specs.
-module(differ_calls).

-export([make/0]).

%% Modules whose functions give the same wherever and whenever they are called.
-define(MODULES,
        [array, base64, binary, calendar, dict, erl_anno, erl_internal, erl_scan, erlang, filename, gb_sets, gb_trees,
         io_lib, json, lists, maps, math, orddict, ordsets, proplists, queue, rand, re, sets, sofs, string, unicode,
         uri_string, atomics, counters, erl_parse, graph, erl_eval, argparse, zlib, ms_transform]).

make() ->
    Module = case differ_random:chance(30) of
                 true -> erlang;
                 false -> differ_random:pick(?MODULES)
             end,
    Functions = [Function || Function <- differ_types:functions(Module), is_fit(Module, Function)],
    case Functions of
        [] -> make();
        _ -> call(Module, differ_random:pick(Functions))
    end.

call(Module, {Name, Arity} = Function) ->
    Arguments = differ_types:arguments(Module, Function),
    About = io_lib:format("~w:~tw/~w", [Module, Name, Arity]),
    Call = io_lib:format("~w:~tw", [Module, Name]),
    differ_form:evaluated(lists:flatten(About), [Call, "(", differ_random:commas(Arguments), ")"]).

is_fit(Module, {Name, Arity}) ->
    not lists:member({Module, Name}, unfit()) andalso not lists:member({Module, Name, Arity}, unfit()).

%% Functions that end the machine, change it for the cases behind, or tell of its time, memory and surroundings, and
%% those whose result may be as big as an argument says.
unfit() ->
    [{erlang, Name} || Name <- unfit_of_erlang()]
        ++ [{calendar, Name} || Name <- [local_time, universal_time, now_to_local_time, local_time_to_universal_time,
                                         local_time_to_universal_time_dst, universal_time_to_local_time,
                                         system_time_to_local_time, system_time_to_rfc3339, rfc3339_to_system_time]]
        ++ [{lists, seq}, {lists, duplicate}, {binary, copy}, {string, copies}, {string, pad}, {string, chars},
            {string, left}, {string, right}, {string, centre}, {array, new}, {array, from}, {array, resize}, {array, set},
            {rand, bytes}, {rand, bytes_s}, {rand, seed, 1}, {rand, uniform}, {rand, uniform_real}, {rand, normal},
            {rand, shuffle}, {rand, jump, 0}, {rand, seed_s, 1}, {rand, splitmix64_next}, {rand, exsp_jump},
            {filename, absname}, {filename, basedir}, {filename, find_src}, {filename, find_file},
            {counters, new}, {atomics, new}, {sofs, to_external}, {lists, zipwith3}, {erl_eval, new_bindings}, {argparse, run},
            {erl_anno, set_file}, {json, decode_continue}, {sets, module_info}, {io_lib, collect_chars},
            {atomics, info}, {counters, info}, {zlib, open}, {rand, mwc59_seed, 0}, {re, version}].

unfit_of_erlang() ->
    [halt, now, date, time, localtime, universaltime, localtime_to_universaltime, universaltime_to_localtime,
     timestamp, system_time, monotonic_time, time_offset, unique_integer, memory, statistics, system_info, system_flag,
     system_monitor, system_profile, trace, trace_pattern, trace_info, trace_delivered, seq_trace, seq_trace_info,
     seq_trace_print, suspend_process, resume_process, delete_module, purge_module, load_module, load_nif, load_driver,
     pre_loaded, loaded, processes, processes_iterator, processes_next, ports, registered, process_info, port_info,
     process_display, display, display_string, display_nl, open_port, hibernate, set_cookie, get_cookie,
     disconnect_node, nodes, monitor_node, spawn_request, spawn_request_abandon, halt_int, dist_ctrl_get_data,
     dist_ctrl_get_data_notification, dist_ctrl_get_opt, dist_ctrl_input_handler, dist_ctrl_put_data,
     dist_ctrl_set_opt, dist_get_stat, setnode, garbage_collect, bump_reductions, yield, get_stacktrace, system_monitor,
     process_flag, group_leader, exit, exit_signal, send_after, start_timer, read_timer, cancel_timer, make_tuple,
     raise, nif_error, get_module_info, module_info, check_process_code, fun_info, fun_info_mfa, external_size,
     list_to_pid, list_to_ref, list_to_port, self, make_ref, get, put, erase, get_keys, ref_to_list, pid_to_list,
     port_to_list, fun_to_list, unalias, alias, phash, node, send, send_nosuspend, link, unlink, monitor, demonitor,
     register, unregister, whereis, spawn, spawn_link, spawn_opt, spawn_monitor, dsend, dsend_continue_trap,
     'bsl', finish_after_on_load, call_on_load_function, prepare_loading, finish_loading, has_prepared_code_on_load,
     crasher, dt_append_vm_tag_data, dt_get_tag, dt_get_tag_data, dt_prepend_vm_tag_data, dt_put_tag,
     dt_restore_tag, dt_spread_tag, gather_gc_info_result, delay_trap, await_result, crc32_combine, adler32_combine,
     port_call, port_command, port_connect, port_control, port_close, port_set_data, port_get_data,
     set_cpu_topology, format_cpu_topology, check_old_code, function_exported, module_loaded, apply, is_process_alive].
