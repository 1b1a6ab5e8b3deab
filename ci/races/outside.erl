%% What programs, files and the system tell.
-module(outside).
-export([main/0]).

-include_lib("kernel/include/file.hrl").

main() ->
    io:format("~ts", [os:cmd("date +%s.%N; echo $$; od -An -N8 -tx1 /dev/urandom")]),
    io:format("~s ~w~n", [os:getpid(), length(os:getenv())]),
    Me = self(),
    Pids = [spawn_link(fun() -> Me ! {self(), os:cmd("sh -c 'echo $$ $PPID'")} end) || _ <- lists:seq(1, 3)],
    io:format("~p~n", [[receive {Pid, Text} -> Text end || Pid <- Pids]]),
    Port = open_port({spawn, "sh -c 'read a; echo $a; date +%N; exit 3'"}, [{line, 80}, exit_status, use_stdio]),
    port_command(Port, "said\n"),
    io:format("~p~n", [told(Port)]),
    File = "outside." ++ os:getpid(),
    ok = file:write_file(File, io_lib:format("~w", [erlang:system_time()])),
    {ok, Read} = file:read_file(File),
    {ok, #file_info{mtime = Changed, inode = Inode}} = file:read_file_info(File),
    io:format("~s ~w ~w~n", [Read, Changed, Inode]),
    ok = file:delete(File),
    {ok, Names} = file:list_dir("/proc"),
    io:format("~w~n", [erlang:phash2(Names)]).

told(Port) ->
    receive
        {Port, {exit_status, _} = End} -> [End];
        {Port, Word} -> [Word | told(Port)]
    end.
