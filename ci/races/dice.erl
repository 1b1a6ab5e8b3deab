%% Random numbers of all kinds, and integers of one counter for all processes.
-module(dice).
-export([main/0]).

main() ->
    Me = self(),
    Pids = [spawn_link(fun() -> throws(Me) end) || _ <- lists:seq(1, 5)],
    [io:format("~w~n", [receive {Pid, Thrown} -> Thrown end]) || Pid <- Pids],
    io:format("~w~n", [crypto:strong_rand_bytes(20)]),
    io:format("~w~n", [binary:decode_unsigned(crypto:strong_rand_bytes(300)) rem 1000003]).

throws(Parent) ->
    Integers = [erlang:unique_integer([monotonic]) || _ <- lists:seq(1, 3)],
    Thrown = {Integers, erlang:unique_integer([monotonic, positive]), rand:uniform(1000000), rand:normal()},
    Parent ! {self(), Thrown}.
