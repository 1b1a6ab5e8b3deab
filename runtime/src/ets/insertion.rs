//! An insertion of a list that takes several time slices. The table keeps it, and whoever comes to the table
//! meanwhile goes on with it first: nobody sees a part of the list. Source: `ets_insert_2_list()` in `erl_db.c`.

use std::sync::{Arc, OnceLock};

use super::Objects;
use crate::heap::Stored;

/// Steps of an insertion for one reduction. Source: `ITERATIONS_PER_RED` in `erl_db.c`.
pub(crate) const STEPS_PER_RED: usize = 8;

/// What becomes of an insertion: whether the objects are in the table, once that is known.
pub(crate) type Ending = Arc<OnceLock<bool>>;

/// What is done with the next object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// It is looked up, as all before this index were: with `insert_new/2`, none is put in if there is one.
    LookingUp(usize),
    Putting,
    /// It is freed.
    Freeing,
}

/// Objects on their way into a table.
pub(crate) struct Insertion {
    /// Those that are not there yet, the next one first.
    left: std::vec::IntoIter<Stored>,
    stage: Stage,
    /// Steps that it takes to free one: none where ERTS makes no copies.
    steps_to_free: usize,
    ending: Ending,
}

impl Insertion {
    /// With `new`, of objects that are put in if there is none with a key of theirs; `is_split` where that may take
    /// several time slices.
    pub(crate) fn new(objects: Vec<Stored>, new: bool, is_split: bool) -> Insertion {
        Insertion {
            left: objects.into_iter(),
            stage: if new {
                Stage::LookingUp(0)
            } else {
                Stage::Putting
            },
            steps_to_free: usize::from(is_split),
            ending: Ending::default(),
        }
    }

    /// The objects that are not in the table yet.
    pub(super) fn left(&self) -> &[Stored] {
        self.left.as_slice()
    }

    /// What tells of its end.
    pub(crate) fn ending(&self) -> &Ending {
        &self.ending
    }

    /// Goes on until it is done, or has taken `most` steps or more; how many it took.
    pub(crate) fn run(&mut self, objects: &mut Objects, most: usize) -> usize {
        let mut steps = 0;
        while steps < most && self.ending.get().is_none() {
            steps += self.step(objects);
        }
        steps
    }

    /// One object; the steps that took.
    fn step(&mut self, objects: &mut Objects) -> usize {
        match self.stage {
            Stage::LookingUp(index) => {
                let Some(object) = self.left.as_slice().get(index) else {
                    self.stage = Stage::Putting;
                    return 0;
                };
                let key = object.elements()[objects.key_index()];
                self.stage = if objects.has(key) {
                    Stage::Freeing
                } else {
                    Stage::LookingUp(index + 1)
                };
                1
            }
            Stage::Putting => match self.left.next() {
                // Putting it in is a step beside that of the loop.
                Some(object) => 2 + objects.insert(object),
                None => self.end(true),
            },
            Stage::Freeing => match self.left.next() {
                Some(_) => self.steps_to_free,
                None => self.end(false),
            },
        }
    }

    fn end(&self, is_in: bool) -> usize {
        // It ends once.
        let _ = self.ending.set(is_in);
        0
    }
}
