//! Templates of calls by label, export and fun.

use dynasmrt::{DynamicLabel, DynasmApi, DynasmLabelApi, dynasm};
use smallvec::SmallVec;

use super::frames::drop_frame;
use super::keeps::ARGUMENTS;
use super::{R8, RAX, RCX, RDX, constant, load};
use crate::code::Export;
use crate::code::bif::Bif;
use crate::code::op::{Op, entry as head, read};
use crate::code::operand::{Instruction, Reg, Src};
use crate::jit::compile::Compiler;
use crate::jit::metered::emit_runs_on;
use crate::jit::stubs::{CALL_HEAVY_BIF, CALL_LIGHT_BIF};
use crate::process::offset::SAVES_CALLS;
use crate::term::entry::ACTIVE;
use crate::term::{CodeAddress, tag};

/// Offset of a function's compiled form from its entry.
const NATIVE: i8 = 8 * head::NATIVE as i8;

/// Where the active code generation's number is.
fn active_address() -> u64 {
    (&raw const ACTIVE) as u64
}

/// The first x register.
pub(in crate::jit) const X0: Reg = Reg(0);

/// The x registers that a function of that arity finds in machine registers, and these.
pub(in crate::jit) fn arguments(arity: usize) -> impl DoubleEndedIterator<Item = (Reg, u8)> {
    let registers = (0..).map(|n| Reg(8 * n));
    let all: SmallVec<[(Reg, u8); ARGUMENTS.len()]> =
        registers.zip(ARGUMENTS).take(arity).collect();
    all.into_iter()
}

/// The machine register in which a call has this register, if it has it in one.
pub(in crate::jit) fn argument(reg: Reg) -> Option<u8> {
    arguments(ARGUMENTS.len()).find_map(|(argument, at)| (argument == reg).then_some(at))
}

/// What the template of the instruction at `pc` has in machine registers first, where it is a call or a return.
///
/// # Safety
/// I1: the loader has put an instruction there, whose first word is `word`.
pub(super) unsafe fn first_loads(
    c: &Compiler<'_>,
    pc: CodeAddress,
    word: u64,
) -> SmallVec<[Reg; 5]> {
    let of_call = |arity: usize| arguments(arity).map(|(reg, _)| reg);
    let of_function = |entry| {
        c.arity_of(entry)
            .map_or_else(SmallVec::new, |arity| of_call(arity).collect())
    };
    let of_export = |export: &Export| of_call(export.arity.into()).collect();
    // SAFETY: by contract.
    unsafe {
        match Op::of(word) {
            Op::Call => of_function(read::Call::at(pc, word).target()),
            Op::CallLast => of_function(read::CallLast::at(pc, word).target()),
            Op::CallOnly => of_function(read::CallOnly::at(pc, word).target()),
            Op::CallExt => of_export(read::CallExt::at(pc, word).export()),
            Op::CallExtLast => of_export(read::CallExtLast::at(pc, word).export()),
            Op::CallExtOnly => of_export(read::CallExtOnly::at(pc, word).export()),
            Op::CallFun => {
                let i = read::CallFun::at(pc, word);
                of_call(i.arity()).chain([i.fun()]).collect()
            }
            Op::CallFunLast => {
                let i = read::CallFunLast::at(pc, word);
                of_call(i.arity()).chain([i.fun()]).collect()
            }
            Op::Return | Op::DeallocateReturn => SmallVec::from_slice(&[X0]),
            _ => SmallVec::new(),
        }
    }
}

/// Has a template begin with the arguments of a call where the function looks for them.
fn first_arguments(c: &mut Compiler<'_>, arity: impl Into<usize>) {
    let sources = arguments(arity.into()).map(|(reg, at)| (at, Src::of(reg)));
    c.first_of(&sources.collect::<SmallVec<[_; 4]>>());
}

/// Calls the function whose entry is in `rax`.
fn call_entry(c: &mut Compiler<'_>, i: impl Instruction) {
    c.pad(3);
    dynasm!(c.a; .arch x64; call QWORD [BYTE rax + NATIVE]);
    c.note_return_to(i.next());
    c.hold_result();
}

/// Calls the function with this entry, in the module that is compiled.
fn call_local(c: &mut Compiler<'_>, target: CodeAddress, i: impl Instruction) {
    let Some(start) = c.own_start(target) else {
        constant(c, RAX, target.word());
        return call_entry(c, i);
    };
    c.pad(5);
    dynasm!(c.a; .arch x64; call =>start);
    c.note_return_to(i.next());
    c.hold_result();
}

/// As [`call_local`], for a tail call.
fn jump_local(c: &mut Compiler<'_>, target: CodeAddress) {
    match c.own_start(target) {
        Some(start) => dynasm!(c.a; .arch x64; jmp =>start),
        None => {
            constant(c, RAX, target.word());
            jump_to_entry(c);
        }
    }
}

/// Has the function that is compiled call itself by its entry.
pub(in crate::jit) fn itself_by_entry(c: &mut Compiler<'_>) {
    let (entry, yields, body) = c.beginning();
    let looks = c.new_label();
    constant(c, RAX, entry.word());
    emit_runs_on(&mut c.a, yields, looks);
    dynasm!(c.a; .arch x64; jmp =>body; =>looks);
    jump_to_entry(c);
}

/// Goes on with it, as a tail call.
fn jump_to_entry(c: &mut Compiler<'_>) {
    dynasm!(c.a; .arch x64; jmp QWORD [BYTE rax + NATIVE]);
}

pub(super) fn call(c: &mut Compiler<'_>, pc: CodeAddress, i: read::Call) {
    let Some(arity) = c.arity_of(i.target()) else {
        return c.calling_helper(pc, Op::Call, i);
    };
    first_arguments(c, arity);
    call_local(c, i.target(), i);
}

pub(super) fn call_last(c: &mut Compiler<'_>, pc: CodeAddress, i: read::CallLast) {
    let Some(arity) = c.arity_of(i.target()) else {
        return c.helper(pc, Op::CallLast, i);
    };
    first_arguments(c, arity);
    drop_frame(c, i.frame());
    jump_local(c, i.target());
}

pub(super) fn call_only(c: &mut Compiler<'_>, pc: CodeAddress, i: read::CallOnly) {
    let Some(arity) = c.arity_of(i.target()) else {
        return c.helper(pc, Op::CallOnly, i);
    };
    first_arguments(c, arity);
    jump_local(c, i.target());
}

/// Loads the entry that calls of `export` go to; those of a process that saves its calls are the helper's.
fn load_export(
    c: &mut Compiler<'_>,
    pc: CodeAddress,
    op: Op,
    i: impl Instruction,
    export: &'static Export,
) {
    let saves = c.cold_helper(pc, op, i);
    first_arguments(c, export.arity);
    dynasm!(c.a; .arch x64; cmp BYTE [r13 + SAVES_CALLS], 0; jne =>saves);
    constant(c, RAX, export.addresses.as_ptr() as u64);
    constant(c, RCX, active_address());
    dynasm!(c.a; .arch x64; mov rcx, [rcx]; mov rax, [rax + rcx * 8]);
}

pub(super) fn call_ext(c: &mut Compiler<'_>, pc: CodeAddress, i: read::CallExt) {
    load_export(c, pc, Op::CallExt, i, i.export());
    call_entry(c, i);
}

pub(super) fn call_ext_last(c: &mut Compiler<'_>, pc: CodeAddress, i: read::CallExtLast) {
    load_export(c, pc, Op::CallExtLast, i, i.export());
    drop_frame(c, i.frame());
    jump_to_entry(c);
}

pub(super) fn call_ext_only(c: &mut Compiler<'_>, pc: CodeAddress, i: read::CallExtOnly) {
    load_export(c, pc, Op::CallExtOnly, i, i.export());
    jump_to_entry(c);
}

/// A local fun of that arity whose code is there: its entry is in `rax` and its free variables are in their registers.
/// All else is the helper's.
fn load_fun(
    c: &mut Compiler<'_>,
    pc: CodeAddress,
    op: Op,
    i: impl Instruction,
    fun: Reg,
    arity: usize,
) {
    let other = c.cold_helper(pc, op, i);
    let (copy, done) = (c.new_label(), c.new_label());
    let taken = arguments(arity).map(|(reg, at)| (at, Src::of(reg)));
    let taken = taken.chain([(RDX, Src::of(fun))]);
    c.first_of(&taken.collect::<SmallVec<[_; 5]>>());
    // The header without its count of free variables says: a local fun of that arity.
    let wanted = tag::fun::make_header(arity as u8, 0, false) as i32;
    let mask =
        !(tag::fun::make_header(0, u8::MAX, false) ^ tag::fun::make_header(0, 0, false)) as i32;
    dynasm!(c.a
        ; .arch x64
        ; lea eax, [BYTE rdx - tag::BOXED as i8]
        ; test al, 3
        ; jnz =>other
        ; mov ecx, [BYTE rdx - tag::BOXED as i8]
        ; mov eax, ecx
        ; and eax, mask
        ; cmp eax, wanted
        ; jne =>other
        ; mov rax, [rdx + (8 - tag::BOXED as i32)]
    );
    constant(c, R8, active_address());
    let x = (arity as i32 - 1) * 8;
    dynasm!(c.a
        ; .arch x64
        ; mov r8, [r8]
        ; mov rax, [rax + r8 * 8]
        ; test rax, rax
        ; jz =>other
        ; shr ecx, 16
        ; movzx ecx, cl
        ; test ecx, ecx
        ; jz =>done
        ; =>copy
        ; mov r8, [rdx + rcx * 8 + (8 - tag::BOXED as i32)]
        ; mov [rbx + rcx * 8 + x], r8
        ; dec ecx
        ; jnz =>copy
    );
    for (reg, at) in arguments(ARGUMENTS.len()).skip(arity) {
        load(c, at, reg);
    }
    dynasm!(c.a; .arch x64; =>done);
}

pub(super) fn call_fun(c: &mut Compiler<'_>, pc: CodeAddress, i: read::CallFun) {
    load_fun(c, pc, Op::CallFun, i, i.fun(), i.arity());
    call_entry(c, i);
}

pub(super) fn call_fun_last(c: &mut Compiler<'_>, pc: CodeAddress, i: read::CallFunLast) {
    load_fun(c, pc, Op::CallFunLast, i, i.fun(), i.arity());
    drop_frame(c, i.frame());
    jump_to_entry(c);
}

/// Goes to `other` for a process that saves its calls.
fn may_call(c: &mut Compiler<'_>, other: DynamicLabel) {
    dynasm!(c.a
        ; .arch x64
        ; cmp BYTE [r13 + SAVES_CALLS], 0
        ; jne =>other
    );
}

/// Calls the BIF at `pc`: what it calls returns behind it.
fn call_bif_stub(
    c: &mut Compiler<'_>,
    pc: CodeAddress,
    stub: i32,
    bif: &'static Bif,
    i: impl Instruction,
) {
    dynasm!(c.a; .arch x64; mov rsi, QWORD pc.word() as i64);
    c.call_stub(stub);
    c.note_return_from(bif);
    dynasm!(c.a; .arch x64; .align 4);
    c.note_return_to(i.next());
}

pub(super) fn call_bif(c: &mut Compiler<'_>, pc: CodeAddress, i: read::CallBif) {
    let other = c.cold_helper(pc, Op::CallBif, i);
    may_call(c, other);
    dynasm!(c.a; .arch x64; cmp r14, 1; jle =>other);
    call_bif_stub(c, pc, CALL_LIGHT_BIF, i.bif(), i);
}

pub(super) fn call_hbif(c: &mut Compiler<'_>, pc: CodeAddress, i: read::CallHbif) {
    let other = c.cold_helper(pc, Op::CallHbif, i);
    may_call(c, other);
    call_bif_stub(c, pc, CALL_HEAVY_BIF, i.bif(), i);
}
