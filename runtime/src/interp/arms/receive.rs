//! The arms that receive messages.

use std::ops::ControlFlow;

use crate::code::op::{Op, read};
use crate::code::operand::Instruction;
use crate::interp::regs::Regs;
use crate::process::order::director::may_try_others;
use crate::process::order::turns;
use crate::process::{Outcome, Process, Saved, Tries, WaitTimeout, timeout_ms};
use crate::term::{CodeAddress, RawTerm, Term, am};

/// Whether the receive in which the process looks at messages can time out: one that waits for `infinity` cannot.
///
/// # Safety
/// As of [`time_of_wait`].
#[cold]
unsafe fn has_time(r: &Regs<'_>) -> bool {
    // SAFETY: by contract.
    let time = unsafe { time_of_wait(r) };
    op_of_wait(r.p) == Some(Op::Timeout) || time.is_some_and(|time| time != am::infinity)
}

/// Whether the receive in which the process looks at messages is left with an error when it has looked at all: its time
/// to wait is none.
///
/// # Safety
/// As of [`time_of_wait`].
#[cold]
unsafe fn has_bad_time(r: &Regs<'_>) -> bool {
    // SAFETY: by contract.
    let time = unsafe { time_of_wait(r) };
    time.is_some_and(|time| time != am::infinity && timeout_ms(time).is_none())
}

/// How long the receive in which the process looks at messages waits, if it says a time.
///
/// # Safety
/// I1, P2: the process runs in `r`, and has not left the receive. No register but those of the stack, which it has still, holds
/// a time.
unsafe fn time_of_wait<'p>(r: &Regs<'p>) -> Option<Term<'p>> {
    let wait = place_of_wait(r.p)?;
    // SAFETY: I1: an instruction is what the receive leads to.
    let word = unsafe { *wait.code() };
    if Op::of(word) != Op::WaitTimeout {
        return None;
    }
    // SAFETY: I1: it is this instruction; P2: by contract; T1: a term of the process, or a literal.
    Some(unsafe { Term::new(RawTerm(r.src(read::WaitTimeout::at(wait, word).time()))) })
}

/// Whether the receive in which `p` has looked at all messages has no time to wait, and looks again when it has its turn.
#[cold]
fn looks_again(p: &Process) -> bool {
    op_of_wait(p) == Some(Op::Timeout) && p.must_wait_before_timeout()
}

/// What the receive in which `p` looks at messages does when it has looked at all.
fn op_of_wait(p: &Process) -> Option<Op> {
    // SAFETY: I1: an instruction is what the receive leads to.
    let word = unsafe { *place_of_wait(p)?.code() };
    Some(Op::of(word))
}

/// Where it does that.
fn place_of_wait(p: &Process) -> Option<CodeAddress> {
    let pc = p.pc.get();
    // SAFETY: I1: `loop_rec` has put its place there.
    let word = unsafe { *pc.code() };
    if Op::of(word) != Op::LoopRec {
        return None;
    }
    // SAFETY: I1: it is this instruction.
    Some(unsafe { read::LoopRec::at(pc, word) }.wait())
}

/// The code takes a message, or passes it over: if it was only to try it, where it goes on.
#[inline]
fn end_try(r: &mut Regs<'_>, takes: bool) -> Option<CodeAddress> {
    if !may_try_others() {
        return None;
    }
    r.swap_out();
    let again = r.p.end_try(takes);
    r.swap_in();
    again
}

arms! {
    /// `loop_rec`
    fn loop_rec(r, i: LoopRec) {
        if let Some(reds) = r.p.first_look_reds() {
            r.fcalls = (r.fcalls - reds).max(0);
        }
        if r.fcalls <= 0 {
            return r.pause(Outcome::Yield, 0);
        }
        r.swap_out();
        // A process that asks meanwhile where this one is, such as a purge of its code, gets this place.
        r.p.pc.set(r.pc);
        match r.p.peek_message().map(|it| it.map(|message| message.raw().0)) {
            Err(exiting) => ControlFlow::Break(Outcome::Exit(exiting)),
            Ok(seen) => {
                let seen = match r.p.try_others() {
                    Tries::Nothing => seen,
                    Tries::This(other) => Some(other.0),
                    Tries::Again => {
                        r.swap_in();
                        return r.jump(r.pc);
                    }
                    Tries::Later => {
                        r.swap_in();
                        return r.pause(Outcome::Wait, 0);
                    }
                };
                r.swap_in();
                if let Some(message) = seen {
                    *r.x = message;
                    return r.next(i);
                }
                if r.p.is_stopped() {
                    r.p.wait();
                    return r.pause(Outcome::Wait, 0);
                }
                if r.p.is_held() || turns::are_given() && looks_again(r.p) {
                    return r.pause(Outcome::Yield, 0);
                }
                if r.p.awaits_turn(|| has_bad_time(r)) {
                    r.p.note_receive_that_may_end(|| has_time(r));
                    // Also where a receive has no time to wait: another message comes first.
                    r.p.wait();
                    return r.pause(Outcome::Wait, 0);
                }
                r.jump(i.wait())
            }
        }
    }

    /// `loop_rec_end`
    fn loop_rec_end(r, i: LoopRecEnd) {
        if let Some(again) = end_try(r, false) {
            return r.jump(again);
        }
        r.fcalls -= r.p.next_message();
        r.jump(i.again())
    }

    /// `wait`
    fn wait(r, i: Wait) {
        r.p.wait();
        r.pc = i.again();
        r.pause(Outcome::Wait, 0)
    }

    /// `wait_timeout`
    fn wait_timeout(r, i: WaitTimeout) {
        let time = r.src(i.time());
        r.swap_out();
        // SAFETY: T1, I1: a register's term, or a literal of the code.
        let time: Term<'_> = unsafe { Term::new(RawTerm(time)) };
        match r.p.wait_timeout(time, i.next()) {
            WaitTimeout::Elapsed => {
                r.swap_in();
                r.next(i)
            }
            WaitTimeout::Wait => {
                r.swap_in();
                r.pc = i.again();
                r.pause(Outcome::Wait, 0)
            }
            WaitTimeout::BadTimeout => r.error(|_| am::timeout_value.raw()),
        }
    }

    /// `timeout`
    fn timeout<SAVES>(r, i: Timeout) {
        if SAVES {
            r.p.save_call(Saved::Timeout);
        }
        r.p.timeout_reset_save();
        r.next(i)
    }

    /// `remove_message`. It is collected soon, when the message may be garbage.
    fn remove_message<SAVES>(r, i: RemoveMessage) {
        if let Some(again) = end_try(r, true) {
            return r.jump(again);
        }
        if SAVES {
            r.p.save_call(Saved::Receive);
        }
        r.swap_out();
        r.p.note_take(|| has_time(r));
        r.p.remove_message();
        if r.p.wants_collection() {
            r.p.leave_reds(5);
        }
        r.swap_in();
        r.next(i)
    }

    /// `recv_marker_reserve`
    fn recv_marker_reserve(r, i: RecvMarkerReserve) {
        r.swap_out();
        let marker = r.p.recv_marker_reserve().raw().0;
        r.set(i.dst(), marker);
        r.swap_in();
        r.next(i)
    }

    /// `recv_marker_bind`
    fn recv_marker_bind(r, i: RecvMarkerBind) {
        let [marker, reference] = [r.src(i.marker()), r.src(i.reference())].map(RawTerm);
        // SAFETY: T1, I3: registers' terms.
        let [marker, reference] = [marker, reference].map(|word| unsafe { Term::new(word) });
        r.p.recv_marker_bind(marker, reference);
        r.next(i)
    }

    /// `recv_marker_clear`
    fn recv_marker_clear(r, i: RecvMarkerClear) {
        // SAFETY: T1, I3: a register's term.
        let reference: Term<'_> = unsafe { Term::new(RawTerm(r.src(i.reference()))) };
        r.p.recv_marker_clear(reference);
        r.next(i)
    }

    /// `recv_marker_use`
    fn recv_marker_use(r, i: RecvMarkerUse) {
        // SAFETY: T1, I3: a register's term.
        let reference: Term<'_> = unsafe { Term::new(RawTerm(r.src(i.reference()))) };
        r.p.recv_marker_use(reference);
        r.next(i)
    }
}
