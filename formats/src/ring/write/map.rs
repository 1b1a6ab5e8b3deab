//! Maps a ring file into memory: all memory that a recording is written to.
//!
//! Invariants:
//! - RM1: the mapping covers whole pages of a file whose blocks were allocated before, so that no write to it can fail
//!   for want of space; the file is locked against others that would make it shorter.
//! - RM2: nobody holds a reference to mapped memory other than as atomic words, which any thread, and any process that
//!   maps the file too, may read and write at any time.
#![expect(unsafe_code, reason = "mapped memory is reached by address")]

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::atomic::AtomicU64;

use memmap2::{Advice, MmapOptions, MmapRaw};

use crate::ring::model::layout::PAGE;

/// A mapped ring file.
pub(in crate::ring) struct Map {
    raw: MmapRaw,
}

impl Map {
    /// Maps the whole of a file of `length` bytes, which is a multiple of the page size.
    pub(in crate::ring) fn of(file: &File, length: usize) -> io::Result<Map> {
        assert!(length.is_multiple_of(PAGE) && length > 0, "whole pages");
        let raw = MmapOptions::new().len(length).map_raw(file)?;
        Ok(Map { raw })
    }

    /// The whole mapping as words.
    #[inline(always)]
    pub(in crate::ring) fn words(&self) -> &[AtomicU64] {
        let (start, bytes) = (self.raw.as_mut_ptr(), self.raw.len());
        // SAFETY: RM1: the bytes are mapped, for reading and writing, as long as `self` is there, and a mapping
        // begins at a page, which is aligned; RM2: nobody refers to them otherwise.
        unsafe { std::slice::from_raw_parts(start.cast::<AtomicU64>(), bytes / 8) }
    }
    /// Asks the system to make the memory of these bytes now. Older systems do not know this request.
    pub(in crate::ring) fn populate(&self, bytes: Range<usize>) {
        let _ = self
            .raw
            .advise_range(Advice::PopulateWrite, bytes.start, bytes.len());
    }
}
