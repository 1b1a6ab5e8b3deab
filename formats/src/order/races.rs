//! Races: the messages that could have come first, at each receive of a trace, and the log that turns one around.
//!
//! A message could have been taken instead of the one that was if its sender did not know of that receive when it sent it
//! (no chain of messages, spawns and ends leads from one to the other), if it came behind the one that was taken (what
//! stood before it in the queue was passed over by the receive), and if all that its sender had sent to this receiver
//! before was taken. Source: the races of reachability testing (Lei and Carver), on the steps of prefix-based tracing.
//!
//! A trace does not tell which messages a receive has clauses for. Where the places in the code are known, a message
//! that the same `receive` took later ([`Race::is_same_receive`]) is likely to fit.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;

use super::{Message, Origin, Process, Sites, Step, Told, Trace, moved};

/// A receive, and a message that could have come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Race {
    /// The receiver.
    pub process: usize,
    /// The place of the receive, or of its time-out, among its steps.
    pub step: usize,
    /// What was taken; nothing where the receive timed out.
    pub taken: Option<Message>,
    /// So many of the receiver's receives had timed out by then, with this one.
    pub timeout: u32,
    /// What could have been taken instead.
    pub other: Message,
    /// The same `receive` of the code took it later; nothing where the places in the code are not known.
    pub is_same_receive: Option<bool>,
    /// A place in the code of the receive, or of one of the sends, is no library's.
    pub is_of_application: bool,
}

/// The races of a trace.
#[derive(Debug)]
pub struct Races {
    /// The trace, with all its deliveries.
    pub trace: Trace,
    /// The likeliest and most interesting first.
    pub all: Vec<Race>,
    /// There are more: only so many were looked for.
    pub has_more: bool,
}

/// A trace has no more races than this that are told.
pub const RACES_MAX: usize = 1 << 20;

impl Trace {
    /// Its races, those of the application first, and among these those of which a later receive is the same one.
    ///
    /// # Errors
    /// One line: a process waits for a step that waits for it.
    pub fn races(self, sites: &Sites) -> Result<Races, String> {
        let trace = self.with_deliveries();
        let known = Causes::of(&trace)?;
        let mut races = Races {
            trace,
            all: Vec::new(),
            has_more: false,
        };
        for process in 0..races.trace.processes.len() {
            races.add_those_of(process, &known, sites);
        }
        races.all.sort_by_key(|race| {
            let is_likely = race.is_same_receive != Some(false);
            (!race.is_of_application, !is_likely)
        });
        Ok(races)
    }
}

/// A message on its way: where it stands among its receiver's steps.
#[derive(Clone, Copy)]
struct Arrival {
    message: Message,
    delivered: usize,
    /// Nothing where it has not been taken.
    received: Option<usize>,
    /// How many of the receiver's steps its sender knew of.
    knows: usize,
}

impl Races {
    fn add_those_of(&mut self, process: usize, causes: &Causes, sites: &Sites) {
        let steps = &self.trace.processes[process].steps;
        let lines = lines_to(process, steps, causes);
        let delivered: HashMap<Message, usize> = lines
            .values()
            .flatten()
            .map(|arrival| (arrival.message, arrival.delivered))
            .collect();
        let timeouts = timeouts_until(steps);
        let mut found = Vec::new();
        for (sender, arrivals) in &lines {
            let mut since = 0;
            for arrival in arrivals {
                let end = arrival.received.unwrap_or(steps.len());
                let begin = since.max(arrival.knows);
                since = since.max(end);
                for (step, made) in steps.iter().enumerate().take(end).skip(begin) {
                    let is_later = |taken| delivered.get(taken) < Some(&arrival.delivered);
                    let taken = match made {
                        Step::Timeout if step < arrival.delivered => None,
                        Step::Receive(taken) if taken.sender() != *sender && is_later(taken) => {
                            Some(*taken)
                        }
                        _ => continue,
                    };
                    found.push((step, taken, arrival.message));
                }
            }
        }
        found.sort_unstable();
        self.has_more |= self.all.len() + found.len() > RACES_MAX;
        found.truncate(RACES_MAX - self.all.len());
        self.all
            .extend(found.into_iter().map(|(step, taken, other)| {
                let mut race = Race {
                    process,
                    step,
                    taken,
                    timeout: timeouts[step],
                    other,
                    is_same_receive: None,
                    is_of_application: false,
                };
                sites.tell(&mut race);
                race
            }));
    }

    /// The log that has the other message of a race taken: all steps that do not depend on what was taken, and the
    /// receive of the other one. What follows is free.
    #[must_use]
    pub fn turned(&self, race: &Race) -> Trace {
        let ends = Takers::of(&self.trace).ends_without(&self.trace, race.process, race.step);
        let last = (race.process, Step::Receive(race.other));
        self.trace.cut(&ends, Some(last)).log()
    }
}

impl Trace {
    /// The steps of each process up to its end, with one more behind those of a process.
    pub(super) fn cut(&self, ends: &[usize], last: Option<(usize, Step)>) -> Trace {
        let mut places = vec![None; self.processes.len()];
        let mut cut = Trace::default();
        for (at, process) in self.processes.iter().enumerate() {
            // Parents come before their children.
            let origin = match process.origin {
                Origin::Root(root) => Some(Origin::Root(root)),
                Origin::Child { of, number } => places[of]
                    .filter(|_| self.is_spawned_before(of, ends[of], at))
                    .map(|of| Origin::Child { of, number }),
            };
            let Some(origin) = origin else { continue };
            places[at] = Some(cut.processes.len());
            let mut steps = process.steps[..ends[at]].to_vec();
            steps.extend(
                last.iter()
                    .filter(|(of, _)| *of == at)
                    .map(|(_, step)| step.clone()),
            );
            cut.processes.push(Process {
                origin,
                pid: process.pid,
                known_as: process.known_as.clone(),
                steps,
            });
        }
        for process in &mut cut.processes {
            process.steps = moved(std::mem::take(&mut process.steps), |at| places[at]);
        }
        cut.forget_misses();
        cut.forget_accesses();
        cut
    }
}

impl Trace {
    fn is_spawned_before(&self, parent: usize, end: usize, child: usize) -> bool {
        self.processes[parent].steps[..end].contains(&Step::Spawn(child))
    }

    /// The order of accesses is not known without those that were cut off.
    fn forget_accesses(&mut self) {
        let is_access = |step: &Step| matches!(step, Step::After { .. } | Step::Accesses(_));
        for process in &mut self.processes {
            process.steps.retain(|step| !is_access(step));
        }
    }

    /// Loads wait for no more misses than there are.
    fn forget_misses(&mut self) {
        let mut missed: HashMap<String, u64> = HashMap::new();
        for step in self.processes.iter().flat_map(|process| &process.steps) {
            if let Step::Miss(module) = step {
                *missed.entry(module.clone()).or_default() += 1;
            }
        }
        for step in self
            .processes
            .iter_mut()
            .flat_map(|process| &mut process.steps)
        {
            if let Step::Load { module, misses } = step {
                *misses = (*misses).min(missed.get(module).copied().unwrap_or(0));
            }
        }
    }
}

impl Message {
    /// The process that has sent it, or whose end it tells.
    pub(super) fn sender(self) -> Option<usize> {
        match self {
            Message::Sent { from, .. } => Some(from),
            Message::Told(told) => told.of,
        }
    }
}

/// How many receives have timed out at each step, with it.
fn timeouts_until(steps: &[Step]) -> Vec<u32> {
    let mut timeouts = 0;
    let count = |step: &Step| {
        timeouts += u32::from(*step == Step::Timeout);
        timeouts
    };
    steps.iter().map(count).collect()
}

/// The messages of each sender to a process, in their order. What nobody knows the cause of is left out.
fn lines_to(
    process: usize,
    steps: &[Step],
    causes: &Causes,
) -> BTreeMap<Option<usize>, Vec<Arrival>> {
    let mut all: BTreeMap<Option<usize>, Vec<Arrival>> = BTreeMap::new();
    let mut received = HashMap::new();
    for (at, step) in steps.iter().enumerate() {
        if let Step::Receive(message) = step {
            received.insert(*message, at);
        }
    }
    for (delivered, step) in steps.iter().enumerate() {
        let Step::Deliver(message) = step else {
            continue;
        };
        let knows = match causes.of_message(process, *message) {
            Some(knows) => knows,
            // It races with nothing, but is taken.
            None => steps.len(),
        };
        all.entry(message.sender()).or_default().push(Arrival {
            message: *message,
            delivered,
            received: received.get(message).copied(),
            knows,
        });
    }
    all
}

/// Who takes what others send and tell.
pub(super) struct Takers {
    /// Where each message is taken: the process, and which of its steps.
    takers: HashMap<Message, (usize, usize)>,
    /// Where the end of each process is heard of.
    told: HashMap<usize, Vec<(usize, usize)>>,
}

impl Takers {
    pub(super) fn of(trace: &Trace) -> Takers {
        let mut takers: HashMap<Message, (usize, usize)> = HashMap::new();
        let mut told: HashMap<usize, Vec<(usize, usize)>> = HashMap::new();
        for (at, process) in trace.processes.iter().enumerate() {
            for (step, made) in process.steps.iter().enumerate() {
                match made {
                    Step::Receive(Message::Told(Told { of: Some(of), .. })) => {
                        told.entry(*of).or_default().push((at, step));
                    }
                    Step::Receive(message @ Message::Sent { .. }) => {
                        takers.insert(*message, (at, step));
                    }
                    _ => {}
                }
            }
        }
        Takers { takers, told }
    }

    /// This step happens because that process has ended.
    pub(super) fn add_end(&mut self, of: usize, step: (usize, usize)) {
        self.told.entry(of).or_default().push(step);
    }

    /// Where the steps of each process end that do not depend on this step of a process.
    pub(super) fn ends_without(&self, trace: &Trace, process: usize, step: usize) -> Vec<usize> {
        let mut ends: Vec<usize> = trace.processes.iter().map(|one| one.steps.len()).collect();
        let mut cuts = vec![(process, step)];
        while let Some((at, end)) = cuts.pop() {
            let until = ends[at];
            if end >= until {
                continue;
            }
            ends[at] = end;
            for step in &trace.processes[at].steps[end..until] {
                match step {
                    Step::Spawn(child) => cuts.push((*child, 0)),
                    Step::Send(number) => {
                        let (from, number) = (at, *number);
                        cuts.extend(self.takers.get(&Message::Sent { from, number }));
                    }
                    Step::Exit => cuts.extend(self.told.get(&at).into_iter().flatten()),
                    _ => {}
                }
            }
        }
        ends
    }
}

/// How many steps of each other process one knows of.
pub(super) type Clock = Rc<HashMap<usize, usize>>;

/// What is known at a step of a process.
#[derive(Clone)]
pub(super) struct Known {
    pub(super) process: usize,
    /// Its steps so far.
    pub(super) steps: usize,
    others: Clock,
}

impl Known {
    pub(super) fn of(&self, process: usize) -> usize {
        match process == self.process {
            true => self.steps,
            false => self.others.get(&process).copied().unwrap_or(0),
        }
    }
}

/// What was known where messages were sent, and where processes ended.
pub(super) struct Causes {
    sent: HashMap<Message, Known>,
    ended: HashMap<usize, Known>,
    /// What a process's parent knew when it made it, if it has one.
    begun: HashMap<usize, Option<Known>>,
    /// Messages, by their receivers, that tell of a process which had not ended: it has sent an exit signal.
    before_ends: HashSet<(usize, u32)>,
}

/// What a process waits for.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Need {
    Sent(Message),
    End(usize),
    Begin(usize),
}

impl Causes {
    /// How many of its receiver's steps the cause of a message knew of; nothing where nobody knows the cause.
    fn of_message(&self, receiver: usize, message: Message) -> Option<usize> {
        Some(self.of_cause(receiver, message)?.of(receiver))
    }

    /// What the cause of a message knew; nothing where nobody knows the cause.
    pub(super) fn of_cause(&self, receiver: usize, message: Message) -> Option<&Known> {
        match message {
            Message::Sent { .. } => self.sent.get(&message),
            Message::Told(Told { gone: true, .. }) => None,
            Message::Told(Told { number, .. })
                if self.before_ends.contains(&(receiver, number)) =>
            {
                None
            }
            Message::Told(Told { of, .. }) => self.ended.get(&of?),
        }
    }

    /// What was known where a process began; nothing of one without a parent.
    pub(super) fn of_beginning(&self, process: usize) -> Option<&Known> {
        self.begun.get(&process)?.as_ref()
    }

    /// Goes through the steps in an order that can have been.
    pub(super) fn of(trace: &Trace) -> Result<Causes, String> {
        let mut walk = Walk::new(trace);
        for at in 0..trace.processes.len() {
            if let Origin::Root(_) = trace.processes[at].origin {
                walk.causes.begun.insert(at, None);
            }
        }
        let mut ready: Vec<usize> = (0..trace.processes.len()).collect();
        loop {
            while let Some(at) = ready.pop() {
                if let Some(need) = walk.run(at, &mut ready) {
                    walk.waiting.entry(need).or_default().push(at);
                }
            }
            match walk.lets_one_go_on() {
                Some(at) => ready.push(at),
                None => break,
            }
        }
        let steps = trace.processes.iter().map(|process| process.steps.len());
        let stuck = steps
            .zip(&walk.next)
            .position(|(steps, next)| *next < steps);
        if let Some(at) = stuck {
            let step = &trace.processes[at].steps[walk.next[at]];
            let (name, step) = (trace.name(at), trace.step(at, step));
            return Err(format!(
                "{name} cannot {step}: what it needs comes after it"
            ));
        }
        Ok(walk.causes)
    }
}

struct Walk<'t> {
    trace: &'t Trace,
    causes: Causes,
    clocks: Vec<Clock>,
    next: Vec<usize>,
    waiting: HashMap<Need, Vec<usize>>,
    /// Processes whose ends are among the steps.
    ends: Vec<bool>,
}

impl<'t> Walk<'t> {
    fn new(trace: &'t Trace) -> Walk<'t> {
        let processes = trace.processes.iter();
        Walk {
            trace,
            causes: Causes {
                sent: HashMap::new(),
                ended: HashMap::new(),
                begun: HashMap::new(),
                before_ends: HashSet::new(),
            },
            clocks: vec![Clock::default(); trace.processes.len()],
            next: vec![0; trace.processes.len()],
            waiting: HashMap::new(),
            ends: processes
                .map(|one| one.steps.contains(&Step::Exit))
                .collect(),
        }
    }

    /// Makes the steps of a process until it needs one that has not been made.
    fn run(&mut self, at: usize, ready: &mut Vec<usize>) -> Option<Need> {
        if self.next[at] == 0 {
            match self.causes.begun.get(&at) {
                Some(Some(known)) => join(&mut self.clocks[at], &known.clone()),
                Some(None) => {}
                None => return Some(Need::Begin(at)),
            }
        }
        let steps = &self.trace.processes[at].steps;
        while let Some(step) = steps.get(self.next[at]) {
            if let Step::Receive(message) = step {
                let cause = match self.cause(at, *message) {
                    Ok(cause) => cause,
                    Err(need) => return Some(need),
                };
                if let Some(cause) = cause {
                    join(&mut self.clocks[at], &cause);
                }
            }
            self.next[at] += 1;
            let made = match step {
                Step::Send(number) => {
                    let (from, number) = (at, *number);
                    let message = Message::Sent { from, number };
                    let known = self.known_by(at);
                    self.causes.sent.insert(message, known);
                    Need::Sent(message)
                }
                Step::Exit => {
                    let known = self.known_by(at);
                    self.causes.ended.insert(at, known);
                    Need::End(at)
                }
                Step::Spawn(child) => {
                    let known = self.known_by(at);
                    self.causes.begun.insert(*child, Some(known));
                    Need::Begin(*child)
                }
                _ => continue,
            };
            ready.extend(self.waiting.remove(&made).into_iter().flatten());
        }
        None
    }

    /// What was known where a message was sent; nothing where its cause is not among the steps.
    fn cause(&self, receiver: usize, message: Message) -> Result<Option<Known>, Need> {
        let (known, need) = match message {
            Message::Sent { .. } => (self.causes.sent.get(&message), Need::Sent(message)),
            Message::Told(Told {
                of: Some(of),
                number,
                ..
            }) if self.ends[of] && !self.causes.before_ends.contains(&(receiver, number)) => {
                (self.causes.ended.get(&of), Need::End(of))
            }
            Message::Told(_) => return Ok(None),
        };
        known.cloned().map(Some).ok_or(need)
    }

    /// Nothing goes on. The first of those that wait for an end need not wait: what it got was an exit signal of a process
    /// that went on.
    fn lets_one_go_on(&mut self) -> Option<usize> {
        let waits_for_end = |(need, waiting): (&Need, &Vec<usize>)| match need {
            Need::End(_) => waiting.iter().min().map(|first| (*first, *need)),
            _ => None,
        };
        let (at, need) = self
            .waiting
            .iter()
            .filter_map(waits_for_end)
            .min_by_key(|(at, _)| *at)?;
        self.waiting
            .get_mut(&need)?
            .retain(|waiting| *waiting != at);
        let step = self.trace.processes[at].steps.get(self.next[at])?;
        if let Step::Receive(Message::Told(told)) = step {
            self.causes.before_ends.insert((at, told.number));
        }
        Some(at)
    }

    fn known_by(&self, process: usize) -> Known {
        Known {
            process,
            steps: self.next[process],
            others: self.clocks[process].clone(),
        }
    }
}

/// Who has this clock knows of this, too.
pub(super) fn join(clock: &mut Clock, known: &Known) {
    let own = [(known.process, known.steps)].into_iter();
    let others = known.others.iter().map(|(at, steps)| (*at, *steps));
    let is_news = |(at, steps): &(usize, usize)| clock.get(at).is_none_or(|now| now < steps);
    let news: Vec<(usize, usize)> = others.chain(own).filter(is_news).collect();
    if !news.is_empty() {
        Rc::make_mut(clock).extend(news);
    }
}

#[cfg(test)]
mod tests;
