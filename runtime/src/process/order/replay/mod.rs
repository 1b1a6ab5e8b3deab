//! Replays: each process makes the steps that a recorded process made, and gets its messages in the order in which that
//! one got them. A process whose steps are all made runs free.
//!
//! A message that comes too early is held in its receiver until its turn; a receive whose next message has not come
//! waits, however short its time. Source: Algorithm 1 of prefix-based tracing (`docs/replay.md`), with the receivers in
//! the place of its scheduler.

mod access;
mod answers;
mod collections;
mod cursor;
mod delivery;
mod end;
mod held;
mod identities;
mod input;
pub(crate) mod look;
mod ports;
mod spent;
pub(crate) mod start;
pub(crate) mod stop;
#[cfg(test)]
mod tests;
mod timers;
mod tries;
mod watch;

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use beamline_orders::{
    Halt, Message, Origin, ProcessIndex, Set, Setting, Signal as ExitSignal, Spent,
    Step as Recorded, SystemMessage, Trace, UNFOLLOWED,
};
use parking_lot::{Mutex, RwLock};

use super::{Source, Step, explore, turns};
use crate::hash::HashMap;
use crate::heap::Message as HeapMessage;
use crate::process::probe::probes;
use crate::process::signal::ExitSignal as Exit;
use crate::process::{Process, order};
use crate::sys::halt;
use crate::sys::stderr::complain;
use crate::term::{Atom, Pid};
pub(in crate::process) use answers::{
    note_unrecorded_answer, records_answers, report_other_read, report_other_send,
};
use cursor::{Cursor, ReceiveVerdict};
use held::Held;
use identities::Identities;
pub(crate) use identities::last_port;
pub(in crate::process) use identities::{last_pid, pid_of_child, pid_of_root};
pub(crate) use spent::{note_calls_cost_otherwise, tell_spent};
pub(crate) use timers::{Receiver, receiver_of_timer};
use tries::Trial;
pub(crate) use tries::Tries;

/// The run that is followed.
struct Plan {
    trace: Trace,
    /// The recording tells when messages came, which a log does not.
    has_deliveries: bool,
    identities: Identities,
    contents: answers::Contents,
    tells_contents: bool,
    /// A process that cannot follow runs free instead of ending the emulator.
    goes_on: bool,
    /// Where it stops, if anywhere.
    stop: Option<Halt>,
    /// The recorded process that each process follows: its place in the trace.
    indexes: RwLock<HashMap<Pid, ProcessIndex>>,
    /// Why processes have ended: a monitor or link that comes later than in the recorded run hears the recorded reason.
    ends: Mutex<HashMap<Pid, HeapMessage>>,
    /// Steps and deliveries so far.
    progress: AtomicU64,
    has_differed: AtomicBool,
    accesses: access::All,
    end: end::End,
    /// Made when it is asked for first.
    timers: OnceLock<timers::Receivers>,
    /// The messages that receives try beside the recorded ones; made when one is tried first.
    others: OnceLock<tries::Others>,
    /// Processes that wait, filled when the watch asks.
    waiting: Mutex<Vec<watch::Waiting>>,
    /// Processes that have spent another number than in the recorded run.
    spent_otherwise: Mutex<Vec<spent::Otherwise>>,
}

static PLAN: OnceLock<Plan> = OnceLock::new();

fn plan() -> Option<&'static Plan> {
    PLAN.get()
}

/// Follows these steps from now on, also in processes that are there already. There is no watch: the caller, which runs
/// the processes, asks [`Process::unfinished`].
pub(crate) fn follow(trace: Trace) {
    let _ = PLAN.set(Plan::new(trace, false, None));
    order::begin_following();
}

/// Whether a run follows a prefix, or a recorded run.
pub(crate) fn has_prefix() -> bool {
    order::is_followed()
}

/// The numbers of the pids of processes without a parent that are followed.
pub(crate) fn roots() -> Vec<u64> {
    let processes = plan().into_iter().flat_map(|plan| &plan.trace.processes);
    let roots = processes.filter_map(|process| match process.origin {
        Origin::Root(root) => Some(root),
        Origin::Child { .. } => None,
    });
    roots.collect()
}

/// Whether some process of the followed run waits, and each of them waits for a step that no timer can bring.
pub(crate) fn is_stuck(stuck_of: impl Fn(Pid) -> Option<bool>) -> bool {
    let Some(plan) = plan() else { return false };
    let all: Vec<Pid> = plan.indexes.read().keys().copied().collect();
    let mut waiting = all.into_iter().filter_map(stuck_of).peekable();
    waiting.peek().is_some() && waiting.all(|is_stuck| is_stuck)
}

/// Whether a process waits for a step that no timer can bring; `None` where it follows nothing any more.
pub(crate) fn waits_without_timer(p: &Process) -> Option<bool> {
    let plan = plan()?;
    let follows = p
        .replay_state()
        .filter(|follows| !follows.cursor.is_over())?;
    let is_of_timer =
        |due: &Message| matches!(due, Message::SystemMessage(SystemMessage { of: None, .. }));
    Some(
        !follows
            .cursor
            .due(follows.steps(plan))
            .is_some_and(is_of_timer),
    )
}

/// Whether accesses that the trace has are still to be made.
pub(crate) fn lacks_accesses() -> bool {
    plan().is_some_and(|plan| !plan.accesses.are_all_told_made())
}

/// What a message that no process has sent is about.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SystemNotice {
    /// The end of a process, to which it is linked.
    Exit(Pid),
    /// The end of a process that it monitors, if it is one and there was one, with the reference of this number.
    Down(Option<Pid>, Option<u32>),
    /// Anything else.
    Any,
}

/// What a process follows, and what it holds meanwhile.
pub(in crate::process) struct ReplayState {
    cursor: Cursor,
    accesses: access::AccessCursor,
    /// What the recorded process spent by its end, if that is known.
    spent: Option<Spent>,
    /// The signal that ended it, if that is known.
    ended_by: Option<ExitSignal>,
    /// Collections requested by others that are still to come.
    collections: usize,
    /// Signals that have come before their turn.
    held: Held,
    /// The input that it waits for.
    input: Option<input::Input>,
    /// The messages that its present receive has still to try.
    trial: Option<Box<Trial>>,
    /// It has steps to make before the emulator ends.
    is_at_work: bool,
}

/// A process has been spawned: it follows the recorded process of its parent's spawn.
pub(in crate::process) fn follow_spawned(p: &Process) {
    if let Some(plan) = plan()
        && let Some(index) = plan.index(p.pid())
    {
        plan.begin(p, index);
    }
}

/// The runtime has made a process: it follows the recorded one of its number.
pub(crate) fn follow_root(p: &Process) {
    let Some(plan) = plan() else { return };
    let Some(index) = plan.root(p.pid()) else {
        return;
    };
    match p.initial_call.get().0.name() == UNFOLLOWED {
        true => drop(plan.indexes.write().insert(p.pid(), index)),
        false => plan.begin(p, index),
    }
}

impl Plan {
    fn begin(&'static self, p: &Process, index: ProcessIndex) {
        self.indexes.write().insert(p.pid(), index);
        let mut follows = ReplayState {
            cursor: Cursor::new(&self.trace, index),
            accesses: self.accesses.own(index, &self.trace.processes[index].steps),
            spent: spent::of(&self.trace.processes[index].steps),
            ended_by: self.trace.processes[index].ended_by(),
            collections: collections::count(&self.trace.processes[index].steps),
            held: Held::default(),
            input: None,
            trial: None,
            is_at_work: false,
        };
        // Counted before it runs: the process that halts the emulator waits until nobody is at work.
        follows.begin_work(self);
        p.follow(follows);
        self.note_begin(index);
    }

    fn new(trace: Trace, goes_on: bool, stop: Option<Halt>) -> Plan {
        Plan {
            identities: Identities::of(&trace),
            contents: answers::contents(&trace),
            tells_contents: answers::tells_contents(&trace),
            accesses: access::All::of(&trace),
            end: end::End::of(&trace, goes_on || stop.is_some()),
            timers: OnceLock::new(),
            others: OnceLock::new(),
            trace,
            has_deliveries: true,
            goes_on,
            stop,
            indexes: RwLock::default(),
            ends: Mutex::default(),
            progress: AtomicU64::new(0),
            has_differed: AtomicBool::new(false),
            waiting: Mutex::default(),
            spent_otherwise: Mutex::default(),
        }
    }

    /// The recorded process without a parent that had the number of `pid`.
    fn root(&self, pid: Pid) -> Option<ProcessIndex> {
        let origin = Origin::Root(pid.number());
        let processes = &self.trace.processes;
        processes.position(|process| process.origin == origin)
    }

    /// Whether some process could not follow, and runs free.
    fn has_gone_free(&self) -> bool {
        self.goes_on && self.has_differed.load(Ordering::Relaxed)
    }

    fn index(&self, pid: Pid) -> Option<ProcessIndex> {
        self.indexes.read().get(&pid).copied()
    }

    /// Is it the recorded message?
    fn is(&self, recorded: &Message, source: &Source) -> bool {
        match (recorded, source) {
            (Message::Sent { from, number }, Source::Sent(sending)) => {
                sending.number == *number && self.index(sending.from) == Some(*from)
            }
            (Message::SystemMessage(told), Source::Timer(timer)) => match told.set.map(Set::what) {
                Some(Setting::Timer { by, number }) => {
                    number == timer.number && self.index(timer.by) == Some(by)
                }
                Some(Setting::Monitor(_)) => false,
                None => told.of.is_none() && !told.exit,
            },
            (
                Message::SystemMessage(told),
                Source::SystemMessage {
                    of,
                    is_gone,
                    is_exit,
                    monitor,
                },
            ) => match told.set.map(Set::what) {
                Some(Setting::Timer { .. }) => false,
                Some(Setting::Monitor(number)) => *monitor == Some(number),
                None => {
                    let of = of.and_then(|pid| self.index(pid));
                    // To an exploration, what a monitor tells of an end is another thing than that a later one finds
                    // nobody. A replay takes either, as a trace without numbers of monitors has it.
                    let is_as_gone = *is_exit || told.gone == *is_gone || !order::is_explored();
                    // A monitor by a name that nobody has any more knows no process.
                    let is_of = of == told.of && is_as_gone || of.is_none() && *is_gone;
                    told.exit == *is_exit && is_of
                }
            },
            (Message::Sent { .. }, Source::Timer(_) | Source::SystemMessage { .. })
            | (Message::SystemMessage(_), Source::Sent(_)) => false,
        }
    }

    /// Which recorded process an exit signal is of.
    fn index_of(&self, exit: &Exit) -> Option<ProcessIndex> {
        exit.from.pid().and_then(|pid| self.index(pid))
    }

    /// Is it the signal that ended a recorded process?
    fn is_signal(&self, recorded: ExitSignal, exit: &Exit) -> bool {
        let from = self.index_of(exit);
        match recorded {
            ExitSignal::End(of) => exit.access == 0 && from == Some(of),
            ExitSignal::Call(call) => exit.access == call.number && from == Some(call.of),
        }
    }

    /// Whether a recorded process ended behind an access that another one has still to make.
    fn ends_behind(&self, process: Option<ProcessIndex>, other: ProcessIndex) -> bool {
        let steps = process.map(|of| &self.trace.processes[of].steps);
        let made = self.accesses.made(other);
        steps.into_iter().flatten().any(|step| match step {
            Recorded::After { other: access, .. } => access.of == other && access.number > made,
            _ => false,
        })
    }

    /// Whether a recorded process has still to make an access that comes after one of another process.
    fn comes_later(&self, process: ProcessIndex, behind: Option<ProcessIndex>) -> bool {
        let made = self.accesses.made(process);
        let steps = &self.trace.processes[process].steps;
        steps.iter().any(|step| match step {
            Recorded::After { access, other } => Some(other.of) == behind && *access > made,
            _ => false,
        })
    }

    fn count_progress(&self) {
        self.progress.fetch_add(1, Ordering::Relaxed);
    }
}

impl ReplayState {
    fn steps(&self, plan: &'static Plan) -> &'static [Recorded] {
        &plan.trace.processes[self.cursor.process].steps
    }
}

impl Process {
    /// Whether its receive, which has looked at all messages, has to wait for one that came next in the recorded run. A
    /// receive that is about to raise an error (`by_error`) waits only for what came before the next step.
    #[inline]
    pub(crate) fn awaits_turn(&self, by_error: impl FnOnce() -> bool) -> bool {
        order::is_active() && self.awaits_recorded_turn(by_error)
    }

    fn awaits_recorded_turn(&self, by_error: impl FnOnce() -> bool) -> bool {
        if self.is_flushing() {
            return false;
        }
        if order::is_explored() && self.awaits_end() {
            self.wake_if_held_is_due();
        }
        let waits = order::is_followed()
            && match self.turn() {
                ReceiveVerdict::Due => true,
                ReceiveVerdict::Wait => !by_error(),
                ReceiveVerdict::Free | ReceiveVerdict::Timeout => false,
            };
        waits || order::is_explored() && self.waits_for_its_end()
    }

    /// Whether its receive timed out in the recorded run.
    pub(in crate::process) fn follows_timeout(&self) -> bool {
        order::is_followed() && self.turn() == ReceiveVerdict::Timeout
    }

    fn turn(&self) -> ReceiveVerdict {
        let (Some(plan), Some(follows)) = (plan(), self.replay_state()) else {
            return ReceiveVerdict::Free;
        };
        follows.cursor.turn(follows.steps(plan))
    }

    /// Whether it has still to make steps or accesses of what it follows.
    pub(in crate::process) fn has_steps_to_follow(&self) -> bool {
        let (Some(plan), Some(follows)) = (plan(), self.replay_state()) else {
            return false;
        };
        !follows.is_over(plan)
    }

    /// Whether it follows a recorded process that has steps left, in a replay and not in an exploration.
    pub(in crate::process) fn is_replayed(&self) -> bool {
        order::is_followed() && !order::is_explored() && self.has_steps_to_follow()
    }

    /// It makes a step: the next recorded one, or one behind all that were recorded.
    pub(in crate::process) fn follow_step(&self, step: Step) {
        let plan = plan().filter(|_| order::is_followed());
        let Some(plan) = plan else { return };
        if step == Step::Exit
            && let Some(reason) = self.exit_reason()
        {
            // Before the step is made: from then on, a process that links to this one too late asks for the reason.
            let reason = HeapMessage::copy_of(reason);
            plan.ends.lock().insert(self.pid(), reason);
        }
        if step == Step::Exit {
            self.compare_spent(plan);
        }
        let made = self
            .replay_state()
            .map(|mut follows| follows.cursor.make(plan, step));
        match made {
            Some(Err(expected)) => self.report_divergence(plan, &expected, &step.to_string()),
            _ => plan.count_progress(),
        }
        self.stop_behind();
    }

    /// A message has got to this place of its queue.
    pub(in crate::process) fn follow_delivery(&self, source: Source, at: usize) {
        if let (Some(plan), Some(mut follows)) = (plan(), self.replay_state())
            && follows.cursor.deliver(plan, &source, at)
        {
            plan.count_progress();
        }
        self.stop_behind_delivery(&source);
    }

    /// A message has been taken out of its queue.
    pub(in crate::process) fn follow_receive(&self, at: usize) {
        let Some(plan) = plan() else { return };
        let received = self.replay_state().map(|mut follows| {
            let steps = follows.steps(plan);
            let received = follows.cursor.receive(steps, at);
            received.map_err(|(expected, came)| (expected, came, follows.cursor.process))
        });
        match received {
            Some(Err((expected, came, me))) => {
                let came = match came {
                    Some(came) => plan.trace.step(me, &Recorded::Receive(came)),
                    None => "receive a message that was not recorded".to_owned(),
                };
                self.report_divergence(plan, &expected, &came);
            }
            _ => plan.count_progress(),
        }
        self.stop_behind();
    }

    /// The message at this place has been dropped, which is no step.
    pub(in crate::process) fn follow_flush(&self, at: usize) {
        if let Some(mut follows) = self.replay_state() {
            follows.cursor.drop_at(at);
        }
    }

    /// Whether the recorded process missed this module here.
    pub(in crate::process) fn may_miss(&self, module: Atom) -> bool {
        let (Some(plan), Some(follows)) = (plan(), self.replay_state()) else {
            return true;
        };
        let knows_end = follows.spent.is_some() && !order::is_explored();
        let steps = follows.steps(plan);
        follows.cursor.may_miss(steps, module, knows_end)
    }

    /// Whether these modules have been missed as often as before the recorded process loaded them here.
    pub(in crate::process) fn may_load(&self, modules: impl Iterator<Item = (Atom, u64)>) -> bool {
        let (Some(plan), Some(follows)) = (plan(), self.replay_state()) else {
            return true;
        };
        follows.cursor.may_load(follows.steps(plan), modules)
    }

    /// Its step is another one than the recorded one: the process cannot follow.
    #[cold]
    fn report_divergence(&self, plan: &Plan, expected: &Recorded, came: &str) {
        let Some(mut follows) = self.replay_state() else {
            return;
        };
        let me = follows.cursor.process;
        let refuses = follows.cursor.refuses(&plan.trace.processes[me].steps);
        follows.cursor.finish();
        follows.accesses.finish(&plan.accesses);
        drop(follows);
        let (name, expected) = (plan.name(me), plan.trace.step(me, expected));
        let line = format!("{name} was to {expected}, and is about to {came}");
        if order::is_explored() {
            return explore::record_divergence(self.pid(), refuses, line);
        }
        plan.cannot_follow(&[format!("{line}; {}", self.place())]);
    }

    /// Where it is.
    fn place(&self) -> String {
        let location = probes().location(self);
        format!("it is in {}", location.display())
    }
}

impl Plan {
    /// What a process is called: its reference, and what reports call it.
    fn name(&self, process: ProcessIndex) -> String {
        let reference = self.trace.name(process);
        match &self.trace.processes[process].known_as {
            Some(known_as) => format!("{reference} ({known_as})"),
            None => reference,
        }
    }

    /// Says why a process cannot follow; ends the emulator, unless it is to go on.
    fn cannot_follow(&self, why: &[String]) {
        let is_first = !self.has_differed.swap(true, Ordering::Relaxed);
        if self.goes_on || is_first {
            for line in why {
                complain!("beamline: the replay cannot follow: {line}");
            }
        }
        if self.goes_on {
            self.accesses.let_go();
        } else if is_first {
            complain!("beamline: with --go-on, such a process runs free");
            stop::stand_still();
            halt::request(1);
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Spawn(_) => write!(f, "spawn a process"),
            Step::Send(_) => write!(f, "send a message"),
            Step::Timeout => write!(f, "time out"),
            Step::Miss(module) => write!(f, "miss({module})"),
            Step::Load { module, misses } => write!(f, "load({module}, {misses})"),
            Step::Exit => write!(f, "exit"),
        }
    }
}
