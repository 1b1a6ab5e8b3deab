//! Collects a process's heap: its roots, its limit, its cost.

use std::sync::atomic::Ordering;

use parking_lot::RwLock;

use super::event::{Collection, Event};
use super::logger::log_error;
use super::probe::{is_asked, probes};
use super::tally;
use super::{Exiting, Process};
use crate::heap::{Collected, Heap, HeapLimit, Keeps as _, Roots, Visit, release};
use crate::sys::msacc::{self, State};
use crate::term::{Atom, RawTerm, Term, am};

/// `max_heap_size` of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaxHeap {
    /// 0: no limit.
    pub words: usize,
    /// Past the limit the process is killed.
    pub kill: bool,
    /// Past the limit an error is logged.
    pub error_logger: bool,
    /// Off-heap binaries count.
    pub include_shared_binaries: bool,
}

impl MaxHeap {
    /// What ERTS starts with.
    const INITIAL: MaxHeap = MaxHeap {
        words: 0,
        kill: true,
        error_logger: true,
        include_shared_binaries: false,
    };

    /// What new processes get (`system_flag(max_heap_size, _)`).
    pub(crate) fn of_system() -> MaxHeap {
        *OF_SYSTEM.read()
    }

    /// Sets what new processes get; the old value.
    pub(crate) fn set_of_system(new: MaxHeap) -> MaxHeap {
        std::mem::replace(&mut OF_SYSTEM.write(), new)
    }
}

static OF_SYSTEM: RwLock<MaxHeap> = RwLock::new(MaxHeap::INITIAL);

impl Default for MaxHeap {
    fn default() -> Self {
        MaxHeap::INITIAL
    }
}

/// The roots of a process beside its heap and stack.
struct ProcessRoots<'a> {
    live: &'a mut [RawTerm],
    saved_x: &'a mut [RawTerm],
    exception: &'a mut super::Exception,
    mailbox: &'a mut super::Mailbox,
    exit_reason: &'a mut RawTerm,
    dictionary: &'a mut super::Dictionary<'static>,
    work: Option<&'a mut super::AtRest>,
}

// SAFETY: H8, P3, P5: all that a process keeps beside its heap and stack, but for x registers that are not live.
unsafe impl Roots for ProcessRoots<'_> {
    fn for_each(&mut self, visit: &mut Visit<'_>) {
        visit(self.live);
        visit(self.saved_x);
        for slot in self.exception.slots() {
            visit(std::slice::from_mut(slot));
        }
        visit(std::slice::from_mut(self.exit_reason));
        self.mailbox.visit(visit);
        self.dictionary.show(visit);
        if let Some(work) = &mut self.work {
            work.show(visit);
        }
    }
}

impl Process {
    /// Collects, so that `need` words are free; keeps `x(0)` to `x(live-1)`.
    ///
    /// # Errors
    /// When the heap would exceed `max_heap_size` and the process is killed for it.
    pub(crate) fn garbage_collect(&mut self, need: usize, live: usize) -> Result<(), Exiting> {
        #[cfg(all(test, not(loom)))]
        self.meet_doom();
        let watched = probes().collection_begins();
        let collected = if is_asked(&self.shared, Event::GcMinorStart) {
            self.collect_traced(need, live)
        } else {
            self.collect(need, live)
        };
        if let Some(watched) = watched {
            probes().collection_ended(self, watched);
        }
        match collected {
            Ok(()) => Ok(()),
            Err(limit) => self.heap_limit_reached(limit, need, live),
        }
    }

    /// Collects and shrinks the heap to what is alive; keeps `x(0)` to `x(live-1)`.
    pub(crate) fn collect_hibernate(&mut self, live: usize) {
        let collected = self.with_roots(live, Heap::collect_hibernate);
        self.collected(collected);
    }

    fn collect(&mut self, need: usize, live: usize) -> Result<(), HeapLimit> {
        let limit = self.heap.max_heap_words;
        // Messages that wait are parts of the heap where the queue is: for the limit, too.
        let queue_words = if limit == 0 { 0 } else { self.mailbox_words() };
        if queue_words != 0 {
            self.heap.max_heap_words = limit.saturating_sub(queue_words).max(1);
        }
        let collected = self.with_roots(live, |heap, roots| heap.collect(need, roots));
        self.heap.max_heap_words = limit;
        self.collected(collected.map_err(|over| HeapLimit {
            total_words: over.total_words + queue_words,
        })?);
        Ok(())
    }

    fn collected(&self, collected: Collected) {
        crate::sched::count_collection();
        tally::collected();
        // At most what is left of the slice (`erts_garbage_collect_nobump()`).
        let left = self.fcalls.get().max(0);
        self.bump_reds((collected.reds as i64).min(left));
    }

    fn with_roots<R>(&mut self, live: usize, f: impl FnOnce(&mut Heap, &mut dyn Roots) -> R) -> R {
        debug_assert!(
            !self.is_away(),
            "DC1: nothing collects a process that is away"
        );
        let live: &mut [RawTerm] = if live == 0 {
            &mut []
        } else {
            // SAFETY: P2: `live` registers hold terms.
            unsafe { std::slice::from_raw_parts_mut(self.x.get(), live) }
        };
        self.mailbox.attach_examined(&self.heap);
        let psd = self.psd.get_mut().as_deref_mut();
        let mut roots = ProcessRoots {
            live,
            saved_x: &mut self.saved_x,
            exception: &mut self.exception,
            mailbox: &mut self.mailbox,
            exit_reason: self.exit_reason.get_mut(),
            dictionary: self.dictionary.get_mut(),
            work: psd.and_then(|psd| psd.work.as_mut()),
        };
        let _collects = msacc::within(State::Gc);
        self.heap.collects.store(true, Ordering::Relaxed);
        let done = f(&mut self.heap, &mut roots);
        self.heap.collects.store(false, Ordering::Relaxed);
        done
    }

    /// Has copies of the literals under release, if it holds any. No x register is live.
    ///
    /// # Errors
    /// As those of [`Process::garbage_collect`]; a killed process has kept no literal.
    pub(crate) fn copy_literals(&mut self) -> Result<(), Exiting> {
        let Some(releasing) = release::releasing() else {
            return Ok(());
        };
        let found = self.with_roots(0, |heap, roots| heap.copy_literals(&releasing, roots));
        if found {
            self.collect_now(true)?;
        }
        Ok(())
    }

    /// As [`Process::collect`], for tracers to hear.
    #[cold]
    fn collect_traced(&mut self, need: usize, live: usize) -> Result<(), HeapLimit> {
        let collection = match self.heap.next_collection() {
            (true, _) => Collection::Major,
            (false, true) => Collection::Both,
            (false, false) => Collection::Minor,
        };
        probes().collecting(self, collection, need);
        let before = self.heap.reclaimed_words;
        self.collect(need, live)?;
        let reclaimed = self.heap.reclaimed_words - before;
        probes().collected(self, collection, reclaimed as usize);
        Ok(())
    }

    #[cold]
    fn heap_limit_reached(
        &mut self,
        limit: HeapLimit,
        need: usize,
        live: usize,
    ) -> Result<(), Exiting> {
        let max = self.max_heap();
        if max.error_logger {
            self.log_heap_limit(limit, max);
        }
        if is_asked(&self.shared, Event::GcMaxHeapSize) {
            probes().past_max_heap(self);
        }
        if max.kill {
            return Err(self.exit_with(Atom::term(am::killed)));
        }
        let words = std::mem::replace(&mut self.heap.max_heap_words, 0);
        let collected = self.collect(need, live);
        self.heap.max_heap_words = words;
        collected.expect("a heap without a limit has none to exceed");
        Ok(())
    }

    /// Source: `reached_max_heap_size()` in `erl_gc.c`.
    fn log_heap_limit(&self, limit: HeapLimit, max: MaxHeap) {
        let format = "     Process:            ~p ~n     \
             Context:            maximum heap size reached~n     \
             Max Heap Size:      ~p~n     \
             Total Heap Size:    ~p~n     \
             Kill:               ~p~n     \
             Error Logger:       ~p~n     \
             Message Queue Len:  ~p~n     \
             GC Info:            ~p~n     \
             Stacktrace:         ~p~n";
        let args = [
            self.pid().term(),
            self.unsigned(max.words as u64),
            self.unsigned(limit.total_words as u64),
            Term::bool(max.kill),
            Term::bool(true),
            Term::small(self.mailbox.len() as i64),
            probes().heap_info(self, self),
            probes().stacktrace(self),
        ];
        log_error(self, format, self.list(&args));
    }
}
