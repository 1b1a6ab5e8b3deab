//! `bs_match`, which matches several fields of fixed sizes at once.
//!
//! Commands:
//! `ensure_at_least Size Unit`, `ensure_exactly Size`, `integer Live Flags Size Unit Dst`,
//! `binary Live Flags Size Unit Dst`, `get_tail Live Unit Dst`, `skip Size`, `=:= Live Size Value`.
//! Sizes are in bits times the unit. A command that takes bits follows one that made sure of them.

use super::{Ctx, SUB_BITSTRING_WORDS, extracted_words, flags_of, integer_words};
use crate::code::op::read;
use crate::code::operand::{Commands, Reg, Src};
use crate::heap::read_field;
use crate::interp::slow::{Flow, Slow};
use crate::term::am;

/// The first words of commands.
pub(crate) mod command {
    use crate::term::am;

    pub(crate) const ENSURE_AT_LEAST: u64 = am::ensure_at_least.raw().0;
    pub(crate) const ENSURE_EXACTLY: u64 = am::ensure_exactly.raw().0;
    pub(crate) const INTEGER: u64 = am::integer.raw().0;
    pub(crate) const BINARY: u64 = am::binary.raw().0;
    pub(crate) const GET_TAIL: u64 = am::get_tail.raw().0;
    pub(crate) const SKIP: u64 = am::skip.raw().0;
    pub(crate) const EQUALS: u64 = am::exactly_equal.raw().0;
}

use command::{BINARY, ENSURE_AT_LEAST, ENSURE_EXACTLY, EQUALS, GET_TAIL, INTEGER, SKIP};

/// Words of the first of these commands, and the heap words it may need.
#[inline]
fn command(commands: &[u64]) -> (usize, usize) {
    let bits = || (commands[3] * commands[4]) as usize;
    match commands[0] {
        ENSURE_AT_LEAST => (3, 0),
        INTEGER => (6, integer_words(bits())),
        BINARY => (6, extracted_words(bits())),
        GET_TAIL => (4, SUB_BITSTRING_WORDS),
        EQUALS => (4, 0),
        _ => (2, 0),
    }
}

/// Words of the first of these commands.
pub(crate) fn words_of(commands: &[u64]) -> usize {
    command(commands).0
}

/// Heap words that these commands may need.
pub(crate) fn words_needed(mut commands: &[u64]) -> usize {
    let mut words = 0;
    while !commands.is_empty() {
        let (len, need) = command(commands);
        words += need;
        commands = &commands[len..];
    }
    words
}

/// `bs_match`.
pub(crate) fn bs_match(s: &mut Slow<'_>, i: read::BsMatch) -> Flow {
    let mut ctx = Ctx::of(s, i.context());
    let mut reserved = false;
    let Commands(mut commands) = i.commands();
    while !commands.is_empty() {
        let (len, need) = command(commands);
        if need != 0 && !reserved {
            // All of it at once, as one instruction of ERTS's does.
            let need = words_needed(commands);
            ctx = match s.ensure_heap_ctx(i.context(), need, commands[1] as usize) {
                Ok(ctx) => ctx,
                Err(end) => return end,
            };
            reserved = true;
        }
        let (first, rest) = commands.split_at(len);
        if !run(s, ctx, first) {
            return s.fail(i.fail(), am::badmatch);
        }
        commands = rest;
    }
    Flow::Next
}

/// Runs one command; false where it does not match.
#[inline]
fn run(s: &Slow<'_>, ctx: Ctx, command: &[u64]) -> bool {
    let number = |at: usize| command[at] as usize;
    match command[0] {
        ENSURE_AT_LEAST => {
            let (size, unit) = (number(1), number(2));
            ctx.left() >= size && (unit == 1 || (ctx.left() - size).is_multiple_of(unit))
        }
        ENSURE_EXACTLY => ctx.left() == number(1),
        INTEGER => {
            let flags = flags_of(s.src(Src(command[2])));
            let integer = ctx.take_integer(s.p, number(3) * number(4), flags);
            let dst = Reg(command[5]);
            integer.map(|integer| s.set_dst(dst, integer)).is_some()
        }
        BINARY => {
            s.set_dst(Reg(command[5]), ctx.take_bits(s.p, number(3) * number(4)));
            true
        }
        GET_TAIL => {
            let start = ctx.start();
            s.set_dst(Reg(command[3]), ctx.take_bits(s.p, ctx.left()));
            ctx.set_start(start);
            true
        }
        EQUALS => {
            let (len, start) = (number(2), ctx.start());
            ctx.set_start(start + len);
            // SAFETY: T1: a command before this one has made sure that the bits are there.
            command[3] == unsafe { read_field(ctx.base(), start, len) }
        }
        SKIP => {
            ctx.set_start(ctx.start() + number(1));
            true
        }
        other => unreachable!("the loader lets no command {other:#x} pass"),
    }
}
