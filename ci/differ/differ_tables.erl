%% Operations on a table, and what it holds after them.
-module(differ_tables).

-export([make/0]).

-import(differ_random, [pick/1, weighted/1, chance/1, below/1, many/2, commas/1]).

make() ->
    Type = pick([set, ordered_set, bag, duplicate_bag, ordered_set, set]),
    Position = pick([1, 1, 1, 2]),
    Operations = [guarded(operation(Type)) || _ <- lists:seq(0, 3 + below(12))],
    Options = [atom_to_list(Type) | options(Position, Operations)],
    Body = ["T = ets:new(t, [", commas(Options), "]), {[", lists:join(",\n ", Operations), "], ",
            content(Type), ", ets:info(T, size), ets:info(T, type)}"],
    differ_form:evaluated(atom_to_list(Type), Body).

options(Position, Operations) ->
    ["{keypos, " ++ integer_to_list(Position) ++ "}"]
        ++ [Option || Option <- ["{write_concurrency, true}", "{read_concurrency, true}", "private", "public",
                                 "{write_concurrency, auto}", "{decentralized_counters, true}"], chance(12)]
        ++ ["compressed" || chance(20), not has_external_fun(Operations)].

%% OTP 29 itself ends with a segmentation fault where a compressed table holds one.
has_external_fun(Operations) -> string:find(Operations, "fun erlang:") =/= nomatch.

%% Only an ordered_set tells in which order it gives.
content(ordered_set) -> "ets:tab2list(T)";
content(_) -> "lists:sort(ets:tab2list(T))".

guarded(Operation) -> ["try ", Operation, " catch Class:Reason -> {Class, Reason} end"].

operation(Type) ->
    Any = [{14, fun() -> ["ets:insert(T, ", objects(), ")"] end},
           {3, fun() -> ["ets:insert_new(T, ", objects(), ")"] end},
           {4, fun() -> ["ets:delete(T, ", key(), ")"] end},
           {2, fun() -> ["ets:delete_object(T, ", object(), ")"] end},
           {4, fun() -> ["ets:lookup(T, ", key(), ")"] end},
           {2, fun() -> ["ets:lookup_element(T, ", key(), ", ", number(), pick([")", ", none)"])] end},
           {2, fun() -> ["ets:member(T, ", key(), ")"] end},
           {2, fun() -> ["ets:take(T, ", key(), ")"] end},
           {4, fun() -> ["ets:update_counter(T, ", key(), ", ", counter(), pick([")", ")", [", ", object(), ")"]])] end},
           {3, fun() -> ["ets:update_element(T, ", key(), ", ", element(), pick([")", ")", [", ", object(), ")"]])] end},
           {4, fun() -> matching(Type) end},
           {1, fun() -> ["ets:", pick(["safe_fixtable(T, true)", "safe_fixtable(T, false)", "delete_all_objects(T)",
                                       "info(T, fixed)", "info(T, keypos)", "info(T, compressed)", "rename(T, u)"])] end}],
    weighted(Any ++ ordered(Type)).

ordered(ordered_set) ->
    [{4, fun() -> ["ets:", pick(["next", "prev", "next_lookup", "prev_lookup"]), "(T, ", key(), ")"] end},
     {2, fun() -> ["ets:", pick(["first", "last", "first_lookup", "last_lookup"]), "(T)"] end},
     {1, fun() -> ["ets:slot(T, ", pick(["0", "1", "2", "30"]), ")"] end},
     {2, fun() -> ["ets:foldl(fun(X, Acc) -> [X | Acc] end, [], T)"] end},
     {2, fun() -> ["ets:select(T, ", spec(), ", ", pick(["1", "2", "3"]), ")"] end}];
ordered(_) ->
    [].

%% What is given in the table's own order is sorted.
matching(Type) ->
    Given = pick([["ets:match(T, ", pattern(), ")"], ["ets:match_object(T, ", pattern(), ")"], ["ets:select(T, ", spec(), ")"],
                  ["ets:select_reverse(T, ", spec(), ")"]]),
    weighted([{4, fun() -> sorted(Type, Given) end},
              {1, fun() -> ["ets:match_delete(T, ", pattern(), ")"] end},
              {1, fun() -> ["ets:select_count(T, ", counting(), ")"] end},
              {1, fun() -> ["ets:select_delete(T, ", counting(), ")"] end},
              {1, fun() -> ["ets:select_replace(T, ", replacing(), ")"] end}]).

sorted(ordered_set, Given) -> Given;
sorted(_, Given) -> ["lists:sort(", Given, ")"].

objects() ->
    case chance(70) of
        true -> object();
        false -> differ_random:list(4, fun object/0)
    end.

object() ->
    weighted([{12, fun() -> ["{", commas([key() | many(3, fun value/0)]), "}"] end},
              {6, fun() -> ["{", key(), ", ", value(), ", ", value(), "}"] end},
              {1, fun() -> differ_random:term(1) end}]).

%% Few keys, so that they meet; some of them are equal and do not match.
key() ->
    weighted([{8, fun() -> pick(["0", "1", "2", "1.0", "2.0", "a", "b", "\"k\"", "{1}", "{1.0}", "[]", "<<1>>", "0.0", "-0.0"]) end},
              {1, fun() -> differ_random:term(1) end}]).

value() ->
    weighted([{6, fun() -> pick(["0", "1", "a", "1.0", "10", "18446744073709551616"]) end}, {2, fun() -> differ_random:term(2) end}]).

number() -> pick(["1", "2", "3", "0", "4"]).

counter() ->
    weighted([{4, fun() -> pick(["1", "-1", "100", "1152921504606846975"]) end},
              {4, fun counter_of/0},
              {2, fun() -> differ_random:list(3, fun counter_of/0) end},
              {1, fun() -> differ_random:term(1) end}]).

counter_of() ->
    pick([["{", number(), ", ", differ_random:integer(), "}"],
          ["{", number(), ", ", differ_random:small(), ", ", differ_random:small(), ", ", differ_random:small(), "}"]]).

element() ->
    weighted([{4, fun element_of/0}, {1, fun() -> differ_random:list(3, fun element_of/0) end}]).

element_of() -> ["{", number(), ", ", value(), "}"].

pattern() ->
    weighted([{6, fun() -> ["{", commas([part(fun key/0) | many(3, fun() -> part(fun value/0) end)]), "}"] end},
              {1, fun() -> pick(["'_'", "'$1'", "{'$1'}", "{'$1', '$1'}"]) end}]).

part(Constant) ->
    weighted([{3, fun() -> pick(["'$1'", "'$2'", "'$3'"]) end}, {2, fun() -> "'_'" end}, {2, Constant}]).

spec() -> differ_specs:spec(fun pattern/0, fun differ_specs:result/0).
counting() -> differ_specs:spec(fun pattern/0, fun() -> pick(["true", "false", "'$1'", "{'>', '$1', 0}"]) end).

%% The key stays the same.
replacing() ->
    pick(["[{{'$1', '$2'}, [], [{{'$1', {'+', '$2', 1}}}]}]", "[{{'$1', '$2', '$3'}, [], [{{'$1', '$3', '$2'}}]}]",
          "[{{'$1'}, [], [{{'$1', new}}]}]", "[{'$1', [], ['$_']}]", "[{{1, '$1'}, [], [{{1, a}}]}]",
          "[{{'$1', '$2'}, [], [{{'$2', '$1'}}]}]"]).
