//! Races of monitors and links with the ends that they tell of.
//!
//! A process that was gone when it was monitored or linked to could have been there still, unless something had told of its
//! end. One that was there could have been gone already, unless its end depends on what came behind the monitor.

use std::collections::BTreeMap;

use beamline_formats::ring::SignalKind;
use rustc_hash::FxHashMap;

use super::super::signals::{Arrived, OwnSteps, SentSignals};
use super::super::{Message, Process, ProcessIndex, Sites, Step, StepIndex, SystemMessage, Trace};
use super::{Causes, Clock, Known, Messages, Pair, Races, join, timeouts_until};

impl Races {
    /// Adds the ends that monitors and links of a process report: each could have been reported as that of a process
    /// that was still there, or of one that was gone.
    pub(super) fn add_gone(&mut self, process: ProcessIndex, causes: &Causes, sites: &Sites) {
        let it = &self.trace.processes[process];
        let watcher = Watcher {
            process,
            watches: watches(it, process, &causes.arrived, &sites.signals),
            causes,
            trace: &self.trace,
        };
        let timeouts = timeouts_until(&it.steps);
        let mut clock = causes
            .of_beginning(process)
            .map(Known::clock)
            .unwrap_or_default();
        let mut found = Vec::new();
        for (step, made) in it.numbered() {
            let Step::Receive(message) = made else {
                continue;
            };
            if let Message::SystemMessage(told) = *message
                && watcher.could_be_otherwise(told, &clock)
            {
                let other = SystemMessage {
                    gone: !told.gone,
                    ..told
                };
                let both = Messages {
                    taken: Some(*message),
                    timeout: timeouts[step.index()],
                    other: Message::SystemMessage(other),
                    is_same_receive: None,
                    has_clause: None,
                };
                found.push((step, both));
            }
            if let Some(known) = causes.of_cause(process, *message) {
                join(&mut clock, known);
            }
        }
        for (step, both) in found {
            self.add(process, step, Pair::Messages(both), sites);
        }
    }
}

/// A process that hears of ends.
struct Watcher<'r> {
    process: ProcessIndex,
    /// Where it has asked for them, by the numbers of messages: an end that knows of none of its steps from there on does
    /// not depend on what came behind.
    watches: FxHashMap<u32, StepIndex>,
    causes: &'r Causes,
    trace: &'r Trace,
}

impl Watcher<'_> {
    /// Whether the process whose end a message reports could have been gone, or there, when the process with this
    /// `clock` asked for it.
    fn could_be_otherwise(&self, told: SystemMessage, clock: &Clock) -> bool {
        let Some(of) = told.of else { return false };
        match told.gone {
            true => self.trace.processes[of]
                .position(Step::is_exit)
                .is_some_and(|end| clock.get(&of).is_none_or(|known| *known <= end)),
            false => {
                let end = self.causes.of_end(of);
                let watch = self.watches.get(&told.number);
                watch
                    .zip(end)
                    .is_some_and(|(behind, end)| end.of(self.process) < *behind)
            }
        }
    }
}

/// Where a process has made the monitors and links of which its messages tell, by the numbers of these.
/// Monitors of one process tell in their order; of those that were given up, the latest ones are taken for it.
fn watches(
    it: &Process,
    process: ProcessIndex,
    arrived: &Arrived,
    sent: &SentSignals,
) -> FxHashMap<u32, StepIndex> {
    let own = OwnSteps::of_process(it);
    let mut asked: BTreeMap<(ProcessIndex, bool), Vec<StepIndex>> = BTreeMap::new();
    let signals = sent.of(process);
    for (at, signal) in signals.iter().enumerate() {
        let line = (signal.to, signal.kind.is_of_link());
        let of = asked.entry(line).or_default();
        match signal.kind {
            SignalKind::Monitor | SignalKind::Link => {
                // A process that has heard of an exit signal next knows of no more steps.
                let mut next = signals[at..]
                    .iter()
                    .take_while(|next| next.steps == signal.steps);
                let exits = next.any(|next| next.kind.is_exit());
                let place = own.first_behind(signal.steps);
                of.push(if exits { place } else { place.next() });
            }
            SignalKind::Demonitor | SignalKind::Unlink => drop(of.pop()),
            SignalKind::Exit | SignalKind::Kill | SignalKind::Normal => {}
        }
    }
    asked.values_mut().for_each(|all| all.reverse());
    let mut watches = FxHashMap::default();
    for step in &it.steps {
        let Step::Deliver(Message::SystemMessage(told)) = step else {
            continue;
        };
        let is_of_call = told.exit && !is_of_end(arrived, sent, process, *told);
        if let Some(of) = told.of.filter(|_| !is_of_call)
            && let Some(behind) = asked.get_mut(&(of, told.exit)).and_then(Vec::pop)
        {
            watches.insert(told.number, behind);
        }
    }
    watches
}

/// Whether a message is of the end of a process, not of a call of `exit/2`.
fn is_of_end(arrived: &Arrived, sent: &SentSignals, to: ProcessIndex, told: SystemMessage) -> bool {
    let signal = arrived.messages.get(&told.at(to));
    signal
        .and_then(|signal| sent.get(*signal))
        .is_none_or(|signal| signal.is_of_end)
}
