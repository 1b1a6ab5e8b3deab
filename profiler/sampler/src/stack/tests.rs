use std::path::PathBuf;

use proptest::prelude::*;

use super::*;
use crate::arch::Registers;
use crate::code::ListAt;
use crate::code::tests::{CODE, LIST, Made, made, words};

/// Where the process of these tests is, and its heap.
const PROCESS: u64 = 0x50_0000;
const HEAP: u64 = 0x60_0000;
const HEND: u64 = HEAP + 0x100;
const EXIT: u64 = CODE + 0x1004;
/// A return address into `lists:'-f/1-fun-0-'/1`, and one into `lists:map/2`.
const IN_FUN: u64 = CODE + 24;
const IN_MAP: u64 = CODE + 8;

/// The structure of a process whose stack begins at `stop`.
fn structure(stop: u64) -> Vec<u64> {
    let mut all = vec![3 << 7 | 3, 1, 0, HEAP, stop, 0, 0];
    all.extend([0; 6]);
    all.extend([HEAP, HEND, 0, 32]);
    all.extend([0; 10]);
    all.extend([1 << 6 | 0xb, 2 << 6 | 0xb, 2, 0]);
    all.resize(80, 0);
    all
}

/// An emulator with a process that has this stack.
fn emulator(stack: &[u64]) -> Made {
    let mut memory = made();
    let stop = HEND - 8 * stack.len() as u64;
    let mut heap = vec![0xaaaa_aaab; usize::try_from(0x100 / 8).expect("small") - stack.len()];
    heap.extend(stack);
    memory.rows.insert(HEAP, words(&heap));
    memory.rows.insert(PROCESS, words(&structure(stop)));
    memory
}

fn look(memory: &Made, registers: Registers, stack: &[u64], is_cut: bool) -> Look {
    let code = Code::read(memory, ListAt(LIST)).expect("it is whole");
    let mut known = Known {
        memory,
        code: &code,
        processes: &mut Processes::new(20),
        libraries: &mut Libraries::of(Vec::new(), PathBuf::new()),
    };
    let moment = Moment {
        time_ns: 0,
        registers,
        stack: stack.to_vec(),
        is_cut,
    };
    Walker::default().look(&mut known, 1, false, &moment)
}

/// Names and lines of frames, the newest first.
fn names(look: &Look) -> Vec<(String, u32)> {
    let name = |frame: &Frame| match frame {
        Frame::Erlang { name, line, .. } => (name.to_string(), *line),
        Frame::Outside { library, name } => (format!("[{library}] {name}"), 0),
        Frame::Cut => ("cut".to_owned(), 0),
    };
    look.frames.iter().map(name).collect()
}

fn expected(names: &[(&str, u32)]) -> Vec<(String, u32)> {
    let all = names.iter();
    all.map(|(name, line)| ((*name).to_owned(), *line))
        .collect()
}

/// In `lists:map/2`.
fn in_map() -> Registers {
    Registers {
        ip: CODE + 5,
        sp: HEND - 32,
        process: PROCESS,
        htop: HEAP,
        kept: 0,
    }
}

const FUN: (&str, u32) = ("-f/1-fun-0-", 101);
const MAP: (&str, u32) = ("map", 100);

#[test]
fn in_erlang_code_the_copied_stack_has_the_frames() {
    let stack = [0x3b, IN_FUN, 0x13, IN_FUN, IN_MAP, EXIT, IN_FUN];
    let memory = emulator(&[EXIT]);
    let seen = look(&memory, in_map(), &stack, true);
    assert_eq!(seen.does, Does::Erlang);
    assert_eq!(seen.pid().map(Pid::numbers), Some((3, 0)));
    // What repeats is one frame, and nothing behind the oldest one counts.
    assert_eq!(names(&seen), expected(&[MAP, FUN, MAP]));
}

#[test]
fn a_stack_that_was_not_copied_whole_is_read_on_or_cut() {
    let memory = emulator(&[IN_FUN, 0x3b, IN_MAP, EXIT]);
    let seen = look(&memory, in_map(), &[IN_FUN, 0x3b], true);
    assert_eq!(names(&seen), expected(&[MAP, FUN, MAP]));
    // The process is another one meanwhile: nothing is read of its stack.
    let mut registers = in_map();
    registers.sp = 0x7000;
    let seen = look(&memory, registers, &[IN_FUN, 0x3b], true);
    assert_eq!(names(&seen), expected(&[MAP, FUN, ("cut", 0)]));
}

#[test]
fn in_c_code_the_stack_is_that_of_the_process() {
    let registers = Registers {
        ip: 0x1000,
        sp: 0x9000,
        process: PROCESS,
        htop: 0,
        kept: 0,
    };
    let memory = emulator(&[IN_MAP, EXIT]);
    let seen = look(&memory, registers, &[7, IN_FUN, 9], false);
    assert_eq!(seen.does, Does::Native);
    assert_eq!(names(&seen), expected(&[FUN, MAP]));
    // Called from the fragment that collects.
    let seen = look(&memory, registers, &[7, CODE + 0x1008], false);
    assert_eq!(seen.does, Does::Collection);
    assert_eq!(
        names(&seen),
        expected(&[("[runtime] garbage_collect", 0), MAP])
    );
    // The process is found where a function has saved it.
    let saved = Registers {
        process: 0,
        ..registers
    };
    let seen = look(&memory, saved, &[7, PROCESS, IN_FUN], false);
    assert_eq!(seen.pid().map(Pid::numbers), Some((3, 0)));
}

#[test]
fn a_stack_that_the_process_does_not_have_is_where_it_was_kept() {
    let back = CODE + 0x1008;
    let mut memory = emulator(&[IN_FUN, IN_MAP, EXIT]);
    memory.rows.insert(PROCESS, words(&structure(HEND - 16)));
    let kept = HEND - 24;
    let registers = Registers {
        ip: 0x1000,
        sp: 0x9000,
        process: PROCESS,
        htop: 0,
        kept,
    };
    let fragment = ("[runtime] garbage_collect", 0);
    let new = expected(&[fragment, FUN, MAP]);
    let old = expected(&[fragment, MAP]);
    let mut code = vec![0x90; 0x200];
    memory.rows.insert(back - 0x100, code.clone());
    let seen = look(&memory, registers, &[7, back], false);
    assert_eq!(names(&seen), old);
    code[0x110..0x113].copy_from_slice(&[0x48, 0x8b, 0xe5]);
    memory.rows.insert(back - 0x100, code);
    // What calls a fragment is not there when the process is collected: its return address has any low bits.
    let odd = emulator(&[IN_FUN + 1, IN_MAP, EXIT]);
    let mut odd_memory = memory.clone();
    odd_memory.rows.insert(HEAP, odd.rows[&HEAP].clone());
    let seen = look(&odd_memory, registers, &[7, back], false);
    assert_eq!(names(&seen), new);
    for (register, saved, expect) in [
        (kept, 7, &new),
        // Saved by a C function.
        (0, kept, &new),
        // The top of the heap is no stack.
        (HEAP, 7, &old),
    ] {
        let registers = Registers {
            kept: register,
            ..registers
        };
        let seen = look(&memory, registers, &[7, saved, back], false);
        assert_eq!(names(&seen), *expect, "{register:x} {saved:x}");
    }
}

#[test]
fn a_stack_that_leads_to_unknown_code_is_a_reason_to_read_code_again() {
    let code = Code::read(&made(), ListAt(LIST)).expect("it is whole");
    for (stack, is_missed) in [
        (&[IN_FUN, IN_MAP, EXIT][..], false),
        // Terms are no addresses.
        (&[0x3b, CODE + 0x2001, 0, 8, EXIT], false),
        (&[IN_FUN, CODE + 0x2000, EXIT, CODE + 0x3000], true),
        (&[EXIT, CODE + 0x2000], false),
    ] {
        let mut frames = Vec::new();
        assert!(frames_of(&code, stack, &mut frames), "{stack:x?}");
        assert_eq!(code.take_missed(), is_missed, "{stack:x?}");
        assert!(!code.take_missed(), "it is told once");
    }
}

#[test]
fn without_a_process_there_is_no_frame_of_one() {
    let registers = Registers {
        ip: 0x1000,
        sp: 0x9000,
        ..Registers::default()
    };
    let seen = look(&emulator(&[EXIT]), registers, &[7, 8], false);
    assert_eq!((seen.does, seen.process), (Does::Runtime, None));
    assert_eq!(names(&seen), expected(&[("[runtime] C code", 0)]));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn damaged_processes_and_stacks_are_looked_at_within_bounds(
        damage in proptest::collection::vec((0_usize..80, any::<u64>()), 0..6),
        stack in proptest::collection::vec(
            prop_oneof![Just(IN_FUN), Just(IN_MAP), Just(PROCESS), any::<u64>()], 0..64),
        ip in prop_oneof![Just(CODE + 5), Just(CODE + 0x1002), Just(0x1000), any::<u64>()],
        sp in any::<u64>(),
    ) {
        let mut memory = emulator(&[IN_MAP, EXIT]);
        let mut all = structure(HEND - 16);
        for (at, word) in damage {
            all[at] = word;
        }
        memory.rows.insert(PROCESS, words(&all));
        let registers = Registers { ip, sp, process: PROCESS, htop: HEAP, kept: HEND - 16 };
        let seen = look(&memory, registers, &stack, true);
        prop_assert!(!seen.frames.is_empty());
        prop_assert!(seen.frames.len() <= stack.len() + 64);
    }
}
