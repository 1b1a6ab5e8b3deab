%% A process halts the emulator while others print, write files and compute: what they have done by then is chance.
-module(halts).
-export([main/0]).

main() ->
    Me = self(),
    [spawn(fun() -> say(Me, N, 0) end) || N <- [1, 2]],
    spawn(fun() -> write("halts_file", 0) end),
    spawn(fun() -> lists:foldl(fun(N, Sum) -> N + Sum end, 0, lists:seq(1, 10_000_000)), io:format("summed~n") end),
    [receive {said, N, 5} -> ok end || N <- [2, 1]],
    halt(0).

say(To, N, M) ->
    io:format("~b ~b~n", [N, M]),
    To ! {said, N, M},
    say(To, N, M + 1).

write(Name, N) ->
    ok = file:write_file(Name, integer_to_list(N)),
    io:format("written ~b~n", [N]),
    write(Name, N + 1).
