//! Network namespaces.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

fn namespace(path: &Path) -> Result<OwnedFd, Errno> {
    open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
}

fn enter(namespace: &OwnedFd) -> Result<(), Errno> {
    move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))
}

/// Has this thread do `work` in the network namespace that the file is of.
///
/// # Errors
/// That of `work`, or the system's where it does not let the thread in, or back.
pub fn within<T>(path: &[u8], work: impl FnOnce() -> Result<T, Errno>) -> Result<T, Errno> {
    // The thread's own, not the process's: another thread may be elsewhere.
    let own = namespace(Path::new("/proc/thread-self/ns/net"))?;
    enter(&namespace(Path::new(OsStr::from_bytes(path)))?)?;
    let done = work();
    enter(&own)?;
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_that_is_not_there_is_told() {
        assert_eq!(within(b"/no/such/file", || Ok(())), Err(Errno::NOENT));
        assert_eq!(within(b"/dev/null", || Ok(())), Err(Errno::INVAL));
    }
}
