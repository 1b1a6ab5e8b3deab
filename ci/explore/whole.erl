%% Whole programs, which the command runs: erl -noshell -pa ebin -s whole NAME -s init stop.
-module(whole).
-export([counter/0, waits/0, left_waiting/0, halts/0, order/0, prints/0, late/0, reads/0, server/0, slow/0, killed/0, killed_first/0,
         outside/0]).

%% 4 orders, in some of which an update is lost; the code of another module is loaded by the run.
counter() -> found:counter().

%% It waits for ever.
waits() -> receive never -> ok end.

%% 2 orders: in one of them the process that is to end the emulator waits for ever.
left_waiting() ->
    spawn(fun() ->
        Me = self(),
        [spawn(fun() -> Me ! I end) || I <- [1, 2]],
        receive 1 -> halt(0); 2 -> receive never -> ok end end
    end).

%% 2 orders: the emulator ends with exit code 3 in one of them.
halts() ->
    Me = self(),
    [spawn(fun() -> Me ! I end) || I <- [1, 2]],
    receive 1 -> halt(0); 2 -> halt(3) end.

%% 2 orders, which print different numbers.
order() -> io:format("~p~n", [found:order()]).

%% 2 orders, which print the same.
prints() ->
    _ = found:order(),
    io:format("~p~n", [self()]).

%% It fails although the emulator is halted before, most often.
late() ->
    spawn(fun() -> exit(oops) end),
    halt(0).

%% There is nothing to read.
reads() -> eof = io:get_line("").

%% One order: what is left when the emulator stops is no finding.
server() ->
    Me = self(),
    spawn(fun() -> Me ! ready, receive never -> ok end end),
    receive ready -> ok end.

%% It never ends.
slow() -> slow().

%% The emulator is killed in one of 2 orders.
killed() ->
    Me = self(),
    [spawn(fun() -> Me ! I end) || I <- [1, 2]],
    receive 1 -> ok; 2 -> killed_first() end.

%% The emulator is killed.
killed_first() ->
    open_port({spawn_executable, "/bin/sh"}, [{args, ["-c", "kill -9 $PPID"]}]),
    slow().

%% A program outside says something, which no run waits for.
outside() -> os:cmd("echo hello").
