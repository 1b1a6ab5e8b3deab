//! The scheduler threads, which give processes their time slices.
//!
//! Each scheduler has a run queue. It runs the processes in it, a time slice at a time. It steals when the queue is
//! empty, and sleeps when there is nothing to steal. A scheduler that wakes a process puts it in its own queue, so that
//! two processes that talk stay together. It wakes another one when much has piled up in its queue (`sched/wakeup.rs`).
//! Between time slices a scheduler does what ports have to do whose descriptors are ready.
//!
//! Source: `erl_process.c`, OTP 29. Invariants: S1, S2 of `process/shared.rs` and P2 of `process/mod.rs`.
#![expect(
    unsafe_code,
    reason = "processes are taken from and put to their resting place"
)]

pub(crate) mod alone;
mod dirty;
mod explore;
mod seat;
mod turns;

use std::cell::{Cell, RefCell};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::code::published;
use crate::exec::exception;
use crate::heap::Heap;
use crate::process::order::turns as given;
use crate::process::run_queues::{RunQueues, run_queues};
use crate::process::{
    CONTEXT_REDS, Control, Outcome, ProcRef, Process, Signal, X_REGISTERS, deliver, dirty_queues,
    user_timers,
};
use crate::sched::parker::Woken;
use crate::sched::ptab::{self, Guard};
use crate::sched::run_state::EndRun;
use crate::sched::timers::Fire;
use crate::sched::wakeup::WakeupOther;
use crate::sched::{Machine, machine, schedulers, wake_one};
use crate::sync::{AtomicU64, Ordering};
use crate::sys::chance::clock::{self, monotonic_ns};
use crate::sys::chance::{outside, poll};
use crate::sys::halt;
use crate::sys::msacc::{self, State};
use crate::term::{Pid, RawTerm};
use crate::trace::{record, sysmon, sysprof, totals};
use crate::{interp, jit};

pub(crate) use explore::{start_from_environment as explore_from_environment, with_explored};
use seat::MayLeave;

/// Starts the scheduler threads, once.
///
/// # Panics
/// When the system refuses a thread.
pub(crate) fn start() {
    static STARTED: AtomicBool = AtomicBool::new(false);
    if STARTED.swap(true, Ordering::AcqRel) {
        return;
    }
    poll::wake_by(wake_one);
    for id in 0..schedulers() {
        std::thread::Builder::new()
            .name(format!("{}_scheduler", id + 1))
            .stack_size(STACK_BYTES)
            .spawn(move || seat::run_own(id))
            .expect("a thread for each scheduler");
    }
}

/// Stack of a scheduler's thread: match specifications are compiled and run by recursion.
const STACK_BYTES: usize = 8 << 20;

/// How often a deterministic run looks outside while it waits.
const LOOK_OUTSIDE: Duration = Duration::from_millis(1);

/// Reductions between looks at the clock while there is work. Source: `ERTS_CHECK_TIME_REDS`.
const CLOCK_REDS: i64 = CONTEXT_REDS;
/// Reductions between looks at descriptors while there is work. Source: `input_reductions` in `erl_process.c`.
const LOOK_REDS: i64 = 2 * CONTEXT_REDS;
/// What the shortest time slice counts for: it costs time that no reduction tells of.
const LEAST_TURN_REDS: i64 = CLOCK_REDS / 16;

/// A scheduler at work.
struct Scheduler {
    id: usize,
    machine: &'static Machine,
    queues: &'static RunQueues,
    /// Whether this thread may leave the seat for a call that is usually short.
    may_leave: MayLeave,
    /// A dirty scheduler has got a call from it since it slept.
    has_handed_over: Cell<bool>,
    /// Held while there is work, so that to find a receiver takes no fence each time.
    pinned: RefCell<Option<Guard>>,
    /// Time slices since what has been removed from tables was last collected.
    turns: Cell<u32>,
    /// What has piled up in its queue.
    wakeup_other: Cell<WakeupOther>,
}

/// Time slices between such collections.
const TURNS_TO_COLLECT: u32 = 16;

impl Scheduler {
    fn new(id: usize, may_leave: MayLeave) -> Scheduler {
        Scheduler {
            id,
            machine: machine(),
            queues: run_queues(),
            may_leave,
            has_handed_over: Cell::new(false),
            pinned: RefCell::new(None),
            turns: Cell::new(0),
            wakeup_other: Cell::default(),
        }
    }

    /// A time slice begins: nothing of tables is borrowed.
    #[inline]
    fn pin(&self) {
        let mut pinned = self.pinned.borrow_mut();
        let guard = pinned.get_or_insert_with(ptab::pin);
        guard.renew();
        self.turns.set(self.turns.get() + 1);
        if self.turns.get() == TURNS_TO_COLLECT {
            self.turns.set(0);
            guard.collect();
        }
    }

    /// The thread is about to wait, or to do something else for long.
    fn unpin(&self) {
        self.pinned.take();
    }

    /// Gives processes their time slices until, between two of them, `is_over`.
    fn run(&self, is_over: impl Fn() -> bool) {
        let Scheduler { id, machine, .. } = *self;
        let mut registers: Box<[RawTerm]> = vec![RawTerm::NONE; X_REGISTERS].into();
        // Since it looked at the clock, and at descriptors. One that often has nothing to run, but never sleeps, looks too.
        let (mut reds, mut unseen_reds) = (0, 0);
        while !is_over() {
            if halt::is_requested() && !explore::is_asked() {
                self.stop();
            }
            machine.progress.quiescent(id);
            if machine.progress.pending() > 0 {
                let _frees = msacc::within(State::Aux);
                machine.progress.poll();
            }
            if id >= machine.online.limit() {
                self.suspend();
            }
            if reds >= CLOCK_REDS {
                reds = 0;
                self.look_at_clock();
            }
            if unseen_reds >= LOOK_REDS {
                let _looks = msacc::within(State::CheckIo);
                if poll::look_between_slices() {
                    unseen_reds = 0;
                }
            }
            if poll::is_due() {
                let _runs_ports = msacc::within(State::Port);
                poll::take_ready();
            }
            if self.has_dirty_turn() {
                self.unpin();
                // SAFETY: P2: the registers outlive the calls.
                unsafe { self.take_dirty_turn(registers.as_mut_ptr()) };
            }
            self.share();
            if let Some(process) = self.next_process() {
                self.pin();
                let used = self.run_process(process, registers.as_mut_ptr());
                reds += used.max(LEAST_TURN_REDS);
                unseen_reds += used.max(LEAST_TURN_REDS);
            } else {
                reds = 0;
                self.unpin();
                self.idle();
            }
        }
        self.unpin();
    }

    /// The machine ends: no process runs any more, as in ERTS, so that what follows a halt is not a matter of chance.
    #[cold]
    fn stop(&self) -> ! {
        self.unpin();
        self.machine.progress.inactive(self.id);
        loop {
            std::thread::park();
        }
    }

    fn next_process(&self) -> Option<ProcRef> {
        match given::are_given() {
            true => self.next_in_turn(),
            false => self.queues.find(self.id),
        }
    }

    /// Wakes another scheduler, if more waits here than this one is to do alone.
    fn share(&self) {
        let mut other = self.wakeup_other.get();
        if other.look(self.queues.waiting(self.id), self.machine.threshold) {
            self.machine.parking.wake_below(self.id);
        }
        self.wakeup_other.set(other);
    }

    fn look_at_clock(&self) {
        record::time_passes();
        self.expire_timers();
    }

    fn expire_timers(&self) {
        let next = self.machine.timers.next_ns(self.id);
        if next == u64::MAX {
            return;
        }
        let now = monotonic_ns();
        if now >= next {
            for fire in self.machine.timers.due(self.id, now) {
                match fire {
                    Fire::Receive { pid, id } => deliver(Pid(pid), Signal::ReceiveTimeout { id }),
                    Fire::User(reference) => user_timers::fire(reference),
                    Fire::Run(run) => run(),
                }
            }
        }
    }

    /// Sleeps while scheduler `self.id` is above the limit.
    #[cold]
    fn suspend(&self) {
        self.unpin();
        self.queues.give_away(self.id);
        if poll::is_due() {
            // It has looked, and others are to call what it found.
            wake_one();
        }
        sysprof::scheduler(self.id, false);
        self.machine.progress.inactive(self.id);
        self.machine.online.suspended.fetch_add(1, Ordering::AcqRel);
        while self.id >= self.machine.online.limit() {
            self.machine.progress.poll_inactive();
            let timeout = match self.machine.timers.next_ns(self.id) {
                u64::MAX => None,
                next => Some(Duration::from_nanos(next.saturating_sub(monotonic_ns()))),
            };
            let park = || {
                let _sleeps = msacc::within(State::Sleep);
                self.machine.online.parkers[self.id].park(timeout)
            };
            self.machine.wall_time.idle(self.id, park);
            self.expire_timers();
        }
        self.machine.online.suspended.fetch_sub(1, Ordering::AcqRel);
        self.machine.progress.active(self.id);
        sysprof::scheduler(self.id, true);
    }

    /// Sleeps until there is work, or a timer is due.
    fn idle(&self) {
        self.expire_timers();
        {
            let _looks = msacc::within(State::CheckIo);
            poll::look_before_sleep();
        }
        self.machine.parking.announce(self.id);
        if self.has_work() {
            self.machine.parking.retract(self.id);
            return;
        }
        sysprof::scheduler(self.id, false);
        self.machine.progress.inactive(self.id);
        self.machine.progress.poll_inactive();
        if self.has_work() {
            // What was due, or was just told, has woken a process.
            self.machine.parking.retract(self.id);
            self.machine.progress.active(self.id);
            sysprof::scheduler(self.id, true);
            return;
        }
        if clock::stands_still() {
            if !explore::is_asked() || !self.explore() {
                self.sleep_virtual();
            }
        } else {
            self.machine.wall_time.idle(self.id, || self.sleep());
        }
        self.machine.progress.active(self.id);
        sysprof::scheduler(self.id, true);
        self.look_at_clock();
    }

    /// Whether there is something that it may run or call.
    fn has_work(&self) -> bool {
        self.queues.has_work(self.id) || poll::is_due() || self.has_dirty_turn()
    }

    /// Whether calls wait for a turn of this scheduler: the others are about to be suspended.
    fn has_dirty_turn(&self) -> bool {
        self.id == 0 && dirty_queues::waits_for_a_turn()
    }

    fn sleep(&self) {
        let timeout = match self.machine.timers.next_ns(self.id) {
            u64::MAX => None,
            next => Some(Duration::from_nanos(next.saturating_sub(monotonic_ns()))),
        };
        let (has_handed_over, parking) = (self.has_handed_over.take(), &self.machine.parking);
        let _sleeps = msacc::within(State::Sleep);
        // The turn is given back when this scheduler is no longer announced as idle, so that a waker finds it waiting.
        let waiting = poll::take_turn();
        match &waiting {
            Some(waiting) => {
                parking.sleep_outside(self.id, has_handed_over, || waiting.wait(timeout))
            }
            None if has_handed_over => parking.look_and_sleep(self.id, timeout),
            None => parking.sleep(self.id, timeout),
        };
    }

    /// Nothing can run: what is ready outside is taken in; else time jumps to the next timer, unless a program
    /// or a descriptor is waited for: then it goes on as it does outside.
    fn sleep_virtual(&self) {
        if poll::take_ready() {
            self.machine.parking.retract(self.id);
            return;
        }
        let next = self.machine.timers.next_ns(self.id);
        let goes_on_outside = outside::has_programs() || poll::is_waited_for();
        if next != u64::MAX && !goes_on_outside && clock::advance_to(next) {
            if !poll::is_any_watched() {
                totals::time_has_jumped();
            }
            self.machine.parking.retract(self.id);
            return;
        }
        let woken = self.machine.parking.sleep(self.id, Some(LOOK_OUTSIDE));
        if woken == Woken::TimedOut {
            let later = monotonic_ns().saturating_add(LOOK_OUTSIDE.as_nanos() as u64);
            clock::advance_to(later.min(next));
        }
    }

    /// One time slice of a process taken from a run queue; the reductions that it has used or given up.
    fn run_process(&self, process: ProcRef, x: *mut RawTerm) -> i64 {
        // SAFETY: S2: it was queued, and runs from here until its time slice ends.
        let shared = unsafe { process.get() };
        let _runs = msacc::within(State::Emulator);
        shared.run_state.begin_run();
        // SAFETY: S1: its time slice has begun.
        let home = unsafe { shared.take_home() };
        let mut p = home.expect("a process that is queued rests at home");
        published::set_process(&p);
        let (before, fcalls) = (p.reductions(), p.fcalls.get());
        let watched = sysmon::slice_begins(&p);
        totals::slice_begins(&p);
        // SAFETY: P2: the scheduler's registers outlive the time slice.
        let outcome = unsafe { run_slice(&mut p, x) };
        if let Some(watched) = watched {
            sysmon::slice_ended(&p, &watched);
        }
        totals::slice_ended(&p);
        let counters = &self.machine.counters[self.id];
        add(&counters.context_switches, 1);
        // A call that is made again may give back what an earlier time slice has paid for it.
        let made = p.reductions().wrapping_sub(before);
        add(&counters.reductions, made);
        let mut other = self.wakeup_other.get();
        other.count(made.cast_signed());
        self.wakeup_other.set(other);
        let used = fcalls - p.fcalls.get();
        p.end_slice(outcome);
        let is_later = given::are_given() && is_later(&p, outcome);
        let outcome = match outcome {
            Outcome::Exit(_) if !is_later => match p.terminate() {
                Ok(()) => {
                    // `p` holds what is shared until it is dropped.
                    shared.run_state.end_last_run();
                    published::clear_process();
                    p.free();
                    return used;
                }
                Err(Control::Wait) => Outcome::Wait,
                Err(_) => outcome,
            },
            outcome => outcome,
        };
        let goes_on = !matches!(outcome, Outcome::Wait | Outcome::Dirty(_));
        // One that exits handles no more signals.
        let again = goes_on || !p.is_exiting() && p.has_unhandled_signals();
        let left = match outcome {
            Outcome::Dirty(leaves) => {
                if p.shared().tracee.has(crate::trace::events::RUNNING) {
                    crate::trace::events::dirty_waits(&p, leaves.to);
                }
                Some((p.leave(leaves, self.id), leaves.is_short))
            }
            _ => None,
        };
        let place = sysprof::place_of_slice_end(&p);
        published::clear_process();
        // SAFETY: S1: its time slice ends with the next line.
        unsafe { shared.put_home(p) };
        let end = match place {
            Some(place) => sysprof::end_run(shared, again, &place),
            None => shared.run_state.end_run(again),
        };
        match end {
            EndRun::Requeue => self.queues.place(process),
            EndRun::Idle => {}
        }
        if let Some((call, is_short)) = left {
            // SAFETY: P2: its caller says so of them.
            let is_made = (is_short || explore::is_alone()) && unsafe { self.make_here(&call, x) };
            if !is_made {
                dirty::place(call);
                self.has_handed_over.set(true);
            }
        }
        used
    }
}

/// Adds to a counter that only this thread changes.
fn add(counter: &AtomicU64, n: u64) {
    let sum = counter.load(Ordering::Relaxed).wrapping_add(n);
    counter.store(sum, Ordering::Relaxed);
}

/// Whether a process that ends its time slice so is to end only when it has its turn; one that goes on waits for that, too.
#[cold]
fn is_later(p: &Process, outcome: Outcome) -> bool {
    match outcome {
        Outcome::Yield => given::wait_to_go_on(p.pid()),
        Outcome::Exit(_) => return p.must_wait_before_exit(),
        Outcome::Wait | Outcome::Dirty(_) => {}
    }
    false
}

/// Handles the signals of a process and runs it, if it has something to run for.
///
/// # Safety
/// P2: `x` points to [`X_REGISTERS`] words that outlive the time slice.
unsafe fn run_slice(p: &mut Process, x: *mut RawTerm) -> Outcome {
    let lifted = p.shared().end_lift();
    p.come_back();
    let was_exiting = p.is_exiting();
    let fetched = p.fetch_at_turn();
    if let Some(priority) = lifted
        && p.has_unhandled_signals()
    {
        p.shared().lift(priority);
    }
    if let Err(exiting) = fetched.and_then(|()| p.run_system_tasks()) {
        if !was_exiting && p.shared().tracee.has(crate::trace::events::RUNNING) {
            crate::trace::events::scheduled_in(p);
        }
        return Outcome::Exit(exiting);
    }
    if p.stands_still() {
        // A call that has not begun is made again when it is resumed.
        p.call_back();
        return Outcome::Wait;
    }
    // Again: the fetch has taken the wake-up of a call that has ended since the first look.
    p.come_back();
    if p.is_away() || !p.is_ready() || p.waits_to_end() || p.awaits_collection() {
        return Outcome::Wait;
    }
    p.note_goes_on();
    p.claim_dirty_words();
    if lifted.is_some() {
        // It got this time slice for its signals; its code runs with its own priority.
        return Outcome::Yield;
    }
    p.resume_receive();
    // Where every safepoint collects, the first time slice is none: the words a process is made with are its first
    // function's.
    let is_spared = Heap::is_zealous() && p.reductions() == 0;
    if !is_spared
        && p.is_new_slice()
        && p.wants_collection()
        && let Err(exiting) = p.garbage_collect(0, 0)
    {
        return Outcome::Exit(exiting);
    }
    // SAFETY: P2.
    unsafe { p.restore_registers(x) };
    if p.shared().tracee.has(crate::trace::events::AT_SLICE) {
        crate::trace::events::scheduled_in(p);
    }
    let native = p.take_native();
    let outcome = match native {
        Some(mut body) => {
            let outcome = body(p);
            p.put_native(body);
            outcome
        }
        None if jit::is_on() => jit::run(p),
        None => interp::run(p),
    };
    p.save_registers();
    p.note_end_of_slice(&outcome);
    if let Outcome::Exit(exiting) = outcome {
        exception::note_uncaught(p, exiting);
    }
    outcome
}
