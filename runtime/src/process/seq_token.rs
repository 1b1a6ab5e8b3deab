//! Sequential trace tokens, as processes and messages have them. `trace/tell/seq.rs` has the operations on them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Peer, Process};
use crate::heap::Message;

/// A sequential trace token.
#[derive(Clone)]
pub(crate) struct Token {
    pub(crate) flags: u32,
    pub(crate) label: Arc<Message>,
    pub(crate) serial: u64,
    pub(crate) last: u64,
    pub(crate) from: Peer,
    /// How often all tokens had been taken away when it was made.
    pub(crate) age: u64,
}

/// The data of a process that is or was in a sequential trace.
#[derive(Default)]
pub(crate) struct Seq {
    pub(crate) token: Option<Token>,
    pub(crate) clock: u64,
    pub(crate) last: u64,
    /// As in [`Token`]: of an earlier time, all of it is nothing.
    pub(crate) age: u64,
    /// Tokens of messages in its queue, by their marks there.
    pub(crate) carried: BTreeMap<u32, Token>,
    pub(crate) next_mark: u32,
}

impl Seq {
    /// For a stand-in, which receives nothing.
    pub(super) fn without_messages(&self) -> Seq {
        Seq {
            token: self.token.clone(),
            carried: BTreeMap::new(),
            ..*self
        }
    }

    /// Takes over what has become of it there.
    pub(super) fn take_over(&mut self, other: Seq) {
        *self = Seq {
            carried: std::mem::take(&mut self.carried),
            next_mark: self.next_mark,
            ..other
        };
    }
}

/// The mark of a message in a queue: what the message does to the token of the process that takes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mark(pub(crate) u32);

impl Mark {
    /// Nothing: a message of the runtime's own.
    pub(crate) const KEEPS: Mark = Mark(0);
    /// Takes it away: its sender had none.
    pub(crate) const CLEARS: Mark = Mark(1);
    /// Nothing: an answer of the runtime's, for which its receiver waits in the middle of a built-in function. It is no
    /// message of the order. Marks above give the token they stand for.
    pub(crate) const ANSWER: Mark = Mark(2);

    /// Does something to the token of `p`?
    #[inline(always)]
    pub(crate) fn acts_on(self, p: &Process) -> bool {
        self.0 > Mark::ANSWER.0 || p.flags.get().seq_token && self == Mark::CLEARS
    }
}
