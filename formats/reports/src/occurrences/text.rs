//! Occurrences as text.

use std::fmt::{self, Write as _};

use beamline_formats::name::time;
use beamline_formats::profile::View;

use super::{Occurrence, Occurrences, Within};

impl Occurrences {
    /// As text: tables with as many rows of functions, as wide as the view says.
    #[must_use]
    pub fn to_text(&self, view: &View) -> String {
        let mut text = String::new();
        // A String takes all.
        let _ = self.write_text(&mut text, view);
        text
    }

    /// The occurrence that was asked for.
    #[must_use]
    pub fn chosen(&self) -> Option<&Occurrence> {
        self.chosen.as_ref()
    }

    fn write_text(&self, f: &mut String, view: &View) -> fmt::Result {
        write!(f, "{}", self.losses)?;
        match self.unfinished {
            0 => {}
            1 => writeln!(f, "1 had not ended, and is left out.")?,
            many => writeln!(f, "{many} had not ended, and are left out.")?,
        }
        match &self.until {
            Some(until) => writeln!(f, "\nFrom {} until {until}", self.from)?,
            None => writeln!(f, "\nCalls of {}", self.from)?,
        }
        let of = &self.times;
        columns(f, &["COUNT", "50 %", "90 %", "99 %", "MAX"])?;
        writeln!(f)?;
        let mut cells = vec![of.count.to_string()];
        cells.extend([of.p50, of.p90, of.p99, of.max].map(time));
        columns(f, &cells)?;
        writeln!(f)?;
        match &self.chosen {
            Some(chosen) => {
                writeln!(f, "\nThe one that was chosen")?;
                self.write_occurrences(f, std::slice::from_ref(chosen), view)?;
                writeln!(f, "\nWhat was done in it")?;
            }
            None => {
                writeln!(f, "\nThe slowest")?;
                self.write_occurrences(f, &self.slowest, view)?;
                writeln!(f, "\nWhat was done in all of them")?;
            }
        }
        self.write_functions(f, view)
    }

    fn write_occurrences(&self, f: &mut String, rows: &[Occurrence], view: &View) -> fmt::Result {
        let mut head = vec!["NTH", "BEGINS AT", "TIME"];
        if self.has_slices {
            head.extend(["RUNS", "WAITS"]);
        }
        columns(f, &head)?;
        writeln!(f, " PROCESS")?;
        for row in rows {
            let mut cells = vec![row.nth.to_string(), time(row.start_ns), time(row.time_ns)];
            if self.has_slices {
                cells.extend([row.run_ns, row.wait_ns].map(time));
            }
            columns(f, &cells)?;
            let who = format!("{} {}", row.process, row.name);
            let who = view.cut(who.trim_end(), cells.len() * WIDTH + 1);
            writeln!(f, " {who}")?;
        }
        Ok(())
    }

    fn write_functions(&self, f: &mut String, view: &View) -> fmt::Result {
        let mut head = vec!["TIME", "OF ALL"];
        if self.has_slices {
            head.extend(["RUNS", "WAITS"]);
        }
        head.push("CALLS");
        columns(f, &head)?;
        writeln!(f, " FUNCTION")?;
        let all: u64 = self.functions.iter().map(Within::time_ns).sum();
        let shown = view.top.unwrap_or(self.functions.len());
        for row in self.functions.iter().take(shown) {
            self.write_function(f, row, all, view)?;
        }
        let rest = self.functions.get(shown..).unwrap_or(&[]);
        if rest.is_empty() {
            return Ok(());
        }
        let sum = rest
            .iter()
            .fold(Within::rest(rest.len()), |sum, row| Within {
                calls: sum.calls + row.calls,
                run_ns: sum.run_ns.saturating_add(row.run_ns),
                wait_ns: sum.wait_ns.saturating_add(row.wait_ns),
                ..sum
            });
        self.write_function(f, &sum, all, view)
    }

    fn write_function(&self, f: &mut String, row: &Within, all: u64, view: &View) -> fmt::Result {
        let permille = u128::from(row.time_ns()) * 1000 / u128::from(all.max(1));
        let share = format!("{}.{} %", permille / 10, permille % 10);
        let mut cells = vec![time(row.time_ns()), share];
        if self.has_slices {
            cells.extend([row.run_ns, row.wait_ns].map(time));
        }
        cells.push(row.calls.to_string());
        columns(f, &cells)?;
        let name = match row.function.as_str() {
            "" => "(no recorded call was open)",
            name => name,
        };
        writeln!(f, " {}", view.cut(name, cells.len() * WIDTH + 1))
    }
}

impl Within {
    /// The sum of functions that have no row; nothing yet.
    fn rest(functions: usize) -> Within {
        Within {
            function: format!("({functions} more; --top all shows them)"),
            calls: 0,
            run_ns: 0,
            wait_ns: 0,
        }
    }
}

/// Characters of a column, with the space before the next.
pub(crate) const WIDTH: usize = 12;

/// Writes the cells of a row, each to the right of its column.
pub(crate) fn columns<T: AsRef<str>>(f: &mut String, cells: &[T]) -> fmt::Result {
    for (at, cell) in cells.iter().enumerate() {
        let space = if at == 0 { "" } else { " " };
        write!(f, "{space}{:>11}", cell.as_ref())?;
    }
    Ok(())
}
