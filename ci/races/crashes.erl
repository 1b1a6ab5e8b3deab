%% Processes crash at once: it prints nothing itself, but the emulator's reports.
-module(crashes).
-export([main/0]).

main() ->
    Workers = [spawn_monitor(fun() -> receive go -> crash(N) end end) || N <- lists:seq(1, 8)],
    [Pid ! go || {Pid, _} <- Workers],
    [receive {'DOWN', Monitor, process, Pid, _} -> ok end || {Pid, Monitor} <- Workers],
    timer:sleep(20).

crash(N) -> work(N * 7 rem 5), error({crash, N}).

work(N) -> lists:foldl(fun(I, Sum) -> (I * N + Sum) rem 7919 end, 0, lists:seq(1, 100 * N)).
