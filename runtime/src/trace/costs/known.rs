//! What a process is known by besides its registered name: its label, or the call that `proc_lib` began it with. Both are
//! in its dictionary.

use super::text::text_of;
use crate::loader::module::Mfa;
use crate::process::Process;
use crate::term::{Atom, Term, am};

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::trace) enum Known {
    /// As `proc_lib:set_label/1` sets it, cut where it is long.
    Label(String),
    /// The function that a process of `proc_lib` runs.
    Call(Mfa),
}

/// What a pair of the dictionary tells.
pub(in crate::trace) fn of(key: Atom, value: Term<'_>) -> Option<Known> {
    if key == am::process_label {
        return Some(Known::Label(text_of(value)));
    }
    if key.name() != "$initial_call" {
        return None;
    }
    let [module, function, arity] = value.as_tuple()?.elements() else {
        return None;
    };
    Some(Known::Call(Mfa {
        module: module.as_atom()?,
        function: function.as_atom()?,
        arity: u8::try_from(arity.as_small()?).ok()?,
    }))
}

/// What the dictionary of a process tells.
pub(in crate::trace) fn all(p: &Process) -> Vec<Known> {
    let dictionary = p.dictionary();
    let pairs = dictionary.entries().iter();
    let known = pairs.filter_map(|[key, pair]| {
        let [_, value] = pair.as_tuple()?.elements() else {
            return None;
        };
        of(key.as_atom()?, *value)
    });
    known.collect()
}
