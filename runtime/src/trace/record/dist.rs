//! Other nodes in recordings: the names of this one, its connections, and the signals that cross them.
//!
//! A signal has the same number on both sides of a connection: there it is the k-th whose last packet leaves, and here the
//! k-th that has come whole. So a reader of both recordings pairs them, and the protocol stays as it is.

use std::sync::atomic::{AtomicBool, Ordering};

use beamline_formats::ring::{Id, Name};

use super::{RingEvent, id_of, namer, recorder};
use crate::term::{Atom, Pid, Term, View, tag};
use crate::trace::costs::text::{TEXT, text_of};

/// Signals to and from other nodes are recorded.
static ASKED: AtomicBool = AtomicBool::new(false);

/// Signals are recorded from now on.
pub(super) fn begin() {
    ASKED.store(true, Ordering::Release);
}

/// Are signals to and from other nodes recorded?
#[inline]
pub(crate) fn is_asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}

/// What a recording tells of a signal that crosses nodes.
pub(crate) struct Told {
    operation: u64,
    text: String,
}

impl Told {
    /// Of the elements of a control message behind its operation, and the payload. That of a message comes first: where both are too
    /// long, readers find the message by it.
    pub(crate) fn of(
        (operation, is_message): (u64, bool),
        elements: &[Term<'_>],
        payload: Option<Term<'_>>,
    ) -> Told {
        let (first, last) = match is_message {
            true => (payload, None),
            false => (None, payload),
        };
        let control = elements.iter().copied().filter(|element| !is_pid(*element));
        let all = first.into_iter().chain(control).chain(last);
        let parts: Vec<String> = all.map(text_of).collect();
        let mut text = parts.join(" ");
        text.truncate(text.floor_char_boundary(TEXT));
        Told { operation, text }
    }
}

/// A signal's place among those of its direction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crossing {
    /// The connection's number.
    pub(crate) connection: u32,
    /// The signal's, from 1.
    pub(crate) number: u64,
    /// Of its terms.
    pub(crate) bytes: usize,
}

/// This node has got a name.
pub(crate) fn named(name: Atom, creation: u32) {
    if let Some(recorder) = namer() {
        let name = recorder.atom(name);
        recorder.ring.name(Name::Node { name, creation });
    }
}

/// The connection of this number to a node stands.
pub(crate) fn connected(number: u32, name: Atom, creation: u32) {
    if !is_asked() {
        return;
    }
    let Some(namer) = namer() else { return };
    let node = namer.atom(name);
    namer.ring.name(Name::Connection {
        number,
        node,
        creation,
    });
    if let Some(recorder) = recorder() {
        let connection = u64::from(number);
        recorder.write(Id::None, &RingEvent::DistUp { connection, node });
    }
}

/// The connection of this number has ended.
pub(crate) fn disconnected(number: u32, reason: Term<'_>) {
    if is_asked()
        && let Some(recorder) = recorder()
    {
        let reason = &text_of(reason);
        let connection = u64::from(number);
        recorder.write(Id::None, &RingEvent::DistDown { connection, reason });
    }
}

/// A signal of the process `from` leaves.
pub(crate) fn left(from: Option<Pid>, crossing: Crossing, told: &Told) {
    if let Some(recorder) = recorder() {
        let event = RingEvent::DistOut {
            connection: crossing.connection.into(),
            number: crossing.number,
            operation: told.operation,
            bytes: crossing.bytes as u64,
            text: &told.text,
        };
        recorder.write(from.map_or(Id::None, id_of), &event);
    }
}

/// A signal for `to` has come: a process, or the name of one.
pub(crate) fn came(to: Option<Pid>, crossing: Crossing, told: &Told) {
    if let Some(recorder) = recorder() {
        let event = RingEvent::DistIn {
            connection: crossing.connection.into(),
            number: crossing.number,
            operation: told.operation,
            bytes: crossing.bytes as u64,
            text: &told.text,
        };
        recorder.write(to.map_or(Id::None, id_of), &event);
    }
}

/// Is it a pid of this node or of another? Records have those otherwise.
fn is_pid(term: Term<'_>) -> bool {
    match term.view() {
        View::Pid(_) => true,
        View::External(external) => external.kind() == tag::EXTERNAL_PID,
        _ => false,
    }
}
