//! A machine that runs small programs: in all schedules, or behind a prefix.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

use super::super::super::accesses::{Object, To};
use super::super::super::{
    Access, Accesses, Message, Origin, Process, Signal, Step, Told, Trace, moved,
};
use super::super::{EndedAt, Ends, ExitCall, Run, Spot, Traps, Watch};
use crate::ring::Shared;

/// What a process of a program does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// Sends a message of a kind to a process.
    Send(usize, u8),
    /// Takes a message of a kind, or of any.
    Take(Option<u8>),
    /// The same, but it may time out.
    TakeAfter(Option<u8>),
    /// Reads a key of the table that all share, or all of it.
    Read(Option<u64>),
    /// Changes it.
    Change(Option<u64>),
    /// Reads a key, and leaves out its next act if another process was the last to change that key.
    Skip(u64),
    /// Monitors a process: a message of kind 0 tells of its end, and one of kind 1 that it is gone.
    Monitor(usize),
    /// Calls `exit/2` with a process, with a reason that ends who does not trap exits.
    Kill(usize),
    /// Links to a process, if that one has not ended: the end of each of the two ends the other one.
    Link(usize),
    /// Gives up the link to a process.
    Unlink(usize),
    /// Begins to trap exits, or ceases to: signals are messages of kind 0 then.
    Trap(bool),
    /// Ends: its last act.
    End,
}

use Act::{Change, End, Kill, Link, Monitor, Read, Send, Skip, Take, TakeAfter, Trap, Unlink};

impl Act {
    /// What it does to the table, or to what tells of the end of a process: that of process `at`.
    fn to(self, at: usize) -> Option<To> {
        let end_of = |of: usize, is_change| To {
            object: END + of as u64,
            is_change,
            part: None,
        };
        let (part, is_change) = match self {
            Monitor(of) | Kill(of) | Link(of) | Unlink(of) => return Some(end_of(of, false)),
            End => return Some(end_of(at, true)),
            Read(key) => (key, false),
            Skip(key) => (Some(key), false),
            Change(key) => (key, true),
            Send(..) | Take(_) | TakeAfter(_) | Trap(_) => return None,
        };
        let object = 1;
        Some(To {
            object,
            is_change,
            part,
        })
    }
}

/// The number of the object that tells of the end of the first process.
const END: u64 = 100;

/// The scripts of processes that are there from the beginning.
pub(super) type Program = Vec<Vec<Act>>;

/// What comes to a process.
#[derive(Clone, Copy, Debug)]
enum Item {
    /// A message, and its kind.
    Message(Message, u8),
    /// An exit signal.
    Signal(Signal),
}

/// A machine in the middle of a run.
#[derive(Clone)]
pub(super) struct Machine<'p> {
    program: &'p Program,
    next: Vec<usize>,
    sent: Vec<u32>,
    queues: Vec<Vec<(Message, u8)>>,
    /// What came to a process, and is not handled: behind an exit signal, or before its turn where it follows a prefix.
    held: Vec<VecDeque<Item>>,
    steps: Vec<Vec<Step>>,
    receivers: Vec<Vec<Option<usize>>>,
    timed: HashSet<(usize, u32)>,
    /// All accesses to the table, in their order.
    table: Vec<(Access, To)>,
    /// How many each process has made.
    made: Vec<u64>,
    accesses: Accesses,
    /// What each access came after, as the definition says.
    saw: Vec<Vec<Vec<Access>>>,
    has_ended: Vec<bool>,
    /// Who monitors each process.
    monitors: Vec<Vec<usize>>,
    watches: Vec<Watch<usize>>,
    /// How many messages have told each process of others.
    told: Vec<u32>,
    /// Who is linked to whom.
    links: BTreeSet<(usize, usize)>,
    is_trapping: Vec<bool>,
    traps: Vec<Traps<usize>>,
    exit_calls: Vec<ExitCall<usize>>,
    ended_at: HashMap<usize, EndedAt>,
}

fn link_of(one: usize, other: usize) -> (usize, usize) {
    (one.min(other), one.max(other))
}

/// One of the two is a change, of what both are to.
fn are_dependent(one: To, other: To) -> bool {
    let common = one.part.is_none() || other.part.is_none() || one.part == other.part;
    one.object == other.object && common && (one.is_change || other.is_change)
}

impl<'p> Machine<'p> {
    pub(super) fn new(program: &'p Program) -> Machine<'p> {
        let n = program.len();
        Machine {
            program,
            next: vec![0; n],
            sent: vec![0; n],
            queues: vec![Vec::new(); n],
            held: vec![VecDeque::new(); n],
            steps: vec![Vec::new(); n],
            receivers: vec![Vec::new(); n],
            timed: HashSet::new(),
            table: Vec::new(),
            made: vec![0; n],
            accesses: Accesses::default(),
            saw: vec![Vec::new(); n],
            has_ended: vec![false; n],
            monitors: vec![Vec::new(); n],
            watches: Vec::new(),
            told: vec![0; n],
            links: BTreeSet::new(),
            is_trapping: vec![false; n],
            traps: Vec::new(),
            exit_calls: Vec::new(),
            ended_at: HashMap::new(),
        }
    }

    fn access(&mut self, at: usize, act: Act, to: To) {
        self.made[at] += 1;
        let access = Access {
            of: at,
            number: self.made[at],
        };
        let others = (0..self.program.len()).filter(|of| *of != at);
        let last = |of| {
            let mut before = self.table.iter().rev();
            before.find(|(other, done)| other.of == of && are_dependent(to, *done))
        };
        let saw: Vec<Access> = others.filter_map(last).map(|(other, _)| *other).collect();
        let own = self.steps[at].iter().filter(|step| step.is_own()).count();
        self.accesses.insert(at, (access.number, own), None, to);
        // As a run tells it: of the whole table.
        if let Some((other, _)) = self.table.last().filter(|(other, _)| other.of != at) {
            let (access, other) = (access.number, *other);
            self.steps[at].push(Step::After { access, other });
        }
        let mut changes = self.table.iter().rev();
        let changed = changes.find(|(_, done)| done.is_change && are_dependent(to, *done));
        let skips = matches!(act, Skip(_)) && changed.is_some_and(|(other, _)| other.of != at);
        self.next[at] += 1 + usize::from(skips);
        self.saw[at].push(saw);
        self.table.push((access, to));
        self.accesses.name(
            to.object,
            Object {
                shared: shared(to),
                name: String::new(),
            },
            None,
        );
    }

    /// What it has monitored, linked to, called and ended, an access does: what comes to whom.
    fn tells(&mut self, at: usize, act: Act) -> Vec<(usize, Item)> {
        match act {
            Monitor(of) if self.has_ended[of] => vec![(at, self.down(at, of, true))],
            Monitor(of) => {
                self.monitors[of].push(at);
                self.watch(at, of, false);
                Vec::new()
            }
            Link(of) => {
                if !self.has_ended[of] && self.links.insert(link_of(at, of)) {
                    self.watch(at, of, true);
                    self.watch(of, at, true);
                }
                Vec::new()
            }
            Unlink(of) => {
                self.unlink(at, of);
                Vec::new()
            }
            Kill(to) => {
                let (of, number) = (at, self.made[at]);
                self.exit_calls.push(ExitCall {
                    from: at,
                    access: number,
                    to,
                    number: 0,
                    ends: Ends::NotTrapping,
                });
                let signal = Signal::Call(Access { of, number });
                vec![(to, Item::Signal(signal))]
            }
            End => {
                self.has_ended[at] = true;
                let links = self.links.iter().copied();
                let links = links.filter(|(one, other)| [*one, *other].contains(&at));
                let exit = Item::Signal(Signal::End(at));
                let mut all: Vec<_> = links.map(|(one, other)| (one + other - at, exit)).collect();
                for to in std::mem::take(&mut self.monitors[at]) {
                    if !self.has_ended[to] {
                        all.push((to, self.down(to, at, false)));
                    }
                }
                for watch in &mut self.watches {
                    watch.fails |= watch.whom == at;
                }
                all
            }
            _ => Vec::new(),
        }
    }

    fn watch(&mut self, by: usize, whom: usize, is_link: bool) {
        self.watches.push(Watch {
            by,
            whom,
            until: None,
            is_link,
            unlinks: None,
            fails: false,
        });
    }

    fn down(&mut self, to: usize, of: usize, gone: bool) -> Item {
        Item::Message(self.tell(to, of, gone, false), u8::from(gone))
    }

    fn tell(&mut self, to: usize, of: usize, gone: bool, exit: bool) -> Message {
        self.told[to] += 1;
        Message::Told(Told {
            number: self.told[to],
            of: Some(of),
            gone,
            exit,
        })
    }

    fn spot(&self, at: usize) -> Spot {
        let own = self.steps[at].iter().filter(|step| step.is_own());
        Spot {
            steps: own.count(),
            accesses: self.made[at],
        }
    }

    /// It begins to trap exits, or ceases to: no other process sees that.
    fn trap(&mut self, at: usize, traps: bool) {
        let (by, spot) = (at, self.spot(at));
        self.is_trapping[at] = traps;
        self.traps.push(Traps { by, spot, traps });
        self.next[at] += 1;
    }

    fn unlink(&mut self, at: usize, of: usize) {
        let number = self.made[at];
        self.links.remove(&link_of(at, of));
        self.watches
            .retain(|watch| !watch.is_link || (watch.by, watch.whom) != (of, at));
        for watch in &mut self.watches {
            if watch.is_link && (watch.by, watch.whom) == (at, of) {
                watch.unlinks.get_or_insert(number);
            }
        }
    }

    fn is_exiting(&self, at: usize) -> bool {
        self.steps[at].iter().any(Step::is_exit)
    }

    /// What a signal does to a process: nothing where the link was given up.
    fn does(&self, at: usize, signal: Signal) -> Option<Does> {
        match signal {
            Signal::End(of) if !self.links.contains(&link_of(at, of)) => None,
            _ if self.is_trapping[at] => Some(Does::Tell),
            _ => Some(Does::End),
        }
    }

    /// Handles what has come up to an exit signal that ends the process, or, with `waits`, that may become a message.
    fn handle_held(&mut self, at: usize, waits: bool) {
        while let Some(item) = self.held[at].front().copied() {
            match item {
                _ if self.is_exiting(at) => {}
                Item::Message(message, kind) => self.deliver(at, (message, kind)),
                Item::Signal(signal) => match self.does(at, signal) {
                    Some(Does::End) => return,
                    Some(Does::Tell) if waits => return,
                    Some(Does::Tell) => self.becomes_message(at, signal),
                    None => {}
                },
            }
            self.held[at].pop_front();
        }
    }

    fn becomes_message(&mut self, at: usize, signal: Signal) {
        let of = match signal {
            Signal::End(of) => of,
            Signal::Call(call) => call.of,
        };
        if let Signal::End(of) = signal {
            self.links.remove(&link_of(at, of));
        }
        let message = self.tell(at, of, false, true);
        for call in &mut self.exit_calls {
            if Signal::Call(call.access()) == signal {
                call.number = self.told[at];
            }
        }
        self.deliver(at, (message, 0));
    }

    /// The process is ended by a signal: it has still to tell of its end.
    fn dies(&mut self, at: usize, by: Signal) {
        let ended_at = match self.act(at) {
            Some(Take(_) | TakeAfter(_)) if self.queues[at].is_empty() => EndedAt::Receive,
            Some(Take(_) | TakeAfter(_)) => EndedAt::BeforeReceive,
            _ => EndedAt::Step,
        };
        self.ended_at.insert(at, ended_at);
        if let Some(TakeAfter(_)) = self.act(at) {
            let nth = self.receives(at);
            self.timed.insert((at, nth));
        }
        self.steps[at].push(Step::Exit(Some(by)));
        self.next[at] = self.program[at].len() - 1;
        self.held[at].clear();
    }

    fn receives(&self, at: usize) -> u32 {
        let steps = self.steps[at].iter();
        let receives = steps.filter(|step| matches!(step, Step::Receive(_) | Step::Timeout));
        receives.count() as u32
    }

    fn ends(&mut self, at: usize) -> Vec<(usize, Item)> {
        self.access(at, End, End.to(at).expect("an access"));
        self.tells(at, End)
    }

    /// Something comes to a process, at once.
    fn come(&mut self, all: Vec<(usize, Item)>) {
        for (to, item) in all {
            if !self.has_ended[to] {
                self.held[to].push_back(item);
                self.handle_held(to, true);
            }
        }
    }

    /// The order of the run, as text.
    fn order(&self) -> String {
        let mut log = self.trace().log();
        for process in &mut log.processes {
            process
                .steps
                .retain(|step| !matches!(step, Step::After { .. }));
            // How many others came before it is no choice.
            for step in &mut process.steps {
                if let Step::Receive(Message::Told(told)) = step {
                    told.number = 1;
                }
            }
        }
        format!("{log}{:?}", self.saw)
    }

    fn act(&self, at: usize) -> Option<Act> {
        self.program[at].get(self.next[at]).copied()
    }

    fn fits(&self, at: usize, kind: Option<u8>) -> Option<usize> {
        let mut queue = self.queues[at].iter();
        queue.position(|(_, of)| kind.is_none_or(|kind| kind == *of))
    }

    fn deliver(&mut self, to: usize, (message, kind): (Message, u8)) {
        self.steps[to].push(Step::Deliver(message));
        self.queues[to].push((message, kind));
    }

    fn send(&mut self, from: usize, to: usize, kind: u8) -> (Message, u8) {
        self.sent[from] += 1;
        self.receivers[from].push(Some(to));
        self.steps[from].push(Step::Send(self.sent[from]));
        self.next[from] += 1;
        let number = self.sent[from];
        (Message::Sent { from, number }, kind)
    }

    fn take(&mut self, at: usize, place: usize, may_time_out: bool) {
        if may_time_out {
            self.timed.insert((at, self.receives(at)));
        }
        let (message, _) = self.queues[at].remove(place);
        self.steps[at].push(Step::Receive(message));
        self.next[at] += 1;
    }

    fn time_out(&mut self, at: usize) {
        self.steps[at].push(Step::Timeout);
        self.next[at] += 1;
    }

    fn trace(&self) -> Trace {
        let processes = self.steps.iter().zip(0..).map(|(steps, root)| Process {
            origin: Origin::Root(root),
            pid: None,
            known_as: None,
            steps: steps.clone(),
        });
        Trace {
            processes: processes.collect(),
        }
    }

    fn run(&self) -> Run {
        Run {
            trace: self.trace(),
            receivers: self.receivers.clone(),
            timed: self.timed.clone(),
            watches: self.watches.clone(),
            accesses: self.accesses.clone(),
            traps: self.traps.clone(),
            exit_calls: self.exit_calls.clone(),
            ended_at: self.ended_at.clone(),
            ..Run::default()
        }
    }

    /// All logs that the program has, by all schedules.
    pub(super) fn all_logs(&self, logs: &mut BTreeSet<String>, seen: &mut BTreeSet<String>) {
        if !seen.insert(format!(
            "{:?} {:?} {:?} {:?} {:?} {:?}",
            self.steps, self.queues, self.table, self.held, self.links, self.next
        )) {
            return;
        }
        let mut goes_on = false;
        for at in 0..self.program.len() {
            for next in self.after_step_of(at) {
                goes_on = true;
                next.all_logs(logs, seen);
            }
        }
        if !goes_on {
            logs.insert(self.order());
        }
    }

    /// What may come next, by a process.
    fn after_step_of(&self, at: usize) -> Vec<Machine<'p>> {
        let mut all = Vec::new();
        if let Some(Item::Signal(signal)) = self.held[at].front().copied() {
            let mut next = self.clone();
            next.held[at].pop_front();
            match self.does(at, signal) {
                Some(Does::End) => {
                    next.dies(at, signal);
                    let told = next.ends(at);
                    next.come(told);
                }
                Some(Does::Tell) => next.becomes_message(at, signal),
                None => {}
            }
            next.handle_held(at, true);
            all.push(next);
        }
        let mut next = self.clone();
        match self.act(at) {
            None => return all,
            Some(
                act @ (Read(_) | Change(_) | Skip(_) | Monitor(_) | Kill(_) | Link(_) | Unlink(_)
                | End),
            ) => {
                if act == End {
                    next.steps[at].push(Step::Exit(None));
                    next.held[at].clear();
                }
                next.access(at, act, act.to(at).expect("an access"));
                let told = next.tells(at, act);
                next.come(told);
                next.handle_held(at, true);
            }
            Some(Trap(traps)) => {
                next.trap(at, traps);
                next.handle_held(at, true);
            }
            Some(Send(to, kind)) => {
                let (message, kind) = next.send(at, to, kind);
                next.come(vec![(to, Item::Message(message, kind))]);
            }
            Some(Take(kind) | TakeAfter(kind)) => match self.fits(at, kind) {
                Some(place) => next.take(at, place, false),
                // It would find the signal.
                None if !self.held[at].is_empty() => return all,
                None if matches!(self.act(at), Some(TakeAfter(_))) => next.time_out(at),
                None => return all,
            },
        }
        all.push(next);
        all
    }

    /// Runs behind a prefix: the run, and its order; `None` where that is impossible.
    pub(super) fn follow(mut self, prefix: &Trace) -> Option<(Run, String)> {
        let mut told = Due::new(self.program.len());
        let mut due: Vec<VecDeque<Step>> = vec![VecDeque::new(); self.program.len()];
        for process in &prefix.processes {
            let Origin::Root(root) = process.origin else {
                unreachable!("no process is spawned")
            };
            let from = |at: usize| match prefix.processes[at].origin {
                Origin::Root(root) => Some(root as usize),
                Origin::Child { .. } => None,
            };
            let steps = moved(process.steps.clone(), from);
            due[root as usize] = told.without(root as usize, steps);
        }
        loop {
            let mut has_moved = false;
            for (at, due) in due.iter_mut().enumerate() {
                while self.follow_one(at, due, &told)? {
                    has_moved = true;
                }
            }
            // What nothing else ends, a time-out does.
            let late = (0..self.program.len())
                .find(|at| due[*at].is_empty() && matches!(self.act(*at), Some(TakeAfter(_))));
            match (has_moved, late) {
                (true, _) => {}
                (false, Some(at)) => self.time_out(at),
                (false, None) => break,
            }
        }
        due.iter()
            .all(VecDeque::is_empty)
            .then(|| (self.run(), self.order()))
    }

    fn follow_one(&mut self, at: usize, due: &mut VecDeque<Step>, told: &Due) -> Option<bool> {
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
            Trap(traps) => {
                self.trap(at, traps);
                Some(true)
            }
            Read(_) | Change(_) | Skip(_) | Monitor(_) | Kill(_) | Link(_) | Unlink(_) | End => {
                // It has ended before it tells of its end.
                if act == End && !self.is_exiting(at) {
                    if !matches!(due.front(), None | Some(Step::Exit(_))) {
                        return Some(false);
                    }
                    due.pop_front();
                    self.steps[at].push(Step::Exit(None));
                }
                if told.is_later(&self.made, at, due.is_empty()) {
                    return Some(false);
                }
                self.access(at, act, act.to(at)?);
                for (to, item) in self.tells(at, act) {
                    if !self.has_ended[to] {
                        self.held[to].push_back(item);
                    }
                }
                Some(true)
            }
            Send(to, kind) => {
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

    /// It is to be ended by this signal: whether it was; nothing where it waits.
    fn end_due(&mut self, at: usize, by: Signal) -> Option<bool> {
        // Behind the other, it would be a message.
        if self.act(at) == Some(Trap(false)) {
            self.trap(at, false);
            return Some(false);
        }
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
        at: usize,
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
    fn deliver_due(&mut self, at: usize, due: Message) -> bool {
        let is_it = |item: &Item| match (item, due) {
            (Item::Message(held, _), due) => is_same(held, &due),
            (Item::Signal(signal), Message::Told(told)) => {
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

/// What an exit signal does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    /// It ends the process.
    End,
    /// It becomes a message.
    Tell,
}

/// Whether two runs call a message so: what tells of a process is known by that process.
fn is_same(one: &Message, other: &Message) -> bool {
    match (one, other) {
        (Message::Told(one), Message::Told(other)) => (one.of, one.exit) == (other.of, other.exit),
        _ => one == other,
    }
}

/// What an access is to.
fn shared(to: To) -> Shared {
    match to.object < END {
        true => Shared::Table,
        false => Shared::Process,
    }
}

/// The accesses that a prefix tells of.
struct Due {
    /// What those of each process come after.
    after: Vec<Vec<(u64, Access)>>,
    /// How many each process makes.
    known: Vec<u64>,
    /// How many of them before it ends.
    before_exit: Vec<u64>,
}

impl Due {
    fn new(n: usize) -> Due {
        Due {
            after: vec![Vec::new(); n],
            known: vec![0; n],
            before_exit: vec![0; n],
        }
    }

    /// Takes what the steps of a process tell of accesses out of them.
    fn without(&mut self, at: usize, steps: Vec<Step>) -> VecDeque<Step> {
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
    fn is_later(&self, made: &[u64], at: usize, is_free: bool) -> bool {
        let number = made[at] + 1;
        let mut after = self.after[at].iter().filter(|(of, _)| *of <= number);
        let is_left = |at: usize| made[at] < self.known[at];
        after.any(|(_, other)| made[other.of] < other.number)
            || is_free && number > self.known[at] && (0..made.len()).any(is_left)
    }
}
