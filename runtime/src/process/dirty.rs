//! Calls on dirty schedulers, and the processes that wait for them.
//!
//! The call is made by a stand-in: a process of its own with the same identity, and the caller's registers and work.
//! Its heap has no block, so that what it builds is in fragments. The caller stays in its `ProcShared` meanwhile, and
//! ordinary schedulers handle its signals. It is not collected and runs no code until it comes back: then the stand-in's heap
//! becomes part of its own, and what the call has come to is its own work.
//!
//! A caller that exits is gone for everybody at once. Its heap stays until the call has ended, and what the call comes
//! to is dropped.
//!
//! Source: `erl_process.c`, `erl_nif.c` (`execution_state()`, the shadow process), OTP 29. Invariants:
//! - DC1: while a process is away, nothing collects or frees its heap: the terms that its stand-in has in hand stay
//!   where they are. Others may be built there, by whoever handles its signals.
//! - DC2: a stand-in is reached by one thread at a time: by whoever has taken it out of the call.

use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};

use parking_lot::Mutex;

use super::probe::probes;
use super::seq_token::Seq;
use super::signal::Request;
use super::{Flags, ProcShared, Process};
use crate::heap::Heap;
use crate::process::{Dirty, Leaves};
use crate::sys::chance::ticks::Ticks;
use crate::term::RawTerm;

/// What a call keeps from others until it has ended.
pub(crate) type Holds = Option<Box<dyn Any + Send>>;

/// How far a call has come, and who owns the stand-in and the caller meanwhile.
enum Stage {
    /// It waits for a dirty scheduler.
    Queued(Box<Process>),
    /// One of them has the stand-in.
    Running,
    /// It has ended; what it has come to is the stand-in's work.
    Ended(Box<Process>),
    /// The caller has exited, and is kept until the call has ended.
    Orphaned(Box<Process>),
    /// The caller has exited, and the call, which is made in any case, still waits for a dirty scheduler: its stand-in,
    /// and the caller.
    QueuedOrphan(Box<Process>, Box<Process>),
    /// Nobody waits for it any more.
    Over,
}

/// How long a call has waited for a dirty scheduler and run there, in ticks of [`Ticks`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DirtyTicks {
    /// Waited.
    pub(crate) waited: u64,
    /// Run.
    pub(crate) ran: u64,
}

/// When a call was queued, when it began and when it ended; 0 where it has not.
struct Times {
    clock: Ticks,
    queued: u64,
    begun: AtomicU64,
    ended: AtomicU64,
}

impl Times {
    fn begin() -> Times {
        let clock = Ticks::clock();
        Times {
            queued: clock.now(),
            clock,
            begun: AtomicU64::new(0),
            ended: AtomicU64::new(0),
        }
    }

    fn note(&self, when: &AtomicU64) {
        when.store(self.clock.now(), Ordering::Relaxed);
    }

    /// Of a call that has ended.
    fn ticks(&self) -> DirtyTicks {
        let [begun, ended] = [&self.begun, &self.ended].map(|when| when.load(Ordering::Relaxed));
        DirtyTicks {
            waited: begun.saturating_sub(self.queued),
            ran: ended.saturating_sub(begun),
        }
    }
}

/// A call, as its process and the dirty schedulers share it.
pub(crate) struct DirtyCall {
    kind: Dirty,
    /// The scheduler that its process has left.
    from: usize,
    /// It is made in any case.
    is_due: bool,
    /// Kept where the process's calls are measured.
    times: Option<Times>,
    shared: Arc<ProcShared>,
    stage: Mutex<Stage>,
    /// What an exiting caller keeps.
    kept: OnceLock<Kept>,
}

impl DirtyCall {
    /// The dirty schedulers that it is for.
    pub(crate) fn kind(&self) -> Dirty {
        self.kind
    }

    /// Whether it waits for a dirty scheduler.
    pub(super) fn is_queued(&self) -> bool {
        matches!(
            *self.stage.lock(),
            Stage::Queued(_) | Stage::QueuedOrphan(..)
        )
    }

    fn is_running(&self) -> bool {
        matches!(*self.stage.lock(), Stage::Running)
    }

    /// Whether it runs, or is to run.
    fn is_to_end(&self) -> bool {
        match *self.stage.lock() {
            Stage::Running => true,
            Stage::Queued(_) => self.is_due,
            _ => false,
        }
    }

    /// A dirty scheduler begins it: the stand-in, unless the call has been taken back.
    pub(crate) fn begin(&self) -> Option<Box<Process>> {
        let mut stage = self.stage.lock();
        match std::mem::replace(&mut *stage, Stage::Over) {
            Stage::Queued(stand_in) => {
                *stage = Stage::Running;
                if let Some(times) = &self.times {
                    times.note(&times.begun);
                }
                self.shared.set_dirty_running(true);
                Some(stand_in)
            }
            Stage::QueuedOrphan(stand_in, caller) => {
                *stage = Stage::Orphaned(caller);
                Some(stand_in)
            }
            Stage::Over => None,
            _ => unreachable!("a call is begun once"),
        }
    }

    /// It has ended on the scheduler that began it: wakes the caller, if there is one.
    pub(crate) fn end(&self, stand_in: Box<Process>) {
        if let Some(times) = &self.times {
            times.note(&times.ended);
        }
        let mut stage = self.stage.lock();
        self.shared.set_dirty_running(false);
        match std::mem::replace(&mut *stage, Stage::Over) {
            Stage::Running => {
                *stage = Stage::Ended(stand_in);
                drop(stage);
                self.shared.wake_near(self.from);
            }
            Stage::Orphaned(caller) => {
                drop(stage);
                // Its terms may be named by the stand-in's.
                drop(stand_in);
                drop(caller);
            }
            _ => unreachable!("a call ends once, after its beginning"),
        }
    }

    /// The stand-in, if the call has not begun and need not be made: then it never does.
    fn take_queued(&self) -> Option<Box<Process>> {
        let mut stage = self.stage.lock();
        match std::mem::replace(&mut *stage, Stage::Over) {
            Stage::Queued(stand_in) if !self.is_due => Some(stand_in),
            other => {
                *stage = other;
                None
            }
        }
    }

    /// The stand-in, if the call has ended.
    fn take_ended(&self) -> Option<Box<Process>> {
        let mut stage = self.stage.lock();
        match std::mem::replace(&mut *stage, Stage::Over) {
            Stage::Ended(stand_in) => Some(stand_in),
            other => {
                *stage = other;
                None
            }
        }
    }

    /// The caller has ended: it is kept where the call still runs.
    fn keep_until_end(&self, caller: Box<Process>) {
        let mut stage = self.stage.lock();
        match std::mem::replace(&mut *stage, Stage::Over) {
            Stage::Running => *stage = Stage::Orphaned(caller),
            Stage::Queued(stand_in) if self.is_due => {
                *stage = Stage::QueuedOrphan(stand_in, caller);
            }
            Stage::Queued(stand_in) | Stage::Ended(stand_in) => {
                drop(stage);
                drop(stand_in);
                drop(caller);
            }
            Stage::Orphaned(_) | Stage::QueuedOrphan(..) | Stage::Over => {
                unreachable!("a process ends once, and is away")
            }
        }
    }
}

/// What a process has put off until it comes back.
#[derive(Default)]
pub(super) struct UntilBack(Vec<Request>);

impl Process {
    /// Leaves scheduler `from` for dirty ones. Its registers are at rest.
    pub(crate) fn leave(&mut self, leaves: Leaves, from: usize) -> Arc<DirtyCall> {
        debug_assert!(self.dirty.is_none(), "a process makes one call at a time");
        let call = Arc::new(DirtyCall {
            kind: leaves.to,
            from,
            is_due: leaves.is_due,
            times: self.meters.is_some().then(Times::begin),
            shared: self.shared.clone(),
            stage: Mutex::new(Stage::Queued(Box::new(self.stand_in()))),
            kept: OnceLock::new(),
        });
        self.dirty = Some(call.clone());
        call
    }

    fn stand_in(&self) -> Process {
        let mut stand_in = Process::with_heap(self.shared.clone(), Heap::detached());
        stand_in.pc = self.pc.clone();
        stand_in.native_pc = self.native_pc.clone();
        stand_in.live = self.live.clone();
        stand_in.saved_x = self.saved_x.clone();
        stand_in.set_group_leader(self.group_leader());
        stand_in.set_parent(self.parent());
        stand_in.initial_call = self.initial_call.clone();
        let flags = self.flags.get();
        stand_in.flags.set(Flags {
            saves_calls: false,
            ..flags
        });
        stand_in.set_names_made(self.names_made());
        let work = self
            .psd
            .borrow_mut()
            .as_mut()
            .and_then(|psd| psd.work.take());
        if work.is_some() {
            stand_in.psd().work = work;
        }
        if flags.seq_token {
            let seq = self.with_psd(|psd| psd.seq.as_deref().map(Seq::without_messages));
            stand_in.psd().seq = seq.flatten().map(Box::new);
        }
        stand_in
    }

    /// Whether it has left for dirty schedulers, and has not come back: it runs no code, and is not collected.
    #[inline]
    pub(crate) fn is_away(&self) -> bool {
        self.dirty.is_some()
    }

    /// Whether it stands in for a process that is away.
    pub(crate) fn is_stand_in(&self) -> bool {
        self.heap.block_words() == 0
    }

    /// Whether a dirty scheduler runs its call.
    pub(crate) fn runs_dirty(&self) -> bool {
        self.dirty.as_ref().is_some_and(|call| call.is_running())
    }

    /// Comes back, if its call has ended.
    #[inline]
    pub(crate) fn come_back(&mut self) {
        if self.is_away() {
            self.come_back_from_call();
        }
    }

    fn come_back_from_call(&mut self) {
        let ended = self.dirty.as_ref().and_then(|call| call.take_ended());
        if let Some(stand_in) = ended {
            let call = self.dirty.clone();
            self.take_over(stand_in);
            if let Some(call) = call
                && let Some(times) = &call.times
            {
                probes().charge_dirty(self, call.kind, &times.ticks());
            }
        }
    }

    /// Comes back, unless its call runs or is made in any case. A call that has not begun is made again.
    pub(crate) fn call_back(&mut self) {
        self.come_back();
        let queued = self.dirty.as_ref().and_then(|call| call.take_queued());
        if let Some(stand_in) = queued {
            self.take_over(stand_in);
        }
    }

    fn take_over(&mut self, stand_in: Box<Process>) {
        self.dirty = None;
        self.set_names_made(stand_in.names_made());
        let Process { heap, psd, .. } = *stand_in;
        let before = self.allocated_words();
        self.heap.adopt(heap);
        self.put_off_dirty_words(self.allocated_words().saturating_sub(before) as usize);
        if let Some(psd) = psd.into_inner() {
            let mut own = self.psd();
            own.work = psd.work;
            if let (Some(own), Some(seq)) = (&mut own.seq, psd.seq) {
                own.take_over(*seq);
            }
        }
        if let Some(UntilBack(requests)) = self
            .psd
            .get_mut()
            .as_mut()
            .and_then(|psd| psd.until_back.take())
        {
            requests.into_iter().for_each(|request| request(Some(self)));
        }
    }

    /// Does `request` once the process stands still or goes on: at once, unless a dirty scheduler runs its call, or is to.
    pub(crate) fn when_back(&mut self, request: Request) {
        if self.dirty.as_ref().is_some_and(|call| call.is_to_end()) {
            self.psd()
                .until_back
                .get_or_insert_default()
                .0
                .push(request);
        } else {
            request(Some(self));
        }
    }

    /// It exits: keeps what its call may still read, and answers the requests that wait for its return.
    pub(super) fn leave_orphan(&mut self) {
        if let Some(call) = &self.dirty {
            call.kept.get_or_init(keep);
            self.shared.note_orphan();
        }
        let put_off = self
            .psd
            .get_mut()
            .as_mut()
            .and_then(|psd| psd.until_back.take());
        for request in put_off.unwrap_or_default().0 {
            request(None);
        }
    }

    /// Its last time slice has ended: its memory is freed, when the call that it may have left has ended.
    pub(crate) fn free(self: Box<Process>) {
        match self.dirty.clone() {
            Some(call) => call.keep_until_end(self),
            None => drop(self),
        }
    }

    /// Its registers are no scheduler's any more.
    pub(crate) fn forget_registers(&self) {
        self.x.set(std::ptr::null_mut::<RawTerm>());
        self.keep_count();
    }
}

/// What is given up while calls run that may still use it. It is freed with the last of them.
struct Given {
    up: Mutex<Option<Box<dyn Any + Send>>>,
    /// What is given up later, which they may use as well.
    later: OnceLock<Kept>,
}

/// A hold on all that is given up from now on.
type Kept = Arc<Given>;

static GIVEN: LazyLock<Mutex<Kept>> = LazyLock::new(|| Mutex::new(next()));

fn next() -> Kept {
    Arc::new(Given {
        up: Mutex::default(),
        later: OnceLock::new(),
    })
}

fn keep() -> Kept {
    GIVEN.lock().clone()
}

/// Frees `it` (code, literals) once no call of a process that is gone can use it.
pub(crate) fn give_up(it: impl Any + Send) {
    let mut given = GIVEN.lock();
    if Arc::strong_count(&given) == 1 {
        drop(given);
        drop(it);
        return;
    }
    let later = next();
    let before = std::mem::replace(&mut *given, later.clone());
    drop(given);
    *before.up.lock() = Some(Box::new(it));
    let is_first = before.later.set(later).is_ok();
    debug_assert!(is_first, "each has one successor");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_up_stays_until_earlier_holds_end() {
        let (first, second) = (Arc::new(()), Arc::new(()));
        let hold = keep();
        give_up(first.clone());
        let later = keep();
        give_up(second.clone());
        assert_eq!(
            (Arc::strong_count(&first), Arc::strong_count(&second)),
            (2, 2)
        );
        drop(hold);
        assert_eq!(
            (Arc::strong_count(&first), Arc::strong_count(&second)),
            (1, 2)
        );
        drop(later);
        assert_eq!(Arc::strong_count(&second), 1);
    }
}
