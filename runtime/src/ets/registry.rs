//! The registry of tables, by name and by owner. It also handles a process's tables when the process exits.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use parking_lot::{Mutex, MutexGuard, RwLock, RwLockWriteGuard};

use super::{Access, Object, Objects, Table, error};
use crate::hash::HashSet;
use crate::hash::internal::mix64;
use crate::heap::{MagicBinary, Message};
use crate::process::order::access::{ObjectsOf, Part, Shared, Touch};
use crate::process::order::answer;
use crate::process::order::answer::Native;
use crate::process::order::director::{
    are_accesses_ordered, are_answers_recorded, are_references_recorded, may_wait_at_end,
    wake_ending,
};
use crate::process::refs::RefNumbers;
use crate::process::tables::TableSize;
use crate::process::{self, Control, Leave, ProcShared, Process, Raise, refs};
use crate::sched::ptab::pin;
use crate::term::{Atom, Pid, Ref, Term, am};

/// Hashes atoms and pids, which are numbers.
#[derive(Default)]
pub(crate) struct NumberHasher(u64);

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

/// How many tables a program is ready for: a hint only, in ERTS too.
static LIMIT: AtomicUsize = AtomicUsize::new(LEAST_LIMIT);
/// Source: `DB_DEF_MAX_TABS`.
const LEAST_LIMIT: usize = 8192;

/// Sets the limit of tables, which is at least 8192, before there are any.
pub(crate) fn set_limit(limit: usize) {
    LIMIT.store(limit.max(LEAST_LIMIT), Ordering::Relaxed);
}

/// The limit of tables.
pub(crate) fn limit() -> usize {
    LIMIT.load(Ordering::Relaxed)
}

static NAMES: LazyLock<RwLock<Map<Atom, TableRef>>> = LazyLock::new(RwLock::default);

/// The references of the tables without names that a replay has made: they tell a table that is gone from one that has
/// yet to be made.
static MADE: LazyLock<Mutex<HashSet<RefNumbers>>> = LazyLock::new(Mutex::default);

/// What stands for each name in the order of accesses: for looking up the name, and for all that is done to its table.
static OBJECTS: ObjectsOf<Atom> = ObjectsOf::new();

/// What stands for a name in the order of accesses; `None` where nobody asks for the order.
pub(super) fn object_of(name: Atom) -> Option<&'static Object> {
    are_accesses_ordered().then(|| OBJECTS.of(name))
}

/// An access to a name, and to the table that has it.
fn touch_of(object: &Object, name: Atom, access: Access) -> Touch<'_> {
    Touch {
        object,
        access,
        shared: Shared::Table,
        name: Some(name),
        part: Part::All,
    }
}

/// The tables of processes.
#[derive(Default)]
pub(crate) struct Owned {
    tables: Map<Pid, Vec<TableRef>>,
    /// Tables that a process has fixed.
    fixed: Map<Pid, Vec<TableRef>>,
    /// Processes that have, or have had, tables, where the order is asked for.
    had_some: HashSet<Pid>,
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
            || self.had_some.contains(&pid)
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
        p.access(touch_of(object, name, Access::Read))?;
    }
    Err(error(am::id).into())
}

/// The table that `p` has found by the name `id` is gone, or has another name by now.
///
/// # Errors
/// There is none of this name; or `p` is to look again.
#[cold]
pub(super) fn look_again<'p>(p: &Process, id: Term<'p>) -> Result<(), Leave<'p>> {
    if id.as_ref().is_some() {
        return Ok(());
    }
    named(p, id)?;
    p.shared().wake();
    Err(Control::Wait.into())
}

/// The table of this name or reference, where no process looks for it.
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
        p.access(touch)?;
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
    if !named && are_references_recorded() {
        MADE.lock().insert(reference.ref_numbers());
    }
    TABLES.fetch_add(1, Ordering::Relaxed);
    // Before others, which may delete it, find it by its name.
    OWNED.lock().own(owner, Arc::clone(&reference));
    drop(names);
    Ok(Some(reference))
}

/// Whether a table with this reference has been made in a replay.
pub(crate) fn was_made(reference: RefNumbers) -> bool {
    MADE.lock().contains(&reference)
}

/// Shows each table, and its reference.
pub(crate) fn each(show: &mut dyn FnMut(&Table, &TableRef)) {
    for reference in all() {
        table_of(&reference)
            .into_iter()
            .for_each(|table| show(table, &reference));
    }
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

/// What the tables take, when the emulator ends: whoever holds one then does not give it back, so that one is left out.
pub(crate) fn sizes_at_end() -> Vec<TableSize> {
    let Some(owned) = OWNED.try_lock() else {
        return Vec::new();
    };
    let tables: Vec<TableRef> = owned.tables.values().flatten().map(Arc::clone).collect();
    drop(owned);
    let size = |reference: &TableRef| {
        let table = table_of(reference)?;
        let state = table.state.try_read()?;
        Some(TableSize {
            owner: state.owner,
            name: state.name,
            words: state.words(&table.options),
            objects: state.objects.len(),
        })
    };
    tables.iter().filter_map(size).collect()
}

/// How a table is called: its name, or a reference.
pub(crate) fn term_of<'p>(p: &'p crate::heap::Heap, reference: &TableRef) -> Term<'p> {
    match table_of(reference) {
        Some(table) if table.options.named => table.state().name.term(),
        _ => p.magic_reference(Arc::clone(reference)),
    }
}

pub(super) fn is_same(reference: &TableRef, table: &Table) -> bool {
    table_of(reference).is_some_and(|other| std::ptr::eq(other, table))
}

impl Owned {
    /// From now on, `owner` has this table, too.
    fn own(&mut self, owner: Pid, reference: TableRef) {
        if are_answers_recorded() {
            self.had_some.insert(owner);
        }
        self.tables.entry(owner).or_default().push(reference);
    }

    /// Makes `to` the owner of `table`.
    fn transfer(&mut self, table: &Table, state: &mut super::State, to: Pid) -> Option<TableRef> {
        let reference = self.disown(state.owner, table)?;
        state.owner = to;
        self.own(to, Arc::clone(&reference));
        wake_ending(to);
        Some(reference)
    }

    /// The table that `p`, which ends, gives up next: where a recorded run is followed, the one that it gave up there.
    ///
    /// # Errors
    /// It has yet to be given that one; or it gave up no more, and others have yet to delete those that it has. It is woken
    /// then.
    pub(super) fn next_left(&self, p: &Process) -> Result<Option<TableRef>, Control<'static>> {
        let tables = self.tables.get(&p.pid());
        let mut tables = tables.into_iter().flatten();
        let Some(recorded) = p.would_be_given(&GIVES, left_of) else {
            return Ok(tables.last().cloned());
        };
        match recorded {
            Some(recorded) => {
                let found = tables.find(|table| table.ref_numbers() == recorded);
                found.cloned().map(Some).ok_or(Control::Wait)
            }
            None if tables.next().is_some() => Err(Control::Wait),
            None => Ok(None),
        }
    }

    /// Takes `table` away from `owner`.
    fn disown(&mut self, owner: Pid, table: &Table) -> Option<TableRef> {
        let tables = self.tables.get_mut(&owner)?;
        let at = tables.iter().position(|other| is_same(other, table))?;
        let reference = tables.swap_remove(at);
        if tables.is_empty() {
            self.tables.remove(&owner);
        }
        Some(reference)
    }
}

/// The names of tables, locked while a table with a name is about to go or to change it: a process that looks for the
/// name meanwhile finds the state before or after, in the order of accesses.
pub(crate) type Names = Option<RwLockWriteGuard<'static, Map<Atom, TableRef>>>;

/// The names, for a change of this table. Its state is locked.
pub(super) fn names_of(table: &Table) -> Names {
    table.options.named.then(|| NAMES.write())
}

/// Deletes `table`, whose state is `state`; its objects, which are still to be freed.
#[must_use]
pub(crate) fn delete(table: &Table, state: &mut super::State, names: Names) -> Objects {
    if let Some(mut names) = names
        && names
            .get(&state.name)
            .is_some_and(|other| is_same(other, table))
    {
        names.remove(&state.name);
    }
    state.deleted = true;
    state.heir = None;
    state.insertion = None;
    let empty = Objects::new(&table.options);
    let objects = std::mem::replace(&mut state.objects, empty);
    state.fixes = super::Fixes::default();
    if OWNED.lock().disown(state.owner, table).is_some() {
        TABLES.fetch_sub(1, Ordering::Relaxed);
        wake_ending(state.owner);
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
pub(crate) fn rename(table: &Table, state: &mut super::State, names: Names, name: Atom) -> bool {
    if let Some(mut names) = names {
        if names.contains_key(&name) {
            return false;
        }
        if let Some(reference) = names.remove(&state.name) {
            names.insert(name, reference);
        }
        move_object(table, state.name, name);
    }
    state.name = name;
    true
}

/// What stands for a table in the order of accesses goes on to stand for its new name, and for the old one, too.
fn move_object(table: &Table, old: Atom, new: Atom) {
    if let Some(object) = table.name {
        OBJECTS.set(old, object);
        OBJECTS.set(new, object);
    }
}

/// Which process owns which tables, locked while a table that may get another owner is accessed: a process that ends
/// finds all that it has been given by then, in the order of accesses.
pub(crate) type Owners = MutexGuard<'static, Owned>;

/// The owners, for a change of a table's owner. Its state is locked.
pub(super) fn owners() -> Owners {
    OWNED.lock()
}

/// Whose table becomes whose, as it is recorded: with a process's end, also which of its tables does.
static GIVES: Native = Native::new("ets", "give_away", 3);

/// Whether there is still a process, of which `is_it` is true, that may own tables. The lock of the owners is held.
fn may_own(pid: Pid, is_it: impl FnOnce(&ProcShared) -> bool) -> bool {
    process::lookup(pid, &pin()).is_some_and(|shared| shared.may_own() && is_it(shared))
}

/// Has `p`, its owner, make `to` the owner of `table`; `None` where that one is gone.
pub(crate) fn give_away(
    p: &Process,
    table: &Table,
    state: &mut super::State,
    mut owned: Owners,
    to: Pid,
) -> Option<TableRef> {
    let is_there = answer::decided(p, &GIVES, || may_own(to, |_| true));
    is_there.then(|| owned.transfer(table, state, to)).flatten()
}

/// Has `p` tell `to` that `reference` is its table now.
pub(crate) fn send_transfer(p: &Process, to: Pid, reference: &TableRef, data: Term<'_>) {
    let heap = crate::heap::Heap::detached();
    let (table, from) = (term_of(&heap, reference), p.pid());
    let message = [am::ETS_TRANSFER.term(), table, from.term(), data];
    p.send_for_runtime(to, Message::of_tuple(&message));
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
/// `Yield` when there is more than may be freed in one time slice; and as [`Process::access`].
pub(crate) fn exited(p: &mut Process) -> Result<(), Control<'static>> {
    let are_none = TABLES.load(Ordering::Relaxed) == 0 && DYING.load(Ordering::Relaxed) == 0;
    if are_none && !may_wait_at_end() {
        return Ok(());
    }
    let pid = p.pid();
    let has_any = || {
        let owned = OWNED.lock();
        Ok(owned.has_any_of(pid) || owned.next_left(p)?.is_some())
    };
    if !has_any()? {
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
        let Some(reference) = OWNED.lock().next_left(p)? else {
            forget_owner(p);
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

/// `p`, which ends, gives up no more tables.
fn forget_owner(p: &Process) {
    if are_answers_recorded() && OWNED.lock().had_some.remove(&p.pid()) {
        answer::noted(p, &GIVES, Term::NIL);
    }
}

/// The table that a process gave up with its end, as that is recorded: `{Table, Inherited}`, and `[]` when there are no more.
fn left_of(recorded: Term<'_>) -> Option<RefNumbers> {
    let table = *recorded.as_tuple()?.elements().first()?;
    table.as_ref().map(|reference| reference.numbers())
}

/// The last one of a process's tables.
fn last_of(tables: &Map<Pid, Vec<TableRef>>, pid: Pid) -> Option<TableRef> {
    tables.get(&pid).and_then(|tables| tables.last().cloned())
}

/// What becomes of a table when its owner exits: the objects of one that dies.
fn leave(p: &Process, table: &Table) -> Result<Option<Objects>, Control<'static>> {
    let pid = p.pid();
    let Some((mut state, names, mut owned)) = table.to_leave(p)? else {
        return Ok(None);
    };
    if state.deleted || state.owner != pid {
        owned.disown(pid, table);
        return Ok(None);
    }
    // It stays the heir, of its own table.
    let heir = state.heir.as_ref().filter(|heir| heir.pid != pid);
    let heir = heir.map(|heir| (heir.pid, heir.process.as_ptr()));
    let inherits = || {
        // Not another one that has got its pid.
        heir.is_some_and(|(heir, process)| may_own(heir, |shared| std::ptr::eq(shared, process)))
    };
    let inherits = answer::decided_of(p, &GIVES, || table.reference(), inherits);
    let given = heir.filter(|_| inherits).and_then(|(heir, _)| {
        let reference = owned.transfer(table, &mut state, heir)?;
        Some((heir, reference))
    });
    drop(owned);
    if let Some((heir, reference)) = given {
        let data = state.heir.as_ref().and_then(|heir| heir.data.as_ref());
        let data = data.map(|data| Message::copy_of(data.term()));
        drop((state, names));
        if let Some(data) = data {
            send_transfer(p, heir, &reference, data.term());
        }
        return Ok(None);
    }
    Ok(Some(delete(table, &mut state, names)))
}
