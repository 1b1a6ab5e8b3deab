//! Moves records from the rings of a running command into streams.

use std::collections::HashMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use beamline_formats::ring::{Drain, Error, Request, Took, lock, numbered};

use crate::report;

/// How long the thread sleeps when no ring had much.
const PAUSE: Duration = Duration::from_millis(2);

/// The thread that moves the records.
pub(crate) struct Drains {
    has_ended: Arc<AtomicBool>,
    thread: JoinHandle<Vec<PathBuf>>,
}

impl Drains {
    /// Starts the thread. It drains every ring of `request` as soon as the ring exists, into the file that the ring lies
    /// beside.
    pub(crate) fn start(request: &Request) -> Drains {
        let has_ended = Arc::new(AtomicBool::new(false));
        let mut work = Work {
            request: request.clone(),
            left: 0,
            drains: HashMap::new(),
            held: Vec::new(),
            written: Vec::new(),
        };
        let ended = has_ended.clone();
        let thread = thread::spawn(move || {
            while !ended.load(Ordering::Acquire) {
                if work.take() < Took::Much {
                    thread::sleep(PAUSE);
                }
            }
            work.finish()
        });
        Drains { has_ended, thread }
    }

    /// Drains the rings once more after the command's end, and returns the streams.
    pub(crate) fn finish(self) -> Vec<PathBuf> {
        self.has_ended.store(true, Ordering::Release);
        // The panic hook has printed a panic of the thread.
        self.thread.join().unwrap_or_default()
    }
}

/// Rounds between looks for new rings, when there is one: a look reads the whole folder.
const ROUNDS: u32 = 16;

struct Work {
    request: Request,
    /// Rounds until it looks for new rings.
    left: u32,
    /// The stream of each ring; none after an error.
    drains: HashMap<PathBuf, (PathBuf, Option<Drain>)>,
    /// The locks of further streams. The command has that of the first.
    held: Vec<File>,
    written: Vec<PathBuf>,
}

impl Work {
    /// The most that was taken of a ring.
    fn take(&mut self) -> Took {
        match self.left.checked_sub(1) {
            Some(left) => self.left = left,
            None => self.look(),
        }
        let mut most = Took::Nothing;
        for (stream, drain) in self.drains.values_mut() {
            match drain.as_mut().map(Drain::take) {
                Some(Ok(took)) => most = most.max(took),
                Some(Err(error)) => {
                    say(stream, &error);
                    *drain = None;
                }
                None => {}
            }
        }
        most
    }

    /// Begins to drain the rings that are new.
    fn look(&mut self) {
        let Ok(rings) = self.request.rings() else {
            return;
        };
        for (number, ring) in rings {
            if self.drains.contains_key(&ring) {
                continue;
            }
            let stream = numbered(&self.request.file, number);
            let drain = self.begin(&ring, &stream, number == 1);
            match &drain {
                Ok(_) => self.written.push(stream.clone()),
                Err(error) => say(&stream, error),
            }
            self.drains.insert(ring, (stream, drain.ok()));
        }
        self.left = if self.drains.is_empty() { 0 } else { ROUNDS };
    }

    fn begin(&mut self, ring: &Path, stream: &Path, is_first: bool) -> Result<Drain, Error> {
        if !is_first {
            self.held.push(lock(stream)?);
        }
        Drain::begin(ring, stream)
    }

    fn finish(mut self) -> Vec<PathBuf> {
        self.look();
        for (ring, (stream, drain)) in self.drains {
            match drain.map(Drain::finish) {
                Some(Ok(())) => {
                    // The stream has all records of the ring. If the ring cannot be removed, it stays.
                    let _ = fs::remove_file(&ring);
                }
                Some(Err(error)) => say(&stream, &error),
                None => {}
            }
        }
        self.written
    }
}

fn say(file: &Path, error: &Error) {
    report::error(&format!(
        "{file}: {error}; what the recording lacks from here on is in {file}.part, as far as there was room",
        file = file.display()
    ));
}
