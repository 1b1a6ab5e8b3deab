//! Records the order of what processes do to each other.

use beamline_formats::profile::Origin;
use beamline_formats::ring::{Event as RingEvent, Growing, NameId, Touch as How};

use super::{OWN, Recorder, ThreadSegment, id_of, recorder};
use crate::exec::exception;
use crate::loader::module::Mfa;
use crate::process::Process;
use crate::process::order::access::{Access, Part, Touch};
use crate::process::order::director::may_records_grow;
use crate::process::order::{self, NameIds, OrderEvent, answer};
use crate::sys::chance::clock::monotonic_ns;
use crate::term::hash::internal_hash;
use crate::term::{Atom, Pid};
use crate::trace::costs::text::text_of;

/// Processes tell their steps from now on, and where in the code these are, if that is asked for.
pub(super) fn begin(with_sites: bool) {
    order::begin_recording(with_sites);
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
    if let Some(mut recorder) = recorder() {
        let record = told.record(&mut recorder);
        recorder.tell(pid, &record);
    }
}

/// What a process did last, it does once more: see [`Recorder::again`].
pub(in crate::trace) fn ordered_again(pid: Pid, again: &mut Option<Growing>) -> bool {
    recorder().is_some_and(|recorder| recorder.again(pid, again))
}

/// A scheduler has slept, or run for a while: records that grow end here, and new ones begin.
pub(crate) fn time_passes() {
    if !may_records_grow() {
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
        let name = touch.name.map_or(NameId::NONE, |name| self.atom(name));
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
}

impl NameIds for &Recorder {
    #[inline]
    fn atom(&mut self, atom: Atom) -> NameId {
        Recorder::atom(self, atom)
    }

    #[inline]
    fn function(&mut self, native: &'static answer::Native) -> NameId {
        NameId(native.name(|| {
            let mfa = Mfa {
                module: Atom::new(native.module),
                function: Atom::new(native.function),
                arity: native.arity,
            };
            Recorder::function(self, mfa).0
        }))
    }
}

/// What an access of this number does to an object.
pub(in crate::trace) fn how_of(number: u64, touch: &Touch<'_>) -> How {
    How {
        number,
        shared: touch.shared,
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
