//! Sockets: the system calls that take addresses, options and control messages as the kernel lays them out. The rest is
//! rustix's, which these functions stand beside.
//!
//! Invariants:
//! - SK1: memory that a call fills belongs to the caller, lives as long as the call, and is at least as long as the call is
//!   told.
//! - SK2: the kernel fills as much of an address, option or control buffer as it reports, and no more than it was given.
#![expect(
    unsafe_code,
    reason = "addresses, options and control messages as bytes"
)]

pub mod control;
pub mod interfaces;
pub mod messages;
pub mod names;
pub mod namespace;
pub mod protocols;
pub mod resolve;
pub mod services;

use std::fmt;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use rustix::io::Errno;
use rustix::net::addr::SocketAddrStorage;
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketAddrAny, SocketFlags, SocketType,
};

/// An address as the kernel has it: its family, and what belongs to that.
#[derive(Clone, Debug)]
pub struct Address(SocketAddrAny);

impl Address {
    /// Bytes of the longest address.
    pub const MAX_BYTES: usize = size_of::<SocketAddrStorage>();

    /// Of its bytes in memory; `None` where there are too many or no family.
    #[must_use]
    pub fn of_bytes(bytes: &[u8]) -> Option<Address> {
        if !(2..=Self::MAX_BYTES).contains(&bytes.len()) {
            return None;
        }
        let mut storage = MaybeUninit::<SocketAddrStorage>::zeroed();
        // SAFETY: SK1: as many bytes as there is room for, into memory that is ours.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), storage.as_mut_ptr().cast(), bytes.len());
        }
        // SAFETY: SK1: all of it is initialised, and the family is among the bytes.
        Some(Address(unsafe {
            SocketAddrAny::new(storage, bytes.len() as u32)
        }))
    }

    /// Its bytes in memory.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        let length = self.0.addr_len() as usize;
        // SAFETY: SK2: `length` bytes of it are filled.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast(), length) }
    }

    /// `AF_INET` and the like.
    #[must_use]
    pub fn family(&self) -> i32 {
        i32::from(self.0.address_family().as_raw())
    }
}

/// As people write it: `127.0.0.1:80`, `[::1]:80`, the path of a local one or, behind `@`, its name; `-` where it has
/// none.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match SocketAddr::try_from(self.0.clone()) {
            Ok(address) => address.fmt(f),
            Err(_) if self.family() == libc::AF_UNIX => {
                let path = self.bytes().get(2..).unwrap_or_default();
                let (mark, name) = match path.split_first() {
                    Some((0, name)) if !name.is_empty() => ("@", name),
                    _ => ("", path),
                };
                let end = name.iter().position(|byte| *byte == 0);
                let name = &name[..end.unwrap_or(name.len())];
                match name {
                    [] => f.write_str("-"),
                    name => write!(f, "{mark}{}", String::from_utf8_lossy(name)),
                }
            }
            Err(_) => write!(f, "family {}", self.family()),
        }
    }
}

/// A socket that a driver works with: its own, or one of the program's, which it leaves open.
#[derive(Debug)]
pub struct Socket {
    fd: ManuallyDrop<OwnedFd>,
    is_lent: bool,
}

impl Socket {
    /// Takes over a socket.
    #[must_use]
    pub fn own(fd: OwnedFd) -> Socket {
        Socket {
            fd: ManuallyDrop::new(fd),
            is_lent: false,
        }
    }

    /// Works with the program's descriptor, without closing it.
    ///
    /// # Errors
    /// It is not open.
    pub fn lent(fd: RawFd) -> Result<Socket, Errno> {
        if !super::file::is_open(fd) {
            return Err(Errno::BADF);
        }
        Ok(Socket {
            // SAFETY: SK1: open, and never closed here.
            fd: ManuallyDrop::new(unsafe { OwnedFd::from_raw_fd(fd) }),
            is_lent: true,
        })
    }

    /// Is it the program's, which stays open?
    #[must_use]
    pub fn is_lent(&self) -> bool {
        self.is_lent
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl AsRawFd for Socket {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if !self.is_lent {
            // SAFETY: SK1: ours, and used no more.
            unsafe { ManuallyDrop::drop(&mut self.fd) };
        }
    }
}

/// Opens a socket that does not wait and is closed in programs that are started.
///
/// # Errors
/// The system's.
pub fn open(domain: i32, kind: i32, protocol: i32) -> Result<OwnedFd, Errno> {
    let family = u16::try_from(domain).map_err(|_| Errno::AFNOSUPPORT)?;
    let kind = u32::try_from(kind).map_err(|_| Errno::INVAL)?;
    let protocol = u32::try_from(protocol).map_err(|_| Errno::PROTONOSUPPORT)?;
    let protocol = std::num::NonZeroU32::new(protocol).map(Protocol::from_raw);
    rustix::net::socket_with(
        AddressFamily::from_raw(family),
        SocketType::from_raw(kind),
        SocketFlags::NONBLOCK | SocketFlags::CLOEXEC,
        protocol,
    )
}

/// Binds to an address.
///
/// # Errors
/// The system's.
pub fn bind(fd: impl AsFd, address: &Address) -> Result<(), Errno> {
    rustix::net::bind(fd, &address.0)
}

/// Connects to an address; `INPROGRESS` where that takes time.
///
/// # Errors
/// The system's.
pub fn connect(fd: impl AsFd, address: &Address) -> Result<(), Errno> {
    rustix::net::connect(fd, &address.0)
}

/// Dissolves what `connect` did to a datagram socket.
///
/// # Errors
/// The system's.
pub fn disconnect(fd: impl AsFd) -> Result<(), Errno> {
    rustix::net::connect_unspec(fd)
}

/// Takes the next connection: a socket that does not wait, and its peer.
///
/// # Errors
/// The system's; `AGAIN` where there is none.
pub fn accept(fd: impl AsFd) -> Result<(OwnedFd, Option<Address>), Errno> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let (fd, peer) = rustix::net::acceptfrom_with(fd, flags)?;
    Ok((fd, peer.map(Address)))
}

/// Its own address.
///
/// # Errors
/// The system's.
pub fn name(fd: impl AsFd) -> Result<Address, Errno> {
    rustix::net::getsockname(fd).map(Address)
}

/// The address of its peer.
///
/// # Errors
/// The system's.
pub fn peer(fd: impl AsFd) -> Result<Address, Errno> {
    let unnamed = || Address::of_bytes(&(libc::AF_UNIX as u16).to_ne_bytes());
    match rustix::net::getpeername(fd)? {
        Some(address) => Ok(Address(address)),
        None => unnamed().ok_or(Errno::NOTCONN),
    }
}

/// Sets an option to bytes as the kernel takes them.
///
/// # Errors
/// The system's.
pub fn set_option(fd: impl AsFd, level: i32, name: i32, value: &[u8]) -> Result<(), Errno> {
    let fd = fd.as_fd().as_raw_fd();
    // SAFETY: SK1: the value is read during the call.
    let set = unsafe {
        libc::setsockopt(
            fd,
            level,
            name,
            value.as_ptr().cast(),
            value.len() as libc::socklen_t,
        )
    };
    result(set as isize).map(drop)
}

/// Reads an option into `value`, which may have something to say to the kernel; how many bytes it has.
///
/// # Errors
/// The system's.
pub fn option(fd: impl AsFd, level: i32, name: i32, value: &mut [u8]) -> Result<usize, Errno> {
    let fd = fd.as_fd().as_raw_fd();
    let mut length = value.len() as libc::socklen_t;
    // SAFETY: SK1: the value is as long as `length` says.
    let read =
        unsafe { libc::getsockopt(fd, level, name, value.as_mut_ptr().cast(), &raw mut length) };
    result(read as isize).map(|_| length as usize)
}

/// The error of what has happened to a socket since it was last asked: of a connect that took time.
///
/// # Errors
/// That, or the system's.
pub fn take_error(fd: impl AsFd) -> Result<(), Errno> {
    rustix::net::sockopt::socket_error(fd)?
}

/// Sends bytes to an address, without control messages.
///
/// # Errors
/// The system's.
pub fn send_to(
    fd: impl AsFd,
    bytes: &[u8],
    flags: SendFlags,
    address: &Address,
) -> Result<usize, Errno> {
    rustix::net::sendto(fd, bytes, flags, &address.0)
}

/// Receives a datagram into the room of `bytes`, which are empty, and the address that it is from.
///
/// # Errors
/// The system's.
pub fn receive_from(
    fd: impl AsFd,
    bytes: &mut Vec<u8>,
    flags: RecvFlags,
) -> Result<Option<Address>, Errno> {
    let room = bytes.spare_capacity_mut();
    let ((filled, _), _, from) = rustix::net::recvfrom(fd, room, flags)?;
    let received = filled.len();
    // SAFETY: SK2: `received` bytes are filled.
    unsafe { bytes.set_len(received) };
    Ok(from.map(Address))
}

/// Receives at most `limit` bytes behind those that are there, as far as there is room; how many.
///
/// # Errors
/// The system's.
pub fn receive_behind(fd: impl AsFd, bytes: &mut Vec<u8>, limit: usize) -> Result<usize, Errno> {
    let length = bytes.len();
    let room = bytes.spare_capacity_mut();
    let room_bytes = room.len().min(limit);
    let (filled, _) = rustix::net::recv(fd, &mut room[..room_bytes], RecvFlags::empty())?.0;
    let received = filled.len();
    // SAFETY: SK2: `received` bytes behind the others are filled.
    unsafe { bytes.set_len(length + received) };
    Ok(received)
}

/// What was received.
#[derive(Debug)]
pub struct Received {
    /// From where, if that is known.
    pub from: Option<Address>,
    /// `MSG_TRUNC` and the like.
    pub flags: i32,
}

fn empty_header() -> libc::msghdr {
    // SAFETY: SK1: a structure of numbers and pointers, for which zero is none.
    unsafe { std::mem::zeroed() }
}

/// What a system call has answered.
fn result(answer: isize) -> Result<usize, Errno> {
    usize::try_from(answer).map_err(|_| {
        let error = std::io::Error::last_os_error();
        Errno::from_io_error(&error).unwrap_or(Errno::IO)
    })
}
