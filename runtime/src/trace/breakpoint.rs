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
//! - B3: what a process holds as its `meters` is a [`Meters`]: nobody but [`meters`] puts something there.
#![expect(unsafe_code, reason = "breakpoints are reached by address")]

use crate::term::CodeAddress;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use smallvec::SmallVec;

use super::call;
use super::count::{self, Counter};
use super::frame::{self, Frame, Kind, of_small, small};
use super::generations::Generations;
use super::in_line::{self, METERS};
use super::known;
use super::meter::{Account, Measures, Meter, Meters, Reading};
use super::native;
use super::node::Arena;
use super::record::{self, OnReturn};
use super::session::Shared;
use super::spec::Spec;
use super::tracer::TracerId;
use crate::code::op::Op;
use crate::code::op::entry as head;
use crate::process::dirty::DirtyTicks;
use crate::process::{Dirty, Exiting, Process};
use crate::sched;

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
    /// The same for Rust: what it measures, and the account.
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

/// Kinds of breakpoint.
pub(super) mod kind {
    pub(in crate::trace) const COUNT: u32 = 1;
    pub(in crate::trace) const TIME: u32 = 2;
    pub(in crate::trace) const MEMORY: u32 = 4;
    /// As the session's own profile says.
    pub(in crate::trace) const PROFILE: u32 = 8;
    /// Calls reported to a tracer.
    pub(in crate::trace) const LOCAL: u32 = 16;
    /// As `LOCAL`, of calls from other modules: in breakpoints of exports only, alone.
    pub(in crate::trace) const GLOBAL: u32 = 32;
    /// As `LOCAL`, for all processes.
    pub(in crate::trace) const META: u32 = 64;
    /// Calls recorded.
    pub(in crate::trace) const RECORD: u32 = 128;
    /// The workload begins with the call.
    pub(in crate::trace) const BEGIN: u32 = 256;
    pub(in crate::trace) const ALL: u32 = 511;
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

/// Accounts, one for each meter, as a frame holds them.
type Saved = SmallVec<[u64; 2]>;

/// What a frame's word says: a meter's name and a node of it.
fn account_word(uid: u32, node: u32) -> u64 {
    small((u64::from(uid) << 32) | u64::from(node))
}

fn account_of(word: u64) -> (u32, u32) {
    let value = of_small(word);
    ((value >> 32) as u32 & 0xfff_ffff, value as u32)
}

fn reading(p: &Process) -> Reading {
    Reading {
        words: p.allocated_words(),
        words_collected: p.collected_words(),
        reductions: p.reductions(),
    }
}

/// Measures a call, by these sessions; gives whether the function is each meter's current one already.
#[inline]
fn measure(
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

/// The same where one meter is all that is wanted.
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
    let caller = match known {
        Some(meter) if meter.runs(account) => {
            meter.called(reading);
            choose_in_line(p, data);
            return Ok(true);
        }
        Some(meter) => account_word(meter.uid, meter.enter(account, reading)),
        None => first_call(p, bp, measures, account, pc, reading),
    };
    look(bp, pc, original);
    choose_in_line(p, data);
    push_frame(p, pc, &[caller])?;
    Ok(false)
}

/// Another function may become a meter's current one: compiled code counts no calls of this one any more, and meters are
/// charged for those that it has counted.
pub(super) fn settle(p: &mut Process) {
    p.runs_on.set(CodeAddress::NULL);
    if let Some(meters) = meters_of(p) {
        meters.settle();
    }
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
fn count_in_line(
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
    let is_busy = running.is_empty() && meters.charges_later();
    if is_busy || running.len() > METERS || running.iter().any(measures_reductions) {
        return;
    }
    let count = counter.map(|counter| counter.address() + count::offset());
    meters.count_in_line(running, changes, count, top);
    p.runs_on.set(pc);
}

/// Notes what the function is that a session measures, where it has become native code.
#[inline]
fn look(bp: &SessionBp, pc: CodeAddress, original: u64) {
    if let (Some(account), Some(profile)) = (&bp.profile, &bp.session.profile)
        && let Some(native) = account.nature.look(pc, original)
    {
        profile.is_native(call::mfa_at(pc), native);
    }
}

/// What a session measures of the function, and the accounts.
#[inline]
fn measured(bp: &SessionBp) -> impl Iterator<Item = (Measures, &Arc<Account>)> {
    const TIME: Measures = Measures {
        tree: false,
        time: true,
        words: false,
        reductions: false,
    };
    const MEMORY: Measures = Measures {
        tree: false,
        time: false,
        words: true,
        reductions: false,
    };
    let on = bp.kinds & !bp.paused;
    let of = |kind, account| Option::filter(account, |_| on & kind != 0);
    let profile = bp.session.profile.as_ref();
    let profile = profile.zip(of(kind::PROFILE, bp.profile.as_ref()));
    [
        profile.map(|(profile, account)| (profile.measures, account)),
        of(kind::TIME, bp.time.as_ref()).map(|account| (TIME, account)),
        of(kind::MEMORY, bp.memory.as_ref()).map(|account| (MEMORY, account)),
    ]
    .into_iter()
    .flatten()
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
    let known = meters_of(p).and_then(|meters| meters.by_key(key));
    if let Some(meter) = known {
        return account_word(meter.uid, meter.enter(account, reading));
    }
    first_call(p, bp, measures, account, pc, reading)
}

/// Those of `p`, if any of its calls has been measured.
#[inline]
pub(super) fn meters_of(p: &mut Process) -> Option<&mut Meters> {
    let held = p.meters.as_deref_mut()?;
    debug_assert!(held.is::<Meters>(), "only `meters` puts something there");
    // SAFETY: B3.
    Some(unsafe { &mut *std::ptr::from_mut(held).cast::<Meters>() })
}

fn meters(p: &mut Process) -> &mut Meters {
    if p.meters.is_none() {
        let meters = Box::new(Meters::default());
        p.in_line.set(meters.in_line.address());
        p.meters = Some(meters);
    }
    meters_of(p).expect("they are there now")
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
    let caller = meter.enter(account, reading);
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
    if let [only] = saved {
        let uid = account_of(*only).0;
        let is_there = |accounts: &[u64]| accounts.iter().any(|word| account_of(*word).0 == uid);
        return frame::on_top(p)
            .any(|frame| matches!(frame, Frame::Accounts(accounts) if is_there(accounts)));
    }
    let mut left: SmallVec<[u32; 2]> = saved.iter().map(|word| account_of(*word).0).collect();
    for frame in frame::on_top(p) {
        if let Frame::Accounts(accounts) = frame {
            for account in accounts {
                left.retain(|uid| *uid != account_of(*account).0);
            }
            if left.is_empty() {
                return true;
            }
        }
    }
    false
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

fn give_back(p: &mut Process, accounts: &[u64]) {
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

/// The exception stored in `p` is about to cut the stack: it is reported, and a call path goes back to the
/// function that handles it.
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
    if meters_of(p).is_none_or(|meters| !meters.meters.iter().any(|m| m.measures.tree)) {
        return;
    }
    let mut outermost: SmallVec<[(u32, u32); 2]> = SmallVec::new();
    frame::unwound(p, |step| {
        if let frame::Unwound::Frame(Frame::Accounts(accounts)) = step {
            for account in accounts {
                let (uid, node) = account_of(*account);
                outermost.retain(|(known, _)| *known != uid);
                outermost.push((uid, node));
            }
        }
    });
    settle(p);
    let reading = reading(p);
    let Some(meters) = meters_of(p) else {
        return;
    };
    for (uid, node) in outermost {
        if let Some(meter) = meters.by_uid(uid).filter(|meter| meter.measures.tree) {
            meter.leave(node, &reading);
        }
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
pub(super) fn was_dirty(p: &mut Process, dirty: Dirty, times: &DirtyTicks) {
    let calls = p.shared().tracee.calls();
    let current = native::current(p);
    for meter in meters_of(p).into_iter().flat_map(|m| &mut m.meters) {
        if meter.session.bit() & calls == 0 {
            continue;
        }
        let account = meter.was_dirty(times);
        // Where the function is not measured, its time is that of who called it.
        if let (Some(profile), Some(mfa)) = (&meter.session.profile, current)
            && profile.accounts.lock().get(&account) == Some(&mfa)
        {
            profile.is_native(mfa, native::of_dirty(dirty));
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
