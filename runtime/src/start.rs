//! Starting the machine: emulator arguments, preloaded modules, the first process.
//!
//! The arguments are those that OTP's `erlexec` hands to its emulator: emulator flags (`-S 2`, from
//! `+S 2`), then `--` and what `init` reads.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use beamline_formats::totals;
use beamline_formats::variable::Variable as _;

use crate::bif;
use crate::code::{debug, load, module, purge};
use crate::halt;
use crate::heap::{self, Heap};
use crate::interp;
use crate::port;
use crate::process::{self, SpawnOptions};
use crate::sched;
use crate::sched::clock::TimeWarp;
use crate::sched::run_queue::Priority;
use crate::sys;
use crate::term::{Atom, Pid, Term, am, atom};
use crate::trace;

/// Modules that are loaded before the first process runs. Source: `PRELOAD_BEAM` of OTP 29.
const PRELOADED: &[&str] = &[
    "erts_code_purger",
    "erl_init",
    "init",
    "prim_buffer",
    "prim_eval",
    "prim_inet",
    "prim_file",
    "zlib",
    "socket_registry",
    "prim_socket",
    "prim_net",
    "prim_zip",
    "erl_prim_loader",
    "erlang",
    "erts_internal",
    "erl_tracer",
    "erts_literal_area_collector",
    "erts_trace_cleaner",
    "erts_dirty_process_signal_handler",
    "atomics",
    "counters",
    "persistent_term",
];

/// Why the machine did not start: one line for the user.
#[derive(Debug)]
pub struct StartError(String);

impl std::fmt::Display for StartError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for StartError {}

/// What the emulator's own flags say.
#[derive(Debug, PartialEq, Eq)]
struct Flags {
    schedulers: usize,
    processes: usize,
    atoms: usize,
    ports: usize,
    /// The range of `+pc`.
    printable: Option<String>,
    /// The level of `+W`.
    warnings: Option<String>,
    time_warp: TimeWarp,
    /// `+D`.
    debugging: bool,
    /// `+Dibpl`, where it is given.
    instrument_lines: Option<bool>,
    /// What `init` reads.
    init: Vec<String>,
}

static INIT: OnceLock<Pid> = OnceLock::new();
static ROOT: OnceLock<PathBuf> = OnceLock::new();

/// The first process.
///
/// # Panics
/// Before the machine has started.
#[must_use]
pub fn init_pid() -> Pid {
    *INIT.get().expect("the machine has started")
}

/// The root of the OTP whose libraries run.
#[must_use]
pub fn root() -> Option<&'static Path> {
    ROOT.get().map(PathBuf::as_path)
}

/// Runs the machine with these emulator arguments until it halts; returns its exit code.
///
/// # Errors
/// When a flag is wrong, or OTP's preloaded modules are not found under `root`.
pub fn start(root: &Path, arguments: &[String]) -> Result<i32, StartError> {
    let mut flags = parse(arguments)?;
    let totals = totals::Request::from_environment().map_err(StartError)?;
    if totals.as_ref().is_some_and(|request| request.deterministic) {
        flags.schedulers = 1;
        sched::clock::set_virtual();
        sys::poll::set_by_scheduler();
        sys::random::set_deterministic();
        heap::number_binaries();
    }
    bif::emulator::set_flags(flags.printable.as_deref(), flags.warnings.as_deref())
        .map_err(|value| StartError(format!("bad value {value} of +pc or +W")))?;
    if flags.debugging {
        debug::enable();
    }
    if let Some(on) = flags.instrument_lines {
        debug::instrument_lines(on);
    }
    atom::set_limit(flags.atoms);
    process::set_process_limit(flags.processes);
    port::set_port_limit(flags.ports);
    ROOT.get_or_init(|| root.to_path_buf());
    sched::set_schedulers(flags.schedulers);
    sched::clock::set_time_warp(flags.time_warp);
    sched::set_engine(interp::run);
    process::set_check_process_code(purge::refers_to_old_code);
    // Before any code: what is loaded from here on is counted from its first call.
    let command: Vec<String> = std::env::args().collect();
    let otp = otp_version(root);
    trace::profile::start_from_environment(command.clone(), otp.clone()).map_err(StartError)?;
    trace::record::start_from_environment(command, otp, flags.schedulers).map_err(StartError)?;
    if let Some(request) = totals {
        trace::totals::start(request, otp_version(root));
    }
    halt::add_hook(trace::totals::write_at_end);
    halt::add_hook(trace::profile::write_at_end);
    halt::add_hook(trace::record::end);
    preload(root)?;
    bif::os::handle_signals();
    bif::system::start_clock();
    first_process(&flags.init);
    sched::start();
    if flags.time_warp == TimeWarp::Multi && !sched::clock::is_virtual() {
        process::time_offset::follow();
    }
    Ok(halt::wait())
}

/// Starts the machine without OTP: no code, no process. For benchmarks and tests that bring both.
pub fn bare() {
    sched::set_engine(interp::run);
    sched::start();
}

/// The version of the OTP under `root`, such as `29.1.1`; empty if it does not say.
fn otp_version(root: &Path) -> String {
    let releases = std::fs::read_dir(root.join("releases"))
        .into_iter()
        .flatten()
        .flatten();
    let number = |name: &std::ffi::OsStr| name.to_str()?.parse::<u32>().ok();
    let newest = releases
        .filter_map(|entry| number(&entry.file_name()))
        .max();
    let version = newest.and_then(|release| {
        let file = root
            .join("releases")
            .join(release.to_string())
            .join("OTP_VERSION");
        std::fs::read_to_string(file).ok()
    });
    version.unwrap_or_default().trim().to_owned()
}

fn parse(arguments: &[String]) -> Result<Flags, StartError> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut flags = Flags {
        schedulers: cores,
        processes: 1_048_576,
        atoms: 1_048_576,
        ports: 65_536,
        printable: None,
        warnings: None,
        time_warp: TimeWarp::Multi,
        debugging: false,
        instrument_lines: None,
        init: Vec::new(),
    };
    let mut rest = arguments.iter();
    while let Some(flag) = rest.next() {
        if flag == "--" {
            flags.init = rest.cloned().collect();
            break;
        }
        if !is_emulator_flag(flag) {
            return Err(StartError(format!(
                "bad emulator argument {flag}: a flag was expected"
            )));
        }
        if flag == "-pc" {
            flags.printable = rest.next().cloned();
            continue;
        }
        let (name, attached) = flag.split_at(2);
        let mut value = || match attached {
            "" => rest
                .next()
                .map(String::as_str)
                .ok_or_else(|| StartError(format!("bad {flag}: a value is missing"))),
            text => Ok(text),
        };
        match name {
            "-S" if !attached.starts_with(['D', 'P']) => {
                flags.schedulers = schedulers(value()?, cores)?
            }
            "-C" => flags.time_warp = time_warp(value()?)?,
            "-P" => flags.processes = number(flag, value()?)?.max(1024),
            "-D" if attached.is_empty() => flags.debugging = true,
            "-D" => flags.instrument_lines = Some(instrumentation(flag, rest.next())?),
            "-Q" => flags.ports = number(flag, value()?)?.max(1024),
            "-W" => flags.warnings = Some(value()?.to_owned()),
            "-t" => flags.atoms = number(flag, value()?)?.max(8192),
            // A name of several letters has its value in the next argument.
            _ if takes_value(flag) => {
                let missing = || StartError(format!("bad {flag}: a value is missing"));
                rest.next().ok_or_else(missing)?;
            }
            _ => {}
        }
    }
    Ok(flags)
}

/// `erlexec` turns `+x` into `-x`, all before the first `--`.
fn is_emulator_flag(flag: &str) -> bool {
    flag.starts_with('-') && flag.len() >= 2
}

/// The value of `+Dibpl`, the one instrumentation there is.
fn instrumentation(flag: &str, value: Option<&String>) -> Result<bool, StartError> {
    let option = &flag[1..];
    match (option, value.map(String::as_str)) {
        ("Dibpl", Some("true")) => Ok(true),
        ("Dibpl", Some("false")) => Ok(false),
        ("Dibpl", value) => Err(StartError(format!(
            "{option} expected `true' or `false' but got: `{}'",
            value.unwrap_or_default()
        ))),
        _ if option.starts_with("Di") => Err(StartError(format!(
            "Unknown instrumentation option {option}"
        ))),
        _ => Err(StartError(format!("Unknown option {option}"))),
    }
}

/// Flags of the emulator that take a value of their own and that change nothing here.
fn takes_value(flag: &str) -> bool {
    const WITH_VALUE: &[&str] = &[
        "-a",
        "-A",
        "-e",
        "-h",
        "-R",
        "-T",
        "-z",
        "-IOt",
        "-IOp",
        "-IOPt",
        "-IOPp",
        "-K",
        "-hms",
        "-hmbs",
        "-hmax",
        "-hpds",
        "-hmqd",
        "-sbt",
        "-sbwt",
        "-sbwtdcpu",
        "-sbwtdio",
        "-scl",
        "-sct",
        "-spp",
        "-sss",
        "-sssdcpu",
        "-sssdio",
        "-sws",
        "-swt",
        "-swtdcpu",
        "-swtdio",
        "-stbt",
        "-sub",
        "-zdbbl",
        "-zdntgc",
        "-SP",
        "-SDcpu",
        "-SDPcpu",
        "-SDio",
        "-dcg",
    ];
    WITH_VALUE.contains(&flag)
}

fn number(flag: &str, text: &str) -> Result<usize, StartError> {
    text.parse().map_err(|_| {
        StartError(format!(
            "bad value {text} of emulator flag {flag}: a number is expected"
        ))
    })
}

fn time_warp(text: &str) -> Result<TimeWarp, StartError> {
    Ok(match text {
        "no_time_warp" => TimeWarp::No,
        "single_time_warp" => TimeWarp::Single,
        "multi_time_warp" => TimeWarp::Multi,
        _ => return Err(StartError(format!("Invalid time warp mode: {text}"))),
    })
}

/// `Schedulers:Online`, either part may be missing.
fn schedulers(text: &str, cores: usize) -> Result<usize, StartError> {
    let first = text.split(':').next().unwrap_or_default();
    if first.is_empty() {
        return Ok(cores);
    }
    match number("+S", first)? {
        n @ 1..=1024 => Ok(n),
        0 => Ok(cores),
        n => Err(StartError(format!(
            "bad number of schedulers {n}: 1 to 1024 are allowed"
        ))),
    }
}

/// Loads the modules that the first process needs, from OTP's own `.beam` files.
fn preload(root: &Path) -> Result<(), StartError> {
    let folder = preloaded_folder(root)?;
    let mut modules = Vec::with_capacity(PRELOADED.len());
    for name in PRELOADED {
        let path = folder.join(name).with_extension("beam");
        let Ok(file) = std::fs::read(&path) else {
            continue;
        };
        let module = load::prepare_preloaded(&file)
            .map_err(|error| StartError(format!("cannot load {}: {error}", path.display())))?;
        bif::code::add_preloaded(module.name);
        modules.push(module);
    }
    let pending: Vec<Atom> = modules
        .iter()
        .filter(|m| m.on_load.is_some())
        .map(|m| m.name)
        .collect();
    module::make_current(modules)
        .map_err(|names| StartError(format!("{} is loaded already", names[0])))?;
    // Preloaded modules are told to load their native parts by `erl_init`, not by the loader.
    for name in pending {
        module::finish_on_load(name, true)
            .map_err(|_| StartError(format!("{name} did not load")))?;
    }
    Ok(())
}

fn preloaded_folder(root: &Path) -> Result<PathBuf, StartError> {
    let lib = root.join("lib");
    let entries = std::fs::read_dir(&lib)
        .map_err(|error| StartError(format!("no OTP libraries in {}: {error}", lib.display())))?;
    let found = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            path.file_name()
                .is_some_and(|n| n.to_string_lossy().starts_with("erts-"))
        })
        .map(|path| path.join("ebin"))
        .find(|path| path.join("erlang.beam").exists());
    found.ok_or_else(|| {
        StartError(format!(
            "OTP in {} has no preloaded modules (lib/erts-*/ebin/erlang.beam); give another with --otp DIR",
            root.display()
        ))
    })
}

/// `erl_init:start(init, Arguments)`, and the system processes that are always there.
fn first_process(arguments: &[String]) {
    let options = SpawnOptions::default();
    let pid = process::spawn_first(
        am::erl_init,
        am::start,
        |heap| init_arguments(heap, arguments),
        &options,
    );
    INIT.get_or_init(|| pid);
    port::open_forker(pid);
    for (name, priority) in [
        ("erts_code_purger", Priority::High),
        ("erts_literal_area_collector", Priority::High),
        ("erts_trace_cleaner", Priority::Normal),
    ] {
        let options = SpawnOptions {
            priority: Some(priority),
            ..SpawnOptions::default()
        };
        let name = Atom::new(name);
        let pid = process::spawn_first(name, am::start, |_| Term::NIL, &options);
        match name {
            am::erts_code_purger => bif::code::set_purger(pid),
            am::erts_literal_area_collector => bif::literal_area::set_collector(pid),
            _ => {}
        }
    }
}

/// `[init, [<<"-root">>, ...]]`
fn init_arguments<'h>(heap: &'h Heap, arguments: &[String]) -> Term<'h> {
    let binaries: Vec<Term<'h>> = arguments
        .iter()
        .map(|text| heap.binary(text.as_bytes()))
        .collect();
    heap.list(&[am::init.term(), heap.list(&binaries)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debugging_is_asked_for_by_its_flags() {
        let flags = |text: &str| {
            let arguments: Vec<String> = text.split(' ').map(str::to_owned).collect();
            parse(&arguments).map_err(|error| error.to_string())
        };
        let of = |text: &str| flags(text).map(|f| (f.debugging, f.instrument_lines));
        assert_eq!(of("-S 1 --"), Ok((false, None)));
        assert_eq!(of("-D -S 1 --"), Ok((true, None)));
        assert_eq!(of("-Dibpl false -D"), Ok((true, Some(false))));
        assert_eq!(of("-Dibpl true"), Ok((false, Some(true))));
        assert!(of("-Dibpl maybe").is_err_and(|text| text.ends_with("but got: `maybe'")));
        assert!(of("-Dix true").is_err_and(|text| text.contains("instrumentation option Dix")));
        assert!(of("-Dx").is_err_and(|text| text == "Unknown option Dx"));
    }
}
