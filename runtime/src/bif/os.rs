//! `os`: environment and the operating-system process.
//! Source: `erl_bif_os.c`, `erl_osenv.c`, OTP 29.
//!
//! The environment is a table of the runtime's own, filled once from the process's: the C library's
//! stays as it was (ports get the table).

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStringExt;
use std::sync::OnceLock;

use parking_lot::RwLock;

use super::{BifResult, Raise, badarg, bifs};
use crate::heap::Heap;
use crate::native::{self, names};
use crate::process::registry::{self, Named};
use crate::process::{Process, Signal, deliver};
use crate::sched::outside;
use crate::sys::signal::{self, Disposition};
use crate::term::{Atom, Term, View, am};

bifs! {
    bif os:"env"/0 => env_0;
    bif os:"getenv"/1 => getenv_1;
    bif os:"putenv"/2 => putenv_2;
    bif os:"unsetenv"/1 => unsetenv_1;
    bif os:"getpid"/0 => getpid_0;
    bif os:"set_signal"/2 => set_signal_2;
}

/// Variables by name, in the encoding of the file system.
type Environment = BTreeMap<Vec<u8>, Vec<u8>>;

fn environment() -> &'static RwLock<Environment> {
    static ENVIRONMENT: OnceLock<RwLock<Environment>> = OnceLock::new();
    ENVIRONMENT.get_or_init(|| {
        let variables = std::env::vars_os().map(|(key, value)| (key.into_vec(), value.into_vec()));
        RwLock::new(variables.collect())
    })
}

/// A copy of the environment, for programs that ports start.
#[must_use]
pub fn environment_copy() -> BTreeMap<Vec<u8>, Vec<u8>> {
    environment().read().clone()
}

/// Sets a variable, as `os:putenv/2` does.
pub fn set_variable(key: &[u8], value: &[u8]) {
    environment().write().insert(key.to_vec(), value.to_vec());
}

/// A name or value from the environment: a string, in Latin-1 where it is not of the encoding.
fn text<'p>(p: &'p Process, bytes: &[u8]) -> Term<'p> {
    names::name_of_native(p, bytes).unwrap_or_else(|()| p.byte_list(bytes))
}

/// The bytes of a value given as a string.
pub(crate) fn native_value(value: Term<'_>) -> Option<Vec<u8>> {
    match value.view() {
        View::Nil | View::Cons(_) => names::native_name(value, names::encoding()),
        _ => None,
    }
}

/// The bytes of a variable's name: a string without `=`.
pub(crate) fn native_key(key: Term<'_>) -> Option<Vec<u8>> {
    native_value(key).filter(|key| !key.contains(&b'='))
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
    outside::take(|| "os:getpid/0".to_owned());
    Ok(p.string(&std::process::id().to_string()))
}

/// Sends `{notify, Signal}` to `erl_signal_server`, as ERTS does.
fn notify(signal: &'static str) {
    let Some(Named::Process(server)) = registry::whereis(Atom::new("erl_signal_server")) else {
        return;
    };
    let heap = Heap::detached();
    let message = heap.tuple(&[native::atom("notify"), native::atom(signal)]);
    deliver(server, Signal::message(message, server));
}

/// Has the signals that ERTS handles from its start told to `erl_signal_server`.
pub fn handle_signals() {
    signal::start(notify);
    signal::set(libc::SIGTERM, Disposition::Handle);
    signal::set(libc::SIGUSR1, Disposition::Handle);
}

fn set_signal_2<'p>(_p: &'p Process, [name, option]: [Term<'p>; 2]) -> BifResult<'p> {
    let disposition = match option.as_atom().map(|option| option.name()) {
        Some("ignore") => Disposition::Ignore,
        Some("default") => Disposition::Default,
        Some("handle") => Disposition::Handle,
        _ => {
            let badopt = native::atom("badopt");
            return Err(Raise::ErrorCause(am::badarg.term(), badopt));
        }
    };
    let name = name.as_atom().ok_or_else(badarg)?;
    let number = signal::number(name.name()).ok_or_else(badarg)?;
    signal::start(notify);
    // Signals that cannot be caught are left as they are, as in ERTS.
    signal::set(number, disposition);
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
