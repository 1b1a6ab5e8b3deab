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
//! A breakpoint for calls from other modules (`global`) stands in the export's own stub, which calls then go
//! through: its first word is `Op::Breakpoint`, and the word that is executed in its stead is a jump to the
//! code, whose address stands behind.
//!
//! One change at a time holds the [permission](super::permission). Modules may be loaded meanwhile: functions of new code
//! have breakpoints of their own ([`on_load`]), in force before the code can be called.
#![expect(
    unsafe_code,
    reason = "generations of breakpoints are freed by hand: B1, B2"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::breakpoint::{Breakpoint, Half, Meta, Point, active, commit, kind, staging};
use super::halves::{Halves, Step};
use super::permission;
use super::session::{self, OnLoad, Shared};
use super::spec::Spec;
use super::tracer::TracerId;
use crate::bif;
use crate::code::entry::{Export, all_exports, export, find_export};
use crate::code::module::{self, Mfa, Module};
use crate::code::op::{Op, entry as head};
use crate::sched;
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

/// What breakpoints that report say.
#[derive(Clone, Default)]
pub(crate) struct Setting {
    /// Match specification.
    pub(crate) spec: Option<Arc<Spec>>,
    /// Whom `meta` reports to.
    pub(crate) meta: Option<TracerId>,
}

/// Where a breakpoint stands.
#[derive(Clone)]
enum Place {
    /// In a module's code, at this entry.
    Code(Arc<Module>, u32),
    /// In an export's stub.
    Export(&'static Export),
}

impl Place {
    /// The word at `at` from the entry on.
    fn word(&self, at: isize) -> &AtomicU64 {
        match self {
            Place::Code(module, entry) => code_word(module.code(), *entry, at),
            Place::Export(export) => export.stub_word(at),
        }
    }

    /// Its breakpoint; null if it has none.
    fn breakpoint(&self) -> *mut Breakpoint {
        self.word(head::BREAKPOINT).load(Ordering::Acquire) as *mut Breakpoint
    }

    fn mfa(&self) -> Mfa {
        match self {
            Place::Code(module, entry) => module.mfa(*entry),
            Place::Export(export) => Mfa {
                module: export.module,
                function: export.function,
                arity: export.arity,
            },
        }
    }

    /// Calls reach the breakpoint.
    fn is_installed(&self) -> bool {
        match self {
            Place::Code(..) => Op::of(self.word(0).load(Ordering::Acquire)) == Op::Breakpoint,
            Place::Export(export) => {
                export.is_breakpoint() && export.address() as u64 == export.stub_address()
            }
        }
    }

    /// The code that the breakpoint stood in is current no more: it means nothing.
    fn is_stale(&self) -> bool {
        Op::of(self.word(0).load(Ordering::Acquire)) != Op::Breakpoint
    }

    /// Has calls reach the breakpoint, which the head names.
    fn install(&self) {
        match self {
            Place::Code(..) => {
                let entry = self.word(0);
                let own = entry.load(Ordering::Relaxed);
                let first = u64::from(Op::Breakpoint as u16) | (own & !0xffff);
                entry.store(first, Ordering::Release);
            }
            Place::Export(export) => {
                let _permission = module::MODIFICATION.lock();
                if export.address() as u64 == self.word(head::TARGET).load(Ordering::Relaxed) {
                    export.redirect(export.stub_address());
                }
            }
        }
    }

    /// Has calls pass by the breakpoint, whose entry's own word is `original`.
    fn uninstall(&self, original: u64) {
        match self {
            Place::Code(..) => self.word(0).store(original, Ordering::Release),
            Place::Export(export) => {
                let _permission = module::MODIFICATION.lock();
                if self.is_installed() {
                    export.redirect(self.word(head::TARGET).load(Ordering::Relaxed));
                }
            }
        }
    }

    /// The breakpoint goes; nobody can be at it any more.
    fn clear(&self) {
        if let Place::Export(export) = self {
            restore_stub(export);
        }
        self.word(head::BREAKPOINT).store(0, Ordering::Release);
    }

    /// Calls of a BIF go past its entries unless one of them is under a breakpoint.
    fn update_bif(&self) {
        let mfa = self.mfa();
        let Some(export) = bif_export(mfa) else {
            return;
        };
        let code = module::versions(mfa.module).current;
        let entry = code.and_then(|code| Some(Place::Code(code.clone(), find_entry(&code, mfa)?)));
        let traced =
            Place::Export(export).is_installed() || entry.is_some_and(|entry| entry.is_installed());
        export.is_bif_traced.store(traced, Ordering::Release);
    }
}

/// The export of a BIF; it is made if no code has named it yet, so that code that does so later finds it
/// traced.
fn bif_export(mfa: Mfa) -> Option<&'static Export> {
    bif::find(mfa.module, mfa.function, mfa.arity)?;
    Some(export(mfa.module, mfa.function, mfa.arity))
}

/// Gives the stub of `export` its own first word back; where it led to, who is in it may still read.
fn restore_stub(export: &'static Export) {
    export
        .stub_word(0)
        .store(export.own_stub(), Ordering::Release);
}

/// A function whose breakpoint changes.
struct Touched {
    place: Place,
    breakpoint: *mut Breakpoint,
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

fn code_word(code: &[AtomicU64], entry: u32, at: isize) -> &AtomicU64 {
    &code[(entry as isize + at) as usize]
}

/// The code of a module is freed, which nobody runs and no change concerns any more: so are its breakpoints.
pub(crate) fn freed(code: &[AtomicU64], entry: u32) {
    let breakpoint = code_word(code, entry, head::BREAKPOINT).load(Ordering::Acquire);
    let breakpoint = breakpoint as *mut Breakpoint;
    if breakpoint.is_null() {
        return;
    }
    // SAFETY: B1, B2: the entry has had its own word back since the code was unloaded; every scheduler has passed a
    // quiescent point since the code was purged, and nobody else names its breakpoints.
    unsafe {
        let breakpoint = Box::from_raw(breakpoint);
        let (one, other) = (breakpoint.halves.get(0), breakpoint.halves.get(1));
        if !one.is_null() {
            drop(Box::from_raw(one));
        }
        if !other.is_null() && other != one {
            drop(Box::from_raw(other));
        }
    }
}

/// Which breakpoint of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    /// The one that all calls hit.
    Local,
    /// The one that calls from other modules hit.
    Global,
}

/// The point that `session` has at `mfa`'s current code. The caller is a scheduler between two quiescent
/// points, or holds the permission.
pub(super) fn point_at<T>(
    mfa: Mfa,
    which: Which,
    session: &Shared,
    get: impl FnOnce(&Point) -> T,
) -> Option<T> {
    let place = match which {
        Which::Local => {
            let code = module::versions(mfa.module).current?;
            let entry = find_entry(&code, mfa)?;
            Place::Code(code, entry)
        }
        Which::Global => Place::Export(find_export(mfa.module, mfa.function, mfa.arity)?),
    };
    if place.is_stale() {
        return None;
    }
    // SAFETY: B1, B2: by the caller's contract nothing is freed meanwhile.
    let half = unsafe { place.breakpoint().as_ref() }?.active()?;
    half.of(session).map(get)
}

/// The entry of `mfa` in `code`: any function, funs and module_info too.
pub(crate) fn find_entry(code: &Module, mfa: Mfa) -> Option<u32> {
    code.functions
        .iter()
        .copied()
        .find(|entry| code.mfa(*entry) == mfa)
}

impl Change {
    fn new() -> Change {
        Change {
            matched: 0,
            touched: Vec::new(),
            next: Step::Install,
        }
    }

    /// Stages `switch` of `kinds` at all functions of `pattern`. The caller holds the permission. Source:
    /// `erts_set_trace_pattern()`.
    pub(super) fn pattern(
        session: &Arc<Shared>,
        pattern: Pattern,
        switch: Switch,
        kinds: u32,
        setting: &Setting,
    ) -> Change {
        let mut change = Change::new();
        let modules = match pattern.module {
            Some(name) => module::versions(name).current.into_iter().collect(),
            None => module::loaded(),
        };
        let global = kinds == kind::GLOBAL;
        let nothing = Setting::default();
        for code in modules {
            for &entry in &code.functions {
                if !pattern.matches(code.mfa(entry)) {
                    continue;
                }
                let place = Place::Code(code.clone(), entry);
                if !global {
                    change.matched += 1;
                    change.touch(session, place, switch, kinds, setting);
                } else if switch != Switch::Off {
                    change.touch(session, place, Switch::Off, kind::ALL, &nothing);
                }
            }
            for &(function, arity, _) in &code.exports {
                let (module, export) = (code.name, export(code.name, function, arity));
                let mfa = Mfa {
                    module,
                    function,
                    arity,
                };
                if !pattern.matches(mfa) {
                    continue;
                }
                let place = Place::Export(export);
                if global {
                    change.matched += 1;
                    change.touch(session, place, switch, kinds, setting);
                } else if switch != Switch::Off {
                    change.touch(session, place, Switch::Off, kind::ALL, &nothing);
                }
            }
        }
        change
    }

    /// Stages the removal of all that `session` has, old code included. The caller holds the permission.
    pub(super) fn clear(session: &Arc<Shared>) -> Change {
        let mut change = Change::new();
        let mut places = Vec::new();
        for code in module::all_versions() {
            let entries = code.functions.iter();
            places.extend(entries.map(|entry| Place::Code(code.clone(), *entry)));
        }
        places.extend(all_exports().into_iter().map(Place::Export));
        for place in places {
            if !place.breakpoint().is_null() {
                let nothing = Setting::default();
                change.touch(session, place, Switch::Off, kind::ALL, &nothing);
            }
        }
        change
    }

    fn touch(
        &mut self,
        session: &Arc<Shared>,
        place: Place,
        switch: Switch,
        kinds: u32,
        setting: &Setting,
    ) {
        let mut breakpoint = place.breakpoint();
        // SAFETY: B1, B2: the permission is held, nothing is freed meanwhile.
        let now = unsafe { breakpoint.as_ref() }.and_then(Breakpoint::active);
        let is_stale = !breakpoint.is_null() && place.is_stale();
        let now = now.filter(|_| !is_stale || switch == Switch::Off);
        let Some(half) = changed(now, session, place.mfa(), switch, kinds, setting) else {
            return;
        };
        if breakpoint.is_null() {
            breakpoint = new_breakpoint(&place, std::ptr::null_mut());
        }
        if let Place::Export(export) = place
            && place.is_stale()
            && switch == Switch::On
        {
            prepare_stub(export);
        }
        let half = if half.points.is_empty() {
            std::ptr::null_mut()
        } else {
            Box::into_raw(Box::new(half))
        };
        // SAFETY: B1: just made, or named by the function's head.
        unsafe { &*breakpoint }.halves.set(staging(), half);
        self.touched.push(Touched { place, breakpoint });
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
        for touched in &self.touched {
            // SAFETY: B1.
            let halves = &unsafe { &*touched.breakpoint }.halves;
            if !halves.get(staging()).is_null() && !touched.place.is_installed() {
                touched.place.install();
                touched.place.update_bif();
            }
        }
    }

    fn uninstall(&self) {
        for touched in self.touched.iter().filter(|touched| touched.is_disabled()) {
            // SAFETY: B1.
            let original = unsafe { &*touched.breakpoint }.original;
            touched.place.uninstall(original);
            touched.place.update_bif();
        }
    }

    fn consolidate(&mut self) {
        // Whoever unloads code looks at its breakpoints.
        let _permission = module::MODIFICATION.lock();
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
                touched.place.clear();
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

fn new_breakpoint(place: &Place, both: *mut Half) -> *mut Breakpoint {
    let original = match place {
        Place::Code(..) => place.word(0).load(Ordering::Relaxed),
        Place::Export(_) => Op::JumpTarget.word(0, 0, 0),
    };
    let breakpoint = Box::into_raw(Box::new(Breakpoint {
        original,
        halves: Halves::new(both),
    }));
    place
        .word(head::BREAKPOINT)
        .store(breakpoint as u64, Ordering::Release);
    breakpoint
}

/// Has the stub of `export`, which calls do not reach, go on to the code.
fn prepare_stub(export: &'static Export) {
    lead_to(export, export.address() as u64);
}

fn lead_to(export: &'static Export, code: u64) {
    export
        .stub_word(head::TARGET)
        .store(code, Ordering::Release);
    let first = Op::Breakpoint.word(0, 0, 0);
    export.stub_word(0).store(first, Ordering::Release);
}

/// `now` as it shall be; `None` when nothing changes.
fn changed(
    now: Option<&Half>,
    session: &Arc<Shared>,
    mfa: Mfa,
    switch: Switch,
    kinds: u32,
    setting: &Setting,
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
            point.start(mfa, kinds);
            point.set(kinds, setting);
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
            record: None,
            spec: None,
            meta: None,
        }
    }

    /// What it reports, and to whom.
    fn set(&mut self, kinds: u32, setting: &Setting) {
        if kinds & (kind::LOCAL | kind::GLOBAL) != 0 {
            self.spec.clone_from(&setting.spec);
        }
        if kinds & kind::META != 0 {
            self.meta = Some(Arc::new(Meta {
                tracer: Mutex::new(setting.meta),
                spec: setting.spec.clone(),
            }));
        }
    }

    fn start(&mut self, mfa: Mfa, kinds: u32) {
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
        if kinds & kind::RECORD != 0 {
            self.record = Some(Arc::default());
        }
    }

    fn stop(&mut self, kinds: u32) {
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
        if kinds & kind::RECORD != 0 {
            self.record = None;
        }
        if kinds & (kind::LOCAL | kind::GLOBAL) != 0 {
            self.spec = None;
        }
        if kinds & kind::META != 0 {
            self.meta = None;
        }
    }
}

/// What sessions want on new code.
fn wanted_on_load() -> Vec<(Arc<Shared>, OnLoad)> {
    let sessions = session::all().into_iter();
    sessions
        .filter_map(|session| {
            let on_load = session.on_load.lock().clone()?;
            Some((session, on_load))
        })
        .collect()
}

/// What the breakpoint of a new function shall be.
fn half_on_load(wanted: &[(Arc<Shared>, OnLoad)], mfa: Mfa, global: bool) -> Option<Half> {
    let mut half = None;
    for (session, on_load) in wanted {
        let profile = session.profile.as_ref();
        if (on_load.kinds == kind::GLOBAL) != global
            || profile.is_some_and(|profile| !(profile.wanted)(mfa))
        {
            continue;
        }
        let meta = on_load.kinds & kind::META;
        let others = on_load.kinds & !kind::META;
        let setting = Setting {
            spec: on_load.spec.clone(),
            meta: None,
        };
        if others != 0 {
            half = changed(half.as_ref(), session, mfa, Switch::On, others, &setting).or(half);
        }
        let setting = Setting {
            spec: on_load.meta_spec.clone(),
            meta: on_load.meta_tracer,
        };
        if meta != 0 {
            half = changed(half.as_ref(), session, mfa, Switch::On, meta, &setting).or(half);
        }
    }
    half
}

/// Sets the breakpoints that sessions want on all new code. `code` cannot be called yet.
pub(crate) fn on_load(code: &Arc<Module>) {
    let wanted = wanted_on_load();
    if wanted.is_empty() {
        return;
    }
    for &entry in &code.functions {
        let mfa = code.mfa(entry);
        if let Some(half) = half_on_load(&wanted, mfa, false) {
            let place = Place::Code(code.clone(), entry);
            new_breakpoint(&place, Box::into_raw(Box::new(half)));
            place.install();
            if let Some(export) = bif_export(mfa) {
                export.is_bif_traced.store(true, Ordering::Release);
            }
        }
    }
}

/// The exports of `code` are staged, under the lock for modifications: those that sessions want traced are
/// staged to lead through their stubs.
pub(crate) fn exports_staged(code: &Module, generation: usize) {
    let wanted = wanted_on_load();
    if !wanted
        .iter()
        .any(|(_, on_load)| on_load.kinds == kind::GLOBAL)
    {
        return;
    }
    for &(function, arity, offset) in &code.exports {
        let export = export(code.name, function, arity);
        let place = Place::Export(export);
        // One that is left over from older code may still be at work: it stays away.
        if place.breakpoint().is_null()
            && let Some(half) = half_on_load(&wanted, place.mfa(), true)
        {
            new_breakpoint(&place, Box::into_raw(Box::new(half)));
            lead_to(export, code.address(offset) as u64);
            export.addresses[generation].store(export.stub_address(), Ordering::Release);
        }
    }
}

/// `code` is current no more, under the lock for modifications: nothing is traced of it, as in ERTS.
pub(crate) fn unloaded(code: &Arc<Module>) {
    for &entry in &code.functions {
        let place = Place::Code(code.clone(), entry);
        // SAFETY: B1: none is freed under the lock.
        if let Some(breakpoint) = unsafe { place.breakpoint().as_ref() } {
            place.uninstall(breakpoint.original);
        }
    }
    for &(function, arity, _) in &code.exports {
        if let Some(export) = find_export(code.name, function, arity)
            && export.is_breakpoint()
        {
            restore_stub(export);
        }
    }
}

/// Has `change` go on by itself, for the process that holds the permission and waits from now on. `then`
/// is called at its end.
pub(super) fn run(change: Change, pid: Pid, then: impl FnOnce() + Send + 'static) {
    permission::begin(pid);
    advance(change, pid, Box::new(then));
}

fn advance(mut change: Change, pid: Pid, then: Box<dyn FnOnce() + Send>) {
    sched::thread_progress().later(move || {
        if !change.step() {
            advance(change, pid, then);
            return;
        }
        then();
        permission::end(pid, change.matched);
        permission::release();
        permission::wake(pid);
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
