//! Regular expressions for `re`, which take bytes and give offsets.
//!
//! A pattern is compiled with the options of `re:compile/2` and matched with those of `re:run/3`. The caller turns
//! offsets into terms. A match runs to its end (or to its limits) in one call, since the library has no way to stop in
//! between.
//! Source of the meaning of options and results: `erl_bif_re.c`, OTP 29.
//!
//! Each module names only those before it:
//! `export` `place`

pub mod export;
mod place;
#[cfg(test)]
mod tests;

use std::ops::{BitOr, BitOrAssign};

use pcre2_sys as ffi;

use beamline_runtime_sys::pcre2::{Code, MatchArgs, error_message};
pub use beamline_runtime_sys::pcre2::{Group, version};

macro_rules! options {
    ($(#[$doc:meta])* $name:ident { $($(#[$option_doc:meta])* $option:ident = $value:ident;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name(u32);

        impl $name {
            $($(#[$option_doc])* pub const $option: Self = Self(ffi::$value);)*

            /// The flags with these bits; `None` where a bit is none of them.
            #[must_use]
            pub fn from_bits(bits: u32) -> Option<Self> {
                const ALL: u32 = 0 $(| ffi::$value)*;
                (bits & !ALL == 0).then_some(Self(bits))
            }

            /// Whether all of `other` are set.
            #[must_use]
            pub fn contains(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }
        }

        impl BitOr for $name {
            type Output = Self;

            fn bitor(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }
        }

        impl BitOrAssign for $name {
            fn bitor_assign(&mut self, other: Self) {
                self.0 |= other.0;
            }
        }
    };
}

options! {
    /// Options of `re:compile/2` that are flags, by their names there.
    CompileFlags {
        /// `anchored`
        ANCHORED = PCRE2_ANCHORED;
        /// `caseless`
        CASELESS = PCRE2_CASELESS;
        /// `dollar_endonly`
        DOLLAR_ENDONLY = PCRE2_DOLLAR_ENDONLY;
        /// `dotall`
        DOTALL = PCRE2_DOTALL;
        /// `dupnames`
        DUPNAMES = PCRE2_DUPNAMES;
        /// `extended`
        EXTENDED = PCRE2_EXTENDED;
        /// `firstline`
        FIRSTLINE = PCRE2_FIRSTLINE;
        /// `multiline`
        MULTILINE = PCRE2_MULTILINE;
        /// `never_utf`
        NEVER_UTF = PCRE2_NEVER_UTF;
        /// `no_auto_capture`
        NO_AUTO_CAPTURE = PCRE2_NO_AUTO_CAPTURE;
        /// `no_start_optimize`
        NO_START_OPTIMIZE = PCRE2_NO_START_OPTIMIZE;
        /// `ucp`
        UCP = PCRE2_UCP;
        /// `ungreedy`
        UNGREEDY = PCRE2_UNGREEDY;
        /// `unicode`
        UNICODE = PCRE2_UTF;
    }
}

options! {
    /// Options of `re:run/3` that are flags, by their names there.
    MatchFlags {
        /// `anchored`
        ANCHORED = PCRE2_ANCHORED;
        /// `notbol`
        NOTBOL = PCRE2_NOTBOL;
        /// `notempty`
        NOTEMPTY = PCRE2_NOTEMPTY;
        /// `notempty_atstart`
        NOTEMPTY_ATSTART = PCRE2_NOTEMPTY_ATSTART;
        /// `noteol`
        NOTEOL = PCRE2_NOTEOL;
    }
}

/// What ends a line: option `{newline, _}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Newline {
    /// `cr`
    Cr = ffi::PCRE2_NEWLINE_CR,
    /// `lf`
    Lf = ffi::PCRE2_NEWLINE_LF,
    /// `crlf`
    Crlf = ffi::PCRE2_NEWLINE_CRLF,
    /// `any`
    Any = ffi::PCRE2_NEWLINE_ANY,
    /// `anycrlf`
    AnyCrlf = ffi::PCRE2_NEWLINE_ANYCRLF,
    /// `nul`
    Nul = ffi::PCRE2_NEWLINE_NUL,
}

impl Newline {
    /// All of them.
    pub const ALL: [Newline; 6] = [
        Newline::Cr,
        Newline::Lf,
        Newline::Crlf,
        Newline::Any,
        Newline::AnyCrlf,
        Newline::Nul,
    ];
}

/// What `\R` matches: options `bsr_anycrlf` and `bsr_unicode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Bsr {
    /// `bsr_unicode`
    Unicode = ffi::PCRE2_BSR_UNICODE,
    /// `bsr_anycrlf`
    AnyCrlf = ffi::PCRE2_BSR_ANYCRLF,
}

impl Bsr {
    /// Both.
    pub const ALL: [Bsr; 2] = [Bsr::Unicode, Bsr::AnyCrlf];
}

/// Options of `re:compile/2`.
#[derive(Clone, Copy, Debug, Default)]
pub struct CompileOptions {
    /// The flags.
    pub flags: CompileFlags,
    /// `{newline, _}`
    pub newline: Option<Newline>,
    /// `bsr_anycrlf` or `bsr_unicode`
    pub bsr: Option<Bsr>,
}

/// Options of `re:run/3` that are not about what to capture.
#[derive(Clone, Copy, Debug, Default)]
pub struct MatchOptions {
    /// The flags.
    pub flags: MatchFlags,
    /// `{offset, _}`, in bytes.
    pub offset: usize,
    /// `{match_limit, _}`
    pub match_limit: Option<u32>,
    /// `{match_limit_recursion, _}`
    pub match_limit_recursion: Option<u32>,
}

/// Why a pattern was refused: `{error, {Message, Offset}}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileError {
    /// PCRE2's text.
    pub message: String,
    /// Where in the pattern, in bytes, as PCRE2 10.47 of OTP 29 tells it.
    pub offset: usize,
}

/// Why a match was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatchError {
    /// `match_limit`: reported with `report_errors`, else no match.
    MatchLimit,
    /// `match_limit_recursion`: reported with `report_errors`, else no match.
    MatchLimitRecursion,
    /// The subject is not UTF-8, or the offset is inside a character or past the end: `badarg`.
    BadArg,
    /// A number that no match should give: `internal_error`.
    Internal(i32),
}

/// A compiled pattern; threads may share it.
#[derive(Debug)]
pub struct Regex {
    code: Code,
    names: Vec<(u16, Vec<u8>)>,
}

impl Regex {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// [`CompileError`] with the text that `re:compile/2` returns.
    pub fn compile(pattern: &[u8], options: CompileOptions) -> Result<Self, CompileError> {
        let newline = options.newline.map(|n| n as u32);
        let bsr = options.bsr.map(|b| b as u32);
        let code =
            Code::compile(pattern, options.flags.0, newline, bsr).map_err(|(number, offset)| {
                let utf = options.flags.0 & CompileFlags::UNICODE.0 != 0;
                let (number, offset) = place::newer(number, offset, pattern, utf);
                CompileError {
                    message: message(number),
                    offset,
                }
            })?;
        let names = code.names();
        Ok(Self { code, names })
    }

    /// How many groups capture, the whole match not counted.
    #[must_use]
    pub fn capture_count(&self) -> u32 {
        self.code.info(ffi::PCRE2_INFO_CAPTURECOUNT)
    }

    /// Whether a line may end in two characters, which a global match steps over together.
    #[must_use]
    pub fn uses_crlf(&self) -> bool {
        let newline = self.code.info(ffi::PCRE2_INFO_NEWLINE);
        [Newline::Any, Newline::Crlf, Newline::AnyCrlf]
            .iter()
            .any(|&n| n as u32 == newline)
    }

    /// Whether this newline and bsr, given to `re:run/3`, are those of the pattern; others
    /// are a `badarg` there.
    #[must_use]
    pub fn agrees(&self, newline: Option<Newline>, bsr: Option<Bsr>) -> bool {
        newline.is_none_or(|n| n as u32 == self.code.info(ffi::PCRE2_INFO_NEWLINE))
            && bsr.is_none_or(|b| b as u32 == self.code.info(ffi::PCRE2_INFO_BSR))
    }

    /// The names of groups in the order of `re:inspect(_, namelist)`, each once.
    pub fn names(&self) -> impl Iterator<Item = &[u8]> {
        let repeated = |i: usize| i > 0 && self.names[i - 1].1 == self.names[i].1;
        (0..self.names.len())
            .filter(move |&i| !repeated(i))
            .map(|i| self.names[i].1.as_slice())
    }

    /// The numbers of the groups of a name: more than one with `dupnames`, none if unknown.
    pub fn numbers_of<'n>(&'n self, name: &'n [u8]) -> impl Iterator<Item = usize> + 'n {
        self.names
            .iter()
            .filter(move |(_, n)| n == name)
            .map(|(i, _)| usize::from(*i))
    }

    /// Matches a subject. `None` is no match; the groups go up to the last that took part,
    /// the whole match first.
    ///
    /// # Errors
    /// [`MatchError`]. A limit on memory and a recursion without end are no match, as in OTP.
    pub fn run(
        &self,
        subject: &[u8],
        options: MatchOptions,
    ) -> Result<Option<Vec<Group>>, MatchError> {
        let args = MatchArgs {
            start: options.offset,
            options: options.flags.0,
            match_limit: options.match_limit,
            depth_limit: options.match_limit_recursion,
        };
        match self.code.run(subject, args) {
            Ok(groups) => Ok(Some(groups)),
            Err(number) => match number {
                ffi::PCRE2_ERROR_NOMATCH
                | ffi::PCRE2_ERROR_HEAPLIMIT
                | ffi::PCRE2_ERROR_RECURSELOOP => Ok(None),
                ffi::PCRE2_ERROR_MATCHLIMIT => Err(MatchError::MatchLimit),
                ffi::PCRE2_ERROR_DEPTHLIMIT => Err(MatchError::MatchLimitRecursion),
                ffi::PCRE2_ERROR_BADUTFOFFSET | ffi::PCRE2_ERROR_BADOFFSET => {
                    Err(MatchError::BadArg)
                }
                ffi::PCRE2_ERROR_UTF8_ERR21..=ffi::PCRE2_ERROR_UTF8_ERR1 => Err(MatchError::BadArg),
                number => Err(MatchError::Internal(number)),
            },
        }
    }
}

/// The text of an error number, in the words of the PCRE2 of OTP 29, which is one version
/// ahead of the crate's.
fn message(number: i32) -> String {
    if let Some(text) = place::newer_text(number) {
        return text.to_owned();
    }
    match error_message(number) {
        None => format!("Unknown error ({number})"),
        Some(text) => match text.as_str() {
            "digit expected after (?+ or (?-" => "digit expected after (?+".into(),
            r"\c must be followed by a letter or one of [\]^_?" => {
                r"\c must be followed by a letter or one of @[\]^_?".into()
            }
            _ => text,
        },
    }
}
