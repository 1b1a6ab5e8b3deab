//! The operations of a process on others: sends, links, monitors, exit signals.

use super::direct_send::{ByAlias, Plain};
use super::nodes::{self, Remote, Sending};
use super::order::director::may_timing_show;
use super::order::replay::SystemNotice;
use super::order::{explore, identity};
use super::probe::probes;
use super::refs::{RefNumbers, make_pid_ref, make_ref};
use super::registry::{Named, whereis};
use super::seq_token::Token;
use super::signal::{ExitSignal, TracedMessage, deliver_to_peer};
use super::{
    Alias, Control, Monitored, Origin, Peer, Process, Signal, deliver, send, tally, trace_flags,
};
use crate::heap::{Literals, Message, size};
use crate::term::counted::{is_alive, node_name};
use crate::term::{Atom, Pid, Port, Term, View, am, tag};

/// Is it of a node that had this node's name and is gone: no process, no port, no alias?
pub(crate) fn is_of_old_incarnation(term: Term<'_>) -> bool {
    term.as_external()
        .is_some_and(|external| external.node().name == node_name())
}

/// Why a message was not sent, or why its sender waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotSent {
    /// `!` or a BIF was given what names nobody: `badarg`.
    NoSuchName,
    /// The port is busy; the sender is woken when it takes data again.
    Busy(Port),
    /// A recorded run is followed, and it is not the turn of the sender to look for the name.
    NotItsTurn {
        /// It is to be woken.
        sleeps: bool,
    },
    /// It is for another node, to which there is no connection: lost, and only `send/3` tells.
    NotConnected,
    /// The connection to its node is busy. It has been sent where its sender waits: that is woken when the connection takes
    /// data again.
    BusyNode(Peer),
    /// It is for another node, and longer than the format allows: `system_limit`.
    TooLarge,
    /// It is for another node, and not encoded to its end: its sender sends it again in its next time slice, which goes on.
    Encoding,
}

impl NotSent {
    fn not_yet(later: Control<'_>) -> NotSent {
        NotSent::NotItsTurn {
            sleeps: matches!(later, Control::Wait),
        }
    }
}

/// Sends `message` from `p` to a pid, port, alias, registered name, or `{Name, Node}`, as `!` does.
///
/// # Errors
/// When the receiver is an atom that nobody is registered as, or no receiver at all; when it is a busy port.
#[inline]
pub fn send_to(p: &Process, to: Term<'_>, message: Term<'_>) -> Result<(), NotSent> {
    send_with(p, to, message, Sending::PLAIN)
}

/// As [`send_to`], in another way than `!`.
///
/// # Errors
/// As [`send_to`].
pub(crate) fn send_with(
    p: &Process,
    to: Term<'_>,
    message: Term<'_>,
    sending: Sending,
) -> Result<(), NotSent> {
    let named = p.find_receiver(to).map_err(NotSent::not_yet)?;
    if p.shared().tracee.has(trace_flags::SEND) && !p.has_work() {
        report_send(p, to, message);
    }
    let sent = send_on(p, (to, named), message, sending);
    if sent != Err(NotSent::Encoding) {
        tally::message_sent();
    }
    if p.flags.get().saves_calls {
        save_send(p, to, &sent);
    }
    sent
}

/// A process that saves calls has sent, or has tried to: what is refused by a busy port or not encoded is sent again.
#[cold]
fn save_send(p: &Process, to: Term<'_>, sent: &Result<(), NotSent>) {
    let is_refused = matches!(sent, Err(NotSent::Busy(_) | NotSent::Encoding));
    if !is_refused && is_told(to) {
        p.save_call(super::Saved::Send);
    }
}

#[inline(always)]
fn send_on(
    p: &Process,
    (to, named): (Term<'_>, Option<Named>),
    message: Term<'_>,
    sending: Sending,
) -> Result<(), NotSent> {
    match to.view() {
        View::Pid(pid) => {
            send_to_pid(p, pid, message);
        }
        View::Atom(_) => deliver_to_named(p, named.ok_or(NotSent::NoSuchName)?, message)?,
        View::Port(port) => send_to_port(p, port, message)?,
        View::Ref(reference) => {
            if let Some(pid) = reference.pid() {
                let token = seq_token(p, pid, to, message);
                let number = p.next_sending_by_alias(pid, reference.numbers());
                let alias = Some((reference.numbers(), sending.priority));
                send_sized(p, pid, (message, alias), token, number);
            }
        }
        // A message that is being encoded goes on, although this node may have been given the name of the other one
        // meanwhile.
        View::External(_) if is_of_old_incarnation(to) && !p.has_work() => discard(p, to, message),
        View::External(other) if other.kind() == tag::EXTERNAL_PORT => {
            return Err(NotSent::NoSuchName);
        }
        View::External(_) => return nodes::send(p, Remote::Term(to), message, sending),
        View::Tuple(tuple) => {
            let [name, node] = tuple.elements() else {
                return Err(NotSent::NoSuchName);
            };
            let (Some(name), Some(node)) = (name.as_atom(), node.as_atom()) else {
                return Err(NotSent::NoSuchName);
            };
            if node != node_name() || p.has_work() {
                return nodes::send(p, Remote::Name(name, node), message, sending);
            }
            if let Some(named) = named {
                return deliver_to_named(p, named, message);
            }
        }
        _ => return Err(NotSent::NoSuchName),
    }
    Ok(())
}

/// Logs a message to what was of an old incarnation of this node.
#[cold]
fn discard(p: &Process, to: Term<'_>, message: Term<'_>) {
    let old = to.as_external().map_or(0, |to| to.node().creation);
    let (_, creation) = crate::term::counted::this_node();
    let from = p.pid().term();
    let text = format!(
        "Discarding message {} from {} to {} in an old incarnation ({old}) of this node ({creation})\n",
        message.display(),
        from.display(),
        to.display(),
    );
    super::logger::log_error(p, "~s~n", p.list(&[p.string(&text)]));
}

/// The process that a message is for, by its pid or an alias.
pub(super) fn receiver_pid(to: Term<'_>) -> Option<Pid> {
    match to.view() {
        View::Pid(pid) => Some(pid),
        View::Ref(reference) => reference.pid(),
        _ => None,
    }
}

/// Whether a message goes to a process now.
pub(super) fn is_for_process(to: Term<'_>) -> bool {
    match receiver_name(to) {
        Some(name) => matches!(whereis(name), Some(Named::Process(_))),
        None => receiver_pid(to).is_some(),
    }
}

/// The name that a message is for, on this node.
#[inline]
pub(super) fn receiver_name(to: Term<'_>) -> Option<Atom> {
    match to.view() {
        View::Atom(name) => Some(name),
        View::Tuple(tuple) => match tuple.elements() {
            [name, node] if *node == node_name() => name.as_atom(),
            _ => None,
        },
        _ => None,
    }
}

fn deliver_to_named(p: &Process, named: Named, message: Term<'_>) -> Result<(), NotSent> {
    match named {
        Named::Process(pid) => send_to_pid(p, pid, message),
        Named::Port(port) => send_to_port(p, port, message)?,
    }
    Ok(())
}

#[inline]
fn send_to_pid(p: &Process, pid: Pid, message: Term<'_>) {
    let token = seq_token(p, pid, pid.term(), message);
    let number = p.next_sending(pid);
    if explore::end_as_asked(pid, message) {
        return;
    }
    send_sized(p, pid, (message, None), token, number);
}

/// Sends a message and charges reductions by its size. A message to a process that is gone costs nothing. Where the order of a
/// run is recorded or followed it costs the same, since the receiver's end may come before or after: that is chance.
#[inline]
fn send_sized(
    p: &Process,
    pid: Pid,
    (term, alias): (Term<'_>, ByAlias),
    token: Option<Token>,
    number: u32,
) {
    let from = p.pid();
    let is_plain = token.is_none() && alias.is_none() && number == 0;
    if pid == from && is_plain && p.keeps_own_message(term) {
        p.mailbox.send_to_self(term);
        let shared = p.shared();
        if shared
            .signals
            .push(Signal::ToSelf)
            .is_ok_and(|is_first| is_first)
        {
            shared.wake();
        }
        return;
    }
    let words = match token {
        None => Plain {
            term,
            from,
            number,
            alias,
        }
        .send(pid),
        token => {
            let message = Message::copy_of(term);
            let words = message.words();
            let traced = TracedMessage {
                message,
                from: from.into(),
                token,
                number,
                alias,
            };
            let sent = send(pid, Signal::Traced(Box::new(traced)));
            sent.is_ok().then_some(words)
        }
    };
    let words = words.or_else(|| (number != 0).then(|| size(term, Literals::Count)));
    if let Some(words) = words {
        charge(p, pid, words);
    }
}

impl Process {
    /// Whether a plain message to itself stays where it is. What comes by an alias is copied, and what has a sequential
    /// trace token; where the order of a run is recorded or followed, so is any message, which may have to wait beside
    /// the queue. A stand-in has another heap, and so has a message environment of a library. Source:
    /// `erts_send_message()`.
    fn keeps_own_message(&self, message: Term<'_>) -> bool {
        !self.flags.get().off_heap_messages && !self.is_stand_in() && self.owns(message)
    }
}

/// Charges for a message of `words` words. One to `p` itself costs nothing.
#[inline]
fn charge(p: &Process, pid: Pid, words: usize) {
    const WORDS_PER_RED: usize = 64;
    if words > WORDS_PER_RED && pid != p.pid() {
        p.bump_reds((words / WORDS_PER_RED) as i64);
    }
}

fn send_to_port(p: &Process, port: Port, message: Term<'_>) -> Result<(), NotSent> {
    if p.flags.get().seq_token && super::ports::exists(port) {
        let _ = probes().token_sent(p, port.term(), message);
    }
    super::ports::send(p, port, message)
}

/// The sequential trace token that goes with a message to the process `pid`, which tracers see go to `to`.
#[inline(always)]
fn seq_token(p: &Process, pid: Pid, to: Term<'_>, message: Term<'_>) -> Option<Token> {
    // Whether it is gone by then is chance.
    if p.flags.get().seq_token && (!may_timing_show() || super::exists(pid)) {
        probes().token_sent(p, to, message)
    } else {
        None
    }
}

/// Whether tracers hear of what is sent to `to`: without a name this node sends nothing to others.
fn is_told(to: Term<'_>) -> bool {
    match to.view() {
        View::Tuple(tuple) => {
            matches!(*tuple.elements(), [name, node] if name.as_atom().is_some() && (is_alive() || node == am::nonode_at_nohost))
        }
        View::External(_) => is_alive(),
        _ => true,
    }
}

/// A traced process sends: tracers see a port by its identifier, whatever it was named by.
#[cold]
fn report_send(p: &Process, to: Term<'_>, message: Term<'_>) {
    if !is_told(to) {
        return;
    }
    let named = to.as_atom().and_then(whereis);
    let to = match named {
        Some(Named::Port(port)) => port.term(),
        _ => to,
    };
    probes().sent(p, to, message);
}

impl Process {
    /// Links to `peer`; whether that hears of it, which was not linked. What is gone answers with an exit signal `noproc`.
    pub(crate) fn link(&self, peer: Peer, priority: bool) -> bool {
        let is_new = peer != self.pid().into() && self.relations().link(peer, priority);
        if is_new {
            if let Some(pid) = peer.pid() {
                self.note_link(pid);
            }
            self.pass_flags_on(peer);
            let from = self.pid().into();
            deliver_to_peer(peer, Signal::Link { from });
        }
        is_new
    }

    /// Linking may hand flags of tracing over.
    fn pass_flags_on(&self, peer: Peer) {
        let hands_over = trace_flags::SET_ON_LINK | trace_flags::SET_ON_FIRST_LINK;
        if let Some(pid) = peer.pid()
            && self.shared().tracee.has(hands_over)
        {
            probes().linking(self.shared(), pid);
        }
    }

    /// Links to `other`, of an old incarnation of this node: an exit signal comes of it.
    pub(crate) fn link_to_old(&self, other: Term<'_>) {
        if !self.relations().link_gone(other) {
            return;
        }
        let other = Message::copy_of(other);
        let lost = move |p: Option<&mut Process>| {
            if let Some(p) = p {
                p.link_lost(other);
            }
        };
        deliver(self.pid(), Signal::request(lost));
    }

    /// Gives up the link to `other`, of an old incarnation of this node.
    pub(crate) fn unlink_from_old(&self, other: Term<'_>) {
        if let Some(mut relations) = self.some_relations() {
            relations.unlink_gone(other);
        }
    }

    /// Gives up the link to `peer`, if there is one; whether that hears of it. No exit signal of it comes from now on.
    pub(crate) fn unlink(&self, peer: Peer) -> bool {
        let begun = self
            .some_relations()
            .and_then(|mut relations| relations.begin_unlink(peer));
        if let Some(id) = begun {
            if let Some(pid) = peer.pid() {
                self.note_unlink(pid);
            }
            let from = self.pid().into();
            deliver_to_peer(peer, Signal::Unlink { from, id });
        }
        begun.is_some()
    }

    /// Wants no reply to this request to start a process any more; whether one was to come.
    pub(crate) fn abandon_spawn(&self, request: RefNumbers) -> bool {
        let waiting = self.some_relations();
        waiting.is_some_and(|mut relations| {
            let waiting = relations.spawns.get_mut(&request);
            waiting.is_some_and(|it| !std::mem::replace(&mut it.is_abandoned, true))
        })
    }

    /// What its monitor of this reference tells, for a replay; `None` where there is none.
    pub(crate) fn notice_of_monitor(&self, reference: RefNumbers) -> Option<SystemNotice> {
        let relations = self.some_relations()?;
        let origin = relations.origins.get(&reference)?;
        let number = identity::number_of(reference);
        Some(SystemNotice::Down(origin.target.process(), number))
    }

    /// Monitors `target`; the reference's numbers. With `alias`, the reference is an alias, too.
    pub(crate) fn monitor(
        &self,
        target: Monitored,
        tag: Option<Message>,
        alias: Option<Alias>,
        priority: bool,
    ) -> RefNumbers {
        let reference = if alias.is_some() {
            make_pid_ref()
        } else {
            make_ref()
        };
        {
            let mut relations = self.relations();
            if let Some(alias) = alias {
                relations.aliases.insert(reference, alias);
            }
            let origin = Origin {
                target,
                tag,
                priority,
            };
            relations.origins.insert(reference, origin);
        }
        let from = self.pid();
        let signal = Signal::Monitor { reference, from };
        match target {
            Monitored::Process(pid) | Monitored::Name(_, _, Some(pid)) => {
                self.note_monitor(pid, reference);
                deliver(pid, signal);
            }
            Monitored::Port(port) | Monitored::NamedPort(_, _, Some(port)) => {
                super::ports::deliver(port, signal);
            }
            Monitored::Name(_, _, None) | Monitored::NamedPort(_, _, None) => {
                deliver(from, Signal::down_of_gone(reference));
            }
            Monitored::Remote(target) => nodes::monitor(target, reference, from),
            Monitored::TimeOffset => super::time_offset::monitor(reference, from),
            Monitored::Gone => {}
        }
        reference
    }

    /// Sends an exit signal, as `exit/2`, to the process `to`, or only to its alias. `normal_kills` says
    /// that it ends the process even with reason `normal`.
    pub(crate) fn send_exit(
        &self,
        to: Pid,
        alias: Option<RefNumbers>,
        reason: Term<'_>,
        normal_kills: bool,
        priority: bool,
    ) {
        let mut signal = ExitSignal {
            alias,
            normal_kills,
            priority,
            ..ExitSignal::new(self.pid().into(), reason)
        };
        self.note_exit_signal(to, &mut signal);
        // Gone: then there is nothing to end.
        let _ = send(to, Signal::Exit(Box::new(signal)));
    }
}
