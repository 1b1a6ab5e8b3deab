//! Breakpoints: the data behind a traced function's entry, and what a call that hits it does.
//!
//! A function under a breakpoint has [`Op::Breakpoint`] as its first word, and the address of its [`Breakpoint`] in its
//! head. A breakpoint holds what each session wants of the function, in two generations. One global index says which
//! generation is active. [`super::change`] describes how both are changed while processes run.
//!
//! Invariants:
//! - B1: while a thread may find [`Op::Breakpoint`] at an entry, the head before it holds the address of a live
//!   breakpoint; one is freed only when every scheduler has passed a quiescent point since its entry got its own word
//!   back.
//! - B2: each generation of a breakpoint is null or points to a [`BpData`] that nobody changes; one is freed only when
//!   every scheduler has passed a quiescent point since it was last the active one.
//! - B3: what a process holds as its `meters` is a `Meters`: nobody but `measure::meters` puts something there.
#![expect(unsafe_code, reason = "breakpoints are reached by address")]

mod measure;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use smallvec::SmallVec;

use super::call;
use super::count::Counter;
use super::frame::{self, Frame};
use super::generations::Generations;
use super::in_line;
use super::kind;
use super::meter::{Account, Measures};
use super::native;
use super::record::{self, OnReturn};
use super::session::Shared;
use super::spec::Spec;
use super::tracer::TracerId;
use crate::code::op::Op;
use crate::code::op::entry as head;
use crate::process::dirty::DirtyTicks;
use crate::process::{Dirty, Exiting, Process};
use crate::term::CodeAddress;
use measure::{account_of, count_in_line, give_back, measure, measured};
pub(super) use measure::{meters_of, settle};

/// The generation that running code uses.
static ACTIVE: AtomicUsize = AtomicUsize::new(0);

/// The active generation's index.
#[inline(always)]
pub(super) fn active() -> usize {
    ACTIVE.load(Ordering::Relaxed)
}

/// The index of the generation that is staged.
pub(super) fn staging() -> usize {
    active() ^ 1
}

/// Makes the staged generation of every breakpoint the active one.
pub(super) fn commit() {
    ACTIVE.store(staging(), Ordering::Release);
    in_line::changed();
}

/// What compiled code looks at when it calls a function under a breakpoint.
pub(crate) mod offset {
    use std::mem::offset_of;

    use super::{BpData, Breakpoint, Generations};

    /// The entry's own first word.
    pub(crate) const ORIGINAL: i32 = offset_of!(Breakpoint, original) as i32;
    /// The two generations.
    pub(crate) const GENERATIONS: i32 =
        (offset_of!(Breakpoint, generations) + Generations::<BpData>::OFFSET) as i32;
    /// In a generation: see [`BpData::counted`], [`BpData::metered_by`] and [`BpData::account`].
    pub(crate) const COUNTED: i32 = offset_of!(BpData, counted) as i32;
    pub(crate) const METERED_BY: i32 = offset_of!(BpData, metered_by) as i32;
    pub(crate) const ACCOUNT: i32 = offset_of!(BpData, account) as i32;
    /// See [`BpData::only_recorded`].
    pub(crate) const ONLY_RECORDED: i32 = offset_of!(BpData, only_recorded) as i32;
}

/// Where the active generation's index is.
pub(crate) fn active_address() -> u64 {
    (&raw const ACTIVE) as u64
}

/// The breakpoint of one function, for all sessions.
pub(super) struct Breakpoint {
    /// The entry's own first word.
    pub(super) original: AtomicU64,
    pub(super) generations: Generations<BpData>,
}

/// The wishes of all sessions for a function.
#[derive(Clone, Default)]
pub(crate) struct BpData {
    pub(super) sessions: SmallVec<[SessionBp; 1]>,
    /// Bits of the sessions that measure time or memory here.
    metered: u64,
    /// Bits of the sessions that report calls of traced processes.
    reported: u64,
    /// Calls of all processes are reported to someone.
    has_meta: bool,
    /// Bits of the session that records calls.
    recorded: u64,
    /// The workload begins here.
    begins: bool,
    /// A session measures both time and memory: their calls are counted as one.
    has_both: bool,
    /// Where a call is all that is wanted: its counter's [`Counter::address`]; else 0.
    counted: u64,
    /// Where one meter is all that is wanted: [`Measures::key`] of it; else 0.
    metered_by: u64,
    /// And the account that it has of the function.
    account: u32,
    /// That meter for Rust: what it measures, and the account.
    metered_alone: Option<(Measures, Arc<Account>)>,
    /// To record a call is all that is wanted.
    only_recorded: bool,
    /// To count and to measure calls is all that is wanted, by one session.
    runs_on: bool,
    /// And this is its counter.
    counted_too: Option<Counter>,
}

/// The tracer that a `meta` breakpoint reports to.
pub(super) struct Meta {
    /// `None` once the tracer has been found gone.
    pub(super) tracer: parking_lot::Mutex<Option<TracerId>>,
    pub(super) spec: Option<Arc<Spec>>,
}

/// The wishes of one session for a function.
#[derive(Clone)]
pub(super) struct SessionBp {
    pub(super) session: Arc<Shared>,
    /// Of [`kind`], and paused ones in [`SessionBp::paused`] too.
    pub(super) kinds: u32,
    pub(super) paused: u32,
    pub(super) count: Option<Counter>,
    pub(super) time: Option<Arc<Account>>,
    pub(super) memory: Option<Arc<Account>>,
    pub(super) profile: Option<Arc<Account>>,
    pub(super) record: Option<Arc<record::Called>>,
    /// Match specification of `local` or `global`.
    pub(super) spec: Option<Arc<Spec>>,
    pub(super) meta: Option<Arc<Meta>>,
}

impl BpData {
    /// Call after the sessions have changed.
    pub(super) fn update(&mut self) {
        (self.metered, self.reported, self.recorded) = (0, 0, 0);
        (self.has_meta, self.has_both, self.begins) = (false, false, false);
        for bp in &self.sessions {
            self.begins |= bp.kinds & kind::BEGIN != 0;
            if bp.kinds & (kind::LOCAL | kind::GLOBAL) != 0 {
                self.reported |= bp.session.bit();
            }
            self.has_meta |= bp.kinds & kind::META != 0;
            if bp.record.is_some() {
                self.recorded |= bp.session.bit();
            }
            let on = bp.kinds & !bp.paused;
            if on & (kind::TIME | kind::MEMORY | kind::PROFILE) != 0 {
                self.metered |= bp.session.bit();
            }
            self.has_both |= on & kind::TIME != 0 && on & kind::MEMORY != 0;
        }
        self.counted = match &self.sessions[..] {
            [only] if (only.kinds, only.paused) == (kind::COUNT, 0) => {
                only.count.as_ref().map_or(0, Counter::address)
            }
            _ => 0,
        };
        self.metered_alone = self.only_meter();
        (self.metered_by, self.account) = match (&self.metered_alone, &self.sessions[..]) {
            (Some((measures, account)), [bp]) => (measures.key(bp.session.id), account.id),
            _ => (0, 0),
        };
        const COUNTED: u32 = kind::COUNT | kind::TIME | kind::MEMORY | kind::PROFILE;
        (self.runs_on, self.counted_too) = match &self.sessions[..] {
            [only] if only.kinds & !COUNTED == 0 => {
                let counter = only.count.clone();
                (true, counter.filter(|_| only.paused & kind::COUNT == 0))
            }
            _ => (false, None),
        };
        self.only_recorded = match &self.sessions[..] {
            [only] => (only.kinds, only.paused) == (kind::RECORD, 0),
            _ => false,
        };
    }

    /// What the meter measures that is all that is wanted, and its account of the function.
    fn only_meter(&self) -> Option<(Measures, Arc<Account>)> {
        const MEASURED: u32 = kind::TIME | kind::MEMORY | kind::PROFILE;
        let [bp] = &self.sessions[..] else {
            return None;
        };
        let mut measured = measured(bp);
        let (measures, account) = measured.next().filter(|_| bp.kinds & !MEASURED == 0)?;
        let is_alone = measured.next().is_none();
        is_alone.then(|| (measures, account.clone()))
    }

    pub(super) fn of(&self, session: &Shared) -> Option<&SessionBp> {
        self.sessions.iter().find(|bp| bp.session.id == session.id)
    }
}

impl Breakpoint {
    /// The word that stands at the entry in truth.
    #[inline(always)]
    pub(super) fn original(&self) -> u64 {
        self.original.load(Ordering::Acquire)
    }

    /// The data of the active generation; `None` when it is disabled.
    #[inline(always)]
    pub(super) fn active(&self) -> Option<&BpData> {
        // SAFETY: B2: the caller is between two of its quiescent points, or holds the permission.
        unsafe { self.generations.get(active()).as_ref() }
    }
}

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
        super::totals::begin(p);
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

/// The word that stands at the entry `pc` in truth, which a breakpoint stands at.
///
/// # Safety
/// B1: the entry's word was `Op::Breakpoint` since the last quiescent point.
pub(crate) unsafe fn original(pc: CodeAddress) -> u64 {
    // SAFETY: by contract.
    let breakpoint = unsafe { &*(*pc.code().offset(head::BREAKPOINT) as *const Breakpoint) };
    breakpoint.original()
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
        record::found_native(called, call::mfa_at(pc), native);
    }
    let is_tail = || frame::on_top(p).any(|frame| matches!(frame, Frame::Recorded(_)));
    record::called(p, called, || call::mfa_at(pc), is_tail)
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
pub(super) fn charge_dirty(p: &mut Process, dirty: Dirty, times: &DirtyTicks) {
    let calls = p.shared().tracee.calls();
    let current = native::current(p);
    for meter in meters_of(p).into_iter().flat_map(|m| &mut m.meters) {
        if meter.session.bit() & calls == 0 {
            continue;
        }
        let account = meter.charge_dirty(times);
        // Where the function is not measured, its time is that of whoever called it.
        if let (Some(profile), Some(mfa)) = (&meter.session.profile, current)
            && profile.accounts.lock().get(&account) == Some(&mfa)
        {
            profile.note_native(mfa, native::of_dirty(dirty));
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
