//! Taking records out of the rings of a running command, into streams.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use beamline_formats::ring::{Drain, Error, Request};

use crate::report;

/// So long nothing is looked for after nothing was found.
const PAUSE: Duration = Duration::from_millis(2);

/// A thread that does it.
pub(crate) struct Drains {
    has_ended: Arc<AtomicBool>,
    thread: JoinHandle<Vec<PathBuf>>,
}

impl Drains {
    /// Takes from all rings of `request`, from when they are there. The first goes to `output`, others to files of
    /// this name with what their ring has behind it.
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

    /// Takes what is left, when the command has ended; the streams.
    pub(crate) fn finish(self) -> Vec<PathBuf> {
        self.has_ended.store(true, Ordering::Release);
        // A panic of the thread has been told already.
        self.thread.join().unwrap_or_default()
    }
}

struct Work {
    request: Request,
    output: PathBuf,
    /// By ring; none where nothing can be taken any more.
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

    /// Begins with the rings that are new.
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
                    // The stream has all that was in it; if it cannot be removed, it stays.
                    let _ = fs::remove_file(&ring);
                }
                Some(Err(error)) => say(&output_of(&self.request, &self.output, &ring), &error),
                None => {}
            }
        }
        self.written
    }
}

/// Where the stream of a ring goes.
fn output_of(request: &Request, output: &Path, ring: &Path) -> PathBuf {
    let part = request.file.as_os_str().len();
    let ring = ring.as_os_str().to_string_lossy();
    let mut name = output.as_os_str().to_owned();
    name.push(ring.get(part..).unwrap_or_default());
    PathBuf::from(name)
}

fn say(file: &Path, error: &Error) {
    report::error(&format!(
        "{}: {error}; what comes now is not in the recording",
        file.display()
    ));
}
