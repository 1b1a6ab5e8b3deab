//! Making a case small: one thing after the other is left out while its answers still differ.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::outside;

use super::{Finding, Runtimes};

/// Smaller cases tried by one instance.
const SLICE: usize = 60;

/// Longest time that is spent on one case.
const PATIENCE: Duration = Duration::from_secs(90);

/// A case that is as small as it gets.
pub(super) struct Shrunk {
    /// As Erlang source.
    pub(super) source: String,
    /// What each side gives.
    pub(super) answers: Vec<Vec<String>>,
}

/// Makes a finding small; none if its answers do not differ when it runs alone.
pub(super) fn shrink(runtimes: &Runtimes, seed: u64, finding: &Finding) -> Result<Option<Shrunk>> {
    let began = outside::now();
    let maker = runtimes.maker();
    let numbers = [finding.number; 2];
    runtimes.make(&finding.campaign, &seed.to_string(), numbers, "case")?;
    let Some((_, mut finding)) = first_differing(runtimes, "case", 1, || false)? else {
        return Ok(None);
    };
    loop {
        let count = maker.ask(&["smaller", "case", "smaller"])?;
        let count = count.trim().parse().context("how many smaller cases?")?;
        let is_late = || began.elapsed() > PATIENCE;
        let Some((index, smaller)) = first_differing(runtimes, "smaller", count, is_late)? else {
            break;
        };
        maker.ask(&["pick", "smaller", &index.to_string(), "case"])?;
        finding = smaller;
    }
    maker.ask(&["source", "case", "source"])?;
    let source =
        fs::read_to_string(runtimes.dir.join("source")).context("reading a case's source")?;
    Ok(Some(Shrunk {
        source,
        answers: finding.answers,
    }))
}

/// The first case of a file whose answers differ, and its number, if one is found before it `is_late`.
fn first_differing(
    runtimes: &Runtimes,
    file: &str,
    count: usize,
    is_late: impl Fn() -> bool,
) -> Result<Option<(usize, Finding)>> {
    for first in (1..=count).step_by(SLICE) {
        if is_late() {
            break;
        }
        let last = (first + SLICE - 1).min(count);
        let given = runtimes.run_file(file, first, last)?;
        // What the compiler takes in one way or another is no smaller case.
        let mut found = runtimes.differing(file, &given)?.into_iter();
        let found = found.find(|finding| {
            count == 1 || !finding.answers[0].starts_with(&["does not compile".to_owned()])
        });
        if let Some(finding) = found {
            return Ok(Some((runtimes.number_in(finding.number, first), finding)));
        }
    }
    Ok(None)
}
