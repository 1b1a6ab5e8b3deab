//! Drivers in C, as ports know them. The loader of such a driver adds it here under its name, and takes it out again.
//!
//! A driver in C has a lock for all of its ports, or one for each. It may call back for any of its ports while it runs,
//! so it is called without the port's own lock, which is always the second to be taken.

use std::sync::Arc;

use parking_lot::RwLock;

use super::framing::Framing;
use super::open::Error;
use super::{Port, Refused};
use crate::process::Peer;
use crate::term::{Pid, Term};
use crate::value::iolist::Output;

/// A driver that can be opened by name.
pub(crate) trait Library: Send + Sync {
    /// Whether `busy_limits_msgq` may be given.
    fn has_busy_queue(&self) -> bool;

    /// Begins its work of a port that is in the table: it is the port's driver from before its first call.
    ///
    /// # Errors
    /// What the driver says.
    fn open(&self, port: &Arc<Port>, command: &[u8], mode: Mode, caller: Pid) -> Result<(), Error>;
}

/// Options of a port that say what its owner hears.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mode {
    pub(crate) framing: Framing,
    pub(crate) binary: bool,
    pub(crate) eof: bool,
}

/// A driver's work for one port.
pub(crate) trait Linked: Send + Sync {
    /// Takes what `caller`, if it is a process, has sent, unless `admit` refuses it: that is asked while nobody else calls
    /// the driver, right before it.
    ///
    /// # Errors
    /// What `admit` says, or the port is gone.
    fn command(
        &self,
        caller: Option<Pid>,
        data: Output,
        admit: &mut dyn FnMut() -> Result<(), Refused>,
    ) -> Result<(), Refused>;
    /// Does it take what is sent to it as a vector?
    fn has_outputv(&self) -> bool;
    /// Has it operations of `port_call/3`?
    fn takes_calls(&self) -> bool;
    /// `port_control/3`: the answer, and whether it is to be a binary.
    fn control(&self, caller: Pid, command: u32, data: &[u8]) -> Option<(Vec<u8>, bool)>;
    /// `port_call/3`, in the external format.
    fn call(&self, caller: Pid, operation: u32, data: &mut [u8]) -> Option<Vec<u8>>;
    /// Ends the port: when its queue is empty, or at once where the reason is `killed`. Its owner gets a message, if it
    /// `asked`.
    fn close(&self, reason: Term<'_>, asked: bool);
    /// Waits until nobody calls it.
    fn wait(&self);
    /// Has it one lock for all of its ports?
    fn is_locked_as_driver(&self) -> bool;
    /// Bytes in its queue.
    fn queued_bytes(&self) -> usize;
    /// Whom it monitors.
    fn monitored(&self) -> Vec<Pid>;
    /// May a command be forced on it while it is busy?
    fn is_busy_softly(&self) -> bool;
}

type Row = (Vec<u8>, Arc<dyn Library>);

static LIBRARIES: RwLock<Vec<Row>> = RwLock::new(Vec::new());

/// Has `library` be found under `name`, in place of another.
pub(crate) fn add(name: &[u8], library: Arc<dyn Library>) {
    let mut all = LIBRARIES.write();
    all.retain(|row| row.0 != name);
    all.push((name.to_vec(), library));
}

/// Has nothing be found under `name`.
pub(crate) fn remove(name: &[u8]) {
    LIBRARIES.write().retain(|row| row.0 != name);
}

/// The driver that a command names: its first word.
pub(super) fn find(command: &[u8]) -> Option<Arc<dyn Library>> {
    let word = command.split(|byte| *byte == b' ').next()?;
    let all = LIBRARIES.read();
    let (_, library) = all.iter().find(|row| row.0 == word)?;
    Some(library.clone())
}

impl Port {
    /// Can callers force a command on it while it is busy?
    pub(crate) fn is_busy_softly(&self) -> bool {
        let state = self.state.lock();
        match (&state.linked, &state.driver) {
            (Some(linked), _) => linked.is_busy_softly(),
            (None, driver) => driver
                .as_ref()
                .is_some_and(|driver| driver.is_busy_softly()),
        }
    }

    /// The driver begins its work.
    pub(crate) fn set_linked(&self, linked: Arc<dyn Linked>) {
        self.state.lock().linked = Some(linked);
    }

    /// The driver has ended its work. Whether the port was there until now.
    pub(crate) fn take_linked(&self) -> Option<Arc<dyn Linked>> {
        self.state.lock().linked.take()
    }

    /// Sends the end of the port with `reason` to its links and monitors; `false` if they have it already.
    pub(crate) fn leave_all(&self, reason: Term<'_>) -> bool {
        let mut state = self.state.lock();
        if state.gone {
            return false;
        }
        self.leave(&mut state, reason);
        true
    }

    /// Is it gone for its links and monitors?
    pub(crate) fn is_gone(&self) -> bool {
        self.state.lock().gone
    }

    /// Ends the link to its owner, which hears nothing of its end.
    pub(crate) fn unlink_owner(&self) {
        let mut state = self.state.lock();
        let owner = Peer::from(state.owner);
        if state.links.remove(&owner) {
            let from = self.peer();
            let owner = state.owner;
            drop(state);
            crate::process::deliver(owner, crate::process::Signal::Unlink { from, id: 0 });
        }
    }
}
