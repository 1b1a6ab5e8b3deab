//! The counters that a recording can have: what a processor or an operating system counts while programs run.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A recording has at most this many counters. Processors have few more.
pub const COUNTERS_MAX: usize = 4;

/// The values of the counters, in the order in which the user asked for them. The others are 0.
pub type Counted = [u64; COUNTERS_MAX];

macro_rules! counters {
    ($($(#[doc = $doc:literal])* $counter:ident, $name:literal, $hardware:literal;)*) => {
        /// See the module.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Counter { $($(#[doc = $doc])* $counter,)* }

        impl Counter {
            /// All of them.
            pub const ALL: &'static [Counter] = &[$(Counter::$counter),*];

            /// As the command line writes it.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Counter::$counter => $name,)* }
            }

            /// The processor counts it; otherwise the operating system does, everywhere.
            #[must_use]
            pub fn is_hardware(self) -> bool {
                match self { $(Counter::$counter => $hardware,)* }
            }
        }
    };
}

counters! {
    /// Instructions that were carried out.
    Instructions, "instructions", true;
    /// Cycles of the processor.
    Cycles, "cycles", true;
    /// Reads and writes that found nothing in the last cache.
    CacheMisses, "cache-misses", true;
    /// Reads and writes that got to the last cache.
    CacheReferences, "cache-references", true;
    /// Branches.
    Branches, "branches", true;
    /// Branches that went the other way than was guessed.
    BranchMisses, "branch-misses", true;
    /// Nanoseconds on a processor.
    TaskClock, "task-clock", false;
    /// Pages that were not there.
    PageFaults, "page-faults", false;
    /// How often a thread was taken off its processor, or left it.
    ContextSwitches, "context-switches", false;
}

impl Counter {
    /// What every machine has.
    pub const SOFTWARE: [Counter; 3] = [
        Counter::TaskClock,
        Counter::PageFaults,
        Counter::ContextSwitches,
    ];
}

impl fmt::Display for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Counter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Counter::ALL.iter().find(|counter| counter.name() == text);
        found.copied().ok_or_else(|| {
            let names: Vec<&str> = Counter::ALL.iter().map(|counter| counter.name()).collect();
            format!(
                "'{text}' is not a counter; the counters are {}",
                names.join(", ")
            )
        })
    }
}

/// Adds `more` to `sum`, counter by counter.
pub fn add(sum: &mut Counted, more: &Counted) {
    for (sum, more) in sum.iter_mut().zip(more) {
        *sum = sum.saturating_add(*more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_as_they_are_written() {
        for counter in Counter::ALL {
            assert_eq!(counter.name().parse(), Ok(*counter));
            let json = serde_json::to_string(counter).expect("it is a text");
            assert_eq!(json, format!("\"{counter}\""));
        }
        assert!("heat".parse::<Counter>().is_err());
        assert!(
            !Counter::SOFTWARE
                .iter()
                .any(|counter| counter.is_hardware())
        );
    }
}
