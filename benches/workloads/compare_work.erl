%% The workloads of `cargo xtask compare`. Each one prints a line "RESULT Value Digest": what was
%% measured, and a hash of what came out, which must not depend on the runtime.
%%
%%   erl -noshell -run compare_work main NAME         the workload
%%   erl -noshell -run compare_work tprof TYPE NAME   the workload under OTP's tprof
-module(compare_work).
-export([main/1, tprof/1, fib/1]).
%% A gen_server's callbacks.
-export([init/1, handle_call/3, handle_cast/2]).

main([Name]) ->
    {Value, Outcome} = measure(Name),
    print(Value, Outcome),
    erlang:halt(0).

tprof([Type, Name]) ->
    {Function, Arguments} = workload(Name),
    Begin = erlang:monotonic_time(nanosecond),
    Options = #{type => list_to_atom(Type), report => return},
    {Outcome, _Profile} = tprof:profile(fun() -> apply(Function, Arguments) end, Options),
    print(erlang:monotonic_time(nanosecond) - Begin, Outcome),
    erlang:halt(0).

print(Value, Outcome) ->
    io:format("RESULT ~b ~b~n", [Value, erlang:phash2(Outcome)]).

%% Nanoseconds, but for idle_bytes: bytes.
measure("idle_bytes") ->
    Before = erlang:memory(processes),
    Pids = idle(1000000),
    Bytes = (erlang:memory(processes) - Before) div length(Pids),
    {Bytes, length(Pids)};
measure(Name) ->
    {Function, Arguments} = workload(Name),
    Begin = erlang:monotonic_time(nanosecond),
    Outcome = apply(Function, Arguments),
    {erlang:monotonic_time(nanosecond) - Begin, Outcome}.

workload("fib") -> {fun ?MODULE:fib/1, [30]};
workload("map_sum") -> {fun map_sum/1, [lists:seq(1, 1000000)]};
workload("tuples") -> {fun tuples/2, [1000000, 0]};
workload("messages") -> {fun messages/1, [100000]};
workload("gen_server") -> {fun calls/1, [20000]};
workload("compile") -> {fun compile/1, [os:getenv("COMPARE_SOURCE")]};
workload("compile_elixir") -> {fun compile_project/1, [project(filename:dirname(os:getenv("COMPARE_SOURCE")))]};
workload("idle_spawn") -> {fun() -> length(idle(1000000)) end, []}.

fib(N) when N < 2 -> N;
fib(N) -> fib(N - 1) + fib(N - 2).

map_sum(List) ->
    lists:sum(lists:map(fun(X) -> X * 2 end, List)).

tuples(0, Sum) -> Sum;
tuples(N, Sum) -> tuples(N - 1, Sum + second(pair(N))).

pair(N) -> {n, N band 15, N}.

second(Tuple) -> element(2, Tuple).

messages(Count) ->
    Echo = spawn_link(fun echo/0),
    Sum = there_and_back(Echo, Count, 0),
    unlink(Echo),
    exit(Echo, kill),
    Sum.

there_and_back(_Echo, 0, Sum) -> Sum;
there_and_back(Echo, Left, Sum) ->
    Echo ! {self(), Left},
    receive {Echo, N} -> there_and_back(Echo, Left - 1, Sum + N) end.

echo() ->
    receive {From, N} -> From ! {self(), N}, echo() end.

calls(Count) ->
    {ok, Server} = gen_server:start_link(?MODULE, 0, []),
    Last = lists:foldl(fun(N, _) -> gen_server:call(Server, {add, N}) end, 0, lists:seq(1, Count)),
    gen_server:stop(Server),
    Last.

init(Sum) -> {ok, Sum}.
handle_call({add, N}, _From, Sum) -> {reply, Sum + N, Sum + N}.
handle_cast(_, Sum) -> {noreply, Sum}.

compile(Source) ->
    {ok, _Module, Code} = compile:file(Source, [binary, deterministic, debug_info]),
    erlang:md5(Code).

%% Writes the files of a project of Elixir, and starts its compiler.
project(Dir) ->
    true = code:add_path(filename:join(Dir, "elixir")),
    {ok, _} = application:ensure_all_started(elixir),
    {ok, Template} = file:read_file(filename:join(Dir, "project.ex")),
    Project = filename:join(Dir, "project"),
    _ = file:make_dir(Project),
    [begin
         File = filename:join(Project, "order" ++ integer_to_list(N) ++ ".ex"),
         ok = file:write_file(File, binary:replace(Template, ~"NUMBER", integer_to_binary(N), [global])),
         unicode:characters_to_binary(File)
     end || N <- lists:seq(1, 10)].

compile_project(Files) ->
    {ok, Modules, _} = 'Elixir.Kernel.ParallelCompiler':compile_to_path(Files, filename:dirname(hd(Files)), [{return_diagnostics, true}]),
    lists:sort(Modules).

idle(Count) ->
    [spawn(fun() -> receive stop -> ok end end) || _ <- lists:seq(1, Count)].
