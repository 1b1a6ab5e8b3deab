//! What is known of another node: whether it is connected, what is to be sent to it, and which processes of this node
//! have to do with it. Source: `DistEntry` in `erl_node_tables.h`, OTP 29.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, RwLock};

use super::atom_cache::AtomCache;
use super::capabilities::{Capabilities, PUBLISHED};
use super::input::Input;
use super::output::Outgoing;
use super::queue::{Packet, Queue, Taken};
use super::this_node::{net_kernel, next_connection};
use super::{node_monitors, output, spawn};
use crate::heap::{Heap, MagicBinary, Message};
use crate::process::nodes::RemoteProcess;
use crate::process::refs::{RefNumbers, make_ref};
use crate::process::signal::{ExitSignal, deliver_to_peer};
use crate::process::suspension::go_on;
use crate::process::watcher::unwatch;
use crate::process::{ParentExit, Peer, SYSTEM, Signal, deliver, ports};
use crate::term::counted::is_alive;
use crate::term::{Atom, Pid, Term, am};
use crate::trace::record::dist::{self, Crossing};

/// How far a connection has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Phase {
    /// There is none.
    #[default]
    Idle,
    /// `net_kernel` sets it up. What is sent waits.
    Pending,
    /// It stands.
    Connected,
}

/// A node that is or was talked to. It stays, as the atom of its name does.
pub(crate) struct DistEntry {
    pub(crate) name: Atom,
    handle: OnceLock<Arc<MagicBinary>>,
    pub(super) state: Mutex<State>,
    pub(super) input: Mutex<Input>,
    received: AtomicU64,
    sent: AtomicU64,
}

/// The object behind a handle.
struct Handle(Atom);

/// What changes with a connection.
#[derive(Default)]
pub(super) struct State {
    pub(super) phase: Phase,
    /// The number of the connection, or of the last one.
    pub(super) connection: u32,
    pub(super) controller: Option<Peer>,
    pub(super) capabilities: Capabilities,
    /// The creation of the other node, while it is connected.
    creation: u32,
    pub(super) cache: AtomCache,
    /// What is to be sent once the connection stands.
    pub(super) pending: Vec<Outgoing>,
    pub(super) queue: Queue,
    /// The controller takes packets, or has been told to: it finds those that are added now.
    is_served: bool,
    pub(super) relations: Relations,
    /// Gives its size with each packet.
    pub(crate) gives_size: bool,
    pub(crate) input_handler: Option<Pid>,
}

/// Which processes of this node hear of the end of a connection.
#[derive(Default)]
pub(super) struct Relations {
    /// Processes of this node, and of the other one.
    pub(super) links: BTreeSet<(Pid, Peer)>,
    /// Unlinks by processes of this node that the other one has not acknowledged, and the number of each.
    pub(super) unlinks: BTreeMap<(Pid, Peer), u64>,
    /// Monitors of this node's processes on the other one's.
    pub(super) monitors: BTreeMap<RefNumbers, (Pid, RemoteProcess)>,
    /// Monitors of the other node's processes on those of this node, by the other's reference: on whom, and by which
    /// reference it is watched here.
    pub(super) watched: BTreeMap<Vec<u32>, (Pid, RefNumbers)>,
    /// Spawn requests that wait for their reply.
    pub(super) spawns: BTreeMap<RefNumbers, (Pid, ParentExit)>,
    /// Processes that monitor the node, how often, and by which reference they are watched.
    pub(super) node_monitors: BTreeMap<Pid, (u32, RefNumbers)>,
}

impl Relations {
    /// A process of this node gives up its link.
    pub(super) fn begin_unlink(&mut self, pid: Pid, peer: Peer, id: u64) {
        self.links.remove(&(pid, peer));
        self.unlinks.insert((pid, peer), id);
    }

    /// An unlink is acknowledged. That of an older one changes nothing.
    pub(super) fn end_unlink(&mut self, pid: Pid, peer: Peer, id: u64) {
        if self.unlinks.get(&(pid, peer)) == Some(&id) {
            self.unlinks.remove(&(pid, peer));
        }
    }
}

static TABLE: RwLock<BTreeMap<Atom, Arc<DistEntry>>> = RwLock::new(BTreeMap::new());

impl DistEntry {
    /// The node of this name, made where it is not known.
    pub(crate) fn of(name: Atom) -> Arc<DistEntry> {
        if let Some(entry) = DistEntry::find(name) {
            return entry;
        }
        let mut table = TABLE.write();
        let entry = table.entry(name).or_insert_with(|| {
            Arc::new(DistEntry {
                name,
                handle: OnceLock::new(),
                state: Mutex::default(),
                input: Mutex::default(),
                received: AtomicU64::new(0),
                sent: AtomicU64::new(0),
            })
        });
        entry.clone()
    }

    /// The node of this name, if it is known.
    pub(crate) fn find(name: Atom) -> Option<Arc<DistEntry>> {
        TABLE.read().get(&name).cloned()
    }

    /// All nodes that are or were talked to.
    pub(crate) fn all() -> Vec<Arc<DistEntry>> {
        TABLE.read().values().cloned().collect()
    }

    pub(crate) fn phase(&self) -> Phase {
        self.state.lock().phase
    }

    /// The number of its connection, or of its last one.
    pub(crate) fn connection(&self) -> u32 {
        self.state.lock().connection
    }

    /// What controls its connection.
    pub(crate) fn controller(&self) -> Option<Peer> {
        self.state.lock().controller
    }

    /// The creation of the node that is connected.
    pub(crate) fn creation(&self) -> Option<u32> {
        let state = self.state.lock();
        (state.phase == Phase::Connected).then_some(state.creation)
    }

    /// The node that it is connected to by this connection has this creation.
    pub(crate) fn set_creation(&self, connection: u32, creation: u32) {
        let mut state = self.state.lock();
        if state.connection == connection {
            state.creation = creation;
        }
    }

    /// Is it connected, and seen by `nodes/0` or not?
    pub(crate) fn visibility(&self) -> Option<bool> {
        let state = self.state.lock();
        (state.phase == Phase::Connected).then_some(state.capabilities & PUBLISHED != 0)
    }

    /// The handle of a connection: `{Number, Reference}`.
    pub(crate) fn handle<'h>(&self, heap: &'h Heap, connection: u32) -> Term<'h> {
        let object = || MagicBinary::new(make_ref(), Box::new(Handle(self.name)));
        let magic = self.handle.get_or_init(object).clone();
        heap.tuple(&[Term::small(connection.into()), heap.magic_reference(magic)])
    }

    /// The node and the number of the connection that a handle stands for.
    pub(crate) fn of_handle(handle: Term<'_>) -> Option<(Arc<DistEntry>, u32)> {
        let [connection, reference] = handle.as_tuple()?.elements() else {
            return None;
        };
        let Handle(name) = reference.as_ref()?.magic()?.get()?;
        let connection = u32::try_from(connection.as_small()?).ok()?;
        Some((DistEntry::find(*name)?, connection))
    }

    /// The name of the node that a handle's object stands for.
    pub(crate) fn name_in_handle(magic: &MagicBinary) -> Option<Atom> {
        magic.get().map(|Handle(name)| *name)
    }

    /// References that are handles of its connections.
    pub(crate) fn handles(&self) -> usize {
        self.handle.get().map_or(0, |handle| handle.holders() - 1)
    }

    /// Shows the terms that wait for a connection, or for what comes by it.
    pub(crate) fn each_pending(&self, show: &mut dyn FnMut(&Message)) {
        let state = self.state.lock();
        let spawns = state.relations.spawns.values();
        let reasons = spawns.filter_map(|(_, exit)| exit.get());
        reasons.for_each(&mut *show);
        let pending = state.pending.iter();
        pending.for_each(|signal| signal.each_term(show));
    }

    /// The number of its connection, which is to be made where there is none.
    pub(crate) fn prepare_connection(&self) -> u32 {
        let mut state = self.state.lock();
        if state.phase == Phase::Idle {
            state.becomes_pending();
        }
        state.connection
    }

    /// Has `net_kernel` connect, where nobody does; whether there is or may come a connection. A node without a name has none.
    pub(super) fn auto_connect(&self) -> bool {
        if !is_alive() {
            return false;
        }
        let connection = {
            let mut state = self.state.lock();
            if state.phase != Phase::Idle {
                return true;
            }
            state.becomes_pending();
            state.connection
        };
        let Some(kernel) = net_kernel() else {
            self.abort(connection);
            return false;
        };
        let message = Heap::detached().into_message(|heap| {
            let handle = self.handle(heap, connection);
            heap.tuple(&[am::auto_connect.term(), self.name.term(), handle])
        });
        deliver(kernel, Signal::own(message, SYSTEM));
        true
    }

    /// The connection of this number will not come; whether it had come.
    pub(crate) fn abort(&self, connection: u32) -> bool {
        let mut state = self.state.lock();
        if state.connection != connection {
            return false;
        }
        match state.phase {
            Phase::Connected => true,
            Phase::Idle => false,
            Phase::Pending => {
                let left = state.reset();
                drop(state);
                left.end(self, am::noconnection.term());
                false
            }
        }
    }

    /// Answers that a process of the other node cannot be linked to one that is of an old incarnation of this one.
    pub(super) fn refuse_link(&self, old: Term<'_>, peer: Peer) {
        self.send_link_exit((old, peer), am::noproc.term(), None);
    }

    /// The connection stands, set up by the process `setup`: its number. `None` where none was to come. What waits to be
    /// sent is queued; the caller has the controller look for it.
    pub(crate) fn connect(
        &self,
        controller: Peer,
        capabilities: Capabilities,
        setup: Pid,
    ) -> Option<u32> {
        let kernel = net_kernel()?;
        // Nobody receives before the connection stands.
        *self.input.lock() = Input::default();
        let connection = {
            let mut state = self.state.lock();
            if state.phase != Phase::Pending {
                return None;
            }
            state.phase = Phase::Connected;
            state.controller = Some(controller);
            state.capabilities = capabilities;
            state.is_served = true;
            for outgoing in std::mem::take(&mut state.pending) {
                outgoing.queue(&mut state);
            }
            state.connection
        };
        let message = Heap::detached().into_message(|heap| {
            let [tag, node, setup] = [am::dist_ctrlr.term(), self.name.term(), setup.term()];
            heap.tuple(&[tag, controller.term(heap), node, setup])
        });
        deliver(kernel, Signal::own(message, SYSTEM));
        node_monitors::tell_up(self.name, connection, capabilities & PUBLISHED != 0);
        Some(connection)
    }

    /// The connection has ended.
    pub(crate) fn disconnected(&self, connection: u32, reason: Term<'_>) {
        let mut state = self.state.lock();
        if state.connection != connection || state.phase != Phase::Connected {
            return;
        }
        let was_visible = state.capabilities & PUBLISHED != 0;
        let left = state.reset();
        drop(state);
        left.end(self, am::noconnection.term());
        dist::disconnected(connection, reason);
        let reason = reason
            .as_tuple()
            .filter(|pair| pair.arity() == 2 && pair.get(0) == am::shutdown)
            .map_or(reason, |pair| pair.get(1));
        node_monitors::tell_down(self.name, connection, was_visible, reason);
    }

    /// Is the node connected, and able to do this?
    pub(crate) fn is_able(&self, what: Capabilities) -> bool {
        let state = self.state.lock();
        state.phase == Phase::Connected && state.capabilities & what == what
    }

    /// Ends what controls the connection, and the connection with it: a port with this reason. `false` where there is
    /// none.
    pub(crate) fn end_controller(&self, reason: Atom) -> bool {
        let Some(controller) = self.controller() else {
            return false;
        };
        let reason = match controller.pid() {
            Some(_) => am::kill,
            None => reason,
        };
        let exit = ExitSignal::new(controller, reason.term());
        deliver_to_peer(controller, Signal::Exit(Box::new(exit)));
        true
    }

    /// A packet has been added: tells the controller where it does not look by itself.
    pub(super) fn serve(&self, mut state: parking_lot::MutexGuard<'_, State>) {
        if std::mem::replace(&mut state.is_served, true) {
            return;
        }
        let controller = state.controller;
        drop(state);
        if let Some(port) = controller.and_then(Peer::port) {
            ports::serve_connection(port);
        } else if let Some(pid) = controller.and_then(Peer::pid) {
            tell_of_data(pid);
        }
    }

    /// From now on the controller looks for packets by itself; whether nobody did.
    pub(crate) fn begin_to_serve(&self, connection: u32) -> bool {
        let mut state = self.state.lock();
        state.connection == connection && !std::mem::replace(&mut state.is_served, true)
    }

    /// The next packet. With none, the controller must be told when there is one.
    pub(crate) fn next_packet(&self, connection: u32) -> Option<Packet> {
        let mut state = self.state.lock();
        if state.connection != connection {
            return None;
        }
        let State { queue, cache, .. } = &mut *state;
        let Some(taken) = queue.take(cache) else {
            state.is_served = false;
            return None;
        };
        drop(state);
        let Taken {
            packet,
            ended,
            wakes,
        } = taken;
        self.sent.fetch_add(1, Ordering::Relaxed);
        if let Some(signal) = ended
            && let Some(told) = &signal.told
        {
            let crossing = Crossing {
                connection,
                number: signal.number,
                bytes: signal.bytes,
            };
            dist::left(signal.from, crossing, told);
        }
        wakes.into_iter().for_each(go_on);
        Some(packet)
    }

    /// As [`DistEntry::next_packet`], for a process that controls the connection. If there is no packet, it gets a message
    /// about the next one only when it has asked for that.
    pub(crate) fn take_packet(&self, connection: u32) -> Option<Packet> {
        let packet = self.next_packet(connection);
        if packet.is_none() {
            self.state.lock().is_served = true;
        }
        packet
    }

    /// Tells the process that controls the connection when there is a packet.
    pub(crate) fn ask_for_data(&self, pid: Pid) {
        let mut state = self.state.lock();
        if state.queue.is_empty() {
            state.is_served = false;
        } else {
            drop(state);
            tell_of_data(pid);
        }
    }

    /// Counts a packet that has come.
    pub(super) fn count_received(&self) {
        self.received.fetch_add(1, Ordering::Relaxed);
    }

    /// Packets received and sent, and bytes that wait.
    pub(crate) fn statistics(&self) -> (u64, u64, usize) {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let queued = self.state.lock().queue.bytes();
        (read(&self.received), read(&self.sent), queued)
    }

    /// Whether its packets come with their sizes; sets it.
    pub(crate) fn set_gives_size(&self, on: bool) -> bool {
        std::mem::replace(&mut self.state.lock().gives_size, on)
    }

    /// Whether its packets come with their sizes.
    pub(crate) fn gives_size(&self) -> bool {
        self.state.lock().gives_size
    }

    /// Who gives it what has come.
    pub(crate) fn input_handler(&self) -> Option<Pid> {
        let state = self.state.lock();
        state.input_handler.or_else(|| state.controller?.pid())
    }

    /// Sets the process that hands over the data that has come.
    pub(crate) fn set_input_handler(&self, pid: Pid) {
        self.state.lock().input_handler = Some(pid);
    }
}

/// `dist_data`, to a process that controls a connection.
fn tell_of_data(pid: Pid) {
    deliver(pid, Signal::message(am::dist_data.term(), SYSTEM));
}

impl State {
    fn becomes_pending(&mut self) {
        self.phase = Phase::Pending;
        self.connection = next_connection();
    }

    /// Has this process wait, where there is no room, or until its own large signal has gone: for what controls the
    /// connection.
    pub(super) fn wait_for_room(&mut self, pid: Pid) -> Option<Peer> {
        let waits = self.controller.is_some() && self.queue.wait_for_room(pid);
        self.controller.filter(|_| waits)
    }

    /// No connection any more: what is left of it.
    fn reset(&mut self) -> Left {
        let state = std::mem::take(self);
        self.connection = state.connection;
        Left {
            relations: state.relations,
            waiting: state.queue.into_waiting().collect(),
        }
    }
}

/// What is left of a connection that has ended.
struct Left {
    relations: Relations,
    waiting: Vec<Pid>,
}

impl Left {
    /// All hear of the end. The caller holds no lock of the entry.
    fn end(self, entry: &DistEntry, reason: Term<'_>) {
        let Relations {
            links,
            unlinks,
            monitors,
            watched,
            spawns,
            node_monitors,
        } = self.relations;
        for (pid, peer) in links {
            let exit = ExitSignal::of_link(peer, reason, None);
            deliver(pid, Signal::Exit(Box::new(exit)));
        }
        // Nobody else acknowledges them. A process that waited for ever would take the next link of the other for one
        // that was made before it heard of the unlink.
        for ((pid, from), id) in unlinks {
            deliver(pid, Signal::UnlinkAck { from, id });
        }
        for (reference, (pid, _)) in monitors {
            deliver(pid, output::down(reference, reason));
        }
        for (pid, reference) in watched.into_values() {
            unwatch(pid, reference);
        }
        for (request, (pid, _)) in spawns {
            spawn::fail(pid, request, am::noconnection);
        }
        for (pid, (times, reference)) in node_monitors {
            unwatch(pid, reference);
            for _ in 0..times {
                node_monitors::tell_node_down(pid, entry.name);
            }
        }
        self.waiting.into_iter().for_each(go_on);
    }
}
