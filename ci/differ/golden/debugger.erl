-module(debugger).
-export([arguments/0, lines/0, debug_info/0, stops/0, frames/0, slots/0, registers/0, no_debugger/0, backtraces/0,
         suspended_between_messages/0, system_logger/0, bad_chunks/0]).

source() ->
    ["-module(debugged).",
     "-export([f/2, g/2, deep/2, wait/1]).",
     "f(A, B) ->",
     "    X = length(A),",
     "    Y = try",
     "            g(X, B)",
     "        catch",
     "            _:_ -> caught",
     "        end,",
     "    Z = [h(E, Y) || E <- A],",
     "    receive",
     "        never -> ok",
     "    after 0 ->",
     "        case Y of",
     "            {_, Q} when is_tuple(Q) -> {Q, Z};",
     "            _ -> k(#{z => Z, y => Y})",
     "        end",
     "    end.",
     "g(X, B) ->",
     "    {X,",
     "     B}.",
     "h(E, _Y) -> F = fun(Q) -> Q + E end,",
     "    F(1).",
     "k(M) -> wait(M),",
     "    debugged:g(fun lists:map/2, M).",
     "deep(0, A) -> wait({A});",
     "deep(N, A) ->",
     "    try [deep(N - 1, {A, N})]",
     "    catch _:_ -> [deep(N, 1)] end.",
     "wait(A) ->",
     "    receive go -> ok end,",
     "    A."].

%% Runs Fun with debugging allowed and lines instrumented, the source loaded, as the debugger.
debugging(Fun) ->
    #{level := Level} = logger:get_primary_config(),
    ok = logger:set_primary_config(level, none),
    erts_debug:set_internal_state(available_internal_state, true),
    ok = erts_debug:set_internal_state(debugger_support, true),
    erts_debug:set_internal_state(available_internal_state, false),
    ok = erl_debugger:toggle_instrumentations(#{line_breakpoint => true}),
    load([beam_debug_info]),
    {ok, Session} = erl_debugger:register(self()),
    try Fun(Session)
    after
        ok = erl_debugger:unregister(self(), Session),
        ok = erl_debugger:toggle_instrumentations(#{line_breakpoint => false}),
        code:delete(debugged),
        code:purge(debugged),
        receive after 20 -> ok end,
        logger:set_primary_config(level, Level)
    end.

load(Options) ->
    {Forms, _} = lists:mapfoldl(fun(Line, N) -> {Line ++ "\n", N + 1} end, 1, source()),
    {ok, Tokens, _} = erl_scan:string(lists:append(Forms)),
    {ok, debugged, Code} = compile:forms(parse(Tokens, []), [binary | Options]),
    code:purge(debugged),
    {module, debugged} = code:load_binary(debugged, "debugged.erl", Code),
    code:purge(debugged).

parse([], Forms) ->
    lists:reverse(Forms);
parse(Tokens, Forms) ->
    {Form, [Dot | Rest]} = lists:splitwith(fun(Token) -> element(1, Token) =/= dot end, Tokens),
    {ok, Parsed} = erl_parse:parse_form(Form ++ [Dot]),
    parse(Rest, [Parsed | Forms]).

class(Function, Args) ->
    try apply(erl_debugger, Function, Args) catch C:R -> {C, R} end.

%% Arguments of each function that are wrong, and how.
arguments() ->
    debugging(fun(_) ->
        {Gone, Monitor} = spawn_monitor(fun() -> ok end),
        receive {'DOWN', Monitor, _, _, _} -> ok end,
        Me = self(),
        [[{F, tl_of(A), class(F, A)} || {F, A} <-
            [{toggle_instrumentations, [T]} || T <- [[], #{}, #{line_breakpoint => faux}, #{foo => true},
                                                     #{line_breakpoint => true, foo => true}]] ++
            [{register, [foo]}, {register, [Me]}, {unregister, [foo, 1]}, {unregister, [Me, x]}, {unregister, [Me, -1]},
             {unregister, [Gone, 1]}] ++
            [{breakpoint, [M, L, B]} || {M, L, B} <-
                [{"debugged", 4, true}, {debugged, 0, true}, {debugged, -4, true}, {debugged, a, true}, {debugged, 4, on},
                 {debugged, 1 bsl 31, true}, {debugged, (1 bsl 32) + 3, true}, {debugged, 1 bsl 70, true},
                 {nosuch, 4, true}, {lists, 1, true}, {erlang, 1, true}, {debugged, 1, true}, {debugged, 3, true},
                 {debugged, 100, false}]] ++
            [{breakpoints, ["x"]}, {breakpoints, [nosuch]}, {breakpoints, [nosuch, f, 1]}, {breakpoints, [debugged, f, 1]},
             {breakpoints, [debugged, f, -1]}, {breakpoints, [debugged, f, 1 bsl 33]}, {breakpoints, [debugged, 1, 2]},
             {breakpoints, [debugged, f, a]}, {breakpoints, [erlang, self, 0]}] ++
            [{F, [P | A]} || P <- [Me, Gone, foo],
                             {F, A} <- [{stack_frames, [1]}, {stack_frames, [-1]}, {stack_frames, [1 bsl 31]},
                                        {stack_frames, [1 bsl 32]}, {stack_frames, [1 bsl 70]}, {stack_frames, [x]},
                                        {peek_stack_frame_slot, [0, 0, 0]}, {peek_stack_frame_slot, [-1, 0, 0]},
                                        {peek_stack_frame_slot, [0, -1, 0]}, {peek_stack_frame_slot, [0, 0, x]},
                                        {xregs_count, []}, {peek_xreg, [0, 0]}, {peek_xreg, [-1, 0]},
                                        {peek_xreg, [0, -1]}, {peek_xreg, [a, 0]}]]],
         [class(F, A) || {F, A} <- [{supported, []}, {instrumentations, []}]],
         erl_debugger:whereis() =:= Me]
    end).

tl_of([Pid | Args]) when is_pid(Pid) -> Args;
tl_of(Args) -> Args.

%% Which lines can have breakpoints, and have them.
lines() ->
    debugging(fun(_) ->
        Before = erl_debugger:breakpoints(debugged),
        Set = [{L, erl_debugger:breakpoint(debugged, L, true)} || L <- lists:seq(1, length(source()) + 1)],
        All = erl_debugger:breakpoints(debugged),
        ok = erl_debugger:breakpoint(debugged, 6, false),
        One = erl_debugger:breakpoints(debugged, f, 2),
        load([]),
        Plain = {erl_debugger:breakpoints(debugged), erl_debugger:breakpoint(debugged, 6, true)},
        erl_debugger:toggle_instrumentations(#{line_breakpoint => false}),
        load([beam_debug_info]),
        Off = {erl_debugger:instrumentations(), erl_debugger:breakpoints(debugged, f, 2),
               erl_debugger:breakpoint(debugged, 6, true)},
        code:delete(debugged),
        {Before, Set, All, One, Plain, Off, erl_debugger:breakpoints(debugged),
         erl_debugger:breakpoint(debugged, 6, true)}
    end).

debug_info() ->
    debugging(fun(_) ->
        Info = [{Line, lists:sort(maps:to_list(Known))} || {Line, Known} <- code:get_debug_info(debugged)],
        erl_debugger:toggle_instrumentations(#{line_breakpoint => false}),
        load([beam_debug_info]),
        Off = code:get_debug_info(debugged),
        load([]),
        None = code:get_debug_info(debugged),
        Wrong = [try code:get_debug_info(M) catch C:R -> {C, R} end || M <- [1, nosuch, lists]],
        {Info, Off, None, Wrong}
    end).

%% A process that stops at every line: where, and its stack there.
stops() ->
    debugging(fun(Session) ->
        [erl_debugger:breakpoint(debugged, L, true) || L <- lists:seq(1, length(source()))],
        [begin
             {Pid, Monitor} = spawn_monitor(fun() -> exit({result, debugged:f(A, B)}) end),
             events(Session, Pid, Monitor)
         end || {A, B} <- [{[1, 2], {y}}, {[], y}]]
    end).

events(Session, Pid, Monitor) ->
    receive
        {debugger_event, Session, {breakpoint, Pid, MFA, Line, Resume}} ->
            until(Pid, waiting),
            erlang:suspend_process(Pid),
            Frames = stripped(erl_debugger:stack_frames(Pid, 100)),
            Registers = erl_debugger:xregs_count(Pid),
            {current_stacktrace, Trace} = process_info(Pid, current_stacktrace),
            erlang:resume_process(Pid),
            Line =:= 24 andalso (Pid ! go),
            ok = Resume(),
            [{MFA, Line, Frames, Registers, [{M, F, A} || {M, F, A, _} <- Trace]} | events(Session, Pid, Monitor)];
        {'DOWN', Monitor, _, _, {result, Result}} ->
            [Result]
    after 5000 ->
        [nothing]
    end.

%% Frames by number and function, with the values of slots that are the same on every run.
stripped(running) -> running;
stripped(Frames) ->
    [{N, case Function of #{function := {debugger, _, _}} -> own; _ -> Function end,
      [case Slot of
           {value, V} when is_pid(V); is_reference(V); is_function(V) -> opaque;
           {'catch', #{function := {debugger, _, _}}} -> own;
           _ -> Slot
       end || Slot <- Slots], is_integer(Code) andalso Code > 0}
     || {N, Function, #{slots := Slots, code := Code}} <- Frames].

%% Calls Fun in another process, which it suspends when it stands as it shall.
suspended(Fun, Status, Look) ->
    Me = self(),
    Pid = spawn(fun() -> Me ! {begun, self()}, Fun() end),
    receive {begun, Pid} -> until(Pid, Status) end,
    Running = erl_debugger:stack_frames(Pid, 0),
    erlang:suspend_process(Pid),
    Result = Look(Pid),
    exit(Pid, kill),
    {Running, Result}.

until(_, busy) ->
    ok;
until(Pid, Status) ->
    case process_info(Pid, status) of
        {status, Status} -> ok;
        _ -> receive after 1 -> until(Pid, Status) end
    end.

frames() ->
    debugging(fun(_) ->
        Look = fun(Pid) -> stripped(erl_debugger:stack_frames(Pid, 100)) end,
        [suspended(Fun, Status, Look) || {Fun, Status} <-
            [{fun() -> debugged:wait([a]) end, waiting},
             {fun() -> debugged:deep(3, #{a => 1}) end, waiting},
             {fun() -> debugged:f([1], y) end, waiting},
             {fun() -> erlang:hibernate(debugged, wait, [a]) end, waiting},
             {fun() -> receive nothing -> ok end end, waiting},
             {fun() -> spin({1, 2}) end, busy}]]
    end).

spin(X) -> spin(X).

slots() ->
    debugging(fun(_) ->
        Term = [1, 2, {"text", <<"binary">>}, 1 bsl 70, #{a => 1.5}],
        Look = fun(Pid) ->
            Frames = erl_debugger:stack_frames(Pid, 0),
            Numbers = [{N, Y, Most} || {N, _, #{slots := Slots}} <- [{99, x, #{slots => []}}, {0, x, #{slots => []}} | Frames],
                                       Y <- lists:seq(0, length(Slots)), Most <- [0, 1, 20, 1000]],
            {stripped(Frames), [{Number, erl_debugger:peek_stack_frame_slot(Pid, N, Y, Most)}
                                || {N, Y, Most} = Number <- Numbers, N =/= 1]}
        end,
        suspended(fun() -> debugged:deep(1, Term) end, waiting, Look)
    end).

registers() ->
    debugging(fun(_) ->
        Look = fun(Pid) ->
            Count = erl_debugger:xregs_count(Pid),
            {Count, [erl_debugger:peek_xreg(Pid, N, Most) || N <- lists:seq(0, Count), Most <- [0, 1, 100]]}
        end,
        [suspended(fun() -> erlang:hibernate(debugged, wait, [{"text", 7}]) end, waiting, Look),
         suspended(fun() -> debugged:wait(x) end, waiting, Look),
         suspended(fun() -> spin({1, 2}) end, busy, Look)]
    end).

%% Without a debugger, and for the debugger itself, no breakpoint stops anybody.
no_debugger() ->
    debugging(fun(Session) ->
        [erl_debugger:breakpoint(debugged, L, true) || L <- lists:seq(1, length(source()))],
        Mine = debugged:f([1, 2], {y}),
        Told = erts_internal:breakpoint(a, b, 1, 2),
        ok = erl_debugger:unregister(self(), Session),
        {Pid, Monitor} = spawn_monitor(fun() -> exit(debugged:f([3], {z})) end),
        Others = receive {'DOWN', Monitor, _, Pid, R} -> R after 5000 -> nothing end,
        Wrong = [try erts_internal:notify_breakpoint_hit(A, B, C) catch Class:Reason -> {Class, Reason} end
                 || {A, B, C} <- [{{a, b, 1}, 1, fun() -> ok end}, {{a, b}, 1, fun() -> ok end}, {{a, b, c}, 1, fun() -> ok end},
                                  {{a, b, 1}, x, fun() -> ok end}, {{a, b, 1}, 1, fun(_) -> ok end}, {{a, b, 1}, 1, x}]],
        {Mine, Told, Others, Wrong}
    end).

%% What the stack of a process looks like as text.
backtraces() ->
    Text = fun(Pid) ->
        {backtrace, Text} = process_info(Pid, backtrace),
        Short = re:replace(Text, "0x[0-9a-f]+", "0x", [global, {return, list}]),
        re:replace(Short, " \\+ \\d+\\)", ")", [global, {return, list}])
    end,
    debugging(fun(_) ->
        [element(2, suspended(Fun, Status, Text)) || {Fun, Status} <-
            [{fun() -> debugged:deep(1, a) end, waiting},
             {fun() -> erlang:hibernate(debugged, wait, [a]) end, waiting},
             {fun() -> spin({1, 2}) end, busy}]]
    end).

%% A process that is suspended takes no other message from its queue.
suspended_between_messages() ->
    Me = self(),
    Pid = spawn(fun() -> echo(Me) end),
    [begin
         [Pid ! N || N <- lists:seq(1, 100)],
         true = erlang:suspend_process(Pid),
         Before = received(0),
         receive after 2 -> ok end,
         After = received(Before),
         true = erlang:resume_process(Pid),
         wait_for(100 - After),
         {After - Before}
     end || _ <- lists:seq(1, 20)].

echo(To) -> receive N -> To ! {echo, N}, echo(To) end.

received(N) -> receive {echo, _} -> received(N + 1) after 0 -> N end.

wait_for(0) -> ok;
wait_for(N) -> receive {echo, _} -> wait_for(N - 1) end.

%% The process that gets the emulator's own log messages.
system_logger() ->
    Old = erlang:system_flag(system_logger, self()),
    Wrong = [try erlang:system_flag(system_logger, X) catch C:R -> {C, R} end || X <- ["x", 1, nobody]],
    {Pid, Monitor} = spawn_monitor(fun() -> error(on_purpose) end),
    receive {'DOWN', Monitor, _, _, _} -> ok end,
    Logged = receive
                 {log, Level, Format, [Pid, {Reason, [_ | _]}], #{pid := Pid}} -> {Level, Format, Reason}
             after 5000 -> nothing
             end,
    Mine = erlang:system_info(system_logger) =:= self(),
    Me = erlang:system_flag(system_logger, logger),
    {Gone, Down} = spawn_monitor(fun() -> ok end),
    receive {'DOWN', Down, _, _, _} -> ok end,
    #{level := Primary} = logger:get_primary_config(),
    ok = logger:set_primary_config(level, none),
    logger = erlang:system_flag(system_logger, Gone),
    {_, Other} = spawn_monitor(fun() -> error(on_purpose) end),
    receive {'DOWN', Other, _, _, _} -> ok end,
    receive after 50 -> ok end,
    ok = logger:set_primary_config(level, Primary),
    Name = erlang:system_flag(system_logger, undefined),
    Nobody = erlang:system_flag(system_logger, Old),
    {is_pid(Old), Wrong, Logged, Mine, Me =:= self(), Name, Nobody}.

%% Modules whose attributes or compile information are no terms are not loaded.
bad_chunks() ->
    #{level := Level} = logger:get_primary_config(),
    ok = logger:set_primary_config(level, none),
    {ok, Module, Code} = compile:forms([{attribute, 1, module, bad_chunks_of_it}], [binary]),
    {ok, Module, Chunks} = beam_lib:all_chunks(Code),
    Results = [begin
                   {ok, Bad} = beam_lib:build_module(lists:keyreplace(Id, 1, Chunks, {Id, Data})),
                   {Id, Data, code:load_binary(Module, "bad", Bad)}
               end || Id <- ["Attr", "CInf"], Data <- [<<"bad">>, <<131>>, <<131, 106>>, <<131, 106, 0>>]],
    code:delete(Module),
    code:purge(Module),
    receive after 20 -> ok end,
    logger:set_primary_config(level, Level),
    Results.
