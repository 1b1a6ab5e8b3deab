//! Machine code that belongs to no function: the ways into compiled code, out of it, and to Rust.

use std::io;
use std::mem::offset_of;
use std::sync::OnceLock;

use beamline_settings::published::{Kind, Thread};
use dynasmrt::x64::X64Relocation;
use dynasmrt::{AssemblyOffset, DynamicLabel, DynasmApi, DynasmLabelApi, VecAssembler, dynasm};

use super::templates::keeps::ARGUMENTS;
use super::{bits, metered, nif, perf, published};
use crate::code::machine_code::{BYTES, Common, RETURN_BYTES, start as start_native};
use crate::code::op::{Op, entry as head};
use crate::code::stubs::RETURNS;
use crate::interp::helpers::{self, FAIL, HELPERS, Slice};
use crate::process::Process;
use crate::process::offset::{FCALLS, HTOP, PC, STOP};
use crate::sys::code_memory::CodeMemory;
use crate::trace::calls::frame::layout;

pub(super) type Assembler = VecAssembler<X64Relocation>;

/// Slots above `rbp`.
pub(super) mod slot {
    /// The slice.
    pub(in crate::jit) const SLICE: i32 = 0;
    /// Where a helper's stub returns to.
    pub(in crate::jit) const BACK: i32 = 8;
    /// What a template keeps while it calls.
    pub(in crate::jit) const KEPT: [i32; 3] = [16, 24, 32];
    /// The process, while compiled code or what it has called runs; 0 afterwards. For others to see.
    pub(in crate::jit) const PROCESS: i32 = 40;
    /// The top of the process's stack when compiled code was left last: what is called may cut the stack. For others to see.
    pub(in crate::jit) const STOP: i32 = 48;
    /// Bytes of them: with the registers that are pushed, a multiple of 16 behind the return address.
    pub(in crate::jit) const BYTES: i32 = 56;
}

/// Where others find the frame of a thread, in its record.
const FRAME: i32 = offset_of!(Thread<u64>, frame) as i32;

/// Names of stubs in the table that are of no instruction, in order.
const OTHERS: [&str; 8] = [
    "collect",
    "yield_at_entry",
    "yield_at_return",
    "take_bits",
    "look_at_bits",
    "call_light_bif",
    "call_heavy_bif",
    "float_beside",
];

/// How many stubs are in the table.
const TABLE: usize = Op::ALL.len() + OTHERS.len();

/// Addresses that compiled code calls: of the helpers' stubs by the number of the instruction, and then of others.
type Table = [u64; TABLE];

/// Offsets of the others in the table, in bytes.
pub(super) const COLLECT: i32 = other(0);
pub(super) const YIELD_AT_ENTRY: i32 = other(1);
pub(super) const YIELD_AT_RETURN: i32 = other(2);
pub(super) const TAKE_BITS: i32 = other(3);
pub(super) const LOOK_AT_BITS: i32 = other(4);
pub(super) const CALL_LIGHT_BIF: i32 = other(5);
pub(super) const CALL_HEAVY_BIF: i32 = other(6);
pub(super) const FLOAT_BESIDE: i32 = other(7);

const fn other(number: i32) -> i32 {
    8 * (Op::ALL.len() as i32 + number)
}

/// Enters compiled code: of a slice, a process, an address, the x registers and the table.
type Enter = unsafe extern "C" fn(*mut Slice, *mut Process, u64, *mut u64, *const Table);

struct Stubs {
    table: Table,
    enter: Enter,
}

static STUBS: OnceLock<Stubs> = OnceLock::new();

/// Runs compiled code from `to` on until the time slice ends.
///
/// # Safety
/// J1, P2: `p` goes on at `to`, swapped out, its registers in place.
pub(super) unsafe fn enter(p: &mut Process, to: u64, slice: &mut Slice) {
    let stubs = STUBS.get().expect("the compiled engine runs");
    let x = p.registers().cast();
    // SAFETY: by contract; the stub keeps what the platform's calls keep.
    unsafe { (stubs.enter)(slice, p, to, x, &raw const stubs.table) }
}

/// Offsets of the stubs in their code.
struct Offsets {
    enter: AssemblyOffset,
    leave: AssemblyOffset,
    resume: AssemblyOffset,
    generic_entry: AssemblyOffset,
    traced_entry: AssemblyOffset,
    nif_entry: AssemblyOffset,
    returns: AssemblyOffset,
    table: [AssemblyOffset; TABLE],
}

impl Offsets {
    /// Names of all stubs, with their offsets, ascending.
    fn named(&self) -> Vec<(usize, &'static str)> {
        let table = self.table.iter().zip((0..).map_while(name_in_table));
        let others = [
            (&self.enter, "enter"),
            (&self.leave, "leave"),
            (&self.resume, "resume"),
            (&self.generic_entry, "generic_entry"),
            (&self.traced_entry, "traced_entry"),
            (&self.nif_entry, "nif_entry"),
            (&self.returns, "returns"),
        ];
        let all = table.chain(others);
        let mut all: Vec<_> = all.map(|(offset, name)| (offset.0, name)).collect();
        all.sort_unstable();
        all
    }

    /// Names them for `perf` and others: `code` has them, and runs at `base`.
    fn tell(&self, base: u64, code: &[u8]) {
        let named = self.named();
        let ends = named.iter().skip(1).map(|&(offset, _)| offset);
        for (&(from, name), to) in named.iter().zip(ends.chain([code.len()])) {
            let (start, bytes) = (base + from as u64, &code[from..to]);
            perf::stub(name, start, bytes);
            published::fragment(name, kind(name), start, bytes.len());
        }
    }
}

/// How a sampler sees a stub. Unless said otherwise here, the caller of a stub of the table is in the slot of helpers'
/// return addresses.
fn kind(name: &str) -> Kind {
    match name {
        "enter" | "leave" | "yield_at_entry" | "yield_at_return" => Kind::Schedules,
        "resume" | "generic_entry" | "traced_entry" | "nif_entry" | "returns" => Kind::Entered,
        "collect" => Kind::Collects,
        _ => Kind::Called,
    }
}

/// The name of a stub by its number in the table.
pub(super) fn name_in_table(number: usize) -> Option<&'static str> {
    let op = Op::ALL.get(number).map(|op| op.name());
    op.or_else(|| OTHERS.get(number.checked_sub(Op::ALL.len())?).copied())
}

/// Makes the stubs, and has functions compiled from now on, in memory that maps of `perf` are good for or not.
///
/// # Errors
/// The system's, where it gives no memory for machine code.
pub(super) fn start(for_map: bool) -> io::Result<()> {
    let mut a = Assembler::new(0);
    let offsets = emit(&mut a);
    let code = a.finalize().expect("all labels of the stubs are there");
    let mut base = 0;
    let memory = match for_map {
        true => CodeMemory::anonymous(BYTES)?,
        false => CodeMemory::new(BYTES)?,
    };
    start_native(memory, &code, |address| {
        base = address;
        let at = |offset: AssemblyOffset| address + offset.0 as u64;
        Common {
            generic_entry: at(offsets.generic_entry),
            traced_entry: at(offsets.traced_entry),
            nif_entry: at(offsets.nif_entry),
            resume: at(offsets.resume),
            leave: at(offsets.leave),
            returns: at(offsets.returns),
        }
    });
    let enter = base + offsets.enter.0 as u64;
    let stubs = Stubs {
        table: offsets.table.map(|offset| base + offset.0 as u64),
        // SAFETY: the stub is a function of this type.
        enter: unsafe { std::mem::transmute::<u64, Enter>(enter) },
    };
    let _ = STUBS.set(stubs);
    offsets.tell(base, &code);
    published::start(base);
    Ok(())
}

/// Stores what is in machine registers in the process, and takes the thread's own stack.
pub(super) fn swap_out(a: &mut Assembler) {
    dynasm!(a
        ; .arch x64
        ; mov [r13 + HTOP], r15
        ; mov [r13 + STOP], rsp
        ; mov [rbp + slot::STOP], rsp
        ; mov [r13 + FCALLS], r14
        ; mov rsp, rbp
    );
}

/// The other way round.
pub(super) fn swap_in(a: &mut Assembler) {
    dynasm!(a
        ; .arch x64
        ; mov r15, [r13 + HTOP]
        ; mov rsp, [r13 + STOP]
        ; mov r14, [r13 + FCALLS]
    );
}

/// Has machine registers hold the first x registers (J4, J5), for whoever goes on at an address that may want them so.
pub(super) fn load_arguments(a: &mut Assembler) {
    for (n, at) in (0..).zip(ARGUMENTS) {
        dynasm!(a; .arch x64; mov Rq(at), [rbx + 8 * n]);
    }
}

/// Has a machine register hold the result of a call (J5).
pub(super) fn load_result(a: &mut Assembler) {
    dynasm!(a; .arch x64; mov Rq(ARGUMENTS[0]), [rbx]);
}

/// Calls a function of Rust with the process, `rsi`, and the slice.
pub(super) fn call(a: &mut Assembler, function: u64) {
    dynasm!(a
        ; .arch x64
        ; mov rdi, r13
        ; mov rdx, [rbp + slot::SLICE]
        ; mov rax, QWORD function as i64
        ; call rax
    );
}

/// Calls one, and goes on where it says.
fn go(a: &mut Assembler, function: u64) {
    swap_out(a);
    call(a, function);
    swap_in(a);
    load_arguments(a);
    dynasm!(a; .arch x64; jmp rax);
}

fn address(helper: helpers::Helper) -> u64 {
    helper as usize as u64
}

fn emit(a: &mut Assembler) -> Offsets {
    let enter = emit_enter(a);
    let leave_label = a.new_dynamic_label();
    let leave = a.offset();
    dynasm!(a
        ; .arch x64
        ; =>leave_label
        ; mov rsp, rbp
        ; mov QWORD [rbp + slot::PROCESS], 0
        ; add rsp, slot::BYTES
        ; pop r15
        ; pop r14
        ; pop r13
        ; pop r12
        ; pop rbp
        ; pop rbx
        ; ret
    );
    let resume = emit_resume(a);
    let generic_label = a.new_dynamic_label();
    let (yield_label, generic_entry) = emit_generic_entry(a, generic_label);
    let traced = metered::Labels {
        yields: yield_label,
        generic: generic_label,
        returns: a.new_dynamic_label(),
        calls: std::array::from_fn(|_| a.new_dynamic_label()),
    };
    let traced_entry = metered::emit_entry(a, &traced);
    let nif_entry = nif::emit_entry(a, yield_label);
    let yield_at_entry = a.offset();
    dynasm!(a; .arch x64; =>yield_label; mov rsi, rax);
    go(a, address(helpers::yield_at_entry));
    let yield_at_return = a.offset();
    dynasm!(a; .arch x64; pop rsi);
    go(a, address(helpers::yield_at_return));
    let returns = emit_returns(a, &traced);
    let collect = emit_collect(a);
    let mut table = [collect; TABLE];
    for op in Op::ALL {
        table[*op as usize] = emit_helper(a, HELPERS[*op as usize], leave_label);
    }
    table[YIELD_AT_ENTRY as usize / 8] = yield_at_entry;
    table[YIELD_AT_RETURN as usize / 8] = yield_at_return;
    table[CALL_LIGHT_BIF as usize / 8] = emit_helper(a, helpers::call_light_bif, leave_label);
    table[CALL_HEAVY_BIF as usize / 8] = emit_helper(a, helpers::call_heavy_bif, leave_label);
    table[FLOAT_BESIDE as usize / 8] = emit_float(a);
    table[TAKE_BITS as usize / 8] = bits::emit_take(a);
    table[LOOK_AT_BITS as usize / 8] = emit_bits(a, helpers::look_at_bits as *const () as u64);
    Offsets {
        enter,
        leave,
        resume,
        generic_entry,
        traced_entry,
        nif_entry,
        returns,
        table,
    }
}

fn emit_enter(a: &mut Assembler) -> AssemblyOffset {
    let enter = a.offset();
    dynasm!(a
        ; .arch x64
        ; push rbx
        ; push rbp
        ; push r12
        ; push r13
        ; push r14
        ; push r15
        ; sub rsp, slot::BYTES
        ; mov rbp, rsp
        ; mov rax, [rdi + Slice::THREAD as i32]
        ; mov [rax + FRAME], rbp
        ; mov [rbp + slot::PROCESS], rsi
        ; mov [rbp + slot::SLICE], rdi
        ; mov r13, rsi
        ; mov rbx, rcx
        ; mov r12, r8
    );
    swap_in(a);
    dynasm!(a; .arch x64; mov rax, rdx);
    load_arguments(a);
    dynasm!(a; .arch x64; jmp rax);
    enter
}

/// Goes on in a native function, whose entry is the process's `pc`.
fn emit_resume(a: &mut Assembler) -> AssemblyOffset {
    let resume = a.offset();
    dynasm!(a; .arch x64; mov rsi, [r13 + PC]; mov [rbp + slot::KEPT[0]], rsi);
    go(a, address(helpers::go_on_in));
    resume
}

/// The call of a function whose entry is in `rax`, as the interpreter does it.
fn emit_generic_entry(a: &mut Assembler, label: DynamicLabel) -> (DynamicLabel, AssemblyOffset) {
    let yields = a.new_dynamic_label();
    let generic_entry = a.offset();
    dynasm!(a; .arch x64; =>label; dec r14; jle =>yields; mov rsi, rax; mov [rbp + slot::KEPT[0]], rax);
    go(a, address(helpers::enter));
    (yields, generic_entry)
}

/// What stands in place of return addresses. A traced function is called right before the place that it is to return
/// to: processors predict that calls return behind them.
fn emit_returns(a: &mut Assembler, traced: &metered::Labels) -> AssemblyOffset {
    let [shared, accounts, recorded] = std::array::from_fn(|_| a.new_dynamic_label());
    dynasm!(a; .arch x64; .align RETURN_BYTES as usize);
    emit_call_before(a, 0, traced.calls[0]);
    dynasm!(a; .arch x64; =>traced.returns);
    let returns = a.offset();
    for nth in 0..RETURNS {
        match nth {
            layout::ACCOUNTS => dynasm!(a; .arch x64; jmp =>accounts),
            layout::RECORDED => dynasm!(a; .arch x64; jmp =>recorded),
            _ => dynasm!(a; .arch x64; call =>shared),
        }
        // Nobody calls before those that are no trace frames.
        let next = traced.calls.get(nth + 1).copied();
        let label = next.unwrap_or_else(|| a.new_dynamic_label());
        emit_call_before(a, JUMP, label);
    }
    let generic = a.new_dynamic_label();
    dynasm!(a; .arch x64; =>accounts);
    metered::emit_return(a, generic);
    dynasm!(a; .arch x64; =>generic; lea rsi, [=>traced.returns]);
    go(a, address(helpers::returned));
    dynasm!(a; .arch x64; =>recorded);
    metered::emit_recorded_return(a);
    // The address behind the call tells which.
    dynasm!(a; .arch x64; =>shared; pop rsi; sub rsi, JUMP as i32);
    go(a, address(helpers::returned));
    returns
}

/// Bytes of a jump or a call to a label.
const JUMP: usize = 5;

/// Fills a place, of which `written` bytes are written, up with the call of the function whose entry is in `r8`.
fn emit_call_before(a: &mut Assembler, written: usize, label: DynamicLabel) {
    /// Bytes of the call.
    const CALL: usize = 4;
    const BODY: i8 = 8 * head::BODY as i8;
    for _ in 0..RETURN_BYTES as usize - CALL - written {
        dynasm!(a; .arch x64; nop);
    }
    dynasm!(a; .arch x64; =>label; call QWORD [BYTE r8 + BODY]);
    assert_eq!(
        a.offset().0 % RETURN_BYTES as usize,
        0,
        "the size of a call"
    );
}

/// Collects for `esi` words, `edx` registers kept.
fn emit_collect(a: &mut Assembler) -> AssemblyOffset {
    let leaves = a.new_dynamic_label();
    let collect = a.offset();
    dynasm!(a; .arch x64; pop QWORD [rbp + slot::BACK]);
    swap_out(a);
    dynasm!(a
        ; .arch x64
        ; mov rdi, r13
        ; mov rcx, [rbp + slot::SLICE]
        ; mov rax, QWORD helpers::collect as *const () as usize as i64
        ; call rax
    );
    swap_in(a);
    dynasm!(a
        ; .arch x64
        ; test rax, rax
        ; jnz =>leaves
        ; push QWORD [rbp + slot::BACK]
        ; ret
        ; =>leaves
    );
    load_arguments(a);
    dynasm!(a; .arch x64; jmp rax);
    collect
}

/// Makes a bitstring of the next `rcx` bits of the context in `rdx`: it is in `rax` then.
pub(super) fn emit_bits(a: &mut Assembler, function: u64) -> AssemblyOffset {
    let stub = a.offset();
    dynasm!(a; .arch x64; pop QWORD [rbp + slot::BACK]; mov rsi, rdx; mov rdx, rcx);
    swap_out(a);
    dynasm!(a; .arch x64; mov rdi, r13; mov rax, QWORD function as i64; call rax);
    swap_in(a);
    dynasm!(a; .arch x64; push QWORD [rbp + slot::BACK]; ret);
    stub
}

/// Makes a float of what is in `xmm0`, as operators do: it is in `rax` then.
fn emit_float(a: &mut Assembler) -> AssemblyOffset {
    let stub = a.offset();
    dynasm!(a; .arch x64; pop QWORD [rbp + slot::BACK]);
    swap_out(a);
    dynasm!(a
        ; .arch x64
        ; mov rdi, r13
        ; mov rax, QWORD helpers::float_beside as *const () as usize as i64
        ; call rax
    );
    swap_in(a);
    dynasm!(a; .arch x64; push QWORD [rbp + slot::BACK]; ret);
    stub
}

/// Calls the helper of an instruction, whose address is in `rsi`; returns its answer, or goes elsewhere. Processors predict
/// returns by the calls before them. So code that leaves for the scheduler undoes the stub's own call first, or each return
/// on the way there would be predicted to go where the one before it goes.
fn emit_helper(a: &mut Assembler, helper: helpers::Helper, leave: DynamicLabel) -> AssemblyOffset {
    let (elsewhere, leaves) = (a.new_dynamic_label(), a.new_dynamic_label());
    let stub = a.offset();
    dynasm!(a; .arch x64; pop QWORD [rbp + slot::BACK]);
    swap_out(a);
    call(a, address(helper));
    swap_in(a);
    dynasm!(a
        ; .arch x64
        ; cmp rax, FAIL as i32
        ; ja =>elsewhere
        ; push QWORD [rbp + slot::BACK]
        ; ret
        ; =>elsewhere
        ; lea rcx, [=>leave]
        ; cmp rax, rcx
        ; je =>leaves
    );
    load_arguments(a);
    dynasm!(a
        ; .arch x64
        ; jmp rax
        ; =>leaves
        ; push rax
        ; ret
    );
    stub
}
