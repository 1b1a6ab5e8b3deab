//! The part of a report that shows counter values: of the whole run, of time slices, of functions and of call paths.

use std::fmt;

use beamline_formats::name;
use beamline_formats::profile::{Function, Profile};
use beamline_formats::ring::Recording;
use beamline_settings::counter::{Counted, add};
use serde::Serialize;

/// The counter values of a function or a call path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CounterCost {
    /// The function, or the functions of the path from the first, with semicolons between them.
    pub what: String,
    /// The value of each counter.
    pub counted: Vec<u64>,
}

/// The counter values that a report shows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// The names of the counters.
    pub names: Vec<String>,
    /// The values of all threads of the emulator, if the recording has ended.
    pub run: Option<Vec<u64>>,
    /// The values of all time slices of processes.
    pub slices: Vec<u64>,
    /// The functions with the highest values of the first counter. Each time slice is shared out by own time.
    pub by_function: Vec<CounterCost>,
    /// The call paths with the highest values of the first counter.
    pub by_path: Vec<CounterCost>,
}

/// The sums of the counter values in records.
#[derive(Clone, Copy, Default)]
pub(super) struct Sums {
    pub(super) slices: Counted,
    pub(super) run: Option<Counted>,
}

impl Sums {
    pub(super) fn add(&mut self, more: &Sums) {
        add(&mut self.slices, &more.slices);
        self.run = self.run.or(more.run);
    }
}

fn text(function: &Function) -> String {
    name::mfa(&function.module, &function.name, function.arity)
}

/// The `top` rows with the highest values of the first counter.
fn best(
    all: impl Iterator<Item = (String, Counted)>,
    top: usize,
    count: usize,
) -> Vec<CounterCost> {
    let mut all: Vec<_> = all.filter(|(_, counted)| *counted != [0; 4]).collect();
    all.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    all.truncate(top);
    let row = |(what, counted): (String, Counted)| CounterCost {
        what,
        counted: counted[..count].to_vec(),
    };
    all.into_iter().map(row).collect()
}

impl Counters {
    /// The counter values of a recording that has any. `paths` are the values of each node of the profile.
    pub(super) fn of(
        recording: &Recording,
        sums: &Sums,
        profile: &Profile,
        paths: &[Counted],
        top: usize,
    ) -> Option<Counters> {
        let names = recording.description().settings.counters.clone();
        let count = names.len().min(sums.slices.len());
        if count == 0 {
            return None;
        }
        let mut functions = vec![Counted::default(); profile.functions.len()];
        for (node, counted) in profile.nodes.iter().zip(paths) {
            add(&mut functions[node.function as usize], counted);
        }
        let functions = profile.functions.iter().map(text).zip(functions);
        // The text of a path is made only of those that are shown.
        let mut most: Vec<usize> = (0..paths.len()).collect();
        most.sort_by_key(|at| std::cmp::Reverse(paths[*at]));
        most.truncate(top);
        let by_path = most.into_iter().map(|at| (path(profile, at), paths[at]));
        Some(Counters {
            run: sums.run.map(|run| run[..count].to_vec()),
            slices: sums.slices[..count].to_vec(),
            by_function: best(functions, top, count),
            by_path: best(by_path, top, count),
            names,
        })
    }

    fn write_row(&self, f: &mut fmt::Formatter<'_>, counted: &[u64], what: &str) -> fmt::Result {
        for (name, value) in self.names.iter().zip(counted) {
            let value = match name.as_str() {
                "task-clock" => name::time(*value),
                _ => value.to_string(),
            };
            write!(f, "{value:>16} ")?;
        }
        writeln!(f, " {what}")
    }
}

/// The functions of a path, from the first.
fn path(profile: &Profile, at: usize) -> String {
    let mut functions = Vec::new();
    let mut next = Some(at);
    while let Some(at) = next {
        let node = &profile.nodes[at];
        let function = text(&profile.functions[node.function as usize]);
        functions.push(name::frame(&function));
        next = node.parent.map(|parent| parent as usize);
    }
    functions.reverse();
    functions.join(";")
}

impl fmt::Display for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\nCounted")?;
        for name in &self.names {
            write!(f, "{:>16} ", name.to_uppercase())?;
        }
        writeln!(f)?;
        if let Some(run) = &self.run {
            self.write_row(f, run, "all threads of the emulator")?;
        }
        self.write_row(f, &self.slices, "time slices of processes")?;
        for (title, rows) in [
            ("functions", &self.by_function),
            ("call paths", &self.by_path),
        ] {
            if !rows.is_empty() {
                writeln!(
                    f,
                    "\nCounters by {title} (a time slice's are shared out by own time)"
                )?;
            }
            for row in rows {
                self.write_row(f, &row.counted, &row.what)?;
            }
        }
        Ok(())
    }
}
