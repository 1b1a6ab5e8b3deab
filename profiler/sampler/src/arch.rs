//! The registers that a sample has, and what Erlang's code keeps in them. Another processor is another module behind the
//! same names; what else differs between processors is in no other file.

#[cfg(target_arch = "x86_64")]
mod x86_64;
#[cfg(target_arch = "x86_64")]
pub use x86_64::{
    AFTER_CALL, PERF_MASK, PERF_REGISTERS, RETURN_TO_FUNCTION, UserRegisters, is_in_kernel,
    is_return_address, is_stack_kept, of_user, registers,
};

/// The registers of a thread, as far as they tell of Erlang.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registers {
    /// The instruction.
    pub ip: u64,
    /// The stack: Erlang's in Erlang code, C's in C code.
    pub sp: u64,
    /// The process, in Erlang code.
    pub process: u64,
    /// The top of its heap, in Erlang code.
    pub htop: u64,
    /// Erlang's stack, in C code that was called without saving that in the process. C code may have saved the register on
    /// its own stack and used it otherwise.
    pub kept: u64,
}
