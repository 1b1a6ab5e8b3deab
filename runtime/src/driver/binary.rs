//! `ErlDrvBinary`, and vectors of them.
//!
//! Invariant DB1: a [`Block`] is there as long as its count is not zero, and its bytes are where they are as long as
//! more than one has a count; so a library that changes the size of one has the only count.

use std::alloc::{Layout, alloc, dealloc, realloc};
use std::ffi::{c_char, c_int};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicIsize, Ordering};

use super::api;
use crate::heap::{Heap, MagicBinary, binary_bytes_given_back, binary_bytes_taken};
use crate::process::refs::make_ref;
use crate::sys::memory;
use crate::term::Term;
use crate::term::tag::ONHEAP_BINARY_LIMIT;

/// A binary with its count, whose `ErlDrvBinary` is `size` and what follows.
#[repr(C)]
struct Block {
    count: AtomicIsize,
    size: isize,
}

/// `ErlDrvBinary`.
#[repr(C)]
pub(super) struct DrvBinary {
    size: isize,
    bytes: [c_char; 1],
}

/// `SysIOVec`.
pub(super) type Iov = libc::iovec;

/// `ErlIOVec`.
#[repr(C)]
pub(super) struct IoVec {
    pub(super) count: c_int,
    pub(super) size: usize,
    pub(super) iov: *mut Iov,
    pub(super) binaries: *mut *mut DrvBinary,
}

fn layout(size: usize) -> Option<Layout> {
    Layout::from_size_align(size_of::<Block>().checked_add(size)?, align_of::<Block>()).ok()
}

/// A count of a binary.
pub(super) struct Counted(NonNull<DrvBinary>);

// SAFETY: DB1: the count is atomic, and nobody changes bytes that more than one has.
unsafe impl Send for Counted {}
// SAFETY: as for `Send`.
unsafe impl Sync for Counted {}

impl Counted {
    /// A binary of `size` bytes, whatever they are; `None` where there is no memory.
    fn try_new(size: usize) -> Option<Counted> {
        let layout = layout(size)?;
        // SAFETY: the layout has the size of a block at least; a new block is written before anybody sees it.
        unsafe {
            let block = alloc(layout).cast::<Block>();
            let block = NonNull::new(block)?;
            block.write(Block {
                count: AtomicIsize::new(1),
                size: size.cast_signed(),
            });
            binary_bytes_taken(size);
            let binary = (&raw mut (*block.as_ptr()).size).cast::<DrvBinary>();
            Some(Counted(NonNull::new_unchecked(binary)))
        }
    }

    /// A binary of these bytes.
    pub(super) fn of(bytes: &[u8]) -> Counted {
        memory::check(memory::BINARY, bytes.len());
        let new = Counted::try_new(bytes.len()).expect("there is memory, or the machine has ended");
        // SAFETY: DB1: new, and as long.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), new.data(), bytes.len()) };
        new
    }

    /// One more count of a binary that a library has.
    ///
    /// # Safety
    /// NF1.
    pub(super) unsafe fn again(binary: *mut DrvBinary) -> Option<Counted> {
        let binary = NonNull::new(binary)?;
        // SAFETY: by contract, DB1.
        unsafe { block(binary.as_ptr()).count.fetch_add(1, Ordering::Relaxed) };
        Some(Counted(binary))
    }

    /// The count that a library gives.
    ///
    /// # Safety
    /// NF1, and the library uses it no more.
    pub(super) unsafe fn given(binary: *mut DrvBinary) -> Option<Counted> {
        NonNull::new(binary).map(Counted)
    }

    /// The count for a library.
    pub(super) fn into_raw(self) -> *mut DrvBinary {
        let it = self.0.as_ptr();
        std::mem::forget(self);
        it
    }

    /// The binary for a library, whose count stays here.
    pub(super) fn as_ptr(&self) -> *mut DrvBinary {
        self.0.as_ptr()
    }

    pub(super) fn data(&self) -> *mut u8 {
        // SAFETY: DB1.
        unsafe { data(self.as_ptr()) }
    }

    pub(super) fn size(&self) -> usize {
        // SAFETY: DB1.
        unsafe { self.0.as_ref() }.size.cast_unsigned()
    }

    /// Some of its bytes.
    pub(super) fn bytes(&self, from: usize, to: usize) -> &[u8] {
        assert!(from <= to && to <= self.size(), "a part of the binary");
        // SAFETY: DB1, and the part is within.
        unsafe { std::slice::from_raw_parts(self.data().add(from), to - from) }
    }

    /// A term of some of its bytes, shared where they are many.
    pub(super) fn term<'h>(self, heap: &'h Heap, from: usize, to: usize) -> Term<'h> {
        let bytes = self.bytes(from, to);
        if bytes.len() <= ONHEAP_BINARY_LIMIT {
            return heap.binary(bytes);
        }
        let (start, size) = (bytes.as_ptr(), bytes.len());
        let object = MagicBinary::new(make_ref(), Box::new(self));
        // SAFETY: DB1: the object has a count of the block.
        unsafe { heap.object_bits(object, start, size) }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        // SAFETY: DB1: gives up the count it has.
        unsafe { release(self.as_ptr()) };
    }
}

/// # Safety
/// DB1: somebody has a count.
unsafe fn block<'a>(binary: *mut DrvBinary) -> &'a Block {
    // SAFETY: by contract; the binary is the second field.
    unsafe {
        &*binary
            .byte_sub(std::mem::offset_of!(Block, size))
            .cast::<Block>()
    }
}

/// # Safety
/// DB1: somebody has a count.
unsafe fn data(binary: *mut DrvBinary) -> *mut u8 {
    // SAFETY: by contract.
    unsafe { (&raw mut (*binary).bytes).cast() }
}

/// # Safety
/// DB1: the caller gives up its count.
unsafe fn release(binary: *mut DrvBinary) -> isize {
    // SAFETY: by contract; the layout is that of the block's size.
    unsafe {
        let block = block(binary);
        let left = block.count.fetch_sub(1, Ordering::AcqRel) - 1;
        if left == 0 {
            let size = block.size.cast_unsigned();
            let layout = layout(size).expect("it was made with it");
            binary_bytes_given_back(size);
            dealloc(ptr::from_ref(block).cast_mut().cast(), layout);
        }
        left
    }
}

/// The binary with another size; null where there is no memory.
///
/// # Safety
/// DB1: the caller has the only count.
unsafe fn resize(binary: *mut DrvBinary, size: usize) -> *mut DrvBinary {
    // SAFETY: by contract; the block was made with the layout of its size.
    unsafe {
        let old = block(binary);
        let old_size = old.size.cast_unsigned();
        let (Some(before), Some(after)) = (layout(old_size), layout(size)) else {
            return ptr::null_mut();
        };
        let moved =
            realloc(ptr::from_ref(old).cast_mut().cast(), before, after.size()).cast::<Block>();
        if moved.is_null() {
            return ptr::null_mut();
        }
        binary_bytes_given_back(old_size);
        binary_bytes_taken(size);
        (*moved).size = size.cast_signed();
        (&raw mut (*moved).size).cast()
    }
}

/// The elements of a vector behind its first `skip` bytes: their bytes, and the binaries that hold them.
///
/// # Safety
/// NF1.
pub(super) unsafe fn elements<'a>(
    vector: *const IoVec,
    skip: usize,
) -> Vec<(&'a [u8], *mut DrvBinary)> {
    let (mut found, mut skip) = (Vec::new(), skip);
    // SAFETY: by contract.
    let vector = unsafe { &*vector };
    for i in 0..usize::try_from(vector.count).unwrap_or(0) {
        // SAFETY: by contract.
        let (bytes, binary) = unsafe {
            let Iov { iov_base, iov_len } = *vector.iov.add(i);
            let binary = match vector.binaries.is_null() {
                true => ptr::null_mut(),
                false => *vector.binaries.add(i),
            };
            (bytes_at(iov_base.cast(), iov_len), binary)
        };
        let skipped = skip.min(bytes.len());
        skip -= skipped;
        if skipped < bytes.len() {
            found.push((&bytes[skipped..], binary));
        }
    }
    found
}

/// Bytes that a library gives; null for none.
///
/// # Safety
/// NF1.
pub(super) unsafe fn bytes_at<'a>(data: *const c_char, size: usize) -> &'a [u8] {
    match size {
        0 => &[],
        // SAFETY: by contract.
        _ => unsafe { std::slice::from_raw_parts(data.cast(), size) },
    }
}

/// The binary that holds `bytes`, and where they begin in it: the one that the library says, or a copy.
///
/// # Safety
/// NF1.
pub(super) unsafe fn holder(bytes: &[u8], binary: *mut DrvBinary) -> (Counted, usize) {
    // SAFETY: by contract.
    match unsafe { Counted::again(binary) } {
        Some(counted) => {
            let from = bytes.as_ptr().addr() - counted.data().addr();
            (counted, from)
        }
        None => (Counted::of(bytes), 0),
    }
}

api! {
    /// A binary; null where there is no memory.
    fn driver_alloc_binary(size: usize) -> *mut DrvBinary {
        Counted::try_new(size).map_or(ptr::null_mut(), Counted::into_raw)
    }
    /// Gives a binary another size; null if there is no memory.
    fn driver_realloc_binary(binary: *mut DrvBinary, size: usize) -> *mut DrvBinary {
        match binary.is_null() {
            true => driver_alloc_binary(size),
            false => resize(binary, size),
        }
    }
    /// Gives up a count.
    fn driver_free_binary(binary: *mut DrvBinary) { drop(Counted::given(binary)); }
    /// How many counts there are.
    fn driver_binary_get_refc(binary: *mut DrvBinary) -> isize { block(binary).count.load(Ordering::Acquire) }
    /// One count more; how many there are.
    fn driver_binary_inc_refc(binary: *mut DrvBinary) -> isize {
        block(binary).count.fetch_add(1, Ordering::AcqRel) + 1
    }
    /// One count less; how many there are.
    fn driver_binary_dec_refc(binary: *mut DrvBinary) -> isize { release(binary) }
    /// Copies the first bytes of a vector; how many there was no room for, or -1 where the vector has fewer.
    fn driver_vec_to_buf(vector: *mut IoVec, to: *mut c_char, room: usize) -> usize {
        let mut done = 0;
        for (bytes, _) in elements(vector, 0) {
            let count = bytes.len().min(room - done);
            ptr::copy_nonoverlapping(bytes.as_ptr(), to.cast::<u8>().add(done), count);
            done += count;
        }
        done
    }
}
