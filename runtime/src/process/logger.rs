//! Sends the runtime's own error messages to the process that is registered as `logger` or another one. Source:
//! `do_send_logger_message()` in `utils.c`, `erts_set_system_logger()` in `erl_trace.c`, OTP 29.

use parking_lot::Mutex;

use super::order::answer;
use super::registry::{Named, whereis};
use super::{Process, SYSTEM, Signal, exists, send};
use crate::heap::Heap;
use crate::sys::chance::clock::system_ns;
use crate::sys::stderr::complain;
use crate::term::{Atom, Pid, Term, View, am};
use crate::value::map;

/// The receiver of the messages: `logger`, `undefined`, or a process (`system_flag(system_logger, _)`).
#[derive(Clone, Copy)]
pub(crate) enum SystemLogger {
    /// Whoever is registered as `logger`.
    Registered,
    /// This process, as long as it lives.
    Process(Pid),
    /// Nobody.
    Undefined,
}

static SYSTEM_LOGGER: Mutex<SystemLogger> = Mutex::new(SystemLogger::Registered);

impl SystemLogger {
    /// The one in force.
    pub(crate) fn current() -> SystemLogger {
        *SYSTEM_LOGGER.lock()
    }

    /// Puts it in force; the old one.
    pub(crate) fn set(self) -> SystemLogger {
        std::mem::replace(&mut SYSTEM_LOGGER.lock(), self)
    }

    /// The one that `term` names.
    pub(crate) fn of(term: Term<'_>) -> Option<SystemLogger> {
        match term.view() {
            View::Pid(pid) => Some(SystemLogger::Process(pid)),
            View::Atom(am::logger) => Some(SystemLogger::Registered),
            View::Atom(am::undefined) => Some(SystemLogger::Undefined),
            _ => None,
        }
    }

    /// As a term.
    pub(crate) fn term(self) -> Term<'static> {
        match self {
            SystemLogger::Registered => am::logger.term(),
            SystemLogger::Process(pid) => pid.term(),
            SystemLogger::Undefined => am::undefined.term(),
        }
    }

    /// The process that gets the messages. If it is gone, the registered one takes its place from now on.
    fn receiver(self) -> Option<Pid> {
        match self {
            SystemLogger::Undefined => return None,
            SystemLogger::Process(pid) if exists(pid) => return Some(pid),
            SystemLogger::Process(_) => {
                SystemLogger::Registered.set();
            }
            SystemLogger::Registered => {}
        }
        match whereis(am::logger) {
            Some(Named::Process(pid)) => Some(pid),
            _ => None,
        }
    }
}

/// When something was logged is recorded, as if the process had asked for it.
static TIME: answer::Native = answer::Native::new("os", "system_time", 1);

/// Logs an error of `p`: `format` as `io_lib:format/2` takes it, with a list of arguments.
pub(crate) fn log_error<'p>(p: &'p Process, format: &str, args: Term<'p>) {
    log(p, am::error, format, args);
}

/// Logs a warning, as [`log_error`] an error.
pub(crate) fn log_warning<'p>(p: &'p Process, format: &str, args: Term<'p>) {
    log(p, am::warning, format, args);
}

/// The report is one of the sendings of `p`, so that the order of a run says when it comes.
fn log<'p>(p: &'p Process, level: Atom, format: &str, args: Term<'p>) {
    let tag = [
        (am::emulator.term(), Term::bool(true)),
        (am::tag.term(), level.term()),
    ];
    let meta = [
        (am::error_logger.term(), map::from_pairs(p, &tag)),
        (am::gl.term(), p.group_leader().term(p)),
        (am::pid.term(), p.pid().term()),
        (am::time.term(), time(p)),
    ];
    let message = p.tuple(&[
        am::log.term(),
        level.term(),
        p.string(format),
        args,
        map::from_pairs(p, &meta),
    ]);
    let sent = SystemLogger::current().receiver().is_some_and(|logger| {
        let number = p.next_sending(logger);
        send(logger, Signal::sent(message, p.pid(), None, number)).is_ok()
    });
    if !sent {
        complain!(
            "{} in process <0.{}.{}> (no logger): {format}",
            level.name(),
            p.pid().number(),
            p.pid().serial()
        );
    }
}

/// In microseconds.
fn time(p: &Process) -> Term<'_> {
    let Ok(now) = answer::replay_or_call(p, &TIME, || {
        Ok::<_, std::convert::Infallible>(p.integer(system_ns() / 1000))
    });
    now
}

/// Logs an error of no process.
pub(crate) fn log_system_error(text: &str) {
    let message = Heap::detached().into_message(|heap| {
        let tag = [
            (am::emulator.term(), Term::bool(true)),
            (am::tag.term(), am::error.term()),
        ];
        let meta = [
            (am::error_logger.term(), map::from_pairs(heap, &tag)),
            (am::time.term(), heap.integer(system_ns() / 1000)),
        ];
        let args = heap.list(&[heap.string(text)]);
        let level = am::error.term();
        let meta = map::from_pairs(heap, &meta);
        heap.tuple(&[am::log.term(), level, heap.string("~s"), args, meta])
    });
    let signal = Signal::own(message, SYSTEM);
    let logger = SystemLogger::current().receiver();
    if logger.is_none_or(|logger| send(logger, signal).is_err()) {
        complain!("error (no logger): {text}");
    }
}

/// Logs that `p` ends by an error nobody caught, with this exit value.
pub(crate) fn log_uncaught<'p>(p: &'p Process, value: Term<'p>) {
    let args = p.list(&[p.pid().term(), value]);
    log_error(p, "Error in process ~p with exit value:~n~p~n", args);
}
