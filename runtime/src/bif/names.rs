//! The BIFs of registered names.

use super::{BifResult, Raise, badarg, bifs};
use crate::process::registry::Named;
use crate::process::{Process, registry};
use crate::term::{Atom, Term, View, am};
use crate::trace::Event;

bifs! {
    bif erlang:"register"/2 => register_2, shared;
    bif erlang:"unregister"/1 => unregister_1, shared;
    bif erlang:"whereis"/1 => whereis_1, shared;
    bif erlang:"registered"/0 => registered_0, shared;
}

fn register_2<'p>(p: &'p Process, [name, who]: [Term<'p>; 2]) -> BifResult<'p> {
    let refused = |cause: Atom| Raise::ErrorCause(am::badarg.term(), cause.term());
    let name = name.as_atom().filter(|name| *name != am::undefined);
    let name = name.ok_or_else(|| refused(am::none))?;
    match who.view() {
        View::Pid(pid) => {
            let names = registry::to_give(p, name, Named::Process(pid))?;
            if !registry::gets_name(p, pid) {
                return Err(refused(am::notalive).into());
            }
            registry::register_process(names, name, pid).map_err(refused)?;
        }
        View::Port(port) => {
            if !crate::process::ports::exists(port) {
                return Err(refused(am::none).into());
            }
            let names = registry::to_give(p, name, Named::Port(port))?;
            registry::register_port(names, name, port).map_err(refused)?;
            report_port_name(port, Event::Register, name);
        }
        _ => return Err(refused(am::none).into()),
    }
    Ok(Term::bool(true))
}

fn report_port_name(port: crate::term::Port, event: Event, name: Atom) {
    let guard = crate::sched::ptab::pin();
    if let Some(port) = crate::port::table().get(port.0, &guard) {
        port.traced().happened(event, name.term());
    }
}

fn unregister_1<'p>(p: &'p Process, [name]: [Term<'p>; 1]) -> BifResult<'p> {
    let name = name.as_atom().ok_or_else(badarg)?;
    let names = registry::to_free(p, name)?;
    if let Named::Port(port) = registry::unregister(names, name).ok_or_else(badarg)? {
        report_port_name(port, Event::Unregister, name);
    }
    Ok(Term::bool(true))
}

fn whereis_1<'p>(p: &'p Process, [name]: [Term<'p>; 1]) -> BifResult<'p> {
    let name = name.as_atom().ok_or_else(badarg)?;
    let named = registry::find(p, name)?.map(Named::term);
    Ok(named.unwrap_or(am::undefined.term()))
}

fn registered_0<'p>(p: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    let names = registry::registered(p)?;
    let names: Vec<Term<'_>> = names.into_iter().map(Atom::term).collect();
    Ok(p.list(&names))
}
