//! What `prim_inet` asks for with `port_control/3`, and how it is answered.

use rustix::io::Errno;

use crate::sys::errno;

/// The number of the first request. Source: `ERTS_INET_DRV_CONTROL_MAGIC_NUMBER`.
const FIRST: u32 = 0x03f1_a300;

/// Requests, each with its number behind [`FIRST`].
macro_rules! requests {
    ($($name:ident = $number:literal,)*) => {
        /// A request.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Request { $($name),* }

        impl Request {
            /// The request that a command is.
            pub(super) fn of(command: u32) -> Option<Request> {
                match command.checked_sub(FIRST)? {
                    $($number => Some(Request::$name),)*
                    _ => None,
                }
            }
        }
    };
}

requests! {
    Open = 1,
    Close = 2,
    Connect = 3,
    Peer = 4,
    Name = 5,
    Bind = 6,
    SetOptions = 7,
    GetOptions = 8,
    GetStatistics = 11,
    GetHostName = 12,
    OpenDescriptor = 13,
    GetDescriptor = 14,
    GetType = 15,
    GetStatus = 16,
    GetServiceByName = 17,
    GetServiceByPort = 18,
    SetName = 19,
    SetPeer = 20,
    GetInterfaces = 21,
    GetInterface = 22,
    SetInterface = 23,
    Subscribe = 24,
    GetInterfaceAddresses = 25,
    Accept = 26,
    Listen = 27,
    IgnoreDescriptor = 28,
    GetLocalAddresses = 29,
    GetPeerAddresses = 30,
    Receive = 42,
    Unreceive = 43,
    Shutdown = 44,
    SendFile = 45,
    ReceiveFrom = 60,
}

/// The answer to a request: bytes, or the name of an error.
pub(super) type Answer = Result<Vec<u8>, Refusal>;

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    System(Errno),
    /// The port is in no state for that.
    BadPort,
    /// It comes at the wrong time.
    BadSequence,
    /// The peer has closed the connection.
    Closed,
    /// The process that asks is gone.
    NoProcess,
    /// There are as many ports as there may be.
    SystemLimit,
}

impl From<Errno> for Refusal {
    fn from(error: Errno) -> Refusal {
        Refusal::System(error)
    }
}

impl Refusal {
    /// Its name, as an atom has it.
    fn name(self) -> &'static str {
        match self {
            Refusal::System(error) => errno::errno_name(error.raw_os_error()),
            Refusal::BadPort => "exbadport",
            Refusal::BadSequence => "exbadseq",
            Refusal::Closed => "closed",
            Refusal::NoProcess => "noproc",
            Refusal::SystemLimit => "system_limit",
        }
    }
}

/// Has a request answered, as `prim_inet` reads it. Source: `INET_REP_OK`, `INET_REP_ERROR`.
pub(super) fn respond(command: u32, answer: impl FnOnce(Request) -> Answer) -> Vec<u8> {
    match Request::of(command).map_or(Err(Refusal::BadPort), answer) {
        Ok(mut bytes) => {
            bytes.insert(0, 1);
            bytes
        }
        Err(refusal) => [&[0], refusal.name().as_bytes()].concat(),
    }
}

/// The number at the start of some bytes, in network byte order, and what is behind it.
///
/// # Errors
/// There are too few.
pub(super) fn take_u32(bytes: &[u8]) -> Result<(u32, &[u8]), Errno> {
    let (number, rest) = bytes.split_first_chunk().ok_or(Errno::INVAL)?;
    Ok((u32::from_be_bytes(*number), rest))
}

/// The number of two bytes at the start of some bytes, in network byte order, and what is behind it.
///
/// # Errors
/// There are too few.
pub(super) fn take_u16(bytes: &[u8]) -> Result<(u16, &[u8]), Errno> {
    let (number, rest) = bytes.split_first_chunk().ok_or(Errno::INVAL)?;
    Ok((u16::from_be_bytes(*number), rest))
}

/// The first bytes, as many as the first byte says, and what is behind them.
///
/// # Errors
/// There are too few.
pub(super) fn take_counted(bytes: &[u8]) -> Result<(&[u8], &[u8]), Errno> {
    let (&count, rest) = bytes.split_first().ok_or(Errno::INVAL)?;
    rest.split_at_checked(count.into()).ok_or(Errno::INVAL)
}
