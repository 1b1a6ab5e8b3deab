//! The BIFs by which OTP's modules set connections up, and carriers move what goes over them. Source: `dist.c`, OTP 29.

use std::sync::Arc;

use super::{BifResult, Raise, badarg, bifs, notsup};
use crate::dist::capabilities;
use crate::dist::entry::DistEntry;
use crate::dist::this_node::{Refused, is_node_name, set_name};
use crate::dist::{self, HEAD_ROOM};
use crate::heap::SharedBytes;
use crate::port::Port;
use crate::process::refs::make_ref;
use crate::process::watcher::{WatchedBy, Watcher, watch};
use crate::process::{Process, logger};
use crate::sys::stderr::complain;
use crate::term::counted::{node_name, this_node};
use crate::term::{Pid, Term, View, am, tag};
use crate::trace::record;
use crate::value::iolist;

bifs! {
    all own;
    bif erlang:"setnode"/2 => setnode_2;
    bif erts_internal:"get_dflags"/0 => get_dflags_0;
    bif erts_internal:"get_creation"/0 => get_creation_0;
    bif erts_internal:"new_connection"/1 => new_connection_1;
    bif erts_internal:"abort_pending_connection"/2 => abort_pending_connection_2;
    bif erts_internal:"create_dist_channel"/3 => create_dist_channel_3;
    bif erlang:"dist_ctrl_get_data"/1 => dist_ctrl_get_data_1;
    bif erlang:"dist_ctrl_get_data_notification"/1 => dist_ctrl_get_data_notification_1;
    bif erlang:"dist_ctrl_get_opt"/2 => dist_ctrl_get_opt_2;
    bif erlang:"dist_ctrl_set_opt"/3 => dist_ctrl_set_opt_3;
    bif erlang:"dist_ctrl_input_handler"/2 => dist_ctrl_input_handler_2;
    bif erlang:"dist_ctrl_put_data"/2 => dist_ctrl_put_data_2;
    bif erlang:"dist_get_stat"/1 => dist_get_stat_1;
    bif net_kernel:"dflag_unicode_io"/1 => dflag_unicode_io_1;
}

/// Gives this node its name.
fn setnode_2<'p>(_: &'p Process, [name, creation]: [Term<'p>; 2]) -> BifResult<'p> {
    let name = name.as_atom().ok_or_else(badarg)?;
    let creation = creation.as_u64().and_then(|it| u32::try_from(it).ok());
    match set_name(name, creation.ok_or_else(badarg)?) {
        Ok(()) => Ok(Term::bool(true)),
        Err(Refused::BadName) => Err(badarg().into()),
        Err(Refused::Ordered) => {
            // The node ends for want of a name before it has a logger.
            complain!(
                "beamline: a node whose order of messages is recorded, replayed or explored talks to no other: leave out -name and -sname"
            );
            Err(notsup().into())
        }
    }
}

fn get_dflags_0<'p>(p: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    let sets = [
        capabilities::DEFAULT,
        capabilities::MANDATORY,
        capabilities::DEFAULT,
        capabilities::REJECTABLE,
        capabilities::STRICT_ORDER,
    ];
    let mut elements = vec![am::erts_dflags.term()];
    elements.extend(sets.map(|set| p.unsigned(set)));
    Ok(p.tuple(&elements))
}

fn get_creation_0<'p>(p: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    Ok(match this_node() {
        (_, 0) => am::undefined.term(),
        (_, creation) => p.unsigned(creation.into()),
    })
}

/// The handle of the connection to a node, which is to be made where there is none.
fn new_connection_1<'p>(p: &'p Process, [name]: [Term<'p>; 1]) -> BifResult<'p> {
    let name = name.as_atom().ok_or_else(badarg)?;
    if !is_node_name(name) || name == node_name() || name == am::nonode_at_nohost {
        return Err(badarg().into());
    }
    let entry = DistEntry::of(name);
    let connection = entry.prepare_connection();
    Ok(entry.handle(p, connection))
}

fn abort_pending_connection_2<'p>(_: &'p Process, [name, handle]: [Term<'p>; 2]) -> BifResult<'p> {
    let name = name.as_atom().ok_or_else(badarg)?;
    let (entry, connection) = DistEntry::of_handle(handle).ok_or_else(badarg)?;
    if entry.name != name {
        return Err(badarg().into());
    }
    let was_connected = entry.abort(connection);
    Ok(Term::bool(!was_connected))
}

/// The connection stands, and is controlled by a port or process.
fn create_dist_channel_3<'p>(
    p: &'p Process,
    [name, controller, options]: [Term<'p>; 3],
) -> BifResult<'p> {
    let refused = Ok(am::badarg.term());
    let given = options.as_tuple().map(|options| options.elements());
    let (Some(name), Some([set, creation])) = (name.as_atom(), given) else {
        return refused;
    };
    let creation = creation.as_u64().and_then(|it| u32::try_from(it).ok());
    let (Some(set), Some(creation)) = (set.as_u64(), creation) else {
        return refused;
    };
    if !is_node_name(name) || name == node_name() {
        return refused;
    }
    if set & capabilities::MANDATORY != capabilities::MANDATORY {
        let text = format!(
            "{} attempted to enable connection to node {} which does not support all mandatory capabilities.\n",
            p.pid().term().display(),
            name.term().display(),
        );
        logger::log_error(p, "~s", p.list(&[p.string(&text)]));
        return refused;
    }
    let entry = DistEntry::of(name);
    let number = match controller.view() {
        View::Pid(pid) => controlled_by_process(&entry, pid, set, p.pid()),
        View::Port(id) => {
            let port = Port::lookup(id);
            port.and_then(|port| port.control_connection(&entry, set, p.pid()))
        }
        _ => None,
    };
    let Some(number) = number else {
        return refused;
    };
    entry.set_creation(number, creation);
    record::dist::connected(number, name, creation);
    Ok(p.tuple(&[am::ok.term(), entry.handle(p, number)]))
}

/// The connection ends with the process that controls it.
fn controlled_by_process(entry: &DistEntry, pid: Pid, set: u64, setup: Pid) -> Option<u32> {
    let number = entry.connect(pid.into(), set, setup)?;
    let name = entry.name;
    let told = move |reason: Term<'_>| {
        if let Some(entry) = DistEntry::find(name) {
            entry.disconnected(number, reason);
        }
    };
    let (told, by) = (Box::new(told), WatchedBy::Runtime);
    if !watch(pid, make_ref(), Watcher { told, by }) {
        entry.disconnected(number, am::noproc.term());
        return None;
    }
    Some(number)
}

/// The connection of this handle, where this process controls it.
fn controlled<'p>(p: &Process, handle: Term<'p>) -> Result<(Arc<DistEntry>, u32), Raise<'static>> {
    let (entry, number) = DistEntry::of_handle(handle).ok_or_else(notsup)?;
    if entry.controller().and_then(|it| it.pid()) != Some(p.pid()) {
        return Err(notsup());
    }
    if entry.connection() != number {
        return Err(badarg());
    }
    Ok((entry, number))
}

fn dist_ctrl_get_data_1<'p>(p: &'p Process, [handle]: [Term<'p>; 1]) -> BifResult<'p> {
    let (entry, number) = controlled(p, handle)?;
    let Some(packet) = entry.take_packet(number) else {
        return Ok(am::none.term());
    };
    let size = Term::small(packet.len() as i64);
    let head_bytes = packet.head.len();
    let head = p.shared_part(&SharedBytes::from_vec(packet.head), HEAD_ROOM..head_bytes);
    let body = packet.body.into_iter();
    let body = body.map(|(bytes, range)| p.shared_part(&bytes, range));
    let data = p.list(&std::iter::once(head).chain(body).collect::<Vec<_>>());
    if entry.gives_size() {
        return Ok(p.tuple(&[size, data]));
    }
    Ok(data)
}

fn dist_ctrl_get_data_notification_1<'p>(p: &'p Process, [handle]: [Term<'p>; 1]) -> BifResult<'p> {
    let (entry, _) = controlled(p, handle)?;
    entry.ask_for_data(p.pid());
    Ok(am::ok.term())
}

fn dist_ctrl_get_opt_2<'p>(p: &'p Process, [handle, option]: [Term<'p>; 2]) -> BifResult<'p> {
    let (entry, _) = controlled(p, handle)?;
    if option != am::get_size {
        return Err(badarg().into());
    }
    Ok(Term::bool(entry.gives_size()))
}

fn dist_ctrl_set_opt_3<'p>(
    p: &'p Process,
    [handle, option, value]: [Term<'p>; 3],
) -> BifResult<'p> {
    let (entry, _) = controlled(p, handle)?;
    let value = value.as_bool().filter(|_| option == am::get_size);
    Ok(Term::bool(entry.set_gives_size(value.ok_or_else(badarg)?)))
}

fn dist_ctrl_input_handler_2<'p>(p: &'p Process, [handle, pid]: [Term<'p>; 2]) -> BifResult<'p> {
    let (entry, _) = controlled(p, handle)?;
    entry.set_input_handler(super::process::local_pid(pid)?);
    Ok(am::ok.term())
}

/// Takes a packet that has come. What is no message ends the process that controls the connection.
fn dist_ctrl_put_data_2<'p>(p: &'p Process, [handle, data]: [Term<'p>; 2]) -> BifResult<'p> {
    let (entry, number) = DistEntry::of_handle(handle).ok_or_else(badarg)?;
    if entry.input_handler() != Some(p.pid()) {
        return Err(notsup().into());
    }
    let data = iolist::to_vec(data).map_err(|_| badarg())?;
    p.bump_reds(5);
    if dist::receive(&entry, number, &data).is_err() {
        entry.end_controller(am::killed);
    }
    Ok(am::ok.term())
}

fn dist_get_stat_1<'p>(p: &'p Process, [handle]: [Term<'p>; 1]) -> BifResult<'p> {
    let (entry, number) = DistEntry::of_handle(handle).ok_or_else(badarg)?;
    if entry.connection() != number {
        return Err(badarg().into());
    }
    let (received, sent, queued) = entry.statistics();
    let numbers = [received, sent, queued as u64].map(|number| p.unsigned(number));
    let [received, sent, queued] = numbers;
    Ok(p.tuple(&[am::ok.term(), received, sent, queued]))
}

/// Does the node of this pid take Unicode in I/O requests?
fn dflag_unicode_io_1<'p>(_p: &'p Process, [pid]: [Term<'p>; 1]) -> BifResult<'p> {
    match pid.view() {
        View::Pid(_) => Ok(Term::bool(true)),
        View::External(it) if it.kind() == tag::EXTERNAL_PID => {
            let entry = DistEntry::find(it.node().name);
            let is_able = entry.is_some_and(|entry| entry.is_able(capabilities::UNICODE_IO));
            Ok(Term::bool(is_able))
        }
        _ => Err(badarg().into()),
    }
}
