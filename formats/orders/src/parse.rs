//! Reads traces in the notation of the text.

use std::str::FromStr;

use beamline_formats::name;
use beamline_formats::ring::Id;
use rustc_hash::FxHashMap;

use super::reference::Reference;
use super::{
    Access, Heard, Message, Origin, Process, Set, Signal, Spent, Step, SystemMessage, Trace, Value,
};

/// A step as it is written: its name, and what stands in its parentheses.
type Written = (String, Vec<String>);

/// A process as it is written.
struct Line {
    process: Reference,
    steps: Vec<Written>,
    pid: Option<u64>,
    known_as: Option<String>,
}

/// A process whose steps are each a text.
pub(super) struct Read {
    pub(super) process: String,
    pub(super) steps: Vec<String>,
    /// As [`Id`] displays it.
    pub(super) pid: Option<String>,
    pub(super) known_as: Option<String>,
}

/// The pid that a text displays.
fn pid_of(text: &str) -> Option<u64> {
    match text.parse() {
        Ok(Id::Process(pid)) => Some(pid),
        _ => None,
    }
}

impl FromStr for Trace {
    type Err = String;

    /// Reads what [`Trace`] displays, also over several lines, with `%` before comments.
    fn from_str(text: &str) -> Result<Trace, String> {
        let mut parser = Parser::new(text);
        let mut lines = Vec::new();
        while parser.skips_to_next()? {
            lines.push(parser.line()?);
        }
        build(lines)
    }
}

impl Trace {
    /// The trace of these processes.
    pub(super) fn of_steps(processes: impl Iterator<Item = Read>) -> Result<Trace, String> {
        let lines = processes.map(|read| {
            let Read {
                process,
                steps,
                pid,
                known_as,
            } = read;
            let pid = pid
                .map(|pid| pid_of(&pid).ok_or_else(|| format!("'{pid}' is no pid")))
                .transpose()?;
            let reference = process.strip_prefix('p').and_then(|name| name.parse().ok());
            let reference =
                reference.ok_or_else(|| format!("'{process}' is no process such as p0.4"))?;
            let steps = steps.iter().map(|step| {
                let mut parser = Parser::new(step);
                let written = parser.step();
                let is_whole = parser.rest().is_empty();
                let written = written.ok().filter(|_| is_whole);
                written.ok_or_else(|| format!("'{step}' is no step of {process}"))
            });
            Ok(Line {
                process: reference,
                steps: steps.collect::<Result<_, String>>()?,
                pid,
                known_as,
            })
        });
        build(lines.collect::<Result<_, String>>()?)
    }
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Parser<'t> {
    fn new(text: &'t str) -> Parser<'t> {
        Parser { text, at: 0 }
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    /// An error, with the line and the column where it is.
    fn error(&self, expected: &str) -> String {
        let before = &self.text[..self.at];
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
        format!("line {line}, column {column}: {expected} is expected")
    }

    fn skip_spaces(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    /// Goes over spaces and comments; whether there is more.
    fn skips_to_next(&mut self) -> Result<bool, String> {
        loop {
            self.skip_spaces();
            match self.comment() {
                Some(_) => {}
                None => return Ok(!self.rest().is_empty()),
            }
        }
    }

    fn comment(&mut self) -> Option<&'t str> {
        let comment = self.rest().strip_prefix('%')?;
        let end = comment.find('\n').unwrap_or(comment.len());
        self.at += 1 + end;
        Some(comment[..end].trim())
    }

    fn take(&mut self, token: &str) -> Result<(), String> {
        match self.takes(token) {
            true => Ok(()),
            false => Err(self.error(&format!("'{token}'"))),
        }
    }

    /// Takes a token if it is there. Where an error is takes a look at all of the text before it: none is made here.
    fn takes(&mut self, token: &str) -> bool {
        let is_there = self.skips_to_next().is_ok() && self.rest().starts_with(token);
        if is_there {
            self.at += token.len();
        }
        is_there
    }

    fn line(&mut self) -> Result<Line, String> {
        self.take("{")?;
        self.skips_to_next()?;
        let begin = self.at;
        let name = self.word()?;
        let process = name.strip_prefix('p').and_then(|name| name.parse().ok());
        let Some(process) = process else {
            self.at = begin;
            return Err(self.error("a process such as p0.4"));
        };
        self.take(",")?;
        self.take("[")?;
        let mut steps = Vec::new();
        if !self.takes("]") {
            loop {
                steps.push(self.step()?);
                if !self.takes(",") {
                    break;
                }
            }
            self.take("]")?;
        }
        self.take("}")?;
        let rest = self.rest();
        let spaces = rest.len() - rest.trim_start_matches(' ').len();
        self.at += spaces;
        let (pid, known_as) = self.comment().map_or((None, None), comment_parts);
        Ok(Line {
            process,
            steps,
            pid,
            known_as,
        })
    }

    fn step(&mut self) -> Result<Written, String> {
        self.skips_to_next()?;
        let begin = self.at;
        let step = self.word()?.to_owned();
        if !STEPS.iter().any(|(name, _)| *name == step) {
            self.at = begin;
            let names = STEPS.map(|(name, _)| name).join(", ");
            return Err(self.error(&format!("a step ({names})")));
        }
        let mut arguments = Vec::new();
        if self.rest().starts_with('(') {
            self.at += 1;
            loop {
                self.skips_to_next()?;
                let is_value = VALUES.contains(&step.as_str()) && arguments.len() == 1;
                arguments.push(match is_value {
                    true => self.value()?,
                    false => self.argument()?,
                });
                if !self.takes(",") {
                    break;
                }
            }
            self.take(")")?;
        }
        let (_, counts) = STEPS
            .iter()
            .find(|(name, _)| *name == step)
            .unwrap_or(&STEPS[0]);
        if !counts.contains(&arguments.len()) {
            self.at = begin;
            return Err(self.error(&format!("another number of arguments of {step}")));
        }
        Ok((step, arguments))
    }

    /// What stands in the parentheses of a step: a reference, a number or an atom.
    fn argument(&mut self) -> Result<String, String> {
        let Some(quoted) = self.rest().strip_prefix('\'') else {
            return self.word().map(str::to_owned);
        };
        let Some((text, rest)) = name::unquote(quoted, '\'') else {
            return Err(self.error("the end of a quoted atom"));
        };
        self.at = self.text.len() - rest.len();
        Ok(text)
    }

    /// The text of a value.
    fn value(&mut self) -> Result<String, String> {
        let text = self.rest();
        let Some((_, rest)) = Value::read(text) else {
            return Err(self.error("a term"));
        };
        let length = text.len() - rest.len();
        self.at += length;
        Ok(text[..length].to_owned())
    }

    fn word(&mut self) -> Result<&'t str, String> {
        let rest = self.rest();
        let is_part = |c: char| c.is_alphanumeric() || "_@.:^/".contains(c);
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        if end == 0 {
            return Err(self.error("a name"));
        }
        self.at += end;
        Ok(&rest[..end])
    }
}

/// The pid that stands in the comment of a process, and what reports call it.
fn comment_parts(comment: &str) -> (Option<u64>, Option<String>) {
    let (first, rest) = comment.split_once(' ').unwrap_or((comment, ""));
    let (pid, known_as) = match pid_of(first) {
        None => (None, comment),
        pid => (pid, rest),
    };
    (pid, (!known_as.is_empty()).then(|| known_as.to_owned()))
}

/// The steps, with the numbers of arguments that they may have.
const STEPS: [(&str, std::ops::RangeInclusive<usize>); 16] = [
    ("spawn", 1..=1),
    ("send", 1..=1),
    ("deliver", 1..=4),
    ("receive", 1..=4),
    ("timeout", 0..=0),
    ("miss", 1..=1),
    ("load", 2..=2),
    ("answer", 2..=2),
    ("content", 2..=2),
    ("after", 2..=2),
    ("accesses", 1..=1),
    ("lost", 1..=1),
    ("hears", 2..=2),
    ("collect", 2..=2),
    ("spent", 2..=5),
    ("exit", 0..=1),
];

/// Those whose second argument is a value.
const VALUES: [&str; 2] = ["answer", "content"];

/// The processes of a trace by their references.
struct Builder {
    places: FxHashMap<Reference, usize>,
    processes: Vec<Process>,
}

fn build(lines: Vec<Line>) -> Result<Trace, String> {
    let mut builder = Builder {
        places: FxHashMap::default(),
        processes: Vec::new(),
    };
    for line in &lines {
        let place = builder.place(&line.process);
        let process = &mut builder.processes[place];
        process.pid = line.pid;
        process.known_as.clone_from(&line.known_as);
    }
    let mut seen = vec![false; lines.len()];
    for line in &lines {
        let place = builder.place(&line.process);
        if seen.get(place).copied() == Some(true) {
            return Err(format!("{} has two lists of steps", line.process));
        }
        seen.resize(seen.len().max(place + 1), false);
        seen[place] = true;
        let steps = line.steps.iter().map(|step| {
            builder
                .step(place, step)
                .ok_or_else(|| format!("{} cannot {}", line.process, written(step)))
        });
        let steps = steps.collect::<Result<Vec<_>, String>>()?;
        builder.processes[place].steps = steps;
    }
    Ok(Trace {
        processes: builder.processes,
    })
}

/// Is it the name of a function, such as `erlang:now/0`?
fn is_function(text: &str) -> bool {
    let parts = text.rsplit_once('/');
    parts.is_some_and(|(name, arity)| name.contains(':') && arity.parse::<u8>().is_ok())
}

fn written((step, arguments): &Written) -> String {
    format!("{step}({})", arguments.join(", "))
}

impl Builder {
    /// The place of a process; its parents get one, too, before it.
    fn place(&mut self, reference: &Reference) -> usize {
        let mut missing = Vec::new();
        let mut next = Some(reference.clone());
        while let Some(reference) = next.take().filter(|r| !self.places.contains_key(r)) {
            next = reference.parent().map(|(parent, _)| parent);
            missing.push(reference);
        }
        for reference in missing.into_iter().rev() {
            let origin = match reference.parent() {
                None => Origin::Root(reference.root),
                Some((parent, number)) => Origin::Child {
                    of: self.places[&parent],
                    number,
                },
            };
            self.processes.push(Process {
                origin,
                pid: None,
                known_as: None,
                steps: Vec::new(),
            });
            self.places.insert(reference, self.processes.len() - 1);
        }
        self.places[reference]
    }

    fn step(&mut self, me: usize, (step, arguments): &Written) -> Option<Step> {
        let first = arguments.first().map_or("", String::as_str);
        Some(match step.as_str() {
            "spawn" => Step::Spawn(self.process(first)?),
            "send" => match self.message(me, arguments)? {
                Message::Sent { from, number } if from == me => Step::Send(number),
                _ => return None,
            },
            "deliver" => Step::Deliver(self.message(me, arguments)?),
            "receive" => Step::Receive(self.message(me, arguments)?),
            "timeout" => Step::Timeout,
            "miss" => Step::Miss(first.to_owned()),
            "load" => Step::Load {
                module: first.to_owned(),
                misses: arguments[1].parse().ok()?,
            },
            "answer" => Step::Answer {
                function: Some(first).filter(|text| is_function(text))?.into(),
                value: arguments[1].parse().ok()?,
            },
            "content" => match self.message(me, &arguments[..1])? {
                Message::SystemMessage(SystemMessage { number, .. }) => Step::Content {
                    number,
                    value: arguments[1].parse().ok()?,
                },
                Message::Sent { .. } => return None,
            },
            "after" => Step::After {
                access: self.own_access(me, first)?,
                other: self.access(&arguments[1])?,
            },
            "accesses" => Step::Accesses(self.own_access(me, first)?),
            "lost" => Step::Lost(self.process(first)?),
            "hears" => Step::Heard(Heard::of_name(first)?, self.process(&arguments[1])?),
            "collect" => Step::Collect {
                reductions: first.parse().ok()?,
                major: match arguments[1].as_str() {
                    "major" => true,
                    "minor" => false,
                    _ => return None,
                },
            },
            "spent" => Step::Spent(Spent {
                reductions: first.parse().ok()?,
                words: arguments[1].parse().ok()?,
                by_signal: match arguments.get(2).map(String::as_str) {
                    None => false,
                    Some("signal") => true,
                    Some(_) => return None,
                },
                of: match arguments.get(3) {
                    None => None,
                    Some(of) => Some(self.process(of)?),
                },
                gone: match arguments.get(4).map(String::as_str) {
                    None => false,
                    Some("gone") => true,
                    Some(_) => return None,
                },
            }),
            "exit" => Step::Exit(match &arguments[..] {
                [] => None,
                [by] if by.starts_with('a') => Some(Signal::Call(self.access(by)?)),
                [of, ..] => Some(Signal::End(self.process(of)?)),
            }),
            _ => return None,
        })
    }

    fn process(&mut self, text: &str) -> Option<usize> {
        let reference = text.strip_prefix('p')?.parse().ok()?;
        Some(self.place(&reference))
    }

    /// A message, and of whom it tells where no process has sent it.
    fn message(&mut self, me: usize, arguments: &[String]) -> Option<Message> {
        let (text, rest) = arguments.split_first()?;
        let (from, number) = self.numbered(text)?;
        let number = number.try_into().ok()?;
        match text.as_bytes()[0] {
            b'l' if rest.is_empty() => Some(Message::Sent { from, number }),
            b't' if from == me => {
                let told = self.word(me, number, rest)?;
                Some(Message::SystemMessage(told))
            }
            _ => None,
        }
    }

    fn own_access(&mut self, me: usize, text: &str) -> Option<u64> {
        let access = self.access(text)?;
        (access.of == me).then_some(access.number)
    }

    fn access(&mut self, text: &str) -> Option<Access> {
        text.strip_prefix('a')?;
        let (of, number) = self.numbered(text)?;
        Some(Access { of, number })
    }

    /// The process and the number of what is written as a letter, a process, a colon and a number from 1.
    fn numbered(&mut self, text: &str) -> Option<(usize, u64)> {
        let (process, number) = text.split_at_checked(1)?.1.rsplit_once(':')?;
        let reference: Reference = process.parse().ok()?;
        let number = number.parse().ok().filter(|number| *number > 0)?;
        Some((self.place(&reference), number))
    }

    fn word(&mut self, me: usize, number: u32, arguments: &[String]) -> Option<SystemMessage> {
        let mut told = SystemMessage::of_nobody(number);
        let mut words = arguments.iter().peekable();
        if let Some(of) = words.next_if(|word| *word == "nobody" || word.starts_with('p')) {
            told.of = match of.as_str() {
                "nobody" => None,
                of => Some(self.process(of)?),
            };
        }
        if let Some(set) = words.next_if(|word| word.starts_with(['s', 'm'])) {
            told.set = Some(self.set(me, set)?);
        }
        told.exit = words.next_if(|word| *word == "exit").is_some();
        told.gone = words.next_if(|word| *word == "gone").is_some();
        words.next().is_none().then_some(told)
    }

    /// What a process has set: a timer, or the process `me` a monitor.
    fn set(&mut self, me: usize, text: &str) -> Option<Set> {
        let (by, number) = self.numbered(text)?;
        let number = number.try_into().ok()?;
        match text.starts_with('s') {
            true => Set::timer(by, number),
            false => Set::monitor(number).filter(|_| by == me),
        }
    }
}
