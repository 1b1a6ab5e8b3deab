//! Values that hold terms over collections, such as what a BIF has done so far, or a map in the making.
//!
//! The terms in such a value have the lifetime of the heap's borrow, as all terms in hand. When code puts the value to
//! rest, so that the heap may collect, it forgets the lifetime and has the collector see the terms by [`Keeps::show`].
//! When it takes the value up again, it gives the terms the lifetime of a new borrow.
//!
//! Invariant:
//! - KS1: [`Keeps::show`] shows every term in the value, and what it does not show is good without any heap.

use smallvec::{Array, SmallVec};

use crate::term::{Atom, RawTerm, Term};

/// A function that looks at slots, and may change them.
pub type Visit<'v> = dyn FnMut(&mut [RawTerm]) + 'v;

/// A value all of whose terms a collector can be shown.
///
/// # Safety
/// KS1 holds for what implements it. `keeps!` implements it for structs and enums.
pub unsafe trait Keeps: Sized {
    /// Shows all slots that hold terms.
    fn show(&mut self, visit: &mut Visit<'_>);

    /// Shows those of several.
    fn show_all(these: &mut [Self], visit: &mut Visit<'_>) {
        these.iter_mut().for_each(|one| one.show(visit));
    }
}

// SAFETY: KS1: a term is one slot.
unsafe impl Keeps for Term<'_> {
    fn show(&mut self, visit: &mut Visit<'_>) {
        Term::show_all(std::slice::from_mut(self), visit);
    }
    fn show_all(these: &mut [Self], visit: &mut Visit<'_>) {
        // SAFETY: KS1: a term is a word, and a visitor leaves a term in each slot that it is shown.
        visit(unsafe { &mut *(std::ptr::from_mut(these) as *mut [RawTerm]) });
    }
}

// SAFETY: KS1: it holds what its elements hold.
unsafe impl<T: Keeps> Keeps for Vec<T> {
    fn show(&mut self, visit: &mut Visit<'_>) {
        T::show_all(self, visit);
    }
}

// SAFETY: KS1: as for `Vec`.
unsafe impl<A: Array<Item: Keeps>> Keeps for SmallVec<A> {
    fn show(&mut self, visit: &mut Visit<'_>) {
        A::Item::show_all(self, visit);
    }
}

// SAFETY: KS1: as for `Vec`.
unsafe impl<T: Keeps, const N: usize> Keeps for [T; N] {
    fn show(&mut self, visit: &mut Visit<'_>) {
        T::show_all(self, visit);
    }
}

// SAFETY: KS1: as for `Vec`.
unsafe impl<T: Keeps> Keeps for Option<T> {
    fn show(&mut self, visit: &mut Visit<'_>) {
        T::show_all(self.as_mut_slice(), visit);
    }
}

// SAFETY: KS1: an atom is no thing of a heap.
unsafe impl<T: Keeps> Keeps for (Atom, T) {
    fn show(&mut self, visit: &mut Visit<'_>) {
        self.1.show(visit);
    }
}

// SAFETY: KS1: a number is no term.
unsafe impl<T: Keeps> Keeps for (u64, T) {
    fn show(&mut self, visit: &mut Visit<'_>) {
        self.1.show(visit);
    }
}

/// For `keeps!`: compiles for what holds no term of any heap, and may move between threads.
pub(crate) fn holds_no_term<T: Send + 'static>(_: &T) {}

/// Implements [`Keeps`] for a struct, or an enum whose variants have named fields. It names all fields: first those
/// that hold terms, and behind a semicolon the others, which the compiler finds to hold none.
macro_rules! keeps {
    (struct $name:ident $(<$other:ident>)? { $($term:ident),* ; $($rest:ident),* }) => {
        #[expect(unsafe_code, reason = "KS1: all fields are named, and the compiler knows which hold terms")]
        // SAFETY: KS1: the pattern names all fields; what is not shown lives without a borrow.
        unsafe impl $(<$other: Send + 'static>)? $crate::heap::Keeps for $name<'_ $(, $other)?> {
            fn show(&mut self, visit: &mut $crate::heap::Visit<'_>) {
                let $name { $($term,)* $($rest),* } = self;
                $($crate::heap::Keeps::show($term, visit);)*
                $($crate::heap::holds_no_term($rest);)*
            }
        }
    };
    (enum $name:ident { $($variant:ident { $($term:ident),* ; $($rest:ident),* })* }) => {
        #[expect(unsafe_code, reason = "KS1: all fields are named, and the compiler knows which hold terms")]
        // SAFETY: KS1: as for structs, for each variant.
        unsafe impl $crate::heap::Keeps for $name<'_> {
            fn show(&mut self, visit: &mut $crate::heap::Visit<'_>) {
                match self {
                    $($name::$variant { $($term,)* $($rest),* } => {
                        $($crate::heap::Keeps::show($term, visit);)*
                        $($crate::heap::holds_no_term($rest);)*
                    })*
                }
            }
        }
    };
}
pub(crate) use keeps;
