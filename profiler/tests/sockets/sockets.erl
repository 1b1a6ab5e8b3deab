%% Sockets by `socket`, and by `gen_tcp` and `gen_udp` on it. Prints what each case gives, which an OTP 29 prints too
%% (`sockets.txt`): nothing that is chance.
-module(sockets).
-compile([nowarn_deprecated_catch]).
-export([main/1, echo/0, fails/0, kills/0]).

main(_) ->
    r(tcp, fun() -> tcp(inet, {127,0,0,1}) end),
    r(tcp6, fun tcp6/0),
    r(unix, fun unix/0),
    r(gen_tcp, fun gen_tcp/0),
    r(owner, fun owner/0),
    r(big, fun big/0),
    r(nowait, fun nowait/0),
    r(close_wakes, fun close_wakes/0),
    r(opts, fun opts/0),
    r(udp, fun udp/0),
    r(gen_udp, fun gen_udp/0),
    r(refused, fun refused/0),
    r(registry, fun registry/0),
    r(sendfile, fun sendfile/0),
    r(errors, fun errors/0),
    r(supports, fun supports/0),
    r(monitor, fun monitor/0),
    r(queue, fun queue/0),
    r(msg, fun msg/0),
    r(packet, fun packet/0),
    r(ioctl, fun ioctl/0),
    r(net, fun net/0),
    r(mm, fun mm/0),
    r(fd, fun fd/0),
    ok.

r(N, F) ->
    {P, M} = spawn_monitor(fun() -> X = (catch F()), exit({x, X}) end),
    X = receive {'DOWN', M, _, P, R} -> R after 10000 -> exit(P, kill), timeout end,
    io:format("~p: ~tkp~n", [N, X]).

serve(L) ->
    {ok, S} = socket:accept(L),
    echo(S).
echo(S) ->
    case socket:recv(S, 0) of
        {ok, B} -> ok = socket:send(S, B), echo(S);
        {error, closed} -> socket:close(S)
    end.

tcp(D, A) ->
    {ok, L} = socket:open(D, stream, tcp),
    ok = socket:bind(L, #{family => D, addr => A, port => 0}),
    ok = socket:listen(L),
    {ok, #{port := Port, addr := A}} = socket:sockname(L),
    spawn_link(fun() -> serve(L) end),
    {ok, C} = socket:open(D, stream, default),
    ok = socket:connect(C, #{family => D, addr => A, port => Port}),
    {ok, #{port := Port}} = socket:peername(C),
    Rs = [begin ok = socket:send(C, B), {ok, B} = socket:recv(C, byte_size(B)), byte_size(B) end
          || B <- [<<"x">>, binary:copy(<<"y">>, 100), binary:copy(<<"z">>, 20000)]],
    I = socket:info(C),
    ok = socket:shutdown(C, write),
    E = socket:recv(C, 0),
    Cl = socket:close(C),
    Cl2 = socket:close(C),
    {Rs, maps:with([domain,type,protocol,ctype,num_readers,rstates,wstates], I), E, Cl, Cl2, maps:with([rstates, wstates, owner], (socket:info(C))#{owner := ok})}.

%% Where the machine has no IPv6, IPv4 stands for it.
tcp6() ->
    {ok, S} = socket:open(inet6, stream, tcp),
    {D, A} = case socket:bind(S, #{family => inet6, addr => loopback}) of
                 ok -> {inet6, {0,0,0,0,0,0,0,1}};
                 {error, _} -> {inet, {127,0,0,1}}
             end,
    socket:close(S),
    {Rs, I, E, Cl, Cl2, Z} = tcp(D, A),
    {Rs, I#{domain := D =:= inet orelse inet6 =:= maps:get(domain, I)}, E, Cl, Cl2, Z}.

unix() ->
    Path = "sockets.unix",
    {ok, L} = socket:open(local, stream),
    ok = socket:bind(L, #{family => local, path => Path}),
    ok = socket:listen(L),
    {ok, N} = socket:sockname(L),
    spawn_link(fun() -> serve(L) end),
    {ok, C} = socket:open(local, stream),
    ok = socket:connect(C, #{family => local, path => Path}),
    ok = socket:send(C, [<<"ab">>, "cd"]),
    X = socket:recv(C, 4),
    M = socket:sockname(C),
    file:delete(Path),
    {maps:remove(path, N), X, M}.

gen_tcp() ->
    O = [{inet_backend, socket}],
    {ok, L} = gen_tcp:listen(0, O ++ [binary, {active, false}, {reuseaddr, true}]),
    {ok, Port} = inet:port(L),
    Me = self(),
    spawn_link(fun() -> {ok, S} = gen_tcp:accept(L), Me ! up, {ok, <<"hello">>} = gen_tcp:recv(S, 5), ok = gen_tcp:send(S, <<"world">>), gen_tcp:close(S) end),
    {ok, C} = gen_tcp:connect({127,0,0,1}, Port, O ++ [binary, {active, true}]),
    receive up -> ok end,
    ok = gen_tcp:send(C, <<"hello">>),
    A = receive {tcp, C, B} -> B after 2000 -> none end,
    Z = receive {tcp_closed, C} -> closed after 2000 -> none end,
    {A, Z, inet:getopts(L, [active, nodelay, mode, keepalive])}.

packet() ->
    O = [{inet_backend, socket}],
    {ok, L} = gen_tcp:listen(0, O ++ [binary, {active, false}, {packet, 4}, {ip, {127,0,0,1}}]),
    {ok, Port} = inet:port(L),
    spawn_link(fun() -> {ok, S} = gen_tcp:accept(L), [ok = gen_tcp:send(S, binary:copy(<<I>>, I*1000)) || I <- lists:seq(1, 50)], timer:sleep(500), gen_tcp:close(S) end),
    {ok, C} = gen_tcp:connect({127,0,0,1}, Port, O ++ [binary, {active, once}, {packet, 4}]),
    G = fun G(A) -> receive {tcp, C, B} -> inet:setopts(C, [{active, once}]), G([byte_size(B)|A]); {tcp_closed, C} -> {lists:sum(A), length(A)} after 3000 -> {timeout, A} end end,
    G([]).

owner() ->
    Me = self(),
    {P, M} = spawn_monitor(fun() -> {ok, S} = socket:open(inet, stream, tcp), Me ! {s, S}, receive stop -> ok end end),
    S = receive {s, X} -> X end,
    A = socket:getopt(S, {otp, controlling_process}) =:= {ok, P},
    P ! stop,
    receive {'DOWN', M, _, _, _} -> ok end,
    timer:sleep(50),
    {A, socket:getopt(S, {otp, controlling_process}), maps:get(rstates, socket:info(S))}.

big() ->
    {ok, L} = socket:open(inet, stream, tcp),
    ok = socket:bind(L, #{family => inet, addr => loopback, port => 0}),
    ok = socket:listen(L),
    {ok, A} = socket:sockname(L),
    Me = self(),
    spawn_link(fun() -> {ok, S} = socket:accept(L), {ok, B} = socket:recv(S, 5000000), Me ! {got, erlang:md5(B)}, socket:close(S) end),
    {ok, C} = socket:open(inet, stream, tcp),
    ok = socket:connect(C, A),
    B = crypto_free(5000000),
    ok = socket:send(C, B),
    receive {got, X} -> X =:= erlang:md5(B) end.
crypto_free(N) -> binary:copy(<<"0123456789">>, N div 10).

nowait() ->
    {ok, L} = socket:open(inet, stream, tcp),
    ok = socket:bind(L, #{family => inet, addr => loopback, port => 0}),
    ok = socket:listen(L),
    {ok, A} = socket:sockname(L),
    {select, {select_info, accept, R}} = socket:accept(L, nowait),
    {ok, C} = socket:open(inet, stream, tcp),
    ok = socket:connect(C, A),
    receive {'$socket', L, select, R} -> ok end,
    {ok, S} = socket:accept(L, nowait),
    {select, {select_info, _, R2} = SI} = socket:recv(S, 0, nowait),
    C1 = socket:cancel(S, SI),
    {select, {select_info, _, R3}} = socket:recv(S, 10, nowait),
    ok = socket:send(C, <<"12345">>),
    receive {'$socket', S, select, R3} -> ok end,
    X = socket:recv(S, 10, nowait),
    T = socket:recv(S, 0, 20),
    Z = socket:recv(S, 0, 0),
    {C1, is_reference(R2), element(1, X), T, Z, socket:accept(L, 10)}.

close_wakes() ->
    {ok, L} = socket:open(inet, stream, tcp),
    ok = socket:bind(L, #{family => inet, addr => loopback, port => 0}),
    ok = socket:listen(L),
    Me = self(),
    [spawn(fun() -> Me ! {I, socket:accept(L)} end) || I <- [1,2,3]],
    timer:sleep(50),
    I = maps:with([num_acceptors, rstates], socket:info(L)),
    ok = socket:close(L),
    {I, [receive {I1, X} -> X after 1000 -> none end || I1 <- [1,2,3]]}.

opts() ->
    {ok, S} = socket:open(inet, stream, tcp),
    G = fun(O) -> {O, socket:getopt(S, O)} end,
    St = fun(O, V) -> {O, V, socket:setopt(S, O, V), socket:getopt(S, O)} end,
    [G({socket, X}) || X <- [acceptconn, broadcast, domain, type, protocol, reuseaddr, linger, error, bindtodevice, keepalive, nope]]
    ++ [G({otp, X}) || X <- [debug, iow, rcvbuf, rcvctrlbuf, sndctrlbuf, meta, use_registry, select_read, domain]]
    ++ [G({tcp, X}) || X <- [nodelay, maxseg, user_timeout, info]]
    ++ [G({ip, X}) || X <- [ttl, tos, mtu_discover, multicast_if, recvtos]]
    ++ [St({socket, reuseaddr}, true), St({socket, reuseaddr}, 1), St({socket, linger}, #{onoff => true, linger => 3}), St({socket, linger}, abort),
        St({tcp, nodelay}, true), St({ip, tos}, lowdelay), St({ip, tos}, 16), St({ip, mtu_discover}, dont), St({ip,ttl}, 44), St({tcp, user_timeout}, 3000),
        St({otp, rcvbuf}, 4096), St({otp, rcvbuf}, {3, 1000}), St({otp, rcvbuf}, default), St({otp, meta}, {a, "b"}), St({otp, select_read}, true), St({otp, iow}, 3),
        St({socket, priority}, 5), St({ip, tos}, ef)]
    ++ [socket:getopt_native(S, {socket, 2}, integer), socket:getopt_native(S, {socket, reuseaddr}, boolean), socket:getopt_native(S, {socket, 2}, 4), socket:setopt_native(S, {socket, 9}, <<1:32/native>>), socket:getopt(S, socket, keepalive)].

udp() ->
    {ok, A} = socket:open(inet, dgram, udp),
    {ok, B} = socket:open(inet, dgram, udp),
    ok = socket:bind(A, #{family => inet, addr => loopback, port => 0}),
    ok = socket:bind(B, #{family => inet, addr => loopback}),
    {ok, AA} = socket:sockname(A), {ok, BA} = socket:sockname(B),
    ok = socket:sendto(A, <<"hi">>, BA),
    {ok, {AA, <<"hi">>}} = socket:recvfrom(B, 100),
    ok = socket:connect(A, BA),
    ok = socket:send(A, <<>>),
    X = socket:recv(B, 10),
    ok = socket:send(A, <<"0123456789">>),
    Pk = socket:recv(B, 20, [peek]),
    Y = socket:recv(B, 4),
    ok = socket:setopt(B, {ip, recvtos}, true),
    ok = socket:setopt(B, {ip, recvttl}, true),
    ok = socket:setopt(B, {ip, pktinfo}, true),
    ok = socket:setopt(B, {socket, timestamp}, true),
    ok = socket:sendmsg(A, #{iov => [<<"a">>, <<"bc">>], ctrl => [#{level => ip, type => tos, value => lowdelay}]}),
    {ok, M} = socket:recvmsg(B),
    M1 = M#{ctrl := lists:sort([maps:without([data], case Cm of #{type := timestamp} -> maps:without([data, value], Cm); _ -> Cm end) || Cm <- maps:get(ctrl, M)])},
    Er = socket:recvfrom(A, 0, [], 30),
    {X, Pk, Y, M1#{addr := maps:remove(port, maps:get(addr, M1))}, Er}.

gen_udp() ->
    O = [{inet_backend, socket}],
    {ok, A} = gen_udp:open(0, O ++ [binary, {active, true}, {ip, {127,0,0,1}}]),
    {ok, B} = gen_udp:open(0, O ++ [binary, {active, false}]),
    {ok, P} = inet:port(A),
    {ok, PB} = inet:port(B),
    ok = gen_udp:send(B, {127,0,0,1}, P, "hello"),
    X = receive {udp, A, {127,0,0,1}, PB, D} -> D after 1000 -> none end,
    ok = gen_udp:send(A, {127,0,0,1}, PB, "back"),
    {ok, {_, P, Y}} = gen_udp:recv(B, 0),
    {X, Y}.

refused() ->
    {ok, L} = socket:open(inet, stream, tcp),
    ok = socket:bind(L, #{family => inet, addr => loopback}),
    {ok, A} = socket:sockname(L),
    {ok, C} = socket:open(inet, stream, tcp),
    X = socket:connect(C, A),
    {ok, D} = socket:open(inet, stream, tcp),
    Y = socket:bind(D, A),
    {X, Y, socket:recv(C, 0, 100), socket:send(C, <<"x">>), socket:peername(C), gen_tcp:connect({127,0,0,1}, maps:get(port, A), [{inet_backend, socket}])}.

registry() ->
    N = length(socket:which_sockets()),
    {ok, S} = socket:open(inet, stream, tcp),
    {ok, T} = socket:open(inet, dgram, udp, #{use_registry => false}),
    N1 = length(socket:which_sockets()) - N,
    H = [lists:member(X, socket:which_sockets()) || X <- [S, T]],
    W = length(socket:which_sockets(self())),
    socket:close(S), socket:close(T),
    {N1, H, W, length(socket:which_sockets()) - N, socket:number_of() - N}.

sendfile() ->
    {ok, L} = socket:open(inet, stream, tcp),
    ok = socket:bind(L, #{family => inet, addr => loopback, port => 0}),
    ok = socket:listen(L),
    {ok, A} = socket:sockname(L),
    Me = self(),
    F = "sockets.file",
    ok = file:write_file(F, binary:copy(<<"abcdefgh">>, 200000)),
    spawn_link(fun() -> {ok, S} = socket:accept(L), timer:sleep(100), {ok, B} = socket:recv(S, 1600000), Me ! {got, byte_size(B)}, socket:close(S) end),
    {ok, C} = socket:open(inet, stream, tcp),
    ok = socket:connect(C, A),
    {ok, H} = file:open(F, [raw, read, binary]), X = socket:sendfile(C, H),
    I = maps:get(counters, socket:info(C)),
    file:delete(F),
    {X, receive {got, N} -> N end, maps:get(sendfile_byte, I), maps:get(sendfile_tries, I)}.

errors() ->
    {ok, S} = socket:open(inet, stream, tcp),
    [catch socket:open(inet, nope, tcp), catch socket:open(blah, stream, tcp), catch socket:open(inet, stream, nope), catch socket:open(inet, stream, udp),
     catch socket:bind(S, #{family => inet, addr => {1,2,3}}), catch socket:bind(S, #{family => inet, addr => {300,2,3,4}}),
     catch socket:bind(S, #{family => local, path => "/x"}),      reason(catch socket:listen(S, a)), catch socket:setopt(S, {socket, nope}, 1), catch socket:getopt(S, {socket, rcvtimeo}), catch socket:setopt(S, {socket, type}, 1),
     reason(catch socket:shutdown(S, blah)), catch socket:shutdown(S, read), catch socket:accept(S, 10), catch socket:recv(S, 0, 10), catch socket:recvmsg(S, 0, 0, [], 10),
     catch socket:send(S, <<"x">>, [nope]), element(1, catch socket:cancel(S, {select_info, recv, make_ref()})), element(1, catch socket:cancel(S, {select_info, connect, make_ref()})),
     catch socket:peername(S), catch socket:sockname(S), catch socket:open(999), catch socket:sendto(S, <<"a">>, #{family => inet, addr => {1,2,3}, port => 1})].

reason({'EXIT', {Reason, _}}) -> Reason.

supports() ->
    [lists:sort(socket:supports(msg_flags)), lists:sort(socket:supports(options, socket)), lists:sort(socket:supports(options, ip)), lists:sort(socket:supports(options, ipv6)),
     lists:sort(socket:supports(options, tcp)), lists:sort(socket:supports(options, udp)), lists:sort(socket:supports(ioctl_requests)), lists:sort(socket:supports(ioctl_flags)),
     socket:is_supported(options, socket, reuseaddr), socket:is_supported(local), maps:with([iov_max, use_registry, debug], socket:info())].

monitor() ->
    {ok, S} = socket:open(inet, stream, tcp),
    M = socket:monitor(S),
    socket:close(S),
    receive {'DOWN', M, socket, _, I} -> {down, I} after 1000 -> none end.

queue() ->
    {ok, L} = socket:open(inet, stream, tcp),
    ok = socket:bind(L, #{family => inet, addr => loopback, port => 0}),
    ok = socket:listen(L),
    {ok, A} = socket:sockname(L),
    {ok, C} = socket:open(inet, stream, tcp),
    ok = socket:connect(C, A),
    {ok, S} = socket:accept(L),
    Me = self(),
    Ps = [begin P = spawn(fun() -> Me ! {I, socket:recv(S, 3)} end), timer:sleep(20), P end || I <- [1,2,3,4]],
    exit(lists:nth(2, Ps), kill),
    timer:sleep(20),
    N = maps:get(num_readers, socket:info(S)),
    ok = socket:send(C, <<"aaabbbccc">>),
    {N, [receive {I, X} -> {I, X} after 500 -> none end || I <- [1,3,4]]}.

msg() ->
    {ok, A} = socket:open(local, dgram),
    {ok, B} = socket:open(local, dgram),
    ok = socket:bind(A, #{family => local, path => <<0, "so_a">>}),
    ok = socket:bind(B, #{family => local, path => <<0, "so_b">>}),
    {ok, AN} = socket:sockname(A),
    X = socket:sendmsg(A, #{addr => #{family => local, path => <<0, "so_b">>}, iov => [<<"x">>, <<>>, <<"yz">>]}),
    Y = socket:recvmsg(B),
    Z = [socket:sendmsg(A, #{addr => #{family => local, path => <<0, "so_b">>}, iov => [x]}),
         socket:sendmsg(A, #{addr => #{family => local, path => <<0, "so_b">>}, iov => [<<1>>], ctrl => [#{level => ip, type => nope, value => 1}]}),
         socket:sendmsg(A, #{iov => [<<1>>]}),
         socket:sendv(A, [<<1>>])],
    {AN, X, Y, Z}.

ioctl() ->
    {ok, S} = socket:open(inet, dgram, udp),
    {ok, L} = socket:ioctl(S, gifconf),
    [lists:keymember("lo", 1, [{N, x} || #{name := N} <- L]), hd([X || #{name := "lo"} = X <- L]),
     socket:ioctl(S, gifindex, "lo"), socket:ioctl(S, gifname, 1), socket:ioctl(S, gifflags, "lo"), socket:ioctl(S, gifaddr, "lo"), socket:ioctl(S, gifmtu, "lo"),
     socket:ioctl(S, giftxqlen, "lo"), socket:ioctl(S, gifnetmask, "lo"), socket:ioctl(S, gifindex, "nope"), socket:ioctl(S, nread),
     socket:ioctl(S, gifbrdaddr, "lo"), socket:ioctl(S, gifdstaddr, "lo"), socket:ioctl(S, gifmap, "lo"), socket:ioctl(S, atmark)].

net() ->
    {ok, All} = net:getifaddrs(),
    {ok, Names} = net:if_names(),
    {ok, Name} = net:gethostname(),
    [io_lib:latin1_char_list(Name), [A || #{name := "lo", addr := #{family := inet}} = A <- All], lists:keymember("lo", 2, Names),
     net:getaddrinfo("127.0.0.1"), net:getaddrinfo("127.0.0.1", "80"), net:getaddrinfo(undefined, "nosuchservice"),
     net:getnameinfo(#{family => inet, addr => loopback, port => 9}, [numerichost, numericserv]),
     reason(catch net:getnameinfo(#{family => inet, addr => loopback, port => 9}, [nope])),
     net:if_name2index("lo"), net:if_name2index("nope"), prim_net:if_name2index(["lo"]), net:if_index2name(1), net:if_index2name(999999),
     net:getservbyname("nope", tcp), net:info()].

mm() ->
    {ok, A} = socket:open(inet, dgram, udp),
    {ok, B} = socket:open(inet, dgram, udp),
    ok = socket:bind(A, #{family => inet, addr => loopback, port => 0}),
    ok = socket:bind(B, #{family => inet, addr => loopback}),
    {ok, BA} = socket:sockname(B),
    X = prim_socket:sendmmsg(element(2, A), [#{addr => BA, iov => [<<I>>, <<"x">>]} || I <- lists:seq(1, 5)], [], make_ref()),
    {ok, Ms} = prim_socket:recvmmsg(element(2, B), 10, 0, 0, [], make_ref()),
    {X, [maps:get(iov, M) || M <- Ms]}.

fd() ->
    {ok, A} = socket:open(inet, stream, tcp),
    {ok, Fd} = socket:getopt(A, {otp, fd}),
    {ok, B} = socket:open(Fd),
    {ok, C} = socket:open(Fd, #{dup => false}),
    R = {element(1, maps:get(ctype, socket:info(B))), maps:get(ctype, socket:info(C)), maps:with([domain, type, protocol], socket:info(B))},
    socket:close(C), socket:close(B),
    {R, socket:setopt(A, {socket, reuseaddr}, true), socket:close(A)}.

%% A client and a server in one program, for a recording.
echo() ->
    {ok, L} = socket:open(inet, stream, tcp),
    ok = socket:bind(L, #{family => inet, addr => loopback, port => 0}),
    ok = socket:listen(L),
    {ok, #{port := Port} = A} = socket:sockname(L),
    spawn_link(fun() -> serve(L) end),
    {ok, C} = socket:open(inet, stream, tcp),
    ok = socket:connect(C, A),
    [begin B = integer_to_binary(N), ok = socket:send(C, B), {ok, B} = socket:recv(C, byte_size(B)) end || N <- lists:seq(1, 20)],
    ok = socket:close(C),
    io:format("port ~p~n", [Port]).

%% For an exploration.
fails() ->
    {error, enotsup} = socket:open(inet, stream, tcp),
    ok.

%% Kills processes in the middle of what they do with sockets. Prints the descriptors that are left over, and the sockets.
kills() ->
    {ok, L} = socket:open(inet, stream, tcp),
    ok = socket:bind(L, #{family => inet, addr => loopback, port => 0}),
    ok = socket:listen(L, 1000),
    {ok, A} = socket:sockname(L),
    [spawn_link(fun() -> accepts(L) end) || _ <- lists:seq(1, 4)],
    Before = descriptors(),
    rand:seed(exsss, {1, 2, 3}),
    [begin
         Pids = [spawn(fun() -> works(A) end) || _ <- lists:seq(1, 50)],
         [begin [erlang:yield() || _ <- lists:seq(1, rand:uniform(20))], exit(Pid, kill) end || Pid <- Pids]
     end || _ <- lists:seq(1, 20)],
    io:format("~p~n", [settled(Before, 500)]).

settled(Before, Left) ->
    #{counters := #{num_sockets := N}} = socket:info(),
    case {descriptors() - Before, N, socket:number_of()} of
        {0, 1, 1} = Settled -> Settled;
        Not when Left =:= 0 -> Not;
        _ -> timer:sleep(20), settled(Before, Left - 1)
    end.

descriptors() ->
    {ok, All} = file:list_dir("/proc/self/fd"),
    length(All).

accepts(L) ->
    {ok, S} = socket:accept(L),
    P = spawn(fun() -> receive go -> answers(S) end end),
    ok = socket:setopt(S, {otp, controlling_process}, P),
    P ! go,
    accepts(L).

answers(S) ->
    maybe
        {ok, B} ?= socket:recv(S, 0),
        ok ?= socket:send(S, B),
        answers(S)
    else
        _ -> socket:close(S)
    end.

works(A) ->
    {ok, C} = socket:open(inet, stream, tcp),
    case rand:uniform(2) of
        1 -> socket:connect(C, A);
        2 -> socket:connect(C, A, nowait)
    end,
    spawn_link(fun() -> socket:recv(C, 100) end),
    [begin socket:send(C, binary:copy(<<"x">>, 100000)), socket:recv(C, 1000) end || _ <- lists:seq(1, 20)],
    socket:close(C).
