//! A summary as text.

use std::fmt;

use beamline_formats::name::time;
use beamline_formats::profile::{Function, LeftOut, Native, Origin, Rest, View};
use beamline_formats::ring::Group;

use super::{FunctionCost, Longest, Summary};
use crate::events::blocks::{Block, LIMIT_NS};

impl Summary {
    fn write_unfinished(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for of in &self.unfinished {
            let caller = of.caller.as_deref();
            let caller = caller.map_or(String::new(), |caller| format!(", called by {caller},"));
            let who = format!("{} {}", of.process, of.name);
            writeln!(
                f,
                "When it broke off, {} ({}){caller} ran in {}.",
                of.function,
                of.native.name(),
                who.trim_end()
            )?;
        }
        Ok(())
    }

    fn write_head(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let records: u64 = self.records.iter().map(|(_, count)| count).sum();
        writeln!(f)?;
        writeln!(f, "Command     {}", self.command.join(" "))?;
        let host = &self.host;
        writeln!(
            f,
            "Machine     {}, {}, {} processors ({}), OTP {}",
            host.name, host.system, host.cores, host.processor, self.otp
        )?;
        writeln!(f, "Length      {}", time(self.end_ns))?;
        writeln!(f, "Processes   {}", self.processes)?;
        let kinds: Vec<String> = self
            .records
            .iter()
            .map(|(kind, count)| format!("{kind} {count}"))
            .collect();
        writeln!(f, "Records     {records}: {}", kinds.join(", "))?;
        let length = self.end_ns.max(1);
        for of in &self.schedulers {
            let permille = u128::from(of.busy_ns) * 1000 / u128::from(length);
            writeln!(
                f,
                "Scheduler {} ran processes for {} ({}.{} %), in {} time slices",
                of.scheduler,
                time(of.busy_ns),
                permille / 10,
                permille % 10,
                of.slices
            )?;
        }
        for of in &self.dirty_schedulers {
            writeln!(
                f,
                "{} schedulers ran {} calls for {}; these had waited {} for one",
                of.kind.name_of_schedulers(),
                of.calls,
                time(of.busy_ns),
                time(of.wait_ns),
            )?;
        }
        Ok(())
    }
}

/// Writes those of these functions that the view shows, and a line for each reason to leave others out.
fn write_functions(
    f: &mut fmt::Formatter<'_>,
    (title, rows): (&str, &[FunctionCost]),
    view: &View,
) -> fmt::Result {
    let Some(first) = rows.first() else {
        return Ok(());
    };
    let mut head = vec!["OWN", "TOTAL"];
    if first.own_words.is_some() {
        head.extend(["OWN WORDS", "TOTAL WORDS"]);
    }
    if first.own_reductions.is_some() {
        head.extend(["OWN REDS", "TOTAL REDS"]);
    }
    head.push("CALLS");
    writeln!(f, "\n{title}")?;
    write_columns(f, &head)?;
    writeln!(f, " FUNCTION")?;
    let (mut shown, mut out_of_scope, mut more) = (0, Rest::default(), Rest::default());
    let mut dearest = Vec::new();
    for row in rows {
        let of = &row.of;
        if !view.scope.has(row.origin, &of.module, &of.name, of.arity) {
            out_of_scope.add(row.calls, row.own_ns);
            dearest.push(row);
            continue;
        }
        if view.top.is_some_and(|top| shown >= top) {
            more.add(row.calls, row.own_ns);
            continue;
        }
        shown += 1;
        write_function(f, row, &row.function, view)?;
    }
    for (left_out, rest) in [(LeftOut::ByTop, more), (LeftOut::ByScope, out_of_scope)] {
        if rest.functions > 0 {
            // Sums of times with all that was called would count it more than once.
            let between = (head.len() - 2) * 13;
            let (own, calls, text) = (time(rest.value), rest.calls, rest.text(left_out));
            writeln!(f, "{own:>12} {:between$}{calls:>12}  {text}", "")?;
        }
    }
    for row in dearest.into_iter().take(Rest::NAMED) {
        write_function(f, row, &Rest::named(&row.function), view)?;
    }
    Ok(())
}

/// Writes the numbers of a function, and then its name.
fn write_function(
    f: &mut fmt::Formatter<'_>,
    row: &FunctionCost,
    name: &str,
    view: &View,
) -> fmt::Result {
    let mut cells = [row.own_ns, row.total_ns].map(time).to_vec();
    let numbers = [
        row.own_words,
        row.total_words,
        row.own_reductions,
        row.total_reductions,
        Some(row.calls),
    ];
    cells.extend(numbers.iter().flatten().map(u64::to_string));
    write_columns(f, &cells)?;
    writeln!(f, " {}", view.cut(name, cells.len() * 13 + 1))
}

/// Those of `rows`, which are of the function that `of` says, that the view shows.
fn shown_rows<'r, Row>(
    rows: &'r [Row],
    view: &View,
    of: impl Fn(&Row) -> (Origin, &Function),
) -> Vec<&'r Row> {
    let is_shown = |row: &&Row| {
        let (origin, of) = of(row);
        view.scope.has(origin, &of.module, &of.name, of.arity)
    };
    let top = view.top.unwrap_or(usize::MAX);
    rows.iter().filter(is_shown).take(top).collect()
}

/// Writes columns of numbers, or their names.
pub(crate) fn write_columns(
    f: &mut fmt::Formatter<'_>,
    columns: &[impl fmt::Display],
) -> fmt::Result {
    let mut columns = columns.iter();
    columns.try_for_each(|column| write!(f, "{column:>12} "))
}

/// Says how many rows are left out, if some are, behind as many columns of numbers.
pub(crate) fn write_more(
    f: &mut fmt::Formatter<'_>,
    more: usize,
    what: &str,
    columns: usize,
) -> fmt::Result {
    match more {
        0 => Ok(()),
        _ => writeln!(
            f,
            "{:width$}({more} more {what})",
            "",
            width = columns * 13 + 1
        ),
    }
}

/// Writes the native functions that the view shows.
fn write_natives(f: &mut fmt::Formatter<'_>, rows: &[FunctionCost], view: &View) -> fmt::Result {
    let rows = shown_rows(rows, view, |row| (row.origin, &row.of));
    if rows.is_empty() {
        return Ok(());
    }
    writeln!(f, "\nNative functions")?;
    write_columns(f, &["RAN", "DIRTY WAIT", "CALLS"])?;
    writeln!(f, " {:<9}  FUNCTION", "KIND")?;
    for row in rows {
        let times = [row.own_ns, row.dirty_wait_ns].map(time);
        write_columns(f, &times)?;
        write_columns(f, &[row.calls])?;
        let kind = row.native.map_or("", Native::name);
        writeln!(f, " {kind:<9}  {}", view.cut(&row.function, 3 * 13 + 12))?;
    }
    Ok(())
}

/// Callers of a native function that are named.
const CALLERS: usize = 3;

/// Writes the native functions that held a scheduler for long, as far as the view shows them.
fn write_blocks(f: &mut fmt::Formatter<'_>, rows: &[Block], view: &View) -> fmt::Result {
    let rows = shown_rows(rows, view, |row| (row.origin, &row.of));
    if rows.is_empty() {
        return Ok(());
    }
    let limit = time(LIMIT_NS);
    writeln!(
        f,
        "\nBlocks its scheduler: native code that held an ordinary scheduler for more than {limit} at a time"
    )?;
    write_columns(f, &["LONGEST", "TIMES", "TOGETHER"])?;
    writeln!(f, " FUNCTION")?;
    for row in rows {
        write_columns(f, &[time(row.longest_ns)])?;
        write_columns(f, &[row.times])?;
        write_columns(f, &[time(row.total_ns)])?;
        writeln!(f, " {}", view.cut(&row.function, 3 * 13 + 1))?;
        let who = format!("{} {}", row.process, row.name);
        writeln!(
            f,
            "{:40}the longest at {} in {}",
            "",
            time(row.at_ns),
            who.trim_end()
        )?;
        for caller in row.callers.iter().take(CALLERS) {
            let name = caller
                .function
                .as_deref()
                .unwrap_or("nobody who was recorded");
            let (times, longest) = (caller.times, time(caller.longest_ns));
            writeln!(f, "{:40}called by {name}: {times}, at most {longest}", "")?;
        }
        if let Some(more) = row
            .callers
            .len()
            .checked_sub(CALLERS)
            .filter(|more| *more > 0)
        {
            writeln!(f, "{:40}and by {more} more", "")?;
        }
    }
    Ok(())
}

fn write_longest(
    f: &mut fmt::Formatter<'_>,
    title: &str,
    rows: &[Longest],
    value: impl Fn(u64) -> String,
) -> fmt::Result {
    if rows.is_empty() {
        return Ok(());
    }
    writeln!(f, "\n{title}")?;
    for row in rows {
        let (value, at) = (value(row.value), time(row.at_ns));
        let words = [&row.process, &row.name, &row.what].map(|word| word.as_str());
        let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
        writeln!(f, "{value:>12}  at {at:>12}  {}", words.join(" "))?;
    }
    Ok(())
}

/// A summary as a view shows it.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a> {
    summary: &'a Summary,
    view: &'a View,
}

impl Summary {
    /// As text, with the functions that the view shows.
    #[must_use]
    pub fn shown<'a>(&'a self, view: &'a View) -> Shown<'a> {
        let summary = self;
        Shown { summary, view }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shown(&View::default()).fmt(f)
    }
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shown { summary, view } = self;
        summary.losses.fmt(f)?;
        summary.write_unfinished(f)?;
        summary.write_head(f)?;
        let note = if summary
            .events
            .iter()
            .any(|events| events == Group::Scheduling.name())
        {
            ""
        } else {
            " (with waiting: time slices were not recorded)"
        };
        let own = format!("Most own time{note}");
        let total = format!("Most total time{note}");
        for part in [
            (own.as_str(), &summary.by_own[..]),
            (total.as_str(), &summary.by_total),
            ("Most own words", &summary.by_words),
            ("Most own reductions", &summary.by_reductions),
        ] {
            write_functions(f, part, view)?;
        }
        write_natives(f, &summary.natives, view)?;
        write_blocks(f, &summary.blocks, view)?;
        summary
            .counters
            .iter()
            .try_for_each(|counters| counters.fmt(f))?;
        write_longest(f, "Longest collections", &summary.collections, time)?;
        write_longest(f, "Longest time slices", &summary.slices, time)?;
        let messages = |n| format!("{n} messages");
        write_longest(f, "Longest message queues", &summary.queues, messages)?;
        summary.write_peers(f, view)?;
        summary.write_connections(f, view)?;
        summary.write_left(f, view)?;
        summary.write_tables(f, view)?;
        write_longest(f, "System events", &summary.system, |n| n.to_string())
    }
}
