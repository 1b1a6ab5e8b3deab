//! The messages that sockets send.

use std::borrow::Cow;

use beamline_formats::ring::SocketWait;
use rustix::io::Errno;

use super::{Inet, Waiting, error_atom};
use crate::external::{DecodeOptions, decode};
use crate::heap::Heap;
use crate::port::driver::Context;
use crate::term::{Atom, Port, Term, am};

/// `{error, Reason}`.
fn error<'h>(heap: &'h Heap, reason: Atom) -> Term<'h> {
    heap.tuple(&[am::error.term(), reason.term()])
}

/// Bytes as their receiver gets them: a list, or a list of the first `header` bytes that ends with a binary of the
/// others.
pub(super) fn data<'h>(
    heap: &'h Heap,
    bytes: Cow<'_, [u8]>,
    is_binary: bool,
    header: usize,
) -> Term<'h> {
    if !is_binary || header > bytes.len() {
        return heap.byte_list(&bytes);
    }
    if header == 0 {
        return match bytes {
            Cow::Owned(bytes) => heap.binary_from_vec(bytes),
            Cow::Borrowed(bytes) => heap.binary(bytes),
        };
    }
    let (head, rest) = bytes.split_at(header);
    heap.byte_list_with_tail(head, heap.binary(rest))
}

/// `{inet_async, Port, Number, Answer}`.
pub(super) fn tell_waiting(
    port: &Context<'_>,
    waiting: &Waiting,
    answer: impl for<'h> FnOnce(&'h Heap) -> Term<'h>,
) {
    let id = port.term();
    port.tell(waiting.caller, |heap| {
        let answer = answer(heap);
        let number = Term::small(waiting.number.into());
        heap.tuple(&[am::inet_async.term(), id, number, answer])
    });
}

/// `{inet_async, Port, Number, {ok, Port2}}`.
pub(super) fn tell_accepted(port: &Context<'_>, waiting: &Waiting, accepted: Port) {
    tell_waiting(port, waiting, |heap| {
        heap.tuple(&[am::ok.term(), accepted.term()])
    });
}

/// `{inet_async, Port, Number, {error, Reason}}`.
pub(super) fn tell_failed(port: &Context<'_>, waiting: &Waiting, reason: Atom) {
    tell_waiting(port, waiting, |heap| error(heap, reason));
}

impl Inet {
    /// Answers the waiting process, if there is one, with what `answer` builds.
    pub(super) fn answer(
        &mut self,
        port: &Context<'_>,
        answer: impl for<'h> FnOnce(&'h Heap) -> Term<'h>,
    ) {
        if let Some(waiting) = self.waiting.take() {
            waiting.record_end(self.id, "");
            tell_waiting(port, &waiting, answer);
        }
    }

    pub(super) fn answer_ok(&mut self, port: &Context<'_>) {
        self.answer(port, |_| am::ok.term());
    }

    pub(super) fn answer_error(&mut self, port: &Context<'_>, reason: Atom) {
        if let Some(waiting) = self.waiting.take() {
            waiting.record_end(self.id, reason.name());
            tell_failed(port, &waiting, reason);
        }
    }

    /// `{inet_reply, Port, Status, Tag}`, if the sender has not been answered.
    /// `outcome` is what a recording has of it: empty, or the reason.
    fn reply(
        &mut self,
        port: &Context<'_>,
        outcome: &str,
        status: impl for<'h> FnOnce(&'h Heap) -> Term<'h>,
    ) {
        let Some(sender) = self.sender.take() else {
            return;
        };
        if sender.waits {
            self.id
                .record_ready(sender.caller, SocketWait::Room, outcome);
        }
        let id = port.term();
        port.tell(sender.caller, |heap| {
            let status = status(heap);
            let reply = am::inet_reply.term();
            match decode(heap, &sender.tag, DecodeOptions::default()) {
                Ok((tag, _)) => heap.tuple(&[reply, id, status, tag]),
                Err(_) => heap.tuple(&[reply, id, status]),
            }
        });
    }

    pub(super) fn reply_ok(&mut self, port: &Context<'_>) {
        self.reply(port, "", |_| am::ok.term());
    }

    pub(super) fn reply_error(&mut self, port: &Context<'_>, reason: Atom) {
        self.reply(port, reason.name(), |heap| error(heap, reason));
    }

    pub(super) fn reply_errno(&mut self, port: &Context<'_>, error: Errno) {
        self.reply_error(port, error_atom(error));
    }
}

/// Sends the owner `{Tag, Port}`.
pub(super) fn tell_owner(port: &Context<'_>, tag: Atom) {
    let id = port.term();
    port.tell(port.state.owner, |heap| heap.tuple(&[tag.term(), id]));
}

/// Sends the owner `{Tag, Port, Reason}`.
pub(super) fn tell_owner_error(port: &Context<'_>, tag: Atom, error: Errno) {
    let id = port.term();
    let reason = error_atom(error);
    port.tell(port.state.owner, |heap| {
        heap.tuple(&[tag.term(), id, reason.term()])
    });
}
