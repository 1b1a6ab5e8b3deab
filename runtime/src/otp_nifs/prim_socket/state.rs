//! A socket: its descriptor, its owner, the processes that wait for it, and its counters.
//!
//! One process at a time reads, writes or accepts. It is the current one until it has what it asked for: it gets a message
//! when the descriptor is ready, and calls again. Others queue up behind it, and the next gets a message when its turn
//! comes. The socket monitors its owner and the processes that wait. Its owner's end closes it.
//!
//! Whoever changes a socket does so in [`Socket::with`]: messages are sent, and a descriptor is closed, when its lock is
//! free again.

use std::collections::VecDeque;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::{Arc, Weak};

use beamline_formats::ring::{SocketEnd, SocketWait};
use parking_lot::Mutex;

use super::counts::{Count, Counts};
use super::{names, registry};
use crate::heap::{Heap, MagicBinary, Message};
use crate::process::refs::{RefNumbers, make_ref};
use crate::process::watcher::{WatchedBy, Watcher, unwatch, watch};
use crate::process::{Process, Signal, deliver};
use crate::sys::chance::poll::{self, Interest, Ready, WatchId};
use crate::sys::socket;
use crate::term::compare::eq_exact;
use crate::term::{Atom, Pid, Term, am};
use crate::trace::{EXITED, SocketId};

/// How recordings have the outcome of a wait that its process gave up.
const CANCELLED: &str = "cancelled";

/// What answers tell of the state of a direction: bits of [`State::read`] and [`State::write`].
pub(super) mod bit {
    pub(crate) const BOUND: u32 = 1;
    pub(crate) const LISTENING: u32 = 2;
    pub(crate) const ACCEPTING: u32 = 4;
    pub(crate) const CONNECTING: u32 = 8;
    pub(crate) const CONNECTED: u32 = 16;
    pub(crate) const SELECTED: u32 = 32;
    pub(crate) const CLOSING: u32 = 64;
    pub(crate) const CLOSED: u32 = 128;

    /// Their names, in the order in which answers list them.
    pub(crate) const NAMES: &[(&str, u32)] = &[
        ("bound", BOUND),
        ("listening", LISTENING),
        ("accepting", ACCEPTING),
        ("connecting", CONNECTING),
        ("connected", CONNECTED),
        ("selected", SELECTED),
        ("closing", CLOSING),
        ("closed", CLOSED),
    ];
}

/// What processes do one at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Does {
    Read,
    Write,
    Accept,
}

impl Does {
    const ALL: [Does; 3] = [Does::Write, Does::Read, Does::Accept];

    fn interest(self) -> Interest {
        interest_of(self.event())
    }

    pub(super) fn event(self) -> SocketWait {
        match self {
            Does::Read => SocketWait::Data,
            Does::Accept => SocketWait::Accept,
            Does::Write => SocketWait::Room,
        }
    }
}

/// What the descriptor is watched for, for whoever waits for `what`.
fn interest_of(what: SocketWait) -> Interest {
    match what {
        SocketWait::Data | SocketWait::Accept => Interest::Read,
        SocketWait::Connection | SocketWait::Room => Interest::Write,
    }
}

/// A process that waits, by a reference of its own.
pub(super) struct Waiting {
    pub(super) pid: Pid,
    reference: Message,
    /// The socket's monitor on it, unless it is the owner, which is monitored anyway.
    monitor: Option<RefNumbers>,
}

impl Waiting {
    pub(super) fn is_for(&self, reference: Term<'_>) -> bool {
        eq_exact(self.reference.term(), reference)
    }
}

/// The process that does something, and the queue of those that wait to.
#[derive(Default)]
pub(super) struct Turns {
    pub(super) current: Option<Waiting>,
    queue: VecDeque<Waiting>,
}

impl Turns {
    /// How many they are.
    pub(super) fn len(&self) -> usize {
        usize::from(self.current.is_some()) + self.queue.len()
    }
}

/// What options say of how a socket works here.
#[derive(Clone, Copy)]
pub(super) struct Settings {
    /// Bytes of a read whose caller names none.
    pub(super) receive_bytes: usize,
    /// How many of those a stream is read for at once; 0 where once is enough.
    pub(super) receive_times: u32,
    /// Room for control messages that come.
    pub(super) receive_control: usize,
    /// Room for control messages that are sent.
    pub(super) send_control: usize,
    pub(super) is_debugged: bool,
    pub(super) tells_wraps: bool,
    pub(super) selects_read: bool,
    pub(super) is_registered: bool,
}

/// A file that is being sent.
pub(super) struct File(pub(super) std::os::fd::OwnedFd);

/// What a socket is, and which processes use it.
pub(super) struct State {
    me: Weak<MagicBinary>,
    /// The socket in recordings.
    pub(super) id: SocketId,
    /// Why the connection is lost, if it is: for recordings.
    pub(super) lost: Option<Atom>,
    /// `None` when it is closed.
    fd: Option<socket::Socket>,
    pub(super) domain: i32,
    pub(super) kind: i32,
    pub(super) protocol: i32,
    /// The number that it was made of, if it was, and whether it has one of its own since.
    pub(super) made_of: Option<(RawFd, bool)>,
    pub(super) owner: Option<Pid>,
    owner_monitor: Option<RefNumbers>,
    /// Who closes it, and the monitor on that.
    closer: Option<(Pid, Option<RefNumbers>)>,
    pub(super) read: u32,
    pub(super) write: u32,
    pub(super) connector: Option<Waiting>,
    readers: Turns,
    writers: Turns,
    acceptors: Turns,
    /// The watches for a message to the processes that wait to read, and to write.
    watches: [Option<WatchId>; 2],
    pub(super) settings: Settings,
    /// How often a stream has been read at once so far.
    pub(super) times_read: u32,
    pub(super) meta: Option<Message>,
    pub(super) counts: Counts,
    pub(super) file: Option<File>,
    mail: Vec<(Pid, Message)>,
    /// What is closed when the lock is free.
    shed: Option<socket::Socket>,
}

/// The object behind a reference of `prim_socket`.
pub(super) struct Socket(Mutex<State>);

/// A message that goes to a process when a descriptor is ready.
struct Tell {
    to: Pid,
    socket: SocketId,
    what: SocketWait,
    message: Mutex<Option<Message>>,
}

impl Ready for Tell {
    fn ready(self: Arc<Self>, _fd: RawFd, _interest: Interest) {
        if let Some(message) = self.message.lock().take() {
            self.socket.record_ready(self.to, self.what, "");
            deliver(self.to, Signal::from_outside(message));
        }
    }
}

/// What a new socket is made of.
pub(super) struct New {
    pub(super) fd: socket::Socket,
    pub(super) domain: i32,
    pub(super) kind: i32,
    pub(super) protocol: i32,
    pub(super) made_of: Option<(RawFd, bool)>,
    pub(super) settings: Settings,
    pub(super) is_connected: bool,
    /// The socket that accepted it.
    pub(super) listener: Option<SocketId>,
}

impl Socket {
    /// A new socket of the process `owner`, as `p` says.
    pub(super) fn open(new: New, owner: Pid, p: &Process) -> Arc<MagicBinary> {
        let connected = if new.is_connected { bit::CONNECTED } else { 0 };
        let id = SocketId::new();
        match new.listener {
            Some(listener) => {
                id.record_accept(owner, (new.domain, new.kind), None, listener);
            }
            None => id.record_open(owner, (new.domain, new.kind), None),
        }
        if new.is_connected {
            id.record_address(SocketEnd::Peer, || socket::peer(&new.fd).ok());
        }
        let state = State {
            me: Weak::new(),
            id,
            lost: None,
            fd: Some(new.fd),
            domain: new.domain,
            kind: new.kind,
            protocol: new.protocol,
            made_of: new.made_of,
            owner: None,
            owner_monitor: None,
            closer: None,
            read: 0,
            write: connected,
            connector: None,
            readers: Turns::default(),
            writers: Turns::default(),
            acceptors: Turns::default(),
            watches: [None; 2],
            settings: new.settings,
            times_read: 0,
            meta: None,
            counts: Counts::default(),
            file: None,
            mail: Vec::new(),
            shed: None,
        };
        super::counts::opened(new.domain, new.kind, new.protocol);
        let magic = MagicBinary::new(make_ref(), Box::new(Socket(Mutex::new(state))));
        let socket = magic.get::<Socket>().expect("it is one");
        socket.with(|state| {
            state.me = Arc::downgrade(&magic);
            state.set_owner(owner, Some(p));
            if state.settings.is_registered {
                state.register("add");
            }
        });
        magic
    }

    /// Changes it.
    pub(super) fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.0.lock();
        let result = change(&mut state);
        let (mail, shed) = (std::mem::take(&mut state.mail), state.shed.take());
        drop(state);
        drop(shed);
        for (to, message) in mail {
            deliver(to, Signal::from_outside(message));
        }
        result
    }
}

impl Drop for State {
    fn drop(&mut self) {
        if self.fd.is_some() {
            super::counts::closed(self.domain, self.kind, self.protocol);
        }
    }
}

impl State {
    /// Its descriptor; `None` when it is closed, or about to be.
    pub(super) fn fd(&self) -> Option<BorrowedFd<'_>> {
        let fd = self.fd.as_ref().filter(|_| self.is_open())?;
        Some(fd.as_fd())
    }

    /// Bytes to read where the caller names `length`; the setting's number where it names none, as 0.
    pub(super) fn room(&self, length: usize) -> usize {
        match length {
            0 => self.settings.receive_bytes,
            length => length,
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.read & (bit::CLOSING | bit::CLOSED) == 0
    }

    pub(super) fn is_closing(&self) -> bool {
        self.read & bit::CLOSING != 0
    }

    pub(super) fn is_closed(&self) -> bool {
        self.read & bit::CLOSED != 0
    }

    pub(super) fn turns(&mut self, does: Does) -> &mut Turns {
        match does {
            Does::Read => &mut self.readers,
            Does::Write => &mut self.writers,
            Does::Accept => &mut self.acceptors,
        }
    }

    pub(super) fn numbers_waiting(&self) -> [usize; 3] {
        [&self.readers, &self.writers, &self.acceptors].map(Turns::len)
    }

    pub(super) fn count(&mut self, of: Count, more: usize) {
        self.counts.add(of, more as u64);
    }

    /// The socket as programs have it.
    fn term<'h>(&self, heap: &'h Heap) -> Term<'h> {
        let me = self
            .me
            .upgrade()
            .map_or(Term::NIL, |me| heap.magic_reference(me));
        heap.tuple(&[names::socket_tag(), me])
    }

    /// `{'$socket', Socket, Tag, Info}`.
    fn message(&self, tag: Term<'_>, info: impl for<'h> FnOnce(&'h Heap) -> Term<'h>) -> Message {
        Heap::detached().into_message(|heap| {
            let tag = heap.copy_in(tag);
            heap.tuple(&[names::socket_tag(), self.term(heap), tag, info(heap)])
        })
    }

    /// Tells the registry of it.
    pub(super) fn register(&mut self, what: &str) {
        let Some(registry) = registry::find() else {
            return;
        };
        let message = Heap::detached().into_message(|heap| {
            let what = crate::term::atom::atom(what);
            heap.tuple(&[names::socket_tag(), what, self.term(heap)])
        });
        self.mail.push((registry, message));
    }

    /// Tells `whom` that it waits in vain for `what`.
    fn abort(&mut self, whom: &Waiting, what: SocketWait, reason: Term<'_>) {
        let outcome = reason.as_atom();
        let outcome = outcome.as_ref().map_or("", |reason| reason.name());
        self.id.record_ready(whom.pid, what, outcome);
        let message = self.message(names::abort(), |heap| {
            let parts = [whom.reference.term(), reason].map(|part| heap.copy_in(part));
            heap.tuple(&parts)
        });
        self.mail.push((whom.pid, message));
    }

    /// Watches the descriptor for `pid`, which waits for `what`, in place of the process that did before.
    fn select(&mut self, what: SocketWait, pid: Pid, reference: Term<'_>) {
        let interest = interest_of(what);
        self.cancel(interest);
        self.id.record_wait(pid, what);
        let message = self.message(names::select(), |heap| heap.copy_in(reference));
        let message = Mutex::new(Some(message));
        let fd = self.fd.as_ref().expect("it is open").as_raw_fd();
        let tell = Tell {
            to: pid,
            socket: self.id,
            what,
            message,
        };
        let watch = poll::watch(fd, interest, Arc::new(tell));
        self.watches[usize::from(interest == Interest::Write)] = Some(watch);
        match interest {
            Interest::Write => self.write |= bit::SELECTED,
            _ => self.read |= bit::SELECTED,
        }
    }

    /// Nobody is to be told any more; whether somebody was still to be.
    pub(super) fn cancel(&mut self, interest: Interest) -> bool {
        let watch = self.watches[usize::from(interest == Interest::Write)].take();
        watch.is_some_and(poll::unwatch)
    }

    /// Cancels the watch for `what`, and gives what the NIF answers.
    pub(super) fn cancelled(&mut self, whom: Pid, what: SocketWait) -> Term<'static> {
        match self.cancel(interest_of(what)) {
            true => {
                self.id.record_ready(whom, what, CANCELLED);
                am::ok.term()
            }
            false => names::select_sent(),
        }
    }

    fn monitor(&self, pid: Pid, p: Option<&Process>) -> Option<RefNumbers> {
        let (me, reference) = (self.me.clone(), make_ref());
        let told = move |_: Term<'_>| {
            if let Some(me) = me.upgrade() {
                down(&me, reference, pid);
            }
        };
        let (told, by) = (Box::new(told), WatchedBy::Object(self.me.clone()));
        let watcher = Watcher { told, by };
        if let Some(p) = p.filter(|p| p.pid() == pid) {
            p.relations().watchers.insert(reference, watcher);
            return Some(reference);
        }
        watch(pid, reference, watcher).then_some(reference)
    }

    /// Makes `pid` the owner; `false` when it is gone.
    pub(super) fn set_owner(&mut self, pid: Pid, p: Option<&Process>) -> bool {
        if let (Some(before), Some(monitor)) = (self.owner.take(), self.owner_monitor.take()) {
            demonitor(before, monitor, p);
            self.monitor_waiting(before, p);
        }
        self.owner_monitor = self.monitor(pid, p);
        self.owner = self.owner_monitor.map(|_| pid);
        self.owner.is_some()
    }

    /// The process `pid` is no owner any more: those of its waits that need a monitor get one.
    fn monitor_waiting(&mut self, pid: Pid, p: Option<&Process>) {
        for does in Does::ALL {
            let turns = self.turns(does);
            let all = turns.current.iter().chain(&turns.queue);
            if !all.clone().any(|waiting| waiting.pid == pid) {
                continue;
            }
            let monitor = self.monitor(pid, p);
            let turns = self.turns(does);
            let all = turns.current.iter_mut().chain(&mut turns.queue);
            for waiting in all.filter(|waiting| waiting.pid == pid) {
                waiting.monitor = monitor;
            }
        }
        if self.connector.as_ref().is_some_and(|it| it.pid == pid) {
            let monitor = self.monitor(pid, p);
            if let Some(connector) = &mut self.connector {
                connector.monitor = monitor;
            }
        }
    }

    fn waiting(&self, p: &Process, reference: Term<'_>) -> Waiting {
        let pid = p.pid();
        let is_owner = self.owner == Some(pid);
        Waiting {
            pid,
            reference: Message::copy_of(reference),
            monitor: (!is_owner).then(|| self.monitor(pid, Some(p))).flatten(),
        }
    }

    /// The process connects, and gets a message when it may go on.
    pub(super) fn wait_to_connect(&mut self, p: &Process, reference: Term<'_>) {
        self.select(SocketWait::Connection, p.pid(), reference);
        self.connector = Some(self.waiting(p, reference));
        self.write |= bit::CONNECTING;
    }

    /// Nobody connects any more.
    pub(super) fn end_connecting(&mut self, p: Option<&Process>) {
        if let Some(connector) = self.connector.take() {
            release(&connector, p);
        }
        self.write &= !bit::CONNECTING;
    }

    /// Puts the process behind others. `false` when it is there already.
    pub(super) fn queue_up(&mut self, does: Does, p: &Process, reference: Term<'_>) -> bool {
        let pid = p.pid();
        if self.turns(does).queue.iter().any(|it| it.pid == pid) {
            return false;
        }
        let waiting = self.waiting(p, reference);
        self.id.record_wait(pid, does.event());
        self.turns(does).queue.push_back(waiting);
        true
    }

    /// The process is the current one, and calls again with this reference.
    pub(super) fn hold_turn(&mut self, does: Does, p: &Process, reference: Term<'_>) {
        match &mut self.turns(does).current {
            Some(current) => current.reference = Message::copy_of(reference),
            None => self.turns(does).current = Some(self.waiting(p, reference)),
        }
    }

    /// The process is the current one, and calls again with this reference when the descriptor is ready, of which it gets a
    /// message.
    pub(super) fn wait(&mut self, does: Does, p: &Process, reference: Term<'_>) {
        self.select(does.event(), p.pid(), reference);
        self.hold_turn(does, p, reference);
    }

    /// Aborts the wait of the current process, which waits by this reference instead.
    pub(super) fn wait_instead(&mut self, does: Does, p: &Process, reference: Term<'_>) {
        if let Some(current) = self.turns(does).current.take() {
            self.abort(&current, does.event(), names::cancelled());
            self.turns(does).current = Some(current);
        }
        self.wait(does, p, reference);
    }

    /// The current one has what it asked for: the next has its turn.
    pub(super) fn give_up_turn(&mut self, does: Does, p: Option<&Process>) {
        if let Some(current) = self.turns(does).current.take() {
            release(&current, p);
            self.give_turn(does);
        }
    }

    fn give_turn(&mut self, does: Does) {
        let next = self.turns(does).queue.pop_front();
        match &next {
            Some(next) => self.select(does.event(), next.pid, next.reference.term()),
            None if does == Does::Accept => self.read &= !bit::ACCEPTING,
            None => {}
        }
        self.turns(does).current = next;
    }

    /// The operation of the current process has failed, and fails for all processes that wait.
    pub(super) fn fail_all(&mut self, does: Does, p: Option<&Process>, reason: Term<'_>) {
        let Some(current) = self.turns(does).current.take() else {
            return;
        };
        release(&current, p);
        self.abort_queue(does, p, reason);
    }

    fn abort_queue(&mut self, does: Does, p: Option<&Process>, reason: Term<'_>) {
        for waiting in std::mem::take(&mut self.turns(does).queue) {
            self.abort(&waiting, does.event(), reason);
            release(&waiting, p);
        }
    }

    /// Takes the process `pid` out of the queue, if it waits by this reference. Whether it does.
    pub(super) fn unqueue(
        &mut self,
        does: Does,
        pid: Pid,
        reference: Option<Term<'_>>,
        p: Option<&Process>,
    ) -> bool {
        let queue = &mut self.turns(does).queue;
        let Some(at) = queue.iter().position(|it| it.pid == pid) else {
            return false;
        };
        if reference.is_some_and(|reference| !queue[at].is_for(reference)) {
            return false;
        }
        let waiting = queue.remove(at);
        if let Some(waiting) = &waiting {
            self.id.record_ready(pid, does.event(), CANCELLED);
            release(waiting, p);
        }
        waiting.is_some()
    }

    /// Ends all waits: each process that waits gets a message that the socket is closed.
    fn stop(&mut self, p: Option<&Process>) {
        self.read |= bit::CLOSING;
        self.write |= bit::CLOSING;
        let is_read_cancelled = self.cancel(Interest::Read);
        let is_write_cancelled = self.cancel(Interest::Write);
        let tell = |state: &mut State, whom: &Waiting, what, is_cancelled: bool| {
            // A process that has its message that the descriptor is ready calls again, and learns of it then.
            if is_cancelled {
                state.abort(whom, what, names::closed());
            }
            release(whom, p);
        };
        if let Some(connector) = self.connector.take() {
            tell(self, &connector, SocketWait::Connection, is_write_cancelled);
        }
        for does in Does::ALL {
            let Some(current) = self.turns(does).current.take() else {
                continue;
            };
            let is_cancelled = match does.interest() {
                Interest::Write => is_write_cancelled,
                _ => is_read_cancelled,
            };
            tell(self, &current, does.event(), is_cancelled);
            self.abort_queue(does, p, names::closed());
        }
    }

    /// The process `p` begins to close it.
    pub(super) fn begin_to_close(&mut self, p: &Process) {
        let pid = p.pid();
        let monitor = match self.owner == Some(pid) {
            true => None,
            false => self.monitor(pid, Some(p)),
        };
        self.closer = Some((pid, monitor));
        self.stop(Some(p));
    }

    /// Does `pid` close it?
    pub(super) fn is_closed_by(&self, pid: Pid) -> bool {
        self.closer
            .as_ref()
            .is_some_and(|(closer, _)| *closer == pid)
    }

    /// Closes it, when it has stopped: gives its descriptor, to be closed without its lock.
    pub(super) fn finish_closing(&mut self, p: Option<&Process>) -> Option<socket::Socket> {
        if let Some((closer, Some(monitor))) = self.closer.take() {
            demonitor(closer, monitor, p);
        }
        let reason = self.lost.take();
        let reason = reason.as_ref().map_or("", |reason| reason.name());
        self.id.record_close(self.owner, reason);
        if let (Some(owner), Some(monitor)) = (self.owner.take(), self.owner_monitor.take()) {
            demonitor(owner, monitor, p);
        }
        self.meta = None;
        self.file = None;
        self.read |= bit::CLOSED;
        self.write |= bit::CLOSED;
        let fd = self.fd.take()?;
        super::counts::closed(self.domain, self.kind, self.protocol);
        if self.settings.is_registered {
            self.register("del");
        }
        Some(fd)
    }

    /// Its owner is gone.
    pub(super) fn close_without_owner(&mut self, p: Option<&Process>) {
        self.owner_monitor = None;
        if self.is_open() {
            self.stop(p);
            self.shed = self.finish_closing(p);
        }
        self.owner = None;
    }

    /// The process `pid`, whom it monitors by `reference`, is gone.
    fn down(&mut self, reference: RefNumbers, pid: Pid) {
        let is_owner = self.owner_monitor == Some(reference);
        if self.is_closed_by(pid) {
            self.closer = None;
            if is_owner {
                self.owner_monitor = None;
                self.owner = None;
            }
            self.shed = self.finish_closing(None);
            return;
        }
        if is_owner {
            return self.close_without_owner(None);
        }
        let is_it = |waiting: &Waiting| waiting.monitor == Some(reference);
        if self.connector.as_ref().is_some_and(is_it) {
            self.id.record_ready(pid, SocketWait::Connection, EXITED);
            self.connector = None;
            self.write &= !bit::CONNECTING;
            return;
        }
        for does in Does::ALL {
            let (id, turns) = (self.id, self.turns(does));
            let mut all = turns.current.iter().chain(&turns.queue);
            if all.any(is_it) {
                id.record_ready(pid, does.event(), EXITED);
            }
            if turns.current.as_ref().is_some_and(is_it) {
                turns.current = None;
                self.give_turn(does);
            } else {
                turns.queue.retain(|waiting| !is_it(waiting));
            }
        }
    }
}

/// Takes a monitor back.
fn demonitor(pid: Pid, monitor: RefNumbers, p: Option<&Process>) {
    if let Some(p) = p.filter(|p| p.pid() == pid) {
        p.relations().watchers.remove(&monitor);
        return;
    }
    unwatch(pid, monitor);
}

fn release(waiting: &Waiting, p: Option<&Process>) {
    if let Some(monitor) = waiting.monitor {
        demonitor(waiting.pid, monitor, p);
    }
}

/// A process has exited that `magic` monitors by `reference`.
fn down(magic: &Arc<MagicBinary>, reference: RefNumbers, pid: Pid) {
    if let Some(socket) = magic.get::<Socket>() {
        socket.with(|state| state.down(reference, pid));
    }
}
