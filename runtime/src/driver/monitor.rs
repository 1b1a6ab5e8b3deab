//! Monitors that drivers have on processes.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::Arc;

use super::instance::{Instance, of};
use super::{DrvPort, TermData, api};
use crate::process::exists;
use crate::process::refs::{RefNumbers, make_ref};
use crate::process::watcher::{WatchedBy, Watcher, unwatch, watch};
use crate::term::{Pid, RawTerm, Term};

/// `ErlDrvMonitor`: the numbers of a reference.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub(super) struct DrvMonitor {
    numbers: RefNumbers,
    unused: [u32; 5],
}

/// The monitors of a port: whom they are on.
#[derive(Default)]
pub(super) struct Monitors(BTreeMap<RefNumbers, Pid>);

impl Monitors {
    pub(super) fn pids(&self) -> Vec<Pid> {
        self.0.values().copied().collect()
    }
}

impl Instance {
    /// Takes all monitors back.
    pub(super) fn end_monitors(&self) {
        let all = std::mem::take(&mut self.monitors.lock().0);
        for (reference, pid) in all {
            unwatch(pid, reference);
        }
    }

    /// A process has exited.
    fn process_exit(self: &Arc<Self>, reference: RefNumbers) {
        self.call(|driver, data| {
            if self.monitors.lock().0.remove(&reference).is_none() {
                return;
            }
            if let Some(process_exit) = driver.entry.process_exit {
                let mut monitor = DrvMonitor {
                    numbers: reference,
                    unused: [0; 5],
                };
                // SAFETY: D1, D2.
                unsafe { process_exit(data, &raw mut monitor) };
            }
        });
    }

    /// Has the driver called when a process exits; whether it is there.
    fn monitor(self: &Arc<Self>, reference: RefNumbers, pid: Pid) -> bool {
        let this = Arc::downgrade(self);
        let told = Box::new(move |_: Term<'_>| {
            if let Some(this) = this.upgrade() {
                this.process_exit(reference);
            }
        });
        self.monitors.lock().0.insert(reference, pid);
        let by = WatchedBy::Port(self.port.id);
        let sent = watch(pid, reference, Watcher { told, by });
        if !sent {
            self.monitors.lock().0.remove(&reference);
        }
        sent
    }
}

api! {
    /// Has the driver called when a process exits: 0; 1 where there is none; -1 where it has no function for it.
    fn driver_monitor_process(port: DrvPort, process: TermData, out: *mut DrvMonitor) -> c_int {
        let Some(this) = of(port) else { return -1 };
        if this.driver.entry.process_exit.is_none() { return -1 }
        let Some(pid) = Term::new(RawTerm(process)).as_pid().filter(|pid| exists(*pid)) else { return 1 };
        let reference = make_ref();
        if !this.monitor(reference, pid) { return 1 }
        out.write(DrvMonitor { numbers: reference, unused: [0; 5] });
        0
    }
    /// Takes a monitor back: 0; 1 where it is not there any more.
    fn driver_demonitor_process(port: DrvPort, monitor: *const DrvMonitor) -> c_int {
        let Some(this) = of(port) else { return -1 };
        let reference = (*monitor).numbers;
        let removed = this.monitors.lock().0.remove(&reference);
        let Some(pid) = removed else { return 1 };
        unwatch(pid, reference);
        0
    }
    /// Whom a monitor is on; the empty list where it is not there any more.
    fn driver_get_monitored_process(port: DrvPort, monitor: *const DrvMonitor) -> TermData {
        let reference = (*monitor).numbers;
        let pid = of(port).and_then(|this| this.monitors.lock().0.get(&reference).copied());
        pid.map_or(Term::NIL, |pid| pid.term()).raw().0
    }
    /// The order of two monitors.
    fn driver_compare_monitors(a: *const DrvMonitor, b: *const DrvMonitor) -> c_int {
        (*a).numbers.cmp(&(*b).numbers) as c_int
    }
}
