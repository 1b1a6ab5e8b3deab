//! Calls from one node to another, with their replies.
//!
//! A call takes from when the request leaves to when the reply comes, both by the caller's clock. The other node's recording says
//! when the request came there and when the reply left, both by its own clock. So what is left was on the way, whatever the
//! clocks show.

use std::collections::{BTreeMap, HashMap};

use beamline_formats::ring::{Id, Names};
use serde::Serialize;

use super::signals::{Asked, Role, Signal};
use super::{Cluster, Lane};

/// Calls of one kind from the processes of one name to those of another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RemoteCalls {
    /// What was asked.
    pub asked: Asked,
    /// The caller's node.
    pub from: String,
    /// The name of callers, or the function that they began in.
    pub caller: String,
    /// The node that was called.
    pub to: String,
    /// The name of processes that were called, or the function that they began in; empty where that is not known.
    pub callee: String,
    /// Calls that were answered.
    pub calls: u64,
    /// Calls whose reply was not seen.
    pub unanswered: u64,
    /// How long those that were answered took altogether.
    pub total_ns: u64,
    /// The longest.
    pub longest_ns: u64,
    /// When that began, since the beginning of the caller's recording.
    pub longest_at_ns: u64,
    /// Calls of which the other node has recorded the request and the reply.
    pub both_sides: u64,
    /// How long these took there, from the request's coming to the reply's leaving.
    pub there_ns: u64,
    /// How long these were on the way, in both directions together.
    pub way_ns: u64,
}

/// A call that waits for its reply.
#[derive(Clone, Copy)]
struct Open<'c> {
    asked: Asked,
    request: (u64, &'c Signal),
    /// The reply that says that the process has been started.
    spawned: Option<(u64, &'c Signal)>,
}

/// Both sides of a connection: where calls are made, and where they go.
#[derive(Clone, Copy)]
struct Ends<'c> {
    side: (usize, u64),
    /// None where it is not recorded.
    other: Option<(usize, u64)>,
    /// The other node's name, as this one knows it.
    peer: &'c str,
}

/// The key of a row.
type Key = (Asked, usize, String, String, String);

impl Cluster {
    /// The calls from one node to another, those first that took longest altogether.
    #[must_use]
    pub(crate) fn remote_calls(&self) -> Vec<RemoteCalls> {
        let mut rows: BTreeMap<Key, RemoteCalls> = BTreeMap::new();
        for (at, member) in self.members.iter().enumerate() {
            for (number, peer) in member.recording.names().connections() {
                if let Some(lane) = member.lanes.get(&number) {
                    self.follow((at, number), lane, &peer.name, &mut rows);
                }
            }
        }
        let mut rows: Vec<RemoteCalls> = rows.into_values().collect();
        rows.retain(|row| row.calls > 0 || row.asked != Asked::Message);
        rows.sort_by_key(|row| std::cmp::Reverse((row.total_ns, row.unanswered)));
        rows
    }

    /// The calls of one connection.
    fn follow(
        &self,
        side: (usize, u64),
        lane: &Lane,
        peer: &str,
        rows: &mut BTreeMap<Key, RemoteCalls>,
    ) {
        let ends = Ends {
            side,
            other: self.other_side(side),
            peer,
        };
        let left = lane.left.iter().map(|(number, signal)| (*number, signal));
        let came = lane.came.iter().map(|(number, signal)| (*number, signal));
        let mut all: Vec<(u64, &Signal)> = left.chain(came).collect();
        all.sort_by_key(|(_, signal)| signal.at_ns);
        let mut open: HashMap<u64, Open<'_>> = HashMap::new();
        for (number, signal) in all {
            match signal.role {
                Role::Asks(reference, asked) => {
                    let request = (number, signal);
                    open.entry(reference).or_insert(Open {
                        asked,
                        request,
                        spawned: None,
                    });
                }
                Role::Spawned(reference) => {
                    if let Some(call) = open.get_mut(&reference) {
                        call.spawned = Some((number, signal));
                    }
                }
                Role::Answers(reference) => {
                    if let Some(call) = open.get(&reference).copied()
                        // The end of a process that was started is no reply.
                        && call.asked != Asked::Spawn
                    {
                        open.remove(&reference);
                        self.add(ends, &call, Some((number, signal)), rows);
                    }
                }
                Role::None => {}
            }
        }
        let mut left: Vec<Open<'_>> = open.into_values().collect();
        left.sort_by_key(|call| call.request.0);
        for call in left {
            self.add(ends, &call, call.spawned, rows);
        }
    }

    /// Adds a call to its row.
    fn add(
        &self,
        ends: Ends<'_>,
        call: &Open<'_>,
        reply: Option<(u64, &Signal)>,
        rows: &mut BTreeMap<Key, RemoteCalls>,
    ) {
        let member = &self.members[ends.side.0];
        let other = ends.other.map(|(to, number)| {
            let there = &self.members[to];
            (there, there.lanes.get(&number))
        });
        let request_there = other.and_then(|(_, lane)| lane?.came.get(&call.request.0));
        let reply_there = other.and_then(|(_, lane)| lane?.left.get(&reply?.0));
        let caller = called(member.recording.names(), call.request.1.who);
        let whose = request_there
            .map(|it| it.who)
            .filter(|who| *who != Id::None);
        let whose = whose.or(reply_there.map(|it| it.who));
        let callee = other.zip(whose);
        let callee = callee.map(|((there, _), who)| called(there.recording.names(), who));
        let callee = callee.unwrap_or_default();
        let to = other.map_or(ends.peer, |(there, _)| &there.name).to_owned();
        let key = (
            call.asked,
            ends.side.0,
            caller.clone(),
            to.clone(),
            callee.clone(),
        );
        let row = rows.entry(key).or_insert_with(|| RemoteCalls {
            asked: call.asked,
            from: member.name.clone(),
            caller,
            to,
            callee,
            calls: 0,
            unanswered: 0,
            total_ns: 0,
            longest_ns: 0,
            longest_at_ns: 0,
            both_sides: 0,
            there_ns: 0,
            way_ns: 0,
        });
        let Some((_, reply)) = reply else {
            row.unanswered += 1;
            return;
        };
        let at_ns = call.request.1.at_ns;
        let took = reply.at_ns.saturating_sub(at_ns);
        row.calls += 1;
        row.total_ns = row.total_ns.saturating_add(took);
        if took >= row.longest_ns {
            (row.longest_ns, row.longest_at_ns) = (took, at_ns);
        }
        if let (Some(came), Some(left)) = (request_there, reply_there) {
            let there = left.at_ns.saturating_sub(came.at_ns);
            row.both_sides += 1;
            row.there_ns = row.there_ns.saturating_add(there);
            row.way_ns = row.way_ns.saturating_add(took.saturating_sub(there));
        }
    }
}

/// A process by its name, or the function that it began in; by its pid where neither is known.
fn called(names: &Names, id: Id) -> String {
    let text = names.process_text(id);
    if text.is_empty() {
        id.to_string()
    } else {
        text
    }
}
