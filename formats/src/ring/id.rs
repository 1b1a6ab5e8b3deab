//! How records name processes, ports and what has a name of its own.

use std::fmt;

/// An atom or a function in the names of a recording; 0 is none, or one that did not fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NameId(pub u32);

impl NameId {
    /// No name.
    pub const NONE: NameId = NameId(0);
}

/// A process, a port or a registered name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Id {
    /// Nobody, or somebody this format has no word for.
    #[default]
    None,
    /// A process: 60 bits, of which the lowest 28 are the second number of the pid, the others the third.
    Process(u64),
    /// A port: the number in its name.
    Port(u64),
    /// Whoever has this name.
    Name(NameId),
}

const VALUE: u64 = (1 << 60) - 1;

impl Id {
    #[inline(always)]
    pub(super) fn word(self) -> u64 {
        match self {
            Id::None => 0,
            Id::Process(value) => 1 << 60 | value & VALUE,
            Id::Port(value) => 2 << 60 | value & VALUE,
            Id::Name(NameId(name)) => 3 << 60 | u64::from(name),
        }
    }

    pub(super) fn from_word(word: u64) -> Id {
        let value = word & VALUE;
        match word >> 60 {
            1 => Id::Process(value),
            2 => Id::Port(value),
            3 => u32::try_from(value).map_or(Id::None, |name| Id::Name(NameId(name))),
            _ => Id::None,
        }
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Id::None => write!(f, "-"),
            Id::Process(value) => write!(f, "<0.{}.{}>", value & 0xfff_ffff, value >> 28),
            Id::Port(value) => write!(f, "#Port<0.{value}>"),
            Id::Name(NameId(name)) => write!(f, "name {name}"),
        }
    }
}
