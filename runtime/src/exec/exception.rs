//! Exceptions: saves the trace, searches for a handler, and builds the stack trace that a program sees.
//!
//! A saved trace is a term that only the runtime reads: `[[Args | Infos] | Trace]`. `Trace` looks like a big integer to
//! the collector, and holds the current function and return addresses as they are on the stack: few traces are ever
//! looked at, so that the instructions they return to are found when one is. `Infos` is what the top entry tells besides its
//! place. A saved trace takes as many words as in ERTS, since programs see what they allocate. Source:
//! `save_stacktrace()`, `next_catch()`, `build_stacktrace()` in `beam_common.c`.

use smallvec::SmallVec;

use super::call::Called;
use crate::code::machine_code;
use crate::code::stubs::{for_each_return, for_each_return_word};
use crate::heap::Heap;
use crate::loader::module::{self, Mfa};
use crate::process::logger::log_uncaught;
use crate::process::order::director::may_log;
use crate::process::{Class, Exiting, Process};
use crate::term::{Atom, CodeAddress, RawTerm, Term, View, am, tag};

/// Return addresses kept, the current function included (`backtrace_depth`).
static DEPTH: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(8);

/// Sets how many entries a stack trace has; returns the old number.
pub(crate) fn set_backtrace_depth(depth: usize) -> usize {
    DEPTH.swap(depth, std::sync::atomic::Ordering::Relaxed)
}

/// How many entries a stack trace has.
pub(crate) fn backtrace_depth() -> usize {
    DEPTH.load(std::sync::atomic::Ordering::Relaxed)
}

/// The code that was running when an exception was raised.
#[derive(Clone, Copy)]
pub(crate) enum Current {
    /// The instruction at this address; the function is looked up from it.
    Code(CodeAddress),
    /// A BIF, or a function whose head refused its arguments: known by name. The address is the
    /// caller's, if the BIF was called from code.
    Function(Mfa, Option<CodeAddress>),
}

/// Flags in the first word of a saved trace.
mod flag {
    pub(super) const HAS_ARGS: u64 = 1;
    pub(super) const FROM_BIF: u64 = 2;
    pub(super) const BY_NAME: u64 = 4;
    pub(super) const GIVEN: u64 = 8;
    pub(super) const CLASS_SHIFT: u32 = 8;
}

const FIXED: usize = 4;

/// Saves the trace of the exception stored in `p`, unless it has one.
pub(crate) fn save_trace(p: &mut Process, current: Current) {
    let given = p.exception.trace;
    // SAFETY: T1: the exception's slots hold terms of this process.
    if given != RawTerm::NONE && is_saved_trace(unsafe { Term::new(given) }) {
        return;
    }
    let depth = DEPTH
        .load(std::sync::atomic::Ordering::Relaxed)
        .saturating_sub(1);
    // Field by field: whoever raises has just written them so.
    let (args, info, from_bif) = (p.exception.args, p.exception.info, p.exception.from_bif);
    let class = (p.exception.class as u64) << flag::CLASS_SHIFT;
    if given != RawTerm::NONE {
        // By `erlang:raise/3`: the trace is the one it was given.
        // SAFETY: T1, as above.
        let about = unsafe { p.cons(Term::new(given), Term::NIL) };
        let trace = opaque(p, FIXED, |words| words[0] = class | flag::GIVEN);
        p.exception.trace = p.cons(about, trace).raw();
        return;
    }
    let slot = |word: RawTerm| {
        if word == RawTerm::NONE {
            RawTerm::NIL
        } else {
            word
        }
    };
    let has_args = args != RawTerm::NONE;
    // SAFETY: T1: the exception's slots hold terms of this process.
    let (args, info) = unsafe { (Term::new(slot(args)), Term::new(slot(info))) };
    let infos = infos(p, current, from_bif, info);
    // As many words as ERTS takes, whatever the depth of the stack: programs see what they allocate.
    let trace = opaque(p, FIXED + depth, |words| {
        words[0] = class;
        if has_args {
            words[0] |= flag::HAS_ARGS;
        }
        fill_trace(p, current, from_bif, words);
    });
    p.exception.trace = p.cons(p.cons(args, infos), trace).raw();
}

/// Fills a saved trace's words, all 0 but for the first: with the place that is current, and with those of callers.
fn fill_trace(p: &Process, current: Current, from_bif: bool, words: &mut [u64]) {
    let mut at = FIXED;
    // What is current may be known by its return address.
    let mut behind = CodeAddress::NULL;
    match current {
        Current::Code(pc) => {
            words[1] = pc.word();
            behind = pc.behind();
        }
        Current::Function(mfa, caller) => {
            words[0] |= flag::BY_NAME | if from_bif { flag::FROM_BIF } else { 0 };
            words[1] = mfa.module.raw().0;
            words[2] = mfa.function.raw().0;
            words[3] = u64::from(mfa.arity);
            if let (Some(caller), Some(word)) = (caller, words.get_mut(at)) {
                *word = caller.behind().word();
                at += 1;
            }
        }
    }
    let mut is_first = !behind.is_null();
    for_each_return_word(p, |address| {
        let is_current = std::mem::take(&mut is_first) && machine_code::specific(address) == behind;
        if at < words.len() && !is_current {
            words[at] = address.word();
            at += 1;
        }
        at < words.len()
    });
}

/// The call that a return address was left by, if its code is still there: one word back lies in it.
fn call_before(address: CodeAddress) -> Option<CodeAddress> {
    machine_code::specific_if_known(address).map(CodeAddress::call)
}

/// What the top entry of a trace tells besides its place: `[{error_info, Map}]` or nothing.
fn infos<'p>(p: &'p Process, current: Current, from_bif: bool, info: Term<'p>) -> Term<'p> {
    let map = match current {
        Current::Function(mfa, _) if from_bif => info_of_bif(p, mfa, info),
        // `erlang:error/3`, and constructions of bitstrings: the map is there.
        _ => info.as_map().map(|_| info),
    };
    map.map_or(Term::NIL, |map| {
        p.cons(p.tuple(&[am::error_info.term(), map]), Term::NIL)
    })
}

/// A thing of so many words that the collector copies and does not look into: they are 0 until `fill` has changed them.
#[inline]
fn opaque<'h>(heap: &'h Heap, words: usize, fill: impl FnOnce(&mut [u64])) -> Term<'h> {
    let ptr = heap.alloc(1 + words);
    // SAFETY: H1: as many fresh words as are written, which nobody else has; shaped as a big integer.
    unsafe {
        *ptr = tag::make_header(words, tag::POS_BIG);
        let behind = ptr.add(1);
        behind.write_bytes(0, words);
        fill(std::slice::from_raw_parts_mut(behind, words));
        Term::new(RawTerm::boxed(ptr))
    }
}

/// A catch tag for the handler at `address`.
#[inline]
pub(crate) fn catch_tag(address: CodeAddress) -> u64 {
    (address.word() << 6) | tag::CATCH
}

/// Cuts the stack down to the innermost frame with a catch tag; returns the handler's address.
pub(crate) fn unwind(p: &Process) -> Option<CodeAddress> {
    let mut at = p.stop.get();
    let mut frame = at;
    while at < p.hend() {
        // SAFETY: H1.
        let word = unsafe { *at };
        if word & tag::IMMED2_MASK == tag::CATCH {
            p.stop.set(frame);
            return Some(CodeAddress::of_word(word >> 6));
        }
        at = at.wrapping_add(1);
        if word & tag::PRIMARY_MASK == tag::HEADER && word != 0 {
            frame = at;
        }
    }
    None
}

/// The stack trace that `saved`, an exception's trace, stands for.
pub(crate) fn build_stacktrace<'p>(p: &'p Process, saved: Term<'p>) -> Term<'p> {
    let Some(cell) = saved.as_cons() else {
        return Term::NIL;
    };
    let (Some(about), Some(trace)) = (cell.head().as_cons(), cell.tail().as_big()) else {
        return saved;
    };
    let words = trace.limbs();
    if words[0] & flag::GIVEN != 0 {
        return about.head();
    }
    let mut items = Vec::with_capacity(words.len());
    let args = (words[0] & flag::HAS_ARGS != 0).then(|| about.head());
    let first = if words[0] & flag::BY_NAME != 0 {
        let atom = |word| {
            Term::immed(RawTerm(word))
                .as_atom()
                .expect("a name was saved")
        };
        let mfa = Mfa {
            module: atom(words[1]),
            function: atom(words[2]),
            arity: words[3] as u8,
        };
        let place = module::versions(mfa.module).current.and_then(|code| {
            let entry = code.find(mfa.function, mfa.arity)?;
            let at = entry.checked_sub(crate::code::op::entry::WORDS as u32)?;
            code.place_at(at, p)
        });
        let place = if words[0] & flag::FROM_BIF != 0 {
            None
        } else {
            place
        };
        Some((mfa, place))
    } else {
        lookup(p, CodeAddress::of_word(words[1]))
    };
    if let Some((mfa, place)) = first {
        items.push(item(p, mfa, args, place, about.tail()));
    }
    for &address in words[FIXED..].iter().take_while(|address| **address != 0) {
        let call = call_before(CodeAddress::of_word(address));
        if let Some((mfa, place)) = call.and_then(|call| lookup(p, call)) {
            items.push(item(p, mfa, None, place, Term::NIL));
        }
    }
    p.list(&items)
}

/// The function that a process that does not run, or that called a BIF, is in.
pub(crate) fn current_function(p: &Process) -> Option<Mfa> {
    frames(p, 1).first().map(|(mfa, _)| *mfa)
}

/// The BIF whose call on dirty schedulers `p` waits for, or stands in for.
fn native_function(p: &Process, pc: CodeAddress) -> Option<(Mfa, Place<'_>)> {
    // SAFETY: I1: it has left at a function's entry.
    (p.is_away() || p.is_stand_in()).then(|| (unsafe { Called::at(pc) }.mfa(), None))
}

/// At most `depth` functions that it is in, with the lines in them: 0 where one is not known.
pub(crate) fn lines(p: &Process, depth: usize) -> Vec<(Mfa, u32)> {
    let frames = frames(p, depth).into_iter();
    frames
        .map(|(mfa, place)| (mfa, place.map_or(0, |(_, line)| line)))
        .collect()
}

/// At most `depth` functions that it is in, and where in them.
fn frames(p: &Process, depth: usize) -> SmallVec<[(Mfa, Place<'_>); 1]> {
    let mut frames = SmallVec::new();
    let pc = p.pc.get();
    let shown = p.with_psd(|psd| psd.work.as_ref().and_then(|work| work.shown_as()));
    if depth > 0
        && let Some((function, arity)) = shown.flatten()
    {
        let module = am::erts_internal;
        frames.push((
            Mfa {
                module,
                function,
                arity,
            },
            None,
        ));
    } else if depth > 0
        && let Some((module, function, arity)) = p.suspended_in()
    {
        let bif = Mfa {
            module,
            function,
            arity,
        };
        frames.push((bif, None));
        frames.extend(lookup(p, pc).filter(|_| depth > 1));
    } else if !pc.is_null() && depth > 0 {
        frames.extend(lookup(p, pc).or_else(|| native_function(p, pc)));
    } else if p.stack_words() == 0 {
        frames.push((not_in_code(p), None));
    }
    if frames.len() < depth {
        let mut last = CodeAddress::NULL;
        for_each_return(p, |address| {
            // As in an exception's trace.
            if address != last {
                last = address;
                frames.extend(lookup(p, address.call()));
            }
            frames.len() < depth
        });
    }
    frames
}

/// Where it is in its code: `current_function`, `current_location` or `current_stacktrace` as `process_info/2`
/// gives them.
pub(crate) fn where_is<'p>(p: &'p Process, name: Atom) -> Term<'p> {
    let depth = if name == am::current_stacktrace {
        DEPTH.load(std::sync::atomic::Ordering::Relaxed)
    } else {
        1
    };
    // It is in no code, and its stack is empty.
    if name == am::current_stacktrace && p.pc.get().is_null() && p.stack_words() == 0 {
        return Term::NIL;
    }
    let frames = frames(p, depth);
    if name == am::current_stacktrace {
        let items: Vec<_> = frames
            .into_iter()
            .map(|(mfa, place)| item(p, mfa, None, place, Term::NIL))
            .collect();
        return p.list(&items);
    }
    let Some((mfa, place)) = frames.into_iter().next() else {
        return am::undefined.term();
    };
    if name == am::current_location {
        return item(p, mfa, None, place, Term::NIL);
    }
    let arity = Term::small(i64::from(mfa.arity));
    p.tuple(&[mfa.module.term(), mfa.function.term(), arity])
}

/// Who called the function that a breakpoint has been hit in, or rather where it returns to: `{M, F, A}` or
/// `undefined`. With `line`, `{M, F, A, {File, Line} | undefined}`.
pub(crate) fn caller(p: &Process, line: bool) -> Term<'_> {
    let mut found = None;
    for_each_return(p, |address| {
        found = lookup(p, address.call());
        false
    });
    let Some((mfa, place)) = found else {
        return am::undefined.term();
    };
    let arity = Term::small(i64::from(mfa.arity));
    let (module, function) = (mfa.module.term(), mfa.function.term());
    if !line {
        return p.tuple(&[module, function, arity]);
    }
    let place = match place {
        Some((file, line)) => p.tuple(&[file, p.unsigned(u64::from(line))]),
        None => am::undefined.term(),
    };
    p.tuple(&[module, function, arity, place])
}

/// The callers of the function that a breakpoint has been hit in, at most `depth` of them, as a stack trace.
pub(crate) fn callers(p: &Process, depth: usize) -> Term<'_> {
    let mut items = Vec::new();
    let (mut left, mut last) = (depth, CodeAddress::NULL);
    for_each_return(p, |address| {
        if left > 0 && address != last {
            last = address;
            left -= 1;
            if let Some((mfa, place)) = lookup(p, address.call()) {
                items.push(item(p, mfa, None, place, Term::NIL));
            }
        }
        left > 0
    });
    p.list(&items)
}

/// The call that it was last scheduled for; none where it goes on within a function. Source: `current` of `Process` in
/// `erl_process.h`.
pub(crate) fn current_call(p: &Process) -> Option<Mfa> {
    let pc = p.pc.get();
    if pc.is_null() {
        return Some(not_in_code(p));
    }
    let Some((module, offset)) = module::module_at(pc) else {
        return native_function(p, pc).map(|(mfa, _)| mfa);
    };
    let entry = module.function_at(offset)?;
    (entry == offset).then(|| module.mfa(entry))
}

/// Where a process is that runs no code: it has yet to start, or to be woken from `hibernate/3`.
pub(crate) fn not_in_code(p: &Process) -> Mfa {
    if p.is_hibernated() {
        return Mfa {
            module: am::erlang,
            function: am::hibernate,
            arity: 3,
        };
    }
    let (module, function, arity) = p.initial_call.get();
    Mfa {
        module,
        function,
        arity,
    }
}

/// File, a string, and line.
pub(crate) type Place<'p> = Option<(Term<'p>, u32)>;

pub(crate) fn lookup(p: &Process, address: CodeAddress) -> Option<(Mfa, Place<'_>)> {
    let (module, offset) = module::module_at(address)?;
    let entry = module.function_at(offset)?;
    Some((module.mfa(entry), module.place_at(offset, p)))
}

/// The `error_info` of a BIF: which module tells more of its errors, and the cause, if there is one.
fn info_of_bif<'p>(p: &'p Process, mfa: Mfa, cause: Term<'p>) -> Option<Term<'p>> {
    let formatter = match mfa.module {
        am::atomics | am::counters | am::erlang | am::erts_internal | am::persistent_term => {
            am::erl_erts_errors
        }
        am::code | am::os => am::erl_kernel_errors,
        am::binary | am::ets | am::lists | am::maps | am::math | am::re | am::unicode => {
            am::erl_stdlib_errors
        }
        _ => return None,
    };
    let module = (am::module.term(), formatter.term());
    Some(if cause.is_nil() {
        crate::value::map::from_pairs(p, &[module])
    } else {
        crate::value::map::from_pairs(p, &[module, (am::cause.term(), cause)])
    })
}

/// `{M, F, Arity or Args, Location}`; the location ends with `infos`.
fn item<'p>(
    p: &'p Process,
    mfa: Mfa,
    args: Option<Term<'p>>,
    place: Place<'p>,
    infos: Term<'p>,
) -> Term<'p> {
    let arity = args.unwrap_or(Term::small(i64::from(mfa.arity)));
    let location = place.map_or(infos, |(file, line)| {
        let line = p.tuple(&[am::line.term(), p.unsigned(u64::from(line))]);
        let file = p.tuple(&[am::file.term(), file]);
        p.cons(file, p.cons(line, infos))
    });
    p.tuple(&[mfa.module.term(), mfa.function.term(), arity, location])
}

/// What a `catch` returns for the exception `class`, `value`, `saved`.
pub(crate) fn caught<'p>(
    p: &'p Process,
    class: Atom,
    value: Term<'p>,
    saved: Term<'p>,
) -> Term<'p> {
    match Class::from_atom(class) {
        Some(Class::Throw) => value,
        Some(Class::Error) => {
            let reason = p.tuple(&[value, build_stacktrace(p, saved)]);
            p.tuple(&[am::EXIT.term(), reason])
        }
        _ => p.tuple(&[am::EXIT.term(), value]),
    }
}

/// The reason that an uncaught exception ends its process with.
fn exit_reason<'p>(p: &'p Process) -> Term<'p> {
    let exception = &p.exception;
    // SAFETY: T1: the exception's slots hold terms of this process.
    let (value, saved) = unsafe { (Term::new(exception.value), Term::new(exception.trace)) };
    match exception.class {
        Class::Exit => value,
        Class::Error => p.tuple(&[value, build_stacktrace(p, saved)]),
        Class::Throw => {
            let reason = p.tuple(&[am::nocatch.term(), value]);
            p.tuple(&[reason, build_stacktrace(p, saved)])
        }
    }
}

/// The code of `p` has ended it with no exit reason set: by an exception that nobody caught, which is logged unless it
/// is an exit.
pub(crate) fn note_uncaught(p: &Process, _: Exiting) {
    if p.is_exiting() {
        return;
    }
    let reason = exit_reason(p);
    if p.exception.class != Class::Exit && may_log() {
        log_uncaught(p, reason);
    }
    let _ = p.exit_with(reason);
}

/// Is `term` a trace saved by [`save_trace`], not yet a list the program can read?
fn is_saved_trace(term: Term<'_>) -> bool {
    matches!(term.view(), View::Cons(cell)
        if cell.head().as_cons().is_some() && cell.tail().as_big().is_some())
}

/// The exception that a saved trace belongs to is raised again, in another class: `erlang:raise/3` of
/// a trace that has not been made a list.
pub(crate) fn set_class(_: &Process, saved: Term<'_>, class: Class) {
    let Some(cell) = saved.as_cons().filter(|_| is_saved_trace(saved)) else {
        return;
    };
    let flags = cell.tail().raw().ptr().wrapping_add(1);
    // SAFETY: H1: the thing is the process's own, its words follow the header, and nobody else looks.
    unsafe { *flags = *flags & !(3 << flag::CLASS_SHIFT) | (class as u64) << flag::CLASS_SHIFT };
}

/// The class of the exception that a saved trace belongs to.
pub(crate) fn class_of(saved: Term<'_>) -> Class {
    let trace = saved.as_cons().and_then(|cell| cell.tail().as_big());
    match trace.map(|trace| (trace.limbs()[0] >> flag::CLASS_SHIFT) & 3) {
        Some(1) => Class::Exit,
        Some(2) => Class::Throw,
        _ => Class::Error,
    }
}
