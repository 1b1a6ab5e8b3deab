//! Sets options.

use std::os::fd::AsFd;

use rustix::io::Errno;

use super::super::address::tag;
use super::super::request::{take_u16, take_u32};
use super::super::{Inet, messages};
use super::{Active, Kind, Own, control_bit, option};
use crate::port::driver::Context;
use crate::sys::socket::set_option;
use crate::term::{Atom, am};
use crate::value::packet::Type;

/// The largest datagram that there can be. Source: `INET_UDP_THEORETICAL_MAX_MTU`.
const MAX_DATAGRAM: i32 = 1 << 16;

/// Limits of the queue of a port. Source: `ERL_DRV_BUSY_MSGQ_LIM_MIN`, and that of a number of `prim_inet`.
const MIN_QUEUE: i32 = 1;

/// Sets the options that are in `bytes`, in their order. Those before one that is refused are set.
///
/// # Errors
/// `EINVAL`: there is no such option or value, or the system refuses one whose refusal is reported ([`Kind::System`]).
pub(in super::super) fn set(
    inet: &mut Inet,
    port: &mut Context<'_>,
    mut bytes: &[u8],
) -> Result<(), Errno> {
    // An option of a last few bytes is none.
    while bytes.len() >= 5 {
        let (code, rest) = (bytes[0], &bytes[1..]);
        let (value, rest) = take_u32(rest)?;
        let value = value.cast_signed();
        bytes = match option(code).ok_or(Errno::INVAL)? {
            Kind::Driver(own) => set_own(inet, port, own, (value, rest))?,
            Kind::System { level, name, tells } => {
                let done = set_number(inet, (level, name), value);
                match done {
                    Ok(()) => note_control(inet, code, value != 0),
                    Err(_) if tells => return Err(Errno::INVAL),
                    Err(_) => {}
                }
                if name == libc::SO_RCVBUF && level == libc::SOL_SOCKET {
                    grow_buffer(inet, value);
                }
                rest
            }
            Kind::Linger => set_linger(inet, value, rest)?,
            Kind::Membership { joins } => set_membership(inet, joins, value, rest)?,
            Kind::MulticastInterface => {
                set_multicast_interface(inet, value)?;
                rest
            }
            Kind::Raw => set_raw(inet, value, rest)?,
            Kind::BindToDevice => bind_to_device(inet, value, rest)?,
            Kind::PacketOptions => return Err(Errno::INVAL),
        };
    }
    Ok(())
}

fn set_number(inet: &Inet, (level, name): (i32, i32), value: i32) -> Result<(), Errno> {
    set_bytes(inet, (level, name), &value.to_ne_bytes())
}

fn set_bytes(inet: &Inet, (level, name): (i32, i32), value: &[u8]) -> Result<(), Errno> {
    set_option(inet.socket()?.as_fd(), level, name, value)
}

/// What control messages come with datagrams.
fn note_control(inet: &mut Inet, code: u8, on: bool) {
    let bit = control_bit(code);
    if on {
        inet.settings.control |= bit;
    } else {
        inet.settings.control &= !bit;
    }
}

/// The buffer of the driver is not smaller than that of the system, unless it was asked for.
fn grow_buffer(inet: &mut Inet, system: i32) {
    let settings = &mut inet.settings;
    if settings.is_buffer_set {
        return;
    }
    if system > MAX_DATAGRAM && inet.kind == libc::SOCK_DGRAM {
        settings.buffer = MAX_DATAGRAM as usize;
    } else {
        settings.buffer = settings.buffer.max(usize::try_from(system).unwrap_or(0));
    }
}

/// The first bytes, of which there must be `count`, and what is behind them.
fn take(bytes: &[u8], count: i32) -> Result<(&[u8], &[u8]), Errno> {
    let count = usize::try_from(count).map_err(|_| Errno::INVAL)?;
    bytes.split_at_checked(count).ok_or(Errno::INVAL)
}

/// Sets an option of the driver; gives what is behind its value.
fn set_own<'b>(
    inet: &mut Inet,
    port: &Context<'_>,
    own: Own,
    (value, rest): (i32, &'b [u8]),
) -> Result<&'b [u8], Errno> {
    let settings = &mut inet.settings;
    let is_stream = inet.kind == libc::SOCK_STREAM;
    let (on, size) = (value != 0, value.max(0) as usize);
    match own {
        Own::Buffer => {
            settings.buffer = size.max(1);
            settings.is_buffer_set = true;
        }
        Own::Header => settings.header = size,
        Own::Active => return set_active(inet, port, value, rest),
        Own::Packet => {
            let code = value.cast_unsigned();
            settings.packet = Type::of_code(code).ok_or(Errno::INVAL)?;
            settings.packet_code = value;
        }
        Own::PacketSize => settings.packet_size = value.cast_unsigned() as usize,
        Own::Mode => settings.is_binary = on,
        Own::Deliver => settings.is_port_data = value == 0,
        Own::ExitOnClose => settings.exit_on_close = on,
        Own::High if is_stream => {
            settings.high = size;
            settings.low = settings.low.min(size);
        }
        Own::Low if is_stream => {
            settings.low = size;
            settings.high = settings.high.max(size);
        }
        Own::QueueHigh | Own::QueueLow if value < MIN_QUEUE => return Err(Errno::INVAL),
        Own::QueueHigh => {
            settings.queue_high = value;
            settings.queue_low = settings.queue_low.min(value);
        }
        Own::QueueLow => {
            settings.queue_low = value;
            settings.queue_high = settings.queue_high.max(value);
        }
        Own::SendTimeout if is_stream => settings.send_timeout = value.cast_unsigned(),
        Own::SendTimeoutClose if is_stream => settings.send_timeout_close = on,
        Own::DelaySend if is_stream => settings.delay_send = on,
        Own::ReadPackets if inet.kind == libc::SOCK_DGRAM => {
            if value <= 0 {
                return Err(Errno::INVAL);
            }
            settings.read_packets = value;
        }
        Own::Netns => {
            let (path, rest) = take(rest, value)?;
            settings.netns = Some(path.to_vec());
            return Ok(rest);
        }
        Own::ShowEconnreset => settings.show_econnreset = on,
        Own::ReadAhead => settings.read_ahead = on,
        Own::LineDelimiter => settings.delimiter = value as u8,
        Own::Debug => settings.debug = on,
        // Of sockets of another kind, or of another system.
        Own::High
        | Own::Low
        | Own::SendTimeout
        | Own::SendTimeoutClose
        | Own::DelaySend
        | Own::ReadPackets
        | Own::NonBlockSend
        | Own::ExclusiveAddress => {}
    }
    Ok(rest)
}

fn set_active<'b>(
    inet: &mut Inet,
    port: &Context<'_>,
    value: i32,
    rest: &'b [u8],
) -> Result<&'b [u8], Errno> {
    let passive = inet.passive_tag();
    let settings = &mut inet.settings;
    let active = Active::of_code(value).ok_or(Errno::INVAL)?;
    settings.active = active;
    if active != Active::Times {
        settings.active_count = 0;
        return Ok(rest);
    }
    let (more, rest) = take_u16(rest)?;
    let count = settings.active_count.checked_add(more.cast_signed());
    settings.active_count = count.ok_or(Errno::INVAL)?.max(0);
    if settings.active_count == 0 {
        settings.active = Active::Passive;
        messages::tell_owner(port, passive);
    }
    Ok(rest)
}

impl Inet {
    /// The tag of the message that the owner gets when the packets that it asked for have come.
    pub(in super::super) fn passive_tag(&self) -> Atom {
        match self.kind {
            libc::SOCK_DGRAM => am::udp_passive,
            _ => am::tcp_passive,
        }
    }
}

fn set_linger<'b>(inet: &mut Inet, on: i32, rest: &'b [u8]) -> Result<&'b [u8], Errno> {
    let (seconds, rest) = take_u32(rest)?;
    let value = [on.to_ne_bytes(), seconds.to_ne_bytes()].concat();
    inet.settings.linger_zero = on != 0 && seconds == 0;
    let _ = set_bytes(inet, (libc::SOL_SOCKET, libc::SO_LINGER), &value);
    Ok(rest)
}

fn set_multicast_interface(inet: &Inet, value: i32) -> Result<(), Errno> {
    let option = match inet.family {
        libc::AF_INET => (libc::IPPROTO_IP, libc::IP_MULTICAST_IF),
        libc::AF_INET6 => (libc::IPPROTO_IPV6, libc::IPV6_MULTICAST_IF),
        _ => return Err(Errno::INVAL),
    };
    let _ = set_bytes(inet, option, &value.to_be_bytes());
    Ok(())
}

fn set_membership<'b>(
    inet: &Inet,
    joins: bool,
    domain: i32,
    rest: &'b [u8],
) -> Result<&'b [u8], Errno> {
    let (interface, rest) = take_u32(rest)?;
    let interface = interface.to_ne_bytes();
    let (option, value, rest) = match (domain as u8, inet.family) {
        (tag::INET, libc::AF_INET) => {
            let name = match joins {
                true => libc::IP_ADD_MEMBERSHIP,
                false => libc::IP_DROP_MEMBERSHIP,
            };
            let (addresses, rest) = take(rest, 8)?;
            let value = [addresses, &interface].concat();
            ((libc::IPPROTO_IP, name), value, rest)
        }
        (tag::INET6, libc::AF_INET6) => {
            let name = match joins {
                true => libc::IPV6_ADD_MEMBERSHIP,
                false => libc::IPV6_DROP_MEMBERSHIP,
            };
            let (address, rest) = take(rest, 16)?;
            let value = [address, &interface].concat();
            ((libc::IPPROTO_IPV6, name), value, rest)
        }
        _ => return Err(Errno::INVAL),
    };
    let _ = set_bytes(inet, option, &value);
    Ok(rest)
}

fn set_raw<'b>(inet: &Inet, level: i32, rest: &'b [u8]) -> Result<&'b [u8], Errno> {
    let (name, rest) = take_u32(rest)?;
    let (length, rest) = take_u32(rest)?;
    let (value, rest) = take(rest, length.cast_signed())?;
    let _ = set_bytes(inet, (level, name.cast_signed()), value);
    Ok(rest)
}

fn bind_to_device<'b>(inet: &Inet, length: i32, rest: &'b [u8]) -> Result<&'b [u8], Errno> {
    let (name, rest) = take(rest, length)?;
    if name.len() >= libc::IFNAMSIZ {
        return Err(Errno::INVAL);
    }
    let value = [name, &[0]].concat();
    set_bytes(inet, (libc::SOL_SOCKET, libc::SO_BINDTODEVICE), &value).map_err(|_| Errno::INVAL)?;
    Ok(rest)
}
