//! Network namespaces: sockets belong to that of the thread that opens them.

use std::os::fd::{AsFd, AsRawFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::result;

fn enter(namespace: impl AsFd) -> Result<(), Errno> {
    // SAFETY: SK1: numbers only; it changes the calling thread alone.
    let entered = unsafe { libc::setns(namespace.as_fd().as_raw_fd(), libc::CLONE_NEWNET) };
    result(entered as isize).map(drop)
}

/// What `open` gives in the namespace of this path; the thread is in its own again then.
///
/// # Errors
/// The system's.
pub fn within<T>(path: &[u8], open: impl FnOnce() -> Result<T, Errno>) -> Result<T, Errno> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let own = rustix::fs::open(c"/proc/thread-self/ns/net", flags, Mode::empty())?;
    let other = rustix::fs::open(path, flags, Mode::empty())?;
    enter(&other)?;
    let opened = open();
    enter(&own)?;
    opened
}
