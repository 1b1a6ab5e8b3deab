//! Numbers that are the same for the same seed.
//!
//! Source: Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators" (SplitMix64), 2014.

/// What the state grows by for each number.
pub const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The number of a state.
#[must_use]
pub fn mixed(state: u64) -> u64 {
    let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A row of numbers; the number is the seed.
#[derive(Clone, Debug)]
pub struct Numbers(pub u64);

impl Numbers {
    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mixed(self.0)
    }

    /// One of `0..end`.
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.draw()) * u128::from(end)) >> 64) as u64
    }

    /// An index of a list with `length` elements, of which there is at least one.
    pub fn index(&mut self, length: usize) -> usize {
        self.below(length as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the reference implementation gives them.
    #[test]
    fn the_first_numbers_of_seed_0() {
        let mut numbers = Numbers(0);
        let numbers = [(); 3].map(|()| numbers.draw());
        let expect = [
            0xe220_a839_7b1d_cdaf,
            0x6e78_9e6a_a1b9_65f4,
            0x06c4_5d18_8009_454f,
        ];
        assert_eq!(numbers, expect);
    }
}
