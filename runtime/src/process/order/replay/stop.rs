//! Stops a replay: when a process is about to make a step, all processes stand still. They handle what they are asked,
//! and nothing else: signals are held.
//!
//! A process that is about to send, or to access what processes share, gives up its time slice before. Others go on at
//! most to the ends of their time slices, and make no such step.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU8, Ordering};

use beamline_orders::{Halt, ProcessIndex, StepAt, StepIndex, Stop};
use parking_lot::{Condvar, Mutex, RwLock};

use super::{Plan, plan};
use crate::hash::HashSet;
use crate::process::order::{self, Answers, Source};
use crate::process::{Control, Process};
use crate::sys::stderr::complain;
use crate::term::Pid;

/// How far the replay is from its stop.
struct Stopping {
    /// One of the states below. A state gives way to a later one only.
    state: AtomicU8,
    /// The processes that stand still while a shell looks.
    standing: LazyLock<RwLock<HashSet<Pid>>>,
    /// For whoever waits for the stop.
    has_stopped: Mutex<bool>,
    stops: Condvar,
}

static STOPPING: Stopping = Stopping::new();

const RUNS: u8 = 0;
const IS_TO_STOP: u8 = 1;
const STOPPED: u8 = 2;
/// It has stopped, and a shell looks at it.
const LOOKED_AT: u8 = 3;

impl Stopping {
    const fn new() -> Stopping {
        Stopping {
            state: AtomicU8::new(RUNS),
            standing: LazyLock::new(RwLock::default),
            has_stopped: Mutex::new(false),
            stops: Condvar::new(),
        }
    }

    #[inline]
    fn is_asked(&self) -> bool {
        self.state.load(Ordering::Relaxed) != RUNS
    }

    #[inline]
    fn has_stopped(&self) -> bool {
        self.state.load(Ordering::Acquire) >= STOPPED
    }

    #[inline]
    fn is_looked_at(&self) -> bool {
        self.state.load(Ordering::Acquire) == LOOKED_AT
    }

    /// Whether a process stands still: all do, until a shell looks.
    fn stands(&self, pid: Pid) -> bool {
        match self.state.load(Ordering::Acquire) {
            STOPPED => true,
            LOOKED_AT => self.standing.read().contains(&pid),
            _ => false,
        }
    }

    /// A shell looks: from now on only these stand still.
    fn begin_to_look(&self, standing: HashSet<Pid>) {
        // Before the state: whoever sees it finds them there.
        *self.standing.write() = standing;
        self.state.store(LOOKED_AT, Ordering::Release);
    }

    /// A process has come where it is to stop.
    fn stop(&self) {
        self.state.store(STOPPED, Ordering::Release);
        *self.has_stopped.lock() = true;
        self.stops.notify_all();
    }

    /// All stand still, and whoever waits for the stop does so further: it has not come.
    fn stand_still(&self) {
        self.state.fetch_max(STOPPED, Ordering::AcqRel);
    }

    fn wait(&self) {
        let mut has_stopped = self.has_stopped.lock();
        let is_awaited = |has_stopped: &mut bool| !*has_stopped;
        self.stops.wait_while(&mut has_stopped, is_awaited);
    }
}

/// Whether the replay is to stop somewhere, or has.
#[inline]
pub(crate) fn is_asked() -> bool {
    STOPPING.is_asked()
}

/// Whether it has stopped.
#[inline]
pub(crate) fn has_stopped() -> bool {
    STOPPING.has_stopped()
}

/// Where the replay is to stop, if anywhere.
pub(crate) fn asked() -> Option<&'static Halt> {
    plan()?.stop.as_ref()
}

/// A shell looks: from now on only these stand still.
pub(super) fn begin_to_look(standing: HashSet<Pid>) {
    STOPPING.begin_to_look(standing);
}

/// What the replay has stopped for: which process is about to do what.
pub(crate) fn line() -> Option<String> {
    let plan = plan()?;
    let stop = plan.stop.as_ref()?.at;
    let name = plan.name(stop.process());
    Some(format!("{name} {}", plan.trace.stopped(stop)))
}

/// Waits until the replay has stopped.
pub(crate) fn wait() {
    STOPPING.wait();
}

/// The replay begins, which is to stop somewhere.
pub(super) fn begin() {
    STOPPING.state.store(IS_TO_STOP, Ordering::Relaxed);
}

/// The replay ends as a process cannot follow: nobody does more of what the recorded run did not.
pub(super) fn stand_still() {
    STOPPING.stand_still();
}

/// Tells at the end of a replay that it has not come where it was to stop.
pub(crate) fn tell_missed() {
    if let Some(halt) = asked().filter(|_| !has_stopped()) {
        complain!(
            "beamline: the replay did not come to {} before its end",
            halt.text
        );
    }
}

/// What is shown of a process that stands still.
pub(crate) struct Standing {
    /// It is the one that made the replay stop.
    pub(crate) advance_delivery: bool,
    /// Its reference, and what reports call it.
    pub(crate) name: Option<(String, Option<String>)>,
    /// Messages that have come before their turn.
    pub(crate) held: usize,
}

impl Plan {
    fn stops_at(&self, is_there: impl FnOnce(Stop) -> bool) -> bool {
        is_asked() && self.stop.as_ref().is_some_and(|halt| is_there(halt.at))
    }

    /// The process that follows this recorded one is there.
    pub(super) fn note_begin(&self, process: ProcessIndex) {
        let step = StepIndex::FIRST;
        let begin = [Stop::Begin(process), Stop::Step(StepAt { process, step })];
        if self.stops_at(|at| begin.contains(&at)) {
            STOPPING.stop();
        }
    }
}

impl Process {
    /// Whether it may not run for now: it is suspended, the replay has stopped, or it waits for the end of the emulator.
    #[inline]
    pub(crate) fn stands_still(&self) -> bool {
        self.is_held() || order::is_active() && (self.is_stopped() || self.has_made_last())
    }

    /// Whether it stands still as the replay has stopped. One that answers a request of `sys` does not, and neither does
    /// one that ends.
    pub(crate) fn is_stopped(&self) -> bool {
        has_stopped() && STOPPING.stands(self.pid()) && !self.answers() && !self.is_exiting()
    }

    /// A shell looks, and it stands still.
    #[inline]
    pub(in crate::process) fn is_looked_at(&self) -> bool {
        STOPPING.is_looked_at() && STOPPING.stands(self.pid())
    }

    fn answers(&self) -> bool {
        self.order.get().is_some() && self.own_order().answers != Answers::Nothing
    }

    /// What is shown of it.
    pub(crate) fn standing(&self) -> Standing {
        let (plan, follows) = (plan(), self.replay_state());
        let (Some(plan), Some(follows)) = (plan, follows) else {
            let (advance_delivery, name, held) = (false, None, 0);
            return Standing {
                advance_delivery,
                name,
                held,
            };
        };
        let me = follows.cursor.process;
        let known_as = plan.trace.processes[me].known_as.clone();
        Standing {
            advance_delivery: plan.stops_at(|at| at.process() == me),
            name: Some((plan.trace.name(me), known_as)),
            held: follows.held.len(),
        }
    }

    /// It is about to send a message to a process.
    ///
    /// # Errors
    /// The replay stops: it stands still.
    #[inline]
    pub(in crate::process) fn stop_before_sending(&self) -> Result<(), Control<'static>> {
        match is_asked() {
            true => self.stop_before(|from| {
                let number = self.number_of_next_sending();
                Stop::Send { from, number }
            }),
            false => Ok(()),
        }
    }

    /// It is about to make its access of this number.
    ///
    /// # Errors
    /// The replay stops: it stands still.
    #[inline]
    pub(in crate::process) fn stop_before_access(
        &self,
        number: u64,
    ) -> Result<(), Control<'static>> {
        match is_asked() {
            true => self.stop_before(|of| Stop::Access { of, number }),
            false => Ok(()),
        }
    }

    #[cold]
    fn stop_before(&self, step: impl FnOnce(ProcessIndex) -> Stop) -> Result<(), Control<'static>> {
        if has_stopped() {
            if !self.is_stopped() {
                return Ok(());
            }
        } else {
            let Some(plan) = plan() else { return Ok(()) };
            let me = self.replay_state().map(|follows| follows.cursor.process);
            let Some(me) = me else { return Ok(()) };
            let step = step(me);
            if !plan.stops_at(|at| at == step) {
                return Ok(());
            }
            STOPPING.stop();
        }
        Err(Control::Yield)
    }

    /// It has made a step, or has got a message: whether the replay stops behind it.
    pub(super) fn stop_behind(&self) {
        self.rest_behind_last();
        if !is_asked() || has_stopped() {
            return;
        }
        let (Some(plan), Some(follows)) = (plan(), self.replay_state()) else {
            return;
        };
        let me = follows.cursor.process;
        let is_there = plan.stops_at(|at| match at {
            Stop::Step(step) => step.process == me && follows.cursor.has_come_to(step.step),
            _ => false,
        });
        drop(follows);
        if is_there {
            STOPPING.stop();
            self.give_up_slice();
        }
    }

    /// A message has come into its queue.
    pub(super) fn stop_behind_delivery(&self, source: &Source) {
        if !is_asked() || has_stopped() {
            return;
        }
        let (Some(plan), Some(mut follows)) = (plan(), self.replay_state()) else {
            return;
        };
        if let Source::Timer(_) | Source::SystemMessage { .. } = source {
            follows.cursor.told += 1;
            let (to, number) = (follows.cursor.process, follows.cursor.told);
            if plan.stops_at(|at| at == Stop::SystemMessage { to, number }) {
                STOPPING.stop();
            }
        }
        drop(follows);
        self.stop_behind();
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::PIDS;
    use super::*;

    fn standing(stopping: &Stopping) -> Vec<bool> {
        PIDS.iter().map(|pid| stopping.stands(*pid)).collect()
    }

    #[test]
    fn all_stand_still_at_the_stop_and_those_of_the_shell_go_on() {
        let stopping = Stopping::new();
        assert!(!stopping.is_asked());
        stopping.state.store(IS_TO_STOP, Ordering::Relaxed);
        assert!(stopping.is_asked() && !stopping.has_stopped());
        assert_eq!(standing(&stopping), [false; 4]);
        stopping.stop();
        assert_eq!(standing(&stopping), [true; 4]);
        stopping.begin_to_look([PIDS[1], PIDS[3]].into_iter().collect());
        assert!(stopping.is_looked_at() && stopping.has_stopped());
        assert_eq!(standing(&stopping), [false, true, false, true]);
    }

    #[test]
    fn a_process_that_cannot_follow_stops_the_others_but_not_the_shell() {
        let stopping = Stopping::new();
        stopping.stand_still();
        assert_eq!(standing(&stopping), [true; 4]);
        // The place to stop at has not come: nobody is to hear that it has.
        assert!(!*stopping.has_stopped.lock());
        stopping.begin_to_look(HashSet::default());
        stopping.stand_still();
        assert!(stopping.is_looked_at());
    }

    #[test]
    fn who_waits_for_the_stop_hears_of_it() {
        let stopping = Stopping::new();
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| stopping.wait());
            stopping.stop();
            waits.join().expect("it has heard");
        });
    }
}
