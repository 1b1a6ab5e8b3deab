%% Calls NIFs that do what they may not: `faults.c`.

-module(faults).
-export([main/1]).
-define(NIFS, [gives_dead/1, dirty_gives_dead/1, hides_dead/1, dirty_hides_dead/1, raises_dead/1, passes_dead/1, keep/1,
               gives_kept/1, sends_own/1, writes_to_null/1, dirty_writes_to_null/1, calls_abort/1, traps/1, overflows/1,
               frees/1]).
-export(?NIFS).
-nifs(?NIFS).

main([Folder, Function]) ->
    ok = erlang:load_nif(filename:join(Folder, "faults"), 0),
    keeps(Function),
    io:format("~p~n", [call(list_to_atom(Function), [{own, self()}])]).

%% A former call of a process that is gone, or of this one before it was collected.
keeps("gives_kept") ->
    {_, Ref} = spawn_monitor(fun() -> ok = keep([self()]) end),
    receive {'DOWN', Ref, _, _, normal} -> ok end;
keeps("gives_moved") ->
    ok = keep([self()]),
    garbage_collect();
keeps(_) -> ok.

call(gives_moved, Term) -> gives_kept(Term);
call(Function, Term) -> apply(?MODULE, Function, [Term]).

gives_dead(_) -> erlang:nif_error(not_loaded).
dirty_gives_dead(_) -> erlang:nif_error(not_loaded).
hides_dead(_) -> erlang:nif_error(not_loaded).
dirty_hides_dead(_) -> erlang:nif_error(not_loaded).
raises_dead(_) -> erlang:nif_error(not_loaded).
passes_dead(_) -> erlang:nif_error(not_loaded).
keep(_) -> erlang:nif_error(not_loaded).
gives_kept(_) -> erlang:nif_error(not_loaded).
sends_own(_) -> erlang:nif_error(not_loaded).
writes_to_null(_) -> erlang:nif_error(not_loaded).
dirty_writes_to_null(_) -> erlang:nif_error(not_loaded).
calls_abort(_) -> erlang:nif_error(not_loaded).
traps(_) -> erlang:nif_error(not_loaded).
overflows(_) -> erlang:nif_error(not_loaded).
frees(_) -> erlang:nif_error(not_loaded).
