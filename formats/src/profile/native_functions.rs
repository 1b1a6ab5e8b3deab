//! Functions in native code, and where they run.

use beamline_settings::names;
use serde::{Deserialize, Serialize};

/// What kind of native code a function is, as the runtime tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Native {
    /// It runs on ordinary schedulers.
    Ordinary = 1,
    /// It runs, at least in part, on dirty CPU schedulers.
    DirtyCpu,
    /// It runs, at least in part, on dirty I/O schedulers.
    DirtyIo,
}

names!(Native {
    Ordinary = "native", "Native code on an ordinary scheduler";
    DirtyCpu = "dirty CPU", "Native code on a dirty CPU scheduler";
    DirtyIo = "dirty I/O", "Native code on a dirty I/O scheduler";
});

impl Native {
    /// Its number in files; 0 is no native code.
    #[must_use]
    pub fn number(self) -> u64 {
        self as u64
    }

    /// The one with this number.
    #[must_use]
    pub fn of(number: u64) -> Option<Native> {
        let mut all = Native::ALL.iter().copied();
        all.find(|native| native.number() == number)
    }

    /// As a sentence begins that is about the schedulers it runs on.
    pub fn name_of_schedulers(self) -> &'static str {
        match self {
            Native::Ordinary => "Ordinary",
            Native::DirtyCpu => "Dirty CPU",
            Native::DirtyIo => "Dirty I/O",
        }
    }
}

/// What stands above a function that waits for a dirty scheduler, where paths are of time in which nothing ran.
pub const WAITS_FOR_DIRTY: &str = "(waits for a dirty scheduler)";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_numbers() {
        for native in Native::ALL {
            assert_eq!(Native::of(native.number()), Some(*native));
        }
        assert_eq!((Native::of(0), Native::of(4)), (None, None));
    }
}
