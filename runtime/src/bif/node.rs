//! The BIFs of nodes and of distribution. The runtime has no distribution: this node is `nonode@nohost` and knows no
//! other.

use super::{BifResult, GuardResult, Raise, badarg, badopt, bifs, notsup};
use crate::heap::Node;
use crate::process::Process;
use crate::term::{Atom, Term, View, am, tag};
use crate::value::map;

bifs! {
    all own;
    ubif erlang:"node"/0 => node_0;
    ubif erlang:"node"/1 => node_1;
    bif erlang:"nodes"/0 => nodes_0;
    bif erlang:"nodes"/1 => nodes_1;
    bif erlang:"nodes"/2 => nodes_2;
    bif erlang:"setnode"/2 => setnode_2;
    bif erlang:"monitor_node"/2 => monitor_node_2;
    bif erlang:"monitor_node"/3 => monitor_node_3;
    bif erts_internal:"new_connection"/1 => new_connection_1;
    bif erts_internal:"abort_pending_connection"/2 => no_handle;
    bif erts_internal:"create_dist_channel"/3 => create_dist_channel_3;
    bif erlang:"dist_ctrl_get_data"/1 => no_controller;
    bif erlang:"dist_ctrl_get_data_notification"/1 => no_controller;
    bif erlang:"dist_ctrl_get_opt"/2 => no_controller;
    bif erlang:"dist_ctrl_set_opt"/3 => no_controller;
    bif erlang:"dist_ctrl_input_handler"/2 => no_controller;
    bif erlang:"dist_ctrl_put_data"/2 => no_handle;
    bif erlang:"dist_get_stat"/1 => no_handle;
}

fn node_0<'p>(_: &'p Process, []: [Term<'p>; 0]) -> GuardResult<'p> {
    Ok(am::nonode_at_nohost.term())
}

fn node_1<'p>(_: &'p Process, [thing]: [Term<'p>; 1]) -> GuardResult<'p> {
    match thing.view() {
        View::Pid(_) | View::Port(_) | View::Ref(_) => Ok(am::nonode_at_nohost.term()),
        View::External(external) => {
            debug_assert!(
                external.kind() >= tag::EXTERNAL_PID,
                "kinds of external things"
            );
            Ok(external.node().name.term())
        }
        _ => Err(badarg()),
    }
}

fn nodes_0<'p>(_: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    Ok(Term::NIL)
}

/// The nodes of a kind, or of a list of kinds, each with what it is: this one, and those that terms name.
fn nodes(kinds: Term<'_>) -> Result<Vec<(Atom, Atom)>, Raise<'static>> {
    let one = kinds.as_atom().map(Ok);
    let rest = kinds.list_iter().map(|kind| {
        let kind = kind.ok().and_then(Term::as_atom);
        kind.ok_or_else(badarg)
    });
    let (mut this, mut known) = (false, false);
    let rest = one.is_none().then_some(rest);
    for kind in one.into_iter().chain(rest.into_iter().flatten()) {
        match kind? {
            am::this => this = true,
            am::known => (this, known) = (true, true),
            am::visible | am::hidden | am::connected => {}
            _ => return Err(badarg()),
        }
    }
    let own = am::nonode_at_nohost;
    let others = known.then(Node::all_names).unwrap_or_default();
    let others = others.into_iter().filter(|name| *name != own);
    let mut found: Vec<_> = others.map(|name| (name, am::known)).collect();
    found.extend(this.then_some((own, am::this)));
    Ok(found)
}

fn nodes_1<'p>(p: &'p Process, [kinds]: [Term<'p>; 1]) -> BifResult<'p> {
    let names: Vec<Term<'p>> = nodes(kinds)?.iter().map(|(name, _)| name.term()).collect();
    Ok(p.list(&names))
}

/// Nodes that are not connected have no connection's number.
fn nodes_2<'p>(p: &'p Process, [kinds, options]: [Term<'p>; 2]) -> BifResult<'p> {
    let nodes = nodes(kinds)?;
    let options = options.as_map().ok_or_else(badarg)?;
    let mut wanted = [false; 2];
    for (key, value) in options.iter() {
        let place = INFO.iter().position(|known| key == *known);
        wanted[place.ok_or_else(badarg)?] = value.as_bool().ok_or_else(badarg)?;
    }
    let row = |(name, kind): (Atom, Atom)| {
        let values = [am::undefined, kind];
        let pairs = INFO.into_iter().zip(values).zip(wanted);
        let pairs = pairs.filter(|(_, wanted)| *wanted);
        let pairs: Vec<_> = pairs
            .map(|((key, value), _)| (key.term(), value.term()))
            .collect();
        p.tuple(&[name.term(), map::from_pairs(p, &pairs)])
    };
    let rows: Vec<Term<'p>> = nodes.into_iter().map(row).collect();
    Ok(p.list(&rows))
}

/// What `nodes/2` tells of a node where it is asked for.
const INFO: [Atom; 2] = [am::connection_id, am::node_type];

/// Refused: no node can be connected to. What is no name of another node is an error of the caller's.
fn new_connection_1<'p>(_: &'p Process, [node]: [Term<'p>; 1]) -> BifResult<'p> {
    let name = node.as_atom().ok_or_else(badarg)?;
    let is_node = name.name().split_once('@').is_some_and(|(alive, host)| {
        !alive.is_empty() && !host.is_empty() && name != am::nonode_at_nohost
    });
    Err(if is_node {
        notsup().into()
    } else {
        badarg().into()
    })
}

/// `badarg`, as by an OTP without `net_kernel`.
fn create_dist_channel_3<'p>(_: &'p Process, _: [Term<'p>; 3]) -> BifResult<'p> {
    Ok(am::badarg.term())
}

/// No process controls a connection.
fn no_controller<'p, const N: usize>(_: &'p Process, _: [Term<'p>; N]) -> BifResult<'p> {
    Err(notsup().into())
}

/// No term is the handle of a connection.
fn no_handle<'p, const N: usize>(_: &'p Process, _: [Term<'p>; N]) -> BifResult<'p> {
    Err(badarg().into())
}

fn setnode_2<'p>(_: &'p Process, _: [Term<'p>; 2]) -> BifResult<'p> {
    Err(notsup().into())
}

fn monitor_node_2<'p>(p: &'p Process, [node, on]: [Term<'p>; 2]) -> BifResult<'p> {
    monitor_node_3(p, [node, on, Term::NIL])
}

/// This node is always there; others cannot be asked for. Source: `monitor_node()` in `dist.c`.
fn monitor_node_3<'p>(_: &'p Process, [node, on, options]: [Term<'p>; 3]) -> BifResult<'p> {
    let known = |option: Term<'_>| option.same(crate::term::atom::atom("allow_passive_connect"));
    let mut options = options.list_iter();
    if !options.all(|option| option.is_ok_and(known)) {
        return Err(badopt().into());
    }
    let node = node.as_atom().ok_or_else(badarg)?;
    if node != am::nonode_at_nohost {
        return Err(am::notalive.into());
    }
    on.as_bool().ok_or_else(badarg)?;
    Ok(Term::bool(true))
}
