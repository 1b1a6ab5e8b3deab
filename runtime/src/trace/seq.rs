//! Sequential tracing: the token that goes with messages, and reports to the system tracer.
//!
//! A token is `{Flags, Label, Serial, Sender, LastSerial}`, as `seq_trace:get_token/0` shows it. Source:
//! `erl_seq_trace`, `seq_trace_output_generic()` in `erl_trace.c`, OTP 29.

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
