//! Runs workloads: once without breakpoints and once with them, both deterministic, for counts; then alternately for
//! time.

use std::path::{Path, PathBuf};

use beamline_formats::chance;
use beamline_formats::gate::{Machine, Results, Times, Workload as Measured};
use beamline_formats::profile::{Libraries, Profile, Request, Type};
use beamline_formats::totals::{Counted, Totals};

use super::config::{Config, Workload};
use crate::launch::{self, Ended, Launch, Mode, What};
use crate::report;

/// Runs the workloads of a project.
pub(super) struct Runner<'a> {
    pub(super) config: &'a Config,
    pub(super) otp: Option<PathBuf>,
    /// The folder of the older version of the project, whose times are measured alternately with this one's.
    pub(super) base: Option<PathBuf>,
}

impl Runner<'_> {
    /// Runs all workloads.
    ///
    /// # Errors
    /// One line: which workload failed, and how.
    pub(super) fn run(&self) -> Result<Results, String> {
        let mut workloads = Vec::new();
        for workload in &self.config.workloads {
            report::progress(&format!("{}: counts", workload.name));
            let counted = self.count(workload);
            workloads.push(counted.map_err(|e| format!("the workload {}: {e}", workload.name))?);
        }
        let mut results = Results::new(
            env!("CARGO_PKG_VERSION").to_owned(),
            this_machine(),
            workloads,
        );
        self.time(&mut results, |_| true)?;
        Ok(results)
    }

    fn launch(&self, workload: &Workload, what: What, mode: Mode) -> Result<Ended, String> {
        let ended = launch::run(&Launch {
            otp: self.otp.clone(),
            what,
            command: workload.command.clone(),
            mode: Mode {
                quiet: true,
                ..mode
            },
        })?;
        match ended.status.success() {
            true => Ok(ended),
            false => Err(format!(
                "'{}' failed: {}",
                workload.command.join(" "),
                ended.status
            )),
        }
    }

    fn count(&self, workload: &Workload) -> Result<Measured, String> {
        let mode = Mode {
            deterministic: true,
            totals: true,
            folder: Some(self.config.folder.clone()),
            ..Mode::default()
        };
        let plain = self.launch(workload, What::Run, mode.clone())?;
        let first = plain.totals.first();
        let first = first.ok_or("no emulator that the command started ran to its end")?;
        let request = Request {
            kind: Type::CallMemory,
            patterns: workload.patterns.clone(),
            call_tree: true,
            delay_ms: 0,
            duration_ms: None,
            folder: PathBuf::new(),
            libraries: Libraries::default(),
        };
        let traced = self.launch(workload, What::Profile(request), mode)?;
        traced.tell_patterns();
        let mut measured = Measured {
            name: workload.name.clone(),
            command: workload.command.clone(),
            otp: first.otp.clone(),
            totals: total(&plain.totals),
            outside: outside(&plain.totals),
            ..Measured::default()
        };
        if let Some(profile) = &traced.profile {
            take_functions(&mut measured, profile, &traced.totals);
        }
        if measured.functions.is_empty() && !workload.patterns.is_empty() {
            let patterns: Vec<String> = workload.patterns.iter().map(ToString::to_string).collect();
            return Err(format!(
                "the workload called no function that its patterns match ({})",
                patterns.join(", ")
            ));
        }
        Ok(measured)
    }

    /// Measures the times of workloads alternately: each once, then each once more; and each version.
    ///
    /// # Errors
    /// One line: which workload failed, and how.
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
                if !due {
                    continue;
                }
                report::progress(&format!("{}: time, round {}", workload.name, round + 1));
                let mut times = [None, None];
                let here = Some(self.config.folder.as_path());
                for (time, folder) in times.iter_mut().zip([here, self.base.as_deref()]) {
                    *time = folder.map(|f| self.time_once(workload, f)).transpose()?;
                }
                let [new, base] = times;
                if round >= workload.warm_up
                    && let Some(measured) = measured(results, workload)
                {
                    measured.times.runs_ns.extend(new);
                    measured.times.base_runs_ns.extend(base);
                }
            }
        }
        Ok(())
    }

    fn time_once(&self, workload: &Workload, folder: &Path) -> Result<u64, String> {
        let mode = Mode {
            folder: Some(folder.to_owned()),
            ..Mode::default()
        };
        let ended = self.launch(workload, What::Run, mode);
        let ended = ended.map_err(|e| format!("the workload {}: {e}", workload.name))?;
        Ok(u64::try_from(ended.time.as_nanos()).unwrap_or(u64::MAX))
    }
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
