//! Messages about descriptors that are ready (`enif_select()`).
//!
//! A descriptor has one resource, from the first time that something is waited for until the resource stops it. The
//! resource lives as long. It waits for data, for room and for errors, each for one process and one message, which is
//! sent once.
//! Differs from ERTS: an error ends a wait for data or room too, where it is waited for by itself.

use std::ffi::{c_int, c_void};
use std::os::fd::RawFd;
use std::sync::Arc;

use parking_lot::Mutex;

use super::resource::{Resource, call_with_env};
use super::{Env, api, term};
use crate::hash::{FxBuildHasher, HashMap};
use crate::heap::{Heap, MagicBinary, Message};
use crate::process::{SYSTEM, Signal, deliver};
use crate::sys::chance::poll::{self, Interest, Ready, WatchId};
use crate::term::{Pid, RawTerm, am};

const READ: c_int = 1;
const WRITE: c_int = 2;
const STOP: c_int = 4;
const CANCEL: c_int = 8;
const CUSTOM_MESSAGE: c_int = 16;
const ERROR: c_int = 32;

/// What `enif_select()` returns.
mod told {
    use std::ffi::c_int;
    pub(super) const STOP_CALLED: c_int = 1;
    pub(super) const INVALID_EVENT: c_int = c_int::MIN | 4;
    pub(super) const READ_CANCELLED: c_int = 16;
    pub(super) const WRITE_CANCELLED: c_int = 32;
    pub(super) const ERROR_CANCELLED: c_int = 64;
}

/// What is waited for on a descriptor.
struct Waits {
    /// Keeps the resource.
    _magic: Arc<MagicBinary>,
    read: Option<WatchId>,
    write: Option<WatchId>,
    error: Option<WatchId>,
}

impl Waits {
    fn of(&mut self, interest: Interest) -> &mut Option<WatchId> {
        match interest {
            Interest::Read => &mut self.read,
            Interest::Write => &mut self.write,
            Interest::Error => &mut self.error,
        }
    }
}

type Table = HashMap<RawFd, Waits>;

static WAITS: Mutex<Table> = Mutex::new(HashMap::with_hasher(FxBuildHasher));

/// A message that goes to a process when a descriptor is ready.
struct Tell {
    to: Pid,
    message: Mutex<Option<Message>>,
}

impl Ready for Tell {
    fn ready(self: Arc<Self>, _fd: RawFd, _interest: Interest) {
        if let Some(message) = self.message.lock().take() {
            deliver(self.to, Signal::own(message, SYSTEM));
        }
    }
}

/// `{select, Object, Reference, What}`.
fn select_message(magic: &Arc<MagicBinary>, reference: RawTerm, interest: Interest) -> Message {
    let heap = Heap::detached();
    let what = match interest {
        Interest::Read => am::ready_input,
        Interest::Write => am::ready_output,
        Interest::Error => am::ready_error,
    };
    // SAFETY: N1.
    let reference = unsafe { term(reference) };
    let object = heap.magic_reference(magic.clone());
    Message::of_tuple(&[am::select.term(), object, reference, what.term()])
}

/// Has a message sent when `fd` is ready, in place of the one before.
fn wait(fd: RawFd, magic: &Arc<MagicBinary>, interest: Interest, to: Pid, message: Message) {
    let mut table = WAITS.lock();
    let new = || Waits {
        _magic: magic.clone(),
        read: None,
        write: None,
        error: None,
    };
    let waits = table.entry(fd).or_insert_with(new);
    if let Some(before) = waits.of(interest).take() {
        poll::unwatch(before);
    }
    let message = Mutex::new(Some(message));
    *waits.of(interest) = Some(poll::watch(fd, interest, Arc::new(Tell { to, message })));
}

/// Takes what is waited for back; whether it was before the message was sent.
fn cancel(fd: RawFd, interest: Interest) -> bool {
    let mut table = WAITS.lock();
    let watch = table
        .get_mut(&fd)
        .and_then(|waits| waits.of(interest).take());
    watch.is_some_and(poll::unwatch)
}

/// Waits for nothing any more; the library may close the descriptor.
fn stop(fd: RawFd, resource: &Resource) {
    let waits = WAITS.lock().remove(&fd);
    for watch in waits
        .iter()
        .flat_map(|waits| [waits.read, waits.write, waits.error])
        .flatten()
    {
        poll::unwatch(watch);
    }
    let owner = resource.of_type.owner();
    if let Some(stop) = owner.callbacks.stop {
        call_with_env(&owner, |env| {
            // SAFETY: N1: the library's own function, for an object of its type.
            unsafe { stop(env, resource.object(), fd, 1) }
        });
    }
}

/// What is asked for of those that `mode` has.
fn interests(mode: c_int) -> impl Iterator<Item = Interest> {
    let all = [
        (READ, Interest::Read),
        (WRITE, Interest::Write),
        (ERROR, Interest::Error),
    ];
    all.into_iter()
        .filter(move |(bit, _)| mode & bit != 0)
        .map(|(_, interest)| interest)
}

/// # Safety
/// N1, NF1.
unsafe fn select(
    e: *mut Env,
    fd: RawFd,
    mode: c_int,
    object: *mut c_void,
    pid: *const RawTerm,
    message: impl Fn(&Arc<MagicBinary>, Interest) -> Message,
) -> c_int {
    // SAFETY: by contract.
    let (resource, to) = unsafe {
        let to = match pid.as_ref() {
            Some(pid) => term(*pid).as_pid(),
            None => e.as_ref().and_then(Env::process).map(|p| p.pid()),
        };
        (Resource::of(object), to)
    };
    if fd < 0 {
        return told::INVALID_EVENT;
    }
    if mode & STOP != 0 {
        stop(fd, resource);
        return told::STOP_CALLED;
    }
    if mode & CANCEL != 0 {
        let cancelled = interests(mode).filter(|interest| cancel(fd, *interest));
        return cancelled.fold(0, |all, interest| {
            all | match interest {
                Interest::Read => told::READ_CANCELLED,
                Interest::Write => told::WRITE_CANCELLED,
                Interest::Error => told::ERROR_CANCELLED,
            }
        });
    }
    let Some(to) = to else {
        return told::INVALID_EVENT;
    };
    // SAFETY: by contract.
    let magic = unsafe { Resource::magic_of(object) };
    for interest in interests(mode) {
        wait(fd, &magic, interest, to, message(&magic, interest));
    }
    0
}

api! {
    /// Has `{select, Object, Reference, ready_input | ready_output | ready_error}` sent when a descriptor is ready; or another message.
    fn enif_select(
        e: *mut Env, fd: c_int, mode: c_int, object: *mut c_void, pid: *const RawTerm, reference: RawTerm,
    ) -> c_int {
        select(e, fd, mode, object, pid, |magic, interest| match mode & CUSTOM_MESSAGE != 0 {
            true => Message::copy_of(term(reference)),
            false => select_message(magic, reference, interest),
        })
    }
    /// As `enif_select`, with a message of an environment of its own, which is empty afterwards.
    fn enif_select_x(
        e: *mut Env, fd: c_int, mode: c_int, object: *mut c_void, pid: *const RawTerm, message: RawTerm,
        message_env: *mut Env,
    ) -> c_int {
        let told = select(e, fd, mode, object, pid, |_, _| Message::copy_of(term(message)));
        if told >= 0 && !message_env.is_null() && message_env != e {
            super::environment::clear(message_env);
        }
        told
    }
}
