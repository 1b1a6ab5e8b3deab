//! The compiled engine, which runs specific instructions as machine code.
//!
//! A function is compiled at its first call, template by template (`compile.rs`, `templates/`). What a template leaves
//! out is done by the interpreter's arm of the instruction (`interp/helpers.rs`). Calls of traced functions are counted and
//! measured in line (`metered.rs`).
//!
//! Machine registers while compiled code runs:
//!
//! | register | what it holds |
//! |---|---|
//! | `rsp` | the process's stack top |
//! | `rbx` | the x registers |
//! | `rbp` | the thread's own stack, with words above: the [`Slice`], a helper's way back, what a template keeps, and the process |
//! | `r12` | the table of helpers' stubs ([`stubs::Table`]) |
//! | `r13` | the process |
//! | `r14` | reductions left |
//! | `r15` | the heap's top |
//!
//! All others are free between instructions. `rax` holds a function's entry when it is called by it. The x registers always
//! have their values in memory; machine registers hold the first ones, too, where a function begins or is returned to.
//!
//! Invariants:
//! - J1: whoever calls Rust stores `r14`, `r15` and `rsp` in the process before, and takes them from it afterwards (I2).
//! - J2: compiled code pushes return addresses only where the process's stack has room for a word (H1); the words that
//!   [`RESERVED_WORDS`](crate::heap::RESERVED_WORDS) keeps free are enough for the calls of stubs. No signal is handled
//!   there.
//! - J3: a return address on the process's stack is a multiple of 4, so that the collector takes it for no term.
//! - J4: code that goes on at a function's first instruction, by its entry or behind its prologue, has the first x
//!   registers in [`ARGUMENTS`](templates::keeps::ARGUMENTS) as well, as many as are arguments.
//! - J5: code that goes on at a return address has `x0` in the first of these as well.
//! - J6: the addresses of a walk are those of slots of the process's queue: whatever changes the queue ends the walk, and
//!   nobody else does while the process runs.
//! - J7: a counted pointer (`Arc`) is one word, an address not above that of what it leads to.
#![expect(unsafe_code, reason = "machine code is made and entered")]
#![expect(
    clippy::useless_conversion,
    reason = "`dynasm!` converts numbers of registers"
)]

mod bits;
mod compile;
mod held;
mod known;
mod listing;
mod metered;
mod nif;
pub(crate) mod perf;
mod published;
mod stubs;
mod templates;

use std::io;

use crate::interp::helpers::{self, Slice};
use crate::process::{Outcome, Process};
use crate::sys::signal;
use crate::trace;

pub(crate) use crate::code::machine_code::is_on;
pub(crate) use compile::compile_now;
pub use listing::native_code;

/// Has all code of this machine compiled, and `perf` told of it. Nothing has been loaded yet.
///
/// # Errors
/// Where the processor is another one, and the system's, where it gives no memory for machine code or no file for `perf`.
pub(crate) fn start(asked: &perf::Asked) -> io::Result<()> {
    if !cfg!(target_arch = "x86_64") {
        return Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "machine code is made for x86-64 processors only; the interpreter runs everywhere",
        ));
    }
    perf::start(asked)?;
    listing::start_from_environment().map_err(io::Error::other)?;
    stubs::start(asked.map)
}

/// Prepares a scheduler's thread.
pub(crate) fn start_thread() {
    if is_on() {
        signal::leave_to_others();
    }
}

/// Runs `p` until its time is used up, it waits or it exits.
pub(crate) fn run(p: &mut Process) -> Outcome {
    trace::calls::scheduled_in(p);
    let mut slice = Slice::new(compile::compile);
    // SAFETY: P3: it goes on where it has stopped; J1.
    unsafe {
        let to = helpers::resume(p, &mut slice);
        stubs::enter(p, to, &mut slice);
    }
    helpers::ended(p, slice.outcome())
}
