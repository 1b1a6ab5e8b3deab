//! A cursor over one chunk's bytes. It checks every read, and every error names the chunk and the offset.

use super::error::{BeamError, BeamErrorKind};

/// Tags of the compact term encoding (the low three bits of its first byte).
pub(super) mod tag {
    pub(crate) const U: u8 = 0;
    pub(crate) const I: u8 = 1;
    pub(crate) const A: u8 = 2;
    pub(crate) const X: u8 = 3;
    pub(crate) const Y: u8 = 4;
    pub(crate) const F: u8 = 5;
    pub(crate) const Z: u8 = 7;
}

/// The number of a compact term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Number<'a> {
    /// Fits a word; not negative unless the tag is `I`.
    Word(i64),
    /// Two's complement, big-endian, of more than fits.
    Bytes(&'a [u8]),
}

/// Reads one chunk from front to back.
#[derive(Clone)]
pub(super) struct Reader<'a> {
    chunk: [u8; 4],
    data: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(chunk: [u8; 4], data: &'a [u8]) -> Self {
        Reader { chunk, data, at: 0 }
    }

    /// Bytes from the start of the chunk's data.
    pub(super) fn offset(&self) -> usize {
        self.at
    }

    pub(super) fn remaining(&self) -> usize {
        self.data.len() - self.at
    }

    /// An error at the present offset.
    pub(super) fn err(&self, kind: BeamErrorKind) -> BeamError {
        self.err_at(self.at, kind)
    }

    #[cold]
    pub(super) fn err_at(&self, offset: usize, kind: BeamErrorKind) -> BeamError {
        BeamError {
            chunk: self.chunk,
            offset,
            kind,
        }
    }

    #[inline]
    pub(super) fn bytes(&mut self, n: usize) -> Result<&'a [u8], BeamError> {
        let Some(bytes) = self.data[self.at..].get(..n) else {
            return Err(self.err(BeamErrorKind::Truncated));
        };
        self.at += n;
        Ok(bytes)
    }

    /// All bytes that are left.
    pub(super) fn rest(&mut self) -> &'a [u8] {
        let rest = &self.data[self.at..];
        self.at = self.data.len();
        rest
    }

    #[inline]
    pub(super) fn u8(&mut self) -> Result<u8, BeamError> {
        let Some(&b) = self.data.get(self.at) else {
            return Err(self.err(BeamErrorKind::Truncated));
        };
        self.at += 1;
        Ok(b)
    }

    pub(super) fn i32(&mut self) -> Result<i32, BeamError> {
        let mut word = [0; 4];
        word.copy_from_slice(self.bytes(4)?);
        Ok(i32::from_be_bytes(word))
    }

    pub(super) fn i64(&mut self) -> Result<i64, BeamError> {
        let mut word = [0; 8];
        word.copy_from_slice(self.bytes(8)?);
        Ok(i64::from_be_bytes(word))
    }

    /// A 32-bit count of items that take at least `item_bytes` of the bytes that follow it.
    pub(super) fn count(&mut self, item_bytes: usize) -> Result<usize, BeamError> {
        let at = self.at;
        let n = self.i32()?;
        self.check_count(at, i64::from(n), item_bytes)
    }

    /// Checks a count, read at `at`, against the bytes that are left.
    pub(super) fn check_count(
        &self,
        at: usize,
        n: i64,
        item_bytes: usize,
    ) -> Result<usize, BeamError> {
        match usize::try_from(n) {
            Ok(count) if count <= self.remaining() / item_bytes => Ok(count),
            _ => Err(self.err_at(at, BeamErrorKind::BadCount(n))),
        }
    }

    /// A 32-bit index below `count`.
    pub(super) fn index(&mut self, table: &'static str, count: usize) -> Result<u32, BeamError> {
        let at = self.at;
        let index = self.i32()?.cast_unsigned();
        if (index as usize) < count {
            Ok(index)
        } else {
            Err(self.err_at(
                at,
                BeamErrorKind::BadIndex {
                    table,
                    index: u64::from(index),
                    count,
                },
            ))
        }
    }

    /// A 32-bit arity, in `0..=255`.
    pub(super) fn arity(&mut self) -> Result<u8, BeamError> {
        let at = self.at;
        let n = self.i32()?;
        u8::try_from(n).map_err(|_| self.err_at(at, BeamErrorKind::BadArity(i64::from(n))))
    }

    /// One compact term: its tag (see [`tag`]) and its number.
    ///
    /// First byte: three bits of tag; then bit 3 clear: a number of 4 bits; bit 4 clear: of 11 bits,
    /// the low 8 in the next byte; else the upper three bits plus 2 give how many bytes follow,
    /// or, when all set, another compact term of tag `U` plus 9 does.
    /// Source: `beamreader_read_tagged()` of `beam_file.c`.
    #[inline]
    pub(super) fn tagged(&mut self) -> Result<(u8, Number<'a>), BeamError> {
        let first = self.u8()?;
        let tag = first & 7;
        if first & 0x08 == 0 {
            return Ok((tag, Number::Word(i64::from(first >> 4))));
        }
        if first & 0x10 == 0 {
            let low = self.u8()?;
            return Ok((
                tag,
                Number::Word(i64::from(first >> 5) << 8 | i64::from(low)),
            ));
        }
        self.tagged_long(first)
    }

    fn tagged_long(&mut self, first: u8) -> Result<(u8, Number<'a>), BeamError> {
        let tag = first & 7;
        let count = match first >> 5 {
            7 => self.long_size()?,
            n => usize::from(n) + 2,
        };
        let bytes = self.bytes(count)?;
        if count > 8 {
            return Ok((tag, Number::Bytes(bytes)));
        }
        let negative = bytes[0] & 0x80 != 0;
        let mut word = if tag == tag::I && negative {
            [0xff; 8]
        } else {
            [0; 8]
        };
        word[8 - count..].copy_from_slice(bytes);
        let value = i64::from_be_bytes(word);
        if tag != tag::I && value < 0 {
            return Ok((tag, Number::Bytes(bytes)));
        }
        Ok((tag, Number::Word(value)))
    }

    /// The byte count of a number of nine bytes or more. Not itself of that size: a deep nest of
    /// sizes would mean a number larger than any file.
    fn long_size(&mut self) -> Result<usize, BeamError> {
        let at = self.at;
        let first = self.u8()?;
        if first & 7 != tag::U {
            return Err(self.err_at(at, BeamErrorKind::BadTag(first & 7)));
        }
        if first & 0xf8 == 0xf8 {
            return Err(self.err_at(at, BeamErrorKind::Truncated));
        }
        self.at = at;
        match self.tagged()?.1 {
            Number::Word(n) if n <= i64::from(i32::MAX) - 9 => Ok(n as usize + 9),
            _ => Err(self.err_at(at, BeamErrorKind::Truncated)),
        }
    }

    /// A compact term of tag `U` that fits 31 bits.
    pub(super) fn unsigned(&mut self) -> Result<u32, BeamError> {
        let at = self.at;
        match self.tagged()? {
            (tag::U, Number::Word(n)) if n <= i64::from(i32::MAX) => Ok(n as u32),
            (tag::U, _) => Err(self.err_at(at, BeamErrorKind::Truncated)),
            (t, _) => Err(self.err_at(at, BeamErrorKind::BadTag(t))),
        }
    }
}
