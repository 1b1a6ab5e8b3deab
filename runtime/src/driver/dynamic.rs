//! A driver that was loaded: which processes have loaded it, which wait for a change of it, and what is to become of
//! it.

use super::entry::Failure;
use crate::heap::Heap;
use crate::process::refs::{RefNumbers, make_ref};
use crate::process::{SYSTEM, Signal, deliver};
use crate::term::atom::atom;
use crate::term::{Atom, Pid, Term, am};

/// What a row is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    /// It is loaded.
    Ok,
    /// It is to be unloaded.
    Unload,
    /// It is to be unloaded, and no port is opened any more.
    ForceUnload,
    /// It is to be loaded anew.
    Reload,
    /// It is to be loaded anew, and no port is opened any more.
    ForceReload,
    /// It stays for ever.
    Permanent,
}

/// A process that has loaded a driver, or waits for what becomes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Has loaded it. Does that count as a reference?
    Loaded {
        counts: bool,
    },
    AwaitsLoad(RefNumbers),
    AwaitsUnload(RefNumbers),
    /// As [`Role::AwaitsUnload`], whatever is cancelled in between.
    AwaitsUnloadOnly(RefNumbers),
}

pub(super) struct User {
    pub(super) pid: Pid,
    pub(super) role: Role,
}

/// What is to be loaded anew.
pub(super) struct Reload {
    pub(super) path: Vec<u8>,
    pub(super) kills_ports: bool,
}

/// A driver that was loaded.
pub(super) struct Dynamic {
    pub(super) path: Vec<u8>,
    pub(super) kills_ports: bool,
    pub(super) status: Status,
    /// The latest first.
    pub(super) users: Vec<User>,
    pub(super) references: usize,
    pub(super) ports: usize,
    pub(super) reload: Option<Reload>,
}

/// Why a request is refused.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// For this reason.
    Reason(&'static str),
    /// The driver cannot be loaded.
    Load(Failure),
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Refusal {
        Refusal::Load(failure)
    }
}

pub(super) fn refused<T>(reason: &'static str) -> Result<T, Refusal> {
    Err(Refusal::Reason(reason))
}

impl Failure {
    /// As programs see it.
    pub(super) fn term(self, heap: &Heap) -> Term<'_> {
        match self {
            Failure::NoInit => atom("no_driver_init"),
            Failure::InitFailed => atom("driver_init_failed"),
            Failure::BadName => atom("bad_driver_name"),
            Failure::Version => atom("driver_incorrect_version"),
            Failure::Open(number) => heap.tuple(&[atom("open_error"), heap.integer(number)]),
        }
    }
}

pub(super) fn tell(
    to: Pid,
    reference: RefNumbers,
    name: &[u8],
    kind: Atom,
    what: impl for<'h> FnOnce(&'h Heap) -> Term<'h>,
) {
    let name = super::latin1(name).term();
    let message = Heap::detached().into_message(|heap| {
        let reference = heap.reference(reference);
        heap.tuple(&[kind.term(), reference, am::driver.term(), name, what(heap)])
    });
    deliver(to, Signal::own(message, SYSTEM));
}

impl Dynamic {
    pub(super) fn loaded(&self) -> impl Iterator<Item = &User> {
        let users = self.users.iter();
        users.filter(|user| matches!(user.role, Role::Loaded { .. }))
    }

    /// Adds a process that has loaded it.
    pub(super) fn add_loaded(&mut self, pid: Pid, counts: bool) {
        let role = Role::Loaded { counts };
        self.users.insert(0, User { pid, role });
        self.references += usize::from(counts);
    }

    pub(super) fn monitor(&mut self, pid: Pid, role: fn(RefNumbers) -> Role) -> RefNumbers {
        let reference = make_ref();
        let role = role(reference);
        self.users.insert(0, User { pid, role });
        reference
    }

    /// Takes back one load by a process; whether there was one.
    pub(super) fn take_loaded(&mut self, pid: Pid) -> bool {
        let is_it = |user: &User| user.pid == pid && matches!(user.role, Role::Loaded { .. });
        let Some(at) = self.users.iter().position(is_it) else {
            return false;
        };
        let user = self.users.remove(at);
        self.references -= usize::from(user.role == Role::Loaded { counts: true });
        true
    }

    /// Is the process the only one that has loaded it, and once?
    pub(super) fn is_last_user(&self, pid: Pid) -> bool {
        let mut loaded = self.loaded();
        loaded.next().is_some_and(|user| user.pid == pid) && loaded.next().is_none()
    }

    /// Sends the outcome to the processes that wait in a role.
    pub(super) fn tell_all(
        &mut self,
        name: &[u8],
        role: fn(Role) -> Option<RefNumbers>,
        kind: Atom,
        what: &str,
    ) {
        let told = self.users.extract_if(.., |user| role(user.role).is_some());
        for user in told {
            if let Some(reference) = role(user.role) {
                tell(user.pid, reference, name, kind, |_| atom(what));
            }
        }
    }

    /// Nothing is to be loaded anew any more.
    pub(super) fn cancel_reload(&mut self, name: &[u8]) {
        if matches!(self.status, Status::Reload | Status::ForceReload) {
            self.tell_all(name, awaited_load, am::DOWN, "load_cancelled");
            self.reload = None;
        }
    }
}

pub(super) fn awaited_load(role: Role) -> Option<RefNumbers> {
    match role {
        Role::AwaitsLoad(reference) => Some(reference),
        _ => None,
    }
}

pub(super) fn awaited_unload(role: Role) -> Option<RefNumbers> {
    match role {
        Role::AwaitsUnload(reference) => Some(reference),
        _ => None,
    }
}

pub(super) fn awaited_any_unload(role: Role) -> Option<RefNumbers> {
    match role {
        Role::AwaitsUnload(reference) | Role::AwaitsUnloadOnly(reference) => Some(reference),
        _ => None,
    }
}

/// What `erl_ddll:try_load/3` asks for.
#[derive(Clone, Copy, Default)]
pub(super) struct LoadOptions {
    pub(super) kills_ports: bool,
    /// 1 with `pending_driver`, 2 with `pending`.
    pub(super) monitor: u8,
    pub(super) reload: u8,
}

/// A driver that is there is loaded: the status, and whether the caller may wait for it.
pub(super) fn load_again(
    dynamic: &mut Dynamic,
    name: &[u8],
    pid: Pid,
    path: &[u8],
    options: LoadOptions,
) -> Result<(Atom, bool), Refusal> {
    let is_same = dynamic.path == path && dynamic.kills_ports == options.kills_ports;
    match dynamic.status {
        Status::Ok if options.reload != 0 => load_anew(dynamic, pid, path, options),
        Status::Ok | Status::Unload | Status::ForceUnload => {
            if options.reload != 0 {
                return refused("not_loaded_by_this_process");
            }
            if !is_same {
                return refused("inconsistent");
            }
            if dynamic.status != Status::Ok {
                dynamic.status = Status::Ok;
                dynamic.tell_all(name, awaited_unload, am::UP, "unload_cancelled");
            }
            dynamic.add_loaded(pid, true);
            Ok((am::already_loaded, false))
        }
        Status::Reload | Status::ForceReload => {
            if options.reload != 0 {
                return refused("pending_reload");
            }
            let reload = dynamic.reload.as_ref();
            let is_same =
                reload.is_some_and(|it| it.path == path && it.kills_ports == options.kills_ports);
            if !is_same {
                return refused("inconsistent");
            }
            dynamic.add_loaded(pid, false);
            Ok((am::pending_driver, true))
        }
        Status::Permanent => refused("permanent"),
    }
}

/// A driver that is loaded is to be loaded anew.
pub(super) fn load_anew(
    dynamic: &mut Dynamic,
    pid: Pid,
    path: &[u8],
    options: LoadOptions,
) -> Result<(Atom, bool), Refusal> {
    if options.reload == 1 && !dynamic.is_last_user(pid) {
        return refused("pending_process");
    }
    if dynamic.kills_ports != options.kills_ports {
        return refused("inconsistent");
    }
    if !dynamic.take_loaded(pid) {
        return refused("not_loaded_by_this_process");
    }
    for user in &mut dynamic.users {
        if let Role::Loaded { counts } = &mut user.role {
            dynamic.references -= usize::from(std::mem::take(counts));
        }
    }
    dynamic.add_loaded(pid, false);
    dynamic.status = Status::Reload;
    dynamic.reload = Some(Reload {
        path: path.to_vec(),
        kills_ports: options.kills_ports,
    });
    let status = match options.reload {
        1 => am::pending_driver,
        _ => am::pending_process,
    };
    Ok((status, options.monitor != 0))
}
