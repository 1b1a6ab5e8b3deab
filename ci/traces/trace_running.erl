%% Cases of `trace_shapes`: what is counted of a function that calls itself, read while it runs. In the middle of a loop
%% the process reads its own counts, has another process read them, or does something else that words and calls could
%% be lost at.
-module(trace_running).
-compile(nowarn_deprecated_catch).
-export([groups/0, loop/2, nest/2, other/2]).

groups() ->
    [{running, [{{Measures, Do}, fun() -> running(Measures, Do) end} || Measures <- measures(), Do <- things()]}].

measures() ->
    [[call_count], [call_time], [call_memory], [call_count, call_memory], [call_count, call_time, call_memory]].

things() ->
    [nothing, read, told, message, sent, collect, binary, sensitive, off, only_others, more, other, catches].

running(Measures, Do) ->
    Session = trace:session_create(running, self(), []),
    Me = self(),
    Reader = spawn_link(fun() -> reader(Session, Measures, Me) end),
    Functions = [loop, nest],
    [1 = trace:function(Session, {?MODULE, F, 2}, true, Measures) || F <- Functions],
    trace:process(Session, self(), true, [call]),
    put(seen, []),
    Act = fun(N) -> act(Do, Session, Measures, Reader, N) end,
    loop(400, Act),
    nest(400, Act),
    loop(700, Act),
    trace:process(Session, self(), false, [call]),
    Seen = lists:reverse(get(seen)),
    Rows = Seen ++ [{at_end, F, at_end(Do, counts(Session, Measures, F))} || F <- Functions],
    trace:session_destroy(Session),
    unlink(Reader),
    exit(Reader, kill),
    Rows.

%% Reading takes words, as many as there are digits in a time.
at_end(Do, Counts) when Do =:= read -> calls(Counts);
at_end(_, Counts) -> Counts.

loop(0, _) -> done;
loop(N, Act) -> act(N, Act), loop(N - 1, Act).

nest(0, _) -> [];
nest(N, Act) -> act(N, Act), [N | nest(N - 1, Act)].

other(0, _) -> done;
other(N, Act) -> other(N - 1, Act).

act(N, Act) when N rem 100 =:= 50 -> Act(N);
act(_, _) -> ok.

act(nothing, _, _, _, _) -> ok;
act(read, Session, Measures, _, N) ->
    note({N, [calls(counts(Session, Measures, F)) || F <- [loop, nest]]});
act(told, _, _, Reader, N) ->
    Reader ! {self(), N},
    receive {Reader, read} -> ok end;
act(message, _, _, _, N) ->
    self() ! {message, lists:seq(1, N)},
    receive {message, _} -> ok end;
act(sent, _, _, _, N) -> self() ! {sent, N};
act(collect, _, _, _, _) -> garbage_collect();
act(binary, _, _, _, N) -> binary:copy(<<"ab,">>, N);
act(sensitive, _, _, _, N) -> process_flag(sensitive, N rem 200 =:= 50);
act(off, Session, _, Reader, N) ->
    Reader ! {self(), N, fun(Pid) -> trace:process(Session, Pid, N rem 200 =/= 50, [call]) end},
    receive {Reader, done} -> ok end;
act(only_others, Session, _, Reader, N) ->
    Reader ! {self(), N, fun(Pid) -> trace:process(Session, Pid, N rem 200 =/= 50, [call]), trace:process(Session, Pid, true, [garbage_collection]) end},
    receive {Reader, done} -> ok end;
act(more, Session, Measures, Reader, N) ->
    Reader ! {self(), N, fun(_) -> trace:function(Session, {?MODULE, loop, 2}, N rem 200 =/= 50, Measures) end},
    receive {Reader, done} -> ok end;
act(other, Session, Measures, Reader, N) ->
    Reader ! {self(), N, fun(_) -> trace:function(Session, {?MODULE, other, 2}, N rem 200 =:= 50, Measures) end},
    receive {Reader, done} -> other(N, none) end;
act(catches, _, _, _, N) -> catch error({caught, N}).

note(Row) -> put(seen, [Row | get(seen)]).

%% Reads what another process has counted so far, and does what it is asked to.
reader(Session, Measures, Main) ->
    receive
        {Main, N} ->
            Counts = [counts(Session, Measures, F) || F <- [loop, nest]],
            io:format("    ~0p~n", [{told, N, Counts}]),
            Main ! {self(), read};
        {Main, _, Do} ->
            Do(Main),
            Main ! {self(), done}
    end,
    reader(Session, Measures, Main).

counts(Session, Measures, F) -> [{M, count(M, trace:info(Session, {?MODULE, F, 2}, M))} || M <- Measures].

count(call_time, {_, [{_, Calls, _, _}]}) -> Calls;
count(call_memory, {_, [{_, Calls, Words}]}) -> {Calls, Words};
count(_, {_, What}) -> What.

calls(Counts) -> [case Count of {Calls, _} -> Calls; _ -> Count end || {_, Count} <- Counts].
