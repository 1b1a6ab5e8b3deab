//! The profile of a whole run: one session, all processes, and all functions or those of the patterns asked for. It
//! covers all modules, those loaded later, too. The runtime writes it as a file when the machine ends.

use std::collections::BTreeSet;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use beamline_formats::name;
use beamline_formats::profile::{
    Cost, Count, Function, Header, Native, Origin, Paid, Request, TracingCost, Type, Writer,
};
use beamline_settings::variable::Variable as _;

use super::origin::Origins;
use super::{patterns, span};
use crate::hash::HashMap;
use crate::loader::module::Mfa;
use crate::process;
use crate::sys::chance::clock::outside_now;
use crate::sys::chance::{self, names, ticks};
use crate::sys::stderr::complain;
use crate::term::counted::last_node_name;
use crate::term::{Atom, Pid};
use crate::trace::breakpoint::change::end_later;
use crate::trace::costs::account::Measures;
use crate::trace::costs::count::Counter;
use crate::trace::costs::node;
use crate::trace::costs::node::Arena;
use crate::trace::session::tracer::TracerId;
use crate::trace::session::{self, OnLoad, Profiled, Shared};
use crate::trace::session::{flags, kind};

/// A run that is profiled.
pub(in crate::trace) struct Run {
    session: Arc<Shared>,
    request: Request,
    command: Vec<String>,
    otp: String,
    tracing: TracingCost,
    started: Instant,
    /// The time that the profile is of has begun.
    begun: AtomicBool,
    before: Mutex<Before>,
    written: Mutex<bool>,
}

/// What was counted before the time that the profile is of.
#[derive(Default)]
struct Before {
    counters: HashMap<Mfa, u64>,
    nodes: HashMap<(Pid, u32), node::Counted>,
}

static RUN: OnceLock<Run> = OnceLock::new();

/// Starts the profile that the environment asks for, if it does: call before any module is loaded.
/// `command` is the emulator's command line, `otp` the release whose libraries run. Where the profile is one of time that
/// passes as outside, `cost_of` measures what such tracing costs.
///
/// # Errors
/// One line when what the environment asks for cannot be understood.
pub(crate) fn start_from_environment(
    command: Vec<String>,
    otp: String,
    cost_of: impl FnOnce(Measures) -> TracingCost,
) -> Result<(), String> {
    if let Some(mut request) = Request::from_environment()? {
        request.libraries.add_those_of(&command);
        let is_timed = request.kind == Type::CallTime && !chance::form().is_virtual();
        let tracing = match is_timed {
            true => cost_of(profiled(&request).measures),
            false => TracingCost::default(),
        };
        start(request, command, otp, tracing);
    }
    Ok(())
}

/// Starts a profile. Only the first call does anything.
fn start(request: Request, command: Vec<String>, otp: String, tracing: TracingCost) {
    let run = RUN.get_or_init(|| {
        let profiled = profiled(&request);
        let only_count = profiled.only_count;
        let name = Atom::new("beamline_profile");
        let session =
            session::create(name, None, Some(profiled), None).expect("the first session there is");
        let kinds = if only_count {
            kind::COUNT
        } else {
            kind::PROFILE
        };
        *session.on_load.lock() = Some(OnLoad::counting(kinds));
        session
            .new_processes
            .lock()
            .change(true, flags::CALL, Some(TracerId::NOBODY));
        flags::update_new();
        // The clock is compared with the time from here on.
        let _ = ticks::Ticks::clock();
        Run {
            command,
            otp,
            tracing,
            ..Run::new(session, request)
        }
    });
    let Request { span, folder, .. } = &run.request;
    let switch = span::Switch {
        begin: Box::new(move || run.forget()),
        end: Box::new(move || {
            write_at_end();
            end_later(run.session.clone());
        }),
    };
    span::follow(span, folder, switch);
    span::end_with_command(folder);
}

/// Whether there is a profile of this run.
pub(in crate::trace) fn is_asked() -> bool {
    RUN.get().is_some()
}

/// Which measures a request asks for, and of which functions.
pub(in crate::trace) fn profiled(request: &Request) -> Profiled {
    let tree = request.call_tree;
    let only_count = request.kind == Type::CallCount && !tree;
    let measures = Measures {
        tree,
        time: request.kind == Type::CallTime,
        words: request.kind == Type::CallMemory || tree && request.kind == Type::CallTime,
        reductions: tree,
    };
    let patterns = request.patterns.clone();
    Profiled {
        only_count,
        ..Profiled::new(measures, move |mfa| patterns::is_wanted(&patterns, mfa))
    }
}

/// Writes the profile so far, where there is one: what is called when the machine ends. Only the first
/// call does anything.
pub(crate) fn write_at_end() {
    let Some(profile) = RUN.get() else { return };
    let mut written = profile
        .written
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    if std::mem::replace(&mut *written, true) {
        return;
    }
    let path = profile.request.file(names::own_pid());
    if let Err(error) = profile.write_file() {
        complain!("beamline: {}: {error}", path.display());
    }
    let called = profile.called();
    let Request {
        patterns, folder, ..
    } = &profile.request;
    patterns::tell(patterns, folder, |pattern| {
        called.iter().any(|mfa| patterns::is_meant(pattern, mfa))
    });
    span::note_written();
}

impl Run {
    /// A run that begins now.
    pub(in crate::trace) fn new(session: Arc<Shared>, request: Request) -> Run {
        Run {
            session,
            begun: AtomicBool::new(request.span.begins_at_once()),
            request,
            command: Vec::new(),
            otp: String::new(),
            tracing: TracingCost::default(),
            started: outside_now(),
            before: Mutex::default(),
            written: Mutex::new(false),
        }
    }

    fn header(&self) -> Header {
        Header {
            kind: self.request.kind,
            command: self.command.clone(),
            host: host_name(),
            otp: self.otp.clone(),
            run_ns: u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX),
            os_pid: names::own_pid(),
            node: own_node(),
            processes: process::processes_made(),
            patterns: self.request.patterns.clone(),
            tracing: self.tracing,
        }
    }

    fn write_file(&self) -> io::Result<()> {
        let header = self.header();
        let mut writer = Writer::create(&self.request.file(header.os_pid), &header)?;
        self.write_to(&mut writer)?;
        writer.commit()
    }

    /// What was counted so far does not count.
    fn forget(&self) {
        let profiled = self.session.profile.as_ref().expect("a profile's session");
        let arenas = self.session.arenas.lock().clone();
        let nodes = arenas.iter().flat_map(|arena| {
            let nodes = arena.nodes();
            nodes.map(|(at, _)| ((arena.pid, at), arena.counted(at)))
        });
        let before = Before {
            nodes: nodes.collect(),
            counters: totals(&profiled.counters.lock()),
        };
        *self.before() = before;
        self.begun.store(true, Ordering::Release);
    }

    fn before(&self) -> std::sync::MutexGuard<'_, Before> {
        self.before.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The functions that were called.
    fn called(&self) -> Vec<Mfa> {
        let profiled = self.session.profile.as_ref().expect("a profile's session");
        let mut called: Vec<Mfa> = if profiled.only_count {
            let counters = profiled.counters.lock();
            let counted = counters.iter().filter(|(_, counter)| counter.read() > 0);
            counted.map(|(mfa, _)| *mfa).collect()
        } else {
            let accounts = profiled.accounts.lock();
            let arenas = self.session.arenas.lock();
            let nodes = arenas.iter().flat_map(|arena| arena.nodes());
            let called = nodes.map(|(_, node)| node.account());
            let functions = called.filter(|account| node::cut_frames(*account).is_none());
            functions.map(|account| accounts[&account]).collect()
        };
        called.sort_by_cached_key(|mfa| (mfa.module.name(), mfa.function.name(), mfa.arity));
        called.dedup();
        called
    }

    /// Writes the profile so far.
    #[cfg(test)]
    pub(in crate::trace) fn write<W: io::Write>(&self, out: W) -> io::Result<()> {
        let mut writer = Writer::new(out, &self.header())?;
        self.write_to(&mut writer)?;
        writer.finish().map(drop)
    }

    fn write_to<W: io::Write>(&self, writer: &mut Writer<W>) -> io::Result<()> {
        if !self.begun.load(Ordering::Acquire) {
            // The run was shorter than the delay. Processes still run, and what they do is not of it either.
            return Ok(());
        }
        let profiled = self.session.profile.as_ref().expect("a profile's session");
        let origins = Origins::new(&self.request.libraries);
        if profiled.only_count {
            let mut counters = totals(&profiled.counters.lock());
            for (mfa, calls) in &self.before().counters {
                counters.entry(*mfa).and_modify(|all| *all -= calls);
            }
            return write_counts(writer, &origins, counters);
        }
        write_measured(writer, &origins, self, profiled)
    }
}

fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().to_owned()
}

/// Functions with an index in the file.
#[derive(Default)]
struct Names {
    functions: HashMap<Mfa, u32>,
}

impl Names {
    /// Writes the names of these functions, module by module.
    fn write<W: io::Write>(
        writer: &mut Writer<W>,
        origins: &Origins,
        natives: &HashMap<Mfa, Native>,
        mut all: Vec<Mfa>,
    ) -> io::Result<Names> {
        all.sort_by_cached_key(|mfa| (mfa.module.name(), mfa.function.name(), mfa.arity));
        all.dedup();
        let mut names = Names::default();
        let mut modules = Vec::new();
        for mfa in &all {
            if modules
                .last()
                .is_none_or(|(module, _)| *module != mfa.module)
            {
                let index = writer.module(mfa.module.name(), origins.of(mfa.module))?;
                modules.push((mfa.module, index));
            }
        }
        let modules: HashMap<Atom, u32> = modules.into_iter().collect();
        for mfa in all {
            let index = writer.function(
                modules[&mfa.module],
                mfa.function.name(),
                u32::from(mfa.arity),
                natives.get(&mfa).copied(),
            )?;
            names.functions.insert(mfa, index);
        }
        Ok(names)
    }
}

/// Writes what stands where paths were cut; gives its index by account.
fn write_cuts<W: io::Write>(
    writer: &mut Writer<W>,
    accounts: &[u32],
) -> io::Result<HashMap<u32, u32>> {
    let mut cuts = HashMap::default();
    for (account, frames) in accounts
        .iter()
        .filter_map(|account| Some((account, node::cut_frames(*account)?)))
    {
        let cut = Function::cut_at(frames);
        let module = writer.module(&cut.module, Origin::App)?;
        cuts.insert(
            *account,
            writer.function(module, &cut.name, cut.arity, None)?,
        );
    }
    Ok(cuts)
}

/// The calls of each function, in all versions of its module.
fn totals(counters: &[(Mfa, Counter)]) -> HashMap<Mfa, u64> {
    let mut totals: HashMap<Mfa, u64> = HashMap::default();
    for (mfa, counter) in counters {
        *totals.entry(*mfa).or_default() += counter.read();
    }
    totals
}

/// The name of this node; empty without one. A node that ends by `init:stop` has lost it when its profile is written.
fn own_node() -> String {
    let name = last_node_name();
    name.map(|name| name.name().to_owned()).unwrap_or_default()
}

/// The cost of a function in the one run of a file.
fn count(function: u32, process: Option<u32>, cost: Cost) -> Count {
    Count {
        function,
        run: 0,
        process,
        cost,
    }
}

/// Counts of functions, of all processes together.
fn write_counts<W: io::Write>(
    writer: &mut Writer<W>,
    origins: &Origins,
    mut totals: HashMap<Mfa, u64>,
) -> io::Result<()> {
    totals.retain(|_, calls| *calls != 0);
    // Counters alone do not look at what they count.
    let natives = HashMap::default();
    let names = Names::write(writer, origins, &natives, totals.keys().copied().collect())?;
    let mut rows: Vec<(u32, u64)> = totals
        .iter()
        .map(|(mfa, calls)| (names.functions[mfa], *calls))
        .collect();
    rows.sort_unstable();
    for (function, calls) in rows {
        let cost = Cost {
            calls,
            ..Cost::default()
        };
        writer.count(&count(function, None, cost))?;
    }
    Ok(())
}

/// What was counted as the file has it, where tracing costs `tracing`.
fn cost(counted: node::Counted, tracing: TracingCost) -> Cost {
    let measured = Cost {
        calls: counted.calls,
        time_ns: ticks::to_ns(counted.ticks),
        words: u64::try_from(counted.words).unwrap_or(0),
        dirty_wait_ns: ticks::to_ns(counted.dirty_wait_ticks),
        tracing_ns: 0,
    };
    let paid = Paid {
        // Numbers of a process that runs are not of one moment.
        entered: counted.calls.saturating_sub(counted.again),
        resumed: counted.resumed,
        again: counted.again,
    };
    measured.without_tracing(tracing.of(paid))
}

/// What was counted since then.
fn less(now: node::Counted, then: node::Counted) -> node::Counted {
    node::Counted {
        calls: now.calls - then.calls,
        ticks: now.ticks - then.ticks,
        words: now.words - then.words,
        reductions: now.reductions - then.reductions,
        dirty_wait_ticks: now.dirty_wait_ticks - then.dirty_wait_ticks,
        again: now.again - then.again,
        resumed: now.resumed - then.resumed,
    }
}

/// A process's nodes as they were when looked at.
struct Seen {
    arena: Arc<Arena>,
    nodes: Vec<(u32, u32, node::Counted)>,
}

fn write_measured<W: io::Write>(
    writer: &mut Writer<W>,
    origins: &Origins,
    profile: &Run,
    profiled: &Profiled,
) -> io::Result<()> {
    let arenas = profile.session.arenas.lock().clone();
    let mut all: Vec<Seen> = Vec::with_capacity(arenas.len());
    let before = &profile.before().nodes;
    for arena in arenas {
        let since = |at, counted| match before.get(&(arena.pid, at)) {
            Some(before) => less(counted, *before),
            None => counted,
        };
        let nodes = arena
            .nodes()
            .map(|(at, n)| (n.parent(), n.account(), since(at, arena.counted(at))))
            .collect();
        all.push(Seen { arena, nodes });
    }
    // Behind the nodes: processes may run code that is loaded meanwhile, and its accounts are there before its nodes.
    let accounts = profiled.accounts.lock().clone();
    all.retain(|seen| !seen.nodes.is_empty());
    all.sort_by_key(|seen| (seen.arena.pid.number(), seen.arena.pid.serial()));
    let used = all.iter().flat_map(|seen| &seen.nodes);
    let used: BTreeSet<u32> = used.map(|(_, account, _)| *account).collect();
    let (cuts, used): (Vec<u32>, Vec<u32>) = used
        .into_iter()
        .partition(|account| node::cut_frames(*account).is_some());
    let natives = profiled.natives.lock().clone();
    let used = used.iter().map(|account| accounts[account]).collect();
    let names = Names::write(writer, origins, &natives, used)?;
    let cuts = write_cuts(writer, &cuts)?;
    let mut indices = Vec::with_capacity(all.len());
    for seen in &all {
        let arena = &seen.arena;
        indices.push(writer.process(&pid_text(arena.pid), &name_of(arena), arena.reductions())?);
    }
    let function = |account: u32| match cuts.get(&account) {
        Some(cut) => *cut,
        None => names.functions[&accounts[&account]],
    };
    let per_process = profile.request.kind != Type::CallCount;
    let mut totals: HashMap<(u32, Option<u32>), Cost> = HashMap::default();
    for (seen, process) in all.iter().zip(&indices) {
        let functions = seen.nodes.iter();
        let functions = functions.filter(|(_, account, _)| !cuts.contains_key(account));
        for (_, account, counted) in functions {
            let key = (function(*account), per_process.then_some(*process));
            let cost = cost(*counted, profile.tracing);
            totals.entry(key).or_default().add(cost);
        }
    }
    let mut counts: Vec<_> = totals.into_iter().collect();
    counts.sort_unstable_by_key(|(key, _)| *key);
    for ((function, process), cost) in counts {
        writer.count(&count(function, process, cost))?;
    }
    if profiled.measures.tree {
        for (seen, process) in all.iter().zip(&indices) {
            write_tree(writer, rows(seen, profile.tracing, function), *process)?;
        }
    }
    Ok(())
}

/// A path of one process, as the file has it.
struct Row {
    /// The row of the path without its last function.
    parent: Option<u32>,
    function: u32,
    cost: Cost,
    reductions: u64,
}

/// The call paths of one process, parents first. Nodes that tell apart how a function was called are one path.
fn rows(seen: &Seen, tracing: TracingCost, function: impl Fn(u32) -> u32) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::with_capacity(seen.nodes.len());
    let mut known: HashMap<(Option<u32>, u32), u32> = HashMap::default();
    let mut row_of_node: Vec<u32> = Vec::with_capacity(seen.nodes.len());
    for (parent, account, counted) in &seen.nodes {
        // Node 0 of the arena is the root, which is no call.
        let parent = parent.checked_sub(1).map(|at| row_of_node[at as usize]);
        let function = function(*account);
        let next = rows.len() as u32;
        let at = *known.entry((parent, function)).or_insert(next);
        if at == next {
            rows.push(Row {
                parent,
                function,
                cost: Cost::default(),
                reductions: 0,
            });
        }
        let row = &mut rows[at as usize];
        row.cost.add(cost(*counted, tracing));
        row.reductions += counted.reductions;
        row_of_node.push(at);
    }
    rows
}

fn write_tree<W: io::Write>(
    writer: &mut Writer<W>,
    rows: Vec<Row>,
    process: u32,
) -> io::Result<()> {
    let mut written: Vec<u32> = Vec::new();
    for row in rows {
        let parent = row.parent.map(|at| written[at as usize]);
        let index = writer.node(process, parent, row.function, row.cost, row.reductions)?;
        written.push(index);
    }
    Ok(())
}

pub(in crate::trace) fn pid_text(pid: Pid) -> String {
    format!("<0.{}.{}>", pid.number(), pid.serial())
}

/// Its name, or its label, or what it was started to call.
fn name_of(arena: &Arena) -> String {
    if let Some(name) = arena.name() {
        return name::stable(name.name()).to_owned();
    }
    if let Some(label) = arena.label() {
        return label;
    }
    let of = arena.function();
    name::mfa(
        name::stable(of.module.name()),
        of.function.name(),
        of.arity.into(),
    )
}
