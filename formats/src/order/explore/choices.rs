//! The choices of the runs that were explored: what each receive took, or that it timed out, and what each access came
//! after.

use std::collections::HashMap;

use super::saw::Saw;

/// What a receive or an access did.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Did {
    /// It took the message of this sending of a process.
    Took(usize, u32),
    /// It took what tells of a process, if of any: which of those of this process that tell of it.
    Heard(Option<usize>, u32),
    /// It timed out.
    TimedOut,
    /// It came after these accesses of others.
    Saw(Saw),
}

/// Which receive, time-out or access: of which process, and which of these, from 0.
pub(super) type Slot = (usize, u32);

/// A choice, as a number.
pub(super) type Choice = u32;

/// All choices of all runs that were explored.
#[derive(Default)]
pub(super) struct Choices {
    numbers: HashMap<(Slot, Did), Choice>,
    slots: Vec<Slot>,
    /// Of each choice, a bit for each run that has it.
    runs: Vec<Vec<u64>>,
}

impl Choices {
    pub(super) fn number(&mut self, slot: Slot, did: Did) -> Choice {
        let next = self.slots.len() as Choice;
        let number = *self.numbers.entry((slot, did)).or_insert(next);
        if number == next {
            self.slots.push(slot);
            self.runs.push(Vec::new());
        }
        number
    }

    /// The run of this number has these choices.
    pub(super) fn add(&mut self, run: usize, choices: impl Iterator<Item = Choice>) {
        for choice in choices {
            let bits = &mut self.runs[choice as usize];
            if bits.len() <= run / 64 {
                bits.resize(run / 64 + 1, 0);
            }
            bits[run / 64] |= 1 << (run % 64);
        }
    }

    /// Whether some run has all these choices, where there is a run.
    pub(super) fn has_all(&self, choices: &[Choice]) -> bool {
        let all = choices
            .iter()
            .map(|choice| self.runs[*choice as usize].as_slice());
        let mut all: Vec<&[u64]> = all.collect();
        // The last choice is mostly the newest one, and the shortest list that of the oldest runs.
        all.sort_unstable_by_key(|bits| bits.len());
        let Some((first, others)) = all.split_first() else {
            return true;
        };
        (0..first.len()).any(|word| {
            let common = others.iter().try_fold(first[word], |common, bits| {
                let common = common & bits[word];
                (common != 0).then_some(common)
            });
            common.is_some_and(|common| common != 0)
        })
    }

    /// Whether no run has both all of these and all of those.
    pub(super) fn contradict(&self, these: &[Choice], those: &[Choice]) -> bool {
        let known: HashMap<Slot, Choice> = those
            .iter()
            .map(|choice| (self.slots[*choice as usize], *choice))
            .collect();
        these.iter().any(|choice| {
            let other = known.get(&self.slots[*choice as usize]);
            other.is_some_and(|other| other != choice)
        })
    }
}
