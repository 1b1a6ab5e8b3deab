//! x86-64. Erlang's stack is the thread's stack while Erlang code runs.

use super::Registers;

/// Numbers of registers in the kernel's mask.
const BP: u64 = 6;
const SP: u64 = 7;
const IP: u64 = 8;
const R13: u64 = 21;
const R15: u64 = 23;

/// The registers that the kernel is asked for.
pub const PERF_MASK: u64 = 1 << BP | 1 << SP | 1 << IP | 1 << R13 | 1 << R15;

/// How many these are.
pub const PERF_REGISTERS: usize = PERF_MASK.count_ones() as usize;

/// A return address is at most this many bytes behind the instruction that a shared fragment was called from.
pub const RETURN_TO_FUNCTION: u64 = 64;

/// The registers as the kernel gives them: in the order of their numbers.
#[must_use]
pub fn registers(words: &[u64; PERF_REGISTERS]) -> Registers {
    let [kept, sp, ip, process, htop] = *words;
    Registers {
        ip,
        sp,
        process,
        htop,
        kept,
    }
}

/// The registers of a thread that stands.
pub type UserRegisters = libc::user_regs_struct;

/// The registers of a thread that stands, as far as they tell of Erlang.
#[must_use]
pub fn of_user(all: &UserRegisters) -> Registers {
    Registers {
        ip: all.rip,
        sp: all.rsp,
        process: all.r13,
        htop: all.r15,
        kept: all.rbp,
    }
}

/// Whether a thread stands in a system call: otherwise the number of its call is negative.
#[must_use]
pub fn is_in_kernel(all: &UserRegisters) -> bool {
    all.orig_rax >> 63 == 0
}

/// This many bytes behind a return address have what compiled code does first when C code has returned.
pub const AFTER_CALL: usize = 64;

/// `mov rsp, rbp`, in both of its encodings.
const TAKES_BACK: [[u8; 3]; 2] = [[0x48, 0x8b, 0xe5], [0x48, 0x89, 0xec]];
/// `mov rsp, [r13 + offset]`, for offsets of a byte and of four bytes.
const READS_PROCESS: [[u8; 3]; 2] = [[0x49, 0x8b, 0x65], [0x49, 0x8b, 0xa5]];

/// Whether code that C code returns to has kept Erlang's stack in a register: otherwise it reads that from the process.
#[must_use]
pub fn is_stack_kept(code: &[u8; AFTER_CALL]) -> bool {
    let first = |of: [[u8; 3]; 2]| {
        let mut windows = code.windows(3);
        windows.position(|bytes| of.iter().any(|one| one == bytes))
    };
    first(TAKES_BACK).is_some_and(|at| first(READS_PROCESS).is_none_or(|other| at < other))
}

/// Addresses that a program cannot have: near zero, and those of the kernel.
const FIRST: u64 = 1 << 16;
const BEHIND: u64 = 1 << 47;

/// Whether a word of Erlang's stack may be a return address: terms have a tag in the two low bits.
#[must_use]
pub fn is_return_address(word: u64) -> bool {
    word & 3 == 0 && (FIRST..BEHIND).contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_move_of_the_stack_counts() {
        let takes_back: &[u8] = &[0x48, 0x8b, 0xe5];
        let reads: &[u8] = &[0x49, 0x8b, 0x65, 0x58];
        for (parts, expect) in [
            (vec![], false),
            (vec![takes_back], true),
            (vec![reads], false),
            (vec![takes_back, reads], true),
            (vec![reads, takes_back], false),
        ] {
            let mut code = [0x90; AFTER_CALL];
            let bytes = parts.concat();
            code[20..20 + bytes.len()].copy_from_slice(&bytes);
            assert_eq!(is_stack_kept(&code), expect, "{parts:?}");
        }
    }
}
