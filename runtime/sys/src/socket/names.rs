//! Names of hosts, services and interfaces, as the C library finds them. Most of these wait.
//!
//! Invariant NM1: the C library gives a list of its own, which is copied and then freed.

use std::ffi::{CStr, CString, c_char, c_int};

use rustix::io::Errno;

use super::{Address, result};

/// An address that a name has.
#[derive(Clone, Debug)]
pub struct Found {
    /// `AF_INET` and the like.
    pub family: i32,
    /// `SOCK_STREAM` and the like.
    pub kind: i32,
    /// `IPPROTO_TCP` and the like.
    pub protocol: i32,
    /// The address.
    pub address: Option<Address>,
}

/// Why a name was not found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// `EAI_NONAME` and the like.
    Code(i32),
    /// The system's error.
    System(Errno),
}

fn checked(code: c_int) -> Result<(), Unknown> {
    match code {
        0 => Ok(()),
        libc::EAI_SYSTEM => Err(Unknown::System(match result(-1) {
            Err(errno) => errno,
            Ok(_) => Errno::IO,
        })),
        code => Err(Unknown::Code(code)),
    }
}

/// # Safety
/// NM1: a row of the list.
unsafe fn found(row: &libc::addrinfo) -> Found {
    let address = (!row.ai_addr.is_null()).then(|| {
        // SAFETY: by contract: as long as it says.
        let bytes = unsafe {
            std::slice::from_raw_parts(row.ai_addr.cast::<u8>(), row.ai_addrlen as usize)
        };
        Address::of_bytes(bytes)
    });
    Found {
        family: row.ai_family,
        kind: row.ai_socktype,
        protocol: row.ai_protocol,
        address: address.flatten(),
    }
}

/// The addresses of a host, of a service, or of both.
///
/// # Errors
/// The C library's.
pub fn look_up(host: Option<&CStr>, service: Option<&CStr>) -> Result<Vec<Found>, Unknown> {
    let text = |text: Option<&CStr>| text.map_or(std::ptr::null(), CStr::as_ptr);
    let mut first = std::ptr::null_mut();
    // SAFETY: NM1: texts that end or none, and a pointer that it writes.
    let code = unsafe {
        libc::getaddrinfo(
            text(host),
            text(service),
            std::ptr::null(),
            &raw mut first,
        )
    };
    checked(code)?;
    let (mut all, mut next) = (Vec::new(), first);
    // SAFETY: NM1: a list that ends with null, until it is freed.
    while let Some(row) = unsafe { next.as_ref() } {
        // SAFETY: NM1: a row of it.
        all.push(unsafe { found(row) });
        next = row.ai_next;
    }
    // SAFETY: NM1: nothing of it is kept.
    unsafe { libc::freeaddrinfo(first) };
    Ok(all)
}

/// Room for the name of a host, and for that of a service.
const HOST_BYTES: usize = 1025;
const SERVICE_BYTES: usize = 256;

/// The host and the service of an address.
///
/// # Errors
/// The C library's.
pub fn of_address(address: &Address, flags: i32) -> Result<(CString, CString), Unknown> {
    let (mut host, mut service) = ([0u8; HOST_BYTES], [0u8; SERVICE_BYTES]);
    let bytes = address.bytes();
    // SAFETY: SK1: an address of so many bytes, and room of as many as it is told.
    let code = unsafe {
        libc::getnameinfo(
            address.0.as_ptr().cast(),
            bytes.len() as libc::socklen_t,
            host.as_mut_ptr().cast(),
            HOST_BYTES as libc::socklen_t,
            service.as_mut_ptr().cast(),
            SERVICE_BYTES as libc::socklen_t,
            flags,
        )
    };
    checked(code)?;
    let text = |bytes: &[u8]| {
        let text = CStr::from_bytes_until_nul(bytes);
        text.map_or_else(|_| CString::default(), CStr::to_owned)
    };
    Ok((text(&host), text(&service)))
}

/// The number of an interface.
///
/// # Errors
/// The system's.
pub fn interface_index(name: &CStr) -> Result<u32, Errno> {
    // SAFETY: SK1: a text that ends.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => Err(result(-1).err().unwrap_or(Errno::NODEV)),
        index => Ok(index),
    }
}

/// The name of an interface, if there is one of this number.
#[must_use]
pub fn interface_name(index: u32) -> Option<CString> {
    let mut name = [0u8; libc::IF_NAMESIZE];
    // SAFETY: SK1: there is room for a name.
    let found = unsafe { libc::if_indextoname(index, name.as_mut_ptr().cast::<c_char>()) };
    let name = CStr::from_bytes_until_nul(&name).ok()?;
    (!found.is_null()).then(|| name.to_owned())
}

/// The numbers and names of all interfaces.
///
/// # Errors
/// The system's.
pub fn interfaces() -> Result<Vec<(u32, CString)>, Errno> {
    // SAFETY: NM1: null, or a list.
    let first = unsafe { libc::if_nameindex() };
    if first.is_null() {
        result(-1)?;
    }
    let (mut all, mut next) = (Vec::new(), first);
    // SAFETY: NM1: rows up to one of zeros.
    while let Some(row) = unsafe { next.as_ref() }.filter(|row| row.if_index != 0) {
        // SAFETY: NM1: a name that ends; the next row is behind it.
        unsafe {
            all.push((row.if_index, CStr::from_ptr(row.if_name).to_owned()));
            next = next.add(1);
        }
    }
    // SAFETY: NM1: nothing of it is kept.
    unsafe { libc::if_freenameindex(first) };
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_of_interfaces_are_the_same_both_ways() {
        for (index, name) in interfaces().expect("they are listed") {
            assert_eq!(interface_index(&name), Ok(index));
            assert_eq!(interface_name(index).as_deref(), Some(&*name));
        }
        assert_eq!(interface_index(c"no such one"), Err(Errno::NODEV));
        assert_eq!(interface_name(u32::MAX), None);
    }

    #[test]
    fn an_address_is_its_own_name_and_what_is_none_is_unknown() {
        let found = look_up(Some(c"127.0.0.1"), None).expect("it is one");
        let address = found[0].address.as_ref().expect("it has one");
        assert_eq!(address.bytes()[4..8], [127, 0, 0, 1]);
        let (host, _) = of_address(address, libc::NI_NUMERICHOST).expect("it has a text");
        assert_eq!(host.as_c_str(), c"127.0.0.1");
        let none = look_up(None, Some(c"no such service")).map(|all| all.len());
        assert!(matches!(none, Err(Unknown::Code(_))), "{none:?}");
    }
}
