//! `beamline record` records the events of a command. This module also reports on the recordings it wrote.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

use beamline_formats::profile::{Libraries, Pattern, Profile};
use beamline_formats::ring::{
    Error, Group, Host, Kind, Recording, Request, Sampling, System, Trigger, WhenFull, Window,
    least_bytes, lock, part_of,
};
use beamline_reports::cluster::Report;
use beamline_reports::events::{Sampled, Summary};
use beamline_reports::flamegraph::Width;
use beamline_reports::table::By;
use beamline_settings::chance;
use beamline_settings::counter::{COUNTERS_MAX, Counter};
use clap::Args;

use crate::drains::Drains;
use crate::flight::{DumpOn, Flight, Limits};
use crate::launch::{self, Ended, What};
use crate::options::{RunArgs, SpanArgs, named};
use crate::units::{ms, size, span, time};
use crate::{ending, input, nodes, report};

/// Rows of each list of a report, but those of functions.
const ROWS: usize = 15;

/// See the module.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Record these groups of events: calls, returns, words, reductions, messages, processes, scheduling, gc, ports, net,
    /// system, seq, counters, order, sites, dist. The groups words and reductions include calls and returns. The group order is
    /// what a replay needs; sites adds where in the code its steps are, and in a replay which other messages each receive
    /// would take.
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "EVENT,...",
        default_value = "calls,returns,processes,scheduling,gc"
    )]
    events: Vec<Group>,
    /// Record this system event: long_gc=10ms, long_schedule=10ms, large_heap=8MiB,
    /// long_message_queue=100:1000 (long from 1000 messages on, short again at 100), busy_port (of a
    /// connection to another node, too). Can be repeated
    /// [default if --events has system: all five with these limits].
    #[arg(long = "system", value_name = "EVENT[=LIMIT]")]
    system: Vec<SystemEvent>,
    /// Record only calls of these functions: M:F/A, M:F or M, or as Elixir writes it Mod.fun/1, Mod.fun, Mod or Mod.* (with
    /// the modules below it); _ or * stand for any. Can be repeated [default: all].
    #[arg(long = "pattern", value_name = "PATTERN")]
    patterns: Vec<Pattern>,
    /// Keep only the newest records, in a ring of this size, such as 512KiB, 64MiB or 2GiB. With --dump-on, this is the
    /// room for what happened before the event; with --stream, for records that are on their way into FILE [default
    /// there: 64MiB].
    #[arg(long, value_name = "SIZE", value_parser = size)]
    ring: Option<u64>,
    /// Choose what happens when there is no room [default: wait; with --ring or --dump-on: overwrite].
    #[arg(long, value_parser = named(WhenFull::ALL, WhenFull::name, WhenFull::about))]
    when_full: Option<WhenFull>,
    /// Keep all records, compressed while the program runs. This is the default without --ring and --dump-on. Until the
    /// program ends, the newest records are beside FILE in FILE.part. If Beamline is killed, FILE is read with FILE.part.
    #[arg(long)]
    stream: bool,
    /// Count these in each time slice of a process and in the whole run, at most four: instructions, cycles,
    /// cache-misses, cache-references, branches, branch-misses (these six in user code only), task-clock, page-faults,
    /// context-switches. If the machine cannot count one of the first six, Beamline counts the last three instead.
    #[arg(long, value_delimiter = ',', value_name = "COUNTER,...")]
    counters: Vec<Counter>,
    /// Record as a flight recorder: keep only the records around this event. WHAT is long_gc, long_schedule,
    /// large_heap, long_message_queue, busy_port, busy_dist_port (--system sets their limits), exit:REASON (a process exits with this
    /// reason; _ means any failure) or SIGUSR1 (sent to this program, not to the emulator). Can be repeated. Until the
    /// event, new records overwrite the oldest. An emulator that is killed also counts as an event. The program and the
    /// recording go on after an event.
    #[arg(long = "dump-on", value_name = "WHAT")]
    dump_on: Vec<DumpOn>,
    /// With --dump-on, keep the records of this time before the event, as far as --ring has room.
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "10s", requires = "dump_on")]
    keep: Duration,
    /// With --dump-on, keep the records of this time after the event.
    #[arg(long, value_name = "TIME", value_parser = span, default_value = "1s", requires = "dump_on")]
    keep_after: Duration,
    /// With --dump-on, write at most N files for each emulator: run.ring, run-2.ring, run-3.ring and so on.
    #[arg(long, value_name = "N", default_value_t = 10, requires = "dump_on")]
    dumps: u16,
    #[command(flatten)]
    span: SpanArgs,
    /// Write the recording to this file, and replace what the file held. If the command starts several emulators, the first
    /// one gets this file, and each other one a numbered file that is new: run-2.stream beside run.stream. If this file
    /// cannot be written, the command is not started. If it ends in / or is a folder, each emulator gets a file in it, which has
    /// the name of its node when the command has ended, and --events has dist, too. A folder that has recordings is refused.
    #[arg(short, long, value_name = "FILE|FOLDER/")]
    output: PathBuf,
    #[command(flatten)]
    run: RunArgs,
}

/// A system event to record, from its limit on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SystemEvent {
    LongGc(Duration),
    LongSchedule(Duration),
    LargeHeap {
        bytes: u64,
    },
    /// Long from `on` messages on, until there are `off`.
    LongMessageQueue {
        off: u64,
        on: u64,
    },
    BusyPort,
}

impl SystemEvent {
    /// All of them, with their default limits.
    const DEFAULTS: [SystemEvent; 5] = [
        SystemEvent::LongGc(Duration::from_millis(10)),
        SystemEvent::LongSchedule(Duration::from_millis(10)),
        SystemEvent::LargeHeap { bytes: 8 << 20 },
        SystemEvent::LongMessageQueue {
            off: 100,
            on: 1_000,
        },
        SystemEvent::BusyPort,
    ];

    /// Does a flight recorder that waits for this wait for this event?
    fn is_awaited_by(self, trigger: &Trigger) -> bool {
        match self {
            SystemEvent::LongGc(_) => *trigger == Trigger::LongGc,
            SystemEvent::LongSchedule(_) => *trigger == Trigger::LongSchedule,
            SystemEvent::LargeHeap { .. } => *trigger == Trigger::LargeHeap,
            SystemEvent::LongMessageQueue { .. } => *trigger == Trigger::LongMessageQueue,
            SystemEvent::BusyPort => {
                matches!(trigger, Trigger::BusyPort | Trigger::BusyDistPort)
            }
        }
    }

    fn ask(self, system: &mut System) {
        match self {
            SystemEvent::LongGc(time) => system.long_gc_ms = ms(time),
            SystemEvent::LongSchedule(time) => system.long_schedule_ms = ms(time),
            SystemEvent::LargeHeap { bytes } => system.large_heap_words = (bytes / 8).max(1),
            SystemEvent::LongMessageQueue { off, on } => {
                system.long_message_queue = Some((off, on));
            }
            SystemEvent::BusyPort => system.busy_port = true,
        }
    }
}

impl FromStr for SystemEvent {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (event, limit) = text.split_once('=').unwrap_or((text, ""));
        Ok(match event {
            "long_gc" => SystemEvent::LongGc(time(limit)?),
            "long_schedule" => SystemEvent::LongSchedule(time(limit)?),
            "large_heap" => SystemEvent::LargeHeap {
                bytes: size(limit)?,
            },
            "long_message_queue" => {
                let numbers = limit.split_once(':').and_then(|(off, on)| {
                    let (off, on) = (off.parse().ok()?, on.parse().ok()?);
                    (off < on).then_some(SystemEvent::LongMessageQueue { off, on })
                });
                let wrong =
                    || format!("'{limit}' is not a limit; use two numbers such as 100:1000");
                numbers.ok_or_else(wrong)?
            }
            "busy_port" if limit.is_empty() => SystemEvent::BusyPort,
            _ => {
                return Err(format!(
                    "'{text}' is not a system event; use long_gc=TIME, long_schedule=TIME, \
                     large_heap=SIZE, long_message_queue=N:N or busy_port"
                ));
            }
        })
    }
}

/// This machine.
pub(crate) fn host() -> Host {
    let mut system = sysinfo::System::new();
    system.refresh_memory();
    system.refresh_cpu_all();
    let cores = chance::processors();
    let cpu = system.cpus().first();
    Host {
        name: sysinfo::System::host_name().unwrap_or_default(),
        system: sysinfo::System::long_os_version().unwrap_or_default(),
        kernel: sysinfo::System::kernel_version().unwrap_or_default(),
        processor: cpu.map_or_else(String::new, |cpu| cpu.brand().trim().to_owned()),
        cores: cores as u64,
        memory_bytes: system.total_memory(),
    }
}

/// The system events to record: those of `--system`, all of them if `--events` has the group, and those of `--dump-on`.
fn system(args: &Arguments, triggers: &[Trigger]) -> System {
    let mut system = System::default();
    let all = args.system.is_empty() && args.events.contains(&Group::System);
    for event in SystemEvent::DEFAULTS {
        if all || triggers.iter().any(|trigger| event.is_awaited_by(trigger)) {
            event.ask(&mut system);
        }
    }
    for event in &args.system {
        event.ask(&mut system);
    }
    system
}

/// The counters to read. If `--events` has the group and `--counters` is missing, the three that say most.
fn counters(args: &Arguments) -> Result<Vec<Counter>, String> {
    let mut counters = args.counters.clone();
    if counters.is_empty() && args.events.contains(&Group::Counters) {
        counters = vec![Counter::Instructions, Counter::Cycles, Counter::CacheMisses];
    }
    for (at, counter) in counters.iter().enumerate() {
        if counters[..at].contains(counter) {
            return Err(format!("--counters has {counter} twice"));
        }
    }
    if counters.len() > COUNTERS_MAX {
        return Err(format!(
            "--counters names {} counters; it takes at most {COUNTERS_MAX}",
            counters.len()
        ));
    }
    Ok(counters)
}

/// The events in the emulators that `--dump-on` waits for.
fn triggers(args: &Arguments) -> Vec<Trigger> {
    let events = args.dump_on.iter().filter_map(|on| match on {
        DumpOn::Event(trigger) => Some(trigger.clone()),
        DumpOn::Signal => None,
    });
    events.collect()
}

/// What becomes of the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keeps {
    /// All go into a stream.
    All,
    /// The newest stay in the ring.
    Newest,
    /// Those around events go into files of their own.
    Around,
}

impl Keeps {
    fn of(args: &Arguments) -> Keeps {
        if !args.dump_on.is_empty() {
            Keeps::Around
        } else if args.ring.is_some() && !args.stream {
            Keeps::Newest
        } else {
            Keeps::All
        }
    }
}

/// What happens when the ring is full, or what is wrong with the options that say so.
fn when_full(args: &Arguments) -> Result<WhenFull, String> {
    let keeps = Keeps::of(args);
    let is_flight = keeps == Keeps::Around;
    if is_flight && args.stream {
        return Err("--dump-on and --stream exclude each other: --stream keeps everything".into());
    }
    if is_flight && !matches!(args.when_full, None | Some(WhenFull::Overwrite)) {
        return Err("--dump-on needs --when-full overwrite, which keeps the newest records".into());
    }
    Ok(match (args.when_full, keeps) {
        (Some(WhenFull::Wait), Keeps::Newest) => {
            return Err(
                "--when-full wait excludes --ring, in which nobody makes room: leave one out, or add --stream"
                    .into(),
            );
        }
        (Some(chosen), _) => chosen,
        (None, Keeps::All) => WhenFull::Wait,
        (None, _) => WhenFull::Overwrite,
    })
}

/// Bytes of a ring unless `--ring` says it.
const RING_BYTES: u64 = 64 << 20;

/// Bytes of the ring, or what is wrong with the file and the ring that the options ask for.
fn ring_bytes(args: &Arguments) -> Result<u64, String> {
    if args.output == Path::new("-") || report::descriptor(&args.output).is_some() {
        return Err("a recording cannot go to standard output: give a file".into());
    }
    let (bytes, least) = (args.ring.unwrap_or(RING_BYTES), least_bytes(1));
    if bytes < least {
        let least = least / 1024;
        return Err(format!(
            "--ring is too small: it needs {least} KiB, and more for each scheduler"
        ));
    }
    Ok(bytes)
}

/// The file of the first emulator; a folder is made where there is none.
///
/// # Errors
/// One line: the folder cannot be written, or has recordings.
fn first_file(args: &Arguments) -> Result<PathBuf, String> {
    let file = match (nodes::is_folder(&args.output), Keeps::of(args)) {
        (false, _) => args.output.clone(),
        (true, Keeps::Newest) => nodes::first_file(&args.output, "ring")?,
        (true, _) => nodes::first_file(&args.output, "stream")?,
    };
    std::path::absolute(&file).map_err(|e| format!("{}: {e}", file.display()))
}

/// What the arguments ask for, or what is wrong with them.
fn request(args: &Arguments) -> Result<Request, String> {
    let triggers = triggers(args);
    let system = system(args, &triggers);
    let mut events = args.events.clone();
    if system != System::default() {
        events.push(Group::System);
    }
    let counters = counters(args)?;
    if !counters.is_empty() {
        events.extend([Group::Counters, Group::Scheduling]);
    }
    if triggers.iter().any(|trigger| trigger.kind() == Kind::Exit) {
        events.push(Group::Processes);
    }
    if events.contains(&Group::Words) || events.contains(&Group::Reductions) {
        events.extend([Group::Calls, Group::Returns]);
    }
    if nodes::is_folder(&args.output) {
        events.push(Group::Dist);
    }
    events.sort();
    events.dedup();
    if events.contains(&Group::Returns) && !events.contains(&Group::Calls) {
        return Err("returns are recorded with calls: ask for both".into());
    }
    if !args.patterns.is_empty() && !events.contains(&Group::Calls) {
        return Err(
            "--pattern chooses calls, but --events leaves them out: add calls to --events".into(),
        );
    }
    if events.contains(&Group::Sites) && !events.contains(&Group::Order) {
        return Err("sites are those of the order: ask for order, too".into());
    }
    if events.contains(&Group::Order) && !args.span.span().begins_at_once() {
        return Err(
            "the order is recorded from the start: leave out --delay, --from and --by-signal"
                .into(),
        );
    }
    let when_full = when_full(args)?;
    let ring_bytes = ring_bytes(args)?;
    if nodes::is_folder(&args.output) && Keeps::of(args) == Keeps::Around {
        return Err(
            "--dump-on keeps files of events, not of nodes: give a file, not a folder".into(),
        );
    }
    Ok(Request {
        file: PathBuf::new(),
        is_apart: Keeps::of(args) != Keeps::Newest,
        token: chance::token(),
        events,
        system,
        counters,
        triggers,
        patterns: args.patterns.clone(),
        ring_bytes,
        when_full,
        span: args.span.span(),
        folder: PathBuf::new(),
        libraries: Libraries::default(),
        host: host(),
        beamline: env!("CARGO_PKG_VERSION").to_owned(),
        command: args.run.command.clone(),
    })
}

/// The locks of the files that a recording is made in. The emulator that writes a ring locks it, so this process locks
/// only files made from rings.
fn reserve(request: &Request) -> Result<Option<File>, Error> {
    request.remove_earlier()?;
    if !request.is_apart {
        drop(lock(&request.file)?);
        check_room(request)?;
        return Ok(None);
    }
    let file = lock(&request.file)?;
    drop(lock(&part_of(&request.file))?);
    check_room(request)?;
    Ok(Some(file))
}

/// Whether the disk has room for the ring, beside what the ring replaces.
fn check_room(request: &Request) -> Result<(), Error> {
    let replaced = match request.is_apart {
        true => part_of(&request.file),
        false => request.file.clone(),
    };
    let replaced = std::fs::metadata(replaced).map_or(0, |file| file.blocks() * 512);
    let disk = rustix::fs::statvfs(&request.file).map_err(io::Error::from)?;
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    if free.saturating_add(replaced) < request.ring_bytes {
        return Err(Error::Io(rustix::io::Errno::NOSPC.into()));
    }
    Ok(())
}

/// Removes what was made of a file that nothing was written to.
fn remove_empty(request: &Request) {
    for made in [part_of(&request.file), request.file.clone()] {
        if std::fs::metadata(&made).is_ok_and(|file| file.is_file() && file.len() == 0) {
            // If it cannot be removed, it stays.
            let _ = std::fs::remove_file(made);
        }
    }
}

/// Runs a command and records it.
pub(crate) fn run(args: &Arguments) -> Result<ExitCode, String> {
    let request = args.span.check(&args.run).and_then(|()| request(args));
    let mut request = match request {
        Ok(request) => request,
        Err(message) => {
            report::error(&message);
            return Ok(ExitCode::from(2));
        }
    };
    request.file = first_file(args)?;
    let reserved = reserve(&request).map_err(|error| {
        remove_empty(&request);
        let shown = args.output.display();
        format!("{shown}: {error}; the program was not started")
    });
    let _held = reserved?;
    let launched = || launch::run(&args.run.launch(What::Record(Box::new(request.clone())))?);
    let (ended, files) = match Keeps::of(args) {
        Keeps::All => {
            let drains = Drains::start(&request);
            let ended = launched();
            (ended, drains.finish())
        }
        Keeps::Around => {
            let on_signal = args.dump_on.contains(&DumpOn::Signal);
            let flight = Flight::start(&request, limits(args), on_signal)?;
            let ended = launched();
            let dumps = flight.finish();
            remove_empty(&request);
            let ended = ended?;
            ended.tell_outlived();
            return Ok(flight_ended(&ended, dumps));
        }
        Keeps::Newest => {
            let ended = launched();
            let files = request.rings().map_err(|e| e.to_string())?;
            (ended, files.into_iter().map(|(_, file)| file).collect())
        }
    };
    remove_empty(&request);
    let files = match args.output.is_dir() {
        true => nodes::name_files(&files),
        false => files,
    };
    let ended = ended?;
    ended.tell_outlived();
    let ended = recording_ended(&ended, &files);
    if args.output.is_dir() && files.len() > 1 {
        ending::tell_of_all(&args.output, files.len());
    }
    Ok(ended)
}

fn flight_ended(ended: &Ended, dumps: usize) -> ExitCode {
    if dumps == 0 {
        report::error("no event that --dump-on names happened: no recording was written");
    }
    ended.exit_code_of_patterns()
}

/// Tells of each recording. A program that went well and of which nothing was recorded is an error.
fn recording_ended(ended: &Ended, files: &[PathBuf]) -> ExitCode {
    let records: u64 = files.iter().map(|file| ending::tell(file)).sum();
    let means_nothing = ended.tell_patterns();
    if !ended.status.success() {
        return ended.exit_code();
    }
    if means_nothing {
        return ExitCode::from(2);
    }
    if records > 0 {
        return ended.exit_code();
    }
    report::error(match files.is_empty() {
        true => {
            "nothing was recorded: the command started no emulator, or the emulator could not record"
        }
        false => "nothing was recorded: none of the events happened in the time that was recorded",
    });
    ExitCode::from(1)
}

fn limits(args: &Arguments) -> Limits {
    Limits {
        window: Window {
            before: args.keep,
            after: args.keep_after,
        },
        dumps: args.dumps.into(),
    }
}

/// Prints the report of a recording and writes the files that `options` name. With an order of rows, or processes apart,
/// the functions are a table as of a profile.
pub(crate) fn report(file: &Path, options: &report::Options) -> Result<ExitCode, String> {
    let fail = |error: Error| format!("{}: {error}", file.display());
    let recording = Recording::open(file).map_err(fail)?;
    if let Some(sampling) = recording.sampling() {
        return report_samples(file, &recording, sampling, options);
    }
    let width = options.width.unwrap_or(Width::Time);
    let lacks = match options.flamegraph {
        Some(_) => recording.lacks(width.picture(), width.needs()),
        None => None,
    };
    let needs_calls = options.output.is_some() || options.is_table();
    let lacks = lacks.or_else(|| {
        let needs = [Group::Calls, Group::Returns];
        needs_calls.then(|| recording.lacks("a table of functions", &needs))?
    });
    if let Some(line) = lacks {
        return Err(format!("{}: {line}", file.display()));
    }
    let (summary, profile) = Summary::of(&recording, ROWS).map_err(fail)?;
    let mut errors: Vec<String> = Vec::new();
    let text = match options.is_table() {
        true => format!("{}{}", summary.losses, options.tables(&profile)),
        false => summary.shown(&options.view(&profile)).to_string(),
    };
    errors.extend(report::print(&text).err());
    errors.extend(
        options
            .json
            .as_deref()
            .and_then(|path| report::write_json(path, &summary).err()),
    );
    errors.extend(report::write_files(&profile, options));
    Ok(told(&errors))
}

/// As [`report()`], of the recordings of a folder.
pub(crate) fn report_folder(folder: &Path, options: &report::Options) -> Result<ExitCode, String> {
    let cluster = nodes::cluster(folder)?;
    let width = options.width.unwrap_or(Width::Time);
    for member in cluster.members() {
        let file = member.file.display();
        if member.recording.sampling().is_some() {
            return Err(format!(
                "{file}: samples are reported alone: name this file"
            ));
        }
        let calls = [Group::Calls, Group::Returns];
        let needs_calls = options.output.is_some() || options.is_table();
        let lacks = match options.flamegraph {
            Some(_) => member.recording.lacks(width.picture(), width.needs()),
            None => None,
        };
        let table = || member.recording.lacks("a table of functions", &calls);
        if let Some(line) = lacks.or_else(|| needs_calls.then(table)?) {
            return Err(format!("{file}: {line}"));
        }
    }
    let read = Report::of(&cluster, ROWS);
    let (report, profiles) = read.map_err(|(file, e)| format!("{}: {e}", file.display()))?;
    let merged = Profile::merge(profiles.clone())?;
    let mut errors: Vec<String> = Vec::new();
    let text = match options.is_table() {
        true => options.tables(&merged).to_string(),
        false => report.shown(&options.view(&merged)).to_string(),
    };
    errors.extend(report::print(&text).err());
    let json = options.json.as_deref();
    errors.extend(json.and_then(|path| report::write_json(path, &report).err()));
    let apart = cluster.apart(profiles)?;
    errors.extend(report::write_files(&apart, options));
    Ok(told(&errors))
}

/// Prints the errors; the exit code.
fn told(errors: &[String]) -> ExitCode {
    for error in errors {
        report::error(error);
    }
    ExitCode::from(u8::from(!errors.is_empty()))
}

/// Reports a recording of samples. A profile counts calls, so samples do not become one.
fn report_samples(
    file: &Path,
    recording: &Recording,
    sampling: &Sampling,
    options: &report::Options,
) -> Result<ExitCode, String> {
    let refuse = |what: &str| Err(format!("{}: {what}", file.display()));
    if options.output.is_some() {
        return refuse("a profile counts calls, which samples do not have: keep the recording");
    }
    if options.sort.is_some() {
        return refuse("samples have one order, by own share: leave out --sort");
    }
    input::check(recording, options.width).or_else(|line| refuse(&line).map(drop))?;
    let read = Sampled::of(recording, sampling);
    let (sampled, profile) = read.map_err(|e| format!("{}: {e}", file.display()))?;
    let view = options.view(&profile);
    let text = match options.by {
        Some(By::Process) => sampled.by_process(&profile, &view).to_string(),
        None | Some(By::Total) => sampled.shown(&profile, &view).to_string(),
        Some(By::Node) => return refuse("samples are of one emulator: leave out --by node"),
    };
    let mut errors: Vec<String> = Vec::new();
    errors.extend(report::print(&text).err());
    errors.extend(
        options
            .json
            .as_deref()
            .and_then(|path| report::write_json(path, &sampled).err()),
    );
    let options = report::Options {
        samples: Some(sampled.short()),
        ..options.clone()
    };
    errors.extend(report::write_files(&profile, &options));
    Ok(told(&errors))
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[test]
    fn system_events_have_limits_of_their_own_or_the_default_ones() {
        let asked = |events: &[&str], groups: &[Group], triggers: &[Trigger]| {
            let line = ["record", "-o", "x", "--", "erl"];
            let mut args = One::try_parse_from(line).expect("it parses").args;
            args.events = groups.to_vec();
            let parsed = events.iter().map(|event| event.parse().expect("an event"));
            args.system = parsed.collect();
            system(&args, triggers)
        };
        assert_eq!(asked(&[], &[Group::Gc], &[]), System::default());
        let all = asked(&[], &[Group::System], &[]);
        assert_eq!((all.long_gc_ms, all.large_heap_words), (10, 1 << 20));
        assert!(all.busy_port && all.long_message_queue == Some((100, 1_000)));
        let one = asked(
            &["long_gc=3s"],
            &[Group::System],
            &[Trigger::LongGc, Trigger::BusyPort],
        );
        let expect = System {
            long_gc_ms: 3_000,
            busy_port: true,
            ..System::default()
        };
        assert_eq!(one, expect);
    }

    #[derive(clap::Parser)]
    struct One {
        #[command(flatten)]
        args: Arguments,
    }
}
