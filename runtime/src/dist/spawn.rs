//! Processes that one node starts on another. Source: `dist_spawn_request_4()` and `DOP_SPAWN_*` in `dist.c`, OTP 29.

use super::capabilities::SPAWN;
use super::entry::{DistEntry, Phase};
use super::input::{BadData, Incoming, numbers_of};
use super::operation::{Operation, spawn_reply};
use super::output::{Fate, On, demonitor};
use crate::heap::{Heap, Literals, Message, size};
use crate::process::nodes::RemoteProcess;
use crate::process::options::{self, BadOptions, SpawnRequest};
use crate::process::refs::{RefNumbers, make_ref, reference_of};
use crate::process::signal::{ExitSignal, deliver_to_peer};
use crate::process::watcher::{WatchedBy, Watcher};
use crate::process::{
    Alias, Monitored, Newborn, Origin, Peer, Process, SYSTEM, Signal, SpawnWaiting, deliver,
};
use crate::term::counted::is_alive;
use crate::term::{Atom, Pid, Term, am};

/// A request of the process `p` to start another: the node, `{M, F, Args}`, and the options that it has for itself and for
/// the other node.
pub(crate) struct Request<'p> {
    pub(crate) node: Atom,
    pub(crate) call: [Term<'p>; 3],
    /// The options as they were given.
    pub(crate) options: Term<'p>,
    pub(crate) parsed: SpawnRequest<'p>,
}

/// Sends the request, which has this reference.
///
/// # Errors
/// Why it cannot be sent: `noconnection`, or `notsup`.
pub(crate) fn request(
    p: &Process,
    request: &Request<'_>,
    reference: RefNumbers,
) -> Result<(), Atom> {
    let entry = DistEntry::of(request.node);
    if !is_alive() || !entry.auto_connect() {
        return Err(am::noconnection);
    }
    {
        let mut state = entry.state.lock();
        if state.phase == Phase::Connected && state.capabilities & SPAWN == 0 {
            return Err(am::notsup);
        }
        state.relations.spawns.insert(reference, p.pid());
    }
    p.relations()
        .spawns
        .insert(reference, SpawnWaiting::of(&request.parsed));
    let (pid, leader) = (p.pid(), p.group_leader());
    let [module, function, args] = request.call;
    let arity = Term::small(args.list_iter().count() as i64);
    let heap = Heap::detached();
    let control = heap.tuple(&[
        Operation::SpawnRequest.term(),
        reference_of(&heap, reference, pid),
        pid.term(),
        leader.term(&heap),
        heap.tuple(&[module, function, arity].map(|term| heap.copy_in(term))),
        remote_options(&heap, request.options),
    ]);
    if entry.send(On::Existing, control, Some(args)) == Fate::Sent {
        return Ok(());
    }
    entry.state.lock().relations.spawns.remove(&reference);
    p.relations().spawns.remove(&reference);
    Err(am::noconnection)
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
            p.spawn_refused(request, error);
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
    arguments: Term<'_>,
) -> Result<(), BadData> {
    let &[reference, parent, leader, call, options] = request else {
        return Err(BadData);
    };
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
            reply(from.entry, to, 0, error.term());
            return Ok(());
        }
    };
    let p = &child.process;
    let args = p.list(&[p.copy_in(call)]).raw();
    child.set_call(am::erts_internal, am::dist_spawn_init, args, 1);
    let p = &child.process;
    p.initial_call.set((module, function, arity));
    p.set_group_leader(leader);
    p.set_parent(parent_is);
    let pid = child.pid();
    let mut flags = 0;
    if parsed.link.is_some() {
        flags |= spawn_reply::LINK;
        p.relations().link(parent_is, false);
        from.entry
            .state
            .lock()
            .relations
            .links
            .insert((pid, parent_is));
    }
    if parsed.monitor.is_some() {
        flags |= spawn_reply::MONITOR;
        let number = make_ref();
        from.entry
            .state
            .lock()
            .relations
            .watched
            .insert(key.clone(), (pid, number));
        let names = [Message::copy_of(pid.term()), Message::copy_of(reference)];
        let told = from.told_of_exit(key, parent_is, names);
        let by = WatchedBy::Process(parent_is);
        p.relations().watchers.insert(number, Watcher { told, by });
    }
    // Before whatever the child does.
    reply(from.entry, to, flags, pid.term());
    // They are the first in its queue: nobody else knows it yet.
    let shared = child.process.shared();
    for first in [arguments, am::dist_spawn_init.term()] {
        let first = Signal::own(Message::copy_of(first), SYSTEM);
        let _ = shared.signals.push(first);
    }
    child.start_as_root();
    Ok(())
}

/// `{Module, Function, Arity}`
fn called(call: Term<'_>) -> Option<(Atom, Atom, u8)> {
    let [module, function, arity] = call.as_tuple()?.elements() else {
        return None;
    };
    let arity = arity.as_index()?.min(255) as u8;
    Some((module.as_atom()?, function.as_atom()?, arity))
}

fn reply(entry: &DistEntry, [reference, parent]: [Term<'_>; 2], flags: i64, result: Term<'_>) {
    let heap = Heap::detached();
    let control = heap.tuple(&[
        Operation::SpawnReply.term(),
        heap.copy_in(reference),
        heap.copy_in(parent),
        Term::small(flags),
        heap.copy_in(result),
    ]);
    entry.send(On::Existing, control, None);
}

/// The other node has answered a request of a process of this node.
///
/// # Errors
/// [`BadData`]
pub(super) fn replied(
    from: &Incoming<'_>,
    [request, to, flags, result]: [Term<'_>; 4],
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
    {
        let relations = &mut from.entry.state.lock().relations;
        relations.spawns.remove(&reference);
        if let Ok(child) = result {
            if is_linked {
                relations.links.insert((pid, child));
            }
            if flags & spawn_reply::MONITOR != 0 {
                let target = RemoteProcess::Process(child);
                relations.monitors.insert(reference, (pid, target));
            }
        }
    }
    let answer = move |p: Option<&mut Process>| match (p, result) {
        (Some(p), Ok(child)) => p.spawn_done(reference, child),
        (Some(p), Err(error)) => p.spawn_refused(reference, error),
        (None, Ok(child)) => give_up(pid, reference, child, is_linked, am::noproc),
        (None, Err(_)) => {}
    };
    deliver(pid, Signal::request(answer));
    Ok(())
}

/// The parent of `child` is gone, or wants it no more.
fn give_up(pid: Pid, reference: RefNumbers, child: Peer, is_linked: bool, reason: Atom) {
    demonitor(RemoteProcess::Process(child), reference, pid);
    if is_linked {
        let exit = ExitSignal::of_link(pid.into(), reason.term(), None);
        deliver_to_peer(child, Signal::Exit(Box::new(exit)));
    }
}

impl Process {
    /// The child is there: it is linked and monitored as was asked, and the reply comes.
    fn spawn_done(&mut self, reference: RefNumbers, child: Peer) {
        let Some(waiting) = self.relations().spawns.remove(&reference) else {
            return;
        };
        let (pid, is_linked) = (self.pid(), waiting.link.is_some());
        if waiting.is_abandoned {
            give_up(pid, reference, child, is_linked, am::abandoned);
            return;
        }
        if let Some(priority) = waiting.link {
            self.relations().link(child, priority);
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
            self.spawn_replied(tag, reference, am::ok, |heap| child.term(heap));
        }
    }

    /// There is no child, for this reason.
    pub(crate) fn spawn_refused(&mut self, reference: RefNumbers, error: Atom) {
        let waiting = self.relations().spawns.remove(&reference);
        if let Some(waiting) = waiting.filter(|it| it.reply_error && !it.is_abandoned) {
            self.spawn_replied(waiting.reply_tag, reference, am::error, |_| error.term());
        }
    }
}
