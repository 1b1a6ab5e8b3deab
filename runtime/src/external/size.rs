//! How many bytes a term takes.

use super::encode::{EncodeOptions, Piece, TooLarge, encode_pieces};
use crate::term::Term;

/// The bytes `term` takes, version included, not compressed. Off-heap binaries are not copied for it.
///
/// # Errors
/// [`TooLarge`].
pub fn external_size(term: Term<'_>, options: EncodeOptions) -> Result<usize, TooLarge> {
    let pieces = encode_pieces(term, options)?;
    Ok(pieces
        .0
        .iter()
        .map(|piece| match piece {
            Piece::Bytes(bytes) => bytes.len(),
            Piece::Shared(bits) => bits.byte_len(),
        })
        .sum())
}
