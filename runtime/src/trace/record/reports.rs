//! Makes records of the reports that tracers get.

use beamline_formats::ring::{Event as RingEvent, Id, Kind, Name, NameId, System};

use super::{Recorder, id_of};
use crate::loader::module::Mfa;
use crate::process::Peer;
use crate::term::{Atom, Term, View};
use crate::trace::costs::text::text_of;
use crate::trace::session::monitor::Monitor;
use crate::trace::session::system_event::{Limits, Long, Number, SystemEvent};
use crate::trace::session::tracer::{Event, Report};

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
    pub(in crate::trace) from: Peer,
    pub(in crate::trace) to: Term<'t>,
    pub(in crate::trace) message: Term<'t>,
}

/// The record of a system event; functions and atoms get their names in the recording.
fn record_of(
    event: &SystemEvent,
    function: impl Fn(Mfa) -> NameId,
    atom: impl Fn(Atom) -> NameId,
) -> RingEvent<'static> {
    let function = |mfa: Option<Mfa>| mfa.map_or(NameId::NONE, &function);
    match *event {
        SystemEvent::LongGc { ms, .. } => RingEvent::LongGc { ms },
        SystemEvent::LongSchedule { ms, of } => {
            let (from, to) = match of {
                Long::Process { from, to } => (function(from), function(to)),
                Long::Port(operation) => (atom(operation.name()), NameId::NONE),
            };
            RingEvent::LongSchedule { ms, from, to }
        }
        SystemEvent::LargeHeap { heap } => RingEvent::LargeHeap {
            words: heap.words(),
        },
        SystemEvent::LongMessageQueue { is_long, messages } => RingEvent::LongMessageQueue {
            is_long: is_long.into(),
            messages,
        },
        SystemEvent::BusyDistPort { controller } => RingEvent::BusyDistPort {
            controller: match (controller.pid(), controller.port()) {
                (Some(pid), _) => id_of(pid),
                (None, port) => port.map_or(Id::None, |port| Id::Port(port.0)),
            },
        },
        SystemEvent::BusyPort { port } => RingEvent::BusyPort {
            port: Id::Port(port.0),
        },
    }
}

/// Has these system events recorded.
pub(super) fn monitor(system: &System) -> Monitor {
    Monitor {
        is_recorded: true,
        receiver: None,
        limits: Limits {
            long_gc: Number(system.long_gc_ms),
            long_schedule: Number(system.long_schedule_ms),
            large_heap: Number(system.large_heap_words),
            long_message_queue: system.long_message_queue,
            busy_port: system.busy_port,
            busy_dist_port: system.busy_port,
        },
    }
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

    /// The name of a label: its text, whatever term it is.
    fn label(&self, label: Term<'_>) -> NameId {
        self.label_text(text_of(label))
    }

    /// The name of a label.
    pub(super) fn label_text(&self, text: String) -> NameId {
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
        let from = passed.from.pid().map_or(Id::None, id_of);
        let to = self.id(passed.to);
        let (subject, ring_event) = match passed.how {
            Passes::Sent => (
                from,
                RingEvent::SeqSend {
                    to,
                    label,
                    last,
                    serial,
                    text,
                },
            ),
            Passes::Received => (
                to,
                RingEvent::SeqReceive {
                    from,
                    label,
                    last,
                    serial,
                    text,
                },
            ),
            Passes::Printed => (
                from,
                RingEvent::SeqPrint {
                    label,
                    last,
                    serial,
                    text,
                },
            ),
        };
        self.write(subject, &ring_event);
    }

    pub(super) fn system(&self, subject: Id, event: &SystemEvent) {
        let ring_event = record_of(event, |mfa| self.function(mfa), |name| self.atom(name));
        self.write(subject, &ring_event);
        // That something has passed is waited for by nobody.
        let begins = !matches!(ring_event, RingEvent::LongMessageQueue { is_long: 0, .. });
        if let Some(kind) = ring_event.kind().filter(|_| begins) {
            self.happened(kind, subject, "");
        }
    }

    pub(super) fn spawned(&self, subject: Id, event: Event, relative: Id, call: [Term<'_>; 3]) {
        let [module, function, args] = call;
        let function = match (module.as_atom(), function.as_atom()) {
            (Some(module), Some(function)) => self.function(Mfa {
                module,
                function,
                arity: args.list_iter().count() as u8,
            }),
            _ => NameId::NONE,
        };
        let ring_event = match event {
            Event::Spawn => RingEvent::Spawn {
                child: relative,
                function,
            },
            _ => RingEvent::Spawned {
                parent: relative,
                function,
            },
        };
        self.write(subject, &ring_event);
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
        let ring_event = match report.event {
            Event::Send | Event::SendToNonExisting | Event::Receive => {
                text = text_of(term);
                match report.event {
                    Event::Send => RingEvent::Send {
                        to: extra(report),
                        text: &text,
                    },
                    Event::Receive => RingEvent::Receive { text: &text },
                    _ => RingEvent::SendToNonExisting {
                        to: extra(report),
                        text: &text,
                    },
                }
            }
            Event::Exit | Event::Closed => {
                text = text_of(term);
                match report.event {
                    Event::Exit => RingEvent::Exit { text: &text },
                    _ => RingEvent::Closed { text: &text },
                }
            }
            event => match self.simple(event, report) {
                Some(ring_event) => ring_event,
                None => return,
            },
        };
        self.write(subject, &ring_event);
        if let RingEvent::Exit { text } = ring_event {
            self.happened(Kind::Exit, subject, text);
        }
    }

    /// Events without a text.
    fn simple(&self, event: Event, report: &Report<'_>) -> Option<RingEvent<'static>> {
        let (name, other) = (|| self.name(report.term), || self.id(report.term));
        Some(match event {
            Event::Register => RingEvent::Register { name: name() },
            Event::Unregister => RingEvent::Unregister { name: name() },
            Event::Link => RingEvent::Link { other: other() },
            Event::Unlink => RingEvent::Unlink { other: other() },
            Event::GettingLinked => RingEvent::GettingLinked { other: other() },
            Event::GettingUnlinked => RingEvent::GettingUnlinked { other: other() },
            Event::InExiting => RingEvent::InExiting {},
            Event::OutExiting => RingEvent::OutExiting {},
            Event::OutExited => RingEvent::OutExited {},
            Event::Open => RingEvent::Open {
                owner: other(),
                driver: self.name(report.extra?),
            },
            Event::PortIn => RingEvent::PortIn { command: name() },
            Event::PortOut => RingEvent::PortOut { command: name() },
            // Calls come by themselves; so do time slices, collections and births.
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::session::system_event::PortOp;
    use crate::trace::session::system_event::tests::samples;
    use beamline_formats::ring::Group;

    #[test]
    fn a_system_event_has_the_same_name_as_its_record() {
        let mut told = Vec::new();
        for event in samples() {
            let record = record_of(&event, |_| NameId(9), |_| NameId(8));
            let kind = record.kind().expect("a kind");
            assert_eq!(kind.name(), event.name().name());
            told.push(kind);
        }
        let of_group = |kind: &&Kind| kind.group() == Group::System;
        assert!(
            Kind::ALL
                .iter()
                .filter(of_group)
                .all(|kind| told.contains(kind))
        );
        assert_eq!(told.len(), Kind::ALL.iter().filter(of_group).count());
    }

    #[test]
    fn records_have_the_numbers_of_events() {
        let events = samples()
            .into_iter()
            .map(|event| record_of(&event, |_| NameId(9), |_| NameId(8)));
        let expect = [
            RingEvent::BusyDistPort {
                controller: Id::Port(6),
            },
            RingEvent::BusyPort { port: Id::Port(7) },
            RingEvent::LargeHeap { words: 3 },
            RingEvent::LongSchedule {
                ms: 12,
                from: NameId(9),
                to: NameId::NONE,
            },
            RingEvent::LongGc { ms: 11 },
            RingEvent::LongMessageQueue {
                is_long: 1,
                messages: 1000,
            },
        ];
        assert_eq!(events.collect::<Vec<_>>(), expect);
        let of = Long::Port(PortOp::Input);
        let event = SystemEvent::LongSchedule { ms: 13, of };
        let (from, to) = (NameId(8), NameId::NONE);
        assert_eq!(
            record_of(&event, |_| NameId(9), |_| NameId(8)),
            RingEvent::LongSchedule { ms: 13, from, to }
        );
    }
}
