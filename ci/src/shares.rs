//! `cargo xtask shares`: whether the shares that `beamline sample` tells of OTP's emulator, or of our own runtime, are right.
//!
//! The workloads of `ci/shares/shares_work.erl` know their shares themselves: functions do the same unit of work so many
//! times, or the emulator's own clock of processor time says how long each part ran. Samples of such a run are held
//! against that. Of all shares, 95 in 100 are to lie within the 95 % error bar of their samples; none may be farther
//! away than four standard deviations, and what that clock cannot tell.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::place::{OtpOptions, Place, words};
use crate::{binary, paths, run};

const WORKLOADS: [&str; 21] = [
    "units",
    "tails",
    "rare",
    "two_processes",
    "recursion",
    "funs",
    "external_terms",
    "sort",
    "tables",
    "collections",
    "maps",
    "binaries",
    "exceptions",
    "regex",
    "zlib",
    "hashes",
    "dirty",
    "bignums",
    "messages",
    "texts",
    "mixed",
];

/// What the emulator's clock may have wrong, as a part of all: it counts milliseconds, and the kernel's time too.
const CLOCK: f64 = 0.01;

/// Standard deviations within which 95 % of a normal distribution lie, and those that no share may be away.
const BAR: f64 = 1.96;
const FAR: f64 = 4.0;

/// Options of `cargo xtask shares`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Names of workloads [default: all]
    workloads: Vec<String>,
    /// Sample with this beamline binary [default: a new optimised build]
    #[arg(long, value_name = "FILE")]
    beamline: Option<PathBuf>,
    #[command(flatten)]
    otp: OtpOptions,
    /// Sample Beamline's own runtime, which runs the libraries of $BEAMLINE_OTP
    #[arg(long, conflicts_with_all = ["erl", "erlc", "chroot"])]
    own: bool,
    /// Run each workload so many times
    #[arg(long, default_value_t = 1)]
    rounds: u32,
    /// Run each workload for so many seconds of processor time
    #[arg(long, default_value_t = 3)]
    seconds: u32,
    /// Samples a second
    #[arg(long, default_value_t = 997)]
    rate: u32,
}

/// A part of a workload, by the function whose it is.
#[derive(Debug, PartialEq)]
struct Part {
    function: String,
    /// With all that it calls.
    is_total: bool,
    /// In the units of its workload.
    size: f64,
}

/// A share as it is, and as the samples say.
#[derive(Debug, PartialEq)]
struct Held {
    function: String,
    truth: f64,
    sampled: f64,
    /// One standard deviation of the samples.
    deviation: f64,
    is_measured: bool,
}

impl Held {
    fn distance(&self) -> f64 {
        (self.sampled - self.truth).abs()
    }

    fn is_within_bar(&self) -> bool {
        self.distance() <= BAR * self.deviation
    }

    fn is_far(&self) -> bool {
        let clock = if self.is_measured { CLOCK } else { 0.0 };
        self.distance() > FAR * self.deviation + clock
    }
}

/// Runs the workloads and prints a line for each share.
pub(crate) fn main(options: &Options) -> Result<()> {
    let bench = Bench::new(options)?;
    let named: Vec<&str> = options.workloads.iter().map(String::as_str).collect();
    let chosen = if named.is_empty() {
        WORKLOADS.to_vec()
    } else {
        named
    };
    println!("| workload | function | true % | sampled % | ± | |\n|---|---|---:|---:|---:|---|");
    let mut all = Vec::new();
    for _ in 0..options.rounds.max(1) {
        for name in &chosen {
            for held in bench.run(name)? {
                println!("| {name} | {} |", row(&held));
                all.push(held);
            }
        }
    }
    let within = all.iter().filter(|held| held.is_within_bar()).count();
    let far = all.iter().filter(|held| held.is_far()).count();
    println!("\n{within} of {} shares within their error bars", all.len());
    ensure!(far == 0, "{far} shares are wrong by more than chance");
    Ok(())
}

fn row(held: &Held) -> String {
    let percent = |part: f64| 100.0 * part;
    let about = match (held.is_far(), held.is_within_bar()) {
        (true, _) => "far",
        (false, false) => "outside",
        (false, true) => "",
    };
    format!(
        "{} | {:.2} | {:.2} | {:.2} | {about}",
        held.function,
        percent(held.truth),
        percent(held.sampled),
        percent(BAR * held.deviation),
    )
}

/// What runs need.
struct Bench {
    dir: PathBuf,
    beamline: PathBuf,
    on: &'static str,
    place: Place,
    erl: Vec<String>,
    seconds: String,
    rate: String,
}

impl Bench {
    fn new(options: &Options) -> Result<Bench> {
        let dir = options.otp.folder("shares")?;
        let place = options.otp.place()?;
        let source = "shares_work.erl";
        let from = paths::workspace().join("ci/shares").join(source);
        fs::copy(from, dir.join(source)).context("copying the program")?;
        let beamline = match &options.beamline {
            Some(file) => file.canonicalize().context("looking for the binary")?,
            None => binary::beamline()?,
        };
        let mut compile = match options.own {
            true => vec![beamline.display().to_string(), "run".into(), "--".into()],
            false => Vec::new(),
        };
        compile.extend(words(&options.otp.erlc));
        compile.push(source.to_owned());
        run::output(&mut place.command(&dir, &compile)?)?;
        Ok(Bench {
            dir,
            beamline,
            on: if options.own { "beamline" } else { "otp" },
            place,
            erl: words(&options.otp.erl),
            seconds: options.seconds.to_string(),
            rate: options.rate.to_string(),
        })
    }

    /// Runs a workload under the sampler.
    fn run(&self, workload: &str) -> Result<Vec<Held>> {
        let [file, json] =
            ["samples", "json"].map(|end| self.dir.join(format!("{workload}.{end}")));
        let mut inner = self.erl.clone();
        // Schedulers that look for work take no processor time.
        let flags =
            "+S 2 +sbwt none +sbwtdcpu none +sbwtdio none -noshell -pa . -run shares_work main";
        inner.extend(words(flags));
        inner.extend([workload.to_owned(), self.seconds.clone()]);
        let inner = self.place.command(&self.dir, &inner)?;
        let mut sample = Command::new(&self.beamline);
        sample
            .args(["sample", "--on", self.on, "--rate", &self.rate, "-o"])
            .arg(&file)
            .arg("--")
            .arg(inner.get_program())
            .args(inner.get_args())
            .current_dir(&self.dir);
        let parts = parts(&run::output(&mut sample)?);
        let mut report = Command::new(&self.beamline);
        report.arg("report").arg(&file).arg("--json").arg(&json);
        run::output(&mut report)?;
        let text =
            fs::read_to_string(&json).with_context(|| format!("reading {}", json.display()))?;
        held(&parts, &serde_json::from_str(&text)?).with_context(|| workload.to_owned())
    }
}

/// The parts that a workload printed.
fn parts(printed: &str) -> Vec<Part> {
    let part = |line: &str| {
        let mut words = line.split_whitespace();
        let is_total = match words.next()? {
            "total" => true,
            "own" => false,
            _ => return None,
        };
        Some(Part {
            function: words.next()?.to_owned(),
            is_total,
            size: words.next()?.parse().ok()?,
        })
    };
    printed.lines().filter_map(part).collect()
}

/// Holds the samples of a report against the parts.
fn held(parts: &[Part], report: &Value) -> Result<Vec<Held>> {
    let rows = report["functions"].as_array();
    let rows = rows.context("a report has functions")?;
    let samples = |part: &Part| {
        let row = rows.iter().find(|row| row["what"] == *part.function)?;
        let count = match part.is_total {
            true => &row["total"]["samples"],
            false => &row["samples"],
        };
        count.as_f64()
    };
    let counts: Vec<f64> = parts.iter().map(|of| samples(of).unwrap_or(0.0)).collect();
    let (all, size): (f64, f64) = (counts.iter().sum(), parts.iter().map(|of| of.size).sum());
    if all == 0.0 || size == 0.0 {
        bail!("nothing of the workload was seen");
    }
    let held = parts.iter().zip(counts).map(|(part, count)| {
        let truth = part.size / size;
        Held {
            function: part.function.clone(),
            truth,
            sampled: count / all,
            deviation: (truth * (1.0 - truth) / all).sqrt(),
            is_measured: size > 100.0,
        }
    });
    Ok(held.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = "own m:a/1 3\nanother line\nown m:b/1 1\n";

    fn report(a: u32, b: u32) -> Value {
        serde_json::json!({"functions": [
            {"what": "m:a/1", "samples": a, "total": {"samples": 1000}},
            {"what": "m:b/1", "samples": b, "total": {"samples": 1000}},
            {"what": "m:c/1", "samples": 9999, "total": {"samples": 9999}},
        ]})
    }

    #[test]
    fn shares_are_of_the_parts_and_held_against_their_sizes() {
        let parts = parts(PRINTED);
        assert_eq!(parts.len(), 2);
        // One deviation of 1,200 samples is 1.25 %.
        for (a, is_within, is_far) in [
            (900, true, false),
            (925, true, false),
            (935, false, false),
            (955, false, false),
            (965, false, true),
        ] {
            let held = held(&parts, &report(a, 1200 - a)).expect("both are there");
            for one in &held {
                let found = (one.is_within_bar(), one.is_far());
                assert_eq!(found, (is_within, is_far), "{one:?}");
            }
        }
        assert!(held(&parts, &report(0, 0)).is_err());
    }

    #[test]
    fn totals_are_with_callees() {
        let parts = parts("total m:a/1 500\ntotal m:b/1 500\n");
        let held = held(&parts, &report(1, 2)).expect("both are there");
        assert!(held.iter().all(|one| one.sampled == 0.5 && one.is_measured));
    }
}
