//! The BIFs that start processes, on this node and on others.

use super::send::return_when_sent;
use super::{BifResult, Control, Leave, badarg, bifs, system_limit};
use crate::dist::spawn::{self, NotRequested};
use crate::heap::Message;
use crate::process::options::{self, BadOptions, SpawnRequest};
use crate::process::order::explore;
use crate::process::refs::{RefNumbers, make_pid_ref, make_ref};
use crate::process::{Alias, AliasEnd, Monitored, Origin, Process, Signal, deliver};
use crate::term::counted::node_name;
use crate::term::{Atom, Pid, Term, View, am, tag};
use crate::trace::{events, seq};

bifs! {
    all ordered;
    bif erlang:"spawn"/3 => spawn_3;
    bif erlang:"spawn_link"/3 => spawn_link_3;
    bif erlang:"spawn_opt"/4 => spawn_opt_4;
    bif erts_internal:"spawn_request"/4 => spawn_request_4;
    bif erts_internal:"dist_spawn_request"/4 => dist_spawn_request_4;
    bif erlang:"spawn_request_abandon"/1 => spawn_request_abandon_1;
    bif erts_internal:"spawn_system_process"/3 => spawn_system_process_3;
}

fn spawn_3<'p>(p: &'p Process, mfa: [Term<'p>; 3]) -> BifResult<'p> {
    let (request, _) = options::spawn_options(Term::NIL, false);
    Ok(spawn(p, mfa, &request, Term::NIL)?.0.term())
}

fn spawn_link_3<'p>(p: &'p Process, mfa: [Term<'p>; 3]) -> BifResult<'p> {
    let (mut request, _) = options::spawn_options(Term::NIL, false);
    request.link = Some(false);
    // They are only told.
    let opts = match p.flags.get().seq_token {
        true => p.list(&[am::link.term()]),
        false => Term::NIL,
    };
    Ok(spawn(p, mfa, &request, opts)?.0.term())
}

fn spawn_opt_4<'p>(p: &'p Process, [m, f, a, opts]: [Term<'p>; 4]) -> BifResult<'p> {
    let (request, parsed) = options::spawn_options(opts, false);
    parsed?;
    let (pid, reference) = spawn(p, [m, f, a], &request, opts)?;
    if request.monitor.is_some() {
        return Ok(p.tuple(&[pid.term(), p.reference_of(reference)]));
    }
    Ok(pid.term())
}

/// Spawns and links and monitors as `request` says; the pid and the reference of the monitor.
fn spawn<'p>(
    p: &'p Process,
    [m, f, a]: [Term<'p>; 3],
    request: &SpawnRequest<'p>,
    opts: Term<'p>,
) -> Result<(Pid, RefNumbers), Leave<'p>> {
    let (Some(module), Some(function)) = (m.as_atom(), f.as_atom()) else {
        return Err(badarg().into());
    };
    if a.list_iter().any(|element| element.is_err()) {
        return Err(badarg().into());
    }
    p.yield_if_killed_first()?;
    let child = p
        .bear(
            module,
            function,
            a,
            &request.options,
            request.link.is_some(),
        )
        .map_err(|_| system_limit())?;
    let reference = reference_for(request);
    let seq = seq_spawn(p, &child.process, [m, f, a], request, (opts, reference));
    events::spawned(p, child.process.shared(), [m, f, a], request.link.is_some());
    bind(p, &child.process, request, reference);
    if let Some(seq) = seq {
        seq::spawn_done(p, &child.process, &seq);
    }
    Ok((child.start(), reference))
}

/// A spawn by a process with a sequential trace token, which goes to the child.
#[inline]
fn seq_spawn<'p>(
    p: &'p Process,
    child: &Process,
    mfa: [Term<'p>; 3],
    request: &SpawnRequest<'p>,
    (options, reference): (Term<'p>, RefNumbers),
) -> Option<seq::Spawn<'p>> {
    p.flags.get().seq_token.then(|| {
        let spawn = seq::Spawn {
            mfa,
            options,
            reply_tag: request.reply_tag,
            reference: p.reference_of(reference),
        };
        seq::spawned(p, child, &spawn);
        spawn
    })
}

/// The reference of the monitor or of the request.
fn reference_for(request: &SpawnRequest<'_>) -> RefNumbers {
    match request.monitor {
        Some(monitor) => new_ref(monitor.alias),
        None => make_ref(),
    }
}

/// Links and monitors a child that does not run yet.
fn bind(p: &Process, child: &Process, request: &SpawnRequest<'_>, reference: RefNumbers) {
    if let Some(priority) = request.link {
        p.relations().link(child.pid().into(), priority);
        child.relations().link(p.pid().into(), false);
    }
    let monitor = request.monitor.as_ref().map(|_| reference);
    explore::record_watched_birth(p.pid(), child.pid(), request.link.is_some(), monitor);
    let Some(monitor) = request.monitor else {
        return;
    };
    let mut relations = p.relations();
    if let Some(end) = monitor.alias {
        let priority = false;
        relations.aliases.insert(reference, Alias { end, priority });
    }
    let origin = Origin {
        target: Monitored::Process(child.pid()),
        tag: monitor.tag.map(Message::copy_of),
        priority: monitor.priority,
    };
    relations.origins.insert(reference, origin);
    child.relations().targets.insert(reference, p.pid());
}

/// The numbers of a reference that may be an alias.
pub(super) fn new_ref(alias: Option<AliasEnd>) -> RefNumbers {
    if alias.is_some() {
        make_pid_ref()
    } else {
        make_ref()
    }
}

fn spawn_request_4<'p>(p: &'p Process, [m, f, a, opts]: [Term<'p>; 4]) -> BifResult<'p> {
    let (Some(module), Some(function)) = (m.as_atom(), f.as_atom()) else {
        return Ok(am::badarg.term());
    };
    let arity = a.list_iter().try_fold(0usize, |n, e| e.map(|_| n + 1));
    let Ok(arity) = arity else {
        return Ok(am::badarg.term());
    };
    p.yield_if_killed_first()?;
    let (request, parsed) = options::spawn_options(opts, true);
    let error = match parsed {
        Err(BadOptions::NoList) => return Ok(am::badopt.term()),
        Err(BadOptions::Option) => am::badopt,
        Ok(()) => {
            let mfa = p.tuple(&[m, f, a]);
            let (init, args) = (am::spawn_init, p.list(&[mfa]));
            let linked = request.link.is_some();
            match p.bear(am::erts_internal, init, args, &request.options, linked) {
                Err(_) => am::system_limit,
                Ok(child) => {
                    let call = (module, function, arity.min(255) as u8);
                    child.process.initial_call.set(call);
                    crate::trace::record::born(child.pid(), Some(p.pid()), call, a);
                    let numbers = reference_for(&request);
                    let mfa = [am::erts_internal.term(), init.term(), args];
                    let _ = seq_spawn(p, &child.process, mfa, &request, (opts, numbers));
                    events::spawned(p, child.process.shared(), mfa, linked);
                    bind(p, &child.process, &request, numbers);
                    let reference = p.reference_of(numbers);
                    answer_spawn(p, &child.process, &request, reference);
                    child.start();
                    return Ok(reference);
                }
            }
        }
    };
    Ok(refuse_spawn(p, &request, error))
}

/// Sends the message that a spawn request has been done, if it is asked for.
fn answer_spawn<'p>(
    p: &'p Process,
    child: &Process,
    request: &SpawnRequest<'p>,
    reference: Term<'p>,
) {
    let pid = child.pid().term();
    let reply = [request.reply_tag, reference, am::ok.term(), pid];
    let reply = request.reply_ok.then(|| p.tuple(&reply));
    let token = seq::spawn_replied(p, child, reply);
    if let Some(reply) = reply {
        deliver(p.pid(), Signal::sent(reply, child.pid(), token, 0));
    }
}

/// The reference of a spawn that cannot be, and the message that says so.
fn refuse_spawn<'p>(p: &'p Process, request: &SpawnRequest<'p>, error: Atom) -> Term<'p> {
    let reference = p.reference_of(make_ref());
    if request.reply_error {
        let error = [am::error.term(), Atom::term(error)];
        let reply = [request.reply_tag, reference, error[0], error[1]];
        deliver(p.pid(), Signal::message(p.tuple(&reply), p.pid()));
    }
    reference
}

/// A spawn at another node.
fn dist_spawn_request_4<'p>(
    p: &'p Process,
    [node, mfa, opts, kind]: [Term<'p>; 4],
) -> BifResult<'p> {
    let call = match mfa.as_tuple().map(crate::term::Tuple::elements) {
        Some(&[m, f, a]) => {
            let mut args = a.list_iter();
            let is_call =
                m.as_atom().is_some() && f.as_atom().is_some() && args.all(|arg| arg.is_ok());
            is_call.then_some([m, f, a])
        }
        _ => None,
    };
    let for_request = kind == am::spawn_request;
    let (parsed, done) = options::spawn_options(opts, for_request);
    // What this node does not know the other one may.
    let done = match done {
        Err(BadOptions::Option) => options::spawn_options(own_options(p, opts), for_request).1,
        done => done,
    };
    // A request that is being encoded goes on, although this node may have been given the name of the other one meanwhile.
    let unsent = p.take_work_if::<spawn::UnsentRequest>();
    let node = node.as_atom();
    let node = node.filter(|node| unsent.is_some() || *node != node_name());
    let (Some(node), Some(call)) = (node, call) else {
        return Ok(am::badarg.term());
    };
    if done == Err(BadOptions::NoList) || done.is_err() && !for_request {
        return Ok(am::badarg.term());
    }
    let has_monitor = Term::bool(parsed.monitor.is_some());
    let outcome = |reference: Term<'p>| match for_request {
        true => reference,
        false => p.tuple(&[reference, has_monitor]),
    };
    let alias = parsed.monitor.and_then(|monitor| monitor.alias);
    let reference = match &unsent {
        Some(unsent) => unsent.reference,
        None => new_ref(alias),
    };
    let request = spawn::Request {
        node,
        call,
        options: opts,
        parsed,
    };
    let sent = match (unsent, done) {
        (Some(unsent), _) => unsent.go_on(p, &request),
        (None, Ok(())) => spawn::request(p, &request, reference),
        (None, Err(_)) => Err(NotRequested::Error(am::badopt)),
    };
    match sent {
        Ok(()) => return_when_sent(p, Some(node), outcome(p.reference_of(reference))),
        Err(NotRequested::Encoding) => Err(Control::Yield.into()),
        Err(NotRequested::Error(error)) => Ok(outcome(refuse_spawn(p, &request.parsed, error))),
    }
}

/// Those of the options that are this node's to understand, wherever the process is.
fn own_options<'p>(p: &'p Process, options: Term<'p>) -> Term<'p> {
    let is_own = |option: &Term<'_>| {
        let pair = option.as_tuple().filter(|pair| pair.arity() == 2);
        let key = pair.and_then(|pair| pair.get(0).as_atom());
        matches!(
            key,
            Some(am::reply | am::reply_tag | am::monitor | am::link)
        )
    };
    let own = options.list_iter().flatten().filter(is_own);
    p.list(&own.collect::<Vec<_>>())
}

/// A spawn of this node has always been done when its request returns. Of one on another node the reply comes no more.
fn spawn_request_abandon_1<'p>(p: &'p Process, [reference]: [Term<'p>; 1]) -> BifResult<'p> {
    match reference.view() {
        View::Ref(reference) => Ok(Term::bool(p.abandon_spawn(reference.numbers()))),
        View::External(other) if other.kind() == tag::EXTERNAL_REF => Ok(Term::bool(false)),
        _ => Err(badarg().into()),
    }
}

fn spawn_system_process_3<'p>(p: &'p Process, mfa: [Term<'p>; 3]) -> BifResult<'p> {
    let (mut request, _) = options::spawn_options(Term::NIL, false);
    request.options.system = true;
    request.options.priority = Some(crate::sched::run_queue::Priority::High);
    Ok(spawn(p, mfa, &request, Term::NIL)?.0.term())
}
