//! The BIFs of dates and times of day. They read the clock as a calendar, and convert between universal time, local
//! time and seconds since 1970. The arithmetic is in `num::time`, and the time zone in `sys::time`.
//! Source of ranges and errors: `bif.c`, `erl_time_sup.c`, OTP 29.

use super::{BifResult, Raise, badarg, bifs};
use crate::num::time::DateTime;
use crate::process::Process;
use crate::sys::chance::clock::system_ns;
use crate::sys::time::{
    NATIVE_PER_SECOND, local_from_posix, local_to_universal, universal_to_local,
};
use crate::term::{Term, View, am};

bifs! {
    bif erlang:"date"/0 => date_0, answer;
    bif erlang:"time"/0 => time_0, answer;
    bif erlang:"localtime"/0 => localtime_0, answer;
    bif erlang:"universaltime"/0 => universaltime_0, answer;
    bif erlang:"localtime_to_universaltime"/2 => localtime_to_universaltime_2, own;
    bif erlang:"universaltime_to_localtime"/1 => universaltime_to_localtime_1, own;
    bif erlang:"universaltime_to_posixtime"/1 => universaltime_to_posixtime_1, own;
    bif erlang:"posixtime_to_universaltime"/1 => posixtime_to_universaltime_1, own;
}

/// Seconds since 1970 by the clock of the system, or by the virtual one.
fn now() -> i64 {
    system_ns().div_euclid(NATIVE_PER_SECOND.cast_signed())
}

fn local_now<'p>() -> Result<DateTime, Raise<'p>> {
    local_from_posix(now()).ok_or_else(badarg)
}

fn triple(p: &Process, parts: [i64; 3]) -> Term<'_> {
    p.tuple(&parts.map(Term::small))
}

/// `{Year, Month, Day}`.
fn date_of(p: &Process, at: DateTime) -> Term<'_> {
    triple(p, [at.year, at.month, at.day])
}

/// `{Hour, Minute, Second}`.
fn time_of(p: &Process, at: DateTime) -> Term<'_> {
    triple(p, [at.hour, at.minute, at.second])
}

/// `{Date, Time}`.
fn build(p: &Process, at: DateTime) -> Term<'_> {
    p.tuple(&[date_of(p, at), time_of(p, at)])
}

/// Three small integers.
fn parts(term: Term<'_>) -> Option<[i64; 3]> {
    match *term.as_tuple()?.elements() {
        [a, b, c] => Some([a.as_small()?, b.as_small()?, c.as_small()?]),
        _ => None,
    }
}

/// The date and time that `{{Y, M, D}, {H, Mi, S}}` gives, in whatever ranges.
fn date_time(term: Term<'_>) -> Option<DateTime> {
    let [date, time] = *term.as_tuple()?.elements() else {
        return None;
    };
    let [year, month, day] = parts(date)?;
    let [hour, minute, second] = parts(time)?;
    Some(DateTime {
        year,
        month,
        day,
        hour,
        minute,
        second,
    })
}

fn date_0<'p>(p: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    Ok(date_of(p, local_now()?))
}

fn time_0<'p>(p: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    Ok(time_of(p, local_now()?))
}

fn localtime_0<'p>(p: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    Ok(build(p, local_now()?))
}

fn universaltime_0<'p>(p: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    Ok(build(p, DateTime::from_posix_seconds(now())))
}

fn localtime_to_universaltime_2<'p>(
    p: &'p Process,
    [local, is_dst]: [Term<'p>; 2],
) -> BifResult<'p> {
    let is_dst = match is_dst.as_atom() {
        Some(am::true_) => Some(true),
        Some(am::false_) => Some(false),
        Some(am::undefined) => None,
        _ => return Err(badarg().into()),
    };
    let universal = date_time(local).and_then(|local| local_to_universal(local, is_dst));
    Ok(build(p, universal.ok_or_else(badarg)?))
}

fn universaltime_to_localtime_1<'p>(p: &'p Process, [at]: [Term<'p>; 1]) -> BifResult<'p> {
    let local = date_time(at).and_then(universal_to_local);
    Ok(build(p, local.ok_or_else(badarg)?))
}

fn universaltime_to_posixtime_1<'p>(p: &'p Process, [at]: [Term<'p>; 1]) -> BifResult<'p> {
    let seconds = date_time(at).and_then(|at| at.to_posix_seconds());
    Ok(p.integer(seconds.ok_or_else(badarg)?))
}

/// Takes any integer of 64 bits.
fn posixtime_to_universaltime_1<'p>(p: &'p Process, [seconds]: [Term<'p>; 1]) -> BifResult<'p> {
    let seconds = match seconds.view() {
        View::Small(value) => value,
        View::Big(big) => match (big.is_negative(), big.limbs()) {
            (false, &[limb]) => i64::try_from(limb).map_err(|_| badarg())?,
            (true, &[limb]) => 0i64.checked_sub_unsigned(limb).ok_or_else(badarg)?,
            _ => return Err(badarg().into()),
        },
        _ => return Err(badarg().into()),
    };
    Ok(build(p, DateTime::from_posix_seconds(seconds)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_is_a_date_and_a_time() {
        let p = Process::new(233);
        let before = now();
        let universal = universaltime_0(&p, []).ok().expect("no exception");
        let seconds = date_time(universal).and_then(|at| at.to_posix_seconds());
        assert!((before..=now()).contains(&seconds.expect("a date")));
        let local = localtime_0(&p, []).ok().expect("no exception");
        let [date, time] = local.as_tuple().expect("a pair").elements() else {
            panic!("a pair");
        };
        assert!(parts(*date).is_some() && parts(*time).is_some());
        let back = localtime_to_universaltime_2(&p, [local, am::undefined.term()]);
        let back = date_time(back.ok().expect("no exception")).expect("a date");
        assert!((back.to_posix_seconds().expect("in range") - before).abs() <= 3600);
    }

    #[test]
    fn what_is_no_date_is_refused() {
        let p = Process::new(233);
        let date = triple(&p, [2020, 2, 30]);
        let no_date = p.tuple(&[date, triple(&p, [0, 0, 0])]);
        for bad in [no_date, am::ok.term(), date, p.tuple(&[])] {
            assert!(universaltime_to_localtime_1(&p, [bad]).is_err());
            assert!(universaltime_to_posixtime_1(&p, [bad]).is_err());
            assert!(localtime_to_universaltime_2(&p, [bad, am::true_.term()]).is_err());
        }
        let good = build(&p, DateTime::from_posix_seconds(0));
        assert!(localtime_to_universaltime_2(&p, [good, am::ok.term()]).is_err());
        assert!(posixtime_to_universaltime_1(&p, [p.unsigned(1 << 63)]).is_err());
    }
}
