//! Makes call paths of the calls and returns of a recording, the same as the runtime's own call trees.
//!
//! A process has a current node, which stands for a call path ([`beamline_formats::paths`]). A call goes on to the callee's node below
//! it, and a return goes back to the node that made the call. Time goes to the current node while the process runs. Words
//! and reductions do so too, as far as records tell them.

use std::collections::HashMap;

use beamline_formats::paths::{Paths, ROOT, Rows};
use beamline_formats::profile::{
    Cost, Count, Function, Header, Node, Origin, Process, Profile, TracingCost, Type,
};
use beamline_formats::ring::{
    Error, Event, Group, Id, Losses, NameId, Names, Record, Recording, Sampling,
};
use beamline_settings::counter::Counted;
use rustc_hash::FxHashMap;

use super::pass::pass;
use crate::events::batch::Batch;
use crate::events::blocks::{Block, Blocks, Hold, Natives, Unfinished};
use crate::events::living::{Left, Living, TableLeft};
use crate::events::part::Part;
use crate::events::pass::{Read, Sink};
use crate::events::shares::Shares;
use crate::events::total::{Total, sum};

/// The cost of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Costs {
    pub(crate) calls: u64,
    pub(crate) time_ns: u64,
    /// Time in which the process did not run.
    pub(crate) wait_ns: u64,
    /// The part of that in which it waited for a dirty scheduler.
    pub(crate) dirty_wait_ns: u64,
    pub(crate) words: i64,
    pub(crate) reductions: i64,
}

/// What a process is in, and since when nobody has paid for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unpaid {
    /// The process.
    pub(crate) caller: usize,
    /// Its path.
    pub(crate) path: usize,
    /// What it does.
    pub(crate) does: Does,
    /// Since when.
    pub(crate) since_ns: u64,
}

impl Costs {
    /// Adds time in which the process did this.
    pub(crate) fn spend(&mut self, does: Does, ns: u64) {
        let add = |sum: &mut u64| *sum = sum.saturating_add(ns);
        match does {
            Does::Runs | Does::RunsDirty => add(&mut self.time_ns),
            Does::Waits => add(&mut self.wait_ns),
            Does::WaitsForDirty => {
                add(&mut self.wait_ns);
                add(&mut self.dirty_wait_ns);
            }
        }
    }
}

/// What a process does between two records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Does {
    /// An ordinary scheduler runs it.
    Runs,
    /// A dirty scheduler runs a call of it.
    RunsDirty,
    /// It does not run.
    Waits,
    /// It waits for a dirty scheduler.
    WaitsForDirty,
}

/// What a process does after a record; `None` where the record tells nothing of that.
pub(crate) fn does_after(event: &Event<'_>) -> Option<Does> {
    match event {
        Event::DirtyQueued { .. } => Some(Does::WaitsForDirty),
        Event::DirtyIn { .. } => Some(Does::RunsDirty),
        Event::Call { .. }
        | Event::TailCall { .. }
        | Event::Return { .. }
        | Event::Unwind { .. }
        | Event::In { .. }
        | Event::Words { .. }
        | Event::Reductions { .. }
        | Event::Counted { .. } => Some(Does::Runs),
        Event::Out { .. } | Event::DirtyOut { .. } | Event::OutExited {} | Event::Exit { .. } => {
            Some(Does::Waits)
        }
        _ => None,
    }
}

/// Whether a process is in another function after a record, or runs no more or anew.
fn moves_on(event: &Event<'_>) -> bool {
    !matches!(
        event,
        Event::Words { .. } | Event::Reductions { .. } | Event::Counted { .. }
    )
}

/// A process, as far as its calls are known.
struct Caller {
    paths: Paths<NameId>,
    /// Of each path.
    costs: Vec<Costs>,
    rows: Rows,
    does: Does,
    since_ns: u64,
    /// Of each path, whether it ends in native code.
    natives: Vec<bool>,
    hold: Hold,
    reductions: u64,
    words_so_far: Total,
    reductions_so_far: Total,
    /// What was counted, if that was.
    shares: Option<Box<Shares>>,
    /// The paths of stacks that samples have.
    stacks: FxHashMap<NameId, u32>,
}

impl Caller {
    fn new(does: Does) -> Caller {
        Caller {
            paths: Paths::default(),
            costs: Vec::new(),
            rows: Rows::default(),
            does,
            since_ns: 0,
            natives: Vec::new(),
            hold: Hold::default(),
            reductions: 0,
            words_so_far: Total::default(),
            reductions_so_far: Total::default(),
            shares: None,
            stacks: FxHashMap::default(),
        }
    }

    fn current(&self) -> u32 {
        self.rows.current()
    }

    fn charge(&mut self, now: u64) {
        let current = self.current();
        let passed = now.saturating_sub(self.since_ns);
        if matches!(self.does, Does::Runs | Does::RunsDirty)
            && let Some(shares) = &mut self.shares
        {
            let path = (current != ROOT).then_some(current as usize);
            shares.spend(path, passed);
        }
        if let Some(path) = self.costs.get_mut(current as usize) {
            path.spend(self.does, passed);
        }
        if self.does == Does::Runs {
            self.hold.runs(passed);
        }
        self.since_ns = now;
    }

    /// Where it is in native code that has held its scheduler for long, that is noted; another hold begins.
    fn let_go(&mut self, id: Id, now: u64, blocks: &mut Blocks) {
        if self.natives.get(self.current() as usize) == Some(&true) {
            blocks.add(id, &self.hold, self.paths.path(self.current()));
        }
        self.hold.begin(now);
    }

    fn words(&mut self, total: u64) {
        let came = self.words_so_far.now(total);
        let current = self.current() as usize;
        if let Some(path) = self.costs.get_mut(current) {
            path.words = path.words.wrapping_add(came);
        }
    }

    fn reductions(&mut self, total: u64) {
        self.reductions = self.reductions.max(total);
        let came = self.reductions_so_far.now(total);
        let current = self.current() as usize;
        if let Some(path) = self.costs.get_mut(current) {
            path.reductions = path.reductions.wrapping_add(came);
        }
    }

    /// A sample that stands for `ns`.
    fn sampled(&mut self, stack: NameId, frames: &[NameId], ns: u64, natives: &Natives) {
        let path = match self.stacks.get(&stack) {
            Some(path) => *path,
            None => {
                let calls = frames.iter();
                let path = calls.fold(ROOT, |path, frame| self.paths.call(path, *frame));
                self.grow(natives);
                self.stacks.insert(stack, path);
                path
            }
        };
        if let Some(costs) = self.costs.get_mut(path as usize) {
            costs.spend(Does::Runs, ns);
        }
    }

    /// The node of a callee has become the current one.
    fn entered(&mut self, natives: &Natives) {
        self.grow(natives);
        let current = self.current() as usize;
        if let Some(path) = self.costs.get_mut(current) {
            path.calls += 1;
        }
    }

    /// New paths have no costs yet.
    fn grow(&mut self, natives: &Natives) {
        while self.costs.len() < self.paths.len() {
            let at = self.costs.len();
            self.costs.push(Costs::default());
            let function = self.paths.last(at as u32);
            self.natives
                .push(function.is_some_and(|of| natives.has(of)));
        }
    }
}

/// The call paths of all processes of a recording.
pub(crate) struct Callers {
    all: Vec<(Id, Caller)>,
    known: FxHashMap<Id, usize>,
    /// Whose record came last.
    last: usize,
    /// The recording tells whether a process runs.
    has_slices: bool,
    /// The recording has the counter values of time slices.
    has_counters: bool,
    /// The reductions of call paths are known.
    has_reductions: bool,
    last_ns: u64,
    natives: Natives,
    blocks: Blocks,
    living: Living,
    samples: Samples,
}

/// What samples stand for.
struct Samples {
    /// The functions of each stack, the oldest first.
    stacks: FxHashMap<NameId, Vec<NameId>>,
    period_ns: u64,
}

impl Samples {
    fn of(recording: &Recording) -> Samples {
        let names = recording.names();
        let functions = |stack| {
            let frames = names.stack(stack).map(|frame| frame.function);
            let mut frames: Vec<NameId> = frames.collect();
            frames.reverse();
            (stack, frames)
        };
        Samples {
            stacks: names.stacks().map(functions).collect(),
            period_ns: recording.sampling().map_or(0, Sampling::period_ns),
        }
    }
}

impl Sink for Callers {
    fn take(&mut self, batch: &Batch) -> Result<(), Error> {
        batch.whole().for_each(|record| self.add(&record));
        Ok(())
    }
}

impl Callers {
    /// Of this recording: no call yet.
    pub(crate) fn new(recording: &Recording) -> Callers {
        Callers {
            all: Vec::new(),
            known: FxHashMap::default(),
            last: 0,
            has_slices: recording.has(Group::Scheduling),
            has_counters: recording.has(Group::Counters),
            has_reductions: recording.has(Group::Reductions),
            last_ns: 0,
            natives: Natives::of(recording),
            blocks: Blocks::default(),
            living: Living::new(recording),
            samples: Samples::of(recording),
        }
    }

    fn of(&mut self, id: Id) -> &mut Caller {
        let at = self.place(id);
        &mut self.all[at].1
    }

    fn place(&mut self, id: Id) -> usize {
        // Records of one process come in a row, as long as it runs.
        if self.all.get(self.last).is_none_or(|(last, _)| *last != id) {
            let new = self.all.len();
            self.last = *self.known.entry(id).or_insert(new);
            if self.last == new {
                let mut caller = Caller::new(match self.has_slices {
                    true => Does::Waits,
                    false => Does::Runs,
                });
                caller.shares = self.has_counters.then(Box::default);
                self.all.push((id, caller));
            }
        }
        self.last
    }

    /// A record that tells nothing of what its process does.
    fn other(&mut self, record: &Record<'_>) {
        let now = record.time_ns;
        match record.event {
            Event::GcMinorStart { .. } | Event::GcMajorStart { .. } => {
                self.of(record.subject).hold.collection_begins(now);
            }
            Event::GcMinorEnd { .. } | Event::GcMajorEnd { .. } => {
                self.of(record.subject).hold.collection_ends(now);
            }
            _ => {}
        }
        self.living.add(record);
        if let Event::Spawn { child, .. } = record.event {
            let caller = self.known.get(&record.subject).map(|at| &self.all[*at].1);
            let path = caller.map(|caller| caller.paths.path(caller.current()));
            let path = path.into_iter().flatten();
            self.living.started(child, record.subject, path);
        }
    }

    /// A look at it, or at a thread that ran for nobody.
    fn sampled(&mut self, record: &Record<'_>, stack: NameId) {
        let at = self.place(record.subject);
        let (caller, samples) = (&mut self.all[at].1, &self.samples);
        caller.since_ns = record.time_ns;
        if let Some(frames) = samples.stacks.get(&stack) {
            caller.sampled(stack, frames, samples.period_ns, &self.natives);
        }
    }

    /// What a process pays for with this record, if that began before `begin_ns`.
    #[inline]
    pub(crate) fn unpaid(&mut self, record: &Record<'_>, begin_ns: u64) -> Option<Unpaid> {
        does_after(&record.event)?;
        let caller = self.of(record.subject);
        let (path, since_ns) = (caller.current() as usize, caller.since_ns);
        let (does, is_in) = (caller.does, path < caller.costs.len());
        (is_in && since_ns < begin_ns).then_some(Unpaid {
            caller: self.last,
            path,
            does,
            since_ns,
        })
    }

    /// The costs of all paths of each process that has had a record since.
    pub(crate) fn since(&self, since_ns: u64) -> impl Iterator<Item = (usize, &[Costs])> {
        let all = self.all.iter().enumerate();
        let all = all.filter(move |(_, (_, caller))| caller.since_ns >= since_ns);
        all.map(|(at, (_, caller))| (at, caller.costs.as_slice()))
    }

    /// Of each process the index that the first of its paths has in the profile.
    pub(crate) fn first_nodes(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.all.len()).collect();
        order.sort_by_key(|at| self.all[*at].0);
        let (mut first, mut next) = (vec![0; order.len()], 0);
        for at in order {
            first[at] = next;
            next += self.all[at].1.paths.len();
        }
        first
    }

    /// Follows a record.
    pub(crate) fn add(&mut self, record: &Record<'_>) {
        self.last_ns = record.time_ns;
        let Some(does) = does_after(&record.event) else {
            match record.event {
                Event::Sampled { stack, .. } => self.sampled(record, stack),
                _ => self.other(record),
            }
            return;
        };
        let (has_slices, has_reductions) = (self.has_slices, self.has_reductions);
        let (id, now) = (record.subject, record.time_ns);
        let at = self.place(id);
        let (natives, blocks) = (&self.natives, &mut self.blocks);
        let caller = &mut self.all[at].1;
        caller.charge(now);
        // Without time slices it is not known what held a scheduler.
        if has_slices && moves_on(&record.event) {
            caller.let_go(id, now, blocks);
        }
        if has_slices {
            // The caller runs, even if the record of that is lost.
            caller.does = does;
        }
        match record.event {
            Event::Call { function } => {
                self.living.called(function);
                caller.rows.call(&mut caller.paths, function);
                caller.entered(natives);
            }
            Event::TailCall { function } => {
                self.living.called(function);
                caller.rows.tail_call(&mut caller.paths, function);
                caller.entered(natives);
            }
            Event::Return { .. } => caller.rows.leave(1),
            Event::Unwind { calls } => caller.rows.leave(calls),
            Event::Exit { .. } => {
                self.living.add(record);
                caller.rows.leave(u64::MAX);
            }
            // At its very end a process tells none.
            Event::Out { reductions, .. } if has_reductions && reductions > 0 => {
                caller.reductions(reductions);
            }
            Event::Out { reductions, .. } => caller.reductions = caller.reductions.max(reductions),
            Event::Words { total } => caller.words(total),
            Event::Reductions { total } => caller.reductions(total),
            Event::Counted {
                first,
                second,
                third,
                fourth,
            } => {
                if let Some(shares) = &mut caller.shares {
                    shares.share(&[first, second, third, fourth]);
                }
            }
            _ => {}
        }
    }

    /// The processes and tables that are left at the end.
    pub(super) fn left(&self, recording: &Recording) -> (Vec<Left>, Vec<TableLeft>) {
        let names = recording.names();
        (self.living.left(names), self.living.tables(names))
    }

    /// What held ordinary schedulers for long.
    pub(super) fn blocks(&mut self, recording: &Recording) -> Vec<Block> {
        std::mem::take(&mut self.blocks).finish(recording)
    }

    /// The native code that runs now, by process.
    pub(super) fn in_native(&self, names: &Names) -> Vec<Unfinished> {
        let mut all: Vec<&(Id, Caller)> = self.all.iter().collect();
        all.sort_unstable_by_key(|(id, _)| *id);
        let runs = all.into_iter().filter(|(_, caller)| {
            let is_native = caller.natives.get(caller.current() as usize) == Some(&true);
            is_native && matches!(caller.does, Does::Runs | Does::RunsDirty)
        });
        runs.filter_map(|(id, caller)| {
            Unfinished::of(names, *id, caller.paths.path(caller.current()))
        })
        .collect()
    }

    /// As a profile, with what was counted for each of its nodes, if that was. Where the oldest records were
    /// overwritten, it begins at `since`.
    pub(crate) fn finish(self, recording: &Recording, since: u64) -> (Profile, Vec<Counted>) {
        let header = header_of(recording, since, self.last_ns);
        self.profile(recording.names(), header)
    }

    /// As a profile, with what was counted for each node.
    fn profile(self, names: &Names, header: Header) -> (Profile, Vec<Counted>) {
        let mut counted = Vec::new();
        let mut profile = Profile {
            runs: vec![header],
            ..Profile::default()
        };
        let mut functions = HashMap::new();
        let mut callers = self.all;
        callers.retain(|(_, caller)| !caller.paths.is_empty());
        callers.sort_by_key(|(id, _)| *id);
        for (id, caller) in callers {
            let index = u32::try_from(profile.processes.len()).unwrap_or(u32::MAX);
            profile.processes.push(Process {
                run: 0,
                pid: id.to_string(),
                name: names.process_text(id),
                reductions: caller.reductions,
            });
            let first = u32::try_from(profile.nodes.len()).unwrap_or(u32::MAX);
            let mut costs: HashMap<u32, Cost> = HashMap::new();
            for (at, ((parent, name), of_path)) in
                caller.paths.iter().zip(&caller.costs).enumerate()
            {
                counted.extend(caller.shares.as_ref().map(|shares| shares.of(at)));
                let function = *functions.entry(name).or_insert_with(|| {
                    let function = function_of(names, name);
                    let origin = names.origin(&function.module);
                    if origin != Origin::App {
                        profile.origins.insert(function.module.clone(), origin);
                    }
                    if let Some(native) = names.native(name) {
                        profile.add_native(&function, native);
                    }
                    profile.functions.push(function);
                    u32::try_from(profile.functions.len() - 1).unwrap_or(u32::MAX)
                });
                let cost = Cost {
                    calls: of_path.calls,
                    time_ns: of_path.time_ns,
                    words: sum(of_path.words),
                    dirty_wait_ns: of_path.dirty_wait_ns,
                    tracing_ns: 0,
                };
                if name.cut_frames().is_none() {
                    costs.entry(function).or_default().add(cost);
                }
                profile.nodes.push(Node {
                    process: index,
                    parent: parent.map(|parent| first + parent),
                    function,
                    cost,
                    reductions: sum(of_path.reductions),
                    wait_ns: of_path.wait_ns,
                });
            }
            let mut costs: Vec<_> = costs.into_iter().collect();
            costs.sort_unstable_by_key(|(function, _)| *function);
            let process = Some(index);
            let counts = costs.into_iter().map(|(function, cost)| Count {
                function,
                run: 0,
                process,
                cost,
            });
            profile.counts.extend(counts);
        }
        (profile, counted)
    }
}

pub(super) fn function_of(names: &Names, name: NameId) -> Function {
    if let Some(frames) = name.cut_frames() {
        return Function::cut_at(frames);
    }
    match names.function(name) {
        Some(function) => Function {
            module: function.module.clone(),
            name: function.name.clone(),
            arity: u32::from(function.arity),
        },
        None => Function {
            module: "?".into(),
            name: "?".into(),
            arity: 0,
        },
    }
}

/// The facts about its run, of which nothing is missing since `since`; the last record was at `last`.
pub(crate) fn header_of(recording: &Recording, since: u64, last: u64) -> Header {
    let last = last.max(since);
    let end = recording.end_ns().map_or(last, |end| end.max(last));
    Header {
        kind: Type::CallTime,
        command: recording.description().command.clone(),
        host: recording.description().host.name.clone(),
        otp: recording.description().otp.clone(),
        run_ns: end.saturating_sub(since),
        os_pid: u32::try_from(recording.os_pid()).unwrap_or(0),
        processes: recording.names().processes() as u64,
        tracing: TracingCost::default(),
        patterns: recording.description().settings.patterns.clone(),
        node: recording
            .names()
            .node()
            .map_or_else(String::new, |node| node.name.clone()),
    }
}

/// Calls, time, words and reductions of each function and call path, as far as they were recorded. Where the
/// oldest records were overwritten, from when on nothing is missing; what was called before that is not known.
///
/// # Errors
/// When a block is damaged.
pub fn profile(recording: &Recording) -> Result<Profile, Error> {
    profile_and_losses(recording).map(|(profile, _)| profile)
}

/// As [`profile`], for a part of the recording.
///
/// # Errors
/// When a block is damaged.
pub(crate) fn profile_of(recording: &Recording, part: &Part<'_>) -> Result<Profile, Error> {
    if part.is_whole() {
        return profile(recording);
    }
    let mut callers = Callers::new(recording);
    let losses = part.scan(recording, |record, _| {
        callers.add(record);
        Ok::<(), Error>(())
    })?;
    let since = losses.since_ns.max(part.begin_ns);
    let (mut profile, _) = callers.finish(recording, since);
    if let Some(end_ns) = part.end_ns {
        let length = end_ns.saturating_sub(since);
        let runs = profile.runs.iter_mut();
        runs.for_each(|run| run.run_ns = run.run_ns.min(length));
    }
    Ok(profile)
}

/// As [`profile`], with what is missing.
///
/// # Errors
/// When a block is damaged.
pub fn profile_and_losses(recording: &Recording) -> Result<(Profile, Losses), Error> {
    let mut callers = Callers::new(recording);
    let Read { found, .. } = pass(recording, &mut [&mut callers])?;
    let losses = Losses::of(recording, &found)?;
    let (profile, _) = callers.finish(recording, losses.since_ns);
    Ok((profile, losses))
}
