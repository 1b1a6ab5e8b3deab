//! Messages with control messages in as much room as the caller has, and what else takes the kernel's own layout.

use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd};

use rustix::io::Errno;
use rustix::net::addr::SocketAddrStorage;
use rustix::net::{RecvFlags, SocketAddrAny};

use super::control::Control;
use super::{Address, empty_header, result};

/// What is known of a message that was received, but for its bytes.
#[derive(Debug)]
pub struct Received {
    /// From where, if that is known.
    pub from: Option<Address>,
    /// `MSG_TRUNC` and the like.
    pub flags: i32,
}

/// Sends `parts` as one message with the control messages in `control`, to an address if there is one.
///
/// # Errors
/// The system's.
pub fn send(
    fd: impl AsFd,
    parts: &[IoSlice<'_>],
    address: Option<&Address>,
    control: &[u8],
    flags: i32,
) -> Result<usize, Errno> {
    let mut header = empty_header();
    if let Some(address) = address {
        header.msg_name = address.0.as_ptr().cast_mut().cast();
        header.msg_namelen = address.0.addr_len();
    }
    header.msg_iov = parts.as_ptr().cast_mut().cast();
    header.msg_iovlen = parts.len();
    if !control.is_empty() {
        header.msg_control = control.as_ptr().cast_mut().cast();
        header.msg_controllen = control.len();
    }
    // SAFETY: SK1: the call reads what the header names, all of which outlives it; an `IoSlice` is an `iovec`.
    let sent = unsafe { libc::sendmsg(fd.as_fd().as_raw_fd(), &raw const header, flags) };
    result(sent)
}

/// Receives a message, and its control messages in `control`, which is cut to what they take; how many bytes it has.
///
/// # Errors
/// The system's.
pub fn receive(
    fd: impl AsFd,
    space: &mut [u8],
    control: &mut Vec<u8>,
    flags: i32,
) -> Result<(usize, Received), Errno> {
    let room = (space.as_mut_ptr(), space.len());
    let lent = (control.as_mut_ptr(), control.len());
    // SAFETY: SK1: both are as long as they say.
    let (bytes, filled, received) = unsafe { receive_into(fd, room, lent, flags) }?;
    control.truncate(filled);
    Ok((bytes, received))
}

/// As [`receive`], into the room of `bytes`, which are empty.
///
/// # Errors
/// The system's.
pub fn receive_with(
    fd: impl AsFd,
    bytes: &mut Vec<u8>,
    control: &mut Control,
    flags: i32,
) -> Result<Received, Errno> {
    let spare = bytes.spare_capacity_mut();
    let room = (spare.as_mut_ptr().cast(), spare.len());
    let all = control.room();
    let lent = (all.as_mut_ptr(), all.len());
    // SAFETY: SK1: both are as long as they say.
    let (received, filled, what) = unsafe { receive_into(fd, room, lent, flags) }?;
    // SAFETY: SK2: `received` bytes are filled.
    unsafe { bytes.set_len(received) };
    control.set_length(filled);
    Ok(what)
}

/// How many bytes of the message there are, how many of control messages, and what else is known.
///
/// # Safety
/// SK1: `room` and `control` are memory of the caller, each as long as its number says.
unsafe fn receive_into(
    fd: impl AsFd,
    room: (*mut u8, usize),
    control: (*mut u8, usize),
    flags: i32,
) -> Result<(usize, usize, Received), Errno> {
    let mut storage = MaybeUninit::<SocketAddrStorage>::zeroed();
    let mut part = libc::iovec {
        iov_base: room.0.cast(),
        iov_len: room.1,
    };
    let mut header = empty_header();
    header.msg_name = storage.as_mut_ptr().cast();
    header.msg_namelen = Address::MAX_BYTES as libc::socklen_t;
    header.msg_iov = &raw mut part;
    header.msg_iovlen = 1;
    header.msg_control = control.0.cast();
    header.msg_controllen = control.1;
    // SAFETY: SK1: all that the header names is as long as it says, and outlives the call.
    let received = unsafe { libc::recvmsg(fd.as_fd().as_raw_fd(), &raw mut header, flags) };
    let bytes = result(received)?;
    let length = header.msg_namelen;
    // SAFETY: SK2: so much of it is filled, and the rest is zero.
    let from = (length >= 2).then(|| Address(unsafe { SocketAddrAny::new(storage, length) }));
    let flags = header.msg_flags;
    let filled = header.msg_controllen.min(control.1);
    Ok((bytes, filled, Received { from, flags }))
}

/// Bytes of `struct ifreq`: a name in 16, and a union.
pub const REQUEST_BYTES: usize = size_of::<libc::ifreq>();

/// A request whose argument is an integer or a `struct ifreq`, which has more bytes: they are read, written, or both.
///
/// # Errors
/// The system's.
pub fn control(
    fd: impl AsFd,
    code: libc::Ioctl,
    argument: &mut [u8; REQUEST_BYTES],
) -> Result<(), Errno> {
    let mut words = [0u64; REQUEST_BYTES / 8];
    // SAFETY: SK1: words are bytes, of any values.
    let bytes: &mut [u8] =
        unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), REQUEST_BYTES) };
    bytes.copy_from_slice(argument);
    // SAFETY: SK1: the requests that callers have in their tables take a `struct ifreq` or an integer.
    let done = unsafe { libc::ioctl(fd.as_fd().as_raw_fd(), code, bytes.as_mut_ptr()) };
    result(done as isize)?;
    argument.copy_from_slice(bytes);
    Ok(())
}

/// The interfaces that have an address of IPv4, each as a request has it.
///
/// # Errors
/// The system's.
pub fn interfaces(fd: impl AsFd) -> Result<Vec<[u8; REQUEST_BYTES]>, Errno> {
    let mut room = vec![[0u8; REQUEST_BYTES]; 16];
    loop {
        let mut list = libc::ifconf {
            ifc_len: (room.len() * REQUEST_BYTES) as i32,
            ifc_ifcu: libc::__c_anonymous_ifc_ifcu {
                ifcu_buf: room.as_mut_ptr().cast(),
            },
        };
        // SAFETY: SK1: there is as much room as the list says.
        let done = unsafe {
            libc::ioctl(
                fd.as_fd().as_raw_fd(),
                libc::SIOCGIFCONF as libc::Ioctl,
                &raw mut list,
            )
        };
        result(done as isize)?;
        let used = list.ifc_len as usize / REQUEST_BYTES;
        if used < room.len() {
            room.truncate(used);
            return Ok(room);
        }
        room.resize(room.len() * 2, [0; REQUEST_BYTES]);
    }
}

/// Receives bytes and the address that they are from.
///
/// # Errors
/// The system's.
pub fn receive_from(
    fd: impl AsFd,
    space: &mut [u8],
    flags: RecvFlags,
) -> Result<(usize, Option<Address>), Errno> {
    let (filled, _, from) = rustix::net::recvfrom(fd, space, flags)?;
    Ok((filled, from.map(Address)))
}

/// Ends a direction of a connection (`SHUT_RD` and the like).
///
/// # Errors
/// The system's.
pub fn shutdown(fd: impl AsFd, direction: i32) -> Result<(), Errno> {
    // SAFETY: SK1: numbers only.
    let done = unsafe { libc::shutdown(fd.as_fd().as_raw_fd(), direction) };
    result(done as isize).map(drop)
}
