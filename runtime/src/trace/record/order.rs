//! Records the order of what processes do to each other.

use beamline_formats::profile::Origin;
use beamline_formats::ring::{
    Event as RingEvent, Growing, Id, Label, NameId, Near, Shared as Kind, Touch as How,
};
use beamline_orders::Spent;

use super::{OWN, Recorder, ThreadSegment, id_of, recorder};
use crate::exec::exception;
use crate::loader::module::Mfa;
use crate::process::Process;
use crate::process::order::access::{Access, Part, Shared, Touch};
use crate::process::order::{
    self, Annotation, OrderEvent, RECORDED, SITED, Sending, Setting, Tried, answer,
};
use crate::sys::chance::clock::monotonic_ns;
use crate::term::hash::internal_hash;
use crate::term::{Atom, Pid};
use crate::trace::costs::text::text_of;

/// Processes tell their steps from now on, and where in the code these are, if that is asked for.
pub(super) fn begin(with_sites: bool) {
    order::ask(RECORDED | if with_sites { SITED } else { 0 });
}

/// A process is about to make a step.
pub(in crate::trace) fn sited(p: &Process) {
    if let Some(recorder) = recorder() {
        recorder.tell(p.pid(), &recorder.site(p));
    }
}

/// Whether one of the innermost functions that a process is in is no library's.
pub(in crate::trace) fn is_in_application(p: &Process) -> bool {
    recorder().is_some_and(|recorder| {
        let lines = exception::lines(p, DEPTH);
        lines
            .iter()
            .any(|(mfa, _)| recorder.is_of_application(*mfa))
    })
}

/// A process is about to make its access of this number.
pub(in crate::trace) fn accessed(pid: Pid, number: u64, touch: &Touch<'_>) {
    if let Some(recorder) = recorder() {
        recorder.access(pid, number, touch);
    }
}

/// A step of a process.
pub(in crate::trace) fn ordered(pid: Pid, told: OrderEvent) {
    if let Some(recorder) = recorder() {
        recorder.tell(pid, &recorder.step(told));
    }
}

/// What a process did last, it does once more: see [`Recorder::again`].
pub(in crate::trace) fn ordered_again(pid: Pid, again: &mut Option<Growing>) -> bool {
    recorder().is_some_and(|recorder| recorder.again(pid, again))
}

/// A scheduler has slept, or run for a while: records that grow end here, and new ones begin.
pub(crate) fn time_passes() {
    if !order::is_asked() {
        return;
    }
    // The thread of a scheduler that has not recorded anything has no segment.
    let _ = OWN.try_with(|own| {
        if let ThreadSegment::Mine(segment) = &mut *own.borrow_mut() {
            segment.time_passes(monotonic_ns());
        }
    });
}

/// Most functions of a stack searched for one of the application.
const DEPTH: usize = 8;

impl Recorder {
    /// Tells that what the last record of `pid` tells happens once more, in the record at `again` if that can grow still.
    /// `false` on a thread that is no scheduler.
    #[inline]
    fn again(&self, pid: Pid, again: &mut Option<Growing>) -> bool {
        let told = OWN.try_with(|own| match &mut *own.borrow_mut() {
            ThreadSegment::Mine(segment) => {
                let grows = again.as_mut().is_some_and(|again| segment.grow(again));
                if !grows {
                    *again = segment.write_growing(again.take(), || self.clock.now(), id_of(pid));
                }
                grows || again.is_some()
            }
            ThreadSegment::Shared | ThreadSegment::Unknown => false,
        });
        matches!(told, Ok(true))
    }

    /// Where a process is: in the innermost function that is no library's, or else in the innermost one.
    fn site(&self, p: &Process) -> RingEvent<'static> {
        let lines = exception::lines(p, DEPTH);
        let own = lines.iter().find(|(mfa, _)| self.is_of_application(*mfa));
        let site = own.or(lines.first());
        let (function, line) = site.map_or((NameId::NONE, 0), |(mfa, line)| {
            (self.function(*mfa), (*line).into())
        });
        RingEvent::OrderSite { function, line }
    }

    fn is_of_application(&self, function: Mfa) -> bool {
        self.origin(function.module) == Origin::App
    }

    fn access(&self, pid: Pid, number: u64, touch: &Touch<'_>) {
        let name = match touch.shared {
            Shared::Table(name) | Shared::Name(name) => self.atom(name),
            Shared::Names
            | Shared::PersistentTerms
            | Shared::Atomics
            | Shared::Counters
            | Shared::Process
            | Shared::Nobody
            | Shared::Timer
            | Shared::Named
            | Shared::Trapping
            | Shared::Alive
            | Shared::Link
            | Shared::Files => NameId::NONE,
        };
        let text = match touch.part {
            Part::All => String::new(),
            Part::Key(key) => text_of(key),
            Part::Place(place) => place.to_string(),
        };
        let event = RingEvent::OrderAccess {
            how: how_of(number, touch).word(),
            object: touch.object.number(),
            name,
            part: part_of(touch),
            text: &text,
        };
        self.tell(pid, &event);
    }

    #[inline]
    fn answering(&self, native: &answer::Native) -> NameId {
        NameId(native.name(|| {
            let mfa = Mfa {
                module: Atom::new(native.module),
                function: Atom::new(native.function),
                arity: native.arity,
            };
            self.function(mfa).0
        }))
    }

    #[inline]
    fn step(&self, told: OrderEvent) -> RingEvent<'static> {
        event_of(
            told,
            |atom| self.atom(atom),
            |native| self.answering(native),
        )
    }
}

/// What an access of this number does to an object.
pub(in crate::trace) fn how_of(number: u64, touch: &Touch<'_>) -> How {
    How {
        number,
        shared: match touch.shared {
            Shared::Table(_) => Kind::Table,
            Shared::Name(_) => Kind::Name,
            Shared::Names => Kind::Names,
            Shared::PersistentTerms => Kind::PersistentTerms,
            Shared::Atomics => Kind::Atomics,
            Shared::Counters => Kind::Counters,
            Shared::Process => Kind::Process,
            Shared::Nobody => Kind::Nobody,
            Shared::Timer => Kind::Timer,
            Shared::Named => Kind::Named,
            Shared::Trapping => Kind::Trapping,
            Shared::Alive => Kind::Alive,
            Shared::Link => Kind::Link,
            Shared::Files => Kind::Files,
        },
        is_change: touch.access == Access::Write,
        is_of_part: !matches!(touch.part, Part::All),
    }
}

/// The number of the part of an object that an access is to: a hash of a key, or a place.
pub(in crate::trace) fn part_of(touch: &Touch<'_>) -> u64 {
    match touch.part {
        Part::All => 0,
        Part::Key(key) => internal_hash(key),
        Part::Place(place) => place,
    }
}

/// The record of a step; `name` gives atoms their numbers, and `answering` functions that answer.
#[inline]
pub(crate) fn event_of(
    told: OrderEvent,
    name: impl FnOnce(Atom) -> NameId,
    answering: impl FnOnce(&answer::Native) -> NameId,
) -> RingEvent<'static> {
    let of_id = |of: Option<Pid>| of.map_or(Id::None, id_of);
    match told {
        OrderEvent::Take(sending) => RingEvent::OrderTake {
            label: label_of(sending),
        },
        OrderEvent::SendTake(sending) => RingEvent::OrderSendTake {
            label: label_of(sending),
        },
        OrderEvent::Delivery(sending) => RingEvent::OrderDelivery {
            label: label_of(sending),
        },
        OrderEvent::Receive(at) => RingEvent::OrderReceive { at: at as u64 },
        OrderEvent::Sent(count) => RingEvent::OrderSent {
            count: count.into(),
        },
        OrderEvent::Spawn(child) => RingEvent::OrderSpawn {
            child: id_of(child),
        },
        OrderEvent::Notice {
            of,
            is_gone,
            is_exit,
            monitor,
        } => RingEvent::order_told(of_id(of), is_gone, is_exit, monitor.map(u64::from)),
        OrderEvent::Timer(Setting { by, number }) => RingEvent::OrderTimer {
            label: label_of(Sending { from: by, number }),
        },
        OrderEvent::Ahead(at) => RingEvent::OrderAhead { at: at as u64 },
        OrderEvent::Timeout => RingEvent::OrderTimeout {},
        OrderEvent::Miss(module) => RingEvent::OrderMiss {
            module: name(module),
        },
        OrderEvent::Load { module, misses } => RingEvent::OrderLoad {
            module: name(module),
            misses,
        },
        OrderEvent::Answer { native, difference } => event_of_answer(answering(native), difference),
        OrderEvent::AnswerTerm { native, length } => RingEvent::OrderAnswerTerm {
            function: answering(native),
            bytes: length as u64,
        },
        OrderEvent::Content { length } => RingEvent::OrderContent {
            bytes: length as u64,
        },
        OrderEvent::Bytes([first, second, third, fourth]) => RingEvent::OrderBytes {
            first,
            second,
            third,
            fourth,
        },
        OrderEvent::After { of, number, since } => RingEvent::OrderAfter {
            of: id_of(of),
            number,
            since,
        },
        OrderEvent::Accesses(count) => RingEvent::OrderAccesses { count },
        OrderEvent::Spent(spent) => event_of_spent(spent),
        OrderEvent::Exit => RingEvent::OrderExit {},
        OrderEvent::Lost(of) => RingEvent::OrderLost { of: id_of(of) },
        OrderEvent::Heard(what, of) => RingEvent::OrderHeard {
            what: what as u64,
            of: id_of(of),
        },
        OrderEvent::Collect { reductions, major } => RingEvent::OrderCollect {
            reductions,
            major: major.into(),
        },
        OrderEvent::EndedBy(of) => RingEvent::OrderEndedBy { of: id_of(of) },
        OrderEvent::Annotation(aside) => event_of_aside(aside),
    }
}

#[inline]
fn event_of_answer(function: NameId, difference: u64) -> RingEvent<'static> {
    let near = Near {
        function,
        difference,
    };
    match near.word() {
        Some(answer) => RingEvent::OrderAnswerNear { answer },
        None => RingEvent::OrderAnswer {
            function,
            difference,
        },
    }
}

#[cold]
fn event_of_aside(aside: Annotation) -> RingEvent<'static> {
    match aside {
        Annotation::Signal(kind, to) => RingEvent::OrderSignal {
            what: kind as u64,
            to: id_of(to),
        },
        Annotation::Traps(traps) => RingEvent::OrderTraps {
            traps: traps.into(),
        },
        Annotation::Tried(Tried::Sent(sending), takes) => RingEvent::OrderTried {
            label: label_of(sending),
            takes: takes.into(),
        },
        Annotation::Tried(Tried::SystemMessage(number), takes) => RingEvent::OrderTriedTold {
            number: number.into(),
            takes: takes.into(),
        },
    }
}

fn event_of_spent(spent: Spent) -> RingEvent<'static> {
    RingEvent::OrderSpent {
        reductions: spent.reductions,
        words: spent.words,
        ended: u64::from(spent.by_signal) + u64::from(spent.gone),
    }
}

fn label_of(sending: Sending) -> Label {
    Label {
        from: (sending.from.0 & 0xffff_ffff) as u32,
        number: sending.number,
    }
}
