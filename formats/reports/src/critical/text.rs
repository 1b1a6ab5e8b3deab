//! A critical path as text.

use std::fmt::{self, Write as _};

use beamline_formats::name::time;
use beamline_formats::profile::View;

use super::{CriticalPath, Doing, Part, Share};
use crate::occurrences::{WIDTH, columns};

/// Where no recorded call was open.
const NO_CALL: &str = "(no recorded call was open)";

impl CriticalPath {
    /// As text: tables with as many rows, as wide as the view says.
    #[must_use]
    pub fn to_text(&self, view: &View) -> String {
        let mut text = String::new();
        // A String takes all.
        let _ = self.write_text(&mut text, view);
        text
    }

    fn write_text(&self, f: &mut String, view: &View) -> fmt::Result {
        write!(f, "{}", self.losses)?;
        writeln!(
            f,
            "\nThe critical path from {} to the end of {}: {} from {} on",
            self.from,
            self.to,
            time(self.time_ns),
            time(self.start_ns),
        )?;
        if let Some(caller) = &self.not_from {
            writeln!(
                f,
                "It does not lead back to {caller}, which called {}: the end did not wait for that.",
                self.from
            )?;
        }
        self.write_shares(f, "PROCESS", &self.processes, view)?;
        self.write_shares(f, "FUNCTION", &self.functions, view)?;
        self.write_parts(f, view)
    }

    fn write_shares(&self, f: &mut String, what: &str, rows: &[Share], view: &View) -> fmt::Result {
        writeln!(f)?;
        columns(f, &["TIME", "OF ALL", "RUNS", "WAITS"])?;
        writeln!(f, " {what}")?;
        let shown = view.top.unwrap_or(rows.len()).min(rows.len());
        let (shown, rest) = rows.split_at(shown);
        let sum = rest.iter().fold((0, 0), |(run, wait), row| {
            (run + row.run_ns, wait + row.wait_ns)
        });
        let sum = (!rest.is_empty()).then(|| Share {
            of: more(rest.len()),
            run_ns: sum.0,
            wait_ns: sum.1,
        });
        for row in shown.iter().chain(&sum) {
            let permille = u128::from(row.time_ns()) * 1000 / u128::from(self.time_ns.max(1));
            let share = format!("{}.{} %", permille / 10, permille % 10);
            columns(
                f,
                &[
                    time(row.time_ns()),
                    share,
                    time(row.run_ns),
                    time(row.wait_ns),
                ],
            )?;
            let of = if row.of.is_empty() { NO_CALL } else { &row.of };
            writeln!(f, " {}", view.cut(of, 4 * WIDTH + 1))?;
        }
        Ok(())
    }

    /// The longest parts, in the order of the path.
    fn write_parts(&self, f: &mut String, view: &View) -> fmt::Result {
        writeln!(f)?;
        columns(f, &["BEGINS AT", "TIME"])?;
        writeln!(f, " WHAT")?;
        let mut longest: Vec<usize> = (0..self.parts.len()).collect();
        longest.sort_by_key(|at| std::cmp::Reverse(self.parts[*at].time_ns));
        longest.truncate(view.top.unwrap_or(usize::MAX));
        longest.sort_unstable();
        for part in longest.iter().map(|at| &self.parts[*at]) {
            columns(f, &[time(part.start_ns), time(part.time_ns)])?;
            writeln!(f, " {}", view.cut(&part.text(), 2 * WIDTH + 1))?;
        }
        let left = self.parts.len() - longest.len();
        if left == 0 {
            return Ok(());
        }
        let shown: u64 = longest.iter().map(|at| self.parts[*at].time_ns).sum();
        let rest = self.time_ns.saturating_sub(shown);
        columns(f, &[String::new(), time(rest)])?;
        writeln!(f, " {}", more(left))
    }
}

fn more(rows: usize) -> String {
    format!("({rows} more; --top all shows them)")
}

impl Part {
    fn text(&self) -> String {
        let who = format!("{} {}", self.process, self.name);
        let who = who.trim_end();
        let function = match self.function.as_str() {
            "" => NO_CALL,
            function => function,
        };
        match (self.doing, &self.sender) {
            (Doing::Runs, _) => format!("{who} runs {function}"),
            (Doing::Message, Some(sender)) => {
                format!("a message of {sender} is on its way to {who}, which waits in {function}")
            }
            (Doing::Message, None) => {
                format!("{who} waits in {function} for what it has asked for")
            }
            (Doing::IsReady, _) => format!("{who} waits for a scheduler in {function}"),
            (Doing::Waits, _) => format!("{who} waits in {function}"),
            (Doing::Unseen, _) => format!("nothing is recorded of {who} yet"),
        }
    }
}
