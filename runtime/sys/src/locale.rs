//! Reads the character set of the environment's locale.
//!
//! Invariant L1: the C library's locale is set once, from one thread at a time, and the name it reports is read before
//! anybody sets it again.
#![expect(unsafe_code, reason = "locales are the C library's")]

use std::ffi::CStr;
use std::sync::OnceLock;

/// Does the environment (`LC_ALL`, `LC_CTYPE`, `LANG`) ask for UTF-8? Sets the C library's character
/// types with the first call, as ERTS does.
#[must_use]
pub fn is_utf8() -> bool {
    static UTF8: OnceLock<bool> = OnceLock::new();
    *UTF8.get_or_init(|| {
        // SAFETY: L1: `OnceLock` makes this the only call.
        let set = unsafe { libc::setlocale(libc::LC_CTYPE, c"".as_ptr()) };
        if set.is_null() {
            return false;
        }
        // SAFETY: L1: the name is a string that stays until the locale is set again.
        let codeset = unsafe { CStr::from_ptr(libc::nl_langinfo(libc::CODESET)) };
        codeset == c"UTF-8"
    })
}

unsafe extern "C" {
    fn wcwidth(c: libc::wchar_t) -> libc::c_int;
}

/// Columns that the character `c` takes on a terminal, by the environment's locale; `None` where it
/// cannot be printed.
#[must_use]
pub fn column_width(c: u32) -> Option<u32> {
    let _ = is_utf8();
    let c = libc::wchar_t::try_from(c).ok()?;
    // SAFETY: L1: reads the locale only.
    u32::try_from(unsafe { wcwidth(c) }).ok()
}
