//! The BIFs of `erl_debugger`, which set breakpoints at lines and look into suspended processes. Without `+D` they are
//! undefined. Source: `erl_debugger.c`, OTP 29.

use parking_lot::Mutex;

use super::{BifResult, Next, Raise, badarg, bifs};
use crate::heap::{Heap, Literals, size};
use crate::interp::debugger::{Function, Slot, StackFrame, stack_frames};
use crate::loader::debug::{self, Refused};
use crate::loader::module::{Mfa, Module, versions};
use crate::process::refs::{RefNumbers, make_ref};
use crate::process::{Process, Signal, deliver, exists, send};
use crate::sys::chance::random;
use crate::term::{Atom, Pid, Term, am};
use crate::value::map;

bifs! {
    all unrecorded;
    bif erl_debugger:"supported"/0 => supported_0;
    bif erl_debugger:"instrumentations"/0 => instrumentations_0;
    bif erl_debugger:"toggle_instrumentations"/1 => toggle_instrumentations_1;
    bif erl_debugger:"register"/1 => register_1;
    bif erl_debugger:"unregister"/2 => unregister_2;
    bif erl_debugger:"whereis"/0 => whereis_0;
    xbif erl_debugger:"breakpoint"/3 => breakpoint_3;
    bif erl_debugger:"breakpoints"/1 => breakpoints_1;
    bif erl_debugger:"breakpoints"/3 => breakpoints_3;
    bif erts_internal:"notify_breakpoint_hit"/3 => notify_breakpoint_hit_3;
    xbif erl_debugger:"stack_frames"/2 => stack_frames_2;
    xbif erl_debugger:"peek_stack_frame_slot"/4 => peek_stack_frame_slot_4;
    xbif erl_debugger:"xregs_count"/1 => xregs_count_1;
    xbif erl_debugger:"peek_xreg"/3 => peek_xreg_3;
}

/// The process that debugs, and the number of the session.
static DEBUGGER: Mutex<(Option<Pid>, u32)> = Mutex::new((None, 0));

/// `undef` where there is no debugging.
fn check_enabled() -> Result<(), Raise<'static>> {
    match debug::is_enabled() {
        true => Ok(()),
        false => Err(am::undef.into()),
    }
}

fn supported_0<'p>(_: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    Ok(Term::bool(debug::is_enabled()))
}

fn instrumentations_0<'p>(p: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    check_enabled()?;
    let lines = Term::bool(debug::instruments_lines());
    Ok(map::from_pairs(p, &[(am::line_breakpoint.term(), lines)]))
}

fn toggle_instrumentations_1<'p>(_: &'p Process, [toggles]: [Term<'p>; 1]) -> BifResult<'p> {
    check_enabled()?;
    let toggles = toggles.as_map().ok_or_else(badarg)?;
    let lines = toggles.get(am::line_breakpoint.term());
    if toggles.len() != usize::from(lines.is_some()) {
        return Err(badarg().into());
    }
    if let Some(lines) = lines {
        debug::instrument_lines(lines.as_bool().ok_or_else(badarg)?);
    }
    Ok(am::ok.term())
}

fn register_1<'p>(p: &'p Process, [pid]: [Term<'p>; 1]) -> BifResult<'p> {
    check_enabled()?;
    let pid = pid.as_pid().ok_or_else(badarg)?;
    let mut debugger = DEBUGGER.lock();
    if debugger.0.is_some_and(exists) {
        return Ok(p.tuple(&[am::error.term(), am::already_exists.term()]));
    }
    let mut bytes = [0; 4];
    random::fill(&mut bytes).map_err(|_| super::notsup())?;
    let session = u32::from_ne_bytes(bytes);
    *debugger = (Some(pid), session);
    Ok(p.tuple(&[am::ok.term(), p.unsigned(session.into())]))
}

fn unregister_2<'p>(_: &'p Process, [pid, session]: [Term<'p>; 2]) -> BifResult<'p> {
    check_enabled()?;
    let pid = pid.as_pid().ok_or_else(badarg)?;
    let session = session.as_small().ok_or_else(badarg)?;
    let mut debugger = DEBUGGER.lock();
    if debugger.0 == Some(pid) {
        if i64::from(debugger.1) != session {
            return Err(badarg().into());
        }
        debugger.0 = None;
    }
    Ok(am::ok.term())
}

fn whereis_0<'p>(_: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    check_enabled()?;
    let debugger = DEBUGGER.lock().0.filter(|pid| exists(*pid));
    Ok(debugger.map_or(am::undefined.term(), Pid::term))
}

/// A number as C takes it from a small integer: its lowest 32 bits.
fn int(term: Term<'_>) -> Option<i32> {
    term.as_small().map(|value| value as i32)
}

/// As [`int`], for an argument that counts something: not negative.
fn count(term: Term<'_>) -> Result<usize, Raise<'static>> {
    let value = int(term).and_then(|value| usize::try_from(value).ok());
    value.ok_or_else(badarg)
}

fn breakpoint_3(p: &mut Process) -> Next {
    match set_breakpoint(p, [p.x(0), p.x(1), p.x(2)]) {
        Err(raise) => p.raise(raise),
        Ok(Err(reason)) => {
            p.set_x(0, p.tuple(&[am::error.term(), reason]));
            Next::Return
        }
        Ok(Ok(())) => {
            // It goes on when no process runs any more that may not have seen the change.
            p.suspend_until_progress();
            p.set_x(0, am::ok.term());
            Next::Yield
        }
    }
}

/// Sets or clears a breakpoint; the inner error is why there is none.
fn set_breakpoint<'p>(
    p: &'p Process,
    [module, line, on]: [Term<'p>; 3],
) -> Result<Result<(), Term<'p>>, Raise<'static>> {
    check_enabled()?;
    let name = module.as_atom().ok_or_else(badarg)?;
    let number = int(line).and_then(|line| u32::try_from(line).ok());
    let number = number.filter(|line| *line > 0).ok_or_else(badarg)?;
    let on = on.as_bool().ok_or_else(badarg)?;
    Ok(debug::set_breakpoints(name, number, on).map_err(|refused| {
        let (kind, what) = match refused {
            Refused::NoModule => (am::badkey, module),
            Refused::UnsupportedModule => (am::unsupported, module),
            Refused::NoLine => (am::badkey, line),
            Refused::UnsupportedLine => (am::unsupported, line),
        };
        p.tuple(&[kind.term(), what])
    }))
}

/// `#{Line => IsSet}`
fn lines<'p>(p: &'p Process, module: &Module, entry: u32) -> Term<'p> {
    let lines = debug::breakpoints(module, entry).into_iter();
    let pairs: Vec<_> = lines
        .map(|(line, is_set)| (Term::small(i64::from(line)), Term::bool(is_set)))
        .collect();
    map::from_pairs(p, &pairs)
}

fn breakpoints_1<'p>(p: &'p Process, [module]: [Term<'p>; 1]) -> BifResult<'p> {
    check_enabled()?;
    let name = module.as_atom().ok_or_else(badarg)?;
    let Some(module) = versions(name).current else {
        return Ok(p.tuple(&[am::error.term(), am::badkey.term()]));
    };
    let function = |&entry: &u32| {
        let Mfa {
            function, arity, ..
        } = module.mfa(entry);
        let arity = Term::small(i64::from(arity));
        let name = p.tuple(&[function.term(), arity]);
        (name, lines(p, &module, entry))
    };
    let functions: Vec<_> = module.functions.iter().map(function).collect();
    Ok(p.tuple(&[am::ok.term(), map::from_pairs(p, &functions)]))
}

fn breakpoints_3<'p>(p: &'p Process, [module, function, arity]: [Term<'p>; 3]) -> BifResult<'p> {
    check_enabled()?;
    let name = module.as_atom().ok_or_else(badarg)?;
    let wanted = function.as_atom().ok_or_else(badarg)?;
    let wanted_arity = arity.as_small().ok_or_else(badarg)?;
    let refused = |what| {
        let reason = p.tuple(&[am::badkey.term(), what]);
        Ok(p.tuple(&[am::error.term(), reason]))
    };
    let Some(code) = versions(name).current else {
        return refused(module);
    };
    let is_it = |entry: &u32| {
        let mfa = code.mfa(*entry);
        mfa.function == wanted && i64::from(mfa.arity) == wanted_arity
    };
    match code.functions.iter().copied().find(is_it) {
        Some(entry) => Ok(p.tuple(&[am::ok.term(), lines(p, &code, entry)])),
        None => refused(p.tuple(&[function, arity])),
    }
}

/// Tells the debugger that the process has come to a breakpoint: `ok` if it is to wait.
fn notify_breakpoint_hit_3<'p>(
    p: &'p Process,
    [mfa, line, resume]: [Term<'p>; 3],
) -> BifResult<'p> {
    check_enabled()?;
    let is_mfa = matches!(
        mfa.as_tuple().map(crate::term::Tuple::elements),
        Some([m, f, a]) if m.as_atom().is_some() && f.as_atom().is_some() && a.as_small().is_some()
    );
    let is_resume = resume.as_fun().is_some_and(|fun| fun.arity() == 0);
    if !is_mfa || line.as_small().is_none() || !is_resume {
        return Err(badarg().into());
    }
    let (debugger, session) = *DEBUGGER.lock();
    if debugger == Some(p.pid()) {
        return Ok(am::abort.term());
    }
    let Some(debugger) = debugger else {
        return Ok(am::noproc.term());
    };
    let event = p.tuple(&[am::breakpoint.term(), p.pid().term(), mfa, line, resume]);
    let message = Heap::detached().into_message(|heap| {
        let (tag, session) = (am::debugger_event.term(), heap.unsigned(session.into()));
        heap.tuple(&[tag, session, heap.copy_in(event)])
    });
    let sent = send(debugger, Signal::own(message, debugger));
    Ok(if sent.is_ok() { am::ok } else { am::noproc }.term())
}

/// Describes a suspended process.
type Tell = Box<dyn for<'h> Fn(&Process, &'h Heap) -> Term<'h> + Send>;

/// Asks the suspended process in `x(0)`; the answer is `running` when it is not suspended. `tell` is made of the
/// other arguments.
fn ask_suspended(
    p: &mut Process,
    tell: impl FnOnce(&Process) -> Result<Tell, Raise<'static>>,
) -> Next {
    let asked = (|| {
        check_enabled()?;
        let pid = p.x(0).as_pid().filter(|pid| *pid != p.pid());
        Ok((pid.ok_or_else(badarg)?, tell(p)?))
    })();
    let (pid, tell) = match asked {
        Ok(asked) => asked,
        Err(raise) => return p.raise(raise),
    };
    let reference = make_ref();
    let question = question(p.pid(), reference, tell);
    super::process::ask_and_await(p, pid, (reference, question), am::running)
}

fn question(asker: Pid, reference: RefNumbers, tell: Tell) -> Signal {
    let running = move || super::process::reply(asker, reference, am::running.term());
    Signal::request(move |p| match p {
        Some(p) if p.is_suspended() && !p.is_exiting() => {
            if p.resting_registers().is_none() {
                // It is in the middle of something: it is asked again when it stands still.
                return deliver(p.pid(), question(asker, reference, tell));
            }
            let answer = Heap::detached().into_message(|heap| tell(p, heap));
            super::process::reply(asker, reference, answer.term());
        }
        _ => running(),
    })
}

/// `{value, Term}`, or `{too_large, Words}` of one that takes more than `most` words.
fn value<'h>(heap: &'h Heap, term: Term<'_>, most: usize) -> Term<'h> {
    let words = size(term, Literals::Count);
    if words > most {
        return heap.tuple(&[am::too_large.term(), Term::small(words as i64)]);
    }
    heap.tuple(&[am::value.term(), heap.copy_in(term)])
}

/// `#{function => {M, F, A}, line => Line | undefined}`, or what code of the runtime's own is called.
fn function<'h>(heap: &'h Heap, function: &Function) -> Term<'h> {
    let (mfa, line) = match *function {
        Function::Own(name) => return Atom::new(name).term(),
        Function::Known(mfa, line) => (mfa, line),
    };
    let arity = Term::small(i64::from(mfa.arity));
    let name = heap.tuple(&[mfa.module.term(), mfa.function.term(), arity]);
    let line = line.map_or(am::undefined.term(), |line| Term::small(i64::from(line)));
    map::from_pairs(
        heap,
        &[(am::function.term(), name), (am::line.term(), line)],
    )
}

fn slot<'h>(heap: &'h Heap, slot: &Slot<'_>, most: usize) -> Term<'h> {
    match slot {
        Slot::Value(term) => value(heap, *term, most),
        Slot::Catch(handler) => heap.tuple(&[am::catch_.term(), function(heap, handler)]),
    }
}

/// `{Number, Function, #{slots => _, code => _}}`
fn frame<'h>(heap: &'h Heap, it: &StackFrame<'_>, number: usize, most: usize) -> Term<'h> {
    let slots = it.slots().iter();
    let slots: Vec<_> = slots.map(|it| slot(heap, it, most)).collect();
    let info = [
        (am::code.term(), heap.unsigned(it.code)),
        (am::slots.term(), heap.list(&slots)),
    ];
    heap.tuple(&[
        Term::small(number as i64),
        function(heap, &it.function),
        map::from_pairs(heap, &info),
    ])
}

fn stack_frames_2(p: &mut Process) -> Next {
    ask_suspended(p, |p| {
        let most = count(p.x(1))?;
        Ok(Box::new(move |p, heap| {
            let frames = stack_frames(p);
            let numbers = (0..frames.len()).rev();
            let frames: Vec<_> = numbers
                .zip(&frames)
                .map(|(number, it)| frame(heap, it, number, most))
                .collect();
            heap.list(&frames)
        }))
    })
}

fn peek_stack_frame_slot_4(p: &mut Process) -> Next {
    ask_suspended(p, |p| {
        let (number, y, most) = (count(p.x(1))?, count(p.x(2))?, count(p.x(3))?);
        Ok(Box::new(move |p, heap| {
            let frames = stack_frames(p);
            let found = frames.iter().rev().nth(number);
            let found = found.and_then(|frame| frame.slots().get(y));
            found.map_or(am::undefined.term(), |it| slot(heap, it, most))
        }))
    })
}

fn xregs_count_1(p: &mut Process) -> Next {
    ask_suspended(p, |_| {
        Ok(Box::new(|p, _| {
            let count = p.resting_registers().map_or(0, <[_]>::len);
            Term::small(count as i64)
        }))
    })
}

fn peek_xreg_3(p: &mut Process) -> Next {
    ask_suspended(p, |p| {
        let (number, most) = (count(p.x(1))?, count(p.x(2))?);
        Ok(Box::new(move |p, heap| {
            let register = p.resting_registers().and_then(|x| x.get(number));
            register.map_or(am::undefined.term(), |it| value(heap, *it, most))
        }))
    })
}
