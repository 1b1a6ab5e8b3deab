//! The emulator of an exploration, and its workers.

use std::collections::HashSet;
use std::io;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use beamline_formats::order::{self, Answer, Ask, Lots, Reply, Scenario, Trace};
use beamline_formats::variable::Variable as _;
use tempfile::TempDir;

use super::finding::Call;
use crate::launch::{self, Ended, Guard, What};
use crate::options::{EnvironmentArgs, ReplayOf};

/// An emulator that has booted, and forks its runs.
pub(super) struct Machine {
    pub(super) workers: Vec<Worker>,
    pub(super) guard: Guard,
    launch: Option<thread::JoinHandle<()>>,
    is_loud: bool,
    _folder: TempDir,
}

/// One of the processes that make runs.
pub(super) struct Worker {
    stream: UnixStream,
    loaded: HashSet<String>,
    is_loud: bool,
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
        call: &Call,
        workers: u32,
        reductions: u64,
    ) -> Result<Machine, String> {
        Machine::with(environment, command, call, workers, reductions, false)
    }

    /// The same for one worker, whose runs print what they print.
    pub(super) fn start_loud(
        environment: &EnvironmentArgs,
        command: &[String],
        call: &Call,
        reductions: u64,
    ) -> Result<Machine, String> {
        Machine::with(environment, command, call, 1, reductions, true)
    }

    fn with(
        environment: &EnvironmentArgs,
        command: &[String],
        call: &Call,
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
            module: call.module.clone(),
            function: call.function.clone(),
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
            is_loud,
            _folder: folder,
        };
        machine.wait_for_workers(workers, &news)?;
        Ok(machine)
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
                        loaded: HashSet::new(),
                        is_loud: self.is_loud,
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
            None => "the command ended, and started no emulator that can explore: it only starts one, as erl -noshell -pa \
                     ebin does"
                .to_owned(),
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
            let ask = Ask::Run {
                prefix: prefix.clone(),
                is_loud,
                lots,
            };
            let Reply::Ran(answer) = self.ask(&ask)? else {
                return Err("a worker has answered what it was not asked".to_owned());
            };
            let news: Vec<String> = answer
                .loads()
                .filter(|module| !self.loaded.contains(*module))
                .map(str::to_owned)
                .collect();
            let is_last = round >= ROUNDS || news.is_empty();
            if is_last && self.is_loud == is_loud {
                return Ok(*answer);
            }
            self.loaded.extend(news.iter().cloned());
            self.ask(&Ask::Load(news))?;
        }
        unreachable!("the last round returns")
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
