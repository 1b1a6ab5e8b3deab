%% What OTP's trace interface says, message by message and error by error, in a form that does not depend on the
%% run: `cargo xtask traces` compares it with what OTP 29 prints. Each line is a case's name and what it gave.
%%
%%   erl -noshell -run trace_shapes main [GROUP ...]
%%
%% Pids, ports and references are named by what they are, or numbered in the order in which a case meets them; time
%% stamps are told by their shapes.
-module(trace_shapes).
-compile([nowarn_deprecated_catch, nowarn_ignored, {no_auto_import, [processes/0]}]).

-export([main/0, main/1, failure/3]).
-export([plus/2, minus/2, outer/1, inner/1, tail/1, fails/1, catches/1, idle/0, twice/1, run_here/1,
         gc_work/1, spawned/0, first/1]).

main() -> main([]).

main(Groups) ->
    logger:set_primary_config(level, none),
    process_flag(trap_exit, true),
    Wanted = [list_to_atom(Group) || Group <- Groups],
    [run(Group, Name, Fun) || {Group, Cases} <- groups(), Wanted =:= [] orelse lists:member(Group, Wanted), {Name, Fun} <- Cases],
    halt(0).

groups() ->
    [{time_stamps, time_stamps()},
     {calls, calls()},
     {meta, meta()},
     {messages, messages()},
     {processes, processes()},
     {inherited, inherited()},
     {scheduling, scheduling()},
     {collections, collections()},
     {ports, ports()},
     {specs, specs()},
     {info, info()},
     {sessions, sessions()},
     {bad_process, bad_process()},
     {bad_function, bad_function()},
     {bad_events, bad_events()},
     {bad_session, bad_session()},
     {legacy, legacy()},
     {tracers, tracers()},
     {system, system()},
     {seq_trace, seq_trace()}] ++ trace_running:groups() ++ trace_errors:groups().

run(Group, Name, Fun) ->
    Me = self(),
    {Pid, Monitor} = spawn_monitor(fun() -> Me ! {self(), result(Fun)} end),
    Result = receive
                 {Pid, Term} -> receive {'DOWN', Monitor, _, _, _} -> Term end;
                 {'DOWN', Monitor, _, _, Reason} -> {died, Reason}
             after 20000 -> exit(Pid, kill), hangs
             end,
    show(Group, Name, Result).

show(Group, Name, Results) when is_list(Results), Results =/= [] ->
    io:format("~p ~p~n", [Group, Name]),
    [io:format("    ~0p~n", [R]) || R <- Results];
show(Group, Name, Result) ->
    io:format("~p ~p~n    ~0p~n", [Group, Name, Result]).

result(Fun) ->
    put(names, #{self() => main}),
    try named(Fun())
    catch Class:Reason:Stack -> failure(Class, Reason, Stack)
    end.

%% An error with what its error_info says.
failure(Class, Reason, [{M, F, Args, Info} | _]) ->
    Arity = if is_list(Args) -> length(Args); true -> Args end,
    Error = [{maps:get(cause, E, none), explained(Reason, M, F, Args, E)} || {error_info, E} <- Info],
    named({Class, Reason, {M, F, Arity}, Error}).

explained(Reason, M, F, Args, #{module := Module}) ->
    try maps:to_list(Module:format_error(Reason, [{M, F, Args, [{error_info, #{}}]}]))
    catch _:_ -> none
    end;
explained(_, _, _, _, _) -> none.

%% Names for what differs from run to run.

name(Term, Name) -> put(names, (get(names))#{Term => Name}), Term.

named(T) when is_pid(T); is_port(T); is_reference(T) ->
    Names = get(names),
    case Names of
        #{T := Name} -> Name;
        #{} ->
            Kind = if is_pid(T) -> pid; is_port(T) -> port; true -> ref end,
            Name = {Kind, length([K || {K, _} <- maps:values(Names), K =:= Kind]) + 1},
            name(T, Name),
            Name
    end;
named(T) when is_function(T) -> {'fun', erlang:fun_info(T, arity)};
named(T) when is_tuple(T), element(1, T) =:= trace_ts -> stamped(T);
named(T) when is_tuple(T) -> list_to_tuple(named(tuple_to_list(T)));
named(T) when is_map(T) -> maps:from_list(named(maps:to_list(T)));
named([H | T]) -> [named(H) | named(T)];
named(T) -> T.

stamped(T) ->
    Last = tuple_size(T),
    Parts = tuple_to_list(T),
    list_to_tuple(named(lists:sublist(Parts, Last - 1)) ++ [stamp(element(Last, T))]).

stamp({A, B, C}) when is_integer(A), is_integer(B), is_integer(C) -> '{Mega, Sec, Micro}';
stamp({A, B}) when is_integer(A), is_integer(B) -> '{Monotonic, Unique}';
stamp(A) when is_integer(A) -> 'Monotonic';
stamp(A) when is_atom(A) -> A.

%% A session whose tracer is this process.

session() -> trace:session_create(shapes, self(), []).

%% A process that does what it is told.
worker() ->
    Pid = spawn(fun() -> worker_loop() end),
    name(Pid, worker).

worker_loop() ->
    receive {From, Ref, Fun} when is_function(Fun) -> From ! {Ref, do, catch Fun()}, worker_loop() end.

%% Has it do something; it is told by a message that no case shows.
tell(Pid, Fun) ->
    Ref = make_ref(),
    Pid ! {self(), Ref, Fun},
    receive {Ref, do, Value} -> Value after 5000 -> exit({no_answer, erlang:process_info(Pid, current_stacktrace)}) end.

%% All that the tracer has been sent, without the orders to workers.
heard(Session) ->
    Ref = trace:delivered(Session, all),
    receive {trace_delivered, all, Ref} -> ok end,
    [M || M <- flush(), not is_order(M)].

flush() -> receive M -> [M | flush()] after 0 -> [] end.

is_order(T) when is_tuple(T), tuple_size(T) >= 4 ->
    case element(4, T) of
        {_, Ref, Fun} when is_reference(Ref), is_function(Fun) -> true;
        {Ref, do, _} when is_reference(Ref) -> true;
        _ -> false
    end;
is_order(_) -> false.

%% Messages while a worker does Fun, with flags on it.
traced(Flags, Fun) -> traced(Flags, fun(_) -> ok end, Fun).
traced(Flags, Prepare, Fun) ->
    Session = session(),
    Worker = worker(),
    Prepare(Session),
    1 = trace:process(Session, Worker, true, Flags),
    tell(Worker, Fun),
    Messages = heard(Session),
    trace:session_destroy(Session),
    exit(Worker, kill),
    Messages.

local(Functions) -> local(Functions, true).
local(Functions, Spec) ->
    fun(Session) -> [1 = trace:function(Session, {?MODULE, F, A}, Spec, [local]) || {F, A} <- Functions] end.
global(Functions, Spec) ->
    fun(Session) -> [1 = trace:function(Session, {M, F, A}, Spec, [global]) || {M, F, A} <- Functions] end.

%% Functions to trace.
plus(A, B) -> A + B.
minus(A, B) -> A - B.
outer(X) -> Y = inner(X), [Y].
inner(X) -> {X}.
tail(0) -> done;
tail(N) -> tail(N - 1).
fails(X) -> error({failed, X}).
catches(X) -> try fails(X) catch error:R -> R end.
idle() -> receive stop -> ok end.
twice(F) -> F(), F().
run_here(F) -> F().
spawned() -> ok.
first(X) -> hd(X).
gc_work(N) -> length(lists:seq(1, N)).

time_stamps() ->
    Stamps = [timestamp, monotonic_timestamp, strict_monotonic_timestamp],
    Sets = [[S || {S, true} <- lists:zip(Stamps, [A, B, C])] || A <- [true, false], B <- [true, false], C <- [true, false]],
    [{Set, fun() -> traced([call, send | Set], local([{plus, 2}]), fun() -> plus(1, 2), self() ! a end) end} || Set <- Sets]
        ++ [{off_again, fun() -> stamp_off(Stamps) end}].

stamp_off(Stamps) ->
    Session = session(),
    Worker = worker(),
    trace:process(Session, Worker, true, [send | Stamps]),
    [begin
         trace:process(Session, Worker, false, [Stamp]),
         tell(Worker, fun() -> self() ! Stamp, receive Stamp -> ok end end),
         {heard(Session), element(2, trace:info(Session, Worker, flags))}
     end || Stamp <- [timestamp, strict_monotonic_timestamp, monotonic_timestamp]].

calls() ->
    Call = fun(Spec, Flags, Fun) -> fun() -> traced([call | Flags], local([{outer, 1}, {inner, 1}, {tail, 1}, {fails, 1}, {catches, 1}, {twice, 1}], Spec), Fun) end end,
    Return = [{'_', [], [{return_trace}]}],
    Exception = [{'_', [], [{exception_trace}]}],
    [{plain, Call(true, [], fun() -> outer(1), tail(2) end)},
     {no_spec, Call([], [], fun() -> outer(1) end)},
     {arity, Call(true, [arity], fun() -> outer(1) end)},
     {silent, Call(true, [silent], fun() -> outer(1) end)},
     {return_to, Call(true, [return_to], fun() -> outer(1), catches(2), ok end)},
     {return_trace, Call(Return, [], fun() -> outer(1), tail(2), ok end)},
     {return_trace_and_to, Call(Return, [return_to], fun() -> outer(1), catches(3), ok end)},
     {return_trace_exception, Call(Return, [], fun() -> catches(1) end)},
     {exception_trace, Call(Exception, [], fun() -> catches(1), outer(2) end)},
     {exception_uncaught, Call(Exception, [], fun() -> catch fails(1) end)},
     {exception_classes, Call(Exception, [], fun() -> catch twice(fun() -> throw(t) end), catch twice(fun() -> exit(e) end),
                                                      catch twice(fun() -> error(e, [a]) end), ok end)},
     {uncaught_throw, fun() -> traced([call, procs], local([{run_here, 1}], Exception),
                                      fun() -> {P, M} = spawn_monitor(fun() -> ok end), receive {'DOWN', M, _, P, _} -> ok end end) end},
     {funs, Call(Return, [], fun() -> twice(fun() -> inner(9) end) end)},
     {global_only_remote, fun() -> traced([call], global([{?MODULE, outer, 1}, {?MODULE, inner, 1}], Return),
                                          fun() -> outer(1), ?MODULE:outer(2), apply(?MODULE, inner, [3]) end) end},
     {global_return_to, fun() -> traced([call, return_to], global([{?MODULE, outer, 1}], true),
                                        fun() -> ?MODULE:outer(2), ok end) end},
     {bifs_local, fun() -> traced([call], fun(S) -> [1 = trace:function(S, {erlang, F, A}, Return, [local]) || {F, A} <- [{abs, 1}, {hd, 1}, {'+', 2}, {atom_to_list, 1}, {self, 0}]] end,
                                  fun() -> X = erlang:abs(first([-1])), erlang:atom_to_list(a), (fun erlang:abs/1)(X), apply(erlang, '+', [X, 2]), catch erlang:atom_to_list(X), self() end) end},
     {bifs_global, fun() -> traced([call], global([{erlang, F, A} || {F, A} <- [{abs, 1}, {atom_to_list, 1}, {process_flag, 2}]], Exception),
                                   fun() -> X = erlang:abs(first([-1])), erlang:atom_to_list(a), (fun erlang:abs/1)(X), catch erlang:atom_to_list(X), process_flag(priority, normal) end) end},
     {traps, fun() -> traced([call, return_to], fun(S) -> [1 = trace:function(S, MFA, Return, [local]) || MFA <- [{lists, reverse, 1}, {lists, reverse, 2}, {erlang, iolist_to_binary, 1}]] end,
                             fun() -> length(lists:reverse(lists:seq(1, 5))), iolist_to_binary([a || a <- []]), ok end) end},
     {lambda, fun() -> traced([call], fun(S) -> trace:function(S, {?MODULE, '-calls_fun/0-fun-0-', 1}, true, [local]) end, fun() -> (calls_fun())(1) end) end},
     {spawn_apply, fun() -> traced([call, set_on_spawn], local([{spawned, 0}], Return), fun() -> P = spawn(?MODULE, spawned, []), M = monitor(process, P), receive {'DOWN', M, _, _, _} -> ok end end) end},
     {bad_arity_undefined, fun() -> traced([call], global([{?MODULE, plus, 2}], Exception), fun() -> catch ?MODULE:plus(a, 1), catch ?MODULE:none(1) end) end},
     {error_handler, fun() -> traced([call], fun(S) -> [trace:function(S, {error_handler, F, '_'}, true, [global]) || F <- [undefined_function]] end,
                                     fun() -> catch apply(?MODULE, none, [1]) end) end}].

calls_fun() -> fun(X) -> [X] end.

meta() ->
    Meta = fun(Spec, Fun) ->
                   fun() ->
                           Session = session(), Worker = worker(),
                           [1 = trace:function(Session, {?MODULE, F, A}, Spec, [meta]) || {F, A} <- [{outer, 1}, {inner, 1}, {catches, 1}, {fails, 1}]],
                           tell(Worker, Fun),
                           Heard = heard(Session),
                           Info = [trace:info(Session, {?MODULE, outer, 1}, I) || I <- [traced, meta, meta_match_spec, match_spec, call_count]],
                           trace:session_destroy(Session),
                           Heard ++ Info
                   end
           end,
    [{plain, Meta(true, fun() -> outer(1) end)},
     {return, Meta([{'_', [], [{return_trace}]}], fun() -> outer(1), catches(2) end)},
     {exception, Meta([{'_', [], [{exception_trace}, {message, {{caller}, extra}}]}], fun() -> outer(1), catches(2) end)},
     {no_message, Meta([{'_', [], [{message, false}, {return_trace}]}], fun() -> outer(1) end)},
     {with_local, fun() ->
                          Session = session(), Worker = worker(),
                          1 = trace:function(Session, {?MODULE, outer, 1}, true, [meta]),
                          1 = trace:function(Session, {?MODULE, outer, 1}, [{'_', [], [{return_trace}]}], [local]),
                          1 = trace:function(Session, {?MODULE, outer, 1}, true, [call_count]),
                          trace:process(Session, Worker, true, [call, timestamp]),
                          tell(Worker, fun() -> outer(1) end),
                          Heard = heard(Session),
                          {all, All} = trace:info(Session, {?MODULE, outer, 1}, all),
                          trace:session_destroy(Session),
                          Heard ++ All
                  end}].

messages() ->
    Both = [send, 'receive'],
    Receiver = fun() -> name(spawn(fun() -> idle() end), receiver) end,
    Sent = fun(Fun) -> fun() -> R = Receiver(), Dead = dead(), traced(Both, fun() -> Fun(R, Dead) end) end end,
    [{to_pid, Sent(fun(R, _) -> R ! {a, "b"}, erlang:send(R, c), erlang:send(R, d, [nosuspend, noconnect]), erlang:send_nosuspend(R, e) end)},
     {to_self, Sent(fun(_, _) -> self() ! me, receive me -> ok end end)},
     {to_dead, Sent(fun(_, D) -> D ! gone end)},
     {to_name, Sent(fun(R, _) -> register(shape, R), shape ! x, {shape, node()} ! y, unregister(shape) end)},
     {to_no_name, Sent(fun(_, _) -> catch shape ! x, {shape, node()} ! y, {shape, nowhere@nohost} ! z end)},
     {to_alias, Sent(fun(_, _) -> A = alias(), A ! x, receive x -> ok end, unalias(A), A ! y end)},
     {timers, Sent(fun(_, _) -> erlang:send_after(1, self(), after_), receive after_ -> ok end, T = erlang:start_timer(1, self(), tag), receive {timeout, T, tag} -> ok end end)},
     {down, Sent(fun(_, D) -> M = monitor(process, D), receive {'DOWN', M, _, _, _} -> ok end end)},
     {exit_signal, Sent(fun(_, D) -> process_flag(trap_exit, true), catch link(D), receive {'EXIT', _, _} -> ok after 100 -> no end,
                                     P = spawn_link(fun() -> exit(bye) end), receive {'EXIT', P, bye} -> ok end end)},
     {exit_2, Sent(fun(R, _) -> exit(R, normal), exit(R, go) end)},
     {receive_of_untraced, fun() ->
                                   Session = session(), W = worker(),
                                   trace:process(Session, W, true, ['receive', timestamp]),
                                   W ! {self(), make_ref(), fun() -> receive hello -> ok end end}, W ! hello,
                                   receive {_, do, ok} -> ok end,
                                   heard(Session)
                           end},
     {send_spec, fun() ->
                         Session = session(), W = worker(), R = Receiver(),
                         trace:process(Session, W, true, [send]),
                         1 = trace:send(Session, [{['_', {wanted, '$1'}], [], [{message, {{got, '$1'}}}]}], []),
                         tell(W, fun() -> R ! {wanted, 1}, R ! other end),
                         A = heard(Session),
                         Info = trace:info(Session, send, match_spec),
                         1 = trace:send(Session, false, []),
                         tell(W, fun() -> R ! {wanted, 1} end),
                         B = heard(Session),
                         Off = trace:info(Session, send, match_spec),
                         1 = trace:send(Session, true, []),
                         tell(W, fun() -> R ! again end),
                         [A, Info, B, Off, heard(Session), trace:info(Session, send, match_spec)]
                 end},
     {recv_spec, fun() ->
                         Session = session(), W = worker(), Me = self(),
                         trace:process(Session, W, true, ['receive', monotonic_timestamp]),
                         1 = trace:recv(Session, [{[node(), Me, {wanted, '$1'}], [], [{message, '$1'}]}], []),
                         tell(W, fun() -> self() ! {wanted, self}, Me ! send_it, receive {wanted, self} -> ok end, receive {wanted, 1} -> ok after 10 -> ok end end),
                         W ! {wanted, 2},
                         A = heard(Session),
                         Info = [trace:info(Session, 'receive', I) || I <- [match_spec]],
                         1 = trace:recv(Session, [{['_', undefined, '_'], [], []}], []),
                         erlang:send_after(0, W, timed), timer:sleep(10),
                         [lists:delete(send_it, A), Info, heard(Session)]
                 end}].

dead() ->
    {P, M} = spawn_monitor(fun() -> ok end),
    receive {'DOWN', M, _, _, _} -> name(P, dead) end.

processes() ->
    Procs = fun(Fun) -> fun() -> D = dead(), traced([procs], fun() -> Fun(D) end) end end,
    Wait = fun(P) -> M = monitor(process, P), receive {'DOWN', M, _, _, _} -> ok end end,
    [{spawn_mfa, Procs(fun(_) -> Wait(spawn(?MODULE, spawned, [])) end)},
     {spawn_link, Procs(fun(_) -> process_flag(trap_exit, true), Wait(spawn_link(?MODULE, spawned, [])) end)},
     {spawn_monitor, Procs(fun(_) -> {P, _} = spawn_monitor(?MODULE, spawned, []), Wait(P) end)},
     {spawn_opt, Procs(fun(_) -> {P, _} = spawn_opt(?MODULE, spawned, [], [link, monitor, {priority, high}]), Wait(P) end)},
     {spawn_request, Procs(fun(_) -> R = spawn_request(?MODULE, spawned, [], [link]), receive {spawn_reply, R, ok, P} -> Wait(P) end end)},
     {link_unlink, Procs(fun(_) -> P = spawn(?MODULE, idle, []), link(P), link(P), unlink(P), unlink(P), exit(P, kill), Wait(P) end)},
     {link_dead, Procs(fun(D) -> process_flag(trap_exit, true), catch link(D), receive {'EXIT', _, _} -> ok after 100 -> ok end, unlink(D) end)},
     {link_self, Procs(fun(_) -> link(self()), unlink(self()) end)},
     {register, Procs(fun(_) -> register(shape, self()), catch register(shape, self()), unregister(shape), catch unregister(shape) end)},
     {getting_linked, fun() ->
                              Session = session(), W = worker(),
                              trace:process(Session, W, true, [procs]),
                              link(W), unlink(W), link(W), tell(W, fun() -> ok end),
                              heard(Session)
                      end},
     {exits, fun() -> [exit_of(Reason) || Reason <- [normal, shutdown, {error, x}, kill, self, function_clause, throw]] end},
     {exit_registered_linked, fun() ->
                                      Session = session(), W = worker(), process_flag(trap_exit, true),
                                      trace:process(Session, W, true, [procs]),
                                      link(W),
                                      tell(W, fun() -> register(shape, self()) end),
                                      exit(W, bye), receive {'EXIT', W, _} -> ok end,
                                      heard(Session)
                              end},
     {killed_by_link, fun() ->
                              Session = session(), W = worker(),
                              trace:process(Session, W, true, [procs, exiting]),
                              W ! {self(), make_ref(), fun() -> P = spawn(fun() -> receive die -> exit(boom) end end), link(P), P ! die, idle() end},
                              M = monitor(process, W), receive {'DOWN', M, _, _, _} -> ok end,
                              heard(Session)
                      end},
     {all_new, fun() ->
                       Session = session(),
                       0 = trace:process(Session, new, true, [procs, timestamp]),
                       W = worker(), tell(W, fun() -> ok end), exit(W, kill), Wait(W),
                       Info = [trace:info(Session, new, I) || I <- [flags, tracer]],
                       Heard = [M || M <- heard(Session), element(2, M) =:= W],
                       0 = trace:process(Session, new, false, [all]),
                       Heard ++ Info ++ [trace:info(Session, new_processes, flags)]
               end}].

exit_of(Reason) ->
    Session = session(),
    W = spawn(fun() -> receive go -> leave(Reason) end end),
    name(W, exiting),
    trace:process(Session, W, true, [procs]),
    M = monitor(process, W),
    W ! go,
    receive {'DOWN', M, _, _, _} -> ok end,
    {Reason, [stackless(H) || H <- heard(Session)]}.

leave(kill) -> exit(self(), kill);
leave(self) -> exit(self(), reason);
leave({error, X}) -> error(X);
leave(function_clause) -> first(a);
leave(throw) -> throw(ball);
leave(Reason) -> exit(Reason).

%% Exit reasons without stack traces.
stackless(T) when is_tuple(T) -> list_to_tuple([stackless(E) || E <- tuple_to_list(T)]);
stackless([{M, F, A, I} | _]) when is_atom(M), is_atom(F), is_list(I) -> [stack_of, M, F, A];
stackless([H | T]) -> [stackless(H) | stackless(T)];
stackless(T) -> T.

inherited() ->
    Wait = fun(P) -> M = monitor(process, P), receive {'DOWN', M, _, _, _} -> ok end end,
    Flags = fun(Set) ->
                    fun() ->
                            Session = session(), W = worker(),
                            trace:process(Session, W, true, [procs, send | Set]),
                            Children = tell(W, fun() -> [spawn(?MODULE, idle, []), spawn_link(?MODULE, idle, []), spawn(?MODULE, idle, [])] end),
                            Linked = tell(W, fun() -> P = spawn_opt(?MODULE, idle, [], []), link(P), P end),
                            Other = spawn(?MODULE, idle, []),
                            tell(W, fun() -> link(Other), unlink(Other) end),
                            %% It answers when it has handled what was sent to it before.
                            _ = [process_info(C, status) || C <- [Linked, Other | Children]],
                            R = [{C, trace:info(Session, C, flags), trace:info(Session, C, tracer)} || C <- [W, Linked, Other | Children]],
                            [exit(C, kill) || C <- [Linked, Other | Children]], unlink(W), exit(W, kill), Wait(W),
                            [{C, lists:sort(F), T} || {C, {flags, F}, {tracer, T}} <- R]
                    end
            end,
    [{Set, Flags(Set)} || Set <- [[], [set_on_spawn], [set_on_first_spawn], [set_on_link], [set_on_first_link],
                                  [set_on_spawn, set_on_link], [set_on_first_spawn, set_on_first_link], [set_on_spawn, set_on_first_link],
                                  [set_on_first_spawn, set_on_link], [set_on_spawn, set_on_first_spawn]]].

scheduling() ->
    Running = fun(Flags) -> fun() ->
                                    Session = session(), W = worker(),
                                    erlang:yield(),
                                    trace:process(Session, W, true, Flags),
                                    timer:sleep(5),
                                    tell(W, fun() -> erlang:yield(), receive after 1 -> ok end end),
                                    timer:sleep(5),
                                    kinds(heard(Session))
                            end end,
    [{Flags, Running(Flags)} || Flags <- [[running], [running_procs], [running, timestamp], [running, running_procs]]]
        ++ [{exiting, fun() ->
                              Session = session(), W = worker(),
                              trace:process(Session, W, true, [running, exiting, procs]),
                              timer:sleep(5), exit(W, bye), timer:sleep(20),
                              kinds(heard(Session))
                      end},
            {exiting_only, fun() ->
                              Session = session(), W = worker(),
                              trace:process(Session, W, true, [exiting]),
                              timer:sleep(5), exit(W, bye), timer:sleep(20),
                              heard(Session)
                      end}].

%% Each kind of message once, in the order in which they came first.
kinds(Messages) -> lists:uniq([named(M) || M <- Messages]).

collections() ->
    Info = fun(Messages) -> lists:uniq([{element(3, M), tuple_size(M), [K || {K, V} <- element(4, M), is_integer(V)]} || M <- Messages]) end,
    [{major, fun() -> Info(traced([garbage_collection], fun() -> erlang:garbage_collect() end)) end},
     {minor, fun() -> lists:sublist(Info(traced([garbage_collection], fun() -> erlang:garbage_collect(self(), [{type, minor}]) end)), 2) end},
     {stamped, fun() -> Info(traced([garbage_collection, strict_monotonic_timestamp], fun() -> erlang:garbage_collect() end)) end},
     {max_heap_size, fun() ->
                             Session = session(),
                             W = spawn(fun() -> process_flag(max_heap_size, #{size => 5000, kill => true, error_logger => false}), receive go -> gc_work(100000) end end),
                             timer:sleep(10),
                             trace:process(Session, W, true, [garbage_collection]),
                             M = monitor(process, W), W ! go, receive {'DOWN', M, _, _, R} -> ok end,
                             [R | lists:usort([element(3, H) || H <- heard(Session), element(3, H) =:= gc_max_heap_size])]
                     end}].

ports() ->
    Open = fun(W) -> tell(W, fun() -> P = open_port({spawn_executable, "/bin/cat"}, [binary]), P end) end,
    OnPort = fun(Flags, Fun) ->
                     fun() ->
                             Session = session(), W = worker(),
                             Port = name(Open(W), cat),
                             1 = trace:port(Session, Port, true, Flags),
                             tell(W, fun() -> Fun(Port) end),
                             timer:sleep(20),
                             heard(Session)
                     end
             end,
    Use = fun(P) ->
                  P ! {self(), {command, "hello"}}, receive {P, {data, _}} -> ok end,
                  port_command(P, "again"), receive {P, {data, _}} -> ok end,
                  catch port_control(P, 1, "x"),
                  catch erlang:port_call(P, 1, x),
                  erlang:port_info(P, os_pid),
                  P ! {self(), close}, receive {P, closed} -> ok end
          end,
    [{ports_flag, OnPort([ports], fun(P) -> register(shape, P), unregister(shape), unlink(P), link(P), port_close(P) end)},
     {send_receive, OnPort([send, 'receive'], Use)},
     {send_receive_stamped, OnPort([send, 'receive', strict_monotonic_timestamp], fun(P) -> P ! {self(), {command, "x"}}, receive {P, {data, _}} -> ok end end)},
     {running, fun() -> kinds((OnPort([running_ports], Use))()) end},
     {connect, OnPort([ports, 'receive', send], fun(P) -> Me = self(), Q = spawn(fun() -> receive stop -> ok end end), P ! {Me, {connect, Q}}, receive {P, connected} -> ok end, erlang:port_connect(P, Me), P ! {Me, bad}, receive _ -> ok after 20 -> ok end end)},
     {exit_of_owner, OnPort([ports], fun(P) -> unlink(P), link(P), exit(P, bye), receive {'EXIT', P, _} -> ok after 50 -> ok end end)},
     {process_and_port, fun() ->
                                Session = session(), W = worker(),
                                1 = trace:process(Session, W, true, [procs, send, 'receive']),
                                _ = trace:port(Session, new, true, [ports, send, 'receive']),
                                Port = name(Open(W), cat),
                                tell(W, fun() -> Port ! {self(), {command, "hello"}}, receive {Port, {data, _}} -> ok end, port_close(Port), receive X -> X after 10 -> none end end),
                                timer:sleep(20),
                                Info = [trace:info(Session, new_ports, flags), trace:info(Session, new_ports, tracer)],
                                %% The answer to open_port is a message in OTP only.
                                [M || M <- heard(Session), not is_answer(M, Port)] ++ Info
                        end},
     {dead_port, fun() -> W = worker(), Port = Open(W), tell(W, fun() -> port_close(Port) end), trace:port(session(), Port, true, [send]) end},
     {info, fun() -> S = session(), W = worker(), Port = Open(W), 1 = trace:port(S, Port, true, [ports, silent, timestamp]), name(Port, cat),
                     [trace:info(S, Port, flags), trace:info(S, Port, tracer), trace:session_info(Port) =:= [trace_weak(S)]] end},
     {all_ports, fun() -> S = session(), W = worker(), _ = Open(W), N = trace:port(S, all, true, [send]), M = length(erlang:ports()), N =:= M end}].

is_answer({trace, _, 'receive', {Ref, Port}}, Port) -> is_reference(Ref);
is_answer(_, _) -> false.

trace_weak({_, Weak}) -> Weak.

%% Match specifications: what each body gives in a message.
specs() ->
    Say = fun(Term) -> [{'_', [], [{message, Term}]}] end,
    Spec = fun(S) -> fun() -> traced([call], local([{plus, 2}], S), fun() -> plus(1, 2), ok end) end end,
    Bodies = [{message_true, true}, {message_false, false}, {dollar, '$_'}, {dollars, '$$'}, {self, {self}}, {node, {node}},
              {caller, {caller}}, {caller_line, {element, 2, {caller_line}}}, {trace_flag, {is_seq_trace}}, {tcw, {get_tcw}},
              {token, {get_seq_token}}, {process_dump, {process_dump}},
              {constants, {{const, {a, '$1'}}}}, {map, #{a => '$$'}}, {list, [1, '$$']}, {const, {const, '$1'}}],
    [{Name, Spec(Say(Body))} || {Name, Body} <- Bodies, Name =/= process_dump]
        ++ [{stack, fun() -> [{T, P, C, F, [{M, Fn, A} || {M, Fn, A, _} <- Stack]} || {T, P, C, F, Stack} <- traced([call], local([{inner, 1}], Say({current_stacktrace})), fun() -> outer(1) end)] end},
            {stack_2, fun() -> [{T, P, C, F, [{M, Fn, A} || {M, Fn, A, _} <- Stack]} || {T, P, C, F, Stack} <- traced([call], local([{inner, 1}], Say({current_stacktrace, 2})), fun() -> outer(1) end)] end},
            {process_dump, fun() -> [is_binary(element(5, M)) || M <- (Spec(Say({process_dump})))()] end},
            {several, Spec([{[1, '$1'], [{'>', '$1', 1}], [{message, {{more, '$1'}}}]}, {'_', [], [{message, false}]}])},
            {matches_none, Spec([{[9, '_'], [], []}])},
            {value_of_body, Spec([{'_', [], [something]}])},
            {bad_action, Spec([{'_', [], [{hd, '$_'}, {message, {hd, 1}}]}])},
            {bad_guard, Spec([{'_', [{hd, 1}], []}])},
            {silent, fun() -> traced([call], local([{plus, 2}], [{[1, '_'], [], [{silent, true}]}, {[2, '_'], [], [{silent, false}]}]),
                                     fun() -> plus(0, 0), plus(1, 1), plus(0, 0), plus(2, 2), plus(0, 0) end) end},
            {enable, fun() -> traced([call], local([{plus, 2}], [{'_', [], [{enable_trace, timestamp}, {disable_trace, arity}]}]), fun() -> plus(1, 1), plus(2, 2) end) end},
            {trace_action, fun() -> traced([call], local([{plus, 2}], [{'_', [], [{trace, [], [monotonic_timestamp, arity]}]}]), fun() -> plus(1, 1), plus(2, 2) end) end},
            {trace_other, fun() -> Other = worker(), Session = session(), W = worker(),
                                   trace:process(Session, W, true, [call]),
                                   1 = trace:function(Session, {?MODULE, plus, 2}, [{['$1', '_'], [], [{message, {enable_trace, '$1', send}}]}], [local]),
                                   tell(W, fun() -> plus(Other, 2) end),
                                   [trace:info(Session, Other, flags) | heard(Session)] end},
            {set_tcw, fun() -> R = traced([call], local([{plus, 2}], [{'_', [], [{message, {{{set_tcw, 17}, {get_tcw}}}}]}]), fun() -> plus(1, 1) end), [erlang:system_flag(trace_control_word, 0) | R] end},
            {seq_token, fun() -> traced([call], local([{plus, 2}], [{'_', [], [{set_seq_token, label, 17}, {set_seq_token, send, true}, {message, {get_seq_token}}]}]), fun() -> plus(1, 1), T = seq_trace:get_token(label), seq_trace:set_token([]), T end) end},
            {deep, fun() -> deep_spec(1500) end},
            {very_deep, fun() -> deep_spec(200000) end},
            {caller_of_worker, fun() -> traced([call], local([{run_here, 1}], Say({caller})), fun() -> run_here(fun() -> ok end) end) end},
            {caller_after_return_trace, fun() -> traced([call], local([{outer, 1}, {inner, 1}], [{'_', [], [{return_trace}, {message, {caller}}]}]), fun() -> outer(1), ok end) end}
           ]
        ++ [{{test, I}, fun() -> erlang:match_spec_test(Args, S, T) end} ||
               {I, Args, S, T} <- [{1, [1, 2], [{['$1', '$2'], [], ['$2']}], trace}, {2, {1, 2}, [{{'$1', '$2'}, [], ['$2']}], table},
                                   {3, [1], [{['$1'], [{is_atom, '$1'}], []}], trace}, {4, [1], [{['$1'], [], [{message, {x}}]}], trace},
                                   {5, [1], [{['$1'], [{nofun, '$1'}], [{nobody}]}], trace}, {6, a, [], trace}, {7, [a], bad, trace},
                                   {8, {a}, [{{'$1'}, [], [{message, a}]}], table}, {9, [1], [{['$1'], [], [{return_trace}, {exception_trace}, {caller}]}], trace},
                                   {10, [a], [{['$1'], [{'=:=', '$1', '$2'}], []}], trace}, {11, [a], [{'_', [], []}], other}]].

deep_spec(Depth) ->
    Body = lists:foldl(fun(_, T) -> {hd, [T]} end, a, lists:seq(1, Depth)),
    Result = try trace:function(session(), {?MODULE, plus, 2}, [{'_', [], [Body]}], [local])
             catch C:R -> {C, R}
             end,
    Result.

info() ->
    Items = [traced, match_spec, meta, meta_match_spec, call_count, call_time, call_memory, all],
    Of = fun(Set) -> fun() ->
                             S = session(), W = worker(),
                             [trace:function(S, {?MODULE, plus, 2}, Spec, Flags) || {Spec, Flags} <- Set],
                             trace:process(S, W, true, [call]),
                             tell(W, fun() -> plus(1, 2), plus(1, 3), ok end),
                             _ = heard(S),
                             [measured(trace:info(S, {?MODULE, plus, 2}, I)) || I <- Items]
                     end end,
    Spec = [{['$1', '_'], [{'>', '$1', 0}], [{return_trace}]}],
    [{{set, I}, Of(Set)} || {I, Set} <- lists:enumerate([[], [{true, [local]}], [{Spec, [local]}], [{true, [global]}], [{Spec, []}], [{true, [meta]}], [{Spec, [meta]}],
                     [{true, [call_count]}], [{true, [call_time]}], [{true, [call_memory]}], [{true, [call_count, call_time, call_memory]}],
                     [{true, [call_count]}, {pause, [call_count]}], [{true, [call_time]}, {restart, [call_time]}], [{restart, [call_count]}], [{pause, [call_time]}],
                     [{true, [local]}, {true, [global]}], [{true, [global]}, {true, [local, call_count]}], [{true, [local]}, {false, [local]}],
                     [{Spec, [local]}, {true, [meta]}, {true, [call_count]}, {false, [meta]}], [{true, [call_count]}, {false, [local]}], [{true, [local, meta, call_count, call_time, call_memory]}],
                     [{true, [local]}, {false, [global]}], [{true, [local]}, {false, []}]])]
        ++ [{on_load, fun() -> S = session(),
                               [begin X = trace:function(S, on_load, V, F), {X, trace:info(S, on_load, all)} end || {V, F} <-
                                  [{true, [local]}, {Spec, [local]}, {true, [call_count]}, {true, [meta]}, {false, [local]}, {true, [global]}, {false, [meta]}, {false, [global]}, {true, []}, {restart, [call_count]}, {pause, [call_count]}, {false, []}]] end},
            {on_load_items, fun() -> S = session(), trace:function(S, on_load, Spec, [local]), [{I, trace:info(S, on_load, I)} || I <- Items] end},
            {undefined_function, fun() -> S = session(), [trace:info(S, {M, F, A}, I) || {M, F, A} <- [{?MODULE, none, 9}, {no_module, f, 1}], I <- Items] end},
            {process, fun() -> S = session(), W = worker(), trace:process(S, W, true, [call, send, timestamp]), D = dead(),
                               [trace:info(S, W, flags), trace:info(S, W, tracer), trace:info(S, self(), flags), trace:info(S, self(), tracer), trace:info(S, D, flags), trace:info(S, new, tracer), trace:info(S, new_ports, flags)] end},
            {all_flags, fun() -> S = session(), W = worker(), trace:process(S, W, true, [all]), {flags, F} = trace:info(S, W, flags), F end},
            {pattern_counts, fun() -> S = session(), [{Flags, trace:function(S, P, true, Flags)} || P <- [{?MODULE, '_', '_'}, {?MODULE, plus, '_'}, {?MODULE, none, 0}, {none, '_', '_'}], Flags <- [[local], [global], [call_count], [meta]]] end},
            {system, fun() -> S = session(), [trace:info(S, system, all) | [trace:system(S, large_heap, 3000), trace:info(S, system, all), trace:system(S, large_heap, false), trace:info(S, system, all)]] end}]
        ++ [{{bad, I}, fun() -> trace:info(session(), What, Item) end} ||
               {I, {What, Item}} <- lists:enumerate([{self(), bad}, {bad, flags}, {{a, b}, traced}, {{a, b, c}, traced}, {{1, 2, 3}, traced}, {{?MODULE, plus, 2}, flags}, {send, flags}, {'receive', bad}, {on_load, bad}, {new, traced},
                                                     {{?MODULE, '_', '_'}, traced}, {self(), 1}, {system, flags}, {"", flags}, {{?MODULE, plus, 256}, traced}, {{?MODULE, plus, -1}, traced}])].

%% Times and words differ: calls do not.
measured({Kind, [_ | _] = Rows}) when Kind =:= call_time; Kind =:= call_memory -> {Kind, [rows(R) || R <- Rows]};
measured({all, All}) when is_list(All) -> {all, [measured(I) || I <- All]};
measured(Other) -> Other.

rows({Pid, Calls, S, Us}) when is_integer(S), is_integer(Us) -> {Pid, Calls, time};
rows({Pid, Calls, Words}) -> {Pid, Calls, Words}.

sessions() ->
    [{handle, fun() -> S = trace:session_create(shapes, self(), []), {Strong, {Name, Id}} = S, [is_reference(Strong), Name, is_integer(Id)] end},
     {first_session, fun() -> first_session() end},
     {info_all, fun() -> S = session(), [length(trace:session_info(all)) > 0, lists:member(trace_weak(S), trace:session_info(all))] end},
     {info_of, fun() -> S = session(), W = worker(), trace:process(S, W, true, [call]), trace:function(S, {?MODULE, plus, 2}, true, []),
                        Weak = trace_weak(S),
                        [[case trace:session_info(What) of undefined -> undefined; L -> lists:member(Weak, L) end || What <- [W, self(), {?MODULE, plus, 2}, {?MODULE, minus, 2}, new_processes, new_ports, new, send, 'receive', on_load, all]]] end},
     {info_dead, fun() -> trace:session_info(dead()) end},
     {info_no_function, fun() -> trace:session_info({?MODULE, none, 7}) end},
     {weak_works, fun() -> S = session(), Weak = trace_weak(S), W = worker(), [trace:process(Weak, W, true, [call]), trace:info(S, W, flags), trace:session_destroy(Weak), trace:session_destroy(Weak), trace:session_destroy(S)] end},
     {gone_with_the_handle, fun() -> W = worker(), Weak = weak_only(W), erlang:garbage_collect(), timer:sleep(50), erlang:garbage_collect(), [lists:member(Weak, trace:session_info(all)), trace:session_info(W), catch_class(fun() -> trace:process(Weak, W, true, [call]) end)] end},
     {name_collision, fun() -> A = session(), B = session(), A =/= B end}]
        ++ [{{destroyed, I}, fun() -> S = session(), true = trace:session_destroy(S), F(S) end} || {I, F} <-
             [{process, fun(S) -> trace:process(S, self(), true, [call]) end}, {port, fun(S) -> trace:port(S, all, true, [send]) end},
              {function, fun(S) -> trace:function(S, {?MODULE, plus, 2}, true, []) end}, {send, fun(S) -> trace:send(S, true, []) end},
              {recv, fun(S) -> trace:recv(S, true, []) end}, {info, fun(S) -> trace:info(S, self(), flags) end},
              {delivered, fun(S) -> trace:delivered(S, all) end}, {destroy, fun(S) -> trace:session_destroy(S) end},
              {system, fun(S) -> trace:system(S, large_heap, 100) end}, {info_all, fun(S) -> lists:member(trace_weak(S), trace:session_info(all)) end}]]
        ++ [{{destroyed_weak, I}, fun() -> S = session(), true = trace:session_destroy(S), F(trace_weak(S)) end} || {I, F} <-
             [{process, fun(S) -> trace:process(S, self(), true, [call]) end}, {destroy, fun(S) -> trace:session_destroy(S) end}, {info, fun(S) -> trace:info(S, self(), flags) end}]].

first_session() -> skip.

weak_only(W) ->
    S = session(),
    1 = trace:process(S, W, true, [call]),
    trace_weak(S).

catch_class(F) -> try F() catch C:R -> {C, R} end.

%% How many processes there are depends on the runtime.
some(N) when N > 1 -> many;
some(N) -> N.

bad_process() ->
    Me = self(),
    Bad = [{Me, true, [bad]}, {Me, true, bad}, {Me, true, [call | bad]}, {Me, maybe_, [call]}, {Me, 1, [call]}, {none, true, [call]}, {"", true, [call]},
           {Me, true, [{tracer, Me}]}, {Me, true, [{tracer, m, s}]}, {new_processes, true, [call]}, {existing_processes, true, [call]}, {processes, true, [call]}, {ports, true, [send]}, {existing_ports, true, [send]},
           {all, true, [cpu_timestamp]}, {Me, true, [cpu_timestamp]}, {new, true, [cpu_timestamp]}, {Me, true, [ports]}, {Me, true, [running_ports]}, {Me, true, []}, {Me, false, []}, {Me, true, [scheduler_id]}, {make_ref(), true, [call]}],
    [{{process, I}, fun() -> some(trace:process(session(), W, H, F)) end} || {I, {W, H, F}} <- lists:enumerate(Bad)]
        ++ [{{port, I}, fun() -> some(trace:port(session(), W, H, F)) end} || {I, {W, H, F}} <- lists:enumerate([{none, true, [send]}, {Me, true, [send]}, {all, true, [call]}, {all, true, [procs]}, {new, true, [bad]}, {all, x, [send]}, {all, true, x}, {existing, true, [ports]} ]), I < 8]
        ++ [{dead, fun() -> trace:process(session(), dead(), true, [call]) end},
            {counts, fun() -> S = session(), [trace:process(S, existing, true, [call]) =:= length(erlang:processes()) - 1, trace:process(S, new, true, [call]), trace:process(S, all, false, [all]) =:= length(erlang:processes()) ] end}].

bad_function() ->
    F = {?MODULE, plus, 2},
    Bad = [{F, true, [bad]}, {F, true, bad}, {F, bad, [local]}, {F, [bad], [local]}, {F, [{'_', [], [{none}]}], [local]}, {{'_', plus, 2}, true, [local]}, {{?MODULE, '_', 2}, true, [local]}, {{1, 2, 3}, true, []}, {{?MODULE, plus}, true, []},
           {{?MODULE, plus, a}, true, []}, {{?MODULE, plus, -1}, true, []}, {{?MODULE, plus, 300}, true, []}, {F, true, [global, local]}, {F, true, [global, call_count]}, {F, true, [global, meta]}, {F, restart, [local]}, {F, restart, []}, {F, pause, [local]}, {F, pause, [meta]}, {F, restart, [call_count]},
           {F, [], [call_count]}, {F, [{'_', [], []}], [call_count]}, {F, [{'_', [], []}], [call_time, local]}, {F, true, [{meta, self()}]}, {F, true, [{meta, m, s}]}, {on_load, [{'_', [], []}], [call_count]}, {bad, true, []}, {F, true, [local, local]}, {F, [{'_', [], [{message, {none}}]}], []}, {F, [{['$1'], [{bad, x}], []}], []}, {"", true, []},
           {F, true, [global | bad]}, {send, true, []}, {F, [{'_', []}], []}, {F, [{'_', x, []}], []}, {F, [{x, [], []}], []}, {F, [{"ab", [], []}], []}, {F, [{['$100000000'], [], []}], []}],
    [{{function, I}, fun() -> trace:function(session(), W, S, Fl) end} || {I, {W, S, Fl}} <- lists:enumerate(Bad)].

bad_events() ->
    Bad = [{true, [local]}, {true, [bad]}, {bad, []}, {restart, []}, {[{'_', [], [{none}]}], []}, {true, bad}, {[{'_', [], [{return_trace}]}], []}, {[{'_', [], [{caller}]}], []}, {[{'_', [], [{silent, true}]}], []}, {[], []}, {false, []}, {[{['_'], [], []}], []}],
    [{{Name, I}, fun() -> trace:Name(session(), S, F) end} || Name <- [send, recv], {I, {S, F}} <- lists:enumerate(Bad)]
        ++ [{{delivered, I}, fun() -> trace:delivered(session(), W) end} || {I, W} <- lists:enumerate([bad, 1, self_port, {x}])]
        ++ [{delivered_dead, fun() -> D = dead(), R = trace:delivered(session(), D), receive {trace_delivered, D, R} -> ok after 1000 -> none end end}].

bad_session() ->
    [{{create, I}, fun() -> {_, {N, _}} = trace:session_create(Name, Tracer(), Opts), N end} || {I, {Name, Tracer, Opts}} <-
        lists:enumerate([{1, fun self/0, []}, {"n", fun self/0, []}, {n, fun() -> n end, []}, {n, fun self/0, [x]}, {n, fun self/0, x}, {n, fun dead/0, []}, {n, fun() -> {no_such_tracer, s} end, []}, {n, fun() -> {erl_tracer, self()} end, []},
                         {n, fun() -> undefined end, []}, {n, fun() -> shape end, []}, {n, fun() -> {1, s} end, []}, {n, fun() -> {erl_tracer, s} end, []}, {n, fun() -> {lists, s} end, []}, {n, fun make_ref/0, []}, {n, fun self/0, [{a, b}]}])]
        ++ [{{handle, I}, fun() -> trace:process(H, self(), true, [call]) end} || {I, H} <- lists:enumerate([bad, {a, b}, {make_ref(), {shapes, 0}}, {make_ref(), {shapes, 1000000}}, {shapes, 1000000}, {legacy, 0}, {1, 2, 3}, undefined, default])]
        ++ [{{info, I}, fun() -> trace:session_info(W) end} || {I, W} <- lists:enumerate([bad, {a, b}, {?MODULE, '_', '_'}, "x", make_ref(), {1, 2, 3}])].

legacy() ->
    Me = self(),
    Off = fun() -> erlang:trace(all, false, [all]), erlang:trace_pattern({'_', '_', '_'}, false, [local, meta, call_count, call_time, call_memory]), erlang:trace_pattern({'_', '_', '_'}, false, [global]) end,
    Do = fun(F) -> fun() -> R = try F() catch C:E:St -> failure(C, E, St) end, Off(), R end end,
    Calls = [fun() -> erlang:trace(self(), true, [bad]) end, fun() -> erlang:trace(self(), x, [call]) end, fun() -> erlang:trace(Me, true, [{tracer, Me}]) end, fun() -> erlang:trace(bad, true, [call]) end, fun() -> erlang:trace(dead(), true, [call]) end,
             fun() -> erlang:trace(self(), true, [{tracer, dead()}]) end, fun() -> erlang:trace(self(), true, [{tracer, no_such_tracer, s}]) end, fun() -> erlang:trace(self(), true, [{tracer, lists, s}]) end, fun() -> erlang:trace(self(), true, [{tracer, self()}]) end,
             fun() -> erlang:trace(all, true, [{tracer, erl_tracer, s}, call]) > 0 end, fun() -> erlang:trace(self(), true, [call | x]) end, fun() -> erlang:trace_pattern({?MODULE, plus, 2}, true, [{meta, no_such_tracer, s}]) end, fun() -> erlang:trace_pattern({?MODULE, plus, 2}, true, [{meta, lists, s}]) end,
             fun() -> erlang:trace_pattern({?MODULE, plus, 2}, x, []) end, fun() -> erlang:trace_pattern({?MODULE, plus, 2}, true, [x]) end, fun() -> erlang:trace_pattern(x, true) end, fun() -> erlang:trace_pattern({?MODULE, plus, 2}, true) end, fun() -> erlang:trace_pattern(send, true, []) end, fun() -> erlang:trace_pattern(on_load, true, [local]) end,
             fun() -> erlang:trace_info(self(), x) end, fun() -> erlang:trace_info(x, flags) end, fun() -> erlang:trace_info(dead(), flags) end, fun() -> erlang:trace_delivered(x) end, fun() -> erlang:trace_info({?MODULE, plus, 2}, all) end,
             fun() -> erlang:trace_info({?MODULE, none, 2}, all) end, fun() -> erlang:trace_info(send, all) end, fun() -> erlang:trace_info(new, flags) end, fun() -> erlang:trace_info(new_processes, tracer) end, fun() -> erlang:trace_info(on_load, all) end,
             fun() -> erlang:trace(new, true, [cpu_timestamp]) end, fun() -> [erlang:trace(all, true, [cpu_timestamp]), erlang:trace(all, false, [cpu_timestamp])] end, fun() -> erlang:trace_pattern({?MODULE, plus, 2}, [{'_', [], [{none}]}], [local]) end],
    [{I, Do(F)} || {I, F} <- lists:enumerate(Calls)]
        ++ [{default_tracer, Do(fun() -> W = worker(), 1 = erlang:trace(W, true, [send]), tell(W, fun() -> self() ! x end), R = erlang:trace_delivered(W), receive {trace_delivered, W, R} -> ok end, [M || M <- flush(), not is_order(M)] ++ [erlang:trace_info(W, tracer), trace:session_info(W)] end)},
            {two_tracers, Do(fun() -> W = worker(), T = worker(), 1 = erlang:trace(W, true, [send, {tracer, T}]), erlang:trace(W, true, ['receive']) end)},
            {meta_default, Do(fun() -> 1 = erlang:trace_pattern({?MODULE, plus, 2}, true, [meta]), ?MODULE:plus(1, 2), R = erlang:trace_delivered(all), receive {trace_delivered, all, R} -> ok end, flush() ++ [erlang:trace_info({?MODULE, plus, 2}, meta)] end)},
            {module_with_state, Do(fun() -> W = worker(), 1 = erlang:trace(W, true, [send, {tracer, erl_tracer, self()}]), tell(W, fun() -> self() ! x end), R = erlang:trace_delivered(W), receive {trace_delivered, W, R} -> ok end, [M || M <- flush(), not is_order(M)] ++ [erlang:trace_info(W, tracer)] end)}].

tracers() ->
    Own = fun(How) -> fun() ->
             Session = trace:session_create(own, self(), []),
             R = try How(Session) catch C:E:St -> failure(C, E, St) end,
             R ++ [[M || M <- flush()]]
          end end,
    [{own_tracee, Own(fun(S) -> [trace:process(S, self(), true, [send, call, procs]), self() ! hello, trace:info(S, self(), flags), trace:info(S, self(), tracer), trace:function(S, {?MODULE, plus, 2}, true, [local]), plus(1, 2)] end)},
     {dies, fun() ->
                    T = spawn(fun() -> idle() end), S = trace:session_create(dies, T, []), W = worker(),
                    1 = trace:process(S, W, true, [call, send]),
                    1 = trace:function(S, {?MODULE, plus, 2}, true, [local]),
                    0 = trace:process(S, new, true, [procs]),
                    name(T, tracer),
                    Before = [trace:info(S, W, flags), trace:info(S, W, tracer), trace:info(S, new, tracer)],
                    M = monitor(process, T), exit(T, kill), receive {'DOWN', M, _, _, _} -> ok end,
                    tell(W, fun() -> plus(1, 2) end),
                    After = [trace:info(S, W, flags), trace:info(S, W, tracer), trace:info(S, new, tracer), trace:info(S, new, flags), trace:info(S, {?MODULE, plus, 2}, traced), catch_class(fun() -> trace:process(S, W, true, [call]) end), trace:info(S, W, flags), trace:session_destroy(S)],
                    Before ++ After
            end},
     {meta_dies, fun() ->
                    T = spawn(fun() -> idle() end), S = trace:session_create(dies, T, []), name(T, tracer),
                    1 = trace:function(S, {?MODULE, plus, 2}, true, [meta]),
                    A = trace:info(S, {?MODULE, plus, 2}, meta),
                    M = monitor(process, T), exit(T, kill), receive {'DOWN', M, _, _, _} -> ok end,
                    [A, plus(1, 2), trace:info(S, {?MODULE, plus, 2}, meta), plus(1, 2), trace:info(S, {?MODULE, plus, 2}, meta)]
            end},
     {dies_in_the_middle, fun() ->
                    T = spawn(fun() -> receive {trace, _, call, _} -> exit(enough) end end), S = trace:session_create(dies, T, []), W = worker(),
                    1 = trace:process(S, W, true, [call]), 1 = trace:function(S, {?MODULE, plus, 2}, [{'_', [], [{return_trace}]}], [local]),
                    M = monitor(process, T),
                    tell(W, fun() -> [plus(N, 1) || N <- lists:seq(1, 2000)], ok end), receive {'DOWN', M, _, _, R} -> ok end,
                    tell(W, fun() -> plus(1, 2) end),
                    [R, trace:info(S, W, flags), tell(W, fun() -> plus(1, 2) end)]
            end},
     {port_tracer, fun() -> P = open_port({spawn_executable, "/bin/cat"}, [binary]), S = trace:session_create(port, P, []), name(P, tracer), W = worker(), 1 = trace:process(S, W, true, [send]), R = trace:info(S, W, tracer), port_close(P), [R, trace:info(S, W, tracer)] end},
     {sensitive, fun() -> S = session(), W = worker(), 1 = trace:process(S, W, true, [call, send, procs]), 1 = trace:function(S, {?MODULE, plus, 2}, true, [local]),
                          tell(W, fun() -> process_flag(sensitive, true), plus(1, 2), spawn(?MODULE, spawned, []), self() ! x, process_flag(sensitive, false), plus(3, 4) end), [trace:info(S, W, flags) | heard(S)] end},
     {two_sessions, fun() -> A = session(), B = session(), W = worker(), trace:process(A, W, true, [call]), trace:process(B, W, true, [call, arity]),
                             [1 = trace:function(S, {?MODULE, plus, 2}, Spec, [local]) || {S, Spec} <- [{A, true}, {B, [{'_', [], [{return_trace}]}]}]], tell(W, fun() -> plus(1, 2) end), Both = heard(A), trace:session_destroy(B), tell(W, fun() -> plus(3, 4) end), [Both, heard(A)] end}].

system() ->
    Try = fun(F) -> try F() catch C:R -> {C, R} end end,
    Events = [long_gc, long_schedule, long_message_queue, large_heap, busy_port, busy_dist_port],
    Values = [true, false, 0, 1, 233, 1000, -1, a, {1, 2}, {2, 1}, {0, 1}, {1, 0}, {a, b}, {1, 1}, 1 bsl 70, {1, 1 bsl 70}, 1.0],
    [{{set, E}, fun() -> [begin S = session(), R = Try(fun() -> trace:system(S, E, V) end), I = trace:info(S, system, all), trace:session_destroy(S), {V, R, I} end || V <- Values] end} || E <- Events]
        ++ [{{set, bad}, fun() -> trace:system(session(), bad, true) end}, {{set, number}, fun() -> trace:system(session(), 1, true) end},
            {monitor, fun() -> Me = self(), Dead = dead(),
                               Rs = [{A, Try(fun() -> erlang:system_monitor(P(), A) end), Try(fun() -> case erlang:system_monitor() of {Pid, L} -> {Pid, L}; U -> U end end)} ||
                                   {P, A} <- [{fun self/0, [A]} || A <- [busy_port, busy_dist_port, {long_gc, 100}, {long_gc, 0}, {long_gc, -1}, {long_gc, a}, {large_heap, 1}, {large_heap, 100000}, {long_schedule, 10}, {long_schedule, 0}, {long_message_queue, {1, 5}}, {long_message_queue, {5, 1}}, {long_message_queue, 5}, bad, {bad, 1}]]
                                       ++ [{fun self/0, [{long_gc, 10}, {large_heap, 5000}, busy_port, busy_dist_port, {long_schedule, 5}, {long_message_queue, {10, 20}}]}, {fun() -> Dead end, [busy_port]}, {fun self/0, []}, {fun self/0, bad}, {fun self/0, [busy_port | bad]}, {fun() -> bad end, [busy_port]}]],
                               [erlang:system_monitor({Me, []}) =/= x, erlang:system_monitor(undefined) | Rs] end},
            {large_heap, fun() -> system_event(large_heap, 50000, fun() -> gc_work(200000) end) end},
            {long_gc, fun() -> system_event(long_gc, 1, fun() -> L = lists:seq(1, 3000000), erlang:garbage_collect(), length(L) end) end},
            {long_schedule, fun() -> system_event(long_schedule, 1, fun() -> long_turn() end) end},
            {long_message_queue, fun() -> system_event(long_message_queue, {2, 10}, fun() -> [self() ! N || N <- lists:seq(1, 20)], receive 20 -> ok end, [receive N -> ok end || N <- lists:seq(1, 19)], receive after 10 -> ok end end) end},
            {busy_port, fun() -> system_event(busy_port, true, fun() -> busy_port(fun wait_by_command/1) end) end},
            {busy_port_of_message, fun() -> system_event(busy_port, true, fun() -> busy_port(fun wait_by_message/1) end) end},
            {busy_port_once, fun() -> waits_once() end},
            {busy_nosuspend, fun() -> Me = self(), spawn(fun() -> busy_port(fun(Port) -> Me ! send_without_waiting(Port) end) end), receive What -> What end end},
            {busy_port_off, fun() -> system_event(busy_port, false, fun() -> busy_port(fun wait_by_command/1) end) end},
            {busy_port_not_waited_for, fun() -> system_event(busy_port, true, fun() -> busy_port(fun(_) -> ok end) end) end},
            {long_schedule_within, fun() -> system_event(long_schedule, 1000000, fun() -> long_turn() end) end},
            {long_schedule_off, fun() -> system_event(long_schedule, false, fun() -> long_turn() end) end},
            {limits_of_sessions, fun() -> limits_of_sessions() end},
            {of_the_receiver, fun() -> of_the_receiver() end},
            {old_large_heap, fun() -> Me = self(), W = worker(), erlang:system_monitor(Me, [{large_heap, 50000}]), tell(W, fun() -> gc_work(200000) end), timer:sleep(10), M = keyed(W), erlang:system_monitor(undefined), M end}].

system_event(Event, Value, Fun) ->
    Session = session(),
    W = spawn(fun() -> receive {do, From} -> Fun(), From ! did end end),
    name(W, worker),
    ok = trace:system(Session, Event, Value),
    W ! {do, self()},
    receive did -> ok after 15000 -> hangs end,
    timer:sleep(20),
    trace:session_destroy(Session),
    keyed(W).

%% A turn of many milliseconds: what one BIF does is not interrupted.
long_turn() -> lists:keyfind(none, 1, [{N, a} || N <- lists:seq(1, 1500000)]).

%% Each session has limits of its own: of two, one hears.
limits_of_sessions() ->
    {Other, _} = spawn_monitor(fun() -> Mine = session(), ok = trace:system(Mine, long_schedule, 1000000), receive {what, From} -> From ! {heard, flush()}, trace:session_destroy(Mine) end end),
    Heard = system_event(long_schedule, 1, fun() -> long_turn() end),
    Other ! {what, self()},
    receive {heard, Others} -> [Heard, Others] end.

%% A receiver does not hear of itself.
of_the_receiver() ->
    Session = session(),
    [ok = trace:system(Session, Event, Value) || {Event, Value} <- [{long_schedule, 1}, {busy_port, true}, {large_heap, 50000}, {long_message_queue, {2, 10}}]],
    long_turn(),
    [self() ! N || N <- lists:seq(1, 20)],
    busy_port(fun wait_by_command/1),
    timer:sleep(20),
    Info = trace:info(Session, system, all),
    trace:session_destroy(Session),
    [M || M <- flush(), is_tuple(M), element(1, M) =:= monitor] ++ [Info].

%% The messages about one process: with an Info list, its keys.
keyed(W) ->
    lists:uniq([named(case element(4, M) of
                   [_ | _] = Info -> setelement(4, M, [{K, is(V)} || {K, V} <- Info]);
                   _ -> M
               end) || M <- flush(), element(2, M) =:= W, element(1, M) =:= monitor]).

is(V) when is_integer(V) -> integer;
is({_, _, _}) -> mfa;
is(undefined) -> mfa;
is(V) -> V.

%% A port whose program reads nothing gets busy. Who waits for it is told what became of it.
busy_port(Wait) -> busy_port(Wait, 50).

busy_port(Wait, Milliseconds) ->
    process_flag(trap_exit, true),
    Port = open_port({spawn_executable, "/bin/sleep"}, [{args, ["10"]}, binary]),
    Chunk = binary:copy(<<0>>, 65536),
    Fill = fun Fill(0) -> never_busy;
               Fill(N) -> case port_command(Port, Chunk, [nosuspend]) of true -> Fill(N - 1); false -> busy end
           end,
    busy = Fill(1000),
    spawn(fun() -> timer:sleep(Milliseconds), exit(Port, kill) end),
    catch Wait(Port),
    receive {'EXIT', Port, killed} -> ok end.

%% Who waits is suspended: messages do not have it try again.
waits_once() ->
    Session = session(),
    ok = trace:system(Session, busy_port, true),
    W = name(spawn(fun() -> busy_port(fun wait_by_command/1, 10000) end), worker),
    First = receive {monitor, W, busy_port, _} = M -> M end,
    [begin W ! noise, timer:sleep(5) end || _ <- [1, 2, 3]],
    Status = process_info(W, status),
    timer:sleep(20),
    trace:session_destroy(Session),
    exit(W, kill),
    [First, Status | flush()].

wait_by_command(Port) -> port_command(Port, <<"more">>).

wait_by_message(Port) -> Port ! {self(), {command, <<"more">>}}.

send_without_waiting(Port) -> erlang:send(Port, {self(), {command, <<"more">>}}, [nosuspend]).

seq_trace() ->
    Tokens = [{label, 17}, {label, a}, {label, {any, "term"}}, {serial, {1, 2}}, {serial, {-1, 0}}, {serial, x}, {send, true}, {send, x}, {'receive', true}, {print, true}, {timestamp, true}, {monotonic_timestamp, true}, {strict_monotonic_timestamp, true}, {bad, true}, {1, 2}],
    Flags = [[], [timestamp], [monotonic_timestamp], [strict_monotonic_timestamp], [timestamp, monotonic_timestamp], [strict_monotonic_timestamp, monotonic_timestamp], [timestamp, strict_monotonic_timestamp, monotonic_timestamp]],
    [{tokens, fun() -> R = [{C, V, catch_class(fun() -> seq_trace:set_token(C, V) end), catch_class(fun() -> seq_trace:get_token(C) end), seq_trace:get_token()} || {C, V} <- Tokens], seq_trace:set_token([]), R ++ [seq_trace:get_token()] end},
     {set_whole, fun() -> [catch_class(fun() -> seq_trace:set_token(T) end) || T <- [[], {0, 0, 0, 0}, {1, 17, 0, self(), 0}, {1, lbl, 2, self(), 1}, {256, 17, 0, self(), 0}, {1, 17, -1, self(), 0}, {1, 17, 0, no, 0}, x, {1, 2, 3}]] ++ [seq_trace:get_token(), seq_trace:set_token([]), seq_trace:set_token([])] end},
     {tracer, fun() -> [catch_class(fun() -> seq_trace:set_system_tracer(T) end) || T <- [self(), false, x, 1, dead(), {no_such_tracer, s}, {lists, s}, {erl_tracer, self()}, false, undefined]] ++ [seq_trace:get_system_tracer(), seq_trace:set_system_tracer(false)] end},
     {print_bad, fun() -> [catch_class(fun() -> seq_trace:print(x, y) end), catch_class(fun() -> seq_trace:print(x) end), seq_trace:print(1, x)] end},
     {reset, fun() -> seq_trace:set_token(label, 1), [seq_trace:get_token() =/= [], seq_trace:reset_trace(), seq_trace:get_token()] end}]
        ++ [{{flags, F}, fun() -> sequence(F, fun(P) -> P ! {self(), hello}, receive {P, hello} -> ok end, seq_trace:print(printed), seq_trace:print(17, labelled), seq_trace:print(18, other) end) end} || F <- Flags]
        ++ [{spawned, fun() -> sequence([], fun(_) -> P = spawn_link(fun() -> seq_trace:print({in_child, seq_trace:get_token(label)}), exit(bye) end), receive {'EXIT', P, bye} -> ok end end) end},
            {timer, fun() -> sequence([], fun(_) -> erlang:send_after(1, self(), t), receive t -> ok end, seq_trace:print(seq_trace:get_token(label)) end) end},
            {port, fun() -> sequence([], fun(_) -> P = open_port({spawn_executable, "/bin/cat"}, [binary]), P ! {self(), {command, "x"}}, receive {P, {data, _}} -> ok end, seq_trace:print(seq_trace:get_token(label)), port_close(P) end) end},
            {exit_2, fun() -> sequence([], fun(P) -> link(P), exit(P, bye), receive {'EXIT', P, bye} -> ok end, ok end) end},
            {monitor, fun() -> sequence([], fun(P) -> M = monitor(process, P), exit(P, bye), receive {'DOWN', M, _, _, _} -> ok end, seq_trace:print(seq_trace:get_token(label)) end) end},
            {names, fun() -> sequence([], fun(P) -> register(shape, P), shape ! {self(), hi}, receive {P, hi} -> ok end, unregister(shape) end) end},
            {other_message_clears, fun() -> sequence([], fun(_) -> Me = self(), Old = seq_trace:set_token([]), spawn(fun() -> receive after 5 -> Me ! clean end end), seq_trace:set_token(Old), seq_trace:print(before), receive clean -> ok end, seq_trace:print(never), Me ! {token, seq_trace:get_token()} end) end},
            {system_tracer_itself, fun() -> seq_trace:set_system_tracer(self()), seq_trace:set_token(label, 17), seq_trace:set_token(send, true), W = worker(), W ! ignored, seq_trace:set_token([]), seq_trace:set_system_tracer(false), timer:sleep(10), flush() end},
            {info, fun() -> seq_trace:set_token(label, 1), I = process_info(self(), sequential_trace_token), seq_trace:set_token([]), I end}].

%% What the system tracer hears while a process with a token does Fun with a partner.
sequence(Flags, Fun) ->
    seq_trace:set_system_tracer(self()),
    Partner = name(spawn(fun P() -> receive {From, What} -> From ! {self(), What}, P() end end), partner),
    {W, M} = spawn_monitor(fun() ->
                              process_flag(trap_exit, true),
                              seq_trace:set_token(label, 17),
                              [seq_trace:set_token(F, true) || F <- [send, 'receive', print | Flags]],
                              Fun(Partner),
                              seq_trace:set_token([])
                           end),
    name(W, worker),
    receive {'DOWN', M, _, _, _} -> ok end,
    timer:sleep(10),
    seq_trace:set_system_tracer(false),
    exit(Partner, kill),
    [seq_stamped(T) || T <- flush()].

seq_stamped({seq_trace, Label, Info, Stamp}) -> {seq_trace, Label, Info, stamp(Stamp)};
seq_stamped(Other) -> Other.
