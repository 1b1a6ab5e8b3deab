//! Writes what a sampler tells into a recording.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use beamline_formats::name::outside;
use beamline_formats::profile::{Native, Origin};
use beamline_formats::ring::{
    self, Anchor, Clock, Description, Drain, Event, Group, Id, Name, NameId, Ring, RingOptions,
    Sampling, Segment, Settings, WhenFull, lock, monotonic_ns, part_of,
};
use beamline_reports::events::{Does, Looked, ThreadKind};
use beamline_sampler::emulator::{self, Thread};
use beamline_sampler::process::Pid;
use beamline_sampler::sampler::{How, Named, Told};
use beamline_sampler::stack::{self, Frame, Look};
use beamline_sampler::stops::Cost;
use beamline_settings::chance;

use crate::{origins, record};

/// Room for records that are on their way into the file, and eight times less for names.
const RING_BYTES: u64 = 64 << 20;

/// A recording of samples that is being made.
pub(crate) struct Recorder {
    ring: Arc<Ring>,
    part: PathBuf,
    drain: Drain,
    segments: Vec<Segment>,
    names: Names,
    /// How many samples there were.
    pub(crate) samples: u64,
}

fn anchor() -> Anchor {
    let ns = monotonic_ns();
    Anchor { ticks: ns, ns }
}

/// The id that recordings have for a process.
pub(crate) fn id(pid: Pid) -> Id {
    let (number, serial) = pid.numbers();
    Id::Process(serial << 28 | number)
}

impl Recorder {
    /// Begins a recording in a file.
    pub(crate) fn begin(
        file: &Path,
        emulator: &emulator::Emulator,
        command: Vec<String>,
        how: How,
        rate_hz: u64,
    ) -> Result<Recorder, ring::Error> {
        let threads = emulator.threads().unwrap_or_default();
        let schedulers = threads.iter();
        let schedulers = schedulers.filter(|of| of.kind == emulator::ThreadKind::Scheduler);
        let options = RingOptions {
            schedulers: u32::try_from(schedulers.count()).unwrap_or(1),
            ring_bytes: RING_BYTES,
            when_full: WhenFull::Overwrite,
            token: chance::token(),
            clock: Clock {
                counter: false,
                ns_per_4g: 1 << 32,
                anchor,
                unix_ns: chance::system_ns(),
            },
            description: description(emulator, command, how, rate_hz),
        };
        let held = lock(file)?;
        let part = part_of(file);
        let ring = Ring::create(&part, &options)?;
        let drain = Drain::begin(&part, file)?;
        drop(held);
        let segments = (0..ring.segments()).filter_map(|at| ring.segment(at));
        Ok(Recorder {
            segments: segments.collect(),
            names: Names::of(emulator),
            ring,
            part,
            drain,
            samples: 0,
        })
    }

    /// Writes what the sampler has seen.
    pub(crate) fn tell(&mut self, told: &Told<'_>) -> Result<(), ring::Error> {
        match told {
            Told::Thread(_) => {}
            Told::Process(named) => self.names.process(&self.ring, named),
            Told::Sample {
                time_ns,
                thread,
                look,
            } => {
                self.samples += 1;
                let stack = self.names.stack(&self.ring, look);
                let event = looked(thread, look).event(stack);
                let subject = look.pid().map_or(Id::None, id);
                self.segment(thread).write(*time_ns, subject, &event);
            }
            Told::Lost { thread, count } => {
                let event = Event::SamplesLost { count: *count };
                let now = monotonic_ns();
                self.segment(thread).write(now, Id::None, &event);
            }
            Told::Stopped(Cost { looks, ns }) => {
                let (looks, ns) = (*looks, *ns);
                let event = Event::ThreadsStopped { looks, ns };
                if let Some(segment) = self.segments.last_mut() {
                    segment.write(monotonic_ns(), Id::None, &event);
                }
            }
        }
        if self.samples.is_multiple_of(DRAIN_EACH) {
            self.drain.take()?;
        }
        Ok(())
    }

    /// The segment that a thread's records go to: that of its scheduler, or the one of all others.
    fn segment(&mut self, thread: &Thread) -> &mut Segment {
        let last = self.segments.len() - 1;
        let at = match thread.kind {
            emulator::ThreadKind::Scheduler => (thread.number as usize).saturating_sub(1).min(last),
            _ => last,
        };
        &mut self.segments[at]
    }

    /// Ends the recording.
    pub(crate) fn finish(self) -> Result<u64, ring::Error> {
        self.ring.end();
        drop(self.segments);
        self.drain.finish()?;
        fs::remove_file(&self.part)?;
        Ok(self.samples)
    }
}

/// Samples after which the records are moved into the file.
const DRAIN_EACH: u64 = 64;

/// What to call an emulator: its name, if it has one, and the number of its process.
fn title_of(emulator: &emulator::Emulator) -> String {
    let process = format!("process {}", emulator.pid);
    match &emulator.name {
        Some(name) => format!("{name} ({process})"),
        None => process,
    }
}

fn description(
    emulator: &emulator::Emulator,
    command: Vec<String>,
    how: How,
    rate_hz: u64,
) -> Description {
    Description {
        beamline: env!("CARGO_PKG_VERSION").to_owned(),
        otp: emulator.version(),
        command,
        emulator: emulator.command.clone(),
        host: record::host(),
        deterministic: false,
        settings: Settings {
            events: vec![Group::Samples.name().to_owned()],
            sampling: Some(Sampling {
                rate_hz,
                means: how.means().to_owned(),
                of_running: true,
                emulator: title_of(emulator),
            }),
            ..Settings::default()
        },
    }
}

fn looked(thread: &Thread, look: &Look) -> Looked {
    Looked {
        does: match look.does {
            stack::Does::Erlang => Does::Erlang,
            stack::Does::Native => Does::Native,
            stack::Does::Collection => Does::Collection,
            stack::Does::Runtime => Does::Runtime,
        },
        kind: match thread.kind {
            emulator::ThreadKind::Scheduler => ThreadKind::Scheduler,
            emulator::ThreadKind::DirtyCpu => ThreadKind::DirtyCpu,
            emulator::ThreadKind::DirtyIo => ThreadKind::DirtyIo,
            emulator::ThreadKind::Other => ThreadKind::Other,
        },
        number: match thread.kind {
            emulator::ThreadKind::Other => u64::from(thread.tid),
            _ => u64::from(thread.number),
        },
    }
}

/// The names that a recording has already.
struct Names {
    origins: origins::Origins,
    atoms: HashMap<String, NameId>,
    functions: HashMap<(String, String, u8), NameId>,
    modules: HashSet<NameId>,
    natives: HashSet<NameId>,
    stacks: HashMap<ring::Frame, NameId>,
}

/// What stands in a stack where it was cut: what is below is not known.
const CUT: &str = "stack was cut";

impl Names {
    fn of(emulator: &emulator::Emulator) -> Names {
        Names::with(origins::Origins::of(emulator))
    }

    fn with(origins: origins::Origins) -> Names {
        Names {
            origins,
            atoms: HashMap::new(),
            functions: HashMap::new(),
            modules: HashSet::new(),
            natives: HashSet::new(),
            stacks: HashMap::new(),
        }
    }

    fn atom(&mut self, ring: &Ring, text: &str) -> NameId {
        if let Some(known) = self.atoms.get(text) {
            return *known;
        }
        let name = ring.name(Name::Atom(text));
        self.atoms.insert(text.to_owned(), name);
        name
    }

    fn function(&mut self, ring: &Ring, module: &str, name: &str, arity: u8) -> NameId {
        let key = (module.to_owned(), name.to_owned(), arity);
        if let Some(known) = self.functions.get(&key) {
            return *known;
        }
        let atoms = [self.atom(ring, module), self.atom(ring, name)];
        let origin = self.origins.origin(module);
        // A process may have had the module's name before.
        if self.modules.insert(atoms[0]) && origin != Origin::App {
            let name = atoms[0];
            ring.name(Name::Module { name, origin });
        }
        let [module, name] = atoms;
        let function = ring.name(Name::Function {
            module,
            name,
            arity,
        });
        self.functions.insert(key, function);
        function
    }

    /// The function of a frame, and the line.
    fn frame(&mut self, ring: &Ring, frame: &Frame) -> (NameId, u32) {
        match frame {
            Frame::Erlang {
                module,
                name,
                arity,
                line,
                is_native,
            } => {
                let function = self.function(ring, module, name, *arity);
                if *is_native && self.natives.insert(function) {
                    let native = Native::Ordinary;
                    ring.name(Name::Native { function, native });
                }
                (function, *line)
            }
            Frame::Outside { library, name } => {
                (self.function(ring, &outside(library), name, 0), 0)
            }
            Frame::Cut => (self.function(ring, &outside("runtime"), CUT, 0), 0),
        }
    }

    /// The name of a look's stack.
    fn stack(&mut self, ring: &Ring, look: &Look) -> NameId {
        let mut below = NameId::NONE;
        let mut last = None;
        for frame in look.frames.iter().rev() {
            let (function, line) = self.frame(ring, frame);
            // Recursion folds in every report, and deep stacks would fill the file.
            if last == Some(function) {
                continue;
            }
            last = Some(function);
            let frame = ring::Frame {
                below,
                function,
                line,
            };
            below = match self.stacks.get(&frame) {
                Some(known) => *known,
                None => {
                    let name = ring.name(Name::Stack(frame));
                    self.stacks.insert(frame, name);
                    name
                }
            };
        }
        below
    }

    fn process(&mut self, ring: &Ring, named: &Named) {
        let id = id(named.pid);
        if let Some((module, name, arity)) = &named.initial {
            let function = self.function(ring, module, name, *arity);
            let parent = Id::None;
            ring.name(Name::Process {
                id,
                parent,
                function,
            });
        }
        if let Some(name) = &named.registered {
            let name = self.atom(ring, name);
            ring.name(Name::Registered { id, name });
        }
    }
}

#[cfg(test)]
mod tests {
    use beamline_formats::ring::Recording;

    use super::*;

    #[test]
    fn a_module_whose_name_a_process_has_is_known_by_its_origin() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("names.ring");
        let options = RingOptions {
            schedulers: 1,
            ring_bytes: 1 << 16,
            when_full: WhenFull::Stop,
            token: 1,
            clock: Clock {
                counter: false,
                ns_per_4g: 1 << 32,
                anchor,
                unix_ns: 0,
            },
            description: Description::default(),
        };
        let ring = Ring::create(&path, &options).expect("a ring");
        let mut names = Names::with(origins::Origins::default());
        // As the name of a registered process is.
        names.atom(&ring, "erl_prim_loader");
        for module in ["erl_prim_loader", "zlib", "mine"] {
            names.function(&ring, module, "loop", 3);
        }
        ring.end();
        let recording = Recording::open(&path).expect("it is read");
        for (module, origin) in [
            ("erl_prim_loader", Origin::Otp),
            ("zlib", Origin::Otp),
            ("mine", Origin::App),
        ] {
            assert_eq!(recording.names().origin(module), origin, "{module}");
        }
    }
}
