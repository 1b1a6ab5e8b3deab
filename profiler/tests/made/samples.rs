//! A recording of samples: a scheduler that runs two processes, collects and schedules, and one that is idle half of the time.

use std::path::Path;

use beamline_formats::ring::{Event, Frame, Group, Id, Name, NameId, Sampling, Settings};
use beamline_reports::events::{Does, Looked, ThreadKind};

use crate::made::{EVIL, Recorded};

/// A hundred samples, one each 5 ms: in the first half of the time `server` runs, in the second half `main` too.
pub(crate) fn record_samples(path: &Path) {
    let sampling = Sampling {
        rate_hz: 200,
        means: "made for a test".into(),
        of_running: true,
        emulator: String::new(),
    };
    let settings = Settings {
        events: vec![Group::Samples.name().to_owned()],
        sampling: Some(sampling),
        ..Settings::default()
    };
    let mut to = Recorded::of(path, 1 << 20, settings);
    let stack = |to: &Recorded, below, name| {
        let function = to.function(name);
        let line = 0;
        to.ring.name(Name::Stack(Frame {
            below,
            function,
            line,
        }))
    };
    let main = stack(&to, NameId::NONE, "main");
    let fib = stack(&to, main, "fib");
    let server = stack(&to, NameId::NONE, EVIL);
    let runtime = stack(&to, NameId::NONE, "schedules");
    let looked = |does, number| Looked {
        does,
        kind: ThreadKind::Scheduler,
        number,
    };
    for round in 0..50 {
        let at = 10_000_000 * round;
        let (who, stack, does) = match round % 10 {
            9 => (Id::None, runtime, Does::Runtime),
            8 => (Id::Process(10), server, Does::Collection),
            _ => (Id::Process(10), server, Does::Native),
        };
        to.write(at, who, looked(does, 1).event(stack));
        let (who, stack, number) = match round {
            0..25 => (Id::Process(10), server, 1),
            _ => (Id::Process(9), if round % 2 == 0 { fib } else { main }, 2),
        };
        to.write(
            at + 5_000_000,
            who,
            looked(Does::Erlang, number).event(stack),
        );
    }
    to.write(500_000_000, Id::None, Event::SamplesLost { count: 3 });
    to.ring.end();
}
