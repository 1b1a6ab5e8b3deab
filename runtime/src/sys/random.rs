//! Random bytes from the operating system.

use rustix::io::{Errno, retry_on_intr};
use rustix::rand::{GetRandomFlags, getrandom};

/// Fills `bytes` with what the kernel's generator gives.
///
/// # Errors
/// Its error.
pub fn fill(mut bytes: &mut [u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        let got = retry_on_intr(|| getrandom(&mut *bytes, GetRandomFlags::empty()))?;
        bytes = &mut bytes[got..];
    }
    Ok(())
}
