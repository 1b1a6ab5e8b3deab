//! What is left at the end of a recording, as text.

use std::fmt;

use beamline_formats::name::{size, thousands};
use beamline_formats::profile::{Origin, Scope, View};

use super::Summary;
use super::shown::{write_columns, write_more};
use crate::events::living::{Left, TableLeft};

/// Rows of a table where no other number is asked for.
const ROWS: usize = 15;

/// The rows of these that the view shows, and how many it leaves out. A scope of a pattern is one of functions: it shows the
/// program's.
fn shown<'r, Row>(
    rows: &'r [Row],
    view: &View,
    origin: impl Fn(&Row) -> Origin,
) -> (Vec<&'r Row>, usize) {
    let is_shown = |row: &&Row| view.scope == Scope::All || origin(row) == Origin::App;
    let top = view.top.map_or(ROWS, |top| top.min(ROWS));
    let shown: Vec<&Row> = rows.iter().filter(is_shown).take(top).collect();
    let more = rows.len() - shown.len();
    (shown, more)
}

impl Summary {
    /// The processes that are left at the end, by kind and by what started them.
    pub(super) fn write_left(&self, f: &mut fmt::Formatter<'_>, view: &View) -> fmt::Result {
        let (rows, more) = shown(&self.left, view, |row| row.origin);
        if rows.is_empty() {
            return Ok(());
        }
        writeln!(
            f,
            "\nProcesses left at the end, with what they held after their last collections"
        )?;
        write_columns(f, &["PROCESSES", "HEAP", "BINARIES", "NUMBER", "LARGEST"])?;
        writeln!(f, " WHAT")?;
        for row in rows {
            write_columns(f, &left_columns(row))?;
            writeln!(f, " {}", view.cut(&row.kind, 5 * 13 + 1))?;
            let started_in = row.started_in.iter().map(|of| format!("started in {of}"));
            let started_by = [format!("by {}", row.started_by)];
            let started_by = started_by
                .into_iter()
                .filter(|_| !row.started_by.is_empty());
            let started: Vec<String> = started_in.chain(started_by).collect();
            if !started.is_empty() {
                writeln!(f, "{:68}{}", "", view.cut(&started.join(" "), 68))?;
            }
        }
        write_more(f, more, "kinds: see --scope all, and --json", 5)
    }

    /// The ETS tables that are left at the end.
    pub(super) fn write_tables(&self, f: &mut fmt::Formatter<'_>, view: &View) -> fmt::Result {
        let (rows, more) = shown(&self.tables, view, |row| row.origin);
        if rows.is_empty() {
            return Ok(());
        }
        writeln!(f, "\nETS tables at the end")?;
        write_columns(f, &["MEMORY", "OBJECTS"])?;
        writeln!(f, " TABLE, OWNER")?;
        for TableLeft {
            name,
            owner,
            owner_name,
            bytes,
            objects,
            ..
        } in rows
        {
            write_columns(f, &[size(*bytes), thousands(*objects)])?;
            let owner = format!("{owner} {owner_name}");
            writeln!(
                f,
                " {}",
                view.cut(&format!("{name}, {}", owner.trim_end()), 2 * 13 + 1)
            )?;
        }
        write_more(f, more, "tables: see --scope all, and --json", 2)
    }
}

/// The numbers of a row; a dash stands for what is not known.
fn left_columns(row: &Left) -> [String; 5] {
    let of_collected = |text: String| match row.collected {
        0 => "-".to_owned(),
        _ => text,
    };
    let of_binaries = |text: String| match (row.binary_bytes, row.binaries) {
        (0, _) | (_, 0) => "-".to_owned(),
        _ => text,
    };
    [
        thousands(row.processes),
        of_collected(size(row.heap_bytes)),
        of_collected(size(row.binary_bytes)),
        of_binaries(thousands(row.binaries)),
        of_binaries(size(row.largest_binary)),
    ]
}
