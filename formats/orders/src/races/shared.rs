//! Races of accesses to what processes share: tables, names, persistent terms, arrays of atomics and counters.
//!
//! Two accesses of two processes to the same part of an object, one of them a change, race if nothing else led from the
//! first to the second: no message, spawn or end, and no third access that sees the first one and is seen by the second.
//! Source: the reversible races of dynamic partial order reduction (Flanagan and Godefroid).

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::super::accesses::To;
use super::super::{Access, Accesses, Common, ProcessIndex, Step, StepAt, StepIndex, Trace};
use super::causes::{Clock, Known, join};
use super::{Accessed, Causes, Pair, RACES_MAX, Race};

/// The trace, with a step [`Step::Accesses`] for each access that was recorded, in its place.
pub(in super::super) fn with_accesses(mut trace: Trace, accesses: &Accesses) -> Trace {
    if accesses.is_empty() {
        return trace;
    }
    for (at, process) in trace.processes.entries_mut() {
        let mut made = accesses.of(at).iter().peekable();
        let mut own = 0;
        let mut steps = Vec::with_capacity(process.steps.len() + made.len());
        for step in std::mem::take(&mut process.steps) {
            if let Step::Accesses(_) = step {
                continue;
            }
            while let Some(next) = made.next_if(|next| match step {
                Step::After { access, .. } => next.number < access,
                _ => step.is_own() && next.steps <= own,
            }) {
                steps.push(Step::Accesses(next.number));
            }
            own += usize::from(step.is_own());
            steps.push(step);
        }
        let left = made.take_while(|made| made.steps <= own);
        steps.extend(left.map(|made| Step::Accesses(made.number)));
        process.steps = steps;
    }
    trace
}

/// Races of accesses, where it is not known what they are to: pairs of which the trace says that one comes after the
/// other, and of which nothing else says so.
pub(super) fn told(trace: &Trace, causes: &Causes) -> Vec<Race> {
    let mut races = Vec::new();
    for (of, process) in trace.processes.entries() {
        let mut clock = causes
            .of_beginning(of)
            .map(Known::clock)
            .unwrap_or_default();
        for (second_step, step) in process.numbered() {
            match step {
                Step::Receive(message) => {
                    if let Some(known) = causes.of_cause(of, *message) {
                        join(&mut clock, known);
                    }
                }
                Step::After { access, other } if !trace.is_known(&clock, *other) => {
                    let number = *access;
                    races.push(Race {
                        process: other.of,
                        step: StepIndex::FIRST,
                        pair: Pair::Accesses(Accessed {
                            first: *other,
                            second: Access { of, number },
                            second_step,
                            common: None,
                        }),
                        is_of_application: false,
                    });
                }
                _ => {}
            }
        }
    }
    races
}

impl Trace {
    /// Whether an access had been made for sure at the last steps that this clock knows of.
    fn is_known(&self, clock: &Clock, access: Access) -> bool {
        let process = &self.processes[access.of];
        let known = clock.get(&access.of).copied().unwrap_or_default();
        let steps = process.before(known.min(process.end()));
        steps.iter().any(|step| match step {
            Step::After { access: number, .. } | Step::Accesses(number) => *number >= access.number,
            _ => false,
        })
    }
}

/// The last accesses of a kind, one of each process.
type Last = BTreeMap<ProcessIndex, Made>;

/// An access, where it stands among the steps of its process, and what is known there.
#[derive(Clone, Debug)]
struct Made {
    access: Access,
    step: StepIndex,
    known: Known,
}

/// What was done to a part of an object, or to all of it, since the last change.
#[derive(Debug, Default)]
struct History {
    changed: Option<Made>,
    read: Last,
}

#[derive(Debug, Default)]
struct Object {
    whole: History,
    parts: FxHashMap<u64, History>,
    /// Changes of parts, and reads of parts, since the last change of the whole.
    parts_changed: Last,
    parts_read: Last,
}

/// Accesses that see each other.
#[derive(Debug, Default)]
pub(in super::super) struct Seen {
    objects: FxHashMap<u64, Object>,
    /// The accesses of other processes that an access sees.
    before: FxHashMap<Access, Vec<Access>>,
    /// Where the accesses are that see this one.
    after: FxHashMap<Access, Vec<StepAt>>,
    /// What is known at an access that sees some of others.
    known: FxHashMap<Access, Known>,
    /// All accesses, in an order in which they can have been made.
    order: Vec<Access>,
    races: Vec<Race>,
    has_more: bool,
}

impl Seen {
    /// Records an access at vector clock `clock`, at this place among the steps of its process, then joins what the access
    /// observed into the clock.
    pub(super) fn record_access(
        &mut self,
        access: Access,
        accesses: &Accesses,
        step: StepIndex,
        clock: &mut Clock,
    ) {
        let all = accesses.of(access.of);
        let made = all.binary_search_by_key(&access.number, |made| made.number);
        let to = made.map_or(&[][..], |at| &all[at].to);
        let mut seen: Vec<(Made, Common)> = Vec::new();
        for to in to {
            let object = self.objects.entry(to.object).or_default();
            object.see(*to, |other, part| {
                let is_new = seen.iter().all(|(seen, _)| seen.access != other.access);
                if other.access.of != access.of && is_new {
                    let object = to.object;
                    seen.push((other.clone(), Common { object, part }));
                }
            });
        }
        let process = access.of;
        self.find_races(access, step, &seen, clock);
        for (other, _) in &seen {
            join(clock, &other.known);
            self.before.entry(access).or_default().push(other.access);
            let after = self.after.entry(other.access).or_default();
            after.push(StepAt { process, step });
        }
        let known = Known::new(process, step.next(), clock);
        if !seen.is_empty() {
            self.known.insert(access, known.clone());
        }
        self.order.push(access);
        let made = Made {
            access,
            step,
            known,
        };
        for to in to {
            let object = self.objects.entry(to.object).or_default();
            object.note(*to, made.clone());
        }
    }

    /// Those that could have come the other way around.
    fn find_races(
        &mut self,
        access: Access,
        step: StepIndex,
        seen: &[(Made, Common)],
        clock: &Clock,
    ) {
        for (at, (first, common)) in seen.iter().enumerate() {
            let process = first.access.of;
            let is_known = clock.get(&process).is_some_and(|end| first.step < *end);
            let mut others = seen.iter().enumerate().filter(|(other, _)| *other != at);
            if is_known || others.any(|(_, (other, _))| first.step < other.known.of(process)) {
                continue;
            }
            if self.races.len() == RACES_MAX {
                self.has_more = true;
                return;
            }
            self.races.push(Race {
                process,
                step: first.step,
                pair: Pair::Accesses(Accessed {
                    first: first.access,
                    second: access,
                    second_step: step,
                    common: Some(*common),
                }),
                is_of_application: false,
            });
        }
    }

    /// The races that were found, and whether there are more.
    pub(super) fn take_races(&mut self) -> (Vec<Race>, bool) {
        (std::mem::take(&mut self.races), self.has_more)
    }

    /// Those that were found.
    pub(in super::super) fn races(&self) -> &[Race] {
        &self.races
    }

    /// All accesses, in an order in which they can have been made.
    pub(in super::super) fn order(&self) -> &[Access] {
        &self.order
    }

    /// What is known at an access; `None` where it sees none of others.
    pub(in super::super) fn known_at(&self, access: Access) -> Option<&Known> {
        self.known.get(&access)
    }

    /// Where the accesses are that see this one.
    pub(super) fn after(&self, access: Access) -> &[StepAt] {
        self.after.get(&access).map_or(&[], Vec::as_slice)
    }

    /// As [`Seen::after`], for a step of the process at a place, which may be no access.
    pub(in super::super) fn after_step(&self, of: ProcessIndex, step: &Step) -> &[StepAt] {
        match *step {
            Step::Accesses(number) => self.after(Access { of, number }),
            _ => &[],
        }
    }

    /// What an access comes after, of those of other processes: what it sees. Where it is the second one of a race that
    /// is reordered: what the first one saw, instead of the first one.
    fn predecessors(&self, access: Access, turned: Option<&Accessed>) -> Vec<Access> {
        let sees = |access| self.before.get(&access).into_iter().flatten().copied();
        let mut after: Vec<Access> = sees(access).collect();
        if let Some(both) = turned.filter(|both| both.second == access) {
            let first = both.first;
            after.retain(|other| *other != first);
            after.extend(sees(first).filter(|other| other.of != access.of));
            let number = first.number - 1;
            after.extend((number > 0).then_some(Access { number, ..first }));
        }
        after
    }

    /// Steps of a process in which each access has its own, as a log has them that may turn a race around: it tells only
    /// which accesses come after those of others.
    pub(in super::super) fn told(
        &self,
        of: ProcessIndex,
        steps: &[Step],
        turned: Option<&Accessed>,
    ) -> Vec<Step> {
        let mut told = Vec::with_capacity(steps.len());
        let mut after: FxHashMap<ProcessIndex, u64> = FxHashMap::default();
        let (mut made, mut counted) = (0, 0);
        for step in steps {
            match step {
                Step::After { .. } => {}
                Step::Accesses(number) => {
                    made = *number;
                    let access = Access { of, number: made };
                    for other in self.predecessors(access, turned) {
                        let last = after.entry(other.of).or_default();
                        if *last < other.number {
                            *last = other.number;
                            counted = made;
                            let access = made;
                            told.push(Step::After { access, other });
                        }
                    }
                }
                step => {
                    if step.is_exit() && counted < made {
                        counted = made;
                        told.push(Step::Accesses(made));
                    }
                    told.push(step.clone());
                }
            }
        }
        if counted < made {
            told.push(Step::Accesses(made));
        }
        told
    }
}

impl Object {
    /// Calls `with` with each access that one to this sees, and the part that they have in common.
    fn see<'o>(&'o self, to: To, mut with: impl FnMut(&'o Made, Option<u64>)) {
        let Object {
            whole,
            parts,
            parts_changed,
            parts_read,
        } = self;
        let Some(part) = to.part else {
            let mut all = |last: &'o Last| last.values().for_each(|last| with(last, None));
            all(parts_changed);
            if to.is_change {
                all(parts_read);
                all(&whole.read);
            }
            return whole.changed.iter().for_each(|last| with(last, None));
        };
        let own = parts.get(&part);
        if to.is_change {
            let read = own.into_iter().flat_map(|own| own.read.values());
            read.for_each(|last| with(last, Some(part)));
            whole.read.values().for_each(|last| with(last, Some(part)));
        }
        let changed = own.and_then(|own| own.changed.as_ref());
        let changed = changed.or(whole.changed.as_ref());
        changed.into_iter().for_each(|last| with(last, Some(part)));
    }

    /// An access has been made.
    fn note(&mut self, to: To, made: Made) {
        let of = made.access.of;
        match (to.part, to.is_change) {
            (None, true) => {
                *self = Object {
                    whole: History {
                        changed: Some(made),
                        read: Last::new(),
                    },
                    ..Object::default()
                };
            }
            (None, false) => drop(self.whole.read.insert(of, made)),
            (Some(part), true) => {
                let history = self.parts.entry(part).or_default();
                history.changed = Some(made.clone());
                history.read.clear();
                self.parts_changed.insert(of, made);
            }
            (Some(part), false) => {
                let history = self.parts.entry(part).or_default();
                history.read.insert(of, made.clone());
                self.parts_read.insert(of, made);
            }
        }
    }
}

#[cfg(test)]
mod tests;
