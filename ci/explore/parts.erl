%% A part of a program that has several modules.
-module(parts).
-export([table/0, count/1]).

table() ->
    Table = ets:new(counter, [public]),
    ets:insert(Table, {count, 0}),
    Table.

count(Table) ->
    [{count, N}] = ets:lookup(Table, count),
    ets:insert(Table, {count, N + 1}).
