//! The system's list of protocols.
//!
//! Invariant PE1: the C library answers in memory of its own, which its next answer overwrites: it is asked, and what it
//! has answered is copied, under the lock.

use std::ffi::{CStr, c_char, c_int};

use parking_lot::Mutex;

// As `netdb.h` declares them.
unsafe extern "C" {
    fn setprotoent(stay_open: c_int);
    fn getprotoent() -> *mut libc::protoent;
    fn endprotoent();
}

/// Held while the C library is asked.
static ASKED: Mutex<()> = Mutex::new(());

/// A protocol of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Protocol {
    /// Its name, and behind it others.
    pub names: Vec<String>,
    /// Its number.
    pub number: i32,
}

/// # Safety
/// PE1: it is a text of the answer.
unsafe fn text(at: *const c_char) -> String {
    // SAFETY: by contract.
    unsafe { CStr::from_ptr(at) }.to_string_lossy().into_owned()
}

/// All protocols of the list, in its order; none where there is no list.
#[must_use]
pub fn all() -> Vec<Protocol> {
    let _asked = ASKED.lock();
    let mut all = Vec::new();
    // SAFETY: PE1: under the lock.
    unsafe { setprotoent(1) };
    // SAFETY: PE1: null, or a row until the next call.
    while let Some(row) = unsafe { getprotoent().as_ref() } {
        // SAFETY: PE1: the name, and a list of others that ends with null.
        let names = unsafe {
            let mut names = vec![text(row.p_name)];
            let mut other = row.p_aliases;
            while !(*other).is_null() {
                names.push(text(*other));
                other = other.add(1);
            }
            names
        };
        all.push(Protocol {
            names,
            number: row.p_proto,
        });
    }
    // SAFETY: PE1: under the lock.
    unsafe { endprotoent() };
    all
}
