%% What the emulator tells of a process as text, which tools read for callers; and of code and memory.
-module(dumps).
-compile(nowarn_deprecated_catch).
-export([stacks/0, own_stack/0, process_dump/0, all_processes/0, hibernated/0, appended/0, old_files/0]).

%% Addresses, places in code, pids and references differ from run to run, and one flag with the time when a message is seen.
text(Text) ->
    Changes = [{"=port.*", ""}, {"MSG_SIG_IN_Q \\| ", ""}, {"0x[0-9a-f]+", "0x"}, {" \\+ \\d+\\)", ")"}, {"<\\d+\\.\\d+\\.\\d+>", "<pid>"}, {"#Ref<[0-9.]+>", "#Ref"}],
    Change = fun({From, To}, Rest) -> re:replace(Rest, From, To, [global, dotall, {return, list}]) end,
    string:split(lists:foldl(Change, Text, Changes), "\n", all).

backtrace(Pid) ->
    {backtrace, Text} = process_info(Pid, backtrace),
    exit(Pid, kill),
    text(Text).

%% Waits until what is told of a process is so.
until(Pid, Item, Value) ->
    case process_info(Pid, Item) of
        {Item, Value} -> Pid;
        _ -> receive after 1 -> until(Pid, Item, Value) end
    end.

waiting(Fun) -> until(spawn(Fun), status, waiting).

wait(X) -> receive stop -> X end.
caught(X) -> R = (catch wait(X)), {R, X}.
tried(X) ->
    try wait(X) of Y -> {Y, X} catch error:E:S -> {E, S, X} after put(x, X) end.
late() -> receive after 100_000 -> ok end.
busy(A, B) -> busy(B, A).

stacks() ->
    Terms = {a, "b", 1.5, <<"bin">>, <<1:3>>, self(), make_ref(), #{a => 1}, fun lists:map/2, 'Ω q', [x | y]},
    [backtrace(Pid) ||
        Pid <- [waiting(fun() -> {wait(Terms), 1} end), waiting(fun() -> {caught(x), 1} end), waiting(fun() -> {tried(x), 1} end),
                waiting(fun() -> {late(), 1} end), waiting(fun() -> erlang:hibernate(?MODULE, wait, [[a, 1]]) end),
                waiting(fun() -> put(k, v), wait(1) end),
                until(spawn(fun() -> busy(1, "two") end), current_function, {?MODULE, busy, 2})]].

%% The BIF has a frame of its own.
own_stack() -> [A, B] = [asked(fun in_the_middle/0), asked(fun at_the_end/0)], {A, B}.

asked(Fun) ->
    Me = self(),
    spawn(fun() -> Me ! {own, Fun()} end),
    receive {own, {backtrace, Text}} -> text(Text) end.

in_the_middle() -> T = process_info(self(), backtrace), put(kept, T), T.
at_the_end() -> process_info(self(), backtrace).

traced(A, B) -> {A, B}.

%% The lines, without those that begin so.
without(Starts, Text) -> [Line || Line <- text(Text), not lists:any(fun(Start) -> lists:prefix(Start, Line) end, Starts)].

%% Without what depends on how memory is managed.
dumped(Text) -> without(["Memory: ", "Reductions: ", "Heap unused: ", "Stack+heap: "], Text).

dump(Fun) -> dump([], Fun).

dump(Messages, Fun) ->
    Me = self(),
    erlang:trace_pattern({?MODULE, traced, 2}, [{'_', [], [{message, {process_dump}}]}], [local]),
    Pid = spawn(fun() ->
        put(k, {v, "s"}),
        erlang:trace(self(), true, [call, {tracer, Me}]),
        [self() ! Message || Message <- Messages],
        receive after 10 -> ok end,
        Fun()
    end),
    receive {trace, Pid, call, _, Dump} -> without(["Program counter: "], lists:join("\n", dumped(Dump))) end.

process_dump() ->
    [dump(fun() -> {traced(1, "x"), 2} end),
     dump(fun() -> register(dumped, self()), {traced(1, "x"), 2} end),
     dump(fun() -> (catch {traced(1, "x"), 2}) end),
     dump([message, {other, "message"}], fun() -> {traced(1, "x"), 2} end),
     dump(fun() -> monitor(process, init), {traced(1, "x"), 2} end),
     dump(fun() -> spawn_link(fun late/0), {traced(1, "x"), 2} end)].

all_processes() ->
    Pids = [waiting(fun() -> {wait(x), 1} end), until(spawn(fun() -> late() end), status, waiting),
            waiting(fun() -> erlang:hibernate(?MODULE, wait, [[a, 1]]) end),
            waiting(fun() -> process_flag(message_queue_data, off_heap), wait(1) end)],
    Texts = string:split(binary_to_list(erlang:system_info(procs)), "=proc:", all),
    Found = [dumped(Text) || Pid <- Pids, Text <- Texts, lists:prefix(pid_to_list(Pid) ++ "\n", Text)],
    [exit(Pid, kill) || Pid <- Pids],
    Found.

hibernated() ->
    [begin
         until(Pid, current_function, {erlang, hibernate, 3}),
         Told = process_info(Pid, [current_function, current_stacktrace, current_location, status]),
         exit(Pid, kill),
         Told
     end || Pid <- [spawn(erlang, hibernate, [?MODULE, late, []]), spawn(fun() -> erlang:hibernate(?MODULE, late, []) end)]].

append(B, 0) -> B;
append(B, N) -> append(<<B/binary, 1>>, N - 1).

%% A binary has the room that is kept for what is still to be appended.
appended() ->
    [begin
         B = append(<<>>, N),
         {binary, All} = process_info(self(), binary),
         {byte_size(B), [Size || {_, Size, _} <- All, Size >= N]}
     end || N <- [1001, 2001, 50001]].

%% A file with another highest opcode.
with_highest(Highest) ->
    Forms = [{attribute, 1, module, m}, {attribute, 1, export, [{f, 0}]}, {function, 1, f, 0, [{clause, 1, [], [], [{atom, 1, ok}]}]}],
    {ok, m, Code} = compile:forms(Forms, []),
    {At, 4} = binary:match(Code, <<"Code">>),
    <<Before:(At + 16)/binary, _:32, After/binary>> = Code,
    <<Before/binary, Highest:32, After/binary>>.

old_files() ->
    [begin
         Code = with_highest(Highest),
         Loaded = case erlang:prepare_loading(m, Code) of {error, _} = Error -> Error; _ -> prepared end,
         {Highest, Loaded, code:load_binary(m, "m", Code), code:purge(m), code:delete(m), code:purge(m)}
     end || Highest <- [100, 168, 169, 181, 191, 192]].
