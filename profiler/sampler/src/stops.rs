//! Looks at threads by stopping them for a moment, where the kernel refuses performance events. A thread is a tracee from one
//! look's begin to its end, and never between looks: its signals take their ordinary way, and other tracers find their place
//! free. When we are killed, the kernel lets a tracee go on.
//!
//! Shape: `seize ▶ interrupt ▶ wait until it stands ▶ registers, stack ▶ detach`.
//!
//! Invariants, which SAFETY comments cite:
//! * S1: a system call gets no pointers but to values of the type that it writes, which live until it returns.
#![expect(unsafe_code, reason = "system calls that stop threads")]

use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::os::unix::fs::FileExt as _;
use std::ptr::null_mut;
use std::time::Duration;

use crate::arch::{UserRegisters, is_in_kernel, of_user};
use crate::clock::monotonic_ns;
use crate::memory::words_of;
use crate::perf::{Moment, STACK_BYTES};

/// What a look at a thread gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Glance {
    /// It does not run, or it runs in the kernel.
    Idle,
    /// Somebody else holds it.
    Held,
    /// Its moment.
    Moment(Moment),
    /// It has ended.
    Ended,
}

/// What stopping has cost the emulator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// How often threads were stopped.
    pub looks: u64,
    /// For how long they stood at most: the time counts from the request, because when they stand is not known.
    pub ns: u64,
}

/// A thread that is looked at again and again.
struct Watched {
    tid: libc::pid_t,
    /// Its state, as the kernel writes it.
    stat: File,
}

/// Looks at the threads of an emulator. The kernel knows a tracer by its thread, so this value stays on one.
pub struct Stops {
    pid: u32,
    memory: File,
    threads: Vec<Watched>,
    begin_ns: u64,
    period_ns: u64,
    turns: u64,
    cost: Cost,
    of_one_thread: PhantomData<*const ()>,
}

/// Turns are early or late by parts of a period that never repeat, so that they follow no rhythm of the emulator.
const GOLDEN: f64 = 0.618_033_988_749_895;

/// The number of a thread that cannot be: the answer to a request for it shows whether requests are allowed.
const NOBODY: libc::pid_t = i32::MAX;

/// The kind of a thread's registers that are its general ones.
const GENERAL: usize = 1;

/// Asks for something of a thread that needs no pointer; `data` is a number.
fn request(what: libc::c_uint, tid: libc::pid_t, data: usize) -> io::Result<()> {
    let (nothing, data) = (null_mut::<c_void>(), data as *mut c_void);
    // SAFETY: S1: none of these requests follows its pointers.
    let done = unsafe { libc::ptrace(what, tid, nothing, data) };
    match done {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Whether the system lets this process ask for stops at all. Which threads it may stop is another matter: those of a
/// process whose memory it may read.
///
/// # Errors
/// What a filter of system calls says.
pub fn allowed() -> io::Result<()> {
    match request(libc::PTRACE_SEIZE, NOBODY, 0) {
        Err(error) if error.raw_os_error() != Some(libc::ESRCH) => Err(error),
        _ => Ok(()),
    }
}

/// The registers of a thread that stands.
fn registers(tid: libc::pid_t) -> io::Result<UserRegisters> {
    let mut registers = std::mem::MaybeUninit::<UserRegisters>::zeroed();
    let mut place = libc::iovec {
        iov_base: registers.as_mut_ptr().cast(),
        iov_len: size_of::<UserRegisters>(),
    };
    let (kind, into) = (GENERAL as *mut c_void, (&raw mut place).cast::<c_void>());
    // SAFETY: S1: `place` is of the call's type, and names the room that `registers` has.
    let done = unsafe { libc::ptrace(libc::PTRACE_GETREGSET, tid, kind, into) };
    if done == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the type has numbers alone, and all of its bytes were zero before the call.
    Ok(unsafe { registers.assume_init() })
}

/// Waits until a thread of ours stands; the signal that it is to get when it goes on, and `None` when it has ended.
fn stands(tid: libc::pid_t) -> Option<libc::c_int> {
    let mut status = 0;
    loop {
        // SAFETY: S1: the status is a number of the call's type.
        let found = unsafe { libc::waitpid(tid, &raw mut status, libc::__WALL) };
        let is_again =
            found == -1 && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted;
        if is_again {
            continue;
        }
        if found != tid || !libc::WIFSTOPPED(status) {
            return None;
        }
        // Above 16 bits is the event for which it stands: it is our interruption, and no signal.
        let is_event = status >> 16 != 0;
        return Some(if is_event { 0 } else { libc::WSTOPSIG(status) });
    }
}

impl Watched {
    /// Whether it runs; `None` when it has ended.
    fn is_running(&self) -> Option<bool> {
        let mut text = [0; 128];
        let length = self.stat.read_at(&mut text, 0).ok()?;
        match state(&text[..length])? {
            b'Z' | b'X' => None,
            state => Some(state == b'R'),
        }
    }
}

/// The state of a thread: it follows the name, which is in parentheses and may have any character.
fn state(stat: &[u8]) -> Option<u8> {
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    stat.get(end + 2).copied()
}

impl Stops {
    /// Will look at threads of a process `rate_hz` times in a second. Its main thread, which waits for signals, is left
    /// alone: its end belongs to the process that has started it.
    ///
    /// # Errors
    /// When this user may not, or there is no such process.
    pub fn of(pid: u32, threads: &[u32], rate_hz: u64) -> io::Result<Stops> {
        allowed()?;
        let mut stops = Stops {
            pid,
            memory: File::open(format!("/proc/{pid}/mem"))?,
            threads: Vec::new(),
            begin_ns: monotonic_ns(),
            period_ns: 1_000_000_000 / rate_hz.max(1),
            turns: 0,
            cost: Cost::default(),
            of_one_thread: PhantomData,
        };
        threads.iter().try_for_each(|tid| stops.watch(*tid))?;
        Ok(stops)
    }

    /// Looks at this thread, too, but not at the main one.
    ///
    /// # Errors
    /// When there is no such thread.
    pub fn watch(&mut self, tid: u32) -> io::Result<()> {
        if tid != self.pid {
            let stat = File::open(format!("/proc/{}/task/{tid}/stat", self.pid))?;
            let tid = libc::pid_t::try_from(tid).map_err(io::Error::other)?;
            self.threads.push(Watched { tid, stat });
        }
        Ok(())
    }

    /// Waits for the next turn, but not longer than `at_most_ns` nanoseconds; whether it has come.
    pub fn wait(&mut self, at_most_ns: u64) -> bool {
        let elapsed = monotonic_ns().saturating_sub(self.begin_ns);
        // Turns for which we came too late are not made up for.
        self.turns = self.turns.max(elapsed / self.period_ns);
        let part = (self.turns as f64 * GOLDEN).fract();
        let at = self.turns * self.period_ns + (part * self.period_ns as f64) as u64;
        let left = at.saturating_sub(elapsed);
        std::thread::sleep(Duration::from_nanos(left.min(at_most_ns)));
        if left > at_most_ns {
            return false;
        }
        self.turns += 1;
        true
    }

    /// The cost since it was taken last, if there were `looks` looks.
    pub fn take_cost(&mut self, looks: u64) -> Option<Cost> {
        (self.cost.looks >= looks).then(|| std::mem::take(&mut self.cost))
    }

    /// Looks at each thread once; `None` when all have ended. Each has its number in the operating system.
    pub fn turn(&mut self) -> Option<Vec<(u32, Glance)>> {
        let threads = std::mem::take(&mut self.threads);
        let glances = threads.iter().map(|thread| self.glance(thread));
        let glances: Vec<Glance> = glances.collect();
        let all = threads.into_iter().zip(glances);
        let mut found = Vec::new();
        for (thread, glance) in all {
            let is_there = glance != Glance::Ended;
            let tid = u32::try_from(thread.tid).ok();
            found.extend(tid.map(|tid| (tid, glance)));
            if is_there {
                self.threads.push(thread);
            }
        }
        (!self.threads.is_empty()).then_some(found)
    }

    fn glance(&mut self, thread: &Watched) -> Glance {
        match thread.is_running() {
            None => return Glance::Ended,
            Some(false) => return Glance::Idle,
            Some(true) => {}
        }
        if let Err(error) = request(libc::PTRACE_SEIZE, thread.tid, 0) {
            return match error.raw_os_error() {
                Some(libc::ESRCH) => Glance::Ended,
                _ => Glance::Held,
            };
        }
        let begin_ns = monotonic_ns();
        // One that has ended meanwhile cannot be interrupted, and the wait says so.
        let _ = request(libc::PTRACE_INTERRUPT, thread.tid, 0);
        let Some(signal) = stands(thread.tid) else {
            return Glance::Ended;
        };
        let moment = self.moment(thread.tid, begin_ns);
        // Only one that was killed is not there any more.
        let signal = usize::try_from(signal).unwrap_or(0);
        let _ = request(libc::PTRACE_DETACH, thread.tid, signal);
        self.cost.looks += 1;
        self.cost.ns += monotonic_ns() - begin_ns;
        moment.map_or(Glance::Idle, Glance::Moment)
    }

    /// The moment of a thread that stands; none where it was in the kernel.
    fn moment(&self, tid: libc::pid_t, time_ns: u64) -> Option<Moment> {
        let registers = registers(tid).ok()?;
        if is_in_kernel(&registers) {
            return None;
        }
        let registers = of_user(&registers);
        let mut bytes = vec![0; STACK_BYTES as usize];
        // The stack may end before as many bytes.
        let length = self.memory.read_at(&mut bytes, registers.sp).unwrap_or(0);
        Some(Moment {
            time_ns,
            registers,
            stack: words_of(&bytes[..length]),
            is_cut: length == bytes.len(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_read_behind_any_name() {
        for (stat, expect) in [
            ("7 (beam) R 1 2", Some(b'R')),
            ("7 (a) S) (b) S 1", Some(b'S')),
            ("7 (beam)", None),
            ("7", None),
            ("", None),
        ] {
            assert_eq!(state(stat.as_bytes()), expect, "{stat}");
        }
    }

    #[test]
    fn a_thread_that_is_not_there_has_ended_or_is_not_watched() {
        let own = std::fs::read_link("/proc/self").expect("a link to a number");
        let own = own.to_str().and_then(|text| text.parse().ok());
        let own = own.expect("a number");
        assert!(Stops::of(own, &[i32::MAX as u32], 10).is_err());
        let mut none = Stops::of(own, &[own], 1_000).expect("its own memory can be read");
        assert_eq!(none.turn(), None);
        assert_eq!(none.take_cost(0), Some(Cost::default()));
        assert_eq!(none.take_cost(1), None);
    }
}
