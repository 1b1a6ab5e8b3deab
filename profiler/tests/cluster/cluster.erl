%% Three nodes: one that calls, one that serves, and one that is killed.
-module(cluster).
-behaviour(gen_server).
-export([main/0, serve/0, fib/1, idle/0]).
-export([init/1, handle_call/3, handle_cast/2]).

main() ->
    {Two, Three} = {node_of(two), node_of(three)},
    ok = erpc:call(Two, cluster, serve, []),
    [_ = gen_server:call({server, Two}, {fib, 12}) || _ <- lists:seq(1, 20)],
    [89 = erpc:call(Three, cluster, fib, [10]) || _ <- lists:seq(1, 5)],
    Large = spawn(Two, cluster, idle, []),
    Large ! binary:copy(<<7>>, 300000),
    process_flag(trap_exit, true),
    Linked = spawn_link(Three, cluster, idle, []),
    Pid = erpc:call(Three, os, getpid, []),
    os:cmd("kill -9 " ++ Pid),
    receive {'EXIT', Linked, noconnection} -> io:format("gone~n") end,
    io:format("~p~n", [gen_server:call({server, Two}, {fib, 3})]),
    ok = gen_server:call({server, Two}, stop).

node_of(Name) ->
    Args = ["-setcookie", atom_to_list(erlang:get_cookie()), "-pa", filename:dirname(code:which(?MODULE)),
            "-kernel", "prevent_overlapping_partitions", "false",
            %% Whether `global` still tries to reach the node that is killed is chance, and it warns if it does.
            "-kernel", "logger_level", "error"],
    {ok, _, Node} = peer:start(#{name => Name, host => "127.0.0.1", longnames => true, args => Args,
                                 connection => standard_io, wait_boot => 60000}),
    pong = net_adm:ping(Node),
    Node.

serve() ->
    {ok, _} = gen_server:start({local, server}, ?MODULE, [], []),
    ok.

idle() -> receive never -> ok end.

init([]) -> {ok, none}.
handle_call({fib, N}, _, State) -> {reply, fib(N), State};
handle_call(stop, _, State) -> {stop, normal, ok, State}.
handle_cast(_, State) -> {noreply, State}.

fib(N) when N < 2 -> 1;
fib(N) -> fib(N - 1) + fib(N - 2).
