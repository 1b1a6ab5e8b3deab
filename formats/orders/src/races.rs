//! Races: the messages that could have come first, at each receive of a trace, accesses that could have come the other way
//! round ([`shared`]), exit signals and ends that could have come earlier ([`ends`]), and the log that turns one around.
//!
//! A message could have been taken instead of the one that was if its sender did not know of that receive when it sent it
//! (no chain of messages, spawns and ends leads from one to the other), if it came behind the one that was taken (what
//! stood before it in the queue was passed over by the receive), and if all that its sender had sent to this receiver
//! before was taken. Source: the races of reachability testing (Lei and Carver), on the steps of prefix-based tracing.
//!
//! A trace does not tell which messages a receive has clauses for. A replay may have tried them: what a receive would pass
//! over is no race ([`Messages::has_clause`]). Else a message that the same `receive` took later
//! ([`Messages::is_same_receive`]) is likely to fit.

mod causes;
mod ends;
mod gone;
mod shared;

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use super::signals::{Arrived, OwnSteps};
use super::{
    Access, Common, Message, Origin, PerProcess, Process, ProcessIndex, Signal, Sites, Step,
    StepAt, StepIndex, Trace, moved,
};
pub(super) use causes::{Causes, Clock, Gone, Known, Signals, join};
pub use ends::{Act, EarlierEnd};
use shared::Seen;
pub(super) use shared::with_accesses;

/// Two things that happened in one order, and could have happened in the other one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Race {
    /// The process whose step came first; of messages, the receiver.
    pub process: ProcessIndex,
    /// Its place among the steps of that process; the first one for an access whose place is not known.
    pub step: StepIndex,
    /// What came first, and what could have.
    pub pair: Pair,
    /// One of its places in the code is no library's.
    pub is_of_application: bool,
}

impl Accessed {
    /// Where the second access is.
    pub(super) fn second_at(&self) -> StepAt {
        StepAt {
            process: self.second.of,
            step: self.second_step,
        }
    }
}

impl Race {
    /// What came first.
    #[must_use]
    pub fn at(&self) -> StepAt {
        let (process, step) = (self.process, self.step);
        StepAt { process, step }
    }

    /// Whether the receive has no clause for the other message.
    fn is_passed_over(&self) -> bool {
        matches!(self.pair, Pair::Messages(both) if both.has_clause == Some(false) && !both.is_same_message())
    }

    fn is_likely(&self) -> bool {
        match self.pair {
            Pair::Messages(both) => {
                both.has_clause == Some(true) || both.is_same_receive != Some(false)
            }
            Pair::Accesses(both) => both.common.is_some(),
            Pair::End(_) => true,
        }
    }
}

/// What came first, and what could have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pair {
    /// A receive, and a message that could have come first.
    Messages(Messages),
    /// Accesses to what processes share.
    Accesses(Accessed),
    /// A step, and an exit signal that could have ended the process before.
    End(EarlierEnd),
}

/// A receive, and a message that could have come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Messages {
    /// What was taken; `None` where the receive timed out.
    pub taken: Option<Message>,
    /// How many of the receiver's receives had timed out by then, with this one.
    pub timeout: u32,
    /// What could have been taken instead.
    pub other: Message,
    /// One `receive` of the code took both, this one later; `None` where the places in the code are not known.
    pub is_same_receive: Option<bool>,
    /// The receive has a clause for the other one; `None` where it has not tried.
    pub has_clause: Option<bool>,
}

impl Messages {
    /// Whether both messages are about one process: that it had ended, and that it was gone.
    #[must_use]
    pub fn is_same_message(&self) -> bool {
        match (self.taken, self.other) {
            (Some(Message::SystemMessage(taken)), Message::SystemMessage(other)) => {
                taken.number == other.number
            }
            _ => false,
        }
    }
}

/// Two accesses of two processes to what they share, of which one at least is a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accessed {
    /// What came first.
    pub first: Access,
    /// What could have.
    pub second: Access,
    /// Its place among the steps of its process.
    second_step: StepIndex,
    /// What both are to. If that is not known, the first one is this access or an earlier one of its process.
    pub common: Option<Common>,
}

/// The races of a trace.
#[derive(Debug)]
pub struct Races {
    /// The trace, with all its deliveries; with a step for each access, where it is known what these are to.
    pub trace: Trace,
    /// The likeliest and most interesting first.
    pub all: Vec<Race>,
    /// There are more than were looked for.
    pub has_more: bool,
    /// What accesses see of others; `None` where that is not known.
    seen: Option<Seen>,
    takers: Takers,
}

/// More races of a trace are not looked for.
pub const RACES_MAX: usize = 1 << 20;

impl Trace {
    /// Its races, those of the application first, and among these those of which a later receive is the same one.
    ///
    /// # Errors
    /// One line: a process waits for a step that waits for it.
    pub fn races(self, sites: &Sites) -> Result<Races, String> {
        let trace = self.with_deliveries();
        let trace = with_accesses(trace, &sites.accesses);
        let mut causes = Causes::of_recording(&trace, sites)?;
        let mut races = Races {
            trace,
            all: Vec::new(),
            has_more: false,
            seen: None,
            takers: Takers::default(),
        };
        for process in races.trace.processes.indexes() {
            races.add_those_of(process, &causes, sites);
            races.add_gone(process, &causes, sites);
            races.add_ends(process, &causes, sites);
        }
        races.takers = Takers::of_recording(&races.trace, sites, &causes.arrived);
        let (mut accesses, has_more) = match sites.accesses.is_empty() {
            true => (shared::told(&races.trace, &causes), false),
            false => {
                let found = causes.seen.take_races();
                races.seen = Some(causes.seen);
                found
            }
        };
        races.has_more |= has_more || races.all.len() + accesses.len() > RACES_MAX;
        accesses.truncate(RACES_MAX - races.all.len());
        accesses.iter_mut().for_each(|race| sites.tell(race));
        races.all.append(&mut accesses);
        let rank = |race: &Race| (!race.is_of_application, !race.is_likely());
        races.all.sort_by_key(rank);
        Ok(races)
    }
}

/// A message on its way: where it stands among its receiver's steps.
#[derive(Clone, Copy)]
struct Arrival {
    message: Message,
    delivered: StepIndex,
    /// Where it is received; `None` where it is not taken.
    received: Option<StepIndex>,
    /// The end of the receiver's steps that its sender knew of.
    known: StepIndex,
}

impl Races {
    fn add_those_of(&mut self, process: ProcessIndex, causes: &Causes, sites: &Sites) {
        let it = &self.trace.processes[process];
        let lines = lines_to(process, it, causes);
        let delivered: FxHashMap<Message, StepIndex> = lines
            .values()
            .flatten()
            .map(|arrival| (arrival.message, arrival.delivered))
            .collect();
        let timeouts = timeouts_until(&it.steps);
        let mut found = Vec::new();
        for (sender, arrivals) in &lines {
            let mut since = StepIndex::FIRST;
            for arrival in arrivals {
                let end = arrival.received.unwrap_or(it.end());
                let begin = since.max(arrival.known);
                since = since.max(end);
                for (step, made) in it.numbered_from(begin).take_while(|(step, _)| *step < end) {
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
        for (step, taken, other) in found {
            let both = Messages {
                taken,
                timeout: timeouts[step.index()],
                other,
                is_same_receive: None,
                has_clause: None,
            };
            self.add(process, step, Pair::Messages(both), sites);
        }
    }

    fn add(&mut self, process: ProcessIndex, step: StepIndex, pair: Pair, sites: &Sites) {
        if self.all.len() == RACES_MAX {
            self.has_more = true;
            return;
        }
        let mut race = Race {
            process,
            step,
            pair,
            is_of_application: false,
        };
        sites.tell(&mut race);
        if !race.is_passed_over() {
            self.all.push(race);
        }
    }

    /// The prefix that turns a race around: all steps that do not depend on what came first, and then what could have
    /// come first.
    ///
    /// # Errors
    /// One line: the race is of accesses, and nobody knows where these are.
    pub fn turned(&self, race: &Race) -> Result<Trace, String> {
        let mut cuts = vec![race.at()];
        let (but, last, turned) = match &race.pair {
            Pair::Messages(messages) => (None, Step::Receive(messages.other), None),
            Pair::End(end) => {
                let by = Signal::End(end.signal.of);
                (None, Step::Exit(Some(by)), None)
            }
            Pair::Accesses(accesses) => {
                if accesses.common.is_none() {
                    return Err(
                        "what the accesses of this race are to is not known, so that it cannot be turned around: leave \
                         out --no-replay"
                            .into(),
                    );
                }
                let (access, other) = (accesses.first.number, accesses.second);
                let second = accesses.second_at();
                cuts.push(StepAt {
                    step: second.step.next(),
                    ..second
                });
                cuts.extend(self.seen.iter().flat_map(|seen| seen.after(other)));
                (Some(second), Step::After { access, other }, Some(accesses))
            }
        };
        let ends = |cuts| {
            self.takers.ends(&self.trace, cuts, |at, step| {
                let seen = self.seen.as_ref();
                let after = seen.map_or(&[][..], |seen| seen.after_step(at, step));
                after.iter().filter(move |after| Some(**after) != but)
            })
        };
        let least = ends(cuts.clone());
        // If it is not known when a killing signal was sent, assume that the kill depends on the race, unless the race
        // depends on the kill.
        let unknown = self.trace.ends_by_signals();
        let unknown = unknown.filter(|end| !self.takers.ended.contains(&end.process));
        let with_signals = unknown.chain(cuts).collect();
        let most = ends(with_signals);
        let is_whole = |at: ProcessIndex| most[at] == least[at];
        let ends = match is_whole(race.process) && but.is_none_or(|but| is_whole(but.process)) {
            true => most,
            false => least,
        };
        let last = Some((race.process, last));
        let cut = self.trace.cut_as(&ends, last, |at, steps| {
            let steps = match &self.seen {
                Some(seen) => seen.told(at, steps, turned),
                None => steps.to_vec(),
            };
            match self.takers.ended.contains(&at) {
                true => with_signal(steps),
                false => steps,
            }
        });
        Ok(cut.log())
    }
}

/// The steps, in which the end says whose signal has caused it, if that is known.
fn with_signal(mut steps: Vec<Step>) -> Vec<Step> {
    let by = steps.iter().find_map(|step| match step {
        Step::Spent(spent) => spent.of,
        _ => None,
    });
    if let (Some(Step::Exit(end)), Some(of)) = (steps.iter_mut().find(|step| step.is_exit()), by) {
        *end = Some(Signal::End(of));
    }
    steps
}

impl Trace {
    /// The steps of each process up to its end, with one more behind those of a process.
    pub(super) fn cut(
        &self,
        ends: &PerProcess<StepIndex>,
        last: Option<(ProcessIndex, Step)>,
    ) -> Trace {
        self.cut_as(ends, last, |_, steps| steps.to_vec())
    }

    /// As [`Trace::cut`], with what `told` makes of the steps of the process at a place.
    fn cut_as(
        &self,
        ends: &PerProcess<StepIndex>,
        last: Option<(ProcessIndex, Step)>,
        told: impl Fn(ProcessIndex, &[Step]) -> Vec<Step>,
    ) -> Trace {
        let mut places = self.processes.map(|_| None);
        let mut cut = Trace::default();
        for (at, process) in self.processes.entries() {
            // Parents come before their children.
            let origin = match process.origin {
                Origin::Root(root) => Some(Origin::Root(root)),
                Origin::Child { of, number } => places[of]
                    .filter(|_| self.is_spawned_before(of, ends[of], at))
                    .map(|of| Origin::Child { of, number }),
            };
            let Some(origin) = origin else { continue };
            let mut steps = told(at, process.before(ends[at]));
            steps.extend(
                last.iter()
                    .filter(|(of, _)| *of == at)
                    .map(|(_, step)| step.clone()),
            );
            places[at] = Some(cut.processes.push(Process {
                origin,
                pid: process.pid,
                known_as: process.known_as.clone(),
                steps,
            }));
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
    fn is_spawned_before(&self, parent: ProcessIndex, end: StepIndex, child: ProcessIndex) -> bool {
        let steps = self.processes[parent].before(end);
        steps.contains(&Step::Spawn(child))
    }

    /// Processes of which it is known what signal ended them, with that signal.
    pub(super) fn ended_by(&self) -> impl Iterator<Item = (ProcessIndex, Signal)> {
        let all = self.processes.entries();
        all.filter_map(|(at, process)| Some((at, process.ended_by()?)))
    }

    /// Whether it tells what signals ended processes.
    #[must_use]
    pub fn has_signals(&self) -> bool {
        self.ended_by().next().is_some()
    }

    /// Where signals end processes.
    fn ends_by_signals(&self) -> impl Iterator<Item = StepAt> {
        let by_signal = |step: &Step| matches!(step, Step::Spent(spent) if spent.by_signal);
        let all = self.processes.entries();
        all.filter_map(move |(process, it)| {
            let step = it.position(by_signal)?;
            Some(StepAt { process, step })
        })
    }

    /// Drops what refers to accesses that were cut off: an access comes after none of them, and what processes have
    /// spent by their ends may depend on them.
    fn forget_accesses(&mut self) {
        let left = self.processes.map(|process| {
            let mut steps = process.steps.iter().rev();
            let last = steps.find_map(|step| match step {
                Step::After { access, .. } => Some(*access),
                Step::Accesses(number) => Some(*number),
                _ => None,
            });
            last.unwrap_or(0)
        });
        for process in &mut self.processes {
            process.steps.retain_mut(|step| match step {
                Step::After { other, .. } => {
                    other.number = other.number.min(left[other.of]);
                    other.number > 0
                }
                Step::Spent(_) | Step::Lost(_) | Step::Heard(..) | Step::Collect { .. } => false,
                _ => true,
            });
        }
    }

    /// Has loads wait for no more misses than are left.
    fn forget_misses(&mut self) {
        let mut missed: FxHashMap<String, u64> = FxHashMap::default();
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
    pub(super) fn sender(self) -> Option<ProcessIndex> {
        match self {
            Message::Sent { from, .. } => Some(from),
            Message::SystemMessage(told) => told.of,
        }
    }

    /// Whether it tells that a process was gone already.
    pub(super) fn is_of_gone(self) -> bool {
        matches!(self, Message::SystemMessage(told) if told.gone)
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

/// The messages of each sender to a process, in their order. A message whose cause is not known races with nothing.
fn lines_to(
    process: ProcessIndex,
    it: &Process,
    causes: &Causes,
) -> BTreeMap<Option<ProcessIndex>, Vec<Arrival>> {
    let mut all: BTreeMap<Option<ProcessIndex>, Vec<Arrival>> = BTreeMap::new();
    let mut received = FxHashMap::default();
    for (at, step) in it.numbered() {
        if let Step::Receive(message) = step {
            received.insert(*message, at);
        }
    }
    for (delivered, step) in it.numbered() {
        let Step::Deliver(message) = step else {
            continue;
        };
        let known = match causes.of_message(process, *message) {
            Some(known) => known,
            // As if its sender had known of all steps: it races with nothing.
            None => it.end(),
        };
        all.entry(message.sender()).or_default().push(Arrival {
            message: *message,
            delivered,
            received: received.get(message).copied(),
            known,
        });
    }
    all
}

/// Which step takes what others send and tell.
#[derive(Debug, Default)]
pub(super) struct Takers {
    /// Where each message is taken.
    takers: FxHashMap<Message, StepAt>,
    /// Where the end of each process is heard of.
    told: FxHashMap<ProcessIndex, Vec<StepAt>>,
    /// Which ends and receives a call of `exit/2` leads to.
    signalled: FxHashMap<Access, Vec<StepAt>>,
    /// Which steps an exit signal of a process leads to, each with the place among the steps of the process where it has
    /// sent the signal.
    sent: FxHashMap<ProcessIndex, Vec<(StepIndex, StepAt)>>,
    /// The processes that such a signal has ended.
    ended: FxHashSet<ProcessIndex>,
}

impl Takers {
    pub(super) fn of(trace: &Trace) -> Takers {
        Takers::with_signals(trace, &Signals::default())
    }

    /// As [`Takers::of`], where it is known what signals have led to.
    pub(super) fn with_signals(trace: &Trace, signals: &Signals) -> Takers {
        Takers::with(trace, signals, |_, _| None)
    }

    /// As [`Takers::of`], for a recording that has exit signals.
    fn of_recording(trace: &Trace, sites: &Sites, arrived: &Arrived) -> Takers {
        let own = trace.processes.map(OwnSteps::of_process);
        Takers::with(trace, &Signals::default(), |at, made| {
            let signal = *match made {
                Step::Receive(Message::SystemMessage(told)) => {
                    arrived.messages.get(&told.at(at))?
                }
                Step::Exit(_) => arrived.ends.get(&at)?,
                _ => return None,
            };
            let sent = sites.signals.get(signal)?;
            let process = signal.of;
            let step = own[process].last_behind(sent.steps);
            Some(StepAt { process, step })
        })
    }

    /// As [`Takers::with_signals`]; `sent` gives the place among the steps of a process where it has sent the signal
    /// that a step is of.
    fn with(
        trace: &Trace,
        signals: &Signals,
        sent: impl Fn(ProcessIndex, &Step) -> Option<StepAt>,
    ) -> Takers {
        let mut all = Takers::default();
        for (process, it) in trace.processes.entries() {
            for (step, made) in it.numbered() {
                let at = StepAt { process, step };
                if let Some(sent) = sent(process, made) {
                    let of_sender = all.sent.entry(sent.process).or_default();
                    of_sender.push((sent.step, at));
                    all.ended.extend(made.is_exit().then_some(process));
                    continue;
                }
                match made {
                    Step::Receive(Message::SystemMessage(told)) => {
                        let call = signals.messages.get(&told.at(process));
                        let by = call.map(|call| Signal::Call(*call));
                        if let Some(by) = by.or(told.of.map(Signal::End)) {
                            all.add(by, at);
                        }
                    }
                    Step::Receive(message @ Message::Sent { .. }) => {
                        all.takers.insert(*message, at);
                    }
                    Step::Exit(Some(by)) => all.add(*by, at),
                    _ => {}
                }
            }
        }
        all
    }

    /// Notes that an end or a call of `exit/2` leads to this step.
    fn add(&mut self, cause: Signal, step: StepAt) {
        let steps = match cause {
            Signal::End(of) => self.told.entry(of).or_default(),
            Signal::Call(call) => self.signalled.entry(call).or_default(),
        };
        steps.push(step);
    }

    /// Where the steps of each process end that do not depend on this step.
    pub(super) fn ends_without(&self, trace: &Trace, step: StepAt) -> PerProcess<StepIndex> {
        self.ends(trace, vec![step], |_, _| &[])
    }

    /// Where the steps of each process end that depend on none of these. `after` gives the steps that depend on a step
    /// otherwise than by messages, spawns and ends.
    pub(super) fn ends<'a, A: IntoIterator<Item = &'a StepAt>>(
        &self,
        trace: &Trace,
        mut cuts: Vec<StepAt>,
        after: impl Fn(ProcessIndex, &Step) -> A,
    ) -> PerProcess<StepIndex> {
        let mut ends = trace.processes.map(Process::end);
        while let Some(StepAt {
            process: at,
            step: end,
        }) = cuts.pop()
        {
            let until = ends[at];
            if end >= until {
                continue;
            }
            ends[at] = end;
            let it = &trace.processes[at];
            // Others hear of an end behind the last step.
            if until == it.end() && it.has_ended() {
                cuts.extend(self.told.get(&at).into_iter().flatten());
            }
            let sent = self.sent.get(&at).into_iter().flatten();
            cuts.extend(
                sent.filter(|(place, _)| end < *place && *place <= until)
                    .map(|(_, to)| *to),
            );
            for step in &it.before(until)[end.index()..] {
                match step {
                    Step::Spawn(child) => cuts.push(StepAt {
                        process: *child,
                        step: StepIndex::FIRST,
                    }),
                    Step::Send(number) => {
                        let (from, number) = (at, *number);
                        cuts.extend(self.takers.get(&Message::Sent { from, number }));
                    }
                    Step::Accesses(number) => {
                        let (of, number) = (at, *number);
                        let access = Access { of, number };
                        cuts.extend(self.signalled.get(&access).into_iter().flatten());
                    }
                    _ => {}
                }
                cuts.extend(after(at, step));
            }
        }
        ends
    }
}

#[cfg(test)]
mod tests;
