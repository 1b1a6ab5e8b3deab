//! The permission to change breakpoints, and the processes that wait until a change is done.

use crate::hash::{HashMap, HashSet};

use parking_lot::Mutex;

use crate::process;
use crate::sched::{self, ptab};
use crate::term::Pid;

/// The right to change breakpoints, which one process at a time has.
///
/// A change goes on by itself, at the schedulers' quiescent points. The process that asked for it waits meanwhile, and
/// calls again.
#[derive(Default)]
struct Permission {
    busy: bool,
    /// Changes that are done, and how many functions, processes or ports they matched.
    done: HashMap<Pid, usize>,
    /// Processes whose change is under way.
    under_way: HashSet<Pid>,
    waiting: Vec<Pid>,
}

static PERMISSION: Mutex<Option<Permission>> = Mutex::new(None);

fn with<T>(use_it: impl FnOnce(&mut Permission) -> T) -> T {
    use_it(PERMISSION.lock().get_or_insert_with(Permission::default))
}

pub(in crate::trace) fn wake(pid: Pid) {
    let guard = ptab::pin();
    if let Some(process) = process::lookup(pid, &guard) {
        process.wake();
    }
}

/// The next step of a process that wants a change.
pub(crate) enum Progress {
    /// It has the permission: make the change and hand it to [`run`](crate::trace::breakpoint::change::run), or [`release`].
    Go,
    /// Its change is done; this many functions, processes or ports matched.
    Done(usize),
    /// Wait, and ask again.
    Wait,
}

/// How the change stands that a process has begun before, if it has: a BIF that waits is called again, and
/// asks for this first.
pub(crate) fn begun(pid: Pid) -> Option<Progress> {
    with(|permission| match permission.done.remove(&pid) {
        Some(matched) => Some(Progress::Done(matched)),
        None => permission
            .under_way
            .contains(&pid)
            .then_some(Progress::Wait),
    })
}

/// Has process `pid` wait until no process runs any more that may not have seen its change of flags; when it is called
/// again, it gets `matched`.
pub(crate) fn settle(pid: Pid, matched: usize) {
    begin(pid);
    sched::thread_progress().later(move || {
        end(pid, matched);
        wake(pid);
    });
}

/// Process `pid` waits for a change from now on.
pub(in crate::trace) fn begin(pid: Pid) {
    with(|permission| permission.under_way.insert(pid));
}

/// Its change is done; `matched` functions, processes or ports matched. It is still to be woken.
pub(in crate::trace) fn end(pid: Pid, matched: usize) {
    with(|permission| {
        permission.under_way.remove(&pid);
        if process::exists(pid) {
            permission.done.insert(pid, matched);
        }
    });
}

/// Asks for the permission.
pub(crate) fn seize(pid: Pid) -> Progress {
    with(|permission| {
        if permission.busy {
            permission.waiting.push(pid);
            return Progress::Wait;
        }
        permission.busy = true;
        Progress::Go
    })
}

/// Takes the permission if it is free.
pub(in crate::trace) fn try_seize() -> bool {
    with(|permission| !std::mem::replace(&mut permission.busy, true))
}

/// Gives the permission back.
pub(crate) fn release() {
    let waiting = with(|permission| {
        permission.busy = false;
        std::mem::take(&mut permission.waiting)
    });
    waiting.into_iter().for_each(wake);
}

/// Has the permission for `change`, from a thread that is no scheduler.
pub(in crate::trace) fn with_permission<T>(change: impl FnOnce() -> T) -> T {
    loop {
        if try_seize() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_micros(100));
    }
    let result = change();
    release();
    result
}
