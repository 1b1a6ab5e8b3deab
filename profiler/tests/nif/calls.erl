%% NIFs of calls.c, called, and what they are to give: as OTP 29 gives it. Nothing is longer than the environment's
%% BEAMLINE_TEST_LENGTH, if that is there.
-module(calls).
-compile(nowarn_deprecated_catch).
-export([main/1, init/2, give/1, data/0]).
-nifs([numbers/1, texts/2, maps/1, binaries/1, external/1, raise/1, make_thing/1, thing_number/1, thing_bytes/1, watch/2,
       unwatch/1, select_pipe/2, stop_pipe/1, from_thread/1, steps/1, fail_later/2, dirty_cpu/1, dirty_io/1, linger/3,
       queue/1,
       data/0, give/1]).

-define(STUB, erlang:nif_error(not_loaded)).
numbers(_) -> ?STUB.
texts(_, _) -> ?STUB.
maps(_) -> ?STUB.
binaries(_) -> ?STUB.
external(_) -> ?STUB.
raise(_) -> ?STUB.
make_thing(_) -> ?STUB.
thing_number(_) -> ?STUB.
thing_bytes(_) -> ?STUB.
watch(_, _) -> ?STUB.
unwatch(_) -> ?STUB.
select_pipe(_, _) -> ?STUB.
stop_pipe(_) -> ?STUB.
from_thread(_) -> ?STUB.
steps(_) -> ?STUB.
fail_later(_, _) -> ?STUB.
dirty_cpu(_) -> ?STUB.
dirty_io(_) -> ?STUB.
linger(_, _, _) -> ?STUB.
queue(_) -> ?STUB.
data() -> ?STUB.
give(_) -> ?STUB.

init(Library, Info) -> R = erlang:load_nif(Library, Info), R.

main([Folder]) ->
    {error, {load_failed, _}} = init(filename:join(Folder, "nowhere"), 1),
    {error, {load, "Library load-call unsuccessful (7)."}} = init(filename:join(Folder, "calls"), none),
    {'EXIT', {not_loaded, [{erlang, nif_error, [not_loaded], _}, {calls, give, 1, _} | _]}} = (catch give(1)),
    ok = init(filename:join(Folder, "calls"), 40),
    {error, {reload, _}} = init(filename:join(Folder, "calls"), 40),
    {ok, 1} = give(1),
    40 = data(),
    [Test() || Test <- [fun terms/0, fun bytes/0, fun errors/0, fun things/0, fun monitors/0, fun selects/0, fun threads/0,
                        fun scheduled/0, fun dirty/0, fun signals/0, fun traced/0, fun collected/0]],
    upgraded(Folder),
    io:format("all is as it is to be~n").

length_max() -> list_to_integer(os:getenv("BEAMLINE_TEST_LENGTH", "1000000")).

terms() ->
    {5, [1, 1, 1, 1]} = numbers(1),
    {5, [-1, -1]} = numbers(-1),
    {5, [16#7fffffffffffffff, 16#7fffffffffffffff]} = numbers(16#7fffffffffffffff),
    {5, [16#ffffffffffffffff]} = numbers(16#ffffffffffffffff),
    {5, [-16#8000000000000000]} = numbers(-16#8000000000000000),
    {5, []} = numbers(1 bsl 64),
    {3, [1.5]} = numbers(1.5),
    [{1, []}, {2, []}, {4, []}, {6, []}, {6, []}, {7, []}, {8, []}, {10, []}, {11, []}] =
        [numbers(T) || T <- [a, <<1:3>>, fun terms/0, [], [1 | 2], #{}, self(), make_ref(), {}]],
    {4, 4, 1, 3, 4, 0, "abc"} = texts("abc", abc),
    {-8, -8, 1, 10, 0, 0, none} = texts("0123456789", 1),
    {0, 7, 1, 6, 3, 0, "é"} = texts([16#65e5, 16#672c], 'é'),
    {0, 0, 0, 0, 1, 0, ""} = texts([a], ''),
    {1, 1, 1, 0, 4, 0, "abc"} = texts("", abc),
    [begin
         Map = maps:from_list([{I, I * I} || I <- lists:seq(1, N)]),
         Keys = lists:reverse(maps:keys(Map)),
         Copy = maps:map(fun(_, V) -> {V} end, Map),
         {Keys, Copy, 1} = maps(Map#{})
     end || N <- [0, 1, 3, 32, 33, 100, 1000]],
    {[gone, a], #{a := {1}} = Left, 1} = maps(#{a => 1, gone => 2}),
    1 = map_size(Left),
    {1, "<{a,\"b\"}|   -7|x  |1234567890123>", Hash} = external({a, "b"}),
    Hash = erlang:phash2({a, "b"}),
    [{1, _, _} = external(T) || T <- [1 bsl 100, fun lists:map/2, self(), #{a => [<<1:7>>]}, 1.0e300, make_ref()]].

bytes() ->
    [begin
         Bytes = [X rem 251 || X <- lists:seq(1, N)],
         Whole = list_to_binary(lists:reverse(Bytes) ++ "!"),
         <<_, Part/binary>> = Whole,
         {Whole, Part, <<"new">>} = binaries(Bytes),
         {Whole, Part, <<"new">>} = binaries(list_to_binary(Bytes)),
         <<_:3, Unaligned:N/binary, _:5>> = <<0:3, (list_to_binary(Bytes))/binary, 0:5>>,
         {Whole, Part, <<"new">>} = binaries(Unaligned)
     end || N <- [1, 5, 63, 64, 65, 1000, 100000], N =< length_max()],
    {5, 3, 2, <<"d">>, []} = queue([<<"abcd">>, <<"ef">>]),
    ok.

errors() ->
    {'EXIT', {{my, reason}, [{calls, raise, [{my, reason}], []} | _]}} = (catch raise({my, reason})),
    {'EXIT', {badarg, [{calls, thing_number, [1], []} | _]}} = (catch thing_number(1)),
    {'EXIT', {badarg, [{calls, binaries, [[a]], []} | _]}} = (catch binaries([a])),
    {'EXIT', {badarg, _}} = (catch maps(a)).

gone(Number) -> receive {gone, Number} -> ok after 10000 -> error({not_gone, Number}) end.

things() ->
    spawn_link(fun() -> ok end),
    Me = self(),
    Thing = make_thing(1),
    1 = thing_number(Thing),
    true = is_reference(Thing),
    <<1:32/native>> = thing_bytes(Thing),
    Pid = spawn(fun() -> receive {T, From} -> From ! {number, thing_number(T)}, receive stop -> T end end end),
    Pid ! {Thing, Me},
    receive {number, 1} -> ok end,
    table(Thing),
    holder(Pid).

table(Thing) ->
    Table = ets:new(t, []),
    ets:insert(Table, {x, Thing}),
    [{x, Same}] = ets:lookup(Table, x),
    1 = thing_number(Same),
    1 = thing_number(binary_to_term(term_to_binary(Thing))),
    ets:delete(Table).

holder(Pid) ->
    spawn(fun() -> make_thing(2), ok end),
    Bytes = thing_bytes(make_thing(3)),
    erlang:garbage_collect(),
    receive {gone, 3} -> error(too_early) after 50 -> ok end,
    <<3:32/native>> = Bytes,
    Pid ! stop.

monitors() ->
    erlang:garbage_collect(),
    gone(1), gone(3),
    Thing = make_thing(4),
    {Pid, Ref} = spawn_monitor(fun() -> receive stop -> ok end end),
    0 = watch(Thing, Pid),
    0 = unwatch(Thing),
    1 = unwatch(Thing),
    0 = watch(Thing, Pid),
    Pid ! stop,
    receive {'DOWN', Ref, _, _, normal} -> ok end,
    receive {down, 4} -> ok after 10000 -> error(no_down) end,
    1 = watch(Thing, Pid),
    4 = thing_number(Thing).

selects() ->
    erlang:garbage_collect(),
    gone(4),
    Thing = make_thing(5),
    {0, 1} = select_pipe(Thing, here),
    receive {select, Thing, here, ready_input} -> ok after 10000 -> error(not_ready) end,
    1 = stop_pipe(Thing),
    receive {stop, 5} -> ok after 10000 -> error(not_stopped) end.

threads() ->
    ok = from_thread(1000),
    [receive {from_thread, [I, F, x]} when F == I -> ok end || I <- lists:seq(0, 999)],
    ok.

scheduled() ->
    Steps = min(10000, length_max()),
    {0, List, Type} = steps(Steps),
    List = lists:seq(1, Steps),
    true = lists:member(Type, [1, 3]),
    {'EXIT', {badarg, [{calls, fail_later, [1, 2], []} | _]}} = (catch fail_later(1, 2)).

dirty() ->
    [begin
         {Type, List} = Nif(x),
         1000 = length(List),
         {0, x} = lists:last(List),
         true = lists:member(Type, [1, Kind]),
         receive {dirty, x} -> ok end
     end || {Nif, Kind} <- [{fun dirty_cpu/1, 2}, {fun dirty_io/1, 3}]],
    Many = [spawn_monitor(fun() -> {_, L} = dirty_cpu(I), exit(length(L)) end) || I <- lists:seq(1, 100)],
    [receive {'DOWN', Ref, process, Pid, 1000} -> ok end || {Pid, Ref} <- Many],
    ok.

%% What a process hears while it runs a dirty NIF.
signals() ->
    Me = self(),
    {Term, Type} = linger(Me, 0, [{Me}, <<0:800>>]),
    [{Me}, <<0:800>>] = Term,
    receive {lingers, Me} -> ok end,
    receive {lingered, 1, Term} -> ok end,
    %% A deterministic run has no dirty schedulers.
    [asked() || Type =/= 1],
    [killed() || Type =/= 1],
    [suspended() || Type =/= 1],
    ok.

lingering(Milliseconds, After) ->
    Me = self(),
    {Pid, Ref} = spawn_monitor(fun() -> {_, 3} = linger(Me, Milliseconds, lists:seq(1, 100)), After() end),
    receive {lingers, Pid} -> {Pid, Ref} end.

asked() ->
    {Pid, Ref} = lingering(300, fun() -> receive one -> process_info(self(), messages) end end),
    {current_function, {calls, linger, 3}} = process_info(Pid, current_function),
    {status, running} = process_info(Pid, status),
    true = erts_internal:is_process_executing_dirty(Pid),
    Pid ! one,
    Pid ! {two, lists:seq(1, 1000)},
    {messages, [one, {two, _}]} = process_info(Pid, messages),
    true = link(Pid),
    {links, [Linked]} = process_info(Pid, links),
    Linked = self(),
    true = unlink(Pid),
    Other = spawn(fun() -> receive stop -> ok end end),
    true = group_leader(Other, Pid),
    {group_leader, Other} = process_info(Pid, group_leader),
    Other ! stop,
    true = is_process_alive(Pid),
    false = erlang:check_process_code(Pid, lists),
    async = erlang:garbage_collect(Pid, [{async, Ref}]),
    receive {lingered, 1, L} -> 100 = length(L) end,
    %% Not before: its terms stay where they are meanwhile.
    receive {garbage_collect, Ref, true} -> ok end,
    receive {'DOWN', Ref, process, Pid, normal} -> ok end,
    receive {garbage_collect, Ref, true} -> error(too_early) after 0 -> ok end.

killed() ->
    {Pid, Ref} = lingering(10000, fun() -> exit(went_on) end),
    exit(Pid, kill),
    receive {'DOWN', Ref, process, Pid, killed} -> ok end,
    undefined = process_info(Pid),
    false = is_process_alive(Pid),
    false = lists:member(Pid, processes()),
    [garbage_collect(P) || P <- processes()],
    receive sent_by_nobody -> error(sent); {lingered, 0, L} -> L = lists:seq(1, 100) end.

suspended() ->
    {Pid, Ref} = lingering(300, fun() -> exit(went_on) end),
    true = erlang:suspend_process(Pid, [asynchronous]),
    {status, running} = process_info(Pid, status),
    true = erlang:suspend_process(Pid),
    {status, suspended} = process_info(Pid, status),
    receive {lingered, 1, _} -> ok after 0 -> error(too_early) end,
    true = erlang:resume_process(Pid),
    true = erlang:resume_process(Pid),
    receive {'DOWN', Ref, process, Pid, went_on} -> ok end.

traced() ->
    Session = trace:session_create(calls, self(), []),
    1 = trace:function(Session, {calls, give, 1}, [{'_', [], [{return_trace}]}], [local]),
    1 = trace:function(Session, {calls, dirty_io, 1}, true, [call_count]),
    Pid = spawn(fun() -> receive go -> {ok, 9} = give(9), dirty_io(z), receive {dirty, z} -> ok end end end),
    Ref = monitor(process, Pid),
    1 = trace:process(Session, Pid, true, [call]),
    Pid ! go,
    receive {'DOWN', Ref, process, Pid, normal} -> ok end,
    receive {trace, Pid, call, {calls, give, [9]}} -> ok after 10000 -> error(no_call) end,
    receive {trace, Pid, return_from, {calls, give, 1}, {ok, 9}} -> ok after 10000 -> error(no_return) end,
    {call_count, 1} = trace:info(Session, {calls, dirty_io, 1}, call_count),
    true = trace:session_destroy(Session),
    {ok, 10} = give(10).

%% Much garbage, with resources and binaries of the library's in it.
collected() ->
    Loop = fun Loop(0, Kept) -> Kept;
               Loop(N, _) -> Loop(N - 1, {binaries(lists:seq(1, 100)), dirty_or_not(N), make_thing(100)})
           end,
    {_, _, Last} = Loop(300, none),
    100 = thing_number(Last),
    [gone(100) || _ <- lists:seq(1, 250)],
    ok.

dirty_or_not(N) when N rem 50 =:= 0 -> {_, L} = dirty_cpu(N), receive {dirty, N} -> L end;
dirty_or_not(N) -> numbers(N).

upgraded(Folder) ->
    {ok, Beam} = file:read_file(filename:join(Folder, "calls.beam")),
    Thing = make_thing(6),
    {module, calls} = code:load_binary(calls, "calls.beam", Beam),
    ok = calls:init(filename:join(Folder, "calls"), 1),
    41 = calls:data(),
    {ok, 2} = calls:give(2),
    6 = thing_number(Thing),
    40 = data(),
    ok.
