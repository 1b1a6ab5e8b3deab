//! The BIFs of ports. Source: `erl_bif_port.c`, `io.c`, OTP 29.
//!
//! Those of `erts_internal` answer with an atom where `erlang` raises an exception.

use std::sync::Arc;

use crate::bif::wait_for_port;
use crate::code::bif::bifs;
use crate::external::{DecodeOptions, EncodeOptions, decode, encode};
use crate::heap::Message;
use crate::loader::module::Mfa;
use crate::port::open::{self, Error};
use crate::port::{Port, Refused, State, table};
use crate::process::order::answer::{self, Native, Sent};
use crate::process::registry::{self, Named};
use crate::process::{BifResult, badarg};
use crate::process::{Process, exists, is_of_old_incarnation};
use crate::sys::msacc;
use crate::term::atom::atom;
use crate::term::{Atom, Port as PortId, Term, View, am, tag};
use crate::trace::record::native_functions;
use crate::trace::sysprof;
use crate::value::iolist::{self, Output};

bifs! {
    bif erts_internal:"open_port"/2 => open_port_2, again;
    bif erts_internal:"port_command"/3 => port_command_3, outside;
    bif erts_internal:"port_close"/1 => port_close_1, outside;
    bif erts_internal:"port_connect"/2 => port_connect_2, outside;
    bif erts_internal:"port_control"/3 => port_control_3, outside_or_socket;
    bif erts_internal:"port_call"/3 => port_call_3, outside;
    bif erts_internal:"port_info"/1 => port_info_1, answer;
    bif erts_internal:"port_info"/2 => port_info_2, answer;
    bif erlang:"port_set_data"/2 => port_set_data_2, shared;
    bif erlang:"port_get_data"/1 => port_get_data_1, shared;
    bif erlang:"ports"/0 => ports_0, answer;
}

fn open_port_2<'p>(p: &'p Process, [name, options]: [Term<'p>; 2]) -> BifResult<'p> {
    Ok(match open::open(p, name, options) {
        Ok(port) => port.term(),
        Err(Error::Badarg) => am::badarg.term(),
        Err(Error::Badopt) => atom("badopt"),
        Err(Error::SystemLimit) => am::system_limit.term(),
        Err(Error::Os(reason)) => atom(reason),
    })
}

/// The open port that a term names: by itself, or by a registered name.
fn port_of(term: Term<'_>) -> Option<Arc<Port>> {
    let id = match term.view() {
        View::Port(id) => id,
        View::Atom(name) => match registry::whereis(name)? {
            Named::Port(id) => id,
            Named::Process(_) => return None,
        },
        _ => return None,
    };
    Port::lookup(id)
}

fn port_command_3<'p>(p: &'p Process, [port, data, options]: [Term<'p>; 3]) -> BifResult<'p> {
    let (mut force, mut nosuspend) = (false, false);
    for option in options.list_iter() {
        match option
            .ok()
            .and_then(Term::as_atom)
            .map(|option| option.name())
        {
            Some("force") => force = true,
            Some("nosuspend") => nosuspend = true,
            _ => return Ok(atom("badopt")),
        }
    }
    let Some(port) = port_of(port) else {
        return Ok(am::badarg.term());
    };
    if force && !port.is_busy_softly() {
        return Ok(am::notsup.term());
    }
    let Ok(data) = Output::of(data) else {
        return Ok(am::badarg.term());
    };
    if answer::finds_closed(p, || port.is_replayed()) {
        return Ok(am::badarg.term());
    }
    let sent = Sent::of(|digest| port.payload(&data.bytes()).map(digest));
    let reds = p.fcalls.get();
    p.bump_reds((data.len() / 1024) as i64);
    note_driver_call(p, &port, "port_command");
    let taken = {
        let _call = begin_call(p);
        port.command_from(p, p.pid().term().raw(), data, force)
    };
    match taken {
        Ok(()) => {
            if let Some(sent) = sent {
                sent.by(p);
            }
            Ok(true.into())
        }
        Err(Refused::Gone) => Ok(am::badarg.term()),
        Err(Refused::Busy) if nosuspend => Ok(false.into()),
        Err(Refused::Busy) => {
            // How often it is refused is chance.
            p.forget_reds(reds);
            let function = (am::erts_internal, Atom::new("port_command"), 3);
            Err(wait_for_port(p, port.id, function).into())
        }
    }
}

fn port_close_1<'p>(p: &'p Process, [port]: [Term<'p>; 1]) -> BifResult<'p> {
    let Some(port) = port_of(port) else {
        return Ok(am::badarg.term());
    };
    port.report_close(p.pid().term().raw());
    let _call = begin_call(p);
    let _runs = sysprof::port_runs(port.id);
    port.close(port.state.lock(), am::normal.term(), false);
    Ok(true.into())
}

fn port_connect_2<'p>(p: &'p Process, [port, pid]: [Term<'p>; 2]) -> BifResult<'p> {
    let (Some(port), Some(pid)) = (port_of(port), pid.as_pid()) else {
        return Ok(am::badarg.term());
    };
    let connected = exists(pid) && port.connect(pid, true);
    if connected {
        port.report_connect(p.pid(), pid);
    }
    Ok(if connected {
        true.into()
    } else {
        am::badarg.term()
    })
}

/// The process works for a port until what this gives is dropped: `msacc` and `system_profile` count that as the port's.
fn begin_call(p: &Process) -> (msacc::Within, Option<sysprof::PortCall<'_>>) {
    (
        msacc::within(msacc::State::Port),
        sysprof::begin_port_call(p),
    )
}

/// The BIF of this name, with three arguments, uses the port: profiles show the time of a driver in C as its own.
fn note_driver_call(p: &Process, port: &Port, name: &str) {
    native_functions::note_driver_call(p, || {
        port.is_linked().then(|| Mfa {
            module: am::erts_internal,
            function: Atom::new(name),
            arity: 3,
        })
    });
}

/// Whether a call of this port has no effect outside that a replay were to repeat: the port is a socket, or there is none.
fn is_of_socket(port: Term<'_>) -> bool {
    port_of(port).is_none_or(|port| port.is_socket())
}

/// What drivers give is a list of bytes, or a binary.
fn port_control_3<'p>(p: &'p Process, [port, command, data]: [Term<'p>; 3]) -> BifResult<'p> {
    let command = command.as_small().and_then(|n| u32::try_from(n).ok());
    let (Some(port), Some(command), Ok(data)) = (port_of(port), command, iolist::to_vec(data))
    else {
        return Ok(am::badarg.term());
    };
    note_driver_call(p, &port, "port_control");
    let _call = begin_call(p);
    let traced = port.traced();
    let done = traced.control(p.pid(), (command, &data), || {
        port.control(p.pid(), command, &data)
    });
    Ok(match done {
        Some((answer, true)) => p.binary(&answer),
        Some((answer, false)) => p.byte_list(&answer),
        None => am::badarg.term(),
    })
}

/// What drivers in C get and give is in the external format.
fn port_call_3<'p>(p: &'p Process, [port, operation, data]: [Term<'p>; 3]) -> BifResult<'p> {
    let operation = operation.as_u64().and_then(|n| u32::try_from(n).ok());
    let (Some(port), Some(operation)) = (port_of(port), operation) else {
        return Ok(am::badarg.term());
    };
    let Ok(mut data) = encode(data, EncodeOptions::default()) else {
        return Ok(am::badarg.term());
    };
    note_driver_call(p, &port, "port_call");
    let _call = begin_call(p);
    let traced = port.traced();
    let order = (operation, &mut data[..]);
    let done = traced.call(p.pid(), order, port.takes_calls(), |data| {
        port.call(p.pid(), operation, data)
    });
    let answer = done.and_then(|answer| decode(p, &answer, DecodeOptions::default()).ok());
    Ok(match answer {
        Some((answer, _)) => p.tuple(&[am::ok.term(), answer]),
        None => am::badarg.term(),
    })
}

/// Items of `port_info/1`, behind the registered name.
const INFO_ITEMS: &[&str] = &[
    "name",
    "links",
    "id",
    "connected",
    "input",
    "output",
    "os_pid",
];

fn port_info_1<'p>(p: &'p Process, [port]: [Term<'p>; 1]) -> BifResult<'p> {
    let Some(found) = port_of(port) else {
        return Ok(no_port(port).unwrap_or(am::badarg.term()));
    };
    found.traced().ran(am::info);
    let name = info(p, &found, "registered_name").filter(|name| !name.is_nil());
    let others = INFO_ITEMS.iter().filter_map(|item| info(p, &found, item));
    let items: Vec<Term<'p>> = name.into_iter().chain(others).collect();
    Ok(p.list(&items))
}

fn port_info_2<'p>(p: &'p Process, [port, item]: [Term<'p>; 2]) -> BifResult<'p> {
    let Some(found) = port_of(port) else {
        return Ok(no_port(port).unwrap_or(am::badtype.term()));
    };
    found.traced().ran(am::info);
    let item = item.as_atom().and_then(|item| info(p, &found, item.name()));
    Ok(item.unwrap_or(am::badarg.term()))
}

/// The answer for a port that is not open; `None` for what is no port at all, or one of another node.
fn no_port(port: Term<'_>) -> Option<Term<'static>> {
    let was_port = match port.view() {
        View::Port(_) | View::Atom(_) => true,
        View::External(other) => other.kind() == tag::EXTERNAL_PORT && is_of_old_incarnation(port),
        _ => false,
    };
    was_port.then(|| am::undefined.term())
}

/// The index of a port's slot, as ERTS lays out a table of this size: neighbours in different lines.
fn slot(id: PortId) -> u64 {
    let lines = table().limit() as u64 / 8;
    (id.0 % lines) * 8 + (id.0 / lines) % 8
}

/// Bytes that a port's driver has taken and not given on.
fn queued_bytes(state: &State) -> usize {
    match &state.linked {
        Some(linked) => linked.queued_bytes(),
        None => state.queued_bytes,
    }
}

/// `{Item, Value}`; `None` for an item that there is not.
fn info<'p>(p: &'p Process, port: &Port, item: &str) -> Option<Term<'p>> {
    let state = port.state.lock();
    let linked = state.linked.as_ref();
    let value = match item {
        "registered_name" => match registry::name_of(Named::Port(port.id)) {
            Some(name) => name.term(),
            None => return Some(Term::NIL),
        },
        "name" => crate::value::file_name::name_of_native(p, &state.name)
            .unwrap_or_else(|()| p.byte_list(&state.name)),
        "links" => {
            let links: Vec<Term<'p>> = state.links.iter().map(|peer| peer.term(p)).collect();
            p.list(&links)
        }
        "id" => p.unsigned(slot(port.id)),
        "connected" => state.owner.term(),
        "input" => p.unsigned(state.input_bytes),
        "output" => p.unsigned(state.output_bytes),
        "os_pid" => match state.os_pid {
            Some(pid) => Term::small(pid.into()),
            None => am::undefined.term(),
        },
        "parallelism" => state.parallelism.into(),
        "queue_size" => p.unsigned(queued_bytes(&state) as u64),
        "memory" => p.unsigned((size_of::<Port>() + queued_bytes(&state)) as u64),
        "locking" => match linked.is_some_and(|linked| linked.is_locked_as_driver()) {
            true => atom("driver_level"),
            false => atom("port_level"),
        },
        "monitors" => {
            let monitored = linked.map_or_else(Vec::new, |linked| linked.monitored());
            let rows = monitored
                .iter()
                .map(|pid| p.tuple(&[am::process.term(), pid.term()]));
            p.list(&rows.collect::<Vec<_>>())
        }
        "monitored_by" => {
            let by = state.monitors.iter();
            let by: Vec<Term<'p>> = by.map(|(_, pid)| pid.term()).collect();
            p.list(&by)
        }
        _ => return None,
    };
    Some(p.tuple(&[atom(item), value]))
}

fn port_set_data_2<'p>(p: &'p Process, [port, data]: [Term<'p>; 2]) -> BifResult<'p> {
    static SETS: Native = Native::new("erlang", "port_set_data", 2);
    let is_set = answer::decided(p, &SETS, || {
        let port = port_of(port);
        if let Some(port) = &port {
            port.state.lock().data = Message::copy_of(data);
        }
        port.is_some()
    });
    is_set.then(|| true.into()).ok_or_else(|| badarg().into())
}

fn port_get_data_1<'p>(p: &'p Process, [port]: [Term<'p>; 1]) -> BifResult<'p> {
    static GETS: Native = Native::new("erlang", "port_get_data", 1);
    let data = answer::found(p, &GETS, || {
        let port = port_of(port)?;
        let state = port.state.lock();
        Some(p.copy_in(state.data.term()))
    });
    data.ok_or_else(|| badarg().into())
}

fn ports_0<'p>(p: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    let ports = crate::port::all();
    let ports: Vec<Term<'p>> = ports.iter().map(|port| port.term()).collect();
    Ok(p.list(&ports))
}
