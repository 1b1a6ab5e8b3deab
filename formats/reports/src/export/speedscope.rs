//! Writes Speedscope's file format, with an evented profile for each process.

use std::collections::HashMap;
use std::io::Write;

use beamline_formats::ring::{NameId, Recording};

use super::{Error, no_calls, quoted};
use crate::events::part::Part;
use crate::events::spool;

pub(super) fn write(
    recording: &Recording,
    part: &Part<'_>,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let names = recording.names();
    let (spool, last) = spool::calls(recording, part, super::DEEPEST)?;
    let processes = spool.processes();
    if processes.is_empty() {
        return Err(no_calls());
    }
    let command = recording.description().title();
    write!(
        out,
        "{{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\
         \"name\":{},\"exporter\":\"beamline {}\",\"activeProfileIndex\":0,\"profiles\":[",
        quoted(&command),
        env!("CARGO_PKG_VERSION"),
    )?;
    let mut frames: Vec<NameId> = Vec::new();
    let mut known: HashMap<NameId, usize> = HashMap::new();
    for (number, id) in processes.into_iter().enumerate() {
        let (mut first, mut comma) = (None, "");
        writeln!(out, "{}", if number == 0 { "" } else { "," })?;
        spool.read(id, |item| {
            if first.is_none() {
                first = Some(item.at_ns);
                write!(
                    out,
                    "{{\"type\":\"evented\",\"name\":{},\"unit\":\"nanoseconds\",\
                     \"startValue\":{},\"endValue\":{last},\"events\":[",
                    quoted(&spool::process_text(names, id)),
                    item.at_ns
                )?;
            }
            let frame = *known.entry(item.function).or_insert_with(|| {
                frames.push(item.function);
                frames.len() - 1
            });
            let kind = if item.is_end { 'C' } else { 'O' };
            write!(
                out,
                "{comma}{{\"type\":\"{kind}\",\"frame\":{frame},\"at\":{}}}",
                item.at_ns
            )?;
            comma = ",";
            Ok::<(), Error>(())
        })?;
        write!(out, "]}}")?;
    }
    write!(out, "],\n\"shared\":{{\"frames\":[")?;
    for (number, frame) in frames.into_iter().enumerate() {
        let (text, module) = spool::frame_text(names, frame);
        let comma = if number == 0 { "" } else { "," };
        write!(out, "{comma}\n{{\"name\":{}", quoted(&text))?;
        // Speedscope gives frames colours in the order of their files: those of native code are alike, and like no others.
        let file = match names.native(frame) {
            Some(native) => native.about(),
            None => &module,
        };
        if !file.is_empty() {
            write!(out, ",\"file\":{}", quoted(file))?;
        }
        write!(out, "}}")?;
    }
    writeln!(out, "]}}}}")?;
    Ok(())
}
