//! Chooses what the profiler `perf` of Linux learns of compiled code.

use serde::{Deserialize, Serialize};

use crate::variable::Variable;

/// What an emulator writes for `perf`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Perf {
    /// A list of addresses with the names of functions.
    Map,
    /// Each function with its machine code, its lines, and when it was compiled.
    Jitdump,
}

impl Perf {
    /// Both of them.
    pub const ALL: &'static [Perf] = &[Perf::Map, Perf::Jitdump];

    /// Its name, as users write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Perf::Map => "map",
            Perf::Jitdump => "jitdump",
        }
    }

    /// What it is, for help.
    #[must_use]
    pub fn about(self) -> &'static str {
        match self {
            Perf::Map => {
                "Write /tmp/perf-PID.map: `perf report` and samply show names of functions"
            }
            Perf::Jitdump => {
                "Write /tmp/jit-PID.dump: after `perf inject --jit`, `perf annotate` shows machine code and lines too"
            }
        }
    }
}

/// The variable's value is the name alone: users set it, too.
impl Variable for Perf {
    const VARIABLE: &'static str = "BEAMLINE_PERF";

    fn to_variable(&self) -> Result<String, String> {
        Ok(self.name().to_owned())
    }

    fn from_variable(value: &str) -> Result<Perf, String> {
        let found = Perf::ALL.iter().find(|perf| perf.name() == value).copied();
        found.ok_or_else(|| format!("{}: {value} is neither map nor jitdump", Self::VARIABLE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_holds_a_name() {
        for perf in Perf::ALL {
            let value = perf.to_variable().unwrap();
            assert_eq!(Perf::from_variable(&value), Ok(*perf));
        }
        let error = Perf::from_variable("dump").unwrap_err();
        assert_eq!(error, "BEAMLINE_PERF: dump is neither map nor jitdump");
    }
}
