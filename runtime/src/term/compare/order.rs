//! The order of terms.
//!
//! Hash tries of the same size are merged leaf by leaf in the order of their hashes. Of all the keys that only one of
//! them has, the least decides. Where there is no such key, the value of the least key whose values differ decides.

use std::cmp::Ordering;

use smallvec::SmallVec;

use super::super::map::{Leaf, Leaves, trie_order_of};
use super::{
    cmp_bits, cmp_definitions, cmp_external, cmp_floats, cmp_fun_heads, cmp_nodes, cmp_numbers,
    cmp_pid_numbers, cmp_ref_numbers, node_of, pid_numbers,
};
use crate::term::counted::this_node;
use crate::term::{External, Map, Term, View, tag};

/// Terms that are left to be compared; the flag says whether numbers are compared exactly.
enum Pending<'h> {
    Terms(&'h [Term<'h>], &'h [Term<'h>], bool),
    Pair(Term<'h>, Term<'h>, bool),
    Tries(Box<Tries<'h>>),
}

type Stack<'h> = SmallVec<[Pending<'h>; 4]>;

pub(super) fn run<'h>(a: Term<'h>, b: Term<'h>, exact: bool) -> Ordering {
    let mut stack = Stack::new();
    let mut found = pair(a, b, exact, &mut stack);
    loop {
        // A difference ends all but the merging of tries, which has to know of it.
        while found.is_ne() && !matches!(stack.last(), None | Some(Pending::Tries(_))) {
            stack.pop();
        }
        found = match stack.pop() {
            None => return found,
            Some(Pending::Terms(a, b, exact)) => terms(a, b, exact, &mut stack),
            Some(Pending::Pair(a, b, exact)) => pair(a, b, exact, &mut stack),
            Some(Pending::Tries(mut tries)) => match tries.step(found) {
                Step::Compare(a, b, exact) => {
                    stack.push(Pending::Tries(tries));
                    pair(a, b, exact, &mut stack)
                }
                Step::Done(order) => order,
            },
        };
    }
}

/// Pairs until one differs or has parts; then the rest waits below the parts.
fn terms<'h>(
    mut a: &'h [Term<'h>],
    mut b: &'h [Term<'h>],
    exact: bool,
    stack: &mut Stack<'h>,
) -> Ordering {
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
        let waiting = stack.len();
        let order = pair(*x, *y, exact, stack);
        if order.is_ne() {
            return order;
        }
        if stack.len() > waiting && !a.is_empty() {
            stack.insert(waiting, Pending::Terms(a, b, exact));
            return Ordering::Equal;
        }
    }
    Ordering::Equal
}

/// The order of two terms as far as it can be told without their parts, which are left on the stack.
fn pair<'h>(a: Term<'h>, b: Term<'h>, exact: bool, stack: &mut Stack<'h>) -> Ordering {
    if a.same(b) {
        return Ordering::Equal;
    }
    let (x, y) = (a.view(), b.view());
    let mut inside = |order: Ordering, a: &'h [Term<'h>], b: &'h [Term<'h>]| {
        if order.is_eq() && !a.is_empty() {
            stack.push(Pending::Terms(a, b, exact));
        }
        order
    };
    match (x, y) {
        (View::Atom(a), View::Atom(b)) => a.cmp_name(b),
        (View::Cons(a), View::Cons(b)) => inside(Ordering::Equal, a.words(), b.words()),
        (View::Tuple(a), View::Tuple(b)) => {
            inside(a.arity().cmp(&b.arity()), a.elements(), b.elements())
        }
        (View::Fun(a), View::Fun(b)) => inside(cmp_fun_heads(a, b), a.env(), b.env()),
        (View::Bits(a), View::Bits(b)) => cmp_bits(a, b),
        (View::Map(a), View::Map(b)) => maps(a, b, exact, stack),
        (View::Record(a), View::Record(b)) => {
            let heads = cmp_definitions(a, b);
            if heads.is_eq() {
                let order: SmallVec<[_; 16]> = a.field_order().zip(b.field_order()).collect();
                for (i, j) in order.into_iter().rev() {
                    stack.push(Pending::Pair(a.values()[i], b.values()[j], exact));
                }
            }
            heads
        }
        (View::Pid(a), View::Pid(b)) => a.0.cmp(&b.0),
        (View::Port(a), View::Port(b)) => a.0.cmp(&b.0),
        (View::Ref(a), View::Ref(b)) => cmp_ref_numbers(&a.all_numbers(), &b.all_numbers()),
        (View::External(a), View::External(b)) if a.kind() == b.kind() => cmp_external(a, b),
        (View::External(a), View::Pid(_) | View::Port(_) | View::Ref(_)) if rank(x) == rank(y) => {
            cmp_with_local(a, y)
        }
        (View::Pid(_) | View::Port(_) | View::Ref(_), View::External(b)) if rank(x) == rank(y) => {
            cmp_with_local(b, x).reverse()
        }
        _ => {
            let numbers = match (x, y) {
                (View::Float(a), View::Float(b)) if exact => Some(a.total_cmp(&b)),
                (View::Float(a), View::Float(b)) => Some(cmp_floats(a, b)),
                (View::Float(_), _) | (_, View::Float(_)) if exact => None,
                _ => cmp_numbers(x, y),
            };
            numbers.unwrap_or_else(|| rank(x).cmp(&rank(y)))
        }
    }
}

/// Order of a thing of another node and one of the same kind of this node.
fn cmp_with_local(a: External<'_>, b: View<'_>) -> Ordering {
    let nodes = cmp_nodes(node_of(a), this_node());
    match b {
        View::Pid(b) => cmp_pid_numbers(pid_numbers(a), (b.number(), b.serial())).then(nodes),
        View::Ref(b) => nodes.then_with(|| cmp_ref_numbers(&a.ref_numbers(), &b.all_numbers())),
        _ => nodes,
    }
}

/// Place of a kind among the kinds; among numbers, as exact comparison has it.
fn rank(view: View<'_>) -> u8 {
    match view {
        View::Small(_) | View::Big(_) => 0,
        View::Float(_) => 1,
        View::Atom(_) => 2,
        View::Ref(_) => 3,
        View::Fun(_) => 4,
        View::Port(_) => 5,
        View::Pid(_) => 6,
        View::External(it) => match it.kind() {
            tag::EXTERNAL_REF => 3,
            tag::EXTERNAL_PORT => 5,
            _ => 6,
        },
        View::Tuple(_) => 7,
        View::Record(_) => 8,
        View::Map(_) => 9,
        View::Nil => 10,
        View::Cons(_) => 11,
        View::Bits(_) => 12,
    }
}

fn maps<'h>(a: Map<'h>, b: Map<'h>, exact: bool, stack: &mut Stack<'h>) -> Ordering {
    let by_size = a.len().cmp(&b.len());
    if by_size.is_ne() || a.is_empty() {
        return by_size;
    }
    match (a.flat(), b.flat()) {
        (Some((keys_a, a)), Some((keys_b, b))) => {
            let same_keys = keys_a.ptr() == keys_b.ptr();
            let (keys_a, keys_b) = (keys_a.elements(), keys_b.elements());
            if same_keys {
                // The least key whose values differ decides: with one, no keys need be looked at.
                let mut differ = a.iter().zip(b).filter(|(a, b)| !a.same(**b));
                if let (Some((a, b)), None) = (differ.next(), differ.next()) {
                    stack.push(Pending::Pair(*a, *b, exact));
                    return Ordering::Equal;
                }
            }
            if exact || !keys_a.iter().chain(keys_b).any(|k| k.as_atom().is_some()) {
                stack.push(Pending::Terms(a, b, exact));
                stack.push(Pending::Terms(keys_a, keys_b, true));
                return Ordering::Equal;
            }
            flat_maps(by_term_order(keys_a, a), by_term_order(keys_b, b), stack);
        }
        _ => stack.push(Pending::Tries(Box::new(Tries::new(a, b, exact)))),
    }
    Ordering::Equal
}

type Sorted<'h> = SmallVec<[(Term<'h>, Term<'h>); 32]>;

/// Keys and values of a flat map, the atoms among the keys by name and not by index.
fn by_term_order<'h>(keys: &[Term<'h>], values: &[Term<'h>]) -> Sorted<'h> {
    let mut pairs: Sorted<'h> = keys.iter().copied().zip(values.iter().copied()).collect();
    let first = pairs.partition_point(|(k, _)| rank(k.view()) < rank_of_atoms());
    let last = pairs.partition_point(|(k, _)| rank(k.view()) <= rank_of_atoms());
    pairs[first..last].sort_by(|(a, _), (b, _)| match (a.as_atom(), b.as_atom()) {
        (Some(a), Some(b)) => a.cmp_name(b),
        _ => Ordering::Equal,
    });
    pairs
}

const fn rank_of_atoms() -> u8 {
    2
}

fn flat_maps<'h>(a: Sorted<'h>, b: Sorted<'h>, stack: &mut Stack<'h>) {
    let pairs = || a.iter().zip(&b).rev();
    for ((_, a), (_, b)) in pairs().filter(|(a, b)| !a.1.same(b.1)) {
        stack.push(Pending::Pair(*a, *b, false));
    }
    for ((a, _), (b, _)) in pairs().filter(|(a, b)| !a.0.same(b.0)) {
        stack.push(Pending::Pair(*a, *b, true));
    }
}

/// The question that the comparison under way is to answer.
#[derive(Clone, Copy)]
enum Asked {
    /// Nothing yet.
    Start,
    /// Are the next keys equal? All keys were, so far.
    KeysWhileEqual,
    /// Is this key below the least whose values differ?
    KeyBelowLeast,
    /// Are the values of this key equal?
    Values,
    /// Are the next keys equal? Some were not: values are of no account any more.
    Keys,
    /// Is `a`'s key, that `b` has not, below the least one?
    LeastOfA,
    /// Is `b`'s key, that `a` has not, below the least one?
    LeastOfB,
}

enum Step<'h> {
    Compare(Term<'h>, Term<'h>, bool),
    Done(Ordering),
}

/// Two tries of the same size being compared.
struct Tries<'h> {
    leaves_a: Leaves<'h>,
    leaves_b: Leaves<'h>,
    a: Option<Leaf<'h>>,
    b: Option<Leaf<'h>>,
    exact: bool,
    asked: Asked,
    /// The key that decides so far, and how.
    least: Option<(Term<'h>, Ordering)>,
}

impl<'h> Tries<'h> {
    fn new(a: Map<'h>, b: Map<'h>, exact: bool) -> Tries<'h> {
        Tries {
            leaves_a: Leaves::of(a),
            leaves_b: Leaves::of(b),
            a: None,
            b: None,
            exact,
            asked: Asked::Start,
            least: None,
        }
    }

    fn result(&self) -> Ordering {
        self.least.map_or(Ordering::Equal, |(_, order)| order)
    }

    fn ask(&mut self, asked: Asked, a: Term<'h>, b: Term<'h>, exact: bool) -> Step<'h> {
        self.asked = asked;
        Step::Compare(a, b, exact)
    }

    /// Goes on with the answer to what was asked.
    fn step(&mut self, answer: Ordering) -> Step<'h> {
        match self.asked {
            Asked::Start => self.next_while_equal(),
            Asked::KeysWhileEqual if answer.is_ne() => {
                self.least = None;
                self.skip_lagging(answer)
            }
            Asked::KeysWhileEqual => match (self.least, self.a) {
                (Some((least, _)), Some(a)) => self.ask(Asked::KeyBelowLeast, a[0], least, true),
                _ => self.compare_values(),
            },
            Asked::KeyBelowLeast if answer.is_lt() => self.compare_values(),
            Asked::KeyBelowLeast => self.next_while_equal(),
            Asked::Values => {
                if answer.is_ne() {
                    self.least = self.a.map(|a| (a[0], answer));
                }
                self.next_while_equal()
            }
            Asked::Keys if answer.is_eq() => {
                self.advance_both();
                self.next_keys()
            }
            Asked::Keys => self.lagging(answer),
            Asked::LeastOfA => {
                if answer.is_lt() {
                    self.least = self.a.map(|a| (a[0], Ordering::Less));
                }
                self.a = self.leaves_a.next();
                self.next_keys()
            }
            Asked::LeastOfB => {
                if answer.is_lt() {
                    self.least = self.b.map(|b| (b[0], Ordering::Greater));
                }
                self.b = self.leaves_b.next();
                self.next_keys()
            }
        }
    }

    fn advance_both(&mut self) {
        self.a = self.leaves_a.next();
        self.b = self.leaves_b.next();
    }

    fn next_while_equal(&mut self) -> Step<'h> {
        self.advance_both();
        match (self.a, self.b) {
            (Some(a), Some(b)) => self.ask(Asked::KeysWhileEqual, a[0], b[0], true),
            // Both end at once: they are of the same size.
            _ => Step::Done(self.result()),
        }
    }

    fn compare_values(&mut self) -> Step<'h> {
        match (self.a, self.b) {
            (Some(a), Some(b)) => self.ask(Asked::Values, a[1], b[1], self.exact),
            _ => Step::Done(self.result()),
        }
    }

    fn next_keys(&mut self) -> Step<'h> {
        match (self.a, self.b) {
            (Some(a), Some(b)) => self.ask(Asked::Keys, a[0], b[0], true),
            (None, None) => Step::Done(self.result()),
            _ => self.lagging(Ordering::Equal),
        }
    }

    /// Which of the two stands at a key that the other has passed and so has not.
    fn behind(&self, keys: Ordering) -> Ordering {
        match (self.a, self.b) {
            (Some(a), Some(b)) => trie_order_of(a[0]).cmp(&trie_order_of(b[0])).then(keys),
            (Some(_), None) => Ordering::Less,
            _ => Ordering::Greater,
        }
    }

    /// The first difference of keys: the key of the one behind is the least known.
    fn skip_lagging(&mut self, keys: Ordering) -> Step<'h> {
        let behind = self.behind(keys);
        if behind.is_lt() {
            self.least = self.a.map(|a| (a[0], Ordering::Less));
            self.a = self.leaves_a.next();
        } else {
            self.least = self.b.map(|b| (b[0], Ordering::Greater));
            self.b = self.leaves_b.next();
        }
        self.next_keys()
    }

    fn lagging(&mut self, keys: Ordering) -> Step<'h> {
        let behind = self.behind(keys);
        match (self.a, self.b, self.least) {
            (Some(a), _, Some((least, _))) if behind.is_lt() => {
                self.ask(Asked::LeastOfA, a[0], least, true)
            }
            (_, Some(b), Some((least, _))) => self.ask(Asked::LeastOfB, b[0], least, true),
            _ => Step::Done(self.result()),
        }
    }
}
