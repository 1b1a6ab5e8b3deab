//! Answers requests. A node's connection stays open for as long as it is registered; all others end with their answer.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;

use super::Settings;
use super::register::{Node, Register};

/// Requests.
const ALIVE2: u8 = b'x';
const PORT_PLEASE2: u8 = b'z';
pub(super) const NAMES: u8 = b'n';
const DUMP: u8 = b'd';
pub(super) const KILL: u8 = b'k';
pub(super) const STOP: u8 = b's';

/// Answers.
const PORT2: u8 = b'w';
const ALIVE2_ANSWER: u8 = b'y';
const ALIVE2_X_ANSWER: u8 = b'v';

/// The version of the distribution from which on creations have 32 bits.
const WIDE_CREATIONS: u16 = 6;

/// How long a request may take to come whole.
const PATIENCE: Duration = Duration::from_secs(60);

/// Connections at a time.
const CONNECTIONS_MAX: usize = 4096;

/// What all connections share.
struct Server {
    register: Mutex<Register>,
    connections: AtomicUsize,
    port: u16,
    is_relaxed: bool,
}

/// Listens, and answers until it is killed.
///
/// # Errors
/// One line: it cannot listen.
pub(super) fn serve(settings: &Settings) -> Result<(), String> {
    let listeners = listeners(settings)?;
    let server = Arc::new(Server {
        register: Mutex::new(Register::new()),
        connections: AtomicUsize::new(0),
        port: settings.port,
        is_relaxed: settings.is_relaxed,
    });
    let threads: Vec<_> = listeners
        .into_iter()
        .map(|listener| {
            let server = server.clone();
            thread::spawn(move || accept(&server, &listener))
        })
        .collect();
    for thread in threads {
        let _ = thread.join();
    }
    Ok(())
}

/// On the addresses that were asked for and the machine's own, or on all.
fn listeners(settings: &Settings) -> Result<Vec<TcpListener>, String> {
    let bind = |address: IpAddr| {
        let place = SocketAddr::from((address, settings.port));
        TcpListener::bind(place).map_err(|e| format!("{place}: {e}"))
    };
    if settings.addresses.is_empty() {
        // It takes connections by both versions, where the machine has the newer one.
        let both = bind(Ipv6Addr::UNSPECIFIED.into());
        return Ok(vec![both.or_else(|_| bind(Ipv4Addr::UNSPECIFIED.into()))?]);
    }
    let mut addresses = vec![IpAddr::from(Ipv4Addr::LOCALHOST)];
    addresses.extend(&settings.addresses);
    addresses.dedup();
    addresses.into_iter().map(bind).collect()
}

fn accept(server: &Arc<Server>, listener: &TcpListener) {
    for stream in listener.incoming() {
        let Ok(stream) = stream else {
            // Too many descriptors, most likely: others are given back meanwhile.
            thread::sleep(Duration::from_millis(50));
            continue;
        };
        if server.connections.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS_MAX {
            server.connections.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let server = server.clone();
        thread::spawn(move || {
            // A peer that breaks off needs no answer.
            let _ = server.answer(stream);
            server.connections.fetch_sub(1, Ordering::Relaxed);
        });
    }
}

impl Server {
    fn answer(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        let request = read_request(&mut stream)?;
        let Some((&kind, rest)) = request.split_first() else {
            return Ok(());
        };
        let is_near = stream
            .peer_addr()
            .is_ok_and(|peer| is_of_this_machine(peer.ip()));
        match kind {
            ALIVE2 if is_near => self.keep_alive(stream, rest),
            PORT_PLEASE2 => stream.write_all(&self.port_of(rest)),
            NAMES => {
                let line = |name: &str, port| format!("name {name} at port {port}\n");
                stream.write_all(&self.list(line))
            }
            DUMP if is_near => {
                let line = |name: &str, port| format!("active name     <{name}> at port {port}\n");
                stream.write_all(&self.list(line))
            }
            KILL if is_near => self.end(stream),
            STOP if is_near && self.is_relaxed => {
                let was_there = self.register.lock().remove(rest);
                let answer: &[u8] = if was_there { b"STOPPED" } else { b"NOEXIST" };
                stream.write_all(answer)
            }
            _ => Ok(()),
        }
    }

    /// Registers a node for as long as its connection lasts.
    fn keep_alive(&self, mut stream: TcpStream, request: &[u8]) -> io::Result<()> {
        let Some(node) = node_of(request) else {
            return Ok(());
        };
        let (name, is_wide) = (node.name.clone(), node.highest >= WIDE_CREATIONS);
        let creation = self.register.lock().add(node);
        let refused = u8::from(creation.is_none());
        let creation = creation.unwrap_or(99);
        let mut answer = Vec::new();
        if is_wide {
            answer.extend([ALIVE2_X_ANSWER, refused]);
            answer.extend(creation.to_be_bytes());
        } else {
            answer.extend([ALIVE2_ANSWER, refused]);
            answer.extend(((creation % 3 + 1) as u16).to_be_bytes());
        }
        let sent = stream.write_all(&answer);
        if refused == 1 {
            return sent;
        }
        // It sends no more; the read ends with the node.
        let _ = stream.set_read_timeout(None);
        let mut ignored = [0; 64];
        while sent.is_ok() && stream.read(&mut ignored).is_ok_and(|n| n > 0) {}
        self.register.lock().remove(&name);
        Ok(())
    }

    /// Where the node of this name listens, or that there is none.
    fn port_of(&self, name: &[u8]) -> Vec<u8> {
        let register = self.register.lock();
        let Some(node) = register.find(name) else {
            return vec![PORT2, 1];
        };
        let mut answer = vec![PORT2, 0];
        answer.extend(node.port.to_be_bytes());
        answer.extend([node.kind, node.protocol]);
        answer.extend(node.highest.to_be_bytes());
        answer.extend(node.lowest.to_be_bytes());
        for text in [&node.name, &node.extra] {
            answer.extend((text.len() as u16).to_be_bytes());
            answer.extend(text);
        }
        answer
    }

    /// The daemon's port, and a line for each node.
    fn list(&self, line: impl Fn(&str, u16) -> String) -> Vec<u8> {
        let mut answer = u32::from(self.port).to_be_bytes().to_vec();
        answer.extend(self.register.lock().lines(line).bytes());
        answer
    }

    /// Ends the daemon, unless nodes need it.
    fn end(&self, mut stream: TcpStream) -> io::Result<()> {
        if !self.is_relaxed && !self.register.lock().is_empty() {
            return stream.write_all(b"NO");
        }
        stream.write_all(b"OK")?;
        std::process::exit(0);
    }
}

fn is_of_this_machine(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

/// A length of two bytes, and as many bytes.
fn read_request(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut length = [0; 2];
    stream.read_exact(&mut length)?;
    let mut request = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut request)?;
    Ok(request)
}

/// A node that wants to be registered.
fn node_of(request: &[u8]) -> Option<Node> {
    let (port, rest) = take_u16(request)?;
    let (&[kind, protocol], rest) = rest.split_first_chunk()?;
    let (highest, rest) = take_u16(rest)?;
    let (lowest, rest) = take_u16(rest)?;
    let (name, rest) = take_text(rest)?;
    let (extra, _) = take_text(rest).unwrap_or_default();
    Some(Node {
        name,
        port,
        kind,
        protocol,
        highest,
        lowest,
        extra,
    })
}

fn take_u16(bytes: &[u8]) -> Option<(u16, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    Some((u16::from_be_bytes(*number), rest))
}

fn take_text(bytes: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let (length, rest) = take_u16(bytes)?;
    let (text, rest) = rest.split_at_checked(length.into())?;
    Some((text.to_vec(), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alive(name: &str, highest: u16) -> Vec<u8> {
        let mut request = vec![ALIVE2];
        request.extend(9000_u16.to_be_bytes());
        request.extend([77, 0]);
        request.extend(highest.to_be_bytes());
        request.extend(5_u16.to_be_bytes());
        request.extend((name.len() as u16).to_be_bytes());
        request.extend(name.bytes());
        request.extend([0, 0]);
        request
    }

    fn ask(at: SocketAddr, request: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(at).unwrap();
        let mut packet = (request.len() as u16).to_be_bytes().to_vec();
        packet.extend(request);
        stream.write_all(&packet).unwrap();
        stream
    }

    fn answer(at: SocketAddr, request: &[u8]) -> Vec<u8> {
        let mut all = Vec::new();
        ask(at, request).read_to_end(&mut all).unwrap();
        all
    }

    #[test]
    fn a_node_is_found_for_as_long_as_it_lives() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let at = listener.local_addr().unwrap();
        let server = Arc::new(Server {
            register: Mutex::new(Register::new()),
            connections: AtomicUsize::new(0),
            port: at.port(),
            is_relaxed: false,
        });
        thread::spawn(move || accept(&server, &listener));
        let mut node = ask(at, &alive("a", 6));
        let mut registered = [0; 6];
        node.read_exact(&mut registered).unwrap();
        assert_eq!(&registered[..2], [ALIVE2_X_ANSWER, 0]);
        // The name is taken; an older node gets that answer in the older form.
        assert_eq!(&answer(at, &alive("a", 5))[..2], [ALIVE2_ANSWER, 1]);
        let found = answer(at, &[PORT_PLEASE2, b'a']);
        assert_eq!(&found[..4], [PORT2, 0, 35, 40]);
        assert_eq!(answer(at, &[PORT_PLEASE2, b'b']), [PORT2, 1]);
        assert_eq!(&answer(at, &[NAMES])[4..], b"name a at port 9000\n");
        assert_eq!(answer(at, &[KILL]), b"NO");
        drop(node);
        while answer(at, &[PORT_PLEASE2, b'a']) != [PORT2, 1] {
            thread::yield_now();
        }
    }

    #[test]
    fn what_is_no_request_gets_no_answer() {
        for request in [&b"x"[..], b"", b"?", b"x\x01\x02\x03"] {
            assert!(node_of(request).is_none());
        }
    }
}
