//! The frames of a stream, which its writer and its reader share: their parts and limits.
//!
//! A stream is a row of frames, each compressed for itself: the ring's own header, names, and blocks as they were
//! written, then its counters. See `docs/FORMAT.md`.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::layout::PAGE;

/// First bytes of a stream.
pub(in crate::ring) const MAGIC: [u8; 8] = *b"BLSTRM\r\n";

/// Bytes of a frame's head.
pub(in crate::ring) const HEAD: usize = 48;

/// The most bytes a frame holds, decompressed.
pub(in crate::ring) const FRAME_MAX: usize = 1 << 20;

/// Blocks of a frame, at most.
pub(in crate::ring) const FRAME_BLOCKS: u64 = (FRAME_MAX / PAGE) as u64;

/// Bytes of the ring's first parts together, at most: header, segment table, description.
pub(in crate::ring) const FIRST_MAX: usize = 64 << 20;

/// The contents of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::ring) enum Part {
    /// The ring file up to its names.
    First = 1,
    /// More names.
    Names = 2,
    /// Blocks of one segment.
    Blocks = 3,
    /// The ring's header as it was at the end, and the first page of every segment.
    Last = 4,
}

impl Part {
    pub(in crate::ring) fn of(number: u64) -> Option<Part> {
        [Part::First, Part::Names, Part::Blocks, Part::Last]
            .into_iter()
            .find(|part| *part as u64 == number)
    }
}

/// These bytes of a file.
pub(in crate::ring) fn read_at(file: &File, at: u64, bytes: u64) -> io::Result<Vec<u8>> {
    let mut buffer = vec![0; bytes as usize];
    file.read_exact_at(&mut buffer, at)?;
    Ok(buffer)
}
