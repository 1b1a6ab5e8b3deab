//! x86-64. Erlang's stack is the thread's stack while Erlang code runs.

use super::Registers;

/// Numbers of registers in the kernel's mask.
const SP: u64 = 7;
const IP: u64 = 8;
const R13: u64 = 21;
const R15: u64 = 23;

/// The registers that the kernel is asked for.
pub const PERF_MASK: u64 = 1 << SP | 1 << IP | 1 << R13 | 1 << R15;

/// How many these are.
pub const PERF_REGISTERS: usize = PERF_MASK.count_ones() as usize;

/// A return address is at most so many bytes behind the instruction that a shared fragment was called from.
pub const RETURN_TO_FUNCTION: u64 = 64;

/// The registers as the kernel gives them: in the order of their numbers.
#[must_use]
pub fn registers(words: &[u64; PERF_REGISTERS]) -> Registers {
    let [sp, ip, process, htop] = *words;
    Registers {
        ip,
        sp,
        process,
        htop,
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
    }
}

/// Whether a thread stands in a system call: otherwise the number of its call is negative.
#[must_use]
pub fn is_in_kernel(all: &UserRegisters) -> bool {
    all.orig_rax >> 63 == 0
}

/// Whether a word of Erlang's stack may be a return address: terms have a tag in the two low bits.
#[must_use]
pub fn is_return_address(word: u64) -> bool {
    word & 3 == 0 && word != 0
}
