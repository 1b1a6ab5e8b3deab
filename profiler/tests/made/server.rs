//! A recording of a server and its clients.

use std::path::Path;

use beamline_formats::profile::Origin;
use beamline_formats::ring::{Event, Id, Name};

use super::made::Recorded;

/// A recording of a server that boot has started, and that six clients call in turns, `calls` times together.
pub(crate) fn record_server(path: &Path, calls: u64) {
    let mut to = Recorded::new(path, 1 << 20);
    let of = |to: &Recorded, module: &str, name: &str| {
        let (module, name) = (
            to.ring.name(Name::Atom(module)),
            to.ring.name(Name::Atom(name)),
        );
        let arity = 1;
        to.ring.name(Name::Function {
            module,
            name,
            arity,
        })
    };
    let boot = of(&to, "init", "boot");
    let [lib, serve] =
        [("proc_lib", "init_p"), ("server", "init")].map(|(module, name)| of(&to, module, name));
    for module in ["init", "proc_lib"] {
        let name = to.ring.name(Name::Atom(module));
        to.ring.name(Name::Module {
            name,
            origin: Origin::Otp,
        });
    }
    let server = Id::Process(20);
    for (id, function) in [(Id::Process(1), boot), (server, serve)] {
        let parent = Id::None;
        to.ring.name(Name::Process {
            id,
            parent,
            function,
        });
    }
    to.write(10, Id::Process(1), Event::In { function: boot });
    to.write(10, Id::Process(1), Event::Call { function: boot });
    to.write(5_000, Id::Process(1), Event::Return { function: boot });
    let out = Event::Out {
        function: boot,
        messages: 0,
        reductions: 100,
    };
    to.write(5_000, Id::Process(1), out);
    to.write(5_000, server, Event::In { function: lib });
    to.write(5_000, server, Event::Call { function: lib });
    to.write(5_100, server, Event::Call { function: serve });
    for call in 0..calls {
        let client = Id::Process(30 + call % 6);
        let at = 10_000 * (call + 1);
        let text = format!("{{'$gen_call',{{{client},[alias|#Ref<0.1.2.{call}>]}},get}}");
        to.write(
            at,
            client,
            Event::Send {
                to: server,
                text: &text,
            },
        );
        to.write(at + 1_000, server, Event::Receive { text: &text });
        let text = format!("{{[alias|#Ref<0.1.2.{call}>],{call}}}");
        to.write(
            at + 3_000,
            server,
            Event::Send {
                to: client,
                text: &text,
            },
        );
        to.write(at + 4_000, client, Event::Receive { text: &text });
    }
    to.ring.end();
}
