//! The emulator of an exploration, and its workers.

use std::collections::BTreeSet;
use std::io;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use beamline_formats::chance;
use beamline_formats::order::{self, Answer, Ask, Call, Lots, Reply, Scenario, Trace};
use beamline_formats::variable::Variable as _;
use tempfile::TempDir;

use crate::launch::{self, Ended, Guard, What};
use crate::options::{EnvironmentArgs, ReplayOf};

/// An emulator that has booted, and forks its runs.
pub(super) struct Machine {
    pub(super) workers: Vec<Worker>,
    pub(super) guard: Guard,
    launch: Option<thread::JoinHandle<()>>,
    modules: Modules,
    is_loud: bool,
    has_call: bool,
    _folder: TempDir,
}

/// One of the processes that make runs.
pub(super) struct Worker {
    stream: UnixStream,
    modules: Modules,
    /// Those of the modules that it has loaded.
    loaded: BTreeSet<String>,
    is_loud: bool,
    /// When runs are ended, however far they are.
    pub(super) deadline: Option<Instant>,
}

/// The modules that runs have loaded. Every worker loads them before its next run: to load a module takes messages and
/// accesses that no prefix has, which a run behind a prefix cannot make.
#[derive(Clone, Default)]
struct Modules(Arc<Mutex<BTreeSet<String>>>);

impl Modules {
    fn all(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
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

    /// The same for one worker, whose runs print what they print.
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
            modules: Modules::default(),
            is_loud,
            has_call: call.is_some(),
            _folder: folder,
        };
        machine.wait_for_workers(workers, &news)?;
        Ok(machine)
    }

    /// The modules that runs have loaded.
    pub(super) fn modules(&self) -> Vec<String> {
        self.modules.all().iter().cloned().collect()
    }

    fn wait_for_workers(&mut self, workers: u32, news: &Receiver<News>) -> Result<(), String> {
        while self.workers.len() < workers as usize {
            match news.recv() {
                Ok(News::Connected(mut stream)) => {
                    match order::receive(&mut stream) {
                        Ok(Some(Reply::Ready)) => {}
                        Ok(Some(Reply::Refused(why))) => return Err(why),
                        // Its emulator tells by its end.
                        _ => continue,
                    }
                    self.workers.push(Worker {
                        stream,
                        modules: self.modules.clone(),
                        loaded: BTreeSet::new(),
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

/// So often a run is made again because it has loaded modules.
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
        self.modules.all().extend(modules.iter().cloned());
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
        self.load()?;
        let ask = Ask::Run {
            prefix: prefix.to_owned(),
            is_loud,
            lots,
            time: self.deadline.map(|end| end - chance::now().min(end)),
        };
        let Reply::Ran(answer) = self.ask(&ask)? else {
            return Err("a worker has answered what it was not asked".to_owned());
        };
        let loads = answer.loads();
        let news: Vec<&str> = loads
            .filter(|module| !self.loaded.contains(*module))
            .collect();
        let is_last = news.is_empty();
        self.modules
            .all()
            .extend(news.into_iter().map(str::to_owned));
        Ok((*answer, is_last))
    }

    /// Loads the modules that it lacks.
    fn load(&mut self) -> Result<(), String> {
        let lacks: Vec<String> = self
            .modules
            .all()
            .difference(&self.loaded)
            .cloned()
            .collect();
        if lacks.is_empty() {
            return Ok(());
        }
        self.loaded.extend(lacks.iter().cloned());
        self.ask(&Ask::Load(lacks)).map(drop)
    }

    fn ask(&mut self, ask: &Ask) -> Result<Reply, String> {
        let sent = order::send(&mut self.stream, ask);
        let reply = sent.and_then(|()| order::receive(&mut self.stream));
        match reply {
            Ok(Some(reply)) => Ok(reply),
            Ok(None) => Err("the emulator of the exploration has ended".to_owned()),
            Err(error) => Err(format!("the emulator of the exploration: {error}")),
        }
    }
}
