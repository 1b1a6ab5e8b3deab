//! Watches whether a replay goes on: a process that waits for what never comes says so.

use std::sync::atomic::Ordering;
use std::time::Duration;

use beamline_orders::{Message, ProcessIndex, Set, Setting};

use super::cursor::ReceiveVerdict;
use super::{Plan, Recorded, plan, stop};
use crate::hash::HashSet;
use crate::process::{Process, Signal, deliver};
use crate::sched::machine;
use crate::sys::chance::outside;

/// How often it looks.
const PAUSE: Duration = Duration::from_millis(500);
/// Most processes named.
const NAMED: usize = 4;
/// A replay is stuck when nothing has happened in this many looks.
const PATIENCE: u32 = 10;

/// Starts the watch.
pub(super) fn start() {
    let started = std::thread::Builder::new()
        .name("replay_watch".into())
        .spawn(watch);
    // Without it a replay that is stuck says nothing: the user ends it.
    drop(started);
}

fn watch() {
    let Some(plan) = plan() else { return };
    let (mut seen, mut quiet) = ((0, 0), 0);
    loop {
        std::thread::sleep(PAUSE);
        if stop::has_stopped() {
            return;
        }
        let now = done(plan);
        quiet = match now == seen && !outside::has_programs() {
            true => quiet + 1,
            false => 0,
        };
        seen = now;
        if quiet == PATIENCE {
            plan.ask_who_waits();
            std::thread::sleep(PAUSE);
            plan.tell_who_waits();
        }
    }
}

/// How much has been done: steps and deliveries, and reductions.
pub(super) fn done(plan: &Plan) -> (u64, u64) {
    let counters = machine().counters.iter();
    let reductions = counters.map(|counters| counters.reductions.load(Ordering::Relaxed));
    (plan.progress.load(Ordering::Relaxed), reductions.sum())
}

/// A process that waits for its turn.
pub(crate) struct Waiting {
    /// Others have come, out of turn, or it waits with an access: these say most of what is wrong.
    pub(crate) says_most: bool,
    /// The recorded process that it is.
    process: ProcessIndex,
    /// The one that it waits for, if for one.
    on: Option<ProcessIndex>,
    /// It has all for its last receive of what it follows, and does not make it.
    pub(crate) refuses: bool,
    pub(crate) line: String,
}

impl Plan {
    /// Has the processes that wait for their turn say so.
    fn ask_who_waits(&'static self) {
        let all: Vec<_> = self.indexes.read().keys().copied().collect();
        for pid in all {
            let ask = move |p: Option<&mut Process>| {
                if let Some(p) = p {
                    p.tell_what_it_waits_for(self);
                }
            };
            deliver(pid, Signal::question(pid, ask));
        }
    }

    /// Names some of them: first those that wait for none of the others, as these wait for them in the end.
    fn tell_who_waits(&self) {
        let mut waiting = std::mem::take(&mut *self.waiting.lock());
        let all: HashSet<ProcessIndex> = waiting.iter().map(|one| one.process).collect();
        waiting.sort_by_cached_key(|one| {
            let waits_for_others = one.on.is_some_and(|on| all.contains(&on));
            (waits_for_others, !one.says_most, one.line.clone())
        });
        let others = waiting.len().saturating_sub(NAMED);
        let mut lines: Vec<_> = waiting
            .into_iter()
            .take(NAMED)
            .map(|one| one.line)
            .collect();
        if lines.is_empty() {
            return;
        }
        if others > 0 {
            lines.push(format!("{others} others wait, too"));
        }
        self.cannot_follow(&lines);
    }
}

/// The recorded process that a message is of, or tells of.
fn sender_of(message: &Message) -> Option<ProcessIndex> {
    match message {
        Message::Sent { from, .. } => Some(*from),
        Message::SystemMessage(told) => match told.set.map(Set::what) {
            Some(Setting::Timer { by, .. }) => Some(by),
            _ => told.of,
        },
    }
}

impl Process {
    fn tell_what_it_waits_for(&mut self, plan: &Plan) {
        let with_access = self.access_waited_for();
        let goes_on_with_access = plan.goes_on && with_access.is_some();
        let waits = with_access
            .or_else(|| self.end_waited_for(plan))
            .or_else(|| {
                let waits = matches!(self.turn(), ReceiveVerdict::Due | ReceiveVerdict::Wait);
                waits.then(|| self.step_waited_for(plan)).flatten()
            });
        let Some(mut waits) = waits else {
            return;
        };
        waits.line = format!("{}; {}", waits.line, self.place());
        plan.waiting.lock().push(waits);
        if let Some(mut follows) = self.replay_state().filter(|_| plan.goes_on) {
            match goes_on_with_access {
                true => follows.accesses.finish(&plan.accesses),
                false => follows.cursor.finish(),
            }
        }
    }

    fn access_waited_for(&self) -> Option<Waiting> {
        let (on, line) = self.tell_access_waited_for()?;
        Some(Waiting {
            says_most: true,
            process: self.replay_state()?.cursor.process,
            on,
            refuses: false,
            line,
        })
    }

    fn end_waited_for(&self, plan: &Plan) -> Option<Waiting> {
        let follows = self
            .replay_state()
            .filter(|_| self.flags.get().terminating)?;
        let process = follows.cursor.process;
        let name = plan.name(process);
        Some(Waiting {
            says_most: true,
            process,
            on: None,
            refuses: false,
            line: format!("{name} has come to its end, and waits to be given a table or a name"),
        })
    }

    fn step_waited_for(&self, plan: &Plan) -> Option<Waiting> {
        let follows = self.replay_state()?;
        let me = follows.cursor.process;
        let steps = &plan.trace.processes[me].steps;
        let (on, expected) = match follows.cursor.due(steps) {
            Some(message) => {
                let due = plan.trace.step(me, &Recorded::Deliver(*message));
                (sender_of(message), format!("waits to {due}"))
            }
            None => {
                let step = follows.cursor.next(steps)?;
                let step = plan.trace.step(me, step);
                (None, format!("waits, and was to {step}"))
            }
        };
        let held = match follows.held.len() {
            0 => String::new(),
            held => format!("; {held} other messages have come"),
        };
        Some(Waiting {
            says_most: !follows.held.is_empty(),
            process: me,
            on,
            refuses: follows.cursor.refuses(steps),
            line: format!("{} {expected}{held}", plan.name(me)),
        })
    }

    /// What it still has to do of what it follows, if anything.
    pub(crate) fn unfinished(&self) -> Option<Waiting> {
        let plan = plan()?;
        if self.replay_state()?.cursor.is_over() {
            return None;
        }
        let with_access = self.access_waited_for();
        with_access.or_else(|| self.step_waited_for(plan))
    }
}
