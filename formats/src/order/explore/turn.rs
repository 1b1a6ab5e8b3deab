//! What could have been otherwise in a run: at each receive, which other message it could have taken, or that it could have
//! timed out.
//!
//! Other than a list of races for a reader ([`super::super::Races`]), this one leaves out nothing that is possible: a
//! message that nobody took, one that its receiver never looked at, one behind others of its sender.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::super::races::{Causes, Clock, Known, Takers, join};
use super::super::{Message, Step, Trace};
use super::Run;
use super::choices::{Choice, Choices, Did};

/// A receive, and what it could have done instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turn {
    pub(super) process: usize,
    /// The receive's place among the steps.
    pub(super) step: usize,
    /// What it could have taken; nothing where it could have timed out.
    pub(super) other: Option<Message>,
}

/// A run, and what is known of its steps.
pub(super) struct Analysis<'r> {
    run: &'r Run,
    causes: Causes,
    takers: Takers,
    /// All messages to a process, by who sent them or whose end they tell, in their order.
    lines: Vec<BTreeMap<Option<usize>, Vec<Message>>>,
    /// The choices of each process, each with its step.
    choices: Vec<Vec<(usize, Choice)>>,
}

/// Where a message stands among its receiver's steps.
#[derive(Clone, Copy)]
struct Place {
    delivered: usize,
    received: usize,
}

impl<'r> Analysis<'r> {
    /// # Errors
    /// One line: a process waits for a step that waits for it.
    pub(super) fn of(run: &'r Run, choices: &mut Choices) -> Result<Analysis<'r>, String> {
        let trace = &run.trace;
        Ok(Analysis {
            run,
            causes: Causes::of(trace)?,
            takers: takers(run),
            lines: lines(run),
            choices: (0..trace.processes.len())
                .map(|at| choices_of(trace, at, choices))
                .collect(),
        })
    }

    /// The choices of the run, without those of processes that are left out.
    pub(super) fn choices(&self, is_left_out: impl Fn(usize) -> bool) -> Vec<Choice> {
        let processes = self
            .choices
            .iter()
            .enumerate()
            .filter(|(at, _)| !is_left_out(*at));
        processes
            .flat_map(|(_, all)| all.iter().map(|(_, choice)| *choice))
            .collect()
    }

    /// What could have been otherwise at the receives of a process, each behind those that it depends on.
    pub(super) fn turns_of(&self, process: usize) -> Vec<Turn> {
        let steps = &self.run.trace.processes[process].steps;
        let places = places(steps);
        let place = |message: &Message| {
            let never = Place {
                delivered: steps.len(),
                received: steps.len(),
            };
            places.get(message).copied().unwrap_or(never)
        };
        let mut turns = Vec::new();
        let mut clock = self.begins(process);
        let mut nth = 0;
        for (step, made) in steps.iter().enumerate() {
            let taken = match made {
                Step::Timeout => None,
                Step::Receive(message) => Some(*message),
                _ => continue,
            };
            let passed = taken.map_or(step, |taken| place(&taken).delivered);
            let at = At {
                process,
                step,
                taken,
                passed,
            };
            for (sender, line) in &self.lines[process] {
                if taken.is_none_or(|taken| taken.sender() != *sender) {
                    self.add_of_line(at, line, &place, &mut turns);
                }
            }
            if let Some(taken) = taken
                && self.run.timed.contains(&(process, nth))
                && !self.is_known(at, &clock, taken)
            {
                turns.push(Turn {
                    process,
                    step,
                    other: None,
                });
            }
            nth += 1;
            if let Some(cause) = taken.and_then(|taken| self.causes.of_cause(process, taken)) {
                join(&mut clock, cause);
            }
        }
        turns
    }

    fn begins(&self, process: usize) -> Clock {
        let mut clock = Clock::default();
        if let Some(known) = self.causes.of_beginning(process) {
            join(&mut clock, known);
        }
        clock
    }

    /// Whether the receiver knew, when it began to receive, of the cause of what it took: then it was there already.
    fn is_known(&self, at: At, clock: &Clock, taken: Message) -> bool {
        let Some(cause) = self.causes.of_cause(at.process, taken) else {
            return false;
        };
        match cause.process == at.process {
            true => cause.steps <= at.step,
            false => clock
                .get(&cause.process)
                .is_some_and(|steps| *steps >= cause.steps),
        }
    }

    fn add_of_line(
        &self,
        at: At,
        line: &[Message],
        place: &impl Fn(&Message) -> Place,
        turns: &mut Vec<Turn>,
    ) {
        for message in line {
            let there = place(message);
            // What stood before the one that was taken was passed over: the receive has no clause for it.
            if there.received < at.step || there.delivered < at.passed {
                continue;
            }
            let Some(cause) = self.causes.of_cause(at.process, *message) else {
                return;
            };
            // Those behind it know no less.
            if cause.of(at.process) > at.step || self.comes_after(at, cause) {
                return;
            }
            turns.push(Turn {
                process: at.process,
                step: at.step,
                other: Some(*message),
            });
        }
    }

    /// Whether what was taken had been sent before this: within one node, it was there before, too.
    fn comes_after(&self, at: At, cause: &Known) -> bool {
        let first = at
            .taken
            .and_then(|taken| self.causes.of_cause(at.process, taken));
        first.is_some_and(|first| cause.of(first.process) >= first.steps)
    }
}

/// A receive.
#[derive(Clone, Copy)]
struct At {
    process: usize,
    step: usize,
    taken: Option<Message>,
    /// What was delivered before this step, the receive has looked at and passed over.
    passed: usize,
}

impl Analysis<'_> {
    /// What a turn leads to: where the steps end that do not depend on the receive.
    pub(super) fn ends(&self, turn: &Turn) -> Vec<usize> {
        self.takers
            .ends_without(&self.run.trace, turn.process, turn.step)
    }

    /// The choices of a turned run, without those of processes that are left out; the last one is that of the turn.
    pub(super) fn turned_choices(
        &self,
        turn: &Turn,
        ends: &[usize],
        choices: &mut Choices,
        is_left_out: impl Fn(usize) -> bool,
    ) -> Vec<Choice> {
        let processes = self
            .choices
            .iter()
            .enumerate()
            .filter(|(at, _)| !is_left_out(*at));
        let kept = processes.flat_map(|(at, all)| {
            let kept = all.iter().take_while(move |(step, _)| *step < ends[at]);
            kept.map(|(_, choice)| *choice)
        });
        let mut kept: Vec<Choice> = kept.collect();
        kept.push(self.turned_choice(turn, choices));
        kept
    }

    fn turned_choice(&self, turn: &Turn, choices: &mut Choices) -> Choice {
        let before = self.choices[turn.process]
            .iter()
            .take_while(|(step, _)| *step < turn.step);
        let slot = (turn.process, before.count() as u32);
        let did = match turn.other {
            None => Did::TimedOut,
            Some(message) => did(&self.run.trace, turn.process, message),
        };
        choices.number(slot, did)
    }

    /// On what it depends whether the receive can do that: the choices before it and before the sending.
    pub(super) fn key(&self, turn: &Turn, choices: &mut Choices) -> Box<[Choice]> {
        let mut clock = self.begins(turn.process);
        for step in &self.run.trace.processes[turn.process].steps[..turn.step] {
            if let Step::Receive(message) = step
                && let Some(cause) = self.causes.of_cause(turn.process, *message)
            {
                join(&mut clock, cause);
            }
        }
        if let Some(cause) = turn
            .other
            .and_then(|other| self.causes.of_cause(turn.process, other))
        {
            join(&mut clock, cause);
        }
        let mut known: Vec<(usize, usize)> =
            clock.iter().map(|(at, steps)| (*at, *steps)).collect();
        known.retain(|(at, _)| *at != turn.process);
        known.push((turn.process, turn.step));
        known.sort_unstable();
        let mut key = Vec::new();
        for (at, steps) in known {
            let before = self.choices[at]
                .iter()
                .take_while(|(step, _)| *step < steps);
            key.extend(before.map(|(_, choice)| *choice));
        }
        key.push(self.turned_choice(turn, choices));
        key.into()
    }

    /// Messages of the same sender that come before that of a turn, and are as free as it is: if the receive can take one of
    /// them, it cannot take the other.
    pub(super) fn before<'a>(
        &'a self,
        turn: &'a Turn,
        all: &'a [Turn],
    ) -> impl Iterator<Item = &'a Turn> {
        let sender = turn.other.map(Message::sender);
        all.iter()
            .take_while(move |other| *other != turn)
            .filter(move |other| {
                (other.process, other.step) == (turn.process, turn.step)
                    && other.other.map(Message::sender) == sender
            })
    }

    /// The log of a turned run, with the deliveries that its receives need.
    pub(super) fn turned(&self, turn: &Turn, ends: &[usize]) -> Trace {
        let mut trace = self.run.trace.clone();
        for (at, process) in trace.processes.iter_mut().enumerate() {
            process.steps.truncate(ends[at]);
            if at == turn.process {
                process
                    .steps
                    .push(turn.other.map_or(Step::Timeout, Step::Receive));
            }
            process.steps = delivered(std::mem::take(&mut process.steps), &self.lines[at]);
        }
        let whole: Vec<usize> = trace.processes.iter().map(|one| one.steps.len()).collect();
        trace.cut(&whole, None)
    }
}

/// Who takes what others send and tell, and who ends with them.
fn takers(run: &Run) -> Takers {
    let mut takers = Takers::of(&run.trace);
    for (who, by) in &run.ended_by {
        let steps = &run.trace.processes[*who].steps;
        if let Some(end) = steps.iter().rposition(|step| *step == Step::Exit) {
            takers.add_end(*by, (*who, end));
        }
    }
    takers
}

/// The steps, with each delivery as late as can be: right before the first receive of a message that came with it or behind
/// it from the same sender.
fn delivered(steps: Vec<Step>, lines: &BTreeMap<Option<usize>, Vec<Message>>) -> Vec<Step> {
    let mut next: HashMap<Option<usize>, usize> = HashMap::new();
    let mut all = Vec::with_capacity(steps.len() * 2);
    for step in steps {
        match &step {
            Step::Deliver(_) => continue,
            Step::Receive(message) => {
                let sender = message.sender();
                let line = lines.get(&sender).map_or(&[][..], Vec::as_slice);
                let next = next.entry(sender).or_default();
                let to = line
                    .iter()
                    .position(|other| other == message)
                    .map_or(*next, |at| at + 1);
                if to > *next {
                    all.extend(
                        line[*next..to]
                            .iter()
                            .map(|message| Step::Deliver(*message)),
                    );
                    *next = to;
                }
            }
            _ => {}
        }
        all.push(step);
    }
    all
}

/// Where messages stand among their receiver's steps.
fn places(steps: &[Step]) -> HashMap<Message, Place> {
    let mut places: HashMap<Message, Place> = HashMap::new();
    for (at, step) in steps.iter().enumerate() {
        match step {
            Step::Deliver(message) => {
                places.insert(
                    *message,
                    Place {
                        delivered: at,
                        received: steps.len(),
                    },
                );
            }
            Step::Receive(message) => {
                if let Some(place) = places.get_mut(message) {
                    place.received = at;
                }
            }
            _ => {}
        }
    }
    places
}

/// All messages to each process, by their senders: those that came in the order in which they did, and then the others.
fn lines(run: &Run) -> Vec<BTreeMap<Option<usize>, Vec<Message>>> {
    let mut lines = vec![BTreeMap::<_, Vec<_>>::new(); run.trace.processes.len()];
    let mut came = HashSet::new();
    for (at, process) in run.trace.processes.iter().enumerate() {
        for step in &process.steps {
            if let Step::Deliver(message) = step {
                lines[at]
                    .entry(message.sender())
                    .or_default()
                    .push(*message);
                came.insert(*message);
            }
        }
    }
    for (from, receivers) in run.receivers.iter().enumerate() {
        for (number, to) in (1..).zip(receivers) {
            let message = Message::Sent { from, number };
            if let Some(to) = to
                && !came.contains(&message)
            {
                lines[*to].entry(Some(from)).or_default().push(message);
            }
        }
    }
    lines
}

fn choices_of(trace: &Trace, process: usize, choices: &mut Choices) -> Vec<(usize, Choice)> {
    let mut all = Vec::new();
    for (step, made) in trace.processes[process].steps.iter().enumerate() {
        let did = match made {
            Step::Timeout => Did::TimedOut,
            Step::Receive(message) => did(trace, process, *message),
            _ => continue,
        };
        let slot = (process, all.len() as u32);
        all.push((step, choices.number(slot, did)));
    }
    all
}

/// A message by what is the same in every run: those that tell of a process are counted by that process.
fn did(trace: &Trace, receiver: usize, message: Message) -> Did {
    match message {
        Message::Sent { from, number } => Did::Took(from, number),
        Message::Told(told) => {
            let steps = trace.processes[receiver].steps.iter();
            let before = steps
                .take_while(|step| **step != Step::Deliver(message))
                .filter(|step| matches!(step, Step::Deliver(Message::Told(other)) if other.of == told.of));
            Did::Heard(told.of, before.count() as u32)
        }
    }
}
