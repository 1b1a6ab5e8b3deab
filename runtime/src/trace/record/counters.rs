//! Reads the processor's and the operating system's counters when a process starts to run and when it stops, for the
//! recorder.

use std::cell::RefCell;
use std::io::{self, ErrorKind};

use beamline_settings::counter::{Counted, Counter};
use parking_lot::Mutex;

use crate::sys::counters::{ProcessCounters, ThreadCounters, is_partial};
use crate::sys::stderr::complain;

/// The counters of a request. Where this machine does not have all of them, they are those of the operating system, and
/// a line says so.
pub(in crate::trace) fn available(wanted: &[Counter]) -> Vec<Counter> {
    let opened = ThreadCounters::open(wanted).and_then(|_| ProcessCounters::open(wanted));
    let Err(error) = opened else {
        return wanted.to_vec();
    };
    let names = Counter::SOFTWARE.map(Counter::name).join(", ");
    let wanted: Vec<&str> = wanted.iter().map(|counter| counter.name()).collect();
    complain!(
        "beamline: no {} here ({}): {names} are counted instead",
        wanted.join(", "),
        why(&error)
    );
    Counter::SOFTWARE.to_vec()
}

/// Why counters could not be opened: `perf_event_open(2)` has meanings of its own for errors.
fn why(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => "the processor has none, or the virtual machine shows none".into(),
        ErrorKind::PermissionDenied => "not allowed: see kernel.perf_event_paranoid".into(),
        _ => error.to_string(),
    }
}

/// The counters of a recording.
pub(in crate::trace) struct Counting {
    wanted: Vec<Counter>,
    process: Mutex<ProcessCounters>,
}

/// The counters of this thread.
enum ThreadState {
    Unknown,
    Open {
        counters: ThreadCounters,
        /// When the time slice began.
        begin: Option<Counted>,
    },
    Failed,
}

thread_local! {
    static STATE: RefCell<ThreadState> = const { RefCell::new(ThreadState::Unknown) };
}

impl Counting {
    /// Counts from now on; `None` where nothing is asked for.
    pub(in crate::trace) fn begin(wanted: &[Counter]) -> Option<Counting> {
        if wanted.is_empty() {
            return None;
        }
        let process = ProcessCounters::open(wanted).inspect_err(say).ok()?;
        Some(Counting {
            wanted: wanted.to_vec(),
            process: Mutex::new(process),
        })
    }

    /// A process starts to run on this thread.
    pub(in crate::trace) fn slice_begins(&self) {
        // A thread that is ending runs no process.
        let _ = STATE.try_with(|state| {
            let mut state = state.borrow_mut();
            if matches!(*state, ThreadState::Unknown) {
                let counters = ThreadCounters::open(&self.wanted).inspect_err(say);
                *state = counters.map_or(ThreadState::Failed, |counters| ThreadState::Open {
                    counters,
                    begin: None,
                });
            }
            if let ThreadState::Open { counters, begin } = &mut *state {
                *begin = counters.read().ok();
            }
        });
    }

    /// The process stops: the counter values of its time slice, if that began on this thread.
    pub(in crate::trace) fn counted(&self) -> Option<Counted> {
        STATE.with_borrow_mut(|state| {
            let ThreadState::Open { counters, begin } = state else {
                return None;
            };
            let begin = begin.take()?;
            let mut counted = counters.read().ok()?;
            for (end, begin) in counted.iter_mut().zip(begin) {
                *end = end.saturating_sub(begin);
            }
            Some(counted)
        })
    }

    /// The counter values of all threads.
    pub(in crate::trace) fn all(&self) -> Option<Counted> {
        if is_partial() {
            complain!(
                "beamline: the processor has too few counters for all that is counted: what the recording says of \
                 them is too little; ask for fewer --counters"
            );
        }
        self.process.lock().read().inspect_err(say).ok()
    }
}

fn say(error: &io::Error) {
    complain!("beamline: counters: {error}");
}
