//! The kinds of what processes share, one row for each; and an access to one (its kind, mode and number), packed into
//! one word of its record.

macro_rules! shared {
    ($($(#[doc = $doc:literal])* $number:literal = $shared:ident, $word:literal, $part:literal,
        $text:literal $($named:ident)?;)*) => {
        /// What processes share.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Shared { $($(#[doc = $doc])* $shared = $number,)* }

        impl Shared {
            /// The kind of this number, if there is one.
            fn of(number: u64) -> Option<Shared> {
                match number { $($number => Some(Shared::$shared),)* _ => None }
            }

            /// As JSON writes it.
            #[must_use]
            pub fn word(self) -> &'static str {
                match self { $(Shared::$shared => $word,)* }
            }

            /// What a part of it is.
            #[must_use]
            pub fn part(self) -> &'static str {
                match self { $(Shared::$shared => $part,)* }
            }

            /// As reports write it. If it has names, the name of the one that is meant comes behind this.
            #[must_use]
            pub fn text(self) -> &'static str {
                match self { $(Shared::$shared => $text,)* }
            }

            /// Whether it has names.
            #[must_use]
            pub fn is_named(self) -> bool {
                match self { $(Shared::$shared => !<[&str]>::is_empty(&[$(stringify!($named))?]),)* }
            }
        }

        const _: () = { $(assert!($number > 0 && $number <= SHARED_MAX);)* };
    };
}

// A number, the kind; as JSON writes it, what a part of it is, as reports write it. `named`: it has names.
shared! {
    /// A table of ETS.
    1 = Table, "ets", "the key", "the table" named;
    /// A registered name.
    2 = Name, "name", "the part", "the name" named;
    /// All registered names.
    3 = Names, "names", "the part", "the registered names";
    /// The terms of `persistent_term`.
    4 = PersistentTerms, "persistent_term", "the key", "persistent_term";
    /// An array of `atomics`.
    5 = Atomics, "atomics", "place", "an array of atomics";
    /// An array of `counters`.
    6 = Counters, "counters", "place", "an array of counters";
    /// Whether a process has ended, in an exploration.
    7 = Process, "process", "the part", "the end of a process";
    /// No process: a process looked for one by a name that none had.
    8 = Nobody, "process", "the part", "the end of a process";
    /// Whether a timer has gone off, in an exploration.
    9 = Timer, "timer", "the part", "a timer";
    /// Whether a process has a name.
    10 = Named, "named", "the part", "the name of a process";
    /// Whether a process traps exits, in an exploration.
    11 = Trapping, "trap_exit", "the part", "whether a process traps exits";
    /// Whether a process is alive, as the process that asks sees it, in an exploration.
    12 = Alive, "alive", "the part", "whether a process is alive";
    /// The link of two processes, in an exploration.
    13 = Link, "link", "the part", "the link of two processes";
    /// Files: their names, or the contents of some.
    14 = Files, "file", "the file", "the file system";
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
/// The greatest number that six bits hold.
const SHARED_MAX: u64 = 0x3f;

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
        Some(Touch {
            number: word >> BITS,
            shared: Shared::of(word >> 2 & SHARED_MAX)?,
            is_change: word & 1 != 0,
            is_of_part: word & 2 != 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> impl Iterator<Item = Shared> {
        (0..=SHARED_MAX).filter_map(Shared::of)
    }

    #[test]
    fn only_a_kind_with_names_is_called_as_one() {
        let named: Vec<_> = all().filter(|shared| shared.is_named()).collect();
        assert_eq!(named, [Shared::Table, Shared::Name]);
        for shared in all() {
            assert_eq!(Shared::of(shared as u64), Some(shared));
            let texts = [shared.word(), shared.part(), shared.text()];
            assert!(texts.iter().all(|text| !text.is_empty()), "{shared:?}");
        }
    }

    #[test]
    fn the_number_holds_all_of_it() {
        assert!(all().count() > 1);
        for shared in all() {
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
