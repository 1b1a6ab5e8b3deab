//! An encoder at rest. Its terms are roots for collections meanwhile.

use super::{EncodeOptions, Encoder, HeaderAtoms, Todo};
use crate::heap::keeps;
use crate::term::{Term, View};

/// An encoder that does not run.
pub(crate) struct PausedEncoder<'h> {
    options: EncodeOptions,
    out: Vec<u8>,
    from: usize,
    /// A term for each of `todo`, then one for each of `shared_at`.
    terms: Vec<Term<'h>>,
    todo: Vec<Paused>,
    shared_at: Vec<usize>,
    shared_bytes: usize,
    share_above: Option<usize>,
    steps: usize,
    atoms: Option<HeaderAtoms>,
}

keeps! {
    struct PausedEncoder {
        terms; options, out, from, todo, shared_at, shared_bytes, share_above, steps,
        atoms
    }
}

/// A [`Todo`] without its term.
enum Paused {
    Term,
    Elements { left: usize },
    Tail { at: usize, len: u32 },
    Pairs { left: usize },
    Node,
    FunSize { at: usize, shared_bytes: usize },
}

impl<'h> Todo<'h> {
    fn pause(self) -> (Paused, Term<'h>) {
        match self {
            Todo::Term(term) => (Paused::Term, term),
            Todo::Elements { of, rest } => (Paused::Elements { left: rest.len() }, of),
            Todo::Tail { rest, at, len } => (Paused::Tail { at, len }, rest),
            Todo::Pairs { of, keys, .. } => (Paused::Pairs { left: keys.len() }, of),
            Todo::Node(node) => (Paused::Node, node),
            Todo::FunSize { at, shared_bytes } => (Paused::FunSize { at, shared_bytes }, Term::NIL),
        }
    }
}

impl Paused {
    fn resume(self, term: Term<'_>) -> Todo<'_> {
        match self {
            Paused::Term => Todo::Term(term),
            Paused::Elements { left } => {
                let elements = match term.view() {
                    View::Tuple(tuple) => tuple.elements(),
                    View::Fun(fun) => fun.env(),
                    _ => unreachable!("what has elements"),
                };
                let rest = last(elements, left);
                Todo::Elements { of: term, rest }
            }
            Paused::Tail { at, len } => Todo::Tail {
                rest: term,
                at,
                len,
            },
            Paused::Pairs { left } => {
                let flat = term.as_map().and_then(|map| map.flat());
                let (keys, values) = flat.expect("a flat map");
                let (keys, values) = (last(keys.elements(), left), last(values, left));
                Todo::Pairs {
                    of: term,
                    keys,
                    values,
                }
            }
            Paused::Node => Todo::Node(term),
            Paused::FunSize { at, shared_bytes } => Todo::FunSize { at, shared_bytes },
        }
    }
}

fn last<'h>(elements: &'h [Term<'h>], left: usize) -> &'h [Term<'h>] {
    &elements[elements.len() - left..]
}

impl<'h> PausedEncoder<'h> {
    /// Goes on.
    pub(crate) fn resume(self) -> Encoder<'h> {
        let mut terms = self.terms.into_iter();
        let todo = self.todo.into_iter();
        let todo = todo.map(|paused| paused.resume(terms.next().expect("one for each")));
        let todo = todo.collect();
        let bits = terms.map(|term| term.as_bits().expect("bits are shared"));
        let shared = self.shared_at.into_iter().zip(bits);
        Encoder {
            atoms: self.atoms,
            options: self.options,
            out: self.out,
            from: self.from,
            todo,
            shared: shared.collect(),
            shared_bytes: self.shared_bytes,
            share_above: self.share_above,
            steps: self.steps,
            // One that only counts does not rest.
            counted: None,
        }
    }
}

impl<'h> Encoder<'h> {
    /// Comes to rest.
    #[must_use]
    pub(crate) fn pause(self) -> PausedEncoder<'h> {
        let (todo, mut terms): (Vec<_>, Vec<_>) = self.todo.into_iter().map(Todo::pause).unzip();
        terms.extend(self.shared.iter().map(|(_, bits)| bits.term()));
        PausedEncoder {
            options: self.options,
            out: self.out,
            from: self.from,
            terms,
            todo,
            shared_at: self.shared.into_iter().map(|(at, _)| at).collect(),
            shared_bytes: self.shared_bytes,
            share_above: self.share_above,
            steps: self.steps,
            atoms: self.atoms,
        }
    }
}
