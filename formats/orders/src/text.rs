//! Writes traces in the notation of the text: a line for each process.

use std::fmt::{self, Write as _};

use beamline_formats::name;
use beamline_formats::ring::Id;

use super::{Access, Message, Set, Setting, Signal, Spent, Step, Trace};

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (0..self.processes.len()).try_for_each(|at| writeln!(f, "{}", self.line(at)))
    }
}

impl Trace {
    /// The line of the process at this place, without its end.
    #[must_use]
    pub fn line(&self, at: usize) -> String {
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

    /// A step of the process at this place, such as `receive(l0.4:2)`.
    #[must_use]
    pub fn step(&self, at: usize, step: &Step) -> String {
        match step {
            Step::Spawn(child) => format!("spawn({})", self.reference(*child)),
            Step::Send(number) => {
                let from = at;
                let number = *number;
                format!(
                    "send({})",
                    self.message(at, &Message::Sent { from, number })
                )
            }
            Step::Deliver(message) => format!("deliver({})", self.word(at, message)),
            Step::Receive(message) => format!("receive({})", self.word(at, message)),
            Step::Collect { reductions, major } => match major {
                true => format!("collect({reductions}, major)"),
                false => format!("collect({reductions}, minor)"),
            },
            Step::Timeout => "timeout".into(),
            Step::Miss(module) => format!("miss({})", name::atom(module)),
            Step::Load { module, misses } => format!("load({}, {misses})", name::atom(module)),
            Step::Answer { function, value } => {
                let is_plain = |c: char| c.is_ascii_alphanumeric() || "_@:/".contains(c);
                match function.chars().all(is_plain) {
                    true => format!("answer({function}, {value})"),
                    false => format!("answer({}, {value})", name::atom(function)),
                }
            }
            Step::Content { number, value } => {
                let told = self.message(at, &Message::told(*number));
                format!("content({told}, {value})")
            }
            Step::After { access, other } => {
                let (of, number) = (at, *access);
                let own = self.access(Access { of, number });
                format!("after({own}, {})", self.access(*other))
            }
            Step::Accesses(number) => {
                let (of, number) = (at, *number);
                format!("accesses({})", self.access(Access { of, number }))
            }
            Step::Lost(of) => format!("lost({})", self.name(*of)),
            Step::Heard(what, of) => format!("hears({}, {})", what.name(), self.name(*of)),
            Step::Spent(spent) => {
                let Spent {
                    reductions, words, ..
                } = spent;
                let ended = match (spent.by_signal, spent.of) {
                    (false, _) => String::new(),
                    (true, None) => ", signal".into(),
                    (true, Some(of)) => format!(", signal, {}", self.name(of)),
                };
                let gone = match spent.gone && spent.of.is_some() {
                    true => ", gone",
                    false => "",
                };
                format!("spent({reductions}, {words}{ended}{gone})")
            }
            Step::Exit(None) => "exit".into(),
            Step::Exit(Some(Signal::End(of))) => format!("exit({})", self.name(*of)),
            Step::Exit(Some(Signal::Call(call))) => format!("exit({})", self.access(*call)),
        }
    }

    /// A message, and of whom it tells.
    fn word(&self, at: usize, message: &Message) -> String {
        let label = self.message(at, message);
        let Message::SystemMessage(told) = message else {
            return label;
        };
        let mut words = vec![label];
        if told.of.is_some() || told.gone || told.exit {
            words.push(told.of.map_or("nobody".into(), |of| self.name(of)));
        }
        words.extend(told.set.map(|set| self.set(at, set)));
        words.extend(told.exit.then(|| "exit".into()));
        words.extend(told.gone.then(|| "gone".into()));
        words.join(", ")
    }

    /// What the process at this place, or another one, has set, such as the timer `s0.4:2` or the monitor `m0.4:17`.
    fn set(&self, at: usize, set: Set) -> String {
        match set.what() {
            Setting::Timer { by, number } => self.numbered('s', by, number.into()),
            Setting::Monitor(number) => self.numbered('m', at, number.into()),
        }
    }

    /// A message that the process at this place sends or receives, such as `l0.4:2`.
    #[must_use]
    pub fn message(&self, at: usize, message: &Message) -> String {
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

    fn numbered(&self, letter: char, process: usize, number: u64) -> String {
        let mut out = String::new();
        let _ = self.reference(process).write(&mut out, letter);
        let _ = write!(out, ":{number}");
        out
    }
}
