//! Exports recordings for other programs, with a file for each format.
//!
//! The exports that consist of call paths ([`Target::Folded`], [`Target::Callgrind`], [`Target::Pprof`]) take memory
//! for those alone, and [`write_profile`] makes them of a profile, too. The exports that keep the order of time are
//! streamed. They go through a temporary file where the format wants each process apart.

mod callgrind;
mod cluster;
mod firefox;
mod jsonl;
mod perfetto;
mod perfetto_samples;
mod pprof;
mod proto;
mod sampled;
mod selection;
mod speedscope;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io::{self, BufWriter, Write};
use std::time::{Duration, UNIX_EPOCH};

use beamline_formats::profile::{Node, Profile, Type};
use beamline_formats::ring::{self, Group, Recording};
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::events::calls::profile_of;
use crate::events::part::Part;
use crate::events::{Span, Spans, Step};
use crate::flamegraph::{self, Shape, Width};
use crate::histogram::{By, Measure, Of, Request};

pub use cluster::write as write_cluster;
pub use selection::Selection;

/// The format of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Folded stacks with nanoseconds, a line each: what flame graph programs read.
    Folded,
    /// Speedscope's file format: calls in order of time, of each process.
    Speedscope,
    /// A trace of Perfetto: time slices on schedulers, and calls, collections and messages of processes.
    Perfetto,
    /// The processed profile format of the Firefox Profiler.
    Firefox,
    /// Callgrind's profile format: KCachegrind, callgrind_annotate.
    Callgrind,
    /// The compressed protocol buffer that pprof reads.
    Pprof,
    /// A log of HdrHistogram: a histogram of the call times of each function.
    Hdr,
    /// Every record as a line of JSON.
    Jsonl,
}

impl Target {
    /// All of them.
    pub const ALL: [Target; 8] = [
        Target::Folded,
        Target::Speedscope,
        Target::Perfetto,
        Target::Firefox,
        Target::Callgrind,
        Target::Pprof,
        Target::Hdr,
        Target::Jsonl,
    ];

    /// As the command line writes it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Target::Folded => "folded",
            Target::Speedscope => "speedscope",
            Target::Perfetto => "perfetto",
            Target::Firefox => "firefox",
            Target::Callgrind => "callgrind",
            Target::Pprof => "pprof",
            Target::Hdr => "hdr",
            Target::Jsonl => "jsonl",
        }
    }

    /// What it is, and for whom, in a line.
    #[must_use]
    pub fn about(self) -> &'static str {
        match self {
            Target::Folded => "Folded stacks, with nanoseconds: for flame graph programs",
            Target::Speedscope => "Calls of each process in order of time: for speedscope.app",
            Target::Perfetto => {
                "Time slices, calls, collections and messages in order of time: for ui.perfetto.dev"
            }
            Target::Firefox => "Calls of each process in order of time: for profiler.firefox.com",
            Target::Callgrind => {
                "Calls by caller and function: for KCachegrind and callgrind_annotate"
            }
            Target::Pprof => "Call paths: for pprof",
            Target::Hdr => "Histograms of call times: an interval log of HdrHistogram",
            Target::Jsonl => "Every record as a line of JSON: for jq and scripts",
        }
    }

    /// Whether it is no text.
    #[must_use]
    pub fn is_binary(self) -> bool {
        matches!(self, Target::Perfetto | Target::Pprof)
    }

    /// Groups of events without which there is nothing to write.
    fn needs(self) -> &'static [Group] {
        match self {
            Target::Perfetto | Target::Jsonl => &[],
            _ => &[Group::Calls, Group::Returns],
        }
    }

    /// Whether samples are enough for it.
    fn takes_samples(self) -> bool {
        matches!(
            self,
            Target::Folded
                | Target::Pprof
                | Target::Speedscope
                | Target::Firefox
                | Target::Perfetto
                | Target::Jsonl
        )
    }
}

/// Why a recording cannot be exported: one line.
#[derive(Debug)]
pub enum Error {
    /// The recording is not whole.
    Recording(ring::Error),
    /// It cannot be written.
    Io(io::Error),
    /// It does not have what is needed.
    Missing(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Recording(error) => write!(f, "{error}"),
            Error::Io(error) => write!(f, "{error}"),
            Error::Missing(text) => write!(f, "{text}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<ring::Error> for Error {
    fn from(error: ring::Error) -> Error {
        Error::Recording(error)
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Error {
        Error::Io(error)
    }
}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Error {
        Error::Io(error.into())
    }
}

/// Writes what is selected of a recording for a program.
///
/// # Errors
/// See [`Error`].
pub fn write(
    recording: &Recording,
    target: Target,
    selection: &Selection,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let lacks = match (recording.sampling(), target.takes_samples()) {
        (Some(_), true) => None,
        // Without calls nothing of it has anything to show.
        (Some(_), false) => recording.lacks(target.name(), &[Group::Calls, Group::Returns]),
        (None, _) => recording.lacks(target.name(), target.needs()),
    };
    if let Some(line) = lacks {
        return Err(Error::Missing(line));
    }
    selection.check(recording)?;
    let part = &selection.part(recording);
    match (recording.sampling(), target) {
        (Some(_), Target::Speedscope) => return sampled::speedscope(recording, part, out),
        (Some(sampling), Target::Perfetto) => {
            return perfetto_samples::write(recording, sampling, part, out);
        }
        _ => {}
    }
    match target {
        Target::Folded | Target::Callgrind | Target::Pprof => {
            let profile = profile_of(recording, part)?;
            if profile.nodes.is_empty() {
                return Err(no_calls());
            }
            let start = recording.unix_ns().saturating_add(part.begin_ns);
            paths(&profile, target, start, out)
        }
        Target::Speedscope => speedscope::write(recording, part, out),
        Target::Firefox => firefox::write(recording, part, out),
        Target::Perfetto => perfetto::write(recording, part, &perfetto::Seat::alone(), out),
        Target::Hdr => hdr(recording, part, out),
        Target::Jsonl => jsonl::write(recording, part, out),
    }
}

/// Writes what is selected of the call paths of a profile for a program.
///
/// # Errors
/// See [`Error`]; the profile has no call paths, or the program wants to know the order of time.
pub fn write_profile(
    profile: &Profile,
    target: Target,
    selection: &Selection,
    out: &mut dyn Write,
) -> Result<(), Error> {
    match target {
        Target::Folded | Target::Callgrind | Target::Pprof => {
            if profile.nodes.is_empty() {
                return Err(Error::Missing(
                    "it has no call paths: write the profile with beamline profile --output".into(),
                ));
            }
            let selected = selection.of_profile(profile)?;
            paths(&selected, target, 0, out)
        }
        _ => Err(Error::Missing(format!(
            "{} needs a recording, and this is a profile: make one with beamline record",
            target.name()
        ))),
    }
}

fn no_calls() -> Error {
    Error::Missing("it has no calls, so there is nothing to write".into())
}

fn paths(
    profile: &Profile,
    target: Target,
    start_unix_ns: u64,
    out: &mut dyn Write,
) -> Result<(), Error> {
    match target {
        Target::Callgrind => callgrind::write(profile, out)?,
        Target::Pprof => pprof::write(profile, start_unix_ns, out)?,
        _ => {
            let width = Width::of(profile.kind().unwrap_or(Type::CallTime));
            for line in flamegraph::folded(profile, &Shape::new(width)) {
                writeln!(out, "{line}")?;
            }
        }
    }
    Ok(())
}

fn hdr(recording: &Recording, part: &Part<'_>, out: &mut dyn Write) -> Result<(), Error> {
    let request = Request {
        of: Of::CallTime,
        by: By::Function,
        only: None,
    };
    let mut measure = Measure::new(recording, &request);
    let mut spans = Spans::new().with_calls(recording);
    let losses = part.scan(recording, |record, _| {
        spans.add(record, |span| {
            // The time of a call that was open when the part began is not known in whole.
            let is_cut = |start_ns| part.begin_ns > 0 && start_ns <= part.begin_ns;
            match span {
                Span::Call(Step::End(call)) if is_cut(call.start_ns) => {}
                span => _ = measure.add(record, span),
            }
            Ok::<(), Error>(())
        })
    })?;
    let all = measure.finish(&spans, losses).map_err(Error::Missing)?;
    let start = UNIX_EPOCH + Duration::from_nanos(recording.unix_ns());
    let end_ns = part.end_ns.or(recording.end_ns()).unwrap_or(0);
    let start = start + Duration::from_nanos(part.begin_ns);
    let length = Duration::from_nanos(end_ns.saturating_sub(part.begin_ns));
    all.write_log(out, start, length).map_err(Error::Missing)
}

/// A cost of call paths.
struct Cost {
    name: &'static str,
    /// As Callgrind's events are called.
    event: &'static str,
    unit: &'static str,
    of: fn(&Node) -> u64,
}

const CALLS: Cost = Cost {
    name: "calls",
    event: "Calls",
    unit: "count",
    of: |node| node.cost.calls,
};

const TIME: Cost = Cost {
    name: "time",
    event: "Nanoseconds",
    unit: "nanoseconds",
    of: |node| node.cost.time_ns,
};

const WORDS: Cost = Cost {
    name: "words",
    event: "Words",
    unit: "count",
    of: |node| node.cost.words,
};

const REDUCTIONS: Cost = Cost {
    name: "reductions",
    event: "Reductions",
    unit: "count",
    of: |node| node.reductions,
};

const DIRTY_WAIT: Cost = Cost {
    name: "dirty wait",
    event: "DirtyWaitNanoseconds",
    unit: "nanoseconds",
    of: |node| node.cost.dirty_wait_ns,
};

/// What call paths cost: what was measured, then what else is known, but for calls.
fn costs(profile: &Profile) -> Vec<Cost> {
    let (first, others) = match profile.kind() {
        Some(Type::CallCount) => (CALLS, vec![TIME, WORDS, REDUCTIONS, DIRTY_WAIT]),
        Some(Type::CallMemory) => (WORDS, vec![TIME, REDUCTIONS, DIRTY_WAIT]),
        _ => (TIME, vec![WORDS, REDUCTIONS, DIRTY_WAIT]),
    };
    let is_known = |cost: &Cost| profile.nodes.iter().any(|node| (cost.of)(node) > 0);
    let others = others.into_iter().filter(is_known);
    std::iter::once(first).chain(others).collect()
}

/// Calls that are deeper in the stack are part of the one at this depth: programs that show calls one in the other have
/// no room for more.
const DEEPEST: usize = 500;

/// Has `write` write through gzip. Exports repeat themselves, so the fastest compression takes most of the room away.
///
/// # Errors
/// Those of `write`, or that the end cannot be written.
pub fn compressed<E: From<io::Error>>(
    out: &mut dyn Write,
    write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<(), E> {
    // The encoder wants larger pieces than a line.
    let encoder = GzEncoder::new(out, Compression::fast());
    let mut out = BufWriter::with_capacity(1 << 16, encoder);
    write(&mut out)?;
    let encoder = out.into_inner().map_err(|error| error.into_error())?;
    encoder.finish()?.flush()?;
    Ok(())
}

/// A text as JSON has it, with its quotes.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
