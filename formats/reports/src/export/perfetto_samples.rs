//! Writes samples as a trace of Perfetto, `perfetto.protos.Trace`: those of its own sampler of stacks, `PerfSample`. A thread
//! of the emulator is a thread there. The oldest frame of a stack is the process that the thread ran for.

use std::collections::HashMap;
use std::io::{self, Write};

use beamline_formats::ring::{Id, NameId, Names, Record, Recording, Sampling};

use super::proto::Message;
use super::{Error, no_calls};
use crate::events::part::Part;
use crate::events::spool::process_text;
use crate::events::{Looked, ThreadKind};

/// Fields of `TracePacket` that are written of samples alone, beside those of each trace.
mod field {
    pub(super) use super::super::perfetto::field::{
        INTERNED_DATA, PACKET, PARENT_UUID, PROCESS, PROCESS_NAME, PROCESS_PID, SEQUENCE_FLAGS,
        SEQUENCE_ID, TIMESTAMP, TRACK_DESCRIPTOR, UUID,
    };

    pub(super) const DEFAULTS: u64 = 59;
    pub(super) const PERF_SAMPLE: u64 = 66;

    pub(super) const FUNCTION_NAMES: u64 = 5;
    pub(super) const FRAMES: u64 = 6;
    pub(super) const CALLSTACKS: u64 = 7;
    pub(super) const MAPPING_PATHS: u64 = 17;
    pub(super) const MAPPINGS: u64 = 19;
    pub(super) const IID: u64 = 1;
    pub(super) const TEXT: u64 = 2;
    pub(super) const FRAME_FUNCTION: u64 = 2;
    pub(super) const FRAME_MAPPING: u64 = 3;
    pub(super) const FRAME_PLACE: u64 = 4;
    pub(super) const CALLSTACK_FRAME: u64 = 2;
    pub(super) const MAPPING_PATH: u64 = 7;

    pub(super) const THREAD: u64 = 4;
    pub(super) const THREAD_PID: u64 = 1;
    pub(super) const TID: u64 = 2;
    pub(super) const THREAD_NAME: u64 = 5;

    pub(super) const SAMPLE_PID: u64 = 2;
    pub(super) const SAMPLE_TID: u64 = 3;
    pub(super) const SAMPLE_CALLSTACK: u64 = 4;
    pub(super) const SAMPLE_MODE: u64 = 5;
    pub(super) const SAMPLE_DEFAULTS: u64 = 12;
    pub(super) const TIMEBASE: u64 = 1;
    pub(super) const FREQUENCY: u64 = 2;
    pub(super) const COUNTER: u64 = 4;
    pub(super) const TIMEBASE_NAME: u64 = 10;
}

/// The emulator's own track, of which its threads are part.
const EMULATOR: u64 = 1;

/// Everything is said to be in this one mapping, without which a frame counts for nothing.
const MAPPING: u64 = 1;

/// Of `Profiling.CpuMode`.
const USER: u64 = 2;

/// Of `PerfEvents.Counter`: the time of threads that run.
const TASK_CLOCK: u64 = 3;

/// What frames are of.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Of {
    Process(Id),
    Function(NameId),
}

struct Trace<'r> {
    out: &'r mut dyn Write,
    names: &'r Names,
    pid: u64,
    threads: HashMap<(ThreadKind, u64), u64>,
    frames: HashMap<Of, u64>,
    stacks: HashMap<(Id, NameId), u64>,
}

fn interned(number: u64, text: &str) -> Message {
    Message::new()
        .number(field::IID, number)
        .text(field::TEXT, text)
}

impl Trace<'_> {
    /// Writes a packet; the first says that everything is numbered anew, and all others need those numbers.
    fn packet(&mut self, packet: Message, is_first: bool) -> io::Result<()> {
        let flags = if is_first { 3 } else { 2 };
        let packet = packet
            .number(field::SEQUENCE_ID, 1)
            .number(field::SEQUENCE_FLAGS, flags);
        let trace = Message::new().message(field::PACKET, &packet);
        self.out.write_all(trace.as_bytes())
    }

    /// What is the same of all samples.
    fn begin(&mut self, recording: &Recording, sampling: &Sampling) -> io::Result<()> {
        let command = recording.description().title();
        let timebase = Message::new()
            .number(field::FREQUENCY, sampling.rate_hz)
            .number(field::COUNTER, TASK_CLOCK)
            .text(field::TIMEBASE_NAME, &sampling.means);
        let of_samples = Message::new().message(field::TIMEBASE, &timebase);
        let defaults = Message::new().message(field::SAMPLE_DEFAULTS, &of_samples);
        let mapping = Message::new()
            .number(field::IID, MAPPING)
            .number(field::MAPPING_PATH, MAPPING);
        let data = Message::new()
            .message(field::MAPPING_PATHS, &interned(MAPPING, &command))
            .message(field::MAPPINGS, &mapping);
        let first = Message::new()
            .message(field::DEFAULTS, &defaults)
            .message(field::INTERNED_DATA, &data);
        self.packet(first, true)?;
        let process = Message::new()
            .number(field::PROCESS_PID, self.pid)
            .text(field::PROCESS_NAME, &command);
        let descriptor = Message::new()
            .number(field::UUID, EMULATOR)
            .message(field::PROCESS, &process);
        self.packet(
            Message::new().message(field::TRACK_DESCRIPTOR, &descriptor),
            false,
        )
    }

    /// The number of a thread. A thread that has the process's own is its main thread: none has that.
    fn thread(&mut self, looked: Looked) -> io::Result<u64> {
        let key = (looked.kind, looked.number);
        if let Some(known) = self.threads.get(&key) {
            return Ok(*known);
        }
        let track = EMULATOR + 1 + self.threads.len() as u64;
        let tid = self.pid + track;
        self.threads.insert(key, tid);
        let thread = Message::new()
            .number(field::THREAD_PID, self.pid)
            .number(field::TID, tid)
            .text(
                field::THREAD_NAME,
                &Looked::thread(looked.kind, looked.number),
            );
        let descriptor = Message::new()
            .number(field::UUID, track)
            .number(field::PARENT_UUID, EMULATOR)
            .message(field::THREAD, &thread);
        let packet = Message::new().message(field::TRACK_DESCRIPTOR, &descriptor);
        self.packet(packet, false)?;
        Ok(tid)
    }

    /// The number of a frame; a new one is put into `data`.
    fn frame(&mut self, of: Of, data: &mut Message) -> u64 {
        let new = self.frames.len() as u64 + 1;
        let number = *self.frames.entry(of).or_insert(new);
        if number == new {
            let text = match of {
                Of::Process(id) => process_text(self.names, id),
                Of::Function(function) => self.names.function_text(function),
            };
            let frame = Message::new()
                .number(field::IID, number)
                .number(field::FRAME_FUNCTION, number)
                .number(field::FRAME_MAPPING, MAPPING)
                .number(field::FRAME_PLACE, number);
            *data = std::mem::take(data)
                .message(field::FUNCTION_NAMES, &interned(number, &text))
                .message(field::FRAMES, &frame);
        }
        number
    }

    /// The number of a stack; a new one is put into `data`, the oldest frame first.
    fn stack(&mut self, who: Id, stack: NameId, data: &mut Message) -> u64 {
        if let Some(known) = self.stacks.get(&(who, stack)) {
            return *known;
        }
        let number = self.stacks.len() as u64 + 1;
        self.stacks.insert((who, stack), number);
        let names = self.names;
        let functions = names.stack(stack).map(|frame| Of::Function(frame.function));
        let mut frames: Vec<Of> = functions.collect();
        if who != Id::None {
            frames.push(Of::Process(who));
        }
        let mut callstack = Message::new().number(field::IID, number);
        for of in frames.into_iter().rev() {
            let frame = self.frame(of, data);
            callstack = callstack.number(field::CALLSTACK_FRAME, frame);
        }
        *data = std::mem::take(data).message(field::CALLSTACKS, &callstack);
        number
    }

    fn sample(&mut self, record: &Record<'_>, looked: Looked, stack: NameId) -> io::Result<()> {
        let tid = self.thread(looked)?;
        let mut data = Message::new();
        let callstack = self.stack(record.subject, stack, &mut data);
        let sample = Message::new()
            .number(field::SAMPLE_PID, self.pid)
            .number(field::SAMPLE_TID, tid)
            .number(field::SAMPLE_CALLSTACK, callstack)
            .number(field::SAMPLE_MODE, USER);
        let mut packet = Message::new()
            .number(field::TIMESTAMP, record.time_ns)
            .message(field::PERF_SAMPLE, &sample);
        if !data.as_bytes().is_empty() {
            packet = packet.message(field::INTERNED_DATA, &data);
        }
        self.packet(packet, false)
    }
}

pub(super) fn write(
    recording: &Recording,
    sampling: &Sampling,
    part: &Part<'_>,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let mut trace = Trace {
        out,
        names: recording.names(),
        // Perfetto's numbers of processes have a sign.
        pid: recording.os_pid() & 0x7fff_ffff,
        threads: HashMap::new(),
        frames: HashMap::new(),
        stacks: HashMap::new(),
    };
    trace.begin(recording, sampling)?;
    part.scan(recording, |record, _| {
        if let Some((looked, stack)) = Looked::with_stack(&record.event) {
            trace.sample(record, looked, stack)?;
        }
        Ok::<(), Error>(())
    })?;
    match trace.stacks.is_empty() {
        true => Err(no_calls()),
        false => Ok(()),
    }
}
