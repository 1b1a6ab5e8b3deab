//! `trap_exit` in an explored run, and what becomes of exit signals with the reason `normal`.
//!
//! Such a signal ends no process: it becomes a message if the receiver traps exits, and is lost otherwise. So changing
//! `trap_exit` is modelled as a write to an object of its own, and sending such a signal as a read of it. What becomes of the
//! signal is settled when it is sent: there is no order in which the two are concurrent.

use beamline_orders::Ends;

use super::watches::{access_end_of, end_of};
use super::{ExitCall, Kept, RUN, TrapsChange, each_resting, kept};
use crate::process::order::access::{Access, Part, Shared, Touch};
use crate::process::order::is_explored;
use crate::process::signal::ExitSignal;
use crate::process::{Control, Process};
use crate::term::{Pid, Term, am};

/// An access to whether a process traps exits.
pub(super) fn whether_trapping(pid: Pid, access: Access) -> Touch<'static> {
    Touch {
        object: RUN.objects.traps.of(pid),
        access,
        shared: Shared::Trapping,
        name: None,
        part: Part::All,
    }
}

/// `p` is about to trap exits, or to cease to.
///
/// # Errors
/// As [`Process::access`], and where a signal is to end it first.
pub(crate) fn access_trapping(p: &Process, traps: bool) -> Result<(), Control<'static>> {
    if traps == p.flags.get().trap_exit {
        return Ok(());
    }
    if !is_explored() {
        return p.yield_if_killed_first();
    }
    p.access(whether_trapping(p.pid(), Access::Write))?;
    let access = p.accesses_made();
    let change = TrapsChange {
        by: p.pid(),
        access,
        traps,
    };
    kept(|kept| kept.traps.push(change));
    Ok(())
}

/// The processes that trap exits where no run has begun yet.
pub(crate) fn all_trapping() -> Vec<Pid> {
    let mut all = Vec::new();
    each_resting(|p| all.extend(p.flags.get().trap_exit.then(|| p.pid())));
    all
}

impl Kept {
    pub(super) fn is_trapping(&self, pid: Pid) -> bool {
        let last = self.traps.iter().rev().find(|change| change.by == pid);
        last.is_some_and(|change| change.traps)
    }
}

/// `p` is about to call `exit/2` with another process.
///
/// # Errors
/// As [`Process::access`].
pub(crate) fn access_for_exit(
    p: &Process,
    to: Pid,
    reason: Term<'_>,
) -> Result<(), Control<'static>> {
    if !is_explored() || to == p.pid() || reason != am::normal {
        return access_end_of(p, to);
    }
    p.access_all(&[end_of(to, Access::Read), whether_trapping(to, Access::Read)])
}

/// `p` calls `exit/2` with another process.
pub(in crate::process) fn note_exit_call(p: &Process, to: Pid, signal: &mut ExitSignal) {
    // What it sends to itself has no order.
    if !is_explored() || to == p.pid() {
        return;
    }
    signal.access = p.accesses_made();
    let reason = signal.reason.term();
    let ends = match () {
        () if reason == am::kill => Ends::Any,
        () if reason == am::normal => Ends::Nobody,
        () => Ends::NotTrapping,
    };
    settle(to, signal);
    if signal.traps != Some(false) {
        kept(|kept| {
            kept.exit_calls.push(ExitCall {
                by: p.pid(),
                access: signal.access,
                to,
                ends,
            })
        });
    }
}

/// What becomes of an exit signal to a process, if it has the reason `normal`.
pub(in crate::process) fn settle(to: Pid, signal: &mut ExitSignal) {
    if is_explored() && signal.reason.term() == am::normal {
        signal.traps = kept(|kept| kept.is_trapping(to));
    }
}

/// The call of `exit/2` by `from` that is this access of it is about to become a message of `p`.
pub(in crate::process) fn note_exit_arrival(p: &Process, from: Option<Pid>, access: u64) {
    if access != 0
        && let Some(from) = from
    {
        kept(|kept| {
            let number = kept.notices.get(&p.pid()).copied().unwrap_or(0) + 1;
            kept.exit_messages.insert((from, access), number);
        });
    }
}
