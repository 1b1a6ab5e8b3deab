//! Terms in the texts of errors, as the emulator prints them, cut to what the texts have room for.

use crate::term::Term;

/// Characters of an error's text.
const TEXT_LIMIT: usize = 99;

/// `term`, at least [`TEXT_LIMIT`] characters of it if it has as many.
pub(super) fn shown(term: Term<'_>) -> String {
    let shown = term.display_cut(TEXT_LIMIT as i64).to_bytes();
    String::from_utf8_lossy(&shown).into_owned()
}

/// `text`, cut to [`TEXT_LIMIT`] bytes.
pub(super) fn cut(mut text: String) -> String {
    let mut end = TEXT_LIMIT.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text
}
