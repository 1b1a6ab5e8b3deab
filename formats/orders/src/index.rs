//! The places of processes in a trace, and of steps in a process.

use std::ops::{Index, IndexMut};

use serde::{Deserialize, Serialize};

/// The place of a process among the processes of a trace, from 0.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct ProcessIndex(u32);

/// A place among the steps of a process, from 0: that of a step, and so also the end of the steps before it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct StepIndex(u32);

/// A step of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct StepAt {
    /// The place of its process.
    pub process: ProcessIndex,
    /// Its place among the steps of the process.
    pub step: StepIndex,
}

/// A place in 32 bits: memory holds no more processes or steps.
fn narrow(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

impl ProcessIndex {
    /// The last place that there can be.
    pub(super) const MAX: ProcessIndex = ProcessIndex(u32::MAX);

    /// The place behind this number of other processes.
    #[must_use]
    pub fn new(at: usize) -> ProcessIndex {
        ProcessIndex(narrow(at))
    }

    /// How many processes stand before it.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl StepIndex {
    /// The place of the first step.
    pub const FIRST: StepIndex = StepIndex(0);
    /// The last place that there can be: no step stands there.
    pub(super) const MAX: StepIndex = StepIndex(u32::MAX);

    /// The place behind this number of steps.
    #[must_use]
    pub fn new(at: usize) -> StepIndex {
        StepIndex(narrow(at))
    }

    /// How many steps stand before it.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }

    /// The next place.
    #[must_use]
    pub fn next(self) -> StepIndex {
        StepIndex(self.0.saturating_add(1))
    }

    /// It and the places behind it, in their order.
    pub fn onward(self) -> impl Iterator<Item = StepIndex> {
        (self.0..=u32::MAX).map(StepIndex)
    }
}

/// A value for each process of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PerProcess<T>(Vec<T>);

impl<T> PerProcess<T> {
    /// For how many processes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no process.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The places of all processes.
    pub fn indexes(&self) -> impl DoubleEndedIterator<Item = ProcessIndex> + Clone + use<T> {
        (0..narrow(self.len())).map(ProcessIndex)
    }

    /// The values, in the order of the processes.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.0.iter()
    }

    /// As [`PerProcess::iter`], to change them.
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, T> {
        self.0.iter_mut()
    }

    /// The values, each with the place of its process.
    pub fn entries(&self) -> impl Iterator<Item = (ProcessIndex, &T)> {
        self.indexes().zip(&self.0)
    }

    /// As [`PerProcess::entries`], to change the values.
    pub(super) fn entries_mut(&mut self) -> impl Iterator<Item = (ProcessIndex, &mut T)> {
        self.indexes().zip(&mut self.0)
    }

    /// The value for a process, if there is that process.
    #[must_use]
    pub fn get(&self, process: ProcessIndex) -> Option<&T> {
        self.0.get(process.index())
    }

    /// As [`PerProcess::get`], to change it.
    pub fn get_mut(&mut self, process: ProcessIndex) -> Option<&mut T> {
        self.0.get_mut(process.index())
    }

    /// The first process whose value is so.
    pub fn position(&self, is_so: impl FnMut(&T) -> bool) -> Option<ProcessIndex> {
        self.0.iter().position(is_so).map(ProcessIndex::new)
    }

    /// Other values for the same processes.
    pub fn map<U>(&self, other: impl FnMut(&T) -> U) -> PerProcess<U> {
        self.0.iter().map(other).collect()
    }

    /// Adds a process: its place.
    pub fn push(&mut self, value: T) -> ProcessIndex {
        let process = ProcessIndex::new(self.len());
        self.0.push(value);
        process
    }
}

impl<T: Default> PerProcess<T> {
    /// The value for a process; where it has none, it gets one, and so do those before it.
    pub(super) fn get_or_insert(&mut self, process: ProcessIndex) -> &mut T {
        let least = process.index() + 1;
        if self.len() < least {
            self.0.resize_with(least, T::default);
        }
        &mut self[process]
    }
}

impl<T> Default for PerProcess<T> {
    fn default() -> PerProcess<T> {
        PerProcess(Vec::new())
    }
}

impl<T> Index<ProcessIndex> for PerProcess<T> {
    type Output = T;

    fn index(&self, process: ProcessIndex) -> &T {
        &self.0[process.index()]
    }
}

impl<T> IndexMut<ProcessIndex> for PerProcess<T> {
    fn index_mut(&mut self, process: ProcessIndex) -> &mut T {
        &mut self.0[process.index()]
    }
}

impl<T> FromIterator<T> for PerProcess<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> PerProcess<T> {
        PerProcess(values.into_iter().collect())
    }
}

impl<T> IntoIterator for PerProcess<T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a, T> IntoIterator for &'a PerProcess<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl<'a, T> IntoIterator for &'a mut PerProcess<T> {
    type Item = &'a mut T;
    type IntoIter = std::slice::IterMut<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_end_where_32_bits_do() {
        let last = StepIndex::new(usize::MAX);
        assert_eq!((last, last.next()), (StepIndex::MAX, StepIndex::MAX));
        assert_eq!(last.onward().collect::<Vec<_>>(), [last]);
        assert_eq!(ProcessIndex::new(usize::MAX), ProcessIndex::MAX);
    }

    #[test]
    fn a_process_that_gets_a_value_gives_those_before_it_one() {
        let mut values: PerProcess<u8> = PerProcess::default();
        let [first, third] = [0, 2].map(ProcessIndex::new);
        *values.get_or_insert(third) = 7;
        *values.get_or_insert(first) += 1;
        assert_eq!(values.iter().copied().collect::<Vec<_>>(), [1, 0, 7]);
        assert_eq!(values.push(9).index(), 3);
        assert_eq!(values.position(|value| *value == 7), Some(third));
    }
}
