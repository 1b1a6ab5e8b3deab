//! The tables of `ets`, and the objects in them.
//!
//! An object is a tuple kept outside processes ([`Stored`]); reading copies it to the reader's heap. Processes reach a
//! [`Table`] by name or through a magic reference. One lock guards its contents.
//!
//! - `access`: reads and changes of a table, in the order of accesses.
//! - `compressed`: the sizes of objects in compressed tables.
//! - `hash`: `set`, `bag`, `duplicate_bag`.
//! - `tree`: `ordered_set`.
//! - `insertion`: lists of objects that are put in over several time slices.
//! - `registry`: names, owners, heirs, and what happens when a process exits.
//! - `select`: match specifications run over a table.
//!
//! Source of rights, errors and reported sizes: `erl_db.c`, OTP 29.

mod access;
mod compressed;
mod fix;
mod hash;
mod insertion;
pub(crate) mod registry;
pub(crate) mod select;
#[cfg(test)]
mod tests;
mod tree;

use std::sync::{Arc, OnceLock, Weak};

use parking_lot::{RwLock, RwLockWriteGuard};

pub(crate) use fix::Fixes;
pub(crate) use hash::{Chain, DIRECTORY_WORDS, Hash, HashKind, Locks};
pub(crate) use insertion::{Ending, Insertion, STEPS_PER_RED};
pub(crate) use tree::Tree;

use crate::heap::{Counted, Keyed, MagicBinary, Message, Stored};
use crate::process::order::access::{Access, Object};
use crate::process::{self, Leave, ProcShared, Process, Raise};
use crate::term::{Atom, Pid, Term, Tuple, am};

/// The rights of processes other than the owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protection {
    Private,
    Protected,
    Public,
}

impl Protection {
    /// Its name.
    pub(crate) fn atom(self) -> Atom {
        match self {
            Protection::Private => am::private,
            Protection::Protected => am::protected,
            Protection::Public => am::public,
        }
    }
}

/// `{write_concurrency, _}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteConcurrency {
    No,
    Yes,
    Auto,
    /// `{debug_hash_fixed_number_of_locks, N}`.
    Locks(usize),
}

/// The options that a table was made with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TableOptions {
    pub(crate) kind: Kind,
    /// Position of the key, from 1.
    pub(crate) keypos: usize,
    pub(crate) named: bool,
    pub(crate) compressed: bool,
    pub(crate) read_concurrency: bool,
    pub(crate) write_concurrency: WriteConcurrency,
    pub(crate) decentralized_counters: bool,
}

impl TableOptions {
    /// Those of `ets:new(_, [])`, but for the kind of table.
    pub(crate) fn of(kind: Kind) -> TableOptions {
        TableOptions {
            kind,
            keypos: 1,
            named: false,
            compressed: false,
            read_concurrency: false,
            write_concurrency: WriteConcurrency::No,
            decentralized_counters: false,
        }
    }
}

/// The types of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Hash(HashKind),
    OrderedSet,
}

impl Kind {
    /// Its name.
    pub(crate) fn atom(self) -> Atom {
        match self {
            Kind::Hash(HashKind::Set) => am::set,
            Kind::Hash(HashKind::Bag) => am::bag,
            Kind::Hash(HashKind::DuplicateBag) => am::duplicate_bag,
            Kind::OrderedSet => am::ordered_set,
        }
    }

    /// At most one object a key.
    pub(crate) fn is_set(self) -> bool {
        matches!(self, Kind::Hash(HashKind::Set) | Kind::OrderedSet)
    }
}

/// The process that gets a table when its owner exits.
pub(crate) struct Heir {
    pub(crate) pid: Pid,
    /// The process, lest another one inherit that has got its pid.
    process: Weak<ProcShared>,
    /// The heir's data; without an heir, nothing is sent.
    pub(crate) data: Option<Message>,
}

impl Heir {
    /// The process `pid`, unless it is dead already.
    pub(crate) fn living(pid: Pid, data: Option<Message>) -> Option<Heir> {
        let process = Arc::downgrade(&process::table().lookup(pid.0)?);
        Some(Heir { pid, process, data })
    }
}

/// A table, as long as a reference to it lives.
pub(crate) struct Table {
    pub(crate) options: TableOptions,
    state: RwLock<State>,
    /// For the order of its accesses, where it has no name; a name has its own.
    nameless: Object,
    name: Option<&'static Object>,
    /// What references to it hold.
    this: OnceLock<Weak<MagicBinary>>,
}

/// The part of a table that changes.
pub(crate) struct State {
    pub(crate) name: Atom,
    pub(crate) owner: Pid,
    pub(crate) heir: Option<Heir>,
    pub(crate) protection: Protection,
    pub(crate) deleted: bool,
    pub(crate) fixes: Fixes,
    pub(crate) objects: Objects,
    /// What is being put in, before anything else may happen to the objects.
    pub(crate) insertion: Option<Box<Insertion>>,
}

/// The objects of a table.
pub(crate) enum Objects {
    Hash(Hash),
    Tree(Tree),
}

/// Locks of a table with fine-grained ones, unless asked for otherwise.
const FINE_LOCKS: usize = 64;
/// Words of ERTS's table structure.
pub(crate) const TABLE_WORDS: usize = 50;
/// Words of a lock that is made for frequent readers.
const READ_LOCK_WORDS: usize = 32;
/// Words of one of the locks of a hash table with fine-grained ones.
const LOCK_WORDS: usize = 16;
/// Words of the root of a tree with fine-grained locks.
const ROOT_WORDS: usize = 18;
/// Words of counters that are spread over the schedulers.
const COUNTER_WORDS: usize = 34;
/// Words of a process's fixation.
const FIXATION_WORDS: usize = 9;
/// With more locks than this, those that a table has by its own choice are not made for readers.
const MAX_READ_LOCKS: usize = 128;

impl TableOptions {
    fn fine_locks(&self) -> bool {
        self.write_concurrency != WriteConcurrency::No
    }

    fn locks(&self) -> Locks {
        let count = match self.write_concurrency {
            WriteConcurrency::No => return Locks::ONE,
            WriteConcurrency::Yes | WriteConcurrency::Auto => FINE_LOCKS,
            WriteConcurrency::Locks(count) => count,
        };
        Locks {
            count,
            decentralized: self.decentralized_counters,
        }
    }

    /// Words of an empty table beside its slots.
    fn words(&self) -> usize {
        let mut words = TABLE_WORDS;
        if self.fine_locks() || self.read_concurrency {
            words += READ_LOCK_WORDS;
        }
        if self.decentralized_counters {
            words += COUNTER_WORDS;
        }
        if !self.fine_locks() {
            return words;
        }
        let locks = self.locks().count;
        let (own, readers) = match self.kind {
            Kind::OrderedSet => (ROOT_WORDS, 1),
            Kind::Hash(_) => (locks * LOCK_WORDS, locks),
        };
        let for_readers = self.read_concurrency
            && (self.write_concurrency != WriteConcurrency::Auto || readers <= MAX_READ_LOCKS);
        words
            + own
            + if for_readers {
                readers * READ_LOCK_WORDS
            } else {
                0
            }
    }
}

/// The table identifier's error, as `erl_stdlib_errors` knows it.
pub(crate) fn error(cause: Atom) -> Raise<'static> {
    Raise::ErrorCause(am::badarg.term(), cause.term())
}

impl Table {
    /// A table of `owner`'s without objects.
    pub(crate) fn new(
        name: Atom,
        owner: Pid,
        heir: Option<Heir>,
        protection: Protection,
        options: TableOptions,
    ) -> Table {
        let objects = Objects::new(&options);
        let state = State {
            name,
            owner,
            heir,
            protection,
            deleted: false,
            fixes: Fixes::default(),
            objects,
            insertion: None,
        };
        Table {
            options,
            state: RwLock::new(state),
            nameless: Object::default(),
            name: options.named.then(|| registry::object_of(name)).flatten(),
            this: OnceLock::new(),
        }
    }

    /// What references to it hold.
    pub(crate) fn reference(&self) -> Option<registry::TableRef> {
        self.this.get().and_then(Weak::upgrade)
    }

    /// Whatever its state.
    pub(crate) fn state(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write()
    }
}

impl Table {
    /// Shows what all that the table keeps holds counts of.
    pub(crate) fn each_counted(&self, show: &mut dyn FnMut(Counted<'_>)) {
        let state = self.state.read();
        match &state.objects {
            Objects::Hash(hash) => hash.all().flat_map(Stored::counted).for_each(&mut *show),
            Objects::Tree(tree) => tree.iter().flat_map(Stored::counted).for_each(&mut *show),
        }
        let data = state.heir.iter().filter_map(|heir| heir.data.as_ref());
        data.flat_map(Message::counted).for_each(&mut *show);
        let left = state
            .insertion
            .iter()
            .flat_map(|insertion| insertion.left());
        left.flat_map(Stored::counted).for_each(show);
    }
}

impl State {
    /// Does the table belong to `p`, or is `p` allowed as much?
    #[inline]
    pub(crate) fn is_owner(&self, p: &Process) -> bool {
        self.owner == p.pid() || registry::is_super_user(p.pid())
    }

    /// May `p` access objects so?
    #[inline]
    fn may(&self, p: &Process, access: Access) -> Result<(), Raise<'static>> {
        let is_open = match access {
            Access::Read => self.protection != Protection::Private,
            Access::Write => self.protection == Protection::Public,
        };
        match is_open || self.is_owner(p) {
            true => Ok(()),
            false => Err(error(am::access)),
        }
    }

    /// Goes on with the insertion that is under way until that has taken `most` steps or more; how many it took.
    pub(crate) fn insert_on(&mut self, most: usize) -> usize {
        let Some(insertion) = &mut self.insertion else {
            return 0;
        };
        let steps = insertion.run(&mut self.objects, most);
        if insertion.ending().get().is_some() {
            self.insertion = None;
        }
        steps
    }

    /// Another process's insertion is under way: `p` goes on with it, for as long as its time slice lasts.
    #[cold]
    fn help(&mut self, p: &Process) -> Result<(), Leave<'static>> {
        let steps = self.insert_on(p.reds_left() * STEPS_PER_RED);
        p.bump_reds((steps / STEPS_PER_RED) as i64);
        if self.insertion.is_none() {
            return Ok(());
        }
        Err(p.try_again().into())
    }

    /// Words the table takes, as ERTS counts them.
    pub(crate) fn words(&self, options: &TableOptions) -> usize {
        let bytes = match &self.objects {
            Objects::Hash(hash) => hash.bytes(),
            Objects::Tree(tree) => tree.bytes(options.fine_locks()),
        };
        let (fixed_by, _) = self.fixes.list();
        options.words() + fixed_by.len() * FIXATION_WORDS + bytes.div_ceil(8)
    }

    /// One fixation more, by `pid`, at `now`; whether it is the process's first.
    pub(crate) fn fix(&mut self, pid: Pid, now: i64) -> bool {
        let first = self.fixes.add(pid, now);
        if let Objects::Hash(hash) = &mut self.objects {
            hash.set_fixed(true);
        }
        first
    }

    /// One fixation less, by `pid`, if it has any; whether that was its last.
    pub(crate) fn unfix(&mut self, pid: Pid) -> bool {
        let last = self.fixes.remove(pid);
        self.settle();
        last
    }

    /// All fixations of `pid` less.
    pub(crate) fn unfix_all(&mut self, pid: Pid) {
        self.fixes.remove_all(pid);
        self.settle();
    }

    /// Gives up what was only kept for traversals under way, when there are no more.
    fn settle(&mut self) {
        if let Objects::Hash(hash) = &mut self.objects
            && !self.fixes.any()
        {
            hash.set_fixed(false);
        }
    }
}

/// Bytes of an object, whose key is the element of this index (from 0), but for its node.
type Size = fn(&Stored, usize) -> usize;

/// Has `change` change an object, whose key stays the element `key`; what that returns. `bytes` are those of all objects.
#[inline]
fn update<R>(
    keyed: &mut Keyed,
    key: usize,
    change: impl FnOnce(&mut Stored) -> R,
    (size, bytes): (Size, &mut usize),
) -> R {
    let before = size(keyed.object(), key);
    let result = keyed.update(key, change);
    *bytes = *bytes - before + size(keyed.object(), key);
    result
}

/// The size of an object as it is.
fn size(object: &Stored, _: usize) -> usize {
    object.words() * 8
}

/// Some of the objects of a table.
#[derive(Clone)]
pub(crate) enum Found<'a> {
    /// Along a chain.
    Chain(Chain<'a>),
    /// At most one.
    One(Option<&'a Stored>),
}

impl<'a> Iterator for Found<'a> {
    type Item = &'a Stored;

    #[inline]
    fn next(&mut self) -> Option<&'a Stored> {
        match self {
            Found::Chain(chain) => chain.next(),
            Found::One(object) => object.take(),
        }
    }
}

impl Objects {
    /// None yet.
    pub(crate) fn new(options: &TableOptions) -> Objects {
        let size = if options.compressed {
            compressed::size
        } else {
            size
        };
        match options.kind {
            Kind::Hash(kind) => {
                Objects::Hash(Hash::new(kind, options.keypos, options.locks(), size))
            }
            Kind::OrderedSet => Objects::Tree(Tree::new(options.keypos, size)),
        }
    }

    /// Number of objects.
    pub(crate) fn len(&self) -> usize {
        match self {
            Objects::Hash(hash) => hash.len(),
            Objects::Tree(tree) => tree.len(),
        }
    }

    /// Index of the key in an object, from 0.
    pub(crate) fn key_index(&self) -> usize {
        match self {
            Objects::Hash(hash) => hash.key_index(),
            Objects::Tree(tree) => tree.key_index(),
        }
    }

    /// The objects with `key`, the newest first.
    #[inline]
    pub(crate) fn get(&self, key: Term<'_>) -> Found<'_> {
        match self {
            Objects::Hash(hash) if hash.is_set() => Found::One(hash.get_one(key)),
            Objects::Hash(hash) => Found::Chain(hash.get(key)),
            Objects::Tree(tree) => Found::One(tree.get(key)),
        }
    }

    /// Is there an object with `key`?
    #[inline]
    pub(crate) fn has(&self, key: Term<'_>) -> bool {
        self.get(key).next().is_some()
    }

    /// Has `change` change the one object with `key`, which stays one with that key, in a table that has one at most; what
    /// that returns, `None` where there is no such object.
    #[inline]
    pub(crate) fn update<R>(
        &mut self,
        key: Term<'_>,
        change: impl FnOnce(&mut Stored) -> R,
    ) -> Option<R> {
        match self {
            Objects::Hash(hash) => hash.update(key, change),
            Objects::Tree(tree) => tree.update(key, change),
        }
    }

    /// Puts `object` in; how many others with its key it is not.
    #[inline]
    pub(crate) fn insert(&mut self, object: Stored) -> usize {
        match self {
            Objects::Hash(hash) => hash.insert(object),
            Objects::Tree(tree) => {
                tree.insert(object);
                0
            }
        }
    }

    /// Puts a copy of `tuple` in: in the memory of the object with its key, where there is at most one, and that takes as
    /// many words.
    #[inline]
    pub(crate) fn put(&mut self, tuple: Tuple<'_>) {
        let is_set = match self {
            Objects::Hash(hash) => hash.is_set(),
            Objects::Tree(_) => true,
        };
        let key = tuple.get(self.key_index());
        let is_in = is_set && self.update(key, |object| object.overwrite(tuple)) == Some(true);
        if !is_in {
            self.insert(Stored::new(tuple));
        }
    }

    /// The objects with `key`, deleted ones that are still kept included.
    pub(crate) fn raw_get(&self, key: Term<'_>) -> Vec<&Stored> {
        match self {
            Objects::Hash(hash) => hash.kept_objects(key),
            Objects::Tree(tree) => tree.get(key).into_iter().collect(),
        }
    }

    /// Has every change of an ordered set with base nodes split or join one, or no more; `false` where
    /// there are no such nodes.
    pub(crate) fn random_split_join(&mut self, yes: bool) -> bool {
        match self {
            Objects::Hash(_) => false,
            Objects::Tree(tree) => {
                tree.random_split_join(yes);
                true
            }
        }
    }

    /// Takes out all objects with `key`.
    pub(crate) fn remove(&mut self, key: Term<'_>) {
        match self {
            Objects::Hash(hash) => hash.remove(key),
            Objects::Tree(tree) => tree.remove(key),
        }
    }

    /// Takes out all objects that are `object`.
    pub(crate) fn remove_object(&mut self, object: Term<'_>, key: Term<'_>) {
        match self {
            Objects::Hash(hash) => hash.remove_object(object, key),
            Objects::Tree(tree) => tree.remove_object(object, key),
        }
    }

    /// Takes all objects out of a fixed table, or of one whose objects stay in order.
    pub(crate) fn clear(&mut self) {
        match self {
            Objects::Hash(hash) => hash.clear(),
            Objects::Tree(tree) => *tree = tree.new_empty(),
        }
    }

    /// The objects, which are still to be freed; none are left.
    pub(crate) fn take(&mut self, options: &TableOptions) -> Objects {
        let empty = match self {
            Objects::Tree(tree) => Objects::Tree(tree.new_empty()),
            Objects::Hash(_) => Objects::new(options),
        };
        std::mem::replace(self, empty)
    }

    /// Frees objects of a table that nobody reads any more, until that has cost more than `reds`; what is left of
    /// them, less than none where it is not done. Source: `db_free_table_continue()`.
    pub(crate) fn free_some(&mut self, reds: i64) -> i64 {
        match self {
            Objects::Hash(hash) => hash.free_some(reds),
            Objects::Tree(tree) => tree.free_some(reds),
        }
    }

    /// Whether every change is to split the part of an ordered set it is made in; `false` where there
    /// are no such parts.
    pub(crate) fn force_split(&mut self, yes: bool) -> bool {
        match self {
            Objects::Hash(_) => false,
            Objects::Tree(tree) => {
                tree.force_split(yes);
                true
            }
        }
    }

    /// Objects of the first key.
    pub(crate) fn first(&self) -> Found<'_> {
        match self {
            Objects::Hash(hash) => Found::Chain(hash.objects_from(hash.first(false))),
            Objects::Tree(tree) => Found::One(tree.first()),
        }
    }

    /// Objects of the last key (of the first, where there is no order).
    pub(crate) fn last(&self) -> Found<'_> {
        match self {
            Objects::Hash(_) => self.first(),
            Objects::Tree(tree) => Found::One(tree.last()),
        }
    }

    /// Objects of the key after `key` (before it, with `back`); `None` where `key` is unknown and there
    /// is no order.
    pub(crate) fn next(&self, key: Term<'_>, back: bool) -> Option<Found<'_>> {
        Some(match self {
            Objects::Hash(hash) => Found::Chain(hash.objects_from(hash.next(key, false)?)),
            // What says that there is no key is none.
            Objects::Tree(_) if key == am::end_of_table => return None,
            Objects::Tree(tree) if back => Found::One(tree.before(key)),
            Objects::Tree(tree) => Found::One(tree.after(key)),
        })
    }

    /// The first object, deleted ones that are still kept included.
    pub(crate) fn raw_first(&self) -> Option<&Stored> {
        match self {
            Objects::Hash(hash) => hash.kept_object(hash.first(true)),
            Objects::Tree(tree) => tree.first(),
        }
    }

    /// The next object with another key than `key`, deleted ones that are still kept included.
    pub(crate) fn raw_next(&self, key: Term<'_>) -> Option<Option<&Stored>> {
        Some(match self {
            Objects::Hash(hash) => hash.kept_object(hash.next(key, true)?),
            Objects::Tree(tree) => tree.after(key),
        })
    }

    /// The objects in slot `index`; `Err(true)` just behind the last slot, `Err(false)` beyond.
    pub(crate) fn slot(&self, index: usize) -> Result<Found<'_>, bool> {
        match self {
            Objects::Hash(hash) => match hash.slot(index) {
                Some(chain) => Ok(Found::Chain(chain)),
                None => Err(index == hash.slot_count()),
            },
            Objects::Tree(tree) => match tree.iter().nth(index) {
                Some(object) => Ok(Found::One(Some(object))),
                None => Err(index == tree.len()),
            },
        }
    }
}
