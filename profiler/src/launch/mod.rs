//! Runs a command so that every emulator it starts is Beamline's.
//!
//! A private folder at the front of PATH holds `erl`, `erlc` and `escript` as links to this executable, which looks at
//! the name it was called by. `erl` translates its command line as OTP's `erlexec` does, then executes itself again as
//! the emulator, with that environment. Scripts of releases that start `erlexec` itself get an OTP in which it is this
//! executable.

mod arguments;
mod detached;
mod ended;
mod erl;
mod erlc;
mod escript;
mod folder;
mod guard;
mod links;
mod outlived;
mod release;
mod source_file;
mod wait;

use std::fs;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::time::Duration;

use beamline_formats::profile::{CommandLock, Libraries, Matched, Profile, Request, Span};
use beamline_formats::ring;
use beamline_formats::totals::{self, Totals};
use beamline_runtime_otp_home::{self as otp_home, Lookup};
use beamline_settings::chance::{self, Chance};
use beamline_settings::engine::Engine;
use beamline_settings::perf::Perf;
use beamline_settings::variable::Variable as _;

use crate::emulator::DETACHED;
use crate::{epmd, report};
pub use ended::Ended;
use folder::Folder;
pub use guard::Guard;
use links::Links;
use wait::wait;

/// The name under which this executable is the emulator.
pub(crate) const EMULATOR: &str = "beam.smp";

/// The variable with the folder of links, which stays at the front of PATH.
const FOLDER: &str = "BEAMLINE_PATH";

/// What the translations read besides their arguments.
trait Environment {
    /// The value of an environment variable.
    fn variable(&self, name: &str) -> Option<String>;
    /// The text of a file.
    fn file(&self, name: &str) -> io::Result<String>;
    /// The first part of a file, as text.
    fn head(&self, name: &str) -> io::Result<String>;
}

/// The environment of this process.
struct Here;

impl Environment for Here {
    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn file(&self, name: &str) -> io::Result<String> {
        fs::read_to_string(name)
    }

    fn head(&self, name: &str) -> io::Result<String> {
        let mut head = Vec::new();
        fs::File::open(name)?
            .take(8 * 1024)
            .read_to_end(&mut head)?;
        Ok(String::from_utf8_lossy(&head).into_owned())
    }
}

/// Why `erl`, `erlc` or `escript` does not start.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Failure {
    /// One line, and the usage after it.
    Usage(String),
    /// One line.
    Error(String),
}

impl Failure {
    fn missing(flag: &str) -> Self {
        Failure::Usage(format!("Missing argument(s) for '{flag}'."))
    }
}

/// The OTP whose libraries are run, as `init` gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Otp {
    root: String,
    bindir: String,
}

impl Otp {
    fn find(option: Option<&Path>) -> Result<Self, String> {
        let lookup = Lookup::of_process(option.map(Path::to_owned));
        let home = otp_home::find(&lookup).map_err(|e| e.to_string())?;
        let root = home.root.to_str();
        let root = root.ok_or_else(|| format!("{}: not UTF-8", home.root.display()))?;
        let started = fs::read_to_string(home.root.join("releases/start_erl.data"));
        let version = started.ok().and_then(|text| {
            let last = text.lines().last()?;
            Some(last.split_whitespace().next()?.to_owned())
        });
        // Where the release does not say, the folder's own name does.
        let erts = match version {
            Some(version) => format!("erts-{version}"),
            None => fs::read_dir(&home.root)
                .map_err(|e| format!("{root}: {e}"))?
                .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
                .find(|name| name.starts_with("erts-"))
                .ok_or_else(|| format!("{root}: it has no folder erts-VERSION"))?,
        };
        Ok(Self {
            root: root.to_owned(),
            bindir: format!("{root}/{erts}/bin"),
        })
    }
}

impl Otp {
    /// This installation, reached by a link.
    fn linked_as(&self, link: &Path) -> Result<Self, String> {
        let root = link
            .to_str()
            .ok_or("the temporary folder's name is not UTF-8")?;
        let bindir = match self.bindir.strip_prefix(&self.root) {
            Some(rest) => format!("{root}{rest}"),
            None => self.bindir.clone(),
        };
        Ok(Self {
            root: root.to_owned(),
            bindir,
        })
    }
}

/// Is one of OTP's programs: translates its command line and becomes the emulator.
pub(crate) fn as_program(name: &str, arguments: &[String]) -> ExitCode {
    let (program, own) = match arguments.split_first() {
        Some((program, own)) => (program.as_str(), own),
        None => (name, arguments),
    };
    match become_emulator(name, program, own) {
        Ok(code) => code,
        Err(Failure::Error(line)) => {
            report::error(&format!("{name}: {line}"));
            ExitCode::from(1)
        }
        Err(Failure::Usage(line)) => {
            report::error(&format!("{name}: {line}"));
            report::error("usage: erl [+FLAG [VALUE]]... [-FLAG [VALUE]...]... [-extra ARG...]");
            ExitCode::from(1)
        }
    }
}

fn become_emulator(name: &str, program: &str, own: &[String]) -> Result<ExitCode, Failure> {
    let otp = Otp::find(None).map_err(Failure::Error)?;
    let own = through_links(own);
    let own = own.as_slice();
    let mut variables: Vec<(String, String)> = Vec::new();
    let mut set = |name: &str, value: &str| variables.push((name.to_owned(), value.to_owned()));
    let command_line = match name {
        "erlc" => {
            set("ESCRIPT_NAME", program);
            erlc::translate(own)?
        }
        "escript" => {
            let script = escript::translate(own, &Here)?;
            set("ESCRIPT_NAME", &script.name);
            script.arguments
        }
        _ => own.to_vec(),
    };
    set("ROOTDIR", &otp.root);
    set("BINDIR", &otp.bindir);
    set("EMU", "beam");
    set("PROGNAME", "erl");
    if let Some(path) = path_with(&otp, &Here) {
        set("PATH", &path);
    }
    match erl::translate(&command_line, &otp, &Here)? {
        erl::Action::Print(text) => report::print(&text)
            .map(|()| ExitCode::SUCCESS)
            .map_err(Failure::Error),
        erl::Action::Start {
            arguments,
            variables: more,
            names,
            is_detached,
        } => {
            if let Some(names) = names {
                start_names(&names, &otp);
            }
            let this = this().map_err(Failure::Error)?;
            let mut emulator = Command::new(&this);
            emulator
                .arg0(format!("{}/{EMULATOR}", otp.bindir))
                .args(arguments)
                .envs(variables)
                .envs(more);
            let failed = |error: io::Error| Failure::Error(format!("{}: {error}", this.display()));
            if is_detached {
                detached::start(&mut emulator).map_err(failed)?;
                return Ok(ExitCode::SUCCESS);
            }
            emulator.env_remove(DETACHED);
            // Only a failed exec returns.
            Err(failed(emulator.exec()))
        }
    }
}

/// Has the daemon run by which nodes find each other. Where it does not, the node says so itself when it registers.
fn start_names(names: &erl::Names, otp: &Otp) {
    match names {
        erl::Names::Usual => {
            if let Err(line) = epmd::ensure(Path::new(&otp.bindir)) {
                report::error(&format!("epmd: {line}"));
            }
        }
        erl::Names::Command(command) => {
            let _ = Command::new("/bin/sh").args(["-c", command]).status();
        }
    }
}

/// The arguments, with paths by the links of a deterministic run.
fn through_links(arguments: &[String]) -> Vec<String> {
    let bin = std::env::var_os(FOLDER).map(PathBuf::from);
    let folder = bin.as_deref().and_then(Path::parent);
    let places = folder.map(links::places).unwrap_or_default();
    let arguments = arguments.iter().cloned();
    arguments.map(|one| links::through(&places, one)).collect()
}

/// PATH with OTP's folders in it, behind the folder of links, so that `erl` stays ours.
fn path_with(otp: &Otp, environment: &dyn Environment) -> Option<String> {
    let path = environment.variable("PATH").unwrap_or_default();
    let links = environment.variable(FOLDER);
    let mut folders: Vec<&str> = Vec::new();
    folders.extend(links.as_deref());
    folders.push(&otp.bindir);
    let bin = format!("{}/bin", otp.root);
    if !path.contains(&otp.root) {
        folders.push(&bin);
    }
    let own = folders.len();
    for folder in path.split(':') {
        if !folders[..own].contains(&folder) {
            folders.push(folder);
        }
    }
    Some(folders.join(":"))
}

/// What the emulators of a command do besides running it.
#[derive(Clone, Debug)]
pub enum What {
    /// Nothing.
    Run,
    /// They count calls, time or words. [`run`] chooses the folder of the profiles.
    Profile(Box<Request>),
    /// They record events.
    Record(Box<ring::Request>),
}

impl What {
    /// Whether signals begin and end what they do.
    fn is_by_signal(&self) -> bool {
        match self {
            What::Run => false,
            What::Profile(request) => request.span.by_signal,
            What::Record(request) => request.span.by_signal,
        }
    }

    /// Whether they record the order of the run.
    fn has_order(&self) -> bool {
        matches!(self, What::Record(request) if request.events.contains(&ring::Group::Order))
    }
}

/// A command to run, the OTP to run it on, and what to record.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The OTP named by option.
    pub otp: Option<PathBuf>,
    /// What its emulators do besides.
    pub what: What,
    /// The command and its arguments.
    pub command: Vec<String>,
    /// How it runs.
    pub mode: Mode,
}

/// How a command runs.
#[derive(Clone, Debug, Default)]
pub struct Mode {
    /// It runs with one scheduler, in virtual time, without chance: two runs do the same.
    pub deterministic: bool,
    /// Its programs see folders by the links of a deterministic run: it prepares one.
    pub linked: bool,
    /// What its emulators run code with, where that was chosen.
    pub engine: Option<Engine>,
    /// What they tell perf, where that was chosen.
    pub perf: Option<Perf>,
    /// The run that its first emulator follows.
    pub replay: Option<beamline_orders::Request>,
    /// Its emulators write their totals.
    pub totals: bool,
    /// It reads nothing from standard input, and its standard output goes nowhere.
    pub quiet: bool,
    /// Where it runs; here, if nowhere else.
    pub folder: Option<PathBuf>,
    /// More variables of its environment.
    pub variables: Vec<(String, String)>,
    /// Ends all that it has started with it; without one, the command is sent the signals that ask for the end.
    pub guard: Option<Guard>,
    /// How long it may run, where there is a guard.
    pub timeout: Option<Duration>,
}

/// Mix's own switch for systems that cannot lock a build as it does, over a socket. Runs that are to be the same each time
/// have none: the number of its port differs, and is in a file.
const MIX_LOCK: &str = "MIX_OS_CONCURRENCY_LOCK";

/// What has Mix not lock a build, in a run that is to be the same each time, unless the user says what is to be.
fn without_mix_lock(launch: &Launch, chance: &Chance) -> Option<(&'static str, String)> {
    let has_order = launch.what.has_order() || launch.mode.replay.is_some();
    let is_repeated = has_order || *chance != Chance::Live;
    let is_free = std::env::var_os(MIX_LOCK).is_none();
    (is_repeated && is_free).then(|| (MIX_LOCK, "0".to_owned()))
}

/// The surroundings that all commands of a launch run in.
struct Place {
    folder: Folder,
    otp: Otp,
    /// With the links to this executable.
    bin: PathBuf,
    /// The value of PATH.
    path: String,
    /// Of a deterministic run, and of what prepares one.
    links: Option<Links>,
    mode: Mode,
}

impl Place {
    fn new(launch: &Launch) -> Result<Self, String> {
        let mut otp = Otp::find(launch.otp.as_deref())?;
        let is_linked = launch.mode.deterministic || launch.mode.linked;
        let folder = Folder::new(is_linked);
        let folder = folder.map_err(|e| format!("a temporary folder: {e}"))?;
        let bin = make(&folder, "bin")?;
        link(&bin)?;
        let path = search_path(&bin, &otp)?;
        let here = launch.mode.folder.as_deref().unwrap_or(Path::new("."));
        let program = launch.command.first().map(|one| on_path(one, &path));
        let program = program.map(|one| here.join(one)).unwrap_or_default();
        if let Some(erts) = release::own_emulator(&program) {
            return Err(format!(
                "{} starts {}, not Beamline: call `erl` without a folder, or build the release without an emulator \
                 (include_erts: false)",
                program.display(),
                erts.display()
            ));
        }
        let links = match is_linked {
            true => Some(Links::make(folder.path(), &on_path("elixir", &path), here)?),
            false => None,
        };
        let linked = folder.path().join(links::OTP);
        if release::starts_erlexec(&program) {
            release::mirror(&otp, &linked, &this()?)?;
            otp = otp.linked_as(&linked)?;
        } else if is_linked {
            symlink(Path::new(&otp.root), &linked)?;
            otp = otp.linked_as(&linked)?;
        }
        Ok(Self {
            folder,
            otp,
            bin,
            path,
            links,
            mode: launch.mode.clone(),
        })
    }

    /// What has the first emulator follow a recorded run, if it is to.
    fn follow(
        &self,
        replay: Option<&beamline_orders::Request>,
    ) -> Result<Option<(&'static str, String)>, String> {
        let Some(replay) = replay else {
            return Ok(None);
        };
        let stop = replay.stop.clone().map(|stop| beamline_orders::Halt {
            libraries: self.libraries(),
            ..stop
        });
        let request = beamline_orders::Request {
            claim: self.folder.path().join("replay"),
            stop,
            ..replay.clone()
        };
        Ok(Some((
            beamline_orders::Request::VARIABLE,
            request.to_variable()?,
        )))
    }

    /// Where emulators of a run that began at this time take chance from.
    fn chance(&self, begun_ns: u64) -> Chance {
        let folder = self.folder.path().to_owned();
        let links = links::present(&folder);
        match (self.mode.deterministic, self.mode.linked) {
            (true, _) => Chance::Virtual {
                begun_ns,
                links,
                folder,
            },
            (false, true) => Chance::Linked { folder, links },
            (false, false) => Chance::Live,
        }
    }

    /// What its emulators are asked for, with what only this place knows: where their files go, and where libraries
    /// are.
    fn request(
        &self,
        what: &What,
        folder: &Path,
    ) -> Result<Option<(&'static str, String)>, String> {
        Ok(match what {
            What::Run => None,
            What::Record(request) => {
                let request = ring::Request {
                    folder: folder.to_owned(),
                    libraries: self.libraries(),
                    ..(**request).clone()
                };
                Some((ring::Request::VARIABLE, request.to_variable()?))
            }
            What::Profile(request) => {
                let request = Request {
                    folder: folder.to_owned(),
                    libraries: self.libraries(),
                    ..(**request).clone()
                };
                Some((Request::VARIABLE, request.to_variable()?))
            }
        })
    }

    /// Where modules are that are not the program's own. An emulator adds the Elixir that starts it.
    fn libraries(&self) -> Libraries {
        let elixir = on_path("elixir", &self.path).canonicalize().ok();
        let elixir = elixir
            .as_deref()
            .and_then(|elixir| elixir.ancestors().nth(2));
        let variable = |name| std::env::var_os(name).map(PathBuf::from);
        let home = variable("HOME").map(|home| home.join(".mix"));
        let mix = variable("MIX_HOME").or(home);
        let archives = variable("MIX_ARCHIVES").or_else(|| Some(mix?.join("archives")));
        let archives: Vec<PathBuf> = archives.into_iter().collect();
        Libraries::find(Path::new(&self.otp.root), elixir, &archives)
    }

    /// Names what was taken from outside as the user knows it, not by the links of this run.
    fn renamed(&self, mut all: Vec<Totals>) -> Vec<Totals> {
        for taken in all.iter_mut().flat_map(|totals| &mut totals.outside) {
            if let Some(links) = &self.links {
                *taken = links.known(taken);
            }
        }
        all
    }

    /// Runs a command to its end, with more variables in its environment. The file `switch` gets a
    /// byte for each SIGUSR2.
    fn run(
        &self,
        command: &[String],
        variables: &[(&str, String)],
        switch: Option<PathBuf>,
    ) -> Result<ExitStatus, String> {
        let (program, arguments) = command.split_first().ok_or("no command is given")?;
        let mut started = Command::new(on_path(program, &self.path));
        started
            .args(arguments)
            .env("PATH", &self.path)
            .env(FOLDER, &self.bin)
            .env(otp_home::ENV, &self.otp.root)
            .env_remove(Request::VARIABLE)
            .env_remove(ring::Request::VARIABLE)
            .env_remove(totals::Request::VARIABLE)
            .env_remove(beamline_orders::Request::VARIABLE)
            .env_remove(Chance::VARIABLE);
        if let Some(links) = &self.links {
            started.env("TZ", "UTC").env("LC_ALL", "C.UTF-8");
            started.envs(links.variables());
        }
        if self.mode.quiet {
            started.stdin(Stdio::null()).stdout(Stdio::null());
        }
        if let Some(folder) = &self.mode.folder {
            started.current_dir(folder);
        }
        if let Some(engine) = self.mode.engine {
            started.env(Engine::VARIABLE, engine.to_variable()?);
        }
        if let Some(perf) = self.mode.perf {
            started.env(Perf::VARIABLE, perf.to_variable()?);
        }
        let own = self.mode.variables.iter();
        started.envs(own.map(|(name, value)| (name, value)));
        started.envs(variables.iter().map(|(name, value)| (name, value)));
        let measures = [Request::VARIABLE, ring::Request::VARIABLE];
        let is_measured = variables.iter().any(|(name, _)| measures.contains(name));
        self.wait(&mut started, is_measured, switch)
            .map_err(|e| match e.kind() {
                io::ErrorKind::NotFound => format!(
                    "{program}: no such command on PATH, and no such file; the command follows --"
                ),
                _ => format!("{program}: {e}"),
            })
    }

    fn wait(
        &self,
        started: &mut Command,
        is_measured: bool,
        switch: Option<PathBuf>,
    ) -> io::Result<ExitStatus> {
        let Some(guard) = &self.mode.guard else {
            return wait(started, is_measured, switch);
        };
        match guard.run(started, self.mode.timeout)? {
            guard::End::Own(status) => Ok(status),
            guard::End::Late => Err(io::Error::other(format!(
                "it was ended, because it ran longer than its timeout of {:?}",
                self.mode.timeout.unwrap_or_default()
            ))),
            guard::End::Signal(signal) => Err(io::Error::other(format!(
                "it was ended, because signal {signal} asked for the end"
            ))),
        }
    }
}

/// The variables by which a shell runs OTP's programs on Beamline: links to this executable are in `folder`, which is made.
///
/// # Errors
/// One line: there is no OTP, or the folder cannot be written.
pub(crate) fn of_shell(
    otp: Option<&Path>,
    folder: &Path,
) -> Result<Vec<(&'static str, String)>, String> {
    let otp = Otp::find(otp)?;
    fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    link(folder)?;
    let links = folder.to_str();
    let links = links.ok_or_else(|| format!("{}: not UTF-8", folder.display()))?;
    Ok(vec![
        ("PATH", search_path(folder, &otp)?),
        (FOLDER, links.to_owned()),
        (otp_home::ENV, otp.root),
    ])
}

fn make(folder: &Folder, name: &str) -> Result<PathBuf, String> {
    let path = folder.path().join(name);
    fs::create_dir(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(path)
}

/// Runs a command to its end and reads what was recorded.
///
/// # Errors
/// One line: there is no OTP, the command does not start or compile, or a profile is damaged.
pub fn run(launch: &Launch) -> Result<Ended, String> {
    let begun_ns = chance::system_ns();
    let place = Place::new(launch)?;
    let here = launch.mode.folder.as_deref();
    let ebin = make(&place.folder, "ebin")?;
    let command = match source_file::plan(&launch.command, here, &ebin, &place.path)? {
        source_file::Plan::Command(command) => command,
        source_file::Plan::Compile { compile, run } => {
            let begun = chance::now();
            let status = place.run(&compile, &[], None)?;
            if !status.success() {
                return Ok(Ended {
                    status,
                    profile: None,
                    totals: Vec::new(),
                    outlived: Vec::new(),
                    patterns: Vec::new(),
                    time: begun.elapsed(),
                });
            }
            run
        }
    };
    source_file::check_main(&launch.command, here, &ebin)?;
    let mut variables = Vec::new();
    let folder = make(&place.folder, "profiles")?;
    variables.extend(place.request(&launch.what, &folder)?);
    let totals = launch.mode.totals.then(|| make(&place.folder, "totals"));
    let totals = totals.transpose()?;
    if let Some(folder) = totals.clone() {
        let request = totals::Request { folder };
        variables.push((totals::Request::VARIABLE, request.to_variable()?));
    }
    variables.extend(place.follow(launch.mode.replay.as_ref())?);
    let chance = place.chance(begun_ns);
    if chance != Chance::Live {
        variables.push((Chance::VARIABLE, chance.to_variable()?));
    }
    variables.extend(without_mix_lock(launch, &chance));
    let lock = CommandLock::take(&folder);
    let lock = lock.map_err(|e| format!("{}: {e}", folder.display()))?;
    let begun = chance::now();
    let switch = launch.what.is_by_signal().then(|| Span::switch(&folder));
    let status = place.run(&command, &variables, switch)?;
    let time = begun.elapsed();
    let outlived = outlived::end(lock, &folder)?;
    let read = |folder: PathBuf| -> Result<Option<Profile>, String> {
        let files = Request::files(&folder)?;
        let profiles = files.iter().map(|file| Profile::read(file));
        let profiles = profiles.collect::<Result<Vec<_>, _>>()?;
        let is_any = !profiles.is_empty();
        is_any.then(|| Profile::merge(profiles)).transpose()
    };
    let patterns = Matched::read_all(&folder)?;
    let profile = read(folder)?;
    Ok(Ended {
        status,
        outlived: outlived::lines(&outlived, &launch.what, profile.as_ref()),
        patterns,
        profile,
        totals: match totals {
            Some(folder) => place.renamed(Totals::read_all(&folder)?),
            None => Vec::new(),
        },
        time,
    })
}

/// This executable.
fn this() -> Result<PathBuf, String> {
    std::env::current_exe().map_err(|e| format!("this executable: {e}"))
}

/// Puts a link to this executable into a folder for each of OTP's programs, in the place of older ones.
fn link(folder: &Path) -> Result<(), String> {
    let this = this()?;
    for name in ["erl", "erlc", "escript", "werl"] {
        let path = folder.join(name);
        if fs::read_link(&path).is_ok_and(|to| to == this) {
            continue;
        }
        // A shell may look for the old one at this moment.
        let new = folder.join(format!("{name}.{}", chance::os_pid()));
        symlink(&this, &new)?;
        fs::rename(&new, &path).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    Ok(())
}

fn symlink(to: &Path, link: &Path) -> Result<(), String> {
    std::os::unix::fs::symlink(to, link).map_err(|e| format!("{}: {e}", link.display()))
}

/// PATH for the command: our links first, and last the Elixir that came with the OTP.
fn search_path(links: &Path, otp: &Otp) -> Result<String, String> {
    let mut folders = vec![links.to_owned()];
    let path = std::env::var_os("PATH").unwrap_or_default();
    folders.extend(std::env::split_paths(&path).filter(|folder| folder != links));
    let elixir = Path::new(&otp.root).join("../elixir/bin");
    if let Ok(elixir) = elixir.canonicalize()
        && !folders.contains(&elixir)
    {
        folders.push(elixir);
    }
    let path = std::env::join_paths(folders).map_err(|e| format!("PATH: {e}"))?;
    path.into_string()
        .map_err(|_| "PATH is not UTF-8".to_owned())
}

/// The program as the new PATH finds it; a name with a slash is a path already.
fn on_path(program: &str, path: &str) -> PathBuf {
    if program.contains('/') {
        return PathBuf::from(program);
    }
    std::env::split_paths(path)
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
        .unwrap_or_else(|| PathBuf::from(program))
}

#[cfg(test)]
mod tests;
