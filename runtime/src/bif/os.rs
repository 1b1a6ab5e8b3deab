//! The BIFs of `os`: the environment and the operating-system process.
//! Source: `erl_bif_os.c`, `erl_osenv.c`, OTP 29.
//!
//! The environment is a table of the runtime's own, which is filled once from the process's environment. The C
//! library's stays as it was (ports get the table).

use std::sync::OnceLock;

use super::{BifResult, Raise, badarg, bifs, break_menu};
use crate::heap::Message;
use crate::process::order::director::may_hear_of_system_signals;
use crate::process::registry::{self, Named};
use crate::process::{Process, Signal, deliver};
use crate::sys::chance::names;
use crate::sys::environment::{environment, set_variable};
use crate::sys::signal::{self, Disposition};
use crate::sys::terminal;
use crate::term::atom::atom;
use crate::term::{Atom, Term, am};
use crate::value::file_name::{name_of_native, native_key, native_value};

bifs! {
    bif os:"env"/0 => env_0, answer;
    bif os:"getenv"/1 => getenv_1, answer;
    bif os:"putenv"/2 => putenv_2, again;
    bif os:"unsetenv"/1 => unsetenv_1, again;
    bif os:"getpid"/0 => getpid_0, answer;
    bif os:"set_signal"/2 => set_signal_2, again;
}

/// A name or value from the environment: a string, in Latin-1 where it is not of the encoding.
fn text<'p>(p: &'p Process, bytes: &[u8]) -> Term<'p> {
    name_of_native(p, bytes).unwrap_or_else(|()| p.byte_list(bytes))
}

fn env_0<'p>(p: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    let environment = environment().read();
    Ok(environment.iter().fold(Term::NIL, |rest, (key, value)| {
        let pair = p.tuple(&[text(p, key), text(p, value)]);
        p.cons(pair, rest)
    }))
}

fn getenv_1<'p>(p: &'p Process, [key]: [Term<'p>; 1]) -> BifResult<'p> {
    let key = native_key(key).ok_or_else(badarg)?;
    Ok(match environment().read().get(&key) {
        Some(value) => text(p, value),
        None => false.into(),
    })
}

fn putenv_2<'p>(_p: &'p Process, [key, value]: [Term<'p>; 2]) -> BifResult<'p> {
    let key = native_key(key).ok_or_else(badarg)?;
    let value = native_value(value).ok_or_else(badarg)?;
    set_variable(&key, &value);
    Ok(true.into())
}

fn unsetenv_1<'p>(_p: &'p Process, [key]: [Term<'p>; 1]) -> BifResult<'p> {
    let key = native_key(key).ok_or_else(badarg)?;
    environment().write().remove(&key);
    Ok(true.into())
}

fn getpid_0<'p>(p: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    Ok(p.string(&names::told_pid().to_string()))
}

/// Sends `{notify, Signal}` to `erl_signal_server`, as ERTS does. An interrupt opens the menu of an interactive shell, and
/// else asks for the program's end.
fn notify(signal: &'static str) {
    if signal == signal::INTERRUPT.0 && (terminal::is_raw() || break_menu::is_open()) {
        return break_menu::open();
    }
    let signal = match signal == signal::INTERRUPT.0 {
        true => "sigterm",
        false => signal,
    };
    let Some(Named::Process(server)) = registry::whereis(Atom::new("erl_signal_server")) else {
        return;
    };
    let message = Message::of_tuple(&[atom("notify"), atom(signal)]);
    deliver(server, Signal::from_outside(message));
}

/// Says what a signal does from now on. A program that follows a recorded run hears of the signals of that run only: one
/// that is to end the emulator does so itself.
fn set(signal: i32, disposition: Disposition) {
    let disposition = match signal != libc::SIGTERM || may_hear_of_system_signals() {
        true => disposition,
        false => Disposition::Default,
    };
    // Signals that cannot be caught are left as they are, as in ERTS.
    signal::set(signal, disposition);
}

/// What an interrupt (Ctrl-C) does: the emulator's flag `+B`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Break {
    /// Opens the menu of an interactive shell.
    #[default]
    Menu,
    /// Nothing (`+Bi`). The terminal's other signals do nothing either.
    Ignored,
    /// The shell reads it as a key (`+Bc`).
    Key,
    /// What the system does by default (`+Bd`).
    Default,
}

static BREAK: OnceLock<Break> = OnceLock::new();

/// Is an interrupt ignored?
pub(crate) fn is_break_ignored() -> bool {
    BREAK.get() == Some(&Break::Ignored)
}

/// Has the signals that ERTS handles from its start told to `erl_signal_server`, and an interrupt of a run that is
/// measured.
pub(crate) fn handle_signals(is_measured: bool, on_interrupt: Break) {
    BREAK.get_or_init(|| on_interrupt);
    signal::start(notify);
    set(libc::SIGTERM, Disposition::Handle);
    set(libc::SIGUSR1, Disposition::Handle);
    if is_measured {
        // The first Ctrl-C lets the machine write what it has measured, and the second one ends it at once.
        signal::set(signal::INTERRUPT.1, Disposition::HandleOnce);
    }
    match on_interrupt {
        Break::Ignored => {
            for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGTSTP] {
                signal::set(signal, Disposition::Ignore);
            }
        }
        Break::Key => terminal::disable_interrupt_key(),
        Break::Menu | Break::Default => {}
    }
}

/// Has an interrupt open the menu while the terminal is raw, unless `+B` says something else. After that, it asks for the
/// program's end.
pub(crate) fn handle_interrupts() {
    if matches!(BREAK.get(), Some(Break::Ignored | Break::Default)) {
        return;
    }
    signal::start(notify);
    signal::set(signal::INTERRUPT.1, Disposition::Handle);
}

fn set_signal_2<'p>(_p: &'p Process, [name, option]: [Term<'p>; 2]) -> BifResult<'p> {
    let disposition = match option.as_atom().map(|option| option.name()) {
        Some("ignore") => Disposition::Ignore,
        Some("default") => Disposition::Default,
        Some("handle") => Disposition::Handle,
        _ => {
            let badopt = atom("badopt");
            return Err(Raise::ErrorCause(am::badarg.term(), badopt).into());
        }
    };
    let name = name.as_atom().ok_or_else(badarg)?;
    let number = signal::number(name.name()).ok_or_else(badarg)?;
    signal::start(notify);
    set(number, disposition);
    Ok(am::ok.term())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value<'p>(result: BifResult<'p>) -> Term<'p> {
        result.ok().expect("no exception")
    }

    fn chars(t: Term<'_>) -> String {
        t.list_iter()
            .map(|c| char::from_u32(c.ok().unwrap().as_small().unwrap() as u32).unwrap())
            .collect()
    }

    #[test]
    fn variables_are_set_and_unset() {
        let p = &Process::new(233);
        let key = p.string("A_VARIABLE_OF_THIS_TEST");
        assert!(value(getenv_1(p, [key])) == am::false_);
        assert!(value(putenv_2(p, [key, p.string("a=b")])) == am::true_);
        assert_eq!(chars(value(getenv_1(p, [key]))), "a=b");
        let listed = value(env_0(p, [])).list_iter().any(|pair| {
            let pair = pair.ok().unwrap().as_tuple().unwrap();
            chars(pair.get(0)) == "A_VARIABLE_OF_THIS_TEST" && chars(pair.get(1)) == "a=b"
        });
        assert!(listed);
        assert!(value(unsetenv_1(p, [key])) == am::true_);
        assert!(value(getenv_1(p, [key])) == am::false_);
    }

    #[test]
    fn names_that_are_none_are_refused() {
        let p = &Process::new(233);
        for key in [
            p.string("a=b"),
            am::ok.term(),
            p.binary(b"A"),
            p.string("\0"),
        ] {
            assert!(getenv_1(p, [key]).is_err());
            assert!(putenv_2(p, [key, Term::NIL]).is_err());
        }
        assert!(putenv_2(p, [p.string("A"), am::ok.term()]).is_err());
    }
}
