%% Functions for the tests of breakpoints; compiled with `erlc +deterministic +no_docs traced.erl`.
-module(traced).
-export([fib/1, run/2, loop/1, list/2, outer/1, throws/1, catches/1, keep/1]).

%% Runs F with one argument, then sleeps no longer than the test looks: the result is dropped.
run(F, A) ->
    ?MODULE:F(A),
    ok.

fib(N) when N < 2 -> N;
fib(N) -> fib(N - 1) + fib(N - 2).

%% Tail recursion: constant stack, whatever N.
loop(0) -> done;
loop(N) -> loop(N - 1).

%% Allocates two words a call.
list(0, Acc) -> Acc;
list(N, Acc) -> list(N - 1, [N | Acc]).

outer(N) ->
    L = list(N, []),
    keep({L, loop(N)}).

keep(X) -> X.

throws(N) -> [N | throw({no, N})].

%% The words after the catch are this function's, or the throwing one's.
catches(N) ->
    A = (catch throws(N)),
    {A, A, N}.
