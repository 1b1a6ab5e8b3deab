//! Races of exit signals that end processes.
//!
//! An exit signal could have come before a step of its receiver if its sender did not know of that step when it sent it. So
//! the signal that has ended a process could have ended it before a step that shows to others, another one could have come
//! before its end, and one that has become a message could have come before it trapped exits.

use beamline_formats::ring::SignalKind;
use rustc_hash::FxHashMap;

use super::super::signals::{OwnSteps, SentSignal};
use super::super::{
    Access, At, Message, Process, ProcessIndex, SignalAt, Site, Sites, Step, StepIndex, Trace,
};
use super::{Causes, Pair, Races};

/// An exit signal, and what it could have ended a process before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EarlierEnd {
    /// The signal.
    pub signal: SignalAt,
    /// What came first.
    pub before: Act,
}

/// What a process did before an exit signal came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Its sending of this number. The signal has ended it later.
    Send(u32),
    /// It made the process at this place. The signal has ended it later.
    Spawn(ProcessIndex),
    /// Its access of this number. The signal has ended it later.
    Access(u64),
    /// It ended. The signal has come too late.
    Exit,
    /// It began to trap exits. The signal has become this message.
    Trap(Message),
}

impl Races {
    /// Those of the exit signals to a process.
    pub(super) fn add_ends(&mut self, process: ProcessIndex, causes: &Causes, sites: &Sites) {
        let mut found = Vec::new();
        let receiver = Receiver {
            process,
            own: OwnSteps::of_process(&self.trace.processes[process]),
            it: &self.trace.processes[process],
            causes,
            sites,
        };
        receiver.add_earlier(&mut found);
        receiver.add_late(&mut found);
        receiver.add_before_trap(&mut found);
        for (step, signal, before) in found {
            let pair = Pair::End(EarlierEnd { signal, before });
            self.add(process, step, pair, sites);
        }
    }
}

/// A process to which exit signals come.
struct Receiver<'r> {
    process: ProcessIndex,
    own: OwnSteps,
    it: &'r Process,
    causes: &'r Causes,
    sites: &'r Sites,
}

/// A place among the steps, the signal that could have ended the process there, and what it did instead.
type Found = (StepIndex, SignalAt, Act);

impl Receiver<'_> {
    /// The end of the process's steps that were known where a signal was sent.
    fn known(&self, signal: SignalAt) -> Option<StepIndex> {
        Some(self.causes.of_sent(signal)?.of(self.process))
    }

    /// Adds the steps that a signal could have come before which has ended the process: steps that others see, and of
    /// those at one place in the code the last one.
    fn add_earlier(&self, found: &mut Vec<Found>) {
        let ends = &self.causes.arrived.ends;
        let Some(signal) = ends.get(&self.process).copied() else {
            return;
        };
        let Some(known) = self.known(signal) else {
            return;
        };
        let mut last: FxHashMap<Option<&Site>, (StepIndex, Act)> = FxHashMap::default();
        let steps = self.it.numbered_from(known);
        for (step, made) in steps.take_while(|(_, made)| !made.is_exit()) {
            let before = match *made {
                Step::Send(number) => Act::Send(number),
                Step::Spawn(child) => Act::Spawn(child),
                Step::Accesses(number) => Act::Access(number),
                _ => continue,
            };
            last.insert(self.sites.of_act(self.process, before), (step, before));
        }
        let mut last: Vec<(StepIndex, Act)> = last.into_values().collect();
        last.sort_unstable_by_key(|(step, _)| *step);
        found.extend(
            last.into_iter()
                .map(|(step, before)| (step, signal, before)),
        );
    }

    /// Adds the end of the process, which signals that came too late could have come before.
    fn add_late(&self, found: &mut Vec<Found>) {
        let Some(end) = self.it.position(Step::is_exit) else {
            return;
        };
        let left = self.causes.arrived.left.get(&self.process);
        for signal in left.into_iter().flatten() {
            let Some(sent) = self.sites.signals.get(*signal) else {
                continue;
            };
            if self.may_end(*signal, sent) && self.known(*signal).is_some_and(|known| known <= end)
            {
                found.push((end, *signal, Act::Exit));
            }
        }
    }

    /// Whether a signal ends the process, as it traps exits or not at its end.
    fn may_end(&self, signal: SignalAt, sent: &SentSignal) -> bool {
        let signals = &self.sites.signals;
        let traps = signals
            .traps(self.process)
            .last()
            .is_some_and(|(_, traps)| *traps);
        let is_to_sender = |one: &&SentSignal| {
            one.to == signal.of && matches!(one.kind, SignalKind::Link | SignalKind::Unlink)
        };
        let last = signals.of(self.process).iter().rev().find(is_to_sender);
        let has_unlinked = last.is_some_and(|last| last.kind == SignalKind::Unlink);
        match sent.kind {
            SignalKind::Kill => true,
            SignalKind::Exit => !traps && !has_unlinked,
            _ => false,
        }
    }

    /// Adds where the process began to trap exits, which a signal that has become a message could have come before.
    fn add_before_trap(&self, found: &mut Vec<Found>) {
        let Some((steps, true)) = self.sites.signals.traps(self.process).first() else {
            return;
        };
        let place = self.own.first_behind(*steps);
        for step in &self.it.steps {
            let Step::Deliver(message @ Message::SystemMessage(told)) = step else {
                continue;
            };
            let arrived = &self.causes.arrived;
            let signal = arrived.messages.get(&told.at(self.process));
            if let Some(signal) = signal
                && self
                    .sites
                    .signals
                    .get(*signal)
                    .is_some_and(|sent| sent.kind == SignalKind::Exit)
                && self.known(*signal).is_some_and(|known| known <= place)
            {
                found.push((place, *signal, Act::Trap(*message)));
            }
        }
    }
}

impl Sites {
    /// Where a process did this, if its place in the code is known.
    pub fn of_act(&self, process: ProcessIndex, act: Act) -> Option<&Site> {
        match act {
            Act::Send(number) => self.get(At::Send(process, number)),
            Act::Access(number) => self.accesses.site(Access {
                of: process,
                number,
            }),
            Act::Spawn(_) | Act::Exit | Act::Trap(_) => None,
        }
    }
}

impl Trace {
    /// What a process did, in a few words: `sent l0.4:2`.
    #[must_use]
    pub fn act(&self, process: ProcessIndex, act: Act) -> String {
        match act {
            Act::Send(number) => {
                let from = process;
                let message = Message::Sent { from, number };
                format!("sent {}", self.message(process, &message))
            }
            Act::Spawn(child) => format!("spawned {}", self.name(child)),
            Act::Access(number) => {
                let of = process;
                format!("made its access {}", self.access(Access { of, number }))
            }
            Act::Exit => "ended".into(),
            Act::Trap(_) => "began to trap exits".into(),
        }
    }
}

#[cfg(test)]
mod tests;
