//! Writes a trace of Perfetto, `perfetto.protos.Trace`. Each scheduler has a track with the time slices of processes,
//! each dirty scheduler one with the native functions that it runs,
//! and each process has one with its calls and collections. A message is an arrow from where it is sent to where it is
//! received.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{self, Write};

use beamline_formats::profile::WAITS_FOR_DIRTY;
use beamline_formats::ring::{Event, Group, Id, Kind, NameId, Names, Record, Recording, Value};

use super::proto::Message;
use super::{DEEPEST, Error};
use crate::events::part::Part;
use crate::events::spool::process_text;
use crate::events::{Activation, Passing, Span, Spans, Step};

/// Fields of `TracePacket` that are written, and of what is in it.
pub(super) mod field {
    pub(in crate::export) const PACKET: u64 = 1;
    pub(in crate::export) const TIMESTAMP: u64 = 8;
    pub(in crate::export) const SEQUENCE_ID: u64 = 10;
    pub(super) const TRACK_EVENT: u64 = 11;
    pub(in crate::export) const INTERNED_DATA: u64 = 12;
    pub(in crate::export) const SEQUENCE_FLAGS: u64 = 13;
    pub(in crate::export) const TRACK_DESCRIPTOR: u64 = 60;

    pub(super) const EVENT_NAMES: u64 = 2;

    pub(in crate::export) const UUID: u64 = 1;
    pub(super) const NAME: u64 = 2;
    pub(in crate::export) const PROCESS: u64 = 3;
    pub(in crate::export) const PARENT_UUID: u64 = 5;
    pub(in crate::export) const PROCESS_PID: u64 = 1;
    pub(in crate::export) const PROCESS_NAME: u64 = 6;

    pub(super) const EVENT_TYPE: u64 = 9;
    pub(super) const EVENT_NAME_IID: u64 = 10;
    pub(super) const EVENT_TRACK: u64 = 11;
    pub(super) const EVENT_CATEGORY: u64 = 22;
    pub(super) const EVENT_NAME: u64 = 23;
    pub(super) const EVENT_ANNOTATION: u64 = 4;
    pub(super) const EVENT_FLOWS: u64 = 47;
    pub(super) const EVENT_LAST_FLOWS: u64 = 48;
    pub(super) const ANNOTATION_NUMBER: u64 = 3;
    pub(super) const ANNOTATION_TEXT: u64 = 6;
    pub(super) const ANNOTATION_NAME: u64 = 10;
}

const SLICE_BEGIN: u64 = 1;
const SLICE_END: u64 = 2;
const INSTANT: u64 = 3;

/// The emulator's own track, of which the others are part; those of schedulers come after it.
const EMULATOR: u64 = 1;

/// Tracks of dirty schedulers come after this, by their numbers.
const DIRTY: u64 = 1 << 31;

/// Tracks of processes are from here on, so that none is that of a scheduler.
const PROCESSES: u64 = 1 << 32;

/// Where a node's part of a trace is among those of others.
pub(super) struct Seat<'s> {
    /// Which of them it is, from 0: it has tracks, flows and names of its own.
    pub(super) number: u64,
    /// Its name; none where there is one recording only.
    pub(super) name: Option<&'s str>,
    /// What is added to its times.
    pub(super) offset_ns: i64,
    /// The flows of its signals that another node has recorded, by connection, number, and whether they left.
    pub(super) flows: HashMap<(u64, u64, bool), u64>,
}

impl Seat<'_> {
    /// That of a recording that is exported alone.
    pub(super) fn alone() -> Seat<'static> {
        Seat {
            number: 0,
            name: None,
            offset_ns: 0,
            flows: HashMap::new(),
        }
    }

    /// A track or a flow of this node: no other node has it.
    fn own(&self, number: u64) -> u64 {
        self.number << SEAT_SHIFT | number
    }

    /// The flow of a signal between nodes, and whether it ends here.
    fn flow(&self, event: &Event<'_>) -> Option<(u64, bool)> {
        let (signal, ends) = match *event {
            Event::DistOut {
                connection, number, ..
            } => ((connection, number, true), false),
            Event::DistIn {
                connection, number, ..
            } => ((connection, number, false), true),
            _ => return None,
        };
        Some((*self.flows.get(&signal)?, ends))
    }
}

/// Tracks and flows of a node are below this bit.
const SEAT_SHIFT: u32 = 44;

struct Trace<'r> {
    out: &'r mut dyn Write,
    names: &'r Names,
    seat: &'r Seat<'r>,
    tracks: HashMap<Id, u64>,
    known_schedulers: HashSet<u64>,
    known_names: HashSet<NameId>,
    /// Slices that have begun and not ended, of each track that has such, with those that are too deep to be shown.
    open: BTreeMap<u64, usize>,
    /// The tracks of processes that wait for a dirty scheduler.
    waiting: HashSet<u64>,
    is_first: bool,
}

fn annotation(name: &str) -> Message {
    Message::new().text(field::ANNOTATION_NAME, name)
}

impl Trace<'_> {
    fn packet(&mut self, packet: Message) -> io::Result<()> {
        // The first says that names are numbered anew, all others that they need those numbers.
        let flags = if std::mem::take(&mut self.is_first) {
            3
        } else {
            2
        };
        let packet = packet
            .number(field::SEQUENCE_ID, 1 + self.seat.number)
            .number(field::SEQUENCE_FLAGS, flags);
        let packet = Message::new().message(field::PACKET, &packet);
        self.out.write_all(packet.as_bytes())
    }

    fn descriptor(&mut self, uuid: u64, name: &str) -> io::Result<()> {
        let descriptor = Message::new()
            .number(field::UUID, self.seat.own(uuid))
            .text(field::NAME, name)
            .number(field::PARENT_UUID, self.seat.own(EMULATOR));
        self.packet(Message::new().message(field::TRACK_DESCRIPTOR, &descriptor))
    }

    fn emulator(&mut self, recording: &Recording) -> io::Result<()> {
        let command = || recording.description().title();
        let name = self.seat.name.map_or_else(command, str::to_owned);
        // Processes of several machines may have the same number.
        let pid = recording.os_pid() & 0x7f_ffff | self.seat.number << 23;
        let process = Message::new()
            .number(field::PROCESS_PID, pid & 0x7fff_ffff)
            .text(field::PROCESS_NAME, &name);
        let descriptor = Message::new()
            .number(field::UUID, self.seat.own(EMULATOR))
            .message(field::PROCESS, &process);
        self.packet(Message::new().message(field::TRACK_DESCRIPTOR, &descriptor))
    }

    /// The track of a process or port.
    fn track(&mut self, id: Id) -> io::Result<u64> {
        if let Some(track) = self.tracks.get(&id) {
            return Ok(*track);
        }
        let track = PROCESSES + self.tracks.len() as u64;
        self.tracks.insert(id, track);
        let text = process_text(self.names, id);
        self.descriptor(track, &text)?;
        Ok(track)
    }

    /// A time by the clock of the first node.
    fn shown_ns(&self, at_ns: u64) -> u64 {
        at_ns.saturating_add_signed(self.seat.offset_ns)
    }

    fn event(&mut self, at_ns: u64, kind: u64, track: u64, event: Message) -> io::Result<()> {
        let event = event
            .number(field::EVENT_TYPE, kind)
            .number(field::EVENT_TRACK, self.seat.own(track));
        let packet = Message::new()
            .number(field::TIMESTAMP, self.shown_ns(at_ns))
            .message(field::TRACK_EVENT, &event);
        self.packet(packet)
    }

    /// One more slice on a track; whether it is shown.
    fn deeper(&mut self, track: u64) -> bool {
        let open = self.open.entry(track).or_default();
        *open += 1;
        *open <= DEEPEST
    }

    fn begin(&mut self, at_ns: u64, track: u64, event: Message) -> io::Result<()> {
        if self.deeper(track) {
            self.event(at_ns, SLICE_BEGIN, track, event)?;
        }
        Ok(())
    }

    fn end(&mut self, at_ns: u64, track: u64) -> io::Result<()> {
        self.end_with(at_ns, track, Message::new())
    }

    fn end_call(&mut self, at_ns: u64, track: u64, call: &Activation) -> io::Result<()> {
        let event = match call.own_words() {
            0 => Message::new(),
            words => {
                let words = annotation("own words").number(field::ANNOTATION_NUMBER, words);
                Message::new().message(field::EVENT_ANNOTATION, &words)
            }
        };
        self.end_with(at_ns, track, event)
    }

    fn end_with(&mut self, at_ns: u64, track: u64, event: Message) -> io::Result<()> {
        match self.open.get_mut(&track) {
            Some(open) if *open > DEEPEST => {
                *open -= 1;
                return Ok(());
            }
            Some(open) if *open > 0 => *open -= 1,
            // What ends had begun before the recording.
            _ => return Ok(()),
        }
        self.event(at_ns, SLICE_END, track, event)
    }

    fn begin_call(&mut self, at_ns: u64, track: u64, function: NameId) -> io::Result<()> {
        if !self.deeper(track) {
            return Ok(());
        }
        let iid = u64::from(function.0) + 1;
        let mut event = Message::new();
        if let Some(native) = self.names.native(function) {
            event = event.text(field::EVENT_CATEGORY, native.name());
        }
        let event = event
            .number(field::EVENT_NAME_IID, iid)
            .number(field::EVENT_TYPE, SLICE_BEGIN)
            .number(field::EVENT_TRACK, self.seat.own(track));
        let mut packet = Message::new()
            .number(field::TIMESTAMP, self.shown_ns(at_ns))
            .message(field::TRACK_EVENT, &event);
        if self.known_names.insert(function) {
            let text = self.names.function_text(function);
            let name = Message::new().number(1, iid).text(2, &text);
            let data = Message::new().message(field::EVENT_NAMES, &name);
            packet = packet.message(field::INTERNED_DATA, &data);
        }
        self.packet(packet)
    }

    /// A time slice begins or ends on a scheduler's own track.
    fn slice(&mut self, recording: &Recording, record: &Record<'_>, span: &Span) -> io::Result<()> {
        let track = record.segment as u64 + EMULATOR + 1;
        match span {
            Span::SliceBegins { instead_of, slice } => {
                if let Some(own) = self.tracks.get(&slice.who).copied() {
                    self.end_dirty_wait(record.time_ns, own)?;
                }
                if self.known_schedulers.insert(track) {
                    let name = match recording.scheduler(record.segment) {
                        Some(number) => format!("Scheduler {number}"),
                        None => "Other threads".to_owned(),
                    };
                    self.descriptor(track, &name)?;
                }
                if instead_of.is_some() {
                    self.end(record.time_ns, track)?;
                }
                let text = process_text(self.names, record.subject);
                let event = Message::new().text(field::EVENT_NAME, &text);
                self.begin(record.time_ns, track, event)
            }
            Span::SliceEnds {
                on_scheduler: Some(_),
                ..
            } => self.end(record.time_ns, track),
            _ => Ok(()),
        }
    }

    /// A call for a dirty scheduler: its process waits, and then the scheduler runs it.
    fn dirty(&mut self, record: &Record<'_>, span: &Span) -> io::Result<()> {
        let (now, own) = (record.time_ns, self.track(record.subject)?);
        match span {
            Span::DirtyWaits(call) => {
                let event = Message::new()
                    .text(field::EVENT_CATEGORY, call.kind.name())
                    .text(field::EVENT_NAME, WAITS_FOR_DIRTY);
                self.begin(now, own, event)?;
                self.waiting.insert(own);
                Ok(())
            }
            Span::DirtyBegins(call) => {
                self.end_dirty_wait(now, own)?;
                let track = DIRTY + call.scheduler;
                if self.known_schedulers.insert(track) {
                    let name = format!(
                        "{} scheduler {}",
                        call.kind.name_of_schedulers(),
                        call.scheduler
                    );
                    self.descriptor(track, &name)?;
                }
                let who = process_text(self.names, record.subject);
                let who = annotation("process").text(field::ANNOTATION_TEXT, &who);
                let event = Message::new()
                    .text(field::EVENT_CATEGORY, call.kind.name())
                    .text(field::EVENT_NAME, &self.names.function_text(call.function))
                    .message(field::EVENT_ANNOTATION, &who);
                self.begin(now, track, event)
            }
            Span::DirtyEnds(Some(call)) => self.end(now, DIRTY + call.scheduler),
            _ => Ok(()),
        }
    }

    /// What else a process does ends its waiting for a dirty scheduler.
    fn end_dirty_wait(&mut self, at_ns: u64, track: u64) -> io::Result<()> {
        if !self.waiting.is_empty() && self.waiting.remove(&track) {
            self.end(at_ns, track)?;
        }
        Ok(())
    }

    /// A call begins or ends on the track of its process.
    fn call(&mut self, record: &Record<'_>, step: &Step) -> io::Result<()> {
        let track = self.track(record.subject)?;
        self.end_dirty_wait(record.time_ns, track)?;
        match step {
            Step::Begin(call) => self.begin_call(record.time_ns, track, call.function),
            Step::End(call) => self.end_call(record.time_ns, track, call),
        }
    }

    /// A collection begins or ends on the track of its process.
    fn collection(&mut self, record: &Record<'_>, kind: Kind, span: &Span) -> io::Result<()> {
        let track = self.track(record.subject)?;
        let (is_major, words) = match *span {
            Span::CollectionBegins { is_major, used } => (is_major, used),
            Span::CollectionEnds {
                collection: Some(_),
                ..
            } => return self.end(record.time_ns, track),
            // It had begun before the first record: what is open is something else.
            Span::CollectionEnds { .. } => return Ok(()),
            _ => return self.instant(record, kind, None),
        };
        let name = match is_major {
            true => "major collection",
            false => "minor collection",
        };
        let used = annotation("words in use").number(field::ANNOTATION_NUMBER, words);
        let event = Message::new()
            .text(field::EVENT_NAME, name)
            .message(field::EVENT_ANNOTATION, &used);
        self.begin(record.time_ns, track, event)
    }

    /// What takes no time.
    fn instant(
        &mut self,
        record: &Record<'_>,
        kind: Kind,
        passing: Option<Passing>,
    ) -> io::Result<()> {
        let track = self.track(record.subject)?;
        let mut event = Message::new().text(field::EVENT_NAME, kind.name());
        for (name, value) in record.event.values() {
            let note = annotation(name);
            let note = match value {
                Value::Number(number) => note.number(field::ANNOTATION_NUMBER, number),
                Value::Text(text) => note.text(field::ANNOTATION_TEXT, text),
                Value::Id(Id::Name(name)) => {
                    note.text(field::ANNOTATION_TEXT, self.names.atom(name))
                }
                Value::Id(id @ Id::Socket(_)) => {
                    note.text(field::ANNOTATION_TEXT, &self.names.socket_text(id))
                }
                Value::Id(id) => note.text(field::ANNOTATION_TEXT, &id.to_string()),
                Value::Name(name) => note.text(field::ANNOTATION_TEXT, &self.names.text(name)),
                Value::Label(label) => note.text(field::ANNOTATION_TEXT, &label.to_string()),
            };
            event = event.message(field::EVENT_ANNOTATION, &note);
        }
        event = match passing {
            Some(Passing::Begins(sent)) => {
                event.fixed(field::EVENT_FLOWS, self.seat.own(sent.number))
            }
            Some(Passing::Ends(sent)) => {
                event.fixed(field::EVENT_LAST_FLOWS, self.seat.own(sent.number))
            }
            None => match self.seat.flow(&record.event) {
                Some((flow, false)) => event.fixed(field::EVENT_FLOWS, flow),
                Some((flow, true)) => event.fixed(field::EVENT_LAST_FLOWS, flow),
                None => event,
            },
        };
        self.event(record.time_ns, INSTANT, track, event)
    }

    /// Ends what has not ended.
    fn finish(&mut self, at_ns: u64) -> io::Result<()> {
        for (track, open) in std::mem::take(&mut self.open) {
            for _ in 0..open.min(DEEPEST) {
                self.event(at_ns, SLICE_END, track, Message::new())?;
            }
        }
        Ok(())
    }
}

pub(super) fn write(
    recording: &Recording,
    part: &Part<'_>,
    seat: &Seat<'_>,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let mut trace = Trace {
        out,
        names: recording.names(),
        seat,
        tracks: HashMap::new(),
        known_schedulers: HashSet::new(),
        known_names: HashSet::new(),
        open: BTreeMap::new(),
        waiting: HashSet::new(),
        is_first: true,
    };
    trace.emulator(recording)?;
    let mut last = 0;
    let mut spans = Spans::new().with_calls(recording).with_messages(recording);
    part.scan(recording, |record, _| {
        last = record.time_ns;
        spans.add(record, |span| {
            let Some(kind) = record.event.kind() else {
                return Ok(());
            };
            match (kind.group(), span) {
                (_, Span::Call(step)) => trace.call(record, step)?,
                (_, Span::DirtyWaits(_) | Span::DirtyBegins(_) | Span::DirtyEnds(_)) => {
                    trace.dirty(record, span)?;
                }
                (Group::Scheduling, _) => trace.slice(recording, record, span)?,
                (Group::Gc, _) => trace.collection(record, kind, span)?,
                (_, Span::Message(passing)) => trace.instant(record, kind, Some(*passing))?,
                _ => trace.instant(record, kind, None)?,
            }
            Ok::<(), Error>(())
        })
    })?;
    trace.finish(last)?;
    Ok(())
}
