%% Programs that use libraries of OTP: what their processes do to each other is explored with those of the libraries.
-module(real).
%% This one is also the callback of its supervisors.
-behaviour(gen_server).
-export([groups/0, groups_watched/0, names/0, names_mended/0, locks/0, transaction/0,
         hibernates/0, times_out/0, idle/0, restarts/0, restarts_rest/0, calls_restarted/0,
         dets_two/0, dets_closed/0, pool/0, pool_killed/0, pool_mended/0]).
-export([start_server/1, start_worker/0, init/1, handle_call/3, handle_cast/2, handle_info/2]).

%% Runs all at once, and gives their results in the order of the list. It fails as the first one of them that fails.
all(Bodies) ->
    Me = self(),
    Result = fun(Body) -> try {ok, Body()} catch error:Reason -> {failed, Reason} end end,
    Pids = [spawn(fun() -> Me ! {self(), Result(Body)} end) || Body <- Bodies],
    [receive {Pid, {ok, Value}} -> Value; {Pid, {failed, Reason}} -> exit(Reason) end || Pid <- Pids].

%%% pg

%% Two processes join a group and leave it: who looks sees none, one or both.
groups() ->
    {ok, Scope} = pg:start_link(?MODULE),
    Join = fun() -> ok = pg:join(?MODULE, group, self()), ok = pg:leave(?MODULE, group, self()) end,
    all([Join, Join, fun() -> length(pg:get_members(?MODULE, group)) end]),
    [] = pg:get_members(?MODULE, group),
    gen_server:stop(Scope).

%% A member ends as soon as it has joined. Who monitors the group thinks that it hears of each member once.
groups_watched() ->
    {ok, Scope} = pg:start_link(?MODULE),
    {Member, Reference} = spawn_monitor(fun() -> ok = pg:join(?MODULE, group, self()) end),
    {Watch, Members} = pg:monitor(?MODULE, group),
    receive {'DOWN', Reference, process, Member, normal} -> ok end,
    case Members of
        [] -> receive {Watch, join, group, [Member]} -> ok end;
        [Member] -> ok
    end,
    receive {Watch, leave, group, [Member]} -> ok end,
    gen_server:stop(Scope).

%%% global

%% Two processes register a name: one of them is told that it is taken, or so the program thinks.
names() ->
    Register = fun() ->
        yes = global:register_name(served, self()),
        global:unregister_name(served)
    end,
    all([Register, Register]),
    ok.

%% Who comes second takes the name from the other.
names_mended() ->
    Register = fun() ->
        yes = global:re_register_name(served, self()),
        self()
    end,
    Pids = all([Register, Register]),
    case global:whereis_name(served) of
        undefined -> ok;
        Pid -> true = lists:member(Pid, Pids)
    end.

%% Two locks, each for both processes: nobody is in between.
locks() ->
    Table = ets:new(table, [public]),
    ets:insert(Table, {n, 0}),
    Add = fun() ->
        true = global:set_lock({lock, self()}, [node()]),
        N = ets:lookup_element(Table, n, 2),
        ets:insert(Table, {n, N + 1}),
        true = global:del_lock({lock, self()}, [node()])
    end,
    all([Add, Add]),
    2 = ets:lookup_element(Table, n, 2),
    ok.

%% The same as a transaction that gives up when the lock is taken.
transaction() ->
    Table = ets:new(table, [public]),
    ets:insert(Table, {n, 0}),
    Add = fun() -> ets:insert(Table, {n, ets:lookup_element(Table, n, 2) + 1}) end,
    Try = fun() -> global:trans({lock, self()}, Add, [node()], 0) end,
    Done = [true || true <- all([Try, Try])],
    true = length(Done) =:= ets:lookup_element(Table, n, 2),
    ok.

%%% gen_server

%% A server hibernates behind each request.
hibernates() ->
    {ok, Server} = gen_server:start_link(?MODULE, {counter, hibernate}, []),
    Ask = fun() -> gen_server:call(Server, next, infinity) end,
    [1, 2] = lists:sort(all([Ask, Ask])),
    gen_server:stop(Server).

%% A call that waits for a second, and a server that is slow: the answer comes too late, and nobody takes it.
times_out() ->
    {ok, Server} = gen_server:start_link(?MODULE, {counter, infinity}, []),
    [Ok] = all([fun() -> try gen_server:call(Server, next, 1000) catch exit:{timeout, _} -> late end end]),
    true = lists:member(Ok, [1, late]),
    2 = gen_server:call(Server, next, infinity),
    gen_server:stop(Server).

%% A server ends when it had nothing to do for a second; who calls it then fails.
idle() ->
    {ok, Server} = gen_server:start(?MODULE, {counter, 1000}, []),
    1 = gen_server:call(Server, next, infinity),
    2 = gen_server:call(Server, next, infinity).

%%% supervisor

%% A worker crashes, and is started again: who calls it in between fails.
calls_restarted() ->
    {ok, Supervisor} = supervisor:start_link(?MODULE, {one_for_one, [first]}),
    gen_server:cast(first, crash),
    1 = gen_server:call(first, next, infinity),
    stop(Supervisor).

%% A worker crashes, and others go on.
restarts() ->
    {ok, Supervisor} = supervisor:start_link(?MODULE, {one_for_one, [first, second]}),
    1 = gen_server:call(second, next, infinity),
    gen_server:cast(first, crash),
    2 = gen_server:call(second, next, infinity),
    stop(Supervisor).

%% A worker crashes, and with it those that were started later: a caller of the second one may come to the old one, to the new one
%% or to none.
restarts_rest() ->
    {ok, Supervisor} = supervisor:start_link(?MODULE, {rest_for_one, [first, second]}),
    gen_server:cast(first, crash),
    1 = gen_server:call(second, next, infinity),
    stop(Supervisor).

stop(Supervisor) ->
    unlink(Supervisor),
    Reference = monitor(process, Supervisor),
    exit(Supervisor, shutdown),
    receive {'DOWN', Reference, process, Supervisor, _} -> ok end.

start_server(Name) -> gen_server:start_link({local, Name}, ?MODULE, {counter, infinity}, []).

%%% dets

%% Two processes open the same file, write to it and close it.
dets_two() ->
    File = file(),
    {ok, dets_two} = dets:open_file(dets_two, [{file, File}]),
    Write = fun(Key) -> fun() ->
        {ok, dets_two} = dets:open_file(dets_two, [{file, File}]),
        ok = dets:insert(dets_two, {Key, Key}),
        ok = dets:close(dets_two)
    end end,
    all([Write(a), Write(b)]),
    [{a, a}] = dets:lookup(dets_two, a),
    [{b, b}] = dets:lookup(dets_two, b),
    ok = dets:close(dets_two),
    file:delete(File),
    ok.

%% One process closes the table that another one has not opened: it thinks that it may read it.
dets_closed() ->
    File = file(),
    Me = self(),
    {Owner, Reference} = spawn_monitor(fun() ->
        {ok, dets_closed} = dets:open_file(dets_closed, [{file, File}]),
        ok = dets:insert(dets_closed, {a, 1}),
        Me ! opened,
        ok = dets:close(dets_closed)
    end),
    receive opened -> ok end,
    [{a, 1}] = dets:lookup(dets_closed, a),
    receive {'DOWN', Reference, process, Owner, normal} -> ok end,
    file:delete(File),
    ok.

%% What a run writes to files is there for the next one, which may be made at the same time: each has a file of its own.
file() ->
    {ok, Process} = file:read_link("/proc/self"),
    File = "real-" ++ Process ++ ".dets",
    file:delete(File),
    File.

%%% A pool of workers

%% Two clients share one worker, and give it back.
pool() ->
    {ok, Pool} = gen_server:start_link(?MODULE, {pool, 1}, []),
    Use = fun() ->
        Worker = gen_server:call(Pool, check_out, infinity),
        N = gen_server:call(Worker, next, infinity),
        gen_server:cast(Pool, {check_in, Worker}),
        N
    end,
    [1, 2] = lists:sort(all([Use, Use])),
    gen_server:stop(Pool).

%% A client ends, and does not give back its worker: who waits for it waits for ever, unless the pool watches its clients.
pool_killed() -> killed(pool).
pool_mended() -> killed(watching_pool).

killed(Kind) ->
    {ok, Pool} = gen_server:start_link(?MODULE, {Kind, 1}, []),
    {_, Reference} = spawn_monitor(fun() ->
        gen_server:call(Pool, check_out, infinity)
    end),
    Worker = gen_server:call(Pool, check_out, infinity),
    1 = gen_server:call(Worker, next, infinity),
    gen_server:cast(Pool, {check_in, Worker}),
    receive {'DOWN', Reference, process, _, _} -> ok end,
    gen_server:stop(Pool).

start_worker() -> gen_server:start_link(?MODULE, {counter, infinity}, []).

%%% Callbacks

init({Strategy, Names}) when is_list(Names) ->
    Child = fun(Name) -> #{id => Name, start => {?MODULE, start_server, [Name]}} end,
    {ok, {#{strategy => Strategy, intensity => 5, period => 10}, [Child(Name) || Name <- Names]}};
init({counter, After}) ->
    {ok, {counter, 0, After}};
init({Pool, Size}) ->
    Workers = [begin {ok, Worker} = start_worker(), Worker end || _ <- lists:seq(1, Size)],
    {ok, {Pool, Workers, queue:new(), #{}}}.

handle_call(next, _, {counter, N, infinity}) ->
    {reply, N + 1, {counter, N + 1, infinity}};
handle_call(next, _, {counter, N, After}) ->
    {reply, N + 1, {counter, N + 1, After}, After};
handle_call(check_out, From, {Pool, [], Waiting, Users}) ->
    {noreply, {Pool, [], queue:in(From, Waiting), Users}};
handle_call(check_out, {Client, _}, {Pool, [Worker | Free], Waiting, Users}) ->
    {reply, Worker, {Pool, Free, Waiting, use(Pool, Client, Worker, Users)}}.

handle_cast(crash, {counter, _, _}) ->
    exit(crash);
handle_cast({check_in, Worker}, {Pool, Free, Waiting, Users}) ->
    {noreply, given({Pool, Free, Waiting, Users}, Worker)}.

handle_info(timeout, {counter, _, _} = State) ->
    {stop, normal, State};
handle_info({'DOWN', Reference, process, _, _}, {watching_pool, Free, Waiting, Users}) ->
    case [Worker || {Worker, Known} <- maps:to_list(Users), Known =:= Reference] of
        [Worker] -> {noreply, given({watching_pool, Free, Waiting, Users}, Worker)};
        [] -> {noreply, {watching_pool, Free, Waiting, Users}}
    end;
handle_info(_, State) ->
    {noreply, State}.

%% A worker is free: the first one that waits for it has it.
given({Pool, Free, Waiting, Users}, Worker) ->
    [demonitor(Reference, [flush]) || Reference <- [maps:get(Worker, Users, none)], is_reference(Reference)],
    Left = maps:remove(Worker, Users),
    case queue:out(Waiting) of
        {empty, _} ->
            {Pool, [Worker | Free], Waiting, Left};
        {{value, {Client, _} = From}, Others} ->
            %% Behind the answer, the client could have ended.
            Used = use(Pool, Client, Worker, Left),
            gen_server:reply(From, Worker),
            {Pool, Free, Others, Used}
    end.

use(pool, _, _, Users) -> Users;
use(watching_pool, Client, Worker, Users) -> Users#{Worker => monitor(process, Client)}.
