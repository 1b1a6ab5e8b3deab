%% What programs do with sockets of `inet`. Each function prints what it sees, which is the same in OTP.
-module(sockets).
-export([main/1]).

main(_) ->
    [run(Name, Case) || {Name, Case} <- cases()],
    ok.

cases() ->
    [{packets, fun packets/0}, {lengths, fun lengths/0}, {http, fun http/0}, {active, fun active/0},
     {modes, fun modes/0}, {timeouts, fun timeouts/0}, {closing, fun closing/0}, {resets, fun resets/0},
     {senders, fun senders/0}, {forced, fun forced/0}, {accepting, fun accepting/0}, {owners, fun owners/0}, {options, fun options/0},
     {raw, fun raw/0}, {names, fun names/0}, {files, fun files/0}, {datagrams, fun datagrams/0},
     {control, fun control/0}, {local, fun local/0}, {inet6, fun inet6/0}, {refused, fun refused/0}, {killed, fun killed/0}].

run(Name, Case) ->
    Before = descriptors(),
    {Pid, Monitor} = spawn_monitor(Case),
    receive
        {'DOWN', Monitor, _, Pid, Reason} -> show({Name, Reason, settled(Before, 100)})
    end.

%% A descriptor is closed a moment after its port.
settled(Before, 0) -> {descriptors, Before, descriptors()};
settled(Before, N) ->
    case descriptors() of
        Before -> no_leak;
        _ -> timer:sleep(10), settled(Before, N - 1)
    end.

descriptors() ->
    {ok, Files} = file:list_dir("/proc/self/fd"),
    length([F || F <- Files, {ok, "socket:" ++ _} <- [file:read_link("/proc/self/fd/" ++ F)]]).

show(Term) -> io:format("~0p~n", [Term]).

pair(Options) -> pair(Options, Options).
pair(Options, Others) ->
    {ok, L} = gen_tcp:listen(0, [{ip, {127,0,0,1}}, {active, false} | Others]),
    {ok, Port} = inet:port(L),
    {ok, A} = gen_tcp:connect({127,0,0,1}, Port, [{active, false} | Options]),
    {ok, B} = gen_tcp:accept(L),
    ok = gen_tcp:close(L),
    {A, B}.

%% Each kind of packet, sent byte by byte, and all at once.
packets() ->
    Kinds = [{1, <<3, "abc">>}, {2, <<0, 3, "abc">>}, {4, <<0, 0, 0, 3, "abc">>}, {line, <<"abc\n">>},
             {asn1, <<16#30, 3, "abc">>}, {asn1, <<16#3f, 16#81, 1, 16#82, 0, 3, "abc">>},
             {sunrm, <<16#80, 0, 0, 3, "abc">>}, {cdr, <<"GIOP", 1, 2, 0, 7, 0, 0, 0, 3, "abc">>},
             {cdr, <<"GIOP", 1, 2, 1, 7, 3, 0, 0, 0, "abc">>}, {fcgi, <<1, 5, 0, 1, 0, 3, 2, 0, "abcpp">>},
             {tpkt, <<3, 0, 0, 7, "abc">>}, {ssl_tls, <<22, 3, 1, 0, 3, "abc">>}],
    [packet(Kind, Bytes) || {Kind, Bytes} <- Kinds],
    ok.

packet(Kind, Bytes) ->
    {A, B} = pair([binary], [binary, {packet, Kind}]),
    spawn_link(fun() -> [begin ok = gen_tcp:send(A, <<X>>), timer:sleep(1) end || <<X>> <= Bytes] end),
    First = named(gen_tcp:recv(B, 0, 5000), B),
    ok = gen_tcp:send(A, [Bytes, Bytes]),
    Second = named(gen_tcp:recv(B, 0, 5000), B),
    ok = inet:setopts(B, [{active, once}]),
    Third = receive M -> named(M, B) after 5000 -> none end,
    show({Kind, First, Second, Third}),
    close([A, B]).

close(Sockets) -> [gen_tcp:close(S) || S <- Sockets].

%% A term with the sockets in it named.
named(S, S) -> s;
named(T, S) when is_tuple(T) -> list_to_tuple([named(X, S) || X <- tuple_to_list(T)]);
named([H | T], S) -> [named(H, S) | named(T, S)];
named(T, _) -> T.

lengths() ->
    {A, B} = pair([binary], [binary, {packet, 2}, {packet_size, 10}]),
    ok = gen_tcp:send(A, <<0, 10, "0123456789", 0, 11, "0123456789a">>),
    show([gen_tcp:recv(B, 0, 1000), gen_tcp:recv(B, 0, 1000), gen_tcp:recv(B, 0, 1000)]),
    close([A, B]),
    {C, D} = pair([binary], [binary, {packet, line}, {buffer, 8}]),
    ok = gen_tcp:send(C, <<"0123456789\nab\n">>),
    show([gen_tcp:recv(D, 0, 1000) || _ <- [1, 2, 3]]),
    ok = inet:setopts(D, [{line_delimiter, $;}]),
    ok = gen_tcp:send(C, <<"x;y;">>),
    show([gen_tcp:recv(D, 0, 1000) || _ <- [1, 2]]),
    close([C, D]),
    {E, F} = pair([binary], [binary]),
    ok = gen_tcp:send(E, <<"0123456789">>),
    show([gen_tcp:recv(F, 4, 1000), gen_tcp:recv(F, 6, 1000), gen_tcp:recv(F, 1, 10), gen_tcp:recv(F, 16#4000001)]),
    ok = gen_tcp:unrecv(F, <<"back">>),
    show([gen_tcp:recv(F, 2, 1000), gen_tcp:recv(F, 0, 1000)]),
    close([E, F]),
    {G, H} = pair([binary, {packet, 1}], [binary, {packet, 1}]),
    ok = gen_tcp:send(G, lists:duplicate(255, $x)),
    {ok, Long} = gen_tcp:recv(H, 0),
    show({byte_size(Long), gen_tcp:recv(H, 3, 10)}),
    close([G, H]).

http() ->
    Text = [<<"GET /a/b?c=d HTTP/1.1\r\nHost: x\r\nX-My-header: one\r\n two\r\nContent-Length: 3\r\n\r\nabc">>,
            <<"HTTP/1.0 404 Not Found\r\nserver: y\r\n\r\n">>,
            <<"POST http://h:80/p HTTP/1.0\r\n\r\n">>, <<"OPTIONS * HTTP/1.1\r\n\r\n">>, <<"nonsense\r\n\r\n">>,
            <<"FOO scheme:rest HTTP/1.1\r\nBad header\r\n\r\n">>],
    [http(Kind, T) || Kind <- [http, http_bin], T <- Text],
    {A, B} = pair([binary], [binary, {packet, httph}, {active, true}]),
    ok = gen_tcp:send(A, <<"Host: z\r\nAccept: */*\r\n\r\n">>),
    show([receive M -> named(M, B) after 2000 -> none end || _ <- [1, 2, 3]]),
    close([A, B]).

http(Kind, Text) ->
    {A, B} = pair([binary], [binary, {packet, Kind}]),
    ok = gen_tcp:send(A, Text),
    ok = gen_tcp:shutdown(A, write),
    show({Kind, lines(B)}),
    close([A, B]).

lines(S) ->
    case gen_tcp:recv(S, 0, 2000) of
        {ok, http_eoh} -> ok = inet:setopts(S, [{packet, raw}]), [http_eoh, gen_tcp:recv(S, 0, 2000)];
        {ok, Line} -> [Line | lines(S)];
        Error -> [Error]
    end.

active() ->
    {A, B} = pair([binary, {packet, 1}], [binary, {packet, 1}]),
    [ok = gen_tcp:send(A, <<N>>) || N <- lists:seq(1, 6)],
    ok = inet:setopts(B, [{active, once}]),
    show(some(B, 1)),
    ok = inet:setopts(B, [{active, 2}]),
    show({some(B, 3), inet:getopts(B, [active])}),
    ok = inet:setopts(B, [{active, 1}]),
    ok = inet:setopts(B, [{active, 1}]),
    show(some(B, 4)),
    show(inet:setopts(B, [{active, 32767}, {active, 1}])),
    ok = inet:setopts(B, [{active, -40000 rem 32768}]),
    show({some(B, 1), inet:getopts(B, [active])}),
    ok = inet:setopts(B, [{active, true}]),
    ok = gen_tcp:close(A),
    show({some(B, 2), inet:getopts(B, [active]), erlang:port_info(B)}).

some(S, N) -> [receive M -> named(M, S) after 1000 -> none end || _ <- lists:seq(1, N)].

modes() ->
    {A, B} = pair([list], [list, {header, 2}]),
    ok = gen_tcp:send(A, "abcdef"),
    show(gen_tcp:recv(B, 4, 1000)),
    ok = inet:setopts(B, [binary]),
    show(gen_tcp:recv(B, 2, 1000)),
    ok = gen_tcp:send(A, "ghijkl"),
    show(gen_tcp:recv(B, 6, 1000)),
    ok = inet:setopts(B, [{deliver, port}, {active, once}]),
    ok = gen_tcp:send(A, "mnopqr"),
    show(some(B, 1)),
    close([A, B]).

timeouts() ->
    {A, B} = pair([binary]),
    show([gen_tcp:recv(B, 0, 0), gen_tcp:recv(B, 0, 20), gen_tcp:recv(B, 5, 20)]),
    ok = gen_tcp:send(A, <<"abc">>),
    show([gen_tcp:recv(B, 5, 50), gen_tcp:recv(B, 0, 50)]),
    Self = self(),
    spawn_link(fun() -> Self ! {other, gen_tcp:recv(B, 0)} end),
    timer:sleep(20),
    show(gen_tcp:recv(B, 0)),
    ok = gen_tcp:send(A, <<"x">>),
    show(receive {other, R} -> R end),
    close([A, B]).

closing() ->
    {A, B} = pair([binary]),
    ok = gen_tcp:send(A, <<"last">>),
    ok = gen_tcp:shutdown(A, write),
    show([gen_tcp:recv(B, 0), gen_tcp:recv(B, 0), gen_tcp:recv(B, 0), gen_tcp:send(B, <<"x">>), gen_tcp:send(B, <<"x">>)]),
    show([gen_tcp:send(A, <<"x">>), gen_tcp:close(A), gen_tcp:send(A, <<"x">>), gen_tcp:recv(A, 0), inet:port(A)]),
    close([B]),
    {C, D} = pair([binary, {exit_on_close, false}], [binary, {exit_on_close, false}]),
    ok = gen_tcp:shutdown(C, write),
    show([gen_tcp:recv(D, 0), gen_tcp:send(D, <<"still">>), gen_tcp:recv(C, 0, 1000)]),
    close([C, D]),
    {E, F} = pair([binary], [binary, {active, true}, {exit_on_close, false}]),
    ok = inet:setopts(F, [{active, true}]),
    close([E]),
    show({some(F, 1), erlang:port_info(F, connected) =:= {connected, self()}}),
    close([F]).

resets() ->
    {A, B} = pair([binary, {linger, {true, 0}}], [binary, {show_econnreset, true}]),
    close([A]),
    show([gen_tcp:recv(B, 0, 1000), gen_tcp:recv(B, 0, 1000)]),
    close([B]),
    process_flag(trap_exit, true),
    {C, D} = pair([binary, {linger, {true, 0}}], [binary, {show_econnreset, true}]),
    ok = inet:setopts(D, [{active, true}]),
    close([C]),
    show(some(D, 3)),
    {E, F} = pair([binary, {linger, {true, 0}}], [binary]),
    close([E]),
    timer:sleep(20),
    show([gen_tcp:send(F, <<"x">>), gen_tcp:recv(F, 0, 1000)]),
    close([F]).

%% A peer that does not read.
senders() ->
    {A, B} = pair([binary, {sndbuf, 4096}, {high_watermark, 20000}, {low_watermark, 10000}, {send_timeout, 50}],
                  [binary, {recbuf, 4096}]),
    Full = fill(A, 1000),
    show({Full, inet:getstat(A, [send_pend]) =/= {ok, [{send_pend, 0}]}}),
    ok = inet:setopts(A, [{send_timeout, 0}]),
    show(gen_tcp:send(A, <<0:80000>>)),
    ok = inet:setopts(A, [{send_timeout, infinity}]),
    Self = self(),
    Sender = spawn_link(fun() -> Self ! {sent, gen_tcp:send(A, <<0:800000>>)} end),
    receive {sent, Early} -> show({early, Early}) after 50 -> show(waits) end,
    spawn_link(fun() -> drain(B) end),
    receive {sent, Sent} -> show({is_process_alive(Sender), Sent}) end,
    ok = gen_tcp:close(A),
    {C, D} = pair([binary, {sndbuf, 4096}, {send_timeout, 20}, {send_timeout_close, true}], [binary, {recbuf, 4096}]),
    show({fill(C, 1000), gen_tcp:send(C, <<"x">>)}),
    close([C, D]),
    {E, F} = pair([binary, {delay_send, true}]),
    [ok = gen_tcp:send(E, <<N>>) || N <- [1, 2, 3]],
    show(gen_tcp:recv(F, 3, 1000)),
    close([E, F]).

fill(_, 0) -> never;
fill(S, N) ->
    case gen_tcp:send(S, <<0:80000>>) of
        ok -> fill(S, N - 1);
        Error -> Error
    end.

drain(S) ->
    case gen_tcp:recv(S, 0) of
        {ok, _} -> drain(S);
        _ -> ok
    end.

accepting() ->
    {ok, L} = gen_tcp:listen(0, [{ip, {127,0,0,1}}, binary, {active, false}, {nodelay, true}]),
    {ok, Port} = inet:port(L),
    show([gen_tcp:accept(L, 0), gen_tcp:accept(L, 20)]),
    Self = self(),
    Accept = fun() -> {ok, S} = gen_tcp:accept(L), ok = gen_tcp:controlling_process(S, Self), Self ! {accepted, self(), S} end,
    Pids = [begin P = spawn(Accept), timer:sleep(5), P end || _ <- [1, 2, 3]],
    show(prim_inet:getstatus(L)),
    exit(hd(Pids), kill),
    timer:sleep(20),
    Connect = fun(_) -> {ok, C} = gen_tcp:connect({127,0,0,1}, Port, []), receive {accepted, P, S} -> {C, {P, S}} end end,
    {Cs, Accepted} = lists:unzip(lists:map(Connect, [1, 2])),
    show({[P || {P, _} <- Accepted] =:= tl(Pids), [inet:getopts(S, [nodelay, mode, active]) || {_, S} <- Accepted]}),
    spawn_link(fun() -> Self ! {closed, gen_tcp:accept(L)} end),
    timer:sleep(20),
    close([L | Cs ++ [S || {_, S} <- Accepted]]),
    show([receive {closed, R} -> R end, gen_tcp:accept(L)]).

owners() ->
    Self = self(),
    {ok, L} = gen_tcp:listen(0, [{ip, {127,0,0,1}}, binary, {active, false}]),
    {ok, Port} = inet:port(L),
    spawn(fun() -> {ok, C} = gen_tcp:connect({127,0,0,1}, Port, []), Self ! {made, C} end),
    {ok, A} = gen_tcp:accept(L),
    C = receive {made, S} -> S end,
    show([gen_tcp:recv(A, 0, 1000), erlang:port_info(C)]),
    {ok, D} = gen_tcp:connect({127,0,0,1}, Port, [binary]),
    {ok, E} = gen_tcp:accept(L),
    Pid = spawn(fun() -> Self ! {got, receive {tcp, _, X} -> X end}, receive stop -> ok end end),
    ok = gen_tcp:send(E, <<"before">>),
    timer:sleep(20),
    ok = gen_tcp:controlling_process(D, Pid),
    show([receive {got, G} -> G end, gen_tcp:controlling_process(D, self()), erlang:port_info(D, connected) =:= {connected, Pid}]),
    Pid ! stop,
    show(gen_tcp:recv(E, 0, 1000)),
    close([L, A, E]).

options() ->
    {A, B} = pair([binary]),
    Set = [{nodelay, true}, {keepalive, true}, {priority, 3}, {tos, 16}, {linger, {true, 5}}, {buffer, 1000},
           {high_watermark, 3000}, {low_watermark, 5000}, {packet_size, 77}, {send_timeout, 9}, {send_timeout_close, true},
           {delay_send, true}, {show_econnreset, true}, {read_ahead, false}, {exit_on_close, false}, {reuseaddr, true},
           {keepcnt, 4}, {keepidle, 50}, {keepintvl, 6}, {user_timeout, 70}, {high_msgq_watermark, 100},
           {low_msgq_watermark, 200}, {header, 3}, {nopush, true}],
    [show({Name, inet:setopts(A, [{Name, Value}]), inet:getopts(A, [Name])}) || {Name, Value} <- Set],
    show(inet:getopts(A, [active, packet, mode, deliver, dontroute, broadcast, reuseport, reuseport_lb, exclusiveaddruse,
                          read_packets, line_delimiter])),
    show(inet:getopts(A, [active, packet, mode, deliver, dontroute, reuseport, exclusiveaddruse, read_packets, netns,
                          bind_to_device, debug, non_block_send, ttl])),
    show([inet:setopts(A, [{ttl, 9999}]), inet:setopts(A, [{bad, 1}]), inet:setopts(A, [{packet, 3}]),
          inet:setopts(A, [{bind_to_device, <<"nosuchdevice">>}])]),
    show([inet:getstat(A, [recv_cnt, send_cnt]), prim_inet:getstatus(A), prim_inet:gettype(A)]),
    close([A, B]).

raw() ->
    {A, B} = pair([binary, {raw, 6, 1, <<1:32/native>>}]),
    show([inet:getopts(A, [nodelay]), inet:getopts(A, [{raw, 6, 1, 4}]), inet:getopts(A, [{raw, 6, 9999, 4}]),
          inet:getopts(A, [{raw, 6, 1, <<9, 9, 9, 9>>}])]),
    close([A, B]).

names() ->
    {A, B} = pair([binary]),
    {ok, {IP, P1}} = inet:peername(A),
    {ok, {IP, P2}} = inet:sockname(B),
    show([IP, P1 =:= P2, inet:sockname(A) =:= inet:peername(B)]),
    ok = inet:setpeername(A, {{1,2,3,4}, 5}),
    ok = inet:setsockname(A, {{4,3,2,1}, 6}),
    show([inet:peername(A), inet:sockname(A)]),
    ok = inet:setpeername(A, undefined),
    show(inet:peername(A) =:= {ok, {IP, P1}}),
    show(prim_inet:getservbyname(A, no_such_service, tcp)),
    show(element(1, prim_inet:gethostname(A))),
    close([A, B]).

files() ->
    Name = filename:join("/tmp", "sockets_" ++ os:getpid()),
    Bytes = list_to_binary([[N rem 251, N div 251] || N <- lists:seq(1, 40000)]),
    ok = file:write_file(Name, Bytes),
    {A, B} = pair([binary]),
    Self = self(),
    spawn_link(fun() -> Self ! {all, all(B, [])} end),
    ok = gen_tcp:send(A, <<"head">>),
    show(file:sendfile(Name, A)),
    {ok, File} = file:open(Name, [read, raw, binary]),
    show(file:sendfile(File, A, 5, 10, [])),
    ok = gen_tcp:close(A),
    All = receive {all, X} -> X end,
    show({byte_size(All), All =:= <<"head", Bytes/binary, (binary:part(Bytes, 5, 10))/binary>>}),
    show(file:sendfile(File, A, 0, 10, [])),
    ok = file:close(File),
    ok = file:delete(Name),
    close([B]).

all(S, Acc) ->
    case gen_tcp:recv(S, 0) of
        {ok, Data} -> all(S, [Data | Acc]);
        _ -> iolist_to_binary(lists:reverse(Acc))
    end.

datagrams() ->
    Open = fun(Options) -> {ok, S} = gen_udp:open(0, [binary, {ip, {127,0,0,1}} | Options]), {ok, P} = inet:port(S), {S, P} end,
    {A, PA} = Open([{active, false}]),
    {B, PB} = Open([{active, true}]),
    ok = gen_udp:send(A, {127,0,0,1}, PB, <<"one">>),
    show(receive {udp, B, IP, PA, X} -> {IP, X} after 1000 -> none end),
    show([gen_udp:recv(A, 0, 0), gen_udp:recv(A, 0, 20)]),
    ok = gen_udp:send(B, {127,0,0,1}, PA, []),
    ok = gen_udp:send(B, {{127,0,0,1}, PA}, ["tw", <<"o">>]),
    {ok, {_, PB, E}} = gen_udp:recv(A, 0, 1000),
    {ok, {_, PB, T}} = gen_udp:recv(A, 0, 1000),
    show([E, T, gen_udp:send(A, {127,0,0,1}, PB, <<0:640000>>)]),
    ok = gen_udp:connect(A, {127,0,0,1}, PB),
    show([gen_udp:send(A, <<"three">>), receive {udp, B, _, PA, Y} -> Y after 1000 -> none end]),
    ok = gen_udp:close(B),
    ok = gen_udp:send(A, <<"lost">>),
    show([gen_udp:recv(A, 0, 1000), gen_udp:recv(A, 0, 10)]),
    {C, PC} = Open([{active, 2}, {read_packets, 1}, {buffer, 4}]),
    {D, _} = Open([]),
    [ok = gen_udp:send(D, {127,0,0,1}, PC, <<"abcdef", N>>) || N <- [1, 2, 3]],
    show([receive {udp, C, _, _, Z} -> Z; M -> named(M, C) after 1000 -> none end || _ <- [1, 2, 3]]),
    show([element(1, R) || R <- [gen_udp:recv(C, 0, 1000)]]),
    show([inet:getopts(C, [read_packets, active]), inet:getstat(C, [recv_cnt, recv_oct]), prim_inet:gettype(C)]),
    [gen_udp:close(S) || S <- [A, C, D]],
    ok.

control() ->
    {ok, A} = gen_udp:open(0, [binary, {active, false}, {ip, {127,0,0,1}}, {recvtos, true}, {recvttl, true}]),
    {ok, P} = inet:port(A),
    {ok, B} = gen_udp:open(0, [binary, {ip, {127,0,0,1}}]),
    ok = gen_udp:send(B, {{127,0,0,1}, P}, [{tos, 8}, {ttl, 33}], <<"x">>),
    {ok, {_, _, Control, Data}} = gen_udp:recv(A, 0, 1000),
    show({lists:sort(Control), Data}),
    ok = inet:setopts(A, [{active, once}]),
    ok = gen_udp:send(B, {127,0,0,1}, P, <<"y">>),
    show(receive {udp, A, _, _, C, D} -> {proplists:get_value(tos, C), D} after 1000 -> none end),
    show(gen_udp:send(B, {{127,0,0,1}, P}, [{nodelay, true}], <<"x">>)),
    [gen_udp:close(S) || S <- [A, B]],
    ok.

local() ->
    Name = "/tmp/sockets_local_" ++ os:getpid(),
    {ok, L} = gen_tcp:listen(0, [{ifaddr, {local, Name}}, binary, {active, false}]),
    {ok, A} = gen_tcp:connect({local, Name}, 0, [binary, {active, false}]),
    {ok, B} = gen_tcp:accept(L),
    ok = gen_tcp:send(A, <<"over a file">>),
    show([gen_tcp:recv(B, 0, 1000), inet:sockname(L) =:= {ok, {local, list_to_binary(Name)}}, inet:peername(B)]),
    show(gen_tcp:connect({local, Name ++ "x"}, 0, [])),
    close([L, A, B]),
    ok = file:delete(Name),
    {ok, U} = gen_udp:open(0, [{ifaddr, {local, Name}}, binary, {active, true}]),
    {ok, V} = gen_udp:open(0, [local, binary]),
    ok = gen_udp:send(V, {local, Name}, 0, <<"d">>),
    show(receive M -> named(M, U) after 1000 -> none end),
    [gen_udp:close(S) || S <- [U, V]],
    ok = file:delete(Name),
    {ok, X} = gen_tcp:listen(0, [{ifaddr, {local, <<0, "abstract", (list_to_binary(os:getpid()))/binary>>}}]),
    show(element(1, element(2, inet:sockname(X)))),
    close([X]).

inet6() ->
    case gen_tcp:listen(0, [inet6, {ip, {0,0,0,0,0,0,0,1}}, binary, {active, false}]) of
        {ok, L} ->
            {ok, Port} = inet:port(L),
            {ok, A} = gen_tcp:connect({0,0,0,0,0,0,0,1}, Port, [inet6, binary, {active, false}]),
            {ok, B} = gen_tcp:accept(L),
            {ok, {IP, Port}} = inet:peername(A),
            show([IP, gen_tcp:send(A, <<"six">>), gen_tcp:recv(B, 0, 1000), inet:getopts(L, [ipv6_v6only, tclass])]),
            close([L, A, B]);
        Error -> show(Error)
    end.

refused() ->
    {ok, L} = gen_tcp:listen(0, [{ip, {127,0,0,1}}]),
    {ok, Port} = inet:port(L),
    show([gen_tcp:listen(Port, [{ip, {127,0,0,1}}]), gen_tcp:listen(0, [{ip, {192,0,2,1}}]), gen_udp:open(0, [{ip, {192,0,2,1}}])]),
    close([L]),
    show([gen_tcp:connect({127,0,0,1}, Port, []), gen_tcp:connect({127,0,0,1}, Port, [], 1000)]),
    show([gen_tcp:connect("no.such.host.invalid", 1, [], 5000) =:= {error, nxdomain}]),
    {ok, S} = gen_udp:open(0, []),
    show([catch erlang:port_control(S, 1, []), erlang:port_control(S, 16#03f1a300 + 99, []), erlang:port_control(S, 16#03f1a300 + 1, [1, 2, 0]),
          erlang:port_control(S, 16#03f1a300 + 60, [1]), erlang:port_control(S, 16#03f1a300 + 6, [9, 9, 9])]),
    gen_udp:close(S).

%% Commands may be forced on a busy port, as the distribution sends its ticks; not on one of datagrams.
forced() ->
    {A, B} = pair([binary, {packet, 4}, {sndbuf, 4096}, {high_watermark, 1000}, {low_watermark, 500}],
                  [binary, {packet, 4}, {recbuf, 4096}]),
    show([inet_tcp:send(A, [], [force]), gen_tcp:recv(B, 0, 5000), inet:getstat(A, [send_cnt, send_oct])]),
    spawn_link(fun() -> fill(A, 1000) end),
    busy(A),
    show([erlang:port_command(A, <<0:16, "x">>, [Option]) || Option <- [nosuspend, force]]),
    {ok, U} = gen_udp:open(0),
    show(try erlang:port_command(U, <<0:16, "x">>, [force]) catch error:Reason -> Reason end),
    gen_udp:close(U),
    close([A, B]).

busy(S) ->
    case erlang:port_info(S, queue_size) of
        {queue_size, Size} when Size > 1000 -> ok;
        _ -> timer:sleep(1), busy(S)
    end.

%% Processes that are killed in whatever they do with sockets.
killed() ->
    {ok, L} = gen_tcp:listen(0, [{ip, {127,0,0,1}}, binary, {active, false}, {backlog, 200}, {sndbuf, 4096}]),
    {ok, Port} = inet:port(L),
    Acceptors = [spawn(fun() -> accept_all(L) end) || _ <- lists:seq(1, 20)],
    Clients = [spawn(fun() -> use(Port, N) end) || N <- lists:seq(1, 200)],
    Monitors = [monitor(process, Pid) || Pid <- Acceptors ++ Clients],
    Kill = fun(Pid) -> timer:sleep(rand:uniform(3) - 1), exit(Pid, kill) end,
    lists:foreach(Kill, Clients),
    lists:foreach(Kill, Acceptors),
    [receive {'DOWN', Monitor, _, _, _} -> ok end || Monitor <- Monitors],
    ok = gen_tcp:close(L),
    show({killed, length(Monitors)}).

accept_all(L) ->
    case gen_tcp:accept(L, 200) of
        {ok, Socket} -> _ = gen_tcp:recv(Socket, 0, 20), _ = gen_tcp:send(Socket, <<0:400000>>), accept_all(L);
        _ -> accept_all(L)
    end.

use(Port, N) ->
    case gen_tcp:connect({127,0,0,1}, Port, [binary, {active, N rem 2 =:= 0}, {recbuf, 4096}], 100) of
        {ok, Socket} ->
            _ = gen_tcp:send(Socket, <<N>>),
            _ = case N rem 3 of
                    0 -> gen_tcp:close(Socket);
                    1 -> gen_tcp:recv(Socket, 0, 50);
                    2 -> gen_tcp:send(Socket, <<0:4000000>>)
                end,
            {ok, U} = gen_udp:open(0, [{ip, {127,0,0,1}}, {active, false}]),
            _ = gen_udp:recv(U, 0, 10),
            use(Port, N);
        _ -> use(Port, N)
    end.
