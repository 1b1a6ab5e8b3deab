//! What processes of this node send to others: encoded, and queued for the controller of the connection.

use std::sync::Arc;

use super::atom_cache::PASS_THROUGH;
use super::capabilities::{
    self, ALTACT_SIG, BIG_SEQTRACE_LABELS, Capabilities, DIST_HDR_ATOM_CACHE, EXIT_PAYLOAD,
    SEND_SENDER,
};
use super::entry::{DistEntry, Phase, State};
use super::operation::{Operation, altact};
use crate::external::{EncodeOptions, HeaderAtoms, encode, encode_with_header};
use crate::heap::{Heap, Message};
use crate::process::nodes::{Hooks, Remote, RemoteProcess, Sending};
use crate::process::refs::{RefNumbers, reference_of};
use crate::process::signal::{ExitSignal, deliver_to_peer};
use crate::process::{NotSent, Peer, Process, Signal, deliver};
use crate::term::counted::is_alive;
use crate::term::{Atom, Pid, Term, am, tag};
use crate::trace::seq::{self, Token};

/// What takes to other nodes what processes send them.
pub(crate) fn hooks() -> Hooks {
    Hooks {
        message,
        signal,
        exit,
        monitor,
        demonitor,
    }
}

/// A signal that waits for its connection.
pub(super) struct Outgoing {
    control: Message,
    payload: Option<Message>,
}

impl Outgoing {
    /// Its packet, for a connection that stands.
    pub(super) fn packet(&self, state: &mut State) -> Vec<u8> {
        let payload = self.payload.as_ref().map(Message::term);
        let encoded = Encoded::of(state.capabilities, self.control.term(), payload);
        encoded.packet(state)
    }
}

/// An encoded signal.
enum Encoded {
    WithHeader(HeaderAtoms, Vec<u8>),
    Bare(Vec<u8>),
}

impl Encoded {
    /// # Panics
    /// For a bitstring of four gigabytes, which the format cannot hold.
    fn of(capabilities: Capabilities, control: Term<'_>, payload: Option<Term<'_>>) -> Encoded {
        const TOO_LARGE: &str = "a bitstring of less than four gigabytes";
        let terms = std::iter::once(control).chain(payload);
        if capabilities & DIST_HDR_ATOM_CACHE != 0 {
            let (atoms, bytes) = encode_with_header(terms).expect(TOO_LARGE);
            return Encoded::WithHeader(atoms, bytes);
        }
        let mut bytes = vec![PASS_THROUGH];
        for term in terms {
            bytes.extend(encode(term, EncodeOptions::default()).expect(TOO_LARGE));
        }
        Encoded::Bare(bytes)
    }

    /// The bytes to be sent. Those of one connection are made in the order in which they go.
    fn packet(self, state: &mut State) -> Vec<u8> {
        match self {
            Encoded::WithHeader(atoms, bytes) => {
                let mut packet = state.cache.header(&atoms);
                packet.extend(bytes);
                packet
            }
            Encoded::Bare(bytes) => bytes,
        }
    }
}

/// What may become of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is on its way, or will be once the connection stands.
    Sent,
    /// There is no connection.
    Lost,
}

/// On which connection a signal goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum On {
    /// On one that is made, if there is none.
    Any,
    /// On one that is there or comes.
    Existing,
}

impl State {
    /// What the node is able to do; before it has said so, what this one is.
    fn likely_capabilities(&self) -> Capabilities {
        match self.phase {
            Phase::Connected => self.capabilities,
            Phase::Idle | Phase::Pending => capabilities::DEFAULT,
        }
    }
}

impl DistEntry {
    /// Sends a control message, and what goes with it.
    pub(super) fn send(&self, on: On, control: Term<'_>, payload: Option<Term<'_>>) -> Fate {
        if on == On::Any && (!is_alive() || !self.auto_connect()) {
            return Fate::Lost;
        }
        let (capabilities, connection) = {
            let mut state = self.state.lock();
            match state.phase {
                Phase::Idle => return Fate::Lost,
                Phase::Pending => {
                    state.pending.push(Outgoing {
                        control: Message::copy_of(control),
                        payload: payload.map(Message::copy_of),
                    });
                    return Fate::Sent;
                }
                Phase::Connected => (state.capabilities, state.connection),
            }
        };
        // Not under the lock: a large message takes its time.
        let encoded = Encoded::of(capabilities, control, payload);
        let mut state = self.state.lock();
        if state.phase != Phase::Connected || state.connection != connection {
            return Fate::Lost;
        }
        let packet = encoded.packet(&mut state);
        self.push(state, packet);
        Fate::Sent
    }
}

/// The node of a pid, port or reference of another node.
fn node_of(term: Term<'_>) -> Option<Atom> {
    Some(term.as_external()?.node().name)
}

fn entry_of(peer: Peer) -> Option<Arc<DistEntry>> {
    let (name, _) = peer.node_of()?;
    Some(DistEntry::of(name))
}

/// Sends a message to a pid, an alias or a name of another node.
fn message<'p>(
    p: &'p Process,
    to: Remote<'p>,
    message: Term<'p>,
    sending: Sending,
) -> Result<(), NotSent> {
    if !is_alive() {
        return Err(NotSent::NotConnected);
    }
    let node = match to {
        Remote::Term(term) => node_of(term).ok_or(NotSent::NoSuchName)?,
        Remote::Name(_, node) => node,
    };
    let entry = DistEntry::of(node);
    let (controller, capabilities) = {
        let mut state = entry.state.lock();
        if !sending.connects && state.phase == Phase::Idle {
            return Err(NotSent::NotConnected);
        }
        let is_busy = match sending.waits && !p.flags.get().async_dist {
            true => state.waits_for_room(p.pid()),
            false => !sending.waits && state.is_busy(),
        };
        let controller = state.controller.filter(|_| is_busy);
        (controller, state.likely_capabilities())
    };
    if let Some(controller) = controller {
        return Err(NotSent::BusyNode(controller));
    }
    let token = token_for(p, to, message, capabilities);
    let heap = Heap::detached();
    let token = token.map(|token| token.term(&heap));
    let sending = (sending.priority, token);
    let control = message_control(&heap, (p.pid(), to), sending, capabilities);
    match entry.send(On::Any, control, Some(message)) {
        Fate::Sent => Ok(()),
        Fate::Lost => Err(NotSent::NotConnected),
    }
}

/// The sequential trace token that goes with a message, where the other node understands its label.
fn token_for<'p>(
    p: &'p Process,
    to: Remote<'p>,
    message: Term<'p>,
    capabilities: Capabilities,
) -> Option<Token> {
    if !p.flags.get().seq_token {
        return None;
    }
    let receiver = match to {
        Remote::Term(term) => term,
        Remote::Name(name, node) => p.tuple(&[name.term(), node.term()]),
    };
    let token = seq::sent(p, receiver, message)?;
    let is_small = token.label.term().as_small().is_some();
    (is_small || capabilities & BIG_SEQTRACE_LABELS != 0).then_some(token)
}

/// The control message of a message with priority or not, and with this token.
fn message_control<'h>(
    heap: &'h Heap,
    (from, to): (Pid, Remote<'_>),
    (priority, token): (bool, Option<Term<'h>>),
    capabilities: Capabilities,
) -> Term<'h> {
    let (target, kind) = match to {
        Remote::Term(term) => {
            let is_pid = term
                .as_external()
                .is_some_and(|it| it.kind() == tag::EXTERNAL_PID);
            (heap.copy_in(term), if is_pid { 0 } else { altact::ALIAS })
        }
        Remote::Name(name, _) => (name.term(), altact::NAME),
    };
    let (from, empty) = (from.term(), am::empty.term());
    let choose = |plain: Operation, with_token: Operation| match token {
        Some(_) => with_token.term(),
        None => plain.term(),
    };
    let mut elements = if priority && capabilities & ALTACT_SIG != 0 {
        let has_token = if token.is_some() { altact::TOKEN } else { 0 };
        let flags = Term::small(altact::PRIORITY | kind | has_token);
        vec![Operation::AltactSigSend.term(), flags, from, target]
    } else if kind == altact::ALIAS {
        vec![
            choose(Operation::AliasSend, Operation::AliasSendTt),
            from,
            target,
        ]
    } else if kind == altact::NAME {
        let operation = choose(Operation::RegSend, Operation::RegSendTt);
        vec![operation, from, empty, target]
    } else if capabilities & SEND_SENDER != 0 {
        vec![
            choose(Operation::SendSender, Operation::SendSenderTt),
            from,
            target,
        ]
    } else {
        vec![choose(Operation::Send, Operation::SendTt), empty, target]
    };
    elements.extend(token);
    heap.tuple(&elements)
}

/// Sends what a process of this node has to say of a link to a process of another, or of its group leader.
fn signal(to: Peer, signal: Signal) {
    let Some(entry) = entry_of(to) else {
        return;
    };
    let heap = &Heap::detached();
    match signal {
        Signal::Link { from } => link(&entry, from, to),
        Signal::Unlink { from, id } => {
            if let Some(pid) = from.pid() {
                entry.state.lock().relations.links.remove(&(pid, to));
            }
            let control = unlink_control(heap, Operation::UnlinkId, id, (from, to));
            if entry.send(On::Existing, control, None) == Fate::Lost {
                // The link has ended with the connection; nobody else acknowledges that it has.
                deliver_to_peer(from, Signal::UnlinkAck { from: to, id });
            }
        }
        Signal::UnlinkAck { from, id } => {
            let control = unlink_control(heap, Operation::UnlinkIdAck, id, (from, to));
            entry.send(On::Existing, control, None);
        }
        Signal::Exit(exit) => send_link_exit(&entry, to, &exit),
        Signal::GroupLeader { leader } => {
            let [leader, to] = [leader.term(heap), to.term(heap)];
            let control = heap.tuple(&[Operation::GroupLeader.term(), leader, to]);
            entry.send(On::Any, control, None);
        }
        _ => unreachable!("no other signal goes to a peer of another node"),
    }
}

fn unlink_control(
    heap: &Heap,
    operation: Operation,
    id: u64,
    (from, to): (Peer, Peer),
) -> Term<'_> {
    let id = heap.unsigned(id);
    heap.tuple(&[operation.term(), id, from.term(heap), to.term(heap)])
}

/// A process of this node links itself to one of another.
fn link(entry: &DistEntry, from: Peer, to: Peer) {
    let Some(pid) = from.pid() else {
        return;
    };
    let is_possible = is_alive() && entry.auto_connect();
    if is_possible {
        // First of all: the answer may come before this returns.
        entry.state.lock().relations.links.insert((pid, to));
        let heap = Heap::detached();
        let [local, remote] = [from.term(&heap), to.term(&heap)];
        let control = heap.tuple(&[Operation::Link.term(), local, remote]);
        if entry.send(On::Existing, control, None) == Fate::Sent {
            return;
        }
        entry.state.lock().relations.links.remove(&(pid, to));
    }
    let exit = ExitSignal::of_link(to, am::noconnection.term(), None);
    deliver(pid, Signal::Exit(Box::new(exit)));
}

/// A process of this node ends, which is linked to one of another; or is not there, or no more.
fn send_link_exit(entry: &DistEntry, to: Peer, exit: &ExitSignal) {
    if let Some(pid) = exit.from.pid() {
        entry.state.lock().relations.links.remove(&(pid, to));
    }
    exit.from
        .with_term(|from| entry.send_link_exit(from, to, exit.reason.term()));
}

impl DistEntry {
    /// Sends the exit signal of a link.
    pub(super) fn send_link_exit(&self, from: Term<'_>, to: Peer, reason: Term<'_>) {
        let operations = [Operation::Exit, Operation::PayloadExit];
        to.with_term(|to| self.send_reason(operations, &[from, to], reason));
    }

    /// Sends a control message that ends in a reason, or has it behind it, where the other node is able to take that.
    fn send_reason(
        &self,
        [plain, payload]: [Operation; 2],
        elements: &[Term<'_>],
        reason: Term<'_>,
    ) -> Fate {
        let heap = Heap::detached();
        let has_payload = self.state.lock().likely_capabilities() & EXIT_PAYLOAD != 0;
        let operation = if has_payload { payload } else { plain };
        let mut all = vec![operation.term()];
        all.extend(elements.iter().map(|element| heap.copy_in(*element)));
        if !has_payload {
            all.push(heap.copy_in(reason));
        }
        let payload = has_payload.then_some(reason);
        self.send(On::Existing, heap.tuple(&all), payload)
    }

    /// A process of this node that one of another monitors has ended.
    pub(super) fn send_monitor_exit(
        &self,
        watched: Term<'_>,
        watcher: Peer,
        reference: Term<'_>,
        reason: Term<'_>,
    ) {
        let operations = [Operation::MonitorPExit, Operation::PayloadMonitorPExit];
        watcher.with_term(|watcher| {
            self.send_reason(operations, &[watched, watcher, reference], reason);
        });
    }
}

/// An exit signal of `exit/2`.
fn exit(p: &Process, to: Term<'_>, reason: Term<'_>, priority: bool) {
    let Some(node) = node_of(to).filter(|_| is_alive()) else {
        return;
    };
    let entry = DistEntry::of(node);
    if !entry.auto_connect() {
        return;
    }
    let from = p.pid().term();
    let is_alias = tag::EXTERNAL_REF == to.as_external().map_or(0, |it| it.kind());
    if is_alias || priority {
        let kind = if is_alias { altact::ALIAS } else { 0 };
        let priority = if priority { altact::PRIORITY } else { 0 };
        let flags = Term::small(altact::EXIT | kind | priority);
        let heap = Heap::detached();
        let to = heap.copy_in(to);
        let control = heap.tuple(&[Operation::AltactSigSend.term(), flags, from, to]);
        entry.send(On::Existing, control, Some(reason));
        return;
    }
    let operations = [Operation::Exit2, Operation::PayloadExit2];
    entry.send_reason(operations, &[from, to], reason);
}

/// The signal that a monitor has ended.
pub(super) fn down(reference: RefNumbers, reason: Term<'_>) -> Signal {
    Signal::MonitorDown {
        reference,
        reason: Message::copy_of(reason),
        is_gone: false,
    }
}

impl RemoteProcess {
    fn node(self) -> Option<Atom> {
        match self {
            RemoteProcess::Process(peer) => Some(peer.node_of()?.0),
            RemoteProcess::Name(_, node) => Some(node),
        }
    }

    /// As control messages name it.
    fn term(self, heap: &Heap) -> Term<'_> {
        match self {
            RemoteProcess::Process(peer) => peer.term(heap),
            RemoteProcess::Name(name, _) => name.term(),
        }
    }
}

/// Has the process `by` monitor one of another node.
fn monitor(target: RemoteProcess, reference: RefNumbers, by: Pid) {
    let entry = target.node().map(DistEntry::of);
    if let Some(entry) = entry.filter(|entry| is_alive() && entry.auto_connect()) {
        let lock = || entry.state.lock();
        lock().relations.monitors.insert(reference, (by, target));
        let heap = Heap::detached();
        let control = monitor_control(&heap, Operation::MonitorP, target, (reference, by));
        if entry.send(On::Existing, control, None) == Fate::Sent {
            return;
        }
        lock().relations.monitors.remove(&reference);
    }
    deliver(by, down(reference, am::noconnection.term()));
}

fn monitor_control(
    heap: &Heap,
    operation: Operation,
    target: RemoteProcess,
    (reference, by): (RefNumbers, Pid),
) -> Term<'_> {
    let reference = reference_of(heap, reference, by);
    heap.tuple(&[operation.term(), by.term(), target.term(heap), reference])
}

/// Ends a monitor.
pub(super) fn demonitor(target: RemoteProcess, reference: RefNumbers, by: Pid) {
    let Some(entry) = target.node().and_then(DistEntry::find) else {
        return;
    };
    let was_there = entry.state.lock().relations.monitors.remove(&reference);
    if was_there.is_some() {
        let heap = Heap::detached();
        let control = monitor_control(&heap, Operation::DemonitorP, target, (reference, by));
        entry.send(On::Existing, control, None);
    }
}
