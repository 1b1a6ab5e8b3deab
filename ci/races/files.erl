%% A process writes a file anew while another one reads it, which may find it empty.
-module(files).
-export([main/0]).

main() ->
    ok = file:write_file("notes.txt", "old", [raw]),
    Writer = spawn_monitor(fun() -> write("new") end),
    Reader = spawn_monitor(fun() -> receive after 50 -> ok end, exit(read()) end),
    [receive {'DOWN', Ref, process, Pid, Reason} -> io:format("~p~n", [Reason]) end || {Pid, Ref} <- [Writer, Reader]],
    ok = file:delete("notes.txt", [raw]).

write(Text) ->
    ok = file:write_file("notes.txt", Text, [raw]),
    exit(written).

read() ->
    {ok, Text} = file:read_file("notes.txt", [raw]),
    Text.
