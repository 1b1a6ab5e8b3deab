//! The clocks of nodes, aligned by the messages between them.
//!
//! A message is received after it is sent. If `o` is what must be added to the times of one node to have those of another, then
//! each message from the other to the one says that `o` is at least *sent − received*, and each message back says that it is at
//! most *received − sent*. In the middle between the largest of the first and the smallest of the second, the error is half of
//! the distance between them.

use serde::Serialize;

/// What messages in both directions say of `o`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// The least it can be, in nanoseconds.
    pub(crate) least: Option<i64>,
    /// The most it can be.
    pub(crate) most: Option<i64>,
}

impl Bounds {
    /// A message to the node that is aligned: sent by the other's clock, received by its own.
    pub(crate) fn add_to(&mut self, sent_ns: u64, received_ns: u64) {
        let least = difference(sent_ns, received_ns);
        self.least = Some(self.least.map_or(least, |known| known.max(least)));
    }

    /// A message from the node that is aligned: sent by its own clock, received by the other's.
    pub(crate) fn add_from(&mut self, sent_ns: u64, received_ns: u64) {
        let most = difference(received_ns, sent_ns);
        self.most = Some(self.most.map_or(most, |known| known.min(most)));
    }

    /// What both directions say of a connection, as that of another one between the same nodes.
    pub(crate) fn merge(&mut self, other: Bounds) {
        let most = self.most.into_iter().chain(other.most).min();
        let least = self.least.into_iter().chain(other.least).max();
        (self.least, self.most) = (least, most);
    }

    /// The middle, and half of the distance between the bounds. If the clocks did not run equally fast, the least is more than the
    /// most, and the true difference has been everything between them.
    pub(crate) fn middle(self) -> Option<(i64, u64)> {
        let (least, most) = (self.least?, self.most?);
        let middle = (i128::from(least) + i128::from(most)).div_euclid(2);
        let error = least.abs_diff(most).div_ceil(2);
        Some((i64::try_from(middle).ok()?, error))
    }

    /// The clocks did not run equally fast.
    pub(crate) fn has_drift(self) -> bool {
        matches!((self.least, self.most), (Some(least), Some(most)) if least > most)
    }
}

/// `a - b`, at the ends of the range where it is beyond.
fn difference(a: u64, b: u64) -> i64 {
    let difference = i128::from(a) - i128::from(b);
    i64::try_from(difference).unwrap_or(if difference < 0 { i64::MIN } else { i64::MAX })
}

/// Two nodes between which there were messages: `bounds` are of what is added to times of `to` to have those of `from`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) bounds: Bounds,
}

/// How a node's clock was aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// It is the clock that the others are aligned to.
    Itself,
    /// Messages say what it shows.
    Messages,
    /// The time of day at the start of the recording, since no messages in both directions say it.
    TimeOfDay,
}

/// A node's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Clock {
    /// What is added to its times to have those of the first node, in nanoseconds: when its recording began, since that one's did.
    pub offset_ns: i64,
    /// By how much that may be wrong in either direction; none where nobody knows.
    pub error_ns: Option<u64>,
    /// What it was aligned by.
    pub by: By,
    /// It runs faster or slower than another clock that it was aligned by: the error has that in it.
    pub has_drift: bool,
}

/// Aligns the clocks of nodes to that of the first. Each node is reached over the messages whose errors add up to least.
/// `unix_ns` are the times of day at which the nodes' recordings began, for those that no messages reach.
///
/// Cost: O(nodes² + edges) for each part of the cluster that messages join.
pub(crate) fn align(unix_ns: &[u64], edges: &[Edge]) -> Vec<Clock> {
    let first = unix_ns.first().copied().unwrap_or(0);
    let mut clocks: Vec<Option<Clock>> = vec![None; unix_ns.len()];
    for start in 0..unix_ns.len() {
        if clocks[start].is_some() {
            continue;
        }
        clocks[start] = Some(Clock {
            offset_ns: difference(unix_ns[start], first),
            error_ns: (start == 0).then_some(0),
            by: if start == 0 {
                By::Itself
            } else {
                By::TimeOfDay
            },
            has_drift: false,
        });
        spread(start, edges, &mut clocks);
    }
    clocks.into_iter().flatten().collect()
}

/// Aligns all that messages join with the node `start`: always the one next whose error is least.
fn spread(start: usize, edges: &[Edge], clocks: &mut [Option<Clock>]) {
    let mut error: Vec<Option<u64>> = vec![None; clocks.len()];
    let mut is_done: Vec<bool> = clocks.iter().map(Option::is_some).collect();
    (error[start], is_done[start]) = (Some(0), false);
    loop {
        let open = (0..clocks.len()).filter(|at| !is_done[*at] && error[*at].is_some());
        let Some(at) = open.min_by_key(|at| error[*at]) else {
            return;
        };
        is_done[at] = true;
        let (Some(from), Some(so_far)) = (clocks[at], error[at]) else {
            return;
        };
        for edge in edges {
            let (to, sign) = match (edge.from == at, edge.to == at) {
                (true, _) => (edge.to, 1),
                (_, true) => (edge.from, -1),
                _ => continue,
            };
            let Some((middle, more)) = edge.bounds.middle() else {
                continue;
            };
            let sum = so_far.saturating_add(more);
            if is_done[to] || error[to].is_some_and(|known| known <= sum) {
                continue;
            }
            error[to] = Some(sum);
            clocks[to] = Some(Clock {
                offset_ns: from.offset_ns.saturating_add(sign * middle),
                error_ns: from.error_ns.map(|_| sum),
                by: match from.by {
                    By::TimeOfDay => By::TimeOfDay,
                    By::Itself | By::Messages => By::Messages,
                },
                has_drift: from.has_drift || edge.bounds.has_drift(),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_middle_has_half_of_the_distance_as_its_error() {
        let mut bounds = Bounds::default();
        assert_eq!(bounds.middle(), None);
        bounds.add_to(1_000, 400);
        assert_eq!(bounds.middle(), None);
        bounds.add_from(500, 1_201);
        assert_eq!(bounds.middle(), Some((650, 51)));
        bounds.add_to(1_000, 100);
        assert!(bounds.has_drift());
        assert_eq!(bounds.middle(), Some((800, 100)));
    }

    #[test]
    fn nodes_without_messages_have_the_time_of_day() {
        let mut bounds = Bounds::default();
        bounds.add_to(50, 10);
        bounds.add_from(10, 60);
        let edge = Edge {
            from: 1,
            to: 2,
            bounds,
        };
        let clocks = align(&[1_000, 3_000, 9_999], &[edge]);
        let shown = clocks.iter().map(|it| (it.offset_ns, it.error_ns, it.by));
        let expect = [
            (0, Some(0), By::Itself),
            (2_000, None, By::TimeOfDay),
            (2_045, None, By::TimeOfDay),
        ];
        assert_eq!(shown.collect::<Vec<_>>(), expect);
    }

    /// A message: between which nodes, when by the true clock, and how long it takes.
    type Message = (prop::sample::Index, prop::sample::Index, u64, u64);

    proptest! {
        #[test]
        fn the_true_offset_is_within_the_error(
            // What each clock shows when the true one shows 0.
            starts in prop::collection::vec(0_u64..1_000_000_000_000, 2..7),
            messages in prop::collection::vec(any::<Message>(), 0..200),
        ) {
            let nodes = starts.len();
            let mut edges: Vec<Edge> = Vec::new();
            for (from, to, at, takes) in messages {
                let (from, to, at) = (from.index(nodes), to.index(nodes), at % 1_000_000_000_000);
                if from == to {
                    continue;
                }
                let (sent, received) = (starts[from] + at, starts[to] + at + takes % 10_000_000);
                let (low, high) = (from.min(to), from.max(to));
                let known = edges.iter().position(|edge| (edge.from, edge.to) == (low, high));
                let known = known.unwrap_or_else(|| {
                    edges.push(Edge { from: low, to: high, bounds: Bounds::default() });
                    edges.len() - 1
                });
                match from == low {
                    true => edges[known].bounds.add_to(sent, received),
                    false => edges[known].bounds.add_from(sent, received),
                }
            }
            let clocks = align(&vec![7; nodes], &edges);
            prop_assert_eq!(clocks.len(), nodes);
            for (at, clock) in clocks.iter().enumerate() {
                let truth = i64::try_from(starts[0]).unwrap() - i64::try_from(starts[at]).unwrap();
                prop_assert!(!clock.has_drift);
                if let Some(error) = clock.error_ns {
                    prop_assert!(truth.abs_diff(clock.offset_ns) <= error, "{at}: {truth}, {clock:?}");
                }
            }
        }
    }
}
