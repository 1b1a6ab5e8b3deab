%% Timers that go off at the same time as each other and as messages come.
-module(timers).
-export([main/0]).

main() ->
    Me = self(),
    [erlang:send_after(N rem 3, self(), {timer, N}) || N <- lists:seq(1, 12)],
    spawn(fun() -> [begin receive after 1 -> ok end, Me ! {sent, N} end || N <- lists:seq(1, 5)] end),
    Setters = [spawn(fun() -> set(Me, N, 10) end) || N <- [1, 2, 3]],
    io:format("~w~n", [[receive Message -> Message end || _ <- lists:seq(1, 17 + 10 * length(Setters))]]).

set(_, _, 0) -> ok;
set(To, N, Left) ->
    erlang:send_after((N + Left) rem 3, To, {timer, N, Left}),
    Left rem 4 =:= 0 andalso erlang:yield(),
    set(To, N, Left - 1).
