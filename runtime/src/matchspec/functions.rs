//! The functions that guards and bodies of match specifications may call.

use super::Function;
use crate::code::bif::{self, Call};
use crate::term::{Atom, am};

/// Functions of `erlang` that any guard or body may call.
static GUARD_BIFS: &[(&str, &[u8])] = &[
    ("is_atom", &[1]),
    ("is_float", &[1]),
    ("is_integer", &[1, 3]),
    ("is_list", &[1]),
    ("is_number", &[1]),
    ("is_pid", &[1]),
    ("is_port", &[1]),
    ("is_reference", &[1]),
    ("is_tuple", &[1]),
    ("is_map", &[1]),
    ("is_binary", &[1]),
    ("is_bitstring", &[1]),
    ("is_boolean", &[1]),
    ("is_function", &[1, 2]),
    ("is_record", &[3]),
    ("abs", &[1]),
    ("element", &[2]),
    ("hd", &[1]),
    ("max", &[2]),
    ("min", &[2]),
    ("node", &[0, 1]),
    ("round", &[1]),
    ("size", &[1]),
    ("map_size", &[1]),
    ("map_get", &[2]),
    ("is_map_key", &[2]),
    ("bit_size", &[1]),
    ("byte_size", &[1]),
    ("tuple_size", &[1]),
    ("binary_part", &[2, 3]),
    ("tl", &[1]),
    ("trunc", &[1]),
    ("float", &[1]),
    ("ceil", &[1]),
    ("floor", &[1]),
    ("+", &[1, 2]),
    ("-", &[1, 2]),
    ("*", &[2]),
    ("/", &[2]),
    ("div", &[2]),
    ("rem", &[2]),
    ("band", &[2]),
    ("bor", &[2]),
    ("bxor", &[2]),
    ("bnot", &[1]),
    ("bsl", &[2]),
    ("bsr", &[2]),
    (">", &[2]),
    (">=", &[2]),
    ("<", &[2]),
    ("=<", &[2]),
    ("=:=", &[2]),
    ("==", &[2]),
    ("=/=", &[2]),
    ("/=", &[2]),
    ("not", &[1]),
    ("xor", &[2]),
];

/// A function by name and arity, and where it may stand.
pub(super) enum Found {
    /// Anywhere.
    Anywhere(Function),
    /// In programs for tracing.
    Trace(Function),
    /// In bodies of programs for tracing.
    TraceBody(Function),
}

/// The function of this name and arity.
pub(super) fn find(name: Atom, arity: usize, fake_destructive: bool) -> Option<Found> {
    match (name, arity) {
        (am::length, 1) => return Some(Found::Anywhere(Function::Length)),
        (am::get_tcw, 0) => return Some(Found::Trace(Function::GetTcw)),
        (am::set_tcw, 1) => return Some(Found::TraceBody(Function::SetTcw(fake_destructive))),
        (am::set_tcw_fake, 1) => return Some(Found::TraceBody(Function::SetTcw(true))),
        _ => {}
    }
    let arity = u8::try_from(arity).ok()?;
    let text = name.name();
    let (_, arities) = GUARD_BIFS.iter().find(|(bif, _)| *bif == text)?;
    arities.contains(&arity).then_some(())?;
    match bif::all()[bif::find(am::erlang, name, arity)?].call {
        Call::Guard(call) => Some(Found::Anywhere(Function::Bif(call))),
        Call::Plain(_) | Call::Dirty(..) | Call::Exclusive(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_guard_function_is_there() {
        for (name, arities) in GUARD_BIFS {
            for arity in *arities {
                let found = find(Atom::new(name), usize::from(*arity), false);
                assert!(found.is_some(), "{name}/{arity}");
            }
        }
    }
}
