%% Functions that each spin for a time, and measure how long that was: what a profile says of them must be the same.
%%
%% Prints a line for each, `truth Function/Arity Nanoseconds`, and how long all ran, `truth run Nanoseconds`: one runs at
%% a time. The last argument of a function is when it began to spin, or 0; until its time has passed it calls itself.
%% The BIFs that it needs for that are part of it where only this module is traced.
-module(truth_work).

-export([main/0]).

%% How long a function spins at a time: long beside what it takes to measure that.
-define(SPIN, 200_000).
-define(ROUNDS, 100).

-define(NOW, erlang:monotonic_time(nanosecond)).
-define(ENDS(Begun, Spins), ?NOW - Begun >= Spins * ?SPIN).
-define(ADD(Name, Begun), counters:add(persistent_term:get(truth), Name, ?NOW - Begun)).

-define(ALONE, 1).
-define(PING, 2).
-define(PONG, 3).
-define(DEEP, 4).
-define(FIRST, 5).
-define(SECOND, 6).
-define(RAISES, 7).
-define(CATCHES, 8).
-define(ASKS, 9).
-define(ANSWERS, 10).
-define(COLLECTS, 11).
-define(NAMES, ["alone/1", "ping/2", "pong/2", "deep/2", "first/1", "second/1", "raises/1", "catches/1", "asks/2", "answers/2",
                "collects/3"]).

main() ->
    persistent_term:put(truth, counters:new(length(?NAMES), [])),
    Answers = spawn_link(fun() -> answers(none, 0) end),
    Begun = ?NOW,
    rounds(?ROUNDS, Answers),
    Run = ?NOW - Begun,
    [io:format("truth ~s ~w~n", [Name, counters:get(persistent_term:get(truth), Index)]) || {Index, Name} <- lists:enumerate(?NAMES)],
    io:format("truth run ~w~n", [Run]),
    halt().

rounds(0, _) -> ok;
rounds(N, Answers) ->
    alone(0),
    ping(2, 0),
    deep(3, 0),
    first(0),
    try raises(0)
    catch {thrown, Begun} ->
        ?ADD(?RAISES, Begun),
        catches(0)
    end,
    asks(Answers, 0),
    collects(0, [], 0),
    rounds(N - 1, Answers).

alone(0) -> alone(?NOW);
alone(Begun) ->
    case ?ENDS(Begun, 5) of
        true -> ?ADD(?ALONE, Begun);
        false -> alone(Begun)
    end.

%% Two that call each other, as their last calls.
ping(0, _) -> ok;
ping(N, 0) -> ping(N, ?NOW);
ping(N, Begun) ->
    case ?ENDS(Begun, 1) of
        true -> ?ADD(?PING, Begun), pong(N, 0);
        false -> ping(N, Begun)
    end.

pong(N, 0) -> pong(N, ?NOW);
pong(N, Begun) ->
    case ?ENDS(Begun, 2) of
        true -> ?ADD(?PONG, Begun), ping(N - 1, 0);
        false -> pong(N, Begun)
    end.

%% Goes on once what it calls has returned.
deep(0, _) -> 0;
deep(N, 0) -> deep(N, ?NOW);
deep(N, Begun) ->
    case ?ENDS(Begun, 1) of
        true -> ?ADD(?DEEP, Begun), 1 + deep(N - 1, 0);
        false -> deep(N, Begun)
    end.

first(0) -> first(?NOW);
first(Begun) ->
    case ?ENDS(Begun, 3) of
        true -> ?ADD(?FIRST, Begun), second(0);
        false -> first(Begun)
    end.

second(0) -> second(?NOW);
second(Begun) ->
    case ?ENDS(Begun, 1) of
        true -> ?ADD(?SECOND, Begun);
        false -> second(Begun)
    end.

%% What it takes to raise is its time, too: who catches adds it.
raises(0) -> raises(?NOW);
raises(Begun) ->
    case ?ENDS(Begun, 1) of
        true -> throw({thrown, Begun});
        false -> raises(Begun)
    end.

catches(0) -> catches(?NOW);
catches(Begun) ->
    case ?ENDS(Begun, 2) of
        true -> ?ADD(?CATCHES, Begun);
        false -> catches(Begun)
    end.

%% The time of an answer is not the time of who asks. It does not see how long it takes to be scheduled in again, some
%% microseconds, and so it spins for longer.
asks(Pid, 0) -> asks(Pid, ?NOW);
asks(Pid, Begun) ->
    case ?ENDS(Begun, 8) of
        true ->
            Pid ! {self(), question},
            ?ADD(?ASKS, Begun),
            receive {Pid, answer} -> ok end;
        false ->
            asks(Pid, Begun)
    end.

answers(none, _) ->
    receive {Pid, question} -> answers(Pid, ?NOW) end;
answers(Pid, Begun) ->
    case ?ENDS(Begun, 4) of
        true ->
            ?ADD(?ANSWERS, Begun),
            Pid ! {self(), answer},
            answers(none, 0);
        false ->
            answers(Pid, Begun)
    end.

%% Makes garbage and keeps some, so that collections are a part of its time.
collects(_, _, 0) -> collects(0, [], ?NOW);
collects(5000, _, Begun) -> collects(0, [], Begun);
collects(N, List, Begun) ->
    case ?ENDS(Begun, 6) of
        true -> ?ADD(?COLLECTS, Begun);
        false -> collects(N + 1, [{N, [Begun, N]} | List], Begun)
    end.
