//! Breakpoints: what a traced function's entry leads to.
//!
//! A function under a breakpoint has [`Op::Breakpoint`] as its first word, and the address of its
//! [`Breakpoint`] in its head. A breakpoint holds, in two generations, what each session wants of it;
//! one global index says which generation is active. How both are changed while processes run is told
//! in [`super::change`].
//!
//! Invariants:
//! - B1: while a thread may find [`Op::Breakpoint`] at an entry, the head before it holds the address of
//!   a live breakpoint; one is freed only when every scheduler has passed a quiescent point since its
//!   entry got its own word back.
//! - B2: each generation of a breakpoint is null or points to a [`Half`] that nobody changes; one is freed
//!   only when every scheduler has passed a quiescent point since it was last the active one.
//! - B3: a trace frame on a stack is `[TraceReturn, n, account 1..n]`, top first, `n` and the accounts
//!   small integers, and the real return address follows.
#![expect(
    unsafe_code,
    reason = "breakpoints and stack frames are reached by address"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use smallvec::SmallVec;

use super::count::Counter;
use super::halves::Halves;
use super::meter::{Account, Measures, Meter, Meters, Reading};
use super::node::Arena;
use super::session::Shared;
use crate::code::op::{Op, entry as head};
use crate::process::Process;
use crate::term::tag;

/// The generation that running code uses.
static ACTIVE: AtomicUsize = AtomicUsize::new(0);

/// The active generation's index.
#[inline(always)]
pub(super) fn active() -> usize {
    ACTIVE.load(Ordering::Relaxed)
}

/// The other one's.
pub(super) fn staging() -> usize {
    active() ^ 1
}

/// Makes the staged generation of every breakpoint the active one.
pub(super) fn commit() {
    ACTIVE.store(staging(), Ordering::Release);
}

/// Of one function, in all sessions.
pub(super) struct Breakpoint {
    /// The entry's own first word.
    pub(super) original: u64,
    pub(super) halves: Halves<Half>,
}

/// What all sessions want of a function.
#[derive(Clone, Default)]
pub(super) struct Half {
    pub(super) points: SmallVec<[Point; 1]>,
    /// Bits of the sessions that measure time or memory here.
    metered: u64,
}

/// What one session wants of a function.
#[derive(Clone)]
pub(super) struct Point {
    pub(super) session: Arc<Shared>,
    /// Of [`kind`], and paused ones in [`Point::paused`] too.
    pub(super) kinds: u32,
    pub(super) paused: u32,
    pub(super) count: Option<Counter>,
    pub(super) time: Option<Arc<Account>>,
    pub(super) memory: Option<Arc<Account>>,
    pub(super) profile: Option<Arc<Account>>,
}

/// Kinds of breakpoint.
pub(super) mod kind {
    pub(in crate::trace) const COUNT: u32 = 1;
    pub(in crate::trace) const TIME: u32 = 2;
    pub(in crate::trace) const MEMORY: u32 = 4;
    /// As the session's own profile says.
    pub(in crate::trace) const PROFILE: u32 = 8;
    /// Calls reported to a tracer; only ever set where nothing is to be reported.
    pub(in crate::trace) const LOCAL: u32 = 16;
    /// As `LOCAL`, of calls from other modules.
    pub(in crate::trace) const GLOBAL: u32 = 32;
    /// As `LOCAL`, for all processes.
    pub(in crate::trace) const META: u32 = 64;
    pub(in crate::trace) const ALL: u32 = 127;
}

impl Half {
    /// Call after the points have changed.
    pub(super) fn update(&mut self) {
        self.metered = 0;
        for point in &self.points {
            if (point.kinds & !point.paused) & (kind::TIME | kind::MEMORY | kind::PROFILE) != 0 {
                self.metered |= point.session.bit();
            }
        }
    }
    pub(super) fn of(&self, session: &Shared) -> Option<&Point> {
        self.points
            .iter()
            .find(|point| point.session.id == session.id)
    }
}

impl Breakpoint {
    /// What the active generation says; `None` when it is disabled.
    #[inline(always)]
    pub(super) fn active(&self) -> Option<&Half> {
        // SAFETY: B2: the caller is between two of its quiescent points, or holds the permission.
        unsafe { self.halves.get(active()).as_ref() }
    }
}

/// Accounts for a call of the function with the entry `pc`; gives the word that stands there in truth.
/// May collect: the arguments are kept.
pub(crate) fn hit(p: &mut Process, pc: *const u64) -> u64 {
    // SAFETY: B1: the entry's word was `Op::Breakpoint` since the last quiescent point.
    let breakpoint = unsafe { &*(*pc.offset(head::BREAKPOINT) as *const Breakpoint) };
    let Some(half) = breakpoint.active() else {
        return breakpoint.original;
    };
    if p.resumed_bif.replace(std::ptr::null()) == pc || p.flags.get().sensitive {
        return breakpoint.original;
    }
    for point in &half.points {
        if let Some(counter) = &point.count
            && point.paused & kind::COUNT == 0
        {
            counter.increment();
        }
    }
    let sessions = half.metered & p.shared().tracee.calls();
    if sessions != 0 {
        measure(p, pc, half, sessions);
    }
    breakpoint.original
}

/// The BIF under a breakpoint at `pc` has not returned: when it is called again, it is the same call.
pub(crate) fn bif_again(p: &Process, pc: *const u64) {
    p.resumed_bif.set(pc);
}

/// Accounts, one for each meter, as a frame holds them.
type Saved = SmallVec<[u64; 2]>;

/// What a frame's word says: a meter's name and a node of it.
fn account_word(uid: u32, node: u32) -> u64 {
    small((u64::from(uid) << 32) | u64::from(node))
}

fn account_of(word: u64) -> (u32, u32) {
    let value = word >> SMALL_SHIFT;
    ((value >> 32) as u32 & 0xfff_ffff, value as u32)
}

fn reading(p: &Process) -> Reading {
    Reading {
        words: p.allocated_words(),
        words_collected: p.collected_words(),
        reductions: p.reductions(),
    }
}

#[inline]
fn measure(p: &mut Process, pc: *const u64, half: &Half, sessions: u64) {
    let reading = reading(p);
    let mut saved = Saved::new();
    for point in half
        .points
        .iter()
        .filter(|point| point.session.bit() & sessions != 0)
    {
        enter_point(p, point, pc, &reading, &mut saved);
    }
    push_frame(p, pc, &saved);
}

#[inline]
fn enter_point(
    p: &mut Process,
    point: &Point,
    pc: *const u64,
    reading: &Reading,
    saved: &mut Saved,
) {
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
    let on = point.kinds & !point.paused;
    if on & kind::PROFILE != 0
        && let (Some(account), Some(profile)) = (&point.profile, &point.session.profile)
    {
        saved.push(enter(p, point, profile.measures, account, pc, reading));
    }
    if on & kind::TIME != 0
        && let Some(account) = &point.time
    {
        saved.push(enter(p, point, TIME, account, pc, reading));
    }
    if on & kind::MEMORY != 0
        && let Some(account) = &point.memory
    {
        saved.push(enter(p, point, MEMORY, account, pc, reading));
    }
}

#[inline]
fn enter(
    p: &mut Process,
    point: &Point,
    measures: Measures,
    account: &Arc<Account>,
    pc: *const u64,
    reading: &Reading,
) -> u64 {
    let known = p.meters.as_deref_mut().and_then(|meters| {
        let mut all = meters.meters.iter_mut();
        all.find(|meter| meter.session.id == point.session.id && meter.measures == measures)
    });
    if let Some(meter) = known {
        return account_word(meter.uid, meter.enter(account, reading));
    }
    first_call(p, point, measures, account, pc, reading)
}

/// The first call that a session measures in this process.
#[cold]
fn first_call(
    p: &mut Process,
    point: &Point,
    measures: Measures,
    account: &Arc<Account>,
    pc: *const u64,
    reading: &Reading,
) -> u64 {
    let initial = p.initial_call.get();
    let arena = Arc::new(Arena::new(p.pid(), initial));
    arena.note(p.shared().name(), p.reductions());
    point.session.arenas.lock().push(arena.clone());
    // SAFETY: B1: `pc` is a function's entry.
    let (module, function, arity) = unsafe {
        (
            *pc.offset(head::MODULE),
            *pc.offset(head::FUNCTION),
            *pc.offset(head::ARITY),
        )
    };
    let is_initial =
        (module, function, arity) == (initial.0.raw().0, initial.1.raw().0, u64::from(initial.2));
    let meters = p.meters.get_or_insert_with(|| Box::new(Meters::default()));
    meters.meters.retain(|meter| meter.session.is_alive());
    let uid = meters.uid();
    let mut meter = Meter::new(point.session.clone(), measures, uid, arena, *reading);
    let caller = meter.enter(account, reading);
    if is_initial && measures.words {
        meter.count_initial_words(*reading);
    }
    meters.meters.push(meter);
    account_word(uid, caller)
}

/// The one word of code that traced calls return to.
fn trace_return() -> u64 {
    static STUB: u64 = Op::TraceReturn.word(0, 0, 0);
    &raw const STUB as u64
}

/// Pushes the frame that gives the accounts back on return, unless the frame on top does so already: a
/// tail call stays one.
fn push_frame(p: &mut Process, pc: *const u64, saved: &[u64]) {
    if saved.is_empty() || is_covered(p, saved) {
        return;
    }
    let need = saved.len() + 2;
    if p.free_words() < need {
        // SAFETY: B1: `pc` is a function's entry.
        let arity = unsafe { *pc.offset(head::ARITY) } as usize;
        if p.garbage_collect(need, arity).is_err() {
            // It is exiting, and returns nowhere.
            return;
        }
    }
    let frame = p.stop.get().wrapping_sub(need);
    // SAFETY: H1, B3: `need` words are free below the stack's top.
    unsafe {
        *frame = trace_return();
        *frame.add(1) = small(saved.len() as u64);
        for (i, word) in saved.iter().enumerate() {
            *frame.add(2 + i) = *word;
        }
    }
    p.stop.set(frame);
}

/// Bits of a small integer's tag.
const SMALL_SHIFT: u32 = 4;

/// A word that is a small integer to whoever walks the stack: 60 bits, whatever their sign.
#[inline(always)]
fn small(bits: u64) -> u64 {
    (bits << SMALL_SHIFT) | tag::SMALL
}

/// Does the frame on top give back the accounts of all the meters in `saved`?
fn is_covered(p: &Process, saved: &[u64]) -> bool {
    let mut top = p.stop.get();
    // SAFETY: H1: a word of the stack, if there is one.
    if top >= p.hend() || unsafe { *top } != trace_return() {
        return false;
    }
    let mut left: SmallVec<[u32; 2]> = saved.iter().map(|word| account_of(*word).0).collect();
    // Each frame on top of another holds a meter that the other one lacks, so there are few.
    while top < p.hend() {
        // SAFETY: H1, B3: words of the stack; a frame's are there.
        let (word, frame) = unsafe { (*top, frame_at(top)) };
        if word != trace_return() {
            return false;
        }
        for account in frame {
            left.retain(|uid| *uid != account_of(*account).0);
        }
        if left.is_empty() {
            return true;
        }
        top = top.wrapping_add(2 + frame.len());
    }
    false
}

/// The accounts of the trace frame at `top`; none when there is no such frame.
///
/// # Safety
/// H1: `top` points into the stack.
unsafe fn frame_at<'a>(top: *const u64) -> &'a [u64] {
    // SAFETY: by contract, and B3.
    unsafe {
        if *top != trace_return() {
            return &[];
        }
        let count = (*top.add(1) >> SMALL_SHIFT) as usize;
        std::slice::from_raw_parts(top.add(2), count)
    }
}

/// A traced call has returned to its trace frame, whose first word is popped: gives the accounts back,
/// drops the frame, and gives the real return address, popped too.
pub(crate) fn returned(p: &mut Process) -> *const u64 {
    let top = p.stop.get();
    // SAFETY: B3: the rest of the frame stands on top, the return address behind it.
    let (accounts, back) = unsafe {
        let count = (*top >> SMALL_SHIFT) as usize;
        (
            std::slice::from_raw_parts(top.add(1), count),
            *top.add(1 + count),
        )
    };
    let calls = p.shared().tracee.calls();
    let reading = reading(p);
    if let Some(meters) = p.meters.as_deref_mut() {
        for word in accounts {
            let (uid, node) = account_of(*word);
            if let Some(meter) = meters.by_uid(uid)
                && meter.session.bit() & calls != 0
                && meter.session.is_alive()
            {
                meter.leave(node, &reading);
            }
        }
    }
    p.stop.set(top.wrapping_add(2 + accounts.len()));
    back as *const u64
}

/// An exception is about to cut the stack: a call path goes back to the function that handles it.
pub(crate) fn unwinding(p: &mut Process) {
    if p.meters
        .as_deref()
        .is_none_or(|meters| !meters.meters.iter().any(|m| m.measures.tree))
    {
        return;
    }
    let mut outermost: SmallVec<[(u32, u32); 2]> = SmallVec::new();
    let mut at = p.stop.get();
    while at < p.hend() {
        // SAFETY: H1, B3: words of the stack.
        let (word, frame) = unsafe { (*at, frame_at(at)) };
        if word & tag::IMMED2_MASK == tag::CATCH {
            break;
        }
        for account in frame {
            let (uid, node) = account_of(*account);
            outermost.retain(|(known, _)| *known != uid);
            outermost.push((uid, node));
        }
        at = at.wrapping_add(if word == trace_return() {
            2 + frame.len()
        } else {
            1
        });
    }
    let reading = reading(p);
    let Some(meters) = p.meters.as_deref_mut() else {
        return;
    };
    for (uid, node) in outermost {
        if let Some(meter) = meters.by_uid(uid).filter(|meter| meter.measures.tree) {
            meter.leave(node, &reading);
        }
    }
}

/// Is this return address a trace frame's, which belongs to no function?
#[must_use]
pub(crate) fn is_trace_return(address: *const u64) -> bool {
    address as u64 == trace_return()
}

/// The process starts a turn.
#[inline]
pub(crate) fn scheduled_in(p: &mut Process) {
    if p.meters.is_some() {
        let calls = p.shared().tracee.calls();
        for meter in p
            .meters
            .as_deref_mut()
            .into_iter()
            .flat_map(|meters| &mut meters.meters)
        {
            if meter.session.bit() & calls != 0 {
                meter.scheduled_in();
            }
        }
    }
}

/// The process's turn has ended.
#[inline]
pub(crate) fn scheduled_out(p: &mut Process) {
    if p.meters.is_some() {
        let calls = p.shared().tracee.calls();
        let (name, reductions) = (p.shared().name(), p.reductions());
        for meter in p
            .meters
            .as_deref_mut()
            .into_iter()
            .flat_map(|meters| &mut meters.meters)
        {
            meter.arena.note(name, reductions);
            if meter.session.bit() & calls != 0 {
                meter.scheduled_out();
            }
        }
    }
}
