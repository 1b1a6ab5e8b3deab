%% Looks at whatever could differ from run to run, and makes as many calls as what it sees says: two runs that see
%% different things have different counts.
-module(chance).
-export([main/0, main/1]).

main(_) -> main().

main() ->
    lists:foreach(fun look/1, looks()).

look({Name, See}) ->
    Text = lists:flatten(io_lib:format("~0p", [See()])),
    io:format("~s ~s~n", [Name, Text]),
    call(erlang:phash2(Text, 1000)).

call(0) -> ok;
call(N) -> call(N - 1).

looks() ->
    [{processes, fun processes/0} | numbers() ++ times() ++ tables() ++ terms() ++ system() ++ outside()].

numbers() ->
    [
        {os_pid, fun os:getpid/0},
        {unique, fun() -> [erlang:unique_integer(O) || O <- [[], [monotonic], [positive]]] end},
        {reference, fun() -> ref_to_list(make_ref()) end},
        {rand, fun() -> [rand:uniform(), rand:uniform(1 bsl 58)] end},
        {crypto, fun() -> crypto:strong_rand_bytes(16) end}
    ].

times() ->
    [
        {timestamp, fun() -> [erlang:timestamp(), os:timestamp(), erlang:now()] end},
        {time, fun() -> [erlang:monotonic_time(), erlang:system_time(), os:system_time(), os:perf_counter()] end},
        {local, fun calendar:local_time/0},
        {statistics, fun() -> [statistics(S) || S <- [runtime, wall_clock, reductions, garbage_collection, context_switches, io]] end},
        {sleep, fun() -> element(1, timer:tc(timer, sleep, [50])) end}
    ].

tables() ->
    Order = fun(Type) ->
        Table = ets:new(table, [Type]),
        Keys = fun(N) -> [N, {self(), N}, make_ref(), integer_to_list(N), fun() -> N end] end,
        [ets:insert(Table, {Key}) || N <- lists:seq(1, 200), Key <- Keys(N)],
        {ets:first(Table), ets:tab2list(Table), ets:info(Table)}
    end,
    [{Type, fun() -> Order(Type) end} || Type <- [set, ordered_set, bag]] ++
    [
        {ets, fun ets:all/0},
        {map, fun() -> maps:to_list(#{{N, self(), make_ref()} => N || N <- lists:seq(1, 100)}) end},
        {loaded, fun erlang:loaded/0},
        {all_loaded, fun code:all_loaded/0},
        {registered, fun erlang:registered/0},
        {ports, fun erlang:ports/0},
        {persistent, fun() -> [Key || {Key, _} <- persistent_term:get()] end}
    ].

terms() ->
    [
        {self, fun() -> [self(), erlang:phash2(self()), erlang:phash2(make_ref())] end},
        {'fun', fun() -> F = fun() -> ok end, [F, erlang:phash2(F), erlang:fun_info(F)] end},
        {external, fun() -> [erlang:crc32(term_to_binary({a, self(), #{make_ref() => 1}}, O)) || O <- [[], [local]]] end},
        {binaries, fun() -> Bin = binary:copy(<<1>>, 100), [process_info(self(), binary), byte_size(Bin)] end}
    ].

system() ->
    Items = [atom_count, process_count, port_count, ets_count, creation, logical_processors, schedulers, start_time,
             os_system_time_source, os_monotonic_time_source],
    [
        {system, fun() -> [erlang:system_info(Item) || Item <- Items] end},
        {memory, fun erlang:memory/0},
        {self_info, fun() -> [process_info(self(), I) || I <- [memory, reductions, total_heap_size, garbage_collection_info]] end},
        {spawned, fun spawned/0}
    ].

spawned() ->
    Parent = self(),
    Pids = [spawn(fun() -> receive go -> Parent ! {self(), N} end end) || N <- lists:seq(1, 50)],
    lists:foreach(fun(Pid) -> Pid ! go end, Pids),
    [receive Message -> Message end || _ <- Pids].

outside() ->
    [
        {cwd, fun() -> [file:get_cwd(), code:get_path()] end},
        {folder, fun() -> file:list_dir("folder") end},
        {library, fun() -> file:list_dir(code:lib_dir(stdlib)) end},
        {code, fun() -> file:read_file_info(code:which(lists)) end},
        {made, fun made/0}
    ].

%% What a file system makes of files that come and go.
made() ->
    Make = fun(Name) -> ok = file:write_file(Name, Name), file:read_file_info(Name) end,
    {ok, Here} = file:get_cwd(),
    File = filename:join(Here, "made"),
    Seen = [Make(File), file:read_file_info(File, [{time, posix}]), file:delete(File), Make(File), file:read_file_info(Here)],
    ok = file:delete(File),
    Seen.
