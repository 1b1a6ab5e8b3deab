//! The data of the page: columns of numbers, with an index for each text. Times that are in order are stored as
//! differences.

use std::collections::HashMap;

use beamline_formats::ring::{Error, Group, Id, Recording};
use serde::Serialize;

use super::clock::Sizes;
use super::flame::{self, Flame};
use super::follow::{
    Life, LongCall, LongCollection, LongDirty, LongSlice, LongWait, Longest, Mark, Message,
};
use super::races::{Found, RacesOnPage};
use super::samples::Samples;
use super::sinks::{Measured, Sinks};
use super::tables::{Tables, missing};
use crate::events::{End, Summary};
use crate::histogram::{Of, Row};

/// Rows of each table of the report.
const ROWS: usize = 15;

/// Rows of each table of percentiles.
const HISTOGRAM_ROWS: usize = 40;

/// What a page says first.
#[derive(Clone, Debug, Serialize)]
pub struct Notice {
    /// What is shown.
    pub text: String,
    /// What the page is of, in the place of the recording program.
    pub about: String,
    /// The part that is open first.
    pub tab: &'static str,
}

/// Everything that a page shows.
#[derive(Serialize)]
pub struct Page {
    file: String,
    notice: Option<Notice>,
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
    /// How long a part of the time is, of which each has its own costs and sizes.
    part_ns: u64,
    /// Of a recording of samples: it has no calls, and nothing that is made of them.
    sampled: Option<Samples>,
    flame: Flame,
    calls: Calls,
    slices: Slices,
    dirty: Dirty,
    collections: Collections,
    waits: Waits,
    marks: Marks,
    messages: Messages,
    races: RacesOnPage,
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
    slices: Vec<u64>,
    busy_ns: Vec<u64>,
    collections: Vec<u64>,
    gc_ns: Vec<u64>,
    sent: Vec<u64>,
    received: Vec<u64>,
}

/// The longest calls. Time is until the end of the recording, where a call did not end before.
#[derive(Default, Serialize)]
struct Calls {
    missing: String,
    left: u64,
    left_ns: u64,
    start: Vec<u64>,
    ns: Vec<u64>,
    own: Vec<u64>,
    /// Empty where words were not recorded.
    words: Vec<u64>,
    process: Vec<u32>,
    /// The text of its name.
    function: Vec<u32>,
}

#[derive(Default, Serialize)]
struct Slices {
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

/// Calls on dirty schedulers: when they were queued, how long they took with their waiting, and how long they waited.
#[derive(Default, Serialize)]
struct Dirty {
    left: u64,
    left_ns: u64,
    start: Vec<u64>,
    ns: Vec<u64>,
    wait: Vec<u64>,
    process: Vec<u32>,
    function: Vec<u32>,
    /// Which scheduler.
    scheduler: Vec<u32>,
}

/// Waits of processes for sockets.
#[derive(Default, Serialize)]
struct Waits {
    missing: String,
    /// Sockets that the table of them has not.
    sockets_left: usize,
    left: u64,
    left_ns: u64,
    start: Vec<u64>,
    ns: Vec<u64>,
    process: Vec<u32>,
    /// What for, as it follows *waits*.
    what: Vec<u32>,
    socket: Vec<u32>,
    /// Why it was in vain; or empty.
    outcome: Vec<u32>,
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
    about: &'static str,
    is_time: bool,
    /// Why there is none; or empty.
    missing: String,
    rows: Vec<Row>,
    left: usize,
    /// Of all rows, in parts of the time.
    sizes: Option<Sizes>,
}

/// Each number as the difference to the one before it.
fn differences(numbers: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut last = 0;
    let difference = |number: u64| number.saturating_sub(std::mem::replace(&mut last, number));
    numbers.map(difference).collect()
}

impl Page {
    /// Takes out of a recording what its page shows, at most `most` of each kind of thing. `file` is how the
    /// recording is called.
    ///
    /// # Errors
    /// When a block is damaged.
    pub fn read(recording: &Recording, file: &str, most: usize) -> Result<Page, Error> {
        let races = Found::of(recording);
        let Sinks {
            clock,
            summary,
            sockets_left,
            profile,
            in_parts,
            calls,
            follow,
            seen,
            histograms: measured,
        } = Sinks::of(recording, ROWS, most, races.comings())?;
        // They take much memory until they are drawn.
        let histograms = histograms(recording, measured);
        let span = (summary.losses.since_ns, summary.end_ns);
        let names = recording.names();
        let mut tables = Tables::new(names);
        let slices = slices(
            recording,
            &follow.slices.sorted(|slice| slice.start_ns),
            &mut tables,
        );
        let description = recording.description();
        Ok(Page {
            file: file.to_owned(),
            notice: None,
            losses: lines(&summary.losses.to_string()),
            beamline: description.beamline.clone(),
            command: description.title(),
            unix_ns: recording.unix_ns(),
            since_ns: span.0,
            end_ns: span.1,
            schedulers: schedulers(recording, &follow.use_ns),
            part_ns: clock.part_ns(),
            sampled: seen
                .zip(recording.sampling())
                .map(|(seen, sampling)| seen.on_page(sampling)),
            flame: Flame::of(recording, &profile, most, in_parts, &mut tables),
            calls: self::calls(recording, &calls, &mut tables),
            slices: Slices {
                left: follow.slices.left,
                left_ns: follow.slices.left_ns,
                ..slices
            },
            dirty: dirty(&follow.dirty, &mut tables),
            collections: collections(recording, &follow.collections, &mut tables),
            waits: Waits {
                sockets_left,
                ..waits(recording, &follow.waits, &mut tables)
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
            races: races.on_page(|coming| follow.place_of(coming), &mut tables),
            histograms,
            // After all that names processes, and before the texts.
            processes: processes(&follow.lives, &mut tables),
            texts: tables.texts,
            summary,
        })
    }

    /// This page, with what it says first.
    #[must_use]
    pub fn with_notice(self, notice: Notice) -> Page {
        let notice = Some(notice);
        Page { notice, ..self }
    }

    pub(super) fn title(&self) -> String {
        format!("{} - Beamline", self.file)
    }
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
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

fn slices(recording: &Recording, slices: &[&LongSlice], tables: &mut Tables<'_>) -> Slices {
    let mut out = Slices {
        missing: missing(recording, "time slices", &[Group::Scheduling]),
        start: differences(slices.iter().map(|slice| slice.start_ns)),
        ..Slices::default()
    };
    for slice in slices {
        out.ns.push(slice.ns);
        out.process.push(tables.process(slice.who));
        out.scheduler.push(slice.segment);
        out.from.push(tables.name(slice.from));
        out.to.push(match slice.to {
            End::In(name) => tables.name(name),
            End::Exited => tables.text("its end"),
            End::Open => tables.text("the end of the recording"),
        });
    }
    out
}

fn dirty(longest: &Longest<LongDirty>, tables: &mut Tables<'_>) -> Dirty {
    let calls = longest.sorted(|call| call.start_ns);
    let mut out = Dirty {
        left: longest.left,
        left_ns: longest.left_ns,
        start: differences(calls.iter().map(|call| call.start_ns)),
        ..Dirty::default()
    };
    for call in calls {
        out.ns.push(call.ns);
        out.wait.push(call.wait_ns);
        out.process.push(tables.process(call.who));
        out.function.push(tables.name(call.function));
        let scheduler = format!(
            "{} scheduler {}",
            call.kind.name_of_schedulers(),
            call.scheduler
        );
        out.scheduler.push(tables.text(&scheduler));
    }
    out
}

fn calls(recording: &Recording, longest: &Longest<LongCall>, tables: &mut Tables<'_>) -> Calls {
    let has_words = recording.has(Group::Words);
    let calls = longest.sorted(|call| call.start_ns);
    let mut out = Calls {
        missing: flame::needs(recording),
        left: longest.left,
        left_ns: longest.left_ns,
        start: differences(calls.iter().map(|call| call.start_ns)),
        ..Calls::default()
    };
    for call in calls {
        out.ns.push(call.ns);
        out.own.push(call.own_ns);
        if has_words {
            out.words.push(call.own_words);
        }
        out.process.push(tables.process(call.who));
        out.function.push(tables.name(call.function));
    }
    out
}

fn collections(
    recording: &Recording,
    longest: &Longest<LongCollection>,
    tables: &mut Tables<'_>,
) -> Collections {
    let collections = longest.sorted(|collection| collection.start_ns);
    let mut out = Collections {
        missing: missing(recording, "collections", &[Group::Gc]),
        left: longest.left,
        left_ns: longest.left_ns,
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

fn waits(recording: &Recording, longest: &Longest<LongWait>, tables: &mut Tables<'_>) -> Waits {
    let waits = longest.sorted(|wait| wait.start_ns);
    let mut out = Waits {
        missing: missing(recording, "sockets", &[Group::Net]),
        left: longest.left,
        left_ns: longest.left_ns,
        start: differences(waits.iter().map(|wait| wait.start_ns)),
        ..Waits::default()
    };
    for wait in waits {
        out.ns.push(wait.ns);
        out.process.push(tables.process(wait.who));
        out.what.push(tables.text(wait.what.text()));
        let socket = tables.names.socket_text(wait.socket);
        out.socket.push(tables.text(&socket));
        out.outcome.push(tables.text(&wait.outcome));
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
        out.id.push(match id {
            Id::None => "(no process)".to_owned(),
            id => id.to_string(),
        });
        out.name.push(tables.text(&tables.names.process_text(id)));
        out.parent.push(match parent {
            Id::None => String::new(),
            parent => parent.to_string(),
        });
        out.born_ns.push(life.born_ns);
        out.ended_ns.push(life.ended_ns);
        out.reason.push(tables.text(&life.reason));
        out.slices.push(life.slices);
        out.busy_ns.push(life.busy_ns);
        out.collections.push(life.collections);
        out.gc_ns.push(life.gc_ns);
        out.sent.push(life.sent);
        out.received.push(life.received);
    }
    out
}

/// What was measured, of each of [`Of::ALL`] for which the recording has what it needs.
fn histograms(recording: &Recording, mut measured: Vec<Measured>) -> Vec<Histogram> {
    let of = |of: Of| {
        let what = if of == Of::Words { "words" } else { "times" };
        let empty = Histogram {
            name: of.name(),
            title: of.title(),
            about: of.about(),
            is_time: of.unit() == "ns",
            missing: missing(recording, what, of.needs()),
            rows: Vec::new(),
            left: 0,
            sizes: None,
        };
        let Some(at) = measured.iter().position(|other| other.of == of) else {
            return empty;
        };
        let Measured { all, sizes, .. } = measured.swap_remove(at);
        match all {
            Ok(measured) => {
                let mut rows = measured.rows();
                let left = rows.len().saturating_sub(HISTOGRAM_ROWS);
                rows.truncate(HISTOGRAM_ROWS);
                Histogram {
                    rows,
                    left,
                    sizes: Some(sizes),
                    ..empty
                }
            }
            Err(missing) => Histogram { missing, ..empty },
        }
    };
    Of::ALL.into_iter().map(of).collect()
}
