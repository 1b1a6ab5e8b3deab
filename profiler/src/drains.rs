//! Moves records from the rings of a running command into streams.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use beamline_formats::ring::{Drain, Error, Request};

use crate::report;

/// How long the thread sleeps when no ring had a full block.
const PAUSE: Duration = Duration::from_millis(2);

/// The thread that moves the records.
pub(crate) struct Drains {
    has_ended: Arc<AtomicBool>,
    thread: JoinHandle<Vec<PathBuf>>,
}

impl Drains {
    /// Starts the thread. It drains every ring of `request` as soon as the ring exists. The first ring's stream goes to
    /// `output`; another ring's goes to a file of this name with the suffix of its ring.
    pub(crate) fn start(request: &Request, output: &Path) -> Drains {
        let has_ended = Arc::new(AtomicBool::new(false));
        let mut work = Work {
            request: request.clone(),
            output: output.to_owned(),
            drains: HashMap::new(),
            written: Vec::new(),
        };
        let ended = has_ended.clone();
        let thread = thread::spawn(move || {
            while !ended.load(Ordering::Acquire) {
                if !work.take() {
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

struct Work {
    request: Request,
    output: PathBuf,
    /// The drain of each ring; `None` after an error.
    drains: HashMap<PathBuf, Option<Drain>>,
    written: Vec<PathBuf>,
}

impl Work {
    fn take(&mut self) -> bool {
        self.look();
        let mut any = false;
        for (ring, drain) in &mut self.drains {
            match drain.as_mut().map(Drain::take) {
                Some(Ok(more)) => any |= more,
                Some(Err(error)) => {
                    say(&output_of(&self.request, &self.output, ring), &error);
                    *drain = None;
                }
                None => {}
            }
        }
        any
    }

    /// Begins to drain the rings that are new.
    fn look(&mut self) {
        let Ok(rings) = self.request.files() else {
            return;
        };
        for ring in rings {
            if self.drains.contains_key(&ring) {
                continue;
            }
            let output = output_of(&self.request, &self.output, &ring);
            let drain = Drain::begin(&ring, &output);
            if let Err(error) = &drain {
                say(&output, error);
            } else {
                self.written.push(output);
            }
            self.drains.insert(ring, drain.ok());
        }
    }

    fn finish(mut self) -> Vec<PathBuf> {
        self.look();
        for (ring, drain) in self.drains {
            match drain.map(Drain::finish) {
                Some(Ok(())) => {
                    // The stream has all records of the ring. If the ring cannot be removed, it stays.
                    let _ = fs::remove_file(&ring);
                }
                Some(Err(error)) => say(&output_of(&self.request, &self.output, &ring), &error),
                None => {}
            }
        }
        self.written
    }
}

/// The file of a ring's stream.
fn output_of(request: &Request, output: &Path, ring: &Path) -> PathBuf {
    let part = request.file.as_os_str().len();
    let ring = ring.as_os_str().to_string_lossy();
    let mut name = output.as_os_str().to_owned();
    name.push(ring.get(part..).unwrap_or_default());
    PathBuf::from(name)
}

fn say(file: &Path, error: &Error) {
    report::error(&format!(
        "{}: {error}; the recording has no records from here on",
        file.display()
    ));
}
