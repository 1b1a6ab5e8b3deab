//! What an explored run keeps for its answer, in memory, until it ends (`scheduler/explore.rs`).
//!
//! Invariants: T1 of `term/mod.rs`; S1 of `process/shared.rs`: a run has one thread.

mod aliases;
mod endings;
mod info;
mod timers;
mod traps;
mod watches;

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use beamline_formats::ring::Touch;
use beamline_orders::{EndedAt, Ends};
use parking_lot::Mutex;

use super::OrderEvent;
use super::mode::{begin_exploring, end_exploring, is_explored};
use crate::hash::{HashMap, HashSet};
use crate::process::order::access::{Object, ObjectsOf};
use crate::process::refs::RefNumbers;
use crate::process::{Process, init_pid, lookup, table};
use crate::sched::ptab::pin;
use crate::sys::halt::{self, Exit, Flush};
use crate::term::{Atom, Pid, RawTerm, Term, View, am};
pub(crate) use aliases::note_alias_given_up;
pub(in crate::process) use aliases::note_send_through;
pub(in crate::process) use endings::{Endings, record_killed_by};
pub(in crate::process) use info::note_nameless;
pub(crate) use info::{Info, ask_info, note_item_set};
pub(crate) use timers::{
    Timer, access_timer, go_off_for_nobody, is_timer, note_cancelled, note_timers_left,
    receiver_of_timer, start_timer, wait_to_start_timer,
};
pub(in crate::process) use timers::{note_due, note_gone_off, time_has_passed};
pub(crate) use traps::{access_for_exit, access_trapping, all_trapping};
pub(in crate::process) use traps::{note_exit_arrival, note_exit_call, settle};
pub(crate) use watches::{
    Watch, access_end_of, access_end_of_peer, access_link, ask_alive, note_link, note_monitor,
    note_monitor_given_up, note_word_kept, record_watched_birth,
};
pub(in crate::process) use watches::{access_own_end, end_of_nobody, note_link_news};

/// The run that this process of the operating system makes, and what waits for one.
struct Run {
    /// It is to end at once.
    is_over: AtomicBool,
    /// The whole program is explored, not one call: the process that is about to do what the command asks for waits for a
    /// run.
    is_whole: AtomicBool,
    /// That process, as a word; 0: it has not come so far.
    waiting: AtomicU64,
    /// Steps so far.
    steps: AtomicUsize,
    /// Accesses to what processes share so far.
    accesses: AtomicUsize,
    /// `None` before the run and behind it.
    kept: Mutex<Option<Kept>>,
    objects: Objects,
}

/// What stands, in the order of accesses, for what processes are to each other: an exploration alone has an order of it.
struct Objects {
    /// The ends of processes.
    ends: ObjectsOf<Pid>,
    /// The end of a process that a monitor or link does not find.
    nobody: Object,
    /// As `ends`, for processes that only ask whether a process is alive, and hear of no end.
    alive: ObjectsOf<Pid>,
    /// Links of two processes, the one with the smaller pid first.
    links: ObjectsOf<(Pid, Pid)>,
    /// Whether processes trap exits.
    traps: ObjectsOf<Pid>,
}

static RUN: Run = Run {
    is_over: AtomicBool::new(false),
    is_whole: AtomicBool::new(false),
    waiting: AtomicU64::new(0),
    steps: AtomicUsize::new(0),
    accesses: AtomicUsize::new(0),
    kept: Mutex::new(None),
    objects: Objects {
        ends: ObjectsOf::new(),
        nobody: Object::new(),
        alive: ObjectsOf::new(),
        links: ObjectsOf::new(),
        traps: ObjectsOf::new(),
    },
};

/// An access to a part of an object.
pub(crate) struct KeptAccess {
    /// How many steps of the run are before it.
    pub(crate) steps: usize,
    pub(crate) by: Pid,
    pub(crate) how: Touch,
    pub(crate) object: u64,
    pub(crate) part: u64,
}

/// A process began to trap exits, or ceased to, with one of its accesses.
pub(crate) struct TrapsChange {
    pub(crate) by: Pid,
    pub(crate) access: u64,
    pub(crate) traps: bool,
}

/// A call of `exit/2` with another process.
pub(crate) struct ExitCall {
    pub(crate) by: Pid,
    /// The access of the caller that it is.
    pub(crate) access: u64,
    pub(crate) to: Pid,
    /// Which processes the signal ends.
    pub(crate) ends: Ends,
}

/// A process was ended by a signal of another one.
pub(crate) struct Killed {
    pub(crate) process: Pid,
    pub(crate) by: Pid,
    /// The sender's access that sent the signal; 0: its end did.
    pub(crate) access: u64,
    /// Where the process was.
    pub(crate) at: EndedAt,
}

/// What is known of a run so far.
#[derive(Default)]
pub(crate) struct Kept {
    /// The process that makes the call.
    pub(crate) main: Option<Pid>,
    /// The steps, in the order in which they were recorded.
    pub(crate) told: Vec<(Pid, OrderEvent)>,
    /// Accesses to what processes share.
    pub(crate) accesses: Vec<KeptAccess>,
    /// Sender and receiver of each message.
    pub(crate) sent: Vec<(Pid, Pid)>,
    /// Receives that took a message, and could have timed out: of which process, and which of its receives and
    /// time-outs.
    pub(crate) timed: Vec<(Pid, u32)>,
    receives: HashMap<Pid, u32>,
    /// Receives that are no steps, as they drop the message of a monitor that was given up (`demonitor` with `flush`):
    /// of which process, and which of its receives and time-outs, with these.
    pub(crate) flushed: Vec<(Pid, u32)>,
    /// Aliases that were given up, each with how many receives its process had made by then.
    aliases_given_up: HashMap<RefNumbers, u32>,
    /// Messages that were sent through aliases.
    through_aliases: Vec<aliases::ThroughAlias>,
    /// Monitors and links, also those that were given up.
    pub(crate) watches: Vec<Watch>,
    pub(crate) traps: Vec<TrapsChange>,
    pub(crate) exit_calls: Vec<ExitCall>,
    /// The message that an exit signal of a call has become: its number at the receiver, among those that no process
    /// has sent.
    pub(crate) exit_messages: HashMap<(Pid, u64), u32>,
    /// Timers that send messages to processes.
    pub(crate) timers: Vec<Timer>,
    /// How many of those messages each process got.
    notices: HashMap<Pid, u32>,
    /// The function that each process began with.
    pub(crate) born: HashMap<Pid, String>,
    /// Processes that were made, and have not ended.
    pub(crate) alive: HashSet<Pid>,
    /// Processes that ended otherwise than normally, and why.
    pub(crate) exits: Vec<(Pid, String)>,
    /// Ends by signals.
    pub(crate) ended: Vec<Killed>,
    /// What the call returned.
    pub(crate) result: Option<String>,
    /// A process did another step than the prefix has.
    pub(crate) astray: Option<String>,
    /// The process that had all that its last receive of the prefix needs, and made it otherwise.
    pub(crate) refuses: Option<Pid>,
    /// Items of processes that others have read, and items that were set: these are not reordered.
    settings: info::Settings,
    /// Processes that have given up their names as they end.
    nameless: HashSet<Pid>,
    /// Kinds of nondeterminism in this run that are not explored.
    pub(crate) beyond: Vec<String>,
    /// The functions that were compiled in it.
    pub(crate) compiled: Vec<(Atom, Atom, u8)>,
}

/// A run of more steps never ends.
const STEPS_MAX: usize = 100_000;
/// Nor does one of more accesses.
const ACCESSES_MAX: usize = 1_000_000;

/// Most subterms printed of a term.
const PARTS: i64 = 400;

/// Whether the run is to end at once.
#[inline(always)]
pub(crate) fn is_over() -> bool {
    RUN.is_over.load(Ordering::Relaxed)
}

/// The number of steps and accesses so far.
pub(crate) fn told() -> usize {
    RUN.steps.load(Ordering::Relaxed) + RUN.accesses.load(Ordering::Relaxed)
}

/// Whether there are more of them than a run has that ends.
pub(crate) fn is_endless() -> bool {
    RUN.steps.load(Ordering::Relaxed) > STEPS_MAX
        || RUN.accesses.load(Ordering::Relaxed) > ACCESSES_MAX
}

/// Holds the process that is about to do what the command asks for, until a run is asked for.
pub(crate) fn hold_program_for_run() {
    RUN.is_whole.store(true, Ordering::Relaxed);
}

/// `pid` is about to do what the command asks for: whether it may; `None` where nobody explores that.
pub(crate) fn may_begin(pid: Pid) -> Option<bool> {
    RUN.is_whole.load(Ordering::Relaxed).then(|| {
        RUN.waiting.store(pid.0, Ordering::Relaxed);
        is_explored()
    })
}

/// The process that waits for a run, to do what the command asks for.
pub(crate) fn waiting() -> Option<Pid> {
    let word = RUN.waiting.load(Ordering::Relaxed);
    (word != 0).then_some(Pid(word))
}

/// A run begins, in which `main` makes the call. These processes trap exits.
pub(crate) fn begin(main: Pid, trapping: &[Pid]) {
    let mut kept = Kept {
        main: Some(main),
        traps: trapping
            .iter()
            .map(|pid| TrapsChange {
                by: *pid,
                access: 0,
                traps: true,
            })
            .collect(),
        ..Kept::default()
    };
    kept.alive.insert(main);
    *RUN.kept.lock() = Some(kept);
    begin_exploring();
}

/// All that is known of the run.
pub(crate) fn end() -> Kept {
    end_exploring();
    RUN.kept.lock().take().unwrap_or_default()
}

fn kept<T>(with: impl FnOnce(&mut Kept) -> T) -> Option<T> {
    RUN.kept.lock().as_mut().map(with)
}

/// Calls `with` with the processes that were made, and have not ended.
pub(crate) fn with_alive<T: Default>(with: impl FnOnce(&HashSet<Pid>) -> T) -> T {
    kept(|kept| with(&kept.alive)).unwrap_or_default()
}

/// Whether no process that was made is left.
pub(crate) fn are_all_gone() -> bool {
    kept(|kept| kept.alive.is_empty()).unwrap_or(true)
}

/// Whether the process that made the call has ended.
pub(crate) fn is_main_gone() -> bool {
    kept(|kept| kept.main.is_some_and(|main| !kept.alive.contains(&main))).unwrap_or(true)
}

/// Calls `with` with a process that rests, in a run or before its fork; `None` where it has a time slice.
pub(crate) fn with_resting<T>(pid: Pid, with: impl FnOnce(&Process) -> T) -> Option<T> {
    let guard = pin();
    let shared = lookup(pid, &guard)?;
    // SAFETY: S1: this is the only thread, and it begins no time slice of the process while it looks at it.
    Some(with(unsafe { shared.resting() }?))
}

/// Calls `with` with each process that rests, in a run or before its fork.
pub(crate) fn each_resting(mut with: impl FnMut(&Process)) {
    let guard = pin();
    for shared in table().iter(&guard) {
        // SAFETY: S1: as above.
        if let Some(process) = unsafe { shared.resting() } {
            with(process);
        }
    }
}

/// Keeps a step, if this is an explored run; whether it is.
#[inline]
pub(crate) fn keep_step(pid: Pid, told: OrderEvent) -> bool {
    if is_explored() {
        keep(pid, told);
    }
    is_explored()
}

fn keep(pid: Pid, told: OrderEvent) {
    RUN.steps.fetch_add(1, Ordering::Relaxed);
    kept(|kept| {
        match told {
            OrderEvent::Spawn(child) => drop(kept.alive.insert(child)),
            OrderEvent::Exit => drop(kept.alive.remove(&pid)),
            OrderEvent::Notice { .. } => *kept.notices.entry(pid).or_default() += 1,
            // What the machine answers is the same in each run.
            OrderEvent::Answer { .. }
            | OrderEvent::AnswerTerm { .. }
            | OrderEvent::Content { .. }
            | OrderEvent::Bytes(_)
            | OrderEvent::Lost(_)
            | OrderEvent::Heard(..)
            | OrderEvent::Collect { .. }
            | OrderEvent::EndedBy(_)
            | OrderEvent::Spent(_) => return,
            told if told.is_annotation() => return,
            _ => {}
        }
        kept.told.push((pid, told));
    });
}

/// Keeps an access to a part of an object, if this is an explored run; whether it is.
pub(crate) fn keep_access(pid: Pid, access: impl FnOnce() -> (Touch, u64, u64)) -> bool {
    if is_explored() {
        RUN.accesses.fetch_add(1, Ordering::Relaxed);
        let (how, object, part) = access();
        kept(|kept| {
            let before = kept.told.len();
            kept.accesses.push(KeptAccess {
                steps: before,
                by: pid,
                how,
                object,
                part,
            });
        });
    }
    is_explored()
}

/// A process has been made.
pub(crate) fn born(pid: Pid, known_as: impl FnOnce() -> String) {
    if is_explored() {
        kept(|kept| kept.born.insert(pid, known_as()));
    }
}

/// A process sends.
pub(in crate::process) fn sent(from: Pid, to: Pid) {
    kept(|kept| kept.sent.push((from, to)));
}

/// Ends the emulator, if this is an explored run and a message to `init` asks for it: whether it does, and goes no further.
/// All processes of the emulator would be ended one after the other, and nothing of that is the program's.
#[inline]
pub(in crate::process) fn end_as_asked(to: Pid, message: Term<'_>) -> bool {
    is_explored() && end_if_asked(to, message)
}

fn end_if_asked(to: Pid, message: Term<'_>) -> bool {
    let asked = || -> Option<Term<'_>> {
        let tuple = message.as_tuple()?;
        match tuple.elements() {
            [stop, how] if *stop == Atom::new("stop") => Some(*how),
            _ => None,
        }
    };
    let Some(how) = (to == init_pid()).then(asked).flatten() else {
        return false;
    };
    let status = how.as_tuple().and_then(|how| match how.elements() {
        [stop, status] if *stop == Atom::new("stop") => Some(*status),
        _ => None,
    });
    match status.map(Term::view) {
        Some(View::Small(code)) => halt::request((code & 0xff) as i32),
        Some(View::Atom(_)) => halt::end(Exit::Abort, Flush::No),
        Some(_) => halt::request(1),
        None => {
            if how != Atom::new("stop") {
                note_unexplored("what comes after a restart of the emulator");
            }
            halt::request(0);
        }
    }
    true
}

/// A receive times out.
pub(in crate::process) fn note_timeout(pid: Pid) {
    kept(|kept| *kept.receives.entry(pid).or_default() += 1);
}

/// A receive takes a message.
pub(in crate::process) fn note_receive(pid: Pid) {
    kept(|kept| *kept.receives.entry(pid).or_default() += 1);
}

/// A receive takes a message, and is no step.
pub(in crate::process) fn note_flush(pid: Pid) {
    kept(|kept| {
        let before = kept.flushed.iter().filter(|(by, _)| *by == pid).count();
        let nth = kept.receives_of(pid) + before as u32;
        kept.flushed.push((pid, nth));
    });
}

/// A receive is about to take a message, and has a time.
pub(crate) fn could_time_out(pid: Pid) {
    kept(|kept| {
        let nth = kept.receives_of(pid);
        kept.timed.push((pid, nth));
    });
}

/// Keeps the result of the call, if `p` is the process that has made it.
pub(crate) fn note_result(p: &Process, result: RawTerm) {
    if !is_explored() {
        return;
    }
    // SAFETY: T1: the register's term, which the process still has.
    let result: Term<'_> = unsafe { Term::new(result) };
    kept(|kept| {
        if kept.main == Some(p.pid()) {
            kept.result = Some(result.display_cut(PARTS).to_string());
        }
    });
}

/// A function of this module, with this name and arity, has been compiled.
pub(crate) fn compiled(module: Atom, function: Atom, arity: u8) {
    if is_explored() {
        kept(|kept| kept.compiled.push((module, function, arity)));
    }
}

/// A process ends.
pub(in crate::process) fn note_exit(p: &Process) {
    let Some(reason) = p.exit_reason().filter(|reason| *reason != am::normal) else {
        return;
    };
    let reason = reason.display_cut(PARTS).to_string();
    kept(|kept| kept.exits.push((p.pid(), reason)));
}

/// Records that a process leaves the prefix, which ends the run. `refuses`: it had all that its last receive of the
/// prefix needs, and made it otherwise, so no run can follow this prefix.
pub(in crate::process) fn record_divergence(pid: Pid, refuses: bool, line: String) {
    kept(|kept| {
        kept.astray.get_or_insert(line);
        kept.refuses = kept.refuses.or(refuses.then_some(pid));
    });
    RUN.is_over.store(true, Ordering::Relaxed);
}

impl Kept {
    /// How many receives a process has made, with those that timed out.
    fn receives_of(&self, pid: Pid) -> u32 {
        self.receives.get(&pid).copied().unwrap_or(0)
    }

    /// Notes nondeterminism of a kind that is not explored.
    pub(in crate::process) fn note_unexplored(&mut self, what: &str) {
        if !self.beyond.iter().any(|known| known == what) {
            self.beyond.push(what.to_owned());
        }
    }
}

/// Notes nondeterminism of a kind that is not explored: the answer is then not all there are.
pub(crate) fn note_unexplored(what: &str) {
    if is_explored() {
        kept(|kept| kept.note_unexplored(what));
    }
}

/// Whether the run has to do without what is asked for, as an explored one does, which notes it.
pub(crate) fn refuse(what: &str) -> bool {
    note_unexplored(what);
    is_explored()
}
