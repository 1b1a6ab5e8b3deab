//! The flight recorder: the rings of a running command are watched, and what they hold is kept when something happens
//! that is waited for.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use beamline_formats::ring::{Dump, Error, Request, Trigger, Watch, Why, Window, monotonic_ns};
use signal_hook::SigId;
use signal_hook::consts::SIGUSR1;

use crate::report;

/// So long nothing is looked for.
const PAUSE: Duration = Duration::from_millis(2);

/// What is waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DumpOn {
    /// Something in an emulator.
    Event(Trigger),
    /// A signal to this process.
    Signal,
}

impl std::str::FromStr for DumpOn {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "SIGUSR1" => Ok(DumpOn::Signal),
            event => match event.parse() {
                Ok(trigger) => Ok(DumpOn::Event(trigger)),
                Err(error) => Err(format!("{error}, SIGUSR1")),
            },
        }
    }
}

/// How much is kept, and how often.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) window: Window,
    pub(crate) dumps: usize,
}

/// A thread that watches.
pub(crate) struct Flight {
    has_ended: Arc<AtomicBool>,
    thread: JoinHandle<Vec<PathBuf>>,
    signal: Option<SigId>,
}

impl Flight {
    /// Watches all rings of `request`, from when they are there. What is kept first of the first goes to `output`; of
    /// others to files of this name with what their ring has behind it, and a number from the second time on.
    ///
    /// # Errors
    /// When the signal cannot be waited for.
    pub(crate) fn start(
        request: &Request,
        output: &Path,
        limits: Limits,
        on_signal: bool,
    ) -> Result<Flight, String> {
        let signalled = Arc::new(AtomicBool::new(false));
        let signal = on_signal
            .then(|| signal_hook::flag::register(SIGUSR1, signalled.clone()))
            .transpose()
            .map_err(|error| format!("SIGUSR1: {error}"))?;
        let has_ended = Arc::new(AtomicBool::new(false));
        let mut work = Work {
            request: request.clone(),
            output: output.to_owned(),
            limits,
            rings: HashMap::new(),
            unusable: HashSet::new(),
            written: Vec::new(),
        };
        let ended = has_ended.clone();
        let thread = thread::spawn(move || {
            while !ended.load(Ordering::Acquire) {
                work.look(signalled.swap(false, Ordering::AcqRel));
                thread::sleep(PAUSE);
            }
            work.look(signalled.swap(false, Ordering::AcqRel));
            work.finish()
        });
        Ok(Flight {
            has_ended,
            thread,
            signal,
        })
    }

    /// What was kept, when the command has ended.
    pub(crate) fn finish(self) -> Vec<PathBuf> {
        self.has_ended.store(true, Ordering::Release);
        // A panic of the thread has been told already.
        let written = self.thread.join().unwrap_or_default();
        if let Some(signal) = self.signal {
            signal_hook::low_level::unregister(signal);
        }
        written
    }
}

/// A ring that is watched.
struct Watched {
    watch: Watch,
    /// How often something had happened in it when that was looked at.
    seen: u64,
    /// What is being kept, and where.
    dump: Option<(Dump, PathBuf)>,
    dumps: usize,
    /// What was not kept, since enough was.
    missed: u64,
    /// What was to be kept could not be: the ring stays.
    failed: bool,
}

struct Work {
    request: Request,
    output: PathBuf,
    limits: Limits,
    rings: HashMap<PathBuf, Watched>,
    unusable: HashSet<PathBuf>,
    written: Vec<PathBuf>,
}

impl Work {
    fn look(&mut self, signalled: bool) {
        self.find();
        let mut rings = std::mem::take(&mut self.rings);
        for (ring, watched) in &mut rings {
            let before = watched.seen;
            match watched.watch.count() {
                Ok(count) => watched.seen = count,
                Err(error) => say(ring, &error.into()),
            }
            if watched.dump.is_some() {
                // What happens meanwhile is part of it.
                self.go_on(watched);
            } else if watched.seen > before {
                let last = watched.watch.last();
                let (why, at_ns) = last.ok().flatten().unwrap_or((Why::Signal, monotonic_ns()));
                self.begin(ring, watched, why, at_ns);
            } else if signalled {
                self.begin(ring, watched, Why::Signal, monotonic_ns());
            }
        }
        self.rings = rings;
    }

    /// Watches the rings that are new.
    fn find(&mut self) {
        let Ok(rings) = self.request.files() else {
            return;
        };
        for ring in rings {
            if self.rings.contains_key(&ring) || self.unusable.contains(&ring) {
                continue;
            }
            match Watch::new(&ring) {
                Ok(watch) => {
                    let watched = Watched {
                        watch,
                        seen: 0,
                        dump: None,
                        dumps: 0,
                        missed: 0,
                        failed: false,
                    };
                    self.rings.insert(ring, watched);
                }
                Err(error) => {
                    say(&ring, &error);
                    self.unusable.insert(ring);
                }
            }
        }
    }

    fn begin(&mut self, ring: &Path, watched: &mut Watched, why: Why, at_ns: u64) {
        if watched.dumps == self.limits.dumps {
            watched.missed += 1;
            return;
        }
        watched.dumps += 1;
        let output = self.output_of(ring, watched.dumps);
        match Dump::begin(ring, &output, why, at_ns, self.limits.window) {
            Ok(dump) => watched.dump = Some((dump, output)),
            Err(error) => fail(watched, &output, &error),
        }
    }

    fn go_on(&mut self, watched: &mut Watched) {
        let Some((mut dump, output)) = watched.dump.take() else {
            return;
        };
        match dump.take() {
            Ok(true) => watched.dump = Some((dump, output)),
            Ok(false) => self.end(watched, dump, output),
            Err(error) => fail(watched, &output, &error),
        }
    }

    fn end(&mut self, watched: &mut Watched, dump: Dump, output: PathBuf) {
        match dump.finish() {
            Ok(()) => self.written.push(output),
            Err(error) => fail(watched, &output, &error),
        }
    }

    fn output_of(&self, ring: &Path, number: usize) -> PathBuf {
        let part = self.request.file.as_os_str().len();
        let ring = ring.as_os_str().to_string_lossy();
        let mut name = self.output.as_os_str().to_owned();
        name.push(ring.get(part..).unwrap_or_default());
        if number > 1 {
            name.push(format!("-{number}"));
        }
        PathBuf::from(name)
    }

    /// Ends what is being kept; an emulator that has not ended its recording was killed, and what it did last is
    /// kept.
    fn finish(mut self) -> Vec<PathBuf> {
        let mut rings: Vec<_> = std::mem::take(&mut self.rings).into_iter().collect();
        rings.sort_by(|a, b| a.0.cmp(&b.0));
        for (ring, mut watched) in rings {
            if watched.dump.is_none() && watched.watch.has_ended().is_ok_and(|ended| !ended) {
                self.begin(&ring, &mut watched, Why::Killed, monotonic_ns());
            }
            if let Some((dump, output)) = watched.dump.take() {
                self.end(&mut watched, dump, output);
            }
            if watched.missed > 0 {
                let (missed, most) = (watched.missed, self.limits.dumps);
                let ring = ring.display();
                report::error(&format!(
                    "{ring}: {missed} times more something happened after {most} recordings were kept: \
                     --dumps allows more"
                ));
            }
            if !watched.failed {
                // What was to be kept of it is kept; if it cannot be removed, it stays.
                let _ = fs::remove_file(&ring);
            }
        }
        self.written.sort();
        self.written
    }
}

fn say(file: &Path, error: &Error) {
    report::error(&format!("{}: {error}", file.display()));
}

/// What could not be written whole is removed: the ring has the newest still.
fn fail(watched: &mut Watched, output: &Path, error: &Error) {
    watched.failed = true;
    let _ = fs::remove_file(output);
    report::error(&format!(
        "{}: {error}; the ring is kept instead when the program has ended",
        output.display()
    ));
}
