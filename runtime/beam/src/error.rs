//! The errors with which the reader refuses a `.beam` file.

use std::fmt;

use super::genop::Op;

/// A refusal: what was wrong, in which chunk, at which byte of the chunk's data.
///
/// The chunk `FOR1` stands for the container itself; the offset is then that of the (unpacked) file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BeamError {
    /// The chunk's identifier, such as `*b"Code"`.
    pub chunk: [u8; 4],
    /// Bytes from the start of the chunk's data.
    pub offset: usize,
    /// What was wrong.
    pub kind: BeamErrorKind,
}

/// What can be wrong with a `.beam` file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BeamErrorKind {
    /// The file does not begin as a `.beam` file does.
    NotABeamFile,
    /// The compressed data is damaged or ends early.
    BadCompression,
    /// Unpacked, the data would be larger than is allowed, in bytes.
    TooLarge(u64),
    /// The data ends before what it announces.
    Truncated,
    /// A chunk that must be there is not.
    MissingChunk,
    /// The file has the atom table of OTP 20 or earlier.
    ObsoleteAtomTable,
    /// The highest opcode is one that only compilers of OTP 22 or earlier write.
    OfOldRelease,
    /// The highest opcode is this one, of a later release.
    OfLaterRelease(u32),
    /// A count cannot be right for the bytes that are left.
    BadCount(i64),
    /// An atom is not UTF-8 or has over 255 characters.
    BadAtom,
    /// A file name is not UTF-8.
    BadFileName,
    /// An index lies outside its table.
    BadIndex {
        /// The table's name.
        table: &'static str,
        /// The index.
        index: u64,
        /// How many rows there are.
        count: usize,
    },
    /// An arity outside `0..=255`.
    BadArity(i64),
    /// A label number that is 0 where one is needed, or not below the label count.
    BadLabel(u64),
    /// A label that is used but stands nowhere in the code.
    UndefinedLabel(u32),
    /// A label that stands in the code twice.
    DuplicateLabel(u32),
    /// A label that should be a function's entry is not.
    NotAnEntry(u32),
    /// The code is of another format version.
    BadVersion(i64),
    /// An opcode that this runtime does not know.
    BadOpcode(u32),
    /// An operand's tag cannot be read, or not at this place.
    BadTag(u8),
    /// A register number that is too high.
    BadRegister(u64),
    /// An operand of the wrong kind for its instruction.
    BadOperand {
        /// The instruction.
        op: Op,
        /// Which operand, from 0.
        index: usize,
    },
    /// Code outside a function, or a function that does not begin as functions do.
    BadFunction,
    /// The number of functions in the code is not the announced one.
    FunctionCount {
        /// As announced.
        expected: u32,
        /// As found.
        found: u32,
    },
    /// The code ends without `int_code_end`.
    NoCodeEnd,
    /// A type in the type table makes no sense.
    BadType,
    /// A literal is not in the external term format.
    BadLiteral,
    /// A native record's definition makes no sense.
    BadRecord,
    /// The debug information makes no sense.
    BadDebugInfo,
}

impl BeamErrorKind {
    /// Whether the file is sound, but of another release: where in it that was seen helps nobody.
    #[must_use]
    pub(crate) fn is_of_other_release(&self) -> bool {
        use BeamErrorKind as K;
        matches!(
            self,
            K::ObsoleteAtomTable | K::OfOldRelease | K::OfLaterRelease(_)
        )
    }
}

/// What to do about a file of another release, in OTP's words.
const PLEASE_RECOMPILE: &str = "please re-compile this module with an Erlang/OTP 29 compiler or update your Erlang/OTP version";

impl fmt::Display for BeamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.kind.is_of_other_release() {
            return self.kind.fmt(f);
        }
        write!(
            f,
            "chunk {}, offset {}: {}",
            self.chunk.escape_ascii(),
            self.offset,
            self.kind
        )
    }
}

impl std::error::Error for BeamError {}

impl fmt::Display for BeamErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use BeamErrorKind as K;
        match self {
            K::NotABeamFile => f.write_str("not a BEAM file"),
            K::BadCompression => f.write_str("compressed data is damaged"),
            K::TooLarge(n) => write!(f, "unpacks to {n} bytes, more than is allowed"),
            K::Truncated => f.write_str("ends too early"),
            K::MissingChunk => f.write_str("the chunk is missing"),
            K::ObsoleteAtomTable => f.write_str(PLEASE_RECOMPILE),
            K::OfOldRelease => f.write_str(
                "This BEAM file was compiled for an old version of the runtime system.\n  \
                 To fix this, please re-compile this module with Erlang/OTP 25 or later.",
            ),
            K::OfLaterRelease(highest) => write!(
                f,
                "This BEAM file was compiled for a later version of the runtime system than the current (Erlang/OTP 29).\n  \
                 To fix this, {}.\n  (Use of opcode {highest}; this emulator supports only up to {}.)",
                PLEASE_RECOMPILE,
                Op::MAX,
            ),
            K::BadCount(n) => write!(f, "impossible count {n}"),
            K::BadAtom => f.write_str("an atom is not UTF-8 or too long"),
            K::BadFileName => f.write_str("a file name is not UTF-8"),
            K::BadIndex {
                table,
                index,
                count,
            } => {
                write!(f, "index {index} into {table} of {count}")
            }
            K::BadArity(n) => write!(f, "impossible arity {n}"),
            K::BadLabel(n) => write!(f, "impossible label {n}"),
            K::UndefinedLabel(n) => write!(f, "label {n} is used but not defined"),
            K::DuplicateLabel(n) => write!(f, "label {n} is defined twice"),
            K::NotAnEntry(n) => write!(f, "label {n} is not the entry of a function of this arity"),
            K::BadVersion(n) => write!(f, "unknown format version {n}"),
            K::BadOpcode(n) => write!(f, "unknown opcode {n}"),
            K::BadTag(n) => write!(f, "unexpected operand tag {n}"),
            K::BadRegister(n) => write!(f, "register number {n} is too high"),
            K::BadOperand { op, index } => {
                write!(f, "operand {index} of {} is of the wrong kind", op.name())
            }
            K::BadFunction => f.write_str("code that belongs to no well-formed function"),
            K::FunctionCount { expected, found } => {
                write!(f, "{expected} functions announced, {found} found")
            }
            K::NoCodeEnd => f.write_str("the code has no end mark"),
            K::BadType => f.write_str("an impossible type"),
            K::BadLiteral => f.write_str("a literal is not in the external term format"),
            K::BadRecord => f.write_str("an impossible record definition"),
            K::BadDebugInfo => f.write_str("impossible debug information"),
        }
    }
}
