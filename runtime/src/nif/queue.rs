//! Queues of bytes (`ErlNifIOQueue`), and I/O vectors.

use std::collections::VecDeque;
use std::ffi::{c_int, c_void};
use std::ptr::{self, NonNull};

use super::binary::{NifBinary, inspect};
use super::{Env, api, env, term};
use crate::heap::{Binary, SharedBytes};
use crate::term::tag::ONHEAP_BINARY_LIMIT;
use crate::term::{RawTerm, Term};

/// Elements that an `ErlNifIOVec` has room for itself.
const SMALL: usize = 16;

/// `SysIOVec`.
type Iov = libc::iovec;

/// `ErlNifIOVec`.
#[repr(C)]
pub(super) struct IoVec {
    count: c_int,
    size: usize,
    iov: *mut Iov,
    /// Counts of the binaries that hold the bytes, as many as elements.
    binaries: *mut *mut c_void,
    flags: c_int,
    small_iov: [Iov; SMALL],
    small_binaries: [*mut c_void; SMALL],
}

/// The vector is the library's own memory.
const PREALLOCATED: c_int = 1;
/// It was made without an environment, and holds counts.
const COUNTED: c_int = 2;

/// Bytes in a queue: all of a binary's, or from some index on.
struct Part {
    bytes: SharedBytes,
    from: usize,
    to: usize,
}

/// `ErlNifIOQueue`.
#[derive(Default)]
pub(super) struct Queue {
    parts: VecDeque<Part>,
    size: usize,
    /// What was shown last.
    shown: Vec<Iov>,
}

impl Queue {
    fn push(&mut self, bytes: SharedBytes, from: usize, to: usize) {
        if from < to {
            self.size += to - from;
            self.parts.push_back(Part { bytes, from, to });
        }
    }

    /// Drops the first `count` bytes; not if there are fewer.
    fn drop_first(&mut self, mut count: usize) -> bool {
        if count > self.size {
            return false;
        }
        self.size -= count;
        while let Some(part) = self.parts.front_mut().filter(|_| count > 0) {
            let taken = count.min(part.to - part.from);
            part.from += taken;
            count -= taken;
            if part.from == part.to {
                self.parts.pop_front();
            }
        }
        true
    }

    /// Where its bytes are.
    fn show(&mut self) -> &mut [Iov] {
        let iov = self.parts.iter().map(|part| {
            let bytes = &part.bytes.as_slice()[part.from..part.to];
            Iov {
                iov_base: bytes.as_ptr().cast_mut().cast(),
                iov_len: bytes.len(),
            }
        });
        self.shown = iov.collect();
        &mut self.shown
    }
}

/// The binaries of a list, at most `most` of them, and what follows; `None` for other lists.
fn binaries(list: Term<'_>, most: usize) -> Option<(Vec<Term<'_>>, Term<'_>)> {
    let (mut found, mut rest) = (Vec::new(), list);
    while found.len() < most {
        let Some(cell) = rest.as_cons() else { break };
        cell.head().as_binary()?;
        found.push(cell.head());
        rest = cell.tail();
    }
    let goes_on = rest.is_nil() || rest.as_cons().is_some();
    goes_on.then_some((found, rest))
}

/// An I/O vector in memory of its own, which `keep` has, or in the library's.
fn vector(given: *mut IoVec, count: usize, keep: impl FnOnce(usize) -> *mut u8) -> *mut IoVec {
    let words = size_of::<IoVec>() + count * (size_of::<Iov>() + size_of::<*mut c_void>());
    let is_given = !given.is_null() && count < SMALL;
    let this = if is_given {
        given
    } else {
        keep(words).cast::<IoVec>()
    };
    // SAFETY: NF1: the library's memory, or as much as the vector and its arrays take.
    unsafe {
        let (iov, binaries, flags) = match is_given {
            true => (
                (&raw mut (*this).small_iov).cast(),
                (&raw mut (*this).small_binaries).cast(),
                PREALLOCATED,
            ),
            false => {
                let iov = this.add(1).cast::<Iov>();
                (iov, iov.add(count).cast(), 0)
            }
        };
        (&raw mut (*this).iov).write(iov);
        (&raw mut (*this).binaries).write(binaries);
        (&raw mut (*this).flags).write(flags);
        (&raw mut (*this).count).write(count as c_int);
        (&raw mut (*this).size).write(0);
    }
    this
}

/// A count of a binary with the bytes of a term: its own, or a new one.
fn counted(t: Term<'_>) -> (NonNull<Binary>, *const u8, usize) {
    let bits = t.as_binary().expect("looked at before");
    if let (Some(binary), Some(bytes)) = (bits.binary(), bits.as_bytes()) {
        binary.retain();
        return (NonNull::from(binary), bytes.as_ptr(), bytes.len());
    }
    let bytes = bits.to_vec();
    let size = bytes.len();
    let binary = Binary::from_vec(bytes, size);
    // SAFETY: BC1: its count is in hand.
    (binary, unsafe { binary.as_ref() }.data(), size)
}

/// Fills a vector with the bytes of `list`.
///
/// # Safety
/// N1, NF1: `this` has room for as many.
unsafe fn fill(this: *mut IoVec, env: Option<&Env>, list: &[Term<'_>]) {
    for (i, t) in list.iter().enumerate() {
        let (binary, data, size) = match env {
            Some(env) => {
                let bytes = inspect(env, t.as_binary().expect("looked at before"));
                let held = t.as_bits().and_then(|bits| bits.binary());
                let held = held.map_or(ptr::null_mut(), |it| ptr::from_ref(it).cast_mut());
                (held, bytes.data.cast_const(), bytes.size)
            }
            None => {
                let (binary, data, size) = counted(*t);
                (binary.as_ptr(), data, size)
            }
        };
        // SAFETY: by contract.
        unsafe {
            let iov = Iov {
                iov_base: data.cast_mut().cast(),
                iov_len: size,
            };
            (*this).iov.add(i).write(iov);
            (*this).binaries.add(i).write(binary.cast());
            (*this).size += size;
        }
    }
    if env.is_none() {
        // SAFETY: by contract.
        unsafe { (*this).flags |= COUNTED };
    }
}

api! {
    /// A queue.
    fn enif_ioq_create(_options: c_int) -> *mut Queue { Box::into_raw(Box::default()) }
    /// Its end.
    fn enif_ioq_destroy(queue: *mut Queue) { drop(Box::from_raw(queue)); }
    /// Bytes in it.
    fn enif_ioq_size(queue: *const Queue) -> usize { (*queue).size }
    /// Puts a binary of the library's in it, but for its first bytes.
    fn enif_ioq_enq_binary(queue: *mut Queue, bin: *mut NifBinary, skip: usize) -> c_int {
        let bin = &mut *bin;
        let bytes = match NonNull::new(ptr::replace(&raw mut bin.binary, ptr::null_mut())) {
            Some(binary) => SharedBytes::from_binary(binary),
            // A term's bytes, which stay the term's.
            None => SharedBytes::from_vec(std::slice::from_raw_parts(bin.data, bin.size).to_vec()),
        };
        if skip > bin.size {
            return 0;
        }
        (*queue).push(bytes, skip, bin.size);
        1
    }
    /// Puts the bytes of a vector in it, but for the first ones.
    fn enif_ioq_enqv(queue: *mut Queue, vector: *mut IoVec, skip: usize) -> c_int {
        let (queue, vector) = (&mut *queue, &*vector);
        if skip > vector.size {
            return 0;
        }
        let mut skip = skip;
        for i in 0..vector.count as usize {
            let Iov { iov_base, iov_len } = *vector.iov.add(i);
            let skipped = skip.min(iov_len);
            skip -= skipped;
            let bytes = std::slice::from_raw_parts(iov_base.cast::<u8>(), iov_len);
            queue.push(SharedBytes::from_vec(bytes[skipped..].to_vec()), 0, iov_len - skipped);
        }
        1
    }
    /// Drops bytes; how many are left.
    fn enif_ioq_deq(queue: *mut Queue, count: usize, left: *mut usize) -> c_int {
        let queue = &mut *queue;
        if !queue.drop_first(count) {
            return 0;
        }
        if !left.is_null() {
            left.write(queue.size);
        }
        1
    }
    /// Where its bytes are.
    fn enif_ioq_peek(queue: *mut Queue, count: *mut c_int) -> *mut Iov {
        let shown = (*queue).show();
        if !count.is_null() {
            count.write(shown.len() as c_int);
        }
        shown.as_mut_ptr()
    }
    /// Its first bytes, as a term.
    fn enif_ioq_peek_head(e: *mut Env, queue: *mut Queue, size: *mut usize, head: *mut RawTerm) -> c_int {
        let Some(part) = (*queue).parts.front() else { return 0 };
        let (heap, bytes) = (env(e).heap(), &part.bytes.as_slice()[part.from..part.to]);
        if !size.is_null() {
            size.write(bytes.len());
        }
        let made = match bytes.len() > ONHEAP_BINARY_LIMIT {
            true => {
                let whole = heap.shared_bytes(&part.bytes, 0);
                let bits = whole.as_bits().expect("a binary");
                heap.sub_bits(bits, part.from * 8, part.to * 8)
            }
            false => heap.binary(bytes),
        };
        head.write(made.raw());
        1
    }

    /// The first binaries of a list as a vector, and what follows them.
    fn enif_inspect_iovec(
        e: *mut Env, most: usize, list: RawTerm, tail: *mut RawTerm, out: *mut *mut IoVec,
    ) -> c_int {
        let Some((mut list, rest)) = binaries(term(list), most) else { return 0 };
        list.retain(|t| t.as_bits().is_some_and(|bits| bits.bit_len() > 0));
        let env = e.as_ref();
        let made = vector(*out, list.len(), |bytes| match env {
            Some(env) => env.keep(&vec![0; bytes]),
            None => libc::calloc(1, bytes).cast(),
        });
        fill(made, env, &list);
        tail.write(rest.raw());
        out.write(made);
        1
    }
    /// Gives a vector up that was made without an environment.
    fn enif_free_iovec(vector: *mut IoVec) {
        if (*vector).flags & COUNTED != 0 {
            for i in 0..(*vector).count as usize {
                Binary::release((*(*vector).binaries.add(i)).cast());
            }
            if (*vector).flags & PREALLOCATED == 0 {
                libc::free(vector.cast());
            }
        }
    }
}
