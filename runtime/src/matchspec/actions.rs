//! The actions that the body of a match specification for tracing may have beside giving a term.

use crate::term::{Atom, Term, am};

/// An action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// `{message, Term}`: what the trace message says.
    Message,
    /// `{return_trace}`.
    ReturnTrace,
    /// `{exception_trace}`.
    ExceptionTrace,
    /// `{is_seq_trace}`.
    IsSeqTrace,
    /// `{set_seq_token, Component, Value}`.
    SetSeqToken,
    /// `{get_seq_token}`.
    GetSeqToken,
    /// `{display, Term}`.
    Display,
    /// `{process_dump}`.
    ProcessDump,
    /// `{enable_trace, Flag}`, `{enable_trace, Process, Flag}`.
    EnableTrace,
    /// `{disable_trace, Flag}`, `{disable_trace, Process, Flag}`.
    DisableTrace,
    /// `{trace, Disable, Enable}`, `{trace, Process, Disable, Enable}`.
    Trace,
    /// `{caller}`.
    Caller,
    /// `{caller_line}`.
    CallerLine,
    /// `{current_stacktrace}`, `{current_stacktrace, Depth}`: the depth is always given.
    CurrentStacktrace,
    /// `{silent, Bool}`.
    Silent,
}

/// Where an action may be used, and with how many arguments.
pub(super) struct Rule {
    pub(super) name: Atom,
    pub(super) action: Action,
    /// Fewest and most arguments.
    pub(super) arity: (usize, usize),
    /// Allowed in guards.
    pub(super) guard: bool,
    /// Needs [`super::Dialect::trace_ops`].
    pub(super) trace_ops: bool,
    /// Needs [`super::Dialect::call_trace`].
    pub(super) call_trace: bool,
}

const fn rule(name: Atom, action: Action, arity: (usize, usize), needs: (bool, bool)) -> Rule {
    Rule {
        name,
        action,
        arity,
        guard: matches!(action, Action::IsSeqTrace),
        trace_ops: needs.0,
        call_trace: needs.1,
    }
}

const ANY: (bool, bool) = (false, false);
const OPS: (bool, bool) = (true, false);
const CALL: (bool, bool) = (true, true);

/// All actions.
pub(super) static RULES: [Rule; 15] = [
    rule(am::message, Action::Message, (1, 1), ANY),
    rule(am::return_trace, Action::ReturnTrace, (0, 0), ANY),
    rule(am::exception_trace, Action::ExceptionTrace, (0, 0), ANY),
    rule(am::is_seq_trace, Action::IsSeqTrace, (0, 0), OPS),
    rule(am::set_seq_token, Action::SetSeqToken, (2, 2), OPS),
    rule(am::get_seq_token, Action::GetSeqToken, (0, 0), OPS),
    rule(am::display, Action::Display, (1, 1), ANY),
    rule(am::process_dump, Action::ProcessDump, (0, 0), OPS),
    rule(am::enable_trace, Action::EnableTrace, (1, 2), OPS),
    rule(am::disable_trace, Action::DisableTrace, (1, 2), OPS),
    rule(am::trace, Action::Trace, (2, 3), OPS),
    rule(am::caller, Action::Caller, (0, 0), CALL),
    rule(am::caller_line, Action::CallerLine, (0, 0), CALL),
    rule(
        am::current_stacktrace,
        Action::CurrentStacktrace,
        (0, 1),
        CALL,
    ),
    rule(am::silent, Action::Silent, (1, 1), OPS),
];

/// Does what [`Action`]s say; those that only set flags or the message are the program's own.
pub(crate) trait Actions<'a> {
    /// Does `action`; its result, or `None` where the arguments are wrong (then it gives `'EXIT'`).
    fn act(&mut self, action: Action, args: &[Term<'a>]) -> Option<Term<'a>>;
}

/// For programs in which no action can stand: those for tables.
pub(crate) struct NoActions;

impl<'a> Actions<'a> for NoActions {
    fn act(&mut self, _action: Action, _args: &[Term<'a>]) -> Option<Term<'a>> {
        None
    }
}
