%% Timers that go off while they are cancelled: it prints what each call said, and which messages came.
-module(cancels).
-export([main/0]).

main() ->
    Me = self(),
    Other = spawn_link(fun() -> Me ! {self(), [for(Me, N) || N <- lists:seq(101, 130)]} end),
    Own = [own(N) || N <- lists:seq(1, 40)],
    Calls = receive {Other, All} -> All end,
    timer:sleep(5),
    io:format("~w~n~w~n", [Own, {Calls, rest()}]).

%% For itself.
own(N) ->
    Timer = erlang:start_timer(1, self(), N),
    spin(N rem 20 * 200),
    Left = erlang:cancel_timer(Timer),
    receive {timeout, Timer, N} -> {N, Left, came} after 0 -> {N, Left} end.

%% For another process.
for(To, N) ->
    Timer = erlang:send_after(1, To, {late, N}),
    spin(N rem 20 * 200),
    case N rem 3 of
        0 -> erlang:cancel_timer(Timer, [{async, true}, {info, true}]), receive {cancel_timer, Timer, Left} -> Left end;
        _ -> erlang:cancel_timer(Timer)
    end.

rest() ->
    receive {late, N} -> [N | rest()] after 0 -> [] end.

spin(0) -> ok;
spin(N) -> _ = erlang:phash2(lists:seq(1, 40)), spin(N - 1).
