%% Atoms that four processes make at the same time are keys of a map, of tables and of persistent terms.
-module(keys).
-export([main/0]).

main() ->
    Me = self(),
    Makers = [spawn(fun() -> Me ! {self(), [make(Maker, N) || N <- lists:seq(1, 60)]} end) || Maker <- lists:seq(1, 4)],
    Atoms = lists:append([receive {Maker, Made} -> Made end || Maker <- Makers]),
    Set = ets:new(keys, [set]),
    ets:insert(Set, [{Atom, 1} || Atom <- Atoms]),
    [persistent_term:put({keys, Atom}, 1) || Atom <- lists:sublist(Atoms, 50)],
    io:format("~w~n", [maps:keys(maps:from_keys(Atoms, 1))]),
    io:format("~w~n", [[Atom || {Atom, 1} <- ets:tab2list(Set)]]),
    io:format("~w~n", [[Atom || {{keys, Atom}, 1} <- persistent_term:get()]]).

make(Maker, N) ->
    N rem 7 =:= 0 andalso erlang:yield(),
    list_to_atom(integer_to_list(Maker) ++ "_" ++ integer_to_list(N)).
