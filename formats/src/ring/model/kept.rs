//! What a flight recorder has kept of a ring, and why, as the ring's header says.

use serde::Serialize;

use super::event::Kind;
use super::id::Id;
use super::layout::{Header, header};

/// Why the flight recorder kept a part of the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// An event of this kind happened to this process or port.
    Event {
        /// The kind.
        #[serde(serialize_with = "kind_name")]
        kind: Kind,
        /// The process or port.
        #[serde(serialize_with = "id_text")]
        who: Id,
    },
    /// A signal to the command asked for it.
    Signal,
    /// The emulator was killed.
    Killed,
}

fn kind_name<S: serde::Serializer>(kind: &Kind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(kind.name())
}

fn id_text<S: serde::Serializer>(id: &Id, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(id)
}

impl Why {
    pub(in crate::ring) fn words(self) -> [u64; 3] {
        match self {
            Why::Event { kind, who } => [1, kind as u64, who.word()],
            Why::Signal => [2, 0, 0],
            Why::Killed => [3, 0, 0],
        }
    }

    pub(in crate::ring) fn of([why, kind, who]: [u64; 3]) -> Option<Why> {
        Some(match why {
            1 => Why::Event {
                kind: Kind::of(u8::try_from(kind).ok()?)?,
                who: Id::from_word(who),
            },
            2 => Why::Signal,
            3 => Why::Killed,
            _ => return None,
        })
    }
}

/// What a recording was kept for. All times count from the start of the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Kept {
    /// What happened.
    pub why: Why,
    /// When that happened.
    pub at_ns: u64,
    /// The first time whose records were wanted.
    pub from_ns: u64,
    /// The time of the newest record that was taken.
    pub to_ns: u64,
    /// The records after it were overwritten before the flight recorder could take them.
    pub is_cut: bool,
}

impl Kept {
    /// What the header says of a ring that was begun at the monotonic time `start_ns`.
    pub(in crate::ring) fn read(header: &Header) -> Option<Kept> {
        let word = |at: usize| header.word(header::KEPT + at);
        let why = Why::of([word(0), word(1), word(2)])?;
        let since = |ns: u64| ns.saturating_sub(header.word(header::START_NS));
        Some(Kept {
            why,
            at_ns: since(word(3)),
            from_ns: since(word(4)),
            to_ns: since(word(5)),
            is_cut: word(6) != 0,
        })
    }
}
