//! Setting and clearing breakpoints while processes run.
//!
//! A [`Change`] is taken from step to step; before each, every scheduler has passed a quiescent point
//! since the one before:
//!
//! 1. made: new breakpoints, disabled, are named in their functions' heads; the staged generation of all
//!    that are touched is what they shall be;
//! 2. `Op::Breakpoint` is written to the entries of new ones, a word each;
//! 3. the staged generation is made the active one, of all breakpoints at once;
//! 4. entries whose breakpoint has nothing left to do get their own words back;
//! 5. the new staged generation is made the same as the active one, and what nobody can reach is freed.
//!
//! A generation is never changed in place: it is replaced whole, so counters that start anew and pauses
//! come into force with the switch, and what running processes see stays what it was.
//!
//! One change at a time holds the [`Permission`]. Modules may be loaded meanwhile: functions of new code
//! have breakpoints of their own ([`on_load`]), in force before the code can be called.
#![expect(
    unsafe_code,
    reason = "generations of breakpoints are freed by hand: B1, B2"
)]

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::Mutex;

use super::breakpoint::{Breakpoint, Half, Point, active, commit, kind, staging};
use super::halves::{Halves, Step};
use super::session::{self, OnLoad, Shared};
use crate::code::entry::export;
use crate::code::module::{self, Mfa, Module};
use crate::code::op::{Op, entry as head};
use crate::process::{self};
use crate::sched::{self, ptab};
use crate::term::{Atom, Pid};

/// What happens to breakpoints of some kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switch {
    /// They are set, and count from nothing.
    On,
    /// They are removed, with all they have counted.
    Off,
    /// Those there are count from nothing.
    Restart,
    /// Those there are count no more, and keep what they have.
    Pause,
}

/// Which functions: `None` is any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pattern {
    /// Module.
    pub module: Option<Atom>,
    /// Function.
    pub function: Option<Atom>,
    /// Arity; what no function has matches none.
    pub arity: Option<u16>,
}

impl Pattern {
    fn matches(&self, mfa: Mfa) -> bool {
        self.module.is_none_or(|m| m == mfa.module)
            && self.function.is_none_or(|f| f == mfa.function)
            && self.arity.is_none_or(|a| a == u16::from(mfa.arity))
    }
}

/// A function whose breakpoint changes.
struct Touched {
    module: Arc<Module>,
    entry: u32,
    breakpoint: *mut Breakpoint,
    is_new: bool,
}

/// A change of breakpoints under way.
pub(super) struct Change {
    /// Functions that matched.
    pub(super) matched: usize,
    touched: Vec<Touched>,
    next: Step,
}

// SAFETY: B1, B2: who holds the permission may use the pointers, on whatever thread.
unsafe impl Send for Change {}

fn code_word(module: &Module, entry: u32, at: isize) -> &'static std::sync::atomic::AtomicU64 {
    &module.code()[(entry as isize + at) as usize]
}

/// The breakpoint of the function with this entry; null if it has none.
fn breakpoint_of(module: &Module, entry: u32) -> *mut Breakpoint {
    code_word(module, entry, head::BREAKPOINT).load(Ordering::Acquire) as *mut Breakpoint
}

/// The point that `session` has at `mfa`'s current code. The caller is a scheduler between two quiescent
/// points, or holds the permission.
pub(super) fn point_at<T>(mfa: Mfa, session: &Shared, get: impl FnOnce(&Point) -> T) -> Option<T> {
    half_at(mfa, |half| half.of(session).map(get)).flatten()
}

/// What `mfa`'s breakpoint does, if it has one; as [`point_at`].
pub(super) fn half_at<T>(mfa: Mfa, get: impl FnOnce(&Half) -> T) -> Option<T> {
    let code = module::versions(mfa.module).current?;
    let entry = find_entry(&code, mfa)?;
    let breakpoint = breakpoint_of(&code, entry);
    // SAFETY: B1, B2: by the caller's contract nothing is freed meanwhile.
    unsafe { breakpoint.as_ref() }?.active().map(get)
}

fn is_exported(code: &Module, entry: u32) -> bool {
    code.exports
        .iter()
        .any(|&(_, _, exported)| exported == entry)
}

/// The entry of `mfa` in `code`: any function, funs and module_info too.
pub(crate) fn find_entry(code: &Module, mfa: Mfa) -> Option<u32> {
    code.functions
        .iter()
        .copied()
        .find(|entry| code.mfa(*entry) == mfa)
}

impl Change {
    /// Stages `switch` of `kinds` at all functions of `pattern`. The caller holds the permission.
    pub(super) fn pattern(
        session: &Arc<Shared>,
        pattern: Pattern,
        switch: Switch,
        kinds: u32,
    ) -> Change {
        let mut change = Change {
            matched: 0,
            touched: Vec::new(),
            next: Step::Install,
        };
        let modules = match pattern.module {
            Some(name) => module::versions(name).current.into_iter().collect(),
            None => module::loaded(),
        };
        for code in modules {
            for &entry in &code.functions {
                let mfa = code.mfa(entry);
                if !pattern.matches(mfa) {
                    continue;
                }
                if kinds != kind::GLOBAL || is_exported(&code, entry) {
                    change.matched += 1;
                    change.touch(session, &code, entry, mfa, switch, kinds);
                } else if switch == Switch::On {
                    change.touch(session, &code, entry, mfa, Switch::Off, kind::ALL);
                }
            }
        }
        change
    }

    /// Stages the removal of all that `session` has, old code included. The caller holds the permission.
    pub(super) fn clear(session: &Arc<Shared>) -> Change {
        let mut change = Change {
            matched: 0,
            touched: Vec::new(),
            next: Step::Install,
        };
        for code in module::all_versions() {
            for &entry in &code.functions {
                if !breakpoint_of(&code, entry).is_null() {
                    let mfa = code.mfa(entry);
                    change.touch(session, &code, entry, mfa, Switch::Off, kind::ALL);
                }
            }
        }
        change
    }

    fn touch(
        &mut self,
        session: &Arc<Shared>,
        code: &Arc<Module>,
        entry: u32,
        mfa: Mfa,
        switch: Switch,
        kinds: u32,
    ) {
        let mut breakpoint = breakpoint_of(code, entry);
        let is_new = breakpoint.is_null();
        // SAFETY: B1, B2: the permission is held, nothing is freed meanwhile.
        let now = unsafe { breakpoint.as_ref() }.and_then(Breakpoint::active);
        let Some(half) = changed(now, session, mfa, switch, kinds) else {
            return;
        };
        if is_new {
            breakpoint = new_breakpoint(code, entry, std::ptr::null_mut());
        }
        let half = if half.points.is_empty() {
            std::ptr::null_mut()
        } else {
            Box::into_raw(Box::new(half))
        };
        // SAFETY: B1: just made, or named by the function's head.
        unsafe { &*breakpoint }.halves.set(staging(), half);
        self.touched.push(Touched {
            module: code.clone(),
            entry,
            breakpoint,
            is_new,
        });
    }

    /// Does the next step; `true` when that was the last. Between two of them every scheduler passes a
    /// quiescent point.
    pub(super) fn step(&mut self) -> bool {
        match self.next {
            Step::Install => self.install(),
            Step::Commit => commit(),
            Step::Uninstall => self.uninstall(),
            Step::Consolidate => self.consolidate(),
        }
        match self.next.following() {
            Some(step) => {
                self.next = step;
                false
            }
            None => true,
        }
    }

    fn install(&self) {
        for touched in self.touched.iter().filter(|touched| touched.is_new) {
            let entry = code_word(&touched.module, touched.entry, 0);
            let own = entry.load(Ordering::Relaxed);
            entry.store(
                u64::from(Op::Breakpoint as u16) | (own & !0xffff),
                Ordering::Release,
            );
            set_bif_traced(touched, true);
        }
    }

    fn uninstall(&self) {
        for touched in self.touched.iter().filter(|touched| touched.is_disabled()) {
            // SAFETY: B1.
            let original = unsafe { &*touched.breakpoint }.original;
            code_word(&touched.module, touched.entry, 0).store(original, Ordering::Release);
            set_bif_traced(touched, false);
        }
    }

    fn consolidate(&mut self) {
        for touched in self.touched.drain(..) {
            // SAFETY: B1: freed below at the earliest.
            let halves = &unsafe { &*touched.breakpoint }.halves;
            let (new, old) = (halves.get(active()), halves.get(staging()));
            halves.set(staging(), new);
            if old != new && !old.is_null() {
                // SAFETY: B2: two quiescent points of every scheduler ago it was the active one.
                drop(unsafe { Box::from_raw(old) });
            }
            if new.is_null() {
                code_word(&touched.module, touched.entry, head::BREAKPOINT)
                    .store(0, Ordering::Release);
                // SAFETY: B1: every scheduler has passed a quiescent point since the entry got its own
                // word back.
                drop(unsafe { Box::from_raw(touched.breakpoint) });
            }
        }
    }
}

impl Touched {
    fn is_disabled(&self) -> bool {
        // SAFETY: B1.
        unsafe { &*self.breakpoint }.halves.get(active()).is_null()
    }
}

/// Calls of a BIF go past its entry unless it is traced.
fn set_bif_traced(touched: &Touched, traced: bool) {
    // SAFETY: B1.
    let original = unsafe { &*touched.breakpoint }.original;
    if Op::of(original) == Op::BifEntry {
        let Mfa {
            module,
            function,
            arity,
        } = touched.module.mfa(touched.entry);
        let export = export(module, function, arity);
        export.is_bif_traced.store(traced, Ordering::Release);
    }
}

fn new_breakpoint(code: &Module, entry: u32, both: *mut Half) -> *mut Breakpoint {
    let original = code_word(code, entry, 0).load(Ordering::Relaxed);
    let breakpoint = Box::into_raw(Box::new(Breakpoint {
        original,
        halves: Halves::new(both),
    }));
    code_word(code, entry, head::BREAKPOINT).store(breakpoint as u64, Ordering::Release);
    breakpoint
}

/// `now` as it shall be; `None` when nothing changes.
fn changed(
    now: Option<&Half>,
    session: &Arc<Shared>,
    mfa: Mfa,
    switch: Switch,
    kinds: u32,
) -> Option<Half> {
    let mut half = now.cloned().unwrap_or_default();
    let at = half
        .points
        .iter()
        .position(|point| point.session.id == session.id);
    match (at, switch) {
        (None, Switch::On) => half.points.push(Point::new(session)),
        (None, _) => return None,
        (Some(_), _) => {}
    }
    let at = at.unwrap_or(half.points.len() - 1);
    let point = &mut half.points[at];
    match switch {
        Switch::On => {
            // Calls from other modules only, or breakpoints: one excludes the other.
            point.stop(if kinds & kind::GLOBAL != 0 {
                !kind::GLOBAL
            } else {
                kind::GLOBAL
            });
            point.start(mfa, kinds);
        }
        Switch::Restart => point.start(mfa, kinds & point.kinds),
        Switch::Pause => point.paused |= kinds & point.kinds,
        Switch::Off if point.kinds & kinds == 0 => return None,
        Switch::Off => point.stop(kinds),
    }
    if half.points[at].kinds == 0 {
        half.points.remove(at);
    }
    half.update();
    Some(half)
}

impl Point {
    fn new(session: &Arc<Shared>) -> Point {
        Point {
            session: session.clone(),
            kinds: 0,
            paused: 0,
            count: None,
            time: None,
            memory: None,
            profile: None,
        }
    }

    fn start(&mut self, mfa: Mfa, kinds: u32) {
        self.session.report(self.kinds, self.kinds | kinds);
        self.kinds |= kinds;
        self.paused &= !kinds;
        if kinds & kind::COUNT != 0 {
            self.count = Some(self.session.counter(mfa));
        }
        if kinds & kind::TIME != 0 {
            self.time = Some(self.session.account(mfa));
        }
        if kinds & kind::MEMORY != 0 {
            self.memory = Some(self.session.account(mfa));
        }
        if kinds & kind::PROFILE != 0 {
            self.profile = Some(self.session.account(mfa));
        }
    }

    fn stop(&mut self, kinds: u32) {
        self.session.report(self.kinds, self.kinds & !kinds);
        self.kinds &= !kinds;
        self.paused &= !kinds;
        if kinds & kind::COUNT != 0 {
            self.count = None;
        }
        if kinds & kind::TIME != 0 {
            self.time = None;
        }
        if kinds & kind::MEMORY != 0 {
            self.memory = None;
        }
        if kinds & kind::PROFILE != 0 {
            self.profile = None;
        }
    }
}

/// Sets the breakpoints that sessions want on all new code. `code` cannot be called yet.
pub(crate) fn on_load(code: &Arc<Module>) {
    let wanted: Vec<(Arc<Shared>, u32)> = session::all()
        .into_iter()
        .filter_map(|session| {
            let OnLoad { kinds } = (*session.on_load.lock())?;
            Some((session, kinds))
        })
        .collect();
    if wanted.is_empty() {
        return;
    }
    for &entry in &code.functions {
        let mfa = code.mfa(entry);
        let mut half = None;
        for (session, kinds) in &wanted {
            if session
                .profile
                .as_ref()
                .is_none_or(|profile| (profile.wanted)(mfa))
            {
                half = changed(half.as_ref(), session, mfa, Switch::On, *kinds).or(half);
            }
        }
        if let Some(half) = half {
            let half = Box::into_raw(Box::new(half));
            let breakpoint = new_breakpoint(code, entry, half);
            let touched = Touched {
                module: code.clone(),
                entry,
                breakpoint,
                is_new: true,
            };
            Change {
                matched: 0,
                touched: vec![touched],
                next: Step::Install,
            }
            .install();
        }
    }
}

/// The right to change breakpoints, which one process at a time has.
///
/// A change goes on by itself, at the schedulers' quiescent points; the process that asked for it waits
/// meanwhile, and calls again.
#[derive(Default)]
struct Permission {
    busy: bool,
    /// Changes that are done, and how many functions they matched.
    done: HashMap<Pid, usize>,
    /// Processes whose change is under way.
    under_way: HashSet<Pid>,
    waiting: Vec<Pid>,
}

static PERMISSION: Mutex<Option<Permission>> = Mutex::new(None);

fn with<T>(use_it: impl FnOnce(&mut Permission) -> T) -> T {
    use_it(PERMISSION.lock().get_or_insert_with(Permission::default))
}

fn wake(pid: Pid) {
    let guard = ptab::pin();
    if let Some(process) = process::lookup(pid, &guard) {
        process.wake();
    }
}

/// What a process that wants a change is to do.
pub(crate) enum Turn {
    /// It has the permission: make the change and hand it to [`run`], or [`release`].
    Go,
    /// Its change is done; so many functions matched.
    Done(usize),
    /// Wait, and ask again.
    Wait,
}

/// How the change stands that a process has begun before, if it has: a BIF that waits is called again, and
/// asks for this first.
pub(crate) fn begun(pid: Pid) -> Option<Turn> {
    with(|permission| match permission.done.remove(&pid) {
        Some(matched) => Some(Turn::Done(matched)),
        None => permission.under_way.contains(&pid).then_some(Turn::Wait),
    })
}

/// Asks for the permission.
pub(crate) fn seize(pid: Pid) -> Turn {
    with(|permission| {
        if permission.busy {
            permission.waiting.push(pid);
            return Turn::Wait;
        }
        permission.busy = true;
        Turn::Go
    })
}

/// Takes the permission if it is free.
pub(super) fn try_seize() -> bool {
    with(|permission| !std::mem::replace(&mut permission.busy, true))
}

/// Gives the permission back.
pub(crate) fn release() {
    let waiting = with(|permission| {
        permission.busy = false;
        std::mem::take(&mut permission.waiting)
    });
    waiting.into_iter().for_each(wake);
}

/// Has `change` go on by itself, for the process that holds the permission and waits from now on. `then`
/// is called at its end.
pub(super) fn run(change: Change, pid: Pid, then: impl FnOnce() + Send + 'static) {
    with(|permission| permission.under_way.insert(pid));
    advance(change, pid, Box::new(then));
}

fn advance(mut change: Change, pid: Pid, then: Box<dyn FnOnce() + Send>) {
    sched::thread_progress().later(move || {
        if !change.step() {
            advance(change, pid, then);
            return;
        }
        then();
        with(|permission| {
            permission.under_way.remove(&pid);
            if process::exists(pid) {
                permission.done.insert(pid, change.matched);
            }
        });
        release();
        wake(pid);
    });
}

/// Takes `change` through all its steps, from a thread that is no scheduler.
pub(super) fn run_here(mut change: Change) -> usize {
    debug_assert!(
        sched::current_id().is_none(),
        "a scheduler would wait for itself"
    );
    loop {
        let progress = sched::thread_progress().request();
        while !sched::thread_progress().has_reached(progress) {
            std::thread::sleep(std::time::Duration::from_micros(50));
        }
        if change.step() {
            return change.matched;
        }
    }
}

/// Has the permission for `change`, from a thread that is no scheduler.
pub(super) fn with_permission<T>(change: impl FnOnce() -> T) -> T {
    loop {
        if try_seize() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_micros(100));
    }
    let result = change();
    release();
    result
}
