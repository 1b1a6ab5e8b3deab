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
use super::{Access, Common, Message, Origin, Process, Signal, Sites, Step, Trace, moved};
pub(super) use causes::{Causes, Clock, Known, Signals, join};
pub use ends::{Act, EarlierEnd};
use shared::Seen;
pub(super) use shared::with_accesses;

/// Two things that happened in one order, and could have happened in the other one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Race {
    /// The process whose step came first; of messages, the receiver.
    pub process: usize,
    /// Its place among the steps of that process; 0 for an access whose place is not known.
    pub step: usize,
    /// What came first, and what could have.
    pub pair: Pair,
    /// One of its places in the code is no library's.
    pub is_of_application: bool,
}

impl Race {
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
    pub(super) second_step: usize,
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
        for process in 0..races.trace.processes.len() {
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
    delivered: usize,
    /// Where it is received; `None` where it is not taken.
    received: Option<usize>,
    /// How many of the receiver's steps its sender knew of.
    knows: usize,
}

impl Races {
    fn add_those_of(&mut self, process: usize, causes: &Causes, sites: &Sites) {
        let steps = &self.trace.processes[process].steps;
        let lines = lines_to(process, steps, causes);
        let delivered: FxHashMap<Message, usize> = lines
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
        for (step, taken, other) in found {
            let both = Messages {
                taken,
                timeout: timeouts[step],
                other,
                is_same_receive: None,
                has_clause: None,
            };
            self.add(process, step, Pair::Messages(both), sites);
        }
    }

    fn add(&mut self, process: usize, step: usize, pair: Pair, sites: &Sites) {
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
        let mut cuts = vec![(race.process, race.step)];
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
                cuts.push((other.of, accesses.second_step + 1));
                cuts.extend(self.seen.iter().flat_map(|seen| seen.after(other)));
                let but = (other.of, accesses.second_step);
                (Some(but), Step::After { access, other }, Some(accesses))
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
        let unknown = unknown.filter(|(at, _)| !self.takers.ended.contains(at));
        let with_signals = unknown.chain(cuts).collect();
        let most = ends(with_signals);
        let is_whole = |at: usize| most[at] == least[at];
        let ends = match is_whole(race.process) && but.is_none_or(|(of, _)| is_whole(of)) {
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
    pub(super) fn cut(&self, ends: &[usize], last: Option<(usize, Step)>) -> Trace {
        self.cut_as(ends, last, |_, steps| steps.to_vec())
    }

    /// As [`Trace::cut`], with what `told` makes of the steps of the process at a place.
    fn cut_as(
        &self,
        ends: &[usize],
        last: Option<(usize, Step)>,
        told: impl Fn(usize, &[Step]) -> Vec<Step>,
    ) -> Trace {
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
            let mut steps = told(at, &process.steps[..ends[at]]);
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

    /// The place of the end of a process among its steps, if it ends.
    fn end_of(&self, process: usize) -> Option<usize> {
        let mut steps = self.processes[process].steps.iter();
        steps.position(Step::is_exit)
    }

    /// Processes of which it is known what signal ended them, with that signal.
    pub(super) fn ended_by(&self) -> impl Iterator<Item = (usize, Signal)> {
        let all = self.processes.iter().enumerate();
        all.filter_map(|(at, process)| Some((at, process.ended_by()?)))
    }

    /// Whether it tells what signals ended processes.
    #[must_use]
    pub fn has_signals(&self) -> bool {
        self.ended_by().next().is_some()
    }

    /// The processes that signals end, and where.
    fn ends_by_signals(&self) -> impl Iterator<Item = (usize, usize)> {
        let by_signal = |step: &Step| matches!(step, Step::Spent(spent) if spent.by_signal);
        let all = self.processes.iter().enumerate();
        all.filter_map(move |(at, process)| Some((at, process.steps.iter().position(by_signal)?)))
    }

    /// Drops what refers to accesses that were cut off: an access comes after none of them, and what processes have
    /// spent by their ends may depend on them.
    fn forget_accesses(&mut self) {
        let left = self.processes.iter().map(|process| {
            let mut steps = process.steps.iter().rev();
            let last = steps.find_map(|step| match step {
                Step::After { access, .. } => Some(*access),
                Step::Accesses(number) => Some(*number),
                _ => None,
            });
            last.unwrap_or(0)
        });
        let left: Vec<u64> = left.collect();
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
    pub(super) fn sender(self) -> Option<usize> {
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
    process: usize,
    steps: &[Step],
    causes: &Causes,
) -> BTreeMap<Option<usize>, Vec<Arrival>> {
    let mut all: BTreeMap<Option<usize>, Vec<Arrival>> = BTreeMap::new();
    let mut received = FxHashMap::default();
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
            // As if its sender had known of all steps: it races with nothing.
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

/// A process, and a place among its steps.
type Place = (usize, usize);

/// Which step takes what others send and tell.
#[derive(Debug, Default)]
pub(super) struct Takers {
    /// Where each message is taken: the process, and which of its steps.
    takers: FxHashMap<Message, (usize, usize)>,
    /// Where the end of each process is heard of.
    told: FxHashMap<usize, Vec<(usize, usize)>>,
    /// Which ends and receives a call of `exit/2` leads to.
    signalled: FxHashMap<Access, Vec<(usize, usize)>>,
    /// Which steps an exit signal of a process leads to, each with how many steps the process had made when it sent it.
    sent: FxHashMap<usize, Vec<(usize, Place)>>,
    /// The processes that such a signal has ended.
    ended: FxHashSet<usize>,
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
        let own: Vec<OwnSteps> = trace.processes.iter().map(OwnSteps::of_process).collect();
        Takers::with(trace, &Signals::default(), |at, made| {
            let signal = *match made {
                Step::Receive(Message::SystemMessage(told)) => {
                    arrived.messages.get(&(at, told.number))?
                }
                Step::Exit(_) => arrived.ends.get(&at)?,
                _ => return None,
            };
            let sent = sites.signals.get(signal)?;
            Some((signal.of, own[signal.of].last_behind(sent.steps)))
        })
    }

    /// As [`Takers::with_signals`]; `sent` gives the place among the steps of a process where it has sent the signal
    /// that a step is of.
    fn with(
        trace: &Trace,
        signals: &Signals,
        sent: impl Fn(usize, &Step) -> Option<Place>,
    ) -> Takers {
        let mut all = Takers::default();
        for (at, process) in trace.processes.iter().enumerate() {
            for (step, made) in process.steps.iter().enumerate() {
                if let Some((of, place)) = sent(at, made) {
                    all.sent.entry(of).or_default().push((place, (at, step)));
                    all.ended.extend(made.is_exit().then_some(at));
                    continue;
                }
                match made {
                    Step::Receive(Message::SystemMessage(told)) => {
                        let call = signals.messages.get(&(at, told.number));
                        let by = call.map(|call| Signal::Call(*call));
                        if let Some(by) = by.or(told.of.map(Signal::End)) {
                            all.add(by, (at, step));
                        }
                    }
                    Step::Receive(message @ Message::Sent { .. }) => {
                        all.takers.insert(*message, (at, step));
                    }
                    Step::Exit(Some(by)) => all.add(*by, (at, step)),
                    _ => {}
                }
            }
        }
        all
    }

    /// Notes that an end or a call of `exit/2` leads to this step.
    fn add(&mut self, cause: Signal, step: Place) {
        let steps = match cause {
            Signal::End(of) => self.told.entry(of).or_default(),
            Signal::Call(call) => self.signalled.entry(call).or_default(),
        };
        steps.push(step);
    }

    /// Where the steps of each process end that do not depend on this step.
    pub(super) fn ends_without(&self, trace: &Trace, process: usize, step: usize) -> Vec<usize> {
        self.ends(trace, vec![(process, step)], |_, _| &[])
    }

    /// Where the steps of each process end that depend on none of these. `after` gives the steps that depend on a step
    /// otherwise than by messages, spawns and ends.
    pub(super) fn ends<'a, A: IntoIterator<Item = &'a (usize, usize)>>(
        &self,
        trace: &Trace,
        mut cuts: Vec<(usize, usize)>,
        after: impl Fn(usize, &Step) -> A,
    ) -> Vec<usize> {
        let mut ends: Vec<usize> = trace.processes.iter().map(|one| one.steps.len()).collect();
        while let Some((at, end)) = cuts.pop() {
            let until = ends[at];
            if end >= until {
                continue;
            }
            ends[at] = end;
            let steps = &trace.processes[at].steps;
            // Others hear of an end behind the last step.
            if until == steps.len() && trace.processes[at].has_ended() {
                cuts.extend(self.told.get(&at).into_iter().flatten());
            }
            let sent = self.sent.get(&at).into_iter().flatten();
            cuts.extend(
                sent.filter(|(place, _)| (end + 1..=until).contains(place))
                    .map(|(_, to)| *to),
            );
            for step in &steps[end..until] {
                match step {
                    Step::Spawn(child) => cuts.push((*child, 0)),
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
