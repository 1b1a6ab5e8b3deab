%% What the templates of the compiled engine leave to others, and what lies just before it: bits that begin anywhere,
%% sizes in variables, numbers at the ends of small integers, keys that are not there, records that are changed where
%% they are.
-module(edges).
-export([main/1]).
-record(r, {a = 0, b = [], c, d = 0}).

main(_) ->
    [show(Name, outcome(Fun)) || {Name, Fun} <- all()],
    io:format("done~n").

outcome(Fun) -> try Fun() catch Class:Reason:Stack -> {Class, Reason, Stack} end.

show(Name, Outcome) ->
    {_, Reductions} = process_info(self(), reductions),
    io:format("~p: ~b ~b ~P~n", [Name, erlang:phash2(Outcome), Reductions, Outcome, 30]).

all() ->
    [{utf8, fun() -> [utf8(<<A, B, C, D>>) || A <- bytes(), B <- bytes(), C <- bytes(), D <- [0, 128, 191, 240]] end},
     {utf8_short, fun() -> [utf8(<<A, B>>) || A <- bytes(), B <- bytes()] end},
     {code_points, fun() -> [utf8(<<N/utf8>>) || N <- [0, 127, 128, 2047, 2048, 16#d7ff, 16#e000, 16#ffff, 16#10000, 16#10ffff]] end},
     {no_code_points, fun() -> [outcome(fun() -> <<N/utf8>> end) || N <- [-1, 16#d800, 16#110000, 1 bsl 70, a]] end},
     {skipped, fun() -> [skipped(B) || B <- binaries()] end},
     {sized, fun() -> [sized(N, B) || N <- sizes(), B <- binaries()] end},
     {halves, fun() -> [halves(N, B) || N <- sizes(), B <- binaries()] end},
     {tails, fun() -> [tails(B) || B <- binaries()] end},
     {odd, fun() -> [odd(B) || B <- binaries()] end},
     {ends, fun() -> [ends(B) || B <- binaries()] end},
     {little, fun() -> [little(B) || B <- binaries()] end},
     {large_fields, fun() -> [large_fields(B) || B <- wide()] end},
     {parts, fun() -> [parts(B) || B <- binaries() ++ wide()] end},
     {shared, fun() -> [shared(B) || B <- wide()] end},
     {make, fun() -> [outcome(fun() -> make(A, B, C) end) || A <- numbers(), B <- [1.5, 3, a, 1 bsl 70], C <- binaries()] end},
     {make_little, fun() -> [make_little(A) || A <- numbers()] end},
     {make_utf8, fun() -> [outcome(fun() -> <<"x", A/utf8, B/utf8>> end) || A <- [$a, 228, 8364, -1, b], B <- [$z, 127, 128]] end},
     {make_bits, fun() -> [<<A:3, B:7, A:5>> || A <- numbers(), B <- numbers()] end},
     {make_sized, fun() -> [outcome(fun() -> <<A:N, B/bits>> end) || A <- [1, -1, 77], N <- sizes(), B <- [<<>>, <<1:3>>, <<"ab">>]] end},
     {append, fun() -> appended(300, <<>>, []) end},
     {append_twice, fun() -> B = <<(list_to_binary(lists:seq(1, 100)))/binary, 1>>, C = <<B/binary, 2, 3>>, D = <<B/binary, 4:4>>, {B, C, D, <<C/binary, D/bits>>} end},
     {append_bits, fun() -> lists:foldl(fun(N, B) -> <<B/bits, N:5>> end, <<>>, lists:seq(1, 500)) end},
     {append_more, fun() -> lists:foldl(fun(B, All) -> <<All/binary, B/binary, ":", (byte_size(B)):16>> end, <<>>, [list_to_binary(lists:seq(1, N)) || N <- lists:seq(1, 200)]) end},
     {append_self, fun() -> lists:foldl(fun(_, B) -> <<B/binary, B/binary, 1>> end, <<7>>, lists:seq(1, 12)) end},
     {append_then_match, fun() -> lists:foldl(fun(N, B) -> C = <<B/binary, N:32>>, <<_:32, _/binary>> = C, C end, <<>>, lists:seq(1, 200)) end},
     {comprehension, fun() -> << <<(N * 3):11, "z">> || <<N:5>> <= list_to_binary(lists:seq(0, 255)) >> end},
     {sizes, fun() -> [outcome(fun() -> {byte_size(T), bit_size(T)} end) || T <- binaries() ++ [a, [], {}, 1 bsl 70]] end},
     {tuple_size, fun() -> [outcome(fun() -> tuple_size(T) end) || T <- terms()] end},
     {map_size, fun() -> [outcome(fun() -> map_size(T) end) || T <- terms()] end},
     {length, fun() -> [outcome(fun() -> length(T) end) || T <- terms() ++ [lists:seq(1, N) || N <- [15, 16, 17, 31, 32, 5000, 100000]]] end},
     {guards, fun() -> [guards(T) || T <- terms()] end},
     {element, fun() -> [outcome(fun() -> element(N, T) end) || N <- [0, 1, 2, 3, -1, a, 1 bsl 70, (1 bsl 59) - 1], T <- terms()] end},
     {map_get, fun() -> [outcome(fun() -> map_get(K, M) end) || K <- keys(), M <- maps()] end},
     {is_map_key, fun() -> [outcome(fun() -> is_map_key(K, M) end) || K <- keys(), M <- maps()] end},
     {fetched, fun() -> [fetched(K, M) || K <- keys(), M <- maps()] end},
     {negated, fun() -> [{-N, outcome(fun() -> 0 - N end)} || N <- numbers()] end},
     {not_, fun() -> [outcome(fun() -> not T end) || T <- terms()] end},
     {same, fun() -> [{A =:= B, A =/= B, A == B, A /= B} || A <- terms(), B <- terms()] end},
     {sums, fun() -> [outcome(fun() -> {N + M, N - M, 1 - N, N + 1, M * N, N * M + N, N * 3 + M, M - N * N} end) || N <- numbers() ++ floats(), M <- numbers() ++ floats()] end},
     {not_numbers, fun() -> [outcome(fun() -> N * 2.5 + M end) || N <- [a, 1.5, 1.0e308], M <- [b, 1.0, 1.0e308]] end},
     {floats, fun() -> [{A < B, A >= B, A == B, A /= B, A > 0.0, 1.0 =< B} || A <- numbers() ++ floats(), B <- floats()] end},
     {exact, fun() -> [exact(M) || M <- maps()] end},
     {exact_many, fun() -> [outcome(fun() -> M#{a := 1, 1 := 2, [] := 3, b := 4} end) || M <- maps()] end},
     {assoc, fun() -> [outcome(fun() -> M#{a => x, 1 => M} end) || M <- maps()] end},
     {assoc_same, fun() -> [outcome(fun() -> N = M#{a => 5}, {N, N#{a => 5} =:= N} end) || M <- maps()] end},
     {assoc_twice, fun() -> [outcome(fun() -> M#{a => 1, a => 2} end) || M <- maps()] end},
     {updates, fun() -> lists:foldl(fun(N, M) -> M#{a := N, b := [N | maps:get(b, M)]} end, #{a => 0, b => [], c => 1}, lists:seq(1, 2000)) end},
     {records, fun() -> records(3000, #r{}) end},
     {record_same, fun() -> [R#r{a = N} || N <- [0, 1], R <- [#r{}, #r{a = 1}]] end},
     {records_old, fun() -> R = #r{c = lists:seq(1, 100)}, garbage_collect(), in_place(200, R) end},
     {jumps, fun() -> [jump(N) || N <- lists:seq(-3, 24) ++ [a, 1.0, 1 bsl 70, -(1 bsl 59), (1 bsl 59) - 1]] end},
     {far_jumps, fun() -> [far(N) || N <- [(1 bsl 59) - K || K <- lists:seq(1, 12)] ++ [-(1 bsl 59), -(1 bsl 59) + 1, 0]] end},
     {bifs, fun() -> [outcome(fun() -> {lists:reverse(T), maps:get(a, T, none), erlang:setelement(1, T, z)} end) || T <- terms()] end},
     {traps, fun() -> {length(lists:seq(1, 50000) -- lists:seq(2, 60000, 2)), erlang:phash2(lists:duplicate(50000, a) ++ [b])} end},
     {selfs, fun() -> [self() =:= S || S <- [self(), spawn(fun() -> ok end)]] end},
     {thrown, fun() -> [outcome_of(N) || N <- lists:seq(1, 200)] end},
     {deep_traces, fun() -> outcome(fun() -> deep(12) end) end}].

bytes() -> [0, 1, 65, 127, 128, 159, 160, 164, 191, 192, 193, 194, 223, 224, 237, 239, 240, 244, 245, 247, 248, 255].

sizes() -> [0, 1, 7, 8, 9, 16, 24, 100, 600, -1, a, 1.0, 1 bsl 70].

binaries() ->
    [<<>>, <<1:1>>, <<5:3>>, <<"a">>, <<"ab">>, <<200:9>>, <<1, 2, 3>>, <<-1:31>>, <<"abcdefgh">>, <<0:64, 255>>, <<-1:67>>,
     inner(<<1:5, "within", 2:3>>), inner(<<7:5, -1:96>>), list_to_binary(lists:seq(1, 64)), list_to_binary(lists:seq(1, 65))].

inner(<<_:5, B/bits>>) -> B.

wide() -> [<<0:1, -1:200>>, list_to_binary(lists:seq(1, 255)), inner(<<3:5, -1:1600>>), <<1:64, 2:60, 3:59, -4:64, 5:9>>,
           <<(1 bsl 63):64, (1 bsl 59):64, ((1 bsl 59) - 1):64, 0:8>>].

terms() -> [0, 1, -1, 1 bsl 70, 2.5, a, true, false, [], [1, 2], [1 | 2], {}, {x}, {x, y}, #{}, #{a => 1}, large(), <<>>, <<1:1>>,
            fun lists:max/1].

numbers() -> [0, 1, -1, 7, 255, -256, 65535, 1 bsl 30, 1 bsl 31, (1 bsl 59) - 1, -(1 bsl 59), 1 bsl 59, 1 bsl 63, -(1 bsl 64), 1 bsl 100].

floats() -> [0.0, -0.0, 1.5, -2.25, 1.0e200, 5.0e-324, 1.0e17].

keys() -> [a, b, 1, 1.0, [], [1], {k}, <<"k">>, 1 bsl 70].

large() -> maps:from_list([{N, -N} || N <- lists:seq(1, 40)]).

maps() -> [#{}, #{a => 5}, #{a => 1, b => 2, 1 => 3, [] => 4}, #{[1] => x, {k} => y, <<"k">> => z, a => w}, #{1.0 => f, 1 => i, (1 bsl 70) => big},
           maps:from_list([{N, N} || N <- [a, b | lists:seq(1, 30)]]), (large())#{a => 0}, a, {}].

utf8(<<C/utf8, R/bits>>) -> [C | utf8(R)];
utf8(<<C, R/bits>>) -> [{C} | utf8(R)];
utf8(R) -> R.

skipped(<<_/utf8, R/bits>>) -> [s | skipped(R)];
skipped(<<_:3, R/bits>>) -> [t | skipped(R)];
skipped(R) -> R.

sized(N, B) ->
    case B of
        <<A:N/binary, R/bits>> -> {A, R};
        <<A:N/bits, R/bits>> -> {bits, A, R};
        <<A:N, R/bits>> -> {integer, A, R};
        _ -> none
    end.

halves(N, B) ->
    case B of
        <<_:N/binary, R/binary>> -> R;
        <<_:4, A:N/bits, _/bits>> -> A;
        _ -> none
    end.

tails(<<A, R/binary>>) -> {A, R, byte_size(R)};
tails(<<A:1, R/bits>>) -> {A, R, bit_size(R)};
tails(R) -> R.

odd(<<A:3, B:6/signed, C:7, R/bits>>) -> [A, B, C | odd(R)];
odd(<<A:1, R/bits>>) -> [A | odd(R)];
odd(<<>>) -> [].

ends(<<A:4, 5:4, B/binary>>) -> {A, B};
ends(<<1:1, A:57, B:6>>) -> {A, B};
ends(<<A:20/little, _:4, B:12/little-signed, _/bits>>) -> {A, B};
ends(<<A:7>>) -> A;
ends(<<_:1, A:8, "c", _/bits>>) -> A;
ends(_) -> none.

little(<<A:16/little, B:24/little-signed, C:32/native, R/bits>>) -> {A, B, C, R};
little(<<A:16/little-signed, R/bits>>) -> {A, R};
little(<<A:8/signed-little, R/bits>>) -> {A, R};
little(R) -> R.

large_fields(<<A:64, B:64/signed, C:64/little, R/bits>>) -> {A, B, C, R};
large_fields(<<A:60, B:60/signed, R/bits>>) -> {A, B, R};
large_fields(<<_:1, A:64, B:59, R/bits>>) -> {A, B, R};
large_fields(<<A:61/signed, R/bits>>) -> {A, R}.

parts(<<A:2/binary, B:8, C:3/bits, D:5, R/binary>>) -> {A, B, C, D, R};
parts(<<A:1/binary, R/bits>>) -> {A, R};
parts(<<A:2/bits, R/bits>>) -> {A, R};
parts(R) -> R.

shared(<<A:100/bits, B:70/binary, R/bits>>) -> {A, B, R};
shared(<<A:67/bits, R/bits>>) -> {A, R}.

make(A, B, C) -> <<A:24, "text", B/float, C/bits, A:8, A:4, 3:4, A:40/little>>.

make_little(A) -> {<<A:16/little>>, <<A:32/native>>, <<A:64/little>>, <<A:48/little, 1>>, <<A:64>>, <<A:63, 0:1>>, <<A:1>>}.

appended(0, B, All) -> {erlang:crc32(B), length(lists:usort(All))};
appended(N, B, All) when N rem 50 =:= 0 -> appended(N - 1, <<B/binary, N:16, N:1, 0:7>>, [B | All]);
appended(N, B, All) -> appended(N - 1, <<B/binary, N:16>>, All).

guards(T) when byte_size(T) > 0 -> bytes;
guards(T) when tuple_size(T) =:= 2 -> two;
guards(T) when map_size(T) > 0, is_map_key(a, T), map_get(a, T) =:= 1 -> map;
guards(T) when element(1, T) =:= x -> element;
guards(T) when length(T) > 1 -> list;
guards(T) when not T -> false;
guards(T) when -T < 0 -> positive;
guards(_) -> other.

fetched(K, M) when map_get(K, M) =/= none -> {ok, map_get(K, M)};
fetched(_, _) -> none.

exact(M) -> outcome(fun() -> M#{a := 5, b := M} end).

records(0, R) -> R;
records(N, R) when N band 1 =:= 0 -> records(N - 1, R#r{a = R#r.a + 1, b = [N]});
records(N, R) -> records(N - 1, R#r{c = {N}, d = N}).

in_place(0, R) -> {R#r.a, length(R#r.b), R#r.c};
in_place(N, #r{a = A} = R) when N rem 3 =:= 0 -> in_place(N - 1, R#r{a = A + 1});
in_place(N, #r{b = B} = R) ->
    N =:= 100 andalso garbage_collect(),
    in_place(N - 1, setelement(5, R#r{b = [{N} | B]}, {N})).

jump(0) -> a; jump(1) -> b; jump(2) -> c; jump(3) -> d; jump(4) -> e; jump(5) -> f; jump(6) -> g; jump(7) -> h;
jump(8) -> i; jump(9) -> j; jump(10) -> k; jump(12) -> l; jump(13) -> m; jump(20) -> n; jump(_) -> other.

far(576460752303423487) -> a; far(576460752303423486) -> b; far(576460752303423485) -> c; far(576460752303423484) -> d;
far(576460752303423483) -> e; far(576460752303423482) -> f; far(576460752303423481) -> g; far(576460752303423480) -> h;
far(576460752303423479) -> i; far(_) -> other.

outcome_of(N) -> try thrower(N) catch throw:T -> T; error:E:S -> {E, length(S)}; exit:X -> X end.

thrower(N) when N rem 4 =:= 0 -> throw({t, N});
thrower(N) when N rem 4 =:= 1 -> error({e, N});
thrower(N) when N rem 4 =:= 2 -> exit(N);
thrower(N) -> N / (N rem 3).

deep(0) -> erlang:error(bottom, [0]);
deep(N) -> [deep(N - 1)].
