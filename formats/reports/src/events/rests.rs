//! The rests of processes between their time slices, and what ended each: the message that came first.

use beamline_formats::ring::{Event, Id, Names, Record};
use rustc_hash::FxHashMap;

use crate::events::spans::SLICE_REDUCTIONS;
use crate::events::{InTransit, Passing};

/// How a time slice ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// It waited, and no known message ended that.
    Unknown,
    /// It was ready at once: it had used up its reductions.
    IsReady,
    /// It waited until this process sent a message.
    Waits {
        on: Id,
        until_ns: u64,
        /// When the message was in its queue.
        came_ns: u64,
    },
}

/// A rest of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rest {
    /// When its time slice ended.
    pub(crate) out_ns: u64,
    /// When the next one began; the end of time where none has.
    pub(crate) in_ns: u64,
    pub(crate) then: Then,
}

/// The rests of all processes, each one's by time.
pub(crate) struct Rests {
    all: FxHashMap<Id, Vec<Rest>>,
    /// Of each process that waits, the first message that came.
    came: FxHashMap<Id, Option<Then>>,
    reductions: FxHashMap<Id, u64>,
    messages: InTransit,
}

impl Rests {
    /// None yet, of a recording with these names.
    pub(crate) fn new(names: &Names) -> Rests {
        Rests {
            all: FxHashMap::default(),
            came: FxHashMap::default(),
            reductions: FxHashMap::default(),
            messages: InTransit::new(names),
        }
    }

    /// Those of a process.
    pub(crate) fn of(&self, id: Id) -> &[Rest] {
        self.all.get(&id).map_or(&[], Vec::as_slice)
    }

    /// Follows a record.
    pub(crate) fn add(&mut self, record: &Record<'_>) {
        let (id, now) = (record.subject, record.time_ns);
        match record.event {
            Event::Out { reductions, .. } => {
                let before = self.reductions.insert(id, reductions).unwrap_or(0);
                let then = match reductions.saturating_sub(before) >= SLICE_REDUCTIONS {
                    true => Then::IsReady,
                    false => {
                        self.came.insert(id, None);
                        Then::Unknown
                    }
                };
                self.all.entry(id).or_default().push(Rest {
                    out_ns: now,
                    in_ns: u64::MAX,
                    then,
                });
            }
            Event::In { .. } => {
                let came = self.came.remove(&id).flatten();
                let last = self.all.get_mut(&id).and_then(|all| all.last_mut());
                if let Some(last) = last.filter(|last| last.in_ns == u64::MAX) {
                    last.in_ns = now;
                    last.then = came.unwrap_or(last.then);
                }
            }
            // It waits for a dirty scheduler, or has ended.
            Event::DirtyQueued { .. } | Event::InExiting {} | Event::Exit { .. } => {
                self.came.remove(&id);
            }
            _ => {
                let Some(Passing::Ends(sent)) = self.messages.add(record) else {
                    return;
                };
                if let (Some(came @ None), Id::Process(_)) = (self.came.get_mut(&id), sent.from) {
                    *came = Some(Then::Waits {
                        on: sent.from,
                        until_ns: sent.at_ns,
                        came_ns: now,
                    });
                }
            }
        }
    }
}
