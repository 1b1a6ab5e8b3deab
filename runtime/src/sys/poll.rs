//! Readiness of descriptors: one thread that waits in `poll(2)` and calls back.
//!
//! Not `epoll`: standard input may be a regular file, which only `poll` takes.
//!
//! Invariant W1: a watched number may name a closed descriptor, or a newer one: the callback then runs
//! once for nothing, which its owner sees when it uses the descriptor it owns.
#![expect(unsafe_code, reason = "descriptors are waited for by number")]

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use rustix::pipe::{PipeFlags, pipe_with};

/// What to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Data to read, the end of it, or an error.
    Read,
    /// Room to write, or an error.
    Write,
}

/// A watch that was set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WatchId(u64);

type Callback = Box<dyn FnOnce() + Send>;

struct Watch {
    id: WatchId,
    fd: RawFd,
    interest: Interest,
    callback: Callback,
}

struct Poller {
    watches: Mutex<Watches>,
    /// Written to make the thread look at the watches again.
    wake: OwnedFd,
}

/// No thread waits: a scheduler looks for what is ready when it has nothing to run, so that when that is
/// does not depend on chance.
static BY_SCHEDULER: AtomicBool = AtomicBool::new(false);

/// Has [`take_ready`] do the work of the thread. Only before anything is watched.
pub fn set_by_scheduler() {
    BY_SCHEDULER.store(true, Ordering::Relaxed);
}

/// Runs the callbacks of what is ready, in the order in which they were set; `false` when nothing is.
pub fn take_ready() -> bool {
    call_back(poller(), None, 0)
}

/// Is a descriptor watched, other than standard input?
pub fn is_waited_for() -> bool {
    let watches = poller().watches.lock();
    watches.set.iter().any(|watch| watch.fd != STDIN)
}

const STDIN: RawFd = 0;

#[derive(Default)]
struct Watches {
    set: Vec<Watch>,
    last_id: u64,
}

fn poller() -> &'static Poller {
    static POLLER: OnceLock<Poller> = OnceLock::new();
    static STARTED: OnceLock<()> = OnceLock::new();
    let mut woken = None;
    let poller = POLLER.get_or_init(|| {
        let (read, write) =
            pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).expect("two descriptors are free");
        woken = Some(read);
        Poller {
            watches: Mutex::default(),
            wake: write,
        }
    });
    if let Some(woken) = woken
        && !BY_SCHEDULER.load(Ordering::Relaxed)
    {
        STARTED.get_or_init(|| {
            std::thread::Builder::new()
                .name("poll".into())
                .spawn(move || run(poller, &woken))
                .expect("a thread can be started");
        });
    }
    poller
}

/// Calls `callback` once, from the poll thread, when `fd` is ready.
pub fn watch(fd: RawFd, interest: Interest, callback: impl FnOnce() + Send + 'static) -> WatchId {
    let poller = poller();
    let id = {
        let mut watches = poller.watches.lock();
        watches.last_id += 1;
        let id = WatchId(watches.last_id);
        watches.set.push(Watch {
            id,
            fd,
            interest,
            callback: Box::new(callback),
        });
        id
    };
    wake(poller);
    id
}

/// Takes a watch back. `false` when its callback has run, or runs now.
pub fn unwatch(id: WatchId) -> bool {
    let poller = poller();
    let removed = {
        let mut watches = poller.watches.lock();
        let at = watches.set.iter().position(|watch| watch.id == id);
        at.map(|at| watches.set.swap_remove(at))
    };
    wake(poller);
    removed.is_some()
}

fn wake(poller: &Poller) {
    // A full pipe has woken it already.
    let _ = rustix::io::write(&poller.wake, &[0]);
}

fn run(poller: &Poller, woken: &OwnedFd) {
    loop {
        call_back(poller, Some(woken), -1);
    }
}

/// Waits until something watched is ready, `woken` has something to read, or the time is up, and runs the
/// callbacks of what is ready; `false` when nothing is.
fn call_back(poller: &Poller, woken: Option<&OwnedFd>, timeout_ms: i32) -> bool {
    let mut fds: Vec<libc::pollfd> = woken
        .iter()
        .map(|fd| pollfd(fd.as_raw_fd(), Interest::Read))
        .collect();
    let mut ids: Vec<WatchId> = {
        let watches = poller.watches.lock();
        fds.extend(watches.set.iter().map(|w| pollfd(w.fd, w.interest)));
        watches.set.iter().map(|watch| watch.id).collect()
    };
    // SAFETY: W1: an array of as many entries; the numbers are the kernel's to judge.
    let ready = unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, timeout_ms) };
    if ready <= 0 {
        return false;
    }
    if let Some(woken) = woken {
        while rustix::io::read(woken, &mut [0u8; 64]).is_ok_and(|n| n > 0) {}
        fds.remove(0);
    }
    let mut is_ready = fds.iter().map(|fd| fd.revents != 0);
    ids.retain(|_| is_ready.next() == Some(true));
    ids.sort_unstable();
    for id in &ids {
        let watch = {
            let mut watches = poller.watches.lock();
            let at = watches.set.iter().position(|watch| watch.id == *id);
            at.map(|at| watches.set.swap_remove(at))
        };
        if let Some(watch) = watch {
            (watch.callback)();
        }
    }
    !ids.is_empty()
}

fn pollfd(fd: RawFd, interest: Interest) -> libc::pollfd {
    let events = match interest {
        Interest::Read => libc::POLLIN,
        Interest::Write => libc::POLLOUT,
    };
    libc::pollfd {
        fd,
        events,
        revents: 0,
    }
}

/// Waits until `fd`, which is in non-blocking mode, takes bytes, or has an error to report.
pub fn wait_writable(fd: RawFd) {
    let mut fds = [pollfd(fd, Interest::Write)];
    // SAFETY: W1: an array of one entry.
    unsafe { libc::poll(fds.as_mut_ptr(), 1, -1) };
}

/// Whether a read of `fd` has something to give at once: data, an end or an error.
#[must_use]
pub fn is_readable(fd: RawFd) -> bool {
    let mut fds = [pollfd(fd, Interest::Read)];
    // SAFETY: W1: an array of one entry.
    unsafe { libc::poll(fds.as_mut_ptr(), 1, 0) > 0 }
}

/// Whether the other end of `fd` has hung up: `None` where the system says something else.
///
/// # Errors
/// What `poll` reports.
pub fn hung_up(fd: RawFd) -> std::io::Result<Option<bool>> {
    let mut fds = [libc::pollfd {
        fd,
        events: libc::POLLHUP,
        revents: 0,
    }];
    // SAFETY: W1: an array of one entry.
    match unsafe { libc::poll(fds.as_mut_ptr(), 1, 0) } {
        0 => Ok(Some(false)),
        n if n < 0 => Err(std::io::Error::last_os_error()),
        _ if fds[0].revents & libc::POLLHUP != 0 => Ok(Some(true)),
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    #[test]
    fn a_callback_runs_once_when_there_is_data() {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        let (tx, rx) = channel();
        let tell = tx.clone();
        watch(read.as_raw_fd(), Interest::Read, move || {
            tell.send(1).unwrap()
        });
        assert!(rx.recv_timeout(Duration::from_millis(30)).is_err());
        rustix::io::write(&write, b"x").unwrap();
        assert_eq!(rx.recv_timeout(Duration::from_secs(10)), Ok(1));
        assert!(rx.recv_timeout(Duration::from_millis(30)).is_err());
        watch(write.as_raw_fd(), Interest::Write, move || {
            tx.send(2).unwrap()
        });
        assert_eq!(rx.recv_timeout(Duration::from_secs(10)), Ok(2));
    }

    #[test]
    fn data_and_the_end_of_it_are_readable() {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        assert!(!is_readable(read.as_raw_fd()));
        rustix::io::write(&write, b"x").unwrap();
        assert!(is_readable(read.as_raw_fd()));
        rustix::io::read(&read, &mut [0; 1]).unwrap();
        assert!(!is_readable(read.as_raw_fd()));
        drop(write);
        assert!(is_readable(read.as_raw_fd()));
    }

    #[test]
    fn a_watch_that_is_taken_back_does_not_call() {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        let (tx, rx) = channel();
        let id = watch(read.as_raw_fd(), Interest::Read, move || {
            tx.send(()).unwrap()
        });
        assert!(unwatch(id));
        assert!(!unwatch(id));
        rustix::io::write(&write, b"x").unwrap();
        assert!(rx.recv_timeout(Duration::from_millis(30)).is_err());
        assert_eq!(hung_up(read.as_raw_fd()).unwrap(), Some(false));
        drop(write);
        assert_eq!(hung_up(read.as_raw_fd()).unwrap(), Some(true));
    }
}
