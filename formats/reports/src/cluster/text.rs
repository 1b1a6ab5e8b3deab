//! The report of a cluster: each node, what crossed between them, calls from one to another, and the functions of all.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use beamline_formats::name::{size, thousands, time};
use beamline_formats::profile::{Function, LeftOut, Origin, Profile, Rest, View};
use beamline_formats::ring::{Error, Losses};
use serde::Serialize;

use super::clocks::{By, Clock};
use super::{Cluster, Direction, RemoteCalls};
use crate::events::Summary;
use crate::events::summary::{write_columns, write_more};

/// Rows of the tables of connections and calls.
const ROWS: usize = 15;

/// Nodes that have a column in the table of functions: those that ran longest.
const COLUMNS: usize = 4;

/// A node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NodeReport {
    /// Its name.
    pub node: String,
    /// Its file.
    pub file: String,
    /// Its clock.
    pub clock: Clock,
    /// When its recording began, by the monotonic clock of its machine.
    pub start_monotonic_ns: u64,
    /// Time in which its schedulers ran processes, if time slices were recorded.
    pub busy_ns: u64,
    /// What its own report says.
    pub summary: Summary,
}

/// A function, with what it cost in each node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FunctionRow {
    /// As its language writes it.
    pub function: String,
    /// Whose it is.
    pub origin: Origin,
    #[serde(skip)]
    of: Function,
    /// Calls in all nodes.
    pub calls: u64,
    /// Own time in all nodes.
    pub own_ns: u64,
    /// Own time in each node, in the order of the nodes.
    pub own_ns_by_node: Vec<u64>,
}

/// The report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The nodes, in the order of their files.
    pub nodes: Vec<NodeReport>,
    /// What they sent each other, the most bytes first.
    pub connections: Vec<Direction>,
    /// Calls from one to another, those first that took longest altogether.
    pub remote_calls: Vec<RemoteCalls>,
    /// Functions of all nodes, the dearest first; none where calls were not recorded.
    pub functions: Vec<FunctionRow>,
}

impl Report {
    /// Reads all recordings. The second value has the profiles of the nodes, in their order.
    ///
    /// # Errors
    /// The file that cannot be read, and why.
    pub fn of(cluster: &Cluster, rows: usize) -> Result<(Report, Vec<Profile>), (PathBuf, Error)> {
        let (mut nodes, mut profiles) = (Vec::new(), Vec::new());
        for (member, clock) in cluster.members().iter().zip(cluster.clocks()) {
            let read = Summary::of(&member.recording, rows);
            let (summary, profile) = read.map_err(|error| (member.file.clone(), error))?;
            nodes.push(NodeReport {
                node: member.name.clone(),
                file: member.file.display().to_string(),
                clock: *clock,
                start_monotonic_ns: member.recording.start_ns(),
                busy_ns: summary.schedulers.iter().map(|it| it.busy_ns).sum(),
                summary,
            });
            profiles.push(profile);
        }
        let report = Report {
            nodes,
            connections: cluster.traffic(),
            remote_calls: cluster.remote_calls(),
            functions: functions(&profiles),
        };
        Ok((report, profiles))
    }

    /// As a text, as far as a view shows it.
    #[must_use]
    pub fn shown<'r>(&'r self, view: &'r View) -> Shown<'r> {
        Shown { report: self, view }
    }
}

/// The functions of all nodes, the dearest first.
fn functions(profiles: &[Profile]) -> Vec<FunctionRow> {
    let mut rows: BTreeMap<&Function, FunctionRow> = BTreeMap::new();
    for (at, profile) in profiles.iter().enumerate() {
        for count in &profile.counts {
            let of = &profile.functions[count.function as usize];
            let row = rows.entry(of).or_insert_with(|| FunctionRow {
                function: of.to_string(),
                origin: profile.origin(&of.module),
                of: of.clone(),
                calls: 0,
                own_ns: 0,
                own_ns_by_node: vec![0; profiles.len()],
            });
            row.calls = row.calls.saturating_add(count.cost.calls);
            row.own_ns = row.own_ns.saturating_add(count.cost.time_ns);
            let node = &mut row.own_ns_by_node[at];
            *node = node.saturating_add(count.cost.time_ns);
        }
    }
    let mut rows: Vec<FunctionRow> = rows.into_values().collect();
    rows.sort_by_key(|row| std::cmp::Reverse((row.own_ns, row.calls)));
    rows
}

/// A report as a text.
pub struct Shown<'r> {
    report: &'r Report,
    view: &'r View,
}

/// A clock's difference, as a person reads it.
fn difference(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "+" };
    format!("{sign}{}", time(ns.unsigned_abs()))
}

/// A time that may not be known.
fn perhaps(ns: Option<u64>) -> String {
    ns.map_or_else(|| "-".to_owned(), time)
}

/// The mean of `total` over `count`; a dash where there were none.
fn mean(total: u64, count: u64) -> String {
    perhaps(total.checked_div(count))
}

impl Shown<'_> {
    fn losses(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nothing = "Nothing was lost.\n";
        let text = |losses: &Losses| losses.to_string();
        let nodes = &self.report.nodes;
        if nodes.iter().all(|it| text(&it.summary.losses) == nothing) {
            return f.write_str(nothing);
        }
        for node in nodes {
            for line in text(&node.summary.losses).lines() {
                writeln!(f, "{}: {line}", node.node)?;
            }
        }
        Ok(())
    }

    fn nodes(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "\nNodes: when each recording began by the clock of the first, and by how much that may be wrong"
        )?;
        let head = ["BEGAN", "ERROR", "LENGTH", "BUSY", "PROCESSES"];
        write_columns(f, &head)?;
        writeln!(f, " NODE, FILE")?;
        for node in &self.report.nodes {
            let (clock, summary) = (&node.clock, &node.summary);
            let error = clock.error_ns.map(|error| format!("±{}", time(error)));
            let busy = (!summary.schedulers.is_empty()).then_some(node.busy_ns);
            write_columns(
                f,
                &[
                    difference(clock.offset_ns),
                    error.unwrap_or_else(|| "not known".to_owned()),
                    time(summary.end_ns),
                    perhaps(busy),
                    thousands(summary.processes),
                ],
            )?;
            let by = match clock.by {
                By::TimeOfDay => "; no messages tell its clock: by the time of day",
                By::Itself | By::Messages => "",
            };
            let drift = match clock.has_drift {
                true => "; clocks ran apart",
                false => "",
            };
            writeln!(f, " {}, {}{by}{drift}", node.node, node.file)?;
        }
        Ok(())
    }

    fn connections(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = &self.report.connections;
        if all.is_empty() {
            return writeln!(
                f,
                "\nNo node was connected to another, or dist was not recorded."
            );
        }
        writeln!(
            f,
            "\nConnections: signals, the messages among them, and how long they were on the way"
        )?;
        let head = ["SIGNALS", "MESSAGES", "BYTES", "MEAN", "LONGEST", "ERROR"];
        write_columns(f, &head)?;
        writeln!(f, " FROM, TO")?;
        let rows = &all[..all.len().min(ROWS)];
        for row in rows {
            let error = row.error_ns.map(|error| format!("±{}", time(error)));
            write_columns(
                f,
                &[
                    thousands(row.signals),
                    thousands(row.messages),
                    size(row.bytes),
                    perhaps(row.mean_ns),
                    perhaps(row.longest_ns),
                    error.unwrap_or_else(|| "-".to_owned()),
                ],
            )?;
            let mut text = format!("{} to {}", row.from, row.to);
            if row.connections > 1 {
                text.push_str(&format!("; {} connections", row.connections));
            }
            match (row.is_one_sided, row.signals - row.came) {
                (true, _) => text.push_str("; recorded on this side only"),
                (false, 0) => {}
                (false, lost) => text.push_str(&format!("; {} not seen there", thousands(lost))),
            }
            writeln!(f, " {}", self.view.cut(&text, 6 * 13 + 1))?;
        }
        write_more(f, all.len() - rows.len(), "directions: see --json", 6)
    }

    fn calls(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = &self.report.remote_calls;
        if all.is_empty() {
            return Ok(());
        }
        writeln!(
            f,
            "\nCalls to other nodes: means of a call, of the part of it there, and of that on the way in both directions"
        )?;
        let head = ["TOTAL", "CALLS", "MEAN", "THERE", "ON THE WAY", "LONGEST"];
        write_columns(f, &head)?;
        writeln!(f, " CALLER, CALLED")?;
        let rows = &all[..all.len().min(ROWS)];
        for row in rows {
            write_columns(
                f,
                &[
                    time(row.total_ns),
                    thousands(row.calls),
                    mean(row.total_ns, row.calls),
                    mean(row.there_ns, row.both_sides),
                    mean(row.way_ns, row.both_sides),
                    perhaps((row.calls > 0).then_some(row.longest_ns)),
                ],
            )?;
            let called = match row.callee.as_str() {
                "" => row.to.clone(),
                callee => format!("{callee} of {}", row.to),
            };
            let unanswered = match row.unanswered {
                0 => String::new(),
                many => format!("; {} without a reply", thousands(many)),
            };
            let (asked, caller, from) = (row.asked.name(), &row.caller, &row.from);
            let text = format!("{caller} of {from}, {asked} to {called}{unanswered}");
            writeln!(f, " {}", self.view.cut(&text, 6 * 13 + 1))?;
        }
        write_more(f, all.len() - rows.len(), "kinds of calls: see --json", 6)
    }

    /// The nodes that have columns: those that ran longest, in their order.
    fn columns(&self) -> Vec<usize> {
        let own = |at: usize| -> u64 {
            let rows = self.report.functions.iter();
            rows.map(|row| row.own_ns_by_node[at])
                .fold(0, u64::saturating_add)
        };
        let mut nodes: Vec<usize> = (0..self.report.nodes.len()).collect();
        nodes.sort_by_cached_key(|at| std::cmp::Reverse(own(*at)));
        nodes.truncate(COLUMNS);
        nodes.sort_unstable();
        nodes
    }

    fn functions(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.report.functions.is_empty() {
            return Ok(());
        }
        let columns = self.columns();
        writeln!(f, "\nFunctions: own time in all nodes, and in each")?;
        write_columns(f, &["CALLS", "ALL"])?;
        for at in &columns {
            let short: String = self.report.nodes[*at].node.chars().take(12).collect();
            write_columns(f, &[short])?;
        }
        writeln!(f, " FUNCTION")?;
        let is_shown = |row: &&FunctionRow| {
            let of = &row.of;
            self.view
                .scope
                .has(row.origin, &of.module, &of.name, of.arity)
        };
        let (rows, others): (Vec<_>, Vec<_>) = self.report.functions.iter().partition(is_shown);
        let top = self.view.top.unwrap_or(usize::MAX).min(rows.len());
        let write = |f: &mut fmt::Formatter<'_>, of: &[&FunctionRow], name: &str| {
            let sum = |ns: &dyn Fn(&FunctionRow) -> u64| {
                of.iter().map(|row| ns(row)).fold(0, u64::saturating_add)
            };
            let (calls, own) = (sum(&|row| row.calls), sum(&|row| row.own_ns));
            write_columns(f, &[thousands(calls), time(own)])?;
            for at in &columns {
                write_columns(f, &[time(sum(&|row| row.own_ns_by_node[*at]))])?;
            }
            let before = (2 + columns.len()) * 13 + 1;
            writeln!(f, " {}", self.view.cut(name, before))
        };
        for row in &rows[..top] {
            write(f, &[row], &row.function)?;
        }
        for (rest, why) in [
            (&rows[top..], LeftOut::ByTop),
            (&others[..], LeftOut::ByScope),
        ] {
            if !rest.is_empty() {
                let left_out = Rest {
                    functions: rest.len(),
                    ..Rest::default()
                };
                write(f, rest, &left_out.text(why))?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.losses(f)?;
        self.nodes(f)?;
        self.connections(f)?;
        self.calls(f)?;
        self.functions(f)
    }
}
