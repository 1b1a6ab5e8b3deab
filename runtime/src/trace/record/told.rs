//! What tracers are told, as records.

use beamline_formats::ring::{Event as Told, Id, Kind, Name, NameId};

use super::{Recorder, id_of};
use crate::loader::module::Mfa;
use crate::term::{Atom, Pid, Term, View, am};
use crate::trace::tracer::{Event, Report};

/// What happens to a message with a sequential trace token.
pub(in crate::trace) enum Passes {
    Sent,
    Received,
    Printed,
}

/// A sequential trace token, where it goes with a message or what is printed.
pub(in crate::trace) struct Passed<'t> {
    pub(in crate::trace) how: Passes,
    pub(in crate::trace) label: Term<'t>,
    /// The serial its sender got last, and its own.
    pub(in crate::trace) serial: (u64, u64),
    pub(in crate::trace) from: Pid,
    pub(in crate::trace) to: Term<'t>,
    pub(in crate::trace) message: Term<'t>,
}

/// The value of `key` in a list of pairs.
fn value<'h>(pairs: Term<'h>, key: Atom) -> Option<Term<'h>> {
    pairs.list_iter().flatten().find_map(|pair| {
        let [name, value] = *pair.as_tuple()?.elements() else {
            return None;
        };
        (name == key).then_some(value)
    })
}

fn number(term: Option<Term<'_>>) -> u64 {
    term.and_then(Term::as_index).unwrap_or(0) as u64
}

/// Parts of a term, and bytes of its text, that a record holds.
const PARTS: i64 = 24;
const TEXT: usize = 120;

fn text_of(term: Term<'_>) -> String {
    let bytes = term.display_cut(PARTS).to_bytes();
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    text.truncate(text.floor_char_boundary(TEXT));
    text
}

impl Recorder {
    pub(super) fn id(&self, term: Term<'_>) -> Id {
        match term.view() {
            View::Pid(pid) => id_of(pid),
            View::Port(port) => Id::Port(port.0),
            _ => term
                .as_atom()
                .map_or(Id::None, |name| Id::Name(self.atom(name))),
        }
    }

    fn name(&self, term: Term<'_>) -> NameId {
        term.as_atom().map_or(NameId::NONE, |name| self.atom(name))
    }

    /// The function of `{M, F, Args}`.
    fn call(&self, term: Option<Term<'_>>) -> NameId {
        let function = term.and_then(Term::as_tuple).and_then(|call| {
            let [module, function, args] = *call.elements() else {
                return None;
            };
            Some(Mfa {
                module: module.as_atom()?,
                function: function.as_atom()?,
                arity: args.list_iter().count() as u8,
            })
        });
        function.map_or(NameId::NONE, |mfa| self.function(mfa))
    }

    /// The function of `{M, F, Arity}`.
    fn place(&self, term: Option<Term<'_>>) -> NameId {
        let function = term.and_then(Term::as_tuple).and_then(|place| {
            let [module, function, arity] = *place.elements() else {
                return None;
            };
            Some(Mfa {
                module: module.as_atom()?,
                function: function.as_atom()?,
                arity: arity.as_index()? as u8,
            })
        });
        function.map_or(NameId::NONE, |mfa| self.function(mfa))
    }

    /// The name of a label: its text, whatever term it is.
    fn label(&self, label: Term<'_>) -> NameId {
        let text = text_of(label);
        if let Some(name) = self.labels.read().get(&text) {
            return *name;
        }
        // One that two threads see first has two names, and the same text.
        let name = self.ring.name(Name::Label(&text));
        if name != NameId::NONE {
            self.labels.write().insert(text, name);
        }
        name
    }

    pub(super) fn passed(&self, passed: &Passed<'_>) {
        let (label, text) = (self.label(passed.label), text_of(passed.message));
        let ((last, serial), text) = (passed.serial, text.as_str());
        let from = id_of(passed.from);
        let to = self.id(passed.to);
        let (subject, told) = match passed.how {
            Passes::Sent => (
                from,
                Told::SeqSend {
                    to,
                    label,
                    last,
                    serial,
                    text,
                },
            ),
            Passes::Received => (
                to,
                Told::SeqReceive {
                    from,
                    label,
                    last,
                    serial,
                    text,
                },
            ),
            Passes::Printed => (
                from,
                Told::SeqPrint {
                    label,
                    last,
                    serial,
                    text,
                },
            ),
        };
        self.write(subject, &told);
    }

    pub(super) fn system(&self, subject: Id, event: Atom, what: Term<'_>) {
        let ms = || number(value(what, am::timeout));
        let told = match event {
            am::long_gc => Told::LongGc { ms: ms() },
            am::long_schedule => Told::LongSchedule {
                ms: ms(),
                from: self.place(value(what, am::in_)),
                to: self.place(value(what, am::out)),
            },
            am::large_heap => Told::LargeHeap {
                words: number(value(what, am::heap_block_size))
                    + number(value(what, am::old_heap_block_size)),
            },
            am::busy_port => Told::BusyPort {
                port: self.id(what),
            },
            _ => return,
        };
        self.write(subject, &told);
        if let Some(kind) = told.kind() {
            self.happened(kind, subject, "");
        }
    }

    /// Says so where it is waited for.
    pub(super) fn happened(&self, kind: Kind, who: Id, reason: &str) {
        if self.triggers.iter().any(|wanted| wanted.is(kind, reason)) {
            self.ring.trigger(kind, who);
        }
    }

    pub(super) fn report(&self, subject: Id, report: &Report<'_>) {
        let term = report.term;
        let extra = |report: &Report<'_>| self.id(report.extra.unwrap_or(Term::NIL));
        let text;
        let told = match report.event {
            Event::Send | Event::SendToNonExisting | Event::Receive => {
                text = text_of(term);
                match report.event {
                    Event::Send => Told::Send {
                        to: extra(report),
                        text: &text,
                    },
                    Event::Receive => Told::Receive { text: &text },
                    _ => Told::SendToNonExisting {
                        to: extra(report),
                        text: &text,
                    },
                }
            }
            Event::Spawn => Told::Spawn {
                child: self.id(term),
                function: self.call(report.extra),
            },
            Event::Spawned => Told::Spawned {
                parent: self.id(term),
                function: self.call(report.extra),
            },
            Event::Exit | Event::Closed => {
                text = text_of(term);
                match report.event {
                    Event::Exit => Told::Exit { text: &text },
                    _ => Told::Closed { text: &text },
                }
            }
            event => match self.simple(event, report) {
                Some(told) => told,
                None => return,
            },
        };
        self.write(subject, &told);
        if let Told::Exit { text } = told {
            self.happened(Kind::Exit, subject, text);
        }
    }

    /// Events without a text.
    fn simple(&self, event: Event, report: &Report<'_>) -> Option<Told<'static>> {
        let (name, other) = (|| self.name(report.term), || self.id(report.term));
        Some(match event {
            Event::Register => Told::Register { name: name() },
            Event::Unregister => Told::Unregister { name: name() },
            Event::Link => Told::Link { other: other() },
            Event::Unlink => Told::Unlink { other: other() },
            Event::GettingLinked => Told::GettingLinked { other: other() },
            Event::GettingUnlinked => Told::GettingUnlinked { other: other() },
            Event::InExiting => Told::InExiting {},
            Event::OutExiting => Told::OutExiting {},
            Event::OutExited => Told::OutExited {},
            Event::Open => Told::Open {
                owner: other(),
                driver: self.name(report.extra?),
            },
            Event::PortIn => Told::PortIn { command: name() },
            Event::PortOut => Told::PortOut { command: name() },
            // Calls come by themselves; so do turns and collections.
            _ => return None,
        })
    }
}
