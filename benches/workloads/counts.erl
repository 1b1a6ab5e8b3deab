%% The samples under OTP's tprof, for `cargo xtask counts`: what OTP's profiler counts on either runtime.
%%
%%   erl -noshell -run counts tprof TYPE SAMPLE    a line "ROW Module Function Arity Calls Value" a function
%%   erl -noshell -run counts plain SAMPLE         the sample alone, to be profiled from outside
%%
%% The modules that a sample calls are loaded first: what loading them costs is not the sample's.
-module(counts).
-export([tprof/1, plain/1]).

tprof([Type, Sample]) ->
    {Module, Code, Run} = sample(Sample),
    Patterns = [{M, '_', '_'} || M <- watched(Module, Code)],
    Options = #{type => list_to_atom(Type), report => return, pattern => Patterns},
    {_Outcome, {_Type, Profile}} = tprof:profile(Run, Options),
    [row(Function) || Function <- lists:sort(Profile)],
    erlang:halt(0).

plain([Sample]) ->
    %% In a process of its own: this one is init's, which takes exits as messages.
    {Pid, Ref} = spawn_monitor(fun() -> run(Sample) end),
    receive {'DOWN', Ref, process, Pid, Reason} -> normal = Reason end,
    erlang:halt(0).

%% Requiring the script is running it.
run("collatz.exs" = File) ->
    ok = code:ensure_modules_loaded(['Elixir.Enum', 'Elixir.Range', 'Elixir.Stream']),
    'Elixir.Code':require_file(list_to_binary(File));
run(Sample) ->
    {Module, Code, Run} = sample(Sample),
    _ = watched(Module, Code),
    Run().

row({Module, Function, Arity, PerProcess}) ->
    {Calls, Values} = lists:unzip([{Calls, Value} || {_Pid, Calls, Value} <- PerProcess]),
    io:format("ROW ~ts ~ts ~b ~b ~b~n", [Module, Function, Arity, lists:sum(Calls), lists:sum(Values)]).

%% The module of a sample, its object code, and what runs it.
sample("collatz.exs" = File) ->
    %% Requiring the script runs it once, before anything is counted.
    [{Module, Code}] = 'Elixir.Code':require_file(list_to_binary(File)),
    {Module, Code, fun() -> Module:longest(60000) end};
sample(Name) ->
    Module = list_to_atom(Name),
    {module, Module} = code:ensure_loaded(Module),
    {Module, Code, _File} = code:get_object_code(Module),
    {Module, Code, fun Module:main/0}.

%% The sample's module, those it calls, and those that run a gen_server.
watched(Module, Code) ->
    {ok, {Module, [{imports, Imports}]}} = beam_lib:chunks(Code, [imports]),
    Called = [M || {M, _Function, _Arity} <- Imports, M =/= erlang],
    Modules = lists:usort([Module, gen, gen_server, proc_lib | Called]),
    ok = code:ensure_modules_loaded(Modules -- [Module]),
    Modules.
