//! The registry of tables, by name and by owner. It also handles a process's tables when the process exits.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use parking_lot::{Mutex, RwLock};

use super::{Access, Object, Objects, Table, error};
use crate::hash::HashSet;
use crate::hash::internal::mix64;
use crate::heap::{MagicBinary, Message};
use crate::process::access::{ObjectsOf, Part, Shared, Touch};
use crate::process::order;
use crate::process::refs::RefNumbers;
use crate::process::{self, Control, Leave, Process, Raise, Signal, refs};
use crate::term::{Atom, Pid, Ref, Term, am};

/// Hashes atoms and pids, which are numbers.
#[derive(Default)]
pub(super) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }
    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }
    fn write_u64(&mut self, value: u64) {
        self.0 = mix64(self.0 ^ value);
    }
}

type Map<K, V> = HashMap<K, V, BuildHasherDefault<NumberHasher>>;

/// What is freed in one go of the tables of a process that ends.
const REDS_AT_ONCE: i64 = process::CONTEXT_REDS;

/// A table as others hold it.
pub(crate) type TableRef = Arc<MagicBinary>;

static NAMES: LazyLock<RwLock<Map<Atom, TableRef>>> = LazyLock::new(RwLock::default);

/// The references of the tables without names that a replay has made: one that is gone is told from one that has yet to be
/// made.
static MADE: LazyLock<Mutex<HashSet<RefNumbers>>> = LazyLock::new(Mutex::default);

/// What stands for each name in the order of accesses: for looking up the name, and for all that is done to its table.
static OBJECTS: ObjectsOf<Atom> = ObjectsOf::new();

/// What stands for a name in the order of accesses; nothing where nobody asks for the order.
pub(super) fn object_of(name: Atom) -> Option<&'static Object> {
    order::is_asked().then(|| OBJECTS.of(name))
}

/// An access to a name, and to the table that has it.
fn touch_of(object: &Object, name: Atom, access: Access) -> Touch<'_> {
    Touch {
        object,
        access,
        shared: Shared::Table(name),
        part: Part::All,
    }
}

/// The tables of processes.
#[derive(Default)]
struct Owned {
    tables: Map<Pid, Vec<TableRef>>,
    /// Tables that a process has fixed.
    fixed: Map<Pid, Vec<TableRef>>,
    /// Objects of tables that have died with a process, which has yet to free them.
    dying: Map<Pid, Objects>,
    super_users: Vec<Pid>,
}

impl Owned {
    /// Most processes that exit have nothing here.
    fn has_any_of(&self, pid: Pid) -> bool {
        self.tables.contains_key(&pid)
            || self.fixed.contains_key(&pid)
            || self.dying.contains_key(&pid)
            || self.super_users.contains(&pid)
    }
}

static OWNED: LazyLock<Mutex<Owned>> = LazyLock::new(Mutex::default);
static TABLES: AtomicUsize = AtomicUsize::new(0);
static DYING: AtomicUsize = AtomicUsize::new(0);
static SUPER_USERS: AtomicUsize = AtomicUsize::new(0);

/// The table in a reference.
fn table_of(reference: &MagicBinary) -> Option<&Table> {
    reference.get()
}

/// The table that an Erlang term names, as long as the term or this is held.
pub(crate) enum Handle<'p> {
    /// Through a reference in hand.
    Reference(&'p Table),
    /// Through its name.
    Named(TableRef),
}

impl Handle<'_> {
    /// The table.
    #[inline]
    pub(crate) fn table(&self) -> &Table {
        match self {
            Handle::Reference(table) => table,
            Handle::Named(reference) => {
                table_of(reference).expect("names are those of tables only")
            }
        }
    }

    /// A reference to it, in addition to `id`, by which it was found.
    pub(crate) fn tid<'p>(&self, p: &'p Process, id: Term<'p>) -> Term<'p> {
        match self {
            Handle::Reference(_) => id,
            Handle::Named(reference) => p.magic_reference(Arc::clone(reference)),
        }
    }
}

/// The table that `id` names.
///
/// # Errors
/// `badarg`, because of `type` where `id` is no identifier, of `id` where there is no such table.
#[inline]
pub(crate) fn find<'p>(p: &Process, id: Term<'p>) -> Result<Handle<'p>, Leave<'p>> {
    match id.as_ref() {
        Some(reference) => Ok(referred(reference)?),
        None => named(p, id),
    }
}

/// The table that a reference of this node stands for.
#[inline]
fn referred(reference: Ref<'_>) -> Result<Handle<'_>, Raise<'static>> {
    let table = reference.magic().and_then(table_of);
    table.map(Handle::Reference).ok_or_else(|| error(am::type_))
}

/// The table that `id`, which is no reference, names.
fn named<'p>(p: &Process, id: Term<'p>) -> Result<Handle<'p>, Leave<'p>> {
    let name = id.as_atom().ok_or_else(|| error(am::type_))?;
    let names = NAMES.read();
    if let Some(table) = names.get(&name) {
        return Ok(Handle::Named(Arc::clone(table)));
    }
    if let Some(object) = object_of(name) {
        p.accesses(touch_of(object, name, Access::Read))?;
    }
    Err(error(am::id).into())
}

/// The same by nobody in particular.
///
/// # Errors
/// As [`find`].
pub(crate) fn find_now(id: Term<'_>) -> Result<Handle<'_>, Raise<'static>> {
    if let Some(reference) = id.as_ref() {
        return referred(reference);
    }
    let name = id.as_atom().ok_or_else(|| error(am::type_))?;
    let table = NAMES.read().get(&name).map(Arc::clone);
    table.map(Handle::Named).ok_or_else(|| error(am::id))
}

/// Makes `table` known, for its owner `p`; `None` where its name is taken.
///
/// # Errors
/// It is not the turn of `p`.
pub(crate) fn add(p: &Process, table: Table) -> Result<Option<TableRef>, Control<'static>> {
    let named = table.options.named;
    let (name, owner) = {
        let state = table.state();
        (state.name, state.owner)
    };
    let mut names = named.then(|| NAMES.write());
    if let Some(names) = &names {
        let is_taken = names.contains_key(&name);
        let access = if is_taken {
            Access::Read
        } else {
            Access::Write
        };
        let touch = touch_of(table.object(), name, access);
        p.accesses(touch)?;
        if is_taken {
            return Ok(None);
        }
    }
    let reference = MagicBinary::new(refs::make_ref(), Box::new(table));
    if let Some(table) = table_of(&reference) {
        let _ = table.this.set(Arc::downgrade(&reference));
    }
    if let Some(names) = &mut names {
        names.insert(name, Arc::clone(&reference));
    }
    drop(names);
    if !named && order::is_followed() {
        MADE.lock().insert(reference.ref_numbers());
    }
    TABLES.fetch_add(1, Ordering::Relaxed);
    let mut owned = OWNED.lock();
    let tables = owned.tables.entry(owner).or_default();
    tables.push(Arc::clone(&reference));
    Ok(Some(reference))
}

/// Whether a table with this reference has been made in a replay.
pub(crate) fn was_made(reference: RefNumbers) -> bool {
    MADE.lock().contains(&reference)
}

/// All tables.
pub(crate) fn all() -> Vec<TableRef> {
    let owned = OWNED.lock();
    let tables = owned.tables.values().flatten();
    tables.map(Arc::clone).collect()
}

/// Words that all tables take.
pub(crate) fn all_words() -> usize {
    let tables = all();
    let tables = tables.iter().filter_map(|reference| table_of(reference));
    tables
        .map(|table| table.state().words(&table.options))
        .sum()
}

/// How a table is called: its name, or a reference.
pub(crate) fn term_of<'p>(p: &'p crate::heap::Heap, reference: &TableRef) -> Term<'p> {
    match table_of(reference) {
        Some(table) if table.options.named => table.state().name.term(),
        _ => p.magic_reference(Arc::clone(reference)),
    }
}

fn is_same(reference: &TableRef, table: &Table) -> bool {
    table_of(reference).is_some_and(|other| std::ptr::eq(other, table))
}

/// Takes `table` away from `owner`.
fn disown(owner: Pid, table: &Table) -> Option<TableRef> {
    let mut owned = OWNED.lock();
    let tables = owned.tables.get_mut(&owner)?;
    let at = tables.iter().position(|other| is_same(other, table))?;
    let reference = tables.swap_remove(at);
    if tables.is_empty() {
        owned.tables.remove(&owner);
    }
    Some(reference)
}

fn own(owner: Pid, reference: TableRef) {
    let mut owned = OWNED.lock();
    owned.tables.entry(owner).or_default().push(reference);
}

/// Deletes `table`, whose state is `state`; its objects, which are still to be freed.
#[must_use]
pub(crate) fn delete(table: &Table, state: &mut super::State) -> Objects {
    if table.options.named {
        let mut names = NAMES.write();
        if names
            .get(&state.name)
            .is_some_and(|other| is_same(other, table))
        {
            names.remove(&state.name);
        }
    }
    state.deleted = true;
    state.heir = None;
    state.insertion = None;
    let empty = Objects::new(&table.options);
    let objects = std::mem::replace(&mut state.objects, empty);
    state.fixes = super::Fixes::default();
    if disown(state.owner, table).is_some() {
        TABLES.fetch_sub(1, Ordering::Relaxed);
    }
    objects
}

/// `count` atoms, other than `name`, that the table of names looks for in the same place; they are made
/// where there are too few.
pub(crate) fn colliding_names(name: Atom, count: usize) -> Vec<Atom> {
    let names = NAMES.read();
    let mask = names.capacity().next_power_of_two() as u64 - 1;
    let place = |atom: &Atom| names.hasher().hash_one(atom) & mask;
    let atoms = (0..).map(|index| {
        while index as usize >= crate::term::atom::count() {
            let _ = Atom::new(&format!("am{:x}", crate::term::atom::count()));
        }
        Atom::from_index(index)
    });
    atoms
        .filter(|atom| *atom != name && place(atom) == place(&name))
        .take(count)
        .collect()
}

/// Gives `table` another name; `false` where that is taken.
pub(crate) fn rename(table: &Table, state: &mut super::State, name: Atom) -> bool {
    if table.options.named {
        let mut names = NAMES.write();
        if names.contains_key(&name) {
            return false;
        }
        if let Some(reference) = names.remove(&state.name) {
            names.insert(name, reference);
        }
        moves_object(table, state.name, name);
    }
    state.name = name;
    true
}

/// What stands for a table in the order of accesses goes on to stand for its new name, and for the old one, too.
fn moves_object(table: &Table, old: Atom, new: Atom) {
    if let Some(object) = table.name {
        OBJECTS.set(old, object);
        OBJECTS.set(new, object);
    }
}

/// Makes `to` the owner of `table`.
pub(crate) fn transfer(table: &Table, state: &mut super::State, to: Pid) -> Option<TableRef> {
    let reference = disown(state.owner, table)?;
    state.owner = to;
    own(to, Arc::clone(&reference));
    Some(reference)
}

/// Tells `to` that `reference` is its table now.
pub(crate) fn send_transfer(to: Pid, from: Pid, reference: &TableRef, data: Term<'_>) {
    let heap = crate::heap::Heap::detached();
    let table = term_of(&heap, reference);
    let data = heap.copy_in(data);
    let message = heap.tuple(&[am::ETS_TRANSFER.term(), table, from.term(), data]);
    process::deliver(to, Signal::message(message, from));
}

/// Notes that `pid` has fixed `table`.
pub(crate) fn note_fix(pid: Pid, table: &Table) {
    if let Some(reference) = table.reference() {
        let mut owned = OWNED.lock();
        owned.fixed.entry(pid).or_default().push(reference);
    }
}

/// Notes that `pid` has given up its last fixation of `table`.
pub(crate) fn note_unfix(pid: Pid, table: &Table) {
    let mut owned = OWNED.lock();
    if let Some(tables) = owned.fixed.get_mut(&pid) {
        tables.retain(|other| !is_same(other, table));
        if tables.is_empty() {
            owned.fixed.remove(&pid);
        }
    }
}

/// May `pid` do all with any table? Set by `erts_internal:ets_super_user/1`.
pub(crate) fn is_super_user(pid: Pid) -> bool {
    SUPER_USERS.load(Ordering::Relaxed) > 0 && OWNED.lock().super_users.contains(&pid)
}

/// Says whether `pid` may do all with any table.
pub(crate) fn set_super_user(pid: Pid, yes: bool) {
    let mut owned = OWNED.lock();
    owned.super_users.retain(|other| *other != pid);
    if yes {
        owned.super_users.push(pid);
    }
    SUPER_USERS.store(owned.super_users.len(), Ordering::Relaxed);
}

/// Reductions that freeing a table costs beside those for its objects.
const TABLE_REDS: i64 = 32;

/// What `p` leaves behind: its fixations, then its tables, which go to their heirs or end.
///
/// # Errors
/// `Yield` when there is more than may be freed in one time slice; and as [`Process::accesses`].
pub(crate) fn exited(p: &mut Process) -> Result<(), Control<'static>> {
    if TABLES.load(Ordering::Relaxed) == 0 && DYING.load(Ordering::Relaxed) == 0 {
        return Ok(());
    }
    let pid = p.pid();
    if !OWNED.lock().has_any_of(pid) {
        return Ok(());
    }
    set_super_user(pid, false);
    loop {
        let Some(reference) = last_of(&OWNED.lock().fixed, pid) else {
            break;
        };
        let Some(table) = table_of(&reference) else {
            break;
        };
        table.to_change(p)?.unfix_all(pid);
        note_unfix(pid, table);
    }
    let mut reds = REDS_AT_ONCE;
    loop {
        let dying = OWNED.lock().dying.remove(&pid);
        if let Some(mut objects) = dying {
            reds = objects.free_some(reds);
            if reds < 0 {
                OWNED.lock().dying.insert(pid, objects);
                return Err(Control::Yield);
            }
            DYING.fetch_sub(1, Ordering::Relaxed);
        }
        let Some(reference) = last_of(&OWNED.lock().tables, pid) else {
            return Ok(());
        };
        let left = table_of(&reference).map_or(Ok(None), |table| leave(p, table))?;
        if let Some(objects) = left {
            DYING.fetch_add(1, Ordering::Relaxed);
            OWNED.lock().dying.insert(pid, objects);
        }
        reds -= TABLE_REDS;
        if reds <= 0 {
            return Err(Control::Yield);
        }
    }
}

/// The last one of a process's tables.
fn last_of(tables: &Map<Pid, Vec<TableRef>>, pid: Pid) -> Option<TableRef> {
    tables.get(&pid).and_then(|tables| tables.last().cloned())
}

/// What becomes of a table when its owner exits: the objects of one that dies.
fn leave(p: &Process, table: &Table) -> Result<Option<Objects>, Control<'static>> {
    let pid = p.pid();
    let mut state = table.to_change(p)?;
    if state.deleted || state.owner != pid {
        disown(pid, table);
        return Ok(None);
    }
    // It stays the heir, of its own table.
    let heir = state.heir.as_ref();
    let heir = heir.filter(|heir| heir.pid != pid && heir.lives());
    if let Some(heir) = heir.map(|heir| heir.pid) {
        if let Some(reference) = transfer(table, &mut state, heir) {
            let data = state.heir.as_ref().and_then(|heir| heir.data.as_ref());
            let data = data.map(|data| Message::copy_of(data.term()));
            drop(state);
            if let Some(data) = data {
                send_transfer(heir, pid, &reference, data.term());
            }
        }
        return Ok(None);
    }
    Ok(Some(delete(table, &mut state)))
}
