//! Monitors on the time offset, and the check that tells them that it has changed.

use std::collections::BTreeMap;

use parking_lot::Mutex;

use super::refs::{RefNumbers, reference_of};
use super::seq_token::Mark;
use super::{Process, Signal, deliver};
use crate::heap::Message;
use crate::sched::{clock, timers};
use crate::sys::chance::clock::may_be_set;
use crate::term::{Atom, Pid, am};

/// How often the offset is compared with the system's clock. Source: `ERTS_LONG_TIME_CORRECTION_CHECK`.
const CHECK_MS: u64 = 60_000;

static MONITORS: Mutex<BTreeMap<RefNumbers, Pid>> = Mutex::new(BTreeMap::new());

pub(super) fn monitor(reference: RefNumbers, pid: Pid) {
    MONITORS.lock().insert(reference, pid);
}

pub(super) fn demonitor(reference: RefNumbers) {
    MONITORS.lock().remove(&reference);
}

/// Has the offset follow the system's clock from now on, if that can be set.
pub(crate) fn follow() {
    if !may_be_set() {
        return;
    }
    if let Some(offset) = clock::follow_system() {
        changed(offset);
    }
    timers::run_after(CHECK_MS, follow);
}

/// `system_flag(time_offset, finalize)`: the state it was in.
pub(crate) fn finalize() -> Atom {
    let before = Atom::new(clock::time_offset_state());
    if let Some(offset) = clock::finalize_offset() {
        changed(offset);
    }
    before
}

/// Tells all who monitor it.
pub(super) fn changed(offset: i64) {
    let monitors = MONITORS.lock().clone();
    for (reference, pid) in monitors {
        let tell = move |p: Option<&mut Process>| {
            if let Some(p) = p {
                p.time_offset_changed(reference, offset);
            }
        };
        deliver(pid, Signal::request(tell));
    }
}

impl Process {
    fn time_offset_changed(&mut self, reference: RefNumbers, offset: i64) {
        let known = self.some_relations().and_then(|relations| {
            let origin = relations.origins.get(&reference)?;
            let tag = origin.tag.as_ref().map(|tag| Message::copy_of(tag.term()));
            Some((tag, origin.priority))
        });
        let Some((tag, priority)) = known else { return };
        let pid = self.pid();
        self.push_own(Mark::KEEPS, super::order::Source::NOTICE, priority, |p| {
            let tag = tag.map_or(Atom::term(am::CHANGE), |tag| p.attach(tag));
            let reference = reference_of(p, reference, pid);
            let (what, clock) = (am::time_offset.term(), am::clock_service.term());
            p.tuple(&[tag, reference, what, clock, p.integer(offset)])
        });
    }
}
