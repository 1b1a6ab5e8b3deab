//! Access to a table: checks the right to it, and gives its state in the order of accesses.

use parking_lot::{RwLockReadGuard, RwLockWriteGuard};

use super::registry::{self, Names, Owners};
use super::{Kind, State, Table, error};
use crate::process::order::access::{Access, Object, Part, Shared, Touch};
use crate::process::order::director::are_accesses_ordered;
use crate::process::{self, Leave, Process, Raise};
use crate::term::{Atom, Term, View, am};

/// Whether a key is equal only to what has the same hash, as far as that is seen soon.
fn has_one_form(key: Term<'_>, depth: u32) -> bool {
    match key.view() {
        View::Tuple(tuple) if depth > 0 => {
            let mut elements = tuple.elements().iter();
            elements.all(|element| has_one_form(*element, depth - 1))
        }
        View::Small(_) | View::Atom(_) | View::Pid(_) | View::Ref(_) | View::Bits(_) => true,
        _ => false,
    }
}

impl Table {
    /// What is accessed, for the order of accesses.
    #[inline]
    pub(crate) fn object(&self) -> &Object {
        self.name.unwrap_or(&self.nameless)
    }

    /// An access to it, whose state is `state`.
    #[inline]
    pub(crate) fn touch<'t>(&'t self, state: &State, access: Access, part: Part<'t>) -> Touch<'t> {
        Touch {
            object: self.object(),
            access,
            shared: Shared::Table,
            name: Some(state.name),
            part,
        }
    }

    /// The objects with `key`, for the order of accesses. Where a number can be the same key as another one, which hashes
    /// tell apart, it is all objects.
    #[inline]
    fn part<'t>(&self, key: Term<'t>) -> Part<'t> {
        let is_told_apart = || self.options.kind != Kind::OrderedSet || has_one_form(key, 2);
        match are_accesses_ordered() && is_told_apart() {
            true => Part::Key(key),
            false => Part::All,
        }
    }

    /// The state, of a table that still exists and is still known as `id`.
    fn check<'p>(&self, state: &State, id: Term<'p>) -> Result<(), Raise<'p>> {
        let renamed = id.as_atom().is_some_and(|name| name != state.name);
        if state.deleted || renamed {
            return Err(error(am::id));
        }
        Ok(())
    }

    /// Where the order is asked for, whether a table that was found by its name is still the one of that name.
    ///
    /// # Errors
    /// There is none any more; or there is another one, and `p` is to look again.
    #[inline]
    fn check_name<'p>(&self, p: &Process, state: &State, id: Term<'p>) -> Result<(), Leave<'p>> {
        match are_accesses_ordered() && self.check(state, id).is_err() {
            true => registry::look_again(p, id),
            false => Ok(()),
        }
    }

    /// The state with no insertion under way: with one, `p` goes on with it, and where its time slice is over
    /// before the insertion is, calls its BIF again in the next one.
    #[inline]
    fn settled<'p>(
        &self,
        p: &Process,
        id: Term<'p>,
        part: Part<'_>,
    ) -> Result<RwLockReadGuard<'_, State>, Leave<'p>> {
        loop {
            let state = self.state.read();
            if state.insertion.is_none() {
                self.check_name(p, &state, id)?;
                p.access(self.touch(&state, Access::Read, part))?;
                return Ok(state);
            }
            drop(state);
            let mut state = self.state.write();
            if state.insertion.is_some() {
                state.help(p)?;
            }
        }
    }

    /// The state to oneself, with no insertion under way, of a table that is still the one of its name.
    #[inline]
    fn exclusive<'p>(
        &self,
        p: &Process,
        id: Term<'p>,
    ) -> Result<RwLockWriteGuard<'_, State>, Leave<'p>> {
        let mut state = self.state.write();
        if state.insertion.is_some() {
            state.help(p)?;
        }
        self.check_name(p, &state, id)?;
        Ok(state)
    }

    /// As [`Self::exclusive`], for an access.
    #[inline]
    fn settled_exclusive<'p>(
        &self,
        p: &Process,
        id: Term<'p>,
        part: Part<'_>,
    ) -> Result<RwLockWriteGuard<'_, State>, Leave<'p>> {
        let state = self.exclusive(p, id)?;
        p.access(self.touch(&state, Access::Write, part))?;
        Ok(state)
    }

    /// To change its name to `name`: an access to whatever has to do with both names.
    pub(crate) fn to_rename<'p>(
        &self,
        p: &Process,
        id: Term<'p>,
        name: Option<Atom>,
    ) -> Result<(RwLockWriteGuard<'_, State>, Names), Leave<'p>> {
        let state = self.exclusive(p, id)?;
        let names = registry::names_of(self);
        let other = name.and_then(registry::object_of);
        let own = self.touch(&state, Access::Write, Part::All);
        let other = other.zip(name).map(|(object, name)| Touch {
            object,
            name: Some(name),
            ..own
        });
        let both: Vec<Touch<'_>> = other.into_iter().chain([own]).collect();
        p.access_all(&both)?;
        self.check(&state, id)?;
        state.may(p, Access::Write)?;
        Ok((state, names))
    }

    /// To delete it.
    pub(crate) fn to_delete<'p>(
        &self,
        p: &Process,
        id: Term<'p>,
    ) -> Result<(RwLockWriteGuard<'_, State>, Names), Leave<'p>> {
        let state = self.exclusive(p, id)?;
        let names = registry::names_of(self);
        p.access(self.touch(&state, Access::Write, Part::All))?;
        self.check(&state, id)?;
        state.may(p, Access::Write)?;
        Ok((state, names))
    }

    /// To give it to another owner.
    pub(crate) fn to_give<'p>(
        &self,
        p: &Process,
        id: Term<'p>,
    ) -> Result<(RwLockWriteGuard<'_, State>, Owners), Leave<'p>> {
        let state = self.exclusive(p, id)?;
        let owned = registry::owners();
        p.access(self.touch(&state, Access::Write, Part::All))?;
        self.check(&state, id)?;
        state.may(p, Access::Write)?;
        Ok((state, owned))
    }

    /// To delete it or give it to another owner, whatever its state, as its owner ends; `None` where that one has got another
    /// table meanwhile, which comes first.
    ///
    /// # Errors
    /// It is not the turn of `p` to access it.
    pub(super) fn to_leave(
        &self,
        p: &Process,
    ) -> Result<Option<(RwLockWriteGuard<'_, State>, Names, Owners)>, process::Control<'static>>
    {
        let state = self.state.write();
        let names = registry::names_of(self);
        let owned = registry::owners();
        let next = owned.next_left(p)?;
        if !next.is_some_and(|next| registry::is_same(&next, self)) {
            return Ok(None);
        }
        p.access(self.touch(&state, Access::Write, Part::All))?;
        Ok(Some((state, names, owned)))
    }

    /// For information, which nobody is refused.
    pub(crate) fn info<'p>(
        &self,
        p: &Process,
        id: Term<'p>,
    ) -> Result<RwLockReadGuard<'_, State>, Leave<'p>> {
        let state = self.settled(p, id, Part::All)?;
        self.check(&state, id)?;
        Ok(state)
    }

    /// Whether `p` may read or write objects, before a BIF that looks at its other arguments first: this is an access only
    /// where it is refused.
    ///
    /// # Errors
    /// As [`Table::read`] or [`Table::write`].
    pub(crate) fn may<'p>(
        &self,
        p: &Process,
        id: Term<'p>,
        access: Access,
    ) -> Result<(), Leave<'p>> {
        let state = self.state.read();
        self.check_name(p, &state, id)?;
        let refused = self.check(&state, id).and_then(|()| state.may(p, access));
        if refused.is_err() {
            p.access(self.touch(&state, Access::Read, Part::All))?;
        }
        Ok(refused?)
    }

    /// To read objects.
    #[inline]
    pub(crate) fn read<'p>(
        &self,
        p: &Process,
        id: Term<'p>,
    ) -> Result<RwLockReadGuard<'_, State>, Leave<'p>> {
        self.read_part(p, id, Part::All)
    }

    /// To read the objects with a key.
    #[inline]
    pub(crate) fn read_key<'p>(
        &self,
        p: &Process,
        id: Term<'p>,
        key: Term<'_>,
    ) -> Result<RwLockReadGuard<'_, State>, Leave<'p>> {
        self.read_part(p, id, self.part(key))
    }

    #[inline]
    fn read_part<'p>(
        &self,
        p: &Process,
        id: Term<'p>,
        part: Part<'_>,
    ) -> Result<RwLockReadGuard<'_, State>, Leave<'p>> {
        let state = self.settled(p, id, part)?;
        self.check(&state, id)?;
        state.may(p, Access::Read)?;
        Ok(state)
    }

    /// To change objects.
    #[inline]
    pub(crate) fn write<'p>(
        &self,
        p: &Process,
        id: Term<'p>,
    ) -> Result<RwLockWriteGuard<'_, State>, Leave<'p>> {
        self.write_part(p, id, Part::All)
    }

    /// To change the objects with a key; with no key, any.
    #[inline]
    pub(crate) fn write_key<'p>(
        &self,
        p: &Process,
        id: Term<'p>,
        key: Option<Term<'_>>,
    ) -> Result<RwLockWriteGuard<'_, State>, Leave<'p>> {
        self.write_part(p, id, key.map_or(Part::All, |key| self.part(key)))
    }

    #[inline]
    fn write_part<'p>(
        &self,
        p: &Process,
        id: Term<'p>,
        part: Part<'_>,
    ) -> Result<RwLockWriteGuard<'_, State>, Leave<'p>> {
        let state = self.settled_exclusive(p, id, part)?;
        self.check(&state, id)?;
        state.may(p, Access::Write)?;
        Ok(state)
    }

    /// To read objects, with the state to oneself, by an access whose kind `access` tells.
    pub(crate) fn read_as<'p>(
        &self,
        p: &Process,
        id: Term<'p>,
        access: impl FnOnce(&State) -> Access,
    ) -> Result<RwLockWriteGuard<'_, State>, Leave<'p>> {
        let state = self.state.write();
        self.check_name(p, &state, id)?;
        p.access(self.touch(&state, access(&state), Part::All))?;
        self.check(&state, id)?;
        state.may(p, Access::Read)?;
        Ok(state)
    }

    /// To read objects, with the state to oneself.
    pub(crate) fn read_exclusive<'p>(
        &self,
        p: &Process,
        id: Term<'p>,
    ) -> Result<RwLockWriteGuard<'_, State>, Leave<'p>> {
        let state = self.settled_exclusive(p, id, Part::All)?;
        self.check(&state, id)?;
        state.may(p, Access::Read)?;
        Ok(state)
    }

    /// Whatever its state, by a process that changes it.
    ///
    /// # Errors
    /// It is not the turn of `p` to access it.
    pub(crate) fn to_change(
        &self,
        p: &Process,
    ) -> Result<RwLockWriteGuard<'_, State>, process::Control<'static>> {
        let state = self.state.write();
        p.access(self.touch(&state, Access::Write, Part::All))?;
        Ok(state)
    }
}
