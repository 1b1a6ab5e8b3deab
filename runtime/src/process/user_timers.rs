//! The timers of `erlang:start_timer` and `erlang:send_after`, by their references.

use std::sync::OnceLock;

use parking_lot::Mutex;

use super::order::replay::Receiver as Recorded;
use super::order::{explore, replay};
use crate::hash::HashMap;
use crate::heap::Message;
use crate::process::order::Setting;
use crate::process::refs::{RefNumbers, make_ref};
use crate::process::registry::{Named, whereis};
use crate::process::{ProcShared, SYSTEM, Signal, TimerState, lookup, send};
use crate::sched::ptab::pin;
use crate::sched::timers::{self, Fire, TimerId};
use crate::sys::chance::clock::monotonic_ns;
use crate::term::{Atom, Pid};

/// The receiver of a timer's message.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Receiver {
    Pid(Pid),
    /// Whoever has the name when the timer goes off.
    Name(Atom),
}

struct UserTimer {
    receiver: Receiver,
    set: Setting,
    message: Message,
    when: When,
}

/// When a timer goes off.
#[derive(Clone, Copy)]
enum When {
    /// At a time of [`monotonic_ns`].
    At(u64, Option<TimerId>),
    /// Nanoseconds from when it runs again.
    Paused(u64),
}

/// How long a timer of a recorded run waits for a receiver that is not there yet.
const LATER_NS: u64 = 1_000_000;

const SHARDS: usize = 64;
type Shard = Mutex<HashMap<RefNumbers, UserTimer>>;

fn shard(reference: RefNumbers) -> &'static Shard {
    static TIMERS: OnceLock<Box<[Shard]>> = OnceLock::new();
    let shards = TIMERS.get_or_init(|| (0..SHARDS).map(|_| Shard::default()).collect());
    &shards[reference[0] as usize % SHARDS]
}

/// Has a timer, which is set so, go off at `deadline_ns`; `message` is made with the reference that names the timer. One for a
/// process that is gone is none.
pub(crate) fn start(
    set: Setting,
    deadline_ns: u64,
    receiver: Receiver,
    message: impl FnOnce(RefNumbers) -> Message,
) -> RefNumbers {
    let reference = make_ref();
    // A replay does not wait for one whose message came: its receiver takes that in its turn.
    let deadline_ns = match replay::receiver_of_timer(set) {
        Some(_) => monotonic_ns(),
        None => deadline_ns,
    };
    let mut shard = shard(reference).lock();
    let timer = UserTimer {
        receiver,
        set,
        message: message(reference),
        when: When::Paused(deadline_ns.saturating_sub(monotonic_ns())),
    };
    let state = timer.of_process(TimerState::Runs, |process| process.add_timer(reference));
    if state == TimerState::Gone {
        return reference;
    }
    // In the table first: it may go off at once, and then waits for the lock held here.
    let timer = shard.entry(reference).insert_entry(timer).into_mut();
    if state == TimerState::Runs {
        timer.run(reference, deadline_ns);
    }
    reference
}

/// Cancels a timer; the milliseconds that were left. One whose message came in a recorded run that is followed had gone off
/// by then.
pub(crate) fn cancel(reference: RefNumbers) -> Option<u64> {
    let mut shard = shard(reference).lock();
    if replay::receiver_of_timer(shard.get(&reference)?.set).is_some() {
        return None;
    }
    let timer = shard.remove(&reference)?;
    drop(shard);
    explore::note_due(reference);
    if let When::At(_, Some(wheel)) = timer.when {
        timers::cancel(wheel);
    }
    timer.forget(reference);
    Some(timer.left_ms())
}

/// The milliseconds left of a timer.
pub(crate) fn read(reference: RefNumbers) -> Option<u64> {
    let shard = shard(reference).lock();
    shard.get(&reference).map(UserTimer::left_ms)
}

impl Receiver {
    /// The process that it is now, if any.
    pub(super) fn process(self) -> Option<Pid> {
        match self {
            Receiver::Pid(pid) => Some(pid),
            Receiver::Name(name) => match whereis(name) {
                Some(Named::Process(pid)) => Some(pid),
                _ => None,
            },
        }
    }
}

impl UserTimer {
    /// What `then` says of the process that the timer is for; `Gone` for one that is; `else_` where it is
    /// for a name.
    fn of_process(
        &self,
        else_: TimerState,
        then: impl FnOnce(&ProcShared) -> TimerState,
    ) -> TimerState {
        match self.receiver {
            Receiver::Pid(pid) => lookup(pid, &pin()).map_or(TimerState::Gone, then),
            Receiver::Name(_) => else_,
        }
    }

    /// The receiver of its message in a recorded run that is followed, if the timer is for a name: which process has
    /// the name at that time is chance.
    fn recorded_receiver(&self) -> Option<Recorded> {
        match self.receiver {
            Receiver::Name(_) => replay::receiver_of_timer(self.set),
            Receiver::Pid(_) => None,
        }
    }

    /// Has it go off at a time.
    fn run(&mut self, reference: RefNumbers, deadline_ns: u64) {
        let wheel = timers::set(deadline_ns, Fire::User(reference));
        self.when = When::At(deadline_ns, Some(wheel));
    }

    /// The process that it is for need not end it any more.
    fn forget(&self, reference: RefNumbers) {
        if let Receiver::Pid(pid) = self.receiver
            && let Some(process) = lookup(pid, &pin())
        {
            process.remove_timer(reference);
        }
    }

    fn left_ms(&self) -> u64 {
        let left = match self.when {
            When::At(deadline_ns, _) => deadline_ns.saturating_sub(monotonic_ns()),
            When::Paused(left_ns) => left_ns,
        };
        left.div_ceil(1_000_000)
    }
}

/// Has a timer stand still; one that is going off does.
pub(crate) fn pause(reference: RefNumbers) {
    let mut shard = shard(reference).lock();
    if let Some(timer) = shard.get_mut(&reference)
        && let When::At(deadline_ns, Some(wheel)) = timer.when
        && timers::cancel(wheel)
    {
        timer.when = When::Paused(deadline_ns.saturating_sub(monotonic_ns()));
    }
}

/// Has a timer that stands still count its time again.
pub(crate) fn resume(reference: RefNumbers) {
    let mut shard = shard(reference).lock();
    if let Some(timer) = shard.get_mut(&reference)
        && let When::Paused(left_ns) = timer.when
    {
        timer.run(reference, monotonic_ns().saturating_add(left_ns));
    }
}

/// When a timer goes off, while it runs.
pub(super) fn deadline_ns(reference: RefNumbers) -> Option<u64> {
    match shard(reference).lock().get(&reference)?.when {
        When::At(deadline_ns, _) => Some(deadline_ns),
        When::Paused(_) => None,
    }
}

/// Shows the receiver and the message of each timer.
pub(crate) fn each(show: &mut dyn FnMut(Receiver, &Message)) {
    for number in 0..SHARDS {
        let shard = shard([number as u32, 0, 0]).lock();
        let timers = shard.values();
        timers.for_each(|timer| show(timer.receiver, &timer.message));
    }
}

/// Whether a timer has neither gone off nor been cancelled.
pub(crate) fn is_there(reference: RefNumbers) -> bool {
    shard(reference).lock().contains_key(&reference)
}

/// The time of a timer has come: it goes off, or its process does, where it is one.
pub(crate) fn fire(reference: RefNumbers) {
    if !explore::note_due(reference) {
        go_off(reference, None);
    }
}

/// A timer goes off; with the end of this process, where it is one.
pub(crate) fn go_off(reference: RefNumbers, process: Option<Pid>) {
    let mut shard = shard(reference).lock();
    let Some(timer) = shard.get_mut(&reference) else {
        return;
    };
    let receiver = match timer.recorded_receiver() {
        Some(Recorded::Later) => {
            timer.run(reference, monotonic_ns().saturating_add(LATER_NS));
            return;
        }
        Some(Recorded::Process(pid)) => Some(pid),
        None => timer.receiver.process(),
    };
    let timer = shard.remove(&reference);
    drop(shard);
    let Some(timer) = timer else { return };
    timer.forget(reference);
    if let Some(pid) = receiver {
        let signal = match process {
            Some(process) => Signal::of_timer(timer.message, process),
            None if timer.set.number != 0 => Signal::of_set_timer(timer.message, timer.set),
            None => Signal::own(timer.message, SYSTEM),
        };
        // Gone: then nobody waits for it.
        let _ = send(pid, signal);
    }
}
