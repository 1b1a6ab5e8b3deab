//! The summary of a recording: what a person wants to know first.

mod left;
mod network;
mod shown;

pub use shown::Shown;
pub(crate) use shown::{write_columns, write_more};

use std::collections::{BTreeMap, BTreeSet, HashMap};

use beamline_formats::name;
use beamline_formats::profile::{Function, Native, Node, Origin, Profile};
use beamline_formats::ring::{
    Error, Event, Group, Host, Id, Kind, Losses, NameId, Names, Record, Recording,
};
use beamline_settings::counter;
use serde::Serialize;

use super::pass::pass;
use crate::events::batch::Batch;
use crate::events::blocks::{Block, Unfinished};
use crate::events::calls::Callers;
use crate::events::connections::{Connection, Connections, Peer, peers};
use crate::events::counters::{Counters, Sums};
use crate::events::living::{Left, TableLeft};
use crate::events::pass::{Read, Sink};
use crate::events::spans::{Collection, DirtyCall, End, Slice, Span, Spans};
use crate::sums::{costs_with_callees, function_sums, outermost};

/// How much of the time a scheduler ran processes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Use {
    /// Its number.
    pub scheduler: u64,
    /// Time in which it ran processes.
    pub busy_ns: u64,
    /// Time slices of processes.
    pub slices: u64,
}

/// What dirty schedulers of one kind did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct DirtyUse {
    /// The kind.
    pub kind: Native,
    /// Time in which they ran calls, of all of them together.
    pub busy_ns: u64,
    /// Calls that they ran.
    pub calls: u64,
    /// Time in which these calls had waited for one of them.
    pub wait_ns: u64,
}

/// The cost of a function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FunctionCost {
    /// As its language writes it.
    pub function: String,
    /// Whose it is.
    pub origin: Origin,
    /// The function itself.
    #[serde(skip)]
    pub of: Function,
    /// Calls.
    pub calls: u64,
    /// Time in it.
    pub own_ns: u64,
    /// Time in it and in all it called.
    pub total_ns: u64,
    /// What kind of native code it is, if it is any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub native: Option<Native>,
    /// Time in which its calls waited for a dirty scheduler.
    #[serde(skip_serializing_if = "is_zero")]
    pub dirty_wait_ns: u64,
    /// Words allocated in it, if they were recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own_words: Option<u64>,
    /// Words allocated in it and in all it called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_words: Option<u64>,
    /// Reductions in it, if they were recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own_reductions: Option<u64>,
    /// Reductions in it and in all it called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_reductions: Option<u64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A span or a queue that was long.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Longest {
    /// When it began, since the beginning of the recording.
    pub at_ns: u64,
    /// How long it took; for a queue, messages in it.
    pub value: u64,
    /// Whose it is.
    pub process: String,
    /// The name of that, or the function it started in.
    pub name: String,
    /// Where, or of which kind.
    pub what: String,
}

/// The summary of a recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// What is missing.
    #[serde(flatten)]
    pub losses: Losses,
    /// The emulator's command line.
    pub command: Vec<String>,
    /// The OTP release.
    pub otp: String,
    /// The machine.
    pub host: Host,
    /// Kinds of events asked for.
    pub events: Vec<String>,
    /// When it ended.
    pub end_ns: u64,
    /// Records there are, by kind.
    pub records: Vec<(&'static str, u64)>,
    /// Processes that are named or heard of.
    pub processes: u64,
    /// The schedulers' use, if time slices were recorded.
    pub schedulers: Vec<Use>,
    /// The use of dirty schedulers, of each kind that ran something.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dirty_schedulers: Vec<DirtyUse>,
    /// Those with most time of their own.
    pub by_own: Vec<FunctionCost>,
    /// Those with most time in all.
    pub by_total: Vec<FunctionCost>,
    /// Those with most words of their own, if words were recorded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub by_words: Vec<FunctionCost>,
    /// Those with most reductions of their own, if reductions were recorded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub by_reductions: Vec<FunctionCost>,
    /// Those that are native code, with most time of their own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub natives: Vec<FunctionCost>,
    /// Native functions that held an ordinary scheduler for long, the longest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<Block>,
    /// Where the recording broke off, the native code that ran then: one of these may have crashed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unfinished: Vec<Unfinished>,
    /// The longest collections.
    pub collections: Vec<Longest>,
    /// The longest time slices.
    pub slices: Vec<Longest>,
    /// The longest message queues.
    pub queues: Vec<Longest>,
    /// System events: of each kind those with the largest numbers.
    pub system: Vec<Longest>,
    /// The processes that are left at the end, those that hold most memory first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<Left>,
    /// The ETS tables that are left at the end, the largest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<TableLeft>,
    /// The peers of sockets, those first that were waited for longest.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub peers: Vec<Peer>,
    /// The sockets, those first that were waited for longest.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub connections: Vec<Connection>,
    /// The counter values, if the recording has any.
    pub counters: Option<Counters>,
}

/// A long span or queue, before its names are known.
#[derive(Clone, Copy)]
struct Long {
    at_ns: u64,
    value: u64,
    process: Id,
    functions: (NameId, NameId),
    what: &'static str,
}

/// The `top` longest of what was added.
struct Top {
    top: usize,
    all: Vec<Long>,
}

impl Top {
    fn new(top: usize) -> Top {
        let all = Vec::new();
        Top { top, all }
    }

    fn add(&mut self, long: Long) {
        let full = self.all.len() >= self.top;
        if full
            && self
                .all
                .last()
                .is_none_or(|least| least.value >= long.value)
        {
            return;
        }
        let at = self.all.partition_point(|other| other.value >= long.value);
        self.all.insert(at, long);
        self.all.truncate(self.top);
    }
}

/// The overview of one segment.
struct Seen {
    busy_ns: u64,
    slices: u64,
    collections: Top,
    long_slices: Top,
    /// By what they tell: a number of words is not more than one of milliseconds.
    system: BTreeMap<&'static str, Top>,
    sums: Sums,
    /// By kind.
    dirty: BTreeMap<Native, DirtyUse>,
    /// The longest of each process.
    queues: HashMap<Id, Long>,
}

impl Seen {
    fn new(top: usize) -> Seen {
        Seen {
            busy_ns: 0,
            slices: 0,
            collections: Top::new(top),
            long_slices: Top::new(top),
            system: BTreeMap::new(),
            sums: Sums::default(),
            dirty: BTreeMap::new(),
            queues: HashMap::new(),
        }
    }

    fn add(&mut self, record: &Record<'_>, span: &Span) {
        match *span {
            // Whoever is being ended does nothing.
            Span::SliceEnds {
                on_scheduler: Some(slice),
                end,
                ..
            } if slice.who == record.subject && !slice.is_exiting => {
                self.slice_ends(record, &slice, end);
            }
            Span::CollectionEnds {
                collection: Some(collection),
                is_major,
                ..
            } => self.collection_ends(record, &collection, is_major),
            Span::DirtyEnds(Some(call)) => self.dirty_ends(record, &call),
            _ => {}
        }
        match record.event {
            Event::Out { messages, .. } => self.queue(record, messages),
            Event::LongGc { ms } => self.system(record, ms, "ms in a collection"),
            Event::LongSchedule { ms, .. } => self.system(record, ms, "ms in a time slice"),
            Event::LongMessageQueue { is_long, messages } if is_long != 0 => {
                self.system(record, messages, "messages in the queue");
            }
            Event::LargeHeap { words } => self.system(record, words, "words of heap"),
            Event::Counted {
                first,
                second,
                third,
                fourth,
            } => counter::add(&mut self.sums.slices, &[first, second, third, fourth]),
            Event::CountedAll {
                first,
                second,
                third,
                fourth,
            } => self.sums.run = Some([first, second, third, fourth]),
            Event::BusyPort { .. } => self.system(record, 0, "waits for a busy port"),
            Event::BusyDistPort { .. } => {
                self.system(record, 0, "waits for a busy connection to another node");
            }
            _ => {}
        }
    }

    fn slice_ends(&mut self, record: &Record<'_>, slice: &Slice, end: End) {
        let to = match end {
            End::In(function) => function,
            End::Exited | End::Open => NameId::NONE,
        };
        let value = record.time_ns.saturating_sub(slice.start_ns);
        self.busy_ns = self.busy_ns.saturating_add(value);
        self.slices += 1;
        self.long_slices.add(Long {
            at_ns: slice.start_ns,
            value,
            process: slice.who,
            functions: (slice.from, to),
            what: "",
        });
    }

    fn dirty_ends(&mut self, record: &Record<'_>, call: &DirtyCall) {
        let Some(start_ns) = call.start_ns else {
            return;
        };
        let none = DirtyUse {
            kind: call.kind,
            busy_ns: 0,
            calls: 0,
            wait_ns: 0,
        };
        let of = self.dirty.entry(call.kind).or_insert(none);
        of.calls += 1;
        of.busy_ns += record.time_ns.saturating_sub(start_ns);
        of.wait_ns += start_ns.saturating_sub(call.queued_ns);
    }

    fn system(&mut self, record: &Record<'_>, value: u64, what: &'static str) {
        let top = self.collections.top;
        let system = self.system.entry(what).or_insert_with(|| Top::new(top));
        system.add(Long {
            at_ns: record.time_ns,
            value,
            process: record.subject,
            functions: (NameId::NONE, NameId::NONE),
            what,
        });
    }

    fn queue(&mut self, record: &Record<'_>, messages: u64) {
        let known = self.queues.get(&record.subject);
        if messages > known.map_or(0, |known| known.value) {
            let long = Long {
                at_ns: record.time_ns,
                value: messages,
                process: record.subject,
                functions: (NameId::NONE, NameId::NONE),
                what: "",
            };
            self.queues.insert(record.subject, long);
        }
    }

    fn collection_ends(&mut self, record: &Record<'_>, collection: &Collection, is_major: bool) {
        self.collections.add(Long {
            at_ns: collection.start_ns,
            value: record.time_ns.saturating_sub(collection.start_ns),
            process: collection.who,
            functions: (NameId::NONE, NameId::NONE),
            what: if is_major { "major" } else { "minor" },
        });
    }
}

/// The overview of all segments.
pub(crate) struct Overview {
    top: usize,
    spans: Spans,
    segments: Vec<Seen>,
    connections: Connections,
}

impl Overview {
    /// Keeps the `top` longest of each kind.
    pub(crate) fn new(recording: &Recording, top: usize) -> Overview {
        let segments = 0..recording.segments();
        Overview {
            top,
            spans: Spans::new(),
            segments: segments.map(|_| Seen::new(top)).collect(),
            connections: Connections::default(),
        }
    }

    fn sockets(&self, names: &Names, end_ns: u64) -> Vec<Connection> {
        let open = self.spans.open_waits();
        self.connections.finish(names, &open, end_ns)
    }
}

impl Sink for Overview {
    fn take(&mut self, batch: &Batch) -> Result<(), Error> {
        // Also what is from before a gap.
        batch.others().try_for_each(|(record, _)| {
            self.spans.add(&record, |span| {
                self.segments[record.segment].add(&record, span);
                self.connections.add(&record, span);
                Ok(())
            })
        })
    }
}

impl Summary {
    /// Reads a recording; tells of all functions, and of the `top` most expensive of each other kind. Its call paths are
    /// given too.
    ///
    /// # Errors
    /// When a block is damaged.
    pub fn of(recording: &Recording, top: usize) -> Result<(Summary, Profile), Error> {
        let mut callers = Callers::new(recording);
        let mut overview = Overview::new(recording, top);
        let read = pass(recording, &mut [&mut callers, &mut overview])?;
        Summary::finish(recording, &read, callers, &overview)
    }

    /// From what has followed a pass over the recording.
    pub(crate) fn finish(
        recording: &Recording,
        read: &Read,
        mut callers: Callers,
        overview: &Overview,
    ) -> Result<(Summary, Profile), Error> {
        let (top, seen) = (overview.top, &overview.segments);
        let losses = Losses::of(recording, &read.found)?;
        let blocks = callers.blocks(recording);
        let unfinished = match recording.end_ns() {
            None => callers.in_native(recording.names()),
            Some(_) => Vec::new(),
        };
        let (left, tables) = callers.left(recording);
        let (profile, counted) = callers.finish(recording, losses.since_ns);
        let mut sums = Sums::default();
        seen.iter().for_each(|seen| sums.add(&seen.sums));
        let records = Kind::ALL.iter().map(|kind| {
            let count = read.found.iter().map(|found| found[*kind as usize]).sum();
            (kind.name(), count)
        });
        let subjects = read.subjects.iter().copied();
        let subjects = subjects.filter(|id| matches!(id, Id::Process(_)));
        let end_ns = recording.whole_end_ns()?;
        let connections = overview.sockets(recording.names(), end_ns);
        let description = recording.description();
        let costs = costs(recording, &profile);
        let best = |key: fn(&FunctionCost) -> u64| {
            let mut costs = costs.clone();
            costs.sort_by(|a, b| {
                key(b)
                    .cmp(&key(a))
                    .then_with(|| a.function.cmp(&b.function))
            });
            costs
        };
        let summary = Summary {
            losses,
            command: description.command.clone(),
            otp: description.otp.clone(),
            host: description.host.clone(),
            events: description.settings.events.clone(),
            end_ns,
            records: records.filter(|(_, count)| *count > 0).collect(),
            processes: recording.names().all_processes(subjects),
            schedulers: uses(recording, seen),
            dirty_schedulers: dirty_uses(seen),
            by_own: best(|cost| cost.own_ns),
            by_total: best(|cost| cost.total_ns),
            by_words: if_recorded(recording, Group::Words, || {
                best(|cost| cost.own_words.unwrap_or(0))
            }),
            by_reductions: if_recorded(recording, Group::Reductions, || {
                best(|cost| cost.own_reductions.unwrap_or(0))
            }),
            natives: {
                let mut natives = best(|cost| cost.own_ns);
                natives.retain(|cost| cost.native.is_some());
                natives
            },
            blocks,
            unfinished,
            collections: longest(recording, top, |seen| seen.collections.all.clone(), seen),
            slices: longest(recording, top, |seen| seen.long_slices.all.clone(), seen),
            queues: queues(recording, top, seen),
            system: system(recording, top, seen),
            left,
            tables,
            peers: peers(&connections),
            connections,
            counters: Counters::of(recording, &sums, &profile, &counted, top),
        };
        Ok((summary, profile))
    }
}

/// These rows, if the recording has what they are made of.
fn if_recorded<Row>(
    recording: &Recording,
    group: Group,
    rows: impl FnOnce() -> Vec<Row>,
) -> Vec<Row> {
    match recording.has(group) {
        true => rows(),
        false => Vec::new(),
    }
}

fn uses(recording: &Recording, seen: &[Seen]) -> Vec<Use> {
    let uses = seen.iter().enumerate().filter_map(|(index, seen)| {
        Some(Use {
            scheduler: recording.scheduler(index)?,
            busy_ns: seen.busy_ns,
            slices: seen.slices,
        })
    });
    let uses: Vec<Use> = uses.collect();
    if uses.iter().all(|of| of.slices == 0) {
        return Vec::new();
    }
    uses
}

/// The use of dirty schedulers, by kind.
fn dirty_uses(seen: &[Seen]) -> Vec<DirtyUse> {
    let mut all: BTreeMap<Native, DirtyUse> = BTreeMap::new();
    for of in seen.iter().flat_map(|seen| seen.dirty.values()) {
        all.entry(of.kind)
            .and_modify(|sum| {
                sum.busy_ns += of.busy_ns;
                sum.calls += of.calls;
                sum.wait_ns += of.wait_ns;
            })
            .or_insert(*of);
    }
    all.into_values().collect()
}

/// The longest of all segments.
fn longest(
    recording: &Recording,
    top: usize,
    of: impl Fn(&Seen) -> Vec<Long>,
    seen: &[Seen],
) -> Vec<Longest> {
    let mut all = Top::new(top);
    seen.iter().flat_map(of).for_each(|long| all.add(long));
    all.all.iter().map(|long| named(recording, long)).collect()
}

/// The largest system events, of each kind an equal share of `top`.
fn system(recording: &Recording, top: usize, seen: &[Seen]) -> Vec<Longest> {
    let kinds: BTreeSet<&str> = seen
        .iter()
        .flat_map(|seen| seen.system.keys().copied())
        .collect();
    let share = top.div_ceil(kinds.len().max(1));
    let of = |kind: &&str| {
        let all = |seen: &Seen| {
            seen.system
                .get(kind)
                .map_or(Vec::new(), |top| top.all.clone())
        };
        longest(recording, share, all, seen)
    };
    kinds.iter().flat_map(of).collect()
}

/// The longest queue of each process.
fn queues(recording: &Recording, top: usize, seen: &[Seen]) -> Vec<Longest> {
    let mut all: HashMap<Id, Long> = HashMap::new();
    for long in seen.iter().flat_map(|seen| seen.queues.values()) {
        let known = all.entry(long.process).or_insert(*long);
        if (long.value, known.at_ns) > (known.value, long.at_ns) {
            *known = *long;
        }
    }
    let mut all: Vec<Long> = all.into_values().collect();
    all.sort_by_key(|long| (std::cmp::Reverse(long.value), long.at_ns, long.process));
    all.truncate(top);
    all.iter().map(|long| named(recording, long)).collect()
}

fn named(recording: &Recording, long: &Long) -> Longest {
    let names = recording.names();
    let (from, to) = long.functions;
    let what = match (from, to) {
        (NameId::NONE, NameId::NONE) => long.what.to_owned(),
        (from, to) if from == to => names.function_text(from),
        (from, NameId::NONE) => names.function_text(from),
        (from, to) => format!(
            "{} to {}",
            names.function_text(from),
            names.function_text(to)
        ),
    };
    Longest {
        at_ns: long.at_ns,
        value: long.value,
        process: long.process.to_string(),
        name: names.process_text(long.process),
        what,
    }
}

/// What every function costs.
fn costs(recording: &Recording, profile: &Profile) -> Vec<FunctionCost> {
    let outermost = outermost(profile);
    let sums = |cost: fn(&Node) -> u64| {
        function_sums(
            profile,
            cost,
            &costs_with_callees(profile, cost),
            &outermost,
        )
    };
    let calls = sums(|node| node.cost.calls);
    let times = sums(|node| node.cost.time_ns);
    let dirty = sums(|node| node.cost.dirty_wait_ns);
    let of = |group, cost| recording.has(group).then(|| sums(cost));
    let words = of(Group::Words, |node| node.cost.words);
    let reductions = of(Group::Reductions, |node| node.reductions);
    let functions = profile.functions.iter().enumerate();
    let functions = functions.filter(|(_, function)| !function.is_cut());
    functions
        .map(|(at, function)| {
            let words = words.as_ref().map(|words| words[at]);
            let reductions = reductions.as_ref().map(|reductions| reductions[at]);
            FunctionCost {
                function: name::mfa(&function.module, &function.name, function.arity),
                origin: profile.origin(&function.module),
                of: function.clone(),
                calls: calls[at].own,
                own_ns: times[at].own,
                total_ns: times[at].total,
                native: profile.native(function),
                dirty_wait_ns: dirty[at].own,
                own_words: words.map(|words| words.own),
                total_words: words.map(|words| words.total),
                own_reductions: reductions.map(|sum| sum.own),
                total_reductions: reductions.map(|sum| sum.total),
            }
        })
        .collect()
}
impl Summary {
    /// Forgets all but the `top` functions of each list.
    pub(crate) fn keep(&mut self, top: usize) {
        for list in [
            &mut self.by_own,
            &mut self.by_total,
            &mut self.by_words,
            &mut self.by_reductions,
            &mut self.natives,
        ] {
            list.truncate(top);
        }
        self.blocks.truncate(top);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::sample::{Sample, process, varied};

    #[test]
    fn system_events_of_each_kind_are_told() {
        let mut sample = Sample::new(&[Group::System]);
        for round in 0..9 {
            let words = 1_000_000 + round;
            sample.write(10 * round, process(1), Event::LargeHeap { words });
        }
        sample.write(200, process(1), Event::LongGc { ms: 12 });
        let (summary, _) = Summary::of(&sample.open(), 4).expect("readable");
        let rows: Vec<_> = summary
            .system
            .iter()
            .map(|row| (row.what.as_str(), row.value))
            .collect();
        let heap = "words of heap";
        assert_eq!(
            rows,
            [
                ("ms in a collection", 12),
                (heap, 1_000_008),
                (heap, 1_000_007)
            ]
        );
    }

    #[test]
    fn words_and_reductions_are_shown_where_they_are_known() {
        let (summary, profile) = Summary::of(&varied().open(), 4).expect("readable");
        let of = |rows: &[FunctionCost]| {
            let row = |row: &FunctionCost| {
                let numbers = [
                    row.own_words,
                    row.total_words,
                    row.own_reductions,
                    row.total_reductions,
                ];
                (row.function.clone(), numbers.map(Option::unwrap_or_default))
            };
            rows.iter().map(row).collect::<Vec<_>>()
        };
        let [main, fib, server] = [
            ("m:main/1".to_owned(), [500, 1_000, 500, 1_000]),
            ("m:fib/1".to_owned(), [500, 500, 500, 500]),
            ("m:loop/1".to_owned(), [66, 66, 630, 630]),
        ];
        let by_words = [fib.clone(), main.clone(), server.clone()];
        assert_eq!(of(&summary.by_words), by_words);
        assert_eq!(of(&summary.by_reductions), [server, fib, main]);
        // What a process had in its last record it has had in all its paths, from its first on.
        let reductions = profile.processes.iter().map(|process| process.reductions);
        assert_eq!(reductions.collect::<Vec<_>>(), [1_000, 700]);
        let text = summary.to_string();
        let head = "OWN        TOTAL    OWN WORDS  TOTAL WORDS     OWN REDS   TOTAL REDS        CALLS  FUNCTION";
        assert!(text.contains(head), "{text}");
        assert!(text.contains("\nMost own words\n"), "{text}");

        let mut sample = Sample::new(&[Group::Calls, Group::Returns, Group::Words]);
        sample.words(100, process(1), 7);
        sample.call(100, process(1), "f");
        // A message was given back.
        sample.words(200, process(1), 3);
        sample.back(200, process(1));
        let (summary, _) = Summary::of(&sample.open(), 4).expect("readable");
        let row = &summary.by_words[0];
        assert_eq!((row.own_words, row.own_reductions), (Some(0), None));
        assert!(summary.by_reductions.is_empty());
        let json = serde_json::to_value(&summary).expect("it is JSON");
        assert!(json["by_words"][0].get("own_reductions").is_none());
    }

    #[test]
    fn times_with_waiting_are_said_to_be_so() {
        for (events, expect) in [
            (
                &[Group::Calls, Group::Returns][..],
                "Most own time (with waiting: time slices were not recorded)\n",
            ),
            (
                &[Group::Calls, Group::Returns, Group::Scheduling],
                "Most own time\n",
            ),
        ] {
            let mut sample = Sample::new(events);
            sample.call(100, process(1), "f");
            sample.back(200, process(1));
            let (summary, _) = Summary::of(&sample.open(), 4).expect("readable");
            assert!(summary.to_string().contains(expect), "{summary}");
        }
    }
}
