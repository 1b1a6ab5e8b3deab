//! Makes processes and starts them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use smallvec::smallvec;

use super::order::replay;
use super::probe::probes;
use super::{MaxHeap, NativeBody, Outcome, ProcShared, Process, table};
use crate::heap::{Heap, Literals, release, size};
use crate::sched::run_queue::Priority;
use crate::term::{Atom, Pid, RawTerm, Term};

/// There are as many processes as there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SystemLimit;

/// Words of a new heap (`+hms`). Source: `H_DEFAULT_SIZE` in `erl_vm.h`.
static MIN_HEAP_WORDS: AtomicUsize = AtomicUsize::new(233);

/// Sets how large new heaps are at least (`+hms`, `system_flag(min_heap_size, _)`); tells the old value.
pub(crate) fn set_min_heap_words(words: usize) -> usize {
    MIN_HEAP_WORDS.swap(words, Ordering::Relaxed)
}

/// How large new heaps are at least.
#[must_use]
pub fn min_heap_words() -> usize {
    MIN_HEAP_WORDS.load(Ordering::Relaxed)
}

/// Words of a new virtual heap of binaries (`+hmbs`). Source: `VH_DEFAULT_SIZE` in `erl_vm.h`.
static MIN_BIN_VHEAP_WORDS: AtomicUsize = AtomicUsize::new(46_422);

/// Sets how large new virtual heaps of binaries are at least; tells the old value.
pub(crate) fn set_min_bin_vheap_words(words: usize) -> usize {
    MIN_BIN_VHEAP_WORDS.swap(words, Ordering::Relaxed)
}

/// How large new virtual heaps of binaries are at least.
#[must_use]
pub(crate) fn min_bin_vheap_words() -> usize {
    MIN_BIN_VHEAP_WORDS.load(Ordering::Relaxed)
}

/// Whether new processes send to busy connections without waiting (`+pad`).
static ASYNC_DIST: AtomicBool = AtomicBool::new(false);

/// Says whether new processes send to busy connections without waiting.
pub(crate) fn set_async_dist_default(is_async: bool) {
    ASYNC_DIST.store(is_async, Ordering::Relaxed);
}

/// Do new processes send to busy connections without waiting?
#[must_use]
pub(crate) fn async_dist_default() -> bool {
    ASYNC_DIST.load(Ordering::Relaxed)
}

/// Whether new processes keep their messages off the heap (`+hmqd`).
static OFF_HEAP_MESSAGES: AtomicBool = AtomicBool::new(false);

/// Says whether new processes keep their messages off the heap.
pub(crate) fn set_off_heap_messages_default(are_off_heap: bool) {
    OFF_HEAP_MESSAGES.store(are_off_heap, Ordering::Relaxed);
}

/// Do new processes keep their messages off the heap?
#[must_use]
pub(crate) fn off_heap_messages_default() -> bool {
    OFF_HEAP_MESSAGES.load(Ordering::Relaxed)
}

/// Minor collections between full sweeps (`ERL_FULLSWEEP_AFTER`). Source: `erl_init.c`.
static FULLSWEEP_AFTER: AtomicU32 = AtomicU32::new(65535);

/// Sets how many minor collections new processes make between full sweeps; tells the old value.
pub(crate) fn set_fullsweep_after(collections: u32) -> u32 {
    FULLSWEEP_AFTER.swap(collections, Ordering::Relaxed)
}

/// How many minor collections new processes make between full sweeps.
#[must_use]
pub fn fullsweep_after() -> u32 {
    FULLSWEEP_AFTER.load(Ordering::Relaxed)
}

static MADE: AtomicU64 = AtomicU64::new(0);

/// How many processes there have been.
#[must_use]
pub(crate) fn processes_made() -> u64 {
    MADE.load(Ordering::Relaxed)
}

/// The options of a new process.
#[derive(Clone, Copy, Debug, Default)]
pub struct SpawnOptions {
    /// `priority`.
    pub priority: Option<Priority>,
    /// `min_heap_size`, words.
    pub min_heap_words: Option<usize>,
    /// `min_bin_vheap_size`, words.
    pub min_bin_vheap_words: Option<usize>,
    /// `fullsweep_after`.
    pub fullsweep_after: Option<u32>,
    /// `max_heap_size`.
    pub max_heap: Option<MaxHeap>,
    /// `{message_queue_data, off_heap}`, or `on_heap`.
    pub off_heap_messages: Option<bool>,
    /// `{async_dist, _}`.
    pub async_dist: Option<bool>,
    /// `{scheduler, _}`: the scheduler that it is bound to, counted from 1.
    pub scheduler: u16,
    /// Of the runtime's own (`erts_internal:spawn_system_process/3`).
    pub system: bool,
}

/// A process that has its pid and is not yet in the table.
pub(crate) struct Newborn {
    pub(crate) process: Box<Process>,
    reservation: crate::sched::ptab::Reservation<'static, ProcShared>,
    shared: Arc<ProcShared>,
}

impl Newborn {
    /// A process that is to have room for `need_words` at once, and this pid, where a replay says which.
    pub(crate) fn new(
        options: &SpawnOptions,
        need_words: usize,
        pid: Option<Pid>,
    ) -> Result<Newborn, SystemLimit> {
        let reservation = match pid {
            None => table().reserve(),
            Some(pid) => table().reserve_at(pid.0),
        };
        let reservation = reservation.map_err(|_| SystemLimit)?;
        let pid = Pid(reservation.data());
        let priority = options.priority.unwrap_or(Priority::Normal);
        let shared = Arc::new(ProcShared::new(pid, priority, options.system));
        shared.bind(options.scheduler);
        MADE.fetch_add(1, Ordering::Relaxed);
        probes().made(&shared);
        let least = options.min_heap_words.unwrap_or_else(min_heap_words);
        let mut process = Box::new(Process::of(Arc::clone(&shared), least, need_words));
        process.apply_options(options);
        Ok(Newborn {
            process,
            reservation,
            shared,
        })
    }

    pub(crate) fn pid(&self) -> Pid {
        self.shared.pid()
    }

    /// It will call `module:function` with `args`, a list of its own heap.
    pub(crate) fn set_call(&mut self, module: Atom, function: Atom, args: RawTerm, arity: u8) {
        self.process.saved_x = smallvec![module.raw(), function.raw(), args];
        self.process.initial_call.set((module, function, arity));
    }

    /// Puts it in the table and has it run.
    pub(crate) fn start(self) -> Pid {
        let pid = self.pid();
        // SAFETY: S1: nobody has woken it yet.
        unsafe { self.shared.put_home(self.process) };
        self.reservation.publish(Arc::clone(&self.shared));
        self.shared.wake();
        pid
    }
}

impl Process {
    fn apply_options(&mut self, options: &SpawnOptions) {
        let words = options.min_bin_vheap_words;
        let words = words.unwrap_or_else(min_bin_vheap_words);
        self.set_min_bin_vheap_words(words);
        self.heap.apply_min_bin_vheap();
        if let Some(after) = options.fullsweep_after {
            self.heap.max_gen_gcs = after;
        }
        let max = options.max_heap.unwrap_or_else(MaxHeap::of_system);
        if max != MaxHeap::default() {
            self.set_max_heap(max);
        }
        self.change_flags(|flags| {
            let off_heap = options.off_heap_messages;
            flags.off_heap_messages = off_heap.unwrap_or_else(off_heap_messages_default);
            flags.async_dist = options.async_dist.unwrap_or_else(async_dist_default);
        });
    }

    /// Sets `max_heap_size`.
    pub(crate) fn set_max_heap(&mut self, max: MaxHeap) {
        self.heap.max_heap_words = max.words;
        self.heap.max_heap_has_binaries = max.include_shared_binaries;
        self.psd().max_heap = max;
    }

    #[inline]
    pub(crate) fn take_native(&mut self) -> Option<NativeBody> {
        self.psd.get_mut().as_mut()?.native.take()
    }

    pub(crate) fn put_native(&mut self, body: NativeBody) {
        self.psd().native = Some(body);
    }

    /// Makes a process that calls `module:function(args...)`; `options` and the parent's group leader. That
    /// the two are to be linked has flags of tracing go over.
    /// It does not run before [`Newborn::start`].
    pub(crate) fn bear(
        &self,
        module: Atom,
        function: Atom,
        args: Term<'_>,
        options: &SpawnOptions,
        linked: bool,
    ) -> Result<Newborn, SystemLimit> {
        // It would not be asked for the literals that it is born with.
        let copies = release::is_under_way();
        let literals = match copies {
            true => Literals::Count,
            false => Literals::Share,
        };
        let mut child = Newborn::new(options, size(args, literals), replay::pid_of_child(self))?;
        self.note_spawn(&child.process);
        probes().inherited(self.shared(), &child.shared, linked);
        let arity = args.list_iter().count() as u8;
        let copy = match copies {
            true => child.process.copy_in_all(args).raw(),
            false => child.process.copy_in(args).raw(),
        };
        child.set_call(module, function, copy, arity);
        let call = (module, function, arity);
        probes().born(child.pid(), Some(self.pid()), call, args);
        child.process.set_group_leader(self.group_leader());
        child.process.set_parent(self.pid().into());
        Ok(child)
    }
}

/// A process without a parent that is to call `module:function()`, made now, to be started later by
/// [`Newborn::start_as_root`].
///
/// # Panics
/// When the process table is full.
pub(crate) fn make_first(module: Atom, function: Atom, leader: Option<Pid>) -> Newborn {
    let mut child = Newborn::new(&SpawnOptions::default(), 0, None).expect("room for a process");
    child.set_call(module, function, Term::NIL.raw(), 0);
    if let Some(leader) = leader {
        child.process.set_group_leader(leader.into());
    }
    child
}

impl Newborn {
    /// Starts a process that [`make_first`] has made.
    pub(crate) fn start_as_root(self) -> Pid {
        replay::follow_root(&self.process);
        let call = self.process.initial_call.get();
        probes().born(self.pid(), None, call, Term::NIL);
        self.start()
    }
}

/// Starts a process without a parent that calls `module:function` with the list that `args` builds;
/// its own group leader. For `init`.
///
/// # Panics
/// When the process table is full.
pub fn spawn_first(
    module: Atom,
    function: Atom,
    args: impl for<'h> FnOnce(&'h Heap) -> Term<'h>,
    options: &SpawnOptions,
) -> Pid {
    let mut child = Newborn::new(options, 0, replay::pid_of_root()).expect("room for a process");
    let list = args(&child.process);
    let (raw, arity) = (list.raw(), list.list_iter().count() as u8);
    probes().born(child.pid(), None, (module, function, arity), list);
    child.set_call(module, function, raw, arity);
    replay::follow_root(&child.process);
    child.start()
}

/// Starts a process whose code is Rust: `body` is called for each of its time slices, and may use no terms
/// from one time slice in the next but those in `x(0)..`, as many as it says are live.
///
/// # Panics
/// When the process table is full.
pub fn spawn_native(
    options: &SpawnOptions,
    body: impl FnMut(&mut Process) -> Outcome + Send + 'static,
) -> Pid {
    let child = Newborn::new(options, 0, replay::pid_of_root()).expect("room for a process");
    replay::follow_root(&child.process);
    child.process.psd().native = Some(Box::new(body));
    child.start()
}
