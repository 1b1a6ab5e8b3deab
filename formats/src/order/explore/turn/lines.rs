//! All messages to each process, also those that it did not look at.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use super::super::super::races::{Causes, Signals};
use super::super::super::{Access, Message, Step, Told};
use super::super::{Ends, ExitCall, Run, Watch};

/// The messages to each process, by who sent them or whose end they tell, in their order.
pub(super) type Lines = Vec<BTreeMap<Option<usize>, Vec<Message>>>;

/// All messages to each process, by their senders: those that came in the order in which they did, and then the others.
pub(super) fn lines(run: &Run, untold: &[Untold], causes: &Causes) -> Lines {
    let mut lines = vec![BTreeMap::<_, Vec<_>>::new(); run.trace.processes.len()];
    let mut came = FxHashSet::default();
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
    // A process finds itself that another one is gone: nothing that this one has sent comes behind.
    for line in lines.iter_mut().flat_map(BTreeMap::values_mut) {
        line.sort_by_key(|message| message.is_of_gone());
    }
    lines
}

/// A message of no process that would have come, and did not: its receiver had ended before, had given up the monitor, or did
/// not look any more.
pub(super) struct Untold {
    pub(super) to: usize,
    pub(super) told: Told,
    /// The receive of its receiver, counted from 0, before which it must come.
    pub(super) until: Option<u32>,
    /// The call of `exit/2` that it comes of, if of one; else of the end of a process.
    pub(super) call: Option<Access>,
}

impl Untold {
    pub(super) fn message(&self) -> Message {
        Message::Told(self.told)
    }
}

pub(super) fn untold(run: &Run, signals: &Signals) -> Vec<Untold> {
    let mut all = Vec::new();
    let mut next = FxHashMap::<usize, u32>::default();
    let mut add = |to: usize, of: usize, exit, until, call| {
        let last = || told(run, to).map(|told| told.number).max().unwrap_or(0);
        let number = next.entry(to).or_insert_with(last);
        *number += 1;
        let told = Told {
            number: *number,
            of: Some(of),
            gone: false,
            exit,
            set: None,
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
            let is_of_call = signals.messages.contains_key(&(to, told.number));
            told.of == Some(whom) && told.exit == exit && !told.gone && !is_of_call
        };
        let came = told(run, to).filter(is_of_end).count();
        // Of several monitors, those tell that were not given up.
        limits.sort_by_key(|until| std::cmp::Reverse(until.unwrap_or(u32::MAX)));
        for until in limits.into_iter().skip(came) {
            add(to, whom, exit, until, None);
        }
    }
    let becomes_message = |call: &ExitCall<usize>| match call.ends {
        Ends::Any => false,
        Ends::NotTrapping => run.traps_at_end(call.to),
        Ends::Nobody => true,
    };
    let untold = run.exit_calls.iter().filter(|call| call.number == 0);
    for call in untold.filter(|call| becomes_message(call)) {
        add(call.to, call.from, true, None, Some(call.access()));
    }
    all
}

/// Adds what would have told processes of others that were gone, where a signal that had come before ended them.
pub(super) fn add_gone(run: &Run, untold: &[Untold], lines: &mut Lines, causes: &mut Causes) {
    let mut next = FxHashMap::<usize, u32>::default();
    for (to, of, known) in causes.gone_untold().to_vec() {
        if run.trace.processes[to].ended_by().is_none() {
            continue;
        }
        let others = untold.iter().filter(|one| one.to == to);
        let last = || {
            let numbers = others.map(|one| one.told.number);
            numbers.chain(told(run, to).map(|told| told.number)).max()
        };
        let number = next.entry(to).or_insert_with(|| last().unwrap_or(0));
        *number += 1;
        let told = Told {
            number: *number,
            of,
            gone: true,
            exit: false,
            set: None,
        };
        lines[to].entry(of).or_default().push(Message::Told(told));
        causes.tells_gone(to, *number, known);
    }
}

/// Until which receives processes were to be told of the ends of those that have ended: by exit signals, or by monitors.
fn watches(run: &Run) -> BTreeMap<(usize, usize, bool), Vec<Option<u32>>> {
    let mut pairs = BTreeMap::<_, Vec<_>>::new();
    let has_ended = |at: usize| run.trace.processes[at].has_ended();
    let watches = run.watches.iter();
    let tells = |it: &Watch<usize>| match (it.is_link, it.fails) {
        (false, _) => true,
        (true, true) => run.traps_at_end(it.by),
        (true, false) => !it.is_lost,
    };
    for watch in watches.filter(|it| has_ended(it.whom) && tells(it)) {
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
