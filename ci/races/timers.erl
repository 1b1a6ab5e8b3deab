%% Timers that go off at the same time as each other and as messages come.
-module(timers).
-export([main/0]).

main() ->
    Me = self(),
    [erlang:send_after(N rem 3, self(), {timer, N}) || N <- lists:seq(1, 12)],
    spawn(fun() -> [begin receive after 1 -> ok end, Me ! {sent, N} end || N <- lists:seq(1, 5)] end),
    io:format("~w~n", [[receive Message -> element(1, Message) end || _ <- lists:seq(1, 17)]]).
