//! Ports: programs and descriptors that processes talk to. Source: `io.c`, `sys_drivers.c`, OTP 29.
//!
//! A port's state is under its lock. Processes call into it (`bif`), a scheduler calls it when a
//! descriptor is ready, a thread of its own tells it that its program has ended. All of them send what
//! processes must hear while they hold the lock, so that it is heard in order; nothing that may come
//! back to the port is sent under it.
//!
//! Differs from ERTS: commands are run by their caller, and a port that is sent `{Owner, {command, _}}`
//! while it is busy queues it.

pub(crate) mod driver;
mod framing;
pub(crate) mod open;
pub(crate) mod signals;
mod trace_file;
mod trace_ip;

use std::collections::{BTreeSet, VecDeque};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use rustix::io::Errno;

use framing::{Framing, Input, Piece};
pub(crate) use open::open_forker;

use crate::heap::{Heap, Message};
use crate::process::refs::RefNumbers;
use crate::process::registry::{self, Named};
use crate::process::suspension::NOBODY;
use crate::process::{Peer, Signal, deliver};
use crate::sched::ptab::{PTab, PTabElement, pin};
use crate::sys::errno;
use crate::sys::poll::{self, Interest, Ready, WatchId};
use crate::term::atom::atom;
use crate::term::{Pid, Port as PortId, Term, am};
use crate::trace::Event;
use crate::trace::ports::Traced;
use crate::trace::sysprof;

/// Ports there may be (`+Q`). Source: `ERTS_DEFAULT_MAX_PORTS`.
static PORT_LIMIT: AtomicUsize = AtomicUsize::new(65_536);

/// Bytes of one read. Source: `ERTS_SYS_READ_BUF_SZ`.
const READ_BYTES: usize = 64 * 1024;

static INPUT_BYTES: AtomicU64 = AtomicU64::new(0);
static OUTPUT_BYTES: AtomicU64 = AtomicU64::new(0);

/// The port table.
pub(crate) fn table() -> &'static PTab<Port> {
    static TABLE: OnceLock<PTab<Port>> = OnceLock::new();
    TABLE.get_or_init(|| PTab::new(PORT_LIMIT.load(Ordering::Relaxed)))
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
        let has_driver = self.state.lock().driver.is_some();
        match interest {
            _ if has_driver => self.driver_ready(fd, interest),
            Interest::Read => self.ready_input(),
            Interest::Write => self.ready_output(),
        }
    }
}

/// A descriptor of a port.
enum Descriptor {
    /// Closed with the port.
    Own(OwnedFd),
    /// The program's: `{fd, In, Out}`.
    Lent(RawFd),
}

impl Descriptor {
    fn raw(&self) -> RawFd {
        match self {
            Descriptor::Own(fd) => fd.as_raw_fd(),
            Descriptor::Lent(fd) => *fd,
        }
    }
}

/// How a port was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mode {
    framing: Framing,
    binary: bool,
    eof: bool,
    exit_status: bool,
    pub(crate) parallelism: bool,
    /// Queued bytes at which callers must wait, and below which they go on.
    busy: (usize, usize),
}

pub(crate) struct State {
    pub(crate) owner: Pid,
    pub(crate) name: Vec<u8>,
    pub(crate) mode: Mode,
    pub(crate) links: BTreeSet<Peer>,
    pub(crate) monitors: Vec<(RefNumbers, Pid)>,
    pub(crate) data: Message,
    pub(crate) gone: bool,

    input: Option<Descriptor>,
    pub(crate) input_watch: Option<WatchId>,
    pub(crate) reader: Input,
    pub(crate) input_bytes: u64,

    output: Option<Descriptor>,
    pub(crate) output_watch: Option<WatchId>,
    pub(crate) queue: VecDeque<Vec<u8>>,
    /// Bytes of the queue's first piece that are written.
    pub(crate) written: usize,
    pub(crate) queued_bytes: usize,
    pub(crate) output_bytes: u64,
    pub(crate) is_busy: bool,
    /// Who waits for the port not to be busy.
    pub(crate) waiting: Vec<Pid>,
    /// Set when the port is to end once all is written: why, and whether its owner asked for it.
    pub(crate) closing: Option<(Message, bool)>,

    /// What takes the port's data, where that is no descriptor.
    driver: Option<Box<dyn driver::Driver>>,
    /// The descriptors that the driver waits for.
    pub(crate) driver_watches: Vec<(RawFd, Interest, WatchId)>,

    pub(crate) os_pid: Option<i32>,
    /// Exit status of the program that has ended.
    pub(crate) exited: Option<i32>,
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

    /// The port, as those who trace it see it.
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

    fn tell(&self, to: Pid, build: impl for<'h> FnOnce(&'h Heap) -> Term<'h>) {
        let message = Heap::detached().into_message(build);
        self.traced().sent(to, message.term());
        let from = crate::process::SYSTEM;
        deliver(to, Signal::own(message, from));
    }

    /// Sends a message of which no tracer of the port hears.
    fn post(&self, to: Pid, build: impl for<'h> FnOnce(&'h Heap) -> Term<'h>) {
        let message = Heap::detached().into_message(build);
        deliver(to, Signal::own(message, crate::process::SYSTEM));
    }

    /// Has the port called when there is something to read.
    fn watch_input(self: &Arc<Self>, state: &mut State) {
        if let Some(input) = &state.input {
            let watch = poll::watch(input.raw(), Interest::Read, self.clone());
            state.input_watch = Some(watch);
        }
    }

    fn ready_input(self: &Arc<Self>) {
        let _runs = sysprof::port_runs(self.id);
        self.traced().begins(Term::small(0));
        self.take_input();
        self.traced().ends(Term::small(0));
    }

    fn take_input(self: &Arc<Self>) {
        let mut state = self.state.lock();
        state.input_watch = None;
        let Some(input) = state.input.as_ref().filter(|_| !state.gone) else {
            return;
        };
        // Where others read it too, what there was may be gone: nobody is to wait for more here.
        if matches!(input, Descriptor::Lent(fd) if !poll::is_readable(*fd)) {
            return self.watch_input(&mut state);
        }
        let mut bytes = vec![0; READ_BYTES];
        match crate::sys::file::read(input.raw(), &mut bytes) {
            Ok(0) => {
                state.input = None;
                let rest = state.reader.finish();
                self.deliver_pieces(&mut state, rest);
                self.end_of_input(state);
            }
            Ok(n) => {
                INPUT_BYTES.fetch_add(n as u64, Ordering::Relaxed);
                state.input_bytes += n as u64;
                let pieces = state.reader.push(&bytes[..n]);
                self.deliver_pieces(&mut state, pieces);
                self.watch_input(&mut state);
            }
            Err(Errno::AGAIN | Errno::INTR) => self.watch_input(&mut state),
            Err(e) => self.fail(state, e),
        }
    }

    /// Sends `{Port, {data, Data}}` for each piece.
    fn deliver_pieces(&self, state: &mut State, pieces: impl IntoIterator<Item = Piece>) {
        let (owner, binary) = (state.owner, state.mode.binary);
        for piece in pieces {
            self.tell(owner, |heap| {
                let (tag, bytes) = match piece {
                    Piece::Data(bytes) => (None, bytes),
                    Piece::Eol(bytes) => (Some("eol"), bytes),
                    Piece::NoEol(bytes) => (Some("noeol"), bytes),
                };
                let data = if binary {
                    heap.binary_from_vec(bytes)
                } else {
                    heap.byte_list(&bytes)
                };
                let data = match tag {
                    Some(tag) => heap.tuple(&[atom(tag), data]),
                    None => data,
                };
                let data = heap.tuple(&[atom("data"), data]);
                heap.tuple(&[self.id.term(), data])
            });
        }
    }

    /// There is nothing more to read, or nothing to read and the program has ended.
    fn end_of_input(self: &Arc<Self>, state: parking_lot::MutexGuard<'_, State>) {
        if state.mode.exit_status {
            let Some(status) = state.exited else {
                // Goes on when the program ends.
                return;
            };
            self.tell(state.owner, |heap| {
                let status = heap.tuple(&[atom("exit_status"), Term::small(status.into())]);
                heap.tuple(&[self.id.term(), status])
            });
        }
        if state.mode.eof {
            self.tell(state.owner, |heap| {
                heap.tuple(&[self.id.term(), atom("eof")])
            });
            return;
        }
        self.close(state, am::normal.term(), false);
    }

    /// The program has ended.
    fn program_ended(self: &Arc<Self>, status: i32) {
        let mut state = self.state.lock();
        state.exited = Some(status);
        if state.mode.exit_status && state.input.is_none() && !state.gone {
            self.end_of_input(state);
        }
    }

    fn fail(self: &Arc<Self>, mut state: parking_lot::MutexGuard<'_, State>, e: Errno) {
        state.queue.clear();
        state.queued_bytes = 0;
        let reason = atom(errno::errno_name(e.raw_os_error()));
        self.close(state, reason, false);
    }

    /// Writes `data`, or queues it. `caller` is woken when a busy port takes data again; without one,
    /// the data is taken whether the port is busy or not.
    fn command(self: &Arc<Self>, data: Vec<u8>, caller: Option<Pid>) -> Result<(), Refused> {
        let _runs = sysprof::port_runs(self.id);
        let mut state = self.state.lock();
        if state.gone || state.closing.is_some() {
            return Err(Refused::Gone);
        }
        if let Some(caller) = caller.filter(|_| state.is_busy) {
            if !state.waiting.contains(&caller) {
                state.waiting.push(caller);
            }
            return Err(Refused::Busy);
        }
        if let Some(driver) = &mut state.driver {
            let taken = driver.output(&data);
            state.output_bytes += data.len() as u64;
            OUTPUT_BYTES.fetch_add(data.len() as u64, Ordering::Relaxed);
            match taken {
                Ok(()) => self.watch_driver(&mut state),
                Err(e) => self.fail(state, e),
            }
            return Ok(());
        }
        let Some(header) = state.mode.framing.header(data.len()) else {
            self.fail(state, Errno::INVAL);
            return Ok(());
        };
        state.output_bytes += data.len() as u64;
        OUTPUT_BYTES.fetch_add(data.len() as u64, Ordering::Relaxed);
        if state.output.is_none() {
            // Opened for input only: what is sent to it goes nowhere.
            return Ok(());
        }
        for piece in [header, data] {
            if !piece.is_empty() {
                state.queued_bytes += piece.len();
                state.queue.push_back(piece);
            }
        }
        if state.output_watch.is_none() {
            self.write_queue(state);
        }
        Ok(())
    }

    /// `port_control/3`: the answer, and whether it is to be a binary. `None` where the port has no such command.
    pub(crate) fn control(self: &Arc<Self>, command: u32) -> Option<(Vec<u8>, bool)> {
        let _runs = sysprof::port_runs(self.id);
        let mut state = self.state.lock();
        let driver = state.driver.as_mut()?;
        let (done, binary) = (driver.control(command)?, driver.answers_binaries());
        match done {
            Ok(answer) => Some((answer, binary)),
            Err(e) => {
                self.fail(state, e);
                Some((vec![0], binary))
            }
        }
    }

    /// Has the driver called when a descriptor that it waits for is ready.
    fn watch_driver(self: &Arc<Self>, state: &mut State) {
        let wanted = state.driver.as_ref().map_or(Vec::new(), |d| d.watches());
        state.driver_watches.retain(|(fd, interest, id)| {
            let kept = wanted.contains(&(*fd, *interest));
            if !kept {
                poll::unwatch(*id);
            }
            kept
        });
        for (fd, interest) in wanted {
            let watches = &mut state.driver_watches;
            if !watches.iter().any(|w| (w.0, w.1) == (fd, interest)) {
                let id = poll::watch(fd, interest, self.clone());
                watches.push((fd, interest, id));
            }
        }
    }

    fn driver_ready(self: &Arc<Self>, fd: RawFd, interest: Interest) {
        let _runs = sysprof::port_runs(self.id);
        let mut state = self.state.lock();
        let this = |w: &(RawFd, Interest, WatchId)| (w.0, w.1) == (fd, interest);
        state.driver_watches.retain(|w| !this(w));
        if let Some(driver) = &mut state.driver {
            driver.ready(fd, interest);
            self.watch_driver(&mut state);
        }
    }

    /// Has the driver called when its time is up.
    fn start_timer(self: &Arc<Self>, state: &State) {
        let after = state.driver.as_ref().and_then(|driver| driver.timeout_ms());
        if let Some(milliseconds) = after {
            let port = Arc::downgrade(self);
            crate::sched::timers::run_after(milliseconds, move || {
                if let Some(port) = port.upgrade() {
                    port.timeout();
                }
            });
        }
    }

    fn timeout(self: &Arc<Self>) {
        let _runs = sysprof::port_runs(self.id);
        let mut state = self.state.lock();
        match state.driver.as_mut().map(|driver| driver.timeout()) {
            None => {}
            Some(Ok(())) => self.start_timer(&state),
            Some(Err(e)) => self.fail(state, e),
        }
    }

    fn ready_output(self: &Arc<Self>) {
        let _runs = sysprof::port_runs(self.id);
        let mut state = self.state.lock();
        state.output_watch = None;
        if !state.gone {
            self.write_queue(state);
        }
    }

    /// Writes as much of the queue as the descriptor takes; has the port called for the rest.
    fn write_queue(self: &Arc<Self>, mut state: parking_lot::MutexGuard<'_, State>) {
        let Some(fd) = state.output.as_ref().map(Descriptor::raw) else {
            return;
        };
        while let Some(piece) = state.queue.front() {
            let left = piece.len() - state.written;
            match crate::sys::file::write(fd, &piece[state.written..]) {
                Ok(n) => {
                    state.queued_bytes -= n;
                    if n == left {
                        state.queue.pop_front();
                        state.written = 0;
                    } else {
                        state.written += n;
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    let watch = poll::watch(fd, Interest::Write, self.clone());
                    state.output_watch = Some(watch);
                    break;
                }
                Err(e) => {
                    self.fail(state, e);
                    return;
                }
            }
        }
        let (high, low) = state.mode.busy;
        if state.queued_bytes >= high {
            state.is_busy = true;
        } else if state.is_busy && state.queued_bytes < low.max(1) {
            state.is_busy = false;
            wake(&mut state.waiting);
        }
        if state.queue.is_empty()
            && let Some((reason, asked)) = state.closing.take()
        {
            self.terminate(state, reason.term(), asked);
        }
    }

    /// Ends the port with `reason`: at once, or when a lent descriptor has taken what is queued. Its owner
    /// is told so, if it `asked` for it.
    pub(crate) fn close(
        self: &Arc<Self>,
        mut state: parking_lot::MutexGuard<'_, State>,
        reason: Term<'_>,
        asked: bool,
    ) {
        if state.gone || state.closing.is_some() {
            return;
        }
        let lent = matches!(state.output, Some(Descriptor::Lent(_)));
        if lent && !state.queue.is_empty() {
            state.closing = Some((Message::copy_of(reason), asked));
            return;
        }
        self.terminate(state, reason, asked);
    }

    fn terminate(
        self: &Arc<Self>,
        mut state: parking_lot::MutexGuard<'_, State>,
        reason: Term<'_>,
        asked: bool,
    ) {
        state.gone = true;
        let watches = [state.input_watch.take(), state.output_watch.take()];
        for watch in watches.into_iter().flatten() {
            poll::unwatch(watch);
        }
        if let Some(name) = registry::name_of(Named::Port(self.id)) {
            registry::unregister(name);
            self.traced().happened(Event::Unregister, name.term());
        }
        self.traced().happened(Event::Closed, reason);
        table().remove(self.id.0);
        let me = self.peer();
        for peer in std::mem::take(&mut state.links) {
            if let Some(pid) = peer.pid() {
                deliver(pid, Signal::link_exit(me, reason));
            }
        }
        for (reference, pid) in std::mem::take(&mut state.monitors) {
            let reason = Message::copy_of(reason);
            deliver(pid, Signal::MonitorDown { reference, reason });
        }
        if asked {
            // What tracers hear is shorter, as in OTP.
            self.traced().sent(state.owner, am::closed.term());
            self.post(state.owner, |heap| {
                heap.tuple(&[self.id.term(), am::closed.term()])
            });
        }
        wake(&mut state.waiting);
        state.input = None;
        state.output = None;
        state.driver = None;
        self.watch_driver(&mut state);
        state.queue.clear();
    }
}

/// Has processes that wait for a port go on: each tries its call again.
fn wake(waiting: &mut Vec<Pid>) {
    for pid in waiting.drain(..) {
        deliver(
            pid,
            Signal::request(|p| crate::process::suspension::resume(p, NOBODY)),
        );
    }
}

/// Before the machine ends: writes what is queued for lent descriptors.
pub(crate) fn flush() {
    let guard = pin();
    for port in table().iter(&guard) {
        let state = port.state.lock();
        let Some(Descriptor::Lent(fd)) = state.output else {
            continue;
        };
        for (i, piece) in state.queue.iter().enumerate() {
            let from = if i == 0 { state.written } else { 0 };
            if crate::sys::file::write_all(fd, &piece[from..]).is_err() {
                break;
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
