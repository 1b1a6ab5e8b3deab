%% Cases as abstract forms: made from text, and made smaller.
-module(differ_form).

-export([evaluated/2, compiled/2, compiled/3, smaller/1]).

%% Most cases that are a step smaller.
-define(MOST, 3000).

%% A case whose body is this text.
evaluated(About, Body) ->
    {evaluated, About, parse(["test() ->\n", Body, ".\n"]), []}.

%% A case of functions, test/0 among them, and of records.
compiled(About, Source) ->
    compiled(About, Source, []).

compiled(About, Source, Helpers) ->
    {compiled, About, parse(Source), parse(Helpers)}.

parse(Source) ->
    Text = unicode:characters_to_list(Source),
    case erl_scan:string(Text, {1, 1}, [{reserved_word_fun, fun reserved/1}]) of
        {ok, Tokens, _} -> forms(Tokens, Text);
        Error -> error({Error, Text})
    end.

reserved('maybe') -> true;
reserved('else') -> true;
reserved(Word) -> erl_scan:reserved_word(Word).

forms([], _) -> [];
forms(Tokens, Text) ->
    {Form, [Dot | Rest]} = lists:splitwith(fun(Token) -> element(1, Token) =/= dot end, Tokens),
    case erl_parse:parse_form(Form ++ [Dot]) of
        {ok, Parsed} -> [Parsed | forms(Rest, Text)];
        {error, {{Line, _}, _, _}} = Error -> error({Error, lists:nth(Line, string:split(Text, "\n", all))})
    end.

%% Every case that is this one with one thing left out or made simpler, the smallest first.
smaller({How, About, Functions, Helpers}) ->
    Size = size_of(Functions),
    Simpler = [{size_of(Less), Less} || Less <- lists:usort(less(Functions)), is_sound(How, Less, Helpers)],
    Kept = [Less || {Smaller, Less} <- lists:sort(Simpler), Smaller < Size],
    [{How, About, Less, Helpers} || Less <- lists:sublist(Kept, ?MOST)].

%% Would the compiler take it?
is_sound(How, Functions, Helpers) ->
    has_test(Functions) andalso not is_bodiless(Functions) andalso
        try erl_lint:module([{attribute, 1, module, differ_case}, {attribute, 1, export, [{test, 0}]}
                             | Functions ++ Helpers]) of
            {ok, _} -> How =:= compiled orelse length(Functions) =:= 1;
            _ -> false
        catch
            _:_ -> false
        end.

%% Is there a clause without expressions? The compiler would not say so.
is_bodiless({clause, _, _, _, []}) -> true;
is_bodiless(Tuple) when is_tuple(Tuple) -> is_bodiless(tuple_to_list(Tuple));
is_bodiless([Head | Tail]) -> is_bodiless(Head) orelse is_bodiless(Tail);
is_bodiless(_) -> false.

has_test(Functions) ->
    lists:any(fun({function, _, test, 0, [{clause, _, [], [], _}]}) -> true;
                 (_) -> false
              end, Functions).

%% Where a term is big, where it holds big numbers and where it holds many things.
size_of([Head | Tail]) -> 1 + size_of(Head) + size_of(Tail);
size_of({Line, Column}) when is_integer(Line), is_integer(Column) -> 0;
size_of({integer, _, 0}) -> 2;
size_of({integer, _, Number}) when is_integer(Number) -> 3 + bits(abs(Number));
size_of({atom, _, ok}) -> 2;
size_of(Tuple) when is_tuple(Tuple) -> 2 + size_of(tuple_to_list(Tuple));
size_of(Atom) when is_atom(Atom) -> 1;
size_of(Number) when is_integer(Number) -> 1 + bits(abs(Number)) div 8;
size_of(_) -> 1.

bits(0) -> 0;
bits(Number) -> 1 + bits(Number bsr 1).

less([]) -> [];
less(List) when is_list(List) -> halves(List) ++ without(List) ++ in_list(List);
less({Line, Column}) when is_integer(Line), is_integer(Column) -> [];
less({integer, Where, Number}) when is_integer(Number), Number > 0 ->
    [{integer, Where, Less} || Less <- [0, Number div 2, Number - 1]];
less({Tag, Where, _} = Leaf) when Tag =:= var; Tag =:= nil; Tag =:= char; Tag =:= atom ->
    [{nil, Where} || Leaf =/= {atom, Where, ok}];
less({nil, _}) -> [];
less(Tuple) when is_tuple(Tuple) -> promoted(Tuple) ++ simple(Tuple) ++ in_tuple(Tuple);
less(_) -> [].

halves(List) when length(List) > 3 ->
    {First, Second} = lists:split(length(List) div 2, List),
    [First, Second];
halves(_) -> [].

without(List) ->
    try
        [lists:sublist(List, Before) ++ lists:nthtail(Before + 1, List) || Before <- lists:seq(0, length(List) - 1)]
    catch
        error:badarg -> []
    end.

in_list([Head | Tail]) when is_list(Tail) ->
    [[Less | Tail] || Less <- less(Head)] ++ [[Head | Less] || Less <- in_list(Tail)];
in_list(_) -> [].

in_tuple(Tuple) ->
    [setelement(Index, Tuple, Less) || Index <- lists:seq(2, tuple_size(Tuple)),
                                       Less <- less(element(Index, Tuple))].

%% What stands within an expression, in its place.
promoted(Tuple) ->
    [Node || Part <- tl(tuple_to_list(Tuple)), Node <- within(Part)].

within(List) when is_list(List), length(List) < 50 -> lists:append([within(Part) || Part <- List]);
within({clause, _, _, _, Body}) -> Body;
within({bin_element, _, Value, _, _}) -> [Value];
within({Tag, _, _} = Node) when is_atom(Tag) -> [Node];
within(Node) when is_tuple(Node), tuple_size(Node) > 3, is_atom(element(1, Node)) -> [Node];
within(_) -> [].

simple(Tuple) ->
    Where = element(2, Tuple),
    case is_tuple(Where) of
        true -> [{nil, Where}, {integer, Where, 0}, {atom, Where, ok}];
        false -> []
    end.
