%% Functions that do nothing, by which the runtime measures what tracing costs; compiled with
%% `erlc +deterministic +no_docs tracing_costs.erl`.
-module(tracing_costs).
-export([calls/1, runs/1]).

%% Calls another function as often as the time slice lasts. The argument counts down.
calls(N) -> calls(nothing(N - 1)).

nothing(N) -> N.

%% Calls itself alone.
runs(N) -> runs(N - 1).
