//! What each step of a trace knows of the steps of others: the causality of the run, as vector clocks.
//!
//! A message leads from its sending to the receive that takes it, a spawn to the steps of the child, an end to the
//! processes that hear of it. Where it was recorded what accesses are to, an access leads to the next ones that see it:
//! a change to those of the same part of the same object, a read to the next change.

use std::collections::VecDeque;
use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::super::signals::{Arrived, OwnSteps, SentSignals};
use super::super::{
    Access, Accesses, Message, Origin, PerProcess, Process, ProcessIndex, Signal, SignalAt, Sites,
    Step, StepIndex, SystemMessage, SystemMessageAt, Trace,
};
use super::shared::Seen;

/// A vector clock: where the known steps of each other process end.
pub(in super::super) type Clock = Rc<FxHashMap<ProcessIndex, StepIndex>>;

/// What a step of a process knows.
#[derive(Clone, Debug)]
pub(in super::super) struct Known {
    pub(in super::super) process: ProcessIndex,
    /// The end of its steps so far.
    pub(in super::super) end: StepIndex,
    others: Clock,
}

impl Known {
    pub(super) fn new(process: ProcessIndex, end: StepIndex, clock: &Clock) -> Known {
        let others = clock.clone();
        Known {
            process,
            end,
            others,
        }
    }

    /// The clock of another process that has learned this knowledge.
    pub(super) fn clock(&self) -> Clock {
        let mut clock = Clock::default();
        join(&mut clock, self);
        clock
    }

    /// The end of the steps of a process that it knows.
    pub(in super::super) fn of(&self, process: ProcessIndex) -> StepIndex {
        match process == self.process {
            true => self.end,
            false => self.others.get(&process).copied().unwrap_or_default(),
        }
    }

    /// Whether it knows all that the `other` one knew of its own process.
    pub(in super::super) fn includes(&self, other: &Known) -> bool {
        self.of(other.process) >= other.end
    }
}

/// What calls of `exit/2` have led to, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Signals {
    /// Messages of calls of `exit/2`: which accesses these are.
    pub(in super::super) messages: FxHashMap<SystemMessageAt, Access>,
    /// Calls of `exit/2` of which it is asked what was known there.
    pub(in super::super) calls: FxHashSet<Access>,
}

/// What was known where messages were sent, where processes began and ended, and where exit signals were sent.
pub(in super::super) struct Causes {
    sent: FxHashMap<Message, Known>,
    ended: FxHashMap<ProcessIndex, Known>,
    /// What a process's parent knew when it made it, if it has one.
    begun: FxHashMap<ProcessIndex, Option<Known>>,
    /// Messages that say of a process which had not ended that it has: that process has sent an exit signal.
    before_ends: FxHashSet<SystemMessageAt>,
    signals: Signals,
    /// What has ended processes, where its cause is among the steps.
    ended_by: FxHashMap<ProcessIndex, Signal>,
    /// What was known at the accesses that have ended processes, or sent messages.
    signalled: FxHashMap<Access, Known>,
    /// What has become of exit signals, where these were recorded.
    pub(super) arrived: Arrived,
    /// What was known where they were sent.
    sent_signals: FxHashMap<SignalAt, Known>,
    /// For messages that say that a process was gone: what was known where it was found to be. Only where it is known
    /// which accesses look for processes.
    gone: FxHashMap<SystemMessageAt, Known>,
    /// Where processes were found to be gone of which no message has told that, and what was known there.
    gone_untold: Vec<(Gone, Known)>,
    /// Accesses that see each other, where what they are to is known.
    pub(in super::super) seen: Seen,
}

/// A process finds another one gone.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(in super::super) struct Gone {
    /// The one that finds it.
    pub(in super::super) by: ProcessIndex,
    /// The one that is gone, if it is known.
    pub(in super::super) of: Option<ProcessIndex>,
}

/// What a process waits for.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Need {
    Sent(Message),
    End(ProcessIndex),
    Begin(ProcessIndex),
    /// An access, where it is known which ones were made.
    Access(Access),
    /// A signal, where these were recorded.
    Signal(SignalAt),
}

impl Causes {
    /// Whether an access has ended a process, or sent a message.
    fn is_signal(&self, access: Access) -> bool {
        let mut ended_by = self.ended_by.values();
        self.signals.calls.contains(&access) || ended_by.any(|by| *by == Signal::Call(access))
    }

    /// The end of its receiver's steps that the cause of a message knew of; `None` where nobody knows the cause.
    pub(super) fn of_message(&self, receiver: ProcessIndex, message: Message) -> Option<StepIndex> {
        Some(self.of_cause(receiver, message)?.of(receiver))
    }

    /// What the cause of a message knew; `None` where nobody knows the cause.
    pub(in super::super) fn of_cause(
        &self,
        receiver: ProcessIndex,
        message: Message,
    ) -> Option<&Known> {
        let told = match message {
            Message::Sent { .. } => return self.sent.get(&message),
            Message::SystemMessage(told) => told,
        };
        let at = told.at(receiver);
        if told.gone {
            return self.gone.get(&at);
        }
        if let Some(signal) = self.arrived.messages.get(&at) {
            return self.sent_signals.get(signal);
        }
        match self.signals.messages.get(&at) {
            Some(call) => self.signalled.get(call),
            None if self.before_ends.contains(&at) => None,
            None => self.ended.get(&told.of?),
        }
    }

    /// What was known at the end of a process, if it has ended.
    pub(super) fn of_end(&self, process: ProcessIndex) -> Option<&Known> {
        self.ended.get(&process)
    }

    /// What was known where a recorded signal was sent.
    pub(super) fn of_sent(&self, signal: SignalAt) -> Option<&Known> {
        self.sent_signals.get(&signal)
    }

    /// What was known where a signal was sent, if it was.
    pub(in super::super) fn of_signal(&self, signal: Signal) -> Option<&Known> {
        match signal {
            Signal::End(of) => self.ended.get(&of),
            Signal::Call(call) => self.signalled.get(&call),
        }
    }

    /// Whether a message of no process is what has become of a signal.
    pub(in super::super) fn is_of_signal(
        &self,
        receiver: ProcessIndex,
        message: Message,
        signal: Signal,
    ) -> bool {
        let Message::SystemMessage(told) = message else {
            return false;
        };
        match self.signals.messages.get(&told.at(receiver)) {
            Some(call) => signal == Signal::Call(*call),
            None => told.exit && !told.gone && told.of.map(Signal::End) == Some(signal),
        }
    }

    /// The process of whose end a message tells, if of one; not that it was gone already.
    pub(in super::super) fn end_told(
        &self,
        receiver: ProcessIndex,
        message: Message,
    ) -> Option<ProcessIndex> {
        let Message::SystemMessage(told) = message else {
            return None;
        };
        let at = told.at(receiver);
        let is_of_end = !told.gone
            && !self.signals.messages.contains_key(&at)
            && !self.before_ends.contains(&at);
        told.of.filter(|_| is_of_end)
    }

    /// Where processes were found to be gone of which no message has told that, and what was known there.
    pub(in super::super) fn gone_untold(&self) -> &[(Gone, Known)] {
        &self.gone_untold
    }

    /// Notes what was known where the process was found to be gone of which a message would have told that.
    pub(in super::super) fn record_gone(&mut self, message: SystemMessageAt, known: Known) {
        self.gone.insert(message, known);
    }

    /// What was known where a process began; `None` for one without a parent.
    pub(in super::super) fn of_beginning(&self, process: ProcessIndex) -> Option<&Known> {
        self.begun.get(&process)?.as_ref()
    }

    /// Walks through the steps of a trace in an order that can have been. Each access has its step
    /// ([`super::shared::with_accesses`]).
    pub(in super::super) fn of_recording(trace: &Trace, sites: &Sites) -> Result<Causes, String> {
        let (accesses, sent) = (&sites.accesses, &sites.signals);
        Causes::of_walk(Walk::new(trace, accesses, sent, Signals::default()))
    }

    /// As [`Causes::of_recording`], where it is known what signals have led to.
    pub(in super::super) fn with_signals(
        trace: &Trace,
        accesses: &Accesses,
        signals: Signals,
    ) -> Result<Causes, String> {
        Causes::of_walk(Walk::new(trace, accesses, &SentSignals::default(), signals))
    }

    fn of_walk(mut walk: Walk<'_>) -> Result<Causes, String> {
        let trace = walk.trace;
        for (at, process) in trace.processes.entries() {
            if let Origin::Root(_) = process.origin {
                walk.causes.begun.insert(at, None);
            }
        }
        let mut ready: Vec<ProcessIndex> = trace.processes.indexes().collect();
        loop {
            while let Some(at) = ready.pop() {
                if let Some(need) = walk.run(at, &mut ready) {
                    walk.waiting.entry(need).or_default().push(at);
                }
            }
            match walk.release_one() {
                Some(at) => ready.push(at),
                None => break,
            }
        }
        for (at, process) in trace.processes.entries() {
            if let Some(step) = process.step(walk.next[at]) {
                let (name, step) = (trace.name(at), trace.step(at, step));
                return Err(format!(
                    "{name} cannot {step}: what it needs comes after it"
                ));
            }
        }
        walk.match_gone();
        Ok(walk.causes)
    }
}

struct Walk<'t> {
    trace: &'t Trace,
    accesses: &'t Accesses,
    /// How many accesses each process has made.
    made: PerProcess<u64>,
    /// Processes that go on without the access that their own comes after, because it was lost.
    goes_on: PerProcess<bool>,
    causes: Causes,
    clocks: PerProcess<Clock>,
    next: PerProcess<StepIndex>,
    waiting: FxHashMap<Need, Vec<ProcessIndex>>,
    /// Processes whose ends are among the steps.
    ends: PerProcess<bool>,
    /// The object that tells of the end of each process, once it has ended.
    over: FxHashMap<u64, ProcessIndex>,
    /// The exit signals that each process has still to send, each with its place among the steps; the last one first.
    to_send: PerProcess<Vec<(StepIndex, SignalAt)>>,
    /// What was known where a process found another one to be gone; the first that no message was delivered of yet first.
    found_gone: FxHashMap<Gone, VecDeque<Known>>,
}

impl<'t> Walk<'t> {
    fn new(
        trace: &'t Trace,
        accesses: &'t Accesses,
        sent: &SentSignals,
        signals: Signals,
    ) -> Walk<'t> {
        let processes = &trace.processes;
        Walk {
            trace,
            accesses,
            made: processes.map(|_| 0),
            goes_on: processes.map(|_| false),
            causes: Causes {
                sent: FxHashMap::default(),
                ended: FxHashMap::default(),
                begun: FxHashMap::default(),
                before_ends: FxHashSet::default(),
                signals,
                ended_by: trace.ended_by().collect(),
                signalled: FxHashMap::default(),
                arrived: Arrived::of(trace, sent),
                sent_signals: FxHashMap::default(),
                gone: FxHashMap::default(),
                gone_untold: Vec::new(),
                seen: Seen::default(),
            },
            clocks: processes.map(|_| Clock::default()),
            next: processes.map(|_| StepIndex::FIRST),
            waiting: FxHashMap::default(),
            ends: processes.map(Process::has_ended),
            over: FxHashMap::default(),
            to_send: to_send(trace, sent),
            found_gone: FxHashMap::default(),
        }
    }

    /// Makes the steps of a process until it needs one that has not been made.
    fn run(&mut self, at: ProcessIndex, ready: &mut Vec<ProcessIndex>) -> Option<Need> {
        if self.next[at] == StepIndex::FIRST {
            match self.causes.begun.get(&at) {
                Some(Some(known)) => join(&mut self.clocks[at], &known.clone()),
                Some(None) => {}
                None => return Some(Need::Begin(at)),
            }
        }
        let process = &self.trace.processes[at];
        self.send_signals(at, ready);
        while let Some(step) = process.step(self.next[at]) {
            if let Step::Receive(message) = step {
                let cause = match self.cause(at, *message) {
                    Ok(cause) => cause,
                    Err(need) => return Some(need),
                };
                if let Some(cause) = cause {
                    join(&mut self.clocks[at], &cause);
                }
            }
            if step.is_exit()
                && let Some((known, need)) = self.ended_by(at)
            {
                match known.cloned() {
                    Some(known) => join(&mut self.clocks[at], &known),
                    None => return Some(need),
                }
            }
            if let Step::After { other, .. } = step
                && !self.accesses.is_empty()
                && self.made[other.of] < other.number
                && !std::mem::take(&mut self.goes_on[at])
            {
                return Some(Need::Access(*other));
            }
            let made = self.make_step(at, step);
            // Others hear of an end when the process has given up what it had, by accesses behind that step.
            let is_end = self.ends[at] && self.next[at] == process.end();
            let end = is_end.then(|| {
                let known = self.known_by(at);
                self.causes.ended.insert(at, known);
                Need::End(at)
            });
            for made in made.into_iter().chain(end) {
                self.release(made, ready);
            }
            self.send_signals(at, ready);
        }
        None
    }

    /// The processes that have waited for this are ready.
    fn release(&mut self, made: Need, ready: &mut Vec<ProcessIndex>) {
        ready.extend(self.waiting.remove(&made).into_iter().flatten());
    }

    /// Sends the exit signals of a process that stand where it has come to.
    fn send_signals(&mut self, at: ProcessIndex, ready: &mut Vec<ProcessIndex>) {
        while let Some((_, signal)) = self.to_send[at].pop_if(|(place, _)| *place <= self.next[at])
        {
            let known = self.known_by(at);
            self.causes.sent_signals.insert(signal, known);
            self.release(Need::Signal(signal), ready);
        }
    }

    /// What was known where the signal was sent that ends a process, if one does, and what to wait for until it is.
    fn ended_by(&self, at: ProcessIndex) -> Option<(Option<&Known>, Need)> {
        if let Some(by) = self.causes.ended_by.get(&at) {
            return Some(self.sent_by(*by));
        }
        let signal = *self.causes.arrived.ends.get(&at)?;
        Some((self.causes.of_sent(signal), Need::Signal(signal)))
    }

    /// Makes the next step of a process: what others that wait for it need.
    fn make_step(&mut self, at: ProcessIndex, step: &Step) -> Option<Need> {
        let place = self.next[at];
        self.next[at] = place.next();
        Some(match step {
            Step::Send(number) => {
                let (from, number) = (at, *number);
                let message = Message::Sent { from, number };
                let known = self.known_by(at);
                self.causes.sent.insert(message, known);
                Need::Sent(message)
            }
            Step::Spawn(child) => {
                let known = self.known_by(at);
                self.causes.begun.insert(*child, Some(known));
                Need::Begin(*child)
            }
            Step::Accesses(number) if !self.accesses.is_empty() => {
                let (of, number) = (at, *number);
                self.make_access(Access { of, number }, place);
                Need::Access(Access { of, number })
            }
            _ => return None,
        })
    }

    /// Makes an access, which is this step of its process: the process learns of the accesses that it sees.
    fn make_access(&mut self, access: Access, step: StepIndex) {
        self.made[access.of] = access.number;
        let clock = &mut self.clocks[access.of];
        let seen = &mut self.causes.seen;
        seen.record_access(access, self.accesses, step, clock);
        if self.causes.is_signal(access) {
            let known = self.known_by(access.of);
            self.causes.signalled.insert(access, known);
        }
        let is_call = self.causes.signals.calls.contains(&access);
        for to in self.accesses.to(access) {
            let gone = match self.over.get(&to.object) {
                _ if self.accesses.is_of_nobody(to.object) => None,
                _ if to.is_change && self.accesses.is_of_end(to.object) => {
                    self.over.insert(to.object, access.of);
                    continue;
                }
                Some(of) if !is_call => Some(*of),
                _ => continue,
            };
            let known = self.known_by(access.of);
            let gone = Gone {
                by: access.of,
                of: gone,
            };
            self.found_gone.entry(gone).or_default().push_back(known);
        }
    }

    /// Matches messages that say that a process was gone with the accesses that found that, in their order: where such
    /// an access stands among the deliveries is not known.
    fn match_gone(&mut self) {
        for (by, process) in self.trace.processes.entries() {
            for step in &process.steps {
                if let Step::Deliver(Message::SystemMessage(told)) = step
                    && let SystemMessage { gone: true, of, .. } = *told
                    && let Some(found) = self.found_gone.get_mut(&Gone { by, of })
                    && let Some(known) = found.pop_front()
                {
                    self.causes.record_gone(told.at(by), known);
                }
            }
        }
        let left = std::mem::take(&mut self.found_gone).into_iter();
        let left = left.flat_map(|(gone, all)| all.into_iter().map(move |known| (gone, known)));
        self.causes.gone_untold = left.collect();
        self.causes
            .gone_untold
            .sort_by_key(|(gone, known)| (gone.by, known.end));
    }

    /// What was known where a message was sent; `None` where its cause is not among the steps.
    fn cause(&self, receiver: ProcessIndex, message: Message) -> Result<Option<Known>, Need> {
        let (known, need) = match message {
            Message::Sent { .. } => (self.causes.sent.get(&message), Need::Sent(message)),
            Message::SystemMessage(told) => {
                let at = told.at(receiver);
                if let Some(signal) = self.causes.arrived.messages.get(&at) {
                    let known = self.causes.of_sent(*signal);
                    return known.cloned().map(Some).ok_or(Need::Signal(*signal));
                }
                match (self.causes.signals.messages.get(&at), told.of) {
                    (Some(call), _) => self.sent_by(Signal::Call(*call)),
                    (None, Some(of)) if self.ends[of] && !self.causes.before_ends.contains(&at) => {
                        self.sent_by(Signal::End(of))
                    }
                    _ => return Ok(None),
                }
            }
        };
        known.cloned().map(Some).ok_or(need)
    }

    /// What was known where a signal was sent, and what to wait for until it is.
    fn sent_by(&self, signal: Signal) -> (Option<&Known>, Need) {
        let known = self.causes.of_signal(signal);
        match signal {
            Signal::End(of) => (known, Need::End(of)),
            Signal::Call(call) => (known, Need::Access(call)),
        }
    }

    /// Releases a process where nothing can go on. The first one that waits for an end need not: its message was an exit
    /// signal of a process that went on. Nor need one whose access comes after an access that was lost.
    fn release_one(&mut self) -> Option<ProcessIndex> {
        let need_not_wait = |(need, waiting): (&Need, &Vec<ProcessIndex>)| match need {
            Need::End(_) | Need::Access(_) | Need::Signal(_) => {
                waiting.iter().min().map(|first| (*first, *need))
            }
            Need::Sent(_) | Need::Begin(_) => None,
        };
        let (at, need) = self
            .waiting
            .iter()
            .filter_map(need_not_wait)
            .min_by_key(|(at, _)| *at)?;
        self.waiting
            .get_mut(&need)?
            .retain(|waiting| *waiting != at);
        let step = self.trace.processes[at].step(self.next[at])?;
        if let Step::Receive(Message::SystemMessage(told)) = step {
            let message = told.at(at);
            self.causes.before_ends.insert(message);
            self.causes.signals.messages.remove(&message);
            self.causes.arrived.messages.remove(&message);
        }
        if step.is_exit() {
            self.causes.ended_by.remove(&at);
            self.causes.arrived.ends.remove(&at);
        }
        self.goes_on[at] = matches!(need, Need::Access(_));
        Some(at)
    }

    fn known_by(&self, process: ProcessIndex) -> Known {
        Known::new(process, self.next[process], &self.clocks[process])
    }
}

/// The exit signals that each process sends, each with its place among the steps; the last one first.
fn to_send(trace: &Trace, sent: &SentSignals) -> PerProcess<Vec<(StepIndex, SignalAt)>> {
    let of = |(of, process): (ProcessIndex, &Process)| {
        let own = OwnSteps::of_process(process);
        let signals = sent.of(of).iter().enumerate().rev();
        let exits = signals.filter(|(_, signal)| signal.kind.is_exit());
        exits
            .map(|(at, signal)| (own.last_behind(signal.steps), SignalAt { of, at }))
            .collect()
    };
    trace.processes.entries().map(of).collect()
}

/// Adds what is `known` to a clock.
pub(in super::super) fn join(clock: &mut Clock, known: &Known) {
    let own = [(known.process, known.end)].into_iter();
    let others = known.others.iter().map(|(at, end)| (*at, *end));
    let is_news = |(at, end): &(ProcessIndex, StepIndex)| clock.get(at).is_none_or(|now| now < end);
    let news: Vec<(ProcessIndex, StepIndex)> = others.chain(own).filter(is_news).collect();
    if !news.is_empty() {
        Rc::make_mut(clock).extend(news);
    }
}
