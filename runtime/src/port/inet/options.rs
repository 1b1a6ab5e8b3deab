//! The options of sockets: those of the driver, and those of the system. Source: `inet_set_opts()` and
//! `inet_fill_opts()`.

mod get;
mod set;

pub(super) use get::get;
pub(super) use set::set;

use crate::value::packet::Type;

/// Who gets what is received, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Active {
    /// A process that asks for it.
    Passive,
    /// The owner, as it comes.
    Always,
    /// The owner, the next packet.
    Once,
    /// The owner, a number of packets.
    Times,
}

impl Active {
    /// Source: `INET_PASSIVE` and those behind it.
    const CODES: [Active; 4] = [Active::Passive, Active::Always, Active::Once, Active::Times];

    fn of_code(code: i32) -> Option<Active> {
        Self::CODES.get(usize::try_from(code).ok()?).copied()
    }
}

/// Bytes of a buffer, where none are asked for. Source: `INET_BUFFER_TCP_DEFAULT` and its sisters.
const BUFFER_BYTES: usize = 9216;

/// The options of the driver, as they are set.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// Of a buffer, in bytes.
    pub(super) buffer: usize,
    /// It was set, and does not follow that of the system.
    pub(super) is_buffer_set: bool,
    /// Bytes that come as a list in front of a binary.
    pub(super) header: usize,
    pub(super) is_binary: bool,
    /// What is received goes to the owner as `{Port, {data, Data}}`.
    pub(super) is_port_data: bool,
    pub(super) active: Active,
    /// How many packets more, for [`Active::Times`].
    pub(super) active_count: i16,
    pub(super) packet: Type,
    /// Its number.
    packet_code: i32,
    /// Bytes of the largest packet; 0 where there is no limit.
    pub(super) packet_size: usize,
    pub(super) delimiter: u8,
    /// The port ends when the peer closes the connection.
    pub(super) exit_on_close: bool,
    /// Bytes that wait to be sent at which senders wait, and at which they go on.
    pub(super) high: usize,
    pub(super) low: usize,
    /// The limits of commands that wait for the port. They never do.
    queue_high: i32,
    queue_low: i32,
    /// In milliseconds; `u32::MAX` for ever.
    pub(super) send_timeout: u32,
    pub(super) send_timeout_close: bool,
    pub(super) delay_send: bool,
    pub(super) read_packets: i32,
    pub(super) show_econnreset: bool,
    pub(super) read_ahead: bool,
    /// `linger` is on, with no time.
    pub(super) linger_zero: bool,
    non_block_send: bool,
    debug: bool,
    /// The path of the network namespace that the socket is opened in.
    pub(super) netns: Option<Vec<u8>>,
    /// Which control messages come with datagrams: those of these names, for which bits are set.
    pub(super) control: u8,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            buffer: BUFFER_BYTES,
            is_buffer_set: false,
            header: 0,
            is_binary: false,
            is_port_data: false,
            active: Active::Passive,
            active_count: 0,
            packet: Type::Raw,
            packet_code: 0,
            packet_size: 0,
            delimiter: b'\n',
            exit_on_close: true,
            high: 8192,
            low: 4096,
            queue_high: 8192,
            queue_low: 4096,
            send_timeout: u32::MAX,
            send_timeout_close: false,
            delay_send: false,
            read_packets: 5,
            show_econnreset: false,
            read_ahead: true,
            linger_zero: false,
            non_block_send: false,
            debug: false,
            netns: None,
            control: 0,
        }
    }
}

impl Settings {
    pub(super) fn is_active(&self) -> bool {
        self.active != Active::Passive
    }

    /// Becomes those of a connection that a socket with these has accepted. Source: `tcp_inet_copy()`.
    pub(super) fn become_accepted(&mut self) {
        *self = Settings {
            active: Active::Passive,
            active_count: 0,
            delimiter: b'\n',
            delay_send: false,
            netns: None,
            control: 0,
            is_buffer_set: false,
            debug: false,
            ..self.clone()
        };
    }

    /// A packet goes to the owner; whether that was the last of those that it asked for.
    pub(super) fn is_last_of_count(&mut self) -> bool {
        match self.active {
            Active::Passive | Active::Always => false,
            Active::Once => {
                self.active = Active::Passive;
                false
            }
            Active::Times => {
                self.active_count -= 1;
                let is_last = self.active_count == 0;
                if is_last {
                    self.active = Active::Passive;
                }
                is_last
            }
        }
    }
}

/// What an option is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Of the driver.
    Driver(Own),
    /// Of the system: a number.
    System {
        level: i32,
        name: i32,
        /// A refusal of the system is reported.
        tells: bool,
    },
    Linger,
    /// A multicast group is joined, or left.
    Membership {
        joins: bool,
    },
    MulticastInterface,
    Raw,
    BindToDevice,
    PacketOptions,
}

/// An option of the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Own {
    Buffer,
    Header,
    Active,
    Packet,
    Mode,
    Deliver,
    ExitOnClose,
    High,
    Low,
    SendTimeout,
    DelaySend,
    PacketSize,
    ReadPackets,
    SendTimeoutClose,
    QueueHigh,
    QueueLow,
    Netns,
    ShowEconnreset,
    LineDelimiter,
    ReadAhead,
    NonBlockSend,
    Debug,
    /// Of another system.
    ExclusiveAddress,
}

const fn system(level: i32, name: i32) -> Kind {
    let tells = false;
    Kind::System { level, name, tells }
}

const fn told(level: i32, name: i32) -> Kind {
    let tells = true;
    Kind::System { level, name, tells }
}

/// The options, by their numbers. Source: `inet_int.hrl`.
const OPTIONS: &[(u8, Kind)] = &[
    (0, system(libc::SOL_SOCKET, libc::SO_REUSEADDR)),
    (1, system(libc::SOL_SOCKET, libc::SO_KEEPALIVE)),
    (2, system(libc::SOL_SOCKET, libc::SO_DONTROUTE)),
    (3, Kind::Linger),
    (4, system(libc::SOL_SOCKET, libc::SO_BROADCAST)),
    (5, system(libc::SOL_SOCKET, libc::SO_OOBINLINE)),
    (6, system(libc::SOL_SOCKET, libc::SO_SNDBUF)),
    (7, system(libc::SOL_SOCKET, libc::SO_RCVBUF)),
    (8, told(libc::SOL_SOCKET, libc::SO_PRIORITY)),
    (9, told(libc::IPPROTO_IP, libc::IP_TOS)),
    (10, system(libc::IPPROTO_TCP, libc::TCP_NODELAY)),
    (11, Kind::MulticastInterface),
    (12, system(libc::IPPROTO_IP, libc::IP_MULTICAST_TTL)),
    (13, system(libc::IPPROTO_IP, libc::IP_MULTICAST_LOOP)),
    (14, Kind::Membership { joins: true }),
    (15, Kind::Membership { joins: false }),
    (16, told(libc::IPPROTO_IPV6, libc::IPV6_V6ONLY)),
    (17, system(libc::SOL_SOCKET, libc::SO_REUSEPORT)),
    // On Linux the system shares out the load among sockets with the same port.
    (18, system(libc::SOL_SOCKET, libc::SO_REUSEPORT)),
    (19, Kind::Driver(Own::ExclusiveAddress)),
    (20, Kind::Driver(Own::Buffer)),
    (21, Kind::Driver(Own::Header)),
    (22, Kind::Driver(Own::Active)),
    (23, Kind::Driver(Own::Packet)),
    (24, Kind::Driver(Own::Mode)),
    (25, Kind::Driver(Own::Deliver)),
    (26, Kind::Driver(Own::ExitOnClose)),
    (27, Kind::Driver(Own::High)),
    (28, Kind::Driver(Own::Low)),
    (30, Kind::Driver(Own::SendTimeout)),
    (31, Kind::Driver(Own::DelaySend)),
    (32, Kind::Driver(Own::PacketSize)),
    (33, Kind::Driver(Own::ReadPackets)),
    (34, Kind::Raw),
    (35, Kind::Driver(Own::SendTimeoutClose)),
    (36, Kind::Driver(Own::QueueHigh)),
    (37, Kind::Driver(Own::QueueLow)),
    (38, Kind::Driver(Own::Netns)),
    (39, Kind::Driver(Own::ShowEconnreset)),
    (40, Kind::Driver(Own::LineDelimiter)),
    (41, told(libc::IPPROTO_IPV6, libc::IPV6_TCLASS)),
    (42, Kind::BindToDevice),
    (RECEIVE_TOS, told(libc::IPPROTO_IP, libc::IP_RECVTOS)),
    (
        RECEIVE_TCLASS,
        told(libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS),
    ),
    (45, Kind::PacketOptions),
    (46, told(libc::IPPROTO_IP, libc::IP_TTL)),
    (RECEIVE_TTL, told(libc::IPPROTO_IP, libc::IP_RECVTTL)),
    (48, system(libc::IPPROTO_TCP, libc::TCP_CORK)),
    (49, Kind::Driver(Own::ReadAhead)),
    (50, Kind::Driver(Own::NonBlockSend)),
    (51, system(libc::IPPROTO_TCP, libc::TCP_KEEPCNT)),
    (52, system(libc::IPPROTO_TCP, libc::TCP_KEEPIDLE)),
    (53, system(libc::IPPROTO_TCP, libc::TCP_KEEPINTVL)),
    (54, system(libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT)),
    (99, Kind::Driver(Own::Debug)),
];

const RECEIVE_TOS: u8 = 43;
const RECEIVE_TCLASS: u8 = 44;
const RECEIVE_TTL: u8 = 47;

/// The bit in [`Settings::control`] of an option that has control messages come with datagrams.
fn control_bit(code: u8) -> u8 {
    match code {
        RECEIVE_TOS => 1,
        RECEIVE_TCLASS => 2,
        RECEIVE_TTL => 4,
        _ => 0,
    }
}

/// The option of a number.
fn option(code: u8) -> Option<Kind> {
    let row = OPTIONS.binary_search_by_key(&code, |row| row.0).ok()?;
    Some(OPTIONS[row].1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_in_the_order_of_their_numbers() {
        assert!(OPTIONS.is_sorted_by(|a, b| a.0 < b.0));
        assert_eq!(option(22), Some(Kind::Driver(Own::Active)));
        assert_eq!(option(29), None);
    }
}
