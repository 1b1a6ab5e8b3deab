//! The totals of a run: reductions, words, messages and collections, of all processes and of the workload's.
//!
//! A time slice of a process is accounted for when it ends. The workload begins where `init` does what the command line
//! asks for: a breakpoint on `init:start_em/1` says so. From there on, that process is the workload's, and so are all
//! processes that are made later. The work of booting, which is the same for every program, is not in its numbers; the
//! workload begins with a whole time slice, so what booting has found on the machine does not show in them.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use beamline_formats::totals::{Counted, Request, Totals, Workload};

use super::profile::pid_text;
use crate::loader::module::Mfa;
use crate::process::order::director::may_timing_show;
use crate::process::tally::{COLLECTIONS, MESSAGES, ON, is_on};
use crate::process::{self, ProcShared, Process};
use crate::sched::ptab::pin;
use crate::sys::chance::{self, clock, names, outside};
use crate::sys::halt;
use crate::sys::stderr::complain;
use crate::term::{Atom, Pid};
use crate::trace::costs::account::Measures;
use crate::trace::measure::meters::{meters_of, settle};
use crate::trace::session::kind;
use crate::trace::session::{self, OnLoad, Profiled};

static RUN: OnceLock<Run> = OnceLock::new();

/// A run whose totals are kept.
struct Run {
    request: Request,
    otp: String,
    whole: Sums,
    workload: Sums,
    begun: OnceLock<Begun>,
    written: AtomicBool,
}

/// How the workload began.
struct Begun {
    processes: Workload,
    /// Processes made before.
    made: u64,
}

#[derive(Default)]
struct Sums {
    reductions: AtomicU64,
    words: AtomicU64,
    messages: AtomicU64,
    collections: AtomicU64,
}

impl Sums {
    fn add(&self, done: Reading) {
        self.reductions
            .fetch_add(done.reductions, Ordering::Relaxed);
        self.words.fetch_add(done.words, Ordering::Relaxed);
        self.messages.fetch_add(done.messages, Ordering::Relaxed);
        self.collections
            .fetch_add(done.collections, Ordering::Relaxed);
    }

    fn counted(&self, processes: u64) -> Counted {
        let read = |sum: &AtomicU64| sum.load(Ordering::Relaxed);
        Counted {
            reductions: read(&self.reductions),
            words: read(&self.words),
            messages: read(&self.messages),
            collections: read(&self.collections),
            processes,
        }
    }
}

/// The numbers of a process and its scheduler at some point of a time slice.
#[derive(Clone, Copy, Default)]
struct Reading {
    reductions: u64,
    words: u64,
    messages: u64,
    collections: u64,
}

impl Reading {
    fn since(self, before: Reading) -> Reading {
        Reading {
            reductions: self.reductions.wrapping_sub(before.reductions),
            words: self.words.wrapping_sub(before.words),
            messages: self.messages.wrapping_sub(before.messages),
            collections: self.collections.wrapping_sub(before.collections),
        }
    }
}

thread_local! {
    /// The numbers of this scheduler's time slice when it was last accounted for.
    static SLICE: Cell<Reading> = const { Cell::new(Reading {
        reductions: 0,
        words: 0,
        messages: 0,
        collections: 0,
    }) };
}

/// Keeps totals, if they are asked for: call before any module is loaded.
pub(crate) fn start(request: Request, otp: String) {
    RUN.get_or_init(|| Run {
        request,
        otp,
        whole: Sums::default(),
        workload: Sums::default(),
        begun: OnceLock::new(),
        written: AtomicBool::new(false),
    });
    let begins = |mfa: Mfa| {
        mfa.module.name() == "init" && mfa.function.name() == "start_em" && mfa.arity == 1
    };
    let profiled = Profiled {
        measures: Measures::default(),
        only_count: false,
        wanted: Box::new(begins),
        counters: parking_lot::Mutex::default(),
        accounts: parking_lot::Mutex::default(),
        natives: parking_lot::Mutex::default(),
    };
    let name = Atom::new("beamline_totals");
    let session =
        session::create(name, None, Some(profiled), None).expect("one of the first sessions");
    *session.on_load.lock() = Some(OnLoad::counting(kind::BEGIN));
    ON.store(true, Ordering::Release);
}

fn reading(p: &Process) -> Reading {
    Reading {
        reductions: p.reductions(),
        words: p.allocated_words(),
        messages: MESSAGES.with(Cell::get),
        collections: COLLECTIONS.with(Cell::get),
    }
}

/// A time slice of `p` begins.
#[inline]
pub(crate) fn slice_begins(p: &Process) {
    if !is_on() {
        return;
    }
    let mut now = reading(p);
    if now.reductions == 0 {
        // What it was made with is its own.
        now.words = p.collected_words();
    }
    SLICE.with(|slice| slice.set(now));
}

/// A time slice of `p` has ended.
#[inline]
pub(crate) fn slice_ended(p: &Process) {
    if is_on() {
        account(p);
    }
}

/// Accounts for what `p` has done since its time slice was last accounted for.
fn account(p: &Process) {
    let Some(run) = RUN.get() else { return };
    let now = reading(p);
    let done = now.since(SLICE.with(|slice| slice.replace(now)));
    run.whole.add(done);
    if run
        .begun
        .get()
        .is_some_and(|begun| has(&begun.processes, p.pid()))
    {
        run.workload.add(done);
        LAST_RAN_NS.store(clock::monotonic_ns(), Ordering::Release);
    }
}

/// When a process of the workload last ran.
static LAST_RAN_NS: AtomicU64 = AtomicU64::new(0);

/// If none of its processes runs for this virtual time, a workload waits for ever: a `receive` waits for 50 days at
/// most. Servers of OTP have timers that never end, so there always is one.
const FOR_EVER_NS: u64 = 100 * 24 * 3600 * 1_000_000_000;

/// Virtual time has jumped, because no process can run, to the next timer; nothing outside is waited for.
pub(crate) fn time_has_jumped() {
    let begun = RUN.get().and_then(|run| run.begun.get());
    let since_ns = clock::monotonic_ns().saturating_sub(LAST_RAN_NS.load(Ordering::Acquire));
    if let Some(begun) = begun.filter(|_| since_ns > FOR_EVER_NS)
        && !WAITS_FOR_EVER.swap(true, Ordering::AcqRel)
    {
        end_deadlocked(&begun.processes);
    }
}

fn has(workload: &Workload, pid: Pid) -> bool {
    let place = place(pid);
    place == workload.begun_by || place > workload.after
}

/// Newer pids have higher ones.
fn place(pid: Pid) -> (u64, u64) {
    (pid.serial(), pid.number())
}

/// The workload begins, with `p`. What a profile has counted of it is of boot, and goes.
#[cold]
pub(in crate::trace) fn begin(p: &mut Process) {
    let Some(run) = RUN.get() else { return };
    if run.begun.get().is_some() {
        return;
    }
    account(p);
    // Where time slices end depends on how far this one is, and so do the reductions that a call gives up there. In a
    // replay they end where they did in the recorded run.
    if may_timing_show() {
        p.new_slice();
    }
    outside::forget();
    let newest = process::table()
        .iter(&pin())
        .map(|shared| place(shared.pid()))
        .max();
    run.begun.get_or_init(|| Begun {
        processes: Workload {
            begun_by: place(p.pid()),
            after: newest.unwrap_or_default(),
        },
        made: process::processes_made(),
    });
    settle(p);
    if let Some(meters) = meters_of(p) {
        meters.in_line.use_meter(0);
        for meter in meters.meters.drain(..) {
            let mut arenas = meter.session.arenas.lock();
            arenas.retain(|arena| !std::sync::Arc::ptr_eq(arena, &meter.arena));
        }
    }
}

/// `p` ends the machine: its time slice is accounted for up to here.
pub(crate) fn halting(p: &Process) {
    if is_on() {
        account(p);
    }
}

/// Writes the totals, where they are kept: what is called when the machine ends.
pub(crate) fn write_at_end() {
    let Some(run) = RUN.get() else { return };
    if run.written.swap(true, Ordering::AcqRel) {
        return;
    }
    let folder = &run.request.folder;
    if let Err(error) = run.totals().write(folder, names::own_pid()) {
        complain!("beamline: {}: {error}", folder.display());
    }
}

/// No process of the workload can go on: tells so, and ends the machine.
#[cold]
fn end_deadlocked(workload: &Workload) {
    let pin = pin();
    let waiting = process::table()
        .iter(&pin)
        .filter(|shared| has(workload, shared.pid()));
    let mut names: Vec<String> = waiting.map(named).collect();
    let more = names.len().saturating_sub(NAMED);
    names.truncate(NAMED);
    let mut waiting = names.join(", ");
    if names.is_empty() {
        waiting.push_str("the last of the workload has ended, and nobody halts the emulator");
    } else if more > 0 {
        waiting.push_str(&format!(" and {more} more"));
    }
    complain!(
        "beamline: all processes wait for ever: no timer, no program and no descriptor can wake them ({waiting})"
    );
    halt::request(1);
}

/// Processes that are named of those that wait for ever.
const NAMED: usize = 5;

fn named(shared: &ProcShared) -> String {
    let pid = pid_text(shared.pid());
    match shared.name() {
        Some(name) => format!("{} {pid}", name.name()),
        None => pid,
    }
}

static WAITS_FOR_EVER: AtomicBool = AtomicBool::new(false);

impl Run {
    fn totals(&self) -> Totals {
        let made = process::processes_made();
        let begun = self.begun.get();
        Totals {
            otp: self.otp.clone(),
            deterministic: chance::form().is_virtual(),
            whole: self.whole.counted(made),
            workload: self
                .workload
                .counted(begun.map_or(0, |begun| made - begun.made)),
            processes: begun.map(|begun| begun.processes.clone()),
            outside: outside::taken(),
            waits_for_ever: WAITS_FOR_EVER.load(Ordering::Acquire),
        }
    }
}
