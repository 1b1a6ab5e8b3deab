//! Notes what a virtual run takes from outside nevertheless: what it may wait for, and what cannot be the same
//! everywhere and so is named in its result.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use beamline_settings::chance::Chance;
use parking_lot::Mutex;

use super::form;

/// Names kept; of more it is only told that there are.
const NAMES: usize = 100;

static TAKEN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
/// Programs that run.
static PROGRAMS: AtomicUsize = AtomicUsize::new(0);

/// Something is taken from outside: a virtual run notes it.
pub fn take(what: impl FnOnce() -> String) {
    match form() {
        Chance::Live | Chance::Linked { .. } => {}
        Chance::Virtual { .. } => {
            let mut taken = TAKEN.lock();
            if taken.len() < NAMES {
                taken.insert(what());
            } else {
                taken.insert("~ and more".to_owned());
            }
        }
    }
}

/// Forgets what was noted: it was boot's.
pub fn forget() {
    TAKEN.lock().clear();
}

/// What was noted, in order.
pub fn taken() -> Vec<String> {
    TAKEN.lock().iter().cloned().collect()
}

/// A program was started, and will be waited for.
pub fn program_started() {
    PROGRAMS.fetch_add(1, Ordering::AcqRel);
}

/// It has ended, and all that is to be told of it has been.
pub fn program_ended() {
    PROGRAMS.fetch_sub(1, Ordering::AcqRel);
}

/// Does a program run?
#[inline]
pub fn has_programs() -> bool {
    PROGRAMS.load(Ordering::Acquire) != 0
}
