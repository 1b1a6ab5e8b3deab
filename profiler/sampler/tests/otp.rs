//! Samples an emulator of OTP that runs a program whose shares are known. `BEAMLINE_SAMPLED_ERL` names the command that
//! starts it, such as `chroot DIR erl`; otherwise it is the `erl` of the path.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use beamline_needs::{Need, skipped};
use beamline_sampler::emulator::{Emulator, Refusal, Thread, ThreadKind};
use beamline_sampler::perf::Event;
use beamline_sampler::sampler::{How, Sampler, Target, Threads, Told};
use beamline_sampler::stack::{Does, Frame};

/// A program in forms, which `-eval` compiles: `a/1` takes three times as many rounds as `b/1`, both of the same kind; `c/1` calls a
/// BIF, which takes most of its time.
const PROGRAM: &str = r#"
F = fun(S) -> {ok, T, _} = erl_scan:string(S), {ok, P} = erl_parse:parse_form(T), P end,
{ok, M, B} = compile:forms([F(S) || S <- [
    "-module(shares).", "-export([run/0, 'odd name'/1]).",
    "run() -> a(300000), b(100000), 'odd name'(300), run().",
    "a(0) -> ok; a(N) -> X = N * 7 rem 13, a(N - 1 + X - X).",
    "b(0) -> ok; b(N) -> X = N * 7 rem 13, b(N - 1 + X - X).",
    "'odd name'(0) -> ok; 'odd name'(N) -> true = is_binary(term_to_binary(get(list))), 'odd name'(N - 1)."]]),
{module, M} = code:load_binary(M, "shares", B),
put(list, lists:seq(1, 300)),
shares:run()."#;

/// A node, which ends with this value.
struct Node(Child);

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A program that collects a large heap again and again, which dirty schedulers do.
const COLLECTS: &str =
    "put(list, lists:seq(1, 3000000)), F = fun(F) -> erlang:garbage_collect(), F(F) end, F(F).";

/// Starts a node that runs [`PROGRAM`]; none where there is no OTP, or no performance events.
fn node(name: &str) -> Option<Node> {
    let program: String = PROGRAM.split('\n').collect::<Vec<_>>().join(" ");
    node_of(name, &program)
}

fn node_of(name: &str, eval: &str) -> Option<Node> {
    node_with(name, &[], eval, Stdio::null())
}

/// Starts a node with these options.
fn node_with(name: &str, options: &[&str], eval: &str, output: Stdio) -> Option<Node> {
    if Event::open(std::os::unix::process::parent_id(), 1_000_000_000).is_err() {
        skipped(Need::Events, "there are no performance events here");
        return None;
    }
    let named = std::env::var("BEAMLINE_SAMPLED_ERL").unwrap_or_else(|_| "erl".to_owned());
    let mut words = named.split_whitespace();
    let program = words.next()?;
    let child = Command::new(program)
        .args(words)
        .args(options)
        .args(["-noshell", "-sname", name, "-eval", eval])
        .stdin(Stdio::null())
        .stdout(output)
        .spawn();
    match child {
        Ok(child) => Some(Node(child)),
        Err(_) => {
            skipped(
                Need::Emulator,
                "there is no erl of OTP: BEAMLINE_SAMPLED_ERL names one",
            );
            None
        }
    }
}

/// The node's emulator, when it has loaded the program; none if the command has ended or is no emulator of OTP.
fn target(node: &mut Node) -> Option<Target> {
    target_when(node, has_program)
}

fn target_when(node: &mut Node, is_ready: fn(&Target) -> bool) -> Option<Target> {
    loop {
        let target = Emulator::of(node.0.id()).and_then(Target::of);
        match target {
            Ok(target) => {
                if is_ready(&target) {
                    return Some(target);
                }
            }
            // `erl` is a shell script first.
            Err(
                Refusal::NoEmulator(..)
                | Refusal::NoList(_)
                | Refusal::Damaged(..)
                | Refusal::Gone(_),
            ) => {}
            Err(refusal) => panic!("{refusal}"),
        }
        if node.0.try_wait().expect("it can be asked").is_some() {
            skipped(Need::Emulator, "the erl of the path starts no emulator");
            return None;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

fn has_program(target: &Target) -> bool {
    let mut functions = target.code().functions();
    functions.any(|of| &*of.module == "shares")
}

/// What was seen of the program.
#[derive(Default)]
struct Seen {
    /// Samples by newest Erlang function.
    newest: HashMap<String, u32>,
    samples: u32,
    /// Stacks of Erlang code that led to the program's first function.
    whole: u32,
    erlang: u32,
    /// Threads were stopped so often, for so long.
    looks: u64,
    stopped_ns: u64,
}

fn name(frame: &Frame) -> Option<String> {
    match frame {
        Frame::Erlang {
            module,
            name,
            arity,
            ..
        } => Some(format!("{module}:{name}/{arity}")),
        Frame::Outside { .. } | Frame::Cut => None,
    }
}

fn seen(target: Target, how: How, wanted: u32) -> Seen {
    let sampler = Sampler::start(target, Threads::Normal, Some(how), |_| 997);
    let mut sampler = sampler.expect("this user may");
    let samples = std::cell::Cell::new(0);
    let mut seen = Seen::default();
    let ran = sampler.run(
        || samples.get() < wanted,
        |told| {
            if let Told::Stopped(cost) = told {
                seen.looks += cost.looks;
                seen.stopped_ns += cost.ns;
            }
            if let Told::Sample { look, .. } = told
                && look.process.is_some()
            {
                samples.set(samples.get() + 1);
                seen.samples += 1;
                let newest = look.frames.iter().find_map(name);
                *seen.newest.entry(newest.unwrap_or_default()).or_default() += 1;
                if look.does == Does::Erlang {
                    seen.erlang += 1;
                    let mut names = look.frames.iter().filter_map(name);
                    let has_run = names.next_back().is_some_and(|last| last != "shares:a/1");
                    seen.whole += u32::from(has_run && look.is_whole());
                }
            }
            Ok::<(), std::io::Error>(())
        },
    );
    ran.expect("it goes on");
    seen
}

/// Samples the program and looks whether the shares are those that it has.
fn assert_shares(name: &str, how: How) -> Option<Seen> {
    let mut node = node(name)?;
    let target = target(&mut node)?;
    let seen = seen(target, how, 1_500);
    let of = |name: &str| f64::from(seen.newest.get(name).copied().unwrap_or(0));
    let (a, b) = (of("shares:a/1"), of("shares:b/1"));
    let both = a + b;
    assert!(both > 100.0, "{:?}", seen.newest);
    // Four standard deviations: once in 16,000 runs it is farther from three quarters.
    let four = 4.0 * (0.75 * 0.25 / both).sqrt();
    assert!((a / both - 0.75).abs() < four, "{:?}", seen.newest);
    assert!(of("erlang:term_to_binary/1") > 0.0, "{:?}", seen.newest);
    let odd = of("shares:odd name/1");
    assert!(odd < of("erlang:term_to_binary/1"), "{:?}", seen.newest);
    assert!(
        seen.whole * 10 > seen.erlang * 9,
        "{} of {}",
        seen.whole,
        seen.erlang
    );
    Some(seen)
}

#[test]
fn shares_are_those_of_the_program() {
    if let Some(seen) = assert_shares("beamline_shares", How::Events) {
        assert_eq!(seen.looks, 0, "nobody stops a thread");
    }
}

#[test]
fn shares_are_the_same_of_threads_that_are_stopped() {
    if let Some(seen) = assert_shares("beamline_stops", How::Stops) {
        assert!(seen.looks >= u64::from(seen.samples) && seen.stopped_ns > 0);
    }
}

/// A program that waits, and then loads a module whose time is almost all in native functions: those that machine code calls
/// itself, with large numbers and long lists, and one that it calls by its export entry.
const LOADS_LATE: &str = r#"
timer:sleep(1000),
F = fun(S) -> {ok, T, _} = erl_scan:string(S), {ok, P} = erl_parse:parse_form(T), P end,
{ok, M, B} = compile:forms([F(S) || S <- [
    "-module(late).", "-export([runs/2]).",
    "runs(X, L) -> big(X, 300), long(L, 100), decodes(term_to_binary(L), 10), runs(X, L).",
    "big(_, 0) -> ok; big(X, N) -> _ = (X * X) rem 7, big(X, N - 1).",
    "long(_, 0) -> ok; long(L, N) -> 10000 = length(L), long(L, N - 1).",
    "decodes(_, 0) -> ok; decodes(B, N) -> _ = binary_to_term(B), decodes(B, N - 1)."]]),
{module, M} = code:load_binary(M, "late", B),
late:runs(1 bsl 20000, lists:seq(1, 10000))."#;

#[test]
fn native_functions_have_callers_that_were_loaded_later() {
    let program: String = LOADS_LATE.split('\n').collect::<Vec<_>>().join(" ");
    let Some(mut node) = node_of("beamline_late", &program) else {
        return;
    };
    let has = |target: &Target, module: &str| {
        let mut functions = target.code().functions();
        functions.any(|of| &*of.module == module)
    };
    let waits = |target: &Target| {
        let mut functions = target.code().functions();
        functions.any(|of| &*of.module == "timer")
    };
    let Some(target) = target_when(&mut node, waits) else {
        return;
    };
    assert!(!has(&target, "late"), "it was loaded too early");
    let sampler = Sampler::start(target, Threads::Normal, Some(How::Events), |_| 997);
    let mut sampler = sampler.expect("this user may");
    // From the first sample that shows the module.
    let natives = std::cell::Cell::new(0);
    let mut known = HashMap::<String, u32>::new();
    let ran = sampler.run(
        || natives.get() < 500,
        |told| {
            if let Told::Sample { look, .. } = told
                && look.does == Does::Native
            {
                let mut names = look.frames.iter().filter_map(name);
                let late = names.find(|name| name.starts_with("late:"));
                if late.is_some() || natives.get() > 0 {
                    natives.set(natives.get() + 1);
                    *known.entry(late.unwrap_or_default()).or_default() += 1;
                }
            }
            Ok::<(), std::io::Error>(())
        },
    );
    ran.expect("it goes on");
    let unknown = known.get("").copied().unwrap_or(0);
    assert!(unknown * 20 < natives.get(), "{known:?}");
    for function in ["late:big/2", "late:long/2", "late:decodes/2"] {
        assert!(known.contains_key(function), "{function}: {known:?}");
    }
}

/// A program that says its pid, and is one of many processes.
const SAYS_ITS_PID: &str = "[spawn(fun() -> receive stop -> ok end end) || _ <- lists:seq(1, 1000)], \
spawn(fun() -> io:format(\"~p~n\", [self()]), F = fun(F) -> lists:seq(1, 100), F(F) end, F(F) end), \
receive stop -> ok end.";

#[test]
fn processes_have_the_pids_that_they_have_in_the_node() {
    for (at, options) in [&[][..], &["+P", "5000"]].into_iter().enumerate() {
        let name = format!("beamline_pids_{at}");
        let Some(mut node) = node_with(&name, options, SAYS_ITS_PID, Stdio::piped()) else {
            return;
        };
        let output = node.0.stdout.take().expect("it is piped");
        let mut said = String::new();
        let read = BufReader::new(output).read_line(&mut said);
        if read.expect("it is text") == 0 {
            skipped(Need::Emulator, "the erl of the path starts no emulator");
            return;
        }
        let Some(target) = target_when(&mut node, |_| true) else {
            return;
        };
        let sampler = Sampler::start(target, Threads::Normal, Some(How::Events), |_| 997);
        let mut sampler = sampler.expect("this user may");
        let (samples, mut pids) = (std::cell::Cell::new(0), HashMap::new());
        let ran = sampler.run(
            || samples.get() < 100,
            |told| {
                if let Told::Sample { look, .. } = told
                    && let Some(pid) = look.pid()
                {
                    samples.set(samples.get() + 1);
                    let (number, serial) = pid.numbers();
                    *pids.entry(format!("<0.{number}.{serial}>")).or_insert(0) += 1;
                }
                Ok::<(), std::io::Error>(())
            },
        );
        ran.expect("it goes on");
        let of = pids.get(said.trim()).copied().unwrap_or(0);
        assert!(of > 50, "{said} {options:?} {pids:?}");
    }
}

/// An emulator is looked at when its first scheduler is there. The others come later, and get their names later still.
#[test]
fn threads_that_come_later_are_looked_at() {
    for how in [How::Events, How::Stops] {
        let Some(mut node) = node_of("beamline_later", COLLECTS) else {
            return;
        };
        let is_dirty = |kind| matches!(kind, ThreadKind::DirtyCpu | ThreadKind::DirtyIo);
        let has_scheduler = |target: &Target| {
            let threads = target.emulator.threads();
            threads.is_ok_and(|all| all.iter().any(|of| of.kind == ThreadKind::Scheduler))
        };
        let Some(target) = target_when(&mut node, has_scheduler) else {
            return;
        };
        let mut sampler =
            Sampler::start(target, Threads::Dirty, Some(how), |_| 997).expect("this user may");
        let collections = std::cell::Cell::new(0);
        let ran = sampler.run(
            || collections.get() < 20,
            |told| {
                if let Told::Sample { thread, look, .. } = told {
                    let is_one = is_dirty(thread.kind) && look.does == Does::Collection;
                    collections.set(collections.get() + u32::from(is_one));
                }
                Ok::<(), std::io::Error>(())
            },
        );
        ran.expect("it goes on");
        let numbers = |threads: &[Thread]| -> Vec<u32> {
            let wanted = threads.iter().filter(|of| of.kind != ThreadKind::Other);
            let mut tids: Vec<u32> = wanted.map(|of| of.tid).collect();
            tids.sort_unstable();
            tids
        };
        let all = sampler.target().emulator.threads().expect("it runs");
        assert_eq!(numbers(sampler.threads()), numbers(&all), "{how:?}");
    }
}

#[test]
fn an_emulator_is_known_by_its_node() {
    let Some(mut node) = node("beamline_named") else {
        return;
    };
    let Some(target) = target(&mut node) else {
        return;
    };
    assert!(target.emulator.is_named("beamline_named@anywhere"));
    assert!(!target.emulator.is_named("beamline"));
    let all = Emulator::all();
    assert!(all.iter().any(|of| of.pid == target.emulator.pid));
    assert!(!target.emulator.version().is_empty());
    assert!(target.atoms() > 1_000, "{}", target.atoms());
    assert!(target.code().normal_exit().is_some());
}
