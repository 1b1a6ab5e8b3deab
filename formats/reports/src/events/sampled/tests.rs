use beamline_formats::ring::{Frame, Name, NameId};

use super::*;
use crate::events::sample::{Sample, process, seen};

fn read(sample: &Sample) -> (Sampled, Profile) {
    let recording = sample.open();
    let sampling = recording.sampling().expect("it is of samples").clone();
    Sampled::of(&recording, &sampling).expect("readable")
}

#[test]
fn shares_have_error_bars() {
    for (samples, all, percent, plus_minus) in [
        (200, 4_000, 5.0, 0.7),
        (50, 100, 50.0, 9.6),
        (0, 100, 0.0, 1.8),
        (100, 100, 100.0, 1.8),
        (0, 0, 0.0, 19.0),
    ] {
        let share = Share::of(samples, all);
        assert!((share.percent - percent).abs() < 0.1, "{share:?}");
        let is_near = (share.plus_minus - plus_minus).abs();
        assert!(all == 0 || is_near < 0.1, "{share:?}");
    }
}

#[test]
fn samples_are_counted_and_calls_are_not() {
    let (sampled, profile) = read(&seen(30, 10));
    assert_eq!((sampled.samples, sampled.samples_lost), (40, 3));
    let rows = sampled.functions.iter();
    let rows = rows.map(|row| {
        (
            row.what.as_str(),
            row.samples,
            row.total.map(|of| of.samples),
        )
    });
    let expect = [("m:f/1", 30, Some(40)), ("m:g/1", 10, Some(10))];
    assert_eq!(rows.collect::<Vec<_>>(), expect);
    assert!(profile.nodes.iter().all(|node| node.cost.calls == 0));
    let time: u64 = profile.nodes.iter().map(|node| node.cost.time_ns).sum();
    assert_eq!(time, 40 * 5_000_000);
    let text = sampled.shown(&profile, &View::default()).to_string();
    for part in [
        "one (process 7), OTP",
        "at 200 Hz",
        "40 samples",
        "; 3 lost",
        "m:f/1",
        "scheduler 2",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("CALLS"), "{text}");
}

#[test]
fn what_stopping_cost_is_told() {
    let mut sample = seen(2, 0);
    let (sampled, _) = read(&sample);
    assert_eq!(sampled.stopped, None);
    for ns in [30_000, 50_000] {
        let event = Event::ThreadsStopped { looks: 1, ns };
        sample.write(9, Id::None, event);
    }
    let (sampled, profile) = read(&sample);
    let (looks, ns) = (2, 80_000);
    assert_eq!(sampled.stopped, Some(Stopped { looks, ns }));
    let text = sampled.shown(&profile, &View::default()).to_string();
    let expect = "threads were stopped 2 times, for 40.00 µs each at most.";
    assert!(text.contains(expect), "{text}");
}

#[test]
fn exports_have_samples_and_no_calls() {
    use crate::export::{Selection, Target, write};
    let recording = seen(3, 2).open();
    let export = |target| {
        let mut out = Vec::new();
        let done = write(&recording, target, &Selection::default(), &mut out);
        done.map(|()| String::from_utf8_lossy(&out).into_owned())
    };
    let folded = export(Target::Folded).expect("it has call paths");
    assert_eq!(folded, "m:f/1 15000000\nm:f/1;m:g/1 10000000\n");
    let lines = export(Target::Jsonl).expect("it has records");
    assert_eq!(lines.matches("\"m:f/1;m:g/1\"").count(), 2, "{lines}");
    let text = export(Target::Speedscope).expect("it has samples");
    let json: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    let profile = &json["profiles"][0];
    assert_eq!(profile["type"], "sampled");
    assert_eq!(profile["samples"].as_array().map(Vec::len), Some(5));
    assert_eq!(profile["endValue"], 25_000_000);
    let text = export(Target::Firefox).expect("it has samples");
    let json: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    let thread = &json["threads"][0];
    let stacks = serde_json::json!([0, 0, 0, 1, 1]);
    assert_eq!(thread["samples"]["stack"], stacks);
    assert_eq!(thread["samples"]["weight"][4], 5.0);
    assert_eq!(thread["stackTable"]["prefix"], serde_json::json!([null, 0]));
    assert_eq!(json["meta"]["interval"], 5.0);
    for target in [Target::Callgrind, Target::Hdr] {
        let error = export(target).expect_err("it needs calls").to_string();
        let begin = format!("{} cannot be made of samples", target.name());
        assert!(error.starts_with(&begin), "{error}");
    }
}

#[test]
fn what_samples_do_not_have_is_refused_in_a_line() {
    use beamline_formats::ring::Group;
    let recording = seen(1, 0).open();
    let needs = &[Group::Calls, Group::Returns];
    assert_eq!(recording.lacks_paths("a flame graph", needs), None);
    let words = &[Group::Calls, Group::Returns, Group::Words];
    let line = recording.lacks_paths("a flame graph of words", words);
    let line = line.expect("it has no words");
    assert!(line.starts_with("a flame graph of words cannot be made of samples, which have"));
    assert!(line.ends_with("--events calls,returns,words"), "{line}");
    let error = "samples".parse::<Group>().expect_err("not inside");
    assert!(error.contains("beamline sample"), "{error}");
}

#[test]
fn a_stack_that_leads_upwards_is_damage() {
    let mut sample = seen(1, 0);
    let function = sample.function("f");
    let below = NameId(1_000_000);
    let line = 0;
    sample.name(Name::Stack(Frame {
        below,
        function,
        line,
    }));
    assert!(Recording::open(&sample.path).is_err());
}

#[test]
fn a_difference_counts_where_it_is_more_than_chance() {
    let sides = [
        [seen(100, 300), seen(100, 300)],
        [seen(300, 100), seen(310, 90)],
    ];
    let read = sides.map(|side| side.map(|sample| read(&sample).0));
    let changes = Changes::of([&read[0], &read[1]]);
    assert_eq!(changes.samples, [800, 800]);
    let of = |name: &str| {
        let found = changes.functions.iter().find(|of| of.function == name);
        found.cloned().expect("it was seen")
    };
    let (f, g) = (of("m:f/1"), of("m:g/1"));
    assert!((f.own.change - 51.25).abs() < 0.01, "{f:?}");
    assert!(f.own.is_sure && g.own.is_sure && g.own.change < 0.0);
    assert!((4.0..5.0).contains(&f.own.plus_minus), "{f:?}");
    // It is in each stack of both.
    assert_eq!((f.total.change, f.total.is_sure), (0.0, false));
    let same = Changes::of([&read[0], &read[0]]);
    assert!(same.functions.iter().all(|of| !of.own.is_sure));
    let text = same.shown(&View::default()).to_string();
    assert!(text.contains("No difference is more than chance explains."));
    let text = changes.shown(&View::default()).to_string();
    let expect = "\
Before  800 samples, which stand for 4.000 s
After   800 samples, which stand for 4.000 s
Shares are percent of all samples; ± is the 95 % error bar. Nobody counted calls.

Own share
 BEFORE         AFTER        CHANGE         FUNCTION
  25.0 ±3.0    76.2 ±2.9    +51.2 ±4.2   m:f/1
  75.0 ±3.0    23.8 ±2.9    -51.2 ±4.2   m:g/1

Share with all that was called
";
    assert!(text.starts_with(expect), "{text}");
}

#[test]
fn processes_have_tables_of_their_own() {
    let mut sample = seen(30, 10);
    let function = sample.function("other");
    let frame = Frame {
        below: NameId::NONE,
        function,
        line: 1,
    };
    let stack = sample.name(Name::Stack(frame));
    let looked = Looked {
        does: Does::Erlang,
        kind: ThreadKind::Scheduler,
        number: 1,
    };
    for (id, start) in [(7, "worker"), (8, "worker")] {
        sample.start(process(id), start, None);
        for at in 0..30 {
            sample.write(at, process(id), looked.event(stack));
        }
    }
    let (sampled, profile) = read(&sample);
    let text = sampled.by_process(&profile, &View::default()).to_string();
    let expect = "
m:worker/1 (2 processes): 60 samples, 60.0 ±9.4 % of all
   OWN         TOTAL         SAMPLES  FUNCTION
  60.0 ±9.4    60.0 ±9.4         60  m:other/1

<0.9.0>: 40 samples, 40.0 ±9.4 % of all
   OWN         TOTAL         SAMPLES  FUNCTION
  30.0 ±8.8    40.0 ±9.4         30  m:f/1
  10.0 ±6.0    10.0 ±6.0         10  m:g/1
";
    assert!(text.ends_with(expect), "{text}");
}
