//! Exports are opened in the code of the tools that they are for: Speedscope in a browser, Perfetto's protocol buffers in
//! Python. The tools come from their package registries.

mod browser;
#[allow(dead_code, reason = "each program of tests uses its part of it")]
mod made;
mod place;
#[path = "made/samples.rs"]
mod samples;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use beamline_needs::{Need, skipped};
use browser::Browser;
use place::{Place, WORK};
use samples::record_samples;

/// The folder in which packages are kept from one run of the tests to the next.
fn packages(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("viewers")
        .join(name);
    fs::create_dir_all(&folder).expect("writable");
    folder
}

/// What a package client prints, where there is one.
fn client(program: &str, arguments: &[&str], folder: &Path) -> Option<Output> {
    let mut command = Command::new(program);
    command.args(arguments).arg(folder).stdin(Stdio::null());
    command.output().ok()
}

/// Has the client of `registry` put a package into a folder, unless `file` is there; `None` where that does not go.
fn install(name: &str, file: &str, registry: Need, arguments: &[&str]) -> Option<PathBuf> {
    let folder = packages(name);
    let (program, words) = arguments.split_first().expect("a command");
    let printed = match folder.join(file).exists() {
        true => None,
        false => client(program, words, &folder),
    };
    if !folder.join(file).exists() {
        let errors = printed.map(|output| String::from_utf8_lossy(&output.stderr).into_owned());
        let errors = errors.unwrap_or_else(|| "it does not start".to_owned());
        let why = format!("{program} cannot install {name}: {errors}");
        skipped(registry, &why);
        return None;
    }
    Some(folder)
}

/// A recording of all that exports show.
fn record(place: &Place) {
    let events = "calls,returns,words,messages,processes,scheduling,gc";
    let record = ["record", "--events", events, "-o", "a.ring"];
    let rest = ["--pattern", "work", "--", "work.erl"];
    let output = place.run(&[&record[..], &rest].concat());
    assert!(output.status.success(), "{output:?}");
}

/// What Speedscope says of a file: its title, and the text of the page.
fn speedscope(page: &Path, place: &Place, name: &str) -> String {
    let bytes = fs::read(place.file(name)).expect("it was written");
    let script = format!(
        "speedscope.loadFileFromBase64({name:?}, \"{}\")",
        STANDARD.encode(bytes)
    );
    place.write("load.js", &script);
    let mut browser = Browser::start();
    // A dialog would stop the page.
    let alert = "window.alert = (text) => { window.told = text; }";
    let params = serde_json::json!({"source": alert});
    browser.call("Page.addScriptToEvaluateOnNewDocument", params);
    let script = place.file("load.js");
    let address = format!(
        "file://{}#localProfilePath={}",
        page.display(),
        script.display()
    );
    browser.open(&address);
    browser.text(
        "new Promise((done) => {
            const look = () => {
                const text = document.body.innerText + (window.told || '');
                const has_ended = /went wrong|Unrecognized/.test(text);
                if (document.title !== 'speedscope' || has_ended) done(document.title + '\\n' + text);
                else setTimeout(look, 20);
            };
            look();
        })",
    )
}

#[test]
fn speedscope_opens_an_export_in_a_browser() {
    let Some(place) = Place::new(WORK) else {
        return;
    };
    let page = "node_modules/speedscope/dist/release/index.html";
    let arguments = [
        "npm",
        "install",
        "--no-audit",
        "--no-fund",
        "speedscope@1.25.0",
        "--prefix",
    ];
    let Some(folder) = install("speedscope", page, Need::Npm, &arguments) else {
        return;
    };
    record(&place);
    for name in ["a.speedscope.json", "a.speedscope.json.gz"] {
        place.printed(&["export", "a.ring", "--to", "speedscope", "-o", name]);
        let told = speedscope(&folder.join(page), &place, name);
        // The title is the name of the first process, or how many there are.
        let (title, text) = told.split_once('\n').expect("two lines");
        assert!(title.ends_with("speedscope"), "{name}: {told}");
        assert!(
            !text.contains("went wrong") && !text.contains("Unrecognized"),
            "{name}: {told}"
        );
        assert!(told.contains("work"), "{name}: {told}");
    }
    // The viewer rejects a file of another kind, so the test can fail.
    place.write("none.json", "{\"none\": true}");
    let told = speedscope(&folder.join(page), &place, "none.json");
    assert!(
        told.contains("Unrecognized") || told.contains("went wrong"),
        "{told}"
    );
}

/// Reads a trace with Perfetto's own description of it: prints packets, fields that it does not know, and names of tracks.
const PERFETTO: &str = "
import sys
from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as perfetto
trace = perfetto.Trace()
trace.ParseFromString(open(sys.argv[1], 'rb').read())
def unknown(message):
    count = len(UnknownFieldSet(message))
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            count += sum(map(unknown, value if hasattr(value, '__len__') else [value]))
    return count
depth, tracks = {}, set()
threads, interned, samples = {}, {}, 0
for packet in trace.packet:
    if packet.HasField('track_descriptor'):
        descriptor = packet.track_descriptor
        tracks.add(descriptor.uuid)
        print('track', descriptor.name or descriptor.process.process_name)
        if descriptor.HasField('thread'):
            threads[descriptor.thread.tid] = descriptor.thread.thread_name
    for kind in ['mappings', 'function_names', 'frames', 'callstacks']:
        interned.setdefault(kind, {}).update({one.iid: one for one in getattr(packet.interned_data, kind)})
    if packet.HasField('perf_sample'):
        samples += 1
        stack = interned['callstacks'][packet.perf_sample.callstack_iid]
        frames = [interned['frames'][frame] for frame in stack.frame_ids]
        assert all(frame.mapping_id in interned['mappings'] for frame in frames), frames
        names = [interned['function_names'][frame.function_name_id].str.decode() for frame in frames]
        print('sample', threads[packet.perf_sample.tid], ';'.join(names))
    if packet.HasField('track_event'):
        event = packet.track_event
        assert event.track_uuid in tracks, event
        begins = event.type == event.TYPE_SLICE_BEGIN
        ends = event.type == event.TYPE_SLICE_END
        depth[event.track_uuid] = depth.get(event.track_uuid, 0) + begins - ends
        assert depth[event.track_uuid] >= 0, event
assert not any(depth.values()), depth
print('samples', samples)
print('unknown', sum(map(unknown, trace.packet)))
";

#[test]
fn perfetto_knows_every_field_of_an_export() {
    let Some(place) = Place::new(WORK) else {
        return;
    };
    let file = "perfetto/protos/perfetto/trace/perfetto_trace_pb2.py";
    let pip = ["python3", "-m", "pip", "install", "-q"];
    let arguments = [&pip[..], &["perfetto==0.59.1", "--target"]].concat();
    let Some(folder) = install("perfetto", file, Need::Pip, &arguments) else {
        return;
    };
    record(&place);
    record_samples(&place.file("b.ring"));
    let whole = ["export", "a.ring", "--to", "perfetto", "-o", "a.trace"];
    let part = [
        "export",
        "a.ring",
        "--to",
        "perfetto",
        "-o",
        "part.trace",
        "--only",
        "work:fib/1",
    ];
    let samples = ["export", "b.ring", "--to", "perfetto", "-o", "b.trace"];
    for (command, name, expect) in [
        (&whole[..], "a.trace", "track Scheduler "),
        (&part, "part.trace", "track Scheduler "),
        (
            &samples,
            "b.trace",
            "sample scheduler 2 <0.9.0>;m:main/1;m:fib/1\n",
        ),
    ] {
        place.printed(command);
        let read = Command::new("python3")
            .args(["-c", PERFETTO])
            .arg(place.file(name))
            .env("PYTHONPATH", &folder)
            .output()
            .expect("there is Python");
        let text = String::from_utf8_lossy(&read.stdout);
        assert!(read.status.success(), "{name}: {read:?}");
        let count = if name == "b.trace" { 100 } else { 0 };
        let end = format!("samples {count}\nunknown 0\n");
        assert!(text.ends_with(&end), "{name}: {text}");
        assert!(text.contains(expect), "{name}: {text}");
    }
}
