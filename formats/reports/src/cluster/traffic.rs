//! What crossed the connections between nodes.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Cluster, Pair};

/// What one node sent to another, on all their connections.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Direction {
    /// The node that sent it.
    pub from: String,
    /// The node that it was for.
    pub to: String,
    /// How many connections there were.
    pub connections: u64,
    /// The other side has not recorded these connections.
    pub is_one_sided: bool,
    /// Messages.
    pub messages: u64,
    /// Signals of all kinds, with the messages.
    pub signals: u64,
    /// Bytes of their terms.
    pub bytes: u64,
    /// Those of the signals that the other side has seen come.
    pub came: u64,
    /// How long these were on their way, on average, from when they left the sender's queue. None where the clocks are not known.
    pub mean_ns: Option<u64>,
    /// The longest.
    pub longest_ns: Option<u64>,
    /// By how much both may be wrong.
    pub error_ns: Option<u64>,
}

impl Cluster {
    /// What the nodes sent each other, the most bytes first.
    #[must_use]
    pub(crate) fn traffic(&self) -> Vec<Direction> {
        let mut all: BTreeMap<(String, String), Direction> = BTreeMap::new();
        for (at, member) in self.members.iter().enumerate() {
            for (number, peer) in member.recording.names().connections() {
                let Some(lane) = member.lanes.get(&number) else {
                    continue;
                };
                let other = self.other_side((at, number));
                let to = other.map_or(&peer.name, |(to, _)| &self.members[to].name);
                let (from, to) = (member.name.clone(), to.clone());
                let row = all.entry((from.clone(), to.clone())).or_insert(Direction {
                    from,
                    to,
                    ..Direction::default()
                });
                row.connections += 1;
                row.is_one_sided |= other.is_none();
                for signal in lane.left.values() {
                    row.messages += u64::from(signal.is_message());
                    row.signals += 1;
                    row.bytes = row.bytes.saturating_add(signal.bytes);
                }
            }
        }
        self.add_times(&mut all);
        let mut rows: Vec<Direction> = all.into_values().collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.bytes));
        rows
    }

    /// Adds how long signals were on their way.
    fn add_times(&self, all: &mut BTreeMap<(String, String), Direction>) {
        let mut totals: BTreeMap<(usize, usize), Times> = BTreeMap::new();
        for pair in self.pairs() {
            let ends = (pair.left.member, pair.came.member);
            let times = totals.entry(ends).or_insert_with(|| Times {
                offset_ns: self.between(ends.0, ends.1).map_or(0, |(offset, _)| offset),
                ..Times::default()
            });
            times.add(&pair);
        }
        for ((from, to), times) in totals {
            let name = |member: usize| self.members[member].name.clone();
            let Some(row) = all.get_mut(&(name(from), name(to))) else {
                continue;
            };
            row.came = times.count;
            if let Some((_, error)) = self.between(from, to) {
                row.mean_ns = times.total_ns.checked_div(times.count);
                row.longest_ns = Some(times.longest_ns);
                row.error_ns = Some(error);
            }
        }
    }
}

/// How long signals were on their way from one member to another.
#[derive(Default)]
struct Times {
    /// What is added to times of the receiver to have those of the sender.
    offset_ns: i64,
    count: u64,
    total_ns: u64,
    longest_ns: u64,
}

impl Times {
    fn add(&mut self, pair: &Pair<'_>) {
        let (left, came) = (pair.left.signal.at_ns, pair.came.signal.at_ns);
        let took = i128::from(came) + i128::from(self.offset_ns) - i128::from(left);
        // Clocks that drift apart may say that it came before it left.
        let took = u64::try_from(took).unwrap_or(0);
        self.count += 1;
        self.total_ns = self.total_ns.saturating_add(took);
        self.longest_ns = self.longest_ns.max(took);
    }
}
