//! Exit signals that end a process, or could have ended it: between which of its steps they could have come.
//!
//! A signal is in its receiver's queue when it has been sent. It ends a process that does not trap exits wherever that one
//! is, and so before each of its steps; but none takes a message that was sent behind the signal.

use rustc_hash::FxHashMap;

use super::super::super::races::Known;
use super::super::super::{Message, Process, ProcessIndex, Signal, Step, StepAt, StepIndex};
use super::super::{EndedAt, Ends, Run};
use super::{Alternative, Analysis, Turn};

/// An exit signal that ends its receiver, unless that one traps exits.
pub(super) struct Kill {
    signal: Signal,
    /// It ends a process that traps exits, too.
    ends_any: bool,
    /// Where the receiver gives up the link: the place of that access among its steps.
    until: Option<StepIndex>,
}

/// The exit signals that could end a process, and where it traps exits.
pub(super) struct Fate {
    kills: Vec<Kill>,
    /// Where it begins to trap exits, and ceases to: places among its steps; `None`: before the run.
    traps: Vec<(Option<StepIndex>, bool)>,
}

/// Steps of a process that nobody sees, between the places where they begin and end. A signal that ends the process
/// before any of them, or right behind them, does the same.
#[derive(Clone, Copy)]
struct Unseen {
    begin: StepIndex,
    end: StepIndex,
}

impl Fate {
    /// The fate of each process that such signals were sent to.
    pub(super) fn all_of(run: &Run) -> FxHashMap<ProcessIndex, Fate> {
        let mut all = FxHashMap::<ProcessIndex, Vec<Kill>>::default();
        let place = |at: ProcessIndex, number| place_of(&run.trace.processes[at], number);
        for watch in run.watches.iter().filter(|it| it.is_link && it.fails) {
            all.entry(watch.by).or_default().push(Kill {
                signal: Signal::End(watch.whom),
                ends_any: false,
                until: watch.unlinks.and_then(|number| place(watch.by, number)),
            });
        }
        for call in &run.exit_calls {
            if call.ends != Ends::Nobody {
                all.entry(call.to).or_default().push(Kill {
                    signal: Signal::Call(call.access()),
                    ends_any: call.ends == Ends::Any,
                    until: None,
                });
            }
        }
        let traps = |at: ProcessIndex| {
            let own = run.traps.iter().filter(move |traps| traps.by == at);
            own.map(|own| (place(at, own.access), own.traps)).collect()
        };
        let all = all.into_iter();
        all.map(|(at, kills)| {
            let traps = traps(at);
            (at, Fate { kills, traps })
        })
        .collect()
    }

    /// Whether the process traps exits behind all its steps before this one.
    fn is_trapping(&self, step: StepIndex) -> bool {
        let before = self.traps.iter().take_while(|(at, _)| *at < Some(step));
        before.last().is_some_and(|(_, traps)| *traps)
    }

    /// The signals that could end the process in these steps.
    fn kills_in(&self, steps: Unseen) -> impl Iterator<Item = &Kill> {
        let is_open = !self.is_trapping(steps.begin);
        let kills = self.kills.iter();
        kills.filter(move |kill| {
            (is_open || kill.ends_any) && kill.until.is_none_or(|until| steps.end <= until)
        })
    }
}

/// The place of an access among the steps of its process.
fn place_of(process: &Process, number: u64) -> Option<StepIndex> {
    process.position(|step| *step == Step::Accesses(number))
}

/// Whether others may see a step: an end before it and an end behind it differ.
pub(super) fn is_visible(step: &Step) -> bool {
    match step {
        Step::Accesses(_) => true,
        Step::Miss(_) | Step::Load { .. } | Step::Exit(Some(_)) => false,
        step => step.is_own(),
    }
}

/// How many of these steps others may see.
pub(super) fn count(steps: &[Step]) -> u32 {
    steps.iter().filter(|step| is_visible(step)).count() as u32
}

impl Analysis<'_> {
    /// Whether signals that end processes which do not trap exits came to one that ceased to: not all orders of those
    /// are explored.
    pub(in super::super) fn has_signals_to_who_ceased_to_trap(&self) -> bool {
        let mut fates = self.fates.values();
        fates.any(|fate| !fate.kills.is_empty() && fate.traps.iter().any(|(_, traps)| !traps))
    }

    /// The turns of ends by signals: where exit signals could have ended a process earlier, or others than the one that
    /// did.
    pub(in super::super) fn turns_of_signals(&self, process: ProcessIndex) -> Vec<Turn> {
        let mut turns = Vec::new();
        let Some(fate) = self.fates.get(&process) else {
            return turns;
        };
        let it = &self.run.trace.processes[process];
        let mut begin = StepIndex::FIRST;
        // Also behind the last step of a process that waits: a signal that became a message could have ended it there.
        let steps = it.numbered().map(|(step, made)| (step, Some(made)));
        for (step, made) in steps.chain([(it.end(), None)]) {
            let is_exit = made.is_some_and(Step::is_exit);
            if !made.is_none_or(is_visible) && !is_exit {
                continue;
            }
            let unseen = Unseen { begin, end: step };
            for kill in fate.kills_in(unseen) {
                let ended_so = made == Some(&Step::Exit(Some(kill.signal)));
                if !ended_so && self.could_come(fate, kill, process, unseen) {
                    turns.push(Turn {
                        at: StepAt { process, step },
                        instead: Alternative::Ends(kill.signal),
                    });
                }
            }
            if is_exit {
                break;
            }
            begin = step.next();
        }
        turns
    }

    /// Whether a signal could have come in these steps of a process: its cause does not depend on what is behind them,
    /// the process does not show that it had come before, and no other signal comes first.
    fn could_come(&self, fate: &Fate, kill: &Kill, process: ProcessIndex, unseen: Unseen) -> bool {
        let Some(cause) = self.causes.of_signal(kill.signal) else {
            return false;
        };
        let steps = self.run.trace.processes[process].before(unseen.end);
        let kills = fate.kills_in(unseen);
        let mut others = kills.filter(|it| it.signal != kill.signal);
        cause.of(process) <= unseen.end
            && !steps
                .iter()
                .any(|step| self.shows(process, step, kill.signal))
            && !others.any(|other| self.is_known(cause, other.signal, None))
    }

    /// Whether this step shows that a signal had come: it takes what was sent behind the signal.
    fn shows(&self, process: ProcessIndex, step: &Step, signal: Signal) -> bool {
        let Step::Receive(message) = step else {
            return false;
        };
        let cause = self.causes.of_cause(process, *message);
        cause.is_some_and(|cause| self.is_known(cause, signal, message.sender()))
    }

    /// Whether a step that knew this knew that a signal had been sent. The signals of an end are sent one after the
    /// other: only a step that took something of the ended process knows that this one was sent before.
    fn is_known(&self, known: &Known, signal: Signal, sender: Option<ProcessIndex>) -> bool {
        let may_know = match signal {
            Signal::End(of) => sender == Some(of),
            Signal::Call(_) => true,
        };
        let signal = self.causes.of_signal(signal).filter(|_| may_know);
        signal.is_some_and(|signal| known.includes(signal))
    }

    /// Whether a receive cannot take a message whose sender knew this: a signal was sent before it, and would have
    /// ended the process.
    pub(super) fn is_behind_a_signal(&self, at: StepAt, message: Message, cause: &Known) -> bool {
        let Some(fate) = self.fates.get(&at.process) else {
            return false;
        };
        let steps = self.run.trace.processes[at.process].before(at.step);
        let begin = steps.iter().rposition(is_visible).map_or(0, |at| at + 1);
        let is_it = |signal| match message {
            Message::SystemMessage(_) => self.causes.is_of_signal(at.process, message, signal),
            Message::Sent { .. } => false,
        };
        let mut kills = fate.kills_in(Unseen {
            begin: StepIndex::new(begin),
            end: at.step,
        });
        kills.any(|kill| !is_it(kill.signal) && self.is_known(cause, kill.signal, message.sender()))
    }

    /// A signal ended the process in this receive: whether the signal had surely been sent when the receive began. If
    /// not, the receive could have timed out before.
    pub(super) fn ended_at_once(&self, signal: Signal, clock: &super::Clock) -> bool {
        if let Signal::End(_) = signal {
            return false;
        }
        let Some(signal) = self.causes.of_signal(signal) else {
            return true;
        };
        let known = clock.get(&signal.process);
        known.is_some_and(|known| *known >= signal.end)
    }

    /// Whether a process that a signal ended could have gone on: it did not end in a receive.
    pub(super) fn could_go_on(&self, process: ProcessIndex) -> bool {
        self.run.ended_at.get(&process) == Some(&EndedAt::Step)
    }

    /// The signal that ended a process in a receive, if one did, and whether the receive had looked at what had come.
    pub(super) fn ended_in_receive(
        &self,
        process: ProcessIndex,
        step: &Step,
    ) -> Option<(Signal, bool)> {
        let Step::Exit(Some(by)) = step else {
            return None;
        };
        match self.run.ended_at.get(&process)? {
            EndedAt::Receive => Some((*by, true)),
            EndedAt::BeforeReceive => Some((*by, false)),
            EndedAt::Step | EndedAt::Elsewhere => None,
        }
    }
}
