%% Programs that fail in some orders of their messages.
-module(found).
-export([deposits/0, philosophers/0, two_philosophers/0, order/0, crash/0, spin/0, left/0, late/0, halts/0, names/0,
         counter/0, apart/0, withheld/0, deep/0]).

%% Two clients read a balance, and write it back: an update may get lost.
deposits() ->
    Account = spawn(fun() -> account(0) end),
    Clients = [spawn_monitor(fun() -> deposit(Account) end) || _ <- [1, 2]],
    [receive {'DOWN', Reference, process, _, normal} -> ok end || {_, Reference} <- Clients],
    2 = ask(Account, get),
    Account ! stop,
    ok.

account(Balance) ->
    receive
        {From, get} -> From ! {self(), Balance}, account(Balance);
        {From, {set, New}} -> From ! {self(), ok}, account(New);
        stop -> ok
    end.

deposit(Account) ->
    Balance = ask(Account, get),
    ask(Account, {set, Balance + 1}).

ask(Server, Request) ->
    Server ! {self(), Request},
    receive {Server, Answer} -> Answer end.

%% Each takes the fork at its left, and then the one at its right.
philosophers() -> dine(3).
two_philosophers() -> dine(2).

dine(N) ->
    Forks = [spawn(fun fork/0) || _ <- lists:seq(1, N)],
    Sides = lists:zip(Forks, tl(Forks) ++ [hd(Forks)]),
    All = [spawn_monitor(fun() -> eat(Left, Right) end) || {Left, Right} <- Sides],
    [receive {'DOWN', Reference, _, _, _} -> ok end || {_, Reference} <- All],
    [Fork ! stop || Fork <- Forks],
    ok.

fork() ->
    receive
        {take, Who} ->
            Who ! {self(), yours},
            receive {put, Who} -> fork() end;
        stop -> ok
    end.

eat(Left, Right) ->
    [begin Fork ! {take, self()}, receive {Fork, yours} -> ok end end || Fork <- [Left, Right]],
    [Fork ! {put, self()} || Fork <- [Left, Right]].

%% The order of two messages is the result.
order() ->
    Me = self(),
    [spawn(fun() -> Me ! I end) || I <- [1, 2]],
    [receive I -> I end || _ <- [1, 2]].

%% It fails if the second one comes first.
crash() ->
    Me = self(),
    [spawn(fun() -> Me ! I end) || I <- [1, 2]],
    receive I -> {first, 1} = {first, I} end.

%% It goes on for ever if the second one comes first.
spin() ->
    Me = self(),
    [spawn(fun() -> Me ! I end) || I <- [1, 2]],
    receive 1 -> ok; 2 -> for_ever() end.

for_ever() -> for_ever().

%% A process is left if the second one comes first.
left() ->
    Me = self(),
    Server = spawn(fun() -> receive stop -> ok end end),
    [spawn(fun() -> Me ! I end) || I <- [1, 2]],
    receive 1 -> Server ! stop; 2 -> ok end.

%% The answer comes too late.
late() ->
    Me = self(),
    spawn(fun() -> Me ! answer end),
    receive answer -> ok after 5000 -> exit(too_late) end.

%% It ends the emulator if the second one comes first.
halts() ->
    Me = self(),
    [spawn(fun() -> Me ! I end) || I <- [1, 2]],
    receive 1 -> ok; 2 -> halt(7) end.

%% One order: the name is there before anybody sends to it.
names() ->
    Pid = spawn(fun() -> receive stop -> ok end end),
    register(served, Pid),
    served ! stop,
    ok.

%% Two processes read a counter in a table, and write back one more: an update may get lost.
counter() ->
    Table = ets:new(counter, [public]),
    ets:insert(Table, {count, 0}),
    Count = fun() ->
        [{count, N}] = ets:lookup(Table, count),
        ets:insert(Table, {count, N + 1})
    end,
    All = [spawn_monitor(Count) || _ <- [1, 2]],
    [receive {'DOWN', Reference, process, _, normal} -> ok end || {_, Reference} <- All],
    [{count, 2}] = ets:lookup(Table, count),
    ok.

%% The same, in a module that nobody has loaded before.
apart() ->
    Table = parts:table(),
    All = [spawn_monitor(parts, count, [Table]) || _ <- [1, 2]],
    [receive {'DOWN', Reference, process, _, normal} -> ok end || {_, Reference} <- All],
    [{count, 2}] = ets:lookup(Table, count),
    ok.

%% It fails if a process that can run does nothing for a second.
withheld() ->
    Me = self(),
    spawn(fun() -> receive after 1000 -> Me ! second end end),
    spawn(fun() -> Me ! first end),
    receive First -> first = First end.

%% It fails if one process is interrupted by the other at its third step, and at no other.
deep() ->
    Cell = spawn(fun() -> cell([]) end),
    Put = fun(Name, Times) -> fun() -> [ask(Cell, {put, Name}) || _ <- lists:seq(1, Times)] end end,
    All = [spawn_monitor(Put(Name, Times)) || {Name, Times} <- [{a, 6}, {b, 3}]],
    [receive {'DOWN', Reference, process, _, normal} -> ok end || {_, Reference} <- All],
    Names = ask(Cell, get),
    Cell ! stop,
    case Names of
        [a, a, a, b, b, b, a, a, a] -> exit(interrupted);
        _ -> ok
    end.

cell(Names) ->
    receive
        {From, {put, Name}} -> From ! {self(), ok}, cell([Name | Names]);
        {From, get} -> From ! {self(), Names}, cell(Names);
        stop -> ok
    end.
