%% A tracer module that has only the functions that each must have.
-module(plain).
-export([init/1, enabled/3, trace/5]).
-nifs([enabled/3, trace/5]).

init(Library) -> erlang:load_nif(Library, 0).

enabled(_, _, _) -> erlang:nif_error(not_loaded).
trace(_, _, _, _, _) -> erlang:nif_error(not_loaded).
