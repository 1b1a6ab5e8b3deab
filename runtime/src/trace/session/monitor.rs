//! Which system events sessions want to hear of. For each kind of event, one number for all sessions says whether
//! anybody does, so that a run that nobody monitors looks at that number only.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::system_event::Limits;
use crate::term::Pid;

/// The receiver of a session's system events, and which it gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Monitor {
    pub(crate) receiver: Option<Pid>,
    /// The recorder's.
    pub(crate) is_recorded: bool,
    pub(crate) limits: Limits,
}

/// The least limits of all sessions; 0 where there is none.
pub(in crate::trace) static LONG_GC: AtomicU64 = AtomicU64::new(0);
pub(in crate::trace) static LONG_SCHEDULE: AtomicU64 = AtomicU64::new(0);
pub(in crate::trace) static LARGE_HEAP: AtomicU64 = AtomicU64::new(0);
pub(in crate::trace) static LONG_QUEUE: AtomicU64 = AtomicU64::new(0);
pub(in crate::trace) static BUSY_PORT: AtomicBool = AtomicBool::new(false);
/// Some session has a receiver.
static ANY: AtomicBool = AtomicBool::new(false);

/// Call after a session's monitor has changed.
pub(in crate::trace) fn update() {
    let all: Vec<Monitor> = super::all().iter().map(|s| *s.monitor.lock()).collect();
    let least = |of: fn(&Monitor) -> u64| {
        let limits = all.iter().map(of).filter(|limit| *limit != 0);
        limits.min().unwrap_or(0)
    };
    LONG_GC.store(least(|m| m.limits.long_gc.0), Ordering::Relaxed);
    LONG_SCHEDULE.store(least(|m| m.limits.long_schedule.0), Ordering::Relaxed);
    LARGE_HEAP.store(least(|m| m.limits.large_heap.0), Ordering::Relaxed);
    let queue = least(|m| m.limits.long_message_queue.map_or(0, |(_, on)| on));
    LONG_QUEUE.store(queue, Ordering::Relaxed);
    BUSY_PORT.store(
        all.iter()
            .any(|m| m.limits.busy_port || m.limits.busy_dist_port),
        Ordering::Relaxed,
    );
    let any = all.iter().any(|m| m.receiver.is_some());
    ANY.store(any, Ordering::Relaxed);
}

/// A process is no more: a session whose receiver it was reports nothing.
pub(crate) fn exited(pid: Pid) {
    if !ANY.load(Ordering::Relaxed) {
        return;
    }
    for session in super::all() {
        let mut monitor = session.monitor.lock();
        if monitor.receiver == Some(pid) {
            *monitor = Monitor::default();
        }
    }
    update();
}
