//! Why bytes are no term.

use std::fmt;

/// The error that makes bytes no term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// The first byte is not 131.
    Version,
    /// The bytes end within a term.
    Truncated,
    /// No term starts with this byte.
    Tag(u8),
    /// An atom's name is too long or not UTF-8.
    BadAtom,
    /// An atom or function that does not exist, where none may be made.
    NotExisting,
    /// Where an atom stands, something else was found.
    AtomExpected,
    /// A float that is no number, or no float's text.
    BadFloat,
    /// An integer of more than 4 megabits.
    BadInteger,
    /// A pid, port or reference that this node never made, or with a wrong creation.
    BadIdentifier,
    /// A number of bits in a last byte that cannot be.
    BadBits,
    /// A key stands twice in a map or a record.
    DuplicateKey,
    /// A size above the largest of its kind.
    TooLarge,
    /// The parts of a fun do not fit together.
    BadFun,
    /// The parts of a native record do not fit together.
    BadRecord,
    /// What is compressed does not decompress, or not to the stated size.
    BadCompression,
    /// Written for another machine's eyes only.
    NotLocal,
}

/// Why bytes are no term, and where: the offset of the byte after the last one understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DecodeError {
    /// What is wrong.
    pub reason: Reason,
    /// Offset in bytes, from the start of the input (of what was compressed, where it was).
    pub offset: usize,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what: &dyn fmt::Display = match &self.reason {
            Reason::Version => &"no version byte",
            Reason::Truncated => &"the bytes end within a term",
            Reason::Tag(tag) => return write!(f, "unknown tag {tag} at offset {}", self.offset),
            Reason::BadAtom => &"bad atom name",
            Reason::NotExisting => &"an atom or function that does not exist",
            Reason::AtomExpected => &"an atom expected",
            Reason::BadFloat => &"bad float",
            Reason::BadInteger => &"integer too large",
            Reason::BadIdentifier => &"bad pid, port or reference",
            Reason::BadBits => &"bad number of bits",
            Reason::DuplicateKey => &"duplicate key",
            Reason::TooLarge => &"size too large",
            Reason::BadFun => &"bad fun",
            Reason::BadRecord => &"bad native record",
            Reason::BadCompression => &"bad compressed data",
            Reason::NotLocal => &"local data of another machine",
        };
        write!(f, "{what} at offset {}", self.offset)
    }
}

impl std::error::Error for DecodeError {}
