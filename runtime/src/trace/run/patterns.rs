//! The patterns of a run: which functions they match, and at the end of the run a file for the command that says which
//! patterns matched no call, with functions of similar names.

use std::path::Path;

use beamline_formats::profile::{Matched, Outcome, Pattern};

use super::span;
use crate::loader::module::{Mfa, all_versions};
use crate::sys::chance::names;
use crate::sys::stderr::complain;

pub(in crate::trace) fn is_meant(pattern: &Pattern, mfa: &Mfa) -> bool {
    pattern.matches(mfa.module.name(), mfa.function.name(), u32::from(mfa.arity))
}

/// Does one of the patterns match the function? Without patterns, every function is wanted.
pub(in crate::trace) fn is_wanted(patterns: &[Pattern], mfa: Mfa) -> bool {
    patterns.is_empty()
        || patterns.iter().any(|pattern| {
            pattern.matches(mfa.module.name(), mfa.function.name(), u32::from(mfa.arity))
        })
}

/// Writes to a file in this folder what became of these patterns, and of those that begin and end the measuring.
pub(in crate::trace) fn tell(
    patterns: &[Pattern],
    folder: &Path,
    is_called: impl Fn(&Pattern) -> bool,
) {
    let mut all: Vec<&Pattern> = patterns.iter().collect();
    span::of_run().for_each(|pattern| all.push(pattern));
    if all.is_empty() {
        return;
    }
    let matched = all.into_iter().map(|pattern| Matched {
        pattern: pattern.clone(),
        outcome: match span::came(pattern).unwrap_or_else(|| is_called(pattern)) {
            true => Outcome::Called,
            false => uncalled(pattern),
        },
    });
    let matched: Vec<Matched> = matched.collect();
    if let Err(error) = Matched::write(&matched, folder, names::own_pid()) {
        complain!("beamline: {}: {error}", folder.display());
    }
}

/// What became of a pattern of which no function was called.
fn uncalled(pattern: &Pattern) -> Outcome {
    let all = all_versions();
    let functions = all.iter().flat_map(|code| {
        let functions = code.functions.iter();
        functions.map(|entry| code.mfa(*entry))
    });
    let functions: Vec<Mfa> = functions.collect();
    if functions.iter().any(|mfa| is_meant(pattern, mfa)) {
        return Outcome::NotCalled;
    }
    let names = functions
        .iter()
        .map(|mfa| (mfa.module.name(), mfa.function.name(), mfa.arity.into()));
    Outcome::MeansNothing {
        near: pattern.near(names),
    }
}
