//! The campaign of operands and sizes at their extremes (`ci/differ/extremes.erl`), which prints a line a call.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::{Side, on_all};
use crate::instance::{Instance, Silence, shown};

/// Longest time in which it prints nothing.
const SILENCE: Duration = Duration::from_secs(60);

/// Random calls of each function, besides those with the same value everywhere.
const CALLS: &str = "3";

/// Prints the calls whose results differ; gives how many these are, and how many calls there were.
pub(super) fn run(sides: &[Side], seed: u64) -> Result<(usize, usize)> {
    let given: Result<Vec<_>> = on_all(sides, |side| results(side, seed))
        .into_iter()
        .collect();
    let given = given?;
    let (truth, others) = given.split_first().context("no side")?;
    ensure!(truth.len() > 1, "no call was made on {}", sides[0].name);
    let mut differ = 0;
    for (call, expected) in truth {
        let said = |results: &BTreeMap<_, String>| results.get(call).cloned();
        if others
            .iter()
            .all(|results| said(results).as_ref() == Some(expected))
        {
            continue;
        }
        differ += 1;
        println!("\n{call}");
        for (side, results) in sides.iter().zip(&given) {
            let result = said(results);
            println!(
                "  {}: {}",
                side.name,
                result.as_deref().unwrap_or("nothing")
            );
        }
    }
    eprintln!(
        "extremes --seed {seed}: {} calls, {differ} differ",
        truth.len()
    );
    Ok((differ, truth.len()))
}

/// What each call gave, and how the instance ended.
fn results(side: &Side, seed: u64) -> Result<BTreeMap<String, String>> {
    let (cwd, mut command) = side.command()?;
    let lines = cwd.join("extremes");
    command.args(["-run", "extremes", "main", &seed.to_string(), CALLS]);
    command.stdout(File::create(&lines).context("making a file of lines")?);
    command.stderr(File::create(cwd.join("log")).context("making a log")?);
    let mut silence = Silence::new(&lines, SILENCE);
    let status = Instance::start(command)?.wait(|| silence.is_over())?;
    let mut results = parse(&String::from_utf8_lossy(&fs::read(&lines)?));
    results.insert("the instance".to_owned(), shown(status));
    Ok(results)
}

fn parse(text: &str) -> BTreeMap<String, String> {
    let pairs = text.lines().filter_map(|line| line.split_once(" -> "));
    pairs
        .map(|(call, result)| (call.to_owned(), result.to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_calls() {
        let results =
            parse("erlang:abs(zero) -> ok:0\nno line of a call\nbits(a) -> error:{x -> y}\n");
        assert_eq!(results["erlang:abs(zero)"], "ok:0");
        assert_eq!(results["bits(a)"], "error:{x -> y}");
        assert_eq!(results.len(), 2);
    }
}
