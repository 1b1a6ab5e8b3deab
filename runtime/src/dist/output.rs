//! What processes of this node send to others: encoded, and queued for the controller of the connection.

use std::sync::Arc;

use super::capabilities::{
    self, ALTACT_SIG, BIG_SEQTRACE_LABELS, Capabilities, EXIT_PAYLOAD, SEND_SENDER,
};
use super::entry::{DistEntry, Phase, State};
use super::operation::{Operation, altact};
use super::queue::Encoded;
use super::unsent::{Sliced, Unsent, Way};
use crate::external::TooLarge;
use crate::heap::{Heap, Message};
use crate::process::nodes::{Hooks, Remote, RemoteProcess, Sending};
use crate::process::refs::{RefNumbers, reference_of};
use crate::process::signal::ExitSignal;
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
        room,
    }
}

/// A signal that waits for its connection.
pub(super) struct Outgoing {
    from: Option<Pid>,
    control: Message,
    payload: Option<Message>,
}

impl Outgoing {
    /// Shows its terms.
    pub(super) fn each_term(&self, show: &mut dyn FnMut(&Message)) {
        show(&self.control);
        self.payload.iter().for_each(show);
    }

    /// Queues it for a connection that stands. One that cannot be encoded is lost.
    pub(super) fn queue(&self, state: &mut State) {
        let payload = self.payload.as_ref().map(Message::term);
        if let Ok(encoded) = Encoded::of(state.capabilities, self.control.term(), payload) {
            state.queue.push(self.from, encoded);
        }
    }
}

/// A signal of the process `from`, if it is known of which.
#[derive(Clone, Copy)]
pub(super) struct Outbound<'t> {
    pub(super) from: Option<Pid>,
    pub(super) control: Term<'t>,
    pub(super) payload: Option<Term<'t>>,
}

impl<'t> Outbound<'t> {
    pub(super) fn without_payload(from: Option<Pid>, control: Term<'t>) -> Outbound<'t> {
        Outbound {
            from,
            control,
            payload: None,
        }
    }
}

/// What may become of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is on its way, or will be once the connection stands.
    Sent,
    /// So it is, and its sender waits until this takes data again, which controls the connection.
    SentToBusy(Peer),
    /// It is longer than the format allows.
    TooLarge,
    /// There is no connection.
    Lost,
}

impl Fate {
    /// What the sender of a message hears.
    fn of_message(self) -> Result<(), NotSent> {
        match self {
            Fate::Sent => Ok(()),
            Fate::SentToBusy(controller) => Err(NotSent::BusyNode(controller)),
            Fate::Lost => Err(NotSent::NotConnected),
            Fate::TooLarge => Err(NotSent::TooLarge),
        }
    }
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

/// A connection as a sender found it.
#[derive(Clone, Copy)]
pub(super) struct Found {
    pub(super) capabilities: Capabilities,
    /// Its number; none while it is pending.
    pub(super) connection: Option<u32>,
    is_busy: bool,
}

impl DistEntry {
    /// The connection, for a signal; one is asked for where that is wanted. `None` where there is none and comes none.
    pub(super) fn find_connection(&self, on: On) -> Option<Found> {
        let mut state = self.state.lock();
        if state.phase == Phase::Idle {
            drop(state);
            if on == On::Existing || !self.auto_connect() {
                return None;
            }
            state = self.state.lock();
        }
        Some(Found {
            capabilities: state.likely_capabilities(),
            connection: (state.phase == Phase::Connected).then_some(state.connection),
            is_busy: state.queue.is_busy(),
        })
    }

    /// Sends a signal on the connection that was found. Its sender waits where that is busy then, if it `waits`.
    fn send_on(&self, found: Found, waits: bool, signal: Outbound<'_>) -> Fate {
        let Some(connection) = found.connection else {
            return self.send_when_connected(waits, signal);
        };
        // Not under the lock: a large signal takes its time.
        let encoded = Encoded::of(found.capabilities, signal.control, signal.payload);
        let Ok(encoded) = encoded else {
            return Fate::TooLarge;
        };
        self.queue_on(connection, waits, (signal.from, encoded))
    }

    /// Queues a signal of a process for a connection, if that still stands.
    pub(super) fn queue_on(
        &self,
        connection: u32,
        waits: bool,
        (from, encoded): (Option<Pid>, Encoded),
    ) -> Fate {
        let mut state = self.state.lock();
        if state.phase != Phase::Connected || state.connection != connection {
            return Fate::Lost;
        }
        state.queue.push(from, encoded);
        // Before the controller hears of the signal, because it wakes the processes that wait.
        let sender = from.filter(|_| waits);
        let waits_for = sender.and_then(|pid| state.wait_for_room(pid));
        self.serve(state);
        waits_for.map_or(Fate::Sent, Fate::SentToBusy)
    }

    /// Keeps a signal until the connection stands, which was pending.
    pub(super) fn send_when_connected(&self, waits: bool, signal: Outbound<'_>) -> Fate {
        let mut state = self.state.lock();
        if state.phase == Phase::Pending {
            state.pending.push(Outgoing {
                from: signal.from,
                control: Message::copy_of(signal.control),
                payload: signal.payload.map(Message::copy_of),
            });
            return Fate::Sent;
        }
        drop(state);
        match self.find_connection(On::Existing) {
            Some(found) => self.send_on(found, waits, signal),
            None => Fate::Lost,
        }
    }

    /// Sends a signal, whose sender does not wait here.
    pub(super) fn try_send(&self, on: On, signal: Outbound<'_>) -> Fate {
        match self.find_connection(on) {
            Some(found) => self.send_on(found, false, signal),
            None => Fate::Lost,
        }
    }

    /// As [`DistEntry::try_send`]. What is too large to be sent ends the connection: the other node must not go on without
    /// it.
    pub(super) fn send(&self, on: On, signal: Outbound<'_>) -> Fate {
        self.ended_by_limit(self.try_send(on, signal))
    }

    fn ended_by_limit(&self, fate: Fate) -> Fate {
        if fate == Fate::TooLarge {
            self.end_controller(am::killed);
            return Fate::Lost;
        }
        fate
    }
}

/// Has a process wait until the connection to a node takes data: what controls it. `None` where it does.
fn room(p: &Process, node: Atom) -> Option<Peer> {
    let entry = DistEntry::find(node)?;
    entry.state.lock().wait_for_room(p.pid())
}

/// The node of a pid, port or reference of another node.
fn node_of(term: Term<'_>) -> Option<Atom> {
    Some(term.as_external()?.node().name)
}

fn entry_of(peer: Peer) -> Option<Arc<DistEntry>> {
    Some(DistEntry::of(peer.node_name()?))
}

/// Sends a message to a pid, an alias or a name of another node.
fn message<'p>(
    p: &'p Process,
    to: Remote<'p>,
    message: Term<'p>,
    sending: Sending,
) -> Result<(), NotSent> {
    if let Some(unsent) = p.take_work_if::<Unsent>() {
        return queue_or_put_off(p, unsent.go_on(p))?.of_message();
    }
    if !is_alive() {
        return Err(NotSent::NotConnected);
    }
    let node = match to {
        Remote::Term(term) => node_of(term).ok_or(NotSent::NoSuchName)?,
        Remote::Name(_, node) => node,
    };
    let entry = DistEntry::of(node);
    let on = match sending.connects {
        true => On::Any,
        false => On::Existing,
    };
    let found = entry.find_connection(on).ok_or(NotSent::NotConnected)?;
    let is_async = p.flags.get().async_dist;
    if found.is_busy
        && !(sending.waits || is_async)
        && let Some(controller) = entry.controller()
    {
        return Err(NotSent::BusyNode(controller));
    }
    let capabilities = found.capabilities;
    let token = token_for(p, to, message, capabilities);
    let heap = Heap::detached();
    let token = token.map(|token| token.term(&heap));
    let control = message_control(
        &heap,
        (p.pid(), to),
        (sending.priority, token),
        capabilities,
    );
    let waits = sending.waits && !is_async;
    send_in_slices(p, (entry, found), waits, (control, Some(message)))?.of_message()
}

/// The BIF that sends a signal is to be called again: it goes on with that in the next time slice.
struct StillEncoding;

impl From<StillEncoding> for NotSent {
    fn from(_: StillEncoding) -> NotSent {
        NotSent::Encoding
    }
}

/// Sends a signal of `p` on the connection that was found, in as many time slices as it takes to encode.
fn send_in_slices<'p>(
    p: &'p Process,
    (entry, found): (Arc<DistEntry>, Found),
    waits: bool,
    (control, payload): (Term<'_>, Option<Term<'p>>),
) -> Result<Fate, StillEncoding> {
    let Some(connection) = found.connection else {
        let signal = Outbound {
            from: Some(p.pid()),
            control,
            payload,
        };
        return Ok(entry.send_when_connected(waits, signal));
    };
    let way = Way {
        entry,
        connection,
        waits,
    };
    let sliced = Unsent::begin(p, way, found.capabilities, (control, payload));
    queue_or_put_off(p, sliced)
}

/// Queues what is whole; the rest is work of the process.
fn queue_or_put_off<'p>(
    p: &'p Process,
    sliced: Result<Sliced<'p>, TooLarge>,
) -> Result<Fate, StillEncoding> {
    match sliced {
        Err(TooLarge) => Ok(Fate::TooLarge),
        Ok(Sliced::Whole(signal)) => Ok(signal.queue(p)),
        Ok(Sliced::Part(unsent)) => {
            let _ = p.yield_with(unsent);
            Err(StillEncoding)
        }
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
    let lock = || entry.state.lock();
    match signal {
        Signal::Link { from } => link(&entry, from, to),
        Signal::Unlink { from, id } => {
            let Some(pid) = from.pid() else {
                return;
            };
            // First of all: the answer may come before this returns.
            lock().relations.begin_unlink(pid, to, id);
            let control = unlink_control(heap, Operation::UnlinkId, id, (from, to));
            let signal = Outbound::without_payload(Some(pid), control);
            if entry.send(On::Existing, signal) == Fate::Lost {
                lock().relations.end_unlink(pid, to, id);
                // The link has ended with the connection; nobody else acknowledges that it has.
                deliver(pid, Signal::UnlinkAck { from: to, id });
            }
        }
        Signal::UnlinkAck { from, id } => {
            let control = unlink_control(heap, Operation::UnlinkIdAck, id, (from, to));
            entry.send(On::Existing, Outbound::without_payload(from.pid(), control));
        }
        Signal::Exit(exit) => send_link_exit(&entry, to, &exit),
        Signal::GroupLeader { leader } => {
            let [leader, to] = [leader.term(heap), to.term(heap)];
            let control = heap.tuple(&[Operation::GroupLeader.term(), leader, to]);
            entry.send(On::Any, Outbound::without_payload(None, control));
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
    if entry.auto_connect() {
        // First of all: the answer may come before this returns.
        entry.state.lock().relations.links.insert((pid, to));
        let heap = Heap::detached();
        let [local, remote] = [from.term(&heap), to.term(&heap)];
        let control = heap.tuple(&[Operation::Link.term(), local, remote]);
        let signal = Outbound::without_payload(Some(pid), control);
        if entry.send(On::Existing, signal) == Fate::Sent {
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
    let (reason, token) = (exit.reason.term(), exit.token.as_ref());
    exit.from
        .with_term(|from| entry.send_link_exit((from, to), reason, token));
}

impl DistEntry {
    /// Sends the exit signal of a link.
    pub(super) fn send_link_exit(
        &self,
        (from, to): (Term<'_>, Peer),
        reason: Term<'_>,
        token: Option<&Token>,
    ) {
        let heap = Heap::detached();
        let mut elements = vec![from, to.term(&heap)];
        let operations = match token {
            None => [Operation::Exit, Operation::PayloadExit],
            Some(token) => {
                elements.push(token.term(&heap));
                [Operation::ExitTt, Operation::PayloadExitTt]
            }
        };
        self.ended_by_limit(self.send_reason(operations, &elements, reason));
    }

    /// Sends a control message that ends in a reason, or has it behind it.
    fn send_reason(
        &self,
        operations: [Operation; 2],
        elements: &[Term<'_>],
        reason: Term<'_>,
    ) -> Fate {
        let Some(found) = self.find_connection(On::Existing) else {
            return Fate::Lost;
        };
        let heap = Heap::detached();
        let (control, payload) =
            with_reason(&heap, found.capabilities, operations, (elements, reason));
        let signal = Outbound {
            from: elements[0].as_pid(),
            control,
            payload,
        };
        self.send_on(found, false, signal)
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
        let fate = watcher.with_term(|watcher| {
            self.send_reason(operations, &[watched, watcher, reference], reason)
        });
        self.ended_by_limit(fate);
    }
}

/// A control message that ends in a reason, and what is behind it: the reason, where the other node is able to take it
/// there.
fn with_reason<'h, 'r>(
    heap: &'h Heap,
    capabilities: Capabilities,
    [plain, payload]: [Operation; 2],
    (elements, reason): (&[Term<'_>], Term<'r>),
) -> (Term<'h>, Option<Term<'r>>) {
    let has_payload = capabilities & EXIT_PAYLOAD != 0;
    let operation = if has_payload { payload } else { plain };
    let mut all = vec![operation.term()];
    all.extend(elements.iter().map(|element| heap.copy_in(*element)));
    if !has_payload {
        all.push(heap.copy_in(reason));
    }
    (heap.tuple(&all), has_payload.then_some(reason))
}

/// An exit signal of `exit/2`.
fn exit<'p>(p: &'p Process, to: Term<'p>, reason: Term<'p>, priority: bool) -> Result<(), NotSent> {
    let fate = match p.take_work_if::<Unsent>() {
        Some(unsent) => queue_or_put_off(p, unsent.go_on(p))?,
        None => begin_exit(p, to, reason, priority)?,
    };
    match fate {
        Fate::TooLarge => Err(NotSent::TooLarge),
        _ => Ok(()),
    }
}

fn begin_exit<'p>(
    p: &'p Process,
    to: Term<'p>,
    reason: Term<'p>,
    priority: bool,
) -> Result<Fate, StillEncoding> {
    let Some(node) = node_of(to).filter(|_| is_alive()) else {
        return Ok(Fate::Lost);
    };
    let entry = DistEntry::of(node);
    let Some(found) = entry.find_connection(On::Any) else {
        return Ok(Fate::Lost);
    };
    let from = p.pid().term();
    let is_alias = tag::EXTERNAL_REF == to.as_external().map_or(0, |it| it.kind());
    let heap = Heap::detached();
    let signal = if is_alias || priority {
        let kind = if is_alias { altact::ALIAS } else { 0 };
        let priority = if priority { altact::PRIORITY } else { 0 };
        let flags = Term::small(altact::EXIT | kind | priority);
        let to = heap.copy_in(to);
        let control = heap.tuple(&[Operation::AltactSigSend.term(), flags, from, to]);
        (control, Some(reason))
    } else {
        let operations = [Operation::Exit2, Operation::PayloadExit2];
        with_reason(&heap, found.capabilities, operations, (&[from, to], reason))
    };
    send_in_slices(p, (entry, found), false, signal)
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
    if let Some(entry) = entry.filter(|entry| entry.auto_connect()) {
        let lock = || entry.state.lock();
        lock().relations.monitors.insert(reference, (by, target));
        let heap = Heap::detached();
        let control = monitor_control(&heap, Operation::MonitorP, target, (reference, by));
        if entry.send(On::Existing, Outbound::without_payload(Some(by), control)) == Fate::Sent {
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
        entry.send(On::Existing, Outbound::without_payload(Some(by), control));
    }
}
