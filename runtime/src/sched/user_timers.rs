//! Timers of `erlang:start_timer` and `erlang:send_after`, by their references.

use std::collections::HashMap;
use std::sync::OnceLock;

use parking_lot::Mutex;

use super::clock::monotonic_ns;
use super::timers::{self, Fire, TimerId};
use crate::heap::Message;
use crate::process::refs::{RefNumbers, make_ref};
use crate::process::registry::{Named, whereis};
use crate::process::{Signal, exists, send};
use crate::term::{Atom, Pid};

/// Who gets a timer's message.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Receiver {
    Pid(Pid),
    /// Whoever has the name when the timer goes off.
    Name(Atom),
}

struct UserTimer {
    receiver: Receiver,
    message: Message,
    wheel: Option<TimerId>,
    deadline_ns: u64,
}

const SHARDS: usize = 64;
type Shard = Mutex<HashMap<RefNumbers, UserTimer>>;

fn shard(reference: RefNumbers) -> &'static Shard {
    static TIMERS: OnceLock<Box<[Shard]>> = OnceLock::new();
    let shards = TIMERS.get_or_init(|| (0..SHARDS).map(|_| Shard::default()).collect());
    &shards[reference[0] as usize % SHARDS]
}

/// Sets a timer for `deadline_ns`; `message` is made with the reference that names the timer.
pub(crate) fn start(
    deadline_ns: u64,
    receiver: Receiver,
    message: impl FnOnce(RefNumbers) -> Message,
) -> RefNumbers {
    let reference = make_ref();
    let mut shard = shard(reference).lock();
    let timer = UserTimer {
        receiver,
        message: message(reference),
        wheel: None,
        deadline_ns,
    };
    // In the table first: it may go off at once, and then waits for the lock held here.
    let timer = shard.entry(reference).insert_entry(timer).into_mut();
    timer.wheel = Some(timers::set(deadline_ns, Fire::User(reference)));
    reference
}

/// Cancels a timer; the milliseconds that were left.
pub(crate) fn cancel(reference: RefNumbers) -> Option<u64> {
    let timer = shard(reference).lock().remove(&reference)?;
    if let Some(wheel) = timer.wheel {
        timers::cancel(wheel);
    }
    timer.is_wanted().then(|| timer.left_ms())
}

/// The milliseconds left of a timer.
pub(crate) fn read(reference: RefNumbers) -> Option<u64> {
    let shard = shard(reference).lock();
    let timer = shard.get(&reference)?;
    timer.is_wanted().then(|| timer.left_ms())
}

impl UserTimer {
    /// A timer ends with the process that it is for.
    fn is_wanted(&self) -> bool {
        match self.receiver {
            Receiver::Pid(pid) => exists(pid),
            Receiver::Name(_) => true,
        }
    }

    fn left_ms(&self) -> u64 {
        let left = self.deadline_ns.saturating_sub(monotonic_ns());
        left.div_ceil(1_000_000)
    }
}

/// A timer goes off.
pub(super) fn fire(reference: RefNumbers) {
    let Some(timer) = shard(reference).lock().remove(&reference) else {
        return;
    };
    let pid = match timer.receiver {
        Receiver::Pid(pid) => Some(pid),
        Receiver::Name(name) => match whereis(name) {
            Some(Named::Process(pid)) => Some(pid),
            _ => None,
        },
    };
    if let Some(pid) = pid {
        let message = timer.message;
        // Gone: then nobody waits for it.
        let _ = send(
            pid,
            Signal::Message {
                message,
                from: crate::process::SYSTEM,
            },
        );
    }
}
