use beamline_formats::profile::View;
use beamline_formats::ring::Group;

use super::*;
use crate::events::sample::{Sample, process};

fn request(from: &str, until: Option<&str>, nth: Option<Nth>) -> Request {
    Request {
        from: Choice::from(from),
        until: until.map(Choice::from),
        nth,
    }
}

fn sample() -> Sample {
    Sample::new(&[Group::Calls, Group::Returns, Group::Scheduling])
}

/// Two processes serve: one twice, once while it waits and once with a call of itself; the other is still at it.
fn served() -> Sample {
    let mut sample = sample();
    let [a, b] = [1, 2].map(process);
    sample.slice_begins(0, a);
    sample.call(10, a, "main");
    sample.call(20, a, "serve");
    sample.call(30, a, "ask");
    sample.slice_ends(40, a, 1);
    sample.slice_begins(45, b);
    sample.call(50, b, "serve");
    sample.slice_begins(90, a);
    sample.back(95, a);
    sample.back(100, a);
    sample.call(110, a, "serve");
    sample.call(112, a, "serve");
    sample.back(116, a);
    sample.back(120, a);
    sample.back(130, a);
    sample
}

fn read(sample: &Sample, request: &Request) -> Result<Occurrences, String> {
    Occurrences::read(&sample.open(), request)
}

fn rows(of: &Occurrences) -> Vec<(&str, u64, u64, u64)> {
    let rows = of.functions.iter();
    rows.map(|row| (row.function.as_str(), row.calls, row.run_ns, row.wait_ns))
        .collect()
}

#[test]
fn every_outermost_call_is_one() {
    let all = read(&served(), &request("m:serve", None, None)).expect("they are found");
    assert_eq!((all.times.count, all.unfinished), (2, 1));
    assert_eq!((all.times.min, all.times.max), (10, 80));
    let slowest = all.slowest.iter();
    let slowest = slowest.map(|of| (of.nth, of.start_ns, of.time_ns, of.run_ns, of.wait_ns));
    assert_eq!(
        slowest.collect::<Vec<_>>(),
        [(1, 20, 80, 30, 50), (3, 110, 10, 10, 0)]
    );
    // What was done adds up to how long it took.
    assert_eq!(
        rows(&all),
        [("m:ask/1", 1, 15, 50), ("m:serve/1", 3, 25, 0)]
    );
}

#[test]
fn one_is_chosen_by_its_number_or_for_its_time() {
    let sample = served();
    for (nth, expect) in [
        (Nth::Number(3), &[("m:serve/1", 2, 10, 0)][..]),
        (
            Nth::Slowest,
            &[("m:ask/1", 1, 15, 50), ("m:serve/1", 1, 15, 0)],
        ),
    ] {
        let one = read(&sample, &request("m:serve", None, Some(nth))).expect("it is found");
        assert_eq!(rows(&one), expect, "{nth:?}");
        assert_eq!(one.times.count, 2, "the others are still counted");
    }
    for (nth, expect) in [
        (4, "there is no occurrence 4: there are 3"),
        (2, "occurrence 2 had not ended when the recording did"),
    ] {
        let one = read(&sample, &request("m:serve", None, Some(Nth::Number(nth))));
        assert_eq!(one.expect_err("it is not there"), expect);
    }
}

#[test]
fn another_function_ends_it_in_the_same_process() {
    let mut sample = sample();
    let [a, b] = [1, 2].map(process);
    sample.slice_begins(0, a);
    sample.call(5, a, "late");
    sample.call(10, a, "early");
    sample.back(14, a);
    // This call of `late` was open before `early` was called.
    sample.back(16, a);
    sample.slice_begins(20, b);
    sample.call(20, b, "late");
    sample.back(25, b);
    sample.call(30, a, "early");
    sample.back(32, a);
    sample.call(35, a, "late");
    sample.back(40, a);
    let all = read(&sample, &request("m:early", Some("m:late"), None)).expect("it is found");
    assert_eq!((all.times.count, all.times.max), (1, 30));
    assert_eq!(
        rows(&all),
        [
            ("", 0, 17, 0),
            ("m:late/1", 1, 7, 0),
            ("m:early/1", 2, 6, 0)
        ]
    );
}

#[test]
fn what_is_not_there_is_said() {
    let mut sample = served();
    let c = process(3);
    sample.call(200, c, "last");
    for (from, until, expect) in [
        (
            "m:servee",
            None,
            "no called function matches 'm:servee'; similar: m:serve",
        ),
        ("m:last", None, "no call of m:last has ended"),
        (
            "m:serve",
            Some("m:nowhere"),
            "no called function matches 'm:nowhere', and nothing is similar",
        ),
        (
            "m:ask",
            Some("m:main"),
            "no call of m:main ended in a process after a call of m:ask: an occurrence begins and ends in one process",
        ),
    ] {
        let none = read(&sample, &request(from, until, None)).expect_err("nothing is found");
        assert!(none.starts_with(expect), "{none}");
    }
    let only = Sample::new(&[Group::Calls]);
    let lacks = read(&only, &request("m", None, None)).expect_err("it lacks returns");
    assert!(lacks.contains("record with --events"), "{lacks}");
}

#[test]
fn a_process_that_ends_leaves_what_it_began() {
    let mut sample = sample();
    let a = process(1);
    sample.call(10, a, "early");
    sample.write(20, a, Event::Exit { text: "killed" });
    sample.call(30, a, "early");
    sample.call(32, a, "late");
    sample.back(34, a);
    let all = read(&sample, &request("m:early", Some("m:late"), None)).expect("one ended");
    assert_eq!((all.times.count, all.unfinished), (1, 1));
}

#[test]
fn the_text_says_how_long_and_what() {
    let all = read(&served(), &request("m:serve", None, None)).expect("they are found");
    let view = View {
        top: Some(1),
        ..View::default()
    };
    let expect = "\
Nothing was lost.
The recording has no end: the emulator was killed, or is still running.
1 had not ended, and is left out.

Calls of m:serve
      COUNT        50 %        90 %        99 %         MAX
          2       10 ns       80 ns       80 ns       80 ns

The slowest
        NTH   BEGINS AT        TIME        RUNS       WAITS PROCESS
          1       20 ns       80 ns       30 ns       50 ns <0.1.0>
          3      110 ns       10 ns       10 ns        0 ns <0.1.0>

What was done in all of them
       TIME      OF ALL        RUNS       WAITS       CALLS FUNCTION
      65 ns      72.2 %       15 ns       50 ns           1 m:ask/1
      25 ns      27.7 %       25 ns        0 ns           3 (1 more; --top all shows them)
";
    assert_eq!(all.to_text(&view), expect);
}
