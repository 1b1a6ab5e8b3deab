//! The parts of a task: they run one after the other, and at the end stands how long each of them took.

use anyhow::{Result, bail};

use crate::outside;

/// A part: its name, and what it runs.
pub(crate) type Part<'p> = (String, Box<dyn Fn() -> Result<()> + 'p>);

/// A part of a task.
pub(crate) fn part<'p>(name: &str, run: impl Fn() -> Result<()> + 'p) -> Part<'p> {
    (name.to_owned(), Box::new(run))
}

/// What a part that fails does to those behind it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum AfterFailure {
    /// They do not run: whoever waits for the answer has it at once.
    Stop,
    /// They run all the same: nobody waits.
    GoOn,
}

/// Runs the parts, prints a line for each and the table of all at the end with `notes` below it, and fails if one of them
/// failed.
pub(crate) fn run_all(parts: Vec<Part<'_>>, after: AfterFailure, notes: &[String]) -> Result<()> {
    let began = outside::now();
    let mut lines = Vec::new();
    let mut failed = Vec::new();
    for (name, run) in parts {
        if after == AfterFailure::Stop && !failed.is_empty() {
            lines.push(format!("     -  {name}: not run"));
            continue;
        }
        let since = outside::now();
        let ended = run();
        let seconds = since.elapsed().as_secs();
        let how = match &ended {
            Ok(()) => "passes".to_owned(),
            Err(error) => format!("fails: {error:#}"),
        };
        eprintln!("{name}: {how} ({seconds} s)");
        lines.push(format!("{seconds:6}  {name}: {how}"));
        if ended.is_err() {
            failed.push(name);
        }
    }
    eprintln!(
        "\nseconds of each part, {} in all:",
        began.elapsed().as_secs()
    );
    lines
        .iter()
        .chain(notes)
        .for_each(|line| eprintln!("{line}"));
    if !failed.is_empty() {
        bail!("{}", failed.join(", "));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn what_a_failure_leaves_out_is_told_by_its_task() {
        let run = |after| {
            let seen = RefCell::new(Vec::new());
            let one = |name: &'static str, is_good: bool| {
                let seen = &seen;
                part(name, move || {
                    seen.borrow_mut().push(name);
                    if is_good { Ok(()) } else { bail!("why") }
                })
            };
            let parts = vec![one("a", true), one("b", false), one("c", true)];
            let ended = run_all(parts, after, &[]).map_err(|error| error.to_string());
            (ended, seen.into_inner())
        };
        let failed = Err("b".to_owned());
        assert_eq!(run(AfterFailure::Stop), (failed.clone(), vec!["a", "b"]));
        assert_eq!(run(AfterFailure::GoOn), (failed, vec!["a", "b", "c"]));
    }
}
