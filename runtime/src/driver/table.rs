//! Which drivers there are: those of libraries, with the processes that loaded them and those that wait for them, and
//! those that are linked in. Source: `erl_bif_ddll.c`, OTP 29.
//!
//! A driver ends when nobody refers to it any more: no process that has loaded it, no port, no job. Then it is
//! unloaded, or loaded anew where that was asked for. Whoever gives up the last reference does so, but not before a
//! driver's function that runs has returned, because each call into a driver holds a [`Use`].
//!
//! The table's lock is the last one to be taken, and a driver's `init` and `finish` run under it. They may come back to
//! add and remove drivers, so a thread may take it again; no row is borrowed while they run.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::c_int;
use std::sync::Arc;

use parking_lot::ReentrantMutex;

use super::dynamic::{
    Dynamic, LoadOptions, Refusal, Reload, Role, Status, User, awaited_any_unload, awaited_load,
    load_again, refused, tell,
};
use super::entry::{Driver, Entry, Failure, NO_BUSY_QUEUE};
use super::instance;
use super::{DrvPort, api};
use crate::code::nif::taints;
use crate::port::open::Error;
use crate::port::{Port, driver as native, linked};
use crate::process::Process;
use crate::process::refs::{RefNumbers, make_ref};
use crate::process::watcher::{WatchedBy, Watcher};
use crate::term::atom::atom;
use crate::term::{Atom, Pid, Term, am};

/// Where a driver is that another one has added.
const ADDED: &str = "another driver's library";

struct Row {
    id: u64,
    name: Vec<u8>,
    /// None of those that the runtime has itself.
    driver: Option<Arc<Driver>>,
    /// None of those that are linked in.
    dynamic: Option<Dynamic>,
}

#[derive(Default)]
struct Table {
    rows: Vec<Row>,
    last_id: u64,
    /// Processes that say when they exit.
    watched: BTreeSet<Pid>,
}

static DRIVERS: ReentrantMutex<RefCell<Table>> = ReentrantMutex::new(RefCell::new(Table {
    rows: Vec::new(),
    last_id: 0,
    watched: BTreeSet::new(),
}));

fn with<T>(change: impl FnOnce(&mut Table) -> T) -> T {
    let table = DRIVERS.lock();
    let mut table = table.borrow_mut();
    change(&mut table)
}

/// What a request has done: the status, and whether a monitor is to tell of the end.
type Done = Result<(Atom, Option<RefNumbers>), Refusal>;

impl Table {
    fn find(&mut self, name: &[u8]) -> Option<&mut Row> {
        self.rows.iter_mut().find(|row| row.name == name)
    }

    fn row(&mut self, id: u64) -> Option<&mut Row> {
        self.rows.iter_mut().find(|row| row.id == id)
    }

    fn dynamic(&mut self, id: u64) -> Option<&mut Dynamic> {
        self.row(id)?.dynamic.as_mut()
    }

    fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }
}

/// Has the process say so when it exits.
fn watch(p: &Process) {
    let pid = p.pid();
    if with(|table| table.watched.insert(pid)) {
        let told = Box::new(move |_: Term<'_>| exited(pid));
        let by = WatchedBy::Runtime;
        let watcher = Watcher { told, by };
        p.relations().watchers.insert(make_ref(), watcher);
    }
}

/// Loads the functions of a driver, and has it begin.
fn begin(id: u64, path: &[u8], name: &[u8]) -> Result<Option<Arc<Driver>>, Failure> {
    if native::load(name).is_some() {
        return Ok(None);
    }
    let driver = Arc::new(Driver::load(id, path, name)?);
    taints::add(super::latin1(name));
    driver.init()?;
    linked::add(name, Arc::new(Loaded(driver.clone())));
    Ok(Some(driver))
}

/// Ends a driver's functions.
fn end(name: &[u8], driver: Option<Arc<Driver>>) {
    match driver {
        Some(driver) => {
            linked::remove(name);
            driver.finish();
        }
        None => _ = native::unload(name),
    }
}

/// `erl_ddll:try_load/3`. `path` is that of the file, without its ending.
pub(super) fn try_load(p: &Process, path: &[u8], name: &[u8], options: LoadOptions) -> Done {
    if native::is_linked_in(name) {
        return refused("linked_in_driver");
    }
    let lock = DRIVERS.lock();
    let pid = p.pid();
    let known = with(|table| {
        let row = table.find(name)?;
        let id = row.id;
        let done = match &mut row.dynamic {
            None => refused("linked_in_driver"),
            Some(dynamic) => load_again(dynamic, name, pid, path, options),
        };
        Some((id, done))
    });
    let (id, loaded) = match known {
        Some((id, done)) => (id, done?),
        None if options.reload != 0 => return refused("not_loaded"),
        None => (load_new(pid, path, name, options)?, (am::loaded, false)),
    };
    let kills = with(|table| {
        let dynamic = table.dynamic(id)?;
        let kills = dynamic.status == Status::Reload && options.reload != 0 && dynamic.kills_ports;
        if kills {
            dynamic.status = Status::ForceReload;
        }
        dynamic.references += 1;
        Some(kills)
    });
    drop(lock);
    if kills == Some(true) {
        instance::end_all(id, "driver_unloaded");
    }
    watch(p);
    let (status, monitors) = loaded;
    let monitor = with(|table| {
        let dynamic = table.dynamic(id).filter(|_| monitors)?;
        Some(dynamic.monitor(pid, Role::AwaitsLoad))
    });
    release(id);
    Ok((status, monitor))
}

fn load_new(pid: Pid, path: &[u8], name: &[u8], options: LoadOptions) -> Result<u64, Refusal> {
    let id = with(Table::next_id);
    let driver = begin(id, path, name)?;
    with(|table| {
        let mut dynamic = Dynamic {
            path: path.to_vec(),
            kills_ports: options.kills_ports,
            status: Status::Ok,
            users: Vec::new(),
            references: 0,
            ports: 0,
            reload: None,
        };
        dynamic.add_loaded(pid, true);
        let row = Row {
            id,
            name: name.to_vec(),
            driver,
            dynamic: Some(dynamic),
        };
        table.rows.insert(0, row);
    });
    Ok(id)
}

/// `erl_ddll:try_unload/2`; `monitor` is 1 with `pending_driver`, 2 with `pending`.
pub(super) fn try_unload(p: &Process, name: &[u8], kills_ports: bool, monitor: u8) -> Done {
    if native::is_linked_in(name) {
        return refused("linked_in_driver");
    }
    let pid = p.pid();
    let (id, status, kills, waits) = with(|table| {
        let Some(row) = table.find(name) else {
            return refused("not_loaded");
        };
        let id = row.id;
        let Some(dynamic) = &mut row.dynamic else {
            return refused("linked_in_driver");
        };
        if dynamic.status == Status::Permanent {
            return refused("permanent");
        }
        let had_loaded = dynamic.take_loaded(pid);
        let others = dynamic.loaded().next().is_some();
        dynamic.references += 1;
        if others {
            if !had_loaded {
                dynamic.references -= 1;
                return refused("not_loaded_by_this_process");
            }
            return Ok((id, am::pending_process, false, monitor == 2));
        }
        dynamic.cancel_reload(name);
        let kills = (kills_ports || dynamic.kills_ports) && dynamic.ports > 0;
        dynamic.status = match kills {
            true => Status::ForceUnload,
            false => Status::Unload,
        };
        Ok((id, am::pending_driver, kills, monitor != 0))
    })?;
    if kills {
        instance::end_all(id, "driver_unloaded");
    }
    watch(p);
    let monitor = with(|table| {
        let dynamic = table.dynamic(id).filter(|_| waits)?;
        Some(dynamic.monitor(pid, Role::AwaitsUnload))
    });
    release(id);
    Ok((status, monitor))
}

/// What is waited for with `erl_ddll:monitor/2`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Awaited {
    Loaded,
    Unloaded,
    UnloadedOnly,
}

/// `erl_ddll:monitor/2`: the reference; and the message, where it is due at once.
pub(super) fn monitor(
    p: &Process,
    name: &[u8],
    awaited: Awaited,
) -> (RefNumbers, Option<(Atom, &'static str)>) {
    let told = with(|table| {
        if native::is_linked_in(name) {
            return Err((am::UP, "permanent"));
        }
        let Some(row) = table.find(name) else {
            return Err((am::DOWN, "unloaded"));
        };
        let Some(dynamic) = row.dynamic.as_mut() else {
            return Err((am::UP, "permanent"));
        };
        match (awaited, dynamic.status) {
            (_, Status::Permanent) => Err((am::UP, "permanent")),
            (Awaited::Loaded, Status::Ok) => Err((am::UP, "loaded")),
            (Awaited::Loaded, Status::Unload | Status::ForceUnload) => {
                Err((am::DOWN, "load_cancelled"))
            }
            (Awaited::Loaded, _) => Ok(dynamic.monitor(p.pid(), Role::AwaitsLoad)),
            (Awaited::Unloaded, _) => Ok(dynamic.monitor(p.pid(), Role::AwaitsUnload)),
            (Awaited::UnloadedOnly, _) => Ok(dynamic.monitor(p.pid(), Role::AwaitsUnloadOnly)),
        }
    });
    match told {
        Ok(reference) => {
            watch(p);
            (reference, None)
        }
        Err(told) => (make_ref(), Some(told)),
    }
}

/// `erl_ddll:demonitor/1`.
pub(super) fn demonitor(pid: Pid, reference: RefNumbers) {
    let is_it = |user: &User| {
        let awaited = awaited_load(user.role).or(awaited_any_unload(user.role));
        user.pid == pid && awaited == Some(reference)
    };
    with(|table| {
        for row in &mut table.rows {
            if let Some(dynamic) = &mut row.dynamic {
                dynamic.users.retain(|user| !is_it(user));
            }
        }
    });
}

/// Names of the drivers that libraries have.
pub(super) fn names() -> Vec<Vec<u8>> {
    with(|table| table.rows.iter().map(|row| row.name.clone()).collect())
}

/// What is known of a driver.
pub(super) struct Info {
    /// `None` of one that is linked in.
    pub(super) status: Option<Status>,
    pub(super) kills_ports: bool,
    pub(super) ports: usize,
    /// Processes, and in which roles.
    pub(super) users: Vec<(Pid, Role)>,
}

/// What is known of the driver of this name, if there is one.
pub(super) fn info(name: &[u8]) -> Option<Info> {
    let of_linked_in = || Info {
        status: None,
        kills_ports: false,
        ports: 0,
        users: Vec::new(),
    };
    if native::is_linked_in(name) {
        return Some(of_linked_in());
    }
    with(|table| {
        let row = table.find(name)?;
        Some(match &row.dynamic {
            None => of_linked_in(),
            Some(dynamic) => Info {
                status: Some(dynamic.status),
                kills_ports: dynamic.kills_ports,
                ports: dynamic.ports,
                users: dynamic
                    .users
                    .iter()
                    .map(|user| (user.pid, user.role))
                    .collect(),
            },
        })
    })
}

/// A process that has to do with drivers has exited.
fn exited(pid: Pid) {
    let mut touched = Vec::new();
    with(|table| {
        table.watched.remove(&pid);
        for row in &mut table.rows {
            let Some(dynamic) = &mut row.dynamic else {
                continue;
            };
            if dynamic.status == Status::Permanent || !dynamic.users.iter().any(|it| it.pid == pid)
            {
                continue;
            }
            dynamic.references += 1;
            while dynamic.take_loaded(pid) {}
            dynamic.users.retain(|user| user.pid != pid);
            let mut kills = false;
            if dynamic.loaded().next().is_none() {
                dynamic.cancel_reload(&row.name);
                dynamic.status = Status::Unload;
                kills = dynamic.kills_ports && dynamic.ports > 0;
                if kills {
                    dynamic.status = Status::ForceUnload;
                }
            }
            touched.push((row.id, kills));
        }
    });
    for (id, kills) in touched {
        if kills {
            instance::end_all(id, "driver_unloaded");
        }
        release(id);
    }
}

/// Gives up a reference to a driver, and ends it if that was the last.
fn release(id: u64) {
    let _lock = DRIVERS.lock();
    let ended = with(|table| {
        let row = table.row(id)?;
        let dynamic = row.dynamic.as_mut()?;
        dynamic.references -= 1;
        let is_last = dynamic.references == 0 && dynamic.status != Status::Permanent;
        is_last.then(|| (row.name.clone(), row.driver.take()))
    });
    let Some((name, driver)) = ended else { return };
    end(&name, driver);
    let reload = with(|table| {
        let dynamic = table.dynamic(id)?;
        dynamic.tell_all(&name, awaited_any_unload, am::DOWN, "unloaded");
        dynamic.reload.take()
    });
    match reload {
        Some(reload) => finish_reload(id, &name, reload),
        None => with(|table| table.rows.retain(|row| row.id != id)),
    }
}

/// Loads a driver anew whose functions have ended.
fn finish_reload(id: u64, name: &[u8], reload: Reload) {
    match begin(id, &reload.path, name) {
        Ok(driver) => with(|table| {
            let Some(row) = table.row(id) else { return };
            row.driver = driver;
            let Some(dynamic) = &mut row.dynamic else {
                return;
            };
            dynamic.status = Status::Ok;
            dynamic.path = reload.path;
            dynamic.kills_ports = reload.kills_ports;
            for user in &mut dynamic.users {
                if let Role::Loaded { counts } = &mut user.role {
                    dynamic.references += usize::from(!std::mem::replace(counts, true));
                }
            }
            dynamic.tell_all(name, awaited_load, am::UP, "loaded");
        }),
        Err(failure) => with(|table| {
            for user in table
                .dynamic(id)
                .map_or_else(Vec::new, |it| std::mem::take(&mut it.users))
            {
                if let Some(reference) = awaited_load(user.role) {
                    tell(user.pid, reference, name, am::DOWN, |heap| {
                        heap.tuple(&[atom("load_failure"), failure.term(heap)])
                    });
                }
            }
            table.rows.retain(|row| row.id != id);
        }),
    }
}

/// A reference to a driver.
pub(super) struct Use(u64);

impl Use {
    /// One more reference to a driver that somebody refers to.
    pub(super) fn again(&self) -> Use {
        with(|table| {
            if let Some(dynamic) = table.dynamic(self.0) {
                dynamic.references += 1;
            }
        });
        Use(self.0)
    }

    /// Counts a port of the driver, or one less.
    pub(super) fn count_port(&self, more: bool) {
        with(|table| {
            if let Some(dynamic) = table.dynamic(self.0) {
                dynamic.ports = dynamic.ports + usize::from(more) - usize::from(!more);
            }
        });
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        release(self.0);
    }
}

/// A reference to a driver for a port that is opened; `None` where its ports are being ended.
pub(super) fn use_for_port(driver: &Arc<Driver>) -> Option<Use> {
    with(|table| {
        let row = table.row(driver.id)?;
        if !row
            .driver
            .as_ref()
            .is_some_and(|it| Arc::ptr_eq(it, driver))
        {
            return None;
        }
        if let Some(dynamic) = &mut row.dynamic {
            if matches!(dynamic.status, Status::ForceUnload | Status::ForceReload) {
                return None;
            }
            dynamic.references += 1;
            dynamic.ports += 1;
        }
        Some(Use(driver.id))
    })
}

/// A driver that can be opened by name.
struct Loaded(Arc<Driver>);

impl linked::Library for Loaded {
    fn has_busy_queue(&self) -> bool {
        self.0.entry.flags & NO_BUSY_QUEUE == 0
    }

    fn open(
        &self,
        port: &Arc<Port>,
        command: &[u8],
        mode: linked::Mode,
        caller: Pid,
    ) -> Result<(), Error> {
        instance::open(&self.0, port, command, mode, caller)
    }
}

/// The driver stays for ever.
fn make_permanent(id: u64) -> bool {
    with(|table| {
        let Some(row) = table.row(id) else {
            return false;
        };
        let Some(dynamic) = &mut row.dynamic else {
            return false;
        };
        dynamic.tell_all(&row.name, awaited_load, am::UP, "permanent");
        dynamic.tell_all(&row.name, awaited_any_unload, am::UP, "permanent");
        dynamic.users.clear();
        dynamic.references += 1;
        dynamic.status = Status::Permanent;
        true
    })
}

api! {
    /// Has the driver of a port stay for ever: 0; -1 where it is linked in.
    fn driver_lock_driver(port: DrvPort) -> c_int {
        let Some(this) = instance::of(port) else { return -1 };
        if make_permanent(this.driver.id) { 0 } else { -1 }
    }
    /// Adds a driver that is linked in.
    fn add_driver_entry(entry: *mut Entry) {
        let _lock = DRIVERS.lock();
        let id = with(Table::next_id);
        let driver = Arc::new(Driver::new(id, entry, None, ADDED));
        let name = driver.name.clone();
        linked::add(&name, Arc::new(Loaded(driver.clone())));
        with(|table| {
            let row = Row { id, name, driver: Some(driver.clone()), dynamic: None };
            table.rows.insert(0, row);
        });
        // What its `init` says counts for nothing, as in ERTS.
        let _ = driver.init();
    }
    /// Takes such a driver out again: 0; -1 where there is none, or it was loaded.
    fn remove_driver_entry(entry: *mut Entry) -> c_int {
        let name = Driver::new(0, entry, None, ADDED).name;
        let removed = with(|table| {
            let at = table.rows.iter().position(|row| row.name == name && row.dynamic.is_none())?;
            Some(table.rows.remove(at))
        });
        if removed.is_none() { return -1 }
        linked::remove(&name);
        0
    }
}
