//! A run of the machine that follows a prefix.

use std::collections::VecDeque;

use super::super::super::super::tests::p;
use super::super::super::super::{
    Access, Message, Origin, PerProcess, ProcessIndex, Signal, Step, Trace, moved,
};
use super::super::super::{EndedAt, Run};
use super::Act::{
    self, Ask, Change, End, Kill, Link, Monitor, Read, Send, Skip, Stop, Take, TakeAfter, Trap,
    Unlink,
};
use super::{Does, Item, Machine};

impl Machine<'_> {
    /// Runs behind a prefix: the run, and its order; `None` where that is impossible.
    pub(in super::super) fn follow(mut self, prefix: &Trace) -> Option<(Run, String)> {
        let mut told = Due {
            after: self.next.map(|_| Vec::new()),
            known: self.next.map(|_| 0),
            before_exit: self.next.map(|_| 0),
        };
        let mut due: PerProcess<VecDeque<Step>> = self.next.map(|_| VecDeque::new());
        for process in &prefix.processes {
            let Origin::Root(root) = process.origin else {
                unreachable!("no process is spawned")
            };
            let from = |at: ProcessIndex| match prefix.processes[at].origin {
                Origin::Root(root) => Some(p(root as usize)),
                Origin::Child { .. } => None,
            };
            let steps = moved(process.steps.clone(), from);
            let root = p(root as usize);
            due[root] = told.without(root, steps);
        }
        loop {
            let mut count_progress = false;
            for (at, due) in due.entries_mut() {
                while self.follow_one(at, due, &told)? {
                    count_progress = true;
                }
            }
            // What nothing else ends, a time-out does.
            let late = self
                .next
                .indexes()
                .find(|at| due[*at].is_empty() && matches!(self.act(*at), Some(TakeAfter(_))));
            match (count_progress, late) {
                (true, _) => {}
                (false, Some(at)) => self.time_out(at),
                (false, None) => break,
            }
        }
        due.iter()
            .all(VecDeque::is_empty)
            .then(|| (self.run(), self.order()))
    }

    fn follow_one(
        &mut self,
        at: ProcessIndex,
        due: &mut VecDeque<Step>,
        told: &Due,
    ) -> Option<bool> {
        match due.front() {
            Some(Step::Deliver(message)) if self.deliver_due(at, *message) => {
                due.pop_front();
                return Some(true);
            }
            Some(Step::Exit(Some(by))) if self.made[at] >= told.before_exit[at] => {
                let has_ended = self.end_due(at, *by);
                if has_ended == Some(true) {
                    due.pop_front();
                }
                return Some(has_ended.is_some());
            }
            None => self.handle_held(at, false),
            _ => {}
        }
        let Some(act) = self.act(at) else {
            return Some(false);
        };
        match act {
            Read(_) | Change(_) | Skip(_) | Monitor(_) | Kill(_) | Ask(_) | Link(_) | Unlink(_)
            | Trap | End | Stop => {
                // It has ended before it tells of its end.
                if matches!(act, End | Stop) && !self.is_exiting(at) {
                    if !matches!(due.front(), None | Some(Step::Exit(_))) {
                        return Some(false);
                    }
                    due.pop_front();
                    self.steps[at].push(Step::Exit(None));
                }
                if told.is_later(&self.made, at, due.is_empty()) {
                    return Some(false);
                }
                let act = match act {
                    Stop => self.act_of_end(at),
                    act => act,
                };
                self.access(at, act);
                for (to, item) in self.tells(at, act) {
                    if !self.has_ended[to] {
                        self.held[to].push_back(item);
                    }
                }
                Some(true)
            }
            Send(to, kind) => {
                let to = p(to);
                let (message, kind) = self.send(at, to, kind);
                self.held[to].push_back(Item::Message(message, kind));
                let made = due.pop_front();
                // A sending stands behind deliveries that are for a later receive.
                assert!(matches!(made, None | Some(Step::Send(_))), "{made:?}");
                Some(true)
            }
            Take(kind) | TakeAfter(kind) => self.follow_take(at, act, kind, due),
        }
    }

    /// It is to be ended by this signal: whether it was; `None` where it waits.
    fn end_due(&mut self, at: ProcessIndex, by: Signal) -> Option<bool> {
        let is_by = |item: &Item| matches!(item, Item::Signal(signal) if *signal == by);
        let place = self.held[at].iter().position(is_by)?;
        (self.does(at, by) == Some(Does::End)).then(|| {
            self.held[at].remove(place);
            self.dies(at, by);
            true
        })
    }

    fn follow_take(
        &mut self,
        at: ProcessIndex,
        act: Act,
        kind: Option<u8>,
        due: &mut VecDeque<Step>,
    ) -> Option<bool> {
        let may_time_out = matches!(act, TakeAfter(_));
        let is_due = |step: &Step| due.front().is_none_or(|due| due == step);
        match self.fits(at, kind) {
            Some(place) if !matches!(due.front(), Some(Step::Deliver(_))) => {
                // It takes another one than it should.
                let takes = Step::Receive(self.queues[at][place].0);
                let is_told = matches!((due.front(), &takes), (Some(Step::Receive(due)), Step::Receive(taken)) if is_same(due, taken));
                (is_told || is_due(&takes)).then_some(())?;
                self.take(at, place, may_time_out);
            }
            None if due.front() == Some(&Step::Timeout) && may_time_out => self.time_out(at),
            None if due.is_empty() => {
                // Where it waits, it finds the signal.
                let Some(Item::Signal(by)) = self.held[at].pop_front() else {
                    return Some(false);
                };
                self.dies(at, by);
                self.ended_at.insert(at, EndedAt::Receive);
            }
            _ => return Some(false),
        }
        due.pop_front();
        Some(true)
    }

    /// The due message comes, if it has been sent.
    fn deliver_due(&mut self, at: ProcessIndex, due: Message) -> bool {
        let is_it = |item: &Item| match (item, due) {
            (Item::Message(held, _), due) => is_same(held, &due),
            (Item::Signal(signal), Message::SystemMessage(told)) => {
                let of = match signal {
                    Signal::End(of) => *of,
                    Signal::Call(call) => call.of,
                };
                told.exit && told.of == Some(of)
            }
            (Item::Signal(_), Message::Sent { .. }) => false,
        };
        let Some(found) = self.held[at].iter().position(is_it) else {
            return false;
        };
        match self.held[at][found] {
            Item::Message(message, kind) => self.deliver(at, (message, kind)),
            // Else it would end the process.
            Item::Signal(signal) if self.does(at, signal) == Some(Does::Tell) => {
                self.becomes_message(at, signal);
            }
            Item::Signal(_) => return false,
        }
        self.held[at].remove(found);
        true
    }
}

/// Whether two runs call a message so: what tells of a process is known by that process.
fn is_same(one: &Message, other: &Message) -> bool {
    match (one, other) {
        (Message::SystemMessage(one), Message::SystemMessage(other)) => {
            (one.of, one.exit) == (other.of, other.exit)
        }
        _ => one == other,
    }
}

/// The accesses that a prefix tells of.
struct Due {
    /// What those of each process come after.
    after: PerProcess<Vec<(u64, Access)>>,
    /// How many each process makes.
    known: PerProcess<u64>,
    /// How many of them before it ends.
    before_exit: PerProcess<u64>,
}

impl Due {
    /// Takes what the steps of a process tell of accesses out of them.
    fn without(&mut self, at: ProcessIndex, steps: Vec<Step>) -> VecDeque<Step> {
        let mut others = VecDeque::new();
        for step in steps {
            let number = match step {
                Step::After { access, other } => {
                    self.after[at].push((access, other));
                    access
                }
                Step::Accesses(number) => number,
                step => {
                    if step.is_exit() {
                        self.before_exit[at] = self.known[at];
                    }
                    others.push_back(step);
                    continue;
                }
            };
            self.known[at] = self.known[at].max(number);
        }
        others
    }

    /// Whether the next access of a process has to wait, which is `free` if it has made all its other steps.
    fn is_later(&self, made: &PerProcess<u64>, at: ProcessIndex, is_free: bool) -> bool {
        let number = made[at] + 1;
        let mut after = self.after[at].iter().filter(|(of, _)| *of <= number);
        let is_left = |at: ProcessIndex| made[at] < self.known[at];
        after.any(|(_, other)| made[other.of] < other.number)
            || is_free && number > self.known[at] && made.indexes().any(is_left)
    }
}
