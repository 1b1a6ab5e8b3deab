//! The interface of sessions to their makers: OTP's `trace` module with its BIFs, the tests, and programs that embed the
//! runtime.

use std::sync::Arc;

use super::breakpoint::SessionBp;
use super::breakpoint::change::{self, Pattern, Setting, Switch, Which, end_later};
use super::costs::account::Account;
use super::costs::count;
use super::costs::node::{self, Counted};
use super::session::flags::{self, Tracee};
use super::session::kind::{self, Kinds};
use super::session::monitor::{self, Monitor};
use super::session::permission;
use super::session::spec::Spec;
use super::session::tracer::TracerId;
use super::session::{self, EventPattern, New, NoSlot, OnLoad, Shared};
use crate::hash::{HashMap, HashSet};
use crate::loader::module::Mfa;
use crate::process::ProcShared;
use crate::term::{Atom, Pid, Term};

/// The settings of a function's breakpoints in a session; see [`Handle::at`].
#[derive(Clone, Default)]
pub(crate) struct At {
    pub(crate) kinds: u32,
    /// Of `local` or `global`.
    pub(crate) spec: Option<Arc<Spec>>,
    pub(crate) meta_spec: Option<Arc<Spec>>,
    pub(crate) meta: Option<TracerId>,
}

impl At {
    pub(crate) fn kinds(&self) -> Kinds {
        Kinds(self.kinds)
    }
}

/// A session.
#[derive(Clone)]
pub(crate) struct Handle(pub(super) Arc<Shared>);

impl Handle {
    /// A session that process `asks` wants, which is woken when a slot that is being cleared is free.
    pub(crate) fn create(
        name: Atom,
        tracer: Option<TracerId>,
        asks: Pid,
    ) -> Result<Handle, NoSlot> {
        session::create(name, tracer, None, Some(asks)).map(Handle)
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
    pub(crate) fn tracer(&self) -> Option<TracerId> {
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
    pub(crate) fn set_pattern(
        &self,
        pid: Pid,
        pattern: Pattern,
        switch: Switch,
        kinds: Kinds,
        setting: &Setting,
    ) {
        let kinds = if kinds.is_none() {
            kind::GLOBAL
        } else {
            kinds.0
        };
        let change = change::Change::pattern(&self.0, pattern, switch, kinds, setting);
        change::run(change, pid, || ());
    }

    /// Changes the pattern for new code. Source: `change_on_load_trace_pattern()`.
    pub(crate) fn change_on_load(&self, kinds: Kinds, switch: Switch, setting: &Setting) {
        let global = kinds.is_none();
        let mut on_load = self.0.on_load.lock();
        let mut new = on_load.take().unwrap_or(OnLoad::counting(0));
        if global || kinds.meets(Kinds::LOCAL) {
            new.spec.clone_from(&setting.spec);
        }
        if global || kinds.meets(Kinds::META) {
            new.meta_spec = setting.spec.clone().filter(|_| !global);
            new.meta_tracer = setting.meta.filter(|_| !global);
        }
        let counts = kind::COUNT | kind::TIME | kind::MEMORY;
        let was_global = new.kinds & kind::GLOBAL != 0;
        match switch {
            Switch::Off if global => new.kinds &= !kind::GLOBAL,
            Switch::Off => new.kinds &= !kinds.0,
            _ if global => new.kinds = kind::GLOBAL,
            _ => {
                let added = if switch == Switch::On {
                    kinds.0
                } else {
                    // Counters of code to come neither pause nor start anew.
                    kinds.0 & !counts
                };
                let kept = if was_global { 0 } else { new.kinds };
                new.kinds = kept | added;
            }
        }
        *on_load = Some(new).filter(|new| new.kinds != 0);
    }

    /// What new code gets.
    pub(crate) fn on_load(&self) -> Option<At> {
        let on_load = self.0.on_load.lock().clone()?;
        Some(At {
            kinds: on_load.kinds,
            spec: on_load.spec,
            meta_spec: on_load.meta_spec,
            meta: on_load.meta_tracer,
        })
    }

    /// Sets which messages sent, or received, are reported where a flag says so.
    pub(crate) fn set_event(&self, send: bool, pattern: EventPattern) {
        let event = if send { &self.0.send } else { &self.0.receive };
        *event.write() = pattern;
    }
    /// Which messages sent, or received, are reported where a flag says so.
    pub(crate) fn event(&self, send: bool) -> EventPattern {
        let event = if send { &self.0.send } else { &self.0.receive };
        event.read().clone()
    }

    /// Turns flags of a process or port on or off; `false` when another tracer has it.
    pub(crate) fn trace(
        &self,
        tracee: &Tracee,
        id: Term<'_>,
        on: bool,
        flags: u32,
        tracer: Option<TracerId>,
    ) -> bool {
        match tracer.filter(|_| on) {
            Some(tracer) => tracee.turn_on(id, &self.0, flags, tracer),
            None => {
                tracee.turn_off(&self.0, flags);
                true
            }
        }
    }
    pub(crate) fn trace_new_processes(&self, on: bool, flags: u32, tracer: Option<TracerId>) {
        self.0.new_processes.lock().change(on, flags, tracer);
        flags::update_new();
    }
    pub(crate) fn trace_new_ports(&self, on: bool, flags: u32, tracer: Option<TracerId>) {
        self.0.new_ports.lock().change(on, flags, tracer);
        flags::update_new();
    }
    /// What it wants to hear of the system.
    pub(crate) fn monitor(&self) -> Monitor {
        *self.0.monitor.lock()
    }
    pub(crate) fn set_monitor(&self, monitor: Monitor) {
        *self.0.monitor.lock() = monitor;
        monitor::update();
        // One that has gone meanwhile may have looked before.
        if let Some(gone) = monitor.receiver.filter(|pid| !crate::process::exists(*pid)) {
            monitor::exited(gone);
        }
    }
    pub(crate) fn new_processes(&self) -> New {
        self.0.new_processes()
    }
    pub(crate) fn new_ports(&self) -> New {
        self.0.new_ports()
    }
    /// Flags and tracer of a process or port; a tracer that is gone goes.
    pub(crate) fn of(&self, tracee: &Tracee, id: Term<'_>) -> (u32, Option<TracerId>) {
        match tracee.of(&self.0) {
            Some((_, tracer)) if !tracer.is_there(id) => {
                tracee.remove(self.0.id);
                (0, None)
            }
            Some((flags, tracer)) => (flags, Some(tracer)),
            None => (0, None),
        }
    }
    /// The sessions that trace a process or port, oldest first.
    pub(crate) fn all_of(tracee: &Tracee) -> Vec<Handle> {
        let ids = tracee.sessions();
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
        Kinds(self.at(mfa).kinds)
    }
    /// What its breakpoints at a function say. For a scheduler's thread.
    pub(crate) fn at(&self, mfa: Mfa) -> At {
        let spec = |bp: &SessionBp| At {
            kinds: bp.kinds,
            spec: bp.spec.clone(),
            ..At::default()
        };
        if let Some(at) = change::session_bp_at(mfa, Which::Global, &self.0, spec) {
            return at;
        }
        let at = self.session_bp(mfa, |bp| At {
            meta_spec: bp.meta.as_ref().and_then(|meta| meta.spec.clone()),
            meta: bp.meta.as_ref().and_then(|meta| *meta.tracer.lock()),
            ..spec(bp)
        });
        at.unwrap_or_default()
    }
    /// `call_count` of a function.
    pub(crate) fn count_at(&self, mfa: Mfa) -> Option<u64> {
        self.session_bp(mfa, |bp| bp.count.as_ref().map(count::Counter::read))?
    }
    /// `call_time` of a function, by process.
    pub(crate) fn time_at(&self, mfa: Mfa) -> Option<Vec<(Pid, Counted)>> {
        self.session_bp(mfa, |bp| bp.time.as_deref().map(rows))?
    }
    /// `call_memory` of a function, by process.
    pub(crate) fn memory_at(&self, mfa: Mfa) -> Option<Vec<(Pid, Counted)>> {
        self.session_bp(mfa, |bp| bp.memory.as_deref().map(rows))?
    }
    /// What [`Handle::time_at`] and [`Handle::memory_at`] give, with the same calls in both.
    pub(crate) fn time_and_memory_at(&self, mfa: Mfa) -> [Option<Vec<(Pid, Counted)>>; 2] {
        let read = |bp: &SessionBp| match (&bp.time, &bp.memory) {
            (Some(time), Some(memory)) => both_rows(time, memory).map(Some),
            (time, memory) => [time, memory].map(|account| account.as_deref().map(rows)),
        };
        self.session_bp(mfa, read).unwrap_or_default()
    }

    fn session_bp<T>(&self, mfa: Mfa, get: impl FnOnce(&SessionBp) -> T) -> Option<T> {
        change::session_bp_at(mfa, Which::Local, &self.0, get)
    }
}

fn rows(account: &Account) -> Vec<(Pid, Counted)> {
    let nodes = account.nodes.lock();
    nodes
        .iter()
        .map(|(arena, index)| (arena.pid, arena.counted(*index)))
        .collect()
}

/// The rows of both accounts; those of a process as of one moment.
fn both_rows(a: &Account, b: &Account) -> [Vec<(Pid, Counted)>; 2] {
    let [a, b] = [a, b].map(|account| account.nodes.lock().clone());
    let process = |arena: &node::Arena| Arc::as_ptr(&arena.in_line);
    let mut others: HashMap<_, _> = HashMap::default();
    for other in &b {
        others.entry(process(&other.0)).or_insert(other);
    }
    let mut rows = [Vec::new(), Vec::new()];
    for one in &a {
        let other = others.get(&process(&one.0)).copied();
        let (one, other) = one.0.in_line.read(|pending| {
            let row = |(arena, index): &(Arc<node::Arena>, u32)| {
                (arena.pid, pending.with(arena.node(*index)))
            };
            (row(one), other.map(row))
        });
        rows[0].push(one);
        rows[1].extend(other);
    }
    let pids: HashSet<Pid> = a.iter().map(|(arena, _)| arena.pid).collect();
    let b = b
        .iter()
        .map(|(arena, index)| (arena.pid, arena.counted(*index)));
    rows[1].extend(b.filter(|(pid, _)| !pids.contains(pid)));
    rows
}

/// The contents of a session's own reference: the session ends with the last copy of it.
pub(crate) struct StrongRef(Handle);

impl StrongRef {
    pub(crate) fn new(session: Handle) -> StrongRef {
        StrongRef(session)
    }
    pub(crate) fn handle(&self) -> Handle {
        self.0.clone()
    }
}

impl Drop for StrongRef {
    fn drop(&mut self) {
        end_later(self.0.0.clone());
    }
}

/// A session for Rust code on threads that are no schedulers, such as tests and programs that embed the runtime.
pub struct Session(Handle);

impl Session {
    /// A session without a tracer; `None` when there are as many sessions as there may be.
    #[must_use]
    pub fn create(name: &str) -> Option<Session> {
        let session = session::create(Atom::new(name), None, None, None).ok()?;
        Some(Session(Handle(session)))
    }
    /// Sets, clears, restarts or pauses breakpoints; returns how many functions match. Returns when all
    /// schedulers see the change.
    ///
    /// # Panics
    /// For kinds that report to a tracer.
    pub fn set_pattern(&self, pattern: Pattern, switch: Switch, kinds: Kinds) -> usize {
        assert!(kinds.only_counts(), "there is nobody to report to");
        let session = &self.0.0;
        permission::with_permission(|| {
            let setting = Setting::default();
            let change = change::Change::pattern(session, pattern, switch, kinds.0, &setting);
            change::run_here(change)
        })
    }
    /// Traces calls of all processes there are and will be, or no longer.
    pub fn set_all_processes(&self, on: bool) {
        let guard = crate::sched::ptab::pin();
        for shared in crate::process::table().iter(&guard) {
            self.trace(shared, on);
        }
        self.0
            .trace_new_processes(on, flags::CALL, Some(TracerId::NOBODY));
    }
    fn trace(&self, shared: &ProcShared, on: bool) -> bool {
        let me = shared.pid().term();
        let nobody = Some(TracerId::NOBODY);
        self.0.trace(&shared.tracee, me, on, flags::CALL, nobody)
    }
    /// Calls of a function; `None` where they are not counted.
    #[must_use]
    pub fn call_count(&self, mfa: Mfa) -> Option<u64> {
        permission::with_permission(|| self.0.count_at(mfa))
    }
    /// Calls and time of a function by process; `None` where they are not measured.
    #[must_use]
    pub fn call_time(&self, mfa: Mfa) -> Option<Vec<(Pid, Counted)>> {
        permission::with_permission(|| self.0.time_at(mfa))
    }
    /// Calls and words of a function by process; `None` where they are not measured.
    #[must_use]
    pub fn call_memory(&self, mfa: Mfa) -> Option<Vec<(Pid, Counted)>> {
        permission::with_permission(|| self.0.memory_at(mfa))
    }
    /// Ends the session and removes all it has set.
    pub fn destroy(self) {
        let session = &self.0.0;
        if session::kill(session) {
            permission::with_permission(|| change::run_here(change::Change::clear(session)));
            session::forget(session);
        }
    }
}
