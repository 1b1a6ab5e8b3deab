//! The flame chart, which shows the calls of each process in order of time, one process beside the other.

use std::io::Write;

use beamline_formats::paths::{Paths, ROOT};
use beamline_formats::profile::{Native, Profile};
use beamline_formats::ring::{Error, Event, Group, Id, Losses, NameId, Names, Record, Recording};
use inferno::flamegraph::color::PaletteMap;
use rustc_hash::FxHashMap;

use super::fold::{self, Function, Process};
use super::svg::Tick;
use super::{By, Drawing, Shape, Width, paint};
use crate::events::batch::Batch;
use crate::events::calls::{Does, does_after, header_of};
use crate::events::pass::{Sink, pass};
use crate::events::spool::{Spool, WAITS_DIRTY};
use crate::events::{Stacks, Step};

/// Parts of the time within which calls are drawn in the order of their first: of less than a pixel.
const PARTS: u64 = 4000;

/// The room of a moment on the axis, as a share of the whole.
const TICK: f64 = 0.075;

/// Paths of a process in order of time.
struct Parts {
    /// Those of the part that is filled, with their times.
    part: Vec<(u32, u64)>,
    known: FxHashMap<u32, usize>,
    left_ns: u64,
    part_ns: u64,
    all: Vec<(u32, u64)>,
}

impl Parts {
    fn new(part_ns: u64) -> Parts {
        Parts {
            part: Vec::new(),
            known: FxHashMap::default(),
            left_ns: part_ns,
            part_ns,
            all: Vec::new(),
        }
    }

    fn add(&mut self, path: u32, mut length_ns: u64) {
        while length_ns > 0 {
            let now = length_ns.min(self.left_ns);
            let next = self.part.len();
            let at = *self.known.entry(path).or_insert(next);
            if at == next {
                self.part.push((path, 0));
            }
            self.part[at].1 += now;
            self.left_ns -= now;
            length_ns -= now;
            if self.left_ns == 0 {
                self.next();
            }
        }
    }

    fn next(&mut self) {
        self.all.append(&mut self.part);
        self.known.clear();
        self.left_ns = self.part_ns;
    }
}

/// The most moments of a process.
const MOMENTS: usize = 128;

/// When a process came to what is shown of it, at equal distances.
#[derive(Debug)]
struct Moments {
    step_ns: u64,
    /// What was shown before, and when that was.
    all: Vec<(u64, u64)>,
}

impl Default for Moments {
    fn default() -> Moments {
        Moments {
            step_ns: 1_000,
            all: Vec::new(),
        }
    }
}

impl Moments {
    /// After `before` nanoseconds that are shown, there are as many more from a moment on.
    fn add(&mut self, before: u64, since_ns: u64, length: u64) {
        loop {
            let next = self.all.len() as u64 * self.step_ns;
            if next >= before.saturating_add(length) {
                return;
            }
            let at = since_ns + next.saturating_sub(before);
            self.all.push((next, at));
            if self.all.len() > MOMENTS {
                let mut at = 0;
                self.all.retain(|_| {
                    at += 1;
                    at % 2 == 1
                });
                self.step_ns *= 2;
            }
        }
    }
}

/// A process, as far as its calls are known.
struct Lane {
    id: Id,
    process: Process,
    paths: Paths<NameId>,
    /// Of each path its stack, if it is shown; none where it has not taken any time yet.
    stacks: Vec<Option<Option<String>>>,
    /// The paths that calls that have not ended were made from.
    below: Vec<u32>,
    path: u32,
    does: Does,
    since_ns: Option<u64>,
    /// The path that took time last, and how much: more may follow.
    last: (u32, u64),
    shown_ns: u64,
    moments: Moments,
}

impl Lane {
    fn new(id: Id, process: Process) -> Lane {
        Lane {
            id,
            process,
            paths: Paths::default(),
            stacks: Vec::new(),
            below: Vec::new(),
            path: ROOT,
            does: Does::Runs,
            since_ns: None,
            last: (ROOT, 0),
            shown_ns: 0,
            moments: Moments::default(),
        }
    }

    /// Its time slice has ended, and it runs no call on a dirty scheduler.
    fn waits(&self) -> bool {
        matches!(self.does, Does::Waits | Does::WaitsForDirty)
    }

    /// The path that its time belongs to.
    fn place(&mut self) -> u32 {
        match self.does {
            Does::WaitsForDirty => self.paths.call(self.path, WAITS_DIRTY),
            _ => self.path,
        }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Begin(call) => {
                self.below.push(self.path);
                self.path = self.paths.call(self.path, call.function);
            }
            Step::End(_) => self.path = self.below.pop().unwrap_or(ROOT),
        }
    }
}

/// Collects what is shown of all processes.
struct Shown<'r> {
    names: &'r Names,
    shape: &'r Shape,
    functions: FxHashMap<NameId, Function>,
    /// Of each process paths and their times, in order: of one path that is gone on with once.
    spool: Spool,
    total_ns: u64,
    /// With what is not chosen.
    all_ns: u64,
}

impl Shown<'_> {
    /// The time of a process until now belongs to the path it is in, if that is meant: those in which it ran, or those
    /// in which it did not.
    #[inline]
    fn settle(&mut self, lane: &mut Lane, now: u64) -> Result<(), Error> {
        let since = lane.since_ns.replace(now).unwrap_or(now);
        let length = now.saturating_sub(since);
        let is_meant = lane.waits() == (self.shape.width == Width::Wait);
        if length == 0 || !is_meant || lane.path == ROOT {
            return Ok(());
        }
        self.all_ns = self.all_ns.saturating_add(length);
        let path = lane.place();
        if !self.is_shown(lane, path) {
            return Ok(());
        }
        lane.moments.add(lane.shown_ns, since, length);
        lane.shown_ns = lane.shown_ns.saturating_add(length);
        self.total_ns = self.total_ns.saturating_add(length);
        if lane.last.0 != path {
            self.put(lane)?;
            lane.last.0 = path;
        }
        lane.last.1 = lane.last.1.saturating_add(length);
        Ok(())
    }

    fn put(&mut self, lane: &mut Lane) -> Result<(), Error> {
        let (path, length) = std::mem::replace(&mut lane.last, (ROOT, 0));
        if length > 0 {
            self.spool.push(lane.id, (length, path))?;
        }
        Ok(())
    }

    fn is_shown(&mut self, lane: &mut Lane, path: u32) -> bool {
        let at = path as usize;
        if lane.stacks.len() <= at {
            lane.stacks.resize(at + 1, None);
        }
        if lane.stacks[at].is_none() {
            lane.stacks[at] = Some(self.stack(lane, path));
        }
        matches!(lane.stacks[at], Some(Some(_)))
    }

    fn stack(&mut self, lane: &Lane, path: u32) -> Option<String> {
        let (names, shape) = (self.names, self.shape);
        let mut path: Vec<NameId> = lane.paths.path(path).collect();
        path.reverse();
        for function in &path {
            let new = || match names.function(*function) {
                Some(f) => {
                    let mfa = (f.module.as_str(), f.name.as_str(), u32::from(f.arity));
                    Function::new(shape, mfa, names.native(*function))
                }
                None if *function == WAITS_DIRTY => Function::dirty_wait(),
                None if let Some(frames) = function.cut_frames() => Function::cut_at(frames),
                None => Function::new(shape, ("?", "?", 0), None),
            };
            self.functions.entry(*function).or_insert_with(new);
        }
        let path = path.iter();
        let path = path.filter_map(|function| self.functions.get(function));
        fold::stack(shape, &lane.process, path)
    }
}

/// Follows the calls of a recording.
struct Lanes<'r> {
    calls: Stacks,
    all: Vec<Lane>,
    known: FxHashMap<Id, usize>,
    shown: Shown<'r>,
    last_ns: u64,
}

impl<'r> Lanes<'r> {
    fn new(recording: &'r Recording, shape: &'r Shape) -> Result<Lanes<'r>, Error> {
        Ok(Lanes {
            calls: Stacks::new(recording),
            all: Vec::new(),
            known: FxHashMap::default(),
            shown: Shown {
                names: recording.names(),
                shape,
                functions: FxHashMap::default(),
                spool: Spool::new()?,
                total_ns: 0,
                all_ns: 0,
            },
            last_ns: 0,
        })
    }

    fn add(&mut self, record: &Record<'_>) -> Result<(), Error> {
        let (id, now) = (record.subject, record.time_ns);
        self.last_ns = now;
        self.wait(record)?;
        let (all, known, shown) = (&mut self.all, &mut self.known, &mut self.shown);
        let mut done = Ok(());
        self.calls.add(record, |step| {
            let at = *known.entry(id).or_insert_with(|| {
                let (shape, name) = (shown.shape, shown.names.process_text(id));
                let process = Process::new(shape, &id.to_string(), "", &name);
                all.push(Lane::new(id, process));
                all.len() - 1
            });
            if done.is_ok() {
                done = shown.settle(&mut all[at], now);
            }
            all[at].step(&step);
        });
        done
    }

    /// A process that calls something runs; one that is in a call and runs no more waits.
    fn wait(&mut self, record: &Record<'_>) -> Result<(), Error> {
        let does = match (record.event, does_after(&record.event)) {
            // What it is in ends with it.
            (Event::Exit { .. }, _) => Does::Runs,
            (_, Some(does)) => does,
            (_, None) => return Ok(()),
        };
        let Some(at) = self.known.get(&record.subject) else {
            return Ok(());
        };
        let lane = &mut self.all[*at];
        let waits = matches!(does, Does::Waits | Does::WaitsForDirty);
        if lane.does == does || waits && lane.path == ROOT {
            return Ok(());
        }
        let done = self.shown.settle(lane, record.time_ns);
        lane.does = does;
        done
    }

    /// The chart as folded stacks, in order of time; what all processes are called; the axis; and how long all is that
    /// could have been chosen.
    fn finish(mut self) -> Result<Finished, String> {
        let fail = |e: Error| e.to_string();
        for lane in &mut self.all {
            self.shown.settle(lane, self.last_ns).map_err(fail)?;
            self.shown.put(lane).map_err(fail)?;
        }
        self.all.sort_unstable_by_key(|lane| lane.id);
        let (names, shape) = (self.shown.names, self.shown.shape);
        let processes = self.all.iter().map(|lane| lane.id);
        let processes = processes.map(|id| (id.to_string(), names.process_text(id)));
        fold::check(shape, functions(names), processes)?;
        let total_ns = self.shown.total_ns.max(1);
        let part_ns = total_ns.div_ceil(PARTS).max(1);
        let (mut lines, mut processes) = (Vec::new(), Vec::new());
        let (mut axis, mut before) = (Vec::new(), 0);
        for lane in self.all {
            axis.extend(ticks(&lane, before, total_ns));
            before += lane.shown_ns;
            let mut parts = Parts::new(part_ns);
            let each = |(length, path)| {
                parts.add(path, length);
                Ok::<(), Error>(())
            };
            self.shown.spool.read(lane.id, each).map_err(fail)?;
            parts.next();
            for (path, time) in parts.all {
                if let Some(Some(Some(stack))) = lane.stacks.get(path as usize) {
                    lines.push(format!("{stack} {time}"));
                }
            }
            processes.push(lane.process);
        }
        Ok(Finished {
            lines,
            processes,
            axis,
            all_ns: self.shown.all_ns,
        })
    }
}

/// What the lanes of a chart become.
struct Finished {
    lines: Vec<String>,
    processes: Vec<Process>,
    axis: Vec<Tick>,
    all_ns: u64,
}

/// The places of the axis below a process: as far from each other as texts need.
fn ticks(lane: &Lane, before: u64, total_ns: u64) -> Vec<Tick> {
    #[expect(clippy::cast_precision_loss, reason = "a place in a picture")]
    let share = |ns: u64| (before + ns) as f64 / total_ns as f64;
    let end = share(lane.shown_ns);
    let (mut ticks, mut free) = (Vec::new(), 0.0);
    for (shown_ns, at_ns) in &lane.moments.all {
        let place = share(*shown_ns);
        if place >= free && place + TICK <= end {
            free = place + TICK;
            let text = beamline_formats::name::time(*at_ns);
            ticks.push(Tick { share: place, text });
        }
    }
    ticks
}

impl Sink for Lanes<'_> {
    fn take(&mut self, batch: &Batch) -> Result<(), Error> {
        batch.whole().try_for_each(|record| self.add(&record))
    }
}

fn functions(names: &Names) -> Vec<(&str, &str, u32)> {
    let functions = names.functions();
    let functions = functions.map(|f| (f.module.as_str(), f.name.as_str(), u32::from(f.arity)));
    functions.collect()
}

/// All functions, and which of them are native code.
fn natives(names: &Names) -> impl Iterator<Item = ((&str, &str, u32), Option<Native>)> {
    let all = names.functions_by_name();
    all.map(|(name, f)| {
        let function = (f.module.as_str(), f.name.as_str(), u32::from(f.arity));
        (function, names.native(name))
    })
}

/// The calls of a recording in order of time: what each process did while it ran, or with [`Width::Wait`] while it did
/// not. The axis below them tells when that was. A function that calls itself, directly or not, is one frame.
pub struct Chart {
    shape: Shape,
    lines: Vec<String>,
    axis: Vec<Tick>,
    all_ns: u64,
    palette: PaletteMap,
    /// The run, without its calls.
    pub run: Profile,
    /// What is missing.
    pub losses: Losses,
}

impl Chart {
    /// Reads a recording.
    ///
    /// # Errors
    /// One line: the recording has no calls, a block is damaged, nothing that was chosen is in it.
    pub fn read(recording: &Recording, shape: &Shape) -> Result<Chart, String> {
        let mut shape = shape.clone();
        if shape.by == By::None {
            // What processes do at the same time stands one beside the other: each needs its name.
            shape.by = By::Process;
        }
        if !matches!(shape.width, Width::Time | Width::Wait) || shape.is_reversed {
            return Err(
                "--chart shows calls in order of time: leave out --reverse, and use --width time or wait"
                    .into(),
            );
        }
        if let Some(line) = recording.lacks("a flame chart", &[Group::Calls, Group::Returns]) {
            return Err(line);
        }
        let fail = |e: Error| e.to_string();
        let mut lanes = Lanes::new(recording, &shape).map_err(fail)?;
        let read = pass(recording, &mut [&mut lanes]).map_err(fail)?;
        let losses = Losses::of(recording, &read.found).map_err(fail)?;
        let run = Profile {
            runs: vec![header_of(recording, losses.since_ns, lanes.last_ns)],
            ..Profile::default()
        };
        let done = lanes.finish()?;
        let palette = super::palette(&shape, natives(recording.names()), done.processes);
        Ok(Chart {
            shape,
            lines: done.lines,
            axis: done.axis,
            all_ns: done.all_ns,
            palette,
            run,
            losses,
        })
    }

    /// Draws it.
    ///
    /// # Errors
    /// One line: there is nothing to draw, or `out` refuses a write.
    pub fn draw<W: Write>(self, drawing: &Drawing, out: W) -> Result<(), String> {
        let mut drawing = Drawing {
            shape: self.shape,
            ..drawing.clone()
        };
        drawing.tell_part(&self.lines, self.all_ns);
        drawing
            .subtitle
            .push_str("; the axis has the time since the recording began");
        paint(self.lines, self.palette, &drawing, Some(&self.axis), out)
    }
}
