//! The flight recorder. It watches the rings of a running command, and keeps their newest records when an event of
//! `--dump-on` happens.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use beamline_formats::ring::{
    Dump, Error, Request, Trigger, Watch, Why, Window, monotonic_ns, numbered,
};
use signal_hook::SigId;
use signal_hook::consts::SIGUSR1;

use crate::{ending, report};

/// How long the thread sleeps between two looks at the rings.
const PAUSE: Duration = Duration::from_millis(2);

/// An event that `--dump-on` names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DumpOn {
    /// An event in an emulator.
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

/// How much time a dump covers, and how many dumps there may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) window: Window,
    pub(crate) dumps: usize,
}

/// The thread that watches the rings.
pub(crate) struct Flight {
    has_ended: Arc<AtomicBool>,
    thread: JoinHandle<usize>,
    signal: Option<SigId>,
}

impl Flight {
    /// Starts the thread. It watches every ring of `request` as soon as the ring exists. The first dump goes to the file
    /// of `request`, and each later one, of whichever ring, to a numbered file that was not there before.
    ///
    /// # Errors
    /// When the handler of the signal cannot be installed.
    pub(crate) fn start(
        request: &Request,
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
            limits,
            rings: HashMap::new(),
            unusable: HashSet::new(),
            number: 0,
            written: 0,
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

    /// Ends the thread after the command's end, and returns the number of dumps.
    pub(crate) fn finish(self) -> usize {
        self.has_ended.store(true, Ordering::Release);
        // The panic hook has printed a panic of the thread.
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
    /// The count of events at the last look.
    seen: u64,
    /// The dump that is being written, and its file.
    dump: Option<(Dump, PathBuf)>,
    dumps: usize,
    /// Events after the last dump that `--dumps` allows.
    missed: u64,
    /// A dump failed, so the ring stays.
    failed: bool,
}

struct Work {
    request: Request,
    limits: Limits,
    rings: HashMap<PathBuf, Watched>,
    unusable: HashSet<PathBuf>,
    /// The number of the newest dump's file.
    number: u32,
    /// How many dumps are whole.
    written: usize,
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
                // An event during a dump is part of that dump.
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
        let Ok(rings) = self.request.rings() else {
            return;
        };
        for (_, ring) in rings {
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
        let output = self.next_output();
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
            Ok(()) => {
                self.written += 1;
                ending::tell(&output);
            }
            Err(error) => fail(watched, &output, &error),
        }
    }

    fn next_output(&mut self) -> PathBuf {
        loop {
            self.number += 1;
            let output = numbered(&self.request.file, self.number);
            if self.number == 1 || !output.exists() {
                return output;
            }
        }
    }

    /// Ends the dumps that are being written. An emulator that has not ended its recording was killed, so its last
    /// records are kept too.
    fn finish(mut self) -> usize {
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
                    "{ring}: {missed} more events happened after {most} recordings were kept; raise --dumps to \
                     keep more"
                ));
            }
            if !watched.failed {
                // The dumps have all that was to be kept. If the ring cannot be removed, it stays.
                let _ = fs::remove_file(&ring);
            }
        }
        self.written
    }
}

fn say(file: &Path, error: &Error) {
    report::error(&format!("{}: {error}", file.display()));
}

/// Removes a dump that could not be written whole: the ring still has the newest records.
fn fail(watched: &mut Watched, output: &Path, error: &Error) {
    watched.failed = true;
    let _ = fs::remove_file(output);
    report::error(&format!(
        "{}: {error}; the ring stays instead after the program's end",
        output.display()
    ));
}
