//! What the processes did in the parts of the path: by function and by process.

use beamline_formats::ring::{Error, Id, NameId, Record, Recording};
use rustc_hash::FxHashMap;

use super::Doing;
use super::walk::Piece;
use crate::events::calls::{Does, does_after};
use crate::events::{Stacks, scan};

/// Time on the path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spent {
    pub(super) run_ns: u64,
    pub(super) wait_ns: u64,
}

/// What was spent on the path.
pub(super) struct Costs {
    pub(super) processes: FxHashMap<Id, Spent>,
    pub(super) functions: FxHashMap<NameId, Spent>,
    /// Of each piece, the function in which its process was for most of the time.
    pub(super) within: Vec<NameId>,
}

/// A process of the path.
struct Line {
    /// Its pieces, by time, of which those before `next` are over.
    pieces: Vec<usize>,
    next: usize,
    since_ns: u64,
    does: Does,
}

struct Reader<'p> {
    pieces: &'p [Piece],
    lines: FxHashMap<Id, Line>,
    stacks: Stacks,
    /// Of each piece, the time in each function.
    within: Vec<FxHashMap<NameId, u64>>,
    costs: Costs,
}

/// Reads what was done in these pieces, which are ordered by time.
///
/// # Errors
/// When a block is damaged.
pub(super) fn read(recording: &Recording, pieces: &[Piece]) -> Result<Costs, Error> {
    let mut lines: FxHashMap<Id, Line> = FxHashMap::default();
    for (index, piece) in pieces.iter().enumerate() {
        let line = lines.entry(piece.who).or_insert_with(|| Line {
            pieces: Vec::new(),
            next: 0,
            since_ns: 0,
            does: Does::Runs,
        });
        line.pieces.push(index);
    }
    let mut reader = Reader {
        pieces,
        lines,
        stacks: Stacks::new(recording),
        within: vec![FxHashMap::default(); pieces.len()],
        costs: Costs {
            processes: FxHashMap::default(),
            functions: FxHashMap::default(),
            within: Vec::new(),
        },
    };
    scan(recording, |record| {
        reader.add(record);
        Ok::<(), Error>(())
    })?;
    let Reader {
        within, mut costs, ..
    } = reader;
    // Of functions with the same time, the one with the smaller name, so that two readings agree.
    let dearest = |all: FxHashMap<NameId, u64>| {
        let most = all
            .into_iter()
            .max_by_key(|(name, ns)| (*ns, std::cmp::Reverse(*name)));
        most.map_or(NameId::NONE, |(name, _)| name)
    };
    costs.within = within.into_iter().map(dearest).collect();
    Ok(costs)
}

impl Reader<'_> {
    fn add(&mut self, record: &Record<'_>) {
        let (id, now) = (record.subject, record.time_ns);
        if self.lines.contains_key(&id) {
            let top = self.stacks.top(id).unwrap_or(NameId::NONE);
            self.charge(id, now, top);
            if let (Some(line), Some(does)) = (self.lines.get_mut(&id), does_after(&record.event)) {
                line.does = does;
            }
        }
        self.stacks.add(record, |_| {});
    }

    /// The time of a process until now was in this function.
    fn charge(&mut self, id: Id, now: u64, top: NameId) {
        let Some(line) = self.lines.get_mut(&id) else {
            return;
        };
        let since = std::mem::replace(&mut line.since_ns, now);
        let pieces = self.pieces;
        let mine = &line.pieces[line.next..];
        line.next += mine.partition_point(|at| pieces[*at].end_ns <= since);
        for at in &line.pieces[line.next..] {
            let piece = &pieces[*at];
            if piece.start_ns >= now {
                break;
            }
            let passed = piece.end_ns.min(now) - piece.start_ns.max(since);
            *self.within[*at].entry(top).or_default() += passed;
            let runs =
                piece.doing == Doing::Runs && matches!(line.does, Does::Runs | Does::RunsDirty);
            let costs = &mut self.costs;
            let of_function = costs.functions.entry(top).or_default();
            let of_process = costs.processes.entry(id).or_default();
            for spent in [of_function, of_process] {
                match runs {
                    true => spent.run_ns += passed,
                    false => spent.wait_ns += passed,
                }
            }
        }
    }
}
