//! Ends the machine when memory or table entries cannot be had, as OTP does: with a message that says how much of what,
//! and exit code 1. It writes no crash dump.
//!
//! Invariants:
//! - M1: [`OrEnd`] returns no null pointer but within [`try_reserve`], so nothing behind it has to know what a failed
//!   allocation is.
//! - M2: nothing on the way from a failed allocation to the end of the machine allocates, or waits for a lock.
//!
//! Source: `erts_alc_fatal_error()` in `erl_alloc.c`, OTP 29.
#![expect(unsafe_code, reason = "an allocator")]

pub mod region;

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::io::Write;
use std::sync::OnceLock;
use std::time::Duration;

use crate::halt::Exit;

/// The purpose of memory: the names of the allocator and of the type, as in `erl_alloc.types`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind(&'static str, &'static str);

/// The heap of a process.
pub const HEAP: Kind = Kind("eheap_alloc", "heap");
/// Terms beside a heap: messages, and what BIFs build.
pub const FRAGMENT: Kind = Kind("eheap_alloc", "heap_frag");
/// Bytes of binaries.
pub const BINARY: Kind = Kind("binary_alloc", "binary");
/// Arrays of atomics and counters.
pub const ATOMICS: Kind = Kind("std_alloc", "erl_bif_atomics");
/// Literals of modules and of `persistent_term`.
pub const LITERAL: Kind = Kind("literal_alloc", "literal");
/// What a failed allocation is an error for that a program sees.
const REFUSABLE: Kind = Kind("", "");
/// Everything else.
const OTHER: Kind = Kind("sys_alloc", "undefined");

/// For this many bytes, it is asked first whether the machine has as many at all.
const LARGE_BYTES: usize = 1 << 30;
/// How long the end of the machine may take: what is written first may wait for a lock of the thread that got no memory.
const PATIENCE: Duration = Duration::from_secs(10);

thread_local! {
    static KIND: Cell<Kind> = const { Cell::new(OTHER) };
}

/// Calls `allocate`; where it gets no memory the message says that it was for `kind`.
#[inline]
pub fn kept_for<R>(kind: Kind, allocate: impl FnOnce() -> R) -> R {
    let outer = KIND.replace(kind);
    let made = allocate();
    KIND.set(outer);
    made
}

/// `bytes` zero bytes for a binary.
#[inline]
pub fn zeroed_bytes(bytes: usize) -> Vec<u8> {
    check(BINARY, bytes);
    kept_for(BINARY, || vec![0; bytes])
}

/// Room for `bytes` bytes of a binary.
#[inline]
pub fn room_for_bytes(bytes: usize) -> Vec<u8> {
    check(BINARY, bytes);
    kept_for(BINARY, || Vec::with_capacity(bytes))
}

/// Makes room in `bytes` for exactly `more` bytes; `None` where there is no memory for them.
#[inline]
pub fn try_reserve(bytes: &mut Vec<u8>, more: usize) -> Option<()> {
    kept_for(REFUSABLE, || bytes.try_reserve_exact(more).ok())
}

/// Ends the machine if no allocation can have `bytes` bytes, which collections refuse with a panic.
#[inline]
pub fn check(kind: Kind, bytes: usize) {
    if isize::try_from(bytes).is_err() {
        cannot_allocate(kind, bytes);
    }
}

/// Layout of `words` words; ends the machine if there is none.
#[inline]
pub fn layout_of_words(kind: Kind, words: usize) -> Layout {
    Layout::array::<u64>(words).unwrap_or_else(|_| cannot_allocate(kind, words.saturating_mul(8)))
}

/// Ends the machine: `bytes` bytes cannot be had.
pub fn cannot_allocate(kind: Kind, bytes: usize) -> ! {
    refuse(kind, "allocate", bytes)
}

/// Ends the machine: no heap is that large. Source: `erts_next_heap_size()` in `erl_gc.c`.
pub fn no_heap_size(words: usize, offset: usize) -> ! {
    tell(format_args!(
        "no next heap size found: {words}, offset {offset}\n"
    ));
    end(Exit::Abort)
}

/// Ends the machine: the table `name` has its `max` entries. Source: `index_put_entry()` in `index.c`.
pub fn no_index(name: &str, max: usize) -> ! {
    tell(format_args!(
        "no more index entries in {name} (max={max})\n"
    ));
    end(Exit::Code(1))
}

fn refuse(Kind(allocator, name): Kind, what: &str, bytes: usize) -> ! {
    tell(format_args!(
        "{allocator}: Cannot {what} {bytes} bytes of memory (of type \"{name}\").\n"
    ));
    end(Exit::Code(1))
}

fn tell(message: std::fmt::Arguments<'_>) {
    let mut text = [0; 160];
    let mut rest = &mut text[..];
    let told = rest.write_fmt(message);
    let left = rest.len();
    if told.is_ok() {
        let len = text.len() - left;
        // There is nobody to tell if this fails too.
        let _ = rustix::io::write(rustix::stdio::stderr(), &text[..len]);
    }
}

/// Ends the machine: what must be written first is written, if that takes no longer than [`PATIENCE`].
fn end(exit: Exit) -> ! {
    if crate::halt::try_end(exit) {
        std::thread::sleep(PATIENCE);
    }
    // SAFETY: ends the process; nothing of it is used afterwards.
    unsafe { libc::_exit(1) }
}

/// Bytes that the machine has, with what it can swap out.
fn machine_bytes() -> usize {
    static BYTES: OnceLock<usize> = OnceLock::new();
    *BYTES.get_or_init(|| {
        let info = rustix::system::sysinfo();
        let units = (info.totalram as usize).saturating_add(info.totalswap as usize);
        units.saturating_mul(info.mem_unit as usize)
    })
}

/// More than the machine has. Linux refuses such a mapping; one that reserves nothing, as mimalloc asks for, it grants,
/// to kill whoever touches it.
fn is_absurd(bytes: usize) -> bool {
    bytes >= LARGE_BYTES && bytes > machine_bytes()
}

/// An allocator that ends the machine where `A` has no memory.
#[derive(Debug)]
pub struct OrEnd<A>(pub A);

impl<A: GlobalAlloc> OrEnd<A> {
    fn checked(&self, what: &str, bytes: usize, allocate: impl FnOnce(&A) -> *mut u8) -> *mut u8 {
        let ptr = if is_absurd(bytes) {
            std::ptr::null_mut()
        } else {
            allocate(&self.0)
        };
        if ptr.is_null() && KIND.get() != REFUSABLE {
            refuse(KIND.get(), what, bytes);
        }
        ptr
    }

    /// Gives a block another size that is given back to nobody.
    ///
    /// # Safety
    /// As [`GlobalAlloc::realloc`].
    #[cold]
    unsafe fn move_out(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if region::resize_last(ptr, layout, new_size) {
            return ptr;
        }
        // SAFETY: by contract, the size is one that a layout can have.
        let new =
            unsafe { self.alloc(Layout::from_size_align_unchecked(new_size, layout.align())) };
        if !new.is_null() {
            // SAFETY: by contract, both have at least this many bytes; the new block is nobody else's.
            unsafe { ptr.copy_to_nonoverlapping(new, new_size.min(layout.size())) };
        }
        new
    }
}

// SAFETY: `A` keeps the contract, and a region does (RG1, RG2); M1: where they give nothing there is no return, or a null
// pointer.
unsafe impl<A: GlobalAlloc> GlobalAlloc for OrEnd<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if let Some(block) = region::take(layout) {
            return block;
        }
        // SAFETY: by contract.
        self.checked("allocate", layout.size(), |a| unsafe { a.alloc(layout) })
    }
    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if let Some(block) = region::take(layout) {
            return block;
        }
        // SAFETY: by contract.
        self.checked("allocate", layout.size(), |a| unsafe {
            a.alloc_zeroed(layout)
        })
    }
    #[inline]
    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if region::keeps(ptr) {
            // SAFETY: by contract.
            return unsafe { self.move_out(ptr, layout, new_size) };
        }
        // SAFETY: by contract.
        self.checked("reallocate", new_size, |a| unsafe {
            a.realloc(ptr, layout, new_size)
        })
    }
    #[inline]
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        if !region::keeps(ptr) {
            // SAFETY: by contract.
            unsafe { self.0.dealloc(ptr, layout) }
        }
    }
}
