//! Small recordings for tests, each written as a list of events.

use std::collections::HashMap;
use std::path::PathBuf;

use beamline_formats::profile::Native;
use beamline_formats::ring::{
    Anchor, Clock, Description, Event, Frame, Group, Id, Name, NameId, Recording, Ring,
    RingOptions, Sampling, Settings, WhenFull,
};
use tempfile::TempDir;

use crate::events::{Does, Looked, ThreadKind};

/// A recording in a folder of its own, which is removed with this value.
pub(crate) struct Sample {
    pub(crate) path: PathBuf,
    /// The folder is removed when this is dropped.
    _folder: TempDir,
    ring: std::sync::Arc<Ring>,
    writers: Vec<beamline_formats::ring::Segment>,
    atoms: HashMap<String, NameId>,
    functions: HashMap<String, NameId>,
}

/// A process.
pub(crate) fn process(number: u64) -> Id {
    Id::Process(number)
}

impl Sample {
    /// Of these events; ticks are nanoseconds.
    pub(crate) fn new(events: &[Group]) -> Sample {
        Sample::of(Settings {
            events: events.iter().map(|group| group.name().to_owned()).collect(),
            ..Settings::default()
        })
    }

    /// Of looks at an emulator.
    pub(crate) fn sampled(sampling: Sampling) -> Sample {
        Sample::of(Settings {
            events: vec![Group::Samples.name().to_owned()],
            sampling: Some(sampling),
            ..Settings::default()
        })
    }

    fn of(settings: Settings) -> Sample {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("sample.ring");
        let options = RingOptions {
            schedulers: 2,
            ring_bytes: 1 << 19,
            when_full: WhenFull::Stop,
            token: 1,
            clock: Clock {
                counter: false,
                ns_per_4g: 1 << 32,
                anchor: Anchor::default,
                unix_ns: 1_700_000_000_000_000_000,
            },
            description: Description {
                otp: "29.1".into(),
                command: vec!["erl".into(), "<&>".into()],
                settings,
                ..Description::default()
            },
        };
        let ring = Ring::create(&path, &options).expect("the ring is made");
        let writers = (0..2).map(|at| ring.segment(at).expect("free")).collect();
        Sample {
            path,
            _folder: folder,
            ring,
            writers,
            atoms: HashMap::new(),
            functions: HashMap::new(),
        }
    }

    pub(crate) fn atom(&mut self, text: &str) -> NameId {
        if let Some(known) = self.atoms.get(text) {
            return *known;
        }
        let name = self.ring.name(Name::Atom(text));
        self.atoms.insert(text.to_owned(), name);
        name
    }

    /// Any name.
    pub(crate) fn name(&mut self, name: Name<'_>) -> NameId {
        self.ring.name(name)
    }

    /// A label of sequential tracing.
    pub(crate) fn label(&mut self, text: &str) -> NameId {
        self.ring.name(Name::Label(text))
    }

    /// The function `m:NAME/1`.
    pub(crate) fn function(&mut self, name: &str) -> NameId {
        if let Some(known) = self.functions.get(name) {
            return *known;
        }
        let (module, atom) = (self.atom("m"), self.atom(name));
        let function = self.ring.name(Name::Function {
            module,
            name: atom,
            arity: 1,
        });
        self.functions.insert(name.to_owned(), function);
        function
    }

    /// `m:NAME/1` is native code from now on.
    pub(crate) fn native(&mut self, name: &str, native: Native) {
        let function = self.function(name);
        self.ring.name(Name::Native { function, native });
    }

    /// Has a process started in `m:NAME/1`, and registered if it has a name.
    pub(crate) fn start(&mut self, id: Id, name: &str, registered: Option<&str>) {
        let function = self.function(name);
        self.ring.name(Name::Process {
            id,
            parent: Id::None,
            function,
        });
        if let Some(name) = registered.map(|name| self.atom(name)) {
            self.ring.name(Name::Registered { id, name });
        }
    }

    pub(crate) fn write(&mut self, at_ns: u64, id: Id, event: Event<'_>) {
        self.write_on(0, at_ns, id, event);
    }

    pub(crate) fn write_on(&mut self, segment: usize, at_ns: u64, id: Id, event: Event<'_>) {
        assert!(
            self.writers[segment].write(at_ns, id, &event),
            "there is room"
        );
    }

    pub(crate) fn call(&mut self, at_ns: u64, id: Id, name: &str) {
        let function = self.function(name);
        self.write(at_ns, id, Event::Call { function });
    }

    pub(crate) fn back(&mut self, at_ns: u64, id: Id) {
        let function = NameId::NONE;
        self.write(at_ns, id, Event::Return { function });
    }

    /// Words in all.
    pub(crate) fn words(&mut self, at_ns: u64, id: Id, total: u64) {
        self.write(at_ns, id, Event::Words { total });
    }

    /// Reductions in all.
    pub(crate) fn reductions(&mut self, at_ns: u64, id: Id, total: u64) {
        self.write(at_ns, id, Event::Reductions { total });
    }

    pub(crate) fn slice_begins(&mut self, at_ns: u64, id: Id) {
        let function = NameId::NONE;
        self.write(at_ns, id, Event::In { function });
    }

    pub(crate) fn slice_ends(&mut self, at_ns: u64, id: Id, reductions: u64) {
        let event = Event::Out {
            function: NameId::NONE,
            messages: 0,
            reductions,
        };
        self.write(at_ns, id, event);
    }

    /// As it is now.
    pub(crate) fn open(&self) -> Recording {
        Recording::open(&self.path).expect("it is read")
    }
}

/// One time slice of each of two processes: one calls and sends, the other collects and answers. In each, `main` and
/// `fib` have 50 words and reductions; `loop` has 7 words and 70 reductions, except before its first record and after
/// its last.
fn round(sample: &mut Sample, at: u64, round: u64) {
    let (a, b) = (process(9), process(10));
    let (again, name) = (sample.function("loop"), sample.atom("boss"));
    sample.words(at, a, 100 * round + 10);
    sample.reductions(at, a, 100 * round + 20);
    sample.call(at, a, "fib");
    sample.words(at + 100, a, 100 * round + 15);
    sample.call(at + 100, a, "fib");
    sample.back(at + 100 * (round + 2), a);
    sample.words(at + 2_000, a, 100 * round + 60);
    sample.reductions(at + 2_000, a, 100 * round + 70);
    sample.back(at + 2_000, a);
    let (to, text) = (b, "{go,1}");
    sample.write(at + 2_100, a, Event::Send { to, text });
    sample.slice_ends(at + 2_500, a, 100 * (round + 1));
    sample.write(at + 2_600, b, Event::Receive { text });
    sample.slice_begins(at + 3_000, b);
    sample.words(at + 3_100, b, 7 * round);
    sample.call(at + 3_100, b, "loop");
    let (need, used) = (10, 500);
    sample.write(at + 3_200, b, Event::GcMinorStart { need, used });
    let (reclaimed, used) = (400, 100);
    sample.write(at + 3_900, b, Event::GcMinorEnd { reclaimed, used });
    let (to, text) = (Id::Name(name), "ok;\"é\"");
    sample.write(at + 4_000, b, Event::Send { to, text });
    sample.words(at + 4_100, b, 7 * round + 3);
    sample.write(at + 4_100, b, Event::TailCall { function: again });
    sample.slice_ends(at + 4_500, b, 70 * (round + 1));
    sample.write(at + 4_600, a, Event::Receive { text });
    sample.slice_begins(at + 5_000, a);
}

/// Two processes that call, wait, collect, send and receive: every kind of thing that reports are made of.
pub(crate) fn varied() -> Sample {
    let mut sample = Sample::new(&[
        Group::Calls,
        Group::Returns,
        Group::Words,
        Group::Reductions,
        Group::Messages,
        Group::Processes,
        Group::Scheduling,
        Group::Gc,
        Group::System,
    ]);
    let (a, b) = (process(9), process(10));
    sample.start(a, "main", Some("boss"));
    sample.start(b, "server", None);
    let function = sample.function("main");
    sample.slice_begins(100, a);
    sample.words(1_000, a, 0);
    sample.reductions(1_000, a, 0);
    sample.call(1_000, a, "main");
    sample.write(1_500, a, Event::Spawn { child: b, function });
    let parent = a;
    sample.write(1_600, b, Event::Spawned { parent, function });
    for number in 0..10 {
        round(&mut sample, 10_000 * (number + 1), number);
    }
    sample.write(200_000, b, Event::LongGc { ms: 12 });
    sample.words(201_000, a, 1_000);
    sample.back(201_000, a);
    sample.write(202_000, a, Event::Exit { text: "normal" });
    sample.write(202_500, a, Event::OutExited {});
    sample
}

/// A recording in which `f` was seen `own` times by itself and `g`, called by it, `callee` times.
pub(crate) fn seen(own: u64, callee: u64) -> Sample {
    let sampling = Sampling {
        rate_hz: 200,
        means: "test".into(),
        of_running: true,
        emulator: "one (process 7)".into(),
    };
    let mut sample = Sample::sampled(sampling);
    let mut stack = |below, name| {
        let function = sample.function(name);
        let line = 7;
        sample.name(Name::Stack(Frame {
            below,
            function,
            line,
        }))
    };
    let f = stack(NameId::NONE, "f");
    let g = stack(f, "g");
    let looked = Looked {
        does: Does::Erlang,
        kind: ThreadKind::Scheduler,
        number: 2,
    };
    for at in 0..own + callee {
        let stack = if at < own { f } else { g };
        sample.write(at, process(9), looked.event(stack));
    }
    sample.write(own + callee, Id::None, Event::SamplesLost { count: 3 });
    sample
}
