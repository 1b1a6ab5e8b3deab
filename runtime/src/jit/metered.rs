//! Calls of functions under breakpoints, in line: what the breakpoints of one session count, and what its one meter in a
//! process measures. Rust does it in all cases: `trace/calls/` and `trace/measure/meter.rs`.

use dynasmrt::{AssemblyOffset, DynamicLabel, DynasmApi, DynasmLabelApi, dynasm};

use super::stubs::{
    Assembler, YIELD_AT_RETURN, load_arguments, load_result, slot, swap_in, swap_out,
};
use crate::code::machine_code::RETURN_BYTES;
use crate::code::op::{Op, entry as head};
use crate::code::stubs::TRACE_FRAMES;
use crate::heap::RESERVED_WORDS;
use crate::interp::helpers::Slice;
use crate::process::CONTEXT_REDS;
use crate::process::offset as process;
use crate::term::tag;
use crate::trace::breakpoint::{active_address, offset as breakpoint};
use crate::trace::calls::frame::layout::{self as frame, ACCOUNT_WORDS, RECORDED_WORDS};
use crate::trace::calls::{record_call, record_return};
use crate::trace::costs::in_line::{changes_address, offset as in_line};
use crate::trace::costs::node::offset as node;
use crate::trace::measure::meter::offset as meter;

const BODY: i8 = 8 * head::BODY as i8;
const SMALL_SHIFT: i8 = frame::SMALL_SHIFT as i8;
const METER_SHIFT: i8 = frame::METER_SHIFT as i8;
const ONE: i32 = frame::ONE_ACCOUNT as i32;

/// Bits that are all zero in the number of each 256th call of a function: Rust does such a call, so that those that
/// follow are counted by [`emit_runs_on`] if they are of the same function.
const MANY: i8 = -1;

/// Bytes of the places that trace frames return to.
const FRAMES_BYTES: i32 = RETURN_BYTES as i32 * TRACE_FRAMES as i32;

/// Where the ways of a traced call part.
pub(super) struct Labels {
    /// The call has used the time slice up; the function's entry is in `rax`.
    pub(super) yields: DynamicLabel,
    /// The call as Rust does it; the entry is in `rax`.
    pub(super) generic: DynamicLabel,
    /// The first of the places that trace frames return to.
    pub(super) returns: DynamicLabel,
    /// Call the function whose entry is in `r8`, so that it returns to the place of each kind of frame.
    pub(super) calls: [DynamicLabel; TRACE_FRAMES],
}

/// The call of a compiled function under a breakpoint, whose entry is in `rax`.
pub(super) fn emit_entry(a: &mut Assembler, to: &Labels) -> AssemblyOffset {
    const BREAKPOINT: i32 = 8 * head::BREAKPOINT as i32;
    let (looks, metered) = (a.new_dynamic_label(), a.new_dynamic_label());
    let traced_entry = a.offset();
    emit_runs_on(a, to.yields, looks);
    dynasm!(a
        ; .arch x64
        ; jmp QWORD [BYTE rax + BODY]
        ; =>looks
        ; mov rcx, [rax + BREAKPOINT]
        ; test rcx, rcx
        ; jz =>to.generic
        ; cmp WORD [rcx + breakpoint::ORIGINAL], Op::NifEntry as i16
        ; je =>to.generic
        ; mov rdx, QWORD active_address() as i64
        ; mov rdx, [rdx]
        ; mov rcx, [rcx + rdx * 8 + breakpoint::GENERATIONS]
        ; test rcx, rcx
        ; jz =>to.generic
        ; cmp BYTE [r13 + process::SENSITIVE], 0
        ; jne =>to.generic
        ; cmp rax, [r13 + process::RESUMED_CALL]
        ; je =>to.generic
        ; mov rdx, [rcx + breakpoint::COUNTED]
        ; test rdx, rdx
        ; jz =>metered
        ; mov rcx, [rbp + slot::SLICE]
        ; add rdx, [rcx + Slice::COUNTS as i32]
        ; test BYTE [rdx], MANY
        ; jz =>to.generic
    );
    emit_prologue(a, to);
    dynasm!(a
        ; .arch x64
        ; inc QWORD [rdx]
        ; jmp QWORD [BYTE rax + BODY]
        ; =>metered
    );
    emit_metered(a, to);
    traced_entry
}

/// Counts the call of the function whose entry is in `rax`, where that is the one that runs already, as the process's
/// [`InLine`] says, and goes on with what follows; goes to `looks` otherwise. Takes `rdx` and `r11`.
///
/// [`InLine`]: crate::trace::costs::in_line::InLine
pub(super) fn emit_runs_on(a: &mut Assembler, yields: DynamicLabel, looks: DynamicLabel) {
    let (counts, goes) = (a.new_dynamic_label(), a.new_dynamic_label());
    dynasm!(a
        ; .arch x64
        ; cmp rax, [r13 + process::RUNS_ON]
        ; jne =>looks
        ; mov r11, [r13 + process::IN_LINE]
        ; mov rdx, QWORD changes_address() as i64
        ; mov rdx, [rdx]
        ; cmp rdx, [r11 + in_line::CHANGES]
        ; jne =>looks
        ; dec r14
        ; jle =>yields
        ; mov rdx, [r11 + in_line::COUNT]
        ; cmp QWORD [r11 + in_line::CHARGED_LATER], 0
        ; je =>counts
        ; inc QWORD [r11 + in_line::CALLS]
        ; mov [r11 + in_line::TOP], r15
        ; test rdx, rdx
        ; jz =>goes
        ; =>counts
        ; inc QWORD [rdx]
        ; =>goes
    );
}

/// The rest of [`emit_entry`], where the breakpoint's data in `rcx` wants no counter.
fn emit_metered(a: &mut Assembler, to: &Labels) {
    let (runs_on, on_top) = (a.new_dynamic_label(), a.new_dynamic_label());
    let recorded = a.new_dynamic_label();
    dynasm!(a
        ; .arch x64
        ; mov rdx, [rcx + breakpoint::METERED_BY]
        ; test rdx, rdx
        ; jz =>recorded
        ; mov r9, [r13 + process::IN_LINE]
        ; test r9, r9
        ; jz =>to.generic
        ; cmp QWORD [r9 + in_line::CHARGED_LATER], 0
        ; jne =>to.generic
        ; mov r9, [r9 + in_line::METER]
        ; test r9, r9
        ; jz =>to.generic
        ; cmp rdx, [r9 + meter::KEY]
        ; jne =>to.generic
        ; mov rdx, [r9 + meter::CALLS]
        ; mov rdx, [rdx]
        ; test rdx, [r9 + meter::BIT]
        ; jz =>to.generic
        ; mov r8, rax
        ; mov rsi, [r9 + meter::CURRENT]
        ; mov edi, [rcx + breakpoint::ACCOUNT]
        ; cmp [rsi + node::ACCOUNT], edi
        ; je =>runs_on
    );
    emit_tail_bit(a, to);
    emit_way(a, to.generic);
    dynasm!(a
        ; .arch x64
        ; cmp rcx, FRAMES_BYTES
        ; jb =>on_top
        ; lea rdx, [rsp - 8 * (ACCOUNT_WORDS + RESERVED_WORDS) as i32]
        ; cmp rdx, r15
        ; jb =>to.generic
    );
    emit_goes_on_in(a, to);
    dynasm!(a
        ; .arch x64
        ; mov eax, [r9 + meter::UID]
        ; shl rax, 32
        ; mov edx, [rsi + node::INDEX]
        ; or rax, rdx
        ; shl rax, SMALL_SHIFT
        ; or rax, tag::SMALL as i32
        ; push rax
        ; push ONE
    );
    load_arguments(a);
    dynasm!(a; .arch x64; jmp =>to.calls[frame::ACCOUNTS]; =>on_top);
    emit_covered(a, to);
    dynasm!(a
        ; .arch x64
        ; =>runs_on
        ; test BYTE [rsi + node::CALLS], MANY
        ; jz =>to.generic
    );
    emit_prologue(a, to);
    emit_charge_counts(a);
    dynasm!(a
        ; .arch x64
        ; inc QWORD [rsi + node::CALLS]
        ; inc QWORD [rsi + node::AGAIN]
    );
    load_arguments(a);
    dynasm!(a; .arch x64; jmp QWORD [BYTE r8 + BODY]; =>recorded);
    emit_recorded(a, to);
}

/// The rest of [`emit_metered`], where the breakpoint's data wants no meter.
fn emit_recorded(a: &mut Assembler, to: &Labels) {
    let is_unseen = a.new_dynamic_label();
    dynasm!(a
        ; .arch x64
        ; cmp BYTE [rcx + breakpoint::ONLY_RECORDED], 0
        ; je =>to.generic
        ; lea rdx, [rsp - 8 * (RECORDED_WORDS + RESERVED_WORDS) as i32]
        ; cmp rdx, r15
        ; jb =>to.generic
    );
    emit_prologue(a, to);
    dynasm!(a; .arch x64; mov [rbp + slot::KEPT[0]], rax);
    swap_out(a);
    dynasm!(a
        ; .arch x64
        ; mov rdi, r13
        ; mov rsi, rax
        ; mov rdx, rcx
        ; mov rax, QWORD record_call as *const () as usize as i64
        ; call rax
    );
    swap_in(a);
    dynasm!(a
        ; .arch x64
        ; mov r8, [rbp + slot::KEPT[0]]
    );
    load_arguments(a);
    dynasm!(a
        ; .arch x64
        ; test rax, rax
        ; jz =>is_unseen
        ; push rax
        ; jmp =>to.calls[frame::RECORDED]
        ; =>is_unseen
        ; jmp QWORD [BYTE r8 + BODY]
    );
}

/// A recorded call has returned to its frame, whose first word is popped.
pub(super) fn emit_recorded_return(a: &mut Assembler) {
    dynasm!(a; .arch x64; mov rsi, [rsp]);
    swap_out(a);
    dynasm!(a
        ; .arch x64
        ; mov rdi, r13
        ; mov rax, QWORD record_return as *const () as usize as i64
        ; call rax
    );
    swap_in(a);
    emit_end(a, RECORDED_WORDS);
}

/// The end of a return to a frame of `words` words, whose first one is popped: to what is below it.
fn emit_end(a: &mut Assembler, words: usize) {
    let yields = a.new_dynamic_label();
    dynasm!(a
        ; .arch x64
        ; add rsp, 8 * (words as i32 - 1)
        ; dec r14
        ; js =>yields
    );
    load_result(a);
    dynasm!(a
        ; .arch x64
        ; ret
        ; =>yields
        ; jmp QWORD [r12 + YIELD_AT_RETURN]
    );
}

/// A tail call has the frame of the one before it on top of the stack: the bit of a tail call is in `rdx` then, or 0. In
/// `rcx` are the bytes from the first of the places that trace frames return to, to the place on top.
fn emit_tail_bit(a: &mut Assembler, to: &Labels) {
    dynasm!(a
        ; .arch x64
        ; lea rdx, [=>to.returns]
        ; mov rcx, [rsp]
        ; sub rcx, rdx
        ; cmp rcx, FRAMES_BYTES
        ; sbb edx, edx
        ; and edx, 1 << meter::TAIL_SHIFT
    );
}

/// Where a call of the account in `edi` leads from the node in `rsi`: that node is in `rdi` then. In `rdx` is the bit of
/// a tail call, or 0.
fn emit_way(a: &mut Assembler, generic: DynamicLabel) {
    let found = a.new_dynamic_label();
    dynasm!(a
        ; .arch x64
        ; mov r10d, [rsi + node::INDEX]
        ; shl r10, 32
        ; or r10, rdx
        ; and r10, [r9 + meter::PATHS]
        ; or r10, rdi
        ; mov rdx, r10
        ; shr rdx, 32
        ; lea rdx, [rdx + rdx * 4]
        ; add rdx, r10
        ; and rdx, [r9 + meter::MASK]
        ; shl rdx, meter::WAY_SHIFT
        ; add rdx, [r9 + meter::FIRST_WAY]
        ; cmp r10, [rdx + meter::WAY_KEY]
        ; je =>found
        ; xor rdx, 1 << meter::WAY_SHIFT
        ; cmp r10, [rdx + meter::WAY_KEY]
        ; jne =>generic
        ; =>found
        ; mov rdi, [rdx + meter::WAY_TO]
    );
}

/// The call uses a reduction up; it yields where that was the last one, and otherwise is not resumed any more.
fn emit_prologue(a: &mut Assembler, to: &Labels) {
    dynasm!(a
        ; .arch x64
        ; dec r14
        ; jle =>to.yields
        ; mov QWORD [r13 + process::RESUMED_CALL], 0
    );
}

/// The call is charged for and counted, and the node in `rdi` is the current one, as that in `rsi` has been.
fn emit_goes_on_in(a: &mut Assembler, to: &Labels) {
    emit_prologue(a, to);
    emit_charge(a);
    dynasm!(a
        ; .arch x64
        ; inc QWORD [rdi + node::CALLS]
        ; mov [r9 + meter::CURRENT], rdi
    );
}

/// A call with a trace frame on top, `rcx` bytes behind the first kind's: a tail call where that frame gives an account
/// back to this meter. In a tree, it must be that of the node from which the row of tail calls was called there.
fn emit_covered(a: &mut Assembler, to: &Labels) {
    dynasm!(a
        ; .arch x64
        ; test rcx, rcx
        ; jnz =>to.generic
        ; cmp QWORD [rsp + 8], ONE
        ; jne =>to.generic
        ; mov rdx, [rsp + 16]
        ; shr rdx, SMALL_SHIFT
        ; mov ecx, edx
        ; xor ecx, [rsi + node::ROW_BELOW]
        ; test ecx, [r9 + meter::CALLERS]
        ; jnz =>to.generic
        ; shr rdx, METER_SHIFT - SMALL_SHIFT
        ; cmp edx, [r9 + meter::UID]
        ; jne =>to.generic
    );
    emit_goes_on_in(a, to);
    load_arguments(a);
    dynasm!(a; .arch x64; jmp QWORD [BYTE r8 + BODY]);
}

/// A traced call has returned to its frame, which gives accounts back, and whose first word is popped.
pub(super) fn emit_return(a: &mut Assembler, generic: DynamicLabel) {
    dynasm!(a
        ; .arch x64
        ; cmp QWORD [rsp], ONE
        ; jne =>generic
        ; mov r9, [r13 + process::IN_LINE]
        ; test r9, r9
        ; jz =>generic
        ; cmp QWORD [r9 + in_line::CHARGED_LATER], 0
        ; jne =>generic
        ; mov r9, [r9 + in_line::METER]
        ; test r9, r9
        ; jz =>generic
        ; mov rcx, [rsp + 8]
        ; shr rcx, SMALL_SHIFT
        ; mov rdx, rcx
        ; shr rdx, 32
        ; cmp edx, [r9 + meter::UID]
        ; jne =>generic
        ; mov rdx, [r9 + meter::CALLS]
        ; mov rdx, [rdx]
        ; test rdx, [r9 + meter::BIT]
        ; jz =>generic
        ; mov ecx, ecx
        ; mov rdx, [r9 + meter::NODES]
        ; cmp ecx, [rdx + node::LEN]
        ; jae =>generic
        ; mov eax, ecx
        ; or eax, node::FIRST_BITS
        ; bsr eax, eax
        ; mov rdi, [rdx + rax * 8 + node::BASES]
        ; shl rcx, node::NODE_SHIFT
        ; add rdi, rcx
        ; mov rsi, [r9 + meter::CURRENT]
    );
    emit_charge(a);
    dynasm!(a
        ; .arch x64
        ; inc QWORD [rdi + node::RESUMED]
        ; mov [r9 + meter::CURRENT], rdi
    );
    emit_end(a, ACCOUNT_WORDS);
}

/// Charges what has passed to the node in `rsi`, as the meter in `r9` measures it.
fn emit_charge(a: &mut Assembler) {
    let untimed = a.new_dynamic_label();
    dynasm!(a
        ; .arch x64
        ; cmp BYTE [r9 + meter::MEASURES_TIME], 0
        ; je =>untimed
        ; rdtsc
        ; shl rdx, 32
        ; or rax, rdx
        ; mov rdx, [r9 + meter::TICKS]
        ; mov [r9 + meter::TICKS], rax
        ; xor ecx, ecx
        ; sub rax, rdx
        ; cmovb rax, rcx
        ; add [rsi + node::TICKS], rax
        ; =>untimed
    );
    emit_charge_counts(a);
}

/// Charges the words of it.
fn emit_charge_words(a: &mut Assembler) {
    dynasm!(a
        ; .arch x64
        ; mov rax, r15
        ; sub rax, [r13 + process::HIGH_WATER]
        ; shr rax, 3
        ; add rax, [r13 + process::COLLECTED_WORDS]
        ; add rax, [r13 + process::FRAGMENT_WORDS]
        ; sub rax, [r13 + process::UNCLAIMED_WORDS]
        ; mov rdx, [r9 + meter::WORDS]
        ; mov [r9 + meter::WORDS], rax
        ; sub rax, rdx
        ; add [rsi + node::WORDS], rax
    );
}

/// The words and reductions of it.
fn emit_charge_counts(a: &mut Assembler) {
    let (words, reductions) = (a.new_dynamic_label(), a.new_dynamic_label());
    dynasm!(a
        ; .arch x64
        ; cmp BYTE [r9 + meter::MEASURES_WORDS], 0
        ; je =>words
    );
    emit_charge_words(a);
    dynasm!(a
        ; .arch x64
        ; =>words
        ; cmp BYTE [r9 + meter::MEASURES_REDUCTIONS], 0
        ; je =>reductions
        ; xor ecx, ecx
        ; mov eax, CONTEXT_REDS as i32
        ; sub rax, r14
        ; cmovl rax, rcx
        ; add rax, [r13 + process::REDUCTIONS]
        ; mov rdx, [r9 + meter::REDUCTIONS]
        ; mov [r9 + meter::REDUCTIONS], rax
        ; sub rax, rdx
        ; cmovb rax, rcx
        ; add [rsi + node::REDUCTIONS], rax
        ; =>reductions
    );
}
