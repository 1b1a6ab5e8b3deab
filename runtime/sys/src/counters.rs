//! Reads the counters of the processor and the operating system: those of this thread, or those of this thread and all
//! threads that it and its descendants start.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use beamline_settings::counter::{Counted, Counter};
use perf_event::events::{Event, Hardware, Software};
use perf_event::{Builder, Group};

use super::chance::clock::{self, Usage};

/// The processor had to take turns with its counters: what they say is less than there was.
static PARTIAL: AtomicBool = AtomicBool::new(false);

/// Has anything been counted a part of the time only?
pub fn is_partial() -> bool {
    PARTIAL.load(Ordering::Relaxed)
}

fn event(counter: Counter) -> Event {
    match counter {
        Counter::Instructions => Hardware::INSTRUCTIONS.into(),
        Counter::Cycles => Hardware::CPU_CYCLES.into(),
        Counter::CacheMisses => Hardware::CACHE_MISSES.into(),
        Counter::CacheReferences => Hardware::CACHE_REFERENCES.into(),
        Counter::Branches => Hardware::BRANCH_INSTRUCTIONS.into(),
        Counter::BranchMisses => Hardware::BRANCH_MISSES.into(),
        Counter::TaskClock => Software::TASK_CLOCK.into(),
        Counter::PageFaults => Software::PAGE_FAULTS.into(),
        Counter::ContextSwitches => Software::CONTEXT_SWITCHES.into(),
    }
}

/// What the operating system has accounted.
fn of_usage(counter: Counter, usage: &Usage) -> u64 {
    match counter {
        Counter::TaskClock => usage.cpu_ns,
        Counter::PageFaults => usage.page_faults,
        Counter::ContextSwitches => usage.context_switches,
        _ => 0,
    }
}

/// Counters of the thread that opened them.
pub struct ThreadCounters {
    wanted: Vec<Counter>,
    /// Those of the processor, which are read together.
    group: Option<(Group, Vec<(usize, perf_event::Counter)>)>,
}

impl ThreadCounters {
    /// Counts from now on.
    ///
    /// # Errors
    /// When the machine has no such counter, or does not let us have it.
    pub fn open(wanted: &[Counter]) -> io::Result<Self> {
        Self::open_those(wanted, Counter::is_hardware)
    }

    /// As [`ThreadCounters::open`], with those of which `is_event` says so as events.
    fn open_those(wanted: &[Counter], is_event: impl Fn(Counter) -> bool) -> io::Result<Self> {
        let mut group = None;
        for (at, counter) in wanted.iter().enumerate() {
            if !is_event(*counter) {
                continue;
            }
            let (group, members) = match &mut group {
                Some(group) => group,
                none => none.insert((Group::new()?, Vec::new())),
            };
            let member = Builder::new().group(group).kind(event(*counter)).build()?;
            members.push((at, member));
        }
        if let Some((group, _)) = &mut group {
            group.enable()?;
        }
        let wanted = wanted.to_vec();
        Ok(Self { wanted, group })
    }

    /// What has been counted since.
    ///
    /// # Errors
    /// When the operating system does not say.
    pub fn read(&mut self) -> io::Result<Counted> {
        let usage = clock::thread_usage();
        let mut counted = Counted::default();
        for (value, counter) in counted.iter_mut().zip(&self.wanted) {
            *value = of_usage(*counter, &usage);
        }
        if let Some((group, members)) = &mut self.group {
            let counts = group.read()?;
            for (at, member) in members {
                counted[*at] = counts[member];
            }
            if counts.time_running() < counts.time_enabled() {
                PARTIAL.store(true, Ordering::Relaxed);
            }
        }
        Ok(counted)
    }
}

/// Counters of all threads of the process: open them before the others are started.
pub struct ProcessCounters {
    wanted: Vec<Counter>,
    members: Vec<(usize, perf_event::Counter)>,
    begin: Counted,
}

impl ProcessCounters {
    /// Counts from now on.
    ///
    /// # Errors
    /// See [`ThreadCounters::open`].
    pub fn open(wanted: &[Counter]) -> io::Result<Self> {
        let mut members = Vec::new();
        for (at, counter) in wanted.iter().enumerate() {
            if counter.is_hardware() {
                let mut builder = Builder::new().kind(event(*counter));
                builder.inherit(true).enabled(true);
                members.push((at, builder.build()?));
            }
        }
        let mut counters = Self {
            wanted: wanted.to_vec(),
            members,
            begin: Counted::default(),
        };
        counters.begin = counters.read()?;
        Ok(counters)
    }

    /// What has been counted since.
    ///
    /// # Errors
    /// When the operating system does not say.
    pub fn read(&mut self) -> io::Result<Counted> {
        let usage = clock::process_usage();
        let mut counted = Counted::default();
        for (value, counter) in counted.iter_mut().zip(&self.wanted) {
            *value = of_usage(*counter, &usage);
        }
        for (at, member) in &mut self.members {
            counted[*at] = member.read()?;
        }
        for (value, begin) in counted.iter_mut().zip(self.begin) {
            *value = value.saturating_sub(begin);
        }
        Ok(counted)
    }
}

#[cfg(test)]
mod tests {
    use beamline_needs::{Need, skipped};

    use super::*;

    fn work() -> u64 {
        (0..3_000_000_u64).fold(1, |a, b| {
            std::hint::black_box(a ^ b.rotate_left(a as u32 & 7))
        })
    }

    #[test]
    fn what_is_done_is_counted() {
        let mut thread = ThreadCounters::open(&Counter::SOFTWARE).expect("every machine has them");
        let mut process =
            ProcessCounters::open(&Counter::SOFTWARE).expect("every machine has them");
        let before = thread.read().expect("it is there");
        assert_ne!(work(), 0);
        let after = thread.read().expect("it is there");
        assert!(
            after[0] > before[0] && after[1] >= before[1] && after[3] == 0,
            "{after:?}"
        );
        assert!(process.read().expect("it is there")[0] > 0);
    }

    /// Those of the processor are read in the same way; not every machine has them.
    #[test]
    fn events_are_read_together() {
        let wanted = [Counter::PageFaults, Counter::TaskClock];
        let Ok(mut thread) = ThreadCounters::open_those(&wanted, |_| true) else {
            return skipped(Need::Events, "there are no performance events here");
        };
        let before = thread.read().expect("they are open");
        let pages = vec![1_u8; 64 << 20];
        assert_eq!(std::hint::black_box(&pages)[5], 1);
        assert_ne!(work(), 0);
        let after = thread.read().expect("they are open");
        assert!(
            after[0] > before[0] && after[1] > before[1],
            "{before:?} {after:?}"
        );
    }
}
