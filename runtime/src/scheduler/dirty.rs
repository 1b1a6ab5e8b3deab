//! Dirty schedulers: threads on which processes run native functions that take long.
//!
//! The threads of each kind are made as they are needed, up to as many as there may be. What they run are calls
//! ([`DirtyCall`]): their processes stay with the ordinary schedulers, which handle their signals and return what the
//! calls have come to.
//!
//! Invariants: P2 of `process/mod.rs`.
//! Source: `erl_process.c`, OTP 29.

use std::sync::Arc;

use crate::code::published;
use crate::exec;
use crate::process::dirty::DirtyCall;
use crate::process::dirty_queues::queue_of;
use crate::process::{Dirty, Process, X_REGISTERS};
use crate::sys::msacc::{self, State};
use crate::term::RawTerm;
use crate::trace;

/// Queues a call.
pub(super) fn place(call: Arc<DirtyCall>) {
    let kind = call.kind();
    queue_of(kind).push(call, |index| start(kind, index));
}

fn start(kind: Dirty, index: usize) {
    let kind_of = match kind {
        Dirty::Cpu => "dirty_cpu",
        Dirty::Io => "dirty_io",
    };
    std::thread::Builder::new()
        .name(format!("{kind_of}_{}", index + 1))
        .stack_size(super::STACK_BYTES)
        .spawn(move || run(kind))
        .expect("a thread for each dirty scheduler");
}

fn run(kind: Dirty) {
    let mut registers: Box<[RawTerm]> = vec![RawTerm::NONE; X_REGISTERS].into();
    loop {
        queue_of(kind).make_next(|call, number| {
            exec::dirty::become_dirty(kind, number);
            // SAFETY: P2: this thread's registers outlive the call.
            if let Some(stand_in) = unsafe { make(call, registers.as_mut_ptr()) } {
                call.end(stand_in);
            }
        });
    }
}

/// Makes a call, unless its process has taken it back; the stand-in, with which it is to be ended.
///
/// # Safety
/// P2: `x` points to [`X_REGISTERS`] words that outlive the call.
pub(super) unsafe fn make(call: &DirtyCall, x: *mut RawTerm) -> Option<Box<Process>> {
    let mut stand_in = call.begin()?;
    // SAFETY: P2.
    unsafe { stand_in.restore_registers(x) };
    trace::events::dirty_in(&stand_in);
    if let Some((_, number)) = exec::dirty::scheduler() {
        msacc::take_up(number - 1, State::Emulator);
    }
    published::make_call(&stand_in, || exec::dirty::run(&stand_in));
    msacc::put_down();
    trace::events::dirty_out(&stand_in);
    stand_in.forget_registers();
    Some(stand_in)
}
