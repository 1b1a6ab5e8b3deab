//! What a call of a function with a breakpoint does, its return, and an exception that ends it: it is reported to tracers,
//! counted, recorded and measured, as the sessions want that have set the breakpoint.
//!
//! Invariants: B1 and B2 of `breakpoint/mod.rs`.
#![expect(unsafe_code, reason = "breakpoints are reached by address")]

mod call;
pub(crate) mod frame;
mod measured;

use smallvec::SmallVec;

use super::breakpoint;
use super::breakpoint::{BpData, Breakpoint, SessionBp, original};
use super::costs::in_line;
use super::costs::nature::{mfa_at, of_dirty};
use super::measure::meters::{meters_of, settle};
use super::record::{self, OnReturn};
use super::run::totals;
use super::session::kind;
use crate::code::op::Op;
use crate::code::op::entry as head;
use crate::process::dirty::DirtyTicks;
use crate::process::{Dirty, Exiting, Process};
use crate::term::CodeAddress;
use frame::Frame;
use measured::{account_of, count_in_line, give_back, measure};

/// Reports and accounts for a call of the function with the entry `pc`; gives the word that stands there in
/// truth. May collect: the arguments are kept.
///
/// # Errors
/// When a collection kills the process, which has entered the function then and leaves it nowhere.
pub(crate) fn hit(p: &mut Process, pc: CodeAddress) -> Result<u64, Exiting> {
    // SAFETY: B1: the entry's word was `Op::Breakpoint` since the last quiescent point.
    let breakpoint = unsafe { &*(*pc.code().offset(head::BREAKPOINT) as *const Breakpoint) };
    let changes = in_line::changes();
    let Some(data) = breakpoint.active() else {
        return Ok(breakpoint.original());
    };
    if p.resumed_call.replace(CodeAddress::NULL) == pc || p.flags.get().sensitive {
        return Ok(breakpoint.original());
    }
    if data.begins {
        totals::begin(p);
    }
    let calls = p.shared().tracee.calls();
    if data.has_meta || data.reported & calls != 0 {
        for bp in data.sessions.iter().rev() {
            call::report(p, pc, bp)?;
        }
    }
    for bp in &data.sessions {
        if let Some(counter) = &bp.count
            && bp.paused & kind::COUNT == 0
        {
            counter.increment();
        }
    }
    if data.recorded & calls != 0 {
        record(p, pc, data, breakpoint.original())?;
    }
    let (sessions, original) = (data.metered & calls, breakpoint.original());
    let runs_on = sessions == 0 || measure(p, pc, data, original, sessions)?;
    if runs_on && data.runs_on && sessions == data.metered {
        count_in_line(p, pc, data, original, sessions, changes);
    }
    Ok(original)
}

/// Counts a call of the BIF with the entry `pc`, if that is all that breakpoints want of it. `false`: the call is one
/// for [`hit`], if there is a breakpoint at all.
///
/// # Safety
/// I1: it is an entry.
pub(crate) unsafe fn counts(p: &Process, pc: CodeAddress) -> bool {
    // SAFETY: by contract; B1: the entry's word is `Op::Breakpoint` now.
    let data = unsafe {
        if *pc.code() as u16 != Op::Breakpoint as u16 {
            return false;
        }
        let breakpoint = &*(*pc.code().offset(head::BREAKPOINT) as *const Breakpoint);
        breakpoint.active()
    };
    let Some(data) = data.filter(|data| data.counted != 0) else {
        return false;
    };
    if p.resumed_call.get() == pc || p.flags.get().sensitive {
        return false;
    }
    let [
        SessionBp {
            count: Some(counter),
            ..
        },
    ] = &data.sessions[..]
    else {
        return false;
    };
    counter.increment();
    true
}

/// The process goes on at `pc`: where that is an entry with a breakpoint, it is in the call already.
pub(crate) fn call_again(p: &Process, pc: CodeAddress) {
    // SAFETY: B1: an instruction's word.
    if unsafe { *pc.code() } as u16 == Op::Breakpoint as u16 {
        p.resumed_call.set(pc);
    }
}

/// Records a call, and has its return recorded.
#[inline]
fn record(p: &mut Process, pc: CodeAddress, data: &BpData, original: u64) -> Result<(), Exiting> {
    if let OnReturn::Push(name) = recorded(p, pc, data, original) {
        frame::push(p, pc, &frame::recorded_words(name))?;
    }
    Ok(())
}

/// Records a call.
#[inline]
fn recorded(p: &Process, pc: CodeAddress, data: &BpData, original: u64) -> OnReturn {
    let Some(called) = data.sessions.iter().find_map(|bp| bp.record.as_ref()) else {
        return OnReturn::Nothing;
    };
    if let Some(native) = called.nature.look(pc, original) {
        record::found_native(called, mfa_at(pc), native);
    }
    let is_tail = || frame::on_top(p).any(|frame| matches!(frame, Frame::Recorded(_)));
    record::called(p, called, || mfa_at(pc), is_tail)
}

/// A call by compiled code of the function with this entry, whose breakpoint's data says that it is recorded and no more.
/// Gives the second word of the frame by which the return is seen; 0 where there shall be none.
///
/// # Safety
/// B1, B2: the breakpoint at the entry has this data, and the caller is between two of its quiescent points.
pub(crate) unsafe extern "C" fn record_call(
    p: &Process,
    entry: CodeAddress,
    data: *const BpData,
) -> u64 {
    // SAFETY: by contract.
    let (data, original) = unsafe { (&*data, original(entry)) };
    if data.recorded & p.shared().tracee.calls() == 0 {
        return 0;
    }
    match recorded(p, entry, data, original) {
        OnReturn::Nothing => 0,
        OnReturn::Push(name) => frame::recorded_words(name)[1],
    }
}

/// A call has returned to the frame of this second word, in compiled code.
pub(crate) extern "C" fn record_return(p: &Process, name: u64) {
    record::returned(p, frame::recorded_name(name));
}

/// A traced call has returned to its trace frame of `kind`, whose first word is popped: gives the accounts
/// back, or reports the return. Drops the frame, and gives the real return address, popped too.
pub(crate) fn returned(p: &mut Process, kind: u64) -> CodeAddress {
    let frame = frame::returned_to(p, kind);
    match frame {
        Frame::Accounts(accounts) => give_back(p, accounts),
        Frame::Returning(_, returning) => call::returned(p, &returning),
        Frame::ReturnTo(session) => call::returned_to(p, session),
        Frame::Recorded(name) => record::returned(p, name),
    }
    frame::pop(p, &frame)
}

/// The exception stored in `p` is about to cut the stack: it is reported, and the accounts of the calls that end are given
/// back.
pub(crate) fn unwinding(p: &mut Process) {
    if p.trace_frames.get() > 0 {
        call::unwinding(p);
    }
    if record::is_on() && p.shared().tracee.calls() != 0 {
        let mut calls = 0;
        frame::unwound(p, |step| {
            calls += u64::from(matches!(step, frame::Unwound::Frame(Frame::Recorded(_))));
        });
        record::unwound(p, calls);
    }
    if p.meters.is_none() {
        return;
    }
    // Of each meter, what the outermost call that ends is to give back.
    let mut outermost: SmallVec<[u64; 2]> = SmallVec::new();
    frame::unwound(p, |step| {
        if let frame::Unwound::Frame(Frame::Accounts(accounts)) = step {
            for account in accounts {
                let uid = account_of(*account).0;
                outermost.retain(|known| account_of(*known).0 != uid);
                outermost.push(*account);
            }
        }
    });
    if !outermost.is_empty() {
        give_back(p, &outermost);
    }
}

/// The process starts a time slice.
#[inline]
pub(crate) fn scheduled_in(p: &mut Process) {
    if p.meters.is_some() {
        let calls = p.shared().tracee.calls();
        for meter in meters_of(p).into_iter().flat_map(|m| &mut m.meters) {
            if meter.session.bit() & calls != 0 {
                meter.scheduled_in();
            }
        }
    }
}

/// A call of the process on a dirty scheduler has come back.
#[cold]
pub(in crate::trace) fn charge_dirty(p: &mut Process, dirty: Dirty, times: &DirtyTicks) {
    let calls = p.shared().tracee.calls();
    let current = breakpoint::current_native(p);
    for meter in meters_of(p).into_iter().flat_map(|m| &mut m.meters) {
        if meter.session.bit() & calls == 0 {
            continue;
        }
        let account = meter.charge_dirty(times);
        // Where the function is not measured, its time is that of whoever called it.
        if let (Some(profile), Some(mfa)) = (&meter.session.profile, current)
            && profile.accounts.lock().get(&account) == Some(&mfa)
        {
            profile.note_native(mfa, of_dirty(dirty));
        }
    }
}

/// The process's time slice has ended.
#[inline]
pub(crate) fn scheduled_out(p: &mut Process) {
    if p.meters.is_some() {
        let calls = p.shared().tracee.calls();
        let (name, reductions) = (p.shared().name(), p.reductions());
        // What compiled code counts by may be gone when it runs again, and its scheduler may be another one.
        settle(p);
        for meter in meters_of(p).into_iter().flat_map(|m| &mut m.meters) {
            meter.arena.note(name, reductions);
            if meter.session.bit() & calls != 0 {
                meter.scheduled_out();
            }
        }
    }
}
