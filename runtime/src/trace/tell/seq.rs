//! Sequential tracing: the token of a process, which goes along with all messages it sends, and the system tracer,
//! which hears of them. Source: `erl_bif_trace.c`, `seq_trace_output_generic()` and `seq_trace_update_serial()` in
//! `erl_trace.c`, OTP 29.
//!
//! A token lies outside of heaps, so collections need not know of it. All holders of a token share its label. A process
//! without a token pays only for the flag that says so (`Flags::seq_token`).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::heap::{Heap, Message};
pub(crate) use crate::process::seq_token::{Mark, Seq, Token};
use crate::process::{Peer, ProcShared, Process};
use crate::term::counted::node_name;
use crate::term::{Atom, Pid, Term, am, compare};
use crate::trace::record::{self, Passed, Passes};
use crate::trace::session::flags;
use crate::trace::session::tracer::{Event, Report, TracerId, Verdict};

/// The flags of a token: which transfers of information are traced, and with which time stamps.
mod bits {
    pub(in crate::trace) const SEND: u32 = 1 << 0;
    pub(in crate::trace) const RECEIVE: u32 = 1 << 1;
    pub(in crate::trace) const PRINT: u32 = 1 << 2;
    /// Time stamps are [`flags`] shifted to here.
    pub(in crate::trace) const TIMESTAMP_SHIFT: u32 = 3;
}

/// Counters have the bits of a small integer.
const COUNTER: u64 = (1 << 60) - 1;

fn counter_of(small: i64) -> u64 {
    small as u64 & COUNTER
}

fn counter_term(counter: u64) -> Term<'static> {
    Term::small((counter << 4) as i64 >> 4)
}

/// How often all tokens have been taken away.
static AGE: AtomicU64 = AtomicU64::new(0);

static SYSTEM_TRACER: Mutex<Option<TracerId>> = Mutex::new(None);

/// Takes all tokens away, of processes and of messages, and starts the counters again.
pub(crate) fn reset() {
    AGE.fetch_add(1, Ordering::AcqRel);
}

fn age() -> u64 {
    AGE.load(Ordering::Acquire)
}

/// The tracer that hears of tokens, if it is still there.
pub(crate) fn system_tracer() -> Option<TracerId> {
    // A tracer may be code in C, and is not asked under the lock.
    let now = *SYSTEM_TRACER.lock();
    let gone = now.filter(|tracer| !tracer.is_there(am::undefined.term()));
    if gone.is_none() {
        return now;
    }
    let mut now = SYSTEM_TRACER.lock();
    if *now == gone {
        *now = None;
    }
    *now
}

/// Sets the tracer that hears of tokens, and gives the old one; `None` where the new one is not there.
pub(crate) fn set_system_tracer(new: Option<TracerId>) -> Option<Option<TracerId>> {
    let usable = |tracer: TracerId| tracer.is_there(am::undefined.term());
    new.is_none_or(usable)
        .then(|| std::mem::replace(&mut *SYSTEM_TRACER.lock(), new))
}

/// Does something with what `p` knows.
fn with<R>(p: &Process, act: impl FnOnce(&mut Seq) -> R) -> R {
    let mut psd = p.psd();
    let seq = psd.seq.get_or_insert_default();
    let now = age();
    if seq.age != now {
        let next_mark = seq.next_mark;
        **seq = Seq {
            age: now,
            next_mark,
            ..Seq::default()
        };
    }
    let result = act(seq);
    let has_token = seq.token.is_some();
    drop(psd);
    p.change_flags(|flags| flags.seq_token = has_token);
    result
}

/// The token of `p`, if it has one.
#[inline]
fn token(p: &Process) -> Option<Token> {
    if p.flags.get().seq_token {
        with(p, |seq| seq.token.clone())
    } else {
        None
    }
}

/// Is `p` in a sequential trace?
pub(crate) fn is_traced(p: &Process) -> bool {
    token(p).is_some()
}

/// The token as a term of `heap`, `[]` where there is none.
pub(crate) fn token_term<'h>(p: &Process, heap: &'h Heap) -> Term<'h> {
    let Some(token) = token(p) else {
        return Term::NIL;
    };
    token.term(heap)
}

/// The bit of a flag.
fn flag(name: Atom) -> Option<u32> {
    Some(match name {
        am::send => bits::SEND,
        am::receive => bits::RECEIVE,
        am::print => bits::PRINT,
        am::timestamp => flags::TIMESTAMP << bits::TIMESTAMP_SHIFT,
        am::strict_monotonic_timestamp => {
            flags::STRICT_MONOTONIC_TIMESTAMP << bits::TIMESTAMP_SHIFT
        }
        am::monotonic_timestamp => flags::MONOTONIC_TIMESTAMP << bits::TIMESTAMP_SHIFT,
        _ => return None,
    })
}

impl Seq {
    /// The token, made where there is none.
    fn token_of(&mut self, me: Pid) -> &mut Token {
        self.token.get_or_insert_with(|| Token {
            flags: 0,
            label: Arc::new(Message::copy_of(Term::small(0))),
            serial: 0,
            last: self.last,
            from: me.into(),
            age: self.age,
        })
    }
}

/// Sets a component of the token of `p`; the old value. `None` where there is no such component, or the value
/// is none of its.
pub(crate) fn set_component<'p>(
    p: &'p Process,
    component: Term<'p>,
    value: Term<'p>,
) -> Option<Term<'p>> {
    let component = component.as_atom()?;
    let me = p.pid();
    if let Some(flag) = flag(component) {
        let on = value.as_bool()?;
        return Some(with(p, |seq| {
            let flags = &mut seq.token_of(me).flags;
            let old = *flags & flag != 0;
            *flags = if on { *flags | flag } else { *flags & !flag };
            Term::bool(old)
        }));
    }
    match component {
        am::label => {
            let new = Arc::new(Message::copy_of(value));
            let old = with(p, |seq| std::mem::replace(&mut seq.token_of(me).label, new));
            Some(p.copy_in(old.term()))
        }
        am::serial => {
            let [last, serial] = *value.as_tuple()?.elements() else {
                return None;
            };
            let (last, serial) = (counter_of(last.as_small()?), counter_of(serial.as_small()?));
            let old = with(p, |seq| {
                let token = seq.token_of(me);
                let old = (token.last, token.serial);
                (token.last, token.serial) = (last, serial);
                (seq.clock, seq.last) = (serial, last);
                old
            });
            Some(p.tuple(&[counter_term(old.0), counter_term(old.1)]))
        }
        am::sequential_trace_token if value.is_nil() => {
            let old = token_term(p, p);
            with(p, |seq| seq.token = None);
            Some(old)
        }
        _ => None,
    }
}

/// `{Component, Value}`, or `[]` where there is no token to have it. `None` where there is no such component.
pub(crate) fn component<'p>(p: &'p Process, component: Term<'p>) -> Option<Term<'p>> {
    let name = component.as_atom()?;
    let token = token(p);
    let value = match (&token, name) {
        (None, am::label | am::serial) => return Some(Term::NIL),
        (None, am::spawn) => Term::bool(false),
        (Some(token), am::label) => p.copy_in(token.label.term()),
        (Some(token), am::serial) => {
            p.tuple(&[counter_term(token.last), counter_term(token.serial)])
        }
        _ => {
            let flag = flag(name)?;
            Term::bool(token.is_some_and(|token| token.flags & flag != 0))
        }
    };
    Some(p.tuple(&[component, value]))
}

/// `p` tells the system tracer `info`, if it has a token, with `label` where one is given.
pub(crate) fn print(p: &Process, label: Option<Term<'_>>, info: Term<'_>) -> bool {
    let Some(token) = token(p) else {
        return false;
    };
    if label.is_some_and(|label| !compare::eq_exact(label, token.label.term())) {
        return false;
    }
    if let Some(token) = passed(p) {
        token.tell(bits::PRINT, p.shared(), Term::NIL, info);
    }
    true
}

/// Does `tracer` want to hear of tokens of the process `pid`?
fn hears_of(tracer: TracerId, pid: Pid) -> bool {
    tracer.wants(Event::SeqTrace, pid.term()) == Verdict::Trace
}

/// The token of `p` with the serial of what it passes on now.
fn passed(p: &Process) -> Option<Token> {
    if !p.flags.get().seq_token {
        return None;
    }
    let me = p.pid();
    let counts = system_tracer().is_none_or(|tracer| hears_of(tracer, me));
    with(p, |seq| {
        let token = seq.token.as_mut()?;
        if counts {
            seq.clock = seq.clock.wrapping_add(1) & COUNTER;
            token.from = me.into();
            (token.serial, token.last) = (seq.clock, seq.last);
        }
        Some(token.clone())
    })
}

impl Token {
    /// The token, as programs and other nodes see it.
    pub(crate) fn term<'h>(&self, heap: &'h Heap) -> Term<'h> {
        heap.tuple(&[
            Term::small(i64::from(self.flags)),
            heap.copy_in(self.label.term()),
            counter_term(self.serial),
            self.from.term(heap),
            counter_term(self.last),
        ])
    }

    /// The token that another node has sent. `None` where it is none.
    pub(crate) fn of_term(term: Term<'_>) -> Option<Token> {
        let &[flags, label, serial, from, last] = term.as_tuple()?.elements() else {
            return None;
        };
        Some(Token {
            flags: u32::try_from(flags.as_small()?).ok()?,
            label: Arc::new(Message::copy_of(label)),
            serial: counter_of(serial.as_small()?),
            last: counter_of(last.as_small()?),
            from: match from.as_atom() {
                Some(node) => Peer::of_node(node),
                None => Peer::process_of(from)?,
            },
            age: age(),
        })
    }

    /// The token of the message that its sender had sent before.
    fn of_message_before(&self) -> Token {
        Token {
            serial: self.serial.wrapping_sub(1) & COUNTER,
            ..self.clone()
        }
    }

    /// Tells the system tracer and the recorder of a transfer of `message` to `receiver`, if the token asks for
    /// that. `of` is the process that it happens to.
    fn tell(&self, kind: u32, of: &ProcShared, receiver: Term<'_>, message: Term<'_>) {
        if !of.tracee.is_sensitive() {
            let hears = |tracer| hears_of(tracer, of.pid());
            self.tell_tracer(kind, hears, (receiver, message));
        }
    }

    /// As [`Token::tell`], where it happens to no process.
    fn tell_by_node(&self, kind: u32, receiver: Term<'_>, message: Term<'_>) {
        self.tell_tracer(kind, |_| true, (receiver, message));
    }

    fn tell_tracer(
        &self,
        kind: u32,
        hears: impl FnOnce(TracerId) -> bool,
        (receiver, message): (Term<'_>, Term<'_>),
    ) {
        if self.flags & kind == 0 {
            return;
        }
        let (kind, how) = match kind {
            bits::SEND => (am::send, Passes::Sent),
            bits::RECEIVE => (am::receive, Passes::Received),
            _ => (am::print, Passes::Printed),
        };
        if record::sees_tokens() {
            record::passed(&Passed {
                how,
                label: self.label.term(),
                serial: (self.last, self.serial),
                from: self.from,
                to: receiver,
                message,
            });
        }
        let Some(tracer) = system_tracer().filter(|tracer| hears(*tracer)) else {
            return;
        };
        let heap = Heap::detached();
        let serial = heap.tuple(&[counter_term(self.last), counter_term(self.serial)]);
        let from = self.from.term(&heap);
        let info = Message::of_tuple(&[kind.term(), serial, from, receiver, message]);
        let timestamp = self.flags >> bits::TIMESTAMP_SHIFT;
        let report = Report::new(Event::SeqTrace, info.term());
        tracer.report(timestamp, self.label.term(), &report);
    }
}

/// `p` sends `message` to `to`: the token that goes with it.
#[cold]
pub(crate) fn sent(p: &Process, to: Term<'_>, message: Term<'_>) -> Option<Token> {
    let token = passed(p)?;
    token.tell(bits::SEND, p.shared(), to, message);
    Some(token)
}

/// `p` exits with `reason`, and `to`, a process of this node or another one, is linked to it: the token that goes with the
/// signal.
pub(crate) fn exit_sent(p: &Process, to: Term<'_>, reason: Term<'_>) -> Option<Token> {
    let token = passed(p)?;
    let guard = crate::sched::ptab::pin();
    let other = match to.as_pid() {
        Some(pid) => crate::process::lookup(pid, &guard),
        None => Some(p.shared()),
    };
    if let Some(other) = other {
        let message = Message::of_tuple(&[am::EXIT.term(), p.pid().term(), reason]);
        token.tell(bits::SEND, other, to, message.term());
    }
    Some(token)
}

/// A message that carries `token` gets into the queue of `p`: its mark there.
pub(crate) fn queued(p: &Process, token: Token) -> Mark {
    if token.age != age() {
        return Mark::CLEARS;
    }
    with(p, |seq| {
        while seq.next_mark <= Mark::ANSWER.0 || seq.carried.contains_key(&seq.next_mark) {
            seq.next_mark = seq.next_mark.wrapping_add(1).max(Mark::ANSWER.0 + 1);
        }
        seq.carried.insert(seq.next_mark, token);
        Mark(seq.next_mark)
    })
}

/// `p` takes `message` with this mark from its queue.
#[cold]
pub(crate) fn received(p: &Process, mark: Mark, message: Term<'_>) {
    let token = with(p, |seq| {
        let token = seq.carried.remove(&mark.0);
        if let Some(token) = &token {
            seq.last = token.serial;
            seq.clock = seq.clock.max(token.serial);
        }
        seq.token = token.clone();
        token
    });
    if let Some(token) = token {
        token.tell(bits::RECEIVE, p.shared(), p.pid().term(), message);
    }
}

/// A spawn, as sequential tracing tells of it.
pub(crate) struct Spawn<'p> {
    pub(crate) mfa: [Term<'p>; 3],
    pub(crate) options: Term<'p>,
    pub(crate) reply_tag: Term<'p>,
    pub(crate) reference: Term<'p>,
}

/// `p` has made `child`, which gets its token: a request as if by message.
#[cold]
pub(crate) fn spawned<'p>(p: &'p Process, child: &Process, spawn: &Spawn<'p>) {
    let Some(token) = passed(p) else {
        return;
    };
    let [m, f, args] = spawn.mfa;
    let arity = Term::small(args.list_iter().count() as i64);
    let request = p.tuple(&[
        am::spawn_request.term(),
        spawn.reference,
        p.pid().term(),
        p.group_leader().term(p),
        p.tuple(&[m, f, arity]),
        spawn.options,
        spawn.reply_tag,
        args,
    ]);
    let to = child.pid().term();
    token.tell(bits::SEND, p.shared(), to, request);
    token.tell(bits::RECEIVE, p.shared(), to, request);
    with(child, |seq| {
        (seq.clock, seq.last) = (token.serial, token.serial);
        seq.token = Some(token);
    });
}

/// `p` asks `node` for a process: by `request`, and by the arguments in a message of their own. The token of the latter.
pub(crate) fn spawn_asked(
    p: &Process,
    node: Atom,
    request: Term<'_>,
    args: Term<'_>,
) -> Option<Token> {
    sent(p, node.term(), request)?;
    sent(p, node.term(), args)
}

/// `child` has been made for a process of another node, which has sent `token` with the arguments, and `request` before.
pub(crate) fn spawn_requested(child: &Process, token: &Token, request: Term<'_>) {
    let first = token.of_message_before();
    first.tell(bits::RECEIVE, child.shared(), child.pid().term(), request);
    with(child, |seq| {
        (seq.clock, seq.last) = (first.serial, first.serial);
        seq.token = Some(token.clone());
    });
}

/// As [`spawn_requested`], where no child can be made: this node answers `parent`. The token of the answer.
pub(crate) fn spawn_refused(
    token: &Token,
    request: Term<'_>,
    parent: Term<'_>,
    answer: Term<'_>,
) -> Token {
    let mut token = token.of_message_before();
    token.tell_by_node(bits::RECEIVE, node_name().term(), request);
    token.last = token.serial;
    token.serial = token.serial.wrapping_add(1) & COUNTER;
    token.from = Peer::of_node(node_name());
    token.tell_by_node(bits::SEND, parent, answer);
    token
}

/// `child` answers the request of `parent`, of another node: the token that goes with the answer.
pub(crate) fn spawn_answered(child: &Process, parent: Term<'_>, answer: Term<'_>) -> Option<Token> {
    let token = passed(child)?;
    token.tell(bits::SEND, child.shared(), parent, answer);
    Some(token)
}

/// `child` answers the spawn of `p` with `reply`: the token that goes with the message where it is one.
pub(crate) fn spawn_replied<'p>(
    p: &'p Process,
    child: &Process,
    reply: Option<Term<'p>>,
) -> Option<Token> {
    let token = passed(child)?;
    if let Some(reply) = reply {
        token.tell(bits::SEND, p.shared(), p.pid().term(), reply);
    }
    Some(token)
}

/// `p`, whose spawn has been answered by `child`, takes the answer.
#[cold]
pub(crate) fn spawn_done<'p>(p: &'p Process, child: &Process, spawn: &Spawn<'p>) {
    let pid = child.pid().term();
    let reply = p.tuple(&[spawn.reply_tag, spawn.reference, am::ok.term(), pid]);
    let Some(token) = spawn_replied(p, child, Some(reply)) else {
        return;
    };
    // ERTS puts the serial's tagged word into the counters: programs see them jump, here as there.
    let serial = (token.serial << 4 | 0xf) & COUNTER;
    with(p, |seq| (seq.clock, seq.last) = (serial, serial));
    token.tell(bits::RECEIVE, p.shared(), p.pid().term(), reply);
}
