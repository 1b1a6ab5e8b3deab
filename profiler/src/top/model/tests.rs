use beamline_sampler::emulator::{Thread, ThreadKind};

use super::*;

/// A second.
const S: u64 = 1_000_000_000;

fn threads() -> Vec<Thread> {
    let thread = |tid, kind, number| Thread {
        tid,
        kind,
        number,
        name: String::new(),
    };
    vec![
        thread(12, ThreadKind::DirtyCpu, 1),
        thread(11, ThreadKind::Scheduler, 2),
        thread(10, ThreadKind::Scheduler, 1),
    ]
}

/// A model of 100 samples in a second, of ten seconds at most.
pub(crate) fn model() -> Model {
    Model::new(10 * S, S / 100, 0, &threads())
}

/// A look at a thread with these functions, the newest first.
pub(crate) fn see(model: &mut Model, at_ns: u64, tid: u32, does: Does, stack: &[&str]) {
    let stack: Vec<u32> = stack.iter().map(|name| model.number(name)).collect();
    model.add(Seen {
        at_ns,
        tid,
        does,
        process: (does != Does::Runtime).then_some(Id::Process(u64::from(tid))),
        stack: stack.into(),
    });
}

/// One second in which scheduler 1 ran `m:f/1` 30 times and `m:g/0`, called by it, 10 times, and scheduler 2 a BIF 20 times,
/// of which 5 in a NIF's library, and looked for work 10 times.
pub(crate) fn second() -> Model {
    let mut model = model();
    for at in 0..30 {
        see(&mut model, at, 10, Does::Erlang, &["m:f/1", "m:run/0"]);
    }
    for at in 0..10 {
        let stack = ["m:g/0", "m:f/1", "m:f/1", "m:run/0"];
        see(&mut model, at, 10, Does::Erlang, &stack);
    }
    for at in 0..20 {
        let does = if at < 5 { Does::Library } else { Does::Bif };
        see(&mut model, at, 11, does, &["erlang:md5/1", "m:f/1"]);
    }
    for at in 0..10 {
        see(&mut model, at, 11, Does::Runtime, &["[runtime] schedule"]);
    }
    model
}

#[test]
fn functions_have_own_and_total_shares() {
    let view = second().view(S);
    assert_eq!((view.samples, view.span_ns), (70, S));
    let rows = view.functions.iter();
    let rows = rows.map(|of| (of.name.as_str(), of.own.samples, of.total.samples));
    let expect = [
        ("m:f/1", 30, 60),
        ("erlang:md5/1", 20, 20),
        // A function that is twice in a stack was in one sample.
        ("m:g/0", 10, 10),
        ("[runtime] schedule", 10, 10),
        ("m:run/0", 0, 40),
    ];
    let mut rows: Vec<_> = rows.collect();
    rows.sort_by_key(|row| std::cmp::Reverse((row.1, row.0)));
    assert_eq!(rows, expect);
}

#[test]
fn schedulers_are_in_order_and_idle_else() {
    let view = second().view(S);
    let names: Vec<&str> = view.schedulers.iter().map(|of| of.name.as_str()).collect();
    assert_eq!(names, ["scheduler 1", "scheduler 2", "dirty CPU 1"]);
    let does: Vec<_> = view
        .schedulers
        .iter()
        .map(|of| (of.does, of.idle))
        .collect();
    assert_eq!(does[0], ([40.0, 0.0, 0.0, 0.0, 0.0], 60.0));
    assert_eq!(does[1], ([0.0, 15.0, 5.0, 0.0, 10.0], 70.0));
    assert_eq!(does[2], ([0.0; 5], 100.0));
}

#[test]
fn processes_have_their_samples_and_their_most_frequent_function() {
    let view = second().view(S);
    let rows = view.processes.iter();
    let rows = rows.map(|of| (of.name.as_str(), of.share.samples, of.function.as_str()));
    let expect = [
        ("<0.10.0>", 40, "m:f/1"),
        ("<0.11.0>", 20, "erlang:md5/1"),
        ("(no process)", 10, "[runtime] schedule"),
    ];
    assert_eq!(rows.collect::<Vec<_>>(), expect);
}

#[test]
fn callers_and_callees_are_those_of_the_newest_call() {
    let mut model = second();
    let number = model.number("m:f/1");
    let of = model.neighbours(number);
    let counts = |rows: &[(String, Share)]| -> Vec<(String, u64)> {
        let counts = rows.iter().map(|(name, of)| (name.clone(), of.samples));
        counts.collect()
    };
    let row = |name: &str, count| (name.to_owned(), count);
    let callers = [row("m:run/0", 30), row("(nobody)", 20), row("m:f/1", 10)];
    assert_eq!(counts(&of.callers), callers);
    let callees = [
        row("(itself)", 30),
        row("erlang:md5/1", 20),
        row("m:g/0", 10),
    ];
    assert_eq!(counts(&of.callees), callees);
}

#[test]
fn what_is_older_than_the_window_is_left() {
    let mut model = second();
    assert_eq!(model.view(9 * S).samples, 70);
    see(&mut model, 11 * S, 10, Does::Erlang, &["m:h/0"]);
    let view = model.view(11 * S);
    assert_eq!((view.samples, view.span_ns), (1, 10 * S));
    assert_eq!(view.functions[0].name, "m:h/0");
    assert_eq!(model.view(30 * S).samples, 0);
}

#[test]
fn libraries_are_told_from_the_emulator() {
    for (library, expect) in [
        ("runtime", false),
        ("beam.smp", false),
        ("crypto.so", true),
        ("libc.so.6", true),
    ] {
        assert_eq!(is_foreign(library), expect, "{library}");
    }
}
