//! A recording of the order of messages, in which two could have come the other way around.

use std::path::Path;

use beamline_formats::ring::{Event, Id, Label, Name};

use crate::made::{EVIL, Recorded};

/// A server takes a message of each of its two clients.
pub(crate) fn record_race(path: &Path) {
    let mut to = Recorded::new(path, 1 << 20);
    let [server, client] = ["server", "client"].map(|name| to.function(name));
    let id = |number: u32| Id::Process(number.into());
    for number in 9..12 {
        let function = if number == 9 { server } else { client };
        to.ring.name(Name::Process {
            id: id(number),
            parent: Id::None,
            function,
        });
    }
    for number in 10..12 {
        let child = id(number);
        to.write(u64::from(number), id(9), Event::OrderSpawn { child });
    }
    for (number, text) in [(10, "one"), (11, EVIL)] {
        let (at, from, into) = (100 * u64::from(number), id(number), id(9));
        let (function, line) = (client, 7);
        to.write(at, from, Event::OrderSite { function, line });
        to.write(at, from, Event::OrderSent { count: 1 });
        to.write(at, from, Event::Send { to: into, text });
        to.write(at + 50, into, Event::Receive { text });
    }
    for from in 10..12 {
        let (function, line, number) = (server, 3, 1);
        to.write(2000, id(9), Event::OrderSite { function, line });
        let label = Label { from, number };
        to.write(2000, id(9), Event::OrderTake { label });
    }
    to.ring.end();
}
