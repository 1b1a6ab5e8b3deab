//! What the compiler knows of a module's registers, from the `Type` chunk: which hold small integers, and between which
//! numbers these are. As in ERTS, the loader trusts the types of a file.

use crate::term::tag::{MAX_SMALL, MIN_SMALL};

/// Small integers, from the least to the greatest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    /// The least.
    pub(crate) least: i64,
    /// The greatest, not below it.
    pub(crate) most: i64,
}

impl Range {
    /// The numbers between these two; `None` where one of them is no small integer.
    pub(crate) fn of(least: i128, most: i128) -> Option<Range> {
        let bounds = i128::from(MIN_SMALL)..=i128::from(MAX_SMALL);
        let is_small = bounds.contains(&least) && bounds.contains(&most) && least <= most;
        is_small.then_some(Range {
            least: least as i64,
            most: most as i64,
        })
    }
}

/// A register that an instruction reads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Read {
    /// Offset of the instruction, in words.
    pub(crate) at: u32,
    /// The register, as operands have it.
    pub(crate) reg: u16,
    /// Row of its type.
    row: u16,
}

/// What is known of the registers that instructions read.
#[derive(Debug, Default)]
pub(crate) struct Types {
    /// By row of the chunk; `None` for what may be anything but a small integer.
    rows: Box<[Option<Range>]>,
    /// Ascending.
    reads: Vec<Read>,
}

impl Types {
    /// Of a chunk with these rows, of no instruction yet.
    pub(super) fn new(rows: Box<[Option<Range>]>) -> Types {
        Types {
            rows,
            reads: Vec::new(),
        }
    }

    /// The instruction at `at`, behind all others so far, reads `reg`, whose type is in this row.
    pub(super) fn read(&mut self, at: u32, reg: u16, row: u32) {
        let known = self.rows.get(row as usize).copied().flatten();
        if let (Some(_), Ok(row)) = (known, u16::try_from(row)) {
            self.reads.push(Read { at, reg, row });
        }
    }

    /// All of them are there.
    pub(super) fn trim(&mut self) {
        self.reads.shrink_to_fit();
    }

    /// What the instructions from this one on read, ascending.
    pub(crate) fn reads_from(&self, at: u32) -> &[Read] {
        &self.reads[self.reads.partition_point(|read| read.at < at)..]
    }

    /// Between which numbers that register is there.
    pub(crate) fn range(&self, read: Read) -> Option<Range> {
        self.rows[read.row as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_of_small_integers() {
        let (most, least) = (i128::from(MAX_SMALL), i128::from(MIN_SMALL));
        assert!(Range::of(least, most).is_some());
        assert_eq!(Range::of(least - 1, 0), None);
        assert_eq!(Range::of(0, most + 1), None);
        assert_eq!(Range::of(1, 0), None);
    }

    #[test]
    fn reads_of_known_types_are_kept() {
        let byte = Range {
            least: 0,
            most: 255,
        };
        let mut types = Types::new(Box::new([None, Some(byte)]));
        types.read(3, 8, 1);
        types.read(5, 16, 0);
        types.read(5, 24, 1);
        types.read(9, 8, 7);
        let kept = |from| -> Vec<(u32, u16)> {
            let reads = types.reads_from(from);
            reads.iter().map(|read| (read.at, read.reg)).collect()
        };
        assert_eq!(kept(0), [(3, 8), (5, 24)]);
        assert_eq!(kept(4), [(5, 24)]);
        assert_eq!(types.range(types.reads_from(4)[0]), Some(byte));
    }
}
