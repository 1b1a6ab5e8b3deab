//! `erlang:memory/0,1`, which give the bytes in use by what they are for. Source: `erl_alloc.c`, OTP 29.
//!
//! The bytes are counted where they are taken, so what the allocator itself keeps back is not among them.

use super::{BifResult, badarg, bifs};
use crate::code::machine_code;
use crate::ets::registry;
use crate::heap;
use crate::loader::module;
use crate::port;
use crate::process::{self, ProcShared, Process};
use crate::term::atom::atom;
use crate::term::{Atom, Term, atom as atoms};

bifs! {
    all answer;
    bif erlang:"memory"/0 => memory_0;
    bif erlang:"memory"/1 => memory_1;
}

/// Bytes of a process without its heap.
const PROCESS_BYTES: usize = size_of::<Process>() + size_of::<ProcShared>();

/// Bytes of an atom with a name of middling length, and of its places in the tables.
const ATOM_BYTES: usize = 96;

/// Kinds in the order of `erlang:memory/0`, in bytes.
pub(super) fn memory() -> [(&'static str, usize); 9] {
    let processes = heap::heap_bytes() + process::table().len() * PROCESS_BYTES;
    let atom = atoms::count() * ATOM_BYTES;
    let binary = heap::binary_bytes();
    let code_words: usize = module::all_versions().iter().map(|m| m.code().len()).sum();
    let code = heap::literal_bytes() + code_words * 8 + machine_code::bytes();
    let ets = registry::all_words() * 8;
    let slots = process::table().limit() + port::table().limit();
    let system = atom + binary + code + ets + slots * size_of::<usize>();
    [
        ("total", processes + system),
        ("processes", processes),
        ("processes_used", processes),
        ("system", system),
        ("atom", atom),
        ("atom_used", atom),
        ("binary", binary),
        ("code", code),
        ("ets", ets),
    ]
}

fn number(bytes: usize) -> Term<'static> {
    Term::small(bytes as i64)
}

/// `[{Kind, Bytes}]`.
pub(super) fn all(p: &Process) -> Term<'_> {
    let items = memory().map(|(kind, bytes)| p.tuple(&[atom(kind), number(bytes)]));
    p.list(&items)
}

fn memory_0<'p>(p: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    Ok(all(p))
}

fn memory_1<'p>(p: &'p Process, [kinds]: [Term<'p>; 1]) -> BifResult<'p> {
    let memory = memory();
    let bytes_of = |kind: Atom| {
        let known = memory.iter().find(|(name, _)| *name == kind.name());
        known.map(|(_, bytes)| number(*bytes)).ok_or_else(badarg)
    };
    if let Some(kind) = kinds.as_atom() {
        return Ok(bytes_of(kind)?);
    }
    let mut items = Vec::new();
    for kind in kinds.list_iter() {
        let kind = kind.ok().and_then(Term::as_atom).ok_or_else(badarg)?;
        items.push(p.tuple(&[kind.term(), bytes_of(kind)?]));
    }
    Ok(p.list(&items))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_binary_is_counted_while_it_lives() {
        const SIZE: i64 = 50_000_000;
        let p = Process::new(233);
        let bytes = |kind| {
            let bytes = memory_1(&p, [atom(kind)]).ok().unwrap();
            bytes.as_small().unwrap()
        };
        let (before, total) = (bytes("binary"), bytes("total"));
        p.binary_from_vec(vec![0; SIZE as usize]);
        assert!(bytes("binary") - before > SIZE / 2);
        assert!(bytes("total") - total > SIZE / 2);
        let system: i64 = ["atom", "binary", "code", "ets"]
            .into_iter()
            .map(bytes)
            .sum();
        assert!((bytes("system") - system).abs() < SIZE / 2);
        assert!(memory_1(&p, [atom("nonsense")]).is_err());
        assert_eq!(memory_0(&p, []).ok().unwrap().list_iter().count(), 9);
    }
}
