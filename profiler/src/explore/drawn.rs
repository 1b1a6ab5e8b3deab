//! Runs by chance: their lots.

use beamline_orders::{Draw, Lots};

/// Runs by chance that are made, and those that are still to be.
pub(super) struct Drawn {
    lots: Lots,
    /// How many were begun.
    begun: u64,
    /// The first one is made alone: it tells how many steps a run has.
    has_first: bool,
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

    /// A run was made, or has failed, in which `drawn` steps were drawn.
    pub(super) fn count_run(&mut self, drawn: u64) {
        if !self.has_first {
            self.has_first = true;
            self.lots.steps = drawn.max(1);
        }
    }
}

/// Runs by chance behind an exploration of all orders, as a check of it.
pub(super) struct Verified {
    /// Every other run is drawn so.
    by: [Drawn; 2],
    /// How many are still to be begun.
    left: u64,
    in_flight: u64,
}

impl Verified {
    /// To check an answer by this many runs, of this seed.
    pub(super) fn new(runs: u64, seed: u64) -> Verified {
        Verified {
            by: [Draw::Random, Draw::Pos].map(|draw| Drawn::new(draw, seed, 1)),
            left: runs,
            in_flight: 0,
        }
    }

    /// The lots of the next run; `None` where all were begun.
    pub(super) fn next_run(&mut self) -> Option<Lots> {
        self.left = self.left.checked_sub(1)?;
        self.in_flight += 1;
        let drawn = &mut self.by[(self.left % 2) as usize];
        // Priorities of steps need no number of them.
        drawn.count_run(1);
        drawn.next_run().map(|(_, lots)| lots)
    }

    /// One was made.
    pub(super) fn count_run(&mut self) {
        self.in_flight -= 1;
    }

    /// Whether all were made.
    pub(super) fn is_over(&self) -> bool {
        self.left == 0 && self.in_flight == 0
    }
}
