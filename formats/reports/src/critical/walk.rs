//! The way back from the end of the path.

use beamline_formats::ring::Id;
use rustc_hash::FxHashMap;

use super::{Doing, Moment, Reader};
use crate::events::rests::{Rest, Then};

/// A part of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
    pub(super) who: Id,
    pub(super) doing: Doing,
    pub(super) sender: Option<Id>,
}

/// The pieces of the path that ends at `last` and begins at `begin_ns`, by time, without a gap.
pub(super) fn walk(reader: &Reader<'_>, begin_ns: u64, last: Moment) -> Vec<Piece> {
    let mut walk = Walk {
        reader,
        begin_ns,
        at: last,
        left: FxHashMap::default(),
        pieces: Vec::new(),
    };
    while walk.at.at_ns > begin_ns && walk.step() {}
    walk.pieces.reverse();
    walk.pieces
}

struct Walk<'r> {
    reader: &'r Reader<'r>,
    begin_ns: u64,
    /// Where it has come to.
    at: Moment,
    /// How many rests of each process it has not come past yet. Each step takes one away or goes to another process's birth, so
    /// that the walk ends, whatever the times of a damaged recording are.
    left: FxHashMap<Id, usize>,
    /// The last one first.
    pieces: Vec<Piece>,
}

impl Walk<'_> {
    /// What a process did from then until where the walk has come to; the walk is there then.
    fn go(&mut self, start_ns: u64, doing: Doing, sender: Option<Id>) {
        let start_ns = start_ns.max(self.begin_ns);
        if start_ns < self.at.at_ns {
            self.pieces.push(Piece {
                start_ns,
                end_ns: self.at.at_ns,
                who: self.at.who,
                doing,
                sender,
            });
            self.at.at_ns = start_ns;
        }
    }

    /// Goes back by a time slice and the rest before it. Returns whether there is more.
    fn step(&mut self) -> bool {
        let rests = self.reader.rests.of(self.at.who);
        let left = *self.left.get(&self.at.who).unwrap_or(&rests.len());
        let now = self.at.at_ns;
        let rests = &rests[..left];
        let past = rests.partition_point(|rest| rest.in_ns <= now);
        if let Some(rest) = rests.get(past).filter(|rest| rest.out_ns < now) {
            // It rested when it was asked: what it had asked for itself was on its way, such as a process of another node.
            self.left.insert(self.at.who, past);
            self.go(rest.out_ns, Doing::Message, None);
            return true;
        }
        match past.checked_sub(1) {
            Some(index) => {
                self.left.insert(self.at.who, index);
                self.past(&rests[index]);
                true
            }
            None => self.go_to_birth(),
        }
    }

    /// Goes back to the beginning of a rest, or to where it was ended.
    fn past(&mut self, rest: &Rest) {
        self.go(rest.in_ns, Doing::Runs, None);
        match rest.then {
            Then::Waits {
                on,
                until_ns,
                came_ns,
            } if until_ns >= rest.out_ns => {
                self.go(came_ns, Doing::IsReady, None);
                self.go(until_ns, Doing::Message, Some(on));
                self.at.who = on;
            }
            Then::IsReady | Then::Waits { .. } => self.go(rest.out_ns, Doing::IsReady, None),
            Then::Unknown => self.go(rest.out_ns, Doing::Waits, None),
        }
    }

    /// Goes back to the process that started this one. Returns whether that is known.
    fn go_to_birth(&mut self) -> bool {
        let who = self.at.who;
        let birth = self.reader.births.get(&who).copied();
        let birth = birth.filter(|birth| birth.at_ns <= self.at.at_ns && birth.who != who);
        let first = self.reader.first_runs.get(&who).copied();
        let Some(birth) = birth else {
            self.go(first.unwrap_or(self.begin_ns), Doing::Runs, None);
            self.go(self.begin_ns, Doing::Unseen, None);
            return false;
        };
        self.go(first.unwrap_or(birth.at_ns), Doing::Runs, None);
        self.go(birth.at_ns, Doing::IsReady, None);
        self.at.who = birth.who;
        true
    }
}
