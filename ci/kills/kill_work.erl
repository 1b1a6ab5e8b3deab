%% Processes that call functions in an order known to who knows where they began, and write down how far they
%% are. Who kills them reads that, and finds the same calls in the recording.
%%
%%     erl -noshell -run kill_work main Folder Pause
%%
%% Each process writes to the file `calls.PID` of the folder how many calls it has made, after each 256; then it
%% sleeps for `Pause` milliseconds, unless that is 0. The file `os_pid` comes when all of them run.
-module(kill_work).

-export([main/1]).
-export([f0/1, f1/1, f2/1, f3/1, f4/1, f5/1, f6/1, f7/1, f8/1, f9/1, f10/1, f11/1, f12/1, f13/1, f14/1, f15/1]).

-define(PROCESSES, 4).
%% The next number: what it does not keep of the last is that one's function.
-define(F(Name), Name(X) -> (X * 1103515245 + 12345) band 16#7fffffff).

?F(f0). ?F(f1). ?F(f2). ?F(f3). ?F(f4). ?F(f5). ?F(f6). ?F(f7).
?F(f8). ?F(f9). ?F(f10). ?F(f11). ?F(f12). ?F(f13). ?F(f14). ?F(f15).

main([Folder, Pause]) ->
    Ready = [begin_one(Folder, list_to_integer(Pause)) || _ <- lists:seq(1, ?PROCESSES)],
    [receive {ready, Pid} -> ok end || Pid <- Ready],
    ok = file:write_file(filename:join(Folder, "os_pid"), os:getpid()),
    receive after infinity -> ok end.

begin_one(Folder, Pause) ->
    Main = self(),
    spawn_link(fun() ->
                       {ok, Log} = file:open(filename:join(Folder, "calls." ++ pid_to_list(self())), [raw, write]),
                       Main ! {ready, self()},
                       call(1, 0, Log, Pause)
               end).

call(X, Calls, Log, Pause) when Calls band 255 =:= 0 ->
    ok = file:pwrite(Log, 0, <<Calls:64/little>>),
    Pause =:= 0 orelse timer:sleep(Pause),
    call(step(X), Calls + 1, Log, Pause);
call(X, Calls, Log, Pause) ->
    call(step(X), Calls + 1, Log, Pause).

step(X) ->
    case (X bsr 16) band 15 of
        0 -> f0(X);
        1 -> f1(X);
        2 -> f2(X);
        3 -> f3(X);
        4 -> f4(X);
        5 -> f5(X);
        6 -> f6(X);
        7 -> f7(X);
        8 -> f8(X);
        9 -> f9(X);
        10 -> f10(X);
        11 -> f11(X);
        12 -> f12(X);
        13 -> f13(X);
        14 -> f14(X);
        15 -> f15(X)
    end.
