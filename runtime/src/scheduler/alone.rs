//! Runs code in a process that is in no table, before there is any other: on a thread that takes the place of the first
//! scheduler until that begins.
//!
//! Invariants: I1 of the interpreter, P2 of `process/mod.rs`.

use crate::interp;
use crate::jit;
use crate::loader::module::Module;
use crate::process::{Process, X_REGISTERS};
use crate::sched::become_scheduler;
use crate::sys::chance::ticks::Ticks;
use crate::term::{Atom, RawTerm, Term};

/// Words of its heap: more than the code needs.
const HEAP_WORDS: usize = 233;

/// What a process did in its time slice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slice {
    /// How far its argument has counted down.
    pub(crate) rounds: u64,
    /// How long it took.
    pub(crate) ticks: u64,
}

/// Has a thread run code alone, and gives what `with` does. Compiled code has the process's stack, on which no signal may be
/// handled.
pub(crate) fn on_thread<T: Send>(with: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            become_scheduler(0);
            jit::start_thread();
            with()
        });
        thread.join().expect("it runs to its end")
    })
}

/// A new process calls a function that never returns and counts its one argument down. It is `prepared` before.
pub(crate) fn slice(code: &Module, function: Atom, prepared: impl FnOnce(&Process)) -> Slice {
    const FIRST: i64 = 1 << 40;
    let mut registers: Box<[RawTerm]> = vec![RawTerm::NIL; X_REGISTERS].into();
    let mut p = Process::new(HEAP_WORDS);
    // SAFETY: P2: the registers outlive the process, which was made after them.
    unsafe { p.set_registers(registers.as_mut_ptr()) };
    prepared(&p);
    p.set_x(0, Term::small(FIRST));
    let entry = code.find(function, 1).expect("a function of the code");
    p.pc.set(code.address(entry));
    let clock = Ticks::clock();
    let begun = clock.now();
    match jit::is_on() {
        true => jit::run(&mut p),
        false => interp::run(&mut p),
    };
    let ticks = clock.now().saturating_sub(begun);
    let left = p.x(0).as_small().expect("the argument");
    Slice {
        rounds: FIRST.abs_diff(left),
        ticks,
    }
}
