//! What samples tell: where threads were seen, and how sure that is. A sample says what a thread did at a moment; nobody
//! has counted calls.

mod changes;
mod processes;

use std::collections::HashMap;
use std::fmt;

use beamline_formats::name;
use beamline_formats::profile::{LeftOut, Node, Profile, Rest, View};
use beamline_formats::ring::{
    DIRTY_CPU, DIRTY_IO, Error, Event, Id, Losses, NameId, Recording, Sampling,
};
use serde::Serialize;

pub use changes::{Change, Changes, Moved};
use processes::ByProcess;

use super::pass::pass;
use crate::events::batch::Batch;
use crate::events::calls::Callers;
use crate::events::pass::Sink;
use crate::sums::{costs_with_callees, function_sums, outermost};

/// What a thread did when it was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Does {
    /// It ran Erlang code.
    Erlang = 1,
    /// It ran a native function for a process.
    Native = 2,
    /// It collected.
    Collection = 3,
    /// It did what the runtime does for itself: it scheduled, polled, or looked for work.
    Runtime = 4,
}

impl Does {
    /// All of them.
    pub const ALL: [Does; 4] = [Does::Erlang, Does::Native, Does::Collection, Does::Runtime];

    fn of(number: u64) -> Option<Does> {
        Does::ALL.into_iter().find(|does| *does as u64 == number)
    }

    /// Its place in the list of all.
    pub(crate) fn place(self) -> usize {
        self as usize - 1
    }

    /// In a report.
    #[must_use]
    pub fn about(self) -> &'static str {
        match self {
            Does::Erlang => "Erlang code",
            Does::Native => "native functions, and C code for processes",
            Does::Collection => "garbage collections",
            Does::Runtime => "the runtime for itself: scheduling, polling, looking for work",
        }
    }
}

/// The kind of a thread of an emulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ThreadKind {
    /// None of the others.
    Other,
    /// It is an ordinary scheduler.
    Scheduler,
    /// It is a dirty CPU scheduler.
    DirtyCpu,
    /// It is a dirty I/O scheduler.
    DirtyIo,
}

impl ThreadKind {
    fn number(self) -> u64 {
        match self {
            ThreadKind::Other => 0,
            ThreadKind::Scheduler => 1,
            ThreadKind::DirtyCpu => 1 + DIRTY_CPU,
            ThreadKind::DirtyIo => 1 + DIRTY_IO,
        }
    }

    fn of(number: u64) -> ThreadKind {
        let all = [
            ThreadKind::Scheduler,
            ThreadKind::DirtyCpu,
            ThreadKind::DirtyIo,
        ];
        let known = all.into_iter().find(|kind| kind.number() == number);
        known.unwrap_or(ThreadKind::Other)
    }

    /// In a report, before the thread's number.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ThreadKind::Other => "other thread",
            ThreadKind::Scheduler => "scheduler",
            ThreadKind::DirtyCpu => "dirty CPU scheduler",
            ThreadKind::DirtyIo => "dirty I/O scheduler",
        }
    }
}

/// What was seen in one look at a thread, without its stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Looked {
    /// What it did.
    pub does: Does,
    /// Its kind.
    pub kind: ThreadKind,
    /// Its number among those of its kind.
    pub number: u64,
}

impl Looked {
    /// What a record tells, if it is of a look.
    pub(crate) fn of(event: &Event<'_>) -> Option<Looked> {
        Looked::with_stack(event).map(|(looked, _)| looked)
    }

    /// A process that was looked at, with its stack.
    pub(crate) fn with_stack(event: &Event<'_>) -> Option<(Looked, NameId)> {
        match *event {
            Event::Sampled {
                stack,
                does,
                kind,
                number,
            } => {
                let looked = Looked {
                    // A newer writer may know more.
                    does: Does::of(does).unwrap_or(Does::Runtime),
                    kind: ThreadKind::of(kind),
                    number,
                };
                Some((looked, stack))
            }
            _ => None,
        }
    }

    /// The thread, as reports call it.
    pub(crate) fn thread(kind: ThreadKind, number: u64) -> String {
        format!("{} {number}", kind.name())
    }

    /// The record of it.
    #[must_use]
    pub fn event(self, stack: NameId) -> Event<'static> {
        Event::Sampled {
            stack,
            does: self.does as u64,
            kind: self.kind.number(),
            number: self.number,
        }
    }
}

/// Samples in which something was seen.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// What was seen.
    pub what: String,
    /// Samples in which it was.
    pub samples: u64,
    /// Their part of all, in percent.
    pub percent: f64,
    /// In 95 of 100 runs the true part is no farther from that than this, in percent of all samples.
    pub plus_minus: f64,
    /// Samples in which it, or what it called, was; of functions alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<Share>,
}

/// A part of all samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Share {
    /// How many.
    pub samples: u64,
    /// In percent.
    pub percent: f64,
    /// How sure that is: see [`Row`].
    pub plus_minus: f64,
}

/// The standard score within which 95 % of a normal distribution lie.
const Z: f64 = 1.96;

impl Share {
    /// Of so many; its error bar is half of Wilson's interval.
    #[must_use]
    pub fn of(samples: u64, all: u64) -> Share {
        let n = all.max(1) as f64;
        let part = samples as f64 / n;
        let variance = part * (1.0 - part) / n + Z * Z / (4.0 * n * n);
        let half = Z / (1.0 + Z * Z / n) * variance.sqrt();
        Share {
            samples,
            percent: 100.0 * part,
            plus_minus: 100.0 * half,
        }
    }
}

impl Row {
    fn of(what: String, samples: u64, all: u64) -> Row {
        let share = Share::of(samples, all);
        Row {
            what,
            samples,
            percent: share.percent,
            plus_minus: share.plus_minus,
            total: None,
        }
    }
}

/// How threads were stopped for a look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Stopped {
    /// How often.
    pub looks: u64,
    /// At most, altogether: the time counts from the request to stop.
    pub ns: u64,
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let each = self.ns / self.looks.max(1);
        write!(
            f,
            "threads were stopped {} times, for {} each at most",
            name::thousands(self.looks),
            name::time(each),
        )
    }
}

/// What the samples of a recording tell.
#[derive(Clone, Debug, Serialize)]
pub struct Sampled {
    /// What is missing.
    #[serde(flatten)]
    pub losses: Losses,
    /// The emulator's command line, program first.
    pub command: Vec<String>,
    /// Its OTP release.
    pub otp: String,
    /// How samples were taken.
    pub sampling: Sampling,
    /// From begin to end, in nanoseconds.
    pub length_ns: u64,
    /// All samples.
    pub samples: u64,
    /// Samples that were lost.
    pub samples_lost: u64,
    /// What it cost to stop threads for a look; none where the system looked without that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<Stopped>,
    /// What threads did.
    pub does: Vec<Row>,
    /// The threads.
    pub threads: Vec<Row>,
    /// The functions, the one most often seen as the newest of a stack first.
    pub functions: Vec<Row>,
    /// The processes, the one most often seen first.
    pub processes: Vec<Row>,
    /// Of each function what views ask for.
    #[serde(skip)]
    of: Vec<usize>,
}

/// Counts what was seen.
#[derive(Default)]
pub(crate) struct Tallies {
    does: HashMap<Does, u64>,
    threads: HashMap<(ThreadKind, u64), u64>,
    processes: HashMap<Id, u64>,
    pub(crate) samples: u64,
    pub(crate) lost: u64,
    pub(crate) stopped: Option<Stopped>,
}

impl Sink for Tallies {
    fn take(&mut self, batch: &Batch) -> Result<(), Error> {
        for record in batch.whole() {
            if let Some(looked) = Looked::of(&record.event) {
                self.samples += 1;
                *self.does.entry(looked.does).or_default() += 1;
                let thread = (looked.kind, looked.number);
                *self.threads.entry(thread).or_default() += 1;
                *self.processes.entry(record.subject).or_default() += 1;
            }
            match record.event {
                Event::SamplesLost { count } => self.lost += count,
                Event::ThreadsStopped { looks, ns } => {
                    let stopped = self.stopped.get_or_insert_default();
                    stopped.looks += looks;
                    stopped.ns += ns;
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Rows of what was seen, the most frequent first.
fn rows(all: impl Iterator<Item = (String, u64)>, samples: u64) -> Vec<Row> {
    let mut rows: Vec<Row> = all
        .map(|(what, count)| Row::of(what, count, samples))
        .collect();
    rows.sort_by(|a, b| {
        let by_count = b.samples.cmp(&a.samples);
        by_count.then_with(|| a.what.cmp(&b.what))
    });
    rows
}

impl Sampled {
    /// Reads a recording of samples. Its call paths are given too.
    ///
    /// # Errors
    /// When a block is damaged.
    pub fn of(recording: &Recording, sampling: &Sampling) -> Result<(Sampled, Profile), Error> {
        let mut callers = Callers::new(recording);
        let mut tallies = Tallies::default();
        let read = pass(recording, &mut [&mut callers, &mut tallies])?;
        let losses = Losses::of(recording, &read.found)?;
        let (profile, _) = callers.finish(recording, losses.since_ns);
        let samples = tallies.samples;
        let names = recording.names();
        let process = |id: Id| match id {
            Id::None => "(no process)".to_owned(),
            id => format!("{id} {}", names.process_text(id))
                .trim_end()
                .to_owned(),
        };
        let thread = |(kind, number): (ThreadKind, u64)| Looked::thread(kind, number);
        let (functions, of) = functions(&profile, sampling.period_ns(), samples);
        let description = recording.description();
        let does = tallies.does.into_iter();
        let threads = tallies.threads.into_iter();
        let processes = tallies.processes.into_iter();
        let sampled = Sampled {
            losses,
            command: description.command.clone(),
            otp: description.otp.clone(),
            sampling: sampling.clone(),
            length_ns: recording.whole_end_ns()?,
            samples,
            samples_lost: tallies.lost,
            stopped: tallies.stopped,
            does: rows(does.map(|(of, n)| (of.about().to_owned(), n)), samples),
            threads: rows(threads.map(|(of, n)| (thread(of), n)), samples),
            functions,
            processes: rows(processes.map(|(of, n)| (process(of), n)), samples),
            of,
        };
        Ok((sampled, profile))
    }

    /// As text, of these functions.
    #[must_use]
    pub fn shown<'s>(&'s self, profile: &'s Profile, view: &'s View) -> impl fmt::Display + 's {
        Shown {
            sampled: self,
            profile,
            view,
        }
    }

    /// As text, with a table of functions for each process, or for all of one name.
    #[must_use]
    pub fn by_process<'s>(
        &'s self,
        profile: &'s Profile,
        view: &'s View,
    ) -> impl fmt::Display + 's {
        let sampled = self;
        fmt::from_fn(move |f| {
            let shown = Shown {
                sampled,
                profile,
                view,
            };
            shown.write_head(f)?;
            let by_process = ByProcess {
                sampled,
                profile,
                view,
            };
            write!(f, "{by_process}")
        })
    }

    /// In a few words, for the subtitle of a picture.
    #[must_use]
    pub fn short(&self) -> String {
        let samples = name::thousands(self.samples);
        format!("{samples} samples at {} Hz", self.sampling.rate_hz)
    }
}

/// The functions, and of each its index in the profile.
fn functions(profile: &Profile, period_ns: u64, samples: u64) -> (Vec<Row>, Vec<usize>) {
    let time = |node: &Node| node.cost.time_ns;
    let outermost = outermost(profile);
    let sums = function_sums(
        profile,
        time,
        &costs_with_callees(profile, time),
        &outermost,
    );
    let count = |ns: u64| ns / period_ns.max(1);
    let functions = profile.functions.iter().enumerate();
    let functions = functions.filter(|(_, function)| !function.is_cut());
    let rows = functions.map(|(at, function)| {
        let mut row = Row::of(function.to_string(), count(sums[at].own), samples);
        row.total = Some(Share::of(count(sums[at].total), samples));
        (row, at)
    });
    let mut rows: Vec<(Row, usize)> = rows.collect();
    let key = |row: &Row| (row.samples, row.total.map(|total| total.samples));
    rows.sort_by(|(a, _), (b, _)| key(b).cmp(&key(a)).then_with(|| a.what.cmp(&b.what)));
    rows.into_iter().unzip()
}

struct Shown<'s> {
    sampled: &'s Sampled,
    profile: &'s Profile,
    view: &'s View,
}

/// Processes of a list, if nobody says how many.
const PROCESSES: usize = 15;

fn share(f: &mut fmt::Formatter<'_>, percent: f64, plus_minus: f64) -> fmt::Result {
    write!(f, "{percent:>6.1} ±{plus_minus:<4.1} ")
}

impl Shown<'_> {
    fn write_head(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = self.sampled;
        let running = match of.sampling.of_running {
            true => "threads that ran",
            false => "all threads, also of those that slept",
        };
        write!(f, "{}", of.losses)?;
        writeln!(f)?;
        writeln!(f, "Command     {}", of.command.join(" "))?;
        let separator = if of.sampling.emulator.is_empty() {
            ""
        } else {
            ", "
        };
        writeln!(
            f,
            "Emulator    {}{separator}OTP {}",
            of.sampling.emulator, of.otp
        )?;
        writeln!(
            f,
            "Sampled     {} samples in {}, at {} Hz of {running} ({}); {} lost",
            name::thousands(of.samples),
            name::time(of.length_ns),
            of.sampling.rate_hz,
            of.sampling.means,
            name::thousands(of.samples_lost),
        )?;
        if let Some(stopped) = of.stopped {
            writeln!(f, "            To look at them, {stopped}.")?;
        }
        writeln!(
            f,
            "            Shares are percent of all samples; ± is the 95 % error bar. Nobody counted calls."
        )
    }

    fn write_rows(
        &self,
        f: &mut fmt::Formatter<'_>,
        (title, what): (&str, &str),
        rows: &[Row],
    ) -> fmt::Result {
        writeln!(f, "\n{title}")?;
        writeln!(f, " SHARE          SAMPLES  {what}")?;
        for row in rows {
            share(f, row.percent, row.plus_minus)?;
            writeln!(f, "{:>9}  {}", row.samples, self.view.cut(&row.what, 25))?;
        }
        Ok(())
    }

    fn write_functions(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\nFunctions, by own share")?;
        writeln!(f, "   OWN         TOTAL         SAMPLES  FUNCTION")?;
        let (mut shown, mut out_of_scope, mut more) = (0, Rest::default(), Rest::default());
        for (row, at) in self.sampled.functions.iter().zip(&self.sampled.of) {
            let of = &self.profile.functions[*at];
            let origin = self.profile.origin(&of.module);
            if !self.view.scope.has(origin, &of.module, &of.name, of.arity) {
                out_of_scope.add(0, row.samples);
                continue;
            }
            if self.view.top.is_some_and(|top| shown >= top) {
                more.add(0, row.samples);
                continue;
            }
            shown += 1;
            share(f, row.percent, row.plus_minus)?;
            if let Some(total) = row.total {
                share(f, total.percent, total.plus_minus)?;
            }
            writeln!(f, "{:>9}  {}", row.samples, self.view.cut(&row.what, 39))?;
        }
        for (rest, why) in [(out_of_scope, LeftOut::ByScope), (more, LeftOut::ByTop)] {
            if rest.functions > 0 {
                let left = Share::of(rest.value, self.sampled.samples);
                share(f, left.percent, left.plus_minus)?;
                writeln!(f, "{:14}{:>9}  {}", "", rest.value, rest.text(why))?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_head(f)?;
        let of = self.sampled;
        self.write_rows(f, ("What threads did", "WHAT"), &of.does)?;
        self.write_functions(f)?;
        let processes = &of.processes[..of.processes.len().min(PROCESSES)];
        self.write_rows(f, ("Processes", "PROCESS"), processes)?;
        self.write_rows(f, ("Threads", "THREAD"), &of.threads)
    }
}

#[cfg(test)]
mod tests;
