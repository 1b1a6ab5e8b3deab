//! Starts programs by `posix_spawn`, which costs the same however much memory the machine has.
//!
//! Invariants:
//! - E1: the arrays of strings end in a null pointer and live until the call returns.
//! - E2: the attributes and actions are initialised before use and destroyed once.
#![expect(unsafe_code, reason = "posix_spawn is the C library's")]

use std::collections::{BTreeSet, VecDeque};
use std::ffi::{CStr, CString};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::ptr;

use parking_lot::Mutex;

/// A program to start.
pub struct Program<'a> {
    /// The file; a relative one is looked up from `cd`.
    pub path: &'a CStr,
    /// Arguments, the program's own name first.
    pub args: &'a [CString],
    /// Its environment, each `Name=Value`.
    pub env: &'a [CString],
    /// Where it runs; here, if there is none.
    pub cd: Option<&'a CStr>,
    /// Descriptors of ours and the numbers they get there. It gets no others but standard input, output and error.
    pub fds: &'a [(&'a OwnedFd, RawFd)],
}

/// Signals that a program finds as the system sets them, whatever we do with them.
const DEFAULT_SIGNALS: &[i32] = &[
    libc::SIGPIPE,
    libc::SIGCHLD,
    libc::SIGTERM,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGHUP,
    libc::SIGUSR1,
    libc::SIGUSR2,
];

/// Standard error.
const LAST_STANDARD_FD: RawFd = 2;

/// Numbers that programs are given are below it.
const FIRST_FREE_FD: RawFd = 10;

/// In a session of its own; missing from the C library's bindings.
const POSIX_SPAWN_SETSID: libc::c_int = if cfg!(target_os = "macos") {
    0x400
} else {
    0x80
};

fn check(error: libc::c_int) -> io::Result<()> {
    if error == 0 {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(error))
    }
}

/// The programs that run, and the last ones that have ended, of which the system may still tell.
struct Programs {
    running: BTreeSet<i32>,
    ended: VecDeque<i32>,
}

/// How many programs that have ended are known.
const ENDED: usize = 64;

static PROGRAMS: Mutex<Programs> = Mutex::new(Programs {
    running: BTreeSet::new(),
    ended: VecDeque::new(),
});

/// Is it a program that was started here?
pub(crate) fn is_ours(pid: i32) -> bool {
    let programs = PROGRAMS.lock();
    programs.running.contains(&pid) || programs.ended.contains(&pid)
}

impl Programs {
    fn end(&mut self, pid: i32) {
        self.running.remove(&pid);
        if self.ended.len() == ENDED {
            self.ended.pop_front();
        }
        self.ended.push_back(pid);
    }
}

struct Actions(libc::posix_spawn_file_actions_t);

impl Actions {
    fn new() -> io::Result<Actions> {
        let mut actions = MaybeUninit::uninit();
        // SAFETY: E2.
        unsafe {
            check(libc::posix_spawn_file_actions_init(actions.as_mut_ptr()))?;
            Ok(Actions(actions.assume_init()))
        }
    }
}

impl Drop for Actions {
    fn drop(&mut self) {
        // SAFETY: E2.
        unsafe { libc::posix_spawn_file_actions_destroy(&raw mut self.0) };
    }
}

struct Attributes(libc::posix_spawnattr_t);

impl Attributes {
    fn new() -> io::Result<Attributes> {
        let mut attributes = MaybeUninit::uninit();
        let mut signals = MaybeUninit::uninit();
        let flags = POSIX_SPAWN_SETSID
            | libc::POSIX_SPAWN_SETSIGDEF as libc::c_int
            | libc::POSIX_SPAWN_SETSIGMASK as libc::c_int;
        // SAFETY: E2: each is initialised by the call before its first use.
        unsafe {
            check(libc::posix_spawnattr_init(attributes.as_mut_ptr()))?;
            let mut attributes = Attributes(attributes.assume_init());
            let this = &raw mut attributes.0;
            libc::sigemptyset(signals.as_mut_ptr());
            check(libc::posix_spawnattr_setsigmask(this, signals.as_ptr()))?;
            for &signal in DEFAULT_SIGNALS {
                libc::sigaddset(signals.as_mut_ptr(), signal);
            }
            check(libc::posix_spawnattr_setsigdefault(this, signals.as_ptr()))?;
            check(libc::posix_spawnattr_setflags(this, flags as libc::c_short))?;
            Ok(attributes)
        }
    }
}

impl Drop for Attributes {
    fn drop(&mut self) {
        // SAFETY: E2.
        unsafe { libc::posix_spawnattr_destroy(&raw mut self.0) };
    }
}

fn pointers(strings: &[CString]) -> Vec<*mut libc::c_char> {
    let strings = strings.iter().map(|s| s.as_ptr().cast_mut());
    strings.chain(std::iter::once(ptr::null_mut())).collect()
}

/// Starts `program` in a session of its own; tells its process number. The caller must [`wait`] for it.
///
/// # Errors
/// When there is no such program, it may not be run, or the system refuses a process.
pub fn spawn(program: &Program<'_>) -> io::Result<i32> {
    let mut actions = Actions::new()?;
    let attributes = Attributes::new()?;
    // Out of the way of the numbers that are set below, in whatever order.
    let fds = program
        .fds
        .iter()
        .map(|(fd, to)| Ok((rustix::io::fcntl_dupfd_cloexec(fd, FIRST_FREE_FD)?, *to)))
        .collect::<io::Result<Vec<_>>>()?;
    for (fd, to) in &fds {
        // SAFETY: E2.
        check(unsafe {
            libc::posix_spawn_file_actions_adddup2(&raw mut actions.0, fd.as_raw_fd(), *to)
        })?;
    }
    let given = |number: RawFd| fds.iter().any(|(_, to)| *to == number);
    let last = fds.iter().map(|(_, to)| *to).max();
    let last = last.unwrap_or(LAST_STANDARD_FD).max(LAST_STANDARD_FD);
    for unused in (LAST_STANDARD_FD + 1..last).filter(|number| !given(*number)) {
        // SAFETY: E2.
        check(unsafe { libc::posix_spawn_file_actions_addclose(&raw mut actions.0, unused) })?;
    }
    // SAFETY: E2.
    check(unsafe { libc::posix_spawn_file_actions_addclosefrom_np(&raw mut actions.0, last + 1) })?;
    if let Some(cd) = program.cd {
        // SAFETY: E1, E2: the call copies the string.
        check(unsafe {
            libc::posix_spawn_file_actions_addchdir_np(&raw mut actions.0, cd.as_ptr())
        })?;
    }
    let (args, env) = (pointers(program.args), pointers(program.env));
    let mut pid = 0;
    // It is known before anybody asks for it.
    let mut programs = PROGRAMS.lock();
    // SAFETY: E1, E2.
    check(unsafe {
        libc::posix_spawn(
            &raw mut pid,
            program.path.as_ptr(),
            &raw const actions.0,
            &raw const attributes.0,
            args.as_ptr(),
            env.as_ptr(),
        )
    })?;
    programs.running.insert(pid);
    // One of the same number has ended long ago.
    programs.ended.retain(|ended| *ended != pid);
    Ok(pid)
}

/// Waits for the end of child `pid`; its exit status, 128 and the signal's number for one that was killed.
#[must_use]
pub fn wait(pid: i32) -> i32 {
    let status = wait_for(pid);
    PROGRAMS.lock().end(pid);
    status
}

fn wait_for(pid: i32) -> i32 {
    let mut status = 0;
    loop {
        // SAFETY: `status` has room for what the call writes.
        let waited = unsafe { libc::waitpid(pid, &raw mut status, 0) };
        if waited == pid {
            break;
        }
        if io::Error::last_os_error().raw_os_error() != Some(libc::EINTR) {
            // Somebody else has waited for it: how it ended is lost.
            return 0;
        }
    }
    if libc::WIFSIGNALED(status) {
        128 + libc::WTERMSIG(status)
    } else {
        libc::WEXITSTATUS(status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::pipe::{PipeFlags, pipe_with};
    use std::io::Read;

    #[test]
    fn a_program_gets_arguments_environment_directory_and_descriptors() {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        let strings = |list: &[&str]| -> Vec<CString> {
            list.iter().map(|s| CString::new(*s).unwrap()).collect()
        };
        let program = Program {
            path: c"/bin/sh",
            args: &strings(&["sh", "-c", "echo $V $0 $1; pwd >&4; exit 7", "zero", "one"]),
            env: &strings(&["V=value"]),
            cd: Some(c"/"),
            fds: &[(&write, 1), (&write, 4)],
        };
        let pid = spawn(&program).unwrap();
        drop(write);
        let mut text = String::new();
        std::fs::File::from(read).read_to_string(&mut text).unwrap();
        assert_eq!((text.as_str(), wait(pid)), ("value zero one\n/\n", 7));
    }

    #[test]
    fn a_program_gets_no_other_descriptors() {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        // One that a program would inherit.
        let (leaks, _other_end) = pipe_with(PipeFlags::empty()).unwrap();
        let script = format!(
            "for n in 3 {}; do [ -e /proc/self/fd/$n ] && echo $n; done; echo end",
            leaks.as_raw_fd()
        );
        let args = ["sh", "-c", &script].map(|word| CString::new(word).unwrap());
        let program = Program {
            path: c"/bin/sh",
            args: &args,
            env: &[],
            cd: None,
            fds: &[(&write, 1), (&write, 4)],
        };
        let pid = spawn(&program).unwrap();
        drop(write);
        let mut text = String::new();
        std::fs::File::from(read).read_to_string(&mut text).unwrap();
        assert_eq!((text.as_str(), wait(pid)), ("end\n", 0));
    }

    #[test]
    fn a_program_that_is_not_there_is_an_error() {
        let program = Program {
            path: c"/no/such/program",
            args: &[],
            env: &[],
            cd: None,
            fds: &[],
        };
        let error = spawn(&program).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOENT));
    }
}
