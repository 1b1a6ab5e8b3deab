%% Random choices, and texts of random terms. The numbers come from `rand`, whose state is set by the case's seed.
-module(differ_random).

-export([pick/1, weighted/1, chance/1, below/1, many/2, commas/1]).
-export([term/1, key/1, integer/0, small/0, float/0, atom/0, binary/0, bits/0, string/0, list/2, function/1]).

pick(List) -> lists:nth(rand:uniform(length(List)), List).

%% The choice of one of {Weight, Fun}, and what the fun gives.
weighted(Choices) ->
    Sum = lists:sum([Weight || {Weight, _} <- Choices]),
    weighted(rand:uniform(Sum), Choices).

weighted(Left, [{Weight, Fun} | _]) when Left =< Weight -> Fun();
weighted(Left, [{Weight, _} | Rest]) -> weighted(Left - Weight, Rest).

%% True so many times of a hundred.
chance(Percent) -> rand:uniform(100) =< Percent.

%% 0..Limit-1.
below(Limit) -> rand:uniform(Limit) - 1.

%% What Fun gives, at most so many times.
many(Most, Fun) -> [Fun() || _ <- lists:seq(1, below(Most + 1))].

commas(Texts) -> lists:join(", ", Texts).

%% The text of a term, with at most so many levels below it.
term(0) ->
    weighted([{4, fun integer/0}, {3, fun atom/0}, {2, fun float/0}, {2, fun binary/0}, {1, fun bits/0},
              {1, fun string/0}, {1, fun() -> "[]" end}, {1, fun() -> "{}" end}, {1, fun() -> "#{}" end}]);
term(Depth) ->
    Below = fun() -> term(Depth - 1) end,
    weighted([{6, fun() -> term(0) end},
              {3, fun() -> list(4, Below) end},
              {3, fun() -> ["{", commas(many(4, Below)), "}"] end},
              {2, fun() -> map(Below) end},
              {1, fun() -> ["[", Below(), " | ", term(0), "]"] end},
              {1, fun() -> function(below(3)) end}]).

list(Most, Fun) -> ["[", commas(many(Most, Fun)), "]"].

map(Below) ->
    ["#{", commas(many(4, fun() -> [key(1), " => ", Below()] end)), "}"].

%% A key of a map. Atoms would be in the order in which a runtime came to know them.
key(Depth) ->
    weighted([{4, fun integer/0}, {2, fun string/0}, {2, fun binary/0}, {1, fun float/0},
              {1, fun() -> case Depth of 0 -> "{}"; _ -> ["{", key(0), ", ", key(0), "}"] end end}]).

small() -> integer_to_list(pick([0, 1, 2, 3, 4, 5, 7, 8, 10, 16, -1, -2])).

integer() ->
    weighted([{8, fun small/0},
              {2, fun() -> integer_to_list(below(300) - 20) end},
              {2, fun() ->
                          Bits = pick([7, 8, 15, 16, 27, 28, 31, 32, 58, 59, 60, 63, 64, 65, 127, 128, 200]),
                          Near = (1 bsl Bits) + pick([-1, 0, 1]),
                          integer_to_list(pick([Near, -Near]))
                  end}]).

float() ->
    weighted([{6, fun() -> pick(["0.0", "1.0", "-1.0", "0.5", "1.5", "-0.0", "3.14", "100.0", "1.0e10", "0.1"]) end},
              {2, fun() -> pick(["1.0e308", "1.0e-308", "5.0e-324", "1.7976931348623157e308", "1.0e22", "1.0e21",
                                 "9007199254740993.0", "4.0e15", "0.001", "0.0001", "123456789.125"]) end},
              {2, fun any_float/0}]).

%% Any double.
any_float() ->
    case <<(below(1 bsl 64)):64>> of
        <<Float/float>> -> float_to_list(Float, [{scientific, 17}]);
        _ -> "2.5"
    end.

atom() ->
    pick(["a", "b", "ok", "error", "true", "false", "undefined", "''", "'A b'", "infinity", "[]", "badarg", "latin1",
          "'\x{e5}'", "'\x{65e5}\x{672c}'", "nil", "x", "'\\n'"]).

binary() ->
    weighted([{3, fun() -> "<<>>" end},
              {4, fun() -> ["<<\"", pick(["abc", "hello world", "a", "  x ", "1234", "a,b,c", "\\n"]), "\">>"] end},
              {3, fun() -> ["<<", commas(many(6, fun() -> integer_to_list(below(256)) end)), ">>"] end},
              {1, fun() -> "<<\"\x{e5}\x{65e5}\x{1f600}\"/utf8>>" end},
              {1, fun() -> "<<0:600>>" end}]).

bits() ->
    Last = [integer_to_list(below(300)), ":", integer_to_list(1 + below(15))],
    ["<<", commas(many(3, fun() -> integer_to_list(below(256)) end) ++ [Last]), ">>"].

string() ->
    ["\"", pick(["", "abc", "a", "hello world", "12", "-3.5", "a b  c", "ABC", "\x{e5}", "\x{65e5}\x{672c}", "e\x{301}",
                 "\\t\\n", "/a/b.erl", "x=1&y=2", "\x{1f600}"]), "\""].

%% A fun of so many arguments.
function(0) -> ["fun() -> ", term(0), " end"];
function(1) ->
    pick(["fun(X) -> X end", "fun(X) -> {X, 1} end", "fun(_) -> true end", "fun(X) -> X + 1 end", "fun(X) -> [X] end",
          "fun(X) -> is_integer(X) end", "fun erlang:is_atom/1", "fun(_) -> throw(thrown) end", "fun(_) -> false end"]);
function(2) ->
    pick(["fun(X, Y) -> X =< Y end", "fun(X, _) -> X end", "fun(_, Y) -> Y end", "fun(X, Y) -> {X, Y} end",
          "fun(X, Y) -> X + Y end", "fun erlang:max/2", "fun(X, Y) -> [X | Y] end", "fun(_, _) -> true end"]);
function(Arity) ->
    Names = [[$A + Index] || Index <- lists:seq(0, Arity - 1)],
    ["fun(", commas(Names), ") -> ", pick(["", "_ = self(), "]), "{", commas(Names), "} end"].
