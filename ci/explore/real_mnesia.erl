%% Transactions of Mnesia on one node, with tables in memory. The emulator starts Mnesia: erl -s mnesia start.
-module(real_mnesia).
-export([updates/0, updates_dirty/0, opposite/0, create/0, create_mended/0, merge/0]).

%% Runs all at once, and gives their results in the order of the list. It fails as the first one of them that fails.
all(Bodies) ->
    Me = self(),
    Result = fun(Body) -> try {ok, Body()} catch error:Reason -> {failed, Reason} end end,
    Pids = [spawn(fun() -> Me ! {self(), Result(Body)} end) || Body <- Bodies],
    [receive {Pid, {ok, Value}} -> Value; {Pid, {failed, Reason}} -> exit(Reason) end || Pid <- Pids].

with_table(Objects, Do) ->
    {atomic, ok} = mnesia:create_table(table, [{ram_copies, [node()]}]),
    ok = mnesia:wait_for_tables([table], infinity),
    [ok = mnesia:dirty_write({table, Key, Value}) || {Key, Value} <- Objects],
    Do(),
    ok.

add(Key) ->
    [{table, Key, N}] = mnesia:read(table, Key),
    mnesia:write({table, Key, N + 1}).

%% Two processes add one, each in a transaction: no update is lost.
updates() ->
    with_table([{a, 0}], fun() ->
        Add = fun() -> mnesia:transaction(fun() -> add(a) end) end,
        [{atomic, ok}, {atomic, ok}] = all([Add, Add]),
        [{table, a, 2}] = mnesia:dirty_read(table, a)
    end).

%% The same without transactions.
updates_dirty() ->
    with_table([{a, 0}], fun() ->
        Add = fun() -> mnesia:async_dirty(fun() -> add(a) end) end,
        [ok, ok] = all([Add, Add]),
        [{table, a, 2}] = mnesia:dirty_read(table, a)
    end).

%% Two transactions lock two objects in opposite orders: one of them is restarted, and none waits for ever.
opposite() ->
    with_table([{a, 0}, {b, 0}], fun() ->
        Add = fun(First, Second) -> fun() -> mnesia:transaction(fun() -> add(First), add(Second) end) end end,
        [{atomic, ok}, {atomic, ok}] = all([Add(a, b), Add(b, a)]),
        [{table, a, 2}] = mnesia:dirty_read(table, a),
        [{table, b, 2}] = mnesia:dirty_read(table, b)
    end).

%% Two processes make the same table: the program thinks that it is new for both.
create() ->
    Create = fun() -> {atomic, ok} = mnesia:create_table(table, [{ram_copies, [node()]}]) end,
    all([Create, Create]),
    ok.

create_mended() ->
    Create = fun() -> element(1, mnesia:create_table(table, [{ram_copies, [node()]}])) end,
    [aborted, atomic] = lists:sort(all([Create, Create])),
    ok.

%% A table is made while the schema is merged, as when another node is added.
merge() ->
    Create = fun() -> {atomic, ok} = mnesia:create_table(table, [{ram_copies, [node()]}]) end,
    Merge = fun() -> {atomic, _} = mnesia_schema:merge_schema() end,
    all([Create, Merge]),
    ok.
