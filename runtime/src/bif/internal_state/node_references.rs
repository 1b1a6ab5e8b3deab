//! Counts what refers to each node and to each entry of the distribution, and tells it beside the counts that nodes have of
//! themselves, for OTP's test suites to compare. Other schedulers stand still meanwhile.
//! Source: `erts_get_node_and_dist_references()` in `erl_node_tables.c`, OTP 29.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::super::ets_select::Compiled;
use super::super::{Next, persistent_term};
use crate::dist::entry::DistEntry;
use crate::dist::this_node::net_kernel;
use crate::ets::registry::{self, TableRef};
use crate::heap::{Counted, MagicBinary, Message, Node};
use crate::port;
use crate::process::references::{Alone, Reference, Referring};
use crate::process::user_timers::{self, Receiver};
use crate::process::{Peer, Process};
use crate::sched::ptab::pin;
use crate::term::counted::{is_alive, this_node};
use crate::term::{Atom, Pid, Port, Term, am};

/// What refers to a node or an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Referrer {
    System(Atom),
    Process(Pid),
    /// A process that a timer knows by its name.
    Named(Atom),
    Port(Port),
    /// A table, by its place among all.
    Table(usize),
    /// A compiled match specification, by its address.
    MatchSpec(usize),
    /// Signals that wait for the connection to a node.
    Pending(Atom),
    /// An incarnation of the node that an entry is of.
    Node(Atom, u32),
}

/// The count that there is, and the references that were found.
#[derive(Default)]
struct References {
    count: usize,
    found: BTreeMap<Referrer, BTreeMap<Reference, usize>>,
}

impl References {
    fn find(&mut self, referrer: Referrer, how: Reference) {
        let of_referrer = self.found.entry(referrer).or_default();
        *of_referrer.entry(how).or_default() += 1;
    }

    /// Finds a reference that has no count of its own: a name.
    fn find_by_name(&mut self, referrer: Referrer, how: Reference) {
        self.count += 1;
        self.find(referrer, how);
    }

    fn term<'p>(&self, p: &'p Process, tables: &[TableRef]) -> Term<'p> {
        let rows = self.found.iter().map(|(referrer, found)| {
            let found = found
                .iter()
                .map(|(how, count)| p.tuple(&[how.term(), p.unsigned(*count as u64)]));
            let found = p.list(&found.collect::<Vec<_>>());
            p.tuple(&[referrer.term(p, tables), found])
        });
        p.list(&rows.collect::<Vec<_>>())
    }
}

impl Reference {
    fn term(self) -> Term<'static> {
        let name = match self {
            Reference::Signal => "signal",
            Reference::System => "system",
            Reference::Timer => "timer",
            Reference::Binary => "binary",
            Reference::Ets => "ets",
            Reference::Monitor => "monitor",
            Reference::Link => "link",
            Reference::Heap => "heap",
            Reference::Control => "control",
            Reference::Node => "node",
        };
        Atom::new(name).term()
    }
}

impl Referrer {
    fn term<'p>(self, p: &'p Process, tables: &[TableRef]) -> Term<'p> {
        let (kind, which) = match self {
            Referrer::System(part) => ("system", part.term()),
            Referrer::Process(pid) => ("process", pid.term()),
            Referrer::Named(name) => ("process", name.term()),
            Referrer::Port(port) => ("port", port.term()),
            Referrer::Table(place) => ("ets", registry::term_of(p, &tables[place])),
            Referrer::MatchSpec(address) => ("match_spec", p.unsigned(address as u64)),
            Referrer::Pending(name) => ("dist", name.term()),
            Referrer::Node(name, creation) => {
                let node = [name.term(), p.unsigned(creation.into())];
                ("node", p.tuple(&node))
            }
        };
        p.tuple(&[Atom::new(kind).term(), which])
    }
}

/// All references.
#[derive(Default)]
struct Found {
    nodes: BTreeMap<(Atom, u32), References>,
    entries: BTreeMap<Atom, References>,
    tables: Vec<TableRef>,
    /// What has been looked into, by its address: compiled match specifications, shared terms.
    seen: BTreeSet<usize>,
}

/// Answers `node_and_dist_references`, if `x(0)` is that.
pub(super) fn answer(p: &mut Process) -> Option<Next> {
    (p.x(0) == Atom::new("node_and_dist_references")).then(|| {
        let Some(found) = Alone::block(p).map(|alone| Found::of(&alone)) else {
            return Next::Again;
        };
        p.set_x(0, found.term(p));
        Next::Return
    })
}

impl Found {
    /// What there is, while one process alone runs.
    fn of(alone: &Alone<'_>) -> Found {
        let mut found = Found::default();
        found.take_counts();
        found.see_this_node();
        alone.show_references(&mut |pid, how, what| {
            found.see(Referrer::Process(pid), how, what);
        });
        found.see_ports();
        found.see_tables();
        found.see_rest();
        found
    }

    /// The counts that nodes and handles have of themselves, and the names by which nodes refer to their entries.
    fn take_counts(&mut self) {
        for (node, count) in Node::all() {
            self.nodes.entry(node).or_default().count += count;
        }
        for entry in DistEntry::all() {
            let handles = entry.handles();
            if handles > 0 {
                self.entries.entry(entry.name).or_default().count += handles;
            }
            if let Some(controller) = entry.controller() {
                let by = controller.pid().map(Referrer::Process);
                let by = by.or(controller.port().map(Referrer::Port));
                self.entry_by_name(entry.name, by, Reference::Control);
            }
        }
    }

    fn entry_by_name(&mut self, name: Atom, by: Option<Referrer>, how: Reference) {
        if let Some(by) = by {
            self.entries.entry(name).or_default().find_by_name(by, how);
        }
    }

    fn see_this_node(&mut self) {
        let this = this_node();
        let system = Referrer::System(am::undefined);
        let of_node = self.nodes.entry(this).or_default();
        of_node.find_by_name(system, Reference::System);
        self.entry_by_name(this.0, Some(system), Reference::System);
        let kernel = net_kernel().filter(|_| is_alive());
        self.entry_by_name(this.0, kernel.map(Referrer::Process), Reference::Control);
    }

    fn see_ports(&mut self) {
        let guard = pin();
        for port in port::table().iter(&guard) {
            let referrer = Referrer::Port(port.id);
            self.see_message(referrer, Reference::Heap, &port.state.lock().data);
        }
    }

    fn see_tables(&mut self) {
        registry::each(&mut |table, reference| {
            let referrer = Referrer::Table(self.tables.len());
            self.tables.push(Arc::clone(reference));
            table.each_counted(&mut |it| self.see_counted(referrer, Reference::Ets, it));
        });
    }

    /// Timers, persistent terms, and what waits for connections.
    fn see_rest(&mut self) {
        user_timers::each(&mut |receiver, message| {
            let referrer = match receiver {
                Receiver::Pid(pid) => Referrer::Process(pid),
                Receiver::Name(name) => Referrer::Named(name),
            };
            self.see_message(referrer, Reference::Timer, message);
        });
        let referrer = Referrer::System(Atom::new("persistent_term"));
        persistent_term::each_counted(&mut |it| {
            self.see_counted(referrer, Reference::System, it);
        });
        for entry in DistEntry::all() {
            let referrer = Referrer::Pending(entry.name);
            entry.each_pending(&mut |term| self.see_message(referrer, Reference::System, term));
        }
    }

    fn see(&mut self, referrer: Referrer, how: Reference, what: Referring<'_>) {
        match what {
            Referring::Thing(counted) => self.see_counted(referrer, how, counted),
            Referring::Peer(peer) => self.see_peer(referrer, how, peer),
            Referring::Shared(term) => {
                if self.seen.insert(Arc::as_ptr(term) as usize) {
                    self.see_message(referrer, how, term);
                }
            }
        }
    }

    fn see_peer(&mut self, referrer: Referrer, how: Reference, peer: Peer) {
        if let Some(node) = peer.node_of() {
            self.nodes
                .entry(node)
                .or_default()
                .find_by_name(referrer, how);
        }
    }

    fn see_message(&mut self, referrer: Referrer, how: Reference, message: &Message) {
        message
            .counted()
            .for_each(|it| self.see_counted(referrer, how, it));
    }

    fn see_counted(&mut self, referrer: Referrer, how: Reference, counted: Counted<'_>) {
        match counted {
            Counted::Binary(_) => {}
            Counted::Node(node) => {
                let of_node = self.nodes.entry((node.name, node.creation)).or_default();
                of_node.find(referrer, how);
            }
            Counted::Magic(magic) => self.see_magic(referrer, how, magic),
        }
    }

    fn see_magic(&mut self, referrer: Referrer, how: Reference, magic: &MagicBinary) {
        if let Some(name) = DistEntry::name_in_handle(magic) {
            self.entries.entry(name).or_default().find(referrer, how);
            return;
        }
        let Some(compiled) = Compiled::of(magic) else {
            return;
        };
        let address = Arc::as_ptr(compiled) as usize;
        if self.seen.insert(address) {
            let program = Referrer::MatchSpec(address);
            compiled.each_constant(&mut |term| self.see_message(program, Reference::Binary, term));
        }
    }

    /// `{{node_references, [{{Name, Creation}, Count, References}]}, {dist_references, [{Name, Count, References}]}}`
    fn term<'p>(mut self, p: &'p Process) -> Term<'p> {
        let incarnations: Vec<(Atom, u32)> = self.nodes.keys().copied().collect();
        for (name, creation) in incarnations {
            let node = Referrer::Node(name, creation);
            self.entry_by_name(name, Some(node), Reference::Node);
        }
        let row = |of: Term<'p>, references: &References| {
            let count = p.unsigned(references.count as u64);
            p.tuple(&[of, count, references.term(p, &self.tables)])
        };
        let nodes = self.nodes.iter().map(|((name, creation), references)| {
            let node = p.tuple(&[name.term(), p.unsigned((*creation).into())]);
            row(node, references)
        });
        let entries = self.entries.iter();
        let entries = entries.map(|(name, references)| row(name.term(), references));
        let list =
            |name: &str, rows: Vec<Term<'p>>| p.tuple(&[Atom::new(name).term(), p.list(&rows)]);
        p.tuple(&[
            list("node_references", nodes.collect()),
            list("dist_references", entries.collect()),
        ])
    }
}
