//! Reports calls, returns, and exceptions that pass through traced calls. Source: `erts_call_trace()` in `erl_trace.c`,
//! `do_call_trace()` in `beam_bp.c`, `next_catch()` in `beam_common.c`, OTP 29.
#![expect(unsafe_code, reason = "functions and arguments are reached by address")]

use smallvec::SmallVec;

use super::frame::{self, Frame, Kind, Returning, Unwound};
use crate::code::machine_code;
use crate::loader::module::{self, Mfa};
use crate::process::{Class, Exiting, Process};
use crate::term::{CodeAddress, Term, am};
use crate::trace::breakpoint::SessionBp;
use crate::trace::costs::nature::mfa_at;
use crate::trace::run::span;
use crate::trace::session::flags;
use crate::trace::session::kind;
use crate::trace::session::tracer::{Event, Report, TracerId, Verdict};
use crate::trace::tell::actions;

/// Flags of what `meta` breakpoints report.
const META_FLAGS: u32 = flags::CALL | flags::TIMESTAMP;

/// What to do when a call returns.
#[derive(Clone, Copy)]
struct OnReturn {
    /// `return_from` or `exception_from`, to whom.
    returning: Option<(bool, Term<'static>)>,
    return_to: bool,
}

impl OnReturn {
    const NOTHING: OnReturn = OnReturn {
        returning: None,
        return_to: false,
    };
}

/// Reports a call of the function with the entry `pc` as `point` says. May collect: the arguments are kept.
///
/// # Errors
/// When the collection kills the process.
#[cold]
pub(in crate::trace) fn report(
    p: &mut Process,
    pc: CodeAddress,
    bp: &SessionBp,
) -> Result<(), Exiting> {
    if !bp.session.is_alive() {
        return Ok(());
    }
    let mfa = mfa_at(pc);
    if bp.kinds & (kind::LOCAL | kind::GLOBAL) != 0 {
        let local = bp.kinds & kind::LOCAL != 0;
        let on_return = call(p, mfa, bp, local);
        push(p, pc, mfa, bp, on_return)?;
    }
    if bp.kinds & kind::META != 0 {
        let on_return = meta_call(p, mfa, bp);
        push(p, pc, mfa, bp, on_return)?;
    }
    Ok(())
}

fn arguments(p: &Process, arity: u8) -> &[Term<'_>] {
    // SAFETY: P2: a call's arguments are live; `Term` is a word.
    unsafe { std::slice::from_raw_parts(p.registers().cast::<Term<'_>>(), usize::from(arity)) }
}

/// A call by a process whose calls the session traces.
fn call(p: &Process, mfa: Mfa, bp: &SessionBp, local: bool) -> OnReturn {
    let tracee = &p.shared().tracee;
    let me = p.pid().term();
    let Some((mut flags, tracer)) = tracee.of(&bp.session) else {
        return OnReturn::NOTHING;
    };
    if flags & flags::CALL == 0 {
        return OnReturn::NOTHING;
    }
    match tracer.wants(Event::Call, me) {
        Verdict::Trace => {}
        Verdict::Discard => return OnReturn::NOTHING,
        Verdict::Remove => {
            tracee.remove(bp.session.id);
            return OnReturn::NOTHING;
        }
    }
    let args = arguments(p, mfa.arity);
    let matched = actions::run(bp.spec.as_deref(), p, &bp.session, args);
    if bp.spec.is_some() {
        flags = tracee.of(&bp.session).map_or(0, |(flags, _)| flags);
    }
    if flags & flags::SILENT != 0 {
        return OnReturn::NOTHING;
    }
    let mut on_return = OnReturn {
        returning: matched
            .return_trace
            .then_some((matched.exception_trace, am::true_.term())),
        return_to: false,
    };
    if matched.reports {
        on_return.return_to = local && flags & flags::RETURN_TO != 0;
        tell(p, tracer, flags, mfa, matched.result);
    }
    on_return
}

/// A call by any process.
fn meta_call(p: &Process, mfa: Mfa, bp: &SessionBp) -> OnReturn {
    if span::is_mine(bp.session.id) {
        let nobody = am::undefined.term();
        return OnReturn {
            returning: span::called(mfa).then_some((true, nobody)),
            return_to: false,
        };
    }
    let Some(meta) = &bp.meta else {
        return OnReturn::NOTHING;
    };
    let now = *meta.tracer.lock();
    let Some(tracer) = now else {
        return OnReturn::NOTHING;
    };
    match tracer.wants(Event::Call, p.pid().term()) {
        Verdict::Trace => {}
        Verdict::Discard => return OnReturn::NOTHING,
        Verdict::Remove => {
            *meta.tracer.lock() = None;
            return OnReturn::NOTHING;
        }
    }
    let args = arguments(p, mfa.arity);
    let matched = actions::run(meta.spec.as_deref(), p, &bp.session, args);
    if matched.reports {
        tell(p, tracer, META_FLAGS, mfa, matched.result);
    }
    OnReturn {
        returning: matched
            .return_trace
            .then_some((matched.exception_trace, tracer.to_stack())),
        return_to: false,
    }
}

fn tell<'a>(p: &'a Process, tracer: TracerId, flags: u32, mfa: Mfa, result: Option<Term<'a>>) {
    let args = if flags & flags::ARITY != 0 {
        Term::small(i64::from(mfa.arity))
    } else {
        p.list(arguments(p, mfa.arity))
    };
    let called = p.tuple(&[mfa.module.term(), mfa.function.term(), args]);
    let report = Report {
        result,
        ..Report::new(Event::Call, called)
    };
    tracer.report(flags, p.pid().term(), &report);
}

/// Pushes the frames that see the call's return.
fn push(
    p: &mut Process,
    pc: CodeAddress,
    mfa: Mfa,
    bp: &SessionBp,
    on_return: OnReturn,
) -> Result<(), Exiting> {
    let session = bp.session.id;
    let known = |frame: Frame<'_>| matches!(frame, Frame::ReturnTo(of) if of == session);
    if on_return.return_to && !frame::on_top(p).any(known) {
        frame::push(p, pc, &frame::return_to_words(session))?;
        p.trace_frames.set(p.trace_frames.get() + 1);
    }
    if let Some((exception, tracer)) = on_return.returning {
        let returning = Returning {
            mfa,
            tracer,
            session,
        };
        frame::push(p, pc, &returning.words(exception))?;
        p.trace_frames.set(p.trace_frames.get() + 1);
    }
    Ok(())
}

pub(in crate::trace) fn mfa_term(p: &Process, mfa: Mfa) -> Term<'_> {
    let arity = Term::small(i64::from(mfa.arity));
    p.tuple(&[mfa.module.term(), mfa.function.term(), arity])
}

fn forget_frame(p: &Process) {
    p.trace_frames.set(p.trace_frames.get().saturating_sub(1));
}

/// Whom the return of a call is reported to, and with which flags.
fn listener(p: &Process, returning: &Returning) -> Option<(u32, TracerId)> {
    if p.flags.get().sensitive {
        return None;
    }
    if let Some(tracer) = TracerId::on_stack(returning.tracer) {
        return Some((META_FLAGS, tracer));
    }
    let r = p.shared().tracee.of_id(returning.session)?;
    (r.flags & flags::CALL != 0 && r.session.is_alive()).then_some((r.flags, r.tracer))
}

/// A traced call has returned, with its value in `x(0)`.
pub(in crate::trace) fn returned(p: &Process, returning: &Returning) {
    forget_frame(p);
    if span::is_mine(returning.session) {
        return span::end();
    }
    if let Some((flags, tracer)) = listener(p, returning) {
        let report = Report::new(Event::ReturnFrom, mfa_term(p, returning.mfa)).with(p.x(0));
        tracer.report(flags, p.pid().term(), &report);
    }
}

/// A call whose caller is to be told of has returned: behind its frame, which is on top, and others the
/// return address tells where.
pub(in crate::trace) fn returned_to(p: &Process, session: u64) {
    forget_frame(p);
    // The rest of this frame is no frame of its own: the next one, or the return address, follows it.
    let rest = p.stop.get();
    p.stop.set(rest.wrapping_add(1));
    let address = return_address(p);
    p.stop.set(rest);
    if let Some(address) = address {
        tell_return_to(p, session, address);
    }
}

/// Where the call on top of the stack returns to, trace frames left out.
pub(in crate::trace) fn return_address(p: &Process) -> Option<CodeAddress> {
    let words: usize = frame::on_top(p).map(|frame| frame.words()).sum();
    let at = p.stop.get().wrapping_add(words);
    // SAFETY: H1, TF1: behind trace frames stands a return address, if the stack does not end.
    (at < p.hend()).then(|| machine_code::specific(CodeAddress::of_word(unsafe { *at })))
}

fn tell_return_to(p: &Process, session: u64, address: CodeAddress) {
    let Some(r) = p.shared().tracee.of_id(session) else {
        return;
    };
    if r.flags & flags::RETURN_TO == 0 || p.flags.get().sensitive || !r.session.is_alive() {
        return;
    }
    // One word back lies in the call.
    let to = match module::function_at(address.call()) {
        Some(mfa) => mfa_term(p, mfa),
        None => am::undefined.term(),
    };
    let report = Report::new(Event::ReturnTo, to);
    r.tracer.report(r.flags, p.pid().term(), &report);
}

/// The exception stored in `p` is about to cut the stack to its handler, if there is one.
#[cold]
pub(in crate::trace) fn unwinding(p: &Process) {
    let mut back = None;
    let mut handled = false;
    let mut sessions: SmallVec<[u64; 2]> = SmallVec::new();
    let value = p.raised();
    let (class, value) = if p.exception.class == Class::Throw && p.catches.get() == 0 {
        let value = p.tuple(&[am::nocatch.term(), value]);
        (am::error.term(), value)
    } else {
        (p.exception.class.atom().term(), value)
    };
    frame::unwound(p, |step| match step {
        Unwound::Frame(Frame::Returning(kind, returning)) => {
            forget_frame(p);
            if span::is_mine(returning.session) {
                span::end();
            } else if kind == Kind::Exception
                && let Some((flags, tracer)) = listener(p, &returning)
            {
                let mfa = mfa_term(p, returning.mfa);
                let report = Report::new(Event::ExceptionFrom, mfa).with(p.tuple(&[class, value]));
                tracer.report(flags, p.pid().term(), &report);
            }
        }
        Unwound::Frame(Frame::ReturnTo(session)) => {
            forget_frame(p);
            if !sessions.contains(&session) {
                sessions.push(session);
            }
        }
        Unwound::Frame(Frame::Accounts(_) | Frame::Recorded(_)) => {}
        Unwound::Return(address) => back = Some(address),
        Unwound::End(found) => handled = found,
    });
    if let Some(address) = back.filter(|_| handled) {
        for session in sessions {
            tell_return_to(p, session, address);
        }
    }
}
