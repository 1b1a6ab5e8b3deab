//! Finds which regressions only follow from another one. One change of a program makes a function do more, and with it
//! the functions that it calls more often and the totals of the workload.

use std::collections::BTreeMap;

use beamline_formats::profile::Pattern;

use super::change::Change;
use super::limits::Metric;
use super::results::{FunctionCount, Workload};

/// The part of a total's growth that functions must account for.
const MOST: f64 = 0.8;

/// A growth of a call's cost that is none.
const SAME: f64 = 1.01;

/// Says of each regression from which function it follows, where it follows from one.
pub(super) fn name_causes(
    [base, new]: [&Workload; 2],
    totals: &mut [Change],
    functions: &mut [Change],
) {
    let regressed = functions.iter();
    let regressed = regressed.filter(|change| change.verdict.is_regression());
    let regressed = regressed.filter_map(|change| change.function.clone());
    let mut causes: BTreeMap<String, Option<String>> =
        regressed.map(|function| (function, None)).collect();
    let found: Vec<(String, Option<String>)> = causes
        .keys()
        .map(|function| (function.clone(), cause([base, new], function, &causes)))
        .collect();
    causes.extend(found);
    let root = |function: &str| {
        let mut at = function;
        // A circle of functions that call each other has no end; all of it follows from its last.
        for _ in 0..causes.len() {
            match causes.get(at).and_then(Option::as_deref) {
                Some(next) if next != function => at = next,
                _ => break,
            }
        }
        at.to_owned()
    };
    for change in functions.iter_mut() {
        let Some(function) = &change.function else {
            continue;
        };
        if causes.contains_key(function) {
            change.cause = Some(root(function)).filter(|root| root != function);
        }
    }
    let most = |metric| most_of(totals, functions, metric);
    let [words, reductions] = [Metric::Words, Metric::Reductions].map(most);
    for total in totals {
        total.cause = match total.metric {
            Metric::Reductions => reductions.clone(),
            // Collections come of words.
            Metric::Words | Metric::Collections => words.clone(),
            Metric::Calls | Metric::Messages | Metric::Processes => None,
        };
    }
}

/// The function of which a function's regression is a part: the one in whose text the compiler found it, or one that calls it
/// more often, while a call of it does the same as before.
fn cause(
    [base, new]: [&Workload; 2],
    function: &str,
    regressed: &BTreeMap<String, Option<String>>,
) -> Option<String> {
    let mine = |owner: &String| owner != function && regressed.contains_key(owner);
    if let Some(owner) = owner(function).filter(mine) {
        return Some(owner);
    }
    let count = |side: &Workload| {
        side.functions
            .iter()
            .find(|c| c.function == function)
            .cloned()
    };
    if !is_only_called_more(&count(base)?, &count(new)?) {
        return None;
    }
    let mut callers = new.paths.iter().filter_map(|path| {
        let (before, last) = path.path.rsplit_once(';')?;
        let caller = before.rsplit(';').next()?;
        (last == function).then(|| caller.to_owned())
    });
    callers.find(mine)
}

/// The function in whose text a fun or a comprehension is: `m:-f/1-fun-0-/1` is in `m:f/1`.
fn owner(function: &str) -> Option<String> {
    let pattern: Pattern = function.parse().ok()?;
    let (module, name, _) = pattern.function()?;
    // A fun in a fun has two of these.
    let text = name.strip_prefix('-')?.trim_start_matches('-');
    let (name, rest) = text.split_once('/')?;
    let arity: u32 = rest.split('-').next()?.parse().ok()?;
    Some(beamline_formats::name::mfa(module, name, arity))
}

fn is_only_called_more(base: &FunctionCount, new: &FunctionCount) -> bool {
    let per_call = |of: &FunctionCount, value: u64| value as f64 / of.calls.max(1) as f64;
    let is_same = |before: u64, after: u64| per_call(new, after) <= per_call(base, before) * SAME;
    let reductions = [base, new].map(|of| of.reductions.unwrap_or(0));
    new.calls > base.calls
        && is_same(base.words, new.words)
        && is_same(reductions[0], reductions[1])
}

/// The function whose regression has most to do with the growth of a total, if functions that regressed account for it.
fn most_of(totals: &[Change], functions: &[Change], metric: Metric) -> Option<String> {
    let growth = |change: &Change| change.new.saturating_sub(change.base);
    let total = totals.iter().find(|change| change.metric == metric)?;
    let mut roots: BTreeMap<&str, u64> = BTreeMap::new();
    for change in functions.iter().filter(|change| change.metric == metric) {
        let Some(function) = &change.function else {
            continue;
        };
        let root = change.cause.as_ref().unwrap_or(function);
        let of = roots.entry(root).or_default();
        *of = of.saturating_add(growth(change));
    }
    let is_regressed = |root: &str| {
        functions.iter().any(|change| {
            change.function.as_deref() == Some(root) && change.verdict.is_regression()
        })
    };
    roots.retain(|root, _| is_regressed(root));
    let sum = roots
        .values()
        .fold(0_u64, |sum, of| sum.saturating_add(*of));
    let (most, _) = roots.into_iter().max_by_key(|(_, of)| *of)?;
    (growth(total) > 0 && sum as f64 >= growth(total) as f64 * MOST).then(|| most.to_owned())
}
