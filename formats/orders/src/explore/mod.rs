//! Explores the orders of a program: which runs are still to be made so that each order is run once.
//!
//! Two runs have the same order if each receive took the same message, or timed out, and each access to what processes share
//! came after the same accesses to it (a change after changes and reads, a read after changes). From every run that was made,
//! and each receive of it that could have done something else, comes a prefix: all steps that do not depend on the receive,
//! and the other thing. So it is with each access that could have come before another one: all steps that do not depend on
//! that one, and the access. A prefix is run only if no run that was made begins with it. So each run has another order than all before,
//! and in the end every order was run: take one that was not, and the run that has the longest beginning in common with it.
//! Where they part, there is a receive or an access that did something else, and its prefix is a longer beginning in common with some
//! run. Source: reachability testing (Lei and Carver), on the steps of prefix-based tracing.
//!
//! The end of a process by an exit signal is such a choice, too: which signal, and behind which of its steps.
//!
//! Other nondeterminism is not explored; `Answer::beyond` lists it.

mod choices;
mod lots;
mod reads_from;
#[cfg(test)]
mod tests;
mod turn;
mod wire;

use rustc_hash::{FxHashMap, FxHashSet};

use super::races::with_accesses;
use super::read::root_of;
use super::{
    Accesses, Message, Origin, PerProcess, Process, ProcessIndex, Step, StepAt, StepIndex, Trace,
    moved,
};
use choices::{Beginning, Choice, Choices};
pub use lots::{Candidate, Draw, Drawing, Lots, Touch, Who};
use turn::{Analysis, Turn};
pub use wire::{
    Answer, Ask, Call, End, Ended, EndedAt, Ends, ExitCall, LEFT_OUT, PROGRAMS, Reply, Run,
    Scenario, SharedAccess, ThroughAlias, Traps, Waiting, Watch, receive, send,
};
use wire::{CEASED, LATE, LOST};

/// What is known of an exploration.
#[derive(Default)]
pub struct Explorer {
    processes: Universe,
    steps: Steps,
    choices: Choices,
    /// Runs whose turns have not all been looked at; the newest last.
    open: Vec<Open>,
    /// Turns that no run can make.
    impossible: FxHashSet<Box<[Choice]>>,
    /// Choices of turns whose runs had others: something else decides.
    missed: FxHashSet<Beginning>,
    in_flight: Vec<Flight>,
    next_job: u64,
    /// Receives and accesses of these processes are not reordered.
    left_out: FxHashSet<ProcessIndex>,
    /// Runs of different orders.
    orders: usize,
    /// Which part of all is known, where each turn of a run and the run itself are equal parts of what comes of it.
    known_part: f64,
    has_begun: bool,
    /// Receives time out only where nothing else can go on.
    are_timeouts_late: bool,
    /// A receive that took a message could have timed out, and no run tries that.
    could_time_out: bool,
    /// Exit signals came to processes that ceased to trap exits.
    ceased_to_trap: bool,
    /// A process waited for an exit signal of a link that it had given up.
    waited_for_lost: bool,
}

/// A run that is to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    number: u64,
    /// What it begins with.
    pub prefix: Trace,
    /// The process whose last step of the prefix is the reordered one, by its place in the prefix, if that step is no
    /// access.
    pub turned: Option<ProcessIndex>,
}

impl Job {
    /// Whether this process of a run, by its number there, is the one whose receive or end was reordered.
    #[must_use]
    pub fn is_turned(&self, run: &Run, id: u64) -> bool {
        let Some(turned) = self.turned else {
            return false;
        };
        match run.ids.position(|one| *one == id) {
            Some(place) => run.trace.name(place) == self.prefix.name(turned),
            // It has made no step.
            None => self.prefix.processes[turned].origin == root_of(id),
        }
    }
}

/// What is to be done next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// This run.
    Job(Job),
    /// Runs that are being made come first.
    Wait,
    /// Nothing: all orders were run.
    Done,
}

/// What a run that was made was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ran {
    /// One of a new order.
    New,
    /// One that does not have the order of its prefix: what the program does depends on more than its receives and accesses.
    Other,
    /// One of an order that was run before: the same.
    Known,
}

/// A run that is being made.
struct Flight {
    job: u64,
    beginning: Beginning,
    key: Box<[Choice]>,
    /// Which part of all comes of it.
    part: f64,
}

/// A run with turns that have not been looked at.
struct Open {
    run: Packed,
    turns: Vec<Turn>,
    next: usize,
    /// Which part of all comes of each turn.
    part: f64,
}

/// A run, in little memory.
struct Packed {
    steps: Vec<(ProcessIndex, Box<[u32]>)>,
    receivers: Vec<(ProcessIndex, Box<[Option<ProcessIndex>]>)>,
    exit_calls: Vec<ExitCall<ProcessIndex>>,
    traps: Vec<Traps<ProcessIndex>>,
    watches: Vec<Watch<ProcessIndex>>,
    flushed: FxHashMap<(ProcessIndex, Message), u32>,
    timers: FxHashSet<ProcessIndex>,
    accesses: Accesses,
}

impl Explorer {
    /// Nothing was run yet.
    #[must_use]
    pub fn new() -> Explorer {
        Explorer::default()
    }

    /// Receives time out only where nothing else can go on.
    #[must_use]
    pub fn with_late_timeouts(self) -> Explorer {
        Explorer {
            are_timeouts_late: true,
            ..self
        }
    }

    /// How many runs of different orders have been made.
    #[must_use]
    pub fn orders(&self) -> usize {
        self.orders
    }

    /// The parts of the runs that could not be reordered.
    pub fn beyond(&self) -> impl Iterator<Item = &'static str> {
        let late = self.could_time_out.then_some(LATE);
        late.into_iter()
            .chain(self.ceased_to_trap.then_some(CEASED))
            .chain(self.waited_for_lost.then_some(LOST))
    }

    /// How many runs are being made.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// About how many orders have not been run: an estimate from the parts of the search that are done, each as large as its
    /// siblings. Knuth, *Estimating the efficiency of backtrack programs* (1975), for the branches that were taken. Nothing
    /// where no part is done.
    #[must_use]
    pub fn orders_left(&self) -> Option<f64> {
        let part = self.known_part.min(1.0);
        (part > 0.0).then(|| self.orders as f64 * (1.0 - part) / part)
    }

    /// How many turns have not been looked at: of some of them nothing comes.
    #[must_use]
    pub fn left(&self) -> usize {
        self.open
            .iter()
            .map(|open| open.turns.len() - open.next)
            .sum()
    }

    /// The next run.
    pub fn next_run(&mut self) -> Next {
        if !self.has_begun {
            self.has_begun = true;
            return Next::Job(self.start(
                Trace::default(),
                None,
                Beginning::default(),
                Box::default(),
                1.0,
            ));
        }
        let mut at = self.open.len();
        while at > 0 {
            at -= 1;
            if let Some(job) = self.next_of(at) {
                return Next::Job(job);
            }
            if self.open[at].next == self.open[at].turns.len() {
                self.open.remove(at);
            }
        }
        match self.open.is_empty() && self.in_flight.is_empty() {
            true => Next::Done,
            false => Next::Wait,
        }
    }

    /// The next run that comes from an open one, unless it is to wait for others.
    fn next_of(&mut self, at: usize) -> Option<Job> {
        let run = self.unpack(&self.open[at].run);
        let analysis = Analysis::of(&run, &mut self.choices).ok()?;
        while let Some(turn) = self.open[at].turns.get(self.open[at].next).copied() {
            let key = analysis.key(&turn, &mut self.choices);
            let ends = analysis.ends(&turn);
            let beginning = self.beginning(&analysis, &turn, &ends);
            if self.is_settled(&key, &beginning) {
                self.finish_turn(at);
                continue;
            }
            let earlier: Vec<Turn> = analysis
                .before(&turn, &self.open[at].turns)
                .copied()
                .collect();
            let mut is_behind = false;
            for before in &earlier {
                let before = analysis.key(before, &mut self.choices);
                if self.in_flight.iter().any(|flight| flight.key == before) {
                    return None;
                }
                is_behind |= !self.impossible.contains(&before);
            }
            if is_behind {
                self.finish_turn(at);
                continue;
            }
            let is_alone = |flight: &Flight| self.choices.contradict(&flight.beginning, &beginning);
            if !self.in_flight.iter().all(is_alone) {
                return None;
            }
            self.open[at].next += 1;
            let left_out = &self.left_out;
            let prefix = analysis.turned(&turn, &ends, |at| left_out.contains(&at));
            let turned = prefix.place_of(&self.processes.all, turn.at.process);
            let turned = turned.filter(|_| !turn.is_access());
            let part = self.open[at].part;
            return Some(self.start(prefix, turned, beginning, key, part));
        }
        None
    }

    /// The next turn of an open run is done.
    fn finish_turn(&mut self, at: usize) {
        self.open[at].next += 1;
        self.known_part += self.open[at].part;
    }

    /// Whether nothing new can come of a turn.
    fn is_settled(&self, key: &[Choice], beginning: &Beginning) -> bool {
        self.impossible.contains(key)
            || self.missed.contains(beginning)
            || self.choices.has_all(beginning)
    }

    fn beginning(
        &mut self,
        analysis: &Analysis<'_>,
        turn: &Turn,
        ends: &PerProcess<StepIndex>,
    ) -> Beginning {
        let left_out = &self.left_out;
        analysis.beginning(turn, ends, &mut self.choices, |at| left_out.contains(&at))
    }

    fn start(
        &mut self,
        prefix: Trace,
        turned: Option<ProcessIndex>,
        beginning: Beginning,
        key: Box<[Choice]>,
        part: f64,
    ) -> Job {
        let number = self.next_job;
        self.next_job += 1;
        self.in_flight.push(Flight {
            job: number,
            beginning,
            key,
            part,
        });
        Job {
            number,
            prefix,
            turned,
        }
    }

    fn finish(&mut self, job: &Job) -> Option<Flight> {
        let at = self
            .in_flight
            .iter()
            .position(|flight| flight.job == job.number)?;
        Some(self.in_flight.swap_remove(at))
    }

    /// A run is infeasible: its receive has no clause for the message, or no time to run out.
    pub fn run_infeasible(&mut self, job: &Job) {
        if let Some(flight) = self.finish(job) {
            self.known_part += flight.part;
            self.impossible.insert(flight.key);
        }
    }

    /// A run has failed otherwise: nothing is known of it.
    pub fn run_failed(&mut self, job: &Job) {
        if let Some(flight) = self.finish(job) {
            self.known_part += flight.part;
            self.missed.insert(flight.beginning);
        }
    }

    /// A run has been made. Receives and accesses of processes that reports call so are not reordered.
    ///
    /// # Errors
    /// One line: its steps do not fit together.
    pub fn run_finished(
        &mut self,
        job: &Job,
        run: &Run,
        is_left_out: impl Fn(&str) -> bool,
    ) -> Result<Ran, String> {
        let flight = self.finish(job);
        let part = flight.as_ref().map_or(0.0, |flight| flight.part);
        let run = self.known(run, is_left_out);
        let analysis = Analysis::of(&run, &mut self.choices)?;
        analysis.check_races()?;
        let own = analysis.whole(|at| self.left_out.contains(&at));
        let ran = match flight.filter(|flight| !self.choices.begins_with(&own, &flight.beginning)) {
            Some(flight) => {
                self.missed.insert(flight.beginning);
                Ran::Other
            }
            None => Ran::New,
        };
        if !self.is_new(own) {
            self.known_part += part;
            return Ok(Ran::Known);
        }
        self.ceased_to_trap |= analysis.has_signals_to_who_ceased_to_trap();
        self.waited_for_lost |= analysis.waits_for_what_could_be_lost();
        let is_left_out = |at: ProcessIndex| self.left_out.contains(&at);
        let receivers = run.trace.processes.indexes();
        let receivers = receivers.filter(|at| !is_left_out(*at));
        let turns_of = |at| [analysis.turns_of(at), analysis.turns_of_signals(at)].concat();
        let mut turns: Vec<Turn> = receivers.flat_map(turns_of).collect();
        turns.extend(analysis.turns_of_accesses(is_left_out));
        if self.are_timeouts_late {
            let all = turns.len();
            turns.retain(|turn| !turn.is_early(&run.timers));
            self.could_time_out |= turns.len() < all;
        }
        let part = part / (turns.len() + 1) as f64;
        self.known_part += part;
        if !turns.is_empty() {
            let run = self.steps.packed(&run);
            self.open.push(Open {
                run,
                turns,
                next: 0,
                part,
            });
        }
        Ok(ran)
    }

    /// A run has been made by chance: none comes of it, and its order counts if no run before had it.
    ///
    /// # Errors
    /// As [`Explorer::run_finished`].
    pub fn sample_finished(
        &mut self,
        run: &Run,
        is_left_out: impl Fn(&str) -> bool,
    ) -> Result<(), String> {
        let run = self.known(run, is_left_out);
        let analysis = Analysis::of(&run, &mut self.choices)?;
        let own = analysis.whole(|at| self.left_out.contains(&at));
        self.is_new(own);
        Ok(())
    }

    /// The run, with the places that its processes have among all, without accesses of those that are left out.
    fn known(&mut self, run: &Run, is_left_out: impl Fn(&str) -> bool) -> Run {
        let mut run = self.processes.known(run);
        for (at, process) in run.trace.processes.entries() {
            if matches!(process.origin, Origin::Root(_))
                && process.known_as.as_deref().is_some_and(&is_left_out)
            {
                self.left_out.insert(at);
            }
        }
        for at in &self.left_out {
            run.accesses.hide(*at);
        }
        run
    }

    /// A run had this: whether no run before did.
    fn is_new(&mut self, own: Beginning) -> bool {
        let is_new = self.orders == 0 || !self.choices.has_whole(&own);
        if is_new {
            self.choices.add(self.orders, &own.choices);
            self.orders += 1;
        }
        is_new
    }

    fn unpack(&self, packed: &Packed) -> Run {
        let mut processes = self.processes.all.clone();
        for (at, steps) in &packed.steps {
            let steps = steps
                .iter()
                .map(|step| self.steps.all[*step as usize].clone());
            processes[*at].steps = steps.collect();
        }
        let mut receivers = processes.map(|_| Vec::new());
        for (at, to) in &packed.receivers {
            receivers[*at] = to.to_vec();
        }
        Run {
            trace: Trace { processes },
            receivers,
            exit_calls: packed.exit_calls.clone(),
            traps: packed.traps.clone(),
            watches: packed.watches.clone(),
            flushed: packed.flushed.clone(),
            timers: packed.timers.clone(),
            accesses: packed.accesses.clone(),
            ..Run::default()
        }
    }
}

/// The processes of all runs.
#[derive(Default)]
struct Universe {
    /// Without their steps.
    all: PerProcess<Process>,
    places: FxHashMap<Origin, ProcessIndex>,
}

impl Universe {
    /// The run, with the places that its processes have among all.
    fn known(&mut self, run: &Run) -> Run {
        let mut places: PerProcess<ProcessIndex> = PerProcess::default();
        for process in &run.trace.processes {
            let origin = match process.origin {
                Origin::Root(root) => Origin::Root(root),
                Origin::Child { of, number } => Origin::Child {
                    of: places[of],
                    number,
                },
            };
            let all = &mut self.all;
            let place = self.places.entry(origin).or_insert_with(|| {
                all.push(Process {
                    origin,
                    pid: None,
                    known_as: process.known_as.clone(),
                    steps: Vec::new(),
                })
            });
            places.push(*place);
        }
        let mut known = Run {
            trace: Trace {
                processes: self.all.clone(),
            },
            receivers: self.all.map(|_| Vec::new()),
            ..Run::default()
        };
        for (at, process) in run.trace.processes.entries() {
            let steps = moved(process.steps.clone(), |at| Some(places[at]));
            known.trace.processes[places[at]].steps = steps;
            known.trace.processes[places[at]]
                .known_as
                .clone_from(&process.known_as);
            let to = run.receivers.get(at).into_iter().flatten();
            known.receivers[places[at]] = to.map(|to| to.map(|to| places[to])).collect();
        }
        known.accesses = run.accesses.clone().moved(|at| places.get(at).copied());
        known.trace = with_accesses(known.trace, &known.accesses);
        let flushed = run.flushed.iter();
        known.flushed = flushed
            .filter_map(|((at, message), nth)| {
                let message = message.moved(|at| places.get(at).copied())?;
                Some(((places[*at], message), *nth))
            })
            .collect();
        known.timed = run
            .timed
            .iter()
            .map(|(at, nth)| (places[*at], *nth))
            .collect();
        let watches = run.watches.iter();
        known.watches = watches
            .filter_map(|watch| watch.moved(|at| places.get(at).copied()))
            .collect();
        let calls = run.exit_calls.iter();
        known.exit_calls = calls
            .filter_map(|call| call.moved(|at| places.get(at).copied()))
            .collect();
        let traps = run.traps.iter();
        known.traps = traps
            .filter_map(|traps| traps.moved(|at| places.get(at).copied()))
            .collect();
        known.timers = run.timers.iter().map(|at| places[*at]).collect();
        let ended = run.ended_at.iter();
        known.ended_at = ended.map(|(at, how)| (places[*at], *how)).collect();
        known.main = places[run.main];
        known
    }
}

impl Trace {
    /// The place here of the process that has this place among all.
    fn place_of(&self, all: &PerProcess<Process>, process: ProcessIndex) -> Option<ProcessIndex> {
        let mut numbers = Vec::new();
        let mut at = process;
        let root = loop {
            match all[at].origin {
                Origin::Root(root) => break root,
                Origin::Child { of, number } => {
                    numbers.push(number);
                    at = of;
                }
            }
        };
        let find = |origin| self.processes.position(|process| process.origin == origin);
        numbers
            .iter()
            .rev()
            .try_fold(find(Origin::Root(root))?, |of, number| {
                find(Origin::Child {
                    of,
                    number: *number,
                })
            })
    }
}

/// The steps of all runs.
#[derive(Default)]
struct Steps {
    all: Vec<Step>,
    numbers: FxHashMap<Step, u32>,
}

impl Steps {
    fn packed(&mut self, run: &Run) -> Packed {
        let processes = run.trace.processes.entries();
        let processes = processes.filter(|(_, process)| !process.steps.is_empty());
        let steps = processes.map(|(at, process)| {
            (
                at,
                process.steps.iter().map(|step| self.number(step)).collect(),
            )
        });
        let receivers = run.receivers.entries().filter(|(_, to)| !to.is_empty());
        Packed {
            exit_calls: run.exit_calls.clone(),
            traps: run.traps.clone(),
            watches: run.watches.clone(),
            flushed: run.flushed.clone(),
            timers: run.timers.clone(),
            accesses: run.accesses.clone(),
            steps: steps.collect(),
            receivers: receivers.map(|(at, to)| (at, to.clone().into())).collect(),
        }
    }

    fn number(&mut self, step: &Step) -> u32 {
        if let Some(number) = self.numbers.get(step) {
            return *number;
        }
        let number = self.all.len() as u32;
        self.all.push(step.clone());
        self.numbers.insert(step.clone(), number);
        number
    }
}

/// The longest prefix that a finding may need is the whole run: shorter ones end before some step.
impl Trace {
    /// Shorter prefixes: each leaves out a receive, time-out or access of a process and all that depends on it. The shortest first.
    ///
    /// # Errors
    /// One line: a process waits for a step that waits for it.
    pub fn shortened(&self) -> Vec<Trace> {
        let takers = super::races::Takers::of(self);
        let mut all = Vec::new();
        for (at, it) in self.processes.entries() {
            for (step, made) in it.numbered() {
                if matches!(made, Step::Receive(_) | Step::Timeout | Step::After { .. }) {
                    let mut ends = takers.ends_without(self, StepAt { process: at, step });
                    // Deliveries at the end serve the receive that is left out.
                    for (end, process) in ends.iter_mut().zip(&self.processes) {
                        let kept = process.before(*end);
                        let is_needed = |step: &Step| !matches!(step, Step::Deliver(_));
                        let last = kept.iter().rposition(is_needed);
                        *end = StepIndex::new(last.map_or(0, |last| last + 1));
                    }
                    all.push(self.cut(&ends, None));
                }
            }
        }
        all.sort_by_key(Trace::length);
        all
    }

    /// Processes get other pids.
    pub fn forget_pids(&mut self) {
        for process in &mut self.processes {
            if !matches!(process.origin, Origin::Root(_)) {
                process.pid = None;
            }
        }
    }

    /// How many steps it has.
    #[must_use]
    pub fn length(&self) -> usize {
        self.processes
            .iter()
            .map(|process| process.steps.len())
            .sum()
    }
}
