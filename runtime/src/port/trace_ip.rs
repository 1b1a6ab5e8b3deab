//! The driver `trace_ip_drv`, which sends what its port is sent to the client of a TCP port. Each piece follows a byte
//! and a number of four bytes: 0 and its length, or 1 and how many pieces have been dropped, as the queue was full.
//! Source: `trace_ip_drv.c` of `runtime_tools`, OTP 29.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, RawFd};

use super::driver::{Context, Driver, End};
use super::open::Error;
use crate::sys::chance::poll::Interest;

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

    /// Writes as much of the queue as the client takes, and waits for room for the rest.
    fn write_queue(&mut self, port: &mut Context<'_>) {
        while let (Some(client), Some(piece)) = (&mut self.client, self.queue.front_mut()) {
            match client.write(&piece.bytes[piece.written..]) {
                Ok(n) => piece.written += n,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => {
                    return port.watch(client.as_raw_fd(), Interest::Write);
                }
                Err(_) => return self.close_client(port),
            }
            if piece.written == piece.bytes.len() {
                self.queue.pop_front();
            }
        }
    }

    fn close_client(&mut self, port: &mut Context<'_>) {
        if let Some(client) = self.client.take() {
            port.unwatch(client.as_raw_fd());
        }
        if !self.fill_always {
            self.queue.clear();
        } else if let Some(first) = self.queue.front_mut() {
            // The next client gets it whole.
            first.written = 0;
        }
    }

    /// Somebody connects: one at a time.
    fn accept(&mut self, port: &mut Context<'_>) {
        if let Ok((client, _)) = self.listener.accept()
            && self.client.is_none()
            && client.set_nonblocking(true).is_ok()
        {
            port.watch(client.as_raw_fd(), Interest::Read);
            self.client = Some(client);
            self.write_queue(port);
        }
        self.start(port);
    }

    /// The client has sent something, which nobody wants to know, or has gone.
    fn read(&mut self, port: &mut Context<'_>) {
        let Some(client) = &mut self.client else {
            return;
        };
        if client.read(&mut [0; 128]).is_ok_and(|n| n == 0) {
            self.close_client(port);
        } else {
            port.watch(client.as_raw_fd(), Interest::Read);
        }
    }
}

impl Driver for TraceIp {
    fn start(&mut self, port: &mut Context<'_>) {
        port.watch(self.listener.as_raw_fd(), Interest::Read);
    }

    fn output(&mut self, port: &mut Context<'_>, data: Vec<u8>) -> Result<(), End> {
        if self.client.is_none() && !self.fill_always {
            return Ok(());
        }
        self.write_queue(port);
        if self.client.is_some() || self.fill_always {
            self.enqueue(Queued::new(OP_BINARY, data.len() as u32, &data));
            self.write_queue(port);
        }
        Ok(())
    }

    fn control(
        &mut self,
        _port: &mut Context<'_>,
        command: u32,
        _data: &[u8],
    ) -> Option<Result<Vec<u8>, End>> {
        let [high, low] = self.port.to_be_bytes();
        (command == u32::from(b'p')).then(|| Ok(vec![0, high, low]))
    }

    fn answers_binaries(&self) -> bool {
        true
    }

    fn ready(&mut self, port: &mut Context<'_>, fd: RawFd, interest: Interest) -> Result<(), End> {
        match interest {
            Interest::Read if fd == self.listener.as_raw_fd() => self.accept(port),
            Interest::Read => self.read(port),
            Interest::Write => self.write_queue(port),
            Interest::Error => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::driver::Alone;
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

    fn connect(to: &mut TraceIp, port: &Alone) -> TcpStream {
        let client = TcpStream::connect((Ipv4Addr::LOCALHOST, to.port)).expect("it listens");
        while to.client.is_none() {
            port.with(|port| to.accept(port));
        }
        client
    }

    fn put(to: &mut TraceIp, port: &Alone, piece: &str) {
        let data = piece.as_bytes().to_vec();
        assert_eq!(port.with(|port| to.output(port, data)), Ok(()));
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
        let (mut ip, port) = (open(" 0 2 2"), Alone::new());
        for piece in ["a", "bc", "d", "e", "f"] {
            put(&mut ip, &port, piece);
        }
        let mut client = connect(&mut ip, &port);
        let expect = b"\0\0\0\0\x01a\0\0\0\0\x02bc\x01\0\0\0\x03";
        assert_eq!(read(&mut client, expect.len()), expect);
        put(&mut ip, &port, "g");
        assert_eq!(read(&mut client, 6), b"\0\0\0\0\x01g");
        let fd = ip.client.as_ref().expect("it is there").as_raw_fd();
        let listens = (ip.listener.as_raw_fd(), Interest::Read);
        assert_eq!(port.watches(), [(fd, Interest::Read), listens]);
        drop(client);
        while ip.client.is_some() {
            port.with(|port| ip.read(port));
        }
        assert_eq!(port.watches(), [listens]);
    }

    #[test]
    fn a_client_that_takes_no_more_is_waited_for() {
        let (mut ip, port) = (open(" 0 2 0"), Alone::new());
        let mut client = connect(&mut ip, &port);
        let fd = ip.client.as_ref().expect("it is there").as_raw_fd();
        let piece = "x".repeat(1 << 20);
        let mut pieces = 0;
        while !port.watches().contains(&(fd, Interest::Write)) {
            put(&mut ip, &port, &piece);
            pieces += 1;
            assert!(pieces < 1000, "a socket is not endless");
        }
        let reader = std::thread::spawn(move || read(&mut client, pieces * (5 + (1 << 20))));
        while !ip.queue.is_empty() {
            port.with(|port| ip.write_queue(port));
        }
        assert!(reader.join().expect("it reads").ends_with(piece.as_bytes()));
    }

    #[test]
    fn without_the_flag_nothing_is_kept_for_later() {
        let (mut ip, port) = (open(" 0 2 0"), Alone::new());
        put(&mut ip, &port, "a");
        let mut client = connect(&mut ip, &port);
        put(&mut ip, &port, "b");
        assert_eq!(read(&mut client, 6), b"\0\0\0\0\x01b");
        let answer = port.with(|port| ip.control(port, b'p'.into(), &[]));
        assert!(matches!(answer, Some(Ok(port)) if port.len() == 3));
    }
}
