%% Programs of the kinds that the literature on exploring orders uses, each with shared variables as processes.
-module(literature).
-compile({no_auto_import, [get/1, put/2]}).
%% This one is also the callback of its supervisor.
-export([readers/0, readers_two/0, lastzero/0, lastzero_three/0, indexer/0, filesystem/0, pool/0, airline/0, airline_mended/0,
         purchase/0, supervisor/0, init/1, start_child/0, ring/0,
         supervisor_mended/0, philosophers/0, philosophers_ordered/0, chain/0, chain_mended/0]).

%% A variable: a process that is asked for its value, and told a new one.
variable(Value) ->
    receive
        {From, get} -> From ! {self(), Value}, variable(Value);
        {From, {put, New}} -> From ! {self(), ok}, variable(New);
        {From, {exchange, Value, New}} -> From ! {self(), true}, variable(New);
        {From, {exchange, _, _}} -> From ! {self(), false}, variable(Value);
        stop -> ok
    end.

new(Value) -> spawn(fun() -> variable(Value) end).

get(Variable) -> ask(Variable, get).
put(Variable, New) -> ask(Variable, {put, New}).
exchange(Variable, Old, New) -> ask(Variable, {exchange, Old, New}).

ask(Who, What) ->
    Who ! {self(), What},
    receive {Who, Answer} -> Answer end.

%% Runs all, waits for their results in the order of the list, and stops the variables.
all(Variables, Bodies) ->
    Me = self(),
    Pids = [spawn_link(fun() -> Me ! {self(), Body()} end) || Body <- Bodies],
    Results = [receive {Pid, Result} -> Result end || Pid <- Pids],
    [Variable ! stop || Variable <- Variables],
    Results.

%% A writer and readers of one variable.
readers() -> readers(3).
readers_two() -> readers(2).

readers(N) ->
    X = new(0),
    all([X], [fun() -> put(X, 1) end | [fun() -> get(X) end || _ <- lists:seq(1, N)]]).

%% One looks for the last zero of an array, while others each set a place to one more than the place before it.
lastzero() -> lastzero(2).
lastzero_three() -> lastzero(3).

lastzero(N) ->
    Array = list_to_tuple([new(0) || _ <- lists:seq(0, N)]),
    At = fun(I) -> element(I + 1, Array) end,
    Search = fun Search(I) ->
        case get(At(I)) of
            0 -> I;
            _ -> Search(I - 1)
        end
    end,
    Set = fun(I) -> put(At(I), get(At(I - 1)) + 1) end,
    all(tuple_to_list(Array), [fun() -> Search(N) end | [fun() -> Set(I) end || I <- lists:seq(1, N)]]).

%% Each puts its messages into a hash table of cells, and looks further where a cell is taken.
indexer() ->
    Size = 2,
    Table = list_to_tuple([new(free) || _ <- lists:seq(1, Size)]),
    Insert = fun Insert(Hash, Message) ->
        case exchange(element(Hash + 1, Table), free, Message) of
            true -> Hash;
            false -> Insert((Hash + 1) rem Size, Message)
        end
    end,
    all(tuple_to_list(Table), [fun() -> Insert(Who * 7 rem Size, Who) end || Who <- [1, 2]]).

%% Each makes a file: a block that is free is found under the lock of the block, and noted under that of the file.
filesystem() ->
    Locks = [new(free) || _ <- [1, 2]],
    [File, Block] = Locks,
    Inode = new(0),
    Busy = new(false),
    Locked = fun(Lock, Body) ->
        case exchange(Lock, free, self()) of
            true -> Result = Body(), put(Lock, free), Result;
            false -> busy
        end
    end,
    Make = fun() ->
        Locked(File, fun() ->
            case get(Inode) of
                0 ->
                    Locked(Block, fun() ->
                        case get(Busy) of
                            false -> put(Busy, true), put(Inode, 1);
                            true -> full
                        end
                    end);
                _ -> there
            end
        end)
    end,
    all([Inode, Busy | Locks], [Make, Make]).

%% Clients ask a pool for workers; one gives its worker back twice, and so two clients may have it at once.
pool() ->
    Pool = spawn(fun() -> pool([worker], []) end),
    Users = new(0),
    Use = fun(Times) ->
        case ask(Pool, get) of
            worker ->
                0 = get(Users),
                put(Users, 1),
                put(Users, 0),
                [Pool ! {give, worker} || _ <- lists:seq(1, Times)],
                done;
            none -> none
        end
    end,
    all([Pool, Users], [fun() -> Use(2) end, fun() -> Use(1) end, fun() -> Use(1) end]).

pool(Free, Given) ->
    receive
        {From, get} when Free =:= [] -> From ! {self(), none}, pool([], Given);
        {From, get} -> From ! {self(), hd(Free)}, pool(tl(Free), [hd(Free) | Given]);
        {give, Worker} -> pool([Worker | Free], lists:delete(Worker, Given));
        stop -> ok
    end.

%% Two agents sell three seats: each asks how many are left, and sells one if there is one.
airline() ->
    Seats = spawn(fun() -> seats(3) end),
    all([Seats], [fun() -> agent(Seats, sell, 2) end, fun() -> agent(Seats, sell, 2) end]).

airline_mended() ->
    Seats = spawn(fun() -> seats(3) end),
    all([Seats], [fun() -> agent(Seats, sell_if_left, 2) end, fun() -> agent(Seats, sell_if_left, 2) end]).

seats(Left) when Left >= 0 ->
    receive
        {From, how_many} -> From ! {self(), Left}, seats(Left);
        {From, sell} -> From ! {self(), sold}, seats(Left - 1);
        {From, sell_if_left} when Left > 0 -> From ! {self(), sold}, seats(Left - 1);
        {From, sell_if_left} -> From ! {self(), sold_out}, seats(Left);
        stop -> ok
    end.

agent(_, _, 0) -> [];
agent(Seats, How, N) ->
    case ask(Seats, how_many) of
        0 -> [];
        _ -> [ask(Seats, How) | agent(Seats, How, N - 1)]
    end.

%% A buyer orders; a credit check and an address check answer the seller, who takes the first answer for that of both.
purchase() ->
    Me = self(),
    Seller = spawn_link(fun() -> seller(Me) end),
    Seller ! {order, book},
    receive {delivered, book, To} -> home = To end.

seller(Buyer) ->
    receive {order, What} -> ok end,
    Me = self(),
    spawn(fun() -> Me ! {credit, ok} end),
    spawn(fun() -> Me ! {address, home} end),
    Answers = [receive {_, Answer} -> Answer end || _ <- [credit, address]],
    Buyer ! {delivered, What, lists:last(Answers)}.

%% Two clients start the same child of a supervisor: only the first one may expect that it is new.
supervisor() ->
    {ok, Supervisor} = supervisor:start_link(?MODULE, none),
    Start = fun() -> {ok, _} = supervisor:start_child(Supervisor, child()) end,
    {_, First} = spawn_monitor(Start),
    {_, Second} = spawn_monitor(Start),
    [receive {'DOWN', Reference, process, _, _} -> ok end || Reference <- [First, Second]],
    ok.

%% Each takes the child that is there.
supervisor_mended() ->
    {ok, Supervisor} = supervisor:start_link(?MODULE, none),
    Start = fun() ->
        case supervisor:start_child(Supervisor, child()) of
            {ok, Pid} -> Pid;
            {error, {already_started, Pid}} -> Pid
        end
    end,
    [Child, Child] = all([], [Start, Start]),
    ok.

init(none) -> {ok, {#{}, []}}.

child() ->
    #{id => child, start => {?MODULE, start_child, []}, shutdown => brutal_kill}.

start_child() -> {ok, spawn_link(fun() -> receive stop -> ok end end)}.

%% A token goes around a ring of processes twice: one order.
ring() ->
    Me = self(),
    Last = lists:foldl(fun(_, Next) -> spawn(fun() -> pass(Next, 2) end) end, Me, [1, 2, 3, 4]),
    Last ! token,
    receive token -> ok end,
    Last ! token,
    receive token -> ok end.

pass(_, 0) -> ok;
pass(Next, N) ->
    receive token -> Next ! token, pass(Next, N - 1) end.

%% Three philosophers take the fork at their left, and then the one at their right: when each has one, nobody eats.
philosophers() -> dine(fun(Left, Right) -> {Left, Right} end).

%% They take the first fork first.
philosophers_ordered() -> dine(fun(Left, Right) -> {min(Left, Right), max(Left, Right)} end).

dine(Order) ->
    Forks = [spawn(fun fork/0) || _ <- [1, 2, 3]],
    Eat = fun(Left, Right) ->
        {First, Second} = Order(Left, Right),
        [ask(Fork, take) || Fork <- [First, Second]],
        [Fork ! {self(), put_back} || Fork <- [First, Second]]
    end,
    Sides = lists:zip(Forks, tl(Forks) ++ [hd(Forks)]),
    all(Forks, [fun() -> Eat(Left, Right) end || {Left, Right} <- Sides]),
    ok.

fork() ->
    receive
        {Who, take} ->
            Who ! {self(), yours},
            receive {Who, put_back} -> fork() end;
        stop -> ok
    end.

%% A chain of three replicas: what is written goes from the first to the last one, which tells the client. The one in the middle fails,
%% and the first one is told of its new successor. What the middle had not passed on is lost: the client waits for ever.
chain() -> chain(fun(_, _) -> ok end).

%% The first one sends again what it has sent to the one that failed; the last one knows what it had already.
chain_mended() -> chain(fun(Successor, Sent) -> [Successor ! {write, N} || N <- lists:reverse(Sent)] end).

chain(Repair) ->
    Me = self(),
    Last = spawn(fun() -> last(Me, []) end),
    Middle = spawn(fun() -> middle(Last) end),
    First = spawn(fun() -> first(Middle, [], Repair) end),
    spawn(fun() -> Middle ! fail, First ! {successor, Last}, Me ! repaired end),
    First ! {write, 1},
    receive {written, 1} -> ok end,
    receive repaired -> ok end,
    [Replica ! stop || Replica <- [First, Last]],
    ok.

first(Successor, Sent, Repair) ->
    receive
        {write, N} -> Successor ! {write, N}, first(Successor, [N | Sent], Repair);
        {successor, New} -> Repair(New, Sent), first(New, Sent, Repair);
        stop -> ok
    end.

middle(Successor) ->
    receive
        {write, N} -> Successor ! {write, N}, middle(Successor);
        fail -> ok
    end.

last(Client, Had) ->
    receive
        {write, N} ->
            [Client ! {written, N} || not lists:member(N, Had)],
            last(Client, [N | Had]);
        stop -> ok
    end.
