%% Processes that monitor each other several times, give monitors and aliases up, and send large messages to who may be gone.
-module(watches).
-export([main/0]).

main() ->
    Workers = [spawn_monitor(fun() -> receive {all, All} -> exit({seen, watch(N, All, 12)}) end end) || N <- lists:seq(1, 6)],
    All = [Pid || {Pid, _} <- Workers],
    [Pid ! {all, All} || Pid <- All],
    io:format("~p~n", [[receive {'DOWN', Monitor, process, Pid, Why} -> Why end || {Pid, Monitor} <- Workers]]).

watch(_, _, 0) -> [];
watch(N, All, Left) ->
    Other = lists:nth((N + Left) rem length(All) + 1, All),
    Kept = monitor(process, Other),
    Given = monitor(process, Other),
    Alias = monitor(process, Other, [{alias, reply_demonitor}]),
    Other ! {call, Alias, lists:seq(1, 20 * Left)},
    Found = demonitor(Given, [info]),
    Seen = receive
               {call, To, Numbers} -> To ! {answer, To, length(Numbers)}, length(Numbers);
               {answer, _, Length} -> {answer, Length};
               {'DOWN', Ref, process, _, Why} -> {down, Ref =:= Kept, reason(Why)}
           after Left rem 3 -> none
           end,
    [{Found, Seen, Left rem 2 =:= 0 andalso demonitor(Alias, [info])} | watch(N, All, Left - 1)].

reason({seen, Seen}) -> length(Seen);
reason(Why) -> Why.
