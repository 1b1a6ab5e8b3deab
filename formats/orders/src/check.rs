//! Refuses traces that no run can have.

use beamline_formats::ring::Id;
use rustc_hash::{FxHashMap, FxHashSet};

use super::{
    Access, Message, Origin, PerProcess, Process, ProcessIndex, Step, StepIndex, SystemMessage,
    Trace,
};

impl Trace {
    /// Whether the steps fit together.
    ///
    /// # Errors
    /// One line that names the process and the step that no run can have.
    pub fn check(&self) -> Result<(), String> {
        let mut checker = Checker {
            trace: self,
            sent: self.processes.map(sendings),
            spawned: self.processes.map(|_| false),
            delivered: FxHashMap::default(),
            received: FxHashSet::default(),
        };
        for at in self.processes.indexes() {
            checker.process(at)?;
        }
        self.check_pids()?;
        self.check_causes()?;
        for (at, process) in self.processes.entries() {
            if let Origin::Child { of, .. } = process.origin
                && !checker.spawned[at]
            {
                let (parent, child) = (self.name(of), self.name(at));
                return Err(format!("{parent} does not spawn {child}"));
            }
        }
        Ok(())
    }
}

impl Trace {
    /// No two processes may have one pid, and the pid of a process without a parent is in its reference.
    fn check_pids(&self) -> Result<(), String> {
        let mut holders = FxHashMap::default();
        for (at, process) in self.processes.entries() {
            let Some(pid) = process.pid else { continue };
            let is_other = matches!(process.origin, Origin::Root(root) if root != pid);
            let holder = holders.insert(pid, at);
            if is_other || holder.is_some() {
                let (name, pid) = (self.name(at), Id::Process(pid));
                return Err(match holder {
                    Some(holder) => format!("{name} cannot be {pid}: {} is", self.name(holder)),
                    None => format!("{name} cannot be {pid}"),
                });
            }
        }
        Ok(())
    }
}

impl Trace {
    /// Nobody may wait for what is done only behind that: some order of all steps has each message sent before it comes,
    /// and each process spawned before it begins.
    fn check_causes(&self) -> Result<(), String> {
        let mut made = Made {
            trace: self,
            next: self.processes.map(|_| StepIndex::FIRST),
            sent: self.processes.map(|_| 0),
            waiting: FxHashMap::default(),
        };
        let all = self.processes.entries();
        let roots = all.filter(|(_, process)| matches!(process.origin, Origin::Root(_)));
        let mut ready: Vec<ProcessIndex> = roots.map(|(at, _)| at).collect();
        while let Some(at) = ready.pop() {
            made.run(at, &mut ready);
        }
        let first = made.waiting.values().flatten().min();
        let Some(&at) = first else { return Ok(()) };
        let step = &self.processes[at].steps[made.next[at].index()];
        let (name, step) = (self.name(at), self.step(at, step));
        Err(format!(
            "{name} cannot {step}: the message is sent only behind that"
        ))
    }
}

/// The steps that can be made.
struct Made<'t> {
    trace: &'t Trace,
    /// The next step of each process.
    next: PerProcess<StepIndex>,
    sent: PerProcess<u32>,
    /// Processes that wait for a message: its sender, and the number of the sending.
    waiting: FxHashMap<(ProcessIndex, u32), Vec<ProcessIndex>>,
}

impl Made<'_> {
    /// Makes the steps of a process until it waits; then others are `ready`.
    fn run(&mut self, at: ProcessIndex, ready: &mut Vec<ProcessIndex>) {
        while let Some(step) = self.trace.processes[at].step(self.next[at]) {
            match step {
                Step::Spawn(child) => ready.push(*child),
                Step::Send(number) => {
                    self.sent[at] = *number;
                    ready.extend(self.waiting.remove(&(at, *number)).unwrap_or_default());
                }
                Step::Deliver(Message::Sent { from, number })
                | Step::Receive(Message::Sent { from, number })
                    if self.sent[*from] < *number =>
                {
                    self.waiting.entry((*from, *number)).or_default().push(at);
                    return;
                }
                _ => {}
            }
            self.next[at] = self.next[at].next();
        }
    }
}

/// A message; one that no process has sent is its receiver's.
type Known = (Option<ProcessIndex>, Message);

struct Checker<'t> {
    trace: &'t Trace,
    /// How many messages each process sends.
    sent: PerProcess<u32>,
    spawned: PerProcess<bool>,
    /// The messages that are delivered, with their receivers.
    delivered: FxHashMap<Known, ProcessIndex>,
    received: FxHashSet<Known>,
}

/// What a process has done so far.
#[derive(Default)]
struct Done {
    spawns: u32,
    sends: u32,
    /// The last sending of each sender that was delivered.
    last: FxHashMap<ProcessIndex, u32>,
    /// The messages from outside that are known.
    contents: FxHashSet<u32>,
    accesses: u64,
    has_ended: bool,
    has_deliveries: bool,
}

impl Done {
    fn access(&mut self, at: ProcessIndex, access: u64, other: Access) -> Option<&'static str> {
        (other.of == at)
            .then_some("it is an access of its own")
            .or_else(|| self.accesses_until(access))
    }

    fn accesses_until(&mut self, number: u64) -> Option<&'static str> {
        let before = std::mem::replace(&mut self.accesses, number);
        (number < before).then_some("it makes a later access before")
    }
}

fn is_behind_end(step: &Step) -> bool {
    matches!(step, Step::Answer { .. } | Step::Send(_))
}

impl Checker<'_> {
    fn process(&mut self, at: ProcessIndex) -> Result<(), String> {
        let steps = &self.trace.processes[at].steps;
        let is_delivery = |step: &Step| matches!(step, Step::Deliver(_));
        let mut done = Done {
            has_deliveries: steps.iter().any(is_delivery),
            ..Done::default()
        };
        for step in steps {
            let wrong = match step {
                Step::After { access, other } => done.access(at, *access, *other),
                Step::Accesses(number) => done.accesses_until(*number),
                // What came to a process that had ended is delivered nowhere. It gives up what it has, and tells of that.
                step if done.has_ended && !is_behind_end(step) => Some("it has ended"),
                Step::Deliver(message) | Step::Receive(message) => {
                    self.message(at, step, *message, &mut done)
                }
                step => self.own(at, step, &mut done),
            };
            if let Some(wrong) = wrong {
                let (name, step) = (self.trace.name(at), self.trace.step(at, step));
                return Err(format!("{name} cannot {step}: {wrong}"));
            }
        }
        Ok(())
    }

    fn own(&mut self, at: ProcessIndex, step: &Step, done: &mut Done) -> Option<&'static str> {
        match step {
            Step::Spawn(child) => {
                done.spawns += 1;
                self.spawned[*child] = true;
                let (of, number) = (at, done.spawns);
                let origin = Origin::Child { of, number };
                (self.trace.processes[*child].origin != origin)
                    .then_some("another child is the next one")
            }
            Step::Send(number) => {
                done.sends += 1;
                (*number != done.sends).then_some("another sending is the next one")
            }
            Step::Content { number, .. } => {
                (!done.contents.insert(*number)).then_some("it was another message before")
            }
            Step::Exit(_) => {
                done.has_ended = true;
                None
            }
            _ => None,
        }
    }

    fn message(
        &mut self,
        at: ProcessIndex,
        step: &Step,
        message: Message,
        done: &mut Done,
    ) -> Option<&'static str> {
        let receiver = match message {
            Message::Sent { from, number } if number > self.sent[from] => {
                return Some("nobody sends this message");
            }
            Message::Sent { from, number } if from == at && number > done.sends => {
                return Some("it sends this message later");
            }
            Message::Sent { .. } => None,
            Message::SystemMessage(_) => Some(at),
        };
        let known = (receiver, plain(message));
        if let Step::Deliver(_) = step {
            if self.delivered.insert(known, at).is_some() {
                return Some("it was delivered before");
            }
            if let Message::Sent { from, number } = message
                && let Some(last) = done.last.insert(from, number)
                && last > number
            {
                return Some("a later message of the same sender was delivered before");
            }
            return None;
        }
        if done.has_deliveries && self.delivered.get(&known) != Some(&at) {
            return Some("it has not been delivered");
        }
        (!self.received.insert(known)).then_some("it was received before")
    }
}

/// The message, whatever it tells.
fn plain(message: Message) -> Message {
    match message {
        Message::SystemMessage(SystemMessage { number, .. }) => Message::told(number),
        message => message,
    }
}

fn sendings(process: &Process) -> u32 {
    let sends = process.steps.iter();
    let sends = sends.filter(|step| matches!(step, Step::Send(_))).count();
    u32::try_from(sends).unwrap_or(u32::MAX)
}
