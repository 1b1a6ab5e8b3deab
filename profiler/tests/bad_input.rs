//! Files and arguments that are not what they should be, given to every command: one line, an exit code, nothing written.

mod made;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use beamline_formats::profile::{
    Cost, Function, Header, Node, Process, Profile, TracingCost, Type,
};
use beamline_reports::gate::{Machine, Results, Workload};

struct Place {
    folder: tempfile::TempDir,
}

const CONFIG: &str = "[[workload]]\nname = \"w\"\ncommand = [\"w.erl\"]\n";

/// Results of one workload that ran this program.
fn results(name: &str, program: &str) -> Results {
    let workload = Workload {
        name: name.into(),
        command: vec![program.into()],
        otp: "29".into(),
        ..Workload::default()
    };
    Results::new("0".into(), Machine::default(), vec![workload])
}

fn profile() -> Profile {
    let cost = Cost {
        calls: 3,
        time_ns: 50,
        words: 0,
        dirty_wait_ns: 0,
        tracing_ns: 0,
    };
    Profile {
        runs: vec![Header {
            kind: Type::CallTime,
            command: vec!["erl".into()],
            host: String::new(),
            otp: "29".into(),
            run_ns: 100,
            os_pid: 7,
            node: String::new(),
            processes: 1,
            patterns: Vec::new(),
            tracing: TracingCost::default(),
        }],
        functions: vec![Function {
            module: "m".into(),
            name: "fib".into(),
            arity: 1,
        }],
        processes: vec![Process {
            run: 0,
            pid: "<0.9.0>".into(),
            name: String::new(),
            reductions: 5,
        }],
        counts: Vec::new(),
        origins: Default::default(),
        natives: Default::default(),
        nodes: vec![Node {
            process: 0,
            parent: None,
            function: 0,
            cost,
            reductions: 4,
            wait_ns: 0,
        }],
    }
}

impl Place {
    /// A folder with good files (a.ring, a.profile, a.json, beamline.toml) and bad ones.
    fn new() -> Place {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let place = Place { folder };
        made::record(&place.file("a.ring"), 20);
        let ring = fs::read(place.file("a.ring")).expect("there");
        let profile = profile().write(Vec::new()).expect("a Vec takes all");
        let changed = |bytes: &[u8], at: usize| {
            let mut bytes = bytes.to_vec();
            bytes[at] = 0x77;
            bytes
        };
        for (name, bytes) in [
            ("a.profile", profile.clone()),
            ("beamline.toml", CONFIG.into()),
            ("empty", Vec::new()),
            ("foreign", [0xff, 0xfe, 7, 1].repeat(3000)),
            ("text", "-module(a).\n".repeat(1000).into_bytes()),
            ("cut.ring", ring[..ring.len() / 2].to_vec()),
            ("newer.ring", changed(&ring, 8)),
            ("corrupt.ring", changed(&ring, 4096)),
            ("cut.profile", profile[..profile.len() / 2].to_vec()),
            ("newer.profile", changed(&profile, 8)),
            ("corrupt.profile", changed(&profile, 40)),
        ] {
            fs::write(place.file(name), bytes).expect("writable");
        }
        fs::create_dir(place.file("folder")).expect("writable");
        let write = |results: Results, name: &str| {
            results.write(&place.file(name)).expect("writable");
            fs::read_to_string(place.file(name)).expect("there")
        };
        let good = write(results("w", "w.erl"), "a.json");
        write(results("v", "w.erl"), "workload.json");
        let newer = good.replacen("\"version\": 1", "\"version\": 9", 1);
        assert_ne!(newer, good);
        fs::write(place.file("newer.json"), newer).expect("writable");
        fs::write(place.file("cut.json"), &good[..good.len() / 2]).expect("writable");
        place
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The names of all files.
    fn all(&self) -> Vec<PathBuf> {
        let all = fs::read_dir(self.folder.path()).expect("a folder");
        let mut all: Vec<_> = all.map(|entry| entry.expect("a file").path()).collect();
        all.sort();
        all
    }

    /// Runs a command that is to fail so, with one line that has `expect` in it, and to write nothing.
    fn fails(&self, line: &str, code: i32, expect: &str) {
        let before = self.all();
        let output = Command::new(env!("CARGO_BIN_EXE_beamline"))
            .args(line.split(' '))
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .output()
            .expect("it starts");
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{line}: {told}");
        let is_line = told.starts_with("beamline: ") && told.trim_end().lines().count() == 1;
        assert!(is_line, "{line}: {told}");
        assert!(told.contains(expect), "{line}: {told}");
        assert!(output.stdout.is_empty(), "{line}");
        assert_eq!(self.all(), before, "{line}");
    }
}

/// Each command that reads a recording or a profile.
const EITHER: [&str; 10] = [
    "export FILE --to jsonl -o out",
    "flamegraph FILE --chart -o out",
    "report FILE --json out --flamegraph out2",
    "flamegraph FILE -o out",
    "diff FILE a.ring -o out",
    "diff a.ring FILE -o out",
    "export FILE --to folded -o out",
    "export FILE --to pprof",
    "export FILE --to callgrind -o out",
    "report FILE",
];

/// Each command that reads recordings.
const RECORDING: [&str; 4] = [
    "histogram FILE --svg out",
    "spans FILE --from m",
    "histogram a.ring FILE --svg out",
    "html FILE -o out",
];

/// Each command that reads results.
const RESULTS: [&str; 3] = [
    "ci compare FILE a.json --json out",
    "ci compare a.json FILE --markdown out",
    "ci accept --result FILE",
];

fn with(commands: &[&str], file: &str, place: &Place, expect: &str) {
    for command in commands {
        // Of what is missing, a pattern may be thought.
        if file == "none" && command.starts_with("histogram a.ring") {
            continue;
        }
        place.fails(&command.replace("FILE", file), 1, expect);
    }
}

#[test]
fn files_that_are_no_recordings_and_no_profiles_are_refused() {
    let place = Place::new();
    let neither = "neither a recording (beamline record) nor a profile";
    let no_recording = "not a recording (beamline record)";
    for (file, either, recording) in [
        ("empty", "the file is empty", "the file is empty"),
        ("foreign", neither, no_recording),
        ("text", neither, no_recording),
        ("a.json", neither, no_recording),
        ("none", "No such file", "No such file"),
        (
            "folder",
            "a folder without recordings",
            "a folder without recordings",
        ),
        ("cut.ring", "copy it again", "copy it again"),
        ("newer.ring", "use a newer beamline", "use a newer beamline"),
        ("corrupt.ring", "is damaged", "make it again"),
    ] {
        with(&EITHER, file, &place, either);
        with(&RECORDING, file, &place, recording);
    }
    for (file, either) in [
        ("cut.profile", "the profile is damaged: section"),
        ("newer.profile", "use the beamline that made it"),
        ("corrupt.profile", "; make it again"),
    ] {
        with(&EITHER, file, &place, either);
    }
    for command in RECORDING
        .into_iter()
        .chain(["export FILE --to jsonl -o out"])
    {
        let expect = "needs a recording, and this is a profile: make one with beamline record";
        place.fails(&command.replace("FILE", "a.profile"), 1, expect);
    }
}

#[test]
fn files_that_are_no_results_are_refused() {
    let place = Place::new();
    let no_result = "not a result of 'beamline ci run'";
    for (file, expect) in [
        ("empty", no_result),
        ("foreign", no_result),
        ("text", no_result),
        ("a.ring", no_result),
        ("cut.json", no_result),
        ("newer.json", "make it again with 'beamline ci run'"),
        ("none", "No such file"),
        ("folder", "Is a directory"),
    ] {
        with(&RESULTS, file, &place, expect);
    }
    let not_run = "the workload w is not in the result";
    place.fails("ci accept --result workload.json", 1, not_run);
    for (file, expect) in [
        ("none", "names the workloads"),
        ("foreign", "not a text file, so not a beamline.toml"),
        ("text", "text:1: "),
        ("empty", "it has no workload"),
        ("beamline.toml", "there is no baseline yet"),
    ] {
        place.fails(&format!("ci check {file}"), 1, expect);
    }
}

#[test]
fn what_is_asked_for_and_not_there_is_told_with_what_is_near() {
    let place = Place::new();
    for (line, expect) in [
        ("flamegraph a.ring --only m:fob -o out", "similar: m:fib"),
        ("flamegraph a.profile --only m:fob -o out", "similar: m:fib"),
        (
            "flamegraph a.ring --chart --only m:fob -o out",
            "similar: m:fib",
        ),
        (
            "flamegraph a.ring --hide-below m:fib/2 -o out",
            "similar: m:fib/1",
        ),
        (
            "flamegraph a.ring --only <0.77.0> -o out",
            "no function or process matches",
        ),
        ("diff a.ring a.ring --only m:mai -o out", "similar: m:main"),
        ("histogram a.ring m:fob --svg out", "similar: m:fib"),
        (
            "histogram a.ring <0.77.0> --by process --svg out",
            "no process matches",
        ),
        ("flamegraph a.profile --width words -o out", "call_memory"),
        (
            "flamegraph a.profile --chart -o out",
            "with beamline record",
        ),
        (
            "flamegraph a.ring --chart --reverse -o out",
            "in order of time",
        ),
        (
            "histogram a.ring --of message-latency --by function",
            "use --by process",
        ),
        ("report a.ring a.ring", "give one file"),
        ("report a.profile a.ring", "give one file"),
    ] {
        place.fails(line, 1, expect);
    }
}

#[test]
fn wrong_arguments_are_one_line() {
    let place = Place::new();
    for (line, expect) in [
        (
            "record --events call -o out -- x.erl",
            "the groups are calls, returns",
        ),
        (
            "record --events calls,foo -o out -- x.erl",
            "'foo' is not a group of events",
        ),
        (
            "record --ring x -o out -- x.erl",
            "does not begin with a whole number",
        ),
        ("record --ring 1 -o out -- x.erl", "--ring is too small"),
        ("record --ring 5MB -o out -- x.erl", "'MB' is not a unit"),
        ("record --duration 0s -o out -- x.erl", "is too short"),
        (
            "record --system fast -o out -- x.erl",
            "is not a system event",
        ),
        (
            "record --when-full never -o out -- x.erl",
            "overwrite, stop, wait",
        ),
        (
            "record --pattern a:b/300 -o out -- x.erl",
            "'300' is not 0 to 255",
        ),
        (
            "profile --type speed -- x.erl",
            "call_count, call_time, call_memory",
        ),
        ("report a.ring --sort x", "'x' is not a column"),
        ("record -o - -- erl", "cannot go to standard output"),
        ("report a.ring --width time", "--flamegraph <FILE.svg>"),
        ("flamegraph a.ring", "--output <FILE.svg>"),
        ("flamegraph a.ring --width gas -o out", "calls, time"),
        (
            "flamegraph a.ring --min-width 200 -o out",
            "is not 0 to 100",
        ),
        (
            "flamegraph a.ring --hide-below a:b/c -o out",
            "the arity 'c'",
        ),
        ("diff a.ring -o out", "<AFTER>"),
        ("histogram a.ring --of speed", "call-time"),
        ("histogram a.ring --hgrm --json", "cannot be used with"),
        ("export a.ring --to paper -o out", "folded, speedscope"),
        ("html a.ring --most 0 -o out", "0 is not in 1..=1000000"),
        ("html a.ring --most 1000001 -o out", "is not in 1..=1000000"),
        ("ci compare a.json", "<NEW>"),
        ("ci judge", "unrecognized subcommand"),
        ("repord a.ring", "similar subcommands exist"),
    ] {
        place.fails(line, 2, expect);
    }
}

#[test]
fn a_mistyped_option_is_told_with_the_one_that_was_meant() {
    let place = Place::new();
    for (line, expect) in [
        (
            "profile --tpye call_time -- x.erl",
            "option '--tpye'; there is '--type'",
        ),
        (
            "profile --tpye=call_time x.erl",
            "option '--tpye'; there is '--type'",
        ),
        (
            "record --streem -o out -- x.erl",
            "option '--streem'; there is '--stream'",
        ),
        (
            "record --outptu out -- x.erl",
            "option '--outptu'; there is '--output'",
        ),
        (
            "record -o out --xyz -- x.erl",
            "unknown option '--xyz'; see --help",
        ),
        (
            "run --deterministc x.erl",
            "'--deterministc'; there is '--deterministic'",
        ),
        ("profile -z -- x.erl", "unknown option '-z'; see --help"),
        (
            "flamegraph a.ring --ouput out",
            "'--ouput'; there is '--output'",
        ),
        ("export a.ring --too folded", "'--too'; there is '--to'"),
        (
            "histogram --off gc-pause a.ring",
            "'--off'; there is '--of'",
        ),
        ("html a.ring --outpt out", "'--outpt'; there is '--output'"),
        ("ci check --confg x", "unknown option '--confg'"),
    ] {
        place.fails(line, 2, expect);
    }
}

#[test]
fn limits_that_are_none_are_told_with_their_line() {
    let place = Place::new();
    for (limits, expect) in [
        ("words = \"x\"", "bad.toml:2: "),
        ("words = \"-1%\"", "bad.toml:2: "),
        ("speed = \"1%\"", "bad.toml:2: "),
        ("words = { soft = \"1%\", hard = -5 }", "bad.toml:2: "),
    ] {
        let text = format!("[limits]\n{limits}\n{CONFIG}");
        fs::write(place.file("bad.toml"), text).expect("writable");
        place.fails("ci check bad.toml", 1, expect);
        place.fails("ci compare a.json a.json --config bad.toml", 1, expect);
    }
}

#[test]
fn nothing_is_written_over_what_is_read() {
    let place = Place::new();
    let read = |name: &str| fs::read(place.file(name)).expect("there");
    let before = (read("a.ring"), read("a.profile"), read("a.json"));
    for line in [
        "report a.ring --json a.ring",
        "report a.ring --flamegraph ./a.ring",
        "report a.profile --output a.profile",
        "flamegraph a.ring -o a.ring",
        "flamegraph a.ring --chart -o a.ring",
        "diff a.ring a.profile -o a.profile",
        "histogram a.ring --svg a.ring",
        "export a.ring --to jsonl -o a.ring",
        "html a.ring -o a.ring",
        "ci compare a.json program.json --json a.json",
    ] {
        place.fails(line, 1, "give the output another name");
    }
    assert!(before == (read("a.ring"), read("a.profile"), read("a.json")));
    let nowhere = Path::new("no/where");
    for command in [
        "flamegraph a.ring -o",
        "html a.ring -o",
        "export a.ring --to folded -o",
    ] {
        place.fails(
            &format!("{command} {}", nowhere.display()),
            1,
            "No such file or directory",
        );
    }
}
