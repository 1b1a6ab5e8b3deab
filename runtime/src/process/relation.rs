//! The relations of a process to others: links, monitors, aliases.
//!
//! Source: `erl_monitor_link.c`, OTP 29.

use std::cell::RefMut;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use super::nodes::RemoteProcess;
use super::options::SpawnRequest;
use super::refs::RefNumbers;
use super::small_map::Few;
use super::suspension::Suspending;
use super::watcher::Watcher;
use super::{Peer, Process};
use crate::heap::Message;
use crate::term::compare::eq_exact;
use crate::term::{Atom, Pid, Port, Term, am};

/// The target of a monitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Monitored {
    /// A process, by its pid.
    Process(Pid),
    /// A process that had a name of `node` when it was asked for; what it was then, if it was.
    Name(Atom, Atom, Option<Pid>),
    /// A port.
    Port(Port),
    /// A port, by a name it had at this node.
    NamedPort(Atom, Atom, Option<Port>),
    /// A process of another node.
    Remote(RemoteProcess),
    /// Something of an old incarnation of this node: its `'DOWN'` is on the way, and says what it is.
    Gone,
    /// `time_offset`.
    TimeOffset,
}

impl Monitored {
    /// The process that is monitored, if it is one and there was one.
    pub(super) fn process(&self) -> Option<Pid> {
        match *self {
            Monitored::Process(pid) => Some(pid),
            Monitored::Name(_, _, pid) => pid,
            Monitored::Port(_)
            | Monitored::NamedPort(..)
            | Monitored::Remote(_)
            | Monitored::Gone
            | Monitored::TimeOffset => None,
        }
    }

    /// The name of the other node that it is a process of.
    pub(crate) fn node(self) -> Option<Atom> {
        match self {
            Monitored::Remote(process) => process.node(),
            _ => None,
        }
    }
}

/// When an alias ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AliasEnd {
    /// By `unalias/1` alone.
    Explicit,
    /// With its monitor, too.
    Demonitor,
    /// With its monitor, or the first message that comes through it.
    Reply,
}

/// An alias of the process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Alias {
    pub(crate) end: AliasEnd,
    /// Messages through it are priority messages.
    pub(crate) priority: bool,
}

/// A monitor this process has on something.
pub(crate) struct Origin {
    pub(crate) target: Monitored,
    /// What stands in place of `'DOWN'`.
    pub(crate) tag: Option<Message>,
    /// Its message goes before others.
    pub(crate) priority: bool,
}

/// A request of the process to start another on another node, which waits for its reply.
pub(crate) struct SpawnWaiting {
    pub(crate) reply_ok: bool,
    pub(crate) reply_error: bool,
    pub(crate) reply_tag: Message,
    /// Linked; to have priority messages of it.
    pub(crate) link: Option<bool>,
    pub(crate) monitor: Option<MonitorWaiting>,
    /// The reply is wanted no more.
    pub(crate) is_abandoned: bool,
    pub(crate) parent_exit: ParentExit,
}

/// The exit reason of a process that waits for a linked child: the child is told it where its parent has not come to hear
/// of it. The connection to the child's node has it, too. Source: `dist_pend_spawn_exit` in `dist.c`, OTP 29.
pub(crate) type ParentExit = Arc<OnceLock<Message>>;

/// The monitor that a child is to have.
pub(crate) struct MonitorWaiting {
    pub(crate) alias: Option<AliasEnd>,
    pub(crate) priority: bool,
    pub(crate) tag: Option<Message>,
}

impl SpawnWaiting {
    /// What these options ask for.
    pub(crate) fn of(request: &SpawnRequest<'_>) -> SpawnWaiting {
        SpawnWaiting {
            reply_ok: request.reply_ok,
            reply_error: request.reply_error,
            reply_tag: Message::copy_of(request.reply_tag),
            link: request.link,
            monitor: request.monitor.map(|monitor| MonitorWaiting {
                alias: monitor.alias,
                priority: monitor.priority,
                tag: monitor.tag.map(Message::copy_of),
            }),
            is_abandoned: false,
            parent_exit: ParentExit::default(),
        }
    }
}

/// Links, monitors and aliases of a process.
#[derive(Default)]
pub(crate) struct Relations {
    /// Links: 0, or the number of the unlink that waits for its acknowledgement.
    pub(crate) links: BTreeMap<Peer, Link>,
    /// Linked processes and ports of old incarnations of this node: exit signals of them are on the way.
    links_to_gone: Vec<Message>,
    next_unlink: u64,
    /// Requests to other nodes, by the reference of each.
    pub(crate) spawns: BTreeMap<RefNumbers, SpawnWaiting>,
    /// Monitors on others.
    pub(crate) origins: Few<RefNumbers, Origin>,
    /// Others' monitors on this process.
    pub(crate) targets: Few<RefNumbers, Pid>,
    pub(crate) aliases: Few<RefNumbers, Alias>,
    /// Monitors of objects on this process.
    pub(crate) watchers: BTreeMap<RefNumbers, Watcher>,
    /// Processes this one suspends.
    pub(crate) suspending: BTreeMap<Pid, Suspending>,
}

/// A link.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Link {
    /// 0, or the number of the unlink that waits for its acknowledgement.
    pub(crate) unlinking: u64,
    /// Exit signals through it give priority messages.
    pub(crate) priority: bool,
}

impl Relations {
    /// Links to `peer`. `false` when it was linked already.
    pub(crate) fn link(&mut self, peer: Peer, priority: bool) -> bool {
        use std::collections::btree_map::Entry;
        match self.links.entry(peer) {
            Entry::Occupied(mut entry) => {
                let was_unlinking = entry.get().unlinking != 0;
                entry.insert(Link {
                    unlinking: 0,
                    priority,
                });
                was_unlinking
            }
            Entry::Vacant(entry) => {
                entry.insert(Link {
                    unlinking: 0,
                    priority,
                });
                true
            }
        }
    }

    /// Begins to unlink `peer`; the number of the unlink, or `None` where there is no link.
    pub(crate) fn begin_unlink(&mut self, peer: Peer) -> Option<u64> {
        let link = self.links.get_mut(&peer).filter(|l| l.unlinking == 0)?;
        self.next_unlink += 1;
        *link = Link {
            unlinking: self.next_unlink,
            priority: false,
        };
        Some(link.unlinking)
    }

    /// The other end has linked itself. `false` when there is a link; one that this end gives up stays so, as the
    /// other end has sent this before it heard of that.
    pub(super) fn linked_by(&mut self, peer: Peer) -> bool {
        let is_new = !self.links.contains_key(&peer);
        self.links.entry(peer).or_default();
        is_new
    }

    /// The other end has given up the link. `false` when there is none; one that this end gives up, too, stays until
    /// that is acknowledged, so that a [`Relations::linked_by`] on the way links nothing.
    pub(super) fn unlinked_by(&mut self, peer: Peer) -> bool {
        let is_linked = self.links.get(&peer).is_some_and(|l| l.unlinking == 0);
        if is_linked {
            self.links.remove(&peer);
        }
        is_linked
    }

    /// The other end has acknowledged unlink `id`.
    pub(crate) fn end_unlink(&mut self, peer: Peer, id: u64) {
        if self.links.get(&peer).is_some_and(|l| l.unlinking == id) {
            self.links.remove(&peer);
        }
    }

    fn find_gone(&self, other: Term<'_>) -> Option<usize> {
        let mut links = self.links_to_gone.iter();
        links.position(|link| eq_exact(link.term(), other))
    }

    /// Links to `other`, of an old incarnation of this node. `false` when it was linked already.
    pub(crate) fn link_gone(&mut self, other: Term<'_>) -> bool {
        let is_new = self.find_gone(other).is_none();
        if is_new {
            self.links_to_gone.push(Message::copy_of(other));
        }
        is_new
    }

    /// Ends the link to `other`, of an old incarnation of this node. `false` when there is none.
    pub(crate) fn unlink_gone(&mut self, other: Term<'_>) -> bool {
        let at = self.find_gone(other);
        at.map(|at| self.links_to_gone.swap_remove(at)).is_some()
    }

    /// What is linked and of old incarnations of this node.
    pub(super) fn links_to_gone(&self) -> impl Iterator<Item = &Message> {
        self.links_to_gone.iter()
    }

    /// Those linked now, in order.
    pub(crate) fn linked(&self) -> impl Iterator<Item = Peer> {
        let links = self.links.iter();
        links
            .filter(|(_, link)| link.unlinking == 0)
            .map(|(peer, _)| *peer)
    }

    /// The process exits, for this reason: those that start linked children of it will know.
    pub(super) fn note_exit_for_children(&self, reason: Term<'_>) {
        for waiting in self.spawns.values().filter(|it| it.link.is_some()) {
            let reason = match waiting.is_abandoned {
                true => am::abandoned.term(),
                false => reason,
            };
            // Noted already, where the process waits to tell of its end.
            let _ = waiting.parent_exit.set(Message::copy_of(reason));
        }
    }

    /// Takes out the links to processes of other nodes, and the monitors that those have on this one.
    pub(super) fn take_remote(&mut self) -> (Vec<Peer>, Vec<Watcher>) {
        let is_remote = |peer: &Peer, link: &mut Link| peer.is_elsewhere() && link.unlinking == 0;
        let links = self.links.extract_if(.., is_remote);
        let links = links.map(|(peer, _)| peer).collect();
        let is_remote = |_: &RefNumbers, it: &mut Watcher| it.by.node_name().is_some();
        let watchers = self.watchers.extract_if(.., is_remote);
        (links, watchers.map(|(_, watcher)| watcher).collect())
    }

    /// Ends the monitor `reference`, with the alias that ends with it.
    pub(crate) fn remove_origin(&mut self, reference: RefNumbers) -> Option<Origin> {
        let origin = self.origins.remove(&reference)?;
        if self
            .aliases
            .get(&reference)
            .is_some_and(|alias| alias.end != AliasEnd::Explicit)
        {
            self.aliases.remove(&reference);
        }
        Some(origin)
    }
}

impl Process {
    /// Links, monitors and aliases, to be changed.
    pub(crate) fn relations(&self) -> RefMut<'_, Relations> {
        RefMut::map(self.relations.borrow_mut(), |relations| {
            &mut **relations.get_or_insert_default()
        })
    }

    /// As [`Process::relations`], if there are any; none are made.
    pub(crate) fn some_relations(&self) -> Option<RefMut<'_, Relations>> {
        RefMut::filter_map(self.relations.borrow_mut(), |relations| {
            relations.as_deref_mut()
        })
        .ok()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    /// What an end of a link does, or hears.
    #[derive(Clone, Copy, Debug)]
    enum Act {
        Link,
        Unlink,
        Hear,
    }

    /// A signal from one end to the other.
    enum Sent {
        Link,
        Unlink(u64),
        Ack(u64),
    }

    /// Two processes, and the signals on the way to each.
    #[derive(Default)]
    struct Ends {
        relations: [Relations; 2],
        ways: [VecDeque<Sent>; 2],
    }

    impl Ends {
        fn peer(end: usize) -> Peer {
            Pid(7 + end as u64).into()
        }

        fn act(&mut self, end: usize, act: Act) {
            let other = 1 - end;
            let peer = Ends::peer(other);
            let relations = &mut self.relations[end];
            match act {
                Act::Link if relations.link(peer, false) => self.ways[other].push_back(Sent::Link),
                Act::Link => {}
                Act::Unlink => {
                    let begun = relations.begin_unlink(peer);
                    self.ways[other].extend(begun.map(Sent::Unlink));
                }
                Act::Hear => match self.ways[end].pop_front() {
                    Some(Sent::Link) => _ = relations.linked_by(peer),
                    Some(Sent::Unlink(id)) => {
                        relations.unlinked_by(peer);
                        self.ways[other].push_back(Sent::Ack(id));
                    }
                    Some(Sent::Ack(id)) => relations.end_unlink(peer, id),
                    None => {}
                },
            }
        }

        fn is_linked(&self, end: usize) -> bool {
            self.relations[end]
                .linked()
                .any(|it| it == Ends::peer(1 - end))
        }
    }

    fn act() -> impl Strategy<Value = Act> {
        prop_oneof![Just(Act::Link), Just(Act::Unlink), Just(Act::Hear)]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]
        #[test]
        fn both_ends_agree_once_all_signals_have_come(acts in prop::collection::vec((0..2_usize, act()), 0..40)) {
            let mut ends = Ends::default();
            for (end, act) in acts {
                ends.act(end, act);
            }
            while ends.ways.iter().any(|way| !way.is_empty()) {
                ends.act(0, Act::Hear);
                ends.act(1, Act::Hear);
            }
            prop_assert_eq!(ends.is_linked(0), ends.is_linked(1));
        }
    }
}
