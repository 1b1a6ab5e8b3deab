//! Tells schedulers which descriptors are ready, with a table of watches over one epoll.
//!
//! A watch is good for one call: its owner sets another to be called again. The table has a row for each descriptor, by
//! its number, with the watches on it. The kernel has one registration for a row, armed for one event (`EPOLLONESHOT`)
//! of those that the row's watches wait for. An event costs the same however many descriptors are watched, and nothing
//! is allocated for it.
//!
//! One thread waits. It queues the watches that are due and wakes a scheduler, which calls them. So what ports do runs
//! where processes run, and in several schedulers at once if they have nothing else to do. In a virtual run no thread
//! waits: the only scheduler looks when it has nothing to run.
//!
//! What epoll refuses (a regular file, `/dev/null`, a number that is closed) is due at once: a read or write of it does
//! not wait. A descriptor that is closed while it is watched becomes due no more, as in ERTS, or once for nothing where
//! another process has a copy of it. An event carries the number of the arming that it is for. So an event for what a
//! number meant before it was opened and watched again is dropped.
//!
//! epoll is rustix's, which the runtime has for other things. The `polling` crate refuses a second watch on a
//! descriptor and knows nothing of files, so it would need this table all the same.
//!
//! Invariant W1: a watched number may name a closed descriptor, or a newer one: its watch is then called once for
//! nothing, or not at all, which its owner sees when it uses the descriptor it owns.
#![expect(unsafe_code, reason = "descriptors are waited for by number")]

use std::collections::VecDeque;
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Once, OnceLock};

use beamline_settings::chance::Chance;
use parking_lot::Mutex;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use smallvec::SmallVec;

use super::form;

/// The readiness that a watch waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Data to read, the end of it, or an error.
    Read,
    /// Room to write, or an error.
    Write,
    /// An error, or that the other end has hung up.
    Error,
}

impl Interest {
    /// The events to ask for. The kernel reports errors and hang-ups unasked.
    fn events(self) -> EventFlags {
        match self {
            Interest::Read => EventFlags::IN,
            Interest::Write => EventFlags::OUT,
            Interest::Error => EventFlags::empty(),
        }
    }

    fn is_met_by(self, events: EventFlags) -> bool {
        events.intersects(self.events() | EventFlags::HUP | EventFlags::ERR)
    }
}

/// The owner of a watch.
pub trait Ready: Send + Sync {
    /// A watch is due: `fd` is ready, or was.
    fn ready(self: Arc<Self>, fd: RawFd, interest: Interest);
}

/// A watch that was set. Later ones are greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WatchId {
    number: u64,
    fd: RawFd,
}

struct Watch {
    number: u64,
    interest: Interest,
    whom: Arc<dyn Ready>,
    /// It is in [`Table::due`], and waits for nothing more.
    is_due: bool,
}

/// The watches on a descriptor, and its registration with the kernel.
#[derive(Default)]
struct Row {
    /// Seldom more than two: to read and to write.
    watches: SmallVec<[Watch; 2]>,
    /// The kernel had a registration when it was last asked.
    is_registered: bool,
    /// How often the row has been armed: tells its events from those of earlier armings.
    armings: u32,
}

#[derive(Default)]
struct Table {
    /// By descriptor.
    rows: Vec<Row>,
    /// What is to be called, in the order in which it was set.
    due: VecDeque<WatchId>,
    last_number: u64,
    /// Watches on descriptors other than standard input.
    others: usize,
}

struct Poller {
    epoll: OwnedFd,
    table: Mutex<Table>,
    /// Length of [`Table::due`], for those who look without its lock.
    due: AtomicUsize,
}

const STDIN: RawFd = 0;

/// Events taken from the kernel at once.
const BATCH: usize = 64;

impl Table {
    fn row(&mut self, fd: RawFd) -> &mut Row {
        let index = usize::try_from(fd).expect("a descriptor is not negative");
        if self.rows.len() <= index {
            self.rows.resize_with(index + 1, Row::default);
        }
        &mut self.rows[index]
    }

    /// Has the kernel tell of the next event that a watch of the row waits for. Where it refuses to, what it would
    /// tell is due.
    fn arm(&mut self, epoll: &OwnedFd, fd: RawFd) {
        let row = self.row(fd);
        row.armings = row.armings.wrapping_add(1);
        let waiting = row.watches.iter().filter(|watch| !watch.is_due);
        let events = waiting.fold(EventFlags::ONESHOT, |all, w| all | w.interest.events());
        let data = EventData::new_u64(u64::from(row.armings) << 32 | u64::from(fd.cast_unsigned()));
        // SAFETY: W1: used for this call; a number that is not open is an error.
        let source = unsafe { BorrowedFd::borrow_raw(fd) };
        let add = || epoll::add(epoll, source, data, events);
        let modify = || epoll::modify(epoll, source, data, events);
        let armed = match row.is_registered {
            // Its descriptor was closed: the kernel has forgotten it.
            true => modify().or_else(|e| if e == Errno::NOENT { add() } else { Err(e) }),
            false => add().or_else(|e| if e == Errno::EXIST { modify() } else { Err(e) }),
        };
        row.is_registered = armed.is_ok();
        match armed {
            Ok(()) => {}
            // A file: there is always data and room, and never an error to wait for.
            Err(Errno::PERM) => self.make_due(fd, EventFlags::IN | EventFlags::OUT),
            Err(_) => self.make_due(fd, EventFlags::ERR),
        }
    }

    /// Queues the watches of the row that `events` are for.
    fn make_due(&mut self, fd: RawFd, events: EventFlags) {
        let Table { rows, due, .. } = self;
        for watch in &mut rows[fd as usize].watches {
            if !watch.is_due && watch.interest.is_met_by(events) {
                watch.is_due = true;
                due.push_back(WatchId {
                    number: watch.number,
                    fd,
                });
            }
        }
    }

    fn take_event(&mut self, epoll: &OwnedFd, event: Event) {
        let (events, data) = (event.flags, event.data.u64());
        let fd = (data as u32).cast_signed();
        if self.row(fd).armings != (data >> 32) as u32 {
            // Of an arming that another has replaced.
            return;
        }
        self.make_due(fd, events);
        if self.row(fd).watches.iter().any(|watch| !watch.is_due) {
            self.arm(epoll, fd);
        }
    }

    /// Takes a watch out, if it is still there.
    fn remove(&mut self, id: WatchId) -> Option<Watch> {
        let watches = &mut self.rows.get_mut(id.fd as usize)?.watches;
        let at = watches.iter().position(|watch| watch.number == id.number)?;
        let watch = watches.swap_remove(at);
        self.others -= usize::from(id.fd != STDIN);
        Some(watch)
    }
}

impl Poller {
    fn new() -> Poller {
        Poller {
            epoll: epoll::create(CreateFlags::CLOEXEC).expect("a descriptor is free"),
            table: Mutex::default(),
            due: AtomicUsize::new(0),
        }
    }

    fn is_due(&self) -> bool {
        self.due.load(Ordering::Acquire) != 0
    }

    /// Runs `change` on the table; tells others how much is due then.
    fn with<T>(&self, change: impl FnOnce(&mut Table) -> T) -> T {
        let mut table = self.table.lock();
        let result = change(&mut table);
        self.due.store(table.due.len(), Ordering::Release);
        result
    }

    fn watch(&self, fd: RawFd, interest: Interest, whom: Arc<dyn Ready>) -> WatchId {
        self.with(|table| {
            table.last_number += 1;
            table.others += usize::from(fd != STDIN);
            let number = table.last_number;
            table.row(fd).watches.push(Watch {
                number,
                interest,
                whom,
                is_due: false,
            });
            table.arm(&self.epoll, fd);
            WatchId { number, fd }
        })
    }

    fn unwatch(&self, id: WatchId) -> bool {
        let removed = self.with(|table| {
            let removed = table.remove(id)?;
            let row = table.row(id.fd);
            if row.watches.is_empty() {
                // SAFETY: W1: as in `arm`.
                let source = unsafe { BorrowedFd::borrow_raw(id.fd) };
                // One that was closed is forgotten already.
                let _ = epoll::delete(&self.epoll, source);
                row.is_registered = false;
            } else if !removed.is_due {
                table.arm(&self.epoll, id.fd);
            }
            Some(removed)
        });
        removed.is_some()
    }

    /// Waits for events and queues what is due for them; how many there were.
    fn wait(&self, timeout: Option<&Timespec>) -> usize {
        let mut space = [const { MaybeUninit::<Event>::uninit() }; BATCH];
        let Ok((events, _)) = epoll::wait(&self.epoll, &mut space[..], timeout) else {
            // A signal came.
            return 0;
        };
        self.with(|table| {
            for event in &*events {
                table.take_event(&self.epoll, *event);
            }
            table.due.make_contiguous().sort_unstable();
        });
        events.len()
    }

    /// Queues what is due now.
    fn look(&self) {
        let at_once = Timespec::default();
        while self.wait(Some(&at_once)) == BATCH {}
    }

    /// Takes the next watch that is due, if it is not later than `last`.
    fn next_due(&self, last: u64) -> Option<(Watch, RawFd)> {
        self.with(|table| {
            while table.due.front().is_some_and(|id| id.number <= last) {
                let id = table.due.pop_front()?;
                if let Some(watch) = table.remove(id) {
                    return Some((watch, id.fd));
                }
            }
            None
        })
    }

    /// Calls what is due, in the order in which it was set, and not what is set meanwhile; `false` when
    /// nothing is. Has `help` come when there is more than one.
    fn call_due(&self, help: impl FnOnce()) -> bool {
        let last = self.table.lock().last_number;
        let Some((watch, fd)) = self.next_due(last) else {
            return false;
        };
        if self.is_due() {
            help();
        }
        watch.whom.ready(fd, watch.interest);
        while let Some((watch, fd)) = self.next_due(last) {
            watch.whom.ready(fd, watch.interest);
        }
        true
    }
}

/// Wakes a scheduler that has nothing to run, to call what is due.
static WAKE: OnceLock<fn()> = OnceLock::new();

/// Has `wake` called when something is due that no scheduler looks for. The first call counts; before, there is nobody
/// to be woken.
pub fn wake_by(wake: fn()) {
    let _ = WAKE.set(wake);
}

fn wake() {
    if let Some(wake) = WAKE.get() {
        wake();
    }
}

static POLLER: OnceLock<Poller> = OnceLock::new();

/// Does a scheduler look for what is ready when it has nothing to run, so that when that is does not depend on chance?
/// Then no thread waits.
fn is_by_scheduler() -> bool {
    match form() {
        Chance::Live | Chance::Linked { .. } => false,
        Chance::Virtual { .. } => true,
    }
}

/// Whether a scheduler is to call [`take_ready`], although it has something to run.
#[inline]
pub fn is_due() -> bool {
    POLLER.get().is_some_and(Poller::is_due) && !is_by_scheduler()
}

/// Queues what is ready, for a scheduler that has nothing else to run: it looks for itself, which is faster than to sleep and
/// to be woken by the thread that waits.
pub fn look_before_sleep() {
    let Some(poller) = POLLER.get().filter(|_| !is_by_scheduler()) else {
        return;
    };
    if poller.table.lock().others != 0 {
        poller.look();
    }
}

/// Calls what is due, in the order in which it was set; `false` when nothing is.
pub fn take_ready() -> bool {
    let Some(poller) = POLLER.get() else {
        return false;
    };
    if is_by_scheduler() {
        poller.look();
        return poller.call_due(|| {});
    }
    poller.call_due(wake)
}

/// Is a descriptor watched, other than standard input?
pub fn is_waited_for() -> bool {
    let poller = POLLER.get();
    poller.is_some_and(|poller| poller.table.lock().others != 0)
}

/// What is watched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Watched {
    /// Descriptors with watches.
    pub descriptors: usize,
    /// Memory of the table of watches.
    pub bytes: usize,
}

/// How much is watched now.
pub fn watched() -> Watched {
    let Some(poller) = POLLER.get() else {
        return Watched::default();
    };
    let table = poller.table.lock();
    let rows = table.rows.iter();
    Watched {
        descriptors: rows.filter(|row| !row.watches.is_empty()).count(),
        bytes: table.rows.len() * size_of::<Row>(),
    }
}

/// Descriptors that the machine may have open.
pub fn most_descriptors() -> usize {
    match form() {
        Chance::Live | Chance::Linked { .. } => {
            let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
            let limit = limit.current.and_then(|limit| usize::try_from(limit).ok());
            limit.unwrap_or(usize::MAX >> 8)
        }
        Chance::Virtual { .. } => VIRTUAL_DESCRIPTORS,
    }
}

/// What a virtual run says of how many descriptors it may have open, whatever the machine allows.
const VIRTUAL_DESCRIPTORS: usize = 1024;

/// Is any descriptor watched?
pub fn is_any_watched() -> bool {
    let poller = POLLER.get();
    poller.is_some_and(|poller| {
        let table = poller.table.lock();
        table.rows.iter().any(|row| !row.watches.is_empty())
    })
}

fn poller() -> &'static Poller {
    static THREAD: Once = Once::new();
    let poller = POLLER.get_or_init(Poller::new);
    if !is_by_scheduler() {
        THREAD.call_once(|| {
            std::thread::Builder::new()
                .name("poll".into())
                .spawn(|| wait_for_ever(poller))
                .expect("a thread can be started");
        });
    }
    poller
}

fn wait_for_ever(poller: &Poller) {
    loop {
        poller.wait(None);
        if poller.is_due() {
            wake();
        }
    }
}

/// Has a scheduler call `whom`, once, when `fd` is ready.
pub fn watch(fd: RawFd, interest: Interest, whom: Arc<dyn Ready>) -> WatchId {
    let poller = poller();
    let id = poller.watch(fd, interest, whom);
    if poller.is_due() && !is_by_scheduler() {
        wake();
    }
    id
}

/// Takes back all watches on `fd`, whoever set them.
pub fn forget(fd: RawFd) {
    let poller = poller();
    let watched = poller.with(|table| {
        let watches = table.row(fd).watches.iter();
        watches.map(|watch| watch.number).collect::<Vec<_>>()
    });
    for number in watched {
        poller.unwatch(WatchId { number, fd });
    }
}

/// Takes a watch back. `false` when it has been called, or is called now.
pub fn unwatch(id: WatchId) -> bool {
    poller().unwatch(id)
}

fn pollfd(fd: RawFd, interest: Interest) -> libc::pollfd {
    let events = match interest {
        Interest::Read => libc::POLLIN,
        Interest::Write => libc::POLLOUT,
        Interest::Error => 0,
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
    use std::fs::File;
    use std::io::Write;
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::Duration;

    use rustix::pipe::{PipeFlags, pipe_with};

    use super::*;

    /// A number that no descriptor of the tests has.
    const NOT_OPEN: RawFd = 5000;

    /// Sends its name when it is called.
    struct Tell(u32, Sender<u32>);

    impl Ready for Tell {
        fn ready(self: Arc<Self>, _fd: RawFd, _interest: Interest) {
            self.1.send(self.0).expect("the test lives");
        }
    }

    /// A poller of the test's own, and which of its watches were called.
    struct Test {
        poller: Arc<Poller>,
        tell: Sender<u32>,
        told: Receiver<u32>,
    }

    impl Test {
        fn new() -> Test {
            let (tell, told) = channel();
            let poller = Arc::new(Poller::new());
            Test { poller, tell, told }
        }

        fn watch(&self, fd: &impl AsRawFd, interest: Interest, name: u32) -> WatchId {
            let whom = Arc::new(Tell(name, self.tell.clone()));
            self.poller.watch(fd.as_raw_fd(), interest, whom)
        }

        #[track_caller]
        fn calls(&self, names: &[u32]) {
            self.poller.look();
            assert_eq!(self.poller.call_due(|| {}), !names.is_empty());
            assert_eq!(self.told.try_iter().collect::<Vec<_>>(), names);
        }
    }

    fn pipe() -> (OwnedFd, OwnedFd) {
        pipe_with(PipeFlags::CLOEXEC).expect("two descriptors are free")
    }

    fn put(fd: &OwnedFd) {
        rustix::io::write(fd, b"x").expect("room for a byte");
    }

    fn get(fd: &OwnedFd) {
        rustix::io::read(fd, &mut [0; 1]).expect("a byte");
    }

    #[test]
    fn a_watch_is_called_once_when_there_is_data() {
        let (test, (read, write)) = (Test::new(), pipe());
        test.watch(&read, Interest::Read, 1);
        test.calls(&[]);
        put(&write);
        test.calls(&[1]);
        test.calls(&[]);
        test.watch(&read, Interest::Read, 2);
        test.calls(&[2]);
        test.watch(&write, Interest::Write, 3);
        test.calls(&[3]);
        get(&read);
        test.watch(&read, Interest::Read, 4);
        test.calls(&[]);
        drop(write);
        test.calls(&[4]);
    }

    #[test]
    fn a_descriptor_is_read_and_written_at_once() {
        let test = Test::new();
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        test.watch(&ours, Interest::Read, 1);
        test.watch(&ours, Interest::Write, 2);
        test.calls(&[2]);
        test.watch(&ours, Interest::Write, 3);
        theirs.write_all(b"x").unwrap();
        test.calls(&[1, 3]);
        test.watch(&ours, Interest::Write, 4);
        test.calls(&[4]);
    }

    #[test]
    fn an_error_is_waited_for_alone() {
        let (test, (read, write)) = (Test::new(), pipe());
        let file = File::open(std::env::current_exe().unwrap()).unwrap();
        test.watch(&write, Interest::Error, 1);
        test.watch(&file, Interest::Error, 2);
        test.calls(&[]);
        test.watch(&write, Interest::Write, 3);
        test.calls(&[3]);
        drop(read);
        test.calls(&[1]);
        test.watch(&NOT_OPEN, Interest::Error, 4);
        test.calls(&[4]);
    }

    #[test]
    fn all_watches_on_a_descriptor_and_its_copies_are_called() {
        let (test, (read, write)) = (Test::new(), pipe());
        let copy = read.try_clone().unwrap();
        test.watch(&copy, Interest::Read, 1);
        test.watch(&read, Interest::Read, 2);
        test.watch(&read, Interest::Read, 3);
        test.calls(&[]);
        put(&write);
        test.calls(&[1, 2, 3]);
        get(&read);
        test.watch(&copy, Interest::Read, 4);
        test.watch(&read, Interest::Read, 5);
        drop(read);
        put(&write);
        // The copy keeps the pipe open: the watch on the closed number is called for nothing.
        test.calls(&[4, 5]);
    }

    #[test]
    fn what_is_ready_together_is_called_in_the_order_of_setting() {
        let test = Test::new();
        let pipes: Vec<_> = (0..3 * BATCH as u32).map(|n| (n, pipe())).collect();
        for (name, (read, _)) in &pipes {
            test.watch(read, Interest::Read, *name);
        }
        for (_, (_, write)) in pipes.iter().rev() {
            put(write);
        }
        let names: Vec<_> = pipes.iter().map(|(name, _)| *name).collect();
        test.calls(&names);
    }

    #[test]
    fn what_epoll_refuses_is_due_at_once() {
        let (test, (read, write)) = (Test::new(), pipe());
        put(&write);
        let file = File::open(std::env::current_exe().unwrap()).unwrap();
        test.watch(&read, Interest::Read, 1);
        test.watch(&file, Interest::Read, 2);
        test.watch(&File::open("/dev/null").unwrap(), Interest::Read, 3);
        test.watch(&NOT_OPEN, Interest::Write, 4);
        test.calls(&[1, 2, 3, 4]);
        test.calls(&[]);
    }

    #[test]
    fn what_is_set_while_others_are_called_waits_for_the_next_time() {
        struct Again(Arc<Poller>, Sender<u32>);
        impl Ready for Again {
            fn ready(self: Arc<Self>, fd: RawFd, interest: Interest) {
                self.1.send(1).expect("the test lives");
                let poller = Arc::clone(&self.0);
                poller.watch(fd, interest, self);
            }
        }
        let test = Test::new();
        let file = File::open(std::env::current_exe().unwrap()).unwrap();
        let again = Arc::new(Again(Arc::clone(&test.poller), test.tell.clone()));
        test.poller.watch(file.as_raw_fd(), Interest::Read, again);
        test.calls(&[1]);
        test.calls(&[1]);
    }

    #[test]
    fn a_number_that_is_closed_and_opened_again_is_another_descriptor() {
        let (test, (mut number, to_first)) = (Test::new(), pipe());
        let (second, to_second) = pipe();
        // A child holds a copy of what is closed here.
        let mut child = std::process::Command::new("sleep")
            .arg("600")
            .stdin(number.try_clone().unwrap())
            .spawn()
            .expect("a program");
        test.watch(&number, Interest::Read, 1);
        test.calls(&[]);
        rustix::io::dup2(&second, &mut number).expect("both are open");
        test.watch(&number, Interest::Read, 2);
        put(&to_first);
        test.calls(&[]);
        put(&to_second);
        // Whoever left a watch behind on the number is called with it.
        test.calls(&[1, 2]);
        child.kill().expect("the child runs");
        child.wait().expect("the child ends");
    }

    #[test]
    fn a_watch_that_is_taken_back_is_not_called() {
        let (test, (read, write)) = (Test::new(), pipe());
        let first = test.watch(&read, Interest::Read, 1);
        let second = test.watch(&read, Interest::Read, 2);
        assert!(test.poller.unwatch(first) && !test.poller.unwatch(first));
        put(&write);
        test.poller.look();
        let third = test.watch(&read, Interest::Read, 3);
        assert!(test.poller.unwatch(second));
        test.calls(&[3]);
        assert!(!test.poller.unwatch(third));
    }

    #[test]
    fn the_thread_queues_what_schedulers_call() {
        let (read, write) = pipe();
        let (tell, told) = channel();
        let id = watch(read.as_raw_fd(), Interest::Read, Arc::new(Tell(7, tell)));
        assert!(is_waited_for());
        put(&write);
        let mut looks = 0;
        while told.try_recv().is_err() {
            take_ready();
            std::thread::sleep(Duration::from_millis(1));
            looks += 1;
            assert!(looks < 20_000, "the thread sees it");
        }
        assert!(!unwatch(id));
    }

    #[test]
    fn data_and_the_end_of_it_are_readable() {
        let (read, write) = pipe();
        assert!(!is_readable(read.as_raw_fd()));
        put(&write);
        assert!(is_readable(read.as_raw_fd()));
        get(&read);
        assert!(!is_readable(read.as_raw_fd()));
        assert_eq!(hung_up(read.as_raw_fd()).unwrap(), Some(false));
        drop(write);
        assert!(is_readable(read.as_raw_fd()));
        assert_eq!(hung_up(read.as_raw_fd()).unwrap(), Some(true));
    }
}
