//! Gives random bytes.

use std::sync::atomic::{AtomicU64, Ordering};

use beamline_settings::chance::Chance;
use beamline_settings::random;
use rustix::io::{Errno, retry_on_intr};
use rustix::rand::{GetRandomFlags, getrandom};

use super::form;

/// Where the sequence begins that is the same in every run: no secret can be made of it.
const SEED: u64 = 0x2545_f491_4f6c_dd1d;

/// The next number of that sequence.
fn next_of_sequence() -> u64 {
    static SEQUENCE: AtomicU64 = AtomicU64::new(SEED);
    random::mixed(SEQUENCE.fetch_add(random::STEP, Ordering::Relaxed))
}

/// Fills `bytes`: with what the kernel's generator gives, or with the next of the sequence.
///
/// # Errors
/// The kernel's.
pub fn fill(bytes: &mut [u8]) -> Result<(), Errno> {
    match form() {
        Chance::Live | Chance::Linked { .. } => fill_from_kernel(bytes),
        Chance::Virtual { .. } => {
            for part in bytes.chunks_mut(8) {
                part.copy_from_slice(&next_of_sequence().to_le_bytes()[..part.len()]);
            }
            Ok(())
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "chance is asked for here")]
fn fill_from_kernel(mut bytes: &mut [u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        let got = retry_on_intr(|| getrandom(&mut *bytes, GetRandomFlags::empty()))?;
        bytes = &mut bytes[got..];
    }
    Ok(())
}
