//! `beamline doctor` tells whether this user can sample an emulator, and `beamline dump` shows what its threads do now.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::process::ExitCode;
use std::time::Duration;

use beamline_formats::name;
use beamline_sampler::emulator::{Emulator, Kind, Refusal, Thread};
use beamline_sampler::perf::Event;
use beamline_sampler::sampler::{How, Named, Sampler, Target, Threads, Told};
use beamline_sampler::stack::{Frame, Look};
use beamline_sampler::stops;
use beamline_settings::chance;
use clap::Args;

use crate::{epmd, report};

pub(crate) const EXAMPLES: &str = "\
EXAMPLES:
  Can I sample emulators on this machine?
    beamline doctor
  Can I sample this one?
    beamline doctor 4711
";

pub(crate) const DUMP_EXAMPLES: &str = "\
EXAMPLES:
  Show what each scheduler of a node runs at this moment:
    beamline dump my_node
";

/// The arguments of `beamline doctor`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The number of an emulator's process, or the name of its node or release.
    target: Option<String>,
}

/// The arguments of `beamline dump`.
#[derive(Debug, Args)]
pub(crate) struct DumpArguments {
    /// The number of an emulator's process, or the name of its node or release.
    target: String,
}

/// Where the kernel says what ordinary users may measure.
const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";

/// What would make a refused thing possible, if anything would.
fn remedy(refusal: &Refusal) -> Option<String> {
    let paranoid = fs::read_to_string(PARANOID).ok();
    let paranoid: i32 = paranoid
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(0);
    match refusal {
        Refusal::NotAllowed(_, asks) if *asks == How::Events.asks() && paranoid > 2 => {
            Some("sudo sysctl kernel.perf_event_paranoid=2".into())
        }
        // It is this very process, which more rights cannot help.
        Refusal::NotAllowed(pid, _) if *pid == chance::os_pid() => None,
        // Root is refused by a filter of system calls alone.
        Refusal::NotAllowed(..) if rustix::process::geteuid().is_root() => None,
        Refusal::NotAllowed(pid, _) => Some(format!("sudo beamline sample {pid}")),
        _ => None,
    }
}

/// A refusal, without the number of this very process.
fn why(refusal: &Refusal) -> String {
    match refusal {
        Refusal::NotAllowed(pid, asks) if *pid == chance::os_pid() => {
            format!("this user may not {asks}")
        }
        _ => refusal.to_string(),
    }
}

/// A refusal as one line, which names this command.
pub(crate) fn told(refusal: &Refusal) -> String {
    match refusal {
        Refusal::NotAllowed(pid, _) => format!("{refusal}; see beamline doctor {pid}"),
        _ => format!("{refusal}; see beamline doctor"),
    }
}

/// The emulator of this number or name.
fn emulator(text: &str) -> Result<Emulator, Refused> {
    if let Ok(pid) = text.parse() {
        return Emulator::of(pid).map_err(Refused::Emulator);
    }
    let all = emulators();
    let named = all.iter().filter(|of| of.is_named(text)).cloned();
    let mut named: Vec<Emulator> = named.collect();
    match (named.pop(), named.is_empty()) {
        (Some(only), true) => Ok(only),
        (None, _) => Err(Refused::Name(format!(
            "no emulator that this user can see is named '{text}'{}",
            others(&all)
        ))),
        (Some(last), false) => {
            named.push(last);
            Err(Refused::Name(format!(
                "more than one emulator is named '{text}'{}",
                others(&named)
            )))
        }
    }
}

/// All emulators that this user can see. A node whose command line does not name it, because it got its name later, has the
/// name that the daemon of names knows for a port that it listens on.
fn emulators() -> Vec<Emulator> {
    let mut all = Emulator::all();
    if all.iter().all(|of| of.name.is_some()) {
        return all;
    }
    let nodes = epmd::nodes();
    for of in all.iter_mut().filter(|of| of.name.is_none()) {
        let ports = of.listening_ports();
        let node = nodes.iter().find(|(_, port)| ports.contains(port));
        of.name = node.map(|(name, _)| name.clone());
    }
    all
}

/// Why there is no emulator to look at.
enum Refused {
    Emulator(Refusal),
    Name(String),
}

fn others(all: &[Emulator]) -> String {
    let names = all.iter().map(|of| {
        let name = of.name.as_deref().unwrap_or("no name");
        format!("{} ({name})", of.pid)
    });
    let names: Vec<String> = names.collect();
    match names.is_empty() {
        true => String::new(),
        false => format!(": there are {}", names.join(", ")),
    }
}

/// The emulator of this number or name, with its code, unless it is not what is meant.
pub(crate) fn target(
    text: &str,
    check: impl FnOnce(&Emulator) -> Result<(), String>,
) -> Result<Target, String> {
    match emulator(text) {
        Ok(emulator) => {
            check(&emulator)?;
            Target::of(emulator).map_err(|e| told(&e))
        }
        Err(Refused::Emulator(refusal)) => Err(told(&refusal)),
        Err(Refused::Name(line)) => Err(format!("{line}; see beamline doctor")),
    }
}

/// A process and all that it has started, itself first.
pub(crate) fn descendants(pid: u32) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(of) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        // The name, in parentheses, may have any character.
        let parent = stat.rsplit_once(')').and_then(|(_, rest)| {
            let parent = rest.split_whitespace().nth(1)?;
            parent.parse().ok()
        });
        if let Some(parent) = parent {
            children.entry(parent).or_default().push(of);
        }
    }
    let mut all = vec![pid];
    let mut at = 0;
    while let Some(pid) = all.get(at) {
        // A process is the child of one other: nobody comes twice.
        all.extend(children.remove(pid).unwrap_or_default());
        at += 1;
    }
    all
}

/// Runs `beamline doctor`: 0 when sampling is possible, or 1.
pub(crate) fn run(args: &Arguments) -> Result<ExitCode, String> {
    let mut text = String::new();
    let is_possible = match &args.target {
        None => machine(&mut text),
        Some(target) => one(target, &mut text),
    };
    report::print(&text)?;
    Ok(ExitCode::from(u8::from(!is_possible)))
}

/// A period at which nothing is measured while the event is open.
const SECOND_NS: u64 = 1_000_000_000;

/// Looks whether this user can open the events of its own threads.
fn machine(text: &mut String) -> bool {
    let paranoid = fs::read_to_string(PARANOID).unwrap_or_default();
    let _ = writeln!(text, "kernel.perf_event_paranoid is {}", paranoid.trim());
    let own = chance::os_pid();
    let stops = stops::allowed().map_err(|e| Refusal::of(own, How::Stops.asks(), e));
    let events = Event::open(own, SECOND_NS);
    let events = events.map_err(|e| Refusal::of(own, How::Events.asks(), e));
    let is_possible = ways(text, events.map(drop), stops);
    let all = emulators();
    let _ = match all.is_empty() {
        true => writeln!(text, "no emulator of OTP runs that this user can see"),
        false => writeln!(text, "emulators{}", others(&all)),
    };
    is_possible
}

/// Tells by which ways threads can be looked at; whether there is one.
fn ways(text: &mut String, events: Result<(), Refusal>, stops: Result<(), Refusal>) -> bool {
    let stop = "can stop threads for each look (--how stop)";
    match (events, stops) {
        (Ok(()), stops) => {
            text.push_str("yes: this user can open performance events (--how perf)\n");
            if stops.is_ok() {
                let _ = writeln!(text, "yes: this user {stop}");
            }
            true
        }
        (Err(refusal), Ok(())) => {
            let _ = writeln!(text, "not by performance events: {}", why(&refusal));
            if let Some(remedy) = remedy(&refusal) {
                let _ = writeln!(text, "try: {remedy}");
            }
            let _ = writeln!(text, "yes: this user {stop}, which costs more");
            true
        }
        (Err(events), Err(stops)) => {
            let _ = writeln!(text, "no: {}", why(&stops));
            refuse(text, &events)
        }
    }
}

/// Tells of a refusal, and what would help; it is no.
fn refuse(text: &mut String, refusal: &Refusal) -> bool {
    let _ = writeln!(text, "no: {}", why(refusal));
    if let Some(remedy) = remedy(refusal) {
        let _ = writeln!(text, "try: {remedy}");
    }
    false
}

fn one(target: &str, text: &mut String) -> bool {
    let emulator = match emulator(target) {
        Ok(emulator) => emulator,
        Err(Refused::Emulator(refusal)) => return refuse(text, &refusal),
        Err(Refused::Name(line)) => {
            let _ = writeln!(text, "no: {line}");
            return false;
        }
    };
    let version = emulator.version();
    let what = match emulator.kind {
        Kind::Otp => "is an emulator of OTP",
        Kind::Beamline => "is Beamline's runtime, with the libraries of OTP",
    };
    let _ = writeln!(
        text,
        "yes: process {} {what} {version}: {}",
        emulator.pid,
        emulator.program.display()
    );
    let target = match Target::of(emulator) {
        Ok(target) => target,
        Err(refusal) => return refuse(text, &refusal),
    };
    let functions = target.code().functions().filter(|of| of.is_erlang());
    let _ = writeln!(
        text,
        "yes: its machine code is known: {} functions in {} modules",
        name::thousands(functions.count() as u64),
        target.code().modules()
    );
    let pid = target.emulator.pid;
    let stops = stops::allowed().map_err(|e| Refusal::of(pid, How::Stops.asks(), e));
    let events = Sampler::start(target, Threads::Dirty, Some(How::Events), |_| 1);
    ways(text, events.map(drop), stops)
}

/// How often threads are looked at for a dump.
fn dump_rate_hz(how: How) -> u64 {
    match how {
        How::Events => 997,
        How::Stops => 97,
    }
}

/// How long they are.
const DUMP_TIME: Duration = Duration::from_millis(100);

/// Runs `beamline dump`.
pub(crate) fn dump(args: &DumpArguments) -> Result<ExitCode, String> {
    let target = target(&args.target, |_| Ok(()))?;
    let threads = target.emulator.threads().map_err(|e| told(&e))?;
    let mut sampler =
        Sampler::start(target, Threads::All, None, dump_rate_hz).map_err(|e| told(&e))?;
    let mut looks: HashMap<u32, Look> = HashMap::new();
    let mut names: Vec<Named> = Vec::new();
    let begin = chance::now();
    let ran = sampler.run(
        || begin.elapsed() < DUMP_TIME,
        |told| {
            match told {
                Told::Process(named) => names.push((*named).clone()),
                Told::Sample { thread, look, .. } => {
                    // Events do not stop a thread, so it may have left a call before its stack was read.
                    let shown = looks.get(&thread.tid);
                    if look.is_whole() || shown.is_none_or(|shown| !shown.is_whole()) {
                        looks.insert(thread.tid, (*look).clone());
                    }
                }
                Told::Thread(_) | Told::Lost { .. } | Told::Stopped(_) => {}
            }
            Ok::<(), std::io::Error>(())
        },
    );
    ran.map_err(|e| e.to_string())?;
    let mut text = String::new();
    for thread in &threads {
        write_thread(&mut text, thread, looks.get(&thread.tid), &names);
    }
    report::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn write_thread(text: &mut String, thread: &Thread, look: Option<&Look>, names: &[Named]) {
    let Some(look) = look else {
        // Nobody looks at what a thread does that does not run.
        let _ = writeln!(text, "{} ({}) sleeps", thread.name, thread.tid);
        return;
    };
    let who = look.pid().map_or_else(String::new, |pid| {
        let (number, serial) = pid.numbers();
        let named = names.iter().find(|named| named.pid == pid);
        let registered = named.and_then(|named| named.registered.as_deref());
        let registered = registered.map_or_else(String::new, |name| format!(" {name}"));
        format!(", process <0.{number}.{serial}>{registered}")
    });
    let does = format!("{:?}", look.does).to_lowercase();
    let _ = writeln!(text, "{} ({}) runs{who}: {does}", thread.name, thread.tid);
    for frame in &look.frames {
        let _ = match frame {
            Frame::Erlang {
                module,
                name,
                arity,
                line,
                ..
            } => {
                let mfa = name::mfa(module, name, u32::from(*arity));
                match line {
                    0 => writeln!(text, "    {mfa}"),
                    line => writeln!(text, "    {mfa}, line {line}"),
                }
            }
            Frame::Outside { library, name } => writeln!(text, "    [{library}] {name}"),
            Frame::Cut => writeln!(text, "    (more is not known)"),
        };
    }
}
