//! Most BIFs of `erts_debug`, and those of `erts_internal` that look at terms: sizes, sharing, representation.
//! Source: `beam_debug.c`, `erl_map.c`, `erl_bif_info.c`, OTP 29.

use super::{BifResult, badarg, bifs, notsup};
use crate::heap::{Literals, size, size_shared};
use crate::process::Process;
use crate::term::{Atom, Map, Term, View, am, tag};

bifs! {
    bif erts_debug:"same"/2 => same_2, own;
    bif erts_debug:"flat_size"/1 => flat_size_1, own;
    bif erts_debug:"size_shared"/1 => size_shared_1, own;
    bif erts_debug:"copy_shared"/2 => copy_shared_2, own;
    bif erts_debug:"unaligned_bitstring"/2 => unaligned_bitstring_2, own;
    bif erts_debug:"disassemble"/1 => disassemble_1, own;
    bif erts_debug:"breakpoint"/2 => refused_2, unrecorded;
    bif erts_debug:"instructions"/0 => instructions_0, own;
    bif erts_debug:"interpreter_size"/0 => interpreter_size_0, own;
    bif erts_debug:"dist_ext_to_term"/2 => dist_ext_to_term_2, own;
    bif erts_debug:"lcnt_control"/1 => lcnt_control_1, unrecorded;
    bif erts_debug:"lcnt_control"/2 => lcnt_control_2, unrecorded;
    bif erts_debug:"lcnt_collect"/0 => lcnt_0, unrecorded;
    bif erts_debug:"lcnt_clear"/0 => lcnt_0, unrecorded;
    bif erts_internal:"term_type"/1 => term_type_1, own;
    bif erts_internal:"term_to_string"/2 => term_to_string_2, own;
}

fn refused_2<'p>(_p: &'p Process, _: [Term<'p>; 2]) -> BifResult<'p> {
    Err(notsup().into())
}

fn same_2<'p>(_p: &'p Process, [a, b]: [Term<'p>; 2]) -> BifResult<'p> {
    Ok(Term::bool(a.same(b)))
}

fn flat_size_1<'p>(p: &'p Process, [a]: [Term<'p>; 1]) -> BifResult<'p> {
    Ok(p.unsigned(size(a, Literals::CountDefinitions) as u64))
}

fn size_shared_1<'p>(p: &'p Process, [a]: [Term<'p>; 1]) -> BifResult<'p> {
    Ok(p.unsigned(size_shared(a) as u64))
}

/// The second argument says whether literals are copied too.
fn copy_shared_2<'p>(p: &'p Process, [a, literals]: [Term<'p>; 2]) -> BifResult<'p> {
    let literals = match literals.as_bool() {
        Some(true) => Literals::Count,
        Some(false) => Literals::Share,
        None => return Err(badarg().into()),
    };
    Ok(p.copy_shared(a, literals))
}

fn unaligned_bitstring_2<'p>(p: &'p Process, [a, offset]: [Term<'p>; 2]) -> BifResult<'p> {
    let bits = a.as_bits().ok_or_else(badarg)?;
    let offset = offset.as_index().filter(|offset| (1..8).contains(offset));
    Ok(p.unaligned_bits(bits, offset.ok_or_else(badarg)?))
}

/// Code is not shown as ERTS's own instructions: there is nothing to show of any function.
fn disassemble_1<'p>(_p: &'p Process, _: [Term<'p>; 1]) -> BifResult<'p> {
    Ok(Term::bool(false))
}

/// The names of the specific instructions.
fn instructions_0<'p>(p: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    let all = crate::code::op::Op::ALL.iter().rev();
    Ok(all.fold(Term::NIL, |rest, op| p.cons(p.string(op.name()), rest)))
}

fn interpreter_size_0<'p>(_p: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    Ok(Term::small(0))
}

fn dist_ext_to_term_2<'p>(_p: &'p Process, _: [Term<'p>; 2]) -> BifResult<'p> {
    Err(badarg().into())
}

/// Locks are not counted.
fn lcnt_0<'p>(_p: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    Ok(am::error.term())
}

fn lcnt_control_1<'p>(_p: &'p Process, _: [Term<'p>; 1]) -> BifResult<'p> {
    Err(badarg().into())
}

fn lcnt_control_2<'p>(_p: &'p Process, _: [Term<'p>; 2]) -> BifResult<'p> {
    Err(badarg().into())
}

fn term_type_1<'p>(_p: &'p Process, [a]: [Term<'p>; 1]) -> BifResult<'p> {
    let name = match a.view() {
        View::Small(_) => "fixnum",
        View::Big(_) => "bignum",
        View::Float(_) => "hfloat",
        View::Atom(_) => "atom",
        View::Pid(_) => "pid",
        View::Port(_) => "port",
        View::Ref(_) => "reference",
        View::External(it) => match it.kind() {
            tag::EXTERNAL_PID => "external_pid",
            tag::EXTERNAL_PORT => "external_port",
            _ => "external_reference",
        },
        View::Fun(fun) if fun.is_external() => "export",
        View::Fun(_) => "fun",
        View::Tuple(_) => "tuple",
        View::Record(_) => "record",
        View::Nil => "nil",
        View::Cons(_) => "list",
        View::Map(map) if map.flat().is_some() => "flatmap",
        View::Map(_) if Map::inner(a).is_some() => "hashmap_node",
        View::Map(_) => "hashmap",
        View::Bits(bits) if bits.is_sub() => "sub_binary",
        View::Bits(_) => "heap_binary",
    };
    Ok(Atom::new(name).term())
}

/// The text as the emulator prints it, cut off when about `limit` subterms are printed.
fn term_to_string_2<'p>(p: &'p Process, [a, limit]: [Term<'p>; 2]) -> BifResult<'p> {
    let most = i64::from(i32::MAX);
    let text = match limit.view() {
        View::Atom(am::undefined) => a.display(),
        View::Small(limit) if (2..most).contains(&limit) => a.display_cut(limit),
        _ => return Err(badarg().into()),
    };
    Ok(p.byte_list(&text.to_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value<'p>(result: BifResult<'p>) -> Term<'p> {
        result.ok().expect("no exception")
    }

    #[test]
    fn shared_parts_count_and_copy_once() {
        let p = Process::new(233);
        let part = p.tuple(&[Term::small(1), p.binary(&[7; 100])]);
        let all = p.tuple(&[part, part, p.list(&[part])]);
        let words = |t| value(size_shared_1(&p, [t])).as_small();
        // Two tuples, a cell, a bitstring with its handle.
        assert_eq!(words(all), Some(4 + 2 + 3 + 8));
        assert_eq!(
            value(flat_size_1(&p, [all])).as_small(),
            Some(4 + 2 + 3 * (3 + 8))
        );
        let copy = value(copy_shared_2(&p, [all, Term::bool(false)]));
        assert!(crate::term::compare::eq_exact(copy, all) && !copy.same(all));
        assert_eq!(words(copy), words(all));
        let elements = copy.as_tuple().expect("a tuple").elements();
        assert!(elements[0].same(elements[1]) && !elements[0].same(part));
        assert!(copy_shared_2(&p, [all, am::ok.term()]).is_err());
    }

    #[test]
    fn unaligned_bitstrings_are_equal_and_unaligned() {
        let p = Process::new(233);
        for bits in [p.binary(b""), p.binary(b"abc"), p.bitstring(&[5; 90], 717)] {
            for offset in 1..8 {
                let moved = value(unaligned_bitstring_2(&p, [bits, Term::small(offset)]));
                assert!(crate::term::compare::eq_exact(moved, bits));
                let at = moved.as_bits().expect("bits").bit_offset() as i64;
                assert_eq!(at % 8, offset);
            }
        }
        for offset in [0, 8, -1] {
            assert!(unaligned_bitstring_2(&p, [p.binary(b"a"), Term::small(offset)]).is_err());
        }
    }
}
