%% Calls NIFs that take a known time: `times.c`.

-module(times).
-export([main/1]).
-nifs([spin/1, dirty_cpu/1, dirty_io/1, release/0, goes_on/1, crash/0, dirty_crash/0, aborts/0]).

main([Folder]) ->
    ok = erlang:load_nif(filename:join(Folder, "times"), 0),
    blocks(),
    is_quick(50),
    dirty(4),
    ok = waits(goes_on, 10),
    ok = waits(dirty_io, 10),
    io:format("done~n");
main([Folder, How]) ->
    ok = erlang:load_nif(filename:join(Folder, "times"), 0),
    blocks(),
    case How of
        "crash" -> crash();
        "dirty_crash" -> dirty_crash();
        "aborts" -> aborts()
    end.

%% It holds its scheduler: three times, 5 ms each at least.
blocks() ->
    ok = spin(5),
    ok = spin(5),
    ok = spin(6),
    ok.

%% It does not.
is_quick(0) -> ok;
is_quick(N) ->
    ok = release_nothing(),
    is_quick(N - 1).

release_nothing() -> spin(0).

waits(Function, Ms) ->
    ok = apply_native(Function, Ms),
    ok.

apply_native(goes_on, Ms) -> goes_on(Ms);
apply_native(dirty_io, Ms) -> dirty_io(Ms).

%% More callers than dirty CPU schedulers: nobody is let go before all others wait.
dirty(Callers) ->
    Me = self(),
    [spawn_link(fun() -> ok = work(20), Me ! ended end) || _ <- lists:seq(1, Callers)],
    waiting(Callers - 1),
    ok = release(),
    [receive ended -> ok end || _ <- lists:seq(1, Callers)],
    ok.

work(Ms) ->
    ok = dirty_cpu(Ms),
    ok.

waiting(Number) ->
    Lengths = erlang:statistics(run_queue_lengths_all),
    case lists:nth(length(Lengths) - 1, Lengths) of
        Number -> ok;
        _ -> timer:sleep(1), waiting(Number)
    end.

spin(_) -> erlang:nif_error(not_loaded).
dirty_cpu(_) -> erlang:nif_error(not_loaded).
dirty_io(_) -> erlang:nif_error(not_loaded).
release() -> erlang:nif_error(not_loaded).
goes_on(_) -> erlang:nif_error(not_loaded).
crash() -> erlang:nif_error(not_loaded).
dirty_crash() -> erlang:nif_error(not_loaded).
aborts() -> erlang:nif_error(not_loaded).
