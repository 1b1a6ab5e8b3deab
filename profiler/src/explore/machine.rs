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
    is_loud: bool,
    has_call: bool,
    _folder: TempDir,
}

/// One of the processes that make runs.
pub(super) struct Worker {
    stream: UnixStream,
    loaded: BTreeSet<String>,
    /// What all workers know that runs load.
    known: Arc<Mutex<BTreeSet<String>>>,
    is_loud: bool,
    /// When runs are ended, however far they are.
    pub(super) deadline: Option<Instant>,
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
            is_loud,
            has_call: call.is_some(),
            _folder: folder,
        };
        machine.wait_for_workers(workers, &news)?;
        Ok(machine)
    }

    fn wait_for_workers(&mut self, workers: u32, news: &Receiver<News>) -> Result<(), String> {
        let known = Arc::default();
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
                        loaded: BTreeSet::new(),
                        known: Arc::clone(&known),
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
        self.load_known()?;
        for round in 0.. {
            let is_loud = self.is_loud && round > 0;
            let ask = Ask::Run {
                prefix: prefix.clone(),
                is_loud,
                lots,
                time: self.deadline.map(|end| end - chance::now().min(end)),
            };
            let Reply::Ran(answer) = self.ask(&ask)? else {
                return Err("a worker has answered what it was not asked".to_owned());
            };
            let is_last = !self.learns(&answer) || round >= ROUNDS;
            if is_last && self.is_loud == is_loud {
                return Ok(*answer);
            }
            self.load_known()?;
        }
        unreachable!("the last round returns")
    }

    /// Has what any run loads loaded, before a prefix is followed from which it is gone: runs without one, and tells nothing.
    ///
    /// # Errors
    /// One line: the worker has ended.
    pub(super) fn prepare(&mut self) -> Result<(), String> {
        let is_loud = std::mem::take(&mut self.is_loud);
        let ran = self.run(&Trace::default(), None);
        self.is_loud = is_loud;
        ran.map(drop)
    }

    fn known(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a run has loaded what nobody knew.
    fn learns(&self, answer: &Answer) -> bool {
        let mut known = self.known();
        let before = known.len();
        known.extend(answer.loads().map(str::to_owned));
        known.len() > before || known.len() > self.loaded.len()
    }

    /// Loads what runs are known to load.
    fn load_known(&mut self) -> Result<(), String> {
        let known = self.known().clone();
        let news: Vec<String> = known.difference(&self.loaded).cloned().collect();
        if !news.is_empty() {
            self.ask(&Ask::Load(news))?;
        }
        self.loaded = known;
        Ok(())
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
