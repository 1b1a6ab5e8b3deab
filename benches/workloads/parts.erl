%% What benches/parts.rs measures; compiled with `erlc +deterministic +no_docs parts.erl`. Runs without
%% OTP's libraries: it calls BIFs and itself alone. Each function does its work N times.
-module(parts).
-export([calls/1, tail_calls/1, funs/1, bifs/1, tuples/1, collections/1, messages/1, echo/1, spawns/1, ended/0,
         ets_inserts/1, ets_lookups/1, traced/1, called/1]).

%% Local calls that return.
calls(0) -> ok;
calls(N) -> called(N), calls(N - 1).

called(N) -> N.

tail_calls(0) -> ok;
tail_calls(N) -> tail_calls(N - 1).

funs(N) -> funs(N, fun(X) -> X + N end).

funs(0, _) -> ok;
funs(N, F) -> F(N), funs(N - 1, F).

bifs(0) -> ok;
bifs(N) -> erlang:phash2(N), bifs(N - 1).

%% Garbage: small collections of nothing alive.
tuples(0) -> ok;
tuples(N) -> tuple(N), tuples(N - 1).

tuple(N) -> {n, N, N}.

%% Full sweeps of a heap with 10,000 cells alive.
collections(N) -> collections(N, list(10000, [])).

collections(0, Live) -> Live;
collections(N, Live) -> erts_internal:garbage_collect(major), collections(N - 1, Live).

list(0, List) -> List;
list(N, List) -> list(N - 1, [N | List]).

%% There and back.
messages(N) -> messages(N, spawn(?MODULE, echo, [self()])).

messages(0, Echo) -> Echo ! stop, ok;
messages(N, Echo) ->
    Echo ! N,
    receive N -> messages(N - 1, Echo) end.

echo(To) ->
    receive
        stop -> ok;
        Message -> To ! Message, echo(To)
    end.

%% Processes that end at once.
spawns(0) -> ok;
spawns(N) -> spawn(?MODULE, ended, []), spawns(N - 1).

ended() -> ok.

ets_inserts(N) -> ets_inserts(N, ets:new(parts, [])).

ets_inserts(0, Table) -> ets:delete(Table);
ets_inserts(N, Table) -> ets:insert(Table, {N band 1023, N}), ets_inserts(N - 1, Table).

ets_lookups(N) ->
    Table = ets:new(parts, []),
    ets:insert(Table, {key, value}),
    ets_lookups(N, Table).

ets_lookups(0, Table) -> ets:delete(Table);
ets_lookups(N, Table) -> [{key, value}] = ets:lookup(Table, key), ets_lookups(N - 1, Table).

%% Its callee gets the breakpoint.
traced(0) -> ok;
traced(N) -> called(N), traced(N - 1).
