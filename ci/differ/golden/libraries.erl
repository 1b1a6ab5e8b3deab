-module(libraries).
-export([purge_of_receiver/0, failed_on_load/0, trace_before_on_load/0, terminals/0, terminal_names/0, large_tuples/0, time_units/0, time_unit_errors/0, atomic_load_twice/0, several_on_load/0]).

id(X) -> X.

class(F) -> try F() catch C:R -> {C, R} end.

%% Instructions on a tuple of 70,001 elements, which a record of as many fields has.
large_tuples() ->
    N = 70001,
    Function = fun(Name, Arity, Label, Body) ->
        {function, Name, Arity, Label + 1,
         [{label, Label}, {func_info, {atom, large}, {atom, Name}, Arity}, {label, Label + 1} | Body]}
    end,
    Elements = [{integer, I} || I <- lists:seq(2, N)],
    Forms = {large, [{make, 1}, {tagged, 1}, {arity, 1}, {known, 1}, {last, 1}, {change, 2}], [], #{},
     [Function(make, 1, 1, [{test_heap, N + 1, 1}, {put_tuple2, {x, 0}, {list, [{x, 0} | Elements]}}, return]),
      Function(tagged, 1, 3, [{test, is_tagged_tuple, {f, 20}, [{x, 0}, N, {atom, r}]}, {move, {atom, yes}, {x, 0}}, return,
                              {label, 20}, {move, {atom, no}, {x, 0}}, return]),
      Function(arity, 1, 5, [{test, is_tuple, {f, 21}, [{x, 0}]}, {test, test_arity, {f, 21}, [{x, 0}, N]},
                             {move, {atom, yes}, {x, 0}}, return,
                             {label, 21}, {move, {atom, no}, {x, 0}}, return]),
      Function(known, 1, 7, [{test, is_tuple, {f, 22}, [{x, 0}]}, {move, {x, 0}, {x, 1}},
                             {test, test_arity, {f, 22}, [{x, 1}, N]}, {move, {atom, yes}, {x, 0}}, return,
                             {label, 22}, {move, {atom, no}, {x, 0}}, return]),
      Function(last, 1, 9, [{test, is_tuple, {f, 23}, [{x, 0}]}, {test, test_arity, {f, 23}, [{x, 0}, N]},
                            {get_tuple_element, {x, 0}, 65535, {x, 1}}, {get_tuple_element, {x, 0}, 65536, {x, 2}},
                            {get_tuple_element, {x, 0}, N - 1, {x, 3}}, {test_heap, 4, 4},
                            {put_tuple2, {x, 0}, {list, [{x, 1}, {x, 2}, {x, 3}]}}, {label, 23}, return]),
      Function(change, 2, 11, [{test, is_tuple, {f, 24}, [{x, 0}]}, {test, test_arity, {f, 24}, [{x, 0}, N]},
                               {test_heap, N + 1, 2},
                               {update_record, {atom, copy}, N, {x, 0}, {x, 0}, {list, [1, {x, 1}, 65536, {x, 1}, N, {x, 1}]}},
                               {label, 24}, return])],
     30},
    {ok, large, Code} = compile:forms(Forms, [from_asm, no_postopt, return_errors]),
    {module, large} = code:load_binary(large, "large", Code),
    T = large:make(id(r)),
    U = large:change(T, id(new)),
    Result = [tuple_size(T), [{large:F(X), F} || F <- [tagged, arity, known], X <- [T, U, {r}, r]],
              large:last(T), large:last(U), element(1, U), element(2, U), erlang:phash2(T), erlang:phash2(U)],
    code:delete(large),
    code:purge(large),
    Result.

units() ->
    [1, 7, 1000, 1000000, 1000000000, 1 bsl 40, 1 bsl 59, 1 bsl 63, 1 bsl 64, 1 bsl 200, second, millisecond, microsecond,
     nanosecond, native, perf_counter, seconds, milli_seconds, micro_seconds, nano_seconds].

clocks() ->
    [fun erlang:monotonic_time/1, fun erlang:system_time/1, fun erlang:time_offset/1, fun os:system_time/1].

%% Every unit is taken by every clock, and is that of convert_time_unit/3.
time_units() ->
    [case class(fun() -> Clock(U) end) of
         T when is_integer(T) ->
             Now = erlang:convert_time_unit(T, U, second),
             abs(Now - Clock(second)) =< 1;
         Other -> {U, Other}
     end || Clock <- clocks(), U <- units()].

time_unit_errors() ->
    [class(fun() -> Clock(U) end) || Clock <- clocks(), U <- [0, -1, -(1 bsl 70), 1.0, foo, {}, sec]] ++
    [class(fun() -> erlang:convert_time_unit(T, U, V) end) || T <- [-5, 5, 1 bsl 70, x], {U, V} <- [{second, 3}, {3, 1 bsl 70}, {0, 1}, {1, 0}, {x, 1}, {1, -1}]].

module(Name, Value, OnLoad) ->
    A = erl_anno:new(1),
    Forms = [{attribute, A, module, Name}, {attribute, A, export, [{v, 0}]}] ++
        [{attribute, A, on_load, {start, 0}} || OnLoad =/= none] ++
        [{function, A, v, 0, [{clause, A, [], [], [{integer, A, Value}]}]}] ++
        [{function, A, start, 0, [{clause, A, [], [], [{atom, A, OnLoad}]}]} || OnLoad =/= none],
    {ok, Name, Code} = compile:forms(Forms, []),
    {Name, atom_to_list(Name) ++ ".beam", Code}.

gone(Names) -> [begin code:purge(N), code:delete(N), code:purge(N) end || N <- Names], ok.

atomic_load_twice() ->
    Names = [first_of_two, second_of_two],
    Load = fun(V) -> code:atomic_load([module(N, V, none) || N <- Names]) end,
    Steps = [Load(1), first_of_two:v(), Load(2), second_of_two:v(), Load(3), first_of_two:v(),
             [code:purge(N) || N <- Names], Load(4), second_of_two:v(), Load(5)],
    gone(Names),
    Steps.

several_on_load() ->
    Names = [quiet_one, on_load_one, on_load_two],
    Modules = [module(N, 1, O) || {N, O} <- lists:zip(Names, [none, ok, failure])],
    Prepared = [erlang:prepare_loading(N, Code) || {N, _, Code} <- Modules],
    Together = class(fun() -> erlang:finish_loading(Prepared) end),
    Twice = class(fun() -> erlang:finish_loading([hd(Prepared), hd(Prepared)]) end),
    %% Modules are prepared side by side, so that their errors come in any order.
    {error, Errors} = code:atomic_load(Modules),
    Result = {{error, lists:sort(Errors)}, Together, Twice,
              [code:load_binary(N, F, C) || {N, F, C} <- Modules], [erlang:module_loaded(N) || N <- Names],
              [erlang:check_old_code(N) || N <- Names]},
    gone(Names),
    Result.

%% A process that has just come to a receive of old code keeps it, whoever asks and whenever.
purge_of_receiver() ->
    Old = forms(waits, ["-export([f/1]).", "f(Parent) -> Parent ! started, receive stop -> ok end."]),
    New = forms(waits, ["-export([v/0]).", "v() -> 1."]),
    lists:usort([receiver(waits, Old, New) || _ <- lists:seq(1, 20)]).

failed_on_load() ->
    Old = forms(waits, ["-export([f/1]).", "f(Parent) -> Parent ! started, receive stop -> ok end."]),
    New = forms(waits, ["-on_load(f/0).", "f() -> failure."]),
    lists:usort([receiver(waits, Old, New) || _ <- lists:seq(1, 5)]).

receiver(Name, Old, New) ->
    Self = self(),
    {module, Name} = code:load_binary(Name, "", Old),
    {Pid, Ref} = spawn_monitor(fun() -> Name:f(Self) end),
    receive started -> ok end,
    Before = [code:delete(Name), code:load_binary(Name, "", New), code:soft_purge(Name), erlang:check_old_code(Name), is_process_alive(Pid)],
    Pid ! stop,
    receive {'DOWN', Ref, process, Pid, Reason} -> ok end,
    {Before, Reason, code:soft_purge(Name), code:delete(Name), code:soft_purge(Name), code:delete(Name), code:delete(never_heard_of)}.

forms(Name, Texts) ->
    Form = fun(Text) -> {ok, Tokens, _} = erl_scan:string(Text), {ok, F} = erl_parse:parse_form(Tokens), F end,
    {ok, Name, Code} = compile:forms([Form(T) || T <- ["-module(" ++ atom_to_list(Name) ++ ")." | Texts]], []),
    Code.

%% Code that is traced is so no more once another version has begun to run its on_load function.
trace_before_on_load() ->
    {module, traced} = code:load_binary(traced, "", forms(traced, ["-export([a/0]).", "a() -> 1."])),
    Tracer = self(),
    spawn_link(fun() ->
        erlang:trace(self(), true, [call, {tracer, Tracer}]),
        N = erlang:trace_pattern({traced, '_', '_'}, true, [local]),
        1 = traced:a(),
        Load = code:load_binary(traced, "", forms(traced, ["-on_load(f/0).", "-export([a/0]).", "f() -> failure.", "a() -> 2."])),
        1 = traced:a(),
        Info = erlang:trace_info({traced, a, 0}, traced),
        erlang:trace(self(), false, [call]),
        Tracer ! {done, N, Load, Info}
    end),
    Result = receive {done, N, L, I} -> {N, L, I} end,
    timer:sleep(20),
    Calls = calls(),
    gone([traced]),
    {Result, Calls}.

calls() -> receive {trace, _, call, MFA} -> [MFA | calls()] after 0 -> [] end.

terminal_names() ->
    #{bool := B, num := N, str := S} = T = prim_tty:tinfo(),
    {length(B), length(N), length(S), erlang:phash2(T), hd(B), lists:last(N), hd(S)}.

%% Parameters put into strings of terminals, and pauses left out.
terminals() ->
    [{Text, [class(fun() -> prim_tty:tputs(Text, A) end) || A <- [[], [0], [5], [200, 3], [-1, -100, 65]]]}
     || Text <- ["%p1%d", "%p1%:-5d|", "%p1%05d", "%p1%x%p1%X%p1%o", "%p1%#x", "%p1%.4d", "%p1%8.4d|", "%i%p1%d;%p2%d", "%d;%d", "%i%d;%dR",
                 "%p1%c", "%?%p1%t%p1%de%ex%;", "%{12}%p1%*%d", "%p1%{3}%/%d", "%p1%{3}%m%d", "%p1%{0}%/%d", "%p1%Pa%ga%ga%d%d", "%%",
                 "a$<5>b", "a$<5*/>b", "a$b", "$$<1>", "a$<", "a$<x>b", "%p1%{3}%&%d", "%p1%{3}%|%d", "%p1%{3}%^%d", "%p1%~%d", "%p1%!%d",
                 "%p1%{5}%=%d", "%p1%{5}%<%d", "%p1%{5}%>%d", "%p1%p2%A%d", "%p1%p2%O%d", "%p1%'a'%+%c",
                 "%?%p1%{1}%=%ta%e%p1%{5}%=%tb%ec%;d", "%p9%d"]].
