//! What of a process refers to other nodes, and how, for those who check the counts of nodes.
//! Source: `insert_process()` in `erl_node_tables.c`, OTP 29.

use std::sync::Arc;

use super::nodes::RemoteProcess;
use super::seq_token::Token;
use super::watcher::{WatchedBy, Watcher};
use super::{Monitored, Peer, Process, Relations, Signal, table};
use crate::heap::{Counted, Message};
use crate::sched::online;
use crate::sched::ptab::pin;
use crate::term::Pid;

/// How something refers to a node, in the order in which `node_and_dist_references` lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reference {
    Signal,
    System,
    Timer,
    Binary,
    Ets,
    Monitor,
    Link,
    Heap,
    Control,
    Node,
}

/// What refers to a node.
#[derive(Clone, Copy)]
pub(crate) enum Referring<'a> {
    /// A thing, by a count.
    Thing(Counted<'a>),
    /// The pid of a peer, which names its node.
    Peer(Peer),
    /// A term that others may have, too.
    Shared(&'a Arc<Message>),
}

/// Sees what refers to nodes, or may.
type See<'v> = dyn FnMut(Reference, Referring<'_>) + 'v;

/// Shows what a message kept outside heaps holds counts of.
fn show_message(how: Reference, message: &Message, see: &mut See<'_>) {
    for counted in message.counted() {
        see(how, Referring::Thing(counted));
    }
}

fn show_token(how: Reference, token: &Token, see: &mut See<'_>) {
    see(how, Referring::Shared(&token.label));
    see(how, Referring::Peer(token.from));
}

impl Process {
    /// Shows what refers to nodes: things of its heap, messages and other signals that it has fetched, links and
    /// monitors.
    fn show_references(&self, see: &mut See<'_>) {
        for counted in self.heap.counted() {
            see(Reference::Heap, Referring::Thing(counted));
        }
        self.with_psd(|psd| {
            let of_other_nodes = [psd.leader_elsewhere, psd.parent_elsewhere];
            for peer in of_other_nodes.into_iter().flatten() {
                see(Reference::Heap, Referring::Peer(peer));
            }
            let seq = psd.seq.iter();
            let tokens = seq.flat_map(|seq| seq.token.iter().chain(seq.carried.values()));
            tokens.for_each(|token| show_token(Reference::Heap, token, see));
        });
        for message in self.mailbox.messages() {
            show_message(Reference::Signal, message, see);
        }
        for signal in &self.mailbox.middle {
            signal.show_references(see);
        }
        if let Some(relations) = self.some_relations() {
            relations.show_references(see);
        }
    }
}

/// A process that blocks the other schedulers of ordinary work, for as long as it has this.
pub(crate) struct Alone<'p>(&'p Process);

impl<'p> Alone<'p> {
    /// Blocks them. `None` while some still run: the process asks again in its next time slice.
    pub(crate) fn block(p: &'p Process) -> Option<Alone<'p>> {
        online::block(p.pid().0, true, || false).then_some(Alone(p))
    }

    /// Shows what refers to nodes, of each process.
    pub(crate) fn show_references(&self, see: &mut dyn FnMut(Pid, Reference, Referring<'_>)) {
        let guard = pin();
        for shared in table().iter(&guard) {
            let pid = shared.pid();
            let mut see = |how, what: Referring<'_>| see(pid, how, what);
            if pid == self.0.pid() {
                self.0.show_references(&mut see);
            }
            // SAFETY: S1: no other thread begins a time slice, and this one has its process out of its resting place.
            if let Some(process) = unsafe { shared.resting() } {
                process.show_references(&mut see);
            }
            // SAFETY: Q5: signals are taken in time slices.
            unsafe {
                shared
                    .signals
                    .each(|signal| signal.show_references(&mut see))
            };
        }
    }
}

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        online::unblock(self.0.pid().0, true);
    }
}

impl Relations {
    fn show_references(&self, see: &mut See<'_>) {
        for peer in self.links.keys() {
            see(Reference::Link, Referring::Peer(*peer));
        }
        for message in self.links_to_gone() {
            show_message(Reference::Link, message, see);
        }
        for origin in self.origins.values() {
            if let Monitored::Remote(RemoteProcess::Process(peer)) = origin.target {
                see(Reference::Monitor, Referring::Peer(peer));
            }
            let tag = origin.tag.iter();
            tag.for_each(|tag| show_message(Reference::Monitor, tag, see));
        }
        for watcher in self.watchers.values() {
            watcher.show_references(Reference::Monitor, see);
        }
        for spawn in self.spawns.values() {
            let monitor_tag = spawn.monitor.iter().flat_map(|monitor| &monitor.tag);
            let tags = monitor_tag.chain([&spawn.reply_tag]);
            tags.for_each(|tag| show_message(Reference::Monitor, tag, see));
        }
    }
}

impl Watcher {
    fn show_references(&self, how: Reference, see: &mut See<'_>) {
        if let WatchedBy::Process(peer, reference) = &self.by {
            see(how, Referring::Peer(*peer));
            see(how, Referring::Shared(reference));
        }
    }
}

impl Signal {
    fn show_references(&self, see: &mut See<'_>) {
        let (message, token, from) = match self {
            Signal::Message { message, .. } | Signal::AliasMessage { message, .. } => {
                (Some(message), None, None)
            }
            Signal::Traced(traced) => (Some(&traced.message), traced.token.as_ref(), None),
            Signal::Exit(exit) => (Some(&exit.reason), exit.token.as_ref(), Some(exit.from)),
            Signal::MonitorDown { reason, .. } => (Some(reason), None, None),
            Signal::Link { from }
            | Signal::Unlink { from, .. }
            | Signal::UnlinkAck { from, .. }
            | Signal::GroupLeader { leader: from } => (None, None, Some(*from)),
            Signal::Watch(watch) => return watch.1.show_references(Reference::Signal, see),
            Signal::ToSelf
            | Signal::Monitor { .. }
            | Signal::Demonitor { .. }
            | Signal::ReceiveTimeout { .. }
            | Signal::Request(_)
            | Signal::Question { .. } => (None, None, None),
        };
        if let Some(message) = message {
            show_message(Reference::Signal, message, see);
        }
        if let Some(token) = token {
            show_token(Reference::Signal, token, see);
        }
        if let Some(from) = from {
            see(Reference::Signal, Referring::Peer(from));
        }
    }
}
