%% Modules of random functions: patterns, guards, binaries, comprehensions, exceptions, receive, funs, maps, records,
%% numbers of every size. Expressions mostly have the type that their place wants.
-module(differ_modules).

-export([make/0, function/3, scope/1]).

-import(differ_random, [pick/1, weighted/1, chance/1, below/1, many/2, commas/1]).

-define(DEPTH, 4).

%% Types of expressions; any is one of them.
-define(TYPES, [int, int, float, atom, bool, list, list, bin, bin, bits, map, tuple, rec, func]).

make() ->
    put(names, 0),
    {Calls, Kinds} = differ_kinds:functions(1 + below(3)),
    All = Calls ++ [call() || _ <- lists:seq(1, 2 + below(4))],
    Source = ["-record(r, {a = 1, b, c = []}).\n-record #n{a = 1, b = none}.\n", Kinds,
              "test() ->\n    [", lists:join(",\n     ", All), "].\n",
              function("f", 2, ?DEPTH), helper(),
              "again(0, _) -> [];\nagain(N, X) when N > 0 -> [", expression(any, [{int, "N"}, {any, "X"}], 2),
              " | again(N - 1, X)].\n"],
    differ_form:compiled("module", Source, differ_kinds:helpers()).

call() ->
    Arguments = commas([expression(any, [], 1), expression(any, [], 1)]),
    pick([["try f(", Arguments, ") catch Class:Reason -> {Class, Reason} end"],
          ["try f(", Arguments, ") catch _:Reason:Stack -> {Reason, lists:uniq([{F, A} || {differ_case, F, A, _} <- Stack])} end"]]).

%% A function of so many arguments.
function(Name, Arity, Depth) ->
    Clauses = [clause(Name, Arity, Depth) || _ <- lists:seq(0, below(3))],
    Last = [Name, "(", commas([fresh_only() || _ <- lists:seq(1, Arity)]), ") -> ", last_body(Arity, Depth)],
    [lists:join(";\n", Clauses ++ [Last]), ".\n"].

last_body(_, Depth) -> body(any, [], Depth).

helper() ->
    Name = fresh(),
    ["g(", Name, ") -> ", body(any, [{any, Name}], 2), ".\n"].

clause(Name, Arity, Depth) ->
    {Patterns, Scope} = patterns(Arity, []),
    [Name, "(", commas(Patterns), ")", when_(Scope), " -> ", body(any, Scope, Depth)].

patterns(Count, Scope) ->
    lists:mapfoldl(fun(_, Before) -> pattern(pick(?TYPES), Before, 2) end, Scope, lists:seq(1, Count)).

%% Variables of these names and any type.
scope(Names) -> [{any, Name} || Name <- Names].

fresh() ->
    Number = get(names) + 1,
    put(names, Number),
    "V" ++ integer_to_list(Number).

fresh_only() -> "_" ++ fresh().

bind(Type, Scope) ->
    Name = fresh(),
    {Name, [{Type, Name} | Scope]}.

%% The text of a pattern, and the scope with its variables.
pattern(Type, Scope, 0) ->
    weighted([{4, fun() -> bind(Type, Scope) end}, {1, fun() -> {"_", Scope} end}, {1, fun() -> {constant(Type), Scope} end}]);
pattern(Type, Scope, Depth) ->
    weighted([{3, fun() -> pattern(Type, Scope, 0) end}, {3, fun() -> structured(Type, Scope, Depth - 1) end},
              {1, fun() -> aliased(Type, Scope, Depth - 1) end}]).

constant(map) -> "#{}";
constant(any) -> constant(pick(?TYPES));
constant(Type) -> literal(Type).

aliased(Type, Scope, Depth) ->
    {Name, With} = bind(Type, Scope),
    {Pattern, All} = structured(Type, With, Depth),
    {[Name, " = ", Pattern], All}.

structured(list, Scope, Depth) ->
    {Head, Scope1} = pattern(pick(?TYPES), Scope, Depth),
    {Tail, Scope2} = pattern(list, Scope1, Depth),
    pick([{["[", Head, " | ", Tail, "]"], Scope2}, {["[", Head, ", ", Tail, "]"], Scope2}, {"[]", Scope}]);
structured(tuple, Scope, Depth) ->
    {Patterns, All} = lists:mapfoldl(fun(_, Before) -> pattern(pick(?TYPES), Before, Depth) end, Scope,
                                     lists:seq(1, below(4))),
    {["{", commas(Patterns), "}"], All};
structured(map, Scope, Depth) ->
    {Pattern, All} = pattern(any, Scope, Depth),
    {["#{", pick(["1", "<<\"k\">>", "{1, 2}"]), " := ", Pattern, "}"], All};
structured(rec, Scope, Depth) ->
    {Pattern, All} = pattern(any, Scope, Depth),
    {["#", pick(["r", "n"]), "{", pick(["a", "b"]), " = ", Pattern, "}"], All};
structured(Bin, Scope, _) when Bin =:= bin; Bin =:= bits ->
    binary_pattern(Bin, Scope);
structured(Type, Scope, _) ->
    pattern(Type, Scope, 0).

binary_pattern(Type, Scope) ->
    {Segments, All} = lists:mapfoldl(fun(_, Before) -> segment_pattern(Before) end, Scope, lists:seq(1, below(3))),
    {Name, Whole} = bind(Type, All),
    Tail = case Type of bin -> "/binary"; bits -> "/bits" end,
    case chance(70) of
        true -> {["<<", commas(Segments ++ [[Name, Tail]]), ">>"], Whole};
        false -> {["<<", commas(Segments), ">>"], All}
    end.

segment_pattern(Scope) ->
    {Name, With} = bind(int, Scope),
    weighted([{4, fun() -> {[Name, pick([":8", ":16", ":4", ":1", ":13/little", ":24/signed", ":64", ":70/signed-little",
                                         ":32/native", ":3/unit:8"])], With} end},
              {1, fun() -> {["_", pick([":8", ":5"])], Scope} end},
              {1, fun() -> {[Name, "/utf8"], With} end},
              {1, fun() -> {Float, Floats} = bind(float, Scope), {[Float, pick([":64/float", ":32/float-little", ":16/float"])], Floats} end},
              {1, fun() -> {Binary, Binaries} = bind(bin, Scope), {[Binary, pick([":1/binary", ":2/bytes"])], Binaries} end},
              {1, fun() -> {[literal(int), pick(["", ":16"])], Scope} end},
              {2, fun() -> case variables(int, Scope) of
                               [] -> {[Name, ":7"], With};
                               Sizes -> {[Name, ":(", pick(Sizes), pick([" band 31", ""]), ")"], With}
                           end end}]).

when_(Scope) ->
    case chance(40) of
        true -> [" when ", guard(Scope, 2)];
        false -> ""
    end.

guard(Scope, Depth) ->
    weighted([{3, fun() -> [test(), "(", operand(any, Scope, Depth), ")"] end},
              {4, fun() -> [operand(int, Scope, Depth), pick([" > ", " < ", " =:= ", " =/= ", " == ", " >= ", " =< ", " /= "]),
                            operand(any, Scope, Depth)] end},
              {1, fun() -> ["is_record(", operand(any, Scope, 0), ", r)"] end},
              {1, fun() -> ["is_map_key(", operand(any, Scope, 0), ", ", operand(map, Scope, 0), ")"] end},
              {1, fun() -> [guard(Scope, 0), pick([", ", "; "]), guard(Scope, 0)] end},
              {1, fun() -> ["(", guard_test(Scope), ") ", pick(["andalso", "orelse", "and", "or", "xor"]), " (", guard_test(Scope), ")"] end},
              {1, fun() -> ["not (", guard_test(Scope), ")"] end}]).

guard_test(Scope) -> [test(), "(", operand(any, Scope, 1), ")"].

test() ->
    pick(["is_integer", "is_atom", "is_list", "is_tuple", "is_binary", "is_bitstring", "is_map", "is_float", "is_number",
          "is_function", "is_pid", "is_boolean", "is_reference"]).

%% What may stand in a guard.
operand(Type, Scope, 0) ->
    case variables(Type, Scope) of
        [] -> literal(Type);
        Names -> weighted([{3, fun() -> pick(Names) end}, {1, fun() -> literal(Type) end}])
    end;
operand(int, Scope, Depth) ->
    Any = fun(Type) -> operand(Type, Scope, Depth - 1) end,
    weighted([{4, fun() -> Any(int) end},
              {2, fun() -> ["(", Any(int), pick([" + ", " - ", " * ", " div ", " rem ", " band ", " bor ", " bxor "]), Any(int), ")"] end},
              {1, fun() -> [pick(["length(", "hd("]), Any(list), ")"] end},
              {1, fun() -> [pick(["tuple_size(", "size("]), Any(tuple), ")"] end},
              {1, fun() -> [pick(["byte_size(", "bit_size("]), Any(bits), ")"] end},
              {1, fun() -> ["map_size(", Any(map), ")"] end},
              {1, fun() -> ["element(", Any(int), ", ", Any(tuple), ")"] end},
              {1, fun() -> [pick(["abs", "-", "bnot "]), "(", Any(int), ")"] end}]);
operand(Type, Scope, Depth) when Type =:= any -> operand(pick([int, list, tuple, atom, float]), Scope, Depth - 1);
operand(Type, Scope, _) -> operand(Type, Scope, 0).

%% Names of the variables that have a type, or may have it.
variables(any, Scope) -> [Name || {_, Name} <- Scope];
variables(Type, Scope) ->
    case [Name || {Of, Name} <- Scope, Of =:= Type] of
        [] -> [Name || {any, Name} <- Scope];
        Names -> Names
    end.

literal(any) -> literal(pick(?TYPES));
literal(int) -> differ_random:integer();
literal(float) -> differ_random:float();
literal(atom) -> differ_random:atom();
literal(bool) -> pick(["true", "false"]);
literal(list) -> pick(["[]", "[1, 2, 3]", "[a]", "\"text\"", "[1 | 2]"]);
literal(bin) -> pick(["<<>>", "<<1, 2, 3>>", "<<\"abcdef\">>", "<<255, 254, 0>>"]);
literal(bits) -> pick(["<<1:1>>", "<<5:3>>", "<<\"ab\", 1:4>>"]);
literal(map) -> pick(["#{}", "#{1 => 2}"]);
literal(tuple) -> pick(["{}", "{1}", "{1, 2}"]);
literal(rec) -> pick(["{}", "[]"]);
literal(func) -> "nofun".

%% Expressions one behind the other, the last one of a type.
body(Type, Scope, Depth) ->
    {Before, All} = lists:mapfoldl(fun(_, Known) -> statement(Known, Depth - 1) end, Scope, lists:seq(1, below(3))),
    [[[Statement, ",\n    "] || Statement <- Before], expression(Type, All, Depth)].

statement(Scope, Depth) ->
    Type = pick(?TYPES),
    weighted([{4, fun() ->
                          {Name, With} = bind(Type, Scope),
                          {[Name, " = ", expression(Type, Scope, Depth)], With}
                  end},
              {1, fun() ->
                          Value = expression(Type, Scope, Depth),
                          {Pattern, With} = pattern(Type, Scope, 1),
                          {[Pattern, " = ", Value], With}
                  end},
              {1, fun() -> {["self() ! ", expression(any, Scope, 1)], Scope} end},
              {1, fun() -> {["put(", dictionary_key(), ", ", expression(any, Scope, 1), ")"], Scope} end}]).

%% The smallest process dictionary has a bucket for each of these. Where two keys share a bucket, `put/2` takes more
%% memory; which keys do depends on the numbers of atoms.
dictionary_key() -> integer_to_list(rand:uniform(8) - 1).

expression(Type, Scope, Depth) when Depth =< 0 ->
    case variables(Type, Scope) of
        [] -> literal(Type);
        Names -> weighted([{4, fun() -> pick(Names) end}, {1, fun() -> literal(Type) end}])
    end;
expression(any, Scope, Depth) ->
    expression(pick(?TYPES), Scope, Depth);
expression(Type, Scope, Depth) ->
    weighted([{3, fun() -> expression(Type, Scope, 0) end},
              {10, fun() -> of_type(Type, Scope, Depth - 1) end},
              {6, fun() -> control(Type, Scope, Depth - 1) end},
              {1, fun() -> expression(any, Scope, Depth - 1) end}]).

%% What gives a term of a type.
of_type(Type, Scope, Depth) ->
    make_of(Type, fun(Of) -> expression(Of, Scope, Depth) end, Scope, Depth).

make_of(int, E, _, _) ->
    weighted([{6, fun() -> ["(", E(int), pick([" + ", " - ", " * ", " div ", " rem ", " band ", " bor ", " bxor "]), E(int), ")"] end},
              {2, fun() -> ["(", E(int), pick([" bsl ", " bsr "]), "(", E(int), " band 127))"] end},
              {1, fun() -> [pick(["- ", "bnot ", "+ "]), "(", E(int), ")"] end},
              {1, fun() -> [pick(["length", "hd", "erlang:crc32", "iolist_size"]), "(", E(list), ")"] end},
              {1, fun() -> [pick(["byte_size", "bit_size", "size", "binary:decode_unsigned", "erlang:adler32"]), "(", E(bin), ")"] end},
              {1, fun() -> [pick(["tuple_size", "size"]), "(", E(tuple), ")"] end},
              {1, fun() -> [pick(["round", "trunc", "floor", "ceil"]), "(", E(float), ")"] end},
              {1, fun() -> ["map_size(", E(map), ")"] end},
              {1, fun() -> ["max(", E(int), ", ", E(int), ")"] end},
              {1, fun() -> ["erlang:phash2(", E(any), ")"] end}]);
make_of(float, E, _, _) ->
    pick([["(", E(float), pick([" + ", " - ", " * ", " / "]), E(float), ")"], ["(", E(int), " / ", E(int), ")"],
          ["float(", E(int), ")"], ["- ", "(", E(float), ")"], ["(", E(float), " * ", E(int), ")"],
          ["math:sqrt(abs(", E(float), "))"], ["abs(", E(float), ")"]]);
make_of(atom, E, _, _) -> pick([["list_to_atom(\"x\" ++ integer_to_list(", E(int), "))"], ["element(1, ", E(tuple), ")"], E(bool)]);
make_of(bool, E, _, _) ->
    pick([["(", E(any), pick([" =:= ", " == ", " < ", " >= ", " =/= ", " /= "]), E(any), ")"],
          ["(", E(bool), pick([" and ", " or ", " xor ", " andalso ", " orelse "]), E(bool), ")"],
          ["not ", "(", E(bool), ")"], [test(), "(", E(any), ")"], ["is_function(", E(func), ", 1)"],
          ["is_map_key(", E(int), ", ", E(map), ")"], ["lists:member(", E(any), ", ", E(list), ")"]]);
make_of(list, E, Scope, Depth) ->
    weighted([{3, fun() -> ["[", commas([E(any) || _ <- lists:seq(1, below(4))]), "]"] end},
              {2, fun() -> ["[", E(any), " | ", E(list), "]"] end},
              {4, fun() -> comprehension("[", "]", [], E, Scope, Depth) end},
              {2, fun() -> ["(", E(list), pick([" ++ ", " -- "]), E(list), ")"] end},
              {1, fun() -> ["tl(", E(list), ")"] end},
              {1, fun() -> [pick(["lists:reverse", "lists:sort", "lists:usort"]), "(", E(list), ")"] end},
              {1, fun() -> ["lists:map(", E(func), ", ", E(list), ")"] end},
              {1, fun() -> [pick(["tuple_to_list(", "tuple_to_list("]), E(tuple), ")"] end},
              {1, fun() -> ["binary_to_list(", E(bin), ")"] end},
              {1, fun() -> ["integer_to_list(", E(int), ")"] end},
              {1, fun() -> ["lists:sort(maps:to_list(", E(map), "))"] end},
              {1, fun() -> ["again(", integer_to_list(below(6)), ", ", E(any), ")"] end}]);
make_of(bin, E, Scope, Depth) ->
    weighted([{5, fun() -> ["<<", commas([segment(E) || _ <- lists:seq(0, below(3))]), ">>"] end},
              {3, fun() -> ["<<(", E(bin), ")/binary, ", segment(E), ">>"] end},
              {3, fun() -> comprehension("<<", ">>", [], E, Scope, Depth) end},
              {1, fun() -> ["list_to_binary(", E(list), ")"] end},
              {1, fun() -> ["integer_to_binary(", E(int), ")"] end},
              {1, fun() -> ["binary:part(", E(bin), ", ", E(int), ", ", E(int), ")"] end},
              {1, fun() -> ["term_to_binary(", E(any), ", [deterministic])"] end}]);
make_of(bits, E, _, _) ->
    pick([["<<", segment(E), ", ", integer_to_list(below(8)), ":", integer_to_list(1 + below(9)), ">>"],
          ["<<(", E(bits), ")/bits, ", segment(E), ">>"], E(bin)]);
make_of(map, E, Scope, Depth) ->
    weighted([{4, fun() -> ["#{", differ_random:key(1), " => ", E(any), ", ", differ_random:key(1), " => ", E(any), "}"] end},
              {3, fun() -> ["(", E(map), ")#{", E(int), pick([" => ", " => ", " := "]), E(any), "}"] end},
              {2, fun() -> comprehension("#{", "}", map, E, Scope, Depth) end},
              {1, fun() -> ["maps:merge(", E(map), ", ", E(map), ")"] end},
              {1, fun() -> ["maps:from_list([{I, ", E(any), "} || I <- lists:seq(1, ", pick(["3", "33", "70"]), ")])"] end},
              {1, fun() -> ["maps:remove(", E(int), ", ", E(map), ")"] end}]);
make_of(tuple, E, _, _) ->
    pick([["{", commas([E(any) || _ <- lists:seq(1, below(4))]), "}"], ["setelement(", E(int), ", ", E(tuple), ", ", E(any), ")"],
          ["list_to_tuple(", E(list), ")"], ["{", E(any), ", ", E(any), "}"], ["erlang:append_element(", E(tuple), ", ", E(any), ")"]]);
make_of(rec, E, _, _) ->
    pick([["#r{a = ", E(any), "}"], ["(", E(rec), ")#r{b = ", E(any), "}"], ["#n{b = ", E(any), "}"],
          ["(", E(rec), ")#n{a = ", E(any), "}"], ["#r{}"], ["(", E(rec), ")#r.a"], ["(", E(rec), ")#n.b"]]);
make_of(func, _, Scope, Depth) ->
    Name = fresh(),
    pick([["fun(", Name, ") -> ", body(any, [{any, Name} | Scope], min(Depth, 2)), " end"], ["fun g/1"],
          ["fun erlang:", pick(["abs", "length", "is_atom", "hd"]), "/1"]]);
make_of(Type, E, _, _) -> E(Type).

segment(E) ->
    weighted([{4, fun() -> ["(", E(int), ")", pick([":8", ":16", ":4", ":64/little", ":13", "", ":70", ":24/signed"])] end},
              {1, fun() -> ["(", E(int), ")/utf8"] end}, {1, fun() -> ["(", E(int), ")/utf16"] end},
              {1, fun() -> ["(", E(float), "):", pick(["64", "32", "16"]), "/float"] end},
              {2, fun() -> ["(", E(bin), ")/binary"] end}, {1, fun() -> ["(", E(bits), ")/bits"] end},
              {1, fun() -> ["(", E(bin), "):(", E(int), " band 3)/binary"] end},
              {1, fun() -> ["(", E(int), "):(", E(int), " band 63)"] end}]).

%% A comprehension with one or two generators and now and then a filter.
comprehension(Open, Close, What, _, Scope, Depth) ->
    {Generators, All} = generators(Scope, Depth),
    Filter = case chance(30) of
                 true -> [", ", pick([expression(bool, All, 1), [expression(any, All, 0), " > 1"]])];
                 false -> ""
             end,
    Each = case {What, Open} of
               {map, _} -> [expression(int, All, 1), " => ", expression(any, All, 1)];
               {_, "<<"} -> ["<<", segment(fun(Type) -> expression(Type, All, 1) end), ">>"];
               {_, "["} -> expression(any, All, min(Depth, 2))
           end,
    [Open, Each, " || ", Generators, Filter, Close].

generators(Scope, Depth) ->
    {First, Scope1} = generator(Scope, Depth),
    case below(4) of
        0 ->
            {Second, Scope2} = generator(Scope1, 1),
            {[First, ", ", Second], Scope2};
        1 ->
            %% Both go in step, and neither knows the other's variables.
            {Second, Scope2} = generator(Scope, 1),
            {[First, " && ", Second], Scope2 ++ Scope1};
        _ ->
            {First, Scope1}
    end.

generator(Scope, Depth) ->
    Below = min(Depth, 2),
    weighted([{4, fun() ->
                          {Pattern, All} = pattern(pick(?TYPES), Scope, 1),
                          {[Pattern, pick([" <- ", " <- ", " <:- "]), expression(list, Scope, Below)], All}
                  end},
              {2, fun() ->
                          {Name, All} = bind(int, Scope),
                          {["<<", Name, pick([":8", ":4", ":16/little", ":3"]), ">>", pick([" <= ", " <:= "]),
                            expression(bin, Scope, Below)], All}
                  end},
              {1, fun() ->
                          {Key, Scope1} = bind(any, Scope),
                          {Value, Scope2} = bind(any, Scope1),
                          {[Key, " := ", Value, " <- maps:iterator(", expression(map, Scope, Below), ", ordered)"], Scope2}
                  end}]).

%% What decides, binds, raises and catches.
control(Type, Scope, Depth) ->
    weighted([{4, fun() -> case_of(Type, Scope, Depth) end},
              {1, fun() -> ["if ", guard(Scope, 1), " -> ", body(Type, Scope, Depth), "; true -> ", expression(Type, Scope, Depth), " end"] end},
              {3, fun() -> try_of(Type, Scope, Depth) end},
              {1, fun() -> ["(catch ", expression(Type, Scope, Depth), ")"] end},
              {1, fun() -> ["begin ", body(Type, Scope, Depth), " end"] end},
              {1, fun() -> receive_of(Type, Scope, Depth) end},
              {1, fun() -> ["(begin ", expression(func, Scope, Depth), " end)(", expression(any, Scope, Depth), ")"] end},
              {1, fun() -> ["g(", expression(any, Scope, Depth), ")"] end},
              {1, fun() -> maybe_of(Type, Scope, Depth) end},
              {1, fun() -> [pick(["throw(", "error(", "exit("]), expression(any, Scope, 1), ")"] end}]).

clauses(Type, Scope, Depth) ->
    Clauses = [begin
                   {Pattern, All} = pattern(pick(?TYPES), Scope, 2),
                   [Pattern, when_(All), " -> ", body(Type, All, Depth)]
               end || _ <- lists:seq(0, below(3))],
    lists:join("; ", Clauses).

case_of(Type, Scope, Depth) ->
    ["case ", expression(any, Scope, Depth), " of ", clauses(Type, Scope, Depth),
     pick(["", ["; _ -> ", expression(Type, Scope, Depth)]]), " end"].

try_of(Type, Scope, Depth) ->
    {Name, With} = bind(any, Scope),
    Of = case chance(30) of
             true -> [" of ", clauses(Type, Scope, Depth)];
             false -> ""
         end,
    Catch = [" catch ", pick(["error:", "throw:", "exit:", "_:"]), Name, when_(With), " -> ", expression(Type, With, Depth)],
    After = [" after ", pick([["put(", dictionary_key(), ", "], "self() ! ("]), expression(any, Scope, 1), ")"],
    ["try ", body(Type, Scope, Depth), Of, pick([Catch, [Catch, After], After]), " end"].

receive_of(Type, Scope, Depth) ->
    ["receive ", clauses(Type, Scope, Depth), " after ", pick(["0", "1"]), " -> ", expression(Type, Scope, Depth), " end"].

maybe_of(Type, Scope, Depth) ->
    {Pattern, All} = pattern(pick(?TYPES), Scope, 1),
    ["maybe ", Pattern, " ?= ", expression(any, Scope, Depth), ", ", expression(Type, All, Depth),
     pick(["", [" else ", clauses(Type, Scope, 1)]]), " end"].
