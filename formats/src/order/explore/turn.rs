//! What could have been otherwise in a run: at each receive, which other message it could have taken, or that it could have
//! timed out; of each access, which ones it could have come before.
//!
//! Other than a list of races for a reader ([`super::super::Races`]), this one leaves out nothing that is possible: a
//! message that nobody took, one that its receiver never looked at, one behind others of its sender.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::super::races::{Causes, Clock, Known, Pair, Takers, join};
use super::super::{Access, Message, RACES_MAX, Signal, Step, Told, Trace};
use super::Run;
use super::choices::{Choice, Choices, Did};
use super::saw::{Made, Saw};

/// A receive or an access, and what it could have done instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turn {
    pub(super) process: usize,
    /// Its place among the steps.
    pub(super) step: usize,
    pub(super) instead: Instead,
}

/// What could have been done instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Instead {
    /// The receive times out.
    TimesOut,
    /// It takes this message.
    Takes(Message),
    /// The access of this number comes before this one, which stands at that place among the steps of its process.
    Precedes(u64, Access, usize),
}

impl Turn {
    /// What is turned around is a receive.
    pub(super) fn is_receive(&self) -> bool {
        !matches!(self.instead, Instead::Precedes(..))
    }

    fn message(&self) -> Option<Message> {
        match self.instead {
            Instead::Takes(message) => Some(message),
            Instead::TimesOut | Instead::Precedes(..) => None,
        }
    }
}

/// A run, and what is known of its steps.
pub(super) struct Analysis<'r> {
    run: &'r Run,
    causes: Causes,
    takers: Takers,
    /// All messages to a process, by who sent them or whose end they tell, in their order.
    lines: Vec<BTreeMap<Option<usize>, Vec<Message>>>,
    /// The receives of a process before which messages must come.
    limits: HashMap<(usize, Message), u32>,
    /// The choices of each process, each with its step.
    choices: Vec<Vec<(usize, Choice)>>,
    /// Where each access stands among the steps of its process.
    accesses: HashMap<Access, usize>,
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
        let untold = untold(run);
        let mut signals = run.signals.clone();
        let calls = untold.iter().filter_map(|one| Some((one, one.call?)));
        signals
            .messages
            .extend(calls.map(|(one, call)| ((one.to, one.told.number), call)));
        let takers = Takers::with_signals(trace, &signals);
        let causes = Causes::with_signals(trace, &run.accesses, signals)?;
        let saw = saw(run, causes.seen.order());
        Ok(Analysis {
            run,
            lines: lines(run, &untold, &causes),
            causes,
            takers,
            limits: untold
                .into_iter()
                .filter_map(|untold| Some(((untold.to, untold.message()), untold.until?)))
                .collect(),
            choices: (0..trace.processes.len())
                .map(|at| choices_of(run, at, &saw, choices))
                .collect(),
            accesses: accesses(trace),
        })
    }

    /// # Errors
    /// One line: there are more races than are known.
    pub(super) fn has_all_races(&self) -> Result<(), String> {
        match self.causes.seen.races().len() {
            RACES_MAX => Err("more accesses of a run race than are looked for".into()),
            _ => Ok(()),
        }
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

    /// Whether a process could have been ended by the end of another one before it ended, or gave up the link.
    pub(super) fn could_be_killed(&self) -> bool {
        let watches = self.run.watches.iter().filter(|watch| watch.kills);
        watches
            .filter(|watch| {
                let by = self.run.trace.processes[watch.by].ended_by();
                by != Some(Signal::End(watch.whom))
            })
            .any(|watch| {
                let steps = &self.run.trace.processes[watch.by].steps;
                let receives = steps
                    .iter()
                    .enumerate()
                    .filter(|(_, step)| is_receive(step));
                let last = watch
                    .until
                    .and_then(|until| receives.map(|(at, _)| at).nth(until as usize));
                let known = self.causes.of_end(watch.whom).map(|end| end.of(watch.by));
                known.is_some_and(|known| known <= last.unwrap_or(steps.len()))
            })
    }

    /// What could have been otherwise at the accesses of all processes, unless these are left out.
    pub(super) fn turns_of_accesses(&self, is_left_out: impl Fn(usize) -> bool) -> Vec<Turn> {
        let races = self.causes.seen.races().iter();
        let turns = races.filter_map(|race| match race.pair {
            Pair::Accesses(both) => Some(Turn {
                process: both.second.of,
                step: both.second_step,
                instead: Instead::Precedes(both.second.number, both.first, race.step),
            }),
            Pair::Messages(_) => None,
        });
        turns.filter(|turn| !is_left_out(turn.process)).collect()
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
                step => {
                    self.learn(process, step, &mut clock);
                    continue;
                }
            };
            let passed = taken.map_or(step, |taken| place(&taken).delivered);
            let at = At {
                process,
                step,
                nth,
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
                    instead: Instead::TimesOut,
                });
            }
            nth += 1;
            self.learn(process, made, &mut clock);
        }
        turns
    }

    /// A process that has this clock makes a step.
    fn learn(&self, process: usize, step: &Step, clock: &mut Clock) {
        let known = match *step {
            Step::Receive(message) => self.causes.of_cause(process, message),
            Step::Accesses(number) => {
                let of = process;
                self.causes.seen.known_at(Access { of, number })
            }
            _ => None,
        };
        if let Some(known) = known {
            join(clock, known);
        }
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
            if there.received < at.step
                || there.delivered < at.passed
                || self.is_too_late(at, *message)
            {
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
                instead: Instead::Takes(*message),
            });
        }
    }

    /// Whether its monitor has been given up.
    fn is_too_late(&self, at: At, message: Message) -> bool {
        let limit = self.limits.get(&(at.process, message));
        limit.is_some_and(|until| at.nth >= *until)
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
    /// Which of the receives of the process, from 0.
    nth: u32,
    taken: Option<Message>,
    /// What was delivered before this step, the receive has looked at and passed over.
    passed: usize,
}

impl Analysis<'_> {
    /// What a turn leads to: where the steps end that do not depend on the receive, or on the access that came first.
    pub(super) fn ends(&self, turn: &Turn) -> Vec<usize> {
        let cut = match turn.instead {
            Instead::TimesOut | Instead::Takes(_) => (turn.process, turn.step),
            Instead::Precedes(_, first, step) => (first.of, step),
        };
        let seen = &self.causes.seen;
        let after = |at, step: &Step| seen.after_step(at, step);
        self.takers.ends(&self.run.trace, vec![cut], after)
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
        kept.push(self.turned_choice(turn, ends, choices));
        kept
    }

    fn turned_choice(&self, turn: &Turn, ends: &[usize], choices: &mut Choices) -> Choice {
        let before = self.choices[turn.process]
            .iter()
            .take_while(|(step, _)| *step < turn.step);
        let slot = (turn.process, before.count() as u32);
        let did = match turn.instead {
            Instead::TimesOut => Did::TimedOut,
            Instead::Takes(message) => did(&self.run.trace, turn.process, message),
            Instead::Precedes(number, ..) => {
                let of = turn.process;
                Did::Saw(self.saw_before(ends, Access { of, number }))
            }
        };
        choices.number(slot, did)
    }

    /// What an access comes after that is made when each process has made its steps up to an end.
    fn saw_before(&self, ends: &[usize], access: Access) -> Saw {
        self.made_by(ends).before(access, &self.run.accesses)
    }

    /// The accesses that are made when each process has made its steps up to an end.
    fn made_by(&self, ends: &[usize]) -> Made {
        let mut made = Made::default();
        for other in self.causes.seen.order() {
            if self.accesses[other] < ends[other.of] {
                made.add(*other, &self.run.accesses);
            }
        }
        made
    }

    /// On what it depends whether the receive can do that: the choices before it and before the sending. An access always
    /// can: then it is nothing.
    pub(super) fn key(&self, turn: &Turn, choices: &mut Choices) -> Box<[Choice]> {
        if !turn.is_receive() {
            return Box::default();
        }
        let mut clock = self.begins(turn.process);
        for step in &self.run.trace.processes[turn.process].steps[..turn.step] {
            self.learn(turn.process, step, &mut clock);
        }
        if let Some(cause) = turn
            .message()
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
        key.push(self.turned_choice(turn, &[], choices));
        key.into()
    }

    /// Messages of the same sender that come before that of a turn, and are as free as it is: if the receive can take one of
    /// them, it cannot take the other.
    pub(super) fn before<'a>(
        &'a self,
        turn: &'a Turn,
        all: &'a [Turn],
    ) -> impl Iterator<Item = &'a Turn> {
        let sender = turn.message().map(Message::sender);
        all.iter()
            .take_while(move |other| *other != turn)
            .filter(move |other| {
                turn.is_receive()
                    && (other.process, other.step) == (turn.process, turn.step)
                    && other.message().map(Message::sender) == sender
            })
    }

    /// The log of a turned run, with the deliveries that its receives need. It tells of no accesses of processes that are
    /// left out.
    pub(super) fn turned(
        &self,
        turn: &Turn,
        ends: &[usize],
        is_left_out: impl Fn(usize) -> bool,
    ) -> Trace {
        let mut trace = self.run.trace.clone();
        let last = self.last_steps(turn, ends);
        for (at, process) in trace.processes.iter_mut().enumerate() {
            let kept = &process.steps[..ends[at]];
            let mut steps = self.causes.seen.told(at, kept, None);
            let own = last.iter().filter(|(of, _)| *of == at);
            steps.extend(own.map(|(_, step)| step.clone()));
            if is_left_out(at) {
                steps.retain(|step| !matches!(step, Step::After { .. } | Step::Accesses(_)));
            }
            let turn = Some(turn).filter(|turn| turn.process == at);
            let order = self.deliveries(at, &steps, turn);
            process.steps = delivered(steps, order);
        }
        let whole: Vec<usize> = trace.processes.iter().map(|one| one.steps.len()).collect();
        trace.cut(&whole, None)
    }

    /// What has to be delivered to a process so that it can make the steps: all that it receives, and what the same senders
    /// have sent before. It comes in the order in which it did, but what a turned receive takes comes before all that this
    /// receive may have a clause for.
    fn deliveries(&self, process: usize, steps: &[Step], turn: Option<&Turn>) -> Vec<Message> {
        let received: HashSet<Message> = steps
            .iter()
            .filter_map(|step| match step {
                Step::Receive(message) => Some(*message),
                _ => None,
            })
            .collect();
        let lines = self.lines[process].values();
        let needed = lines.flat_map(|line| {
            let last = line.iter().rposition(|message| received.contains(message));
            &line[..last.map_or(0, |at| at + 1)]
        });
        let places = places(&self.run.trace.processes[process].steps);
        let came = |message: &Message| places.get(message).map_or(usize::MAX, |at| at.delivered);
        let mut order: Vec<Message> = needed.copied().collect();
        order.sort_by_key(came);
        let Some((turn, other)) = turn.and_then(|turn| Some((turn, turn.message()?))) else {
            return order;
        };
        let passed = match &self.run.trace.processes[process].steps[turn.step] {
            Step::Receive(taken) => came(taken),
            _ => turn.step,
        };
        let may_fit = |message: &Message| {
            let is_taken = received.contains(message) && *message != other;
            came(message) >= passed && !is_taken
        };
        if let Some(at) = order.iter().position(may_fit) {
            let mut with_it: Vec<Message> = order.split_off(at);
            let is_of_line = |message: &Message| message.sender() == other.sender();
            let end = with_it.iter().position(|message| *message == other);
            let end = end.map_or(0, |end| end + 1);
            let (first, between): (Vec<Message>, Vec<Message>) =
                with_it.drain(..end).partition(is_of_line);
            order.extend(first.into_iter().chain(between).chain(with_it));
        }
        order
    }

    /// What a turned run does behind the steps that it has in common with this one, and who does.
    fn last_steps(&self, turn: &Turn, ends: &[usize]) -> Vec<(usize, Step)> {
        let of = turn.process;
        match turn.instead {
            Instead::TimesOut => vec![(of, Step::Timeout)],
            Instead::Takes(message) => vec![(of, Step::Receive(message))],
            Instead::Precedes(access, first, _) => {
                let second = Access { of, number: access };
                let mut made = self.made_by(ends);
                let mut steps = Vec::new();
                for own in [second, first] {
                    let saw = made.before(own, &self.run.accesses).into_iter();
                    let access = own.number;
                    steps.extend(saw.map(|other| (own.of, Step::After { access, other })));
                    steps.push((own.of, Step::Accesses(access)));
                    made.add(own, &self.run.accesses);
                }
                steps
            }
        }
    }
}

fn is_receive(step: &Step) -> bool {
    matches!(step, Step::Receive(_) | Step::Timeout)
}

/// The steps, with each delivery as late as can be: right before the receive of the message, or of one that the same sender
/// has sent later. What is not received at once comes in this order.
fn delivered(steps: Vec<Step>, mut order: Vec<Message>) -> Vec<Step> {
    let mut all = Vec::with_capacity(steps.len() * 2);
    for step in steps {
        match &step {
            Step::Deliver(_) => continue,
            Step::Receive(message) => {
                if let Some(at) = order.iter().position(|other| other == message) {
                    let taken = order.remove(at);
                    let is_of_line = |other: &Message| other.sender() == taken.sender();
                    let before = order[..at].iter().rposition(is_of_line);
                    let passed = order.drain(..before.map_or(0, |at| at + 1));
                    all.extend(passed.chain([taken]).map(Step::Deliver));
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
fn lines(
    run: &Run,
    untold: &[Untold],
    causes: &Causes,
) -> Vec<BTreeMap<Option<usize>, Vec<Message>>> {
    let mut lines = vec![BTreeMap::<_, Vec<_>>::new(); run.trace.processes.len()];
    let mut came = HashSet::new();
    for (at, process) in run.trace.processes.iter().enumerate() {
        for step in &process.steps {
            if let Step::Deliver(message) = step {
                lines[at]
                    .entry(message.sender())
                    .or_default()
                    .push(*message);
                came.insert((at, *message));
            }
        }
    }
    for (from, receivers) in run.receivers.iter().enumerate() {
        for (number, to) in (1..).zip(receivers) {
            let message = Message::Sent { from, number };
            if let Some(to) = to
                && !came.contains(&(*to, message))
            {
                lines[*to].entry(Some(from)).or_default().push(message);
            }
        }
    }
    for one in untold {
        let (to, message) = (one.to, one.message());
        let line = lines[to].entry(message.sender()).or_default();
        let cause = |message: &Message| causes.of_cause(to, *message).map(|cause| cause.steps);
        let is_before =
            |other: &Message| came.contains(&(to, *other)) || cause(other) <= cause(&message);
        let at = line.iter().rposition(is_before).map_or(0, |at| at + 1);
        line.insert(at, message);
    }
    lines
}

/// A message of no process that would have come, and did not: its receiver had ended before, had given up the monitor, or did
/// not look any more.
struct Untold {
    to: usize,
    told: Told,
    /// The receive of its receiver, counted from 0, before which it must come.
    until: Option<u32>,
    /// The call of `exit/2` that it comes of, if of one; else of the end of a process.
    call: Option<Access>,
}

impl Untold {
    fn message(&self) -> Message {
        Message::Told(self.told)
    }
}

fn untold(run: &Run) -> Vec<Untold> {
    let mut all = Vec::new();
    let mut next = HashMap::<usize, u32>::new();
    let mut add = |to: usize, of: usize, exit, until, call| {
        let last = || told(run, to).map(|told| told.number).max().unwrap_or(0);
        let number = next.entry(to).or_insert_with(last);
        *number += 1;
        let told = Told {
            number: *number,
            of: Some(of),
            gone: false,
            exit,
        };
        all.push(Untold {
            to,
            told,
            until,
            call,
        });
    };
    for ((to, whom, exit), mut limits) in watches(run) {
        let is_of_end = |told: &&Told| {
            let is_of_call = run.signals.messages.contains_key(&(to, told.number));
            told.of == Some(whom) && told.exit == exit && !told.gone && !is_of_call
        };
        let came = told(run, to).filter(is_of_end).count();
        // Of several monitors, those tell that were not given up.
        limits.sort_by_key(|until| std::cmp::Reverse(until.unwrap_or(u32::MAX)));
        for until in limits.into_iter().skip(came) {
            add(to, whom, exit, until, None);
        }
    }
    for call in &run.untold {
        add(call.to, call.from, true, None, Some(call.access()));
    }
    all
}

/// Until which receives processes were to be told of the ends of those that have ended: by exit signals, or by monitors.
fn watches(run: &Run) -> BTreeMap<(usize, usize, bool), Vec<Option<u32>>> {
    let mut pairs = BTreeMap::<_, Vec<_>>::new();
    let has_ended = |at: usize| run.trace.processes[at].has_ended();
    let watches = run.watches.iter();
    for watch in watches.filter(|watch| !watch.kills && has_ended(watch.whom)) {
        let until = pairs
            .entry((watch.by, watch.whom, watch.is_link))
            .or_default();
        until.push(watch.until);
    }
    pairs
}

/// What a process was told by no process's message.
fn told(run: &Run, process: usize) -> impl Iterator<Item = &Told> {
    let steps = run.trace.processes[process].steps.iter();
    steps.filter_map(|step| match step {
        Step::Deliver(Message::Told(told)) => Some(told),
        _ => None,
    })
}

fn choices_of(
    run: &Run,
    process: usize,
    saw: &HashMap<Access, Saw>,
    choices: &mut Choices,
) -> Vec<(usize, Choice)> {
    let trace = &run.trace;
    let mut all = Vec::new();
    for (step, made) in trace.processes[process].steps.iter().enumerate() {
        let did = match *made {
            Step::Timeout => Did::TimedOut,
            Step::Receive(message) => did(trace, process, message),
            Step::Accesses(number) => {
                let of = process;
                match saw.get(&Access { of, number }) {
                    Some(saw) => Did::Saw(saw.clone()),
                    None => continue,
                }
            }
            _ => continue,
        };
        let slot = (process, all.len() as u32);
        all.push((step, choices.number(slot, did)));
    }
    all
}

/// What each access comes after; nothing of those to nothing that is known.
fn saw(run: &Run, order: &[Access]) -> HashMap<Access, Saw> {
    let mut made = Made::default();
    let known = order
        .iter()
        .filter(|access| !run.accesses.to(**access).is_empty());
    known
        .map(|access| {
            let saw = made.before(*access, &run.accesses);
            made.add(*access, &run.accesses);
            (*access, saw)
        })
        .collect()
}

/// Where each access stands among the steps of its process.
fn accesses(trace: &Trace) -> HashMap<Access, usize> {
    let mut places = HashMap::new();
    for (of, process) in trace.processes.iter().enumerate() {
        for (step, made) in process.steps.iter().enumerate() {
            if let Step::Accesses(number) = *made {
                places.insert(Access { of, number }, step);
            }
        }
    }
    places
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
