//! What call paths and functions cost with all that they called.

use beamline_formats::profile::{Node, Profile};

/// What a function costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sum {
    /// By itself.
    pub(crate) own: u64,
    /// With all that it called. A path counts once, however often the function is on it.
    pub(crate) total: u64,
}

/// Of each node, the cost of it and of all nodes below it.
pub(crate) fn costs_with_callees(profile: &Profile, cost: impl Fn(&Node) -> u64) -> Vec<u64> {
    let mut costs: Vec<u64> = profile.nodes.iter().map(cost).collect();
    // Children come after their parents: from the end on, each node has all that is below it.
    for at in (0..profile.nodes.len()).rev() {
        if let Some(parent) = profile.nodes[at].parent {
            let parent = parent as usize;
            costs[parent] = costs[parent].saturating_add(costs[at]);
        }
    }
    costs
}

/// The nodes above a node, its caller's first.
pub(crate) fn callers<'a>(profile: &'a Profile, node: &Node) -> impl Iterator<Item = &'a Node> {
    let of = |index: Option<u32>| index.map(|index| &profile.nodes[index as usize]);
    std::iter::successors(of(node.parent), move |node| of(node.parent))
}

/// Of each node, whether its function is on its path once only: it is no part of another call of that function.
pub(crate) fn outermost(profile: &Profile) -> Vec<bool> {
    let is_above =
        |node: &Node| callers(profile, node).any(|above| above.function == node.function);
    profile.nodes.iter().map(|node| !is_above(node)).collect()
}

/// What each function costs, where nodes cost this, and this with all below, and where `outermost` is of this profile.
pub(crate) fn function_sums(
    profile: &Profile,
    cost: impl Fn(&Node) -> u64,
    with_callees: &[u64],
    outermost: &[bool],
) -> Vec<Sum> {
    let mut sums = vec![Sum::default(); profile.functions.len()];
    for (at, node) in profile.nodes.iter().enumerate() {
        let sum = &mut sums[node.function as usize];
        sum.own = sum.own.saturating_add(cost(node));
        if outermost[at] {
            sum.total = sum.total.saturating_add(with_callees[at]);
        }
    }
    sums
}

#[cfg(test)]
pub(crate) mod tests {
    use beamline_formats::profile::{Cost, Function};

    use super::*;

    /// A profile with a path for each row, the oldest function first: a letter each, with its own time.
    pub(crate) fn profile(rows: &[(&str, u64)]) -> Profile {
        let mut profile = Profile::default();
        let mut paths: Vec<&str> = Vec::new();
        for (path, time_ns) in rows {
            let (parent, name) = path.split_at(path.len() - 1);
            let at = paths.iter().position(|known| *known == parent);
            let function = Function {
                module: "m".into(),
                name: name.into(),
                arity: 0,
            };
            let known = profile.functions.iter().position(|of| *of == function);
            let function = known.unwrap_or_else(|| {
                profile.functions.push(function);
                profile.functions.len() - 1
            });
            profile.nodes.push(Node {
                process: 0,
                parent: at.map(|at| at as u32),
                function: function as u32,
                cost: Cost {
                    time_ns: *time_ns,
                    ..Cost::default()
                },
                reductions: 0,
                wait_ns: 0,
            });
            paths.push(path);
        }
        profile
    }

    #[test]
    fn a_path_counts_once_for_each_function_that_is_on_it() {
        let time = |node: &Node| node.cost.time_ns;
        let rows = [
            ("m", 1),
            ("me", 2),
            ("meo", 4),
            ("meoe", 8),
            ("meoei", 16),
            ("mei", 32),
        ];
        let profile = profile(&rows);
        let with_callees = costs_with_callees(&profile, time);
        assert_eq!(with_callees, [63, 62, 28, 24, 16, 32]);
        let outermost = outermost(&profile);
        assert_eq!(outermost, [true, true, true, false, true, true]);
        let sums = function_sums(&profile, time, &with_callees, &outermost);
        let sums: Vec<_> = sums.iter().map(|sum| (sum.own, sum.total)).collect();
        assert_eq!(sums, [(1, 63), (10, 62), (4, 28), (48, 48)]);
    }
}
