%% The tracer module of tracers.c, and programs that it traces. What it is told is printed, with names for processes.
-module(tracers).
-compile(nowarn_deprecated_catch).
-export([main/1, enabled/3, trace/5, enabled_call/3, trace_call/5, work/1, twice/1]).
-nifs([enabled/3, trace/5, enabled_call/3, trace_call/5]).

enabled(_, _, _) -> erlang:nif_error(not_loaded).
trace(_, _, _, _, _) -> erlang:nif_error(not_loaded).
enabled_call(_, _, _) -> erlang:nif_error(not_loaded).
trace_call(_, _, _, _, _) -> erlang:nif_error(not_loaded).

main([Folder]) ->
    put(names, #{self() => main}),
    [refused(fun() -> erlang:trace(self(), true, [call, {tracer, Module, x}]) end)
     || Module <- [lists, nowhere, tracers]],
    ok = erlang:load_nif(filename:join(Folder, "tracers"), 0),
    ok = plain:init(filename:join(Folder, "plain")),
    refused(fun() -> erlang:trace(self(), true, [call, {tracer, lists, x}]) end),
    refused(fun() -> trace:session_create(s, {lists, x}, []) end),
    [run(Name, Answers, Flags)
     || {Name, Answers, Flags} <-
            [{messages, #{}, [send, 'receive']},
             {some, #{'receive' => discard}, [send, 'receive']},
             {calls, #{}, [call, return_to]},
             {no_calls, call_discard, [call, send]},
             {arity, #{}, [call, arity, scheduler_id]},
             {processes, #{}, [procs]},
             {removed, #{trace_status => remove}, [send]},
             {odd, #{send => other}, [send]},
             {times, #{spawn => discard}, [procs, strict_monotonic_timestamp]}]],
    meta(),
    session(),
    tokens(),
    gone().

refused(Fun) ->
    try Fun() of R -> io:format("not refused: ~p~n", [R]) catch error:Reason -> io:format("refused: ~p~n", [Reason]) end.

%% What a child does under these flags.
run(Name, Answers, Flags) ->
    io:format("~p~n", [Name]),
    Child = child(),
    State = {Answers, self()},
    try erlang:trace(Child, true, [{tracer, ?MODULE, State} | Flags]) of
        N -> io:format("  traced ~p~n", [N])
    catch error:R -> io:format("  ~p~n", [R])
    end,
    {tracer, Tracer} = erlang:trace_info(Child, tracer),
    io:format("  tracer ~p~n", [Tracer =:= {?MODULE, State}]),
    _ = erlang:trace_pattern({?MODULE, twice, 1}, [{'_', [], [{return_trace}, {message, {self}}]}], [local]),
    go(Child),
    erlang:trace_pattern({?MODULE, twice, 1}, false, [local]).

child() ->
    {Child, _} = spawn_monitor(?MODULE, work, [self()]),
    put(names, (get(names))#{Child => child}),
    Child.

go(Child) ->
    Child ! go,
    receive {'DOWN', _, process, Child, _} -> ok end,
    Delivered = erlang:trace_delivered(all),
    receive {trace_delivered, all, Delivered} -> ok end,
    told().

work(Parent) ->
    receive go -> ok end,
    Parent ! 2,
    20 = twice(10),
    Pid = spawn_link(fun() -> receive stop -> ok end end),
    register(tracers_child, Pid),
    unlink(Pid),
    Pid ! stop,
    catch no_such_process ! hello.

twice(N) -> 2 * N.

%% What has come, printed.
told() ->
    receive
        {How, Tag, Tracee, Term, Options} ->
            io:format("  ~w ~w ~w ~0p ~0p~n", [How, Tag, name(Tracee), name(Term), options(Options)]),
            told();
        2 -> told()
    after 0 -> ok
    end.

options(Options) ->
    lists:sort([{K, case K of scheduler_id -> is_integer(V); _ -> name(V) end} || K := V <- Options]).

name(Term) when is_pid(Term); is_port(Term); is_reference(Term); is_function(Term) ->
    case get(names) of
        #{Term := Name} -> Name;
        _ -> other
    end;
name(Term) when is_tuple(Term) -> list_to_tuple(name(tuple_to_list(Term)));
name([H | T]) -> [name(H) | name(T)];
name(Term) -> Term.

%% By a module without functions for calls of its own: with them, OTP 29 calls trace_call/5 with three arguments.
meta() ->
    io:format("meta~n"),
    erlang:trace_pattern({?MODULE, twice, 1}, [{[7], [], [{return_trace}]}], [{meta, plain, {#{}, self()}}]),
    14 = twice(7),
    16 = twice(8),
    {meta, {plain, {#{}, _}}} = erlang:trace_info({?MODULE, twice, 1}, meta),
    erlang:trace_pattern({?MODULE, twice, 1}, false, [meta]),
    [receive {How, Tag, _, Term, Options} -> io:format("  ~w ~w ~0p ~0p~n", [How, Tag, Term, options(Options)]) end
     || _ <- [call, return]].

session() ->
    io:format("session~n"),
    Session = trace:session_create(s, {?MODULE, {#{link => discard}, self()}}, []),
    Child = child(),
    1 = trace:process(Session, Child, true, [procs, call]),
    1 = trace:function(Session, {?MODULE, twice, 1}, true, [local]),
    go(Child),
    true = trace:session_destroy(Session).

tokens() ->
    io:format("tokens~n"),
    false = seq_trace:set_system_tracer({?MODULE, {#{}, self()}}),
    {?MODULE, {#{}, _}} = seq_trace:get_system_tracer(),
    seq_trace:set_token(label, 17),
    seq_trace:set_token(print, true),
    seq_trace:print(here),
    seq_trace:set_token([]),
    seq_trace:set_system_tracer(false),
    told(),
    try seq_trace:set_system_tracer({?MODULE, {#{trace_status => remove}, self()}}) of
        R -> io:format("  ~p~n", [R])
    catch error:R -> io:format("  ~p~n", [R])
    end.

%% The code of a tracer goes, and with it what it traced.
gone() ->
    io:format("gone~n"),
    {?MODULE, Code, File} = code:get_object_code(?MODULE),
    1 = erlang:trace(self(), true, [send, {tracer, ?MODULE, {#{}, self()}}]),
    {module, ?MODULE} = code:load_binary(?MODULE, File, Code),
    self() ! message,
    receive message -> ok end,
    io:format("  ~p~n", [erlang:trace_info(self(), flags)]),
    told().
