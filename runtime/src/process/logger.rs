//! Error messages of the runtime's own, to the process that is registered as `logger`.
//! Source: `do_send_logger_message()` in `utils.c`, OTP 29.

use super::registry::{Named, whereis};
use super::{Process, Signal, send};
use crate::sched::clock::system_ns;
use crate::term::{Atom, Term, am, map};

/// Logs an error of `p`: `format` as `io_lib:format/2` takes it, with a list of arguments.
pub(crate) fn log_error<'p>(p: &'p Process, format: &str, args: Term<'p>) {
    log(p, am::error, format, args);
}

/// Logs a warning, as [`log_error`] an error.
pub(crate) fn log_warning<'p>(p: &'p Process, format: &str, args: Term<'p>) {
    log(p, am::warning, format, args);
}

fn log<'p>(p: &'p Process, level: Atom, format: &str, args: Term<'p>) {
    let tag = [
        (am::emulator.term(), Term::bool(true)),
        (am::tag.term(), level.term()),
    ];
    let meta = [
        (am::error_logger.term(), map::from_pairs(p, &tag)),
        (am::gl.term(), p.group_leader.get().term()),
        (am::pid.term(), p.pid().term()),
        (am::time.term(), p.integer(system_ns() / 1000)),
    ];
    let message = p.tuple(&[
        am::log.term(),
        level.term(),
        p.string(format),
        args,
        map::from_pairs(p, &meta),
    ]);
    let sent = match whereis(am::logger) {
        Some(Named::Process(logger)) => send(logger, Signal::message(message, p.pid())).is_ok(),
        _ => false,
    };
    if !sent {
        eprintln!(
            "{} in process <0.{}.{}> (no logger): {format}",
            level.name(),
            p.pid().number(),
            p.pid().serial()
        );
    }
}

/// Logs that `p` ends by an error nobody caught, with this exit value.
pub(crate) fn log_uncaught<'p>(p: &'p Process, value: Term<'p>) {
    let args = p.list(&[p.pid().term(), value]);
    log_error(p, "Error in process ~p with exit value:~n~p~n", args);
}
