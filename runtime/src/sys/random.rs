//! Random bytes from the operating system.

use std::sync::atomic::{AtomicU64, Ordering};

use rustix::io::{Errno, retry_on_intr};
use rustix::rand::{GetRandomFlags, getrandom};

/// What a deterministic run draws from instead; 0: it is not deterministic.
static SEQUENCE: AtomicU64 = AtomicU64::new(0);

/// Where that sequence begins.
const SEED: u64 = 0x2545_f491_4f6c_dd1d;

/// Has the same bytes drawn in every run: no secret can be made of them.
pub fn set_deterministic() {
    SEQUENCE.store(SEED, Ordering::Relaxed);
}

/// The next number of the sequence, if there is one. Source: SplitMix64, Steele, Lea, Flood, 2014.
fn next_of_sequence() -> Option<u64> {
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
    if SEQUENCE.load(Ordering::Relaxed) == 0 {
        return None;
    }
    let mut z = SEQUENCE.fetch_add(STEP, Ordering::Relaxed);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    Some(z ^ (z >> 31))
}

/// Fills `bytes` with what the kernel's generator gives.
///
/// # Errors
/// Its error.
pub fn fill(mut bytes: &mut [u8]) -> Result<(), Errno> {
    while let Some(number) = next_of_sequence()
        && !bytes.is_empty()
    {
        let count = bytes.len().min(8);
        bytes[..count].copy_from_slice(&number.to_le_bytes()[..count]);
        bytes = &mut bytes[count..];
    }
    while !bytes.is_empty() {
        let got = retry_on_intr(|| getrandom(&mut *bytes, GetRandomFlags::empty()))?;
        bytes = &mut bytes[got..];
    }
    Ok(())
}
