//! Literals: terms of loaded modules (and of the runtime itself) that no heap owns. They lie in one
//! reserved range of addresses, so that a collector tells them from heap terms by two comparisons.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::{Heap, copy};
use crate::term::{RawTerm, Term, tag};

/// Addresses reserved; memory is taken only where it is written.
const RESERVED_BYTES: usize = 4 << 30;

static START: AtomicUsize = AtomicUsize::new(0);
static USED_WORDS: AtomicUsize = AtomicUsize::new(0);

/// H6: words below `top` hold literals, which never change or move; above is free.
struct Area {
    top: usize,
    end: usize,
    /// Holds the counts of off-heap things among the literals.
    off_heap: super::off_heap::OffHeap,
}

// SAFETY: H6: reached under its lock only.
unsafe impl Send for Area {}

fn area() -> &'static Mutex<Area> {
    static AREA: OnceLock<Mutex<Area>> = OnceLock::new();
    AREA.get_or_init(|| {
        let start = reserve();
        START.store(start, Ordering::Release);
        Mutex::new(Area {
            top: start,
            end: start + RESERVED_BYTES,
            off_heap: super::off_heap::OffHeap::default(),
        })
    })
}

fn reserve() -> usize {
    // SAFETY: an anonymous mapping of fresh addresses; touches no other memory.
    let ptr = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            RESERVED_BYTES,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    assert!(ptr != libc::MAP_FAILED, "no address space for literals");
    ptr as usize
}

/// The range literals lie in: `[start, end)`. Empty until the first literal is made.
#[inline]
#[must_use]
pub(crate) fn range() -> (usize, usize) {
    let start = START.load(Ordering::Relaxed);
    (
        start,
        if start == 0 {
            0
        } else {
            start + RESERVED_BYTES
        },
    )
}

/// Is `ptr` the address of a literal?
#[inline]
#[must_use]
pub(crate) fn contains(ptr: *const u64) -> bool {
    (ptr as usize).wrapping_sub(START.load(Ordering::Relaxed)) < RESERVED_BYTES
        && START.load(Ordering::Relaxed) != 0
}

/// Bytes in use, for `erlang:memory`.
#[must_use]
pub fn used_bytes() -> usize {
    USED_WORDS.load(Ordering::Relaxed) * 8
}

/// Copies `term` to the literals, where it stays for ever.
///
/// # Panics
/// When four gigabytes of literals are in use.
#[must_use]
pub fn make(term: Term<'_>) -> Term<'static> {
    if term.raw().is_immed() {
        return Term::immed(term.raw());
    }
    let words = copy::size(term, copy::Literals::Share);
    let mut area = area().lock();
    assert!(
        area.top + words * 8 <= area.end,
        "no address space left for literals"
    );
    let mut hp = area.top as *mut u64;
    // SAFETY: H6: `words` free words at `top`, under the lock; the copy is complete before it is used.
    let raw = unsafe { copy::copy(term.raw(), &mut hp, &area.off_heap) };
    debug_assert_eq!(hp as usize, area.top + words * 8, "size and copy agree");
    area.top = hp as usize;
    USED_WORDS.fetch_add(words, Ordering::Relaxed);
    // SAFETY: T1, H6: a literal lives for ever.
    unsafe { Term::new(raw) }
}

/// A literal as a value that any thread may keep.
#[derive(Clone, Copy)]
pub struct Literal(RawTerm);

impl Literal {
    /// Copies `term` to the literals.
    #[must_use]
    pub fn new(term: Term<'_>) -> Literal {
        Literal(make(term).raw())
    }

    /// The term.
    #[inline]
    #[must_use]
    pub fn term(self) -> Term<'static> {
        // SAFETY: T1, H6: a literal lives for ever.
        unsafe { Term::new(self.0) }
    }
}

/// A place for a literal that threads read and write without a lock.
#[derive(Default)]
pub struct LiteralCell(std::sync::atomic::AtomicU64);

impl LiteralCell {
    /// What was put there last.
    #[inline]
    #[must_use]
    pub fn get(&self) -> Option<Literal> {
        let raw = RawTerm(self.0.load(Ordering::Acquire));
        (raw != RawTerm::NONE).then_some(Literal(raw))
    }

    /// What is there; what `build` makes on a heap of its own is put there first, if there is nothing yet.
    pub fn get_or_build(&self, build: impl for<'h> FnOnce(&'h Heap) -> Term<'h>) -> Term<'static> {
        let literal = self.get().unwrap_or_else(|| {
            let made = Literal(self::build(build).raw());
            self.set(Some(made));
            made
        });
        literal.term()
    }

    /// Puts `literal` there; who finds it sees the whole term.
    pub fn set(&self, literal: Option<Literal>) {
        let raw = literal.map_or(RawTerm::NONE, |literal| literal.0);
        self.0.store(raw.0, Ordering::Release);
    }
}

/// Builds a literal with `build` on a heap of its own.
#[must_use]
pub fn build(build: impl for<'h> FnOnce(&'h Heap) -> Term<'h>) -> Term<'static> {
    let scratch = Heap::detached();
    make(build(&scratch))
}

/// The empty tuple, of which there is one.
pub(super) fn empty_tuple() -> Term<'static> {
    static WORD: OnceLock<u64> = OnceLock::new();
    let word = *WORD.get_or_init(|| {
        let mut area = area().lock();
        let ptr = area.top as *mut u64;
        // The word behind it stays unused, so that looking past its header is looking at a literal.
        area.top += 16;
        // SAFETY: H6: two free words at `top`, under the lock.
        unsafe { *ptr = tag::make_header(0, tag::ARITYVAL) };
        RawTerm::boxed(ptr).0
    });
    // SAFETY: T1, H6: a literal lives for ever.
    unsafe { Term::new(RawTerm(word)) }
}
