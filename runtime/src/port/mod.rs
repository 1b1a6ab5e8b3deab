//! Ports, through which processes talk to programs, descriptors and drivers. Source: `io.c`, OTP 29.
//!
//! A lock guards a port's state and its driver. Processes call into the port (`bif`), a scheduler calls it when a
//! descriptor is ready, and a thread of its own tells it that its program has ended. All of them send what processes
//! must hear while they hold the lock, so that it is heard in order. Nothing that may come back to the port is sent
//! under the lock.
//!
//! A driver in C has locks of its own, and is called without the port's ([`linked`]).
//!
//! Differs from ERTS: the caller of a command runs it, so that no command waits in a queue between a process and a port.

pub(crate) mod driver;
pub(crate) mod framing;
mod inet;
pub(crate) mod linked;
pub(crate) mod open;
pub(crate) mod pool;
mod ram_file;
pub(crate) mod signals;
mod streams;
mod trace_file;
mod trace_ip;

use std::collections::BTreeSet;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, MutexGuard, RwLock};

use driver::{Context, Driver, End, Timer};
use linked::Linked;
pub(crate) use open::open_forker;

use crate::dist::capabilities::Capabilities;
use crate::dist::entry::DistEntry;
use crate::heap::{Heap, Message};
use crate::process::order::replay;
use crate::process::refs::RefNumbers;
use crate::process::registry::{self, Named};
use crate::process::suspension::go_on;
use crate::process::{Peer, Signal, deliver};
use crate::sched::ptab::{PTab, PTabElement, pin};
use crate::sys::chance::paths;
use crate::sys::chance::poll::{self, Interest, Ready, WatchId};
use crate::sys::errno;
use crate::term::atom::atom;
use crate::term::{Pid, Port as PortId, Term, am};
use crate::trace::ports::Traced;
use crate::trace::sysmon::{self, PortOp};
use crate::trace::{Event, sysprof};
use crate::value::iolist::Output;

/// Ports there may be (`+Q`). Source: `ERTS_DEFAULT_MAX_PORTS`.
static PORT_LIMIT: AtomicUsize = AtomicUsize::new(65_536);

static INPUT_BYTES: AtomicU64 = AtomicU64::new(0);
static OUTPUT_BYTES: AtomicU64 = AtomicU64::new(0);

/// The port table.
pub(crate) fn table() -> &'static PTab<Port> {
    static TABLE: OnceLock<PTab<Port>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let limit = PORT_LIMIT.load(Ordering::Relaxed);
        match replay::last_port() {
            None => PTab::new(limit),
            Some(last) => PTab::above(limit, last),
        }
    })
}

/// Read while the table changes, written while all of it is looked at.
static CHANGES: RwLock<()> = RwLock::new(());

/// The ports that there are at one moment.
pub(crate) fn all() -> Vec<PortId> {
    let _unchanged = CHANGES.write();
    table().iter(&pin()).map(|port| port.id).collect()
}

/// Sets how many ports there may be (`+Q`), before there are any.
pub(crate) fn set_port_limit(limit: usize) {
    PORT_LIMIT.store(limit, Ordering::Relaxed);
}

/// Bytes that all ports have read and written.
#[must_use]
pub(crate) fn io_bytes() -> (u64, u64) {
    let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    (read(&INPUT_BYTES), read(&OUTPUT_BYTES))
}

/// Adds to what all ports and one port have read or written.
fn count(all: &AtomicU64, one: &mut u64, bytes: usize) {
    all.fetch_add(bytes as u64, Ordering::Relaxed);
    *one += bytes as u64;
}

/// A port.
pub(crate) struct Port {
    pub(crate) id: PortId,
    /// Which sessions trace it, and how.
    pub(crate) tracee: crate::trace::Tracee,
    pub(crate) state: Mutex<State>,
}

impl PTabElement for Port {
    fn data(&self) -> u64 {
        self.id.0
    }
}

impl Ready for Port {
    fn ready(self: Arc<Self>, fd: RawFd, interest: Interest) {
        let _runs = sysprof::port_runs(self.id);
        let is_input = interest == Interest::Read;
        if is_input {
            self.traced().begin(Term::small(0));
        }
        let mut state = self.state.lock();
        let operation = if is_input {
            PortOp::Input
        } else {
            PortOp::Output
        };
        let works = sysmon::port_works(self.id, operation);
        state.watches.retain(|w| (w.0, w.1) != (fd, interest));
        self.drive(state, |driver, port| driver.ready(port, fd, interest));
        drop(works);
        if is_input {
            self.traced().end(Term::small(0));
        }
    }
}

pub(crate) struct State {
    pub(crate) owner: Pid,
    pub(crate) name: Vec<u8>,
    pub(crate) links: BTreeSet<Peer>,
    pub(crate) monitors: Vec<(RefNumbers, Pid)>,
    pub(crate) data: Message,
    pub(crate) parallelism: bool,
    pub(crate) os_pid: Option<i32>,
    pub(crate) input_bytes: u64,
    pub(crate) output_bytes: u64,
    pub(crate) queued_bytes: usize,
    pub(crate) gone: bool,

    /// What is behind the port; `None` behind the one that starts programs, and behind one that is gone.
    driver: Option<Box<dyn Driver>>,
    /// What is behind the port, where it is a driver in C.
    pub(crate) linked: Option<Arc<dyn Linked>>,
    /// The descriptors that the driver waits for.
    watches: Vec<(RawFd, Interest, WatchId)>,
    /// Queued bytes at which callers must wait, and below which they go on.
    busy: (usize, usize),
    is_busy: bool,
    /// The processes that wait for the port not to be busy.
    waiting: Vec<Pid>,
    /// When the driver wants to be called.
    timer: Option<Timer>,
    /// How often that has been set.
    timers_set: u64,
    /// Set when the port is to end once all is written: why, and whether its owner asked for it.
    closing: Option<(Message, bool)>,
    /// The connection to another node that it controls.
    connection: Option<Connection>,
}

/// A connection to another node, which a port controls.
#[derive(Clone)]
pub(crate) struct Connection {
    pub(crate) entry: Arc<DistEntry>,
    pub(crate) number: u32,
}

impl State {
    /// Of a port without a driver.
    fn new(owner: Pid, name: Vec<u8>) -> State {
        State {
            owner,
            name,
            links: BTreeSet::new(),
            monitors: Vec::new(),
            data: Message::copy_of(am::undefined.term()),
            parallelism: false,
            os_pid: None,
            input_bytes: 0,
            output_bytes: 0,
            queued_bytes: 0,
            gone: false,
            driver: None,
            linked: None,
            watches: Vec::new(),
            busy: open::BUSY_BYTES,
            is_busy: false,
            waiting: Vec::new(),
            timer: None,
            timers_set: 0,
            closing: None,
            connection: None,
        }
    }

    /// Refuses what `waits` sends while the port is busy; it is woken when the port takes data again.
    fn refuse_if_busy(&mut self, waits: Option<Pid>) -> Result<(), Refused> {
        let Some(waits) = waits.filter(|_| self.is_busy) else {
            return Ok(());
        };
        if !self.waiting.contains(&waits) {
            self.waiting.push(waits);
        }
        Err(Refused::Busy)
    }

    /// Says whether callers must wait; those that did go on when they need not.
    fn set_busy(&mut self, busy: bool) {
        self.is_busy = busy;
        if !busy {
            wake(&mut self.waiting);
        }
    }

    /// Does the driver take what is sent to it as a vector?
    fn has_outputv(&self) -> bool {
        let linked = self.linked.as_ref();
        let driver = self.driver.as_ref();
        linked.is_some_and(|linked| linked.has_outputv())
            || driver.is_some_and(|driver| driver.has_outputv())
    }

    /// Is it a socket?
    fn is_socket(&self) -> bool {
        let driver = self.driver.as_ref();
        driver.is_some_and(|driver| driver.is_socket())
    }

    /// Whether the driver must write before the port ends.
    fn must_flush(&self) -> bool {
        let driver = self.driver.as_ref();
        driver.is_some_and(|driver| driver.must_flush())
    }
}

/// Why a command was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The port is gone, or going.
    Gone,
    /// The caller is to wait.
    Busy,
}

impl Port {
    /// The port as a peer of processes.
    fn peer(&self) -> Peer {
        Peer::from(self.id)
    }

    /// Its identifier.
    pub(crate) fn term(&self) -> Term<'static> {
        self.id.term()
    }

    /// The port, as tracing sees it.
    pub(crate) fn traced(&self) -> Traced<'_> {
        Traced {
            tracee: &self.tracee,
            id: self.id.term(),
        }
    }

    /// The port with this identifier.
    pub(crate) fn lookup(id: PortId) -> Option<Arc<Port>> {
        table().lookup(id.0)
    }

    /// The driver in C behind it, as long as the port is open.
    fn linked(&self) -> Option<Arc<dyn Linked>> {
        self.state.lock().linked.clone()
    }

    /// Is a driver in C behind it?
    pub(crate) fn is_linked(&self) -> bool {
        self.linked().is_some()
    }

    /// The part of this command that a socket sends; `None` for other ports. The tag of the answer before it differs from
    /// run to run.
    pub(crate) fn payload<'d>(&self, data: &'d [u8]) -> Option<&'d [u8]> {
        let is_socket = self.state.lock().is_socket();
        is_socket.then(|| inet::payload(data)).flatten()
    }

    /// Is it a socket?
    pub(crate) fn is_socket(&self) -> bool {
        self.state.lock().is_socket()
    }

    /// Is it a socket of a recorded run, which is replayed?
    pub(crate) fn is_replayed(&self) -> bool {
        let state = self.state.lock();
        state.driver.as_ref().is_some_and(|it| it.is_replayed())
    }

    /// Its owner.
    pub(crate) fn owner(&self) -> Pid {
        self.state.lock().owner
    }

    /// Bytes read so far.
    pub(crate) fn took_input(&self, bytes: usize) {
        count(&INPUT_BYTES, &mut self.state.lock().input_bytes, bytes);
    }

    /// Sends a message.
    pub(crate) fn tell(&self, to: Pid, build: impl for<'h> FnOnce(&'h Heap) -> Term<'h>) {
        let message = Heap::detached().into_message(build);
        self.traced().sent(to, message.term());
        deliver(to, Signal::from_outside(message));
    }

    /// Sends a message of which no tracer of the port hears.
    fn post(&self, to: Pid, build: impl for<'h> FnOnce(&'h Heap) -> Term<'h>) {
        let message = Heap::detached().into_message(build);
        deliver(to, Signal::from_outside(message));
    }

    /// Has the driver do something, and the port do what follows of that. `None` when there is no driver, or
    /// the port ends.
    fn drive<T>(
        self: &Arc<Self>,
        mut state: MutexGuard<'_, State>,
        work: impl FnOnce(&mut dyn Driver, &mut Context<'_>) -> Result<T, End>,
    ) -> Option<T> {
        let mut driver = state.driver.take()?;
        let mut context = Context::new(self, &mut state);
        let done = work(&mut *driver, &mut context);
        let (end, unlinks_owner) = (context.end, context.unlinks_owner);
        state.queued_bytes = driver.queued_bytes();
        let sets_busy = driver.sets_busy();
        state.driver = Some(driver);
        let (result, end) = match done {
            Ok(result) => (Some(result), end),
            Err(end) => (None, Some(end)),
        };
        let owner = state.owner;
        let unlinked = unlinks_owner && state.links.remove(&owner.into());
        match end {
            None => self.settle(state, sets_busy),
            Some(End::Normal) => self.close(state, am::normal.term(), false),
            Some(End::Error(e)) => {
                let reason = atom(errno::errno_name(e.raw_os_error()));
                self.break_off(state, reason);
            }
            Some(End::Killed) => self.break_off(state, am::killed.term()),
        }
        if unlinked {
            // Not under the lock: a process that is gone answers at once.
            let from = self.peer();
            deliver(owner, Signal::Unlink { from, id: 0 });
        }
        result
    }

    /// Ends it at once, also where it was to be closed when all is written.
    fn break_off(self: &Arc<Self>, mut state: MutexGuard<'_, State>, reason: Term<'_>) {
        let asked = state.closing.take().is_some_and(|(_, asked)| asked);
        self.terminate(state, reason, asked);
    }

    /// Compares what is queued with the limits, unless the driver says itself when it is busy, and ends a port that only
    /// waits for it to be written.
    fn settle(self: &Arc<Self>, mut state: MutexGuard<'_, State>, sets_busy: bool) {
        let (high, low) = state.busy;
        if sets_busy {
            // The driver has.
        } else if state.queued_bytes >= high {
            state.set_busy(true);
        } else if state.is_busy && state.queued_bytes < low.max(1) {
            state.set_busy(false);
        }
        if !state.must_flush()
            && let Some((reason, asked)) = state.closing.take()
        {
            self.terminate(state, reason.term(), asked);
        }
    }

    /// Has the driver take `data`. `caller` is woken when a busy port takes data again; without one,
    /// the data is taken whether the port is busy or not. `tell` tells tracers of it, before a driver in C does.
    fn command(
        self: &Arc<Self>,
        data: Output,
        caller: Option<Pid>,
        force: bool,
        tell: impl FnOnce(),
    ) -> Result<(), Refused> {
        let _runs = sysprof::port_runs(self.id);
        let mut state = self.state.lock();
        if state.gone || state.closing.is_some() {
            return Err(Refused::Gone);
        }
        let waits = caller.filter(|_| !force);
        state.refuse_if_busy(waits)?;
        if let Some(linked) = state.linked.clone() {
            drop(state);
            let (bytes, mut tell) = (data.len(), Some(tell));
            return linked.command(caller, data, &mut || {
                let mut state = self.state.lock();
                // The call before may have made it busy.
                state.refuse_if_busy(waits)?;
                count(&OUTPUT_BYTES, &mut state.output_bytes, bytes);
                drop(state);
                if let Some(tell) = tell.take() {
                    tell();
                }
                Ok(())
            });
        }
        // Shells are given their commands through a pipe. Both names of a run's folder are as long.
        let data = match state.os_pid {
            Some(_) => paths::real(data.into_bytes()).into(),
            None => data,
        };
        count(&OUTPUT_BYTES, &mut state.output_bytes, data.len());
        self.drive(state, |driver, port| {
            port.caller = caller;
            driver.output_vector(port, data)
        });
        tell();
        Ok(())
    }

    /// `port_control/3`: the answer, and whether it is to be a binary. `None` where the port has no such command.
    pub(crate) fn control(
        self: &Arc<Self>,
        caller: Pid,
        command: u32,
        data: &[u8],
    ) -> Option<(Vec<u8>, bool)> {
        let _runs = sysprof::port_runs(self.id);
        if let Some(linked) = self.linked() {
            return linked.control(caller, command, data);
        }
        let answer = self.drive(self.state.lock(), |driver, port| {
            port.caller = Some(caller);
            let binary = driver.answers_binaries();
            let answer = driver.control(port, command, data);
            Ok(answer.map(|done| {
                let answer = done.unwrap_or_else(|end| {
                    port.end(end);
                    vec![0]
                });
                (answer, binary)
            }))
        });
        answer?
    }

    /// Has it operations of `port_call/3`?
    pub(crate) fn takes_calls(&self) -> bool {
        self.linked().is_some_and(|linked| linked.takes_calls())
    }

    /// `port_call/3`: the answer in the external format. `None` where the port has no such operation.
    pub(crate) fn call(&self, caller: Pid, operation: u32, data: &mut [u8]) -> Option<Vec<u8>> {
        let _runs = sysprof::port_runs(self.id);
        self.linked()?.call(caller, operation, data)
    }

    /// Makes it the controller of a connection to the node of `entry`, which this process has set up: the number of the
    /// connection. `None` where it cannot be.
    pub(crate) fn control_connection(
        self: &Arc<Self>,
        entry: &Arc<DistEntry>,
        capabilities: Capabilities,
        setup: Pid,
    ) -> Option<u32> {
        let mut state = self.state.lock();
        let driver = state.driver.as_ref();
        let is_able = driver.is_some_and(|driver| driver.is_busy_softly());
        if state.gone || state.closing.is_some() || state.connection.is_some() || !is_able {
            return None;
        }
        let number = entry.connect(self.id.into(), capabilities, setup)?;
        let entry = Arc::clone(entry);
        state.connection = Some(Connection { entry, number });
        self.drive(state, |driver, port| {
            driver.serve_connection(port);
            Ok(())
        });
        Some(number)
    }

    /// Sends what waits for the connection that it controls.
    fn serve_connection(self: &Arc<Self>) {
        let _runs = sysprof::port_runs(self.id);
        self.drive(self.state.lock(), |driver, port| {
            driver.serve_connection(port);
            Ok(())
        });
    }

    /// The program has ended.
    fn program_ended(self: &Arc<Self>, status: i32) {
        let state = self.state.lock();
        self.drive(state, |driver, port| driver.program_ended(port, status));
    }

    /// A process that the driver monitors has exited.
    fn process_exited(self: &Arc<Self>, monitor: RefNumbers) {
        let _runs = sysprof::port_runs(self.id);
        self.drive(self.state.lock(), |driver, port| {
            driver.process_exited(port, monitor);
            Ok(())
        });
    }

    /// The time that the driver asked for is up, if it has not asked for another since.
    fn timeout(self: &Arc<Self>, number: u64) {
        let _runs = sysprof::port_runs(self.id);
        let mut state = self.state.lock();
        if state.timer.take_if(|timer| timer.is(number)).is_none() {
            return;
        }
        let _works = sysmon::port_works(self.id, PortOp::Timeout);
        self.drive(state, |driver, port| driver.timeout(port));
    }

    /// Ends the port with `reason`: at once, or when a lent descriptor has taken what is queued. Its owner gets a
    /// message, if it `asked` for it.
    pub(crate) fn close(
        self: &Arc<Self>,
        mut state: MutexGuard<'_, State>,
        reason: Term<'_>,
        asked: bool,
    ) {
        if state.gone || state.closing.is_some() {
            return;
        }
        if let Some(linked) = state.linked.clone() {
            drop(state);
            linked.close(reason, asked);
            return;
        }
        if state.must_flush() {
            state.closing = Some((Message::copy_of(reason), asked));
            return;
        }
        self.terminate(state, reason, asked);
    }

    fn terminate(
        self: &Arc<Self>,
        mut state: MutexGuard<'_, State>,
        reason: Term<'_>,
        asked: bool,
    ) {
        self.leave(&mut state, reason);
        if let Some(mut driver) = state.driver.take() {
            let mut context = Context::new(self, &mut state);
            driver.stop(&mut context);
            context.set_timer(None);
        }
        if asked {
            self.tell_closed(state.owner);
        }
    }

    /// Is in the table no more.
    fn remove(&self) {
        let _change = CHANGES.read();
        table().remove(self.id.0);
    }

    /// Is gone for all that know it, and sends its links and monitors the reason.
    pub(crate) fn leave(&self, state: &mut State, reason: Term<'_>) {
        state.gone = true;
        for (_, _, watch) in state.watches.drain(..) {
            poll::unwatch(watch);
        }
        self.traced().happened(Event::Closed, reason);
        if let Some(name) = registry::name_of(Named::Port(self.id)) {
            registry::unregister(registry::to_change_now(), name);
            self.traced().happened(Event::Unregister, name.term());
        }
        self.remove();
        if let Some(Connection { entry, number }) = state.connection.take() {
            let is_normal = reason == am::normal;
            let reason = if is_normal {
                am::connection_closed.term()
            } else {
                reason
            };
            entry.disconnected(number, reason);
        }
        let me = self.peer();
        for peer in std::mem::take(&mut state.links) {
            if let Some(pid) = peer.pid() {
                deliver(pid, Signal::link_exit(me, reason));
            }
        }
        for (reference, pid) in std::mem::take(&mut state.monitors) {
            let down = Signal::MonitorDown {
                reference,
                reason: Message::copy_of(reason),
                is_gone: false,
            };
            deliver(pid, down);
        }
        state.set_busy(false);
    }

    /// Tells the owner, which has asked for the end, that it has come.
    pub(crate) fn tell_closed(&self, owner: Pid) {
        // What tracers hear is shorter, as in OTP.
        self.traced().sent(owner, am::closed.term());
        self.post(owner, |heap| {
            heap.tuple(&[self.id.term(), am::closed.term()])
        });
    }

    /// Says whether callers must wait.
    pub(crate) fn set_busy(&self, busy: bool) {
        self.state.lock().set_busy(busy);
    }
}

/// Has processes that wait for a port go on: each tries its call again.
fn wake(waiting: &mut Vec<Pid>) {
    waiting.drain(..).for_each(go_on);
}

/// Before the machine ends: has drivers write what must not be lost.
pub(crate) fn flush() {
    let guard = pin();
    for port in table().iter(&guard) {
        let linked = {
            let mut state = port.state.lock();
            let State {
                driver, connection, ..
            } = &mut *state;
            if let Some(driver) = driver {
                driver.flush(connection.as_ref());
            }
            state.linked.clone()
        };
        if let Some(linked) = linked {
            linked.close(am::killed.term(), false);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
