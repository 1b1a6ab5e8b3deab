//! What could have been otherwise in a run: at each receive, which other message it could have taken, or that it could
//! have timed out; of each access, which ones it could have come before; of each exit signal that ends a process,
//! before which steps of that process it could have come.
//!
//! Other than a list of races for a reader ([`super::super::Races`]), this one leaves out nothing that is possible: a
//! message that nobody took, one that its receiver never looked at, one behind others of its sender.

mod kills;
mod lines;
mod lost;
mod turned;

use rustc_hash::{FxHashMap, FxHashSet};

use super::super::races::{Causes, Clock, Known, Pair, Takers, join};
use super::super::{
    Access, Message, PerProcess, Process, ProcessIndex, RACES_MAX, Signal, Step, StepAt, StepIndex,
    Trace,
};
use super::choices::{Beginning, Choice, Choices, Did};
use super::reads_from::{Made, Predecessors};
use super::{Run, Traps};
use kills::{Fate, count};
use lines::{Lines, add_gone, is_unlinked, lines, untold};
use turned::did;

/// A receive, an access or an end, and what could have been done instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turn {
    /// What is reordered. A signal may also come behind all steps of a process.
    pub(super) at: StepAt,
    pub(super) instead: Alternative,
}

/// What could have been done instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Alternative {
    /// The receive times out.
    TimesOut,
    /// It takes this message.
    Takes(Message),
    /// The access of this number comes before another one, which stands at this place among the steps of its process.
    Precedes(u64, Access, StepIndex),
    /// This signal ends the process before the step.
    Ends(Signal),
    /// The signal that ended the process comes later, and the process goes on.
    GoesOn,
}

impl Turn {
    /// Whether it reorders two accesses.
    pub(super) fn is_access(&self) -> bool {
        matches!(self.instead, Alternative::Precedes(..))
    }

    /// Whether time passes in it although something else could go on: a receive times out, or one of these timers goes
    /// off.
    pub(super) fn is_early(&self, timers: &FxHashSet<ProcessIndex>) -> bool {
        match self.instead {
            Alternative::TimesOut => true,
            Alternative::Takes(message) => message.sender().is_some_and(|of| timers.contains(&of)),
            Alternative::Precedes(..) => timers.contains(&self.at.process),
            Alternative::Ends(_) | Alternative::GoesOn => false,
        }
    }

    fn message(&self) -> Option<Message> {
        match self.instead {
            Alternative::Takes(message) => Some(message),
            Alternative::TimesOut
            | Alternative::Precedes(..)
            | Alternative::Ends(_)
            | Alternative::GoesOn => None,
        }
    }
}

/// A run, and what is known of its steps.
pub(super) struct Analysis<'r> {
    run: &'r Run,
    causes: Causes,
    takers: Takers,
    /// All messages to each process, by the process that has sent them or whose end they tell, in their order.
    lines: Lines,
    /// The receive of a process, counted from 0, from which on it can take a message no more.
    limits: FxHashMap<(ProcessIndex, Message), u32>,
    /// The choices of each process, each with its step.
    choices: PerProcess<Vec<(StepIndex, Choice)>>,
    /// Where each access stands among the steps of its process.
    accesses: FxHashMap<Access, StepIndex>,
    /// Which exit signals could have ended each process.
    fates: FxHashMap<ProcessIndex, Fate>,
}

/// Where a message stands among its receiver's steps.
#[derive(Clone, Copy)]
struct Place {
    delivered: StepIndex,
    received: StepIndex,
}

impl<'r> Analysis<'r> {
    /// # Errors
    /// One line: a process waits for a step that waits for it.
    pub(super) fn of(run: &'r Run, choices: &mut Choices) -> Result<Analysis<'r>, String> {
        let trace = &run.trace;
        let mut signals = run.signals();
        let untold = untold(run, &signals);
        let calls = untold.iter().filter_map(|one| Some((one, one.call()?)));
        signals
            .messages
            .extend(calls.map(|(one, call)| (one.told.at(one.to), call)));
        let takers = Takers::with_signals(trace, &signals);
        let mut causes = Causes::with_signals(trace, &run.accesses, signals)?;
        for one in &untold {
            if let Some(access) = one.finds_gone()
                && let Some(known) = causes.seen.known_at(access).cloned()
            {
                causes.record_gone(one.told.at(one.to), known);
            }
        }
        let never: Vec<bool> = untold
            .iter()
            .map(|one| is_unlinked(run, &causes, one))
            .collect();
        let saw = saw(run, causes.seen.order());
        let mut lines = lines(run, &untold, &causes);
        add_gone(run, &untold, &mut lines, &mut causes);
        Ok(Analysis {
            run,
            lines,
            causes,
            takers,
            limits: untold
                .into_iter()
                .zip(never)
                .filter_map(|(untold, never)| {
                    let until = if never { Some(0) } else { untold.until };
                    Some(((untold.to, untold.message()), until?))
                })
                .chain(
                    run.flushed
                        .iter()
                        .map(|(message, until)| (*message, *until)),
                )
                .collect(),
            choices: trace
                .processes
                .indexes()
                .map(|at| choices_of(run, at, &saw, choices))
                .collect(),
            accesses: accesses(trace),
            fates: Fate::all_of(run),
        })
    }

    /// # Errors
    /// One line: there are more races than are known.
    pub(super) fn check_races(&self) -> Result<(), String> {
        match self.causes.seen.races().len() {
            RACES_MAX => Err("more accesses of a run race than are looked for".into()),
            _ => Ok(()),
        }
    }

    /// The choices of the run, and how far each process comes, without processes that are left out.
    pub(super) fn whole(&self, is_left_out: impl Fn(ProcessIndex) -> bool) -> Beginning {
        let processes = self.choices.entries();
        let processes = processes.filter(|(at, _)| !is_left_out(*at));
        let own = processes.flat_map(|(_, all)| all.iter().map(|(_, choice)| *choice));
        let whole = self.run.trace.processes.map(Process::end);
        Beginning {
            choices: own.collect(),
            reach: self.reach(&whole, is_left_out),
        }
    }

    /// How many steps that others may see each process makes up to an end.
    fn reach(
        &self,
        ends: &PerProcess<StepIndex>,
        is_left_out: impl Fn(ProcessIndex) -> bool,
    ) -> Vec<(ProcessIndex, u32)> {
        let processes = self.run.trace.processes.entries();
        let reach = processes.filter(|(at, _)| !is_left_out(*at));
        let reach = reach.map(|(at, process)| {
            let exit = process.position(|step| matches!(step, Step::Exit(Some(_))));
            let end = exit.map_or(ends[at], |exit| exit.min(ends[at]));
            (at, count(process.before(end)))
        });
        reach.filter(|(_, steps)| *steps > 0).collect()
    }

    /// The turns of accesses of all processes but those that are left out: each pair of accesses that race.
    pub(super) fn turns_of_accesses(
        &self,
        is_left_out: impl Fn(ProcessIndex) -> bool,
    ) -> Vec<Turn> {
        let races = self.causes.seen.races().iter();
        let turns = races.filter_map(|race| match race.pair {
            Pair::Accesses(both) => Some(Turn {
                at: both.second_at(),
                instead: Alternative::Precedes(both.second.number, both.first, race.step),
            }),
            Pair::Messages(_) | Pair::End(_) => None,
        });
        turns.filter(|turn| !is_left_out(turn.at.process)).collect()
    }

    /// The turns of the receives of a process, each behind those that it depends on.
    pub(super) fn turns_of(&self, process: ProcessIndex) -> Vec<Turn> {
        let it = &self.run.trace.processes[process];
        let places = places(it);
        let place = |message: &Message| {
            let never = Place {
                delivered: it.end(),
                received: it.end(),
            };
            places.get(message).copied().unwrap_or(never)
        };
        let mut turns = Vec::new();
        let mut clock = self.first_clock(process);
        let (mut nth, mut lost) = (0, FxHashSet::default());
        for (step, made) in it.numbered() {
            let at = StepAt { process, step };
            let ended_by = self.ended_in_receive(process, made);
            let taken = match made {
                Step::Timeout => None,
                Step::Receive(message) => Some(*message),
                Step::Exit(_) if ended_by.is_some() => None,
                Step::Exit(Some(_)) if self.could_go_on(process) => {
                    let instead = Alternative::GoesOn;
                    turns.push(Turn { at, instead });
                    break;
                }
                step => {
                    self.note_lost(process, step, &mut lost);
                    self.learn(process, step, &mut clock);
                    continue;
                }
            };
            let passed = match (taken, ended_by) {
                (Some(taken), _) => place(&taken).delivered,
                (None, Some((_, has_looked))) if !has_looked => StepIndex::FIRST,
                (None, _) => step,
            };
            let receive = Receive {
                at,
                nth,
                taken,
                passed,
            };
            for (sender, line) in &self.lines[process] {
                if taken.is_none_or(|taken| taken.sender() != *sender) {
                    self.add_of_line(receive, line, &place, &mut turns);
                }
            }
            let came_at_once = match (taken, ended_by) {
                (Some(taken), _) => {
                    self.came_at_once(at, &clock, taken)
                        && !self.could_be_lost(process, taken, &lost)
                }
                (None, Some((signal, _))) => self.ended_at_once(signal, &clock),
                (None, None) => true,
            };
            if self.run.timed.contains(&(process, nth)) && !came_at_once {
                let instead = Alternative::TimesOut;
                turns.push(Turn { at, instead });
            }
            nth += 1;
            self.learn(process, made, &mut clock);
        }
        turns
    }

    /// Adds to the clock of a process what a step of it learns.
    fn learn(&self, process: ProcessIndex, step: &Step, clock: &mut Clock) {
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

    fn first_clock(&self, process: ProcessIndex) -> Clock {
        let mut clock = Clock::default();
        if let Some(known) = self.causes.of_beginning(process) {
            join(&mut clock, known);
        }
        clock
    }

    /// Whether the message that a receive took was there when the receive began: the process knew of its cause then. So
    /// the receive could not have timed out before.
    fn came_at_once(&self, at: StepAt, clock: &Clock, taken: Message) -> bool {
        let Some(cause) = self.causes.of_cause(at.process, taken) else {
            return false;
        };
        if self.is_heard_late(at.process, taken) {
            return self.has_taken_later(at, taken);
        }
        match cause.process == at.process {
            true => cause.end <= at.step,
            false => clock
                .get(&cause.process)
                .is_some_and(|known| *known >= cause.end),
        }
    }

    /// Whether a message tells of the end of a process, which tells its watchers one after the other: a process that
    /// knows of the end does not know that this one has heard of it. A timer has one receiver.
    fn is_heard_late(&self, receiver: ProcessIndex, message: Message) -> bool {
        let end = self.causes.end_told(receiver, message);
        end.is_some_and(|of| !self.run.timers.contains(&of))
    }

    /// Whether the process had taken a later message of the same sender: then this one had come.
    fn has_taken_later(&self, at: StepAt, message: Message) -> bool {
        let before = self.run.trace.processes[at.process].before(at.step);
        let line = self.lines[at.process].get(&message.sender());
        let mut later = line.into_iter().flatten().skip_while(|it| **it != message);
        later.any(|it| before.contains(&Step::Receive(*it)))
    }

    fn add_of_line(
        &self,
        receive: Receive,
        line: &[Message],
        place: &impl Fn(&Message) -> Place,
        turns: &mut Vec<Turn>,
    ) {
        let at = receive.at;
        for message in line {
            let there = place(message);
            // A message that stood before the one that was taken was passed over: the receive has no clause for it.
            if there.received < at.step
                || there.delivered < receive.passed
                || self.is_too_late(receive, *message)
                || self.is_before_trapping(at, *message)
            {
                continue;
            }
            let Some(cause) = self.causes.of_cause(at.process, *message) else {
                return;
            };
            // Later messages of this sender know no less.
            if cause.of(at.process) > at.step
                || self.comes_after(receive, cause)
                || self.is_behind_a_signal(at, *message, cause)
            {
                return;
            }
            let instead = Alternative::Takes(*message);
            turns.push(Turn { at, instead });
        }
    }

    /// Whether a message is an exit signal from before the process trapped exits: it would have ended the process.
    fn is_before_trapping(&self, at: StepAt, message: Message) -> bool {
        let begins = |traps: &Traps<ProcessIndex>| {
            let (of, number) = (at.process, traps.access);
            let place = self.accesses.get(&Access { of, number });
            let is_before = number == 0 || place.is_some_and(|place| *place < at.step);
            traps.by == at.process && traps.traps && is_before
        };
        let is_exit = matches!(message, Message::SystemMessage(told) if told.exit);
        is_exit && !self.run.traps.iter().any(begins)
    }

    /// Whether the receive is behind the limit of a message, such as the end of its monitor.
    fn is_too_late(&self, receive: Receive, message: Message) -> bool {
        let limit = self.limits.get(&(receive.at.process, message));
        limit.is_some_and(|until| receive.nth >= *until)
    }

    /// Whether the sender of this message knew of the sending of the one that was taken: within one node, that one was
    /// there before.
    fn comes_after(&self, receive: Receive, cause: &Known) -> bool {
        let process = receive.at.process;
        let taken = receive.taken;
        let taken = taken.filter(|taken| !self.is_heard_late(process, *taken));
        let first = taken.and_then(|taken| self.causes.of_cause(process, taken));
        first.is_some_and(|first| cause.includes(first))
    }
}

/// A receive.
#[derive(Clone, Copy)]
struct Receive {
    at: StepAt,
    /// Which of the receives of the process, from 0.
    nth: u32,
    taken: Option<Message>,
    /// The receive has looked at what was delivered before this step, and passed it over.
    passed: StepIndex,
}

/// Where messages stand among their receiver's steps.
fn places(receiver: &Process) -> FxHashMap<Message, Place> {
    let mut places: FxHashMap<Message, Place> = FxHashMap::default();
    for (at, step) in receiver.numbered() {
        match step {
            Step::Deliver(message) => {
                places.insert(
                    *message,
                    Place {
                        delivered: at,
                        received: receiver.end(),
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

fn choices_of(
    run: &Run,
    process: ProcessIndex,
    saw: &FxHashMap<Access, Predecessors>,
    choices: &mut Choices,
) -> Vec<(StepIndex, Choice)> {
    let mut all = Vec::new();
    let it = &run.trace.processes[process];
    let mut receives = 0;
    for (step, made) in it.numbered() {
        let nth = receives;
        receives += u32::from(matches!(made, Step::Receive(_) | Step::Timeout));
        let did = match *made {
            Step::Timeout => Did::TimedOut,
            Step::Exit(Some(signal)) => Did::Ended(signal, count(it.before(step))),
            Step::Receive(message) => did(run, process, nth, message),
            Step::Accesses(number) => {
                let of = process;
                match saw.get(&Access { of, number }) {
                    Some(saw) => Did::Predecessors(saw.clone()),
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

/// What each access comes after. Accesses of which it is not known what they are to have none.
fn saw(run: &Run, order: &[Access]) -> FxHashMap<Access, Predecessors> {
    let mut made = Made::default();
    let known = order
        .iter()
        .filter(|access| !run.accesses.to(**access).is_empty());
    known
        .map(|access| {
            let saw = made.before(access.of, run.accesses.to(*access));
            made.add(*access, &run.accesses);
            (*access, saw)
        })
        .collect()
}

/// Where each access stands among the steps of its process.
fn accesses(trace: &Trace) -> FxHashMap<Access, StepIndex> {
    let mut places = FxHashMap::default();
    for (of, process) in trace.processes.entries() {
        for (step, made) in process.numbered() {
            if let Step::Accesses(number) = *made {
                places.insert(Access { of, number }, step);
            }
        }
    }
    places
}
