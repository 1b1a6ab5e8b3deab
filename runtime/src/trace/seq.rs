//! Sequential tracing is not built: no process has a token, and none can be set.

use crate::process::Process;
use crate::term::Term;

/// The token of `p`, if it has one.
pub(crate) fn token(_p: &Process) -> Option<Term<'_>> {
    None
}

/// Sets a component of the token of `p`; the old value.
pub(super) fn set_component<'p>(
    _p: &'p Process,
    _component: Term<'p>,
    _value: Term<'p>,
) -> Option<Term<'p>> {
    None
}
