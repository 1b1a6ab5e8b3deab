//! Tells programs the number of the process they run in, and addresses in its memory.

use std::sync::atomic::{AtomicU32, Ordering};

use beamline_settings::chance::Chance;

use super::{form, os};

/// The process number that programs get in every run: one that no process of Linux has, so that nobody signals a
/// stranger by it.
const VIRTUAL_PID: u32 = 1 << 22;

/// The number of this process, for the names of files that the machine itself writes.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "chance is asked for here")]
pub fn own_pid() -> u32 {
    std::process::id()
}

/// The number of this thread, for files that the machine itself writes.
#[must_use]
pub fn own_tid() -> u32 {
    os::thread_number()
}

/// The number of this process, for programs.
#[must_use]
pub fn told_pid() -> u32 {
    match form() {
        Chance::Live | Chance::Linked { .. } => own_pid(),
        Chance::Virtual { .. } => VIRTUAL_PID,
    }
}

/// The name of this machine, for programs: the same one in every virtual run.
#[must_use]
pub fn host_name() -> Vec<u8> {
    match form() {
        Chance::Live | Chance::Linked { .. } => {
            rustix::system::uname().nodename().to_bytes().to_vec()
        }
        Chance::Virtual { .. } => b"localhost".to_vec(),
    }
}

/// What tells a thing from others, to programs: its address, or where addresses are not told a number in order of
/// the first question. `number` is the thing's own, 0 until then.
pub fn told_address(address: usize, number: &AtomicU32) -> usize {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    match form() {
        Chance::Live | Chance::Linked { .. } => address,
        Chance::Virtual { .. } => {
            let mut told = number.load(Ordering::Relaxed);
            if told == 0 {
                // No other thread does so at once: there is one scheduler then.
                told = NEXT.fetch_add(1, Ordering::Relaxed);
                number.store(told, Ordering::Relaxed);
            }
            told as usize
        }
    }
}
