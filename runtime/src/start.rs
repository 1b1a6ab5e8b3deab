//! Starts the machine: reads emulator arguments, loads preloaded modules, starts the first process.
//!
//! The arguments are those that OTP's `erlexec` hands to its emulator: emulator flags (`-S 2`, from `+S 2`), then `--`
//! and what `init` reads.

mod defaults;
mod dirty;
mod jit;
mod tracing_cost;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use beamline_formats::totals;
use beamline_settings::chance::Chance;
use beamline_settings::emulator_flags::{is_optional_value, takes_value};
use beamline_settings::engine::Engine;
use beamline_settings::perf::Perf;
use beamline_settings::variable::Variable as _;

use crate::bif::os::Break;
use crate::heap::{Heap, MagicBinary};
use crate::loader::{debug, load, module};
use crate::process::order::director::{are_references_recorded, may_timing_show};
use crate::process::{self, SpawnOptions};
use crate::sched::clock::TimeWarp;
use crate::sched::parker::BusyWait;
use crate::sched::run_queue::Priority;
use crate::sched::wakeup::Threshold;
use crate::sched::{self, Waking};
use crate::sys::chance::{self, paths, processors};
use crate::sys::halt::{self, AtEnd};
use crate::sys::stderr::complain;
use crate::sys::terminal;
use crate::term::hash::hash_atoms_by_name;
use crate::term::{Atom, Term, am, atom};
use crate::value::file_name::{self, NameEncoding, Untranslatable};
use crate::{bif, ets, hooks, jit as engine, nif, port, scheduler, trace};

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

/// The arguments behind one.
type Rest<'a> = std::slice::Iter<'a, String>;

/// Why the machine did not start: one line for the user.
#[derive(Debug)]
pub struct StartError(String);

impl std::fmt::Display for StartError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for StartError {}

/// The settings of the emulator's own flags.
#[derive(Debug, PartialEq, Eq)]
struct Flags {
    schedulers: usize,
    waking: Waking,
    dirty: dirty::Asked,
    processes: usize,
    atoms: usize,
    ports: usize,
    /// `+e`, or the variable `ERL_MAX_ETS_TABLES`.
    tables: Option<usize>,
    async_threads: usize,
    /// The range of `+pc`.
    printable: Option<String>,
    /// The level of `+W`.
    warnings: Option<String>,
    time_warp: TimeWarp,
    /// `+fn`: how names of files are encoded, and what becomes of others.
    file_names: Option<FileNames>,
    /// `+D`.
    debugging: bool,
    on_interrupt: Break,
    /// `+Dibpl`, where it is given.
    instrument_lines: Option<bool>,
    /// `+J`.
    jit: jit::Flags,
    /// What `init` reads.
    init: Vec<String>,
}

static ROOT: OnceLock<PathBuf> = OnceLock::new();

/// The root of the OTP whose libraries run.
#[must_use]
pub fn root() -> Option<&'static Path> {
    ROOT.get().map(PathBuf::as_path)
}

/// What is done before the machine ends, in this order.
const AT_END: &[AtEnd] = &[
    AtEnd::Write(restore_terminal),
    AtEnd::Flush(nif::library::at_halt),
    AtEnd::Write(process::order::replay::tell_spent),
    AtEnd::Write(process::order::replay::stop::tell_missed),
    AtEnd::Write(trace::totals::write_at_end),
    AtEnd::Write(trace::profile::write_at_end),
    AtEnd::Write(trace::record::end),
    AtEnd::Flush(port::flush),
];

/// Leaves the terminal as it was.
fn restore_terminal() {
    if let Err(error) = terminal::restore() {
        complain!("beamline: the terminal: {error}");
    }
}

/// Runs the machine with these emulator arguments until it halts; returns its exit code.
///
/// # Errors
/// When a flag is wrong, or OTP's preloaded modules are not found under `root`.
pub fn start(root: &Path, arguments: &[String]) -> Result<i32, StartError> {
    hooks::install();
    chance::begin(
        Chance::from_environment()
            .map_err(StartError)?
            .unwrap_or_default(),
    );
    if chance::form().is_virtual() {
        hash_atoms_by_name();
    }
    let arguments: Vec<String> = arguments.iter().map(|one| paths::told_text(one)).collect();
    bif::system_emulator::set_arguments(with_program(&arguments));
    let mut flags = parse(&arguments)?;
    start_engine(flags.jit.perf.clone())?;
    flags.schedulers = processors::schedulers(flags.schedulers);
    bif::emulator::set_flags(flags.printable.as_deref(), flags.warnings.as_deref())
        .map_err(|value| StartError(format!("bad value {value} of +pc or +W")))?;
    if let Some((encoding, untranslatable)) = flags.file_names {
        file_name::set_encoding(encoding, untranslatable);
    }
    if flags.debugging {
        debug::enable();
    }
    if let Some(on) = flags.instrument_lines {
        debug::instrument_lines(on);
    }
    atom::set_limit(flags.atoms);
    process::set_process_limit(flags.processes);
    port::set_port_limit(flags.ports);
    if let Some(limit) = flags.tables.or_else(tables_of_environment) {
        ets::registry::set_limit(limit);
    }
    port::pool::set_threads(flags.async_threads);
    ROOT.get_or_init(|| root.to_path_buf());
    sched::set_schedulers(flags.schedulers);
    sched::set_waking(flags.waking);
    sched::set_dirty_schedulers(flags.dirty.numbers());
    sched::clock::set_time_warp(flags.time_warp);
    process::order::replay::start::read().map_err(StartError)?;
    // Before any code: what is loaded from here on is counted from its first call.
    let command: Vec<String> = std::env::args().map(|one| paths::told_text(&one)).collect();
    let otp = otp_version(root);
    tell_release(root);
    trace::profile::start_from_environment(command.clone(), otp.clone(), tracing_cost::measured)
        .map_err(StartError)?;
    trace::record::start_from_environment(command, otp, flags.schedulers).map_err(StartError)?;
    if let Some(request) = totals::Request::from_environment().map_err(StartError)? {
        trace::totals::start(request, otp_version(root));
    }
    process::order::replay::start::follow();
    trace::replay_stopped::start();
    if !may_timing_show() {
        // Which atoms are made first is chance.
        hash_atoms_by_name();
    }
    if are_references_recorded() {
        // Recorded answers have their numbers: of tables, for one.
        MagicBinary::save_all();
    }
    bif::msacc::start();
    scheduler::explore_from_environment().map_err(StartError)?;
    preload(root)?;
    bif::os::handle_signals(trace::is_measured(), flags.on_interrupt);
    sched::clock::start_now();
    first_process(&scheduler::with_explored(flags.init));
    scheduler::start();
    if flags.time_warp == TimeWarp::Multi {
        process::time_offset::follow();
    }
    Ok(halt::wait(AT_END))
}

/// Starts what runs code, as the environment says, and tells `perf` of it what the environment and the flags ask for.
fn start_engine(mut perf: engine::perf::Asked) -> Result<(), StartError> {
    match Perf::from_environment().map_err(StartError)? {
        Some(Perf::Map) => perf.map = true,
        Some(Perf::Jitdump) => perf.dump = true,
        None => {}
    }
    let asked = Engine::from_environment().map_err(StartError)?;
    match asked.unwrap_or_default() {
        Engine::Jit => engine::start(&perf).map_err(|error| {
            StartError(format!(
                "code cannot be compiled: {error}; --engine interpreter runs it as it is"
            ))
        }),
        Engine::Interpreter => {
            if perf.is_some() {
                complain!(
                    "beamline: code is interpreted, so there is nothing to tell perf of; --engine jit compiles it"
                );
            }
            Ok(())
        }
    }
}

/// Starts the machine without OTP: no code, no process. For benchmarks and tests that bring both.
pub fn bare() {
    hooks::install();
    scheduler::start();
}

/// The newest release under `root`: its number.
fn otp_release(root: &Path) -> Option<u32> {
    let releases = std::fs::read_dir(root.join("releases")).ok()?.flatten();
    let numbers = releases.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.max()
}

/// The version of the OTP under `root`, such as `29.1.1`; empty if it does not say.
fn otp_version(root: &Path) -> String {
    let version = otp_release(root).and_then(|release| {
        let folder = root.join("releases").join(release.to_string());
        std::fs::read_to_string(folder.join("OTP_VERSION")).ok()
    });
    version.unwrap_or_default().trim().to_owned()
}

/// The version of the ERTS that belongs to the OTP under `root`, such as `17.1`.
fn erts_version(root: &Path) -> Option<String> {
    let started = std::fs::read_to_string(root.join("releases/start_erl.data"));
    if let Ok(started) = started {
        return started.split_whitespace().next().map(str::to_owned);
    }
    let folders = std::fs::read_dir(root).ok()?.flatten();
    let mut versions = folders.filter_map(|folder| {
        let name = folder.file_name();
        name.to_str()?.strip_prefix("erts-").map(str::to_owned)
    });
    versions.next()
}

/// Has programs see the release whose libraries they run on.
fn tell_release(root: &Path) {
    if let (Some(release), Some(erts)) = (otp_release(root), erts_version(root)) {
        let otp = release.to_string();
        bif::system::set_release(bif::system::Release { otp, erts });
    }
}

/// The arguments behind the emulator's own name.
fn with_program(arguments: &[String]) -> Vec<String> {
    let program = std::env::args_os().next().unwrap_or_default();
    let program = paths::told_text(&program.to_string_lossy());
    std::iter::once(program)
        .chain(arguments.iter().cloned())
        .collect()
}

impl Flags {
    /// The flags of an emulator without arguments, on `cores` processors.
    fn without_arguments(cores: usize) -> Flags {
        Flags {
            schedulers: cores,
            waking: Waking::default(),
            dirty: dirty::Asked::nothing(cores),
            processes: 1_048_576,
            atoms: 1_048_576,
            ports: 65_536,
            tables: None,
            async_threads: 1,
            printable: None,
            warnings: None,
            time_warp: TimeWarp::Multi,
            file_names: None,
            debugging: false,
            on_interrupt: Break::default(),
            instrument_lines: None,
            jit: jit::Flags::default(),
            init: Vec::new(),
        }
    }
}

fn parse(arguments: &[String]) -> Result<Flags, StartError> {
    let mut flags = Flags::without_arguments(processors::available());
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
        flags.take(flag, &mut rest)?;
    }
    Ok(flags)
}

impl Flags {
    /// Takes a flag, and its value from the `rest` of the arguments if it is not attached.
    fn take(&mut self, flag: &str, rest: &mut Rest) -> Result<(), StartError> {
        let mut text = |attached| match attached {
            "" => rest.next().map_or("", String::as_str),
            attached => attached,
        };
        if let Some(attached) = flag.strip_prefix("-pc") {
            self.printable = Some(text(attached).to_owned());
        } else if let Some(attached) = flag.strip_prefix("-fn") {
            self.file_names = Some(file_names(text(attached))?);
        } else if flag.starts_with("-J") {
            self.jit.take(flag, || rest.next().map(String::as_str))?;
        } else if !defaults::take(flag, || text(""))? {
            self.take_letter(flag, rest)?;
        }
        Ok(())
    }

    /// Takes a flag that its first letter names, or one that changes nothing here.
    fn take_letter(&mut self, flag: &str, rest: &mut Rest) -> Result<(), StartError> {
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
                self.schedulers = schedulers(value()?, processors::available())?
            }
            "-S" if attached.starts_with('D') => {
                let next = || rest.next().map_or("", String::as_str);
                self.dirty.take(flag, next)?;
            }
            "-A" => self.async_threads = number(flag, value()?)?.min(1024),
            "-B" => self.on_interrupt = on_interrupt(flag, rest),
            "-C" => self.time_warp = time_warp(value()?)?,
            "-P" => self.processes = number(flag, value()?)?.max(1024),
            "-D" if attached.is_empty() => self.debugging = true,
            "-D" => self.instrument_lines = Some(instrumentation(flag, rest.next())?),
            "-Q" => self.ports = number(flag, value()?)?.max(1024),
            "-e" => self.tables = Some(number(flag, value()?)?),
            "-W" => self.warnings = Some(value()?.to_owned()),
            // The correction of the time, which is always on.
            "-c" => _ = take_optional(flag, rest),
            "-t" => self.atoms = number(flag, value()?)?.max(8192),
            // A name of several letters has its value in the next argument.
            "-s" if matches!(attached, "wt" | "bwt") => {
                set_waking(&mut self.waking, flag, rest.next())?;
            }
            // Changes nothing here.
            _ if takes_value(&flag[1..]) => {
                let missing = || StartError(format!("bad {flag}: a value is missing"));
                rest.next().ok_or_else(missing)?;
            }
            _ => {}
        }
        Ok(())
    }
}

/// The number of tables in `ERL_MAX_ETS_TABLES`.
fn tables_of_environment() -> Option<usize> {
    std::env::var("ERL_MAX_ETS_TABLES").ok()?.parse().ok()
}

/// The next argument, if it is the value of a flag whose value may be missing.
fn take_optional<'a>(flag: &str, rest: &mut Rest<'a>) -> Option<&'a str> {
    let mut ahead = rest.clone();
    let value = ahead.next()?;
    is_optional_value(&flag[1..], value).then(|| {
        *rest = ahead;
        value.as_str()
    })
}

/// What `+B` asks for. Source: `erl_start()` in `erl_init.c`.
fn on_interrupt(flag: &str, rest: &mut Rest) -> Break {
    let value = match &flag[2..] {
        "" => take_optional(flag, rest),
        attached => Some(attached),
    };
    match value {
        Some(value) if value.starts_with('i') => Break::Ignored,
        Some(value) if value.starts_with('c') => Break::Key,
        _ => Break::Default,
    }
}

/// An encoding, `None` for the locale's, and what becomes of names that are not of it.
type FileNames = (Option<NameEncoding>, Untranslatable);

/// The value of `+fn`. Source: `erl_start()` in `erl_init.c`.
fn file_names(value: &str) -> Result<FileNames, StartError> {
    let mut letters = value.chars();
    let encoding = match letters.next() {
        Some('u') => Some(NameEncoding::Utf8),
        Some('l') => return Ok((Some(NameEncoding::Latin1), Untranslatable::Warn)),
        Some('a') => None,
        _ => {
            return Err(StartError(format!(
                "bad filename encoding {value}, can be (l,u or a, optionally followed by w, i or e)"
            )));
        }
    };
    let untranslatable = match letters.as_str() {
        "" | "w" => Untranslatable::Warn,
        "i" => Untranslatable::Ignore,
        "e" => Untranslatable::Error,
        other => {
            return Err(StartError(format!(
                "bad type of warnings for wrongly coded filename: {other}"
            )));
        }
    };
    Ok((encoding, untranslatable))
}

/// `erlexec` turns `+x` into `-x`, all before the first `--`.
fn is_emulator_flag(flag: &str) -> bool {
    flag.starts_with('-') && flag.len() >= 2
}

/// `+swt` and `+sbwt`.
fn set_waking(waking: &mut Waking, flag: &str, value: Option<&String>) -> Result<(), StartError> {
    let name = value.map_or("", String::as_str);
    if flag == "-swt" {
        waking.threshold = Threshold::named(name)
            .ok_or_else(|| StartError(format!("scheduler wakeup threshold: {name}")))?;
    } else {
        let busy_wait = BusyWait::named(name)
            .ok_or_else(|| StartError(format!("scheduler busy wait threshold: {name}")))?;
        waking.busy_wait = Some(busy_wait);
    }
    Ok(())
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
    // `erl_init`, not the loader, has preloaded modules load their native parts.
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
    process::set_init_pid(pid);
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

    #[test]
    fn schedulers_wake_each_other_as_asked() {
        let of = |text: &str| {
            let arguments: Vec<String> = text.split(' ').map(str::to_owned).collect();
            parse(&arguments)
                .map(|f| f.waking)
                .map_err(|error| error.to_string())
        };
        assert_eq!(of("-S 1"), Ok(Waking::default()));
        let threshold = Threshold::VeryLow;
        let busy_wait = BusyWait::named("none");
        let both = Waking {
            threshold,
            busy_wait,
        };
        assert_eq!(of("-swt very_low -sbwt none -S 1"), Ok(both));
        assert!(of("-swt none").is_err_and(|text| text == "scheduler wakeup threshold: none"));
        assert!(of("-sbwt low").is_err_and(|text| text == "scheduler busy wait threshold: low"));
        assert!(of("-sbwt").is_err());
    }

    #[test]
    fn names_of_files_are_encoded_as_asked() {
        let of = |text: &str| {
            let arguments: Vec<String> = text.split(' ').map(str::to_owned).collect();
            parse(&arguments)
                .map(|f| f.file_names)
                .map_err(|error| error.to_string())
        };
        let utf8 = Some(NameEncoding::Utf8);
        assert_eq!(of("-S 1"), Ok(None));
        assert_eq!(of("-fnu"), Ok(Some((utf8, Untranslatable::Warn))));
        assert_eq!(of("-fn ue"), Ok(Some((utf8, Untranslatable::Error))));
        let latin1 = Some(NameEncoding::Latin1);
        assert_eq!(of("-fnl"), Ok(Some((latin1, Untranslatable::Warn))));
        assert_eq!(of("-fnai -S 1"), Ok(Some((None, Untranslatable::Ignore))));
        for bad in ["-fnx", "-fnuz", "-fn"] {
            assert!(of(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_release_tells_its_number_and_the_version_of_its_erts() {
        let root = tempfile::tempdir().expect("a folder");
        assert_eq!(
            (otp_release(root.path()), erts_version(root.path())),
            (None, None)
        );
        for folder in [
            "releases/27",
            "releases/9",
            "releases/x",
            "erts-15.2",
            "lib",
        ] {
            std::fs::create_dir_all(root.path().join(folder)).expect("a folder");
        }
        assert_eq!(otp_release(root.path()), Some(27));
        assert_eq!(erts_version(root.path()).as_deref(), Some("15.2"));
        let data = root.path().join("releases/start_erl.data");
        std::fs::write(data, "15.2.1 27\n").expect("a file");
        assert_eq!(erts_version(root.path()).as_deref(), Some("15.2.1"));
    }
}
