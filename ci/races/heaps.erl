%% Messages of all sizes, to receives of all kinds: it prints in which order they came, and how large the heaps are and
%% how often they were collected by then.
-module(heaps).
-export([main/0, go_on/3]).

main() ->
    Me = self(),
    Receivers = [spawn_link(fun() -> start(Me, N) end) || N <- lists:seq(1, 6)],
    Senders = [spawn_link(fun() -> send(Receivers, N, 300), Me ! {sent, self()} end) || N <- lists:seq(1, 4)],
    [receive {sent, Pid} -> ok end || Pid <- Senders],
    [Pid ! stop || Pid <- Receivers],
    io:format("~w~n", [[receive {Pid, What} -> What end || Pid <- Receivers]]).

%% Sends messages of 0 to 90 words, some through aliases, some as questions that wait for the answer.
send(_, _, 0) -> ok;
send(Receivers, N, Left) ->
    Random = erlang:phash2({N, Left}),
    To = lists:nth(1 + Random rem length(Receivers), Receivers),
    case (Random bsr 4) rem 8 of
        0 -> ask(To, Random);
        1 -> To ! Left;
        2 -> To ! {text, binary:copy(<<"text">>, (Random bsr 8) rem 40)};
        3 -> To ! {self(), first, Left};
        4 -> To ! {number, Random * (1 bsl 62)};
        _ -> To ! {list, lists:seq(1, (Random bsr 8) rem 45)}
    end,
    Random rem 3 =:= 0 andalso erlang:yield(),
    send(Receivers, N, Left - 1).

ask(To, What) ->
    Alias = monitor(process, To, [{alias, reply_demonitor}]),
    To ! {ask, Alias, self(), What},
    receive
        {Alias, _} -> ok;
        {'DOWN', Alias, _, _, _} -> gone
    end.

start(Main, N) ->
    N rem 3 =:= 0 andalso process_flag(message_queue_data, off_heap),
    go_on(Main, N, []).

go_on(Main, N, Seen) ->
    _ = lists:sum(lists:seq(1, 20)),
    case length(Seen) rem 10 of
        3 when length(Seen) rem 20 =:= N -> proc_lib:hibernate(?MODULE, go_on, [Main, N, [hibernated | Seen]]);
        4 -> large(Main, N, Seen);
        5 -> first(Main, N, Seen);
        6 -> poll(Main, N, Seen);
        _ -> any(Main, N, Seen)
    end.

any(Main, N, Seen) ->
    receive
        stop -> tell(Main, Seen);
        {ask, Alias, From, What} ->
            Alias ! {Alias, lists:seq(1, What rem 70)},
            go_on(Main, N, [{asked, From} | Seen]);
        Other -> go_on(Main, N, [Other | Seen])
    end.

%% Its guards make large integers of messages that it passes over.
large(Main, N, Seen) ->
    receive
        stop -> tell(Main, Seen);
        {number, Number} when Number * Number > 1 bsl 160 -> go_on(Main, N, [Number | Seen])
    after 1 -> any(Main, N, [late | Seen])
    end.

first(Main, N, Seen) ->
    receive
        {_, first, Left} -> go_on(Main, N, [Left | Seen])
    after 0 -> any(Main, N, Seen)
    end.

poll(Main, N, Seen) ->
    receive
        {text, Text} -> go_on(Main, N, [Text | Seen])
    after N rem 2 -> any(Main, N, [none | Seen])
    end.

tell(Main, Seen) ->
    {_, Collections} = process_info(self(), garbage_collection),
    {_, Heap} = process_info(self(), total_heap_size),
    {_, Reductions} = process_info(self(), reductions),
    Minor = proplists:get_value(minor_gcs, Collections),
    Main ! {self(), {erlang:phash2(Seen), Minor, Heap, Reductions}}.
