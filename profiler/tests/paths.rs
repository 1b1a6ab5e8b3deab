//! Call paths against a model: random programs of nested closures, dispatchers, mutual recursion, tail calls and
//! exceptions. The model is the stack, which this file follows record by record and folds by itself.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use beamline_formats::name;
use beamline_settings::random;
use serde_json::Value;

mod place;
use place::{Place, has_elixir};

/// Calls and words of each path, the oldest function first.
type Costs = BTreeMap<Vec<String>, (u64, i64)>;

/// Numbers that depend on a seed alone.
struct Lot(u64);

impl Lot {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = random::mixed(self.0.wrapping_add(1));
        self.0 % end
    }
}

/// Functions of a program.
const FUNCTIONS: u64 = 6;

/// One statement of a function that may go `N` calls deep.
fn statement(lot: &mut Lot) -> String {
    let callee = lot.below(FUNCTIONS);
    let call = format!("f{callee}(N - {})", 1 + lot.below(2));
    match lot.below(9) {
        0 | 1 => format!("{call}, "),
        2 => format!("apply(work, f{callee}, [N - 1]), "),
        3 => format!("lists:foreach(fun(M) -> f{callee}(M - 1) end, [N, N - 1]), "),
        4 => format!("(catch {call}), "),
        5 => format!("try {call} catch throw:_ -> f{callee}(N - 2) end, "),
        6 => format!("try {call} after f{callee}(N - 2) end, "),
        7 => format!("N rem 3 =:= {} andalso throw({{lost, N}}), ", lot.below(3)),
        _ => format!("put(kept, [N | lists:duplicate({}, N)]), ", lot.below(5)),
    }
}

/// A program that ends, whatever its functions call.
fn program(seed: u64) -> String {
    let mut lot = Lot(seed);
    let mut text = "-module(work).\n-compile(export_all).\n-compile(nowarn_export_all).\n\
                    main() -> [catch F() || F <- [fun() -> f0(7) end, fun() -> f1(7) end, fun() -> loop(9) end]].\n\
                    loop(0) -> done;\nloop(N) -> step(N rem 3, N).\n\
                    step(0, N) -> f2(2), other(N);\nstep(_, N) -> loop(N - 1).\nother(N) -> loop(N - 1).\n"
        .to_owned();
    for function in 0..FUNCTIONS {
        let _ = write!(
            text,
            "f{function}(N) when N < 1 -> [N];\nf{function}(N) -> "
        );
        for _ in 0..lot.below(3) {
            text += &statement(&mut lot);
        }
        let callee = lot.below(FUNCTIONS);
        text += &match lot.below(4) {
            0 => "[N]".to_owned(),
            1 => format!("(fun(M) -> f{callee}(M) end)(N - 1)"),
            2 => format!("apply(work, f{callee}, [N - 1])"),
            _ => format!("f{callee}(N - 1)"),
        };
        text += ".\n";
    }
    text
}

/// A path and a function that is called from there: of the newest functions that repeat those before them one period goes.
fn folded(path: &[String], function: &str) -> Vec<String> {
    let mut path = path.to_vec();
    path.push(function.to_owned());
    let repeats = |period: &usize| {
        let (before, newest) = path.split_at(path.len() - period);
        before.ends_with(newest)
    };
    if let Some(period) = (1..=path.len() / 2).find(repeats) {
        path.truncate(path.len() - period);
    }
    path
}

/// The stack of a process. The newest call's tail calls share its frame; so do the paths that they led to.
#[derive(Default)]
struct Stack {
    frames: Vec<(Vec<String>, Vec<Vec<String>>)>,
    path: Vec<String>,
    words: i64,
}

impl Stack {
    fn call(&mut self, function: &str) {
        self.frames.push((self.path.clone(), Vec::new()));
        self.go_on(function);
    }

    fn tail_call(&mut self, function: &str) {
        let (_, row) = self.frames.last_mut().expect("a call that goes on");
        let again = row
            .iter()
            .rposition(|path| path.last().is_some_and(|last| last == function));
        match again {
            Some(at) => {
                row.truncate(at + 1);
                self.path = row[at].clone();
            }
            None => self.go_on(function),
        }
    }

    fn go_on(&mut self, function: &str) {
        if self.path.last().is_some_and(|last| last == function) {
            return;
        }
        self.path = folded(&self.path, function);
        let (_, row) = self.frames.last_mut().expect("a call that goes on");
        row.push(self.path.clone());
    }

    fn leave(&mut self, calls: u64) {
        for _ in 0..calls {
            let frame = self.frames.pop();
            self.path = frame.map_or(Vec::new(), |(below, _)| below);
        }
    }
}

/// What the records of a recording say, as lines of JSON.
fn model(lines: &str) -> Costs {
    let mut stacks: BTreeMap<String, Stack> = BTreeMap::new();
    let mut costs = Costs::new();
    for line in lines.lines() {
        let line: Value = serde_json::from_str(line).expect("JSON");
        let Some(of) = line.as_array() else { continue };
        let stack = stacks.entry(of[3].to_string()).or_default();
        let function = || of[4].as_str().expect("a function");
        let is_call = match of[0].as_str().expect("a name") {
            "call" => {
                stack.call(function());
                true
            }
            "tail_call" => {
                stack.tail_call(function());
                true
            }
            "return" => {
                stack.leave(1);
                false
            }
            "unwind" => {
                stack.leave(of[4].as_u64().expect("a number"));
                false
            }
            "words" => {
                let total = of[4].as_i64().expect("a number");
                let came = total - std::mem::replace(&mut stack.words, total);
                if !stack.path.is_empty() {
                    costs.entry(stack.path.clone()).or_default().1 += came;
                }
                false
            }
            _ => false,
        };
        if is_call {
            costs.entry(stack.path.clone()).or_default().0 += 1;
        }
    }
    costs
}

/// The call tree of a profile, or of the report of a recording.
fn tree(profile: &Value) -> Costs {
    let text_of = |function: &Value| {
        let text = |field: &str| function[field].as_str().expect("a text").to_owned();
        let arity = function["arity"].as_u64().expect("a number");
        name::mfa(&text("module"), &text("function"), arity as u32)
    };
    let functions: Vec<String> = profile["functions"]
        .as_array()
        .expect("functions")
        .iter()
        .map(text_of)
        .collect();
    let mut paths: Vec<Vec<String>> = Vec::new();
    let mut costs = Costs::new();
    for node in profile["call_tree"].as_array().expect("a call tree") {
        let above = node["parent"]
            .as_u64()
            .map(|parent| paths[parent as usize].clone());
        let mut path = above.unwrap_or_default();
        path.push(functions[node["function"].as_u64().expect("a function") as usize].clone());
        let cost = costs.entry(path.clone()).or_default();
        cost.0 += node["calls"].as_u64().expect("calls");
        cost.1 += node["words"].as_i64().expect("words");
        paths.push(path);
    }
    costs
}

const PROGRAM: [&str; 8] = ["--", "erl", "-noshell", "-s", "work", "main", "-s", "init"];

#[test]
fn paths_are_those_of_the_stack() {
    let number = |variable: &str, default: u64| {
        let value = std::env::var(variable).ok();
        value.map_or(default, |value| value.parse().expect("a number"))
    };
    let (first, cases) = (
        number("BEAMLINE_PATHS_SEED", 1),
        number("BEAMLINE_PATHS_CASES", 3),
    );
    for seed in first..first + cases {
        let source = program(seed);
        let Some(place) = Place::new(&source) else {
            return;
        };
        place.printed(&["run", "--", "erlc", "work.erl"]);
        for engine in ["jit", "interpreter"] {
            for form in [&[][..], &["--deterministic"]] {
                let run = |words: &[&str]| {
                    let patterns = [
                        "--pattern",
                        "work",
                        "--pattern",
                        "lists:foreach/2",
                        "--engine",
                        engine,
                    ];
                    let all = [words, &patterns, form, &PROGRAM, &["stop"]].concat();
                    place.printed(&all);
                };
                run(&[
                    "record",
                    "--events",
                    "calls,returns,words,scheduling",
                    "-o",
                    "run.stream",
                ]);
                let lines =
                    place.printed(&["export", "--to", "jsonl", "run.stream", "-o", "/dev/stdout"]);
                let expect = model(&lines);
                assert!(expect.len() > 5, "{source}");
                run(&[
                    "profile",
                    "--type",
                    "call_memory",
                    "--flamegraph",
                    "run.svg",
                    "--json",
                    "run.json",
                ]);
                let case = format!("seed {seed}, {engine}, {form:?}\n{source}");
                assert_eq!(tree(&place.json("run.json")), expect, "profile, {case}");
                place.printed(&["report", "run.stream", "--json", "run.json"]);
                check_totals(&place.json("run.json"), &expect, &case);
            }
        }
    }
}

/// A function's total has each path once that the function is on.
fn check_totals(report: &Value, costs: &Costs, case: &str) {
    let rows = report["by_total"].as_array().expect("functions");
    for row in rows {
        let function = row["function"].as_str().expect("a name");
        let is_on = |(path, _): &(&Vec<String>, _)| path.iter().any(|of| of == function);
        let words: i64 = costs
            .iter()
            .filter(is_on)
            .map(|(_, (_, words))| words)
            .sum();
        assert_eq!(
            row["total_words"].as_i64(),
            Some(words),
            "{function}, {case}"
        );
    }
}

/// Calls and all reductions with callees of a function, of a recorded program.
fn totals_of(place: &Place, program: &str, function: &str) -> (u64, u64) {
    place.printed(&[
        "record",
        "--events",
        "calls,returns,reductions",
        "-o",
        "run.stream",
        "--",
        program,
    ]);
    let report = place.report("run.stream");
    let rows = report["by_total"].as_array().expect("functions");
    let row = rows
        .iter()
        .find(|row| row["function"] == function)
        .expect("it was called");
    let number = |field: &str| row[field].as_u64().expect("a number");
    (number("calls"), number("total_reductions"))
}

/// Reductions of each loop of the programs below: less than all of them, and much more than all else.
const LOOP: u64 = 200_000;

#[test]
fn a_function_between_two_calls_of_a_library_function_has_what_it_called() {
    let source = format!(
        "-module(work).
-export([main/0]).
main() -> lists:foreach(fun(Order) -> order(Order) end, [1, 2]), dispatch(fun first/0).
order(Order) -> lists:foreach(fun(Item) -> item(Item + Order) end, [1, 2]), ok.
item(N) -> burn({LOOP}), N.
dispatch(Step) -> Step().
first() -> R = dispatch(fun second/0), {{1, R}}.
second() -> burn({LOOP}), R = dispatch(fun third/0), {{2, R}}.
third() -> burn({LOOP}), 3.
burn(0) -> ok;
burn(N) -> burn(N - 1).
"
    );
    let Some(place) = Place::new(&source) else {
        return;
    };
    for (function, calls, loops) in [
        ("work:main/0", 1, 6),
        ("work:order/1", 2, 4),
        ("work:item/1", 4, 4),
        ("work:dispatch/1", 3, 2),
        ("work:first/0", 1, 2),
        ("work:third/0", 1, 1),
        ("work:burn/1", 6 * (LOOP + 1), 6),
    ] {
        let (called, reductions) = totals_of(&place, "work.erl", function);
        assert_eq!(called, calls, "{function}");
        assert_eq!(reductions / LOOP, loops, "{function}: {reductions}");
    }
    place.printed(&["export", "--to", "folded", "run.stream", "-o", "run.folded"]);
    let folded = std::fs::read_to_string(place.file("run.folded")).expect("it was written");
    let is_meant = |line: &str| {
        line.contains("work:order/1;lists:foreach/2;") && line.contains(";work:item/1;work:burn/1 ")
    };
    assert!(folded.lines().any(is_meant), "{folded}");
}

#[test]
fn a_script_of_elixir_has_its_functions_with_what_they_called() {
    let Some(place) = Place::new("") else { return };
    if !has_elixir() {
        return;
    }
    let script = format!(
        "defmodule Shop do
  def total(ids), do: ids |> Enum.map(&price/1) |> Enum.sum()
  def price(n), do: spin(n * {LOOP})
  defp spin(0), do: 1
  defp spin(n), do: spin(n - 1)
end
IO.puts(Shop.total([1, 2, 3]))
"
    );
    place.write("shop.exs", &script);
    let (calls, reductions) = totals_of(&place, "shop.exs", "Shop.total/1");
    assert_eq!((calls, reductions / LOOP), (1, 6), "{reductions}");
}
