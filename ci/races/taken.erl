%% Processes take a name, send to whoever has it, and give it up or end with it.
-module(taken).
-export([main/0]).

main() ->
    Takers = [spawn_monitor(fun() -> receive go -> exit({took, take(N, 60, [])}) end end) || N <- [1, 2, 3]],
    [Pid ! go || {Pid, _} <- Takers],
    Seen = look(150, []),
    Took = [receive {'DOWN', Ref, process, Pid, {took, Took}} -> Took end || {Pid, Ref} <- Takers],
    io:format("~w ~w ~w~n", [erlang:phash2({Seen, Took}), length(Seen), [length(T) || T <- Took]]).

take(_, 0, Took) -> Took;
take(N, Left, Took) ->
    erlang:phash2({N, Left}, 3) =:= 0 andalso erlang:yield(),
    try register(taken, self()) of
        true ->
            Left rem 7 =:= 0 andalso erlang:yield(),
            unregister(taken),
            take(N, Left - 1, [Left | Took])
    catch
        error:badarg ->
            Is = whereis(taken) =/= undefined,
            Is andalso short(N),
            take(N, Left - 1, Took)
    end.

%% A process that ends with a name of its own.
short(N) ->
    {Pid, Ref} = spawn_monitor(fun() -> names_itself(N) end),
    lists:member(short, registered()),
    receive {'DOWN', Ref, process, Pid, _} -> ok end.

names_itself(N) ->
    try register(short, self()) of true -> N
    catch error:badarg -> taken
    end.

look(0, Seen) -> Seen;
look(Left, Seen) ->
    erlang:yield(),
    try taken ! hello of
        hello -> look(Left - 1, [Left | Seen])
    catch
        error:badarg ->
            Ref = monitor(process, short),
            demonitor(Ref, [flush]),
            look(Left - 1, Seen)
    end.
