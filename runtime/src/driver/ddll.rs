//! The BIFs of `erl_ddll`. Source: `erl_bif_ddll.c`, OTP 29.

use super::dynamic::{LoadOptions, Refusal, Role, Status};
use super::entry::text_of;
use super::table::{self, Awaited, Info};
use crate::code::bif::bifs;
use crate::heap::Heap;
use crate::port::driver;
use crate::process::refs::RefNumbers;
use crate::process::{BifResult, Process, Raise, Signal, badarg, deliver};
use crate::term::atom::atom;
use crate::term::{Atom, Pid, Term, View, am};
use crate::value::{file_name, iolist};

bifs! {
    all unrecorded;
    bif erl_ddll:"try_load"/3 => try_load_3;
    bif erl_ddll:"try_unload"/2 => try_unload_2;
    bif erl_ddll:"loaded_drivers"/0 => loaded_drivers_0;
    bif erl_ddll:"info"/2 => info_2;
    bif erl_ddll:"format_error_int"/1 => format_error_int_1;
    bif erl_ddll:"monitor"/2 => monitor_2;
    bif erl_ddll:"demonitor"/1 => demonitor_1;
}

/// A driver's name: an atom that is not empty, or an I/O list.
fn driver_name(term: Term<'_>) -> Result<Vec<u8>, Raise<'static>> {
    match term.view() {
        View::Atom(name) if !name.name().is_empty() => Ok(name.name().as_bytes().to_vec()),
        View::Cons(_) | View::Nil | View::Bits(_) => iolist::to_vec(term).map_err(|_| badarg()),
        _ => Err(badarg()),
    }
}

/// 1 for `pending_driver`, 2 for `pending`.
fn pending(value: Term<'_>) -> Result<u8, Raise<'static>> {
    match value.as_atom() {
        Some(am::pending_driver) => Ok(1),
        Some(am::pending) => Ok(2),
        _ => Err(badarg()),
    }
}

fn load_options(list: Term<'_>) -> Result<LoadOptions, Raise<'static>> {
    let mut options = LoadOptions::default();
    for option in list.list_iter() {
        let pair = option.ok().and_then(Term::as_tuple).ok_or_else(badarg)?;
        let [key, value] = pair.elements() else {
            return Err(badarg());
        };
        match key.as_atom() {
            Some(am::driver_options) => {
                for option in value.list_iter() {
                    if !option.is_ok_and(|option| option == am::kill_ports) {
                        return Err(badarg());
                    }
                    options.kills_ports = true;
                }
            }
            Some(am::monitor) => options.monitor = pending(*value)?,
            Some(am::reload) => options.reload = pending(*value)?,
            _ => return Err(badarg()),
        }
    }
    Ok(options)
}

/// Kill ports, and how to monitor.
fn unload_options(list: Term<'_>) -> Result<(bool, u8), Raise<'static>> {
    let (mut kills_ports, mut monitor) = (false, 0);
    for option in list.list_iter() {
        let option = option.map_err(|_| badarg())?;
        match option.as_tuple().map(|pair| pair.elements()) {
            None if option == am::kill_ports => kills_ports = true,
            Some([key, value]) if *key == am::monitor => monitor = pending(*value)?,
            _ => return Err(badarg()),
        }
    }
    Ok((kills_ports, monitor))
}

fn answer<'p>(p: &'p Process, done: Result<(Atom, Option<RefNumbers>), Refusal>) -> BifResult<'p> {
    Ok(match done {
        Ok((status, None)) => p.tuple(&[am::ok.term(), status.term()]),
        Ok((status, Some(reference))) => {
            p.tuple(&[am::ok.term(), status.term(), p.reference(reference)])
        }
        Err(Refusal::Reason(reason)) => p.tuple(&[am::error.term(), atom(reason)]),
        Err(Refusal::Load(failure)) => p.tuple(&[am::error.term(), failure.term(p)]),
    })
}

fn try_load_3<'p>(p: &'p Process, [path, name, options]: [Term<'p>; 3]) -> BifResult<'p> {
    let options = load_options(options)?;
    let name = driver_name(name)?;
    let mut path = file_name::native_or_raw_name(path).ok_or_else(badarg)?;
    while matches!(path.last(), Some(b'/' | b'\\')) {
        path.pop();
    }
    let path = [&path[..], b"/", &name].concat();
    answer(p, table::try_load(p, &path, &name, options))
}

fn try_unload_2<'p>(p: &'p Process, [name, options]: [Term<'p>; 2]) -> BifResult<'p> {
    let (kills_ports, monitor) = unload_options(options)?;
    let name = driver_name(name)?;
    answer(p, table::try_unload(p, &name, kills_ports, monitor))
}

fn loaded_drivers_0<'p>(p: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    let linked_in = driver::linked_in().map(|name| p.string(name));
    let names = table::names();
    let loaded = names.iter().map(|name| p.byte_list(name));
    let names: Vec<_> = loaded.chain(linked_in).collect();
    Ok(p.tuple(&[am::ok.term(), p.list(&names)]))
}

/// Processes in some role, with how often.
fn users<'h>(heap: &'h Heap, info: &Info, is_in: impl Fn(Role) -> bool) -> Term<'h> {
    let mut counts: Vec<(Pid, i64)> = Vec::new();
    for (pid, _) in info.users.iter().filter(|(_, role)| is_in(*role)) {
        match counts.iter_mut().find(|(other, _)| other == pid) {
            Some((_, count)) => *count += 1,
            None => counts.push((*pid, 1)),
        }
    }
    let rows = counts.iter().rev();
    let rows = rows.map(|(pid, count)| heap.tuple(&[pid.term(), Term::small(*count)]));
    heap.list(&rows.collect::<Vec<_>>())
}

fn info_2<'p>(p: &'p Process, [name, item]: [Term<'p>; 2]) -> BifResult<'p> {
    let name = driver_name(name)?;
    let item = item.as_atom().ok_or_else(badarg)?.name();
    let info = table::info(&name).ok_or_else(badarg)?;
    let is_permanent = info.status == Some(Status::Permanent);
    Ok(match (item, info.status) {
        ("linked_in_driver", status) => status.is_none().into(),
        ("permanent", _) => is_permanent.into(),
        (
            "processes" | "driver_options" | "port_count" | "awaiting_load" | "awaiting_unload",
            None,
        ) => atom("linked_in_driver"),
        ("driver_options", _) if info.kills_ports => p.list(&[am::kill_ports.term()]),
        ("driver_options", _) => Term::NIL,
        ("processes" | "port_count" | "awaiting_load" | "awaiting_unload", _) if is_permanent => {
            atom("permanent")
        }
        ("port_count", _) => p.unsigned(info.ports as u64),
        ("processes", _) => users(p, &info, |role| matches!(role, Role::Loaded { .. })),
        ("awaiting_load", _) => users(p, &info, |role| matches!(role, Role::AwaitsLoad(_))),
        ("awaiting_unload", _) => users(p, &info, |role| {
            matches!(role, Role::AwaitsUnload(_) | Role::AwaitsUnloadOnly(_))
        }),
        _ => return Err(badarg().into()),
    })
}

/// Texts of the errors that are atoms.
const TEXTS: &[(&str, &str)] = &[
    (
        "inconsistent",
        "Driver name and/or driver options are inconsistent with currently loaded driver",
    ),
    (
        "linked_in_driver",
        "Driver is statically linked and cannot be loaded/unloaded",
    ),
    (
        "permanent",
        "DDLL driver is permanent an cannot be unloaded/loaded",
    ),
    ("not_loaded", "DDLL driver is not loaded"),
    (
        "not_loaded_by_this_process",
        "DDLL driver was not loaded by this process",
    ),
    ("not_pending", "DDLL load not pending for this driver name"),
    (
        "already_loaded",
        "DDLL driver is already loaded successfully",
    ),
    ("pending_reload", "Driver reloading is already pending"),
    (
        "pending_process",
        "Driver is loaded by others when attempting option {reload, pending_driver}",
    ),
    ("no_error", "No error"),
    ("no_driver_init", "No driver init in dynamic library"),
    ("driver_init_failed", "Driver init failed"),
    ("bad_driver_name", "Bad driver name"),
    ("driver_name_to_long", "Driver name to long"),
    (
        "driver_incorrect_version",
        "Driver compiled with incorrect version of erl_driver.h",
    ),
    (
        "no_ddll_available",
        "DDLL functionality not available on this platform",
    ),
    ("unspecified_error", "Unspecified dynamic library error"),
    ("symbol_not_found", "Symbol not found in dynamic library"),
];

/// What is said of a number that the system's loader has given to nothing.
const UNKNOWN: &str = "Unspecified error";

fn format_error_int_1<'p>(p: &'p Process, [error]: [Term<'p>; 1]) -> BifResult<'p> {
    if let Some(name) = error.as_atom() {
        let row = TEXTS.iter().find(|(other, _)| *other == name.name());
        let (_, text) = row.ok_or_else(badarg)?;
        return Ok(p.string(text));
    }
    match error.as_tuple().map(|pair| pair.elements()) {
        Some([tag, number]) if tag.same(atom("open_error")) => {
            let number = number.as_small().ok_or_else(badarg)?;
            let text = text_of(number).unwrap_or_else(|| UNKNOWN.to_owned());
            Ok(p.byte_list(text.as_bytes()))
        }
        _ => Err(badarg().into()),
    }
}

fn monitor_2<'p>(p: &'p Process, [what, description]: [Term<'p>; 2]) -> BifResult<'p> {
    let pair = description.as_tuple().map(|pair| pair.elements());
    let Some(&[name_term, when]) = pair.filter(|_| what == am::driver) else {
        return Err(badarg().into());
    };
    let name = driver_name(name_term)?;
    let awaited = match when.as_atom() {
        Some(am::loaded) => Awaited::Loaded,
        Some(am::unloaded) => Awaited::Unloaded,
        Some(am::unloaded_only) => Awaited::UnloadedOnly,
        _ => return Err(badarg().into()),
    };
    let (reference, told) = table::monitor(p, &name, awaited);
    let reference = p.reference(reference);
    if let Some((kind, told)) = told {
        let told = [kind.term(), reference, what, name_term, atom(told)];
        deliver(p.pid(), Signal::message(p.tuple(&told), p.pid()));
    }
    Ok(reference)
}

fn demonitor_1<'p>(p: &'p Process, [reference]: [Term<'p>; 1]) -> BifResult<'p> {
    let reference = reference.as_ref().ok_or_else(badarg)?;
    table::demonitor(p.pid(), reference.numbers());
    Ok(true.into())
}
