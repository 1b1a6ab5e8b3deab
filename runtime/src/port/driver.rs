//! Drivers, which do the work of ports. `streams` has the one of programs and descriptors. The others are opened by
//! name: those that OTP links in, at any time; those that OTP has as libraries in C and that tracing needs, once
//! `erl_ddll` has been asked to load them, as in OTP.
//!
//! A driver knows nothing of ports and processes. It is called under its port's lock with a [`Context`], through which
//! it sends to the port's owner and says what it waits for.

use std::collections::BTreeMap;
use std::os::fd::RawFd;
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::io::Errno;

use super::open::Error;
use super::ram_file::RamFile;
use super::trace_file::TraceFile;
use super::trace_ip::TraceIp;
use super::{Port, State};
use crate::heap::Heap;
use crate::sched::timers;
use crate::sys::chance::poll::{self, Interest};
use crate::term::Term;

/// Why a driver ends its port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// It has come to its end.
    Normal,
    /// With the error as the reason. What is queued is lost.
    Error(Errno),
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

    /// In ERTS it takes what is sent to it as a vector, which tracers see.
    fn has_outputv(&self) -> bool {
        false
    }

    /// `port_control/3`; `None` where there is no such command.
    fn control(&mut self, _command: u32) -> Option<Result<Vec<u8>, End>> {
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

    /// Bytes that it has taken and not yet written.
    fn queued_bytes(&self) -> usize {
        0
    }

    /// Whether a port that is closed waits until all is written.
    fn must_flush(&self) -> bool {
        false
    }

    /// Before the machine ends: writes what must not be lost.
    fn flush(&mut self) {}
}

/// The driver's access to its port, whose lock is held.
pub(super) struct Context<'a> {
    pub(super) port: &'a Arc<Port>,
    pub(super) state: &'a mut State,
}

impl Context<'_> {
    /// Sends `{Port, What}` to the owner.
    pub(super) fn tell_owner(&self, what: impl for<'h> FnOnce(&'h Heap) -> Term<'h>) {
        let id = self.port.id;
        self.port.tell(self.state.owner, |heap| {
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

    /// Takes back all watches on `fd`, which the driver is about to close.
    pub(super) fn unwatch(&mut self, fd: RawFd) {
        let gone = self.state.watches.extract_if(.., |watch| watch.0 == fd);
        gone.for_each(|(_, _, id)| _ = poll::unwatch(id));
    }

    /// Has `timeout` called in some milliseconds.
    pub(super) fn call_after(&self, milliseconds: u64) {
        let port = Arc::downgrade(self.port);
        timers::run_after(milliseconds, move || {
            if let Some(port) = port.upgrade() {
                port.timeout();
            }
        });
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

/// A port that is not open, for a driver that is called without one: what it sends goes to nobody.
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
        work(&mut Context {
            port: &self.0,
            state: &mut self.0.state.lock(),
        })
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
