//! The loader, which makes specific instructions of generic ones, in memory but not yet callable.

#![expect(unsafe_code, reason = "constant operands are terms at rest")]

mod debug;
mod emit;
mod slow;
#[cfg(test)]
mod tests;
mod transform;
mod types;

use std::cell::RefCell;
use std::sync::Arc;

use super::module::Module;
use crate::beam::module::RecordDef;
use crate::beam::{Arg, BeamModule};
use crate::code::entry::fun_entry;
use crate::code::record;
use crate::external;
use crate::hash::HashSet;
use crate::heap::{Heap, LiteralArea, Message};
use crate::num::limbs::{Endian, Int};
use crate::term::{Atom, RawTerm, Term};
use crate::value::number::MAX_LIMBS;

/// Why a module cannot be loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoadError {
    /// The file is not what a compiler makes; the text says where.
    Badfile(String),
}

impl std::fmt::Display for LoadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let LoadError::Badfile(text) = self;
        f.write_str(text)
    }
}

/// The parts of a module's tables that the transformation needs, as terms and atoms of this machine.
struct Tables<'a> {
    beam: &'a BeamModule,
    name: Atom,
    atoms: Vec<Atom>,
    literals: Vec<RawTerm>,
    /// Where its literals lie.
    area: RefCell<LiteralArea>,
    /// Definitions of its native records.
    records: Vec<(Atom, record::Defined)>,
}

impl Tables<'_> {
    fn atom(&self, index: u32) -> Atom {
        self.atoms[index as usize]
    }

    /// The word of a constant operand; none of an integer that is too large.
    fn constant(&self, arg: Arg) -> Option<RawTerm> {
        Some(match arg {
            Arg::Nil => RawTerm::NIL,
            Arg::Atom(index) => self.atom(index).raw(),
            Arg::I(value) => self.literal(|heap| heap.integer(value)),
            Arg::Big(row) => {
                let bytes = self.beam.big(row);
                let int = Int::from_bits(bytes, bytes.len() * 8, Endian::Big, true);
                if int.mag().len() > MAX_LIMBS {
                    return None;
                }
                self.literal(|heap| heap.big(int.is_negative(), int.mag()))
            }
            Arg::Literal(row) => self.literals[row as usize],
            _ => return None,
        })
    }

    /// The constant operand as a term.
    fn constant_term(&self, arg: Arg) -> Option<Term<'_>> {
        let word = self.constant(arg)?;
        // SAFETY: T1, H6: an immediate, or a literal of the area, which is borrowed with the tables.
        Some(unsafe { Term::new(word) })
    }

    /// Builds a literal of the module.
    fn literal(&self, build: impl for<'h> FnOnce(&'h Heap) -> Term<'h>) -> RawTerm {
        self.area.borrow_mut().build(build).raw()
    }
}

/// Reads `file` and prepares its code.
///
/// # Errors
/// [`LoadError::Badfile`] names the chunk and the offset. Of a refused module, atoms stay, and what code elsewhere
/// could point to: entries of exports and funs, definitions of records.
pub fn prepare(file: &[u8]) -> Result<Arc<Module>, LoadError> {
    prepare_module(decode(file)?)
}

/// As [`prepare`], for a module that ERTS has built in, stripped of its lines: stack traces tell none.
///
/// # Errors
/// As [`prepare`].
pub(crate) fn prepare_preloaded(file: &[u8]) -> Result<Arc<Module>, LoadError> {
    let mut beam = decode(file)?;
    beam.lines = None;
    prepare_module(beam)
}

fn decode(file: &[u8]) -> Result<BeamModule, LoadError> {
    BeamModule::decode(file).map_err(|error| LoadError::Badfile(error.to_string()))
}

fn prepare_module(beam: BeamModule) -> Result<Arc<Module>, LoadError> {
    let module = transformed(&beam)?;
    beam.recycle();
    Ok(Arc::new(module))
}

fn transformed(beam: &BeamModule) -> Result<Module, LoadError> {
    let atoms = intern(beam);
    let name = atoms[beam.name as usize];
    check_terms(beam)?;
    let mut area = LiteralArea::new();
    let literals = decode_literals(beam, &mut area)?;
    let mut tables = Tables {
        beam,
        name,
        atoms,
        literals,
        area: RefCell::new(area),
        records: Vec::new(),
    };
    tables.records = records(&tables)?;
    let mut module = transform::module(&tables)?;
    module.set_literals(tables.area.into_inner());
    Ok(module)
}

fn intern(beam: &BeamModule) -> Vec<Atom> {
    // Index 0 is no atom; its place is never looked at.
    let mut atoms = vec![Atom::from_bool(false); beam.atoms.len() + 1];
    for (index, text) in beam.atoms.iter() {
        atoms[index as usize] = Atom::new(text);
    }
    atoms
}

fn decode_literals(beam: &BeamModule, area: &mut LiteralArea) -> Result<Vec<RawTerm>, LoadError> {
    let mut literals = Vec::with_capacity(beam.literals.len());
    let heap = Heap::detached();
    for (row, bytes) in beam.literals.iter().enumerate() {
        let (term, _) = external::decode(&heap, bytes, external::DecodeOptions::default())
            .map_err(|error| LoadError::Badfile(format!("chunk LitT: literal {row}: {error}")))?;
        literals.push(area.make(term).raw());
    }
    Ok(literals)
}

/// Refuses a module whose attributes or compile information are no term.
fn check_terms(beam: &BeamModule) -> Result<(), LoadError> {
    for (id, bytes) in [("Attr", &beam.attributes), ("CInf", &beam.compile_info)] {
        let options = external::DecodeOptions::default();
        if !bytes.is_empty() {
            external::decode(&Heap::detached(), bytes, options)
                .map_err(|error| LoadError::Badfile(format!("chunk {id}: {error}")))?;
        }
    }
    Ok(())
}

fn records(tables: &Tables<'_>) -> Result<Vec<(Atom, record::Defined)>, LoadError> {
    let define = |row: &RecordDef| {
        let name = tables.atom(row.name);
        let fields = fields(tables, row).ok_or_else(|| {
            LoadError::Badfile(format!("chunk Recs: record {name}: impossible fields"))
        })?;
        let mut area = tables.area.borrow_mut();
        let defined = record::define(tables.name, name, row.exported, &fields, &mut area);
        Ok((name, defined))
    };
    tables.beam.records.iter().map(define).collect()
}

/// Fields of a record with their default values; none where two have a name, or a value cannot be.
fn fields<'t>(tables: &'t Tables<'_>, row: &RecordDef) -> Option<Vec<record::Field<'t>>> {
    let mut names = HashSet::default();
    let field = |&(name, default): &(u32, Option<Arg>)| {
        let name = tables.atom(name);
        let value = match default {
            Some(arg) => Some(tables.constant_term(arg)?),
            None => None,
        };
        names.insert(name).then_some((name, value))
    };
    row.fields.iter().map(field).collect()
}

/// Decodes a module's `Attr` or `CInf` chunk.
#[must_use]
pub(crate) fn chunk_term(bytes: &[u8]) -> Message {
    let heap = Heap::detached();
    let decoded = external::decode(&heap, bytes, external::DecodeOptions::default());
    Message::copy_of(decoded.map_or(Term::NIL, |(term, _)| term))
}

/// The entries of the funs that the module makes.
fn lambdas(tables: &Tables<'_>) -> Vec<&'static crate::code::FunEntry> {
    let beam = tables.beam;
    let entry = |l: &crate::beam::module::Lambda| {
        fun_entry(tables.name, beam.md5, l.index, l.old_uniq, l.arity)
    };
    beam.lambdas.iter().map(entry).collect()
}
