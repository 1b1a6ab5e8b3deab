//! Breakpoints: the data behind a traced function's entry.
//!
//! A function under a breakpoint has [`Op::Breakpoint`] as its first word, and the address of its [`Breakpoint`] in its
//! head. A breakpoint holds what each session wants of the function, in two generations. One global index says which
//! generation is active. [`change`] describes how both are changed while processes run.
//!
//! Invariants:
//! - B1: while a thread may find [`Op::Breakpoint`] at an entry, the head before it holds the address of a live
//!   breakpoint; one is freed only when every scheduler has passed a quiescent point since its entry got its own word
//!   back.
//! - B2: each generation of a breakpoint is null or points to a [`BpData`] that nobody changes; one is freed only when
//!   every scheduler has passed a quiescent point since it was last the active one.
#![expect(unsafe_code, reason = "breakpoints are reached by address")]

pub(crate) mod change;
mod generations;
pub(crate) mod place;
mod staging;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use smallvec::SmallVec;

use super::costs::account::{Account, Measures};
use super::costs::count::Counter;
use super::costs::in_line;
use super::costs::nature::{Nature, mfa_at};
use super::session::spec::Spec;
use super::session::tracer::TracerId;
use super::session::{Shared, kind};
use crate::code::op::Op;
use crate::code::op::entry as head;
use crate::loader::module::Mfa;
use crate::process::Process;
use crate::term::CodeAddress;
use generations::Generations;

/// The generation that running code uses.
static ACTIVE: AtomicUsize = AtomicUsize::new(0);

/// The active generation's index.
#[inline(always)]
pub(in crate::trace) fn active() -> usize {
    ACTIVE.load(Ordering::Relaxed)
}

/// The index of the generation that is staged.
pub(in crate::trace) fn staging() -> usize {
    active() ^ 1
}

/// Makes the staged generation of every breakpoint the active one.
pub(in crate::trace) fn commit() {
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
pub(in crate::trace) struct Breakpoint {
    /// The entry's own first word.
    pub(in crate::trace) original: AtomicU64,
    pub(in crate::trace) generations: Generations<BpData>,
}

/// The wishes of all sessions for a function.
#[derive(Clone, Default)]
pub(crate) struct BpData {
    pub(in crate::trace) sessions: SmallVec<[SessionBp; 1]>,
    /// Bits of the sessions that measure time or memory here.
    pub(in crate::trace) metered: u64,
    /// Bits of the sessions that report calls of traced processes.
    pub(in crate::trace) reported: u64,
    /// Calls of all processes are reported to someone.
    pub(in crate::trace) has_meta: bool,
    /// Bits of the session that records calls.
    pub(in crate::trace) recorded: u64,
    /// The workload begins here.
    pub(in crate::trace) begins: bool,
    /// A session measures both time and memory: their calls are counted as one.
    pub(in crate::trace) has_both: bool,
    /// Where a call is all that is wanted: its counter's [`Counter::address`]; else 0.
    pub(in crate::trace) counted: u64,
    /// Where one meter is all that is wanted: [`Measures::key`] of it; else 0.
    pub(in crate::trace) metered_by: u64,
    /// And the account that it has of the function.
    pub(in crate::trace) account: u32,
    /// That meter for Rust: what it measures, and the account.
    pub(in crate::trace) metered_alone: Option<(Measures, Arc<Account>)>,
    /// To record a call is all that is wanted.
    pub(in crate::trace) only_recorded: bool,
    /// To count and to measure calls is all that is wanted, by one session.
    pub(in crate::trace) runs_on: bool,
    /// And this is its counter.
    pub(in crate::trace) counted_too: Option<Counter>,
}

/// The tracer that a `meta` breakpoint reports to.
pub(in crate::trace) struct Meta {
    /// `None` once the tracer has been found gone.
    pub(in crate::trace) tracer: parking_lot::Mutex<Option<TracerId>>,
    pub(in crate::trace) spec: Option<Arc<Spec>>,
}

/// The wishes of one session for a function.
#[derive(Clone)]
pub(in crate::trace) struct SessionBp {
    pub(in crate::trace) session: Arc<Shared>,
    /// Of [`kind`], and paused ones in [`SessionBp::paused`] too.
    pub(in crate::trace) kinds: u32,
    pub(in crate::trace) paused: u32,
    pub(in crate::trace) count: Option<Counter>,
    pub(in crate::trace) time: Option<Arc<Account>>,
    pub(in crate::trace) memory: Option<Arc<Account>>,
    pub(in crate::trace) profile: Option<Arc<Account>>,
    pub(in crate::trace) record: Option<Arc<Called>>,
    /// Match specification of `local` or `global`.
    pub(in crate::trace) spec: Option<Arc<Spec>>,
    pub(in crate::trace) meta: Option<Arc<Meta>>,
}

impl BpData {
    /// Call after the sessions have changed.
    pub(in crate::trace) fn update(&mut self) {
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

    pub(in crate::trace) fn of(&self, session: &Shared) -> Option<&SessionBp> {
        self.sessions.iter().find(|bp| bp.session.id == session.id)
    }
}

impl Breakpoint {
    /// The word that stands at the entry in truth.
    #[inline(always)]
    pub(in crate::trace) fn original(&self) -> u64 {
        self.original.load(Ordering::Acquire)
    }

    /// The data of the active generation; `None` when it is disabled.
    #[inline(always)]
    pub(in crate::trace) fn active(&self) -> Option<&BpData> {
        // SAFETY: B2: the caller is between two of its quiescent points, or holds the permission.
        unsafe { self.generations.get(active()).as_ref() }
    }
}

/// What a session measures of the function, and the accounts.
#[inline]
pub(in crate::trace) fn measured(
    bp: &SessionBp,
) -> impl Iterator<Item = (Measures, &Arc<Account>)> {
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

/// The word that stands at the entry `pc` in truth, which a breakpoint stands at.
///
/// # Safety
/// B1: the entry's word was `Op::Breakpoint` since the last quiescent point.
pub(crate) unsafe fn original(pc: CodeAddress) -> u64 {
    // SAFETY: by contract.
    let breakpoint = unsafe { &*(*pc.code().offset(head::BREAKPOINT) as *const Breakpoint) };
    breakpoint.original()
}

/// The native function at whose entry `p` stays, if it is at one.
pub(in crate::trace) fn current_native(p: &Process) -> Option<Mfa> {
    let pc = p.pc.get();
    if pc.is_null() {
        return None;
    }
    // SAFETY: I1: an instruction's word.
    let mut word = unsafe { *pc.code() };
    if word as u16 == Op::Breakpoint as u16 {
        // SAFETY: B1: this word stands at an entry.
        let breakpoint = unsafe { &*(*pc.code().offset(head::BREAKPOINT) as *const Breakpoint) };
        word = breakpoint.original();
    }
    let is_entry = [Op::NifEntry as u16, Op::BifEntry as u16].contains(&(word as u16));
    is_entry.then(|| mfa_at(pc))
}

/// A function's name in the recording, found at its first call.
#[derive(Default)]
pub(in crate::trace) struct Called {
    /// 0 before the first call.
    pub(in crate::trace) name: AtomicU32,
    /// What the function is.
    pub(in crate::trace) nature: Nature,
}
