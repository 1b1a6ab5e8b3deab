//! Explorations of small programs, against all their schedules.

use std::collections::{BTreeSet, VecDeque};

use proptest::prelude::*;

use super::super::accesses::{Object, To};
use super::super::{Access, Message};
use super::*;
use crate::ring::Shared;

/// What a process of a program does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
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
    /// Ends: its last act.
    End,
}

use Act::{Change, End, Monitor, Read, Send, Skip, Take, TakeAfter};

impl Act {
    /// What it does to the table, or to what tells of the end of a process: that of process `at`.
    fn to(self, at: usize) -> Option<To> {
        let end_of = |of: usize, is_change| To {
            object: END + of as u64,
            is_change,
            part: None,
        };
        let (part, is_change) = match self {
            Monitor(of) => return Some(end_of(of, false)),
            End => return Some(end_of(at, true)),
            Read(key) => (key, false),
            Skip(key) => (Some(key), false),
            Change(key) => (key, true),
            Send(..) | Take(_) | TakeAfter(_) => return None,
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
type Program = Vec<Vec<Act>>;

/// A machine in the middle of a run.
#[derive(Clone)]
struct Machine<'p> {
    program: &'p Program,
    next: Vec<usize>,
    sent: Vec<u32>,
    queues: Vec<Vec<(Message, u8)>>,
    /// What came to a process that follows a prefix, before its turn.
    held: Vec<VecDeque<(Message, u8)>>,
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
}

/// One of the two is a change, of what both are to.
fn are_dependent(one: To, other: To) -> bool {
    let common = one.part.is_none() || other.part.is_none() || one.part == other.part;
    one.object == other.object && common && (one.is_change || other.is_change)
}

impl<'p> Machine<'p> {
    fn new(program: &'p Program) -> Machine<'p> {
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

    /// What it has monitored and ended, an access does: whom it tells what.
    fn tells(&mut self, at: usize, act: Act) -> Vec<(usize, Message, u8)> {
        let (told, of, gone) = match act {
            Monitor(of) if self.has_ended[of] => (vec![at], of, true),
            Monitor(of) => {
                self.monitors[of].push(at);
                self.watches.push(Watch {
                    by: at,
                    whom: of,
                    until: None,
                    is_link: false,
                    kills: false,
                });
                return Vec::new();
            }
            End => {
                self.has_ended[at] = true;
                (std::mem::take(&mut self.monitors[at]), at, false)
            }
            _ => return Vec::new(),
        };
        let told = told.into_iter().filter(|to| !self.has_ended[*to]);
        let told: Vec<usize> = told.collect();
        told.into_iter()
            .map(|to| {
                self.told[to] += 1;
                let message = Message::Told(super::super::Told {
                    number: self.told[to],
                    of: Some(of),
                    gone,
                    exit: false,
                });
                (to, message, u8::from(gone))
            })
            .collect()
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
        let nth = self.steps[at]
            .iter()
            .filter(|step| matches!(step, Step::Receive(_) | Step::Timeout));
        if may_time_out {
            self.timed.insert((at, nth.count() as u32));
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
            ..Run::default()
        }
    }

    /// All logs that the program has, by all schedules.
    fn all_logs(&self, logs: &mut BTreeSet<String>, seen: &mut BTreeSet<String>) {
        if !seen.insert(format!(
            "{:?} {:?} {:?}",
            self.steps, self.queues, self.table
        )) {
            return;
        }
        let mut goes_on = false;
        for at in 0..self.program.len() {
            let mut next = self.clone();
            match self.act(at) {
                None => continue,
                Some(act @ (Read(_) | Change(_) | Skip(_) | Monitor(_) | End)) => {
                    let to = act.to(at).expect("an access");
                    if matches!(act, End) {
                        next.steps[at].push(Step::Exit(None));
                    }
                    next.access(at, act, to);
                    for (to, message, kind) in next.tells(at, act) {
                        next.deliver(to, (message, kind));
                    }
                }
                Some(Send(to, kind)) => {
                    let message = next.send(at, to, kind);
                    if !next.has_ended[to] {
                        next.deliver(to, message);
                    }
                }
                Some(Take(kind) | TakeAfter(kind)) => match self.fits(at, kind) {
                    Some(place) => next.take(at, place, false),
                    None if matches!(self.act(at), Some(TakeAfter(_))) => next.time_out(at),
                    None => continue,
                },
            }
            goes_on = true;
            next.all_logs(logs, seen);
        }
        if !goes_on {
            logs.insert(self.order());
        }
    }

    /// Runs behind a prefix: the run, and its order; `None` where that is impossible.
    fn follow(mut self, prefix: &Trace) -> Option<(Run, String)> {
        let mut told = Told::new(self.program.len());
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

    fn follow_one(&mut self, at: usize, due: &mut VecDeque<Step>, told: &Told) -> Option<bool> {
        match due.front() {
            Some(Step::Deliver(message)) => {
                let found = self.held[at]
                    .iter()
                    .position(|(held, _)| is_same(held, message));
                if let Some(found) = found {
                    let message = self.held[at].remove(found)?;
                    self.deliver(at, message);
                    due.pop_front();
                    return Some(true);
                }
            }
            None => {
                while let Some(message) = self.held[at].pop_front() {
                    self.deliver(at, message);
                }
            }
            _ => {}
        }
        let Some(act) = self.act(at) else {
            return Some(false);
        };
        match act {
            Read(_) | Change(_) | Skip(_) | Monitor(_) | End => {
                // It has ended before it tells of its end.
                if act == End && !self.steps[at].iter().any(Step::is_exit) {
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
                for (to, message, kind) in self.tells(at, act) {
                    self.held[to].push_back((message, kind));
                }
                Some(true)
            }
            Send(to, kind) => {
                let message = self.send(at, to, kind);
                self.held[to].push_back(message);
                let made = due.pop_front();
                // A sending stands behind deliveries that are for a later receive.
                assert!(matches!(made, None | Some(Step::Send(_))), "{made:?}");
                Some(true)
            }
            Take(kind) | TakeAfter(kind) => {
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
                    None if due.front() == Some(&Step::Timeout) && may_time_out => {
                        self.time_out(at)
                    }
                    _ => return Some(false),
                }
                due.pop_front();
                Some(true)
            }
        }
    }
}

/// Whether two runs call a message so: what tells of a process is known by that process.
fn is_same(one: &Message, other: &Message) -> bool {
    match (one, other) {
        (Message::Told(one), Message::Told(other)) => one.of == other.of,
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
struct Told {
    /// What those of each process come after.
    after: Vec<Vec<(u64, Access)>>,
    /// How many each process makes.
    known: Vec<u64>,
}

impl Told {
    fn new(n: usize) -> Told {
        Told {
            after: vec![Vec::new(); n],
            known: vec![0; n],
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

/// The logs of all runs of an exploration, and how many runs were impossible. `workers` runs are made at once.
fn explored(program: &Program, workers: usize) -> (Vec<String>, usize) {
    let mut explorer = Explorer::new();
    let (mut logs, mut impossible) = (Vec::new(), 0);
    let mut jobs: VecDeque<Job> = VecDeque::new();
    loop {
        let next = match jobs.len() < workers {
            true => explorer.next_run(),
            false => Next::Wait,
        };
        match next {
            Next::Job(job) => {
                assert_eq!(job.prefix.check(), Ok(()), "{}", job.prefix);
                jobs.push_back(job);
                continue;
            }
            Next::Wait => {}
            Next::Done => return (logs, impossible),
        }
        let job = jobs.pop_front().expect("a run to wait for");
        match Machine::new(program).follow(&job.prefix) {
            None => {
                // An access can always come first.
                assert!(
                    job.turned.is_some(),
                    "{program:?} cannot do\n{}",
                    job.prefix
                );
                explorer.was_impossible(&job);
                impossible += 1;
            }
            Some((run, log)) => {
                let ran = explorer.has_run(&job, &run, |_| false);
                assert_eq!(ran, Ok(Ran::New), "{log}behind\n{}", job.prefix);
                logs.push(log);
            }
        }
    }
}

fn check(program: &Program) {
    let mut all = BTreeSet::new();
    Machine::new(program).all_logs(&mut all, &mut BTreeSet::new());
    for workers in [1, 3] {
        let (logs, _) = explored(program, workers);
        let once: BTreeSet<String> = logs.iter().cloned().collect();
        assert_eq!(
            once.len(),
            logs.len(),
            "an order was run twice: {program:?}"
        );
        let missing: Vec<&String> = all.difference(&once).collect();
        assert!(missing.is_empty(), "{program:?} also does\n{}", missing[0]);
    }
}

/// Each of so many processes sends a message to the first one, which takes so many.
fn senders(n: usize, taken: usize) -> Program {
    let sender = vec![Send(0, 0)];
    let mut program = vec![sender; n + 1];
    program[0] = vec![Take(None); taken];
    program
}

#[test]
fn as_many_orders_are_run_as_there_are() {
    for (program, orders) in [
        (vec![vec![]], 1),
        (senders(1, 1), 1),
        (senders(3, 3), 6),
        (senders(5, 5), 120),
        // The others are never looked at.
        (senders(4, 1), 4),
        (senders(4, 2), 12),
        // A time-out, or the message.
        (vec![vec![TakeAfter(None)], vec![Send(0, 0)]], 2),
        // Nobody takes the message: then the receive times out.
        (vec![vec![TakeAfter(Some(1))], vec![Send(0, 0)]], 1),
        // What was sent first to the same process comes first, and so does what caused the other.
        (
            vec![vec![Take(None), Take(None)], vec![Send(0, 0), Send(0, 0)]],
            1,
        ),
        (
            vec![
                vec![Take(None), Take(None)],
                vec![Send(0, 0), Send(2, 0)],
                vec![Take(None), Send(0, 0)],
            ],
            1,
        ),
        // It is there before the receive begins.
        (vec![vec![Send(0, 0), TakeAfter(None)]], 1),
        // The second message of a sender may be taken first where the receive has no clause for the first one.
        (
            vec![
                vec![Take(Some(1)), Take(None)],
                vec![Send(0, 1)],
                vec![Send(0, 0), Send(0, 1)],
            ],
            2,
        ),
        // What is taken last comes before what another sender's first message, which is taken before it, came behind.
        (
            vec![
                vec![Take(Some(1)), Take(None)],
                vec![Send(0, 0), Send(0, 1)],
                vec![Send(0, 0)],
            ],
            2,
        ),
    ] {
        let (logs, _) = explored(&program, 1);
        assert_eq!(logs.len(), orders, "{program:?}");
        check(&program);
    }
}

#[test]
fn what_a_receive_cannot_take_is_tried_once() {
    // The first process takes messages of kind 1 only; those of kind 0 are tried in each state, but not twice.
    let program = vec![
        vec![Take(Some(1)), Take(Some(1))],
        vec![Send(0, 1)],
        vec![Send(0, 1)],
        vec![Send(0, 0)],
    ];
    let (logs, impossible) = explored(&program, 1);
    assert_eq!(logs.len(), 2);
    assert!(impossible <= 3, "{impossible} runs were impossible");
}

#[test]
fn accesses_have_as_many_orders_as_one_can_count() {
    let (get, put) = (Read(Some(1)), Change(Some(1)));
    for (program, orders) in [
        // Reads have no order, and accesses to two keys have none.
        (vec![vec![get], vec![get], vec![get]], 1),
        (vec![vec![put], vec![Change(Some(2))]], 1),
        (vec![vec![put], vec![Change(None)]], 2),
        (vec![vec![put], vec![get]], 2),
        (vec![vec![put], vec![get], vec![get]], 4),
        (vec![vec![put], vec![put], vec![put]], 6),
        // Each writes once it has read: 6 orders of 4 steps, of which those with both reads first are 4 of 2 orders.
        (vec![vec![get, put], vec![get, put]], 4),
        // The message comes after the change, and nothing can come before it.
        (vec![vec![put, Send(1, 0)], vec![Take(None), get]], 1),
        // The reader leaves the message out if it reads what was changed.
        (
            vec![vec![put], vec![Skip(1), Send(2, 0)], vec![TakeAfter(None)]],
            3,
        ),
    ] {
        let (logs, impossible) = explored(&program, 1);
        assert_eq!((logs.len(), impossible), (orders, 0), "{program:?}");
        check(&program);
    }
}

prop_compose! {
    fn act()(to in 0..3_usize, kind in 0..2_u8, what in 0..5_u8) -> Act {
        match what {
            0 | 1 => Send(to, kind),
            2 => Take(None),
            3 => Take(Some(kind)),
            _ => TakeAfter(Some(kind)),
        }
    }
}

#[test]
fn monitors_of_what_ends_have_as_many_orders_as_one_can_count() {
    check(&vec![
        vec![Change(Some(1)), End],
        vec![Change(None), Monitor(0), Take(Some(1)), End],
        vec![Send(1, 1), Change(None), End],
    ]);
    for (program, orders) in [
        // It is monitored, or it is gone.
        (vec![vec![Monitor(1), Take(None), End], vec![End]], 2),
        (vec![vec![Monitor(1), Take(Some(0)), End], vec![End]], 2),
        // Nobody looks.
        (vec![vec![End], vec![End]], 1),
        // It ends when it has been monitored for sure.
        (
            vec![
                vec![Monitor(1), Send(1, 0), Take(None)],
                vec![Take(None), End],
            ],
            1,
        ),
        // It has ended for sure.
        (
            vec![
                vec![Take(None), Take(None)],
                vec![Send(2, 0), End],
                vec![Monitor(1), Take(Some(1)), Send(0, 0)],
            ],
            2,
        ),
        // Two monitor it.
        (
            vec![
                vec![Monitor(2), Take(None)],
                vec![Monitor(2), Take(None)],
                vec![End],
            ],
            4,
        ),
        // What it has sent comes before its end.
        (
            vec![
                vec![Monitor(1), Take(None), Take(None)],
                vec![Send(0, 1), End],
            ],
            2,
        ),
    ] {
        let (logs, _) = explored(&program, 1);
        assert_eq!(logs.len(), orders, "{program:?}");
        check(&program);
    }
}

prop_compose! {
    fn ending_act()(is_monitor in 0..3_u8, other in any_act(), of in 0..3_usize) -> Act {
        match is_monitor {
            0 => Monitor(of),
            _ => other,
        }
    }
}

prop_compose! {
    fn any_act()(is_access: bool, other in act(), key in 0..2_u64, what in 0..9_u8) -> Act {
        match what {
            _ if !is_access => other,
            0..3 => Read(Some(key)),
            3..6 => Change(Some(key)),
            6 => Read(None),
            7 => Change(None),
            _ => Skip(key),
        }
    }
}

proptest! {
    #[test]
    fn all_orders_of_random_programs_are_run_once(
        program in proptest::collection::vec(proptest::collection::vec(act(), 0..5), 3),
    ) {
        check(&program);
    }

    #[test]
    fn all_orders_of_random_programs_with_monitors_are_run_once(
        mut program in proptest::collection::vec(proptest::collection::vec(ending_act(), 0..4), 3),
    ) {
        for (at, acts) in program.iter_mut().enumerate() {
            // Nobody monitors itself.
            acts.retain(|act| *act != Monitor(at));
            acts.push(End);
        }
        check(&program);
    }

    #[test]
    fn all_orders_of_random_programs_with_accesses_are_run_once(
        program in proptest::collection::vec(proptest::collection::vec(any_act(), 0..4), 3),
    ) {
        check(&program);
    }
}
