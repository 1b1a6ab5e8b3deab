//! `--engine`: what runs code makes no difference but in time.

mod place;

use place::Place;
use serde_json::Value;

/// Something of each kind of instruction, with stack traces, reductions and words as a program sees them.
const WORK: &str = r#"
-module(work).
-export([main/1, reload/1, version/0]).
-record(point, {x = 0, y = 0}).

main(_) ->
    Show = fun(Name, Result) -> io:format("~p: ~p ~p~n", [Name, Result, reds()]) end,
    [Show(Name, try Fun() catch C:R:S -> {C, R, S} end) || {Name, Fun} <- all()],
    ok.

reds() -> element(2, process_info(self(), reductions)).

all() ->
    [{integers, fun() -> [integers(A, B) || A <- numbers(), B <- numbers()] end},
     {floats, fun() -> [floats(A, B) || A <- [0.5, 3, -1.0e300], B <- [2.0, 1.0e10, -7]] end},
     {order, fun() -> [order(A, B) || A <- terms(), B <- terms()] end},
     {types, fun() -> [types(T) || T <- terms()] end},
     {select, fun() -> [select(T) || T <- terms() ++ lists:seq(-1, 40)] end},
     {lists, fun() -> nrev(lists:seq(1, 300)) =:= lists:seq(300, 1, -1) end},
     {deep, fun() -> deep(50000) end},
     {tuples, fun() -> P = #point{x = 1}, Q = P#point{y = {2}}, {Q#point.y, setelement(1, Q, a), element(2, Q)} end},
     {maps, fun() -> M = #{a => 1, "b" => 2}, #{a := A} = M, {A, M#{a := 3, c => 4}, map_size(M)} end},
     {bits, fun() -> [bits(B) || B <- [<<>>, <<1, 2, 3>>, <<"h", 228/utf8, "llo">>, <<5:3>>, <<0:64/float>>]] end},
     {append, fun() -> byte_size(lists:foldl(fun(N, B) -> <<B/binary, N>> end, <<>>, lists:seq(1, 3000))) end},
     {fields, fun() -> [{fields(B), header(B), constant(B), sextets(B), inside(B)} || B <- binaries()] end},
     {overflow, fun() -> [square(F) || F <- [-3, 1.5, 1 bsl 70, 1.0e200]] end},
     {keys, fun() -> [keys(M) || M <- [#{}, #{a => 1}, #{a => 1, 2 => b, [] => c}, #{<<"k">> => 1, a => 2}, a, large()]] end},
     {unknown_keys, fun() -> [unknown(K, M) || M <- [a, #{}, #{a => 1}, #{a => 1, 2 => b, [] => c, "s" => d}, large()], K <- [a, 2, [], "s", 1.0, 1 bsl 70, none]] end},
     {funs, fun() -> X = 5, Y = {X}, F = fun(A, B) -> {A, B, X, Y} end, [F(1, 2), (fun lists:max/1)([1, 3, 2])] end},
     {badarity, fun() -> F = fun(A) -> A end, F(1, 2) end},
     {badfun, fun() -> F = hd([ok]), F(1) end},
     {apply, fun() -> [apply(lists, sum, [[1, 2]]), apply(fun erlang:'+'/2, [1, 2])] end},
     {applied, fun() -> last_apply(erlang, hd([error]), x) end},
     {undef, fun() -> work:nothing(1) end},
     {clause, fun() -> clause(zz) end},
     {badmatch, fun() -> {ok, X} = hd([error]), X end},
     {badarith, fun() -> 1 + hd([a]) end},
     {badrecord, fun() -> P = hd([notapoint]), P#point.x end},
     {caught, fun() -> [catch error(one), catch exit(two), catch throw(three)] end},
     {nested, fun() -> try try throw(x) after put(k, v) end catch throw:Y -> {Y, get(k)} end end},
     {reraise, fun() -> try deep_error(5) catch error:E:S -> erlang:raise(exit, {E, length(S)}, S) end end},
     {messages, fun() -> messages(500) end},
     {after_, fun() -> receive never -> ok after 1 -> timeout end end},
     {selective, fun() -> [self() ! N || N <- lists:seq(1, 50)], [receive N -> N end || N <- lists:seq(50, 1, -1)] end},
     {passed_over, fun() -> passed_over(self()) end},
     {long_queue, fun() -> long_queue(self()) end},
     {killed, fun() -> {P, R} = spawn_monitor(fun() -> loop(0) end), exit(P, kill), receive {'DOWN', R, _, _, W} -> W end end},
     {hibernate, fun() -> hibernating() end},
     {words, fun() -> {garbage_collect(), [tuple(N) || N <- lists:seq(1, 2000)] =/= []} end},
     {code, fun() -> [reload(N) || N <- lists:seq(1, 30)] end}].

numbers() -> [0, 1, -1, 7, -13, 1 bsl 58, (1 bsl 59) - 1, -(1 bsl 59), -(1 bsl 63), (1 bsl 64) - 1, 1 bsl 80, -(1 bsl 100)].

%% A queue that goes around its end, and in which time slices end while messages are passed over.
passed_over(Self) ->
    [Self ! {job, N} || N <- lists:seq(1, 40)],
    Taken = [receive {job, N} -> Self ! {job, N + 100}, N end || N <- lists:seq(1, 30)],
    Own = [begin Self ! {own, K}, receive {own, K} -> {K, reds()} end end || K <- lists:seq(1, 300)],
    Even = [receive {job, N} when N rem 2 =:= 0 -> N end || _ <- lists:seq(1, 20)],
    None = receive {own, _} -> own after 0 -> none end,
    {Taken, Own, Even, None, [receive {job, N} -> N end || _ <- lists:seq(1, 20)]}.

%% Time slices end while messages are passed over, and what comes last is fetched before it is looked for.
long_queue(Self) ->
    [Self ! {job, N, [N]} || N <- lists:seq(1, 9000)],
    Own = [begin Self ! {own, K}, receive {own, K} -> {K, reds()} end end || K <- lists:seq(1, 5)],
    {Own, erlang:phash2(process_info(Self, messages)), [receive {job, N, _} -> N end || _ <- lists:seq(1, 9000)]}.

%% A map is read and updated with a key that the code does not know.
unknown(K, M) ->
    Try = fun(F) -> try F() catch error:E -> {E, reds()} end end,
    {case M of #{K := V} -> {V}; _ -> none end, case M of #{K := _} -> true; _ -> false end, Try(fun() -> M#{K := new} end),
     Try(fun() -> map_size(M#{K := a}) end), Try(fun() -> M#{K => new} end), Try(fun() -> maps:update_with(K, fun(V) -> {V} end, M) end)}.

integers(A, B) ->
    Whole = fun(F) -> try F() catch error:E -> E end end,
    {A + B, A - B, A * B, A + 3, A - 3, -A, A band B, A bor B, A bxor B, bnot A, A bsr 3, A bsl 3, A < B, A >= B,
     A =:= B, A == B, Whole(fun() -> A div B end), Whole(fun() -> A rem B end), Whole(fun() -> (A band 255) bsl (B band 63) end)}.

floats(A, B) -> {A + B, A - B, A * B, A / B, -A, A < B, trunc(B), (A + B) * (A - B)}.

terms() -> [1, -1, 1 bsl 70, 2.5, a, [], [1 | 2], "ab", {}, {1, 2}, {point, 1, 2}, <<>>, <<1>>, <<1:1>>, #{}, #{a => 1},
            fun lists:max/1, true, false].

order(A, B) -> {A < B, A >= B, A =:= B, A /= B}.

types(T) ->
    [is_integer(T), is_float(T), is_number(T), is_atom(T), is_boolean(T), is_list(T), is_tuple(T), is_binary(T),
     is_bitstring(T), is_map(T), is_function(T), is_function(T, 1), is_pid(T), is_record(T, point),
     case T of [] -> nil; [_ | _] -> cons; {} -> none; {_, _} -> two; _ -> other end].

select(0) -> zero; select(1) -> one; select(2) -> two; select(3) -> three; select(5) -> five; select(8) -> eight;
select(13) -> thirteen; select(21) -> twentyone; select(34) -> thirtyfour; select(a) -> a; select(true) -> t;
select({}) -> t0; select({_, _}) -> t2; select({_, _, _}) -> t3; select(2.5) -> float; select("ab") -> ab;
select(N) when is_integer(N), N > 20 -> large; select(_) -> other.

last_apply(M, F, A) -> M:F(A).

nrev([]) -> [];
nrev([H | T]) -> nrev(T) ++ [H].

deep(0) -> 0;
deep(N) -> 1 + deep(N - 1).

bits(<<A:2, B/bits>>) -> {A, bit_size(B), utf(B), B};
bits(B) -> B.

utf(<<C/utf8, R/bits>>) -> [C | utf(R)];
utf(<<C, R/bits>>) -> [{C} | utf(R)];
utf(R) -> R.

binaries() ->
    [<<>>, <<"ab">>, <<"abc">>, <<"GET / HTTP/1.1">>, <<255, 0, 128, 7, 9, 1:1>>, <<0:64, -1:64>>, <<2:4, 1:60, 9:8>>,
     list_to_binary(lists:seq(1, 100)), <<"a", 8364/utf8, "b", 16#10FFFF/utf8>>].

fields(<<A:24, B:40, C:16, R/bits>>) -> {A, B, C, R};
fields(<<A:56, R/bits>>) -> {A, R};
fields(<<A:1, _:5, B:2, C:8, R/bits>>) -> {A, B, C, R};
fields(B) -> B.

header(<<2:4, A:12, B:48, C:8>>) -> {A, B, C};
header(<<A:59, B:5, _/binary>>) -> {A, B};
header(<<A:16>>) -> A;
header(_) -> none.

constant(<<"GET ", A, R/binary>>) -> {A, R};
constant(<<0:64, A:32, R/bits>>) -> {A, R};
constant(_) -> none.

sextets(<<A:6, B:6, C:6, D:6, R/bits>>) -> [A, B, C, D | sextets(R)];
sextets(R) -> R.

%% From within a byte on.
inside(<<_:3, R/bits>>) -> [N || <<N:8>> <= R] ++ fields_of(R);
inside(_) -> none.

fields_of(<<A:8, B:16, R/bits>>) -> [A, B, bit_size(R)];
fields_of(_) -> [].

square(F) when F * 2 > F -> try F * F * 1.0 catch error:E -> E end;
square(F) -> {F * 1.5 - F / 2, -(F * 1.0)}.

large() -> maps:from_list([{N, -N} || N <- [a | lists:seq(1, 40)], is_integer(N)]).

keys(#{a := A, 2 := B, [] := C}) -> {A, B, C};
keys(M) when is_map_key(2, M), is_map_key(a, M) -> both;
keys(#{2 := B}) -> {b, B};
keys(#{a := A}) -> {a, A};
keys(_) -> none.

clause(a) -> b.

deep_error(0) -> error(deep);
deep_error(N) -> [deep_error(N - 1)].

messages(N) ->
    Me = self(),
    Echo = spawn_link(fun() -> echo(Me) end),
    [begin Echo ! {M, {M}}, receive {M, {M}} -> ok end end || M <- lists:seq(1, N)],
    unlink(Echo),
    exit(Echo, kill),
    N.

echo(To) -> receive M -> To ! M, echo(To) end.

loop(N) -> loop(N + 1).

tuple(N) -> {N, [N], <<N:32>>, #{n => N}}.

hibernating() ->
    {P, R} = spawn_monitor(fun() -> proc_lib:hibernate(erlang, exit, [awake]) end),
    P ! wake,
    receive {'DOWN', R, _, _, W} -> W end.

version() -> none.

%% A module that comes, is called, and goes.
reload(N) ->
    Forms = [{attribute, 1, module, coming}, {attribute, 1, export, [{f, 1}]},
             {function, 1, f, 1, [{clause, 1, [{var, 1, 'X'}], [], [{tuple, 1, [{integer, 1, N}, {var, 1, 'X'}]}]}]}],
    {ok, coming, Binary} = compile:forms(Forms),
    {module, coming} = code:load_binary(coming, "coming.erl", Binary),
    Result = coming:f(N),
    true = code:delete(coming),
    false = code:purge(coming),
    Result.
"#;

/// What templates leave to others, and what lies just before it.
const EDGES: &str = include_str!("engine/edges.erl");

/// Profiles the words of a program on both engines: what it prints, its calls, words and reductions are the same.
fn same_on_both_engines(place: &Place, command: &[&str], printed: &str) {
    let of = |engine| {
        let options = ["--deterministic", "--engine", engine, "--json", "out.json"];
        let profile = ["profile", "--type", "call_memory"];
        let told = place.printed(&[&profile[..], &options, &["--"], command].concat());
        assert!(told.contains(printed), "{told}");
        let text = std::fs::read_to_string(place.file("out.json")).expect("it was written");
        let all: Value = serde_json::from_str(&text).expect("JSON");
        let parts = ["functions", "processes", "counts", "call_tree"].map(|part| all[part].clone());
        (told, parts)
    };
    let ((told, parts), (other_told, other_parts)) = (of("interpreter"), of("jit"));
    for (line, other) in told.lines().zip(other_told.lines()) {
        assert_eq!(line, other, "the program tells of a difference");
    }
    assert!(
        parts[2].as_array().is_some_and(|all| all.len() > 1000),
        "{}",
        parts[2]
    );
    assert!(parts == other_parts, "calls, words or reductions differ");
}

#[test]
fn both_engines_do_the_same_to_the_last_reduction() {
    let Some(place) = Place::new(WORK) else {
        return;
    };
    same_on_both_engines(&place, &["work.erl", "x"], "killed: killed");
}

#[test]
fn both_engines_do_the_same_where_templates_end() {
    let Some(place) = Place::new(WORK) else {
        return;
    };
    std::fs::write(place.file("edges.erl"), EDGES).expect("the folder is there");
    same_on_both_engines(&place, &["edges.erl", "x"], "done");
}

#[test]
fn a_program_is_told_what_runs_it() {
    let Some(place) = Place::new(WORK) else {
        return;
    };
    let flavor = "io:format(\"~p~n\", [erlang:system_info(emu_flavor)]), halt().";
    let told = |arguments: &[&str]| {
        place.printed(&[arguments, &["--", "erl", "-noshell", "-eval", flavor]].concat())
    };
    assert_eq!(told(&["run", "--engine", "jit"]), "jit\n");
    assert_eq!(told(&["run", "--engine", "interpreter"]), "emu\n");
    // Whoever names none gets the compiled engine, where there is one.
    let mut unnamed = place.beamline(&["run", "--", "erl", "-noshell", "-eval", flavor]);
    let unnamed = unnamed.env_remove("BEAMLINE_ENGINE").output();
    let unnamed = unnamed.expect("beamline runs");
    let best = match cfg!(target_arch = "x86_64") {
        true => "jit\n",
        false => "emu\n",
    };
    assert_eq!(String::from_utf8_lossy(&unnamed.stdout), best);
}

#[test]
fn memory_of_code_that_is_gone_is_given_back() {
    let Some(place) = Place::new(WORK) else {
        return;
    };
    let code = "[work:reload(N) || N <- lists:seq(1, 100)], Before = erlang:memory(code), [work:reload(N) || N <- lists:seq(1, 200)], \
        io:format(\"~p~n\", [erlang:memory(code) - Before < 20000]), halt().";
    let erl = ["erl", "-noshell", "-eval", code];
    place.printed(&["run", "--", "erlc", "work.erl"]);
    let printed = place.printed(&[&["run", "--engine", "jit", "--"], &erl[..]].concat());
    assert_eq!(printed, "true\n");
}
