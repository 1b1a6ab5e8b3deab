//! Finds emulators among the processes of the machine, and tells what they are. All of it is read from `/proc`.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::memory::{Mapping, mappings};

/// Why an emulator cannot be looked at.
#[derive(Debug)]
pub enum Refusal {
    /// There is no such process.
    Gone(u32),
    /// It is no emulator; its program.
    NoEmulator(u32, PathBuf),
    /// It interprets instructions, so there is no machine code.
    Interpreter(u32),
    /// It has no list of machine code.
    NoList(u32),
    /// It is our own machine, and publishes no machine code.
    Unpublished(u32),
    /// It is our own machine, of another version of Beamline.
    Version(u32),
    /// This user may not.
    NotAllowed(u32, &'static str),
    /// Something failed.
    Io(u32, &'static str, io::Error),
    /// The list of machine code cannot be read.
    Damaged(u32, crate::code::Damage),
    /// It is of another architecture.
    Architecture(u32),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Gone(pid) => write!(f, "there is no process {pid}"),
            Refusal::NoEmulator(pid, program) => {
                write!(
                    f,
                    "process {pid} is no emulator of OTP: its program is {}",
                    program.display()
                )
            }
            Refusal::Interpreter(pid) => write!(
                f,
                "the emulator {pid} interprets instructions (flavour emu), and only the machine code of flavour jit can be sampled"
            ),
            Refusal::NoList(pid) => write!(
                f,
                "the emulator {pid} has no list of machine code: it is of flavour emu, or older than OTP 25"
            ),
            Refusal::Unpublished(pid) => write!(
                f,
                "Beamline's runtime {pid} has no machine code: it has just begun, or runs with --engine interpreter, which cannot be sampled"
            ),
            Refusal::Version(pid) => write!(
                f,
                "Beamline's runtime {pid} is of another version than this beamline"
            ),
            Refusal::NotAllowed(pid, what) => {
                write!(f, "this user may not {what} of the emulator {pid}")
            }
            Refusal::Io(pid, what, error) => write!(f, "{what} of the emulator {pid}: {error}"),
            Refusal::Damaged(pid, damage) => write!(f, "the emulator {pid}: {damage}"),
            Refusal::Architecture(pid) => {
                write!(f, "the emulator {pid} is no program of x86-64")
            }
        }
    }
}

impl Refusal {
    /// The refusal that an error of the system is.
    #[must_use]
    pub fn of(pid: u32, what: &'static str, error: io::Error) -> Refusal {
        match error.kind() {
            // A filter of system calls may say that there is none of the kind.
            io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported => {
                Refusal::NotAllowed(pid, what)
            }
            io::ErrorKind::NotFound => Refusal::Gone(pid),
            _ if error.raw_os_error() == Some(libc::ESRCH) => Refusal::Gone(pid),
            _ => Refusal::Io(pid, what, error),
        }
    }
}

/// Whose emulator one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// OTP's.
    Otp,
    /// Beamline's own runtime.
    Beamline,
}

/// An emulator that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Emulator {
    /// Its number as a process of the operating system.
    pub pid: u32,
    /// Whose it is.
    pub kind: Kind,
    /// Its program.
    pub program: PathBuf,
    /// Its command line, program first.
    pub command: Vec<String>,
    /// The name of its node, without a host; or of its release.
    pub name: Option<String>,
}

/// The program's file is of an emulator: `beam.smp`, `beam.debug.smp`, `beam.emu.smp`.
fn is_emulator(program: &Path) -> bool {
    let name = program.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name == "beam" || name.starts_with("beam."))
}

impl Emulator {
    /// The emulator with this number.
    ///
    /// # Errors
    /// When there is no such process, when it is no emulator, or one that cannot be sampled.
    pub fn of(pid: u32) -> Result<Emulator, Refusal> {
        let folder = PathBuf::from(format!("/proc/{pid}"));
        if !folder.is_dir() {
            return Err(Refusal::Gone(pid));
        }
        let program = fs::read_link(folder.join("exe"));
        let program = program.map_err(|e| Refusal::of(pid, "see the program", e))?;
        let program = undeleted(&program);
        let command = fs::read(folder.join("cmdline"));
        let command = texts(&command.map_err(|e| Refusal::of(pid, "read the command", e))?);
        let kind = match (is_emulator(&program), command.first()) {
            (true, _) => Kind::Otp,
            // It is started under the name of OTP's.
            (false, Some(name)) if is_emulator(Path::new(name)) => Kind::Beamline,
            (false, _) => return Err(Refusal::NoEmulator(pid, program)),
        };
        let emulator = Emulator {
            pid,
            kind,
            name: name(pid, &command),
            program,
            command,
        };
        match emulator.is_interpreter() {
            true => Err(Refusal::Interpreter(pid)),
            false => Ok(emulator),
        }
    }

    fn is_interpreter(&self) -> bool {
        let name = self.program.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.contains(".emu."))
    }

    /// All emulators that this user can see, in the order of their numbers.
    #[must_use]
    pub fn all() -> Vec<Emulator> {
        let Ok(entries) = fs::read_dir("/proc") else {
            return Vec::new();
        };
        let names = entries.flatten().filter_map(|entry| {
            let name = entry.file_name();
            name.to_str()?.parse().ok()
        });
        let mut pids: Vec<u32> = names.collect();
        pids.sort_unstable();
        let emulators = pids.into_iter();
        emulators.filter_map(|pid| Emulator::of(pid).ok()).collect()
    }

    /// Is this its name: that of its node, with or without a host, or of its release?
    #[must_use]
    pub fn is_named(&self, name: &str) -> bool {
        let short = name.split('@').next().unwrap_or(name);
        self.name.as_deref() == Some(short)
    }

    /// The TCP ports that it listens on. None where the system does not let this user see that.
    #[must_use]
    pub fn listening_ports(&self) -> Vec<u16> {
        let folder = PathBuf::from(format!("/proc/{}", self.pid));
        let Ok(descriptors) = fs::read_dir(folder.join("fd")) else {
            return Vec::new();
        };
        let links = descriptors.flatten().filter_map(|one| {
            let link = fs::read_link(one.path()).ok()?;
            let inode = link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?;
            inode.parse().ok()
        });
        let sockets: Vec<u64> = links.collect();
        let tables = ["net/tcp", "net/tcp6"].map(|table| {
            let table = fs::read_to_string(folder.join(table)).unwrap_or_default();
            listening(&table)
        });
        let of_all = tables.into_iter().flatten();
        let own = of_all.filter(|(_, inode)| sockets.contains(inode));
        own.map(|(port, _)| port).collect()
    }

    /// The value of an option of its command line, such as `-root`.
    #[must_use]
    pub fn option(&self, option: &str) -> Option<&str> {
        option_of(&self.command, option)
    }

    /// A path of the emulator as we see it: it may have another root.
    #[must_use]
    pub fn path(&self, path: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root/{path}", self.pid))
    }

    /// The OTP release, such as `29.1.1`; or else the version of the emulator, such as `erts 17.1`; empty if neither is known.
    #[must_use]
    pub fn version(&self) -> String {
        let root = self.option("-root").unwrap_or_default();
        let releases = self.path(&format!("{root}/releases"));
        let entries = fs::read_dir(releases).into_iter().flatten().flatten();
        let files = entries.map(|entry| entry.path().join("OTP_VERSION"));
        let mut versions: Vec<String> = files
            .filter_map(|file| fs::read_to_string(file).ok())
            .map(|text| text.trim().to_owned())
            .collect();
        if let (Some(version), true) = (versions.pop(), versions.is_empty()) {
            return version;
        }
        let parts = self.program.iter().filter_map(|part| part.to_str());
        let erts = parts
            .filter_map(|part| part.strip_prefix("erts-"))
            .next_back();
        erts.map_or_else(String::new, |version| format!("erts {version}"))
    }

    /// Bits of a place in its table of processes: those that `+P` asks for, or the default of its version.
    #[must_use]
    pub fn table_bits(&self) -> u32 {
        let own = self.command.iter().skip(1);
        let own: Vec<&str> = own
            .take_while(|argument| *argument != "--")
            .map(String::as_str)
            .collect();
        let mut set = own.iter().enumerate().filter_map(|(at, argument)| {
            let behind = argument.strip_prefix("-P")?;
            let text = match behind {
                "" => own.get(at + 1)?,
                text => text,
            };
            // `legacy` is no number, and leaves the default.
            text.parse::<u32>().ok()
        });
        match set.next_back() {
            Some(places) => places.max(2).next_power_of_two().ilog2(),
            None => default_table_bits(&self.version()),
        }
    }

    /// The writable data of its program, in which the list of machine code is.
    ///
    /// # Errors
    /// When this user may not see what is mapped.
    pub fn data(&self) -> Result<Vec<Mapping>, Refusal> {
        let maps = mappings(self.pid);
        let maps = maps.map_err(|e| Refusal::of(self.pid, "see the memory", e))?;
        Ok(data_of(&maps, &self.program))
    }

    /// Its threads, in the order of their numbers.
    ///
    /// # Errors
    /// When it has ended.
    pub fn threads(&self) -> Result<Vec<Thread>, Refusal> {
        let folder = format!("/proc/{}/task", self.pid);
        let entries = fs::read_dir(&folder).map_err(|_| Refusal::Gone(self.pid))?;
        let mut threads: Vec<Thread> = entries
            .flatten()
            .filter_map(|entry| {
                let tid = entry.file_name().to_str()?.parse().ok()?;
                let name = fs::read_to_string(entry.path().join("comm")).ok()?;
                Some(Thread::of(tid, name.trim_end()))
            })
            .collect();
        threads.sort_unstable_by_key(|thread| thread.tid);
        Ok(threads)
    }
}

/// The mappings of a program's writable data: those of its file, and what follows them without a file.
fn data_of(maps: &[Mapping], program: &Path) -> Vec<Mapping> {
    let mut data: Vec<Mapping> = Vec::new();
    let mut end_of_program = 0;
    for mapping in maps {
        let is_of_file = undeleted(Path::new(&mapping.path)) == program;
        let goes_on = mapping.path.is_empty() && mapping.start == end_of_program;
        if is_of_file || goes_on {
            end_of_program = mapping.end;
            if mapping.is_writable {
                data.push(mapping.clone());
            }
        }
    }
    data
}

/// A path without what the kernel adds when the file was replaced.
fn undeleted(path: &Path) -> PathBuf {
    let text = path.to_string_lossy();
    PathBuf::from(text.strip_suffix(" (deleted)").unwrap_or(&text))
}

/// Texts with a zero byte behind each.
fn texts(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    let texts = text.strip_suffix('\0').unwrap_or(&text).split('\0');
    texts.map(str::to_owned).collect()
}

/// The default of a version such as `29.1.1` or `erts 17.1`: OTP 27, of which that is ERTS 15.0, has raised it. Of an emulator
/// whose version is not known it is taken as that of later ones.
fn default_table_bits(version: &str) -> u32 {
    let (number, raised) = match version.strip_prefix("erts ") {
        Some(number) => (number, 15),
        None => (version, 27),
    };
    let major = number.split('.').next();
    match major.and_then(|major| major.parse::<u32>().ok()) {
        Some(major) if major < raised => 18,
        _ => 20,
    }
}

fn option_of<'c>(command: &'c [String], option: &str) -> Option<&'c str> {
    let at = command.iter().position(|argument| argument == option)?;
    command.get(at + 1).map(String::as_str)
}

/// The sockets that listen in a table of the kernel's, `/proc/net/tcp`: their ports and inodes.
fn listening(table: &str) -> Vec<(u16, u64)> {
    const LISTEN: &str = "0A";
    let row = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, local, _, LISTEN, _, _, _, _, _, inode, ..] = words[..] else {
            return None;
        };
        let (_, port) = local.rsplit_once(':')?;
        Some((u16::from_str_radix(port, 16).ok()?, inode.parse().ok()?))
    };
    table.lines().filter_map(row).collect()
}

/// The name of a node, or else of a release.
fn name(pid: u32, command: &[String]) -> Option<String> {
    let node = ["-sname", "-name"].iter();
    let mut node = node.filter_map(|option| option_of(command, option));
    if let Some(node) = node.next() {
        return node.split('@').next().map(str::to_owned);
    }
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let environment = texts(&environment).into_iter();
    environment
        .filter_map(|text| Some(text.strip_prefix("RELEASE_NAME=")?.to_owned()))
        .next()
}

/// The kind of an emulator's thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ThreadKind {
    /// An ordinary scheduler.
    Scheduler,
    /// A dirty CPU scheduler.
    DirtyCpu,
    /// A dirty I/O scheduler.
    DirtyIo,
    /// Any other.
    Other,
}

/// A thread of an emulator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Its number in the operating system.
    pub tid: u32,
    /// Its kind.
    pub kind: ThreadKind,
    /// Its number among those of its kind; 0 of others.
    pub number: u32,
    /// Its name.
    pub name: String,
}

impl Thread {
    /// The emulator names its threads: `erts_sched_1`, or up to OTP 25 `1_scheduler`, of which the kernel keeps 15 characters;
    /// our own runtime `1_scheduler`, `1_deputy`, which is that scheduler while the other is not, and `dirty_cpu_1`.
    fn of(tid: u32, name: &str) -> Thread {
        let first = [
            ("erts_sched_", ThreadKind::Scheduler),
            ("erts_dcpus_", ThreadKind::DirtyCpu),
            ("erts_dios_", ThreadKind::DirtyIo),
            ("dirty_cpu_", ThreadKind::DirtyCpu),
            ("dirty_io_", ThreadKind::DirtyIo),
        ];
        let last = [
            ("scheduler", ThreadKind::Scheduler),
            ("deputy", ThreadKind::Scheduler),
            ("dirty_cpu_", ThreadKind::DirtyCpu),
            ("dirty_io_", ThreadKind::DirtyIo),
        ];
        let behind = first.iter().find_map(|(prefix, kind)| {
            let number = name.strip_prefix(prefix)?.parse().ok()?;
            Some((*kind, number))
        });
        let known = behind.or_else(|| {
            let (number, rest) = name.split_once('_')?;
            let number = number.parse().ok()?;
            let mut last = last.iter();
            last.find_map(|(name, kind)| rest.starts_with(name).then_some((*kind, number)))
        });
        let (kind, number) = known.unwrap_or((ThreadKind::Other, 0));
        Thread {
            tid,
            kind,
            number,
            name: name.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_known_by_their_names() {
        for (name, kind, number) in [
            ("erts_sched_1", ThreadKind::Scheduler, 1),
            ("erts_sched_128", ThreadKind::Scheduler, 128),
            ("erts_dcpus_2", ThreadKind::DirtyCpu, 2),
            ("erts_dios_10", ThreadKind::DirtyIo, 10),
            ("1_scheduler", ThreadKind::Scheduler, 1),
            ("12_dirty_cpu_sc", ThreadKind::DirtyCpu, 12),
            ("3_dirty_io_sche", ThreadKind::DirtyIo, 3),
            ("2_deputy", ThreadKind::Scheduler, 2),
            ("dirty_cpu_3", ThreadKind::DirtyCpu, 3),
            ("dirty_io_11", ThreadKind::DirtyIo, 11),
            ("erts_poll_0", ThreadKind::Other, 0),
            ("erts_sched_x", ThreadKind::Other, 0),
            ("beam.smp", ThreadKind::Other, 0),
        ] {
            let thread = Thread::of(7, name);
            assert_eq!((thread.kind, thread.number), (kind, number), "{name}");
        }
    }

    #[test]
    fn the_table_of_processes_is_that_of_the_options_or_of_the_version() {
        for (own, bits) in [
            (&["-P", "5000"][..], 13),
            (&["-P4096"], 12),
            (&["-P", "legacy", "-P", "1024"], 10),
            (&["-K", "true", "-P", "134217727"], 27),
        ] {
            let words = [&["beam.smp"], own, &["--", "-P", "7"]].concat();
            let emulator = Emulator {
                pid: 0,
                kind: Kind::Otp,
                program: PathBuf::new(),
                command: words.into_iter().map(str::to_owned).collect(),
                name: None,
            };
            assert_eq!(emulator.table_bits(), bits, "{own:?}");
        }
        for (version, bits) in [
            ("25.3", 18),
            ("26.2.5", 18),
            ("erts 14.2", 18),
            ("27.0", 20),
            ("29.1.1", 20),
            ("erts 17.1", 20),
            ("", 20),
        ] {
            assert_eq!(default_table_bits(version), bits, "{version}");
        }
    }

    #[test]
    fn programs_are_emulators_by_their_file_names() {
        for (path, is_one) in [
            ("/usr/lib/erlang/erts-17.1/bin/beam.smp", true),
            ("/srv/beam.debug.smp", true),
            ("/srv/beam.emu.smp", true),
            ("/usr/bin/beamline", false),
            ("/beam.smp/erl", false),
        ] {
            assert_eq!(is_emulator(Path::new(path)), is_one, "{path}");
        }
    }

    #[test]
    fn sockets_that_listen_are_told_from_others() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            \x20  0: 0100007F:1111 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4242 1 0 100 0 0 10 0\n\
            \x20  1: 0100007F:A3F0 0100007F:1111 01 00000000:00000000 00:00000000 00000000     0        0 4243 1 0 20 4 30 10 -1\n\
            \x20  2: 00000000000000000000000000000000:9C40 00000000000000000000000000000000:0000 0A 0:0 00:0 0 0 0 77 1 0\n";
        assert_eq!(listening(table), [(0x1111, 4242), (40_000, 77)]);
        assert_eq!(listening("nothing\n"), []);
    }

    #[test]
    fn command_lines_name_nodes() {
        let command = |text: &str| texts(text.replace(' ', "\0").as_bytes());
        let line = command("beam.smp -- -root /r -sname one@here -x\0");
        assert_eq!(name(0, &line).as_deref(), Some("one"));
        assert_eq!(option_of(&line, "-root"), Some("/r"));
        assert_eq!(option_of(&line, "-x"), None);
        assert_eq!(name(0, &command("beam.smp -name")), None);
    }

    #[test]
    fn data_of_a_program_is_of_its_file_and_behind_it() {
        let mapping = |start: u64, is_writable, path: &str| Mapping {
            start,
            end: start + 1,
            is_writable,
            is_executable: !is_writable,
            offset: 0,
            path: path.into(),
        };
        let maps = [
            mapping(1, false, "/b/beam.smp (deleted)"),
            mapping(2, true, "/b/beam.smp (deleted)"),
            mapping(3, true, ""),
            mapping(5, true, ""),
            mapping(6, true, "[heap]"),
            mapping(7, true, "/b/libc.so"),
        ];
        let data = data_of(&maps, Path::new("/b/beam.smp"));
        let starts: Vec<u64> = data.iter().map(|mapping| mapping.start).collect();
        assert_eq!(starts, [2, 3]);
    }

    #[test]
    fn what_is_no_emulator_is_refused() {
        let own = fs::read_link("/proc/self").expect("a link to a number");
        let own: u32 = own
            .to_str()
            .and_then(|text| text.parse().ok())
            .expect("a number");
        assert!(matches!(Emulator::of(own), Err(Refusal::NoEmulator(..))));
        assert!(matches!(Emulator::of(u32::MAX), Err(Refusal::Gone(_))));
    }
}
