//! The probes by which processes tell tracing of their events, and the tracing data of a process.
//!
//! Tracing is on a floor above, and installs [`Probes`]. The functions here first ask a word or a flag whether anybody
//! wants to hear of an event. Only then do they call a probe.

use super::Peer;
use std::any::Any;
use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};

use beamline_formats::ring::Growing;

use super::dirty::DirtyTicks;
use super::event::{Collection, Event};
use super::order::access;
use super::seq_token::{Mark, Token};
use super::{Dirty, ProcShared, Process, order};
use crate::heap::{Heap, Message};
use crate::hook::Hook;
use crate::term::{Atom, Pid, Term};

/// Data whose type only a higher floor knows; made when it is first asked for.
#[derive(Default)]
pub(crate) struct Held(OnceLock<Box<dyn Any + Send + Sync>>);

impl Held {
    /// What is held, made by `make` if it is not there.
    ///
    /// # Panics
    /// When it is of another type: one place asks for it.
    pub(crate) fn get_or_init<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> &T {
        let held = self.0.get_or_init(|| Box::new(make()));
        held.downcast_ref().expect("one place holds something here")
    }
}

/// The tracing data of a process or port.
#[derive(Default)]
pub(crate) struct Tracee {
    /// Flags of all sessions together; 0 while it is sensitive.
    pub(crate) all: AtomicU32,
    /// Sessions that trace this process's calls, a bit each.
    pub(crate) calls: AtomicU64,
    pub(crate) sensitive: AtomicBool,
    /// What sessions hold of it.
    pub(crate) holds: Held,
}

impl Tracee {
    /// Does some session ask for any of these?
    #[inline(always)]
    pub(crate) fn has(&self, flags: u32) -> bool {
        self.all.load(Ordering::Relaxed) & flags != 0
    }
}

/// The totals of a process that were recorded last.
#[derive(Default)]
pub(crate) struct Spent {
    pub(crate) words: Cell<Option<u64>>,
    pub(crate) reductions: Cell<Option<u64>>,
}

/// The events that somebody asks for, for a look without the lock.
pub(crate) static ASKED: AtomicU8 = AtomicU8::new(0);

/// Some profiler wants to hear of processes that become active or inactive.
pub(crate) const PROCS: u8 = 1;

/// Whether somebody wants to hear of any of `what`.
#[inline(always)]
pub(crate) fn asks(what: u8) -> bool {
    ASKED.load(Ordering::Relaxed) & what != 0
}

/// The functions that tracing has for events.
pub(crate) trait Probes: Send + Sync {
    /// An event that consists of one term, which somebody asks for.
    fn happened(&self, shared: &ProcShared, event: Event, term: Term<'_>);
    /// A traced process sends.
    fn sent<'p>(&self, p: &'p Process, to: Term<'p>, message: Term<'p>);
    /// A message has come into the queue of a process whose receives are traced.
    fn received<'p>(&self, p: &'p Process, from: Peer, message: Term<'p>);
    /// A receive has timed out, in a process whose receives are traced.
    fn timed_out(&self, p: &Process);
    /// A process links to `peer`, and has flags that go over.
    fn linking(&self, me: &ProcShared, peer: Pid);
    /// A process has been made, of no parent yet.
    fn made(&self, child: &ProcShared);
    /// A process has got a parent, whose flags may go over.
    fn inherited(&self, parent: &ProcShared, child: &ProcShared, linked: bool);
    /// A process is to call this function.
    fn born(&self, pid: Pid, parent: Option<Pid>, call: (Atom, Atom, u8), args: Term<'_>);
    /// A process has got a name.
    fn registered(&self, pid: Pid, name: Atom);
    /// The exception stored in a process is about to cut its stack.
    fn unwinding(&self, p: &mut Process);
    /// A step of a process, where the order is recorded.
    fn ordered(&self, pid: Pid, told: order::OrderEvent);
    /// It takes the next message of the same sender, as it did last, and has sent one before if it had then. `again` is
    /// the record of that, if there is one. Whether it could be recorded so.
    fn ordered_again(&self, pid: Pid, again: &mut Option<Growing>) -> bool;
    /// A process is about to make a step, where the places in the code are recorded.
    fn sited(&self, p: &Process);
    /// Whether one of the innermost functions that a process is in is no library's.
    fn is_in_application(&self, p: &Process) -> bool;
    /// A process is about to make its access of this number, to this and maybe to others, in that place in the code.
    fn accessed(&self, pid: Pid, number: u64, touch: &access::Touch<'_>);
    /// A process goes into hibernation: its frames are gone.
    fn hibernating(&self, p: &Process);
    /// One of the last time slices of a process begins, or ends and is followed by others.
    fn exiting(&self, p: &Process, goes_on: bool);
    /// The last time slice of a process ends.
    fn last_slice_ended(&self, p: &Process);
    /// A process waits until the connection that this controls is not busy any more.
    fn blocked_on_node(&self, p: &Process, controller: Peer);
    /// A call of a process whose calls are measured has come back from a dirty scheduler.
    fn charge_dirty(&self, p: &mut Process, dirty: Dirty, times: &DirtyTicks);
    /// A process is no more.
    fn gone(&self, p: &Process);

    /// When a collection begins that somebody wants to hear of if it takes long; `None` where nobody does.
    fn collection_begins(&self) -> Option<i64>;
    /// That collection has ended.
    fn collection_ended(&self, p: &Process, start: i64);
    /// The heap of a traced process is about to be collected, for `need` words.
    fn collecting(&self, p: &Process, collection: Collection, need: usize);
    /// It has been collected, which has given back `reclaimed` words.
    fn collected(&self, p: &Process, collection: Collection, reclaimed: usize);
    /// A heap is past its limit, and somebody asks for that.
    fn past_max_heap(&self, p: &Process);
    /// The description of a heap, as tracers get it.
    fn heap_info<'h>(&self, heap: &'h Heap, p: &Process) -> Term<'h>;
    /// Where a process is.
    fn location<'p>(&self, p: &'p Process) -> Term<'p>;
    /// The stack of a process.
    fn stacktrace<'p>(&self, p: &'p Process) -> Term<'p>;
    /// A message queue has grown.
    fn queue_grew(&self, p: &mut Process);
    /// A message queue has become shorter, of which some session knows that it was long.
    fn queue_shrank(&self, p: &mut Process);
    /// A process takes a message to itself, which has lain on its heap.
    fn own_message_taken(&self, p: &mut Process, message: Term<'_>);

    /// A process in a sequential trace sends: the token that goes with the message.
    fn token_sent(&self, p: &Process, to: Term<'_>, message: Term<'_>) -> Option<Token>;
    /// It exits, and `to` is linked to it: the token that goes with the signal.
    fn token_of_exit(&self, p: &Process, to: Term<'_>, reason: Term<'_>) -> Option<Token>;
    /// A message that carries a token gets into the queue: its mark there.
    fn token_queued(&self, p: &Process, token: Token) -> Mark;
    /// A message with this mark is taken from the queue.
    fn token_received(&self, p: &Process, mark: Mark, message: Term<'_>);

    /// Where a process is, for whoever profiles the machine.
    fn place(&self, p: &Process) -> Message;
    /// Wakes a process with `wake`, and tells that it has become active if it has; `place` is where it is then.
    fn wake(&self, pid: Pid, wake: &dyn Fn() -> bool, place: &dyn Fn() -> Option<Message>) -> bool;
}

/// Hook: tracing hears of what processes do.
pub(crate) static PROBES: Hook<&'static dyn Probes> = Hook::new("the probes of tracing");

/// What is installed.
#[inline]
pub(crate) fn probes() -> &'static dyn Probes {
    *PROBES.get()
}

/// Whether some session asks for this of the process.
#[inline(always)]
pub(crate) fn is_asked(shared: &ProcShared, event: Event) -> bool {
    shared.tracee.has(event.flags())
}

/// An event of a process that consists of one term.
#[inline]
pub(crate) fn happened(shared: &ProcShared, event: Event, term: Term<'_>) {
    if is_asked(shared, event) {
        probes().happened(shared, event, term);
    }
}
