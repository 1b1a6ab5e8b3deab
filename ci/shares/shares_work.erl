%% Workloads whose shares are known without a profiler.
%%
%% `main` runs a workload for so many seconds of processor time, its parts in turns, and prints a line for each part:
%% `total Module:Function/Arity Part` or `own Module:Function/Arity Part`. A part is milliseconds of the emulator's processor time,
%% or, where functions do the same unit of work, units. `total` is of a function with all that it calls.
-module(shares_work).

-export([main/1]).
-export([one/1, two/1, five/1, burns/1, under/1, odd/1, even/1, third/1, folds/1, encodes/1, decodes/1, sorts/1, looks_up/1,
         collects/1, maps/1, builds/1, matches/1, throws/1, scans/1, deflates/1, hashes/1, derives/1, multiplies/1, digests/1,
         asks/1, formats/1, closes/1, cold/1]).

%% A part runs for about so long before the next one has its turn.
-define(TURN, 40).

main([Name, Seconds]) ->
    put(data, lists:seq(1, 300)),
    put(random, [erlang:phash2(N) || N <- lists:seq(1, 3000)]),
    put(encoded, term_to_binary(get(data))),
    put(bytes, binary:copy(<<"all the same and nothing new ">>, 400)),
    put(table, ets:new(table, [set])),
    [ets:insert(get(table), {N, N}) || N <- lists:seq(1, 10000)],
    put(live, lists:seq(1, 200000)),
    put(big, (1 bsl 4000) - 1),
    {ok, _} = application:ensure_all_started(crypto),
    %% The emulator's clock would count the loading of code for the part that needs it first.
    [{module, _} = code:ensure_loaded(M) || M <- [io_lib, io_lib_format, io_lib_pretty, zlib, re]],
    Until = runtime() + list_to_integer(Seconds) * 1000,
    run(workload(list_to_atom(Name)), Until),
    halt().

%% Units: each function does so many times the same. Otherwise, parts that measure themselves; `own` where the function's own
%% time is all of it.
workload(units) -> {units, [{1, fun one/1}, {2, fun two/1}, {5, fun five/1}]};
workload(tails) -> {tails, [{1, fun odd/1}, {1, fun even/1}, {2, fun third/1}]};
workload(rare) -> {units, [{1, fun cold/1}, {49, fun burns/1}]};
workload(two_processes) -> {two, [{3, fun one/1}, {1, fun two/1}]};
workload(recursion) -> {own, [fun under/1, fun burns/1]};
workload(Name) -> {total, [fun burns/1 | parts(Name)]}.

parts(funs) -> [fun folds/1, fun closes/1];
parts(external_terms) -> [fun encodes/1, fun decodes/1];
parts(sort) -> [fun sorts/1];
parts(tables) -> [fun looks_up/1];
parts(collections) -> [fun collects/1];
parts(maps) -> [fun maps/1];
parts(binaries) -> [fun builds/1, fun matches/1];
parts(exceptions) -> [fun throws/1];
parts(regex) -> [fun scans/1];
parts(zlib) -> [fun deflates/1];
parts(hashes) -> [fun hashes/1, fun digests/1];
parts(dirty) -> [fun derives/1];
parts(bignums) -> [fun multiplies/1];
parts(messages) -> [fun asks/1];
parts(texts) -> [fun formats/1];
parts(mixed) -> [fun sorts/1, fun encodes/1, fun looks_up/1, fun scans/1, fun collects/1].

run({tails, Parts}, Until) ->
    [{_, Odd}, {_, _}, {_, Third}] = Parts,
    units([{2, Odd}, {2, Third}], Until),
    tell(own, [{Of, Units} || {Units, Of} <- Parts]);
run({units, Parts}, Until) ->
    units(Parts, Until),
    tell(own, [{Of, Units} || {Units, Of} <- Parts]);
run({two, Parts}, Until) ->
    [{_, First}, {_, Second}] = Parts,
    Self = self(),
    Other = spawn_link(fun() -> in_step(Second, 1, Self) end),
    steps(First, 3, Other, Until),
    tell(own, [{Of, Units} || {Units, Of} <- Parts]);
run({Kind, Functions}, Until) ->
    Parts = [begin {Count, Taken} = repetitions(Of, 1, taken(Of, 1)), {Of, Count, Taken} end || Of <- Functions],
    tell(Kind, turns(Parts, Until)).

units(Parts, Until) ->
    [Of(Units * 100000) || {Units, Of} <- Parts],
    case runtime() < Until of
        true -> units(Parts, Until);
        false -> ok
    end.

%% Both processes work at the same time, each for its units; none is ahead by more than a step.
steps(Of, Units, Other, Until) ->
    Other ! step,
    Of(Units * 100000),
    receive done -> ok end,
    case runtime() < Until of
        true -> steps(Of, Units, Other, Until);
        false -> ok
    end.

in_step(Of, Units, Other) ->
    receive step -> ok end,
    Of(Units * 100000),
    Other ! done,
    in_step(Of, Units, Other).

%% How many repetitions take a turn, and what it took to find out. The first call loads code, and tells nothing.
repetitions(Of, Count, Before) ->
    {Time, Taken} = timer:tc(fun() -> taken(Of, Count) end),
    Now = Before + Taken,
    case Time >= 10000 of
        true -> {max(1, Count * ?TURN * 1000 div Time), Now};
        false -> repetitions(Of, Count * 2, Now)
    end.

turns(Parts, Until) ->
    Now = [{Of, Count, Before + taken(Of, Count)} || {Of, Count, Before} <- Parts],
    case runtime() < Until of
        true -> turns(Now, Until);
        false -> [{Of, Taken} || {Of, _, Taken} <- Now]
    end.

taken(Of, Count) ->
    Begun = runtime(),
    Of(Count),
    runtime() - Begun.

runtime() -> element(1, statistics(runtime)).

tell(Kind, Parts) ->
    [io:format("~s shares_work:~s/1 ~w~n", [Kind, element(2, erlang:fun_info(Of, name)), Part]) || {Of, Part} <- Parts].

%% The unit: the same instructions in each function.
-define(UNIT(Name), Name(0) -> ok; Name(N) -> X = N * 7 rem 13, Name(N - 1 + X - X)).

?UNIT(one).
?UNIT(two).
?UNIT(five).
?UNIT(burns).
?UNIT(cold).
?UNIT(third).

%% Each leaves itself for the other, without a trace on the stack.
odd(0) -> ok;
odd(N) -> X = N * 7 rem 13, even(N - 1 + X - X).

even(0) -> ok;
even(N) -> X = N * 7 rem 13, odd(N - 1 + X - X).

%% Its stack is far deeper than what anybody copies.
under(0) -> 0;
under(N) -> 1 + under(N - 1).

folds(0) -> ok;
folds(N) -> lists:foldl(fun(A, B) -> A + B end, 0, get(data)), folds(N - 1).

closes(0) -> ok;
closes(N) -> _ = length([Of(N) || Of <- [fun(X) -> X + Y end || Y <- get(data)]]), closes(N - 1).

encodes(0) -> ok;
encodes(N) -> _ = byte_size(term_to_binary(get(data))), encodes(N - 1).

decodes(0) -> ok;
decodes(N) -> _ = length(binary_to_term(get(encoded))), decodes(N - 1).

sorts(0) -> ok;
sorts(N) -> _ = hd(lists:sort(get(random))), sorts(N - 1).

looks_up(0) -> ok;
looks_up(N) -> [{_, _}] = ets:lookup(get(table), 1 + N rem 10000), ets:insert(get(table), {1 + N rem 10000, N}), looks_up(N - 1).

%% Each one moves what lives.
collects(0) -> ok;
collects(N) -> erlang:garbage_collect(), collects(N - 1).

maps(0) -> ok;
maps(N) -> _ = map_size(maps:map(fun(_, V) -> V + 1 end, maps:from_list([{K, N} || K <- get(data)]))), maps(N - 1).

builds(0) -> ok;
builds(N) -> _ = byte_size(<< <<(X + N):32>> || X <- get(data) >>), builds(N - 1).

matches(0) -> ok;
matches(N) -> spaces(get(bytes), 0), matches(N - 1).

spaces(<<$\s, Rest/binary>>, Sum) -> spaces(Rest, Sum + 1);
spaces(<<_, Rest/binary>>, Sum) -> spaces(Rest, Sum);
spaces(<<>>, Sum) -> Sum.

throws(0) -> ok;
throws(N) ->
    try raises(N) catch throw:{thrown, N} -> ok end,
    throws(N - 1).

raises(N) -> throw({thrown, N}).

scans(0) -> ok;
scans(N) -> {match, _} = re:run(get(bytes), "n[a-z]+w", [global]), scans(N - 1).

deflates(0) -> ok;
deflates(N) -> _ = byte_size(zlib:compress(get(bytes))), deflates(N - 1).

hashes(0) -> ok;
hashes(N) -> _ = byte_size(crypto:hash(sha256, get(bytes))), hashes(N - 1).

digests(0) -> ok;
digests(N) -> _ = byte_size(erlang:md5(get(bytes))), digests(N - 1).

%% On a dirty scheduler.
derives(0) -> ok;
derives(N) -> _ = byte_size(crypto:pbkdf2_hmac(sha256, <<"word">>, <<"salt">>, 2000, 32)), derives(N - 1).

multiplies(0) -> ok;
multiplies(N) -> _ = (get(big) * get(big)) rem 7, multiplies(N - 1).

asks(0) -> ok;
asks(N) ->
    self() ! {N, get(data)},
    receive {N, [_ | _]} -> ok end,
    asks(N - 1).

formats(0) -> ok;
formats(N) -> _ = lists:flatten(io_lib:format("~p ~s ~w", [N, "text", {N, [N]}])), formats(N - 1).
