//! Keeps a part of a ring for a flight recorder: the records from some time before a trigger to some time after it.
//!
//! The emulator writes the ring all the time and overwrites its oldest records. A [`Watch`] tells that a trigger has
//! happened, and a [`Dump`] writes the records around it to a stream.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use super::stream::Drain;
use crate::ring::model::error::Error;
use crate::ring::model::kept::Why;
use crate::ring::model::layout::{Header, PAGE, header};

/// Now, by the clock of a recording's anchors.
#[must_use]
#[expect(
    clippy::disallowed_methods,
    reason = "a recording is stamped by this clock, and its readers wait by it"
)]
pub fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let (seconds, ns) = (now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs());
    seconds.saturating_mul(1_000_000_000).saturating_add(ns)
}

/// How much time the flight recorder keeps.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// The time before the trigger.
    pub before: Duration,
    /// The time after the trigger.
    pub after: Duration,
}

/// Tells whether a trigger has happened.
#[derive(Debug)]
pub struct Watch {
    ring: File,
}

impl Watch {
    /// Watches a ring.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn new(ring: &Path) -> Result<Watch, Error> {
        let ring = File::open(ring)?;
        Ok(Watch { ring })
    }

    fn header(&self) -> Result<Header, Error> {
        let mut page = vec![0; PAGE];
        self.ring.read_exact_at(&mut page, 0)?;
        Header::read(&page)
    }

    /// How many triggers have happened.
    ///
    /// # Errors
    /// When the ring cannot be read.
    pub fn count(&self) -> io::Result<u64> {
        let mut bytes = [0; 8];
        let at = header::TRIGGERS as u64 * 8;
        self.ring.read_exact_at(&mut bytes, at)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// The last trigger that happened, and when it did.
    ///
    /// # Errors
    /// When the ring cannot be read.
    pub fn last(&self) -> Result<Option<(Why, u64)>, Error> {
        let header = self.header()?;
        let word = |at| header.word(header::TRIGGERS + at);
        let why = Why::of([1, word(1), word(2)]);
        Ok(why.filter(|_| word(0) > 0).map(|why| (why, word(3))))
    }

    /// Has the emulator ended its recording?
    ///
    /// # Errors
    /// When the ring cannot be read.
    pub fn has_ended(&self) -> Result<bool, Error> {
        Ok(self.header()?.word(header::ENDED) == 1)
    }
}

/// A recording that the flight recorder is keeping. It takes the present contents of the ring at once.
pub struct Dump {
    drain: Drain,
    why: Why,
    at_ns: u64,
    from_ns: u64,
    until_ns: u64,
    to_ns: u64,
}

impl Dump {
    /// Starts to keep the records of `ring` around the monotonic time `at_ns` in the file `out`, whose contents are
    /// lost.
    ///
    /// # Errors
    /// When `ring` is no ring, or `out` cannot be written.
    pub fn begin(
        ring: &Path,
        out: &Path,
        why: Why,
        at_ns: u64,
        window: Window,
    ) -> Result<Dump, Error> {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let from_ns = at_ns.saturating_sub(ns(window.before));
        let mut drain = Drain::begin(ring, out)?;
        let to_ns = monotonic_ns();
        drain.take_since(from_ns)?;
        Ok(Dump {
            drain,
            why,
            at_ns,
            from_ns,
            until_ns: at_ns.saturating_add(ns(window.after)),
            to_ns,
        })
    }

    /// Takes the records written since the last time. The result is `false` when all wanted records are there, or no
    /// more can come.
    ///
    /// # Errors
    /// When `out` cannot be written.
    pub fn take(&mut self) -> Result<bool, Error> {
        let now = monotonic_ns();
        self.drain.take()?;
        // What comes after a gap is not worth what came before it.
        if self.drain.is_cut() {
            return Ok(false);
        }
        self.to_ns = now;
        Ok(now < self.until_ns)
    }

    /// Ends the stream. It takes the rest of the ring, too, unless there is a gap before it.
    ///
    /// # Errors
    /// When `out` cannot be written.
    pub fn finish(mut self) -> Result<(), Error> {
        let now = monotonic_ns();
        self.drain.take_rest()?;
        if !self.drain.is_cut() {
            self.to_ns = now;
        }
        let [why, kind, who] = self.why.words();
        let is_cut = self.drain.is_cut() && self.to_ns < self.until_ns;
        let words = [
            why,
            kind,
            who,
            self.at_ns,
            self.from_ns,
            self.to_ns,
            u64::from(is_cut),
        ];
        let words = words.into_iter().enumerate();
        self.drain
            .end(words.map(|(at, word)| (header::KEPT + at, word)))
    }
}
