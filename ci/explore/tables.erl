%% Programs whose processes meet in tables, names and arrays, of the kinds that the literature on exploring orders uses.
-module(tables).
-behaviour(gen_server).
-export([readers_two/0, readers_five/0, lastzero_two/0, lastzero_five/0, indexer_eleven/0, indexer_twelve/0,
         updates/0, updates_mended/0, registry/0, registry_mended/0, pool/0, pool_mended/0, settings/0, places/0, places_mended/0,
         whole/0, heir/0, served/0, started/0, cached/0, filesystem_thirteen/0, filesystem_fifteen/0, filesystem_seventeen/0,
         rush_hour/0, processes/0, processes_mended/0, named_late/0, taken_away/0]).
-export([init/1, handle_call/3, handle_cast/2]).

%% Runs all at once, and gives their results in the order of the list. It fails as the first one of them that fails.
all(Bodies) ->
    Me = self(),
    Result = fun(Body) -> try {ok, Body()} catch error:Reason -> {failed, Reason} end end,
    Pids = [spawn(fun() -> Me ! {self(), Result(Body)} end) || Body <- Bodies],
    [receive {Pid, {ok, Value}} -> Value; {Pid, {failed, Reason}} -> exit(Reason) end || Pid <- Pids].

table(Objects) ->
    Table = ets:new(table, [public]),
    [ets:insert(Table, Object) || Object <- Objects],
    Table.

value(Table, Key) -> ets:lookup_element(Table, Key, 2).

%% A writer and N readers of one key: each reader comes before or after, 2^N orders.
readers_two() -> readers(2).
readers_five() -> readers(5).

readers(N) ->
    Table = table([{x, 0}]),
    all([fun() -> ets:insert(Table, {x, 42}) end | lists:duplicate(N, fun() -> value(Table, x) end)]),
    ok.

%% One process looks for the last place with a zero, from the end; each of N others writes into its place one more than is in
%% the place before it: (N + 3) * 2^(N - 2) orders.
lastzero_two() -> lastzero(2).
lastzero_five() -> lastzero(5).

lastzero(N) ->
    Table = table([{Place, 0} || Place <- lists:seq(0, N)]),
    Add = fun(Place) -> fun() -> ets:insert(Table, {Place, value(Table, Place - 1) + 1}) end end,
    all([fun() -> last_zero(Table, N) end | [Add(Place) || Place <- lists:seq(1, N)]]),
    ok.

last_zero(Table, Place) ->
    case value(Table, Place) of
        0 -> Place;
        _ -> last_zero(Table, Place - 1)
    end.

%% N processes insert four messages each into a hash table of 128 places: 8^(N - 11) orders from 11 on.
indexer_eleven() -> indexer(11).
indexer_twelve() -> indexer(12).

indexer(N) ->
    Table = table([]),
    Insert = fun(Id) -> fun() -> [index(Table, I * 11 + Id) || I <- lists:seq(1, 4)] end end,
    all([Insert(Id) || Id <- lists:seq(0, N - 1)]),
    ok.

index(Table, Message) -> index(Table, Message * 7 rem 128, Message).

index(Table, Place, Message) ->
    case ets:insert_new(Table, {Place, Message}) of
        true -> ok;
        false -> index(Table, (Place + 1) rem 128, Message)
    end.

%% Two processes read a number and write one more: 4 orders, and in 2 of them an update is lost.
updates() ->
    Table = table([{n, 0}]),
    all(lists:duplicate(2, fun() -> ets:insert(Table, {n, value(Table, n) + 1}) end)),
    2 = value(Table, n),
    ok.

%% The table counts itself: 2 orders.
updates_mended() ->
    Table = table([{n, 0}]),
    all(lists:duplicate(2, fun() -> ets:update_counter(Table, n, 1) end)),
    2 = value(Table, n),
    ok.

%% Who finds no server of the name starts one: both may, and the second one cannot have the name.
registry() ->
    Find = fun() ->
        case whereis(served) of
            undefined -> register(served, spawn(fun() -> receive stop -> ok end end));
            _ -> true
        end
    end,
    all([Find, Find]),
    served ! stop,
    ok.

%% The same, but who cannot have the name takes the other's server.
registry_mended() ->
    Find = fun() ->
        case whereis(served) of
            undefined ->
                Pid = spawn(fun() -> receive stop -> ok end end),
                try register(served, Pid) catch error:badarg -> Pid ! stop end;
            _ -> true
        end
    end,
    all([Find, Find]),
    served ! stop,
    ok.

%% Two processes look for something free in a pool, and take it: both may get the same.
pool() ->
    Table = table([{free, [1, 2]}]),
    Take = fun() ->
        [One | Others] = value(Table, free),
        ets:insert(Table, {free, Others}),
        One
    end,
    [1, 2] = lists:sort(all([Take, Take])),
    ok.

%% Each takes what is there still: 2 orders.
pool_mended() ->
    Table = table([{1}, {2}]),
    [1, 2] = lists:sort(all(lists:duplicate(2, fun() -> take(Table, [1, 2]) end))),
    ok.

take(Table, [Id | Ids]) ->
    case ets:take(Table, Id) of
        [_] -> Id;
        [] -> take(Table, Ids)
    end.

%% A reader sees a setting before it was made, or behind: 2 orders, and one of them fails.
settings() ->
    all([
        fun() -> persistent_term:put({?MODULE, settings}, made) end,
        fun() -> made = persistent_term:get({?MODULE, settings}, none) end
    ]),
    ok.

%% Two processes add to a place of an array by reading and writing, and to another one at once.
places() ->
    Array = atomics:new(2, []),
    all(lists:duplicate(2, fun() -> atomics:put(Array, 1, atomics:get(Array, 1) + 1) end)),
    2 = atomics:get(Array, 1),
    ok.

places_mended() ->
    Array = atomics:new(2, []),
    all([fun() -> atomics:add(Array, 1, 1) end, fun() -> atomics:add(Array, 2, 1) end, fun() -> atomics:add(Array, 1, 1) end]),
    2 = atomics:get(Array, 1),
    ok.

%% Who reads all of a table comes before or after each change of it: 4 orders for two changes of two keys.
whole() ->
    Table = table([]),
    all([
        fun() -> ets:insert(Table, {a, 1}) end,
        fun() -> ets:insert(Table, {b, 1}) end,
        fun() -> ets:tab2list(Table) end
    ]),
    ok.

%% A table is gone with its owner: who comes later fails.
heir() ->
    Me = self(),
    {Owner, Reference} = spawn_monitor(fun() ->
        Table = ets:new(owned, [public]),
        Me ! {table, Table}
    end),
    receive {table, Table} -> ets:insert(Table, {a, 1}) end,
    receive {'DOWN', Reference, process, Owner, normal} -> ok end,
    ok.

%% Two clients read the state of a server and cast one more.
served() ->
    {ok, _} = gen_server:start_link({local, ?MODULE}, ?MODULE, 0, []),
    all(lists:duplicate(2, fun() ->
        N = gen_server:call(?MODULE, get),
        gen_server:call(?MODULE, {put, N + 1})
    end)),
    2 = gen_server:call(?MODULE, get),
    gen_server:stop(?MODULE).

init(N) -> {ok, N}.
handle_call(get, _, N) -> {reply, N, N};
handle_call({put, New}, _, _) -> {reply, ok, New}.
handle_cast(_, N) -> {noreply, N}.

%% Two processes start the same server: one of them is told that it is there.
started() ->
    Start = fun() -> gen_server:start({local, ?MODULE}, ?MODULE, 0, []) end,
    Results = all([Start, Start]),
    [{error, {already_started, Pid}}] = [Error || {error, _} = Error <- Results],
    [{ok, Pid}] = [Ok || {ok, _} = Ok <- Results],
    gen_server:stop(?MODULE).

%% What is missing in a cache is computed once, or so the program thinks.
cached() ->
    Cache = table([]),
    Table = table([{computed, 0}]),
    Ask = fun() ->
        case ets:lookup(Cache, key) of
            [] ->
                ets:update_counter(Table, computed, 1),
                ets:insert(Cache, {key, value});
            [_] -> hit
        end
    end,
    all([Ask, Ask]),
    1 = value(Table, computed),
    ok.

%% N processes each take an inode of their own, and the first free one of 26 blocks from twice its number on: from 14 on, each of them
%% meets another one at a block, 2^(N - 13) orders.
filesystem_thirteen() -> filesystem(13).
filesystem_fifteen() -> filesystem(15).
filesystem_seventeen() -> filesystem(17).

filesystem(N) ->
    Table = table([]),
    all([fun() -> allocate(Table, Inode, Inode * 2 rem 26) end || Inode <- lists:seq(0, N - 1)]),
    ok.

allocate(Table, Inode, Block) ->
    case ets:insert_new(Table, {{block, Block}, Inode}) of
        true -> ets:insert(Table, {{inode, Inode}, Block});
        false -> allocate(Table, Inode, (Block + 1) rem 26)
    end.

%% Rush hour on a board of 4 times 4 cells: a car takes the cell in front of it if that is free, and leaves the one behind. The red car
%% is out at the right of its row, for which a and b have to drive down first; where c is in front of a or b, it cannot. The program
%% fails when the red car is out.
%%
%%     . . . b
%%     r r a b
%%     . . a .
%%     c c . .
rush_hour() ->
    Board = table([{{2, 1}, r}, {{2, 2}, r}, {{2, 3}, a}, {{3, 3}, a}, {{1, 4}, b}, {{2, 4}, b}, {{4, 1}, c}, {{4, 2}, c}]),
    [Red | _] = all([
        fun() -> drive(Board, r, [{2, 1}, {2, 2}, {2, 3}, {2, 4}]) end,
        fun() -> drive(Board, a, [{2, 3}, {3, 3}, {4, 3}]) end,
        fun() -> drive(Board, b, [{1, 4}, {2, 4}, {3, 4}, {4, 4}]) end,
        fun() -> drive(Board, c, [{4, 1}, {4, 2}, {4, 3}, {4, 4}]) end
    ]),
    in = Red,
    ok.

%% The cells of the car from the last one on, and those in front of it.
drive(_, _, [_, _]) -> out;
drive(Board, Car, [Last, First, Next | Way]) ->
    case ets:insert_new(Board, {Next, Car}) of
        true -> ets:delete(Board, Last), drive(Board, Car, [First, Next | Way]);
        false -> in
    end.

%% A registry of processes in a table: who is told of the end of a process takes its name, and a server takes away the names of processes
%% that have ended.
processes() -> processes(fun(Names, Name, _) -> ets:delete(Names, Name) end).

%% The server takes away only what is of the process that has ended.
processes_mended() -> processes(fun(Names, Name, Pid) -> ets:delete_object(Names, {Name, Pid}) end).

processes(Forget) ->
    Names = table([]),
    Me = self(),
    {Old, Reference} = spawn_monitor(fun() -> receive stop -> ok end end),
    ets:insert(Names, {name, Old}),
    spawn(fun() ->
        Monitor = monitor(process, Old),
        Me ! watches,
        receive {'DOWN', Monitor, process, Old, _} -> Forget(Names, name, Old) end,
        Me ! forgotten
    end),
    receive watches -> Old ! stop end,
    receive {'DOWN', Reference, process, Old, _} -> ets:insert(Names, {name, Me}) end,
    receive forgotten -> [{name, Me}] = ets:lookup(Names, name) end,
    ok.

%% Who is to have a name may have ended before: 2.
named_late() ->
    register(late, spawn(fun() -> ok end)),
    ok.

%% A name is taken away from who has it, or that one has ended: 2.
taken_away() ->
    Pid = spawn(fun() -> receive go -> ok end end),
    register(taken, Pid),
    Pid ! go,
    try unregister(taken) catch error:badarg -> ended end,
    ok.
