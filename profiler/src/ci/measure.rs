//! Runs workloads: once without breakpoints and once with them, both deterministic, for counts; then alternately for
//! time.

use std::path::{Path, PathBuf};

use beamline_formats::profile::{Libraries, Pattern, Profile, Request, Span, Type};
use beamline_formats::totals::{Counted, Totals};
use beamline_reports::gate::{LOADS, Machine, Results, Times, Workload as Measured};
use beamline_settings::chance;

use super::config::{Config, Workload};
use crate::launch::{self, Ended, Guard, Launch, Mode, What};
use crate::report;

/// Runs the workloads of a project.
pub(super) struct Runner<'a> {
    pub(super) config: &'a Config,
    pub(super) otp: Option<PathBuf>,
    /// The folder of the older version of the project, whose times are measured alternately with this one's.
    pub(super) base: Option<PathBuf>,
    pub(super) guard: Guard,
}

impl Runner<'_> {
    /// Runs all workloads. One that fails says so in its result.
    ///
    /// # Errors
    /// One line: a signal asked for the end.
    pub(super) fn run(&self) -> Result<Results, String> {
        let mut workloads = Vec::new();
        for workload in &self.config.workloads {
            report::progress(&format!("{}: counts", workload.name));
            let counted = self.count(workload);
            self.check_signal()?;
            workloads.push(counted.unwrap_or_else(|failure| Measured {
                failure: Some(failure),
                ..blank(workload)
            }));
        }
        let mut results = Results::new(
            env!("CARGO_PKG_VERSION").to_owned(),
            this_machine(),
            workloads,
        );
        self.time(&mut results, |_| true)?;
        Ok(results)
    }

    /// Has no signal asked for the end?
    fn check_signal(&self) -> Result<(), String> {
        match self.guard.signal() {
            Some(signal) => Err(format!("signal {signal} ended the workloads")),
            None => Ok(()),
        }
    }

    /// Runs a command of a workload in a version of the project.
    fn launch(
        &self,
        workload: &Workload,
        folder: &Path,
        command: &[String],
        (what, mode): (What, Mode),
    ) -> Result<Ended, String> {
        let ended = launch::run(&Launch {
            otp: self.otp.clone(),
            what,
            command: command.to_vec(),
            mode: Mode {
                quiet: true,
                folder: Some(folder.join(&workload.cwd)),
                variables: workload.env.clone(),
                guard: Some(self.guard.clone()),
                timeout: workload.timeout,
                ..mode
            },
        })?;
        if ended.totals.iter().any(|totals| totals.waits_for_ever) {
            return Err(format!(
                "'{}': all processes wait for ever",
                command.join(" ")
            ));
        }
        match ended.status.success() {
            true => Ok(ended),
            false => Err(format!("'{}' failed: {}", command.join(" "), ended.status)),
        }
    }

    /// Runs what comes before a workload. It sees the folders that the workload sees: a compiler writes their names into
    /// what it makes, and to load a longer file costs more.
    fn set_up(&self, workload: &Workload, folder: &Path) -> Result<(), String> {
        for command in &workload.setup {
            let mode = Mode {
                linked: true,
                ..Mode::default()
            };
            let how = (What::Run, mode);
            let ended = self.launch(workload, folder, command, how);
            ended.map_err(|e| format!("its setup: {e}"))?;
        }
        Ok(())
    }

    /// Runs a workload once, deterministically.
    fn run_once(&self, workload: &Workload, what: What) -> Result<Ended, String> {
        let mode = Mode {
            deterministic: true,
            totals: true,
            ..Mode::default()
        };
        self.launch(
            workload,
            &self.config.folder,
            &workload.command,
            (what, mode),
        )
    }

    fn count(&self, workload: &Workload) -> Result<Measured, String> {
        self.set_up(workload, &self.config.folder)?;
        let mut plain = self.run_once(workload, What::Run)?;
        let request = Request {
            kind: Type::CallMemory,
            patterns: with_loading(&workload.patterns),
            call_tree: true,
            span: Span::default(),
            folder: PathBuf::new(),
            libraries: Libraries::default(),
        };
        let traced = self.run_once(workload, What::Profile(Box::new(request)))?;
        traced.tell_outlived();
        traced.tell_patterns();
        let mut unsteady = None;
        if !is_alike(total(&plain.totals), total(&traced.totals)) {
            // What it found there when it ran first, such as files to compile, may not be there any more.
            let first = total(&plain.totals);
            plain = self.run_once(workload, What::Run)?;
            unsteady = Some(differs(first, total(&plain.totals), total(&traced.totals)));
        }
        let first = plain.totals.first();
        let first = first.ok_or("no emulator that the command started ran to its end")?;
        let mut measured = Measured {
            otp: first.otp.clone(),
            totals: total(&plain.totals),
            outside: outside(&plain.totals),
            unsteady,
            ..blank(workload)
        };
        if let Some(profile) = &traced.profile {
            take_functions(&mut measured, profile, &traced.totals);
        }
        if measured.functions.is_empty() && !workload.patterns.is_empty() {
            let patterns: Vec<String> = workload.patterns.iter().map(ToString::to_string).collect();
            return Err(format!(
                "it called no function that its patterns match ({})",
                patterns.join(", ")
            ));
        }
        Ok(measured)
    }

    /// Measures the times of workloads alternately: each once, then each once more; and each version. One that fails
    /// says so in its result.
    ///
    /// # Errors
    /// One line: a signal asked for the end.
    pub(super) fn time(
        &self,
        results: &mut Results,
        is_meant: impl Fn(&str) -> bool,
    ) -> Result<(), String> {
        let workloads = self.config.workloads.iter();
        let workloads: Vec<&Workload> = workloads.filter(|w| is_meant(&w.name)).collect();
        let rounds = workloads.iter().filter(|w| w.runs > 0);
        let rounds = rounds.map(|w| w.warm_up + w.runs).max().unwrap_or(0);
        for workload in &workloads {
            if let Some(measured) = measured(results, workload) {
                measured.times = Times::default();
            }
        }
        for round in 0..rounds {
            for workload in &workloads {
                let due = workload.runs > 0 && round < workload.warm_up + workload.runs;
                let failed = |measured: &mut Measured| measured.failure.is_some();
                if !due || measured(results, workload).is_none_or(failed) {
                    continue;
                }
                report::progress(&format!("{}: time, round {}", workload.name, round + 1));
                let times = self.time_both(workload, round == 0);
                self.check_signal()?;
                let Some(measured) = measured(results, workload) else {
                    continue;
                };
                match times {
                    Err(failure) => measured.failure = Some(failure),
                    Ok([new, base]) if round >= workload.warm_up => {
                        measured.times.runs_ns.extend(new);
                        measured.times.base_runs_ns.extend(base);
                    }
                    Ok(_) => {}
                }
            }
        }
        Ok(())
    }

    /// The time of this version, and of the older one.
    fn time_both(&self, workload: &Workload, is_first: bool) -> Result<[Option<u64>; 2], String> {
        let here = Some(self.config.folder.as_path());
        let mut times = [None, None];
        for (time, folder) in times.iter_mut().zip([here, self.base.as_deref()]) {
            let Some(folder) = folder else { continue };
            if is_first {
                self.set_up(workload, folder)?;
            }
            *time = Some(self.time_once(workload, folder)?);
        }
        Ok(times)
    }

    fn time_once(&self, workload: &Workload, folder: &Path) -> Result<u64, String> {
        let how = (What::Run, Mode::default());
        let ended = self.launch(workload, folder, &workload.command, how)?;
        Ok(u64::try_from(ended.time.as_nanos()).unwrap_or(u64::MAX))
    }
}

/// The patterns that count the functions of these, and apart from them what loads modules.
fn with_loading(patterns: &[Pattern]) -> Vec<Pattern> {
    let mut all = patterns.to_vec();
    if !all.is_empty() {
        let (module, name, arity) = LOADS;
        all.extend(format!("{module}:{name}/{arity}").parse::<Pattern>());
    }
    all
}

/// A workload of which nothing is counted yet.
fn blank(workload: &Workload) -> Measured {
    Measured {
        name: workload.name.clone(),
        command: workload.command.clone(),
        patterns: workload.patterns.clone(),
        ..Measured::default()
    }
}

/// Did two runs, of which one may have had breakpoints, do the same? These cost reductions, and a few words.
fn is_alike(a: Counted, b: Counted) -> bool {
    let counts = |of: Counted| [of.words, of.messages, of.processes];
    let mut pairs = counts(a).into_iter().zip(counts(b));
    pairs.all(|(a, b)| a.abs_diff(b) <= a.max(b) / 100)
}

/// How the runs of a workload differ: what they did at first, then, and with breakpoints.
fn differs(first: Counted, then: Counted, traced: Counted) -> String {
    let pairs = first.metrics().into_iter().zip(traced.metrics());
    let differ = pairs.filter(|(a, b)| a != b);
    let differ: Vec<String> = differ
        .map(|((metric, a), (_, b))| format!("{metric} {a}, then {b}"))
        .collect();
    let why = match is_alike(then, traced) {
        true => {
            "its first run prepared what the next ones found, and does not count; put that into 'setup'"
        }
        false => "what it does is not the same in each run",
    };
    format!("{why} ({})", differ.join("; "))
}

fn measured<'a>(results: &'a mut Results, workload: &Workload) -> Option<&'a mut Measured> {
    let mut all = results.workloads.iter_mut();
    all.find(|measured| measured.name == workload.name)
}

/// The sum over all emulators of a command. An emulator whose command line started nothing counts as a whole.
fn total(all: &[Totals]) -> Counted {
    let mut sum = Counted::default();
    for totals in all {
        sum.add(match totals.processes {
            Some(_) => &totals.workload,
            None => &totals.whole,
        });
    }
    sum
}

fn outside(all: &[Totals]) -> Vec<String> {
    let mut taken: Vec<String> = all.iter().flat_map(|t| t.outside.clone()).collect();
    taken.sort();
    taken.dedup();
    taken
}

/// Takes the functions of the workload's processes from the profile of one emulator. From a profile of several
/// emulators it takes those of all processes.
fn take_functions(measured: &mut Measured, profile: &Profile, totals: &[Totals]) {
    let workload = match totals {
        [totals] => totals.processes.as_ref(),
        _ => None,
    };
    measured.take_profile(profile, |pid| {
        workload.is_none_or(|workload| workload.has(pid))
    });
}

fn this_machine() -> Machine {
    let mut system = sysinfo::System::new();
    system.refresh_cpu_all();
    Machine {
        processor: system
            .cpus()
            .first()
            .map_or(String::new(), |cpu| cpu.brand().trim().to_owned()),
        cores: chance::processors(),
    }
}
