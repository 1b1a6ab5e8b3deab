//! Clusters of small recordings.

use beamline_formats::profile::View;
use beamline_formats::ring::{Event, Group, Id, Name, Recording};

use super::*;
use crate::events::sample::{Sample, process};
use crate::events::{InTransit, Passing, scan};
use crate::flamegraph::{Shape, Width, folded};

const NODES: [&str; 2] = ["a@h", "b@h"];

/// The recording of one of the nodes, whose connection to the other has this number, and whose creations are theirs.
fn node(own: usize, connections: &[u32]) -> Sample {
    let mut sample = Sample::new(&[Group::Dist]);
    let [name, other] = [NODES[own], NODES[1 - own]].map(|name| sample.atom(name));
    let creation = |of: usize| 4 + u32::try_from(of).expect("small");
    sample.name(Name::Node {
        name,
        creation: creation(own),
    });
    for number in connections {
        sample.name(Name::Connection {
            number: *number,
            node: other,
            creation: creation(1 - own),
        });
    }
    sample
}

/// What crosses: its operation, its bytes, and its text on this side.
type What<'t> = (u64, u64, &'t str);

fn left(connection: u64, number: u64, (operation, bytes, text): What<'_>) -> Event<'_> {
    Event::DistOut {
        connection,
        number,
        operation,
        bytes,
        text,
    }
}

fn came(connection: u64, number: u64, (operation, bytes, text): What<'_>) -> Event<'_> {
    Event::DistIn {
        connection,
        number,
        operation,
        bytes,
        text,
    }
}

const OWN: &str = "{'$gen_call',{<0.1.0>,[alias|#Ref<0.1.2.3>]},get} '' srv";
const REPLY: &str = "{[alias|#Ref<0.1.2.3>],ok} #Ref<0.1.2.3>";

fn open(samples: &[&Sample]) -> Cluster {
    let files: Vec<PathBuf> = samples.iter().map(|it| it.path.clone()).collect();
    Cluster::open(&files).expect("readable")
}

/// `a` calls `b`, whose clock shows 1000 less. The request is 30 on its way, the reply 50.
fn call() -> [Sample; 2] {
    let (mut a, mut b) = (node(0, &[2]), node(1, &[7]));
    let (client, server) = (process(1), process(2));
    a.write(2_000, client, left(2, 1, (6, 80, OWN)));
    b.write(1_030, server, came(7, 1, (6, 80, "'' srv ask")));
    b.write(1_100, server, left(7, 1, (33, 90, "an answer")));
    a.write(2_150, client, came(2, 1, (33, 90, REPLY)));
    // Never comes.
    a.write(2_200, client, left(2, 2, (22, 10, "bye")));
    [a, b]
}

#[test]
fn clocks_connections_and_calls_come_from_both_sides() {
    let [a, b] = call();
    let cluster = open(&[&a, &b]);
    let clock = cluster.clocks()[1];
    assert_eq!((clock.offset_ns, clock.error_ns), (1_010, Some(40)));
    assert_eq!(cluster.aligned_ns(1, 90), 1_100);
    let traffic = cluster.traffic();
    let [there, back] = &traffic[..] else {
        panic!("{traffic:?}");
    };
    assert_eq!(
        (there.from.as_str(), there.signals, there.came),
        ("a@h", 2, 1)
    );
    assert_eq!((there.messages, there.bytes), (2, 90));
    assert_eq!((there.mean_ns, there.error_ns), (Some(40), Some(40)));
    assert_eq!((back.signals, back.came, back.longest_ns), (1, 1, Some(40)));
    let calls = cluster.remote_calls();
    let [call] = &calls[..] else {
        panic!("{calls:?}");
    };
    assert_eq!(
        (call.asked, call.calls, call.total_ns),
        (Asked::Call, 1, 150)
    );
    // Whatever the clocks show.
    assert_eq!((call.there_ns, call.way_ns), (70, 80));
    let ends = [&call.caller, &call.callee].map(String::as_str);
    assert_eq!(ends, [process(1), process(2)].map(|id| id.to_string()));
}

#[test]
fn the_report_has_nodes_connections_and_calls() {
    let [a, b] = call();
    let (report, profiles) = Report::of(&open(&[&a, &b]), 5).expect("readable");
    assert_eq!(profiles.len(), 2);
    let text = report.shown(&View::default()).to_string();
    for part in [
        "    +1.01 µs       ±40 ns      1.10 µs            -            1  b@h, ",
        " a@h to b@h; 1 not seen there\n",
        " of a@h, call to ",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn connections_belong_together_whose_signals_are_the_same() {
    let (mut a, mut b) = (node(0, &[2, 3, 4]), node(1, &[7, 9]));
    // The first of `a` never stood at `b`, and the other two begin with the same signal.
    a.write(100, Id::None, left(2, 1, (6, 11, "")));
    a.write(200, Id::None, left(3, 1, (6, 12, "")));
    b.write(250, Id::None, came(7, 1, (6, 12, "")));
    a.write(900, Id::None, left(4, 1, (6, 12, "")));
    b.write(950, Id::None, came(9, 1, (6, 12, "")));
    let cluster = open(&[&a, &b]);
    let links: Vec<_> = cluster
        .links
        .iter()
        .map(|link| (link.a.1, link.b.1))
        .collect();
    assert_eq!(links, [(3, 7), (4, 9)]);
    // One direction alone says nothing for certain.
    assert_eq!(cluster.clocks()[1].by, By::TimeOfDay);
    let one_sided: Vec<bool> = cluster
        .traffic()
        .iter()
        .map(|row| row.is_one_sided)
        .collect();
    assert_eq!(one_sided, [true, false]);
}

#[test]
fn nodes_of_one_name_are_told_apart_by_their_files() {
    let (a, again) = (node(0, &[]), node(0, &[]));
    let cluster = open(&[&a, &again]);
    let names: Vec<&str> = cluster
        .members()
        .iter()
        .map(|it| it.name.as_str())
        .collect();
    assert_eq!(names, ["a@h (sample)", "a@h (sample)"]);
    let other = Sample::new(&[Group::Dist]);
    assert_eq!(open(&[&other]).members()[0].name, "sample");
    assert!(Recording::open(&other.path).is_ok_and(|it| it.names().node().is_none()));
}

#[test]
fn call_paths_are_below_their_nodes() {
    let [mut a, mut b] = [node(0, &[]), node(1, &[])];
    for (sample, took) in [(&mut a, 50), (&mut b, 70)] {
        sample.start(process(1), "main", None);
        sample.call(100, process(1), "main");
        sample.call(100, process(1), "fib");
        sample.back(100 + took, process(1));
        sample.back(100 + took, process(1));
    }
    let cluster = open(&[&a, &b]);
    let (report, profiles) = Report::of(&cluster, 5).expect("readable");
    let shown = report.functions.iter();
    let shown: Vec<_> = shown
        .map(|row| {
            (
                row.function.as_str(),
                row.calls,
                row.own_ns_by_node.as_slice(),
            )
        })
        .collect();
    assert_eq!(
        shown,
        [("m:fib/1", 2, &[50, 70][..]), ("m:main/1", 2, &[0, 0])]
    );
    let apart = cluster.apart(profiles).expect("they fit");
    let lines = folded(&apart, &Shape::new(Width::Time));
    let expect = ["(a@h);m:main/1;m:fib/1 50", "(b@h);m:main/1;m:fib/1 70"];
    assert_eq!(lines, expect);
}

#[test]
fn one_recording_of_all_has_every_record_with_the_ids_of_its_node() {
    let (mut a, mut b) = (node(0, &[2]), node(1, &[7]));
    let (client, server) = (process(1), process(2));
    for (sample, who, name) in [(&mut a, client, "ask"), (&mut b, server, "serve")] {
        sample.start(who, name, Some("same"));
    }
    let to = Id::None;
    a.write(
        2_000,
        client,
        Event::Send {
            to,
            text: "from <0.1.0>",
        },
    );
    a.write(2_010, client, left(2, 1, (6, 80, "from <0.1.0> '' same")));
    b.write(1_050, server, came(7, 1, (6, 80, "from <9.1.0> '' same")));
    b.write(
        1_060,
        server,
        Event::Receive {
            text: "from <9.1.0>",
        },
    );
    b.write(1_100, server, left(7, 1, (22, 9, "back")));
    a.write(2_150, client, came(2, 1, (22, 9, "back")));
    // More than there is room for at once.
    for at in 0..3_000 {
        b.call(2_000 + 2 * at, server, "serve");
        b.back(2_001 + 2 * at, server);
    }
    let joined = open(&[&a, &b]).joined().expect("readable");
    let mut passed = Vec::new();
    let mut calls = 0;
    let mut messages = InTransit::new(joined.names());
    let losses = scan(&joined, |record| {
        if let Some(Passing::Ends(sent)) = messages.add(record) {
            assert_eq!(
                record.event,
                Event::Receive {
                    text: "from <1.1.0>"
                }
            );
            passed.push((sent.from.to_string(), record.subject.to_string()));
        }
        calls += usize::from(matches!(record.event, Event::Call { .. }));
        Ok::<(), Error>(())
    });
    assert_eq!(losses.expect("readable").losses, []);
    assert_eq!(calls, 3_000);
    assert_eq!(passed, [("<1.1.0>".to_owned(), "<2.2.0>".to_owned())]);
    let names = joined.names();
    let server = server.of_node(2);
    assert_eq!(names.process_text(server), "same of b@h");
    let function = names.process(server).expect("it is known").function;
    assert_eq!(names.function_text(function), "m:serve/1");
    // It began 1005 ns later, as the messages say.
    assert_eq!(joined.end_ns(), Some(9_004));
}
