//! Writes every record as a line of JSON. The first line describes the recording, and the last says what is missing.
//!
//! A line is an array, and the first line names the columns of each event. With the names in every line, a recording of
//! calls would take twice the room. Each line can be read by itself.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use beamline_formats::profile::Native;
use beamline_formats::ring::{
    Description, Event, Id, Kind, NameId, Names, Record, Recording, Value,
};
use serde::Serialize;

use super::{Error, quoted};
use crate::events::part::Part;

/// The columns of all events. Those of an event's own follow.
const COLUMNS: [&str; 4] = ["event", "ns", "scheduler", "who"];

#[derive(Serialize)]
struct First<'a> {
    recording: &'a Description,
    start_unix_ns: u64,
    os_pid: u64,
    columns: BTreeMap<&'static str, Vec<&'static str>>,
    /// The functions that are native code, each with its kind.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    natives: BTreeMap<String, Native>,
    /// The sockets, each by its kind and the address that tells it from others.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    sockets: BTreeMap<String, String>,
}

/// Texts as JSON has them, each made once.
struct Texts<'r> {
    names: &'r Names,
    of_names: HashMap<NameId, String>,
    of_ids: HashMap<Id, String>,
}

impl Texts<'_> {
    /// A function or an atom, as Erlang writes it.
    fn name(&mut self, name: NameId) -> &str {
        let names = self.names;
        self.of_names.entry(name).or_insert_with(|| match name {
            NameId::NONE => "null".to_owned(),
            name => quoted(&names.text(name)),
        })
    }

    fn id(&mut self, id: Id) -> &str {
        match id {
            Id::None => "null",
            Id::Name(name) => self.name(name),
            id => self
                .of_ids
                .entry(id)
                .or_insert_with(|| quoted(&id.to_string())),
        }
    }

    fn line(
        &mut self,
        recording: &Recording,
        record: &Record<'_>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        match record.event {
            Event::Unknown { kind, .. } => write!(out, "[\"kind {kind}\"")?,
            known => write!(out, "[\"{}\"", known.kind().map_or("", Kind::name))?,
        }
        write!(out, ",{},", record.time_ns)?;
        match recording.scheduler(record.segment) {
            Some(scheduler) => write!(out, "{scheduler}")?,
            None => write!(out, "null")?,
        }
        write!(out, ",{}", self.id(record.subject))?;
        let values = record.event.values();
        let is_known = |(_, value): &(_, Value<'_>)| {
            !matches!(value, Value::Id(Id::None) | Value::Name(NameId::NONE))
        };
        let length = values.iter().rposition(is_known).map_or(0, |last| last + 1);
        for (_, value) in &values[..length] {
            write!(out, ",")?;
            match value {
                Value::Number(number) => write!(out, "{number}")?,
                Value::Id(id) => out.write_all(self.id(*id).as_bytes())?,
                Value::Name(name) => out.write_all(self.name(*name).as_bytes())?,
                Value::Label(label) => write!(out, "\"{label}\"")?,
                Value::Text(text) => serde_json::to_writer(&mut *out, text)?,
            }
        }
        writeln!(out, "]")
    }
}

fn natives(names: &Names) -> BTreeMap<String, Native> {
    let natives = names.natives();
    natives
        .map(|(function, native)| (names.text(function), native))
        .collect()
}

fn sockets(names: &Names) -> BTreeMap<String, String> {
    let sockets = names.sockets();
    sockets
        .map(|id| (id.to_string(), names.socket_text(id)))
        .collect()
}

/// The columns of each event.
fn columns() -> BTreeMap<&'static str, Vec<&'static str>> {
    let columns = |kind: &Kind| {
        let own = kind.fields().iter().map(|(name, _)| *name);
        (kind.name(), COLUMNS.into_iter().chain(own).collect())
    };
    Kind::ALL.iter().map(columns).collect()
}

pub(super) fn write(
    recording: &Recording,
    part: &Part<'_>,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let first = First {
        recording: recording.description(),
        start_unix_ns: recording.unix_ns(),
        os_pid: recording.os_pid(),
        columns: columns(),
        natives: natives(recording.names()),
        sockets: sockets(recording.names()),
    };
    serde_json::to_writer(&mut *out, &first)?;
    writeln!(out)?;
    let mut texts = Texts {
        names: recording.names(),
        of_names: HashMap::new(),
        of_ids: HashMap::new(),
    };
    let losses = part.scan(recording, |record, is_made| {
        if !is_made {
            texts.line(recording, record, out)?;
        }
        Ok::<(), Error>(())
    })?;
    serde_json::to_writer(&mut *out, &losses)?;
    writeln!(out)?;
    Ok(())
}
