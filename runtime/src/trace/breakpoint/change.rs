//! Sets and clears breakpoints while processes run.
//!
//! A [`Change`] consists of steps. Before each step, every scheduler has passed a quiescent point since the step
//! before:
//!
//! 1. The change makes new, disabled breakpoints and names them in their functions' heads. It brings the staged
//!    generation of all breakpoints that it touches to the wanted state.
//! 2. It writes `Op::Breakpoint` to the entries of new breakpoints, a word each.
//! 3. It makes the staged generation the active one, of all breakpoints at once.
//! 4. It gives entries whose breakpoint has nothing left to do their own words back.
//! 5. It makes the new staged generation the same as the active one, and frees what nobody can reach.
//!
//! A step that touches many functions is done in parts, between which processes run.
//!
//! A change never changes a generation in place but replaces it whole. So counters that start anew and pauses come into
//! force with the switch, and what running processes see stays what it was.
//!
//! A breakpoint for calls from other modules (`global`) stands in the export's own stub, which calls then go through.
//! The stub's first word is `Op::Breakpoint`. The word that is executed in its stead is a jump to the code, whose
//! address stands behind it.
//!
//! One change at a time holds the [permission](session::permission). Modules may be loaded meanwhile: functions of new
//! code have breakpoints of their own ([`loaded`]), which are in force before the code can be called.
#![expect(
    unsafe_code,
    reason = "generations of breakpoints are freed by hand: B1, B2"
)]

use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::Mutex;

use super::generations::Step;
use super::place::{Place, bif_export, lead_to, new_breakpoint, prepare_stub, restore_stub};
use super::staging::{Staging, Wanted};
use super::{BpData, Breakpoint, Meta, SessionBp, active, commit, staging};
use crate::code::entry::{export, find_export};
use crate::code::op::entry as head;
use crate::loader::module::{self, Mfa, Module};
use crate::process::order::replay::note_calls_cost_otherwise;
use crate::sched;
use crate::term::{Atom, Pid};
use crate::trace::session::spec::Spec;
use crate::trace::session::tracer::TracerId;
use crate::trace::session::{self, kind, permission};
use crate::trace::session::{OnLoad, Shared};

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

/// The functions that a change is for; `None` is any.
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
    pub(in crate::trace) fn matches(&self, mfa: Mfa) -> bool {
        self.module.is_none_or(|m| m == mfa.module)
            && self.function.is_none_or(|f| f == mfa.function)
            && self.arity.is_none_or(|a| a == u16::from(mfa.arity))
    }
}

/// What breakpoints that report hold.
#[derive(Clone, Default)]
pub(crate) struct Setting {
    /// Match specification.
    pub(crate) spec: Option<Arc<Spec>>,
    /// The tracer that `meta` reports to.
    pub(crate) meta: Option<TracerId>,
}

/// A function whose breakpoint changes.
struct Touched {
    place: Place,
    breakpoint: *mut Breakpoint,
    /// Calls are to reach it, and do not yet.
    comes: bool,
    /// It has something to do afterwards.
    stays: bool,
}

/// Places that are staged, installed and so on at once: some tenths of a millisecond, in which the scheduler runs
/// no process.
const AT_ONCE: usize = 500;

/// A change of breakpoints under way.
pub(in crate::trace) struct Change {
    /// Functions that matched.
    pub(in crate::trace) matched: usize,
    touched: Vec<Touched>,
    next: Step,
    staging: Staging,
    /// How many of those touched the next step has been done for.
    done: usize,
}

// SAFETY: B1, B2: the holder of the permission may use the pointers, on whatever thread.
unsafe impl Send for Change {}

/// The code of a module is freed, which nobody runs and no change concerns any more: so are its breakpoints.
pub(crate) fn freed(code: &Module, entry: u32) {
    let breakpoint = code.word(entry, head::BREAKPOINT).load(Ordering::Acquire);
    let breakpoint = breakpoint as *mut Breakpoint;
    if breakpoint.is_null() {
        return;
    }
    // SAFETY: B1, B2: the entry has had its own word back since the code was unloaded; every scheduler has passed a
    // quiescent point since the code was purged, and nobody else names its breakpoints.
    unsafe {
        let breakpoint = Box::from_raw(breakpoint);
        let (one, other) = (breakpoint.generations.get(0), breakpoint.generations.get(1));
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
pub(in crate::trace) enum Which {
    /// The one that all calls hit.
    Local,
    /// The one that calls from other modules hit.
    Global,
}

/// What `session` wants at `mfa`'s current code. The caller is a scheduler between two quiescent
/// points, or holds the permission.
pub(in crate::trace) fn session_bp_at<T>(
    mfa: Mfa,
    which: Which,
    session: &Shared,
    get: impl FnOnce(&SessionBp) -> T,
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
    let data = unsafe { place.breakpoint().as_ref() }?.active()?;
    data.of(session).map(get)
}

/// The entry of `mfa` in `code`: any function, funs and module_info too.
pub(crate) fn find_entry(code: &Module, mfa: Mfa) -> Option<u32> {
    code.functions
        .iter()
        .copied()
        .find(|entry| code.mfa(*entry) == mfa)
}

impl Change {
    /// Stages the first part of what `staging` says. The caller holds the permission.
    fn new(staging: Staging) -> Change {
        let mut change = Change {
            matched: 0,
            touched: Vec::new(),
            next: Step::Stage,
            staging,
            done: 0,
        };
        if change.stage() {
            change.next = Step::Install;
        }
        change
    }

    /// Stages `switch` of `kinds` at all functions of `pattern`. The caller holds the permission. Source:
    /// `erts_set_trace_pattern()`.
    pub(in crate::trace) fn pattern(
        session: &Arc<Shared>,
        pattern: Pattern,
        switch: Switch,
        kinds: u32,
        setting: &Setting,
    ) -> Change {
        Change::new(Staging::pattern(session, pattern, switch, kinds, setting))
    }

    /// Stages the removal of all that `session` has, old code included. The caller holds the permission.
    pub(in crate::trace) fn clear(session: &Arc<Shared>) -> Change {
        Change::new(Staging::clear(session))
    }

    /// Stages some more; `true` when that was all.
    fn stage(&mut self) -> bool {
        let places = self.staging.next(AT_ONCE);
        let is_all = places.len() < AT_ONCE;
        for (place, mfa) in places {
            let Some(wanted) = self.staging.wanted(&place, mfa) else {
                continue;
            };
            self.matched += usize::from(wanted.matches);
            self.touch(place, mfa, &wanted);
        }
        is_all
    }

    fn touch(&mut self, place: Place, mfa: Mfa, wanted: &Wanted) {
        let switch = wanted.switch;
        let mut breakpoint = place.breakpoint();
        // SAFETY: B1, B2: the permission is held, nothing is freed meanwhile.
        let now = unsafe { breakpoint.as_ref() }.and_then(Breakpoint::active);
        let is_stale = !breakpoint.is_null() && place.is_stale();
        let now = now.filter(|_| !is_stale || switch == Switch::Off);
        let Some(data) = self.staging.changed(now, mfa, wanted) else {
            return;
        };
        let stays = !data.sessions.is_empty();
        let comes = stays && (breakpoint.is_null() || !place.is_installed());
        if breakpoint.is_null() {
            breakpoint = new_breakpoint(&place, std::ptr::null_mut());
        }
        if let Place::Export(export) = place
            && place.is_stale()
            && switch == Switch::On
        {
            prepare_stub(export);
        }
        let data = if stays {
            Box::into_raw(Box::new(data))
        } else {
            std::ptr::null_mut()
        };
        // SAFETY: B1: just made, or named by the function's head.
        unsafe { &*breakpoint }.generations.set(staging(), data);
        self.touched.push(Touched {
            place,
            breakpoint,
            comes,
            stays,
        });
    }

    /// Does the next step, or a part of it; `true` when that was the last. Between two of them every scheduler
    /// passes a quiescent point.
    pub(in crate::trace) fn step(&mut self) -> bool {
        let is_done = match self.next {
            Step::Stage => self.stage(),
            Step::Install => self.some(Touched::install),
            Step::Commit => {
                commit();
                true
            }
            Step::Uninstall => self.some(Touched::uninstall),
            Step::Consolidate => self.consolidate(),
        };
        if !is_done {
            return false;
        }
        self.done = 0;
        match self.next.following() {
            Some(step) => {
                self.next = step;
                false
            }
            None => true,
        }
    }

    /// Does the same for some more of those touched; `true` when that were the last.
    fn some(&mut self, act: fn(&Touched)) -> bool {
        let end = self.touched.len().min(self.done + AT_ONCE);
        self.touched[self.done..end].iter().for_each(act);
        self.done = end;
        end == self.touched.len()
    }

    /// Makes both generations of some more the same; `true` when that were the last.
    fn consolidate(&mut self) -> bool {
        let rest = self.touched.len().saturating_sub(AT_ONCE);
        // The last to hold a module frees it, which is not done under the lock.
        let part = self.touched.split_off(rest);
        // Whoever unloads code looks at its breakpoints.
        let _permission = module::MODIFICATION.lock();
        for touched in &part {
            // SAFETY: B1: freed below at the earliest.
            let generations = &unsafe { &*touched.breakpoint }.generations;
            let (new, old) = (generations.get(active()), generations.get(staging()));
            generations.set(staging(), new);
            if old != new && !old.is_null() {
                // SAFETY: B2: two quiescent points of every scheduler ago it was the active one.
                drop(unsafe { Box::from_raw(old) });
            }
            if new.is_null() {
                touched.place.clear(touched.breakpoint);
                // SAFETY: B1: every scheduler has passed a quiescent point since the entry got its own
                // word back.
                drop(unsafe { Box::from_raw(touched.breakpoint) });
            }
        }
        rest == 0
    }
}

impl Touched {
    fn install(&self) {
        if self.comes {
            self.place.install(self.breakpoint);
            self.place.update_bif();
        }
    }

    fn uninstall(&self) {
        if !self.stays {
            // SAFETY: B1.
            let original = unsafe { &*self.breakpoint }.original();
            self.place.uninstall(self.breakpoint, original);
            self.place.update_bif();
        }
    }
}

/// `now` as it shall be; `None` when nothing changes.
pub(in crate::trace) fn changed(
    now: Option<&BpData>,
    session: &Arc<Shared>,
    mfa: Mfa,
    switch: Switch,
    kinds: u32,
    setting: &Setting,
) -> Option<BpData> {
    let mut data = now.cloned().unwrap_or_default();
    let at = data
        .sessions
        .iter()
        .position(|bp| bp.session.id == session.id);
    match (at, switch) {
        (None, Switch::On) => data.sessions.push(SessionBp::new(session)),
        (None, _) => return None,
        (Some(_), _) => {}
    }
    let at = at.unwrap_or(data.sessions.len() - 1);
    let bp = &mut data.sessions[at];
    match switch {
        Switch::On => {
            if kinds & !(kind::COUNT | kind::BEGIN) != 0 {
                note_calls_cost_otherwise();
            }
            bp.start(mfa, kinds);
            bp.set(kinds, setting);
        }
        Switch::Restart => bp.start(mfa, kinds & bp.kinds),
        Switch::Pause => bp.paused |= kinds & bp.kinds,
        Switch::Off if bp.kinds & kinds == 0 => return None,
        Switch::Off => bp.stop(kinds),
    }
    if data.sessions[at].kinds == 0 {
        data.sessions.remove(at);
    }
    data.update();
    Some(data)
}

impl SessionBp {
    fn new(session: &Arc<Shared>) -> SessionBp {
        SessionBp {
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
fn data_on_load(wanted: &[(Arc<Shared>, OnLoad)], mfa: Mfa, global: bool) -> Option<BpData> {
    let mut data = None;
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
            data = changed(data.as_ref(), session, mfa, Switch::On, others, &setting).or(data);
        }
        let setting = Setting {
            spec: on_load.meta_spec.clone(),
            meta: on_load.meta_tracer,
        };
        if meta != 0 {
            data = changed(data.as_ref(), session, mfa, Switch::On, meta, &setting).or(data);
        }
    }
    data
}

/// Sets the breakpoints that sessions want on all new code. `code` cannot be called yet.
pub(crate) fn loaded(code: &Arc<Module>) {
    let wanted = wanted_on_load();
    if wanted.is_empty() {
        return;
    }
    for &entry in &code.functions {
        let mfa = code.mfa(entry);
        if let Some(data) = data_on_load(&wanted, mfa, false) {
            let place = Place::Code(code.clone(), entry);
            let breakpoint = new_breakpoint(&place, Box::into_raw(Box::new(data)));
            place.install(breakpoint);
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
    // While no change is under way, nobody else is at what older code has left over. While one is, the export gets another
    // breakpoint, and what the old one says is not freed unless the change is at it, too.
    let alone = permission::try_seize();
    for &(function, arity, offset) in &code.exports {
        let export = export(code.name, function, arity);
        let place = Place::Export(export);
        let is_left_over = !place.breakpoint().is_null();
        let Some(data) = data_on_load(&wanted, place.mfa(), true) else {
            continue;
        };
        let data = Box::into_raw(Box::new(data));
        if is_left_over && alone {
            replace(place.breakpoint(), data);
        } else {
            new_breakpoint(&place, data);
        }
        lead_to(export, code.address(offset).word());
        export.addresses[generation].store(export.stub_address(), Ordering::Release);
    }
    if alone {
        permission::release();
    }
}

/// Has both generations of a breakpoint say what `data` says. The caller holds the permission.
fn replace(breakpoint: *mut Breakpoint, data: *mut BpData) {
    // SAFETY: B1: with the permission, none is freed.
    let generations = &unsafe { &*breakpoint }.generations;
    let old = [active(), staging()].map(|index| {
        let old = generations.get(index);
        generations.set(index, data);
        old
    });
    let second = if old[0] == old[1] { None } else { Some(old[1]) };
    for old in [Some(old[0]), second].into_iter().flatten() {
        if !old.is_null() {
            // SAFETY: B2: no generation any more; a scheduler that still reads it passes a quiescent point before it
            // goes.
            let old = unsafe { Box::from_raw(old) };
            sched::thread_progress().later(move || drop(old));
        }
    }
}

/// `code` is current no more, under the lock for modifications: nothing is traced of it, as in ERTS.
pub(crate) fn unloaded(code: &Arc<Module>) {
    session::unloaded(code.name);
    for &entry in &code.functions {
        let place = Place::Code(code.clone(), entry);
        // SAFETY: B1: none is freed under the lock.
        if let Some(breakpoint) = unsafe { place.breakpoint().as_ref() } {
            place.uninstall(
                std::ptr::from_ref(breakpoint).cast_mut(),
                breakpoint.original(),
            );
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
pub(in crate::trace) fn run(change: Change, pid: Pid, then: impl FnOnce() + Send + 'static) {
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
pub(in crate::trace) fn run_here(mut change: Change) -> usize {
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

/// Ends a session, and clears it up soon. For any thread.
pub(in crate::trace) fn end_later(session: Arc<Shared>) {
    if session::kill(&session) {
        clear_later(session);
    }
}

/// Clears a killed session up as soon as no other change is under way.
fn clear_later(session: Arc<Shared>) {
    sched::thread_progress().later(move || {
        // No process has this pid: nobody waits for the end of the change.
        let nobody = Pid(sched::ptab::INVALID_DATA);
        if permission::try_seize() {
            let ended = session.clone();
            run(Change::clear(&session), nobody, move || {
                session::forget(&ended)
            });
        } else {
            clear_later(session);
        }
    });
}
