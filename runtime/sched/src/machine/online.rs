//! Decides which schedulers run processes: those that are online, or the first alone while a process blocks the others.
//! Source: `erts_set_schedulers_online()`, `erts_block_multi_scheduling()`, OTP 29.
//!
//! A process is known by its number in the process table.
//!
//! A scheduler above the limit gives its processes away and sleeps. It wakes for its own timers only.

use super::machine;
use crate::parker::Parker;
use beamline_runtime_base::sync::{AtomicUsize, Mutex, Ordering, lock};
use std::sync::atomic::AtomicBool;

/// Whether a process has ever blocked the others.
static HAS_BLOCKED: AtomicBool = AtomicBool::new(false);

/// Whether a process blocks the dirty schedulers, too.
static DIRTY_BLOCKED: AtomicBool = AtomicBool::new(false);

/// Are the dirty schedulers blocked? Then the one ordinary scheduler that runs takes turns with them.
#[inline]
pub fn are_dirty_blocked() -> bool {
    DIRTY_BLOCKED.load(Ordering::Acquire)
}

/// Which schedulers run processes.
pub struct Online {
    /// Schedulers from this one on run nothing.
    limit: AtomicUsize,
    /// How many run nothing now.
    pub suspended: AtomicUsize,
    wishes: Mutex<Wishes>,
    /// Where those sleep, by number.
    pub parkers: Box<[Parker]>,
}

/// The settings that the limit follows from.
struct Wishes {
    online: usize,
    /// Processes that block the others: what kind of block, how often, and whether they wait for it
    /// to be in force.
    blockers: Vec<Blocker>,
}

struct Blocker {
    pid: u64,
    /// Of normal schedulers only, `block_normal`.
    normal: bool,
    count: usize,
    waiting: bool,
}

impl Online {
    /// All of `schedulers` are online.
    pub fn new(schedulers: usize) -> Online {
        Online {
            limit: AtomicUsize::new(schedulers),
            suspended: AtomicUsize::new(0),
            wishes: Mutex::new(Wishes {
                online: schedulers,
                blockers: Vec::new(),
            }),
            parkers: (0..schedulers).map(|_| Parker::new()).collect(),
        }
    }

    /// How many schedulers may run processes.
    #[inline]
    pub fn limit(&self) -> usize {
        self.limit.load(Ordering::Acquire)
    }

    /// Has the limit follow what is wished.
    fn adjust(&self, wishes: &Wishes) {
        let limit = if wishes.blockers.is_empty() {
            wishes.online
        } else {
            1
        };
        let all = wishes.blockers.iter().any(|blocker| !blocker.normal);
        DIRTY_BLOCKED.store(all, Ordering::Release);
        self.limit.store(limit, Ordering::Release);
        self.parkers[..limit].iter().for_each(Parker::unpark);
        // Who sleeps above the limit must not be taken for one that could be woken for work.
        machine().parking.wake_all();
    }
}

/// Schedulers that are online.
#[must_use]
pub fn schedulers_online() -> usize {
    lock(&machine().online.wishes).online
}

/// How many schedulers may run processes now.
#[must_use]
pub fn schedulers_active() -> usize {
    machine().online.limit()
}

/// Sets how many schedulers are online, from 1 to all; tells the old number.
pub fn set_schedulers_online(online: usize) -> usize {
    let state = &machine().online;
    let mut wishes = lock(&state.wishes);
    let old = std::mem::replace(&mut wishes.online, online);
    state.adjust(&wishes);
    old
}

/// How the other schedulers are blocked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocking {
    /// They are not.
    Enabled,
    /// Those for dirty work, too.
    Blocked,
    /// Those for dirty work are not.
    BlockedNormal,
}

/// Whether the other schedulers are blocked.
pub fn blocking() -> Blocking {
    let wishes = lock(&machine().online.wishes);
    match wishes.blockers.iter().map(|blocker| blocker.normal).min() {
        None => Blocking::Enabled,
        Some(false) => Blocking::Blocked,
        Some(true) => Blocking::BlockedNormal,
    }
}

/// The process `pid` blocks the other schedulers, once more. `false` while some still run, or a dirty one that is to be
/// blocked, as `dirty_run` tells then: it asks again in its next slice.
pub fn block(pid: u64, normal: bool, dirty_run: impl FnOnce() -> bool) -> bool {
    HAS_BLOCKED.store(true, Ordering::Relaxed);
    let state = &machine().online;
    let mut wishes = lock(&state.wishes);
    let known = |blocker: &&mut Blocker| blocker.pid == pid && blocker.normal == normal;
    let blocker = match wishes.blockers.iter_mut().find(known) {
        Some(blocker) => {
            blocker.count += usize::from(!blocker.waiting);
            blocker
        }
        None => {
            wishes.blockers.push(Blocker {
                pid,
                normal,
                count: 1,
                waiting: true,
            });
            state.adjust(&wishes);
            wishes.blockers.last_mut().expect("pushed just now")
        }
    };
    let all_but_one = super::schedulers() - 1;
    let others_run = state.suspended.load(Ordering::Acquire) != all_but_one;
    blocker.waiting = others_run || !normal && dirty_run();
    !blocker.waiting
}

/// The process `pid` blocks the other schedulers once less.
pub fn unblock(pid: u64, normal: bool) {
    let state = &machine().online;
    let mut wishes = lock(&state.wishes);
    let blockers = &mut wishes.blockers;
    for blocker in blockers.iter_mut() {
        if blocker.pid == pid && blocker.normal == normal {
            blocker.count -= 1;
        }
    }
    blockers.retain(|blocker| blocker.count > 0);
    state.adjust(&wishes);
}

/// The process `pid` exits: it blocks nobody any more. Whether it has.
#[inline]
pub fn forget_blocker(pid: u64) -> bool {
    if !HAS_BLOCKED.load(Ordering::Relaxed) {
        return false;
    }
    let state = &machine().online;
    let mut wishes = lock(&state.wishes);
    let before = wishes.blockers.len();
    wishes.blockers.retain(|blocker| blocker.pid != pid);
    let has_blocked = wishes.blockers.len() != before;
    if has_blocked {
        state.adjust(&wishes);
    }
    has_blocked
}

/// The processes that block the other schedulers, each as often as it does.
pub fn blockers(normal: bool) -> Vec<u64> {
    let wishes = lock(&machine().online.wishes);
    let blockers = wishes.blockers.iter().filter(|b| b.normal == normal);
    blockers
        .flat_map(|blocker| std::iter::repeat_n(blocker.pid, blocker.count))
        .collect()
}
