//! Operations on files by descriptor, where the descriptors come from outside as numbers.
//!
//! Invariant F1: a descriptor that a program names by number, or that is closed here, is nobody else's from then on.
#![expect(unsafe_code, reason = "descriptors that come as numbers")]

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};

/// Takes over the open descriptor `fd`.
///
/// # Errors
/// When it is not open.
pub fn adopt(fd: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: F1: asks about the number only.
    if unsafe { libc::fcntl(fd, libc::F_GETFL) } == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: F1: open, and handed over by the program.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Closes `fd` and tells whether what was written to it is safe.
///
/// # Errors
/// What `close` reports; the descriptor is closed all the same.
pub fn close(fd: OwnedFd) -> io::Result<()> {
    // SAFETY: F1: owned, and given up here.
    if unsafe { libc::close(fd.into_raw_fd()) } == -1 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// A standard stream: 0, 1 or 2.
///
/// # Panics
/// For any other number.
#[must_use]
pub fn standard(fd: RawFd) -> BorrowedFd<'static> {
    assert!((0..=2).contains(&fd), "a standard stream");
    // SAFETY: F1: the runtime never closes the standard streams; one that was closed when it started
    // gives `ebadf` in every call.
    unsafe { BorrowedFd::borrow_raw(fd) }
}

/// Another descriptor of what `fd` is.
///
/// # Errors
/// What `dup` reports.
pub fn duplicate(fd: RawFd) -> Result<OwnedFd, rustix::io::Errno> {
    // SAFETY: F1: used for this call; a number that is not open is an error.
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    rustix::io::fcntl_dupfd_cloexec(fd, 0)
}

/// Reads from a descriptor that the caller knows by its number; gives what was read.
///
/// # Errors
/// What `read` reports.
pub fn read(fd: RawFd, space: &mut [MaybeUninit<u8>]) -> Result<&mut [u8], rustix::io::Errno> {
    // SAFETY: F1: used for this call; a number that is not open is an error.
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    rustix::io::read(fd, space).map(|(read, _)| read)
}

/// Writes to a descriptor that the caller knows by its number.
///
/// # Errors
/// What `write` reports.
pub fn write(fd: RawFd, bytes: &[u8]) -> Result<usize, rustix::io::Errno> {
    // SAFETY: F1: as in `read`.
    rustix::io::write(unsafe { BorrowedFd::borrow_raw(fd) }, bytes)
}

/// Writes all of `bytes`, waiting where a descriptor does not wait itself.
///
/// # Errors
/// What `write` reports.
pub fn write_all(fd: RawFd, mut bytes: &[u8]) -> Result<(), rustix::io::Errno> {
    use rustix::io::Errno;
    while !bytes.is_empty() {
        match write(fd, bytes) {
            Ok(n) => bytes = &bytes[n..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => super::chance::poll::wait_writable(fd),
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Whether a descriptor with this number is open.
#[must_use]
pub fn is_open(fd: RawFd) -> bool {
    // SAFETY: F1: asks about the number only.
    unsafe { libc::fcntl(fd, libc::F_GETFD) != -1 }
}
