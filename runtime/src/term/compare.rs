//! Equality and order of terms.
//!
//! Number < atom < reference < fun < port < pid < tuple < record < map < nil < list < bitstring.
//! All comparisons work with a stack of their own: memory alone bounds the depth of terms.
//! Source: `erts_cmp_compound()` and `eq()` in `utils.c`, OTP 29.

mod nested;
mod order;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;

use smallvec::SmallVec;

use super::{Atom, Big, Bits, External, Fun, Map, Record, Term, View, tag};
use crate::num::limbs::{IntRef, cmp_f64};

/// `=:=`.
#[inline]
#[must_use]
pub(crate) fn eq_exact(a: Term<'_>, b: Term<'_>) -> bool {
    a.same(b) || !(a.raw().is_immed() || b.raw().is_immed()) && nested::equal(a, b, true)
}

/// `==`: numbers by value, but for keys of maps.
#[inline]
#[must_use]
pub fn eq(a: Term<'_>, b: Term<'_>) -> bool {
    a.same(b) || !(a.raw().is_immed() && b.raw().is_immed()) && nested::equal(a, b, false)
}

/// Erlang's term order, numbers by value.
#[inline]
#[must_use]
pub fn cmp(a: Term<'_>, b: Term<'_>) -> Ordering {
    match (a.as_small(), b.as_small()) {
        (Some(a), Some(b)) => a.cmp(&b),
        _ => nested::cmp(a, b, false),
    }
}

/// Erlang's term order, integers before floats: how keys of maps are ordered.
#[inline]
#[must_use]
pub fn cmp_exact(a: Term<'_>, b: Term<'_>) -> Ordering {
    match (a.as_small(), b.as_small()) {
        (Some(a), Some(b)) => a.cmp(&b),
        _ => nested::cmp(a, b, true),
    }
}

/// The order of keys within a flat map: atoms by their index, all else as [`cmp_exact`].
#[inline]
#[must_use]
pub(crate) fn cmp_flatmap_keys(a: Term<'_>, b: Term<'_>) -> Ordering {
    match (a.as_atom(), b.as_atom()) {
        (Some(a), Some(b)) => a.index().cmp(&b.index()),
        _ => cmp_exact(a, b),
    }
}

/// Terms that are left to be compared; the flag says whether numbers are compared exactly.
#[derive(Clone, Copy)]
enum Pending<'h> {
    Terms(&'h [Term<'h>], &'h [Term<'h>], bool),
    /// Children of nodes of hash tries.
    Nodes(&'h [Term<'h>], &'h [Term<'h>], bool),
}

/// A comparison for equality under way.
struct Equality<'h> {
    pending: SmallVec<[Pending<'h>; 4]>,
}

impl<'h> Equality<'h> {
    fn run(a: Term<'h>, b: Term<'h>, exact: bool) -> bool {
        let pending = SmallVec::new();
        let mut this = Equality { pending };
        if !this.pair(a, b, exact) {
            return false;
        }
        while let Some(next) = this.pending.pop() {
            let equal = match next {
                Pending::Terms(a, b, exact) => this.terms(a, b, exact),
                Pending::Nodes(a, b, exact) => this.nodes(a, b, exact),
            };
            if !equal {
                return false;
            }
        }
        true
    }

    fn push(&mut self, a: &'h [Term<'h>], b: &'h [Term<'h>], exact: bool) -> bool {
        if a.len() != b.len() {
            return false;
        }
        if !a.is_empty() {
            self.pending.push(Pending::Terms(a, b, exact));
        }
        true
    }

    /// Pairs until one has parts; then the rest waits.
    fn terms(&mut self, mut a: &'h [Term<'h>], mut b: &'h [Term<'h>], exact: bool) -> bool {
        while let ([x, rest_a @ ..], [y, rest_b @ ..]) = (a, b) {
            (a, b) = (rest_a, rest_b);
            if x.same(*y) {
                continue;
            }
            if a.is_empty()
                && let (View::Cons(x), View::Cons(y)) = (x.view(), y.view())
            {
                (a, b) = (x.words(), y.words());
                continue;
            }
            let waiting = self.pending.len();
            if !self.pair(*x, *y, exact) {
                return false;
            }
            if self.pending.len() > waiting && !a.is_empty() {
                let rest = Pending::Terms(a, b, exact);
                self.pending.insert(waiting, rest);
                return true;
            }
        }
        true
    }

    /// Whether two terms that are not the same word may be equal; their parts are left pending.
    fn pair(&mut self, a: Term<'h>, b: Term<'h>, exact: bool) -> bool {
        match (a.view(), b.view()) {
            (View::Cons(a), View::Cons(b)) => self.push(a.words(), b.words(), exact),
            (View::Tuple(a), View::Tuple(b)) => self.push(a.elements(), b.elements(), exact),
            (View::Bits(a), View::Bits(b)) => equal_bits(a, b),
            (View::Map(a), View::Map(b)) => self.maps(a, b, exact),
            (View::Big(a), View::Big(b)) => {
                a.is_negative() == b.is_negative() && a.limbs() == b.limbs()
            }
            (View::Float(a), View::Float(b)) if exact => a.to_bits() == b.to_bits(),
            (View::Float(a), View::Float(b)) => a == b,
            (View::Fun(a), View::Fun(b)) => {
                same_fun(a, b, exact) && self.push(a.env(), b.env(), exact)
            }
            (View::Record(a), View::Record(b)) => {
                same_definition(a, b) && self.push(a.values(), b.values(), exact)
            }
            (View::Ref(a), View::Ref(b)) => {
                cmp_ref_numbers(&a.all_numbers(), &b.all_numbers()).is_eq()
            }
            (View::External(a), View::External(b)) => {
                a.kind() == b.kind() && cmp_external(a, b).is_eq()
            }
            (a, b) if !exact => cmp_numbers(a, b).is_some_and(Ordering::is_eq),
            _ => false,
        }
    }

    fn maps(&mut self, a: Map<'h>, b: Map<'h>, exact: bool) -> bool {
        if a.len() != b.len() {
            return false;
        }
        match (a.flat(), b.flat(), a.root(), b.root()) {
            (Some((keys_a, a)), Some((keys_b, b)), ..) => {
                self.push(a, b, exact)
                    && (keys_a.ptr() == keys_b.ptr()
                        || self.push(keys_a.elements(), keys_b.elements(), true))
            }
            (_, _, Some((bitmap_a, a)), Some((bitmap_b, b))) => {
                // Equal keys make equal tries.
                self.pending.push(Pending::Nodes(a, b, exact));
                bitmap_a == bitmap_b
            }
            _ => false,
        }
    }

    fn nodes(&mut self, a: &'h [Term<'h>], b: &'h [Term<'h>], exact: bool) -> bool {
        for (a, b) in a.iter().zip(b) {
            if a.same(*b) {
                continue;
            }
            let possible = match (a.view(), b.view()) {
                (View::Cons(a), View::Cons(b)) => {
                    let ([key_a, value_a], [key_b, value_b]) = (a.words(), b.words());
                    let one = std::slice::from_ref;
                    self.push(one(value_a), one(value_b), exact)
                        && self.push(one(key_a), one(key_b), true)
                }
                (View::Tuple(a), View::Tuple(b)) => {
                    self.pending
                        .push(Pending::Nodes(a.elements(), b.elements(), exact));
                    a.arity() == b.arity()
                }
                _ => match (Map::inner(*a), Map::inner(*b)) {
                    (Some((bitmap_a, a)), Some((bitmap_b, b))) => {
                        self.pending.push(Pending::Nodes(a, b, exact));
                        bitmap_a == bitmap_b
                    }
                    _ => false,
                },
            };
            if !possible {
                return false;
            }
        }
        true
    }
}

fn same_fun(a: Fun<'_>, b: Fun<'_>, exact: bool) -> bool {
    if !exact {
        return cmp_fun_heads(a, b).is_eq();
    }
    let entry = |f: Fun<'_>| f.entry().map(std::ptr::from_ref);
    let export = |f: Fun<'_>| f.export().map(std::ptr::from_ref);
    a.arity() == b.arity() && entry(a) == entry(b) && export(a) == export(b)
}

fn same_definition(a: Record<'_>, b: Record<'_>) -> bool {
    a.definition().ptr() == b.definition().ptr() || cmp_definitions(a, b).is_eq()
}

/// Order of funs but for what they have captured; fewer captured variables come first.
fn cmp_fun_heads(a: Fun<'_>, b: Fun<'_>) -> Ordering {
    match (a.entry(), b.entry(), a.export(), b.export()) {
        (Some(x), Some(y), ..) => x
            .module
            .cmp_name(y.module)
            .then_with(|| x.index.cmp(&y.index))
            .then_with(|| x.old_uniq.cmp(&y.old_uniq))
            .then_with(|| a.env().len().cmp(&b.env().len())),
        (_, _, Some(x), Some(y)) => x
            .module
            .cmp_name(y.module)
            .then_with(|| x.function.cmp_name(y.function))
            .then_with(|| x.arity.cmp(&y.arity)),
        // External funs come after local ones.
        _ => a.is_external().cmp(&b.is_external()),
    }
}

/// Order of records by their definitions: module, name, exported or not, fields in the source's order.
fn cmp_definitions(a: Record<'_>, b: Record<'_>) -> Ordering {
    let names = |r: Record<'_>| -> SmallVec<[Atom; 16]> {
        let keys = r.keys();
        r.field_order().filter_map(|i| keys[i].as_atom()).collect()
    };
    let fields = || {
        let (a, b) = (names(a), names(b));
        let by_count = a.len().cmp(&b.len());
        let mut pairs = a.into_iter().zip(b);
        by_count.then_with(|| {
            pairs
                .find_map(|(a, b)| Some(a.cmp_name(b)).filter(|o| o.is_ne()))
                .unwrap_or(Ordering::Equal)
        })
    };
    a.module()
        .cmp_name(b.module())
        .then_with(|| a.name().cmp_name(b.name()))
        .then_with(|| a.is_exported().cmp(&b.is_exported()))
        .then_with(fields)
}

fn cmp_bits(a: Bits<'_>, b: Bits<'_>) -> Ordering {
    match (a.whole_bytes(), b.whole_bytes()) {
        (Some(a), Some(b)) => cmp_bytes(a, b),
        _ => cmp_any_bits(a, b),
    }
}

#[inline]
fn equal_bits(a: Bits<'_>, b: Bits<'_>) -> bool {
    a.bit_len() == b.bit_len() && cmp_bits(a, b).is_eq()
}

/// The order of bytes: that of their first ones, most often, which no call is worth.
#[inline]
fn cmp_bytes(a: &[u8], b: &[u8]) -> Ordering {
    let by_first = first_eight(a).cmp(&first_eight(b));
    if by_first.is_ne() {
        return by_first;
    }
    match (a.get(8..), b.get(8..)) {
        (Some(a), Some(b)) => a.cmp(b),
        // Where the shorter one ends, the longer one has zeros.
        _ => a.len().cmp(&b.len()),
    }
}

/// The first bytes as a number, the first of them the highest; zeros where there are fewer.
#[inline]
pub(super) fn first_eight(bytes: &[u8]) -> u64 {
    if let Some(eight) = bytes.first_chunk::<8>() {
        return u64::from_be_bytes(*eight);
    }
    if let (Some(first), Some(last)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        let behind = u64::from(u32::from_be_bytes(*last)) << (8 * (8 - bytes.len()));
        return u64::from(u32::from_be_bytes(*first)) << 32 | behind & 0xffff_ffff;
    }
    let at = |index: usize| u64::from(bytes.get(index).copied().unwrap_or(0));
    at(0) << 56 | at(1) << 48 | at(2) << 40
}

fn cmp_any_bits(a: Bits<'_>, b: Bits<'_>) -> Ordering {
    let common = a.bit_len().min(b.bit_len());
    let whole = common / 8;
    let bytes = match (a.as_bytes(), b.as_bytes()) {
        (Some(a), Some(b)) => a[..whole].cmp(&b[..whole]),
        (Some(a), None) => a[..whole].cmp(&b.to_vec()[..whole]),
        (None, Some(b)) => a.to_vec()[..whole].cmp(&b[..whole]),
        (None, None) => a.to_vec()[..whole].cmp(&b.to_vec()[..whole]),
    };
    let rest = || {
        (whole * 8..common)
            .map(|i| a.bit(i))
            .cmp((whole * 8..common).map(|i| b.bit(i)))
    };
    bytes
        .then_with(rest)
        .then_with(|| a.bit_len().cmp(&b.bit_len()))
}

/// Order of reference numbers: the last is the most significant; missing ones are zero.
fn cmp_ref_numbers(a: &[u32], b: &[u32]) -> Ordering {
    let at = |n: &[u32], i: usize| n.get(i).copied().unwrap_or(0);
    (0..a.len().max(b.len()))
        .rev()
        .map(|i| at(a, i).cmp(&at(b, i)))
        .find(|o| o.is_ne())
        .unwrap_or(Ordering::Equal)
}

/// Order of nodes: by name, then by creation.
fn cmp_nodes((name_a, creation_a): (Atom, u32), (name_b, creation_b): (Atom, u32)) -> Ordering {
    name_a
        .cmp_name(name_b)
        .then_with(|| creation_a.cmp(&creation_b))
}

fn node_of(external: External<'_>) -> (Atom, u32) {
    (external.node().name, external.node().creation)
}

/// Order of two things of the same kind of other nodes.
fn cmp_external(a: External<'_>, b: External<'_>) -> Ordering {
    let nodes = cmp_nodes(node_of(a), node_of(b));
    match a.kind() {
        tag::EXTERNAL_PID => cmp_pid_numbers(pid_numbers(a), pid_numbers(b)).then(nodes),
        tag::EXTERNAL_REF => {
            nodes.then_with(|| cmp_ref_numbers(&a.ref_numbers(), &b.ref_numbers()))
        }
        _ => nodes.then_with(|| a.data().cmp(b.data())),
    }
}

/// Number and serial of a pid of another node.
fn pid_numbers(external: External<'_>) -> (u64, u64) {
    let word = external.data()[0];
    (word & 0xffff_ffff, word >> 32)
}

/// Order of pids: serial, then number.
fn cmp_pid_numbers(a: (u64, u64), b: (u64, u64)) -> Ordering {
    (a.1, a.0).cmp(&(b.1, b.0))
}

fn int_of_big(big: Big<'_>) -> IntRef<'_> {
    IntRef::new(big.is_negative(), big.limbs())
}

/// Integers up to here are floats without loss.
const LOSSLESS: i64 = 1 << 53;

fn cmp_small_float(a: i64, b: f64) -> Ordering {
    if (-LOSSLESS..=LOSSLESS).contains(&a) {
        let order = (a as f64).partial_cmp(&b);
        order.expect("a term's float is finite")
    } else {
        cmp_f64(IntRef::of_i64(a, &mut [0]), b)
    }
}

fn cmp_floats(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).expect("a term's float is finite")
}

/// Order of two numbers by value; `None` where one is none.
fn cmp_numbers(a: View<'_>, b: View<'_>) -> Option<Ordering> {
    let by_sign = |big: Big<'_>| {
        if big.is_negative() {
            Ordering::Less
        } else {
            Ordering::Greater
        }
    };
    Some(match (a, b) {
        (View::Small(a), View::Small(b)) => a.cmp(&b),
        (View::Small(_), View::Big(b)) => by_sign(b).reverse(),
        (View::Big(a), View::Small(_)) => by_sign(a),
        (View::Big(a), View::Big(b)) => int_of_big(a).cmp(&int_of_big(b)),
        (View::Float(a), View::Float(b)) => cmp_floats(a, b),
        (View::Small(a), View::Float(b)) => cmp_small_float(a, b),
        (View::Float(a), View::Small(b)) => cmp_small_float(b, a).reverse(),
        (View::Big(a), View::Float(b)) => int_of_big(a).cmp_f64(b),
        (View::Float(a), View::Big(b)) => int_of_big(b).cmp_f64(a).reverse(),
        _ => return None,
    })
}
