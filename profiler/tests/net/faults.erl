%% What goes wrong around sockets, on both backends: peers that reset a connection in each of its states, descriptors that
%% run out below an accept loop, and peers whose packet never ends. Each line is the same in OTP.
-module(faults).
-export([main/1]).

main(_) ->
    process_flag(trap_exit, true),
    [reset(Backend, Show, State) || Backend <- [inet, socket], Show <- [false, true], State <- states()],
    [endless(Mode, Packet) || Mode <- [passive, active], Packet <- packets()],
    [no_descriptors(Backend) || Backend <- [inet, socket]],
    ok.

backend(inet) -> [];
backend(socket) -> [{inet_backend, socket}].

show(Term) -> io:format("~0p~n", [Term]).

%% Resets

states() ->
    [recv_waits, recv_after, active, active_once, data_passive, data_active, send_after, send_waits, before_accept,
     after_shutdown, after_peers_shutdown, unread, active_again, half_a_packet, options].

reset(Backend, Show, State) ->
    show({Backend, Show, State, state(State, backend(Backend) ++ [binary, {active, false}], Show)}).

state(recv_waits, O, Show) ->
    {C, S} = pair(O, Show, []),
    Waits = receiver(C),
    cut(S),
    [answer(Waits), gen_tcp:recv(C, 0, 1000), gen_tcp:send(C, <<"x">>), gen_tcp:close(C)];
state(recv_after, O, Show) ->
    {C, S} = pair(O, Show, []),
    cut(S),
    [gen_tcp:recv(C, 0, 1000), gen_tcp:recv(C, 0, 1000), inet:peername(C), gen_tcp:close(C)];
state(active, O, Show) ->
    {C, S} = pair(O, Show, []),
    ok = inet:setopts(C, [{active, true}]),
    cut(S),
    [told(), inet:getopts(C, [active]), gen_tcp:send(C, <<"x">>)];
state(active_once, O, Show) ->
    {C, S} = pair(O, Show, [{exit_on_close, false}]),
    ok = inet:setopts(C, [{active, once}]),
    cut(S),
    [told(), inet:getopts(C, [active]), gen_tcp:send(C, <<"x">>), gen_tcp:send(C, <<"x">>)];
state(data_passive, O, Show) ->
    {C, S} = pair(O, Show, []),
    ok = gen_tcp:send(S, <<"hello">>),
    cut(S),
    [gen_tcp:recv(C, 0, 1000), gen_tcp:recv(C, 0, 1000)];
state(data_active, O, Show) ->
    {C, S} = pair(O, Show, []),
    ok = gen_tcp:send(S, <<"hello">>),
    cut(S),
    ok = inet:setopts(C, [{active, true}]),
    told();
state(send_after, O, Show) ->
    {C, S} = pair(O, Show, []),
    cut(S),
    [gen_tcp:send(C, <<"x">>), gen_tcp:send(C, <<"x">>), gen_tcp:recv(C, 0, 1000)];
state(send_waits, O, Show) ->
    {C, S} = pair(O, Show, [{sndbuf, 4096}]),
    Self = self(),
    Sender = spawn(fun() -> Self ! {self(), fill(C)} end),
    timer:sleep(100),
    cut(S),
    [answer(Sender), gen_tcp:send(C, <<"x">>), gen_tcp:recv(C, 0, 1000)];
state(before_accept, O, Show) ->
    {ok, L} = gen_tcp:listen(0, O ++ [{ip, {127, 0, 0, 1}}, {show_econnreset, Show}]),
    {ok, Port} = inet:port(L),
    {ok, C} = gen_tcp:connect({127, 0, 0, 1}, Port, O),
    cut(C),
    {ok, S} = gen_tcp:accept(L, 1000),
    gen_tcp:close(L),
    [gen_tcp:recv(S, 0, 1000), gen_tcp:send(S, <<"x">>), inet:peername(S)];
state(after_shutdown, O, Show) ->
    {C, S} = pair(O, Show, []),
    ok = gen_tcp:shutdown(C, write),
    cut(S),
    [gen_tcp:send(C, <<"x">>), gen_tcp:recv(C, 0, 1000), gen_tcp:shutdown(C, read)];
state(after_peers_shutdown, O, Show) ->
    {C, S} = pair(O, Show, [{exit_on_close, false}]),
    ok = inet:setopts(C, [{active, true}]),
    ok = gen_tcp:shutdown(S, write),
    First = told(),
    cut(S),
    [First, gen_tcp:send(C, <<"x">>), gen_tcp:send(C, <<"x">>), told()];
state(unread, O, Show) ->
    {C, S} = pair(O, Show, []),
    ok = inet:setopts(C, [{active, true}]),
    ok = gen_tcp:send(C, <<"unread">>),
    timer:sleep(20),
    gen_tcp:close(S),
    told();
state(active_again, O, Show) ->
    {C, S} = pair(O, Show, [{exit_on_close, false}]),
    ok = inet:setopts(C, [{active, true}]),
    cut(S),
    [told(), inet:getopts(C, [active]), inet:setopts(C, [{active, true}]), told(), gen_tcp:recv(C, 0, 100)];
state(half_a_packet, O, Show) ->
    {C, S} = pair(O, Show, []),
    ok = inet:setopts(C, [{packet, 4}]),
    ok = gen_tcp:send(S, <<100:32, "half">>),
    Waits = receiver(C),
    cut(S),
    [answer(Waits), gen_tcp:recv(C, 0, 1000)];
state(options, O, Show) ->
    {C, S} = pair(O, Show, []),
    cut(S),
    [inet:setopts(C, [{nodelay, true}]), inet:getopts(C, [nodelay, keepalive]), inet:peername(C)].

pair(O, Show, Options) ->
    {ok, L} = gen_tcp:listen(0, O ++ [{ip, {127, 0, 0, 1}}]),
    {ok, Port} = inet:port(L),
    {ok, C} = gen_tcp:connect({127, 0, 0, 1}, Port, O ++ [{show_econnreset, Show} | Options]),
    {ok, S} = gen_tcp:accept(L),
    gen_tcp:close(L),
    {C, S}.

%% Closes a connection by a reset.
cut(S) ->
    ok = inet:setopts(S, [{linger, {true, 0}}]),
    gen_tcp:close(S),
    timer:sleep(20).

receiver(C) ->
    Self = self(),
    Pid = spawn(fun() -> Self ! {self(), gen_tcp:recv(C, 0, 3000)} end),
    timer:sleep(50),
    Pid.

answer(Pid) -> receive {Pid, Answer} -> Answer after 5000 -> nothing end.

fill(C) ->
    case gen_tcp:send(C, <<0:800000>>) of
        ok -> fill(C);
        Error -> Error
    end.

%% What this process is told of its socket.
told() -> receive Message -> [without_socket(Message) | told()] after 60 -> [] end.

without_socket({Tag, _}) -> Tag;
without_socket({Tag, _, What}) -> {Tag, What}.

%% Packets without end

packets() ->
    [{line, <<>>, []}, {line, <<>>, [{packet_size, 1000}]}, {line, <<>>, [{buffer, 100}]}, {http, <<"GET /">>, []},
     {http, <<>>, []}, {http_bin, <<"GET / HTTP/1.1\r\nA: ">>, []}, {httph, <<"A: ">>, []}, {httph_bin, <<"A: ">>, []},
     {4, <<16#ffffffff:32>>, []}, {4, <<16#7fffffff:32>>, [{packet_size, 10000}]}, {2, <<65535:16>>, []},
     {asn1, <<16#30, 16#84, 16#ffffffff:32>>, []}, {asn1, <<16#30, 16#88>>, []}, {cdr, <<"GIOP", 1, 0, 1, 0, 16#ffffffff:32>>, []},
     {cdr, <<"none">>, []}, {sunrm, <<16#ffffffff:32>>, []}, {fcgi, <<9>>, []}, {tpkt, <<4>>, []}, {tpkt, <<3, 0, 2:16>>, []}].

endless(Mode, {Packet, Head, Options}) ->
    {C, S} = pair([binary, {active, false}], false, [{packet, Packet} | Options]),
    Sender = spawn_link(fun() -> receive go -> gen_tcp:send(S, Head), fill(S) end end),
    ok = gen_tcp:controlling_process(S, Sender),
    Sender ! go,
    Got = case Mode of
              passive -> passive(C, 20);
              active -> ok = inet:setopts(C, [{active, once}]), active(C, 20)
          end,
    gen_tcp:close(C),
    receive {'EXIT', Sender, _} -> ok end,
    receive {'EXIT', C, _} -> ok after 0 -> ok end,
    show({Mode, Packet, byte_size(Head), Options, Got}).

passive(_, 0) -> [more];
passive(C, N) ->
    case gen_tcp:recv(C, 0, 5000) of
        {ok, Data} -> [size(Data, N) | passive(C, N - 1)];
        Error -> [Error]
    end.

active(_, 0) -> [more];
active(C, N) ->
    receive
        {tcp_closed, C} -> [closed];
        {tcp_error, C, Reason} -> [{error, Reason} | active(C, N - 1)];
        {_, C, Data} -> inet:setopts(C, [{active, once}]), [size(Data, N) | active(C, N - 1)]
    after 5000 -> [timeout]
    end.

%% Where a line is longer than its buffer, the pieces after the first depend on when it came.
size(Data, 20) when is_binary(Data) -> byte_size(Data);
size(Data, _) when is_binary(Data) -> piece;
size({http_error, _}, _) -> http_error;
size(Data, _) -> Data.

%% No descriptors

%% An accept loop that meets the limit goes on when there are descriptors again.
no_descriptors(Backend) ->
    O = backend(Backend) ++ [binary, {active, false}],
    {ok, L} = gen_tcp:listen(0, O ++ [{ip, {127, 0, 0, 1}}, {backlog, 50}]),
    {ok, Port} = inet:port(L),
    %% No code can be loaded where no file can be opened.
    {ok, Udp} = gen_udp:open(0),
    ok = gen_udp:close(Udp),
    {module, _} = code:ensure_loaded(io_lib_pretty),
    Before = open_files(),
    Clients = [begin {ok, C} = gen_tcp:connect({127, 0, 0, 1}, Port, O), C end || _ <- lists:seq(1, 10)],
    "" = os:cmd("prlimit --pid " ++ os:getpid() ++ " --nofile=" ++ integer_to_list(Before + 50) ++ ":"),
    Files = files(),
    show({Backend, gen_tcp:accept(L, 1000), gen_tcp:accept(L, 1000), gen_tcp:listen(0, O), gen_udp:open(0),
          file:open("/dev/null", [raw, read])}),
    [ok = file:close(File) || File <- Files],
    Accepted = [begin {ok, S} = gen_tcp:accept(L, 1000), S end || _ <- Clients],
    show([gen_tcp:send(S, <<"x">>) || S <- Accepted]),
    show([gen_tcp:recv(C, 1, 1000) || C <- Clients]),
    [gen_tcp:close(S) || S <- [L | Accepted ++ Clients]].

open_files() ->
    {ok, Names} = file:list_dir("/proc/self/fd"),
    length(Names).

files() ->
    case file:open("/dev/null", [raw, read]) of
        {ok, File} -> [File | files()];
        {error, emfile} -> []
    end.
