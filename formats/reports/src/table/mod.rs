//! The table of functions, byte for byte as OTP's `tprof` prints it.
//!
//! Source: `tprof.erl`, `inspect/3` and `format/2`, OTP 29. Differs: `tprof` leaves equal rows in the order of a map;
//! here they are in the order of module, function and arity. Tables of processes name what each process is, and are in the
//! order of their shares, as rows are. A [`View`] that leaves functions out adds rows with their
//! totals, and on a terminal the functions are the last column. A profile with call paths has one column more, at the end: what
//! a function cost with all that it called.

mod callees;
mod waits;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use beamline_formats::name;
use beamline_formats::profile::{Cost, LeftOut, Profile, Rest, Scope, Type, View};
use beamline_settings::names;

use callees::WithCallees;
pub use waits::DirtyWaits;

/// Whose calls make one table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum By {
    /// All processes in one table.
    #[default]
    Total,
    /// A table for each process, and one for all of a kind; of `call_count`, which knows none, still one.
    Process,
    /// A table for each emulator, by the name of its node.
    Node,
}

names!(By {
    Total = "total", "One table for all processes";
    Process = "process", "A table for each process, or for all of one label or initial function; call_count has no processes";
    Node = "node", "A table for each node, or for each emulator without a name";
});

/// The column that orders the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Column {
    /// The module's name.
    Module,
    /// The function's name, then its arity.
    Function,
    /// The number of calls.
    Calls,
    /// The calls, time or words, by type of profile.
    Measurement,
    /// The measurement divided by the calls.
    MeasurementPerCall,
    /// The share of all that was measured.
    #[default]
    Percent,
    /// The measurement with that of all callees.
    Total,
}

/// A column and a direction; rows ascend unless said otherwise, so that the largest come last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Sort {
    /// What is compared.
    pub column: Column,
    /// Whether the largest come first.
    pub descending: bool,
}

impl FromStr for Sort {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (column, direction) = text.split_once(':').unwrap_or((text, "ascending"));
        let column = match column {
            "module" => Column::Module,
            "function" => Column::Function,
            "calls" => Column::Calls,
            "measurement" | "time" | "words" => Column::Measurement,
            "measurement_per_call" | "per_call" => Column::MeasurementPerCall,
            "percent" => Column::Percent,
            "total" => Column::Total,
            other => {
                return Err(format!(
                    "'{other}' is not a column; the columns are module, function, calls, \
                     measurement (or time, words), per_call, percent, total"
                ));
            }
        };
        let descending = match direction {
            "ascending" | "asc" => false,
            "descending" | "desc" => true,
            other => return Err(format!("'{other}' is not a direction; use asc or desc")),
        };
        Ok(Sort { column, descending })
    }
}

impl Sort {
    /// The order of a table for which none is chosen. Where a scope hides the functions that do the work, the functions
    /// that it shows differ by what they had others do.
    #[must_use]
    pub fn of_view(profile: &Profile, view: &View) -> Sort {
        let has_totals = WithCallees::is_known(profile);
        let column = match has_totals && view.scope != Scope::All {
            true => Column::Total,
            false => Column::default(),
        };
        Sort {
            column,
            descending: false,
        }
    }
}

/// What the rows of a table measure, and in which unit.
#[derive(Clone, Copy, Debug)]
struct Measure {
    kind: Type,
    /// How much of a row's value is one of the table's unit.
    unit: u64,
}

impl Measure {
    /// Times of a profile without call paths are cut to microseconds one by one, as `tprof` does. With call paths, sums are:
    /// no function has more with its callees than all together.
    fn of(profile: &Profile, kind: Type) -> Measure {
        let is_exact = kind == Type::CallTime && WithCallees::is_known(profile);
        Measure {
            kind,
            unit: if is_exact { 1_000 } else { 1 },
        }
    }

    /// What a cost adds to a row.
    fn value(self, cost: Cost) -> u64 {
        match self.kind {
            Type::CallCount => cost.calls,
            Type::CallTime => cost.time_ns / (1_000 / self.unit),
            Type::CallMemory => cost.words,
        }
    }

    /// As it stands in the table.
    fn text(self, value: u64) -> String {
        (value / self.unit).to_string()
    }

    fn per_call(self, value: u64, calls: u64) -> f64 {
        ratio(value, calls.saturating_mul(self.unit))
    }
}

#[derive(Clone, Copy, Debug)]
struct Row {
    function: usize,
    calls: u64,
    value: u64,
    /// Its value with those of all callees, where call paths are known.
    total: Option<u64>,
}

/// The tables of a profile, ready to print with `{}`.
#[derive(Clone, Debug)]
pub struct Tables<'a> {
    /// What is shown.
    pub profile: &'a Profile,
    /// One table, or one for each process.
    pub by: By,
    /// The order of the rows.
    pub sort: Sort,
    /// Which rows there are, and how wide.
    pub view: View,
}

impl Tables<'_> {
    /// Rows of one table per group; `group` says which the calls of a run and of a process belong to.
    fn rows(
        &self,
        measure: Measure,
        groups: usize,
        group: impl Fn(u32, Option<u32>) -> usize,
    ) -> Vec<Vec<Row>> {
        let profile = self.profile;
        let with_callees = WithCallees::of(profile, measure, &group);
        let mut counts: Vec<_> = profile
            .counts
            .iter()
            .map(|c| (group(c.run, c.process), c.function as usize, c.cost))
            .filter(|&(group, function, cost)| match measure.kind {
                Type::CallCount | Type::CallTime => cost.calls > 0,
                // A function that allocated nothing has no line, as in tprof, unless those that it called did.
                Type::CallMemory => {
                    let total = with_callees.total(group, &profile.functions[function]);
                    cost.words > 0 || total.is_some_and(|words| words > 0)
                }
            })
            .collect();
        counts.sort_by(|a, b| {
            let function = |i: usize| &profile.functions[i];
            (a.0, function(a.1)).cmp(&(b.0, function(b.1)))
        });
        let mut tables = vec![Vec::<Row>::new(); groups];
        for (group, function, cost) in counts {
            let value = measure.value(cost);
            match tables[group].last_mut() {
                Some(row) if profile.functions[row.function] == profile.functions[function] => {
                    row.calls = row.calls.saturating_add(cost.calls);
                    row.value = row.value.saturating_add(value);
                }
                _ => tables[group].push(Row {
                    function,
                    calls: cost.calls,
                    value,
                    total: with_callees.total(group, &profile.functions[function]),
                }),
            }
        }
        tables
    }

    fn order(&self, rows: &mut [Row], total: u64) {
        let function = |row: &Row| &self.profile.functions[row.function];
        let by_ratio = |a: f64, b: f64| a.total_cmp(&b);
        match self.sort.column {
            Column::Module => rows.sort_by_key(|r| &function(r).module),
            Column::Function => rows.sort_by_key(|r| (&function(r).name, function(r).arity)),
            Column::Calls => rows.sort_by_key(|r| r.calls),
            Column::Measurement => rows.sort_by_key(|r| r.value),
            Column::MeasurementPerCall => {
                rows.sort_by(|a, b| by_ratio(ratio(a.value, a.calls), ratio(b.value, b.calls)));
            }
            Column::Percent => {
                rows.sort_by(|a, b| by_ratio(percent(a.value, total), percent(b.value, total)));
            }
            Column::Total => rows.sort_by_key(|row| self.rank(row)),
        }
        if self.sort.descending {
            rows.reverse();
        }
    }

    /// What makes a row one of the dearest: what it is sorted by, if that is a cost, or else its measurement.
    fn rank(&self, row: &Row) -> (u64, u64) {
        match (self.sort.column, row.total) {
            (Column::Total, Some(total)) => (total, row.value),
            _ => (row.value, 0),
        }
    }

    fn is_in_scope(&self, row: &Row) -> bool {
        let of = &self.profile.functions[row.function];
        let origin = self.profile.origin(&of.module);
        let scope = &self.view.scope;
        scope.has(origin, &of.module, &of.name, of.arity)
    }

    /// Takes the rows away that the view does not show; gives what they were together, and those of them to name.
    fn shown(&self, rows: &mut Vec<Row>) -> Vec<(LeftOut, Rest, Vec<Row>)> {
        let is_hidden = |row: &mut Row| !self.is_in_scope(row);
        let mut hidden: Vec<Row> = rows.extract_if(.., is_hidden).collect();
        let mut more = Vec::new();
        let top = self.view.top.unwrap_or(rows.len());
        if top < rows.len() {
            rows.sort_by_key(|row| Reverse(self.rank(row)));
            more = rows.split_off(top);
            rows.sort_by_key(|row| &self.profile.functions[row.function]);
        }
        let rest = |rows: &[Row]| {
            let mut rest = Rest::default();
            rows.iter().for_each(|row| rest.add(row.calls, row.value));
            rest
        };
        let rests = [
            (LeftOut::ByScope, rest(&hidden)),
            (LeftOut::ByTop, rest(&more)),
        ];
        hidden.sort_by_key(|row| Reverse(row.value));
        hidden.truncate(Rest::NAMED);
        let rests = rests.into_iter().zip([hidden, Vec::new()]);
        let rests = rests.map(|((left_out, rest), named)| (left_out, rest, named));
        rests.filter(|(_, rest, _)| rest.functions > 0).collect()
    }

    fn table(
        &self,
        f: &mut fmt::Formatter<'_>,
        measure: Measure,
        mut rows: Vec<Row>,
    ) -> fmt::Result {
        let whole = sum(&rows);
        let columns = Columns {
            measure,
            whole,
            has_totals: rows.iter().any(|row| row.total.is_some()),
        };
        let rests = self.shown(&mut rows);
        self.order(&mut rows, whole);
        let mut lines: Vec<Vec<String>> = Vec::with_capacity(rows.len() + rests.len() + 2);
        let name = |row: &Row| {
            let of = &self.profile.functions[row.function];
            name::mfa(&of.module, &of.name, of.arity)
        };
        for row in rows {
            lines.push(columns.line(&name(&row), row.calls, row.value, row.total));
        }
        // They stand where the cheapest rows do.
        let at = if self.sort.descending { lines.len() } else { 0 };
        let rests = rests.into_iter().flat_map(|(left_out, rest, named)| {
            let together = columns.line(&rest.text(left_out), rest.calls, rest.value, None);
            let named = named.into_iter().map(|row| {
                let name = Rest::named(&name(&row));
                columns.line(&name, row.calls, row.value, row.total)
            });
            [together].into_iter().chain(named).collect::<Vec<_>>()
        });
        lines.splice(at..at, rests);
        let (head, last) = (columns.head(), columns.last());
        let mut widths = vec![0; head.len()];
        let share = columns.share();
        widths[share] = "100.0".len();
        for line in [&head, &last].into_iter().chain(&lines) {
            for (at, (width, cell)) in widths.iter_mut().zip(line).enumerate() {
                // The head does not widen the names, as in tprof.
                if at > 0 || !std::ptr::eq(line, &head) {
                    *width = (*width).max(cell.chars().count());
                }
            }
        }
        let mut lines = [head].into_iter().chain(lines).chain([last]);
        lines.try_for_each(|line| match self.view.columns {
            None => write_line(f, &widths, share, &line),
            Some(_) => self.write_narrow(f, &widths, share, &line),
        })
    }

    /// The numbers first, and then the function, as long as the terminal has room.
    fn write_narrow(
        &self,
        f: &mut fmt::Formatter<'_>,
        widths: &[usize],
        share: usize,
        cells: &[String],
    ) -> fmt::Result {
        let Some(name) = cells.first() else {
            return Ok(());
        };
        let mut before = 0;
        for (at, (width, cell)) in widths.iter().zip(cells).enumerate().skip(1) {
            if at == share {
                write!(f, "[{cell:>width$}]  ")?;
                before += width + 4;
            } else {
                write!(f, "{cell:>width$}  ")?;
                before += width + 2;
            }
        }
        writeln!(f, "{}", self.view.cut(name, before))
    }

    /// What a table is of. One process: its pid and what it is, which is its registered name, its label or the function that
    /// it began in. Several: their number, and what all of them are.
    fn title(&self, members: &[usize]) -> String {
        let process = members
            .first()
            .and_then(|&at| self.profile.processes.get(at));
        let Some(process) = process else {
            return "Process of unknown pid".to_owned();
        };
        let mut title = match members.len() {
            1 => format!("Process {}", process.pid),
            many => format!("{many} processes"),
        };
        if self.profile.runs.len() > 1 {
            let emulator = self.profile.runs[process.run as usize].emulator();
            title = format!("{title} ({emulator})");
        }
        if process.name.is_empty() {
            return title;
        }
        // What stands around it on a line.
        let before = title.chars().count() + "******   --  100.00% of total *** ".len();
        format!("{title} {}", self.view.cut(&process.name, before))
    }

    /// The processes of each table: those of one emulator that are the same are in one. The last table is of calls whose
    /// process is not known.
    fn kinds(&self) -> Vec<Vec<usize>> {
        let mut kinds: Vec<Vec<usize>> = Vec::new();
        let mut known: BTreeMap<(u32, &str), usize> = BTreeMap::new();
        for (at, process) in self.profile.processes.iter().enumerate() {
            let next = kinds.len();
            let kind = match process.name.as_str() {
                "" => next,
                name => *known.entry((process.run, name)).or_insert(next),
            };
            match kinds.get_mut(kind) {
                Some(members) => members.push(at),
                None => kinds.push(vec![at]),
            }
        }
        kinds.push(Vec::new());
        kinds
    }

    fn processes(&self, f: &mut fmt::Formatter<'_>, measure: Measure) -> fmt::Result {
        let kinds = self.kinds();
        let none = kinds.len() - 1;
        let mut kind_of = vec![none; self.profile.processes.len()];
        for (at, members) in kinds.iter().enumerate() {
            members.iter().for_each(|&member| kind_of[member] = at);
        }
        let tables = self.rows(measure, kinds.len(), |_, p| {
            p.map_or(none, |p| kind_of[p as usize])
        });
        let groups = kinds.iter().map(|members| Group {
            title: self.title(members),
            members: members.len().max(1),
        });
        let out_of_scope = self.groups(f, measure, tables, groups.collect())?;
        match out_of_scope {
            0 => Ok(()),
            1 => writeln!(f, "\n(1 process out of scope: see --scope all)"),
            many => writeln!(f, "\n({many} processes out of scope: see --scope all)"),
        }
    }

    fn nodes(&self, f: &mut fmt::Formatter<'_>, measure: Measure) -> fmt::Result {
        let runs = &self.profile.runs;
        let tables = self.rows(measure, runs.len(), |run, _| run as usize);
        let groups = runs.iter().map(|run| Group {
            title: capitalized(&run.emulator()),
            members: 1,
        });
        let out_of_scope = self.groups(f, measure, tables, groups.collect())?;
        match out_of_scope {
            0 => Ok(()),
            1 => writeln!(f, "\n(1 node out of scope: see --scope all)"),
            many => writeln!(f, "\n({many} nodes out of scope: see --scope all)"),
        }
    }

    /// A table for each group of which something is in scope, the dearest last unless the order is reversed. How many
    /// members all others have that called something.
    fn groups(
        &self,
        f: &mut fmt::Formatter<'_>,
        measure: Measure,
        tables: Vec<Vec<Row>>,
        groups: Vec<Group>,
    ) -> Result<usize, fmt::Error> {
        let total = tables
            .iter()
            .fold(0_u64, |total, rows| total.saturating_add(sum(rows)));
        let mut tables: Vec<(Group, Vec<Row>)> = groups.into_iter().zip(tables).collect();
        tables.retain(|(_, rows)| !rows.is_empty());
        if tables.is_empty() {
            writeln!(f, "Trace is empty")?;
            return Ok(0);
        }
        let members = |tables: &[(Group, Vec<Row>)]| {
            let members = tables.iter().map(|(group, _)| group.members);
            members.sum::<usize>()
        };
        let all = members(&tables);
        tables.retain(|(_, rows)| rows.iter().any(|row| self.is_in_scope(row)));
        let out_of_scope = all - members(&tables);
        tables.sort_by_key(|(_, rows)| sum(rows));
        if self.sort.descending {
            tables.reverse();
        }
        for (group, rows) in tables {
            let share = two_decimals(percent(sum(&rows), total));
            writeln!(f)?;
            let title = group.title;
            writeln!(f, "****** {title}  --  {share}% of total *** ")?;
            self.table(f, measure, rows)?;
        }
        Ok(out_of_scope)
    }
}

/// What one of several tables is of.
struct Group {
    title: String,
    /// Of so many processes or nodes.
    members: usize,
}

/// The text, as a title begins.
fn capitalized(text: &str) -> String {
    let mut rest = text.chars();
    let first = rest.next().into_iter().flat_map(char::to_uppercase);
    first.chain(rest).collect()
}

impl fmt::Display for Tables<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(kind) = self.profile.kind() else {
            return writeln!(f, "Trace is empty");
        };
        let measure = Measure::of(self.profile, kind);
        match self.by {
            By::Process if kind != Type::CallCount => return self.processes(f, measure),
            By::Node => return self.nodes(f, measure),
            By::Process | By::Total => {}
        }
        match self.rows(measure, 1, |_, _| 0).pop() {
            Some(rows) if !rows.is_empty() => self.table(f, measure, rows),
            _ => writeln!(f, "Trace is empty"),
        }
    }
}

/// The columns of a table, the function first.
struct Columns {
    measure: Measure,
    /// The value of all rows, those that are not shown too.
    whole: u64,
    has_totals: bool,
}

impl Columns {
    /// What the columns of measurements are called: without and with callees. Of calls there is none.
    fn labels(&self) -> Option<(&'static str, &'static str)> {
        match self.measure.kind {
            Type::CallCount => None,
            Type::CallTime => Some(("TIME (us)", "TOTAL (us)")),
            Type::CallMemory => Some(("WORDS", "TOTAL (words)")),
        }
    }

    /// The place of the share, which stands in brackets.
    fn share(&self) -> usize {
        self.labels().map_or(2, |_| 4)
    }

    fn cells(&self, own: [&str; 5], total: &str) -> Vec<String> {
        let [function, calls, value, per_call, share] = own;
        let mut cells = vec![function, calls];
        if self.labels().is_some() {
            cells.extend([value, per_call]);
        }
        cells.push(share);
        if self.has_totals {
            cells.push(total);
        }
        cells.into_iter().map(str::to_owned).collect()
    }

    fn head(&self) -> Vec<String> {
        let (value, total) = self.labels().unwrap_or_default();
        self.cells(["FUNCTION", "CALLS", value, "PER CALL", "%"], total)
    }

    fn line(&self, name: &str, calls: u64, value: u64, total: Option<u64>) -> Vec<String> {
        let Columns { measure, whole, .. } = self;
        let own: [&str; 5] = [
            name,
            &calls.to_string(),
            &measure.text(value),
            &two_decimals(measure.per_call(value, calls)),
            &two_decimals(percent(value, *whole)),
        ];
        let total = total.map(|total| measure.text(total)).unwrap_or_default();
        self.cells(own, &total)
    }

    fn last(&self) -> Vec<String> {
        let whole = self.measure.text(self.whole);
        self.cells([" ", " ", &whole, " ", "100.0"], "")
    }
}

/// The function to the left, numbers to the right, the share in brackets.
fn write_line(
    f: &mut fmt::Formatter<'_>,
    widths: &[usize],
    share: usize,
    cells: &[String],
) -> fmt::Result {
    for (i, (width, cell)) in widths.iter().zip(cells).enumerate() {
        match i {
            0 => write!(f, "{cell:width$}")?,
            i if i == share => write!(f, "  [{cell:>width$}]")?,
            _ if cell.is_empty() => {}
            _ => write!(f, "  {cell:>width$}")?,
        }
    }
    writeln!(f)
}

fn sum(rows: &[Row]) -> u64 {
    rows.iter()
        .fold(0, |total, row| row.value.saturating_add(total))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a share in percent needs no more than 53 bits"
)]
fn ratio(value: u64, by: u64) -> f64 {
    if by == 0 {
        0.0
    } else {
        value as f64 / by as f64
    }
}

fn percent(value: u64, total: u64) -> f64 {
    ratio(value.saturating_mul(100), total)
}

/// Writes a float as `float_to_list(F, [{decimals, 2}])`: halves go away from zero.
///
/// Source: `sys_double_to_chars_fast()`, which rounds the fraction alone, OTP 29.
fn two_decimals(value: f64) -> String {
    let whole = value.floor();
    let hundredths = ((value - whole) * 100.0).round();
    if hundredths >= 100.0 {
        format!("{:.0}.00", whole + 1.0)
    } else {
        format!("{whole:.0}.{hundredths:02.0}")
    }
}

#[cfg(test)]
mod tests;
