//! The loop: one arm for each specific instruction.
//!
//! Program counter, heap top, stack top and reductions live in locals; they are swapped out to the
//! process around everything that is not the loop itself (I2).

use std::mem::MaybeUninit;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use super::call::{self, Called, Ready};
use super::debugger::{self, Hit};
use super::slow::{Flow, Slow};
use super::{bits, maps, records};
use crate::code::bif::{self, Bif, Call};
use crate::code::op::{Op, Y_BIT, entry as head};
use crate::code::stubs::{for_each_return, spawn_entry};
use crate::code::{Export, FunEntry, entry};
use crate::exec::arith;
use crate::exec::exception;
use crate::exec::exception::Current;
use crate::heap::{Heap, RESERVED_WORDS};
use crate::loader::module::Mfa;
use crate::process::Outcome;
use crate::process::{
    CONTEXT_REDS, Class, Exception, Exiting, Process, Saved, WaitTimeout, X_REGISTERS,
};
use crate::process::{Next, Raise};
use crate::term::{RawTerm, Term, am, compare, tag};
use crate::trace;
use crate::value::number;

/// Float registers there are.
const FLOAT_REGISTERS: usize = 1024;

/// The BIFs behind the operators, for operands that the fast paths leave.
struct Operators {
    rows: [&'static Bif; 11],
}

const OPERATORS: [(Op, &str); 10] = [
    (Op::Add, "+"),
    (Op::Sub, "-"),
    (Op::Mul, "*"),
    (Op::IntDiv, "div"),
    (Op::Rem, "rem"),
    (Op::Band, "band"),
    (Op::Bor, "bor"),
    (Op::Bxor, "bxor"),
    (Op::Bsl, "bsl"),
    (Op::Bsr, "bsr"),
];

fn operator(op: Op) -> &'static Bif {
    static ROWS: OnceLock<Operators> = OnceLock::new();
    let rows = ROWS.get_or_init(|| {
        let find = |name: &str| {
            let name = crate::term::Atom::new(name);
            bif::find(am::erlang, name, 2).map_or_else(|| bif::missing(2), |i| bif::all()[i])
        };
        let mut rows = [find("send"); 11];
        for (row, (_, name)) in rows.iter_mut().zip(OPERATORS) {
            *row = find(name);
        }
        Operators { rows }
    });
    let index = OPERATORS
        .iter()
        .position(|(o, _)| *o == op)
        .unwrap_or(OPERATORS.len());
    rows.rows[index]
}

/// The address of the register with this code.
///
/// # Safety
/// I1, P2: `x` and `stop` are the process's registers and stack top.
#[inline(always)]
unsafe fn register(x: *mut u64, stop: *mut u64, code: u64) -> *mut u64 {
    let base = if code & Y_BIT == 0 {
        x as usize
    } else {
        stop as usize - Y_BIT as usize
    };
    (base + code as usize) as *mut u64
}

/// Runs `p` until its time is used up, it waits or it exits.
pub(crate) fn run(p: &mut Process) -> Outcome {
    trace::breakpoint::scheduled_in(p);
    let outcome = if p.flags.get().saves_calls {
        run_code::<true>(p)
    } else {
        run_code::<false>(p)
    };
    trace::breakpoint::scheduled_out(p);
    if !matches!(outcome, Outcome::Exit(_)) && p.shared().tracee.has(trace::events::AT_TURNS) {
        trace::events::scheduled_out(p);
    }
    outcome
}

/// The loop itself. Starts at the process's `pc`, with its live registers in place. There is another one for
/// processes that save their calls, so that the others need not ask.
#[expect(clippy::too_many_lines, reason = "one arm for each instruction")]
#[expect(clippy::cognitive_complexity, reason = "one arm for each instruction")]
fn run_code<const SAVES: bool>(p: &mut Process) -> Outcome {
    let x: *mut u64 = p.registers().cast();
    let mut pc = p.pc.get();
    if pc.is_null() {
        pc = spawn_entry();
    }
    let mut htop = p.htop.get();
    let mut stop = p.stop.get();
    let mut fcalls = p.fcalls.get();
    // Float registers never live across a call or a turn's end, and are written before they are read.
    let mut f = [const { MaybeUninit::<f64>::uninit() }; FLOAT_REGISTERS];

    macro_rules! swapout {
        () => {
            p.htop.set(htop);
            p.stop.set(stop);
            p.fcalls.set(fcalls);
        };
    }
    macro_rules! swapin {
        () => {
            htop = p.htop.get();
            stop = p.stop.get();
            fcalls = p.fcalls.get();
        };
    }
    // SAFETY of every line below: I1 for code words, I3 and P2 for registers, H1 for heap and stack:
    // the compiler has asked for the words it writes (`test_heap`, `allocate`).
    // SAFETY: I1, I2, I3, P2, H1, as said.
    unsafe {
        'fetch: loop {
            debug_assert!(!p.is_exiting(), "a process that exits runs no instruction");
            let mut word = *pc;
            macro_rules! a {
                () => {
                    (word >> 16) & 0xffff
                };
            }
            macro_rules! b {
                () => {
                    (word >> 32) & 0xffff
                };
            }
            macro_rules! c {
                () => {
                    word >> 48
                };
            }
            macro_rules! arg {
                ($n:expr) => {
                    *pc.add($n)
                };
            }
            macro_rules! reg {
                ($code:expr) => {
                    register(x, stop, $code)
                };
            }
            macro_rules! src {
                ($n:expr) => {{
                    let operand = arg!($n);
                    if operand & 3 == 0 {
                        *reg!(operand)
                    } else {
                        operand
                    }
                }};
            }
            macro_rules! term {
                ($word:expr) => {
                    Term::new(RawTerm($word))
                };
            }
            macro_rules! next {
                ($words:expr) => {{
                    pc = pc.add(1 + $words);
                    continue 'fetch;
                }};
            }
            macro_rules! jump {
                ($address:expr) => {{
                    pc = $address as *const u64;
                    continue 'fetch;
                }};
            }
            // Goes on behind the instruction, or at its label.
            macro_rules! test {
                ($holds:expr, $words:expr) => {{
                    if $holds {
                        next!($words)
                    }
                    jump!(arg!(1))
                }};
            }
            // A type test of a boxed term by its header.
            macro_rules! header {
                ($word:expr) => {{
                    let word: u64 = $word;
                    if word & tag::PRIMARY_MASK == tag::BOXED {
                        *(word.wrapping_sub(tag::BOXED) as *const u64)
                    } else {
                        // No thing's header.
                        u64::MAX
                    }
                }};
            }
            macro_rules! pause {
                ($outcome:expr, $live:expr) => {{
                    swapout!();
                    p.pc.set(pc);
                    p.live.set($live as u32);
                    return $outcome;
                }};
            }
            // The same, to do this instruction again: a function that begins with it is not called again.
            macro_rules! pause_again {
                ($outcome:expr, $live:expr) => {{
                    trace::breakpoint::call_again(p, pc);
                    pause!($outcome, $live)
                }};
            }
            // A call of a function by its entry: costs a reduction, and so does the return, as under
            // ERTS's JIT. The call that uses the last one up yields before it runs.
            macro_rules! dispatch {
                ($entry:expr) => {{
                    pc = $entry;
                    fcalls -= 1;
                    if fcalls > 0 {
                        continue 'fetch;
                    }
                    pause!(Outcome::Yield, *pc.offset(head::ARITY) as usize)
                }};
            }
            macro_rules! return_to {
                ($address:expr) => {{
                    pc = $address;
                    fcalls -= 1;
                    if fcalls >= 0 {
                        continue 'fetch;
                    }
                    pause!(Outcome::Yield, 1)
                }};
            }
            // A BIF traps: the process goes on in the next turn, as under ERTS's JIT.
            macro_rules! trap {
                ($entry:expr) => {{
                    pc = $entry;
                    // A BIF that is called by its entry costs what its work costs, and no call.
                    fcalls -= i64::from(*pc as u16 != Op::BifEntry as u16);
                    pause!(Outcome::Yield, *pc.offset(head::ARITY) as usize)
                }};
            }
            // What is called through an export is saved.
            macro_rules! saves {
                ($export:expr) => {
                    if SAVES && let Some(export) = $export {
                        p.save_call(Saved::Call(export));
                    }
                };
            }
            macro_rules! call_export {
                () => {{
                    let export: &'static Export = &*(arg!(1) as *const Export);
                    saves!(Some(export));
                    dispatch!(export.address())
                }};
            }
            // Calls of BIFs are saved with those of other exports: they go through their entries, too.
            macro_rules! saved_bif {
                ($export:expr, $words:expr) => {{
                    let export: &'static Export = $export;
                    saves!(Some(export));
                    fcalls -= 1;
                    push_return!($words);
                    jump!(export.address())
                }};
            }
            macro_rules! push_return {
                ($words:expr) => {{
                    stop = stop.sub(1);
                    *stop = pc.add(1 + $words) as u64;
                }};
            }
            // The exception stored in the process is raised here.
            macro_rules! handle {
                ($current:expr) => {{
                    match raise(p, $current) {
                        Ok(address) => {
                            swapin!();
                            jump!(address)
                        }
                        Err(exiting) => return Outcome::Exit(exiting),
                    }
                }};
            }
            macro_rules! error {
                ($reason:expr) => {{
                    swapout!();
                    let reason: Term<'_> = $reason;
                    p.exception = Exception::error(reason.raw());
                    handle!(Current::Code(pc))
                }};
            }
            macro_rules! raised {
                ($raise:expr, $current:expr) => {{
                    let exception = Exception::from_raise(p, &$raise);
                    p.exception = exception.expect("traps and waits are no exceptions");
                    handle!($current)
                }};
            }
            macro_rules! bad_apply {
                ($exception:expr) => {{
                    p.exception = $exception;
                    handle!(Current::Function(apply_mfa(3), Some(pc)))
                }};
            }
            // `apply/2` in code failed: it did itself, or the call of the fun.
            macro_rules! bad_apply_fun {
                ($exception:expr) => {{
                    p.exception = $exception;
                    if p.exception.from_bif {
                        handle!(Current::Function(apply_mfa(2), Some(pc)))
                    }
                    handle!(Current::Code(pc))
                }};
            }
            // An apply that is a function's last call: its frame goes, but for a BIF that does nothing
            // but raise; that one is called, so that the stack trace tells the function.
            macro_rules! last_apply {
                ($ready:expr, $frame:expr) => {{
                    match $ready {
                        Ok(Ready { entry, export }) => {
                            saves!(export);
                            swapin!();
                            if Called::at(entry).only_raises() {
                                push_return!(0);
                            } else {
                                stop = stop.add($frame as usize);
                            }
                            dispatch!(entry)
                        }
                        Err(exception) => bad_apply!(exception),
                    }
                }};
            }
            macro_rules! collect {
                ($need:expr, $live:expr) => {{
                    swapout!();
                    if let Err(exiting) = p.garbage_collect($need, $live) {
                        return Outcome::Exit(exiting);
                    }
                    swapin!();
                }};
            }
            macro_rules! ensure {
                ($need:expr, $live:expr) => {{
                    let need = $need;
                    if (stop as usize) < htop as usize + (need + RESERVED_WORDS) * 8
                        || Heap::is_zealous()
                    {
                        collect!(need, $live);
                    }
                }};
            }
            macro_rules! slow {
                ($handler:path) => {{
                    swapout!();
                    let flow = $handler(&mut Slow::new(p, pc.add(1)));
                    match flow {
                        Flow::Next => {
                            swapin!();
                            pc = pc.add(1 + Op::slow_words(word));
                            continue 'fetch;
                        }
                        Flow::Jump(address) => {
                            swapin!();
                            jump!(address)
                        }
                        Flow::Raise => handle!(Current::Code(pc)),
                        Flow::Exit(exiting) => return Outcome::Exit(exiting),
                    }
                }};
            }
            // The result of a guard BIF, swapped out still, goes to `c`; then is a safepoint, which only tests
            // collect at.
            macro_rules! guard_result {
                ($value:expr, $words:expr, $live:expr) => {{
                    *reg!(c!()) = $value.0;
                    let live = $live as usize;
                    if Heap::is_zealous() && live < X_REGISTERS {
                        let kept = keep(x, c!(), live);
                        if let Err(exiting) = p.garbage_collect(0, kept) {
                            return Outcome::Exit(exiting);
                        }
                    }
                    swapin!();
                    next!($words)
                }};
            }
            // A guard BIF with these arguments: result to `c`, or the label, or an exception.
            macro_rules! guard_bif {
                ($row:expr, $args:expr, $words:expr, $live:expr, $fail:expr) => {{
                    let row: &'static Bif = $row;
                    swapout!();
                    let args: &[u64] = $args;
                    match guard(p, row, args, $fail == 0) {
                        Ok(value) => guard_result!(value, $words, $live),
                        Err(()) if $fail != 0 => {
                            swapin!();
                            jump!($fail)
                        }
                        Err(()) => handle!(Current::Function(mfa_of(row), Some(pc))),
                    }
                }};
            }
            macro_rules! arithmetic_slow {
                ($op:expr, $a:expr, $b:expr, $words:expr) => {
                    guard_bif!(operator($op), &[$a, $b], $words, arg!(2), arg!(1))
                };
            }
            // Sum or difference of register `a` and `$right`: of small integers without leaving the loop.
            macro_rules! small_or_slow {
                ($operation:ident, $op:expr, $right:expr, $words:expr) => {{
                    let (left, right) = (*reg!(a!()), $right);
                    if left & right & 0xF == tag::SMALL {
                        let (value, over) =
                            (left as i64).$operation(right.wrapping_sub(tag::SMALL) as i64);
                        if !over {
                            *reg!(c!()) = value as u64;
                            next!($words)
                        }
                    }
                    arithmetic_slow!($op, left, right, $words)
                }};
            }
            macro_rules! order_rr {
                ($holds:ident) => {{
                    let (left, right) = (*reg!(a!()), *reg!(b!()));
                    if left & right & 0xF == tag::SMALL {
                        test!((left as i64).$holds(&(right as i64)), 1)
                    }
                    test!(
                        compare::cmp(term!(left), term!(right)).$holds(&std::cmp::Ordering::Equal),
                        1
                    )
                }};
            }

            'exec: loop {
                // SAFETY: I1: the low half is an instruction's number.
                match std::mem::transmute::<u16, Op>(word as u16) {
                    Op::FuncInfo => {
                        swapout!();
                        // The head's address is five words before the entry.
                        let called = Called::at(pc.add(head::WORDS));
                        let args: Vec<Term<'_>> =
                            (0..usize::from(called.arity)).map(|i| p.x(i)).collect();
                        let args = p.list(&args).raw();
                        p.exception = Exception {
                            args,
                            ..Exception::error(am::function_clause.raw())
                        };
                        let Called {
                            module,
                            function,
                            arity,
                        } = called;
                        handle!(Current::Function(
                            Mfa {
                                module,
                                function,
                                arity
                            },
                            None
                        ))
                    }
                    Op::Breakpoint => {
                        swapout!();
                        match trace::breakpoint::hit(p, pc) {
                            Ok(original) => word = original,
                            Err(exiting) => return Outcome::Exit(exiting),
                        }
                        swapin!();
                        continue 'exec;
                    }
                    Op::TraceReturn => {
                        swapout!();
                        let back = trace::breakpoint::returned(p, a!());
                        swapin!();
                        return_to!(back)
                    }
                    Op::LineBreakpointOff => next!(0),
                    Op::LineBreakpoint => {
                        swapout!();
                        match debugger::hit(p, pc, a!() as usize) {
                            Hit::Calls(entry) => {
                                swapin!();
                                dispatch!(entry)
                            }
                            Hit::GoesOn => {
                                swapin!();
                                next!(0)
                            }
                            Hit::Exits(exiting) => return Outcome::Exit(exiting),
                        }
                    }
                    Op::LineBreakpointEnd => {
                        swapout!();
                        let next = debugger::leave(p);
                        swapin!();
                        jump!(next)
                    }
                    Op::ErrorHandler => {
                        swapout!();
                        let called = Called::at(pc);
                        match call::error_handler(p, called) {
                            Ok(Ready { entry, export }) => {
                                saves!(export);
                                swapin!();
                                dispatch!(entry)
                            }
                            Err(_) => {
                                let Called {
                                    module,
                                    function,
                                    arity,
                                } = called;
                                let args: Vec<Term<'_>> =
                                    (0..usize::from(arity)).map(|i| p.x(i)).collect();
                                let args = p.list(&args).raw();
                                p.exception = Exception {
                                    args,
                                    ..Exception::error(am::undef.raw())
                                };
                                handle!(Current::Function(
                                    Mfa {
                                        module,
                                        function,
                                        arity
                                    },
                                    None
                                ))
                            }
                        }
                    }
                    Op::BifEntry => {
                        let row = &*(arg!(1) as *const Bif);
                        p.resumed_call.set(std::ptr::null());
                        // The call has been charged for, unless the slice begins here.
                        fcalls = (fcalls + 1).min(CONTEXT_REDS);
                        swapout!();
                        match call_bif(p, row, pc, None) {
                            BifEnd::Return => {
                                swapin!();
                                pc = *stop as *const u64;
                                stop = stop.add(1);
                                continue 'fetch;
                            }
                            BifEnd::Go(address) => {
                                swapin!();
                                dispatch!(address)
                            }
                            BifEnd::Trap(address) => {
                                swapin!();
                                trap!(address)
                            }
                            BifEnd::Jump(address) => {
                                swapin!();
                                jump!(address)
                            }
                            BifEnd::YieldAfter => {
                                swapin!();
                                pc = *stop as *const u64;
                                stop = stop.add(1);
                                pause!(Outcome::Yield, 1)
                            }
                            BifEnd::Again(outcome) => {
                                swapin!();
                                fcalls -= i64::from(outcome != Outcome::Yield);
                                pause_again!(outcome, row.arity as usize)
                            }
                            BifEnd::Sleep => return p.waits(),
                            BifEnd::Exit(exiting) => return Outcome::Exit(exiting),
                        }
                    }
                    Op::ApplyEntry | Op::SpawnEntry => {
                        if word as u16 == Op::SpawnEntry as u16 {
                            push_return!(0);
                        }
                        swapout!();
                        let (module, function, args) = (p.x(0), p.x(1), p.x(2));
                        match call::apply(p, module, function, args) {
                            Ok(Ready { entry, export }) => {
                                saves!(export);
                                swapin!();
                                dispatch!(entry)
                            }
                            Err(exception) => {
                                p.exception = exception;
                                handle!(Current::Function(apply_mfa(3), None))
                            }
                        }
                    }
                    Op::ApplyFunEntry => {
                        swapout!();
                        match call::apply_fun(p, p.x(0), p.x(1)) {
                            Ok(Ready { entry, export }) => {
                                saves!(export);
                                swapin!();
                                dispatch!(entry)
                            }
                            Err(exception) => bad_apply_fun!(exception),
                        }
                    }
                    Op::NormalExit => {
                        swapout!();
                        p.exception = Exception {
                            class: Class::Exit,
                            ..Exception::error(am::normal.raw())
                        };
                        return Outcome::Exit(p.uncaught());
                    }

                    Op::Jump => jump!(arg!(1)),
                    Op::JumpTarget => jump!(*pc.offset(head::TARGET)),
                    Op::Call => {
                        push_return!(1);
                        dispatch!(arg!(1) as *const u64)
                    }
                    Op::CallLast => {
                        stop = stop.add(a!() as usize);
                        dispatch!(arg!(1) as *const u64)
                    }
                    Op::CallOnly => dispatch!(arg!(1) as *const u64),
                    Op::CallExt => {
                        push_return!(1);
                        call_export!()
                    }
                    Op::CallExtLast => {
                        stop = stop.add(a!() as usize);
                        call_export!()
                    }
                    Op::CallExtOnly => call_export!(),
                    Op::CallBif | Op::CallHbif => {
                        if SAVES {
                            saved_bif!(&*(arg!(2) as *const Export), 2)
                        }
                        // A heavy BIF costs what its work costs, and no call.
                        let is_light = word as u16 == Op::CallBif as u16;
                        fcalls -= i64::from(is_light);
                        if fcalls <= 0 && is_light {
                            pause_again!(Outcome::Yield, a!() as usize)
                        }
                        let row = &*(arg!(1) as *const Bif);
                        let export = &*(arg!(2) as *const Export);
                        if export.is_bif_traced.load(Ordering::Relaxed) {
                            push_return!(2);
                            jump!(export.address())
                        }
                        swapout!();
                        match call_bif(p, row, pc, Some(pc)) {
                            BifEnd::Return => {
                                swapin!();
                                next!(2)
                            }
                            BifEnd::Go(address) => {
                                swapin!();
                                push_return!(2);
                                dispatch!(address)
                            }
                            BifEnd::Trap(address) => {
                                swapin!();
                                push_return!(2);
                                trap!(address)
                            }
                            BifEnd::Jump(address) => {
                                swapin!();
                                jump!(address)
                            }
                            BifEnd::YieldAfter => {
                                swapin!();
                                pc = pc.add(3);
                                pause!(Outcome::Yield, 1)
                            }
                            BifEnd::Again(outcome) => {
                                swapin!();
                                if outcome == Outcome::Yield {
                                    // Put off half-way: the process is in the BIF, not at its call.
                                    push_return!(2);
                                    pc = export.address();
                                } else {
                                    fcalls += i64::from(is_light);
                                }
                                pause_again!(outcome, row.arity as usize)
                            }
                            BifEnd::Sleep => return p.waits(),
                            BifEnd::Exit(exiting) => return Outcome::Exit(exiting),
                        }
                    }
                    Op::CallApply => {
                        swapout!();
                        match call::apply(p, p.x(0), p.x(1), p.x(2)) {
                            Ok(Ready { entry, export }) => {
                                saves!(export);
                                swapin!();
                                push_return!(0);
                                dispatch!(entry)
                            }
                            Err(exception) => bad_apply!(exception),
                        }
                    }
                    Op::CallApplyLast => {
                        swapout!();
                        last_apply!(call::apply(p, p.x(0), p.x(1), p.x(2)), a!())
                    }
                    Op::CallApplyFun => {
                        swapout!();
                        match call::apply_fun(p, p.x(0), p.x(1)) {
                            Ok(Ready { entry, export }) => {
                                saves!(export);
                                swapin!();
                                push_return!(0);
                                dispatch!(entry)
                            }
                            Err(exception) => bad_apply_fun!(exception),
                        }
                    }
                    Op::CallApplyFunLast => {
                        stop = stop.add(a!() as usize);
                        swapout!();
                        match call::apply_fun(p, p.x(0), p.x(1)) {
                            Ok(Ready { entry, export }) => {
                                saves!(export);
                                swapin!();
                                dispatch!(entry)
                            }
                            Err(exception) => bad_apply_fun!(exception),
                        }
                    }
                    Op::Yield => {
                        *x = am::true_.raw().0;
                        pc = pc.add(1);
                        pause!(Outcome::Yield, 1)
                    }
                    Op::Hibernate => {
                        swapout!();
                        p.rest(0);
                        swapin!();
                        *x = am::ok.raw().0;
                        pc = pc.add(1);
                        pause!(p.waits(), 1)
                    }
                    Op::Apply => {
                        swapout!();
                        match call::fixed_apply(p, a!() as usize) {
                            Ok(Ready { entry, export }) => {
                                saves!(export);
                                swapin!();
                                push_return!(0);
                                dispatch!(entry)
                            }
                            Err(exception) => bad_apply!(exception),
                        }
                    }
                    Op::ApplyLast => {
                        swapout!();
                        last_apply!(call::fixed_apply(p, a!() as usize), b!())
                    }
                    Op::CallFun | Op::CallFunLast => {
                        let fun = *reg!(b!());
                        let arity = a!();
                        let is_last = word as u16 == Op::CallFunLast as u16;
                        macro_rules! go {
                            ($entry:expr) => {{
                                if is_last {
                                    stop = stop.add(c!() as usize);
                                } else {
                                    push_return!(0);
                                }
                                dispatch!($entry)
                            }};
                        }
                        // The common case: a local fun of that arity whose code is there.
                        let head = header!(fun);
                        if head & tag::HEADER_MASK == tag::FUN
                            && u64::from(tag::fun::arity(head)) == arity
                            && !tag::fun::is_external(head)
                        {
                            let thing = RawTerm(fun).ptr();
                            let entry = (*(*thing.add(1) as *const FunEntry)).address();
                            if !entry.is_null() {
                                for i in 0..tag::fun::num_free(head) as usize {
                                    *x.add(arity as usize + i) = *thing.add(2 + i);
                                }
                                go!(entry)
                            }
                        }
                        swapout!();
                        match call::call_fun(p, term!(fun), arity as usize) {
                            Ok(Ready { entry, export }) => {
                                saves!(export);
                                swapin!();
                                go!(entry)
                            }
                            Err(raise) => raised!(raise, Current::Code(pc)),
                        }
                    }
                    Op::Return => {
                        let back = *stop as *const u64;
                        stop = stop.add(1);
                        return_to!(back)
                    }
                    Op::Deallocate => {
                        stop = stop.add(a!() as usize);
                        next!(0)
                    }
                    Op::DeallocateReturn => {
                        let frame = stop.add(a!() as usize);
                        let back = *frame as *const u64;
                        stop = frame.add(1);
                        return_to!(back)
                    }
                    Op::Allocate => {
                        let frame = a!() as usize;
                        ensure!(frame + 1, b!() as usize);
                        stop = stop.sub(frame);
                        next!(0)
                    }
                    Op::AllocateHeap => {
                        let frame = a!() as usize;
                        ensure!(frame + 1 + arg!(1) as usize, b!() as usize);
                        stop = stop.sub(frame);
                        next!(1)
                    }
                    Op::TestHeap => {
                        ensure!(arg!(1) as usize, b!() as usize);
                        next!(1)
                    }
                    Op::Trim => {
                        stop = stop.add(a!() as usize);
                        next!(0)
                    }
                    Op::InitY => {
                        *reg!(a!()) = tag::NIL;
                        next!(0)
                    }

                    Op::MoveRR => {
                        *reg!(b!()) = *reg!(a!());
                        next!(0)
                    }
                    Op::Move2RR => {
                        *reg!(b!()) = *reg!(a!());
                        let more = arg!(1);
                        *reg!(more >> 16) = *reg!(more & 0xffff);
                        next!(1)
                    }
                    Op::MoveCR => {
                        *reg!(b!()) = arg!(1);
                        next!(1)
                    }
                    Op::SwapRR => {
                        std::ptr::swap(reg!(a!()), reg!(b!()));
                        next!(0)
                    }
                    Op::GetList => {
                        let cell = RawTerm(*reg!(a!())).ptr();
                        let (head, tail) = (*cell, *cell.add(1));
                        *reg!(b!()) = head;
                        *reg!(c!()) = tail;
                        next!(0)
                    }
                    Op::IsNonemptyListGetList => {
                        let list = *reg!(a!());
                        if list & tag::PRIMARY_MASK != tag::LIST {
                            jump!(arg!(1))
                        }
                        let cell = RawTerm(list).ptr();
                        let (head, tail) = (*cell, *cell.add(1));
                        *reg!(b!()) = head;
                        *reg!(c!()) = tail;
                        next!(1)
                    }
                    Op::GetHd => {
                        *reg!(b!()) = *RawTerm(*reg!(a!())).ptr();
                        next!(0)
                    }
                    Op::GetTl => {
                        *reg!(b!()) = *RawTerm(*reg!(a!())).ptr().add(1);
                        next!(0)
                    }
                    Op::GetTupleElement => {
                        *reg!(b!()) = *RawTerm(*reg!(a!())).ptr().add(1 + c!() as usize);
                        next!(0)
                    }
                    Op::GetTupleElementWide => {
                        *reg!(b!()) = *RawTerm(*reg!(a!())).ptr().add(1 + arg!(1) as usize);
                        next!(1)
                    }
                    Op::GetTupleElement2 => {
                        let elements = RawTerm(*reg!(a!())).ptr().add(1 + c!() as usize);
                        *reg!(b!()) = *elements;
                        *reg!(arg!(1)) = *elements.add(1);
                        next!(1)
                    }
                    Op::PutListRR => {
                        *htop = *reg!(a!());
                        *htop.add(1) = *reg!(b!());
                        *reg!(c!()) = htop as u64 | tag::LIST;
                        htop = htop.add(2);
                        next!(0)
                    }
                    Op::PutListCR => {
                        *htop = arg!(1);
                        *htop.add(1) = *reg!(b!());
                        *reg!(c!()) = htop as u64 | tag::LIST;
                        htop = htop.add(2);
                        next!(1)
                    }
                    Op::PutListRC => {
                        *htop = *reg!(a!());
                        *htop.add(1) = arg!(1);
                        *reg!(c!()) = htop as u64 | tag::LIST;
                        htop = htop.add(2);
                        next!(1)
                    }
                    Op::PutTuple => {
                        let arity = b!() as usize;
                        let tuple = htop;
                        *tuple = tag::make_header(arity, tag::ARITYVAL);
                        for i in 1..=arity {
                            *tuple.add(i) = src!(i);
                        }
                        htop = tuple.add(1 + arity);
                        *reg!(a!()) = tuple as u64 | tag::BOXED;
                        next!(arity)
                    }
                    Op::PutTupleWide => {
                        let arity = arg!(1) as usize;
                        let tuple = htop;
                        *tuple = tag::make_header(arity, tag::ARITYVAL);
                        for i in 1..=arity {
                            *tuple.add(i) = src!(1 + i);
                        }
                        htop = tuple.add(1 + arity);
                        *reg!(a!()) = tuple as u64 | tag::BOXED;
                        next!(1 + arity)
                    }
                    Op::SetTupleElement => {
                        let value = *reg!(c!());
                        *RawTerm(*reg!(a!())).ptr().add(1 + b!() as usize) = value;
                        next!(0)
                    }
                    Op::SetTupleElementWide => {
                        let value = *reg!(c!());
                        *RawTerm(*reg!(a!())).ptr().add(1 + arg!(1) as usize) = value;
                        next!(1)
                    }

                    Op::IsInteger => {
                        let word = *reg!(a!());
                        let big = tag::HEADER_MASK & !4;
                        test!(
                            word & 0xF == tag::SMALL || header!(word) & big == tag::POS_BIG,
                            1
                        )
                    }
                    Op::IsFloat => test!(header!(*reg!(a!())) & tag::HEADER_MASK == tag::FLOAT, 1),
                    Op::IsNumber => {
                        let word = *reg!(a!());
                        let head = header!(word) & tag::HEADER_MASK;
                        let is_number = word & 0xF == tag::SMALL
                            || head & !4 == tag::POS_BIG
                            || head == tag::FLOAT;
                        test!(is_number, 1)
                    }
                    Op::IsAtom => test!(*reg!(a!()) & tag::IMMED2_MASK == tag::ATOM, 1),
                    Op::IsBoolean => {
                        let word = *reg!(a!());
                        test!(word == am::true_.raw().0 || word == am::false_.raw().0, 1)
                    }
                    Op::IsPid => {
                        let word = *reg!(a!());
                        let external = header!(word) & tag::HEADER_MASK == tag::EXTERNAL_PID;
                        test!(word & 0xF == tag::PID || external, 1)
                    }
                    Op::IsPort => {
                        let word = *reg!(a!());
                        let external = header!(word) & tag::HEADER_MASK == tag::EXTERNAL_PORT;
                        test!(word & 0xF == tag::PORT || external, 1)
                    }
                    Op::IsReference => {
                        let head = header!(*reg!(a!())) & tag::HEADER_MASK;
                        test!(head == tag::REF || head == tag::EXTERNAL_REF, 1)
                    }
                    Op::IsNil => test!(*reg!(a!()) == tag::NIL, 1),
                    Op::IsList => {
                        let word = *reg!(a!());
                        test!(word & tag::PRIMARY_MASK == tag::LIST || word == tag::NIL, 1)
                    }
                    Op::IsNonemptyList => test!(*reg!(a!()) & tag::PRIMARY_MASK == tag::LIST, 1),
                    Op::IsTuple => {
                        test!(header!(*reg!(a!())) & tag::HEADER_MASK == tag::ARITYVAL, 1)
                    }
                    Op::TestArity => {
                        let head = *RawTerm(*reg!(a!())).ptr();
                        test!(head == tag::make_header(b!() as usize, tag::ARITYVAL), 1)
                    }
                    Op::IsTupleOfArity => {
                        let head = header!(*reg!(a!()));
                        test!(head == tag::make_header(b!() as usize, tag::ARITYVAL), 1)
                    }
                    Op::IsTupleOfArityWide => {
                        let head = header!(*reg!(a!()));
                        test!(head == tag::make_header(arg!(2) as usize, tag::ARITYVAL), 2)
                    }
                    Op::IsTaggedTupleWide => {
                        let word = *reg!(a!());
                        let head = header!(word);
                        let is = head == tag::make_header(arg!(3) as usize, tag::ARITYVAL)
                            && *RawTerm(word).ptr().add(1) == arg!(2);
                        test!(is, 3)
                    }
                    Op::IsTaggedTuple => {
                        let word = *reg!(a!());
                        let head = header!(word);
                        let is = head == tag::make_header(b!() as usize, tag::ARITYVAL)
                            && *RawTerm(word).ptr().add(1) == arg!(2);
                        test!(is, 2)
                    }
                    Op::IsBinary => {
                        let word = *reg!(a!());
                        let head = header!(word) & tag::HEADER_MASK;
                        let is_bits = head == tag::HEAP_BITS || head == tag::SUB_BITS;
                        test!(is_bits && term!(word).as_binary().is_some(), 1)
                    }
                    Op::IsBitstr => {
                        let head = header!(*reg!(a!())) & tag::HEADER_MASK;
                        test!(head == tag::HEAP_BITS || head == tag::SUB_BITS, 1)
                    }
                    Op::IsMap => test!(header!(*reg!(a!())) & tag::HEADER_MASK == tag::MAP, 1),
                    Op::IsFunction => test!(header!(*reg!(a!())) & tag::HEADER_MASK == tag::FUN, 1),
                    Op::IsFunction2 => {
                        let (fun, arity) = (term!(src!(2)), term!(src!(3)));
                        let is = fun
                            .as_fun()
                            .is_some_and(|f| arity.as_small() == Some(i64::from(f.arity())));
                        test!(is, 3)
                    }

                    Op::IsEqExactRR => {
                        let (left, right) = (*reg!(a!()), *reg!(b!()));
                        test!(left == right || eq_exact(left, right), 1)
                    }
                    Op::IsEqExactRC => test!(*reg!(a!()) == arg!(2), 2),
                    Op::IsEqExactSS => {
                        let (left, right) = (src!(2), src!(3));
                        test!(left == right || eq_exact(left, right), 3)
                    }
                    Op::IsNeExactRC => test!(*reg!(a!()) != arg!(2), 2),
                    Op::IsNeExactSS => {
                        let (left, right) = (src!(2), src!(3));
                        test!(!(left == right || eq_exact(left, right)), 3)
                    }
                    Op::IsEqSS => test!(compare::eq(term!(src!(2)), term!(src!(3))), 3),
                    Op::IsNeSS => test!(!compare::eq(term!(src!(2)), term!(src!(3))), 3),
                    Op::IsLtRR => order_rr!(lt),
                    Op::IsGeRR => order_rr!(ge),
                    Op::IsLtRC => {
                        let (left, right) = (*reg!(a!()), arg!(2));
                        if left & 0xF == tag::SMALL {
                            test!((left as i64) < (right as i64), 2)
                        }
                        test!(compare::cmp(term!(left), term!(right)).is_lt(), 2)
                    }
                    Op::IsLtCR => {
                        let (left, right) = (arg!(2), *reg!(a!()));
                        if right & 0xF == tag::SMALL {
                            test!((left as i64) < (right as i64), 2)
                        }
                        test!(compare::cmp(term!(left), term!(right)).is_lt(), 2)
                    }
                    Op::IsGeRC => {
                        let (left, right) = (*reg!(a!()), arg!(2));
                        if left & 0xF == tag::SMALL {
                            test!((left as i64) >= (right as i64), 2)
                        }
                        test!(compare::cmp(term!(left), term!(right)).is_ge(), 2)
                    }
                    Op::IsGeCR => {
                        let (left, right) = (arg!(2), *reg!(a!()));
                        if right & 0xF == tag::SMALL {
                            test!((left as i64) >= (right as i64), 2)
                        }
                        test!(compare::cmp(term!(left), term!(right)).is_ge(), 2)
                    }
                    Op::IsLtSS => test!(compare::cmp(term!(src!(2)), term!(src!(3))).is_lt(), 3),
                    Op::IsGeSS => test!(compare::cmp(term!(src!(2)), term!(src!(3))).is_ge(), 3),
                    Op::SelectVal => {
                        let value = *reg!(a!());
                        let count = arg!(2) as usize;
                        let values = std::slice::from_raw_parts(pc.add(3), count);
                        let found = if count <= 8 {
                            values.iter().position(|&v| v == value)
                        } else {
                            values
                                .binary_search_by_key(&(value as i64), |&v| v as i64)
                                .ok()
                        };
                        match found {
                            Some(i) => jump!(arg!(3 + count + i)),
                            None => jump!(arg!(1)),
                        }
                    }
                    Op::JumpTable => {
                        let value = RawTerm(*reg!(a!()));
                        let at = value.small_value().wrapping_sub(arg!(2) as i64) as u64;
                        if value.is_small() && at < arg!(3) {
                            jump!(arg!(4 + at as usize))
                        }
                        jump!(arg!(1))
                    }
                    Op::SelectTerm => {
                        let value = *reg!(a!());
                        let count = arg!(2) as usize;
                        for i in 0..count {
                            if eq_exact(value, arg!(3 + 2 * i)) {
                                jump!(arg!(4 + 2 * i))
                            }
                        }
                        jump!(arg!(1))
                    }
                    Op::SelectTupleArity => {
                        let head = header!(*reg!(a!()));
                        let count = arg!(2) as usize;
                        if head & tag::HEADER_MASK == tag::ARITYVAL {
                            let arity = tag::header_arity(head) as u64;
                            for i in 0..count {
                                if arg!(3 + 2 * i) == arity {
                                    jump!(arg!(4 + 2 * i))
                                }
                            }
                        }
                        jump!(arg!(1))
                    }

                    Op::AddRR => small_or_slow!(overflowing_add, Op::Add, *reg!(b!()), 2),
                    Op::AddRC => small_or_slow!(overflowing_add, Op::Add, arg!(3), 3),
                    Op::SubRR => small_or_slow!(overflowing_sub, Op::Sub, *reg!(b!()), 2),
                    Op::SubRC => small_or_slow!(overflowing_sub, Op::Sub, arg!(3), 3),
                    Op::Add => arithmetic_slow!(Op::Add, src!(3), src!(4), 4),
                    Op::Sub => arithmetic_slow!(Op::Sub, src!(3), src!(4), 4),
                    Op::Mul => {
                        let (left, right) = (src!(3), src!(4));
                        if left & right & 0xF == tag::SMALL {
                            let (left, right) =
                                (RawTerm(left).small_value(), RawTerm(right).small_value());
                            if let Some(product) = left.checked_mul(right)
                                && (tag::MIN_SMALL..=tag::MAX_SMALL).contains(&product)
                            {
                                *reg!(c!()) = RawTerm::small(product).0;
                                next!(4)
                            }
                        }
                        arithmetic_slow!(Op::Mul, left, right, 4)
                    }
                    Op::MulAdd => {
                        let (left, right, addend) = (src!(3), src!(4), src!(5));
                        swapout!();
                        let sum = arith::mul_add(p, term!(left), term!(right), term!(addend));
                        if let Some(sum) = sum {
                            guard_result!(sum.raw(), 5, arg!(2))
                        }
                        // A float, an error: told by the operators one by one.
                        match guard(p, operator(Op::Mul), &[left, right], arg!(1) == 0) {
                            Ok(product) => {
                                swapin!();
                                let args = [product.0, addend];
                                guard_bif!(operator(Op::Add), &args, 5, arg!(2), arg!(1))
                            }
                            Err(()) if arg!(1) != 0 => {
                                swapin!();
                                jump!(arg!(1))
                            }
                            Err(()) => {
                                handle!(Current::Function(mfa_of(operator(Op::Mul)), Some(pc)))
                            }
                        }
                    }
                    Op::IntDiv => {
                        let (left, right) = (src!(3), src!(4));
                        if left & right & 0xF == tag::SMALL && RawTerm(right).small_value() > 0 {
                            let quotient =
                                RawTerm(left).small_value() / RawTerm(right).small_value();
                            *reg!(c!()) = RawTerm::small(quotient).0;
                            next!(4)
                        }
                        arithmetic_slow!(Op::IntDiv, left, right, 4)
                    }
                    Op::Rem => {
                        let (left, right) = (src!(3), src!(4));
                        if left & right & 0xF == tag::SMALL && RawTerm(right).small_value() > 0 {
                            let rest = RawTerm(left).small_value() % RawTerm(right).small_value();
                            *reg!(c!()) = RawTerm::small(rest).0;
                            next!(4)
                        }
                        arithmetic_slow!(Op::Rem, left, right, 4)
                    }
                    Op::Band => {
                        let (left, right) = (src!(3), src!(4));
                        if left & right & 0xF == tag::SMALL {
                            *reg!(c!()) = left & right;
                            next!(4)
                        }
                        arithmetic_slow!(Op::Band, left, right, 4)
                    }
                    Op::Bor => {
                        let (left, right) = (src!(3), src!(4));
                        if left & right & 0xF == tag::SMALL {
                            *reg!(c!()) = left | right;
                            next!(4)
                        }
                        arithmetic_slow!(Op::Bor, left, right, 4)
                    }
                    Op::Bxor => {
                        let (left, right) = (src!(3), src!(4));
                        if left & right & 0xF == tag::SMALL {
                            *reg!(c!()) = (left ^ right) | tag::SMALL;
                            next!(4)
                        }
                        arithmetic_slow!(Op::Bxor, left, right, 4)
                    }
                    Op::Bsl => {
                        let (left, right) = (src!(3), src!(4));
                        if left & right & 0xF == tag::SMALL {
                            let (value, by) =
                                (RawTerm(left).small_value(), RawTerm(right).small_value());
                            if (0..60).contains(&by) {
                                let shifted = value << by;
                                let fits = (tag::MIN_SMALL..=tag::MAX_SMALL).contains(&shifted);
                                if shifted >> by == value && fits {
                                    *reg!(c!()) = RawTerm::small(shifted).0;
                                    next!(4)
                                }
                            }
                        }
                        arithmetic_slow!(Op::Bsl, left, right, 4)
                    }
                    Op::Bsr => {
                        let (left, right) = (src!(3), src!(4));
                        if left & right & 0xF == tag::SMALL {
                            let by = RawTerm(right).small_value();
                            if by >= 0 {
                                let shifted = RawTerm(left).small_value() >> by.min(63);
                                *reg!(c!()) = RawTerm::small(shifted).0;
                                next!(4)
                            }
                        }
                        arithmetic_slow!(Op::Bsr, left, right, 4)
                    }
                    Op::Bif0 => guard_bif!(&*(arg!(2) as *const Bif), &[], 2, X_REGISTERS, arg!(1)),
                    Op::Bif1 => {
                        guard_bif!(&*(arg!(2) as *const Bif), &[src!(3)], 3, a!(), arg!(1))
                    }
                    Op::Bif2 => {
                        guard_bif!(
                            &*(arg!(2) as *const Bif),
                            &[src!(3), src!(4)],
                            4,
                            a!(),
                            arg!(1)
                        )
                    }
                    Op::Bif3 => {
                        let args = [src!(3), src!(4), src!(5)];
                        guard_bif!(&*(arg!(2) as *const Bif), &args, 5, a!(), arg!(1))
                    }
                    Op::SelfR => {
                        *reg!(a!()) = p.pid().term().raw().0;
                        next!(0)
                    }
                    Op::ElementRC => {
                        let (tuple, index) = (*reg!(a!()), b!());
                        let head = header!(tuple);
                        if head & tag::HEADER_MASK == tag::ARITYVAL
                            && tag::header_arity(head) as u64 >= index
                        {
                            *reg!(c!()) = *RawTerm(tuple).ptr().add(index as usize);
                            next!(2)
                        }
                        let args = [RawTerm::small(index as i64).0, tuple];
                        guard_bif!(&*(arg!(2) as *const Bif), &args, 2, X_REGISTERS, arg!(1))
                    }
                    Op::HdR => {
                        let list = *reg!(a!());
                        if list & tag::PRIMARY_MASK == tag::LIST {
                            *reg!(c!()) = *RawTerm(list).ptr();
                            next!(2)
                        }
                        guard_bif!(&*(arg!(2) as *const Bif), &[list], 2, X_REGISTERS, arg!(1))
                    }
                    Op::TlR => {
                        let list = *reg!(a!());
                        if list & tag::PRIMARY_MASK == tag::LIST {
                            *reg!(c!()) = *RawTerm(list).ptr().add(1);
                            next!(2)
                        }
                        guard_bif!(&*(arg!(2) as *const Bif), &[list], 2, X_REGISTERS, arg!(1))
                    }

                    Op::FmoveFrom => {
                        f[b!() as usize].write(f64::from_bits(*RawTerm(*reg!(a!())).ptr().add(1)));
                        next!(0)
                    }
                    Op::FmoveTo => {
                        *htop = tag::make_header(1, tag::FLOAT);
                        *htop.add(1) = f[a!() as usize].assume_init().to_bits();
                        *reg!(b!()) = htop as u64 | tag::BOXED;
                        htop = htop.add(2);
                        next!(0)
                    }
                    Op::Fconv => match number::to_f64(term!(src!(1))) {
                        Some(value) => {
                            f[b!() as usize].write(value);
                            next!(1)
                        }
                        None => error!(am::badarith.term()),
                    },
                    Op::Fadd | Op::Fsub | Op::Fmul | Op::Fdiv => {
                        let (left, right) = (
                            f[a!() as usize].assume_init(),
                            f[b!() as usize].assume_init(),
                        );
                        let value = match std::mem::transmute::<u16, Op>(word as u16) {
                            Op::Fadd => left + right,
                            Op::Fsub => left - right,
                            Op::Fmul => left * right,
                            _ => left / right,
                        };
                        if !value.is_finite() {
                            error!(am::badarith.term())
                        }
                        f[c!() as usize].write(value);
                        next!(0)
                    }
                    Op::Fnegate => {
                        f[c!() as usize].write(-f[a!() as usize].assume_init());
                        next!(0)
                    }

                    Op::Catch => {
                        *reg!(a!()) = exception::catch_tag(arg!(1) as *const u64);
                        p.catches.set(p.catches.get() + 1);
                        next!(1)
                    }
                    Op::TryEnd => {
                        *reg!(a!()) = tag::NIL;
                        p.catches.set(p.catches.get() - 1);
                        next!(0)
                    }
                    Op::CatchEnd => {
                        *reg!(a!()) = tag::NIL;
                        p.catches.set(p.catches.get() - 1);
                        if *x == 0 {
                            swapout!();
                            let class = p.x(1).as_atom().expect("a handler is given the class");
                            let value = exception::caught(p, class, p.x(2), p.x(3));
                            p.set_x(0, value);
                            swapin!();
                            ensure!(0, 1);
                        }
                        next!(0)
                    }
                    Op::TryCase => {
                        *reg!(a!()) = tag::NIL;
                        p.catches.set(p.catches.get() - 1);
                        *x = *x.add(1);
                        *x.add(1) = *x.add(2);
                        *x.add(2) = *x.add(3);
                        next!(0)
                    }
                    Op::TryCaseEnd => error!(p.tuple(&[am::try_clause.term(), term!(src!(1))])),
                    Op::Badmatch => error!(p.tuple(&[am::badmatch.term(), term!(src!(1))])),
                    Op::CaseEnd => error!(p.tuple(&[am::case_clause.term(), term!(src!(1))])),
                    Op::Badrecord => error!(p.tuple(&[am::badrecord.term(), term!(src!(1))])),
                    Op::IfEnd => error!(am::if_clause.term()),
                    Op::Raise => {
                        let (trace, value) = (src!(1), src!(2));
                        swapout!();
                        p.exception = reraised(RawTerm(trace), RawTerm(value));
                        handle!(Current::Code(pc))
                    }
                    Op::RawRaise => {
                        swapout!();
                        let class = term!(*x).as_atom().and_then(Class::from_atom);
                        let Some(class) = class else {
                            *x = am::badarg.raw().0;
                            next!(0)
                        };
                        let (value, trace) = (RawTerm(*x.add(1)), RawTerm(*x.add(2)));
                        exception::set_class(p, term!(trace.0), class);
                        p.exception = Exception {
                            class,
                            trace,
                            ..Exception::error(value)
                        };
                        handle!(Current::Code(pc))
                    }
                    Op::BuildStacktrace => {
                        swapout!();
                        let trace = exception::build_stacktrace(p, p.x(0));
                        p.set_x(0, trace);
                        swapin!();
                        next!(0)
                    }

                    Op::MakeFun => {
                        let count = arg!(2) as usize;
                        let entry = &*(arg!(1) as *const FunEntry);
                        let fun = htop;
                        *fun = tag::fun::make_header(entry.arity - count as u8, count as u8, false);
                        *fun.add(1) = arg!(1);
                        for i in 0..count {
                            *fun.add(2 + i) = src!(3 + i);
                        }
                        htop = fun.add(2 + count);
                        *reg!(a!()) = fun as u64 | tag::BOXED;
                        next!(2 + count)
                    }
                    Op::Send => {
                        if SAVES {
                            saved_bif!(entry::export(am::erlang, am::send, 2), 0)
                        }
                        fcalls -= 1;
                        if fcalls <= 0 {
                            pause_again!(Outcome::Yield, 2)
                        }
                        swapout!();
                        match call_bif(p, operator(Op::Send), pc, Some(pc)) {
                            BifEnd::Return => {
                                swapin!();
                                next!(0)
                            }
                            BifEnd::Go(address) => {
                                swapin!();
                                push_return!(0);
                                dispatch!(address)
                            }
                            BifEnd::Trap(address) => {
                                swapin!();
                                push_return!(0);
                                trap!(address)
                            }
                            BifEnd::Jump(address) => {
                                swapin!();
                                jump!(address)
                            }
                            BifEnd::YieldAfter => {
                                swapin!();
                                pc = pc.add(1);
                                pause!(Outcome::Yield, 1)
                            }
                            BifEnd::Again(outcome) => {
                                swapin!();
                                fcalls += 1;
                                pause_again!(outcome, 2)
                            }
                            BifEnd::Sleep => return p.waits(),
                            BifEnd::Exit(exiting) => return Outcome::Exit(exiting),
                        }
                    }
                    Op::LoopRec => {
                        if fcalls <= 0 {
                            pause!(Outcome::Yield, 0)
                        }
                        swapout!();
                        // Who asks it meanwhile where it is, a purge of its code for one, is told.
                        p.pc.set(pc);
                        match p.peek_message() {
                            Ok(Some(message)) => {
                                swapin!();
                                *x = message.0;
                                next!(1)
                            }
                            Err(exiting) => return Outcome::Exit(exiting),
                            Ok(None) if p.is_suspended() => {
                                swapin!();
                                pause!(Outcome::Yield, 0)
                            }
                            Ok(None) => {
                                swapin!();
                                jump!(arg!(1))
                            }
                        }
                    }
                    Op::LoopRecEnd => {
                        p.next_message();
                        fcalls -= 1;
                        jump!(arg!(1))
                    }
                    Op::Wait => {
                        p.wait();
                        pc = arg!(1) as *const u64;
                        pause!(Outcome::Wait, 0)
                    }
                    Op::WaitTimeout => {
                        let time = src!(2);
                        swapout!();
                        match p.wait_timeout(RawTerm(time), pc.add(3)) {
                            WaitTimeout::Elapsed => {
                                swapin!();
                                next!(2)
                            }
                            WaitTimeout::Wait => {
                                swapin!();
                                pc = arg!(1) as *const u64;
                                pause!(Outcome::Wait, 0)
                            }
                            WaitTimeout::BadTimeout => error!(am::timeout_value.term()),
                        }
                    }
                    Op::Timeout => {
                        if SAVES {
                            p.save_call(Saved::Timeout);
                        }
                        p.timeout_reset_save();
                        next!(0)
                    }
                    Op::RemoveMessage => {
                        if SAVES {
                            p.save_call(Saved::Receive);
                        }
                        swapout!();
                        p.remove_message();
                        // It is collected soon, when the message may be garbage.
                        if p.wants_collection() {
                            p.leave_reds(5);
                        }
                        swapin!();
                        next!(0)
                    }
                    Op::RecvMarkerReserve => {
                        swapout!();
                        *reg!(a!()) = p.recv_marker_reserve().raw().0;
                        swapin!();
                        next!(0)
                    }
                    Op::RecvMarkerBind => {
                        p.recv_marker_bind(RawTerm(src!(1)), RawTerm(src!(2)));
                        next!(2)
                    }
                    Op::RecvMarkerClear => {
                        p.recv_marker_clear(RawTerm(src!(1)));
                        next!(1)
                    }
                    Op::RecvMarkerUse => {
                        p.recv_marker_use(RawTerm(src!(1)));
                        next!(1)
                    }

                    Op::UpdateRecord => slow!(records::update_record),
                    Op::PutMapAssoc => slow!(maps::put_map_assoc),
                    Op::PutMapExact => slow!(maps::put_map_exact),
                    Op::HasMapFields => slow!(maps::has_map_fields),
                    Op::GetMapElements => slow!(maps::get_map_elements),
                    Op::BsGetInteger => slow!(bits::get::bs_get_integer2),
                    Op::BsGetFloat => slow!(bits::get::bs_get_float2),
                    Op::BsGetBinary => slow!(bits::get::bs_get_binary2),
                    Op::BsSkipBits => slow!(bits::get::bs_skip_bits2),
                    Op::BsTestTail => slow!(bits::start::bs_test_tail2),
                    Op::BsTestUnit => slow!(bits::start::bs_test_unit),
                    Op::BsMatchString => slow!(bits::start::bs_match_string),
                    Op::BsInitWritable => slow!(bits::create::bs_init_writable),
                    Op::BsGetUtf8 => slow!(bits::get::bs_get_utf8),
                    Op::BsSkipUtf8 => slow!(bits::get::bs_skip_utf8),
                    Op::BsGetUtf16 => slow!(bits::get::bs_get_utf16),
                    Op::BsSkipUtf16 => slow!(bits::get::bs_skip_utf16),
                    Op::BsGetUtf32 => slow!(bits::get::bs_get_utf32),
                    Op::BsSkipUtf32 => slow!(bits::get::bs_skip_utf32),
                    Op::BsGetTail => slow!(bits::start::bs_get_tail),
                    Op::BsStartMatch => slow!(bits::start::bs_start_match),
                    Op::BsGetPosition => slow!(bits::start::bs_get_position),
                    Op::BsSetPosition => slow!(bits::start::bs_set_position),
                    Op::BsCreateBin => slow!(bits::create::bs_create_bin),
                    Op::BsMatch => slow!(bits::match_::bs_match),
                    Op::IsAnyNativeRecord => slow!(records::is_any_native_record),
                    Op::IsNativeRecord => slow!(records::is_native_record),
                    Op::GetRecordElements => slow!(records::get_record_elements),
                    Op::PutRecord => slow!(records::put_record),
                    Op::IsRecordAccessible => slow!(records::is_record_accessible),
                    Op::GetRecordField => slow!(records::get_record_field),
                }
            }
        }
    }
}

/// # Safety
/// T1 holds for both words.
#[inline]
unsafe fn eq_exact(left: u64, right: u64) -> bool {
    let (left, right) = (RawTerm(left), RawTerm(right));
    if left.is_immed() || right.is_immed() {
        return left == right;
    }
    // SAFETY: by contract.
    unsafe { compare::eq_exact(Term::new(left), Term::new(right)) }
}

fn mfa_of(row: &Bif) -> Mfa {
    use crate::term::Atom;
    let (module, function) = (Atom::new(row.module), Atom::new(row.function));
    Mfa {
        module,
        function,
        arity: row.arity,
    }
}

fn apply_mfa(arity: u8) -> Mfa {
    Mfa {
        module: am::erlang,
        function: am::apply,
        arity,
    }
}

/// A guard BIF's value, or its exception stored in the process. Where it does not `raise`, as a guard fails, nothing
/// is stored, and the heap is as it was.
///
/// # Safety
/// T1 holds for `args`; `p` is swapped out.
unsafe fn guard(
    p: &mut Process,
    row: &'static Bif,
    args: &[u64],
    raises: bool,
) -> Result<RawTerm, ()> {
    let raised = {
        let p: &Process = p;
        // SAFETY: T1: by contract; `Term` is a word.
        let terms =
            unsafe { std::slice::from_raw_parts(args.as_ptr().cast::<Term<'_>>(), args.len()) };
        let Call::Plain(call) = row.call else {
            unreachable!("a guard BIF cannot collect")
        };
        match call(p, terms) {
            Ok(value) => return Ok(value.raw()),
            Err(_) if !raises => return Err(()),
            Err(raise) => {
                let exception = Exception::from_raise(p, &raise);
                let mut exception = exception.expect("a guard BIF neither traps nor waits");
                exception.args = p.list(terms).raw();
                exception
            }
        }
    };
    p.exception = raised;
    Err(())
}

/// For a collection after a guard BIF whose result went to register `code`: how many x registers to keep,
/// so that the result is among them or on the stack.
///
/// # Safety
/// I3: registers below `live` hold terms.
unsafe fn keep(x: *mut u64, code: u64, live: usize) -> usize {
    let index = (code / 8) as usize;
    if code & Y_BIT != 0 || index < live {
        return live;
    }
    for i in live..index {
        // SAFETY: P2: below the number of registers.
        unsafe { *x.add(i) = tag::NIL };
    }
    index + 1
}

/// How a BIF call ended.
enum BifEnd {
    /// With its result in `x(0)`.
    Return,
    /// By calling the function with this entry, its arguments in the registers.
    Go(*const u64),
    /// The same, in the process's next turn.
    Trap(*const u64),
    /// By going on at this address, with nothing to return to here.
    Jump(*const u64),
    /// With its result in `x(0)`, the time slice given up.
    YieldAfter,
    /// Waiting, to go on where the BIF has said.
    Sleep,
    /// To be called again later.
    Again(Outcome),
    /// With the end of the process.
    Exit(Exiting),
}

/// Calls a BIF whose arguments are in the registers. `caller` is the calling instruction, where there is
/// one: for the stack trace.
fn call_bif(
    p: &mut Process,
    row: &'static Bif,
    at: *const u64,
    caller: Option<*const u64>,
) -> BifEnd {
    let arity = usize::from(row.arity);
    match row.call {
        Call::Plain(call) => {
            let mut live = 0;
            let ended = {
                let p: &Process = p;
                // SAFETY: P2, I3: a call's arguments are live; `Term` is a word.
                let args =
                    unsafe { std::slice::from_raw_parts(p.registers().cast::<Term<'_>>(), arity) };
                match call(p, args) {
                    Ok(value) => {
                        p.set_x(0, value);
                        Ok(BifEnd::Return)
                    }
                    Err(Raise::Trap(to, args)) => {
                        if p.flags.get().saves_calls {
                            p.save_call(Saved::Call(to));
                        }
                        live = args.len();
                        Ok(BifEnd::Trap(call::trap(p, to, &args).entry))
                    }
                    Err(Raise::TrapTo(address)) => Ok(BifEnd::Trap(address)),
                    Err(Raise::Wait) => Ok(BifEnd::Again(Outcome::Wait)),
                    Err(Raise::Yield) => Ok(BifEnd::Again(Outcome::Yield)),
                    Err(Raise::YieldWith(args)) => {
                        for (i, arg) in args.into_iter().enumerate() {
                            p.set_x(i, arg);
                        }
                        Ok(BifEnd::Again(Outcome::Yield))
                    }
                    Err(raise) => {
                        let exception = Exception::from_raise(p, &raise);
                        let mut exception = exception.expect("the rest are exceptions");
                        if exception.from_bif {
                            exception.args = p.list(args).raw();
                        }
                        Err(exception)
                    }
                }
            };
            match ended {
                Ok(BifEnd::Return) => after_bif(p, BifEnd::Return, 1),
                // What it has built so far is in its arguments.
                Ok(BifEnd::Trap(entry)) if live > 0 => after_bif(p, BifEnd::Trap(entry), live),
                Ok(ended) => ended,
                Err(exception) => {
                    p.exception = exception;
                    raise_from_bif(p, row, at, caller)
                }
            }
        }
        Call::Exclusive(call) => match exclusive(p, call, caller) {
            Next::Return => after_bif(p, BifEnd::Return, 1),
            Next::Yield => after_bif(p, BifEnd::YieldAfter, 1),
            Next::Jump => BifEnd::Jump(p.pc.get()),
            Next::Call => BifEnd::Go(p.pc.get()),
            Next::Wait => BifEnd::Again(Outcome::Wait),
            Next::Sleep => BifEnd::Sleep,
            Next::Exit(exiting) => BifEnd::Exit(exiting),
            Next::Raise => {
                // Who raises has left the arguments where they were.
                if p.exception.from_bif && p.exception.args == RawTerm::NONE {
                    let args: Vec<Term<'_>> = (0..arity).map(|i| p.x(i)).collect();
                    p.exception.args = p.list(&args).raw();
                }
                raise_from_bif(p, row, at, caller)
            }
        },
    }
}

/// Calls a BIF that has the process to itself; meanwhile `pc` tells where it was called, if in code.
fn exclusive(p: &mut Process, call: fn(&mut Process) -> Next, caller: Option<*const u64>) -> Next {
    p.pc.set(caller.unwrap_or(std::ptr::null()));
    call(p)
}

/// A BIF's end is a safepoint: its result in `x(0)`, or the `live` arguments of the call that it ends
/// with, are all that is live beside the stack.
fn after_bif(p: &mut Process, ended: BifEnd, live: usize) -> BifEnd {
    if p.wants_collection()
        && let Err(exiting) = p.garbage_collect(0, live)
    {
        return BifEnd::Exit(exiting);
    }
    ended
}

/// The call that the function on top of the stack was made by, for BIFs that code does not call itself.
fn return_address(p: &Process) -> Option<*const u64> {
    let mut found = None;
    for_each_return(p, |address| {
        found = Some(address.wrapping_sub(1));
        false
    });
    found
}

fn raise_from_bif(
    p: &mut Process,
    row: &'static Bif,
    at: *const u64,
    caller: Option<*const u64>,
) -> BifEnd {
    let current = if p.exception.from_bif {
        Current::Function(mfa_of(row), caller)
    } else {
        Current::Code(caller.unwrap_or_else(|| return_address(p).unwrap_or(at)))
    };
    match raise(p, current) {
        Ok(handler) => BifEnd::Jump(handler),
        Err(exiting) => BifEnd::Exit(exiting),
    }
}

/// An exception raised again with the trace it was caught with: a saved one keeps its class and place.
fn reraised(trace: RawTerm, value: RawTerm) -> Exception {
    // SAFETY: T1: a register's term.
    let class = unsafe { exception::class_of(Term::new(trace)) };
    Exception {
        class,
        trace,
        ..Exception::error(value)
    }
}

/// Raises the exception stored in `p`: saves its trace, cuts the stack to the innermost handler and
/// fills the registers for it.
///
/// # Errors
/// When there is no handler.
fn raise(p: &mut Process, current: Current) -> Result<*const u64, Exiting> {
    exception::save_trace(p, current);
    trace::breakpoint::unwinding(p);
    if p.catches.get() == 0 {
        return Err(p.uncaught());
    }
    let handler = exception::unwind(p).ok_or_else(|| p.uncaught())?;
    let exception = p.exception;
    let x = p.registers();
    // SAFETY: P2: four registers there are.
    unsafe {
        *x = RawTerm::NONE;
        *x.add(1) = exception.class.atom().raw();
        *x.add(2) = exception.value;
        *x.add(3) = exception.trace;
    }
    p.exception = Exception::default();
    Ok(handler)
}
