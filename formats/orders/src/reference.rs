//! References of processes: `p0.4.7` is the seventh child of the fourth child of the process whose pid has the number 0.
//! Eight and more equal numbers in a row are one: `p0.1^100.2`.

use std::fmt;
use std::str::FromStr;

use rustc_hash::FxHashMap;

use super::{Origin, PerProcess, Process, ProcessIndex, Trace};

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
    pub(super) fn reference(&self, at: ProcessIndex) -> Reference {
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
    pub fn name(&self, at: ProcessIndex) -> String {
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

/// The processes of a trace that is read, by their references.
#[derive(Default)]
pub(super) struct Places {
    places: FxHashMap<Reference, ProcessIndex>,
    pub(super) processes: PerProcess<Process>,
}

impl Places {
    /// The place of a process; its parents get one, too, before it.
    pub(super) fn place(&mut self, reference: &Reference) -> ProcessIndex {
        let mut missing = Vec::new();
        let mut next = Some(reference.clone());
        while let Some(reference) = next.take().filter(|r| !self.places.contains_key(r)) {
            next = reference.parent().map(|(parent, _)| parent);
            missing.push(reference);
        }
        for reference in missing.into_iter().rev() {
            let origin = match reference.parent() {
                None => Origin::Root(reference.root),
                Some((parent, number)) => Origin::Child {
                    of: self.places[&parent],
                    number,
                },
            };
            let place = self.processes.push(Process {
                origin,
                pid: None,
                known_as: None,
                steps: Vec::new(),
            });
            self.places.insert(reference, place);
        }
        self.places[reference]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_read_as_they_are_written() {
        for (text, written) in [
            ("0", "p0"),
            ("0.4.7", "p0.4.7"),
            ("17.1.1.1.1.1.1.1", "p17.1.1.1.1.1.1.1"),
            ("17.1.1.1.1.1.1.1.1", "p17.1^8"),
            ("0.1^7.2", "p0.1.1.1.1.1.1.1.2"),
            ("0.1^4.1^4.2", "p0.1^8.2"),
            ("0.1^131072", "p0.1^131072"),
        ] {
            let reference: Reference = text.parse().expect(text);
            assert_eq!(reference.to_string(), written);
            assert_eq!(written[1..].parse(), Ok(reference));
        }
    }

    #[test]
    fn what_is_no_reference_is_refused() {
        for text in [
            "",
            "p0",
            "0.",
            ".1",
            "0.0",
            "0.a",
            "0.1^0",
            "0.1^",
            "0^2",
            "-1",
            "0.1^131073",
            "0.1^131072.2",
            "0.4294967296",
        ] {
            assert_eq!(text.parse::<Reference>(), Err(()), "{text}");
        }
    }

    #[test]
    fn a_parent_is_one_child_above() {
        let parent = |text: &str| {
            let reference: Reference = text.parse().expect(text);
            let parent = reference.parent();
            parent.map(|(parent, number)| (parent.to_string(), number))
        };
        for (text, expected) in [
            ("0", None),
            ("0.4", Some(("p0", 4))),
            ("0.4.7", Some(("p0.4", 7))),
            ("0.1^9", Some(("p0.1^8", 1))),
        ] {
            let expected = expected.map(|(parent, number)| (parent.to_owned(), number));
            assert_eq!(parent(text), expected, "{text}");
        }
    }

    #[test]
    fn parents_get_places_before_their_children() {
        let mut places = Places::default();
        for (text, place, origins) in [
            ("0.4.7", 2, 3),
            ("0", 0, 3),
            ("0.4", 1, 3),
            ("0.5", 3, 4),
            ("2", 4, 5),
        ] {
            let found = places.place(&text.parse().expect(text));
            assert_eq!(found.index(), place, "{text}");
            assert_eq!(places.processes.len(), origins, "{text}");
        }
        let origins = places.processes.iter().map(|process| process.origin);
        let child = |of, number| Origin::Child {
            of: ProcessIndex::new(of),
            number,
        };
        let expected = [
            Origin::Root(0),
            child(0, 4),
            child(1, 7),
            child(0, 5),
            Origin::Root(2),
        ];
        assert!(origins.eq(expected));
    }
}
