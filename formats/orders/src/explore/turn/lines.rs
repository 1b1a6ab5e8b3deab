//! All messages to each process, also those that it never looked at.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use super::super::super::races::{Causes, Gone, Signals};
use super::super::super::{Access, Message, PerProcess, ProcessIndex, Step, SystemMessage};
use super::super::{Ends, ExitCall, Run, Watch};

/// The messages to each process, by the process that has sent them or whose end they tell, in their order.
pub(super) type Lines = PerProcess<BTreeMap<Option<ProcessIndex>, Vec<Message>>>;

/// All messages to each process, by their senders: those that came in the order in which they did, and then the others.
pub(super) fn lines(run: &Run, untold: &[Untold], causes: &Causes) -> Lines {
    let processes = &run.trace.processes;
    let mut lines = processes.map(|_| BTreeMap::<_, Vec<_>>::new());
    let mut came = FxHashSet::default();
    for (at, process) in processes.entries() {
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
    for (from, receivers) in run.receivers.entries() {
        for (number, to) in (1..).zip(receivers) {
            let message = Message::Sent { from, number };
            if let Some(to) = to
                && !came.contains(&(*to, message))
            {
                let line = lines[*to].entry(Some(from)).or_default();
                let is_later = |other: &Message| match other {
                    Message::Sent { number: other, .. } => *other > number,
                    Message::SystemMessage(_) => false,
                };
                let at = line.iter().position(is_later).unwrap_or(line.len());
                line.insert(at, message);
            }
        }
    }
    for one in untold {
        let (to, message) = (one.to, one.message());
        let line = lines[to].entry(message.sender()).or_default();
        let cause = |message: &Message| causes.of_cause(to, *message).map(|cause| cause.end);
        let is_before =
            |other: &Message| came.contains(&(to, *other)) || cause(other) <= cause(&message);
        let at = line.iter().rposition(is_before).map_or(0, |at| at + 1);
        line.insert(at, message);
    }
    // A process finds by an access of its own that another one is gone: this comes behind all that the other one has
    // sent.
    for line in lines.iter_mut().flat_map(BTreeMap::values_mut) {
        line.sort_by_key(|message| message.is_of_gone());
    }
    lines
}

/// A message of a monitor, a link or `exit/2` that could have come and did not: its receiver had ended before, had
/// given up the monitor, or looked no more.
pub(super) struct Untold {
    pub(super) to: ProcessIndex,
    pub(super) told: SystemMessage,
    /// Its receiver's receive, counted from 0, from which on it can be taken no more.
    pub(super) until: Option<u32>,
    /// Its cause: the call of `exit/2`, or the access that found a process gone; `None`: the end of a process.
    pub(super) cause: Option<Access>,
}

impl Untold {
    pub(super) fn message(&self) -> Message {
        Message::SystemMessage(self.told)
    }

    /// The call of `exit/2` that has sent it, if one has.
    pub(super) fn call(&self) -> Option<Access> {
        self.cause.filter(|_| !self.told.gone)
    }

    /// The access that found the process gone, if it says that.
    pub(super) fn finds_gone(&self) -> Option<Access> {
        self.cause.filter(|_| self.told.gone)
    }
}

pub(super) fn untold(run: &Run, signals: &Signals) -> Vec<Untold> {
    let mut all = Vec::new();
    let mut next = FxHashMap::<ProcessIndex, u32>::default();
    let mut add = |to: ProcessIndex, of: ProcessIndex, (exit, gone), until, cause| {
        let last = || told(run, to).map(|told| told.number).max().unwrap_or(0);
        let number = next.entry(to).or_insert_with(last);
        *number += 1;
        let told = SystemMessage {
            number: *number,
            of: Some(of),
            gone,
            exit,
            set: None,
        };
        all.push(Untold {
            to,
            told,
            until,
            cause,
        });
    };
    for ((to, whom, exit), mut limits) in watches(run) {
        let is_of_end = |told: &&SystemMessage| {
            let is_of_call = signals.messages.contains_key(&told.at(to));
            told.of == Some(whom) && told.exit == exit && !told.gone && !is_of_call
        };
        let came = told(run, to).filter(is_of_end).count();
        // Where several monitors were set, the messages that came count for those that were not given up.
        limits.sort_by_key(|until| std::cmp::Reverse(until.unwrap_or(u32::MAX)));
        for until in limits.into_iter().skip(came) {
            add(to, whom, (exit, false), until, None);
        }
    }
    for ((to, whom), mut found) in found_gone(run) {
        let tells_so = |told: &&SystemMessage| told.of == Some(whom) && told.gone && !told.exit;
        let came = told(run, to).filter(tells_so).count();
        found.sort_by_key(|(until, _)| std::cmp::Reverse(until.unwrap_or(u32::MAX)));
        for (until, number) in found.into_iter().skip(came) {
            let access = Access { of: to, number };
            add(to, whom, (false, true), until, Some(access));
        }
    }
    let becomes_message = |call: &ExitCall<ProcessIndex>| match call.ends {
        Ends::Any => false,
        Ends::NotTrapping => run.traps_at_end(call.to),
        Ends::Nobody => true,
    };
    let untold = run.exit_calls.iter().filter(|call| call.number == 0);
    for call in untold.filter(|call| becomes_message(call)) {
        add(call.to, call.from, (true, false), None, Some(call.access()));
    }
    all
}

/// Whether a message is of a link that its receiver had given up before the end of the other process: then it never
/// comes.
pub(super) fn is_unlinked(run: &Run, causes: &Causes, one: &Untold) -> bool {
    let Some(of) = one.told.of.filter(|_| one.told.exit && one.cause.is_none()) else {
        return false;
    };
    let place = |of, number| {
        let mut order = causes.seen.order().iter();
        order.position(|other| *other == Access { of, number })
    };
    let last = run.trace.processes[of].steps.iter().rev();
    let mut last = last.filter_map(|step| match step {
        Step::Accesses(number) => Some(*number),
        _ => None,
    });
    let Some(end) = last.next().and_then(|number| place(of, number)) else {
        return false;
    };
    let is_of = |it: &&Watch<ProcessIndex>| it.is_link && (it.by, it.whom) == (one.to, of);
    let mut links = run.watches.iter().filter(is_of);
    links.all(|link| {
        let given_up = link.unlinks.and_then(|number| place(one.to, number));
        given_up.is_some_and(|given_up| given_up < end)
    })
}

/// Adds messages about names that nobody has, which processes would have got if no signal had ended them before.
pub(super) fn add_gone(run: &Run, untold: &[Untold], lines: &mut Lines, causes: &mut Causes) {
    let mut next = FxHashMap::<ProcessIndex, u32>::default();
    let of_nobody = causes
        .gone_untold()
        .iter()
        .filter(|(gone, _)| gone.of.is_none());
    for (Gone { by: to, of }, known) in of_nobody.cloned().collect::<Vec<_>>() {
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
        let told = SystemMessage {
            number: *number,
            of,
            gone: true,
            exit: false,
            set: None,
        };
        lines[to]
            .entry(of)
            .or_default()
            .push(Message::SystemMessage(told));
        causes.record_gone(told.at(to), known);
    }
}

/// For each watcher of an end, and each process it watches, the receives up to which a message of that end can come: of
/// links (`true`), or of monitors.
fn watches(run: &Run) -> BTreeMap<(ProcessIndex, ProcessIndex, bool), Vec<Option<u32>>> {
    let mut pairs = BTreeMap::<_, Vec<_>>::new();
    let has_ended = |at: ProcessIndex| run.trace.processes[at].has_ended();
    let watches = run.watches.iter().filter(|it| it.finds_gone.is_none());
    let tells = |it: &Watch<ProcessIndex>| match (it.is_link, it.fails) {
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

/// Monitors of one process on another one that it found gone: the receive up to which the message can be taken, and the
/// access that found that.
type FoundGone = BTreeMap<(ProcessIndex, ProcessIndex), Vec<(Option<u32>, u64)>>;

/// The monitors of processes that were gone.
fn found_gone(run: &Run) -> FoundGone {
    let mut pairs = FoundGone::new();
    for watch in &run.watches {
        if let Some(access) = watch.finds_gone {
            let found = pairs.entry((watch.by, watch.whom)).or_default();
            found.push((watch.until, access));
        }
    }
    pairs
}

/// The messages that a process got which no process has sent.
fn told(run: &Run, process: ProcessIndex) -> impl Iterator<Item = &SystemMessage> {
    let steps = run.trace.processes[process].steps.iter();
    steps.filter_map(|step| match step {
        Step::Deliver(Message::SystemMessage(told)) => Some(told),
        _ => None,
    })
}
