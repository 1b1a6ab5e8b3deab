//! A part of a recording: the records of some processes, of what some functions call, or of some time.
//!
//! Records are handed on so that whoever follows calls sees a recording that begins with the part. What is open when it
//! begins, begins with it, and what is open at its end is charged until then. Records that are made for this purpose are
//! told apart from those that are in the recording.

use beamline_formats::ring::{Error, Event, Group, Id, Losses, NameId, Record, Recording};
use rustc_hash::FxHashMap;

use super::pass::scan;
use crate::events::stacks::{Activation, Stacks, Step};

/// The processes and functions that are chosen.
pub(crate) struct Only<'a> {
    /// All of such a process is meant.
    pub(crate) is_process: Box<dyn Fn(Id) -> bool + 'a>,
    /// Of other processes, the calls of such a function and all below them are meant.
    pub(crate) is_function: Box<dyn Fn(NameId) -> bool + 'a>,
}

/// A part of a recording; all of it by default.
#[derive(Default)]
pub(crate) struct Part<'a> {
    /// None: all processes.
    pub(crate) only: Option<Only<'a>>,
    /// From this time on, in nanoseconds since the recording was begun.
    pub(crate) begin_ns: u64,
    /// Up to this time.
    pub(crate) end_ns: Option<u64>,
}

impl Part<'_> {
    /// It is the whole recording.
    pub(crate) fn is_whole(&self) -> bool {
        self.only.is_none() && self.begin_ns == 0 && self.end_ns.is_none()
    }

    /// Hands over the records of the part in order of time, each with whether it was made for the part.
    ///
    /// # Errors
    /// When a block is damaged, or the first error of `each`.
    pub(crate) fn scan<E: From<Error>>(
        &self,
        recording: &Recording,
        mut each: impl FnMut(&Record<'_>, bool) -> Result<(), E>,
    ) -> Result<Losses, E> {
        if self.is_whole() {
            return scan(recording, |record| each(record, false));
        }
        let mut filter = Filter::new(self, recording);
        let losses = scan(recording, |record| filter.add(record, &mut each))?;
        Ok(losses)
    }
}

/// A process, as far as the part is concerned.
struct Who {
    /// All of it is meant.
    is_meant: bool,
    /// How many open calls are of functions that are meant.
    within: usize,
    /// Where it runs: the segment and the function it began in.
    running: Option<(usize, NameId)>,
    /// The newest record of its call for a dirty scheduler, while that waits or runs.
    dirty: Option<Event<'static>>,
}

impl Who {
    fn is_shown(&self) -> bool {
        self.is_meant || self.within > 0
    }
}

/// Where the records are in the part's time.
#[derive(PartialEq)]
enum Phase {
    Before,
    Within,
    After,
}

struct Filter<'p> {
    part: &'p Part<'p>,
    has_slices: bool,
    stacks: Stacks,
    all: FxHashMap<Id, Who>,
    functions: FxHashMap<NameId, bool>,
    phase: Phase,
}

/// Whoever takes records.
type Each<'e, E> = &'e mut dyn FnMut(&Record<'_>, bool) -> Result<(), E>;

impl<'p> Filter<'p> {
    fn new(part: &'p Part<'p>, recording: &Recording) -> Filter<'p> {
        Filter {
            part,
            has_slices: recording.has(Group::Scheduling),
            stacks: Stacks::new(recording),
            all: FxHashMap::default(),
            functions: FxHashMap::default(),
            phase: match part.begin_ns {
                0 => Phase::Within,
                _ => Phase::Before,
            },
        }
    }

    fn add<E>(&mut self, record: &Record<'_>, each: Each<'_, E>) -> Result<(), E> {
        if self.phase == Phase::After {
            return Ok(());
        }
        if self.phase == Phase::Before && record.time_ns >= self.part.begin_ns {
            self.phase = Phase::Within;
            self.begin(each)?;
        }
        if self.part.end_ns.is_some_and(|end| record.time_ns > end) {
            self.phase = Phase::After;
            return self.end(each);
        }
        let (was_shown, is_shown) = self.follow(record);
        if is_total(record) && !(was_shown && self.phase == Phase::Within) {
            // Totals count from the one before, which may be outside.
            return each(record, true);
        }
        if self.phase == Phase::Before {
            return Ok(());
        }
        match (was_shown, is_shown) {
            (false, false) => Ok(()),
            (false, true) => {
                if self.has_slices {
                    let function = NameId::NONE;
                    each(&made(record, Event::In { function }), true)?;
                }
                each(record, false)
            }
            (true, true) => each(record, false),
            (true, false) => self.leave(record, each),
        }
    }

    /// The last call that is meant ends with this record.
    fn leave<E>(&self, record: &Record<'_>, each: Each<'_, E>) -> Result<(), E> {
        match record.event {
            Event::Exit { .. } => return each(record, false),
            // What it calls is not meant.
            Event::TailCall { .. } => {
                each(&made(record, Event::Unwind { calls: u64::MAX }), true)?;
            }
            _ => each(record, false)?,
        }
        match self.has_slices {
            true => each(&made(record, OUT), true),
            false => Ok(()),
        }
    }

    /// Follows a record: whether its process was shown before it, and is after it.
    fn follow(&mut self, record: &Record<'_>) -> (bool, bool) {
        let only = self.part.only.as_ref();
        let who = self.all.entry(record.subject).or_insert_with(|| Who {
            is_meant: only.is_none_or(|only| (only.is_process)(record.subject)),
            within: 0,
            running: None,
            dirty: None,
        });
        let was_shown = who.is_shown();
        match record.event {
            Event::DirtyQueued { kind } => who.dirty = Some(Event::DirtyQueued { kind }),
            Event::DirtyIn {
                function,
                kind,
                scheduler,
            } => {
                who.dirty = Some(Event::DirtyIn {
                    function,
                    kind,
                    scheduler,
                });
            }
            Event::DirtyOut { .. } => who.dirty = None,
            Event::In { function } => {
                (who.running, who.dirty) = (Some((record.segment, function)), None);
            }
            Event::Out { .. } | Event::OutExiting {} | Event::OutExited {} => who.running = None,
            _ => {}
        }
        let functions = &mut self.functions;
        self.stacks.add(record, |step| {
            let Some(only) = only else { return };
            let (Step::Begin(call) | Step::End(call)) = step;
            let is_meant = functions.entry(call.function);
            if !*is_meant.or_insert_with(|| (only.is_function)(call.function)) {
                return;
            }
            match step {
                Step::Begin(_) => who.within += 1,
                Step::End(_) => who.within = who.within.saturating_sub(1),
            }
        });
        (was_shown, who.is_shown())
    }

    /// The open calls that are shown, of each process the oldest first.
    fn open(&mut self, at_ns: u64) -> Vec<(Id, Vec<Activation>)> {
        let mut open: Vec<(Id, Vec<Activation>)> = Vec::new();
        for (id, call) in self.stacks.open(at_ns) {
            match open.last_mut() {
                Some((last, calls)) if *last == id => calls.push(call),
                _ => open.push((id, vec![call])),
            }
        }
        let is_function = |call: &Activation| self.functions.get(&call.function) == Some(&true);
        for (id, calls) in &mut open {
            calls.reverse();
            if self.all.get(id).is_none_or(|who| !who.is_meant) {
                let first = calls.iter().position(is_function);
                calls.drain(..first.unwrap_or(calls.len()));
            }
        }
        open.retain(|(_, calls)| !calls.is_empty());
        open
    }

    /// The part begins: what is open begins with it.
    fn begin<E>(&mut self, each: Each<'_, E>) -> Result<(), E> {
        let at_ns = self.part.begin_ns;
        let open: FxHashMap<Id, Vec<Activation>> = self.open(at_ns).into_iter().collect();
        let mut shown: Vec<_> = self
            .all
            .iter()
            .filter(|(id, who)| who.is_meant || open.contains_key(id))
            .map(|(id, who)| (*id, who.running, who.dirty))
            .collect();
        // A process that waits has no scheduler: it must not end what runs on one.
        shown.sort_unstable_by_key(|(id, running, _)| (running.is_some(), *id));
        for (subject, running, dirty) in shown {
            let record = |event| Record {
                time_ns: at_ns,
                segment: running.map_or(0, |(segment, _)| segment),
                subject,
                event,
            };
            if let (Some((_, function)), true) = (running, self.has_slices) {
                each(&record(Event::In { function }), true)?;
            }
            let calls = open.get(&subject).map_or(&[][..], Vec::as_slice);
            for call in calls {
                let function = call.function;
                let event = match call.is_tail() {
                    true => Event::TailCall { function },
                    false => Event::Call { function },
                };
                each(&record(event), true)?;
            }
            if running.is_none() && self.has_slices && !calls.is_empty() {
                each(&record(OUT), true)?;
            }
            if let Some(dirty) = dirty.filter(|_| self.has_slices) {
                each(&record(dirty), true)?;
            }
        }
        Ok(())
    }

    /// The part ends: the time until then belongs to what is open.
    fn end<E>(&mut self, each: Each<'_, E>) -> Result<(), E> {
        let time_ns = self.part.end_ns.unwrap_or(u64::MAX);
        for (subject, _) in self.open(time_ns) {
            let event = Event::Unwind { calls: 0 };
            let record = Record {
                time_ns,
                segment: 0,
                subject,
                event,
            };
            each(&record, true)?;
        }
        Ok(())
    }
}

/// A process stops to run.
const OUT: Event<'static> = Event::Out {
    function: NameId::NONE,
    messages: 0,
    reductions: 0,
};

/// Tells how much there has been in all.
fn is_total(record: &Record<'_>) -> bool {
    matches!(record.event, Event::Words { .. } | Event::Reductions { .. })
}

/// At the time and the place of a record.
fn made<'a>(record: &Record<'_>, event: Event<'a>) -> Record<'a> {
    Record {
        time_ns: record.time_ns,
        segment: record.segment,
        subject: record.subject,
        event,
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::{Sample, process};
    use super::*;

    /// Records as `time event`, those that are made in parentheses.
    fn told(sample: &Sample, part: &Part<'_>) -> Vec<String> {
        let mut all = Vec::new();
        let done = part.scan(&sample.open(), |record, is_made| {
            let kind = record.event.kind().expect("it is known").name();
            let text = match record.event {
                Event::Call { function } | Event::TailCall { function } => {
                    format!("{} {kind} {}", record.time_ns, function.0)
                }
                _ => format!("{} {kind}", record.time_ns),
            };
            all.push(if is_made { format!("({text})") } else { text });
            Ok::<(), Error>(())
        });
        done.expect("it is readable");
        all
    }

    fn nested() -> (Sample, [u32; 3]) {
        let mut sample = Sample::new(&[Group::Calls, Group::Returns, Group::Scheduling]);
        let id = process(1);
        let numbers = ["main", "fib", "out"].map(|name| sample.function(name).0);
        sample.slice_begins(5, id);
        sample.call(10, id, "main");
        sample.call(20, id, "fib");
        sample.back(30, id);
        sample.call(40, id, "fib");
        sample.back(50, id);
        sample.back(60, id);
        (sample, numbers)
    }

    #[test]
    fn a_time_has_what_is_open_and_what_happens() {
        let (sample, [main, fib, _]) = nested();
        let part = Part {
            begin_ns: 25,
            end_ns: Some(45),
            ..Part::default()
        };
        let expect = [
            "(25 in)".to_owned(),
            format!("(25 call {main})"),
            format!("(25 call {fib})"),
            "30 return".to_owned(),
            format!("40 call {fib}"),
            "(45 unwind)".to_owned(),
        ];
        assert_eq!(told(&sample, &part), expect);
    }

    #[test]
    fn a_function_has_what_is_within_it() {
        let (sample, [_, fib, _]) = nested();
        let only = |is_process| Only {
            is_process: Box::new(move |_| is_process),
            is_function: Box::new(move |function| function == NameId(fib)),
        };
        let part = Part {
            only: Some(only(false)),
            ..Part::default()
        };
        let call = |at: u64| {
            [
                format!("({at} in)"),
                format!("{at} call {fib}"),
                format!("{} return", at + 10),
                format!("({} out)", at + 10),
            ]
        };
        assert_eq!(told(&sample, &part), [call(20), call(40)].concat());
        let part = Part {
            only: Some(only(true)),
            ..Part::default()
        };
        assert_eq!(told(&sample, &part).len(), 7, "the process is meant");
    }

    #[test]
    fn a_tail_call_leaves_what_is_meant() {
        let mut sample = Sample::new(&[Group::Calls, Group::Returns]);
        let (id, main) = (process(1), sample.function("main"));
        let fib = sample.function("fib");
        sample.call(10, id, "main");
        sample.write(20, id, Event::TailCall { function: fib });
        sample.write(30, id, Event::TailCall { function: main });
        sample.back(40, id);
        let only = Only {
            is_process: Box::new(|_| false),
            is_function: Box::new(move |function| function == fib),
        };
        let part = Part {
            only: Some(only),
            ..Part::default()
        };
        let expect = [format!("20 tail_call {}", fib.0), "(30 unwind)".to_owned()];
        assert_eq!(told(&sample, &part), expect);
    }
}
