//! Helpers of the tests of slow instructions: a process, and operands as the loader emits them.

use super::slow::{Flow, Slow};
use crate::code::operand::Instruction;
use crate::process::{Process, X_REGISTERS};
use crate::term::tag;
use crate::term::{Atom, CodeAddress, RawTerm};

/// The empty list as an operand.
pub(super) const NIL: u64 = tag::NIL;

/// An address to fail to.
pub(super) const LABEL: u64 = 0x1000;

/// A process with registers, outside of any scheduler.
pub(super) struct Machine {
    pub(super) p: Process,
    _registers: Box<[RawTerm]>,
}

/// The handler of a slow instruction.
pub(super) type Handler<I> = fn(&mut Slow<'_>, I) -> Flow;

pub(super) fn x(register: u64) -> u64 {
    register * 8
}

pub(super) fn small(value: i64) -> u64 {
    RawTerm::small(value).0
}

pub(super) fn atom(atom: Atom) -> u64 {
    atom.raw().0
}

impl Machine {
    pub(super) fn new() -> Machine {
        let mut registers = vec![RawTerm::NIL; X_REGISTERS].into_boxed_slice();
        let p = Process::new(233);
        // SAFETY: P2: the registers live as long as the machine.
        unsafe { p.set_registers(registers.as_mut_ptr()) };
        Machine {
            p,
            _registers: registers,
        }
    }

    pub(super) fn run<I: Instruction>(&mut self, handler: Handler<I>, operands: &[u64]) -> Flow {
        let words = [&[I::OP.word(0, 0, 0)], operands].concat();
        // SAFETY: I1: the tests give each instruction its operands; I2: all registers hold terms.
        unsafe {
            handler(
                &mut Slow::new(&mut self.p),
                I::at(CodeAddress::of(words.as_ptr()), words[0]),
            )
        }
    }

    /// Runs a handler that goes on.
    pub(super) fn ok<I: Instruction>(&mut self, handler: Handler<I>, operands: &[u64]) {
        assert!(matches!(self.run(handler, operands), Flow::Next), "goes on");
    }

    /// Runs a handler that jumps.
    pub(super) fn jumps<I: Instruction>(&mut self, handler: Handler<I>, operands: &[u64]) {
        let flow = self.run(handler, operands);
        assert!(
            matches!(flow, Flow::Jump(to) if to.word() == LABEL),
            "jumps"
        );
    }

    pub(super) fn bits(&self, register: usize) -> (Vec<u8>, usize) {
        let bits = self.p.x(register).as_bits().expect("a bitstring");
        (bits.to_vec(), bits.bit_len())
    }

    /// Puts bits `from..to` of `bytes` in `x(register)`.
    pub(super) fn set_bits(&self, register: usize, bytes: &[u8], from: usize, to: usize) {
        let whole = self.p.binary(bytes);
        let bits = whole.as_bits().expect("a binary");
        self.p.set_x(register, self.p.sub_bits(bits, from, to));
    }
}
