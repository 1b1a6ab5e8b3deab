%% Programs with as many orders as one can count.
-module(orders).
-export([one/0, three/0, five/0, seven/0, first/0, timeout/0, twenty/0, pairs/0]).

%% 1! ... 7! orders.
one() -> senders(1, 1).
three() -> senders(3, 3).
five() -> senders(5, 5).
seven() -> senders(7, 7).

%% 4 orders: what comes first is taken, the others never.
first() -> senders(4, 1).

%% 20 messages, and one order.
twenty() ->
    Me = self(),
    spawn(fun() -> [Me ! {self(), N} || N <- lists:seq(1, 20)] end),
    take(20).

%% 2 orders: the message comes in time or not.
timeout() ->
    Me = self(),
    spawn(fun() -> Me ! hello end),
    receive
        hello -> in_time
    after 1000 -> late
    end.

%% 2 * 2 orders: two pairs that have nothing to do with each other.
pairs() ->
    Me = self(),
    Pair = fun() ->
        Own = self(),
        spawn(fun() -> Own ! a end),
        spawn(fun() -> Own ! b end),
        X = take(2),
        Me ! {Own, X}
    end,
    [receive {Pid, _} -> ok end || Pid <- [spawn(Pair), spawn(Pair)]],
    ok.

senders(N, Taken) ->
    Me = self(),
    [spawn(fun() -> Me ! I end) || I <- lists:seq(1, N)],
    take(Taken).

take(0) -> [];
take(N) ->
    receive
        Message -> [Message | take(N - 1)]
    end.
