%% Formats with widths, precisions and modifiers; numbers and terms as text, and back.
-module(differ_formats).

-export([make/0]).

-import(differ_random, [pick/1, weighted/1, chance/1, below/1, many/2, commas/1]).

make() ->
    weighted([{6, fun formatted/0}, {3, fun number/0}, {2, fun scanned/0}, {2, fun external/0}, {1, fun printed/0}]).

formatted() ->
    Parts = [directive() || _ <- lists:seq(0, below(3))],
    Format = [[pick(["", " ", "a", "\x{e5}"]), Directive] || {Directive, _} <- Parts],
    Arguments = lists:append([Arguments || {_, Arguments} <- Parts]),
    Given = case chance(5) of
                true -> [differ_random:term(1) | Arguments];
                false -> Arguments
            end,
    Body = ["lists:flatten(io_lib:format(\"", Format, "\", [", commas(Given), "]))"],
    differ_form:evaluated("io_lib:format", Body).

%% A directive, and texts of its arguments.
directive() ->
    {Directive, Argument} =
        weighted([{4, fun() -> {pick(["w", "tw"]), differ_random:term(3)} end},
                  {6, fun() -> {pick(["p", "tp", "p", "0p", "0tp", "kp", "0ktp", "lp"]), differ_random:term(4)} end},
                  {3, fun() -> {pick(["s", "ts"]), text()} end},
                  {2, fun() -> {pick(["e", "f", "g"]), differ_random:float()} end},
                  {2, fun() -> {pick(["b", "B", "x", "X", "+", "#"]), differ_random:integer()} end},
                  {1, fun() -> {pick(["c", "tc"]), pick(["65", "229", "26085", "-1", "128512"])} end},
                  {1, fun() -> {pick(["W", "P", "tP", "tW"]), differ_random:term(3)} end},
                  {1, fun() -> {pick(["n", "~", "i", "s"]), "\"x\""} end}]),
    {Sized, Widths} = sized(Directive),
    {["~", Sized], Widths ++ arguments(lists:last(Directive), Argument)}.

arguments(Last, Argument) when Last =:= $W; Last =:= $P -> [Argument, integer_to_list(below(12))];
arguments(Last, Argument) when Last =:= $x; Last =:= $X -> [Argument, pick(["\"0x\"", "'p'", "[]"])];
arguments(Last, _) when Last =:= $n; Last =:= $~ -> [];
arguments(_, Argument) -> [Argument].

sized([$0 | _] = Directive) -> {Directive, []};
sized(Directive) ->
    weighted([{6, fun() -> {Directive, []} end},
              {3, fun() -> {[width(), Directive], []} end},
              {2, fun() -> {[pick(["", width()]), ".", precision(), Directive], []} end},
              {1, fun() -> {[width(), ".", precision(), ".", pick(["0", "_", "\x{e5}"]), Directive], []} end},
              {1, fun() -> {[width(), ".", precision(), ".*", Directive], ["$x"]} end},
              {1, fun() -> {["*.*", Directive], [width(), precision()]} end}]).

width() -> pick(["1", "2", "5", "10", "20", "40", "80", "-10", "-3", "0"]).
precision() -> pick(["0", "1", "2", "3", "5", "10", "20", "16", "36"]).

text() ->
    weighted([{3, fun differ_random:string/0}, {3, fun differ_random:binary/0}, {1, fun differ_random:atom/0},
              {2, fun() -> ["[", differ_random:string(), ", ", differ_random:binary(), ", 229]"] end},
              {1, fun() -> differ_random:term(1) end}]).

%% A number as text, and that text as a number.
number() ->
    Float = differ_random:float(),
    Integer = differ_random:integer(),
    Base = integer_to_list(2 + below(36)),
    Decimals = integer_to_list(below(30)),
    Text = string:trim(lists:flatten(pick([Float, Integer, [Float, "x"], ["0", Integer], [Integer, ".0"], [Integer, "e5"]]))),
    Body = pick([["list_to_float(float_to_list(", Float, "))"],
                 ["float_to_list(", Float, ", [{decimals, ", Decimals, "}, compact])"],
                 ["float_to_list(", Float, ", [{decimals, ", Decimals, "}])"],
                 ["float_to_binary(", Float, ", [{scientific, ", Decimals, "}])"],
                 ["float_to_binary(", Float, ", [short])"],
                 ["io_lib_format:fwrite_g(", Float, ")"],
                 ["integer_to_list(", Integer, ", ", Base, ")"],
                 ["binary_to_integer(integer_to_binary(", Integer, ", ", Base, "), ", Base, ")"],
                 ["list_to_integer(integer_to_list(", Integer, ", ", Base, "), 10)"],
                 ["string:to_float(\"", Text, "\")"], ["string:to_integer(\"", Text, "\")"],
                 ["list_to_float(\"", Text, "\")"], ["binary_to_float(<<\"", Text, "\">>)"],
                 ["list_to_integer(\"", Text, "\")"], ["binary_to_integer(<<\"", Text, "\">>, ", Base, ")"],
                 ["[round(", Float, "), trunc(", Float, "), floor(", Float, "), ceil(", Float, ")]"],
                 ["float(", Integer, ")"],
                 ["[", Float, " =:= ", Float, ", ", Integer, " < ", Float, ", ", Integer, " == ", Float, "]"],
                 ["<<(", Float, "):32/float, (", Integer, "):70/little>>"]]),
    differ_form:evaluated("number", Body).

%% Terms as text are read again.
scanned() ->
    Term = differ_random:term(4),
    Body = ["{ok, Tokens, _} = erl_scan:string(lists:flatten(io_lib:format(\"", pick(["~tw.", "~tp.", "~0tp.", "~40tp."]),
            "\", [", Term, "]))), erl_parse:parse_term(Tokens)"],
    differ_form:evaluated("erl_parse:parse_term", Body).

external() ->
    Term = differ_random:term(4),
    Options = pick(["[]", "[{minor_version, 1}]", "[{minor_version, 0}]", "[compressed]", "[deterministic]",
                    "[{minor_version, 2}, deterministic]"]),
    Body = pick([["binary_to_term(term_to_binary(", Term, ", ", Options, "))"],
                 ["byte_size(term_to_binary(", Term, ", [deterministic]))"],
                 ["erlang:external_size(", Term, ")"],
                 ["[erlang:phash2(", Term, "), erlang:phash2(", Term, ", ", integer_to_list(1 + below(1 bsl 32)), ")]"],
                 ["erts_debug:flat_size(", Term, ")"],
                 ["binary_to_term(<<131, ", commas([integer_to_list(below(256)) || _ <- lists:seq(0, below(12))]), ">>)"],
                 damaged(Term)]),
    differ_form:evaluated("external", Body).

%% An external term with one byte that is another.
damaged(Term) ->
    ["Binary = term_to_binary(", Term, ", [deterministic]), At = ", integer_to_list(below(60)),
     " rem byte_size(Binary), <<Before:At/binary, _, After/binary>> = Binary, "
     "binary_to_term(<<Before/binary, ", integer_to_list(below(256)), ", After/binary>>)"].

printed() ->
    Term = differ_random:term(4),
    Body = pick([["lists:flatten(io_lib_pretty:print(", Term, ", ", width(), ", ", width(), ", ", precision(), "))"],
                 ["lists:flatten(io_lib:print(", Term, ", 1, ", precision(), ", ", precision(), "))"],
                 ["lists:flatten(io_lib:write(", Term, ", ", precision(), "))"],
                 ["io_lib:bformat(\"~tp ~w\", [", Term, ", ", Term, "])"],
                 ["lists:flatten(io_lib:format(\"~tp\", [", Term, "], [{chars_limit, ", integer_to_list(below(60)), "}]))"],
                 ["io_lib:fread(\"", pick(["~d", "~f ~s", "~a", "~8c", "~16u", "~*d", "~d~l"]), "\", ",
                  differ_random:string(), ")"],
                 ["lists:flatten(io_lib:write_atom(", differ_random:atom(), "))"],
                 ["lists:flatten(io_lib:write_string(", differ_random:string(), "))"]]),
    differ_form:evaluated("printed", Body).
