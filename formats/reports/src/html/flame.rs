//! The call paths of the page, what they cost in all and in each part of the time, and their functions.

use std::collections::BTreeMap;

use beamline_formats::name;
use beamline_formats::profile::{Native, Node, Origin, Profile};
use beamline_formats::ring::{Group, Recording};
use serde::Serialize;

use super::parts::InPart;
use super::tables::{Tables, missing};
use crate::events::calls::Costs;
use crate::flamegraph;
use crate::sums::{costs_with_callees, function_sums, outermost};

/// Call paths: those that cost most in whatever way.
#[derive(Default, Serialize)]
pub(super) struct Flame {
    /// Why there are none; or empty.
    missing: String,
    left: u64,
    function: Vec<u32>,
    color: Vec<String>,
    /// What kind of native code a function is, as numbers in files; 0 is none.
    native: Vec<u64>,
    /// Whether a function is the program's own, and not a library's.
    is_app: Vec<u8>,
    /// What each function cost, that of paths that are left out too.
    costs: Vec<Width>,
    process: Vec<u32>,
    /// Index of the caller, and 1; 0 is none.
    parent: Vec<u32>,
    /// Of which function it is.
    of: Vec<u32>,
    widths: Vec<Width>,
    cells: Cells,
}

/// What paths cost in parts of the time. Those of a path come in a row.
#[derive(Default, Serialize)]
struct Cells {
    /// How many of the page's parts are one here.
    factor: u64,
    /// For each path, how many cells it has of its own, and how many of paths that are left out below it.
    own: Vec<u32>,
    below: Vec<u32>,
    part: Vec<usize>,
    /// Of each width that there is.
    costs: Vec<Vec<i64>>,
}

/// A cost that can be the width of a frame.
#[derive(Serialize)]
struct Width {
    name: &'static str,
    is_time: bool,
    own: Vec<u64>,
    total: Vec<u64>,
}

type CostOf = fn(&Node) -> u64;
type InPartOf = fn(&Costs) -> i64;

/// A width that there may be: its name, whether it is a time, and its costs.
type Kind = (&'static str, bool, CostOf, InPartOf);

/// Widths of calls.
const WIDTHS: [Kind; 6] = [
    (
        "time",
        true,
        |node| node.cost.time_ns,
        |costs| signed(costs.time_ns),
    ),
    (
        "calls",
        false,
        |node| node.cost.calls,
        |costs| signed(costs.calls),
    ),
    ("words", false, |node| node.cost.words, |costs| costs.words),
    (
        "reductions",
        false,
        |node| node.reductions,
        |costs| costs.reductions,
    ),
    (
        "wait",
        true,
        |node| node.wait_ns,
        |costs| signed(costs.wait_ns),
    ),
    (
        "dirty_wait",
        true,
        |node| node.cost.dirty_wait_ns,
        |costs| signed(costs.dirty_wait_ns),
    ),
];

/// The width of samples, of which each stands for a time.
const SAMPLES: [Kind; 1] = [(
    "samples",
    false,
    |node| node.cost.time_ns,
    |costs| signed(costs.time_ns),
)];

fn signed(cost: u64) -> i64 {
    i64::try_from(cost).unwrap_or(i64::MAX)
}

/// The nodes that are shown, in their order: those with the largest share in anything.
fn shown(nodes: &[Node], totals: &[Vec<u64>], most: usize) -> Vec<usize> {
    let mut shown: Vec<usize> = (0..nodes.len()).collect();
    if nodes.len() <= most {
        return shown;
    }
    let mut share = vec![0.0_f64; nodes.len()];
    for totals in totals {
        let roots = nodes.iter().zip(totals);
        let all = roots
            .filter(|(node, _)| node.parent.is_none())
            .fold(0_u64, |sum, (_, total)| sum.saturating_add(*total));
        for (share, total) in share.iter_mut().zip(totals) {
            #[expect(clippy::cast_precision_loss, reason = "of two shares the larger")]
            let of = *total as f64 / all.max(1) as f64;
            *share = share.max(of);
        }
    }
    // A caller's share is never less than that of what it calls, and it comes first: it is there too.
    shown.sort_by(|a, b| share[*b].total_cmp(&share[*a]).then_with(|| a.cmp(b)));
    shown.truncate(most);
    shown.sort_unstable();
    shown
}

/// What is missing in a recording without calls; or empty, as of samples.
pub(super) fn needs(recording: &Recording) -> String {
    if recording.sampling().is_some() {
        return String::new();
    }
    missing(recording, "calls", &[Group::Calls, Group::Returns])
}

/// The path that a path is shown in: its own number and 1, or that of the next caller that is shown; 0 is none.
fn shown_in(nodes: &[Node], shown: &[usize]) -> Vec<usize> {
    let mut numbers = vec![0; nodes.len()];
    for (number, at) in (1..).zip(shown) {
        numbers[*at] = number;
    }
    // Callers come before what they call.
    for at in 0..nodes.len() {
        if numbers[at] == 0
            && let Some(parent) = nodes[at].parent
        {
            numbers[at] = numbers[parent as usize];
        }
    }
    numbers
}

impl Cells {
    /// Of the paths that are shown, for these widths.
    fn of(
        (cells, shift): (Vec<InPart>, u32),
        numbers: &[usize],
        shown: &[usize],
        widths: &[InPartOf],
    ) -> Cells {
        let mut out = Cells {
            factor: 1 << shift,
            own: vec![0; shown.len()],
            below: vec![0; shown.len()],
            costs: vec![Vec::new(); widths.len()],
            ..Cells::default()
        };
        // By path; its own, and then those below it; by part.
        let mut sums = BTreeMap::<(usize, bool, usize), Vec<i64>>::new();
        for cell in cells {
            let Some(number) = numbers[cell.node].checked_sub(1) else {
                continue;
            };
            let key = (number, shown[number] != cell.node, cell.part);
            let sum = sums.entry(key).or_insert_with(|| vec![0; widths.len()]);
            for (sum, width) in sum.iter_mut().zip(widths) {
                *sum = sum.saturating_add(width(&cell.costs));
            }
        }
        for ((number, is_below, part), costs) in sums {
            let counts = if is_below {
                &mut out.below
            } else {
                &mut out.own
            };
            counts[number] += 1;
            out.part.push(part);
            for (column, cost) in out.costs.iter_mut().zip(costs) {
                column.push(cost);
            }
        }
        out
    }
}

impl Cells {
    /// Has costs count in this unit.
    fn divide(&mut self, unit: u64) {
        let costs = self.costs.iter_mut().flatten();
        costs.for_each(|cost| *cost /= signed(unit));
    }
}

impl Flame {
    /// The paths of a recording and its profile, at most so many.
    pub(super) fn of(
        recording: &Recording,
        profile: &Profile,
        most: usize,
        cells: (Vec<InPart>, u32),
        tables: &mut Tables<'_>,
    ) -> Flame {
        // A sample counts 1, whatever time it stands for.
        let (kinds, unit) = match recording.sampling() {
            Some(sampling) => (&SAMPLES[..], sampling.period_ns().max(1)),
            None => (&WIDTHS[..], 1),
        };
        let missing = needs(recording);
        if !missing.is_empty() {
            return Flame {
                missing,
                ..Flame::default()
            };
        }
        let nodes = &profile.nodes;
        let outermost = outermost(profile);
        let totals = kinds.iter();
        let totals = totals.map(|(_, _, cost, _)| costs_with_callees(profile, cost));
        let totals: Vec<Vec<u64>> = totals.collect();
        let shown = shown(nodes, &totals, most);
        let numbers = shown_in(nodes, &shown);
        let mut out = Flame {
            left: (nodes.len() - shown.len()) as u64,
            ..Flame::default()
        };
        out.functions(profile, tables);
        out.paths(profile, &shown, &numbers, tables);
        let mut in_parts = Vec::new();
        for ((name, is_time, cost, in_part), totals) in kinds.iter().copied().zip(totals) {
            if totals.iter().all(|total| *total == 0) {
                continue;
            }
            in_parts.push(in_part);
            let width = |own: Vec<u64>, total: Vec<u64>| Width {
                name,
                is_time,
                own: own.into_iter().map(|own| own / unit).collect(),
                total: total.into_iter().map(|total| total / unit).collect(),
            };
            let sums = function_sums(profile, cost, &totals, &outermost);
            let (own, total) = sums.iter().map(|sum| (sum.own, sum.total)).unzip();
            out.costs.push(width(own, total));
            let own = shown.iter().map(|at| cost(&nodes[*at])).collect();
            let total = shown.iter().map(|at| totals[*at]).collect();
            out.widths.push(width(own, total));
        }
        out.cells = Cells::of(cells, &numbers, &shown, &in_parts);
        out.cells.divide(unit);
        out
    }

    fn functions(&mut self, profile: &Profile, tables: &mut Tables<'_>) {
        for function in &profile.functions {
            let text = name::mfa(&function.module, &function.name, function.arity);
            self.function.push(tables.text(&text));
            let native = profile.native(function);
            let color = flamegraph::css_color(&function.module, &function.name, native);
            self.color.push(color);
            self.native.push(native.map_or(0, Native::number));
            let is_app = profile.origin(&function.module) == Origin::App;
            self.is_app.push(u8::from(is_app));
        }
    }

    fn paths(
        &mut self,
        profile: &Profile,
        shown: &[usize],
        numbers: &[usize],
        tables: &mut Tables<'_>,
    ) {
        let processes = profile.processes.iter();
        let processes =
            processes.map(|process| tables.process(process.pid.parse().unwrap_or_default()));
        let processes: Vec<u32> = processes.collect();
        for at in shown {
            let node = &profile.nodes[*at];
            self.process.push(processes[node.process as usize]);
            let parent = node.parent.map_or(0, |parent| numbers[parent as usize]);
            self.parent.push(u32::try_from(parent).unwrap_or(u32::MAX));
            self.of.push(node.function);
        }
    }
}
