%% Programs for the test that kills processes at every safepoint, with handlers around everything; compiled with
%% `erlc +deterministic +no_docs doomed.erl`. Nothing here raises an exception that its own code does not handle, so
%% that a handler below which calls ran/1 runs only if a killed process goes on.
-module(doomed).
-compile(nowarn_deprecated_catch).
-export([start/1, called/1, awake/1, id/1, echo/0, swallow/1, slice/2]).
-export([conses/0, tuples/0, integers/0, floats/0, binaries/0, matching/0, maps/0, records/0, funs/0,
         exceptions/0, comprehensions/0, conversions/0, lists/0, kin/0, messages/0, waiting/0, dictionary/0,
         tables/0, traced/0, traps/0, slices/0, asleep/0]).

-record(pair, {left, right, rest = []}).
-record #native{left = 1, right = 2}.

%% An expression with all the handlers there are in the same function.
-define(GUARDED(Expression),
        (fun() ->
                 put(is_done, false),
                 try
                     try Expression of
                         Result_ -> put(is_done, true), Result_
                     after
                         get(is_done) orelse ran('after')
                     end
                 catch
                     throw:_ -> ran(throw);
                     exit:Reason_ -> ran({exit, Reason_});
                     error:Reason_:Trace_ -> ran({error, Reason_, Trace_})
                 end
         end)()).

%% Runs a program when it is told to. With a number of reductions, its turn ends after so many, and in the next one
%% there is a signal that ends it.
start(Program) ->
    receive
        go -> ok;
        {Reductions, Reason} ->
            erlang:bump_reductions(4000 - Reductions),
            erlang:exit_signal(self(), Reason)
    end,
    run(Program).

run(Program) ->
    case catch ?GUARDED(?MODULE:Program()) of
        {'EXIT', Why} -> ran({'catch', Why});
        done -> doomed_reporter ! done;
        _ -> ok
    end.

ran(Handler) ->
    doomed_reporter ! {ran, Handler}.

id(X) -> X.

conses() ->
    [1, 2, 3 | _] = ?GUARDED(count(1, 20)),
    [_ | _] = ?GUARDED(pairs(id([a, b, c, d]), [])),
    done.

count(N, N) -> [N];
count(N, M) -> [N | count(N + 1, M)].

pairs([A | As], Acc) -> pairs(As, [{A, [A]}, A | Acc]);
pairs([], Acc) -> Acc.

tuples() ->
    T = ?GUARDED({id(a), [id(b)], {id(c)}}),
    {x, _, _} = ?GUARDED(setelement(1, T, x)),
    {_, _, _, 7} = ?GUARDED(erlang:append_element(T, 7)),
    20 = ?GUARDED(tuple_size(erlang:make_tuple(20, T))),
    done.

integers() ->
    Big = ?GUARDED(power(id(3), 120)),
    0 = ?GUARDED(Big rem 3),
    true = ?GUARDED(Big div 3 < Big),
    true = ?GUARDED((Big bsl 7) bsr 7 =:= Big),
    true = ?GUARDED(Big bor 1 >= Big band -2),
    true = ?GUARDED(- Big =:= bnot (Big - 1)),
    true = ?GUARDED(abs(- Big) + 1 > Big bxor 0),
    done.

power(_, 0) -> 1;
power(X, N) -> X * power(X, N - 1).

floats() ->
    Sum = ?GUARDED(sum(id([1.5, 2.5, 3.5]), 0.0)),
    7.5 = ?GUARDED(Sum * id(1.0)),
    8 = ?GUARDED(round(id(7.5))),
    true = ?GUARDED(math:sqrt(Sum) > id(2)),
    true = ?GUARDED(float(id(1 bsl 70)) > Sum),
    done.

sum([X | Xs], Acc) -> sum(Xs, Acc + X);
sum([], Acc) -> Acc.

binaries() ->
    A = ?GUARDED(<<(id(1)):8, (id(1 bsl 70)):128, (id(2.5)):64/float, (id($å))/utf8, (id($å))/utf16>>),
    B = ?GUARDED(<<A/binary, (id(<<"abc">>)):2/binary, 1:3>>),
    C = ?GUARDED(append(<<>>, 40)),
    true = ?GUARDED(bit_size(<<B/bits, C/binary>>) > bit_size(B)),
    300 = ?GUARDED(byte_size(<<0:(id(300))/unit:8>>)),
    true = ?GUARDED(byte_size(binary:copy(C, 9)) > 300),
    done.

append(Acc, 0) -> Acc;
append(Acc, N) -> append(<<Acc/binary, N:16>>, N - 1).

matching() ->
    Bin = id(<<1:8, (1 bsl 90):100, 2.5:64/float, "å"/utf8, 7:24/little, "the rest of it, long enough to be off heap or not">>),
    <<_:8, Big:100, Float:64/float, Char/utf8, Seven:24/little, Rest/bits>> = ?GUARDED(Bin),
    true = ?GUARDED(Big =:= 1 bsl 90),
    {2.5, $å, 7} = ?GUARDED({Float, Char, Seven}),
    Four = id(4),
    <<Part:Four/binary, More/bits>> = ?GUARDED(Rest),
    {<<"the ">>, _} = ?GUARDED({Part, bytes(More, [])}),
    done.

bytes(<<B, Rest/bits>>, Acc) -> bytes(Rest, [B | Acc]);
bytes(_, Acc) -> Acc.

maps() ->
    Small = ?GUARDED(#{a => id(1), id(b) => [id(2)]}),
    Large = ?GUARDED(maps:from_list([{I, [I]} || I <- count(1, 50)])),
    #{a := 3} = ?GUARDED(Small#{a := 3}),
    #{c := 3} = ?GUARDED(Small#{id(c) => 3, d => id(4)}),
    51 = ?GUARDED(map_size(Large#{new => 1, 7 := 8})),
    52 = ?GUARDED(map_size(maps:merge(Small, Large))),
    49 = ?GUARDED(map_size(maps:remove(1, Large))),
    50 = ?GUARDED(length(maps:keys(Large))),
    #{7 := X, 8 := Y} = Large,
    {[7], [8]} = ?GUARDED({X, Y}),
    done.

records() ->
    P = ?GUARDED(#pair{left = id(1), right = [id(2)]}),
    Q = ?GUARDED(P#pair{left = [P], rest = [P]}),
    #pair{left = [_]} = ?GUARDED(Q),
    N = ?GUARDED(#native{left = [id(1)]}),
    M = ?GUARDED(N#native{right = [N]}),
    [_] = ?GUARDED(M#native.right),
    done.

funs() ->
    F = ?GUARDED(fun(X) -> [X, id(1) | id([2])] end),
    [_, 1, 2] = ?GUARDED(F(F)),
    [_, 1, 2] = ?GUARDED(apply(F, [F])),
    [_, 1, 2] = ?GUARDED(apply(fun called/1, [F])),
    [_, 1, 2] = ?GUARDED(apply(id(?MODULE), id(called), [F])),
    [_, 1, 2] = ?GUARDED((id(fun ?MODULE:called/1))(F)),
    done.

called(X) -> [X, 1, 2].

%% Exceptions of its own, each caught at once.
exceptions() ->
    [begin
         {_, _} = ?GUARDED(try raise(Kind) catch Class:Reason -> {Class, Reason} end),
         {_, _, [_ | _]} = ?GUARDED(try raise(Kind) catch C:R:Trace -> {C, R, Trace} end),
         {_, _} = ?GUARDED(try try raise(Kind) after id(Kind) end catch C1:R1 -> {C1, R1} end)
     end || Kind <- [error, exit, throw, badarg, badmatch, badarith, badarity, badfun, undef, function_clause, raise]],
    done.

raise(error) -> erlang:error({oops, [id(1)]});
raise(exit) -> exit({oops, [id(1)]});
raise(throw) -> throw({oops, [id(1)]});
raise(badarg) -> atom_to_list(id([1]));
raise(badmatch) -> {a, b} = id({a, c});
raise(badarith) -> id(a) + 1;
raise(badarity) -> (id(fun raise/1))();
raise(badfun) -> (id([fun_]))();
raise(undef) -> erlang:apply(erlang, id(no_such_function), [1]);
raise(raise) -> erlang:raise(error, [id(1)], [{?MODULE, raise, 1, []}]);
raise(function_clause) -> pairs(id(x), []).

comprehensions() ->
    [_ | _] = ?GUARDED([{X, Y} || X <- count(1, 5), Y <- count(1, X), X + Y > 3]),
    <<_, _/bits>> = ?GUARDED(<< <<X, X:12>> || <<X>> <= id(<<"some text">>) >>),
    [_ | _] = ?GUARDED([X || <<X:3>> <= id(<<"some text">>)]),
    #{2 := [2]} = ?GUARDED(#{K => [K] || K <- id([1, 2, 3])}),
    done.

conversions() ->
    Term = {a, [1, 2.5, <<"binary">>], #{k => "string", 1 => self()}, 1 bsl 70, make_ref(), fun called/1},
    Term = ?GUARDED(binary_to_term(term_to_binary(id(Term)))),
    "12345678901234567890" = ?GUARDED(integer_to_list(id(12345678901234567890))),
    2.5 = ?GUARDED(binary_to_float(float_to_binary(id(2.5), [short]))),
    "atom" = ?GUARDED(atom_to_list(id(atom))),
    [a, b] = ?GUARDED(tuple_to_list(list_to_tuple(id([a, b])))),
    <<"abcd">> = ?GUARDED(iolist_to_binary(id(["a", <<"b">>, [[$c] | <<"d">>]]))),
    [<<"a">>, <<"b">>, <<"c">>] = ?GUARDED(binary:split(id(<<"a b c">>), <<" ">>, [global])),
    {<<"a b">>, <<" c">>} = ?GUARDED(split_binary(id(<<"a b c">>), 3)),
    [229, 228] = ?GUARDED(unicode:characters_to_list(id(<<"åä"/utf8>>), unicode)),
    <<"åä"/utf8>> = ?GUARDED(unicode:characters_to_binary(id([229, 228]), unicode)),
    16 = ?GUARDED(byte_size(erlang:md5(id("abc")))),
    true = ?GUARDED(erlang:external_size(id(Term)) > 10),
    done.

lists() ->
    L = ?GUARDED(count(1, 30)),
    [30 | _] = ?GUARDED(lists:reverse(L, [])),
    60 = ?GUARDED(length(L ++ L)),
    [] = ?GUARDED(L -- L),
    {value, {7, x}} = ?GUARDED(lists:keysearch(7, 1, [{I, x} || I <- L])),
    true = ?GUARDED(lists:member(30, L)),
    done.

kin() ->
    {Pid, Ref} = ?GUARDED(spawn_opt(?MODULE, id, [[]], [monitor])),
    normal = ?GUARDED(receive {'DOWN', Ref, process, Pid, Reason} -> Reason end),
    false = ?GUARDED(process_flag(trap_exit, true)),
    Linked = ?GUARDED(spawn_link(erlang, exit, [[id(bye)]])),
    [bye] = ?GUARDED(receive {'EXIT', Linked, Why} -> Why end),
    true = ?GUARDED(process_flag(trap_exit, false)),
    [_ | _] = ?GUARDED(process_info(self(), [memory, links, dictionary, messages, current_stacktrace])),
    true = ?GUARDED(erts_internal:garbage_collect(major)),
    true = ?GUARDED(erlang:yield()),
    Alias = ?GUARDED(alias([])),
    true = ?GUARDED(unalias(Alias)),
    done.

messages() ->
    [self() ! {I, [I], <<I:200/unit:8>>} || I <- count(1, 12)],
    [12] = ?GUARDED(receive {12, L, _} -> L end),
    [_ | _] = ?GUARDED([receive {I, [I], B} -> B end || I <- count(1, 11)]),
    nothing = ?GUARDED(receive _ -> something after 0 -> nothing end),
    done.

waiting() ->
    late = ?GUARDED(receive never -> early after 2 -> late end),
    Ref = ?GUARDED(erlang:start_timer(1, self(), [id(tick)])),
    [tick] = ?GUARDED(receive {timeout, Ref, Tick} -> Tick end),
    {Pid, Monitor} = ?GUARDED(spawn_opt(?MODULE, echo, [], [monitor])),
    Pid ! {self(), [id(1)]},
    [[1]] = ?GUARDED(receive {Pid, Y} -> Y end),
    true = ?GUARDED(demonitor(Monitor, [info]) orelse true),
    done.

echo() -> receive {From, X} -> From ! {self(), [X]} end.

dictionary() ->
    [undefined = ?GUARDED(put({key, I}, [I])) || I <- count(1, 10)],
    [7] = ?GUARDED(get({key, 7})),
    true = ?GUARDED(length(get()) > 9),
    [7] = ?GUARDED(erase({key, 7})),
    done.

tables() ->
    T = ?GUARDED(ets:new(table, [ordered_set])),
    true = ?GUARDED(ets:insert(T, [{I, [I], #{I => I}} || I <- count(1, 20)])),
    [{7, _, _}] = ?GUARDED(ets:lookup(T, 7)),
    [_, _, _] = ?GUARDED(ets:select(T, [{{'$1', '$2', '_'}, [{'>', '$1', 17}], [{{'$2', '$1'}}]}])),
    20 = ?GUARDED(length(ets:select(T, [{'$1', [], ['$1']}]))),
    true = ?GUARDED(ets:delete(T)),
    done.

%% Calls that push frames for their returns, and for time and words.
traced() ->
    Me = self(),
    Tracer = ?GUARDED(spawn(?MODULE, swallow, [Me])),
    Session = ?GUARDED(erts_internal:trace_session_create(doomed, Tracer, [])),
    MFA = {?MODULE, called, 1},
    1 = ?GUARDED(erts_internal:trace_pattern(Session, MFA, [{'_', [], [{exception_trace}]}], [local])),
    1 = ?GUARDED(erts_internal:trace_pattern(Session, MFA, true, [call_time])),
    1 = ?GUARDED(erts_internal:trace_pattern(Session, MFA, true, [call_memory])),
    1 = ?GUARDED(erts_internal:trace(Session, Me, true, [call, return_to, garbage_collection, procs])),
    [[5, 1, 2] | _] = ?GUARDED(called_often(5)),
    true = ?GUARDED(erts_internal:trace_session_destroy(Session)),
    done.

called_often(0) -> [];
called_often(N) -> [called(N) | called_often(N - 1)].

swallow(Pid) -> swallow_until(monitor(process, Pid)).

swallow_until(Ref) -> receive {'DOWN', Ref, _, _, _} -> ok; _ -> swallow_until(Ref) end.

%% BIFs that give up their turn in between: they begin with few reductions left.
traps() ->
    Large = ?GUARDED(list(400, [])),
    true = ?GUARDED(Large =:= binary_to_term(late(term_to_binary(late(Large))))),
    400 = ?GUARDED(length(lists:reverse(late(Large), []))),
    true = ?GUARDED(is_integer(erlang:phash2(late(Large)))),
    400 = ?GUARDED(map_size(maps:from_list(late([{K, K} || K <- Large])))),
    true = ?GUARDED(byte_size(list_to_binary(late([integer_to_list(K) || K <- Large]))) > 1000),
    done.

late(Left) when is_integer(Left) -> erlang:bump_reductions(4000 - Left);
late(Term) -> erlang:bump_reductions(3900), Term.

list(0, Acc) -> Acc;
list(N, Acc) -> list(N - 1, [N | Acc]).

%% BIFs that give up their slice, each in a process that is killed between two parts of it.
slices() ->
    List = list(2500, []),
    Pairs = [{K, [K]} || K <- List],
    Table = ets:new(table, [public]),
    [killed = ?GUARDED(cut_off(Left, Call)) || {Left, Call} <- calls(List, Pairs, Table)],
    %% Whoever comes next to a table finds all of a list in it, or nothing.
    true = ?GUARDED(lists:member(ets:info(Table, size), [0, 2500])),
    true = ?GUARDED(ets:insert(Table, Pairs)),
    2500 = ?GUARDED(ets:info(Table, size)),
    [killed = ?GUARDED(cut_off(Left, Call)) || {Left, Call} <- traversals(Table)],
    true = ?GUARDED(ets:insert(Table, {a, b})),
    [{a, b}] = ?GUARDED(ets:lookup(Table, a)),
    false = ?GUARDED(ets:info(Table, fixed)),
    true = ?GUARDED(ets:delete(Table)),
    done.

%% Calls, and how many reductions there are left when each begins: some begin with no fewer.
calls(List, Pairs, Table) ->
    Map = maps:from_list(Pairs),
    Other = maps:from_keys([-K || K <- List], b),
    Bytes = [K band 255 || K <- List],
    Parts = [Bytes, Bytes, Bytes],
    Binary = binary:copy(iolist_to_binary(Bytes), 20),
    Text = unicode:characters_to_binary(List, unicode),
    External = term_to_binary(Pairs),
    [{10, fun() -> lists:reverse(List, []) end},
     {10, fun() -> List ++ List end},
     {10, fun() -> List -- List end},
     {10, fun() -> lists:member(a, List) end},
     {10, fun() -> term_to_binary(Pairs) end},
     {10, fun() -> term_to_binary(Pairs, [compressed]) end},
     {10, fun() -> term_to_iovec(Pairs) end},
     {10, fun() -> binary_to_term(External) end},
     {150, fun() -> list_to_binary(Parts) end},
     {150, fun() -> list_to_bitstring(Parts) end},
     {10, fun() -> iolist_size(Parts) end},
     {10, fun() -> erlang:iolist_to_iovec(Parts) end},
     {10, fun() -> binary_to_list(Binary) end},
     {10, fun() -> bitstring_to_list(Binary) end},
     {10, fun() -> unicode:characters_to_binary(List, unicode) end},
     {10, fun() -> unicode:characters_to_list(Text, unicode) end},
     {10, fun() -> maps:from_list(Pairs) end},
     {10, fun() -> maps:from_keys(List, a) end},
     {10, fun() -> maps:merge(Map, Other) end},
     {10, fun() -> erlang:phash2(Pairs) end},
     {10, fun() -> erlang:md5(Binary) end},
     {10, fun() -> erlang:crc32(Binary) end},
     {10, fun() -> erlang:adler32(Binary) end},
     {10, fun() -> binary:matches(Binary, <<"a">>) end},
     {10, fun() -> binary:matches(Binary, [<<"a">>, <<"bc">>]) end},
     {10, fun() -> binary:split(Binary, <<"a">>, [global]) end},
     {10, fun() -> binary:copy(Binary, 99) end},
     {10, fun() -> binary:longest_common_prefix([Binary, Binary]) end},
     {10, fun() -> ets:insert(Table, Pairs) end},
     {10, fun() -> ets:insert_new(Table, Pairs) end},
     {900, fun() -> ets:insert(Table, Pairs) end},
     {10, fun() -> ets:insert(ets:new(own, [bag]), Pairs) end}].

%% Calls that go through a table.
traversals(Table) ->
    Spec = [{{'$1', '_'}, [{'<', '$1', 0}], [true]}],
    [{10, fun() -> ets:select(Table, Spec) end},
     {10, fun() -> ets:select_count(Table, Spec) end},
     {10, fun() -> ets:internal_select_delete(Table, Spec) end},
     {10, fun() -> ets:select_replace(Table, [{{'$1', '$2'}, [], [{{'$1', '$2'}}]}]) end},
     {10, fun() -> ets:match_object(Table, {'_', a}) end},
     {10, fun() -> Own = ets:new(own, []), ets:insert(Own, ets:match_object(Table, '_')), erlang:yield(), late(10), ets:delete(Own) end},
     {10, fun() -> ets:internal_delete_all(Table, undefined) end}].

%% What becomes of a process with this many reductions left, which is killed in its next turn: it does not return.
cut_off(Left, Call) ->
    {Pid, Ref} = spawn_opt(?MODULE, slice, [Left, Call], [monitor]),
    receive {'DOWN', Ref, process, Pid, Reason} -> Reason end.

slice(Left, Call) ->
    erlang:yield(),
    late(Left),
    erlang:exit_signal(self(), kill),
    ?GUARDED(Call()),
    ran(Call).

%% A process that has given up its stack goes on in a function of its choice.
asleep() ->
    self() ! wake,
    erlang:hibernate(?MODULE, awake, [[id(1), 2]]).

awake([1, 2]) ->
    wake = ?GUARDED(receive Message -> Message end),
    run(conses).
