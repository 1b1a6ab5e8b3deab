%% Random programs whose processes race, for `cargo xtask replays --random`: `main/0` runs those of a number, one after the
%% other, and prints what each process has seen. Their files are in the working directory.
%%
%%   erl -noshell -kernel race_seed 17 -s random_race main -s init stop
-module(random_race).
-export([main/0]).

-define(PROGRAMS, 4).

main() ->
    {ok, Seed} = application:get_env(kernel, race_seed),
    [program(Seed * ?PROGRAMS + N) || N <- lists:seq(1, ?PROGRAMS)],
    ok.

program(Seed) ->
    rand:seed(exsss, {Seed, 17, 5}),
    Kinds = [one_of(kinds()) || _ <- [1, 2, 3]],
    Shared = shared(),
    Processes = between(2, 6),
    Programs = [actions(Kinds, Processes, 2) || _ <- lists:seq(1, Processes)],
    Self = self(),
    Started = [spawn_monitor(fun() -> starts(Actions, Shared, Self) end) || Actions <- Programs],
    Pids = [Pid || {Pid, _} <- Started],
    [Pid ! {go, Pids} || Pid <- Pids],
    Ends = [ended(Pid, Ref) || {Pid, Ref} <- Started],
    io:format("~w ~w~n~p~n", [Seed, Kinds, Ends]),
    ended(Shared).

shared() ->
    [try unregister(Name) catch error:badarg -> free end || Name <- [one, two]],
    empty(),
    #{set => ets:new(set, [public]), ordered => ets:new(ordered, [public, ordered_set, named_table]),
      atomics => atomics:new(2, []), counters => counters:new(2, [])}.

ended(#{set := Set, ordered := Ordered}) ->
    io:format("~p~n~p~n", [lists:sort(ets:tab2list(Set)), ets:tab2list(Ordered)]),
    io:format("~p~n", [[short(prim_file:read_file(File)) || File <- files()]]),
    empty(),
    ets:delete(Set),
    ets:delete(Ordered),
    persistent_term:erase(random_race).

ended(Pid, Ref) ->
    receive
        {Pid, Seen} ->
            receive {'DOWN', Ref, process, Pid, _} -> Seen after 1000 -> left(Pid, Seen) end;
        {'DOWN', Ref, process, Pid, Reason} -> short(Reason)
    after 1000 -> left(Pid, none)
    end.

%% Two that have suspended each other do not end.
left(Pid, Seen) -> exit(Pid, kill), {left, Seen}.

starts(Actions, Shared, Parent) ->
    receive {go, Pids} -> ok end,
    put(pids, Pids),
    put(shared, Shared),
    Parent ! {self(), does(Actions)}.

does(Actions) -> [{name(Action), short(done(Action))} || Action <- Actions].

name(Action) when is_atom(Action) -> Action;
name(Action) -> element(1, Action).

done(Action) ->
    try action(Action) catch Class:Reason -> {Class, Reason} end.

%% What is seen, without what is too long to print.
short({Reason, [{_, _, _, _} | _]}) -> short(Reason);
short(Term) ->
    case erts_debug:flat_size(Term) > 40 of true -> {size, erts_debug:flat_size(Term), erlang:phash2(Term)}; false -> Term end.

pid(J) -> lists:nth(J, get(pids)).

shared(What) -> maps:get(What, get(shared)).

%% What processes do to each other.
action({send, J, What}) -> pid(J) ! {What, self()}, ok;
action({send_large, J, N}) -> pid(J) ! {large, lists:seq(1, N)}, ok;
action({send_binary, J, N}) -> pid(J) ! {binary, binary:copy(<<"x">>, N)}, ok;
action({take, Time}) -> receive Message -> took(Message) after Time -> none end;
action({take_only, What, Time}) -> receive {What, _} = Message -> took(Message) after Time -> none end;
action({call, J, Time}) ->
    Alias = monitor(process, pid(J), [{alias, reply_demonitor}]),
    pid(J) ! {call, Alias},
    receive
        {Alias, Reply} -> Reply;
        {'DOWN', Alias, _, _, Reason} -> {down, short(Reason)}
    after Time -> {late, demonitor(Alias, [flush, info])}
    end;
action({gen_call, J, Time}) -> gen_server:call(pid(J), {call, J}, Time);
action({link, J}) -> link(pid(J));
action({unlink, J}) -> unlink(pid(J));
action({monitor, J}) -> remember(monitor(process, pid(J))), ok;
action({monitor_name, Name}) -> remember(monitor(process, Name)), ok;
action({demonitor, Options}) -> case recall() of none -> none; Ref -> demonitor(Ref, Options) end;
action({exit, J, Reason}) -> exit(pid(J), Reason);
action({trap, Flag}) -> process_flag(trap_exit, Flag);
action({crash, Reason}) -> erlang:Reason(random_race);
action({end_now, Reason}) -> erlang:raise(exit, Reason, []), put(never, here);
action({spawn, How, Actions}) ->
    [Pids, Shared] = [get(pids), get(shared)],
    Child = erlang:How(fun() -> put(pids, Pids), put(shared, Shared), put(seen, does(Actions)) end),
    _ = case Child of {_, Ref} -> remember(Ref); _ -> none end,
    ok;
action({alive, J}) -> is_process_alive(pid(J));
action({info, J, Item}) -> info(process_info(pid(J), Item));
action({check, J}) -> erlang:check_process_code(pid(J), lists);
action(processes) -> length(processes());
action({suspend, J, N}) ->
    true = erlang:suspend_process(pid(J)),
    {length(lists:seq(1, N)), erlang:resume_process(pid(J))};
action({suspend, J}) -> erlang:suspend_process(pid(J));
action({suspend_later, J, Option}) -> erlang:suspend_process(pid(J), [Option]);
action({resume, J}) -> erlang:resume_process(pid(J));
action({collect, J}) -> garbage_collect(pid(J));
action({collect_later, J, Type}) -> garbage_collect(pid(J), [{async, a}, {type, Type}]);
%% Names.
action({register, Name}) -> register(Name, self());
action({register, Name, J}) -> register(Name, pid(J));
action({unregister, Name}) -> unregister(Name);
action({whereis, Name}) -> whereis(Name);
action({send_name, Name, What}) -> Name ! {What, self()}, ok;
action(registered) -> length(registered());
%% Tables.
action({insert, Table, Key}) -> ets:insert(shared(Table), {Key, self()});
action({insert_list, Table, Keys}) -> ets:insert(shared(Table), [{Key, 0} || Key <- Keys]);
action({insert_new, Table, Key}) -> ets:insert_new(shared(Table), {Key, new});
action({lookup, Table, Key}) -> ets:lookup(shared(Table), Key);
action({delete, Table, Key}) -> ets:delete(shared(Table), Key);
action({take_key, Table, Key}) -> ets:take(shared(Table), Key);
action({count, Table, Key}) -> ets:update_counter(shared(Table), {count, Key}, 1, {Key, 0});
action({size, Table}) -> ets:info(shared(Table), size);
action({first, Table}) -> ets:first(shared(Table));
action({next, Table, Key}) -> ets:next(shared(Table), Key);
action({all, Table}) -> lists:sort(ets:tab2list(shared(Table)));
action({select, Table}) -> lists:sort(ets:select(shared(Table), [{{'$1', '$2'}, [{is_integer, '$1'}], ['$1']}]));
action({clear, Table}) -> ets:delete_all_objects(shared(Table));
action({give, J}) -> Own = ets:new(own, []), ets:insert(Own, {1, J}), ets:give_away(Own, pid(J), given);
action({own, Name}) -> Own = ets:new(Name, [named_table, public]), ets:insert(Own, {1, self()});
action({own_lookup, Name}) -> ets:lookup(Name, 1);
action({own_delete, Name}) -> ets:delete(Name);
action({heir, J}) -> ets:new(own, [{heir, pid(J), heired}]), ok;
%% What is shared otherwise.
action({put_term, What}) -> persistent_term:put(random_race, {What, self()});
action(get_term) -> persistent_term:get(random_race, none);
action(erase_term) -> persistent_term:erase(random_race);
action({add, Place}) -> atomics:add_get(shared(atomics), Place, 1);
action({exchange, Place}) -> atomics:exchange(shared(atomics), Place, 7);
action({add_counter, Place}) -> counters:add(shared(counters), Place, 1);
action({get_counter, Place}) -> counters:get(shared(counters), Place);
%% Files.
action({write_file, File, N}) -> prim_file:write_file(File, binary:copy(<<"x">>, N));
action({read_file, File}) -> prim_file:read_file(File);
action({append, File, What}) -> with_file(File, [append], fun(Fd) -> prim_file:write(Fd, What) end);
action({create, File, What}) -> with_file(File, [exclusive], fun(Fd) -> prim_file:write(Fd, What) end);
action({update, File, At, N}) ->
    with_file(File, [read, write], fun(Fd) ->
        Read = prim_file:pread(Fd, At, 9),
        _ = length(lists:seq(1, N)),
        {Read, prim_file:pwrite(Fd, At, <<"yy">>), prim_file:position(Fd, {eof, 0})}
    end);
action({cut, File, At}) -> with_file(File, [read, write], fun(Fd) -> {prim_file:position(Fd, At), prim_file:truncate(Fd)} end);
action({file_info, File}) ->
    case prim_file:read_file_info(File) of {ok, Info} -> {element(2, Info), element(3, Info)}; Error -> Error end;
action(list_files) -> case prim_file:list_dir(".") of {ok, Files} -> lists:sort(Files); Error -> Error end;
action({rename, File, To}) -> prim_file:rename(File, To);
action({make_link, File, To}) -> prim_file:make_link(File, To);
action({make_dir, File}) -> prim_file:make_dir(File);
action({delete_file, File}) -> prim_file:delete(File);
action({delete_dir, File}) -> prim_file:del_dir(File);
%% Time and chance.
action({sleep, Time}) -> timer:sleep(Time);
action(yield) -> erlang:yield();
action({work, N}) -> length(lists:seq(1, N));
action({build, N}) -> put(built, [{I} || I <- lists:seq(1, N)]), ok;
action({timer, J, Time, What}) -> remember(erlang:send_after(Time, pid(J), {What, self()})), ok;
action({timer_name, Name, Time}) -> remember(erlang:start_timer(Time, Name, named)), ok;
action({cancel, Options}) -> case recall() of none -> none; Ref -> erlang:cancel_timer(Ref, Options) end;
action(read) -> case recall() of none -> none; Ref -> erlang:read_timer(Ref) end;
action(time) -> {erlang:monotonic_time(), erlang:system_time(), erlang:timestamp(), os:timestamp()};
action(unique) -> {erlang:unique_integer([monotonic]), erlang:unique_integer(), make_ref()};
action(random) -> rand:uniform(1000);
action(reductions) -> process_info(self(), reductions);
action({hibernate, Time}) ->
    erlang:send_after(Time, self(), {a, wake}),
    erlang:hibernate(),
    action({take, 0}).

with_file(File, Modes, Do) ->
    case prim_file:open(File, Modes) of
        {ok, Fd} ->
            Done = Do(Fd),
            {Done, prim_file:close(Fd)};
        Error -> Error
    end.

files() -> ["race_one", "race_two", "race_three"].

empty() -> [{prim_file:delete(File), prim_file:del_dir(File)} || File <- files()].

info({messages, Messages}) -> [short(Message) || Message <- Messages];
info(Info) -> Info.

took({call, Alias} = Message) -> Alias ! {Alias, self()}, Message;
took({'$gen_call', From, Request}) -> gen_server:reply(From, Request), Request;
took(Message) -> short(Message).

remember(Ref) -> put(ref, Ref).

recall() -> case get(ref) of undefined -> none; Ref -> Ref end.

%% The actions of a process: each program has three kinds, mostly.
actions(Kinds, Processes, Depth) ->
    [action_of(one_of(Kinds), Processes, Kinds, Depth) || _ <- lists:seq(1, between(2, 25))].

action_of(Kind, Processes, Kinds, Depth) -> one_of(actions_of(Kind, between(1, Processes), Kinds, Processes, Depth)).

kinds() -> [messages, messages, calls, relations, exits, children, asked, held, names, tables, ordered, owners, terms, files, timers, chance].

actions_of(messages, J, _, _, _) ->
    [{send, J, a}, {send, J, b}, {send_large, J, between(1, 300)}, {send_binary, J, between(1, 300)}, {take, 0}, {take, 1}, {take, 5},
     {take_only, a, 0}, {take_only, b, 3}, {work, between(1, 20000)}];
actions_of(calls, J, _, _, _) ->
    [{call, J, between(0, 5)}, {call, J, 100}, {gen_call, J, between(1, 5)}, {take, 0}, {take, 2}, {take_only, call, 3}, {take, 10}];
actions_of(relations, J, _, _, _) ->
    [{link, J}, {unlink, J}, {monitor, J}, {monitor, J}, {demonitor, [flush, info]}, {demonitor, [info]}, {demonitor, []}, {trap, true},
     {exit, J, normal}, {take, 0}, {take, 1}, {work, between(1, 3000)}];
actions_of(exits, J, _, _, _) ->
    [{exit, J, one_of([normal, shutdown, kill, other])}, {trap, true}, {trap, true}, {trap, false}, {take, 1}, {link, J}, {monitor, J},
     {work, between(1, 20000)}, {end_now, one_of([normal, shutdown])}, {crash, one_of([error, exit])}];
actions_of(children, _, _, _, 0) -> [{take, 1}];
actions_of(children, J, Kinds, Processes, Depth) ->
    [{spawn, one_of([spawn, spawn_link, spawn_monitor]), actions(Kinds, Processes, Depth - 1)}, {take, 0}, {take, 1}, {trap, true}, {send, J, a}];
actions_of(asked, J, _, _, _) ->
    [{alive, J}, {info, J, message_queue_len}, {info, J, messages}, {info, J, links}, {info, J, trap_exit}, {info, J, current_function},
     {info, J, registered_name}, {info, J, status}, {info, J, dictionary}, {info, J, reductions}, {info, J, [memory, heap_size]}, {check, J},
     {take, 0}, {send, J, a}, processes, {work, between(1, 5000)}];
actions_of(held, J, _, _, _) ->
    [{suspend, J, between(1, 3000)}, {suspend, J}, {suspend_later, J, asynchronous}, {suspend_later, J, {asynchronous, a}},
     {suspend_later, J, unless_suspending}, {resume, J}, {collect, J}, {collect, J}, {collect_later, J, one_of([minor, major])},
     {build, between(1, 500)}, {info, J, status}, {take, 0}, {take, 2}, {take_only, a, 3}, {send, J, b}, {work, between(1, 3000)}];
actions_of(names, J, _, _, _) ->
    Name = one_of([one, two]),
    [{register, Name}, {register, Name, J}, {unregister, Name}, {whereis, Name}, {send_name, Name, a}, registered, {take, 0}, {take, 1},
     {monitor_name, Name}, {work, between(1, 3000)}];
actions_of(tables, _, _, _, _) -> table(set);
actions_of(ordered, _, _, _, _) -> [{next, ordered, between(1, 4)} | table(ordered)];
actions_of(owners, J, _, _, _) ->
    Name = one_of([own_one, own_two]),
    [{give, J}, {own, Name}, {own, Name}, {own_lookup, Name}, {own_lookup, Name}, {own_delete, Name}, {heir, J}, {take, 1}, {work, between(1, 3000)}];
actions_of(terms, _, _, _, _) ->
    Place = between(1, 2),
    [{put_term, between(1, 9)}, get_term, get_term, erase_term, {add, Place}, {add, Place}, {exchange, Place}, {add_counter, Place}, {get_counter, Place},
     {work, between(1, 3000)}];
actions_of(files, _, _, _, _) ->
    [File, To] = [one_of(files()), one_of(files())],
    [{write_file, File, between(0, 9)}, {write_file, File, between(1, 3000)}, {read_file, File}, {read_file, File}, {append, File, <<"one">>},
     {append, File, <<"another">>}, {create, File, <<"new">>}, {update, File, between(0, 9), between(1, 3000)}, {cut, File, between(0, 9)},
     {rename, File, To}, {make_link, File, To}, {make_dir, File}, {delete_file, File}, {delete_file, File}, {delete_dir, File},
     {file_info, File}, list_files,
     {work, between(1, 3000)}];
actions_of(timers, J, _, _, _) ->
    [{timer, J, between(0, 3), a}, {timer, J, between(0, 3), b}, {timer_name, one_of([one, two]), between(0, 3)}, {cancel, []}, {cancel, [{async, true}]},
     read, {sleep, between(0, 2)}, {take, 0}, {take, 2}, {take_only, a, 2}, {hibernate, between(0, 2)}];
actions_of(chance, _, _, _, _) ->
    [time, unique, random, reductions, yield, {sleep, between(0, 1)}, {build, between(1, 2000)}, {work, between(1, 20000)}].

table(Table) ->
    Key = between(1, 4),
    [{insert, Table, Key}, {insert, Table, Key}, {insert_list, Table, [Key, Key + 1]}, {insert_new, Table, Key}, {lookup, Table, Key}, {lookup, Table, Key},
     {delete, Table, Key}, {take_key, Table, Key}, {count, Table, Key + 10}, {size, Table}, {first, Table}, {all, Table}, {select, Table},
     {clear, Table}, {work, between(1, 3000)}].

one_of(All) -> lists:nth(between(1, length(All)), All).

between(Least, Most) -> Least + rand:uniform(Most - Least + 1) - 1.
