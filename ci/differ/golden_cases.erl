%% Runs golden cases: the functions without arguments that the given modules export.
%%
%%     golden_cases:main([File, Done | Modules])
%%
%% Appends to File a line with the name of each case before it runs, and what it gave below, but leaves out so many as
%% are Done; `end` stands at the end. A case that ends the machine is the last one in File.
-module(golden_cases).

-export([main/1]).

%% Longest time of a case.
-define(CASE_MS, 60_000).

main([File, Done | Modules]) ->
    {ok, Out} = file:open(File, [append, raw]),
    Cases = lists:append([cases(list_to_atom(Module)) || Module <- lists:sort(Modules)]),
    [run(Out, Case) || Case <- lists:nthtail(list_to_integer(Done), Cases)],
    ok = file:write(Out, "end\n"),
    halt(0).

cases(Module) ->
    [{Module, Function} || {Function, 0} <- lists:sort(Module:module_info(exports)),
                           Function =/= module_info].

run(Out, {Module, Function} = Case) ->
    write(Out, io_lib:format("~tw:~tw", [Module, Function])),
    Lines = string:split(given(Case), "\n", all),
    [write(Out, ["    ", Line]) || Line <- Lines].

write(Out, Line) ->
    ok = file:write(Out, unicode:characters_to_binary([Line, $\n])).

%% Each case has a process of its own, so that none finds messages, links or flags of another.
given(Case) ->
    {Pid, Monitor} = spawn_monitor(fun() -> exit({given, text(Case)}) end),
    receive
        {'DOWN', Monitor, process, Pid, {given, Text}} -> Text;
        {'DOWN', Monitor, process, Pid, Reason} -> io_lib:format("its process ends: ~tp", [Reason])
    after ?CASE_MS ->
        exit(Pid, kill),
        io_lib:format("no answer within ~w ms", [?CASE_MS])
    end.

text({Module, Function}) ->
    Given = try Module:Function()
            catch Class:Reason -> {Class, Reason}
            end,
    lists:flatten(io_lib:format("~tp", [Given])).
