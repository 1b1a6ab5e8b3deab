%% A gen_server that notes who calls, called by eight processes through aliases.
-module(servers).
-behaviour(gen_server).
-export([main/0, init/1, handle_call/3, handle_cast/2]).

main() ->
    {ok, Server} = gen_server:start_link(?MODULE, [], []),
    Callers = [spawn_monitor(fun() -> [gen_server:call(Server, {N, I}) || I <- lists:seq(1, 30)] end)
               || N <- lists:seq(1, 8)],
    [receive {'DOWN', Ref, process, _, normal} -> ok end || {_, Ref} <- Callers],
    io:format("~w~n", [erlang:phash2(gen_server:call(Server, all))]).

init([]) -> {ok, []}.
handle_call(all, _, Calls) -> {reply, Calls, Calls};
handle_call(Call, _, Calls) -> {reply, length(Calls), [Call | Calls]}.
handle_cast(_, Calls) -> {noreply, Calls}.
