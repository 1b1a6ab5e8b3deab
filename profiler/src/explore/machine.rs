//! The emulator of an exploration, and its workers.

use std::collections::BTreeSet;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use std::{io, thread};

use beamline_formats::ring::Function;
use beamline_orders::{Answer, Ask, Call, Lots, Reply, Scenario, Trace};
use beamline_settings::chance;
use beamline_settings::variable::Variable as _;
use tempfile::TempDir;

use crate::launch::{self, Ended, Guard, What};
use crate::options::{EnvironmentArgs, ReplayOf};

/// An emulator that has booted, and forks its runs.
pub(super) struct Machine {
    pub(super) workers: Vec<Worker>,
    pub(super) guard: Guard,
    launch: Option<thread::JoinHandle<()>>,
    needs: AllNeed,
    is_loud: bool,
    has_call: bool,
    _folder: TempDir,
}

/// One of the processes that make runs.
pub(super) struct Worker {
    stream: UnixStream,
    all_need: AllNeed,
    /// The needs that this machine meets.
    has: Needs,
    is_loud: bool,
    /// When runs are ended, however far they are.
    pub(super) deadline: Option<Instant>,
}

/// What runs have loaded and compiled, which every worker loads and compiles before its next run.
///
/// To load a module takes messages and accesses that no prefix has, which a run behind a prefix cannot make. To compile a
/// function takes time, of each run again.
#[derive(Clone, Default)]
struct AllNeed(Arc<Mutex<Needs>>);

#[derive(Default)]
struct Needs {
    modules: BTreeSet<String>,
    functions: BTreeSet<Function>,
}

impl AllNeed {
    fn lock(&self) -> MutexGuard<'_, Needs> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What `all` has and `some` of it lacks, which has it from then on.
fn take_lacking<T: Ord + Clone>(all: &BTreeSet<T>, some: &mut BTreeSet<T>) -> Vec<T> {
    if all.len() == some.len() {
        return Vec::new();
    }
    let lacking: Vec<T> = all.difference(some).cloned().collect();
    some.extend(lacking.iter().cloned());
    lacking
}

enum News {
    Connected(UnixStream),
    Ended(Box<Result<Ended, String>>),
}

impl Machine {
    /// Starts the emulator.
    ///
    /// # Errors
    /// One line: it cannot be started, or there is no such function.
    pub(super) fn start(
        environment: &EnvironmentArgs,
        command: &[String],
        call: Option<&Call>,
        workers: u32,
        reductions: u64,
    ) -> Result<Machine, String> {
        Machine::with(environment, command, call, workers, reductions, false)
    }

    /// Starts the emulator with one worker, whose runs print what they print.
    pub(super) fn start_loud(
        environment: &EnvironmentArgs,
        command: &[String],
        call: Option<&Call>,
        reductions: u64,
    ) -> Result<Machine, String> {
        Machine::with(environment, command, call, 1, reductions, true)
    }

    fn with(
        environment: &EnvironmentArgs,
        command: &[String],
        call: Option<&Call>,
        workers: u32,
        reductions: u64,
        is_loud: bool,
    ) -> Result<Machine, String> {
        let failed = |error: io::Error| format!("the emulator of the exploration: {error}");
        let folder = tempfile::Builder::new()
            .prefix("beamline-")
            .tempdir()
            .map_err(failed)?;
        let socket = folder.path().join("socket");
        let listener = UnixListener::bind(&socket).map_err(failed)?;
        let scenario = Scenario {
            call: call.cloned(),
            socket,
            claim: folder.path().join("claim"),
            workers,
            reductions,
        };
        let guard = Guard::new().map_err(failed)?;
        let none = ReplayOf {
            schedulers: None,
            stop: None,
            replay: None,
            go_on: false,
        };
        let mut launch = environment.launch(What::Run, command, &none)?;
        launch.mode.deterministic = true;
        launch.mode.quiet = !is_loud;
        launch.mode.guard = Some(guard.clone());
        launch
            .mode
            .variables
            .push((Scenario::VARIABLE.to_owned(), scenario.to_variable()?));
        let (tell, news) = channel();
        let told = tell.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if told.send(News::Connected(stream)).is_err() {
                    break;
                }
            }
        });
        let launched = thread::spawn(move || {
            // Nobody hears of it once all workers are there.
            let _ = tell.send(News::Ended(Box::new(launch::run(&launch))));
        });
        let mut machine = Machine {
            workers: Vec::new(),
            guard,
            launch: Some(launched),
            needs: AllNeed::default(),
            is_loud,
            has_call: call.is_some(),
            _folder: folder,
        };
        machine.wait_for_workers(workers, &news)?;
        Ok(machine)
    }

    /// The modules that runs have loaded.
    pub(super) fn modules(&self) -> Vec<String> {
        self.needs.lock().modules.iter().cloned().collect()
    }

    fn wait_for_workers(&mut self, workers: u32, news: &Receiver<News>) -> Result<(), String> {
        while self.workers.len() < workers as usize {
            match news.recv() {
                Ok(News::Connected(mut stream)) => {
                    match beamline_orders::receive(&mut stream) {
                        Ok(Some(Reply::Ready)) => {}
                        Ok(Some(Reply::Refused(why))) => return Err(why),
                        // Its emulator tells by its end.
                        _ => continue,
                    }
                    self.workers.push(Worker {
                        stream,
                        all_need: self.needs.clone(),
                        has: Needs::default(),
                        is_loud: self.is_loud,
                        deadline: None,
                    });
                }
                Ok(News::Ended(ended)) => {
                    return Err(ended.err().unwrap_or_else(|| self.why_none()));
                }
                Err(_) => return Err(self.why_none()),
            }
        }
        Ok(())
    }

    fn why_none(&self) -> String {
        match self.guard.signal() {
            Some(signal) => format!("it was ended, because signal {signal} asked for the end"),
            None if self.has_call => {
                "the command ended, and started no emulator that can explore: it only starts one, as erl -noshell -pa \
                 ebin does"
                    .to_owned()
            }
            None => "the command ended, and started no emulator that can explore".to_owned(),
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // Workers end when nobody asks them any more, and the emulator with them.
        self.workers.clear();
        if let Some(launch) = self.launch.take() {
            let _ = launch.join();
        }
    }
}

/// How often a run is made again at most because it has loaded modules.
const ROUNDS: usize = 50;

impl Worker {
    /// Makes a run behind a prefix, decided by lots if any are given. What it loads is loaded before, and it is made again.
    ///
    /// # Errors
    /// One line: the worker has ended.
    pub(super) fn run(&mut self, prefix: &Trace, lots: Option<Lots>) -> Result<Answer, String> {
        let prefix = match prefix.length() {
            0 => String::new(),
            _ => prefix.to_string(),
        };
        for round in 0.. {
            let is_loud = self.is_loud && round > 0;
            let (answer, is_last) = self.run_once(&prefix, is_loud, lots)?;
            if (is_last || round >= ROUNDS) && self.is_loud == is_loud {
                return Ok(answer);
            }
        }
        unreachable!("the last round returns")
    }

    /// Loads these modules, and those that the call loads in a run without a prefix, which nobody sees.
    ///
    /// # Errors
    /// One line: the worker has ended.
    pub(super) fn prepare(&mut self, modules: &[String]) -> Result<(), String> {
        self.all_need.lock().modules.extend(modules.iter().cloned());
        for _ in 0..ROUNDS {
            let (_, is_last) = self.run_once("", false, None)?;
            if is_last {
                break;
            }
        }
        Ok(())
    }

    /// Makes a run, and tells whether it has loaded nothing.
    fn run_once(
        &mut self,
        prefix: &str,
        is_loud: bool,
        lots: Option<Lots>,
    ) -> Result<(Answer, bool), String> {
        self.get_what_lacks()?;
        let ask = Ask::Run {
            prefix: prefix.to_owned(),
            is_loud,
            lots,
            time: self.deadline.map(|end| end - chance::now().min(end)),
        };
        let Reply::Ran(mut answer) = self.ask(&ask)? else {
            return Err("a worker has answered what it was not asked".to_owned());
        };
        let loads = answer.loads();
        let news: Vec<String> = loads
            .filter(|module| !self.has.modules.contains(*module))
            .map(str::to_owned)
            .collect();
        let is_last = news.is_empty();
        let mut needs = self.all_need.lock();
        needs.modules.extend(news);
        needs.functions.extend(answer.compiled.drain(..));
        drop(needs);
        Ok((*answer, is_last))
    }

    /// Loads the modules that it lacks, and compiles the functions.
    fn get_what_lacks(&mut self) -> Result<(), String> {
        let all = self.all_need.lock();
        let modules = take_lacking(&all.modules, &mut self.has.modules);
        let functions = take_lacking(&all.functions, &mut self.has.functions);
        drop(all);
        if !modules.is_empty() {
            self.ask(&Ask::Load(modules))?;
        }
        if !functions.is_empty() {
            self.ask(&Ask::Compile(functions))?;
        }
        Ok(())
    }

    fn ask(&mut self, ask: &Ask) -> Result<Reply, String> {
        let sent = beamline_orders::send(&mut self.stream, ask);
        let reply = sent.and_then(|()| beamline_orders::receive(&mut self.stream));
        match reply {
            Ok(Some(reply)) => Ok(reply),
            Ok(None) => Err("the emulator of the exploration has ended".to_owned()),
            Err(error) => Err(format!("the emulator of the exploration: {error}")),
        }
    }
}
