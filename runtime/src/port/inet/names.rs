//! Looks up hosts, as OTP's program `inet_gethost` does, whose place this driver takes: no program is started. Source:
//! `inet_gethost.c`, `inet_gethost_native.erl`, OTP 29.
//!
//! A request is a number, what is asked for, a protocol, and a name that ends with a zero or an address. Its answer has
//! the number, the addresses and the names. Threads ask the C library, a few at a time.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::request::take_u32;
use crate::port::Port;
use crate::port::driver::{Context, Driver, End};
use crate::sys::chance::{clock, outside};
use crate::sys::socket::Address;
use crate::sys::socket::resolve::{self, Hints, NotFound};
use crate::term::{Pid, am};

/// The program whose place this driver takes.
pub(in crate::port) const PROGRAM: &[u8] = b"inet_gethost";

/// Threads that look up at once. Source: `DEFAULT_POOLSIZE`.
const THREADS: usize = 4;

/// What is asked for. Source: `OP_GETHOSTBYNAME` and those behind it.
mod operation {
    pub(super) const BY_NAME: u8 = 1;
    pub(super) const BY_ADDRESS: u8 = 2;
    pub(super) const CANCEL: u8 = 3;
}

/// Families, by what they are called in a request. Source: `PROTO_IPV4`, `PROTO_IPV6`.
const FAMILIES: [(u8, i32); 2] = [(1, libc::AF_INET), (2, libc::AF_INET6)];

/// A look-up that is to be made.
#[derive(Debug)]
struct Request {
    number: u32,
    family: i32,
    what: What,
}

#[derive(Debug)]
enum What {
    Name(Vec<u8>),
    Address(Address),
}

/// Look-ups that wait, and the threads at work.
#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Request>,
    threads: usize,
}

/// A port of the driver.
#[derive(Default)]
pub(in crate::port) struct Names(Arc<Mutex<Queue>>);

/// A request, if it is one that is answered.
fn decode(data: &[u8]) -> Option<Request> {
    let (number, rest) = take_u32(data).ok()?;
    let (&[operation, protocol], rest) = rest.split_first_chunk()?;
    let row = FAMILIES.iter().find(|row| row.0 == protocol)?;
    let what = match operation {
        operation::BY_NAME => What::Name(rest.strip_suffix(&[0]).unwrap_or(rest).to_vec()),
        operation::BY_ADDRESS => What::Address(address(row.1, rest)?),
        _ => return None,
    };
    Some(Request {
        number,
        family: row.1,
        what,
    })
}

/// An address of a host, without a port.
fn address(family: i32, ip: &[u8]) -> Option<Address> {
    let head = (family as u16).to_ne_bytes();
    match (family, ip.len()) {
        (libc::AF_INET, 4) => Address::of_bytes(&[&head[..], &[0; 2], ip, &[0; 8]].concat()),
        (libc::AF_INET6, 16) => Address::of_bytes(&[&head[..], &[0; 6], ip, &[0; 4]].concat()),
        _ => None,
    }
}

/// The number of the host in an address.
fn ip(address: &Address) -> &[u8] {
    match address.family() {
        libc::AF_INET => &address.bytes()[4..8],
        _ => &address.bytes()[8..24],
    }
}

/// The error of a look-up that finds nothing. Source: `map_netdb_error_ai()`, `errcode_to_string()`.
fn error_name(NotFound(error): NotFound) -> &'static str {
    match error {
        libc::EAI_AGAIN => "try_again",
        libc::EAI_FAIL | libc::EAI_NODATA | libc::EAI_NONAME => "notfound",
        _ => "netdb_internal",
    }
}

/// Makes the look-up: addresses, and names.
fn find(request: &Request) -> Result<(Vec<Address>, Vec<Vec<u8>>), NotFound> {
    match &request.what {
        What::Name(name) => {
            let hints = Hints {
                flags: libc::AI_CANONNAME,
                family: request.family,
                kind: libc::SOCK_STREAM,
                protocol: 0,
            };
            let places = resolve::places(Some(name), None, hints)?;
            let names = places.iter().filter_map(|place| place.name.clone());
            let names = names.collect();
            let addresses = places.into_iter().filter_map(|place| place.address);
            Ok((addresses.collect(), names))
        }
        What::Address(address) => {
            let (name, _) = resolve::names(address, libc::NI_NAMEREQD)?;
            Ok((vec![address.clone()], vec![name]))
        }
    }
}

/// The answer to a request.
fn answer(request: &Request) -> Vec<u8> {
    let number = request.number.to_be_bytes();
    let (addresses, names) = match find(request) {
        Ok(found) => found,
        Err(error) => return [&number[..], &[0], error_name(error).as_bytes(), &[0]].concat(),
    };
    let unit = if request.family == libc::AF_INET {
        4
    } else {
        16
    };
    let mut answer = [&number[..], &[unit]].concat();
    answer.extend((addresses.len() as u32).to_be_bytes());
    for address in &addresses {
        answer.extend(ip(address));
    }
    answer.extend((names.len() as u32).to_be_bytes());
    for name in names {
        answer.extend(name);
        answer.push(0);
    }
    answer
}

fn tell(port: &Port, owner: Pid, answer: &[u8]) {
    port.tell(owner, |heap| {
        let data = heap.tuple(&[am::data.term(), heap.binary(answer)]);
        heap.tuple(&[port.id.term(), data])
    });
}

/// Answers requests until none waits.
fn work(queue: &Mutex<Queue>, port: &Weak<Port>) {
    loop {
        let next = {
            let mut queue = queue.lock();
            let next = queue.waiting.pop_front();
            queue.threads -= usize::from(next.is_none());
            next
        };
        let Some(request) = next else {
            return;
        };
        let answer = answer(&request);
        if let Some(port) = port.upgrade() {
            tell(&port, port.owner(), &answer);
        }
        outside::program_ended();
    }
}

impl Driver for Names {
    fn is_socket(&self) -> bool {
        true
    }

    fn output(&mut self, port: &mut Context<'_>, data: Vec<u8>) -> Result<(), End> {
        if let Some(&[operation::CANCEL, ..]) = data.get(4..) {
            let (number, _) = take_u32(&data)?;
            let mut queue = self.0.lock();
            let before = queue.waiting.len();
            queue.waiting.retain(|request| request.number != number);
            (queue.waiting.len()..before).for_each(|_| outside::program_ended());
            return Ok(());
        }
        let Some(request) = decode(&data) else {
            // It sets the level of debugging output, of which there is none here.
            return Ok(());
        };
        outside::take(|| "the name of a host".to_owned());
        if clock::stands_still() {
            // Time must not go on while a thread looks: the answer would come at another time in each run.
            let answer = answer(&request);
            tell(port.port, port.state.owner, &answer);
            return Ok(());
        }
        outside::program_started();
        let mut queue = self.0.lock();
        queue.waiting.push_back(request);
        if queue.threads < THREADS {
            let (shared, port) = (Arc::clone(&self.0), Arc::downgrade(port.port));
            let thread = std::thread::Builder::new().name("names".into());
            let started = thread.spawn(move || work(&shared, &port));
            if started.is_ok() {
                queue.threads += 1;
            } else if queue.threads == 0 {
                queue.waiting.pop_back();
                outside::program_ended();
                return Err(End::Error(rustix::io::Errno::AGAIN));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(operation: u8, protocol: u8, data: &[u8]) -> Vec<u8> {
        [&[0, 0, 0, 7, operation, protocol], data].concat()
    }

    #[test]
    fn numbers_are_answered_as_the_program_does() {
        let asked = decode(&request(1, 1, b"127.0.0.1\0")).expect("it is one");
        let told = answer(&asked);
        let head = [0, 0, 0, 7, 4, 0, 0, 0, 1, 127, 0, 0, 1, 0, 0, 0, 1];
        assert_eq!(told, [&head[..], b"127.0.0.1\0"].concat());
        let asked = decode(&request(1, 2, b"::1\0")).expect("it is one");
        let told = answer(&asked);
        assert_eq!(told[..9], [0, 0, 0, 7, 16, 0, 0, 0, 1]);
        assert_eq!(told[9..25], std::net::Ipv6Addr::LOCALHOST.octets());
    }

    #[test]
    fn what_is_not_found_is_told() {
        let asked = decode(&request(1, 1, b"a\0b\0")).expect("it is one");
        assert_eq!(answer(&asked), b"\0\0\0\x07\0notfound\0");
    }

    #[test]
    fn what_is_no_request_is_not_answered() {
        for data in [
            &b""[..],
            &request(4, 0, &[0, 0, 0, 1]),
            &request(1, 3, b"x\0"),
            &request(2, 1, &[1, 2, 3]),
        ] {
            assert!(decode(data).is_none(), "{data:?}");
        }
    }
}
