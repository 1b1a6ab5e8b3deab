//! The answers of native functions as bytes, for the order of a run: terms in the external format, without the version.

use super::{DecodeOptions, EncodeOptions, decode_bare, encode_bare};
use crate::process::Process;
use crate::process::order::answer::Written;
use crate::term::Term;

/// What the hook `WRITTEN` of `process/order/answer.rs` asks for.
pub(crate) const WRITTEN: Written = Written { write, read };

fn write(term: Term<'_>) -> Option<Vec<u8>> {
    encode_bare(term, EncodeOptions::default()).ok()
}

fn read<'p>(p: &'p Process, bytes: &[u8]) -> Option<Term<'p>> {
    let (term, used) = decode_bare(p, bytes, DecodeOptions::default()).ok()?;
    (used == bytes.len()).then_some(term)
}
