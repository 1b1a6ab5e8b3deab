//! The processes that are left at the end of a recording, where they were started, and what they hold.
//!
//! The end is the one of the emulator, or where `init` begins to stop it: it ends the processes that are left then.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use beamline_formats::profile::Origin;
use beamline_formats::ring::{Event, Group, Id, NameId, Names, Record, Recording};
use rustc_hash::FxHashMap;
use serde::Serialize;

/// Bytes of a word.
const WORD: u64 = 8;

/// Processes of one kind, started in one function, that are left at the end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Left {
    /// How many.
    pub processes: u64,
    /// Their name, label or initial function.
    pub kind: String,
    /// The function that has started them: the nearest one of the program. None: it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_in: Option<String>,
    /// What the processes that started them are.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub started_by: String,
    /// Whose they are: of the program, if their initial function is or what started them.
    pub origin: Origin,
    /// How many of them have been collected: of the others it is not known what they hold.
    pub collected: u64,
    /// Bytes on their heaps after their last collections.
    pub heap_bytes: u64,
    /// Bytes in binaries outside their heaps then. One that several of them hold counts for each.
    pub binary_bytes: u64,
    /// How many binaries these are; 0 where they were not looked at.
    pub binaries: u64,
    /// Bytes of the largest.
    pub largest_binary: u64,
}

/// An ETS table at the end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TableLeft {
    /// Its name.
    pub name: String,
    /// The owner's pid.
    pub owner: String,
    /// What the owner is.
    pub owner_name: String,
    /// Whose the owner is.
    pub origin: Origin,
    /// The memory it takes.
    pub bytes: u64,
    /// Its objects.
    pub objects: u64,
}

/// Where a process was started: which processes were in which functions, the newest first.
#[derive(Clone, Debug)]
struct Start {
    by: Id,
    /// The nearest functions that were called.
    within: Vec<NameId>,
}

/// What is known of a process that has not ended.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    words: Option<u64>,
    binaries: Binaries,
}

/// The binaries outside a heap, as `gc_binaries` tells of them.
#[derive(Clone, Copy, Debug, Default)]
struct Binaries {
    bytes: u64,
    count: u64,
    largest: u64,
}

/// Frames above a spawn among which the one of the program is looked for.
const FRAMES: usize = 32;

/// Follows a recording.
pub(super) struct Living {
    /// Whether the recording has the ends of processes.
    is_told: bool,
    stops: Vec<NameId>,
    application_controller: Option<Id>,
    is_stopping: bool,
    alive: FxHashMap<Id, Held>,
    starts: FxHashMap<Id, Start>,
    tables: Vec<(Id, NameId, [u64; 2])>,
}

impl Living {
    pub(super) fn new(recording: &Recording) -> Living {
        let names = recording.names();
        let stops = names
            .functions_by_name()
            .filter(|(_, of)| of.module == "init" && of.name == "stop")
            .map(|(name, _)| name)
            .collect();
        let mut registered = names.registered();
        Living {
            is_told: recording.has(Group::Processes),
            stops,
            application_controller: registered
                .find(|(name, _)| names.atom(*name) == "application_controller")
                .map(|(_, id)| id),
            is_stopping: false,
            alive: FxHashMap::default(),
            starts: FxHashMap::default(),
            tables: Vec::new(),
        }
    }

    /// A function is called.
    #[inline]
    pub(super) fn called(&mut self, function: NameId) {
        if self.stops.contains(&function) {
            self.is_stopping = true;
        }
    }

    /// A process is started by another one, which is in the functions of a path, the newest first.
    pub(super) fn started(&mut self, child: Id, by: Id, path: impl Iterator<Item = NameId>) {
        let within = path.take(FRAMES).collect();
        self.starts.insert(child, Start { by, within });
    }

    /// Any record that is not of calls.
    pub(super) fn add(&mut self, record: &Record<'_>) {
        let who = record.subject;
        match record.event {
            Event::Spawned { .. } => {
                self.alive.entry(who).or_default();
            }
            Event::Exit { .. } => {
                self.is_stopping |= self.application_controller == Some(who);
                if !self.is_stopping {
                    self.alive.remove(&who);
                    self.starts.remove(&who);
                }
            }
            Event::GcMinorEnd { used, .. } | Event::GcMajorEnd { used, .. } => {
                let held = self.alive.entry(who).or_default();
                *held = Held {
                    words: Some(used),
                    binaries: Binaries::default(),
                };
            }
            Event::GcBinaries {
                bytes,
                count,
                largest,
            } => {
                self.alive.entry(who).or_default().binaries = Binaries {
                    bytes,
                    count,
                    largest,
                };
            }
            Event::Table {
                name,
                words,
                objects,
            } => self.tables.push((who, name, [words, objects])),
            _ => {}
        }
    }

    /// Those that are left, the ones that hold most first.
    pub(super) fn left(&self, names: &Names) -> Vec<Left> {
        if !self.is_told {
            return Vec::new();
        }
        let mut rows: BTreeMap<(String, Option<String>, String), Left> = BTreeMap::new();
        for (id, held) in &self.alive {
            let (started_in, started_by) = self.started_in(*id, names);
            let kind = names.process_text(*id);
            let key = (kind.clone(), started_in.clone(), started_by.clone());
            let origin = self.origin(*id, names);
            let row = rows.entry(key).or_insert_with(|| Left {
                kind,
                started_in,
                started_by,
                origin,
                ..Left::default()
            });
            row.add(*held);
        }
        let mut rows: Vec<Left> = rows.into_values().collect();
        rows.sort_by_key(|row| {
            Reverse((
                row.heap_bytes.saturating_add(row.binary_bytes),
                row.processes,
            ))
        });
        rows
    }

    /// The tables that there are, the largest first.
    pub(super) fn tables(&self, names: &Names) -> Vec<TableLeft> {
        let mut tables: Vec<TableLeft> = self
            .tables
            .iter()
            .map(|(owner, name, [words, objects])| TableLeft {
                name: names.text(*name),
                owner: owner.to_string(),
                owner_name: names.process_text(*owner),
                origin: self.origin(*owner, names),
                bytes: words.saturating_mul(WORD),
                objects: *objects,
            })
            .collect();
        tables.sort_by(|a, b| (b.bytes, &a.name, &a.owner).cmp(&(a.bytes, &b.name, &b.owner)));
        tables
    }

    /// The function that has started a process, and what the process is that did.
    fn started_in(&self, id: Id, names: &Names) -> (Option<String>, String) {
        let Some(start) = self.starts.get(&id) else {
            let parent = names.process(id).map(|process| process.parent);
            return (
                None,
                parent.map_or(String::new(), |by| names.process_text(by)),
            );
        };
        let functions = || start.within.iter().filter_map(|name| names.function(*name));
        let of_program = functions().find(|of| is_of_program(&of.module, names));
        // `spawn` itself says nothing.
        let function = of_program.or_else(|| functions().find(|of| of.module != "erlang"));
        let text = |of: &beamline_formats::ring::Function| {
            beamline_formats::name::mfa(&of.module, &of.name, of.arity.into())
        };
        (function.map(text), names.process_text(start.by))
    }

    fn origin(&self, id: Id, names: &Names) -> Origin {
        let initial = names
            .process(id)
            .and_then(|process| names.function(process.function));
        let within = self.starts.get(&id).map_or(&[][..], |start| &start.within);
        let mut functions = within
            .iter()
            .filter_map(|name| names.function(*name))
            .chain(initial);
        match functions.any(|of| is_of_program(&of.module, names)) {
            true => Origin::App,
            false => initial.map_or(Origin::Otp, |of| names.origin(&of.module)),
        }
    }
}

fn is_of_program(module: &str, names: &Names) -> bool {
    names.origin(module) == Origin::App
}

impl Left {
    fn add(&mut self, held: Held) {
        let Binaries {
            bytes,
            count,
            largest,
        } = held.binaries;
        self.processes += 1;
        self.collected += u64::from(held.words.is_some());
        self.heap_bytes = self
            .heap_bytes
            .saturating_add(held.words.unwrap_or(0).saturating_mul(WORD));
        self.binary_bytes = self.binary_bytes.saturating_add(bytes);
        self.binaries = self.binaries.saturating_add(count);
        self.largest_binary = self.largest_binary.max(largest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::Summary;
    use crate::events::sample::{Sample, process};

    /// A recording in which `main` starts three workers in `m:boot/1`: one ends, one is collected and holds binaries.
    fn sample() -> Sample {
        let mut sample = Sample::new(&[Group::Calls, Group::Returns, Group::Processes, Group::Gc]);
        let main = process(1);
        sample.start(main, "main", Some("main"));
        sample.call(10, main, "boot");
        let function = sample.function("worker");
        for number in 2..5 {
            let (child, at) = (process(number), 100 * number);
            sample.start(child, "worker", None);
            sample.write(at, main, Event::Spawn { child, function });
            let parent = main;
            sample.write(at + 1, child, Event::Spawned { parent, function });
        }
        let (reclaimed, used) = (1, 200);
        sample.write(600, process(3), Event::GcMinorEnd { reclaimed, used });
        let binaries = Event::GcBinaries {
            bytes: 3_000,
            count: 2,
            largest: 2_900,
        };
        sample.write(601, process(3), binaries);
        sample.write(700, process(2), Event::Exit { text: "normal" });
        sample
    }

    #[test]
    fn who_is_left_was_started_somewhere_and_holds_something() {
        let mut sample = sample();
        let name = sample.atom("things");
        let (words, objects) = (300, 7);
        let table = Event::Table {
            name,
            words,
            objects,
        };
        sample.write(800, process(3), table);
        let (summary, _) = Summary::of(&sample.open(), 3).expect("readable");
        let workers = Left {
            processes: 2,
            kind: "m:worker/1".into(),
            started_in: Some("m:boot/1".into()),
            started_by: "main".into(),
            origin: Origin::App,
            collected: 1,
            heap_bytes: 1_600,
            binary_bytes: 3_000,
            binaries: 2,
            largest_binary: 2_900,
        };
        assert_eq!(summary.left, [workers]);
        let table = TableLeft {
            name: "things".into(),
            owner: "<0.3.0>".into(),
            owner_name: "m:worker/1".into(),
            origin: Origin::App,
            bytes: 2_400,
            objects: 7,
        };
        assert_eq!(summary.tables, [table]);
        let text = summary.to_string();
        let row = "           2      1.5 KiB      2.9 KiB            2      2.8 KiB  m:worker/1\n";
        assert!(text.contains(row), "{text}");
        assert!(text.contains("  started in m:boot/1 by main\n"), "{text}");
        assert!(
            text.contains("     2.3 KiB            7  things, <0.3.0> m:worker/1\n"),
            "{text}"
        );
    }

    #[test]
    fn what_a_collection_frees_is_held_no_more() {
        let mut sample = sample();
        let (reclaimed, used) = (150, 50);
        sample.write(900, process(3), Event::GcMajorEnd { reclaimed, used });
        let (summary, _) = Summary::of(&sample.open(), 3).expect("readable");
        let held: Vec<_> = summary
            .left
            .iter()
            .map(|row| (row.heap_bytes, row.binary_bytes))
            .collect();
        assert_eq!(held, [(400, 0)]);
    }

    #[test]
    fn those_that_init_ends_as_it_stops_are_left() {
        let mut sample = sample();
        sample.start(process(7), "control", Some("application_controller"));
        sample.write(900, process(7), Event::Exit { text: "shutdown" });
        for number in 3..5 {
            sample.write(901, process(number), Event::Exit { text: "killed" });
        }
        let (summary, _) = Summary::of(&sample.open(), 3).expect("readable");
        assert_eq!(summary.left.iter().map(|row| row.processes).sum::<u64>(), 2);
    }

    #[test]
    fn without_records_of_processes_nobody_is_left() {
        let mut sample = Sample::new(&[Group::Gc]);
        let (reclaimed, used) = (1, 200);
        sample.write(600, process(3), Event::GcMinorEnd { reclaimed, used });
        let (summary, _) = Summary::of(&sample.open(), 3).expect("readable");
        assert_eq!(summary.left, []);
    }
}
