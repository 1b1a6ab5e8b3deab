%% Packets that are wrong in many ways, sent to sockets of every packet mode. Each line has the hash of what 100 connections
%% gave, which is the same in OTP.
-module(hostile).
-export([main/1]).
main(_) ->
    rand:seed(exsss, {7, 8, 9}),
    {ok, L} = gen_tcp:listen(0, [binary, {ip, {127,0,0,1}}, {active, false}]),
    {ok, P} = inet:port(L),
    [io:format("~b~n", [erlang:phash2([one(L, P) || _ <- lists:seq(1, 100)])]) || _ <- lists:seq(1, 30)],
    ok.

kinds() -> [http,http_bin,httph,httph_bin,http,http_bin,line,1,2,4,asn1,cdr,sunrm,fcgi,tpkt,ssl_tls,raw].
%% What one connection gives: its mode and options by chance, its bytes mutated.
one(L, P) ->
    Kind = pick(kinds()),
    Size = case rand:uniform(4) of 1 -> rand:uniform(60); _ -> 0 end,
    Text = text(Kind),
    {ok, A} = gen_tcp:connect({127,0,0,1}, P, [binary, {active, false}]),
    {ok, B} = gen_tcp:accept(L),
    Buffer = case rand:uniform(3) of 1 -> [{buffer, 16 + rand:uniform(50)}]; _ -> [] end,
    Ahead = case rand:uniform(4) of 1 -> [{read_ahead, false}]; _ -> [] end,
    ok = inet:setopts(B, [{packet, Kind}, {packet_size, Size} | Buffer ++ Ahead]),
    ok = gen_tcp:send(A, Text),
    ok = gen_tcp:shutdown(A, write),
    Got = case rand:uniform(2) of
              1 -> take(B, 60);
              2 -> ok = inet:setopts(B, [{active, true}]), active(B)
          end,
    [gen_tcp:close(S) || S <- [A, B]],
    {Kind, Size, Got}.

take(_, 0) -> [many];
take(S, N) -> case gen_tcp:recv(S, 0, 3000) of {ok, X} -> [named(X,S)|take(S, N-1)]; E -> [E] end.
active(S) -> receive {tcp_closed, S} -> [closed]; M -> [named(M, S)|active(S)] after 3000 -> [timeout] end.
named(S,S) -> s;
named(T,S) when is_tuple(T) -> list_to_tuple([named(X,S)||X<-tuple_to_list(T)]);
named([H|T],S) -> [named(H,S)|named(T,S)];
named(T,_) -> T.
text(K) when K =:= http; K =:= http_bin -> mutate(iolist_to_binary([pick([<<"GET / HTTP/1.1\r\n">>,<<"POST http://a.b:8080/x?y#z HTTP/1.0\r\n">>,<<"HTTP/1.1 200 OK\r\n">>,<<"OPTIONS * HTTP/1.1\r\n">>,<<"CONNECT a:443 HTTP/1.1\r\n">>,<<"get https://[::1]:1/ HTTP/1.1\r\n">>,<<"\r\n">>,<<"GET /\r\n">>]) | headers()]));
text(K) when K =:= httph; K =:= httph_bin -> mutate(iolist_to_binary(headers()));
text(line) -> mutate(<<"one line\nanother\r\nthird line that is long\n\nend">>);
text(N) when is_integer(N) -> mutate(iolist_to_binary([[<<(byte_size(B)):(N*8)>>, B] || B <- [<<"abc">>,<<>>,<<"longer packet">>]]));
text(asn1) -> mutate(<<16#30,3,"abc",16#3f,16#81,1,2,"ab",16#30,16#82,0,4,"abcd">>);
text(cdr) -> mutate(<<"GIOP",1,2,0,7,0,0,0,3,"abc","GIOP",1,2,1,7,3,0,0,0,"abc">>);
text(sunrm) -> mutate(<<16#80,0,0,3,"abc",0,0,0,2,"ab">>);
text(fcgi) -> mutate(<<1,5,0,1,0,3,2,0,"abcpp",1,5,0,1,0,0,0,0>>);
text(tpkt) -> mutate(<<3,0,0,7,"abc",3,0,0,4>>);
text(ssl_tls) -> mutate(<<22,3,1,0,3,"abc",16#80,5,1,3,0,"ab",23,3,3,0,0>>);
text(raw) -> mutate(<<"raw bytes">>).
headers() -> [[pick([<<"Host: x">>,<<"content-LENGTH:  12 ">>,<<"X-A_b: c\r\n d">>,<<"Accept:">>,<<": nothing">>,<<"A-very-long-header-name-that-is-longer-than-fifty-characters: v">>,<<"Bad Header: x">>,<<"Set-Cookie: a=b; c">>,<<"t\xe9l: \xff">>]), pick([<<"\r\n">>,<<"\r\n">>,<<"\n">>])] || _ <- lists:seq(1, rand:uniform(4))] ++ [pick([<<"\r\n">>,<<"\n">>,<<>>])].
pick(L) -> lists:nth(rand:uniform(length(L)), L).
mutate(B) -> case rand:uniform(3) of 1 -> B; _ -> lists:foldl(fun(_,X) -> m(X) end, B, lists:seq(1, rand:uniform(3))) end.
m(<<>>) -> <<>>;
m(B) -> P = rand:uniform(byte_size(B))-1, <<X:P/binary, C, Y/binary>> = B,
  case rand:uniform(5) of 1 -> <<X/binary, (rand:uniform(256)-1), Y/binary>>; 2 -> <<X/binary, Y/binary>>; 3 -> <<X/binary, C, C, Y/binary>>; 4 -> <<X/binary, (pick([$\r,$\n,$ ,$\t,$:,0,255,$/])), C, Y/binary>>; 5 -> X end.
