//! A region: memory that is handed out from its beginning to its end, and not given back.
//!
//! It is for a process that was forked to do little, and to end. Whatever such a process takes from its parent's free
//! blocks, or gives back to them, is in a page that the system has to copy first, and each block is in another one.
//!
//! Invariants:
//! - RG1: the region is nobody else's, stays mapped for ever, and is zero where nothing was handed out.
//! - RG2: nothing is handed out twice.

use std::alloc::Layout;
use std::io;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The bytes of a region. What does not fit comes from the allocator's free blocks.
const BYTES: usize = 1 << 20;
/// How many are made present at once: to touch one after the other costs ten times as much.
const BYTES_AT_ONCE: usize = 96 << 10;

/// Blocks begin at multiples of this number of bytes, whatever they are for, as those of other allocators do: some
/// callers that ask for bytes read words there.
const ALIGNMENT: usize = 16;

/// Where no memory of a process is.
const NOWHERE: usize = 1 << 63;

/// Where the region begins.
static START: AtomicUsize = AtomicUsize::new(NOWHERE);
/// Where nothing has been handed out yet.
static NEXT: AtomicUsize = AtomicUsize::new(0);
/// Where it ends: 0 where nothing more is handed out.
static END: AtomicUsize = AtomicUsize::new(0);

/// From now on, what this process allocates is of a region, until one block does not fit; and it gives nothing back.
/// It has no region yet.
///
/// # Errors
/// The system's.
pub fn begin() -> io::Result<()> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: RG1: new memory, where the system finds room.
    let start = unsafe { libc::mmap(ptr::null_mut(), BYTES, access, flags, -1, 0) };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // Where the system does not know this request, each page comes when it is touched.
    // SAFETY: RG1: the contents stay the same.
    unsafe { libc::madvise(start, BYTES_AT_ONCE, libc::MADV_POPULATE_WRITE) };
    let start = start as usize;
    START.store(start, Ordering::Relaxed);
    NEXT.store(start, Ordering::Relaxed);
    END.store(start + BYTES, Ordering::Relaxed);
    Ok(())
}

/// Whether what is allocated is of the region.
#[inline]
fn is_open() -> bool {
    END.load(Ordering::Relaxed) != 0
}

/// Whether a block is of the region.
#[inline]
fn has(block: *mut u8) -> bool {
    block.addr().wrapping_sub(START.load(Ordering::Relaxed)) < BYTES
}

/// Whether a block is given back to nobody.
#[inline]
pub(super) fn keeps(block: *mut u8) -> bool {
    is_open() || has(block)
}

/// A block of zeros, where there is a region and it fits. Where one does not, none are handed out any more.
#[inline]
pub(super) fn take(layout: Layout) -> Option<*mut u8> {
    match is_open() {
        true => take_next(layout),
        false => None,
    }
}

#[cold]
fn take_next(layout: Layout) -> Option<*mut u8> {
    let end = END.load(Ordering::Relaxed);
    let begin = |next: usize| next.next_multiple_of(layout.align().max(ALIGNMENT));
    let behind = |next: usize| {
        let behind = begin(next).checked_add(layout.size())?;
        (behind <= end).then_some(behind)
    };
    let taken = NEXT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, behind);
    match taken {
        Ok(next) => Some(ptr::with_exposed_provenance_mut(begin(next))),
        Err(_) => {
            END.store(0, Ordering::Relaxed);
            None
        }
    }
}

/// Whether the block that was handed out last has become so large.
pub(super) fn resize_last(block: *mut u8, layout: Layout, bytes: usize) -> bool {
    let end = END.load(Ordering::Relaxed);
    let behind = block.addr() + layout.size();
    let is_room = |behind: &usize| bytes >= layout.size() && *behind <= end;
    let Some(new) = block.addr().checked_add(bytes).filter(is_room) else {
        return false;
    };
    NEXT.compare_exchange(behind, new, Ordering::Relaxed, Ordering::Relaxed)
        .is_ok()
}

#[cfg(test)]
mod tests {
    use std::alloc::{GlobalAlloc, System};

    use super::super::OrEnd;
    use super::*;

    fn layout(bytes: usize, align: usize) -> Layout {
        Layout::from_size_align(bytes, align).expect("a layout")
    }

    /// One test: there is one region in a process.
    #[test]
    fn blocks_are_of_the_region_until_one_does_not_fit() {
        let all = OrEnd(System);
        // SAFETY: as below.
        let before = unsafe { all.alloc(layout(10, 1)) };
        assert!(!has(before));
        begin().expect("a region");

        // SAFETY: by the contract of allocators: blocks are used as they were asked for.
        unsafe {
            let one = all.alloc(layout(3, 1));
            assert!(all.alloc(layout(1, 1)).addr().is_multiple_of(ALIGNMENT));
            let other = all.alloc_zeroed(layout(100, 64));
            assert!(has(one) && has(other));
            assert!(other.addr().is_multiple_of(64) && other.addr() >= one.addr() + 3);
            assert!((0..100).all(|at| *other.add(at) == 0));

            other.write_bytes(7, 100);
            assert_eq!(
                all.realloc(other, layout(100, 64), 200),
                other,
                "the last one grows"
            );
            let behind = all.alloc(layout(8, 8));
            assert!(behind.addr() >= other.addr() + 200);
            behind.write_bytes(9, 8);
            let moved = all.realloc(other, layout(200, 64), 300);
            assert!(moved.addr() >= behind.addr() + 8);
            assert!((0..100).all(|at| *moved.add(at) == 7));
            let smaller = all.realloc(moved, layout(300, 64), 50);
            assert!((0..50).all(|at| *smaller.add(at) == 7));

            before.write_bytes(5, 10);
            let inherited = all.realloc(before, layout(10, 1), 20);
            assert!(has(inherited) && (0..10).all(|at| *inherited.add(at) == 5));
            all.dealloc(smaller, layout(50, 64));

            let large = all.alloc(layout(BYTES, 8));
            assert!(!has(large) && !is_open());
            let next = all.alloc(layout(8, 8));
            assert!(!has(next));
            all.dealloc(one, layout(3, 1));
            let out = all.realloc(behind, layout(8, 8), 16);
            assert!(!has(out) && (0..8).all(|at| *out.add(at) == 9));
            for (block, layout) in [
                (large, layout(BYTES, 8)),
                (next, layout(8, 8)),
                (out, layout(16, 8)),
            ] {
                all.dealloc(block, layout);
            }
        }
    }
}
