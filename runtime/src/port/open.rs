//! Opens ports: reads the options, and starts the program. Source: `open_port()` in `erl_bif_port.c`, `spawn_start()`
//! in `sys_drivers.c`, OTP 29.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, OsStr};
use std::os::fd::{OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::pipe::{PipeFlags, pipe_with};

use super::driver::{self, Driver};
use super::framing::Framing;
use super::inet::names::{self, Names};
use super::inet::replayed::Replayed;
use super::linked::{self, Library};
use super::streams::{Descriptor, Mode, Streams};
use super::{CHANGES, Port, State, table};
use crate::process::order::answer::Native;
use crate::process::order::{answer, replay, sockets};
use crate::process::{Process, Signal, deliver};
use crate::sys::chance::{outside, paths};
use crate::sys::{environment, errno, file, spawn};
use crate::term::atom::MAX_ATOM_CHARS;
use crate::term::{Pid, Port as PortId, Term, View, am};
use crate::value::file_name;

/// Why no port was opened: what `erts_internal:open_port/2` answers.
pub(crate) enum Error {
    /// `badarg`: the name.
    Badarg,
    /// `badopt`: the options.
    Badopt,
    /// There are as many ports as there may be.
    SystemLimit,
    /// The system refused.
    Os(&'static str),
}

impl From<std::io::Error> for Error {
    fn from(e: std::io::Error) -> Self {
        Error::Os(errno::name_of(&e))
    }
}

impl From<rustix::io::Errno> for Error {
    fn from(e: rustix::io::Errno) -> Self {
        Error::Os(errno::errno_name(e.raw_os_error()))
    }
}

/// The first argument of `open_port`: what to open.
enum Name {
    /// A driver, with arguments.
    Driver(Vec<u8>),
    /// A driver, or a command for the shell.
    Command(Vec<u8>),
    /// A program.
    Executable(Vec<u8>),
    /// Two descriptors.
    Descriptors(RawFd, RawFd),
}

/// Bytes queued at which a port is busy, and below which it is no more.
pub(super) const BUSY_BYTES: (usize, usize) = (8192, 4096);

struct PortOptions {
    packet: usize,
    line: Option<usize>,
    use_stdio: bool,
    stderr_to_stdout: bool,
    read: bool,
    write: bool,
    binary: bool,
    eof: bool,
    exit_status: bool,
    parallelism: bool,
    busy: (usize, usize),
    /// `busy_limits_port` is among them.
    limits_port: bool,
    /// `busy_limits_msgq` is, and does not disable them.
    limits_queue: bool,
    environment: BTreeMap<Vec<u8>, Vec<u8>>,
    args: Option<Vec<Vec<u8>>>,
    arg0: Option<Vec<u8>>,
    cd: Option<Vec<u8>>,
}

impl PortOptions {
    fn parse(list: Term<'_>) -> Option<PortOptions> {
        let mut options = PortOptions {
            packet: 0,
            line: None,
            use_stdio: true,
            stderr_to_stdout: false,
            read: false,
            write: false,
            binary: false,
            eof: false,
            exit_status: false,
            parallelism: false,
            busy: BUSY_BYTES,
            limits_port: false,
            limits_queue: false,
            environment: environment::environment_copy(),
            args: None,
            arg0: None,
            cd: None,
        };
        for option in list.list_iter() {
            let option = option.ok()?;
            match option.view() {
                View::Atom(name) => options.flag(name.name())?,
                View::Tuple(pair) => {
                    let [key, value] = pair.elements() else {
                        return None;
                    };
                    options.setting(key.as_atom()?.name(), *value)?;
                }
                _ => return None,
            }
        }
        if !options.read && !options.write {
            (options.read, options.write) = (true, true);
        }
        let exclusive = (options.line.is_some() && options.packet != 0)
            || (options.stderr_to_stdout && !options.use_stdio);
        (!exclusive).then_some(options)
    }

    fn flag(&mut self, name: &str) -> Option<()> {
        match name {
            "stream" => self.packet = 0,
            "use_stdio" => self.use_stdio = true,
            "nouse_stdio" => self.use_stdio = false,
            "stderr_to_stdout" => self.stderr_to_stdout = true,
            "line" => self.line = Some(512),
            "binary" => self.binary = true,
            "in" => self.read = true,
            "out" => self.write = true,
            "eof" => self.eof = true,
            "exit_status" => self.exit_status = true,
            "hide" | "overlapped_io" => {}
            _ => return None,
        }
        Some(())
    }

    fn setting(&mut self, key: &str, value: Term<'_>) -> Option<()> {
        match key {
            "packet" => {
                self.packet = value.as_index().filter(|n| matches!(n, 1 | 2 | 4))?;
            }
            "line" => self.line = Some(value.as_index().filter(|&n| n > 0)?),
            "env" => self.environment(value)?,
            "args" => {
                let args = value
                    .list_iter()
                    .map(|arg| file_name::native_or_raw_name(arg.ok()?));
                self.args = Some(args.collect::<Option<_>>()?);
            }
            "arg0" => self.arg0 = Some(file_name::native_or_raw_name(value)?),
            "cd" => self.cd = Some(file_name::native_or_raw_name(value)?),
            "parallelism" => self.parallelism = value.as_bool()?,
            "busy_limits_port" => {
                self.busy = busy_limits(value)?;
                self.limits_port = true;
            }
            // There is no message queue between a process and a port.
            "busy_limits_msgq" => {
                let (high, _) = busy_limits(value)?;
                self.limits_queue = high != usize::MAX;
            }
            _ => return None,
        }
        Some(())
    }

    /// `{env, List}`: from the environment as it is now; `false` and the empty string unset.
    fn environment(&mut self, list: Term<'_>) -> Option<()> {
        self.environment = environment::environment_copy();
        for pair in list.list_iter() {
            let pair = pair.ok()?.as_tuple()?;
            let [key, value] = pair.elements() else {
                return None;
            };
            let key = file_name::native_key(*key)?;
            if value.is_nil() || *value == am::false_ {
                self.environment.remove(&key);
            } else {
                self.environment
                    .insert(key, file_name::native_value(*value)?);
            }
        }
        Some(())
    }

    fn mode(&self) -> Mode {
        let framing = match (self.line, self.packet) {
            (Some(limit), _) => Framing::Line(limit),
            (None, 0) => Framing::Stream,
            (None, bytes) => Framing::Packet(bytes),
        };
        Mode {
            framing,
            binary: self.binary,
            eof: self.eof,
            exit_status: self.exit_status,
        }
    }
}

/// `{Low, High}`, or `disabled`.
fn busy_limits(value: Term<'_>) -> Option<(usize, usize)> {
    if value.same(crate::term::atom::atom("disabled")) {
        return Some((usize::MAX, usize::MAX));
    }
    let [low, high] = value.as_tuple()?.elements() else {
        return None;
    };
    let (low, high) = (low.as_u64()? as usize, high.as_u64()? as usize);
    if low == 0 || high == 0 {
        return None;
    }
    Some((high, low.min(high)))
}

fn parse_name(name: Term<'_>) -> Option<Name> {
    let elements = name.as_tuple()?.elements();
    match (elements.first()?.as_atom()?.name(), elements) {
        ("spawn", [_, command]) => file_name::native_or_raw_name(*command).map(Name::Command),
        ("spawn_executable", [_, file]) => {
            file_name::native_or_raw_name(*file).map(Name::Executable)
        }
        ("spawn_driver", [_, command]) => file_name::native_or_raw_name(*command).map(Name::Driver),
        ("fd", [_, input, output]) => {
            let fd = |t: &Term<'_>| t.as_small().and_then(|n| RawFd::try_from(n).ok());
            Some(Name::Descriptors(fd(input)?, fd(output)?))
        }
        _ => None,
    }
}

/// Opens a port with `p` as its owner, linked to it.
pub(crate) fn open(p: &Process, name: Term<'_>, options: Term<'_>) -> Result<PortId, Error> {
    let options = PortOptions::parse(options).ok_or(Error::Badopt)?;
    let name = parse_name(name).ok_or(Error::Badarg)?;
    let is_executable = matches!(name, Name::Executable(_));
    if !is_executable && (options.args.is_some() || options.arg0.is_some()) {
        return Err(Error::Badarg);
    }
    if let Name::Driver(command) | Name::Command(command) = &name
        && let Some(library) = linked::find(command)
    {
        return open_linked(p, &*library, command, &options);
    }
    let (name, ends) = match name {
        Name::Driver(name) | Name::Command(name) | Name::Executable(name)
            if opens_socket(&name) && answer::is_replayed(p) =>
        {
            (name, replayed(p)?)
        }
        Name::Driver(command) => {
            let driver = driver::start(&command, options.binary).ok_or(Error::Badarg)??;
            (command, Ends::of_driver(driver))
        }
        Name::Command(command) if let Some(driver) = driver::start(&command, options.binary) => {
            (command, Ends::of_driver(driver?))
        }
        Name::Command(command) => {
            let line = [b"exec ", &command[..]].concat();
            let args = [b"sh".to_vec(), b"-c".to_vec(), line];
            (command, start(b"/bin/sh", &args, &options)?)
        }
        Name::Executable(file) if is_name_service(&file) => {
            (file, Ends::of_driver(Box::new(Names::default())))
        }
        Name::Executable(file) => {
            let args = arguments(&file, &options);
            rustix::fs::access(&c_string(&file)?, rustix::fs::Access::EXEC_OK)?;
            let ends = start(&file, &args, &options)?;
            (file, ends)
        }
        Name::Descriptors(input, output) => {
            if options.exit_status {
                return Err(Error::Badarg);
            }
            let name = format!("{input}/{output}").into_bytes();
            (name, lent(input, output, &options)?)
        }
    };
    let driver = name[..name.len().min(MAX_ATOM_CHARS)].to_vec();
    let os_pid = ends.os_pid;
    let port = insert_for(
        p,
        State {
            parallelism: options.parallelism,
            os_pid,
            driver: Some(ends.driver),
            busy: options.busy,
            ..State::new(p.pid(), name)
        },
    )?;
    port.traced().opened(p.pid(), &driver);
    link(p, &port);
    if let Some(pid) = os_pid {
        reap(&port, pid)?;
    }
    port.drive(port.state.lock(), |driver, port| {
        driver.start(port);
        Ok(())
    });
    Ok(port.id)
}

/// What is behind the port of a socket that `p` opened in the recorded run.
///
/// # Errors
/// It opened none: recordings of an older version have sockets of names only, as there was no other driver then.
fn replayed(p: &Process) -> Result<Ends, Error> {
    match answer::is_given(p, &OPENED) {
        true => Ok(Ends::of_driver(Box::new(Replayed))),
        false => Err(Error::Badarg),
    }
}

/// The drivers of sockets.
const SOCKETS: [&[u8]; 2] = [b"tcp_inet", b"udp_inet"];

/// Does a driver work for it that opens sockets?
fn opens_socket(name: &[u8]) -> bool {
    SOCKETS.contains(&name) || is_name_service(name)
}

/// Is it OTP's program that looks up hosts, whose work a driver does here?
fn is_name_service(file: &[u8]) -> bool {
    Path::new(OsStr::from_bytes(file)).file_name() == Some(OsStr::from_bytes(names::PROGRAM))
}

/// Links `p` to the port that it opens, which does nothing for that.
fn link(p: &Process, port: &Port) {
    let mut state = port.state.lock();
    if state.gone {
        drop(state);
        p.link(port.peer(), false);
    } else {
        state.links.insert(p.pid().into());
        drop(state);
        p.relations().link(port.peer(), false);
        port.report_link(p.pid().into());
    }
    crate::trace::events::happened(p.shared(), crate::trace::Event::Link, port.term());
}

/// Opens a port of a driver in C.
fn open_linked(
    p: &Process,
    library: &dyn Library,
    command: &[u8],
    options: &PortOptions,
) -> Result<PortId, Error> {
    let limits_queue = options.limits_queue && !library.has_busy_queue();
    if options.exit_status || options.limits_port || limits_queue {
        return Err(Error::Badarg);
    }
    let port = insert_for(
        p,
        State {
            parallelism: options.parallelism,
            ..State::new(p.pid(), command.to_vec())
        },
    )?;
    let name = &command[..command.len().min(MAX_ATOM_CHARS)];
    port.traced().opened(p.pid(), name);
    let mode = linked::Mode {
        framing: options.mode().framing,
        binary: options.binary,
        eof: options.eof,
    };
    if let Err(e) = library.open(&port, command, mode, p.pid()) {
        port.remove();
        return Err(e);
    }
    link(p, &port);
    Ok(port.id)
}

/// A port that a driver opens in the name of `owner`: not linked yet. `None` where there are as many as may be.
pub(crate) fn create(owner: Pid, name: &[u8]) -> Option<Arc<Port>> {
    let port = insert(State::new(owner, name.to_vec())).ok()?;
    port.traced().opened(owner, name);
    Some(port)
}

/// A port that a driver opens for `owner`, linked to it, with a driver of its own. `None` where there are as many as may be.
pub(super) fn create_driven(owner: Pid, name: &[u8], driver: Box<dyn Driver>) -> Option<PortId> {
    let mut state = State::new(owner, name.to_vec());
    state.driver = Some(driver);
    state.links.insert(owner.into());
    let port = insert(state).ok()?;
    port.traced().opened(owner, name);
    deliver(owner, Signal::Link { from: port.peer() });
    Some(port.id)
}

/// Opens the port of a connection that the recorded run accepted for `owner`, which is linked to it.
pub(super) fn open_again(owner: Pid, id: PortId) {
    let mut state = State::new(owner, SOCKETS[0].to_vec());
    state.driver = Some(Box::new(Replayed));
    state.links.insert(owner.into());
    // There is room: the recorded run had as many ports, and this one is later than those of other numbers.
    if let Ok(port) = insert_as(state, Some(id.0)) {
        port.traced().opened(owner, SOCKETS[0]);
    }
}

/// Opens the port by which ERTS starts programs, the first one there is. Here the process that opens a port starts its
/// program, so that nothing is read from or written to this one; but it is listed, and told of, as in ERTS.
pub(crate) fn open_forker(owner: Pid) {
    // Its number in every run.
    let first = replay::last_port().map(|_| 0);
    let opened = insert_as(State::new(owner, b"forker".to_vec()), first);
    debug_assert!(opened.is_ok(), "no other port is there yet");
}

/// The driver of a port, and its process number if it is a program.
struct Ends {
    driver: Box<dyn Driver>,
    os_pid: Option<i32>,
}

impl Ends {
    fn of_driver(driver: Box<dyn Driver>) -> Ends {
        Ends {
            driver,
            os_pid: None,
        }
    }
}

fn c_string(bytes: &[u8]) -> Result<CString, Error> {
    CString::new(paths::real(bytes.to_vec())).map_err(|_| Error::Badarg)
}

fn arguments(file: &[u8], options: &PortOptions) -> Vec<Vec<u8>> {
    let arg0 = options.arg0.as_deref().unwrap_or(file).to_vec();
    let rest = options.args.iter().flatten().cloned();
    std::iter::once(arg0).chain(rest).collect()
}

/// A pipe, and which end is ours made not to wait.
fn pipe(ours_reads: bool) -> Result<(OwnedFd, OwnedFd), Error> {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    let ours = if ours_reads { &read } else { &write };
    rustix::io::ioctl_fionbio(ours, true)?;
    Ok((read, write))
}

fn start(path: &[u8], args: &[Vec<u8>], options: &PortOptions) -> Result<Ends, Error> {
    let from_program = options.read.then(|| pipe(true)).transpose()?;
    let to_program = options.write.then(|| pipe(false)).transpose()?;
    let (its_input, its_output) = if options.use_stdio { (0, 1) } else { (3, 4) };
    let mut fds = Vec::new();
    if let Some((read, _)) = &to_program {
        fds.push((read, its_input));
    }
    if let Some((_, write)) = &from_program {
        fds.push((write, its_output));
        if options.stderr_to_stdout {
            fds.push((write, 2));
        }
    }
    let variables = options.environment.iter();
    let env = variables.map(|(key, value)| c_string(&[key, &b"="[..], value].concat()));
    let args = args.iter().map(|arg| c_string(arg));
    let cd = options.cd.as_deref().map(c_string).transpose()?;
    let path = c_string(path)?;
    outside::take(|| format!("program {}", path.to_string_lossy()));
    let (args, env) = (
        args.collect::<Result<Vec<_>, _>>()?,
        env.collect::<Result<Vec<_>, _>>()?,
    );
    let program = spawn::Program {
        path: &path,
        args: &args,
        env: &env,
        cd: cd.as_deref(),
        fds: &fds,
    };
    let pid = spawn::spawn(&program).or_else(|e| stand_in(&program, e))?;
    let input = from_program.map(|(read, _)| Descriptor::Own(read));
    let output = to_program.map(|(_, write)| Descriptor::Own(write));
    Ok(Ends {
        driver: Box::new(Streams::new(options.mode(), input, output)),
        os_pid: Some(pid),
    })
}

/// Starts what ends as ERTS's child does where the system does not let it go to its directory, or become the program:
/// with the error's number. The port is open by then.
///
/// # Errors
/// `refused`, where the system has no process to give.
fn stand_in(program: &spawn::Program<'_>, refused: std::io::Error) -> std::io::Result<i32> {
    const TELL: &str = "printf 'spawn: Could not cd to %s\\r\\n' \"$0\" >&2;";
    let error = refused.raw_os_error();
    let no_process = [libc::EAGAIN, libc::ENOMEM, libc::EMFILE, libc::ENFILE];
    let Some(error) = error.filter(|error| !no_process.contains(error)) else {
        return Err(refused);
    };
    let is_there = |cd: &&CStr| Path::new(OsStr::from_bytes(cd.to_bytes())).is_dir();
    let cd = program.cd.filter(|cd| !is_there(cd));
    let script = format!("{} exit {error}", cd.map_or("", |_| TELL));
    let script = CString::new(script).expect("a script has no zero");
    let name = cd.unwrap_or(c"sh").to_owned();
    let args = [c"sh".to_owned(), c"-c".to_owned(), script, name];
    spawn::spawn(&spawn::Program {
        path: c"/bin/sh",
        args: &args,
        env: &[],
        cd: None,
        fds: program.fds,
    })
    .map_err(|_| refused)
}

fn lent(input: RawFd, output: RawFd, options: &PortOptions) -> Result<Ends, Error> {
    for (used, fd) in [(options.read, input), (options.write, output)] {
        if used && !file::is_open(fd) {
            return Err(Error::Os("ebadf"));
        }
    }
    let input = options.read.then_some(Descriptor::Lent(input));
    let output = options.write.then_some(Descriptor::Lent(output));
    let driver = Streams::new(options.mode(), input, output);
    Ok(Ends::of_driver(Box::new(driver)))
}

fn insert(state: State) -> Result<Arc<Port>, Error> {
    insert_as(state, None)
}

/// The number of a port that a process opens.
static OPENED: Native = Native::new("erts_internal", "open_port", 2);

/// Enters the port that `p` opens, which has its recorded number in a replay.
fn insert_for(p: &Process, state: State) -> Result<Arc<Port>, Error> {
    let mut port = None;
    answer::numbered(p, &OPENED, |number| {
        let made = port.insert(insert_as(state, number)?);
        Ok::<_, Error>(made.id.0)
    })?;
    port.ok_or(Error::SystemLimit)
}

/// Puts a port into the table, with this number if one is given.
fn insert_as(state: State, number: Option<u64>) -> Result<Arc<Port>, Error> {
    let _change = CHANGES.read();
    let reservation = match number {
        None => table().reserve(),
        Some(number) => table().reserve_at(number),
    };
    let reservation = reservation.map_err(|_| Error::SystemLimit)?;
    let is_socket = state.driver.as_ref().is_some_and(|it| it.is_socket());
    if is_socket {
        sockets::made(PortId(reservation.data()));
    }
    let port = Arc::new(Port {
        tracee: crate::trace::Tracee::default(),
        id: PortId(reservation.data()),
        state: Mutex::new(state),
    });
    reservation.publish(Arc::clone(&port));
    Ok(port)
}

/// Stack of a thread that only waits for a program.
const REAPER_STACK_BYTES: usize = 64 * 1024;

/// Waits for the program's end in a thread of its own.
fn reap(port: &Arc<Port>, pid: i32) -> Result<(), Error> {
    let port = Arc::downgrade(port);
    outside::program_started();
    let started = std::thread::Builder::new()
        .name("child".into())
        .stack_size(REAPER_STACK_BYTES)
        .spawn(move || {
            let status = spawn::wait(pid);
            if let Some(port) = port.upgrade() {
                port.program_ended(status);
            }
            outside::program_ended();
        });
    if started.is_err() {
        outside::program_ended();
    }
    Ok(started.map(drop)?)
}
