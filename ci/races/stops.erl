%% Processes that work with files are ended in the middle of that, each by another one at a time of chance.
-module(stops).
-export([main/0]).

main() ->
    Works = [spawn_monitor(fun() -> work("stops_" ++ integer_to_list(N)) end) || N <- lists:seq(1, 8)],
    [spawn(fun() -> wait(N * 97), exit(Pid, kill) end) || {N, {Pid, _}} <- lists:enumerate(Works)],
    Whys = [receive {'DOWN', Monitor, process, _, Why} -> Why end || {_, Monitor} <- Works],
    {ok, Names} = file:list_dir("."),
    Left = [Name || "stops_" ++ _ = Name <- lists:sort(Names)],
    [ok = file:del_dir(Name) || Name <- Left],
    io:format("~p ~p~n", [Whys, Left]).

work(Name) ->
    ok = prim_file:make_dir(Name),
    {ok, []} = prim_file:list_dir(Name),
    ok = prim_file:del_dir(Name),
    work(Name).

wait(0) -> ok;
wait(N) -> _ = lists:sum(lists:seq(1, N rem 50)), wait(N - 1).
