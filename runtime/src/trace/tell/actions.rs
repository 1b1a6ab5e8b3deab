//! Runs match specifications of functions and of `send` and `'receive'`, with the actions of their bodies.

use std::sync::Arc;

use super::{dump, seq};
use crate::exec::exception;
use crate::exec::stack_dump::Doing;
use crate::matchspec::{Action, Actions};
use crate::process::{self, ProcShared, Process, registry};
use crate::sched::ptab;
use crate::term::{Term, View, am};
use crate::trace::session::Shared;
use crate::trace::session::flags;
use crate::trace::session::spec::Spec;
use crate::trace::session::tracer::TracerId;

/// The result of a match specification.
#[derive(Clone, Copy)]
pub(in crate::trace) struct Matched<'a> {
    /// What it said, if not `true` or `false`.
    pub(in crate::trace) result: Option<Term<'a>>,
    /// It matched, and did not say `{message, false}`.
    pub(in crate::trace) reports: bool,
    pub(in crate::trace) return_trace: bool,
    pub(in crate::trace) exception_trace: bool,
}

impl Matched<'_> {
    /// Without a match specification all is reported.
    pub(in crate::trace) const ALL: Matched<'static> = Matched {
        result: None,
        reports: true,
        return_trace: false,
        exception_trace: false,
    };
    const NONE: Matched<'static> = Matched {
        reports: false,
        ..Matched::ALL
    };
}

/// Runs `spec`, if there is one, on the arguments of an event in `p`. `in_call` says that `p` itself calls or
/// sends, so that its body may act on it.
pub(in crate::trace) fn run<'a>(
    spec: Option<&'a Spec>,
    p: &'a Process,
    session: &'a Arc<Shared>,
    args: &[Term<'a>],
) -> Matched<'a> {
    let Some(spec) = spec else {
        return Matched::ALL;
    };
    let mut body = Body { p, session };
    let Some(outcome) = spec.program.run_trace(p, args, &mut body) else {
        return Matched::NONE;
    };
    let said = outcome.message.as_bool();
    Matched {
        result: said.is_none().then_some(outcome.message),
        reports: said != Some(false),
        return_trace: outcome.flags.return_trace || outcome.flags.exception_trace,
        exception_trace: outcome.flags.exception_trace,
    }
}

/// The processes and data that the body of a match specification acts on.
struct Body<'a> {
    p: &'a Process,
    session: &'a Arc<Shared>,
}

impl<'a> Actions<'a> for Body<'a> {
    fn act(&mut self, action: Action, args: &[Term<'a>]) -> Option<Term<'a>> {
        let p = self.p;
        let done = || Some(am::true_.term());
        match (action, args) {
            (Action::Caller, _) => Some(exception::caller(p, false)),
            (Action::CallerLine, _) => Some(exception::caller(p, true)),
            (Action::CurrentStacktrace, [depth]) => {
                let depth = usize::try_from(depth.as_small()?).ok()?;
                Some(exception::callers(p, depth))
            }
            (Action::Silent, [on]) => {
                match on.as_bool() {
                    Some(true) => self.tracee().mask(self.session, 0, flags::SILENT),
                    Some(false) => self.tracee().mask(self.session, flags::SILENT, 0),
                    None => {}
                }
                Some(*on)
            }
            (Action::EnableTrace, [flag]) => {
                self.update(p.shared(), 0, flags::named(flag.as_atom()?)?);
                done()
            }
            (Action::DisableTrace, [flag]) => {
                self.update(p.shared(), flags::named(flag.as_atom()?)?, 0);
                done()
            }
            (Action::EnableTrace, [who, flag]) => {
                let flag = flags::named(flag.as_atom()?)?;
                self.with(*who, |other| self.update(other, 0, flag))?;
                done()
            }
            (Action::DisableTrace, [who, flag]) => {
                let flag = flags::named(flag.as_atom()?)?;
                self.with(*who, |other| self.update(other, flag, 0))?;
                done()
            }
            (Action::Trace, [off, on]) => self.trace(p.pid().term(), *off, *on),
            (Action::Trace, [who, off, on]) => self.trace(*who, *off, *on),
            (Action::Display, [term]) => {
                let call = crate::code::bif::find(am::erlang, am::display, 1)?;
                crate::code::bif::all()[call].call.plain(p, &[*term])?.ok()
            }
            (Action::ProcessDump, _) => {
                let dump = dump::process_dump(p, Doing::Runs);
                Some(p.binary(dump.as_bytes()))
            }
            (Action::IsSeqTrace, _) => Some(Term::bool(seq::is_traced(p))),
            (Action::GetSeqToken, _) => Some(seq::token_term(p, p)),
            (Action::SetSeqToken, [component, value]) => {
                seq::set_component(p, *component, *value).and_then(|_| done())
            }
            _ => None,
        }
    }
}

impl<'a> Body<'a> {
    fn tracee(&self) -> &'a flags::Tracee {
        &self.p.shared().tracee
    }

    /// The tracer that flags set here go to. Source: `get_proc_tracer()`.
    fn tracer(&self) -> Option<TracerId> {
        let own = || self.tracee().of(self.session).map(|(_, tracer)| tracer);
        self.session.tracer.or_else(own)
    }

    fn update(&self, other: &ProcShared, off: u32, on: u32) {
        other.tracee.set(self.session, self.tracer(), off, on);
    }

    /// Does something with a process, by its pid or name; `None` when there is none.
    fn with<T>(&self, who: Term<'a>, act: impl FnOnce(&ProcShared) -> T) -> Option<T> {
        let pid = match who.view() {
            View::Pid(pid) => pid,
            View::Atom(name) => match registry::whereis(name)? {
                registry::Named::Process(pid) => pid,
                registry::Named::Port(_) => return None,
            },
            _ => return None,
        };
        let guard = ptab::pin();
        process::lookup(pid, &guard).map(act)
    }

    /// `{trace, [Process,] Disable, Enable}`.
    fn trace(&self, who: Term<'a>, off: Term<'a>, on: Term<'a>) -> Option<Term<'a>> {
        let mut tracer = self.tracer();
        let mut flags = |list: Term<'a>| {
            let mut mask = 0;
            for item in list.list_iter() {
                let item = item.ok()?;
                match item.view() {
                    View::Atom(name) => mask |= flags::named(name)?,
                    View::Tuple(_) if self.session.tracer.is_none() => {
                        tracer = Some(TracerId::of_option(am::tracer, item)?);
                    }
                    _ => return None,
                }
            }
            Some(mask)
        };
        let (off, on) = (flags(off)?, flags(on)?);
        let changed = self.with(who, |other| {
            let me = other.pid().term();
            let usable = tracer.is_none_or(|tracer| tracer.is_there(me));
            usable.then(|| other.tracee.set(self.session, tracer, off, on))
        })??;
        Some(Term::bool(changed))
    }
}
