//! Tells schedulers which descriptors are ready, with a table of watches over one epoll.
//!
//! A watch is good for one call: its owner sets another to be called again. The table has a row for each descriptor, by
//! its number, with the watches on it. The kernel has one registration for a row, armed for one event (`EPOLLONESHOT`)
//! of those that the row's watches wait for. An event costs the same however many descriptors are watched, and nothing
//! is allocated for it.
//!
//! A scheduler that has nothing to run waits in epoll, one at a time ([`turn`]). It queues the watches that are due and
//! calls them, and wakes others where there are several. So what ports do runs where processes run. While no scheduler
//! waits, each that runs processes looks every now and then, until the thread `poll` sees that nothing comes and waits for
//! the next event in their place. In a virtual run nobody waits: the only scheduler looks when it has nothing to run.
//!
//! Whoever wakes the scheduler that waits here writes to an eventfd, which is in the epoll, too ([`interrupt`]). The event
//! stays until it is taken back, and only whoever has the turn takes it back, before it gives the turn on. So no other that
//! looks takes away what the waiting one is to be woken by, and what was meant for an earlier one wakes the next, or ends a
//! watch of the thread, for nothing, at most once.
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
//!
//! Invariant W2: an [`Event`] is laid out as the kernel's `struct epoll_event`.
#![expect(unsafe_code, reason = "descriptors are waited for by number")]

#[cfg(test)]
mod tests;
mod turn;

use std::collections::VecDeque;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Once, OnceLock};
use std::time::Duration;

use beamline_settings::chance::Chance;
use parking_lot::Mutex;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd};
use rustix::io::Errno;
use smallvec::SmallVec;

use super::form;
use turn::Turn;

const _: () = assert!(size_of::<Event>() == size_of::<libc::epoll_event>());

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
    /// Ends the wait of whoever has the turn.
    interrupts: OwnedFd,
    turn: Turn,
    table: Mutex<Table>,
    /// Length of [`Table::due`], to be read without its lock.
    due: AtomicUsize,
}

const STDIN: RawFd = 0;

/// Events taken from the kernel at once.
const BATCH: usize = 64;

/// What an event of [`Poller::interrupts`] carries: no descriptor has this number.
const INTERRUPT: u64 = u64::MAX;

/// How often the thread looks whether somebody waits for events, or takes some. A scheduler that makes a native call may
/// hold up events of others for two of them.
const GLANCES: Duration = Duration::from_millis(2);

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
        let epoll = epoll::create(CreateFlags::CLOEXEC).expect("a descriptor is free");
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let interrupts = eventfd(0, flags).expect("a descriptor is free");
        let data = EventData::new_u64(INTERRUPT);
        epoll::add(&epoll, &interrupts, data, EventFlags::IN).expect("an eventfd is watched");
        Poller {
            epoll,
            interrupts,
            turn: Turn::default(),
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

    /// Takes events, and waits for the first until `timeout`; how many there were.
    fn take_events(&self, events: &mut [Event; BATCH], timeout: Option<Duration>) -> usize {
        let taken = match timeout {
            Some(timeout) if !timeout.is_zero() => self.wait_exactly(events, timeout),
            _ => {
                let at_once = timeout.map(|_| Timespec::default());
                epoll::wait(&self.epoll, &mut events[..], at_once.as_ref())
            }
        };
        // A signal came, or there are some.
        taken.unwrap_or(0)
    }

    /// As [`epoll::wait`], to the nanosecond. That rounds up to milliseconds, and a timer would be late. So it is where
    /// the kernel is older than Linux 5.11.
    fn wait_exactly(&self, events: &mut [Event; BATCH], timeout: Duration) -> Result<usize, Errno> {
        let longest = Timespec {
            tv_sec: i64::MAX,
            tv_nsec: 0,
        };
        let timeout = Timespec::try_from(timeout).unwrap_or(longest);
        // SAFETY: W2: the kernel writes up to `BATCH` events, and reads a time.
        let taken = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.epoll.as_raw_fd(),
                events.as_mut_ptr(),
                BATCH,
                &raw const timeout,
                std::ptr::null::<libc::sigset_t>(),
                0_usize,
            )
        };
        match usize::try_from(taken) {
            Ok(taken) => Ok(taken),
            Err(_)
                if Errno::from_io_error(&std::io::Error::last_os_error()) == Some(Errno::NOSYS) =>
            {
                epoll::wait(&self.epoll, &mut events[..], Some(&timeout))
            }
            Err(_) => Err(Errno::INTR),
        }
    }

    /// Waits for events and queues what is due for them; how many there were, and whether one was an interrupt.
    fn wait(&self, timeout: Option<Duration>) -> (usize, bool) {
        let none = Event {
            flags: EventFlags::empty(),
            data: EventData::new_u64(0),
        };
        let mut space = [none; BATCH];
        let taken = self.take_events(&mut space, timeout);
        let events = &space[..taken];
        let is_interrupt = |event: &&Event| event.data.u64() == INTERRUPT;
        let interrupts = events.iter().filter(is_interrupt).count();
        if taken > interrupts {
            self.with(|table| {
                for event in events.iter().filter(|event| !is_interrupt(event)) {
                    table.take_event(&self.epoll, *event);
                }
                table.due.make_contiguous().sort_unstable();
            });
        }
        (taken, interrupts > 0)
    }

    /// Queues what is due now; whether there were events.
    fn look(&self) -> bool {
        let mut has_taken = false;
        loop {
            let (taken, is_interrupt) = self.wait(Some(Duration::ZERO));
            // An interrupt is no event that would come again soon.
            has_taken |= taken > usize::from(is_interrupt);
            if taken < BATCH {
                return has_taken;
            }
        }
    }

    /// As [`Poller::look`], unless somebody waits for events; whether it has looked.
    fn look_unless_waited(&self) -> bool {
        let looks = !self.turn.is_waited();
        if looks && self.look() {
            self.turn.note_events();
        }
        looks
    }

    /// Waits until there is an event or an interrupt, for the schedulers that run processes, and has one of them take it.
    fn keep_watch(&self) {
        let mut fds = [PollFd::new(&self.epoll, PollFlags::IN)];
        // An error, as of a signal that came, ends the watch for nothing.
        let _ = rustix::event::poll(&mut fds, None);
        self.turn.end_watch();
        let Some(waiting) = self.take_turn() else {
            // A scheduler that waits has seen it, too.
            return;
        };
        // An interrupt for one that waits no more would end each watch at once, and all would look for nothing.
        self.take_interrupts_back();
        // Before the wake-up: whom it wakes takes the turn, also one that has not got it just now and sleeps.
        drop(waiting);
        wake();
    }

    fn take_interrupts_back(&self) {
        // They are a count, which is taken back whole.
        let _ = rustix::io::read(&self.interrupts, &mut [0; 8]);
    }

    /// Waits until something is due, an interrupt comes, or `timeout` has passed. Only whoever has the turn may.
    fn wait_in_turn(&self, timeout: Option<Duration>) {
        let (_, is_interrupted) = self.wait(timeout);
        if is_interrupted {
            self.take_interrupts_back();
        }
    }

    fn take_turn(&self) -> Option<Waiting<'_>> {
        // Made only where the turn was taken: whoever drops it gives the turn back.
        self.turn.take().then(|| Waiting(self))
    }

    fn interrupt(&self) {
        // A count that is full interrupts, too.
        let _ = rustix::io::write(&self.interrupts, &1_u64.to_ne_bytes());
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

/// Queues what is ready, for a scheduler that has nothing else to run: most often there is something, and it need not
/// go to sleep for it.
pub fn look_before_sleep() {
    let Some(poller) = POLLER.get().filter(|_| !is_by_scheduler()) else {
        return;
    };
    if poller.table.lock().others != 0 && !poller.turn.is_taken() {
        poller.look();
    }
}

/// Queues what is ready, for a scheduler that goes on running processes; `false` where another thread waits for it. The
/// scheduler asks again then: that takes no system call, and when the other has seen something, this one looks at once.
#[inline]
pub fn look_between_slices() -> bool {
    let poller = POLLER.get().filter(|_| !is_by_scheduler());
    poller.is_some_and(Poller::look_unless_waited)
}

/// The turn to wait for descriptors, until it is dropped.
pub struct Waiting<'a>(&'a Poller);

impl Waiting<'_> {
    /// Waits until something is due, [`interrupt`] is called, or `timeout` has passed. May return without cause.
    pub fn wait(&self, timeout: Option<Duration>) {
        self.0.wait_in_turn(timeout);
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.turn.give_back();
    }
}

/// The turn to wait for descriptors. `None` while another has it, or where nothing was watched yet.
#[must_use]
pub fn take_turn() -> Option<Waiting<'static>> {
    let poller = POLLER.get().filter(|_| !is_by_scheduler())?;
    poller.take_turn()
}

/// Ends the wait of whoever has the turn, or else the next wait at once.
pub fn interrupt() {
    if let Some(poller) = POLLER.get() {
        poller.interrupt();
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
                .spawn(|| glance_for_ever(poller))
                .expect("a thread can be started");
        });
    }
    poller
}

fn glance_for_ever(poller: &Poller) {
    let mut seen = None;
    loop {
        if poller.turn.begins_watch(&mut seen) {
            poller.keep_watch();
        }
        std::thread::sleep(GLANCES);
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
