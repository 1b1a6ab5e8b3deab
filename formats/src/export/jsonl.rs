//! Every record as a line of JSON: the first line tells of the recording, the last of what is missing.

use std::io::Write;

use serde::Serialize;
use serde_json::{Map, Value};

use super::Error;
use crate::ring::{self, Description, Id, NameId, Names, Record, Recording};

#[derive(Serialize)]
struct First<'a> {
    recording: &'a Description,
    start_unix_ns: u64,
    os_pid: u64,
}

/// A function or an atom, as Erlang writes it.
fn name(names: &Names, name: NameId) -> Value {
    if name == NameId::NONE {
        Value::Null
    } else if names.function(name).is_some() {
        names.function_text(name).into()
    } else {
        crate::name::atom(names.atom(name)).into()
    }
}

fn who(names: &Names, id: Id) -> Value {
    match id {
        Id::None => Value::Null,
        Id::Name(atom) => name(names, atom),
        id => id.to_string().into(),
    }
}

fn line(recording: &Recording, record: &Record<'_>) -> Value {
    let names = recording.names();
    let mut line = Map::new();
    line.insert("ns".into(), record.time_ns.into());
    let scheduler = recording.scheduler(record.segment);
    line.insert("scheduler".into(), scheduler.into());
    line.insert("who".into(), who(names, record.subject));
    let event = match record.event {
        ring::Event::Unknown { kind, .. } => format!("kind {kind}"),
        known => known
            .kind()
            .map_or_else(String::new, |kind| kind.name().to_owned()),
    };
    line.insert("event".into(), event.into());
    for (field, value) in record.event.values() {
        let value = match value {
            ring::Value::Number(number) => number.into(),
            ring::Value::Id(id) => who(names, id),
            ring::Value::Name(of) => name(names, of),
            ring::Value::Text(text) => text.into(),
        };
        line.insert(field.into(), value);
    }
    Value::Object(line)
}

pub(super) fn write(recording: &Recording, out: &mut dyn Write) -> Result<(), Error> {
    let first = First {
        recording: recording.description(),
        start_unix_ns: recording.unix_ns(),
        os_pid: recording.os_pid(),
    };
    serde_json::to_writer(&mut *out, &first)?;
    let losses = recording.scan(|record| {
        writeln!(out)?;
        serde_json::to_writer(&mut *out, &line(recording, record))?;
        Ok::<(), Error>(())
    })?;
    writeln!(out)?;
    serde_json::to_writer(&mut *out, &losses)?;
    writeln!(out)?;
    Ok(())
}
