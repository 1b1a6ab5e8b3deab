%% The workloads of `cargo xtask compare --plain`: plain code of many kinds, each long enough that OTP takes some 50 ms
%% or more. Each one prints a line "RESULT Nanoseconds Digest", as compare_work does.
%%
%%   erl -noshell -run plain_work main NAME
-module(plain_work).
-export([main/1, run/2]).
%% A gen_server's callbacks, and what is called from outside of the module.
-export([init/1, handle_call/3, handle_cast/2, leaf/1]).

main([Name]) ->
    {Times, Function} = workload(Name),
    Begin = erlang:monotonic_time(nanosecond),
    Outcome = repeat(Times, Function),
    Took = erlang:monotonic_time(nanosecond) - Begin,
    io:format("RESULT ~b ~b~n", [Took, erlang:phash2(Outcome)]),
    erlang:halt(0);
main([Name, Factor]) ->
    run(Name, list_to_integer(Factor)),
    erlang:halt(0).

%% Runs a workload so many times as long, in a process with room: there is little to collect.
run(Name, Factor) ->
    {_, Monitor} = spawn_opt(fun() -> {Times, Function} = workload(Name), repeat(Times * Factor, Function) end,
        [monitor, {min_heap_size, 1 bsl 20}]),
    receive {'DOWN', Monitor, process, _, normal} -> ok end.

repeat(1, Function) -> Function();
repeat(Times, Function) -> Function(), repeat(Times - 1, Function).

workload("fib") -> {10, fun() -> fib(30) end};
workload("tak") -> {10, fun() -> tak(24, 16, 8) end};
workload("nrev") -> List = lists:seq(1, 600), {80, fun() -> nrev(List) end};
workload("queens") -> {130, fun() -> length(queens(8)) end};
workload("lists") -> List = lists:seq(1, 20000), {30, fun() -> of_lists(List) end};
workload("sort") -> List = numbers(20000, 1 bsl 27), {30, fun() -> erlang:phash2(lists:sort(List)) end};
workload("parse") -> Packets = packets(20000), {140, fun() -> parse(Packets, 0) end};
workload("bits") -> Bytes = << <<N:8>> || N <- numbers(30000, 256) >>, {1200, fun() -> bits(Bytes, 0) end};
workload("append") -> {50, fun() -> erlang:crc32(append(200000, <<>>)) end};
workload("build") -> List = numbers(20000, 1 bsl 16), {260, fun() -> erlang:crc32(build(List)) end};
workload("base64") -> Bytes = << <<N:8>> || N <- numbers(60000, 256) >>,
    {110, fun() -> base64:decode(base64:encode(Bytes)) =:= Bytes end};
workload("strings") -> Text = text(3000), {9, fun() -> strings(Text) end};
workload("utf8") -> Text = unicode:characters_to_binary([[16#e4, N rem 90 + 32, 16#20ac] || N <- lists:seq(1, 30000)]),
    {110, fun() -> utf8(Text, 0) end};
workload("split") -> Text = unicode:characters_to_binary(text(20000)),
    {70, fun() -> length(binary:split(Text, <<" ">>, [global])) end};
workload("maps_small") -> {20, fun() -> maps_small(100000, #{a => 1, b => 2, c => 3}) end};
workload("maps_large") -> Keys = numbers(10000, 1 bsl 20), {16, fun() -> maps_large(Keys) end};
workload("records") -> {60, fun() -> records(100000, {state, 0, [], undefined, 0, 0}) end};
workload("floats") -> {35, fun() -> orbit(40000, 0.0, 1.0, 0.5, 0.01) end};
workload("mandelbrot") -> {5, fun() -> mandelbrot(80) end};
workload("big") -> {100, fun() -> big(1500) end};
workload("json") -> Document = document(500), Text = iolist_to_binary(json:encode(Document)),
    {28, fun() -> {json:decode(Text) =:= Document, iolist_size(json:encode(Document))} end};
workload("re") -> Text = unicode:characters_to_binary(text(2000)),
    {80, fun() -> {match, All} = re:run(Text, "(\\w+)a(\\w*)", [global]), length(All) end};
workload("messages") -> {1, fun() -> messages(150000) end};
workload("ring") -> {1, fun() -> ring(200, 1500) end};
workload("gen_server") -> {1, fun() -> calls(60000) end};
workload("spawn") -> {1, fun() -> spawns(50000, 0) end};
workload("ets") -> {3, fun() -> tables(20000) end};
workload("shared_table") -> {1, fun() -> shared_table(400000) end};
workload("exceptions") -> {10, fun() -> exceptions(100000, 0) end};
workload("funs") -> {10, fun() -> funs(200000) end};
workload("gb_trees") -> Keys = numbers(10000, 1 bsl 20), {10, fun() -> trees(Keys) end};
workload("dict") -> Keys = numbers(10000, 1 bsl 20), {12, fun() -> dicts(Keys) end};
workload("array") -> {30, fun() -> arrays(20000) end};
workload("format") -> {1, fun() -> formats(10000, 0) end};
workload("terms") -> Document = document(500),
    {75, fun() -> erlang:phash2(binary_to_term(term_to_binary(Document))) end};
workload("scan") -> Text = source(300), {14, fun() -> {ok, Tokens, _} = erl_scan:string(Text), length(Tokens) end}.

%% Numbers that are the same on each runtime.
numbers(Count, Below) -> numbers(Count, Below, 42).

numbers(0, _, _) -> [];
numbers(Left, Below, Seed) ->
    Next = (Seed * 1103515245 + 12345) band 16#7fffffff,
    [Next rem Below | numbers(Left - 1, Below, Next)].

fib(N) when N < 2 -> N;
fib(N) -> fib(N - 1) + fib(N - 2).

tak(X, Y, Z) when Y < X -> tak(tak(X - 1, Y, Z), tak(Y - 1, Z, X), tak(Z - 1, X, Y));
tak(_, _, Z) -> Z.

nrev([]) -> [];
nrev([Head | Tail]) -> join(nrev(Tail), [Head]).

join([], Other) -> Other;
join([Head | Tail], Other) -> [Head | join(Tail, Other)].

queens(N) -> queens(N, N).

queens(0, _) -> [[]];
queens(Left, N) ->
    [[Row | Rows] || Rows <- queens(Left - 1, N), Row <- lists:seq(1, N), is_safe(Row, 1, Rows)].

is_safe(_, _, []) -> true;
is_safe(Row, Far, [Other | Rows]) when Row =/= Other, Row =/= Other + Far, Row =/= Other - Far ->
    is_safe(Row, Far + 1, Rows);
is_safe(_, _, _) -> false.

of_lists(List) ->
    Doubled = lists:map(fun(N) -> N * 2 end, List),
    Some = lists:filter(fun(N) -> N rem 3 =:= 0 end, Doubled),
    Pairs = lists:zip(List, lists:reverse(Doubled)),
    Sums = [A + B || {A, B} <- Pairs, A =/= B],
    lists:foldl(fun(N, Sum) -> N + Sum end, 0, Some ++ Sums) + length(lists:usort(Some)).

packets(Count) ->
    << <<(N rem 3), (N band 16#ffff):16, (byte_size(Body)):16/little, Body/binary>>
       || N <- numbers(Count, 1 bsl 20), Body <- [binary:copy(<<N:8>>, N rem 7)] >>.

parse(<<0, Number:16, Size:16/little, Body:Size/binary, Rest/binary>>, Sum) ->
    parse(Rest, Sum + Number + byte_size(Body));
parse(<<1, Number:16, Size:16/little, _:Size/binary, Rest/binary>>, Sum) ->
    parse(Rest, Sum + Number);
parse(<<_, _:16, Size:16/little, Rest/binary>>, Sum) ->
    <<Body:Size/binary, Others/binary>> = Rest,
    parse(Others, case Body of <<First, _/binary>> -> Sum - First; <<>> -> Sum end);
parse(<<>>, Sum) -> Sum.

bits(<<A:3, B:6, C:7/signed, Rest/bits>>, Sum) -> bits(Rest, Sum + A * B - C);
bits(_, Sum) -> Sum.

append(0, Bytes) -> Bytes;
append(Left, Bytes) -> append(Left - 1, <<Bytes/binary, Left:8>>).

build(List) -> << <<(N bsr 3):13, (N band 7):3, N:16/little, "ab">> || N <- List >>.

text(Words) -> lists:flatten([[word(N), $\s] || N <- numbers(Words, 1 bsl 20)]).

word(N) when N < 26 -> [$a + N];
word(N) -> [$a + N rem 26 | word(N div 26)].

strings(Text) ->
    Words = string:split(Text, " ", all),
    Upper = [string:uppercase(Word) || Word <- Words],
    Trimmed = string:trim(lists:append(lists:join(", ", Upper))),
    {length(Words), string:length(Trimmed), string:find(Trimmed, "ZZ") =/= nomatch}.

utf8(<<Character/utf8, Rest/binary>>, Sum) -> utf8(Rest, Sum + Character);
utf8(<<>>, Sum) -> Sum.

maps_small(0, Map) -> Map;
maps_small(N, #{a := A, b := B} = Map) ->
    maps_small(N - 1, Map#{a := B, b := (A + N) band 16#ffff, c => maps:get(c, Map) + 1}).

maps_large(Keys) ->
    Map = lists:foldl(fun(Key, Map) -> Map#{Key => Key + 1} end, #{}, Keys),
    lists:foldl(fun(Key, Sum) -> Sum + map_get(Key, Map) end, maps:size(Map), Keys).

records(0, State) -> State;
records(N, {state, Count, List, _, Low, High}) when N band 1 =:= 0 ->
    records(N - 1, {state, Count + 1, [N | first(List)], N, Low + 1, High});
records(N, State) ->
    records(N - 1, setelement(6, State, element(6, State) + 1)).

first([]) -> [];
first([First | _]) -> [First].

orbit(0, X, Y, _, _) -> {X, Y};
orbit(N, X, Y, Speed, Step) ->
    Square = X * X + Y * Y,
    Nearer = Speed - Step * X / (Square + 1.0),
    orbit(N - 1, X + Step * Nearer, Y - Step * X * Nearer, Nearer, Step).

mandelbrot(Size) ->
    lists:sum([escape(2.5 * X / Size - 2.0, 2.0 * Y / Size - 1.0, 0.0, 0.0, 100)
               || X <- lists:seq(1, Size), Y <- lists:seq(1, Size)]).

escape(_, _, _, _, 0) -> 0;
escape(_, _, X, Y, Left) when X * X + Y * Y > 4.0 -> Left;
escape(A, B, X, Y, Left) -> escape(A, B, X * X - Y * Y + A, 2.0 * X * Y + B, Left - 1).

big(N) ->
    Factorial = factorial(N, 1),
    erlang:phash2({Factorial div factorial(N div 2, 1), Factorial rem 1000000007}).

factorial(0, Product) -> Product;
factorial(N, Product) -> factorial(N - 1, N * Product).

document(Count) ->
    [#{<<"id">> => N, <<"name">> => list_to_binary(word(N)), <<"tags">> => [<<"one">>, <<"t\"wo">>, true, null],
       <<"score">> => N / 8, <<"more">> => #{<<"x">> => -N, <<"y">> => [N, N + 1, N + 2]}}
     || N <- numbers(Count, 1 bsl 20)].

messages(Count) ->
    Echo = spawn_link(fun echo/0),
    Sum = there_and_back(Echo, Count, 0),
    unlink(Echo),
    exit(Echo, kill),
    Sum.

there_and_back(_Echo, 0, Sum) -> Sum;
there_and_back(Echo, Left, Sum) ->
    Echo ! {self(), Left},
    receive {Echo, N} -> there_and_back(Echo, Left - 1, Sum + N) end.

echo() ->
    receive {From, N} -> From ! {self(), N}, echo() end.

ring(Processes, Rounds) ->
    Self = self(),
    First = lists:foldl(fun(_, Next) -> spawn_link(fun() -> pass_on(Next) end) end, Self, lists:seq(1, Processes)),
    around(First, Rounds).

pass_on(Next) ->
    receive Token -> Next ! Token, pass_on(Next) end.

around(_, 0) -> done;
around(First, Left) ->
    First ! {token, Left},
    receive {token, Left} -> around(First, Left - 1) end.

calls(Count) ->
    {ok, Server} = gen_server:start_link(?MODULE, 0, []),
    Last = lists:foldl(fun(N, _) -> gen_server:call(Server, {add, N}) end, 0, lists:seq(1, Count)),
    gen_server:stop(Server),
    Last.

init(Sum) -> {ok, Sum}.
handle_call({add, N}, _From, Sum) -> {reply, Sum + N, Sum + N}.
handle_cast(_, Sum) -> {noreply, Sum}.

spawns(0, Sum) -> Sum;
spawns(Left, Sum) ->
    {_, Monitor} = spawn_monitor(fun() -> exit(Left) end),
    receive {'DOWN', Monitor, process, _, N} -> spawns(Left - 1, Sum + N) end.

tables(Count) ->
    Set = ets:new(set, []),
    Ordered = ets:new(ordered, [ordered_set]),
    [begin ets:insert(Set, {N, N, [N]}), ets:insert(Ordered, {N}) end || N <- numbers(Count, Count)],
    [ets:update_counter(Set, N, {2, 1}, {N, 0, []}) || N <- lists:seq(1, Count, 2)],
    Found = length([N || N <- lists:seq(1, Count), ets:lookup(Set, N) =/= []]),
    Sum = ets:foldl(fun({N}, Sum) -> N + Sum end, 0, Ordered),
    Selected = length(ets:select(Set, [{{'$1', '$2', '_'}, [{'>', '$2', 500}], ['$1']}])),
    ets:delete(Set),
    ets:delete(Ordered),
    {Found, Sum, Selected}.

%% Two processes work on a table, each on keys of its own.
shared_table(Count) ->
    Table = ets:new(shared, [public]),
    Users = [spawn_monitor(fun() -> exit(use(Table, First, Count, 0)) end) || First <- [0, 1000]],
    Sums = [receive {'DOWN', Monitor, process, User, Sum} -> Sum end || {User, Monitor} <- Users],
    ets:delete(Table),
    Sums.

use(_, _, 0, Sum) -> Sum;
use(Table, First, Left, Sum) when Left rem 2 =:= 0 ->
    true = ets:insert(Table, {First + Left rem 1000, Left}),
    use(Table, First, Left - 1, Sum);
use(Table, First, Left, Sum) ->
    [{_, N}] = ets:lookup(Table, First + (Left + 1) rem 1000),
    use(Table, First, Left - 1, Sum + N).

exceptions(0, Sum) -> Sum;
exceptions(N, Sum) ->
    Value = try deep(5, N) catch throw:{thrown, Thrown} -> Thrown; error:badarith -> 1 end,
    exceptions(N - 1, Sum + Value).

deep(0, N) when N rem 16 =:= 0 -> N / (N rem 16);
deep(0, N) when N rem 2 =:= 0 -> throw({thrown, N});
deep(0, N) -> N;
deep(Left, N) -> 1 + deep(Left - 1, N).

funs(Count) ->
    Add = fun(A) -> fun(B) -> A + B end end,
    Twice = fun(Function, N) -> Function(Function(N)) end,
    applied(Count, Add, Twice, 0).

applied(0, _, _, Sum) -> Sum;
applied(N, Add, Twice, Sum) ->
    Module = ?MODULE,
    applied(N - 1, Add, Twice, Twice(Add(N), Sum) - Module:leaf(N)).

leaf(N) -> N.

trees(Keys) ->
    Tree = lists:foldl(fun(Key, Tree) -> gb_trees:enter(Key, -Key, Tree) end, gb_trees:empty(), Keys),
    lists:foldl(fun(Key, Sum) -> Sum + gb_trees:get(Key, Tree) end, gb_trees:size(Tree), Keys).

dicts(Keys) ->
    Dict = lists:foldl(fun(Key, Dict) -> dict:update_counter(Key band 16#fff, 1, Dict) end, dict:new(), Keys),
    Set = ordsets:from_list(Keys),
    {dict:fold(fun(_, Value, Sum) -> Value + Sum end, 0, Dict), ordsets:size(ordsets:union(Set, [1, 5]))}.

arrays(Count) ->
    Array = lists:foldl(fun(N, Array) -> array:set(N, N * N, Array) end, array:new(), lists:seq(0, Count - 1)),
    array:foldl(fun(_, Value, Sum) -> Sum + Value end, 0, Array).

formats(0, Sum) -> Sum;
formats(N, Sum) ->
    Text = io_lib:format("~p and ~s: ~10.2.0b, ~w ~.3f~n", [{N, [a, "text", <<"bytes">>]}, "word", N, [N], N / 3]),
    formats(N - 1, Sum + iolist_size(Text)).

source(Functions) ->
    lists:flatten([["f", integer_to_list(N), "(X, [Y | _]) when X > ", integer_to_list(N),
                    " -> {ok, \"some text\", #{key => Y, $a => 16#ff}}; % a comment\n"
                    "f", integer_to_list(N), "(_, Other) -> try g(Other) catch _:_ -> 'an atom' end.\n"]
                   || N <- lists:seq(1, Functions)]).
