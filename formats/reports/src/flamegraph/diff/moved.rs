//! Finds functions that are gone on one side and come on the other, and are probably one function under two names.

use std::collections::{BTreeMap, BTreeSet};

use beamline_formats::profile::Function;

/// What each function of a profile costs: calls, own and total.
type Costs<'p> = BTreeMap<&'p Function, [u64; 3]>;

/// A function that is on one side only, and its calls in each profile of that side.
type One<'p> = (&'p Function, Vec<u64>);

/// Whether two functions are one, the most telling first. A name alone says more than calls: code that moves to another
/// module keeps its name. A function without a name of its own keeps its arity and its calls.
const RULES: [fn(&One<'_>, &One<'_>) -> bool; 3] = [
    |(a, x), (b, y)| (&a.name, a.arity) == (&b.name, b.arity) && x == y,
    |(a, x), (b, y)| (&a.module, a.arity) == (&b.module, b.arity) && x == y,
    |(a, _), (b, _)| (&a.name, a.arity) == (&b.name, b.arity) && !a.name.starts_with('-'),
];

/// The functions of both sides with their names before and after, which are mostly the same.
pub(super) fn names<'p>(costs: &[Vec<Costs<'p>>; 2]) -> Vec<[&'p Function; 2]> {
    let sides = costs.each_ref().map(|profiles| {
        let functions = profiles.iter().flat_map(BTreeMap::keys).copied();
        functions.collect::<BTreeSet<&Function>>()
    });
    let only = |side: usize| -> Vec<One<'p>> {
        let functions = sides[side].difference(&sides[1 - side]);
        let calls = |function: &&'p Function| {
            let profiles = costs[side].iter();
            let mut calls: Vec<u64> = profiles
                .map(|costs| costs.get(*function).map_or(0, |costs| costs[0]))
                .collect();
            calls.sort_unstable();
            calls.dedup();
            (*function, calls)
        };
        functions.map(calls).collect()
    };
    let (mut gone, mut come) = (only(0), only(1));
    let both = sides[0].intersection(&sides[1]);
    let mut names: Vec<[&Function; 2]> = both.map(|&function| [function; 2]).collect();
    for is_same in RULES {
        gone.retain(|old| {
            // Where several fit, nothing says which of them it is.
            let mut fitting = (0..come.len()).filter(|&at| is_same(old, &come[at]));
            let (Some(at), None) = (fitting.next(), fitting.next()) else {
                return true;
            };
            let now = come.remove(at);
            names.push([old.0, now.0]);
            false
        });
    }
    let alone = gone.into_iter().chain(come);
    names.extend(alone.map(|(function, _)| [function; 2]));
    names
}
