//! Templates of jumps that depend on a value.

use dynasmrt::{DynamicLabel, DynasmApi, DynasmLabelApi, dynasm};

use super::{RAX, RDX, compare, constant};
use crate::code::op::read;
use crate::code::operand::Src;
use crate::jit::compile::Compiler;
use crate::term::{CodeAddress, RawTerm, tag};

/// Most values compared one by one.
const LINEAR: usize = 4;

/// Goes where the word in `rdx` leads, of these in ascending order.
fn search(c: &mut Compiler<'_>, cases: &[(u64, DynamicLabel)], otherwise: DynamicLabel) {
    if cases.len() <= LINEAR {
        for &(word, to) in cases {
            compare(c, RDX, word);
            dynasm!(c.a; .arch x64; je =>to);
        }
        dynasm!(c.a; .arch x64; jmp =>otherwise);
        return;
    }
    let (below, from) = cases.split_at(cases.len() / 2);
    let lower = c.new_label();
    compare(c, RDX, from[0].0);
    dynasm!(c.a; .arch x64; jl =>lower);
    search(c, from, otherwise);
    dynasm!(c.a; .arch x64; =>lower);
    search(c, below, otherwise);
}

pub(super) fn select_val(c: &mut Compiler<'_>, _pc: CodeAddress, i: read::SelectVal) {
    c.first(RDX, Src::of(i.src()));
    c.find(i.src(), RDX);
    let (cases, otherwise) = (i.cases(), c.way_to(i.otherwise()));
    let labels: Vec<_> = cases.labels.iter().map(|to| c.way_to(to)).collect();
    let mut cases: Vec<_> = cases.terms.iter().copied().zip(labels).collect();
    cases.sort_by_key(|&(word, _)| word as i64);
    search(c, &cases, otherwise);
}

/// Bytes of a jump to a label.
const JUMP: usize = 1 + 4;

/// Jumps into a table of jumps.
pub(super) fn jump_table(c: &mut Compiler<'_>, _pc: CodeAddress, i: read::JumpTable) {
    let least = RawTerm::small(i.least() as i64).0;
    let is_known = c.range(Src::of(i.src())).is_some();
    c.first(RDX, Src::of(i.src()));
    let (otherwise, table) = (c.way_to(i.otherwise()), c.new_label());
    if !is_known {
        dynasm!(c.a; .arch x64; lea eax, [BYTE rdx + 1]; test al, 15; jnz =>otherwise);
    }
    match i32::try_from(least as i64) {
        Ok(least) => dynasm!(c.a; .arch x64; sub rdx, least; jo =>otherwise),
        Err(_) => {
            constant(c, RAX, least);
            dynasm!(c.a; .arch x64; sub rdx, rax; jo =>otherwise);
        }
    }
    dynasm!(c.a
        ; .arch x64
        ; shr rdx, 4
        ; cmp rdx, i.count() as i32
        ; jae =>otherwise
        ; lea rdx, [rdx + rdx * 4]
        ; lea rax, [=>table]
        ; add rax, rdx
        ; jmp rax
        ; =>table
    );
    let begin = c.a.offset();
    for n in 0..i.count() as usize {
        let to = c.way_to(i.targets().get(n));
        dynasm!(c.a; .arch x64; jmp =>to);
        assert_eq!(c.a.offset().0, begin.0 + JUMP * (n + 1), "a jump's size");
    }
}

pub(super) fn select_tuple_arity(
    c: &mut Compiler<'_>,
    _pc: CodeAddress,
    i: read::SelectTupleArity,
) {
    c.first(RDX, Src::of(i.src()));
    let otherwise = c.way_to(i.otherwise());
    let cases: Vec<_> = i
        .cases()
        .iter()
        .map(|(arity, to)| {
            (
                tag::make_header(arity as usize, tag::ARITYVAL),
                c.way_to(to),
            )
        })
        .collect();
    dynasm!(c.a
        ; .arch x64
        ; lea eax, [BYTE rdx - tag::BOXED as i8]
        ; test al, 3
        ; jnz =>otherwise
        ; mov rdx, [BYTE rdx - tag::BOXED as i8]
    );
    for (header, to) in cases {
        compare(c, RDX, header);
        dynasm!(c.a; .arch x64; je =>to);
    }
    dynasm!(c.a; .arch x64; jmp =>otherwise);
}
