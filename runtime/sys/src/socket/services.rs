//! The system's list of services: names and ports.
//!
//! Invariant SV1: the C library answers in memory of its own, which its next answer overwrites: it is asked, and what it
//! has answered is copied, under the lock.

use std::ffi::{CStr, CString};

use parking_lot::Mutex;

/// Held while the C library is asked.
static ASKED: Mutex<()> = Mutex::new(());

/// The port of a service.
#[must_use]
pub fn port_of(name: &[u8], protocol: &[u8]) -> Option<u16> {
    let (name, protocol) = (CString::new(name).ok()?, CString::new(protocol).ok()?);
    let _asked = ASKED.lock();
    // SAFETY: SV1: texts that end; the answer is null or a row.
    let row = unsafe { libc::getservbyname(name.as_ptr(), protocol.as_ptr()).as_ref() }?;
    Some(u16::from_be(row.s_port as u16))
}

/// The service of a port.
#[must_use]
pub fn name_of(port: u16, protocol: &[u8]) -> Option<Vec<u8>> {
    let protocol = CString::new(protocol).ok()?;
    let _asked = ASKED.lock();
    // SAFETY: SV1: a text that ends; the answer is null or a row, whose name ends with a zero.
    unsafe {
        let row = libc::getservbyport(port.to_be().into(), protocol.as_ptr()).as_ref()?;
        Some(CStr::from_ptr(row.s_name).to_bytes().to_vec())
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_service_that_is_listed_is_found_both_ways_and_others_not() {
        match super::port_of(b"http", b"tcp") {
            Some(port) => {
                assert_eq!(port, 80);
                assert_eq!(super::name_of(80, b"tcp").as_deref(), Some(&b"http"[..]));
            }
            // This machine has no list.
            None => assert_eq!(super::name_of(80, b"tcp"), None),
        }
        assert_eq!(super::port_of(b"no such service", b"tcp"), None);
    }
}
