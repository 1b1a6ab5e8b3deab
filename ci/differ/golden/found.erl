%% What random programs have found.
-module(found).

-export([appended_bits_are_copied_whole/0, captured_names/0, damaged_arity/0, empty_match_specifications/0, read_arities/0,
         unalias_of_other_references/0, words_of_caught_errors/0, words_of_failing_appends/0, words_of_failing_bifs/0,
         words_of_put/0]).

%% A binary that has been appended to is a part of a larger one, which a message takes along.
appended_bits_are_copied_whole() ->
    Appended = [append(list_to_binary([1])), append(<<>>)],
    self() ! Appended,
    Received = receive Message -> Message end,
    [{erts_debug:flat_size(Binary), binary:referenced_byte_size(Binary)} || Binary <- Appended ++ Received].

append(Binary) -> <<Binary/binary, 2>>.

unalias_of_other_references() ->
    Monitor = monitor(process, self()),
    Other = spawn(fun() -> receive after infinity -> ok end end),
    Watched = monitor(process, Other),
    Given = [unalias(make_ref()), unalias(Monitor), unalias(Watched), unalias(monitor(process, Other, [{alias, demonitor}]))],
    exit(Other, kill),
    Given.

%% A group's name is an atom, a binary or a string, and the empty list is none of them.
captured_names() ->
    [outcome(fun() -> re:internal_run("a", "(?<n>a)", [{capture, [Name]}], false) end)
     || Name <- ["n", n, <<"n">>, '', <<>>, [[]], [0], [], [$n | x]]].

%% A fun of another arity than that of its module's fun is one that is not loaded.
damaged_arity() ->
    <<Before:6/binary, 0, After/binary>> = term_to_binary(fun() -> ok end),
    Other = binary_to_term(<<Before/binary, 1, After/binary>>),
    [is_function(Other, 1), is_function(Other, 0), erlang:fun_info(Other, arity)].

%% How many bytes the arity of an external fun takes is the writer's choice.
read_arities() ->
    [outcome(fun() -> binary_to_term(<<131, 113, 119, 1, $a, 119, 1, $b, Arity/binary>>) end)
     || Arity <- [<<97, 0>>, <<97, 255>>, <<98, 0:32>>, <<98, 255:32>>, <<98, -1:32>>, <<106>>, <<110, 1, 0, 7>>]].

%% A traversal takes one, and nothing else does.
empty_match_specifications() ->
    [begin
         Table = ets:new(table, [Type]),
         true = ets:insert(Table, {1, a}),
         Given = [outcome(fun() -> apply(ets, Function, [Table, [] | More]) end)
                  || {Function, More} <- [{select, []}, {select, [1]}, {select_reverse, []}, {select_count, []},
                                          {select_delete, []}, {select_replace, []}]],
         {Type, Given, ets:tab2list(Table)}
     end || Type <- [set, ordered_set]]
        ++ [outcome(fun() -> ets:match_spec_compile([]) end),
            outcome(fun() -> erlang:match_spec_test({1}, [], table) end)].

outcome(Fun) ->
    try Fun()
    catch Class:Reason -> {Class, Reason}
    end.

%% What an exception takes is counted as its function's: more of it where a module tells more about the error.
words_of_failing_bifs() ->
    words_of([fails_in_instruction, fails_in_bif, fails_in_arithmetic, fails_by_itself, fails_with_info], fun fails/2).

%% Reason, arguments and information of an error are kept in a tuple.
words_of_caught_errors() ->
    words_of([catches_arguments, catches_info, catches_no_info], fun catches/2).

words_of(Functions, Call) ->
    Session = trace:session_create(words, self(), []),
    [trace:function(Session, {?MODULE, Function, 1}, true, [call_memory]) || Function <- Functions],
    trace:function(Session, {?MODULE, caught, 0}, true, [call_memory]),
    {Pid, Monitor} = spawn_monitor(fun() ->
                                           receive go -> ok end,
                                           lists:foreach(fun(Function) -> caught(Call, Function, {}) end, Functions)
                                   end),
    1 = trace:process(Session, Pid, true, [call]),
    Pid ! go,
    receive {'DOWN', Monitor, process, Pid, _} -> ok end,
    Words = [{Function, Count}
             || Function <- Functions,
                {call_memory, [{_, 1, Count}]} <- [trace:info(Session, {?MODULE, Function, 1}, call_memory)]],
    true = trace:session_destroy(Session),
    Words.

%% OTP charges a function that raises until a traced one is called: that is at once here.
caught(Call, First, Second) -> try Call(First, Second) catch _:_ -> caught() end.
caught() -> ok.

catches(catches_arguments, Term) -> catches_arguments(Term);
catches(catches_info, Term) -> catches_info(Term);
catches(catches_no_info, Term) -> catches_no_info(Term).

catches_arguments(Term) -> try error(Term, [Term]) catch _:_ -> ok end.
catches_info(Term) -> try error(Term, none, [{error_info, #{cause => Term}}]) catch _:_ -> ok end.
catches_no_info(Term) -> try error(Term, [], []) catch _:_ -> ok end.

fails(fails_in_instruction, Term) -> fails_in_instruction(Term);
fails(fails_in_bif, Term) -> fails_in_bif(Term);
fails(fails_in_arithmetic, Term) -> fails_in_arithmetic(Term);
fails(fails_by_itself, Term) -> fails_by_itself(Term);
fails(fails_with_info, Term) -> fails_with_info(Term).

fails_in_instruction(Term) -> [element(1, Term)].
fails_in_bif(Term) -> [atom_to_list(Term)].
fails_in_arithmetic(Term) -> [1 + Term].
fails_by_itself(Term) -> [error(Term)].
fails_with_info(Term) -> [error(Term, none, [{error_info, #{cause => Term}}])].

%% Elements are copied before the end of a list that is improper.
words_of_failing_appends() ->
    Session = trace:session_create(words, self(), []),
    trace:function(Session, {?MODULE, append_to_nothing, 1}, true, [call_memory]),
    trace:function(Session, {?MODULE, caught, 0}, true, [call_memory]),
    Words = [begin
                 Go = fun() -> receive go -> ok end, caught(fun apply/2, fun append_to_nothing/1, [List]) end,
                 % OTP copies as many as there is room for on the heap.
                 {Pid, Monitor} = spawn_opt(Go, [monitor, {min_heap_size, 1000}]),
                 1 = trace:process(Session, Pid, true, [call]),
                 Pid ! go,
                 receive {'DOWN', Monitor, process, Pid, _} -> ok end,
                 {call_memory, [{Pid, 1, Count}]} = trace:info(Session, {?MODULE, append_to_nothing, 1}, call_memory),
                 trace:function(Session, {?MODULE, append_to_nothing, 1}, restart, [call_memory]),
                 Count
             end || List <- [[1 | 2], [1, 2, 3 | 4], lists:seq(1, 100) ++ x, x]],
    true = trace:session_destroy(Session),
    Words.

append_to_nothing(List) ->
    [List ++ ok].

%% The process dictionary has an immediate put into the pair that is there.
words_of_put() ->
    Session = trace:session_create(words, self(), []),
    Values = [1, [], atom, {tuple}, [list], 1.0, 1 bsl 80, self()],
    trace:function(Session, {?MODULE, puts, 1}, true, [call_memory]),
    Words = [begin
                 {Pid, Monitor} = spawn_monitor(fun() ->
                                                        put(key, Before),
                                                        receive go -> ok end,
                                                        puts(After)
                                                end),
                 1 = trace:process(Session, Pid, true, [call]),
                 Pid ! go,
                 receive {'DOWN', Monitor, process, Pid, _} -> ok end,
                 {call_memory, [{Pid, 1, Count}]} = trace:info(Session, {?MODULE, puts, 1}, call_memory),
                 trace:function(Session, {?MODULE, puts, 1}, restart, [call_memory]),
                 Count
             end || Before <- Values, After <- Values],
    true = trace:session_destroy(Session),
    Words.

puts(Value) ->
    put(key, Value),
    ok.
