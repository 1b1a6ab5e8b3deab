//! `cargo xtask counts --reductions`: what calls of BIFs cost, in reductions and words, on OTP and on Beamline.
//!
//! The calls are the rows of `benches/workloads/costs.erl`. What two runs of OTP do not count alike is named and
//! not compared.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result, bail};

use crate::place::{OtpOptions, Place, words};
use crate::{binary, fetch, paths, run};

/// Rows that cost something else here, and why.
const EXPLAINED: &[(&str, &str)] = &[
    ("binary_to_integer_big", INTEGER),
    ("characters_to_binary", REST),
    ("characters_to_list", REST),
    ("characters_to_list_latin1", REST),
    ("characters_to_nfc", REST),
    ("error_bif", TRACE),
    ("error_hd", TRACE),
    ("ets_match_limit", BEYOND),
    ("ets_match_object_limit", BEYOND),
    ("ets_select_continue", BEYOND),
    ("ets_select_limit", BEYOND),
    (
        "ets_select_replace",
        "an object is made on the heap before it is stored",
    ),
    ("group_leader_2", ASKED),
    ("is_alive", ASKED),
    ("list_to_integer_big", INTEGER),
    ("maps_filter", SORTED),
    ("maps_from_keys", SORTED),
    ("maps_from_list", SORTED),
    ("maps_map", SORTED),
    ("maps_merge", SORTED),
    ("process_info_other", ASKED),
    ("process_info_other_all", ASKED),
    ("put_many", "the dictionary's chains are not on the heap"),
    ("re_replace", MATCHER),
    ("re_run", MATCHER),
    ("re_run_captures", MATCHER),
    ("send_name", TRACE),
    ("string_lowercase", REST),
    ("suspend", ASKED),
    ("term_to_binary_compressed", ZLIB),
    ("zlib", ZLIB),
    ("zlib_back", ZLIB),
];

const ASKED: &str = "OTP looks into a process that rests; here it is asked";
const BEYOND: &str = "results beyond the limit get cells of their own";
const INTEGER: &str = "made of other parts";
const MATCHER: &str = "the steps of another matcher";
const REST: &str = "what is kept at a pause is not told to the word";
const SORTED: &str = "OTP sorts with pivots drawn by chance; this is the mean";
const TRACE: &str = "what explains the error is made with the stack trace";
const ZLIB: &str = "another zlib cuts its output elsewhere";

/// A row and its size.
type Row = (String, u64);

/// What a row cost.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Cost {
    reductions: u64,
    words: i64,
}

type Costs = BTreeMap<Row, Cost>;

/// Runs all rows and prints those that differ.
pub(crate) fn main(otp: &OtpOptions, rounds: usize) -> Result<()> {
    let dir = otp.folder("costs")?;
    let otp_place = otp.place()?;
    let source = paths::workspace().join("benches/workloads/costs.erl");
    fs::copy(&source, dir.join("costs.erl"))
        .with_context(|| format!("copying {}", source.display()))?;
    run::output(otp_place.command(&dir, &words(&otp.erlc))?.arg("costs.erl"))?;
    let count = |place: &Place, program: &[String]| {
        let mut command = place.command(&dir, program)?;
        command.args(["-noshell", "-pa", ".", "-run", "costs", "main"]);
        rows(&run::output(&mut command)?)
    };
    let erl = words(&otp.erl);
    let runs = (0..rounds.max(2)).map(|_| count(&otp_place, &erl));
    let runs = runs.collect::<Result<Vec<_>>>().context("on OTP")?;
    let program = binary::beamline_run(&fetch::otp()?.root, &["erl"])?;
    let ours = count(&Place::new(None)?, &program).context("on Beamline")?;
    let (steady, unsteady) = steady(&runs);
    println!(
        "{} rows; OTP differs from itself in {}",
        runs[0].len(),
        unsteady.join(", ")
    );
    let differences = differences(&steady, &ours);
    let mut unexplained = 0;
    println!("| row | size | reductions, OTP | Beamline | words, OTP | Beamline | why |");
    println!("|---|---:|---:|---:|---:|---:|---|");
    for ((name, size), otp, ours) in &differences {
        let why = EXPLAINED
            .iter()
            .find(|(row, _)| row == name)
            .map(|(_, why)| *why);
        unexplained += usize::from(why.is_none());
        println!(
            "| {name} | {size} | {} | {} |",
            columns(otp, ours),
            why.unwrap_or("")
        );
    }
    if unexplained > 0 {
        bail!("{unexplained} rows have other costs than on OTP, without a known reason");
    }
    Ok(())
}

fn columns(otp: &Cost, ours: &Cost) -> String {
    format!(
        "{} | {} | {} | {}",
        otp.reductions, ours.reductions, otp.words, ours.words
    )
}

/// Reads lines `COST Row Size Reductions Words`.
fn rows(printed: &str) -> Result<Costs> {
    let mut costs = Costs::new();
    for line in printed.lines() {
        let Some(row) = line.strip_prefix("COST ") else {
            continue;
        };
        let [name, size, reductions, words] = row.split(' ').collect::<Vec<_>>()[..] else {
            bail!("no row of four columns: {line}");
        };
        let cost = Cost {
            reductions: reductions.parse()?,
            words: words.parse()?,
        };
        costs.insert((name.to_owned(), size.parse()?), cost);
    }
    if costs.is_empty() {
        bail!("nothing was counted: {printed:?}");
    }
    Ok(costs)
}

/// What all runs count alike, and the names of the other rows.
fn steady(runs: &[Costs]) -> (Costs, Vec<String>) {
    let (mut steady, mut unsteady) = (Costs::new(), Vec::new());
    for (row, cost) in &runs[0] {
        if runs.iter().all(|run| run.get(row) == Some(cost)) {
            steady.insert(row.clone(), *cost);
        } else {
            unsteady.push(format!("{}/{}", row.0, row.1));
        }
    }
    (steady, unsteady)
}

/// The rows of `otp` that cost something else in `ours`; one that is not there costs nothing.
fn differences(otp: &Costs, ours: &Costs) -> Vec<(Row, Cost, Cost)> {
    let none = Cost {
        reductions: 0,
        words: 0,
    };
    otp.iter()
        .map(|(row, cost)| (row.clone(), *cost, *ours.get(row).unwrap_or(&none)))
        .filter(|(_, otp, ours)| otp != ours)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_compared_where_otp_is_steady() {
        let first = rows("hello\nCOST a 3 5 7\nCOST b 3 1 2\nCOST c 60000 9 0\n").unwrap();
        let second = rows("COST a 3 5 7\nCOST b 3 1 3\nCOST c 60000 9 0\n").unwrap();
        let ours = rows("COST a 3 5 7\nCOST b 3 4 4\nCOST c 60000 8 -1\n").unwrap();
        let (steady, unsteady) = steady(&[first, second]);
        assert_eq!(unsteady, ["b/3"]);
        let differing = differences(&steady, &ours);
        assert_eq!(differing.len(), 1);
        let ((name, size), otp, ours) = &differing[0];
        assert_eq!((name.as_str(), *size), ("c", 60000));
        assert_eq!(columns(otp, ours), "9 | 8 | 0 | -1");
    }

    #[test]
    fn what_is_no_row_is_refused() {
        assert!(rows("COST a 3 5\n").is_err());
        assert!(rows("hello\n").is_err());
    }
}
