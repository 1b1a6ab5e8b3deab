use beamline_formats::profile::View;
use beamline_formats::ring::Group;

use super::*;
use crate::events::sample::{Sample, process};

fn sample() -> Sample {
    let groups = [&MEANWHILE_NEEDS[..], &[Group::Processes]].concat();
    Sample::new(&groups)
}

fn send(sample: &mut Sample, at_ns: u64, from: Id, to: Id, text: &str) {
    sample.write(at_ns, from, Event::Send { to, text });
}

/// A client asks a server, which asks a store and works meanwhile. Another process works all the time.
fn asked() -> Sample {
    let mut sample = sample();
    let [client, server, store, other] = [1, 2, 3, 4].map(process);
    for (id, name) in [(server, "server"), (store, "store")] {
        sample.start(id, "init", Some(name));
        sample.slice_begins(0, id);
        sample.call(0, id, "loop");
        sample.slice_ends(0, id, 0);
    }
    sample.slice_begins(5, other);
    sample.call(5, other, "busy");
    sample.slice_begins(10, client);
    sample.call(10, client, "ask");
    send(&mut sample, 15, client, server, "question");
    sample.slice_ends(20, client, 10);
    sample.write(22, server, Event::Receive { text: "question" });
    sample.slice_begins(30, server);
    sample.call(35, server, "find");
    send(&mut sample, 50, server, store, "key");
    sample.write(50, store, Event::Receive { text: "key" });
    sample.slice_ends(55, server, 10);
    sample.slice_begins(60, store);
    send(&mut sample, 80, store, server, "value");
    sample.slice_ends(85, store, 10);
    sample.write(90, server, Event::Receive { text: "value" });
    sample.slice_begins(90, server);
    send(&mut sample, 95, server, client, "answer");
    sample.write(97, client, Event::Receive { text: "answer" });
    sample.slice_begins(100, client);
    sample.back(110, client);
    sample.slice_ends(120, other, 10);
    sample
}

fn read(sample: &Sample, from: &str, to: &str) -> Result<CriticalPath, String> {
    let request = Request {
        from: Choice::from(from),
        to: Choice::from(to),
    };
    CriticalPath::read(&sample.open(), &request)
}

/// Begin, end, process, what it does, and the function it is in.
type Row<'a> = (u64, u64, &'a str, Doing, &'a str);

fn rows(of: &CriticalPath) -> Vec<Row<'_>> {
    let parts = of.parts.iter();
    let row = |part: &'_ Part| (part.start_ns, part.start_ns + part.time_ns, part.doing);
    parts
        .map(|part| {
            let (start, end, doing) = row(part);
            (
                start,
                end,
                part.process.as_str(),
                doing,
                part.function.as_str(),
            )
        })
        .collect()
}

#[test]
fn the_path_goes_through_those_that_were_waited_for() {
    let path = read(&asked(), "m:ask", "m:ask").expect("it is found");
    let [client, server, store] = [1, 2, 3].map(|number| process(number).to_string());
    assert_eq!(
        rows(&path),
        [
            (10, 15, client.as_str(), Doing::Runs, "m:ask/1"),
            (15, 22, &server, Doing::Message, "m:loop/1"),
            (22, 30, &server, Doing::IsReady, "m:loop/1"),
            (30, 50, &server, Doing::Runs, "m:find/1"),
            (50, 60, &store, Doing::IsReady, "m:loop/1"),
            (60, 80, &store, Doing::Runs, "m:loop/1"),
            (80, 90, &server, Doing::Message, "m:find/1"),
            (90, 95, &server, Doing::Runs, "m:find/1"),
            (95, 97, &client, Doing::Message, "m:ask/1"),
            (97, 100, &client, Doing::IsReady, "m:ask/1"),
            (100, 110, &client, Doing::Runs, "m:ask/1"),
        ]
    );
    assert_eq!((path.start_ns, path.time_ns), (10, 100));
    assert_eq!(path.not_from, None);
}

#[test]
fn both_tables_add_up_to_the_time() {
    let path = read(&asked(), "m:ask", "m:ask").expect("it is found");
    for rows in [&path.processes, &path.functions] {
        assert_eq!(rows.iter().map(Share::time_ns).sum::<u64>(), path.time_ns);
    }
    let functions = path.functions.iter();
    let functions = functions.map(|row| (row.of.as_str(), row.run_ns, row.wait_ns));
    assert_eq!(
        functions.collect::<Vec<_>>(),
        [
            ("m:loop/1", 5 + 20, 7 + 8 + 10),
            ("m:find/1", 15 + 5, 10),
            ("m:ask/1", 5 + 10, 2 + 3),
        ]
    );
}

#[test]
fn the_end_may_be_in_another_process_than_the_begin() {
    let path = read(&asked(), "m:ask", "m:find").expect_err("it does not end");
    assert_eq!(path, "the call of m:find after m:ask has not ended");
    let mut sample = asked();
    sample.back(125, process(2));
    let path = read(&sample, "m:ask", "m:find").expect("it is found");
    assert_eq!(rows(&path).last().map(|row| row.1), Some(125));
    assert_eq!(rows(&path).first().map(|row| row.0), Some(10));
}

#[test]
fn a_process_that_was_started_on_the_way_leads_to_who_started_it() {
    let mut sample = sample();
    let [a, b] = [1, 2].map(process);
    sample.slice_begins(0, a);
    sample.call(0, a, "main");
    let function = sample.function("work");
    sample.write(10, a, Event::Spawn { child: b, function });
    sample.write(
        10,
        b,
        Event::Spawned {
            parent: a,
            function,
        },
    );
    sample.slice_ends(12, a, 1);
    sample.slice_begins(20, b);
    sample.call(20, b, "work");
    sample.slice_ends(30, b, 1);
    sample.slice_begins(70, b);
    sample.back(80, b);
    let path = read(&sample, "m:main", "m:work").expect("it is found");
    let [a, b] = [a, b].map(|id| id.to_string());
    assert_eq!(
        rows(&path),
        [
            (0, 10, a.as_str(), Doing::Runs, "m:main/1"),
            (10, 20, &b, Doing::IsReady, ""),
            (20, 30, &b, Doing::Runs, "m:work/1"),
            // No known message ended it.
            (30, 70, &b, Doing::Waits, "m:work/1"),
            (70, 80, &b, Doing::Runs, "m:work/1"),
        ]
    );
}

#[test]
fn a_path_that_does_not_lead_to_the_first_call_says_so() {
    let path = read(&asked(), "m:busy", "m:ask").expect("it is found");
    let other = process(4).to_string();
    assert!(
        path.not_from
            .as_deref()
            .is_some_and(|who| who.starts_with(&other))
    );
    let text = path.to_text(&View::default());
    assert!(text.contains("It does not lead back to"), "{text}");
}

#[test]
fn a_process_without_a_begin_is_not_said_to_run_before_its_first_record() {
    let mut sample = sample();
    let [a, b] = [1, 2].map(process);
    sample.slice_begins(0, a);
    sample.call(0, a, "main");
    sample.slice_begins(40, b);
    sample.call(42, b, "boot");
    sample.back(50, b);
    let path = read(&sample, "m:main", "m:boot").expect("it is found");
    let b = b.to_string();
    assert_eq!(
        rows(&path),
        [
            (0, 40, b.as_str(), Doing::Unseen, ""),
            (40, 50, &b, Doing::Runs, "m:boot/1"),
        ]
    );
}

#[test]
fn what_was_not_called_is_named() {
    for (from, to, expect) in [
        ("m:nobody", "m:ask", "m:nobody"),
        ("m:ask", "m:nobody", "m:nobody"),
        ("m:find", "m:ask", "m:ask was not called after m:find"),
    ] {
        let error = read(&asked(), from, to).expect_err("there is none");
        assert!(error.contains(expect), "{error}");
    }
}

#[test]
fn two_that_wait_for_each_other_end() {
    let mut sample = sample();
    let [a, b] = [1, 2].map(process);
    for id in [a, b] {
        sample.slice_begins(0, id);
        sample.call(0, id, "main");
        sample.slice_ends(1, id, 1);
    }
    // A damaged recording may tell what cannot be.
    send(&mut sample, 10, a, b, "x");
    send(&mut sample, 10, b, a, "y");
    for (id, text) in [(a, "y"), (b, "x")] {
        sample.write(11, id, Event::Receive { text });
        sample.slice_begins(12, id);
        sample.back(20, id);
    }
    let path = read(&sample, "m:main", "m:main").expect("it is found");
    assert_eq!(path.parts.iter().map(|part| part.time_ns).sum::<u64>(), 20);
}
