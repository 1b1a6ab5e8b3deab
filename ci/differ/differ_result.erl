%% What a case gives, as lines that are the same on every run: pids, references, ports and funs have no identity in them.
-module(differ_result).

-export([lines/1, measured/1, text/1]).

%% Longest text of a line; of more, a digest is told.
-define(LONGEST, 4000).

lines(Test) ->
    given(ended(Test)).

%% The same, and behind it what it has cost.
measured(Test) ->
    {reductions, Before} = process_info(self(), reductions),
    Ended = ended(Test),
    given(Ended) ++ [cost(Before, process_info(self(), [reductions, total_heap_size, stack_size, garbage_collection]))].

ended(Test) ->
    try {value, Test()} catch Class:Reason:Stack -> {raised, Class, Reason, Stack} end.

given({value, Value}) ->
    text(Value);
given({raised, Class, Reason, Stack}) ->
    [["raises ", atom_to_list(Class)] | text(Reason)]
        ++ [["at ", text(Frame)] || Frame <- frames(Stack)]
        ++ [["says ", text(said(Reason, Stack))]].

cost(Before, [{reductions, After}, {total_heap_size, Heap}, {stack_size, Stack}, {garbage_collection, Collections}]) ->
    io_lib:format("costs ~w reductions, ~w words of heap, ~w of stack, ~w minor collections",
                  [After - Before, Heap, Stack, proplists:get_value(minor_gcs, Collections)]).

%% A term on one line.
text(Term) ->
    Text = unicode:characters_to_list(io_lib:format("~0ktp", [plain(Term)])),
    Same = lists:foldl(fun({Pattern, As}, Before) ->
                               re:replace(Before, Pattern, As, [global, unicode, {return, list}])
                       end, Text, named(Text)),
    case length(Same) of
        Long when Long > ?LONGEST ->
            Digest = binary:encode_hex(erlang:md5(unicode:characters_to_binary(Same))),
            [[lists:sublist(Same, ?LONGEST), io_lib:format("... ~w characters, ~s", [Long, Digest])]];
        _ ->
            [Same]
    end.

%% Texts of what has an identity, within texts.
named(Text) ->
    case lists:member($<, Text) of
        true ->
            [{"#Ref<[0-9.]+>", "#Ref<>"}, {"#Port<[0-9.]+>", "#Port<>"}, {"#Fun<[^>]*>", "#Fun<>"},
             {"<[0-9]+\\.[0-9]+\\.[0-9]+>", "<pid>"}];
        false ->
            []
    end.

plain(Pid) when is_pid(Pid), Pid =:= self() -> '$self';
plain(Pid) when is_pid(Pid) -> '$pid';
plain(Reference) when is_reference(Reference) -> '$reference';
plain(Port) when is_port(Port) -> '$port';
plain(Fun) when is_function(Fun) ->
    case erlang:fun_info(Fun, type) of
        {type, external} -> Fun;
        {type, local} -> {'$fun', element(2, erlang:fun_info(Fun, arity))}
    end;
plain({bad_generators, Left}) when is_tuple(Left) -> {bad_generators, list_to_tuple([plain(left(Part)) || Part <- tuple_to_list(Left)])};
plain([Head | Tail]) -> [plain(Head) | plain(Tail)];
plain(Tuple) when is_tuple(Tuple) -> list_to_tuple(plain(tuple_to_list(Tuple)));
plain(Map) when is_map(Map) -> #{plain(Key) => plain(Value) || Key := Value <- Map};
plain(Term) -> Term.

%% What is left of a generator. How much of a map its iterator holds depends on the reductions that are left.
left(Part) ->
    try {left, maps:to_list(Part)} catch error:_ -> Part end.

%% The frames of the case's own code and of what it calls.
frames(Stack) ->
    [{Module, Function, Arguments, [Info || {Key, _} = Info <- Infos, Key =/= file]}
     || {Module, Function, Arguments, Infos}
            <- lists:takewhile(fun({Module, _, _, _}) -> Module =/= differ andalso Module =/= differ_result end, Stack),
        Module =/= erl_eval].

%% What the error's own module says of it.
said(Reason, [{_, _, _, Infos} | _] = Stack) ->
    case lists:keyfind(error_info, 1, Infos) of
        {error_info, #{module := Module} = Info} ->
            Function = maps:get(function, Info, format_error),
            try Module:Function(Reason, Stack)
            catch Class:Why -> {Class, Why}
            end;
        _ -> nothing
    end;
said(_, _) ->
    nothing.
