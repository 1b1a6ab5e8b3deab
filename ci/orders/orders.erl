%% Random programs of two or three processes, for `cargo xtask orders`: `orders:run/0` is the one of a number.
%%
%%   erl -noshell -pa ebin -kernel orders_seed 17
-module(orders).
-export([run/0, program/1]).

%% Each process gets the pids of all, and the timers that were started for it and others, and then does what it has to.
run() ->
    {ok, Seed} = application:get_env(kernel, orders_seed),
    Program = program(Seed),
    Pids = [spawn(fun() -> receive {go, All, Timers} -> does(Actions, All, Timers) end end) || Actions <- Program],
    Used = lists:usort([J || Actions <- Program, {timer_of, _, J} <- Actions]),
    _ = ets:new(shared, [public, named_table]),
    Timers = [{J, erlang:send_after(1000 * J, lists:nth(J, Pids), a)} || J <- Used],
    _ = [Pid ! {go, Pids, Timers} || Pid <- Pids],
    % Who made the table keeps it for the others.
    receive never -> ok end.

does(Actions, Pids, Timers) ->
    lists:foldl(fun(Action, Own) -> action(Action, Pids, Timers, Own) end, none, Actions).

%% What a process does; its own last timer, or none.
action({send, J, What}, Pids, _, Own) -> lists:nth(J, Pids) ! What, Own;
action({take, any}, _, _, Own) -> receive {go, _, _} -> Own; _ -> Own end;
action({take, What}, _, _, Own) -> receive What -> Own end;
action({take_after, any}, _, _, Own) -> receive _ -> Own after 5 -> Own end;
action({take_after, What}, _, _, Own) -> receive What -> Own after 5 -> Own end;
action({exit, J, Reason}, Pids, _, Own) -> exit(lists:nth(J, Pids), Reason), Own;
action({link, J}, Pids, _, Own) -> try link(lists:nth(J, Pids)) catch error:noproc -> gone end, Own;
action({unlink, J}, Pids, _, Own) -> unlink(lists:nth(J, Pids)), Own;
action({monitor, J}, Pids, _, Own) -> monitor(process, lists:nth(J, Pids)), Own;
action({demonitored, J, Options}, Pids, _, Own) ->
    Reference = monitor(process, lists:nth(J, Pids)),
    receive a -> demonitor(Reference, Options); {'DOWN', Reference, _, _, _} -> Own after 5 -> demonitor(Reference, Options) end,
    Own;
action({told, J}, Pids, _, Own) ->
    Reference = monitor(process, lists:nth(J, Pids)),
    receive {'DOWN', Reference, _, _, _} -> Own end;
action({told_by, J}, Pids, _, Own) ->
    Reference = monitor(process, lists:nth(J, Pids)),
    receive {'DOWN', Reference, _, _, _} -> Own after 5 -> Own end;
action({call, J}, Pids, _, Own) ->
    Pid = lists:nth(J, Pids),
    Reference = monitor(process, Pid, [{alias, demonitor}]),
    Pid ! {call, Reference, Reference},
    receive {Reference, answer} -> demonitor(Reference, [flush]); {'DOWN', Reference, _, _, _} -> Own after 5 -> demonitor(Reference, [flush]) end,
    Own;
action(serve, _, _, Own) -> receive {call, Alias, Tag} -> Alias ! {Tag, answer}, Own after 5 -> Own end;
action(task, _, _, Own) ->
    Me = self(),
    {_, Reference} = spawn_monitor(fun() -> Me ! {done, get(task)}, ets:insert(shared, {key, task}) end),
    receive {done, _} -> demonitor(Reference, [flush]); {'DOWN', Reference, _, _, _} -> Own end,
    Own;
action(task_linked, _, _, Own) ->
    Me = self(),
    Pid = spawn_link(fun() -> Me ! a, exit(shutdown) end),
    unlink(Pid),
    receive {'EXIT', Pid, _} -> Own after 0 -> Own end;
action({whereis, Name}, _, _, Own) -> whereis(Name), Own;
action({insert, Key}, _, _, Own) -> ets:insert(shared, {Key, Own}), Own;
action({lookup, Key}, _, _, Own) -> ets:lookup(shared, Key), Own;
action(tab2list, _, _, Own) -> ets:tab2list(shared), Own;
action({timer_flush, What}, _, _, _) ->
    Timer = erlang:send_after(10, self(), What),
    erlang:cancel_timer(Timer),
    receive What -> none after 0 -> none end;
action({alive, J}, Pids, _, Own) -> is_process_alive(lists:nth(J, Pids)), Own;
action({info, J, Item}, Pids, _, Own) -> process_info(lists:nth(J, Pids), Item), Own;
action(trap, _, _, Own) -> process_flag(trap_exit, true), Own;
action(crash, _, _, _) -> exit(shutdown);
action({timer, named, What}, _, _, _) -> erlang:send_after(10, named, What);
action({timer, J, What}, Pids, _, _) -> erlang:send_after(10, lists:nth(J, Pids), What);
action(register, _, _, Own) -> try register(named, self()) catch error:badarg -> taken end, Own;
action(unregister, _, _, Own) -> try unregister(named) catch error:badarg -> free end, Own;
action({own_timer, _}, _, _, none) -> none;
action({own_timer, Function}, _, _, Own) -> erlang:Function(Own), Own;
action({timer_of, Function, J}, _, Timers, Own) -> erlang:Function(proplists:get_value(J, Timers)), Own.

%% The actions of each process. Each program has three kinds of actions, mostly: so these meet.
program(Seed) ->
    State0 = rand:seed_s(exsss, {Seed, 17, 3}),
    {Processes, State1} = between(2, 3, State0),
    {Kinds, State2} = lists:mapfoldl(fun(_, State) -> between(1, 10, State) end, State1, [1, 2, 3]),
    {Program, _} = lists:mapfoldl(
        fun(I, State) -> actions(I, Processes, Kinds, State) end, State2, lists:seq(1, Processes)),
    Program.

actions(I, Processes, Kinds, State0) ->
    {Length, State1} = between(1, 4, State0),
    lists:mapfoldl(fun(_, State) -> of_kinds(I, Processes, Kinds, State) end, State1, lists:seq(1, Length)).

of_kinds(I, Processes, Kinds, State0) ->
    {At, State1} = between(1, length(Kinds), State0),
    {J, State2} = other(I, Processes, State1),
    one_of(kind(lists:nth(At, Kinds), I, J), State2).

kind(1, _, J) -> [{send, J, a}, {send, J, b}, {take, any}, {take, a}];
kind(2, _, J) -> [{send, J, a}, {take_after, a}, {take_after, b}, {take_after, any}];
kind(3, _, J) -> [{exit, J, kill}, {exit, J, shutdown}, {take, a}, trap, crash];
kind(4, _, J) ->
    [{link, J}, {unlink, J}, {monitor, J}, {alive, J}, {info, J, trap_exit}, {exit, J, shutdown}, {exit, J, normal}, trap, trap, crash];
kind(5, I, J) ->
    [{timer, I, a}, {timer, J, b}, {own_timer, cancel_timer}, {own_timer, read_timer}, {timer_of, cancel_timer, I},
     {timer_of, cancel_timer, J}, {timer_of, read_timer, J}, {take, any}];
kind(6, _, J) -> [{timer, named, a}, register, unregister, {info, J, registered_name}, {own_timer, cancel_timer}, {take_after, any}];
kind(7, _, J) -> [{call, J}, serve, serve, {call, J}, {send, J, a}, {told, J}];
kind(8, _, J) -> [{demonitored, J, [flush]}, {told, J}, {told_by, J}, {send, J, a}, register, {whereis, named}, {monitor, J}, task];
kind(9, _, J) -> [{insert, key}, {lookup, key}, {insert, other}, tab2list, task, {send, J, a}, {take_after, a}];
kind(10, _, J) -> [{timer_flush, a}, task_linked, trap, {told_by, J}, {link, J}, {send, J, a}, {take, a}, crash].

other(I, Processes, State0) ->
    {Step, State1} = between(1, Processes - 1, State0),
    {(I - 1 + Step) rem Processes + 1, State1}.

one_of(All, State0) ->
    {At, State1} = between(1, length(All), State0),
    {lists:nth(At, All), State1}.

between(Least, Most, State0) ->
    {N, State1} = rand:uniform_s(Most - Least + 1, State0),
    {Least + N - 1, State1}.
