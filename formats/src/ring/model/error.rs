//! The errors of writing and reading a recording. Each is one line of text.

use std::fmt;
use std::io;

/// Why a recording cannot be written or read.
#[derive(Debug)]
pub enum Error {
    /// The operating system refuses.
    Io(io::Error),
    /// Somebody else records into the file.
    Busy,
    /// The settings cannot be met.
    Settings(String),
    /// Nothing was recorded into the file.
    Empty,
    /// It is no recording.
    Foreign,
    /// It was made by a newer version of this format.
    Newer {
        /// The version of the file.
        version: u32,
    },
    /// It ends before its time.
    Truncated {
        /// Its length in bytes.
        length: u64,
        /// The length it ought to have.
        expected: u64,
    },
    /// It is being written still, and newer records have taken the place of what was to be read.
    Overwritten,
    /// What stands there was not written so.
    Corrupt {
        /// What is damaged.
        what: &'static str,
        /// Where, in bytes from the start of the file.
        at: u64,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Io(error) => write!(f, "{error}"),
            Error::Busy => write!(
                f,
                "another recording is being written to it; name another file"
            ),
            Error::Settings(text) => write!(f, "{text}"),
            Error::Empty => write!(f, "the file is empty: nothing was recorded into it"),
            Error::Foreign => write!(f, "not a recording (beamline record)"),
            Error::Newer { version } => write!(
                f,
                "a recording of format {version}, and this program reads format {} at most: \
                 use a newer beamline",
                super::layout::VERSION
            ),
            Error::Truncated { length, expected } => write!(
                f,
                "the recording is cut off: {length} bytes of {expected}; copy it again from where it was made"
            ),
            Error::Overwritten => write!(
                f,
                "the program is still recorded, and what was to be read has been overwritten: \
                 try again, with a larger --ring, or when the program has ended"
            ),
            Error::Corrupt { what, at } => {
                write!(
                    f,
                    "the recording is damaged: {what} at byte {at}; make it again"
                )
            }
        }
    }
}

impl std::error::Error for Error {}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Error::Io(error)
    }
}
