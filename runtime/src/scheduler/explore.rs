//! Runs one call, or all that a command asks for, again and again, each time in a fork of the machine.
//!
//! When the emulator of an exploration has booted and nothing can run, its only scheduler forks the workers, and each of
//! them makes the runs that it is asked for, one after the other, in a fork of its own. A worker and its runs have one
//! thread: they make the calls of dirty schedulers themselves.
//!
//! Invariants: FK1 of `sys/fork.rs`.

mod answer;

use std::cell::RefCell;
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

use beamline_formats::ring::Function;
use beamline_orders::{Answer, Ask, Call, End, Lots, Reply, Scenario, Trace};
use beamline_settings::variable::Variable as _;

use super::{Scheduler, add, turns};
use crate::code::entry::find_export;
use crate::code::machine_code;
use crate::jit;
use crate::loader::module::versions;
use crate::process::dirty_queues::{KINDS, queue_of};
use crate::process::order::explore::{each_resting, with_resting};
use crate::process::order::turns::wait_for_signals;
use crate::process::order::{explore, replay};
use crate::process::registry::{Named, whereis};
use crate::process::{Newborn, SpawnOptions, lookup, make_first, spawn_first};
use crate::sched::{machine, ptab};
use crate::sys::chance::clock::{self, monotonic_ns};
use crate::sys::chance::{outside, poll};
use crate::sys::fork::{
    Captured, LATE, close_input, end_after, end_by_itself, fork, ignore_keys, leave, mute, wait,
};
use crate::sys::halt::{self, Exit};
use crate::sys::memory::region;
use crate::sys::stderr::complain;
use crate::term::{Atom, Pid, am};

/// What this process is to an exploration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Role {
    /// Nothing.
    None,
    /// It boots.
    Boots,
    /// It loads what every run needs.
    Prepares,
    /// It has workers, and waits for them.
    HasWorkers,
    /// It is a worker.
    Works,
    /// It is a run.
    Runs,
}

static ROLE: AtomicU8 = AtomicU8::new(Role::None as u8);
static SCENARIO: OnceLock<Scenario> = OnceLock::new();

/// Limit of the boot in virtual time: what timers are left after that are periodic.
const BOOT_NS: u64 = 60_000_000_000;

/// The exit code of a run that has sent its answer: what native code does may end one with any other.
const ANSWERED: i32 = 86;

/// What a worker has, and the run that it forks.
#[derive(Default)]
struct Own {
    /// The process that is to make the call.
    main: Option<Newborn>,
    /// The processes that trap exits.
    trapping: Vec<Pid>,
    /// What a run of the whole program prints.
    printed: Option<Captured>,
    /// It is seen what the run prints.
    is_loud: bool,
    socket: Option<UnixStream>,
    /// Reductions of the machine when the run began.
    reductions: u64,
    /// The time slices since the last step.
    idle: Idle,
    /// When the call had ended, and nothing could run.
    call_ended_ns: Option<u64>,
}

/// Virtual time granted after the call has returned, so that a periodic timer keeps no run going.
const AFTER_CALL_NS: u64 = 60_000_000_000;

impl Own {
    /// Whether a timer that goes off then is too late: the call has ended long before.
    fn is_late(&mut self, next_ns: u64) -> bool {
        let has_call = SCENARIO.get().is_some_and(|all| all.call.is_some());
        if !has_call || !explore::is_main_gone() {
            return false;
        }
        let ended = *self.call_ended_ns.get_or_insert_with(monotonic_ns);
        next_ns.saturating_sub(ended) > AFTER_CALL_NS
    }
}

/// Time slices without a step.
#[derive(Default)]
struct Idle {
    /// The steps so far.
    told: usize,
    /// Reductions of the machine at the last step.
    reductions: u64,
    slices: u64,
}

/// With more time slices than these without a step, of fewer reductions each than those, processes poll for an event of
/// their prefix that cannot come.
const IDLE_SLICES: u64 = 10_000;
const IDLE_REDUCTIONS: u64 = 100;

impl Idle {
    /// A time slice has ended: whether nothing goes on any more.
    fn is_endless(&mut self, told: usize, reductions: u64) -> bool {
        if self.told != told {
            *self = Idle {
                told,
                reductions,
                slices: 0,
            };
        }
        self.slices += 1;
        let made = reductions - self.reductions;
        self.slices > IDLE_SLICES && made < self.slices * IDLE_REDUCTIONS
    }
}

thread_local! {
    static OWN: RefCell<Own> = RefCell::default();
}

fn become_(role: Role) {
    ROLE.store(role as u8, Ordering::Relaxed);
}

fn is(role: Role) -> bool {
    ROLE.load(Ordering::Relaxed) == role as u8
}

/// Explores what the environment asks for, if it does and no emulator of the command has begun to.
///
/// # Errors
/// One line when the request cannot be understood.
pub(crate) fn start_from_environment() -> Result<(), String> {
    let Some(scenario) = Scenario::from_environment()? else {
        return Ok(());
    };
    if scenario.claim()? {
        if scenario.call.is_none() {
            explore::hold_program_for_run();
        }
        let _ = SCENARIO.set(scenario);
        become_(Role::Boots);
    }
    Ok(())
}

/// The arguments of `init`: where all that the command asks for is explored, it waits for a run before it does that.
pub(crate) fn with_explored(init: Vec<String>) -> Vec<String> {
    let is_whole = SCENARIO
        .get()
        .is_some_and(|scenario| scenario.call.is_none());
    let wait = ["-s", "erts_internal", "await_run_trap", "--"].map(str::to_owned);
    let first = is_whole.then_some(wait).into_iter().flatten();
    first.chain(init).collect()
}

/// Whether this machine explores.
#[inline(always)]
pub(super) fn is_asked() -> bool {
    !is(Role::None)
}

/// Whether this process has this one thread.
#[inline(always)]
pub(super) fn is_alone() -> bool {
    is(Role::Works) || is(Role::Runs)
}

/// Between two time slices: ends a run for which there is a reason to.
#[inline(always)]
pub(super) fn is_over() -> bool {
    if is(Role::Runs) {
        end_if_over();
    }
    false
}

fn end_if_over() {
    let is_astray = explore::is_over();
    let bound = SCENARIO
        .get()
        .map_or(u64::MAX, |scenario| scenario.reductions);
    let begun = OWN.with_borrow(|own| own.reductions);
    let is_long = reductions() - begun > bound || explore::is_endless();
    if is_astray || is_idle() {
        answer(halted().unwrap_or(End::Quiet));
    }
    if is_long {
        answer(match halted() {
            Some(end) => {
                explore::note_unexplored(BEHIND_THE_END);
                end
            }
            None => End::Livelock,
        });
    }
}

/// What processes would do behind the end of the emulator that one of them has asked for: they go on until they wait, as if
/// it came so late, but time does not.
const BEHIND_THE_END: &str = "what would go on when the emulator is to end";

/// How the emulator is to end, if it is.
fn halted() -> Option<End> {
    halt::requested().map(|exit| match exit {
        Exit::Code(code) => End::Halted(code),
        Exit::Abort => End::Halted(134),
    })
}

/// Whether processes of a run that follows a prefix take time slices, and nothing goes on.
fn is_idle() -> bool {
    replay::has_prefix()
        && OWN.with_borrow_mut(|own| own.idle.is_endless(explore::told(), reductions()))
}

fn reductions() -> u64 {
    let counters = machine().counters.iter();
    counters
        .map(|counters| counters.reductions.load(Ordering::Relaxed))
        .sum()
}

impl Scheduler {
    /// Nothing can run: whether something is to be done before the scheduler sleeps, and was done.
    pub(super) fn explore(&self) -> bool {
        let does = match () {
            () if is(Role::Boots) => self.has_booted(),
            () if is(Role::Prepares) => self.has_prepared(),
            () if is(Role::Works) => self.work(),
            () if is(Role::Runs) => self.goes_on(),
            () => false,
        };
        if does {
            self.machine.parking.retract(self.id);
        }
        does
    }

    /// Whether the machine has booted: then it prepares what every run needs.
    fn has_booted(&self) -> bool {
        let is_busy = KINDS
            .iter()
            .any(|kind| queue_of(*kind).running() + queue_of(*kind).len() > 0);
        let has_timer =
            self.machine.timers.next_ns(self.id) != u64::MAX && monotonic_ns() < BOOT_NS;
        if is_busy || has_timer || outside::has_programs() || poll::is_due() {
            return false;
        }
        let Some(scenario) = SCENARIO.get() else {
            return false;
        };
        match &scenario.call {
            Some(call) => make_caller(call),
            None if explore::waiting().is_none() => {
                refuse(
                    scenario,
                    "the emulator waits for ever before it does what its command asks for",
                );
                return false;
            }
            None => {}
        }
        become_(Role::Prepares);
        let [level, none] = ["level", "none"].map(Atom::new);
        spawn_first(
            Atom::new("logger"),
            Atom::new("set_primary_config"),
            |heap| heap.list(&[level.term(), none.term()]),
            &SpawnOptions::default(),
        );
        true
    }

    /// Makes the workers, waits for their end, and ends.
    fn has_prepared(&self) -> bool {
        let Some(scenario) = SCENARIO.get() else {
            return false;
        };
        if let Some(call) = scenario.call.as_ref().filter(|call| !is_there(call)) {
            let Call { module, function } = call;
            refuse(
                scenario,
                &format!(
                    "{module}:{function}/0 is not there: the command names the folder of its .beam file, as erl -noshell -pa ebin does"
                ),
            );
            return false;
        }
        let mut workers = Vec::new();
        for _ in 0..scenario.workers {
            // SAFETY: FK1: there is one scheduler, which is this thread, and nothing can run; the others wait for a request
            // to end, a signal, a turn of the seat or a call, without a lock.
            match unsafe { fork() } {
                Ok(Some(pid)) => workers.push(pid),
                Ok(None) => {
                    begin_to_work(scenario);
                    return true;
                }
                Err(error) => complain!("beamline: no worker can be forked: {error}"),
            }
        }
        become_(Role::HasWorkers);
        let failed = workers.iter().filter(|pid| wait(**pid) != Ok(0)).count();
        halt::request(i32::from(failed > 0));
        false
    }

    /// A worker has nothing to run: makes what it is asked for.
    fn work(&self) -> bool {
        self.forget_timers();
        let mut socket = OWN.with_borrow_mut(|own| {
            own.trapping = explore::all_trapping();
            own.socket.take()
        });
        let Some(socket) = socket.as_mut() else {
            leave(1)
        };
        let mut is_ready = true;
        let goes_on = loop {
            let replied = match is_ready {
                true => beamline_orders::send(socket, &Reply::Ready),
                false => Ok(()),
            };
            let Ok(Some(asked)) = replied.and_then(|()| beamline_orders::receive(socket)) else {
                leave(0);
            };
            is_ready = false;
            match asked {
                Ask::Load(modules) => {
                    modules.iter().for_each(|module| load(module));
                    break true;
                }
                Ask::Compile(functions) => {
                    functions.iter().for_each(compile);
                    is_ready = true;
                }
                Ask::Run {
                    prefix,
                    is_loud,
                    lots,
                    time,
                } => {
                    // SAFETY: FK1: a worker has one thread.
                    match unsafe { fork() } {
                        Ok(None) => {
                            if let Some(time) = time {
                                end_after(time);
                            }
                            self.begin_run(&prefix, is_loud, lots);
                            break true;
                        }
                        Ok(Some(pid)) => match wait(pid) {
                            Ok(ANSWERED) => {}
                            Ok(code) => crashed(socket, format!("with exit code {code}")),
                            Err(LATE) => ended(socket, End::Late),
                            Err(signal) => crashed(socket, format!("by signal {signal}")),
                        },
                        Err(error) => crashed(socket, format!("before it began: {error}")),
                    }
                }
            }
        };
        let socket = socket.try_clone().ok();
        OWN.with_borrow_mut(|own| own.socket = socket);
        goes_on
    }

    /// Timers of the machine's own processes would have time go on for ever: they do not go off in a run.
    fn forget_timers(&self) {
        loop {
            let next = self.machine.timers.next_ns(self.id);
            if next == u64::MAX || !clock::advance_to(next) {
                break;
            }
            drop(self.machine.timers.due(self.id, next));
        }
    }

    /// This process is a run from now on.
    fn begin_run(&self, prefix: &str, is_loud: bool, lots: Option<Lots>) {
        become_(Role::Runs);
        // Without one, it is slower.
        let _ = region::begin();
        machine_code::note_fork();
        if !is_loud && mute().is_err() {
            leave(3);
        }
        let (main, trapping) = OWN.with_borrow_mut(|own| {
            own.reductions = reductions();
            own.is_loud = is_loud;
            (own.main.take(), std::mem::take(&mut own.trapping))
        });
        let waiting = explore::waiting();
        if waiting.is_some() && capture().is_err() {
            leave(3);
        }
        let Some(pid) = main.as_ref().map(Newborn::pid).or(waiting) else {
            leave(3)
        };
        explore::begin(pid, &trapping);
        if !prefix.is_empty() {
            match prefix.parse::<Trace>() {
                Ok(trace) => {
                    if trace.has_signals() {
                        wait_for_signals();
                    }
                    follow(trace);
                }
                Err(_) => leave(3),
            }
        }
        if let Some(lots) = lots {
            turns::begin(lots);
        }
        match main {
            Some(main) => drop(main.start_as_root()),
            None => {
                explore::born(pid, || "boot".to_owned());
                wake(pid);
            }
        }
        add(&self.machine.counters[self.id].context_switches, 0);
    }

    /// Nothing can run in a run: time goes on to its next timer, or it ends.
    fn goes_on(&self) -> bool {
        end_if_over();
        let next = self.machine.timers.next_ns(self.id);
        if poll::take_ready() {
            return true;
        }
        if let Some(end) = halted().filter(|_| !has_unfinished()) {
            if next != u64::MAX {
                explore::note_unexplored(BEHIND_THE_END);
            }
            answer(end);
        }
        if explore::are_all_gone() && explore::go_off_for_nobody() {
            return true;
        }
        // A process that waits for a timer of its prefix does so also when the call has ended.
        let is_late = OWN.with_borrow_mut(|own| own.is_late(next)) && !has_unfinished();
        let is_over = explore::are_all_gone() || is_late || replay::is_stuck(stuck_of);
        if is_over || next == u64::MAX || !clock::advance_to(next) {
            answer(End::Quiet);
        }
        true
    }
}

/// The process that is to make a call.
fn make_caller(Call { module, function }: &Call) {
    let leader = match whereis(Atom::new("user")) {
        Some(Named::Process(pid)) => Some(pid),
        _ => None,
    };
    let main = make_first(Atom::new(module), Atom::new(function), leader);
    OWN.with_borrow_mut(|own| own.main = Some(main));
    load(module);
}

fn is_there(Call { module, function }: &Call) -> bool {
    find_export(Atom::new(module), Atom::new(function), 0).is_some_and(|export| export.is_defined())
}

/// There is nothing to explore: ends, and says why.
fn refuse(scenario: &Scenario, why: &str) {
    become_(Role::HasWorkers);
    if let Ok(mut socket) = UnixStream::connect(&scenario.socket) {
        let _ = beamline_orders::send(&mut socket, &Reply::Refused(why.to_owned()));
    }
    halt::request(1);
}

/// Keeps what a run of the whole program prints, and gives it nothing to read.
fn capture() -> io::Result<()> {
    let folder = SCENARIO.get().and_then(|scenario| scenario.socket.parent());
    let printed = Captured::begin(folder.ok_or(io::ErrorKind::NotFound)?)?;
    OWN.with_borrow_mut(|own| own.printed = Some(printed));
    close_input()
}

/// Most bytes kept of what a run prints.
const PRINTED_MAX: u64 = 1 << 16;

/// What a run of the whole program has printed, as a string.
fn printed() -> Option<String> {
    OWN.with_borrow_mut(|own| {
        let printed = own.printed.as_mut()?;
        if own.is_loud {
            // The reader of the output may be gone: then there is nobody to tell.
            let _ = printed.tell();
        }
        let (bytes, length) = printed.read(PRINTED_MAX).ok()?;
        let text = format!("{:?}", String::from_utf8_lossy(&bytes));
        Some(match length > PRINTED_MAX {
            true => format!("{text} and more, of {length} bytes"),
            false => text,
        })
    })
}

fn wake(pid: Pid) {
    let guard = ptab::pin();
    if let Some(shared) = lookup(pid, &guard) {
        shared.wake();
    }
}

/// Whether a process waits for a step of its prefix.
fn has_unfinished() -> bool {
    let mut has = false;
    if replay::has_prefix() {
        each_resting(|process| has |= process.unfinished().is_some());
    }
    has
}

/// Whether a process waits for a step of its prefix that no timer can bring; `None` where it has none left.
fn stuck_of(pid: Pid) -> Option<bool> {
    with_resting(pid, replay::waits_without_timer)?
}

fn crashed(socket: &mut UnixStream, how: String) {
    ended(socket, End::Crashed(how));
}

/// A run has ended so, and told nothing.
fn ended(socket: &mut UnixStream, end: End) {
    let answer = Answer {
        end,
        ..Answer::default()
    };
    let _ = beamline_orders::send(socket, &Reply::Ran(Box::new(answer)));
}

/// This process is a worker from now on.
fn begin_to_work(scenario: &Scenario) {
    become_(Role::Works);
    machine_code::note_fork();
    ignore_keys();
    match UnixStream::connect(&scenario.socket) {
        Ok(socket) => OWN.with_borrow_mut(|own| own.socket = Some(socket)),
        Err(_) => leave(1),
    }
}

/// Has a process load a module, if it is not there.
fn load(module: &str) {
    let module = Atom::new(module);
    spawn_first(
        am::code,
        Atom::new("ensure_loaded"),
        |heap| heap.list(&[module.term()]),
        &SpawnOptions::default(),
    );
}

/// Compiles a function, if it is there.
fn compile(function: &Function) {
    let Function {
        module,
        name,
        arity,
    } = function;
    if let Some(module) = versions(Atom::new(module)).current {
        jit::compile_now(&module, Atom::new(name), *arity);
    }
}

/// All processes follow the prefix, those that are there already too.
fn follow(trace: Trace) {
    replay::follow(trace.with_deliveries());
    for root in replay::roots() {
        with_resting(Pid(root), replay::follow_root);
    }
}

/// Tells what the run was, and ends this process.
fn answer(end: End) -> ! {
    let answer = answer::of(end);
    // What is answered half, or twice, would be the next run's answer.
    end_by_itself();
    let sent = OWN.with_borrow_mut(|own| {
        let socket = own.socket.as_mut();
        socket.is_some_and(|socket| {
            beamline_orders::send(socket, &Reply::Ran(Box::new(answer))).is_ok()
        })
    });
    leave(if sent { ANSWERED } else { 1 })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ends slices of `reductions` reductions each until the run counts as endless; at most `slices` of them.
    fn endless_after(idle: &mut Idle, reductions: u64, slices: u64) -> Option<u64> {
        (1..=slices).find(|slice| idle.is_endless(0, slice * reductions))
    }

    #[test]
    fn polls_without_a_step_are_endless_and_work_is_not() {
        let (few, many) = (IDLE_REDUCTIONS - 1, IDLE_REDUCTIONS + 1);
        let long = IDLE_SLICES * 3;
        for (reductions, ends) in [(0, true), (few, true), (many, false)] {
            let mut idle = Idle::default();
            let after = endless_after(&mut idle, reductions, long);
            assert_eq!(after.is_some(), ends, "{reductions} reductions a slice");
            assert!(after.is_none_or(|slices| slices > IDLE_SLICES));
        }
    }

    #[test]
    fn a_step_begins_the_count_anew() {
        let mut idle = Idle::default();
        assert_eq!(endless_after(&mut idle, 1, IDLE_SLICES), None);
        for _ in 0..IDLE_SLICES {
            assert!(!idle.is_endless(1, IDLE_SLICES));
        }
        assert!(idle.is_endless(1, IDLE_SLICES));
    }
}
