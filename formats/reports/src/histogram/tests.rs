//! Tests of histograms on small recordings whose values are known.

use std::time::{Duration, UNIX_EPOCH};

use base64::Engine as _;
use beamline_formats::ring::{Event, Recording};
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use proptest::prelude::*;

use super::*;
use crate::events::sample::{self, Sample};

fn request(of: Of) -> Request {
    Request {
        of,
        by: of.by(),
        only: None,
    }
}

fn read(recording: &Recording, of: Of) -> Histograms {
    Histograms::read(recording, &request(of)).expect("it is measured")
}

/// Name, count, least, half, greatest.
fn rows(of: &Histograms) -> Vec<String> {
    let rows = of.rows().into_iter();
    rows.map(|row| {
        let Row {
            name,
            count,
            min,
            p50,
            max,
            ..
        } = row;
        format!("{name} {count}: {min} {p50} {max}")
    })
    .collect()
}

#[test]
fn every_kind_of_time_is_measured() {
    let sample = sample::varied();
    let recording = sample.open();
    for (of, expect) in [
        // Of each time that the loop is called, only the first round ends.
        (
            Of::CallTime,
            &[
                "m:main/1 1: 200000 200000 200000",
                "m:fib/1 20: 100 1000 2000",
                "m:loop/1 10: 1000 1000 1000",
            ][..],
        ),
        (
            Of::OwnTime,
            &[
                "m:main/1 1: 155000 155000 155000",
                "m:fib/1 20: 100 1000 1900",
                "m:loop/1 10: 1000 1000 1000",
            ],
        ),
        (Of::GcPause, &["<0.10.0> m:server/1 10: 700 700 700"]),
        (
            Of::RunSlice,
            &[
                "<0.9.0> boss 11: 7500 7503 97500",
                "<0.10.0> m:server/1 10: 1500 1500 1500",
            ],
        ),
        (
            Of::MessageLatency,
            &[
                "<0.9.0> boss 10: 600 600 600",
                "<0.10.0> m:server/1 10: 500 500 500",
            ],
        ),
    ] {
        assert_eq!(rows(&read(&recording, of)), expect, "{of:?}");
    }
}

#[test]
fn who_is_ready_waits_for_a_scheduler() {
    let mut sample = Sample::new(&[Group::Scheduling, Group::Messages]);
    let id = sample::process(1);
    sample.start(id, "server", None);
    sample.slice_begins(10, id);
    // All reductions used: ready at once, whatever comes.
    sample.slice_ends(100, id, 4_000);
    sample.write(120, id, Event::Receive { text: "a" });
    sample.slice_begins(150, id);
    // Waits, until the first of two messages.
    sample.slice_ends(200, id, 4_500);
    sample.write(1_000, id, Event::Receive { text: "a" });
    sample.write(1_005, id, Event::Receive { text: "b" });
    sample.slice_begins(1_010, id);
    // Woken by something that is not recorded.
    sample.slice_ends(1_100, id, 4_600);
    sample.slice_begins(3_000, id);
    sample.write(3_010, id, Event::Receive { text: "c" });
    let all = read(&sample.open(), Of::QueueWait);
    assert_eq!(rows(&all), ["<0.1.0> m:server/1 2: 10 10 50"]);
}

#[test]
fn rows_can_be_of_the_other_kind() {
    let recording = sample::varied().open();
    for (of, by, expect) in [
        (Of::GcPause, By::Function, &["m:loop/1 10: 700 700 700"][..]),
        (
            Of::CallTime,
            By::Process,
            &[
                "<0.9.0> boss 21: 100 2000 200000",
                "<0.10.0> m:server/1 10: 1000 1000 1000",
            ],
        ),
    ] {
        let request = Request { by, ..request(of) };
        let read = Histograms::read(&recording, &request).expect("it is measured");
        assert_eq!(rows(&read), expect, "{of:?}");
    }
}

#[test]
fn what_is_chosen_is_shown_and_what_is_not_there_is_said() {
    let recording = sample::varied().open();
    for (of, only, expect) in [
        (Of::CallTime, "m:fib", Ok("m:fib/1")),
        (
            Of::CallTime,
            "m:fob",
            Err("no function matches 'm:fob'; similar: m:fib"),
        ),
        (
            Of::CallTime,
            "zzzz",
            Err("no function matches 'zzzz', and nothing is similar"),
        ),
        (Of::GcPause, "<0.10.0>", Ok("<0.10.0> m:server/1")),
        (Of::GcPause, "m:server/1", Ok("<0.10.0> m:server/1")),
        (Of::RunSlice, "boss", Ok("<0.9.0> boss")),
        (
            Of::RunSlice,
            "bosss",
            Err("no process matches 'bosss'; similar: boss"),
        ),
    ] {
        let request = Request {
            only: Some(only.into()),
            ..request(of)
        };
        let got = Histograms::read(&recording, &request);
        let got = got.map(|all| all.rows().remove(0).name);
        assert_eq!(
            got,
            expect.map(str::to_owned).map_err(str::to_owned),
            "{only}"
        );
    }
}

#[test]
fn words_are_those_of_single_calls() {
    let all = read(&sample::varied().open(), Of::Words);
    let rows = all.rows();
    let row = |name: &str| {
        let row = rows.iter().find(|row| row.name == name).expect("a row");
        (row.count, row.sum, row.min, row.max)
    };
    // Each round calls fib in fib, and both have words; calls around the loop that do not end have no value.
    assert_eq!(row("m:fib/1"), (20, 500, 0, 50));
    assert_eq!(row("m:main/1"), (1, 500, 500, 500));
    assert_eq!(row("m:loop/1"), (10, 30, 3, 3));
    let text = all.to_string();
    let line = text.lines().find(|line| line.ends_with("  m:main/1"));
    assert_eq!(
        line.map(|line| line.split_whitespace().collect::<Vec<_>>()),
        Some(vec![
            "1", "500", "500", "500", "500", "500", "500", "m:main/1"
        ])
    );
    assert!(text.contains("Number that allocated at least"), "{text}");
    // On a terminal of 80 columns, the table is without the rarest percentiles.
    let narrow = all.to_text(Some(80));
    let line = narrow.lines().find(|line| line.ends_with("  m:main/1"));
    let line = line.expect("the row is there");
    assert_eq!(line.split_whitespace().count(), 6, "{line}");
    assert!(line.chars().count() <= 80, "{line}");
    assert!(
        text.contains("           0 │") && !text.contains(" ns"),
        "{text}"
    );
    let mut json = Vec::new();
    all.write_json(&mut json).expect("a Vec takes all");
    assert!(String::from_utf8_lossy(&json).contains("\"unit\": \"words\""));
    let mut hgrm = Vec::new();
    all.write_hgrm(&mut hgrm).expect("a Vec takes all");
    assert!(String::from_utf8_lossy(&hgrm).contains("#[Max     =      500.000"));
    let mut svg = Vec::new();
    all.draw("", &mut svg).expect("a Vec takes all");
    let svg = String::from_utf8_lossy(&svg);
    assert!(
        svg.contains("max: 500</text>") && !svg.contains(" ns<"),
        "{svg}"
    );
}

#[test]
fn events_that_were_not_recorded_are_named() {
    let recording = Sample::new(&[Group::Calls]).open();
    for (of, by, expect) in [
        (
            Of::CallTime,
            By::Function,
            "call-time by function needs calls and returns, but the recording has no returns: \
             record with --events calls,returns",
        ),
        (
            Of::GcPause,
            By::Function,
            "gc-pause by function needs gc, calls and returns, but the recording has no gc and no returns: \
             record with --events calls,returns,gc",
        ),
        (
            Of::Words,
            By::Function,
            "words by function needs calls, returns and words, but the recording has no returns and no words: \
             record with --events calls,returns,words",
        ),
        (
            Of::RunSlice,
            By::Process,
            "run-slice by process needs scheduling, but the recording has no scheduling: \
             record with --events calls,scheduling",
        ),
        (
            Of::MessageLatency,
            By::Function,
            "message-latency is measured by process only: use --by process",
        ),
    ] {
        let request = Request { by, ..request(of) };
        let error = Histograms::read(&recording, &request).expect_err("not recorded");
        assert_eq!(error, expect);
    }
    let empty = Sample::new(&[Group::Gc]).open();
    let error = Histograms::read(&empty, &request(Of::GcPause)).expect_err("nothing in it");
    assert_eq!(error, "the recording has no data for gc-pause");
}

#[test]
fn histograms_of_several_recordings_are_put_together() {
    let recording = sample::varied().open();
    let mut two = read(&recording, Of::CallTime);
    let one = read(&recording, Of::CallTime);
    two.merge(one.clone()).expect("of the same");
    for (one, two) in one.rows().iter().zip(two.rows()) {
        assert_eq!(
            (2 * one.count, one.p50, one.max),
            (two.count, two.p50, two.max)
        );
    }
    let other = read(&recording, Of::GcPause);
    assert!(two.merge(other).is_err());
    let text = two.to_string();
    assert!(text.starts_with("Nothing was lost."), "{text}");
    assert!(
        text.contains("20 had not ended, and are left out"),
        "{text}"
    );
}

#[test]
fn the_percentile_output_is_as_hdrhistogram_has_it() {
    let all = read(&sample::varied().open(), Of::CallTime);
    let mut out = Vec::new();
    all.write_hgrm(&mut out).expect("a Vec takes all");
    let text = String::from_utf8(out).expect("UTF-8");
    let mut lines = text.lines();
    assert_eq!(
        lines.next(),
        Some("       Value     Percentile TotalCount 1/(1-Percentile)")
    );
    assert_eq!(lines.next(), Some(""));
    let (mut last, mut count) = ((0.0, 0.0), 0);
    for line in lines.by_ref().take_while(|line| !line.starts_with('#')) {
        let fields: Vec<f64> = line
            .split_whitespace()
            .map(|f| f.parse().expect("a number"))
            .collect();
        assert!(fields[0] >= last.0 && fields[1] >= last.1, "{line}");
        last = (fields[0], fields[1]);
        count = fields[2] as u64;
        assert_eq!(fields.len(), if fields[1] < 1.0 { 4 } else { 3 });
    }
    assert_eq!((last, count), ((200.063, 1.0), 31));
    assert!(
        text.contains("#[Max     =      200.063, Total count    =           31]"),
        "{text}"
    );
}

#[test]
fn the_log_is_read_again() {
    let all = read(&sample::varied().open(), Of::MessageLatency);
    let mut out = Vec::new();
    all.write_log(&mut out, UNIX_EPOCH, Duration::from_millis(1))
        .expect("a Vec takes all");
    let entries = IntervalLogIterator::new(&out).filter_map(|entry| match entry.expect("a line") {
        LogEntry::Interval(interval) => Some(interval),
        _ => None,
    });
    let read: Vec<(String, u64, u64)> = entries
        .map(|interval| {
            let bytes =
                base64::engine::general_purpose::STANDARD.decode(interval.encoded_histogram());
            let bytes = bytes.expect("base64");
            let histogram: Histogram<u64> = Deserializer::new()
                .deserialize(&mut bytes.as_slice())
                .expect("a histogram");
            let tag = interval.tag().expect("each has a tag").as_str().to_owned();
            (tag, histogram.len(), histogram.max())
        })
        .collect();
    let expect = [("<0.10.0>_m:server/1", 10, 500), ("<0.9.0>_boss", 10, 600)];
    assert_eq!(
        read,
        expect.map(|(tag, count, max)| (tag.to_owned(), count, max))
    );
}

#[test]
fn json_has_all_rows() {
    let all = read(&sample::varied().open(), Of::RunSlice);
    let mut out = Vec::new();
    all.write_json(&mut out).expect("a Vec takes all");
    let json: serde_json::Value = serde_json::from_slice(&out).expect("JSON");
    assert_eq!(json["of"], "run-slice");
    assert_eq!(json["by"], "process");
    assert_eq!(json["rows"].as_array().map(Vec::len), Some(2));
    assert_eq!(json["all"]["count"], 21);
    assert_eq!(json["recordings"][0]["since_ns"], 0);
}

#[test]
fn the_picture_is_xml_with_a_line_for_each_row() {
    let mut sample = Sample::new(&[Group::Calls, Group::Returns]);
    let id = sample::process(1);
    for name in ["<a>", "b", "c&d", "e", "f", "g", "h", "i"] {
        sample.call(1, id, name);
        sample.back(3_000_000_000, id);
    }
    let all = read(&sample.open(), Of::CallTime);
    let mut out = Vec::new();
    all.draw("a <title> & more", &mut out)
        .expect("a Vec takes all");
    let text = String::from_utf8(out).expect("UTF-8");
    let mut reader = quick_xml::Reader::from_str(&text);
    let mut lines = 0;
    loop {
        match reader.read_event().expect("XML") {
            quick_xml::events::Event::Eof => break,
            quick_xml::events::Event::Start(tag) if tag.name().as_ref() == b"path" => lines += 1,
            _ => {}
        }
    }
    assert_eq!(lines, 6, "of eight rows six are shown");
    assert!(
        text.contains("m:&#39;") || text.contains("m:'&lt;a&gt;'/1"),
        "{text}"
    );
    assert!(text.contains("prefers-color-scheme: dark"));
    assert!(text.contains(">1 s<") && text.contains(">10 s<"), "{text}");
}

#[test]
fn a_call_that_does_not_end_has_no_time() {
    let mut sample = Sample::new(&[Group::Calls, Group::Returns, Group::Gc]);
    let id = sample::process(1);
    sample.call(1, id, "a");
    sample.call(2, id, "b");
    sample.back(3, id);
    sample.write(4, id, Event::GcMajorStart { need: 0, used: 0 });
    let recording = sample.open();
    let all = read(&recording, Of::CallTime);
    assert_eq!(rows(&all), ["m:b/1 1: 1 1 1"]);
    assert!(
        all.to_string()
            .contains("\n1 had not ended, and is left out"),
        "{all}"
    );
}

proptest! {
    #[test]
    fn percentiles_are_exact_to_three_digits(mut given in prop::collection::vec(0..1_u64 << 40, 1..2000)) {
        let mut values = Values::default();
        given.iter().for_each(|value| values.add(*value));
        let row = Row::of("", &values);
        given.sort_unstable();
        prop_assert_eq!((row.count, row.min, row.max), (given.len() as u64, given[0], given[given.len() - 1]));
        for (quantile, got) in [(0.5, row.p50), (0.9, row.p90), (0.99, row.p99), (0.999, row.p99_9)] {
            let at = (quantile * given.len() as f64).ceil() as usize;
            let expect = given[at.max(1) - 1];
            prop_assert!(got.abs_diff(expect) <= expect / 1000 + 1, "{} {} {}", quantile, got, expect);
        }
    }
}
