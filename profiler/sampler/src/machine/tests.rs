use std::path::PathBuf;

use beamline_settings::published::{CALL_MARK, MAGIC, Piece, Published, VERSION};
use proptest::prelude::*;

use super::*;
use crate::arch::Registers;
use crate::code::tests::{Made, words};
use crate::memory::Mapping;
use crate::process::Pid;
use crate::published::Lacks;

/// What is published, and where it leads to.
const AT: u64 = 0x10_0010;
const CODE: u64 = 0x7000_0000;
const PIECES: u64 = 0x22_0000;
const ATOMS: [u64; 3] = [0x30_0000, 0x31_0000, 0x32_0000];
const RECORD: u64 = 0x40_0000;
const FRAME: u64 = 0x50_0400;
const PROCESS: u64 = 0x60_0000;
const HEAP: u64 = 0x61_0000;
const HEND: u64 = HEAP + 0x100;
const BIF: u64 = 0x70_0000;
const NIF_ENTRY: u64 = 0x71_0040;

/// Return addresses: into `map/2` behind the call of a BIF, into `main/0`, and out of the first function.
const IN_MAP: u64 = CODE + 0x124;
const IN_MAIN: u64 = CODE + 0x184;
const EXIT: u64 = CODE + 0x60;

/// Addresses that code is left by: of fragments of each kind.
const CALLED: u64 = CODE + 8;
const ENTERED: u64 = CODE + 0x28;
const COLLECT: u64 = CODE + 0x48;

const NAMES: [&str; 6] = ["lists", "map", "main", "zlib", "crc32", "worker"];

fn piece(kind: Kind, at: u64, name: &str, function: (u32, u32, u8)) -> Piece {
    let (lines, calls) = match kind {
        Kind::Function => (vec![(0, 10), (0x20, 12)], vec![(0x24, BIF)]),
        _ => (vec![], vec![]),
    };
    Piece {
        kind,
        start: CODE + at,
        bytes: if kind == Kind::Function { 0x40 } else { 0x20 },
        function,
        name: name.into(),
        lines,
        calls,
    }
}

fn published() -> Published<u64> {
    Published {
        magic: MAGIC[0],
        magic_end: MAGIC[1],
        version: VERSION,
        code_start: CODE,
        code_end: CODE + 0x1_0000,
        normal_exit: EXIT,
        chunks: 0x20_0000,
        count: 6,
        gone: 0,
        threads: RECORD,
        frame_back: 8,
        frame_entry: 16,
        frame_process: 40,
        frame_stop: 48,
        process_pid: 0,
        process_heap: 8,
        process_heap_words: 16,
        process_stop: 24,
        process_collects: 32,
        process_shared: 64,
        shared_within: 0,
        process_initial: 72,
        process_initial_arity: 80,
        shared_pid: 0,
        shared_name: 8,
        shared_home: 16,
        atoms: ATOMS[0],
        atoms_row: 4,
        atom_bytes: 24,
        atom_name: 8,
        entry_module: 24_u64.wrapping_neg(),
        entry_function: 16_u64.wrapping_neg(),
        entry_arity: 8_u64.wrapping_neg(),
        op_bif_entry: 3,
        op_nif_entry: 4,
        bif_module: 0,
        bif_function: 16,
        bif_arity: 32,
    }
}

/// The words of the process, whose stack begins with a return into `main/0`.
const OF_PROCESS: [u64; 11] = [
    9 << 4 | 3,
    HEAP,
    32,
    HEND - 16,
    0,
    0,
    0,
    0,
    PROCESS + 0x100,
    1 << 32,
    2,
];

/// The memory of a machine with a process that runs `lists:map/2`, called by `lists:main/0`.
fn made() -> Made {
    let mut memory = Made::default();
    let mut put = |at: u64, row: &[u64]| memory.rows.insert(at, words(row));
    put(0x10_0000, &[7, 7]);
    put(AT, &published().words().map(|word| *word));
    put(0x20_0000, &[0x21_0000]);
    let pieces = [
        piece(Kind::Called, 0, "call_light_bif", (0, 0, 0)),
        piece(Kind::Entered, 0x20, "nif_entry", (0, 0, 0)),
        piece(Kind::Collects, 0x40, "collect", (0, 0, 0)),
        piece(Kind::Entered, 0x60, "returns", (0, 0, 0)),
        piece(Kind::Function, 0x100, "", (0, 1, 2)),
        piece(Kind::Function, 0x180, "", (0, 2, 0)),
    ];
    let places = [0, 1, 2, 3, 4, 5].map(|at| PIECES + 0x1000 * at);
    put(0x21_0000, &places);
    for (place, piece) in places.into_iter().zip(&pieces) {
        put(place, &piece.words());
    }
    put(ATOMS[0], &[ATOMS[1], ATOMS[1] + 0x1000]);
    for (at, name) in (0..).zip(NAMES) {
        let row = ATOMS[1] + 0x1000 * (at / 4) + 24 * (at % 4);
        put(row, &[0, ATOMS[2] + 16 * at, name.len() as u64]);
    }
    put(RECORD, &[0, 7, FRAME, PROCESS, 0]);
    put(
        FRAME - 8,
        &[CALLED, 0, IN_MAP, NIF_ENTRY, 0, 0, PROCESS, HEND - 16],
    );
    put(PROCESS, &OF_PROCESS);
    put(PROCESS + 0x100, &[9, 6, PROCESS]);
    let mut heap = vec![0xaaaa_aaab; 30];
    heap.extend([IN_MAIN, EXIT]);
    put(HEAP, &heap);
    put(BIF, &[ATOMS[2], 5, ATOMS[2] + 16, 3, 1]);
    put(NIF_ENTRY - 24, &[3 << 6 | 0xb, 4 << 6 | 0xb, 2, 4]);
    for (at, name) in (0..).zip(NAMES) {
        memory.rows.insert(ATOMS[2] + 16 * at, name.into());
    }
    memory
}

fn data() -> [Mapping; 1] {
    [Mapping {
        start: 0x10_0000,
        end: AT + 8 * Published::<u64>::WORDS as u64,
        is_writable: true,
        is_executable: false,
        offset: 0,
        path: "/bin/beamline".into(),
    }]
}

/// Joins the row that what is published begins in with that, so that both are read at once.
fn joined(mut memory: Made) -> Made {
    let behind = memory.rows.remove(&AT).expect("it is there");
    let row = memory.rows.get_mut(&0x10_0000).expect("it is there");
    row.extend(behind);
    memory
}

fn look_with(memory: &Made, registers: Registers, stack: &[u64]) -> Option<Look> {
    let (mut machine, code) = Machine::find(memory, &data()).ok()?;
    let mut around = Around {
        memory,
        code: &code,
        machine: &mut machine,
        libraries: &mut Libraries::of(Vec::new(), PathBuf::new()),
        program: "/bin/beamline",
    };
    let thread = Thread {
        tid: 7,
        kind: ThreadKind::Scheduler,
        number: 1,
        name: "1_scheduler".into(),
    };
    let moment = Moment {
        time_ns: 0,
        registers,
        stack: stack.to_vec(),
        is_cut: false,
    };
    Some(around.look(&thread, &moment))
}

/// A moment in Rust that was left code for by `to`, from `back`: the stack from three words below the frame on.
fn in_rust(memory: &Made, to: u64, back: u64) -> Look {
    let registers = Registers {
        ip: 0x1000,
        sp: FRAME - 24,
        ..Registers::default()
    };
    let stack = [0, 0, to, 0, back, NIF_ENTRY, 0, 0, PROCESS, HEND - 16];
    look_with(memory, registers, &stack).expect("there is a machine")
}

fn names(look: &Look) -> Vec<(String, u32)> {
    let name = |frame: &Frame| match frame {
        Frame::Erlang { name, line, .. } => (name.to_string(), *line),
        Frame::Outside { library, name } => (format!("[{library}] {name}"), 0),
        Frame::Cut => ("cut".to_owned(), 0),
    };
    look.frames.iter().map(name).collect()
}

fn assert_look(look: &Look, does: Does, expect: &[(&str, u32)]) {
    let expect: Vec<(String, u32)> = expect.iter().map(|(n, l)| ((*n).into(), *l)).collect();
    assert_eq!((look.does, names(look)), (does, expect));
    assert_eq!(look.pid().map(Pid::numbers), Some((9, 0)));
}

#[test]
fn what_is_not_published_is_told_apart() {
    let read = |change: &dyn Fn(&mut Published<u64>)| {
        let mut memory = made();
        let mut all = published();
        change(&mut all);
        memory
            .rows
            .insert(AT, words(&all.words().map(|word| *word)));
        Machine::find(&joined(memory), &data()).map(|(_, code)| code.modules())
    };
    assert_eq!(read(&|_| {}).ok(), Some(2), "lists and the fragments");
    assert_eq!(read(&|all| all.code_start = 0).err(), Some(Lacks::Code));
    assert_eq!(read(&|all| all.version += 1).err(), Some(Lacks::Version));
    assert_eq!(read(&|all| all.magic += 1).err(), Some(Lacks::Version));
    assert_eq!(read(&|all| all.count = 1 << 40).err(), Some(Lacks::Code));
}

#[test]
fn a_bif_has_its_name_and_its_caller_that_of_the_frame() {
    let memory = joined(made());
    let look = in_rust(&memory, CALLED, IN_MAP);
    let whole = [("map", 0), ("map", 12), ("main", 10)];
    assert_look(&look, Does::Native, &whole);
    // What calls no BIF has the fragment's name.
    let look = in_rust(&memory, CALLED, IN_MAIN);
    assert_eq!(names(&look)[0].0, "[runtime] call_light_bif");
}

#[test]
fn a_stack_of_a_thread_that_has_gone_on_is_cut() {
    for (at, word) in [(0, COLLECT), (2, IN_MAIN), (3, 1)] {
        let mut memory = joined(made());
        let row = memory.rows.get_mut(&(FRAME - 8)).expect("it is there");
        row[8 * at..8 * at + 8].copy_from_slice(&u64::to_le_bytes(word));
        let look = in_rust(&memory, CALLED, IN_MAP);
        assert_look(&look, Does::Native, &[("map", 0), ("map", 12), ("cut", 0)]);
    }
}

#[test]
fn nifs_and_collections_are_told_by_how_code_was_left() {
    let leave = |to: u64| {
        let mut memory = joined(made());
        let row = memory.rows.get_mut(&(FRAME - 8)).expect("it is there");
        row[..8].copy_from_slice(&to.to_le_bytes());
        in_rust(&memory, to, IN_MAP)
    };
    assert_look(&leave(ENTERED), Does::Native, &[("crc32", 0), ("main", 10)]);
    let look = leave(COLLECT);
    assert_look(&look, Does::Collection, &[("map", 12), ("main", 10)]);
}

#[test]
fn an_exception_that_has_cut_the_stack_is_still_of_who_raised_it() {
    let mut memory = joined(made());
    let mut cut = OF_PROCESS;
    cut[3] = HEND - 8;
    memory.rows.insert(PROCESS, words(&cut));
    let look = in_rust(&memory, CALLED, IN_MAP);
    let whole = [("map", 0), ("map", 12), ("main", 10)];
    assert_look(&look, Does::Native, &whole);
}

#[test]
fn a_process_whose_heap_is_replaced_has_its_caller_still() {
    let mut memory = joined(made());
    let mut between = OF_PROCESS;
    (between[1], between[2], between[4]) = (0, 0, 1);
    memory.rows.insert(PROCESS, words(&between));
    let look = in_rust(&memory, CALLED, IN_MAP);
    let frames = [("map", 0), ("map", 12), ("cut", 0)];
    assert_look(&look, Does::Collection, &frames);
}

#[test]
fn a_thread_without_a_process_works_for_the_runtime() {
    let mut memory = joined(made());
    memory.rows.insert(RECORD, words(&[0, 7, FRAME, 0, 0]));
    let registers = Registers {
        ip: 0x1000,
        sp: FRAME - 24,
        ..Registers::default()
    };
    // The frame says that no machine code runs, whatever else it has.
    let stack = [0, 0, CALLED, 0, IN_MAP, NIF_ENTRY, 0, 0, 0, HEND - 16];
    let look = look_with(&memory, registers, &stack).expect("there is a machine");
    assert_eq!((look.does, look.pid()), (Does::Runtime, None));
    assert_eq!(names(&look)[0].0, "[runtime] scheduling");
}

/// A moment in C code of a dirty scheduler: the call on its stack, and what is there by now.
fn in_dirty(call: [u64; 6], now: [u64; 6]) -> Look {
    const CALL: u64 = 0x80_0008;
    let mut memory = joined(made());
    let record = [0, 7, 0, 0, CALL];
    memory.rows.insert(RECORD, words(&record));
    memory.rows.insert(CALL, words(&now));
    let registers = Registers {
        ip: 0x1000,
        sp: CALL - 8,
        ..Registers::default()
    };
    let stack = [&[0], &call[..], &[0]].concat();
    look_with(&memory, registers, &stack).expect("there is a machine")
}

#[test]
fn a_call_of_a_dirty_scheduler_is_told_of_its_stack_even_if_it_has_ended() {
    let by_entry = [CALL_MARK, 9 << 4 | 3, NIF_ENTRY, 0, 0, PROCESS + 0x100];
    let look = in_dirty(by_entry, by_entry);
    assert_look(&look, Does::Native, &[("crc32", 0), ("main", 10)]);
    let by_code = [CALL_MARK, 9 << 4 | 3, 0, BIF, IN_MAP, PROCESS + 0x100];
    let look = in_dirty(by_code, by_code);
    assert_look(
        &look,
        Does::Native,
        &[("map", 0), ("map", 12), ("main", 10)],
    );
    let mut over = by_entry;
    over[0] = 0;
    let look = in_dirty(by_entry, over);
    assert_look(&look, Does::Native, &[("crc32", 0), ("cut", 0)]);
    // Between two calls it works for the runtime.
    let look = in_dirty(over, by_entry);
    assert_eq!((look.does, look.pid()), (Does::Runtime, None));
}

#[test]
fn a_copied_stack_is_whole_where_the_process_has_another_heap() {
    let registers = Registers {
        ip: CODE + 0x121,
        sp: HEND - 16,
        process: PROCESS,
        ..Registers::default()
    };
    let whole = [("map", 12), ("main", 10)];
    let mut memory = joined(made());
    // Behind its end there may be anything.
    let stack = [IN_MAIN, EXIT, IN_MAP];
    let look = |memory: &Made| look_with(memory, registers, &stack).expect("a machine");
    assert_look(&look(&memory), Does::Erlang, &whole);
    let mut moved = OF_PROCESS;
    (moved[1], moved[3]) = (HEAP + 0x1000, HEAP + 0x1100);
    memory.rows.insert(PROCESS, words(&moved));
    assert_look(&look(&memory), Does::Erlang, &whole);
}

proptest! {
    #[test]
    fn damaged_memory_is_looked_at_within_bounds(
        damage in prop::collection::vec((0_usize..40, 0_usize..64, any::<u64>()), 1..6),
        (ip, sp) in (prop_oneof![Just(0x1000), CODE..CODE + 0x200], prop_oneof![Just(FRAME - 24), Just(HEND - 16), any::<u64>()]),
    ) {
        let mut memory = joined(made());
        for (row, word, value) in damage {
            let rows = memory.rows.len();
            let row = memory.rows.values_mut().nth(row % rows).expect("one of them");
            let places = row.len() / 8;
            if places > 0 {
                let at = word % places * 8;
                row[at..at + 8].copy_from_slice(&value.to_le_bytes());
            }
        }
        let registers = Registers { ip, sp, process: PROCESS, htop: HEAP, kept: FRAME };
        let stack = [0, 0, CALLED, 0, IN_MAP, NIF_ENTRY, 0, 0, PROCESS, HEND - 16];
        if let Some(look) = look_with(&memory, registers, &stack) {
            prop_assert!(!look.frames.is_empty());
        }
    }
}
