//! Tracing: sits beside the interpreter and is called only where a breakpoint or a flag word says so.
//!
//! A [`Session`] is what everything goes through: OTP's `trace` module by its BIFs, the profile of a run
//! ([`profile`]) and the tests. `docs/internals/tracing.md` tells how it works.

pub(crate) mod breakpoint;
mod change;
mod count;
pub(crate) mod flags;
mod halves;
mod meter;
mod node;
pub mod profile;
mod session;
#[cfg(all(test, not(loom)))]
mod tests;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use breakpoint::{Point, kind};
pub use change::{Pattern, Switch};
pub(crate) use change::{Turn, begun, find_entry, on_load, release, seize};
pub(crate) use flags::{Tracee, born, inherit};
pub use meter::Measures;
pub(crate) use meter::Meters;
pub use node::Counted;
use session::{OnLoad, Shared};

use crate::code::module::Mfa;
use crate::process::ProcShared;
use crate::term::{Atom, Pid, am};

/// Kinds of breakpoint, as a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kinds(u32);

impl Kinds {
    /// None.
    pub const NONE: Kinds = Kinds(0);
    /// All of them.
    pub const ALL: Kinds = Kinds(kind::ALL);
    /// `call_count`.
    pub const COUNT: Kinds = Kinds(kind::COUNT);
    /// `call_time`.
    pub const TIME: Kinds = Kinds(kind::TIME);
    /// `call_memory`.
    pub const MEMORY: Kinds = Kinds(kind::MEMORY);
    /// Calls are reported (`local`).
    pub const LOCAL: Kinds = Kinds(kind::LOCAL);
    /// Calls from other modules are reported (`global`).
    pub const GLOBAL: Kinds = Kinds(kind::GLOBAL);
    /// Calls by any process are reported (`meta`).
    pub const META: Kinds = Kinds(kind::META);

    /// Those of both sets.
    #[must_use]
    pub const fn and(self, other: Kinds) -> Kinds {
        Kinds(self.0 | other.0)
    }
    /// No kind is in it.
    #[must_use]
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }
    /// All of `other` is in it.
    #[must_use]
    pub const fn has(self, other: Kinds) -> bool {
        self.0 & other.0 == other.0
    }
    /// Some of `other` is in it.
    #[must_use]
    pub const fn meets(self, other: Kinds) -> bool {
        self.0 & other.0 != 0
    }
    /// It counts, and reports nothing.
    #[must_use]
    pub const fn only_counts(self) -> bool {
        self.0 != 0 && self.0 & (kind::LOCAL | kind::META | kind::GLOBAL) == 0
    }
    /// `traced` of a pattern: `global` where there is no breakpoint.
    pub(crate) fn traced(self) -> Atom {
        if self.is_none() {
            am::global
        } else {
            self.traced_at()
        }
    }
    /// `traced` of a function.
    pub(crate) fn traced_at(self) -> Atom {
        if self.meets(Kinds::GLOBAL) {
            am::global
        } else if self.meets(Kinds::LOCAL) {
            am::local
        } else {
            am::false_
        }
    }
}

/// How the pattern for new code changes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OnLoadChange {
    pub(crate) kinds: Kinds,
    pub(crate) switch: Switch,
}

/// A session.
#[derive(Clone)]
pub(crate) struct Handle(Arc<Shared>);

impl Handle {
    pub(crate) fn create(name: Atom, tracer: Option<Pid>) -> Option<Handle> {
        session::create(name, tracer, None).map(Handle)
    }
    pub(crate) fn legacy() -> Handle {
        Handle(session::legacy())
    }
    pub(crate) fn find(name: Atom, id: u64) -> Option<Handle> {
        session::find(name, id).map(Handle)
    }
    /// All sessions that are alive, oldest first.
    pub(crate) fn all() -> Vec<Handle> {
        let alive = session::all()
            .into_iter()
            .filter(|session| session.is_alive());
        alive.map(Handle).collect()
    }
    pub(crate) fn name(&self) -> Atom {
        self.0.name
    }
    pub(crate) fn id(&self) -> u64 {
        self.0.id
    }
    pub(crate) fn is_alive(&self) -> bool {
        self.0.is_alive()
    }
    pub(crate) fn tracer(&self) -> Option<Pid> {
        self.0.tracer
    }

    /// Starts to end it, for the process that has the permission, which is woken when it is done. `false`
    /// when that was begun before.
    pub(crate) fn destroy(&self, pid: Pid) -> bool {
        if self.0.id == 0 || !session::kill(&self.0) {
            return false;
        }
        let session = self.0.clone();
        change::run(change::Change::clear(&self.0), pid, move || {
            session::forget(&session)
        });
        true
    }

    /// Starts a change of breakpoints, for the process that has the permission, which is woken when it
    /// is done.
    ///
    /// # Errors
    /// When calls would be reported, which is not built.
    pub(crate) fn set_pattern(
        &self,
        pid: Pid,
        pattern: Pattern,
        switch: Switch,
        kinds: Kinds,
    ) -> Result<(), ()> {
        let reports = kinds.is_none() || kinds.meets(Kinds::LOCAL.and(Kinds::META));
        if switch == Switch::On
            && (kinds.meets(Kinds::META) || reports && flags::any_calls(&self.0))
        {
            return Err(());
        }
        let kinds = if kinds.is_none() {
            kind::GLOBAL
        } else {
            kinds.0
        };
        let change = change::Change::pattern(&self.0, pattern, switch, kinds);
        change::run(change, pid, || ());
        Ok(())
    }

    /// Changes the pattern for new code.
    ///
    /// # Errors
    /// When calls would be reported, which is not built.
    pub(crate) fn change_on_load(&self, change: OnLoadChange) -> Result<(), ()> {
        let OnLoadChange { kinds, switch } = change;
        let mut on_load = self.0.on_load.lock();
        let now = on_load.map(|on_load| on_load.kinds);
        *on_load = match switch {
            Switch::On if kinds.meets(Kinds::META) => return Err(()),
            Switch::On if kinds.is_none() => Some(OnLoad {
                kinds: kind::GLOBAL,
            }),
            Switch::On => {
                let kinds = now.unwrap_or(0) & !kind::GLOBAL | kinds.0;
                Some(OnLoad { kinds })
            }
            Switch::Off => {
                let gone = if kinds.is_none() {
                    kind::GLOBAL
                } else {
                    kinds.0
                };
                now.map(|now| now & !gone)
                    .filter(|left| *left != 0)
                    .map(|kinds| OnLoad { kinds })
            }
            // Counters of code to come neither pause nor start anew.
            Switch::Restart | Switch::Pause => *on_load,
        };
        Ok(())
    }

    /// The kinds that new code gets; none stands for `global`.
    pub(crate) fn on_load_kinds(&self) -> Option<Kinds> {
        let on_load = (*self.0.on_load.lock())?;
        Some(Kinds(on_load.kinds & !kind::GLOBAL))
    }

    /// Sets whether `send` or `receive` events are reported.
    ///
    /// # Errors
    /// When a process or port would report them now, which is not built.
    pub(crate) fn set_event(&self, send: bool, on: bool) -> Result<(), ()> {
        let flag = if send { flags::SEND } else { flags::RECEIVE };
        if on && flags::any(&self.0, flag) {
            return Err(());
        }
        let event = if send { &self.0.send } else { &self.0.receive };
        event.store(on, Ordering::Relaxed);
        Ok(())
    }
    /// Whether `send` or `receive` events are reported where a flag says so.
    pub(crate) fn event(&self, send: bool) -> bool {
        let event = if send { &self.0.send } else { &self.0.receive };
        event.load(Ordering::Relaxed)
    }
    /// As [`Handle::event`].
    pub(crate) fn has_event(&self, send: bool) -> bool {
        self.event(send)
    }

    /// Calls for no message under these flags?
    pub(crate) fn is_silent(&self, flags: u32) -> bool {
        flags::are_silent(&self.0, flags)
    }

    /// Turns flags of a process on or off; `false` when another tracer has it.
    pub(crate) fn trace_process(
        &self,
        tracee: &ProcShared,
        on: bool,
        flags: u32,
        tracer: Pid,
    ) -> bool {
        if on {
            return tracee
                .tracee
                .turn_on(&self.0, flags & flags::OF_PROCESSES, Some(tracer));
        }
        tracee.tracee.turn_off(&self.0, flags);
        true
    }
    pub(crate) fn trace_new_processes(&self, on: bool, flags: u32) {
        if on {
            self.0.new_flags.fetch_or(flags, Ordering::Relaxed);
        } else {
            self.0.new_flags.fetch_and(!flags, Ordering::Relaxed);
        }
        flags::update_new();
    }
    pub(crate) fn trace_new_ports(&self, on: bool, flags: u32) {
        if on {
            self.0.new_port_flags.fetch_or(flags, Ordering::Relaxed);
        } else {
            self.0.new_port_flags.fetch_and(!flags, Ordering::Relaxed);
        }
    }
    pub(crate) fn new_process_flags(&self) -> u32 {
        self.0.new_flags.load(Ordering::Relaxed)
    }
    pub(crate) fn new_port_flags(&self) -> u32 {
        self.0.new_port_flags.load(Ordering::Relaxed)
    }
    /// Flags and tracer of a process.
    pub(crate) fn of_process(&self, tracee: &ProcShared) -> (u32, Option<Pid>) {
        tracee
            .tracee
            .of(&self.0)
            .map_or((0, None), |r| (r.flags, r.tracer))
    }
    /// The sessions that trace a process, oldest first.
    pub(crate) fn of_process_all(tracee: &ProcShared) -> Vec<Handle> {
        let ids = tracee.tracee.sessions();
        Handle::all()
            .into_iter()
            .filter(|session| ids.contains(&session.id()))
            .collect()
    }
    /// The sessions with a breakpoint at a function, oldest first.
    pub(crate) fn at_function(mfa: Mfa) -> Vec<Handle> {
        Handle::all()
            .into_iter()
            .filter(|session| !session.kinds_at(mfa).is_none())
            .collect()
    }

    /// Kinds of breakpoint at a function. For a scheduler's thread.
    pub(crate) fn kinds_at(&self, mfa: Mfa) -> Kinds {
        Kinds(self.point(mfa, |point| point.kinds).unwrap_or(0))
    }
    /// `call_count` of a function.
    pub(crate) fn count_at(&self, mfa: Mfa) -> Option<u64> {
        self.point(mfa, |point| point.count.as_ref().map(count::Counter::read))?
    }
    /// `call_time` of a function, by process.
    pub(crate) fn time_at(&self, mfa: Mfa) -> Option<Vec<(Pid, Counted)>> {
        self.point(mfa, |point| point.time.as_deref().map(rows))?
    }
    /// `call_memory` of a function, by process.
    pub(crate) fn memory_at(&self, mfa: Mfa) -> Option<Vec<(Pid, Counted)>> {
        self.point(mfa, |point| point.memory.as_deref().map(rows))?
    }

    fn point<T>(&self, mfa: Mfa, get: impl FnOnce(&Point) -> T) -> Option<T> {
        change::point_at(mfa, &self.0, get)
    }
}

fn rows(account: &meter::Account) -> Vec<(Pid, Counted)> {
    let nodes = account.nodes.lock();
    nodes
        .iter()
        .map(|(arena, index)| (arena.pid, arena.node(*index).counted()))
        .collect()
}

/// What a session's own reference holds: the session ends with the last copy of it.
pub(crate) struct Strong(Handle);

impl Strong {
    pub(crate) fn new(session: Handle) -> Strong {
        Strong(session)
    }
    pub(crate) fn handle(&self) -> Handle {
        self.0.clone()
    }
}

impl Drop for Strong {
    fn drop(&mut self) {
        if session::kill(&self.0.0) {
            clear_later(self.0.0.clone());
        }
    }
}

/// Clears a killed session up as soon as no other change is under way.
fn clear_later(session: Arc<Shared>) {
    crate::sched::thread_progress().later(move || {
        // No process has this pid: nobody waits for the end of the change.
        let nobody = Pid(crate::sched::ptab::INVALID_DATA);
        if change::try_seize() {
            let ended = session.clone();
            change::run(change::Change::clear(&session), nobody, move || {
                session::forget(&ended)
            });
        } else {
            clear_later(session);
        }
    });
}

/// A session for Rust code on threads that are no schedulers: tests, and what embeds the runtime.
pub struct Session(Handle);

impl Session {
    /// A session without a tracer; `None` when there are as many sessions as there may be.
    #[must_use]
    pub fn create(name: &str) -> Option<Session> {
        Handle::create(Atom::new(name), None).map(Session)
    }
    /// Sets, clears, restarts or pauses breakpoints; returns how many functions match. Returns when all
    /// schedulers see the change.
    ///
    /// # Panics
    /// For kinds that report to a tracer.
    pub fn set_pattern(&self, pattern: Pattern, switch: Switch, kinds: Kinds) -> usize {
        assert!(kinds.only_counts(), "calls are not reported yet");
        let session = &self.0.0;
        change::with_permission(|| {
            change::run_here(change::Change::pattern(session, pattern, switch, kinds.0))
        })
    }
    /// Traces calls of all processes there are and will be, or no longer.
    pub fn set_all_processes(&self, on: bool) {
        let guard = crate::sched::ptab::pin();
        for shared in crate::process::table().iter(&guard) {
            self.0.trace_process(shared, on, flags::CALL, shared.pid());
        }
        self.0.trace_new_processes(on, flags::CALL);
    }
    /// Traces calls of a process, or no longer; `false` when it is gone.
    pub fn set_process(&self, pid: Pid, on: bool) -> bool {
        let guard = crate::sched::ptab::pin();
        let Some(shared) = crate::process::lookup(pid, &guard) else {
            return false;
        };
        self.0.trace_process(shared, on, flags::CALL, pid)
    }
    /// Calls of a function; `None` where they are not counted.
    #[must_use]
    pub fn call_count(&self, mfa: Mfa) -> Option<u64> {
        change::with_permission(|| self.0.count_at(mfa))
    }
    /// Calls and time of a function by process; `None` where they are not measured.
    #[must_use]
    pub fn call_time(&self, mfa: Mfa) -> Option<Vec<(Pid, Counted)>> {
        change::with_permission(|| self.0.time_at(mfa))
    }
    /// Calls and words of a function by process; `None` where they are not measured.
    #[must_use]
    pub fn call_memory(&self, mfa: Mfa) -> Option<Vec<(Pid, Counted)>> {
        change::with_permission(|| self.0.memory_at(mfa))
    }
    /// Ends the session and removes all it has set.
    pub fn destroy(self) {
        let session = &self.0.0;
        if session::kill(session) {
            change::with_permission(|| change::run_here(change::Change::clear(session)));
            session::forget(session);
        }
    }
}
