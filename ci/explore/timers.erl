%% Programs with timers that send messages: when these go off, and whether they are cancelled in time, is turned around. Each
%% comment says how many orders there are.
-module(timers).
-export([first/0, cancelled/0, cancelled_late/0, two/0, by_another/0, read/0, for_nobody/0, ticks/0, timed/0, statem/0, by_name/0,
         by_names/0, has_passed/0, has_passed_in_receive/0, later/0]).
-export([init/1, callback_mode/0, handle_event/4]).

%% It goes off before the message of the other one, or later: 2.
first() ->
    erlang:send_after(1000, self(), late),
    sends_early(),
    receive early -> ok; late -> ok end.

%% It is cancelled, or has gone off: 2.
cancelled() ->
    Timer = erlang:start_timer(1000, self(), now),
    case erlang:cancel_timer(Timer) of
        false -> receive {timeout, Timer, now} -> ok end;
        _ -> ok
    end.

%% The same, by one who does not know that the message may be there: 2, and one of them fails.
cancelled_late() ->
    Timer = erlang:start_timer(1000, self(), now),
    erlang:cancel_timer(Timer),
    receive {timeout, Timer, now} -> exit(late) after 0 -> ok end.

%% Times are not compared: 2.
two() ->
    erlang:send_after(1000, self(), one),
    erlang:send_after(2000, self(), two),
    receive one -> ok; two -> ok end.

%% Another one cancels it: 2.
by_another() ->
    Timer = erlang:send_after(1000, self(), late),
    Me = self(),
    spawn(fun() -> Me ! {left, erlang:cancel_timer(Timer) =/= false} end),
    receive {left, true} -> ok; {left, false} -> receive late -> ok end end.

%% It still runs, or has gone off: 2.
read() ->
    Timer = erlang:send_after(1000, self(), late),
    case erlang:read_timer(Timer) of
        false -> receive late -> ok end;
        _ -> ok
    end.

%% Nobody gets the message: 1.
for_nobody() ->
    erlang:send_after(1000, spawn(fun() -> ok end), late),
    ok.

%% It is stopped before the first of three ticks, or behind one of them: 4.
ticks() ->
    Me = self(),
    Ticks = spawn(fun() -> tick(Me, 3) end),
    spawn(fun() -> Ticks ! stop end),
    receive stopped -> ok end.

tick(Me, 0) -> receive stop -> Me ! stopped end;
tick(Me, Left) ->
    erlang:send_after(100, self(), tick),
    receive tick -> tick(Me, Left - 1); stop -> Me ! stopped end.

%% The message of the timer comes first; or the other one, and the timer is cancelled, or has gone off: 3.
timed() ->
    Timer = erlang:send_after(1000, self(), late),
    sends_early(),
    receive early -> erlang:cancel_timer(Timer); late -> ok end.

%% A server of OTP with a state that has a time. It is asked in time, or its time is up before: 2, and one of them fails.
statem() ->
    {ok, Server} = gen_statem:start(?MODULE, [], []),
    in_time = gen_statem:call(Server, stop).

callback_mode() -> handle_event_function.
init([]) -> {ok, young, none, {state_timeout, 5000, old}}.
handle_event(state_timeout, old, young, none) -> {next_state, old, none};
handle_event({call, From}, stop, young, none) -> {stop_and_reply, normal, {reply, From, in_time}};
handle_event({call, From}, stop, old, none) -> {stop_and_reply, normal, {reply, From, too_late}}.

%% It goes off before somebody has the name, or finds the one who has it: 2, and one of them waits for ever.
by_name() ->
    erlang:send_after(1000, timers, late),
    register(timers, self()),
    receive late -> ok end.

%% It goes off before each of the two has the name, while it waits with that name or has waited, or behind both: 7.
by_names() ->
    erlang:send_after(1000, timers, late),
    Had = fun() -> register(timers, self()), receive late -> ok after 10 -> ok end end,
    {_, Ended} = spawn_monitor(Had),
    receive {'DOWN', Ended, process, _, normal} -> Had() end.

%% Who gets the message of a timer, or times out, finds that the time has passed: 2 and 2.
has_passed() ->
    Until = erlang:monotonic_time(millisecond) + 1000,
    erlang:send_after(1000, self(), late),
    sends_early(),
    receive late -> true = erlang:monotonic_time(millisecond) >= Until; early -> ok end.

has_passed_in_receive() ->
    Until = erlang:monotonic_time(millisecond) + 1000,
    sends_early(),
    receive early -> ok after 1000 -> true = erlang:monotonic_time(millisecond) >= Until end.

sends_early() ->
    Me = self(),
    spawn(fun() -> Me ! early end).

%% A timer that goes off when the run has ended could go off before.
later() ->
    Waits = spawn(fun() -> receive late -> ok end end),
    erlang:send_after(3600000, Waits, late),
    ok.
