//! Writes traces in the notation of the text: a line for each process.

use std::fmt::{self, Write as _};

use beamline_formats::ring::Id;

use super::{Access, Message, ProcessIndex, Trace};

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut all = self.processes.indexes();
        all.try_for_each(|at| writeln!(f, "{}", self.line(at)))
    }
}

impl Trace {
    /// The line of the process at this place, without its end.
    #[must_use]
    pub fn line(&self, at: ProcessIndex) -> String {
        let process = &self.processes[at];
        let mut out = format!("{{{}, [", self.reference(at));
        for (i, step) in process.steps.iter().enumerate() {
            let comma = if i == 0 { "" } else { ", " };
            let _ = write!(out, "{comma}{}", self.step(at, step));
        }
        out.push_str("]}");
        let pid = process.pid.map(|pid| Id::Process(pid).to_string());
        let comment: Vec<&str> = [pid.as_deref(), process.known_as.as_deref()]
            .into_iter()
            .flatten()
            .collect();
        if !comment.is_empty() {
            let _ = write!(out, " % {}", comment.join(" "));
        }
        out
    }

    /// A message that the process at this place sends or receives, such as `l0.4:2`.
    #[must_use]
    pub fn message(&self, at: ProcessIndex, message: &Message) -> String {
        let (letter, process, number) = match *message {
            Message::Sent { from, number } => ('l', from, number),
            Message::SystemMessage(told) => ('t', at, told.number),
        };
        self.numbered(letter, process, number.into())
    }

    /// An access, such as `a0.4:17`.
    #[must_use]
    pub fn access(&self, access: Access) -> String {
        self.numbered('a', access.of, access.number)
    }

    /// What the process has given a number to, such as `m0.4:17` for the letter `m`.
    pub(super) fn numbered(&self, letter: char, process: ProcessIndex, number: u64) -> String {
        let mut out = String::new();
        let _ = self.reference(process).write(&mut out, letter);
        let _ = write!(out, ":{number}");
        out
    }
}
