%% Workers tell when they ran, in all units, and whose time was last: each run has other times.
-module(clocks).
-export([main/0]).

main() ->
    Me = self(),
    Pids = [spawn_link(fun() -> worker(N, Me) end) || N <- lists:seq(1, 4)],
    Times = [receive {Pid, Told} -> Told end || Pid <- Pids],
    io:format("~w~n~w~n", [Times, lists:sort([{T, N} || {N, T, _} <- Times])]),
    io:format("~w ~w ~w ~w ~w~n", [date(), time(), erlang:now(), os:timestamp(), erlang:universaltime()]),
    io:format("~w ~w~n", [erlang:time_offset(), erlang:convert_time_unit(os:perf_counter(), perf_counter, microsecond)]),
    Timer = erlang:start_timer(60000, self(), late),
    Spun = spin(erlang:monotonic_time(microsecond) + 300, 0),
    Left = erlang:read_timer(Timer),
    io:format("~w ~w ~w~n", [Spun, Left, Left >= erlang:cancel_timer(Timer)]).

worker(N, Parent) ->
    Times = [erlang:monotonic_time(Unit) || Unit <- [native, second, millisecond, microsecond, nanosecond, 17, perf_counter]],
    Parent ! {self(), {N, erlang:system_time(), Times}}.

%% How often the clock is read until then.
spin(End, N) ->
    case erlang:monotonic_time(microsecond) of
        Now when Now >= End -> N;
        _ -> spin(End, N + 1)
    end.
