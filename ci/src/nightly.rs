//! `cargo xtask nightly`: everything that tests, for as long as it takes.

use std::process::Command;

use anyhow::Result;

use crate::parts::{self, AfterFailure, part};
use crate::{engines, fetch, run};

/// Options of `cargo xtask nightly`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Run this part, and others that are named so [default: all]
    #[arg(long, value_name = "NAME", value_parser = clap::builder::PossibleValuesParser::new(PARTS.map(|(name, _)| name)))]
    only: Vec<String>,
    /// Seed of the random numbers [default: one of this commit]
    #[arg(long)]
    seed: Option<u64>,
}

/// Stands for the seed in the words of a part.
const SEED: &str = "SEED";

/// Random numbers from the seed of a commit to that of the next one.
const NUMBERS: u64 = 10_000;

/// The parts: each one's name, and the task of this program that it runs.
const PARTS: [(&str, &[&str]); 18] = [
    ("tests", &["test", "--quick"]),
    // The tests of the binary, the golden cases, samples, trace sessions, answers of the trace interface, libraries of
    // others, and all suites of the gate.
    ("interpreter", &["engines", "--engine", "interpreter"]),
    ("jit", &["engines", "--engine", "jit"]),
    ("suites-rest", &["conformance", "--rest"]),
    ("suites-peers", &["conformance", "--peers"]),
    ("suites-zeal", &["conformance", "--zeal"]),
    ("samples", &["samples", "--gate", "--rounds", "10"]),
    (
        "modules",
        &["differ", "modules", "--cases", "10000", "--seed", SEED],
    ),
    (
        "campaigns",
        &[
            "differ",
            "--seed",
            SEED,
            "instructions",
            "calls",
            "tables",
            "specs",
            "programs",
            "traces",
            "formats",
            "extremes",
        ],
    ),
    ("kills", &["kills", "--rounds", "200", "--seed", SEED]),
    ("replays", &["replays", "--rounds", "100"]),
    (
        "replays-random",
        &["replays", "--random", "--rounds", "200", "--seed", SEED],
    ),
    ("orders", &["orders", "--programs", "100", "--first", SEED]),
    ("stress", &["stress", "--seconds", "600", "--seed", SEED]),
    (
        "stress-zeal",
        &["stress", "--zeal", "--seconds", "120", "--seed", SEED],
    ),
    ("sanitize", &["sanitize"]),
    ("loom", &["loom"]),
    ("fuzz", &["fuzz", "--time", "60"]),
];

/// Runs the parts, goes on after one that fails, and tells how long each took and which ones failed.
pub(crate) fn main(options: &Options) -> Result<()> {
    // Else tests that need it would be skipped by the part that runs none.
    fetch::otp()?;
    let seed = match options.seed {
        Some(seed) => seed,
        None => run::commits()? * NUMBERS,
    };
    let seed = seed.to_string();
    let is_chosen =
        |name: &str| options.only.is_empty() || options.only.iter().any(|it| it == name);
    let chosen = PARTS.iter().filter(|(name, _)| is_chosen(name));
    let all = chosen.map(|(name, words)| {
        let seed = &seed;
        part(name, move || run::status(&mut command(words, seed)))
    });
    parts::run_all(all.collect(), AfterFailure::GoOn, &[])
}

/// The task that these words name, with this seed. Property tests draw cases of it, too; all other runs draw those of one
/// fixed seed.
fn command(words: &[&str], seed: &str) -> Command {
    let words = words
        .iter()
        .map(|&word| if word == SEED { seed } else { word });
    let words: Vec<String> = words.map(str::to_owned).collect();
    let mut command = engines::task(&words[0], &words[1..]);
    command.env("PROPTEST_RNG_SEED", seed);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_has_its_seed() {
        let (_, words) = PARTS.iter().find(|(name, _)| *name == "kills").unwrap();
        let command = command(words, "7");
        let arguments: Vec<_> = command.get_args().collect();
        assert_eq!(arguments, ["kills", "--rounds", "200", "--seed", "7"]);
        let seeds: Vec<_> = command.get_envs().collect();
        let seed = ("PROPTEST_RNG_SEED".as_ref(), Some("7".as_ref()));
        assert_eq!(seeds, [seed]);
    }

    /// A word that a task does not know would be found in the night.
    #[test]
    fn each_part_is_a_task() {
        for (name, words) in PARTS {
            let words = words
                .iter()
                .map(|&word| if word == SEED { "7" } else { word });
            let line = std::iter::once("xtask").chain(words);
            let parsed = crate::parse(line);
            assert!(parsed.is_ok(), "{name}: {}", parsed.err().unwrap());
        }
    }
}
