//! Makes folded stacks of call paths: which frames a path has, and in what order.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use beamline_formats::name;
use beamline_formats::profile::{self, Native, Node, Pattern, Profile, WAITS_FOR_DIRTY};

use super::{By, Shape, Width};
use crate::choice::Choice;
use crate::events::MEANWHILE;

/// The frame of a function. That of a module does not hide its native code, which has one of its own.
pub(super) fn function_frame(
    by: By,
    (module, name, arity): (&str, &str, u32),
    native: Option<Native>,
) -> String {
    let text = match (by, native) {
        // What stands where a path was cut is of no module.
        _ if module.is_empty() => name::mfa(module, name, arity),
        (By::Module, None) => name::module(module),
        (By::Module, Some(native)) => format!("{} ({})", name::module(module), native.name()),
        _ => name::mfa(module, name, arity),
    };
    name::frame(&text)
}

/// A function that paths consist of.
pub(super) struct Function {
    /// Its frame.
    frame: String,
    /// Paths begin here.
    is_first: bool,
    /// Paths end here.
    is_last: bool,
    /// What is above it is of another process.
    is_meanwhile: bool,
}

impl Function {
    pub(super) fn new(shape: &Shape, mfa: (&str, &str, u32), native: Option<Native>) -> Function {
        let (module, name, arity) = mfa;
        let only = shape.only.as_ref();
        Function {
            frame: function_frame(shape.by, mfa, native),
            is_first: only.is_some_and(|only| only.has_function(module, name, arity)),
            is_last: shape
                .hide_below
                .iter()
                .any(|pattern| pattern.matches(module, name, arity)),
            is_meanwhile: module.is_empty() && name.starts_with(MEANWHILE),
        }
    }
}

impl Function {
    /// What stands above a function that waits for a dirty scheduler.
    pub(super) fn dirty_wait() -> Function {
        Function {
            frame: WAITS_FOR_DIRTY.to_owned(),
            is_first: false,
            is_last: false,
            is_meanwhile: false,
        }
    }

    /// What stands where a path was cut.
    pub(super) fn cut_at(frames: u32) -> Function {
        Function {
            frame: profile::Function::cut_at(frames).to_string(),
            is_first: false,
            is_last: false,
            is_meanwhile: false,
        }
    }
}

/// A process that paths are of.
pub(super) struct Process {
    frame: Option<String>,
    /// All of its paths are meant.
    is_meant: bool,
}

impl Process {
    /// `mark` stands behind the pid where there are several runs.
    pub(super) fn new(shape: &Shape, pid: &str, mark: &str, name: &str) -> Process {
        let text = match shape.by {
            By::None | By::Module => None,
            By::Name if !name.is_empty() => Some(name.to_owned()),
            By::Name | By::Process => Some(format!("{pid}{mark} {name}")),
        };
        let only = shape.only.as_ref();
        Process {
            frame: text.map(|text| name::frame(text.trim_end())),
            is_meant: only.is_none_or(|only| only.has_process_named(pid, name)),
        }
    }
}

impl Process {
    /// Its frame, where there is one.
    pub(super) fn into_frame(self) -> Option<String> {
        self.frame
    }
}

/// The folded stack of a path, the oldest call first; `None` where the path is not chosen.
pub(super) fn stack<'a>(
    shape: &Shape,
    process: &'a Process,
    path: impl IntoIterator<Item = &'a Function>,
) -> Option<String> {
    let mut frames: Vec<&str> = Vec::new();
    let mut is_in = process.is_meant;
    for function in path {
        is_in |= function.is_first;
        if !is_in && function.is_meanwhile {
            return None;
        }
        if !is_in {
            continue;
        }
        if shape.by != By::Module || frames.last() != Some(&function.frame.as_str()) {
            frames.push(&function.frame);
        }
        if function.is_last {
            break;
        }
    }
    if frames.is_empty() {
        return None;
    }
    if shape.is_reversed {
        frames.reverse();
    }
    if let Some(frame) = &process.frame {
        frames.insert(0, frame);
    }
    Some(frames.join(";"))
}

/// What is behind the pid of a process.
fn mark(profile: &Profile, run: u32) -> String {
    let mut text = String::new();
    if profile.runs.len() > 1 {
        let _ = write!(text, "@{}", profile.runs[run as usize].os_pid);
    }
    text
}

/// The processes of a profile.
pub(super) fn processes(profile: &Profile, shape: &Shape) -> Vec<Process> {
    let processes = profile.processes.iter();
    processes
        .map(|process| {
            let mark = mark(profile, process.run);
            Process::new(shape, &process.pid, &mark, &process.name)
        })
        .collect()
}

/// What a path costs itself, and what it costs while it waits for a dirty scheduler.
fn costs_of(width: Width, node: &Node) -> (u64, u64) {
    let dirty = match width {
        Width::Wait => node.cost.dirty_wait_ns.min(node.wait_ns),
        _ => 0,
    };
    (width.cost(node) - dirty, dirty)
}

/// The cost of each path; paths that cost nothing are left out.
pub(super) fn costs(profile: &Profile, shape: &Shape) -> BTreeMap<String, u64> {
    let functions: Vec<Function> = profile
        .functions
        .iter()
        .map(|f| Function::new(shape, (&f.module, &f.name, f.arity), profile.native(f)))
        .collect();
    let processes = processes(profile, shape);
    let dirty_wait = Function::dirty_wait();
    let mut costs: BTreeMap<String, u64> = BTreeMap::new();
    let mut path = Vec::new();
    for node in &profile.nodes {
        let (cost, dirty) = costs_of(shape.width, node);
        if cost == 0 && dirty == 0 {
            continue;
        }
        path.clear();
        path.push(&functions[node.function as usize]);
        let mut above = node.parent;
        while let Some(index) = above {
            let node = &profile.nodes[index as usize];
            path.push(&functions[node.function as usize]);
            above = node.parent;
        }
        let process = &processes[node.process as usize];
        let path = path.iter().rev().copied();
        let mut add = |stack: Option<String>, cost: u64| {
            if let Some(stack) = stack.filter(|_| cost > 0) {
                let sum = costs.entry(stack).or_default();
                *sum = sum.saturating_add(cost);
            }
        };
        add(stack(shape, process, path.clone()), cost);
        if dirty > 0 {
            add(stack(shape, process, path.chain([&dirty_wait])), dirty);
        }
    }
    costs
}

/// One line where what is chosen is not there.
pub(super) fn check<'a>(
    shape: &Shape,
    functions: impl IntoIterator<Item = (&'a str, &'a str, u32)> + Clone,
    processes: impl IntoIterator<Item = (String, String)>,
) -> Result<(), String> {
    let all = || functions.clone().into_iter();
    if let Some(only) = &shape.only {
        let mut is_there =
            all().any(|(module, name, arity)| only.has_function(module, name, arity));
        let mut others = Vec::new();
        for (pid, name) in processes {
            is_there |= only.has_process_named(&pid, &name);
            others.push(name);
        }
        if !is_there {
            return Err(only.matches_nothing("function or process", all(), others));
        }
    }
    for pattern in &shape.hide_below {
        let matches = |(module, name, arity)| Pattern::matches(pattern, module, name, arity);
        if !all().any(matches) {
            let choice = Choice::from(pattern.to_string().as_str());
            return Err(choice.matches_nothing("function", all(), []));
        }
    }
    Ok(())
}

/// Checks the choices of a shape against a profile.
pub(super) fn check_profile(profile: &Profile, shape: &Shape) -> Result<(), String> {
    let functions = profile.functions.iter();
    let functions = functions.map(|f| (f.module.as_str(), f.name.as_str(), f.arity));
    let processes = profile.processes.iter();
    let processes = processes.map(|process| (process.pid.clone(), process.name.clone()));
    check(shape, functions, processes)
}
