//! The runtime's parts, one at a time: functions of `workloads/parts.erl` on a machine without OTP.
//!
//!     cargo bench -p beamline-benches            # all; a name after `--` chooses

use std::hint::spin_loop;
use std::time::Duration;

use beamline_runtime::process::{self, SpawnOptions};
use beamline_runtime::term::{Atom, Pid, Term};
use beamline_runtime::{Kinds, Mfa, Pattern, Session, Switch, make_current, prepare, start};
use beamline_settings::chance;
use criterion::{Criterion, criterion_group, criterion_main};

/// Functions of the workload, with what one of their rounds is.
const PARTS: [(&str, &str); 11] = [
    ("calls", "local call and return"),
    ("tail_calls", "tail call"),
    ("funs", "call of a fun and return"),
    ("bifs", "call of a BIF"),
    ("tuples", "tuple of four words made and dropped"),
    ("collections", "full sweep with 10,000 cells alive"),
    ("messages", "message there and back"),
    ("spawns", "process that ends at once"),
    ("ets_inserts", "ets:insert of a pair"),
    ("ets_lookups", "ets:lookup of a pair"),
    ("traced", "call without a breakpoint"),
];

/// Breakpoints under which a call is measured.
const BREAKPOINTS: [(&str, Kinds); 3] = [
    ("call under call_count", Kinds::COUNT),
    ("call under call_time", Kinds::TIME),
    ("call under call_memory", Kinds::MEMORY),
];

fn run(function: &str, rounds: u64) -> Pid {
    let rounds = i64::try_from(rounds).expect("criterion asks for fewer");
    process::spawn_first(
        Atom::new("parts"),
        Atom::new(function),
        |heap| heap.list(&[Term::small(rounds)]),
        &SpawnOptions::default(),
    )
}

/// How long a process takes for `rounds` rounds, its start and end included.
fn timed(function: &str, rounds: u64) -> Duration {
    let start = chance::now();
    let pid = run(function, rounds);
    while process::exists(pid) {
        spin_loop();
    }
    start.elapsed()
}

fn parts(criterion: &mut Criterion) {
    start::bare();
    let code = prepare(include_bytes!("../workloads/parts.beam"));
    make_current(vec![code.expect("the compiler made it")]).expect("no old code");
    for (function, what) in PARTS {
        criterion.bench_function(what, |b| b.iter_custom(|rounds| timed(function, rounds)));
    }
    let called = Pattern {
        module: Some(Atom::new("parts")),
        function: Some(Atom::new("called")),
        arity: Some(1),
    };
    for (what, kinds) in BREAKPOINTS {
        let session = Session::create("bench").expect("a slot");
        assert_eq!(session.set_pattern(called, Switch::On, kinds), 1);
        session.set_all_processes(true);
        criterion.bench_function(what, |b| b.iter_custom(|rounds| timed("traced", rounds)));
        check(&session, kinds);
        session.destroy();
    }
}

/// What was measured was counted.
fn check(session: &Session, kinds: Kinds) {
    let called = Mfa {
        module: Atom::new("parts"),
        function: Atom::new("called"),
        arity: 1,
    };
    let calls = if kinds == Kinds::COUNT {
        session.call_count(called)
    } else {
        let rows = session
            .call_time(called)
            .or_else(|| session.call_memory(called));
        rows.map(|rows| rows.iter().map(|(_, counted)| counted.calls).sum())
    };
    assert!(calls.is_some_and(|calls| calls > 0), "nothing was counted");
}

criterion_group!(benches, parts);
criterion_main!(benches);
