//! The pids of a replay: each process that was recorded has the one that it had, and the others have later ones.

use std::sync::atomic::{AtomicU64, Ordering};

use beamline_orders::{Origin, Step as Recorded, Trace, Value};

use super::{Plan, plan, ports as sockets};
use crate::hash::HashSet;
use crate::process::Process;
use crate::sched::ptab;
use crate::term::Pid;

/// Which pids the recorded run gave.
pub(super) struct Identities {
    /// The highest of them; `None` where the trace tells none.
    last: Option<u64>,
    /// Those of processes that others have spawned.
    spawned: HashSet<u64>,
    /// The highest number of a port; `None` where the trace tells none.
    last_port: Option<u64>,
    /// The next process without a parent gets the first one from here on that no other has.
    next_root: AtomicU64,
}

/// Whether a table of processes can have the pids of a trace.
///
/// # Errors
/// One line that names the process with the highest one, or a port that is wrong.
pub(super) fn check(trace: &Trace) -> Result<(), String> {
    let mut known = HashSet::default();
    if let Some(port) = ports(trace).find(|port| !(1..PIDS).contains(port) || !known.insert(*port))
    {
        return Err(format!(
            "port {port} cannot be opened: the number is too high or another port's"
        ));
    }
    let highest = trace.processes.entries().max_by_key(|(_, one)| one.pid);
    match highest.and_then(|(at, one)| Some((at, one.pid?))) {
        Some((at, pid)) if pid >= PIDS => Err(format!(
            "{} had the pid {pid}, which is too high for a replay: at most {PIDS} processes can be followed",
            trace.name(at)
        )),
        _ => Ok(()),
    }
}

/// Pids that can be given again.
const PIDS: u64 = ptab::MAX_CAPACITY as u64 / 2;

impl Identities {
    pub(super) fn of(trace: &Trace) -> Identities {
        let spawned = trace.processes.iter();
        let spawned = spawned.filter(|process| matches!(process.origin, Origin::Child { .. }));
        Identities {
            last: trace
                .processes
                .iter()
                .filter_map(|process| process.pid)
                .max(),
            spawned: spawned.filter_map(|process| process.pid).collect(),
            last_port: ports(trace).max(),
            next_root: AtomicU64::new(0),
        }
    }
}

/// The numbers of the ports that were opened, by processes and by listening sockets.
fn ports(trace: &Trace) -> impl Iterator<Item = u64> {
    let steps = trace.processes.iter().flat_map(|process| &process.steps);
    steps.filter_map(|step| match step {
        Recorded::Answer {
            function,
            value: Value::Integer(number),
        } if &**function == OPEN_PORT => u64::try_from(*number).ok(),
        Recorded::Content {
            value: Value::Term(bytes),
            ..
        } => sockets::accepted(bytes),
        _ => None,
    })
}

/// The function whose recorded answer is the number of a port.
const OPEN_PORT: &str = "erts_internal:open_port/2";

/// The highest pid of the recorded run, where one is followed that tells pids.
pub(crate) fn last_pid() -> Option<Pid> {
    plan()?.identities.last.map(Pid)
}

/// The highest number of a port of the recorded run, where one is followed that opened any.
pub(crate) fn last_port() -> Option<u64> {
    plan()?.identities.last_port
}

/// The pid of the process that `p` is about to make; nothing for one that was not recorded.
pub(crate) fn pid_of_child(p: &Process) -> Option<Pid> {
    let plan = plan()?;
    let follows = p.replay_state()?;
    match follows.cursor.next(follows.steps(plan)) {
        Some(Recorded::Spawn(child)) => plan.trace.processes[*child].pid.map(Pid),
        _ => None,
    }
}

/// The pid of a process that the runtime is about to make: its place among these is the same in every run.
pub(crate) fn pid_of_root() -> Option<Pid> {
    plan()?.next_root()
}

impl Plan {
    pub(super) fn next_root(&self) -> Option<Pid> {
        let Identities {
            last,
            spawned,
            next_root,
            ..
        } = &self.identities;
        let last = (*last)?;
        loop {
            let next = next_root.fetch_add(1, Ordering::Relaxed);
            match next {
                _ if next > last => return None,
                _ if spawned.contains(&next) => {}
                _ => return Some(Pid(next)),
            }
        }
    }
}
