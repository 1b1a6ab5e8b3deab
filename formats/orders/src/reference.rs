//! References of processes: `p0.4.7` is the seventh child of the fourth child of the process whose pid has the number 0.
//! Eight and more equal numbers in a row are one: `p0.1^100.2`.

use std::fmt;
use std::str::FromStr;

use super::{Origin, Trace};

/// A process's reference: the number of its root's pid, and which child of each the next one is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Reference {
    pub(super) root: u64,
    /// Runs of equal numbers: the number, and how often.
    pub(super) path: Vec<(u32, u32)>,
}

/// Shorter runs are written out.
const RUN_MIN: u32 = 8;

impl Reference {
    fn push(&mut self, number: u32, times: u32) {
        match self.path.last_mut() {
            Some((last, count)) if *last == number => *count = count.saturating_add(times),
            _ => self.path.push((number, times)),
        }
    }

    /// Its parent, and which of the parent's children it is.
    pub(super) fn parent(&self) -> Option<(Reference, u32)> {
        let mut parent = self.clone();
        let (number, times) = parent.path.pop()?;
        if times > 1 {
            parent.path.push((number, times - 1));
        }
        Some((parent, number))
    }
}

impl Trace {
    /// The reference of the process at this place.
    pub(super) fn reference(&self, at: usize) -> Reference {
        let mut numbers = Vec::new();
        let mut process = &self.processes[at];
        let root = loop {
            match process.origin {
                Origin::Root(root) => break root,
                Origin::Child { of, number } => {
                    numbers.push(number);
                    process = &self.processes[of];
                }
            }
        };
        let mut reference = Reference {
            root,
            path: Vec::new(),
        };
        numbers.iter().rev().for_each(|n| reference.push(*n, 1));
        reference
    }

    /// The reference of a process as text, such as `p0.4.7`.
    #[must_use]
    pub fn name(&self, at: usize) -> String {
        self.reference(at).to_string()
    }
}

impl Reference {
    /// Writes it behind this letter.
    pub(super) fn write(&self, f: &mut impl fmt::Write, letter: char) -> fmt::Result {
        write!(f, "{letter}{}", self.root)?;
        for (number, times) in &self.path {
            if *times >= RUN_MIN {
                write!(f, ".{number}^{times}")?;
            } else {
                (0..*times).try_for_each(|_| write!(f, ".{number}"))?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, 'p')
    }
}

impl FromStr for Reference {
    type Err = ();

    /// Reads what stands behind the letter: `0.4.7`.
    fn from_str(text: &str) -> Result<Reference, ()> {
        let mut numbers = text.split('.');
        let root = numbers
            .next()
            .and_then(|root| root.parse().ok())
            .ok_or(())?;
        let mut reference = Reference {
            root,
            path: Vec::new(),
        };
        let mut length = 0;
        for number in numbers {
            let (number, times) = number.split_once('^').unwrap_or((number, "1"));
            let (number, times) = (number.parse(), times.parse());
            match (number, times) {
                (Ok(number @ 1..), Ok(times @ 1..=PATH_MAX)) if length <= PATH_MAX - times => {
                    length += times;
                    reference.push(number, times);
                }
                _ => return Err(()),
            }
        }
        Ok(reference)
    }
}

/// No text may name a longer chain of spawns: each of its processes takes memory.
const PATH_MAX: u32 = 1 << 17;
