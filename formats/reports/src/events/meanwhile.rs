//! What others did while a process waited: the call paths of waiting, with those of the process that ended each wait.
//!
//! A wait ends with the message that came first. Until that message was sent, the wait belongs to what its sender did: the
//! frames of the sender stand above those of the process that waited, and where the sender waited itself, those of whoever
//! ended that. From then on, the process waits for a scheduler. A wait that no known message ended stays as it is.
//!
//! Which message ends a wait, only its end says, so there are two passes: the first finds the senders, the second follows
//! them.

use beamline_formats::paths::{Paths, ROOT, Rows};
use beamline_formats::profile::{Cost, Function, Node, Origin, Process, Profile, WAITS_FOR_DIRTY};
use beamline_formats::ring::{Error, Event, Group, Id, Losses, NameId, Names, Record, Recording};
use rustc_hash::FxHashMap;

use crate::events::calls::{Does, does_after, function_of, header_of};
use crate::events::pass::scan;
use crate::events::rests::{Rests, Then};

/// Groups of events that a recording must have.
pub const NEEDS: [Group; 4] = [
    Group::Calls,
    Group::Returns,
    Group::Scheduling,
    Group::Messages,
];

/// The most processes of which each waits for the next that are followed.
const MOST: usize = 32;

/// The frame of a process that is ready and that no scheduler runs yet.
const WAITS_FOR_SCHEDULER: &str = "(waits for a scheduler)";

/// How the remark begins that the frames of another process stand on.
pub(crate) const MEANWHILE: &str = "meanwhile in ";

/// A frame of a path.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Frame {
    Function(NameId),
    /// One of [`Tree::remarks`].
    Remark(u32),
}

/// What a process does.
struct Whose {
    id: Id,
    rows: Rows,
    does: Does,
    since_ns: u64,
    /// How many time slices have ended.
    outs: usize,
    /// It waits for a scheduler.
    is_ready: bool,
    /// What it waits for a message of, and until when.
    waits: Option<(usize, u64)>,
    /// The processes that wait for a message of it.
    waiters: Vec<usize>,
    /// The remark that its frames stand on in the paths of others.
    remark: Option<u32>,
}

/// What the next frame of a path stands on.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Below {
    Path(u32),
    /// It is the first frame, of this process.
    Process(usize),
}

/// A path of waiting.
struct Path {
    process: usize,
    parent: Option<u32>,
    frame: Frame,
    wait_ns: u64,
    dirty_wait_ns: u64,
}

/// The paths of waiting of all processes.
#[derive(Default)]
struct Tree {
    paths: Vec<Path>,
    known: FxHashMap<(Below, Frame), u32>,
    /// Where a call path that stands on another one leads.
    joined: FxHashMap<(Below, u32), u32>,
    remarks: Vec<String>,
    remark_numbers: FxHashMap<String, u32>,
}

impl Tree {
    fn remark(&mut self, text: String) -> u32 {
        let next = u32::try_from(self.remarks.len()).unwrap_or(u32::MAX);
        *self.remark_numbers.entry(text).or_insert_with_key(|text| {
            self.remarks.push(text.clone());
            next
        })
    }

    /// The path with one more frame.
    fn with(&mut self, below: Below, frame: Frame) -> u32 {
        let next = u32::try_from(self.paths.len()).unwrap_or(u32::MAX);
        let at = *self.known.entry((below, frame)).or_insert(next);
        if at == next {
            let process = match below {
                Below::Path(path) => self.paths[path as usize].process,
                Below::Process(process) => process,
            };
            self.paths.push(Path {
                process,
                parent: match below {
                    Below::Path(path) => Some(path),
                    Below::Process(_) => None,
                },
                frame,
                wait_ns: 0,
                dirty_wait_ns: 0,
            });
        }
        at
    }

    /// What the next frame stands on where a call path stands on `below`.
    fn join(&mut self, below: Below, calls: &Paths<NameId>, path: u32) -> Below {
        if path == ROOT {
            return below;
        }
        if let Some(at) = self.joined.get(&(below, path)) {
            return Below::Path(*at);
        }
        let mut frames: Vec<NameId> = calls.path(path).collect();
        frames.reverse();
        let at = frames.into_iter().fold(below, |at, frame| {
            Below::Path(self.with(at, Frame::Function(frame)))
        });
        if let Below::Path(at) = at {
            self.joined.insert((below, path), at);
        }
        at
    }
}

/// Follows all processes.
struct Follower<'r> {
    names: &'r Names,
    rests: &'r Rests,
    calls: Paths<NameId>,
    all: Vec<Whose>,
    known: FxHashMap<Id, usize>,
    tree: Tree,
    last_ns: u64,
}

impl Follower<'_> {
    fn place(&mut self, id: Id) -> usize {
        let next = self.all.len();
        let at = *self.known.entry(id).or_insert(next);
        if at == next {
            self.all.push(Whose {
                id,
                rows: Rows::default(),
                does: Does::Waits,
                since_ns: 0,
                outs: 0,
                is_ready: false,
                waits: None,
                waiters: Vec::new(),
                remark: None,
            });
        }
        at
    }

    /// The remark that the frames of a process stand on.
    fn remark_of(&mut self, at: usize) -> u32 {
        if let Some(remark) = self.all[at].remark {
            return remark;
        }
        let id = self.all[at].id;
        let name = match self.names.process_text(id) {
            name if name.is_empty() => id.to_string(),
            name => name,
        };
        let remark = self.tree.remark(format!("{MEANWHILE}{name}"));
        self.all[at].remark = Some(remark);
        remark
    }

    /// The path that the waiting of a process belongs to now.
    fn path(&mut self, process: usize) -> Option<u32> {
        let own = self.all[process].rows.current();
        if own == ROOT {
            return None;
        }
        let mut path = self.tree.join(Below::Process(process), &self.calls, own);
        let mut at = process;
        for _ in 0..MOST {
            let Some((on, _)) = self.all[at].waits else {
                break;
            };
            let remark = self.remark_of(on);
            let on_it = self.tree.with(path, Frame::Remark(remark));
            let calls = self.all[on].rows.current();
            path = self.tree.join(Below::Path(on_it), &self.calls, calls);
            at = on;
        }
        let whose = &self.all[at];
        let text = match whose.does {
            Does::Waits if whose.is_ready => WAITS_FOR_SCHEDULER,
            Does::Waits if at != process => "(waits)",
            Does::WaitsForDirty if at != process => WAITS_FOR_DIRTY,
            _ => {
                return match path {
                    Below::Path(path) => Some(path),
                    Below::Process(_) => None,
                };
            }
        };
        let text = text.trim_matches(['(', ')']).to_owned();
        let remark = self.tree.remark(text);
        Some(self.tree.with(path, Frame::Remark(remark)))
    }

    /// The time until now belongs to what a process and all that wait for it have done.
    fn charge(&mut self, at: usize, now: u64, depth: usize) {
        let whose = &mut self.all[at];
        let passed = now.saturating_sub(whose.since_ns);
        whose.since_ns = now;
        let does = whose.does;
        if passed > 0
            && matches!(does, Does::Waits | Does::WaitsForDirty)
            && let Some(path) = self.path(at)
        {
            let path = &mut self.tree.paths[path as usize];
            path.wait_ns = path.wait_ns.saturating_add(passed);
            if does == Does::WaitsForDirty {
                path.dirty_wait_ns = path.dirty_wait_ns.saturating_add(passed);
            }
        }
        if depth < MOST {
            for next in 0..self.all[at].waiters.len() {
                let waiter = self.all[at].waiters[next];
                self.charge(waiter, now, depth + 1);
            }
        }
    }

    /// The process does not wait for a message of another one any more.
    fn let_go(&mut self, at: usize) {
        if let Some((on, _)) = self.all[at].waits.take() {
            self.all[on].waiters.retain(|waiter| *waiter != at);
        }
    }

    /// Those whose wait ends with a message that this process sends now wait for a scheduler.
    fn wake_waiters(&mut self, at: usize, now: u64) {
        let waiters = std::mem::take(&mut self.all[at].waiters);
        for waiter in waiters {
            match self.all[waiter].waits {
                Some((_, until_ns)) if until_ns > now => self.all[at].waiters.push(waiter),
                _ => {
                    self.all[waiter].waits = None;
                    self.all[waiter].is_ready = true;
                }
            }
        }
    }

    /// A time slice has ended.
    fn end_slice(&mut self, at: usize, now: u64) {
        let whose = &mut self.all[at];
        let rest = self.rests.of(whose.id).get(whose.outs);
        whose.outs += 1;
        match rest.map_or(Then::Unknown, |rest| rest.then) {
            Then::Unknown => {}
            Then::Waits { on, until_ns, .. } if until_ns > now => {
                let on = self.place(on);
                self.all[at].waits = Some((on, until_ns));
                self.all[on].waiters.push(at);
            }
            Then::IsReady | Then::Waits { .. } => whose.is_ready = true,
        }
    }

    fn add(&mut self, record: &Record<'_>) {
        self.last_ns = record.time_ns;
        let (does, now) = (does_after(&record.event), record.time_ns);
        let is_send = matches!(record.event, Event::Send { .. });
        if does.is_none() && !is_send {
            return;
        }
        let at = self.place(record.subject);
        self.charge(at, now, 0);
        if is_send {
            self.wake_waiters(at, now);
        }
        let Some(does) = does else { return };
        self.let_go(at);
        let whose = &mut self.all[at];
        (whose.does, whose.is_ready) = (does, false);
        match record.event {
            Event::Call { function } => whose.rows.call(&mut self.calls, function),
            Event::TailCall { function } => whose.rows.tail_call(&mut self.calls, function),
            Event::Return { .. } => whose.rows.leave(1),
            Event::Unwind { calls } => whose.rows.leave(calls),
            Event::Exit { .. } => whose.rows.leave(u64::MAX),
            Event::DirtyOut { .. } => whose.is_ready = true,
            Event::Out { .. } => self.end_slice(at, now),
            _ => {}
        }
    }

    /// The paths as a profile; no path has anything but time of waiting.
    fn profile(&self, recording: &Recording, since_ns: u64) -> Profile {
        let mut profile = Profile {
            runs: vec![header_of(recording, since_ns, self.last_ns)],
            ..Profile::default()
        };
        let mut order: Vec<usize> = (0..self.all.len()).collect();
        order.sort_by_key(|at| self.all[*at].id);
        let mut processes = vec![0; order.len()];
        for (index, at) in order.into_iter().enumerate() {
            processes[at] = u32::try_from(index).unwrap_or(u32::MAX);
            profile.processes.push(Process {
                run: 0,
                pid: self.all[at].id.to_string(),
                name: self.names.process_text(self.all[at].id),
                reductions: 0,
            });
        }
        let mut functions = FxHashMap::default();
        for path in &self.tree.paths {
            let function = *functions.entry(path.frame).or_insert_with(|| {
                let function = self.function(path.frame);
                let origin = self.names.origin(&function.module);
                if origin != Origin::App {
                    profile.origins.insert(function.module.clone(), origin);
                }
                profile.functions.push(function);
                u32::try_from(profile.functions.len() - 1).unwrap_or(u32::MAX)
            });
            profile.nodes.push(Node {
                process: processes[path.process],
                parent: path.parent,
                function,
                cost: Cost {
                    dirty_wait_ns: path.dirty_wait_ns,
                    ..Cost::default()
                },
                reductions: 0,
                wait_ns: path.wait_ns,
            });
        }
        profile
    }

    fn function(&self, frame: Frame) -> Function {
        match frame {
            Frame::Function(name) => function_of(self.names, name),
            // What has no module is no function, but a remark.
            Frame::Remark(remark) => Function {
                module: String::new(),
                name: self.tree.remarks[remark as usize].clone(),
                arity: 0,
            },
        }
    }
}

/// The call paths of waiting, each with what others did meanwhile, and what is missing in the recording, which has
/// [`NEEDS`].
///
/// # Errors
/// When a block is damaged.
pub fn meanwhile(recording: &Recording) -> Result<(Profile, Losses), Error> {
    let mut rests = Rests::new(recording.names());
    scan(recording, |record| {
        rests.add(record);
        Ok::<(), Error>(())
    })?;
    let mut follower = Follower {
        names: recording.names(),
        rests: &rests,
        calls: Paths::default(),
        all: Vec::new(),
        known: FxHashMap::default(),
        tree: Tree::default(),
        last_ns: 0,
    };
    let losses = scan(recording, |record| {
        follower.add(record);
        Ok::<(), Error>(())
    })?;
    Ok((follower.profile(recording, losses.since_ns), losses))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::events::SLICE_REDUCTIONS;
    use crate::events::sample::{Sample, process};

    fn sample() -> Sample {
        Sample::new(&NEEDS)
    }

    /// The waiting of each path, with frames joined by `;`.
    fn waits(sample: &Sample) -> BTreeMap<String, u64> {
        let (profile, _) = meanwhile(&sample.open()).expect("it is readable");
        let mut rows = BTreeMap::new();
        for node in profile.nodes.iter().filter(|node| node.wait_ns > 0) {
            let mut frames = Vec::new();
            let mut at = Some(node);
            while let Some(node) = at {
                frames.push(profile.functions[node.function as usize].to_string());
                at = node.parent.map(|parent| &profile.nodes[parent as usize]);
            }
            frames.reverse();
            *rows.entry(frames.join(";")).or_default() += node.wait_ns;
        }
        rows
    }

    fn expect(rows: &[(&str, u64)]) -> BTreeMap<String, u64> {
        let rows = rows.iter();
        rows.map(|(path, ns)| ((*path).to_owned(), *ns)).collect()
    }

    fn send(sample: &mut Sample, at_ns: u64, from: Id, to: Id, text: &str) {
        sample.write(at_ns, from, Event::Send { to, text });
    }

    /// A client asks a server, which asks a store.
    fn asked() -> Sample {
        let mut sample = sample();
        let [client, server, store] = [1, 2, 3].map(process);
        for (id, name) in [(server, "server"), (store, "store")] {
            sample.start(id, "init", Some(name));
            sample.slice_begins(0, id);
            sample.call(0, id, "loop");
            sample.slice_ends(0, id, 0);
        }
        sample.slice_begins(10, client);
        sample.call(10, client, "ask");
        send(&mut sample, 15, client, server, "question");
        sample.slice_ends(20, client, 10);
        sample.write(30, server, Event::Receive { text: "question" });
        sample.slice_begins(30, server);
        sample.call(40, server, "find");
        send(&mut sample, 50, server, store, "key");
        sample.slice_ends(50, server, 10);
        sample.write(60, store, Event::Receive { text: "key" });
        sample.slice_begins(60, store);
        send(&mut sample, 80, store, server, "value");
        sample.slice_ends(85, store, 10);
        sample.write(90, server, Event::Receive { text: "value" });
        sample.slice_begins(90, server);
        send(
            &mut sample,
            95,
            server,
            Id::None,
            "{[alias|#Ref<1>],answer}",
        );
        let text = "{[alias|#Ref<1>],answer}";
        sample.write(97, client, Event::Receive { text });
        sample.slice_begins(100, client);
        sample.back(110, client);
        sample
    }

    #[test]
    fn a_wait_has_what_its_sender_did_until_it_sent() {
        let waits = waits(&asked());
        let of_client: BTreeMap<String, u64> = waits
            .into_iter()
            .filter(|(path, _)| path.starts_with("m:ask/1"))
            .collect();
        let of_client: Vec<(&str, u64)> = of_client
            .iter()
            .map(|(path, ns)| (path.as_str(), *ns))
            .collect();
        let server = "m:ask/1;(meanwhile in server);m:loop/1";
        let expect = expect(&[
            // The question had been sent, and the server did not run yet.
            (&format!("{server};(waits for a scheduler)"), 10),
            (server, 10),
            (&format!("{server};m:find/1"), 10 + 5),
            (
                &format!("{server};m:find/1;(meanwhile in store);m:loop/1;(waits for a scheduler)"),
                10,
            ),
            (
                &format!("{server};m:find/1;(meanwhile in store);m:loop/1"),
                20,
            ),
            (&format!("{server};m:find/1;(waits for a scheduler)"), 10),
            ("m:ask/1;(waits for a scheduler)", 5),
        ]);
        let expect: Vec<(&str, u64)> = expect
            .iter()
            .map(|(path, ns)| (path.as_str(), *ns))
            .collect();
        assert_eq!(of_client, expect);
    }

    #[test]
    fn all_waiting_is_there_once() {
        let sample = asked();
        let plain = crate::events::profile(&sample.open()).expect("readable");
        let plain: u64 = plain.nodes.iter().map(|node| node.wait_ns).sum();
        assert_eq!(waits(&sample).values().sum::<u64>(), plain);
    }

    #[test]
    fn a_wait_without_a_known_message_stays_as_it_is() {
        let mut sample = sample();
        let a = process(1);
        sample.slice_begins(0, a);
        sample.call(0, a, "sleep");
        sample.slice_ends(10, a, 10);
        sample.slice_begins(30, a);
        // It has used up its reductions.
        sample.slice_ends(40, a, 10 + SLICE_REDUCTIONS);
        let text = "of nobody";
        sample.write(45, a, Event::Receive { text });
        sample.slice_begins(47, a);
        sample.slice_ends(50, a, 20 + SLICE_REDUCTIONS);
        sample.write(55, a, Event::Receive { text });
        sample.slice_begins(58, a);
        sample.back(60, a);
        let rows = [
            ("m:sleep/1", 20 + 8),
            ("m:sleep/1;(waits for a scheduler)", 7),
        ];
        assert_eq!(waits(&sample), expect(&rows));
    }

    #[test]
    fn two_that_wait_for_each_other_end() {
        let mut sample = sample();
        let [a, b] = [1, 2].map(process);
        for id in [a, b] {
            sample.slice_begins(0, id);
            sample.call(0, id, "loop");
            sample.slice_ends(1, id, 1);
        }
        // A damaged recording may tell what cannot be.
        send(&mut sample, 10, a, b, "x");
        send(&mut sample, 10, b, a, "y");
        for (id, text) in [(a, "y"), (b, "x")] {
            sample.write(11, id, Event::Receive { text });
            sample.slice_begins(12, id);
        }
        assert_eq!(waits(&sample).values().sum::<u64>(), 22);
    }
}
