//! What a turn leads to: the prefix of a run that does something else there, and what is known of that run before it is
//! made.

use rustc_hash::FxHashSet;

use super::super::super::accesses::To;
use super::super::super::races::join;
use super::super::super::{
    Access, Message, PerProcess, Process, ProcessIndex, Step, StepAt, StepIndex, Trace,
};
use super::super::choices::{Beginning, Choice, Choices, Did};
use super::super::reads_from::{Made, Predecessors};
use super::super::{Run, Watch};
use super::kills::count;
use super::{Alternative, Analysis, Turn, places};

impl Analysis<'_> {
    /// Where the steps of each process end that do not depend on the receive of a turn, or on the access that came
    /// first.
    pub(in super::super) fn ends(&self, turn: &Turn) -> PerProcess<StepIndex> {
        let cut = match turn.instead {
            Alternative::TimesOut
            | Alternative::Takes(_)
            | Alternative::Ends(_)
            | Alternative::GoesOn => turn.at,
            Alternative::Precedes(_, first, step) => StepAt {
                process: first.of,
                step,
            },
        };
        let seen = &self.causes.seen;
        let after = |at, step: &Step| seen.after_step(at, step);
        let mut ends = self.takers.ends(&self.run.trace, vec![cut], after);
        // A timer whose steps are cut has not ended in the prefix, not even by a cancel: so none of its steps are kept.
        for at in &self.run.timers {
            let is_whole = ends[*at] == self.run.trace.processes[*at].end();
            if !is_whole && ![turn.at.process, cut.process].contains(at) {
                ends[*at] = StepIndex::FIRST;
            }
        }
        ends
    }

    /// The beginning of a turned run, without processes that are left out. Its last choice is that of the turn, if the
    /// turn has one.
    pub(in super::super) fn beginning(
        &self,
        turn: &Turn,
        ends: &PerProcess<StepIndex>,
        choices: &mut Choices,
        is_left_out: impl Fn(ProcessIndex) -> bool,
    ) -> Beginning {
        let processes = self.choices.entries();
        let processes = processes.filter(|(at, _)| !is_left_out(*at));
        let kept = processes.flat_map(|(at, all)| {
            let kept = all.iter().take_while(move |(step, _)| *step < ends[at]);
            kept.map(|(_, choice)| *choice)
        });
        let mut kept: Vec<Choice> = kept.collect();
        let mut reach = self.reach(ends, &is_left_out);
        match turn.instead {
            Alternative::GoesOn => {
                let steps = self.count_before(turn) + 1;
                let of = turn.at.process;
                reach.retain(|(process, _)| *process != of);
                reach.push((of, steps));
            }
            _ => kept.push(self.turned_choice(turn, ends, choices)),
        }
        Beginning {
            choices: kept,
            reach,
        }
    }

    /// How many steps that others may see come before that of a turn.
    fn count_before(&self, turn: &Turn) -> u32 {
        count(self.steps_before(turn))
    }

    /// The steps of the process of a turn before it.
    fn steps_before(&self, turn: &Turn) -> &[Step] {
        self.run.trace.processes[turn.at.process].before(turn.at.step)
    }

    fn turned_choice(
        &self,
        turn: &Turn,
        ends: &PerProcess<StepIndex>,
        choices: &mut Choices,
    ) -> Choice {
        let of = turn.at.process;
        let before = self.choices[of]
            .iter()
            .take_while(|(step, _)| *step < turn.at.step);
        let slot = (of, before.count() as u32);
        let did = match turn.instead {
            Alternative::TimesOut => Did::TimedOut,
            Alternative::Takes(message) => self.would_do(turn, message),
            Alternative::Precedes(number, ..) => {
                Did::Predecessors(self.saw_before(ends, Access { of, number }))
            }
            Alternative::Ends(signal) => Did::Ended(signal, self.count_before(turn)),
            Alternative::GoesOn => Did::WentOn(self.count_before(turn)),
        };
        choices.number(slot, did)
    }

    /// What a receive does that takes a message which may not have come in this run: the same as [`did`] says of the
    /// run in which it has. The messages before it in its line come before.
    fn would_do(&self, turn: &Turn, message: Message) -> Did {
        let line = self.lines[turn.at.process].get(&message.sender());
        let before = line.into_iter().flatten();
        let before = before.take_while(|other| **other != message);
        did_behind(
            before.filter(|other| !self.is_dropped_before(turn, **other)),
            message,
        )
    }

    /// What an access comes after, if it is made when each process has made its steps up to these ends.
    fn saw_before(&self, ends: &PerProcess<StepIndex>, access: Access) -> Predecessors {
        let to = self.would_access(ends, access);
        self.made_by(ends).before(access.of, &to)
    }

    /// What an access is to, if it is made when each process has made its steps up to these ends. The access of a
    /// normal end reads whether the processes that are linked then trap exits.
    fn would_access(&self, ends: &PerProcess<StepIndex>, access: Access) -> Vec<To> {
        let is_made = |of, number| {
            let place = self.accesses.get(&Access { of, number });
            place.is_some_and(|place| *place < ends[of])
        };
        let mut all = self.run.accesses.to(access).to_vec();
        if !self.is_normal_end(access) {
            return all;
        }
        all.retain(|to| !self.run.accesses.is_of_trapping(to.object));
        let links = self.run.watches.iter();
        let links = links.filter(|it| it.is_link && it.whom == access.of);
        let links = links.filter(|it| {
            it.links.is_none_or(|number| is_made(it.by, number))
                && it.unlinks.is_none_or(|number| !is_made(it.by, number))
        });
        all.extend(links.filter_map(|it| self.trapping_of(it.by)));
        all
    }

    /// Whether it is the last access of a process that ended normally, as far as its watchers know.
    fn is_normal_end(&self, access: Access) -> bool {
        let steps = self.run.trace.processes[access.of].steps.iter();
        let last = steps.rev().find_map(|step| match step {
            Step::Accesses(number) => Some(*number),
            _ => None,
        });
        let is_fine = |watch: &Watch<ProcessIndex>| watch.whom != access.of || !watch.fails;
        last == Some(access.number)
            && self.run.trace.processes[access.of].has_ended()
            && self.run.watches.iter().all(is_fine)
    }

    /// A read of whether a process traps exits, if it ever changes that.
    fn trapping_of(&self, process: ProcessIndex) -> Option<To> {
        let changes = self.run.traps.iter();
        let mut changes = changes.filter(|traps| traps.by == process && traps.access != 0);
        let (of, number) = (process, changes.next()?.access);
        let to = self.run.accesses.to(Access { of, number }).first()?;
        Some(To {
            is_change: false,
            ..*to
        })
    }

    /// The accesses that are made when each process has made its steps up to these ends.
    fn made_by(&self, ends: &PerProcess<StepIndex>) -> Made {
        let mut made = Made::default();
        for other in self.causes.seen.order() {
            if self.accesses[other] < ends[other.of] {
                made.add(*other, &self.run.accesses);
            }
        }
        made
    }

    /// What it depends on whether a run can do this: the choices before the turn, and before the sending of its message
    /// or signal. An access can always come first: it has no key.
    pub(in super::super) fn key(&self, turn: &Turn, choices: &mut Choices) -> Box<[Choice]> {
        if turn.is_access() {
            return Box::default();
        }
        let of = turn.at.process;
        let mut clock = self.first_clock(of);
        for step in self.steps_before(turn) {
            self.learn(of, step, &mut clock);
        }
        let cause = match turn.instead {
            Alternative::Takes(message) => self.causes.of_cause(of, message),
            Alternative::Ends(signal) => self.causes.of_signal(signal),
            Alternative::TimesOut | Alternative::Precedes(..) | Alternative::GoesOn => None,
        };
        if let Some(cause) = cause {
            join(&mut clock, cause);
        }
        let mut known: Vec<(ProcessIndex, StepIndex)> =
            clock.iter().map(|(at, end)| (*at, *end)).collect();
        known.retain(|(at, _)| *at != of);
        known.push((of, turn.at.step));
        known.sort_unstable();
        let mut key = Vec::new();
        for (at, end) in known {
            let before = self.choices[at].iter().take_while(|(step, _)| *step < end);
            key.extend(before.map(|(_, choice)| *choice));
        }
        key.push(self.turned_choice(turn, &PerProcess::default(), choices));
        key.into()
    }

    /// The turns of this receive to earlier messages of the same sender, which are as free as this one: if the receive
    /// can take one of them, it cannot take this message.
    pub(in super::super) fn before<'a>(
        &'a self,
        turn: &'a Turn,
        all: &'a [Turn],
    ) -> impl Iterator<Item = &'a Turn> {
        let sender = turn.message().map(Message::sender);
        all.iter()
            .take_while(move |other| *other != turn)
            .filter(move |other| {
                sender.is_some()
                    && other.at == turn.at
                    && other.message().map(Message::sender) == sender
            })
    }

    /// The prefix of a turned run, with the deliveries that its receives need. It has no accesses of processes that are
    /// left out.
    pub(in super::super) fn turned(
        &self,
        turn: &Turn,
        ends: &PerProcess<StepIndex>,
        is_left_out: impl Fn(ProcessIndex) -> bool,
    ) -> Trace {
        let mut trace = self.run.trace.clone();
        let last = self.last_steps(turn, ends);
        for (at, process) in trace.processes.entries_mut() {
            let kept = process.before(ends[at]);
            let mut steps = self.causes.seen.told(at, kept, None);
            let own = last.iter().filter(|(of, _)| *of == at);
            steps.extend(own.map(|(_, step)| step.clone()));
            if is_left_out(at) {
                steps.retain(|step| !matches!(step, Step::After { .. } | Step::Accesses(_)));
            }
            let turn = Some(turn).filter(|turn| turn.at.process == at);
            let order = self.deliveries(at, &steps, turn);
            process.steps = delivered(steps, order);
        }
        let whole = trace.processes.map(Process::end);
        trace.cut(&whole, None)
    }

    /// The messages that have to be delivered to a process so that it can make these steps: all that it receives, and
    /// what the same senders have sent before. They come in the order in which they came in this run, but the message
    /// of a turned receive comes before all for which that receive may have a clause.
    fn deliveries(
        &self,
        process: ProcessIndex,
        steps: &[Step],
        turn: Option<&Turn>,
    ) -> Vec<Message> {
        let received: FxHashSet<Message> = steps
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
        let it = &self.run.trace.processes[process];
        let places = places(it);
        let came = |message: &Message| {
            places
                .get(message)
                .map_or(it.end().next(), |at| at.delivered)
        };
        // Of the messages that did not come, some were dropped, and do not count.
        let can_come = |message: &&Message| {
            let is_in_time = |turn: &Turn| {
                let taken = turn.message().map(Message::sender);
                taken == Some(message.sender()) && !self.is_dropped_before(turn, **message)
            };
            places.contains_key(*message) || turn.is_some_and(is_in_time)
        };
        let mut order: Vec<Message> = needed.filter(can_come).copied().collect();
        order.sort_by_key(came);
        let Some((turn, other)) = turn.and_then(|turn| Some((turn, turn.message()?))) else {
            return order;
        };
        let passed = match it.step(turn.at.step) {
            Some(Step::Receive(taken)) => came(taken),
            _ => turn.at.step,
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

    /// Whether a message to the process of a turn has been dropped before the turn.
    fn is_dropped_before(&self, turn: &Turn, message: Message) -> bool {
        let steps = self.steps_before(turn).iter();
        let is_receive = |step: &&Step| matches!(step, Step::Receive(_) | Step::Timeout);
        let limit = self.limits.get(&(turn.at.process, message));
        limit.is_some_and(|until| steps.filter(is_receive).count() as u32 >= *until)
    }

    /// The steps of a turned run behind those that it has in common with this one, each with its process.
    fn last_steps(&self, turn: &Turn, ends: &PerProcess<StepIndex>) -> Vec<(ProcessIndex, Step)> {
        let of = turn.at.process;
        match turn.instead {
            Alternative::TimesOut => vec![(of, Step::Timeout)],
            Alternative::Ends(signal) => vec![(of, Step::Exit(Some(signal)))],
            Alternative::GoesOn => Vec::new(),
            Alternative::Takes(message) => vec![(of, Step::Receive(message))],
            Alternative::Precedes(access, first, _) => {
                let second = Access { of, number: access };
                let mut made = self.made_by(ends);
                let mut steps = Vec::new();
                for own in [second, first] {
                    let to = self.would_access(ends, own);
                    let saw = made.before(own.of, &to).into_iter();
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

/// The steps, with each delivery as late as possible: right before the receive of the message, or of a later one of the
/// same sender. What is not received at once is delivered in this order.
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

/// What a receive did, in terms that are the same in every run: messages that say the same of a process are counted. A
/// message that was dropped by then does not count, as nobody sees whether it has come.
pub(super) fn did(run: &Run, receiver: ProcessIndex, nth: u32, message: Message) -> Did {
    let steps = run.trace.processes[receiver].steps.iter();
    let before = steps.map_while(|step| match step {
        Step::Deliver(other) => (other != &message).then_some(Some(other)),
        _ => Some(None),
    });
    let is_dropped = |other: &&Message| {
        let until = run.flushed.get(&(receiver, **other));
        until.is_some_and(|until| nth >= *until)
    };
    did_behind(before.flatten().filter(|it| !is_dropped(it)), message)
}

/// A message in terms that are the same in every run, behind these.
fn did_behind<'m>(before: impl Iterator<Item = &'m Message>, message: Message) -> Did {
    let told = match message {
        Message::Sent { from, number } => return Did::Took(from, number),
        Message::SystemMessage(told) => told,
    };
    let tells_so = |other: &&Message| matches!(other, Message::SystemMessage(other) if (other.of, other.gone) == (told.of, told.gone));
    Did::Heard(told.of, told.gone, before.filter(tells_so).count() as u32)
}
