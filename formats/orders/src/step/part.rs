//! The parts of steps: how each kind of value is written in the parentheses of a step, and read again.

use std::str::FromStr;
use std::sync::Arc;

use beamline_formats::name;

use super::{Reader, Writer};
use crate::reference::Reference;
use crate::{Message as AnyMessage, ProcessIndex, Set, Setting, Signal, SystemMessage as Told};

/// What a part looks like.
pub(super) struct Shape {
    /// How many words it has at least, and at most.
    pub(super) words: (usize, usize),
    /// Its word is a term of Erlang.
    pub(super) is_term: bool,
}

const WORD: Shape = words(1, 1);

const fn words(least: usize, most: usize) -> Shape {
    Shape {
        words: (least, most),
        is_term: false,
    }
}

/// A kind of value in a step.
pub(super) trait Part {
    type Of;
    const SHAPE: Shape = WORD;

    fn write(of: &Self::Of, to: &mut Writer<'_>);

    /// `None` where the next words are none of these.
    fn read(from: &mut Reader<'_>) -> Option<Self::Of>;

    /// The value, where processes have other places; `None` where one that it needs has none.
    fn moved(
        of: Self::Of,
        _place: &impl Fn(ProcessIndex) -> Option<ProcessIndex>,
    ) -> Option<Self::Of> {
        Some(of)
    }
}

impl Reader<'_> {
    /// The next word as a number, or whatever else can be read.
    fn parse<T: FromStr>(&mut self) -> Option<T> {
        self.next()?.parse().ok()
    }

    /// The next word, if there is one, which has to be this.
    fn flag(&mut self, word: &str) -> Option<bool> {
        match self.next() {
            None => Some(false),
            Some(next) => (next == word).then_some(true),
        }
    }

    /// The process that a word such as `p0.4` names.
    fn process(&mut self, text: &str) -> Option<ProcessIndex> {
        let reference = text.strip_prefix('p')?.parse().ok()?;
        Some(self.places.place(&reference))
    }

    /// The process and the number of what is written as a letter, a process, a colon and a number from 1.
    fn numbered(&mut self, text: &str) -> Option<(ProcessIndex, u64)> {
        let (process, number) = text.split_at_checked(1)?.1.rsplit_once(':')?;
        let reference: Reference = process.parse().ok()?;
        let number = number.parse().ok().filter(|number| *number > 0)?;
        Some((self.places.place(&reference), number))
    }

    fn access(&mut self, text: &str) -> Option<crate::Access> {
        text.strip_prefix('a')?;
        let (of, number) = self.numbered(text)?;
        Some(crate::Access { of, number })
    }

    /// A message, without what it tells if no process has sent it.
    fn message(&mut self) -> Option<AnyMessage> {
        let text = self.next()?;
        let (from, number) = self.numbered(text)?;
        let number = number.try_into().ok()?;
        match text.as_bytes()[0] {
            b'l' => Some(AnyMessage::Sent { from, number }),
            b't' if from == self.me => Some(AnyMessage::told(number)),
            _ => None,
        }
    }

    /// What the process at `me`, or another one, has set.
    fn set(&mut self, text: &str) -> Option<Set> {
        let (by, number) = self.numbered(text)?;
        let number = number.try_into().ok()?;
        match text.starts_with('s') {
            true => Set::timer(by, number),
            false => Set::monitor(number).filter(|_| by == self.me),
        }
    }

    /// What a message tells that no process has sent.
    fn told(&mut self, number: u32) -> Option<Told> {
        let mut told = Told::of_nobody(number);
        if let Some(of) = self.next_if(|word| word == "nobody" || word.starts_with('p')) {
            told.of = match of {
                "nobody" => None,
                of => Some(self.process(of)?),
            };
        }
        if let Some(set) = self.next_if(|word| word.starts_with(['s', 'm'])) {
            told.set = Some(self.set(set)?);
        }
        told.exit = self.next_if(|word| word == "exit").is_some();
        told.gone = self.next_if(|word| word == "gone").is_some();
        Some(told)
    }
}

/// A process by its place.
pub(super) struct Process;

impl Part for Process {
    type Of = ProcessIndex;

    fn write(of: &ProcessIndex, to: &mut Writer<'_>) {
        to.word(&to.trace.name(*of));
    }

    fn read(from: &mut Reader<'_>) -> Option<ProcessIndex> {
        let text = from.next()?;
        from.process(text)
    }

    fn moved(
        of: ProcessIndex,
        place: &impl Fn(ProcessIndex) -> Option<ProcessIndex>,
    ) -> Option<ProcessIndex> {
        place(of)
    }
}

/// A sending of the process itself, by its number.
pub(super) struct Sending;

impl Part for Sending {
    type Of = u32;

    fn write(number: &u32, to: &mut Writer<'_>) {
        let (from, number) = (to.me, *number);
        let sent = AnyMessage::Sent { from, number };
        to.word(&to.trace.message(to.me, &sent));
    }

    fn read(from: &mut Reader<'_>) -> Option<u32> {
        match from.message()? {
            AnyMessage::Sent { from: by, number } if by == from.me => Some(number),
            _ => None,
        }
    }
}

/// A message; if no process has sent it, also what it tells.
pub(super) struct Message;

impl Part for Message {
    type Of = AnyMessage;
    const SHAPE: Shape = words(1, 4);

    fn write(message: &AnyMessage, to: &mut Writer<'_>) {
        to.word(&to.trace.message(to.me, message));
        let AnyMessage::SystemMessage(told) = message else {
            return;
        };
        match told.of {
            Some(of) => Process::write(&of, to),
            None if told.gone || told.exit => to.word("nobody"),
            None => {}
        }
        match told.set.map(Set::what) {
            Some(Setting::Timer { by, number }) => {
                to.word(&to.trace.numbered('s', by, number.into()));
            }
            Some(Setting::Monitor(number)) => {
                to.word(&to.trace.numbered('m', to.me, number.into()));
            }
            None => {}
        }
        if told.exit {
            to.word("exit");
        }
        if told.gone {
            to.word("gone");
        }
    }

    fn read(from: &mut Reader<'_>) -> Option<AnyMessage> {
        Some(match from.message()? {
            AnyMessage::SystemMessage(told) => AnyMessage::SystemMessage(from.told(told.number)?),
            sent => sent,
        })
    }

    fn moved(
        of: AnyMessage,
        place: &impl Fn(ProcessIndex) -> Option<ProcessIndex>,
    ) -> Option<AnyMessage> {
        of.moved(place)
    }
}

/// A message to the process that no process has sent, by its number.
pub(super) struct SystemMessage;

impl Part for SystemMessage {
    type Of = u32;

    fn write(number: &u32, to: &mut Writer<'_>) {
        let told = AnyMessage::told(*number);
        to.word(&to.trace.message(to.me, &told));
    }

    fn read(from: &mut Reader<'_>) -> Option<u32> {
        match from.message()? {
            AnyMessage::SystemMessage(told) => Some(told.number),
            AnyMessage::Sent { .. } => None,
        }
    }
}

/// A number.
pub(super) struct Number;

impl Part for Number {
    type Of = u64;

    fn write(number: &u64, to: &mut Writer<'_>) {
        to.word(&number.to_string());
    }

    fn read(from: &mut Reader<'_>) -> Option<u64> {
        from.parse()
    }
}

/// An atom.
pub(super) struct Atom;

impl Part for Atom {
    type Of = String;

    fn write(atom: &String, to: &mut Writer<'_>) {
        to.word(&name::atom(atom).to_string());
    }

    fn read(from: &mut Reader<'_>) -> Option<String> {
        from.next().map(str::to_owned)
    }
}

/// The name of a function, such as `erlang:now/0`.
pub(super) struct Function;

impl Part for Function {
    type Of = Arc<str>;

    fn write(function: &Arc<str>, to: &mut Writer<'_>) {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_@:/".contains(c);
        match function.chars().all(is_plain) {
            true => to.word(function),
            false => to.word(&name::atom(function).to_string()),
        }
    }

    fn read(from: &mut Reader<'_>) -> Option<Arc<str>> {
        let text = from.next()?;
        let (name, arity) = text.rsplit_once('/')?;
        let is_one = name.contains(':') && arity.parse::<u8>().is_ok();
        is_one.then(|| text.into())
    }
}

/// A term.
pub(super) struct Term;

impl Part for Term {
    type Of = crate::Value;
    const SHAPE: Shape = Shape {
        is_term: true,
        ..WORD
    };

    fn write(value: &crate::Value, to: &mut Writer<'_>) {
        to.word(&value.to_string());
    }

    fn read(from: &mut Reader<'_>) -> Option<crate::Value> {
        from.parse()
    }
}

/// An access.
pub(super) struct Access;

impl Part for Access {
    type Of = crate::Access;

    fn write(access: &crate::Access, to: &mut Writer<'_>) {
        to.word(&to.trace.access(*access));
    }

    fn read(from: &mut Reader<'_>) -> Option<crate::Access> {
        let text = from.next()?;
        from.access(text)
    }

    fn moved(
        of: crate::Access,
        place: &impl Fn(ProcessIndex) -> Option<ProcessIndex>,
    ) -> Option<crate::Access> {
        let by = place(of.of)?;
        Some(crate::Access { of: by, ..of })
    }
}

/// An access of the process itself, by its number.
pub(super) struct OwnAccess;

impl Part for OwnAccess {
    type Of = u64;

    fn write(number: &u64, to: &mut Writer<'_>) {
        let (of, number) = (to.me, *number);
        Access::write(&crate::Access { of, number }, to);
    }

    fn read(from: &mut Reader<'_>) -> Option<u64> {
        let access = Access::read(from)?;
        (access.of == from.me).then_some(access.number)
    }
}

/// What a process hears of a link.
pub(super) struct LinkNews;

impl Part for LinkNews {
    type Of = crate::Heard;

    fn write(what: &crate::Heard, to: &mut Writer<'_>) {
        to.word(what.name());
    }

    fn read(from: &mut Reader<'_>) -> Option<crate::Heard> {
        from.next().and_then(crate::Heard::of_name)
    }
}

/// How much of a heap a collection sweeps: `true` is all of it.
pub(super) struct Sweep;

impl Part for Sweep {
    type Of = bool;

    fn write(major: &bool, to: &mut Writer<'_>) {
        to.word(if *major { "major" } else { "minor" });
    }

    fn read(from: &mut Reader<'_>) -> Option<bool> {
        match from.next()? {
            "major" => Some(true),
            "minor" => Some(false),
            _ => None,
        }
    }
}

/// What a process has spent, and what ends it.
pub(super) struct Spent;

impl Part for Spent {
    type Of = crate::Spent;
    const SHAPE: Shape = words(2, 5);

    fn write(spent: &crate::Spent, to: &mut Writer<'_>) {
        Number::write(&spent.reductions, to);
        Number::write(&spent.words, to);
        if spent.by_signal {
            to.word("signal");
        }
        if let Some(of) = spent.of.filter(|_| spent.by_signal) {
            Process::write(&of, to);
        }
        if spent.gone && spent.of.is_some() {
            to.word("gone");
        }
    }

    fn read(from: &mut Reader<'_>) -> Option<crate::Spent> {
        Some(crate::Spent {
            reductions: from.parse()?,
            words: from.parse()?,
            by_signal: from.flag("signal")?,
            of: match from.next() {
                None => None,
                Some(of) => Some(from.process(of)?),
            },
            gone: from.flag("gone")?,
        })
    }

    fn moved(
        of: crate::Spent,
        place: &impl Fn(ProcessIndex) -> Option<ProcessIndex>,
    ) -> Option<crate::Spent> {
        let by = of.of.and_then(place);
        Some(crate::Spent { of: by, ..of })
    }
}

/// The exit signal that ends a process, where it is known that one does.
pub(super) struct Ending;

impl Part for Ending {
    type Of = Option<Signal>;
    const SHAPE: Shape = words(0, 1);

    fn write(by: &Option<Signal>, to: &mut Writer<'_>) {
        match by {
            None => {}
            Some(Signal::End(of)) => Process::write(of, to),
            Some(Signal::Call(call)) => Access::write(call, to),
        }
    }

    fn read(from: &mut Reader<'_>) -> Option<Option<Signal>> {
        Some(match from.next() {
            None => None,
            Some(by) if by.starts_with('a') => Some(Signal::Call(from.access(by)?)),
            Some(of) => Some(Signal::End(from.process(of)?)),
        })
    }

    fn moved(
        of: Option<Signal>,
        place: &impl Fn(ProcessIndex) -> Option<ProcessIndex>,
    ) -> Option<Option<Signal>> {
        Some(of.and_then(|by| by.moved(place)))
    }
}
