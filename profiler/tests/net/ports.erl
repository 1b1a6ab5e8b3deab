%% Sockets of `gen_tcp` and `gen_udp` that are ports. Prints what is chance, such as numbers of ports: a replay prints the same.
-module(ports).
-compile([nowarn_deprecated_catch]).
-export([case_of/1, main/0, serves/1, web/0]).

main() ->
    Cases = [passive, active, once, packets, large, datagrams, refused, peer_closes, killed_owner, pool, monitored, linked,
             given_away, times_out, names, port_term],
    [case_of(Name) || Name <- Cases],
    ok.

case_of(Name) ->
    {Pid, Monitor} = spawn_monitor(fun() -> exit({is, catch run(Name)}) end),
    receive {'DOWN', Monitor, _, Pid, Reason} -> io:format("~p: ~p~n", [Name, Reason]) end.

listen(Options) ->
    {ok, L} = gen_tcp:listen(0, [binary, {ip, {127, 0, 0, 1}}, {reuseaddr, true} | Options]),
    {ok, Number} = inet:port(L),
    {L, Number}.

connect(Number, Options) ->
    {ok, S} = gen_tcp:connect({127, 0, 0, 1}, Number, [binary | Options]),
    S.

%% Echoes what comes, until the peer closes.
echo(S) ->
    case gen_tcp:recv(S, 0) of
        {ok, Data} -> ok = gen_tcp:send(S, Data), echo(S);
        {error, closed} -> gen_tcp:close(S)
    end.

serve(L) -> spawn_link(fun() -> {ok, S} = gen_tcp:accept(L), echo(S) end).

run(passive) ->
    {L, Number} = listen([{active, false}]),
    serve(L),
    C = connect(Number, [{active, false}]),
    Sizes = [1, 63, 64, 65, 1000, 20000],
    Same = [begin
                Data = binary:copy(<<"x">>, Size),
                ok = gen_tcp:send(C, Data),
                gen_tcp:recv(C, Size) =:= {ok, Data}
            end || Size <- Sizes],
    {ok, Statistics} = inet:getstat(C, [recv_oct, send_oct]),
    {Same, Number, inet:sockname(C), inet:peername(C), inet:getopts(C, [active, nodelay]), lists:sort(Statistics),
     gen_tcp:close(C), gen_tcp:send(C, "x"), gen_tcp:recv(C, 0)};
run(active) ->
    {L, Number} = listen([{active, false}]),
    serve(L),
    C = connect(Number, [{active, true}]),
    ok = gen_tcp:send(C, "one"),
    One = receive {tcp, C, Data} -> Data end,
    ok = gen_tcp:shutdown(C, write),
    Closed = receive {tcp_closed, C} -> closed end,
    {One, Closed, gen_tcp:send(C, "x"), erlang:port_info(C), catch erlang:port_get_data(C), gen_tcp:close(C)};
run(once) ->
    {L, Number} = listen([{active, false}, {packet, line}]),
    spawn_link(fun() ->
                   {ok, S} = gen_tcp:accept(L),
                   ok = gen_tcp:send(S, [[integer_to_list(N), $\n] || N <- lists:seq(1, 20)]),
                   gen_tcp:close(S)
               end),
    C = connect(Number, [{active, once}, {packet, line}]),
    lines(C, 0);
run(packets) ->
    {L, Number} = listen([{active, false}, {packet, 4}]),
    spawn_link(fun() -> {ok, S} = gen_tcp:accept(L), echo(S) end),
    C = connect(Number, [{active, 3}, {packet, 4}]),
    [ok = gen_tcp:send(C, term_to_binary({N, make_ref()})) || N <- [1, 2, 3]],
    Got = [receive {tcp, C, Data} -> binary_to_term(Data) end || _ <- [1, 2, 3]],
    {Got, receive {tcp_passive, C} -> passive end};
run(large) ->
    {L, Number} = listen([{active, false}]),
    Me = self(),
    spawn_link(fun() -> {ok, S} = gen_tcp:accept(L), Me ! {all, all(S, 0)} end),
    C = connect(Number, [{active, false}, {sndbuf, 4096}, {high_watermark, 8192}, {low_watermark, 4096}]),
    [ok = gen_tcp:send(C, binary:copy(<<N>>, 100000)) || N <- lists:seq(1, 20)],
    gen_tcp:close(C),
    receive {all, Bytes} -> Bytes end;
run(datagrams) ->
    {ok, A} = gen_udp:open(0, [binary, {ip, {127, 0, 0, 1}}, {active, true}]),
    {ok, B} = gen_udp:open(0, [binary, {ip, {127, 0, 0, 1}}, {active, false}]),
    {ok, ToA} = inet:port(A),
    {ok, ToB} = inet:port(B),
    ok = gen_udp:send(A, {127, 0, 0, 1}, ToB, <<"to b">>),
    {ok, {_, ToA, <<"to b">>}} = gen_udp:recv(B, 0),
    ok = gen_udp:send(B, {127, 0, 0, 1}, ToA, binary:copy(<<"b">>, 1000)),
    Got = receive {udp, A, _, ToB, Data} -> byte_size(Data) end,
    {ToA, ToB, Got, gen_udp:recv(B, 0, 10), gen_udp:close(A), gen_udp:close(B), gen_udp:send(A, {127, 0, 0, 1}, ToB, "x")};
run(refused) ->
    {L, Number} = listen([]),
    gen_tcp:close(L),
    gen_tcp:connect({127, 0, 0, 1}, Number, []);
run(peer_closes) ->
    {L, Number} = listen([{active, false}]),
    spawn_link(fun() -> {ok, S} = gen_tcp:accept(L), inet:setopts(S, [{linger, {true, 0}}]), gen_tcp:close(S) end),
    C = connect(Number, [{active, false}, {show_econnreset, true}]),
    {gen_tcp:recv(C, 0), gen_tcp:send(C, "x")};
run(killed_owner) ->
    {L, Number} = listen([{active, false}]),
    Owner = spawn(fun() -> {ok, S} = gen_tcp:accept(L), ok = gen_tcp:send(S, "hello"), receive stop -> ok end end),
    C = connect(Number, [{active, false}]),
    {ok, Hello} = gen_tcp:recv(C, 5),
    exit(Owner, kill),
    {Hello, gen_tcp:recv(C, 0)};
run(pool) ->
    {L, Number} = listen([{active, false}, {backlog, 100}]),
    Me = self(),
    Accepters = [spawn_link(fun() -> accepts(L, Me) end) || _ <- lists:seq(1, 4)],
    Clients = [spawn_link(fun() ->
                              C = connect(Number, [{active, false}]),
                              ok = gen_tcp:send(C, <<N:32>>),
                              {ok, <<M:32>>} = gen_tcp:recv(C, 4),
                              gen_tcp:close(C),
                              Me ! {self(), M}
                          end) || N <- lists:seq(1, 20)],
    Got = [receive {Client, M} -> M end || Client <- Clients],
    Told = [receive {accepted, Accepter, S, N} -> {index(Accepter, Accepters), S, N} end || _ <- Clients],
    [unlink(A) || A <- Accepters],
    gen_tcp:close(L),
    {Got, Told, [ends(A) || A <- Accepters]};
run(monitored) ->
    process_flag(trap_exit, true),
    {L, Number} = listen([{active, false}]),
    spawn(fun() -> {ok, S} = gen_tcp:accept(L), gen_tcp:close(S) end),
    C = connect(Number, [{active, true}]),
    M1 = monitor(port, C),
    M2 = inet:monitor(C),
    closed = receive {tcp_closed, C} -> closed end,
    Down1 = receive {'DOWN', M1, port, C, R1} -> R1 end,
    Down2 = receive {'DOWN', M2, _, _, R2} -> R2 end,
    M3 = monitor(port, C),
    Down3 = receive {'DOWN', M3, port, C, R3} -> R3 end,
    link(L),
    exit(L, over),
    Exit = receive {'EXIT', L, R4} -> R4 end,
    {Down1, Down2, Down3, Exit, catch link(C), receive {'EXIT', C, R5} -> R5 after 50 -> none end};
run(linked) ->
    process_flag(trap_exit, true),
    {L, _} = listen([{active, false}]),
    Me = self(),
    Linked = spawn_link(fun() -> link(L), Me ! {linked, self()}, receive never -> ok end end),
    Traps = spawn_link(fun() ->
                           process_flag(trap_exit, true),
                           link(L),
                           Me ! {linked, self()},
                           receive {'EXIT', L, R} -> exit({got, R}) end
                       end),
    [receive {linked, Who} -> ok end || Who <- [Linked, Traps]],
    exit(L, enough),
    [receive {'EXIT', Who, Reason} -> Reason end || Who <- [L, Linked, Traps]];
run(given_away) ->
    {L, Number} = listen([{active, false}]),
    C = connect(Number, [{active, true}]),
    {ok, S} = gen_tcp:accept(L),
    Me = self(),
    Owner = spawn(fun() -> receive {socket, T} -> receive {tcp, T, Data} -> Me ! {got, Data} end end end),
    ok = gen_tcp:controlling_process(C, Owner),
    Owner ! {socket, C},
    ok = gen_tcp:send(S, "for the owner"),
    Got = receive {got, Data} -> Data end,
    {Got, gen_tcp:recv(S, 0), gen_tcp:controlling_process(S, Owner), gen_tcp:controlling_process(C, Me)};
run(times_out) ->
    {L, Number} = listen([{active, false}]),
    T1 = gen_tcp:accept(L, 20),
    C = connect(Number, [{active, false}]),
    T2 = gen_tcp:recv(C, 0, 20),
    {T1, T2};
run(names) ->
    {ok, Host} = inet:gethostname(),
    {Host, inet:getaddr("localhost", inet), inet:gethostbyname("no.such.host.invalid")};
run(port_term) ->
    {L, _} = listen([]),
    {L, erlang:port_info(L), lists:member(L, erlang:ports()), erlang:port_info(L, links)}.

lines(C, N) ->
    receive
        {tcp, C, _} -> inet:setopts(C, [{active, once}]), lines(C, N + 1);
        {tcp_closed, C} -> N
    end.

all(S, Bytes) ->
    case gen_tcp:recv(S, 0) of
        {ok, Data} -> all(S, Bytes + byte_size(Data));
        {error, closed} -> Bytes
    end.

accepts(L, Me) ->
    case gen_tcp:accept(L) of
        {ok, S} ->
            {ok, <<N:32>> = Data} = gen_tcp:recv(S, 4),
            ok = gen_tcp:send(S, Data),
            {error, closed} = gen_tcp:recv(S, 0),
            gen_tcp:close(S),
            Me ! {accepted, self(), S, N},
            accepts(L, Me);
        {error, closed} -> exit(done)
    end.

index(Accepter, Accepters) ->
    length(lists:takewhile(fun(A) -> A =/= Accepter end, Accepters)).

ends(Pid) ->
    M = monitor(process, Pid),
    receive {'DOWN', M, _, _, Reason} -> Reason end.

%% Tells who listens at this number where the server is, and answers one client.
serves(Number) ->
    {L, Mine} = listen([{active, false}]),
    C = connect(Number, []),
    ok = gen_tcp:send(C, integer_to_list(Mine)),
    ok = gen_tcp:close(C),
    {ok, S} = gen_tcp:accept(L),
    {ok, Question} = gen_tcp:recv(S, 8),
    ok = gen_tcp:send(S, ["answer to ", Question]),
    ok = gen_tcp:close(S),
    io:format("~p~n", [Question]).

web() ->
    {ok, _} = application:ensure_all_started(inets),
    ok = file:write_file("index.txt", "hello\n"),
    {ok, Server} = inets:start(httpd, [{port, 0}, {server_name, "web"}, {server_root, "."}, {document_root, "."},
                                       {bind_address, {127, 0, 0, 1}}]),
    [{port, Number}] = httpd:info(Server, [port]),
    Page = fun(Name) -> "http://127.0.0.1:" ++ integer_to_list(Number) ++ "/" ++ Name end,
    [io:format("~p~n", [httpc:request(get, {Page(Name), []}, [], [])]) || Name <- ["index.txt", "index.txt", "none"]],
    io:format("~p~n", [inets:stop(httpd, Server)]).
