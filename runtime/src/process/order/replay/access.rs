//! The turns of accesses to what processes share. An access is made when those are made after which it came in the
//! recorded run. The head of `process/order/access.rs` says why this is enough.
//!
//! Which accesses a process made behind the last one that the trace has is not known. If it runs on, it makes no more
//! until all others that the trace has are made, lest it gets ahead of them. In an exploration it waits for all
//! accesses of the prefix, because a prefix may have the order of two accesses of which it has only one.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use beamline_orders::{
    Access, Message, PerProcess, ProcessIndex, Signal, Step as Recorded, SystemMessage, Trace,
};
use parking_lot::Mutex;

use super::{Plan, ReplayState, plan};
use crate::process::order::is_explored;
use crate::process::shared::lookup;
use crate::process::{Control, Process};
use crate::sched::ptab::pin;
use crate::term::Pid;

/// The accesses of all processes.
pub(super) struct All {
    /// How many each recorded process has made.
    made: PerProcess<AtomicU64>,
    /// The least number that it made in the recorded run, as far as the trace says.
    known: PerProcess<u64>,
    /// Whether another process of the trace hears of the end of each process: then its accesses come before that.
    tells_end: PerProcess<bool>,
    /// How many pairs of accesses are still to come in their order; in an exploration also how many accesses are still
    /// to be made.
    left: AtomicU64,
    /// The trace has accesses: a log may leave them out.
    are_told: bool,
    /// No access waits any more: some process could not follow, and the others must not wait for it.
    are_free: AtomicBool,
    /// Processes that sleep until it is their turn.
    waiting: Mutex<Vec<(Waits, Pid)>>,
}

impl All {
    pub(super) fn of(trace: &Trace) -> All {
        let mut known = trace.processes.map(|_| 0);
        let mut tells_end = trace.processes.map(|_| false);
        let mut left = 0;
        for (at, process) in trace.processes.entries() {
            for step in &process.steps {
                match step {
                    Recorded::After { access, other } => {
                        known[at] = known[at].max(*access);
                        known[other.of] = known[other.of].max(other.number);
                        left += 1;
                    }
                    Recorded::Accesses(number) => known[at] = known[at].max(*number),
                    Recorded::Deliver(Message::SystemMessage(SystemMessage {
                        of: Some(of),
                        ..
                    }))
                    | Recorded::Exit(Some(Signal::End(of))) => tells_end[*of] = true,
                    _ => {}
                }
            }
        }
        if is_explored() {
            left += known.iter().sum::<u64>();
        }
        All {
            are_told: known.iter().any(|known| *known > 0),
            are_free: AtomicBool::new(false),
            made: known.map(|_| AtomicU64::new(0)),
            known,
            tells_end,
            left: AtomicU64::new(left),
            waiting: Mutex::default(),
        }
    }

    /// How many accesses a recorded process has made.
    pub(super) fn made(&self, process: ProcessIndex) -> u64 {
        self.made[process].load(Ordering::Acquire)
    }

    fn is_made(&self, access: Access) -> bool {
        self.made(access.of) >= access.number
    }

    /// The cursor for the accesses of a process that follows the one at this place.
    pub(super) fn own(&self, process: ProcessIndex, steps: &[Recorded]) -> AccessCursor {
        let mut own = AccessCursor::new(steps);
        own.left = if is_explored() {
            self.known[process]
        } else {
            0
        };
        own.before_exit = own.before_exit.filter(|_| self.are_told);
        own
    }

    pub(super) fn are_all_told_made(&self) -> bool {
        self.left.load(Ordering::Acquire) == 0
    }

    fn leave(&self, count: usize) {
        if count > 0 {
            self.left.fetch_sub(count as u64, Ordering::AcqRel);
            self.wake();
        }
    }

    /// From now on, accesses are made as they come.
    pub(super) fn let_go(&self) {
        self.are_free.store(true, Ordering::Release);
        self.wake();
    }

    fn are_free(&self) -> bool {
        self.are_free.load(Ordering::Acquire)
    }

    fn is_over(&self, waits: Waits) -> bool {
        if self.are_free() {
            return true;
        }
        match waits {
            Waits::For(access) => self.is_made(access),
            Waits::Ends => false,
            Waits::Free => self.are_all_told_made(),
        }
    }

    /// Wakes those whose turn it is.
    fn wake(&self) {
        let mut waiting = self.waiting.lock();
        if waiting.is_empty() {
            return;
        }
        let guard = pin();
        waiting.retain(|(waits, pid)| {
            let is_over = self.is_over(*waits);
            if is_over && let Some(process) = lookup(*pid, &guard) {
                process.wake();
            }
            !is_over
        });
    }
}

/// The accesses that a process follows.
pub(super) struct AccessCursor {
    /// Pairs of an own access and another one that it comes after, the next one first.
    after: Vec<(u64, Access)>,
    next: usize,
    /// How many accesses the recorded process made before it ended, if it did.
    before_exit: Option<u64>,
    /// How many it has still to make, which others wait for.
    left: u64,
    /// What its access waits for, if it does.
    waits: Option<Waits>,
}

impl AccessCursor {
    fn new(steps: &[Recorded]) -> AccessCursor {
        let mut after = Vec::new();
        let (mut told, mut before_exit) = (0, None);
        for step in steps {
            match step {
                Recorded::After { access, other } => {
                    told = *access;
                    after.push((*access, *other));
                }
                Recorded::Accesses(number) => told = *number,
                Recorded::Exit(_) => before_exit = Some(told),
                _ => {}
            }
        }
        AccessCursor {
            after,
            next: 0,
            before_exit,
            left: 0,
            waits: None,
        }
    }

    /// Whether it waits with an access that the recorded process did not make before its end.
    pub(super) fn await_end(&self) -> bool {
        self.waits == Some(Waits::Ends)
    }

    /// What the access of this number comes after.
    fn of(&self, number: u64) -> &[(u64, Access)] {
        let left = &self.after[self.next..];
        let end = left.partition_point(|(access, _)| *access <= number);
        &left[..end]
    }

    /// Whether it has made all accesses that the recorded process made before its end.
    pub(super) fn are_all_before_exit(&self, made: u64, all: &All) -> bool {
        all.are_free() || self.before_exit.is_none_or(|last| made >= last)
    }

    /// Whether the recorded process at this place made more accesses than have been made.
    pub(super) fn has_any_left(&self, all: &All, process: ProcessIndex) -> bool {
        all.made(process) < all.known[process]
    }

    /// From now on, it follows no accesses, and nobody waits for its own.
    pub(super) fn finish(&mut self, all: &All) {
        let left = std::mem::take(&mut self.left) as usize;
        all.leave(self.after.len() - self.next + left);
        self.next = self.after.len();
        self.before_exit = None;
    }
}

impl Drop for ReplayState {
    /// Others wait no longer for the accesses and steps that it has not made.
    fn drop(&mut self) {
        if let Some(plan) = plan() {
            self.accesses.finish(&plan.accesses);
            self.end_work(&plan.end);
        }
    }
}

/// What an access waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waits {
    /// That another access is made.
    For(Access),
    /// That a signal ends the process.
    Ends,
    /// That all recorded accesses are made.
    Free,
}

impl Process {
    /// Whether its access of this number has to wait: it is to be tried again when the process is woken.
    pub(in crate::process) fn access_is_later(&self, number: u64) -> Option<Control<'static>> {
        let plan = plan()?;
        let all = &plan.accesses;
        loop {
            let waits = self.access_waits(plan, number);
            if let Some(mut follows) = self.replay_state() {
                follows.accesses.waits = waits;
            }
            let waits = waits?;
            // Under the lock that `wake` takes: an access that is made from here on finds this process in the list.
            let mut waiting = all.waiting.lock();
            waiting.retain(|(_, pid)| *pid != self.pid());
            // What it waits for may have been made just now.
            if !all.is_over(waits) {
                waiting.push((waits, self.pid()));
                drop(waiting);
                if waits == Waits::Ends {
                    self.wake_for_last();
                }
                return Some(Control::Wait);
            }
        }
    }

    fn access_waits(&self, plan: &'static Plan, number: u64) -> Option<Waits> {
        let all = &plan.accesses;
        if all.are_free() {
            return None;
        }
        let Some(follows) = self.replay_state() else {
            return (!all.are_all_told_made()).then_some(Waits::Free);
        };
        let own = &follows.accesses;
        let is_left = |(_, other): &&(u64, Access)| !all.is_made(*other);
        if let Some((_, other)) = own.of(number).iter().find(is_left) {
            return Some(Waits::For(*other));
        }
        let me = follows.cursor.process;
        let next = follows.cursor.next(follows.steps(plan));
        match (next, own.before_exit) {
            (Some(Recorded::Exit(_)), Some(last)) if number > last => Some(Waits::Ends),
            (None, before_exit) if number > all.known[me] && !all.are_all_told_made() => {
                // The trace of a run goes on behind the end of a process; a prefix may stop with that end.
                let is_in_prefix = before_exit.is_some() && (!is_explored() || all.tells_end[me]);
                (!is_in_prefix).then_some(Waits::Free)
            }
            _ => None,
        }
    }

    /// It has made its access of this number.
    pub(in crate::process) fn follow_access(&self, number: u64) {
        let Some(plan) = plan() else { return };
        plan.count_progress();
        let Some(mut follows) = self.replay_state() else {
            return;
        };
        let own = &mut follows.accesses;
        let mut made = own.of(number).len();
        own.next += made;
        if own.left > 0 {
            own.left -= 1;
            made += 1;
        }
        let me = follows.cursor.process;
        // The count before the wake-ups: a process that is woken looks at it, and sleeps again if it is too small.
        plan.accesses.made[me].store(number, Ordering::Release);
        plan.accesses.leave(made);
        plan.accesses.wake();
        drop(follows);
        self.rest_behind_last();
    }

    /// What its access waits for, in words, with the recorded process that it waits for, if it is one.
    pub(super) fn tell_access_waited_for(&self) -> Option<(Option<ProcessIndex>, String)> {
        let plan = plan()?;
        let follows = self.replay_state()?;
        follows.accesses.waits?;
        let me = follows.cursor.process;
        drop(follows);
        let number = plan.accesses.made(me) + 1;
        let (of, trace) = (me, &plan.trace);
        let own = trace.access(Access { of, number });
        let (on, why) = match self.access_waits(plan, number)? {
            Waits::For(other) => {
                let other_is = plan.name(other.of);
                let made = format!("until {other_is} has made {}", trace.access(other));
                (Some(other.of), made)
            }
            Waits::Ends => (None, "as it was to end".to_owned()),
            Waits::Free => (None, "for the recorded accesses of others".to_owned()),
        };
        Some((on, format!("{} waits with {own} {why}", plan.name(me))))
    }
}
