//! Recordings that are made for tests, without a program that is recorded.

use std::path::Path;

use beamline_formats::ring::{
    Anchor, Clock, Description, Event, Group, Id, Name, NameId, Ring, RingOptions, Segment,
    Settings, WhenFull,
};

/// A name that would end the script of a page, if it were taken for HTML.
pub(crate) const EVIL: &str = "</script><b>";

/// A recording that is made event by event.
pub(crate) struct Recorded {
    pub(crate) ring: std::sync::Arc<Ring>,
    segment: Segment,
    module: NameId,
}

const A: Id = Id::Process(9);
const B: Id = Id::Process(10);

impl Recorded {
    pub(crate) fn new(path: &Path, ring_bytes: u64) -> Recorded {
        let events = Group::ALL.iter().map(|group| group.name().to_owned());
        let settings = Settings {
            events: events.collect(),
            ..Settings::default()
        };
        Recorded::of(path, ring_bytes, settings)
    }

    pub(crate) fn of(path: &Path, ring_bytes: u64, settings: Settings) -> Recorded {
        let options = RingOptions {
            schedulers: 1,
            ring_bytes,
            when_full: WhenFull::Stop,
            token: 1,
            clock: Clock {
                counter: false,
                ns_per_4g: 1 << 32,
                anchor: Anchor::default,
                unix_ns: 1_700_000_000_000_000_000,
            },
            description: Description {
                otp: "29".into(),
                command: vec!["erl".into(), EVIL.into()],
                settings,
                ..Description::default()
            },
        };
        let ring = Ring::create(path, &options).expect("a ring");
        let segment = ring.segment(0).expect("it is free");
        let module = ring.name(Name::Atom("m"));
        Recorded {
            ring,
            segment,
            module,
        }
    }

    pub(crate) fn function(&self, name: &str) -> NameId {
        let (module, name, arity) = (self.module, self.ring.name(Name::Atom(name)), 1);
        self.ring.name(Name::Function {
            module,
            name,
            arity,
        })
    }

    pub(crate) fn write(&mut self, at_ns: u64, id: Id, event: Event<'_>) {
        assert!(self.segment.write(at_ns, id, &event), "there is room");
    }
}

/// A recording of `rounds` rounds, of which each has a time slice, a collection and two messages.
pub(crate) fn record(path: &Path, rounds: u64) {
    let mut to = Recorded::new(path, (1400 * rounds).max(1 << 20));
    let [main, fib, evil] = ["main", "fib", EVIL].map(|name| to.function(name));
    for (id, function) in [(A, main), (B, evil)] {
        let parent = Id::None;
        to.ring.name(Name::Process {
            id,
            parent,
            function,
        });
    }
    to.write(50, A, Event::In { function: main });
    to.write(100, A, Event::Call { function: main });
    for round in 0..rounds {
        let at = 1_000 + 10_000 * round;
        to.write(at, A, Event::Call { function: fib });
        to.write(at + 1_000, A, Event::Call { function: evil });
        to.write(at + 1_500, A, Event::Return { function: evil });
        to.write(at + 2_000, A, Event::Return { function: fib });
        let text = if round == 3 { EVIL } else { "go" };
        to.write(at + 2_100, A, Event::Send { to: B, text });
        to.write(at + 2_200, B, Event::Receive { text });
        to.write(
            at + 2_300,
            A,
            Event::Send {
                to: B,
                text: "again",
            },
        );
        to.write(at + 2_400, B, Event::Receive { text: "again" });
        let (need, used, reclaimed) = (1, 2, 3);
        to.write(at + 3_000, A, Event::GcMinorStart { need, used });
        to.write(at + 4_000, A, Event::GcMinorEnd { reclaimed, used });
        let (function, messages, reductions) = (main, 0, round);
        let out = Event::Out {
            function,
            messages,
            reductions,
        };
        to.write(at + 5_000, A, out);
        to.write(at + 6_000, A, Event::In { function: main });
    }
    to.write(10_000 * rounds + 2_000, A, Event::LongGc { ms: 12 });
    to.ring.end();
}
