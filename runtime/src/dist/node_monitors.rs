//! Processes that hear when nodes come and go: `monitor_node/2,3` and `net_kernel:monitor_nodes/1,2`. Source:
//! `send_nodes_mon_msgs()`, `erts_monitor_nodes()` in `dist.c`, OTP 29.

use parking_lot::Mutex;

use super::entry::{DistEntry, Phase};
use crate::heap::{Heap, Message};
use crate::process::refs::make_ref;
use crate::process::watcher::{WatchedBy, Watcher, unwatch, watch};
use crate::process::{SYSTEM, Signal, deliver};
use crate::term::{Atom, Pid, Term, am};
use crate::value::map;

/// What a subscriber hears of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// What the message tells is in a map; else in a list, if it tells anything.
    has_map: bool,
    node_type: Option<Wanted>,
    nodedown_reason: bool,
    connection_id: bool,
}

/// Which nodes are heard of: those that `nodes/0` lists, others, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    Visible,
    Hidden,
    All,
}

impl Options {
    /// The options that a term says: `[]`, or a map. `None` where it says none.
    pub(crate) fn of(term: Term<'_>) -> Option<Options> {
        if term.is_nil() {
            return Some(Options::default());
        }
        let mut options = Options {
            has_map: true,
            ..Options::default()
        };
        for (key, value) in term.as_map()?.iter() {
            match key.as_atom()? {
                am::list if value == am::true_ => options.has_map = false,
                am::connection_id => options.connection_id = value.as_bool()?,
                am::nodedown_reason => options.nodedown_reason = value.as_bool()?,
                am::node_type => {
                    options.node_type = Some(match value.as_atom()? {
                        am::visible => Wanted::Visible,
                        am::hidden => Wanted::Hidden,
                        am::all => Wanted::All,
                        _ => return None,
                    });
                }
                _ => return None,
            }
        }
        Some(options)
    }

    /// Does a subscriber hear of a node that is visible, or not?
    fn wants(self, is_visible: bool) -> bool {
        match self.node_type {
            None | Some(Wanted::Visible) => is_visible,
            Some(Wanted::Hidden) => !is_visible,
            Some(Wanted::All) => true,
        }
    }

    /// The reason and the type of nodes, where they are asked for.
    fn listed(self, heap: &Heap) -> Term<'_> {
        let reason = self.nodedown_reason.then_some(am::nodedown_reason.term());
        let node_type = self.node_type.map(|wanted| {
            let wanted = match wanted {
                Wanted::Visible => am::visible,
                Wanted::Hidden => am::hidden,
                Wanted::All => am::all,
            };
            heap.tuple(&[am::node_type.term(), wanted.term()])
        });
        heap.list(&reason.into_iter().chain(node_type).collect::<Vec<_>>())
    }

    /// What the message tells beside its name and the node; `None` where it has no place for that.
    fn info<'h>(self, heap: &'h Heap, change: &Change<'_>) -> Option<Term<'h>> {
        if self == Options::default() {
            return None;
        }
        let mut info = Vec::new();
        if self.connection_id {
            let number = Term::small(change.connection.into());
            info.push((am::connection_id.term(), number));
        }
        if self.node_type.is_some() {
            let kind = match change.is_visible {
                true => am::visible,
                false => am::hidden,
            };
            info.push((am::node_type.term(), kind.term()));
        }
        if let Some(reason) = change.reason.filter(|_| self.nodedown_reason) {
            info.push((am::nodedown_reason.term(), heap.copy_in(reason)));
        }
        if self.has_map {
            return Some(map::from_pairs(heap, &info));
        }
        let pairs = info.iter().map(|(key, value)| heap.tuple(&[*key, *value]));
        Some(heap.list(&pairs.collect::<Vec<_>>()))
    }
}

/// A node that has come or gone.
struct Change<'t> {
    node: Atom,
    connection: u32,
    is_visible: bool,
    /// Why it has gone.
    reason: Option<Term<'t>>,
}

/// A process that hears of nodes in this way, as often as it has asked for that.
#[derive(Clone, Copy)]
struct Subscription {
    pid: Pid,
    options: Options,
    times: u32,
}

/// Subscriptions in the order in which they were made, which is that in which they hear.
static SUBSCRIPTIONS: Mutex<Vec<Subscription>> = Mutex::new(Vec::new());

/// Subscribes a process; how many subscriptions of this kind it had.
pub(crate) fn subscribe(pid: Pid, options: Options) -> u32 {
    let mut subscriptions = SUBSCRIPTIONS.lock();
    let is_new = subscriptions.iter().all(|it| it.pid != pid);
    let is_same = |it: &&mut Subscription| it.pid == pid && it.options == options;
    let old = match subscriptions.iter_mut().find(is_same) {
        Some(subscription) => {
            subscription.times += 1;
            subscription.times - 1
        }
        None => {
            let times = 1;
            subscriptions.push(Subscription {
                pid,
                options,
                times,
            });
            0
        }
    };
    drop(subscriptions);
    if is_new {
        let watcher = Watcher {
            told: Box::new(move |_| SUBSCRIPTIONS.lock().retain(|it| it.pid != pid)),
            by: WatchedBy::Runtime,
        };
        watch(pid, make_ref(), watcher);
    }
    old
}

/// Ends all subscriptions of this kind; how many there were.
pub(crate) fn unsubscribe(pid: Pid, options: Options) -> u32 {
    let mut subscriptions = SUBSCRIPTIONS.lock();
    let is_same = |it: &mut Subscription| it.pid == pid && it.options == options;
    let ended = subscriptions.extract_if(.., is_same);
    ended.map(|it| it.times).sum()
}

/// `{Pid, Options}` of each subscription. Source: `erts_processes_monitoring_nodes()`.
pub(crate) fn subscriptions(heap: &Heap) -> Term<'_> {
    let subscriptions = SUBSCRIPTIONS.lock();
    let newest_first = subscriptions.iter().rev();
    let rows = newest_first.flat_map(|it| {
        let row = heap.tuple(&[it.pid.term(), it.options.listed(heap)]);
        std::iter::repeat_n(row, it.times as usize)
    });
    heap.list(&rows.collect::<Vec<_>>())
}

/// Tells subscribers that a node has come.
pub(super) fn tell_up(node: Atom, connection: u32, is_visible: bool) {
    tell(&Change {
        node,
        connection,
        is_visible,
        reason: None,
    });
}

/// Tells subscribers that a node has gone.
pub(super) fn tell_down(node: Atom, connection: u32, is_visible: bool, reason: Term<'_>) {
    tell(&Change {
        node,
        connection,
        is_visible,
        reason: Some(reason),
    });
}

fn tell(change: &Change<'_>) {
    let subscriptions = SUBSCRIPTIONS.lock().clone();
    let wants = |it: &Subscription| it.options.wants(change.is_visible);
    for it in subscriptions.into_iter().filter(wants) {
        for _ in 0..it.times {
            deliver(it.pid, Signal::own(message(change, it.options), SYSTEM));
        }
    }
}

fn message(change: &Change<'_>, options: Options) -> Message {
    Heap::detached().into_message(|heap| {
        let name = if change.reason.is_some() {
            am::nodedown
        } else {
            am::nodeup
        };
        let mut elements = vec![name.term(), change.node.term()];
        elements.extend(options.info(heap, change));
        heap.tuple(&elements)
    })
}

/// `{nodedown, Node}`, to a process that monitors the node.
pub(super) fn tell_node_down(pid: Pid, node: Atom) {
    let message = Message::of_tuple(&[am::nodedown.term(), node.term()]);
    deliver(pid, Signal::own(message, SYSTEM));
}

impl DistEntry {
    /// Has a process monitor the node once more. `false` where it is not connected; with `connects`, it is connected to.
    pub(crate) fn monitor_node(&self, pid: Pid, connects: bool) -> bool {
        if connects && !self.auto_connect() {
            return false;
        }
        let mut state = self.state.lock();
        if !(state.phase == Phase::Connected || connects && state.phase == Phase::Pending) {
            return false;
        }
        let monitors = &mut state.relations.node_monitors;
        let is_new = !monitors.contains_key(&pid);
        let (times, reference) = monitors.entry(pid).or_insert_with(|| (0, make_ref()));
        *times += 1;
        let reference = *reference;
        drop(state);
        if is_new {
            let name = self.name;
            let forget = move |_: Term<'_>| {
                if let Some(entry) = DistEntry::find(name) {
                    entry.state.lock().relations.node_monitors.remove(&pid);
                }
            };
            let by = WatchedBy::Runtime;
            let told = Box::new(forget);
            watch(pid, reference, Watcher { told, by });
        }
        true
    }

    /// Takes back one of the process's monitors of the node.
    pub(crate) fn demonitor_node(&self, pid: Pid) {
        let mut state = self.state.lock();
        let monitors = &mut state.relations.node_monitors;
        let Some((times, reference)) = monitors.get_mut(&pid) else {
            return;
        };
        *times -= 1;
        let reference = *reference;
        if *times == 0 {
            monitors.remove(&pid);
            drop(state);
            unwatch(pid, reference);
        }
    }
}
