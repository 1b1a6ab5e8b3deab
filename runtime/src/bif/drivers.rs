//! The BIFs of `erl_ddll`. The runtime loads no drivers in C. A request for one gets the error of a machine that cannot
//! load drivers, unless it is one of OTP's that the runtime has natively.
//! Source: `erl_bif_ddll.c`, OTP 29.

use super::{BifResult, Raise, badarg, bifs};
use crate::port::driver;
use crate::process::{Process, Signal, deliver, refs};
use crate::term::atom::atom;
use crate::term::{Term, View, am};
use crate::value::iolist;

bifs! {
    bif erl_ddll:"try_load"/3 => try_load_3;
    bif erl_ddll:"try_unload"/2 => try_unload_2;
    bif erl_ddll:"loaded_drivers"/0 => loaded_drivers_0;
    bif erl_ddll:"info"/2 => info_2;
    bif erl_ddll:"format_error_int"/1 => format_error_int_1;
    bif erl_ddll:"monitor"/2 => monitor_2;
    bif erl_ddll:"demonitor"/1 => demonitor_1;
}

/// A name or path: an atom, or a list of bytes that is not empty.
fn check_name(term: Term<'_>) -> Result<(), Raise<'static>> {
    let ok = match term.view() {
        View::Atom(_) => true,
        View::Cons(_) => iolist::to_vec(term).is_ok(),
        _ => false,
    };
    if ok { Ok(()) } else { Err(badarg()) }
}

/// The bytes of a name.
fn text(name: Term<'_>) -> Option<Vec<u8>> {
    match name.view() {
        View::Atom(name) => Some(name.name().as_bytes().to_vec()),
        _ => iolist::to_vec(name).ok(),
    }
}

/// Checks each element of a proper list.
fn check_each<'p>(list: Term<'p>, check: impl Fn(Term<'p>) -> bool) -> Result<(), Raise<'static>> {
    for element in list.list_iter() {
        if !element.is_ok_and(&check) {
            return Err(badarg());
        }
    }
    Ok(())
}

fn is_pending(value: Term<'_>) -> bool {
    value == am::pending_driver || value == am::pending
}

fn is_load_option(option: Term<'_>) -> bool {
    let Some(&[key, value]) = option.as_tuple().map(|t| t.elements()) else {
        return false;
    };
    match key.as_atom() {
        Some(am::driver_options) => check_each(value, |option| option == am::kill_ports).is_ok(),
        Some(am::monitor | am::reload) => is_pending(value),
        _ => false,
    }
}

fn is_unload_option(option: Term<'_>) -> bool {
    match option.as_tuple().map(|t| t.elements()) {
        Some(&[key, value]) => key == am::monitor && is_pending(value),
        _ => option == am::kill_ports,
    }
}

fn error<'p>(p: &'p Process, reason: Term<'p>) -> Term<'p> {
    p.tuple(&[am::error.term(), reason])
}

fn try_load_3<'p>(p: &'p Process, [path, name, options]: [Term<'p>; 3]) -> BifResult<'p> {
    check_each(options, is_load_option)?;
    check_name(name)?;
    check_name(path)?;
    let name = text(name).ok_or_else(badarg)?;
    if driver::is_linked_in(&name) {
        return Ok(error(p, atom("linked_in_driver")));
    }
    Ok(match driver::load(&name) {
        Some(true) => p.tuple(&[am::ok.term(), am::loaded.term()]),
        Some(false) => p.tuple(&[am::ok.term(), am::already_loaded.term()]),
        None => error(p, am::no_ddll_available.term()),
    })
}

fn try_unload_2<'p>(p: &'p Process, [name, options]: [Term<'p>; 2]) -> BifResult<'p> {
    check_each(options, is_unload_option)?;
    check_name(name)?;
    let name = text(name).ok_or_else(badarg)?;
    if driver::is_linked_in(&name) {
        return Ok(error(p, atom("linked_in_driver")));
    }
    Ok(match driver::unload(&name) {
        Some(true) => p.tuple(&[am::ok.term(), am::unloaded.term()]),
        Some(false) => p.tuple(&[am::ok.term(), am::pending_process.term()]),
        None => error(p, am::not_loaded.term()),
    })
}

fn loaded_drivers_0<'p>(p: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    let names: Vec<_> = driver::loaded().iter().map(|name| p.string(name)).collect();
    Ok(p.tuple(&[am::ok.term(), p.list(&names)]))
}

/// Of a driver that is linked in little is known, and nothing of one that is not.
fn info_2<'p>(_p: &'p Process, [name, item]: [Term<'p>; 2]) -> BifResult<'p> {
    let item = item.as_atom().ok_or_else(badarg)?.name();
    if !text(name).is_some_and(|name| driver::is_linked_in(&name)) {
        return Err(badarg().into());
    }
    match item {
        "linked_in_driver" => Ok(Term::bool(true)),
        "permanent" => Ok(Term::bool(false)),
        "processes" | "driver_options" | "port_count" | "awaiting_load" | "awaiting_unload" => {
            Ok(atom("linked_in_driver"))
        }
        _ => Err(badarg().into()),
    }
}

fn format_error_int_1<'p>(p: &'p Process, [code]: [Term<'p>; 1]) -> BifResult<'p> {
    let text = match code.as_atom() {
        Some(am::no_ddll_available) => "DDLL functionality not available on this platform",
        Some(am::not_loaded) => "DDLL driver is not loaded",
        _ => return Err(badarg().into()),
    };
    Ok(p.string(text))
}

/// Whatever is waited for, the driver is not there: `{'DOWN', Ref, driver, Name, unloaded}` comes at once.
fn monitor_2<'p>(p: &'p Process, [what, description]: [Term<'p>; 2]) -> BifResult<'p> {
    let Some(&[name, when]) = description.as_tuple().map(|t| t.elements()) else {
        return Err(badarg().into());
    };
    let known = matches!(
        when.as_atom(),
        Some(am::loaded | am::unloaded | am::unloaded_only)
    );
    if what != am::driver || !known {
        return Err(badarg().into());
    }
    check_name(name)?;
    let reference = p.reference(refs::make_ref());
    let down = [am::DOWN.term(), reference, what, name, am::unloaded.term()];
    deliver(p.pid(), Signal::message(p.tuple(&down), p.pid()));
    Ok(reference)
}

fn demonitor_1<'p>(_p: &'p Process, [reference]: [Term<'p>; 1]) -> BifResult<'p> {
    reference.as_ref().ok_or_else(badarg)?;
    Ok(Term::bool(true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_driver_is_loaded() {
        let p = &Process::new(233);
        let name = p.string("a_driver");
        let options = p.list(&[p.tuple(&[am::monitor.term(), am::pending.term()])]);
        let failed = try_load_3(p, [name, name, options])
            .ok()
            .expect("no exception");
        assert_eq!(failed.display().to_string(), "{error,no_ddll_available}");
        let failed = try_unload_2(p, [name, Term::NIL])
            .ok()
            .expect("no exception");
        assert_eq!(failed.display().to_string(), "{error,not_loaded}");
        assert!(try_load_3(p, [name, name, p.list(&[am::ok.term()])]).is_err());
        assert!(try_load_3(p, [Term::small(1), name, Term::NIL]).is_err());
        assert!(monitor_2(p, [am::driver.term(), name]).is_err());
    }
}
