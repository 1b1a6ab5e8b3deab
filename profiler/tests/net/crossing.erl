%% What crosses sockets, with what the program itself counts of it.
-module(crossing).
-export([main/1]).

main(_) ->
    [echo(Backend) || Backend <- [inet, socket]],
    datagrams(),
    refused().

echo(Backend) ->
    Options = [{inet_backend, Backend}, binary, {active, false}, {ip, {127, 0, 0, 1}}],
    {ok, Listen} = gen_tcp:listen(0, Options),
    {ok, Port} = inet:port(Listen),
    Self = self(),
    Server = spawn_link(fun() -> serve(Listen, Self) end),
    {ok, Socket} = gen_tcp:connect({127, 0, 0, 1}, Port, [{inet_backend, Backend}, binary, {active, false}]),
    Data = binary:copy(<<"x">>, 1000),
    [begin
         ok = gen_tcp:send(Socket, Data),
         {ok, Data} = gen_tcp:recv(Socket, 1000)
     end || _ <- lists:seq(1, 10)],
    told(client, Port, Socket),
    Server ! tell,
    receive {Server, told} -> ok end,
    gen_tcp:close(Socket),
    receive {Server, closed} -> ok end,
    gen_tcp:close(Listen).

serve(Listen, Client) ->
    {ok, Socket} = gen_tcp:accept(Listen),
    [begin
         {ok, Data} = gen_tcp:recv(Socket, 1000),
         %% The client is to wait once, however busy the machine is.
         N =:= 10 andalso timer:sleep(20),
         ok = gen_tcp:send(Socket, Data)
     end || N <- lists:seq(1, 10)],
    {ok, {_, Port}} = inet:sockname(Socket),
    receive tell -> told(server, Port, Socket) end,
    Client ! {self(), told},
    {error, closed} = gen_tcp:recv(Socket, 0),
    gen_tcp:close(Socket),
    Client ! {self(), closed}.

told(Who, Port, Socket) ->
    {ok, [{recv_oct, In}, {send_oct, Out}]} = inet:getstat(Socket, [recv_oct, send_oct]),
    io:format("~s ~w ~w ~w~n", [Who, Port, In, Out]).

datagrams() ->
    {ok, Socket} = gen_udp:open(0, [binary, {active, true}, {ip, {127, 0, 0, 1}}]),
    {ok, Port} = inet:port(Socket),
    [begin
         ok = gen_udp:send(Socket, {127, 0, 0, 1}, Port, <<"datagram">>),
         receive {udp, Socket, _, Port, <<"datagram">>} -> ok end
     end || _ <- lists:seq(1, 5)],
    told(datagrams, Port, Socket).

refused() ->
    {ok, Listen} = gen_tcp:listen(0, [{ip, {127, 0, 0, 1}}]),
    {ok, Port} = inet:port(Listen),
    gen_tcp:close(Listen),
    {error, econnrefused} = gen_tcp:connect({127, 0, 0, 1}, Port, []),
    io:format("refused ~w 0 0~n", [Port]).
