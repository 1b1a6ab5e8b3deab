//! `trace_ip_drv`: what is sent to its port goes to who is connected to a TCP port, each piece behind a byte and a
//! number of four: 0 and its length, or 1 and how many pieces have been dropped, as the queue was full. Source:
//! `trace_ip_drv.c` of `runtime_tools`, OTP 29.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, RawFd};

use rustix::io::Errno;

use super::driver::Driver;
use super::open::Error;
use crate::sys::poll::Interest;

const OP_BINARY: u8 = 0;
const OP_DROP: u8 = 1;

/// Pieces are queued also while nobody is connected.
const FILL_ALWAYS: i32 = 2;

/// A piece with its head, and how much of it has been written.
struct Queued {
    bytes: Vec<u8>,
    written: usize,
}

impl Queued {
    fn new(op: u8, number: u32, data: &[u8]) -> Queued {
        let bytes = [&[op][..], &number.to_be_bytes(), data].concat();
        Queued { bytes, written: 0 }
    }
}

/// A port of the driver.
pub(super) struct TraceIp {
    listener: TcpListener,
    port: u16,
    client: Option<TcpStream>,
    queue: VecDeque<Queued>,
    /// Pieces that are queued before others are dropped.
    limit: usize,
    fill_always: bool,
}

impl TraceIp {
    /// Listens as a command says: port, length of the queue, flags.
    pub(super) fn open(arguments: &[u8]) -> Result<TraceIp, Error> {
        let text = std::str::from_utf8(arguments).map_err(|_| Error::Badarg)?;
        let numbers: Vec<i32> = text
            .split_whitespace()
            .map_while(|n| n.parse().ok())
            .collect();
        let &[port, limit, flags, ..] = &numbers[..] else {
            return Err(Error::Badarg);
        };
        let (Ok(port), Ok(limit), 0..=3) = (u16::try_from(port), usize::try_from(limit), flags)
        else {
            return Err(Error::Badarg);
        };
        let listen = || {
            let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port))?;
            listener.set_nonblocking(true)?;
            let port = listener.local_addr()?.port();
            Ok::<_, std::io::Error>((listener, port))
        };
        let (listener, port) = listen().map_err(|_| Error::Badarg)?;
        Ok(TraceIp {
            listener,
            port,
            client: None,
            queue: VecDeque::new(),
            limit,
            fill_always: flags & FILL_ALWAYS != 0,
        })
    }

    /// Queues a piece; when there are too many, counts it as dropped.
    fn enqueue(&mut self, piece: Queued) {
        if self.queue.len() < self.limit {
            self.queue.push_back(piece);
        } else if self.queue.len() == self.limit {
            self.queue.push_back(Queued::new(OP_DROP, 1, &[]));
        } else if let Some(dropped) = self.queue.back_mut() {
            let count = &mut dropped.bytes[1..5];
            let number = u32::from_be_bytes([count[0], count[1], count[2], count[3]]);
            count.copy_from_slice(&number.wrapping_add(1).to_be_bytes());
        }
    }

    /// Writes as much of the queue as the client takes.
    fn write_queue(&mut self) {
        while let (Some(client), Some(piece)) = (&mut self.client, self.queue.front_mut()) {
            match client.write(&piece.bytes[piece.written..]) {
                Ok(n) => piece.written += n,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => return,
                Err(_) => return self.close_client(),
            }
            if piece.written == piece.bytes.len() {
                self.queue.pop_front();
            }
        }
    }

    fn close_client(&mut self) {
        self.client = None;
        if !self.fill_always {
            self.queue.clear();
        } else if let Some(first) = self.queue.front_mut() {
            // The next client gets it whole.
            first.written = 0;
        }
    }

    /// Somebody connects: one at a time.
    fn accept(&mut self) {
        if let Ok((client, _)) = self.listener.accept()
            && self.client.is_none()
            && client.set_nonblocking(true).is_ok()
        {
            self.client = Some(client);
        }
    }

    /// The client has sent something, which nobody wants to know, or has gone.
    fn read(&mut self) {
        if let Some(client) = &mut self.client
            && client.read(&mut [0; 128]).is_ok_and(|n| n == 0)
        {
            self.close_client();
        }
    }
}

impl Driver for TraceIp {
    fn output(&mut self, data: &[u8]) -> Result<(), Errno> {
        if self.client.is_none() && !self.fill_always {
            return Ok(());
        }
        self.write_queue();
        if self.client.is_some() || self.fill_always {
            self.enqueue(Queued::new(OP_BINARY, data.len() as u32, data));
            self.write_queue();
        }
        Ok(())
    }

    fn control(&mut self, command: u32) -> Option<Result<Vec<u8>, Errno>> {
        let [high, low] = self.port.to_be_bytes();
        (command == u32::from(b'p')).then(|| Ok(vec![0, high, low]))
    }

    fn answers_binaries(&self) -> bool {
        true
    }

    fn watches(&self) -> Vec<(RawFd, Interest)> {
        let mut watches = vec![(self.listener.as_raw_fd(), Interest::Read)];
        if let Some(client) = &self.client {
            watches.push((client.as_raw_fd(), Interest::Read));
            if !self.queue.is_empty() {
                watches.push((client.as_raw_fd(), Interest::Write));
            }
        }
        watches
    }

    fn ready(&mut self, fd: RawFd, interest: Interest) {
        match interest {
            Interest::Read if fd == self.listener.as_raw_fd() => self.accept(),
            Interest::Read => self.read(),
            Interest::Write => self.write_queue(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(arguments: &str) -> TraceIp {
        match TraceIp::open(arguments.as_bytes()) {
            Ok(opened) => opened,
            Err(_) => panic!("it listens"),
        }
    }

    /// What a client gets until as many bytes have come.
    fn read(client: &mut TcpStream, bytes: usize) -> Vec<u8> {
        let mut got = vec![0; bytes];
        client.read_exact(&mut got).expect("as many bytes");
        got
    }

    fn connect(to: &mut TraceIp) -> TcpStream {
        let client = TcpStream::connect((Ipv4Addr::LOCALHOST, to.port)).expect("it listens");
        let listener = to.listener.as_raw_fd();
        while to.client.is_none() {
            to.ready(listener, Interest::Read);
        }
        client
    }

    #[test]
    fn commands() {
        for arguments in [
            "",
            " 0 10",
            " 0 10 4",
            " -1 10 0",
            " 0 -1 0",
            " 65536 1 0",
            " x 1 0",
        ] {
            assert!(TraceIp::open(arguments.as_bytes()).is_err(), "{arguments}");
        }
        let first = open(" 0 10 2");
        assert!(TraceIp::open(format!(" {} 10 2", first.port).as_bytes()).is_err());
    }

    #[test]
    fn what_is_queued_goes_to_the_client_with_what_was_dropped() {
        let mut ip = open(" 0 2 2");
        for piece in ["a", "bc", "d", "e", "f"] {
            ip.output(piece.as_bytes()).unwrap();
        }
        let mut client = connect(&mut ip);
        ip.write_queue();
        let expect = b"\0\0\0\0\x01a\0\0\0\0\x02bc\x01\0\0\0\x03";
        assert_eq!(read(&mut client, expect.len()), expect);
        ip.output(b"g").unwrap();
        assert_eq!(read(&mut client, 6), b"\0\0\0\0\x01g");
        assert_eq!(ip.watches().len(), 2);
        drop(client);
        let fd = ip.client.as_ref().unwrap().as_raw_fd();
        while ip.client.is_some() {
            ip.ready(fd, Interest::Read);
        }
    }

    #[test]
    fn without_the_flag_nothing_is_kept_for_later() {
        let mut ip = open(" 0 2 0");
        ip.output(b"a").unwrap();
        let mut client = connect(&mut ip);
        ip.output(b"b").unwrap();
        assert_eq!(read(&mut client, 6), b"\0\0\0\0\x01b");
        assert!(matches!(ip.control(b'p'.into()), Some(Ok(port)) if port.len() == 3));
    }
}
