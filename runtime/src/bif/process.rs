//! The BIFs of processes: links, monitors, aliases, exit signals, names, and what a process knows of itself.

use super::node::is_alive_or_dynamic;
use super::send::return_when_sent;
use super::spawn::new_ref;
use super::{
    BifResult, Control, GuardResult, Leave, Next, Raise, badarg, badopt, bifs, system_limit,
};
use crate::code::entry::export;
use crate::heap::{Heap, Message};
use crate::process::nodes::{self, RemoteProcess};
use crate::process::options::{self, BadOptions, MonitorOptions};
use crate::process::order::answer::Native;
use crate::process::order::director::{are_answers_recorded, may_timing_show};
use crate::process::order::replay::SystemNotice;
use crate::process::order::{answer, explore};
use crate::process::refs::{RefNumbers, make_pid_ref};
use crate::process::signal::deliver_to_peer;
use crate::process::{
    Alias, AliasEnd, CONTEXT_REDS, Due, Monitored, NotSent, PauseWords, Peer, Process, SYSTEM,
    Signal, ask, deliver, exists, is_of_old_incarnation, registry, send,
};
use crate::term::counted::node_name;
use crate::term::{Atom, Pid, Term, View, am, tag};
use crate::trace::{Event, events};

bifs! {
    ubif erlang:"self"/0 => self_0, own;
    bif erlang:"link"/1 => link_1, ordered;
    bif erlang:"link"/2 => link_2, ordered;
    bif erlang:"unlink"/1 => unlink_1, turn;
    bif erlang:"monitor"/2 => monitor_2, ordered;
    bif erlang:"monitor"/3 => monitor_3, ordered;
    bif erlang:"demonitor"/1 => demonitor_1, ordered;
    bif erlang:"demonitor"/2 => demonitor_2, ordered;
    bif erlang:"alias"/1 => alias_1, own;
    bif erlang:"unalias"/1 => unalias_1, turn;
    bif erlang:"exit"/2 => exit_2, ordered;
    bif erlang:"exit"/3 => exit_3, ordered;
    bif erlang:"exit_signal"/2 => exit_signal_2, ordered;
    bif erlang:"exit_signal"/3 => exit_signal_3, ordered;
    bif erlang:"processes"/0 => processes_0, answer;
    bif erts_internal:"processes_next"/1 => processes_next_1, answer;
    bif erlang:"group_leader"/0 => group_leader_0, own;
    bif erts_internal:"group_leader"/2 => group_leader_2, ordered;
    bif erts_internal:"group_leader"/3 => group_leader_3, ordered;
    bif erlang:"bump_reductions"/1 => bump_reductions_1, own;
    hbif erlang:"hibernate"/3 => hibernate_3, ordered;
    bif erts_internal:"await_run_trap"/0 => await_run_trap_0, own;
}

impl From<BadOptions> for Raise<'static> {
    fn from(_: BadOptions) -> Self {
        badopt()
    }
}

/// Waits for a run, in an emulator that explores all that its command has it do: the command begins with this call. OTP has
/// none such, so it is listed among its BIFs as little as what they go on with.
fn await_run_trap_0<'p>(p: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    match explore::may_begin(p.pid()) {
        Some(true) => Ok(am::ok.term()),
        Some(false) => Err(Control::Wait.into()),
        None => Err(badarg().into()),
    }
}

pub(super) fn local_pid(term: Term<'_>) -> Result<Pid, Raise<'static>> {
    term.as_pid().ok_or_else(badarg)
}

fn self_0<'p>(p: &'p Process, []: [Term<'p>; 0]) -> GuardResult<'p> {
    Ok(p.pid().term())
}

fn link_1<'p>(p: &'p Process, [other]: [Term<'p>; 1]) -> BifResult<'p> {
    link(p, other, false)
}

fn link_2<'p>(p: &'p Process, [other, opts]: [Term<'p>; 2]) -> BifResult<'p> {
    link(p, other, options::priority_option(opts)?)
}

fn link<'p>(p: &'p Process, other: Term<'p>, priority: bool) -> BifResult<'p> {
    explore::access_end_of_peer(p, other)?;
    events::happened(p.shared(), Event::Link, other);
    let Some(peer) = Peer::of(other) else {
        return match Peer::process_of(other) {
            Some(peer) => {
                let hears = p.link(peer, priority);
                let node = peer.node_name().filter(|_| hears);
                return_when_sent(p, node, Term::bool(true))
            }
            None => link_to_old(p, other),
        };
    };
    let gone = match peer.pid() {
        Some(pid) => !exists(pid),
        None => !crate::process::ports::exists(other.as_port().ok_or_else(badarg)?),
    };
    static NATIVE: Native = Native::new("erlang", "link", 1);
    // A replay follows the recorded run: where the two differ, a process that is gone by now counts as alive, and one that
    // still lives counts as gone.
    let refuses = gone && !p.flags.get().trap_exit;
    let links = answer::in_turn(p, &NATIVE, || Ok(Term::bool(!refuses)))?;
    if links == am::false_ {
        return Err(am::noproc.into());
    }
    p.link(peer, priority);
    Ok(Term::bool(true))
}

/// Links to what is of an old incarnation of this node: an exit signal comes of it.
fn link_to_old<'p>(p: &'p Process, other: Term<'p>) -> BifResult<'p> {
    if !is_old_peer(other) {
        return Err(badarg().into());
    }
    if !p.flags.get().trap_exit {
        return Err(am::noproc.into());
    }
    p.link_to_old(other);
    Ok(Term::bool(true))
}

/// Is it a process or port of an old incarnation of this node?
fn is_old_peer(term: Term<'_>) -> bool {
    let is_peer = is_elsewhere(term, tag::EXTERNAL_PID) || is_elsewhere(term, tag::EXTERNAL_PORT);
    is_peer && is_of_old_incarnation(term)
}

fn unlink_1<'p>(p: &'p Process, [other]: [Term<'p>; 1]) -> BifResult<'p> {
    let ends = |_: &Process| Peer::of(other)?.pid().map(SystemNotice::Exit);
    if let Some(later) = p.wait_for_notice(ends) {
        return Err(later.into());
    }
    explore::access_link(p, other)?;
    events::happened(p.shared(), Event::Unlink, other);
    let node = match Peer::of(other).or_else(|| Peer::process_of(other)) {
        Some(peer) => {
            let hears = p.unlink(peer);
            peer.node_name().filter(|_| hears)
        }
        None if is_old_peer(other) => {
            p.unlink_from_old(other);
            None
        }
        None => return Err(badarg().into()),
    };
    return_when_sent(p, node, Term::bool(true))
}

fn monitor_2<'p>(p: &'p Process, [kind, target]: [Term<'p>; 2]) -> BifResult<'p> {
    monitor(p, kind, target, MonitorOptions::default())
}

fn monitor_3<'p>(p: &'p Process, [kind, target, opts]: [Term<'p>; 3]) -> BifResult<'p> {
    monitor(p, kind, target, options::monitor_options(opts)?)
}

fn monitor<'p>(
    p: &'p Process,
    kind: Term<'p>,
    item: Term<'p>,
    options: MonitorOptions<'p>,
) -> BifResult<'p> {
    let target = match kind.as_atom() {
        Some(am::process) => monitored_process(p, item)?,
        Some(am::port) => monitored_port(p, item)?,
        Some(am::time_offset) if item == am::clock_service => Monitored::TimeOffset,
        Some(am::time_offset) => return Err(badarg().into()),
        _ => {
            return Err(Raise::ErrorCause(am::badarg.term(), am::badtype.term()).into());
        }
    };
    let by_name = matches!(target, Monitored::Name(_, _, Some(pid)) if pid == p.pid());
    if target == Monitored::Process(p.pid()) || by_name {
        // Nobody monitors itself: a reference, and nothing else.
        return Ok(p.reference_of(new_ref(options.alias)));
    }
    let alias = options.alias.map(|end| Alias {
        end,
        priority: false,
    });
    let tag = options.tag.map(Message::copy_of);
    let reference = p.monitor(target, tag, alias, options.priority);
    if target == Monitored::Gone {
        let kind = kind.as_atom().ok_or_else(badarg)?;
        let item = Message::copy_of(item);
        let down = move |p: Option<&mut Process>| {
            if let Some(p) = p {
                p.down_of_old(reference, kind, item);
            }
        };
        deliver(p.pid(), Signal::request(down));
    }
    return_when_sent(p, target.node(), p.reference_of(reference))
}

/// Is it a pid, port or reference of another node, or of an old incarnation of this one?
pub(super) fn is_elsewhere(term: Term<'_>, kind: u64) -> bool {
    term.as_external()
        .is_some_and(|external| external.kind() == kind)
}

fn monitored_process(p: &Process, target: Term<'_>) -> Result<Monitored, Leave<'static>> {
    let by_name = |name: Atom| -> Result<Monitored, Leave<'static>> {
        let pid = match registry::find_to_watch(p, name)? {
            Some(registry::Named::Process(pid)) => Some(pid),
            _ => None,
        };
        Ok(Monitored::Name(name, node_name(), pid))
    };
    match target.view() {
        View::Pid(pid) => {
            explore::access_end_of(p, pid)?;
            Ok(Monitored::Process(pid))
        }
        View::External(other) if other.kind() == tag::EXTERNAL_PID => {
            let remote = Peer::process_of(target).map(RemoteProcess::Process);
            Ok(remote.map_or(Monitored::Gone, Monitored::Remote))
        }
        View::Atom(name) => by_name(name),
        View::Tuple(tuple) => match tuple.elements() {
            [name, node] => match (name.as_atom(), node.as_atom()) {
                (Some(name), Some(node)) if node == node_name() => by_name(name),
                // A node that is not alive knows no other by name.
                (Some(name), Some(node)) if is_alive_or_dynamic(p) => {
                    Ok(Monitored::Remote(RemoteProcess::Name(name, node)))
                }
                _ => Err(badarg().into()),
            },
            _ => Err(badarg().into()),
        },
        _ => Err(badarg().into()),
    }
}

fn monitored_port(p: &Process, target: Term<'_>) -> Result<Monitored, Leave<'static>> {
    let by_name = |name: Atom| -> Result<Monitored, Leave<'static>> {
        let port = match registry::find(p, name)? {
            Some(registry::Named::Port(port)) => Some(port),
            _ => None,
        };
        Ok(Monitored::NamedPort(name, node_name(), port))
    };
    match target.view() {
        View::Port(port) => Ok(Monitored::Port(port)),
        View::External(other)
            if other.kind() == tag::EXTERNAL_PORT && is_of_old_incarnation(target) =>
        {
            Ok(Monitored::Gone)
        }
        View::Atom(name) => by_name(name),
        View::Tuple(tuple) => match tuple.elements() {
            [name, node] if *node == node_name() => {
                name.as_atom().map_or_else(|| Err(badarg().into()), by_name)
            }
            _ => Err(badarg().into()),
        },
        _ => Err(badarg().into()),
    }
}

fn demonitor_1<'p>(p: &'p Process, [reference]: [Term<'p>; 1]) -> BifResult<'p> {
    let node = monitored_by(p, reference).and_then(Monitored::node);
    if !demonitor_in_turn(p, reference, true)? {
        explore::note_word_kept(p, reference);
    }
    return_when_sent(p, node, Term::bool(true))
}

/// As [`demonitor`]. Where a recorded run is followed, what the monitor told first there comes first, and so does the message
/// that ended it. Whether a monitor that a message through its alias ends was still there is recorded.
fn demonitor_in_turn<'p>(
    p: &'p Process,
    reference: Term<'p>,
    keeps: bool,
) -> Result<bool, Leave<'p>> {
    static NATIVE: Native = Native::new("erlang", "demonitor", 1);
    if let Some(later) = wait_for_notice_of_monitored(p, reference) {
        return Err(later.into());
    }
    if !may_timing_show()
        && let Some(numbers) = reference.as_ref().map(|it| it.numbers())
    {
        if ends_with_reply(p, numbers) {
            let ends = || Ok(Term::bool(demonitor(p, reference, keeps)?));
            return Ok(answer::in_turn(p, &NATIVE, ends)? == am::true_);
        }
        if p.take_replied(numbers) {
            answer::noted(p, &NATIVE, Term::bool(false));
        }
    }
    Ok(demonitor(p, reference, keeps)?)
}

/// What is monitored by this reference.
fn monitored_by(p: &Process, reference: Term<'_>) -> Option<Monitored> {
    let numbers = reference.as_ref()?.numbers();
    Some(p.some_relations()?.origins.get(&numbers)?.target)
}

/// Whether a message through its alias would end this monitor.
fn ends_with_reply(p: &Process, monitor: RefNumbers) -> bool {
    p.alias(monitor)
        .is_some_and(|alias| alias.end == AliasEnd::Reply)
}

/// Whether to try again later: a recorded run is followed in which the end of the monitored process came first.
fn wait_for_notice_of_monitored(p: &Process, reference: Term<'_>) -> Option<Control<'static>> {
    p.wait_for_notice(|p| {
        let reference = reference.as_ref()?.numbers();
        p.notice_of_monitor(reference)
    })
}

/// `false` when there is no such monitor; `badarg` when it is another process's alias. With `keeps`, a message that the
/// monitor has given before stays.
fn demonitor(p: &Process, reference: Term<'_>, keeps: bool) -> Result<bool, Raise<'static>> {
    match reference.view() {
        View::Ref(reference) => Ok(p.demonitor(reference.numbers(), keeps)),
        View::External(other)
            if other.kind() == tag::EXTERNAL_REF && is_of_old_incarnation(reference) =>
        {
            Ok(false)
        }
        _ => Err(badarg()),
    }
}

fn demonitor_2<'p>(p: &'p Process, [reference, opts]: [Term<'p>; 2]) -> BifResult<'p> {
    let (mut flush, mut info) = (false, false);
    for option in opts.list_iter() {
        match option.map_err(|_| badarg())?.as_atom() {
            Some(am::flush) => flush = true,
            Some(am::info) => info = true,
            _ => return Err(badarg().into()),
        }
    }
    if info {
        explore::note_unexplored("what demonitor/2 tells with the option info");
    }
    let target = monitored_by(p, reference);
    // One that is still there has given no message yet, but for this kind, which gives several.
    let gives_several = target == Some(Monitored::TimeOffset);
    let was_there = demonitor_in_turn(p, reference, !flush)?;
    if was_there && !(gives_several && flush) {
        return return_when_sent(p, target.and_then(Monitored::node), Term::bool(true));
    }
    let result = Term::bool(was_there || !info);
    if flush {
        p.begin_flush();
        let flush = export(am::erts_internal, am::flush_monitor_messages, 3);
        let arguments = vec![reference, Term::bool(gives_several), result];
        return Err(Control::Trap(flush, arguments).into());
    }
    explore::note_word_kept(p, reference);
    Ok(result)
}

fn alias_1<'p>(p: &'p Process, [opts]: [Term<'p>; 1]) -> BifResult<'p> {
    let mut alias = Alias {
        end: AliasEnd::Explicit,
        priority: false,
    };
    for option in opts.list_iter() {
        match option.map_err(|_| badarg())?.as_atom() {
            Some(am::explicit_unalias) => alias.end = AliasEnd::Explicit,
            Some(am::reply) => alias.end = AliasEnd::Reply,
            Some(am::priority) => alias.priority = true,
            _ => return Err(badarg().into()),
        }
    }
    let reference = make_pid_ref();
    p.relations().aliases.insert(reference, alias);
    Ok(p.reference_of(reference))
}

fn unalias_1<'p>(p: &'p Process, [alias]: [Term<'p>; 1]) -> BifResult<'p> {
    let reference = match alias.view() {
        View::Ref(reference) => reference,
        View::External(other) if other.kind() == tag::EXTERNAL_REF => {
            return Ok(Term::bool(false));
        }
        _ => return Err(badarg().into()),
    };
    if reference.pid() != Some(p.pid()) {
        return Ok(Term::bool(false));
    }
    let removed = p
        .some_relations()
        .and_then(|mut relations| relations.aliases.remove(&reference.numbers()))
        .inspect(|_| explore::note_alias_given_up(p.pid(), reference.numbers()));
    Ok(Term::bool(removed.is_some()))
}

fn exit_2<'p>(p: &'p Process, [to, reason]: [Term<'p>; 2]) -> BifResult<'p> {
    exit_signal(p, to, reason, false, true)
}

fn exit_3<'p>(p: &'p Process, [to, reason, opts]: [Term<'p>; 3]) -> BifResult<'p> {
    exit_signal(p, to, reason, options::priority_option(opts)?, true)
}

fn exit_signal_2<'p>(p: &'p Process, [to, reason]: [Term<'p>; 2]) -> BifResult<'p> {
    exit_signal(p, to, reason, false, false)
}

fn exit_signal_3<'p>(p: &'p Process, [to, reason, opts]: [Term<'p>; 3]) -> BifResult<'p> {
    exit_signal(p, to, reason, options::priority_option(opts)?, false)
}

fn exit_signal<'p>(
    p: &'p Process,
    to: Term<'p>,
    reason: Term<'p>,
    priority: bool,
    exit2: bool,
) -> BifResult<'p> {
    match to.view() {
        View::Pid(pid) => {
            p.take_turn_with(pid, || explore::access_for_exit(p, pid, reason))?;
            // exit/2 to itself: even `normal` ends it, and does so before the call returns.
            let suicide =
                exit2 && pid == p.pid() && (reason == am::kill || !p.flags.get().trap_exit);
            p.send_exit(pid, None, reason, suicide, priority);
            if suicide {
                return Err(Control::Wait.into());
            }
        }
        View::Ref(alias) => {
            if let Some(pid) = alias.pid() {
                p.take_turn_with(pid, || explore::access_for_exit(p, pid, reason))?;
                p.send_exit(pid, Some(alias.numbers()), reason, false, priority);
            }
        }
        View::Port(port) => crate::process::ports::send_exit(p, port, reason),
        View::External(_) if is_of_old_incarnation(to) && !p.has_work() => {}
        View::External(other) if other.kind() != tag::EXTERNAL_PORT => {
            nodes::send_exit(p, to, reason, priority).map_err(|error| match error {
                NotSent::Encoding => Leave::from(Control::Yield),
                _ => system_limit().into(),
            })?;
            return return_when_sent(p, Some(other.node().name), Term::bool(true));
        }
        _ => return Err(badarg().into()),
    }
    Ok(Term::bool(true))
}

pub(super) fn all_pids(p: &Process) -> Term<'_> {
    let guard = crate::sched::ptab::pin();
    let table = crate::process::table().iter(&guard);
    let pids = table.map(|shared| shared.pid());
    let pids = pids.filter(|pid| !explore::is_timer(*pid));
    let pids: Vec<Term<'_>> = pids.map(Pid::term).collect();
    p.bump_reds(pids.len() as i64 / 75);
    p.list(&pids)
}

/// All places of the process table are looked at. Source: `erts_ptab_list()`.
fn processes_0<'p>(p: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    const PLACES_PER_SLICE: usize = 25 * CONTEXT_REDS as usize;
    if let Some(result) = p.pay_on(PauseWords::Once) {
        return result;
    }
    let places = crate::process::table().limit();
    if are_answers_recorded() {
        // Its answer is recorded, and a replay, which does not make the call, cannot pay for it.
        return Ok(all_pids(p));
    }
    p.pay(
        all_pids(p),
        &[Due::new(places, PLACES_PER_SLICE)],
        PauseWords::Once,
    )
}

/// All pids come with the first call; the second finds none left.
fn processes_next_1<'p>(p: &'p Process, [iterator]: [Term<'p>; 1]) -> BifResult<'p> {
    let limit = crate::process::table().limit();
    match iterator.as_index().ok_or_else(badarg)? {
        0 => Ok(p.tuple(&[Term::small(limit as i64), all_pids(p)])),
        slot if slot <= limit => Ok(am::none.term()),
        _ => Err(badarg().into()),
    }
}

/// Asks a process; one that is gone is answered for.
pub(super) fn ask_or_answer(p: &Process, pid: Pid, request: Signal) {
    if let Err(request) = ask(p, pid, request) {
        request.answer_for_gone(pid);
    }
}

/// Sends `{Ref, Value}` to the process that asked.
pub(crate) fn reply(to: Pid, reference: RefNumbers, value: Term<'_>) {
    let heap = Heap::detached();
    let answer = Message::of_tuple(&[heap.reference(reference), value]);
    // Gone: then nobody waits for the answer.
    let _ = send(to, Signal::answer(answer, SYSTEM));
}

/// Asks `pid`, which answers with `{Ref, Value}`: the BIF goes on with the value, or with `gone` if there is nobody to ask.
pub(super) fn ask_and_await(
    p: &mut Process,
    pid: Pid,
    (reference, question): (RefNumbers, Signal),
    gone: Atom,
) -> Next {
    if let Some(recorded) = p.recorded_in_hand() {
        reply(p.pid(), reference, recorded.term());
    } else if ask(p, pid, question).is_err() {
        if may_timing_show() {
            p.set_x(0, gone.term());
            return Next::Return;
        }
        // Whether it is gone by now is chance, and so would be what the process spends to wait.
        reply(p.pid(), reference, gone.term());
    }
    p.set_x(0, p.reference(reference));
    // Its answer is behind all that has been sent so far.
    p.mailbox.skip_all();
    p.pc.set(export(am::erts_internal, am::await_result, 1).address());
    Next::Call
}

fn group_leader_0<'p>(p: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    Ok(p.group_leader().term(p))
}

/// `false` for another process: then `group_leader/3` asks it.
fn group_leader_2<'p>(p: &'p Process, [leader, pid]: [Term<'p>; 2]) -> BifResult<'p> {
    let leader_is = Peer::process_of(leader);
    if let Some(process) = Peer::process_of(pid).filter(|process| process.is_elsewhere()) {
        let leader = leader_is.ok_or_else(badarg)?;
        deliver_to_peer(process, Signal::GroupLeader { leader });
        return return_when_sent(p, process.node_name(), Term::bool(true));
    }
    if is_elsewhere(pid, tag::EXTERNAL_PID) && leader_is.is_some() {
        return Err(badarg().into());
    }
    let (Some(leader), Some(pid)) = (leader_is, pid.as_pid()) else {
        return Ok(am::badarg.term());
    };
    explore::note_item_set(pid, am::group_leader);
    if pid == p.pid() {
        p.set_group_leader(leader);
        return Ok(Term::bool(true));
    }
    if exists(pid) {
        return Ok(Term::bool(false));
    }
    Ok(am::badarg.term())
}

fn group_leader_3<'p>(p: &'p Process, [leader, pid, reference]: [Term<'p>; 3]) -> BifResult<'p> {
    let leader = Peer::process_of(leader).ok_or_else(badarg)?;
    let pid = local_pid(pid)?;
    let reference = reference.as_ref().ok_or_else(badarg)?.numbers();
    let asker = p.pid();
    let request = Signal::request(move |p| {
        let done = p.map(|p| p.set_group_leader(leader)).is_some();
        let answer = if done { am::true_ } else { am::badarg };
        reply(asker, reference, Atom::term(answer));
    });
    ask_or_answer(p, pid, request);
    Ok(am::ok.term())
}

fn bump_reductions_1<'p>(p: &'p Process, [reds]: [Term<'p>; 1]) -> BifResult<'p> {
    let reds = match reds.view() {
        View::Small(n) if n >= 0 => n,
        _ => return Err(badarg().into()),
    };
    p.bump_reds(reds.min(crate::process::CONTEXT_REDS));
    Ok(Term::bool(true))
}

/// `hibernate/3`: the stack goes, the heap shrinks to what the call needs, and the process waits for a
/// message; it goes on with `apply(M, F, A)`.
fn hibernate_3(p: &mut Process) -> Next {
    let is_call = p.x(0).as_atom().is_some() && p.x(1).as_atom().is_some();
    let mut arguments = p.x(2).list_iter();
    // As ERTS, which looks no further than that.
    let mut looked_at = arguments.by_ref().take(usize::from(u8::MAX) + 1);
    let reason = if !is_call || looked_at.any(|one| one.is_err()) {
        am::badarg
    } else if arguments.next().is_some() {
        am::system_limit
    } else {
        return p.hibernate();
    };
    p.store_exception(crate::process::Class::Error, reason);
    Next::Raise
}
