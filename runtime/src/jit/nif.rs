//! The call of a NIF. A plain one is made in machine code: its environment lies on the thread's own stack, and where the
//! function just returns a term, nothing of Rust is called.

use dynasmrt::{AssemblyOffset, DynamicLabel, DynasmApi, DynasmLabelApi, dynasm};

use super::stubs::{Assembler, call, load_arguments, load_result, slot, swap_in, swap_out};
use super::templates::keeps::ARGUMENTS;
use crate::code::nif::Nif;
use crate::code::op::entry as head;
use crate::exec::nif::layout;
use crate::heap::{Heap, NIF_CHECKS};
use crate::interp::helpers::{self, Slice};
use crate::process::offset::{
    FCALLS, FRAGMENT_WORDS, HEAP, HTOP, OVERHEAD_LIMIT, OVERHEAD_WORDS, RESUMED_CALL, STOP,
};
use crate::term::RawTerm;

/// Bytes of a word that says that a NIF is called, and of an environment, on the stack.
const ENVIRONMENT: i32 = (8 + layout::BYTES + 15) & !15;

/// The call of a NIF whose function's entry is in `rax`. It returns as any function does, or goes elsewhere. Nothing rests
/// in the process: a call goes on through the entry's own arm.
pub(super) fn emit_entry(a: &mut Assembler, yields: DynamicLabel) -> AssemblyOffset {
    let (generic, ends) = (a.new_dynamic_label(), a.new_dynamic_label());
    let elsewhere = a.new_dynamic_label();
    let entry = a.offset();
    let calls = a.new_dynamic_label();
    dynasm!(a; .arch x64; dec r14; jle =>yields; =>calls);
    if !Heap::is_zealous() && !NIF_CHECKS {
        emit_plain(a, calls, generic, ends);
    }
    dynasm!(a; .arch x64; =>generic; mov rsi, rax; mov [rbp + slot::KEPT[0]], rax);
    swap_out(a);
    call(a, helpers::call_nif as *const () as u64);
    dynasm!(a; .arch x64; =>ends);
    swap_in(a);
    dynasm!(a
        ; .arch x64
        ; test rax, rax
        ; jnz =>elsewhere
    );
    load_result(a);
    dynasm!(a; .arch x64; ret; =>elsewhere);
    load_arguments(a);
    dynasm!(a; .arch x64; jmp rax);
    entry
}

/// A plain call. The word below the thread's frame is `calls`, as if it were a return address: a sampler finds the called
/// function by it (`beamline_settings::published`). Other calls go to `generic`. One that has more to do at its end than
/// to return a term gets to `ends` with the answer of [`helpers::end_nif`].
fn emit_plain(a: &mut Assembler, calls: DynamicLabel, generic: DynamicLabel, ends: DynamicLabel) {
    let slow = a.new_dynamic_label();
    dynasm!(a
        ; .arch x64
        ; mov rcx, [rax + 8 * head::ARITY as i32]
        ; movzx esi, cl
        ; shr rcx, head::NIF_SHIFT as i8
        ; cmp BYTE [rcx + Nif::IS_PLAIN as i32], 0
        ; je =>generic
    );
    swap_out(a);
    dynasm!(a
        ; .arch x64
        ; mov [rbp + slot::KEPT[0]], rax
        ; mov QWORD [r13 + RESUMED_CALL], 0
        ; lea rdx, [=>calls]
        ; push rdx
        ; sub rsp, ENVIRONMENT - 8
        ; mov rdx, [rcx + Nif::LIBRARY as i32]
        ; mov [rsp + layout::LIBRARY], rdx
        ; lea rdx, [r13 + HEAP]
        ; mov [rsp + layout::HEAP], rdx
        ; mov [rsp + layout::PROCESS], r13
        ; mov QWORD [rsp + layout::EXCEPTION], RawTerm::NONE.0 as i32
        ; mov QWORD [rsp + layout::SCHEDULED], 0
        ; mov QWORD [rsp + layout::TEMPORARIES], 0
        ; mov rdx, [rbp + slot::SLICE]
        ; mov rdx, [rdx + Slice::RUNNING as i32]
        ; lea rdi, [rcx + Nif::NATIVE as i32]
        ; mov [rdx], rdi
        ; mov rdi, rsp
        ; mov rdx, rbx
        ; call QWORD [rcx + Nif::BODY as i32]
        ; mov rdx, [rbp + slot::SLICE]
        ; mov rdx, [rdx + Slice::RUNNING as i32]
        ; mov QWORD [rdx], 0
        // An exception, a function to go on in, memory to free, no term?
        ; mov rcx, [rsp + layout::SCHEDULED]
        ; or rcx, [rsp + layout::TEMPORARIES]
        ; jnz =>slow
        ; cmp QWORD [rsp + layout::EXCEPTION], RawTerm::NONE.0 as i32
        ; jne =>slow
        ; cmp rax, RawTerm::NONE.0 as i32
        ; je =>slow
        // As `Heap::wants_collection()`.
        ; mov r15, [r13 + HTOP]
        ; mov rdx, [r13 + STOP]
        ; mov rcx, rdx
        ; sub rcx, r15
        ; shr rcx, 3
        ; cmp rcx, [r13 + FRAGMENT_WORDS]
        ; jb =>slow
        ; mov rcx, [r13 + OVERHEAD_WORDS]
        ; cmp rcx, [r13 + OVERHEAD_LIMIT]
        ; ja =>slow
        ; mov rsp, rdx
        ; mov r14, [r13 + FCALLS]
        ; mov [rbx], rax
        ; mov Rq(ARGUMENTS[0]), rax
        ; ret
        ; =>slow
        ; mov rsi, [rbp + slot::KEPT[0]]
        ; mov rcx, rsp
        ; mov r8, rax
    );
    call(a, helpers::end_nif as *const () as u64);
    dynasm!(a; .arch x64; jmp =>ends);
}
