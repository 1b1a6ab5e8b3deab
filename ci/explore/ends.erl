%% Programs whose processes are told of the ends of others, by monitors, links and `exit/2`. The number of orders of each is one that
%% can be counted by hand.
-module(ends).
-export([monitored/0, monitored_twice/0, looked_for/0, named/0, answered/0, given_up/0, linked/0, linked_late/0, asked_to_end/0,
         asked_late/0, killed/0, killed_between/0, killed_late/0, killed_in_time/0, killed_or_told/0, killed_by_a_link/0, unlinked/0,
         unlinked_by_the_other/0, unlinked_in_time/0, unlinked_at_last/0, waits_for_lost/0, linked_by_both/0, unlinked_from_nobody/0,
         alive/0, alive_for_some/0, alive_no_more/0, looked_at/0, told_fixed/0, told_trapping/0, told_both/0, told_name/0,
         told_names_of_others/0, told_leader/0, told_by_all/0, told_as_set/0, told_no_more/0, crashes_late/0, lost/0, lost_or_gone/0, asked_normally/0, ceases/0]).

%% It is monitored before it ends, or it is gone: 2, and nothing comes in the second one.
monitored() ->
    Pid = spawn(fun() -> ok end),
    Reference = monitor(process, Pid),
    receive {'DOWN', Reference, process, Pid, normal} -> ok end.

%% Two monitor it, and each finds it there or gone: 4.
monitored_twice() ->
    Pid = spawn(fun() -> ok end),
    Watch = fun() ->
        Reference = monitor(process, Pid),
        receive {'DOWN', Reference, process, Pid, _} -> ok end
    end,
    [spawn(Watch) || _ <- [1, 2]],
    ok.

%% It is gone, it ends before the other one looks, or later: 3.
looked_for() ->
    Pid = spawn(fun() -> ok end),
    Reference = monitor(process, Pid),
    receive {'DOWN', Reference, process, Pid, _} -> ok after 0 -> ok end.

%% The same by a name, which it has from the beginning: 2.
named() ->
    Pid = spawn(fun() -> receive go -> ok end end),
    register(named, Pid),
    Pid ! go,
    Reference = monitor(process, named),
    receive {'DOWN', Reference, process, {named, _}, _} -> ok end.

%% It ends before it answers, or behind: 2.
answered() ->
    Me = self(),
    Pid = spawn(fun() -> receive stop -> ok end end),
    Helper = spawn(fun() -> receive {From, Reference} -> From ! {Reference, done} end end),
    Reference = monitor(process, Pid),
    Helper ! {Me, Reference},
    Pid ! stop,
    receive
        {Reference, done} -> demonitor(Reference, [flush]);
        {'DOWN', Reference, process, Pid, normal} -> ok
    end,
    ok.

%% The monitor is given up before anything can be told: 1.
given_up() ->
    Pid = spawn(fun() -> receive stop -> ok end end),
    Reference = monitor(process, Pid),
    demonitor(Reference, [flush]),
    Pid ! stop,
    Me = self(),
    spawn(fun() -> Me ! done end),
    receive done -> ok; {'DOWN', Reference, process, Pid, _} -> error(told) end.

%% The end of a linked process, or a message, comes first: 2.
linked() ->
    process_flag(trap_exit, true),
    Me = self(),
    Pid = spawn_link(fun() -> ok end),
    spawn(fun() -> Me ! done end),
    receive {'EXIT', Pid, normal} -> ok; done -> ok end.

%% The link comes before the end, or behind it: 2.
linked_late() ->
    process_flag(trap_exit, true),
    Pid = spawn(fun() -> ok end),
    link(Pid),
    receive {'EXIT', Pid, normal} -> ok; {'EXIT', Pid, noproc} -> ok end.

%% It is asked to end first, or the message comes first, and it is asked before it ends or behind that: 3.
asked_to_end() ->
    Me = self(),
    Server = spawn(fun() ->
        process_flag(trap_exit, true),
        Me ! ready,
        receive {'EXIT', Me, stop} -> ok; done -> ok end
    end),
    receive ready -> ok end,
    spawn(fun() -> Server ! done end),
    exit(Server, stop),
    ok.

%% It is asked to end before its receive looks, before it ends by itself, or behind that: 3.
asked_late() ->
    Me = self(),
    Server = spawn(fun() ->
        process_flag(trap_exit, true),
        Me ! ready,
        receive {'EXIT', Me, stop} -> ok after 0 -> ok end
    end),
    receive ready -> ok end,
    exit(Server, stop),
    ok.

%% It is killed before it says hello, or while it waits: 2.
killed() ->
    Me = self(),
    Pid = spawn(fun() -> Me ! hello, receive never -> ok end end),
    exit(Pid, kill),
    ok.

%% It is killed before it sends, between its messages, or behind them: gives how many it has sent. Or it ends by itself, before
%% or behind the call of exit/2: 6.
killed_between() ->
    Me = self(),
    {Pid, Reference} = spawn_monitor(fun() -> [Me ! N || N <- [1, 2, 3]] end),
    exit(Pid, kill),
    receive {'DOWN', Reference, process, Pid, _} -> ok end,
    sent(0).

sent(N) -> receive Sent when is_integer(Sent) -> sent(N + 1) after 0 -> N end.

%% It is killed before it takes the message, or before or behind its answer, or it ends by itself, before or behind the call: 5.
killed_late() ->
    Me = self(),
    Pid = spawn(fun() -> receive question -> Me ! answer end end),
    Pid ! question,
    exit(Pid, kill),
    ok.

%% It is killed while it waits, or behind that, or it ends by itself, before or behind the call: 4.
killed_in_time() ->
    Pid = spawn(fun() -> receive never -> ok after 10 -> ok end end),
    exit(Pid, kill),
    ok.

%% The signal ends it, or comes when it traps exits: 2.
killed_or_told() ->
    Pid = spawn(fun() ->
        process_flag(trap_exit, true),
        receive {'EXIT', _, shutdown} -> ok end
    end),
    exit(Pid, shutdown),
    ok.

%% Its parent ends before its first message, its second one, or its own end, or behind that: 4.
killed_by_a_link() ->
    Me = self(),
    spawn(fun() ->
        spawn_link(fun() -> Me ! one, Me ! two end),
        exit(shutdown)
    end),
    ok.

%% The other one ends before the link, between the link and its end, which it may or may not live to see, or behind that: 4.
unlinked() ->
    Pid = spawn(fun() -> receive go -> exit(shutdown) end end),
    spawn(fun() -> try link(Pid) catch error:noproc -> ok end, unlink(Pid) end),
    Pid ! go,
    ok.

%% The other one links to it, and fails. It gives up the link before that one fails, or behind, when it may be ended before it
%% has the message, or before it gives up the link, or not at all; or it gives up nothing, and then it is linked, and ended
%% or not, or has ended: 7.
unlinked_by_the_other() ->
    Pid = spawn(fun() -> receive Other -> unlink(Other) end end),
    Other = spawn(fun() -> try link(Pid) catch error:noproc -> ok end, exit(shutdown) end),
    Pid ! Other,
    ok.

%% The other one links to this one, and ends. This one gives up the link before that, or behind, when it may have been told or
%% not; or it gives up nothing, and then it is linked, and told in time or not, or has ended: 6.
unlinked_in_time() ->
    process_flag(trap_exit, true),
    Me = self(),
    Pid = spawn(fun() -> try link(Me) catch error:noproc -> ok end end),
    unlink(Pid),
    receive {'EXIT', Pid, normal} -> ok after 0 -> ok end.

%% It gives up the link before the other one ends, or behind, when it has been told or not: 3.
unlinked_at_last() ->
    process_flag(trap_exit, true),
    Pid = spawn_link(fun() -> ok end),
    unlink(Pid),
    receive {'EXIT', Pid, normal} -> ok after 0 -> ok end.

%% That an exit signal does not come any more is not turned around where a receive has no time.
waits_for_lost() ->
    process_flag(trap_exit, true),
    Pid = spawn_link(fun() -> ok end),
    unlink(Pid),
    self() ! done,
    receive {'EXIT', Pid, normal} -> ok; done -> ok end.

%% Two processes link to each other. The first link comes from the one or the other, and then that one may have ended before the
%% other link: 4.
linked_by_both() ->
    Link = fun() -> receive Other -> try link(Other) catch error:noproc -> ok end end end,
    [One, Other] = [spawn(Link), spawn(Link)],
    One ! Other,
    Other ! One,
    ok.

%% Nobody has linked to anybody: 1.
unlinked_from_nobody() ->
    Pid = spawn(fun() -> ok end),
    unlink(Pid),
    ok.

%% It is alive, or has ended: 2.
alive() ->
    Pid = spawn(fun() -> ok end),
    _ = is_process_alive(Pid),
    ok.

%% Two ask whether it is alive, and each finds it so or not; a third one monitors it, and finds it there or gone: 8.
alive_for_some() ->
    Pid = spawn(fun() -> ok end),
    [spawn(fun() -> is_process_alive(Pid) end) || _ <- [1, 2]],
    spawn(fun() -> monitor(process, Pid) end),
    ok.

%% It is not alive behind an exit signal of who asks; such answers are not turned around.
alive_no_more() ->
    Pid = spawn(fun() -> receive never -> ok end end),
    exit(Pid, kill),
    false = is_process_alive(Pid).

%% It ends before it is looked at, or behind, and is told of until it does: 2, and what it does when it is looked at is not
%% turned around.
looked_at() ->
    Pid = spawn(fun() -> ok end),
    case process_info(Pid, [status, messages]) of
        undefined -> false = is_process_alive(Pid);
        [{status, _}, {messages, []}] -> ok
    end.

%% It is there, with its first call, or has ended: 2.
told_fixed() ->
    Pid = spawn(fun() -> ok end),
    case process_info(Pid, [initial_call, parent]) of
        undefined -> gone;
        [{initial_call, {erlang, apply, 2}}, {parent, Me}] when Me =:= self() -> ok
    end.

%% It does not trap exits yet, does, does not any more, or has ended: 4.
told_trapping() ->
    Pid = spawn(fun() -> process_flag(trap_exit, true), process_flag(trap_exit, false) end),
    case process_info(Pid, trap_exit) of
        {trap_exit, true} -> error(traps);
        _ -> ok
    end.

%% Two processes begin to trap exits, and are asked for one behind the other. Each has 3 places: 9.
told_both() ->
    Pids = [spawn(fun() -> process_flag(trap_exit, true) end) || _ <- [1, 2]],
    [process_info(Pid, [trap_exit, initial_call]) || Pid <- Pids],
    ok.

%% It has no name yet, has it, gives it up as it ends, or has ended: 4. It is gone in both of these.
told_name() ->
    Pid = spawn(fun() -> register(told, self()) end),
    case process_info(Pid, registered_name) of
        [] -> ok;
        {registered_name, told} -> ok;
        undefined -> undefined = whereis(told)
    end.

%% Another one takes a name, and keeps it, before all names are looked at or behind; and the process that is looked at ends
%% before that or behind: 4.
told_names_of_others() ->
    spawn(fun() -> register(told, self()), receive never -> ok end end),
    Pid = spawn(fun() -> ok end),
    case process_info(Pid, [registered_name]) of
        [{registered_name, []}] -> ok;
        undefined -> ok
    end.

%% Nobody sets its group leader: 2.
told_leader() ->
    Pid = spawn(fun() -> ok end),
    Mine = group_leader(),
    case process_info(Pid, [group_leader, priority]) of
        undefined -> ok;
        [{group_leader, Mine}, {priority, normal}] -> ok
    end.

%% All that is told of a process is not turned around.
told_by_all() ->
    Pid = spawn(fun() -> ok end),
    _ = process_info(Pid),
    ok.

%% What it sets has no order.
told_as_set() ->
    Pid = spawn(fun() -> process_flag(priority, high) end),
    _ = process_info(Pid, priority),
    ok.

%% It is gone behind an exit signal of who asks; such answers are not turned around.
told_no_more() ->
    Pid = spawn(fun() -> receive never -> ok end end),
    exit(Pid, kill),
    undefined = process_info(Pid, initial_call).

%% It finds the other one gone, or that one ends it, or it ends before: 3.
crashes_late() ->
    Crashes = spawn(fun() -> receive crash -> exit(shutdown) end end),
    spawn(fun() -> link(Crashes) end),
    Crashes ! crash,
    ok.

%% It ends before the other one traps exits, which hears nothing then, or behind that, before its receive looks or later: 3.
lost() ->
    Me = self(),
    spawn_link(fun() -> Me ! done end),
    process_flag(trap_exit, true),
    receive done -> ok end,
    receive {'EXIT', _, normal} -> ok after 0 -> ok end.

%% It ends before the link, before the other one traps exits, or behind that, before the time is over or later: 4.
lost_or_gone() ->
    Pid = spawn(fun() -> ok end),
    try link(Pid) of
        true ->
            process_flag(trap_exit, true),
            receive {'EXIT', Pid, normal} -> ok after 1 -> ok end
    catch
        error:noproc -> ok
    end.

%% It is asked before it traps exits, and hears nothing then, behind that, in time or too late, or when it has ended: 4.
asked_normally() ->
    Pid = spawn(fun() ->
        process_flag(trap_exit, true),
        receive {'EXIT', _, normal} -> ok after 1 -> ok end
    end),
    exit(Pid, normal),
    ok.

%% What comes to a process that ceases to trap exits is not all turned around.
ceases() ->
    Pid = spawn(fun() -> process_flag(trap_exit, true), process_flag(trap_exit, false), receive _ -> ok end end),
    exit(Pid, shutdown),
    ok.
