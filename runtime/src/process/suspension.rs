//! The suspension of one process by another, with an end for each of them.

use std::sync::Arc;

use super::{Process, Signal, deliver};
use crate::sched;
use crate::sync::{AtomicU32, Ordering};
use crate::term::{Atom, Pid};

/// Who suspends a process that waits for something that is no process.
pub(crate) const NOBODY: Pid = Pid(crate::sched::ptab::INVALID_DATA);

const ACTIVE: u32 = 1;
const OVER: u32 = 2;

/// The stage of a suspension: 0, outstanding, until the suspendee has taken notice of it.
#[derive(Default)]
struct Stage(AtomicU32);

/// The suspender's end.
pub(crate) struct Suspending {
    /// How often the suspender has suspended the other.
    pub(crate) count: u32,
    stage: Arc<Stage>,
}

/// Module, name and arity.
pub(crate) type Function = (Atom, Atom, u8);

/// The suspendee's end. The suspension is over when it is dropped.
pub(crate) struct Suspended {
    pub(crate) by: Pid,
    /// The function that the suspendee is shown in meanwhile, if not the one that it is in.
    function: Option<Function>,
    stage: Arc<Stage>,
}

impl Suspending {
    /// A suspension by `by`, once: its two ends.
    pub(crate) fn new(by: Pid) -> (Suspending, Suspended) {
        let stage = Arc::<Stage>::default();
        let other = stage.clone();
        (
            Suspending { count: 1, stage },
            Suspended {
                by,
                function: None,
                stage: other,
            },
        )
    }
    /// The suspendee stands still.
    pub(crate) fn is_active(&self) -> bool {
        self.stage.0.load(Ordering::Acquire) == ACTIVE
    }
    /// The suspendee is gone.
    pub(crate) fn is_over(&self) -> bool {
        self.stage.0.load(Ordering::Acquire) == OVER
    }
}

impl Suspended {
    /// The suspendee has taken notice.
    pub(crate) fn activate(&self) {
        self.stage.0.store(ACTIVE, Ordering::Release);
    }
}

/// Ends the suspension by `by`: in the context of the suspended process.
pub(crate) fn resume(p: Option<&mut Process>, by: Pid) {
    let Some(p) = p.filter(|p| p.is_suspended()) else {
        return;
    };
    p.psd().suspended.retain(|suspended| suspended.by != by);
    if !p.is_suspended() {
        p.resume_timers();
    }
}

/// Ends the suspension of a process that has suspended itself.
pub(crate) fn go_on(pid: Pid) {
    deliver(pid, Signal::request(|p| resume(p, NOBODY)));
}

impl Process {
    /// Whether it is suspended and may not run for now. Where a recorded run is followed, a process goes on to its last step: it
    /// was suspended in another place, and others may wait for what it had done there.
    #[inline]
    pub(crate) fn is_held(&self) -> bool {
        self.is_suspended() && !self.is_replayed()
    }

    /// A suspension of it begins: its timers stand still with it.
    pub(crate) fn suspend_for(&mut self, suspended: Suspended) {
        if !self.is_suspended() && !self.is_replayed() {
            self.pause_timers();
        }
        self.psd().suspended.push(suspended);
    }

    /// It stands still until every scheduler has passed a quiescent point: all of them see then what it has done.
    pub(crate) fn suspend_until_progress(&self) {
        self.suspend_itself();
        let pid = self.pid();
        sched::thread_progress().later(move || go_on(pid));
    }

    /// It stands still until [`go_on`], whatever messages come.
    pub(crate) fn suspend_itself(&self) {
        self.suspend(None);
    }

    /// As [`Process::suspend_itself`], in a BIF that its code calls. Meanwhile it is shown in `function`.
    pub(crate) fn suspend_in(&self, function: Function) {
        self.suspend(Some(function));
    }

    fn suspend(&self, function: Option<Function>) {
        let (_, mut suspended) = Suspending::new(NOBODY);
        suspended.function = function;
        suspended.activate();
        self.psd().suspended.push(suspended);
    }

    /// The BIF that it waits in, of [`Process::suspend_in`].
    pub(crate) fn suspended_in(&self) -> Option<Function> {
        let function = |psd: &super::Psd| psd.suspended.iter().find_map(|by| by.function);
        self.with_psd(function).flatten()
    }
}

impl Drop for Suspended {
    fn drop(&mut self) {
        self.stage.0.store(OVER, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suspension_is_outstanding_then_active_then_over() {
        let (suspending, suspended) = Suspending::new(Pid(1));
        let seen = |suspending: &Suspending| (suspending.is_active(), suspending.is_over());
        assert_eq!(seen(&suspending), (false, false));
        suspended.activate();
        assert_eq!(seen(&suspending), (true, false));
        drop(suspended);
        assert_eq!(seen(&suspending), (false, true));
    }
}
