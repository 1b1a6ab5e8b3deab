%% Functions of kinds that random expressions seldom make, or never reach: each is small, and is called with many
%% arguments, so that all its clauses run and all its errors are raised. The compiler knows no types of the arguments.
-module(differ_kinds).

-export([functions/1, helpers/0]).

-import(differ_random, [pick/1, weighted/1, chance/1, below/1, commas/1]).

-define(KINDS, [fun arithmetic/1, fun arithmetic/1, fun typed/1, fun floats/1, fun guards/1, fun guards/1, fun select/1,
                fun bits/1, fun bits/1, fun bits/1, fun utf/1, fun sized/1, fun loop_of_bits/1, fun build/1, fun append/1,
                fun map_match/1, fun map_update/1, fun map_large/1, fun map_loop/1, fun raise/1, fun rethrow/1, fun after_/1,
                fun deep/1, fun deep_error/1, fun turns/1, fun apply_/1, fun funs/1, fun messages/1, fun reply/1,
                fun dictionary/1, fun lists_/1, fun keys/1, fun record/1, fun wide/1, fun nested/1, fun tuples/1]).

%% So many functions: the texts of calls of them, and of what they are, exports first.
functions(Count) ->
    Made = [made("k" ++ integer_to_list(Number)) || Number <- lists:seq(1, Count)],
    Exports = lists:append([Names || {_, _, Names} <- Made]),
    {[Calls || {Calls, _, _} <- Made], ["-export([", commas(Exports), "]).\n" | [[Text, ".\n"] || {_, Text, _} <- Made]]}.

made(Name) ->
    {Rows, Text, Exports} = case (pick(?KINDS))(Name) of
                                {_, _, _} = All -> All;
                                {Arguments, Function} -> {Arguments, Function, []}
                            end,
    Arity = integer_to_list(length(hd(Rows))),
    {["each(fun ", Name, "/", Arity, ", [", commas([["[", commas(Row), "]"] || Row <- Rows]), "])"], Text, Exports}.

%% What all modules have. The trace of an exception has its lines; of libraries only that they are there.
helpers() ->
    "each(F, All) -> [try apply(F, Each) catch Class:Reason:Stack -> {Class, Reason, places(Stack)} end || Each <- All].\n"
    "places(Stack) -> lists:uniq([{F, A, proplists:get_value(line, I)} || {differ_case, F, A, I} <- Stack]).\n"
    "apart(F) ->\n"
    "    {Pid, Monitor} = spawn_monitor(fun() -> exit({gave, F()}) end),\n"
    "    receive {'DOWN', Monitor, process, Pid, Reason} -> Reason end.\n"
    "drain() -> receive Any -> [Any | drain()] after 0 -> [] end.\n".

%% Arguments: so many rows of texts, with these columns.
rows(Count, Columns) -> [[Column() || Column <- Columns] || _ <- lists:seq(1, Count)].

number() -> weighted([{5, fun differ_random:integer/0}, {1, fun edge/0}, {1, fun differ_random:float/0}, {1, fun any/0}]).
whole() -> weighted([{3, fun differ_random:integer/0}, {2, fun edge/0}]).
any() -> differ_random:term(1).

%% What takes long where each safepoint is a collection is seldom.
seldom(Mostly, Seldom) -> pick(case chance(95) of true -> Mostly; false -> Seldom end).

%% Where small integers end.
edge() ->
    Near = (1 bsl 59) + pick([-2, -1, 0, 1]),
    integer_to_list(pick([Near, -Near, Near div 2, -Near div 3, 1 bsl 30, (1 bsl 63) - 1, -(1 bsl 63)])).

bytes() ->
    weighted([{3, fun differ_random:binary/0}, {2, fun differ_random:bits/0}, {1, fun any/0},
              {3, fun() -> io_lib:format("<<~w:~w>>", [below(1 bsl 60), pick([8, 16, 24, 32, 40, 64, 128, 7, 13, 65])]) end},
              {1, fun() -> io_lib:format("binary:part(<<\"0123456789abcdefghij\">>, ~w, ~w)", [below(8), below(12)]) end},
              {1, fun() -> ["begin <<_:", integer_to_list(below(9)), ", Cut/bits>> = <<\"0123456789\">>, Cut end"] end}]).

arithmetic(Name) ->
    Names = ["A", "B", "C"],
    Steps = [[Var, " = ", term(Before)] || {Var, Before} <- [{"D", Names}, {"E", ["D" | Names]}, {"F", ["D", "E" | Names]}]],
    {rows(6, [fun number/0, fun number/0, fun whole/0]),
     [Name, "(A, B, C) ->\n    ", lists:join(",\n    ", Steps), ",\n    {D, E, F}"]}.

%% An operation on variables or numbers.
term(Names) ->
    Operand = fun() -> case chance(75) of true -> pick(Names); false -> ["(", differ_random:integer(), ")"] end end,
    weighted([{9, fun() -> [Operand(), pick([" + ", " - ", " * ", " div ", " rem ", " band ", " bor ", " bxor "]), Operand()] end},
              {1, fun() -> [Operand(), " bsl (", Operand(), " rem 100)"] end},
              {1, fun() -> [Operand(), pick([" bsr ", " / "]), Operand()] end},
              {1, fun() -> [pick(["-", "bnot ", "abs"]), "(", Operand(), ")"] end},
              {1, fun() -> [pick(["max", "min"]), "(", Operand(), ", ", Operand(), ")"] end},
              {2, fun() -> [Operand(), pick([" < ", " =< ", " == ", " =:= ", " /= ", " =/= ", " > ", " >= "]), Operand()] end}]).

%% The compiler knows the ranges of what is computed.
typed(Name) ->
    Limit = integer_to_list(pick([10, 255, 1 bsl 16, 1 bsl 31, 1 bsl 58, 1 bsl 59])),
    Low = pick(["0", "1", "-5", "-" ++ Limit]),
    In = fun(Var) -> ["is_integer(", Var, "), ", Low, " =< ", Var, ", ", Var, " < ", Limit] end,
    {rows(6, [fun whole/0, fun whole/0]),
     [Name, "(A, B) when ", In("A"), ", ", In("B"), " ->\n    C = ", term(["A", "B"]), ",\n    D = ", term(["A", "B"]),
      ",\n    {C, D, is_integer(C) andalso C + 1, ", term(["A", "C"]), "};\n", Name, "(A, _) when is_integer(A) -> ", term(["A"]),
      ";\n", Name, "(_, B) -> {other, B}"]}.

floats(Name) ->
    Operator = fun() -> pick([" + ", " - ", " * ", " / "]) end,
    {rows(5, [fun differ_random:float/0, fun number/0, fun differ_random:float/0]),
     [Name, "(A, B, C) when is_float(A), is_float(C) ->\n    D = A", Operator(), "C", Operator(), "2.5,\n    E = D",
      Operator(), "B,\n    F = -(A", Operator(), "D)", Operator(), pick(["3", "1", "100000000000000000000000"]),
      ",\n    {D, E, F, E", pick([" < ", " == ", " >= "]), "F, ", pick(["trunc", "round", "floor", "ceil"]), "(D)};\n",
      Name, "(A, B, _) -> {A, B}"]}.

guards(Name) ->
    Clause = fun(Number) -> [Name, "(A, B) when ", lists:join(pick([", ", "; "]), [guard() || _ <- lists:seq(0, below(2))]),
                             " -> ", integer_to_list(Number), ";\n"] end,
    {rows(13, [fun() -> differ_random:term(2) end, fun number/0]), [[Clause(Number) || Number <- lists:seq(1, 4)], Name, "(_, _) -> none"]}.

guard() ->
    Compare = pick([" =:= ", " == ", " < ", " >= ", " > ", " =/= "]),
    pick([[pick(["tuple_size", "map_size", "byte_size", "bit_size", "length", "abs", "float", "round", "trunc", "floor", "ceil",
                 "size", "hd", "-", "bnot "]), "(A)", Compare, pick(["B", "1", "3", "8", "2.0"])],
          ["element(", pick(["1", "2", "B", "0"]), ", A)", Compare, pick(["B", "a", "1"])],
          ["is_map_key(B, A)"], ["is_map_key(A, #{B => 1, 1 => 2})"], ["map_get(B, A)", Compare, "A"],
          ["map_get(B, #{0 => true, 1 => false, 2 => x})"], ["tl(A)", Compare, "[]"], ["hd(tl(A))", Compare, "B"],
          ["is_function(A, ", pick(["B", "1", "2"]), ")"], ["is_record(A, ", pick(["r", "a, 2", "n"]), ")"],
          ["node(A) =:= node()"], ["self() =:= A"], ["node() =/= A"], ["binary_part(A, 0, ", pick(["B", "1"]), ") =:= <<\"a\">>"],
          ["(A + B)", Compare, "A"], ["(A band B)", Compare, "0"], ["(A rem 2)", Compare, "B"], ["A =:= B"], ["A", Compare, "B"],
          ["not is_atom(A)"], ["is_list(A) andalso length(A)", Compare, "B"], ["is_tuple(A) orelse A", Compare, "B"],
          ["(is_integer(A) and (A > 3)) or is_binary(A)"], ["is_boolean(A) xor is_number(B)"],
          ["is_", pick(["float", "number", "pid", "port", "reference", "bitstring", "binary", "map", "boolean"]), "(A)"]]).

select(Name) ->
    {Labels, Values} = pick([{lists:seq(3, 3 + below(12)), fun() -> integer_to_list(below(20)) end},
                             {[1, 100, -5, 1 bsl 58, 1 bsl 59, -(1 bsl 59), (1 bsl 59) - 1, 1 bsl 70], fun whole/0},
                             {[a, b, ok, error, true, x, nil], fun any/0},
                             {[1.0, 0.5, a, 1, 2, <<"abc">>, {}, []], fun any/0},
                             {[{}, {1}, {1, 2}, {1, 2, 3}, 7], fun any/0}]),
    Patterns = [case Label of
                    {} -> "{}";
                    Tuple when is_tuple(Tuple) -> ["{", commas(["_" || _ <- tuple_to_list(Tuple)]), "}"];
                    _ -> io_lib:format("~w", [Label])
                end || Label <- Labels],
    {rows(10, [Values]) ++ [[Text] || Text <- ["3", "a", "1.0", "{x}", "{x, y}"]],
     [Name, "(A) ->\n    case A of\n", [["        ", Pattern, " -> {", integer_to_list(below(50)), ", A};\n"] || Pattern <- Patterns],
      "        _ -> other\n    end"]}.

%% Clauses that match parts of bitstrings.
bits(Name) ->
    Clause = fun(Number) ->
                     Segments = [segment(["A", "B", "C", "D"], Index) || Index <- lists:seq(1, 1 + below(4))],
                     {Tail, Rest} = pick([{", T/bits", "T"}, {", T/binary", "T"}, {"", "none"}, {", _/bits", "any"}, {", _/binary", "bytes"}]),
                     Vars = [[$A + Index - 1] || {bound, Index, _} <- Segments],
                     [Name, "(<<", commas([Text || {_, _, Text} <- Segments]), Tail, ">>) -> {", integer_to_list(Number), ", [",
                      commas(Vars), "], ", Rest, "};\n"]
             end,
    {rows(8, [fun bytes/0]), [[Clause(Number) || Number <- lists:seq(1, 1 + below(4))], Name, "(X) -> {none, X}"]}.

segment(Names, Index) ->
    Var = lists:nth(Index, Names),
    Size = integer_to_list(pick([1, 2, 3, 4, 5, 7, 8, 8, 9, 12, 13, 16, 16, 24, 31, 32, 33, 40, 48, 56, 57, 59, 60, 61, 63, 64, 65, 72])),
    Bound = fun(Text) -> {bound, Index, Text} end,
    Other = fun(Text) -> {other, Index, Text} end,
    weighted([{8, fun() -> Bound([Var, ":", Size, pick(["", "", "/signed", "/little", "/little-signed", "/native"])]) end},
              {1, fun() -> Bound([Var, ":", pick(["16", "32", "64"]), pick(["/float", "/float-little"])]) end},
              {1, fun() -> Bound([Var, ":", integer_to_list(below(4)), pick(["/binary", "/bits", "/binary-unit:4", "/bits-unit:3"])]) end},
              {1, fun() -> Bound([Var, pick(["/utf8", "/utf16", "/utf32", "/utf16-little", "/utf32-little"])]) end},
              {1, fun() -> Other(["_:", Size]) end}, {1, fun() -> Other(["_", pick(["/utf8", "/utf16", "/utf32"])]) end},
              {2, fun() -> Other([integer_to_list(below(256)), pick(["", ":4", ":16", ":8/little", "/utf8"])]) end},
              {1, fun() -> Other(pick(["\"ab\"", "\"abc\"", "\"0\"", "\"\x{e5}\"/utf8"])) end}]).

%% Loops over characters of an encoding, whole and broken.
utf(Name) ->
    Encoding = pick(["utf8", "utf16", "utf32", "utf16-little", "utf32-little"]),
    Text = fun() ->
                   Chars = [pick([$a, $z, 16#7f, 16#80, 16#7ff, 16#800, 16#d7ff, 16#e000, 16#ffff, 16#10000, 16#10ffff]) || _ <- lists:seq(1, 1 + below(12))],
                   Broken = pick(["", "", ", 255", ", 16#d8, 0", ", 16#e0, 16#80", ", 1:3", ", 16#f4, 16#90, 16#80, 16#80", ", 16#c3"]),
                   ["<<", commas([[integer_to_list(Char), "/", Encoding] || Char <- Chars]), Broken, ">>"]
           end,
    {rows(4, [Text, fun() -> "[]" end]),
     [Name, "(<<C/", Encoding, ", R/bits>>, Acc) -> ", Name, "(R, [", pick(["C", "<<C/utf8>>", "<<C/utf16>>"]), " | Acc]);\n",
      pick([[Name, "(<<_/", Encoding, ", _/bits>>, Acc) -> {never, Acc};\n"], ""]), Name, "(R, Acc) -> {Acc, R}"]}.

%% Sizes that are matched, or given.
sized(Name) ->
    Of = pick(["/binary", "/bits", "", "/signed", "/binary-unit:3", "/little", "/float"]),
    {rows(6, [fun bytes/0, fun() -> pick(["0", "1", "2", "3", "7", "8", "16", "32", "64", "100", "-1", "a", "1.0", "1 bsl 64"]) end]),
     pick([[Name, "(<<S:", pick(["8", "4", "16"]), ", A:S", Of, ", R/bits>>, _) -> {S, A, R};\n", Name, "(X, S) -> {none, X, S}"],
           [Name, "(X, S) ->\n    case X of\n        <<A:S", Of, ", R/bits>> -> {A, R};\n        <<A:S>> -> A;\n        _ -> none\n    end"],
           [Name, "(X, S) ->\n    <<_:S", pick(["/binary", "/bits", ""]), ", R/bits>> = X,\n    {R, bit_size(R)}"]])}.

loop_of_bits(Name) ->
    Size = pick(["1", "3", "4", "8", "8", "12", "16", "16/little", "24/signed", "32", "2/binary"]),
    {rows(3, [fun bytes/0, fun() -> "0" end]),
     [Name, "(<<", pick(["A:", "A:", "0:1, A:"]), Size, ", R/bits>>, N) -> [{N, ", pick(["A", "R", "is_integer(A)", "<<R/bits>>", "bit_size(R)"]),
      "} | ", Name, "(R, N + 1)];\n", Name, "(R, N) when bit_size(R) ", pick(["< 8", "=:= 0", ">= 0"]), " -> [{N, R}]"]}.

build(Name) ->
    Segments = [pick([["A:", Size, Flags], ["A:B", Flags], ["(A + 1):", Size], ["A", pick(["/utf8", "/utf16", "/utf32", "/utf16-little"])],
                      ["C/bits"], ["C/binary"], ["C:B/binary"], ["C:2/bytes"], ["C:B/bits"], ["A:", pick(["16", "32", "64"]), "/float", pick(["", "-little"])],
                      "\"text\"", "1:1", "0:7", "255", "B:8"])
                || Size <- [integer_to_list(pick([1, 4, 7, 8, 8, 16, 24, 32, 60, 64, 65, 100])) || _ <- lists:seq(0, below(4))],
                   Flags <- [pick(["", "/little", "/signed", "/unit:2", "/little-unit:3"])]],
    {rows(6, [fun number/0, fun() -> pick(["0", "1", "2", "8", "9", "-1", "a", "17", "64"]) end, fun bytes/0]),
     [Name, "(A, B, C) ->\n    X = <<", commas(Segments), ">>,\n    {X, bit_size(X), B}"]}.

%% Binaries that grow at their end, also of two owners.
append(Name) ->
    More = pick(["N:8", "N:16", "(N bsl 3):12", "N/utf8", "\"abc\"", "Acc/bits", "1:1"]),
    {rows(2, [fun() -> integer_to_list(1 + below(case More of "Acc/bits" -> 8; _ -> seldom([10], [90]) end)) end, fun differ_random:binary/0]),
     [Name, "(0, Acc) -> {bit_size(Acc), Acc};\n", Name, "(N, Acc) ->\n    New = <<Acc/bits, ", More, ">>,\n    ",
      pick(["", "_ = <<Acc/bits, 0>>,\n    ", "self() ! {kept, Acc},\n    "]), Name, "(N - 1, New)"]}.

keys_of_maps() -> pick(["a", "b", "1", "2", "1.0", "{1, 2}", "<<\"k\">>", "\"s\"", "[]", "1 bsl 64"]).

a_map() ->
    weighted([{5, fun() -> ["#{", commas([[keys_of_maps(), " => ", differ_random:term(0)] || _ <- lists:seq(1, below(6))]), "}"] end},
              {2, fun() -> ["maps:from_keys(lists:seq(1, ", integer_to_list(20 + below(60)), "), v)"] end}, {1, fun any/0}]).

map_match(Name) ->
    Clause = fun(Number) ->
                     Keys = lists:uniq([keys_of_maps() || _ <- lists:seq(0, below(4))]),
                     Vars = ["V" ++ integer_to_list(Index) || Index <- lists:seq(1, length(Keys))],
                     Pairs = [[Key, " := ", pick([Var, Var, "_", "[_ | _]"])] || {Key, Var} <- lists:zip(Keys, Vars)],
                     Used = [Var || {Var, Pair} <- lists:zip(Vars, Pairs), lists:last(Pair) =:= Var],
                     [Name, "(#{", commas(Pairs), "}) -> {", commas([integer_to_list(Number) | Used]), "};\n"]
             end,
    {rows(6, [fun a_map/0]), [[Clause(Number) || Number <- lists:seq(1, 3)], Name, "(X) -> {none, X}"]}.

map_update(Name) ->
    Pairs = fun() -> commas([[keys_of_maps(), pick([" => ", " => ", " := "]), pick(["B", "A", "{A, B}", "[B]", "1"])] || _ <- lists:seq(0, below(4))]) end,
    {rows(5, [fun a_map/0, fun any/0]),
     [Name, "(A, B) ->\n    C = A#{", Pairs(), "},\n    D = ", pick(["C#{", "A#{", "#{"]), "B => C", pick(["", ", B => 1", ", a => B"]),
      "},\n    {C, ", pick(["D", "maps:size(D)", "is_map_key(B, D)"]), ", ", pick(["C =:= A", "C < D", "maps:get(B, A, none)", "maps:find(a, C)"]), "}"]}.

%% Around and beyond the size where a map becomes a tree.
map_large(Name) ->
    {rows(2, [fun() -> integer_to_list(28 + below(8)) end, fun() -> seldom(["0", "3", "40"], ["300"]) end]),
     [Name, "(N, More) ->\n    Map = #{I => {I, More} || I <- lists:seq(1, N)},\n    All = lists:foldl(fun(I, M) -> M#{I * ",
      pick(["1", "3", "-7", "1.0"]), " => I, last => I} end, Map, lists:seq(1, More)),\n",
      "    Less = lists:foldl(fun maps:remove/2, All, lists:seq(1, N, ", pick(["1", "2", "5"]), ")),\n",
      "    Same = #{K => V || K := V <- All, ", pick(["K =/= 3", "is_integer(K)", "true"]), "},\n",
      "    {map_size(All), map_size(Less), Same =:= All, erlang:phash2(Less), lists:sum([V || _ := V <- Same, is_integer(V)]),\n",
      "     case All of #{7 := X, last := Y} -> {X, Y}; #{7 := X} -> X; _ -> none end, maps:get(", pick(["N", "More", "a"]), ", Less)}"]}.

map_loop(Name) ->
    {rows(2, [fun() -> integer_to_list(below(80)) end, fun a_map/0]),
     [Name, "(0, Map) -> {map_size(Map), erlang:phash2(Map)};\n", Name, "(N, #{", keys_of_maps(), " := V} = Map) -> ", Name,
      "(N - 1, Map#{N => V, ", keys_of_maps(), " => N});\n", Name, "(N, Map) -> ", Name, "(N - 1, Map#{", keys_of_maps(), " => N})"]}.

%% Every way to leave an expression.
raise(Name) ->
    Bad = fun() -> pick(["error(A)", "throw(A)", "exit(A)", "hd(A)", "element(B, A)", "1 + A", "A:nosuch(B)", "nosuch:A(B)", "A(B)", "(fun(X) -> X end)(A, B)",
                         "map_get(A, B)", "A#{B := 1}", "B = A", "case A of B -> same end", "if A > B -> more end", "error(A, [B])",
                         "lists:nth(B, A)", "binary_to_atom(A)", "erlang:raise(error, A, [])", "A#r.a", "A#r{b = 1}", "<<A:B>>", "list_to_integer(A)",
                         "exit(self(), A)", "apply(A, B)", "apply(lists, A, B)", "erlang:nif_error(A)", "length(A)", "begin true = A end"]) end,
    {rows(4, [fun any/0, fun number/0]),
     [Name, "(A, B) ->\n    X = try {A, ", Bad(), "} catch ", pick(["error:E", "throw:E", "_:E", "exit:E", "error:E:_"]), " -> {caught, E} end,\n",
      "    Y = (catch ", pick(["error(A)", "throw(B)", "exit(A)", "{A, B}"]), "),\n",
      "    Z = case Y of {'EXIT', {R, _}} -> R; _ -> Y end,\n    {X, Z, ", Bad(), "}"]}.

rethrow(Name) ->
    {rows(4, [fun any/0, fun number/0]),
     [Name, "(A, B) ->\n    try\n        try [A | ", pick(["hd(B)", "error({A, B})", "throw(A)", "exit(B)", "1 + A", "B"]), "]\n",
      "        catch\n            ", pick(["error:R:S -> erlang:raise(error, {again, R}, S)", "throw:T -> throw({more, T})", "C:R:S -> erlang:raise(C, R, S)",
                                          "error:R -> error(R)", "error:badarg -> A; exit:R -> exit({R, A})", "_:_ -> B + A"]),
      "\n        after put(0, ", pick(["A", "B", "x"]), ")\n        end\n",
      "    of\n        [X | _] when X =:= A -> {of_, X, get(0)};\n        [_ | X] -> X + 1\n",
      "    catch\n        throw:T2 -> {thrown, T2};\n        ", pick(["error:badarith -> bad;\n        ", ""]), pick(["error:R2:S2", "_:R2:S2"]), " -> {R2, length(places(S2)) > 0, get(0)}\n    end"]}.

after_(Name) ->
    {rows(3, [fun() -> pick(["0", "1", "2", "5"]) end, fun any/0]),
     [Name, "(0, A) -> ", pick(["error(A)", "throw(A)", "A", "exit({A})"]), ";\n", Name, "(N, A) ->\n    try ",
      pick([[Name, "(N - 1, A)"], ["[N | ", Name, "(N - 1, A)]"], ["_ = ", Name, "(N - 1, {A})"]]),
      pick(["", " of [] -> none; Y -> {Y, N}", " catch throw:T -> {N, T}", " catch error:E when N > 1 -> error({N, E})"]),
      " after put(1, ", pick(["N", "[N | get(1)]", "{A, N}"]), pick([")", "), _ = (catch error(N))", "), try throw(x) catch x -> y end"]), " end"]}.

%% Stacks that grow, and are copied, with terms in them.
deep(Name) ->
    {rows(2, [fun() -> integer_to_list(seldom([10, 60], [1500])) end, fun any/0]),
     [Name, "(0, A) -> ", pick(["[]", "A", "[A]"]), ";\n", Name, "(N, A) ->\n    X = ", pick(["{N, A}", "[N]", "N * 1.5", "A", "N bsl 50", "fun() -> {N, A} end"]),
      ",\n    R = ", Name, "(N - 1, A),\n    ", pick(["case R of [] -> [X]; _ -> R end", "{element(1, {R}), X} =:= a, [N | R]", "_ = [X | R], R", "_ = erlang:phash2(X), R"])]}.

deep_error(Name) ->
    {rows(2, [fun() -> integer_to_list(seldom([0, 3, 20], [400])) end, fun any/0]),
     [Name, "(0, A) -> ", pick(["hd(A)", "error(A)", "throw(A)", "exit(A)"]), ";\n", Name, "(N, A) ->\n    ",
      pick([["1 + ", Name, "(N - 1, A)"], ["[", Name, "(N - 1, A) || _ <- [1]]"], ["try ", Name, "(N - 1, A) after N end"], ["(catch ", Name, "(N - 1, A)) + N"],
            ["try ", Name, "(N - 1, A) catch throw:X when N rem 7 =:= 0 -> error(X) end"], ["lists:map(fun(X) -> ", Name, "(N - 1, X) end, [A])"]])]}.

%% Calls in turns, within the module and by name, that take more reductions than a turn has.
turns(Name) ->
    Other = Name ++ "o",
    {rows(2, [fun() -> integer_to_list(seldom([5, 40], [4200])) end, fun any/0]),
     [Name, "(0, A) -> ", pick(["A", "error(A)", "{A}"]), ";\n", Name, "(N, A) -> ", call(Other, ["N", "A", "[N]"]), ".\n",
      Other, "(N, A, L) when ", pick(["length(L) > 1", "N rem 3 =:= 0", "is_atom(A)"]), " -> ", call(Name, ["N - 1", "A"]), ";\n",
      Other, "(N, A, [N]) -> ", call(Name, ["N - 1", "A"])],
     [Name ++ "/2", Other ++ "/3"]}.

%% A call of an exported function.
call(Name, Arguments) ->
    Texts = commas(Arguments),
    pick([[Name, "(", Texts, ")"], ["differ_case:", Name, "(", Texts, ")"], ["apply(differ_case, ", Name, ", [", Texts, "])"],
          ["(fun differ_case:", Name, "/", integer_to_list(length(Arguments)), ")(", Texts, ")"]]).

apply_(Name) ->
    Module = pick(["lists", "erlang", "differ_case", "maps", "M", "nosuch"]),
    {[["lists", "reverse", "[[1, 2]]"], ["erlang", "abs", "[-1]"], ["erlang", "'+'", "[1, a]"], ["maps", "get", "[a, #{a => 1}]"], ["lists", "nosuch", "[]"],
      ["erlang", "apply", "[erlang, hd, [[1]]]"], ["lists", "map", "[fun(X) -> X + 1 end, [1, 2]]"], ["erlang", "throw", "[x]"], ["a", "b", "c"]]
         ++ rows(2, [fun any/0, fun any/0, fun any/0]),
     [Name, "(M, F, A) ->\n    X = (catch apply(", Module, ", F, A)),\n    Y = (catch ", pick(["M:F(A)", "M:F(A, A)", "M:F()", "lists:F(A)"]),
      "),\n    _ = [X, Y],\n    ", pick(["apply(M, F, A)", "{apply(M, F, A), 1}", "apply(F, A)", "apply(fun M:F/1, A)", "M:F(hd(A))"])]}.

funs(Name) ->
    {rows(2, [fun any/0, fun number/0, fun any/0]),
     [Name, "(A, B, C) ->\n    F = fun", case pick([none, loop]) of
                                             none -> ["(X) when ", pick(["X =:= A", "is_integer(X)", "X > B"]), " -> {A, B, X}; (X) -> "];
                                             loop -> [" Loop([X | Y]) -> [Loop(X) | Loop(Y)]; Loop(X) -> "]
                                         end, pick(["[X, C]", "X + B", "C"]), " end,\n    G = fun(H) -> fun(Y) -> H(Y) end end,\n    ",
      pick(["lists:map(G(F), [A, B, C])", "(G(F))(C)", "{F(A), (G(F))(B), is_function(F, 1)}", "[(G(G(F)))(X) || X <- [A, B]]", "F(A, B)", "(G(F))(A, C)",
            "apply(F, [B])", "lists:foldl(fun(X, Acc) -> [F(X), A | Acc] end, [], [A, B, C])", "C(A)", "apply(C, [A, B])"])]}.

messages(Name) ->
    Sends = [["self() ! ", pick(["{a, A}", "{b, B}", "A", "[A | B]", "{a, B}", "x", "{last, A, B}"])] || _ <- lists:seq(0, 1 + below(6))],
    Receives = [begin
                    X = "X" ++ integer_to_list(Index),
                    ["R", integer_to_list(Index), " = receive ",
                     pick([["{a, ", X, "} -> ", X], ["{b, ", X, "} when ", X, " =:= B -> {b, ", X, "}"], [X, " when is_list(", X, ") -> ", X],
                           ["{T", X, ", ", X, "} -> {T", X, ", ", X, "}; x -> none"], [X, " when ", X, " =:= A -> ", X]]),
                     " after ", pick(["0", "0", "1", "0 * 5"]), " -> ", pick(["timeout", "B", "{A}"]), " end"]
                end || Index <- lists:seq(1, 3)],
    {rows(3, [fun any/0, fun any/0]),
     [Name, "(A, B) ->\n    ", lists:join(",\n    ", Sends ++ Receives), ",\n    {R1, R2, R3, drain()}"]}.

%% A process that answers, or does not.
reply(Name) ->
    {rows(2, [fun any/0, fun number/0]),
     [Name, "(A, B) ->\n    Me = self(),\n    Ref = make_ref(),\n    self() ! {other, B},\n    ",
      pick(["Pid = spawn(fun() -> receive {Me, X} -> Me ! {Ref, {X, B}} end end),\n    Pid ! {Me, A},\n    V = receive {Ref, Y} -> Y end",
            "_ = spawn(fun() -> Me ! {Ref, [A || _ <- lists:seq(1, 100)]} end),\n    V = receive {Ref, Y} -> length(Y) end",
            "V = apart(fun() -> A + B end)", "V = apart(fun() -> self() ! A, receive B -> 1; X -> X end end)",
            "V = apart(fun() -> process_flag(trap_exit, true), spawn_link(fun() -> exit({A, B}) end), receive {'EXIT', _, R} -> R end end)",
            "V = apart(fun() -> receive after 1 -> B end end)", "V = apart(fun() -> error(A) end)",
            "V = apart(fun() -> erlang:send_after(1, self(), A), receive X -> {X, B} after 1000 -> late end end)"]),
      ",\n    {element(1, {V}), drain()}"]}.

dictionary(Name) ->
    Key = fun() -> integer_to_list(below(8)) end,
    {rows(2, [fun any/0, fun any/0]),
     [Name, "(A, B) ->\n    X = put(", Key(), ", A),\n    Y = put(", Key(), ", {X, B}),\n    Z = erase(", Key(), "),\n    {X, Y, Z, get(", Key(), "), lists:sort(get_keys(A))}"]}.

lists_(Name) ->
    List = fun() -> pick(["[1, 2, 3]", "[a, {b, 1}, {1.0, 2}, 1]", "[1 | 2]", "[]", seldom(["lists:seq(1, 20)"], ["lists:seq(1, 200)"]), "\"text\"", "a", "[{1, a}, {2, b}, {2, c}]"]) end,
    Of = fun() -> pick(["lists:reverse(A, B)", "lists:reverse(A)", "lists:member(B, A)", "lists:keyfind(B, 1, A)", "lists:keymember(2, 1, A)", "lists:keysearch(B, 2, A)",
                        "A ++ B", "A ++ [B]", "A -- B", "A -- [1, 2]", "length(A)", "hd(A)", "tl(A)", "lists:sort(A)", "lists:nth(2, A)", "lists:sum(A)", "lists:zip(A, A)",
                        "lists:foldr(fun(X, Acc) -> [X | Acc] end, B, A)", "[X || X <- A, X > 1]", "[{X, Y} || X <- A, Y <- A, X < Y]", "lists:flatten([A, [B]])", "list_to_tuple(A)",
                        "lists:split(1, A)", "lists:usort(A ++ A)", "list_to_binary(A)", "iolist_to_binary([A, A])", "lists:last(A)", "lists:append([A, B, A])", "lists:max(A)",
                        "[X || {X, _} <- A]", "[X || {X, _} <:- A]", "lists:keysort(1, A)", "lists:delete(1, A)", "lists:duplicate(3, A)"]) end,
    {rows(4, [List, fun() -> pick(["[1, 2]", "1", "a", "[]", "2", "[x | y]", "1.0"]) end]),
     [Name, "(A, B) ->\n    X = (catch ", Of(), "),\n    Y = ", Of(), ",\n    {case X of {'EXIT', {R, _}} -> R; _ -> X end, Y, ", Of(), "}"]}.

keys(Name) ->
    {rows(3, [fun() -> integer_to_list(below(seldom([15, 30], [300]))) end, fun whole/0]),
     [Name, "(N, A) ->\n    List = [{I rem ", pick(["7", "50"]), ", I, A} || I <- lists:seq(1, N)],\n    {",
      commas([pick(["lists:keyfind(3, 1, List)", "lists:keyfind(A, 3, List)", "lists:keytake(N, 2, List)", "length(lists:ukeysort(1, List))", "lists:keyreplace(1, 1, List, x) =:= List",
                    "maps:from_list([{K, V} || {K, V, _} <- List]) =:= #{K => V || {K, V, _} <- List}", "lists:foldl(fun({K, V, _}, S) -> S + K * V end, 0, List)",
                    "lists:sum([V || {K, V, _} <- List, K < 4])", "erlang:phash2(lists:sort(fun({X, _, _}, {Y, _, _}) -> X >= Y end, List))"]) || _ <- [1, 2, 3]]), "}"]}.

%% Updates of records and of tuples.
record(Name) ->
    Field = fun() -> pick(["a", "b", "c"]) end,
    {rows(4, [fun() -> weighted([{2, fun() -> ["{r, ", any(), ", ", any(), ", 1}"] end}, {1, fun() -> "{n, 1, 2}" end}, {1, fun any/0}]) end, fun any/0]),
     [Name, "(#r{", Field(), " = ", pick(["_", "1", "[]"]), "} = A, B) ->\n    C = A#r{", Field(), " = B},\n    D = C#r{a = C#r.", Field(), ", c = {A, B}},\n    {C, D, D =:= A, is_record(B, r)};\n",
      Name, "(A, B) when A#n.b =:= 2 -> {A#n{a = B}, A#n.a};\n", Name, "(A, B) -> ", pick(["A#r{b = B}", "A#r.c", "{A, B}", "#r{b = A, _ = B}", "setelement(2, A, B)"])]}.

%% More variables than there are machine registers, alive over calls.
wide(Name) ->
    Count = pick([6, 12, 20, 40]),
    Vars = ["V" ++ integer_to_list(Index) || Index <- lists:seq(1, Count)],
    Steps = [[Var, " = ", pick([[Name, "w(", commas(lists:sublist(["A", "B", "B", "A", "A", "B"], 3)), ")"], ["{A, ", integer_to_list(Index), "}"], ["erlang:phash2({B, ", integer_to_list(Index), "})"], "[A, B]"])]
             || {Index, Var} <- lists:enumerate(Vars)],
    {rows(2, [fun any/0, fun number/0]),
     [Name, "(A, B) ->\n    ", lists:join(",\n    ", Steps), ",\n    ", Name, "v(", commas(shuffled(Vars)), ").\n",
      Name, "w(X, Y, Z) -> ", pick(["[X, Y | Z]", "{Z, Y, X}", "X + Y", "Z"]), ".\n",
      Name, "v(", commas(Vars), ") -> ", pick([["[", commas(Vars), "]"], ["{", commas(lists:reverse(Vars)), "}"], [Name, "w(", commas(lists:sublist(lists:reverse(Vars), 3)), ")"]])]}.

shuffled(List) -> [Element || {_, Element} <- lists:sort([{below(1000), Element} || Element <- List])].

nested(Name) ->
    {rows(5, [fun() -> differ_random:term(2) end]),
     [Name, "([", pick(["A", "{A, _}", "[A | _]", "1 = A"]), ", B | C]) -> {A, B, C};\n", Name, "({", pick(["A, B", "{A}, [B | _]", "A, [], B", "a = A, B"]), "}) -> [B | A];\n",
      Name, "(", pick(["[_ | _]", "{_, _, _} = _", "<<_, _/bits>>", "#{}"]), " = A) -> {A};\n", Name, "(A) when ", guard_of_one(), " -> [A];\n", Name, "(A) -> A"]}.

guard_of_one() -> pick(["is_list(A)", "is_tuple(A), tuple_size(A) > 1", "A > a", "is_number(A); is_atom(A)", "A == 1", "A =:= 1.0"]).

tuples(Name) ->
    {rows(5, [fun() -> ["{", commas([any() || _ <- lists:seq(0, below(5))]), "}"] end, fun number/0]),
     [Name, "(A, B) ->\n    X = (catch element(B, A)),\n    Y = setelement(1, A, ", pick(["B", "A", "{B}"]), "),\n    Z = ",
      pick(["case Y of {_, C} -> C; {_, C, _} -> C; _ -> none end", "{Y, A, B}", "erlang:append_element(Y, B)", "tuple_to_list(Y)", "tuple_size(Y) + B", "element(2, Y)", "erlang:delete_element(B, Y)"]),
      ",\n    {case X of {'EXIT', {R, _}} -> R; _ -> X end, Y, Z}"]}.
