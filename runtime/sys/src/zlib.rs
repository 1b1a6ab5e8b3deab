//! Safe wrappers of zlib's streams. The library is built in.
//!
//! Invariants:
//! - Z1: a stream's structure stays where it was initialised (zlib points back to it), and is ended once.
//! - Z2: the input and output given to a step are valid for that step alone: they are set before each call and never
//!   read by zlib afterwards.
#![expect(unsafe_code, reason = "zlib is written in C")]

use std::mem::MaybeUninit;
use std::ptr;

use libz_sys as z;

/// A result of zlib's that is no success: one of its codes.
pub type Code = i32;

pub use libz_sys::{
    Z_BUF_ERROR, Z_DATA_ERROR, Z_MEM_ERROR, Z_NEED_DICT, Z_NO_FLUSH, Z_OK, Z_STREAM_END,
    Z_STREAM_ERROR, Z_VERSION_ERROR,
};

/// Which way a stream goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Compresses.
    Deflate,
    /// Expands.
    Inflate,
}

/// A stream.
pub struct Stream {
    stream: Box<z::z_stream>,
    direction: Direction,
}

// SAFETY: Z1: the structure moves with its box; zlib keeps no state per thread.
unsafe impl Send for Stream {}

/// The result of one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// zlib's code.
    pub code: Code,
    /// Bytes of the input that were taken.
    pub consumed: usize,
    /// Bytes of the output that were made.
    pub produced: usize,
}

fn length(bytes: &[u8]) -> z::uInt {
    z::uInt::try_from(bytes.len()).unwrap_or(z::uInt::MAX)
}

extern "C" fn allocate(_: z::voidpf, items: z::uInt, size: z::uInt) -> z::voidpf {
    // SAFETY: the C library's allocator, which reports failure by a null pointer.
    unsafe { libc::calloc(items as usize, size as usize) }
}

extern "C" fn release(_: z::voidpf, address: z::voidpf) {
    // SAFETY: zlib gives back what `allocate` gave it.
    unsafe { libc::free(address) }
}

fn blank() -> Box<z::z_stream> {
    Box::new(z::z_stream {
        next_in: ptr::null_mut(),
        avail_in: 0,
        total_in: 0,
        next_out: ptr::null_mut(),
        avail_out: 0,
        total_out: 0,
        msg: ptr::null_mut(),
        state: ptr::null_mut(),
        zalloc: allocate,
        zfree: release,
        opaque: ptr::null_mut(),
        data_type: z::Z_BINARY,
        adler: 0,
        reserved: 0,
    })
}

const STREAM_BYTES: i32 = size_of::<z::z_stream>() as i32;

impl Stream {
    /// A stream that compresses.
    ///
    /// # Errors
    /// `Z_STREAM_ERROR` for a parameter out of range, `Z_MEM_ERROR`.
    pub fn deflate(
        level: i32,
        method: i32,
        window_bits: i32,
        mem_level: i32,
        strategy: i32,
    ) -> Result<Stream, Code> {
        let mut stream = blank();
        // SAFETY: Z1.
        let code = unsafe {
            z::deflateInit2_(
                &raw mut *stream,
                level,
                method,
                window_bits,
                mem_level,
                strategy,
                z::zlibVersion(),
                STREAM_BYTES,
            )
        };
        Stream::of(stream, Direction::Deflate, code)
    }

    /// A stream that expands.
    ///
    /// # Errors
    /// `Z_STREAM_ERROR` for a parameter out of range, `Z_MEM_ERROR`.
    pub fn inflate(window_bits: i32) -> Result<Stream, Code> {
        let mut stream = blank();
        // SAFETY: Z1.
        let code = unsafe {
            z::inflateInit2_(
                &raw mut *stream,
                window_bits,
                z::zlibVersion(),
                STREAM_BYTES,
            )
        };
        Stream::of(stream, Direction::Inflate, code)
    }

    fn of(stream: Box<z::z_stream>, direction: Direction, code: Code) -> Result<Stream, Code> {
        if code == Z_OK {
            Ok(Stream { stream, direction })
        } else {
            Err(code)
        }
    }

    /// Which way it goes.
    #[must_use]
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// The checksum that zlib keeps: of the data, or of the dictionary it needs.
    #[must_use]
    pub fn adler(&self) -> u64 {
        self.stream.adler
    }

    /// Takes from `input` and adds to `output`, as far as either goes.
    pub fn step(&mut self, input: &[u8], output: &mut [u8], flush: i32) -> Step {
        let (taken, room) = (length(input), length(output));
        self.stream.next_in = input.as_ptr().cast_mut();
        self.stream.avail_in = taken;
        self.stream.next_out = output.as_mut_ptr();
        self.stream.avail_out = room;
        // SAFETY: Z1, Z2: zlib does not write to its input.
        let code = unsafe {
            match self.direction {
                Direction::Deflate => z::deflate(&raw mut *self.stream, flush),
                Direction::Inflate => z::inflate(&raw mut *self.stream, flush),
            }
        };
        Step {
            code,
            consumed: (taken - self.stream.avail_in) as usize,
            produced: (room - self.stream.avail_out) as usize,
        }
    }

    /// Starts again, with the same parameters.
    pub fn reset(&mut self) -> Code {
        // SAFETY: Z1.
        unsafe {
            match self.direction {
                Direction::Deflate => z::deflateReset(&raw mut *self.stream),
                Direction::Inflate => z::inflateReset(&raw mut *self.stream),
            }
        }
    }

    /// Sets the dictionary.
    pub fn set_dictionary(&mut self, dictionary: &[u8]) -> Code {
        let (data, size) = (dictionary.as_ptr(), length(dictionary));
        // SAFETY: Z1: the dictionary is copied by the call.
        unsafe {
            match self.direction {
                Direction::Deflate => z::deflateSetDictionary(&raw mut *self.stream, data, size),
                Direction::Inflate => z::inflateSetDictionary(&raw mut *self.stream, data, size),
            }
        }
    }

    /// The dictionary of a stream that expands: the last output.
    ///
    /// # Errors
    /// zlib's code.
    pub fn dictionary(&mut self) -> Result<Vec<u8>, Code> {
        let mut out = vec![0; 1 << 15];
        let mut size = 0;
        // SAFETY: Z1: a dictionary has at most 32 kB, the largest window.
        let code =
            unsafe { inflateGetDictionary(&raw mut *self.stream, out.as_mut_ptr(), &raw mut size) };
        if code < 0 {
            return Err(code);
        }
        out.truncate(size as usize);
        Ok(out)
    }

    /// Changes level and strategy of a stream that compresses and has nothing pending. `None` when it had.
    pub fn set_params(&mut self, level: i32, strategy: i32) -> Option<Code> {
        let mut room = MaybeUninit::<u8>::uninit();
        self.stream.next_in = ptr::null_mut();
        self.stream.avail_in = 0;
        self.stream.next_out = room.as_mut_ptr();
        self.stream.avail_out = 1;
        // SAFETY: Z1, Z2: room for one byte.
        let code = unsafe { z::deflateParams(&raw mut *self.stream, level, strategy) };
        (self.stream.avail_out != 0).then_some(code)
    }

    /// Ends the stream. `Z_DATA_ERROR` when a stream that compresses ends before its time.
    pub fn end(mut self) -> Code {
        self.release()
    }

    fn release(&mut self) -> Code {
        if self.stream.state.is_null() {
            return Z_OK;
        }
        // SAFETY: Z1: zlib clears `state`, so that this is done once.
        unsafe {
            match self.direction {
                Direction::Deflate => z::deflateEnd(&raw mut *self.stream),
                Direction::Inflate => z::inflateEnd(&raw mut *self.stream),
            }
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.release();
    }
}

unsafe extern "C" {
    /// Missing from the bindings.
    fn inflateGetDictionary(
        stream: *mut z::z_stream,
        dictionary: *mut u8,
        size: *mut z::uInt,
    ) -> libc::c_int;
}

/// The Adler-32 checksum of `bytes`, from `start`.
#[must_use]
pub fn adler32(start: u64, bytes: &[u8]) -> u64 {
    // SAFETY: reads the bytes alone.
    unsafe { z::adler32(start, bytes.as_ptr(), length(bytes)) }
}
