//! The registered names of processes and ports.

use std::sync::OnceLock;

use parking_lot::{Mutex, RwLock, RwLockWriteGuard};
use smallvec::SmallVec;

use super::event::Event;
use super::order::access::{Access, Object, ObjectsOf, Part, Shared, Touch};
use super::order::answer::Native;
use super::order::{answer, explore};
use super::probe::{happened, probes};
use super::shared::lookup;
use super::{Control, ProcShared, Process};
use crate::hash::HashMap;
use crate::process::order::director::{
    are_accesses_ordered, if_explored, may_timing_show, take_last_name, wake_if_it_may_end,
};
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

/// What stands for each name in the order of accesses, and for all of them together.
static OBJECTS: ObjectsOf<Atom> = ObjectsOf::new();
static ALL: Object = Object::new();

/// What stands for whether a process may get a name, in an explored run.
static NAMED: ObjectsOf<Pid> = ObjectsOf::new();

/// The names that processes have had and not given up themselves, where the order is asked for.
static HAD: Had = Had(Mutex::new(None));

/// Names of processes.
struct Had(Mutex<Option<HashMap<Pid, SmallVec<[Atom; 1]>>>>);

impl Had {
    fn of(&self, pid: Pid) -> SmallVec<[Atom; 1]> {
        let all = self.0.lock();
        let names = all.as_ref().and_then(|all| all.get(&pid));
        names.cloned().unwrap_or_default()
    }

    fn note(&self, pid: Pid, name: Atom) {
        if !are_accesses_ordered() {
            return;
        }
        let mut all = self.0.lock();
        let names = all.get_or_insert_default().entry(pid).or_default();
        if !names.contains(&name) {
            names.push(name);
        }
    }

    fn forget(&self, pid: Pid, name: Atom) {
        if !are_accesses_ordered() {
            return;
        }
        let mut all = self.0.lock();
        let all = all.get_or_insert_default();
        if let Some(names) = all.get_mut(&pid) {
            names.retain(|known| *known != name);
            if names.is_empty() {
                all.remove(&pid);
            }
        }
    }

    fn forget_all(&self, pid: Pid) {
        if let Some(all) = self.0.lock().as_mut() {
            all.remove(&pid);
        }
    }
}

/// Another process gives this one a name; or it ends, and gets none any more.
pub(super) fn whether_named(pid: Pid) -> Touch<'static> {
    Touch {
        object: NAMED.of(pid),
        access: Access::Write,
        shared: Shared::Named,
        name: None,
        part: Part::All,
    }
}

/// A write to which process has this name.
fn of_name(name: Atom) -> Touch<'static> {
    Touch {
        object: OBJECTS.of(name),
        access: Access::Write,
        shared: Shared::Name,
        name: Some(name),
        part: Part::All,
    }
}

/// A look for the process that has a name.
pub(super) fn look_for(name: Atom) -> Touch<'static> {
    Touch {
        access: Access::Read,
        ..of_name(name)
    }
}

/// A change of which names there are.
fn of_names(part: Part<'static>) -> Touch<'static> {
    Touch {
        object: &ALL,
        access: Access::Write,
        shared: Shared::Names,
        name: None,
        part,
    }
}

/// A look at all names.
pub(super) fn all_names() -> Touch<'static> {
    Touch {
        access: Access::Read,
        ..of_names(Part::All)
    }
}

/// A write to which process has this name, and to which names there are.
fn changes_of(name: Atom) -> [Touch<'static>; 2] {
    [of_name(name), of_names(Part::Key(name.term()))]
}

/// The names, of which one is about to be changed.
pub(crate) type Changes = RwLockWriteGuard<'static, HashMap<Atom, Named>>;

/// To give `name` to a process or port, by `p`.
///
/// # Errors
/// It is not the turn of `p`, as [`Process::access`] tells.
pub(crate) fn to_give(p: &Process, name: Atom, to: Named) -> Result<Changes, Control<'static>> {
    let names = to_change_now();
    p.access_those(|| {
        let other = match to {
            Named::Process(pid) if pid != p.pid() => if_explored(|| whether_named(pid)),
            _ => None,
        };
        changes_of(name).into_iter().chain(other)
    })?;
    Ok(names)
}

/// To free `name`, by `p`.
///
/// # Errors
/// As [`to_give`].
pub(crate) fn to_free(p: &Process, name: Atom) -> Result<Changes, Control<'static>> {
    let names = to_change_now();
    p.access_those(|| changes_of(name))?;
    if names.get(&name) == Some(&Named::Process(p.pid())) {
        HAD.forget(p.pid(), name);
    }
    Ok(names)
}

/// To change names where no process does it.
pub(crate) fn to_change_now() -> Changes {
    names().write()
}

/// The process or port that has `name`, as `p` looks for it.
///
/// # Errors
/// As [`to_give`].
pub(crate) fn find(p: &Process, name: Atom) -> Result<Option<Named>, Control<'static>> {
    let names = names().read();
    p.access_those(|| [look_for(name)])?;
    Ok(names.get(&name).copied())
}

/// As [`find`], for a monitor or link of `p`, which hears of the end of the process that has the name.
///
/// # Errors
/// As [`to_give`].
pub(crate) fn find_to_watch(p: &Process, name: Atom) -> Result<Option<Named>, Control<'static>> {
    let names = names().read();
    let named = names.get(&name).copied();
    p.access_those(|| {
        let nobody = match named {
            None => if_explored(explore::end_of_nobody),
            Some(_) => None,
        };
        std::iter::once(look_for(name)).chain(nobody)
    })?;
    Ok(named)
}

/// The process or port that has `name`, by no process.
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

/// Whether another process gets a name, as is recorded; with the end of a process, the names that it has had.
static GETS: Native = Native::new("erlang", "register", 2);

/// Whether a process that `p` gives a name to is there to get one. The caller holds the names.
pub(crate) fn gets_name(p: &Process, pid: Pid) -> bool {
    let may_get = |shared: &ProcShared| shared.check_nameable() != Err(am::notalive);
    let is_there = || lookup(pid, &pin()).is_some_and(may_get);
    pid == p.pid() || may_timing_show() || answer::decided(p, &GETS, is_there)
}

/// Gives `name` to a process.
///
/// # Errors
/// Why not, as `erl_erts_errors` takes it: the process is gone, it has a name, or (`none`) the name is taken.
pub(crate) fn register_process(mut names: Changes, name: Atom, pid: Pid) -> Result<(), Atom> {
    let guard = pin();
    let shared = lookup(pid, &guard).ok_or(am::notalive)?;
    shared.check_nameable()?;
    if names.contains_key(&name) {
        return Err(am::none);
    }
    // It may have begun to exit just now.
    if !shared.set_name(name) {
        return Err(am::notalive);
    }
    names.insert(name, Named::Process(pid));
    HAD.note(pid, name);
    // A tracer that fails gives up its own name.
    drop(names);
    wake_if_it_may_end(shared);
    happened(shared, Event::Register, name.term());
    probes().registered(pid, name);
    Ok(())
}

/// Gives `name` to a port.
///
/// # Errors
/// As [`register_process`].
pub(crate) fn register_port(mut names: Changes, name: Atom, port: Port) -> Result<(), Atom> {
    if names.values().any(|named| *named == Named::Port(port)) {
        return Err(am::registered_name);
    }
    if names.contains_key(&name) {
        return Err(am::none);
    }
    names.insert(name, Named::Port(port));
    Ok(())
}

/// Frees `name`; returns what had it.
pub(crate) fn unregister(mut names: Changes, name: Atom) -> Option<Named> {
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

/// To free the names of `p`, which exits: those that it has had, unless it has given them up itself. One that another process
/// has taken away counts, too, as it depends on the order whether it had done so.
///
/// # Errors
/// As [`to_give`].
fn to_free_all(p: &Process) -> Result<Changes, Control<'static>> {
    let names = to_change_now();
    let mut all = HAD.of(p.pid());
    all.extend(p.shared().name().filter(|name| !all.contains(name)));
    let recorded = p.would_be_given(&GETS, |recorded| {
        let names = recorded.list_iter().map_while(Result::ok);
        names.filter_map(Term::as_atom).collect::<Vec<_>>()
    });
    if recorded.is_some_and(|recorded| recorded.iter().any(|name| !all.contains(name))) {
        // Another process has yet to give it one.
        return Err(Control::Wait);
    }
    if all.is_empty() {
        return Ok(names);
    }
    let touches: Vec<_> = all.iter().flat_map(|name| changes_of(*name)).collect();
    p.access_all(&touches)?;
    explore::note_nameless(p);
    HAD.forget_all(p.pid());
    let all: Vec<Term<'_>> = all.iter().map(|name| name.term()).collect();
    answer::noted(p, &GETS, p.list(&all));
    Ok(names)
}

/// Takes the name of a process that exits, and lets it get no other.
///
/// # Errors
/// As [`to_give`].
pub(super) fn unregister_exiting(p: &Process) -> Result<(), Control<'static>> {
    let shared = p.shared();
    let named = match are_accesses_ordered() {
        true => Some(to_free_all(p)?),
        false => None,
    };
    if let Some(name) = take_last_name(shared) {
        let mut names = named.unwrap_or_else(to_change_now);
        if names.get(&name) == Some(&Named::Process(shared.pid())) {
            names.remove(&name);
            drop(names);
            happened(shared, Event::Unregister, name.term());
        }
    }
    Ok(())
}

/// All names, in the order of their atoms' indices.
///
/// # Errors
/// As [`to_give`].
pub(crate) fn registered(p: &Process) -> Result<Vec<Atom>, Control<'static>> {
    let names = names().read();
    p.access(all_names())?;
    let mut all: Vec<Atom> = names.keys().copied().collect();
    all.sort_unstable();
    Ok(all)
}
