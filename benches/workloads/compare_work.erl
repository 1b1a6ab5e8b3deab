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
workload("splitmix64") -> {fun splitmix64/3, [1000000, 16#0123456789abcdef, 0]};
workload("congruence") -> {fun congruence/2, [3000000, 88172645463325252]};
workload("fnv1a") -> {fun fnv1a/2, [3000000, 16#cbf29ce484222325]};
workload("prime_field") -> {fun prime_field/2, [2000000, 16#0123456789abcdef]};
workload("mwc59") -> {fun mwc59/2, [20000000, rand:mwc59_seed(17)]};
workload("hashes") -> {fun hashes/3, [500000, [{order, 17, <<"shelf">>}, "a string", <<"a binary">>, atom, 1 bsl 40], 0]};
workload("update_with") -> {fun update_with/2, [1000000, maps:from_keys(lists:seq(0, 1023), 0)]};
workload("lookup") -> {fun lookup/3, [2000000, table(20000), 0]};
workload("lexemes") -> {fun lexemes/2, [30000, 0]};
workload("passing_over") -> {fun passing_over/2, [3000, 2000]};
workload("behind_queue") -> {fun behind_queue/2, [100000, 30]};
workload("queue_info") -> {fun queue_info/2, [100000, 20]};
workload("idle_spawn") -> {fun() -> length(idle(1000000)) end, []}.

fib(N) when N < 2 -> N;
fib(N) -> fib(N - 1) + fib(N - 2).

map_sum(List) ->
    lists:sum(lists:map(fun(X) -> X * 2 end, List)).

tuples(0, Sum) -> Sum;
tuples(N, Sum) -> tuples(N - 1, Sum + second(pair(N))).

pair(N) -> {n, N band 15, N}.

second(Tuple) -> element(2, Tuple).

%% Hashes and congruences of 64 bits: products of two words, cut to one.
-define(WORD, 16#ffffffffffffffff).

splitmix64(0, _, Last) -> Last;
splitmix64(Left, Seed0, _) ->
    Seed = (Seed0 + 16#9e3779b97f4a7c15) band ?WORD,
    A = ((Seed bxor (Seed bsr 30)) * 16#bf58476d1ce4e5b9) band ?WORD,
    B = ((A bxor (A bsr 27)) * 16#94d049bb133111eb) band ?WORD,
    splitmix64(Left - 1, Seed, B bxor (B bsr 31)).

congruence(0, X) -> X;
congruence(Left, X) -> congruence(Left - 1, (X * 6364136223846793005 + 1442695040888963407) band ?WORD).

fnv1a(0, Hash) -> Hash;
fnv1a(Left, Hash) -> fnv1a(Left - 1, ((Hash bxor (Left band 255)) * 16#100000001b3) band ?WORD).

prime_field(0, X) -> X;
prime_field(Left, X) -> prime_field(Left - 1, (X * 16#5851f42d4c957f2d + Left) rem 18446744073709551557).

mwc59(0, State) -> State;
mwc59(Left, State) -> mwc59(Left - 1, rand:mwc59(State)).

hashes(0, _, Sum) -> Sum;
hashes(Left, Terms, Sum) ->
    hashes(Left - 1, Terms, lists:foldl(fun(Term, Acc) -> Acc bxor erlang:phash2({Term, Left}) end, Sum, Terms)).

update_with(0, Map) -> Map;
update_with(Left, Map) ->
    update_with(Left - 1, maps:update_with(Left band 1023, fun(Count) -> Count + 1 end, Map)).

table(Size) ->
    Table = ets:new(table, [set]),
    ets:insert(Table, [{N, N, [N]} || N <- lists:seq(0, Size - 1)]),
    Table.

lookup(0, _, Sum) -> Sum;
lookup(Left, Table, Sum) ->
    [{_, N, _}] = ets:lookup(Table, (Left * 7919) rem 20000),
    lookup(Left - 1, Table, Sum + N).

lexemes(0, Count) -> Count;
lexemes(Left, Count) ->
    Words = string:lexemes("the quick brown fox jumps over the lazy dog", " "),
    lexemes(Left - 1, Count + length(Words)).

%% Messages that a receive has no clause for lie before the one that it takes.
passing_over(Queue, Times) ->
    fill(Queue),
    take_own(Times).

take_own(0) -> ok;
take_own(Left) ->
    self() ! {own, Left},
    receive {own, Left} -> take_own(Left - 1) end.

fill(0) -> ok;
fill(Left) -> self() ! {other, Left, [Left]}, fill(Left - 1).

%% A process whose start waits for an answer behind a queue.
behind_queue(Queue, Times) ->
    fill(Queue),
    lists:foreach(fun(_) ->
        {ok, Server} = gen_server:start_link(?MODULE, 0, []),
        unlink(Server),
        exit(Server, kill)
    end, lists:seq(1, Times)).

queue_info(Queue, Times) ->
    fill(Queue),
    lists:sum([length(element(2, process_info(self(), messages))) || _ <- lists:seq(1, Times)]).

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
