//! Reads the container of a `.beam` file: an IFF file of the form `BEAM`, plain or compressed with gzip, and its
//! checksum.

use std::borrow::Cow;
use std::io::Read;

use beamline_runtime_base::hash::md5::Md5;

use super::error::{BeamError, BeamErrorKind};
use super::reader::Reader;

/// The largest unpacked file or literal table that is accepted, in bytes.
pub const MAX_UNPACKED_BYTES: usize = 512 << 20;

/// The chunks of a file that mean something to the runtime; absent ones are empty.
///
/// Where a chunk occurs twice, the last one counts, as in ERTS.
#[derive(Clone, Copy, Default)]
pub struct Chunks<'a> {
    chunks: [&'a [u8]; KNOWN.len()],
}

const KNOWN: [[u8; 4]; 16] = [
    *b"AtU8", *b"Code", *b"StrT", *b"ImpT", *b"ExpT", *b"FunT", *b"LitT", *b"Attr", *b"CInf",
    *b"Line", *b"LocT", *b"Atom", *b"Type", *b"Meta", *b"DbgB", *b"Recs",
];

impl<'a> Chunks<'a> {
    /// Finds the chunks of an unpacked file.
    ///
    /// # Errors
    /// In chunk `FOR1`: not a BEAM file, or a chunk that does not fit.
    pub fn parse(file: &'a [u8]) -> Result<Self, BeamError> {
        let mut chunks = Chunks::default();
        for_each_chunk(file, |id, data| {
            if let Some(i) = KNOWN.iter().position(|known| *known == id) {
                chunks.chunks[i] = data;
            }
        })?;
        Ok(chunks)
    }

    /// The data of a chunk; empty where there is none.
    ///
    /// # Panics
    /// When `id` is none of the chunks that the runtime knows: a mistake in the caller.
    #[must_use]
    pub fn get(&self, id: &[u8; 4]) -> &'a [u8] {
        let i = KNOWN
            .iter()
            .position(|known| known == id)
            .expect("a known chunk");
        self.chunks[i]
    }

    pub(super) fn reader(&self, id: &[u8; 4]) -> Reader<'a> {
        Reader::new(*id, self.get(id))
    }

    /// The checksum that `Module:module_info(md5)` gives: over the chunks that say what the module
    /// does, with the old unique number of each lambda taken as zero.
    ///
    /// # Errors
    /// In `FunT`, when its rows are not whole; without a table of atoms.
    /// Source: end of `beamfile_read()` in `beam_file.c`.
    pub fn md5(&self) -> Result<[u8; 16], BeamError> {
        if self.get(b"AtU8").is_empty() {
            return Err(BeamError {
                chunk: *b"AtU8",
                offset: 0,
                kind: BeamErrorKind::MissingChunk,
            });
        }
        let mut md5 = Md5::new();
        for id in [b"AtU8", b"Code", b"StrT", b"ImpT", b"ExpT"] {
            md5.update(self.get(id));
        }
        let lambdas = self.get(b"FunT");
        if let Some((count, rows)) = lambdas.split_at_checked(4) {
            md5.update(count);
            let rows = rows.chunks_exact(24);
            if !rows.remainder().is_empty() {
                let offset = lambdas.len() - rows.remainder().len();
                return Err(BeamError {
                    chunk: *b"FunT",
                    offset,
                    kind: BeamErrorKind::Truncated,
                });
            }
            for row in rows {
                md5.update(&row[..20]);
                md5.update(&[0; 4]);
            }
        } else if !lambdas.is_empty() {
            return Err(BeamError {
                chunk: *b"FunT",
                offset: 0,
                kind: BeamErrorKind::Truncated,
            });
        }
        for id in [b"LitT", b"Meta", b"Recs", b"DbgB"] {
            md5.update(self.get(id));
        }
        Ok(md5.finish())
    }
}

/// The data of any one chunk of an unpacked file (the last of that name), or `None`.
///
/// # Errors
/// In chunk `FOR1`: not a BEAM file, or a chunk that does not fit.
pub fn find_chunk(file: &[u8], id: [u8; 4]) -> Result<Option<&[u8]>, BeamError> {
    let mut found = None;
    for_each_chunk(file, |chunk, data| {
        if chunk == id {
            found = Some(data);
        }
    })?;
    Ok(found)
}

fn for_each_chunk<'a>(
    file: &'a [u8],
    mut visit: impl FnMut([u8; 4], &'a [u8]),
) -> Result<(), BeamError> {
    let mut header = Reader::new(*b"FOR1", file);
    if file.len() < 4 || header.bytes(4)? != b"FOR1" {
        return Err(header.err_at(0, BeamErrorKind::NotABeamFile));
    }
    let form_bytes = header.count(1)?;
    // Only the form counts; what follows it is not ours.
    let mut reader = Reader::new(*b"FOR1", &file[..8 + form_bytes]);
    reader.bytes(8)?;
    if reader.bytes(4)? != b"BEAM" {
        return Err(reader.err_at(8, BeamErrorKind::NotABeamFile));
    }
    while reader.remaining() > 0 {
        let mut id = [0; 4];
        id.copy_from_slice(reader.bytes(4)?);
        let size = reader.count(1)?;
        let data = reader.bytes(size)?;
        reader.bytes(size.next_multiple_of(4) - size)?;
        visit(id, data);
    }
    Ok(())
}

/// The file itself, unpacked where it is compressed with gzip.
///
/// # Errors
/// In chunk `FOR1`: damaged compressed data, or more than [`MAX_UNPACKED_BYTES`].
pub fn unpack(file: &[u8]) -> Result<Cow<'_, [u8]>, BeamError> {
    if !file.starts_with(&[0x1f, 0x8b]) {
        return Ok(Cow::Borrowed(file));
    }
    let decoder = flate2::read::MultiGzDecoder::new(file);
    inflate(decoder, file.len(), MAX_UNPACKED_BYTES)
        .map(Cow::Owned)
        .map_err(|kind| BeamError {
            chunk: *b"FOR1",
            offset: 0,
            kind,
        })
}

/// Unpacks a stream of `packed_bytes`, at most `max_bytes` of it.
pub(super) fn inflate(
    decoder: impl Read,
    packed_bytes: usize,
    max_bytes: usize,
) -> Result<Vec<u8>, BeamErrorKind> {
    let max_bytes = max_bytes.min(MAX_UNPACKED_BYTES);
    let guess = max_bytes.min(packed_bytes.saturating_mul(4));
    let mut unpacked = Vec::with_capacity(guess);
    decoder
        .take(max_bytes as u64 + 1)
        .read_to_end(&mut unpacked)
        .map_err(|_| BeamErrorKind::BadCompression)?;
    if unpacked.len() > max_bytes {
        return Err(BeamErrorKind::TooLarge(unpacked.len() as u64));
    }
    Ok(unpacked)
}
