//! Trace sessions. Each has its own patterns, process flags and tracer, isolated from the others.

pub(crate) mod flags;
pub(crate) mod kind;
pub(crate) mod monitor;
pub(crate) mod permission;
pub(crate) mod spec;
pub(crate) mod system_event;
pub(crate) mod tracer;
mod tracer_module;

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use beamline_formats::profile::Native;
use parking_lot::{Mutex, RwLock};

use super::costs::account::{Account, Measures};
use super::costs::count::Counter;
use super::costs::nature::Nature;
use super::costs::node::Arena;
use crate::hash::HashMap;
use crate::loader::module::Mfa;
use crate::term::{Atom, Pid, am};
use monitor::Monitor;
use spec::Spec;
use tracer::TracerId;
pub(in crate::trace) use tracer_module::unloaded;

/// Sessions there may be at once: each has a bit in a word of every process.
pub(in crate::trace) const SESSIONS: usize = 64;

/// The data of a session, which all that hold it share.
pub(in crate::trace) struct Shared {
    /// Never used twice; the legacy session's is 0.
    pub(in crate::trace) id: u64,
    /// Its bit.
    pub(in crate::trace) slot: u32,
    pub(in crate::trace) name: Atom,
    /// The tracer that gets its messages; `None` stands for the process that turns tracing of a process on.
    pub(in crate::trace) tracer: Option<TracerId>,
    alive: AtomicBool,
    /// What new processes get.
    pub(in crate::trace) new_processes: Mutex<New>,
    /// What new ports get.
    pub(in crate::trace) new_ports: Mutex<New>,
    pub(in crate::trace) on_load: Mutex<Option<OnLoad>>,
    /// System events.
    pub(in crate::trace) monitor: Mutex<Monitor>,
    /// Which messages sent are reported.
    pub(in crate::trace) send: RwLock<EventPattern>,
    /// Which messages received are reported.
    pub(in crate::trace) receive: RwLock<EventPattern>,
    /// Set for the runtime's own profile: what its breakpoints measure.
    pub(in crate::trace) profile: Option<Profiled>,
    /// The nodes of all processes measured.
    pub(in crate::trace) arenas: Mutex<Vec<Arc<Arena>>>,
}

/// The runtime's own profile: what it measures, and all that it counts.
pub(in crate::trace) struct Profiled {
    pub(in crate::trace) measures: Measures,
    /// Count calls only, in one counter a function.
    pub(in crate::trace) only_count: bool,
    pub(in crate::trace) wanted: Box<dyn Fn(Mfa) -> bool + Send + Sync>,
    pub(in crate::trace) counters: Mutex<Vec<(Mfa, Counter)>>,
    pub(in crate::trace) accounts: Mutex<HashMap<u32, Mfa>>,
    /// The functions that were found to be native code.
    pub(in crate::trace) natives: Mutex<HashMap<Mfa, Native>>,
}

impl Profiled {
    /// What measures calls of the functions that are `wanted`, and has not counted any.
    pub(in crate::trace) fn new(
        measures: Measures,
        wanted: impl Fn(Mfa) -> bool + Send + Sync + 'static,
    ) -> Profiled {
        Profiled {
            measures,
            only_count: false,
            wanted: Box::new(wanted),
            counters: Mutex::default(),
            accounts: Mutex::default(),
            natives: Mutex::default(),
        }
    }

    /// A function is native code. It is dirty if it ever was.
    pub(in crate::trace) fn note_native(&self, mfa: Mfa, native: Native) {
        let mut natives = self.natives.lock();
        let known = natives.entry(mfa).or_insert(native);
        *known = native.max(*known);
    }
}

/// Flags and tracer that new processes or ports get.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct New {
    pub(crate) flags: u32,
    pub(crate) tracer: Option<TracerId>,
}

impl New {
    /// Turns flags on or off. Source: `erts_change_new_p_tracing()`.
    pub(in crate::trace) fn change(&mut self, on: bool, flags: u32, tracer: Option<TracerId>) {
        if on {
            self.flags |= flags;
        } else {
            self.flags &= !flags;
        }
        self.tracer = tracer.or(self.tracer);
        self.check();
    }

    /// Without a tracer that lives there is nothing.
    fn check(&mut self) {
        let nobody = am::undefined.term();
        let gone = |tracer: TracerId| !tracer.is_there(nobody);
        if self.flags == 0 || self.tracer.is_none_or(gone) {
            *self = New::default();
        }
    }
}

/// Which messages sent or received are reported.
#[derive(Clone)]
pub(crate) struct EventPattern {
    pub(crate) on: bool,
    pub(crate) spec: Option<Arc<Spec>>,
}

impl EventPattern {
    /// All of them, as at the start.
    const ALL: EventPattern = EventPattern {
        on: true,
        spec: None,
    };
}

/// The pattern `on_load`: breakpoints that functions of new modules get.
#[derive(Clone)]
pub(in crate::trace) struct OnLoad {
    pub(in crate::trace) kinds: u32,
    /// Of `local` or `global` ones.
    pub(in crate::trace) spec: Option<Arc<Spec>>,
    pub(in crate::trace) meta_spec: Option<Arc<Spec>>,
    pub(in crate::trace) meta_tracer: Option<TracerId>,
}

impl OnLoad {
    /// Breakpoints that report nothing.
    pub(in crate::trace) fn counting(kinds: u32) -> OnLoad {
        OnLoad {
            kinds,
            spec: None,
            meta_spec: None,
            meta_tracer: None,
        }
    }
}

struct Table {
    slots: [Option<Arc<Shared>>; SESSIONS],
    /// Processes that wait for a slot.
    waiting: Vec<Pid>,
}

/// Why there is no slot for a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoSlot {
    /// There are as many sessions as there may be.
    Limit,
    /// Sessions that have ended are still being cleared up.
    Clearing,
}

fn table() -> &'static RwLock<Table> {
    static TABLE: OnceLock<RwLock<Table>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut slots = [const { None }; SESSIONS];
        slots[0] = Some(Arc::new(Shared::new(0, 0, am::legacy, None, None)));
        RwLock::new(Table {
            slots,
            waiting: Vec::new(),
        })
    })
}

static NEXT: AtomicU64 = AtomicU64::new(1);
static NEXT_ACCOUNT: AtomicU32 = AtomicU32::new(1);

impl Shared {
    fn new(
        id: u64,
        slot: u32,
        name: Atom,
        tracer: Option<TracerId>,
        profile: Option<Profiled>,
    ) -> Shared {
        Shared {
            id,
            slot,
            name,
            tracer,
            alive: AtomicBool::new(true),
            new_processes: Mutex::default(),
            new_ports: Mutex::default(),
            on_load: Mutex::new(None),
            monitor: Mutex::default(),
            send: RwLock::new(EventPattern::ALL),
            receive: RwLock::new(EventPattern::ALL),
            profile,
            arenas: Mutex::default(),
        }
    }

    /// A session in no table.
    #[cfg(test)]
    pub(in crate::trace) fn detached() -> Arc<Shared> {
        Arc::new(Shared::new(1 << 32, 63, am::legacy, None, None))
    }

    /// Its bit in a process's word.
    #[inline(always)]
    pub(in crate::trace) fn bit(&self) -> u64 {
        1 << self.slot
    }
    /// Not destroyed.
    pub(in crate::trace) fn is_alive(&self) -> bool {
        self.alive.load(Ordering::Acquire)
    }

    /// What new processes get, while their tracer lives.
    pub(in crate::trace) fn new_processes(&self) -> New {
        let mut new = self.new_processes.lock();
        new.check();
        *new
    }
    /// What new ports get, while their tracer lives.
    pub(in crate::trace) fn new_ports(&self) -> New {
        let mut new = self.new_ports.lock();
        new.check();
        *new
    }

    /// An account that nobody has used.
    pub(in crate::trace) fn account(&self, mfa: Mfa) -> Arc<Account> {
        let id = NEXT_ACCOUNT.fetch_add(1, Ordering::Relaxed);
        if let Some(profile) = &self.profile {
            profile.accounts.lock().insert(id, mfa);
        }
        Arc::new(Account {
            id,
            nodes: Mutex::default(),
            nature: Nature::default(),
        })
    }

    /// A counter that nobody has used.
    pub(in crate::trace) fn counter(&self, mfa: Mfa) -> Counter {
        let counter = Counter::new();
        if let Some(profile) = &self.profile {
            profile.counters.lock().push((mfa, counter.clone()));
        }
        counter
    }
}

/// Makes a session. Where ended ones still hold slots, process `asks` is woken when one of them is free.
///
/// # Errors
/// No slot is free.
pub(in crate::trace) fn create(
    name: Atom,
    tracer: Option<TracerId>,
    profile: Option<Profiled>,
    asks: Option<Pid>,
) -> Result<Arc<Shared>, NoSlot> {
    let mut table = table().write();
    let Some(slot) = table.slots.iter().position(Option::is_none) else {
        let mut sessions = table.slots.iter().flatten();
        if sessions.all(|session| session.is_alive()) {
            return Err(NoSlot::Limit);
        }
        table.waiting.extend(asks);
        return Err(NoSlot::Clearing);
    };
    let id = NEXT.fetch_add(1, Ordering::Relaxed);
    let session = Arc::new(Shared::new(id, slot as u32, name, tracer, profile));
    table.slots[slot] = Some(session.clone());
    Ok(session)
}

/// The session that `erlang:trace*` use.
pub(in crate::trace) fn legacy() -> Arc<Shared> {
    table().read().slots[0]
        .clone()
        .expect("it is never destroyed")
}

/// The session of this name and id.
pub(in crate::trace) fn find(name: Atom, id: u64) -> Option<Arc<Shared>> {
    all()
        .into_iter()
        .find(|session| session.id == id && session.name == name && id != 0)
}

/// All sessions, oldest first.
pub(in crate::trace) fn all() -> Vec<Arc<Shared>> {
    let mut all: Vec<Arc<Shared>> = table().read().slots.iter().flatten().cloned().collect();
    all.sort_by_key(|session| session.id);
    all
}

/// Nothing is traced for it from now on. `false` when it was destroyed already. Its breakpoints are to be
/// removed next, then [`forget`] gives its slot free.
pub(in crate::trace) fn kill(session: &Shared) -> bool {
    if !session.alive.swap(false, Ordering::AcqRel) {
        return false;
    }
    *session.new_processes.lock() = New::default();
    *session.new_ports.lock() = New::default();
    *session.on_load.lock() = None;
    *session.monitor.lock() = Monitor::default();
    monitor::update();
    flags::update_new();
    true
}

/// Ends a killed session: no process and no breakpoint knows it any more.
pub(in crate::trace) fn forget(session: &Shared) {
    flags::clear_everywhere(session);
    session.arenas.lock().clear();
    let mut table = table().write();
    let slot = &mut table.slots[session.slot as usize];
    if slot.as_ref().is_some_and(|there| there.id == session.id) {
        *slot = None;
    }
    let waiting = std::mem::take(&mut table.waiting);
    drop(table);
    waiting.into_iter().for_each(permission::wake);
}
