%% Runs random cases, and writes down what each gives. The same arguments make the same cases on every runtime.
%%
%%     differ:main(["run", Campaign, Seed, First, Last, File])     runs cases of a campaign
%%     differ:main(["make", Campaign, Seed, First, Last, File])    writes these cases to File
%%     differ:main(["compile", File, First, Last, To])             writes cases of such a file with their code compiled
%%     differ:main(["smaller", File, To])                          writes the cases that are a step smaller than one
%%     differ:main(["try", File, First, Last, To])                 runs cases of such a file
%%     differ:main(["measure", File, First, Last, To])             the same, and what those cost whose campaign fixes it
%%     differ:main(["pick", File, Number, To])                     writes one of them to a file of its own
%%     differ:main(["source", File, To])                           writes a case as Erlang source, without its helpers
%%
%% A case is {How, About, Functions, Helpers}: test/0 of the functions is compiled or evaluated, as How says; helpers are
%% functions that stay whole when a case is made smaller. {assembled, About, Steps, Rows} is made of instructions. A case whose code is compiled is {ready, About, Prepared}.
-module(differ).

-export([main/1]).

%% Longest time of a case, or most turns of a measured one and most looks at the clock for it; most words of its heap.
-define(CASE_MS, 10_000).
-define(CASE_TURNS, 300).
-define(CASE_LOOKS, 5_000).
-define(CASE_WORDS, 20_000_000).

%% What measured cases call. To load it would be part of what the first of them costs.
-define(CALLED, [lists, maps, binary, math, unicode, erl_erts_errors, erl_stdlib_errors, differ_instructions]).

main(["run", Name, Seed, First, Last, File]) ->
    Campaign = list_to_atom("differ_" ++ Name),
    Cases = fun(Number) -> make(Campaign, list_to_integer(Seed), Number) end,
    run_all(Name, Cases, list_to_integer(First), list_to_integer(Last), File);
main(["make", Name, Seed, First, Last, File]) ->
    Campaign = list_to_atom("differ_" ++ Name),
    Numbers = lists:seq(list_to_integer(First), list_to_integer(Last)),
    write_cases(File, [make(Campaign, list_to_integer(Seed), Number) || Number <- Numbers]),
    halt(0);
main(["compile", File, First, Last, To]) ->
    From = list_to_integer(First),
    Cases = lists:sublist(read_cases(File), From, list_to_integer(Last) + 1 - From),
    write_cases(To, [compiled(Case) || Case <- Cases]),
    halt(0);
main(["smaller", File, To]) ->
    [Case] = read_cases(File),
    Smaller = case element(1, Case) of
                  assembled -> differ_instructions:smaller(Case);
                  _ -> differ_form:smaller(Case)
              end,
    write_cases(To, Smaller),
    io:format("~w~n", [length(Smaller)]),
    halt(0);
main(["try", File, First, Last, To]) ->
    Cases = list_to_tuple(read_cases(File)),
    Nth = fun(Number) -> element(Number, Cases) end,
    run_all("smaller", Nth, list_to_integer(First), list_to_integer(Last), To);
main(["measure", File, First, Last, To]) ->
    put(measures, true),
    ok = code:ensure_modules_loaded(?CALLED),
    main(["try", File, First, Last, To]);
main(["pick", File, Number, To]) ->
    write_cases(To, [lists:nth(list_to_integer(Number), read_cases(File))]),
    halt(0);
main(["source", File, To]) ->
    Source = case read_cases(File) of
                 [{assembled, _, Steps, Rows}] -> io_lib:format("~p.~n~p.~n", [lists:append(Steps), Rows]);
                 [{_, _, Functions, _}] -> [erl_pp:form(Form, [{encoding, utf8}]) || Form <- Functions]
             end,
    ok = file:write_file(To, unicode:characters_to_binary(Source)),
    halt(0).

make(Campaign, Seed, Number) ->
    _ = rand:seed(exsss, erlang:phash2({Campaign, Seed, Number}, 1 bsl 32)),
    Campaign:make().

read_cases(File) ->
    {ok, Binary} = file:read_file(File),
    binary_to_term(Binary).

write_cases(File, Cases) ->
    ok = file:write_file(File, term_to_binary(Cases)).

run_all(Name, Cases, First, Last, File) ->
    {ok, Out} = file:open(File, [append, raw]),
    Others = processes(),
    [begin
         Case = Cases(Number),
         write(Out, io_lib:format("~s ~w ~ts", [Name, Number, element(2, Case)])),
         [write(Out, ["    ", Line]) || Line <- run(Case)],
         [exit(Pid, kill) || Pid <- processes() -- Others]
     end || Number <- lists:seq(First, Last)],
    ok = file:write(Out, "end\n"),
    halt(0).

%% A message of the compiler may have lines of its own.
write(Out, Line) ->
    Text = [case Char of $\n -> $\s; _ -> Char end || Char <- unicode:characters_to_list(Line)],
    ok = file:write(Out, unicode:characters_to_binary([Text, $\n])).

%% The lines that tell what a case gives. It has a process of its own.
run({ready, About, {code, Code}}) ->
    code:purge(differ_case),
    {module, differ_case} = code:load_binary(differ_case, "differ_case", Code),
    in_process(fun() -> differ_case:test() end, lines_of(About));
run({ready, _, {error, Lines}}) ->
    Lines;
run({evaluated, _, [{function, _, test, 0, [{clause, _, [], [], Body}]}], []}) ->
    in_process(fun() -> {value, Value, _} = erl_eval:exprs(Body, #{}), Value end, fun differ_result:lines/1);
run(Case) ->
    run(compiled(Case)).

compiled({compiled, About, Functions, Helpers}) ->
    Forms = [{attribute, 1, module, differ_case}, {attribute, 1, export, [{test, 0}]} | Functions ++ Helpers],
    ready(About, compile:forms(Forms, [return_errors, deterministic, nowarn_unused_vars]));
compiled({assembled, About, Steps, Rows}) ->
    Assembly = differ_instructions:assembly(Steps, Rows),
    ready(About, compile:forms(Assembly, [from_asm, return_errors, deterministic]));
compiled(Case) ->
    Case.

%% A case that was compiled, or what the compiler says.
ready(About, {ok, differ_case, Code}) ->
    {ready, About, {code, Code}};
ready(About, {error, Errors, _}) ->
    Texts = [compile_error(Module, Error) || {_, Infos} <- Errors, {_, Module, Error} <- Infos],
    {ready, About, {error, ["does not compile" | Texts]}}.

%% What the compiler's own faults are is told, and not on which lines.
compile_error(compile, {crash, Pass, Reason, _}) -> io_lib:format("the compiler fails in ~p: ~p", [Pass, Reason]);
compile_error(Module, Error) -> Module:format_error(Error).

lines_of(About) ->
    case get(measures) =:= true andalso lists:member(About, ["module", "instructions"]) of
        true -> fun differ_result:measured/1;
        false -> fun differ_result:lines/1
    end.

in_process(Test, Lines) ->
    Limit = #{size => ?CASE_WORDS, kill => true, error_logger => false},
    {Pid, Monitor} = spawn_opt(fun() -> exit({given, Lines(Test)}) end,
                               [monitor, {max_heap_size, Limit}]),
    case get(measures) of
        true -> watch(Pid, Monitor, ?CASE_TURNS, ?CASE_LOOKS);
        undefined -> await(Pid, Monitor, ?CASE_MS)
    end.

%% The time of deterministic runs stands still while something can run. A case that runs has so many turns; for one that
%% waits this process looks at the clock, which moves it in the end, and then waits, too.
watch(Pid, Monitor, 0, _) ->
    await(Pid, Monitor, 0);
watch(Pid, Monitor, _, 0) ->
    await(Pid, Monitor, ?CASE_MS);
watch(Pid, Monitor, Turns, Looks) ->
    receive
        {'DOWN', Monitor, process, Pid, Reason} -> ended(Reason)
    after 0 ->
        case statistics(run_queue) of
            0 ->
                _ = erlang:monotonic_time(),
                watch(Pid, Monitor, Turns, Looks - 1);
            _ ->
                erlang:yield(),
                watch(Pid, Monitor, Turns - 1, Looks)
        end
    end.

await(Pid, Monitor, Ms) ->
    receive
        {'DOWN', Monitor, process, Pid, Reason} -> ended(Reason)
    after Ms ->
        exit(Pid, kill),
        receive {'DOWN', Monitor, process, Pid, _} -> ["no answer"] end
    end.

ended({given, Given}) -> Given;
ended(Reason) -> ["its process ends: " | differ_result:text(Reason)].
