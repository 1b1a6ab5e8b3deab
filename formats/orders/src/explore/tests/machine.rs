//! A machine that runs small programs: in all schedules, or behind a prefix.

mod follow;

use std::collections::{BTreeSet, VecDeque};

use beamline_formats::ring::Shared;
use rustc_hash::{FxHashMap, FxHashSet};

use super::super::super::accesses::{Object, To};
use super::super::super::tests::p;
use super::super::super::{
    Access, Accesses, Message, Origin, PerProcess, Process, ProcessIndex, Signal, Step,
    SystemMessage, Trace,
};
use super::super::{EndedAt, Ends, ExitCall, Run, Traps, Watch};

/// What a process of a program does. It names others by their places in the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// Sends a message of a kind to a process.
    Send(usize, u8),
    /// Takes a message of a kind, or of any.
    Take(Option<u8>),
    /// As [`Act::Take`], but it may time out.
    TakeAfter(Option<u8>),
    /// Reads a key of the table that all share, or all of it.
    Read(Option<u64>),
    /// Changes it.
    Change(Option<u64>),
    /// Reads a key, and leaves out its next act if another process was the last to change that key.
    Skip(u64),
    /// Monitors a process: a message of kind 0 tells of its end, and one of kind 1 that it is gone.
    Monitor(usize),
    /// Calls `exit/2` with a process, with a reason that ends whoever does not trap exits.
    Kill(usize),
    /// Calls `exit/2` with the reason `normal`, which is lost to a process that does not trap exits.
    Ask(usize),
    /// Links to a process, if that one has not ended: the end of each of the two ends the other one.
    Link(usize),
    /// Gives up the link to a process.
    Unlink(usize),
    /// Begins to trap exits: signals are messages of kind 0 then.
    Trap,
    /// Fails: its last act.
    End,
    /// Ends normally: its last act.
    Stop,
}

use Act::{
    Ask, Change, End, Kill, Link, Monitor, Read, Send, Skip, Stop, Take, TakeAfter, Trap, Unlink,
};

impl Act {
    /// What process `at` does with it to the table, or to what tells of the end of a process, or whether it traps exits.
    fn to(self, at: ProcessIndex) -> Vec<To> {
        let (part, is_change) = match self {
            Monitor(of) | Kill(of) => return vec![end_of(p(of), false)],
            Link(of) => return vec![end_of(p(of), false), link(at, p(of))],
            Unlink(of) => return vec![link(at, p(of))],
            Ask(of) => return vec![end_of(p(of), false), trapping(p(of), false)],
            Trap => return vec![trapping(at, true)],
            End | Stop => return vec![end_of(at, true)],
            Read(key) => (key, false),
            Skip(key) => (Some(key), false),
            Change(key) => (key, true),
            Send(..) | Take(_) | TakeAfter(_) => return Vec::new(),
        };
        let object = 1;
        vec![To {
            object,
            is_change,
            part,
        }]
    }
}

/// The number of the object that tells of the end of the first process.
const END: u64 = 100;
/// The number of the one that tells whether the first process traps exits.
const TRAPPING: u64 = 200;

fn end_of(process: ProcessIndex, is_change: bool) -> To {
    To {
        object: END + process.index() as u64,
        is_change,
        part: None,
    }
}

fn trapping(process: ProcessIndex, is_change: bool) -> To {
    To {
        object: TRAPPING + process.index() as u64,
        ..end_of(process, is_change)
    }
}

/// The number of the one that stands for the link of the first process with itself.
const LINK: u64 = 300;

/// A change of whether two processes are linked.
fn link(one: ProcessIndex, other: ProcessIndex) -> To {
    let (one, other) = link_of(one, other);
    To {
        object: LINK + (10 * one.index() + other.index()) as u64,
        ..end_of(one, true)
    }
}

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

/// States of a program of which all schedules are tried. A few random programs have many more, and take a minute each.
const STATES_MAX: usize = 30_000;

/// A machine in the middle of a run.
#[derive(Clone)]
pub(super) struct Machine<'p> {
    program: &'p Program,
    next: PerProcess<usize>,
    sent: PerProcess<u32>,
    queues: PerProcess<Vec<(Message, u8)>>,
    /// What came to a process, and is not handled: behind an exit signal, or before its turn where it follows a prefix.
    held: PerProcess<VecDeque<Item>>,
    /// What ends tell, on its way: of whom, and to whom. To each it comes by itself.
    on_way: Vec<(ProcessIndex, ProcessIndex, Item)>,
    steps: PerProcess<Vec<Step>>,
    receivers: PerProcess<Vec<Option<ProcessIndex>>>,
    timed: FxHashSet<(ProcessIndex, u32)>,
    /// All accesses to the table, in their order.
    table: Vec<(Access, To)>,
    /// How many each process has made.
    made: PerProcess<u64>,
    accesses: Accesses,
    /// What each access came after, as the definition says.
    saw: PerProcess<Vec<Vec<Access>>>,
    has_ended: PerProcess<bool>,
    /// The processes that monitor each process.
    monitors: PerProcess<Vec<ProcessIndex>>,
    watches: Vec<Watch<ProcessIndex>>,
    /// How many messages have told each process of others.
    told: PerProcess<u32>,
    /// Pairs of linked processes.
    links: BTreeSet<(ProcessIndex, ProcessIndex)>,
    is_trapping: PerProcess<bool>,
    traps: Vec<Traps<ProcessIndex>>,
    exit_calls: Vec<ExitCall<ProcessIndex>>,
    ended_at: FxHashMap<ProcessIndex, EndedAt>,
}

fn link_of(one: ProcessIndex, other: ProcessIndex) -> (ProcessIndex, ProcessIndex) {
    (one.min(other), one.max(other))
}

/// One of the two is a change, of what both are to.
fn are_dependent(one: To, other: To) -> bool {
    let common = one.part.is_none() || other.part.is_none() || one.part == other.part;
    one.object == other.object && common && (one.is_change || other.is_change)
}

impl<'p> Machine<'p> {
    pub(super) fn new(program: &'p Program) -> Machine<'p> {
        let all: PerProcess<()> = program.iter().map(|_| ()).collect();
        Machine {
            program,
            next: all.map(|_| 0),
            sent: all.map(|_| 0),
            queues: all.map(|_| Vec::new()),
            held: all.map(|_| VecDeque::new()),
            on_way: Vec::new(),
            steps: all.map(|_| Vec::new()),
            receivers: all.map(|_| Vec::new()),
            timed: FxHashSet::default(),
            table: Vec::new(),
            made: all.map(|_| 0),
            accesses: Accesses::default(),
            saw: all.map(|_| Vec::new()),
            has_ended: all.map(|_| false),
            monitors: all.map(|_| Vec::new()),
            watches: Vec::new(),
            told: all.map(|_| 0),
            links: BTreeSet::new(),
            is_trapping: all.map(|_| false),
            traps: Vec::new(),
            exit_calls: Vec::new(),
            ended_at: FxHashMap::default(),
        }
    }

    fn access(&mut self, at: ProcessIndex, act: Act) {
        let mut all = act.to(at);
        if act == Stop {
            let links = self.watches.iter().filter(|it| it.is_link && it.whom == at);
            let links = links.filter(|it| it.unlinks.is_none());
            all.extend(links.map(|it| trapping(it.by, false)));
        }
        if let Unlink(of) = act
            && self.is_watching(at, p(of))
        {
            all.push(end_of(p(of), false));
        }
        self.made[at] += 1;
        let access = Access {
            of: at,
            number: self.made[at],
        };
        let others = self.next.indexes().filter(|of| *of != at);
        let last = |of| {
            let mut before = self.table.iter().rev();
            before.find(|(other, done)| {
                other.of == of && all.iter().any(|to| are_dependent(*to, *done))
            })
        };
        let saw: Vec<Access> = others.filter_map(last).map(|(other, _)| *other).collect();
        let own = self.steps[at].iter().filter(|step| step.is_own()).count();
        for to in &all {
            self.accesses.insert(at, (access.number, own), None, *to);
        }
        // As a run tells it: of the whole table.
        if let Some((other, _)) = self.table.last().filter(|(other, _)| other.of != at) {
            let (access, other) = (access.number, *other);
            self.steps[at].push(Step::After { access, other });
        }
        let mut changes = self.table.iter().rev();
        let changed = changes.find(|(_, done)| done.is_change && are_dependent(all[0], *done));
        let skips = matches!(act, Skip(_)) && changed.is_some_and(|(other, _)| other.of != at);
        self.next[at] += 1 + usize::from(skips);
        self.saw[at].push(saw);
        for to in all {
            self.table.push((access, to));
            let (shared, name) = (shared(to), String::new());
            self.accesses.name(to.object, Object { shared, name }, None);
        }
    }

    /// The processes that are linked to a process, and have not heard of its end.
    fn linked_to(&self, at: ProcessIndex) -> impl Iterator<Item = ProcessIndex> {
        let links = self.links.iter();
        let links = links.filter(move |(one, other)| [*one, *other].contains(&at));
        links.map(move |(one, other)| if *one == at { *other } else { *one })
    }

    /// What it has monitored, linked to, called and ended, an access does: what comes to whom.
    fn tells(&mut self, at: ProcessIndex, act: Act) -> Vec<(ProcessIndex, Item)> {
        let other = match act {
            Monitor(of) | Link(of) | Unlink(of) | Kill(of) | Ask(of) => p(of),
            _ => at,
        };
        match act {
            Monitor(_) if self.has_ended[other] => vec![(at, self.down(at, other, true))],
            Monitor(_) => {
                self.monitors[other].push(at);
                self.watch(at, other, None, false);
                Vec::new()
            }
            Link(_) => {
                if !self.has_ended[other] && !self.is_watching(at, other) {
                    self.links.insert(link_of(at, other));
                    self.watch(at, other, Some(self.made[at]), true);
                    self.watch(other, at, None, true);
                }
                Vec::new()
            }
            Unlink(_) => {
                self.unlink(at, other);
                Vec::new()
            }
            Trap => {
                let (by, access, traps) = (at, self.made[at], true);
                self.is_trapping[by] = traps;
                self.traps.push(Traps { by, access, traps });
                Vec::new()
            }
            Kill(_) => vec![(other, self.exit_call(at, other, Ends::NotTrapping))],
            Ask(_) if !self.is_trapping[other] => Vec::new(),
            Ask(_) => vec![(other, self.exit_call(at, other, Ends::Nobody))],
            End | Stop => {
                self.has_ended[at] = true;
                let exit = Item::Signal(Signal::End(at));
                let hears = |by: &ProcessIndex| act == End || self.is_trapping[*by];
                let mut all: Vec<_> = self
                    .linked_to(at)
                    .filter(hears)
                    .map(|by| (by, exit))
                    .collect();
                for to in std::mem::take(&mut self.monitors[at]) {
                    if !self.has_ended[to] {
                        all.push((to, self.down(to, at, false)));
                    }
                }
                for watch in self.watches.iter_mut().filter(|it| it.whom == at) {
                    watch.fails = act == End;
                    watch.is_lost = watch.is_link && !watch.fails && !self.is_trapping[watch.by];
                }
                all
            }
            _ => Vec::new(),
        }
    }

    fn exit_call(&mut self, from: ProcessIndex, to: ProcessIndex, ends: Ends) -> Item {
        let (of, access) = (from, self.made[from]);
        self.exit_calls.push(ExitCall {
            from,
            access,
            to,
            number: 0,
            ends,
        });
        let number = access;
        Item::Signal(Signal::Call(Access { of, number }))
    }

    fn watch(&mut self, by: ProcessIndex, whom: ProcessIndex, links: Option<u64>, is_link: bool) {
        self.watches.push(Watch {
            by,
            whom,
            until: None,
            is_link,
            links,
            unlinks: None,
            fails: false,
            is_lost: false,
            finds_gone: None,
        });
    }

    fn down(&mut self, to: ProcessIndex, of: ProcessIndex, gone: bool) -> Item {
        Item::Message(self.tell(to, of, gone, false), u8::from(gone))
    }

    fn tell(&mut self, to: ProcessIndex, of: ProcessIndex, gone: bool, exit: bool) -> Message {
        self.told[to] += 1;
        Message::SystemMessage(SystemMessage {
            number: self.told[to],
            of: Some(of),
            gone,
            exit,
            set: None,
        })
    }

    fn unlink(&mut self, at: ProcessIndex, of: ProcessIndex) {
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

    /// Whether a process is linked to another one, which may have ended.
    fn is_watching(&self, by: ProcessIndex, whom: ProcessIndex) -> bool {
        let mut links = self.watches.iter().filter(|it| it.is_link);
        links.any(|it| (it.by, it.whom) == (by, whom) && it.unlinks.is_none())
    }

    fn is_exiting(&self, at: ProcessIndex) -> bool {
        self.steps[at].iter().any(Step::is_exit)
    }

    /// What a signal does to a process; `None` where the link was given up.
    fn does(&self, at: ProcessIndex, signal: Signal) -> Option<Does> {
        match signal {
            Signal::End(of) if !self.links.contains(&link_of(at, of)) => None,
            // One with the reason `normal` was sent while it trapped exits.
            Signal::End(of) if self.act_of_end(of) == Stop => Some(Does::Tell),
            Signal::Call(call) if self.is_asking(call) => Some(Does::Tell),
            _ if self.is_trapping[at] => Some(Does::Tell),
            _ => Some(Does::End),
        }
    }

    /// With what a process has ended that told of it: not with `normal` where a signal ended it.
    fn act_of_end(&self, at: ProcessIndex) -> Act {
        let by_signal = self.steps[at]
            .iter()
            .any(|step| matches!(step, Step::Exit(Some(_))));
        match self.program[at.index()].last() {
            Some(Stop) if !by_signal => Stop,
            _ => End,
        }
    }

    fn is_asking(&self, call: Access) -> bool {
        let mut calls = self.exit_calls.iter();
        calls.any(|other| other.access() == call && other.ends == Ends::Nobody)
    }

    /// Handles what has come up to an exit signal that ends the process, or, with `waits`, that may become a message.
    fn handle_held(&mut self, at: ProcessIndex, waits: bool) {
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

    fn becomes_message(&mut self, at: ProcessIndex, signal: Signal) {
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
    fn dies(&mut self, at: ProcessIndex, by: Signal) {
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
        self.next[at] = self.program[at.index()].len() - 1;
        self.held[at].clear();
    }

    fn receives(&self, at: ProcessIndex) -> u32 {
        let steps = self.steps[at].iter();
        let receives = steps.filter(|step| matches!(step, Step::Receive(_) | Step::Timeout));
        receives.count() as u32
    }

    fn ends(&mut self, at: ProcessIndex) -> Vec<(ProcessIndex, Item)> {
        self.access(at, End);
        self.tells(at, End)
    }

    /// Something comes to a process, at once.
    fn come(&mut self, all: Vec<(ProcessIndex, Item)>) {
        for (to, item) in all {
            if !self.has_ended[to] {
                self.held[to].push_back(item);
                self.handle_held(to, true);
            }
        }
    }

    /// What an access of this process tells: that another one is gone comes to it behind what the end of that one tells.
    fn comes_behind(&mut self, at: ProcessIndex, act: Act, told: Vec<(ProcessIndex, Item)>) {
        let is_on_way = |of: ProcessIndex| self.on_way.iter().any(|one| (one.0, one.1) == (of, at));
        match act {
            Monitor(of) if is_on_way(p(of)) => self.tells_end(p(of), told),
            _ => self.come(told),
        }
    }

    /// A process ends: its watchers hear of it one after the other.
    fn tells_end(&mut self, at: ProcessIndex, all: Vec<(ProcessIndex, Item)>) {
        let all = all.into_iter().map(|(to, item)| (at, to, item));
        self.on_way.extend(all);
    }

    /// What may come next of what the end of a process tells: the first thing to each.
    fn after_word_of(&self, at: ProcessIndex) -> Vec<Machine<'p>> {
        let mut all = Vec::new();
        let mut told = BTreeSet::new();
        for (place, (of, to, item)) in self.on_way.iter().enumerate() {
            if *of == at && told.insert(*to) {
                let mut next = self.clone();
                next.on_way.remove(place);
                next.come(vec![(*to, *item)]);
                all.push(next);
            }
        }
        all
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
                if let Step::Receive(Message::SystemMessage(told)) = step {
                    told.number = 1;
                }
            }
        }
        format!("{log}{:?}", self.saw)
    }

    fn act(&self, at: ProcessIndex) -> Option<Act> {
        self.program[at.index()].get(self.next[at]).copied()
    }

    fn fits(&self, at: ProcessIndex, kind: Option<u8>) -> Option<usize> {
        let mut queue = self.queues[at].iter();
        queue.position(|(_, of)| kind.is_none_or(|kind| kind == *of))
    }

    fn deliver(&mut self, to: ProcessIndex, (message, kind): (Message, u8)) {
        self.steps[to].push(Step::Deliver(message));
        self.queues[to].push((message, kind));
    }

    fn send(&mut self, from: ProcessIndex, to: ProcessIndex, kind: u8) -> (Message, u8) {
        self.sent[from] += 1;
        self.receivers[from].push(Some(to));
        self.steps[from].push(Step::Send(self.sent[from]));
        self.next[from] += 1;
        let number = self.sent[from];
        (Message::Sent { from, number }, kind)
    }

    fn take(&mut self, at: ProcessIndex, place: usize, may_time_out: bool) {
        if may_time_out {
            self.timed.insert((at, self.receives(at)));
        }
        let (message, _) = self.queues[at].remove(place);
        self.steps[at].push(Step::Receive(message));
        self.next[at] += 1;
    }

    fn time_out(&mut self, at: ProcessIndex) {
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

    /// All logs that the program has, by all schedules. `None` if it has more than [`STATES_MAX`] states.
    pub(super) fn all_logs(&self) -> Option<BTreeSet<String>> {
        let (mut logs, mut seen) = (BTreeSet::new(), BTreeSet::new());
        self.add_logs(&mut logs, &mut seen);
        (seen.len() <= STATES_MAX).then_some(logs)
    }

    fn add_logs(&self, logs: &mut BTreeSet<String>, seen: &mut BTreeSet<String>) {
        if seen.len() > STATES_MAX
            || !seen.insert(format!(
                "{:?} {:?} {:?} {:?} {:?} {:?} {:?}",
                self.steps, self.queues, self.table, self.held, self.links, self.next, self.on_way
            ))
        {
            return;
        }
        let mut goes_on = false;
        for at in self.next.indexes() {
            for next in self.after_step_of(at) {
                goes_on = true;
                next.add_logs(logs, seen);
            }
        }
        if !goes_on {
            logs.insert(self.order());
        }
    }

    /// What may come next, by a process.
    fn after_step_of(&self, at: ProcessIndex) -> Vec<Machine<'p>> {
        let mut all = self.after_word_of(at);
        if let Some(Item::Signal(signal)) = self.held[at].front().copied() {
            let mut next = self.clone();
            next.held[at].pop_front();
            match self.does(at, signal) {
                Some(Does::End) => {
                    next.dies(at, signal);
                    let told = next.ends(at);
                    next.tells_end(at, told);
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
                act @ (Read(_) | Change(_) | Skip(_) | Monitor(_) | Kill(_) | Ask(_) | Link(_)
                | Unlink(_) | Trap | End | Stop),
            ) => {
                if matches!(act, End | Stop) {
                    next.steps[at].push(Step::Exit(None));
                    next.held[at].clear();
                }
                next.access(at, act);
                let told = next.tells(at, act);
                match act {
                    End | Stop => next.tells_end(at, told),
                    _ => next.comes_behind(at, act, told),
                }
                next.handle_held(at, true);
            }
            Some(Send(to, kind)) => {
                let to = p(to);
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
}

/// What an exit signal does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    /// It ends the process.
    End,
    /// It becomes a message.
    Tell,
}

/// What an access is to.
fn shared(to: To) -> Shared {
    match to.object {
        ..END => Shared::Table,
        END..TRAPPING => Shared::Process,
        TRAPPING..LINK => Shared::Trapping,
        LINK.. => Shared::Link,
    }
}
