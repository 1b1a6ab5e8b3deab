//! The threads of a scheduler: its own, and the deputy that is the scheduler while the own thread makes a long call.
//!
//! A call that is usually short, as a file operation is, is made by the scheduler's own thread, as a dirty scheduler: no
//! other thread is woken, which would take longer than the call. If it takes long after all, the deputy takes the seat
//! ([`Seat`]). What a thread has because it is a scheduler goes with the seat: its number, and its part of the
//! recording.
//!
//! Invariants: P2 of `process/mod.rs`.

use std::cell::Cell;

use super::{STACK_BYTES, Scheduler, explore};
use crate::exec::dirty::{become_dirty, end_dirty};
use crate::jit;
use crate::process::dirty::DirtyCall;
use crate::process::dirty_queues::{KINDS, queue_of};
use crate::sched::seat::Seat;
use crate::sched::{become_scheduler, leave_scheduler, machine};
use crate::sys::msacc::{self, State};
use crate::term::RawTerm;
use crate::trace::record;

/// Calls that dirty schedulers get, once one has been long: more may be.
const AFTER_A_LONG_ONE: u32 = 32;

/// Whether a thread may leave the seat of its scheduler.
pub(super) enum MayLeave {
    /// The deputy may not.
    No,
    /// The own thread may, but not for its next `but_for` calls; and whether it has a deputy yet.
    Yes {
        but_for: Cell<u32>,
        has_deputy: Cell<bool>,
    },
}

/// The own thread of scheduler `id`.
pub(super) fn run_own(id: usize) {
    become_scheduler(id);
    jit::start_thread();
    machine().progress.active(id);
    let may_leave = MayLeave::Yes {
        but_for: Cell::new(0),
        has_deputy: Cell::new(false),
    };
    Scheduler::new(id, may_leave).run(explore::is_over);
}

/// The deputy of scheduler `id`.
fn run_deputy(id: usize) {
    jit::start_thread();
    let scheduler = Scheduler::new(id, MayLeave::No);
    let seat: &Seat = &machine().seats[id];
    loop {
        seat.watch();
        machine().wall_time.goes_on(id);
        sit_down(id);
        scheduler.run(|| {
            let is_waited_for = seat.is_waited_for();
            if is_waited_for {
                stand_up(id);
                seat.hand_back();
            }
            is_waited_for
        });
    }
}

fn start_deputy(id: usize) {
    std::thread::Builder::new()
        .name(format!("{}_deputy", id + 1))
        .stack_size(STACK_BYTES)
        .spawn(move || run_deputy(id))
        .expect("a thread for each scheduler");
}

/// This thread is scheduler `id` from now on.
fn sit_down(id: usize) {
    become_scheduler(id);
    msacc::take_up(id, State::Other);
    record::sit_down(id);
}

/// This thread is scheduler `id` no more.
fn stand_up(id: usize) {
    record::stand_up(id);
    msacc::put_down();
    leave_scheduler();
}

impl Scheduler {
    /// The dirty schedulers are blocked, and this one is the only one that runs: it makes a call of each kind that waits for
    /// them, as one of them. Source: `schedule()` in `erl_process.c`, which changes the type of the one scheduler.
    ///
    /// # Safety
    /// P2: `x` points to [`super::X_REGISTERS`] words that outlive the calls.
    #[cold]
    pub(super) unsafe fn take_dirty_turn(&self, x: *mut RawTerm) {
        for kind in KINDS {
            let make = |call: &DirtyCall, number| {
                stand_up(self.id);
                become_dirty(kind, number);
                // SAFETY: P2: as promised.
                let stand_in = unsafe { super::dirty::make(call, x) };
                end_dirty();
                sit_down(self.id);
                if let Some(stand_in) = stand_in {
                    call.end(stand_in);
                }
            };
            let wall_time = &self.machine.wall_time;
            wall_time.idle(self.id, || queue_of(kind).make_in_turn(make));
        }
    }

    /// Makes a call that is usually short as a dirty scheduler, unless others have to; whether it has.
    ///
    /// # Safety
    /// P2: `x` points to [`super::X_REGISTERS`] words that outlive the call.
    pub(super) unsafe fn make_here(&self, call: &DirtyCall, x: *mut RawTerm) -> bool {
        let MayLeave::Yes {
            but_for,
            has_deputy,
        } = &self.may_leave
        else {
            return false;
        };
        if but_for.get() > 0 && !explore::is_alone() {
            but_for.set(but_for.get() - 1);
            return false;
        }
        let seat: &Seat = &self.machine.seats[self.id];
        let made = queue_of(call.kind()).make_here(|number| {
            if !has_deputy.replace(true) && !explore::is_alone() {
                start_deputy(self.id);
            }
            self.unpin();
            stand_up(self.id);
            self.machine.wall_time.rests(self.id);
            become_dirty(call.kind(), number);
            seat.leave();
            // SAFETY: P2: as promised.
            let stand_in = unsafe { super::dirty::make(call, x) };
            end_dirty();
            let is_own = seat.take_again();
            if is_own {
                self.machine.wall_time.goes_on(self.id);
                sit_down(self.id);
            }
            (stand_in, is_own)
        });
        let Some((stand_in, is_own)) = made else {
            return false;
        };
        if let Some(stand_in) = stand_in {
            call.end(stand_in);
        }
        if !is_own {
            but_for.set(AFTER_A_LONG_ONE);
            seat.wait();
            sit_down(self.id);
        }
        true
    }
}
