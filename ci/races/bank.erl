%% Two clients of a server that read, compute and write back: an update is lost now and then.
-module(bank).
-export([main/0]).

main() ->
    Account = spawn(fun() -> account(0) end),
    Clients = [spawn_monitor(fun() -> deposit(Account, 200) end) || _ <- [1, 2, 3]],
    [receive {'DOWN', Ref, process, Pid, normal} -> ok end || {Pid, Ref} <- Clients],
    io:format("~w~n", [ask(Account, get)]).

deposit(_, 0) -> ok;
deposit(Account, N) ->
    Balance = ask(Account, get),
    ask(Account, {set, Balance + 1}),
    deposit(Account, N - 1).

ask(Account, Request) ->
    Ref = make_ref(),
    Account ! {Request, Ref, self()},
    receive {Ref, Answer} -> Answer end.

account(Balance) ->
    receive
        {get, Ref, From} -> From ! {Ref, Balance}, account(Balance);
        {{set, New}, Ref, From} -> From ! {Ref, ok}, account(New)
    end.
