//! Binaries, and terms as bytes.

use std::ffi::{c_int, c_uchar, c_uint, c_void};
use std::ptr::{self, NonNull};

use super::resource::Resource;
use super::{Env, api, env, term};
use crate::external::{DecodeOptions, EncodeOptions, decode, encode};
use crate::heap::Binary;
use crate::term::tag::ONHEAP_BINARY_LIMIT;
use crate::term::{Bits, RawTerm};
use crate::value::iolist;

/// `ErlNifBinary`, but for what newer libraries have behind it and nobody uses.
#[repr(C)]
pub(super) struct NifBinary {
    pub(super) size: usize,
    pub(super) data: *mut c_uchar,
    /// A count of the binary that holds the bytes; null for bytes of a term.
    pub(super) binary: *mut Binary,
}

impl NifBinary {
    /// Bytes of a term.
    pub(super) fn of_bytes(bytes: &[u8]) -> NifBinary {
        NifBinary {
            size: bytes.len(),
            data: bytes.as_ptr().cast_mut(),
            binary: ptr::null_mut(),
        }
    }

    /// All bytes of a new binary.
    pub(super) fn of_binary(binary: NonNull<Binary>) -> NifBinary {
        // SAFETY: BC1: its count is in hand.
        let (data, size) = unsafe { (binary.as_ref().data(), binary.as_ref().size()) };
        NifBinary {
            size,
            data: data.cast_mut(),
            binary: binary.as_ptr(),
        }
    }
}

impl Env {
    /// `bytes`, kept until the call ends or the environment is cleared.
    pub(super) fn keep(&self, bytes: &[u8]) -> *mut u8 {
        let mut words = vec![0u64; bytes.len().div_ceil(8).max(1)].into_boxed_slice();
        let data = words.as_mut_ptr().cast::<u8>();
        // SAFETY: as many words have room for the bytes.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), data, bytes.len()) };
        let mut temporaries = self.temporaries.take().unwrap_or_default();
        temporaries.push(words);
        self.temporaries.set(Some(temporaries));
        data
    }
}

/// The bytes of a binary: where they are, or a copy of bits that begin within a byte.
pub(super) fn inspect(env: &Env, bits: Bits<'_>) -> NifBinary {
    match bits.as_bytes() {
        Some(bytes) => NifBinary::of_bytes(bytes),
        None => {
            let bytes = bits.to_vec();
            NifBinary {
                data: env.keep(&bytes),
                ..NifBinary::of_bytes(&bytes)
            }
        }
    }
}

/// A binary of `size` bytes, zero at first; `None` where there is no memory.
fn new_binary(size: usize) -> Option<NonNull<Binary>> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(size).ok()?;
    bytes.resize(size, 0);
    Some(Binary::from_vec(bytes, size))
}

api! {
    /// The bytes of a binary.
    fn enif_inspect_binary(e: *mut Env, t: RawTerm, out: *mut NifBinary) -> c_int {
        let Some(bits) = term(t).as_binary() else { return 0 };
        out.write(inspect(env(e), bits));
        1
    }
    /// The bytes of an I/O list.
    fn enif_inspect_iolist_as_binary(e: *mut Env, t: RawTerm, out: *mut NifBinary) -> c_int {
        if term(t).as_bits().is_some() {
            return enif_inspect_binary(e, t, out);
        }
        let Ok(bytes) = iolist::to_vec(term(t)) else { return 0 };
        out.write(NifBinary { data: env(e).keep(&bytes), ..NifBinary::of_bytes(&bytes) });
        1
    }
    /// A binary of the library's.
    fn enif_alloc_binary(size: usize, out: *mut NifBinary) -> c_int {
        let Some(binary) = new_binary(size) else { return 0 };
        out.write(NifBinary::of_binary(binary));
        1
    }
    /// Gives a binary room for more bytes, or for fewer.
    fn enif_realloc_binary(bin: *mut NifBinary, size: usize) -> c_int {
        let bin = &mut *bin;
        match bin.binary.as_ref() {
            // BC2: nobody else has it in hand.
            Some(binary) => {
                binary.grow(size, size);
                *bin = NifBinary::of_binary(NonNull::from(binary));
            }
            None => {
                let Some(binary) = new_binary(size) else { return 0 };
                let to = binary.as_ref().data().cast_mut();
                ptr::copy_nonoverlapping(bin.data, to, size.min(bin.size));
                *bin = NifBinary::of_binary(binary);
            }
        }
        1
    }
    /// Gives up a binary of the library's.
    fn enif_release_binary(bin: *mut NifBinary) {
        let binary = ptr::replace(&raw mut (*bin).binary, ptr::null_mut());
        if !binary.is_null() {
            Binary::release(binary);
        }
    }
    /// A term of a binary. The bytes of one of the library's can be read until the environment ends.
    fn enif_make_binary(e: *mut Env, bin: *mut NifBinary) -> RawTerm {
        let (heap, bin) = (env(e).heap(), &mut *bin);
        let bytes = match bin.size {
            0 => &[],
            size => std::slice::from_raw_parts(bin.data, size),
        };
        let Some(binary) = NonNull::new(ptr::replace(&raw mut bin.binary, ptr::null_mut())) else {
            return heap.binary(bytes).raw();
        };
        if bin.size > ONHEAP_BINARY_LIMIT {
            return heap.off_heap_bits(binary, bin.size * 8).raw();
        }
        heap.hold(binary);
        heap.binary(bytes).raw()
    }
    /// A term of a new binary, and where its bytes go.
    fn enif_make_new_binary(e: *mut Env, size: usize, out: *mut RawTerm) -> *mut c_uchar {
        let heap = env(e).heap();
        let made = match size > ONHEAP_BINARY_LIMIT {
            true => match new_binary(size) {
                Some(binary) => heap.off_heap_bits(binary, size * 8),
                None => return ptr::null_mut(),
            },
            false => heap.binary(&[0; ONHEAP_BINARY_LIMIT][..size]),
        };
        out.write(made.raw());
        made.as_bits().map_or(ptr::null_mut(), |bits| bits.base().cast_mut())
    }
    /// Part of a binary.
    fn enif_make_sub_binary(e: *mut Env, t: RawTerm, pos: usize, size: usize) -> RawTerm {
        match term(t).as_bits() {
            Some(bits) => env(e).heap().sub_bits(bits, pos * 8, (pos + size) * 8).raw(),
            None => super::build::raise(env(e), crate::term::am::badarg.raw()),
        }
    }
    /// A binary of bytes that belong to a resource, which lives as long as they.
    fn enif_make_resource_binary(e: *mut Env, object: *mut c_void, data: *const c_void, size: usize) -> RawTerm {
        env(e).heap().object_bits(Resource::magic_of(object), data.cast(), size).raw()
    }

    /// A term in the external format.
    fn enif_term_to_binary(_e: *mut Env, t: RawTerm, out: *mut NifBinary) -> c_int {
        let Ok(bytes) = encode(term(t), EncodeOptions::default()) else { return 0 };
        let size = bytes.len();
        out.write(NifBinary::of_binary(Binary::from_vec(bytes, size)));
        1
    }
    /// A term from the external format: how many bytes it took; 0 for what is no term.
    fn enif_binary_to_term(
        e: *mut Env, data: *const c_uchar, size: usize, out: *mut RawTerm, options: c_uint,
    ) -> usize {
        const SAFE: c_uint = 0x2000_0000;
        if options & !SAFE != 0 || size == 0 {
            return 0;
        }
        let options = DecodeOptions { safe: options == SAFE };
        match decode(env(e).heap(), std::slice::from_raw_parts(data, size), options) {
            Ok((decoded, used)) => {
                out.write(decoded.raw());
                used
            }
            Err(_) => 0,
        }
    }
}
