//! `cargo xtask fidelity`: how true a profile's shares of own time are.
//!
//! The truth comes from `perf`, which looks at an undisturbed run some thousand times a second. The functions that it
//! finds in compiled code are the reference: Beamline's own without any tracing, and OTP's. A profile of the same
//! workload is held against them: with what tracing costs taken out, as it was measured, and of a recording. So is
//! OTP's `tprof`.
//!
//! A distance is half of the sum of all differences between the shares of functions: 0 where they are the same, 1 where
//! nothing is in common. Native functions are left out on both sides, since `perf` sees there the runtime and not the
//! function. What collections take stays with the functions of a profile, and is no function's for `perf`: workloads run in
//! a process with much room, so that there is little of it.
//!
//! A profile's clock also runs while the system has something else to do. On a machine that is busy, shares are chance.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::place::{OtpOptions, Place, words};
use crate::{binary, fetch, paths, run};

/// Of `plain_work`: those that have several functions, and spend most of their time in compiled code.
const WORKLOADS: [&str; 12] = [
    "nrev", "queens", "lists", "sort", "funs", "gb_trees", "records", "base64", "dict", "array",
    "json", "scan",
];

/// The distances of a profile of time from the undisturbed run that are wanted: in the mean, and of any workload.
const WANTED: [f64; 2] = [0.05, 0.10];

/// Samples a second.
const HERTZ: &str = "4999";

/// Options of `cargo xtask fidelity`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Names of workloads of plain_work [default: twelve]
    workloads: Vec<String>,
    /// Measure this beamline binary [default: a new build with the profile dist, as users get it]
    #[arg(long, value_name = "FILE")]
    beamline: Option<PathBuf>,
    #[command(flatten)]
    otp: OtpOptions,
    /// Do not run OTP
    #[arg(long)]
    no_otp: bool,
    /// Run each workload so many times as long as for cargo xtask compare
    #[arg(long, default_value_t = 8)]
    factor: usize,
}

/// How much each function takes; as `Module:Function/Arity`, without quotes.
type Times = BTreeMap<String, f64>;

/// The shares of one workload.
struct Seen {
    /// Of Beamline, undisturbed.
    own: Times,
    corrected: Times,
    raw: Times,
    recorded: Times,
    /// Of OTP: undisturbed, and what `tprof` says.
    otp: Option<[Times; 2]>,
}

/// Measures all workloads and prints the table.
pub(crate) fn main(options: &Options) -> Result<()> {
    if !run::on_path("perf") {
        println!("perf is not on PATH: there is nothing to hold profiles against");
        return Ok(());
    }
    let bench = Bench::new(options)?;
    let named: Vec<&str> = options.workloads.iter().map(String::as_str).collect();
    let chosen = if named.is_empty() {
        WORKLOADS.to_vec()
    } else {
        named
    };
    println!(
        "| workload | corrected | raw | recording | OTP undisturbed | corrected to OTP | tprof to OTP |\n\
         |---|---:|---:|---:|---:|---:|---:|"
    );
    let mut columns: Vec<Vec<f64>> = vec![Vec::new(); 6];
    for name in chosen {
        let distances = bench.seen(name)?.distances();
        println!("| {name} | {} |", cells(&distances));
        for (column, distance) in columns.iter_mut().zip(distances) {
            column.extend(distance);
        }
    }
    let of_all = |of: fn(&[f64]) -> f64| -> Vec<Option<f64>> {
        let columns = columns.iter();
        columns
            .map(|all| (!all.is_empty()).then(|| of(all)))
            .collect()
    };
    println!("| mean | {} |", cells(&of_all(mean)));
    println!("| worst | {} |", cells(&of_all(worst)));
    let [mean_wanted, worst_wanted] = WANTED;
    if mean(&columns[0]) > mean_wanted || worst(&columns[0]) > worst_wanted {
        bail!("corrected is to be {mean_wanted} in the mean and {worst_wanted} at worst");
    }
    Ok(())
}

fn mean(all: &[f64]) -> f64 {
    all.iter().sum::<f64>() / all.len() as f64
}

fn worst(all: &[f64]) -> f64 {
    all.iter().copied().fold(0.0, f64::max)
}

fn cells(distances: &[Option<f64>]) -> String {
    let cell = |distance: &Option<f64>| distance.map_or(String::new(), |one| format!("{one:.3}"));
    distances.iter().map(cell).collect::<Vec<_>>().join(" | ")
}

impl Seen {
    /// The distances of the table's columns.
    fn distances(&self) -> [Option<f64>; 6] {
        let to_own = |times: &Times| Some(distance(&self.own, times));
        let otp = self.otp.as_ref();
        [
            to_own(&self.corrected),
            to_own(&self.raw),
            to_own(&self.recorded),
            otp.map(|[undisturbed, _]| distance(&self.own, undisturbed)),
            otp.map(|[undisturbed, _]| distance(undisturbed, &self.corrected)),
            otp.map(|[undisturbed, tprof]| distance(undisturbed, tprof)),
        ]
    }
}

/// Half of the sum of the differences between the shares of functions.
fn distance(a: &Times, b: &Times) -> f64 {
    let share = |times: &Times, function: &str| {
        let all: f64 = times.values().sum();
        times.get(function).copied().unwrap_or(0.0) / all.max(f64::MIN_POSITIVE)
    };
    let functions: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let differences = functions
        .iter()
        .map(|of| (share(a, of) - share(b, of)).abs());
    differences.sum::<f64>() / 2.0
}

/// What runs workloads.
struct Bench {
    dir: PathBuf,
    here: Place,
    beamline: PathBuf,
    /// The OTP whose libraries Beamline runs.
    libraries: PathBuf,
    /// Where OTP runs, and by which words; not asked for if none.
    otp: Option<(Place, Vec<String>)>,
    factor: String,
}

impl Bench {
    fn new(options: &Options) -> Result<Bench> {
        let dir = options.otp.folder("fidelity")?;
        let place = options.otp.place()?;
        for name in ["plain_work.erl", "tprof_work.erl"] {
            let source = paths::workspace().join("benches/workloads").join(name);
            fs::copy(&source, dir.join(name)).context("copying the workloads")?;
            let mut erlc = place.command(&dir, &words(&options.otp.erlc))?;
            run::output(erlc.arg(name))?;
        }
        Ok(Bench {
            dir,
            here: Place::new(None)?,
            beamline: match &options.beamline {
                Some(file) => file.canonicalize().context("looking for the binary")?,
                None => binary::distributed()?,
            },
            libraries: fetch::otp()?.root,
            otp: (!options.no_otp).then(|| (place, words(&options.otp.erl))),
            factor: options.factor.to_string(),
        })
    }

    fn seen(&self, workload: &str) -> Result<Seen> {
        let own = self.undisturbed(workload)?;
        let told = self.profiled(workload)?;
        // What is native has no compiled code of its own.
        let is_meant = |of: &String| own.compiled.contains(of) && told.corrected.contains_key(of);
        let only = |times: &Times| -> Times {
            let known = times.iter().filter(|(of, _)| is_meant(of));
            known.map(|(of, time)| (of.clone(), *time)).collect()
        };
        Ok(Seen {
            own: only(&own.times),
            corrected: only(&told.corrected),
            raw: only(&told.raw),
            recorded: only(&self.recorded(workload)?),
            otp: match &self.otp {
                Some((place, erl)) => Some([
                    only(&self.sampled(place, &self.otp_words(erl, workload))?.times),
                    only(&self.tprof(place, erl, workload)?),
                ]),
                None => None,
            },
        })
    }

    /// The words that run a workload on OTP, behind those that start it.
    fn workload(&self, workload: &str) -> Vec<String> {
        let words = [
            "-noshell",
            "-pa",
            ".",
            "-run",
            "plain_work",
            "main",
            workload,
        ];
        let words = words.into_iter().map(str::to_owned);
        words.chain([self.factor.clone()]).collect()
    }

    fn otp_words(&self, erl: &[String], workload: &str) -> Vec<String> {
        let mut all = erl.to_vec();
        all.extend(words("+JPperf true"));
        all.extend(self.workload(workload));
        all
    }

    /// The words of a `beamline` command that runs a workload.
    fn beamline(&self, verb: &[&str], workload: &str) -> Result<Vec<String>> {
        let mut all = binary::words_of(&self.beamline, verb, &self.libraries, &["erl"])?;
        all.extend(self.workload(workload));
        Ok(all)
    }

    fn undisturbed(&self, workload: &str) -> Result<Sampled> {
        let words = self.beamline(&["run", "--perf", "map"], workload)?;
        self.sampled(&self.here, &words)
    }

    /// What `perf` sees of a run.
    fn sampled(&self, place: &Place, words: &[String]) -> Result<Sampled> {
        let data = self.dir.join("perf.data");
        let inner = place.command(&self.dir, words)?;
        let mut perf = Command::new("perf");
        perf.args(["record", "-q", "-F", HERTZ, "-e", "cpu-clock", "-o"])
            .arg(&data)
            .arg("--")
            .arg(inner.get_program())
            .args(inner.get_args())
            .current_dir(&self.dir);
        run::output(&mut perf)?;
        let mut script = Command::new("perf");
        script.args(["script", "-F", "pid,ip", "-i"]).arg(&data);
        let mut sampled = Sampled::default();
        for (pid, addresses) in samples(&run::output(&mut script)?) {
            let map = place.outside(&format!("/tmp/perf-{pid}.map"));
            // A process without one is no emulator.
            if let Ok(text) = fs::read_to_string(&map) {
                sampled.add(&ranges(&text), &addresses);
                fs::remove_file(&map).with_context(|| format!("removing {}", map.display()))?;
            }
        }
        if sampled.times.is_empty() {
            bail!("perf saw no compiled code: it may not be allowed here");
        }
        Ok(sampled)
    }

    fn profiled(&self, workload: &str) -> Result<Profiled> {
        let file = self.dir.join("profile.json");
        let name = utf8(&file)?;
        let from = "plain_work:main/1";
        let verb = [
            "profile",
            "--type",
            "call_time",
            "--corrected",
            "--from",
            from,
            "--json",
            name,
        ];
        self.run_here(&self.beamline(&verb, workload)?)?;
        profiled(&read_json(&file)?)
    }

    /// What a recording says, or its end: where there is no room, the oldest records are overwritten.
    fn recorded(&self, workload: &str) -> Result<Times> {
        let names = ["recording.ring", "recording.blprof", "recording.json"];
        let [ring, paths, json] = names.map(|name| self.dir.join(name));
        let verb = ["record", "--output", utf8(&ring)?];
        self.run_here(&self.beamline(&verb, workload)?)?;
        for (file, option, written) in [(&ring, "--output", &paths), (&paths, "--json", &json)] {
            let mut report = Command::new(&self.beamline);
            run::output(report.arg("report").arg(file).arg(option).arg(written))?;
        }
        fs::remove_file(&ring).context("removing the recording")?;
        Ok(profiled(&read_json(&json)?)?.corrected)
    }

    fn run_here(&self, words: &[String]) -> Result<()> {
        run::output(&mut self.here.command(&self.dir, words)?).map(drop)
    }

    /// What OTP's profiler says.
    fn tprof(&self, place: &Place, erl: &[String], workload: &str) -> Result<Times> {
        let mut all = erl.to_vec();
        all.extend(words("-noshell -pa . -run tprof_work main"));
        all.extend([workload.to_owned(), self.factor.clone()]);
        let printed = run::output(&mut place.command(&self.dir, &all)?)?;
        let mut times = Times::new();
        for line in printed.lines() {
            let (time, function) = line.split_once(' ').context("a time and a function")?;
            *times.entry(unquoted(function)).or_default() += time.parse::<f64>()?;
        }
        Ok(times)
    }
}

fn utf8(path: &Path) -> Result<&str> {
    path.to_str()
        .context("the build folder's name is not UTF-8")
}

fn read_json(file: &Path) -> Result<Value> {
    let text = fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
    Ok(serde_json::from_str(&text)?)
}

fn rows<'v>(told: &'v Value, field: &str) -> Result<&'v Vec<Value>> {
    let rows = told[field].as_array();
    rows.with_context(|| format!("there is no field {field}"))
}

/// Own times of functions that are no native code.
#[derive(Debug, PartialEq)]
struct Profiled {
    corrected: Times,
    raw: Times,
}

/// What the JSON of a profile says.
fn profiled(told: &Value) -> Result<Profiled> {
    let (mut corrected, mut raw) = (Times::new(), Times::new());
    for row in rows(told, "functions")? {
        if !row["native"].is_null() {
            continue;
        }
        let text = |field: &str| row[field].as_str().unwrap_or_default();
        let function = format!("{}:{}/{}", text("module"), text("function"), row["arity"]);
        let number = |field: &str| row[field].as_f64().context("a number of nanoseconds");
        let (own, tracing) = (number("time_ns")?, number("tracing_ns")?);
        corrected.insert(unquoted(&function), own);
        raw.insert(unquoted(&function), own + tracing);
    }
    Ok(Profiled { corrected, raw })
}

fn unquoted(function: &str) -> String {
    function.replace('\'', "")
}

/// The addresses of samples, by process: a line is a number of a process and an address.
fn samples(script: &str) -> BTreeMap<u32, Vec<u64>> {
    let mut samples: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    for line in script.lines() {
        let mut words = line.split_whitespace();
        let (Some(pid), Some(address)) = (words.next(), words.next()) else {
            continue;
        };
        if let (Ok(pid), Ok(address)) = (pid.parse(), u64::from_str_radix(address, 16)) {
            samples.entry(pid).or_default().push(address);
        }
    }
    samples
}

/// The functions of compiled code, by where they begin, with where they end.
fn ranges(map: &str) -> BTreeMap<u64, (u64, String)> {
    let range = |line: &str| {
        let mut words = line.splitn(3, ' ');
        let hexadecimal = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok();
        let begin = hexadecimal(words.next()?)?;
        let size = hexadecimal(words.next()?)?;
        let function = words.next()?.strip_prefix('$')?;
        let function = function.trim_end_matches("-CodeInfoPrologue");
        Some((begin, (begin + size, unquoted(function))))
    };
    map.lines().filter_map(range).collect()
}

/// What `perf` has seen.
#[derive(Default)]
struct Sampled {
    /// The samples of each function of compiled code.
    times: Times,
    /// All functions that were compiled.
    compiled: BTreeSet<String>,
}

impl Sampled {
    fn add(&mut self, ranges: &BTreeMap<u64, (u64, String)>, addresses: &[u64]) {
        let functions = ranges.values().map(|(_, function)| function.clone());
        self.compiled.extend(functions);
        for address in addresses {
            let before = ranges.range(..=address).next_back();
            if let Some((_, (_, function))) = before.filter(|(_, (end, _))| address < end) {
                *self.times.entry(function.clone()).or_default() += 1.0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(rows: &[(&str, f64)]) -> Times {
        let rows = rows.iter();
        rows.map(|(of, time)| ((*of).to_owned(), *time)).collect()
    }

    #[test]
    fn distances_are_of_shares() {
        let one = times(&[("a", 1.0), ("b", 1.0)]);
        for (other, expect) in [
            (times(&[("a", 30.0), ("b", 30.0)]), 0.0),
            (times(&[("a", 3.0), ("b", 1.0)]), 0.25),
            (times(&[("a", 7.0)]), 0.5),
            (times(&[("c", 2.0)]), 1.0),
        ] {
            assert_eq!(distance(&one, &other), expect, "{other:?}");
            assert_eq!(distance(&other, &one), expect, "{other:?}");
        }
    }

    #[test]
    fn samples_are_of_the_function_they_lie_in() {
        let map = "7f00 10 $global::enter\n0x7f10 8 $m:f/1-CodeInfoPrologue\n0x7f18 8 $m:f/1\n\
                   7f20 10 $m:'-f/1-fun-0-'/2\n";
        let script = " 12       7f10\n 12 7f1f\n 12 7f2f\n 12 7f30\n 12 ffffffff81\nno sample\n";
        let samples = samples(script);
        let mut seen = Sampled::default();
        seen.add(&ranges(map), &samples[&12]);
        assert_eq!(
            seen.times,
            times(&[("m:f/1", 2.0), ("m:-f/1-fun-0-/2", 1.0)])
        );
    }

    #[test]
    fn native_functions_of_a_profile_are_left_out() {
        let told = r#"{"functions":[
            {"module":"m","function":"f","arity":1,"time_ns":5,"tracing_ns":3},
            {"module":"lists","function":"reverse","arity":2,"native":"ordinary","time_ns":7,"tracing_ns":1}]}"#;
        let told = serde_json::from_str(told).expect("JSON");
        let expect = Profiled {
            corrected: times(&[("m:f/1", 5.0)]),
            raw: times(&[("m:f/1", 8.0)]),
        };
        assert_eq!(profiled(&told).expect("complete"), expect);
    }
}
