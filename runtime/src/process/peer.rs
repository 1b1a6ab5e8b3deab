//! Processes and ports of any node, as links, group leaders and parents keep them: without a heap.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::RwLock;

use super::{Process, SYSTEM};
use crate::heap::{Heap, Node};
use crate::term::counted::node_name;
use crate::term::{Atom, Pid, Port, RawTerm, Term, View, tag};

/// The number of an incarnation of another node; 0 is this one.
type NodeNumber = u32;

/// A pid or port of this node, a pid of another one, or a node that speaks for itself, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Peer {
    node: NodeNumber,
    /// Of this node the term; of another one the number of the pid and, above it, its serial.
    word: u64,
}

/// Incarnations of nodes with a process that is or was a peer. They stay: an incarnation takes less than the atom of
/// its name, which stays, too.
struct Incarnations {
    all: Vec<(Atom, u32)>,
    numbers: BTreeMap<(Atom, u32), NodeNumber>,
}

static INCARNATIONS: RwLock<Incarnations> = RwLock::new(Incarnations {
    all: Vec::new(),
    numbers: BTreeMap::new(),
});

/// The number of this incarnation, counted from 1.
fn number_of(node: &Node) -> NodeNumber {
    let key = (node.name, node.creation);
    if let Some(number) = INCARNATIONS.read().numbers.get(&key) {
        return *number;
    }
    let mut incarnations = INCARNATIONS.write();
    let next = incarnations.all.len() as NodeNumber + 1;
    let number = *incarnations.numbers.entry(key).or_insert(next);
    if number == next {
        incarnations.all.push(key);
    }
    number
}

impl Peer {
    /// The peer that a term of this node stands for.
    pub(crate) fn of(term: Term<'_>) -> Option<Peer> {
        let is_peer = matches!(term.view(), View::Pid(_) | View::Port(_));
        is_peer.then(|| Peer {
            node: 0,
            word: term.raw().0,
        })
    }

    /// A node that speaks for itself.
    pub(crate) fn of_node(name: Atom) -> Peer {
        Peer {
            node: 0,
            word: name.term().raw().0,
        }
    }

    /// The process that a pid of this node or of another one stands for. One of an old incarnation of this node is none.
    pub(crate) fn process_of(term: Term<'_>) -> Option<Peer> {
        match term.view() {
            View::Pid(pid) => Some(pid.into()),
            View::External(external)
                if external.kind() == tag::EXTERNAL_PID && external.node().name != node_name() =>
            {
                Some(Peer {
                    node: number_of(external.node()),
                    word: external.data()[0],
                })
            }
            _ => None,
        }
    }

    /// The term, on `heap` where it is of another node: 4 words.
    pub(crate) fn term(self, heap: &Heap) -> Term<'_> {
        match self.node_of() {
            None => Term::immed(RawTerm(self.word)),
            Some((name, creation)) => {
                let node: Arc<Node> = Node::known_as(name, creation);
                heap.external(tag::EXTERNAL_PID, node, &[self.word])
            }
        }
    }

    /// Calls `with` with the term.
    pub(crate) fn with_term<T>(self, with: impl FnOnce(Term<'_>) -> T) -> T {
        with(self.term(&Heap::detached()))
    }

    /// Its node, where that is another one: name and creation.
    pub(crate) fn node_of(self) -> Option<(Atom, u32)> {
        let number = self.node.checked_sub(1)?;
        Some(INCARNATIONS.read().all[number as usize])
    }

    /// The name of its node, where that is another one.
    pub(crate) fn node_name(self) -> Option<Atom> {
        Some(self.node_of()?.0)
    }

    /// Is it of another node?
    pub(crate) fn is_elsewhere(self) -> bool {
        self.node != 0
    }

    fn local(self) -> Option<Term<'static>> {
        (!self.is_elsewhere()).then(|| Term::immed(RawTerm(self.word)))
    }

    /// The process of this node that it is.
    pub(crate) fn pid(self) -> Option<Pid> {
        self.local()?.as_pid()
    }

    /// The port that it is.
    pub(crate) fn port(self) -> Option<Port> {
        self.local()?.as_port()
    }
}

impl From<Pid> for Peer {
    fn from(pid: Pid) -> Peer {
        Peer {
            node: 0,
            word: pid.term().raw().0,
        }
    }
}

impl From<Port> for Peer {
    fn from(port: Port) -> Peer {
        Peer {
            node: 0,
            word: port.term().raw().0,
        }
    }
}

impl Process {
    /// Its group leader.
    pub(crate) fn group_leader(&self) -> Peer {
        match self.group_leader.get() {
            SYSTEM => self.with_psd(|psd| psd.leader_elsewhere).flatten(),
            pid => Some(pid.into()),
        }
        .unwrap_or(SYSTEM.into())
    }

    /// Gives it a group leader.
    pub(crate) fn set_group_leader(&self, leader: Peer) {
        self.group_leader.set(leader.pid().unwrap_or(SYSTEM));
        if leader.is_elsewhere() {
            self.psd().leader_elsewhere = Some(leader);
        }
    }

    /// The process that has started it; itself, if none has.
    pub(crate) fn parent(&self) -> Peer {
        match self.parent.get() {
            SYSTEM => self.with_psd(|psd| psd.parent_elsewhere).flatten(),
            pid => Some(pid.into()),
        }
        .unwrap_or(SYSTEM.into())
    }

    /// Says which process has started it.
    pub(crate) fn set_parent(&self, parent: Peer) {
        self.parent.set(parent.pid().unwrap_or(SYSTEM));
        if parent.is_elsewhere() {
            self.psd().parent_elsewhere = Some(parent);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::term::compare::eq_exact;

    #[test]
    fn a_peer_is_the_term_that_it_was_made_of() {
        let heap = Heap::detached();
        for (name, creation, word) in [
            ("a@peers", 4, 7),
            ("a@peers", 5, 7),
            ("b@peers", 4, 1 << 40),
        ] {
            let node = Node::known_as(Atom::new(name), creation);
            let pid = heap.external(tag::EXTERNAL_PID, node, &[word]);
            let peer = Peer::process_of(pid).expect("a pid");
            assert!(eq_exact(peer.term(&heap), pid) && peer.is_elsewhere());
            assert_eq!(peer.pid(), None);
            assert_eq!(Peer::process_of(peer.term(&heap)), Some(peer));
        }
        let here = Peer::from(Pid(9));
        assert_eq!((here.pid(), here.node_of()), (Some(Pid(9)), None));
        assert_eq!(Peer::of(Port(3).term()).and_then(Peer::port), Some(Port(3)));
    }
}
