//! Values of options and control messages that are more than a number.

use super::names::{Row, get, int, map, name_of, number_of};
use crate::heap::Heap;
use crate::term::Term;
use crate::term::atom::atom;

/// Names of services that a packet asks for, and what the kernel has for them.
const SERVICES: &[Row] = &[
    ("lowdelay", LOWDELAY << TOS_SHIFT),
    ("throughput", THROUGHPUT << TOS_SHIFT),
    ("reliability", RELIABILITY << TOS_SHIFT),
    ("mincost", MINCOST << TOS_SHIFT),
];

const LOWDELAY: i32 = 8;
const THROUGHPUT: i32 = 4;
const RELIABILITY: i32 = 2;
const MINCOST: i32 = 1;

const TOS_SHIFT: i32 = 1;
const TOS_MASK: i32 = 0x1e;
const PRECEDENCE_SHIFT: i32 = 5;
const PRECEDENCE_MASK: i32 = 0xe0;
const CODE_SHIFT: i32 = 2;
const CODE_MASK: i32 = 0xfc;

/// Types of service, below precedence.
const TYPES: &[Row] = &[
    ("lowdelay", LOWDELAY),
    ("throughput", THROUGHPUT),
    ("reliability", RELIABILITY),
    ("mincost", MINCOST),
    ("default", 0),
];

/// Precedences, as numbers that are shifted. OTP has them as code points, of which only three bits are left then.
const PRECEDENCES: &[Row] = &[
    ("netcontrol", 56),
    ("internetcontrol", 48),
    ("critical_ecp", 40),
    ("flashoverride", 32),
    ("flash", 24),
    ("immediate", 16),
    ("priority", 8),
    ("routine", 0),
];

/// Code points of differentiated services.
const CODES: &[Row] = &[
    ("cs0", 0),
    ("cs1", 8),
    ("cs2", 16),
    ("cs3", 24),
    ("cs4", 32),
    ("cs5", 40),
    ("cs6", 48),
    ("cs7", 56),
    ("af11", 10),
    ("af12", 12),
    ("af13", 14),
    ("af21", 18),
    ("af22", 20),
    ("af23", 22),
    ("af31", 26),
    ("af32", 28),
    ("af33", 30),
    ("af41", 34),
    ("af42", 36),
    ("af43", 38),
    ("ef", 46),
    ("voice_admit", 44),
    ("le", 1),
    ("nqb", 45),
];

/// The number of a name, or the number that it is.
fn named(rows: &[Row], value: Term<'_>) -> Option<i32> {
    number_of(rows, value).or_else(|| int(value).filter(|n| *n >= 0))
}

/// A type of service: a number, a name, or precedence and type in a map.
pub(super) fn tos_of(value: Term<'_>) -> Option<i32> {
    if let Some(precedence) = get(value, "precedence") {
        let precedence = named(PRECEDENCES, precedence)?;
        let tos = named(TYPES, get(value, "tos")?)?;
        let precedence = (precedence & 0xff) << PRECEDENCE_SHIFT & PRECEDENCE_MASK;
        return Some(precedence | ((tos & 0xff) << TOS_SHIFT & TOS_MASK));
    }
    let code = || number_of(CODES, value).map(|code| code << CODE_SHIFT);
    int(value)
        .or_else(|| number_of(SERVICES, value))
        .or_else(code)
}

/// A type of service in each of the ways to say it.
pub(super) fn tos_term(p: &Heap, value: i32) -> Term<'_> {
    let precedence = (value & PRECEDENCE_MASK) >> PRECEDENCE_SHIFT;
    let tos = (value & TOS_MASK) >> TOS_SHIFT;
    let parts = [
        ("precedence", name_of(p, PRECEDENCES, precedence)),
        ("tos", name_of(p, TYPES, tos)),
    ];
    let code = name_of(p, CODES, (value & CODE_MASK) >> CODE_SHIFT);
    let pairs = [
        ("native", p.integer(value.into())),
        ("tos", map(p, &parts)),
        ("dscp", code),
    ];
    map(p, &pairs)
}

/// What is done with packets that are too long, by the numbers of IPv4 and IPv6.
const DISCOVERIES: &[Row] = &[("want", 1), ("dont", 0), ("do", 2), ("probe", 3)];

/// What is done with packets that are too long.
pub(super) fn discovery_of(value: Term<'_>) -> Option<i32> {
    number_of(DISCOVERIES, value).or_else(|| int(value))
}

/// A number of path MTU discovery as a term.
pub(super) fn discovery_term(p: &Heap, value: i32) -> Term<'_> {
    name_of(p, DISCOVERIES, value)
}

/// The bytes of a C `int`.
pub(super) fn int_bytes(value: Term<'_>) -> Option<Vec<u8>> {
    Some(int(value)?.to_ne_bytes().to_vec())
}

/// The bytes of a truth.
pub(super) fn bool_bytes(value: Term<'_>) -> Option<Vec<u8>> {
    Some(i32::from(value.as_bool()?).to_ne_bytes().to_vec())
}

/// `#{onoff, linger}`, or `abort`, which lingers no second.
pub(super) fn linger_bytes(value: Term<'_>) -> Option<Vec<u8>> {
    let (is_on, seconds) = match (get(value, "onoff"), get(value, "linger")) {
        (Some(is_on), Some(seconds)) => (is_on.as_bool()?, int(seconds).filter(|n| *n >= 0)?),
        _ => (value.same(atom("abort")).then_some(true)?, 0),
    };
    Some([i32::from(is_on).to_ne_bytes(), seconds.to_ne_bytes()].concat())
}

/// A `struct linger` as a term.
pub(super) fn linger_term<'p>(p: &'p Heap, bytes: &[u8]) -> Option<Term<'p>> {
    let is_on = *bytes.first_chunk::<4>()? != [0; 4];
    let seconds = i32::from_ne_bytes(*bytes.get(4..)?.first_chunk::<4>()?);
    let pairs = [
        ("onoff", Term::bool(is_on)),
        ("linger", p.integer(seconds.into())),
    ];
    Some(map(p, &pairs))
}
