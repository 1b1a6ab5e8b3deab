//! `cargo xtask compare`: the same `.beam` files on OTP and on Beamline, or on two builds of Beamline, in turns.
//!
//! Each workload is run once on either runtime in every round, the other runtime first in odd rounds and ours
//! first in even ones, so that what else the machine does hits both. The table has the medians.

mod load;
mod rows;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::place::{OtpOptions, Place, words};
use crate::{binary, fetch, headers, natives, outside, paths, run};
use rows::{JIFFY, Measure, Most, NET_UNDER, ORDER_MEAN, PLAIN_MEAN, Row, Unit, rows};

/// Options of `cargo xtask compare`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Names of the rows to measure [default: all rows but those of --plain, --trace, --record, --native, --net
    /// and --order]
    rows: Vec<String>,
    /// Measure plain code of many kinds, and print the geometric mean of the ratios: all rows whose names begin with
    /// plain_
    #[arg(long)]
    plain: bool,
    /// With --plain: run Beamline's side under `beamline profile --type TYPE`, all functions traced, beside plain OTP.
    /// With --net: the workload's own functions traced, beside plain Beamline
    #[arg(long, value_name = "TYPE", conflicts_with_all = ["against", "order"])]
    under: Option<Under>,
    /// Measure the cost of tracing: all rows whose names begin with trace_
    #[arg(long)]
    trace: bool,
    /// Measure the cost of recording every call and return, beside fprof and dbg to a file: all rows whose names
    /// begin with record_
    #[arg(long)]
    record: bool,
    /// Measure the cost of calls of native code: all rows whose names begin with native_
    #[arg(long)]
    native: bool,
    /// Measure sockets on the loopback, and what crosses two nodes: all rows whose names begin with net_
    #[arg(long)]
    net: bool,
    /// Measure the cost of recording the order of a run, beside the same run without, on Beamline alone: all rows whose
    /// names begin with order_
    #[arg(long, conflicts_with_all = ["plain", "trace", "record", "native", "net", "against"])]
    order: bool,
    /// Compare with this beamline binary instead of with OTP, and print the geometric mean of the ratios
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
    /// Measure this beamline binary [default: a new build with the profile dist, as users get it]
    #[arg(long, value_name = "FILE")]
    beamline: Option<PathBuf>,
    #[command(flatten)]
    otp: OtpOptions,
    /// OTP's source tree, for the row compile [default: fetched]
    #[arg(long, value_name = "DIR")]
    source: Option<PathBuf>,
    /// Runs of each workload on each runtime
    #[arg(long, default_value_t = 5)]
    rounds: usize,
}

/// What Beamline measures of each function while it runs plain code.
#[derive(Clone, Copy, clap::ValueEnum)]
enum Under {
    #[value(name = "call_count")]
    Count,
    #[value(name = "call_memory")]
    Memory,
    #[value(name = "call_time")]
    Time,
}

impl Under {
    fn name(self) -> &'static str {
        match self {
            Under::Count => "call_count",
            Under::Memory => "call_memory",
            Under::Time => "call_time",
        }
    }

    /// The geometric mean of the ratios to plain OTP.
    fn mean_at_most(self) -> f64 {
        match self {
            Under::Count => 1.0,
            Under::Memory => 1.3,
            Under::Time => 2.5,
        }
    }
}

/// What Beamline measures, and of which functions: of all, or of a module's.
#[derive(Clone, Copy)]
struct Traced {
    what: Under,
    module: Option<&'static str>,
}

impl Traced {
    /// The command that does.
    fn words(self) -> Vec<&'static str> {
        let mut words = vec!["profile", "--type", self.what.name()];
        words.extend(self.module.iter().flat_map(|module| ["--pattern", *module]));
        words
    }
}

/// One measurement: the value, and the hash of what came out where the workload gives one.
#[derive(Clone, Debug, PartialEq)]
struct Sample {
    value: f64,
    digest: Option<String>,
}

/// A runtime that is measured.
struct Runtime {
    name: &'static str,
    erl: Vec<String>,
    place: Place,
    /// The directory of the workloads as this runtime sees it.
    beams: String,
    /// The words that run plain code.
    plain: Vec<String>,
    /// Of Beamline: then profiles are made by `beamline profile`.
    beamline: Option<Build>,
}

/// A build of Beamline.
struct Build {
    file: PathBuf,
    /// The OTP whose libraries it runs.
    otp: PathBuf,
}

impl Build {
    /// The words of a `beamline` command on `erl`.
    fn words(&self, verb: &[&str]) -> Result<Vec<String>> {
        binary::words_of(&self.file, verb, &self.otp, &["erl"])
    }
}

impl Runtime {
    fn otp(options: &OtpOptions, dir: &std::path::Path) -> Result<Runtime> {
        let place = options.place()?;
        Ok(Runtime {
            name: "OTP",
            erl: words(&options.erl),
            plain: words(&options.erl),
            beams: place.inside(dir)?,
            place,
            beamline: None,
        })
    }

    fn beamline(
        name: &'static str,
        file: PathBuf,
        dir: &std::path::Path,
        under: Option<Traced>,
    ) -> Result<Runtime> {
        let place = Place::new(None)?;
        let otp = fetch::otp()?.root;
        let build = Build { file, otp };
        Ok(Runtime {
            name,
            erl: build.words(&["run"])?,
            plain: match under {
                Some(under) => build.words(&under.words())?,
                None => build.words(&["run"])?,
            },
            beams: place.inside(dir)?,
            place,
            beamline: Some(build),
        })
    }
}

/// A row slower than this against another build of Beamline is reported, and so is such a geometric mean.
const ROW_AGAINST: f64 = 1.10;
const MEAN_AGAINST: f64 = 1.03;

/// Measures all rows and prints the table.
pub(crate) fn main(options: &Options) -> Result<()> {
    let chosen: Vec<_> = rows().filter(|row| wanted(options, row)).collect();
    if let Some(unknown) = options
        .rows
        .iter()
        .find(|name| !rows().any(|row| row.name == **name))
    {
        let names: Vec<_> = rows().map(|row| row.name).collect();
        bail!("no row {unknown}; there are: {}", names.join(", "));
    }
    let dir = prepare(options)?;
    let file = match &options.beamline {
        Some(file) => existing(file)?,
        None => binary::distributed()?,
    };
    let [other, ours] = runtimes(options, file, &dir)?;
    let most = match (&options.against, options.under) {
        (Some(_), _) => Some(Most::Ratio(ROW_AGAINST)),
        (None, Some(_)) if options.net => Some(Most::Ratio(NET_UNDER)),
        (None, Some(_)) => Some(Most::Any),
        (None, None) => None,
    };
    let ratios = print_table(&chosen, [&other, &ours], &dir, options.rounds.max(1), most);
    let most = match (&options.against, options.under) {
        (Some(_), _) => Some(MEAN_AGAINST),
        (None, Some(under)) if options.plain => Some(under.mean_at_most()),
        (None, None) if options.order => Some(ORDER_MEAN),
        (None, _) => options.plain.then_some(PLAIN_MEAN),
    };
    if let Some(most) = most
        && !ratios.is_empty()
    {
        let mean = geometric_mean(&ratios);
        println!("\ngeometric mean {mean:.3}, at most {most}");
    }
    if ratios.len() < chosen.len() {
        bail!("{} rows failed", chosen.len() - ratios.len());
    }
    Ok(())
}

/// The runtime that is compared with, and the one that is measured, which is this binary.
fn runtimes(options: &Options, file: PathBuf, dir: &std::path::Path) -> Result<[Runtime; 2]> {
    if options.order {
        let alone = Runtime::beamline("alone", file.clone(), dir, None)?;
        let mut recorded = Runtime::beamline("recorded", file, dir, None)?;
        if let Some(build) = &recorded.beamline {
            let stream = utf8(&dir.join("order.stream"))?;
            recorded.erl = build.words(&["record", "--events", "order", "--output", &stream])?;
        }
        return Ok([alone, recorded]);
    }
    if let Some(what) = options.under.filter(|_| options.net) {
        let module = Some("net_work");
        let plain = Runtime::beamline("plain", file.clone(), dir, None)?;
        let traced = Runtime::beamline("traced", file, dir, Some(Traced { what, module }))?;
        return Ok([plain, traced]);
    }
    let other = match &options.against {
        Some(file) => Runtime::beamline("before", existing(file)?, dir, None)?,
        None => Runtime::otp(&options.otp, dir)?,
    };
    let under = options.under.map(|what| Traced { what, module: None });
    let ours = Runtime::beamline("Beamline", file, dir, under)?;
    Ok([other, ours])
}

fn utf8(file: &std::path::Path) -> Result<String> {
    let name = file
        .to_str()
        .context("the build folder's name is not UTF-8")?;
    Ok(name.to_owned())
}

/// A binary that was named, wherever the commands run.
fn existing(file: &std::path::Path) -> Result<PathBuf> {
    let found = file.canonicalize();
    found.with_context(|| format!("looking for {}", file.display()))
}

/// Measures and prints row by row, each with what it is to stay below, or all with `most`; gives the ratios of those that could
/// be measured.
fn print_table(
    rows: &[&Row],
    runtimes: [&Runtime; 2],
    dir: &std::path::Path,
    rounds: usize,
    most: Option<Most>,
) -> Vec<f64> {
    let [other, ours] = runtimes.map(|runtime| runtime.name);
    println!("| what | {other} | {ours} | ratio | at most | |\n|---|---:|---:|---:|---:|---|");
    let mut ratios = Vec::new();
    for row in rows {
        let most = most.unwrap_or(row.most);
        match in_turns(row, runtimes, dir, rounds) {
            Ok([other, ours]) => {
                println!("{}", line(row, most, &other, &ours));
                ratios.push(ours.value / other.value);
            }
            Err(error) => {
                println!("| {} | | | | | failed |", row.name);
                eprintln!("{}: {error:#}", row.name);
            }
        }
    }
    ratios
}

fn geometric_mean(ratios: &[f64]) -> f64 {
    let logarithms: f64 = ratios.iter().map(|ratio| ratio.ln()).sum();
    (logarithms / ratios.len() as f64).exp()
}

fn wanted(options: &Options, row: &Row) -> bool {
    let named = options.rows.iter().any(|name| name == row.name);
    let is_asked = match row.measure {
        Measure::Trace | Measure::Recorded => options.trace,
        Measure::File(_) => options.record,
        Measure::Native => options.native,
        Measure::Net | Measure::Load(_) => options.net,
        Measure::Plain => options.plain,
        Measure::Order(_) => options.order,
        _ => {
            let groups = [
                options.plain,
                options.trace,
                options.record,
                options.native,
                options.net,
                options.order,
            ];
            !groups.contains(&true) && options.rows.is_empty()
        }
    };
    named || is_asked
}

/// Compiles the workloads and puts beside them what they work on.
fn prepare(options: &Options) -> Result<PathBuf> {
    let dir = options.otp.folder("compare")?;
    let place = options.otp.place()?;
    if rows().any(|row| wanted(options, row) && matches!(row.measure, Measure::Native)) {
        native_library(&dir)?;
    }
    if rows().any(|row| wanted(options, row) && row.workload == JIFFY) {
        let library = natives::jiffy()?;
        fs::copy(&library, dir.join("jiffy.so"))
            .with_context(|| format!("copying {}", library.display()))?;
    }
    for workloads in [
        "compare_work.erl",
        "jiffy.erl",
        "native_work.erl",
        "net_work.erl",
        "plain_work.erl",
        "record_work.erl",
        "trace_work.erl",
    ] {
        let source = paths::workspace().join("benches/workloads").join(workloads);
        fs::copy(&source, dir.join(workloads)).context("copying the workloads")?;
        let mut erlc = place.command(&dir, &words(&options.otp.erlc))?;
        run::output(erlc.arg(workloads))?;
    }
    let wants_modules = |row: &Row| wanted(options, row) && matches!(row.measure, Measure::Trace);
    if rows().any(wants_modules) {
        let mut erl = place.command(&dir, &words(&options.otp.erl))?;
        run::output(erl.args(["-noshell", "-run", "trace_work", "make"]))?;
    }
    let wants = |name| rows().any(|row| row.name == name && wanted(options, row));
    if wants("compile_elixir") {
        elixir(&dir)?;
    }
    if wants("compile") || wants("order_compile") {
        let source = match &options.source {
            Some(dir) => dir.clone(),
            None => fetch::source(false)?,
        };
        let lists = source.join("lib/stdlib/src/lists.erl");
        fs::copy(&lists, dir.join("lists.erl"))
            .with_context(|| format!("copying {}", lists.display()))?;
    }
    Ok(dir)
}

/// Puts Elixir's compiler where both runtimes find it, and what it compiles.
fn elixir(dir: &std::path::Path) -> Result<()> {
    let ebin = fetch::otp()?.root.join("../elixir/lib/elixir/ebin");
    let to = dir.join("elixir");
    fs::create_dir_all(&to).with_context(|| format!("making {}", to.display()))?;
    for file in fs::read_dir(&ebin).with_context(|| format!("reading {}", ebin.display()))? {
        let file = file?;
        fs::copy(file.path(), to.join(file.file_name())).context("copying Elixir")?;
    }
    let project = paths::workspace().join("benches/workloads/project.ex");
    fs::copy(&project, dir.join("project.ex")).context("copying the project")?;
    Ok(())
}

/// Compiles what `native_work` calls. Both runtimes open the same file.
fn native_library(dir: &std::path::Path) -> Result<()> {
    let mut cc = headers::cc(&fetch::otp()?.root, &dir.join("native_work.so"))?;
    cc.arg(paths::workspace().join("benches/workloads/native_work.c"));
    run::output(&mut cc).map(drop)
}

/// The medians of the other runtime and of ours.
fn in_turns(
    row: &Row,
    runtimes: [&Runtime; 2],
    dir: &std::path::Path,
    rounds: usize,
) -> Result<[Sample; 2]> {
    let mut samples = [Vec::new(), Vec::new()];
    for round in 0..rounds {
        for turn in 0..2 {
            let who = (round + turn) % 2;
            let sample = measure(row, runtimes[who], dir);
            let sample = sample.with_context(|| format!("on {}", runtimes[who].name))?;
            samples[who].push(sample);
        }
    }
    let [other, ours] = samples;
    let digests = |samples: &[Sample]| {
        samples
            .iter()
            .map(|sample| sample.digest.clone())
            .collect::<Vec<_>>()
    };
    if digests(&other) != digests(&ours) {
        let [there, here] = runtimes.map(|runtime| runtime.name);
        bail!(
            "the results differ: {there} {:?}, {here} {:?}",
            digests(&other),
            digests(&ours)
        );
    }
    Ok([median(other), median(ours)])
}

fn measure(row: &Row, runtime: &Runtime, dir: &std::path::Path) -> Result<Sample> {
    let base = ["-noshell", "-pa", &runtime.beams];
    match row.measure {
        Measure::Start => {
            let mut command = runtime.place.command(dir, &runtime.erl)?;
            command.args(["-noshell", "-eval", "io:format(\"hi~n\"), halt()."]);
            let begin = outside::now();
            let printed = run::output(&mut command)?;
            let value = begin.elapsed().as_nanos() as f64;
            if printed != "hi\n" {
                bail!("it printed {printed:?}");
            }
            Ok(Sample {
                value,
                digest: None,
            })
        }
        Measure::Resident => resident(runtime, dir),
        Measure::Inside => workload(runtime, dir, &runtime.erl, "compare_work", row),
        Measure::Profiled(kind) => {
            let (words, task) = match &runtime.beamline {
                None => (runtime.erl.clone(), vec!["tprof", kind, row.workload]),
                Some(build) => {
                    let words = build.words(&["profile", "--type", kind])?;
                    (words, vec!["main", row.workload])
                }
            };
            let mut command = runtime.place.command(dir, &words)?;
            result(command.args(base).args(["-run", "compare_work"]).args(task))
        }
        Measure::File(tool) => recorded(tool, runtime, dir),
        Measure::Native => workload(runtime, dir, &runtime.erl, "native_work", row),
        Measure::Net => workload(runtime, dir, &runtime.plain, "net_work", row),
        Measure::Load(load) => {
            let mut command = runtime.place.command(dir, &runtime.plain)?;
            command.args(base);
            load::measure(
                command.args(["-run", "net_work", "main", row.workload]),
                load,
            )
        }
        Measure::Order(module) => workload(runtime, dir, &runtime.erl, module, row),
        Measure::Plain => workload(runtime, dir, &runtime.plain, "plain_work", row),
        Measure::Trace => workload(runtime, dir, &runtime.erl, "trace_work", row),
        Measure::Recorded => {
            let words = match &runtime.beamline {
                Some(build) => recording(build, dir)?,
                None => runtime.erl.clone(),
            };
            workload(runtime, dir, &words, "trace_work", row)
        }
    }
}

/// What a workload of this module says of itself.
fn workload(
    runtime: &Runtime,
    dir: &std::path::Path,
    erl: &[String],
    module: &str,
    row: &Row,
) -> Result<Sample> {
    let mut command = runtime.place.command(dir, erl)?;
    command.env("COMPARE_SOURCE", format!("{}/lists.erl", runtime.beams));
    command.args(["-noshell", "-pa", &runtime.beams]);
    result(command.args(["-run", module, "main", row.workload]))
}

/// The words that record each call of `trace_work:pair/2`.
fn recording(build: &Build, dir: &std::path::Path) -> Result<Vec<String>> {
    let ring = utf8(&dir.join("trace_work.ring"))?;
    build.words(&[
        "record",
        "--events",
        "calls",
        "--pattern",
        "trace_work:pair/2",
        "--ring",
        "64MiB",
        "--output",
        &ring,
    ])
}

/// fib(30) with each call and return in a file, which is complete when it is measured.
fn recorded(tool: &str, runtime: &Runtime, dir: &std::path::Path) -> Result<Sample> {
    let name = "record_work.trace";
    let file = dir.join(name);
    let shown = utf8(&file)?;
    let (words, tool) = match &runtime.beamline {
        None => (runtime.erl.clone(), tool),
        Some(build) => {
            let mut verb = vec!["record", "--events", "calls,returns", "--when-full", "stop"];
            verb.extend([
                "--ring",
                "256MiB",
                "--pattern",
                "record_work:fib/1",
                "--output",
            ]);
            verb.push(&shown);
            (build.words(&verb)?, "plain")
        }
    };
    let mut command = runtime.place.command(dir, &words)?;
    command.args(["-noshell", "-pa", &runtime.beams, "-run", "record_work"]);
    command.args(["main", tool, &format!("{}/{name}", runtime.beams)]);
    let sample = result(&mut command);
    if file.exists() {
        fs::remove_file(&file).with_context(|| format!("removing {}", file.display()))?;
    }
    sample
}

/// Runs a workload and reads its line `RESULT Value Digest`.
fn result(command: &mut Command) -> Result<Sample> {
    let printed = run::output(command)?;
    let line = printed
        .lines()
        .find_map(|line| line.strip_prefix("RESULT "));
    let line = line.with_context(|| format!("no RESULT line in {printed:?}"))?;
    let (value, digest) = line.split_once(' ').context("no digest")?;
    Ok(Sample {
        value: value.parse()?,
        digest: Some(digest.to_owned()),
    })
}

/// Starts the runtime, waits until its memory no longer grows, and ends it.
fn resident(runtime: &Runtime, dir: &std::path::Path) -> Result<Sample> {
    let mut command = runtime.place.command(dir, &runtime.erl)?;
    // The program itself says which process to look at: the one we start may only have started it.
    let program = "io:format(\"~s~n\", [os:getpid()]), receive after 2000 -> halt() end.";
    command
        .args(["-noshell", "-eval", program])
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    let mut child = command.spawn().context("starting the runtime")?;
    let stdout = child.stdout.take().context("the pipe was asked for")?;
    let mut pid = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut pid)?;
    std::thread::sleep(Duration::from_millis(1000));
    let file = format!("/proc/{}/status", pid.trim());
    let status = fs::read_to_string(&file).with_context(|| format!("reading {file}"));
    child.wait()?;
    let status = status?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line
        .and_then(|line| line.split_whitespace().next())
        .context("no VmRSS")?;
    Ok(Sample {
        value: kib.parse::<f64>()? * 1024.0,
        digest: None,
    })
}

/// The sample whose value is in the middle.
fn median(mut samples: Vec<Sample>) -> Sample {
    samples.sort_by(|a, b| a.value.total_cmp(&b.value));
    samples.swap_remove(samples.len() / 2)
}

fn line(row: &Row, most: Most, other: &Sample, ours: &Sample) -> String {
    let ratio = ours.value / other.value;
    let (most, is_within) = match most {
        Most::Ratio(most) => (most.to_string(), ratio <= most),
        Most::Ours(most) => (shown(most, row.unit), ours.value <= most),
        Most::Any => (String::new(), true),
    };
    let verdict = if is_within { "" } else { "over" };
    let (other, ours) = (shown(other.value, row.unit), shown(ours.value, row.unit));
    format!(
        "| {} | {other} | {ours} | {ratio:.2} | {most} | {verdict} |",
        row.name
    )
}

fn shown(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Nanoseconds if value < 1e4 => format!("{value:.0} ns"),
        Unit::Nanoseconds if value < 1e6 => format!("{:.1} µs", value / 1e3),
        Unit::Nanoseconds => format!("{:.1} ms", value / 1e6),
        Unit::Bytes if value >= 1e6 => format!("{:.1} MB", value / 1e6),
        Unit::Bytes => format!("{value:.0} B"),
        Unit::Share => format!("{:.3}", value / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::rows::{row, trace};
    use super::*;

    fn sample(value: f64) -> Sample {
        Sample {
            value,
            digest: None,
        }
    }

    #[test]
    fn a_line_of_the_table() {
        let row = row("fib", "fib", Measure::Inside, 3.5);
        let within = line(&row, row.most, &sample(2e6), &sample(6e6));
        assert_eq!(within, "| fib | 2.0 ms | 6.0 ms | 3.00 | 3.5 |  |");
        let over = line(&row, row.most, &sample(2e6), &sample(8e6));
        assert_eq!(over, "| fib | 2.0 ms | 8.0 ms | 4.00 | 3.5 | over |");
        let own = trace("trace_gap", "gap", Most::Ours(1e6));
        let within = line(&own, own.most, &sample(1e4), &sample(9e5));
        assert_eq!(
            within,
            "| trace_gap | 10.0 µs | 900.0 µs | 90.00 | 1.0 ms |  |"
        );
        let over = line(&own, own.most, &sample(9e6), &sample(2e6));
        assert_eq!(
            over,
            "| trace_gap | 9.0 ms | 2.0 ms | 0.22 | 1.0 ms | over |"
        );
    }

    #[test]
    fn the_mean_of_ratios_is_geometric() {
        assert!((geometric_mean(&[2.0, 0.5, 8.0]) - 2.0).abs() < 1e-9);
    }

    #[test]
    fn the_median_is_a_sample() {
        let samples = [5.0, 1.0, 9.0, 2.0, 7.0].map(sample).to_vec();
        assert_eq!(median(samples).value, 5.0);
    }

    #[test]
    fn rows_have_names_of_their_own() {
        let mut names: Vec<_> = rows().map(|row| row.name).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
