//! Exports of samples to programs that know samples.

use std::collections::HashMap;
use std::io::Write;

use beamline_formats::ring::{Event, Id, NameId, Recording, Sampling};

use super::{Error, no_calls, quoted};
use crate::events::part::Part;
use crate::events::spool;

/// A process and its samples: when, and the stack.
pub(super) type Process = (Id, Vec<(u64, NameId)>);

/// The samples of each process, the one with the most first.
pub(super) fn processes(recording: &Recording, part: &Part<'_>) -> Result<Vec<Process>, Error> {
    let mut of: HashMap<Id, Vec<(u64, NameId)>> = HashMap::new();
    part.scan(recording, |record, _| {
        if let Event::Sampled { stack, .. } = record.event {
            let samples = of.entry(record.subject).or_default();
            samples.push((record.time_ns, stack));
        }
        Ok::<(), Error>(())
    })?;
    if of.is_empty() {
        return Err(no_calls());
    }
    let mut of: Vec<Process> = of.into_iter().collect();
    of.sort_unstable_by_key(|(id, samples)| (std::cmp::Reverse(samples.len()), *id));
    Ok(of)
}

/// Writes Speedscope's file format, with a sampled profile for each process.
pub(super) fn speedscope(
    recording: &Recording,
    part: &Part<'_>,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let of = processes(recording, part)?;
    let mut frames = Frames::default();
    let period = recording.sampling().map_or(0, Sampling::period_ns);
    let profiles = of.iter().map(|(id, stacks)| {
        let samples: Vec<Vec<usize>> = stacks
            .iter()
            .map(|(_, stack)| frames.of(recording, *stack))
            .collect();
        serde_json::json!({
            "type": "sampled",
            "name": spool::process_text(recording.names(), *id),
            "unit": "nanoseconds",
            "startValue": 0,
            "endValue": period * stacks.len() as u64,
            "samples": samples,
            "weights": vec![period; stacks.len()],
        })
    });
    let profiles: Vec<serde_json::Value> = profiles.collect();
    let command = recording.description().title();
    write!(
        out,
        "{{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\
         \"name\":{},\"exporter\":\"beamline {}\",\"activeProfileIndex\":0,\"profiles\":{},\n\
         \"shared\":{{\"frames\":{}}}}}",
        quoted(&command),
        env!("CARGO_PKG_VERSION"),
        serde_json::Value::from(profiles),
        serde_json::Value::from(frames.texts),
    )?;
    writeln!(out)?;
    Ok(())
}

/// The functions of stacks, each once.
#[derive(Default)]
struct Frames {
    texts: Vec<serde_json::Value>,
    known: HashMap<NameId, usize>,
}

impl Frames {
    /// The functions of a stack by number, the oldest first.
    fn of(&mut self, recording: &Recording, stack: NameId) -> Vec<usize> {
        let names = recording.names();
        let numbers = names.stack(stack).map(|frame| {
            *self.known.entry(frame.function).or_insert_with(|| {
                let (text, module) = spool::frame_text(names, frame.function);
                self.texts
                    .push(serde_json::json!({ "name": text, "file": module }));
                self.texts.len() - 1
            })
        });
        let mut numbers: Vec<usize> = numbers.collect();
        numbers.reverse();
        numbers
    }
}
