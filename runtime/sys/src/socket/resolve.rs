//! Names and addresses of hosts and services, as the C library finds them: in files, or by asking servers, which may take
//! long.

use std::ffi::{CStr, CString};

use super::Address;

/// Why nothing was found: `EAI_NONAME` and the like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotFound(pub i32);

/// What is asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hints {
    /// `AI_CANONNAME` and the like.
    pub flags: i32,
    /// `AF_INET` and the like; 0 for any.
    pub family: i32,
    /// `SOCK_STREAM` and the like; 0 for any.
    pub kind: i32,
    /// `IPPROTO_TCP` and the like; 0 for any.
    pub protocol: i32,
}

/// A place that was found.
#[derive(Clone, Debug)]
pub struct Place {
    /// `AF_INET` and the like.
    pub family: i32,
    /// `SOCK_STREAM` and the like.
    pub kind: i32,
    /// `IPPROTO_TCP` and the like.
    pub protocol: i32,
    /// Its address.
    pub address: Option<Address>,
    /// The host's true name, of the first place, where that was asked for.
    pub name: Option<Vec<u8>>,
}

fn text(text: Option<&[u8]>) -> Result<Option<CString>, NotFound> {
    let text = text.map(CString::new).transpose();
    text.map_err(|_| NotFound(libc::EAI_NONAME))
}

/// The places of a host and a service, in the order in which they are to be tried. May take seconds.
///
/// # Errors
/// [`NotFound`].
pub fn places(
    host: Option<&[u8]>,
    service: Option<&[u8]>,
    hints: Hints,
) -> Result<Vec<Place>, NotFound> {
    let (host, service) = (text(host)?, text(service)?);
    let pointer = |text: &Option<CString>| text.as_ref().map_or(std::ptr::null(), |t| t.as_ptr());
    // SAFETY: SK1: a structure of numbers and pointers, for which zero is none.
    let mut wanted: libc::addrinfo = unsafe { std::mem::zeroed() };
    wanted.ai_flags = hints.flags;
    wanted.ai_family = hints.family;
    wanted.ai_socktype = hints.kind;
    wanted.ai_protocol = hints.protocol;
    let mut first = std::ptr::null_mut();
    // SAFETY: SK1: texts that end or none, and a pointer to write to.
    let error = unsafe {
        libc::getaddrinfo(
            pointer(&host),
            pointer(&service),
            &raw const wanted,
            &raw mut first,
        )
    };
    if error != 0 {
        return Err(NotFound(error));
    }
    let mut places = Vec::new();
    let mut next = first;
    // SAFETY: SK2: a list that the C library has built, until it is freed; its end is null.
    while let Some(row) = unsafe { next.as_ref() } {
        // SAFETY: SK2: as above; an address is as long as it says, and a name ends with a zero.
        places.push(unsafe { place(row) });
        next = row.ai_next;
    }
    // SAFETY: SK1: what `getaddrinfo` gave, of which nothing is kept.
    unsafe { libc::freeaddrinfo(first) };
    Ok(places)
}

/// # Safety
/// A row that `getaddrinfo` has filled.
unsafe fn place(row: &libc::addrinfo) -> Place {
    let address = (!row.ai_addr.is_null()).then(|| {
        // SAFETY: SK2: as long as it says.
        let bytes = unsafe {
            std::slice::from_raw_parts(row.ai_addr.cast::<u8>(), row.ai_addrlen as usize)
        };
        Address::of_bytes(bytes)
    });
    let name = (!row.ai_canonname.is_null()).then(|| {
        // SAFETY: SK2: a text that ends.
        unsafe { CStr::from_ptr(row.ai_canonname) }
            .to_bytes()
            .to_vec()
    });
    Place {
        family: row.ai_family,
        kind: row.ai_socktype,
        protocol: row.ai_protocol,
        address: address.flatten(),
        name,
    }
}

/// Bytes of the longest names. Source: `NI_MAXHOST`, `NI_MAXSERV`.
const HOST_BYTES: usize = 1025;
const SERVICE_BYTES: usize = 32;

/// The names of the host and the service of an address. `flags`: `NI_NAMEREQD` and the like. May take seconds.
///
/// # Errors
/// [`NotFound`].
pub fn names(address: &Address, flags: i32) -> Result<(Vec<u8>, Vec<u8>), NotFound> {
    let mut host = [0u8; HOST_BYTES];
    let mut service = [0u8; SERVICE_BYTES];
    let bytes = address.bytes();
    // SAFETY: SK1: an address and its length, and room as long as it says.
    let error = unsafe {
        libc::getnameinfo(
            bytes.as_ptr().cast(),
            bytes.len() as libc::socklen_t,
            host.as_mut_ptr().cast(),
            HOST_BYTES as libc::socklen_t,
            service.as_mut_ptr().cast(),
            SERVICE_BYTES as libc::socklen_t,
            flags,
        )
    };
    if error != 0 {
        return Err(NotFound(error));
    }
    let end = |bytes: &[u8]| bytes.iter().position(|byte| *byte == 0).unwrap_or(0);
    Ok((
        host[..end(&host)].to_vec(),
        service[..end(&service)].to_vec(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_without_asking_anybody() {
        let hints = Hints {
            flags: libc::AI_NUMERICHOST | libc::AI_NUMERICSERV,
            kind: libc::SOCK_STREAM,
            ..Hints::default()
        };
        let places = places(Some(b"127.0.0.1"), Some(b"80"), hints).expect("it is a number");
        let [place] = &places[..] else {
            panic!("{places:?}");
        };
        assert_eq!(
            (place.family, place.kind),
            (libc::AF_INET, libc::SOCK_STREAM)
        );
        let address = place.address.as_ref().expect("it has one");
        let flags = libc::NI_NUMERICHOST | libc::NI_NUMERICSERV;
        let names = names(address, flags).expect("they are numbers");
        assert_eq!(names, (b"127.0.0.1".to_vec(), b"80".to_vec()));
    }

    #[test]
    fn what_is_no_number_is_not_found_among_numbers() {
        let hints = Hints {
            flags: libc::AI_NUMERICHOST,
            ..Hints::default()
        };
        for host in [&b"no.such.number"[..], b"a\0b"] {
            let found = places(Some(host), None, hints).map(|places| places.len());
            assert_eq!(found, Err(NotFound(libc::EAI_NONAME)));
        }
    }
}
