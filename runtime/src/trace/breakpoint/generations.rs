//! Two generations of data that running processes read through one index, and the order of the steps that change both
//! while they run.

use crate::sync::{AtomicPtr, Ordering};

/// Two generations of something.
pub(in crate::trace) struct Generations<T> {
    generations: [AtomicPtr<T>; 2],
}

impl<T> Generations<T> {
    /// Where the pointers are.
    pub(in crate::trace) const OFFSET: usize = std::mem::offset_of!(Generations<T>, generations);

    /// Both the same.
    pub(in crate::trace) fn new(both: *mut T) -> Generations<T> {
        Generations {
            generations: [AtomicPtr::new(both), AtomicPtr::new(both)],
        }
    }
    #[inline(always)]
    pub(in crate::trace) fn get(&self, index: usize) -> *mut T {
        self.generations[index].load(Ordering::Acquire)
    }
    pub(in crate::trace) fn set(&self, index: usize, data: *mut T) {
        self.generations[index].store(data, Ordering::Release);
    }
}

/// The steps of a change, in their order. Before each step, every scheduler passes a quiescent point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::trace) enum Step {
    /// The wanted state is put together, in new breakpoints and in staged generations.
    Stage,
    /// `Op::Breakpoint` is written to the entries of new breakpoints.
    Install,
    /// The staged generation becomes the active one.
    Commit,
    /// Entries of disabled breakpoints get their own words back.
    Uninstall,
    /// The new staged generation becomes as the active one; what nobody reaches any more is freed.
    Consolidate,
}

impl Step {
    /// The next one.
    pub(in crate::trace) fn following(self) -> Option<Step> {
        match self {
            Step::Stage => Some(Step::Install),
            Step::Install => Some(Step::Commit),
            Step::Commit => Some(Step::Uninstall),
            Step::Uninstall => Some(Step::Consolidate),
            Step::Consolidate => None,
        }
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use std::ptr::null_mut;

    use loom::{sync::Arc, thread};

    use super::*;
    use crate::sched::thread_progress::ThrPrgr;
    use crate::sync::AtomicUsize;

    const OWN: usize = 0;
    const BREAKPOINT: usize = 1;

    /// One function: its entry's word, its head's breakpoint, and what is freed so far.
    struct Function {
        progress: ThrPrgr,
        active: AtomicUsize,
        word: AtomicUsize,
        /// 1: the head names the breakpoint; 2: the breakpoint has been freed.
        head: AtomicUsize,
        generations: Generations<AtomicUsize>,
        /// What a session wants: 0: it lives; 1: freed.
        data: Box<AtomicUsize>,
        counted: AtomicUsize,
    }

    impl Function {
        fn new() -> Arc<Function> {
            Arc::new(Function {
                progress: ThrPrgr::register(1),
                active: AtomicUsize::new(0),
                word: AtomicUsize::new(OWN),
                head: AtomicUsize::new(0),
                generations: Generations::new(null_mut()),
                data: Box::new(AtomicUsize::new(0)),
                counted: AtomicUsize::new(0),
            })
        }

        /// A call, as the interpreter makes it.
        fn call(&self) {
            if self.word.load(Ordering::Relaxed) == OWN {
                return;
            }
            assert_eq!(
                self.head.load(Ordering::Relaxed),
                1,
                "no breakpoint, or a freed one"
            );
            let data = self.generations.get(self.active.load(Ordering::Relaxed));
            if data.is_null() {
                return;
            }
            assert_eq!(self.data.load(Ordering::Relaxed), 0, "a freed generation");
            self.counted.fetch_add(1, Ordering::Relaxed);
        }

        /// Waits for thread progress; `false` when the model does not get there.
        fn pass(&self) -> bool {
            let progress = self.progress.request();
            for _ in 0..2 {
                if self.progress.has_reached(progress) {
                    return true;
                }
                thread::yield_now();
            }
            false
        }

        /// Sets the breakpoint (`data`) or removes it (null).
        fn change(&self, data: *mut AtomicUsize) -> bool {
            let active = || self.active.load(Ordering::Relaxed);
            self.head.store(1, Ordering::Release);
            self.generations.set(active() ^ 1, data);
            let mut next = Some(Step::Install);
            while let Some(step) = next {
                if !self.pass() {
                    return false;
                }
                match step {
                    Step::Stage => {}
                    Step::Install => self.word.store(BREAKPOINT, Ordering::Release),
                    Step::Commit => self.active.store(active() ^ 1, Ordering::Release),
                    Step::Uninstall if data.is_null() => self.word.store(OWN, Ordering::Release),
                    Step::Uninstall => {}
                    Step::Consolidate => {
                        self.generations.set(active() ^ 1, data);
                        if data.is_null() {
                            self.data.store(1, Ordering::Relaxed);
                            self.head.store(2, Ordering::Relaxed);
                        }
                    }
                }
                next = step.following();
            }
            true
        }
    }

    #[test]
    fn loom_a_breakpoint_comes_and_goes_under_calls() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(2);
        model.check(|| {
            let function = Function::new();
            let changer = Arc::clone(&function);
            let thread = thread::spawn(move || {
                let data: *mut AtomicUsize = std::ptr::from_ref(&*changer.data).cast_mut();
                changer.change(data) && changer.change(null_mut())
            });
            function.progress.active(0);
            for _ in 0..3 {
                function.call();
                function.progress.quiescent(0);
            }
            function.progress.inactive(0);
            thread.join().unwrap();
        });
    }
}
