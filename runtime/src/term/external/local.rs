//! The local format: terms that only the machine that wrote them reads again.

use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;

/// The check number of `bytes` in the local format: salted, so that what another machine wrote (or
/// this one in another life) is refused. Opaque, as ERTS's own is.
pub(super) fn check_number(bytes: &[u8]) -> u32 {
    static SALT: OnceLock<u32> = OnceLock::new();
    let salt = *SALT.get_or_init(|| RandomState::new().hash_one(std::process::id()) as u32);
    crate::hash::checksum::crc32(salt, bytes)
}
