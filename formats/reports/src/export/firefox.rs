//! Writes the processed profile format of the Firefox Profiler, version 48. Each process is a thread there, and its own
//! time is weighted samples. Newer profilers convert the version to theirs.

use std::collections::HashMap;
use std::io::{self, Write};

use beamline_formats::paths::{Paths, ROOT};
use beamline_formats::profile::Native;
use beamline_formats::ring::{Id, NameId, Names, Recording, Sampling};
use serde_json::json;

use super::sampled::{self, Process};
use super::{Error, no_calls, quoted};
use crate::events::part::Part;
use crate::events::spool::{self, Calls, Item, WAITS, WAITS_DIRTY};

/// The version of the format, and that of Gecko's own which it goes with.
const VERSION: u32 = 48;
const GECKO_VERSION: u32 = 27;

/// Categories of frames, by their index.
const CATEGORIES: [(&str, &str); 6] = [
    ("Erlang", "blue"),
    ("Idle", "transparent"),
    (Native::Ordinary.about(), "yellow"),
    (Native::DirtyCpu.about(), "orange"),
    (Native::DirtyIo.about(), "lightblue"),
    ("Waits for a dirty scheduler", "grey"),
];

/// The category of a frame.
fn category(names: &Names, function: NameId) -> usize {
    match (function, names.native(function)) {
        (WAITS, _) => 1,
        (WAITS_DIRTY, _) => 5,
        (_, None) => 0,
        (_, Some(Native::Ordinary)) => 2,
        (_, Some(Native::DirtyCpu)) => 3,
        (_, Some(Native::DirtyIo)) => 4,
    }
}

/// The call paths of a process, and its functions.
struct Stacks {
    /// Frame and stack below it.
    rows: Vec<(usize, Option<u32>)>,
    frames: Vec<NameId>,
}

impl Stacks {
    fn of(paths: &Paths<NameId>) -> Stacks {
        let mut frames = Vec::new();
        let mut known: HashMap<NameId, usize> = HashMap::new();
        let rows = paths.iter().map(|(below, function)| {
            let frame = *known.entry(function).or_insert_with(|| {
                frames.push(function);
                frames.len() - 1
            });
            (frame, below)
        });
        let rows = rows.collect();
        Stacks { rows, frames }
    }
}

/// A time with one stack.
struct Span {
    at_ns: u64,
    length_ns: u64,
    stack: Option<u32>,
}

/// What a thread of the profile is made of: hands over its spans.
trait Spans {
    fn each(
        &self,
        paths: &mut Paths<NameId>,
        each: &mut dyn FnMut(&Span) -> io::Result<()>,
    ) -> io::Result<()>;
}

/// A process whose calls are known.
struct Called<'s> {
    spool: &'s Calls,
    id: Id,
}

impl Spans for Called<'_> {
    fn each(
        &self,
        paths: &mut Paths<NameId>,
        each: &mut dyn FnMut(&Span) -> io::Result<()>,
    ) -> io::Result<()> {
        spans(self.spool, self.id, paths, each)
    }
}

/// A process that was sampled.
struct Seen<'s> {
    names: &'s Names,
    process: &'s Process,
    period_ns: u64,
}

impl Spans for Seen<'_> {
    fn each(
        &self,
        paths: &mut Paths<NameId>,
        each: &mut dyn FnMut(&Span) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut known: HashMap<NameId, u32> = HashMap::new();
        for (at_ns, name) in &self.process.1 {
            let stack = *known.entry(*name).or_insert_with(|| {
                let frames = self.names.stack(*name);
                let mut functions: Vec<NameId> = frames.map(|frame| frame.function).collect();
                functions.reverse();
                let call = |below, function: &NameId| paths.call(below, *function);
                functions.iter().fold(ROOT, call)
            });
            each(&Span {
                at_ns: *at_ns,
                length_ns: self.period_ns,
                stack: (stack != ROOT).then_some(stack),
            })?;
        }
        Ok(())
    }
}

/// Hands over the spans of a process.
fn spans(
    spool: &Calls,
    id: Id,
    paths: &mut Paths<NameId>,
    each: &mut dyn FnMut(&Span) -> io::Result<()>,
) -> io::Result<()> {
    let mut below: Vec<u32> = Vec::new();
    let (mut stack, mut since) = (ROOT, None);
    spool.read(id, |item: Item| {
        let at_ns = since.unwrap_or(item.at_ns);
        let length_ns = item.at_ns.saturating_sub(at_ns);
        if length_ns > 0 {
            each(&Span {
                at_ns,
                length_ns,
                stack: (stack != ROOT).then_some(stack),
            })?;
        }
        since = Some(item.at_ns);
        if item.is_end {
            stack = below.pop().unwrap_or(ROOT);
        } else {
            below.push(stack);
            stack = paths.call(stack, item.function);
        }
        Ok(())
    })
}

/// Nanoseconds as milliseconds.
fn ms(ns: u64) -> String {
    format!("{}.{:06}", ns / 1_000_000, ns % 1_000_000)
}

/// A column: its values with commas between them.
fn column<T>(
    out: &mut dyn Write,
    name: &str,
    values: impl IntoIterator<Item = T>,
    text: impl Fn(T) -> String,
) -> io::Result<()> {
    write!(out, "\"{name}\":[")?;
    for (number, value) in values.into_iter().enumerate() {
        let comma = if number == 0 { "" } else { "," };
        write!(out, "{comma}{}", text(value))?;
    }
    write!(out, "],")
}

/// A column with the same value in each row.
fn same(out: &mut dyn Write, name: &str, length: usize, value: &str) -> io::Result<()> {
    column(out, name, 0..length, |_| value.to_owned())
}

fn samples(out: &mut dyn Write, of: &dyn Spans, paths: &mut Paths<NameId>) -> io::Result<()> {
    write!(out, "\"samples\":{{")?;
    let mut length = 0;
    for name in ["stack", "time", "weight"] {
        write!(out, "\"{name}\":[")?;
        length = 0;
        of.each(paths, &mut |span| {
            let comma = if length == 0 { "" } else { "," };
            length += 1;
            match (name, span.stack) {
                ("stack", Some(stack)) => write!(out, "{comma}{stack}"),
                ("stack", None) => write!(out, "{comma}null"),
                ("time", _) => write!(out, "{comma}{}", ms(span.at_ns)),
                _ => write!(out, "{comma}{}", ms(span.length_ns)),
            }
        })?;
        write!(out, "],")?;
    }
    write!(out, "\"weightType\":\"tracing-ms\",\"length\":{length}}},")
}

fn tables(out: &mut dyn Write, recording: &Recording, stacks: &Stacks) -> io::Result<()> {
    let names = recording.names();
    let frames = stacks.frames.len();
    let category = |frame: usize| category(names, stacks.frames[frame]).to_string();
    let length = stacks.rows.len();
    write!(out, "\"stackTable\":{{")?;
    column(out, "frame", &stacks.rows, |row| row.0.to_string())?;
    column(out, "prefix", &stacks.rows, |row| {
        row.1.map_or("null".to_owned(), |below| below.to_string())
    })?;
    column(out, "category", &stacks.rows, |row| category(row.0))?;
    same(out, "subcategory", length, "0")?;
    write!(out, "\"length\":{length}}},\"frameTable\":{{")?;
    same(out, "address", frames, "-1")?;
    same(out, "inlineDepth", frames, "0")?;
    column(out, "category", 0..frames, category)?;
    same(out, "subcategory", frames, "0")?;
    column(out, "func", 0..frames, |frame| frame.to_string())?;
    for name in [
        "nativeSymbol",
        "innerWindowID",
        "implementation",
        "line",
        "column",
    ] {
        same(out, name, frames, "null")?;
    }
    write!(out, "\"length\":{frames}}},\"funcTable\":{{")?;
    // Texts: a function's name, then its module.
    column(out, "name", 0..frames, |frame| (2 * frame).to_string())?;
    same(out, "isJS", frames, "false")?;
    same(out, "relevantForJS", frames, "false")?;
    same(out, "resource", frames, "-1")?;
    column(out, "fileName", 0..frames, |frame| {
        (2 * frame + 1).to_string()
    })?;
    same(out, "lineNumber", frames, "null")?;
    same(out, "columnNumber", frames, "null")?;
    write!(out, "\"length\":{frames}}},\"stringArray\":[")?;
    for (number, frame) in stacks.frames.iter().enumerate() {
        let (text, module) = spool::frame_text(names, *frame);
        let comma = if number == 0 { "" } else { "," };
        write!(out, "{comma}{},{}", quoted(&text), quoted(&module))?;
    }
    write!(
        out,
        "],\"resourceTable\":{{\"lib\":[],\"name\":[],\"host\":[],\"type\":[],\"length\":0}},\
         \"nativeSymbols\":{{\"libIndex\":[],\"address\":[],\"name\":[],\"functionSize\":[],\"length\":0}},\
         \"markers\":{{\"data\":[],\"name\":[],\"startTime\":[],\"endTime\":[],\"phase\":[],\
         \"category\":[],\"length\":0}}"
    )
}

fn meta(recording: &Recording, last_ns: u64) -> serde_json::Value {
    let description = recording.description();
    let categories = CATEGORIES
        .map(|(name, color)| json!({"name": name, "color": color, "subcategories": ["Other"]}));
    json!({
        "interval": recording.sampling().map_or(0.001, |of| of.period_ns() as f64 / 1e6),
        "startTime": recording.unix_ns() / 1_000_000,
        "profilingEndTime": last_ns / 1_000_000 + 1,
        "processType": 0,
        "product": description.title(),
        "importedFrom": "beamline",
        "oscpu": description.host.processor,
        "platform": description.host.system,
        "stackwalk": 0,
        "debug": false,
        "categories": categories,
        "version": GECKO_VERSION,
        "preprocessedProfileVersion": VERSION,
        "symbolicated": true,
        "usesOnlyOneStackType": true,
        "doesNotUseFrameImplementation": true,
        "sourceCodeIsNotOnSearchfox": true,
        "markerSchema": [],
    })
}

/// The threads of a recording, and when the last of them ends.
fn write_threads<'s>(
    recording: &Recording,
    last_ns: u64,
    threads: impl Iterator<Item = (Id, Box<dyn Spans + 's>)>,
    out: &mut dyn Write,
) -> io::Result<()> {
    write!(
        out,
        "{{\"meta\":{},\"libs\":[],\"pages\":[],\"counters\":[],\"threads\":[",
        meta(recording, last_ns)
    )?;
    for (number, (id, spans)) in threads.enumerate() {
        let comma = if number == 0 { "" } else { "," };
        let name = quoted(&spool::process_text(recording.names(), id));
        write!(
            out,
            "{comma}\n{{\"processType\":\"default\",\"processStartupTime\":0,\"processShutdownTime\":null,\
             \"registerTime\":0,\"unregisterTime\":null,\"pausedRanges\":[],\"name\":{name},\
             \"isMainThread\":{},\"processName\":{},\"pid\":\"{}\",\"tid\":{},",
            number == 0,
            quoted(&recording.description().title()),
            recording.os_pid(),
            number + 1,
        )?;
        let mut paths = Paths::default();
        samples(out, &*spans, &mut paths)?;
        tables(out, recording, &Stacks::of(&paths))?;
        write!(out, "}}")?;
    }
    writeln!(out, "]}}")
}

/// Each process that was sampled is a thread.
fn write_seen(
    recording: &Recording,
    sampling: &Sampling,
    part: &Part<'_>,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let processes = sampled::processes(recording, part)?;
    let names = recording.names();
    let period_ns = sampling.period_ns();
    let times = processes.iter().flat_map(|(_, samples)| samples.last());
    let last = times.map(|(at_ns, _)| at_ns + period_ns).max();
    let threads = processes.iter().map(|process| {
        let seen = Seen {
            names,
            process,
            period_ns,
        };
        (process.0, Box::new(seen) as Box<dyn Spans + '_>)
    });
    write_threads(recording, last.unwrap_or(0), threads, out)?;
    Ok(())
}

pub(super) fn write(
    recording: &Recording,
    part: &Part<'_>,
    out: &mut dyn Write,
) -> Result<(), Error> {
    if let Some(sampling) = recording.sampling() {
        return write_seen(recording, sampling, part, out);
    }
    let (spool, last) = spool::calls(recording, part, usize::MAX)?;
    let processes = spool.processes();
    if processes.is_empty() {
        return Err(no_calls());
    }
    let spool = &spool;
    let threads = processes.into_iter().map(|id| {
        let called = Called { spool, id };
        (id, Box::new(called) as Box<dyn Spans + '_>)
    });
    write_threads(recording, last, threads, out)?;
    Ok(())
}
