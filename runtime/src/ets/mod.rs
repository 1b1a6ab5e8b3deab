//! Tables of objects (`ets`).
//!
//! An object is a tuple kept outside processes ([`Stored`]); reading copies it to the reader's heap.
//! A [`Table`] is reached by name or through a magic reference; its contents stand behind one lock.
//!
//! - `hash`: `set`, `bag`, `duplicate_bag`.
//! - `tree`: `ordered_set`.
//! - `registry`: names, owners, heirs, and what happens when a process exits.
//! - `select`: match specifications run over a table.
//!
//! Source of rights, errors and reported sizes: `erl_db.c`, OTP 29.

mod fix;
mod hash;
pub(crate) mod registry;
pub(crate) mod select;
#[cfg(test)]
mod tests;
mod tree;

use std::sync::{OnceLock, Weak};

use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};

pub(crate) use fix::Fixes;
pub(crate) use hash::{Hash, HashKind};
pub(crate) use tree::Tree;

use crate::bif::Raise;
use crate::heap::{MagicBinary, Message, Stored};
use crate::process::Process;
use crate::term::{Atom, Pid, Term, am};

/// Who but the owner may do what.
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
    Locks(u64),
}

/// What a table was made with and keeps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    pub(crate) kind: Kind,
    /// Position of the key, from 1.
    pub(crate) keypos: usize,
    pub(crate) named: bool,
    pub(crate) compressed: bool,
    pub(crate) read_concurrency: bool,
    pub(crate) write_concurrency: WriteConcurrency,
    pub(crate) decentralized_counters: bool,
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

/// Who gets a table when its owner exits.
pub(crate) struct Heir {
    pub(crate) pid: Pid,
    /// What the heir is told; nothing is sent where there is none.
    pub(crate) data: Option<Message>,
}

/// A table, as long as a reference to it lives.
pub(crate) struct Table {
    pub(crate) options: Options,
    state: RwLock<State>,
    /// What references to it hold.
    this: OnceLock<Weak<MagicBinary>>,
}

/// What changes of a table.
pub(crate) struct State {
    pub(crate) name: Atom,
    pub(crate) owner: Pid,
    pub(crate) heir: Option<Heir>,
    pub(crate) protection: Protection,
    pub(crate) deleted: bool,
    pub(crate) fixes: Fixes,
    pub(crate) objects: Objects,
}

/// The objects of a table.
pub(crate) enum Objects {
    Hash(Hash),
    Tree(Tree),
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
        options: Options,
    ) -> Table {
        let objects = match options.kind {
            Kind::Hash(kind) => Objects::Hash(Hash::new(kind, options.keypos)),
            Kind::OrderedSet => Objects::Tree(Tree::new(options.keypos)),
        };
        let state = State {
            name,
            owner,
            heir,
            protection,
            deleted: false,
            fixes: Fixes::default(),
            objects,
        };
        Table {
            options,
            state: RwLock::new(state),
            this: OnceLock::new(),
        }
    }

    /// What references to it hold.
    pub(crate) fn reference(&self) -> Option<registry::TableRef> {
        self.this.get().and_then(Weak::upgrade)
    }

    /// The state, of a table that still exists and is still known as `id`.
    fn check<'p>(&self, state: &State, id: Term<'p>) -> Result<(), Raise<'p>> {
        let renamed = id.as_atom().is_some_and(|name| name != state.name);
        if state.deleted || renamed {
            return Err(error(am::id));
        }
        Ok(())
    }

    /// For information, which nobody is refused.
    pub(crate) fn info<'p>(&self, id: Term<'p>) -> Result<RwLockReadGuard<'_, State>, Raise<'p>> {
        let state = self.state.read();
        self.check(&state, id)?;
        Ok(state)
    }

    /// To read objects.
    #[inline]
    pub(crate) fn read<'p>(
        &self,
        p: &Process,
        id: Term<'p>,
    ) -> Result<RwLockReadGuard<'_, State>, Raise<'p>> {
        let state = self.state.read();
        self.check(&state, id)?;
        if state.protection == Protection::Private && !state.is_owner(p) {
            return Err(error(am::access));
        }
        Ok(state)
    }

    /// To change objects.
    #[inline]
    pub(crate) fn write<'p>(
        &self,
        p: &Process,
        id: Term<'p>,
    ) -> Result<RwLockWriteGuard<'_, State>, Raise<'p>> {
        let state = self.state.write();
        self.check(&state, id)?;
        if state.protection != Protection::Public && !state.is_owner(p) {
            return Err(error(am::access));
        }
        Ok(state)
    }

    /// To read objects, with the state to oneself.
    pub(crate) fn read_exclusive<'p>(
        &self,
        p: &Process,
        id: Term<'p>,
    ) -> Result<RwLockWriteGuard<'_, State>, Raise<'p>> {
        let state = self.state.write();
        self.check(&state, id)?;
        if state.protection == Protection::Private && !state.is_owner(p) {
            return Err(error(am::access));
        }
        Ok(state)
    }

    /// Whatever its state.
    pub(crate) fn state(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write()
    }
}

impl State {
    /// Does the table belong to `p`, or is `p` allowed as much?
    #[inline]
    pub(crate) fn is_owner(&self, p: &Process) -> bool {
        self.owner == p.pid() || registry::is_super_user(p.pid())
    }

    /// Words the table takes, as ERTS counts them.
    pub(crate) fn words(&self) -> usize {
        match &self.objects {
            Objects::Hash(hash) => hash.words(),
            Objects::Tree(tree) => tree.words(),
        }
    }
}

impl Objects {
    /// Number of objects.
    pub(crate) fn len(&self) -> usize {
        match self {
            Objects::Hash(hash) => hash.len(),
            Objects::Tree(tree) => tree.len(),
        }
    }

    /// The objects with `key`, in the order of their insertion.
    #[inline]
    pub(crate) fn get(&self, key: Term<'_>) -> &[Stored] {
        match self {
            Objects::Hash(hash) => hash.get(key),
            Objects::Tree(tree) => tree.get(key).map_or(&[], std::slice::from_ref),
        }
    }

    /// The one object with `key` in a table of which that is true; to be changed, but for its key.
    pub(crate) fn update(&mut self, key: Term<'_>, change: impl FnOnce(&mut Stored)) -> bool {
        match self {
            Objects::Hash(hash) => hash.update(key, change),
            Objects::Tree(tree) => tree.update(key, change),
        }
    }

    /// Puts `object` in.
    #[inline]
    pub(crate) fn insert(&mut self, object: Stored) {
        match self {
            Objects::Hash(hash) => hash.insert(object),
            Objects::Tree(tree) => tree.insert(object),
        }
    }

    /// Takes out all objects with `key`.
    pub(crate) fn remove(&mut self, key: Term<'_>, fixed: bool) -> Vec<Stored> {
        match self {
            Objects::Hash(hash) => hash.remove(key, fixed),
            Objects::Tree(tree) => tree.remove(key).into_iter().collect(),
        }
    }

    /// Takes out all objects that are `object`.
    pub(crate) fn remove_object(&mut self, object: Term<'_>, key: Term<'_>, fixed: bool) {
        match self {
            Objects::Hash(hash) => hash.remove_object(object, key, fixed),
            Objects::Tree(tree) => tree.remove_object(object, key),
        }
    }

    /// Takes out all objects; how many there were.
    pub(crate) fn clear(&mut self, fixed: bool) -> usize {
        let count = self.len();
        match self {
            Objects::Hash(hash) => hash.clear(fixed),
            Objects::Tree(tree) => tree.clear(),
        }
        count
    }

    /// Gives up what was only kept for traversals under way.
    pub(crate) fn unfixed(&mut self) {
        if let Objects::Hash(hash) = self {
            hash.purge();
        }
    }

    /// Objects of the first key.
    pub(crate) fn first(&self) -> &[Stored] {
        match self {
            Objects::Hash(hash) => hash.from(0).map_or(&[], |(_, objects)| objects),
            Objects::Tree(tree) => tree.first().map_or(&[], std::slice::from_ref),
        }
    }

    /// Objects of the last key (of the first, where there is no order).
    pub(crate) fn last(&self) -> &[Stored] {
        match self {
            Objects::Hash(_) => self.first(),
            Objects::Tree(tree) => tree.last().map_or(&[], std::slice::from_ref),
        }
    }

    /// Objects of the key after `key` (before it, with the flag); `None` where `key` is unknown and
    /// there is no order.
    pub(crate) fn next(&self, key: Term<'_>, back: bool) -> Option<&[Stored]> {
        match self {
            Objects::Hash(hash) => {
                let at = hash.position(key)?;
                Some(hash.from(at + 1).map_or(&[], |(_, objects)| objects))
            }
            Objects::Tree(tree) => {
                let object = if back {
                    tree.before(key)
                } else {
                    tree.after(key)
                };
                Some(object.map_or(&[], std::slice::from_ref))
            }
        }
    }

    /// The objects in slot `index`; `Err(true)` just behind the last slot, `Err(false)` beyond.
    pub(crate) fn slot(&self, index: usize) -> Result<&[Stored], bool> {
        match self {
            Objects::Hash(hash) => hash.slot(index),
            Objects::Tree(tree) => match tree.iter().nth(index) {
                Some(object) => Ok(std::slice::from_ref(object)),
                None => Err(index == tree.len()),
            },
        }
    }
}
