//! The ways in which native code that a process has called ends: with a value, an exception, or a request to the loop
//! that runs the process.

use super::{Class, Exiting, Leaves};
use crate::term::entry::Export;
use crate::term::{Atom, CodeAddress, Term, am};

/// What a BIF returns.
pub type BifResult<'p> = Result<Term<'p>, Leave<'p>>;

/// The result of a BIF that neither traps nor waits, as of all that may stand in guards.
pub type GuardResult<'p> = Result<Term<'p>, Raise<'p>>;

/// How a BIF ends without a value.
#[derive(Clone)]
pub enum Leave<'p> {
    /// With an exception.
    Raise(Raise<'p>),
    /// With a word to the loop that runs the process.
    Control(Control<'p>),
}

/// An exception as a BIF raises it.
#[derive(Clone)]
pub enum Raise<'p> {
    /// `error:Reason`; the stack trace shows the call with its arguments.
    Error(Term<'p>),
    /// As `Error`, with the `cause` that `erl_erts_errors` formats.
    ErrorCause(Term<'p>, Term<'p>),
    /// As `Error`, with the reason `{Tag, Value}`: built only where it is raised, as a guard that fails
    /// raises nothing.
    Tagged(Atom, Term<'p>),
    /// `erlang:error/2,3`: reason, arguments (a list or `none`), options.
    ErrorArgs(Term<'p>, Term<'p>, Term<'p>),
    /// `exit:Reason`.
    Exit(Term<'p>),
    /// `throw:Value`.
    Throw(Term<'p>),
    /// `erlang:raise/3`: class, reason, stack trace.
    Raise(Class, Term<'p>, Term<'p>),
}

/// A request of a BIF that has not ended, to the loop that runs the process.
#[derive(Clone)]
pub enum Control<'p> {
    /// The call goes on in another function, as a tail call.
    Trap(&'static Export, Vec<Term<'p>>),
    /// The call goes on in a function, by its address: for code that no export names yet.
    TrapTo(CodeAddress),
    /// The process must wait: the BIF is called again, with the same arguments, when it is woken.
    Wait,
    /// The work that it has put off is to be done on a dirty scheduler: the BIF is called again, with the same arguments,
    /// when it has been.
    Dirty(Leaves),
    /// Time is used up: the BIF is called again, with the same arguments, in the next slice.
    Yield,
    /// Time is used up: the BIF is called again, with these arguments, in the next slice.
    YieldWith(Vec<Term<'p>>),
    /// The BIF has ended, with this result: its caller goes on in the next slice.
    Return(Term<'p>),
}

impl<'p, T> From<T> for Leave<'p>
where
    Raise<'p>: From<T>,
{
    fn from(raise: T) -> Self {
        Leave::Raise(raise.into())
    }
}

impl<'p> From<Control<'p>> for Leave<'p> {
    fn from(control: Control<'p>) -> Self {
        Leave::Control(control)
    }
}

impl From<Atom> for Raise<'static> {
    fn from(reason: Atom) -> Self {
        Raise::Error(reason.term())
    }
}

/// `error:badarg`.
#[must_use]
pub fn badarg() -> Raise<'static> {
    am::badarg.into()
}

/// `error:badarg` with the cause `badopt`.
#[must_use]
pub fn badopt() -> Raise<'static> {
    Raise::ErrorCause(am::badarg.term(), am::badopt.term())
}

/// `error:badarith`.
#[must_use]
pub fn badarith() -> Raise<'static> {
    am::badarith.into()
}

/// `error:system_limit`.
#[must_use]
pub fn system_limit() -> Raise<'static> {
    am::system_limit.into()
}

/// `error:notsup`: what is refused on purpose.
#[must_use]
pub fn notsup() -> Raise<'static> {
    am::notsup.into()
}

/// `error:{Tag, Value}`, as `badmap` and `badkey` are raised.
#[must_use]
pub fn tagged(tag: Atom, value: Term<'_>) -> Raise<'_> {
    Raise::Tagged(tag, value)
}

/// How a BIF that has the process to itself ends; its result is in `x(0)`.
pub enum Next {
    /// Returns to its caller.
    Return,
    /// Goes on at what it set up (`apply`, `hibernate`): the interpreter takes the process's `pc`.
    Jump,
    /// Calls the function at the process's `pc`, its arguments in the registers, as a tail call.
    Call,
    /// Returns, and gives up the rest of the time slice.
    Yield,
    /// Waits for what the process says ([`Process::wait`]), with the registers it says are live, and goes
    /// on at the process's `pc`: ends the time slice with what [`Process::waits`] says.
    Sleep,
    /// Waits; called again with the same arguments when the process is woken.
    Wait,
    /// Gives up the rest of the time slice; called again with the same arguments in the next one.
    Again,
    /// The process exits.
    Exit(Exiting),
    /// An exception that has been stored in the process ([`Process::store_exception`]).
    Raise,
}
