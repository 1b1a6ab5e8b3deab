//! What processes have spent by their ends. Where the order of a run is recorded or followed, reductions do not depend
//! on when messages come. So they say where in its code a process was when a signal ended it; and a replay with other
//! numbers has not done what the recorded run did.

use std::sync::atomic::{AtomicBool, Ordering};

use beamline_formats::name::thousands;
use beamline_orders::{ProcessIndex, Signal as ExitSignal, Spent, Step as Recorded};

use super::{Plan, ReplayState, plan};
use crate::process::signal::ExitSignal as Exit;
use crate::process::{Process, Signal, order};
use crate::sys::stderr::complain;

/// What a process with these steps spent by its end, if they tell.
pub(super) fn of(steps: &[Recorded]) -> Option<Spent> {
    steps.iter().rev().find_map(|step| match step {
        Recorded::Spent(spent) => Some(*spent),
        _ => None,
    })
}

/// How far a process has come.
pub(super) struct Now {
    reductions: u64,
    /// It sleeps in a receive, and nothing has come for it; or it waits with an access that it is not to make.
    sleeps: bool,
}

impl Now {
    pub(super) fn of(p: &Process) -> Now {
        Now {
            reductions: p.reductions(),
            sleeps: !p.is_ready() || p.replay_state().is_some_and(|it| it.accesses.await_end()),
        }
    }

    /// Whether a signal may end the process here. A process that sleeps gets no further, whatever it has spent.
    pub(super) fn may_be_last(&self, spent: Option<Spent>) -> bool {
        spent.is_none_or(|spent| {
            spent.by_signal && (self.sleeps || self.reductions >= spent.reductions)
        })
    }
}

impl ReplayState {
    /// Is it the signal that ended the recorded process, if that is known?
    fn is_end(&self, plan: &'static Plan, exit: &Exit) -> bool {
        self.ended_by.is_some_and(|by| plan.is_signal(by, exit))
    }

    /// It has made all its steps but its end.
    pub(super) fn has_made_all(&self, plan: &'static Plan) -> bool {
        matches!(self.cursor.next(self.steps(plan)), Some(Recorded::Exit(_)))
            && self
                .accesses
                .are_all_before_exit(plan.accesses.made(self.cursor.process), &plan.accesses)
    }
}

/// What is known of the signal that ended the recorded process.
#[derive(Clone, Copy)]
struct Last {
    by: Option<ExitSignal>,
    /// The process that it was of.
    of: Option<ProcessIndex>,
    /// That process was gone.
    was_gone: bool,
}

impl Last {
    /// Whether this may be it, for a process that traps exits or not.
    fn is(self, plan: &'static Plan, traps: bool, signal: &Signal) -> bool {
        let Signal::Exit(exit) = signal else {
            return false;
        };
        exit.would_end(traps, plan.reason_of(exit, self.was_gone).term())
            && self.by.is_none_or(|by| plan.is_signal(by, exit))
            && self.of.is_none_or(|of| plan.index_of(exit) == Some(of))
    }
}

impl ReplayState {
    /// Which signal is to end it now, if one is.
    fn last(&self, plan: &'static Plan, now: &Now) -> Option<Last> {
        let is_last = self.has_made_all(plan) && now.may_be_last(self.spent);
        is_last.then(|| Last {
            by: self.ended_by,
            of: self.spent.and_then(|spent| spent.of),
            was_gone: self.spent.is_some_and(|spent| spent.gone),
        })
    }

    /// The signal that is to end it now, if it has come.
    pub(super) fn take_last(
        &mut self,
        plan: &'static Plan,
        traps: bool,
        now: &Now,
    ) -> Option<Box<Exit>> {
        let last = self.last(plan, now)?;
        let (_, signal) = self
            .held
            .take_other(|_, signal| last.is(plan, traps, signal))?;
        let Signal::Exit(mut exit) = signal else {
            return None;
        };
        exit.reason = plan.reason_of(&exit, last.was_gone);
        Some(exit)
    }
}

/// Calls are traced, which changes what they cost, as in OTP: the numbers of processes differ for this reason alone.
static CALLS_COST_OTHERWISE: AtomicBool = AtomicBool::new(false);

/// Calls are traced from now on, and not only counted.
pub(crate) fn note_calls_cost_otherwise() {
    CALLS_COST_OTHERWISE.store(true, Ordering::Relaxed);
}

/// A process that has spent another number than in the recorded run.
pub(super) struct Otherwise {
    process: ProcessIndex,
    made: Spent,
    recorded: Spent,
}

impl Process {
    /// Whether it has come to the place where a signal ended it in the recorded run: it goes no further.
    #[inline]
    pub(crate) fn awaits_end(&self) -> bool {
        order::is_followed() && self.has_come_to_end()
    }

    fn has_come_to_end(&self) -> bool {
        let (Some(plan), Some(follows)) = (plan(), self.replay_state()) else {
            return false;
        };
        let is_there = |spent: Spent| spent.by_signal && self.reductions() >= spent.reductions;
        let ends_here = follows.ended_by.is_some() || follows.spent.is_some_and(is_there);
        ends_here && follows.has_made_all(plan)
    }

    /// It waits for its end: wakes it, if the signal that is to end it has come already.
    pub(super) fn wake_for_last(&self) {
        let (traps, now) = (self.flags.get().trap_exit, Now::of(self));
        let (Some(plan), Some(follows)) = (plan(), self.replay_state()) else {
            return;
        };
        let last = follows.last(plan, &now);
        if last.is_some_and(|last| follows.held.any(|signal| last.is(plan, traps, signal))) {
            self.shared.wake();
        }
    }

    /// Whether it is to be ended by this signal.
    pub(in crate::process) fn is_to_be_ended_by(&self, exit: &Exit) -> bool {
        let (Some(plan), Some(follows)) = (plan(), self.replay_state()) else {
            return false;
        };
        follows.is_end(plan, exit)
    }

    /// The signal that is to end it, if it has come.
    pub(in crate::process) fn take_end(&self) -> Option<Box<Exit>> {
        let (plan, mut follows) = (plan()?, self.replay_state()?);
        let by = follows.ended_by?;
        let (_, signal) = follows.held.take_other(|_, signal| match signal {
            Signal::Exit(exit) => plan.is_signal(by, exit),
            _ => false,
        })?;
        match signal {
            Signal::Exit(exit) => Some(exit),
            _ => None,
        }
    }

    /// It is about to end: notes whether it has spent another number than the recorded process.
    pub(super) fn compare_spent(&self, plan: &'static Plan) {
        let Some(follows) = self.replay_state() else {
            return;
        };
        let Some(recorded) = follows.spent.filter(|_| follows.has_made_all(plan)) else {
            return;
        };
        // Without deliveries, messages come as late as can be, and a receive passes fewer of them over.
        let may_be_fewer = !plan.has_deliveries && self.reductions() < recorded.reductions;
        let reductions = match CALLS_COST_OTHERWISE.load(Ordering::Relaxed) || may_be_fewer {
            true => recorded.reductions,
            false => self.reductions(),
        };
        let made = Spent {
            reductions,
            words: self.allocated_words(),
            ..recorded
        };
        if made != recorded {
            let process = follows.cursor.process;
            plan.spent_otherwise.lock().push(Otherwise {
                process,
                made,
                recorded,
            });
        }
    }
}

/// Tells at the end of a replay whether processes have spent another number than in the recorded run.
pub(crate) fn tell_spent() {
    let Some(plan) = plan() else { return };
    let mut all = std::mem::take(&mut *plan.spent_otherwise.lock());
    all.sort_by_key(|one| (one.made.reductions == one.recorded.reductions, one.process));
    let Some(first) = all.first() else { return };
    let name = plan.name(first.process);
    let (
        Spent {
            reductions, words, ..
        },
        recorded,
    ) = (first.made, first.recorded);
    let (what, made, unit, recorded) = match reductions == recorded.reductions {
        true => ("allocated", words, "words", recorded.words),
        false => ("made", reductions, "reductions", recorded.reductions),
    };
    let (made, recorded) = (thousands(made), thousands(recorded));
    let more = match all.len() {
        1 => String::new(),
        count => format!("; {} other processes differ, too", count - 1),
    };
    complain!("beamline: {name} {what} {made} {unit}, and {recorded} in the recorded run{more}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_ends_a_process_where_it_has_spent_as_much_or_sleeps() {
        let spent = |by_signal, reductions| {
            Some(Spent {
                reductions,
                words: 0,
                by_signal,
                of: None,
                gone: false,
            })
        };
        for (made, sleeps, spent, may) in [
            (9, false, spent(true, 10), false),
            (10, false, spent(true, 10), true),
            (11, false, spent(true, 10), true),
            // It gets no further.
            (9, true, spent(true, 10), true),
            // It ended by itself.
            (10, true, spent(false, 10), false),
            // The recording does not say.
            (0, false, None, true),
        ] {
            let now = Now {
                reductions: made,
                sleeps,
            };
            assert_eq!(now.may_be_last(spent), may, "{made} {sleeps} {spent:?}");
        }
    }
}
