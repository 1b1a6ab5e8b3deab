%% Arguments that each fit and together ask for too much, and what stands in each other's way.
-module(limits).

-export([
    atoms_of_ports/0,
    counters_in_many_steps/0,
    nodes_of_maps/0,
    purges_by_others/0,
    random_bytes/0,
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

outcome(Fun) ->
    try Fun()
    catch Class:Reason -> {Class, Reason}
    end.
