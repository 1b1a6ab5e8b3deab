//! Names and numbers of interfaces, as the C library finds them.
//!
//! Invariant NM1: the C library gives a list of its own, which is copied and then freed.

use std::ffi::{CStr, CString, c_char};

use rustix::io::Errno;

use super::result;

/// The number of an interface.
///
/// # Errors
/// The system's.
pub fn interface_index(name: &CStr) -> Result<u32, Errno> {
    // SAFETY: SK1: a text that ends.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => Err(result(-1).err().unwrap_or(Errno::NODEV)),
        index => Ok(index),
    }
}

/// The name of an interface, if there is one of this number.
#[must_use]
pub fn interface_name(index: u32) -> Option<CString> {
    let mut name = [0u8; libc::IF_NAMESIZE];
    // SAFETY: SK1: there is room for a name.
    let found = unsafe { libc::if_indextoname(index, name.as_mut_ptr().cast::<c_char>()) };
    let name = CStr::from_bytes_until_nul(&name).ok()?;
    (!found.is_null()).then(|| name.to_owned())
}

/// The numbers and names of all interfaces.
///
/// # Errors
/// The system's.
pub fn interfaces() -> Result<Vec<(u32, CString)>, Errno> {
    // SAFETY: NM1: null, or a list.
    let first = unsafe { libc::if_nameindex() };
    if first.is_null() {
        result(-1)?;
    }
    let (mut all, mut next) = (Vec::new(), first);
    // SAFETY: NM1: rows up to one of zeros.
    while let Some(row) = unsafe { next.as_ref() }.filter(|row| row.if_index != 0) {
        // SAFETY: NM1: a name that ends; the next row is behind it.
        unsafe {
            all.push((row.if_index, CStr::from_ptr(row.if_name).to_owned()));
            next = next.add(1);
        }
    }
    // SAFETY: NM1: nothing of it is kept.
    unsafe { libc::if_freenameindex(first) };
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_of_interfaces_are_the_same_both_ways() {
        for (index, name) in interfaces().expect("they are listed") {
            assert_eq!(interface_index(&name), Ok(index));
            assert_eq!(interface_name(index).as_deref(), Some(&*name));
        }
        assert_eq!(interface_index(c"no such one"), Err(Errno::NODEV));
        assert_eq!(interface_name(u32::MAX), None);
    }
}
