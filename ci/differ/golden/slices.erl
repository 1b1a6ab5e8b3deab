%% What a process does in one time slice, and the order in which it hears of a program's end.
-module(slices).

-export([last_line_of_a_program/0, messages_to_itself/0]).

%% No message is copied, so none asks for a collection, for which a time slice would end.
messages_to_itself() ->
    [worked_off(Words) || Words <- [0, 2, 5, 10, 20, 50]].

worked_off(Length) ->
    {Tracer, Me} = {spawn(fun() -> keep([]) end), self()},
    Process = spawn(fun() ->
        receive go -> ok end,
        [self() ! {job, Number, lists:seq(1, Length)} || Number <- lists:seq(1, 20)],
        work(20),
        Me ! {self(), worked},
        receive stop -> ok end
    end),
    erlang:trace(Process, true, [running, {tracer, Tracer}]),
    Process ! go,
    receive {Process, worked} -> ok end,
    Turns = turns_until_it_waits(Process, Tracer),
    {reductions, Reductions} = process_info(Process, reductions),
    exit(Process, kill),
    {Length, Reductions, Turns}.

%% It may have waited for the beginning when the trace began, or not yet.
turns_until_it_waits(Process, Tracer) ->
    Delivered = erlang:trace_delivered(Process),
    receive {trace_delivered, Process, Delivered} -> ok end,
    Tracer ! {give, self()},
    Events = receive {kept, Kept} -> Kept end,
    case lists:dropwhile(fun(Event) -> Event =:= out end, Events) of
        [in | _] = Since ->
            case lists:last(Since) of
                out -> length([out || out <- Since]);
                in -> turns_until_it_waits(Process, Tracer)
            end;
        [] ->
            turns_until_it_waits(Process, Tracer)
    end.

work(0) -> ok;
work(Left) -> receive {job, _, List} -> _ = lists:sum(List), work(Left - 1) end.

keep(Events) ->
    receive
        {give, To} -> To ! {kept, lists:reverse(Events)}, keep(Events);
        {trace, _, What, _} -> keep([What | Events])
    end.

%% What is left of a line comes when the driver ends, behind the exit status.
last_line_of_a_program() ->
    [said(Options) || Options <- [[], [exit_status], [eof], [exit_status, eof]]].

said(Options) ->
    process_flag(trap_exit, true),
    Port = open_port({spawn_executable, "/bin/echo"}, [{args, ["-n", "hello\nworld"]}, {line, 3}, binary | Options]),
    Said = listen(Port, lists:member(eof, Options)),
    process_flag(trap_exit, false),
    Said.

listen(Port, HasEof) ->
    receive
        {Port, eof} when HasEof -> port_close(Port), receive {'EXIT', Port, normal} -> [eof] end;
        {Port, Message} -> [Message | listen(Port, HasEof)];
        {'EXIT', Port, Reason} -> [{exit, Reason}]
    end.
