%% Asks the driver `work_drv` for all that it does, and expects what OTP does.
-module(drives).
-export([main/1]).
-compile(nowarn_deprecated_catch).

-define(ECHO, 0).
-define(TIMER, 1).
-define(CANCEL, 2).
-define(JOB, 3).
-define(MONITOR, 4).
-define(DEMONITOR, 5).
-define(DEQUEUE, 6).
-define(SIZE, 7).
-define(PIPE, 8).
-define(TERMS, 9).
-define(FAIL, 10).
-define(BINARY, 11).
-define(CREATE, 12).
-define(FREE, 13).
-define(END, 14).
-define(EXIT, 15).
-define(LOCK, 16).
-define(SYSTEM, 17).
-define(EOF, 18).
-define(SLOW, 19).

main([Folder]) ->
    process_flag(trap_exit, true),
    {error, {open_error, Code}} = erl_ddll:try_load(Folder, "no_such_drv", []),
    true = is_list(erl_ddll:format_error({open_error, Code})),
    {error, not_loaded} = erl_ddll:try_unload(work_drv, []),
    {ok, loaded} = erl_ddll:try_load(Folder, "work_drv", []),
    {ok, already_loaded} = erl_ddll:try_load(Folder, work_drv, []),
    {error, inconsistent} = erl_ddll:try_load(Folder, work_drv, [{driver_options, [kill_ports]}]),
    {ok, Names} = erl_ddll:loaded_drivers(),
    true = lists:member("work_drv", Names),
    Self = self(),
    [{Self, 2}] = erl_ddll:info(work_drv, processes),
    [refused(Word) || Word <- ["general", "badarg", "errno"]],
    [data(Options) || Options <- [[], [binary]]],
    lines(),
    controls(),
    calls(),
    vectors(),
    later(),
    long(),
    monitors(),
    queue(),
    terms(),
    busy(),
    ends(),
    shown(),
    unloads(Folder),
    io:format("all is as it is to be~n").

open() -> open([]).
open(Options) -> open_port({spawn_driver, "work_drv"}, Options).

close(Port) ->
    Port ! {self(), close},
    receive {Port, {data, "stopped"}} -> ok; {Port, {data, <<"stopped">>}} -> ok end,
    receive {Port, closed} -> ok end,
    receive {'EXIT', Port, normal} -> ok end,
    undefined = erlang:port_info(Port).

next() -> receive Message -> Message after 5000 -> nothing end.

refused(Word) ->
    Reason = #{"general" => einval, "badarg" => badarg, "errno" => enospc},
    {'EXIT', {Why, _}} = (catch open_port({spawn, "work_drv " ++ Word}, [])),
    Why = maps:get(Word, Reason),
    0 = erl_ddll:info(work_drv, port_count).

data(Options) ->
    Port = open(Options),
    1 = erl_ddll:info(work_drv, port_count),
    Long = binary:copy(<<"long">>, 50),
    true = port_command(Port, [<<"abc">>, $d]),
    Port ! {self(), {command, Long}},
    {Port, {data, Short}} = next(),
    {Port, {data, Data}} = next(),
    case Options of
        [] -> {"<abcd", [$< | Text]} = {Short, Data}, Long = list_to_binary(Text);
        [binary] -> {[$< | <<"abcd">>], [$< | Long]} = {Short, Data}
    end,
    close(Port).

lines() ->
    Port = open([{line, 10}]),
    true = port_command(Port, "two\nthree"),
    {Port, {data, "<two\nthree"}} = next(),
    true = port_command(Port, "one\ntwo and more"),
    {Port, {data, {eol, "one"}}} = next(),
    {Port, {data, {noeol, "two and mo"}}} = next(),
    catch port_control(Port, ?EOF, ""),
    {Port, {data, {noeol, "re"}}} = next(),
    receive {'EXIT', Port, normal} -> ok end.

controls() ->
    Port = open(),
    "aaa" = port_control(Port, ?ECHO, <<"a", 3:32>>),
    "" = port_control(Port, ?ECHO, <<"a", 0:32>>),
    Long = lists:duplicate(1000, $b),
    Long = port_control(Port, ?ECHO, <<"b", 1000:32>>),
    {'EXIT', {badarg, _}} = (catch port_control(Port, 1000, "")),
    "000" = port_control(Port, ?SYSTEM, ""),
    close(Port),
    Binary = open_port({spawn, "work_drv binary"}, [binary]),
    <<"aaa">> = port_control(Binary, ?ECHO, <<"a", 3:32>>),
    Data = binary:copy(<<"0123456789">>, 20),
    Data = port_control(Binary, ?BINARY, Data),
    close(Binary).

calls() ->
    Port = open(),
    [begin
         Term = erlang:port_call(Port, 1, Term),
         Term = erlang:port_call(Port, 2, Term)
     end || Term <- [a, {1, "b", <<"c">>}, lists:seq(1, 1000), #{a => 1.0}]],
    {'EXIT', {badarg, _}} = (catch erlang:port_call(Port, 3, a)),
    close(Port).

vectors() ->
    Port = open(),
    Long = binary:copy(<<"long">>, 50),
    trace:port(Session = trace:session_create(vectors, self(), []), Port, true, ['receive']),
    true = port_command(Port, [$o, Long]),
    {trace, Port, 'receive', {_, {command, [<<"o">>, Long]}}} = next(),
    {Port, {data, "long" ++ _}} = next(),
    trace:session_destroy(Session),
    close(Port).

%% What a port does when no process calls it is told of where it takes long.
long() ->
    Port = open(),
    Session = trace:session_create(long, self(), []),
    ok = trace:system(Session, long_schedule, 20),
    Begin = erlang:monotonic_time(millisecond),
    "" = port_control(Port, ?SLOW, ""),
    {Port, {timeout, 0}} = next(),
    case erlang:monotonic_time(millisecond) - Begin >= 50 of
        true ->
            {monitor, Port, long_schedule, [{timeout, Ms}, {port_op, timeout}]} = next(),
            true = Ms > 20;
        false ->
            %% Where the run's time stands still meanwhile, it takes none.
            nothing = receive {monitor, _, _, _} = Told -> Told after 50 -> nothing end
    end,
    trace:session_destroy(Session),
    close(Port).

later() ->
    Port = open(),
    "" = port_control(Port, ?TIMER, <<20:32>>),
    {Port, {timeout, 0}} = next(),
    "" = port_control(Port, ?TIMER, <<50:32>>),
    "" = port_control(Port, ?CANCEL, ""),
    receive {Port, _} = Late -> error(Late) after 100 -> ok end,
    [port_control(Port, ?JOB, "") || _ <- lists:seq(1, 10)],
    Jobs = [receive {Port, {job, N}} -> N end || _ <- lists:seq(1, 10)],
    Jobs = lists:seq(hd(Jobs), hd(Jobs) + 9),
    port_control(Port, ?PIPE, ""),
    [{Port, {ready, N}} = next() || N <- [1, 2, 3]],
    receive {Port, _} = More -> error(More) after 50 -> ok end,
    close(Port).

monitors() ->
    Port = open(),
    Self = self(),
    Ask = fun(Operation) -> port_control(Port, Operation, "") end,
    "" = Ask(?MONITOR),
    {monitors, [{process, Self}]} = erlang:port_info(Port, monitors),
    {monitored_by, [Port]} = process_info(Self, monitored_by),
    "" = Ask(?DEMONITOR),
    "0" = Ask(?DEMONITOR),
    {monitors, []} = erlang:port_info(Port, monitors),
    spawn(fun() -> "" = Ask(?MONITOR) end),
    {Port, {down, 0}} = next(),
    close(Port).

queue() ->
    Port = open(),
    Size = fun() -> length(port_control(Port, ?SIZE, "")) end,
    [port_command(Port, Data) || Data <- ["qtwo", <<"qthree">>, "pone"]],
    {queue_size, 11} = erlang:port_info(Port, queue_size),
    11 = Size(),
    [begin
         port_control(Port, ?DEQUEUE, ""),
         {Port, {data, Data}} = next()
     end || Data <- ["one", "two", "three"]],
    0 = Size(),
    Before = erlang:memory(binary),
    true = port_command(Port, "q" ++ lists:duplicate(3000000, $a)),
    true = erlang:memory(binary) - Before > 2900000,
    "" = port_control(Port, ?DEQUEUE, ""),
    {Port, {data, [$a | _]}} = next(),
    "0" = port_control(Port, ?LOCK, ""),
    port_command(Port, "qwhat is left"),
    true = port_close(Port),
    receive {'EXIT', Port, normal} -> ok end,
    nothing = receive {Port, _} = Said -> Said after 50 -> nothing end.

terms() ->
    Port = open(),
    "0" = port_control(Port, ?TERMS, ""),
    Self = self(),
    Binary = binary:copy(<<"b">>, 90),
    Least = -(1 bsl 63),
    Most = (1 bsl 64) - 1,
    {[], 'an atom', -1, Most, Least, Most, 0.5, Port, Self, Binary, <<"bytes">>, "texttail", [1, 2],
     [#{key := 1}]} = next(),
    close(Port).

busy() ->
    Port = open(),
    port_command(Port, "b"),
    false = port_command(Port, "no", [nosuspend]),
    {'EXIT', {notsup, _}} = (catch port_command(Port, "no", [force])),
    Self = self(),
    Writer = spawn_link(fun() -> port_command(Port, "waited"), Self ! written end),
    receive written -> error(not_busy) after 50 -> ok end,
    [{status, suspended}, {current_function, {erts_internal, port_command, 3}}] =
        process_info(Writer, [status, current_function]),
    Sender = spawn_link(fun() -> Port ! {Self, {command, "sent"}} end),
    wait_until(fun() -> {status, suspended} =:= process_info(Sender, status) end),
    {current_function, {erlang, send, 2}} = process_info(Sender, current_function),
    {current_stacktrace, [{erlang, send, 2, []}, {?MODULE, _, _, _}]} = process_info(Sender, current_stacktrace),
    "" = port_control(Port, ?FREE, ""),
    ["<sent", "<waited"] = lists:sort([receive {Port, {data, Data}} -> Data end || _ <- [1, 2]]),
    receive {'EXIT', Sender, normal} -> ok end,
    written = receive written -> written end,
    receive {'EXIT', Writer, normal} -> ok end,
    close(Port).

ends() ->
    [begin
         Port = open(),
         catch port_control(Port, Operation, ""),
         Reason = receive {'EXIT', Port, Why} -> Why end,
         receive {Port, {data, "stopped"}} -> ok end
     end || {Operation, Reason} <- [{?FAIL, 'a reason'}, {?END, epipe}, {?EOF, normal}]],
    Soft = open([eof]),
    catch port_control(Soft, ?EOF, ""),
    {Soft, eof} = next(),
    close(Soft),
    Quiet = open(),
    catch port_control(Quiet, ?EXIT, ""),
    {Quiet, {data, "stopped"}} = next(),
    nothing = receive {'EXIT', Quiet, _} = Heard -> Heard after 50 -> nothing end,
    Parent = open(),
    {locking, Locking} = erlang:port_info(Parent, locking),
    creates(Parent, Locking),
    close(Parent).

%% With a lock for all ports of the driver, OTP 29 waits for ever.
creates(_, driver_level) ->
    ok;
creates(Parent, port_level) ->
    port_control(Parent, ?CREATE, ""),
    {Child, {created, 0}} = next(),
    true = is_port(Child) andalso Child =/= Parent,
    {links, [Linked]} = erlang:port_info(Child, links),
    Linked = self(),
    close(Child).

shown() ->
    Port = open_port({spawn, "work_drv and more"}, []),
    {name, "work_drv and more"} = erlang:port_info(Port, name),
    {locking, Locking} = erlang:port_info(Port, locking),
    true = lists:member(Locking, [port_level, driver_level]),
    {os_pid, undefined} = erlang:port_info(Port, os_pid),
    port_command(Port, "12345"),
    {output, 5} = erlang:port_info(Port, output),
    {input, 6} = erlang:port_info(Port, input),
    {Port, {data, "<12345"}} = next(),
    true = lists:member(Port, erlang:ports()),
    close(Port).

unloads(Folder) ->
    Port = open(),
    Reference = erl_ddll:monitor(driver, {work_drv, unloaded}),
    {ok, pending_process} = erl_ddll:try_unload(work_drv, []),
    {ok, pending_driver, Other} = erl_ddll:try_unload(work_drv, [{monitor, pending}]),
    close(Port),
    Expected = lists:sort([Reference, Other]),
    Expected = lists:sort([receive {'DOWN', R, driver, work_drv, unloaded} -> R end || _ <- [1, 2]]),
    {error, not_loaded} = erl_ddll:try_unload(work_drv, []),
    {'EXIT', {badarg, _}} = (catch open()),
    Loader = spawn(fun() ->
        ok = erl_ddll:load_driver(Folder, work_drv),
        receive stop -> ok end
    end),
    Loaded = wait_until_open(100),
    {error, not_loaded_by_this_process} = erl_ddll:try_unload(work_drv, []),
    exit(Loader, kill),
    receive {'EXIT', Loaded, driver_unloaded} -> ok end,
    receive {Loaded, {data, "stopped"}} -> ok end,
    Down = erl_ddll:monitor(driver, {work_drv, unloaded}),
    receive {'DOWN', Down, driver, work_drv, unloaded} -> ok end.

wait_until(Is) ->
    Is() orelse begin timer:sleep(1), wait_until(Is) end.

wait_until_open(Times) when Times > 0 ->
    try open() catch error:badarg -> timer:sleep(10), wait_until_open(Times - 1) end.
