//! Finds the calls of native functions that hold an ordinary scheduler for long. Nothing else runs there meanwhile:
//! native code cannot be interrupted.

use beamline_formats::name;
use beamline_formats::profile::{Function, Native, Origin};
use beamline_formats::ring::{Id, NameId, Names, Recording};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;

/// Native code that holds an ordinary scheduler for longer is listed: what OTP's documentation asks of a NIF.
pub const LIMIT_NS: u64 = 1_000_000;

/// A native function that held an ordinary scheduler for longer than [`LIMIT_NS`] at a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Block {
    /// As its language writes it.
    pub function: String,
    /// Whose it is.
    pub origin: Origin,
    /// The function itself.
    #[serde(skip)]
    pub of: Function,
    /// The longest time.
    pub longest_ns: u64,
    /// When that began, since the beginning of the recording.
    pub at_ns: u64,
    /// The process that it was in.
    pub process: String,
    /// The name of that, or the function it started in.
    pub name: String,
    /// How often it was so long.
    pub times: u64,
    /// All these times together.
    pub total_ns: u64,
    /// Who called it then, those with the longest time first.
    pub callers: Vec<BlockCaller>,
}

/// Who called a native function that held an ordinary scheduler for long.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BlockCaller {
    /// The function, if one that was recorded called it.
    pub function: Option<String>,
    /// The longest time.
    pub longest_ns: u64,
    /// How often it was so long.
    pub times: u64,
}

/// Times of one function with one caller.
#[derive(Clone, Copy)]
struct Held {
    longest_ns: u64,
    at_ns: u64,
    process: Id,
    times: u64,
    total_ns: u64,
}

/// Native code that ran when the recording broke off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unfinished {
    /// The function, as its language writes it.
    pub function: String,
    /// What it is.
    pub native: Native,
    /// Who called it, if one that was recorded did.
    pub caller: Option<String>,
    /// The process that it was in.
    pub process: String,
    /// The name of that, or the function it started in.
    pub name: String,
}

impl Unfinished {
    /// Of a process that is in native code at the end of this path.
    pub(super) fn of(
        names: &Names,
        process: Id,
        mut path: impl Iterator<Item = NameId>,
    ) -> Option<Unfinished> {
        let function = path.next()?;
        Some(Unfinished {
            function: names.function_text(function),
            native: names.native(function)?,
            caller: path.next().map(|caller| names.function_text(caller)),
            process: process.to_string(),
            name: names.process_text(process),
        })
    }
}

/// What holds a scheduler now: the time of a process in the function it is in, since it came there or began to run.
#[derive(Default)]
pub(super) struct Hold {
    since_ns: u64,
    ran_ns: u64,
    /// Time of collections, which are no native code; and since when there is one.
    collected_ns: u64,
    collects_since_ns: Option<u64>,
}

impl Hold {
    /// A function, or a time slice, begins.
    pub(super) fn begin(&mut self, now: u64) {
        *self = Hold {
            since_ns: now,
            ..Hold::default()
        };
    }

    /// The process has run for `ns`.
    pub(super) fn runs(&mut self, ns: u64) {
        self.ran_ns = self.ran_ns.saturating_add(ns);
    }

    pub(super) fn collection_begins(&mut self, now: u64) {
        self.collects_since_ns = Some(now);
    }

    pub(super) fn collection_ends(&mut self, now: u64) {
        if let Some(since_ns) = self.collects_since_ns.take() {
            let ns = now.saturating_sub(since_ns);
            self.collected_ns = self.collected_ns.saturating_add(ns);
        }
    }

    fn held_ns(&self) -> u64 {
        self.ran_ns.saturating_sub(self.collected_ns)
    }
}

/// All that held a scheduler for long, by function and caller.
#[derive(Default)]
pub(super) struct Blocks(FxHashMap<(NameId, NameId), Held>);

impl Blocks {
    /// A process leaves a native function that it was in, or stops running.
    pub(super) fn add(&mut self, process: Id, hold: &Hold, mut path: impl Iterator<Item = NameId>) {
        let held_ns = hold.held_ns();
        if held_ns <= LIMIT_NS {
            return;
        }
        let Some(function) = path.next() else { return };
        let caller = path.next().unwrap_or_default();
        let held = self.0.entry((function, caller)).or_insert(Held {
            longest_ns: 0,
            at_ns: 0,
            process,
            times: 0,
            total_ns: 0,
        });
        held.times += 1;
        held.total_ns = held.total_ns.saturating_add(held_ns);
        if held_ns > held.longest_ns {
            held.longest_ns = held_ns;
            (held.at_ns, held.process) = (hold.since_ns, process);
        }
    }

    /// By function, the longest first.
    pub(super) fn finish(self, recording: &Recording) -> Vec<Block> {
        let names = recording.names();
        let mut all: Vec<_> = self.0.into_iter().collect();
        all.sort_unstable_by_key(|(key, held)| (std::cmp::Reverse(held.longest_ns), *key));
        let mut places: FxHashMap<NameId, usize> = FxHashMap::default();
        let mut blocks: Vec<Block> = Vec::new();
        for ((function, caller), held) in all {
            let at = *places.entry(function).or_insert(blocks.len());
            if at == blocks.len() {
                let of = super::calls::function_of(names, function);
                blocks.push(Block {
                    function: name::mfa(&of.module, &of.name, of.arity),
                    origin: names.origin(&of.module),
                    of,
                    longest_ns: held.longest_ns,
                    at_ns: held.at_ns,
                    process: held.process.to_string(),
                    name: names.process_text(held.process),
                    times: 0,
                    total_ns: 0,
                    callers: Vec::new(),
                });
            }
            let block = &mut blocks[at];
            block.times += held.times;
            block.total_ns = block.total_ns.saturating_add(held.total_ns);
            block.callers.push(BlockCaller {
                function: (caller != NameId::NONE).then(|| names.function_text(caller)),
                longest_ns: held.longest_ns,
                times: held.times,
            });
        }
        blocks
    }
}

/// The functions of a recording that are native code.
pub(super) struct Natives(FxHashSet<NameId>);

impl Natives {
    pub(super) fn of(recording: &Recording) -> Natives {
        let natives = recording.names().natives();
        Natives(natives.map(|(function, _)| function).collect())
    }

    pub(super) fn has(&self, function: NameId) -> bool {
        self.0.contains(&function)
    }
}

#[cfg(test)]
mod tests {
    use beamline_formats::ring::{DIRTY_CPU, Event, Group};

    use super::*;
    use crate::events::Summary;
    use crate::events::sample::{Sample, process};
    use crate::flamegraph::{Shape, Width, folded};

    const MS: u64 = 1_000_000;

    fn sample() -> Sample {
        let mut sample = Sample::new(&[Group::Calls, Group::Returns, Group::Scheduling, Group::Gc]);
        sample.native("nif", Native::Ordinary);
        sample.native("dirty", Native::DirtyCpu);
        sample
    }

    fn summary(sample: &Sample) -> Summary {
        Summary::of(&sample.open(), 9).expect("readable").0
    }

    #[test]
    fn what_holds_a_scheduler_is_told_by_caller() {
        let (mut sample, a) = (sample(), process(1));
        sample.slice_begins(0, a);
        sample.call(0, a, "f");
        // Too short, long, and long with another caller.
        for (at, length, caller) in [(1, MS, "g"), (2 * MS, 3 * MS, "g"), (9 * MS, 5 * MS, "h")] {
            sample.call(at, a, caller);
            sample.call(at, a, "nif");
            sample.back(at + length, a);
            sample.back(at + length, a);
        }
        // Erlang code may take as long as it likes.
        sample.call(20 * MS, a, "erlang");
        sample.back(30 * MS, a);
        let blocks = summary(&sample).blocks;
        assert_eq!(blocks.len(), 1);
        let block = &blocks[0];
        assert_eq!(block.function, "m:nif/1");
        assert_eq!((block.longest_ns, block.at_ns), (5 * MS, 9 * MS));
        assert_eq!((block.times, block.total_ns), (2, 8 * MS));
        let callers = block.callers.iter();
        let callers: Vec<_> = callers
            .map(|of| (of.function.as_deref(), of.times, of.longest_ns))
            .collect();
        let expect = [(Some("m:h/1"), 1, 5 * MS), (Some("m:g/1"), 1, 3 * MS)];
        assert_eq!(callers, expect);
    }

    #[test]
    fn slices_and_collections_are_not_held_together() {
        let (mut sample, a) = (sample(), process(1));
        sample.slice_begins(0, a);
        sample.call(0, a, "nif");
        // It gives way, and goes on: each time for less than the limit.
        sample.slice_ends(900_000, a, 1);
        sample.slice_begins(MS, a);
        let (need, used) = (1, 1);
        sample.write(2 * MS, a, Event::GcMinorStart { need, used });
        let reclaimed = 1;
        sample.write(9 * MS, a, Event::GcMinorEnd { reclaimed, used });
        sample.back(9 * MS, a);
        assert!(summary(&sample).blocks.is_empty());
    }

    /// A call that waits for 2 ms and runs for 7 ms on dirty scheduler 3.
    fn dirty(sample: &mut Sample, ends: bool) {
        let a = process(1);
        sample.slice_begins(0, a);
        sample.call(0, a, "f");
        sample.call(0, a, "dirty");
        sample.slice_ends(1_000, a, 1);
        sample.write(1_000, a, Event::DirtyQueued { kind: DIRTY_CPU });
        let function = sample.function("dirty");
        let begins = Event::DirtyIn {
            function,
            kind: DIRTY_CPU,
            scheduler: 3,
        };
        sample.write_on(1, 1_000 + 2 * MS, a, begins);
        if ends {
            sample.write_on(1, 1_000 + 9 * MS, a, Event::DirtyOut { function });
            sample.slice_begins(2_000 + 9 * MS, a);
            sample.back(3_000 + 9 * MS, a);
            sample.back(3_000 + 9 * MS, a);
        }
    }

    #[test]
    fn a_dirty_call_blocks_none_and_its_waiting_is_told_apart() {
        let mut sample = sample();
        dirty(&mut sample, true);
        let (summary, profile) = Summary::of(&sample.open(), 9).expect("readable");
        assert!(summary.blocks.is_empty());
        let row = &summary.natives[0];
        assert_eq!(row.native, Some(Native::DirtyCpu));
        assert_eq!((row.own_ns, row.dirty_wait_ns), (7 * MS + 2_000, 2 * MS));
        let of = summary.dirty_schedulers[0];
        assert_eq!((of.calls, of.busy_ns, of.wait_ns), (1, 7 * MS, 2 * MS));
        let waits = folded(&profile, &Shape::new(Width::Wait));
        let expect = [
            "m:f/1;m:dirty/1 1000".to_owned(),
            format!("m:f/1;m:dirty/1;(waits for a dirty scheduler) {}", 2 * MS),
        ];
        assert_eq!(waits, expect);
    }

    #[test]
    fn native_code_that_ran_at_the_end_is_named() {
        let mut sample = sample();
        dirty(&mut sample, false);
        let summary = summary(&sample);
        let [of] = &summary.unfinished[..] else {
            panic!("{:?}", summary.unfinished);
        };
        assert_eq!(
            (of.function.as_str(), of.native),
            ("m:dirty/1", Native::DirtyCpu)
        );
        assert_eq!(of.caller.as_deref(), Some("m:f/1"));
        let text = summary.to_string();
        let expect = "When it broke off, m:dirty/1 (dirty CPU), called by m:f/1, ran in <0.1.0>.\n";
        assert!(text.contains(expect), "{text}");
    }
}
