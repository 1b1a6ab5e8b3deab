%% Processes that ask about themselves, and are killed meanwhile, or come to their own end before.
-module(kills).
-export([main/0]).

main() ->
    Workers = [spawn_monitor(fun() -> look(N * 40, 0) end) || N <- lists:seq(1, 12)],
    [begin erlang:yield(), exit(Pid, kill) end || {Pid, _} <- Workers],
    io:format("~w~n", [[receive {'DOWN', Monitor, process, Pid, Why} -> Why end || {Pid, Monitor} <- Workers]]).

look(0, Sum) -> exit({ended, Sum});
look(N, Sum) ->
    {status, running} = process_info(self(), status),
    [{message_queue_len, Length}, {priority, normal}] = process_info(self(), [message_queue_len, priority]),
    look(N - 1, Sum + Length).
