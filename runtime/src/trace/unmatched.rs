//! Names the patterns of which no function was called, when the run ends, with functions whose names are like theirs.

use beamline_formats::profile::Pattern;

use crate::loader::module::{Mfa, all_versions};
use crate::sys::stderr::complain;

pub(super) fn is_meant(pattern: &Pattern, mfa: &Mfa) -> bool {
    pattern.matches(mfa.module.name(), mfa.function.name(), u32::from(mfa.arity))
}

/// Says on standard error of which of these patterns no function was called.
pub(super) fn tell(patterns: &[Pattern], is_called: impl Fn(&Pattern) -> bool) {
    for pattern in patterns.iter().filter(|pattern| !is_called(pattern)) {
        let all = all_versions();
        let functions = all.iter().flat_map(|code| {
            let functions = code.functions.iter();
            functions.map(|entry| code.mfa(*entry))
        });
        let functions: Vec<Mfa> = functions.collect();
        if functions.iter().any(|mfa| is_meant(pattern, mfa)) {
            complain!("beamline: no function of {pattern} was called");
            continue;
        }
        let names = functions
            .iter()
            .map(|mfa| (mfa.module.name(), mfa.function.name(), mfa.arity.into()));
        let near = pattern.near(names).join(", ");
        let near = match near.as_str() {
            "" => near,
            _ => format!("; near it: {near}"),
        };
        complain!("beamline: no function that was loaded is {pattern}{near}");
    }
}
