//! Safe wrappers of zstd's contexts and dictionaries. The library is built in.
//!
//! Invariants:
//! - ZS1: the pointer of a context or a dictionary is what zstd's function gave for it, is not null, and is freed once,
//!   by its owner's `drop`.
//! - ZS2: input and output given to zstd are valid for that call alone; zstd copies what it keeps.
//! - ZS3: a context that refers to a dictionary owns a share of it for as long.
//! - ZS4: zstd's objects have no state per thread, and nothing changes a dictionary after it was made.
#![expect(unsafe_code, reason = "zstd is written in C")]

use std::ffi::CStr;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use zstd_sys as z;

pub use zstd_sys::ZSTD_EndDirective as EndDirective;
pub use zstd_sys::ZSTD_cParameter as CompressParameter;
pub use zstd_sys::ZSTD_dParameter as DecompressParameter;

/// What zstd says of a call that failed.
pub type Error = &'static str;

/// The result of one of zstd's functions.
fn checked(code: usize) -> Result<usize, Error> {
    // SAFETY: ZS2: both functions take a number.
    if unsafe { z::ZSTD_isError(code) } == 0 {
        return Ok(code);
    }
    // SAFETY: ZS2: the name is a text that lives for ever.
    let name = unsafe { CStr::from_ptr(z::ZSTD_getErrorName(code)) };
    Err(name.to_str().unwrap_or("Unspecified error code"))
}

/// What a pointer to `bytes` is in C; zstd reads nothing behind a length of zero.
fn start(bytes: &[u8]) -> *const std::ffi::c_void {
    bytes.as_ptr().cast()
}

/// The result of one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Bytes of the input that were taken.
    pub consumed: usize,
    /// Bytes of the output that were made.
    pub produced: usize,
    /// 0 when all is done: a hint of how many bytes are left.
    pub remaining: usize,
}

/// Has `codec` take `input` and fill `output`.
fn step(
    input: &[u8],
    output: &mut [u8],
    codec: impl FnOnce(*mut z::ZSTD_outBuffer, *mut z::ZSTD_inBuffer) -> usize,
) -> Result<Step, Error> {
    let mut into = z::ZSTD_outBuffer {
        dst: output.as_mut_ptr().cast(),
        size: output.len(),
        pos: 0,
    };
    let mut from = z::ZSTD_inBuffer {
        src: start(input),
        size: input.len(),
        pos: 0,
    };
    let remaining = checked(codec(&raw mut into, &raw mut from))?;
    Ok(Step {
        consumed: from.pos,
        produced: into.pos,
        remaining,
    })
}

/// A dictionary to compress with.
pub struct CompressDictionary(NonNull<z::ZSTD_CDict>);

// SAFETY: ZS4.
unsafe impl Send for CompressDictionary {}
// SAFETY: ZS4.
unsafe impl Sync for CompressDictionary {}

impl CompressDictionary {
    /// A dictionary of these bytes for a level of compression; `None` if zstd refuses them.
    #[must_use]
    pub fn new(bytes: &[u8], level: i32) -> Option<CompressDictionary> {
        // The C library's memory, as for everything that zstd makes without being told otherwise.
        let memory = z::ZSTD_customMem {
            customAlloc: None,
            customFree: None,
            opaque: ptr::null_mut(),
        };
        // SAFETY: ZS1, ZS2.
        let made = unsafe {
            z::ZSTD_createCDict_advanced(
                start(bytes),
                bytes.len(),
                z::ZSTD_dictLoadMethod_e::ZSTD_dlm_byCopy,
                z::ZSTD_dictContentType_e::ZSTD_dct_auto,
                z::ZSTD_getCParams(level, 0, bytes.len()),
                memory,
            )
        };
        NonNull::new(made).map(CompressDictionary)
    }

    /// Its number; 0: it has none.
    #[must_use]
    pub fn id(&self) -> u32 {
        // SAFETY: ZS1.
        unsafe { z::ZSTD_getDictID_fromCDict(self.0.as_ptr()) }
    }
}

impl Drop for CompressDictionary {
    fn drop(&mut self) {
        // SAFETY: ZS1, ZS3.
        unsafe { z::ZSTD_freeCDict(self.0.as_ptr()) };
    }
}

/// A dictionary to expand with.
pub struct DecompressDictionary(NonNull<z::ZSTD_DDict>);

// SAFETY: ZS4.
unsafe impl Send for DecompressDictionary {}
// SAFETY: ZS4.
unsafe impl Sync for DecompressDictionary {}

impl DecompressDictionary {
    /// A dictionary of these bytes; `None` if zstd refuses them.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Option<DecompressDictionary> {
        // SAFETY: ZS1, ZS2.
        let made = unsafe { z::ZSTD_createDDict(start(bytes), bytes.len()) };
        NonNull::new(made).map(DecompressDictionary)
    }

    /// Its number; 0: it has none.
    #[must_use]
    pub fn id(&self) -> u32 {
        // SAFETY: ZS1.
        unsafe { z::ZSTD_getDictID_fromDDict(self.0.as_ptr()) }
    }
}

impl Drop for DecompressDictionary {
    fn drop(&mut self) {
        // SAFETY: ZS1, ZS3.
        unsafe { z::ZSTD_freeDDict(self.0.as_ptr()) };
    }
}

/// What compresses.
pub struct Compressor {
    context: NonNull<z::ZSTD_CCtx>,
    dictionary: Option<Arc<CompressDictionary>>,
}

// SAFETY: ZS4.
unsafe impl Send for Compressor {}

impl Compressor {
    /// One with zstd's own parameters; `None` if there is no memory for it.
    #[must_use]
    pub fn new() -> Option<Compressor> {
        // SAFETY: ZS1.
        let context = NonNull::new(unsafe { z::ZSTD_createCCtx() })?;
        Some(Compressor {
            context,
            dictionary: None,
        })
    }

    /// Sets a parameter.
    ///
    /// # Errors
    /// A value out of range, or a frame has begun.
    pub fn set(&mut self, parameter: CompressParameter, value: i32) -> Result<(), Error> {
        let context = self.context.as_ptr();
        // SAFETY: ZS1.
        checked(unsafe { z::ZSTD_CCtx_setParameter(context, parameter, value) }).map(drop)
    }

    /// The value of a parameter.
    ///
    /// # Errors
    /// What zstd says.
    pub fn get(&self, parameter: CompressParameter) -> Result<i32, Error> {
        let (context, mut value) = (self.context.as_ptr(), 0);
        // SAFETY: ZS1, ZS2.
        let code = unsafe { z::ZSTD_CCtx_getParameter(context, parameter, &raw mut value) };
        checked(code).map(|_| value)
    }

    /// Says how many bytes the next frame is going to have.
    ///
    /// # Errors
    /// A frame has begun.
    pub fn pledge(&mut self, bytes: u64) -> Result<(), Error> {
        // SAFETY: ZS1.
        checked(unsafe { z::ZSTD_CCtx_setPledgedSrcSize(self.context.as_ptr(), bytes) }).map(drop)
    }

    /// Has it use a dictionary of these bytes.
    ///
    /// # Errors
    /// Bytes that zstd refuses, or a frame has begun.
    pub fn load(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let context = self.context.as_ptr();
        // SAFETY: ZS1, ZS2.
        let code = unsafe { z::ZSTD_CCtx_loadDictionary(context, start(bytes), bytes.len()) };
        checked(code)?;
        self.dictionary = None;
        Ok(())
    }

    /// Has it use a dictionary.
    ///
    /// # Errors
    /// A frame has begun.
    pub fn refer(&mut self, dictionary: &Arc<CompressDictionary>) -> Result<(), Error> {
        let (context, referred) = (self.context.as_ptr(), dictionary.0.as_ptr());
        // SAFETY: ZS1, ZS3: the share is stored below; the one before is dropped when zstd has the new one.
        checked(unsafe { z::ZSTD_CCtx_refCDict(context, referred) })?;
        self.dictionary = Some(Arc::clone(dictionary));
        Ok(())
    }

    /// Compresses from `input` to `output`.
    ///
    /// # Errors
    /// What zstd says.
    pub fn step(
        &mut self,
        input: &[u8],
        output: &mut [u8],
        end: EndDirective,
    ) -> Result<Step, Error> {
        let context = self.context.as_ptr();
        // SAFETY: ZS1, ZS2.
        step(input, output, |into, from| unsafe {
            z::ZSTD_compressStream2(context, into, from, end)
        })
    }

    /// Gives up the frame that has begun.
    pub fn reset(&mut self) {
        let session = z::ZSTD_ResetDirective::ZSTD_reset_session_only;
        // SAFETY: ZS1.
        unsafe { z::ZSTD_CCtx_reset(self.context.as_ptr(), session) };
    }
}

impl Drop for Compressor {
    fn drop(&mut self) {
        // SAFETY: ZS1.
        unsafe { z::ZSTD_freeCCtx(self.context.as_ptr()) };
    }
}

/// What expands.
pub struct Decompressor {
    context: NonNull<z::ZSTD_DCtx>,
    dictionary: Option<Arc<DecompressDictionary>>,
}

// SAFETY: ZS4.
unsafe impl Send for Decompressor {}

impl Decompressor {
    /// One with zstd's own parameters; `None` if there is no memory for it.
    #[must_use]
    pub fn new() -> Option<Decompressor> {
        // SAFETY: ZS1.
        let context = NonNull::new(unsafe { z::ZSTD_createDCtx() })?;
        Some(Decompressor {
            context,
            dictionary: None,
        })
    }

    /// Sets a parameter.
    ///
    /// # Errors
    /// A value out of range, or a frame has begun.
    pub fn set(&mut self, parameter: DecompressParameter, value: i32) -> Result<(), Error> {
        let context = self.context.as_ptr();
        // SAFETY: ZS1.
        checked(unsafe { z::ZSTD_DCtx_setParameter(context, parameter, value) }).map(drop)
    }

    /// The value of a parameter.
    ///
    /// # Errors
    /// What zstd says.
    pub fn get(&self, parameter: DecompressParameter) -> Result<i32, Error> {
        let (context, mut value) = (self.context.as_ptr(), 0);
        // SAFETY: ZS1, ZS2. zstd changes nothing of a context that it is asked about.
        let code = unsafe { z::ZSTD_DCtx_getParameter(context, parameter, &raw mut value) };
        checked(code).map(|_| value)
    }

    /// Has it use a dictionary of these bytes.
    ///
    /// # Errors
    /// Bytes that zstd refuses, or a frame has begun.
    pub fn load(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let context = self.context.as_ptr();
        // SAFETY: ZS1, ZS2.
        let code = unsafe { z::ZSTD_DCtx_loadDictionary(context, start(bytes), bytes.len()) };
        checked(code)?;
        self.dictionary = None;
        Ok(())
    }

    /// Has it use a dictionary.
    ///
    /// # Errors
    /// A frame has begun.
    pub fn refer(&mut self, dictionary: &Arc<DecompressDictionary>) -> Result<(), Error> {
        let (context, referred) = (self.context.as_ptr(), dictionary.0.as_ptr());
        // SAFETY: ZS1, ZS3: the share is stored below; the one before is dropped when zstd has the new one.
        checked(unsafe { z::ZSTD_DCtx_refDDict(context, referred) })?;
        self.dictionary = Some(Arc::clone(dictionary));
        Ok(())
    }

    /// Expands from `input` to `output`.
    ///
    /// # Errors
    /// What zstd says.
    pub fn step(&mut self, input: &[u8], output: &mut [u8]) -> Result<Step, Error> {
        let context = self.context.as_ptr();
        // SAFETY: ZS1, ZS2.
        step(input, output, |into, from| unsafe {
            z::ZSTD_decompressStream(context, into, from)
        })
    }

    /// Gives up the frame that has begun.
    pub fn reset(&mut self) {
        let session = z::ZSTD_ResetDirective::ZSTD_reset_session_only;
        // SAFETY: ZS1.
        unsafe { z::ZSTD_DCtx_reset(self.context.as_ptr(), session) };
    }
}

impl Drop for Decompressor {
    fn drop(&mut self) {
        // SAFETY: ZS1.
        unsafe { z::ZSTD_freeDCtx(self.context.as_ptr()) };
    }
}

/// Bytes of output that zstd makes of a step: compressing and expanding.
#[must_use]
pub fn output_bytes() -> (usize, usize) {
    // SAFETY: ZS2: they take nothing.
    unsafe { (z::ZSTD_CStreamOutSize(), z::ZSTD_DStreamOutSize()) }
}

/// Bytes that all frames of `input` expand to; `None` if they do not say so, or are not whole.
#[must_use]
pub fn decompressed_bytes(input: &[u8]) -> Option<u64> {
    // ZSTD_CONTENTSIZE_UNKNOWN and ZSTD_CONTENTSIZE_ERROR.
    const NOT_KNOWN: [u64; 2] = [u64::MAX, u64::MAX - 1];
    // SAFETY: ZS2.
    let bytes = unsafe { z::ZSTD_findDecompressedSize(start(input), input.len()) };
    (!NOT_KNOWN.contains(&bytes)).then_some(bytes)
}

/// The number of a dictionary of these bytes; 0: it has none.
#[must_use]
pub fn dictionary_id(bytes: &[u8]) -> u32 {
    // SAFETY: ZS2.
    unsafe { z::ZSTD_getDictID_fromDict(start(bytes), bytes.len()) }
}

/// The number of the dictionary that a frame needs; 0: none, or the frame does not say.
#[must_use]
pub fn frame_dictionary_id(frame: &[u8]) -> u32 {
    // SAFETY: ZS2.
    unsafe { z::ZSTD_getDictID_fromFrame(start(frame), frame.len()) }
}

/// What a frame says of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameHeader {
    /// Bytes that it expands to, if it says so.
    pub content_bytes: Option<u64>,
    /// Bytes that an expander has to remember.
    pub window_bytes: u64,
    /// Bytes of the largest block.
    pub block_bytes_max: u32,
    /// It holds no data, and is skipped.
    pub is_skippable: bool,
    /// Bytes of this header.
    pub header_bytes: u32,
    /// The number of the dictionary that it needs.
    pub dictionary_id: u32,
    /// It ends with a checksum.
    pub has_checksum: bool,
}

/// The header of a frame. Of one that is cut short, all is zero.
///
/// # Errors
/// What is no frame.
pub fn frame_header(frame: &[u8]) -> Result<FrameHeader, Error> {
    let mut header = z::ZSTD_FrameHeader {
        frameContentSize: 0,
        windowSize: 0,
        blockSizeMax: 0,
        frameType: z::ZSTD_FrameType_e::ZSTD_frame,
        headerSize: 0,
        dictID: 0,
        checksumFlag: 0,
        _reserved1: 0,
        _reserved2: 0,
    };
    // SAFETY: ZS2; of the two types of frames zstd writes one.
    checked(unsafe { z::ZSTD_getFrameHeader(&raw mut header, start(frame), frame.len()) })?;
    Ok(FrameHeader {
        content_bytes: Some(header.frameContentSize).filter(|bytes| *bytes != u64::MAX),
        window_bytes: header.windowSize,
        block_bytes_max: header.blockSizeMax,
        is_skippable: header.frameType == z::ZSTD_FrameType_e::ZSTD_skippableFrame,
        header_bytes: header.headerSize,
        dictionary_id: header.dictID,
        has_checksum: header.checksumFlag != 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compress(with: &mut Compressor, text: &[u8]) -> Vec<u8> {
        let mut out = vec![0; output_bytes().0];
        let step = with.step(text, &mut out, EndDirective::ZSTD_e_end);
        let step = step.expect("it compresses");
        assert_eq!((step.consumed, step.remaining), (text.len(), 0));
        out.truncate(step.produced);
        out
    }

    #[test]
    fn a_frame_expands_with_the_dictionary_it_was_made_with() {
        let text = b"a text that the dictionary has";
        let dictionary = CompressDictionary::new(text, 3).map(Arc::new).unwrap();
        let mut compressor = Compressor::new().unwrap();
        let alone = compress(&mut compressor, text);
        compressor.refer(&dictionary).unwrap();
        let frame = compress(&mut compressor, text);
        assert!(frame.len() < alone.len());
        drop(dictionary);
        assert_eq!(compress(&mut compressor, text), frame);

        let mut out = vec![0; 100];
        let mut decompressor = Decompressor::new().unwrap();
        assert!(decompressor.step(&frame, &mut out).is_err());
        decompressor.reset();
        let dictionary = DecompressDictionary::new(text).map(Arc::new).unwrap();
        decompressor.refer(&dictionary).unwrap();
        let step = decompressor.step(&frame, &mut out).unwrap();
        assert_eq!((&out[..step.produced], step.remaining), (&text[..], 0));
        assert_eq!(decompressed_bytes(&frame), Some(text.len() as u64));
        assert_eq!(decompressed_bytes(&frame[..frame.len() - 1]), None);
    }

    #[test]
    fn what_a_frame_says_of_itself() {
        let mut compressor = Compressor::new().unwrap();
        let flag = CompressParameter::ZSTD_c_checksumFlag;
        compressor.set(flag, 1).unwrap();
        assert_eq!(compressor.get(flag), Ok(1));
        let header = frame_header(&compress(&mut compressor, b"abc")).unwrap();
        assert_eq!((header.content_bytes, header.has_checksum), (Some(3), true));
        assert_eq!(
            frame_header(b""),
            Ok(FrameHeader {
                content_bytes: Some(0),
                ..FrameHeader::default()
            })
        );
        assert_eq!(frame_header(b"no frame"), Err("Unknown frame descriptor"));
        assert!(
            compressor
                .set(CompressParameter::ZSTD_c_windowLog, 99)
                .is_err()
        );
    }
}
