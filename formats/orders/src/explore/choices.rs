//! The choices of the runs that were explored, which decide their orders: what each receive took, or that it timed out,
//! what each access came after, and which exit signals ended processes, and where. Runs with the same choices have the
//! same order.

use rustc_hash::{FxHashMap, FxHashSet};

use super::super::{ProcessIndex, Signal};
use super::reads_from::Predecessors;

/// What a receive or an access did, or what ended a process.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Did {
    /// The receive took the message with this number among those that the process at this place has sent.
    Took(ProcessIndex, u32),
    /// The receive took a message about a process (or about none) that had ended, or was gone already (`true`): which
    /// of the messages that say so of that process.
    Heard(Option<ProcessIndex>, bool, u32),
    /// The receive timed out.
    TimedOut,
    /// The access came after these accesses of other processes.
    Predecessors(Predecessors),
    /// This signal ended the process, behind this number of steps that others may see.
    Ended(Signal, u32),
    /// No signal ended the process behind this number of steps. No run has this choice: [`Beginning::reach`] says it.
    WentOn(u32),
}

/// The place of a choice: a process, and which of its receives, time-outs, accesses and ends by signals, from 0.
pub(super) type Slot = (ProcessIndex, u32);

/// A choice, as a number.
pub(super) type Choice = u32;

/// What a run has, or begins with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Beginning {
    pub(super) choices: Vec<Choice>,
    /// The least number of steps that others may see behind which a signal ends each process, if one does.
    pub(super) reach: Vec<(ProcessIndex, u32)>,
}

/// A bit for each run.
type Runs = Vec<u64>;

fn set(runs: &mut Runs, run: usize) {
    if runs.len() <= run / 64 {
        runs.resize(run / 64 + 1, 0);
    }
    runs[run / 64] |= 1 << (run % 64);
}

/// All choices of all runs that were explored.
#[derive(Default)]
pub(super) struct Choices {
    numbers: FxHashMap<(Slot, Did), Choice>,
    slots: Vec<Slot>,
    /// For a choice that ends a process: behind how many steps that others may see.
    ends: FxHashMap<Choice, u32>,
    /// The runs that have each choice.
    runs: Vec<Runs>,
    /// Of each process, the runs in which a signal ended it, by the number of these steps.
    ended: FxHashMap<ProcessIndex, Vec<(u32, Runs)>>,
    /// The runs that have this number of choices.
    of_length: FxHashMap<usize, Runs>,
}

impl Choices {
    pub(super) fn number(&mut self, slot: Slot, did: Did) -> Choice {
        let next = self.slots.len() as Choice;
        let steps = match did {
            Did::Ended(_, steps) => Some(steps),
            _ => None,
        };
        let number = *self.numbers.entry((slot, did)).or_insert(next);
        if number == next {
            self.slots.push(slot);
            self.runs.push(Runs::new());
            self.ends.extend(steps.map(|steps| (number, steps)));
        }
        number
    }

    /// Notes that the run of this number has these choices.
    pub(super) fn add(&mut self, run: usize, choices: &[Choice]) {
        set(self.of_length.entry(choices.len()).or_default(), run);
        for choice in choices {
            set(&mut self.runs[*choice as usize], run);
            if let Some(steps) = self.ends.get(choice) {
                let (process, _) = self.slots[*choice as usize];
                let ends = self.ended.entry(process).or_default();
                let at = ends.iter().position(|(other, _)| other == steps);
                let at = at.unwrap_or_else(|| {
                    ends.push((*steps, Runs::new()));
                    ends.len() - 1
                });
                set(&mut ends[at].1, run);
            }
        }
    }

    /// Whether some run has this beginning, if there is a run at all.
    pub(super) fn has_all(&self, beginning: &Beginning) -> bool {
        self.has_with(beginning, None)
    }

    /// Whether some run has these choices and no others. A run with more of them, such as one in which a signal ends a
    /// process that waits here, is another one.
    pub(super) fn has_whole(&self, whole: &Beginning) -> bool {
        let runs = self.of_length.get(&whole.choices.len());
        runs.is_some_and(|runs| self.has_with(whole, Some(runs)))
    }

    /// Whether some run has this beginning: one of `runs`, where they are given.
    fn has_with(&self, beginning: &Beginning, runs: Option<&Runs>) -> bool {
        let all = beginning.choices.iter();
        let all = all.map(|choice| &self.runs[*choice as usize]);
        let mut all: Vec<&[u64]> = all.chain(runs).map(Vec::as_slice).collect();
        // The shortest list first: only few runs have all of the choices of which one is rare.
        all.sort_unstable_by_key(|bits| bits.len());
        let Some((first, others)) = all.split_first() else {
            return true;
        };
        let ended_before = self.ended_before(&beginning.reach);
        (0..first.len()).any(|word| {
            let ended = ended_before.iter().map(|bits| bits.get(word).unwrap_or(&0));
            let ended = ended.fold(0, |all, bits| all | bits);
            let common = others
                .iter()
                .try_fold(first[word] & !ended, |common, bits| {
                    let common = common & bits[word];
                    (common != 0).then_some(common)
                });
            common.is_some_and(|common| common != 0)
        })
    }

    /// The runs in which a signal ended a process before it had made as many steps as `reach` says.
    fn ended_before(&self, reach: &[(ProcessIndex, u32)]) -> Vec<&Runs> {
        let ends = reach.iter().filter_map(|(process, steps)| {
            let ends = self.ended.get(process)?.iter();
            Some(ends.filter(move |(ended, _)| ended < steps))
        });
        ends.flatten().map(|(_, runs)| runs).collect()
    }

    /// Whether a run that has all of `own` has this beginning.
    pub(super) fn begins_with(&self, own: &Beginning, beginning: &Beginning) -> bool {
        let all: FxHashSet<Choice> = own.choices.iter().copied().collect();
        let has_all = beginning.choices.iter().all(|choice| all.contains(choice));
        has_all && !self.ends_before(own, beginning)
    }

    /// Whether no run can have both beginnings.
    pub(super) fn contradict(&self, these: &Beginning, those: &Beginning) -> bool {
        let known: FxHashMap<Slot, Choice> = those
            .choices
            .iter()
            .map(|choice| (self.slots[*choice as usize], *choice))
            .collect();
        let differ = these.choices.iter().any(|choice| {
            let other = known.get(&self.slots[*choice as usize]);
            other.is_some_and(|other| other != choice)
        });
        differ || self.ends_before(these, those) || self.ends_before(those, these)
    }

    /// Whether a signal ends a process in `one` before it has come as far as in `other`.
    fn ends_before(&self, one: &Beginning, other: &Beginning) -> bool {
        let ends = one.choices.iter().filter_map(|choice| {
            let steps = self.ends.get(choice)?;
            Some((self.slots[*choice as usize].0, *steps))
        });
        let mut ends = ends.peekable();
        if ends.peek().is_none() {
            return false;
        }
        let reach: FxHashMap<ProcessIndex, u32> = other.reach.iter().copied().collect();
        ends.any(|(process, steps)| reach.get(&process).is_some_and(|reach| *reach > steps))
    }
}
