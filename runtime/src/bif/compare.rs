//! The BIFs that compare terms, test their types, hash them, and print them as the emulator does.

use std::cmp::Ordering;
use std::io::Write;

use super::{BifResult, GuardResult, Leave, badarg, bifs, notsup};
use crate::process::{Process, work};
use crate::term::compare::{cmp, cmp_exact, eq, eq_exact};
use crate::term::hash::{BRIEF_STEPS, Paused, brief_phash2, phash, phash2_some};
use crate::term::{Term, View, am, tag};

bifs! {
    ubif erlang:"=="/2 => eq_2, own;
    ubif erlang:"/="/2 => ne_2, own;
    ubif erlang:"=:="/2 => eq_exact_2, own;
    ubif erlang:"=/="/2 => ne_exact_2, own;
    ubif erlang:"<"/2 => lt_2, own;
    ubif erlang:"=<"/2 => le_2, own;
    ubif erlang:">"/2 => gt_2, own;
    ubif erlang:">="/2 => ge_2, own;
    ubif erlang:"and"/2 => and_2, own;
    ubif erlang:"or"/2 => or_2, own;
    ubif erlang:"xor"/2 => xor_2, own;
    ubif erlang:"not"/1 => not_1, own;
    ubif erlang:"min"/2 => min_2, own;
    ubif erlang:"max"/2 => max_2, own;
    ubif erlang:"is_atom"/1 => is_atom_1, own;
    ubif erlang:"is_boolean"/1 => is_boolean_1, own;
    ubif erlang:"is_number"/1 => is_number_1, own;
    ubif erlang:"is_integer"/1 => is_integer_1, own;
    ubif erlang:"is_integer"/3 => is_integer_3, own;
    ubif erlang:"is_float"/1 => is_float_1, own;
    ubif erlang:"is_list"/1 => is_list_1, own;
    ubif erlang:"is_tuple"/1 => is_tuple_1, own;
    ubif erlang:"is_map"/1 => is_map_1, own;
    ubif erlang:"is_pid"/1 => is_pid_1, own;
    ubif erlang:"is_port"/1 => is_port_1, own;
    ubif erlang:"is_reference"/1 => is_reference_1, own;
    ubif erlang:"is_binary"/1 => is_binary_1, own;
    ubif erlang:"is_bitstring"/1 => is_bitstring_1, own;
    ubif erlang:"is_function"/1 => is_function_1, own;
    ubif erlang:"is_function"/2 => is_function_2, own;
    bif erts_internal:"cmp_term"/2 => cmp_term_2, own;
    bif erlang:"phash2"/1 => phash2_1, own;
    bif erlang:"phash2"/2 => phash2_2, own;
    bif erlang:"phash"/2 => phash_2, own;
    bif erlang:"display"/1 => display_1, again;
    bif erlang:"display_string"/2 => display_string_2, again;
}

macro_rules! tests_of_two {
    ($($name:ident |$a:ident, $b:ident| $test:expr;)*) => {
        $(fn $name<'p>(_: &'p Process, [$a, $b]: [Term<'p>; 2]) -> GuardResult<'p> {
            Ok(Term::bool($test))
        })*
    };
}

tests_of_two! {
    eq_2 |a, b| eq(a, b);
    ne_2 |a, b| !eq(a, b);
    eq_exact_2 |a, b| eq_exact(a, b);
    ne_exact_2 |a, b| !eq_exact(a, b);
    lt_2 |a, b| cmp(a, b).is_lt();
    le_2 |a, b| cmp(a, b).is_le();
    gt_2 |a, b| cmp(a, b).is_gt();
    ge_2 |a, b| cmp(a, b).is_ge();
}

macro_rules! type_tests {
    ($($name:ident |$t:ident| $test:expr;)*) => {
        $(fn $name<'p>(_: &'p Process, [$t]: [Term<'p>; 1]) -> GuardResult<'p> {
            Ok(Term::bool($test))
        })*
    };
}

fn is_integer(t: Term<'_>) -> bool {
    matches!(t.view(), View::Small(_) | View::Big(_))
}

/// Is of this kind, here or as `external` on another node.
fn is_kind(t: Term<'_>, local: bool, external: u64) -> bool {
    local || t.as_external().is_some_and(|it| it.kind() == external)
}

type_tests! {
    is_atom_1 |t| t.as_atom().is_some();
    is_boolean_1 |t| t.as_bool().is_some();
    is_number_1 |t| is_integer(t) || t.as_float().is_some();
    is_integer_1 |t| is_integer(t);
    is_float_1 |t| t.as_float().is_some();
    is_list_1 |t| t.is_nil() || t.as_cons().is_some();
    is_tuple_1 |t| t.as_tuple().is_some();
    is_map_1 |t| t.as_map().is_some();
    is_pid_1 |t| is_kind(t, t.as_pid().is_some(), tag::EXTERNAL_PID);
    is_port_1 |t| is_kind(t, t.as_port().is_some(), tag::EXTERNAL_PORT);
    is_reference_1 |t| is_kind(t, t.as_ref().is_some(), tag::EXTERNAL_REF);
    is_binary_1 |t| t.as_binary().is_some();
    is_bitstring_1 |t| t.as_bits().is_some();
    is_function_1 |t| t.as_fun().is_some();
}

fn is_function_2<'p>(_: &'p Process, [fun, arity]: [Term<'p>; 2]) -> GuardResult<'p> {
    let arity = match arity.view() {
        View::Small(n) if n >= 0 => Some(n),
        // Larger than any arity.
        View::Big(big) if !big.is_negative() => None,
        _ => return Err(badarg()),
    };
    let fun = fun.as_fun().map(|fun| i64::from(fun.arity()));
    Ok(Term::bool(fun.is_some() && fun == arity))
}

fn is_integer_3<'p>(_: &'p Process, [t, from, to]: [Term<'p>; 3]) -> GuardResult<'p> {
    if !(is_integer(from) && is_integer(to)) {
        return Err(badarg());
    }
    Ok(Term::bool(
        is_integer(t) && cmp(from, t).is_le() && cmp(t, to).is_le(),
    ))
}

fn booleans<'p>(a: Term<'p>, b: Term<'p>, apply: fn(bool, bool) -> bool) -> GuardResult<'p> {
    match (a.as_bool(), b.as_bool()) {
        (Some(a), Some(b)) => Ok(Term::bool(apply(a, b))),
        _ => Err(badarg()),
    }
}

fn and_2<'p>(_: &'p Process, [a, b]: [Term<'p>; 2]) -> GuardResult<'p> {
    booleans(a, b, |a, b| a && b)
}

fn or_2<'p>(_: &'p Process, [a, b]: [Term<'p>; 2]) -> GuardResult<'p> {
    booleans(a, b, |a, b| a || b)
}

fn xor_2<'p>(_: &'p Process, [a, b]: [Term<'p>; 2]) -> GuardResult<'p> {
    booleans(a, b, |a, b| a != b)
}

fn not_1<'p>(_: &'p Process, [a]: [Term<'p>; 1]) -> GuardResult<'p> {
    booleans(a, a, |a, _| !a)
}

fn min_2<'p>(_: &'p Process, [a, b]: [Term<'p>; 2]) -> GuardResult<'p> {
    Ok(if cmp(a, b).is_gt() { b } else { a })
}

fn max_2<'p>(_: &'p Process, [a, b]: [Term<'p>; 2]) -> GuardResult<'p> {
    Ok(if cmp(a, b).is_lt() { b } else { a })
}

fn cmp_term_2<'p>(_: &'p Process, [a, b]: [Term<'p>; 2]) -> GuardResult<'p> {
    Ok(Term::small(match cmp_exact(a, b) {
        Ordering::Less => -1,
        Ordering::Equal => 0,
        Ordering::Greater => 1,
    }))
}

/// A range of 1 to 2^32.
fn range(t: Term<'_>) -> Option<i64> {
    t.as_small().filter(|n| (1..=1 << 32).contains(n))
}

/// A hash in the making.
struct Hashing<'p> {
    paused: Paused,
    /// Those that are still to be walked.
    terms: Vec<Term<'p>>,
}

work! { struct Hashing { terms; paused } }

fn whole_phash2<'p>(p: &'p Process, t: Term<'p>) -> Result<u32, Leave<'static>> {
    const STEPS_PER_RED: i64 = 64;
    const _: () = assert!(BRIEF_STEPS as i64 <= STEPS_PER_RED, "it costs nothing");
    let begun = p
        .take_work::<Hashing>()
        .map(|work| (work.paused, work.terms));
    let is_first_slice = begun.is_none();
    if is_first_slice
        && p.fcalls.get() > 0
        && let Some(hash) = brief_phash2(t)
    {
        return Ok(hash);
    }
    let most = STEPS_PER_RED * p.fcalls.get();
    let mut steps = most;
    match phash2_some(t, begun, &mut steps) {
        Ok(hash) => {
            p.bump_reds((most - steps) / STEPS_PER_RED);
            Ok(hash)
        }
        Err((paused, terms)) => {
            if is_first_slice {
                p.trap_state();
            }
            Err(p.yield_with(Hashing { paused, terms }).into())
        }
    }
}

fn phash2_1<'p>(p: &'p Process, [t]: [Term<'p>; 1]) -> BifResult<'p> {
    let hash = whole_phash2(p, t)? & ((1 << 27) - 1);
    Ok(Term::small(hash.into()))
}

fn phash2_2<'p>(p: &'p Process, [t, limit]: [Term<'p>; 2]) -> BifResult<'p> {
    let range = range(limit).ok_or_else(badarg)?;
    let hash = whole_phash2(p, t)?;
    // A range of 2^32 is all of it.
    let cut = u32::try_from(range).map_or(hash, |range| hash % range);
    Ok(Term::small(cut.into()))
}

fn phash_2<'p>(_: &'p Process, [t, limit]: [Term<'p>; 2]) -> GuardResult<'p> {
    let range = range(limit).ok_or_else(badarg)?;
    Ok(Term::small(i64::from(phash(t)) % range + 1))
}

fn display_1<'p>(_: &'p Process, [t]: [Term<'p>; 1]) -> GuardResult<'p> {
    // ERTS writes a carriage return before each line feed of its own printing.
    let mut text = t.display().to_bytes();
    text.extend(b"\r\n");
    // As in ERTS, a closed standard output is no error of the program's.
    let mut out = std::io::stdout().lock();
    let _written = out.write_all(&text).and_then(|()| out.flush());
    Ok(am::true_.term())
}

fn display_string_2<'p>(_: &'p Process, [device, text]: [Term<'p>; 2]) -> GuardResult<'p> {
    let bytes = match text.as_binary() {
        Some(bits) => bits.bytes().into_owned(),
        None => utf8_of_list(text).ok_or_else(badarg)?,
    };
    let written = if device == am::stdout {
        let mut out = std::io::stdout().lock();
        out.write_all(&bytes).and_then(|()| out.flush())
    } else if device == am::stderr {
        std::io::stderr().lock().write_all(&bytes)
    } else if device == am::stdin {
        // Typing on behalf of the user is not offered.
        return Err(notsup());
    } else {
        return Err(badarg());
    };
    written.map_or_else(|_| Err(badarg()), |()| Ok(am::true_.term()))
}

/// A list of characters as UTF-8.
fn utf8_of_list(list: Term<'_>) -> Option<Vec<u8>> {
    let mut text = String::new();
    for element in list.list_iter() {
        let code = element.ok()?.as_small()?;
        text.push(u32::try_from(code).ok().and_then(char::from_u32)?);
    }
    Some(text.into_bytes())
}
