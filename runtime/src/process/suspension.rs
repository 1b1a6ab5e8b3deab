//! The suspension of one process by another, with an end for each of them.

use std::sync::Arc;

use super::Process;
use crate::sync::{AtomicU32, Ordering};
use crate::term::Pid;

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

/// The suspendee's end. The suspension is over when it is dropped.
pub(crate) struct Suspended {
    pub(crate) by: Pid,
    stage: Arc<Stage>,
}

impl Suspending {
    /// A suspension by `by`, once: its two ends.
    pub(crate) fn new(by: Pid) -> (Suspending, Suspended) {
        let stage = Arc::<Stage>::default();
        let other = stage.clone();
        (
            Suspending { count: 1, stage },
            Suspended { by, stage: other },
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

impl Process {
    /// It stands still until it is resumed in the name of [`NOBODY`], whatever messages come.
    pub(crate) fn suspend_itself(&self) {
        let (_, suspended) = Suspending::new(NOBODY);
        suspended.activate();
        self.psd().suspended.push(suspended);
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
