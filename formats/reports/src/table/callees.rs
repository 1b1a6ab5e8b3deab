//! What functions cost with all that they called.

use std::collections::{HashMap, HashSet};

use beamline_formats::profile::{Function, Profile, Type};

use super::Measure;
use crate::sums::{costs_with_callees, outermost};

/// The cost with callees of each function that a group of processes called.
pub(super) struct WithCallees<'a> {
    totals: HashMap<(usize, &'a Function), u64>,
}

impl<'a> WithCallees<'a> {
    /// Whether a profile can say it: each process has its costs by call paths too. Where files are merged, some may not.
    pub(super) fn is_known(profile: &Profile) -> bool {
        if profile.kind().is_none_or(|kind| kind == Type::CallCount) {
            return false;
        }
        let with_paths: HashSet<u32> = profile.nodes.iter().map(|node| node.process).collect();
        let mut counted = profile.counts.iter().filter_map(|count| count.process);
        !with_paths.is_empty() && counted.all(|process| with_paths.contains(&process))
    }

    /// The costs of a profile, if they are known. `group` says of which group a process of a run is.
    pub(super) fn of(
        profile: &'a Profile,
        measure: Measure,
        group: impl Fn(u32, Option<u32>) -> usize,
    ) -> WithCallees<'a> {
        let mut totals: HashMap<(usize, &Function), u64> = HashMap::new();
        if Self::is_known(profile) {
            let costs = costs_with_callees(profile, |node| measure.value(node.cost));
            let all = profile.nodes.iter().zip(costs).zip(outermost(profile));
            for ((node, cost), _) in all.filter(|(_, is_outermost)| *is_outermost) {
                let function = &profile.functions[node.function as usize];
                let run = profile.processes[node.process as usize].run;
                let group = group(run, Some(node.process));
                let total = totals.entry((group, function)).or_default();
                *total = total.saturating_add(cost);
            }
        }
        WithCallees { totals }
    }

    /// The cost of a function in a group.
    pub(super) fn total(&self, group: usize, function: &Function) -> Option<u64> {
        self.totals.get(&(group, function)).copied()
    }
}
