//! The exception that a process is handling: its class, reason and stack trace, kept where the collector finds them.

use super::Process;
use crate::process::Raise;
use crate::term::{Atom, RawTerm, Term, am};

/// Class of an exception.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Class {
    /// `error`.
    #[default]
    Error,
    /// `exit`.
    Exit,
    /// `throw`.
    Throw,
}

impl Class {
    /// Its name.
    #[must_use]
    pub fn atom(self) -> Atom {
        match self {
            Class::Error => am::error,
            Class::Exit => am::exit,
            Class::Throw => am::throw,
        }
    }
    /// The class of that name.
    #[must_use]
    pub(crate) fn from_atom(atom: Atom) -> Option<Class> {
        [Class::Error, Class::Exit, Class::Throw]
            .into_iter()
            .find(|class| class.atom() == atom)
    }
}

/// An exception before and while its stack trace is built.
#[derive(Clone, Copy, Debug)]
pub struct Exception {
    /// Class.
    pub(crate) class: Class,
    /// Reason or thrown value.
    pub(crate) value: RawTerm,
    /// Arguments for the top of the stack trace: a list, or no term.
    pub(crate) args: RawTerm,
    /// `erlang:error/3`'s options, or a BIF's cause; no term where there is none.
    pub(crate) info: RawTerm,
    /// Given by `erlang:raise/3`, or built already; no term where it is still to be built.
    pub(crate) trace: RawTerm,
    /// Raised by a BIF called from code: the trace shows the BIF with its arguments.
    pub(crate) from_bif: bool,
}

impl Default for Exception {
    fn default() -> Self {
        let none = RawTerm::NONE;
        let class = Class::Error;
        Exception {
            class,
            value: none,
            args: none,
            info: none,
            trace: none,
            from_bif: false,
        }
    }
}

impl Exception {
    /// `error:reason`, raised by code.
    #[must_use]
    pub(crate) fn error(reason: RawTerm) -> Exception {
        Exception {
            value: reason,
            ..Exception::default()
        }
    }

    /// The slots the collector must see.
    pub(crate) fn slots(&mut self) -> [&mut RawTerm; 4] {
        [
            &mut self.value,
            &mut self.args,
            &mut self.info,
            &mut self.trace,
        ]
    }

    /// The exception that a BIF's `raise` stands for. In line, so that its words go to where they are kept at once.
    #[inline(always)]
    #[must_use]
    pub(crate) fn from_raise(p: &Process, raise: &Raise<'_>) -> Exception {
        let none = RawTerm::NONE;
        let at = |class, value: &Term<'_>| Exception {
            class,
            value: value.raw(),
            ..Exception::default()
        };
        match raise {
            Raise::Error(reason) => Exception {
                from_bif: true,
                ..at(Class::Error, reason)
            },
            Raise::Tagged(tag, value) => Exception {
                from_bif: true,
                ..at(Class::Error, &p.tuple(&[tag.term(), *value]))
            },
            Raise::ErrorCause(reason, cause) => Exception {
                from_bif: true,
                info: cause.raw(),
                ..at(Class::Error, reason)
            },
            Raise::ErrorArgs(reason, args, info) => {
                let args = if *args == am::none { none } else { args.raw() };
                Exception {
                    args,
                    info: info.raw(),
                    ..at(Class::Error, reason)
                }
            }
            Raise::Exit(reason) => at(Class::Exit, reason),
            Raise::Throw(value) => at(Class::Throw, value),
            Raise::Raise(class, reason, trace) => Exception {
                trace: trace.raw(),
                ..at(*class, reason)
            },
        }
    }
}

impl Process {
    /// The reason or thrown value of the exception that is being handled.
    pub(crate) fn raised(&self) -> Term<'_> {
        let value = self.exception.value;
        // SAFETY: P5, T1: an exception's words are terms of its process.
        unsafe { Term::new(value) }
    }

    /// Puts an exception to rest in the process: for handlers that have it to themselves, which then
    /// end with [`crate::process::Next::Raise`].
    pub(crate) fn store_exception(&mut self, class: Class, reason: Atom) {
        self.exception = Exception {
            class,
            value: reason.raw(),
            from_bif: true,
            ..Exception::default()
        };
    }
}
