//! The table of steps: one row for each. The type, the text, the parser, what becomes of a step where processes have
//! other places, and what sort of step it is are made from it.
//!
//! A row has the step's name in the notation of the text, its class, and its variant. A field is a type `as` a part:
//! how a value of this type is written in the parentheses of a step, and read again ([`part`]). JSON has steps as
//! texts, so it needs nothing here.
//!
//! No row says how a step is recorded. The records of the order are a compressed form of steps: one record is three
//! steps, or a step is several records (`read.rs`).

mod part;

use std::sync::Arc;

use part::{Part, Shape};

use super::reference::Places;
use super::{Access, Heard, Message, ProcessIndex, Signal, Spent, Trace, Value};

/// What sort of step it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Its process makes it itself, and it is the same in each run of the process that gets the same.
    Own,
    /// It comes to its process from elsewhere: a message, a signal, a collection.
    Comes,
    /// The machine answers its process.
    Answer,
    /// It orders the accesses to what processes share.
    Access,
    /// It tells more of the step behind it.
    Note,
}

/// How a step is written.
pub(super) struct Row {
    pub(super) name: &'static str,
    /// What stands in its parentheses.
    parts: &'static [Shape],
    read: fn(&mut Reader<'_>) -> Option<Step>,
}

macro_rules! steps {
    ($($(#[doc = $doc:literal])* $name:literal = $class:ident, $step:ident
        $(($($at:ident: $of:ty as $part:ident),*))?
        $({ $($(#[doc = $field_doc:literal])* $field:ident: $type:ty as $kind:ident),* $(,)? })?;)*) => {
        /// A step of a process.
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub enum Step {
            $($(#[doc = $doc])* $step
                $(($($of),*))?
                $({ $($(#[doc = $field_doc])* $field: $type),* })?,)*
        }

        /// The rows of all steps.
        pub(super) static ROWS: &[Row] = &[$(Row {
            name: $name,
            parts: &[$($(part::$part::SHAPE,)*)? $($(part::$kind::SHAPE,)*)?],
            read: |_from| Some(Step::$step
                $(($(part::$part::read(_from)?),*))?
                $({ $($field: part::$kind::read(_from)?),* })?),
        }),*];

        impl Step {
            /// What sort of step it is.
            #[must_use]
            pub fn class(&self) -> Class {
                match self { $(Step::$step { .. } => Class::$class,)* }
            }

            fn name(&self) -> &'static str {
                match self { $(Step::$step { .. } => $name,)* }
            }

            fn write(&self, to: &mut Writer<'_>) {
                match self {
                    $(Step::$step $(($($at),*))? $({ $($field),* })? => {
                        $($(part::$part::write($at, to);)*)?
                        $($(part::$kind::write($field, to);)*)?
                    })*
                }
            }

            /// This step, where processes have other places; `None` where one that it needs has none.
            pub(super) fn moved(self, place: &impl Fn(ProcessIndex) -> Option<ProcessIndex>) -> Option<Step> {
                Some(match self {
                    $(Step::$step $(($($at),*))? $({ $($field),* })? => Step::$step
                        $(($(part::$part::moved($at, place)?),*))?
                        $({ $($field: part::$kind::moved($field, place)?),* })?,)*
                })
            }
        }
    };
}

steps! {
    /// It made the process at this place.
    "spawn" = Own, Spawn(child: ProcessIndex as Process);
    /// It sent a message: its sending of this number, from 1.
    "send" = Own, Send(number: u32 as Sending);
    /// A message got into its queue.
    "deliver" = Comes, Deliver(message: Message as Message);
    /// It took a message out of its queue.
    "receive" = Own, Receive(message: Message as Message);
    /// A receive timed out.
    "timeout" = Own, Timeout;
    /// It called a function that was not there, of this module.
    "miss" = Own, Miss(module: String as Atom);
    /// It made the code of a module the current one.
    "load" = Own, Load {
        /// The module.
        module: String as Atom,
        /// How often calls had missed the module by then.
        misses: u64 as Number,
    };
    /// A native function gave it what no other run need give.
    "answer" = Answer, Answer {
        /// The function, such as `erlang:monotonic_time/0`.
        function: Arc<str> as Function,
        /// What it gave.
        value: Value as Term,
    };
    /// What a message is that no process has sent, and that comes from outside.
    "content" = Note, Content {
        /// Which of those messages, from 1.
        number: u32 as SystemMessage,
        /// The message.
        value: Value as Term,
    };
    /// One of its accesses to what processes share comes after one of another process.
    "after" = Access, After {
        /// Which of its accesses, from 1.
        access: u64 as OwnAccess,
        /// The other one.
        other: Access as Access,
    };
    /// It has made this number of accesses.
    "accesses" = Access, Accesses(number: u64 as OwnAccess);
    /// An exit signal of the process at this place came to it, with the reason `normal`, and it did not trap exits.
    "lost" = Comes, Lost(of: ProcessIndex as Process);
    /// It heard of its link to the process at this place.
    "hears" = Comes, Heard(what: Heard as LinkNews, of: ProcessIndex as Process);
    /// It was collected, as another process had asked for it.
    "collect" = Comes, Collect {
        /// The reductions it had made.
        reductions: u64 as Number,
        /// All of its heap was swept.
        major: bool as Sweep,
    };
    /// What it has spent by its end.
    "spent" = Note, Spent(spent: Spent as Spent);
    /// It ended: by this exit signal, where it is known that one ended it.
    "exit" = Own, Exit(by: Option<Signal> as Ending);
}

impl Step {
    /// Whether it is the end of its process.
    #[must_use]
    pub fn is_exit(&self) -> bool {
        matches!(self, Step::Exit(_))
    }

    /// Whether its process makes it itself ([`Class::Own`]).
    pub(super) fn is_own(&self) -> bool {
        self.class() == Class::Own
    }
}

/// Writes a step of the process at `me`.
struct Writer<'t> {
    trace: &'t Trace,
    me: ProcessIndex,
    out: String,
    has_words: bool,
}

impl Writer<'_> {
    /// A word in the parentheses.
    fn word(&mut self, word: &str) {
        self.out.push_str(if self.has_words { ", " } else { "(" });
        self.has_words = true;
        self.out.push_str(word);
    }
}

impl Trace {
    /// A step of the process at this place, such as `receive(l0.4:2)`.
    #[must_use]
    pub fn step(&self, at: ProcessIndex, step: &Step) -> String {
        let mut to = Writer {
            trace: self,
            me: at,
            out: step.name().into(),
            has_words: false,
        };
        step.write(&mut to);
        if to.has_words {
            to.out.push(')');
        }
        to.out
    }
}

/// The words in the parentheses of a step of the process at `me`. Processes that they name get places.
struct Reader<'w> {
    places: &'w mut Places,
    me: ProcessIndex,
    words: std::slice::Iter<'w, String>,
}

impl<'w> Reader<'w> {
    fn next(&mut self) -> Option<&'w str> {
        self.words.next().map(String::as_str)
    }

    /// The next word, if `is_it` is true of it.
    fn next_if(&mut self, is_it: impl FnOnce(&str) -> bool) -> Option<&'w str> {
        let next = self.words.as_slice().first()?;
        is_it(next).then(|| self.next()).flatten()
    }
}

impl Row {
    /// The row of the step with this name.
    pub(super) fn of(name: &str) -> Option<&'static Row> {
        ROWS.iter().find(|row| row.name == name)
    }

    /// Whether so many words can stand in its parentheses.
    pub(super) fn may_have(&self, words: usize) -> bool {
        let least: usize = self.parts.iter().map(|part| part.words.0).sum();
        let most: usize = self.parts.iter().map(|part| part.words.1).sum();
        (least..=most).contains(&words)
    }

    /// Whether its word at this place is a term of Erlang, which can have commas and parentheses of its own.
    pub(super) fn is_term(&self, at: usize) -> bool {
        self.parts.get(at).is_some_and(|part| part.is_term)
    }

    /// The step of the process at `me` with these words in its parentheses, as many as it may have; `None` where these
    /// do not fit it.
    pub(super) fn read(
        &self,
        places: &mut Places,
        me: ProcessIndex,
        words: &[String],
    ) -> Option<Step> {
        let mut from = Reader {
            places,
            me,
            words: words.iter(),
        };
        let step = (self.read)(&mut from)?;
        from.next().is_none().then_some(step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guide_has_every_step() {
        let guide = include_str!("../../../docs/replay.md");
        for row in ROWS {
            let forms = ["`", "("].map(|end| format!("`{}{end}", row.name));
            let is_there = forms.iter().any(|form| guide.contains(form));
            assert!(is_there, "docs/replay.md has no step {}", row.name);
        }
    }

    #[test]
    fn names_lead_to_their_rows() {
        for row in ROWS {
            assert!(Row::of(row.name).is_some_and(|it| std::ptr::eq(it, row)));
        }
        assert!(Row::of("jump").is_none());
    }
}
