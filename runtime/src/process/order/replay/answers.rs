//! The answers of native functions in a replay, and the messages from outside: those of the recorded run.

use beamline_orders::{Message, ProcessIndex, Step as Recorded, SystemMessage, Trace, Value};

use super::{Plan, ReplayState, plan, ports};
use crate::hash::HashMap;
use crate::heap::Message as HeapMessage;
use crate::process::order::answer::{Native, WRITTEN};
use crate::process::{Control, Process, Signal, order};
use crate::term::Term;

/// The messages from outside: by the place of the receiver and the number of the message among those that no process
/// has sent.
pub(super) type Contents = HashMap<(ProcessIndex, u32), Box<[u8]>>;

/// Those of a trace.
pub(super) fn contents(trace: &Trace) -> Contents {
    let processes = trace.processes.entries();
    let all = processes.flat_map(|(at, process)| {
        process.steps.iter().filter_map(move |step| match step {
            Recorded::Content {
                number,
                value: Value::Term(bytes),
            } => Some(((at, *number), bytes.clone())),
            _ => None,
        })
    });
    all.collect()
}

/// Whether a trace has what came from outside.
pub(super) fn tells_contents(trace: &Trace) -> bool {
    let mut steps = trace.processes.iter().flat_map(|process| &process.steps);
    steps.any(|step| matches!(step, Recorded::Content { .. } | Recorded::Spent(_)))
}

impl Plan {
    /// The message that is due, if it came from outside in the recorded run.
    pub(super) fn said_outside(
        &self,
        receiver: ProcessIndex,
        due: &Message,
    ) -> Option<HeapMessage> {
        let Message::SystemMessage(SystemMessage { number, .. }) = due else {
            return None;
        };
        let bytes = self.contents.get(&(receiver, *number))?;
        let reader = Process::new(0);
        let term = (WRITTEN.get().read)(&reader, bytes)?;
        Some(HeapMessage::copy_of(term))
    }

    /// Whether this message to `receiver` came from outside in the recorded run.
    pub(super) fn has_content(&self, receiver: ProcessIndex, told: &SystemMessage) -> bool {
        self.contents.contains_key(&(receiver, told.number))
    }

    /// Whether the trace has what came from outside, if anything did. The log of an exploration has not: its processes
    /// end without a record of what they have spent.
    pub(super) fn has_contents(&self) -> bool {
        self.tells_contents
    }
}

fn tells_of_process(due: &Message) -> bool {
    matches!(
        due,
        Message::SystemMessage(SystemMessage { of: Some(_), .. })
    )
}

/// Whether answers to requests that processes make of each other are recorded as messages from outside. An exploration
/// has its processes answer at once, and so has what follows a log of it.
pub(in crate::process) fn records_answers() -> bool {
    order::is_active() && !order::is_explored() && plan().is_none_or(Plan::has_contents)
}

impl ReplayState {
    /// The message from outside that is due, with the recorded content. The answer of a process counts only when that
    /// process has answered.
    pub(super) fn take_outside(
        &mut self,
        plan: &Plan,
        due: &Message,
        content: HeapMessage,
    ) -> Option<Signal> {
        if tells_of_process(due) {
            let of = self.held.take_answer(plan, due)?;
            return Some(Signal::outside_of(of, content));
        }
        let Message::SystemMessage(told) = due else {
            return None;
        };
        let signal = ports::signal_of(told, content);
        if signal.is_from_outside() {
            self.held.drop_outside();
        }
        Some(signal)
    }

    /// Whether the message from outside may be taken that is due.
    pub(super) fn has_outside(&self, plan: &Plan, due: &Message) -> bool {
        !tells_of_process(due) || self.held.has_answer(plan, due)
    }

    /// The recorded answer that comes next, if it is one of `native`.
    pub(super) fn answer(&self, plan: &'static Plan, native: &Native) -> Option<&'static Value> {
        match self.cursor.next(self.steps(plan)) {
            Some(Recorded::Answer { function, value }) if native.is(function) => Some(value),
            _ => None,
        }
    }
}

impl Process {
    /// The answer that `native` gave here in the recorded run, if it did: its step is made.
    pub(in crate::process) fn take_answer(&self, native: &Native) -> Option<Term<'_>> {
        self.take_answer_on(self, native)
    }

    /// As [`Process::take_answer`], on the heap of `reader`.
    pub(in crate::process) fn take_answer_on<'r>(
        &self,
        reader: &'r Process,
        native: &Native,
    ) -> Option<Term<'r>> {
        let (plan, mut follows) = (plan()?, self.replay_state()?);
        let value = follows.answer(plan, native)?;
        let term = match value {
            Value::Integer(integer) => reader.integer(*integer),
            Value::Term(bytes) => (WRITTEN.get().read)(reader, bytes)?,
        };
        let steps = follows.steps(plan);
        follows.cursor.go_on(steps);
        drop(follows);
        plan.count_progress();
        self.stop_behind();
        Some(term)
    }
}

impl Process {
    /// Whether the next step of the recorded run is an answer of `native` to it.
    pub(in crate::process) fn is_given(&self, native: &Native) -> bool {
        let (Some(plan), Some(follows)) = (plan(), self.replay_state()) else {
            return false;
        };
        follows.answer(plan, native).is_some()
    }

    /// Whether something is still to come that came before `native` gave its answer here in the recorded run: `native` is to
    /// be called again then.
    pub(in crate::process) fn wait_for_earlier(&self, native: &Native) -> Option<Control<'static>> {
        let plan = plan().filter(|_| order::is_followed())?;
        let follows = self.replay_state()?;
        let (cursor, steps) = (&follows.cursor, follows.steps(plan));
        let is_due = cursor.due(steps).is_some() || cursor.due_signal(steps).is_some();
        let waits = is_due && follows.answer(plan, native).is_some();
        drop(follows);
        if waits {
            self.wake_if_held_is_due();
        }
        waits.then_some(Control::Wait)
    }

    /// What `look` makes of the answer that `native` is to get here, if one is recorded. The answer is not taken.
    pub(crate) fn would_be_given<R>(
        &self,
        native: &Native,
        look: impl FnOnce(Term<'_>) -> R,
    ) -> Option<R> {
        let follows = order::is_followed()
            .then(|| self.replay_state())
            .flatten()?;
        let Value::Term(bytes) = follows.answer(plan()?, native)? else {
            return None;
        };
        let reader = Process::new(0);
        Some(look((WRITTEN.get().read)(&reader, bytes)?))
    }

    /// Whether what `native` read here in the recorded run has this digest, if it did: its step is made.
    pub(in crate::process) fn take_same(
        &self,
        native: &Native,
        digest: &HeapMessage,
    ) -> Option<bool> {
        let (plan, mut follows) = (plan()?, self.replay_state()?);
        let value = follows.answer(plan, native)?;
        let bytes = (WRITTEN.get().write)(digest.term())?;
        let steps = follows.steps(plan);
        follows.cursor.go_on(steps);
        drop(follows);
        plan.count_progress();
        self.stop_behind();
        Some(*value == Value::Term(bytes.into()))
    }
}

/// `p` has read from `file` what differs from the recorded run: it cannot follow.
pub(in crate::process) fn report_other_read(p: &Process, file: Term<'_>) {
    let Some(plan) = plan() else { return };
    let name = p
        .replay_state()
        .map(|follows| plan.name(follows.cursor.process));
    let name = name.unwrap_or_default();
    let file = match file.as_binary() {
        Some(bits) => {
            let bytes = bits.to_vec();
            String::from_utf8_lossy(&bytes)
                .trim_end_matches('\0')
                .to_owned()
        }
        None => "a file that it has opened".to_owned(),
    };
    let line = format!("{file} differs from what {name} read in the recorded run");
    plan.cannot_follow(&[format!("{line}; {}", p.place())]);
}

/// `p` sends to a socket what differs from the recorded run: it cannot follow.
pub(in crate::process) fn report_other_send(p: &Process) {
    let Some(plan) = plan() else { return };
    let name = p
        .replay_state()
        .map(|follows| plan.name(follows.cursor.process));
    let name = name.unwrap_or_default();
    let line =
        format!("what {name} sends to a socket differs from what it sent in the recorded run");
    plan.cannot_follow(&[format!("{line}; {}", p.place())]);
}

/// `native` has answered `p` where no answer was recorded: it cannot follow. The prefixes of explorations have no
/// answers, and do not count.
pub(in crate::process) fn note_unrecorded_answer(p: &Process, native: &Native) {
    if order::is_explored() {
        return;
    }
    let Some(plan) = plan() else { return };
    let expected = p.replay_state().and_then(|follows| {
        let next = follows.cursor.next(follows.steps(plan))?;
        (!next.is_exit()).then(|| next.clone())
    });
    if let Some(expected) = expected {
        p.report_divergence(plan, &expected, &format!("take an answer of {native}"));
    }
}
