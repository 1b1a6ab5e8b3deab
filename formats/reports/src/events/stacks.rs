//! Turns the calls and returns of a recording into single calls: when each began and ended, its own time and its own
//! words.
//!
//! A call in tail position ends with the call that its row of tail calls began with, or when that row comes back to its
//! function. So each time around a loop is a call, and a loop that never ends takes no memory. A call of the function that
//! runs opens no row, as in [`beamline_formats::paths`].

use beamline_formats::ring::{Event, Group, Id, NameId, Record, Recording};
use rustc_hash::FxHashMap;

use crate::events::total::{Total, sum};

/// A call of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Activation {
    /// What was called.
    pub function: NameId,
    /// When, since the recording was begun.
    pub start_ns: u64,
    /// Time in it while the process ran, without what it called.
    pub own_ns: u64,
    /// Words allocated in it; below zero where messages were given back.
    words: i64,
    is_tail: bool,
}

impl Activation {
    /// Words allocated in it, without what it called, if they were recorded.
    #[must_use]
    pub fn own_words(&self) -> u64 {
        sum(self.words)
    }

    /// It was made in tail position, and another call is below it in its row.
    #[must_use]
    pub(super) fn is_tail(&self) -> bool {
        self.is_tail
    }
}

/// The beginning or the end of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It begins.
    Begin(Activation),
    /// It ends.
    End(Activation),
}

/// The calls of a process that have not ended.
struct Stack {
    calls: Vec<Activation>,
    is_running: bool,
    since_ns: u64,
    words_so_far: Total,
}

impl Stack {
    fn words(&mut self, total: u64) {
        let came = self.words_so_far.now(total);
        if let Some(top) = self.calls.last_mut() {
            top.words = top.words.wrapping_add(came);
        }
    }

    fn charge(&mut self, now: u64) {
        if self.is_running
            && let Some(top) = self.calls.last_mut()
        {
            let passed = now.saturating_sub(self.since_ns);
            top.own_ns = top.own_ns.saturating_add(passed);
        }
        self.since_ns = now;
    }

    fn begin(&mut self, function: NameId, is_tail: bool) -> Step {
        let call = Activation {
            function,
            start_ns: self.since_ns,
            own_ns: 0,
            words: 0,
            is_tail,
        };
        self.calls.push(call);
        Step::Begin(call)
    }

    /// Where the tail call of a function goes: after what it ends, and whether another call is below it in its row.
    fn place_of_tail(&self, function: NameId) -> (usize, bool) {
        let newest = self.calls.len();
        for (at, call) in self.calls.iter().enumerate().rev() {
            if call.function == function && (at + 1 == newest || !self.is_self_call(at)) {
                return (at, call.is_tail);
            }
            if !call.is_tail {
                return (newest, true);
            }
        }
        (0, false)
    }

    /// Whether the function of this call ran already when it was called.
    fn is_self_call(&self, at: usize) -> bool {
        let caller = at.checked_sub(1).map(|at| &self.calls[at]);
        let call = &self.calls[at];
        !call.is_tail && caller.is_some_and(|caller| caller.function == call.function)
    }

    /// Where the newest `calls` calls begin that were not in tail position.
    fn place_of_calls(&self, calls: u64) -> usize {
        let mut left = calls;
        for (at, call) in self.calls.iter().enumerate().rev() {
            if left == 0 {
                return at + 1;
            }
            left -= u64::from(!call.is_tail);
        }
        0
    }
}

/// The calls of all processes that have not ended.
pub struct Stacks {
    all: Vec<(Id, Stack)>,
    known: FxHashMap<Id, usize>,
    /// Whose record came last.
    last: usize,
    /// Whether a process runs is known.
    has_slices: bool,
}

impl Stacks {
    /// Of this recording: no call yet.
    #[must_use]
    pub fn new(recording: &Recording) -> Stacks {
        Stacks {
            all: Vec::new(),
            known: FxHashMap::default(),
            last: 0,
            has_slices: recording.has(Group::Scheduling),
        }
    }

    fn of(&mut self, id: Id) -> &mut Stack {
        if self.all.get(self.last).is_none_or(|(last, _)| *last != id) {
            let new = self.all.len();
            self.last = *self.known.entry(id).or_insert(new);
            if self.last == new {
                let stack = Stack {
                    calls: Vec::new(),
                    is_running: !self.has_slices,
                    since_ns: 0,
                    words_so_far: Total::default(),
                };
                self.all.push((id, stack));
            }
        }
        &mut self.all[self.last].1
    }

    /// The newest call of a process that has not ended.
    #[must_use]
    pub fn top(&self, id: Id) -> Option<NameId> {
        let (_, stack) = self.all.get(*self.known.get(&id)?)?;
        stack.calls.last().map(|call| call.function)
    }

    /// Follows a record; `each` gets what becomes of calls, the newest first.
    pub fn add(&mut self, record: &Record<'_>, mut each: impl FnMut(Step)) {
        let now = record.time_ns;
        let runs = match record.event {
            Event::Call { .. }
            | Event::TailCall { .. }
            | Event::Return { .. }
            | Event::Unwind { .. }
            | Event::Words { .. }
            | Event::In { .. }
            | Event::DirtyIn { .. } => true,
            Event::Out { .. }
            | Event::DirtyQueued { .. }
            | Event::DirtyOut { .. }
            | Event::Exit { .. }
            | Event::OutExited {} => false,
            _ => return,
        };
        let has_slices = self.has_slices;
        let stack = self.of(record.subject);
        stack.charge(now);
        if has_slices {
            // The caller runs, even if the record of that is lost.
            stack.is_running = runs;
        }
        let mut end = |stack: &mut Stack, at: usize| {
            for call in stack.calls.drain(at..).rev() {
                each(Step::End(call));
            }
        };
        match record.event {
            Event::Call { function } => each(stack.begin(function, false)),
            Event::TailCall { function } => {
                let (at, is_tail) = stack.place_of_tail(function);
                end(stack, at);
                each(stack.begin(function, is_tail));
            }
            Event::Return { .. } => end(stack, stack.place_of_calls(1)),
            Event::Unwind { calls } => end(stack, stack.place_of_calls(calls)),
            Event::Exit { .. } => end(stack, 0),
            Event::Words { total } => stack.words(total),
            _ => {}
        }
    }

    /// How many calls have not ended.
    #[must_use]
    pub(crate) fn open_count(&self) -> usize {
        self.all.iter().map(|(_, stack)| stack.calls.len()).sum()
    }

    /// The calls that have not ended, of each process the newest first; their own time is that until `now`.
    pub fn open(&mut self, now: u64) -> impl Iterator<Item = (Id, Activation)> + '_ {
        self.all.iter_mut().flat_map(move |(id, stack)| {
            stack.charge(now);
            stack.calls.iter().rev().map(|call| (*id, *call))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What becomes of calls: the function and when it began, and at the end its own time.
    fn steps(records: &[(u64, Event<'static>)]) -> Vec<String> {
        let mut stacks = Stacks {
            all: Vec::new(),
            known: FxHashMap::default(),
            last: 0,
            has_slices: true,
        };
        let mut steps = Vec::new();
        for (time_ns, event) in records {
            let record = Record {
                time_ns: *time_ns,
                segment: 0,
                subject: Id::Process(1),
                event: *event,
            };
            stacks.add(&record, |step| {
                steps.push(match step {
                    Step::Begin(call) => format!("+{}", call.function.0),
                    Step::End(call) => format!(
                        "-{} {}..{} {}",
                        call.function.0, call.start_ns, time_ns, call.own_ns
                    ),
                });
            });
        }
        let open = stacks
            .open(100)
            .map(|(_, call)| call.function.0.to_string());
        steps.extend(open);
        steps
    }

    fn call(function: u32) -> Event<'static> {
        Event::Call {
            function: NameId(function),
        }
    }

    fn tail(function: u32) -> Event<'static> {
        Event::TailCall {
            function: NameId(function),
        }
    }

    fn back() -> Event<'static> {
        Event::Return {
            function: NameId::NONE,
        }
    }

    fn check(records: &[(u64, Event<'static>)], expect: &[&str]) {
        assert_eq!(steps(records), expect, "{records:?}");
    }

    #[test]
    fn calls_end_with_their_return() {
        let out = Event::Out {
            function: NameId::NONE,
            messages: 0,
            reductions: 0,
        };
        let function = NameId::NONE;
        let one_in_the_other = [(10, call(1)), (12, call(2)), (15, back()), (20, back())];
        let expect = ["+1", "+2", "-2 12..15 3", "-1 10..20 7"];
        check(&one_in_the_other, &expect);
        let waits = [
            (10, call(1)),
            (12, out),
            (20, Event::In { function }),
            (21, back()),
        ];
        check(&waits, &["+1", "-1 10..21 3"]);
        let thrown = [
            (1, call(1)),
            (2, call(2)),
            (3, call(3)),
            (4, Event::Unwind { calls: 2 }),
        ];
        check(&thrown, &["+1", "+2", "+3", "-3 3..4 1", "-2 2..4 1", "1"]);
        let ends = [
            (1, call(1)),
            (2, tail(2)),
            (4, Event::Exit { text: "normal" }),
        ];
        check(&ends, &["+1", "+2", "-2 2..4 2", "-1 1..4 1"]);
    }

    #[test]
    fn tail_calls_end_with_what_they_are_part_of() {
        check(
            &[
                (10, call(1)),
                (12, tail(2)),
                (15, call(3)),
                (16, back()),
                (20, back()),
            ],
            &[
                "+1",
                "+2",
                "+3",
                "-3 15..16 1",
                "-2 12..20 7",
                "-1 10..20 2",
            ],
        );
        let around = [
            (10, call(9)),
            (11, call(1)),
            (12, tail(2)),
            (15, tail(1)),
            (18, tail(1)),
            (20, back()),
        ];
        check(
            &around,
            &[
                "+9",
                "+1",
                "+2",
                "-2 12..15 3",
                "-1 11..15 1",
                "+1",
                "-1 15..18 3",
                "+1",
                "-1 18..20 2",
                "9",
            ],
        );
        // A function of that name further down the stack is another call.
        check(
            &[(10, call(1)), (11, call(2)), (12, tail(1)), (15, back())],
            &["+1", "+2", "+1", "-1 12..15 3", "-2 11..15 1", "1"],
        );
        // A call of the function that runs opens no row: what it tail calls may call back.
        check(
            &[
                (10, call(1)),
                (11, call(1)),
                (12, tail(2)),
                (13, tail(1)),
                (14, tail(2)),
                (15, back()),
            ],
            &[
                "+1",
                "+1",
                "+2",
                "+1",
                "-1 13..14 1",
                "-2 12..14 1",
                "+2",
                "-2 14..15 1",
                "-1 11..15 1",
                "1",
            ],
        );
        // What was called before has no beginning; a tail call without a call is a call.
        let unknown = [(10, back()), (11, tail(1)), (12, back())];
        check(&unknown, &["+1", "-1 11..12 1"]);
    }
}
