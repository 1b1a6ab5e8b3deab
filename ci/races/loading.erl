%% Two processes call modules that are not loaded yet: one of them has the code loaded, and what happens first is chance.
-module(loading).
-export([main/0]).

main() ->
    Me = self(),
    Calls = [fun() -> queue:len(queue:new()) end, fun() -> array:size(array:new(3)) end,
             fun() -> ordsets:size(ordsets:from_list([1])) end, fun() -> string:length("four") end,
             fun() -> orddict:size([]) end],
    [spawn(fun() -> [Me ! {N, Call()} || Call <- Calls] end) || N <- [a, b, c]],
    io:format("~w~n", [[receive Result -> Result end || _ <- lists:seq(1, 15)]]).
