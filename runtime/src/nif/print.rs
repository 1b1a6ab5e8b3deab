//! The text of terms, for the functions of `support.c` that print as C's `printf()` does.

use std::ffi::c_char;

use super::{api, term};
use crate::term::RawTerm;

unsafe extern "C" {
    fn enif_fprintf();
    fn enif_snprintf();
    fn enif_vfprintf();
    fn enif_vsnprintf();
    fn enif_make_tuple();
    fn enif_make_list();
    fn enif_set_option();
    fn enif_thread_exit();
}

/// The functions of `support.c`.
#[used]
pub(super) static IN_C: &[super::Symbol] = &[
    super::Symbol("enif_fprintf", enif_fprintf as *const ()),
    super::Symbol("enif_snprintf", enif_snprintf as *const ()),
    super::Symbol("enif_vfprintf", enif_vfprintf as *const ()),
    super::Symbol("enif_vsnprintf", enif_vsnprintf as *const ()),
    super::Symbol("enif_make_tuple", enif_make_tuple as *const ()),
    super::Symbol("enif_make_list", enif_make_list as *const ()),
    super::Symbol("enif_set_option", enif_set_option as *const ()),
    super::Symbol("enif_thread_exit", enif_thread_exit as *const ()),
];

api! {
    /// Copies as much of the text of a term as there is room for; how many bytes it has.
    fn beamline_nif_print(t: RawTerm, to: *mut c_char, room: usize) -> usize {
        let text = term(t).display().to_bytes();
        std::ptr::copy_nonoverlapping(text.as_ptr(), to.cast(), text.len().min(room));
        text.len()
    }
}
