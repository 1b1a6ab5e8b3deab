//! Runs by chance: their lots, and how many different orders they had.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use beamline_formats::order::{Draw, Lots, Message, Run, Step};

/// Runs by chance that are made, and those that are still to be.
pub(super) struct Drawn {
    lots: Lots,
    /// How many were begun.
    begun: u64,
    /// The first one is made alone: it tells how many steps a run has.
    has_first: bool,
    /// The logs of those that were made.
    orders: HashSet<u64>,
}

impl Drawn {
    /// No run was made yet.
    pub(super) fn new(draw: Draw, seed: u64, depth: u32) -> Drawn {
        Drawn {
            lots: Lots {
                draw,
                seed,
                depth,
                steps: 1,
            },
            begun: 0,
            has_first: false,
            orders: HashSet::new(),
        }
    }

    /// The number of the next run, and its lots; nothing while the first one is made.
    pub(super) fn next_run(&mut self) -> Option<(u64, Lots)> {
        let number = self.begun;
        if number > 0 && !self.has_first {
            return None;
        }
        self.begun += 1;
        Some((number, self.lots.of_run(number)))
    }

    /// A run was made, or has failed, in which so many steps were drawn.
    pub(super) fn has_run(&mut self, run: Option<&Run>, drawn: u64) {
        if !self.has_first {
            self.has_first = true;
            self.lots.steps = drawn.max(1);
        }
        if let Some(run) = run {
            self.orders.insert(order_of(run));
        }
    }

    /// How many different orders there were.
    pub(super) fn orders(&self) -> u64 {
        self.orders.len() as u64
    }
}

/// A number of the order that a run has: of what its receives took, and of its accesses.
fn order_of(run: &Run) -> u64 {
    let mut hasher = DefaultHasher::new();
    for process in &run.trace.processes {
        process.origin.hash(&mut hasher);
        for step in &process.steps {
            match step {
                // How many others came before it shows nowhere.
                Step::Receive(Message::Told(told)) => (told.of, told.gone).hash(&mut hasher),
                Step::Receive(_) | Step::Timeout | Step::After { .. } => step.hash(&mut hasher),
                _ => {}
            }
        }
    }
    hasher.finish()
}
