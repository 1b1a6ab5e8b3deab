//! The data of the page: columns of numbers, with an index for each text. Times that are in order are stored as
//! differences.

use std::collections::HashMap;

use serde::Serialize;

use super::follow::{Life, LongCollection, LongTurn, Mark, Message};
use super::sinks::Sinks;
use crate::flamegraph;
use crate::histogram::{Histograms, Of, Row};
use crate::name;
use crate::profile::{Node, Profile};
use crate::ring::{End, Error, Group, Id, NameId, Names, Recording, Summary};

/// Rows of each table of the report.
const ROWS: usize = 15;

/// Rows of each table of percentiles.
const HISTOGRAM_ROWS: usize = 40;

/// Everything that a page shows.
#[derive(Serialize)]
pub struct Page {
    file: String,
    summary: Summary,
    /// What is missing, a sentence each.
    losses: Vec<String>,
    beamline: String,
    command: String,
    unix_ns: u64,
    /// The report's times are from here on.
    since_ns: u64,
    end_ns: u64,
    texts: Vec<String>,
    processes: Processes,
    schedulers: Vec<Scheduler>,
    flame: Flame,
    turns: Turns,
    collections: Collections,
    marks: Marks,
    messages: Messages,
    histograms: Vec<Histogram>,
}

/// A scheduler, and how long it ran processes in each part of the time.
#[derive(Serialize)]
struct Scheduler {
    name: String,
    use_ns: Vec<u64>,
}

/// Processes, and ports.
#[derive(Default, Serialize)]
struct Processes {
    id: Vec<String>,
    name: Vec<u32>,
    parent: Vec<String>,
    born_ns: Vec<Option<u64>>,
    ended_ns: Vec<Option<u64>>,
    reason: Vec<u32>,
    turns: Vec<u64>,
    busy_ns: Vec<u64>,
    collections: Vec<u64>,
    gc_ns: Vec<u64>,
    sent: Vec<u64>,
    received: Vec<u64>,
}

/// Call paths: those that cost most in whatever way.
#[derive(Default, Serialize)]
struct Flame {
    /// Why there are none; or empty.
    missing: String,
    left: u64,
    function: Vec<u32>,
    color: Vec<String>,
    process: Vec<u32>,
    /// Index of the caller, and 1; 0 is none.
    parent: Vec<u32>,
    /// Of which function it is.
    of: Vec<u32>,
    widths: Vec<Width>,
}

/// A cost that can be the width of a frame.
#[derive(Serialize)]
struct Width {
    name: &'static str,
    is_time: bool,
    own: Vec<u64>,
    total: Vec<u64>,
}

#[derive(Default, Serialize)]
struct Turns {
    missing: String,
    left: u64,
    left_ns: u64,
    start: Vec<u64>,
    ns: Vec<u64>,
    process: Vec<u32>,
    scheduler: Vec<usize>,
    from: Vec<u32>,
    to: Vec<u32>,
}

#[derive(Default, Serialize)]
struct Collections {
    missing: String,
    left: u64,
    left_ns: u64,
    start: Vec<u64>,
    ns: Vec<u64>,
    process: Vec<u32>,
    major: Vec<u8>,
    reclaimed: Vec<u64>,
    used: Vec<u64>,
}

#[derive(Default, Serialize)]
struct Marks {
    left: u64,
    at: Vec<u64>,
    process: Vec<u32>,
    kind: Vec<u32>,
    group: Vec<&'static str>,
    text: Vec<u32>,
}

/// `start` is when it was sent, or else when it came.
#[derive(Default, Serialize)]
struct Messages {
    missing: String,
    left: u64,
    start: Vec<u64>,
    /// Time until it was in the queue; -1: it was not seen to come; -2: it was not seen to be sent; -3: there is
    /// nobody whom it could come to; -4: it is no message, but was printed.
    ns: Vec<i64>,
    /// Index of the process, and 1; 0 is none.
    from: Vec<u32>,
    to: Vec<u32>,
    /// Where it is no process.
    to_name: Vec<u32>,
    text: Vec<u32>,
    /// Those without a token are not there.
    is_traced_only: bool,
    /// Of messages with a token the text of its label, and 1; 0 is none. Empty where no message has one, as is `taken`.
    label: Vec<u32>,
    /// Time until it was taken from the queue, of those with a token; -1: it was not seen to be.
    taken: Vec<i64>,
}

#[derive(Serialize)]
struct Histogram {
    name: &'static str,
    title: &'static str,
    is_time: bool,
    /// Why there is none; or empty.
    missing: String,
    rows: Vec<Row>,
    left: usize,
    svg: String,
}

/// Texts and processes by number.
struct Tables<'r> {
    names: &'r Names,
    texts: Vec<String>,
    text_of: HashMap<String, u32>,
    name_of: HashMap<NameId, u32>,
    processes: Vec<Id>,
    process_of: HashMap<Id, u32>,
}

/// An index: there are never more things of a kind than it can count.
fn index(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

impl<'r> Tables<'r> {
    fn new(names: &'r Names) -> Tables<'r> {
        Tables {
            names,
            texts: Vec::new(),
            text_of: HashMap::new(),
            name_of: HashMap::new(),
            processes: Vec::new(),
            process_of: HashMap::new(),
        }
    }

    fn text(&mut self, text: &str) -> u32 {
        if let Some(known) = self.text_of.get(text) {
            return *known;
        }
        let number = index(self.texts.len());
        self.texts.push(text.to_owned());
        self.text_of.insert(text.to_owned(), number);
        number
    }

    fn name(&mut self, name: NameId) -> u32 {
        if let Some(known) = self.name_of.get(&name) {
            return *known;
        }
        let text = match name {
            NameId::NONE => "?".to_owned(),
            name => self.names.text(name),
        };
        let number = self.text(&text);
        self.name_of.insert(name, number);
        number
    }

    fn process(&mut self, id: Id) -> u32 {
        let new = index(self.processes.len());
        let number = *self.process_of.entry(id).or_insert(new);
        if number == new {
            self.processes.push(id);
        }
        number
    }

    /// Of a process its number and 1; of anything else 0.
    fn process_or_none(&mut self, id: Id) -> u32 {
        match id {
            Id::Process(_) | Id::Port(_) => self.process(id) + 1,
            Id::None | Id::Name(_) => 0,
        }
    }
}

/// Each number as the difference to the one before it.
fn differences(numbers: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut last = 0;
    let difference = |number: u64| number.saturating_sub(std::mem::replace(&mut last, number));
    numbers.map(difference).collect()
}

/// What was not recorded of that which `what` is made of, and how to get it; empty where all was.
fn missing(recording: &Recording, what: &str, needs: &[Group]) -> String {
    let Some((missing, events)) = recording.lacking(needs) else {
        return String::new();
    };
    let missing = missing.join(" and no ");
    format!(
        "No {what} can be shown: there is no {missing} in the recording. Record it with --events {events}."
    )
}

impl Page {
    /// Takes out of a recording what its page shows, at most `most` of each kind of thing. `file` is how the
    /// recording is called.
    ///
    /// # Errors
    /// When a block is damaged.
    pub fn read(recording: &Recording, file: &str, most: usize) -> Result<Page, Error> {
        let Sinks {
            summary,
            profile,
            follow,
            histograms: measured,
        } = Sinks::of(recording, ROWS, most)?;
        // They take much memory until they are drawn.
        let histograms = histograms(recording, measured);
        let span = (summary.losses.since_ns, summary.end_ns);
        let names = recording.names();
        let mut tables = Tables::new(names);
        let turns = turns(
            recording,
            &follow.turns.sorted(|turn| turn.start_ns),
            &mut tables,
        );
        let collections = follow.collections.sorted(|collection| collection.start_ns);
        let description = recording.description();
        Ok(Page {
            file: file.to_owned(),
            losses: summary
                .losses
                .to_string()
                .lines()
                .map(str::to_owned)
                .collect(),
            beamline: description.beamline.clone(),
            command: description.command.join(" "),
            unix_ns: recording.unix_ns(),
            since_ns: span.0,
            end_ns: span.1,
            schedulers: schedulers(recording, &follow.use_ns),
            flame: flame(recording, &profile, most, &mut tables),
            turns: Turns {
                left: follow.turns.left,
                left_ns: follow.turns.left_ns,
                ..turns
            },
            collections: Collections {
                missing: missing(recording, "collections", &[Group::Gc]),
                left: follow.collections.left,
                left_ns: follow.collections.left_ns,
                ..self::collections(&collections, &mut tables)
            },
            marks: Marks {
                left: follow.marks.left,
                ..marks(&follow.marks.all, &mut tables)
            },
            messages: Messages {
                missing: match recording.has(Group::Seq) {
                    true => String::new(),
                    false => missing(recording, "messages", &[Group::Messages]),
                },
                is_traced_only: !recording.has(Group::Messages),
                left: follow.messages.left,
                ..messages(&follow.messages.all, &mut tables)
            },
            histograms,
            // After all that names processes, and before the texts.
            processes: processes(&follow.lives, &mut tables),
            texts: tables.texts,
            summary,
        })
    }

    pub(super) fn title(&self) -> String {
        format!("{} - Beamline", self.file)
    }
}

fn schedulers(recording: &Recording, use_ns: &[Vec<u64>]) -> Vec<Scheduler> {
    use_ns
        .iter()
        .enumerate()
        .map(|(segment, use_ns)| Scheduler {
            name: match recording.scheduler(segment) {
                Some(number) => format!("Scheduler {number}"),
                None => "Other threads".to_owned(),
            },
            use_ns: use_ns.clone(),
        })
        .collect()
}

fn turns(recording: &Recording, turns: &[&LongTurn], tables: &mut Tables<'_>) -> Turns {
    let mut out = Turns {
        missing: missing(recording, "turns", &[Group::Scheduling]),
        start: differences(turns.iter().map(|turn| turn.start_ns)),
        ..Turns::default()
    };
    for turn in turns {
        out.ns.push(turn.ns);
        out.process.push(tables.process(turn.who));
        out.scheduler.push(turn.segment);
        out.from.push(tables.name(turn.from));
        out.to.push(match turn.to {
            End::In(name) => tables.name(name),
            End::Exited => tables.text("its end"),
            End::Open => tables.text("the end of the recording"),
        });
    }
    out
}

fn collections(collections: &[&LongCollection], tables: &mut Tables<'_>) -> Collections {
    let mut out = Collections {
        start: differences(collections.iter().map(|collection| collection.start_ns)),
        ..Collections::default()
    };
    for collection in collections {
        out.ns.push(collection.ns);
        out.process.push(tables.process(collection.who));
        out.major.push(u8::from(collection.is_major));
        out.reclaimed.push(collection.reclaimed);
        out.used.push(collection.used);
    }
    out
}

fn marks<'m>(marks: impl IntoIterator<Item = &'m Mark>, tables: &mut Tables<'_>) -> Marks {
    let marks: Vec<&Mark> = marks.into_iter().collect();
    let mut out = Marks {
        at: differences(marks.iter().map(|mark| mark.at_ns)),
        ..Marks::default()
    };
    for mark in marks {
        out.process.push(tables.process(mark.who));
        out.kind.push(tables.text(mark.kind.name()));
        out.group.push(mark.kind.group().name());
        out.text.push(tables.text(&mark.text));
    }
    out
}

/// Nanoseconds from one time to another.
fn span(from: u64, to: u64) -> i64 {
    i64::try_from(to.saturating_sub(from)).unwrap_or(i64::MAX)
}

fn messages<'m>(all: impl IntoIterator<Item = &'m Message>, tables: &mut Tables<'_>) -> Messages {
    // They were added when they were heard of first: in order of time.
    let all: Vec<&Message> = all.into_iter().collect();
    let mut out = Messages {
        start: differences(all.iter().map(|message| message.start_ns())),
        ..Messages::default()
    };
    let has_tokens = all.iter().any(|message| message.label.is_some());
    for message in all {
        out.ns.push(match (message.sent_ns, message.received_ns) {
            _ if message.is_print => -4,
            (Some(sent), Some(received)) => span(sent, received),
            (Some(_), None) if message.is_lost => -3,
            (Some(_), None) => -1,
            (None, _) => -2,
        });
        out.from.push(tables.process_or_none(message.from));
        out.to.push(tables.process_or_none(message.to));
        out.to_name.push(match message.to {
            Id::Name(name) => tables.name(name),
            _ => tables.text(""),
        });
        out.text.push(tables.text(&message.text));
        if has_tokens {
            let label = message.label.map_or(0, |label| tables.name(label) + 1);
            out.label.push(label);
            let taken = message.taken_ns;
            out.taken
                .push(taken.map_or(-1, |taken| span(message.start_ns(), taken)));
        }
    }
    out
}

fn processes(lives: &HashMap<Id, Life>, tables: &mut Tables<'_>) -> Processes {
    let mut out = Processes::default();
    let unknown = Life::default();
    for id in tables.processes.clone() {
        let life = lives.get(&id).unwrap_or(&unknown);
        let parent = tables
            .names
            .process(id)
            .map_or(Id::None, |process| process.parent);
        out.id.push(id.to_string());
        out.name.push(tables.text(&tables.names.process_text(id)));
        out.parent.push(match parent {
            Id::None => String::new(),
            parent => parent.to_string(),
        });
        out.born_ns.push(life.born_ns);
        out.ended_ns.push(life.ended_ns);
        out.reason.push(tables.text(&life.reason));
        out.turns.push(life.turns);
        out.busy_ns.push(life.busy_ns);
        out.collections.push(life.collections);
        out.gc_ns.push(life.gc_ns);
        out.sent.push(life.sent);
        out.received.push(life.received);
    }
    out
}

type CostOf = fn(&Node) -> u64;

/// Names, whether they are times, and costs of the widths that there may be.
const WIDTHS: [(&str, bool, CostOf); 5] = [
    ("time", true, |node| node.cost.time_ns),
    ("calls", false, |node| node.cost.calls),
    ("words", false, |node| node.cost.words),
    ("reductions", false, |node| node.reductions),
    ("wait", true, |node| node.wait_ns),
];

/// Of each node its cost and that of all below it.
fn totals(nodes: &[Node], cost: CostOf) -> Vec<u64> {
    let mut totals: Vec<u64> = nodes.iter().map(cost).collect();
    // Children come after their parents.
    for at in (0..nodes.len()).rev() {
        if let Some(parent) = nodes[at].parent {
            totals[parent as usize] = totals[parent as usize].saturating_add(totals[at]);
        }
    }
    totals
}

/// The nodes that are shown, in their order: those with the largest share in anything.
fn shown(nodes: &[Node], totals: &[Vec<u64>], most: usize) -> Vec<usize> {
    let mut shown: Vec<usize> = (0..nodes.len()).collect();
    if nodes.len() <= most {
        return shown;
    }
    let mut share = vec![0.0_f64; nodes.len()];
    for totals in totals {
        let roots = nodes.iter().zip(totals);
        let all = roots
            .filter(|(node, _)| node.parent.is_none())
            .fold(0_u64, |sum, (_, total)| sum.saturating_add(*total));
        for (share, total) in share.iter_mut().zip(totals) {
            #[expect(clippy::cast_precision_loss, reason = "of two shares the larger")]
            let of = *total as f64 / all.max(1) as f64;
            *share = share.max(of);
        }
    }
    // A caller's share is never less than that of what it calls, and it comes first: it is there too.
    shown.sort_by(|a, b| share[*b].total_cmp(&share[*a]).then_with(|| a.cmp(b)));
    shown.truncate(most);
    shown.sort_unstable();
    shown
}

fn flame(recording: &Recording, profile: &Profile, most: usize, tables: &mut Tables<'_>) -> Flame {
    let missing = missing(recording, "flame graph", &[Group::Calls, Group::Returns]);
    if !missing.is_empty() {
        return Flame {
            missing,
            ..Flame::default()
        };
    }
    let nodes = &profile.nodes;
    let totals = WIDTHS.map(|(_, _, cost)| totals(nodes, cost));
    let shown = shown(nodes, &totals, most);
    let mut numbers = vec![0; nodes.len()];
    for (number, at) in (1..).zip(&shown) {
        numbers[*at] = number;
    }
    let processes: Vec<u32> = profile
        .processes
        .iter()
        .map(|process| tables.process(process.pid.parse().unwrap_or_default()))
        .collect();
    let mut out = Flame {
        left: (nodes.len() - shown.len()) as u64,
        ..Flame::default()
    };
    for function in &profile.functions {
        let text = name::mfa(&function.module, &function.name, function.arity);
        out.function.push(tables.text(&text));
        out.color
            .push(flamegraph::css_color(&function.module, &function.name));
    }
    for at in &shown {
        let node = &nodes[*at];
        out.process.push(processes[node.process as usize]);
        out.parent
            .push(node.parent.map_or(0, |parent| numbers[parent as usize]));
        out.of.push(node.function);
    }
    for ((name, is_time, cost), totals) in WIDTHS.into_iter().zip(totals) {
        if totals.iter().any(|total| *total > 0) {
            out.widths.push(Width {
                name,
                is_time,
                own: shown.iter().map(|at| cost(&nodes[*at])).collect(),
                total: shown.iter().map(|at| totals[*at]).collect(),
            });
        }
    }
    out
}

/// What was measured, of each of [`Of::ALL`] for which the recording has what it needs.
fn histograms(
    recording: &Recording,
    mut measured: Vec<(Of, Result<Histograms, String>)>,
) -> Vec<Histogram> {
    let of = |of: Of| {
        let what = if of == Of::Words { "words" } else { "times" };
        let empty = Histogram {
            name: of.name(),
            title: of.title(),
            is_time: of.unit() == "ns",
            missing: missing(recording, what, of.needs()),
            rows: Vec::new(),
            left: 0,
            svg: String::new(),
        };
        let Some(at) = measured.iter().position(|(other, _)| *other == of) else {
            return empty;
        };
        let (_, measured) = measured.swap_remove(at);
        let drawn = measured.and_then(|measured| {
            let mut svg = Vec::new();
            measured.draw("", &mut svg).map_err(|e| e.to_string())?;
            Ok((measured.rows(), String::from_utf8_lossy(&svg).into_owned()))
        });
        match drawn {
            Ok((mut rows, svg)) => {
                let left = rows.len().saturating_sub(HISTOGRAM_ROWS);
                rows.truncate(HISTOGRAM_ROWS);
                Histogram {
                    rows,
                    left,
                    svg,
                    ..empty
                }
            }
            Err(missing) => Histogram { missing, ..empty },
        }
    };
    Of::ALL.into_iter().map(of).collect()
}
