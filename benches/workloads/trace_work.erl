%% What tracing costs, for `cargo xtask compare`. Each workload prints a line "RESULT Value Digest", as those of
%% compare_work do.
%%
%%   erl -noshell -run trace_work main NAME
%%   erl -noshell -run trace_work make        writes and compiles the modules that are traced
-module(trace_work).
-export([main/1, make/0, pair/2]).

%% Modules of `make`, and functions of each.
-define(MODULES, 200).
-define(FUNCTIONS, 100).
%% Processes that run while all of them are traced.
-define(RUNNING, 1000).

main([Name]) ->
    {Value, Outcome} = measure(Name),
    io:format("RESULT ~b ~b~n", [Value, erlang:phash2(Outcome)]),
    erlang:halt(0).

%% fib(30) with a session on other functions, as millionths of fib(30) with none: the best of turns.
measure("idle") ->
    Fib = fun() -> compare_work:fib(30) end,
    Turns = [begin
                 {Without, Value} = timed(Fib),
                 Session = session(self()),
                 true = trace:function(Session, {lists, '_', '_'}, true, [local]) > 0,
                 true = trace:function(Session, {maps, '_', '_'}, true, [call_time]) > 0,
                 {With, Value} = timed(Fib),
                 true = trace:session_destroy(Session),
                 {Without, With}
             end || _ <- lists:seq(1, 25)],
    {Without, With} = lists:unzip(Turns),
    {lists:min(With) * 1000000 div lists:min(Without), ok};
%% A million calls, each told to a process.
measure("call") ->
    Count = 1000000,
    Tracer = spawn_link(fun() -> count_messages(0) end),
    Session = session(Tracer),
    1 = trace:function(Session, {?MODULE, pair, 2}, true, [local]),
    traced(Session, Tracer, [self()], [call], fun() -> calls(Count) end);
%% The same calls, and nothing else: nanoseconds of one.
measure("calls") ->
    Count = 1000000,
    {Best, _} = lists:min([timed(fun() -> calls(Count) end) || _ <- lists:seq(1, 5)]),
    {Best div Count, ok};
%% Messages there and back, each told when it is sent and when it comes.
measure("messages") ->
    Tracer = spawn_link(fun() -> count_messages(0) end),
    Echo = spawn_link(fun echo/0),
    traced(session(Tracer), Tracer, [self(), Echo], [send, 'receive'],
           fun() -> there_and_back(Echo, 100000) end);
%% call_time of every function of many modules: set, and read.
measure("set") ->
    Functions = load(),
    {Time, {_, Matched}} = best(fun() -> set(Functions) end, fun({Session, _}) -> trace:session_destroy(Session) end),
    {Time, Matched};
measure("set_each") ->
    Functions = load(),
    {Time, {_, Matched}} = best(fun() -> set_each(Functions) end,
                                fun({Session, _}) -> trace:session_destroy(Session) end),
    {Time, Matched};
measure("read") ->
    Functions = load(),
    {Session, _} = set_each(Functions),
    trace:process(Session, self(), true, [call]),
    [M:F(0) || {M, F, _} <- Functions],
    {Time, Calls} = best(fun() -> read(Session, Functions) end, fun(_) -> ok end),
    {Time, Calls};
%% The longest time for which a scheduler runs none of many busy processes while all that is set and read.
%% Other programs' turns add to it, so the least of several times is what tracing does.
measure("gap") ->
    Functions = load(),
    {lists:min([gap(Functions) || _ <- lists:seq(1, 5)]), ok}.

timed(Fun) ->
    Begin = erlang:monotonic_time(nanosecond),
    Value = Fun(),
    {erlang:monotonic_time(nanosecond) - Begin, Value}.

best(Fun, Undo) ->
    Turns = [begin
                 {Time, Value} = timed(Fun),
                 Undo(Value),
                 {Time, Value}
             end || _ <- lists:seq(1, 7)],
    {Times, Values} = lists:unzip(Turns),
    {lists:nth(4, lists:sort(Times)), hd(Values)}.

session(Tracer) ->
    trace:session_create(?MODULE, Tracer, []).

%% Nanoseconds until the tracer has got all that is told of Fun, and how many messages that were.
traced(Session, Tracer, Pids, Flags, Fun) ->
    [1 = trace:process(Session, Pid, true, Flags) || Pid <- Pids],
    Begin = erlang:monotonic_time(nanosecond),
    Fun(),
    [trace:process(Session, Pid, false, Flags) || Pid <- Pids],
    Delivered = trace:delivered(Session, self()),
    receive {trace_delivered, _, Delivered} -> ok end,
    Tracer ! {how_many, self()},
    receive
        {messages, Messages} -> {erlang:monotonic_time(nanosecond) - Begin, Messages}
    end.

count_messages(N) ->
    receive
        {how_many, From} -> From ! {messages, N};
        _ -> count_messages(N + 1)
    end.

calls(0) -> ok;
calls(N) ->
    pair(N, ok),
    calls(N - 1).

pair(N, _) -> N.

echo() ->
    receive {From, N} -> From ! {self(), N}, echo() end.

there_and_back(_, 0) -> ok;
there_and_back(Echo, Left) ->
    Echo ! {self(), Left},
    receive {Echo, _} -> there_and_back(Echo, Left - 1) end.

%% Modules to trace.

make() ->
    [make(module(M)) || M <- lists:seq(1, ?MODULES)],
    erlang:halt(0).

make(Name) ->
    Functions = [io_lib:format("f~b(X) -> {X, ~b}.~n", [F, F]) || F <- lists:seq(1, ?FUNCTIONS)],
    Text = io_lib:format("-module(~s).~n-compile([export_all, nowarn_export_all]).~n~s", [Name, Functions]),
    ok = file:write_file(atom_to_list(Name) ++ ".erl", Text),
    {ok, Name} = compile:file(Name, [deterministic]).

module(M) -> list_to_atom("trace_work_" ++ integer_to_list(M)).

load() ->
    Modules = [module(M) || M <- lists:seq(1, ?MODULES)],
    ok = code:ensure_modules_loaded(Modules),
    [{M, list_to_atom("f" ++ integer_to_list(F)), 1} || M <- Modules, F <- lists:seq(1, ?FUNCTIONS)].

%% All at once: what else is loaded is traced too, and how much that is depends on the runtime.
set(Functions) ->
    Session = session(self()),
    Matched = trace:function(Session, {'_', '_', '_'}, true, [call_time]),
    true = Matched > length(Functions),
    {Session, length(Functions)}.

set_each(Functions) ->
    Session = session(self()),
    Modules = lists:usort([M || {M, _, _} <- Functions]),
    Matched = lists:sum([trace:function(Session, {M, '_', '_'}, true, [call_time]) || M <- Modules]),
    {Session, Matched - 2 * length(Modules)}.

%% How many calls it has counted in all.
read(Session, Functions) ->
    lists:sum([calls_of(trace:info(Session, MFA, call_time)) || MFA <- Functions]).

calls_of({call_time, Rows}) -> lists:sum([Calls || {_, Calls, _, _} <- Rows]).

%% Processes that run meanwhile: each calls a function of its own and one that all call, and counts.

gap(Functions) ->
    Schedulers = erlang:system_info(schedulers),
    Stamps = atomics:new(2 * Schedulers, []),
    Counters = counters:new(?RUNNING, []),
    [Common | Others] = Functions,
    Step = length(Others) div ?RUNNING,
    Main = self(),
    %% Else it waits for its turn among a thousand, at each step.
    process_flag(priority, high),
    Start = fun({I, MFA}) ->
                    Pid = spawn_link(fun() -> run(Main, Common, MFA, I, Counters, Stamps, Schedulers) end),
                    {Pid, I, MFA}
            end,
    Running = [Start({I div Step, MFA}) || {I, MFA} <- lists:enumerate(Others), I rem Step =:= 0, I div Step =< ?RUNNING],
    timer:sleep(100),
    [atomics:put(Stamps, S, 0) || S <- lists:seq(Schedulers + 1, 2 * Schedulers)],
    Before = tally(Counters),
    {Session, _} = set(Functions),
    trace:process(Session, all, true, [call]),
    After = tally(Counters),
    read(Session, [Common | [MFA || {_, _, MFA} <- Running]]),
    Longest = lists:max([atomics:get(Stamps, S) || S <- lists:seq(Schedulers + 1, 2 * Schedulers)]),
    [Pid ! {stop, Main} || {Pid, _, _} <- Running],
    [receive {stopped, Pid} -> ok end || {Pid, _, _} <- Running],
    End = tally(Counters),
    {call_time, Rows} = trace:info(Session, Common, call_time),
    [begin
         is_all_counted(Session, MFA, Pid, E - B, E - A),
         no_call_is_lost(Common, Pid, E - B, E - A, Rows)
     end || {{Pid, _, MFA}, B, A, E} <- zip(Running, Before, After, End)],
    true = trace:session_destroy(Session),
    process_flag(priority, normal),
    Longest.

zip([P | Ps], [B | Bs], [A | As], [E | Es]) -> [{P, B, A, E} | zip(Ps, Bs, As, Es)];
zip([], [], [], []) -> [].

tally(Counters) -> [counters:get(Counters, I) || I <- lists:seq(1, ?RUNNING)].

is_all_counted(Session, MFA, Pid, Most, Least) ->
    {call_time, Rows} = trace:info(Session, MFA, call_time),
    no_call_is_lost(MFA, Pid, Most, Least, Rows).

%% Of the calls since counting was known to be on, none is missing. One may be between its call and its count.
no_call_is_lost(MFA, Pid, Most, Least, Rows) ->
    Counted = lists:sum([Calls || {Of, Calls, _, _} <- Rows, Of =:= Pid]),
    Counted >= Least - 1 andalso Counted =< Most + 1
        orelse error({counted, MFA, Pid, Counted, Least, Most}).

run(Main, {C, Common, _}, {M, F, _}, I, Counters, Stamps, Schedulers) ->
    run(Main, C, Common, M, F, I, Counters, Stamps, Schedulers).

run(Main, C, Common, M, F, I, Counters, Stamps, Schedulers) ->
    C:Common(I),
    M:F(I),
    counters:add(Counters, I, 1),
    stamp(Stamps, Schedulers),
    receive
        {stop, From} -> From ! {stopped, self()}
    after 0 ->
            run(Main, C, Common, M, F, I, Counters, Stamps, Schedulers)
    end.

%% The longest time between two stamps of a scheduler. What is older than the last one was held up by a turn's end.
stamp(Stamps, Schedulers) ->
    Id = erlang:system_info(scheduler_id),
    Now = erlang:monotonic_time(nanosecond),
    Last = atomics:get(Stamps, Id),
    if
        Last =:= 0 ->
            atomics:put(Stamps, Id, Now);
        Now > Last ->
            atomics:put(Stamps, Id, Now),
            Now - Last > atomics:get(Stamps, Schedulers + Id)
                andalso atomics:put(Stamps, Schedulers + Id, Now - Last);
        true ->
            ok
    end.
