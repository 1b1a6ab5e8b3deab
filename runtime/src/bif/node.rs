//! The BIFs that tell of nodes: this one, those that it is connected to, and those that terms name.

use super::{BifResult, Control, GuardResult, Raise, badarg, badopt, bifs};
use crate::code::entry::export;
use crate::dist::entry::DistEntry;
use crate::heap::Node;
use crate::process::Process;
use crate::term::counted::{is_alive, node_name};
use crate::term::{Atom, Term, View, am, tag};
use crate::value::map;

bifs! {
    all own;
    ubif erlang:"node"/0 => node_0;
    ubif erlang:"node"/1 => node_1;
    bif erlang:"nodes"/0 => nodes_0;
    bif erlang:"nodes"/1 => nodes_1;
    bif erlang:"nodes"/2 => nodes_2;
    bif erlang:"monitor_node"/2 => monitor_node_2;
    bif erlang:"monitor_node"/3 => monitor_node_3;
}

fn node_0<'p>(_: &'p Process, []: [Term<'p>; 0]) -> GuardResult<'p> {
    Ok(node_name().term())
}

fn node_1<'p>(_: &'p Process, [thing]: [Term<'p>; 1]) -> GuardResult<'p> {
    match thing.view() {
        View::Pid(_) | View::Port(_) | View::Ref(_) => Ok(node_name().term()),
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

/// A node, what it is, and the number of its connection where it is connected.
type Known = (Atom, Atom, Option<u32>);

/// Kinds of nodes that are asked for.
#[derive(Default)]
struct Kinds {
    this: bool,
    visible: bool,
    hidden: bool,
    known: bool,
}

impl Kinds {
    /// A kind, or a list of kinds.
    fn of(term: Term<'_>) -> Result<Kinds, Raise<'static>> {
        let mut kinds = Kinds::default();
        if let Some(kind) = term.as_atom() {
            kinds.add(kind)?;
            return Ok(kinds);
        }
        for kind in term.list_iter() {
            let kind = kind.ok().and_then(Term::as_atom).ok_or_else(badarg)?;
            kinds.add(kind)?;
        }
        Ok(kinds)
    }

    fn add(&mut self, kind: Atom) -> Result<(), Raise<'static>> {
        match kind {
            am::this => self.this = true,
            am::known => {
                *self = Kinds {
                    this: true,
                    visible: true,
                    hidden: true,
                    known: true,
                }
            }
            am::visible => self.visible = true,
            am::hidden => self.hidden = true,
            am::connected => (self.visible, self.hidden) = (true, true),
            _ => return Err(badarg()),
        }
        Ok(())
    }

    /// The nodes of these kinds.
    fn nodes(&self) -> Vec<Known> {
        let mut found: Vec<Known> = Vec::new();
        let this = node_name();
        found.extend(self.this.then_some((this, am::this, None)));
        let mut others: Vec<Atom> = Vec::new();
        for entry in DistEntry::all() {
            let Some(is_visible) = entry.visibility() else {
                continue;
            };
            others.push(entry.name);
            let (wanted, kind) = match is_visible {
                true => (self.visible, am::visible),
                false => (self.hidden, am::hidden),
            };
            found.extend(wanted.then(|| (entry.name, kind, Some(entry.connection()))));
        }
        if self.known {
            let named = Node::all_names().into_iter();
            let named = named.filter(|name| *name != this && !others.contains(name));
            found.extend(named.map(|name| (name, am::known, None)));
        }
        found
    }
}

fn nodes_0<'p>(p: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    nodes_1(p, [am::visible.term()])
}

fn nodes_1<'p>(p: &'p Process, [kinds]: [Term<'p>; 1]) -> BifResult<'p> {
    let nodes = Kinds::of(kinds)?.nodes();
    let names: Vec<Term<'p>> = nodes.iter().map(|(name, ..)| name.term()).collect();
    Ok(p.list(&names))
}

/// Nodes that are not connected have no connection's number.
fn nodes_2<'p>(p: &'p Process, [kinds, options]: [Term<'p>; 2]) -> BifResult<'p> {
    let nodes = Kinds::of(kinds)?.nodes();
    let options = options.as_map().ok_or_else(badarg)?;
    let mut wanted = [false; 2];
    for (key, value) in options.iter() {
        let place = INFO.iter().position(|known| key == *known);
        wanted[place.ok_or_else(badarg)?] = value.as_bool().ok_or_else(badarg)?;
    }
    let row = |(name, kind, connection): Known| {
        let connection = connection.map(|number| Term::small(number.into()));
        let values = [connection.unwrap_or(am::undefined.term()), kind.term()];
        let pairs = INFO.into_iter().zip(values).zip(wanted);
        let pairs = pairs.filter(|(_, wanted)| *wanted);
        let pairs: Vec<_> = pairs.map(|((key, value), _)| (key.term(), value)).collect();
        p.tuple(&[name.term(), map::from_pairs(p, &pairs)])
    };
    let rows: Vec<Term<'p>> = nodes.into_iter().map(row).collect();
    Ok(p.list(&rows))
}

/// What `nodes/2` tells of a node where it is asked for.
const INFO: [Atom; 2] = [am::connection_id, am::node_type];

fn monitor_node_2<'p>(p: &'p Process, [node, on]: [Term<'p>; 2]) -> BifResult<'p> {
    monitor_node_3(p, [node, on, Term::NIL])
}

/// This node is always there. Another one is connected to first, in Erlang. Source: `monitor_node()` in `dist.c`.
fn monitor_node_3<'p>(p: &'p Process, [node, on, options]: [Term<'p>; 3]) -> BifResult<'p> {
    let known = |option: Term<'_>| option == am::allow_passive_connect;
    if !options.list_iter().all(|option| option.is_ok_and(known)) {
        return Err(badopt().into());
    }
    let name = node.as_atom().ok_or_else(badarg)?;
    if !is_alive() && name != node_name() {
        return Err(am::notalive.into());
    }
    let is_on = on.as_bool().ok_or_else(badarg)?;
    if name == node_name() {
        return Ok(Term::bool(true));
    }
    if !is_on {
        if let Some(entry) = DistEntry::find(name) {
            entry.demonitor_node(p.pid());
        }
        return Ok(Term::bool(true));
    }
    let entry = DistEntry::of(name);
    if entry.monitor_node(p.pid(), options.is_nil()) {
        return Ok(Term::bool(true));
    }
    let connect = export(am::erlang, am::dmonitor_node, 3);
    Err(Control::Trap(connect, vec![node, on, options]).into())
}
