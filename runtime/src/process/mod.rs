//! Processes, which own heaps.
//!
//! [`Process`] (heap, stack, registers, mailbox, dictionary) belongs to the thread that runs it, and to nobody else.
//! Its [`ProcShared`] holds what others touch (identity, signal queue, run state).
//!
//! - `&Process` allocates and reads: BIFs, guards, instructions that cannot collect.
//! - `&mut Process` may collect: a term borrowed from the process does not live across such a call:
//!
//! ```compile_fail,E0502
//! use beamline_runtime::process::Process;
//! use beamline_runtime::term::Term;
//!
//! let mut p = Process::new(233);
//! let stale = p.tuple(&[Term::small(1)]);
//! let _ = p.peek_message();
//! assert_eq!(stale.as_tuple().unwrap().arity(), 1);
//! ```
//!
//! ```
//! use beamline_runtime::process::Process;
//! use beamline_runtime::term::Term;
//!
//! let mut p = Process::new(233);
//! let kept = p.root(p.tuple(&[Term::small(1)]));
//! let _ = p.peek_message();
//! assert_eq!(p.get(&kept).as_tuple().unwrap().arity(), 1);
//! ```
//!
//! Invariants:
//! - P1: a process is run by one scheduler at a time (`sched::run_state`); only that one reaches it.
//! - P2: while it runs, `x` points to the registers of its scheduler: [`X_REGISTERS`] words, all of them terms or no
//!   terms.
//! - P3: `pc` is null or a code address that the interpreter stored; `saved_x` holds the registers that are live there
//!   while the process does not run.
//! - P4: the dictionary alone names the pairs `{Key, Value}` that it holds: readers get copies.
//! - P5: what a process keeps under a lifetime that is not its own (the dictionary's terms) is its own, is seen by
//!   each of its collections, and is handed out for as long as the process is borrowed.
#![expect(unsafe_code, reason = "registers are raw words")]

mod code_hooks;
pub(crate) mod dictionary;
mod direct_send;
pub(crate) mod dirty;
pub(crate) mod dirty_queues;
#[cfg(all(test, not(loom)))]
mod doom;
pub(crate) mod event;
mod exception;
mod exit;
mod gc;
mod incoming;
pub(crate) mod logger;
mod mailbox;
pub(crate) mod nodes;
pub(crate) mod options;
pub(crate) mod order;
mod outcome;
mod outgoing;
mod peer;
pub(crate) mod ports;
pub(crate) mod probe;
mod raise;
pub(crate) mod references;
pub mod refs;
pub mod registry;
mod relation;
pub(crate) mod run_queues;
mod saved_calls;
pub(crate) mod seq_token;
mod shared;
pub(crate) mod signal;
mod small_map;
mod spawn;
mod state;
pub(crate) mod suspension;
pub(crate) mod system_tasks;
pub(crate) mod tables;
pub(crate) mod tally;
#[cfg(all(test, not(loom)))]
mod tests;
pub(crate) mod time_offset;
pub(crate) mod trace_flags;
pub(crate) mod user_timers;
pub(crate) mod watcher;
mod work;

use std::cell::{Cell, OnceCell, RefCell};
use std::ops::Deref;
use std::sync::Arc;

use smallvec::SmallVec;

pub(crate) use dirty::Holds;
#[cfg(all(test, not(loom)))]
pub(crate) use doom::{Death, Doom};
pub use exception::{Class, Exception};
pub use exit::Exiting;
pub(crate) use exit::GIVES_UP;
pub use gc::MaxHeap;
pub use mailbox::WaitTimeout;
pub use outcome::{Dirty, Leaves, Outcome};
pub(crate) use outgoing::is_of_old_incarnation;
pub(crate) use outgoing::send_with;
pub use outgoing::{NotSent, send_to};
pub use raise::{
    BifResult, Control, GuardResult, Leave, Next, Raise, badarg, badarith, badopt, notsup,
    system_limit, tagged,
};
pub(crate) use shared::set_init_pid;
pub use shared::{ProcShared, exists, lookup, table};
pub(crate) use shared::{init_pid, set_process_limit};
pub(crate) use spawn::{Newborn, make_first};
pub use spawn::{SpawnOptions, fullsweep_after, min_heap_words, spawn_first, spawn_native};
pub(crate) use spawn::{
    async_dist_default, min_bin_vheap_words, off_heap_messages_default, processes_made,
    set_async_dist_default, set_fullsweep_after, set_min_bin_vheap_words, set_min_heap_words,
    set_off_heap_messages_default,
};

pub(crate) use code_hooks::REFERS_TO_OLD_CODE;
pub(crate) use mailbox::{Mailbox, timeout_ms};
pub(crate) use order::replay::Tries;
pub use peer::Peer;
pub(crate) use relation::{
    Alias, AliasEnd, Monitored, Origin, ParentExit, Relations, SpawnWaiting,
};
pub(crate) use saved_calls::Saved;
pub(crate) use shared::{ProcRef, TimerState, ask, ask_with, deliver, send};
pub(crate) use signal::{SYSTEM, Signal};
#[cfg(test)]
pub(crate) use work::in_small_steps;
pub(crate) use work::{AtRest, Due, PauseWords, Work, work};

use crate::heap::{Heap, next_heap_size};
use crate::process::order::director::may_timing_show;
use crate::sched::run_queue::Priority;
use crate::term::{Atom, CodeAddress, Pid, RawTerm, Term};
use dictionary::Dictionary;
use seq_token::Seq;

/// X registers there are; the last one is the loader's scratch register.
pub const X_REGISTERS: usize = 1024;

/// What a process that does not run waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum WaitFor {
    /// Any signal, or nothing at all.
    #[default]
    Signal,
    /// A message that its receive has not looked at, or the receive's time-out.
    Message,
}

/// The body of a process whose code is Rust. It runs once a time slice.
type NativeBody = Box<dyn FnMut(&mut Process) -> Outcome + Send>;

/// Flags of a process. Most are set by `process_flag/2`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Flags {
    pub(crate) trap_exit: bool,
    pub(crate) sensitive: bool,
    pub(crate) async_dist: bool,
    /// `message_queue_data` is `off_heap`.
    pub(crate) off_heap_messages: bool,
    /// Its last time slices have begun.
    pub(crate) terminating: bool,
    /// It has a sequential trace token.
    pub(crate) seq_token: bool,
    /// It saves its calls.
    pub(crate) saves_calls: bool,
}

/// Process-specific data, which few processes have. It is made when it is first needed.
#[derive(Default)]
pub(crate) struct Psd {
    pub(crate) native: Option<NativeBody>,
    /// Who suspends it.
    pub(crate) suspended: Vec<suspension::Suspended>,
    /// `process_flag(error_handler, _)`; `error_handler` where none was set.
    pub(crate) error_handler: Option<Atom>,
    /// Its last calls, if it saves them.
    saved_calls: Option<Box<saved_calls::SavedCalls>>,
    /// What the recording says that it has had.
    pub(crate) spent: probe::Spent,
    /// Its group leader and its parent, if they are of another node.
    leader_elsewhere: Option<Peer>,
    parent_elsewhere: Option<Peer>,
    pub(crate) max_heap: MaxHeap,
    /// When it dies.
    #[cfg(all(test, not(loom)))]
    pub(crate) doom: Option<Doom>,
    /// What the BIF that runs goes on with.
    pub(crate) work: Option<AtRest>,
    system_tasks: system_tasks::SystemTasks,
    /// What others have asked for that must wait until it comes back from dirty schedulers.
    until_back: Option<dirty::UntilBack>,
    /// Its data of sequential tracing.
    pub(crate) seq: Option<Box<Seq>>,
    /// It ends, has told processes of these nodes, and has not found yet that they take more.
    told_nodes: Vec<Atom>,
}

/// A specific instruction and its compiled form, as a process that waits there remembers them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NativePc {
    pub(crate) pc: CodeAddress,
    pub(crate) native: u64,
    /// How often compiled code had been given back then.
    pub(crate) epoch: u64,
}

impl NativePc {
    /// Nothing is remembered.
    pub(crate) const NONE: NativePc = NativePc {
        pc: CodeAddress::NULL,
        native: 0,
        epoch: 0,
    };
}

/// A process, as the thread that runs it sees it.
pub struct Process {
    heap: Heap,
    x: Cell<*mut RawTerm>,
    /// Reductions left in this time slice; below zero when it is over-spent.
    pub(crate) fcalls: Cell<i64>,
    /// The exception being handled; see [`Process::store_exception`].
    pub(crate) exception: Exception,
    /// Catch tags on the stack.
    pub(crate) catches: Cell<u32>,
    /// Where to go on; null: with a call of `x(0):x(1)` with the argument list `x(2)`.
    pub(crate) pc: Cell<CodeAddress>,
    /// What its `pc` was compiled to when it last went on there. While it is away on a dirty scheduler, in its place the BIF that it
    /// is away in, and the compiled form of the call, for others to see: no instruction is there.
    pub(crate) native_pc: Cell<NativePc>,
    /// X registers that are live at `pc` when a time slice begins or ends.
    pub(crate) live: Cell<u32>,
    /// Those registers while the process does not run (P3).
    saved_x: SmallVec<[RawTerm; 3]>,
    /// Its pid as a term, where compiled code finds it.
    pid: RawTerm,
    shared: Arc<ProcShared>,
    pub(crate) mailbox: Mailbox,
    pub(crate) wait_for: WaitFor,
    timer: Option<Box<incoming::ReceiveTimer>>,
    relations: RefCell<Option<Box<Relations>>>,
    pub(crate) flags: Cell<Flags>,
    /// [`SYSTEM`] where it is of another node; likewise the parent.
    group_leader: Cell<Pid>,
    parent: Cell<Pid>,
    pub(crate) initial_call: Cell<(Atom, Atom, u8)>,
    /// Reductions of the time slices that have ended.
    reductions: Cell<u64>,
    /// Why it exits; no term while it does not.
    exit_reason: Cell<RawTerm>,
    dictionary: RefCell<Dictionary<'static>>,
    psd: RefCell<Option<Box<Psd>>>,
    /// Where its traced calls are measured.
    pub(crate) meters: Option<Box<dyn std::any::Any + Send>>,
    /// What compiled code does of that itself; 0 where there are no meters.
    pub(crate) in_line: Cell<u64>,
    /// Frames on its stack that report returns or exceptions of calls.
    pub(crate) trace_frames: Cell<u32>,
    /// Sessions that have reported that its message queue is long.
    pub(crate) long_queues: Vec<u64>,
    /// The entry with a breakpoint at which it goes on, in the same call.
    pub(crate) resumed_call: Cell<CodeAddress>,
    /// The call on dirty schedulers that it waits for (DC1).
    dirty: Option<Arc<dirty::DirtyCall>>,
    /// What it keeps of the order; nothing where nobody asks for that.
    order: OnceCell<Box<RefCell<order::OrderState>>>,
}

/// Where compiled code finds what it keeps in machine registers, in bytes.
pub(crate) mod offset {
    use std::mem::offset_of;

    use super::{Flags, Mailbox, Process};
    use crate::heap::Heap;
    use crate::term::Atom;

    pub(crate) const HEAP: i32 = offset_of!(Process, heap) as i32;
    pub(crate) const HTOP: i32 = offset_of!(Process, heap.htop) as i32;
    pub(crate) const STOP: i32 = offset_of!(Process, heap.stop) as i32;
    pub(crate) const FCALLS: i32 = offset_of!(Process, fcalls) as i32;
    pub(crate) const CATCHES: i32 = offset_of!(Process, catches) as i32;
    pub(crate) const PID: i32 = offset_of!(Process, pid) as i32;
    pub(crate) const RUNS_ON: i32 = (offset_of!(Process, heap) + Heap::RUNS_ON) as i32;
    pub(crate) const HIGH_WATER: i32 = (offset_of!(Process, heap) + Heap::HIGH_WATER) as i32;
    pub(crate) const OVERHEAD_WORDS: i32 =
        (offset_of!(Process, heap) + Heap::OVERHEAD_WORDS) as i32;
    pub(crate) const OVERHEAD_LIMIT: i32 =
        (offset_of!(Process, heap) + Heap::OVERHEAD_LIMIT) as i32;
    pub(crate) const RESUMED_CALL: i32 = offset_of!(Process, resumed_call) as i32;
    pub(crate) const IN_LINE: i32 = offset_of!(Process, in_line) as i32;
    pub(crate) const REDUCTIONS: i32 = offset_of!(Process, reductions) as i32;
    pub(crate) const COLLECTED_WORDS: i32 =
        (offset_of!(Process, heap) + Heap::COLLECTED_WORDS) as i32;
    pub(crate) const FRAGMENT_WORDS: i32 =
        (offset_of!(Process, heap) + Heap::FRAGMENT_WORDS) as i32;
    pub(crate) const UNCLAIMED_WORDS: i32 =
        (offset_of!(Process, heap) + Heap::UNCLAIMED_WORDS) as i32;
    pub(crate) const SENSITIVE: i32 =
        (offset_of!(Process, flags) + offset_of!(Flags, sensitive)) as i32;
    pub(crate) const HEAP_START: i32 = (offset_of!(Process, heap) + Heap::START) as i32;
    pub(crate) const HEAP_WORDS: i32 = (offset_of!(Process, heap) + Heap::WORDS) as i32;
    pub(crate) const COLLECTS: i32 = (offset_of!(Process, heap) + Heap::COLLECTS) as i32;
    pub(crate) const INITIAL_CALL: i32 =
        (offset_of!(Process, initial_call) + offset_of!((Atom, Atom, u8), 0)) as i32;
    pub(crate) const INITIAL_ARITY: i32 =
        (offset_of!(Process, initial_call) + offset_of!((Atom, Atom, u8), 2)) as i32;
    const _: () = assert!(
        offset_of!((Atom, Atom, u8), 1) == offset_of!((Atom, Atom, u8), 0) + 4,
        "the two atoms are a word"
    );
    pub(crate) const SHARED: i32 = offset_of!(Process, shared) as i32;
    pub(crate) const PC: i32 = offset_of!(Process, pc) as i32;
    const MAILBOX: usize = offset_of!(Process, mailbox);
    pub(crate) const WALK: i32 = (MAILBOX + Mailbox::WALK) as i32;
    pub(crate) const WALK_END: i32 = (MAILBOX + Mailbox::WALK_END) as i32;
    pub(crate) const SAVE: i32 = (MAILBOX + Mailbox::SAVE) as i32;
    pub(crate) const IS_EXAMINING: i32 = (MAILBOX + Mailbox::IS_EXAMINING) as i32;
    pub(crate) const PASSED: i32 = (MAILBOX + Mailbox::PASSED) as i32;
    pub(crate) const SAVES_CALLS: i32 =
        (offset_of!(Process, flags) + offset_of!(Flags, saves_calls)) as i32;
}

// SAFETY: P1: one thread at a time reaches a process; it moves between threads whole.
unsafe impl Send for Process {}

impl Deref for Process {
    type Target = Heap;
    #[inline(always)]
    fn deref(&self) -> &Heap {
        &self.heap
    }
}

/// Reductions of a time slice (`CONTEXT_REDS`).
pub const CONTEXT_REDS: i64 = 4000;

impl Process {
    /// A process with a heap of at least `min_heap_words` and no registers yet, in no table: nobody can
    /// send to it, and no scheduler runs it.
    #[must_use]
    pub fn new(min_heap_words: usize) -> Process {
        let pid = Pid(crate::sched::ptab::INVALID_DATA);
        let shared = Arc::new(ProcShared::new(pid, Priority::Normal, false));
        Process::of(shared, min_heap_words, 0)
    }

    fn of(shared: Arc<ProcShared>, min_heap_words: usize, need_words: usize) -> Process {
        let mut heap = Heap::new(min_heap_words.max(need_words));
        heap.min_heap_words = next_heap_size(min_heap_words, false);
        heap.max_gen_gcs = spawn::fullsweep_after();
        Process::with_heap(shared, heap)
    }

    fn with_heap(shared: Arc<ProcShared>, heap: Heap) -> Process {
        let pid = shared.pid();
        Process {
            heap,
            x: Cell::new(std::ptr::null_mut()),
            fcalls: Cell::new(CONTEXT_REDS),
            exception: Exception::default(),
            catches: Cell::new(0),
            pc: Cell::new(CodeAddress::NULL),
            native_pc: Cell::new(NativePc::NONE),
            live: Cell::new(0),
            saved_x: SmallVec::new(),
            pid: pid.term().raw(),
            shared,
            mailbox: Mailbox::default(),
            wait_for: WaitFor::Signal,
            timer: None,
            relations: RefCell::new(None),
            flags: Cell::new(Flags::default()),
            group_leader: Cell::new(pid),
            parent: Cell::new(pid),
            initial_call: Cell::new((crate::term::am::erlang, crate::term::am::apply, 2)),
            reductions: Cell::new(0),
            exit_reason: Cell::new(RawTerm::NONE),
            dictionary: RefCell::default(),
            psd: RefCell::new(None),
            meters: None,
            in_line: Cell::new(0),
            trace_frames: Cell::new(0),
            long_queues: Vec::new(),
            resumed_call: Cell::new(CodeAddress::NULL),
            dirty: None,
            order: OnceCell::new(),
        }
    }

    /// Its pid.
    #[inline]
    #[must_use]
    pub fn pid(&self) -> Pid {
        self.shared.pid()
    }

    /// What others may touch of it.
    #[inline]
    #[must_use]
    pub fn shared(&self) -> &ProcShared {
        &self.shared
    }

    /// Reductions so far, those of this time slice included.
    #[must_use]
    pub fn reductions(&self) -> u64 {
        let now = (CONTEXT_REDS - self.fcalls.get()).max(0);
        self.reductions.get().wrapping_add(now as u64)
    }

    /// Ends the account of a time slice and starts a new time slice.
    pub(crate) fn new_slice(&self) {
        self.reductions.set(self.reductions());
        self.fcalls.set(CONTEXT_REDS);
    }

    /// It rests. Where the order of a run is recorded or followed, a time slice lasts until its reductions are spent, also
    /// if it waits or is on a dirty scheduler meanwhile: whether it does is chance, and so would be what calls give up at
    /// the end of a slice.
    #[inline]
    pub(crate) fn end_slice(&self, outcome: Outcome) {
        if self.has_spent_slice(outcome) || may_timing_show() {
            self.new_slice();
        }
    }

    /// Whether it rests as the reductions of its time slice are spent.
    pub(crate) fn has_spent_slice(&self, outcome: Outcome) -> bool {
        let yields = outcome == Outcome::Yield && self.wait_for == WaitFor::Signal;
        yields && self.fcalls.get() <= 0
    }

    /// Whether a time slice begins here, rather than one that goes on.
    pub(crate) fn is_new_slice(&self) -> bool {
        may_timing_show() || self.fcalls.get() == CONTEXT_REDS
    }

    /// Process-specific data, to be changed; it is made where there is none.
    pub(crate) fn psd(&self) -> std::cell::RefMut<'_, Psd> {
        std::cell::RefMut::map(self.psd.borrow_mut(), |psd| {
            &mut **psd.get_or_insert_default()
        })
    }

    /// Something of the process-specific data, if there is any; none is made.
    #[inline]
    pub(crate) fn with_psd<T>(&self, get: impl FnOnce(&Psd) -> T) -> Option<T> {
        self.psd.borrow().as_deref().map(get)
    }

    /// The process dictionary.
    pub(crate) fn dictionary(&self) -> std::cell::Ref<'_, Dictionary<'_>> {
        self.dictionary.borrow()
    }

    /// The process dictionary, to be changed.
    pub(crate) fn dictionary_mut(&self) -> std::cell::RefMut<'_, Dictionary<'_>> {
        std::cell::RefMut::map(self.dictionary.borrow_mut(), |it| {
            let it: *mut Dictionary<'static> = it;
            // SAFETY: P5: what is put in is the process's, which is borrowed as long; its collector sees it.
            unsafe { &mut *it.cast::<Dictionary<'_>>() }
        })
    }

    /// Puts an immediate into the pair at `place` of the process dictionary, which takes no memory; the old value.
    /// Source: `pd_hash_put` of ERTS.
    pub(crate) fn assign_in_dictionary(&self, place: usize, value: Term<'_>) -> Term<'_> {
        debug_assert!(
            value.raw().is_immed(),
            "a mature pair must not come to name a young term"
        );
        let pair = self.dictionary().value(place).raw();
        // SAFETY: P4, T1: a pair of this heap, whose second element nobody else has in hand.
        unsafe {
            let element = pair.ptr().add(2);
            let old = element.replace(value.raw().0);
            Term::new(RawTerm(old))
        }
    }

    /// Changes its flags.
    pub(crate) fn change_flags(&self, change: impl FnOnce(&mut Flags)) {
        let mut flags = self.flags.get();
        change(&mut flags);
        self.flags.set(flags);
    }

    /// Puts the live registers to rest, at the end of a time slice.
    pub(crate) fn save_registers(&mut self) {
        let live = self.live.get() as usize;
        if live > 0 {
            // SAFETY: P2, P3: `live` registers hold terms.
            let x = unsafe { std::slice::from_raw_parts(self.x.get(), live) };
            self.saved_x = SmallVec::from_slice(x);
        }
        self.keep_count();
        self.x.set(std::ptr::null_mut());
    }

    /// Fills the live registers again, at the start of a time slice.
    ///
    /// # Safety
    /// P2: `x` points to [`X_REGISTERS`] words that outlive the process's time slice.
    pub(crate) unsafe fn restore_registers(&mut self, x: *mut RawTerm) {
        for (i, word) in self.saved_x.iter().enumerate() {
            // SAFETY: P2.
            unsafe { *x.add(i) = *word };
        }
        self.live.set(self.saved_x.len() as u32);
        self.saved_x = SmallVec::new();
        self.x.set(x);
        self.take_count();
    }

    /// The registers that are live where it goes on; `None` while it runs.
    pub(crate) fn resting_registers(&self) -> Option<&[Term<'_>]> {
        let x: &[RawTerm] = &self.saved_x;
        // SAFETY: P3, T1: live registers hold terms, and a term is a word.
        let x = unsafe { &*(std::ptr::from_ref(x) as *const [Term<'_>]) };
        self.x.get().is_null().then_some(x)
    }

    /// Gives a new process the registers of whoever runs it.
    ///
    /// # Safety
    /// P2: `x` points to [`X_REGISTERS`] words that outlive the process's time slice.
    pub(crate) unsafe fn set_registers(&self, x: *mut RawTerm) {
        self.x.set(x);
    }

    /// The first of its registers.
    #[inline(always)]
    pub(crate) fn registers(&self) -> *mut RawTerm {
        self.x.get()
    }

    /// `x(index)`.
    #[inline]
    #[must_use]
    pub fn x(&self, index: usize) -> Term<'_> {
        assert!(index < X_REGISTERS, "no such register");
        // SAFETY: P2, T1: a live register holds a term of this process.
        unsafe { Term::new(*self.x.get().add(index)) }
    }

    /// Sets `x(index)`.
    #[inline]
    pub(crate) fn set_x(&self, index: usize, term: Term<'_>) {
        assert!(index < X_REGISTERS, "no such register");
        debug_assert!(
            self.heap.owns(term) || self.mailbox.is_examining(),
            "a register holds the process's own terms"
        );
        // SAFETY: P2.
        unsafe { *self.x.get().add(index) = term.raw() };
    }

    /// Takes `reds` from the time slice, at most what is left of it, as ERTS's `BUMP_REDS`: what is longer
    /// goes on in another slice, and is charged slice by slice.
    #[inline]
    pub(crate) fn bump_reds(&self, reds: i64) {
        self.fcalls
            .set(self.fcalls.get().saturating_sub(reds).max(0));
    }

    /// Gives back `reds` that it has just spent, one by one, in this time slice and those before it: all is as if it had not.
    pub(crate) fn give_back(&self, reds: i64) {
        let left = self.fcalls.get() + reds;
        let slices = (left - 1).max(0) / CONTEXT_REDS;
        let spent = (slices * CONTEXT_REDS) as u64;
        self.fcalls.set(left - slices * CONTEXT_REDS);
        self.reductions
            .set(self.reductions.get().wrapping_sub(spent));
    }

    /// Takes `percent` of a whole time slice, as `enif_consume_timeslice()`.
    pub(crate) fn consume_percent(&self, percent: usize) {
        self.bump_reds(percent.min(100) as i64 * CONTEXT_REDS / 100);
    }

    /// Gives up the rest of the time slice without a charge, as ERTS's `ERTS_VBUMP_ALL_REDS`.
    pub(crate) fn give_up_slice(&self) {
        self.leave_reds(0);
    }

    /// Gives up the rest of the time slice but for `reds`, without a charge, as `ERTS_VBUMP_LEAVE_REDS`.
    pub(crate) fn leave_reds(&self, reds: i64) {
        let given_up = self.fcalls.get() - reds;
        if given_up > 0 {
            let reductions = self.reductions.get().wrapping_sub(given_up as u64);
            self.reductions.set(reductions);
            self.fcalls.set(reds);
        }
    }
}
