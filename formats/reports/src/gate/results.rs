//! The file of results, which says what workloads did. A result that the user accepts is a baseline.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use beamline_formats::name;
use beamline_formats::profile::{AtomicFile, Pattern, Profile};
use beamline_formats::totals::Counted;
use serde::{Deserialize, Serialize};

/// The version this crate writes, and the only one it reads.
const VERSION: u32 = 1;

/// The function in which a process loads the module that it calls: what that takes depends on the module's file, and is no
/// work of the program's functions.
pub const LOADS: (&str, &str, u32) = ("code", "ensure_loaded", 1);

/// The results of workloads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Results {
    /// [`VERSION`]
    version: u32,
    /// The version of Beamline that ran them.
    pub beamline: String,
    /// Where they ran.
    pub machine: Machine,
    /// Each of them.
    pub workloads: Vec<Workload>,
}

/// A machine, as far as times depend on it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The name its maker gave the processor.
    pub processor: String,
    /// How many it has.
    pub cores: usize,
}

/// The results of one workload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workload {
    /// Its name.
    pub name: String,
    /// What was run.
    pub command: Vec<String>,
    /// Which functions were counted; all if there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub patterns: Vec<Pattern>,
    /// Why there are no counts, where it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// How its two runs differ, where they have not done the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsteady: Option<String>,
    /// The OTP release whose libraries ran.
    pub otp: String,
    /// In all, in a deterministic run without breakpoints.
    pub totals: Counted,
    /// Per function, in a deterministic run; in order of their names.
    pub functions: Vec<FunctionCount>,
    /// Per call path, in the same run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<PathCount>,
    /// What those runs took from outside, which need not be the same elsewhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outside: Vec<String>,
    /// Times of normal runs.
    #[serde(default, skip_serializing_if = "Times::is_none")]
    pub times: Times,
}

/// The calls, words and reductions of a function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionCount {
    /// As Erlang writes it: `lists:map/2`.
    pub function: String,
    /// How often it was called.
    pub calls: u64,
    /// Own words allocated.
    pub words: u64,
    /// Own reductions; older results have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reductions: Option<u64>,
}

/// The calls, words and reductions of a call path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathCount {
    /// Functions, the caller first, with `;` between them.
    pub path: String,
    /// How often its last function was called so.
    pub calls: u64,
    /// Own words allocated.
    pub words: u64,
    /// Own reductions.
    #[serde(default)]
    pub reductions: u64,
}

/// Times of normal runs, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Times {
    /// Of the version measured.
    pub runs_ns: Vec<u64>,
    /// Of the version before, alternating with those; empty if it was not there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub base_runs_ns: Vec<u64>,
}

impl Times {
    fn is_none(&self) -> bool {
        self.runs_ns.is_empty()
    }
}

impl Results {
    /// What these workloads did.
    #[must_use]
    pub fn new(beamline: String, machine: Machine, workloads: Vec<Workload>) -> Results {
        Results {
            version: VERSION,
            beamline,
            machine,
            workloads,
        }
    }

    /// Reads a file of results.
    ///
    /// # Errors
    /// One line: the file cannot be read, is no such file, or of another version.
    pub fn read(path: &Path) -> Result<Results, String> {
        let fail = |e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
        let bytes = std::fs::read(path).map_err(|e| fail(&e))?;
        // What is no text is no JSON: what does not fit is in the place of each byte that is none.
        Self::parse(&String::from_utf8_lossy(&bytes)).map_err(|e| fail(&e))
    }

    /// Reads the text of such a file.
    ///
    /// # Errors
    /// One line.
    pub fn parse(text: &str) -> Result<Results, String> {
        #[derive(Deserialize)]
        struct Any {
            version: u32,
        }
        let no_result = |e: serde_json::Error| {
            format!("not a result of 'beamline ci run', or a damaged one: {e}")
        };
        let any: Any = serde_json::from_str(text).map_err(no_result)?;
        if any.version != VERSION {
            return Err(format!(
                "version {} of results; this Beamline reads version {VERSION}: make it again with 'beamline ci run'",
                any.version
            ));
        }
        serde_json::from_str(text).map_err(no_result)
    }

    /// Writes the file; it appears when it is whole.
    ///
    /// # Errors
    /// One line.
    pub fn write(&self, path: &Path) -> Result<(), String> {
        let write = || -> io::Result<()> {
            let mut file = AtomicFile::create(path)?;
            serde_json::to_writer_pretty(&mut file, self)?;
            writeln!(file)?;
            file.commit()
        };
        write().map_err(|e| format!("{}: {e}", path.display()))
    }

    /// The workload of this name.
    #[must_use]
    pub fn workload(&self, name: &str) -> Option<&Workload> {
        self.workloads.iter().find(|workload| workload.name == name)
    }
}

impl Workload {
    /// Takes the functions and call paths of the processes that are the workload's, without what they do while they load
    /// modules.
    pub fn take_profile(&mut self, profile: &Profile, is_own: impl Fn(&str) -> bool) {
        let own: Vec<bool> = profile
            .processes
            .iter()
            .map(|process| is_own(&process.pid))
            .collect();
        let mfa = |function: u32| {
            let f = &profile.functions[function as usize];
            name::mfa(&f.module, &f.name, f.arity)
        };
        let mut functions: BTreeMap<String, [u64; 3]> = BTreeMap::new();
        let counts = profile.counts.iter();
        for count in counts.filter(|count| count.process.is_some_and(|at| own[at as usize])) {
            let sums = functions.entry(mfa(count.function)).or_default();
            add(sums, [count.cost.calls, count.cost.words, 0]);
        }
        let loads = loading(profile);
        let mut names: Vec<String> = Vec::with_capacity(profile.nodes.len());
        let mut paths: BTreeMap<&str, [u64; 3]> = BTreeMap::new();
        for node in &profile.nodes {
            names.push(match node.parent {
                Some(parent) => format!("{};{}", names[parent as usize], mfa(node.function)),
                None => mfa(node.function),
            });
        }
        let nodes = profile.nodes.iter().zip(names.iter().zip(loads));
        for (node, (path, loads)) in nodes.filter(|(node, _)| own[node.process as usize]) {
            let (cost, reductions) = (&node.cost, node.reductions);
            if loads {
                if let Some([calls, words, _]) = functions.get_mut(&mfa(node.function)) {
                    *calls = calls.saturating_sub(cost.calls);
                    *words = words.saturating_sub(cost.words);
                }
                continue;
            }
            let sums = paths.entry(path).or_default();
            add(sums, [cost.calls, cost.words, reductions]);
            if let Some(sums) = functions.get_mut(&mfa(node.function)) {
                add(sums, [0, 0, reductions]);
            }
        }
        let functions = functions.into_iter().filter(|(_, sums)| *sums != [0; 3]);
        self.functions = functions
            .map(|(function, [calls, words, reductions])| FunctionCount {
                function,
                calls,
                words,
                reductions: Some(reductions),
            })
            .collect();
        let paths = paths.into_iter();
        self.paths = paths
            .map(|(path, [calls, words, reductions])| PathCount {
                path: path.to_owned(),
                calls,
                words,
                reductions,
            })
            .collect();
    }
}

/// Which nodes of a profile are calls of [`LOADS`], or below one.
fn loading(profile: &Profile) -> Vec<bool> {
    let mut all: Vec<bool> = Vec::with_capacity(profile.nodes.len());
    for node in &profile.nodes {
        let f = &profile.functions[node.function as usize];
        let is_below = node.parent.is_some_and(|parent| all[parent as usize]);
        all.push(is_below || (f.module.as_str(), f.name.as_str(), f.arity) == LOADS);
    }
    all
}

fn add(sums: &mut [u64; 3], more: [u64; 3]) {
    for (sum, more) in sums.iter_mut().zip(more) {
        *sum = sum.saturating_add(more);
    }
}
