//! The samples of the page: what each thread did in each part of the time.

use std::collections::BTreeMap;

use beamline_formats::ring::{Error, Sampling};
use serde::Serialize;

use super::clock::{Clock, PARTS};
use crate::events::batch::Batch;
use crate::events::pass::Sink;
use crate::events::{Does, Looked, Tallies, ThreadKind};

/// What the page says of samples.
#[derive(Serialize)]
pub(super) struct Samples {
    #[serde(flatten)]
    sampling: Sampling,
    period_ns: u64,
    samples: u64,
    lost: u64,
    /// How threads were stopped for looks, in words; or empty.
    stopped: String,
    /// What threads may do, in the order in which it is counted.
    does: [&'static str; Does::ALL.len()],
    threads: Vec<Thread>,
}

/// A thread: of each thing that it may do, its samples in each part of the time; empty where it never did that.
#[derive(Serialize)]
struct Thread {
    name: String,
    is_scheduler: bool,
    does: [Vec<u64>; Does::ALL.len()],
}

/// Counts samples by part of the time.
pub(super) struct Seen {
    clock: Clock,
    tallies: Tallies,
    threads: BTreeMap<(ThreadKind, u64), [Vec<u64>; Does::ALL.len()]>,
}

impl Seen {
    pub(super) fn new(clock: Clock) -> Seen {
        Seen {
            clock,
            tallies: Tallies::default(),
            threads: BTreeMap::new(),
        }
    }

    fn add(&mut self, at_ns: u64, looked: Looked) {
        let thread = self.threads.entry((looked.kind, looked.number));
        let parts = &mut thread.or_default()[looked.does.place()];
        parts.resize(PARTS, 0);
        parts[self.clock.part(at_ns)] += 1;
    }

    /// What the page shows of them.
    pub(super) fn on_page(self, sampling: &Sampling) -> Samples {
        let threads = self.threads.into_iter();
        let threads = threads.map(|((kind, number), does)| Thread {
            name: Looked::thread(kind, number),
            is_scheduler: kind == ThreadKind::Scheduler,
            does,
        });
        let Tallies {
            samples,
            lost,
            stopped,
            ..
        } = self.tallies;
        Samples {
            sampling: sampling.clone(),
            period_ns: sampling.period_ns(),
            samples,
            lost,
            stopped: stopped.map_or_else(String::new, |stopped| stopped.to_string()),
            does: Does::ALL.map(Does::about),
            threads: threads.collect(),
        }
    }
}

impl Sink for Seen {
    fn take(&mut self, batch: &Batch) -> Result<(), Error> {
        for record in batch.whole() {
            if let Some(looked) = Looked::of(&record.event) {
                self.add(record.time_ns, looked);
            }
        }
        self.tallies.take(batch)
    }
}
