//! What `inet` tells of the interfaces of this machine.

use std::os::fd::AsFd;

use rustix::io::Errno;

use super::address::tag;
use super::request::take_counted;
use crate::sys::socket::Address;
use crate::sys::socket::interfaces::{Interface, all, request};

/// Items of an interface. Source: `INET_IFOPT_ADDR` and those behind it.
mod item {
    pub(super) const ADDRESS: u8 = 1;
    pub(super) const BROADCAST: u8 = 2;
    pub(super) const DESTINATION: u8 = 3;
    pub(super) const MTU: u8 = 4;
    pub(super) const NETMASK: u8 = 5;
    pub(super) const FLAGS: u8 = 6;
    pub(super) const HARDWARE: u8 = 7;
}

/// Flags of the system, and what `inet` calls them. One that is up runs. Source: `IFGET_FLAGS`.
const FLAGS: [(i32, u32); 6] = [
    (libc::IFF_UP, 0x1),
    (libc::IFF_BROADCAST, 0x2),
    (libc::IFF_LOOPBACK, 0x4),
    (libc::IFF_POINTOPOINT, 0x8),
    (libc::IFF_UP, 0x10),
    (libc::IFF_MULTICAST, 0x20),
];

fn flags(system: u32) -> [u8; 4] {
    let set = FLAGS.iter().filter(|row| system & row.0 as u32 != 0);
    set.fold(0, |all, row| all | row.1).to_be_bytes()
}

/// An address without its port: a tag and the number of the host, or the length of a hardware address and that.
fn address(address: &Address) -> Vec<u8> {
    let bytes = address.bytes();
    match address.family() {
        libc::AF_INET | libc::AF_UNSPEC if bytes.len() >= 8 => {
            [&[tag::INET], &bytes[4..8]].concat()
        }
        libc::AF_INET6 => [&[tag::INET6], &bytes[8..24]].concat(),
        libc::AF_PACKET => {
            let length = bytes[11].min(8);
            let address = &bytes[12..12 + usize::from(length)];
            [&[0, length], address].concat()
        }
        _ => Vec::new(),
    }
}

/// The interfaces that have addresses of IPv4, each name with a zero behind it.
///
/// # Errors
/// The system's.
pub(super) fn names() -> Result<Vec<u8>, Errno> {
    let is_ipv4 = |a: &Address| a.family() == libc::AF_INET;
    let interfaces = all()?.into_iter();
    let interfaces = interfaces.filter(|i| i.address.as_ref().is_some_and(is_ipv4));
    Ok(interfaces
        .flat_map(|i| [i.name, vec![0]].concat())
        .collect())
}

/// All addresses of all interfaces: for each its interface's name, its items, each with a zero behind it.
///
/// # Errors
/// The system's.
pub(super) fn addresses() -> Result<Vec<u8>, Errno> {
    let mut answer = Vec::new();
    for interface in all()? {
        // A name is a text of bytes; the answer has it in UTF-8.
        let name: String = interface
            .name
            .iter()
            .map(|byte| char::from(*byte))
            .collect();
        answer.extend(name.as_bytes());
        answer.extend([0, item::FLAGS]);
        answer.extend(flags(interface.flags));
        put_addresses(&interface, &mut answer);
        answer.push(0);
    }
    Ok(answer)
}

fn put_addresses(interface: &Interface, answer: &mut Vec<u8>) {
    let mut put = |item: u8, told: Option<&Address>| {
        if let Some(told) = told.map(address).filter(|told| !told.is_empty()) {
            answer.push(item);
            answer.extend(told);
        }
    };
    let has = |flag: i32| interface.flags & flag as u32 != 0;
    let other = interface.other.as_ref();
    match interface.address.as_ref().map(Address::family) {
        Some(libc::AF_INET | libc::AF_INET6) => {
            put(item::ADDRESS, interface.address.as_ref());
            put(item::NETMASK, interface.netmask.as_ref());
            if has(libc::IFF_POINTOPOINT) {
                put(item::DESTINATION, other);
            } else if has(libc::IFF_BROADCAST) {
                put(item::BROADCAST, other);
            }
        }
        Some(libc::AF_PACKET) => {
            let hardware = interface.address.as_ref();
            // One of a byte or less is none.
            put(item::HARDWARE, hardware.filter(|a| a.bytes()[11] > 1));
        }
        _ => {}
    }
}

/// The items of an interface that are asked for by their codes, each behind its code, without those that it has not.
///
/// # Errors
/// `EINVAL`: there is no such item.
pub(super) fn items(fd: impl AsFd, asked: &[u8]) -> Result<Vec<u8>, Errno> {
    let (name, codes) = take_counted(asked)?;
    let name = &name[..name.len().min(libc::IFNAMSIZ - 1)];
    let ask = |code: libc::Ioctl| {
        let mut value = [0; 16];
        request(&fd, code, name, &mut value).map(|()| value)
    };
    let mut answer = Vec::new();
    for code in codes {
        let told = match *code {
            item::ADDRESS => ask(libc::SIOCGIFADDR).ok().and_then(of_request),
            item::BROADCAST => ask(libc::SIOCGIFBRDADDR).ok().and_then(of_request),
            item::DESTINATION => ask(libc::SIOCGIFDSTADDR).ok().and_then(of_request),
            item::NETMASK => ask(libc::SIOCGIFNETMASK).ok().and_then(of_request),
            item::HARDWARE => {
                let value = ask(libc::SIOCGIFHWADDR).ok();
                value.map(|value| [&[0, 6], &value[2..8]].concat())
            }
            item::MTU => {
                let value = ask(libc::SIOCGIFMTU).ok();
                let number = |v: [u8; 16]| i32::from_ne_bytes([v[0], v[1], v[2], v[3]]);
                value.map(|value| number(value).to_be_bytes().to_vec())
            }
            item::FLAGS => {
                let value = ask(libc::SIOCGIFFLAGS).unwrap_or_default();
                let system = u16::from_ne_bytes([value[0], value[1]]);
                Some(flags(system.into()).to_vec())
            }
            _ => return Err(Errno::INVAL),
        };
        if let Some(told) = told {
            answer.push(*code);
            answer.extend(told);
        }
    }
    Ok(answer)
}

/// An address that a request has answered.
fn of_request(value: [u8; 16]) -> Option<Vec<u8>> {
    let told = Address::of_bytes(&value)?;
    Some(address(&told)).filter(|told| !told.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::socket;

    #[test]
    fn the_loopback_is_up_and_has_its_address() {
        let fd = socket::open(libc::AF_INET, libc::SOCK_DGRAM, 0).expect("it opens");
        let asked = [2, b'l', b'o', item::FLAGS, item::ADDRESS, item::NETMASK];
        let told = items(&fd, &asked).expect("it is there");
        assert_eq!(told[0], item::FLAGS);
        assert_eq!(told[4] & 0x15, 0x15, "up, loopback, running");
        let address = [item::ADDRESS, tag::INET, 127, 0, 0, 1];
        let netmask = [item::NETMASK, tag::INET, 255, 0, 0, 0];
        assert_eq!(told[5..], [address, netmask].concat());
        assert_eq!(items(&fd, &[2, b'l', b'o', 9]), Err(Errno::INVAL));
        assert_eq!(items(&fd, &[9, b'l', b'o']), Err(Errno::INVAL));
        let all = addresses().expect("they are listed");
        assert!(all.windows(3).any(|name| name == b"lo\0"));
        assert!(names().expect("they are listed").starts_with(b"lo\0"));
    }
}
