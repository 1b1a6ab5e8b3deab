//! What each call path cost in each part of the time, so that the page can show a stretch of it.
//!
//! A recording may have more paths than a page has room for. There is a limit to the cells, which are a path in a part
//! of the time in which it cost something: when there are more, two parts become one.

use beamline_formats::ring::{Error, Record};
use rustc_hash::FxHashMap;

use super::clock::{Clock, PARTS};
use crate::events::batch::Batch;
use crate::events::calls::{Callers, Costs};
use crate::events::pass::Sink;

/// After this many looks at paths, two parts become one: a recording with very many paths would otherwise take longer
/// for this than for all else.
const LOOKS: usize = 1 << 25;

/// All parts are one.
const SHIFT_MAX: u32 = PARTS.next_power_of_two().trailing_zeros();

/// A process, the number of one of its paths, and a part of the time.
type Cell = (usize, usize, usize);

/// Follows the call paths of a recording, and keeps what each part of the time has added to them.
pub(super) struct InParts {
    callers: Callers,
    clock: Clock,
    most: usize,
    /// The part that is followed, and when it began and ends.
    now: usize,
    begin_ns: u64,
    end_ns: u64,
    /// Of each process the costs of its paths that are in cells.
    kept: Vec<Vec<Costs>>,
    cells: FxHashMap<Cell, Costs>,
    /// How often two parts became one.
    shift: u32,
    looks: usize,
}

fn add(sum: &mut Costs, more: &Costs) {
    sum.calls = sum.calls.saturating_add(more.calls);
    sum.time_ns = sum.time_ns.saturating_add(more.time_ns);
    sum.wait_ns = sum.wait_ns.saturating_add(more.wait_ns);
    sum.dirty_wait_ns = sum.dirty_wait_ns.saturating_add(more.dirty_wait_ns);
    sum.words = sum.words.wrapping_add(more.words);
    sum.reductions = sum.reductions.wrapping_add(more.reductions);
}

fn difference(now: &Costs, before: &Costs) -> Costs {
    Costs {
        calls: now.calls.saturating_sub(before.calls),
        time_ns: now.time_ns.saturating_sub(before.time_ns),
        wait_ns: now.wait_ns.saturating_sub(before.wait_ns),
        dirty_wait_ns: now.dirty_wait_ns.saturating_sub(before.dirty_wait_ns),
        words: now.words.wrapping_sub(before.words),
        reductions: now.reductions.wrapping_sub(before.reductions),
    }
}

/// What a path, by its index in the profile, cost in a part.
pub(super) struct InPart {
    pub(super) node: usize,
    pub(super) part: usize,
    pub(super) costs: Costs,
}

impl InParts {
    /// Follows these callers, and keeps `most` cells at most.
    pub(super) fn new(callers: Callers, clock: Clock, most: usize) -> InParts {
        let mut parts = InParts {
            callers,
            clock,
            most,
            now: 0,
            begin_ns: 0,
            end_ns: 0,
            kept: Vec::new(),
            cells: FxHashMap::default(),
            shift: 0,
            looks: 0,
        };
        parts.begin(0);
        parts
    }

    /// Begins a part.
    fn begin(&mut self, now: usize) {
        self.now = now;
        self.begin_ns = self.clock.begin_ns(now << self.shift);
        let next = (now + 1) << self.shift;
        // Nothing comes after the last.
        self.end_ns = match next < PARTS {
            true => self.clock.begin_ns(next),
            false => u64::MAX,
        };
    }

    /// Puts what the part that is followed has added into cells.
    fn end(&mut self) {
        let (kept, cells) = (&mut self.kept, &mut self.cells);
        for (caller, costs) in self.callers.since(self.begin_ns) {
            if kept.len() <= caller {
                kept.resize_with(caller + 1, Vec::new);
            }
            let kept = &mut kept[caller];
            kept.resize(costs.len(), Costs::default());
            self.looks += costs.len();
            for (path, (now, kept)) in costs.iter().zip(kept).enumerate() {
                if *now != *kept {
                    let cell = cells.entry((caller, path, self.now)).or_default();
                    add(cell, &difference(now, kept));
                    *kept = *now;
                }
            }
        }
        self.limit();
    }

    /// Makes the parts wider, until there are not too many cells.
    fn limit(&mut self) {
        while self.shift < SHIFT_MAX && (self.cells.len() > self.most || self.looks > LOOKS) {
            self.looks = 0;
            self.shift += 1;
            let mut wider: FxHashMap<Cell, Costs> = FxHashMap::default();
            for ((caller, path, part), costs) in self.cells.drain() {
                add(wider.entry((caller, path, part >> 1)).or_default(), &costs);
            }
            self.cells = wider;
        }
    }

    fn add(&mut self, record: &Record<'_>) {
        if record.time_ns >= self.end_ns {
            self.end();
            self.begin(self.clock.part(record.time_ns) >> self.shift);
        }
        self.earlier(record);
        self.callers.add(record);
    }

    /// The time until this part that a process pays for now goes to the parts before it.
    #[inline]
    fn earlier(&mut self, record: &Record<'_>) {
        let Some(unpaid) = self.callers.unpaid(record, self.begin_ns) else {
            return;
        };
        let (caller, path) = (unpaid.caller, unpaid.path);
        if self.kept.len() <= caller {
            self.kept.resize_with(caller + 1, Vec::new);
        }
        let kept = &mut self.kept[caller];
        if kept.len() <= path {
            kept.resize(path + 1, Costs::default());
        }
        let before = self.begin_ns.min(record.time_ns);
        for (part, ns) in self.clock.pieces(self.shift, unpaid.since_ns, before) {
            if ns == 0 {
                continue;
            }
            let mut costs = Costs::default();
            costs.spend(unpaid.does, ns);
            add(&mut kept[path], &costs);
            add(self.cells.entry((caller, path, part)).or_default(), &costs);
        }
    }

    /// The callers, and what their paths cost in which part, in order; with how many of the clock's parts are one, as a power of
    /// two.
    pub(super) fn finish(mut self) -> (Callers, Vec<InPart>, u32) {
        self.end();
        let first = self.callers.first_nodes();
        let cells = self.cells.into_iter();
        let cells = cells.map(|((caller, path, part), costs)| InPart {
            node: first[caller] + path,
            part,
            costs,
        });
        let mut cells: Vec<InPart> = cells.collect();
        cells.sort_unstable_by_key(|cell| (cell.node, cell.part));
        (self.callers, cells, self.shift)
    }
}

impl Sink for InParts {
    fn take(&mut self, batch: &Batch) -> Result<(), Error> {
        batch.whole().for_each(|record| self.add(&record));
        Ok(())
    }
}
