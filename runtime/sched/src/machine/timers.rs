//! The timers of all schedulers. Each scheduler has a wheel, and others may cancel timers in it.

use crossbeam_utils::CachePadded;

use super::{current_id, machine};
use crate::wheel::{TimerKey, Wheel};
use beamline_runtime_base::sync::{AtomicU64, Mutex, Ordering, lock};
use beamline_runtime_sys::chance::clock::monotonic_ns;

/// Nanoseconds of a millisecond.
const MS_NS: u64 = 1_000_000;

/// A timer that has been set.
#[derive(Clone, Copy, Debug)]
pub struct TimerId {
    wheel: u32,
    key: TimerKey,
}

/// The action of a timer that goes off. It runs in a scheduler's thread, outside of any process.
pub enum Fire {
    /// The time of a receive is up.
    Receive {
        /// The number of the process in the process table.
        pid: u64,
        /// Which of the timers of its receives it is.
        id: u64,
    },
    /// A timer of `erlang:start_timer` or `erlang:send_after` goes off.
    User([u32; 3]),
    /// Something of the runtime's own.
    Run(Box<dyn FnOnce() + Send>),
}

/// The wheels of all schedulers.
pub struct Timers(Box<[CachePadded<OneWheel>]>);

struct OneWheel {
    wheel: Mutex<Wheel<Fire>>,
    /// No timer is due before; `u64::MAX` when there is none.
    next_ns: AtomicU64,
}

impl Timers {
    /// A wheel for each of `schedulers`, with nothing in it.
    pub fn new(schedulers: usize) -> Timers {
        let now = monotonic_ns();
        let one = || {
            CachePadded::new(OneWheel {
                wheel: Mutex::new(Wheel::new(now)),
                next_ns: AtomicU64::new(u64::MAX),
            })
        };
        Timers((0..schedulers).map(|_| one()).collect())
    }

    /// When scheduler `id` must look at its wheel next.
    #[inline]
    pub fn next_ns(&self, id: usize) -> u64 {
        self.0[id].next_ns.load(Ordering::Acquire)
    }

    /// Takes what is due out of the wheel of scheduler `id`.
    pub fn due(&self, id: usize, now_ns: u64) -> Vec<Fire> {
        let mut due = Vec::new();
        let mut wheel = lock(&self.0[id].wheel);
        wheel.expire(now_ns, &mut due);
        let next = wheel.next_deadline().unwrap_or(u64::MAX);
        self.0[id].next_ns.store(next, Ordering::Release);
        due
    }
}

/// Sets a timer for `deadline_ns` of [`monotonic_ns`].
pub fn set(deadline_ns: u64, fire: Fire) -> TimerId {
    let own = current_id();
    let id = own.unwrap_or(0);
    let machine = machine();
    let one = &machine.timers.0[id];
    let key = {
        let mut wheel = lock(&one.wheel);
        let key = wheel.insert(deadline_ns, fire);
        let next = wheel.next_deadline().unwrap_or(u64::MAX);
        one.next_ns.store(next, Ordering::Release);
        key
    };
    if own.is_none() {
        machine.parking.wake(id);
    }
    TimerId {
        wheel: id as u32,
        key,
    }
}

/// Sets the timer `id` of a receive of the process `pid`.
#[inline]
pub fn set_receive(deadline_ns: u64, pid: u64, id: u64) -> TimerId {
    set(deadline_ns, Fire::Receive { pid, id })
}

/// Has `run` called in some milliseconds.
pub fn run_after(milliseconds: u64, run: impl FnOnce() + Send + 'static) {
    set(deadline_after(milliseconds), Fire::Run(Box::new(run)));
}

/// `milliseconds` from now.
#[inline]
pub fn deadline_after(milliseconds: u64) -> u64 {
    monotonic_ns().saturating_add(milliseconds.saturating_mul(MS_NS))
}

/// Cancels a timer. `false` when it has gone off or was cancelled before.
#[inline]
pub fn cancel(timer: TimerId) -> bool {
    let one = &machine().timers.0[timer.wheel as usize];
    lock(&one.wheel).cancel(timer.key).is_some()
}
