%% Match specifications, for tables and for traces.
-module(differ_specs).

-export([make/0, spec/2, result/0]).

-import(differ_random, [pick/1, weighted/1, chance/1, below/1, many/2, commas/1]).

make() ->
    weighted([{4, fun() -> tested("table", fun subject/0, fun head/0) end},
              {3, fun() -> tested("trace", fun arguments/0, fun heads/0) end},
              {1, fun run/0}]).

tested(Mode, Subject, Head) ->
    Body = ["erlang:match_spec_test(", Subject(), ", ", spec(Head, fun result/0), ", ", Mode, ")"],
    differ_form:evaluated(Mode, Body).

run() ->
    Body = ["ets:match_spec_run([", commas(many(4, fun subject/0)), "], ets:match_spec_compile(",
            spec(fun head/0, fun result/0), "))"],
    differ_form:evaluated("run", Body).

%% A specification whose heads and results these make.
spec(Head, Result) ->
    Clauses = [["{", Head(), ", [", commas(many(2, fun() -> guard(2) end)), "], [",
                commas([Result() | many(1, Result)]), "]}"] || _ <- lists:seq(0, below(2))],
    case chance(3) of
        true -> differ_random:term(3);
        false -> ["[", commas(Clauses), "]"]
    end.

subject() ->
    weighted([{8, fun() -> ["{", commas([value() | many(3, fun value/0)]), "}"] end}, {1, fun() -> differ_random:term(2) end}]).

arguments() ->
    weighted([{8, fun() -> differ_random:list(4, fun value/0) end}, {1, fun() -> differ_random:term(2) end}]).

head() ->
    weighted([{8, fun() -> ["{", commas([part(2) | many(3, fun() -> part(2) end)]), "}"] end},
              {2, fun() -> part(2) end}]).

heads() ->
    weighted([{8, fun() -> differ_random:list(4, fun() -> part(2) end) end}, {2, fun() -> pick(["'_'", "'$1'"]) end}]).

part(0) ->
    weighted([{6, fun variable/0}, {2, fun() -> "'_'" end}, {2, fun value/0}]);
part(Depth) ->
    Below = fun() -> part(Depth - 1) end,
    weighted([{6, fun() -> part(0) end},
              {1, fun() -> ["{", commas(many(3, Below)), "}"] end},
              {1, fun() -> ["[", Below(), " | ", Below(), "]"] end},
              {1, fun() -> differ_random:list(2, Below) end},
              {1, fun() -> ["#{", value(), " => ", Below(), "}"] end}]).

variable() -> pick(["'$1'", "'$2'", "'$1'", "'$3'", "'$0'", "'$17'"]).

value() ->
    weighted([{6, fun() -> pick(["0", "1", "2", "a", "b", "1.0", "[]", "{}", "<<1,2>>", "\"xy\"", "{a, 1}", "[1, 2]",
                                 "#{1 => a}", "true", "false", "1152921504606846976"]) end},
              {2, fun() -> differ_random:term(2) end}]).

result() -> expression(3).

guard(Depth) ->
    weighted([{4, fun() -> ["{", pick(["'>'", "'<'", "'=='", "'=:='", "'/='", "'=/='", "'>='", "'=<'"]), ", ",
                            expression(Depth), ", ", expression(Depth), "}"] end},
              {3, fun() -> ["{", test(), ", ", expression(Depth), "}"] end},
              {2, fun() -> connective(Depth) end},
              {1, fun() -> expression(Depth) end}]).

test() ->
    pick(["is_atom", "is_float", "is_integer", "is_list", "is_number", "is_pid", "is_port", "is_reference", "is_tuple",
          "is_map", "is_binary", "is_function", "is_bitstring", "is_boolean"]).

connective(0) -> expression(0);
connective(Depth) ->
    Parts = many(3, fun() -> guard(Depth - 1) end),
    weighted([{4, fun() -> ["{", commas([pick(["'and'", "'or'", "'andalso'", "'orelse'", "'xor'"]) | Parts]), "}"] end},
              {1, fun() -> ["{'not', ", guard(Depth - 1), "}"] end}]).

expression(0) ->
    weighted([{6, fun variable/0}, {1, fun() -> "'$_'" end}, {1, fun() -> "'$$'" end}, {3, fun constant/0},
              {1, fun() -> pick(["{self}", "{node}", "{{}}", "[]", "{const, {a, '$1'}}", "{const, b}"]) end}]);
expression(Depth) ->
    Below = fun() -> expression(Depth - 1) end,
    weighted([{8, fun() -> expression(0) end},
              {3, fun() -> ["{", pick(["'+'", "'-'", "'*'", "'div'", "'rem'", "'/'", "'band'", "'bor'", "'bxor'", "max",
                                       "min"]), ", ", Below(), ", ", Below(), "}"] end},
              {1, fun() -> ["{'bsl', ", Below(), ", 3}"] end},
              {2, fun() -> ["{", pick(["abs", "element", "hd", "tl", "length", "size", "tuple_size", "round", "trunc",
                                       "map_size", "byte_size", "bit_size", "float", "'bnot'", "ceil", "floor", "node",
                                       "'+'", "'-'"]), ", ", Below(), "}"] end},
              {2, fun() -> ["{", pick(["element, 1", "element, 2", "map_get, 1", "is_map_key, 1", "binary_part, <<1,2,3>>, 1"]),
                            ", ", Below(), "}"] end},
              {3, fun() -> ["{{", commas(many(3, Below)), "}}"] end},
              {1, fun() -> differ_random:list(3, Below) end},
              {1, fun() -> ["[", Below(), " | ", Below(), "]"] end},
              {1, fun() -> ["#{", constant(), " => ", Below(), "}"] end},
              {2, fun() -> guard(Depth - 1) end},
              {1, fun() -> action() end},
              {1, fun() -> differ_random:term(2) end}]).

constant() -> pick(["0", "1", "2", "a", "true", "1.5", "<<1,2>>", "\"xy\"", "undefined"]).

%% What only traces may do, and what nothing may.
action() ->
    pick(["{message, '$1'}", "{message, {const, x}}", "{return_trace}", "{exception_trace}", "{get_tcw}", "{caller}",
          "{is_seq_trace}", "{nosuch, 1}", "{element}", "{set_tcw, 1}", "{get_seq_token}"]).
