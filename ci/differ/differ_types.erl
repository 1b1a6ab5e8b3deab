%% Texts of terms that belong to a type, as the libraries' own specs tell it. The specs are read from the debug
%% information of their .beam files.
-module(differ_types).

-export([functions/1, arguments/2]).

-import(differ_random, [pick/1, weighted/1, chance/1, below/1, many/2, commas/1]).

-define(DEPTH, 4).

%% The exported functions of a module that have a spec.
functions(Module) ->
    #{exports := Exports, specs := Specs} = known(Module),
    [Function || Function <- Exports, is_map_key(Function, Specs)].

%% Texts of arguments for a function: those of one of its clauses, and now and then other ones.
arguments(Module, Function) ->
    #{specs := #{Function := Clauses}} = known(Module),
    {Types, Bounds} = clause(pick(Clauses)),
    Scope = #{module => Module, bounds => Bounds},
    Wrong = case chance(25) of
                true -> below(length(Types) + 1);
                false -> none
            end,
    [argument(Type, Scope, Index =:= Wrong) || {Index, Type} <- lists:enumerate(0, Types)].

argument(_, _, true) -> differ_random:term(2);
argument(Type, Scope, false) -> text(Type, Scope, ?DEPTH).

clause({type, _, 'fun', [{type, _, product, Types}, _]}) -> {Types, #{}};
clause({type, _, bounded_fun, [Fun, Constraints]}) ->
    {Types, _} = clause(Fun),
    Bound = [{Name, Type} || {type, _, constraint, [_, [{var, _, Name}, Type]]} <- Constraints],
    {Types, maps:from_list(Bound)}.

%% What a module's abstract code tells, read once.
known(Module) ->
    case get({?MODULE, Module}) of
        undefined ->
            Known = read(Module),
            put({?MODULE, Module}, Known),
            Known;
        Known ->
            Known
    end.

read(Module) ->
    {ok, {_, [{abstract_code, {raw_abstract_v1, Forms}}]}} = beam_lib:chunks(file(Module), [abstract_code]),
    Exports = lists:append([Functions || {attribute, _, export, Functions} <- Forms]),
    Specs = [{name(Name), Clauses} || {attribute, _, spec, {Name, Clauses}} <- Forms],
    Types = [{{Name, length(Parameters)}, {[Var || {var, _, Var} <- Parameters], Type}}
             || {attribute, _, Kind, {Name, Type, Parameters}} <- Forms,
                Kind =:= type orelse Kind =:= opaque orelse Kind =:= nominal],
    Records = [{Name, [field(Field) || Field <- Fields]}
               || {attribute, _, record, {Name, Fields}} <- Forms, is_list(Fields)],
    #{exports => lists:sort(Exports), specs => maps:from_list(Specs), types => maps:from_list(Types),
      records => maps:from_list(Records)}.

name({_, Function, Arity}) -> {Function, Arity};
name(Name) -> Name.

field({typed_record_field, _, Type}) -> Type;
field(_) -> {type, 0, term, []}.

file(Module) ->
    case code:which(Module) of
        preloaded ->
            Erts = "erts-" ++ erlang:system_info(version),
            File = filename:join([code:root_dir(), "lib", Erts, "ebin", Module]),
            case filelib:is_file(File ++ ".beam") of
                true -> File;
                false -> filename:join([code:root_dir(), Erts, "ebin", Module])
            end;
        File ->
            File
    end.

%% The text of a term of a type.
text({ann_type, _, [_, Type]}, Scope, Depth) -> text(Type, Scope, Depth);
%% What term_to_binary makes with it is salted by the runtime.
text({atom, _, local}, _, _) -> "deterministic";
text({atom, _, Atom}, _, _) -> io_lib:format("~tw", [Atom]);
text({integer, _, Number}, _, _) -> integer_to_list(Number);
text({char, _, Char}, _, _) -> integer_to_list(Char);
text({op, _, '-', {integer, _, Number}}, _, _) -> integer_to_list(-Number);
text({op, _, _, _, _}, _, _) -> differ_random:integer();
text({var, _, Name}, #{bounds := Bounds} = Scope, Depth) ->
    case Bounds of
        #{Name := {type, _, _, _} = Type} when Depth > 0 -> text(Type, Scope, Depth - 1);
        #{Name := Type} when Depth > 0 -> text(Type, Scope, Depth - 1);
        _ -> differ_random:term(1)
    end;
text({type, _, union, Types}, Scope, Depth) when Depth =< 0 -> text(hd(Types), Scope, Depth - 1);
text({type, _, union, Types}, Scope, Depth) -> text(pick(Types), Scope, Depth);
text({type, _, Name, Parts}, Scope, Depth) -> builtin(Name, Parts, Scope, Depth);
text({user_type, _, Name, Parts}, #{module := Module} = Scope, Depth) ->
    named(Module, Name, Parts, Scope, Depth);
text({remote_type, _, [{atom, _, Module}, {atom, _, Name}, Parts]}, Scope, Depth) ->
    named(Module, Name, Parts, Scope, Depth).

named(Module, Name, Parts, Scope, Depth) ->
    case made(Module, Name) of
        none -> expanded(Module, Name, Parts, Scope, Depth);
        Text -> Text
    end.

expanded(_, _, _, _, Depth) when Depth < -3 ->
    differ_random:term(0);
expanded(Module, Name, Parts, Scope, Depth) ->
    #{types := Types} = known(Module),
    case maps:find({Name, length(Parts)}, Types) of
        {ok, {Parameters, Type}} ->
            Bounds = maps:from_list(lists:zip(Parameters, [closed(Part, Scope) || Part <- Parts])),
            text(Type, #{module => Module, bounds => Bounds}, Depth - 1);
        error ->
            differ_random:term(1)
    end.

%% A type parameter as it stands outside; what it is bound to there takes the variable's place.
closed({var, _, Name} = Var, #{bounds := Bounds}) -> maps:get(Name, Bounds, Var);
closed(Type, _) -> Type.

%% Terms of types whose form is not told are made by the functions that make them.
made(gb_sets, set) -> ["gb_sets:from_list(", terms(), ")"];
made(gb_sets, iter) -> ["gb_sets:iterator(gb_sets:from_list(", terms(), "))"];
made(gb_trees, tree) -> ["gb_trees:from_orddict(orddict:from_list(", pairs(), "))"];
made(gb_trees, iter) -> ["gb_trees:iterator(gb_trees:from_orddict(orddict:from_list(", pairs(), ")))"];
made(dict, dict) -> ["dict:from_list(", pairs(), ")"];
made(orddict, orddict) -> ["orddict:from_list(", pairs(), ")"];
made(ordsets, ordset) -> ["ordsets:from_list(", terms(), ")"];
made(sets, set) -> ["sets:from_list(", terms(), pick([")", ", [{version, 1}])", ", [{version, 2}])"])];
made(queue, queue) -> ["queue:from_list(", terms(), ")"];
made(array, array) -> ["array:from_list(", terms(), ")"];
made(maps, iterator) -> ["maps:iterator(#{1 => a, 2 => b, 0 => c}, ordered)"];
made(sofs, Type) when Type =:= a_set; Type =:= anyset -> ["sofs:set(", numbers(), ")"];
made(sofs, Type) when Type =:= relation; Type =:= a_function; Type =:= binary_relation ->
    ["sofs:relation(", number_pairs(), ")"];
made(sofs, family) -> "sofs:family([{1, [a, b]}, {2, []}])";
made(rand, state) -> "rand:seed_s(exsss, 5)";
made(rand, alg_state) -> "rand:seed_s(exrop, 5)";
made(re, mp) -> "element(2, re:compile(\"a(b|c)*\"))";
made(re, compile_options) -> pick(["[]", "[unicode]", "[caseless, multiline]"]);
made(binary, cp) -> ["binary:compile_pattern(", pick(["<<\"a\">>", "[<<\"a\">>, <<\"bc\">>]"]), ")"];
made(unicode, chardata) -> chardata();
made(unicode, charlist) -> chardata();
made(uri_string, uri_string) -> pick(["\"http://user@host:80/a/../b?c=d#e\"", "<<\"urn:a:b\">>", chardata()]);
made(calendar, datetime) -> ["{", a_date(), ", ", a_time(), "}"];
made(calendar, date) -> a_date();
made(calendar, time) -> a_time();
made(file, name_all) -> name();
made(file, name) -> name();
made(file, filename) -> name();
made(erl_anno, anno) -> pick(["1", "{1, 2}", "[{location, 1}]"]);
made(counters, counters_ref) -> "counters:new(4, [])";
made(atomics, atomics_ref) -> "atomics:new(4, [])";
made(erl_parse, _) -> pick(["{integer, 1, 1}", "{cons, 1, {atom, 1, a}, {nil, 1}}", "{var, 1, 'X'}",
                            "{op, 1, '+', {integer, 1, 1}, {var, 1, 'Y'}}"]);
made(_, _) -> none.

terms() -> differ_random:list(6, fun() -> differ_random:term(1) end).
pairs() -> differ_random:list(6, fun() -> ["{", differ_random:key(1), ", ", differ_random:term(1), "}"] end).
numbers() -> differ_random:list(5, fun() -> integer_to_list(below(6)) end).
number_pairs() -> differ_random:list(5, fun() -> ["{", integer_to_list(below(5)), ", ", integer_to_list(below(5)), "}"] end).

chardata() ->
    weighted([{3, fun differ_random:string/0},
              {3, fun differ_random:binary/0},
              {2, fun() -> ["[", differ_random:string(), ", ", differ_random:binary(), ", ", char(), "]"] end}]).

char() -> pick(["$a", "$\\s", "10", "229", "26085", "768", "128512", "13", "55296", "1114111"]).

a_date() -> ["{", pick(["1970", "2024", "2000", "0", "9999", "1582", "-1"]), ", ", pick(["1", "2", "12", "13"]), ", ",
           pick(["1", "28", "29", "31", "0"]), "}"].
a_time() -> ["{", pick(["0", "23", "24"]), ", ", pick(["0", "59", "60"]), ", ", pick(["0", "59", "60"]), "}"].
name() -> pick(["\"a/b.erl\"", "\"/a/../b\"", "\"\"", "<<\"a/b\">>", "'a.b'", "[\"a\", $/, 'b']", "\"a//b/\"", "\".\""]).

builtin(integer, [], _, _) -> differ_random:integer();
builtin(non_neg_integer, [], _, _) -> small(0);
builtin(pos_integer, [], _, _) -> small(1);
builtin(neg_integer, [], _, _) -> integer_to_list(-1 - below(10));
builtin(range, [From, To], Scope, _) -> range(From, To, Scope);
builtin(byte, [], _, _) -> integer_to_list(below(256));
builtin(char, [], _, _) -> char();
builtin(arity, [], _, _) -> integer_to_list(below(4));
builtin(float, [], _, _) -> differ_random:float();
builtin(number, [], _, _) -> (pick([fun differ_random:integer/0, fun differ_random:float/0]))();
builtin(atom, [], _, _) -> differ_random:atom();
builtin(module, [], _, _) -> pick(["lists", "erlang", "nosuch"]);
builtin(node, [], _, _) -> "node()";
builtin(boolean, [], _, _) -> pick(["true", "false"]);
builtin(pid, [], _, _) -> "self()";
builtin(reference, [], _, _) -> "make_ref()";
builtin(timeout, [], _, _) -> pick(["0", "1", "infinity"]);
builtin(nil, [], _, _) -> "[]";
builtin(string, [], _, _) -> differ_random:string();
builtin(nonempty_string, [], _, _) -> "\"abc\"";
builtin(bitstring, [], _, _) -> (pick([fun differ_random:bits/0, fun differ_random:binary/0]))();
builtin(binary, Sizes, _, _) -> binary(Sizes);
builtin(nonempty_binary, _, _, _) -> "<<\"abc\">>";
builtin(Name, [], _, _) when Name =:= iodata; Name =:= iolist -> ["[", chardata(), " | ", differ_random:binary(), "]"];
builtin(mfa, [], _, _) -> "{lists, reverse, 1}";
builtin(tuple, any, _, Depth) -> ["{", commas(many(4, fun() -> differ_random:term(max(0, min(1, Depth))) end)), "}"];
builtin(tuple, Types, Scope, Depth) -> ["{", commas([text(Type, Scope, Depth - 1) || Type <- Types]), "}"];
builtin(record, [{atom, _, Name} | _], Scope, Depth) -> record(Name, Scope, Depth);
builtin(map, any, _, _) -> map([], #{}, 0);
builtin(map, Pairs, Scope, Depth) -> map(Pairs, Scope, Depth);
builtin(Name, [Type | _], Scope, Depth) when Name =:= nonempty_list; Name =:= nonempty_improper_list ->
    ["[", commas([text(Type, Scope, Depth - 1) || _ <- lists:seq(0, below(3))]), "]"];
builtin(list, [Type], Scope, Depth) when Depth > 0 ->
    differ_random:list(5, fun() -> text(Type, Scope, Depth - 1) end);
builtin(maybe_improper_list, [Type, _], Scope, Depth) when Depth > 0 -> builtin(list, [Type], Scope, Depth);
builtin(Name, _, _, _) when Name =:= list; Name =:= maybe_improper_list; Name =:= nonempty_maybe_improper_list -> "[]";
builtin('fun', [], _, _) -> differ_random:function(below(3));
builtin(function, [], _, _) -> differ_random:function(below(3));
builtin('fun', [{type, _, any}, _], _, _) -> differ_random:function(below(3));
builtin('fun', [{type, _, product, Types}, Result], Scope, Depth) -> function(Types, Result, Scope, Depth);
builtin(_, _, _, Depth) -> differ_random:term(max(0, min(2, Depth))).

%% A function that gives what its type says, or does what it likes with its arguments.
function(Types, Result, Scope, Depth) ->
    case chance(60) of
        true -> differ_random:function(length(Types));
        false -> ["fun(", commas(["_" || _ <- Types]), ") -> ", text(Result, Scope, Depth - 1), " end"]
    end.

record(Name, #{module := Module} = Scope, Depth) ->
    case known(Module) of
        #{records := #{Name := Fields}} when Depth > 0 ->
            Texts = [text(Field, Scope, Depth - 1) || Field <- Fields],
            ["{", commas([io_lib:format("~tw", [Name]) | Texts]), "}"];
        _ ->
            differ_random:term(1)
    end.

map([], _, _) ->
    ["#{", commas(many(3, fun() -> [differ_random:key(1), " => ", differ_random:term(1)] end)), "}"];
map(Pairs, Scope, Depth) ->
    Present = [Pair || {type, _, Kind, _} = Pair <- Pairs, Kind =:= map_field_exact orelse chance(40)],
    Texts = [[key(Key, Scope), " => ", text(Value, Scope, Depth - 1)] || {type, _, _, [Key, Value]} <- Present],
    ["#{", commas(Texts), "}"].

key({atom, _, Atom}, _) -> io_lib:format("~tw", [Atom]);
key({var, _, Name}, #{bounds := Bounds}) when not is_map_key(Name, Bounds) -> differ_random:key(1);
key({type, _, Any, []}, _) when Any =:= term; Any =:= any; Any =:= atom -> differ_random:key(1);
key(Type, Scope) -> text(Type, Scope, 1).

binary([{integer, _, Size}, {integer, _, Unit}]) when Unit > 0 ->
    Bits = Size + Unit * below(4),
    io_lib:format("<<~w:~w>>", [below(1 bsl min(Bits, 60)), Bits]);
binary([{integer, _, Size}, {integer, _, 0}]) -> io_lib:format("<<1:~w>>", [Size]);
binary(_) -> differ_random:binary().

range(From, To, Scope) ->
    [Low, High] = [bound(text(Bound, Scope, 1)) || Bound <- [From, To]],
    integer_to_list(Low + below(max(1, min(High - Low + 1, 200)))).

bound(Text) ->
    try list_to_integer(lists:flatten(Text))
    catch error:badarg -> 0
    end.

small(Least) ->
    weighted([{10, fun() -> integer_to_list(Least + below(12)) end},
              {1, fun() -> pick(["255", "256", "1000", "65535"]) end}]).
