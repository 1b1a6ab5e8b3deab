//! Measures how long each scheduler has worked, for `erlang:statistics(scheduler_wall_time)`.
//!
//! A scheduler works unless it sleeps for want of work or is offline. Its account is always kept: a look at the clock
//! around a sleep costs little beside it. Switching the statistics on notes where accounts stand.

use crossbeam_utils::CachePadded;
use parking_lot::Mutex;

use beamline_runtime_sys::chance::clock::monotonic_ns;

/// How long one scheduler has been idle.
#[derive(Default)]
struct Idle {
    total_ns: u64,
    /// When it fell idle; none while it works.
    since_ns: Option<u64>,
}

impl Idle {
    fn begin(&mut self, now_ns: u64) {
        self.since_ns = Some(now_ns);
    }
    fn end(&mut self, now_ns: u64) {
        self.total_ns = self.at(now_ns);
        self.since_ns = None;
    }
    /// Time it has been idle up to `now_ns`.
    fn at(&self, now_ns: u64) -> u64 {
        let since = self.since_ns.unwrap_or(now_ns);
        self.total_ns + now_ns.saturating_sub(since)
    }
}

/// The accounts of all schedulers.
pub struct WallTime {
    idle: Box<[CachePadded<Mutex<Idle>>]>,
    /// Where the clock and each account stood when the statistics were switched on.
    start: Mutex<Option<(u64, Vec<u64>)>>,
}

impl WallTime {
    /// None of `schedulers` is idle, and all `dirty` ones behind them are.
    pub fn new(schedulers: usize, dirty: usize) -> WallTime {
        let idle = |since_ns| {
            CachePadded::new(Mutex::new(Idle {
                total_ns: 0,
                since_ns,
            }))
        };
        let ordinary = (0..schedulers).map(|_| idle(None));
        WallTime {
            idle: ordinary.chain((0..dirty).map(|_| idle(Some(0)))).collect(),
            start: Mutex::new(None),
        }
    }

    /// Scheduler `id` does not work from now on.
    pub fn rests(&self, id: usize) {
        self.idle[id].lock().begin(monotonic_ns());
    }

    /// Scheduler `id`, which has rested, works from now on.
    pub fn goes_on(&self, id: usize) {
        self.idle[id].lock().end(monotonic_ns());
    }

    /// `rest` is what scheduler `id` does without working.
    pub fn idle<T>(&self, id: usize, rest: impl FnOnce() -> T) -> T {
        self.rests(id);
        let result = rest();
        self.goes_on(id);
        result
    }

    /// `work` is what scheduler `id`, which is idle, does.
    pub fn work<T>(&self, id: usize, work: impl FnOnce() -> T) -> T {
        self.goes_on(id);
        let result = work();
        self.rests(id);
        result
    }

    /// Does scheduler `id` do nothing now?
    pub fn is_idle(&self, id: usize) -> bool {
        self.idle[id].lock().since_ns.is_some()
    }

    /// How many of the first `schedulers` work now.
    pub(crate) fn at_work(&self, schedulers: usize) -> usize {
        (0..schedulers).filter(|id| !self.is_idle(*id)).count()
    }

    /// Switches the statistics on or off; whether they were on.
    fn switch(&self, on: bool, now_ns: u64) -> bool {
        let mut start = self.start.lock();
        let was_on = start.is_some();
        if on && !was_on {
            let idle = self
                .idle
                .iter()
                .map(|idle| idle.lock().at(now_ns))
                .collect();
            *start = Some((now_ns, idle));
        } else if !on {
            *start = None;
        }
        was_on
    }

    /// Of each scheduler the time it has worked and the time that has passed, in nanoseconds, since the
    /// statistics were switched on.
    fn read(&self, now_ns: u64) -> Option<Vec<(u64, u64)>> {
        let start = self.start.lock();
        let (start_ns, before) = start.as_ref()?;
        // They may have been switched on since the caller looked at the clock.
        let total = now_ns.saturating_sub(*start_ns);
        let row = |(idle, before): (&CachePadded<Mutex<Idle>>, &u64)| {
            let idle = idle.lock().at(now_ns).saturating_sub(*before);
            (total.saturating_sub(idle), total)
        };
        Some(self.idle.iter().zip(before).map(row).collect())
    }
}

/// Switches the statistics on or off; whether they were on.
pub fn switch(on: bool) -> bool {
    super::machine().wall_time.switch(on, monotonic_ns())
}

/// Of each scheduler the time it has worked and the time that has passed, in nanoseconds; `None` while the
/// statistics are switched off.
#[must_use]
pub fn read() -> Option<Vec<(u64, u64)>> {
    super::machine().wall_time.read(monotonic_ns())
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn dirty_schedulers_are_idle_but_for_their_calls() {
        let times = WallTime::new(1, 1);
        assert!(!times.is_idle(0) && times.is_idle(1) && times.at_work(1) == 1);
        assert!(!times.switch(true, 200));
        assert_eq!(times.read(300), Some(vec![(100, 100), (0, 100)]));
        times.work(1, || assert!(!times.is_idle(1)));
        assert!(times.is_idle(1));
    }

    #[test]
    fn time_asleep_is_no_work() {
        let times = WallTime::new(2, 0);
        times.idle[0].lock().begin(100);
        assert_eq!(times.read(150), None);
        assert!(!times.switch(true, 200));
        assert_eq!(times.read(300), Some(vec![(0, 100), (100, 100)]));
        times.idle[0].lock().end(320);
        times.idle[1].lock().begin(330);
        assert_eq!(times.read(400), Some(vec![(80, 200), (130, 200)]));
        times.idle[1].lock().end(350);
        assert_eq!(times.read(400), Some(vec![(80, 200), (180, 200)]));
        assert!(times.switch(true, 400), "it goes on");
        assert!(times.switch(false, 400));
        assert_eq!(times.read(500), None);
    }
}
