//! Has others see machine code from outside, and tells them where the fields of structures are that they need to know whose code
//! it is (`code/published.rs`).

use std::mem::offset_of;
use std::ptr;
use std::sync::Arc;

use beamline_settings::published::{Kind, Piece, Published};

use super::perf;
use super::stubs::slot;
use crate::code::bif::Bif;
use crate::code::machine_code::{self, BYTES, Compiled};
use crate::code::op::{Op, entry as head};
use crate::code::published::{self, Listed};
use crate::code::stubs;
use crate::loader::module::Module;
use crate::process::{ProcShared, offset as process};
use crate::sched::ptab;
use crate::sched::run_queue::Priority;
use crate::term::{Atom, Pid};

/// Publishes what others need. Machine code begins at `code_start`.
pub(super) fn start(code_start: u64) {
    let offset = |bytes: i32| bytes as i64 as u64;
    let words = |words: isize| (8 * words as i64) as u64;
    let atoms = Atom::published();
    published::start(&Published {
        code_start,
        code_end: code_start + BYTES as u64,
        normal_exit: machine_code::return_word(stubs::normal_exit()),
        frame_back: offset(slot::BACK),
        frame_entry: offset(slot::KEPT[0]),
        frame_process: offset(slot::PROCESS),
        frame_stop: offset(slot::STOP),
        process_pid: offset(process::PID),
        process_heap: offset(process::HEAP_START),
        process_heap_words: offset(process::HEAP_WORDS),
        process_stop: offset(process::STOP),
        process_collects: offset(process::COLLECTS),
        process_initial: offset(process::INITIAL_CALL),
        process_initial_arity: offset(process::INITIAL_ARITY),
        process_shared: offset(process::SHARED),
        shared_within: shared_within(),
        shared_pid: ProcShared::PID as u64,
        shared_name: ProcShared::NAME as u64,
        shared_home: ProcShared::HOME as u64,
        atoms: atoms.rows,
        atoms_row: atoms.in_row as u64,
        atom_bytes: atoms.bytes as u64,
        atom_name: atoms.name as u64,
        entry_module: words(head::MODULE),
        entry_function: words(head::FUNCTION),
        entry_arity: words(head::ARITY),
        op_bif_entry: Op::BifEntry as u64,
        op_nif_entry: Op::NifEntry as u64,
        bif_module: offset_of!(Bif, module) as u64,
        bif_function: offset_of!(Bif, function) as u64,
        bif_arity: offset_of!(Bif, arity) as u64,
        ..Published::default()
    });
}

/// Bytes from what a process's counted pointer to its shared part has to that part.
fn shared_within() -> u64 {
    let pid = Pid(ptab::INVALID_DATA);
    let shared = Arc::new(ProcShared::new(pid, Priority::Normal, true));
    const _: () = assert!(
        size_of::<Arc<ProcShared>>() == 8,
        "a counted pointer is a word"
    );
    // SAFETY: J7: a counted pointer is a word that is not changed here.
    let word = unsafe { ptr::from_ref(&shared).cast::<u64>().read() };
    Arc::as_ptr(&shared) as u64 - word
}

/// Has others see a function that is about to run at this address.
pub(super) fn function(module: &Module, entry: u32, compiled: &Compiled, start: u64) -> Listed {
    let mfa = module.mfa(entry);
    let lines = perf::lines(module, entry, compiled);
    let calls = compiled.calls.iter();
    Listed::new(&Piece {
        kind: Kind::Function,
        start,
        bytes: compiled.bytes.len() as u32,
        function: (mfa.module.index(), mfa.function.index(), mfa.arity),
        name: String::new(),
        lines: lines.iter().map(|&(at, _, line)| (at, line)).collect(),
        calls: calls
            .map(|&(at, bif)| (at, std::ptr::from_ref(bif) as u64))
            .collect(),
    })
}

/// Has others see a fragment, as long as the machine runs.
pub(super) fn fragment(name: &str, kind: Kind, start: u64, bytes: usize) {
    let listed = Listed::new(&Piece {
        kind,
        start,
        bytes: bytes as u32,
        function: (0, 0, 0),
        name: name.to_owned(),
        lines: Vec::new(),
        calls: Vec::new(),
    });
    std::mem::forget(listed);
}
