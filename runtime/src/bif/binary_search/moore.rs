//! Searches for one pattern, after Boyer and Moore. The search can pause, and its steps are those that ERTS counts.

use std::ops::Range;

/// A pattern, and how far to shift it where it does not match.
pub(super) struct Moore {
    needle: Vec<u8>,
    /// For each byte: how far its last occurrence, but for the pattern's last byte, is from the end.
    by_byte: [usize; 256],
    /// For each place: how far the part behind it can be shifted, once that has matched.
    by_part: Vec<usize>,
}

/// How far a search has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sought {
    /// This matches.
    Found(usize),
    /// Nothing matches.
    Nothing,
    /// The steps are used up.
    Paused,
}

impl Moore {
    /// `needle` is not empty.
    pub(super) fn new(needle: &[u8]) -> Moore {
        let len = needle.len();
        let mut by_byte = [len; 256];
        for (i, byte) in needle[..len - 1].iter().enumerate() {
            by_byte[usize::from(*byte)] = len - 1 - i;
        }
        Moore {
            needle: needle.to_vec(),
            by_byte,
            by_part: shifts_by_part(needle),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.needle.len()
    }

    /// Searches `haystack` from `at`, which becomes where to go on. `after_match` says that nothing has been
    /// compared there yet: then the pattern's last byte is looked for first, for a step each
    /// [`BYTES_PER_STEP`]. `steps` is what may be done, and becomes what is left of it.
    pub(super) fn search(
        &self,
        haystack: &[u8],
        at: &mut usize,
        after_match: bool,
        steps: &mut usize,
    ) -> Sought {
        /// Bytes that are passed for one step where a single one is looked for.
        const BYTES_PER_STEP: usize = 8;
        let last = self.needle.len() - 1;
        if after_match {
            let Some(most) = haystack.len().checked_sub(last + *at).filter(|n| *n > 0) else {
                return Sought::Nothing;
            };
            let most = most.min(1 + (*steps - 1) * BYTES_PER_STEP);
            let window = &haystack[*at + last..][..most];
            match memchr::memchr(self.needle[last], window) {
                Some(passed) => {
                    let used = (last + passed) / BYTES_PER_STEP;
                    *steps = steps.saturating_sub(used).max(1);
                    *at += passed;
                }
                None => {
                    *steps -= most / BYTES_PER_STEP;
                    *at += most;
                }
            }
        }
        loop {
            let Some(window) = haystack.get(*at..).and_then(|rest| rest.get(..=last)) else {
                return Sought::Nothing;
            };
            *steps = steps.saturating_sub(1);
            if *steps == 0 {
                return Sought::Paused;
            }
            let pairs = self.needle.iter().zip(window);
            let Some(differs) = pairs.rev().position(|(a, b)| a != b) else {
                return Sought::Found(*at);
            };
            let by_byte = self.by_byte[usize::from(window[last - differs])];
            *at += self.by_part[last - differs].max(by_byte.saturating_sub(differs));
        }
    }

    /// What matches at `at`.
    pub(super) fn range(&self, at: usize) -> Range<usize> {
        at..at + self.needle.len()
    }
}

/// For each place of `needle`: the least shift after which what follows the place matches again, with another
/// byte before it, or its end is the pattern's beginning.
fn shifts_by_part(needle: &[u8]) -> Vec<usize> {
    let len = needle.len();
    let mut shifts = vec![len; len];
    let suffixes = suffixes(needle);
    let mut from = 0;
    for end in (0..len).rev() {
        if suffixes[end] == end + 1 {
            for shift in &mut shifts[from..len - 1 - end] {
                if *shift == len {
                    *shift = len - 1 - end;
                }
            }
            from = from.max(len - 1 - end);
        }
    }
    for end in 0..len - 1 {
        shifts[len - 1 - suffixes[end]] = len - 1 - end;
    }
    shifts
}

/// For each place of `needle`: how many bytes up to it are also its last ones.
fn suffixes(needle: &[u8]) -> Vec<usize> {
    let len = needle.len();
    // Counted from the end. `reach` is how far a comparison has come, which began at `begin`.
    let mut equal = vec![len; len];
    let (mut begin, mut reach) = (0, 0);
    for at in 1..len {
        let mut n = if at < reach {
            equal[at - begin].min(reach - at)
        } else {
            0
        };
        while at + n < len && needle[len - 1 - n] == needle[len - 1 - at - n] {
            n += 1;
        }
        equal[at] = n;
        if at + n > reach {
            (begin, reach) = (at, at + n);
        }
    }
    equal.reverse();
    equal
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(needle: &[u8], haystack: &[u8], each: usize) -> Vec<usize> {
        let moore = Moore::new(needle);
        let (mut at, mut after_match, mut found) = (0, true, Vec::new());
        loop {
            let mut steps = each;
            match moore.search(haystack, &mut at, after_match, &mut steps) {
                Sought::Found(here) => {
                    found.push(here);
                    at = here + needle.len();
                    after_match = true;
                }
                Sought::Nothing => return found,
                Sought::Paused => after_match = each > 2,
            }
        }
    }

    #[test]
    fn all_matches_are_found_in_any_number_of_turns() {
        let mut bytes = 7u32;
        let mut next = |of: u32| {
            bytes = bytes.wrapping_mul(1_103_515_245).wrapping_add(12345);
            (bytes >> 16) % of
        };
        for case in 0..2000 {
            let haystack: Vec<u8> = (0..next(60)).map(|_| next(2 + case % 2) as u8).collect();
            let needle: Vec<u8> = (0..1 + next(6)).map(|_| next(2 + case % 2) as u8).collect();
            let expected: Vec<_> = memchr::memmem::find_iter(&haystack, &needle).collect();
            for each in [2, 3, 7, 1000] {
                assert_eq!(
                    all(&needle, &haystack, each),
                    expected,
                    "{needle:?} in {haystack:?}"
                );
            }
        }
    }
}
