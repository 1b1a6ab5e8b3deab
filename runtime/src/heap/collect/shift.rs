//! Moves the young block's words as they lie, for a heap that must grow or shrink behind a sweep. Source:
//! `grow_new_heap()`, `shrink_new_heap()` and `offset_heap()` in `erl_gc.c`.

use super::super::verify::ZEAL;
use super::super::{Block, Heap};
use super::{Place, Roots, is_pointer, rebase};
use crate::term::{CodeAddress, RawTerm, tag};

/// What pointed into a place points `bytes` further on.
#[derive(Clone, Copy)]
struct Shift {
    from: Place,
    bytes: usize,
}

impl Shift {
    #[inline(always)]
    fn slot(self, slot: &mut RawTerm) {
        if is_pointer(*slot) && self.from.contains(slot.ptr()) {
            slot.0 = slot.0.wrapping_add(self.bytes as u64);
        }
    }

    fn slots(self, slots: &mut [RawTerm]) {
        slots.iter_mut().for_each(|slot| self.slot(slot));
    }

    /// # Safety
    /// H1: complete things, moved by this shift, lie from `at` to `end`.
    unsafe fn things(self, mut at: *mut u64, end: *mut u64) {
        // SAFETY: by contract.
        unsafe {
            while at < end {
                let word = *at;
                if word & tag::PRIMARY_MASK != tag::HEADER
                    || word & tag::HEADER_MASK == tag::ARITYVAL
                {
                    self.slot(&mut *at.cast());
                    at = at.add(1);
                    continue;
                }
                let shape = tag::shape(word, *at.add(1));
                let terms = at.add(shape.terms_from).cast();
                self.slots(std::slice::from_raw_parts_mut(
                    terms,
                    shape.words - shape.terms_from,
                ));
                if word & tag::HEADER_MASK == tag::SUB_BITS {
                    rebase(at);
                }
                at = at.add(shape.words);
            }
        }
    }
}

impl Heap {
    /// Moves the young block's terms, all alive after a sweep, to a block of `size` words. Nothing outside of the young
    /// block and the roots points to them: what the old heap holds is older. Cost: O(live words), in their order.
    pub(super) fn move_to(&mut self, size: usize, roots: &mut dyn Roots) {
        let (used, stack) = (self.used_words(), self.stack_words());
        let mature = self.mature_words();
        let block = Block::new(size);
        let from = (self.block.start as usize, self.htop.get() as usize);
        let shift = Shift {
            from: Place::of(from),
            bytes: (block.start as usize).wrapping_sub(from.0),
        };
        let (top, stop) = (
            block.start.wrapping_add(used),
            block.end().wrapping_sub(stack),
        );
        // SAFETY: H1: the callers give a size with room for all that is used; H4: listed things lie in the block.
        unsafe {
            std::ptr::copy_nonoverlapping(self.block.start, block.start, used);
            std::ptr::copy_nonoverlapping(self.stop.get(), stop, stack);
            shift.slots(std::slice::from_raw_parts_mut(stop.cast(), stack));
            shift.slots(&mut *self.roots.get());
            roots.for_each(&mut |slots| shift.slots(slots));
            shift.things(block.start, top);
            self.off_heap
                .shift(|ptr| shift.from.contains(ptr), shift.bytes);
        }
        self.htop.set(top);
        self.stop.set(stop);
        self.runs_on.set(CodeAddress::NULL);
        // All that was there survived a collection just now, wherever it has been moved to.
        self.high_water = if mature == 0 { block.start } else { top };
        self.note_vheap_used();
        let left = std::mem::replace(&mut self.block, block);
        if ZEAL {
            left.poison();
        }
    }
}
