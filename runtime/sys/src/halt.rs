//! Halts the machine. One request ends it, after what must be written first.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc;
use std::sync::{Condvar, Mutex};
use std::thread;
use std::time::Duration;

/// How the machine ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// With this exit code.
    Code(i32),
    /// As a program that is aborted.
    Abort,
}

/// Whether the end waits for what the program's ports and libraries have left to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flush {
    /// It does not.
    No,
    /// It does, for so many milliseconds at most; without a number, for as long as [`set_flush_limit`] says.
    Within(Option<u32>),
}

/// What is done at the end, in this order.
#[derive(Clone, Copy, Debug)]
pub enum AtEnd {
    /// Writes what the user has asked the machine for: always.
    Write(fn()),
    /// Does what the program has left to do: with [`Flush::Within`], and within that time.
    Flush(fn()),
}

/// The exit code of an end that has waited for as long as it may. Source: `ERTS_HALT_FLUSH_TIMEOUT_EXIT_CODE`.
const TIMEOUT_CODE: i32 = 255;

/// A request for the end.
#[derive(Clone, Copy)]
struct Request {
    exit: Exit,
    flush: Flush,
}

static STATE: Mutex<Option<Request>> = Mutex::new(None);
static CHANGED: Condvar = Condvar::new();
/// Is there a request? Read before each time slice.
static IS_REQUESTED: AtomicBool = AtomicBool::new(false);

/// Milliseconds that any end may wait.
static FLUSH_LIMIT: AtomicU32 = AtomicU32::new(FOR_EVER);
const FOR_EVER: u32 = u32::MAX;

fn state() -> std::sync::MutexGuard<'static, Option<Request>> {
    STATE
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Sets for how many milliseconds any end may wait (`+zhft`); `None`: for ever.
pub fn set_flush_limit(milliseconds: Option<u32>) {
    FLUSH_LIMIT.store(milliseconds.unwrap_or(FOR_EVER), Ordering::Relaxed);
}

/// For how many milliseconds any end may wait.
pub fn flush_limit() -> Option<u32> {
    let limit = FLUSH_LIMIT.load(Ordering::Relaxed);
    (limit != FOR_EVER).then_some(limit)
}

/// Asks for the end of the machine with exit code `code`. The first request counts.
pub fn request(code: i32) {
    end(Exit::Code(code), Flush::Within(None));
}

fn note(state: &mut Option<Request>, exit: Exit, flush: Flush) {
    state.get_or_insert(Request { exit, flush });
    IS_REQUESTED.store(true, Ordering::Relaxed);
    CHANGED.notify_all();
}

/// Asks for the end of the machine from a thread that may hold any lock and has no memory. Tells whether it has asked.
pub(crate) fn try_end(exit: Exit) -> bool {
    let state = STATE.try_lock();
    // The locks that it holds may be those of ports.
    let asked = state.map(|mut state| note(&mut state, exit, Flush::No));
    IS_REQUESTED.store(true, Ordering::Relaxed);
    asked.is_ok()
}

/// Asks for the end of the machine. The first request counts.
pub fn end(exit: Exit, flush: Flush) {
    note(&mut state(), exit, flush);
}

/// How the machine is asked to end, if it is.
pub fn requested() -> Option<Exit> {
    state().map(|request| request.exit)
}

/// Is the machine asked to end? A load.
#[inline]
pub fn is_requested() -> bool {
    IS_REQUESTED.load(Ordering::Relaxed)
}

/// Waits for a request, does what is to be done, and tells the exit code.
pub fn wait(at_end: &[AtEnd]) -> i32 {
    let guard = CHANGED.wait_while(state(), |request| request.is_none());
    let guard = guard.unwrap_or_else(std::sync::PoisonError::into_inner);
    let request = guard.expect("there is one");
    drop(guard);
    let is_in_time = finish(request, at_end);
    match request.exit {
        _ if !is_in_time => TIMEOUT_CODE,
        Exit::Code(code) => code,
        Exit::Abort => std::process::abort(),
    }
}

/// What is told while something is flushed.
enum News {
    Done,
    TimeIsUp,
}

/// The time in which all is to be flushed, which has begun.
struct Limit {
    tell: mpsc::Sender<News>,
    news: mpsc::Receiver<News>,
}

impl Limit {
    /// `None` where no thread can be had that waits for its end.
    fn begin(milliseconds: u32) -> Option<Limit> {
        let (tell, news) = mpsc::channel();
        let up = tell.clone();
        let wait = move || {
            thread::sleep(Duration::from_millis(milliseconds.into()));
            // All has been flushed: nobody listens any more.
            let _ = up.send(News::TimeIsUp);
        };
        thread::Builder::new().spawn(wait).ok()?;
        Some(Limit { tell, news })
    }

    /// Runs `flush` on a thread of its own, which is left alone when the time is up; whether it was done before.
    fn run(&self, flush: fn()) -> bool {
        let done = self.tell.clone();
        let flushing = move || {
            flush();
            // Too late: nobody listens any more.
            let _ = done.send(News::Done);
        };
        thread::Builder::new().spawn(flushing).is_ok() && matches!(self.news.recv(), Ok(News::Done))
    }
}

/// Does what is to be done; whether that took no longer than it may.
fn finish(request: Request, at_end: &[AtEnd]) -> bool {
    let limit = match request.flush {
        Flush::No => None,
        Flush::Within(own) => own.into_iter().chain(flush_limit()).min(),
    };
    let limit = limit.map(Limit::begin);
    let mut is_in_time = true;
    for step in at_end {
        match (*step, &limit) {
            (AtEnd::Write(write), _) => write(),
            (AtEnd::Flush(_), _) if request.flush == Flush::No || !is_in_time => {}
            (AtEnd::Flush(flush), None) => flush(),
            (AtEnd::Flush(flush), Some(limit)) => {
                is_in_time = limit.as_ref().is_some_and(|limit| limit.run(flush));
            }
        }
    }
    is_in_time
}

#[cfg(test)]
mod tests {
    use super::*;

    static WRITTEN: AtomicU32 = AtomicU32::new(0);

    fn write() {
        WRITTEN.fetch_add(1, Ordering::Relaxed);
    }

    fn hang() {
        loop {
            thread::park();
        }
    }

    #[test]
    fn what_is_written_is_written_whatever_flushing_does() {
        let steps = [AtEnd::Flush(hang), AtEnd::Write(write), AtEnd::Flush(hang)];
        let exit = Exit::Code(0);
        let request = |flush| Request { exit, flush };
        assert!(finish(request(Flush::No), &steps));
        assert!(!finish(request(Flush::Within(Some(1))), &steps));
        assert_eq!(WRITTEN.load(Ordering::Relaxed), 2);
        let quick = [AtEnd::Flush(write), AtEnd::Write(write)];
        assert!(finish(request(Flush::Within(None)), &quick));
        assert!(finish(request(Flush::Within(Some(60_000))), &quick));
        assert_eq!(WRITTEN.load(Ordering::Relaxed), 6);
    }
}
