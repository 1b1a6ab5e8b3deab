//! Tests of breakpoints on running code, `tests/beams/traced.erl`. The expected words are those of OTP 29.

use std::sync::Arc;
use std::time::Duration;

use beamline_formats::profile::{Libraries, Request, Span, Type};

use super::breakpoint::change::{self, end_later};
use super::session::{kind, permission};
use super::*;
use crate::loader::module::Mfa;
use crate::loader::{load, module};
use crate::process::{self, MaxHeap, SpawnOptions};
use crate::sys::chance::clock::outside_now;
use crate::term::{Atom, Pid, Term, am};

/// Tests share the machine: those that trace all processes take turns, with each other and with those whose
/// processes would be seen.
pub(crate) static TURN: parking_lot::Mutex<()> = parking_lot::Mutex::new(());

fn machine() {
    static START: std::sync::Once = std::sync::Once::new();
    START.call_once(|| {
        crate::start::bare();
        let file = include_bytes!("../../tests/beams/traced.beam");
        let code = load::prepare(file).expect("a module that the compiler made");
        module::make_current(vec![code]).expect("no old code");
    });
}

fn mfa(function: &str, arity: u8) -> Mfa {
    Mfa {
        module: Atom::new("traced"),
        function: Atom::new(function),
        arity,
    }
}

fn traced() -> Pattern {
    Pattern {
        module: Some(Atom::new("traced")),
        ..Pattern::default()
    }
}

/// Starts `traced:run(function, n)`.
fn spawn(function: &str, n: i64, options: &SpawnOptions) -> Pid {
    let function = Atom::new(function);
    let (module, run) = (Atom::new("traced"), Atom::new("run"));
    process::spawn_first(
        module,
        run,
        |heap| heap.list(&[function.term(), Term::small(n)]),
        options,
    )
}

fn wait(pid: Pid) {
    let start = outside_now();
    while process::exists(pid) {
        assert!(
            start.elapsed() < Duration::from_secs(60),
            "the process ends"
        );
        std::thread::sleep(Duration::from_micros(200));
    }
}

fn run(function: &str, n: i64) -> Pid {
    let pid = spawn(function, n, &SpawnOptions::default());
    wait(pid);
    pid
}

/// Calls and words of `traced`'s functions in one process, as `call_memory` has them.
fn words_of(session: &Session, pid: Pid, functions: &[(&str, u8)]) -> Vec<(u64, i64)> {
    let of = |&(name, arity): &(&str, u8)| {
        let rows = session.call_memory(mfa(name, arity)).expect("measured");
        let row = rows.iter().find(|(of, _)| *of == pid);
        row.map_or((0, 0), |(_, counted)| (counted.calls, counted.words))
    };
    functions.iter().map(of).collect()
}

#[test]
fn calls_are_counted_while_they_are_asked_for() {
    machine();
    let _turn = TURN.lock();
    let session = Session::create("count").expect("a slot");
    assert_eq!(session.call_count(mfa("fib", 1)), None);
    let fib = Pattern {
        function: Some(Atom::new("fib")),
        ..traced()
    };
    assert_eq!(session.set_pattern(fib, Switch::On, Kinds::COUNT), 1);
    run("fib", 15);
    assert_eq!(session.call_count(mfa("fib", 1)), Some(1973));
    session.set_pattern(fib, Switch::Pause, Kinds::COUNT);
    run("fib", 15);
    assert_eq!(session.call_count(mfa("fib", 1)), Some(1973));
    session.set_pattern(fib, Switch::Restart, Kinds::COUNT);
    run("fib", 10);
    assert_eq!(session.call_count(mfa("fib", 1)), Some(177));
    session.set_pattern(fib, Switch::Off, Kinds::COUNT);
    assert_eq!(session.call_count(mfa("fib", 1)), None);
    run("fib", 10);
    session.destroy();
}

#[test]
fn sessions_do_not_disturb_each_other() {
    machine();
    let _turn = TURN.lock();
    let (one, two) = (
        Session::create("one").expect("a slot"),
        Session::create("two").expect("a slot"),
    );
    one.set_pattern(traced(), Switch::On, Kinds::COUNT.and(Kinds::MEMORY));
    two.set_pattern(traced(), Switch::On, Kinds::COUNT.and(Kinds::TIME));
    one.set_all_processes(true);
    let first = run("fib", 10);
    two.set_all_processes(true);
    let second = run("fib", 12);
    one.destroy();
    run("loop", 5);
    assert_eq!(two.call_count(mfa("fib", 1)), Some(177 + 465));
    assert_eq!(two.call_count(mfa("loop", 1)), Some(6));
    let times = two.call_time(mfa("fib", 1)).expect("measured");
    assert!(times.iter().all(|(pid, _)| *pid != first));
    let (_, counted) = times
        .iter()
        .find(|(pid, _)| *pid == second)
        .expect("it was traced");
    assert!(counted.calls == 465 && counted.ticks > 0);
    two.destroy();
}

#[test]
fn words_are_those_of_otp() {
    machine();
    let _turn = TURN.lock();
    let session = Session::create("words").expect("a slot");
    session.set_pattern(traced(), Switch::On, Kinds::MEMORY);
    session.set_all_processes(true);
    let functions = [
        ("run", 2),
        ("outer", 1),
        ("list", 2),
        ("loop", 1),
        ("keep", 1),
    ];
    let pid = run("outer", 100);
    assert_eq!(
        words_of(&session, pid, &functions),
        [(1, 4), (1, 3), (101, 200), (101, 0), (1, 0)]
    );
    let pid = run("outer", 10_000);
    assert_eq!(
        words_of(&session, pid, &functions),
        [(1, 4), (1, 3), (10_001, 20_000), (10_001, 0), (1, 0)]
    );
    let functions = [("run", 2), ("catches", 1), ("throws", 1)];
    let pid = run("catches", 7);
    // 3 words thrown and 16 of the saved trace are the thrower's. The 4 of the result are not, as they are in OTP: they
    // were allocated after the catch.
    assert_eq!(
        words_of(&session, pid, &functions),
        [(1, 4), (1, 4), (1, 19)]
    );
    session.destroy();
}

#[test]
fn tail_recursion_stays_within_its_stack() {
    machine();
    let _turn = TURN.lock();
    let session = Session::create("stack").expect("a slot");
    session.set_pattern(traced(), Switch::On, Kinds::TIME.and(Kinds::MEMORY));
    session.set_all_processes(true);
    // Past this many words, its stack included, the process would be killed.
    let max_heap = Some(MaxHeap {
        words: 2000,
        ..MaxHeap::default()
    });
    let pid = spawn(
        "loop",
        1_000_000,
        &SpawnOptions {
            max_heap,
            ..SpawnOptions::default()
        },
    );
    wait(pid);
    let words = words_of(&session, pid, &[("loop", 1)]);
    assert_eq!(words, [(1_000_001, 0)]);
    session.destroy();
}

#[test]
fn breakpoints_come_and_go_under_running_processes() {
    machine();
    let _turn = TURN.lock();
    let pids: Vec<Pid> = (0..4)
        .map(|_| spawn("fib", 23, &SpawnOptions::default()))
        .collect();
    let mut changes = 0;
    while pids.iter().any(|pid| process::exists(*pid)) {
        let session = Session::create("flicker").expect("a slot");
        session.set_all_processes(true);
        session.set_pattern(
            traced(),
            Switch::On,
            Kinds::COUNT.and(Kinds::TIME).and(Kinds::MEMORY),
        );
        let before = session.call_count(mfa("fib", 1)).expect("counted");
        session.set_pattern(traced(), Switch::Pause, Kinds::TIME);
        assert!(session.call_count(mfa("fib", 1)).expect("counted") >= before);
        session.set_pattern(traced(), Switch::Off, Kinds::MEMORY);
        session.destroy();
        changes += 1;
    }
    assert!(changes > 0);
    // All is as before: nothing counts any more, and calls work.
    run("fib", 10);
}

/// Profiles `traced:run(function, n)` and reads back what was written.
fn profile(
    kind: Type,
    call_tree: bool,
    function: &str,
    n: i64,
) -> beamline_formats::profile::Profile {
    let folder = std::env::temp_dir();
    let request = Request {
        kind,
        patterns: Vec::new(),
        call_tree,
        span: Span::default(),
        folder,
        libraries: Libraries::default(),
    };
    let profiled = profile::profiled(&request);
    let kinds = if profiled.only_count {
        kind::COUNT
    } else {
        kind::PROFILE
    };
    let name = Atom::new("profile");
    let session = session::create(name, None, Some(profiled), None).expect("a slot");
    let set = |switch, kinds| {
        permission::with_permission(|| {
            let setting = Setting::default();
            change::run_here(change::Change::pattern(
                &session,
                traced(),
                switch,
                kinds,
                &setting,
            ))
        })
    };
    set(Switch::On, kinds);
    let handle = Handle(session.clone());
    handle.trace_new_processes(true, flags::CALL, Some(TracerId::NOBODY));
    run(function, n);
    handle.trace_new_processes(false, flags::CALL, None);
    set(Switch::Off, kind::ALL);
    let mut file = Vec::new();
    let run = profile::Run::new(session.clone(), request);
    run.write(&mut file).expect("written to memory");
    session::kill(&session);
    session::forget(&session);
    beamline_formats::profile::Profile::decode(&file).expect("a whole profile")
}

/// Of each node of a tree: the path of functions, calls and words.
fn paths(profile: &beamline_formats::profile::Profile) -> Vec<(String, u64, u64)> {
    let mut paths: Vec<String> = Vec::new();
    let mut rows = Vec::new();
    for node in &profile.nodes {
        let name = &profile.functions[node.function as usize].name;
        let path = match node.parent {
            Some(parent) => format!("{};{name}", paths[parent as usize]),
            None => name.clone(),
        };
        rows.push((path.clone(), node.cost.calls, node.cost.words));
        paths.push(path);
    }
    rows.sort();
    rows
}

fn row(path: &str, calls: u64, words: u64) -> (String, u64, u64) {
    (path.to_owned(), calls, words)
}

#[test]
fn a_profile_has_the_calls_of_all_processes() {
    machine();
    let _turn = TURN.lock();
    let profile = profile(Type::CallCount, false, "fib", 15);
    assert!(profile.nodes.is_empty());
    let of = |name: &str| {
        let at = profile
            .functions
            .iter()
            .position(|f| f.name == name)
            .expect("it was called");
        let count = profile
            .counts
            .iter()
            .find(|c| c.function == at as u32)
            .expect("counted");
        (count.process, count.cost.calls)
    };
    assert_eq!((of("fib"), of("run")), ((None, 1973), (None, 1)));
}

#[test]
fn a_profile_has_call_paths_with_recursion_folded() {
    machine();
    let _turn = TURN.lock();
    let profile = profile(Type::CallMemory, true, "outer", 100);
    let rows = [
        row("run", 1, 4),
        row("run;outer", 1, 3),
        row("run;outer;keep", 1, 0),
        row("run;outer;list", 101, 200),
        row("run;outer;loop", 101, 0),
    ];
    assert_eq!(paths(&profile), rows);
    let total: u64 = profile.counts.iter().map(|count| count.cost.words).sum();
    assert_eq!(total, 207);
    assert!(
        profile
            .nodes
            .iter()
            .map(|node| node.reductions)
            .sum::<u64>()
            >= 204
    );
}

#[test]
fn a_caught_exception_leads_back_on_the_path() {
    machine();
    let _turn = TURN.lock();
    let profile = profile(Type::CallMemory, true, "catches", 7);
    // What is allocated after the catch is the catcher's: 4 words of the result.
    let rows = [
        row("run", 1, 4),
        row("run;catches", 1, 4),
        row("run;catches;throws", 1, 19),
    ];
    assert_eq!(paths(&profile), rows);
}

/// A process that collects what it is sent, as text, and what it has so far.
fn listener() -> (Pid, Arc<parking_lot::Mutex<Vec<String>>>) {
    let heard = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let into = heard.clone();
    let pid = process::spawn_native(&SpawnOptions::default(), move |p| {
        while let Some(message) = p.peek_message().expect("nothing ends it") {
            into.lock().push(message.display().to_string());
            p.remove_message();
        }
        p.wait();
        crate::process::Outcome::Wait
    });
    (pid, heard)
}

/// What a session with `spec` on all functions of `traced` hears of `traced:run(function, n)`, the process
/// written as `P`. `flags` beside `call` are asked for; the pattern is `local`, or `global`.
fn reports(
    function: &str,
    n: i64,
    flags: u32,
    kinds: u32,
    spec: impl for<'h> FnOnce(&'h crate::heap::Heap) -> Term<'h>,
) -> Vec<String> {
    machine();
    let _turn = TURN.lock();
    let (tracer, heard) = listener();
    let tracer = TracerId::Process(tracer);
    let session = session::create(Atom::new("reports"), Some(tracer), None, None).expect("a slot");
    let heap = crate::heap::Heap::detached();
    let dialect = crate::matchspec::Dialect::CALL;
    let spec = Spec::compile(spec(&heap), dialect).expect("a match specification");
    let setting = Setting {
        spec: Some(spec),
        meta: None,
    };
    let change = |switch| {
        let pattern = traced();
        permission::with_permission(|| {
            let change = change::Change::pattern(&session, pattern, switch, kinds, &setting);
            change::run_here(change)
        })
    };
    assert!(change(Switch::On) > 0);
    let handle = Handle(session.clone());
    handle.trace_new_processes(true, flags | flags::CALL, Some(tracer));
    let pid = run(function, n);
    handle.trace_new_processes(false, flags::ALL, None);
    change(Switch::Off);
    session::kill(&session);
    session::forget(&session);
    // A message of ours comes behind all reports.
    let end = crate::heap::Message::copy_of(am::normal.term());
    tracer.tell(end);
    let start = outside_now();
    while heard.lock().last().is_none_or(|last| last != "normal") {
        assert!(start.elapsed() < Duration::from_secs(60), "it is heard");
        std::thread::sleep(Duration::from_micros(200));
    }
    let me = pid.term().display().to_string();
    let heard = heard.lock();
    let all = heard.iter().filter(|text| *text != "normal");
    all.map(|text| text.replace(&me, "P")).collect()
}

/// `[{'_', [], Body}]`.
fn any_args<'h>(heap: &'h crate::heap::Heap, body: &[Term<'h>]) -> Term<'h> {
    let clause = [am::underscore.term(), Term::NIL, heap.list(body)];
    heap.list(&[heap.tuple(&clause)])
}

#[test]
fn calls_returns_and_exceptions_are_reported_in_order() {
    let heard = reports("catches", 7, flags::RETURN_TO, kind::LOCAL, |heap| {
        any_args(heap, &[heap.tuple(&[am::exception_trace.term()])])
    });
    let expected = [
        "{trace,P,call,{traced,run,[catches,7]}}",
        "{trace,P,call,{traced,catches,[7]}}",
        "{trace,P,call,{traced,throws,[7]}}",
        "{trace,P,exception_from,{traced,throws,1},{throw,{no,7}}}",
        "{trace,P,return_to,{traced,catches,1}}",
        "{trace,P,return_from,{traced,catches,1},{{no,7},{no,7},7}}",
        "{trace,P,return_to,{traced,run,2}}",
        "{trace,P,return_from,{traced,run,2},ok}",
        "{trace,P,return_to,undefined}",
    ];
    assert_eq!(heard, expected);
}

#[test]
fn only_calls_from_other_modules_are_global() {
    let heard = reports("fib", 5, flags::ARITY, kind::GLOBAL, |heap| {
        let says = heap.tuple(&[am::message.term(), Term::small(1)]);
        any_args(heap, &[says])
    });
    // fib/1 calls itself by its local name.
    let expected = [
        "{trace,P,call,{traced,run,2},1}",
        "{trace,P,call,{traced,fib,1},1}",
    ];
    assert_eq!(heard, expected);
}

#[test]
fn births_and_ends_are_reported() {
    let flags = flags::PROCS | flags::EXITING;
    let heard = reports("keep", 1, flags, kind::LOCAL, |heap| {
        any_args(heap, &[heap.tuple(&[am::silent.term(), Term::bool(true)])])
    });
    assert_eq!(heard, ["{trace,P,exit,normal}", "{trace,P,out_exited,0}"]);
}

/// The call paths of a process in a recording.
fn recorded(
    profile: &beamline_formats::profile::Profile,
    pid: Pid,
) -> beamline_formats::profile::Profile {
    let pid = format!("<0.{}.{}>", pid.number(), pid.serial());
    let process = profile.processes.iter().position(|p| p.pid == pid);
    let process = process.expect("it was recorded") as u32;
    let first = profile.nodes.iter().position(|n| n.process == process);
    let mut of_process = profile.clone();
    of_process.nodes.retain(|node| node.process == process);
    for node in &mut of_process.nodes {
        node.parent = node.parent.map(|parent| parent - first.unwrap_or(0) as u32);
    }
    of_process
}

/// There is one recorder in a program: all that it is to do is in this test.
#[test]
fn a_recording_has_the_call_paths_of_a_profile() {
    use beamline_formats::ring::{Group, Host, Recording, Request, System, WhenFull};
    machine();
    let _turn = TURN.lock();
    let calls = [("fib", 12), ("loop", 1000), ("outer", 100), ("catches", 7)];
    let expected = calls.map(|(function, n)| {
        let profile = profile(Type::CallMemory, true, function, n);
        paths(&profile)
    });
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("run.ring");
    let request = Request {
        file: file.clone(),
        is_apart: false,
        token: 1,
        events: vec![
            Group::Calls,
            Group::Returns,
            Group::Words,
            Group::Reductions,
            Group::Scheduling,
        ],
        system: System::default(),
        patterns: Vec::new(),
        ring_bytes: 16 << 20,
        when_full: WhenFull::Stop,
        counters: Vec::new(),
        triggers: Vec::new(),
        span: Span::default(),
        folder: folder.path().to_owned(),
        libraries: Libraries::default(),
        host: Host::default(),
        beamline: String::new(),
        command: Vec::new(),
    };
    let schedulers = crate::sched::schedulers();
    let options = record::ring_options(&request, Vec::new(), String::new(), schedulers);
    let ring = request.create_ring(&options).expect("room");
    let session = record::begin(&request, ring, schedulers).expect("a slot");
    permission::with_permission(|| {
        let setting = Setting::default();
        let kinds = kind::RECORD;
        let change = change::Change::pattern(&session, traced(), Switch::On, kinds, &setting);
        change::run_here(change)
    });
    let pids = calls.map(|(function, n)| run(function, n));
    record::end();
    end_later(session);
    let pid = run("fib", 12);
    let recording = Recording::open(&file).expect("a recording");
    assert!(recording.has_ended());
    let recorded_profile = beamline_reports::events::profile(&recording).expect("whole");
    for ((pid, expected), call) in pids.into_iter().zip(expected).zip(calls) {
        let of_process = recorded(&recorded_profile, pid);
        assert_eq!(paths(&of_process), expected, "{call:?}");
        let text = format!("<0.{}.{}>", pid.number(), pid.serial());
        let process = of_process.processes.iter().find(|p| p.pid == text);
        let all: u64 = of_process.nodes.iter().map(|node| node.reductions).sum();
        // That of the first call was before it.
        let rest = process.map(|process| process.reductions - all);
        assert_eq!(rest, Some(1), "{call:?}");
    }
    let pid = format!("<0.{}.{}>", pid.number(), pid.serial());
    assert!(!recorded_profile.processes.iter().any(|p| p.pid == pid));
}
