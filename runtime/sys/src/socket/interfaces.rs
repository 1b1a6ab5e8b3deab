//! The interfaces of this machine, and their addresses.

use std::ffi::CStr;
use std::os::fd::{AsFd, AsRawFd};

use rustix::io::Errno;

use super::{Address, result};

/// An address of an interface, or, of the family `AF_PACKET`, what the link says of itself.
#[derive(Clone, Debug)]
pub struct Interface {
    /// The interface.
    pub name: Vec<u8>,
    /// `IFF_UP` and the like.
    pub flags: u32,
    /// Its address, if it has one.
    pub address: Option<Address>,
    /// The mask of its net.
    pub netmask: Option<Address>,
    /// Its broadcast address, or the other end of a point-to-point link.
    pub other: Option<Address>,
}

/// Bytes of an address, by its family.
fn address_bytes(family: u16) -> usize {
    match i32::from(family) {
        libc::AF_INET => size_of::<libc::sockaddr_in>(),
        libc::AF_INET6 => size_of::<libc::sockaddr_in6>(),
        libc::AF_PACKET => size_of::<libc::sockaddr_ll>(),
        _ => size_of::<libc::sa_family_t>(),
    }
}

/// # Safety
/// It is null, or an address of the list.
unsafe fn address(at: *const libc::sockaddr) -> Option<Address> {
    if at.is_null() {
        return None;
    }
    // SAFETY: SK2: as long as its family says.
    let bytes = unsafe {
        let family = (*at).sa_family;
        std::slice::from_raw_parts(at.cast::<u8>(), address_bytes(family))
    };
    Address::of_bytes(bytes)
}

/// The addresses of all interfaces, in the order in which the system lists them.
///
/// # Errors
/// The system's.
pub fn all() -> Result<Vec<Interface>, Errno> {
    let mut first = std::ptr::null_mut();
    // SAFETY: SK1: it writes a pointer to a list of its own.
    result(unsafe { libc::getifaddrs(&raw mut first) } as isize)?;
    let mut interfaces = Vec::new();
    let mut next = first;
    // SAFETY: SK2: a list that the C library has built, until it is freed; its end is null.
    while let Some(row) = unsafe { next.as_ref() } {
        // SAFETY: SK2: as above; a name ends with a zero.
        interfaces.push(unsafe {
            Interface {
                name: CStr::from_ptr(row.ifa_name).to_bytes().to_vec(),
                flags: row.ifa_flags,
                address: address(row.ifa_addr),
                netmask: address(row.ifa_netmask),
                other: address(row.ifa_ifu),
            }
        });
        next = row.ifa_next;
    }
    // SAFETY: SK1: what `getifaddrs` gave, of which nothing is kept.
    unsafe { libc::freeifaddrs(first) };
    Ok(interfaces)
}

/// A request of an interface by name (`SIOCGIFMTU` and the like): the 16 bytes that it answers behind the name, or takes.
///
/// # Errors
/// The system's; `NODEV` where the name is too long for one.
pub fn request(
    fd: impl AsFd,
    code: libc::Ioctl,
    name: &[u8],
    value: &mut [u8; 16],
) -> Result<(), Errno> {
    if name.len() >= libc::IFNAMSIZ {
        return Err(Errno::NODEV);
    }
    // `struct ifreq`: a name, and a union of 24 bytes.
    let mut request = [0u64; 5];
    let bytes: &mut [u8] = {
        // SAFETY: SK1: words are bytes, of any values.
        unsafe { std::slice::from_raw_parts_mut(request.as_mut_ptr().cast(), 40) }
    };
    bytes[..name.len()].copy_from_slice(name);
    bytes[16..32].copy_from_slice(value);
    // SAFETY: SK1: a request of an interface takes and gives a `struct ifreq`, which is as long as this.
    let done = unsafe { libc::ioctl(fd.as_fd().as_raw_fd(), code, bytes.as_mut_ptr()) };
    result(done as isize)?;
    value.copy_from_slice(&bytes[16..32]);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_loopback_that_has_an_index() {
        let all = all().expect("they are listed");
        let loopback = all.iter().find(|i| i.name == b"lo").expect("there is one");
        assert_ne!(loopback.flags & libc::IFF_LOOPBACK as u32, 0);
        let fd = super::super::open(libc::AF_INET, libc::SOCK_DGRAM, 0).expect("it opens");
        let mut value = [0; 16];
        request(&fd, libc::SIOCGIFMTU, b"lo", &mut value).expect("it has a unit");
        assert_ne!(value[..4], [0; 4]);
        let none = request(&fd, libc::SIOCGIFMTU, b"no such one", &mut value);
        assert_eq!(none, Err(Errno::NODEV));
        let long = request(&fd, libc::SIOCGIFMTU, &[b'x'; 16], &mut value);
        assert_eq!(long, Err(Errno::NODEV));
    }
}
