//! `erlang:system_profile/2`: tells a process or a port when processes, ports and schedulers begin to have something to
//! do, and when they have nothing more. Source: `profile_*()` in `erl_trace.c`, OTP 29.
//!
//! One lock puts the events in order: the change of a process's state and the event that tells of it are one step under
//! the lock. While nobody asks for events, nothing is locked and nothing told.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};

use parking_lot::Mutex;

use crate::external::{self, EncodeOptions};
use crate::heap::{Heap, Message};
pub(crate) use crate::process::probe::{ASKED, asks};
use crate::process::{self, ProcShared, Process, SYSTEM, Signal, ports};
use crate::sched::run_state::EndRun;
use crate::term::{Atom, Pid, Port, Term, am};
use crate::trace::session::tracer::{Timestamp, TracerId};

pub(crate) use crate::process::probe::PROCS;
/// `runnable_ports`.
pub(crate) const PORTS: u8 = 2;
/// `scheduler`.
pub(crate) const SCHEDULER: u8 = 4;
/// `exclusive`: a process is inactive while it calls a port.
pub(crate) const EXCLUSIVE: u8 = 8;

/// The receiver of events, and which it gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Profile {
    /// A process or a port.
    pub(crate) receiver: Option<TracerId>,
    /// [`PROCS`] and its like.
    pub(crate) asked: u8,
    pub(crate) timestamp: Timestamp,
}

impl Profile {
    const OFF: Profile = Profile {
        receiver: None,
        asked: 0,
        timestamp: Timestamp::Now,
    };
}

struct State {
    profile: Profile,
    /// Schedulers that have something to do, as far as events have told.
    active_schedulers: usize,
}

static STATE: Mutex<State> = Mutex::new(State {
    profile: Profile::OFF,
    active_schedulers: 0,
});
/// The receiver, where it is a process: it is not told of itself, and is woken under the lock.
static RECEIVER: AtomicU64 = AtomicU64::new(crate::sched::ptab::INVALID_DATA);

/// What is set now.
pub(crate) fn get() -> Profile {
    STATE.lock().profile
}

/// Sets the profiler and what it hears of; returns what was set before.
pub(crate) fn set(profile: Profile) -> Profile {
    let mut state = STATE.lock();
    if profile.asked & SCHEDULER != 0 {
        state.active_schedulers = crate::sched::schedulers_at_work();
    }
    state.replace(profile)
}

/// Ends it; what was set.
pub(crate) fn clear() -> Profile {
    set(Profile::OFF)
}

/// A process is no more.
pub(crate) fn exited(pid: Pid) {
    if is_receiver(pid) {
        let mut state = STATE.lock();
        if state.profile.receiver == Some(TracerId::Process(pid)) {
            state.replace(Profile::OFF);
        }
    }
}

fn is_receiver(pid: Pid) -> bool {
    RECEIVER.load(Ordering::Relaxed) == pid.0
}

impl State {
    fn replace(&mut self, profile: Profile) -> Profile {
        let receiver = match profile.receiver {
            Some(TracerId::Process(pid)) => pid.0,
            _ => crate::sched::ptab::INVALID_DATA,
        };
        RECEIVER.store(receiver, Ordering::Relaxed);
        ASKED.store(profile.asked, Ordering::Relaxed);
        std::mem::replace(&mut self.profile, profile)
    }

    /// Tells `{profile, Parts.., Timestamp}`, if `what` is asked for still.
    fn tell(&mut self, what: u8, parts: &[Term<'_>]) {
        if self.profile.asked & what == 0 {
            return;
        }
        let heap = Heap::detached();
        let mut all = vec![am::profile.term()];
        all.extend_from_slice(parts);
        all.push(self.profile.timestamp.term(&heap));
        let message = Message::of_tuple(&all);
        match self.profile.receiver {
            Some(TracerId::Process(pid)) => {
                let sent = process::send(pid, Signal::own(message, SYSTEM));
                sent.unwrap_or_else(|_| {
                    self.replace(Profile::OFF);
                });
            }
            Some(TracerId::Port(port)) => {
                if let Ok(bytes) = external::encode(message.term(), EncodeOptions::default()) {
                    // The thread lives as long as the machine.
                    let _ = to_ports().send((port, bytes));
                }
            }
            _ => {}
        }
    }

    fn process(&mut self, pid: Pid, status: Atom, place: Term<'_>) {
        self.tell(PROCS, &[pid.term(), status.term(), place]);
    }
}

/// The thread that brings messages to ports: the maker of an event may hold the lock of a port.
fn to_ports() -> &'static Sender<(Port, Vec<u8>)> {
    static QUEUE: OnceLock<Sender<(Port, Vec<u8>)>> = OnceLock::new();
    QUEUE.get_or_init(|| {
        let (queue, messages) = channel::<(Port, Vec<u8>)>();
        let bring = move || {
            for (port, bytes) in messages {
                if ports::exists(port) {
                    ports::command(port, bytes);
                    continue;
                }
                let mut state = STATE.lock();
                if state.profile.receiver == Some(TracerId::Port(port)) {
                    state.replace(Profile::OFF);
                }
            }
        };
        std::thread::Builder::new()
            .name("sys_msg_dispatcher".to_owned())
            .spawn(bring)
            .expect("a thread for messages to ports");
        queue
    })
}

/// Where a process is: `{M, F, A}`, or 0 for one that exits or runs no code.
pub(crate) fn place(p: &Process) -> Message {
    let place = match p.is_exiting() {
        true => Term::small(0),
        false => crate::exec::exception::where_is(p, am::current_function),
    };
    Message::copy_of(match place.as_tuple() {
        Some(_) => place,
        None => Term::small(0),
    })
}

/// Wakes a process with `wake`, and tells that it has become active if it has; `place` is where it is then.
#[cold]
pub(crate) fn wake(
    pid: Pid,
    wake: impl FnOnce() -> bool,
    place: impl FnOnce() -> Option<Message>,
) -> bool {
    if is_receiver(pid) {
        return wake();
    }
    let mut state = STATE.lock();
    let woken = wake();
    if woken && let Some(place) = place() {
        state.process(pid, am::active, place.term());
    }
    woken
}

/// As `run_state.end_run(again)`, and tells that the process has become inactive if so.
#[cold]
pub(crate) fn end_run(shared: &ProcShared, again: bool, place: &Message) -> EndRun {
    if is_receiver(shared.pid()) {
        return shared.run_state.end_run(again);
    }
    let mut state = STATE.lock();
    let end = shared.run_state.end_run(again);
    if end == EndRun::Idle {
        state.process(shared.pid(), am::inactive, place.term());
    }
    end
}

/// Where `p` is as its time slice ends, if somebody wants to hear of it.
#[inline]
pub(crate) fn place_of_slice_end(p: &Process) -> Option<Message> {
    asks(PROCS).then(|| place(p))
}

/// The last time slice of `p` ends.
pub(crate) fn last_slice_ended(p: &Process) {
    if asks(PROCS) && !is_receiver(p.pid()) {
        let mut state = STATE.lock();
        state.process(p.pid(), am::inactive, Term::small(0));
    }
}

/// Scheduler `id` has something to do, or nothing more.
#[inline]
pub(crate) fn scheduler(id: usize, is_active: bool) {
    if asks(SCHEDULER) {
        tell_scheduler(id, is_active);
    }
}

#[cold]
fn tell_scheduler(id: usize, is_active: bool) {
    let mut state = STATE.lock();
    let (status, active) = match is_active {
        true => (am::active, state.active_schedulers + 1),
        false => (am::inactive, state.active_schedulers.saturating_sub(1)),
    };
    state.active_schedulers = active;
    let number = Term::small(id as i64 + 1);
    let active = Term::small(active as i64);
    state.tell(
        SCHEDULER,
        &[am::scheduler.term(), number, status.term(), active],
    );
}

/// A port that has something to do, until this is dropped.
pub(crate) struct PortRuns(Port);

/// `port` begins to do something.
#[inline]
pub(crate) fn port_runs(port: Port) -> Option<PortRuns> {
    asks(PORTS).then(|| {
        tell_port(port, am::active);
        PortRuns(port)
    })
}

impl Drop for PortRuns {
    fn drop(&mut self) {
        tell_port(self.0, am::inactive);
    }
}

#[cold]
fn tell_port(port: Port, status: Atom) {
    let mut state = STATE.lock();
    if state.profile.receiver != Some(TracerId::Port(port)) {
        state.tell(PORTS, &[port.term(), status.term(), Term::small(0)]);
    }
}

/// A process that calls a port, until this is dropped.
pub(crate) struct PortCall<'p>(&'p Process);

/// `p` calls a port: with `exclusive` it is not active meanwhile.
#[inline]
pub(crate) fn begin_port_call(p: &Process) -> Option<PortCall<'_>> {
    let asked = asks(PROCS) && asks(EXCLUSIVE) && !is_receiver(p.pid());
    asked.then(|| {
        STATE.lock().process(p.pid(), am::inactive, place(p).term());
        PortCall(p)
    })
}

impl Drop for PortCall<'_> {
    fn drop(&mut self) {
        let place = place(self.0);
        STATE.lock().process(self.0.pid(), am::active, place.term());
    }
}
