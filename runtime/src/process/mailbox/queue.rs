//! The messages of a mailbox, and where a receive stands among them. Compiled code walks over them by itself: from the
//! slot at the save pointer up to the last that lies in one piece with it, or that costs no look.

use std::collections::VecDeque;
use std::mem::offset_of;
use std::ops::{Deref, DerefMut};

use super::Slot;

/// Slots, and a save pointer. To change the slots ends a walk.
#[derive(Default)]
pub(super) struct Queue {
    slots: VecDeque<Slot>,
    /// Where the next `loop_rec` looks.
    save: usize,
    /// The address of the slot there, in a walk; compiled code moves both.
    at: usize,
    /// The address behind the last slot of the walk; the same where there is none.
    end: usize,
}

impl Queue {
    /// Offsets of the save pointer, and of where a walk is and ends.
    pub(super) const SAVE: usize = offset_of!(Queue, save);
    pub(super) const AT: usize = offset_of!(Queue, at);
    pub(super) const END: usize = offset_of!(Queue, end);

    /// Where the next `loop_rec` looks.
    #[inline]
    pub(super) fn save(&self) -> usize {
        self.save
    }

    #[inline]
    pub(super) fn set_save(&mut self, save: usize) {
        self.save = save;
        self.end_walk();
    }

    #[inline]
    fn end_walk(&mut self) {
        (self.at, self.end) = (0, 0);
    }

    /// Compiled code walks from the save pointer on, over the first `count` slots at most.
    pub(super) fn walk(&mut self, count: usize) {
        let (first, second) = self.slots.as_slices();
        let (piece, begin) = match self.save.checked_sub(first.len()) {
            None => (first, self.save),
            Some(passed) => (second, passed),
        };
        let piece = piece.get(begin..).unwrap_or_default();
        let rest = &piece[..piece.len().min(count.saturating_sub(self.save))];
        let range = rest.as_ptr_range();
        self.at = range.start.expose_provenance();
        self.end = range.end.expose_provenance();
    }
}

impl Deref for Queue {
    type Target = VecDeque<Slot>;

    #[inline]
    fn deref(&self) -> &VecDeque<Slot> {
        &self.slots
    }
}

impl DerefMut for Queue {
    #[inline]
    fn deref_mut(&mut self) -> &mut VecDeque<Slot> {
        self.end_walk();
        &mut self.slots
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heap::Message;
    use crate::process::seq_token::Mark;
    use crate::term::Term;

    fn slot(number: i64) -> Slot {
        Slot::new(Message::copy_of(Term::small(number)), Mark::KEEPS)
    }

    /// How many slots a walk from `save` goes over, and whether it begins at the slot there.
    fn walked(queue: &mut Queue, save: usize) -> (usize, bool) {
        walked_of(queue, save, usize::MAX)
    }

    /// As [`walked`], where a walk may go over `count` slots at most.
    fn walked_of(queue: &mut Queue, save: usize, count: usize) -> (usize, bool) {
        queue.set_save(save);
        queue.walk(count);
        let at = queue.get(save).map(|slot| std::ptr::from_ref(slot).addr());
        let slots = (queue.end - queue.at) / size_of::<Slot>();
        (slots, at.is_none_or(|at| at == queue.at))
    }

    #[test]
    fn a_walk_goes_over_what_lies_in_one_piece() {
        let mut queue = Queue::default();
        assert_eq!(walked(&mut queue, 0), (0, true));
        queue.reserve_exact(8);
        let room = queue.capacity();
        queue.extend((0..room as i64).map(slot));
        assert_eq!(walked(&mut queue, 0), (room, true));
        assert_eq!(walked(&mut queue, room), (0, true));
        queue.drain(..3);
        queue.extend((0..2).map(slot));
        // Three have gone from the front, and two have come around the end.
        assert_eq!(walked(&mut queue, 0), (room - 3, true));
        assert_eq!(walked(&mut queue, room - 4), (1, true));
        assert_eq!(walked(&mut queue, room - 3), (2, true));
        assert_eq!(walked(&mut queue, room - 2), (1, true));
        assert_eq!(walked(&mut queue, room - 1), (0, true));
        assert_eq!(walked(&mut queue, room + 5), (0, true));
        assert_eq!(walked_of(&mut queue, 1, 3), (2, true));
        assert_eq!(walked_of(&mut queue, 3, 3), (0, true));
        assert_eq!(walked_of(&mut queue, 4, 3), (0, true));
        assert_eq!(walked_of(&mut queue, room - 4, room - 2), (1, true));
        assert_eq!(walked_of(&mut queue, room - 3, room - 2), (1, true));
    }

    #[test]
    fn whatever_changes_slots_ends_a_walk() {
        let changes: [fn(&mut Queue); 4] = [
            |queue| queue.push_back(slot(1)),
            |queue| drop(queue.remove(0)),
            |queue| queue.set_save(1),
            |queue| **queue = VecDeque::new(),
        ];
        for change in changes {
            let mut queue = Queue::default();
            queue.extend((0..4).map(slot));
            assert_eq!(walked(&mut queue, 1), (3, true));
            change(&mut queue);
            assert_eq!(queue.at, queue.end);
        }
    }
}
