//! Compares two profiles, or several of each side: what has got better, and what has got worse.

mod moved;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::{self, Write};

use beamline_formats::name::{self, time};
use beamline_formats::profile::{Function, Node, Profile, Type, View};
use serde::Serialize;

use super::{Drawing, Width, fold, paint_difference};
use crate::rank::{SIGNIFICANT, median, p_value};
use crate::sums::{Sum, costs_with_callees, function_sums, outermost};

/// What the colours and edges of a differential flame graph mean.
pub const LEGEND: &str =
    "red with a full edge is more than before, blue with a broken edge is less, white is the same";

/// Rows of each table, unless it is said.
const ROWS: usize = 15;

/// Profiles of each side from which on the rank test can tell a change from chance.
const RANKED: usize = 5;

/// A factor that is no chance, if the difference is also as much as [`TIME_SLICES_NS`].
const FAR: u64 = 10;

/// Nanoseconds for which other programs may well have had the processor during one function: some time slices of Linux.
const TIME_SLICES_NS: u64 = 10_000_000;

/// The least change that counts. Two runs of one program differ by less.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Threshold {
    /// In percent of what it was before.
    pub change: f64,
    /// In percent of the whole.
    pub share: f64,
}

impl Threshold {
    /// What is said, else what fits the cost: times differ by chance, and counts by a little where processes run at once.
    #[must_use]
    pub fn new(width: Width, change: Option<f64>, share: Option<f64>) -> Threshold {
        let usual = match width {
            Width::Time | Width::Wait => (25.0, 1.0),
            Width::Calls | Width::Words | Width::Reductions => (1.0, 0.1),
        };
        Threshold {
            change: change.unwrap_or(usual.0),
            share: share.unwrap_or(usual.1),
        }
    }

    /// Does a change reach it, of a whole of this cost?
    fn is_reached(self, [before, after]: [u64; 2], whole: u64) -> bool {
        let change = before.abs_diff(after) as f64 * 100.0;
        change > 0.0 && change >= self.change * before as f64 && change >= self.share * whole as f64
    }
}

/// The cost of a function before and after.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Change {
    /// As Erlang writes it.
    pub function: String,
    /// Its name before, where it has another one now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub was: Option<String>,
    /// Calls before and after.
    pub calls: [u64; 2],
    /// Time in it, or words, before and after.
    pub own: [u64; 2],
    /// Time in it and in all it called, or words, before and after.
    pub total: [u64; 2],
    /// How probable such a difference is by chance, where there are enough profiles to say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p: Option<f64>,
    /// Whether it is more than the threshold and more than chance.
    pub changed: bool,
    /// Whether it is more than the threshold, and nothing says that it is more than chance.
    pub perhaps: bool,
}

impl Change {
    /// What the widths show.
    fn cost(&self, width: Width) -> [u64; 2] {
        match width {
            Width::Calls => self.calls,
            Width::Time | Width::Words | Width::Reductions | Width::Wait => self.own,
        }
    }

    /// Is a difference in time more than other programs can bring that have had the processor? What they take falls on all
    /// functions alike, but for the last time slice of each.
    fn is_far(&self) -> bool {
        let [low, high] = [self.own[0].min(self.own[1]), self.own[0].max(self.own[1])];
        high / FAR >= low && high - low >= TIME_SLICES_NS
    }

    /// Is a difference in time what a difference in calls brings? Times of one run alone prove nothing: another program may
    /// have had the processor.
    fn is_explained(&self) -> bool {
        let [before, after] = self.calls;
        if before == 0 || after == 0 {
            return before != after;
        }
        let per_call = [0, 1].map(|side| self.own[side] as f64 / self.calls[side] as f64);
        let ratio = per_call[1] / per_call[0].max(f64::MIN_POSITIVE);
        before.abs_diff(after) as f64 >= before as f64 / 100.0 && (0.67..=1.5).contains(&ratio)
    }

    /// What it is called, and was.
    fn name(&self) -> String {
        match &self.was {
            Some(was) => format!("{} (was {was})", self.function),
            None => self.function.clone(),
        }
    }

    /// How much more it is after, of what the widths show.
    fn more(&self, width: Width) -> i128 {
        let [before, after] = self.cost(width);
        i128::from(after) - i128::from(before)
    }
}

/// The difference between two profiles, or between the medians of several.
#[derive(Clone, Debug, Serialize)]
pub struct Difference {
    width: Width,
    threshold: Threshold,
    /// Profiles of each side.
    profiles: [usize; 2],
    #[serde(skip)]
    top: usize,
    #[serde(skip)]
    view: View,
    /// Time or words of all, before and after; calls where nothing else was measured.
    pub sum: [u64; 2],
    /// Each function, what got worse most first.
    pub functions: Vec<Change>,
}

/// Calls, and own cost and cost with callees, of each function.
fn costs(profile: &Profile, width: Width) -> BTreeMap<&Function, [u64; 3]> {
    let own = |node: &Node| match width {
        Width::Calls => 0,
        width => width.cost(node),
    };
    let with_callees = costs_with_callees(profile, own);
    let sums = function_sums(profile, own, &with_callees, &outermost(profile));
    let mut calls = vec![0_u64; sums.len()];
    for node in &profile.nodes {
        let sum = &mut calls[node.function as usize];
        *sum = sum.saturating_add(node.cost.calls);
    }
    let functions = profile.functions.iter().zip(calls).zip(sums);
    let functions = functions.filter(|((function, _), _)| !function.is_cut());
    let row = |((function, calls), sum): ((_, u64), Sum)| (function, [calls, sum.own, sum.total]);
    functions.map(row).collect()
}

/// Have all profiles measured the same, and call paths?
fn check(sides: [&[Profile]; 2]) -> Result<(), String> {
    let kind = |profile: &Profile| profile.kind().map_or("nothing", Type::name);
    let mut first = None;
    for (profiles, which) in sides.into_iter().zip(["first", "second"]) {
        for profile in profiles {
            let first = *first.get_or_insert(profile);
            if first.kind() != profile.kind() {
                return Err(format!(
                    "the first file measured {}, and the second {}: compare files of one type",
                    kind(first),
                    kind(profile)
                ));
            }
            if profile.nodes.is_empty() {
                return Err(format!(
                    "the {which} file has no call paths, so there is nothing to compare"
                ));
            }
        }
    }
    Ok(())
}

/// What has become of a function, which may have had another name before: the medians of each side.
fn change(
    names: [&Function; 2],
    costs: &[Vec<BTreeMap<&Function, [u64; 3]>>; 2],
    width: Width,
) -> Change {
    let values = |side: usize, which: usize| -> Vec<u64> {
        let profiles = costs[side].iter();
        profiles
            .map(|costs| costs.get(names[side]).map_or(0, |costs| costs[which]))
            .collect()
    };
    let medians = |which| [0, 1].map(|side| median(&values(side, which)).unwrap_or(0));
    let shown = match width {
        Width::Calls => 0,
        Width::Time | Width::Words | Width::Reductions | Width::Wait => 1,
    };
    let is_ranked = costs.iter().all(|profiles| profiles.len() >= RANKED);
    let written = |of: &Function| name::mfa(&of.module, &of.name, of.arity);
    Change {
        function: written(names[1]),
        was: (names[0] != names[1]).then(|| written(names[0])),
        calls: medians(0),
        own: medians(1),
        total: medians(2),
        p: is_ranked.then(|| p_value(&values(0, shown), &values(1, shown))),
        ..Change::default()
    }
}

/// The one of several profiles whose cost is the median.
#[must_use]
pub fn typical(profiles: &[Profile], width: Width) -> Option<&Profile> {
    let cost = |profile: &Profile| -> u64 {
        let nodes = profile.nodes.iter().map(|node| width.cost(node));
        nodes.fold(0, u64::saturating_add)
    };
    let mut sorted: Vec<&Profile> = profiles.iter().collect();
    sorted.sort_by_key(|profile| cost(profile));
    sorted.get(sorted.len() / 2).copied()
}

/// What widths show unless it is said.
fn width_of(profile: &Profile) -> Width {
    profile.kind().map_or(Width::Time, Width::of)
}

impl Difference {
    /// Compares profiles of the older and of the newer side, by `width`, or by what was measured.
    ///
    /// # Errors
    /// One line when they have not measured the same, or have no call paths.
    pub fn of(
        sides: [&[Profile]; 2],
        width: Option<Width>,
        threshold: impl FnOnce(Width) -> Threshold,
    ) -> Result<Difference, String> {
        check(sides)?;
        let width = width.unwrap_or_else(|| sides[0].first().map_or(Width::Time, width_of));
        let threshold = threshold(width);
        let costs = sides.map(|profiles| profiles.iter().map(|p| costs(p, width)).collect());
        let costs: [Vec<BTreeMap<&Function, [u64; 3]>>; 2] = costs;
        let names = moved::names(&costs);
        let mut functions: Vec<Change> = Vec::new();
        for names in names {
            functions.push(change(names, &costs, width));
        }
        let mut sum = [0_u64; 2];
        for function in &functions {
            for (sum, of) in sum.iter_mut().zip(function.cost(width)) {
                *sum = sum.saturating_add(of);
            }
        }
        let whole = sum[0].max(sum[1]);
        for function in &mut functions {
            let is_proved = match (function.p, width) {
                (Some(p), _) => p < SIGNIFICANT,
                (None, Width::Time | Width::Wait) => function.is_explained() || function.is_far(),
                (None, Width::Calls | Width::Words | Width::Reductions) => true,
            };
            let is_reached = threshold.is_reached(function.cost(width), whole);
            function.changed = is_reached && is_proved;
            function.perhaps = is_reached && !is_proved && function.p.is_none();
        }
        functions.sort_by_key(|change| std::cmp::Reverse(change.more(width)));
        Ok(Difference {
            width,
            threshold,
            profiles: sides.map(<[Profile]>::len),
            top: ROWS,
            view: View::default(),
            sum,
            functions,
        })
    }

    /// This difference, with at most `top` rows in each table.
    #[must_use]
    pub fn with_top(self, top: Option<usize>) -> Difference {
        Difference {
            top: top.unwrap_or(self.top),
            ..self
        }
    }

    /// This difference, for a terminal with `columns` columns, or for none.
    #[must_use]
    pub fn with_columns(self, columns: Option<usize>) -> Difference {
        let view = View {
            columns,
            ..self.view
        };
        Difference { view, ..self }
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

/// Draws the second profile, with the colour of what has become more (red) and less (blue) since the first, by at least
/// this much.
///
/// # Errors
/// One line: nothing that was chosen is there, or `out` refuses a write.
pub fn draw_difference<W: Write>(
    before: &Profile,
    after: &Profile,
    drawing: &Drawing,
    threshold: Threshold,
    out: W,
) -> Result<(), String> {
    let shape = &drawing.shape;
    if fold::check_profile(before, shape).is_err() {
        fold::check_profile(after, shape)?;
    }
    let [before, after] = [before, after].map(|profile| fold::costs(profile, shape));
    let stacks: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let whole =
        |costs: &BTreeMap<String, u64>| costs.values().fold(0, |a: u64, b| a.saturating_add(*b));
    let whole = whole(&before).max(whole(&after));
    let lines = stacks.into_iter().map(|stack| {
        let costs = [&before, &after].map(|costs| costs.get(stack).copied().unwrap_or(0));
        let [before, after] = match threshold.is_reached(costs, whole) {
            true => costs,
            false => [costs[1]; 2],
        };
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
        let columns: &[Column] = match self.width {
            Width::Calls => &CALLS,
            _ => &COSTS,
        };
        let cells = |column: &Column| {
            let cells = rows.iter().map(|row| (column.of)(self.width, row));
            let cells: Vec<String> = std::iter::once(column.title.to_owned())
                .chain(cells)
                .collect();
            let width = cells.iter().map(|cell| cell.chars().count()).max();
            (cells, width.unwrap_or(0))
        };
        let mut all: Vec<(Vec<String>, usize)> = columns.iter().map(cells).collect();
        let before = |all: &[(Vec<String>, usize)]| all.iter().map(|(_, width)| width + 2).sum();
        // A narrow terminal has no room for all that a wide one shows.
        while all.len() > CALLS.len() && !self.view.has_room_behind(before(&all)) {
            all.pop();
        }
        writeln!(f, "\n{title}")?;
        let names = rows.iter().map(|row| row.name());
        for (at, name) in std::iter::once("FUNCTION".to_owned())
            .chain(names)
            .enumerate()
        {
            for (cells, width) in &all {
                write!(f, "{:>width$}  ", cells[at])?;
            }
            writeln!(f, "{}", self.view.cut(&name, before(&all)))?;
        }
        Ok(())
    }
}

/// A column of numbers.
struct Column {
    title: &'static str,
    of: fn(Width, &Change) -> String,
}

const fn column(title: &'static str, of: fn(Width, &Change) -> String) -> Column {
    Column { title, of }
}

const CALLS: [Column; 4] = [
    column("BEFORE", |width, row| number(width, row.calls[0])),
    column("AFTER", |width, row| number(width, row.calls[1])),
    column("CHANGE", |width, row| signed(width, row.calls)),
    column("", |_, row| percent(row.calls)),
];

/// The most telling first: a narrow terminal has no room for the last ones.
const COSTS: [Column; 7] = [
    column("OWN BEFORE", |width, row| number(width, row.own[0])),
    column("AFTER", |width, row| number(width, row.own[1])),
    column("CHANGE", |width, row| signed(width, row.own)),
    column("", |_, row| percent(row.own)),
    column("TOTAL", |width, row| signed(width, row.total)),
    column("CALLS", |_, row| signed(Width::Calls, row.calls)),
    column("PER CALL", |_, row| {
        percent([0, 1].map(|at| row.own[at].saturating_mul(1000) / row.calls[at].max(1)))
    }),
];

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
        let changed = || self.functions.iter().filter(|change| change.changed);
        let worse: Vec<_> = changed().filter(|c| c.more(self.width) > 0).collect();
        let better: Vec<_> = changed().rev().filter(|c| c.more(self.width) < 0).collect();
        for (title, rows) in [("Worse", &worse), ("Better", &better)] {
            let shown = &rows[..rows.len().min(self.top)];
            self.table(f, title, shown)?;
            if rows.len() > shown.len() {
                writeln!(f, "and {} more; see --top", rows.len() - shown.len())?;
            }
        }
        if worse.is_empty() && better.is_empty() {
            let is_same = self.functions.iter().all(|c| c.more(self.width) == 0);
            let told = match (is_same, self.profiles.iter().all(|&files| files >= RANKED)) {
                (true, _) => "Nothing has changed.",
                (false, true) => "No function has changed by more than chance explains.",
                (false, false) => "No function has changed for certain.",
            };
            writeln!(f, "\n{told}")?;
        }
        self.perhaps(f)?;
        self.moved(f)?;
        self.unlisted(f)
    }
}

/// Rows of what may be chance.
const PERHAPS_ROWS: usize = 5;

impl Difference {
    /// Times that differ although the calls do not say why.
    fn perhaps(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = self.functions.iter().filter(|change| change.perhaps);
        let mut rows: Vec<&Change> = rows.collect();
        rows.sort_by_key(|change| std::cmp::Reverse(change.more(self.width).unsigned_abs()));
        let shown = &rows[..rows.len().min(self.top).min(PERHAPS_ROWS)];
        let title = "Perhaps chance: other times for as many calls, of one run each";
        self.table(f, title, shown)?;
        if rows.is_empty() {
            return Ok(());
        }
        let more = match rows.len() - shown.len() {
            0 => String::new(),
            more => format!("and {more} more; "),
        };
        writeln!(
            f,
            "{more}five files of each side tell a change from chance (--before, --after)"
        )
    }

    /// Functions that have another name now, and cost about as much.
    fn moved(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = self.functions.iter();
        let rows = rows.filter(|change| !change.changed && !change.perhaps);
        let mut rows = rows.filter_map(|change| Some((change.was.as_ref()?, &change.function)));
        let shown: Vec<_> = rows.by_ref().take(self.top).collect();
        let more = rows.count();
        if shown.is_empty() {
            return Ok(());
        }
        writeln!(f, "\nUnder another name, with about the same cost")?;
        for (was, function) in shown {
            writeln!(f, "{was} → {function}")?;
        }
        match more {
            0 => Ok(()),
            more => writeln!(f, "and {more} more; see --top"),
        }
    }

    /// What is below the threshold, and what the threshold is.
    fn unlisted(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let differ = self.functions.iter();
        let differ = differ
            .filter(|change| !change.changed && !change.perhaps && change.more(self.width) != 0);
        let count = differ.count();
        if count == 0 {
            return Ok(());
        }
        let functions = if count == 1 {
            "function differs"
        } else {
            "functions differ"
        };
        let Threshold { change, share } = self.threshold;
        let [before, after] = self.profiles;
        let by = if before.min(after) >= RANKED {
            " or no more than chance"
        } else {
            ""
        };
        writeln!(
            f,
            "{count} {functions} by less than {change} % of what it was or {share} % of the whole{by}; see --threshold and --share"
        )
    }
}
