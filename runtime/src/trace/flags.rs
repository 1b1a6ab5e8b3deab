//! Trace flags of processes: which sessions trace a process, and what of it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;

use super::session::{self, Shared};
use crate::process::{self, ProcShared};
use crate::sched::ptab;
use crate::term::{Atom, Pid, am};

macro_rules! flags {
    ($($name:ident = $bit:literal => $atom:ident;)*) => {
        $(pub(super) const $name: u32 = 1 << $bit;)*
        /// Flags and their atoms, in the order in which a list of them is built.
        pub(crate) const NAMES: &[(u32, Atom)] = &[$(($name, am::$atom),)*];
    };
}

flags! {
    TIMESTAMP = 0 => timestamp;
    STRICT_MONOTONIC_TIMESTAMP = 1 => strict_monotonic_timestamp;
    MONOTONIC_TIMESTAMP = 2 => monotonic_timestamp;
    SEND = 3 => send;
    RECEIVE = 4 => receive;
    SET_ON_SPAWN = 5 => set_on_spawn;
    CALL = 6 => call;
    PROCS = 7 => procs;
    SET_ON_FIRST_SPAWN = 8 => set_on_first_spawn;
    SET_ON_LINK = 9 => set_on_link;
    SET_ON_FIRST_LINK = 10 => set_on_first_link;
    RUNNING = 11 => running;
    EXITING = 12 => exiting;
    GARBAGE_COLLECTION = 13 => garbage_collection;
    ARITY = 14 => arity;
    RETURN_TO = 15 => return_to;
    SILENT = 16 => silent;
    SCHEDULER_ID = 17 => scheduler_id;
    PORTS = 18 => ports;
    RUNNING_PORTS = 19 => running_ports;
    RUNNING_PROCS = 20 => running_procs;
}

/// All of them (`all`).
pub(crate) const ALL: u32 = (1 << 21) - 1;
/// Flags that processes and ports share. Source: `ERTS_TRACEE_MODIFIER_FLAGS`.
pub(super) const MODIFIERS: u32 = SILENT
    | TIMESTAMP
    | STRICT_MONOTONIC_TIMESTAMP
    | MONOTONIC_TIMESTAMP
    | SCHEDULER_ID
    | RECEIVE
    | SEND;
/// Those of ports. Source: `ERTS_PORT_TRACEE_FLAGS`.
pub(crate) const OF_PORTS: u32 = MODIFIERS | PORTS | RUNNING_PORTS;
/// Those of processes. Source: `ERTS_PROC_TRACEE_FLAGS`.
pub(crate) const OF_PROCESSES: u32 = ALL & !OF_PORTS | MODIFIERS;
/// Flags that are not built: they report to a tracer, or follow links.
const NOT_BUILT: u32 = SET_ON_LINK
    | SET_ON_FIRST_LINK
    | PORTS
    | RUNNING_PORTS
    | PROCS
    | RUNNING
    | RUNNING_PROCS
    | EXITING
    | GARBAGE_COLLECTION;

/// The flag that an atom names.
pub(crate) fn named(atom: Atom) -> Option<u32> {
    if atom == am::all {
        return Some(ALL);
    }
    NAMES
        .iter()
        .find(|(_, name)| *name == atom)
        .map(|(flag, _)| *flag)
}

/// Does nothing in `session` under these flags call for a message to a tracer? Such messages are not built.
pub(super) fn are_silent(session: &Shared, flags: u32) -> bool {
    flags & NOT_BUILT == 0
        && (flags & CALL == 0 || !session.reports_calls())
        && (flags & SEND == 0 || !session.send.load(Ordering::Relaxed))
        && (flags & RECEIVE == 0 || !session.receive.load(Ordering::Relaxed))
}

/// One session's hold on a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TracerRef {
    session: u64,
    bit: u64,
    pub(super) flags: u32,
    pub(super) tracer: Option<Pid>,
}

/// What a process's shared part knows of tracing.
#[derive(Default)]
pub(crate) struct Tracee {
    /// Sessions that count this process's calls, a bit each.
    calls: AtomicU64,
    /// There is something to inherit or to tell.
    traced: AtomicBool,
    refs: Mutex<Vec<TracerRef>>,
}

impl Tracee {
    /// The sessions, a bit each, that trace its calls.
    #[inline(always)]
    pub(super) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    fn change(&self, change: impl FnOnce(&mut Vec<TracerRef>)) {
        let mut refs = self.refs.lock();
        change(&mut refs);
        refs.retain(|r| r.flags != 0);
        let calls = refs
            .iter()
            .filter(|r| r.flags & CALL != 0)
            .fold(0, |all, r| all | r.bit);
        self.traced.store(!refs.is_empty(), Ordering::Release);
        self.calls.store(calls, Ordering::Release);
    }

    /// What `session` traces of it.
    pub(super) fn of(&self, session: &Shared) -> Option<TracerRef> {
        self.refs
            .lock()
            .iter()
            .find(|r| r.session == session.id)
            .copied()
    }

    /// The sessions that trace it.
    pub(super) fn sessions(&self) -> Vec<u64> {
        self.refs.lock().iter().map(|r| r.session).collect()
    }

    /// Turns flags on; `false` when another tracer has the process.
    pub(super) fn turn_on(&self, session: &Shared, flags: u32, tracer: Option<Pid>) -> bool {
        let mut free = true;
        self.change(
            |refs| match refs.iter_mut().find(|r| r.session == session.id) {
                Some(r) => {
                    let taken = r.tracer != tracer && r.tracer.is_some_and(process::exists);
                    if taken {
                        free = false;
                        return;
                    }
                    r.flags |= flags;
                    r.tracer = tracer;
                }
                None => refs.push(TracerRef {
                    session: session.id,
                    bit: session.bit(),
                    flags,
                    tracer,
                }),
            },
        );
        free
    }

    pub(super) fn turn_off(&self, session: &Shared, flags: u32) {
        self.change(|refs| {
            for r in refs.iter_mut().filter(|r| r.session == session.id) {
                r.flags &= !flags;
            }
        });
    }

    fn forget(&self, session: u64) {
        if self.traced.load(Ordering::Acquire) {
            self.change(|refs| refs.retain(|r| r.session != session));
        }
    }
}

/// Some session traces processes that are made from now on.
static NEW: AtomicBool = AtomicBool::new(false);

/// Call after a session's flags for new processes have changed.
pub(super) fn update_new() {
    let any = session::all()
        .iter()
        .any(|s| s.new_flags.load(Ordering::Relaxed) != 0);
    NEW.store(any, Ordering::Release);
}

/// A process has been made and does not run yet: gives it the flags that all new ones get.
pub(crate) fn born(child: &ProcShared) {
    if !NEW.load(Ordering::Acquire) {
        return;
    }
    for session in session::all() {
        let flags = session.new_flags.load(Ordering::Relaxed);
        if flags != 0 {
            child.tracee.turn_on(&session, flags, session.tracer);
        }
    }
}

/// `child`, which does not run yet, was made by `parent`: gives it the flags that it inherits. Source:
/// `erl_create_process()`.
pub(crate) fn inherit(parent: &ProcShared, child: &ProcShared) {
    let (parent, child) = (&parent.tracee, &child.tracee);
    if !parent.traced.load(Ordering::Acquire) {
        return;
    }
    let refs = parent.refs.lock().clone();
    for r in refs
        .iter()
        .filter(|r| r.flags & (SET_ON_SPAWN | SET_ON_FIRST_SPAWN) != 0)
    {
        let once = match r.flags & SET_ON_FIRST_SPAWN {
            0 => 0,
            _ => SET_ON_FIRST_SPAWN | SET_ON_SPAWN,
        };
        let flags = r.flags & !once;
        child.change(|refs| {
            refs.retain(|c| c.session != r.session);
            refs.push(TracerRef { flags, ..*r });
        });
        if once != 0 {
            parent.change(|refs| {
                for p in refs.iter_mut().filter(|p| p.session == r.session) {
                    p.flags &= !once;
                }
            });
        }
    }
}

/// Has any process this flag of `session`, or will a new one have it?
pub(super) fn any(session: &Shared, flag: u32) -> bool {
    let guard = ptab::pin();
    let new = &[&session.new_flags, &session.new_port_flags];
    new.iter()
        .any(|flags| flags.load(Ordering::Relaxed) & flag != 0)
        || process::table().iter(&guard).any(|shared| {
            shared
                .tracee
                .of(session)
                .is_some_and(|r| r.flags & flag != 0)
        })
}

/// Does `session` trace the calls of any process, or will it of new ones?
pub(super) fn any_calls(session: &Shared) -> bool {
    let guard = ptab::pin();
    session.new_flags.load(Ordering::Relaxed) & CALL != 0
        || process::table()
            .iter(&guard)
            .any(|shared| shared.tracee.calls() & session.bit() != 0)
}

/// `session` traces no process any more.
pub(super) fn clear_everywhere(session: &Shared) {
    let guard = ptab::pin();
    process::table()
        .iter(&guard)
        .for_each(|shared| shared.tracee.forget(session.id));
}
