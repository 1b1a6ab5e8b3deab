%% Traced programs: the messages of a tracer, and counts of calls and words.
-module(differ_traces).

-export([make/0]).

-import(differ_random, [pick/1, below/1, commas/1]).

make() ->
    put(names, 0),
    {Asked, Functions} = (pick([fun messages/0, fun counts/0]))(),
    Steps = commas([["{", pick(["f", "h", "f", "g", "again"]), ", ", arguments(), "}"] || _ <- lists:seq(0, 1 + below(4))]),
    Source = ["-record(r, {a = 1, b, c = []}).\n-record #n{a = 1, b = none}.\n",
              "test() -> traced(", Asked, ", [", Steps, "]).\n",
              Functions, "g(X) -> again(1, X).\nagain(N, X) when N > 0 -> [X | again(N - 1, X)];\nagain(_, _) -> [].\n"],
    differ_form:compiled("trace", Source, helpers()).

functions() ->
    [differ_modules:function(Name, 1, 2) || Name <- ["f", "h"]].

%% OTP charges a function that raises for words that others allocate behind the exception. So no function handles one.
functions_without_handlers() ->
    Functions = functions(),
    case [Word || Word <- ["try ", "catch "], string:find(Functions, Word) =/= nomatch] of
        [] -> Functions;
        _ -> functions_without_handlers()
    end.

arguments() ->
    differ_random:term(1).

messages() ->
    Flags = commas([Flag || Flag <- ["call", "return_to", "arity", "send", "'receive'", "procs", "set_on_spawn", "silent",
                                     "set_on_link"], Flag =:= "call" orelse below(4) =:= 0]),
    Patterns = commas([pattern() || _ <- lists:seq(0, below(3))]),
    {["{messages, [", Flags, "], [", Patterns, "]}"], functions()}.

pattern() ->
    ["{", pick(["{differ_case, '_', '_'}", "{differ_case, f, 1}", "{differ_case, h, 1}", "{differ_case, again, 2}",
                "{lists, '_', '_'}", "{erlang, length, 1}", "{maps, '_', '_'}"]),
     ", ", match(), ", [", pick(["local", "local", "global"]), "]}"].

match() ->
    pick(["true", "[{'_', [], [{return_trace}]}]", "[{'_', [], [{exception_trace}]}]", "[{['$1'], [], [{message, '$1'}]}]",
          "[{['$1'], [{is_integer, '$1'}], []}]", "[{'_', [], [{message, {caller}}]}]", "[{'_', [], [{message, false}]}]",
          "[{['$1'], [{is_tuple, '$1'}], [{return_trace}]}, {'_', [], [{message, {caller_line}}]}]",
          "[{'_', [], [{silent, true}]}]", "[{'_', [], [{message, {current_stacktrace}}]}]", "[{'_', [], [{trace, [send], [arity]}]}]",
          "[{['$1'], [{'>', '$1', 1}], [{exception_trace}, {message, {{a, '$1'}}}]}]", "[]", "false"]).

%% Several measures of a function, too: their calls are counted together.
counts() ->
    Kinds = pick(["call_count", "call_memory", "call_memory", "call_count, call_memory", "call_time, call_memory",
                  "call_count, call_time", "call_count, call_time, call_memory"]),
    Functions = case string:find(Kinds, "call_memory") of
                    nomatch -> functions();
                    _ -> functions_without_handlers()
                end,
    {["{counts, [", Kinds, "]}"], Functions}.

%% A program is run by a process of its own, whose messages and counts are told in its own order.
helpers() ->
    "traced({messages, Flags, Patterns}, Steps) ->
         Session = trace:session_create(differ, self(), []),
         Set = [trace:function(Session, Function, Match, Kind) || {Function, Match, Kind} <- Patterns],
         {Pid, Monitor} = run(Steps),
         1 = trace:process(Session, Pid, true, Flags),
         Pid ! go,
         receive {'DOWN', Monitor, process, Pid, _} -> ok end,
         Delivered = trace:delivered(Session, Pid),
         receive {trace_delivered, Pid, Delivered} -> ok end,
         trace:session_destroy(Session),
         {Set, messages(Pid)};
     traced({counts, Kinds}, Steps) ->
         Session = trace:session_create(differ, self(), []),
         Count = trace:function(Session, {differ_case, '_', '_'}, true, Kinds),
         {Pid, Monitor} = run(Steps),
         1 = trace:process(Session, Pid, true, [call]),
         Pid ! go,
         receive {'DOWN', Monitor, process, Pid, _} -> ok end,
         Counts = [{Function, counted(trace:info(Session, {differ_case, Function, Arity}, Kind))}
                   || {Function, Arity} <- [{f, 1}, {h, 1}, {g, 1}, {again, 2}], Kind <- Kinds],
         trace:session_destroy(Session),
         {is_integer(Count), Counts}.
     counted({call_time, [{_, Calls, _, _}]}) -> Calls;
     counted({_, [{_, Calls, Words}]}) -> {Calls, Words};
     counted({_, Count}) -> Count.
     run(Steps) ->
         Parent = self(),
         Runs = spawn_monitor(fun() ->
                                      Parent ! ready,
                                      receive go -> ok end,
                                      [try call(Step) catch _:_ -> raised end || Step <- Steps],
                                      exit(done)
                              end),
         receive ready -> ok end,
         Runs.
     call({f, X}) -> f(X);
     call({h, X}) -> h(X);
     call({g, X}) -> g(X);
     call({again, X}) -> again(3, X).
     messages(Pid) ->
         receive
             Message when element(1, Message) =:= trace, element(2, Message) =:= Pid ->
                 [list_to_tuple(tl(tl(tuple_to_list(Message)))) | messages(Pid)];
             _ ->
                 messages(Pid)
         after 0 ->
             []
         end.
     ".
