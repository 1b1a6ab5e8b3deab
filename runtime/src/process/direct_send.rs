//! Messages that their senders put into the queue of a receiver that waits, and lay on its heap.
//!
//! A sender has to wake such a receiver anyway. Whoever claims it for that is alone with it until it is in a run queue
//! ([`RunState::claim`](crate::sched::run_state::RunState::claim)). So the message needs no fragment, no node in the
//! signal queue, and no collection that takes it over. It is not charged for and not counted before the receiver takes
//! it, as if it had come the ordinary way, which it goes wherever anything asks for more than a message in an empty
//! queue.
//!
//! Source: `erts_try_alloc_message_on_heap()`, OTP 29. Differs: ERTS takes the main lock of the receiver, whatever it does.
//! Invariants: S1 of `process/shared.rs`.
#![expect(unsafe_code, reason = "a process is changed by who has woken it")]

use super::order::Source;
use super::probe::{self, PROCS};
use super::refs::RefNumbers;
use super::seq_token::Mark;
use super::shared::lookup;
use super::signal::{Sender, TracedMessage};
use super::{ProcShared, Process, Signal, WaitFor, trace_flags};
use crate::heap::{Literals, Message, size};
use crate::process::order::director::may_place_directly;
use crate::sched::ptab;
use crate::term::{Pid, Term};

/// The alias of its receiver that a message is sent to, and whether it goes before others if the alias allows it.
pub(super) type ByAlias = Option<(RefNumbers, bool)>;

/// A message of a process without a sequential trace token.
pub(super) struct Plain<'a> {
    pub(super) term: Term<'a>,
    pub(super) from: Pid,
    /// Which of its sender's sendings it is, where the order is asked for; else 0.
    pub(super) number: u32,
    pub(super) alias: ByAlias,
}

impl Plain<'_> {
    /// Sends it; its words. `None` where the receiver is gone.
    #[inline]
    pub(super) fn send(&self, to: Pid) -> Option<usize> {
        let guard = ptab::pin();
        let target = lookup(to, &guard)?;
        let is_claimed = target.lets_place() && target.run_state.claim();
        // SAFETY: S1: claimed just now.
        let placed = is_claimed.then(|| unsafe { target.place(self) });
        let words = placed.flatten().or_else(|| {
            let signal = self.signal();
            let words = signal.message_words();
            let is_first = target.signals.push(signal).ok()?;
            if is_first && !is_claimed {
                target.wake();
            }
            Some(words)
        });
        if is_claimed {
            target.enqueue();
        }
        words
    }

    #[inline]
    fn signal(&self) -> Signal {
        match self.alias {
            None => Signal::sent(self.term, self.from, None, self.number),
            Some((alias, priority)) if self.number == 0 => Signal::AliasMessage {
                alias,
                message: Message::copy_of(self.term),
                priority,
            },
            alias => Signal::Traced(Box::new(TracedMessage {
                message: Message::copy_of(self.term),
                from: self.from.into(),
                token: None,
                number: self.number,
                alias,
            })),
        }
    }
}

impl ProcShared {
    /// Whether a message may be put into its queue, as far as can be seen from outside: nobody wants to hear of it, and
    /// no signal has come before it.
    #[inline(always)]
    fn lets_place(&self) -> bool {
        self.signals.is_empty()
            && may_place_directly()
            && !self.tracee.has(trace_flags::RECEIVE)
            && !probe::asks(PROCS)
    }

    /// Puts a message into its queue, if that is empty; the message's words.
    ///
    /// # Safety
    /// S1: the caller has claimed it, and has put it into no queue yet.
    #[inline]
    unsafe fn place(&self, message: &Plain<'_>) -> Option<usize> {
        // SAFETY: S1.
        let process = unsafe { self.at_home() }?;
        // What its sender heard of before may have come since the first look.
        match self.signals.is_empty() {
            true => process.take_placed(message),
            false => None,
        }
    }
}

impl Process {
    #[inline]
    fn take_placed(&mut self, message: &Plain<'_>) -> Option<usize> {
        let flags = self.flags.get();
        let is_ordinary = !flags.off_heap_messages
            && !self.is_exiting()
            && !self.is_away()
            && !self.has_unhandled_signals()
            && self.mailbox.len() == 0;
        if !is_ordinary {
            return None;
        }
        let words = size(message.term, Literals::Count);
        let has_room = words <= self.heap.free_words();
        let is_numbered = message.number != 0;
        let is_placed = has_room && (!is_numbered || self.may_place(words));
        if !is_placed && !is_numbered {
            return None;
        }
        let Some(before_others) = self.admits(message.alias) else {
            return Some(words);
        };
        if is_numbered {
            self.note_delivery(
                Source::of(Sender::Process, message.from, message.number),
                before_others,
            );
        }
        if is_placed {
            self.lay(message.term, words, before_others);
        } else {
            let copy = Message::copy_of(message.term);
            self.mailbox.put(copy, Mark::CLEARS, before_others);
        }
        Some(words)
    }

    #[inline]
    fn lay(&mut self, term: Term<'_>, words: usize, before_others: bool) {
        // SAFETY: H8: the mailbox shows what is placed.
        let placed = unsafe { Message::attached(self.heap.copy_in_sized(term, words)) };
        self.heap.claim_later(words);
        self.mailbox
            .push_placed(placed, Mark::CLEARS, before_others, words);
    }

    /// Whether a message of `words` words, in an empty queue, is laid on the heap now where the order is recorded: if a
    /// receive that looks for it would do so ([`Process::place_first`]).
    fn may_place(&self, words: usize) -> bool {
        let looks = self.wait_for == WaitFor::Message && self.mailbox.has_looked();
        looks && self.mailbox.may_place_first(words)
    }

    /// Whether a message that comes so goes before others. `None`: it does not come.
    #[inline]
    fn admits(&mut self, alias: ByAlias) -> Option<bool> {
        alias.map_or(Some(false), |by| self.through_alias(by))
    }
}
