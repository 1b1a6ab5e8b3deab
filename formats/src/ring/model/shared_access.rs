//! Packs an access to what processes share (its kind, mode and number) into one word of its record.

/// What processes share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Shared {
    /// A table of ETS.
    Table = 1,
    /// A registered name.
    Name = 2,
    /// All registered names.
    Names = 3,
    /// The terms of `persistent_term`.
    PersistentTerms = 4,
    /// An array of `atomics`.
    Atomics = 5,
    /// An array of `counters`.
    Counters = 6,
    /// Whether a process has ended, in an exploration.
    Process = 7,
    /// No process: a process looked for one by a name that none had.
    Nobody = 8,
    /// Whether a timer has gone off, in an exploration.
    Timer = 9,
    /// Whether a process has a name.
    Named = 10,
    /// Whether a process traps exits, in an exploration.
    Trapping = 11,
    /// Whether a process is alive, as the process that asks sees it, in an exploration.
    Alive = 12,
    /// The link of two processes, in an exploration.
    Link = 13,
    /// Files: their names, or the contents of some.
    Files = 14,
}

impl Shared {
    const ALL: [Shared; 14] = [
        Shared::Table,
        Shared::Name,
        Shared::Names,
        Shared::PersistentTerms,
        Shared::Atomics,
        Shared::Counters,
        Shared::Process,
        Shared::Nobody,
        Shared::Timer,
        Shared::Named,
        Shared::Trapping,
        Shared::Alive,
        Shared::Link,
        Shared::Files,
    ];
}

/// An access: the lowest bit says that it is a change, the next one that it is to a part of the object, the next six to
/// what (as [`Shared`] numbers it), and the others which of the process's accesses it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touch {
    /// Which of the accesses of its process, from 1: less than 2^56.
    pub number: u64,
    /// What is accessed.
    pub shared: Shared,
    /// The access changes it, as far as others see.
    pub is_change: bool,
    /// Only a part of it is accessed: a key, or a place in an array.
    pub is_of_part: bool,
}

/// Bits below the number.
const BITS: u32 = 8;

impl Touch {
    /// The number that holds it.
    #[must_use]
    pub fn word(self) -> u64 {
        let how = u64::from(self.is_of_part) << 1 | u64::from(self.is_change);
        self.number << BITS | (self.shared as u64) << 2 | how
    }

    /// What the number holds; `None` where nobody knows what is accessed.
    #[must_use]
    pub fn from_word(word: u64) -> Option<Touch> {
        let shared = word >> 2 & 0x3f;
        let mut all = Shared::ALL.into_iter();
        Some(Touch {
            number: word >> BITS,
            shared: all.find(|kind| *kind as u64 == shared)?,
            is_change: word & 1 != 0,
            is_of_part: word & 2 != 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_holds_all_of_it() {
        for shared in Shared::ALL {
            for (is_change, is_of_part) in [(false, true), (true, false)] {
                let touch = Touch {
                    number: 12_345_678,
                    shared,
                    is_change,
                    is_of_part,
                };
                assert_eq!(Touch::from_word(touch.word()), Some(touch));
            }
        }
        assert_eq!(Touch::from_word(1 << BITS), None);
    }
}
