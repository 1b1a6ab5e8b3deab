//! The registered names of processes and ports.

use crate::hash::HashMap;
use std::sync::OnceLock;

use parking_lot::RwLock;

use super::event::Event;
use super::probe::{happened, probes};
use super::shared::{ProcShared, lookup};
use crate::sched::ptab::pin;
use crate::term::{Atom, Pid, Port, Term, am};

/// A process or port with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// A process.
    Process(Pid),
    /// A port.
    Port(Port),
}

impl Named {
    /// The pid or port as a term.
    #[must_use]
    pub fn term(self) -> Term<'static> {
        match self {
            Named::Process(pid) => pid.term(),
            Named::Port(port) => port.term(),
        }
    }
}

fn names() -> &'static RwLock<HashMap<Atom, Named>> {
    static NAMES: OnceLock<RwLock<HashMap<Atom, Named>>> = OnceLock::new();
    NAMES.get_or_init(RwLock::default)
}

/// The process or port that has `name`.
#[must_use]
pub(crate) fn whereis(name: Atom) -> Option<Named> {
    names().read().get(&name).copied()
}

/// The name that `who` has: a walk through all names.
#[must_use]
pub fn name_of(who: Named) -> Option<Atom> {
    let names = names().read();
    let mut names = names.iter();
    names
        .find(|(_, named)| **named == who)
        .map(|(name, _)| *name)
}

/// Gives `name` to a process.
///
/// # Errors
/// Why not, as `erl_erts_errors` takes it: the process is gone, it has a name, or (`none`) the name is taken.
pub(crate) fn register_process(name: Atom, pid: Pid) -> Result<(), Atom> {
    let guard = pin();
    let shared = lookup(pid, &guard).ok_or(am::notalive)?;
    let mut names = names().write();
    shared.can_be_named()?;
    if names.contains_key(&name) {
        return Err(am::none);
    }
    // It may have begun to exit just now.
    if !shared.set_name(name) {
        return Err(am::notalive);
    }
    names.insert(name, Named::Process(pid));
    // A tracer that fails gives up its own name.
    drop(names);
    happened(shared, Event::Register, name.term());
    probes().registered(pid, name);
    Ok(())
}

/// Gives `name` to a port.
///
/// # Errors
/// As [`register_process`].
pub(crate) fn register_port(name: Atom, port: Port) -> Result<(), Atom> {
    let mut names = names().write();
    if names.values().any(|named| *named == Named::Port(port)) {
        return Err(am::registered_name);
    }
    if names.contains_key(&name) {
        return Err(am::none);
    }
    names.insert(name, Named::Port(port));
    Ok(())
}

/// Frees `name`; tells who had it.
pub(crate) fn unregister(name: Atom) -> Option<Named> {
    let mut names = names().write();
    let named = names.remove(&name);
    if let Some(Named::Process(pid)) = named
        && let Some(shared) = lookup(pid, &pin())
    {
        shared.clear_name(name);
        drop(names);
        happened(shared, Event::Unregister, name.term());
    }
    named
}

/// Takes the name of a process that exits, and lets it get no other.
pub(super) fn unregister_exiting(shared: &ProcShared) {
    if let Some(name) = shared.refuse_names() {
        let mut names = names().write();
        if names.get(&name) == Some(&Named::Process(shared.pid())) {
            names.remove(&name);
            drop(names);
            happened(shared, Event::Unregister, name.term());
        }
    }
}

/// All names, in the order of their atoms' indices.
#[must_use]
pub fn registered() -> Vec<Atom> {
    let mut all: Vec<Atom> = names().read().keys().copied().collect();
    all.sort_unstable();
    all
}
