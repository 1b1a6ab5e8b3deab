//! What processes have spent by their ends. Where the order of a run is recorded or followed, reductions do not depend on
//! when messages come. So they say where in its code a process was when a signal ended it, and a replay that makes another
//! number has not done the same.

use beamline_formats::name::thousands;
use beamline_formats::order::{Spent, Step as Recorded};

use super::super::order;
use super::super::signal::ExitSignal as Exit;
use super::super::{Process, Signal};
use super::{Follows, Plan, plan};
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
    /// It sleeps in a receive, and nothing has come for it.
    sleeps: bool,
}

impl Now {
    pub(super) fn of(p: &Process) -> Now {
        Now {
            reductions: p.reductions(),
            sleeps: !p.is_ready(),
        }
    }

    /// Whether a signal may end the process here. One that sleeps does not come any further.
    pub(super) fn may_be_last(&self, spent: Option<Spent>) -> bool {
        spent.is_none_or(|spent| {
            spent.by_signal && (self.sleeps || self.reductions >= spent.reductions)
        })
    }
}

impl Follows {
    /// Is it the signal that ended the recorded process, if one is told?
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

/// A process that has spent another number than in the recorded run.
pub(super) struct Otherwise {
    process: usize,
    made: Spent,
    recorded: Spent,
}

impl Process {
    /// Whether it has come to where a signal ended it in the recorded run: it goes no further.
    #[inline]
    pub(crate) fn awaits_end(&self) -> bool {
        order::is_followed() && self.has_come_to_end()
    }

    fn has_come_to_end(&self) -> bool {
        let (Some(plan), Some(follows)) = (plan(), self.follows()) else {
            return false;
        };
        let is_there = |spent: Spent| spent.by_signal && self.reductions() >= spent.reductions;
        let ends_here = follows.ended_by.is_some() || follows.spent.is_some_and(is_there);
        ends_here && follows.has_made_all(plan)
    }

    /// Whether it is to be ended by this signal.
    pub(in super::super) fn is_to_be_ended_by(&self, exit: &Exit) -> bool {
        let (Some(plan), Some(follows)) = (plan(), self.follows()) else {
            return false;
        };
        follows.is_end(plan, exit)
    }

    /// The signal that is to end it, if it has come.
    pub(in super::super) fn take_end(&self) -> Option<Box<Exit>> {
        let (plan, mut follows) = (plan()?, self.follows()?);
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

    /// It is about to end.
    pub(super) fn compare_spent(&self, plan: &'static Plan) {
        let Some(follows) = self.follows() else {
            return;
        };
        let Some(recorded) = follows.spent.filter(|_| follows.has_made_all(plan)) else {
            return;
        };
        let made = Spent {
            reductions: self.reductions(),
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
