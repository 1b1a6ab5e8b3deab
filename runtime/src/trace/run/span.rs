//! When the measuring of a run begins and ends: after a time, at a signal, at the first call of a function, when a call
//! returns.
//!
//! Calls come from `meta` breakpoints of a session of its own. They are heard before the same call is counted or recorded,
//! and their returns after it. So the call that begins the time is part of it, and the call that ends it is so to its
//! end.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use beamline_formats::profile::{EmulatorLock, Pattern, Span, wait_for_command};
use parking_lot::Mutex;

use super::patterns;
use crate::loader::module::Mfa;
use crate::sys::chance::names;
use crate::sys::stderr::complain;
use crate::term::Atom;
use crate::trace::breakpoint::change::end_later;
use crate::trace::costs::account::Measures;
use crate::trace::session::kind;
use crate::trace::session::tracer::TracerId;
use crate::trace::session::{self, OnLoad, Profiled, Shared};

/// How often the file of signals is looked at, and whether the time has begun.
const PAUSE: Duration = Duration::from_millis(2);

const BEFORE: u8 = 0;
const RUNS: u8 = 1;
/// The call has come with whose return it ends.
const ENDS: u8 = 2;
const OVER: u8 = 3;

/// What begins and ends the measuring.
pub(in crate::trace) struct Switch {
    pub(in crate::trace) begin: Box<dyn Fn() + Send + Sync>,
    pub(in crate::trace) end: Box<dyn Fn() + Send + Sync>,
}

struct Followed {
    span: Span,
    /// The file of signals.
    signals: PathBuf,
    switch: Switch,
    state: AtomicU8,
    /// The session of the functions.
    session: Option<Arc<Shared>>,
}

static FOLLOWED: OnceLock<Followed> = OnceLock::new();

/// Has the measuring begin and end as `span` says. Only the first call does anything.
pub(in crate::trace) fn follow(span: &Span, folder: &Path, switch: Switch) {
    let followed = FOLLOWED.get_or_init(|| Followed {
        session: functions(span),
        span: span.clone(),
        signals: Span::switch(folder),
        switch,
        state: AtomicU8::new(if span.begins_at_once() { RUNS } else { BEFORE }),
    });
    let is_timed = span.delay_ms > 0 || span.duration_ms.is_some();
    if is_timed || span.by_signal {
        std::thread::spawn(|| followed.wait());
    }
}

/// Tells the command that this emulator measures for it, until its process ends.
static LOCK: OnceLock<EmulatorLock> = OnceLock::new();

/// Has the measuring, which [`follow`] has begun, end with the command of this folder where this emulator outlives that.
pub(in crate::trace) fn end_with_command(folder: &Path) {
    let told = folder.display();
    match EmulatorLock::take(folder, names::own_pid()) {
        Ok(lock) => _ = LOCK.set(lock),
        Err(error) => return complain!("beamline: {told}: {error}"),
    }
    let folder = folder.to_owned();
    std::thread::spawn(move || {
        if wait_for_command(&folder).is_ok_and(|has_ended| has_ended) {
            end();
        }
    });
}

/// All that was measured is written.
pub(in crate::trace) fn note_written() {
    if let Some(Err(error)) = LOCK.get().map(EmulatorLock::note_written) {
        complain!("beamline: the command does not hear that its measuring has ended: {error}");
    }
}

/// The session that hears of the functions, if there are any.
fn functions(span: &Span) -> Option<Arc<Shared>> {
    let patterns: Vec<Pattern> = asked(span).cloned().collect();
    if patterns.is_empty() {
        return None;
    }
    let profiled = Profiled {
        measures: Measures::default(),
        only_count: false,
        wanted: Box::new(move |mfa| patterns.iter().any(|one| patterns::is_meant(one, &mfa))),
        counters: Mutex::default(),
        accounts: Mutex::default(),
        natives: Mutex::default(),
    };
    let name = Atom::new("beamline_span");
    let session = session::create(name, None, Some(profiled), None).ok()?;
    *session.on_load.lock() = Some(OnLoad {
        meta_tracer: Some(TracerId::NOBODY),
        ..OnLoad::counting(kind::META)
    });
    Some(session)
}

/// The functions that a span names.
fn asked(span: &Span) -> impl Iterator<Item = &Pattern> {
    span.from.iter().chain(&span.until)
}

/// The functions that the span of this run names.
pub(in crate::trace) fn of_run() -> impl Iterator<Item = &'static Pattern> {
    FOLLOWED.get().into_iter().flat_map(|all| asked(&all.span))
}

/// Whether a pattern of [`of_run`] was what it is to be, the begin or the end; none for another pattern.
pub(in crate::trace) fn came(pattern: &Pattern) -> Option<bool> {
    let followed = FOLLOWED.get()?;
    let state = followed.state.load(Ordering::Acquire);
    if followed.span.from.as_ref() == Some(pattern) {
        return Some(state >= RUNS);
    }
    (followed.span.until.as_ref() == Some(pattern)).then_some(state >= ENDS)
}

/// Whether this session is that of the functions: only [`called`] gets its calls.
pub(in crate::trace) fn is_mine(session: u64) -> bool {
    let mine = FOLLOWED.get().and_then(|all| all.session.as_ref());
    mine.is_some_and(|mine| mine.id == session)
}

/// A function of the session was called. Whether its return is to be told.
pub(in crate::trace) fn called(mfa: Mfa) -> bool {
    FOLLOWED.get().is_some_and(|followed| followed.called(mfa))
}

/// Ends the measuring, if it has not ended yet: also what is called when a call has returned, or an exception has ended
/// it, of which [`called`] wanted to hear.
pub(in crate::trace) fn end() {
    if let Some(followed) = FOLLOWED.get() {
        followed.end();
    }
}

impl Followed {
    fn called(&self, mfa: Mfa) -> bool {
        let is = |pattern: &Option<Pattern>| {
            let pattern = pattern.as_ref();
            pattern.is_some_and(|pattern| patterns::is_meant(pattern, &mfa))
        };
        if is(&self.span.from) {
            self.begin();
        }
        is(&self.span.until) && self.goes(RUNS, ENDS)
    }

    /// Takes a step, unless another thread has or it is too late.
    fn goes(&self, from: u8, to: u8) -> bool {
        let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
        let taken = self.state.compare_exchange(from, to, success, failure);
        taken.is_ok()
    }

    fn begin(&self) {
        if self.goes(BEFORE, RUNS) {
            (self.switch.begin)();
        }
    }

    fn end(&self) {
        if self.state.swap(OVER, Ordering::AcqRel) == OVER {
            return;
        }
        (self.switch.end)();
        if let Some(session) = &self.session {
            end_later(session.clone());
        }
    }

    /// Follows the clock and the signals.
    fn wait(&self) {
        std::thread::sleep(Duration::from_millis(self.span.delay_ms));
        if self.span.by_signal {
            self.wait_for(|| self.signals() > 0);
        }
        if self.span.from.is_some() {
            self.wait_for(|| self.state.load(Ordering::Acquire) != BEFORE);
        }
        self.begin();
        if let Some(duration) = self.span.duration_ms {
            std::thread::sleep(Duration::from_millis(duration));
            self.end();
        } else if self.span.by_signal {
            self.wait_for(|| self.signals() > 1);
            self.end();
        }
    }

    fn wait_for(&self, is_so: impl Fn() -> bool) {
        while !is_so() {
            std::thread::sleep(PAUSE);
        }
    }

    fn signals(&self) -> u64 {
        std::fs::metadata(&self.signals).map_or(0, |file| file.len())
    }
}
