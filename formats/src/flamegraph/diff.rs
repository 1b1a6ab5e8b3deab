//! Compares two profiles: what has got better, and what has got worse.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::{self, Write};

use serde::Serialize;

use super::{Drawing, Width, fold, paint_difference};
use crate::name::{self, time};
use crate::profile::{Function, Profile, Type};

/// Rows of each table.
const ROWS: usize = 15;

/// The cost of a function before and after.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Change {
    /// As Erlang writes it.
    pub function: String,
    /// Calls before and after.
    pub calls: [u64; 2],
    /// Time in it, or words, before and after.
    pub own: [u64; 2],
    /// Time in it and in all it called, or words, before and after.
    pub total: [u64; 2],
}

impl Change {
    /// How much more it is after, of what the widths show.
    fn more(&self, width: Width) -> i128 {
        let [before, after] = if width == Width::Calls {
            self.calls
        } else {
            self.own
        };
        i128::from(after) - i128::from(before)
    }
}

/// The difference between two profiles.
#[derive(Clone, Debug, Serialize)]
pub struct Difference {
    width: Width,
    /// Time or words of all, before and after; calls where nothing else was measured.
    pub sum: [u64; 2],
    /// Each function, what got worse most first.
    pub functions: Vec<Change>,
}

fn costs(profile: &Profile, width: Width) -> BTreeMap<&Function, [u64; 3]> {
    let own = |at: usize| match width {
        Width::Calls => 0,
        width => width.cost(&profile.nodes[at]),
    };
    let mut below: Vec<u64> = (0..profile.nodes.len()).map(own).collect();
    // Children come after their parents: from the end on, each node has all that is below it.
    for index in (0..profile.nodes.len()).rev() {
        if let Some(parent) = profile.nodes[index].parent {
            below[parent as usize] = below[parent as usize].saturating_add(below[index]);
        }
    }
    let mut costs: BTreeMap<&Function, [u64; 3]> = BTreeMap::new();
    for (index, node) in profile.nodes.iter().enumerate() {
        let function = &profile.functions[node.function as usize];
        let sums = costs.entry(function).or_default();
        for (sum, cost) in sums
            .iter_mut()
            .zip([node.cost.calls, own(index), below[index]])
        {
            *sum = sum.saturating_add(cost);
        }
    }
    costs
}

/// What widths show unless it is said.
fn width_of(profile: &Profile) -> Width {
    profile.kind().map_or(Width::Time, Width::of)
}

impl Difference {
    /// Compares two profiles; of what is told by `width`, or by what was measured.
    ///
    /// # Errors
    /// One line when they have not measured the same, or have no call paths.
    pub fn of(
        before: &Profile,
        after: &Profile,
        width: Option<Width>,
    ) -> Result<Difference, String> {
        let kind = |profile: &Profile| profile.kind().map_or("nothing", Type::name);
        if before.kind() != after.kind() {
            return Err(format!(
                "the first has measured {}, the second {}: compare what has measured the same",
                kind(before),
                kind(after)
            ));
        }
        for (profile, which) in [(before, "first"), (after, "second")] {
            if profile.nodes.is_empty() {
                return Err(format!(
                    "the {which} has no call path: there is nothing to compare"
                ));
            }
        }
        let width = width.unwrap_or(width_of(before));
        let costs = [costs(before, width), costs(after, width)];
        let all: BTreeSet<&Function> = costs
            .iter()
            .flat_map(|costs| costs.keys().copied())
            .collect();
        let mut sum = [0_u64; 2];
        let mut functions = Vec::new();
        for function in all {
            let [before, after] =
                [0, 1].map(|at| costs[at].get(function).copied().unwrap_or_default());
            let change = Change {
                function: name::mfa(&function.module, &function.name, function.arity),
                calls: [before[0], after[0]],
                own: [before[1], after[1]],
                total: [before[2], after[2]],
            };
            let which = if width == Width::Calls {
                change.calls
            } else {
                change.own
            };
            for (sum, of) in sum.iter_mut().zip(which) {
                *sum = sum.saturating_add(of);
            }
            functions.push(change);
        }
        functions.sort_by_key(|change| std::cmp::Reverse(change.more(width)));
        Ok(Difference {
            width,
            sum,
            functions,
        })
    }

    /// Writes it as JSON.
    ///
    /// # Errors
    /// What `out` returns.
    pub fn write_json<W: Write>(&self, mut out: W) -> io::Result<()> {
        serde_json::to_writer_pretty(&mut out, self)?;
        out.write_all(b"\n")
    }
}

/// Draws the second profile, with the colour of what has become more (red) and less (blue) since the first.
///
/// # Errors
/// One line: nothing that was chosen is there, or `out` refuses a write.
pub fn draw_difference<W: Write>(
    before: &Profile,
    after: &Profile,
    drawing: &Drawing,
    out: W,
) -> Result<(), String> {
    let shape = &drawing.shape;
    if fold::check_profile(before, shape).is_err() {
        fold::check_profile(after, shape)?;
    }
    let [before, after] = [before, after].map(|profile| fold::costs(profile, shape));
    let stacks: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let lines = stacks.into_iter().map(|stack| {
        let [before, after] = [&before, &after].map(|costs| costs.get(stack).copied().unwrap_or(0));
        format!("{stack} {before} {after}")
    });
    paint_difference(lines.collect(), drawing, out)
}

fn number(width: Width, value: u64) -> String {
    match width {
        Width::Time | Width::Wait => time(value),
        _ => value.to_string(),
    }
}

/// A change with its sign.
fn signed(width: Width, [before, after]: [u64; 2]) -> String {
    let sign = if after < before { '-' } else { '+' };
    format!("{sign}{}", number(width, after.abs_diff(before)))
}

/// A change in percent of what was before.
fn percent([before, after]: [u64; 2]) -> String {
    if before == 0 {
        return if after == 0 { "=".into() } else { "new".into() };
    }
    if after == 0 {
        return "gone".into();
    }
    if after / 10 >= before {
        return format!("× {}", after / before);
    }
    let tenths = (i128::from(after) - i128::from(before)) * 1000 / i128::from(before);
    let sign = if tenths < 0 { '-' } else { '+' };
    let tenths = tenths.unsigned_abs();
    format!("{sign}{}.{} %", tenths / 10, tenths % 10)
}

impl Difference {
    fn table(&self, f: &mut fmt::Formatter<'_>, title: &str, rows: &[&Change]) -> fmt::Result {
        if rows.is_empty() {
            return Ok(());
        }
        writeln!(f, "\n{title}")?;
        if self.width == Width::Calls {
            writeln!(
                f,
                "{:>12} {:>12} {:>12} {:>9}  FUNCTION",
                "BEFORE", "AFTER", "CHANGE", ""
            )?;
            for row in rows {
                let ([before, after], change) = (row.calls, signed(self.width, row.calls));
                let percent = percent(row.calls);
                writeln!(
                    f,
                    "{before:>12} {after:>12} {change:>12} {percent:>9}  {}",
                    row.function
                )?;
            }
            return Ok(());
        }
        writeln!(
            f,
            "{:>12} {:>12} {:>12} {:>9} {:>12} {:>12} {:>9}  FUNCTION",
            "OWN BEFORE", "AFTER", "CHANGE", "", "TOTAL", "CALLS", "PER CALL"
        )?;
        for row in rows {
            let [before, after] = row.own.map(|own| number(self.width, own));
            let (own, total) = (signed(self.width, row.own), signed(self.width, row.total));
            let calls = signed(Width::Calls, row.calls);
            let per_call = [0, 1].map(|at| row.own[at].saturating_mul(1000) / row.calls[at].max(1));
            writeln!(
                f,
                "{before:>12} {after:>12} {own:>12} {:>9} {total:>12} {calls:>12} {:>9}  {}",
                percent(row.own),
                percent(per_call),
                row.function
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [before, after] = self.sum.map(|sum| number(self.width, sum));
        writeln!(
            f,
            "{} in all: {before} before, {after} after ({}, {})",
            self.width.title(),
            signed(self.width, self.sum),
            percent(self.sum)
        )?;
        let worse = self
            .functions
            .iter()
            .filter(|change| change.more(self.width) > 0);
        let better = self
            .functions
            .iter()
            .rev()
            .filter(|change| change.more(self.width) < 0);
        let (worse, better): (Vec<_>, Vec<_>) =
            (worse.take(ROWS).collect(), better.take(ROWS).collect());
        self.table(f, "Worse", &worse)?;
        self.table(f, "Better", &better)?;
        if worse.is_empty() && better.is_empty() {
            writeln!(f, "\nNothing has changed.")?;
        }
        Ok(())
    }
}
