//! Releases literal areas: from when nothing names their literals any more until no process holds one.
//!
//! 1. [`release`] queues an area. Nothing that can be read names a literal of it.
//! 2. [`switch`] puts all queued areas under release, as one batch. Once every scheduler has passed a quiescent point
//!    since, whoever had read one of their literals before has it where its collector sees it.
//! 3. Each process puts copies in place of the literals it holds ([`Heap::copy_literals`]). It gets no others: what it
//!    is sent, or keeps outside its heap, always holds copies; what it is born with does so while a release is under
//!    way.
//! 4. [`switch`] runs again, and every scheduler passes a quiescent point: processes that were exiting are gone. The
//!    batch is dropped, and the memory freed.
//!
//! Source of the steps: "Release of literal areas" in `beam_bif_load.c`, OTP 29. Differs: all areas that wait are
//! released together.

use crate::hash::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::literal::LiteralArea;
use super::{Counted, Heap, Roots};
use crate::hook::Hook;
use crate::term::{RawTerm, Term, tag};

/// Areas that are given up together.
pub(crate) struct Batch {
    areas: Vec<LiteralArea>,
}

/// Addresses under release, ascending.
pub(crate) struct Releasing(Vec<Range<usize>>);

struct State {
    queue: Vec<LiteralArea>,
    /// What processes are looked through for.
    releasing: Option<(Arc<Releasing>, Batch)>,
}

static STATE: Mutex<State> = Mutex::new(State {
    queue: Vec::new(),
    releasing: None,
});
static UNDER_WAY: AtomicBool = AtomicBool::new(false);
/// Hook: tells the collector of literal areas that one waits.
pub(crate) static NOTICE: Hook<fn()> = Hook::new("the notice of literal areas");

/// Gives up `area`: nothing names its literals any more but processes that have read one.
pub(crate) fn release(area: LiteralArea) {
    if area.is_empty() {
        return;
    }
    STATE.lock().queue.push(area);
    (NOTICE.get())();
}

/// Puts what waits under release, in place of what was; that comes back, to be dropped once every scheduler has
/// passed a quiescent point. Whether there is anything under release now.
pub(crate) fn switch() -> (Option<Batch>, bool) {
    let mut state = STATE.lock();
    let areas = std::mem::take(&mut state.queue);
    let next = (!areas.is_empty()).then(|| {
        let ranges = areas.iter().flat_map(LiteralArea::ranges);
        let mut ranges: Vec<_> = ranges.cloned().collect();
        ranges.sort_unstable_by_key(|range| range.start);
        (Arc::new(Releasing(ranges)), Batch { areas })
    });
    let any = next.is_some();
    UNDER_WAY.store(any, Ordering::Release);
    let before = std::mem::replace(&mut state.releasing, next);
    (before.map(|(_, batch)| batch), any)
}

/// Shows what the literals that wait for their release hold counts of.
pub(crate) fn each_counted(show: &mut dyn FnMut(Counted<'_>)) {
    let state = STATE.lock();
    let under_release = state.releasing.iter().flat_map(|(_, batch)| &batch.areas);
    let areas = state.queue.iter().chain(under_release);
    areas.flat_map(LiteralArea::counted).for_each(show);
}

/// Is a release under way?
pub(crate) fn is_under_way() -> bool {
    UNDER_WAY.load(Ordering::Acquire)
}

/// What is under release.
pub(crate) fn releasing() -> Option<Arc<Releasing>> {
    STATE.lock().releasing.as_ref().map(|(it, _)| it.clone())
}

impl Releasing {
    /// Does the word refer to a literal under release?
    fn has(&self, word: RawTerm) -> bool {
        if word.is_immed() || word.is_header() {
            return false;
        }
        let at = word.ptr() as usize;
        let n = self.0.partition_point(|range| range.start <= at);
        n > 0 && at < self.0[n - 1].end
    }
}

impl Heap {
    /// Puts copies in place of all references to literals under release. `true` if there was one: the next
    /// collection must be a full sweep then, before anything else is done, as old things refer to new ones.
    pub(crate) fn copy_literals(&mut self, releasing: &Releasing, roots: &mut dyn Roots) -> bool {
        let mut found: Vec<*mut RawTerm> = Vec::new();
        for (at, end) in self.areas().0 {
            // SAFETY: H1, H2: the area holds complete things and cells.
            unsafe { find(releasing, at, end, &mut found) };
        }
        let mut look = |slots: &mut [RawTerm]| {
            let slots = slots.iter_mut().filter(|slot| releasing.has(**slot));
            found.extend(slots.map(std::ptr::from_mut));
        };
        // SAFETY: H1: words from `stop` on are the stack's; H3 for the roots of native code.
        unsafe {
            let (stop, words) = (self.stop.get().cast(), self.stack_words());
            look(std::slice::from_raw_parts_mut(stop, words));
            look(&mut *self.roots.get());
        }
        roots.for_each(&mut look);
        let mut done = HashMap::default();
        for slot in &found {
            // SAFETY: H1, H6: the slots are in this heap or roots, which nothing moves meanwhile; the
            // literals are not freed before this process has answered.
            unsafe { **slot = self.copy_whole(Term::new(**slot), &mut done).raw() };
        }
        self.need_fullsweep |= !found.is_empty();
        !found.is_empty()
    }
}

/// Finds the slots in `at..end` that refer to what is under release.
///
/// # Safety
/// H1: complete things and cells stand there.
unsafe fn find(
    releasing: &Releasing,
    mut at: *mut u64,
    end: *mut u64,
    found: &mut Vec<*mut RawTerm>,
) {
    while at < end {
        // SAFETY: by contract.
        unsafe {
            let word = *at;
            let (from, words) = if word & tag::PRIMARY_MASK != tag::HEADER {
                (0, 1)
            } else if word & tag::HEADER_MASK == tag::ARITYVAL {
                // All that follows are terms.
                (1, 1)
            } else {
                let shape = tag::shape(word, *at.add(1));
                (shape.terms_from, shape.words)
            };
            for i in from..words {
                let slot = at.add(i).cast::<RawTerm>();
                if releasing.has(*slot) {
                    found.push(slot);
                }
            }
            at = at.add(words);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heap::tests::Slots;
    use crate::term::am;
    use crate::term::compare::eq_exact;

    fn ranges(area: &LiteralArea) -> Releasing {
        Releasing(area.ranges().to_vec())
    }

    #[test]
    fn a_heap_gets_copies_of_what_is_under_release() {
        let mut heap = Heap::new(233);
        let (mut area, mut other) = (LiteralArea::new(), LiteralArea::new());
        let build = |heap: &Heap| {
            let binary = heap.binary(&[7; 100]);
            let inner = heap.list(&[
                heap.float(2.5),
                binary,
                heap.binary(b"short"),
                heap.tuple(&[]),
            ]);
            heap.tuple(&[am::ok.term(), inner]).raw()
        };
        fn own(_: &Heap, word: RawTerm) -> Term<'static> {
            // SAFETY: T1: what is built on a heap that is there, or what a collection has put in its place.
            unsafe { Term::new(word) }
        }
        let scratch = Heap::detached();
        let made = area.make(own(&scratch, build(&scratch))).raw();
        let kept = other.make(own(&scratch, build(&scratch))).raw();
        let (made, kept) = (own(&heap, made), own(&heap, kept));
        let list = made.as_tuple().expect("a tuple").get(1);
        let short = list.list_iter().nth(2).and_then(Result::ok).expect("it");
        let part = heap.sub_bits(short.as_bits().expect("bits"), 8, 40);
        let mut slots = [
            heap.tuple(&[made, list, kept, part]).raw(),
            list.raw(),
            made.raw(),
        ];
        // Old things must not refer to new ones behind the collector's back.
        for _ in 0..2 {
            heap.collect(0, &mut Slots(&mut slots)).expect("no limit");
        }
        let mut roots = Slots(&mut slots);
        assert!(heap.copy_literals(&ranges(&area), &mut roots));
        heap.collect(0, &mut roots).expect("no limit");
        let gone = ranges(&area);
        drop(area);
        assert!(!heap.copy_literals(&gone, &mut roots));
        let tuple = own(&heap, slots[0]).as_tuple().expect("a tuple");
        let expected = own(&heap, build(&heap));
        assert!(eq_exact(tuple.get(0), expected) && eq_exact(own(&heap, slots[2]), expected));
        // What was shared is.
        assert!(tuple.get(0).same(own(&heap, slots[2])) && tuple.get(1).same(own(&heap, slots[1])));
        assert!(tuple.get(2).same(kept));
        let part = tuple.get(3).as_binary().expect("bytes").bytes();
        assert_eq!(*part, *b"hort");
    }
}
