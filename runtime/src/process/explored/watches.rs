//! Who is told of whose end in an explored run: monitors and links, and the order of what depends on an end.
//!
//! What a process is told where it monitors, or links to, another one depends on whether that one has ended. So its end is
//! a change of an object of its own, and a monitor or a link a read of this.

use parking_lot::Mutex;

use super::super::access::{Access, Object, Part, Shared, Touch};
use super::super::refs::RefNumbers;
use super::super::{Control, Process, exists};
use super::{is_on, kept};
use crate::hash::HashMap;
use crate::term::Pid;

/// A monitor or a link: a process is told of the end of another one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watch {
    pub(crate) by: Pid,
    pub(crate) whom: Pid,
    /// The monitor, if it is one.
    monitor: Option<RefNumbers>,
    /// How many receives the watcher had made when it gave it up, if no message of it could be left then.
    pub(crate) until: Option<u32>,
    is_over: bool,
}

impl Watch {
    pub(crate) fn is_link(&self) -> bool {
        self.monitor.is_none()
    }
}

/// What stands for the end of each process, and for that of nobody.
static ENDS: Mutex<Option<HashMap<Pid, &'static Object>>> = Mutex::new(None);
static NOBODY: Object = Object::new();

/// `p` is about to do what depends on whether another process has ended: it links to it, or monitors it.
///
/// # Errors
/// As [`Process::accesses`].
pub(crate) fn looks_for(p: &Process, of: Pid) -> Result<(), Control<'static>> {
    match is_on() && of != p.pid() {
        true => p.accesses(end_of(of, Access::Read)),
        false => Ok(()),
    }
}

/// What a process reads that is to watch who has a name, where nobody has it.
pub(in crate::process) fn end_of_nobody() -> Touch<'static> {
    Touch {
        object: &NOBODY,
        access: Access::Read,
        shared: Shared::Nobody,
        part: Part::All,
    }
}

/// `p` has ended, and is about to be gone for all others.
///
/// # Errors
/// As [`Process::accesses`].
pub(in crate::process) fn goes(p: &Process) -> Result<(), Control<'static>> {
    match is_on() {
        true => p.accesses(end_of(p.pid(), Access::Write)),
        false => Ok(()),
    }
}

/// An access to what stands for the end of a process. A run has one thread: no lock guards it.
fn end_of(pid: Pid, access: Access) -> Touch<'static> {
    let mut ends = ENDS.lock();
    let object = ends.get_or_insert_default().entry(pid);
    Touch {
        object: object.or_insert_with(|| Box::leak(Box::default())),
        access,
        shared: Shared::Process,
        part: Part::All,
    }
}

/// A process monitors another one.
pub(crate) fn monitors(by: Pid, whom: Pid, reference: RefNumbers) {
    if is_on() && exists(whom) {
        watches(by, whom, Some(reference));
    }
}

/// A process links to another one: each is told of the end of the other.
pub(crate) fn links(one: Pid, other: Pid) {
    if is_on() && exists(other) {
        watches(one, other, None);
        watches(other, one, None);
    }
}

fn watches(by: Pid, whom: Pid, monitor: Option<RefNumbers>) {
    kept(|kept| {
        kept.watches.push(Watch {
            by,
            whom,
            monitor,
            until: None,
            is_over: false,
        });
    });
}

/// A process gives up a monitor. With `keeps`, the message of an end that came before stays in its queue.
pub(crate) fn gives_up_monitor(by: Pid, reference: RefNumbers, keeps: bool) {
    gives_up(keeps, |watch| {
        watch.by == by && watch.monitor == Some(reference)
    });
}

/// A process gives up a link.
pub(in crate::process) fn gives_up_link(by: Pid, whom: Pid) {
    gives_up(true, |watch| {
        watch.is_link() && watch.by == by && watch.whom == whom
    });
}

fn gives_up(keeps: bool, is_it: impl Fn(&Watch) -> bool) {
    if !is_on() {
        return;
    }
    kept(|kept| {
        let mut watches = kept.watches.iter_mut();
        let Some(watch) = watches.find(|watch| !watch.is_over && is_it(watch)) else {
            return;
        };
        watch.is_over = true;
        let receives = kept.receives.get(&watch.by).copied().unwrap_or(0);
        watch.until = (!keeps).then_some(receives);
    });
}
