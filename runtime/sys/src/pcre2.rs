//! Safe wrappers of PCRE2: compiled patterns, matches, and what is known about them.
//!
//! The interpretive matcher is used, never the JIT compiler, so that match limits mean what they mean in OTP.
//! Invariants:
//!
//! - RE1: a [`Code`] holds a pattern that the library compiled; it is freed once, by `Drop`, and nothing writes to it
//!   in between, so threads may share it.
//! - RE2: a pointer to bytes is passed with their length, and is not kept past the call (match data remembers the
//!   subject, but is freed before the call that made it returns).
//! - RE3: `PCRE2_NO_UTF_CHECK` is set only for a subject that the standard library found to be UTF-8, with a start at
//!   the border of a character.
//! - RE4: match data made for `n` pairs has `2 * n` offsets, all of them written by a match.
//! - RE5: a name table has as many entries as it says, of the size it says: two bytes of number, then a name that ends
//!   in a zero byte.
//! - RE6: contexts and match data are made and freed in one function.

#![expect(unsafe_code, reason = "PCRE2 is a C library")]

use std::ffi::c_void;
use std::ptr::{self, NonNull};

use pcre2_sys as ffi;

/// How much stack compiling one pattern may take, in bytes.
const COMPILE_STACK_BYTES: usize = 256 * 1024;

/// How deep parentheses may nest; the stack gives out before.
const PARENS_NEST_LIMIT: u32 = 10_000;

/// A compiled pattern.
#[derive(Debug)]
pub struct Code(NonNull<ffi::pcre2_code_8>);

// SAFETY: RE1: nothing ties a pattern to the thread that compiled it.
unsafe impl Send for Code {}
// SAFETY: RE1: a pattern is only read after it was compiled.
unsafe impl Sync for Code {}

impl Drop for Code {
    fn drop(&mut self) {
        // SAFETY: RE1: this is the one place that frees it.
        unsafe { ffi::pcre2_code_free_8(self.0.as_ptr()) };
    }
}

/// Options of one match.
#[derive(Clone, Copy, Debug, Default)]
pub struct MatchArgs {
    /// Where in the subject to start, in bytes.
    pub start: usize,
    /// Bits of PCRE2's match options.
    pub options: u32,
    /// How many times the matcher may call itself; `None` for PCRE2's own limit.
    pub match_limit: Option<u32>,
    /// How deep it may backtrack; `None` for PCRE2's own limit.
    pub depth_limit: Option<u32>,
}

/// Start and end of a group in the subject, in bytes; `None` if the group took no part.
pub type Group = Option<(usize, usize)>;

impl Code {
    /// Compiles a pattern. `newline` and `bsr` are PCRE2's numbers.
    ///
    /// # Errors
    /// PCRE2's number of the error and its offset in the pattern.
    pub fn compile(
        pattern: &[u8],
        options: u32,
        newline: Option<u32>,
        bsr: Option<u32>,
    ) -> Result<Self, (i32, usize)> {
        let stack_top = ptr::from_ref(&options).addr();
        let (mut error, mut offset) = (0, 0);
        // SAFETY: RE6: freed below.
        let context = unsafe { ffi::pcre2_compile_context_create_8(ptr::null_mut()) };
        assert!(!context.is_null(), "out of memory");
        let set = |call: unsafe extern "C" fn(*mut _, u32) -> i32, value| {
            // SAFETY: RE6: the context is live.
            let result = unsafe { call(context, value) };
            assert_eq!(result, 0, "the value is one that PCRE2 knows");
        };
        set(ffi::pcre2_set_parens_nest_limit_8, PARENS_NEST_LIMIT);
        if let Some(newline) = newline {
            set(ffi::pcre2_set_newline_8, newline);
        }
        if let Some(bsr) = bsr {
            set(ffi::pcre2_set_bsr_8, bsr);
        }
        // SAFETY: RE6: the context is live; the guard reads its data as a number only.
        unsafe {
            ffi::pcre2_set_compile_recursion_guard_8(
                context,
                Some(stack_guard),
                ptr::without_provenance_mut(stack_top),
            )
        };
        // SAFETY: RE2, RE6: the pattern with its length, a live context, two places to write to.
        let code = unsafe {
            ffi::pcre2_compile_8(
                pattern.as_ptr(),
                pattern.len(),
                options,
                &raw mut error,
                &raw mut offset,
                context,
            )
        };
        // SAFETY: RE6: made above.
        unsafe { ffi::pcre2_compile_context_free_8(context) };
        NonNull::new(code).map(Self).ok_or((error, offset))
    }

    /// Matches a subject. The groups go up to the last that took part, the whole match first.
    ///
    /// # Errors
    /// PCRE2's number, which is negative; no match is one of them.
    pub fn run(&self, subject: &[u8], args: MatchArgs) -> Result<Vec<Group>, i32> {
        let mut options = args.options & !ffi::PCRE2_NO_UTF_CHECK;
        if self.info(ffi::PCRE2_INFO_ALLOPTIONS) & ffi::PCRE2_UTF != 0
            && std::str::from_utf8(subject).is_ok_and(|s| s.is_char_boundary(args.start))
        {
            options |= ffi::PCRE2_NO_UTF_CHECK;
        }
        let pairs = self.info(ffi::PCRE2_INFO_CAPTURECOUNT) + 1;
        // SAFETY: RE6: freed below.
        let data = unsafe { ffi::pcre2_match_data_create_8(pairs, ptr::null_mut()) };
        // SAFETY: RE6: freed below.
        let context = unsafe { ffi::pcre2_match_context_create_8(ptr::null_mut()) };
        assert!(!data.is_null() && !context.is_null(), "out of memory");
        if let Some(limit) = args.match_limit {
            // SAFETY: RE6: the context is live.
            unsafe { ffi::pcre2_set_match_limit_8(context, limit) };
        }
        if let Some(limit) = args.depth_limit {
            // SAFETY: RE6: the context is live.
            unsafe { ffi::pcre2_set_depth_limit_8(context, limit) };
        }
        // SAFETY: RE1, RE2, RE3, RE6.
        let result = unsafe {
            ffi::pcre2_match_8(
                self.0.as_ptr(),
                subject.as_ptr(),
                subject.len(),
                args.start,
                options,
                data,
                context,
            )
        };
        let groups = usize::try_from(result).map_err(|_| result).map(|count| {
            // SAFETY: RE6: the data is live.
            let offsets = unsafe { ffi::pcre2_get_ovector_pointer_8(data) };
            // SAFETY: RE4: `count` is at most `pairs`, and the match has written them.
            let offsets = unsafe { std::slice::from_raw_parts(offsets, count * 2) };
            offsets
                .chunks_exact(2)
                .map(|p| (p[0] != usize::MAX).then_some((p[0], p[1])))
                .collect()
        });
        // SAFETY: RE6: made above.
        unsafe { ffi::pcre2_match_context_free_8(context) };
        // SAFETY: RE6: made above.
        unsafe { ffi::pcre2_match_data_free_8(data) };
        groups
    }

    /// A fact about the pattern that is a 32-bit number, by PCRE2's number for it.
    ///
    /// # Panics
    /// If the fact is not one of those that the callers in this crate ask for.
    #[must_use]
    pub fn info(&self, what: u32) -> u32 {
        assert!(
            matches!(
                what,
                ffi::PCRE2_INFO_ALLOPTIONS
                    | ffi::PCRE2_INFO_BSR
                    | ffi::PCRE2_INFO_CAPTURECOUNT
                    | ffi::PCRE2_INFO_NAMECOUNT
                    | ffi::PCRE2_INFO_NAMEENTRYSIZE
                    | ffi::PCRE2_INFO_NEWLINE
            ),
            "the fact is a 32-bit number"
        );
        let mut value = 0u32;
        // SAFETY: RE1: the facts above are written as a `u32`, which `value` is.
        let result = unsafe {
            ffi::pcre2_pattern_info_8(self.0.as_ptr(), what, (&raw mut value).cast::<c_void>())
        };
        assert_eq!(result, 0, "a compiled pattern knows it");
        value
    }

    /// The named groups in the order of the table: by name, then by number.
    #[must_use]
    pub fn names(&self) -> Vec<(u16, Vec<u8>)> {
        let count = self.info(ffi::PCRE2_INFO_NAMECOUNT) as usize;
        let size = self.info(ffi::PCRE2_INFO_NAMEENTRYSIZE) as usize;
        if count == 0 {
            return Vec::new();
        }
        let mut table: *const u8 = ptr::null();
        // SAFETY: RE1: this fact is written as a pointer, which `table` is.
        let result = unsafe {
            ffi::pcre2_pattern_info_8(
                self.0.as_ptr(),
                ffi::PCRE2_INFO_NAMETABLE,
                (&raw mut table).cast::<c_void>(),
            )
        };
        assert_eq!(result, 0, "a compiled pattern knows it");
        // SAFETY: RE5: the table lies in the pattern, which `self` keeps.
        let table = unsafe { std::slice::from_raw_parts(table, count * size) };
        let entry = |e: &[u8]| {
            let name = e[2..].split(|&b| b == 0).next().unwrap_or_default();
            (u16::from_be_bytes([e[0], e[1]]), name.to_vec())
        };
        table.chunks_exact(size).map(entry).collect()
    }
}

/// Stops the compilation of a pattern whose parentheses nest too deep for the stack.
/// `data` is the address at which the compilation began, as a number.
unsafe extern "C" fn stack_guard(_depth: u32, data: *mut c_void) -> i32 {
    let here = 0u8;
    let used = data.addr().abs_diff(ptr::from_ref(&here).addr());
    i32::from(used > COMPILE_STACK_BYTES)
}

/// The text of an error number; `None` for a number that PCRE2 does not know.
#[must_use]
pub fn error_message(number: i32) -> Option<String> {
    let mut text = [0u8; 120];
    // SAFETY: RE2: the buffer with its length.
    let result = unsafe { ffi::pcre2_get_error_message_8(number, text.as_mut_ptr(), text.len()) };
    if result == ffi::PCRE2_ERROR_BADDATA {
        return None;
    }
    let text = text.split(|&b| b == 0).next().unwrap_or_default();
    Some(String::from_utf8_lossy(text).into_owned())
}

/// The version and its date, as `re:version/0` gives them.
#[must_use]
pub fn version() -> String {
    let mut text = [0u8; 64];
    // SAFETY: RE2: without a buffer the call returns the size that it needs.
    let size = unsafe { ffi::pcre2_config_8(ffi::PCRE2_CONFIG_VERSION, ptr::null_mut()) };
    assert!(
        usize::try_from(size).is_ok_and(|s| s <= text.len()),
        "a version is short"
    );
    // SAFETY: RE2: the buffer is as long as the call needs.
    unsafe {
        ffi::pcre2_config_8(
            ffi::PCRE2_CONFIG_VERSION,
            text.as_mut_ptr().cast::<c_void>(),
        )
    };
    let text = text.split(|&b| b == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}
