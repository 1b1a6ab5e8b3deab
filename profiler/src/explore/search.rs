//! Makes the runs of an exploration, several at once, and finds what is wrong with them.

use std::collections::BTreeSet;
use std::io::IsTerminal as _;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use beamline_formats::name::thousands;
use beamline_orders::{
    Answer, End, Explorer, Job, LEFT_OUT, Lots, Next, Origin, PROGRAMS, ProcessIndex, Ran, Run,
    Trace, Waiting,
};
use beamline_settings::chance;

use super::drawn::{Drawn, Verified};
use super::finding::{Finding, Kind, masked};
use super::machine::{Machine, Worker};
use crate::report;

/// When to stop.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) runs: Option<u64>,
    pub(super) time: Option<Duration>,
}

/// What counts as a finding.
#[derive(Clone, Debug, Default)]
pub(super) struct Criteria {
    /// Reasons with which processes may exit.
    pub(super) expected: Vec<String>,
    pub(super) same_result: bool,
    pub(super) leaks: bool,
    /// The whole program is run, and not one call.
    pub(super) is_whole: bool,
}

impl Criteria {
    /// Whatever this finding is of.
    pub(super) fn all_of(finding: &Finding, is_whole: bool) -> Criteria {
        Criteria {
            leaks: finding.kind == Kind::Leak,
            is_whole,
            ..Criteria::default()
        }
    }

    fn is_expected(&self, reason: &str) -> bool {
        ["shutdown", "killed"].contains(&reason)
            || reason.starts_with("{shutdown,")
            || self.expected.iter().any(|expected| expected == reason)
    }
}

/// What came of an exploration.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) findings: Vec<Finding>,
    /// The run of each of them.
    pub(super) answers: Vec<Answer>,
    /// Runs that were made to their end, of different orders.
    pub(super) orders: u64,
    pub(super) runs: u64,
    /// Runs by chance that were made when all orders had been run.
    pub(super) verified: u64,
    /// The runs were drawn by lot.
    pub(super) by_chance: bool,
    /// Prefixes that no run could follow.
    pub(super) impossible: u64,
    /// Runs of an order that was run before, or of another one than was asked for, and runs that failed: what the program
    /// does depends on more than messages and accesses.
    pub(super) strays: u64,
    /// All orders were run.
    pub(super) complete: bool,
    /// About how many were not, where a limit has ended the search.
    pub(super) left: Option<u64>,
    /// What was not reordered.
    pub(super) beyond: BTreeSet<String>,
    pub(super) time: Duration,
    /// The modules that the runs loaded.
    pub(super) modules: Vec<String>,
    /// What the call returned, or the whole program printed, in the first run.
    result: Option<String>,
}

pub(super) struct Search<'a> {
    criteria: &'a Criteria,
    limits: Limits,
    begun: Instant,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    explorer: Explorer,
    /// Runs by chance are made instead.
    drawn: Option<Drawn>,
    /// Those of them that are being made.
    in_flight: u64,
    /// Runs by chance that are made when all orders were.
    verified: Option<Verified>,
    done: Outcome,
    /// The run of each finding: the earliest one counts.
    found_in: Vec<u64>,
    /// It is to end: all is done, a limit is reached, or a worker has failed.
    is_over: bool,
    is_all: bool,
    /// How many orders there were when all were run.
    known: Option<u64>,
    error: Option<String>,
    told: Option<Instant>,
}

/// A run that is to be made.
enum Work {
    /// A prefix, and then what comes.
    Turned(Job),
    /// By chance: its number, and its lots.
    Drawn(u64, Lots),
    /// By chance, when all orders were run.
    Verified(Lots),
}

/// What is not explored where a run by chance has another order than all that were made.
const MISSED: &str = "orders that runs by chance have had, and the exploration has not";

/// What is not explored where a run does not have the order of its prefix.
const OTHER: &str = "what decides that a run has another order than the one that was asked for";

/// Runs that look for a shorter prefix of one finding.
const SHORTER_RUNS: usize = 400;

/// How often a terminal shows how far it is.
const PROGRESS: Duration = Duration::from_millis(200);

impl<'a> Search<'a> {
    /// A search through all orders, or by the runs that are drawn.
    pub(super) fn new(
        criteria: &'a Criteria,
        limits: Limits,
        explorer: Explorer,
        drawn: Option<Drawn>,
        verified: Option<Verified>,
    ) -> Search<'a> {
        Search {
            criteria,
            limits,
            begun: chance::now(),
            state: Mutex::new(State {
                explorer,
                drawn,
                verified,
                ..State::default()
            }),
            changed: Condvar::new(),
        }
    }

    /// Makes the runs.
    ///
    /// # Errors
    /// One line: the emulator has failed.
    pub(super) fn run(self, mut machine: Machine) -> Result<Outcome, String> {
        let mut workers = std::mem::take(&mut machine.workers);
        let deadline = self.limits.time.map(|time| self.begun + time);
        for worker in &mut workers {
            worker.deadline = deadline;
        }
        std::thread::scope(|scope| {
            for worker in &mut workers {
                scope.spawn(|| self.work(worker, &machine));
            }
        });
        if std::io::stderr().is_terminal() {
            report::progress("");
        }
        let state = self
            .state
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        let orders = state.known.unwrap_or_else(|| state.orders());
        if let Some(error) = state.error.filter(|_| machine.guard.signal().is_none()) {
            return Err(error);
        }
        let mut done = state.done;
        done.orders = orders;
        done.by_chance = state.drawn.is_some();
        let left = state.explorer.orders_left().map(|left| left.ceil() as u64);
        done.left = left.filter(|_| !state.is_all && !done.by_chance);
        done.complete = state.is_all && done.strays == 0 && done.beyond.is_empty();
        if let Some(worker) = workers.first_mut() {
            worker.deadline = None;
            if done.by_chance {
                keep_those_that_replay(worker, &mut done, state.found_in, self.criteria)?;
            }
            for finding in &mut done.findings {
                shorten(worker, finding, self.criteria, &machine)?;
                if machine.guard.signal().is_none() {
                    done.answers.push(worker.run(&finding.prefix, None)?);
                }
            }
        }
        done.modules = machine.modules();
        done.time = self.begun.elapsed();
        Ok(done)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self, worker: &mut Worker, machine: &Machine) {
        while let Some(work) = self.next_work(machine) {
            let answer = match &work {
                Work::Turned(job) => worker.run(&job.prefix, None),
                Work::Drawn(_, lots) | Work::Verified(lots) => {
                    worker.run(&Trace::default(), Some(*lots))
                }
            };
            let mut state = self.state();
            match answer {
                Ok(answer) => match &work {
                    Work::Turned(job) => self.add(&mut state, job, &answer),
                    Work::Drawn(number, _) => self.add_drawn(&mut state, *number, &answer),
                    Work::Verified(_) => state.verify(&answer),
                },
                Err(error) => {
                    state.error.get_or_insert(error);
                    state.is_over = true;
                }
            }
            self.tell(&mut state);
            drop(state);
            self.changed.notify_all();
        }
        self.changed.notify_all();
    }

    fn next_work(&self, machine: &Machine) -> Option<Work> {
        let mut state = self.state();
        loop {
            let in_flight = state.in_flight + state.explorer.in_flight() as u64;
            let made = state.done.runs + in_flight;
            let is_late = self
                .limits
                .time
                .is_some_and(|time| self.begun.elapsed() >= time);
            state.is_over |= is_late || machine.guard.signal().is_some();
            if state.is_over || self.limits.runs.is_some_and(|runs| made >= runs) {
                return None;
            }
            match state.next_work() {
                Some(work) => return Some(work),
                None if state.is_over => return None,
                None => {
                    state = self
                        .changed
                        .wait(state)
                        .unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    fn add(&self, state: &mut State, job: &Job, answer: &Answer) {
        if answer.end == End::Late {
            state.is_over = true;
            return;
        }
        state.done.runs += 1;
        if let End::Crashed(how) = &answer.end {
            return state.crashes(job, how);
        }
        let run = match answer.run() {
            Ok(run) => run,
            Err(error) => return state.fail(job, error),
        };
        match &answer.end {
            End::Astray(..) if answer.refuse.iter().any(|who| job.is_turned(&run, *who)) => {
                state.explorer.run_infeasible(job);
                state.done.impossible += 1;
                return;
            }
            End::Astray(line) => return state.fail(job, format!("what decides that {line}")),
            _ => {}
        }
        match state.explorer.run_finished(job, &run, is_left_out) {
            Ok(Ran::New) => {}
            Ok(Ran::Other) => {
                state.done.strays += 1;
                state.done.beyond.insert(OTHER.to_owned());
            }
            Ok(Ran::Known) => state.done.strays += 1,
            Err(error) => return state.fail(job, error),
        }
        state.done.beyond.extend(run.beyond.iter().cloned());
        let State { explorer, done, .. } = state;
        done.beyond.extend(explorer.beyond().map(str::to_owned));
        state.done.beyond.extend(answer.beyond.iter().cloned());
        let first = state.done.result.clone();
        if state.done.result.is_none() {
            state.done.result.clone_from(&answer.result);
        }
        for mut finding in findings(&run, answer, self.criteria, first.as_deref()) {
            let known = &state.done.findings;
            if !known.iter().any(|known| known.is_same(&finding)) {
                finding.prefix = job.prefix.clone();
                state.done.findings.push(finding);
            }
        }
    }

    fn add_drawn(&self, state: &mut State, number: u64, answer: &Answer) {
        state.in_flight -= 1;
        if answer.end == End::Late {
            state.is_over = true;
            return;
        }
        state.done.runs += 1;
        let run = match &answer.end {
            End::Crashed(how) => {
                if number == 0 {
                    state.end_at_first_crash(how);
                }
                Err(crashes(how))
            }
            _ => answer.run(),
        };
        if let Some(drawn) = &mut state.drawn {
            drawn.count_run(answer.drawn);
        }
        let run = match run {
            Ok(run) => run,
            Err(why) => {
                state.done.strays += 1;
                state.done.beyond.insert(why);
                return;
            }
        };
        if let Err(why) = state.explorer.sample_finished(&run, is_left_out) {
            state.done.strays += 1;
            state.done.beyond.insert(why);
        }
        let first = state.done.result.clone();
        if state.done.result.is_none() {
            state.done.result.clone_from(&answer.result);
        }
        for mut finding in findings(&run, answer, self.criteria, first.as_deref()) {
            let known = state.done.findings.iter();
            let known = known.enumerate().find(|(_, known)| known.is_same(&finding));
            let known = known.map(|(at, _)| at);
            if known.is_some_and(|at| state.found_in[at] < number) {
                continue;
            }
            finding.prefix = run.trace.clone();
            finding.prefix.forget_pids();
            match known {
                Some(at) => (state.found_in[at], state.done.findings[at]) = (number, finding),
                None => {
                    state.found_in.push(number);
                    state.done.findings.push(finding);
                }
            }
        }
    }

    fn tell(&self, state: &mut State) {
        let is_due = state.told.is_none_or(|told| told.elapsed() >= PROGRESS);
        if !is_due || !std::io::stderr().is_terminal() {
            return;
        }
        state.told = Some(chance::now());
        let found = state.done.findings.len();
        let (runs, orders) = (thousands(state.done.runs), thousands(state.orders()));
        let left = match state.drawn {
            Some(_) => String::new(),
            None => format!(
                "{} turns to look at, ",
                thousands(state.explorer.left() as u64)
            ),
        };
        report::progress(&format!(
            "{runs} runs, {orders} orders, {left}{found} findings"
        ));
    }
}

impl State {
    /// The next run, unless it is to wait for others, or there is none any more.
    fn next_work(&mut self) -> Option<Work> {
        if let Some(drawn) = &mut self.drawn {
            let (number, lots) = drawn.next_run()?;
            self.in_flight += 1;
            return Some(Work::Drawn(number, lots));
        }
        match self.explorer.next_run() {
            Next::Job(job) => Some(Work::Turned(job)),
            Next::Wait => None,
            Next::Done => {
                self.is_all = true;
                let orders = self.orders();
                self.known.get_or_insert(orders);
                let is_complete = self.done.strays == 0 && self.done.beyond.is_empty();
                let mut verified = self.verified.as_mut().filter(|_| is_complete);
                let next = verified.as_mut().and_then(|it| it.next_run());
                self.is_over = verified.is_none_or(|it| it.is_over());
                next.map(Work::Verified)
            }
        }
    }

    /// A run was made by chance when all orders had been run: it has one of these.
    fn verify(&mut self, answer: &Answer) {
        if let Some(verified) = &mut self.verified {
            verified.count_run();
        }
        if answer.end == End::Late {
            self.is_over = true;
            return;
        }
        self.done.verified += 1;
        let before = self.orders();
        let run = answer.run();
        let drawn = run.and_then(|run| self.explorer.sample_finished(&run, is_left_out));
        let why = match drawn {
            Ok(()) if self.orders() == before => return,
            Ok(()) => MISSED.to_owned(),
            Err(why) => why,
        };
        self.done.strays += 1;
        self.done.beyond.insert(why);
    }

    fn orders(&self) -> u64 {
        self.explorer.orders() as u64
    }

    /// A run has ended the emulator: where it is the first one, there is nothing to explore.
    fn crashes(&mut self, job: &Job, how: &str) {
        if self.explorer.orders() == 0 {
            self.end_at_first_crash(how);
        }
        self.fail(job, crashes(how));
    }

    fn end_at_first_crash(&mut self, how: &str) {
        let error = format!("the emulator of the first run ended {how}, and told nothing");
        self.error.get_or_insert(error);
        self.is_over = true;
    }

    /// Nothing is known of a run.
    fn fail(&mut self, job: &Job, why: String) {
        self.explorer.run_failed(job);
        self.done.strays += 1;
        self.done.beyond.insert(why);
    }
}

/// What is not explored where runs end the emulator.
fn crashes(how: &str) -> String {
    format!("runs that end the emulator {how}")
}

/// Processes of the emulator whose receives and accesses are not reordered: what they do for others depends on no order
/// that matters.
pub(super) fn is_left_out(known_as: &str) -> bool {
    LEFT_OUT.contains(&known_as)
}

/// What is wrong with a run.
fn findings(run: &Run, answer: &Answer, criteria: &Criteria, first: Option<&str>) -> Vec<Finding> {
    let mut all = Vec::new();
    let mut add = |kind, process: ProcessIndex, reason: &str| {
        all.push(Finding {
            kind,
            process: run.trace.name(process),
            known_as: run.trace.processes[process]
                .known_as
                .clone()
                .unwrap_or_default(),
            reason: reason.to_owned(),
            prefix: Trace::default(),
        });
    };
    let mut reasons: Vec<&str> = Vec::new();
    for (process, reason) in &run.exits {
        let is_own = *process == run.main
            || matches!(run.trace.processes[*process].origin, Origin::Child { .. });
        // A linked process ends with the reason of the other one.
        if is_own && !criteria.is_expected(reason) && !reasons.contains(&reason.as_str()) {
            reasons.push(reason);
            add(Kind::Exit, *process, reason);
        }
    }
    let has_programs = answer.beyond.iter().any(|beyond| beyond == PROGRAMS);
    let waits = who_waits(run, criteria);
    match (&answer.end, waits) {
        (End::Quiet, _) if has_programs => {}
        (End::Livelock, _) => add(Kind::Livelock, run.main, "the allowed number of"),
        (End::Halted(code), _) if *code != 0 => {
            let reason = format!("erlang:halt({code})");
            // The end of the first process ends the emulator.
            let is_told = criteria.is_whole && run.exits.iter().any(|(who, _)| *who == run.main);
            if !is_told && !criteria.is_expected(&reason) {
                add(Kind::Exit, run.main, &reason);
            }
        }
        (End::Quiet, Some(own)) => add(Kind::Deadlock, own.process, &own.place),
        (End::Quiet, None) if criteria.leaks => {
            for left in &run.waiting {
                add(Kind::Leak, left.process, &left.place);
            }
        }
        _ => {}
    }
    if criteria.same_result
        && let (Some(first), Some(result)) = (first, &answer.result)
        && masked(first) != masked(result)
    {
        add(Kind::Result, run.main, result);
    }
    all
}

/// Who keeps a run from its end that waits where nothing can go on: the process that makes the call, and in a whole program
/// any of its processes, as none of them has ended the emulator.
fn who_waits<'a>(run: &'a Run, criteria: &Criteria) -> Option<&'a Waiting> {
    let mut waiting = run.waiting.iter();
    let own = waiting.find(|waiting| waiting.process == run.main);
    own.or_else(|| {
        let mut waiting = run.waiting.iter().filter(|_| criteria.is_whole);
        waiting.find(|waiting| is_of_program(run, waiting.process))
    })
}

/// Whether a process comes of the program, and not of the emulator's own.
fn is_of_program(run: &Run, process: ProcessIndex) -> bool {
    let processes = &run.trace.processes;
    let mut at = process;
    while let Origin::Child { of, .. } = processes[at].origin {
        at = of;
    }
    at == run.main || !processes[at].known_as.as_deref().is_some_and(is_left_out)
}

/// What became of a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Still {
    /// It is found.
    Found,
    /// It is not.
    Gone,
    /// Its prefix cannot be followed any more.
    Astray(String),
}

/// Whether the run behind a finding's prefix still finds it, with these modules loaded.
///
/// # Errors
/// One line: the emulator has failed.
pub(super) fn still_finds(
    machine: &mut Machine,
    finding: &Finding,
    modules: &[String],
    criteria: &Criteria,
) -> Result<Still, String> {
    let worker = machine.workers.first_mut().ok_or("no worker is there")?;
    worker.prepare(modules)?;
    find_with(worker, finding, &finding.prefix, criteria)
}

fn find_with(
    worker: &mut Worker,
    finding: &Finding,
    prefix: &Trace,
    criteria: &Criteria,
) -> Result<Still, String> {
    let answer = worker.run(prefix, None)?;
    if let End::Astray(line) = &answer.end {
        return Ok(Still::Astray(line.clone()));
    }
    if let End::Crashed(how) = &answer.end {
        return Ok(Still::Astray(format!("the emulator ends {how}")));
    }
    if answer.end == End::Late {
        return Ok(Still::Astray("it takes too long".to_owned()));
    }
    let run = answer.run()?;
    // Which result the first run has is not known here: this one is the finding's.
    let is_result = finding.kind == Kind::Result
        && answer
            .result
            .as_ref()
            .is_some_and(|result| masked(result) == masked(&finding.reason));
    let found = findings(&run, &answer, criteria, None);
    Ok(
        match is_result || found.iter().any(|found| found.is_same(finding)) {
            true => Still::Found,
            false => Still::Gone,
        },
    )
}

/// Keeps the findings of runs by chance that happen again behind the order of their run, in the order of the runs.
fn keep_those_that_replay(
    worker: &mut Worker,
    done: &mut Outcome,
    found_in: Vec<u64>,
    criteria: &Criteria,
) -> Result<(), String> {
    let found = std::mem::take(&mut done.findings);
    let mut found: Vec<(u64, Finding)> = found_in.into_iter().zip(found).collect();
    found.sort_by_key(|(number, _)| *number);
    for (_, finding) in found {
        match find_with(worker, &finding, &finding.prefix, criteria)? {
            Still::Found => done.findings.push(finding),
            Still::Gone => {
                done.strays += 1;
                let what = format!("what decides that {finding}");
                done.beyond.insert(what);
            }
            Still::Astray(line) => {
                done.strays += 1;
                done.beyond.insert(format!("what decides that {line}"));
            }
        }
    }
    Ok(())
}

/// Looks for a shorter prefix of a finding.
fn shorten(
    worker: &mut Worker,
    finding: &mut Finding,
    criteria: &Criteria,
    machine: &Machine,
) -> Result<(), String> {
    let criteria = Criteria {
        leaks: criteria.leaks || finding.kind == Kind::Leak,
        ..criteria.clone()
    };
    let mut left = SHORTER_RUNS;
    'shorter: while finding.prefix.length() > 0 {
        for shorter in std::iter::once(Trace::default()).chain(finding.prefix.shortened()) {
            if left == 0 || machine.guard.signal().is_some() {
                return Ok(());
            }
            left -= 1;
            if find_with(worker, finding, &shorter, &criteria)? == Still::Found {
                finding.prefix = shorter;
                continue 'shorter;
            }
        }
        break;
    }
    Ok(())
}
