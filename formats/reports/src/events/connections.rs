//! The sockets of a recording: what crossed them, how soon answers came, and which processes waited for them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use beamline_formats::ring::{Event, Id, Names, Record, Socket, SocketWait};
use serde::Serialize;

use super::spans::{SocketSpan, Span};

/// How often something was waited for, and how long that took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Times {
    /// How many there were.
    pub count: u64,
    /// How long they took altogether.
    pub total_ns: u64,
    /// The longest.
    pub longest_ns: u64,
    /// When that began, since the beginning of the recording.
    pub longest_at_ns: u64,
}

impl Times {
    fn add(&mut self, start_ns: u64, ns: u64) {
        if ns >= self.longest_ns {
            (self.longest_ns, self.longest_at_ns) = (ns, start_ns);
        }
        self.count += 1;
        self.total_ns = self.total_ns.saturating_add(ns);
    }

    fn merge(&mut self, other: &Times) {
        if other.longest_ns > self.longest_ns {
            (self.longest_ns, self.longest_at_ns) = (other.longest_ns, other.longest_at_ns);
        }
        self.count += other.count;
        self.total_ns = self.total_ns.saturating_add(other.total_ns);
    }

    /// How long one took on average.
    #[must_use]
    pub(crate) fn mean_ns(&self) -> u64 {
        self.total_ns / self.count.max(1)
    }
}

/// What a process waited for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Waited {
    /// Its pid.
    pub process: String,
    /// Its name, label or initial function.
    pub name: String,
    /// What for, as it follows *waited*.
    pub what: &'static str,
    /// How often.
    pub times: u64,
    /// For how long altogether.
    pub total_ns: u64,
    /// The longest of these waits.
    pub longest_ns: u64,
    /// When that began, since the beginning of the recording.
    pub longest_at_ns: u64,
}

/// A socket.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Connection {
    /// Its number in the recording.
    pub socket: String,
    /// What it is, and the address that tells it from others.
    pub text: String,
    /// Its kind.
    pub kind: &'static str,
    /// Its own address, where it has asked for one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub own: String,
    /// Its peer's address.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub peer: String,
    /// The socket that accepted it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub listener: String,
    /// Connections that it has accepted.
    pub accepted: u64,
    /// The process that opened or got it.
    pub owner: String,
    /// The name of that, its label or its initial function.
    pub owner_name: String,
    /// When it was opened, since the beginning of the recording, if that was seen.
    pub opened_ns: Option<u64>,
    /// When it was closed, if it was.
    pub closed_ns: Option<u64>,
    /// Its peer closed it first.
    pub is_closed_by_peer: bool,
    /// Why it could not be connected, or was lost; or empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub failure: String,
    /// Bytes that came.
    pub in_bytes: u64,
    /// In how many pieces, as programs got them.
    pub ins: u64,
    /// Bytes that were sent.
    pub out_bytes: u64,
    /// By how many sends.
    pub outs: u64,
    /// The answers. Where the program has connected the socket, they are the peer's: from the last bytes that were sent to the first
    /// that came then. Where it has accepted it, they are the program's: from the last bytes that came to the first that were sent
    /// then.
    pub answers: Times,
    /// How long processes waited for it altogether.
    pub waited_ns: u64,
    /// Who waited for it, the longest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<Waited>,
}

/// The other end of connections: an address that the program connected to, or all peers that connected to an address of
/// the program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Peer {
    /// Which it is.
    pub peer: String,
    /// How many connections there were.
    pub connections: u64,
    /// Those that could not be made, or were lost.
    pub failures: u64,
    /// Bytes that came from it.
    pub in_bytes: u64,
    /// Bytes that were sent to it.
    pub out_bytes: u64,
    /// The answers.
    pub answers: Times,
    /// How long processes waited for it altogether.
    pub waited_ns: u64,
}

/// What has been seen of a socket.
#[derive(Default)]
struct Seen {
    owner: Id,
    accepted: u64,
    opened_ns: Option<u64>,
    closed_ns: Option<u64>,
    is_closed_by_peer: bool,
    failure: String,
    in_bytes: u64,
    ins: u64,
    out_bytes: u64,
    outs: u64,
    is_accepted: bool,
    /// When the last bytes went the way that is answered, if no answer has come.
    asked_ns: Option<u64>,
    answers: Times,
    waits: BTreeMap<(Id, SocketWait), Times>,
}

impl Seen {
    /// Bytes go over it: those that ask, or those that answer.
    fn crossed(&mut self, now: u64, asks: bool) {
        if asks {
            self.asked_ns = Some(now);
        } else if let Some(asked) = self.asked_ns.take() {
            self.answers.add(asked, now.saturating_sub(asked));
        }
    }

    fn opened(&mut self, owner: Id, now: u64, is_accepted: bool) {
        (self.owner, self.opened_ns) = (owner, Some(now));
        self.is_accepted = is_accepted;
    }

    fn waited(&mut self, wait: &SocketSpan, until_ns: u64) {
        let waits = self.waits.entry((wait.who, wait.what)).or_default();
        waits.add(wait.start_ns, until_ns.saturating_sub(wait.start_ns));
    }
}

/// Follows the sockets of a recording.
#[derive(Default)]
pub(crate) struct Connections {
    sockets: HashMap<Id, Seen>,
}

impl Connections {
    pub(crate) fn add(&mut self, record: &Record<'_>, span: &Span) {
        if let Span::SocketWaitEnds(wait) = span {
            self.seen(wait.socket).waited(wait, record.time_ns);
        }
        let (who, now) = (record.subject, record.time_ns);
        match record.event {
            Event::NetOpen { socket } => self.seen(socket).opened(who, now, false),
            Event::NetAccept { socket, listener } => {
                self.seen(socket).opened(who, now, true);
                self.seen(listener).accepted += 1;
            }
            Event::NetReady {
                socket,
                what,
                outcome,
            } if SocketWait::of(what) == Some(SocketWait::Connection) && !outcome.is_empty() => {
                self.seen(socket).failure = outcome.to_owned();
            }
            Event::NetIn { socket, bytes } => {
                let seen = self.seen(socket);
                (seen.in_bytes, seen.ins) = (seen.in_bytes.saturating_add(bytes), seen.ins + 1);
                seen.crossed(now, seen.is_accepted);
            }
            Event::NetOut { socket, bytes } => {
                let seen = self.seen(socket);
                (seen.out_bytes, seen.outs) = (seen.out_bytes.saturating_add(bytes), seen.outs + 1);
                seen.crossed(now, !seen.is_accepted);
            }
            Event::NetClose { socket, reason } => {
                let seen = self.seen(socket);
                seen.closed_ns.get_or_insert(now);
                match reason {
                    "closed" => seen.is_closed_by_peer = true,
                    "" => {}
                    reason => seen.failure = reason.to_owned(),
                }
            }
            _ => {}
        }
    }

    fn seen(&mut self, socket: Id) -> &mut Seen {
        self.sockets.entry(socket).or_default()
    }

    /// All sockets, those first that were waited for longest; then those over which most bytes went. `open`: waits that last until
    /// the end.
    pub(crate) fn finish(
        &self,
        names: &Names,
        open: &[SocketSpan],
        end_ns: u64,
    ) -> Vec<Connection> {
        let mut still: HashMap<Id, Vec<&SocketSpan>> = HashMap::new();
        for wait in open {
            still.entry(wait.socket).or_default().push(wait);
        }
        let all = self.sockets.iter().map(|(id, seen)| {
            let still = still.get(id).map_or(&[][..], |all| all);
            (*id, connection(names, *id, seen, still, end_ns))
        });
        let mut all: Vec<(Id, Connection)> = all.collect();
        all.sort_by_key(|(id, of)| {
            let bytes = of.in_bytes.saturating_add(of.out_bytes);
            (Reverse(of.waited_ns), Reverse(bytes), *id)
        });
        all.into_iter().map(|(_, of)| of).collect()
    }
}

fn connection(
    names: &Names,
    id: Id,
    seen: &Seen,
    still: &[&SocketSpan],
    end_ns: u64,
) -> Connection {
    let unknown = Socket::default();
    let named = names.socket(id).unwrap_or(&unknown);
    let mut all = seen.waits.clone();
    for wait in still {
        let ns = end_ns.saturating_sub(wait.start_ns);
        let waits = all.entry((wait.who, wait.what)).or_default();
        waits.add(wait.start_ns, ns);
    }
    let waits = all.into_iter().map(|((who, what), waits)| Waited {
        process: who.to_string(),
        name: names.process_text(who),
        what: what.text(),
        times: waits.count,
        total_ns: waits.total_ns,
        longest_ns: waits.longest_ns,
        longest_at_ns: waits.longest_at_ns,
    });
    let mut waits: Vec<Waited> = waits.collect();
    waits.sort_by_key(|waited| Reverse(waited.total_ns));
    Connection {
        socket: id.to_string(),
        text: names.socket_text(id),
        kind: named.kind.map_or("socket", |kind| kind.name()),
        own: named.own.clone(),
        peer: named.peer.clone(),
        listener: match named.listener {
            Id::None => String::new(),
            listener => names.socket_text(listener),
        },
        accepted: seen.accepted,
        owner: seen.owner.to_string(),
        owner_name: names.process_text(seen.owner),
        opened_ns: seen.opened_ns,
        closed_ns: seen.closed_ns,
        is_closed_by_peer: seen.is_closed_by_peer,
        failure: seen.failure.clone(),
        in_bytes: seen.in_bytes,
        ins: seen.ins,
        out_bytes: seen.out_bytes,
        outs: seen.outs,
        answers: seen.answers,
        waited_ns: waits.iter().map(|waited| waited.total_ns).sum(),
        waits,
    }
}

/// The connections by their other ends, those first that were waited for longest.
pub(crate) fn peers(connections: &[Connection]) -> Vec<Peer> {
    let mut all: BTreeMap<String, Peer> = BTreeMap::new();
    for of in connections {
        let name = match (of.listener.as_str(), of.peer.as_str()) {
            // One that listens, or has sent to nobody that is known.
            ("", "") => continue,
            ("", _) => of.text.clone(),
            (listener, _) => format!("clients of {listener}"),
        };
        let peer = all.entry(name).or_default();
        peer.connections += 1;
        peer.failures += u64::from(!of.failure.is_empty());
        peer.in_bytes = peer.in_bytes.saturating_add(of.in_bytes);
        peer.out_bytes = peer.out_bytes.saturating_add(of.out_bytes);
        peer.answers.merge(&of.answers);
        peer.waited_ns = peer.waited_ns.saturating_add(of.waited_ns);
    }
    let named = all.into_iter().map(|(name, of)| Peer { peer: name, ..of });
    let mut all: Vec<Peer> = named.collect();
    all.sort_by_key(|peer| Reverse(peer.waited_ns.max(peer.answers.total_ns)));
    all
}

#[cfg(test)]
mod tests {
    use beamline_formats::ring::{Group, Name, SocketEnd, SocketKind};

    use crate::events::Summary;
    use crate::events::sample::{Sample, process};

    use super::*;

    const CLIENT: Id = Id::Socket(1);
    const LISTENER: Id = Id::Socket(2);
    const SERVED: Id = Id::Socket(3);

    /// A client that asks twice, and a server.
    fn sample() -> Sample {
        let mut sample = Sample::new(&[Group::Net]);
        let (kind, port) = (SocketKind::Tcp, Id::None);
        for (id, listener) in [(CLIENT, Id::None), (LISTENER, Id::None), (SERVED, LISTENER)] {
            sample.name(Name::Socket {
                id,
                kind,
                port,
                listener,
            });
        }
        for (id, end, text) in [
            (CLIENT, SocketEnd::Peer, "a:1"),
            (LISTENER, SocketEnd::Own, "b:2"),
            (SERVED, SocketEnd::Peer, "c:3"),
        ] {
            sample.name(Name::Address { id, end, text });
        }
        let [one, two] = [process(1), process(2)];
        let (socket, what) = (CLIENT, SocketWait::Data.number());
        let ready = |outcome| Event::NetReady {
            socket,
            what,
            outcome,
        };
        sample.write(10, one, Event::NetOpen { socket });
        sample.write(20, one, Event::NetOut { socket, bytes: 5 });
        sample.write(30, one, Event::NetOut { socket, bytes: 6 });
        sample.write(40, one, Event::NetWait { socket, what });
        sample.write(50, one, Event::NetWait { socket, what });
        sample.write(70, one, ready(""));
        sample.write(71, one, Event::NetIn { socket, bytes: 7 });
        // Nothing was asked since.
        sample.write(90, one, Event::NetIn { socket, bytes: 8 });
        let socket = SERVED;
        let listener = LISTENER;
        sample.write(100, two, Event::NetAccept { socket, listener });
        sample.write(110, two, Event::NetOut { socket, bytes: 1 });
        sample.write(120, two, Event::NetIn { socket, bytes: 2 });
        sample.write(150, two, Event::NetOut { socket, bytes: 3 });
        let reason = "closed";
        sample.write(160, two, Event::NetClose { socket, reason });
        let socket = CLIENT;
        sample.write(170, one, Event::NetWait { socket, what });
        sample.write(200, one, ready("timeout"));
        sample.write(300, one, Event::NetWait { socket, what });
        sample.write(400, two, Event::NetOpen { socket: LISTENER });
        sample
    }

    #[test]
    fn sockets_have_their_bytes_answers_and_waits() {
        let (summary, _) = Summary::of(&sample().open(), 10).expect("readable");
        let [client, served, listener] = &summary.connections[..] else {
            panic!("{:?}", summary.connections);
        };
        assert_eq!(client.text, "tcp to a:1");
        assert_eq!((client.ins, client.in_bytes), (2, 15));
        assert_eq!((client.outs, client.out_bytes), (2, 11));
        let answers = Times {
            count: 1,
            total_ns: 41,
            longest_ns: 41,
            longest_at_ns: 30,
        };
        assert_eq!(client.answers, answers);
        let [waited] = &client.waits[..] else {
            panic!("{:?}", client.waits);
        };
        // The second wait of one that waits already is the same one, and the last has no end.
        assert_eq!((waited.times, waited.total_ns), (3, 30 + 30 + 100));
        assert_eq!((waited.longest_ns, waited.longest_at_ns), (100, 300));
        assert_eq!(client.closed_ns, None);

        assert_eq!(served.text, "tcp from c:3");
        assert_eq!(served.listener, "tcp at b:2");
        assert_eq!((served.answers.count, served.answers.total_ns), (1, 30));
        assert!(served.is_closed_by_peer && served.failure.is_empty());
        assert_eq!((served.opened_ns, served.closed_ns), (Some(100), Some(160)));
        assert_eq!((listener.accepted, listener.in_bytes), (1, 0));
    }

    #[test]
    fn peers_are_places_that_were_connected_to_and_clients_of_listeners() {
        let (summary, _) = Summary::of(&sample().open(), 10).expect("readable");
        let peers = summary.peers.iter();
        let peers: Vec<_> = peers
            .map(|of| (of.peer.as_str(), of.connections, of.in_bytes, of.failures))
            .collect();
        let expect = [("tcp to a:1", 1, 15, 0), ("clients of tcp at b:2", 1, 2, 0)];
        assert_eq!(peers, expect);
    }
}
