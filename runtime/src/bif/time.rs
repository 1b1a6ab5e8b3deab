//! The BIFs of time, timers, references and unique integers.

use super::{BifResult, Control, Raise, badarg, badopt, bifs, system_limit};
use crate::code::entry::export;
use crate::heap::{Heap, Message};
use crate::num::time::convert_unit;
use crate::process::order::answer::Native;
use crate::process::order::replay::SystemNotice;
use crate::process::order::{answer, explore};
use crate::process::refs::{
    FIRST, RefNumbers, integer_of_process, make_ref, monotonic_integer, unique_integer,
};
use crate::process::user_timers::{self, Receiver};
use crate::process::{Process, Signal, deliver};
use crate::sched;
use crate::sched::clock::{
    clock_of_erlang_ns, erlang_monotonic_ns, now_microseconds, system_time_ns, time_offset_ns,
};
use crate::sys::chance::clock::{self, monotonic_ns};
use crate::sys::time::NATIVE_PER_SECOND;
use crate::term::atom::atom;
use crate::term::{Atom, Term, View, am};
use crate::value::timestamp::triple;

bifs! {
    bif erlang:"make_ref"/0 => make_ref_0, own;
    bif erlang:"unique_integer"/0 => unique_integer_0, own;
    bif erlang:"unique_integer"/1 => unique_integer_1, answer;
    bif erlang:"monotonic_time"/0 => monotonic_time_0, answer;
    bif erlang:"monotonic_time"/1 => monotonic_time_1, answer;
    bif erlang:"system_time"/0 => system_time_0, answer;
    bif erlang:"system_time"/1 => system_time_1, answer;
    bif erlang:"time_offset"/0 => time_offset_0, answer;
    bif erlang:"time_offset"/1 => time_offset_1, answer;
    bif erlang:"timestamp"/0 => timestamp_0, answer;
    bif erlang:"now"/0 => now_0, answer;
    bif os:"timestamp"/0 => os_timestamp_0, answer;
    bif erts_internal:"scheduler_wall_time"/1 => scheduler_wall_time_1, again;
    bif os:"system_time"/0 => os_system_time_0, answer;
    bif os:"system_time"/1 => os_system_time_1, answer;
    bif os:"perf_counter"/0 => os_perf_counter_0, answer;
    bif erts_internal:"time_unit"/0 => time_unit_0, own;
    bif erts_internal:"perf_counter_unit"/0 => time_unit_0, own;
    bif erlang:"start_timer"/3 => start_timer_3, ordered;
    bif erlang:"start_timer"/4 => start_timer_4, ordered;
    bif erlang:"send_after"/3 => send_after_3, ordered;
    bif erlang:"send_after"/4 => send_after_4, ordered;
    bif erlang:"cancel_timer"/1 => cancel_timer_1, outside;
    bif erlang:"cancel_timer"/2 => cancel_timer_2, outside;
    bif erlang:"read_timer"/1 => read_timer_1, answer;
    bif erlang:"read_timer"/2 => read_timer_2, answer;
}

fn make_ref_0<'p>(p: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    Ok(p.reference(make_ref()))
}

fn unique_integer_0<'p>(p: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    Ok(next_unique_integer(p, false))
}

/// The next unique integer: of the process, where that is to be the same in a replay, or else of its thread.
fn next_unique_integer(p: &Process, positive: bool) -> Term<'_> {
    if let Some(number) = integer_of_process() {
        return from_zero(p, number, positive);
    }
    let (thread, count) = unique_integer();
    make_unique_integer(p, thread, count, positive)
}

/// The integer of a thread's count: below the count are as many bits as tell all threads apart.
/// Source: `bld_unique_integer_term()` in `erl_bif_unique.c`.
pub(crate) fn make_unique_integer(p: &Heap, thread: u64, count: u64, positive: bool) -> Term<'_> {
    let bits = u64::BITS - super::system::all_schedulers().leading_zeros();
    from_zero(p, i128::from(thread) | i128::from(count) << bits, positive)
}

/// The unique integer that is counted as `number`.
fn from_zero(p: &Heap, number: i128, positive: bool) -> Term<'_> {
    let number = number + if positive { 1 } else { i128::from(FIRST) };
    match i64::try_from(number) {
        Ok(number) => p.integer(number),
        Err(_) => {
            let limbs = [number as u64, (number >> 64) as u64];
            let len = if limbs[1] == 0 { 1 } else { 2 };
            p.big(false, &limbs[..len])
        }
    }
}

fn unique_integer_1<'p>(p: &'p Process, [options]: [Term<'p>; 1]) -> BifResult<'p> {
    let (mut positive, mut monotonic) = (false, false);
    for option in options.list_iter() {
        match option.map_err(|_| badarg())?.as_atom() {
            Some(am::positive) => positive = true,
            Some(am::monotonic) => monotonic = true,
            _ => return Err(badarg().into()),
        }
    }
    if !monotonic {
        return Ok(next_unique_integer(p, positive));
    }
    let count = monotonic_integer();
    Ok(p.integer(if positive { count + 1 } else { FIRST + count }))
}

/// Parts a second of a unit that is converted to here; `None` for those of which `erlang.erl` does it: numbers
/// other than the common ones, of any size.
///
/// # Errors
/// `badarg` for what is no unit.
fn unit(term: Term<'_>) -> Result<Option<u64>, Raise<'static>> {
    Ok(Some(match term.view() {
        View::Atom(am::native) => NATIVE_PER_SECOND,
        View::Atom(am::second | am::seconds) | View::Small(1) => 1,
        View::Atom(am::millisecond | am::milli_seconds) | View::Small(1_000) => 1_000,
        View::Atom(am::microsecond | am::micro_seconds) | View::Small(1_000_000) => 1_000_000,
        View::Atom(am::nanosecond | am::nano_seconds) | View::Small(1_000_000_000) => 1_000_000_000,
        View::Atom(am::perf_counter) => return Ok(None),
        View::Small(parts) if parts > 0 => return Ok(None),
        View::Big(parts) if !parts.is_negative() => return Ok(None),
        _ => return Err(badarg()),
    }))
}

/// Source: `time_unit_conversion()` in `erl_time_sup.c`.
fn in_unit<'p>(p: &'p Process, ns: i64, to: Term<'p>) -> BifResult<'p> {
    if let Some(time) = unit(to)?.and_then(|unit| convert_unit(ns, NATIVE_PER_SECOND, unit)) {
        return Ok(p.integer(time));
    }
    // The conversion is code, so its argument is what a replay needs.
    static CONVERTED: Native = Native::new("erlang", "convert_time_unit", 3);
    let ns: BifResult<'p> = answer::replay_or_call(p, &CONVERTED, || Ok(p.integer(ns)));
    let convert = export(am::erlang, am::convert_time_unit, 3);
    let args = vec![ns?, p.unsigned(NATIVE_PER_SECOND), to];
    Err(Control::Trap(convert, args).into())
}

fn monotonic_time_0<'p>(p: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    Ok(p.integer(erlang_monotonic_ns()))
}

fn monotonic_time_1<'p>(p: &'p Process, [to]: [Term<'p>; 1]) -> BifResult<'p> {
    in_unit(p, erlang_monotonic_ns(), to)
}

fn system_time_0<'p>(p: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    Ok(p.integer(system_time_ns()))
}

fn system_time_1<'p>(p: &'p Process, [to]: [Term<'p>; 1]) -> BifResult<'p> {
    in_unit(p, system_time_ns(), to)
}

fn time_offset_0<'p>(p: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    Ok(p.integer(time_offset_ns()))
}

fn time_offset_1<'p>(p: &'p Process, [to]: [Term<'p>; 1]) -> BifResult<'p> {
    in_unit(p, time_offset_ns(), to)
}

fn timestamp_0<'p>(p: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    Ok(triple(p, system_time_ns().div_euclid(1000)))
}

fn now_0<'p>(p: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    Ok(triple(p, now_microseconds()))
}

fn scheduler_wall_time_1<'p>(_: &'p Process, [enable]: [Term<'p>; 1]) -> BifResult<'p> {
    let enable = enable.as_bool().ok_or_else(badarg)?;
    Ok(Term::bool(sched::wall_time::switch(enable)))
}

fn os_timestamp_0<'p>(p: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    Ok(triple(p, clock::system_ns().div_euclid(1000)))
}

fn os_system_time_0<'p>(p: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    Ok(p.integer(clock::system_ns()))
}

fn os_system_time_1<'p>(p: &'p Process, [to]: [Term<'p>; 1]) -> BifResult<'p> {
    in_unit(p, clock::system_ns(), to)
}

fn os_perf_counter_0<'p>(p: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    Ok(p.integer(clock::counter_ns()))
}

fn time_unit_0<'p>(p: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    Ok(p.unsigned(NATIVE_PER_SECOND))
}

fn start_timer_3<'p>(p: &'p Process, [time, to, message]: [Term<'p>; 3]) -> BifResult<'p> {
    start_timer(p, time, to, message, Term::NIL, true)
}

fn start_timer_4<'p>(p: &'p Process, [time, to, message, opts]: [Term<'p>; 4]) -> BifResult<'p> {
    start_timer(p, time, to, message, opts, true)
}

fn send_after_3<'p>(p: &'p Process, [time, to, message]: [Term<'p>; 3]) -> BifResult<'p> {
    start_timer(p, time, to, message, Term::NIL, false)
}

fn send_after_4<'p>(p: &'p Process, [time, to, message, opts]: [Term<'p>; 4]) -> BifResult<'p> {
    start_timer(p, time, to, message, opts, false)
}

/// `{Key, true | false}` of an option list.
fn flags<'p, const N: usize>(
    options: Term<'p>,
    keys: [Atom; N],
    mut values: [bool; N],
) -> Result<[bool; N], Raise<'p>> {
    for option in options.list_iter() {
        let option = option
            .map_err(|_| badarg())?
            .as_tuple()
            .ok_or_else(badarg)?;
        let [key, value] = option.elements() else {
            return Err(badarg());
        };
        let at = keys.iter().position(|known| *key == *known);
        values[at.ok_or_else(badarg)?] = value.as_bool().ok_or_else(badarg)?;
    }
    Ok(values)
}

/// When a timer of `time` milliseconds runs out; `None` where that is later than the clock can count.
fn deadline(time: Term<'_>, absolute: bool) -> Option<u64> {
    let milliseconds = time.as_small()?;
    if absolute {
        return Some(clock_of_erlang_ns(milliseconds.checked_mul(1_000_000)?));
    }
    let ns = u64::try_from(milliseconds).ok()?.checked_mul(1_000_000)?;
    monotonic_ns().checked_add(ns)
}

fn start_timer<'p>(
    p: &'p Process,
    time: Term<'p>,
    to: Term<'p>,
    message: Term<'p>,
    options: Term<'p>,
    wrap: bool,
) -> BifResult<'p> {
    let [absolute] = flags(options, [am::abs], [false]).map_err(|_| badopt())?;
    let bad_time = || Raise::ErrorCause(am::badarg.term(), atom("time"));
    let deadline = deadline(time, absolute).ok_or_else(bad_time)?;
    let receiver = match to.view() {
        View::Pid(pid) => Receiver::Pid(pid),
        View::Atom(name) => Receiver::Name(name),
        _ => return Err(badarg().into()),
    };
    explore::wait_to_start_timer(p)?;
    let reference = user_timers::start(p.note_timer(), deadline, receiver, |reference| {
        if !wrap {
            return Message::copy_of(message);
        }
        Heap::detached().into_message(|heap| {
            let elements = [
                am::timeout.term(),
                heap.reference(reference),
                heap.copy_in(message),
            ];
            heap.tuple(&elements)
        })
    });
    explore::start_timer(p, receiver, reference).map_err(|_| system_limit())?;
    Ok(p.reference(reference))
}

/// The milliseconds that were left of a timer that `p` cancels, if it had not gone off.
fn cancel(p: &Process, reference: RefNumbers) -> Result<Option<u64>, Control<'static>> {
    explore::access_timer(p, reference)?;
    let left = user_timers::cancel(reference);
    explore::note_cancelled(reference, left.is_some());
    Ok(left)
}

/// The milliseconds left of a timer, if it has not gone off.
fn read(p: &Process, reference: RefNumbers) -> Result<Option<u64>, Control<'static>> {
    explore::access_timer(p, reference)?;
    Ok(user_timers::read(reference))
}

fn cancel_timer_1<'p>(p: &'p Process, [timer]: [Term<'p>; 1]) -> BifResult<'p> {
    if let Some(later) = p.wait_for_notice(|_| Some(SystemNotice::Any)) {
        return Err(later.into());
    }
    let reference = numbers(timer)?;
    let milliseconds = reference.map(|timer| cancel(p, timer)).transpose()?;
    Ok(left(p, milliseconds.flatten()))
}

fn cancel_timer_2<'p>(p: &'p Process, [timer, options]: [Term<'p>; 2]) -> BifResult<'p> {
    if let Some(later) = p.wait_for_notice(|_| Some(SystemNotice::Any)) {
        return Err(later.into());
    }
    let [is_async, info] = flags(options, [am::async_, am::info], [false, true])?;
    let Some(reference) = numbers(timer)? else {
        // No timer: told even where no answer is wanted, as in ERTS.
        return Ok(answer(
            p,
            am::cancel_timer,
            timer,
            None,
            (is_async, info || !is_async),
        ));
    };
    let result = cancel(p, reference)?;
    Ok(answer(p, am::cancel_timer, timer, result, (is_async, info)))
}

fn read_timer_1<'p>(p: &'p Process, [timer]: [Term<'p>; 1]) -> BifResult<'p> {
    let reference = numbers(timer)?;
    let milliseconds = reference.map(|timer| read(p, timer)).transpose()?;
    Ok(left(p, milliseconds.flatten()))
}

fn read_timer_2<'p>(p: &'p Process, [timer, options]: [Term<'p>; 2]) -> BifResult<'p> {
    let [is_async] = flags(options, [am::async_], [false])?;
    let reference = numbers(timer)?;
    let result = reference.map(|timer| read(p, timer)).transpose()?.flatten();
    Ok(answer(p, am::read_timer, timer, result, (is_async, true)))
}

/// The numbers of a reference; `None` for one of another node, which is no timer here.
fn numbers(timer: Term<'_>) -> Result<Option<RefNumbers>, Raise<'static>> {
    match timer.view() {
        View::Ref(reference) => Ok(Some(reference.numbers())),
        View::External(other) if other.kind() == crate::term::tag::EXTERNAL_REF => Ok(None),
        _ => Err(badarg()),
    }
}

fn left(p: &Process, milliseconds: Option<u64>) -> Term<'_> {
    milliseconds.map_or(Term::bool(false), |ms| p.unsigned(ms))
}

/// What `read_timer` and `cancel_timer` return; the result of an asynchronous call is a message
/// `{Tag, TimerRef, Result}`.
fn answer<'p>(
    p: &'p Process,
    tag: Atom,
    timer: Term<'p>,
    result: Option<u64>,
    (is_async, info): (bool, bool),
) -> Term<'p> {
    if info && !is_async {
        return left(p, result);
    }
    if info {
        let message = p.tuple(&[tag.term(), timer, left(p, result)]);
        // The time that is left comes from outside.
        deliver(p.pid(), Signal::from_outside(Message::copy_of(message)));
    }
    am::ok.term()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unique_integers_are_laid_out_as_otps() {
        let p = &Process::new(233);
        let all = super::super::system::all_schedulers();
        let bits = u64::BITS - all.leading_zeros();
        let first = |thread, count| make_unique_integer(p, thread, count, false).as_small();
        assert_eq!(first(0, 0), Some(FIRST));
        assert_eq!(first(3, 5), Some(FIRST + (5 << bits) + 3));
        assert_eq!(make_unique_integer(p, 1, 0, true).as_small(), Some(2));
        let last = make_unique_integer(p, all, u64::MAX, false);
        assert_eq!(last.as_big().map(|big| big.limbs().len()), Some(2));
    }
}
