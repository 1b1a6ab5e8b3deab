//! The local format: terms that only the machine that wrote them can read again.

use std::sync::OnceLock;

use crate::sys::chance::random;

/// The check number of `bytes` in the local format: salted, so that what another machine wrote (or
/// this one in another life) is refused. Opaque, as ERTS's own is.
pub(super) fn check_number(bytes: &[u8]) -> u32 {
    static SALT: OnceLock<u32> = OnceLock::new();
    let salt = *SALT.get_or_init(|| {
        let mut salt = [0; 4];
        random::fill(&mut salt).expect("the kernel gives random bytes");
        u32::from_le_bytes(salt)
    });
    crate::hash::checksum::crc32(salt, bytes)
}
