%% Pids, ports, references and unique integers as values: printed, sorted, hashed, and what is told of other processes.
-module(names).
-export([main/0]).

main() ->
    Me = self(),
    Pids = [spawn(fun() -> worker(Me, N) end) || N <- lists:seq(1, 6)],
    Told = [receive {told, _, _, _, _} = Word -> Word end || _ <- Pids],
    io:format("~w~n", [Told]),
    Deep = lists:sort([Child || {told, _, Child, _, _} <- Told]),
    io:format("~w ~w~n", [Deep, [erlang:phash2(Child, 1000) || Child <- Deep]]),
    Words = [{is_process_alive(Pid), process_info(Pid, [reductions, message_queue_len, memory])} || Pid <- Pids],
    io:format("~w~n~w~n", [Words, lists:sort(processes())]),
    io:format("~w ~w ~w~n", [self(), alias(), monitor(process, whereis(init))]),
    Port = open_port({spawn_executable, "/bin/cat"}, [binary]),
    io:format("~w ~w ~w~n", [Port, erlang:ports(), erlang:port_info(Port, os_pid)]),
    io:format("~w ~w~n", [erlang:unique_integer(), erlang:unique_integer([positive])]),
    io:format("~w~n", [erlang:memory(processes) rem 1000]),
    io:format("~w~n", [element(1, statistics(reductions)) rem 1000]).

worker(Parent, N) ->
    Child = spawn(fun() -> ok end),
    Seen = maps:to_list(maps:from_list([{make_ref(), I} || I <- lists:seq(1, 40)])),
    Parent ! {told, N, Child, make_ref(), erlang:phash2(Seen)}.
