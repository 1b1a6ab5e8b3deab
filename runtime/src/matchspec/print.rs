//! Prints terms in the texts of errors as the emulator does, cut to the room that the texts have.
//!
//! A text is what ERTS has in a buffer of bytes: each of its characters is one byte, a part of UTF-8 perhaps.

use crate::term::Term;

/// Characters of an error's text.
const TEXT_LIMIT: usize = 99;

/// `term`, at least [`TEXT_LIMIT`] characters of it if it has as many.
pub(super) fn shown(term: Term<'_>) -> String {
    let shown = term.display_cut(TEXT_LIMIT as i64).to_bytes();
    shown.into_iter().map(char::from).collect()
}

/// `text`, cut to [`TEXT_LIMIT`] bytes.
pub(super) fn cut(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(TEXT_LIMIT) {
        text.truncate(end);
    }
    text
}
