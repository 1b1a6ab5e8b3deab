//! The part of a process that others may touch, and the table that finds it by its pid.
//!
//! Invariants:
//! - S1: `home` is written and read only by the thread that began the process's time slice (`run_state`: QUEUED to
//!   RUNNING) and has not ended it, or before the process is first woken, or by the thread that has woken it and not yet
//!   put it in a run queue. While no other thread begins a time slice, this one reads it of any process that rests.
//! - S2: a process is taken out of the table only in its last time slice, so that one that is queued (or runs) is
//!   alive: run queues hold plain pointers.

use std::cell::UnsafeCell;
use std::collections::BTreeSet;
use std::fmt;
use std::mem::offset_of;
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU16, AtomicU32, AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::order::replay;
use super::probe::{self, probes};
use super::refs::RefNumbers;
use super::{Process, Signal};
use crate::sched::ptab::{self, Guard, PTab, PTabElement};
use crate::sched::run_queue::Priority;
use crate::sched::run_state::RunState;
use crate::sched::sig_queue::SigQueue;
use crate::term::{Atom, Pid, am};

/// In `name`: exiting, so that no name can be given to it any more.
const NAMELESS: u32 = u32::MAX;

/// The timers that are for a process and end with it.
#[derive(Default)]
struct OwnTimers {
    timers: BTreeSet<RefNumbers>,
    /// Their time stands still, as the process is suspended.
    paused: bool,
    /// It has exited: there will be no others.
    closed: bool,
}

/// Whether a timer that is for a process counts its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimerState {
    /// It does.
    Runs,
    /// It does not, as the process is suspended.
    Paused,
    /// The process is gone.
    Gone,
}

const NOT_LIFTED: u8 = u8::MAX;

fn as_priority(number: u8) -> Priority {
    match number {
        0 => Priority::Max,
        1 => Priority::High,
        3 => Priority::Low,
        _ => Priority::Normal,
    }
}

/// The part of a process that others may touch.
pub struct ProcShared {
    pid: Pid,
    pub(crate) signals: SigQueue<Signal>,
    pub(crate) run_state: RunState,
    /// Which sessions trace it, and how.
    pub(crate) tracee: probe::Tracee,
    priority: AtomicU8,
    /// The priority of the process that waits for it to handle a signal, where that is higher; else [`NOT_LIFTED`].
    lifted: AtomicU8,
    /// Index of the atom it is registered as, plus one; 0 for none, [`NAMELESS`] once it exits.
    name: AtomicU32,
    timers: Mutex<OwnTimers>,
    /// The scheduler that it runs on, counted from 1; 0 for any.
    bound: AtomicU16,
    system: bool,
    /// A dirty scheduler runs its call.
    dirty_running: AtomicBool,
    /// It exits while it is away.
    orphans_call: AtomicBool,
    /// It gives up what it owns, and gets nothing more.
    gives_up: AtomicBool,
    home: UnsafeCell<Option<Box<Process>>>,
}

// SAFETY: S1: `home` is reached by one thread at a time; the rest is made for sharing.
unsafe impl Sync for ProcShared {}
// SAFETY: a process moves between threads whole (P1).
unsafe impl Send for ProcShared {}

impl PTabElement for ProcShared {
    fn data(&self) -> u64 {
        self.pid.0
    }
}

impl fmt::Debug for ProcShared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<0.{}.{}>", self.pid.number(), self.pid.serial())
    }
}

impl ProcShared {
    /// Offset of its pid, in bytes.
    pub(crate) const PID: usize = offset_of!(ProcShared, pid);
    /// Offset of the name that it is registered as, in bytes.
    pub(crate) const NAME: usize = offset_of!(ProcShared, name);
    /// Offset of where it rests while it does not run, in bytes.
    pub(crate) const HOME: usize = offset_of!(ProcShared, home);

    /// From now on it gives up what it owns.
    pub(super) fn begin_to_give_up(&self) {
        self.gives_up.store(true, Ordering::SeqCst);
    }

    /// Whether it may be given what it is to own: the caller holds the lock of what processes own.
    pub(crate) fn may_own(&self) -> bool {
        !self.gives_up.load(Ordering::SeqCst)
    }

    pub(crate) fn new(pid: Pid, priority: Priority, system: bool) -> ProcShared {
        ProcShared {
            pid,
            signals: SigQueue::new(),
            run_state: RunState::new(),
            tracee: probe::Tracee::default(),
            priority: AtomicU8::new(priority as u8),
            lifted: AtomicU8::new(NOT_LIFTED),
            name: AtomicU32::new(0),
            timers: Mutex::default(),
            bound: AtomicU16::new(0),
            system,
            dirty_running: AtomicBool::new(false),
            orphans_call: AtomicBool::new(false),
            gives_up: AtomicBool::new(false),
            home: UnsafeCell::new(None),
        }
    }

    /// Its pid.
    #[inline]
    #[must_use]
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Made by the runtime for itself.
    #[must_use]
    pub(crate) fn is_system(&self) -> bool {
        self.system
    }

    /// Whether a dirty scheduler runs its call. May be stale.
    #[must_use]
    pub(crate) fn is_dirty_running(&self) -> bool {
        self.dirty_running.load(Ordering::Acquire)
    }

    /// Whether it has exited, or begun to, and its call goes on.
    #[must_use]
    pub(crate) fn orphans_call(&self) -> bool {
        self.orphans_call.load(Ordering::Acquire)
    }

    pub(super) fn note_orphan(&self) {
        self.orphans_call.store(true, Ordering::Release);
    }

    pub(super) fn set_dirty_running(&self, runs: bool) {
        self.dirty_running.store(runs, Ordering::Release);
    }

    /// Its priority.
    #[must_use]
    pub fn priority(&self) -> Priority {
        as_priority(self.priority.load(Ordering::Relaxed))
    }

    /// The scheduler that it is bound to, from 0.
    #[inline]
    pub(crate) fn bound_to(&self) -> Option<usize> {
        usize::from(self.bound.load(Ordering::Relaxed)).checked_sub(1)
    }

    /// Binds it to a scheduler, counted from 1, or with 0 to none; the old one.
    pub(crate) fn bind(&self, scheduler: u16) -> u16 {
        self.bound.swap(scheduler, Ordering::Relaxed)
    }

    /// The priority that it waits in a run queue with: higher than its own while it is lifted.
    #[inline]
    pub(crate) fn run_priority(&self) -> Priority {
        let own = self.priority.load(Ordering::Relaxed);
        as_priority(own.min(self.lifted.load(Ordering::Acquire)))
    }

    /// Lifts it to `priority` until it has handled its signals; `false` when it is as high already.
    pub(crate) fn lift(&self, priority: Priority) -> bool {
        self.run_priority() > priority && {
            self.lifted.fetch_min(priority as u8, Ordering::AcqRel);
            true
        }
    }

    /// Its time slice begins: ends the lift; what it was lifted to.
    pub(crate) fn end_lift(&self) -> Option<Priority> {
        if self.lifted.load(Ordering::Relaxed) == NOT_LIFTED {
            return None;
        }
        let lifted = self.lifted.swap(NOT_LIFTED, Ordering::AcqRel);
        let own = self.priority.load(Ordering::Relaxed);
        (lifted < own).then(|| as_priority(lifted))
    }

    pub(crate) fn set_priority(&self, priority: Priority) {
        self.priority.store(priority as u8, Ordering::Relaxed);
    }

    /// The name it is registered as.
    #[must_use]
    pub fn name(&self) -> Option<Atom> {
        match self.name.load(Ordering::Acquire) {
            0 | NAMELESS => None,
            index => Some(Atom::from_index(index - 1)),
        }
    }

    /// Has it no name, and may it get one? Errors: as `register/2` tells them.
    pub(super) fn check_nameable(&self) -> Result<(), Atom> {
        match self.name.load(Ordering::Acquire) {
            0 => Ok(()),
            NAMELESS => Err(am::notalive),
            _ => Err(am::registered_name),
        }
    }

    /// Notes its name; `false` when it has one, or exits. Under the registry's lock.
    pub(super) fn set_name(&self, name: Atom) -> bool {
        let index = name.index() + 1;
        self.name
            .compare_exchange(0, index, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }

    /// It has no name any more. Under the registry's lock.
    pub(super) fn clear_name(&self, name: Atom) {
        let index = name.index() + 1;
        let _ = self
            .name
            .compare_exchange(index, 0, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// Gives up the name that it has, if any. Under the registry's lock.
    pub(super) fn take_name(&self) -> Option<Atom> {
        let name = self.name()?;
        self.clear_name(name);
        Some(name)
    }

    /// From now on it gets no name. Gives back the one it has, which its caller unregisters.
    pub(super) fn refuse_names(&self) -> Option<Atom> {
        match self.name.swap(NAMELESS, Ordering::AcqRel) {
            0 | NAMELESS => None,
            index => Some(Atom::from_index(index - 1)),
        }
    }

    /// Notes a timer that is for it.
    pub(crate) fn add_timer(&self, timer: RefNumbers) -> TimerState {
        let mut own = self.timers.lock();
        if own.closed {
            return TimerState::Gone;
        }
        own.timers.insert(timer);
        if own.paused {
            TimerState::Paused
        } else {
            TimerState::Runs
        }
    }

    /// A timer that was for it has gone off, or was cancelled.
    pub(crate) fn remove_timer(&self, timer: RefNumbers) {
        self.timers.lock().timers.remove(&timer);
    }

    /// Has those timers that are set from now on stand still, or not; tells those that there are.
    pub(super) fn pause_timers(&self, paused: bool) -> Vec<RefNumbers> {
        let mut own = self.timers.lock();
        own.paused = paused;
        own.timers.iter().copied().collect()
    }

    /// It exits: gives up its timers, and gets no others.
    pub(super) fn close_timers(&self) -> Vec<RefNumbers> {
        let mut own = self.timers.lock();
        own.closed = true;
        std::mem::take(&mut own.timers).into_iter().collect()
    }

    /// Takes the process out of its resting place.
    ///
    /// # Safety
    /// S1: the caller began its time slice.
    pub(crate) unsafe fn take_home(&self) -> Option<Box<Process>> {
        // SAFETY: S1.
        unsafe { (*self.home.get()).take() }
    }

    /// Lays the process to rest.
    ///
    /// # Safety
    /// S1: the caller began its time slice and ends it next, or the process has not been woken yet.
    pub(crate) unsafe fn put_home(&self, process: Box<Process>) {
        // SAFETY: S1.
        unsafe { *self.home.get() = Some(process) };
    }

    /// The process in its resting place.
    ///
    /// # Safety
    /// S1: the caller has woken it, and has put it in no queue yet.
    #[inline]
    #[expect(clippy::mut_from_ref, reason = "S1: the caller is alone with it")]
    pub(super) unsafe fn at_home(&self) -> Option<&mut Process> {
        // SAFETY: S1.
        unsafe { (*self.home.get()).as_deref_mut() }
    }

    /// The process, if it rests.
    ///
    /// # Safety
    /// S1: no other thread begins a time slice: there is none, or schedulers are blocked. This one begins none of the process
    /// as long as it has the reference.
    pub(crate) unsafe fn resting(&self) -> Option<&Process> {
        // SAFETY: S1.
        unsafe { (*self.home.get()).as_deref() }
    }

    /// See [`RunState::runs_unawares`].
    pub(crate) fn runs_unawares(&self) -> bool {
        self.run_state.runs_unawares()
    }

    /// Asks for a time slice of the process, on the scheduler of this thread if it is one.
    #[inline]
    pub(crate) fn wake(&self) {
        if self.becomes_queued() {
            self.enqueue();
        }
    }

    /// Puts it in a run queue: it has just been woken by this thread.
    #[inline]
    pub(super) fn enqueue(&self) {
        super::run_queues::enqueue(ProcRef(NonNull::from(self)));
    }

    /// As [`ProcShared::wake`], by a thread that is no scheduler: in the queue of the scheduler that it ran on last.
    pub(super) fn wake_near(&self, scheduler: usize) {
        if self.becomes_queued() {
            super::run_queues::enqueue_near(ProcRef(NonNull::from(self)), scheduler);
        }
    }

    fn becomes_queued(&self) -> bool {
        if probe::asks(probe::PROCS) {
            self.wake_profiled()
        } else {
            self.run_state.wake()
        }
    }

    #[cold]
    fn wake_profiled(&self) -> bool {
        let place = || {
            // SAFETY: S1: woken by this thread, which has put it in no queue yet.
            let home = unsafe { self.at_home() };
            home.map(|p| probes().place(p))
        };
        probes().wake(self.pid, &|| self.run_state.wake(), &place)
    }
}

/// A process in a run queue: S2 keeps it alive.
#[derive(Clone, Copy)]
pub(crate) struct ProcRef(NonNull<ProcShared>);

// SAFETY: S2: it stands for a `&ProcShared`, which is `Sync`.
unsafe impl Send for ProcRef {}

impl ProcRef {
    /// # Safety
    /// S2: the process is queued, or runs on this thread, as long as the result is used.
    pub(crate) unsafe fn get<'a>(self) -> &'a ProcShared {
        // SAFETY: S2.
        unsafe { self.0.as_ref() }
    }
}

static PROCESS_LIMIT: AtomicUsize = AtomicUsize::new(1_048_576);

/// Sets how many processes there may be at once (`+P`); only before the first one is made.
pub(crate) fn set_process_limit(limit: usize) {
    PROCESS_LIMIT.store(limit, Ordering::Relaxed);
}

/// The process table.
pub fn table() -> &'static PTab<ProcShared> {
    static TABLE: OnceLock<PTab<ProcShared>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let limit = PROCESS_LIMIT.load(Ordering::Relaxed);
        match replay::last_pid() {
            None => PTab::new(limit),
            Some(last) => PTab::above(limit, last.0),
        }
    })
}

/// The process with this pid, if it is alive.
#[inline]
pub fn lookup(pid: Pid, guard: &Guard) -> Option<&ProcShared> {
    table().get(pid.0, guard)
}

/// Is there a process with this pid (it may be exiting)?
#[must_use]
pub fn exists(pid: Pid) -> bool {
    lookup(pid, &ptab::pin()).is_some()
}

/// Sends `signal`.
///
/// # Errors
/// Gives the signal back when the process is gone.
#[inline]
pub(crate) fn send(to: Pid, signal: Signal) -> Result<(), Signal> {
    let guard = ptab::pin();
    let Some(target) = lookup(to, &guard) else {
        return Err(signal);
    };
    if target.signals.push(signal)? {
        target.wake();
    }
    Ok(())
}

/// Sends a signal whose answer `from` waits for: the receiver handles it with the priority of `from` at
/// least, so that others of a priority between the two cannot hold it up.
///
/// # Errors
/// Gives the signal back when the process is gone.
pub(crate) fn ask(from: &Process, to: Pid, signal: Signal) -> Result<(), Signal> {
    ask_with(from.shared().priority(), to, signal)
}

/// As [`ask`], with a priority of its own.
///
/// # Errors
/// As [`ask`].
pub(crate) fn ask_with(priority: Priority, to: Pid, signal: Signal) -> Result<(), Signal> {
    let guard = ptab::pin();
    let Some(target) = lookup(to, &guard) else {
        return Err(signal);
    };
    let lifted = target.lift(priority);
    if target.signals.push(signal)? {
        target.wake();
    }
    if lifted {
        super::run_queues::promote(target);
    }
    Ok(())
}

/// Sends `signal`; when the process is gone, answers it as a process that is gone would.
#[inline]
pub(crate) fn deliver(to: Pid, signal: Signal) {
    if let Err(signal) = send(to, signal) {
        signal.answer_for_gone(to);
    }
}

/// Signals of one process to many, whose receivers are woken when all are sent: nobody acts on one of them before the
/// others have come. ERTS has no such rule, but there a woken process seldom runs before the sender is done, and programs
/// count on it.
pub(crate) struct Together<'g> {
    guard: &'g Guard,
    woken: Vec<&'g ProcShared>,
}

impl<'g> Together<'g> {
    pub(crate) fn new(guard: &'g Guard) -> Self {
        let woken = Vec::new();
        Self { guard, woken }
    }

    /// As [`deliver`].
    pub(crate) fn deliver(&mut self, to: Pid, signal: Signal) {
        let Some(target) = lookup(to, self.guard) else {
            return signal.answer_for_gone(to);
        };
        match target.signals.push(signal) {
            Ok(is_first) => self.woken.extend(is_first.then_some(target)),
            Err(signal) => signal.answer_for_gone(to),
        }
    }
}

impl Drop for Together<'_> {
    fn drop(&mut self) {
        for target in self.woken.drain(..) {
            target.wake();
        }
    }
}

static INIT: std::sync::OnceLock<Pid> = std::sync::OnceLock::new();

/// The first process.
///
/// # Panics
/// Before the machine has started.
#[must_use]
pub(crate) fn init_pid() -> Pid {
    *INIT.get().expect("the machine has started")
}

/// Says which process is the first one. The first call counts.
pub(crate) fn set_init_pid(pid: Pid) {
    let _ = INIT.set(pid);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(priority: Priority) -> ProcShared {
        ProcShared::new(Pid(0), priority, false)
    }

    #[test]
    fn a_lift_ends_with_the_turn() {
        let p = process(Priority::Normal);
        assert!(!p.lift(Priority::Low) && !p.lift(Priority::Normal));
        assert_eq!(p.end_lift(), None);
        assert!(p.lift(Priority::High) && p.lift(Priority::Max) && !p.lift(Priority::High));
        assert_eq!(
            (p.run_priority(), p.priority()),
            (Priority::Max, Priority::Normal)
        );
        assert_eq!(p.end_lift(), Some(Priority::Max));
        assert_eq!((p.run_priority(), p.end_lift()), (Priority::Normal, None));
    }

    #[test]
    fn timers_end_with_their_process() {
        let p = process(Priority::Normal);
        let [a, b, c] = [[1, 0, 0], [2, 0, 0], [3, 0, 0]];
        assert_eq!(p.add_timer(a), TimerState::Runs);
        assert_eq!(p.pause_timers(true), [a]);
        assert_eq!(p.add_timer(b), TimerState::Paused);
        p.remove_timer(a);
        assert_eq!(p.pause_timers(false), [b]);
        assert_eq!(p.close_timers(), [b]);
        assert_eq!(p.add_timer(c), TimerState::Gone);
    }

    #[test]
    fn who_is_bound_knows_where() {
        let p = process(Priority::Normal);
        assert_eq!((p.bound_to(), p.bind(2), p.bound_to()), (None, 0, Some(1)));
        assert_eq!((p.bind(0), p.bound_to()), (2, None));
    }
}
