//! Which function is charged for words and time when calls end by exceptions.
//!
//! In a random program each function is called in one place alone, besides by itself. So the function that is charged for an
//! allocation is known, whichever functions are traced: the function, or else the nearest of those that lead to it, or else
//! nobody. `PROPTEST_RNG_SEED` and `PROPTEST_CASES` ask for other programs, and for more of them.

mod place;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use beamline_settings::random;
use serde_json::Value;

use place::{Place, errors};

const ENGINES: [&str; 2] = ["interpreter", "jit"];

/// Runs the programs, each once for every set of its functions that is traced.
const HARNESS: &str = r#"
-module(work).
-compile([export_all, nowarn_export_all, nowarn_unused_vars, nowarn_shadow_vars]).

main(["once"]) -> [run(Top, fun(_) -> ok end) || {Top, _} <- programs()], ok;
main(["all"]) ->
    [[measured(Program, At, Mask) || Mask <- lists:seq(1, 1 bsl length(Mfas) - 1)]
     || {At, {_, Mfas} = Program} <- lists:enumerate(0, programs())],
    ok.

measured({Top, Mfas}, At, Mask) ->
    All = lists:enumerate(0, Mfas),
    {Chosen, Others} = lists:partition(fun({I, _}) -> Mask band (1 bsl I) =/= 0 end, All),
    Way = case Others of [] -> 0; _ -> (Mask + At) rem 5 end,
    Read = traced(Way, Top, [Mfa || {_, Mfa} <- Chosen], [Mfa || {_, Mfa} <- Others]),
    [io:format("~w ~w ~w ~w ~w~n", [At, Mask, I, Calls, Words])
     || {{I, _}, {Calls, Words}} <- lists:zip(Chosen, Read)].

%% Calls and words of each of Mfas, as a way of asking for them tells.
traced(0, Top, Mfas, _) -> session(Top, Mfas, [call_memory], fun(_) -> ok end);
traced(1, Top, Mfas, _) -> session(Top, Mfas, [call_memory, call_time], fun(_) -> ok end);
traced(2, Top, Mfas, _) -> session(Top, Mfas, [call_memory, call_count], fun(_) -> ok end);
traced(3, Top, Mfas, Others) ->
    Second = trace:session_create(second, self(), []),
    [1 = trace:function(Second, Mfa, true, [call_time]) || Mfa <- Others],
    Trace = fun(Pid) -> 1 = trace:process(Second, Pid, true, [call]) end,
    Read = session(Top, Mfas, [call_memory], Trace),
    true = trace:session_destroy(Second),
    Read;
traced(4, Top, Mfas, _) ->
    [1 = erlang:trace_pattern(Mfa, true, [call_memory]) || Mfa <- Mfas],
    Pid = run(Top, fun(Pid) -> 1 = erlang:trace(Pid, true, [call]) end),
    Read = [row(erlang:trace_info(Mfa, call_memory), Pid) || Mfa <- Mfas],
    erlang:trace_pattern({'_', '_', '_'}, false, [call_memory]),
    Read.

session(Top, Mfas, Kinds, Also) ->
    Session = trace:session_create(first, self(), []),
    [1 = trace:function(Session, Mfa, true, Kinds) || Mfa <- Mfas],
    Trace = fun(Pid) -> 1 = trace:process(Session, Pid, true, [call]), Also(Pid) end,
    Pid = run(Top, Trace),
    Read = [row(trace:info(Session, Mfa, call_memory), Pid) || Mfa <- Mfas],
    true = trace:session_destroy(Session),
    Read.

row({call_memory, Rows}, Pid) ->
    case lists:keyfind(Pid, 1, Rows) of
        {_, Calls, Words} -> {Calls, Words};
        false -> {0, 0}
    end.

run(Top, Trace) ->
    {Pid, Ref} = spawn_monitor(fun() -> receive go -> ok end, ?MODULE:Top() end),
    Trace(Pid),
    Pid ! go,
    receive {'DOWN', Ref, process, Pid, normal} -> Pid end.

id(X) -> X.
pick(N, _, Odd) when N rem 2 =:= 1 -> Odd;
pick(_, Even, _) -> Even.
again(0) -> ok;
again(N) -> id({N, N}), again(N - 1).
"#;

/// What raises an exception in a function with the argument `N`.
const RAISES: [&str; 17] = [
    "throw(N)",
    "exit(N)",
    "error(N)",
    "error(N, [N, a])",
    "erlang:raise(error, {N, x}, [])",
    "1 + id(a)",
    "hd(id([]))",
    "{ok, _} = id(N)",
    "case id(N) of a -> ok end",
    "if N =:= a -> ok end",
    "(id(N))(1)",
    "(id(fun id/1))(1, 2)",
    "?MODULE:nothing(N)",
    "apply(id(work), id(nothing), [N])",
    "lists:nth(0, id([]))",
    "list_to_atom(id(N))",
    "element(9, id({}))",
];

/// Functions in machine code that can be traced, and calls of them.
const NATIVES: [(&str, &str); 10] = [
    (
        "erlang:binary_to_integer/1",
        "binary_to_integer(pick(N, a, <<\"12\">>))",
    ),
    ("erlang:atom_to_list/1", "atom_to_list(pick(N, ab, 7))"),
    (
        "lists:reverse/2",
        "lists:reverse(pick(N, [1, 2], [3 | 4]), [])",
    ),
    ("lists:keyfind/3", "lists:keyfind(N, pick(N, 1, 0), [{N}])"),
    ("ets:lookup/2", "ets:lookup(no_such_table, N)"),
    ("prim_buffer:size/1", "prim_buffer:size(id(N))"),
    ("prim_file:read_link_nif/1", "prim_file:read_link_nif(N)"),
    ("erlang:throw/1", "erlang:throw({N, N})"),
    ("erlang:exit/1", "erlang:exit({N, N})"),
    ("erlang:error/1", "erlang:error({N, N})"),
];

/// What allocates, or gives the time slice up.
const WORKS: [&str; 7] = [
    "id({N, N, N})",
    "id([N | N])",
    "id([D, N])",
    "lists:seq(1, 300)",
    "receive after 0 -> ok end",
    "again(40)",
    "erlang:yield()",
];

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(random::STEP);
        (random::mixed(self.0) % limit as u64) as usize
    }
    fn one_in(&mut self, many: usize) -> bool {
        self.below(many) == 0
    }
    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

/// A function of a program, or one in machine code that is called there.
struct Function {
    /// `Module:Function/Arity`.
    mfa: String,
    /// Which one calls it; only the first is called by none.
    parent: Option<usize>,
    /// How it is called, if it is in machine code.
    native: Option<&'static str>,
}

struct Program {
    functions: Vec<Function>,
    source: String,
}

/// Writes one program.
struct Writer<'a> {
    random: &'a mut Random,
    name: usize,
    functions: Vec<Function>,
    variables: usize,
}

impl Writer<'_> {
    /// A program with the functions `NAME_0` and more.
    fn program(random: &mut Random, name: usize) -> Program {
        let mut writer = Writer {
            random,
            name,
            functions: Vec::new(),
            variables: 0,
        };
        writer.choose();
        let mut source = format!(
            "p{name}_0() -> [{{N, (catch p{name}_1(N, 1)), N}} || N <- lists:seq(0, 6)], id({{a, b}}).\n"
        );
        for at in 1..writer.functions.len() {
            if writer.functions[at].native.is_none() {
                source += &writer.function(at);
            }
        }
        Program {
            functions: writer.functions,
            source,
        }
    }

    fn choose(&mut self) {
        let natives = self.random.below(3);
        for at in 0..6 {
            let native = (at >= 6 - natives).then(|| self.random.of(&NATIVES));
            let mfa = match native {
                Some((mfa, _)) => mfa.to_owned(),
                None => format!("work:p{}_{at}/{}", self.name, if at == 0 { 0 } else { 2 }),
            };
            if self.functions.iter().any(|known| known.mfa == mfa) {
                continue;
            }
            let parent = match at {
                0 => None,
                1 => Some(0),
                // One that is no native.
                _ => Some(1 + self.random.below((at - 1).min(5 - natives))),
            };
            let native = native.map(|(_, call)| call);
            self.functions.push(Function {
                mfa,
                parent,
                native,
            });
        }
    }

    fn function(&mut self, at: usize) -> String {
        let children: Vec<usize> = (at + 1..self.functions.len())
            .filter(|child| self.functions[*child].parent == Some(at))
            .collect();
        let mut items: Vec<String> = (0..self.random.below(3)).map(|_| self.work()).collect();
        for child in &children {
            let call = self.call_of(*child);
            items.push(self.guarded(&call));
        }
        let name = format!("p{}_{at}", self.name);
        if self.random.one_in(3) {
            let calls = format!("case D > 0 of true -> {name}(N + 1, D - 1); false -> ok end");
            items.push(calls);
        }
        if self.random.one_in(2) {
            items.push(self.raise());
        }
        for last in (1..items.len()).rev() {
            items.swap(last, self.random.below(last + 1));
        }
        if items.is_empty() || self.random.one_in(2) {
            items.push(self.work());
        }
        format!(
            "{name}(N, D) when is_integer(N) ->\n    {}.\n",
            items.join(",\n    ")
        )
    }

    fn work(&mut self) -> String {
        self.random.of(&WORKS).to_owned()
    }

    /// An exception for some numbers, by no function that is traced as one that is called elsewhere alone.
    fn raise(&mut self) -> String {
        let is_apart = |raise: &&str| {
            let calls = |function: &Function| {
                let name = function.mfa.split([':', '/']).nth(1).unwrap_or_default();
                // `error_handler` raises the exception for a function that is not there.
                raise.contains(&format!("{name}(")) || name == "error" && raise.contains("nothing")
            };
            !self.functions.iter().any(calls)
        };
        let all: Vec<&str> = RAISES.into_iter().filter(is_apart).collect();
        let (raise, of) = (self.random.of(&all), self.random.below(3));
        match of {
            0 => format!("case D of 0 -> {raise}; _ -> ok end"),
            _ => format!("case N rem 3 of {of} -> {raise}; _ -> ok end"),
        }
    }

    fn call_of(&mut self, child: usize) -> String {
        if let Some(call) = self.functions[child].native {
            return call.to_owned();
        }
        let has_children = self
            .functions
            .iter()
            .any(|other| other.parent == Some(child));
        // Compiled code counts calls by itself where a function has called itself some hundred times.
        let depth = match has_children {
            true => self.random.below(3),
            false => self.random.of(&[0, 2, 5, 700]),
        };
        let name = format!("p{}_{child}", self.name);
        let number = match self.random.one_in(5) {
            true => "pick(N, N + 1, a)",
            false => "N + 1",
        };
        self.variables += 1;
        let (i, work) = (format!("I{}", self.variables), self.work());
        match self.random.below(10) {
            0 => format!("?MODULE:{name}({number}, {depth})"),
            1 => format!("apply(?MODULE, id({name}), [{number}, {depth}])"),
            2 => format!("(id(fun {name}/2))({number}, {depth})"),
            3 => format!("(id(fun() -> {work}, {name}({number}, {depth}) end))()"),
            4 => format!("lists:foreach(fun({i}) -> {name}({i}, {depth}) end, [N, N + 1])"),
            5 => format!("[{name}({i}, {depth}) || {i} <- [N, N + 1]]"),
            6 => {
                format!("lists:map(fun({i}) -> {work}, catch {name}({i}, {depth}) end, [N, N + 1])")
            }
            _ => format!("{name}({number}, {depth})"),
        }
    }

    /// `call`, perhaps with what catches its exceptions or runs behind them.
    fn guarded(&mut self, call: &str) -> String {
        self.variables += 1;
        let v = self.variables;
        let work = self.work();
        let raised = format!("C{v}:R{v}:S{v}");
        match self.random.below(12) {
            0 => format!("(catch {call})"),
            1 => format!("try {call} catch throw:_ -> {work} end"),
            2 => format!("try {call} catch error:_ -> {work} end"),
            3 => format!("try {call} catch exit:_ -> {work}; error:_:S{v} -> id(S{v}) end"),
            4 => format!("try {call} catch _:_ -> {work} end"),
            5 => format!("try {call} after {work} end"),
            6 => format!(
                "try {call} of _ -> {work} catch {raised} -> {work}, erlang:raise(C{v}, R{v}, S{v}) end"
            ),
            7 => format!("try try {call} after {work} end catch _:_:S{v} -> {{{work}, S{v}}} end"),
            8 => format!("try {call}, {work} catch _:_ -> (catch hd(id([]))) end"),
            _ => call.to_owned(),
        }
    }
}

impl Program {
    /// Which of the functions in `mask` is charged for what this one allocates.
    fn owner(&self, of: usize, mask: usize) -> Option<usize> {
        match mask >> of & 1 {
            1 => Some(of),
            _ => self.owner(self.functions[of].parent?, mask),
        }
    }

    /// What the functions in `mask` are charged for, of what all functions are.
    fn expected(&self, own: &[(i64, i64)], mask: usize) -> BTreeMap<usize, (i64, i64)> {
        let chosen = (0..own.len()).filter(|at| mask >> at & 1 == 1);
        let mut expected: BTreeMap<_, _> = chosen.map(|at| (at, (own[at].0, 0))).collect();
        for (at, (_, words)) in own.iter().enumerate() {
            if let Some(owner) = self.owner(at, mask) {
                expected.entry(owner).or_default().1 += words;
            }
        }
        expected
    }
}

fn asked(variable: &str, default: u64) -> u64 {
    let text = std::env::var(variable).ok();
    text.map_or(default, |text| text.parse().expect("a number"))
}

/// Programs of this seed, and their source.
fn programs(seed: u64, count: usize) -> (Vec<Program>, String) {
    let mut random = Random(seed);
    let programs: Vec<Program> = (0..count)
        .map(|name| Writer::program(&mut random, name))
        .collect();
    let mut source = HARNESS.to_owned();
    let mut list = Vec::new();
    for (at, program) in programs.iter().enumerate() {
        source += &program.source;
        let mfas: Vec<String> = program.functions.iter().map(|of| tuple(&of.mfa)).collect();
        list.push(format!("{{p{at}_0, [{}]}}", mfas.join(", ")));
    }
    let _ = writeln!(source, "programs() -> [{}].", list.join(",\n    "));
    (programs, source)
}

/// `{Module, Function, Arity}`.
fn tuple(mfa: &str) -> String {
    let parts: Vec<&str> = mfa.split([':', '/']).collect();
    format!("{{{}}}", parts.join(", "))
}

fn printed(place: &Place, engine: &str, arguments: &[&str]) -> String {
    let mut command = place.beamline(arguments);
    let output = command.env("BEAMLINE_ENGINE", engine).output();
    let output = output.expect("it starts");
    assert!(output.status.success(), "{engine}: {}", errors(&output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Of each program and set of traced functions: calls and words of each.
type Measured = BTreeMap<(usize, usize), BTreeMap<usize, (i64, i64)>>;

fn measured(text: &str) -> Measured {
    let mut all = Measured::new();
    for line in text.lines() {
        let numbers = line.split(' ').map(|part| part.parse().expect("a number"));
        let numbers: Vec<i64> = numbers.collect();
        let [program, mask, at] = [0, 1, 2].map(|i| numbers[i] as usize);
        let rows = all.entry((program, mask)).or_default();
        rows.insert(at, (numbers[3], numbers[4]));
    }
    all
}

#[test]
fn each_set_of_traced_functions_has_what_all_have_together() {
    let seed = asked("PROPTEST_RNG_SEED", 29);
    let count = asked("PROPTEST_CASES", 6) as usize;
    let (programs, source) = programs(seed, count);
    let Some(place) = Place::new(&source) else {
        return;
    };
    let mut engines = Vec::new();
    for engine in ENGINES {
        let all = measured(&printed(&place, engine, &["run", "--", "work.erl", "all"]));
        let mut own = Vec::new();
        for (at, program) in programs.iter().enumerate() {
            let whole = (1 << program.functions.len()) - 1;
            let rows: Vec<_> = all[&(at, whole)].values().copied().collect();
            for mask in 1..whole {
                let expected = program.expected(&rows, mask);
                let told = || format!("{engine}, program {at}, {mask:#b}:\n{}", program.source);
                assert_eq!(all[&(at, mask)], expected, "{}", told());
            }
            own.push(rows);
        }
        reports_agree(&place, engine, &programs, &own, &mut Random(seed));
        engines.push(own);
    }
    assert_eq!(engines[0], engines[1]);
}

/// Profiles and a recording of some of the functions have what is expected, too.
fn reports_agree(
    place: &Place,
    engine: &str,
    programs: &[Program],
    own: &[Vec<(i64, i64)>],
    random: &mut Random,
) {
    let mut patterns = Vec::new();
    let mut expected = BTreeMap::new();
    for (program, own) in programs.iter().zip(own) {
        let is_chosen = |at: &usize| program.functions[*at].native.is_none();
        let chosen = (0..own.len()).filter(is_chosen);
        let mask = chosen.fold(0, |mask, at| mask | (random.below(2) << at));
        for (at, cost) in program.expected(own, mask) {
            let mfa = &program.functions[at].mfa;
            patterns.extend(["--pattern", mfa]);
            if cost.0 > 0 {
                expected.insert(mfa.clone(), cost);
            }
        }
    }
    let program = ["--", "work.erl", "once"];
    let profile = ["profile", "--type", "call_memory", "--json", "p.json"];
    for more in [&[][..], &["--flamegraph", "p.svg"]] {
        let arguments = [&profile[..], more, &patterns, &program].concat();
        printed(place, engine, &arguments);
        let name = |row: &Value| {
            let part = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
            format!("{}:{}/{}", part("module"), part("function"), row["arity"])
        };
        let rows = words(&place.json("p.json")["functions"], name, "words");
        assert_eq!(rows, expected, "{engine}, {arguments:?}");
    }
    let record = ["record", "--events", "calls,returns,words", "-o", "w.ring"];
    printed(place, engine, &[&record[..], &patterns, &program].concat());
    let name = |row: &Value| row["function"].as_str().unwrap_or_default().to_owned();
    let rows = words(&place.report("w.ring")["by_words"], name, "own_words");
    assert_eq!(rows, expected, "{engine}, {patterns:?}");
}

fn words(
    rows: &Value,
    name: impl Fn(&Value) -> String,
    words: &str,
) -> BTreeMap<String, (i64, i64)> {
    let number = |row: &Value, key: &str| row[key].as_i64().unwrap_or(i64::MAX);
    let rows = rows.as_array().expect("a list").iter();
    rows.map(|row| (name(row), (number(row, "calls"), number(row, words))))
        .collect()
}

/// Raises in three ways, and works behind that. `closed/2` gives what the functions have before the work, and behind it.
const AFTER: &str = r#"
-module(work).
-compile([export_all, nowarn_export_all]).

main(_) ->
    Sets = [[{f, 1}], [{g, 1}], [{h, 1}], [{inner, 1}], [{h, 1}, {inner, 1}], [{f, 1}, {g, 1}, {h, 1}, {inner, 1}]],
    [io:format("~w ~w~n", [Set, closed(Way, Set)]) || Way <- [session, global], Set <- Sets].

closed(session, Set) ->
    Session = trace:session_create(after_catch, self(), []),
    [1 = trace:function(Session, {work, F, A}, true, [call_time, call_memory]) || {F, A} <- Set],
    Trace = fun(Pid) -> 1 = trace:process(Session, Pid, true, [call]) end,
    Read = fun(F, A, Kind) -> trace:info(Session, {work, F, A}, Kind) end,
    Both = both(Set, Trace, Read),
    true = trace:session_destroy(Session),
    Both;
closed(global, Set) ->
    [1 = erlang:trace_pattern({work, F, A}, true, [call_time]) || {F, A} <- Set],
    Trace = fun(Pid) -> 1 = erlang:trace(Pid, true, [call]) end,
    Read = fun(F, A, Kind) -> erlang:trace_info({work, F, A}, Kind) end,
    Both = both(Set, Trace, Read),
    erlang:trace_pattern({work, '_', '_'}, false, [call_time]),
    Both.

both(Set, Trace, Read) ->
    Me = self(),
    {Pid, Ref} = spawn_monitor(fun() -> worker(Me) end),
    Trace(Pid),
    All = fun() -> [Read(F, A, Kind) || {F, A} <- Set, Kind <- [call_time, call_memory]] end,
    Pid ! go,
    receive {Pid, caught} -> ok end,
    Caught = All(),
    Pid ! go,
    receive {'DOWN', Ref, process, Pid, normal} -> ok end,
    case All() of
        Caught -> [Calls || {call_time, [{_, Calls, _, _}]} <- Caught];
        Later -> {Caught, Later}
    end.

worker(Parent) ->
    receive go -> ok end,
    try f(a) catch error:_ -> ok end,
    try g(1) catch throw:x -> ok end,
    try h(1) catch error:badarith -> ok end,
    Parent ! {self(), caught},
    receive go -> ok end,
    burn(200000, []).

f(N) when is_integer(N) -> N.
g(_) -> throw(x).
h(X) -> 1 + inner(X).
inner(X) -> X / (X - X).
burn(0, _) -> ok;
burn(N, L) -> burn(N - 1, [N | L]).
"#;

#[test]
fn time_behind_a_caught_exception_is_nobodys() {
    let Some(place) = Place::new(AFTER) else {
        return;
    };
    let all = "[{f,1}] [1]\n[{g,1}] [1]\n[{h,1}] [1]\n[{inner,1}] [1]\n[{h,1},{inner,1}] [1,1]\n\
               [{f,1},{g,1},{h,1},{inner,1}] [1,1,1,1]\n";
    for engine in ENGINES {
        let told = printed(&place, engine, &["run", "--", "work.erl"]);
        assert_eq!(told, all.repeat(2), "{engine}");
    }
}

#[test]
fn a_call_that_raises_is_in_the_table() {
    let source = "\
-module(work).
-export([main/0, f/1]).
main() -> caught = try f(a) catch error:_ -> caught end.
f(N) when is_integer(N) -> N.
";
    let Some(place) = Place::new(source) else {
        return;
    };
    let profile = ["profile", "--type", "call_memory", "--by", "total"];
    let program = ["--pattern", "work:f/1", "--", "work.erl"];
    for engine in ENGINES {
        let table = printed(&place, engine, &[&profile[..], &program].concat());
        // Its argument in a list, and a stack trace.
        let row = table.lines().nth(1).unwrap_or_default();
        let cells: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(cells[..3], ["work:f/1", "1", "18"], "{engine}: {table}");
    }
}
