//! Measures calls: has the meters of a process follow what it runs.
//!
//! A meter's current node is charged for what has been spent since it became that. A call makes the node of the function
//! current, and leaves a frame on the stack by which the caller's becomes current again.
//!
//! Invariants: B1 of `breakpoint/mod.rs`.

use std::sync::Arc;

use smallvec::SmallVec;

use super::frame::{self, Frame, Kind, of_small, small};
use crate::code::op::Op;
use crate::code::op::entry as head;
use crate::process::{Exiting, Process};
use crate::sched;
use crate::term::CodeAddress;
use crate::trace::breakpoint::{BpData, SessionBp, measured};
use crate::trace::costs::account::{Account, Measures};
use crate::trace::costs::in_line::METERS;
use crate::trace::costs::nature::mfa_at;
use crate::trace::costs::node::Arena;
use crate::trace::costs::{count, known};
use crate::trace::measure::meter::{Meter, Reading};
use crate::trace::measure::meters::{Meters, meters, meters_of, settle};

/// Accounts, one for each meter, as a frame holds them.
type Saved = SmallVec<[u64; 2]>;

/// What a frame's word says: a meter's name and a node of it.
fn account_word(uid: u32, node: u32) -> u64 {
    small((u64::from(uid) << 32) | u64::from(node))
}

pub(super) fn account_of(word: u64) -> (u32, u32) {
    let value = of_small(word);
    ((value >> 32) as u32 & 0xfff_ffff, value as u32)
}

pub(super) fn reading(p: &Process) -> Reading {
    Reading {
        words: p.allocated_words(),
        words_collected: p.collected_words(),
        reductions: p.reductions(),
    }
}

/// Measures a call, by these sessions; gives whether the function is each meter's current one already.
#[inline]
pub(super) fn measure(
    p: &mut Process,
    pc: CodeAddress,
    data: &BpData,
    original: u64,
    sessions: u64,
) -> Result<bool, Exiting> {
    settle(p);
    let reading = reading(p);
    if let Some((measures, account)) = &data.metered_alone {
        return measure_alone(p, pc, (data, original), (*measures, account), &reading);
    }
    if runs_on(p, data, sessions, &reading) {
        return Ok(true);
    }
    let mut saved = Saved::new();
    if data.has_both {
        meters(p).in_line.together().begin();
    }
    for bp in of_sessions(data, sessions) {
        look(bp, pc, original);
        enter_session(p, bp, pc, &reading, &mut saved);
    }
    if data.has_both {
        meters(p).in_line.together().end();
    }
    choose_in_line(p, data);
    push_frame(p, pc, &saved)?;
    Ok(false)
}

/// As [`measure`], where one meter is all that is wanted.
#[inline]
fn measure_alone(
    p: &mut Process,
    pc: CodeAddress,
    (data, original): (&BpData, u64),
    (measures, account): (Measures, &Arc<Account>),
    reading: &Reading,
) -> Result<bool, Exiting> {
    let bp = &data.sessions[0];
    let known = meters_of(p).and_then(|meters| meters.by_key(data.metered_by));
    if let Some(meter) = known.filter(|meter| meter.runs(account)) {
        meter.called(reading);
        choose_in_line(p, data);
        return Ok(true);
    }
    look(bp, pc, original);
    let caller = enter(p, bp, measures, account, pc, reading);
    choose_in_line(p, data);
    push_frame(p, pc, &[caller])?;
    Ok(false)
}

/// Compiled code is to use the meter that is all that is wanted of this function.
fn choose_in_line(p: &mut Process, data: &BpData) {
    if data.metered_by != 0 {
        meters(p).use_in_line(data.metered_by);
    }
}

/// Those of these sessions.
fn of_sessions(data: &BpData, sessions: u64) -> impl Iterator<Item = &SessionBp> {
    let all = data.sessions.iter();
    all.filter(move |bp| bp.session.bit() & sessions != 0)
}

/// Counts a call of the function that is every meter's current one already: nothing is charged to another one, and
/// nothing to be given back. False where it is not.
#[inline]
fn runs_on(p: &mut Process, data: &BpData, sessions: u64, reading: &Reading) -> bool {
    let Some(meters) = meters_of(p) else {
        return false;
    };
    let Some(running) = running(meters, data, sessions) else {
        return false;
    };
    if data.has_both {
        meters.in_line.together().begin();
    }
    for at in running {
        meters.meters[at].called(reading);
    }
    if data.has_both {
        meters.in_line.together().end();
    }
    choose_in_line(p, data);
    true
}

/// The meters of these sessions, if the function is the current one of each.
fn running(meters: &Meters, data: &BpData, sessions: u64) -> Option<SmallVec<[usize; METERS]>> {
    let mut running = SmallVec::new();
    for bp in of_sessions(data, sessions) {
        for (measures, account) in measured(bp) {
            let mut all = meters.meters.iter();
            let at = all.position(|meter| meter.is_of(&bp.session, measures))?;
            if !meters.meters[at].runs(account) {
                return None;
            }
            running.push(at);
        }
    }
    Some(running)
}

/// Has compiled code count the calls that follow, of the function with this entry, which is the current one of all
/// meters of these sessions.
pub(super) fn count_in_line(
    p: &mut Process,
    pc: CodeAddress,
    data: &BpData,
    original: u64,
    sessions: u64,
    changes: u64,
) {
    let counter = data.counted_too.as_ref();
    let is_native = [Op::NifEntry as u16, Op::BifEntry as u16].contains(&(original as u16));
    if is_native || counter.is_some() && sched::current_id().is_none() {
        return;
    }
    let top = p.htop.get() as u64;
    let meters = meters(p);
    let Some(running) = running(meters, data, sessions) else {
        return;
    };
    let measures_reductions = |at: &usize| meters.meters[*at].measures.reductions;
    let is_idle = running.is_empty() && (counter.is_none() || meters.charges_later());
    if is_idle || running.len() > METERS || running.iter().any(measures_reductions) {
        return;
    }
    let count = counter.map_or(0, |counter| counter.address() + count::offset());
    meters.count_in_line(running, changes, count, top);
    p.runs_on.set(pc);
}

/// Notes what the function is that a session measures, where it has become native code.
#[inline]
fn look(bp: &SessionBp, pc: CodeAddress, original: u64) {
    if let (Some(account), Some(profile)) = (&bp.profile, &bp.session.profile)
        && let Some(native) = account.nature.look(pc, original)
    {
        profile.note_native(mfa_at(pc), native);
    }
}

#[inline]
fn enter_session(
    p: &mut Process,
    bp: &SessionBp,
    pc: CodeAddress,
    reading: &Reading,
    saved: &mut Saved,
) {
    for (measures, account) in measured(bp) {
        saved.push(enter(p, bp, measures, account, pc, reading));
    }
}

#[inline]
fn enter(
    p: &mut Process,
    bp: &SessionBp,
    measures: Measures,
    account: &Arc<Account>,
    pc: CodeAddress,
    reading: &Reading,
) -> u64 {
    let key = measures.key(bp.session.id);
    let uid = meters_of(p).and_then(|meters| Some(meters.by_key(key)?.uid));
    if let Some(uid) = uid {
        let returns_to = given_back_on_top(p, uid);
        let meter = meters_of(p).and_then(|meters| meters.by_uid(uid));
        let meter = meter.expect("it was found");
        return account_word(uid, meter.enter(account, returns_to, reading));
    }
    first_call(p, bp, measures, account, pc, reading)
}

/// The first call that a session measures in this process.
#[cold]
fn first_call(
    p: &mut Process,
    bp: &SessionBp,
    measures: Measures,
    account: &Arc<Account>,
    pc: CodeAddress,
    reading: &Reading,
) -> u64 {
    let initial = p.initial_call.get();
    let in_line = meters(p).in_line.clone();
    let arena = Arc::new(Arena::new(p.pid(), initial, in_line));
    arena.note(p.shared().name(), p.reductions());
    known::all(p)
        .into_iter()
        .for_each(|known| arena.known(known));
    bp.session.arenas.lock().push(arena.clone());
    // SAFETY: B1: `pc` is a function's entry.
    let (module, function, arity) = unsafe {
        (
            *pc.code().offset(head::MODULE),
            *pc.code().offset(head::FUNCTION),
            head::arity(*pc.code().offset(head::ARITY)),
        )
    };
    let is_initial = (module, function, arity) == (initial.0.raw().0, initial.1.raw().0, initial.2);
    let calls = &raw const p.shared().tracee.calls;
    let meters = meters(p);
    meters.in_line.use_meter(0);
    meters.meters.retain(|meter| meter.session.is_alive());
    let uid = meters.uid();
    let mut meter = Meter::new(bp.session.clone(), measures, uid, arena, calls, *reading);
    let caller = meter.enter(account, None, reading);
    if is_initial && measures.words {
        meter.count_initial_words(*reading);
    }
    meters.meters.push(Box::new(meter));
    account_word(uid, caller)
}

/// Pushes the frame that gives the accounts back on return, unless one on top does so already: a tail call
/// stays one.
fn push_frame(p: &mut Process, pc: CodeAddress, saved: &[u64]) -> Result<(), Exiting> {
    if saved.is_empty() || is_covered(p, saved) {
        return Ok(());
    }
    let head = [frame::stub(Kind::Accounts), small(saved.len() as u64)];
    if let [only] = *saved {
        return frame::push(p, pc, &[head[0], head[1], only]);
    }
    let mut words: SmallVec<[u64; 4]> = SmallVec::from_slice(&head);
    words.extend_from_slice(saved);
    frame::push(p, pc, &words)
}

/// Do frames on top give back the accounts of all the meters in `saved`?
fn is_covered(p: &Process, saved: &[u64]) -> bool {
    let mut saved = saved.iter();
    saved.all(|word| given_back_on_top(p, account_of(*word).0).is_some())
}

/// The node that frames on top give back to the meter with this name, if they do.
#[inline]
fn given_back_on_top(p: &Process, uid: u32) -> Option<u32> {
    frame::on_top(p).find_map(|frame| match frame {
        Frame::Accounts(accounts) => {
            let mut accounts = accounts.iter().map(|word| account_of(*word));
            let (_, node) = accounts.find(|(of, _)| *of == uid)?;
            Some(node)
        }
        _ => None,
    })
}

pub(super) fn give_back(p: &mut Process, accounts: &[u64]) {
    settle(p);
    let reading = reading(p);
    for word in accounts {
        let (uid, node) = account_of(*word);
        let meter = meters_of(p).and_then(|meters| meters.by_uid(uid));
        let Some(session) = meter.map(|meter| &meter.session).filter(|s| s.is_alive()) else {
            continue;
        };
        let bit = session.bit();
        if p.shared().tracee.is_traced_by(bit)
            && let Some(meter) = meters_of(p).and_then(|meters| meters.by_uid(uid))
        {
            meter.leave(node, &reading);
        }
    }
}
