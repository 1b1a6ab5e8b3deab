%% A gen_server under load: several clients call one server that keeps accounts.
%%
%% Shows: what gen_server adds to the work of its callbacks, and a process that all others wait for.
-module(gen_server_load).
-behaviour(gen_server).
-export([main/0, main/1]).
-export([init/1, handle_call/3, handle_cast/2]).

-define(CLIENTS, 8).

main() -> main(10000).

%% From the command line the argument is a list of strings.
main([Calls]) -> main(list_to_integer(Calls));
main([]) -> main();
main(Calls) when is_integer(Calls) ->
    {ok, Server} = gen_server:start_link(?MODULE, [], []),
    Clients = [spawn_monitor(fun() -> client(Server, Id, Calls) end) || Id <- lists:seq(1, ?CLIENTS)],
    [receive {'DOWN', Ref, process, Pid, normal} -> ok end || {Pid, Ref} <- Clients],
    {Accounts, Sum} = gen_server:call(Server, summary),
    gen_server:stop(Server),
    io:format("~b calls, ~b accounts, sum ~b~n", [?CLIENTS * Calls, Accounts, Sum]).

client(_Server, _Id, 0) -> ok;
client(Server, Id, Left) when Left rem 10 =:= 0 ->
    gen_server:cast(Server, {move, Id, Left rem 7, 1}),
    client(Server, Id, Left - 1);
client(Server, Id, Left) ->
    _ = gen_server:call(Server, {add, (Id * Left) rem 100, Left rem 13}),
    client(Server, Id, Left - 1).

init([]) ->
    {ok, #{}}.

handle_call({add, Account, Amount}, _From, Accounts) ->
    Balance = maps:get(Account, Accounts, 0) + Amount,
    {reply, Balance, Accounts#{Account => Balance}};
handle_call(summary, _From, Accounts) ->
    {reply, {map_size(Accounts), lists:sum(maps:values(Accounts))}, Accounts}.

handle_cast({move, From, To, Amount}, Accounts) ->
    {noreply, add(To, Amount, add(From, -Amount, Accounts))}.

add(Account, Amount, Accounts) ->
    maps:update_with(Account, fun(Balance) -> Balance + Amount end, Amount, Accounts).
