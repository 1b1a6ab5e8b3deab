//! The trace flags of processes and ports: which sessions trace a process or port, and which events they trace.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use smallvec::SmallVec;

use super::Shared;
use super::tracer::{Event, TracerId, Verdict};
pub(crate) use crate::process::probe::Tracee;
pub(crate) use crate::process::trace_flags::*;
use crate::process::{self, ProcShared, Process, Signal};
use crate::sched::ptab;
use crate::term::{Atom, Pid, Term, am};
use crate::trace::costs::in_line;

/// Those that a new process may take over from its parent.
const INHERITED: u32 = SET_ON_SPAWN | SET_ON_FIRST_SPAWN | SET_ON_LINK | SET_ON_FIRST_LINK;

/// In [`Tracee::all`] alone: a session's tracer is one that may be gone.
pub(in crate::trace) const TRACER_MAY_GO: u32 = 1 << 31;

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

/// One session's trace flags of a process or port.
#[derive(Clone)]
pub(crate) struct TracerRef {
    pub(in crate::trace) session: Arc<Shared>,
    pub(in crate::trace) flags: u32,
    pub(in crate::trace) tracer: TracerId,
}

/// References to sessions, few as a rule.
pub(in crate::trace) type Refs = SmallVec<[TracerRef; 1]>;

impl Tracee {
    fn refs(&self) -> &Mutex<Vec<TracerRef>> {
        self.holds.get_or_init(Mutex::<Vec<TracerRef>>::default)
    }

    /// The sessions, a bit each, that trace its calls.
    #[inline(always)]
    pub(in crate::trace) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// Does the session with this bit trace anything of it, even if it is sensitive now?
    #[inline]
    pub(in crate::trace) fn is_traced_by(&self, session: u64) -> bool {
        let refs = || self.refs().lock();
        session & self.calls() != 0 || refs().iter().any(|r| r.session.bit() == session)
    }

    fn change<T>(&self, change: impl FnOnce(&mut Vec<TracerRef>) -> T) -> T {
        let mut refs = self.refs().lock();
        let result = change(&mut refs);
        refs.retain(|r| r.flags != 0);
        self.update(&refs);
        result
    }

    fn update(&self, refs: &[TracerRef]) {
        let (mut all, mut calls) = (0, 0);
        if !self.sensitive.load(Ordering::Relaxed) {
            for r in refs {
                all |= r.flags;
                if r.tracer.may_go() {
                    all |= TRACER_MAY_GO;
                }
                if r.flags & CALL != 0 {
                    calls |= r.session.bit();
                }
            }
        }
        if self.calls.swap(calls, Ordering::AcqRel) != calls {
            in_line::changed();
        }
        self.all.store(all, Ordering::Release);
    }

    /// Nothing is traced of a process while it is sensitive.
    pub(crate) fn set_sensitive(&self, sensitive: bool) {
        let refs = self.refs().lock();
        self.sensitive.store(sensitive, Ordering::Relaxed);
        self.update(&refs);
        in_line::changed();
    }

    /// Is nothing of it told?
    pub(in crate::trace) fn is_sensitive(&self) -> bool {
        self.sensitive.load(Ordering::Relaxed)
    }

    /// What `session` traces of it.
    pub(in crate::trace) fn of(&self, session: &Shared) -> Option<(u32, TracerId)> {
        let refs = self.refs().lock();
        let mut refs = refs.iter();
        refs.find(|r| r.session.id == session.id)
            .map(|r| (r.flags, r.tracer))
    }

    /// As [`Tracee::of`], for a session that is known by its id alone.
    pub(in crate::trace) fn of_id(&self, id: u64) -> Option<TracerRef> {
        let refs = self.refs().lock();
        refs.iter().find(|r| r.session.id == id).cloned()
    }

    /// The sessions that ask for any of `flags` and whose tracers want to hear of `event`; those that have ended
    /// or lost their tracer go.
    pub(in crate::trace) fn asked(&self, id: Term<'_>, event: Event, flags: u32) -> Refs {
        let refs: Refs = {
            let refs = self.refs().lock();
            refs.iter()
                .filter(|r| r.flags & flags != 0)
                .cloned()
                .collect()
        };
        let keep = |r: &TracerRef| {
            let verdict = match r.session.is_alive() {
                true => r.tracer.wants(event, id),
                false => Verdict::Remove,
            };
            if verdict == Verdict::Remove {
                self.remove(r.session.id);
            }
            verdict == Verdict::Trace
        };
        refs.into_iter().filter(keep).collect()
    }

    /// The sessions that trace it.
    pub(in crate::trace) fn sessions(&self) -> Vec<u64> {
        self.refs().lock().iter().map(|r| r.session.id).collect()
    }

    /// Turns flags on; `false` when another tracer has it. Source: `start_trace()`.
    pub(in crate::trace) fn turn_on(
        &self,
        id: Term<'_>,
        session: &Arc<Shared>,
        flags: u32,
        tracer: TracerId,
    ) -> bool {
        self.change(
            |refs| match refs.iter_mut().find(|r| r.session.id == session.id) {
                Some(r) if r.tracer != tracer && r.tracer.is_there(id) => false,
                Some(r) => {
                    r.flags |= flags;
                    r.tracer = tracer;
                    true
                }
                None => {
                    let session = session.clone();
                    let r = TracerRef {
                        session,
                        flags,
                        tracer,
                    };
                    refs.insert(0, r);
                    true
                }
            },
        )
    }

    pub(in crate::trace) fn turn_off(&self, session: &Shared, flags: u32) {
        self.mask(session, flags, 0);
    }

    /// Clears and sets flags, if `session` traces it.
    pub(in crate::trace) fn mask(&self, session: &Shared, clear: u32, set: u32) {
        self.change(|refs| {
            for r in refs.iter_mut().filter(|r| r.session.id == session.id) {
                r.flags = r.flags & !clear | set;
            }
        });
    }

    /// Sets tracer and flags, as match specifications do; `true` when that changed anything. Source:
    /// `set_tracee_flags()`.
    pub(in crate::trace) fn set(
        &self,
        session: &Arc<Shared>,
        tracer: Option<TracerId>,
        clear: u32,
        set: u32,
    ) -> bool {
        self.change(|refs| {
            let at = refs.iter().position(|r| r.session.id == session.id);
            match (at, tracer) {
                (None, None) => false,
                (None, Some(_)) if set == 0 => false,
                (None, Some(tracer)) => {
                    let session = session.clone();
                    let r = TracerRef {
                        session,
                        flags: set,
                        tracer,
                    };
                    refs.insert(0, r);
                    true
                }
                (Some(at), None) => {
                    refs[at].flags = 0;
                    true
                }
                (Some(at), Some(tracer)) => {
                    let r = &mut refs[at];
                    let flags = r.flags & !clear | set;
                    let changed = flags != r.flags || tracer != r.tracer;
                    (r.flags, r.tracer) = (flags, tracer);
                    changed
                }
            }
        })
    }

    pub(in crate::trace) fn remove(&self, session: u64) {
        self.change(|refs| refs.retain(|r| r.session.id != session));
    }
}

/// Whether some session traces processes that are made from now on.
static NEW: AtomicBool = AtomicBool::new(false);
/// Whether some session traces ports that are opened from now on.
static NEW_PORTS: AtomicBool = AtomicBool::new(false);

/// Call after a session's flags for new processes and ports have changed.
pub(in crate::trace) fn update_new() {
    let all = super::all();
    let any = all.iter().any(|s| s.new_processes.lock().flags != 0);
    NEW.store(any, Ordering::Release);
    let any = all.iter().any(|s| s.new_ports.lock().flags != 0);
    NEW_PORTS.store(any, Ordering::Release);
}

/// A process has been made and does not run yet: gives it the flags that all new ones get.
pub(crate) fn born(child: &ProcShared) {
    if !NEW.load(Ordering::Acquire) {
        return;
    }
    let id = child.pid().term();
    for session in super::all() {
        let new = session.new_processes();
        if let Some(tracer) = new.tracer.filter(|_| new.flags != 0) {
            child.tracee.turn_on(id, &session, new.flags, tracer);
        }
    }
}

/// A port is being opened: gives it the flags that all new ones get.
pub(crate) fn port_born(tracee: &Tracee, id: Term<'_>) {
    if !NEW_PORTS.load(Ordering::Acquire) {
        return;
    }
    for session in super::all() {
        let new = session.new_ports();
        if let Some(tracer) = new.tracer.filter(|_| new.flags != 0) {
            tracee.turn_on(id, &session, new.flags, tracer);
        }
    }
}

/// `child`, which does not run yet, was made by `parent`, and linked to it or not: gives it the flags that
/// it inherits. Source: `erl_create_process()`.
pub(crate) fn inherit(parent: &ProcShared, child: &ProcShared, linked: bool) {
    if !parent.tracee.has(INHERITED) {
        return;
    }
    let refs: Refs = parent.tracee.refs().lock().iter().cloned().collect();
    let by_link = if linked {
        SET_ON_LINK | SET_ON_FIRST_LINK
    } else {
        0
    };
    for r in refs {
        if r.flags & (SET_ON_SPAWN | SET_ON_FIRST_SPAWN | by_link) == 0 {
            continue;
        }
        let mut once = 0;
        if r.flags & SET_ON_FIRST_SPAWN != 0 {
            once |= SET_ON_FIRST_SPAWN | SET_ON_SPAWN;
        }
        if r.flags & by_link & SET_ON_FIRST_LINK != 0 {
            once |= SET_ON_FIRST_LINK | SET_ON_LINK;
        }
        let (session, flags) = (r.session.id, r.flags & !once);
        child.tracee.change(|refs| {
            refs.retain(|c| c.session.id != session);
            refs.push(TracerRef { flags, ..r.clone() });
        });
        parent.tracee.mask(&r.session, once, 0);
    }
}

/// A traced process links itself to `peer`, which takes over flags: before it handles the link, in a signal of
/// their own, so that what is sent behind finds both done. Source: `sig_enqueue_trace()`.
pub(crate) fn linking(me: &ProcShared, peer: Pid) {
    if !me.tracee.has(SET_ON_LINK | SET_ON_FIRST_LINK) {
        return;
    }
    // A binding of its own: in the loop's head, the lock would be held to the loop's end.
    let refs: Refs = me.tracee.refs().lock().iter().cloned().collect();
    for r in refs {
        if r.flags & (SET_ON_LINK | SET_ON_FIRST_LINK) == 0 {
            continue;
        }
        let once = match r.flags & SET_ON_FIRST_LINK {
            0 => 0,
            _ => SET_ON_FIRST_LINK | SET_ON_LINK,
        };
        me.tracee.mask(&r.session, once, 0);
        let take_over = move |p: Option<&mut Process>| {
            if let Some(p) = p {
                let (on, tracer) = (r.flags, Some(r.tracer));
                p.shared().tracee.set(&r.session, tracer, once, on & !once);
            }
        };
        process::deliver(peer, Signal::request(take_over));
    }
}

/// `session` traces no process and no port any more.
pub(in crate::trace) fn clear_everywhere(session: &Shared) {
    let guard = ptab::pin();
    for shared in process::table().iter(&guard) {
        shared.tracee.remove(session.id);
    }
    (process::ports::PORTS.get().each_tracee)(&mut |tracee| tracee.remove(session.id));
}
