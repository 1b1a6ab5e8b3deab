%% Pids, ports and references of a node that cannot be reached, and of this one before it was what it is.
-module(remote).
-export([links/0, links_of_old/0, unlinks/0, monitors/0, demonitors/0, aliases/0, timers/0, sends/0, sends_of_old/0,
         noconnect/0, exits/0, known_nodes/0, infos/0, unlinked_in_time/0, trapped/0]).

pid() -> binary_to_term(<<131, 88, 119, 5, "n@hst", 1:32, 0:32, 1:32>>).
port() -> binary_to_term(<<131, 120, 119, 5, "n@hst", 1:64, 1:32>>).
ref() -> binary_to_term(<<131, 90, 3:16, 119, 5, "n@hst", 1:32, 1:32, 1:32, 1:32>>).
old_pid() -> binary_to_term(<<131, 88, 119, 13, "nonode@nohost", 1:32, 0:32, 7:32>>).
old_port() -> binary_to_term(<<131, 120, 119, 13, "nonode@nohost", 1:64, 7:32>>).
old_ref() -> binary_to_term(<<131, 90, 3:16, 119, 13, "nonode@nohost", 7:32, 1:32, 1:32, 1:32>>).
all() -> [pid(), port(), ref()].
old() -> [old_pid(), old_port(), old_ref()].

%% Arguments are left out: how a node is numbered in print is not fixed.
of_call(Fun) ->
    try Fun() of
        Result when is_reference(Result) -> reference;
        Result -> Result
    catch Class:Reason:Stack -> {Class, Reason, told(Reason, Stack)}
    end.

told(Reason, [{M, F, A, Info} | _] = Stack) when is_list(A) ->
    {M, F, length(A), explained(Reason, Stack, Info)};
told(_, _) ->
    none.

explained(Reason, Stack, Info) ->
    case lists:keyfind(error_info, 1, Info) of
        {error_info, #{module := Module}} -> Module:format_error(Reason, Stack);
        _ -> none
    end.

in_process(Fun) ->
    {_, Ref} = spawn_monitor(fun() -> exit({result, of_call(Fun)}) end),
    receive {'DOWN', Ref, _, _, Reason} -> Reason end.

%% What becomes of a process that waits after it has called.
after_call(Fun) ->
    {_, Ref} = spawn_monitor(fun() -> of_call(Fun), receive after 100 -> exit(survived) end end),
    receive {'DOWN', Ref, _, _, Reason} -> Reason end.

links() ->
    {[in_process(fun() -> link(X) end) || X <- all()], [in_process(fun() -> link(X, []) end) || X <- all()],
     [in_process(fun() -> link(X, [priority]) end) || X <- all()], [after_call(fun() -> link(X) end) || X <- all()]}.

links_of_old() ->
    {[in_process(fun() -> link(X) end) || X <- old()],
     [in_process(fun() -> process_flag(trap_exit, true), link(X) end) || X <- old()],
     [after_call(fun() -> link(X) end) || X <- old()]}.

trapped() ->
    Trap = fun(X) ->
        in_process(fun() ->
            process_flag(trap_exit, true),
            link(X),
            link(X),
            receive {'EXIT', X, Reason} -> {Reason, receive M -> M after 50 -> none end} after 1000 -> nothing end
        end)
    end,
    [Trap(X) || X <- [pid(), old_pid(), old_port()]].

unlinked_in_time() ->
    in_process(fun() -> link(pid()), unlink(pid()), receive after 50 -> survived end end).

unlinks() -> [of_call(fun() -> unlink(X) end) || X <- all() ++ old()].

monitors() ->
    Monitor = fun(Kind, X) ->
        in_process(fun() ->
            Ref = monitor(Kind, X),
            receive {'DOWN', Ref, K, X, Reason} -> {K, Reason} after 1000 -> nothing end
        end)
    end,
    [Monitor(Kind, X) || Kind <- [process, port], X <- all() ++ old() ++ [{a, n@hst}, {a, nonode@nohost}]].

demonitors() ->
    [of_call(fun() -> demonitor(X) end) || X <- [ref(), old_ref(), pid()]]
        ++ [of_call(fun() -> demonitor(X, O) end) || X <- [ref(), old_ref()], O <- [[info], [flush], [foo]]].

aliases() -> [of_call(fun() -> unalias(X) end) || X <- [ref(), old_ref(), pid()]].

timers() ->
    [of_call(fun() -> erlang:F(X) end) || F <- [cancel_timer, read_timer], X <- [ref(), old_ref(), pid()]]
        ++ [of_call(fun() -> erlang:cancel_timer(ref(), O) end)
            || O <- [[{info, false}], [{async, true}, {info, false}], [{async, false}], [foo]]]
        ++ [of_call(fun() -> erlang:F(0, X, hi) end) || F <- [send_after, start_timer], X <- [pid(), port(), old_pid()]].

sends() ->
    [of_call(fun() -> X ! hi end) =:= hi || X <- all()]
        ++ [of_call(fun() -> F(X) end)
            || X <- all() ++ [{a, n@hst}, {a, nonode@nohost}, {a}, {1, n@hst}],
               F <- [fun(T) -> erlang:send(T, hi) end, fun(T) -> erlang:send(T, hi, []) end,
                     fun(T) -> erlang:send_nosuspend(T, hi) end]].

%% They are logged.
sends_of_old() ->
    Logger = erlang:system_flag(system_logger, self()),
    Sends = [fun(T) -> T ! hi end, fun(T) -> erlang:send(T, hi, [noconnect]) end],
    Sent = [{of_call(fun() -> Send(X) end), logged()} || X <- old(), Send <- Sends],
    erlang:system_flag(system_logger, Logger),
    Sent.

logged() ->
    receive
        {log, Level, Format, [Text], _} -> {Level, Format, hd(string:split(Text, "from"))};
        {log, Level, Text, _} -> {Level, hd(string:split(Text, "from"))}
    after 1000 -> nothing
    end.

noconnect() ->
    Targets = [{undefined, n@hst}, {foo, n@hst}, pid(), ref(), port(), {foo, nonode@nohost}, self()],
    {[of_call(fun() -> erlang:send(X, x, [noconnect]) end) || X <- Targets],
     [of_call(fun() -> erlang:send(X, x, [noconnect, nosuspend]) end) || X <- Targets],
     [of_call(fun() -> erlang:send_nosuspend(X, x, [noconnect]) end) || X <- Targets]}.

exits() -> [of_call(fun() -> exit(X, why) end) || X <- all() ++ old()].

known_nodes() ->
    Pids = [pid(), old_pid(), binary_to_term(<<131, 88, 119, 6, "n2@hst", 1:32, 0:32, 1:32>>)],
    Nodes = [n || N <- nodes(known), lists:member(N, ['n@hst', 'n2@hst', nonode@nohost])],
    Info = [{N, I} || {N, I} <- nodes(known, #{connection_id => true, node_type => true}), N =/= 'n@hst', N =/= 'n2@hst'],
    Sorted = lists:sort([N || N <- nodes(known), lists:member(N, ['n@hst', 'n2@hst', nonode@nohost])]),
    {length(Pids), Nodes, Sorted, lists:keyfind(nonode@nohost, 1, Info), nodes(this), nodes(), nodes([visible, this]),
     [of_call(fun() -> nodes(K, O) end)
      || {K, O} <- [{[], #{a => 1}}, {this, #{}}, {this, #{node_type => true}}, {foo, #{}}, {[foo], #{}}, {[this | a], #{}},
                    {this, foo}, {this, #{node_type => 1}}, {this, #{node_type => false, connection_id => true}}]]}.

infos() ->
    [of_call(fun() -> F(X) end)
     || F <- [fun erlang:process_info/1, fun erlang:is_process_alive/1, fun erlang:port_info/1, fun port_id/1,
              fun(X) -> erlang:port_connect(X, self()) end, fun erlang:port_close/1, fun erlang:port_get_data/1,
              fun(X) -> erlang:port_command(X, "a") end, fun(X) -> erlang:port_control(X, 1, "a") end,
              fun(X) -> erlang:suspend_process(X) end, fun(X) -> erlang:resume_process(X) end,
              fun(X) -> erlang:garbage_collect(X) end, fun(X) -> erlang:check_process_code(X, lists) end,
              fun(X) -> group_leader(self(), X) end, fun(X) -> register(some_name, X) end,
              fun(X) -> erlang:process_display(X, backtrace) end, fun(X) -> node(X) end,
              fun(X) -> erlang:spawn_request_abandon(X) end, fun(X) -> erlang:is_builtin(X, a, 1) end],
        X <- all() ++ old()].

port_id(X) -> erlang:port_info(X, id).
