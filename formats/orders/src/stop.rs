//! Where a replay stops.

use std::path::Path;
use std::time::Duration;

use beamline_formats::ring::Recording;
use serde::{Deserialize, Serialize};

use super::reference::Reference;
use super::{Access, Message, ProcessIndex, Step, StepAt, Trace};

/// Where a replay stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stop {
    /// Before a process sends a message.
    Send {
        /// The sender's place.
        from: ProcessIndex,
        /// Which of its sendings, from 1.
        number: u32,
    },
    /// When a message is in the queue that no process has sent.
    SystemMessage {
        /// The receiver's place.
        to: ProcessIndex,
        /// Which of those messages, from 1.
        number: u32,
    },
    /// Before a process accesses what processes share.
    Access {
        /// The process's place.
        of: ProcessIndex,
        /// Which of its accesses, from 1.
        number: u64,
    },
    /// When the process at this place has been made, and has done nothing.
    Begin(ProcessIndex),
    /// When a process has made all its steps before this one.
    Step(StepAt),
}

impl Stop {
    /// The place of the process that comes there.
    #[must_use]
    pub fn process(&self) -> ProcessIndex {
        match *self {
            Stop::Send { from: process, .. }
            | Stop::SystemMessage { to: process, .. }
            | Stop::Access { of: process, .. }
            | Stop::Begin(process)
            | Stop::Step(StepAt { process, .. }) => process,
        }
    }
}

impl Trace {
    /// Where a replay of this trace stops that is to stop at a reference: `l0.4:2`, `t0.4:3`, `a0.4:5`, `p0.4`.
    ///
    /// # Errors
    /// One line: it is no reference, or of nothing that a run with these steps can have.
    pub fn stop_at(&self, text: &str) -> Result<Stop, String> {
        let (letter, rest) = text.split_at_checked(1).unwrap_or(("", ""));
        let (process, number) = match letter {
            "p" => (rest, None),
            _ => match rest.split_once(':') {
                Some((process, number)) => (process, number.parse::<u64>().ok()),
                None => return Err(no_reference(text)),
            },
        };
        let process: Reference = process.parse().map_err(|()| no_reference(text))?;
        let mut places = self.processes.indexes();
        let place = places.find(|at| self.reference(*at) == process);
        let place = place.ok_or_else(|| format!("there is no process {process}"))?;
        let small = number.and_then(|number| u32::try_from(number).ok());
        let (stop, last) = match (letter, number.filter(|number| *number > 0), small) {
            ("p", None, _) => return Ok(Stop::Begin(place)),
            ("l", Some(_), Some(number)) => {
                let from = place;
                let last = self.count(place, |step| matches!(step, Step::Send(_)));
                (Stop::Send { from, number }, last)
            }
            ("t", Some(_), Some(number)) => {
                let to = place;
                let last = self.count(place, |step| {
                    matches!(step, Step::Deliver(Message::SystemMessage(_)))
                });
                (Stop::SystemMessage { to, number }, last)
            }
            ("a", Some(number), _) => {
                let of = place;
                let last = self.accesses_of(place);
                (Stop::Access { of, number }, last)
            }
            _ => return Err(no_reference(text)),
        };
        let mut steps = self.processes[place].steps.iter();
        let ends = steps.any(Step::is_exit);
        match number.filter(|number| ends && *number > last) {
            Some(_) => Err(format!("{process} ends before: the last one is {last}")),
            None => Ok(stop),
        }
    }

    fn count(&self, place: ProcessIndex, is_one: impl Fn(&Step) -> bool) -> u64 {
        let steps = self.processes[place].steps.iter();
        steps.filter(|step| is_one(step)).count() as u64
    }

    /// How many accesses a process makes, as far as its steps tell.
    fn accesses_of(&self, place: ProcessIndex) -> u64 {
        let steps = self.processes[place].steps.iter();
        let numbers = steps.filter_map(|step| match step {
            Step::After { access, .. } => Some(*access),
            Step::Accesses(number) => Some(*number),
            _ => None,
        });
        numbers.max().unwrap_or(0)
    }

    /// What the process does where a replay of this trace stops, such as `is about to send(l0.4:2)`.
    #[must_use]
    pub fn stopped(&self, stop: Stop) -> String {
        match stop {
            Stop::Send { from, number } => {
                format!("is about to {}", self.step(from, &Step::Send(number)))
            }
            Stop::SystemMessage { to, number } => {
                let message = self.message(to, &Message::told(number));
                format!("has got {message} into its queue")
            }
            Stop::Access { of, number } => {
                let access = self.access(Access { of, number });
                format!("is about to make {access}")
            }
            Stop::Begin(_) => "is about to begin".into(),
            Stop::Step(StepAt { process, step }) => match self.processes[process].step(step) {
                Some(next) => format!("is about to {}", self.step(process, next)),
                None => "has made its recorded steps".into(),
            },
        }
    }
}

fn no_reference(text: &str) -> String {
    format!(
        "'{text}' is neither a reference, such as l0.4.7:2, t0.4.7:3, a0.4.7:5 or p0.4.7, nor a time, such as 1.5s"
    )
}

impl Stop {
    /// Where the replay of a recording stops that is to stop at this time of it: at the first step behind.
    ///
    /// # Errors
    /// One line: the file has no times, or the run was over.
    pub fn at_time(file: &Path, time: Duration) -> Result<Stop, String> {
        if !Recording::is_one(file) {
            return Err("a time needs a recording: a trace has none".into());
        }
        let recording = Recording::open(file).map_err(|error| error.to_string())?;
        let time_ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let stop = super::read::first_step_behind(&recording, time_ns)?;
        stop.ok_or_else(|| "the recorded run was over by then".into())
    }
}
