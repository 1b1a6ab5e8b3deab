//! Writes the protocol buffer of pprof, `perftools.profiles.Profile`, compressed with gzip. It has a sample for each
//! call path.

use std::collections::HashMap;
use std::io::{self, Write};

use beamline_formats::name;
use beamline_formats::profile::{Native, Profile};
use flate2::Compression;
use flate2::write::GzEncoder;

use super::proto::Message;
use super::{CALLS, costs};

/// Fields of `Profile`.
mod profile {
    pub(super) const SAMPLE_TYPE: u64 = 1;
    pub(super) const SAMPLE: u64 = 2;
    pub(super) const MAPPING: u64 = 3;
    pub(super) const LOCATION: u64 = 4;
    pub(super) const FUNCTION: u64 = 5;
    pub(super) const STRING_TABLE: u64 = 6;
    pub(super) const TIME_NANOS: u64 = 9;
    pub(super) const DURATION_NANOS: u64 = 10;
    pub(super) const PERIOD_TYPE: u64 = 11;
    pub(super) const PERIOD: u64 = 12;
    pub(super) const COMMENT: u64 = 13;
    pub(super) const DEFAULT_SAMPLE_TYPE: u64 = 14;
}

/// The texts, each once; the first is empty.
struct Texts {
    all: Vec<String>,
    known: HashMap<String, u64>,
}

impl Texts {
    fn new() -> Texts {
        let mut texts = Texts {
            all: Vec::new(),
            known: HashMap::new(),
        };
        texts.of("");
        texts
    }

    fn of(&mut self, text: &str) -> u64 {
        if let Some(known) = self.known.get(text) {
            return *known;
        }
        let number = self.all.len() as u64;
        self.all.push(text.to_owned());
        self.known.insert(text.to_owned(), number);
        number
    }

    /// `ValueType`.
    fn value_type(&mut self, kind: &str, unit: &str) -> Message {
        let (kind, unit) = (self.of(kind), self.of(unit));
        Message::new().number(1, kind).number(2, unit)
    }
}

/// A field of the whole message: they may be written one by one.
fn put(out: &mut impl Write, message: Message) -> io::Result<()> {
    out.write_all(message.as_bytes())
}

pub(super) fn write(profile: &Profile, start_unix_ns: u64, out: &mut dyn Write) -> io::Result<()> {
    let mut out = GzEncoder::new(out, Compression::default());
    let mut texts = Texts::new();
    let mut costs = costs(profile);
    // What was measured is shown first.
    let (kind, unit) = (costs[0].name, costs[0].unit);
    if kind != CALLS.name && profile.has_calls() {
        costs.insert(0, CALLS);
    }
    for cost in &costs {
        let value_type = texts.value_type(cost.name, cost.unit);
        put(
            &mut out,
            Message::new().message(profile::SAMPLE_TYPE, &value_type),
        )?;
    }
    for node in &profile.nodes {
        // From the newest call to the oldest.
        let mut path = vec![u64::from(node.function) + 1];
        let mut above = node.parent;
        while let Some(index) = above {
            let node = &profile.nodes[index as usize];
            path.push(u64::from(node.function) + 1);
            above = node.parent;
        }
        let process = &profile.processes[node.process as usize];
        let process = format!("{} {}", process.pid, process.name);
        let label = Message::new()
            .number(1, texts.of("process"))
            .number(2, texts.of(process.trim_end()));
        let values = costs.iter().map(|cost| (cost.of)(node));
        let mut sample = Message::new()
            .numbers(1, path)
            .numbers(2, values)
            .message(3, &label);
        let of = &profile.functions[node.function as usize];
        if let Some(native) = profile.native(of) {
            let label = Message::new()
                .number(1, texts.of("native"))
                .number(2, texts.of(native.name()));
            sample = sample.message(3, &label);
        }
        put(&mut out, Message::new().message(profile::SAMPLE, &sample))?;
    }
    put_mappings(&mut texts, &mut out)?;
    put_functions(profile, &mut texts, &mut out)?;
    let run_ns = profile.runs.iter().map(|run| run.run_ns).max().unwrap_or(0);
    let period = texts.value_type(kind, unit);
    let mut last = Message::new()
        .number(profile::TIME_NANOS, start_unix_ns)
        .number(profile::DURATION_NANOS, run_ns)
        .message(profile::PERIOD_TYPE, &period)
        .number(profile::PERIOD, 1)
        .number(profile::DEFAULT_SAMPLE_TYPE, texts.of(kind));
    for run in &profile.runs {
        let comment = texts.of(&run.command.join(" "));
        last = last.number(profile::COMMENT, comment);
    }
    put(&mut out, last)?;
    for text in &texts.all {
        put(&mut out, Message::new().text(profile::STRING_TABLE, text))?;
    }
    out.finish()?.flush()
}

/// A mapping for what is Erlang, and one for each kind of native code. Their names are final: pprof looks for no file.
fn put_mappings(texts: &mut Texts, out: &mut impl Write) -> io::Result<()> {
    let natives = Native::ALL.iter().copied().map(Some);
    for native in std::iter::once(None).chain(natives) {
        let mapping = Message::new()
            .number(1, mapping(native))
            .number(5, texts.of(native.map_or("Erlang", Native::about)))
            .number(7, 1);
        put(out, Message::new().message(profile::MAPPING, &mapping))?;
    }
    Ok(())
}

fn mapping(native: Option<Native>) -> u64 {
    1 + native.map_or(0, Native::number)
}

/// A location for each function: more is not known of where calls were made.
fn put_functions(profile: &Profile, texts: &mut Texts, out: &mut impl Write) -> io::Result<()> {
    for (index, function) in profile.functions.iter().enumerate() {
        let id = index as u64 + 1;
        let line = Message::new().number(1, id);
        let location = Message::new()
            .number(1, id)
            .number(2, mapping(profile.native(function)))
            .message(4, &line);
        put(out, Message::new().message(profile::LOCATION, &location))?;
        let mfa = texts.of(&name::mfa(&function.module, &function.name, function.arity));
        let function = Message::new()
            .number(1, id)
            .number(2, mfa)
            .number(3, mfa)
            .number(4, texts.of(&function.module));
        put(out, Message::new().message(profile::FUNCTION, &function))?;
    }
    Ok(())
}
