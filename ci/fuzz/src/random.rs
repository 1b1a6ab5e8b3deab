//! Numbers that are the same on every run with the same seed.

use beamline_settings::random::Numbers;

/// A row of numbers.
pub struct Random(Numbers);

impl Random {
    /// The row of this seed.
    #[must_use]
    pub fn new(seed: u64) -> Random {
        Random(Numbers(seed))
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0.draw()
    }

    /// A number below `n`; 0 where there is none.
    pub fn below(&mut self, n: usize) -> usize {
        let n = n.max(1) as u64;
        usize::try_from(self.number() % n).unwrap_or(0)
    }

    /// Yes, once in `n` times.
    pub fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// One of these; the slice has at least one.
    pub fn one<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }
}
