//! Tells where all processes are when a replay has stopped, and ends the emulator or opens a shell.

use std::fmt::Write as _;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use beamline_formats::name::mfa;
use beamline_formats::profile::Origin;
use beamline_orders::Halt;

use super::origin::Origins;
use crate::exec::exception;
use crate::hash::{HashMap, HashSet};
use crate::loader::module::Mfa;
use crate::process::order::replay::look::look;
use crate::process::order::replay::stop;
use crate::process::registry::{Named, whereis};
use crate::process::{Process, Signal, SpawnOptions, deliver, spawn_first, table};
use crate::sched::ptab::pin;
use crate::sys::stderr::complain;
use crate::sys::{file, halt};
use crate::term::{Atom, Pid, Term};

/// Most functions of a stack searched for one of the application.
const DEPTH: usize = 16;
/// How long a process is waited for that runs native code.
const PATIENCE: Duration = Duration::from_secs(2);

/// Waits for the stop of the replay, if one is asked for.
pub(crate) fn start() {
    if let Some(halt) = stop::asked() {
        let started = std::thread::Builder::new()
            .name("replay_stop".into())
            .spawn(move || tell(halt));
        started.expect("a thread that waits for the replay's stop");
    }
}

fn tell(halt: &Halt) {
    stop::wait();
    let (asked, rows) = ask_all();
    let text = text(asked, &rows, &Origins::new(&halt.libraries));
    // The reader of standard output may be gone: then nothing is left to tell.
    let _ = file::write_all(1, text.as_bytes());
    match halt.shell {
        true => open_shell(&rows),
        false => halt::request(0),
    }
}

/// Where a process is.
struct Row {
    pid: Pid,
    parent: Pid,
    advance_delivery: bool,
    reference: String,
    known_as: String,
    frames: Vec<(Mfa, u32)>,
    messages: usize,
    held: usize,
}

/// Has all processes tell where they are, those that a process was about to spawn, too: how many were asked, and what
/// they tell.
fn ask_all() -> (usize, Vec<Row>) {
    let (mut asked, mut rows) = (HashSet::default(), Vec::new());
    loop {
        let all: Vec<Pid> = table().iter(&pin()).map(|shared| shared.pid()).collect();
        let new: Vec<Pid> = all.into_iter().filter(|pid| asked.insert(*pid)).collect();
        if new.is_empty() {
            return (asked.len(), rows);
        }
        rows.extend(answers(&ask(&new)));
    }
}

/// Has processes tell where they are.
fn ask(all: &[Pid]) -> Receiver<Row> {
    let (tell, told) = channel();
    for pid in all {
        let tell = tell.clone();
        let ask = move |p: Option<&mut Process>| {
            if let Some(p) = p.filter(|p| !p.is_exiting()) {
                // The thread that has asked may have given up.
                let _ = tell.send(Row::of(p));
            }
        };
        deliver(*pid, Signal::request(ask));
    }
    told
}

impl Row {
    fn of(p: &Process) -> Row {
        let standing = p.standing();
        let (reference, recorded_as) = standing.name.unwrap_or_default();
        let name = p
            .shared()
            .name()
            .map(|name| name.term().display().to_string());
        let initial = || {
            let (module, function, arity) = p.initial_call.get();
            mfa(module.name(), function.name(), arity.into())
        };
        Row {
            pid: p.pid(),
            parent: p.parent().pid().unwrap_or_else(|| p.pid()),
            advance_delivery: standing.advance_delivery,
            reference,
            known_as: name.or(recorded_as).unwrap_or_else(initial),
            frames: exception::lines(p, DEPTH),
            messages: p.mailbox.len(),
            held: standing.held,
        }
    }
}

/// What has come, until nothing more does.
fn answers(rows: &Receiver<Row>) -> Vec<Row> {
    std::iter::from_fn(|| rows.recv_timeout(PATIENCE).ok()).collect()
}

/// A row as it is printed.
struct Printed {
    /// The most interesting one comes first.
    rank: (bool, bool, bool),
    columns: [String; 5],
}

impl Row {
    fn printed(&self, origins: &Origins) -> Printed {
        let is_own = |(at, _): &&(Mfa, u32)| origins.of(at.module) == Origin::App;
        let own = self.frames.iter().find(is_own);
        let rank = (!self.advance_delivery, own.is_none(), self.messages == 0);
        let place = match (own, self.frames.first()) {
            (Some(own), Some(first)) if own.0 != first.0 => {
                format!("{}, in {}", place(own), place(first))
            }
            (_, Some(first)) => place(first),
            (_, None) => String::new(),
        };
        let early = match self.held {
            0 => String::new(),
            held => format!(", {held} early"),
        };
        let messages = match self.messages {
            1 => format!("1 message{early}"),
            messages => format!("{messages} messages{early}"),
        };
        let pid = self.pid.term().display().to_string();
        let columns = [
            self.reference.clone(),
            pid,
            self.known_as.clone(),
            messages,
            place,
        ];
        Printed { rank, columns }
    }
}

fn place((at, line): &(Mfa, u32)) -> String {
    let function = mfa(at.module.name(), at.function.name(), at.arity.into());
    match line {
        0 => function,
        line => format!("{function}, line {line}"),
    }
}

fn text(asked: usize, rows: &[Row], origins: &Origins) -> String {
    let printed = rows.iter().map(|row| (row.pid, row.printed(origins)));
    let mut printed: Vec<_> = printed.collect();
    printed.sort_by_key(|(pid, row)| (row.rank, pid.number()));
    let mut text = format!("stopped: {}\n", stop::line().unwrap_or_default());
    let width = |column: usize| {
        let lengths = printed.iter();
        let lengths = lengths.map(|(_, row)| row.columns[column].chars().count());
        lengths.max().unwrap_or(0)
    };
    let widths = [width(0), width(1), width(2), width(3)];
    for (_, row) in &printed {
        for (column, width) in row.columns.iter().zip(widths) {
            let _ = write!(text, "{column:width$}  ");
        }
        let _ = writeln!(text, "{}", row.columns[4]);
    }
    let missing = asked.saturating_sub(printed.len());
    if missing > 0 {
        let _ = writeln!(text, "{missing} processes have ended, or run native code");
    }
    text
}

/// The machine's own processes, with all that they have spawned: they serve the shell.
const OWN: [&str; 3] = ["erl_prim_loader", "logger", "heart"];

/// Opens a shell on the terminal. What belongs to the program stands still meanwhile.
fn open_shell(rows: &[Row]) {
    let pid = |name: &str| match whereis(Atom::new(name)) {
        Some(Named::Process(pid)) => Some(pid),
        _ => None,
    };
    let (Some(_), Some(kernel), Some(controller)) = (
        pid("user_drv"),
        pid("kernel_sup"),
        pid("application_controller"),
    ) else {
        complain!("beamline: there is no shell here: the application kernel has not started");
        halt::request(1);
        return;
    };
    let parents: HashMap<Pid, Pid> = rows.iter().map(|row| (row.pid, row.parent)).collect();
    // A process, its parent, and so on.
    let line = |pid: Pid| {
        std::iter::successors(Some(pid), |pid| {
            parents.get(pid).copied().filter(|parent| parent != pid)
        })
    };
    let kernel = line(kernel).take_while(|pid| *pid != controller).last();
    let mut own: HashSet<Pid> = OWN.iter().filter_map(|name| pid(name)).collect();
    own.extend(kernel);
    let is_own = |row: &&Row| {
        row.pid == row.parent
            || row.pid == controller
            || line(row.pid).any(|pid| own.contains(&pid))
    };
    let (own, program): (Vec<&Row>, Vec<&Row>) = rows.iter().partition(is_own);
    let own: Vec<Pid> = own.into_iter().map(|row| row.pid).collect();
    look(program.into_iter().map(|row| row.pid).collect(), &own);
    let (module, function) = (Atom::new("user_drv"), Atom::new("start_shell"));
    spawn_first(module, function, |_| Term::NIL, &SpawnOptions::default());
}
