//! Tells options.

use rustix::io::Errno;

use super::super::address::tag_of;
use super::super::request::take_u32;
use super::super::{Inet, request::Refusal};
use super::{Active, Kind, Own, option};
use crate::sys::socket::control::Control;
use crate::sys::socket::option as system_option;

/// Bytes of the longest answer. Source: `INET_MAX_OPT_BUFFER`.
const MAX_BYTES: usize = 64 * 1024;

/// Which option each control message of `pktoptions` is. Source: `inet_fill_opts()`.
const CONTROL: [(i32, i32, u8); 3] = [
    (libc::IPPROTO_IP, libc::IP_TOS, 9),
    (libc::IPPROTO_IPV6, libc::IPV6_TCLASS, 41),
    (libc::IPPROTO_IP, libc::IP_TTL, 46),
];

/// The values of the options whose codes are in `codes`, each behind its code. Those that the system does not give are
/// left out.
///
/// # Errors
/// `EINVAL`: there is no such option, or the answer is too long.
pub(in super::super) fn get(inet: &Inet, mut codes: &[u8]) -> Result<Vec<u8>, Refusal> {
    let mut answer = Vec::new();
    while let Some((&code, rest)) = codes.split_first() {
        codes = rest;
        let value = match option(code).ok_or(Errno::INVAL)? {
            // It cannot be read back.
            Kind::Driver(Own::LineDelimiter) | Kind::Membership { .. } => {
                return Err(Errno::INVAL.into());
            }
            Kind::Driver(own) => get_own(inet, own),
            Kind::System { level, name, .. } => number(inet, level, name),
            Kind::Linger => linger(inet),
            Kind::MulticastInterface => multicast_interface(inet)?,
            Kind::Raw => {
                let (value, rest) = raw(inet, codes)?;
                codes = rest;
                value
            }
            Kind::BindToDevice => device(inet),
            Kind::PacketOptions => packet_options(inet)?,
        };
        if let Some(value) = value {
            answer.push(code);
            answer.extend(value);
        }
        if answer.len() > MAX_BYTES {
            return Err(Errno::INVAL.into());
        }
    }
    Ok(answer)
}

fn encoded(value: i32) -> Vec<u8> {
    value.to_be_bytes().to_vec()
}

/// The value of an option of the driver; nothing for one of sockets of another kind.
fn get_own(inet: &Inet, own: Own) -> Option<Vec<u8>> {
    let settings = &inet.settings;
    let is_stream = inet.kind == libc::SOCK_STREAM;
    let is_datagram = inet.kind == libc::SOCK_DGRAM;
    let size = |size: usize| i32::try_from(size).unwrap_or(i32::MAX);
    let number = match own {
        Own::Buffer => size(settings.buffer),
        Own::Header => size(settings.header),
        Own::Active => {
            let code = Active::CODES.iter().position(|a| *a == settings.active)?;
            let mut value = encoded(size(code));
            if settings.active == Active::Times {
                value.extend(settings.active_count.to_be_bytes());
            }
            return Some(value);
        }
        Own::Packet => settings.packet_code,
        Own::Mode => settings.is_binary.into(),
        Own::Deliver => (!settings.is_port_data).into(),
        Own::ExitOnClose => settings.exit_on_close.into(),
        Own::High => size(is_stream.then_some(settings.high)?),
        Own::Low => size(is_stream.then_some(settings.low)?),
        Own::SendTimeout => is_stream.then_some(settings.send_timeout)?.cast_signed(),
        Own::DelaySend => is_stream.then_some(settings.delay_send)?.into(),
        Own::PacketSize => size(settings.packet_size),
        Own::ReadPackets => is_datagram.then_some(settings.read_packets)?,
        Own::SendTimeoutClose => is_stream.then_some(settings.send_timeout_close)?.into(),
        Own::QueueHigh => settings.queue_high,
        Own::QueueLow => settings.queue_low,
        Own::Netns => {
            let path = settings.netns.as_ref()?;
            return Some([&encoded(size(path.len())), &path[..]].concat());
        }
        Own::ShowEconnreset => is_stream.then_some(settings.show_econnreset)?.into(),
        Own::LineDelimiter => i32::from(settings.delimiter),
        Own::ReadAhead => is_stream.then_some(settings.read_ahead)?.into(),
        Own::NonBlockSend => settings.non_block_send.into(),
        Own::Debug => settings.debug.into(),
        Own::ExclusiveAddress => 0,
    };
    Some(encoded(number))
}

fn read(inet: &Inet, level: i32, name: i32, value: &mut [u8]) -> Option<usize> {
    system_option(inet.socket().ok()?, level, name, value).ok()
}

fn number(inet: &Inet, level: i32, name: i32) -> Option<Vec<u8>> {
    let mut value = [0; 4];
    read(inet, level, name, &mut value)?;
    Some(encoded(i32::from_ne_bytes(value)))
}

fn linger(inet: &Inet) -> Option<Vec<u8>> {
    let mut value = [0; 8];
    read(inet, libc::SOL_SOCKET, libc::SO_LINGER, &mut value)?;
    let [a, b, c, d, e, f, g, h] = value;
    let numbers = [[a, b, c, d], [e, f, g, h]].map(|n| i32::from_ne_bytes(n).to_be_bytes());
    Some(numbers.concat())
}

fn multicast_interface(inet: &Inet) -> Result<Option<Vec<u8>>, Errno> {
    let (level, name) = match inet.family {
        libc::AF_INET => (libc::IPPROTO_IP, libc::IP_MULTICAST_IF),
        libc::AF_INET6 => (libc::IPPROTO_IPV6, libc::IPV6_MULTICAST_IF),
        _ => return Err(Errno::INVAL),
    };
    let Some(interface) = number(inet, level, name) else {
        return Ok(None);
    };
    let family = i32::from(tag_of(inet.family).ok_or(Errno::INVAL)?);
    Ok(Some([encoded(family), interface].concat()))
}

/// A raw option: its level, its name, whether a value is given, and its length. What is behind it.
fn raw<'b>(inet: &Inet, codes: &'b [u8]) -> Result<(Option<Vec<u8>>, &'b [u8]), Errno> {
    let (level, rest) = take_u32(codes)?;
    let (name, rest) = take_u32(rest)?;
    let (&is_given, rest) = rest.split_first().ok_or(Errno::INVAL)?;
    let (length, rest) = take_u32(rest)?;
    let length = usize::try_from(length).map_err(|_| Errno::INVAL)?;
    if length > MAX_BYTES {
        return Err(Errno::INVAL);
    }
    let (mut value, rest) = match is_given {
        0 => (vec![0; length], rest),
        _ => {
            let (value, rest) = rest.split_at_checked(length).ok_or(Errno::INVAL)?;
            (value.to_vec(), rest)
        }
    };
    let (level, name) = (level.cast_signed(), name.cast_signed());
    let Some(length) = read(inet, level, name, &mut value) else {
        return Ok((None, rest));
    };
    value.truncate(length);
    let head = [level, name, length as i32].map(i32::to_be_bytes);
    Ok((Some([&head.concat(), &value[..]].concat()), rest))
}

fn device(inet: &Inet) -> Option<Vec<u8>> {
    let mut value = [0; libc::IFNAMSIZ];
    let length = read(inet, libc::SOL_SOCKET, libc::SO_BINDTODEVICE, &mut value)?;
    let name = &value[..length];
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(length);
    Some([&encoded(end as i32), &name[..end]].concat())
}

fn packet_options(inet: &Inet) -> Result<Option<Vec<u8>>, Errno> {
    let (level, name) = match inet.family {
        libc::AF_INET => (libc::IPPROTO_IP, libc::IP_PKTOPTIONS),
        _ => return Err(Errno::INVAL),
    };
    let mut value = [0; 2 * 24];
    let Some(length) = read(inet, level, name, &mut value) else {
        return Ok(None);
    };
    let mut options = Vec::new();
    for message in Control::of_option(&value[..length]).messages() {
        let row = CONTROL
            .iter()
            .find(|row| (row.0, row.1) == (message.level, message.kind));
        if let Some((_, _, code)) = row {
            options.push(*code);
            options.extend(encoded(message.number().unwrap_or(0) as i32));
        }
    }
    Ok(Some([encoded(options.len() as i32), options].concat()))
}
