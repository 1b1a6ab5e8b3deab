//! The recordings of the nodes of a cluster, read together.
//!
//! Each node's recording numbers the signals that leave and come on each of its connections. The signal that has a number on one
//! side has it on the other, so the recordings of two nodes tell of the same signals. From these come the differences of the
//! clocks (`clocks`), what crossed which connection, and the calls with their replies (`calls`).
//!
//! Memory: about a hundred bytes for each end of a signal, and the texts of messages.

mod calls;
mod clocks;
mod joined;
mod signals;
mod text;
mod traffic;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use beamline_formats::profile::Profile;
use beamline_formats::ring::{Error, Recording};

use crate::apart::below_runs;

pub use calls::RemoteCalls;
pub use clocks::{By, Clock};
pub use signals::Asked;
pub use text::{FunctionRow, NodeReport, Report};
pub use traffic::Direction;

use clocks::{Bounds, Edge, align};
use signals::{Lane, Lanes};

/// A node, or an emulator that was none.
#[derive(Debug)]
pub struct Member {
    /// The node's name; without one, that of the file. Of nodes with the same name, also that of the file.
    pub name: String,
    /// Its file.
    pub file: PathBuf,
    /// What the file has.
    pub recording: Recording,
    lanes: Lanes,
}

/// One connection between two nodes, as both have recorded it. `a` comes before `b` in the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Link {
    /// The member, and the number of the connection there.
    a: (usize, u64),
    b: (usize, u64),
}

/// The nodes of a run.
#[derive(Debug)]
pub struct Cluster {
    members: Vec<Member>,
    links: Vec<Link>,
    /// What messages say of the clocks of two members.
    edges: Vec<Edge>,
    clocks: Vec<Clock>,
}

/// A signal on one side.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End<'c> {
    /// The member.
    pub(crate) member: usize,
    /// The number of the connection there.
    pub(crate) connection: u64,
    pub(crate) signal: &'c signals::Signal,
}

/// A signal that two nodes have recorded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair<'c> {
    /// Its number on the connection.
    pub(crate) number: u64,
    /// Where it left.
    pub(crate) left: End<'c>,
    /// Where it came.
    pub(crate) came: End<'c>,
}

fn stem(file: &Path) -> String {
    let stem = file.file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}

impl Cluster {
    /// Reads the recordings of a run.
    ///
    /// # Errors
    /// The file that cannot be read, and why.
    pub fn open(files: &[PathBuf]) -> Result<Cluster, (PathBuf, Error)> {
        let mut members = Vec::new();
        for file in files {
            let fail = |error| (file.clone(), error);
            let recording = Recording::open(file).map_err(fail)?;
            members.push(Member {
                name: recording
                    .names()
                    .node()
                    .map_or_else(|| stem(file), |node| node.name.clone()),
                file: file.clone(),
                lanes: signals::read(&recording).map_err(fail)?,
                recording,
            });
        }
        Ok(Cluster::of(members))
    }

    fn of(mut members: Vec<Member>) -> Cluster {
        let mut often: BTreeMap<String, usize> = BTreeMap::new();
        for member in &members {
            *often.entry(member.name.clone()).or_default() += 1;
        }
        for member in &mut members {
            if often.get(&member.name).is_some_and(|often| *often > 1) {
                member.name = format!("{} ({})", member.name, stem(&member.file));
            }
        }
        let links = links(&members);
        let edges = edges(&members, &links);
        let unix_ns: Vec<u64> = members.iter().map(|it| it.recording.unix_ns()).collect();
        let clocks = align(&unix_ns, &edges);
        Cluster {
            members,
            links,
            edges,
            clocks,
        }
    }

    /// The nodes, in the order of their files.
    #[must_use]
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// The profiles of the nodes, in their order, as one whose call paths begin with their nodes. The sums of functions stay as
    /// they are.
    ///
    /// # Errors
    /// One line when the profiles did not measure the same, or are too large together.
    pub fn apart(&self, profiles: Vec<Profile>) -> Result<Profile, String> {
        let merged = Profile::merge(profiles)?;
        below_runs(merged, |run, _| self.members[run].name.clone())
    }

    /// The clock of each node.
    #[must_use]
    pub(crate) fn clocks(&self) -> &[Clock] {
        &self.clocks
    }

    /// A time of a member by the clock of the first one.
    #[must_use]
    pub(crate) fn aligned_ns(&self, member: usize, at_ns: u64) -> i64 {
        let offset = self.clocks.get(member).map_or(0, |clock| clock.offset_ns);
        offset.saturating_add_unsigned(at_ns)
    }

    /// All signals that two nodes have recorded.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = Pair<'_>> {
        self.links.iter().flat_map(|link| {
            let sides = [(link.a, link.b), (link.b, link.a)];
            sides
                .into_iter()
                .flat_map(|(from, to)| self.pairs_of(from, to))
        })
    }

    /// Those of one direction of a connection.
    fn pairs_of(&self, from: (usize, u64), to: (usize, u64)) -> impl Iterator<Item = Pair<'_>> {
        let lane = |(member, number): (usize, u64)| self.members[member].lanes.get(&number);
        let end = |(member, connection), signal| End {
            member,
            connection,
            signal,
        };
        let lanes = lane(from).zip(lane(to)).into_iter();
        lanes.flat_map(move |(there, here)| {
            there.left.iter().filter_map(move |(number, left)| {
                Some(Pair {
                    number: *number,
                    left: end(from, left),
                    came: end(to, here.came.get(number)?),
                })
            })
        })
    }

    /// The other side of a connection, where that has recorded it.
    fn other_side(&self, side: (usize, u64)) -> Option<(usize, u64)> {
        self.links.iter().find_map(|link| match side {
            side if side == link.a => Some(link.b),
            side if side == link.b => Some(link.a),
            _ => None,
        })
    }

    /// What is added to times of `to` to have those of `from`, as the messages between these two say, and by how much that may be
    /// wrong.
    fn between(&self, from: usize, to: usize) -> Option<(i64, u64)> {
        self.edges.iter().find_map(|edge| {
            let (middle, error) = edge.bounds.middle()?;
            match (edge.from, edge.to) {
                ends if ends == (from, to) => Some((middle, error)),
                ends if ends == (to, from) => Some((-middle, error)),
                _ => None,
            }
        })
    }
}

/// How many signals of one direction both sides have; `None` where their contents differ.
fn in_common(left: &Lane, came: &Lane) -> Option<usize> {
    let mut found = 0;
    for (number, left) in &left.left {
        if let Some(came) = came.came.get(number) {
            if !left.may_be(came) {
                return None;
            }
            found += 1;
        }
    }
    Some(found)
}

/// Whether two lanes are the sides of one connection; how far apart they began, by the times of day.
fn distance(a: (&Member, &Lane), b: (&Member, &Lane)) -> Option<u64> {
    let common = in_common(a.1, b.1)? + in_common(b.1, a.1)?;
    let begins = |(member, lane): (&Member, &Lane)| {
        Some(member.recording.unix_ns().saturating_add(lane.first_ns()?))
    };
    (common > 0).then_some(begins(a)?.abs_diff(begins(b)?))
}

/// Finds for each connection of a node the same one of the other node. Nodes know each other by name and creation. Of several
/// connections between two nodes, those belong together whose signals are the same and that began at the same time.
fn links(members: &[Member]) -> Vec<Link> {
    let mut links: Vec<Link> = Vec::new();
    for (at, a) in members.iter().enumerate() {
        for (number, peer) in a.recording.names().connections() {
            let Some(lane) = a.lanes.get(&number) else {
                continue;
            };
            let others = members.iter().enumerate().skip(at + 1);
            let others = others.filter(|(_, b)| b.recording.names().is_node(peer));
            let sides = others.flat_map(|(to, b)| {
                let all = b.recording.names().connections();
                let back = all.filter(|(_, peer)| a.recording.names().is_node(peer));
                back.map(move |(other, _)| (to, b, other))
            });
            let mut best: Option<(u64, Link)> = None;
            for (to, b, other) in sides {
                let link = Link {
                    a: (at, number),
                    b: (to, other),
                };
                let is_taken = links.iter().any(|known| known.b == link.b);
                let Some(found) = b.lanes.get(&other).filter(|_| !is_taken) else {
                    continue;
                };
                let distance = distance((a, lane), (b, found));
                if distance.is_some_and(|it| best.is_none_or(|(least, _)| it < least)) {
                    best = distance.map(|distance| (distance, link));
                }
            }
            links.extend(best.map(|(_, link)| link));
        }
    }
    links
}

/// What the messages between each two nodes say of their clocks.
fn edges(members: &[Member], links: &[Link]) -> Vec<Edge> {
    let mut all: BTreeMap<(usize, usize), Bounds> = BTreeMap::new();
    for link in links {
        let lane = |(member, number): (usize, u64)| members[member].lanes.get(&number);
        let (Some(a), Some(b)) = (lane(link.a), lane(link.b)) else {
            continue;
        };
        let mut bounds = Bounds::default();
        for (number, left) in &a.left {
            if let Some(came) = b.came.get(number) {
                bounds.add_to(left.at_ns, came.at_ns);
            }
        }
        for (number, left) in &b.left {
            if let Some(came) = a.came.get(number) {
                bounds.add_from(left.at_ns, came.at_ns);
            }
        }
        let known = all.entry((link.a.0, link.b.0)).or_default();
        known.merge(bounds);
    }
    let edges = all.into_iter();
    edges
        .map(|((from, to), bounds)| Edge { from, to, bounds })
        .collect()
}

#[cfg(test)]
mod tests;
