//! Tests that read exports again: with the format's reader where there is one, or by the format's own description.

use std::collections::{BTreeMap, HashMap};
use std::io::Read;
use std::process::Command;

use beamline_needs::{Need, skipped};
use prost::Message as _;
use serde::Deserialize;
use serde_json::Value;

use super::*;
use crate::events::sample::{self, Sample, process};

mod native_functions;
mod samples;

fn export(recording: &Recording, target: Target) -> Vec<u8> {
    let mut out = Vec::new();
    write(recording, target, &Selection::default(), &mut out).expect("it is written");
    out
}

fn text(target: Target) -> String {
    String::from_utf8(export(&sample::varied().open(), target)).expect("UTF-8")
}

#[test]
fn folded_stacks_have_own_times() {
    let text = text(Target::Folded);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines,
        [
            "m:loop/1 14900",
            "m:main/1 155000",
            "m:main/1;m:fib/1 20000"
        ],
    );
}

#[test]
fn what_is_missing_is_said() {
    let without = Sample::new(&[Group::Calls]);
    let none = Sample::new(&[Group::Calls, Group::Returns]);
    for target in Target::ALL {
        let mut out = Vec::new();
        let needs_calls = !target.needs().is_empty();
        let all = Selection::default();
        let error = write(&without.open(), target, &all, &mut out)
            .err()
            .map(|e| e.to_string());
        let expect = format!(
            "{} needs calls and returns, but the recording has no returns: record with --events \
             calls,returns",
            target.name()
        );
        assert_eq!(error, needs_calls.then_some(expect));
        let error = write(&none.open(), target, &all, &mut out).err();
        assert_eq!(error.is_some(), needs_calls, "{target:?}");
    }
    let (none, all) = (Profile::default(), Selection::default());
    let error = write_profile(&none, Target::Perfetto, &all, &mut Vec::new());
    let error = error.expect_err("no recording").to_string();
    assert!(error.contains("with beamline record"), "{error}");
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Speedscope {
    #[serde(rename = "$schema")]
    schema: String,
    shared: Shared,
    profiles: Vec<Evented>,
    name: String,
    #[serde(rename = "activeProfileIndex")]
    active: usize,
    exporter: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Shared {
    frames: Vec<Frame>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Frame {
    name: String,
    #[serde(default)]
    file: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Evented {
    #[serde(rename = "type")]
    kind: String,
    name: String,
    unit: String,
    #[serde(rename = "startValue")]
    start: u64,
    #[serde(rename = "endValue")]
    end: u64,
    events: Vec<OpenOrClose>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OpenOrClose {
    #[serde(rename = "type")]
    kind: char,
    frame: usize,
    at: u64,
}

#[test]
fn speedscope_reads_each_process() {
    let file: Speedscope = serde_json::from_str(&text(Target::Speedscope)).expect("its schema");
    assert_eq!(
        file.schema,
        "https://www.speedscope.app/file-format-schema.json"
    );
    assert_eq!((file.name.as_str(), file.active), ("erl <&>", 0));
    assert!(file.exporter.starts_with("beamline "));
    let names: Vec<&str> = file.profiles.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names, ["<0.9.0> boss", "<0.10.0> m:server/1"]);
    let mut opened: HashMap<&str, usize> = HashMap::new();
    for profile in &file.profiles {
        assert_eq!(
            (profile.kind.as_str(), profile.unit.as_str()),
            ("evented", "nanoseconds")
        );
        let mut stack = Vec::new();
        let mut now = profile.start;
        for event in &profile.events {
            assert!(event.at >= now && event.at <= profile.end);
            now = event.at;
            if event.kind == 'O' {
                let frame = &file.shared.frames[event.frame];
                assert!(frame.file == "m" || frame.name == "(does not run)");
                *opened.entry(&frame.name).or_default() += 1;
                stack.push(event.frame);
            } else {
                assert_eq!((event.kind, stack.pop()), ('C', Some(event.frame)));
            }
        }
        assert!(stack.is_empty(), "what begins ends");
    }
    let expect = [
        ("m:main/1", 1),
        ("m:fib/1", 20),
        ("m:loop/1", 20),
        ("(does not run)", 20),
    ];
    assert_eq!(opened, HashMap::from(expect));
}

/// Columns of a table: those it must have, all of its length.
fn columns(table: &Value, names: &[&str]) -> usize {
    let length = table["length"].as_u64().expect("a length") as usize;
    let object = table.as_object().expect("a table");
    for name in names {
        let column = object[*name]
            .as_array()
            .unwrap_or_else(|| panic!("no {name}"));
        assert_eq!(column.len(), length, "{name}");
    }
    let others = ["length", "weightType"];
    let unknown = object
        .keys()
        .filter(|key| !names.contains(&key.as_str()) && !others.contains(&key.as_str()));
    assert_eq!(unknown.count(), 0);
    length
}

fn number(value: &Value) -> usize {
    value.as_u64().expect("a number") as usize
}

/// Own time in milliseconds of each function of a thread, which is checked on the way.
fn own_times(thread: &Value) -> BTreeMap<String, f64> {
    let strings = thread["stringArray"].as_array().expect("texts");
    let samples = columns(&thread["samples"], &["stack", "time", "weight"]);
    assert_eq!(thread["samples"]["weightType"], "tracing-ms");
    let stacks = columns(
        &thread["stackTable"],
        &["frame", "prefix", "category", "subcategory"],
    );
    let frames = columns(
        &thread["frameTable"],
        &[
            "address",
            "inlineDepth",
            "category",
            "subcategory",
            "func",
            "nativeSymbol",
            "innerWindowID",
            "implementation",
            "line",
            "column",
        ],
    );
    let funcs = columns(
        &thread["funcTable"],
        &[
            "name",
            "isJS",
            "relevantForJS",
            "resource",
            "fileName",
            "lineNumber",
            "columnNumber",
        ],
    );
    columns(&thread["resourceTable"], &["lib", "name", "host", "type"]);
    columns(
        &thread["nativeSymbols"],
        &["libIndex", "address", "name", "functionSize"],
    );
    columns(
        &thread["markers"],
        &["data", "name", "startTime", "endTime", "phase", "category"],
    );
    let is_before = |stack: usize| {
        let prefix = &thread["stackTable"]["prefix"][stack];
        prefix.is_null() || number(prefix) < stack
    };
    assert!((0..stacks).all(is_before), "what is below comes before");
    let (mut own, mut end) = (BTreeMap::new(), 0.0);
    for sample in 0..samples {
        let of = |name: &str| thread["samples"][name][sample].clone();
        let (time, weight) = (
            of("time").as_f64().expect("ms"),
            of("weight").as_f64().expect("ms"),
        );
        assert!(time + 1e-9 >= end);
        end = time + weight;
        if of("stack").is_null() {
            continue;
        }
        let frame = number(&thread["stackTable"]["frame"][number(&of("stack"))]);
        let func = number(&thread["frameTable"]["func"][frame]);
        assert!(frame < frames && func < funcs);
        let name = &strings[number(&thread["funcTable"]["name"][func])];
        *own.entry(name.as_str().expect("a text").to_owned())
            .or_default() += weight;
    }
    own
}

#[test]
fn the_firefox_profiler_has_a_thread_for_each_process() {
    let file: Value = serde_json::from_str(&text(Target::Firefox)).expect("JSON");
    assert_eq!(file["meta"]["preprocessedProfileVersion"], 48);
    for name in [
        "interval",
        "startTime",
        "processType",
        "stackwalk",
        "version",
    ] {
        assert!(file["meta"][name].is_number(), "{name}");
    }
    let threads = file["threads"].as_array().expect("threads");
    let names: Vec<&str> = threads
        .iter()
        .filter_map(|thread| thread["name"].as_str())
        .collect();
    assert_eq!(names, ["<0.9.0> boss", "<0.10.0> m:server/1"]);
    let own = own_times(&threads[0]);
    for (name, ms) in [
        ("m:main/1", 0.155),
        ("m:fib/1", 0.020),
        ("(does not run)", 0.025),
    ] {
        assert!((own[name] - ms).abs() < 1e-9, "{own:?}");
    }
    for name in ["processType", "pid"] {
        assert!(threads[0][name].is_string(), "{name}");
    }
    assert!(threads[0]["isMainThread"] == true && threads[0]["tid"] == 1);
    own_times(&threads[1]);
}

#[test]
fn callgrind_annotate_reads_what_is_for_it() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("callgrind.out");
    std::fs::write(&path, text(Target::Callgrind)).expect("writable");
    let annotate = |option: &str| {
        let output = Command::new("callgrind_annotate")
            .args([option, "--threshold=100"])
            .arg(&path)
            .output();
        match output {
            Ok(output) => Some(output),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                skipped(Need::Valgrind, "there is no callgrind_annotate");
                None
            }
            Err(error) => panic!("{error}"),
        }
    };
    for (option, expect) in [
        (
            "--inclusive=no",
            [
                ("m:main/1", ["155,000", "500", "500"]),
                ("m:fib/1", ["20,000", "500", "500"]),
                ("m:loop/1", ["14,900", "66", "630"]),
            ],
        ),
        (
            "--inclusive=yes",
            [
                ("m:main/1", ["175,000", "1,000", "1,000"]),
                ("m:fib/1", ["20,000", "500", "500"]),
                ("m:loop/1", ["14,900", "66", "630"]),
            ],
        ),
    ] {
        let Some(output) = annotate(option) else {
            return;
        };
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success() && output.stderr.is_empty(),
            "{output:?}"
        );
        // Each number is followed by its part of all, in parentheses.
        let costs = |what: &str| {
            let line = text.lines().find(|line| line.contains(what));
            let parts = line.unwrap_or_default().split(')');
            let parts = parts.map(|part| part.split('(').next().unwrap_or_default().trim());
            parts.take(3).map(str::to_owned).collect::<Vec<_>>()
        };
        assert!(
            text.contains("Events shown:     Nanoseconds Words Reductions"),
            "{text}"
        );
        let all = ["189,900", "1,066", "1,630"];
        assert_eq!(costs("PROGRAM TOTALS"), all, "{text}");
        for (function, expect) in expect {
            assert_eq!(costs(&format!("m:{function}")), expect, "{text}");
        }
    }
}

/// `perftools.profiles`, from its description.
mod pprof_proto {
    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Profile {
        #[prost(message, repeated, tag = "1")]
        pub(super) sample_type: Vec<ValueType>,
        #[prost(message, repeated, tag = "2")]
        pub(super) sample: Vec<Sample>,
        #[prost(message, repeated, tag = "3")]
        pub(super) mapping: Vec<Mapping>,
        #[prost(message, repeated, tag = "4")]
        pub(super) location: Vec<Location>,
        #[prost(message, repeated, tag = "5")]
        pub(super) function: Vec<Function>,
        #[prost(string, repeated, tag = "6")]
        pub(super) string_table: Vec<String>,
        #[prost(int64, tag = "9")]
        pub(super) time_nanos: i64,
        #[prost(int64, tag = "10")]
        pub(super) duration_nanos: i64,
        #[prost(message, optional, tag = "11")]
        pub(super) period_type: Option<ValueType>,
        #[prost(int64, tag = "12")]
        pub(super) period: i64,
        #[prost(int64, repeated, tag = "13")]
        pub(super) comment: Vec<i64>,
        #[prost(int64, tag = "14")]
        pub(super) default_sample_type: i64,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct ValueType {
        #[prost(int64, tag = "1")]
        pub(super) kind: i64,
        #[prost(int64, tag = "2")]
        pub(super) unit: i64,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Sample {
        #[prost(uint64, repeated, tag = "1")]
        pub(super) location_id: Vec<u64>,
        #[prost(int64, repeated, tag = "2")]
        pub(super) value: Vec<i64>,
        #[prost(message, repeated, tag = "3")]
        pub(super) label: Vec<Label>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Label {
        #[prost(int64, tag = "1")]
        pub(super) key: i64,
        #[prost(int64, tag = "2")]
        pub(super) str: i64,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Mapping {
        #[prost(uint64, tag = "1")]
        pub(super) id: u64,
        #[prost(int64, tag = "5")]
        pub(super) filename: i64,
        #[prost(bool, tag = "7")]
        pub(super) has_functions: bool,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Location {
        #[prost(uint64, tag = "1")]
        pub(super) id: u64,
        #[prost(uint64, tag = "2")]
        pub(super) mapping_id: u64,
        #[prost(message, repeated, tag = "4")]
        pub(super) line: Vec<Line>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Line {
        #[prost(uint64, tag = "1")]
        pub(super) function_id: u64,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Function {
        #[prost(uint64, tag = "1")]
        pub(super) id: u64,
        #[prost(int64, tag = "2")]
        pub(super) name: i64,
        #[prost(int64, tag = "3")]
        pub(super) system_name: i64,
        #[prost(int64, tag = "4")]
        pub(super) filename: i64,
    }
}

#[test]
fn pprof_decodes_every_path() {
    let bytes = export(&sample::varied().open(), Target::Pprof);
    let mut plain = Vec::new();
    let mut gunzip = flate2::read::GzDecoder::new(bytes.as_slice());
    gunzip.read_to_end(&mut plain).expect("gzip");
    let profile = pprof_proto::Profile::decode(plain.as_slice()).expect("its protocol buffer");
    let text = |index: i64| profile.string_table[index as usize].as_str();
    assert_eq!(text(0), "");
    let types = profile
        .sample_type
        .iter()
        .map(|t| (text(t.kind), text(t.unit)));
    assert_eq!(
        types.collect::<Vec<_>>(),
        [
            ("calls", "count"),
            ("time", "nanoseconds"),
            ("words", "count"),
            ("reductions", "count")
        ]
    );
    assert_eq!(text(profile.default_sample_type), "time");
    assert_eq!(profile.period_type.map(|t| text(t.kind)), Some("time"));
    assert_eq!((profile.period, text(profile.comment[0])), (1, "erl <&>"));
    assert_eq!(profile.time_nanos, 1_700_000_000_000_000_000);
    assert_eq!(profile.duration_nanos, 202_500);
    let function = |location: &u64| {
        let location = profile
            .location
            .iter()
            .find(|l| l.id == *location)
            .expect("it is there");
        let id = location.line[0].function_id;
        let function = profile
            .function
            .iter()
            .find(|f| f.id == id)
            .expect("it is there");
        assert_eq!(
            (text(function.filename), function.name),
            ("m", function.system_name)
        );
        text(function.name)
    };
    let samples = profile.sample.iter().map(|sample| {
        let path: Vec<&str> = sample.location_id.iter().map(function).collect();
        assert_eq!(text(sample.label[0].key), "process");
        (text(sample.label[0].str), path, sample.value.clone())
    });
    assert_eq!(
        samples.collect::<Vec<_>>(),
        [
            ("<0.9.0> boss", vec!["m:main/1"], vec![1, 155_000, 500, 500]),
            (
                "<0.9.0> boss",
                vec!["m:fib/1", "m:main/1"],
                vec![20, 20_000, 500, 500]
            ),
            (
                "<0.10.0> m:server/1",
                vec!["m:loop/1"],
                vec![20, 14_900, 66, 630]
            ),
        ]
    );
}

/// `perfetto.protos`, from its description.
mod perfetto_proto {
    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Trace {
        #[prost(message, repeated, tag = "1")]
        pub(super) packet: Vec<TracePacket>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct TracePacket {
        #[prost(uint64, optional, tag = "8")]
        pub(super) timestamp: Option<u64>,
        #[prost(uint32, optional, tag = "10")]
        pub(super) trusted_packet_sequence_id: Option<u32>,
        #[prost(message, optional, tag = "11")]
        pub(super) track_event: Option<TrackEvent>,
        #[prost(message, optional, tag = "12")]
        pub(super) interned_data: Option<InternedData>,
        #[prost(uint32, optional, tag = "13")]
        pub(super) sequence_flags: Option<u32>,
        #[prost(message, optional, tag = "60")]
        pub(super) track_descriptor: Option<TrackDescriptor>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct InternedData {
        #[prost(message, repeated, tag = "2")]
        pub(super) event_names: Vec<EventName>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct EventName {
        #[prost(uint64, optional, tag = "1")]
        pub(super) iid: Option<u64>,
        #[prost(string, optional, tag = "2")]
        pub(super) name: Option<String>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct TrackDescriptor {
        #[prost(uint64, optional, tag = "1")]
        pub(super) uuid: Option<u64>,
        #[prost(string, optional, tag = "2")]
        pub(super) name: Option<String>,
        #[prost(message, optional, tag = "3")]
        pub(super) process: Option<ProcessDescriptor>,
        #[prost(uint64, optional, tag = "5")]
        pub(super) parent_uuid: Option<u64>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct ProcessDescriptor {
        #[prost(int32, optional, tag = "1")]
        pub(super) pid: Option<i32>,
        #[prost(string, optional, tag = "6")]
        pub(super) process_name: Option<String>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct DebugAnnotation {
        #[prost(uint64, optional, tag = "3")]
        pub(super) uint_value: Option<u64>,
        #[prost(string, optional, tag = "6")]
        pub(super) string_value: Option<String>,
        #[prost(string, optional, tag = "10")]
        pub(super) name: Option<String>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct TrackEvent {
        #[prost(message, repeated, tag = "4")]
        pub(super) debug_annotations: Vec<DebugAnnotation>,
        #[prost(enumeration = "Type", optional, tag = "9")]
        pub(super) r#type: Option<i32>,
        #[prost(uint64, optional, tag = "10")]
        pub(super) name_iid: Option<u64>,
        #[prost(uint64, optional, tag = "11")]
        pub(super) track_uuid: Option<u64>,
        #[prost(string, optional, tag = "23")]
        pub(super) name: Option<String>,
        #[prost(fixed64, repeated, packed = "false", tag = "47")]
        pub(super) flow_ids: Vec<u64>,
        #[prost(fixed64, repeated, packed = "false", tag = "48")]
        pub(super) terminating_flow_ids: Vec<u64>,
    }

    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
    #[repr(i32)]
    pub(super) enum Type {
        Unspecified = 0,
        SliceBegin = 1,
        SliceEnd = 2,
        Instant = 3,
    }
}

/// What a trace of Perfetto shows.
#[derive(Default)]
struct Shown {
    tracks: HashMap<u64, String>,
    /// Time of all slices of a name on a track.
    slices: BTreeMap<(String, String), u64>,
    instants: BTreeMap<(String, String), u64>,
    begun: Vec<u64>,
    ended: Vec<u64>,
}

/// Follows a trace as its reader does.
fn show(trace: &perfetto_proto::Trace) -> Shown {
    use perfetto_proto::Type;
    let mut shown = Shown::default();
    let mut names: HashMap<u64, String> = HashMap::new();
    let mut open: HashMap<u64, Vec<(String, u64)>> = HashMap::new();
    let mut now = 0;
    for (number, packet) in trace.packet.iter().enumerate() {
        assert_eq!(packet.trusted_packet_sequence_id, Some(1));
        assert_eq!(packet.sequence_flags, Some(if number == 0 { 3 } else { 2 }));
        if let Some(track) = &packet.track_descriptor {
            let name = match &track.process {
                Some(process) => process.process_name.clone().expect("a name"),
                None => {
                    assert_eq!(track.parent_uuid, Some(1));
                    track.name.clone().expect("a name")
                }
            };
            assert!(
                shown
                    .tracks
                    .insert(track.uuid.expect("a number"), name)
                    .is_none()
            );
        }
        for name in packet
            .interned_data
            .iter()
            .flat_map(|data| &data.event_names)
        {
            names.insert(
                name.iid.expect("a number"),
                name.name.clone().expect("a text"),
            );
        }
        let Some(event) = &packet.track_event else {
            continue;
        };
        let time = packet.timestamp.expect("a time");
        assert!(time >= now);
        now = time;
        let uuid = event.track_uuid.expect("a track");
        let track = shown.tracks[&uuid].clone();
        let name = || match event.name_iid {
            Some(iid) => names[&iid].clone(),
            None => event.name.clone().expect("a name"),
        };
        match event.r#type() {
            Type::SliceBegin => open.entry(uuid).or_default().push((name(), time)),
            Type::SliceEnd => {
                let (name, since) = open.entry(uuid).or_default().pop().expect("it began");
                *shown.slices.entry((track, name)).or_default() += time - since;
            }
            Type::Instant => *shown.instants.entry((track, name())).or_default() += 1,
            Type::Unspecified => panic!("an event of no type"),
        }
        shown.begun.extend(&event.flow_ids);
        shown.ended.extend(&event.terminating_flow_ids);
    }
    assert!(open.values().all(Vec::is_empty), "what begins ends");
    shown
}

#[test]
fn perfetto_decodes_turns_calls_and_messages() {
    let bytes = export(&sample::varied().open(), Target::Perfetto);
    let trace = perfetto_proto::Trace::decode(bytes.as_slice()).expect("its protocol buffer");
    let shown = show(&trace);
    let tracks: std::collections::BTreeSet<&str> =
        shown.tracks.values().map(String::as_str).collect();
    let expect = [
        "erl <&>",
        "Scheduler 1",
        "<0.9.0> boss",
        "<0.10.0> m:server/1",
    ];
    assert_eq!(tracks, expect.into_iter().collect());
    let slice = |track: &str, name: &str| shown.slices[&(track.to_owned(), name.to_owned())];
    assert_eq!(slice("Scheduler 1", "<0.10.0> m:server/1"), 15_000);
    assert_eq!(
        slice("Scheduler 1", "<0.9.0> boss"),
        12_400 + 9 * 7_500 + 97_500
    );
    assert_eq!(slice("<0.10.0> m:server/1", "minor collection"), 7_000);
    assert_eq!(slice("<0.9.0> boss", "m:main/1"), 200_000);
    let instant = |track: &str, name: &str| shown.instants[&(track.to_owned(), name.to_owned())];
    assert_eq!(instant("<0.9.0> boss", "send"), 10);
    assert_eq!(instant("<0.9.0> boss", "exit"), 1);
    assert_eq!(instant("<0.10.0> m:server/1", "long_gc"), 1);
    // Each message is received where its arrow ends.
    assert_eq!((shown.begun.len(), &shown.begun), (20, &shown.ended));
}

#[test]
fn every_record_is_a_line_of_json() {
    let sample = sample::varied();
    let text = text(Target::Jsonl);
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(lines[0]["recording"]["otp"], "29.1");
    assert_eq!(lines[0]["start_unix_ns"], 1_700_000_000_000_000_000_u64);
    assert_eq!(lines[lines.len() - 1]["losses"], serde_json::json!([]));
    let recording = sample.open();
    let mut merged = recording.merged().expect("readable");
    let mut records = 0;
    while merged.read().expect("readable").is_some() {
        records += 1;
    }
    assert_eq!(lines.len(), records + 2);
    let line = |event: &str| {
        let line = lines.iter().find(|line| line[0] == event);
        line.expect("there is one").to_string()
    };
    let columns = |event: &str| lines[0]["columns"][event].to_string();
    for (event, columns_expect, expect) in [
        (
            "call",
            r#"["event","ns","scheduler","who","function"]"#,
            r#"["call",1000,1,"<0.9.0>","m:main/1"]"#,
        ),
        (
            "send",
            r#"["event","ns","scheduler","who","to","text"]"#,
            r#"["send",12100,1,"<0.9.0>","<0.10.0>","{go,1}"]"#,
        ),
        (
            "spawn",
            r#"["event","ns","scheduler","who","child","function"]"#,
            r#"["spawn",1500,1,"<0.9.0>","<0.10.0>","m:main/1"]"#,
        ),
        // What is not known is left out at the end of a line.
        (
            "return",
            r#"["event","ns","scheduler","who","function"]"#,
            r#"["return",10200,1,"<0.9.0>"]"#,
        ),
    ] {
        assert_eq!(
            (columns(event), line(event)),
            (columns_expect.into(), expect.into())
        );
    }
}

#[test]
fn calls_that_are_too_deep_are_part_of_the_one_above() {
    let mut sample = Sample::new(&[Group::Calls, Group::Returns]);
    let id = process(1);
    for at in 0..3_000 {
        sample.call(at, id, "deeper");
    }
    sample.back(3_000, id);
    let recording = sample.open();
    let file = export(&recording, Target::Speedscope);
    let file: Speedscope = serde_json::from_slice(&file).expect("its schema");
    let events = &file.profiles[0].events;
    assert_eq!(events.len(), 2 * DEEPEST);
    let is_end = |event: &OpenOrClose| event.kind == 'C' && event.at == 3_000;
    assert!(events[DEEPEST..].iter().all(is_end));
    let trace = perfetto_proto::Trace::decode(export(&recording, Target::Perfetto).as_slice());
    let shown = show(&trace.expect("its protocol buffer"));
    let of = |(track, name): (&str, &str)| shown.slices.get(&(track.to_owned(), name.to_owned()));
    // What is shown goes on to the end.
    let expect: u64 = (0..DEEPEST as u64).map(|at| 3_000 - at).sum();
    assert_eq!(of(("<0.1.0>", "m:deeper/1")), Some(&expect));
    let file: Value = serde_json::from_slice(&export(&recording, Target::Firefox)).expect("JSON");
    assert_eq!(file["threads"][0]["stackTable"]["length"], 1);
}
