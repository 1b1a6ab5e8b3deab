//! Drivers, which do the work of ports. `streams` has the one of programs and descriptors. The others are opened by
//! name: those that OTP links in, at any time; those that OTP has as libraries in C and that tracing needs, once
//! `erl_ddll` has been asked to load them, as in OTP.
//!
//! A driver knows nothing of ports and processes. It is called under its port's lock with a [`Context`], through which
//! it sends to the port's owner and says what it waits for.

use std::collections::BTreeMap;
use std::os::fd::RawFd;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use rustix::io::Errno;

use super::inet::tcp::Tcp;
use super::inet::udp::Udp;
use super::open::{self, Error};
use super::ram_file::RamFile;
use super::trace_file::TraceFile;
use super::trace_ip::TraceIp;
use super::{Connection, Port, State};
use crate::heap::Heap;
use crate::process::refs::{RefNumbers, make_ref};
use crate::process::watcher::{WatchedBy, Watcher, unwatch, watch};
use crate::sched::timers::{self, Fire, TimerId};
use crate::sys::chance::poll::{self, Interest};
use crate::term::{Pid, Port as PortId, Term};
use crate::value::iolist::Output;

/// Why a driver ends its port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// It has come to its end.
    Normal,
    /// With the error as the reason. What is queued is lost.
    Error(Errno),
    /// With the reason `killed`: nothing that has come can be understood. What is queued is lost.
    Killed,
}

impl From<Errno> for End {
    fn from(e: Errno) -> End {
        End::Error(e)
    }
}

/// A driver: the work of a port. An error ends the port.
pub(super) trait Driver: Send {
    /// The port has been opened.
    fn start(&mut self, _port: &mut Context<'_>) {}

    /// Takes what is sent to the port.
    fn output(&mut self, port: &mut Context<'_>, data: Vec<u8>) -> Result<(), End>;

    /// As [`Driver::output`], the large binaries in it not copied.
    fn output_vector(&mut self, port: &mut Context<'_>, data: Output) -> Result<(), End> {
        self.output(port, data.into_bytes())
    }

    /// In ERTS it takes what is sent to it as a vector, which tracers see.
    fn has_outputv(&self) -> bool {
        false
    }

    /// `port_control/3`; `None` where there is no such command.
    fn control(
        &mut self,
        _port: &mut Context<'_>,
        _command: u32,
        _data: &[u8],
    ) -> Option<Result<Vec<u8>, End>> {
        None
    }

    /// What `control` answers is a binary, not a list.
    fn answers_binaries(&self) -> bool {
        false
    }

    /// The time that it asked for is up.
    fn timeout(&mut self, _port: &mut Context<'_>) -> Result<(), End> {
        Ok(())
    }

    /// A process that it monitors has exited.
    fn process_exited(&mut self, _port: &mut Context<'_>, _monitor: RefNumbers) {}

    /// A descriptor that it watches is ready, or was. It is watched no more.
    fn ready(
        &mut self,
        _port: &mut Context<'_>,
        _fd: RawFd,
        _interest: Interest,
    ) -> Result<(), End> {
        Ok(())
    }

    /// The program of the port has ended.
    fn program_ended(&mut self, _port: &mut Context<'_>, _status: i32) -> Result<(), End> {
        Ok(())
    }

    /// Is it a socket, which a replay does not open?
    fn is_socket(&self) -> bool {
        false
    }

    /// Is it one of a recorded run, which is replayed?
    fn is_replayed(&self) -> bool {
        false
    }

    /// Bytes that it has taken and not yet written.
    fn queued_bytes(&self) -> usize {
        0
    }

    /// It says itself when its port is busy, and not the port by the bytes that are queued.
    fn sets_busy(&self) -> bool {
        false
    }

    /// May a command be forced on it while it is busy? ERTS asks this of a port that controls a connection to another node,
    /// too: `ERL_DRV_FLAG_SOFT_BUSY`.
    fn is_busy_softly(&self) -> bool {
        false
    }

    /// Sends what waits for the connection that its port controls, as far as it is not busy.
    fn serve_connection(&mut self, _port: &mut Context<'_>) {}

    /// Whether a port that is closed waits until all is written.
    fn must_flush(&self) -> bool {
        false
    }

    /// Before the machine ends: writes what must not be lost, with what waits for this connection to another node.
    fn flush(&mut self, _connection: Option<&Connection>) {}

    /// The port is gone, and its links and monitors know. The driver is dropped next.
    fn stop(&mut self, _port: &mut Context<'_>) {}
}

/// The driver's access to its port, whose lock is held.
pub(super) struct Context<'a> {
    pub(super) port: &'a Arc<Port>,
    pub(super) state: &'a mut State,
    /// Whose call it is, if it is a process's.
    pub(super) caller: Option<Pid>,
    /// Set by [`Context::end`].
    pub(super) end: Option<End>,
    /// Set by [`Context::exit`].
    pub(super) unlinks_owner: bool,
}

/// The timer of a port.
#[derive(Debug)]
pub(super) struct Timer {
    id: TimerId,
    deadline_ns: u64,
    /// Tells it from those that the port had before.
    number: u64,
}

impl Timer {
    /// Is it the one of this number?
    pub(super) fn is(&self, number: u64) -> bool {
        self.number == number
    }
}

impl<'a> Context<'a> {
    pub(super) fn new(port: &'a Arc<Port>, state: &'a mut State) -> Context<'a> {
        Context {
            port,
            state,
            caller: None,
            end: None,
            unlinks_owner: false,
        }
    }

    /// Has the port end once the driver has returned, which gives its answer all the same.
    pub(super) fn end(&mut self, why: End) {
        self.end = Some(why);
    }

    /// As [`Context::end`], and the owner gets no exit signal: the driver has told it. Source: `driver_exit()`.
    pub(super) fn exit(&mut self, why: End) {
        self.end(why);
        self.unlinks_owner = true;
    }

    /// The port, as a term.
    pub(super) fn term(&self) -> Term<'static> {
        self.port.id.term()
    }

    /// Sends a message.
    pub(super) fn tell(&self, to: Pid, build: impl for<'h> FnOnce(&'h Heap) -> Term<'h>) {
        self.port.tell(to, build);
    }

    /// Sends `{Port, What}` to the owner.
    pub(super) fn tell_owner(&self, what: impl for<'h> FnOnce(&'h Heap) -> Term<'h>) {
        let id = self.port.id;
        self.tell(self.state.owner, |heap| {
            let what = what(heap);
            heap.tuple(&[id.term(), what])
        });
    }

    /// Has the driver called once when `fd` is ready.
    pub(super) fn watch(&mut self, fd: RawFd, interest: Interest) {
        let watches = &mut self.state.watches;
        if !watches.iter().any(|w| (w.0, w.1) == (fd, interest)) {
            let whom = Arc::clone(self.port);
            watches.push((fd, interest, poll::watch(fd, interest, whom)));
        }
    }

    /// What is watched on `fd`.
    pub(super) fn watched(&self, fd: RawFd) -> Vec<Interest> {
        let of_fd = self.state.watches.iter().filter(|watch| watch.0 == fd);
        of_fd.map(|watch| watch.1).collect()
    }

    /// Takes back the watch on `fd` for `interest`, if there is one.
    pub(super) fn unwatch_for(&mut self, fd: RawFd, interest: Interest) {
        let is_it = |w: &mut (RawFd, Interest, _)| (w.0, w.1) == (fd, interest);
        let gone = self.state.watches.extract_if(.., is_it);
        gone.for_each(|(_, _, id)| _ = poll::unwatch(id));
    }

    /// Takes back all watches on `fd`, which the driver is about to close.
    pub(super) fn unwatch(&mut self, fd: RawFd) {
        let gone = self.state.watches.extract_if(.., |watch| watch.0 == fd);
        gone.for_each(|(_, _, id)| _ = poll::unwatch(id));
    }

    /// Has `timeout` called at this time of the monotonic clock, and not at the one that was set before.
    pub(super) fn set_timer(&mut self, deadline_ns: Option<u64>) {
        if self.state.timer.as_ref().map(|timer| timer.deadline_ns) == deadline_ns {
            return;
        }
        if let Some(timer) = self.state.timer.take() {
            timers::cancel(timer.id);
        }
        let Some(deadline_ns) = deadline_ns else {
            return;
        };
        let port = Arc::downgrade(self.port);
        self.state.timers_set += 1;
        let number = self.state.timers_set;
        let run = move || {
            if let Some(port) = port.upgrade() {
                port.timeout(number);
            }
        };
        let id = timers::set(deadline_ns, Fire::Run(Box::new(run)));
        self.state.timer = Some(Timer {
            id,
            deadline_ns,
            number,
        });
    }

    /// Says whether callers must wait.
    pub(super) fn set_busy(&mut self, busy: bool) {
        self.state.set_busy(busy);
    }

    /// Has the driver called when a process exits. `None` where it has exited.
    pub(super) fn monitor(&self, pid: Pid) -> Option<RefNumbers> {
        let reference = make_ref();
        let port = Arc::downgrade(self.port);
        // From a timer: a process that is going says so while this port's lock is held.
        let told = Box::new(move |_: Term<'_>| {
            let port = Weak::clone(&port);
            timers::run_after(0, move || {
                if let Some(port) = port.upgrade() {
                    port.process_exited(reference);
                }
            });
        });
        let by = WatchedBy::Port(self.port.id);
        watch(pid, reference, Watcher { told, by }).then_some(reference)
    }

    /// Takes a monitor back.
    pub(super) fn demonitor(&self, reference: RefNumbers, pid: Pid) {
        unwatch(pid, reference);
    }

    /// Opens another port of `driver` for `owner`, to which it is linked. `None` where there are as many as may be.
    pub(super) fn create(&self, owner: Pid, driver: Box<dyn Driver>) -> Option<PortId> {
        open::create_driven(owner, &self.state.name, driver)
    }

    /// Bytes read so far.
    pub(super) fn took_input(&mut self, bytes: usize) {
        super::count(&super::INPUT_BYTES, &mut self.state.input_bytes, bytes);
    }
}

/// How a driver is opened.
struct Opening<'a> {
    /// What follows the driver's name in the command.
    arguments: &'a [u8],
    /// The owner gets binaries (`binary`).
    binary: bool,
}

/// A driver: its name, whether it is linked in, and how it opens a port.
type Row = (
    &'static str,
    bool,
    fn(Opening<'_>) -> Result<Box<dyn Driver>, Error>,
);

const DRIVERS: &[Row] = &[
    ("ram_file_drv", true, |opening| {
        Ok(Box::new(RamFile::new(opening.binary)))
    }),
    ("tcp_inet", true, |opening| {
        Ok(Box::new(Tcp::open(opening.binary)?))
    }),
    ("udp_inet", true, |_| Ok(Box::new(Udp::open()?))),
    ("trace_file_drv", false, |opening| {
        Ok(Box::new(TraceFile::open(opening.arguments)?))
    }),
    ("trace_ip_drv", false, |opening| {
        Ok(Box::new(TraceIp::open(opening.arguments)?))
    }),
];

/// The driver of this name.
fn find(name: &[u8]) -> Option<&'static Row> {
    DRIVERS.iter().find(|row| row.0.as_bytes() == name)
}

/// Whether a driver of this name is linked in, so that it is neither loaded nor unloaded.
pub(crate) fn is_linked_in(name: &[u8]) -> bool {
    find(name).is_some_and(|row| row.1)
}

/// How often a driver has been loaded and not unloaded.
static LOADED: Mutex<BTreeMap<&'static str, usize>> = Mutex::new(BTreeMap::new());

/// Loads a driver; whether it was not loaded before. `None` where there is no such driver.
pub(crate) fn load(name: &[u8]) -> Option<bool> {
    let (name, ..) = find(name)?;
    let mut loaded = LOADED.lock();
    let times = loaded.entry(*name).or_default();
    *times += 1;
    Some(*times == 1)
}

/// Gives up a driver; whether it is loaded no more. `None` where it is not loaded.
pub(crate) fn unload(name: &[u8]) -> Option<bool> {
    let mut loaded = LOADED.lock();
    let (&name, times) = loaded.iter_mut().find(|row| row.0.as_bytes() == name)?;
    *times -= 1;
    let last = *times == 0;
    if last {
        loaded.remove(name);
    }
    Some(last)
}

/// The drivers that are linked in.
pub(crate) fn linked_in() -> impl Iterator<Item = &'static str> {
    DRIVERS.iter().filter(|row| row.1).map(|row| row.0)
}

/// Starts the driver that a command names, if one does: its first word.
pub(super) fn start(command: &[u8], binary: bool) -> Option<Result<Box<dyn Driver>, Error>> {
    let word = command.split(|byte| *byte == b' ').next().unwrap_or(&[]);
    let (name, linked_in, open) = find(word)?;
    let is_there = *linked_in || LOADED.lock().contains_key(name);
    let arguments = &command[name.len()..];
    is_there.then(|| open(Opening { arguments, binary }))
}

/// A port that is not open, for a driver that is called without one: what it sends reaches no process.
#[cfg(test)]
pub(super) struct Alone(Arc<Port>);

#[cfg(test)]
impl Alone {
    pub(super) fn new() -> Alone {
        Alone(Arc::new(Port {
            tracee: crate::trace::Tracee::default(),
            id: crate::term::Port(0),
            state: Mutex::new(State::new(crate::term::Pid(0), Vec::new())),
        }))
    }

    /// Calls `work` with the port.
    pub(super) fn with<T>(&self, work: impl FnOnce(&mut Context<'_>) -> T) -> T {
        work(&mut Context::new(&self.0, &mut self.0.state.lock()))
    }

    /// What the driver watches.
    pub(super) fn watches(&self) -> Vec<(RawFd, Interest)> {
        let state = self.0.state.lock();
        state.watches.iter().map(|w| (w.0, w.1)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_is_there_as_often_as_it_was_loaded() {
        assert!(load(b"no_such_drv").is_none() && unload(b"no_such_drv").is_none());
        let command = b"trace_file_drv and no more";
        assert!(load(b"trace_file_drv").is_some() && load(b"trace_file_drv") == Some(false));
        assert!(matches!(start(command, true), Some(Err(Error::Badarg))));
        assert!(start(b"trace_file_driver n /folder/x", true).is_none());
        assert_eq!(unload(b"trace_file_drv"), Some(false));
        assert!(unload(b"trace_file_drv").is_some());
    }

    #[test]
    fn a_driver_that_is_linked_in_is_always_there() {
        assert!(is_linked_in(b"ram_file_drv") && !is_linked_in(b"trace_file_drv"));
        assert!(linked_in().any(|name| name == "ram_file_drv"));
        assert!(matches!(start(b"ram_file_drv", false), Some(Ok(_))));
    }
}
