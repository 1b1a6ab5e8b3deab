//! What else receives would take. In a replay that tells where in the code its steps are, a receive looks at the messages
//! that could have come first before it takes the recorded one, or times out: whether it has a clause for them.
//!
//! Such a message is lent to the mailbox, in the place of the one that is to be taken. Where the code passes it over, or is
//! about to take it, it is gone again, and the receive looks at the next one. Code that matches a message has no effects but
//! on registers, of which a receive finds only those of the stack again. A receive waits for these messages as long as any other process does something.

use std::cell::RefMut;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use beamline_orders::{
    Message, Pair, ProcessIndex, Sites, Step as Recorded, StepAt, StepIndex, SystemMessage, Trace,
};
use parking_lot::Mutex;

use super::{Plan, ReplayState, plan, watch};
use crate::hash::{HashMap, HashSet};
use crate::heap::{Heap, Message as HeapMessage};
use crate::process::order::{Sending, Tried};
use crate::process::probe::probes;
use crate::process::{Process, Signal, deliver, order};
use crate::term::{Atom, CodeAddress, Pid, RawTerm, am};

/// An idle period. After [`PAUSES`] of them, receives stop waiting for messages to try.
const PAUSE: Duration = Duration::from_millis(5);
/// See [`PAUSE`].
const PAUSES: u32 = 200;

/// What a receive is to look at.
pub(crate) enum Tries {
    /// What it looks at anyway.
    Nothing,
    /// This message, which is not to be taken.
    This(RawTerm),
    /// It is to look again, as something may have come that nobody has looked for.
    Again,
    /// It is to look again when something has come.
    Later,
}

/// The messages that could have come first, and the processes that wait for them.
pub(super) struct Others {
    /// At each receive.
    all: HashMap<StepAt, Vec<Message>>,
    /// How often nothing has happened for a while in which a process waited.
    pauses: AtomicU32,
    waiting: Mutex<HashSet<Pid>>,
    /// A thread watches the processes that wait.
    is_watched: AtomicBool,
}

impl Others {
    fn of(trace: &Trace) -> Others {
        let mut all: HashMap<StepAt, Vec<Message>> = HashMap::default();
        // A trace whose steps wait for each other has none.
        let races = trace.clone().races(&Sites::default());
        for race in races.into_iter().flat_map(|races| races.all) {
            if let Pair::Messages(both) = race.pair
                && !both.is_same_message()
            {
                let at = all.entry(race.at()).or_default();
                at.push(both.other);
            }
        }
        Others {
            all,
            pauses: AtomicU32::new(0),
            waiting: Mutex::default(),
            is_watched: AtomicBool::new(false),
        }
    }

    /// Whether a process may go on waiting that began when there had been `since` idle periods.
    fn may_wait(&self, since: u32) -> bool {
        let pauses = self.pauses.load(Ordering::Relaxed);
        pauses == since && pauses < PAUSES
    }

    /// Whoever waits goes on, if nothing else happens.
    fn watch(&self, plan: &Plan) {
        let mut seen = watch::done(plan);
        loop {
            std::thread::sleep(PAUSE);
            let now = watch::done(plan);
            if now == seen {
                let waiting = std::mem::take(&mut *self.waiting.lock());
                if !waiting.is_empty() {
                    self.pauses.fetch_add(1, Ordering::Relaxed);
                }
                waiting.into_iter().for_each(wake);
            }
            seen = now;
        }
    }
}

fn wake(pid: Pid) {
    let wake = |p: Option<&mut Process>| {
        if let Some(p) = p {
            p.shared.wake();
        }
    };
    deliver(pid, Signal::request(wake));
}

/// The others of the run that is followed, and a watch over the processes that wait for them.
fn others(plan: &'static Plan) -> &'static Others {
    let others = plan.others.get_or_init(|| Others::of(&plan.trace));
    if !others.is_watched.swap(true, Ordering::Relaxed) {
        let started = std::thread::Builder::new()
            .name("replay_tries".into())
            .spawn(|| others.watch(plan));
        if started.is_err() {
            // Nothing would wake waiting processes: let them not wait.
            others.pauses.store(PAUSES, Ordering::Relaxed);
        }
    }
    others
}

/// The receive that a process is at, and what it has still to try.
pub(super) struct Trial {
    /// The receive's place among the steps.
    step: StepIndex,
    left: Vec<Message>,
    /// The one that the code looks at, and where the receive looks at the next one.
    now: Option<(Tried, CodeAddress)>,
    /// How many pauses there had been when it began, if it waits for messages: where libraries alone receive, it does not.
    since: Option<u32>,
    /// It waits for one, or has not looked for one yet.
    waits: bool,
}

impl Trial {
    fn of(p: &Process, others: &Others, at: StepAt) -> Trial {
        let left = others.all.get(&at).cloned().unwrap_or_default();
        let may_wait = !left.is_empty() && probes().is_in_application(p);
        Trial {
            step: at.step,
            waits: !left.is_empty(),
            left,
            now: None,
            since: may_wait.then(|| others.pauses.load(Ordering::Relaxed)),
        }
    }
}

impl Process {
    /// What the receive is to look at that it is in: before it takes what it took in the recorded run, or times out as then.
    #[inline]
    pub(crate) fn try_others(&mut self) -> Tries {
        match order::tries_others() && !self.is_held() {
            true => self.try_next_other(),
            false => Tries::Nothing,
        }
    }

    #[cold]
    fn try_next_other(&mut self) -> Tries {
        let Some(plan) = plan().filter(|_| !super::stop::has_stopped()) else {
            return Tries::Nothing;
        };
        let current = self.mailbox.current();
        let place = current.and_then(|_| self.mailbox.place_of_current());
        let receive = |follows: RefMut<'_, ReplayState>| follows.receive(plan, place);
        match self.replay_state().and_then(receive) {
            Some(at) => self.next_try(plan, at),
            None => Tries::Nothing,
        }
    }

    fn next_try(&mut self, plan: &'static Plan, at: StepAt) -> Tries {
        if self.with_trial(|trial| trial.step) != Some(at.step) {
            let trial = Trial::of(self, others(plan), at);
            let looks = trial.waits;
            if let Some(mut follows) = self.replay_state() {
                follows.trial = Some(Box::new(trial));
            }
            if looks {
                self.mailbox.stop_examining();
                return Tries::Again;
            }
        }
        while let Some(message) = self.next_other(plan) {
            let Some((tried, message)) = self.other_message(plan, &message) else {
                continue;
            };
            let again = self.pc.get();
            self.with_trial(|trial| trial.now = Some((tried, again)));
            let frame = frame(self);
            self.mailbox.lend(message, frame);
            let lent = self.mailbox.current();
            return lent.map_or(Tries::Nothing, |lent| Tries::This(lent.term().raw()));
        }
        if !self.waits_to_try() {
            return Tries::Nothing;
        }
        self.mailbox.stop_examining();
        others(plan).waiting.lock().insert(self.pid());
        Tries::Later
    }

    /// The next message to try that has come; without one, whether the receive waits is in its trial.
    fn next_other(&self, plan: &'static Plan) -> Option<Message> {
        let mut follows = self.replay_state()?;
        let ReplayState {
            trial,
            held,
            cursor,
            ..
        } = &mut *follows;
        let trial = trial.as_mut()?;
        let advance_delivery =
            |message: &Message| held.has(plan, message) || cursor.place_of(message).is_some();
        let come = trial.left.iter().position(advance_delivery);
        let may_wait = trial
            .since
            .is_some_and(|since| others(plan).may_wait(since));
        trial.waits = come.is_none() && !trial.left.is_empty() && may_wait;
        Some(trial.left.swap_remove(come?))
    }

    /// Whether the receive that it is in waits for messages to try.
    pub(in crate::process) fn waits_to_try(&self) -> bool {
        order::tries_others()
            && self
                .replay_state()
                .is_some_and(|follows| follows.waits_to_try())
    }

    fn with_trial<T>(&self, with: impl FnOnce(&mut Trial) -> T) -> Option<T> {
        Some(with(self.replay_state()?.trial.as_mut()?))
    }

    /// A receive passes a message over, or takes it: if it was only to try it, where it goes on.
    pub(crate) fn end_try(&mut self, takes: bool) -> Option<CodeAddress> {
        let (tried, again) = self.with_trial(|trial| trial.now.take())??;
        let frame = self.mailbox.take_lent();
        put_frame(self, &frame);
        self.record_trial(tried, takes);
        Some(again)
    }

    /// A message that stands behind in the queue, or has come before its turn, as the receive would see it.
    fn other_message(&self, plan: &Plan, message: &Message) -> Option<(Tried, HeapMessage)> {
        let tried = match *message {
            Message::Sent { from, number } => Tried::Sent(Sending {
                from: plan.pid(from)?,
                number,
            }),
            Message::SystemMessage(SystemMessage { number, .. }) => Tried::SystemMessage(number),
        };
        let follows = self.replay_state()?;
        let seen = match follows.cursor.place_of(message) {
            Some(place) => HeapMessage::copy_of(self.mailbox.at_place(place)?.term()),
            None => self.as_seen(&follows.held.get(plan, message)?.1)?,
        };
        Some((tried, seen))
    }

    /// The message that a signal becomes.
    fn as_seen(&self, signal: &Signal) -> Option<HeapMessage> {
        Some(match signal {
            Signal::Message { message, .. } => HeapMessage::copy_of(message.term()),
            Signal::Traced(traced) => HeapMessage::copy_of(traced.message.term()),
            Signal::Exit(exit) if self.flags.get().trap_exit => {
                Heap::detached().into_message(|heap| {
                    let reason = heap.attach(HeapMessage::copy_of(exit.reason.term()));
                    heap.tuple(&[Atom::term(am::EXIT), exit.from.term(heap), reason])
                })
            }
            Signal::MonitorDown {
                reference, reason, ..
            } => self.down_message(*reference, HeapMessage::copy_of(reason.term()))?,
            _ => return None,
        })
    }
}

impl Plan {
    /// The process that follows the recorded one, if it has been made.
    pub(super) fn pid(&self, process: ProcessIndex) -> Option<Pid> {
        let indexes = self.indexes.read();
        let mut all = indexes.iter();
        all.find_map(|(pid, index)| (*index == process).then_some(*pid))
    }
}

/// The y registers of the function that a process is in.
fn frame(p: &Process) -> Vec<RawTerm> {
    let words = (p.hend() as usize - p.stop.get() as usize) / 8;
    let at = p.stop.get().cast_const();
    // SAFETY: H1: words from `stop` to `hend` are terms, code addresses or catch tags.
    let words = (0..words).map(|word| RawTerm(unsafe { *at.wrapping_add(word) }));
    let is_return = |word: &RawTerm| word.is_header() && *word != RawTerm::NONE;
    words.take_while(|word| !is_return(word)).collect()
}

/// They are these again.
fn put_frame(p: &Process, frame: &[RawTerm]) {
    let at = p.stop.get();
    for (word, term) in frame.iter().enumerate() {
        // SAFETY: H1, H8: the frame is as long as it was, and the mailbox has shown these words to the collector.
        unsafe { *at.wrapping_add(word) = term.0 };
    }
}

impl ReplayState {
    /// Whether its receive waits for messages to try.
    pub(super) fn waits_to_try(&self) -> bool {
        self.trial.as_ref().is_some_and(|trial| trial.waits)
    }

    /// The receive at which the process stands: it looks at the message that it took, which is at this place of its queue,
    /// or times out.
    fn receive(&self, plan: &'static Plan, current: Option<usize>) -> Option<StepAt> {
        let is_it = match (self.cursor.next(self.steps(plan))?, current) {
            (Recorded::Receive(message), Some(at)) => self.cursor.is_at(at, message),
            (Recorded::Timeout, None) => self.cursor.due(self.steps(plan)).is_none(),
            _ => false,
        };
        let (process, step) = (self.cursor.process, self.cursor.step());
        is_it.then_some(StepAt { process, step })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::FIGURE;
    use super::*;

    fn others() -> Others {
        let trace: Trace = FIGURE.parse().expect("a trace");
        Others::of(&trace.with_deliveries())
    }

    #[test]
    fn a_receive_tries_the_messages_that_race_with_the_one_it_took() {
        let sent = |from, number| Message::Sent {
            from: ProcessIndex::new(from),
            number,
        };
        // The first receive of p0.1, which took the message of p0: those of p0.2 and p0.3 could have come before it.
        let others = others();
        let (receiver, other) = (ProcessIndex::new(1), ProcessIndex::new(2));
        let of_receiver = others.all.iter().filter(|(at, _)| at.process == receiver);
        let first = of_receiver.min_by_key(|(at, _)| at.step);
        let mut tried = first.expect("one of its receives").1.clone();
        tried.sort_unstable();
        assert_eq!(tried, [sent(2, 1), sent(3, 1)]);
        // p0.2 has one message to take.
        assert!(others.all.keys().all(|at| at.process != other));
    }

    #[test]
    fn a_receive_waits_until_nothing_happened_once_and_none_does_after_many_pauses() {
        let others = others();
        for (pauses, since, may_wait) in [
            (0, 0, true),
            (1, 0, false),
            (1, 1, true),
            (PAUSES - 1, PAUSES - 1, true),
            (PAUSES, PAUSES, false),
        ] {
            others.pauses.store(pauses, Ordering::Relaxed);
            assert_eq!(others.may_wait(since), may_wait, "{pauses} since {since}");
        }
    }
}
