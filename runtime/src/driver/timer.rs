//! The timer of a port.

use std::ffi::{c_int, c_ulong};
use std::sync::Arc;

use super::instance::{Instance, of};
use super::{DrvPort, api};
use crate::sched::timers::{self, Fire, TimerId};
use crate::sys::chance::clock::monotonic_ns;
use crate::term::am;
use crate::trace::sysmon::{self, PortOp};
use crate::trace::sysprof;

/// A timer that is set.
pub(super) struct Timer {
    id: TimerId,
    deadline_ns: u64,
    /// Tells it from others of its port: its place in the order of all.
    number: u64,
}

/// How many have been set.
static NUMBER: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);

const NS_PER_MS: u64 = 1_000_000;

impl Instance {
    /// Sets the timer anew.
    fn set_timer(self: &Arc<Self>, milliseconds: u64) {
        self.cancel_timer();
        let deadline_ns = timers::deadline_after(milliseconds);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let mut timer = self.timer.lock();
        let port = self.handle().addr();
        let run = move || {
            let port = std::ptr::without_provenance_mut(port);
            if let Some(this) = of(port) {
                this.timeout(number);
            }
        };
        let id = timers::set(deadline_ns, Fire::Run(Box::new(run)));
        *timer = Some(Timer {
            id,
            deadline_ns,
            number,
        });
    }

    /// The time of a timer is up.
    fn timeout(self: &Arc<Self>, number: u64) {
        let _runs = sysprof::port_runs(self.port.id);
        self.call(|driver, data| {
            let is_it = |timer: &mut Timer| timer.number == number;
            if self.timer.lock().take_if(is_it).is_none() {
                return;
            }
            let _works = sysmon::port_works(self.port.id, PortOp::Timeout);
            let traced = self.port.traced();
            traced.begin(am::timeout.term());
            traced.timed_out();
            if let Some(timeout) = driver.entry.timeout {
                // SAFETY: D1, D2.
                unsafe { timeout(data) };
            }
            traced.end(am::timeout.term());
        });
    }

    pub(super) fn cancel_timer(&self) {
        if let Some(timer) = self.timer.lock().take() {
            timers::cancel(timer.id);
        }
    }
}

api! {
    /// Has the driver called in some milliseconds: 0; -1 where it has no function for that.
    fn driver_set_timer(port: DrvPort, milliseconds: c_ulong) -> c_int {
        let Some(this) = of(port) else { return -1 };
        if this.driver.entry.timeout.is_none() { return -1 }
        this.set_timer(milliseconds);
        0
    }
    /// Takes that back.
    fn driver_cancel_timer(port: DrvPort) -> c_int {
        let Some(this) = of(port) else { return -1 };
        this.cancel_timer();
        0
    }
    /// How many milliseconds are left; 0 where no timer is set.
    fn driver_read_timer(port: DrvPort, left: *mut c_ulong) -> c_int {
        let Some(this) = of(port) else { return -1 };
        let deadline = this.timer.lock().as_ref().map(|timer| timer.deadline_ns);
        left.write(deadline.map_or(0, |at| at.saturating_sub(monotonic_ns()) / NS_PER_MS));
        0
    }
}
