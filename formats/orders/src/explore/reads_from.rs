//! What each access to what processes share comes after: of each other process, its last access to the same part of the same
//! object, if one of the two is a change. Two runs in which each access comes after the same ones have the same order.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::super::accesses::To;
use super::super::{Access, Accesses, ProcessIndex};

/// The last accesses of a kind, one of each process.
type Last = BTreeMap<ProcessIndex, u64>;

/// The last accesses to a part of an object, or to the whole object.
#[derive(Default)]
struct Done {
    changed: Last,
    read: Last,
}

impl Done {
    fn add(&mut self, access: Access, is_change: bool) {
        let last = match is_change {
            true => &mut self.changed,
            false => &mut self.read,
        };
        last.insert(access.of, access.number);
    }

    /// The accesses that a change, or a read, comes after.
    fn before(&self, is_change: bool) -> impl Iterator<Item = Access> {
        let read = is_change.then_some(&self.read).into_iter().flatten();
        self.changed.iter().chain(read).map(|(of, number)| Access {
            of: *of,
            number: *number,
        })
    }
}

#[derive(Default)]
struct Object {
    whole: Done,
    parts: FxHashMap<u64, Done>,
    any: Done,
}

/// The accesses that were made so far.
#[derive(Default)]
pub(super) struct Made {
    objects: FxHashMap<u64, Object>,
}

/// What an access comes after, in the order of the processes.
pub(super) type Predecessors = Box<[Access]>;

impl Made {
    /// What an access by a process to these objects comes after, if it is made now.
    pub(super) fn before(&self, by: ProcessIndex, all: &[To]) -> Predecessors {
        let mut before = Last::new();
        let mut add = |done: &Done, is_change| {
            for access in done.before(is_change).filter(|access| access.of != by) {
                let last = before.entry(access.of).or_default();
                *last = access.number.max(*last);
            }
        };
        for To {
            object,
            is_change,
            part,
        } in all
        {
            let Some(object) = self.objects.get(object) else {
                continue;
            };
            match part {
                None => add(&object.any, *is_change),
                Some(part) => {
                    add(&object.whole, *is_change);
                    object
                        .parts
                        .get(part)
                        .into_iter()
                        .for_each(|done| add(done, *is_change));
                }
            }
        }
        let before = before.into_iter();
        before.map(|(of, number)| Access { of, number }).collect()
    }

    /// Adds an access that has been made.
    pub(super) fn add(&mut self, access: Access, accesses: &Accesses) {
        for To {
            object,
            is_change,
            part,
        } in accesses.to(access)
        {
            let object = self.objects.entry(*object).or_default();
            let done = match part {
                None => &mut object.whole,
                Some(part) => object.parts.entry(*part).or_default(),
            };
            done.add(access, *is_change);
            object.any.add(access, *is_change);
        }
    }
}
