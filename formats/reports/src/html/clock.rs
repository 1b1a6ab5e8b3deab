//! The parts that the time of a recording is divided into, and what is counted in each of them.

use serde::Serialize;

/// Parts of the time.
pub(super) const PARTS: usize = 240;

/// Which part a time is in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    first_ns: u64,
    part_ns: u64,
}

impl Clock {
    /// Of a recording from `first_ns` to `end_ns`.
    pub(super) fn new((first_ns, end_ns): (u64, u64)) -> Clock {
        let length = end_ns.saturating_sub(first_ns);
        // The last part is not longer than the others.
        let part_ns = length.div_ceil(PARTS as u64).max(1);
        Clock { first_ns, part_ns }
    }

    /// How long a part is.
    pub(super) fn part_ns(&self) -> u64 {
        self.part_ns
    }

    /// The part of a time.
    pub(super) fn part(&self, ns: u64) -> usize {
        let part = ns.saturating_sub(self.first_ns) / self.part_ns;
        usize::try_from(part).unwrap_or(PARTS).min(PARTS - 1)
    }

    /// When a part begins.
    pub(super) fn begin_ns(&self, part: usize) -> u64 {
        let passed = self.part_ns.saturating_mul(part as u64);
        self.first_ns.saturating_add(passed)
    }

    /// The pieces of a span that are in each part, as part and length. The parts are as wide as 2 to the power of `shift`
    /// of the clock's, and numbered anew.
    pub(super) fn pieces(
        self,
        shift: u32,
        from: u64,
        to: u64,
    ) -> impl Iterator<Item = (usize, u64)> {
        let (first, last) = (self.part(from) >> shift, self.part(to) >> shift);
        (first..=last).map(move |part| {
            let begin = match part == first {
                true => from,
                false => self.begin_ns(part << shift),
            };
            let end = match part == last {
                true => to,
                false => self.begin_ns((part + 1) << shift),
            };
            (part, end.saturating_sub(begin))
        })
    }
}

/// Buckets for each power of two.
const FINE: u32 = 4;

/// The bucket of a value: each is a sixteenth of a power of two wide.
fn bucket(value: u64) -> usize {
    let power = u64::BITS - value.leading_zeros();
    let above = power.saturating_sub(FINE + 1);
    (above as usize) * (1 << FINE) + usize::try_from(value >> above).unwrap_or(0)
}

/// How many values there were of each size in each part of the time.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Sizes {
    /// For each part with values: which, how many buckets, and the greatest value.
    part: Vec<usize>,
    buckets: Vec<usize>,
    max: Vec<u64>,
    /// For each of its buckets: which, and how many values.
    bucket: Vec<usize>,
    count: Vec<u64>,
    #[serde(skip)]
    clock: Clock,
    #[serde(skip)]
    now: usize,
    #[serde(skip)]
    counts: Vec<u64>,
    #[serde(skip)]
    greatest: u64,
}

impl Sizes {
    /// No value yet.
    pub(super) fn new(clock: Clock) -> Sizes {
        Sizes {
            part: Vec::new(),
            buckets: Vec::new(),
            max: Vec::new(),
            bucket: Vec::new(),
            count: Vec::new(),
            clock,
            now: 0,
            counts: vec![0; bucket(u64::MAX) + 1],
            greatest: 0,
        }
    }

    /// Adds a value. Those of a part come in a row.
    pub(super) fn add(&mut self, at_ns: u64, value: u64) {
        let part = self.clock.part(at_ns);
        if part != self.now {
            self.finish();
            self.now = part;
        }
        self.counts[bucket(value)] += 1;
        self.greatest = self.greatest.max(value);
    }

    /// Ends the part that is counted.
    pub(super) fn finish(&mut self) {
        let before = self.bucket.len();
        for (bucket, count) in self.counts.iter_mut().enumerate() {
            if *count > 0 {
                self.bucket.push(bucket);
                self.count.push(std::mem::take(count));
            }
        }
        if self.bucket.len() > before {
            self.part.push(self.now);
            self.buckets.push(self.bucket.len() - before);
            self.max.push(std::mem::take(&mut self.greatest));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_in_order_and_narrow() {
        for value in 0..16 {
            assert_eq!(bucket(value), usize::try_from(value).expect("small"));
        }
        let buckets = (0..5_000).map(bucket).collect::<Vec<_>>();
        assert!(buckets.windows(2).all(|two| two[1] - two[0] <= 1));
        assert_eq!(
            [31, 32, 33, 34, 62, 63, 64].map(bucket),
            [31, 32, 32, 33, 47, 47, 48]
        );
        assert_eq!(bucket(u64::MAX), 975);
    }

    #[test]
    fn a_span_is_cut_at_the_parts() {
        let clock = Clock::new((1_000, 1_000 + 10 * PARTS as u64));
        let cut = |shift, from, to| clock.pieces(shift, from, to).collect::<Vec<_>>();
        assert_eq!(cut(0, 1_003, 1_007), [(0, 4)]);
        assert_eq!(cut(0, 1_003, 1_025), [(0, 7), (1, 10), (2, 5)]);
        assert_eq!(cut(1, 1_003, 1_025), [(0, 17), (1, 5)]);
        // What is after the end belongs to the last part.
        assert_eq!(cut(0, 3_385, 3_900), [(238, 5), (239, 510)]);
    }

    #[test]
    fn values_are_counted_by_part() {
        let mut sizes = Sizes::new(Clock::new((0, 10 * PARTS as u64)));
        for (at, value) in [(1, 5), (2, 5), (3, 100), (25, 7)] {
            sizes.add(at, value);
        }
        sizes.finish();
        assert_eq!((sizes.part, sizes.buckets), (vec![0, 2], vec![2, 1]));
        assert_eq!((sizes.bucket, sizes.count), (vec![5, 57, 7], vec![2, 1, 1]));
        assert_eq!(sizes.max, [100, 7]);
    }
}
