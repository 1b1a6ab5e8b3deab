//! The flame chart: the calls of each process in order of time, one process beside the other.

use std::collections::HashMap;
use std::io::Write;

use super::fold::{self, Function, Process};
use super::{By, Drawing, Shape, Width, paint};
use crate::ring::spool::{self, Spool, WAITS};
use crate::ring::tree::Tree;
use crate::ring::{Group, Id, NameId, Names, Recording};

/// Parts of the time within which calls are drawn in the order of their first: of less than a pixel.
const PARTS: u64 = 4000;

/// Paths in order of time.
struct Parts {
    /// Those of the part that is filled, with their times.
    part: Vec<(usize, u64)>,
    known: HashMap<usize, usize>,
    left_ns: u64,
    part_ns: u64,
    all: Vec<(usize, u64)>,
}

impl Parts {
    fn new(part_ns: u64) -> Parts {
        Parts {
            part: Vec::new(),
            known: HashMap::new(),
            left_ns: part_ns,
            part_ns,
            all: Vec::new(),
        }
    }

    fn add(&mut self, path: usize, mut length_ns: u64) {
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

/// Hands over each time with one path: those in which the process ran, or those in which it did not.
fn spans(
    spool: &Spool,
    id: Id,
    tree: &mut Tree,
    width: Width,
    mut each: impl FnMut(&Tree, usize, u64),
) -> Result<(), String> {
    let mut below: Vec<Option<usize>> = Vec::new();
    let (mut path, mut waits) = (None, false);
    let mut since = None;
    let done: Result<(), std::io::Error> = spool.read(id, |item| {
        let length = item.at_ns.saturating_sub(since.unwrap_or(item.at_ns));
        since = Some(item.at_ns);
        if let Some(path) = path
            && length > 0
            && waits == (width == Width::Wait)
        {
            each(tree, path, length);
        }
        match (item.function == WAITS, item.is_end) {
            (true, is_end) => waits = !is_end,
            (false, true) => path = below.pop().flatten(),
            (false, false) => {
                below.push(path);
                path = Some(tree.call(path, item.function));
            }
        }
        Ok(())
    });
    done.map_err(|e| e.to_string())
}

/// The stacks of a recording's paths.
struct Stacks<'r> {
    names: &'r Names,
    shape: &'r Shape,
    functions: HashMap<NameId, Function>,
}

impl Stacks<'_> {
    fn of(&mut self, tree: &Tree, process: &Process, path: usize) -> Option<String> {
        let (names, shape) = (self.names, self.shape);
        let mut path: Vec<NameId> = tree.path(Some(path)).collect();
        path.reverse();
        for function in &path {
            let new = || match names.function(*function) {
                Some(f) => Function::new(shape, &f.module, &f.name, u32::from(f.arity)),
                None => Function::new(shape, "?", "?", 0),
            };
            self.functions.entry(*function).or_insert_with(new);
        }
        let path = path.iter();
        let path = path.filter_map(|function| self.functions.get(function));
        fold::stack(shape, process, path)
    }
}

/// The chart as folded stacks, in order of time.
fn lines(recording: &Recording, shape: &Shape) -> Result<(Vec<String>, Vec<Process>), String> {
    let names = recording.names();
    let (spool, _) = spool::calls(recording, usize::MAX).map_err(|e| e.to_string())?;
    let ids = spool.processes();
    let processes = ids.iter();
    let processes = processes.map(|id| (id.to_string(), names.process_text(*id)));
    fold::check(shape, functions(names), processes)?;
    let mut stacks = Stacks {
        names,
        shape,
        functions: HashMap::new(),
    };
    // Once to know how long all is, so that the parts can be made.
    let mut total: u64 = 0;
    let (mut trees, mut all) = (Vec::new(), Vec::new());
    for id in &ids {
        let process = Process::new(shape, &id.to_string(), "", &names.process_text(*id));
        let (mut tree, mut known) = (Tree::default(), HashMap::new());
        spans(&spool, *id, &mut tree, shape.width, |tree, path, length| {
            let new = || stacks.of(tree, &process, path);
            if known.entry(path).or_insert_with(new).is_some() {
                total = total.saturating_add(length);
            }
        })?;
        trees.push((tree, known));
        all.push(process);
    }
    let part_ns = total.div_ceil(PARTS).max(1);
    let mut lines = Vec::new();
    for (id, (mut tree, known)) in ids.into_iter().zip(trees) {
        let stack = |path: usize| known.get(&path).and_then(Option::as_ref);
        let mut parts = Parts::new(part_ns);
        spans(&spool, id, &mut tree, shape.width, |_, path, length| {
            if stack(path).is_some() {
                parts.add(path, length);
            }
        })?;
        parts.next();
        for (path, time) in parts.all {
            lines.extend(stack(path).map(|stack| format!("{stack} {time}")));
        }
    }
    Ok((lines, all))
}

fn functions(names: &Names) -> Vec<(&str, &str, u32)> {
    let functions = names.functions();
    let functions = functions.map(|f| (f.module.as_str(), f.name.as_str(), u32::from(f.arity)));
    functions.collect()
}

/// Draws the calls of a recording in order of time: what each process did while it ran, or with [`Width::Wait`] while
/// it did not. A function that calls itself, directly or not, is one frame.
///
/// # Errors
/// One line: the recording has no calls, nothing that was chosen is in it, or `out` refuses a write.
pub fn chart<W: Write>(recording: &Recording, drawing: &Drawing, out: W) -> Result<(), String> {
    let mut drawing = drawing.clone();
    if drawing.shape.by == By::None {
        // What processes do at the same time stands one beside the other: each needs its name.
        drawing.shape.by = By::Process;
    }
    let shape = &drawing.shape;
    if !matches!(shape.width, Width::Time | Width::Wait) || shape.is_reversed {
        return Err(
            "a chart is in order of time: it has no --reverse, and --width is time or wait".into(),
        );
    }
    if let Some(line) = recording.lacks("a flame chart", &[Group::Calls, Group::Returns]) {
        return Err(line);
    }
    let names = recording.names();
    let (lines, processes) = lines(recording, shape)?;
    let palette = super::palette(shape, functions(names), processes);
    paint(lines, palette, &drawing, true, out)
}
