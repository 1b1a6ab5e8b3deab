//! Calls NIFs, and handles the ways in which they end.
//!
//! A NIF is called with an environment ([`Env`], which C knows as `ErlNifEnv`): the heap that its terms lie in and the
//! process that called it. As a BIF does, a NIF builds in heap fragments where the heap is full, and nothing is
//! collected while it runs. So every term that it has in hand stays where it is until it returns.
//!
//! A NIF that schedules another function to go on in (`enif_schedule_nif()`) rests as [`Resting`] work of its process,
//! as does the result of a call on a dirty scheduler. The process stays at the entry of the function that was called. A
//! dirty scheduler makes the call for its stand-in (`process/dirty.rs`).
//!
//! Source: `erl_nif.c` and `erl_nfunc_sched.c`, OTP 29. Invariants:
//! - N1: a library does what `erl_nif.h` asks: it uses an environment as long as that lives, on the thread that it is
//!   for, and gives it terms of its own.
//! - N2: an environment's heap and process outlive it; nothing collects that heap meanwhile.
#![expect(unsafe_code, reason = "libraries are called by address")]

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use smallvec::SmallVec;

use super::bif::{BifEnd, after_bif};
use super::call::Called;
use super::dirty::{from_ordinary, long};
use super::exception::Current;
use super::raise::raise;
use crate::code::nif::{Body, Nif, delaying};
use crate::code::op::entry as head;
use crate::heap::{Heap, NIF_CHECKS};
use crate::loader::module::Module;
use crate::process::{Dirty, Exception, NativePc, Outcome, Process, Raise, work};
use crate::sys::crash;
use crate::term::{Atom, CodeAddress, RawTerm, Term};

/// Memory that an environment's owner has in hand until it is cleared. An environment has it behind one pointer, which
/// compiled code sees to be null.
#[derive(Default)]
pub(crate) struct Temporaries(Vec<Box<[u64]>>);

impl Temporaries {
    pub(crate) fn push(&mut self, words: Box<[u64]>) {
        self.0.push(words);
    }
}

/// What a library knows as `ErlNifEnv`.
#[repr(C)]
pub(crate) struct Env {
    /// The library whose code runs with it; null where none does.
    pub(crate) library: *const c_void,
    heap: *const Heap,
    /// The process that called; null in an environment of no process.
    process: *const Process,
    /// The reason of the exception that it has raised; no term where it has raised none.
    pub(crate) exception: Cell<RawTerm>,
    /// What the call goes on in.
    pub(crate) scheduled: Cell<Option<Box<Scheduled>>>,
    /// Memory to free when the call ends, or the environment is cleared.
    pub(crate) temporaries: Cell<Option<Box<Temporaries>>>,
}

/// For compiled code, which makes environments of plain calls itself, and ends calls in which nothing has been asked for:
/// where an environment has its fields, all null or no term at first but the first three, and its size.
pub(crate) mod layout {
    use std::mem::offset_of;

    use super::Env;

    pub(crate) const LIBRARY: i32 = offset_of!(Env, library) as i32;
    pub(crate) const HEAP: i32 = offset_of!(Env, heap) as i32;
    pub(crate) const PROCESS: i32 = offset_of!(Env, process) as i32;
    pub(crate) const EXCEPTION: i32 = offset_of!(Env, exception) as i32;
    pub(crate) const SCHEDULED: i32 = offset_of!(Env, scheduled) as i32;
    pub(crate) const TEMPORARIES: i32 = offset_of!(Env, temporaries) as i32;
    pub(crate) const BYTES: i32 = size_of::<Env>() as i32;
}

/// A function that a NIF's call goes on in.
pub(crate) struct Scheduled {
    pub(crate) body: Body,
    pub(crate) dirty: Option<Dirty>,
    pub(crate) args: SmallVec<[RawTerm; 8]>,
}

impl Env {
    /// An environment for a call that `p` makes.
    pub(crate) fn of_process(p: &Process, library: *const c_void) -> Env {
        let heap: &Heap = p;
        Env {
            process: p,
            ..Env::of_heap(heap, library)
        }
    }

    /// An environment of no process, whose terms lie in `heap`.
    pub(crate) fn of_heap(heap: *const Heap, library: *const c_void) -> Env {
        Env {
            library,
            heap,
            process: std::ptr::null(),
            exception: Cell::new(RawTerm::NONE),
            scheduled: Cell::new(None),
            temporaries: Cell::default(),
        }
    }

    /// The heap that its terms lie in.
    pub(crate) fn heap(&self) -> &Heap {
        // SAFETY: N2.
        unsafe { &*self.heap }
    }

    /// The process that called.
    pub(crate) fn process(&self) -> Option<&Process> {
        // SAFETY: N2.
        unsafe { self.process.as_ref() }
    }

    /// The terms that a call with it that has returned `result` gives.
    fn given(&self, result: RawTerm) -> SmallVec<[RawTerm; 8]> {
        let exception = self.exception.get();
        if exception != RawTerm::NONE {
            return SmallVec::from_elem(exception, 1);
        }
        match self.scheduled.take() {
            Some(scheduled) => {
                let args = scheduled.args.clone();
                self.scheduled.set(Some(scheduled));
                args
            }
            None if result == RawTerm::NONE => SmallVec::new(),
            None => SmallVec::from_elem(result, 1),
        }
    }

    /// Is `result` what the call gives, and nothing else to do?
    #[inline]
    fn has_returned(&mut self, result: RawTerm) -> bool {
        self.exception.get() == RawTerm::NONE
            && self.scheduled.get_mut().is_none()
            && result != RawTerm::NONE
    }

    /// What a call with it that has returned `result` has come to.
    fn ended<'p>(self, result: RawTerm) -> Resting<'p> {
        // SAFETY: N1: a term of the process that called.
        let term = |raw| unsafe { Term::new(raw) };
        let exception = self.exception.get();
        if exception != RawTerm::NONE {
            let reason = term(exception);
            return Resting::Raise { reason };
        }
        if let Some(scheduled) = self.scheduled.take() {
            let args = scheduled.args.iter().map(|arg| term(*arg)).collect();
            let Scheduled { body, dirty, .. } = *scheduled;
            return Resting::Next { args, body, dirty };
        }
        if result == RawTerm::NONE {
            let reason = Atom::new("badreturn").term();
            return Resting::Raise { reason };
        }
        let value = term(result);
        Resting::Value { value }
    }
}

/// A NIF's call between two time slices, or on its way to or from a dirty scheduler.
enum Resting<'p> {
    /// To go on in this function.
    Next {
        args: Vec<Term<'p>>,
        body: Body,
        dirty: Option<Dirty>,
    },
    /// Has returned this.
    Value { value: Term<'p> },
    /// Has raised this.
    Raise { reason: Term<'p> },
}

work! {
    enum Resting {
        Next { args; body, dirty }
        Value { value; }
        Raise { reason; }
    }
}

/// Calls the NIF that is the body of the function with the entry `at`, or goes on with its call. The arguments are in
/// the registers.
#[inline]
pub(crate) fn call_nif(p: &mut Process, at: CodeAddress) -> BifEnd {
    if nif_at(at).dirty.is_some() || p.has_work() {
        return call_in_stages(p, at, None);
    }
    let (nif, arity) = (nif_at(at), called_at(at).arity);
    let mut env = Env::of_process(p, nif.library.as_ptr());
    let result = call(p, nif, nif.body, &env, arity.into(), p.registers());
    if env.has_returned(result) && !p.wants_collection() {
        // SAFETY: N1: a term of the process that called.
        p.set_x(0, unsafe { Term::new(result) });
        return BifEnd::Return;
    }
    end_call(p, at, env, result)
}

/// The end of such a call, whose first function has returned `result`.
pub(crate) fn end_call(p: &mut Process, at: CodeAddress, env: Env, result: RawTerm) -> BifEnd {
    let ended = (env, result);
    call_in_stages(p, at, Some(ended))
}

/// Makes a call that does not just return a value: `ended` is how its first function has ended, if that has been
/// called.
#[cold]
fn call_in_stages(p: &mut Process, at: CodeAddress, ended: Option<(Env, RawTerm)>) -> BifEnd {
    let called = called_at(at);
    let mut ended = ended;
    loop {
        let ended = match ended.take() {
            Some((env, result)) => Ended::Rests(env.ended(result)),
            None => go_on(p, at, called.arity, from_ordinary),
        };
        let raised = match ended {
            Ended::OnDirty(to) => {
                p.native_pc.set(NativePc::NONE);
                return BifEnd::Again(Outcome::Dirty(long(to)));
            }
            Ended::Rests(next @ Resting::Next { .. }) => {
                rest(p, next);
                None
            }
            Ended::Rests(Resting::Value { value }) => {
                p.set_x(0, value);
                return after_bif(p, BifEnd::Return, 1);
            }
            Ended::Rests(Resting::Raise { reason }) => Some(raised(p, called, reason)),
        };
        if let Some(exception) = raised {
            return raise_as(p, exception, called);
        }
        if let end @ BifEnd::Exit(_) = after_bif(p, BifEnd::Return, called.arity.into()) {
            return end;
        }
        p.fcalls.set(p.fcalls.get() - 1);
        if p.fcalls.get() <= 0 {
            return BifEnd::Again(Outcome::Yield);
        }
    }
}

/// Keeps what a call has come to for the next time that the process is at the NIF's entry.
fn rest<'p>(p: &'p Process, resting: Resting<'p>) {
    let _yields = p.put_off(resting);
}

fn raise_as(p: &mut Process, exception: Exception, called: Called) -> BifEnd {
    p.exception = exception;
    match raise(p, Current::Function(called.mfa(), None)) {
        Ok(handler) => BifEnd::Jump(handler),
        Err(exiting) => BifEnd::Exit(exiting),
    }
}

/// The exception of a NIF: its stack trace shows the function that was called with its arguments, whatever that has gone
/// on in.
fn raised(p: &Process, called: Called, reason: Term<'_>) -> Exception {
    let mut exception = Exception::from_raise(p, &Raise::Error(reason));
    let args: Vec<Term<'_>> = (0..usize::from(called.arity)).map(|i| p.x(i)).collect();
    exception.args = p.list(&args).raw();
    exception
}

/// How far a call has come on this thread.
enum Ended<'p> {
    Rests(Resting<'p>),
    /// It goes on on a dirty scheduler.
    OnDirty(Dirty),
}

/// Runs the NIF that is the body of the function with the entry `at`, or what its call goes on in, unless that is to run
/// `elsewhere`.
fn go_on(
    p: &Process,
    at: CodeAddress,
    arity: u8,
    elsewhere: impl Fn(Option<Dirty>) -> Option<Dirty>,
) -> Ended<'_> {
    let nif = nif_at(at);
    let rested = p.take_work_if::<Resting<'_>>().map(|it| *it);
    if let Some(rested) = &rested {
        check_rested(p, nif, rested);
    }
    let (body, dirty, next) = match rested {
        None => (nif.body, nif.dirty, None),
        Some(Resting::Next { args, body, dirty }) => (body, dirty, Some(args)),
        Some(ended) => return Ended::Rests(ended),
    };
    let called = |arity, args| {
        let env = Env::of_process(p, nif.library.as_ptr());
        let result = call(p, nif, body, &env, arity, args);
        Ended::Rests(env.ended(result))
    };
    match (elsewhere(dirty), next) {
        (None, None) => called(arity.into(), p.registers()),
        (None, Some(args)) => called(args.len(), args.as_ptr().cast()),
        (Some(on), None) => Ended::OnDirty(on),
        (Some(on), Some(args)) => {
            rest(p, Resting::Next { args, body, dirty });
            Ended::OnDirty(on)
        }
    }
}

/// Calls `body` for `nif` with the `arity` words at `args`; gives its result.
#[inline]
fn call(
    p: &Process,
    nif: &Nif,
    body: Body,
    env: &Env,
    arity: usize,
    args: *const RawTerm,
) -> RawTerm {
    let _delays = nif.delays_halt().then(delaying::Call::begin);
    let this = std::ptr::from_ref(env).cast_mut().cast();
    let before = NIF_CHECKS.then(|| p.mark());
    let _running = nif.native.running();
    // SAFETY: N1; P2, T1: the arguments are live registers, or terms of the process, which nothing collects.
    let result = unsafe { body(this, arity as c_int, args) };
    // What a stand-in gives refers to its caller's heap: that is checked when the caller is back.
    if let Some(before) = before
        && !p.is_stand_in()
    {
        checked(p.verify_since(&before, &env.given(result)));
    }
    result
}

/// Ends the machine where native code has given what it may not.
fn checked(given: Result<(), String>) {
    if let Err(wrong) = given {
        crash::abort(&wrong);
    }
}

impl Resting<'_> {
    /// The terms that a call gives.
    fn given(&self) -> SmallVec<[RawTerm; 8]> {
        let terms = match self {
            Resting::Next { args, .. } => &args[..],
            Resting::Value { value: term } | Resting::Raise { reason: term } => {
                std::slice::from_ref(term)
            }
        };
        terms.iter().map(|term| term.raw()).collect()
    }
}

/// Checks what a call on a dirty scheduler has left in the process that is back.
fn check_rested(p: &Process, nif: &Nif, rested: &Resting<'_>) {
    if NIF_CHECKS && !p.is_stand_in() {
        let _running = nif.native.running();
        checked(p.verify_fragments(&rested.given()));
    }
}

/// A NIF that the machine calls itself. Its code, and with that its library, stay as long as this.
pub(crate) struct Callable {
    code: Arc<Module>,
    entry: u32,
}

impl Callable {
    /// The function of a module, if it is a NIF of a library.
    pub(crate) fn of(code: &Arc<Module>, function: Atom, arity: u8) -> Option<Callable> {
        let callable = Callable {
            code: code.clone(),
            entry: code.find(function, arity)?,
        };
        (!callable.nif().is_null()).then_some(callable)
    }

    fn nif(&self) -> *const Nif {
        let word = self.code.word(self.entry, head::ARITY);
        head::nif(word.load(Ordering::Acquire))
    }

    /// Calls it with an environment of no process, whose terms lie in `heap`. `None` where it raises an exception, or
    /// returns no term.
    pub(crate) fn call<'h>(&self, heap: &'h Heap, args: &[Term<'h>]) -> Option<Term<'h>> {
        // SAFETY: C3: the head names it as long as the code lives.
        let nif = unsafe { &*self.nif() };
        let env = Env::of_heap(heap, nif.library.as_ptr());
        let this = std::ptr::from_ref(&env).cast_mut().cast();
        let _running = nif.native.running();
        // SAFETY: N1; T1: the arguments are in hand, and `Term` is a word.
        let result = unsafe { (nif.body)(this, args.len() as c_int, args.as_ptr().cast()) };
        let has_raised = env.exception.get() != RawTerm::NONE;
        // SAFETY: N1: a term of the environment, or one that it was given.
        (!has_raised && result != RawTerm::NONE).then(|| unsafe { Term::new(result) })
    }
}

/// Runs, on a dirty scheduler, what the process that stays at a NIF's entry waits for. What that gives rests in the
/// process.
pub(super) fn call_dirty(p: &Process) {
    let at = p.pc.get();
    if let Ended::Rests(resting) = go_on(p, at, called_at(at).arity, |_| None) {
        rest(p, resting);
    }
}

/// The NIF that is the body of the function with the entry `at`.
fn nif_at(at: CodeAddress) -> &'static Nif {
    // SAFETY: C3, I1: the head of a function that begins with `Op::NifEntry` names its NIF.
    unsafe { &*head::nif(*at.code().offset(head::ARITY)) }
}

fn called_at(at: CodeAddress) -> Called {
    // SAFETY: I1: a function's entry.
    unsafe { Called::at(at) }
}
