//! The frames that tracing pushes on stacks, so that it sees returns and exceptions.
//!
//! A frame stands where a return address would, on top of the real one, and belongs to no function. Its first word is
//! the address of a code word of ours, and the others are immediates. So the collector and the search for an exception
//! handler walk over it.
//!
//! ```text
//! stop ▶ │ kind 0 │ n │ account 1 … n │ return address …            accounts to give back on return
//! stop ▶ │ kind 1 │ M │ F │ A │ tracer │ session │ return address …  `return_from`
//! stop ▶ │ kind 2 │ the same │ return address …                     and `exception_from`
//! stop ▶ │ kind 3 │ session │ return address …                      `return_to`
//! stop ▶ │ kind 4 │ name │ return address …                         a return that is recorded
//! ```
//!
//! Invariants: H1 of `heap/mod.rs`, and
//! - TF1: a trace frame on a stack is as drawn: `n`, accounts, arity, session and name are small integers, the tracer
//!   is an atom, pid or port, and the real return address follows, or another trace frame.
#![expect(unsafe_code, reason = "stack frames are reached by address")]

use beamline_formats::ring::NameId;

use crate::code::op::entry as head;
use crate::code::{machine_code, stubs};
use crate::loader::module::Mfa;
use crate::process::{Exiting, Process};
use crate::term::CodeAddress;
use crate::term::{RawTerm, Term, tag};

/// Kinds of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::trace) enum Kind {
    Accounts,
    Return,
    Exception,
    ReturnTo,
    Recorded,
}

/// Words of a frame for `return_from` or `exception_from`, of one for `return_to`, and of a recorded one.
const RETURN_WORDS: usize = 6;
const RETURN_TO_WORDS: usize = 2;
const RECORDED_WORDS: usize = layout::RECORDED_WORDS;

/// The first word of a frame.
pub(in crate::trace) fn stub(kind: Kind) -> u64 {
    stubs::trace_return(kind as usize)
}

/// The kind of frame that begins with `word`, if one does.
#[inline(always)]
fn kind_of(word: u64) -> Option<Kind> {
    const KINDS: [Kind; stubs::TRACE_FRAMES] = [
        Kind::Accounts,
        Kind::Return,
        Kind::Exception,
        Kind::ReturnTo,
        Kind::Recorded,
    ];
    stubs::trace_frame_kind(word).map(|kind| KINDS[kind])
}

/// A function's call whose return, and perhaps exception, is reported.
#[derive(Clone, Copy)]
pub(in crate::trace) struct Returning {
    pub(in crate::trace) mfa: Mfa,
    /// `true` for the process's own, or the tracer (`TracerId::to_stack()`).
    pub(in crate::trace) tracer: Term<'static>,
    pub(in crate::trace) session: u64,
}

/// A frame.
#[derive(Clone, Copy)]
pub(in crate::trace) enum Frame<'a> {
    Accounts(&'a [u64]),
    Returning(Kind, Returning),
    ReturnTo(u64),
    Recorded(NameId),
}

impl Frame<'_> {
    pub(in crate::trace) fn words(&self) -> usize {
        match self {
            Frame::Accounts(accounts) => 2 + accounts.len(),
            Frame::Returning(..) => RETURN_WORDS,
            Frame::ReturnTo(_) => RETURN_TO_WORDS,
            Frame::Recorded(_) => RECORDED_WORDS,
        }
    }
}

/// What compiled code knows of frames.
pub(crate) mod layout {
    /// Bits of a small integer's tag.
    pub(crate) const SMALL_SHIFT: u32 = 4;
    /// The kinds of frames that compiled code pushes.
    pub(crate) const ACCOUNTS: usize = super::Kind::Accounts as usize;
    pub(crate) const RECORDED: usize = super::Kind::Recorded as usize;
    /// Words of a frame of a recorded call.
    pub(crate) const RECORDED_WORDS: usize = 2;
    /// Words of a frame that gives one account back.
    pub(crate) const ACCOUNT_WORDS: usize = 3;
    /// Its second word: how many accounts there are.
    pub(crate) const ONE_ACCOUNT: u64 = super::small(1);
    /// In its third word: where the meter's name begins, above the node's index.
    pub(crate) const METER_SHIFT: u32 = 32 + SMALL_SHIFT;
}

/// A word that is a small integer to whoever walks the stack: 60 bits, whatever their sign.
#[inline(always)]
pub(in crate::trace) const fn small(bits: u64) -> u64 {
    (bits << layout::SMALL_SHIFT) | tag::SMALL
}

/// The bits that [`small`] has put into a word.
#[inline(always)]
pub(in crate::trace) fn of_small(word: u64) -> u64 {
    word >> layout::SMALL_SHIFT
}

/// The frame of `kind` whose words behind the first begin at `at`.
///
/// # Safety
/// H1, TF1: such a frame is there.
unsafe fn read<'a>(kind: Kind, at: *const u64) -> Frame<'a> {
    // SAFETY: by contract.
    unsafe {
        match kind {
            Kind::Accounts => {
                let count = of_small(*at) as usize;
                Frame::Accounts(std::slice::from_raw_parts(at.add(1), count))
            }
            Kind::ReturnTo => Frame::ReturnTo(of_small(*at)),
            Kind::Recorded => Frame::Recorded(recorded_name(*at)),
            Kind::Return | Kind::Exception => {
                let word = |i| Term::immed(RawTerm(*at.add(i)));
                let atom = |i| word(i).as_atom().expect("a frame names its function");
                let mfa = Mfa {
                    module: atom(0),
                    function: atom(1),
                    arity: of_small(*at.add(2)) as u8,
                };
                let returning = Returning {
                    mfa,
                    tracer: word(3),
                    session: of_small(*at.add(4)),
                };
                Frame::Returning(kind, returning)
            }
        }
    }
}

/// The trace frame at `top`, if one stands there.
///
/// # Safety
/// H1: `top` points into the stack.
pub(in crate::trace) unsafe fn at<'a>(top: *const u64) -> Option<Frame<'a>> {
    // SAFETY: by contract, and TF1.
    unsafe { kind_of(*top).map(|kind| read(kind, top.add(1))) }
}

/// Words of the trace frame at `top`; 0 where none stands there.
///
/// # Safety
/// H1: `top` points into the stack.
pub(crate) unsafe fn words_at(top: *const u64) -> usize {
    // SAFETY: by contract.
    unsafe { at(top) }.map_or(0, |frame| frame.words())
}

/// The frame that a traced call has returned to, whose first word, of `kind`, is popped.
pub(in crate::trace) fn returned_to<'a>(p: &Process, kind: u64) -> Frame<'a> {
    let kind = match kind {
        0 => Kind::Accounts,
        1 => Kind::Return,
        2 => Kind::Exception,
        3 => Kind::ReturnTo,
        _ => Kind::Recorded,
    };
    // SAFETY: TF1: the rest of the frame stands on top.
    unsafe { read(kind, p.stop.get()) }
}

/// Pops the rest of `frame` and the return address, which it gives.
pub(in crate::trace) fn pop(p: &Process, frame: &Frame<'_>) -> CodeAddress {
    let at = p.stop.get().wrapping_add(frame.words() - 1);
    p.stop.set(at.wrapping_add(1));
    // SAFETY: H1, TF1: the return address follows.
    CodeAddress::of_word(unsafe { *at })
}

/// The frames on top of the stack.
pub(in crate::trace) fn on_top<'a>(p: &'a Process) -> impl Iterator<Item = Frame<'a>> {
    let mut top: *const u64 = p.stop.get();
    std::iter::from_fn(move || {
        if top >= p.hend().cast_const() {
            return None;
        }
        // SAFETY: H1: a word of the stack.
        let frame = unsafe { at(top) }?;
        top = top.wrapping_add(frame.words());
        Some(frame)
    })
}

/// An element of the stack between its top and the innermost catch tag: a trace frame or a return address.
pub(in crate::trace) enum Unwound<'a> {
    Frame(Frame<'a>),
    Return(CodeAddress),
    /// The end: a handler is there, or not.
    End(bool),
}

/// Walks the stack as an exception cuts it.
pub(in crate::trace) fn unwound<'a>(p: &'a Process, mut visit: impl FnMut(Unwound<'a>)) {
    let mut top: *const u64 = p.stop.get();
    while top < p.hend().cast_const() {
        // SAFETY: H1, TF1: words of the stack.
        let (word, frame) = unsafe { (*top, at(top)) };
        if word & tag::IMMED2_MASK == tag::CATCH {
            return visit(Unwound::End(true));
        }
        if let Some(frame) = frame {
            top = top.wrapping_add(frame.words());
            visit(Unwound::Frame(frame));
            continue;
        }
        if word & tag::PRIMARY_MASK == tag::HEADER && word != 0 {
            visit(Unwound::Return(machine_code::specific(
                CodeAddress::of_word(word),
            )));
        }
        top = top.wrapping_add(1);
    }
    visit(Unwound::End(false));
}

/// Pushes a frame of these words for the call of the function with the entry `pc`. May collect: the
/// arguments are kept.
///
/// # Errors
/// When the collection kills the process.
#[inline]
pub(in crate::trace) fn push(
    p: &mut Process,
    pc: CodeAddress,
    words: &[u64],
) -> Result<(), Exiting> {
    let need = words.len();
    if p.free_words() < need {
        // SAFETY: B1 of `breakpoint`: `pc` is a function's entry.
        let arity = head::arity(unsafe { *pc.code().offset(head::ARITY) });
        p.garbage_collect(need, arity.into())?;
    }
    let frame = p.stop.get().wrapping_sub(need);
    // SAFETY: H1, TF1: `need` words are free below the stack's top.
    unsafe { std::ptr::copy_nonoverlapping(words.as_ptr(), frame, need) };
    p.stop.set(frame);
    Ok(())
}

impl Returning {
    /// The words of its frame.
    pub(in crate::trace) fn words(&self, exception: bool) -> [u64; RETURN_WORDS] {
        let kind = if exception {
            Kind::Exception
        } else {
            Kind::Return
        };
        [
            stub(kind),
            self.mfa.module.raw().0,
            self.mfa.function.raw().0,
            small(u64::from(self.mfa.arity)),
            self.tracer.raw().0,
            small(self.session),
        ]
    }
}

/// The words of a frame for `return_to`.
pub(in crate::trace) fn return_to_words(session: u64) -> [u64; RETURN_TO_WORDS] {
    [stub(Kind::ReturnTo), small(session)]
}

/// What the second word of a recorded call's frame says.
pub(in crate::trace) fn recorded_name(word: u64) -> NameId {
    NameId(of_small(word) as u32)
}

/// The words of a frame for a recorded call.
pub(in crate::trace) fn recorded_words(name: NameId) -> [u64; RECORDED_WORDS] {
    [stub(Kind::Recorded), small(u64::from(name.0))]
}
