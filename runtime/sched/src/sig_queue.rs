//! The outer signal queue of a process, which has many senders and one owner.
//!
//! It is a stack of boxed nodes. A sender pushes with one compare-and-swap; the owner takes the whole stack with one
//! swap and turns it round. Signals of one sender therefore come out in the order of their sending (the guarantee of
//! the language), and those of all senders in the order of their swaps. An empty queue is one word and owns no memory.
//!
//! Invariants:
//! - Q1: a node reachable from `head` came from `Box::into_raw` and is owned by the queue; whoever swaps it out of
//!   `head` owns it alone.
//! - Q2: a node is written (`next`) only by its owner: the sender until its push succeeds (release), the taker after
//!   its swap (acquire).
//! - Q3: `head` is null (empty), the address of `CLOSED` (never read through), or a node.
//! - Q4: the nodes of a `Batch` are owned by it alone, `len` of them lead from `first` to `last` through `next`, and
//!   `last.next` is null. Both are null when `len` is 0.
//! - Q5: whoever looks through a queue without taking from it knows that nobody takes meanwhile, and that the owner
//!   reads none of them.
#![expect(unsafe_code, reason = "an intrusive queue of boxed nodes, Q1 to Q5")]

use std::{fmt, marker::PhantomData, ptr};

use beamline_runtime_base::sync::{AtomicPtr, Ordering, UnsafeCell};

/// A signal with its link, allocated once by the sender and moved between queues whole.
pub struct Node<T> {
    next: UnsafeCell<*mut Node<T>>,
    value: T,
}

// SAFETY: Q2: `next` is written by one owner at a time, so a node is as mobile as its value.
unsafe impl<T: Send> Send for Node<T> {}

impl<T> Node<T> {
    /// Boxes `value` for a push.
    pub fn new(value: T) -> Box<Self> {
        Box::new(Self {
            next: UnsafeCell::new(ptr::null_mut()),
            value,
        })
    }

    /// The signal.
    pub fn value(&self) -> &T {
        &self.value
    }

    /// Takes the signal out.
    pub(crate) fn into_value(self) -> T {
        self.value
    }
}

impl<T: fmt::Debug> fmt::Debug for Node<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Node").field(&self.value).finish()
    }
}

/// What `head` points at once the queue is closed. Not zero-sized: its address is its own.
static CLOSED: u64 = 0;

fn closed<T>() -> *mut Node<T> {
    (&raw const CLOSED).cast_mut().cast()
}

/// The outer signal queue.
pub struct SigQueue<T> {
    head: AtomicPtr<Node<T>>,
    _owns: PhantomData<Box<Node<T>>>,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<SigQueue<u128>>() == size_of::<usize>());

// SAFETY: Q1, Q2: values only pass through the queue, from the thread that pushes to the one
// that takes; `&T` is given out under Q5 only.
unsafe impl<T: Send> Send for SigQueue<T> {}
// SAFETY: as for `Send`.
unsafe impl<T: Send> Sync for SigQueue<T> {}

impl<T> Default for SigQueue<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> SigQueue<T> {
    /// An open, empty queue. Allocates nothing.
    #[must_use]
    pub fn new() -> Self {
        Self {
            head: AtomicPtr::new(ptr::null_mut()),
            _owns: PhantomData,
        }
    }

    /// Sends `value`. `Ok(true)` when the queue was empty: the sender wakes the owner.
    ///
    /// # Errors
    /// Gives `value` back when the queue is closed: its owner is gone.
    pub fn push(&self, value: T) -> Result<bool, T> {
        self.push_node(Node::new(value))
            .map_err(|node| node.into_value())
    }

    /// [`Self::push`] of a signal already boxed.
    ///
    /// # Errors
    /// Gives `node` back when the queue is closed.
    pub(crate) fn push_node(&self, node: Box<Node<T>>) -> Result<bool, Box<Node<T>>> {
        let node = Box::into_raw(node);
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            if head == closed() {
                // SAFETY: Q2: not pushed, so still ours alone.
                return Err(unsafe { Box::from_raw(node) });
            }
            // SAFETY: Q2: not yet pushed, so ours to write.
            unsafe { (*node).next.with_mut(|next| *next = head) };
            match self
                .head
                .compare_exchange_weak(head, node, Ordering::Release, Ordering::Relaxed)
            {
                Ok(_) => return Ok(head.is_null()),
                Err(now) => head = now,
            }
        }
    }

    /// Takes all signals sent so far, first sent first. One load when there are none.
    ///
    /// Meant for the owner; other callers are safe, but then share the signals.
    pub fn take_all(&self) -> Batch<T> {
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            if head.is_null() || head == closed() {
                return Batch::new();
            }
            // Not a plain swap: that would open a queue closed in between by another thread.
            match self.head.compare_exchange_weak(
                head,
                ptr::null_mut(),
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Batch::from_stack(head),
                Err(now) => head = now,
            }
        }
    }

    /// Shows the signals sent so far, the last one first.
    ///
    /// # Safety
    /// Q5.
    pub unsafe fn each<'a>(&'a self, mut show: impl FnMut(&'a T)) {
        let mut at = self.head.load(Ordering::Acquire);
        if at == closed() {
            return;
        }
        // SAFETY: Q5: nodes stay, and those below the head are written no more.
        while let Some(node) = unsafe { at.as_ref() } {
            show(node.value());
            // SAFETY: as above.
            at = node.next.with(|next| unsafe { *next });
        }
    }

    /// Takes what is left and refuses all further pushes.
    pub fn close(&self) -> Batch<T> {
        let head = self.head.swap(closed(), Ordering::AcqRel);
        if head == closed() {
            Batch::new()
        } else {
            Batch::from_stack(head)
        }
    }

    /// Whether no signal waits. Stale at once unless the caller knows that nobody sends.
    pub fn is_empty(&self) -> bool {
        let head = self.head.load(Ordering::Acquire);
        head.is_null() || head == closed()
    }

    /// Whether [`Self::close`] was called.
    pub(crate) fn is_closed(&self) -> bool {
        self.head.load(Ordering::Acquire) == closed()
    }
}

impl<T> Drop for SigQueue<T> {
    fn drop(&mut self) {
        drop(self.close());
    }
}

impl<T> fmt::Debug for SigQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigQueue")
            .field("empty", &self.is_empty())
            .field("closed", &self.is_closed())
            .finish()
    }
}

/// Signals taken from a [`SigQueue`], first sent first: a FIFO list owned by one thread.
///
/// Also serves as the middle and inner queue: nodes and whole batches are appended to it
/// without allocating.
pub struct Batch<T> {
    first: *mut Node<T>,
    last: *mut Node<T>,
    len: usize,
    _owns: PhantomData<Box<Node<T>>>,
}

// SAFETY: Q4: the batch owns its nodes alone, like a `Vec<T>`.
unsafe impl<T: Send> Send for Batch<T> {}

impl<T> Default for Batch<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Batch<T> {
    /// An empty batch. Allocates nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            first: ptr::null_mut(),
            last: ptr::null_mut(),
            len: 0,
            _owns: PhantomData,
        }
    }

    /// Turns a stack that the caller owns (Q1), last sent on top, into a batch.
    fn from_stack(mut top: *mut Node<T>) -> Self {
        let mut batch = Self {
            last: top,
            ..Self::new()
        };
        while !top.is_null() {
            // SAFETY: Q1, Q2: the whole stack is the caller's since its swap (acquire).
            let below = unsafe {
                (*top)
                    .next
                    .with_mut(|next| std::mem::replace(&mut *next, batch.first))
            };
            batch.first = top;
            batch.len += 1;
            top = below;
        }
        batch
    }

    /// How many signals are left.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether none is left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The oldest signal.
    #[must_use]
    pub fn front(&self) -> Option<&T> {
        // SAFETY: Q4: null or a node that the batch, borrowed here, owns.
        unsafe { self.first.as_ref() }.map(Node::value)
    }

    /// Takes the oldest signal in its box.
    pub(crate) fn pop_node(&mut self) -> Option<Box<Node<T>>> {
        if self.first.is_null() {
            return None;
        }
        // SAFETY: Q4: the batch owns its first node; unlinked below, it passes to the caller.
        let node = unsafe { Box::from_raw(self.first) };
        self.first = node.next.with_mut(|next| {
            // SAFETY: Q4: ours alone.
            unsafe { std::mem::replace(&mut *next, ptr::null_mut()) }
        });
        if self.first.is_null() {
            self.last = ptr::null_mut();
        }
        self.len -= 1;
        Some(node)
    }

    /// Takes the oldest signal.
    pub fn pop(&mut self) -> Option<T> {
        self.pop_node().map(|node| node.into_value())
    }

    /// Appends a signal in its box.
    pub(crate) fn push_node(&mut self, node: Box<Node<T>>) {
        let node = Box::into_raw(node);
        // SAFETY: Q2: a boxed node outside any queue is its holder's.
        unsafe { (*node).next.with_mut(|next| *next = ptr::null_mut()) };
        self.link(node, node, 1);
    }

    /// Appends a signal.
    pub fn push(&mut self, value: T) {
        self.push_node(Node::new(value));
    }

    /// Appends all of `other`, in constant time.
    pub fn append(&mut self, mut other: Self) {
        if other.len > 0 {
            self.link(other.first, other.last, other.len);
            (other.first, other.last, other.len) = (ptr::null_mut(), ptr::null_mut(), 0);
        }
    }

    /// Appends the chain `first..=last` of `len` nodes, which the caller hands over.
    fn link(&mut self, first: *mut Node<T>, last: *mut Node<T>, len: usize) {
        if self.last.is_null() {
            self.first = first;
        } else {
            // SAFETY: Q4: our own last node.
            unsafe { (*self.last).next.with_mut(|next| *next = first) };
        }
        self.last = last;
        self.len += len;
    }

    /// The signals, oldest first.
    pub fn iter(&self) -> Iter<'_, T> {
        Iter {
            at: self.first,
            _batch: PhantomData,
        }
    }
}

impl<T> Drop for Batch<T> {
    fn drop(&mut self) {
        while self.pop_node().is_some() {}
    }
}

impl<T> Iterator for Batch<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.pop()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.len, Some(self.len))
    }
}

impl<T> ExactSizeIterator for Batch<T> {}

impl<'a, T> IntoIterator for &'a Batch<T> {
    type Item = &'a T;
    type IntoIter = Iter<'a, T>;

    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}

impl<T: fmt::Debug> fmt::Debug for Batch<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Borrows the signals of a [`Batch`], oldest first.
pub struct Iter<'a, T> {
    at: *mut Node<T>,
    _batch: PhantomData<&'a Batch<T>>,
}

impl<'a, T> Iterator for Iter<'a, T> {
    type Item = &'a T;

    fn next(&mut self) -> Option<&'a T> {
        // SAFETY: Q4: null or a node of the batch that `'a` borrows.
        let node: &'a Node<T> = unsafe { self.at.as_ref() }?;
        // SAFETY: Q4: no writer while the batch is borrowed.
        self.at = node.next.with(|next| unsafe { *next });
        Some(node.value())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::{sync::Arc, thread};

    use super::*;

    #[test]
    fn signals_come_out_in_send_order() {
        let queue = SigQueue::new();
        assert_eq!(queue.push(1), Ok(true));
        assert_eq!(queue.push(2), Ok(false));
        assert_eq!(queue.push(3), Ok(false));
        let batch = queue.take_all();
        assert_eq!(batch.len(), 3);
        assert_eq!(batch.collect::<Vec<_>>(), [1, 2, 3]);
        assert!(queue.take_all().is_empty());
        assert_eq!(queue.push(4), Ok(true));
    }

    #[test]
    fn a_closed_queue_gives_the_signal_back() {
        let queue = SigQueue::new();
        assert_eq!(queue.push("a"), Ok(true));
        assert_eq!(queue.close().collect::<Vec<_>>(), ["a"]);
        assert_eq!(queue.push("b"), Err("b"));
        assert!(queue.take_all().is_empty());
        assert!(queue.close().is_empty());
        assert!(queue.is_closed() && queue.is_empty());
    }

    #[test]
    fn batches_append_and_mix_with_single_pushes() {
        let queue = SigQueue::new();
        let mut inner = Batch::new();
        inner.append(queue.take_all());
        assert_eq!(inner.front(), None);
        inner.push(0);
        for i in 1..4 {
            queue.push(i).unwrap();
        }
        inner.append(queue.take_all());
        inner.push(4);
        assert_eq!(inner.iter().copied().collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
        assert_eq!((inner.pop(), inner.front()), (Some(0), Some(&1)));
        assert_eq!(inner.by_ref().collect::<Vec<_>>(), [1, 2, 3, 4]);
        inner.push(5);
        assert_eq!((inner.pop(), inner.pop(), inner.len()), (Some(5), None, 0));
    }

    #[test]
    fn dropping_queue_and_batch_frees_every_signal() {
        let value = Arc::new(());
        let queue = SigQueue::new();
        for _ in 0..10 {
            queue.push(Arc::clone(&value)).unwrap();
        }
        let mut batch = queue.take_all();
        batch.pop();
        for _ in 0..10 {
            queue.push(Arc::clone(&value)).unwrap();
        }
        assert_eq!(Arc::strong_count(&value), 20);
        drop(batch);
        drop(queue);
        assert_eq!(Arc::strong_count(&value), 1);
    }

    #[test]
    fn each_sender_keeps_its_order_and_wakes_are_enough() {
        const SENDERS: usize = 3;
        const EACH: usize = if cfg!(miri) { 50 } else { 20_000 };
        let queue = Arc::new(SigQueue::new());
        let (wake, woken) = std::sync::mpsc::channel();
        let senders: Vec<_> = (0..SENDERS)
            .map(|sender| {
                let (queue, wake) = (Arc::clone(&queue), wake.clone());
                thread::spawn(move || {
                    for i in 0..EACH {
                        if queue.push((sender, i)).unwrap() {
                            wake.send(()).unwrap();
                        }
                    }
                })
            })
            .collect();
        drop(wake);
        let mut next = [0; SENDERS];
        // Taking only when woken: a wake too few would leave signals behind.
        while woken.recv().is_ok() {
            for (sender, i) in queue.take_all() {
                assert_eq!(i, next[sender]);
                next[sender] += 1;
            }
        }
        assert_eq!(next, [EACH; SENDERS]);
        for sender in senders {
            sender.join().unwrap();
        }
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use loom::{sync::Arc, thread};

    use super::*;

    #[test]
    fn loom_two_senders_one_owner() {
        loom::model(|| {
            let queue = Arc::new(SigQueue::new());
            let senders: Vec<_> = (0..2)
                .map(|sender| {
                    let queue = Arc::clone(&queue);
                    thread::spawn(move || {
                        let count = 2 - sender;
                        (0..count)
                            .filter(|&i| queue.push((sender, i)).unwrap())
                            .count()
                    })
                })
                .collect();
            let mut got: Vec<_> = queue.take_all().collect();
            let takes_with_signals = usize::from(!got.is_empty());
            let wakes: usize = senders.into_iter().map(|s| s.join().unwrap()).sum();
            let rest: Vec<_> = queue.take_all().collect();
            // One "was empty" for each batch that was there to take.
            assert_eq!(wakes, takes_with_signals + usize::from(!rest.is_empty()));
            got.extend(rest);
            assert_eq!(got.iter().filter(|(s, _)| *s == 1).count(), 1);
            let of_first: Vec<_> = got
                .iter()
                .filter(|(s, _)| *s == 0)
                .map(|(_, i)| *i)
                .collect();
            assert_eq!(of_first, [0, 1]);
        });
    }

    #[test]
    fn loom_close_loses_no_signal() {
        loom::model(|| {
            let queue = Arc::new(SigQueue::new());
            let sender = {
                let queue = Arc::clone(&queue);
                thread::spawn(move || (0..2).filter(|&i| queue.push(i).is_ok()).count())
            };
            let taken = queue.take_all().len();
            let left = queue.close().len();
            assert_eq!(sender.join().unwrap(), taken + left);
            assert_eq!(queue.push(9), Err(9));
        });
    }
}
