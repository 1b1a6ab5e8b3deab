//! Dirty schedulers: threads on which processes run native functions that take long.
//!
//! There is a queue for each kind. Its threads are made as they are needed, up to as many as there may be. What waits
//! there are calls ([`DirtyCall`]): their processes stay with the ordinary schedulers, which handle their signals and
//! return what the calls have come to.
//!
//! Invariants: P2 of `process/mod.rs`.
//! Source: `erl_process.c`, OTP 29.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

use crate::exec;
use crate::process::dirty::DirtyCall;
use crate::process::{Dirty, X_REGISTERS};
use crate::sched::schedulers;
use crate::term::RawTerm;
use crate::trace;

/// Dirty I/O schedulers there may be, as ERTS has it (`+SDio`).
const IO_THREADS: usize = 10;

/// What waits for one kind of dirty schedulers.
#[derive(Default)]
struct Queue {
    calls: VecDeque<Arc<DirtyCall>>,
    /// Threads there are, and those of them that have nothing to do.
    threads: usize,
    idle: usize,
}

struct Pool {
    queue: Mutex<Queue>,
    filled: Condvar,
}

impl Pool {
    const fn new() -> Pool {
        Pool {
            queue: Mutex::new(Queue {
                calls: VecDeque::new(),
                threads: 0,
                idle: 0,
            }),
            filled: Condvar::new(),
        }
    }
}

static CPU: Pool = Pool::new();
static IO: Pool = Pool::new();

/// The pool of a kind, how many threads it may have, and the start of their names.
fn pool(dirty: Dirty) -> (&'static Pool, usize, &'static str) {
    match dirty {
        Dirty::Cpu => (&CPU, schedulers(), "dirty_cpu"),
        Dirty::Io => (&IO, IO_THREADS, "dirty_io"),
    }
}

/// Queues a call.
pub(super) fn place(call: Arc<DirtyCall>) {
    let dirty = call.kind();
    let (pool, most, name) = pool(dirty);
    let mut queue = pool.queue.lock();
    queue.calls.push_back(call);
    if queue.idle < queue.calls.len() && queue.threads < most {
        queue.threads += 1;
        let name = format!("{name}_{}", queue.threads);
        std::thread::Builder::new()
            .name(name)
            .stack_size(super::STACK_BYTES)
            .spawn(move || run(pool, dirty))
            .expect("a thread for each dirty scheduler");
    }
    drop(queue);
    pool.filled.notify_one();
}

fn run(pool: &Pool, dirty: Dirty) {
    exec::dirty::become_dirty(dirty);
    let mut registers: Box<[RawTerm]> = vec![RawTerm::NONE; X_REGISTERS].into();
    loop {
        let mut queue = pool.queue.lock();
        let call = loop {
            if let Some(call) = queue.calls.pop_front() {
                break call;
            }
            queue.idle += 1;
            pool.filled.wait(&mut queue);
            queue.idle -= 1;
        };
        drop(queue);
        make(&call, registers.as_mut_ptr());
    }
}

/// Makes a call, unless its process has taken it back.
fn make(call: &DirtyCall, x: *mut RawTerm) {
    let Some(mut stand_in) = call.begin() else {
        return;
    };
    // SAFETY: P2: this thread's registers outlive the call.
    unsafe { stand_in.restore_registers(x) };
    trace::events::dirty_in(&stand_in);
    exec::dirty::run(&stand_in);
    trace::events::dirty_out(&stand_in);
    stand_in.forget_registers();
    call.end(stand_in);
}
