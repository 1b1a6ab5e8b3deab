//! Definitions of native records: the literals, and the table of those that loaded modules define.
//!
//! A definition is a literal tuple as ERTS's `ErtsRecordDefinition` (see [`crate::term::record`] for its elements). All
//! records made with it share it. The table keeps it in a cell with the tuple of default values, in the order of the
//! definition's keys. A field without a default has [`NO_DEFAULT`] there.
//! Source: `erl_record.c`, `beam_file.c`, OTP 29.
//!
//! Invariant:
//! - R1: the words in the tables are literals: definitions stay for ever, as records everywhere refer to them; cells are
//!   their modules', and leave the table before those give up their literals.
#![expect(unsafe_code, reason = "literals at rest in tables that threads share")]

use crate::hash::HashMap;
use std::sync::OnceLock;

use parking_lot::RwLock;

use crate::hash::portable::Hash2;
use crate::heap::{Heap, LiteralArea, build_literal};
use crate::term::{Atom, RawTerm, Term, tag};

/// Stands for the default value of a field that has none: no term of the program's.
pub(crate) const NO_DEFAULT: RawTerm = RawTerm(tag::CATCH);

/// A field: its name, and its default value where it has one.
pub(crate) type Field<'h> = (Atom, Option<Term<'h>>);

type Key = (Atom, Atom);

/// The literals of the table: definition and defaults, as words at rest.
fn table() -> &'static RwLock<HashMap<Key, RawTerm>> {
    static TABLE: OnceLock<RwLock<HashMap<Key, RawTerm>>> = OnceLock::new();
    TABLE.get_or_init(RwLock::default)
}

/// A definition as a value that any thread may keep: it stays for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Definition(RawTerm);

impl Definition {
    /// The tuple.
    #[must_use]
    pub(crate) fn term(self) -> Term<'static> {
        // SAFETY: R1, T1: it stays for ever.
        unsafe { Term::new(self.0) }
    }
}

/// What makes two definitions the same.
type Shape = (Atom, Atom, bool, Vec<Atom>);

/// Definitions that were made, so that each is made once.
fn made() -> &'static RwLock<HashMap<Shape, Definition>> {
    static MADE: OnceLock<RwLock<HashMap<Shape, Definition>>> = OnceLock::new();
    MADE.get_or_init(RwLock::default)
}

/// The definition of `module`'s record `name` with these fields (all different), in the order of the
/// source.
#[must_use]
pub(crate) fn definition(module: Atom, name: Atom, exported: bool, fields: &[Atom]) -> Definition {
    let shape = (module, name, exported, fields.to_vec());
    if let Some(made) = made().read().get(&shape) {
        return *made;
    }
    let hash = hash(module, name, exported, fields);
    let sorted = sorted(fields);
    let mut order = vec![Term::small(0); fields.len()];
    for (at, &from) in sorted.iter().enumerate() {
        order[from] = Term::small(at as i64);
    }
    let definition = build_literal(|heap: &Heap| {
        let mut elements = vec![
            heap.tuple(&order),
            Term::small(i64::from(hash)),
            module.term(),
            name.term(),
            Term::bool(exported),
        ];
        elements.extend(sorted.iter().map(|&from| fields[from].term()));
        heap.tuple(&elements)
    });
    let definition = Definition(definition.raw());
    *made().write().entry(shape).or_insert(definition)
}

/// Places of the fields in the order of their atoms' indices.
fn sorted(fields: &[Atom]) -> Vec<usize> {
    let mut sorted: Vec<usize> = (0..fields.len()).collect();
    sorted.sort_by_key(|&at| fields[at].index());
    sorted
}

/// The part of `phash2` that a definition is: that of a tuple of all that makes it.
fn hash(module: Atom, name: Atom, exported: bool, fields: &[Atom]) -> u32 {
    let mut hash = Hash2::new();
    hash.tuple(3 + fields.len() as u32);
    for atom in [module, name, Atom::from_bool(exported)]
        .iter()
        .chain(fields)
    {
        hash.atom(atom.hash());
    }
    hash.value()
}

/// A literal cell of a definition and its defaults, at rest: a module's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Defined(RawTerm);

impl Defined {
    /// The word, for the module's code.
    #[must_use]
    pub fn raw(self) -> RawTerm {
        self.0
    }
}

/// Makes what [`find`] returns, in `area`.
#[must_use]
pub(crate) fn define(
    module: Atom,
    name: Atom,
    exported: bool,
    fields: &[Field<'_>],
    area: &mut LiteralArea,
) -> Defined {
    let names: Vec<Atom> = fields.iter().map(|(name, _)| *name).collect();
    let definition = definition(module, name, exported, &names);
    let cell = area.build(|heap| {
        let defaults: Vec<Term<'_>> = sorted(&names)
            .iter()
            .map(|&from| {
                fields[from]
                    .1
                    .map_or(Term::immed(NO_DEFAULT), |t| heap.copy_in(t))
            })
            .collect();
        heap.cons(definition.term(), heap.tuple(&defaults))
    });
    Defined(cell.raw())
}

/// Makes `definitions` (by name) those of `module`, and no others.
///
/// # Safety
/// R1: others take their place before the area that they were made in is given up.
pub(crate) unsafe fn publish(module: Atom, definitions: &[(Atom, Defined)]) {
    let mut table = table().write();
    table.retain(|(owner, _), _| *owner != module);
    for (name, definition) in definitions {
        table.insert((module, *name), definition.0);
    }
}

/// The definition and defaults (a cell) of `module`'s record `name`, where it is loaded and has one: for the owner of
/// `heap` in its time slice.
#[must_use]
pub(crate) fn find(module: Atom, name: Atom, _heap: &Heap) -> Option<Term<'_>> {
    let raw = *table().read().get(&(module, name))?;
    // SAFETY: R1, T1, H6: the table named it in this time slice.
    Some(unsafe { Term::new(raw) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `phash2(R, 1 bsl 32)` of `#somemod:somename{x=1, b=2}`, exported, and of `#nr:empty{}`, local.
    #[test]
    fn hashes_are_those_of_otp() {
        let atom = Atom::new;
        let (module, name, fields) = (atom("somemod"), atom("somename"), [atom("x"), atom("b")]);
        let mut whole = Hash2::new();
        whole.record(2, hash(module, name, true, &fields));
        whole.small(1);
        whole.small(2);
        assert_eq!(whole.value(), 2_989_076_469);
        let mut empty = Hash2::new();
        empty.record(0, hash(atom("nr"), atom("empty"), false, &[]));
        assert_eq!(empty.value(), 1_329_235_676);
    }

    #[test]
    fn definitions_are_made_once_and_found_by_name() {
        let (module, name) = (Atom::new("module_of_definitions"), Atom::new("name_of_one"));
        let fields = [Atom::new("z_field"), Atom::new("a_field")];
        let first = definition(module, name, true, &fields);
        assert!(first == definition(module, name, true, &fields));
        assert!(first != definition(module, name, false, &fields));
        let heap = Heap::detached();
        assert!(find(module, name, &heap).is_none());
        let area = &mut LiteralArea::new();
        // SAFETY: R1: the area lives to the end of the test.
        unsafe { publish(module, &[(name, define(module, name, true, &[], area))]) };
        assert!(find(module, name, &heap).is_some());
        // SAFETY: R1: there are none.
        unsafe { publish(module, &[]) };
        assert!(find(module, name, &heap).is_none());
    }
}
