//! Processes that one node starts on another. Source: `dist_spawn_request_4()` and `DOP_SPAWN_*` in `dist.c`, OTP 29.

use std::sync::Arc;

use super::capabilities::SPAWN;
use super::entry::DistEntry;
use super::input::{BadData, Incoming, numbers_of};
use super::operation::{Operation, spawn_reply};
use super::output::{Fate, On, Outbound, demonitor};
use super::unsent::{Sliced, Unsent, Way};
use crate::external::TooLarge;
use crate::heap::{Heap, Literals, Message, size};
use crate::process::nodes::RemoteProcess;
use crate::process::options::{self, BadOptions, SpawnRequest};
use crate::process::refs::{RefNumbers, make_ref, reference_of};
use crate::process::signal::{ExitSignal, TracedMessage, deliver_to_peer};
use crate::process::{
    Alias, Monitored, Newborn, Origin, Peer, Process, SYSTEM, Signal, SpawnWaiting, deliver, work,
};
use crate::term::{Atom, Pid, Term, am};
use crate::trace::Event;
use crate::trace::events::happened;
use crate::trace::seq::{self, Token};

/// A request of the process `p` to start another: the node, `{M, F, Args}`, and the options that it has for itself and for
/// the other node.
pub(crate) struct Request<'p> {
    pub(crate) node: Atom,
    pub(crate) call: [Term<'p>; 3],
    /// The options as they were given.
    pub(crate) options: Term<'p>,
    pub(crate) parsed: SpawnRequest<'p>,
}

/// Why a request has not been sent.
pub(crate) enum NotRequested {
    /// `noconnection`, `notsup`, `system_limit`, or `badopt`.
    Error(Atom),
    /// It is being encoded: the BIF is to be called again, and goes on with [`UnsentRequest`].
    Encoding,
}

/// A request that its sender goes on to encode in its next time slice.
pub(crate) struct UnsentRequest<'p> {
    unsent: Unsent<'p>,
    pub(crate) reference: RefNumbers,
}

work! { struct UnsentRequest { unsent; reference } }

impl<'p> UnsentRequest<'p> {
    /// Goes on with this request.
    ///
    /// # Errors
    /// [`NotRequested`]
    pub(crate) fn go_on(self, p: &'p Process, request: &Request<'_>) -> Result<(), NotRequested> {
        queue_or_put_off(p, self.unsent.go_on(p), (request, self.reference))
    }
}

/// Sends the request, which has this reference.
///
/// # Errors
/// [`NotRequested`]
pub(crate) fn request<'p>(
    p: &'p Process,
    request: &Request<'p>,
    reference: RefNumbers,
) -> Result<(), NotRequested> {
    let entry = DistEntry::of(request.node);
    let Some(found) = entry.find_connection(On::Any) else {
        return Err(NotRequested::Error(am::noconnection));
    };
    if found.connection.is_some() && found.capabilities & SPAWN == 0 {
        return Err(NotRequested::Error(am::notsup));
    }
    let heap = Heap::detached();
    let (control, args) = (
        request_control(p, &heap, request, reference),
        request.call[2],
    );
    let Some(connection) = found.connection else {
        let signal = Outbound {
            from: Some(p.pid()),
            control,
            payload: Some(args),
        };
        let send = || entry.send_when_connected(false, signal);
        return while_awaited(p, &entry, (request, reference), send);
    };
    let way = Way {
        entry,
        connection,
        waits: false,
    };
    let sliced = Unsent::begin(p, way, found.capabilities, (control, Some(args)));
    queue_or_put_off(p, sliced, (request, reference))
}

/// The control message of a request.
fn request_control<'h>(
    p: &Process,
    heap: &'h Heap,
    request: &Request<'_>,
    reference: RefNumbers,
) -> Term<'h> {
    let (pid, leader) = (p.pid(), p.group_leader());
    let [module, function, args] = request.call;
    let arity = Term::small(args.list_iter().count() as i64);
    let parts = [
        reference_of(heap, reference, pid),
        pid.term(),
        leader.term(heap),
        heap.tuple(&[module, function, arity].map(|term| heap.copy_in(term))),
        remote_options(heap, request.options),
    ];
    let token = match p.flags.get().seq_token {
        true => seq::spawn_asked(p, request.node, request_told(heap, &parts), args),
        false => None,
    };
    let operation = match token {
        Some(_) => Operation::SpawnRequestTt,
        None => Operation::SpawnRequest,
    };
    let mut control = vec![operation.term()];
    control.extend(parts);
    control.extend(token.map(|token| token.term(heap)));
    heap.tuple(&control)
}

/// Queues a request that is encoded; the rest of one that is not is work of the process.
fn queue_or_put_off<'p>(
    p: &'p Process,
    sliced: Result<Sliced<'p>, TooLarge>,
    (request, reference): (&Request<'_>, RefNumbers),
) -> Result<(), NotRequested> {
    match sliced {
        Err(TooLarge) => Err(NotRequested::Error(am::system_limit)),
        Ok(Sliced::Part(unsent)) => {
            let _ = p.yield_with(UnsentRequest { unsent, reference });
            Err(NotRequested::Encoding)
        }
        Ok(Sliced::Whole(signal)) => {
            let entry = signal.entry();
            while_awaited(p, &entry, (request, reference), || signal.queue(p))
        }
    }
}

/// Sends a request, whose reply is awaited before: it may come before this returns.
fn while_awaited(
    p: &Process,
    entry: &DistEntry,
    (request, reference): (&Request<'_>, RefNumbers),
    send: impl FnOnce() -> Fate,
) -> Result<(), NotRequested> {
    let waiting = SpawnWaiting::of(&request.parsed);
    let awaited = (p.pid(), Arc::clone(&waiting.parent_exit));
    p.relations().spawns.insert(reference, waiting);
    entry
        .state
        .lock()
        .relations
        .spawns
        .insert(reference, awaited);
    let error = match send() {
        Fate::Sent | Fate::SentToBusy(_) => return Ok(()),
        Fate::Lost => am::noconnection,
        Fate::TooLarge => am::system_limit,
    };
    entry.state.lock().relations.spawns.remove(&reference);
    p.relations().spawns.remove(&reference);
    Err(NotRequested::Error(error))
}

/// A request as sequential tracing tells of it.
fn request_told<'h>(heap: &'h Heap, parts: &[Term<'h>]) -> Term<'h> {
    heap.tuple(&[&[am::spawn_request.term()][..], parts].concat())
}

/// The options that the other node gets: those of the reply stay here, and those of a monitor and of a link are of this
/// node alone.
fn remote_options<'h>(heap: &'h Heap, options: Term<'_>) -> Term<'h> {
    let options = options.list_iter().flatten().filter_map(|option| {
        let key = option.as_tuple().filter(|pair| pair.arity() == 2);
        match key.and_then(|pair| pair.get(0).as_atom()) {
            Some(am::reply | am::reply_tag) => None,
            Some(am::monitor) => Some(am::monitor.term()),
            Some(am::link) => Some(am::link.term()),
            _ => Some(heap.copy_in(option)),
        }
    });
    heap.list(&options.collect::<Vec<_>>())
}

/// The request of a process of this node will have no other reply than this error.
pub(super) fn fail(pid: Pid, request: RefNumbers, error: Atom) {
    let answer = move |p: Option<&mut Process>| {
        if let Some(p) = p {
            p.spawn_refused(request, error, None);
        }
    };
    deliver(pid, Signal::request(answer));
}

/// A process of the other node asks for one of this node.
///
/// # Errors
/// [`BadData`]
pub(super) fn requested(
    from: &Incoming<'_>,
    request: &[Term<'_>],
    token: Option<Token>,
    arguments: Term<'_>,
) -> Result<(), BadData> {
    let &[reference, parent, leader, call, options] = request else {
        return Err(BadData);
    };
    let told = || Message::copy_of(request_told(&Heap::detached(), request));
    let (parent_is, leader) = (from.peer(parent)?, Peer::process_of(leader).ok_or(BadData)?);
    let key = numbers_of(reference)?;
    let (module, function, arity) = called(call).ok_or(BadData)?;
    let (parsed, done) = options::spawn_options(options, false);
    let born = match done {
        Err(BadOptions::NoList) => return Err(BadData),
        Err(BadOptions::Option) => Err(am::badopt),
        Ok(()) => Newborn::new(&parsed.options, size(call, Literals::Count), None)
            .map_err(|_| am::system_limit),
    };
    let to = [reference, parent];
    let mut child = match born {
        Ok(child) => child,
        Err(error) => {
            refuse(from.entry, to, error, token.map(|token| (token, told())));
            return Ok(());
        }
    };
    if let Some(token) = &token {
        seq::spawn_requested(&child.process, token, told().term());
    }
    let p = &child.process;
    let args = p.list(&[p.copy_in(call)]).raw();
    child.set_call(am::erts_internal, am::dist_spawn_init, args, 1);
    let p = &child.process;
    p.initial_call.set((module, function, arity));
    p.set_group_leader(leader);
    p.set_parent(parent_is);
    let pid = child.pid();
    let flags = bind(from, p, &parsed, (key, parent_is, reference));
    // They are the first in its queue: nobody else knows it yet.
    let shared = child.process.shared();
    let first = Message::copy_of(arguments);
    let first = match &token {
        Some(token) => Signal::Traced(Box::new(TracedMessage {
            message: first,
            from: parent_is,
            token: Some(token.clone()),
            number: 0,
            alias: None,
        })),
        None => Signal::own(first, SYSTEM),
    };
    let second = Signal::own(Message::copy_of(am::dist_spawn_init.term()), SYSTEM);
    for signal in [first, second] {
        let _ = shared.signals.push(signal);
    }
    // Before whatever the child does.
    let token = token.and_then(|_| {
        let heap = Heap::detached();
        let answer = answer_told(&heap, reference, am::ok, pid.term());
        seq::spawn_answered(p, parent, answer)
    });
    reply(from.entry, to, (flags, pid.term()), token);
    child.start_as_root();
    Ok(())
}

/// Links a child to its parent and has that monitor it, by `reference`, as it was asked: what the reply says of that.
fn bind(
    from: &Incoming<'_>,
    child: &Process,
    parsed: &SpawnRequest<'_>,
    (key, parent, reference): (Vec<u32>, Peer, Term<'_>),
) -> i64 {
    let mut flags = 0;
    if parsed.link.is_some() {
        flags |= spawn_reply::LINK;
        child.relations().link(parent, false);
        from.entry
            .state
            .lock()
            .relations
            .links
            .insert((child.pid(), parent));
    }
    if parsed.monitor.is_some() {
        flags |= spawn_reply::MONITOR;
        let number = make_ref();
        from.entry
            .state
            .lock()
            .relations
            .watched
            .insert(key.clone(), (child.pid(), number));
        let watcher = from.watcher(key, parent, [child.pid().term(), reference]);
        child.relations().watchers.insert(number, watcher);
    }
    flags
}

/// `{Module, Function, Arity}`
fn called(call: Term<'_>) -> Option<(Atom, Atom, u8)> {
    let [module, function, arity] = call.as_tuple()?.elements() else {
        return None;
    };
    let arity = arity.as_index()?.min(255) as u8;
    Some((module.as_atom()?, function.as_atom()?, arity))
}

/// A reply as sequential tracing tells of it.
fn answer_told<'h>(
    heap: &'h Heap,
    reference: Term<'_>,
    outcome: Atom,
    result: Term<'_>,
) -> Term<'h> {
    let [reference, result] = [reference, result].map(|term| heap.copy_in(term));
    heap.tuple(&[am::spawn_reply.term(), reference, outcome.term(), result])
}

/// Answers that there is no child. `traced` are the token of the request, and the request.
fn refuse(entry: &DistEntry, to: [Term<'_>; 2], error: Atom, traced: Option<(Token, Message)>) {
    let [reference, parent] = to;
    let heap = Heap::detached();
    let token = traced.map(|(token, request)| {
        let answer = answer_told(&heap, reference, am::error, error.term());
        seq::spawn_refused(&token, request.term(), parent, answer)
    });
    reply(entry, to, (0, error.term()), token);
}

fn reply(
    entry: &DistEntry,
    [reference, parent]: [Term<'_>; 2],
    (flags, result): (i64, Term<'_>),
    token: Option<Token>,
) {
    let heap = Heap::detached();
    let operation = match token {
        Some(_) => Operation::SpawnReplyTt,
        None => Operation::SpawnReply,
    };
    let mut control = vec![
        operation.term(),
        heap.copy_in(reference),
        heap.copy_in(parent),
        Term::small(flags),
        heap.copy_in(result),
    ];
    control.extend(token.map(|token| token.term(&heap)));
    let control = heap.tuple(&control);
    entry.send(
        On::Existing,
        Outbound::without_payload(result.as_pid(), control),
    );
}

/// The other node has answered a request of a process of this node.
///
/// # Errors
/// [`BadData`]
pub(super) fn replied(
    from: &Incoming<'_>,
    [request, to, flags, result]: [Term<'_>; 4],
    token: Option<Token>,
) -> Result<(), BadData> {
    let flags = flags
        .as_small()
        .filter(|flags| *flags >= 0)
        .ok_or(BadData)?;
    let result = match result.as_atom() {
        Some(error) => Err(error),
        None => Ok(from.peer(result)?),
    };
    // Of an old incarnation of this node: nobody waits.
    let (Some(pid), Some(reference)) = (to.as_pid(), request.as_ref()) else {
        return Ok(());
    };
    let reference = reference.numbers();
    let is_linked = flags & spawn_reply::LINK != 0 && result.is_ok();
    let awaited = {
        let relations = &mut from.entry.state.lock().relations;
        let awaited = relations.spawns.remove(&reference);
        if let Ok(child) = result {
            if is_linked {
                relations.links.insert((pid, child));
            }
            if flags & spawn_reply::MONITOR != 0 {
                let target = RemoteProcess::Process(child);
                relations.monitors.insert(reference, (pid, target));
            }
        }
        awaited
    };
    let answer = move |p: Option<&mut Process>| match (p, result) {
        (Some(p), Ok(child)) => p.spawn_done(reference, child, token),
        (Some(p), Err(error)) => p.spawn_refused(reference, error, token),
        (None, Ok(child)) => {
            let reason = awaited.as_ref().and_then(|(_, exit)| exit.get());
            let reason = reason.map_or(am::noproc.term(), Message::term);
            give_up(pid, reference, child, is_linked, reason);
        }
        (None, Err(_)) => {}
    };
    deliver(pid, Signal::request(answer));
    Ok(())
}

/// The parent of `child` is gone, or wants it no more.
fn give_up(pid: Pid, reference: RefNumbers, child: Peer, is_linked: bool, reason: Term<'_>) {
    demonitor(RemoteProcess::Process(child), reference, pid);
    if is_linked {
        let exit = ExitSignal::of_link(pid.into(), reason, None);
        deliver_to_peer(child, Signal::Exit(Box::new(exit)));
    }
}

impl Process {
    /// The child is there: it is linked and monitored as was asked, and the reply comes.
    fn spawn_done(&mut self, reference: RefNumbers, child: Peer, token: Option<Token>) {
        let Some(waiting) = self.relations().spawns.remove(&reference) else {
            return;
        };
        let (pid, is_linked) = (self.pid(), waiting.link.is_some());
        if waiting.is_abandoned {
            give_up(pid, reference, child, is_linked, am::abandoned.term());
            return;
        }
        if let Some(priority) = waiting.link {
            self.relations().link(child, priority);
            child.with_term(|child| happened(self.shared(), Event::Link, child));
        }
        if let Some(monitor) = waiting.monitor {
            let mut relations = self.relations();
            if let Some(end) = monitor.alias {
                let priority = false;
                relations.aliases.insert(reference, Alias { end, priority });
            }
            let origin = Origin {
                target: Monitored::Remote(RemoteProcess::Process(child)),
                tag: monitor.tag,
                priority: monitor.priority,
            };
            relations.origins.insert(reference, origin);
        }
        if waiting.reply_ok {
            let tag = waiting.reply_tag;
            self.spawn_replied(tag, reference, am::ok, token, |heap| child.term(heap));
        }
    }

    /// There is no child, for this reason.
    pub(crate) fn spawn_refused(
        &mut self,
        reference: RefNumbers,
        error: Atom,
        token: Option<Token>,
    ) {
        let waiting = self.relations().spawns.remove(&reference);
        if let Some(waiting) = waiting.filter(|it| it.reply_error && !it.is_abandoned) {
            let tag = waiting.reply_tag;
            self.spawn_replied(tag, reference, am::error, token, |_| error.term());
        }
    }
}
