//! Drivers: what is behind a port that is no program. Those that OTP has as libraries in C and tracing needs are
//! here; a port of one can be opened once `erl_ddll` has been asked to load it, as in OTP.

use std::collections::BTreeMap;
use std::os::fd::RawFd;

use parking_lot::Mutex;
use rustix::io::Errno;

use super::open::Error;
use super::trace_file::TraceFile;
use super::trace_ip::TraceIp;
use crate::sys::poll::Interest;

/// What a port of the driver does. An error ends the port with it as the reason.
pub(super) trait Driver: Send {
    /// Takes what is sent to the port.
    fn output(&mut self, data: &[u8]) -> Result<(), Errno>;

    /// `port_control/3`; `None` where there is no such command.
    fn control(&mut self, command: u32) -> Option<Result<Vec<u8>, Errno>>;

    /// What `control` answers is a binary, not a list.
    fn answers_binaries(&self) -> bool {
        false
    }

    /// Milliseconds after which `timeout` is to be called, again and again.
    fn timeout_ms(&self) -> Option<u64> {
        None
    }

    /// The time is up.
    fn timeout(&mut self) -> Result<(), Errno> {
        Ok(())
    }

    /// The descriptors that it waits for now.
    fn watches(&self) -> Vec<(RawFd, Interest)> {
        Vec::new()
    }

    /// One of them is ready, or was.
    fn ready(&mut self, _fd: RawFd, _interest: Interest) {}
}

/// Starts a driver: its name, and how it opens a port with what follows the name in the command.
type Row = (&'static str, fn(&[u8]) -> Result<Box<dyn Driver>, Error>);

const DRIVERS: &[Row] = &[
    ("trace_file_drv", |arguments| {
        Ok(Box::new(TraceFile::open(arguments)?))
    }),
    ("trace_ip_drv", |arguments| {
        Ok(Box::new(TraceIp::open(arguments)?))
    }),
];

/// How often a driver has been loaded and not unloaded.
static LOADED: Mutex<BTreeMap<&'static str, usize>> = Mutex::new(BTreeMap::new());

/// Loads a driver; whether it was not loaded before. `None` where there is no such driver.
pub(crate) fn load(name: &[u8]) -> Option<bool> {
    let (name, _) = DRIVERS.iter().find(|row| row.0.as_bytes() == name)?;
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

/// The drivers that are loaded.
pub(crate) fn loaded() -> Vec<&'static str> {
    LOADED.lock().keys().copied().collect()
}

/// Starts the driver that a command names, if one does: its first word.
pub(super) fn start(command: &[u8]) -> Option<Result<Box<dyn Driver>, Error>> {
    let word = command.split(|byte| *byte == b' ').next().unwrap_or(&[]);
    let (name, start) = DRIVERS.iter().find(|row| row.0.as_bytes() == word)?;
    let is_loaded = LOADED.lock().contains_key(name);
    is_loaded.then(|| start(&command[name.len()..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_is_there_as_often_as_it_was_loaded() {
        assert!(load(b"no_such_drv").is_none() && unload(b"no_such_drv").is_none());
        let command = b"trace_file_drv and no more";
        assert!(load(b"trace_file_drv").is_some() && load(b"trace_file_drv") == Some(false));
        assert!(matches!(start(command), Some(Err(Error::Badarg))));
        assert!(loaded().contains(&"trace_file_drv"));
        assert!(start(b"trace_file_driver n /folder/x").is_none());
        assert_eq!(unload(b"trace_file_drv"), Some(false));
        assert!(unload(b"trace_file_drv").is_some());
    }
}
