%% A process looks for a name, which another one may not have registered yet.
-module(registry).
-export([main/0]).

main() ->
    Me = self(),
    spawn(fun() ->
              register(clerk, self()),
              receive stop -> ok end
          end),
    spawn(fun() ->
              receive after 50 -> ok end,
              Me ! {found, whereis(clerk) =/= undefined}
          end),
    receive {found, Found} -> io:format("~w~n", [Found]) end,
    case whereis(clerk) of
        undefined -> ok;
        _ -> clerk ! stop
    end.
