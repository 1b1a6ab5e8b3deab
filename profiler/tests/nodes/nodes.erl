%% What processes of two nodes do to each other. The node that is called starts the other one, and prints what it sees.
-module(nodes).
-export([main/0, certificates/0, again/0, traced/0, busy/0, malformed/0, cut/0, referred/0, halted/1, forward/2, echo/0, sleeper/0, linked_to/1]).

main() ->
    {Peer, Node} = other(),
    process_flag(trap_exit, true),
    [begin print(Name), Case(Node) end || {Name, Case} <- cases()],
    net_kernel:monitor_nodes(true, [nodedown_reason]),
    true = monitor_node(Node, true),
    Ref = monitor(process, {nobody_yet, Node}),
    print({down, await({'DOWN', Ref})}),
    Waits = spawn(Node, ?MODULE, sleeper, []),
    link(Waits),
    Down = monitor(process, Waits),
    peer:stop(Peer),
    print({link, case await_exit(Waits) of noconnection -> noconnection end}),
    print({monitor, await({'DOWN', Down})}),
    receive {nodedown, Node} -> print(nodedown) after 5000 -> print(no_nodedown) end,
    receive {nodedown, Node, [{nodedown_reason, _}]} -> print(nodedown_told) after 5000 -> print(no_nodedown) end,
    print(nodes()).

%% Writes what TLS needs: a certificate, its key, and the options of both sides.
certificates() ->
    #{cert := Cert, key := Key} = public_key:pkix_test_root_cert("nodes", [{key, {rsa, 2048, 65537}}, {digest, sha256}]),
    KeyType = element(1, Key),
    Entries = [{'Certificate', Cert, not_encrypted}, {KeyType, public_key:der_encode(KeyType, Key), not_encrypted}],
    ok = file:write_file("tls.pem", public_key:pem_encode(Entries)),
    File = filename:absname("tls.pem"),
    Options = [{server, [{certfile, File}, {keyfile, File}, {verify, verify_none}]}, {client, [{verify, verify_none}]}],
    ok = file:write_file("tls.conf", io_lib:format("~p.~n", [Options])).

%% A node that is given its name, loses it, and gets another.
again() ->
    print({node(), is_alive()}),
    Here = self(),
    net_kernel:monitor_nodes(true),
    [begin
         {ok, _} = net_kernel:start(Name, #{name_domain => longnames}),
         receive {nodeup, Up} -> print({up, Up}) after 5000 -> print(no_nodeup) end,
         print({node(), node(Here), is_alive(), Here =:= self(), nodes(this)}),
         {ok, Peer, Node} = peer:start_link(#{name => two, host => "127.0.0.1", longnames => true,
                                              args => ["-setcookie", atom_to_list(erlang:get_cookie())]}),
         print(erpc:call(Node, erlang, node, [Here])),
         peer:stop(Peer),
         print(flush()),
         print(net_kernel:stop()),
         receive {nodedown, Name} -> print(down) after 5000 -> print(no_nodedown) end,
         print({node(), is_alive(), nodes()})
     end || Name <- ['three@127.0.0.1', 'four@127.0.0.1']].

%% What refers to another node, and how. The counts that nodes and connections have of themselves are those that are found.
referred() ->
    internals(node()),
    {Peer, Node} = other(),
    Pid = spawn(Node, ?MODULE, sleeper, []),
    Holder = spawn(?MODULE, linked_to, [Pid]),
    Timer = erlang:send_after(60000, nobody, {Pid, [Pid]}),
    t = ets:new(t, [named_table]),
    ets:insert(t, [{1, Pid}, {2, Pid}, {3, node()}]),
    persistent_term:put(?MODULE, Pid),
    {_, Continuation} = ets:select(t, [{{'_', Pid}, [], ['$_']}], 1),
    print(kinds(Node, Holder)),
    print(length(element(1, ets:select(Continuation)))),
    exit(Holder, kill),
    erlang:cancel_timer(Timer),
    ets:delete(t, 1),
    persistent_term:erase(?MODULE),
    until(fun() -> kinds(Node, Holder) =:= [{{ets, t}, [{ets, 1}]}] end),
    ets:delete(t),
    until(fun() -> kinds(Node, Holder) =:= [] end),
    peer:stop(Peer).

%% Who refers to a node, of those that are looked for.
kinds(Node, Holder) ->
    [garbage_collect(P) || P <- processes()],
    {{node_references, Nodes}, {dist_references, Connections}} = erts_debug:get_internal_state(node_and_dist_references),
    [] = [Row || {_, Count, Who} = Row <- Nodes ++ Connections, Count =/= 0,
                 Count =/= lists:sum([N || {_, Kinds} <- Who, {_, N} <- Kinds])],
    lists:sort([{case Who of {process, Holder} -> holder; {match_spec, _} -> match_spec; _ -> Who end, Kinds}
                || {{Name, _}, _, All} <- Nodes, Name =:= Node, {{Type, Id} = Who, Kinds} <- All,
                   Id =:= Holder orelse Id =:= nobody orelse not lists:member(Type, [process, dist]),
                   Id =/= delayed_delete_timer]).

%% Halts while another node, which stands still, has not taken all that was sent to it.
halted(Options) ->
    {_, Node} = other(),
    internals(Node),
    erpc:cast(Node, erts_debug, set_internal_state, [block, 10000]),
    timer:sleep(500),
    fill(Node, binary:copy(<<7>>, 100000), 0),
    halt(3, Options).

%% Another node, connected.
other() ->
    Carrier = lists:append([["-" ++ atom_to_list(Flag), Value]
                            || Flag <- [proto_dist, ssl_dist_optfile], {ok, [[Value]]} <- [init:get_argument(Flag)]]),
    Args = ["-setcookie", atom_to_list(erlang:get_cookie()), "-pa", filename:dirname(code:which(?MODULE)) | Carrier],
    {ok, Peer, Node} = peer:start_link(#{name => two, host => "127.0.0.1", longnames => true, args => Args,
                                         connection => standard_io, wait_boot => 60000}),
    pong = net_adm:ping(Node),
    {Peer, Node}.

%% A connection that ends before the other node has acknowledged an unlink: the link that it makes afterwards is one.
cut() ->
    {Peer, Node} = other(),
    process_flag(trap_exit, true),
    Echo = spawn_link(Node, ?MODULE, echo, []),
    Os = peer:call(Peer, os, getpid, []),
    os:cmd("kill -STOP " ++ Os),
    unlink(Echo),
    true = erlang:disconnect_node(Node),
    os:cmd("kill -CONT " ++ Os),
    print(receive {'EXIT', Echo, Early} -> Early after 100 -> nothing end),
    print(reconnected(Node, 1000)),
    Echo ! {link, self()},
    receive {linked, Echo} -> ok end,
    print(lists:member(Echo, element(2, process_info(self(), links)))),
    Echo ! {exit, because},
    print(await_exit(Echo)),
    peer:stop(Peer).

reconnected(_, 0) -> pang;
reconnected(Node, Times) ->
    case net_adm:ping(Node) of
        pong -> pong;
        pang -> timer:sleep(10), reconnected(Node, Times - 1)
    end.

%% Processes that send to a node that stands still, and large messages.
busy() ->
    print([erlang:system_info(What) || What <- [dist_buf_busy_limit, async_dist]]),
    {Peer, Node} = other(),
    [internals(N) || N <- [node(), Node]],
    Echo = spawn(Node, ?MODULE, echo, []),
    Victim = spawn(Node, ?MODULE, sleeper, []),
    Known = monitor(process, Victim),
    Monitor = spawn_link(fun() -> reports([]) end),
    erlang:system_monitor(Monitor, [busy_dist_port]),
    erpc:cast(Node, erts_debug, set_internal_state, [block, 4000]),
    timer:sleep(500),
    fill(Node, binary:copy(<<7>>, 100000), 0),
    Me = self(),
    Calls = [{send, fun() -> Echo ! {Me, made, sent} end},
             {link, fun() -> link(Echo) end},
             {unlink, fun() -> unlink(Echo) end},
             {monitor, fun() -> is_reference(monitor(process, Echo)) end},
             {exit, fun() -> exit(Victim, over) end},
             {request, fun() -> is_reference(spawn_request(Node, erlang, self, [], [])) end}],
    Pids = [{Name, spawn(fun() -> Me ! {Name, Call()}, timer:sleep(infinity) end)} || {Name, Call} <- Calls],
    Async = spawn_opt(fun() -> Me ! {async, link(Echo)}, timer:sleep(infinity) end, [{async_dist, true}]),
    print(receive {async, Linked} -> {async, Linked} after 1000 -> suspended end),
    [print({Name, seen(Pid)}) || {Name, Pid} <- Pids],
    [print(receive {Name, Result} when Result =/= sent -> {Name, result(Result)} after 20000 -> {Name, lost} end)
     || {Name, _} <- Pids],
    print(receive {made, sent} -> sent after 20000 -> lost end),
    print({down, await({'DOWN', Known})}),
    Monitor ! {which, self()},
    print(receive {reported, Reported} -> [Name || {Name, Pid} <- Pids, lists:member(Pid, Reported)] end),
    erlang:system_monitor(undefined),
    exit(Async, kill),
    fragments(Node),
    peer:stop(Peer).

fragments(Node) ->
    Me = self(),
    Echo = spawn(Node, ?MODULE, echo, []),
    %% Each byte and the order are what they were, and others are heard in between.
    Large = [binary:copy(<<N>>, Size) || {N, Size} <- [{1, 70000}, {2, 3000000}, {3, 10}, {4, 65536}, {5, 900000}]],
    Sender = spawn(fun() -> [Echo ! {Me, large, Binary} || Binary <- Large] end),
    [Echo ! {Me, small, N} || N <- lists:seq(1, 20)],
    print([receive {small, N} -> N after 20000 -> lost end || N <- lists:seq(1, 20)]),
    print([receive {large, Same} -> Same =:= Binary after 20000 -> lost end || Binary <- Large]),
    print(is_process_alive(Sender)),
    %% What a process says as it ends.
    Reason = binary:copy(<<6>>, 2000000),
    Ends = [spawn_monitor(fun() -> link(Echo), exit(Reason) end) || _ <- lists:seq(1, 3)],
    print([receive {'DOWN', Ref, process, Pid, Why} -> lists:member(Why, [Reason, noproc]) after 20000 -> lost end
           || {Pid, Ref} <- Ends]).

%% Until nothing is taken any more, which is when the buffers of the system are full, too.
fill(_, _, 5) -> print(full);
fill(Node, Data, Times) ->
    case erlang:send({nobody, Node}, Data, [nosuspend]) of
        ok -> fill(Node, Data, 0);
        nosuspend -> timer:sleep(50), fill(Node, Data, Times + 1)
    end.

seen(Pid) ->
    [{status, Status}, {current_function, {Module, Function, _}}] = process_info(Pid, [status, current_function]),
    {Status, Module, Function}.

result({_, made, sent}) -> sent;
result(Other) -> Other.

reports(Seen) ->
    receive
        {monitor, Pid, busy_dist_port, Port} when is_port(Port) -> reports([Pid | Seen]);
        {which, From} -> From ! {reported, Seen}
    end.

%% Opens what test suites ask, which each node logs.
internals(Node) ->
    erpc:call(Node, logger, set_primary_config, [level, none]),
    erpc:call(Node, erts_debug, set_internal_state, [available_internal_state, true]).

%% Messages that are none.
malformed() ->
    {Peer, Node} = other(),
    [internals(N) || N <- [node(), Node]],
    net_kernel:monitor_nodes(true, [nodedown_reason]),
    P = spawn(Node, ?MODULE, sleeper, []),
    [print({What, down_by(Node, [131, $D, 0, without_version(Control), without_version(payload)])})
     || {What, Control} <- [{short, {21, self(), P, normal}}, {no_reference, {21, self(), P, normal, normal}},
                            {no_name, {6, self(), '', P}}, {no_pid, {2, '', name}}, {no_link, {1, here, P}},
                            {no_leader, {7, P, 'not'}}, {no_monitor, {19, self(), P, ref}}, {unknown, {99, self()}},
                            {demonitor, {20, P, self(), make_ref()}}, {not_a_tuple, hello}, {unlink, {4, self(), P}},
                            {other_node, {3, P, self(), reason}}]],
    print({header, down_by(Node, [131, $D, 3, 1, 2, 3])}),
    print({version, down_by(Node, [130, $D, 0])}),
    print({fragment, down_by(Node, [131, $F, <<1:64, 1:64>>])}),
    peer:stop(Peer).

without_version(Term) ->
    <<131, Bytes/binary>> = term_to_binary(Term),
    Bytes.

%% Has another node say why its connection to this one ends.
down_by(Node, Data) ->
    Me = self(),
    pong = net_adm:ping(Node),
    receive {nodeup, Node, _} -> ok after 0 -> ok end,
    Watch = fun() ->
                    net_kernel:monitor_nodes(true, [nodedown_reason]),
                    Me ! {self(), ready},
                    receive {nodedown, _, [{nodedown_reason, Why}]} -> ok end,
                    receive {ask, From} -> From ! {self(), Why} end
            end,
    There = spawn(Node, Watch),
    receive {There, ready} -> ok end,
    ok = prim_inet:send(erts_debug:get_internal_state({dist_ctrl, Node}), Data),
    Here = receive {nodedown, Node, [{nodedown_reason, Reason}]} -> Reason after 5000 -> none end,
    pong = net_adm:ping(Node),
    There ! {ask, Me},
    receive {nodeup, Node, _} -> ok after 0 -> ok end,
    {Here, receive {There, Other} -> Other after 5000 -> none end}.

%% What tracers hear of messages that cross nodes.
traced() ->
    {Peer, Node} = other(),
    Echo = spawn(Node, ?MODULE, echo, []),
    Me = self(),
    tokens(Node, Echo, small, 17),
    tokens(Node, Echo, large, {order, [7]}),
    P = spawn(fun F() ->
                      receive
                          {send, To, What} -> To ! What, F();
                          {alias, Reply} -> Reply ! {self(), asked}, F();
                          stop -> ok;
                          _ -> F()
                      end
              end),
    1 = erlang:trace(P, true, [send, 'receive']),
    erlang:trace_pattern('receive', [{[Node, undefined, '_'], [], []}], []),
    P ! unseen,
    P ! {send, {nobody, Node}, by_name},
    P ! {send, Echo, {P, ref, by_pid}},
    print(receive {trace, P, 'receive', M1} -> M1 after 5000 -> lost end),
    P ! stop,
    print([case To of Echo -> {echo, W =:= {P, ref, by_pid}}; {nobody, Node} -> {name, W} end
           || {trace, _, send, W, To} <- heard(2)]),
    print(receive {trace, _, 'receive', M2} -> M2 after 50 -> nothing end),
    true = is_pid(Me),
    waits_and_links(Node),
    print([Id =:= read(Id) || Id <- [Echo, erpc:call(Node, erlang, make_ref, []), hd(erpc:call(Node, erlang, ports, []))]]),
    peer:stop(Peer).

%% A link to a new process of the other node, and the end of a wait, by its pattern.
waits_and_links(Node) ->
    Q = spawn(fun() ->
                      receive go -> spawn_link(Node, ?MODULE, sleeper, []) end,
                      receive after 10 -> ok end,
                      receive stop -> ok end
              end),
    1 = erlang:trace(Q, true, [procs, 'receive']),
    erlang:trace_pattern('receive', [{[clock_service, undefined, timeout], [], []}], []),
    Q ! go,
    print([receive
               {trace, Q, link, To} -> {link, node(To) =:= Node};
               {trace, Q, Event, What} -> {Event, What}
           after 5000 -> lost
           end || _ <- [1, 2]]),
    1 = erlang:trace(Q, false, [all]),
    Q ! stop.

read(Id) when is_pid(Id) -> list_to_pid(pid_to_list(Id));
read(Id) when is_reference(Id) -> list_to_ref(ref_to_list(Id));
read(Id) when is_port(Id) -> list_to_port(port_to_list(Id)).

tokens(Node, Echo, Kind, Label) ->
    Me = self(),
    Here = spawn(?MODULE, forward, [Me, here]),
    There = spawn(Node, ?MODULE, forward, [Me, there]),
    seq_trace:set_system_tracer(Here),
    false = erpc:call(Node, seq_trace, set_system_tracer, [There]),
    [seq_trace:set_token(Flag, On) || {Flag, On} <- [{label, Label}, {send, true}, {'receive', true}, {print, true}]],
    Echo ! {Me, ref, Kind},
    receive {ref, Kind} -> ok end,
    seq_trace:print(back),
    seq_trace:set_token([]),
    Named = fun(Pid) when Pid =:= Me -> me; (Pid) when Pid =:= Echo -> echo; (Other) -> Other end,
    Told = [{Where, L, What, Serial, Named(From), Named(To)}
            || {Where, {seq_trace, L, {What, Serial, From, To, _}}} <- heard(5)],
    print(lists:sort([{Serial, Where, L, What, From, To} || {Where, L, What, Serial, From, To} <- Told])),
    seq_trace:set_system_tracer(false),
    There = erpc:call(Node, seq_trace, set_system_tracer, [false]).

forward(To, Where) ->
    receive Told when element(1, Told) =:= seq_trace -> To ! {Where, Told}, forward(To, Where) end.

%% The next messages of tracers.
heard(0) -> [];
heard(N) ->
    receive
        {Where, _} = M when Where =:= here; Where =:= there -> [M | heard(N - 1)];
        {trace, _, send, _, _} = M -> [M | heard(N - 1)]
    after 5000 -> [lost] end.

flush() -> receive {nodeup, _} -> flush(); {nodedown, _} = Down -> Down after 5000 -> nothing end.

cases() ->
    [{messages, fun messages/1}, {names, fun names/1}, {terms, fun terms/1}, {large, fun large/1},
     {spawns, fun spawns/1}, {exits, fun exits/1}, {links, fun links/1}, {unlinks, fun unlinks/1},
     {monitors, fun monitors/1}, {aliases, fun aliases/1}, {calls, fun calls/1}, {leaders, fun leaders/1},
     {order, fun order/1}, {many, fun many/1}, {info, fun info/1}, {identifiers, fun identifiers/1}].

messages(Node) ->
    Pid = spawn(Node, ?MODULE, echo, []),
    print([ask(Pid, T) || T <- [a, 1, -1, 1 bsl 100, 2.5, "text", [], {}, #{k => v}, <<"bytes">>, <<1:3>>]]),
    print(node(Pid) =:= Node),
    Pid ! stop.

names(Node) ->
    Pid = spawn(Node, ?MODULE, echo, []),
    true = erpc:call(Node, erlang, register, [echoes, Pid]),
    print(ask({echoes, Node}, named)),
    print({nobody, Node} ! lost),
    print(erlang:send({nobody, Node}, lost, [noconnect])),
    print(erlang:send({'', 'no node'}, lost, [noconnect])),
    {echoes, Node} ! stop.

terms(Node) ->
    Pid = spawn(Node, ?MODULE, echo, []),
    Here = [self(), make_ref(), hd(erlang:ports()), fun lists:map/2, node()],
    print(ask(Pid, Here) =:= Here),
    There = erpc:call(Node, erlang, apply, [fun() -> [self(), make_ref()] end, []]),
    print(ask(Pid, There) =:= There),
    print([node(T) =:= Node || T <- There]),
    X = 5,
    F = ask(Pid, fun(Y) -> X + Y end),
    print(F(7)),
    Atoms = [list_to_atom("atom " ++ integer_to_list(I)) || I <- lists:seq(1, 400)],
    print(ask(Pid, Atoms) =:= Atoms),
    print(ask(Pid, lists:reverse(Atoms)) =:= lists:reverse(Atoms)),
    Long = [list_to_atom(lists:duplicate(255, C)) || C <- [$a, 16#e9, 16#20ac]],
    print(ask(Pid, Long) =:= Long),
    Pid ! stop.

large(Node) ->
    Pid = spawn(Node, ?MODULE, echo, []),
    [begin
         Binary = binary:copy(<<"0123456789">>, N div 10),
         print({N, erlang:md5(ask(Pid, Binary)) =:= erlang:md5(Binary)})
     end || N <- [10, 1000, 65530, 65540, 1000000, 5000000]],
    List = lists:seq(1, 200000),
    print(ask(Pid, List) =:= List),
    print(erpc:call(Node, erlang, length, [List])),
    {Sleeper, Ref} = spawn_monitor(Node, ?MODULE, sleeper, []),
    exit(Sleeper, List),
    print(receive {'DOWN', Ref, process, Sleeper, Reason} -> Reason =:= List after 5000 -> lost end),
    Pid ! stop.

spawns(Node) ->
    Me = self(),
    Pid = spawn(Node, fun() -> Me ! {from, node(), self()} end),
    print(receive {from, Node, Pid} -> spawned after 5000 -> lost end),
    {Child, Ref} = spawn_monitor(Node, fun() -> exit(done) end),
    print(receive {'DOWN', Ref, process, Child, R} -> R after 5000 -> lost end),
    Linked = spawn_link(Node, fun() -> exit(linked) end),
    print(await_exit(Linked)),
    Req = spawn_request(Node, ?MODULE, echo, [], [monitor, {reply_tag, tagged}]),
    Echo = receive {tagged, Req, ok, E} -> E after 5000 -> lost end,
    print(ask(Echo, requested)),
    Echo ! stop,
    print(receive {'DOWN', Req, process, Echo, R2} -> R2 after 5000 -> lost end),
    Bad = spawn_request(Node, ?MODULE, echo, [], [{priority, nonsense}]),
    print(receive {spawn_reply, Bad, error, Why} -> Why after 5000 -> lost end),
    print(reason(fun() -> spawn_opt(Node, ?MODULE, echo, [], nonsense) end)),
    None = spawn_request('none@127.0.0.1', ?MODULE, echo, []),
    print(receive {spawn_reply, None, error, Why2} -> Why2 after 5000 -> lost end).

exits(Node) ->
    [begin
         {Pid, Ref} = spawn_monitor(Node, ?MODULE, sleeper, []),
         exit(Pid, Reason),
         Last = case Reason of normal -> exit(Pid, after_normal), after_normal; kill -> killed; _ -> Reason end,
         print({Reason, receive {'DOWN', Ref, process, Pid, R} -> R =:= Last after 5000 -> lost end})
     end || Reason <- [stop, kill, normal, {tuple, "x", 1.5}]].

links(Node) ->
    Pid = spawn_link(Node, ?MODULE, echo, []),
    ask(Pid, there),
    Pid ! {exit, because},
    print(await_exit(Pid)),
    Gone = spawn(Node, fun() -> ok end),
    timer:sleep(50),
    link(Gone),
    print(await_exit(Gone)),
    Me = self(),
    Linker = spawn(Node, ?MODULE, linked_to, [Me]),
    receive {linked, Linker} -> ok end,
    print(lists:member(Linker, element(2, process_info(self(), links)))),
    exit(Linker, shutdown),
    print(await_exit(Linker)).

unlinks(Node) ->
    Pid = spawn_link(Node, ?MODULE, echo, []),
    unlink(Pid),
    ask(Pid, there),
    Pid ! {exit, because},
    print(receive {'EXIT', Pid, _} -> came after 100 -> nothing end),
    print(lists:member(Pid, element(2, process_info(self(), links)))).

monitors(Node) ->
    Pid = spawn(Node, ?MODULE, echo, []),
    A = monitor(process, Pid),
    B = monitor(process, Pid, [{tag, tagged}]),
    C = monitor(process, Pid),
    true = demonitor(C),
    print(lists:sort(element(2, process_info(self(), monitors))) =:= lists:sort([{process, Pid}, {process, Pid}])),
    Pid ! {exit, bye},
    print(await({'DOWN', A})),
    print(receive {tagged, B, process, Pid, R} -> R after 5000 -> lost end),
    print(receive {'DOWN', C, _, _, _} -> came after 100 -> nothing end),
    D = monitor(process, Pid),
    print(await({'DOWN', D})),
    E = monitor(process, {nobody, Node}),
    print(receive {'DOWN', E, process, {nobody, Node}, R2} -> R2 after 5000 -> lost end).

aliases(Node) ->
    Pid = spawn(Node, ?MODULE, echo, []),
    Alias = alias(),
    Pid ! {Alias, by_alias},
    print(receive {Alias, by_alias} -> came after 5000 -> lost end),
    true = unalias(Alias),
    Pid ! {Alias, too_late},
    ask(Pid, behind),
    print(receive {Alias, too_late} -> came after 100 -> nothing end),
    Ref = monitor(process, Pid, [{alias, reply_demonitor}]),
    Pid ! {Ref, reply},
    print(receive {Ref, reply} -> came after 5000 -> lost end),
    Pid ! {exit, unseen},
    print(receive {'DOWN', Ref, _, _, _} -> came after 100 -> nothing end).

calls(Node) ->
    print(erpc:call(Node, lists, sum, [[1, 2, 3]])),
    print(try erpc:call(Node, erlang, error, [oops]) catch error:{exception, oops, _} -> oops end),
    print(try erpc:call(Node, timer, sleep, [10000], 50) catch error:{erpc, T} -> T end),
    print(rpc:call(Node, erlang, node, []) =:= Node),
    print(rpc:multicall([node(), Node], erlang, abs, [-3])),
    print(try gen_server:call({nobody, Node}, x) catch exit:{noproc, _} -> noproc end),
    print(is_list(gen_server:call({kernel_sup, Node}, which_children))),
    print(global:register_name(a_name, self())),
    print(erpc:call(Node, global, whereis_name, [a_name]) =:= self()),
    {ok, _} = pg:start_link(),
    {ok, _} = erpc:call(Node, pg, start, [pg]),
    print(pg:join(a_group, self())),
    print(until(fun() -> erpc:call(Node, pg, get_members, [a_group]) =:= [self()] end)).

leaders(Node) ->
    Me = self(),
    Leader = spawn(fun() -> receive {io_request, From, As, {put_chars, _, _, _, A}} ->
                                Me ! {printed, lists:flatten(apply(io_lib, format, A))},
                                From ! {io_reply, As, ok} end end),
    spawn(Node, fun() -> group_leader(Leader, self()), io:format("~p", [by_leader]) end),
    print(receive {printed, Text} -> Text after 5000 -> lost end),
    Pid = spawn(Node, ?MODULE, sleeper, []),
    group_leader(self(), Pid),
    print(erpc:call(Node, erlang, process_info, [Pid, group_leader]) =:= {group_leader, self()}),
    exit(Pid, kill).

order(Node) ->
    Pid = spawn(Node, fun() -> Me = self(), receive {go, To} -> To ! {Me, [receive N -> N end || _ <- lists:seq(1, 2000)]} end end),
    Pid ! {go, self()},
    [Pid ! N || N <- lists:seq(1, 2000)],
    print(receive {Pid, Got} -> Got =:= lists:seq(1, 2000) after 10000 -> lost end).

many(Node) ->
    Pids = [spawn_link(Node, ?MODULE, echo, []) || _ <- lists:seq(1, 300)],
    print(lists:all(fun(P) -> ask(P, {hello, P}) =:= {hello, P} end, Pids)),
    [P ! {exit, {n, P}} || P <- Pids],
    print(lists:all(fun(P) -> await_exit(P) =:= {n, P} end, Pids)).

info(Node) ->
    print(nodes() =:= [Node]),
    print(nodes(visible) =:= [Node]),
    print(nodes(hidden)),
    print([{N =:= Node, T} || {N, #{node_type := T}} <- nodes(connected, #{node_type => true})]),
    print(is_alive()),
    print(reason(fun() -> erlang:setnode('again@127.0.0.1', 5) end)),
    print(monitor_node(node(), true)),
    print([is_integer(I) || {ok, I} <- [{ok, element(2, lists:keyfind(in, 1, element(2, net_kernel:node_info(Node))))}]]).

identifiers(Node) ->
    Pid = spawn(Node, ?MODULE, sleeper, []),
    [$<, C | _] = pid_to_list(Pid),
    print(C =/= $0),
    print(is_pid(Pid) andalso is_process_alive(self())),
    print(reason(fun() -> is_process_alive(Pid) end)),
    print(reason(fun() -> process_info(Pid) end)),
    print(binary_to_term(term_to_binary(Pid)) =:= Pid),
    print(erpc:call(Node, erlang, is_process_alive, [Pid])),
    exit(Pid, kill).

print(Term) -> io:format("~p~n", [Term]).

reason(Call) -> try Call() catch _:Reason -> Reason end.

until(Holds) -> Holds() orelse begin timer:sleep(5), until(Holds) end.

ask(To, What) ->
    Ref = make_ref(),
    To ! {self(), Ref, What},
    receive {Ref, Answer} -> Answer after 10000 -> lost end.

await({'DOWN', Ref}) -> receive {'DOWN', Ref, process, _, Reason} -> Reason after 10000 -> lost end.

await_exit(Pid) -> receive {'EXIT', Pid, Reason} -> Reason after 10000 -> lost end.

echo() ->
    receive
        {From, Ref, What} when is_pid(From) -> From ! {Ref, What}, echo();
        {link, Pid} -> linked(Pid), echo();
        {exit, Reason} -> exit(Reason);
        {Alias, What} -> Alias ! {Alias, What}, echo();
        stop -> ok
    end.

sleeper() -> receive never -> ok end.

linked_to(Pid) -> linked(Pid), sleeper().

linked(Pid) -> link(Pid), Pid ! {linked, self()}.
