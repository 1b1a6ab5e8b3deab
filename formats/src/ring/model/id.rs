//! The ids by which records name processes and ports, and the numbers by which they give names.

use std::fmt;
use std::str::FromStr;

use crate::paths::Frame;

/// The number of an atom or a function in the names of a recording. 0 stands for no name, or one that did not fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NameId(pub u32);

impl NameId {
    /// No name.
    pub const NONE: NameId = NameId(0);

    /// At how many frames the path was cut, if this stands for that. No recording has such a number.
    #[must_use]
    pub fn cut_frames(self) -> Option<u32> {
        let power = u32::MAX - self.0;
        (power < u32::BITS).then(|| 1 << power)
    }
}

impl Frame for NameId {
    fn cut_at(frames: u32) -> NameId {
        NameId(u32::MAX - frames.ilog2())
    }

    fn is_cut(self) -> bool {
        self.cut_frames().is_some()
    }

    fn is_same_function(self, other: NameId) -> bool {
        self == other
    }
}

/// A process, a port, a registered name or a socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Id {
    /// Nobody, or a receiver that this format cannot name.
    #[default]
    None,
    /// A process: 60 bits, of which the lowest 28 are the second number of the pid, the next 20 the third, and the others the
    /// first. That is 0, but where the recordings of several nodes have become one ([`Id::of_node`]).
    Process(u64),
    /// A port: the number in its name.
    Port(u64),
    /// Whoever has this name.
    Name(NameId),
    /// A socket: sockets are counted from 1 as they are opened.
    Socket(u64),
}

const VALUE: u64 = (1 << 60) - 1;

impl Id {
    #[inline(always)]
    pub(in crate::ring) fn word(self) -> u64 {
        match self {
            Id::None => 0,
            Id::Process(value) => 1 << 60 | value & VALUE,
            Id::Port(value) => 2 << 60 | value & VALUE,
            Id::Name(NameId(name)) => 3 << 60 | u64::from(name),
            Id::Socket(value) => 4 << 60 | value & VALUE,
        }
    }

    pub(in crate::ring) fn from_word(word: u64) -> Id {
        let value = word & VALUE;
        match word >> 60 {
            1 => Id::Process(value),
            2 => Id::Port(value),
            3 => u32::try_from(value).map_or(Id::None, |name| Id::Name(NameId(name))),
            4 => Id::Socket(value),
            _ => Id::None,
        }
    }
}

/// Where the number of a node is in an id.
const NODE_AT: u32 = 48;

/// Nodes have numbers below this.
pub const NODES: u64 = 1 << (60 - NODE_AT);

impl Id {
    /// A process, port or socket as that of the node of this number, below [`NODES`], where there are several.
    #[must_use]
    pub fn of_node(self, node: u64) -> Id {
        let value = |value: u64| value & ((1 << NODE_AT) - 1) | node << NODE_AT;
        match self {
            Id::Process(id) => Id::Process(value(id)),
            Id::Port(id) => Id::Port(value(id)),
            Id::Socket(id) => Id::Socket(value(id)),
            Id::None | Id::Name(_) => self,
        }
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let node = |value: &u64| value >> NODE_AT;
        let own = |value: &u64| value & ((1 << NODE_AT) - 1);
        match self {
            Id::None => write!(f, "-"),
            Id::Process(value) => {
                let (number, serial) = (value & 0xfff_ffff, own(value) >> 28);
                write!(f, "<{}.{number}.{serial}>", node(value))
            }
            Id::Port(value) => write!(f, "#Port<{}.{}>", node(value), own(value)),
            Id::Name(NameId(name)) => write!(f, "name {name}"),
            Id::Socket(value) => write!(f, "socket {value}"),
        }
    }
}

/// Names a message: its sender, and its number among the messages that this sender has sent.
///
/// Of the sender there are the low 32 bits of what [`Id::Process`] holds: the first four thousand million processes
/// differ in them. Sendings are counted from 1, to 2^32 and again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Label {
    /// Low bits of the sender's id.
    pub from: u32,
    /// Which of its sendings.
    pub number: u32,
}

impl Label {
    /// The next sending of the same process; nothing behind the last number.
    pub fn next(self) -> Option<Label> {
        let number = self.number.checked_add(1)?;
        Some(Label { number, ..self })
    }

    #[inline(always)]
    pub(in crate::ring) fn word(self) -> u64 {
        u64::from(self.from) << 32 | u64::from(self.number)
    }

    pub(in crate::ring) fn from_word(word: u64) -> Label {
        Label {
            from: (word >> 32) as u32,
            number: (word & 0xffff_ffff) as u32,
        }
    }
}

/// An integer that a function has given, in one number: see `order_answer_near`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Near {
    /// The function: its number is less than 2^24.
    pub function: NameId,
    /// The difference to the last integer, modulo 2^64.
    pub difference: u64,
}

impl Near {
    /// Bits of the difference.
    const BITS: u32 = 40;

    /// The number; `None` where it has no room.
    #[inline]
    #[must_use]
    pub fn word(self) -> Option<u64> {
        let near = self.difference << (u64::BITS - Self::BITS) >> (u64::BITS - Self::BITS);
        let word = u64::from(self.function.0) << Self::BITS | near;
        let is_near = Near::from_word(word) == self;
        is_near.then_some(word)
    }

    /// What the number holds.
    #[must_use]
    pub fn from_word(word: u64) -> Near {
        let high = (word << (u64::BITS - Self::BITS)).cast_signed();
        Near {
            function: NameId((word >> Self::BITS) as u32),
            difference: (high >> (u64::BITS - Self::BITS)).cast_unsigned(),
        }
    }
}

/// How often something happens once more: see `order_again`. The number stands beside its complement, as no check of a block
/// covers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Again(u32);

impl Again {
    pub(in crate::ring) const ONCE: Again = Again(1);
    /// No record holds more.
    pub(in crate::ring) const MOST: Again = Again(256);

    /// One more; nothing behind the most.
    #[inline]
    pub(in crate::ring) fn more(self) -> Option<Again> {
        (self != Again::MOST).then_some(Again(self.0 + 1))
    }

    #[inline]
    pub(in crate::ring) fn word(self) -> u64 {
        u64::from(!self.0) << 32 | u64::from(self.0)
    }

    /// What the word holds; `None` where it is damaged.
    #[inline]
    pub fn from_word(word: u64) -> Option<Again> {
        let again = Again((word & 0xffff_ffff) as u32);
        let is_whole = again.word() == word && (1..=Again::MOST.0).contains(&again.0);
        is_whole.then_some(again)
    }

    /// The number.
    pub fn times(self) -> u32 {
        self.0
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", Id::Process(self.from.into()), self.number)
    }
}

impl FromStr for Id {
    type Err = ();

    /// Reads the text that [`Id`] displays for a process.
    fn from_str(text: &str) -> Result<Id, ()> {
        let inside = text.strip_prefix('<');
        let inside = inside.and_then(|rest| rest.strip_suffix('>')).ok_or(())?;
        let mut numbers = inside.split('.').map(|number| number.parse::<u64>().ok());
        let mut next = |limit: u64| numbers.next()?.filter(|number| *number < limit);
        let (node, number, serial) = (next(NODES), next(1 << 28), next(1 << 20));
        let (Some(node), Some(number), Some(serial)) = (node, number, serial) else {
            return Err(());
        };
        match numbers.next() {
            Some(_) => Err(()),
            None => Ok(Id::Process(serial << 28 | number).of_node(node)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_integers_are_read_as_they_are_written() {
        for (function, difference, is_near) in [
            (1, 0, true),
            (0xff_ffff, (1 << 39) - 1, true),
            (7, (-1i64).cast_unsigned(), true),
            (7, (-1i64 << 39).cast_unsigned(), true),
            (7, 1 << 39, false),
            (0x100_0000, 1, false),
        ] {
            let function = NameId(function);
            let near = Near {
                function,
                difference,
            };
            assert_eq!(near.word().is_some(), is_near);
            assert!(near.word().is_none_or(|word| Near::from_word(word) == near));
        }
    }

    #[test]
    fn damaged_numbers_of_repetitions_are_seen() {
        let mut again = Some(Again::ONCE);
        for times in 1..=256 {
            let word = again.expect("256 are not too many").word();
            assert_eq!(Again::from_word(word).map(Again::times), Some(times));
            let damaged = (0..64).map(|bit| word ^ 1 << bit);
            assert_eq!(damaged.filter_map(Again::from_word).next(), None);
            again = again.and_then(Again::more);
        }
        assert_eq!(again, None);
        for times in [0, 257, u32::MAX] {
            assert_eq!(Again::from_word(Again(times).word()), None, "{times}");
        }
    }

    #[test]
    fn processes_are_read_as_they_are_written() {
        for value in [0, 9, 0xfff_ffff, 3 << 28 | 7, 2 << NODE_AT | 9, VALUE] {
            let id = Id::Process(value);
            assert_eq!(id.to_string().parse(), Ok(id));
        }
        for text in [
            "",
            "-",
            "<0.9>",
            "<0.268435456.0>",
            "<0.9.1048576>",
            "<4096.9.0>",
            "<0.9.0.1>",
            "#Port<0.9>",
        ] {
            assert_eq!(text.parse::<Id>(), Err(()), "{text}");
        }
    }
}
