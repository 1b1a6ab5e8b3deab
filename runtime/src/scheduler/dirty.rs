//! Dirty schedulers: threads on which processes run native functions that take long.
//!
//! There is a queue for each kind. Its threads are made as they are needed, up to as many as there may be. A process
//! that waits there is queued, and runs there as it does elsewhere (S1, S2), so that it is in one place at a time. A
//! thread makes one call, and puts the process in an ordinary run queue again: signals are handled there, and what the
//! call gave is returned there.
//!
//! Invariants: S1, S2 of `process/shared.rs` and P2 of `process/mod.rs`.
//! Source: `erl_process.c`, OTP 29. Differs: signals that come while a process is here wait until the call has ended.

use std::collections::VecDeque;

use parking_lot::{Condvar, Mutex};

use crate::exec::nif;
use crate::process::run_queues::enqueue;
use crate::process::{Dirty, ProcRef, X_REGISTERS};
use crate::sched::run_state::EndRun;
use crate::sched::schedulers;
use crate::term::RawTerm;

/// Dirty I/O schedulers there may be, as ERTS has it (`+SDio`).
const IO_THREADS: usize = 10;

/// What waits for one kind of dirty schedulers.
#[derive(Default)]
struct Queue {
    processes: VecDeque<ProcRef>,
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
                processes: VecDeque::new(),
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

/// Puts a process that is queued in the queue of dirty schedulers.
pub(super) fn place(dirty: Dirty, process: ProcRef) {
    let (pool, most, name) = pool(dirty);
    let mut queue = pool.queue.lock();
    queue.processes.push_back(process);
    if queue.idle < queue.processes.len() && queue.threads < most {
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
    nif::become_dirty(dirty);
    let mut registers: Box<[RawTerm]> = vec![RawTerm::NONE; X_REGISTERS].into();
    loop {
        let mut queue = pool.queue.lock();
        let process = loop {
            if let Some(process) = queue.processes.pop_front() {
                break process;
            }
            queue.idle += 1;
            pool.filled.wait(&mut queue);
            queue.idle -= 1;
        };
        drop(queue);
        run_process(process, registers.as_mut_ptr());
    }
}

/// The call that a process waits for.
fn run_process(process: ProcRef, x: *mut RawTerm) {
    // SAFETY: S2: it was queued, and runs from here until its time slice ends.
    let shared = unsafe { process.get() };
    shared.run_state.begin_run();
    // SAFETY: S1: its time slice has begun.
    let home = unsafe { shared.take_home() };
    let mut p = home.expect("a process that is queued rests at home");
    // SAFETY: P2: this thread's registers outlive the call.
    unsafe { p.restore_registers(x) };
    nif::call_dirty(&p);
    p.save_registers();
    // SAFETY: S1: its time slice ends with the next line.
    unsafe { shared.put_home(p) };
    let end = shared.run_state.end_run(true);
    debug_assert_eq!(end, EndRun::Requeue, "what the call gave is to be returned");
    enqueue(process);
}
