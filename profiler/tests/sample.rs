//! `beamline doctor` and `beamline top`, what `beamline sample` refuses, and what it leaves when it is killed. Whether samples are
//! right, the sampler's own tests find out. `BEAMLINE_SAMPLED_ERL` names the command that starts OTP, as there.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use beamline_needs::{Need, skipped};
use beamline_sampler::emulator::Emulator;
use beamline_sampler::sampler::Target;

fn beamline(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_beamline"))
        .args(arguments)
        .output()
        .expect("it starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn what_cannot_be_sampled_is_refused_in_one_line() {
    let own = std::fs::read_link("/proc/self").expect("a link to a number");
    let own = own.to_str().expect("digits").to_owned();
    for (arguments, expect) in [
        (
            ["sample", "4194305", "-o", "never.samples"],
            "there is no process 4194305",
        ),
        (
            ["sample", own.as_str(), "-o", "never.samples"],
            "is no emulator of OTP",
        ),
        (
            ["sample", "no_such_node", "-o", "never.samples"],
            "is named 'no_such_node'",
        ),
    ] {
        let output = beamline(&arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        let error = text(&output.stderr);
        assert!(error.contains(expect), "{error}");
        assert!(error.contains("see beamline doctor"), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
    assert!(!std::path::Path::new("never.samples").exists());
}

#[test]
fn a_command_without_an_emulator_is_told() {
    let output = beamline(&["sample", "-o", "never.samples", "--", "true"]);
    assert_eq!(output.status.code(), Some(1));
    let error = text(&output.stderr);
    assert!(error.contains("the command started no emulator"), "{error}");
}

#[test]
fn the_doctor_says_yes_or_no() {
    let output = beamline(&["doctor"]);
    let printed = text(&output.stdout);
    let says = |word: &str| printed.lines().any(|line| line.starts_with(word));
    match output.status.code() {
        Some(0) => assert!(says("yes: ") && !says("no: "), "{printed}"),
        Some(1) => assert!(says("no: "), "{printed}"),
        code => panic!("{code:?}"),
    }
    let output = beamline(&["doctor", "4194305"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).starts_with("no: there is no process"));
}

/// A node of OTP that makes lists. It ends with this value.
struct Node(Child);

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a node and waits until it can be sampled; none where there is no OTP.
fn node() -> Option<Node> {
    let named = std::env::var("BEAMLINE_SAMPLED_ERL").unwrap_or_else(|_| "erl".to_owned());
    let mut words = named.split_whitespace();
    let program = words.next()?;
    let eval = "F = fun F() -> lists:seq(1, 1000), F() end, F().";
    let child = Command::new(program)
        .args(words)
        .args(["-noshell", "-eval", eval])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn();
    let Ok(child) = child else {
        let why = "there is no erl of OTP: BEAMLINE_SAMPLED_ERL names one";
        skipped(Need::Emulator, why);
        return None;
    };
    let mut node = Node(child);
    let runs = |target: Target| {
        let mut functions = target.code().functions();
        functions.any(|of| &*of.module == "erl_eval")
    };
    while !Emulator::of(node.0.id())
        .and_then(Target::of)
        .is_ok_and(runs)
    {
        if node.0.try_wait().expect("it can be asked").is_some() {
            let why = "the erl of the path starts no emulator";
            skipped(Need::Emulator, why);
            return None;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    Some(node)
}

#[test]
fn the_live_view_needs_a_terminal() {
    let output = beamline(&["top", "no_such_node"]);
    assert_eq!(output.status.code(), Some(1));
    let error = text(&output.stderr);
    assert!(error.contains("needs a terminal: use --once"), "{error}");
}

#[test]
fn the_functions_of_a_node_are_printed_once() {
    let Some(node) = node() else {
        return;
    };
    let pid = node.0.id().to_string();
    let arguments = [
        "top", &pid, "--once", "--json", "--how", "stop", "--rate", "199",
    ];
    let output = beamline(&arguments);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert_eq!(json["pid"].to_string(), pid);
    let functions = json["functions"].as_array().expect("a list");
    let makes = functions.iter().find(|of| of["name"] == "lists:seq_loop/3");
    let makes = makes.expect("the node makes lists");
    assert!(makes["total"]["percent"].as_f64() > Some(30.0), "{makes}");
    assert!(json["stopped"]["looks"].as_u64() >= json["samples"].as_u64());
    assert_eq!(json["schedulers"][0]["name"], "scheduler 1");
    let output = beamline(&["top", &pid, "--once", "--how", "stop", "--rate", "199"]);
    let printed = text(&output.stdout);
    assert!(printed.contains("lists:seq_loop/3"), "{printed}");
    assert!(printed.lines().all(|line| line.chars().count() <= 80));
}

/// A field of the status of each thread of a process.
fn of_threads(pid: u32, field: &str) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("it runs");
    let texts = tasks.flatten().filter_map(|task| {
        let status = fs::read_to_string(task.path().join("status")).ok()?;
        let mut lines = status.lines();
        let line = lines.find_map(|line| line.strip_prefix(field))?;
        Some(line.trim().to_owned())
    });
    texts.collect()
}

/// The processor time of a process, in ticks of user code.
fn ticks(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    let (_, fields) = stat.rsplit_once(')').expect("a name in parentheses");
    let ticks = fields.split_whitespace().nth(11);
    ticks
        .and_then(|ticks| ticks.parse().ok())
        .expect("a number")
}

#[test]
fn killed_in_the_middle_of_a_look_it_leaves_no_thread_standing() {
    let Some(node) = node() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let pid = node.0.id();
    let mut sampler = Command::new(env!("CARGO_BIN_EXE_beamline"))
        .args([
            "sample",
            &pid.to_string(),
            "--how",
            "stop",
            "--rate",
            "5000",
            "-o",
        ])
        .arg(folder.path().join("killed.samples"))
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let is_traced = || of_threads(pid, "TracerPid:").iter().any(|by| by != "0");
    while !is_traced() {
        assert_eq!(sampler.try_wait().expect("it can be asked"), None);
    }
    sampler.kill().expect("it runs");
    sampler.wait().expect("it has ended");
    assert!(!is_traced());
    let states = of_threads(pid, "State:");
    assert!(
        !states.iter().any(|of| of.starts_with(['t', 'T'])),
        "{states:?}"
    );
    // It goes on, or this does not end.
    let before = ticks(pid);
    while ticks(pid) == before {
        std::thread::yield_now();
    }
}

/// Begins to sample a node into a file.
fn sample(node: &Node, file: &Path, options: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_beamline"))
        .args(["sample", &node.0.id().to_string(), "--rate", "499", "-o"])
        .arg(file)
        .args(options)
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts")
}

/// The samples of a recording whose newest function is that of the node, and all.
fn samples(file: &Path) -> (u64, u64) {
    let json = file.with_extension("json");
    let [file, json_] = [file, &json].map(|path| path.to_str().expect("UTF-8"));
    let output = beamline(&["report", file, "--json", json_]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report = fs::read_to_string(&json).expect("it was written");
    let report: serde_json::Value = serde_json::from_str(&report).expect("it is JSON");
    let functions = report["functions"].as_array().expect("a list");
    let makes = functions.iter().find(|of| of["what"] == "lists:seq_loop/3");
    let number = |value: &serde_json::Value| value.as_u64().unwrap_or(0);
    let makes = makes.map_or(0, |of| number(&of["total"]["samples"]));
    (makes, number(&report["samples"]))
}

#[test]
fn a_node_that_is_killed_leaves_a_whole_recording() {
    for options in [&[][..], &["--how", "stop"]] {
        let Some(mut node) = node() else {
            return;
        };
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("killed.samples");
        let mut sampler = sample(&node, &file, options);
        // Samples come into the file in groups.
        while fs::metadata(&file).map_or(0, |of| of.len()) < 8_000 {
            assert_eq!(sampler.try_wait().expect("it can be asked"), None);
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        node.0.kill().expect("it runs");
        let status = sampler.wait().expect("it ends by itself");
        assert!(status.success(), "{options:?}: {status}");
        let (makes, all) = samples(&file);
        assert!(makes * 10 > all * 3 && all > 20, "{makes} of {all}");
    }
}

#[test]
fn samplers_of_one_node_do_not_disturb_each_other() {
    let Some(node) = node() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let all = ["a", "b", "c", "d"].map(|name| {
        let file = folder.path().join(name);
        let options = match name {
            // A thread can have one debugger at a time: for the other one a sample is lost.
            "a" | "b" => &["--duration", "2s", "--how", "stop"][..],
            _ => &["--duration", "2s"],
        };
        (sample(&node, &file, options), file)
    });
    for (mut sampler, file) in all {
        let status = sampler.wait().expect("it ends by itself");
        assert!(status.success(), "{}: {status}", file.display());
        let (makes, all) = samples(&file);
        assert!(makes * 10 > all * 3 && all > 20, "{makes} of {all}");
    }
    let before = ticks(node.0.id());
    while ticks(node.0.id()) == before {
        std::thread::yield_now();
    }
}

#[test]
fn an_emulator_that_interprets_is_refused_by_name() {
    let folder = tempfile::tempdir().expect("a folder");
    // A double of the emulator's other flavour: its file name is what tells them apart.
    let program = folder.path().join("beam.emu.smp");
    fs::copy("/bin/sh", &program).expect("there is a shell");
    let child = Command::new(&program)
        .args(["-c", "read line"])
        .stdin(Stdio::piped())
        .spawn();
    let node = Node(child.expect("it starts"));
    let pid = node.0.id().to_string();
    for arguments in [
        &["sample", &pid, "-o", "never.samples"][..],
        &["dump", &pid],
        &["top", &pid, "--once"],
    ] {
        let output = beamline(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        let error = text(&output.stderr);
        let expect = format!("the emulator {pid} interprets instructions (flavour emu)");
        assert!(error.contains(&expect), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
    let output = beamline(&["doctor", &pid]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("flavour emu"));
}
