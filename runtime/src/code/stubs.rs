//! Code that belongs to no function: the code where processes start and end, and the words that stand in place of
//! return addresses.
#![expect(unsafe_code, reason = "stacks are walked word by word")]

use super::machine_code;
use super::op::Op;
use crate::process::Process;
use crate::term::{CodeAddress, RawTerm};

static SPAWN: [u64; 2] = [Op::SpawnEntry.word(0, 0, 0), Op::NormalExit.word(0, 0, 0)];

static BREAKPOINT_END: [u64; 1] = [Op::LineBreakpointEnd.word(0, 0, 0)];

/// Kinds of frames that tracing pushes on stacks.
pub(crate) const TRACE_FRAMES: usize = 5;

static TRACE_RETURNS: [u64; TRACE_FRAMES] = [
    Op::TraceReturn.word(0, 0, 0),
    Op::TraceReturn.word(1, 0, 0),
    Op::TraceReturn.word(2, 0, 0),
    Op::TraceReturn.word(3, 0, 0),
    Op::TraceReturn.word(4, 0, 0),
];

/// Where a new process starts: calls `apply(x0, x1, x2)`, then exits normally.
#[must_use]
pub(crate) fn spawn_entry() -> CodeAddress {
    CodeAddress::of(SPAWN.as_ptr())
}

/// Where a process's first function returns to.
#[must_use]
pub(crate) fn normal_exit() -> CodeAddress {
    CodeAddress::of(&raw const SPAWN[1])
}

/// What the call of `erts_internal:breakpoint/4` returns to: the instruction that ends a breakpoint.
#[must_use]
pub(crate) fn breakpoint_end() -> CodeAddress {
    CodeAddress::of(BREAKPOINT_END.as_ptr())
}

/// How many places there are that calls return to without being in a function.
pub(crate) const RETURNS: usize = TRACE_FRAMES + 2;

/// Number `at` of them: of trace frames by kind, where a process ends, where a breakpoint does.
#[must_use]
pub(crate) fn nth_return(at: usize) -> CodeAddress {
    match at {
        0..TRACE_FRAMES => CodeAddress::of(&raw const TRACE_RETURNS[at]),
        TRACE_FRAMES => normal_exit(),
        _ => breakpoint_end(),
    }
}

/// What a trace frame of `kind` begins with, in place of a return address.
#[must_use]
pub(crate) fn trace_return(kind: usize) -> u64 {
    let (first, bytes) = trace_returns();
    first + bytes * kind as u64
}

/// The first of them, in the form of the engine that runs, and how many bytes they are apart.
#[inline(always)]
fn trace_returns() -> (u64, u64) {
    match machine_code::first_return() {
        Some(first) => (first, machine_code::RETURN_BYTES),
        None => (TRACE_RETURNS.as_ptr() as u64, 8),
    }
}

/// The kind of trace frame that begins with `word`, if one does.
#[inline(always)]
#[must_use]
pub(crate) fn trace_frame_kind(word: u64) -> Option<usize> {
    trace_frame_kind_from(trace_returns(), word)
}

/// As [`trace_frame_kind`], where [`trace_returns`] are known.
#[inline(always)]
fn trace_frame_kind_from((first, bytes): (u64, u64), word: u64) -> Option<usize> {
    let offset = word.wrapping_sub(first);
    let is_one = offset < bytes * TRACE_FRAMES as u64 && offset.is_multiple_of(bytes);
    is_one.then(|| (offset / bytes) as usize)
}

/// Calls `visit` with every return address on the stack, innermost first, while it says so. A recursive call's frames,
/// one behind the other, return to the same place: this address is visited once.
pub(crate) fn for_each_return(p: &Process, mut visit: impl FnMut(CodeAddress) -> bool) {
    for_each_return_word(p, |word| visit(machine_code::specific(word)));
}

/// As [`for_each_return`], with the words as they stand on the stack, in the form of the engine that has put them
/// there.
#[inline]
pub(crate) fn for_each_return_word(p: &Process, mut visit: impl FnMut(CodeAddress) -> bool) {
    let (mut at, end) = (p.stop.get(), p.hend());
    let trace_returns = trace_returns();
    let mut last = RawTerm::NONE;
    while at < end {
        // SAFETY: H1: words from `stop` to `hend` are terms, code addresses or catch tags.
        let word = RawTerm(unsafe { *at });
        at = at.wrapping_add(1);
        if !word.is_header() || word == last || word == RawTerm::NONE {
            continue;
        }
        if trace_frame_kind_from(trace_returns, word.0).is_some() {
            continue;
        }
        last = word;
        if !visit(CodeAddress::of_word(word.0)) {
            return;
        }
    }
}
