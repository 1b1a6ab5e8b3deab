//! A recording of messages with tokens of sequential tracing.

use std::path::Path;

use beamline_formats::ring::{Event, Id, Name};

use crate::made::{EVIL, Recorded};

/// Requests that go from a client to a server, with labels of their own, and to one of three workers; their answers, some
/// of which nobody takes; what the server prints; and messages without a token between them.
pub(crate) fn record_tokens(path: &Path, requests: u64) {
    let mut to = Recorded::new(path, 1 << 20);
    let names = ["client", "server", "worker"].map(|name| to.function(name));
    let id = |number: u64| Id::Process(20 + number);
    for number in 0..5 {
        let (parent, function) = (Id::None, names[number.min(2) as usize]);
        to.ring.name(Name::Process {
            id: id(number),
            parent,
            function,
        });
    }
    let mut at = 1_000;
    for request in 0..requests {
        let text = format!("{{order,{}}}", request % 4);
        let label = to.ring.name(Name::Label(&text));
        let worker = 2 + request % 3;
        let way = [
            (0, 1, "buy"),
            (1, worker, "make"),
            (worker, 1, "made"),
            (1, 0, EVIL),
        ];
        for (serial, (from, into, text)) in (4 * request + 1..).zip(way) {
            let (from, into, last) = (id(from), id(into), 4 * request);
            to.write(at, from, Event::Send { to: into, text });
            let (told, taken) = (
                Event::SeqSend {
                    to: into,
                    label,
                    last,
                    serial,
                    text,
                },
                Event::SeqReceive {
                    from,
                    label,
                    last,
                    serial,
                    text,
                },
            );
            to.write(at + 10, from, told);
            to.write(at + 200, into, Event::Receive { text });
            if request % 5 != 4 || serial % 4 != 0 {
                to.write(at + 300, into, taken);
            }
            at += 1_000;
        }
        let printed = Event::SeqPrint {
            label,
            last: 4 * request + 4,
            serial: 4 * request + 5,
            text: "{done,ok}",
        };
        to.write(at, id(1), printed);
        let (into, text) = (id(1), "tick");
        to.write(at + 500, id(0), Event::Send { to: into, text });
        to.write(at + 600, id(1), Event::Receive { text });
        at += 1_000;
    }
    to.ring.end();
}
