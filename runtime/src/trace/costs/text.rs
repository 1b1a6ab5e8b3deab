//! The text of a term, cut to what profiles and recordings keep of it.

use crate::term::Term;

/// Parts of a term, and bytes of its text, that a record holds.
const PARTS: i64 = 24;
pub(in crate::trace) const TEXT: usize = 120;

pub(in crate::trace) fn text_of(term: Term<'_>) -> String {
    let bytes = term.display_cut(PARTS).to_bytes();
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    text.truncate(text.floor_char_boundary(TEXT));
    text
}
