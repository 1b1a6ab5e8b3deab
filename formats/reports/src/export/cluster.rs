//! Exports the recordings of several nodes as one.

use std::collections::HashMap;
use std::io::Write;

use super::perfetto::{self, Seat};
use super::{Error, Selection, Target, paths};
use crate::cluster::Cluster;
use crate::events::calls::profile_of;

/// Flows between nodes are from here on; those of one node are below.
const FLOWS: u64 = 1 << 62;

/// Writes what is selected of the recordings of several nodes for a program. Times count from the begin of the recording that began
/// first, by the clock of the first node.
///
/// # Errors
/// See [`Error`]; a recording lacks what the program needs.
pub fn write(
    cluster: &Cluster,
    target: Target,
    selection: &Selection,
    out: &mut dyn Write,
) -> Result<(), Error> {
    for member in cluster.members() {
        let recording = &member.recording;
        let lacks = match recording.sampling() {
            Some(_) => Some("samples are exported alone: name this file".to_owned()),
            None => recording.lacks(target.name(), target.needs()),
        };
        if let Some(line) = lacks {
            return Err(Error::Missing(format!("{}: {line}", member.file.display())));
        }
    }
    match target {
        Target::Folded | Target::Callgrind | Target::Pprof => {
            of_paths(cluster, target, selection, out)
        }
        // A process of the trace is a node, as long as all of them are shown.
        Target::Perfetto if selection.only.is_none() => trace(cluster, selection, out),
        _ => super::write(&cluster.joined()?, target, selection, out),
    }
}

/// What is added to the times of each node, so that none is negative.
fn offsets(cluster: &Cluster) -> Vec<i64> {
    let clocks = cluster.clocks().iter();
    let first = clocks.clone().map(|clock| clock.offset_ns).min();
    let first = first.unwrap_or(0);
    clocks
        .map(|clock| clock.offset_ns.saturating_sub(first))
        .collect()
}

/// The times that are selected, by the clock of a node; none where it has nothing of them.
fn times(selection: &Selection, offset_ns: i64) -> Option<Selection> {
    let offset = offset_ns.unsigned_abs();
    if selection.end_ns.is_some_and(|end| end <= offset) {
        return None;
    }
    Some(Selection {
        only: None,
        begin_ns: selection.begin_ns.saturating_sub(offset),
        end_ns: selection.end_ns.map(|end| end - offset),
    })
}

fn of_paths(
    cluster: &Cluster,
    target: Target,
    selection: &Selection,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let mut profiles = Vec::new();
    for (member, offset) in cluster.members().iter().zip(offsets(cluster)) {
        let part = times(selection, offset).unwrap_or_else(|| Selection {
            end_ns: Some(0),
            ..Selection::default()
        });
        let recording = &member.recording;
        profiles.push(profile_of(recording, &part.part(recording))?);
    }
    let apart = cluster.apart(profiles).map_err(Error::Missing)?;
    let only = Selection {
        only: selection.only.clone(),
        ..Selection::default()
    };
    let start = cluster.members().first();
    let start = start.map_or(0, |member| member.recording.unix_ns());
    paths(&*only.of_profile(&apart)?, target, start, out)
}

/// A trace of Perfetto: each node is a process of it.
fn trace(cluster: &Cluster, selection: &Selection, out: &mut dyn Write) -> Result<(), Error> {
    let mut flows: Vec<HashMap<(u64, u64, bool), u64>> = Vec::new();
    flows.resize_with(cluster.members().len(), HashMap::new);
    for (flow, pair) in (FLOWS..).zip(cluster.pairs()) {
        let (left, came) = (pair.left, pair.came);
        flows[left.member].insert((left.connection, pair.number, true), flow);
        flows[came.member].insert((came.connection, pair.number, false), flow);
    }
    let nodes = cluster.members().iter().zip(offsets(cluster)).zip(flows);
    for (number, ((member, offset_ns), flows)) in (0..).zip(nodes) {
        let Some(part) = times(selection, offset_ns) else {
            continue;
        };
        let seat = Seat {
            number,
            name: Some(&member.name),
            offset_ns,
            flows,
        };
        let recording = &member.recording;
        perfetto::write(recording, &part.part(recording), &seat, out)?;
    }
    Ok(())
}
