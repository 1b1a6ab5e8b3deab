%% Functions of random generic instructions, in sequences that the compiler would rarely emit and its validator takes.
%%
%% A function has six x registers and three y registers, which hold terms at the beginning and the end of each step.
%% A step changes some of them; a test that fails goes on behind its step. Labels of a step are atoms until the function
%% is assembled. A case is {assembled, About, Steps, Rows}; each row is the arguments of a call.
-module(differ_instructions).

-export([make/0, assembly/2, smaller/1, run/1]).

-import(differ_random, [pick/1, weighted/1, chance/1, below/1]).

-define(LIVE, 6).
-define(ROOM, 3).
%% Where a step's tests fail to.
-define(NEXT, {f, next}).

make() ->
    Steps = [step() || _ <- lists:seq(1, 5 + below(20))],
    {assembled, "instructions", Steps, [[value(), value(), value()] || _ <- lists:seq(1, 12)]}.

%% The cases with a step or a row less.
smaller({assembled, About, Steps, Rows}) ->
    [{assembled, About, Fewer, Rows} || Fewer <- fewer(Steps)] ++ [{assembled, About, Steps, Fewer} || Fewer <- fewer(Rows)].

fewer([_]) -> [];
fewer(List) ->
    Half = length(List) div 2,
    [lists:sublist(List, Half), lists:nthtail(Half, List)]
        ++ [lists:sublist(List, At) ++ lists:nthtail(At + 1, List) || At <- lists:seq(0, length(List) - 1)].

%% What test/0 of an assembled module calls.
run(Rows) ->
    [try apply(differ_case, f, Row)
     catch Class:Reason:Stack -> {Class, Reason, [{F, A} || {differ_case, F, A, _} <- Stack]}
     end || Row <- Rows].

%% The module in the form that the assembler takes.
assembly(Steps, Rows) ->
    {Code, Labels} = lists:mapfoldl(fun numbered/2, 9, Steps),
    Test = [{label, 1}, {func_info, {atom, differ_case}, {atom, test}, 0}, {label, 2},
            {move, {literal, Rows}, {x, 0}}, {call_ext_only, 1, {extfunc, ?MODULE, run, 1}}],
    F = [{label, 3}, {func_info, {atom, differ_case}, {atom, f}, 3}, {label, 4}, {allocate, ?ROOM, 3},
         {move, {x, 0}, {y, 0}}, {move, {x, 1}, {y, 1}}, {move, {integer, 7}, {y, 2}}, {move, {literal, {a, <<"bc">>}}, {x, 3}},
         {move, nil, {x, 4}}, {move, {x, 2}, {x, 5}} | lists:append(Code)],
    G = [{label, 5}, {func_info, {atom, differ_case}, {atom, g}, 1}, {label, 6}, {bif, element, {f, 7}, [{integer, 1}, {x, 0}], {x, 0}},
         return, {label, 7}, {test, is_atom, {f, 8}, [{x, 0}]}, {jump, {f, 5}}, {label, 8}, return],
    All = [{x, X} || X <- lists:seq(0, ?LIVE - 1)] ++ [{y, Y} || Y <- lists:seq(0, ?ROOM - 1)],
    End = [{test_heap, length(All) + 1, ?LIVE}, {put_tuple2, {x, 0}, {list, All}}, {deallocate, ?ROOM}, return],
    {differ_case, [{test, 0}, {f, 3}, {g, 1}], [], #{},
     [{function, test, 0, 2, Test}, {function, f, 3, 4, F ++ End}, {function, g, 1, 6, G}], Labels}.

numbered(Step, First) ->
    Names = lists:uniq([Name || {label, Name} <- Step]),
    Numbers = maps:from_list(lists:enumerate(First, Names)),
    ByName = #{Name => Number || Number := Name <- Numbers},
    {[labelled(Instruction, ByName) || Instruction <- Step], First + length(Names)}.

labelled({Tag, Name}, ByName) when (Tag =:= f orelse Tag =:= label), is_atom(Name) -> {Tag, map_get(Name, ByName)};
labelled({literal, _} = Literal, _) -> Literal;
labelled(Tuple, ByName) when is_tuple(Tuple) -> list_to_tuple(labelled(tuple_to_list(Tuple), ByName));
labelled(List, ByName) when is_list(List) -> [labelled(Element, ByName) || Element <- List];
labelled(Other, _) -> Other.

value() ->
    Parsed = fun(Text) ->
                     {ok, Tokens, _} = erl_scan:string(unicode:characters_to_list([Text, "."])),
                     {ok, Term} = erl_parse:parse_term(Tokens),
                     Term
             end,
    weighted([{6, fun() -> Parsed(differ_random:integer()) end},
              {2, fun() -> pick([1, -1]) * ((1 bsl pick([58, 59, 60, 63, 64])) + pick([-1, 0, 1])) end},
              {2, fun() -> Parsed(differ_random:float()) end}, {2, fun() -> Parsed(differ_random:atom()) end},
              {4, fun() -> <<(rand:uniform(1 bsl 64)):(pick([8, 16, 24, 40, 64, 80, 7, 13, 33]))>> end},
              {2, fun() -> list_to_tuple([value() || _ <- lists:seq(1, below(4))]) end},
              {2, fun() -> [value() || _ <- lists:seq(1, below(4))] end}, {1, fun() -> [a | value()] end},
              {2, fun() -> #{pick([1, a, {1}, <<"k">>]) => value() || _ <- lists:seq(1, below(4))} end},
              {1, fun() -> maps:from_keys(lists:seq(1, 40), a) end}]).

%% Operands.

x() -> {x, below(?LIVE)}.
y() -> {y, below(?ROOM)}.
reg() -> case chance(75) of true -> x(); false -> y() end.
source() -> case chance(75) of true -> reg(); false -> constant(value()) end.

%% Two registers that are not the same.
two() ->
    case {reg(), reg()} of
        {Same, Same} -> two();
        Both -> Both
    end.

constant([]) -> nil;
constant(Atom) when is_atom(Atom) -> {atom, Atom};
constant(Integer) when is_integer(Integer), abs(Integer) < 1 bsl 59 -> {integer, Integer};
constant(Term) -> {literal, Term}.

%% Where an operation raises, or goes on.
fail() -> case chance(10) of true -> {f, 0}; false -> ?NEXT end.

step() -> (pick([fun move/0, fun swap/0, fun arithmetic/0, fun arithmetic/0, fun arithmetic/0, fun compare/0, fun compare/0, fun type/0, fun select/0, fun arity/0,
                 fun cons/0, fun uncons/0, fun tuple/0, fun untuple/0, fun bif/0, fun bif/0, fun boolean/0, fun floats/0, fun map/0, fun unmap/0, fun match/0, fun match/0,
                 fun match/0, fun old_match/0, fun create/0, fun create/0, fun call/0, fun heap/0]))() ++ [{label, next}].

move() -> [{move, source(), reg()} || _ <- lists:seq(0, below(4))].

swap() ->
    {A, B} = two(),
    pick([[{swap, A, B}], [{move, A, x()}, {move, B, y()}, {swap, A, B}]]).

arithmetic() ->
    Binary = fun() -> {gc_bif, pick(['+', '-', '*', 'div', 'rem', 'band', 'bor', 'bxor']), fail(), ?LIVE, [source(), source()], reg()} end,
    pick([[Binary()], [Binary(), Binary()],
          [{gc_bif, pick(['bsl', 'bsr']), fail(), ?LIVE, [source(), {integer, below(70) - 3}], reg()}],
          [{gc_bif, pick(['bnot', '-', abs, '+']), fail(), ?LIVE, [source()], reg()}],
          [{gc_bif, pick([trunc, round, floor, ceil, float]), fail(), ?LIVE, [source()], reg()}]]).

%% Jumps over something, or falls into it.
compare() ->
    Test = pick([is_lt, is_ge, is_eq, is_ne, is_eq_exact, is_ne_exact]),
    [{test, Test, ?NEXT, [source(), source()]} | move()].

type() ->
    Test = pick([is_integer, is_float, is_number, is_atom, is_boolean, is_pid, is_port, is_reference, is_nil, is_list, is_nonempty_list, is_tuple, is_binary, is_bitstr,
                 is_map, is_function]),
    pick([[{test, Test, ?NEXT, [reg()]} | move()], [{test, is_function2, ?NEXT, [reg(), source()]} | move()],
          [{test, is_tagged_tuple, ?NEXT, [reg(), 2, {atom, a}]} | move()]]).

%% Values and where each goes: all of one kind, as the loader wants them.
select() ->
    Reg = reg(),
    {Test, Values} = pick([{is_integer, [{integer, Value} || Value <- lists:seq(1, 2 + below(8))]},
                           {is_integer, [{integer, Value} || Value <- [-7, 3, 16, 255, 1 bsl 40, (1 bsl 59) - 1]]},
                           {is_atom, [{atom, Value} || Value <- [a, b, ok, true, undefined]]},
                           {is_float, [{float, Value} || Value <- [1.0, 0.5, -1.0]]}]),
    Labels = [list_to_atom("case" ++ integer_to_list(Index)) || Index <- lists:seq(1, length(Values))],
    List = lists:append([[Value, {f, Label}] || {Value, Label} <- lists:zip(Values, Labels)]),
    Cases = [[{label, Label}, {move, source(), reg()}, {jump, ?NEXT}] || Label <- Labels],
    [{test, Test, ?NEXT, [Reg]}, {select_val, Reg, ?NEXT, {list, List}} | lists:append(Cases)].

arity() ->
    Reg = reg(),
    [{test, is_tuple, ?NEXT, [Reg]}, {select_tuple_arity, Reg, ?NEXT, {list, [1, {f, one}, 2, {f, two}, 3, {f, two}]}},
     {label, one}, {get_tuple_element, Reg, 0, reg()}, {jump, ?NEXT}, {label, two}, {get_tuple_element, Reg, 1, reg()}].

cons() ->
    Count = 1 + below(3),
    [{test_heap, 2 * Count, ?LIVE} | [{put_list, source(), source(), reg()} || _ <- lists:seq(1, Count)]].

uncons() ->
    Reg = reg(),
    {A, B} = two(),
    [{test, is_nonempty_list, ?NEXT, [Reg]},
     pick([{get_list, Reg, A, B}, {get_hd, Reg, A}, {get_tl, Reg, B}])].

tuple() ->
    Elements = [source() || _ <- lists:seq(1, below(6))],
    case Elements of
        [] -> [{move, {literal, {}}, reg()}];
        _ -> [{test_heap, length(Elements) + 1, ?LIVE}, {put_tuple2, reg(), {list, Elements}}]
    end.

untuple() ->
    {Reg, To} = two(),
    Arity = 1 + below(3),
    [{test, is_tuple, ?NEXT, [Reg]}, {test, test_arity, ?NEXT, [Reg, Arity]}
     | [{get_tuple_element, Reg, Index, To} || Index <- lists:seq(0, below(Arity))]].

bif() ->
    pick([[{bif, pick([hd, tl, tuple_size, map_size, node]), fail(), [reg()], reg()}], [{bif, element, fail(), [source(), reg()], reg()}],
          [{gc_bif, pick([length, byte_size, bit_size, map_size, size]), fail(), ?LIVE, [reg()], reg()}],
          [{bif, map_get, fail(), [source(), reg()], reg()}], [{bif, is_map_key, fail(), [source(), reg()], reg()}],
          [{bif, pick([min, max]), {f, 0}, [source(), source()], reg()}], [{bif, self, {f, 0}, [], reg()}],
          [{gc_bif, binary_part, fail(), ?LIVE, [reg(), {integer, 0}, {integer, below(3)}], reg()}]]).

boolean() ->
    pick([[{bif, pick(['=:=', '=/=', '==', '/=', '<', '>', '>=', '=<']), {f, 0}, [source(), source()], reg()}],
          [{bif, pick([is_integer, is_atom, is_tuple, is_list, is_map, is_binary, is_float, is_number, is_boolean, is_bitstring, is_function]), {f, 0}, [source()], reg()}],
          [{bif, pick(['and', 'or', 'xor']), fail(), [source(), source()], reg()}], [{bif, 'not', fail(), [reg()], reg()}]]).

floats() ->
    {A, B} = two(),
    Operation = fun() -> {bif, pick([fadd, fsub, fmul, fdiv]), {f, 0}, [{fr, pick([0, 1])}, {fr, pick([0, 1])}], {fr, pick([0, 1, 2])}} end,
    [{test, is_float, ?NEXT, [A]}, {test, pick([is_number, is_integer]), ?NEXT, [B]}, {fmove, A, {fr, 0}}, {fconv, B, {fr, 1}}, {fmove, A, {fr, 2}}]
        ++ [Operation() || _ <- lists:seq(0, below(3))]
        ++ pick([[], [{bif, fnegate, {f, 0}, [{fr, 2}], {fr, 0}}]])
        ++ [{test_heap, {alloc, [{words, 0}, {floats, 2}, {funs, 0}]}, ?LIVE}, {fmove, {fr, pick([0, 2])}, A}, {fmove, {fr, pick([0, 2])}, B}].

%% Keys differ from each other.
keys() -> lists:uniq([constant(pick([1, a, b, <<"k">>, {1}, 1 bsl 64, 40, 1.0])) || _ <- lists:seq(0, below(3))]).

map() ->
    Reg = reg(),
    [{test, is_map, ?NEXT, [Reg]}, {pick([put_map_assoc, put_map_assoc, put_map_assoc, put_map_exact]), {f, 0}, Reg, reg(), ?LIVE, {list, lists:append([[Key, source()] || Key <- keys()])}}].

unmap() ->
    {Reg, To} = two(),
    [{test, is_map, ?NEXT, [Reg]},
     pick([{get_map_elements, ?NEXT, Reg, {list, [constant(pick([1, a, 17, {1}])), To]}}, {test, has_map_fields, ?NEXT, Reg, {list, keys()}},
           {get_map_elements, ?NEXT, Reg, {list, [pick([x(), y()]), To]}}])].

-define(CONTEXT, {x, ?LIVE}).

%% The segments of a match, and the bits that these need.
match() ->
    Segments = [segment() || _ <- lists:seq(0, below(4))],
    Bits = lists:sum([Of || {Of, _} <- Segments]),
    Ensure = pick([{ensure_at_least, Bits, pick([1, 1, 8])}, {ensure_exactly, Bits}]),
    Tail = case Ensure of
               {ensure_at_least, _, Unit} -> pick([[], [{get_tail, ?LIVE + 1, Unit, x()}]]);
               _ -> []
           end,
    Again = pick([[], [{bs_get_tail, ?CONTEXT, reg(), ?LIVE + 1}], [{test, bs_test_tail2, ?NEXT, [?CONTEXT, 0]} | move()],
                  [{bs_match, ?NEXT, ?CONTEXT, {commands, [{ensure_at_least, 8, 1}, {integer, ?LIVE + 1, {literal, []}, 8, 1, x()}]}}]]),
    [{test, bs_start_match3, ?NEXT, ?LIVE, [reg()], ?CONTEXT}, {bs_match, ?NEXT, ?CONTEXT, {commands, [Ensure | [Command || {_, Command} <- Segments] ++ Tail]}} | Again].

segment() ->
    Size = pick([1, 3, 4, 5, 7, 8, 8, 8, 12, 16, 16, 24, 32, 40, 48, 56, 59, 60, 64]),
    Flags = pick([[], [], [signed], [little], [signed, little]]),
    weighted([{5, fun() -> {Size, {integer, ?LIVE + 1, {literal, Flags}, Size, 1, x()}} end},
              {1, fun() -> {Size, {skip, Size}} end}, {1, fun() -> {8, {'=:=', nil, 8, below(256)}} end},
              {1, fun() -> {16, {binary, ?LIVE + 1, {literal, []}, 2, 8, x()}} end},
              {1, fun() -> {5, {binary, ?LIVE + 1, {literal, []}, 5, 1, x()}} end}]).

%% Instructions that match a segment each, go back, or take characters.
old_match() ->
    Flags = {field_flags, pick([[], [little], [signed]])},
    Field = fun() ->
                    pick([{test, bs_get_integer2, ?NEXT, ?LIVE + 2, [?CONTEXT, {integer, pick([1, 7, 8, 16, 33, 64])}, 1, Flags], x()},
                          {test, bs_get_float2, ?NEXT, ?LIVE + 2, [?CONTEXT, {integer, pick([16, 32, 64])}, 1, {field_flags, []}], x()},
                          {test, bs_get_binary2, ?NEXT, ?LIVE + 2, [?CONTEXT, pick([{integer, 1}, {atom, all}]), 8, {field_flags, []}], x()},
                          {test, bs_skip_bits2, ?NEXT, [?CONTEXT, {integer, pick([1, 8])}, 1, {field_flags, []}]},
                          {test, bs_get_utf8, ?NEXT, ?LIVE + 2, [?CONTEXT, {field_flags, []}], x()}, {test, bs_skip_utf8, ?NEXT, [?CONTEXT, ?LIVE + 2, {field_flags, []}]},
                          {test, bs_get_utf16, ?NEXT, ?LIVE + 2, [?CONTEXT, {field_flags, pick([[], [little]])}], x()},
                          {test, bs_match_string, ?NEXT, [?CONTEXT, 8, {string, <<"b">>}]}])
            end,
    [{test, bs_start_match3, ?NEXT, ?LIVE, [reg()], ?CONTEXT}, {bs_get_position, ?CONTEXT, {x, ?LIVE + 1}, ?LIVE + 1}]
        ++ [Field() || _ <- lists:seq(0, below(3))] ++ pick([[], [{bs_set_position, ?CONTEXT, {x, ?LIVE + 1}}, Field()]]).

create() ->
    Segments = lists:append([created(Index) || Index <- lists:seq(1, 1 + below(4))]),
    %% No size is huge.
    Sizes = [{test, is_lt, ?NEXT, [Size, {integer, 1000}]} || {Tag, _} = Size <- sizes(Segments), Tag =:= x orelse Tag =:= y],
    Sizes ++ [{bs_create_bin, fail(), 0, ?LIVE, 1, x(), {list, Segments}}].

sizes([_, _, _, _, _, Size | Segments]) -> [Size | sizes(Segments)];
sizes([]) -> [].

created(Index) ->
    Flags = pick([nil, nil, {literal, [little]}, {literal, [signed]}]),
    pick([[{atom, integer}, Index, 1, Flags, source(), {integer, pick([1, 4, 8, 8, 13, 16, 24, 32, 60, 64, 70])}], [{atom, integer}, Index, 1, Flags, source(), reg()],
          [{atom, binary}, Index, pick([8, 1]), nil, reg(), {atom, all}], [{atom, binary}, Index, 8, nil, reg(), {integer, below(3)}],
          [{atom, float}, Index, 1, Flags, source(), {integer, pick([16, 32, 64])}], [{atom, pick([utf8, utf16, utf32])}, Index, 0, nil, reg(), {atom, undefined}],
          [{atom, string}, Index, 8, nil, {string, <<"text">>}, {integer, 4}]]).

%% Calls keep what is in y registers.
call() ->
    Call = pick([{call, 1, {f, 6}}, {call, 1, {f, 6}}, {call_ext, 1, {extfunc, differ_case, g, 1}}, {call_ext, 1, {extfunc, erlang, phash2, 1}},
                 {call_ext, 1, {extfunc, erlang, pick([tuple_to_list, list_to_tuple, integer_to_list]), 1}}]),
    Back = [{move, pick([{x, 0}, {y, 0}, {y, 1}, {y, 2}, {integer, Number}]), {x, Number}} || Number <- lists:seq(1, ?LIVE - 1)],
    [{move, {x, below(?LIVE)}, {y, 2}}, {move, reg(), {x, 0}}, Call | Back].

heap() -> [{test_heap, pick([1, 50, 3000]), ?LIVE}, {move, reg(), reg()}].
