//! Records the order of what processes do to each other.

use beamline_formats::ring::{Event as RingEvent, Id, Label};

use super::{Recorder, id_of, recorder};
use crate::process::order::{self, RECORDED, Sending, Told};
use crate::term::Pid;

/// Processes tell their steps from now on.
pub(super) fn begin() {
    order::ask(RECORDED);
}

/// A step of a process.
pub(in crate::trace) fn ordered(pid: Pid, told: Told) {
    if let Some(recorder) = recorder() {
        recorder.tell(pid, &recorder.step(told));
    }
}

impl Recorder {
    #[inline]
    fn step(&self, told: Told) -> RingEvent<'static> {
        let of_id = |of: Option<Pid>| of.map_or(Id::None, id_of);
        match told {
            Told::Take(sending) => RingEvent::OrderTake {
                label: label_of(sending),
            },
            Told::SendTake(sending) => RingEvent::OrderSendTake {
                label: label_of(sending),
            },
            Told::Delivery(sending) => RingEvent::OrderDelivery {
                label: label_of(sending),
            },
            Told::Receive(at) => RingEvent::OrderReceive { at: at as u64 },
            Told::Sent(count) => RingEvent::OrderSent {
                count: count.into(),
            },
            Told::Spawn(child) => RingEvent::OrderSpawn {
                child: id_of(child),
            },
            Told::Notice { of, is_gone: false } => RingEvent::OrderTold { of: of_id(of) },
            Told::Notice { of, is_gone: true } => RingEvent::OrderToldGone { of: of_id(of) },
            Told::Ahead(at) => RingEvent::OrderAhead { at: at as u64 },
            Told::Timeout => RingEvent::OrderTimeout {},
            Told::Miss(module) => RingEvent::OrderMiss {
                module: self.atom(module),
            },
            Told::Load { module, misses } => RingEvent::OrderLoad {
                module: self.atom(module),
                misses,
            },
            Told::Exit => RingEvent::OrderExit {},
        }
    }
}

fn label_of(sending: Sending) -> Label {
    Label {
        from: (sending.from.0 & 0xffff_ffff) as u32,
        number: sending.number,
    }
}
