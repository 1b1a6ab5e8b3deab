//! Reads traces in the notation of the text.

use std::str::FromStr;

use beamline_formats::name;
use beamline_formats::ring::Id;

use super::reference::{Places, Reference};
use super::step::{ROWS, Row};
use super::{PerProcess, Trace, Value};

/// A step as it is written: its row, and the words in its parentheses.
type Written = (&'static Row, Vec<String>);

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
        while parser.skip_to_next()? {
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
    fn skip_to_next(&mut self) -> Result<bool, String> {
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
        match self.take_if_there(token) {
            true => Ok(()),
            false => Err(self.error(&format!("'{token}'"))),
        }
    }

    /// Takes a token if it is there. Where an error is takes a look at all of the text before it: none is made here.
    fn take_if_there(&mut self, token: &str) -> bool {
        let is_there = self.skip_to_next().is_ok() && self.rest().starts_with(token);
        if is_there {
            self.at += token.len();
        }
        is_there
    }

    fn line(&mut self) -> Result<Line, String> {
        self.take("{")?;
        self.skip_to_next()?;
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
        if !self.take_if_there("]") {
            loop {
                steps.push(self.step()?);
                if !self.take_if_there(",") {
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
        self.skip_to_next()?;
        let begin = self.at;
        let Some(row) = Row::of(self.word()?) else {
            self.at = begin;
            let names: Vec<&str> = ROWS.iter().map(|row| row.name).collect();
            return Err(self.error(&format!("a step ({})", names.join(", "))));
        };
        let mut words = Vec::new();
        if self.rest().starts_with('(') {
            self.at += 1;
            loop {
                self.skip_to_next()?;
                words.push(match row.is_term(words.len()) {
                    true => self.value()?,
                    false => self.argument()?,
                });
                if !self.take_if_there(",") {
                    break;
                }
            }
            self.take(")")?;
        }
        if !row.may_have(words.len()) {
            self.at = begin;
            let name = row.name;
            return Err(self.error(&format!("another number of arguments of {name}")));
        }
        Ok((row, words))
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

fn build(lines: Vec<Line>) -> Result<Trace, String> {
    let mut places = Places::default();
    for line in &lines {
        let place = places.place(&line.process);
        let process = &mut places.processes[place];
        process.pid = line.pid;
        process.known_as.clone_from(&line.known_as);
    }
    let mut seen: PerProcess<bool> = PerProcess::default();
    for line in &lines {
        let place = places.place(&line.process);
        if std::mem::replace(seen.get_or_insert(place), true) {
            return Err(format!("{} has two lists of steps", line.process));
        }
        let steps = line.steps.iter().map(|step| {
            let (row, words) = step;
            row.read(&mut places, place, words)
                .ok_or_else(|| format!("{} cannot {}", line.process, written(step)))
        });
        let steps = steps.collect::<Result<Vec<_>, String>>()?;
        places.processes[place].steps = steps;
    }
    Ok(Trace {
        processes: places.processes,
    })
}

fn written((row, words): &Written) -> String {
    format!("{}({})", row.name, words.join(", "))
}
