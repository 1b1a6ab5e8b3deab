%% Arguments that each fit and together ask for too much, and what stands in each other's way.
-module(limits).

-export([
    arguments_of_calls/0,
    atoms_of_ports/0,
    code_finished_by_many/0,
    counters_in_many_steps/0,
    measures_of_many_processes/0,
    nodes_of_maps/0,
    pids_of_many_nodes/0,
    purges_by_others/0,
    random_bytes/0,
    sessions_that_go_with_their_processes/0,
    tracer_that_fails/0
]).

%% More than OpenSSL counts.
random_bytes() ->
    [outcome(fun() -> crypto:strong_rand_bytes(Count) end) || Count <- [1 bsl 32, 1 bsl 40, 1 bsl 64, -1, a]].

%% A node of a map's trie counts no keys.
nodes_of_maps() ->
    Map = maps:from_keys(lists:seq(1, 1000), a),
    Node = hd(erts_internal:map_hashmap_children(Map)),
    [element(1, element(2, outcome(Fun)))
     || Fun <- [fun() -> maps:keys(Node) end, fun() -> maps:values(Node) end, fun() -> maps:merge(Node, Map) end,
                fun() -> maps:merge(Map, Node) end, fun() -> erts_debug:map_info(Node) end]].

%% A command is a port's name, and no atom.
atoms_of_ports() ->
    run("true first"),
    Atoms = erlang:system_info(atom_count),
    [run("true " ++ integer_to_list(Number)) || Number <- lists:seq(1, 20)],
    erlang:system_info(atom_count) - Atoms.

run(Command) ->
    Port = open_port({spawn, Command}, [exit_status]),
    receive {Port, {exit_status, Status}} -> Status end.

counters_in_many_steps() ->
    Table = ets:new(table, []),
    true = ets:insert(Table, list_to_tuple([key | lists:seq(2, 10)])),
    Steps = [{2 + Number rem 9, Number, 40, Number} || Number <- lists:seq(1, 50)],
    Few = ets:update_counter(Table, key, lists:sublist(Steps, 16)),
    Many = ets:update_counter(Table, key, Steps),
    [Few, Many, ets:tab2list(Table)].

%% Only the process that has looked for users of the code may.
purges_by_others() ->
    [outcome(fun() -> erts_internal:purge_module(Name, Step) end)
     || {Name, Step} <- [{lists, prepare}, {lists, complete}, {no_module, abort}, {lists, no_step}, {1, prepare}]].

%% A process that has made a session dies, and another one makes the next, while the first is still being cleared up.
sessions_that_go_with_their_processes() ->
    Makes = fun() -> {_, {limits, _}} = trace:session_create(limits, self(), []), exit(made) end,
    lists:usort([receive {'DOWN', Monitor, process, _, Reason} -> Reason end
                 || _ <- lists:seq(1, 500), {_, Monitor} <- [spawn_monitor(Makes)]]).

%% The port that is told of names ends in the middle of that, as nothing can be written to its file.
tracer_that_fails() ->
    {Pid, Monitor} = spawn_monitor(fun() ->
                                           process_flag(trap_exit, true),
                                           exit(names_told((dbg:trace_port(file, "/dev/full"))()))
                                   end),
    receive {'DOWN', Monitor, process, Pid, Reason} -> Reason end.

names_told(Port) ->
    1 = erlang:trace(self(), true, [procs, {tracer, Port}]),
    names_until_gone(Port).

names_until_gone(Port) ->
    true = register(limits_name, self()),
    true = unregister(limits_name),
    receive {'EXIT', Port, Reason} -> Reason
    after 0 -> names_until_gone(Port)
    end.

%% No function has as many; only more than there are registers are too many to be told.
arguments_of_calls() ->
    Outcome = fun(Count, Call) -> element(2, outcome(fun() -> Call(lists:duplicate(Count, a)) end)) end,
    [{Count, Outcome(Count, fun(Args) -> apply(lists, no_such_function, Args) end),
      Outcome(Count, fun(Args) -> apply(lists, no_such_function, Args ++ b) end),
      Outcome(Count, fun(Args) -> apply(erlang, apply, Args) end)}
     || Count <- [255, 256, 1022, 1023, 1024, 10_000]].

%% Of several that finish the same code one does.
code_finished_by_many() ->
    Name = limits_code,
    Forms = [{attribute, 1, module, Name}],
    {ok, Name, Code} = compile:forms(Forms, []),
    lists:usort([finished(Name, erlang:prepare_loading(Name, Code)) || _ <- lists:seq(1, 100)]).

finished(Name, Prepared) ->
    Finish = fun() -> exit(outcome(fun() -> erlang:finish_loading([Prepared]) end)) end,
    Processes = [spawn_monitor(Finish) || _ <- lists:seq(1, 4)],
    Outcomes = [receive {'DOWN', Monitor, process, Pid, Outcome} -> Outcome end || {Pid, Monitor} <- Processes],
    Old = erlang:check_old_code(Name),
    true = code:delete(Name),
    false = code:purge(Name),
    {lists:sort(Outcomes), Old}.

%% One process that asks for a new node after the other looks at those of all others no more often.
pids_of_many_nodes() ->
    Count = 100_000,
    Pids = [<<$X, $w, 1, $a, 0:32, 0:32, Creation:32>> || Creation <- lists:seq(1, Count)],
    length(binary_to_term(iolist_to_binary([<<131, $l, Count:32>>, Pids, $j]))).

%% The same of two measures of one function.
measures_of_many_processes() ->
    Session = trace:session_create(limits, self(), []),
    1 = trace:function(Session, {?MODULE, measured, 1}, true, [call_time, call_memory]),
    trace:process(Session, new, true, [call]),
    Processes = [spawn_monitor(fun() -> measured(Number) end) || Number <- lists:seq(1, 20_000)],
    [receive {'DOWN', Monitor, process, Pid, normal} -> ok end || {Pid, Monitor} <- Processes],
    {all, Of} = trace:info(Session, {?MODULE, measured, 1}, all),
    true = trace:session_destroy(Session),
    [length(element(2, lists:keyfind(Measure, 1, Of))) || Measure <- [call_time, call_memory]].

measured(Number) -> Number.

outcome(Fun) ->
    try Fun()
    catch Class:Reason -> {Class, Reason}
    end.
