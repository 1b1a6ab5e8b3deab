//! Tests that kill processes at every safepoint of programs that have handlers around everything
//! (`tests/beams/doomed.erl`). No instruction of theirs may run afterwards. The loop itself asserts that, and the
//! programs tell of each handler that runs.

use crate::sys::chance::clock::outside_now;
use std::sync::Once;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use crate::heap::Heap;
use crate::loader::{load, module};
use crate::process::Outcome;
use crate::process::{
    Death, Doom, Process, Signal, SpawnOptions, deliver, exists, registry, spawn_first,
    spawn_native,
};
use crate::term::{Atom, Pid, Term, am};

const LONG: Duration = Duration::from_secs(60);

/// Reductions of a time slice.
const SLICE: usize = crate::process::CONTEXT_REDS as usize;

/// Programs of `doomed`.
const PROGRAMS: &[&str] = &[
    "conses",
    "tuples",
    "integers",
    "floats",
    "binaries",
    "matching",
    "maps",
    "records",
    "funs",
    "exceptions",
    "comprehensions",
    "conversions",
    "lists",
    "kin",
    "messages",
    "waiting",
    "dictionary",
    "tables",
    "traced",
    "traps",
    // Where every safepoint collects, the collections take the reductions that are left, and a BIF of this program begins
    // in a slice that it does not use up.
    #[cfg(not(feature = "gc_zeal"))]
    "slices",
    "asleep",
];

/// Collects what programs tell of themselves.
struct Reporter {
    pid: Pid,
    texts: Receiver<String>,
}

/// What became of a doomed process.
#[derive(Debug, PartialEq, Eq)]
enum End {
    /// It has told that it is done.
    Done,
    Died,
}

impl Reporter {
    fn new() -> Reporter {
        let (out, texts) = channel();
        let pid = spawn_native(&SpawnOptions::default(), move |p| {
            loop {
                match p.peek_message() {
                    Ok(Some(message)) => {
                        let message = message.raw();
                        p.remove_message();
                        // SAFETY: T1: just attached to this heap.
                        let text = unsafe { Term::new(message) }.display().to_string();
                        let _ = out.send(text);
                    }
                    Ok(None) => {
                        p.wait();
                        return Outcome::Wait;
                    }
                    Err(exiting) => return Outcome::Exit(exiting),
                }
            }
        });
        let registered = registry::register_process(
            registry::to_change_now(),
            Atom::new("doomed_reporter"),
            pid,
        );
        assert_eq!(registered, Ok(()));
        Reporter { pid, texts }
    }

    /// What a process that is gone has told.
    fn told(&self, program: &str) -> End {
        deliver(self.pid, Signal::message(am::flush.term(), self.pid));
        let texts = || self.texts.recv_timeout(LONG).expect("an answer");
        let told: Vec<String> = std::iter::from_fn(|| Some(texts()))
            .take_while(|text| text != "flush")
            .collect();
        match told.as_slice() {
            [] => End::Died,
            [done] if done == "done" => End::Done,
            handlers => panic!("killed, {program} has run handlers: {handlers:?}"),
        }
    }
}

/// Starts a program, which waits for [`go`].
fn spawn(program: &str) -> Pid {
    let program = Atom::new(program);
    let options = SpawnOptions::default();
    let (module, start) = (Atom::new("doomed"), Atom::new("start"));
    spawn_first(module, start, |heap| heap.list(&[program.term()]), &options)
}

fn go(pid: Pid, how: Term<'_>) {
    deliver(pid, Signal::message(how, pid));
}

fn wait(pid: Pid) {
    let start = outside_now();
    while exists(pid) {
        assert!(start.elapsed() < LONG, "the process ends");
        std::thread::yield_now();
    }
}

/// Runs `program` once for each number that `doom` kills it by, until it lives to its end or the number is `last`.
/// Later numbers are taken with growing gaps: by then the program is in the loops that it has been killed in before.
fn each_death(reporter: &Reporter, program: &str, last: usize, mut doom: impl FnMut(Pid, usize)) {
    let mut number = 0;
    while number < last {
        let pid = spawn(program);
        doom(pid, number);
        wait(pid);
        if reporter.told(program) == End::Done {
            return;
        }
        number += 1 + number / 32;
    }
}

fn set_doom(pid: Pid, doom: Doom) {
    let set = move |p: Option<&mut Process>| {
        p.expect("it waits").psd().doom = Some(doom);
    };
    deliver(pid, Signal::request(set));
}

fn machine() {
    static START: Once = Once::new();
    START.call_once(|| {
        crate::start::bare();
        let file = include_bytes!("../../tests/beams/doomed.beam");
        let code = load::prepare(file).expect("a module that the compiler made");
        module::make_current(vec![code]).expect("no old code");
    });
}

#[test]
fn a_killed_process_runs_no_instruction() {
    machine();
    let _turn = crate::trace::tests::TURN.lock();
    let reporter = Reporter::new();
    let kill = am::kill;
    let shutdown = Atom::new("shutdown");
    for &program in PROGRAMS {
        let pid = spawn(program);
        go(pid, Atom::new("go").term());
        wait(pid);
        assert_eq!(
            reporter.told(program),
            End::Done,
            "{program} lives to its end"
        );
        for death in [
            Death::HeapLimit,
            Death::Signal(kill),
            Death::Signal(shutdown),
        ] {
            each_death(&reporter, program, usize::MAX, |pid, collections| {
                set_doom(pid, Doom { collections, death });
                go(pid, Atom::new("go").term());
            });
        }
        for reason in [kill, shutdown] {
            each_death(&reporter, program, SLICE, |pid, reductions| {
                let heap = Heap::detached();
                let reductions = Term::small(reductions as i64);
                go(pid, heap.tuple(&[reductions, reason.term()]));
            });
        }
    }
}
