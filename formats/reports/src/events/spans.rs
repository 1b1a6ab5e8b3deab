//! Finds the spans of a recording: which records begin and end time slices, collections, calls and messages, and which
//! of these belong together.

use std::collections::HashMap;

use beamline_formats::profile::Native;
use beamline_formats::ring::{
    DIRTY_IO, Error, Event, Group, Id, Losses, NameId, Record, Recording, SocketWait,
};

use super::pass::scan;
use crate::events::in_transit::{InTransit, Passing};
use crate::events::stacks::{Activation, Stacks, Step};

/// Reductions of a time slice; source: `CONTEXT_REDS` of OTP's `erl_vm.h`.
pub(crate) const SLICE_REDUCTIONS: u64 = 4000;

/// A time slice in which a process or a port runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// The process or port.
    pub who: Id,
    /// When it began, since the recording was begun.
    pub start_ns: u64,
    /// The index of the segment, so the scheduler, it began on.
    pub segment: usize,
    /// The function it begins in; of a port, the command.
    pub from: NameId,
    /// A scheduler goes on ending the process.
    pub is_exiting: bool,
}

impl Slice {
    /// It is a port that runs.
    #[must_use]
    pub(crate) fn is_of_port(&self) -> bool {
        matches!(self.who, Id::Port(_))
    }
}

/// A call of a native function that is for a dirty scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirtyCall {
    /// The process that made it.
    pub who: Id,
    /// When it began to wait; where that was not seen, when it began to run.
    pub queued_ns: u64,
    /// When it began to run, if it has.
    pub start_ns: Option<u64>,
    /// The schedulers that it is for.
    pub kind: Native,
    /// The number of the one that runs it.
    pub scheduler: u64,
    /// The native function.
    pub function: NameId,
}

/// How a time slice ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    /// In this function.
    In(NameId),
    /// With the process.
    Exited,
    /// Not before the recording.
    Open,
}

/// A process collects garbage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collection {
    /// Whose garbage.
    pub who: Id,
    /// When it began, since the recording was begun.
    pub start_ns: u64,
    /// The newest call of the process, where calls are followed.
    pub within: NameId,
}

/// A process waits for a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SocketSpan {
    /// The process.
    pub who: Id,
    /// The socket.
    pub socket: Id,
    /// What for.
    pub what: SocketWait,
    /// When it began, since the recording was begun.
    pub start_ns: u64,
}

/// The meaning of a record for the spans that it is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// A call begins or ends.
    Call(Step),
    /// A process or a port begins to run.
    SliceBegins {
        /// The time slice.
        slice: Slice,
        /// The time slice on the same scheduler of which no end was seen.
        instead_of: Option<Slice>,
    },
    /// It runs no more.
    SliceEnds {
        /// Its time slice, if the recording has the beginning of it.
        slice: Option<Slice>,
        /// The time slice that the scheduler began last. Where threads share a segment, it can be another's.
        on_scheduler: Option<Slice>,
        /// How it ends.
        end: End,
    },
    /// A call begins to wait for a dirty scheduler.
    DirtyWaits(DirtyCall),
    /// A dirty scheduler begins to run it.
    DirtyBegins(DirtyCall),
    /// It has run; `None` where it was not seen to begin.
    DirtyEnds(Option<DirtyCall>),
    /// A collection begins.
    CollectionBegins {
        /// Of old terms too.
        is_major: bool,
        /// Words in use.
        used: u64,
    },
    /// A collection ends.
    CollectionEnds {
        /// The collection, if it was seen to begin.
        collection: Option<Collection>,
        /// Of old terms too.
        is_major: bool,
        /// Words given back.
        reclaimed: u64,
        /// Words in use.
        used: u64,
    },
    /// A message is sent, or comes after it was seen to be sent.
    Message(Passing),
    /// A process does not wait for a socket any more.
    SocketWaitEnds(SocketSpan),
    /// Nothing begins or ends.
    Moment,
}

/// Follows the spans of a recording.
#[derive(Default)]
pub struct Spans {
    running: HashMap<Id, Slice>,
    /// By segment.
    on_scheduler: HashMap<usize, Slice>,
    dirty: HashMap<Id, DirtyCall>,
    collecting: HashMap<Id, Collection>,
    /// When each process began to wait for what of which socket.
    waiting: HashMap<(Id, Id, SocketWait), u64>,
    calls: Option<Stacks>,
    messages: Option<InTransit>,
}

impl Spans {
    /// Follows time slices and collections. None has begun yet.
    #[must_use]
    pub fn new() -> Spans {
        Spans::default()
    }

    /// Follows calls, too.
    #[must_use]
    pub(crate) fn with_calls(mut self, recording: &Recording) -> Spans {
        self.calls = Some(Stacks::new(recording));
        self
    }

    /// Follows messages, too.
    #[must_use]
    pub(crate) fn with_messages(mut self, recording: &Recording) -> Spans {
        self.messages = Some(InTransit::new(recording.names()));
        self
    }

    /// Follows a record. `each` gets what it means for calls, the newest first, and then, once, what it means for all
    /// else: not where it is about calls and their costs only.
    ///
    /// # Errors
    /// The first of `each`.
    #[inline]
    pub fn add<E>(
        &mut self,
        record: &Record<'_>,
        mut each: impl FnMut(&Span) -> Result<(), E>,
    ) -> Result<(), E> {
        if let Some(calls) = &mut self.calls {
            let mut done = Ok(());
            calls.add(record, |step| {
                if done.is_ok() {
                    done = each(&Span::Call(step));
                }
            });
            done?;
        }
        let Some(kind) = record.event.kind() else {
            return Ok(());
        };
        let span = match kind.group() {
            Group::Calls | Group::Returns | Group::Words | Group::Reductions => return Ok(()),
            Group::Scheduling | Group::Ports => self.slice(record),
            Group::Gc => self.collection(record),
            Group::Net => self.socket(record),
            _ => {
                let passing = self.messages.as_mut().and_then(|all| all.add(record));
                passing.map_or(Span::Moment, Span::Message)
            }
        };
        each(&span)
    }

    fn slice(&mut self, record: &Record<'_>) -> Span {
        match record.event {
            Event::In { function } => self.slice_begins(record, function, false),
            Event::InExiting {} => self.slice_begins(record, NameId::NONE, true),
            Event::PortIn { command } => self.slice_begins(record, command, false),
            Event::Out { function, .. } => self.slice_ends(record, End::In(function)),
            Event::OutExiting {} | Event::OutExited {} => self.slice_ends(record, End::Exited),
            Event::PortOut { command } => self.slice_ends(record, End::In(command)),
            Event::DirtyQueued { .. } | Event::DirtyIn { .. } | Event::DirtyOut { .. } => {
                self.dirty(record)
            }
            _ => Span::Moment,
        }
    }

    fn dirty(&mut self, record: &Record<'_>) -> Span {
        let (who, now) = (record.subject, record.time_ns);
        let call = |kind| DirtyCall {
            who,
            queued_ns: now,
            start_ns: None,
            // A newer writer may know more kinds.
            kind: kind_of(kind),
            scheduler: 0,
            function: NameId::NONE,
        };
        match record.event {
            Event::DirtyQueued { kind } => {
                let waits = call(kind);
                self.dirty.insert(who, waits);
                Span::DirtyWaits(waits)
            }
            Event::DirtyIn {
                function,
                kind,
                scheduler,
            } => {
                let waited = self.dirty.get(&who).filter(|call| call.start_ns.is_none());
                let begins = DirtyCall {
                    queued_ns: waited.map_or(now, |call| call.queued_ns),
                    start_ns: Some(now),
                    scheduler,
                    function,
                    ..call(kind)
                };
                self.dirty.insert(who, begins);
                Span::DirtyBegins(begins)
            }
            _ => Span::DirtyEnds(self.dirty.remove(&who)),
        }
    }

    fn slice_begins(&mut self, record: &Record<'_>, from: NameId, is_exiting: bool) -> Span {
        let slice = Slice {
            who: record.subject,
            start_ns: record.time_ns,
            segment: record.segment,
            from,
            is_exiting,
        };
        self.running.insert(slice.who, slice);
        // A call that was taken back waits no more; one of a process that exits may still run.
        if self
            .dirty
            .get(&slice.who)
            .is_some_and(|call| call.start_ns.is_none())
        {
            self.dirty.remove(&slice.who);
        }
        // A port runs within the time slice of a process, or between two.
        let is_port = matches!(record.event, Event::PortIn { .. });
        let instead_of = match is_port {
            true => None,
            false => self.on_scheduler.insert(slice.segment, slice),
        };
        Span::SliceBegins { slice, instead_of }
    }

    fn slice_ends(&mut self, record: &Record<'_>, end: End) -> Span {
        let is_port = matches!(record.event, Event::PortOut { .. });
        Span::SliceEnds {
            slice: self.running.remove(&record.subject),
            on_scheduler: match is_port {
                true => None,
                false => self.on_scheduler.remove(&record.segment),
            },
            end,
        }
    }

    fn socket(&mut self, record: &Record<'_>) -> Span {
        let (who, now) = (record.subject, record.time_ns);
        match record.event {
            Event::NetWait { socket, what } => {
                // A newer writer may know more. A process whose wait goes on has begun it before.
                if let Some(what) = SocketWait::of(what) {
                    self.waiting.entry((who, socket, what)).or_insert(now);
                }
                Span::Moment
            }
            Event::NetReady { socket, what, .. } => {
                let ended = SocketWait::of(what).and_then(|what| {
                    let start_ns = self.waiting.remove(&(who, socket, what))?;
                    Some(SocketSpan {
                        who,
                        socket,
                        what,
                        start_ns,
                    })
                });
                ended.map_or(Span::Moment, Span::SocketWaitEnds)
            }
            _ => Span::Moment,
        }
    }

    /// The waits for sockets that have not ended, in order of processes and sockets.
    #[must_use]
    pub(crate) fn open_waits(&self) -> Vec<SocketSpan> {
        let waiting = self.waiting.iter();
        let open = waiting.map(|(&(who, socket, what), &start_ns)| SocketSpan {
            who,
            socket,
            what,
            start_ns,
        });
        let mut open: Vec<SocketSpan> = open.collect();
        open.sort_unstable_by_key(|wait| (wait.who, wait.socket, wait.what));
        open
    }

    fn collection(&mut self, record: &Record<'_>) -> Span {
        let who = record.subject;
        let (is_major, used, reclaimed) = match record.event {
            Event::GcMinorStart { used, .. } => (false, used, None),
            Event::GcMajorStart { used, .. } => (true, used, None),
            Event::GcMinorEnd { reclaimed, used } => (false, used, Some(reclaimed)),
            Event::GcMajorEnd { reclaimed, used } => (true, used, Some(reclaimed)),
            _ => return Span::Moment,
        };
        if let Some(reclaimed) = reclaimed {
            return Span::CollectionEnds {
                collection: self.collecting.remove(&who),
                is_major,
                reclaimed,
                used,
            };
        }
        let within = self.calls.as_ref().and_then(|calls| calls.top(who));
        let collection = Collection {
            who,
            start_ns: record.time_ns,
            within: within.unwrap_or_default(),
        };
        self.collecting.insert(who, collection);
        Span::CollectionBegins { is_major, used }
    }

    /// The time slices that have not ended, in order of the processes and ports that run.
    #[must_use]
    pub(crate) fn open_slices(&self) -> Vec<Slice> {
        let mut open: Vec<Slice> = self.running.values().copied().collect();
        open.sort_unstable_by_key(|slice| slice.who);
        open
    }

    /// The calls for dirty schedulers that have not ended, in order of their processes.
    #[must_use]
    pub(crate) fn open_dirty(&self) -> Vec<DirtyCall> {
        let mut open: Vec<DirtyCall> = self.dirty.values().copied().collect();
        open.sort_unstable_by_key(|call| call.who);
        open
    }

    /// How many collections have not ended.
    #[must_use]
    pub(crate) fn open_collections(&self) -> usize {
        self.collecting.len()
    }

    /// The calls that have not ended, of each process the newest first; their own time is that until `now`.
    pub(crate) fn calls_left(&mut self, now: u64) -> impl Iterator<Item = (Id, Activation)> {
        let calls = self.calls.as_mut().into_iter();
        calls.flat_map(move |calls| calls.open(now))
    }

    /// How many calls have not ended.
    #[must_use]
    pub(crate) fn open_calls(&self) -> usize {
        self.calls.as_ref().map_or(0, Stacks::open_count)
    }

    /// How many messages were sent and were not seen to come.
    #[must_use]
    pub(crate) fn open_messages(&self) -> u64 {
        self.messages.as_ref().map_or(0, InTransit::left)
    }
}

/// The kind of dirty schedulers that a record tells, see `dirty_queued`.
fn kind_of(number: u64) -> Native {
    match number {
        DIRTY_IO => Native::DirtyIo,
        _ => Native::DirtyCpu,
    }
}

/// Hands over all records since when nothing is missing, in order of time, with what they mean for what `spans`
/// follows; the result is what is missing.
///
/// # Errors
/// When a block is damaged, or the first error of `each`.
pub fn follow<E: From<Error>>(
    recording: &Recording,
    spans: &mut Spans,
    mut each: impl FnMut(&Record<'_>, &Span) -> Result<(), E>,
) -> Result<Losses, E> {
    scan(recording, |record| {
        spans.add(record, |span| each(record, span))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const F: NameId = NameId(7);

    fn run(out: bool) -> Event<'static> {
        match out {
            false => Event::In { function: F },
            true => Event::Out {
                function: F,
                messages: 0,
                reductions: 0,
            },
        }
    }

    /// Of each record, on one scheduler, what it means.
    fn spans(records: &[(u64, Id, Event<'static>)]) -> (Vec<Span>, Spans) {
        let (mut spans, mut seen) = (Spans::new(), Vec::new());
        for (time_ns, subject, event) in records {
            let record = Record {
                time_ns: *time_ns,
                segment: 0,
                subject: *subject,
                event: *event,
            };
            let done = spans.add(&record, |span| {
                seen.push(*span);
                Ok::<(), ()>(())
            });
            assert_eq!(done, Ok(()));
        }
        (seen, spans)
    }

    #[test]
    fn slices_are_of_processes_and_of_schedulers() {
        let [a, b, port] = [Id::Process(1), Id::Process(2), Id::Port(1)];
        let command = NameId(8);
        let (seen, spans) = spans(&[
            (1, a, run(false)),
            (2, b, run(false)),
            (3, port, Event::PortIn { command }),
            (4, port, Event::PortOut { command }),
            (5, a, run(true)),
            (6, b, Event::OutExited {}),
            (7, b, Event::InExiting {}),
        ]);
        let slice = |who, start_ns, from| Slice {
            who,
            start_ns,
            segment: 0,
            from,
            is_exiting: from == NameId::NONE,
        };
        let begins = |slice, instead_of| Span::SliceBegins { slice, instead_of };
        let ends = |slice, on_scheduler, end| Span::SliceEnds {
            slice,
            on_scheduler,
            end,
        };
        let (of_a, of_b, of_port) = (slice(a, 1, F), slice(b, 2, F), slice(port, 3, command));
        let last = slice(b, 7, NameId::NONE);
        let expect = [
            begins(of_a, None),
            begins(of_b, Some(of_a)),
            begins(of_port, None),
            ends(Some(of_port), None, End::In(command)),
            ends(Some(of_a), Some(of_b), End::In(F)),
            ends(Some(of_b), None, End::Exited),
            begins(last, None),
        ];
        assert_eq!(seen, expect);
        assert_eq!(spans.open_slices(), [last]);
    }

    #[test]
    fn collections_are_of_processes() {
        let [a, b] = [Id::Process(1), Id::Process(2)];
        let start = Event::GcMajorStart { need: 1, used: 9 };
        let end = Event::GcMajorEnd {
            reclaimed: 4,
            used: 5,
        };
        let (seen, spans) = spans(&[(1, b, start), (2, a, end), (3, a, start), (5, a, end)]);
        let begins = Span::CollectionBegins {
            is_major: true,
            used: 9,
        };
        let ends = |collection| Span::CollectionEnds {
            collection,
            is_major: true,
            reclaimed: 4,
            used: 5,
        };
        let of_a = Collection {
            who: a,
            start_ns: 3,
            within: NameId::NONE,
        };
        assert_eq!(seen, [begins, ends(None), begins, ends(Some(of_a))]);
        assert_eq!(spans.open_collections(), 1);
    }
}
