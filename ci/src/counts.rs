//! `cargo xtask counts`: the samples' calls and words per function, on OTP and on Beamline.
//!
//! OTP's tprof counts on OTP, OTP's tprof counts on Beamline, and `beamline profile` counts. What two
//! runs of OTP do not count alike depends on time there, and is named and not compared.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::place::{OtpOptions, Place, words};
use crate::{binary, fetch, paths, run};

/// Options of `cargo xtask counts`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Names of the samples to run [default: all]
    samples: Vec<String>,
    #[command(flatten)]
    otp: OtpOptions,
    /// The command that starts Elixir on OTP
    #[arg(long, default_value = "elixir", value_name = "COMMAND")]
    elixir: String,
    /// Runs of each sample on OTP; counts that differ between them are left out
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Compare the reductions and words of BIF calls instead of the samples
    #[arg(long, conflicts_with = "samples")]
    reductions: bool,
}

const SAMPLES: [&str; 9] = [
    "binary_leak",
    "busy",
    "collatz.exs",
    "gen_server_load",
    "json_service",
    "long_gc",
    "ring",
    "sort",
    "word_count",
];

const TYPES: [&str; 2] = ["call_count", "call_memory"];

/// A function as `Module:Function/Arity`.
type Mfa = String;

/// What was counted for a function.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Count {
    calls: u64,
    /// Under call_memory; otherwise the calls again, as tprof has it.
    value: u64,
}

type Counts = BTreeMap<Mfa, Count>;

/// Where the samples lie, and how OTP and Beamline are started.
struct Setup {
    dir: PathBuf,
    otp_place: Place,
    here: Place,
    otp: PathBuf,
    erl: Vec<String>,
    elixir: Vec<String>,
}

/// Runs all samples and prints the table.
pub(crate) fn main(options: &Options) -> Result<()> {
    if options.reductions {
        return crate::costs::main(&options.otp, options.rounds);
    }
    if let Some(unknown) = options
        .samples
        .iter()
        .find(|name| !SAMPLES.contains(&name.as_str()))
    {
        bail!("no sample {unknown}; there are: {}", SAMPLES.join(", "));
    }
    let setup = Setup::new(options)?;
    let mut differing = 0;
    println!(
        "| sample | type | functions | OTP differs from itself | tprof on Beamline differs | beamline profile differs |"
    );
    println!("|---|---|---:|---|---|---|");
    for sample in SAMPLES {
        let wanted =
            options.samples.is_empty() || options.samples.iter().any(|name| name == sample);
        for kind in TYPES.into_iter().filter(|_| wanted) {
            let outcome = compare(&setup, sample, kind, options.rounds.max(2))
                .with_context(|| format!("{sample} under {kind}"))?;
            differing += outcome.tprof.len() + outcome.profile.len();
            println!("{}", outcome.line(sample, kind));
        }
    }
    if differing > 0 {
        bail!("{differing} functions are counted differently");
    }
    Ok(())
}

impl Setup {
    /// Compiles the samples.
    fn new(options: &Options) -> Result<Self> {
        let dir = options.otp.folder("counts")?;
        let otp_place = options.otp.place()?;
        let mut compile = otp_place.command(&dir, &words(&options.otp.erlc))?;
        for file in sources()? {
            let name = file.file_name().context("a file has a name")?;
            fs::copy(&file, dir.join(name))
                .with_context(|| format!("copying {}", file.display()))?;
            if file.extension().is_some_and(|extension| extension == "erl") {
                compile.arg(name);
            }
        }
        run::output(&mut compile)?;
        Ok(Self {
            dir,
            otp_place,
            here: Place::new(None)?,
            otp: fetch::otp()?.root,
            erl: words(&options.otp.erl),
            elixir: words(&options.elixir),
        })
    }

    /// Runs `counts:FUNCTION(ARGUMENTS)` with the command that the sample needs.
    fn run(&self, place: &Place, program: &[String], sample: &str, call: &Call) -> Result<String> {
        let mut command = place.command(&self.dir, program)?;
        command.args(["-pa", "."]);
        if is_elixir(sample) {
            let arguments: Vec<_> = call
                .arguments
                .iter()
                .map(|word| format!("~c\"{word}\""))
                .collect();
            let text = format!(":counts.{}([{}])", call.function, arguments.join(","));
            command.args(["-e", &text]);
        } else {
            command
                .args(["-noshell", "-run", "counts", call.function])
                .args(call.arguments);
        }
        run::output(&mut command)
    }

    fn tprof_on_otp(&self, sample: &str, kind: &str) -> Result<Counts> {
        let program = if is_elixir(sample) {
            &self.elixir
        } else {
            &self.erl
        };
        let call = Call {
            function: "tprof",
            arguments: &[kind, sample],
        };
        rows(&self.run(&self.otp_place, program, sample, &call)?)
    }

    fn tprof_on_beamline(&self, sample: &str, kind: &str) -> Result<Counts> {
        let program = binary::beamline_run(&self.otp, &[starter(sample)])?;
        let call = Call {
            function: "tprof",
            arguments: &[kind, sample],
        };
        rows(&self.run(&self.here, &program, sample, &call)?)
    }

    /// What `beamline profile` counts with breakpoints on the functions of `modules`.
    fn profile(&self, sample: &str, kind: &str, modules: &[&str]) -> Result<Counts> {
        let file = self.dir.join("profile.json");
        let shown = file
            .to_str()
            .context("the build folder's name is not UTF-8")?;
        let mut verb = vec!["profile", "--type", kind, "--json", shown];
        for module in modules {
            verb.extend(["--pattern", module]);
        }
        let program = binary::beamline_words(&verb, &self.otp, &[starter(sample)])?;
        let call = Call {
            function: "plain",
            arguments: &[sample],
        };
        self.run(&self.here, &program, sample, &call)?;
        let text = fs::read_to_string(&file).with_context(|| format!("reading {shown}"))?;
        profile_counts(&text, kind)
    }
}

/// A call of a function of the module `counts`.
struct Call<'a> {
    function: &'a str,
    arguments: &'a [&'a str],
}

fn is_elixir(sample: &str) -> bool {
    sample.ends_with(".exs")
}

fn starter(sample: &str) -> &'static str {
    if is_elixir(sample) { "elixir" } else { "erl" }
}

/// The samples, and the module that runs them.
fn sources() -> Result<Vec<PathBuf>> {
    let samples = paths::workspace().join("samples");
    let mut files = vec![paths::workspace().join("benches/workloads/counts.erl")];
    for entry in fs::read_dir(&samples).with_context(|| format!("reading {}", samples.display()))? {
        files.push(entry?.path());
    }
    Ok(files)
}

/// Reads lines `ROW Module Function Arity Calls Value`.
fn rows(printed: &str) -> Result<Counts> {
    let mut counts = Counts::new();
    for line in printed.lines() {
        let Some(row) = line.strip_prefix("ROW ") else {
            continue;
        };
        let [module, function, arity, calls, value] = row.split(' ').collect::<Vec<_>>()[..] else {
            bail!("no row of five columns: {line}");
        };
        let count = Count {
            calls: calls.parse()?,
            value: value.parse()?,
        };
        counts.insert(format!("{module}:{function}/{arity}"), count);
    }
    if counts.is_empty() {
        bail!("nothing was counted: {printed:?}");
    }
    Ok(counts)
}

/// Reads the part of a profile's JSON that tprof has too.
fn profile_counts(text: &str, kind: &str) -> Result<Counts> {
    #[derive(Deserialize)]
    struct Profile {
        functions: Vec<Function>,
    }
    #[derive(Deserialize)]
    struct Function {
        module: String,
        function: String,
        arity: u32,
        calls: u64,
        words: u64,
    }
    let profile: Profile = serde_json::from_str(text).context("reading the profile")?;
    let count = |f: Function| {
        let value = if kind == "call_memory" {
            f.words
        } else {
            f.calls
        };
        (
            format!("{}:{}/{}", f.module, f.function, f.arity),
            Count {
                calls: f.calls,
                value,
            },
        )
    };
    Ok(profile.functions.into_iter().map(count).collect())
}

/// What a sample's runs have shown.
struct Outcome {
    functions: usize,
    /// Functions that OTP counts differently from run to run.
    unsteady: Vec<String>,
    /// Functions that tprof counts differently on Beamline.
    tprof: Vec<String>,
    /// Functions of the sample that `beamline profile` counts differently.
    profile: Vec<String>,
}

impl Outcome {
    fn line(&self, sample: &str, kind: &str) -> String {
        let named = |functions: &[String]| {
            let mut shown = functions
                .iter()
                .take(4)
                .cloned()
                .collect::<Vec<_>>()
                .join(", ");
            if functions.len() > 4 {
                shown += &format!(" and {} more", functions.len() - 4);
            }
            shown
        };
        let columns =
            [&self.unsteady, &self.tprof, &self.profile].map(|functions| named(functions));
        format!(
            "| {sample} | {kind} | {} | {} |",
            self.functions,
            columns.join(" | ")
        )
    }
}

fn compare(setup: &Setup, sample: &str, kind: &str, rounds: usize) -> Result<Outcome> {
    let runs = (0..rounds).map(|_| setup.tprof_on_otp(sample, kind).context("tprof on OTP"));
    let runs = runs.collect::<Result<Vec<_>>>()?;
    let (steady, unsteady) = steady(&runs);
    let tprof = setup
        .tprof_on_beamline(sample, kind)
        .context("tprof on Beamline")?;
    let mut modules: Vec<_> = runs[0].keys().map(|mfa| module(mfa)).collect();
    modules.dedup();
    let profile = setup
        .profile(sample, kind, &modules)
        .context("beamline profile")?;
    // What else runs in the machine calls the libraries too: the profile knows all of it.
    let own = own_module(sample);
    let own: Counts = steady
        .iter()
        .filter(|(mfa, _)| module(mfa) == own)
        .map(|(mfa, count)| (mfa.clone(), *count))
        .collect();
    Ok(Outcome {
        functions: runs[0].len(),
        unsteady,
        tprof: differences(&steady, &tprof),
        profile: differences(&own, &profile),
    })
}

/// What all runs count alike, and the names of the others with the counts of each run.
fn steady(runs: &[Counts]) -> (Counts, Vec<String>) {
    let mut names: Vec<_> = runs.iter().flat_map(Counts::keys).collect();
    names.sort_unstable();
    names.dedup();
    let (mut steady, mut unsteady) = (Counts::new(), Vec::new());
    for name in names {
        let seen: Vec<_> = runs.iter().map(|run| run.get(name)).collect();
        match seen[0] {
            Some(first) if seen.iter().all(|count| *count == Some(first)) => {
                steady.insert(name.clone(), *first);
            }
            _ => unsteady.push(format!(
                "{name} ({})",
                seen.iter()
                    .map(|count| shown(*count))
                    .collect::<Vec<_>>()
                    .join("; ")
            )),
        }
    }
    (steady, unsteady)
}

/// The functions of `otp` that `ours` counts differently.
fn differences(otp: &Counts, ours: &Counts) -> Vec<String> {
    let differing = otp
        .iter()
        .filter(|(mfa, count)| ours.get(*mfa) != Some(count));
    let text = |(mfa, count)| {
        format!(
            "{mfa} ({}, not {})",
            shown(ours.get(mfa)),
            shown(Some(count))
        )
    };
    differing.map(text).collect()
}

fn shown(count: Option<&Count>) -> String {
    match count {
        None => "none".into(),
        Some(Count { calls, value }) if calls == value => calls.to_string(),
        Some(Count { calls, value }) => format!("{value} in {calls}"),
    }
}

fn module(mfa: &str) -> &str {
    mfa.split(':').next().unwrap_or(mfa)
}

fn own_module(sample: &str) -> &str {
    if is_elixir(sample) {
        "Elixir.Collatz"
    } else {
        sample
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(rows: &[(&str, u64, u64)]) -> Counts {
        let count =
            |&(mfa, calls, value): &(&str, u64, u64)| (mfa.to_owned(), Count { calls, value });
        rows.iter().map(count).collect()
    }

    #[test]
    fn rows_are_read_between_other_lines() {
        let printed = "hello\nROW lists map 2 3 12\nROW m '-f/1-fun-0-' 1 4 4\n";
        let expected = counts(&[("lists:map/2", 3, 12), ("m:'-f/1-fun-0-'/1", 4, 4)]);
        assert_eq!(rows(printed).unwrap(), expected);
        assert!(rows("ROW lists map 2 3\n").is_err());
        assert!(rows("hello\n").is_err());
    }

    #[test]
    fn what_otp_counts_differently_is_not_compared() {
        let runs = [
            counts(&[("m:a/0", 1, 5), ("m:b/0", 2, 2), ("m:c/0", 1, 1)]),
            counts(&[("m:a/0", 1, 5), ("m:b/0", 2, 3)]),
        ];
        let (alike, unsteady) = steady(&runs);
        assert_eq!(alike, counts(&[("m:a/0", 1, 5)]));
        assert_eq!(unsteady, ["m:b/0 (2; 3 in 2)", "m:c/0 (1; none)"]);
        assert!(differences(&alike, &runs[1]).is_empty());
        assert_eq!(
            differences(&alike, &counts(&[("m:a/0", 1, 4)])),
            ["m:a/0 (4 in 1, not 5 in 1)"]
        );
    }

    #[test]
    fn a_profile_is_read_by_its_type() {
        let text = r#"{"functions":[{"module":"m","function":"f","arity":1,"calls":2,"time_ns":0,"words":7}]}"#;
        assert_eq!(
            profile_counts(text, "call_memory").unwrap(),
            counts(&[("m:f/1", 2, 7)])
        );
        assert_eq!(
            profile_counts(text, "call_count").unwrap(),
            counts(&[("m:f/1", 2, 2)])
        );
    }
}
