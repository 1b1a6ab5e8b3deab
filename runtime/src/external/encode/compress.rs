//! Compresses encoded bytes, a part at a time.

use flate2::{Compress, FlushCompress, Status};

use super::super::VERSION_MAGIC;
use super::super::tags::COMPRESSED;

/// Version, tag and size before what is compressed.
const HEAD_BYTES: usize = 6;

/// A compression under way. It is given up where the result would be no shorter than what is compressed.
pub(crate) struct Compression {
    plain: Vec<u8>,
    zlib: Compress,
    out: Vec<u8>,
    /// Whether it is done, or given up.
    is_over: bool,
    is_shorter: bool,
}

/// The start of a compression, where one is worth while.
pub(crate) enum Compressing {
    /// A compression.
    More(Compression),
    /// Nothing: the bytes are too few to become fewer.
    Plain(Vec<u8>),
}

impl Compression {
    /// Begins with the bytes of a term, version included; level -1 stands for the usual one.
    #[must_use]
    pub(crate) fn begin(plain: Vec<u8>, level: i32) -> Compressing {
        if plain.len() <= HEAD_BYTES {
            return Compressing::Plain(plain);
        }
        let level =
            u32::try_from(level).map_or(flate2::Compression::default(), flate2::Compression::new);
        let mut out = vec![VERSION_MAGIC, COMPRESSED];
        out.extend((plain.len() as u32 - 1).to_be_bytes());
        Compressing::More(Compression {
            plain,
            zlib: Compress::new(level, true),
            out,
            is_over: false,
            is_shorter: false,
        })
    }

    /// Goes on until `most_bytes` more have been written; is it over?
    pub(crate) fn run(&mut self, most_bytes: usize) -> bool {
        let from = self.out.len();
        let room = (self.plain.len() - from).min(most_bytes);
        self.out.resize(from + room, 0);
        let read = 1 + self.zlib.total_in() as usize;
        let before = self.zlib.total_out();
        let status = self.zlib.compress(
            &self.plain[read..],
            &mut self.out[from..],
            FlushCompress::Finish,
        );
        let written = (self.zlib.total_out() - before) as usize;
        self.out.truncate(from + written);
        self.is_shorter = matches!(status, Ok(Status::StreamEnd));
        self.is_over = self.is_shorter || status.is_err() || self.out.len() == self.plain.len();
        self.is_over
    }

    /// Bytes written so far.
    #[must_use]
    pub(crate) fn written_bytes(&self) -> usize {
        self.out.len() - HEAD_BYTES
    }

    /// The shorter of what was compressed and what became of it, when it is over.
    #[must_use]
    pub(crate) fn finish(self) -> Vec<u8> {
        debug_assert!(self.is_over, "compressed to the end");
        if self.is_shorter {
            self.out
        } else {
            self.plain
        }
    }
}
