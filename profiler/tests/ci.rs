//! `beamline ci`: a project's workloads, its baseline, a change that makes things worse.

mod place;

use std::fs;
use std::process::Output;

use serde_json::Value;

use place::Place;

const SOURCE: &str = "\
-module(work).
-export([main/1, step/1]).
main([N]) ->
    Self = self(),
    Pids = [spawn_link(fun() -> Self ! {self(), step(I)} end) || I <- lists:seq(1, list_to_integer(N))],
    [receive {P, L} -> true = is_list(L) end || P <- Pids],
    [io:format(\"~p ~p~n\", [os:timestamp(), rand:uniform(1000)]) || _ <- [1, 2]],
    receive after 3600000 -> ok end.
step(I) -> [X * EXTRA || X <- lists:seq(1, I)].
";

const CONFIG: &str = "\
[limits]
reductions = \"1%\"
time = { gate = true }
[[functions]]
pattern = \"work:step/1\"
words = \"0%\"
[[workload]]
name = \"work\"
command = [\"work.erl\", \"60\"]
";

/// A project with a program; none where there is no OTP to run it on.
fn project() -> Option<Place> {
    let place = Place::new(&SOURCE.replace("EXTRA", "2"))?;
    place.write("beamline.toml", CONFIG);
    Some(place)
}

fn ci(project: &Place, arguments: &[&str]) -> Output {
    project.run(&[&["ci"], arguments].concat())
}

fn code(output: &Output) -> Option<i32> {
    output.status.code()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_change_that_does_more_fails_the_check() {
    let Some(project) = project() else {
        return;
    };
    // A program that waits for an hour takes none: time is virtual.
    let accepted = ci(&project, &["accept"]);
    assert_eq!(code(&accepted), Some(0), "{}", text(&accepted.stderr));
    let same = ci(&project, &["check"]);
    assert_eq!(code(&same), Some(0), "{}", text(&same.stdout));
    let told = text(&same.stdout);
    assert!(told.contains("1 workload, no regression"), "{told}");
    // Lists twice as long.
    project.write(
        "work.erl",
        &SOURCE.replace("X * EXTRA || X <-", "X * Y || Y <- [1, 2], X <-"),
    );
    let worse = ci(
        &project,
        &[
            "check",
            "-o",
            "new.json",
            "--markdown",
            "c.md",
            "--json",
            "c.json",
            "--junit",
            "c.xml",
            "--benchmark-action",
            "b.json",
            "--github",
            "--flamegraphs",
            "pictures",
            "--flamegraphs-url",
            "https://example.net/7/",
        ],
    );
    let told = text(&worse.stdout);
    assert_eq!(code(&worse), Some(3), "{told}{}", text(&worse.stderr));
    assert!(told.contains("work:step/1 words"), "{told}");
    assert!(
        told.contains("::error file=beamline.toml,title=work regressed::"),
        "{told}"
    );
    for (name, expect) in [
        ("c.md", "**regression**"),
        ("c.md", "](https://example.net/7/work.svg)"),
        ("c.md", "```mermaid\nflowchart LR\n"),
        ("pictures/work.svg", "work:step/1"),
        ("c.xml", "<failure"),
        ("c.json", "\"regression\": true"),
        ("b.json", "work: reductions"),
    ] {
        let written = fs::read_to_string(project.file(name)).expect(name);
        assert!(written.contains(expect), "{name}: {written}");
    }
    let compared = ci(&project, &["compare", "beamline-baseline.json", "new.json"]);
    assert_eq!(code(&compared), Some(3), "{}", text(&compared.stderr));
    // What was measured can be accepted as it is.
    let accepted = ci(&project, &["accept", "--result", "new.json"]);
    assert_eq!(code(&accepted), Some(0), "{}", text(&accepted.stderr));
    let same = ci(&project, &["compare", "beamline-baseline.json", "new.json"]);
    assert_eq!(code(&same), Some(0), "{}", text(&same.stdout));
}

#[test]
fn a_pattern_that_names_nothing_is_told_with_what_is_near() {
    let Some(project) = project() else {
        return;
    };
    project.write(
        "pattern.toml",
        &CONFIG.replace("command", "patterns = [\"wrok:step\"]\ncommand"),
    );
    let output = ci(&project, &["run", "pattern.toml"]);
    let told = text(&output.stderr);
    assert_eq!(code(&output), Some(1), "{told}");
    for expect in [
        "wrok:step matches no function of any loaded module; similar: work:step
",
        "the workload work: it called no function that its patterns match (wrok:step)
",
    ] {
        assert!(told.contains(expect), "{told}");
    }
    assert_eq!(told.lines().count(), 2, "{told}");
}

/// A result as `beamline ci run` writes it, of workloads that did next to nothing.
fn baseline(workloads: &[(&str, &str)]) -> String {
    let totals = r#"{"reductions":1,"words":1,"messages":1,"collections":1,"processes":1}"#;
    let workloads: Vec<String> = workloads
        .iter()
        .map(|(name, command)| {
            format!(
                r#"{{"name":"{name}","command":["{command}"],"otp":"29","totals":{totals},"functions":[]}}"#
            )
        })
        .collect();
    let workloads = workloads.join(",");
    format!(
        r#"{{"version":1,"beamline":"0","machine":{{"processor":"","cores":1}},"workloads":[{workloads}]}}"#
    )
}

const QUICK: &str = "-module(work).\n-export([main/0]).\nmain() -> ok.\n";

#[test]
fn what_cannot_be_compared_has_a_row_and_the_rest_is_compared() {
    let Some(project) = project() else {
        return;
    };
    project.write("work.erl", QUICK);
    let workload = |name: &str, command: &str| {
        format!("[[workload]]\nname = \"{name}\"\ncommand = [\"{command}\"]\n")
    };
    let workloads = [
        workload("changed", "work.erl"),
        workload("failing", "none.erl"),
        workload("new", "work.erl"),
    ];
    let of = [("gone", "x"), ("changed", "x"), ("failing", "none.erl")];
    project.write("beamline-baseline.json", &baseline(&of));
    project.write(
        "beamline.toml",
        &format!("missing = \"warn\"\n{}", workloads.concat()),
    );
    let files = ["--markdown", "c.md", "--json", "c.json", "--junit", "c.xml"];
    let output = ci(
        &project,
        &[&["check"][..], &files, &["-o", "r.json"]].concat(),
    );
    let told = text(&output.stdout);
    assert_eq!(code(&output), Some(1), "{told}{}", text(&output.stderr));
    for expect in [
        "workload  changed: the baseline ran 'x', this is 'work.erl'",
        "workload  FAILED: none.erl: no such file",
        "workload  new: the baseline does not have it",
        "workload  gone: the baseline has it, and it was not run",
        "\n1 workload failed\n",
    ] {
        assert!(told.contains(expect), "{expect}: {told}");
    }
    for (name, expect) in [
        ("c.md", "**failed**"),
        ("c.json", "\"gone\""),
        ("c.xml", "<error"),
    ] {
        let written = fs::read_to_string(project.file(name)).expect(name);
        assert!(written.contains(expect), "{name}: {written}");
    }
    // A baseline is not made of what failed.
    let before = fs::read(project.file("beamline-baseline.json")).expect("there");
    let accepted = ci(&project, &["accept", "--result", "r.json"]);
    assert_eq!(code(&accepted), Some(1), "{}", text(&accepted.stdout));
    let after = fs::read(project.file("beamline-baseline.json")).expect("there");
    assert_eq!(before, after);
    // Without the failing one, what is missing has the code that the file says.
    for (missing, exit) in [("warn", 0), ("fail", 3)] {
        let only = [&workloads[0][..], &workloads[2]].concat();
        project.write("beamline.toml", &format!("missing = \"{missing}\"\n{only}"));
        let output = ci(&project, &["check"]);
        assert_eq!(code(&output), Some(exit), "{}", text(&output.stdout));
    }
}

#[test]
fn the_setup_is_not_counted_and_the_rest_says_how_it_runs() {
    let Some(project) = project() else {
        return;
    };
    let program = "-module(work).\n-export([main/0]).\nmain() ->\n    {ok, <<\"2\">>} = file:read_file(\"n\"),\n    \
                   \"here\" = os:getenv(\"WHERE\"),\n    [X || X <- lists:seq(1, 100)].\n";
    fs::create_dir(project.file("sub")).expect("made");
    project.write("sub/work.erl", program);
    let config = "[[workload]]\nname = \"work\"\ncwd = \"sub\"\nenv = { WHERE = \"here\" }\n\
                  setup = [[\"sh\", \"-c\", \"printf 1 > n\"], [\"erl\", \"-noinput\", \"-eval\", \
                  'file:write_file(\"n\", \"2\"), halt().']]\ncommand = [\"work.erl\"]\n";
    project.write("beamline.toml", config);
    let output = ci(&project, &["run", "-o", "r.json"]);
    assert_eq!(code(&output), Some(0), "{}", text(&output.stderr));
    let result = fs::read(project.file("r.json")).expect("written");
    let result: Value = serde_json::from_slice(&result).expect("JSON");
    let work = &result["workloads"][0];
    assert!(work["unsteady"].is_null(), "{work}");
    let functions = work["functions"].as_array().expect("functions").iter();
    let reductions = functions.filter_map(|f| f["reductions"].as_u64());
    assert!(reductions.sum::<u64>() >= 100, "{work}");
    project.write("beamline.toml", &config.replace("printf 1 > n", "exit 4"));
    let output = ci(&project, &["run"]);
    let told = text(&output.stderr);
    assert_eq!(code(&output), Some(1), "{told}");
    assert!(
        told.contains("the workload work: its setup: 'sh -c exit 4' failed"),
        "{told}"
    );
}

#[test]
fn a_workload_that_prepares_something_is_counted_without_that() {
    let Some(project) = project() else {
        return;
    };
    let program = "-module(work).\n-export([main/0]).\nmain() ->\n    case filelib:is_file(\"built\") of\n        \
                   true -> ok;\n        false -> lists:sort(lists:seq(1, 100000)), file:write_file(\"built\", \"\")\n    end.\n";
    project.write("work.erl", program);
    project.write(
        "beamline.toml",
        "[[workload]]\nname = \"work\"\ncommand = [\"work.erl\"]\n",
    );
    let accepted = ci(&project, &["accept"]);
    assert_eq!(code(&accepted), Some(0), "{}", text(&accepted.stderr));
    let told = text(&accepted.stderr);
    assert!(
        told.contains("its first run prepared what the next ones found"),
        "{told}"
    );
    let same = ci(&project, &["check"]);
    let told = text(&same.stdout);
    assert_eq!(code(&same), Some(0), "{told}");
    assert!(
        told.contains("reductions") && !told.contains("unsteady"),
        "{told}"
    );
}

#[test]
fn a_workload_in_which_nobody_goes_on_is_told_and_fails() {
    let Some(project) = project() else {
        return;
    };
    project.write(
        "work.erl",
        "-module(work).\n-export([main/0]).\nmain() ->\n    register(waiter, self()), receive never -> ok end.\n",
    );
    project.write(
        "beamline.toml",
        "[[workload]]\nname = \"work\"\ncommand = [\"work.erl\"]\n\
         [[workload]]\nname = \"idle\"\ncommand = [\"erl\", \"-noinput\", \"-s\", \"erlang\", \"date\"]\n",
    );
    let output = ci(&project, &["run"]);
    let told = text(&output.stderr);
    assert_eq!(code(&output), Some(1), "{told}");
    for expect in [
        "can wake them (waiter <0.",
        "the workload work: 'work.erl': all processes wait for ever\n",
        "the workload idle: 'erl -noinput -s erlang date': all processes wait for ever\n",
    ] {
        assert!(told.contains(expect), "{expect}: {told}");
    }
}

/// Processes whose command line has this text.
fn running(text: &str) -> usize {
    let all = fs::read_dir("/proc").expect("processes").flatten();
    let lines = all.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    lines
        .filter(|line| String::from_utf8_lossy(line).contains(text))
        .count()
}

#[test]
fn signals_and_timeouts_end_all_that_was_started() {
    let Some(project) = project() else {
        return;
    };
    // A program that leaves the group of the workload, and is known by its argument.
    let mark = format!("86{}", beamline_settings::chance::os_pid());
    let command = format!("setsid sleep {mark} & sleep {mark}");
    let config = |timeout: &str| {
        format!(
            "[[workload]]\nname = \"work\"\ncommand = [\"sh\", \"-c\", \"{command}\"]\n{timeout}"
        )
    };
    project.write("beamline.toml", &config("timeout = \"1s\"\n"));
    let output = ci(&project, &["run"]);
    let told = text(&output.stderr);
    assert_eq!(code(&output), Some(1), "{told}");
    assert!(
        told.contains("it ran longer than its timeout of 1s"),
        "{told}"
    );
    let sleep = format!("sleep\0{mark}");
    assert_eq!(running(&sleep), 0);
    project.write("beamline.toml", &config(""));
    for signal in ["TERM", "INT"] {
        let mut command = project.beamline(&["ci", "run"]);
        let mut child = command.spawn().expect("starts");
        while running(&sleep) < 2 {
            std::thread::yield_now();
        }
        let pid = child.id().to_string();
        let kill = std::process::Command::new("kill")
            .args(["-s", signal, &pid])
            .status();
        assert!(kill.expect("kill runs").success());
        let status = child.wait().expect("it ends");
        assert!(!status.success(), "{status}");
        assert_eq!(running(&sleep), 0);
    }
}

#[test]
fn two_runs_in_other_places_do_the_same() {
    let (Some(one), Some(two)) = (project(), project()) else {
        return;
    };
    let deeper = two.file("a/much/longer/path");
    fs::create_dir_all(&deeper).expect("writable");
    for name in ["work.erl", "beamline.toml"] {
        fs::copy(one.file(name), deeper.join(name)).expect("copied");
    }
    let first = ci(&one, &["run"]);
    let second = ci(&two, &["run", "a/much/longer/path/beamline.toml"]);
    assert_eq!(code(&first), Some(0), "{}", text(&first.stderr));
    assert_eq!(text(&first.stdout), text(&second.stdout));
    let result: Value = serde_json::from_slice(&first.stdout).expect("JSON");
    let work = &result["workloads"][0];
    assert_eq!(work["totals"]["processes"], 60);

    let step = work["functions"].as_array().expect("functions").iter();
    let step: Vec<_> = step.filter(|f| f["function"] == "work:step/1").collect();
    assert_eq!(step[0]["calls"], 60);
    // Sixty lists of two words an element.
    let words = work["functions"].as_array().expect("functions").iter();
    let words: u64 = words.filter_map(|f| f["words"].as_u64()).sum();
    assert!(words >= 60 * 61, "{words}");
}

#[test]
fn times_are_measured_in_turns_with_another_version() {
    let (Some(project), Some(base)) = (project(), project()) else {
        return;
    };
    let quick = "-module(work).\n-export([main/1]).\nmain([N]) -> N.\n";
    project.write("work.erl", quick);
    base.write("work.erl", quick);
    project.write("beamline.toml", &format!("{CONFIG}warm_up = 1\nruns = 2\n"));
    let folder = base.file("");
    let folder = folder.to_str().expect("UTF-8");
    let run = ci(&project, &["run", "--base", folder, "-o", "r.json"]);
    assert_eq!(code(&run), Some(0), "{}", text(&run.stderr));
    let result = fs::read(project.file("r.json")).expect("written");
    let result: Value = serde_json::from_slice(&result).expect("JSON");
    let times = &result["workloads"][0]["times"];
    for side in ["runs_ns", "base_runs_ns"] {
        assert_eq!(times[side].as_array().map(Vec::len), Some(2), "{times}");
    }
}

/// A job's files are there on the first day too.
#[test]
fn without_a_baseline_a_check_still_writes_its_files() {
    let Some(project) = project() else {
        return;
    };
    let files = ["--markdown", "new.md", "--junit", "new.xml"];
    let check = ci(
        &project,
        &[&["check", "--output", "new.json"], &files[..]].concat(),
    );
    assert_eq!(code(&check), Some(1), "{}", text(&check.stderr));
    assert!(text(&check.stderr).contains("there is no baseline yet"));
    let read = |name| std::fs::read_to_string(project.file(name)).expect("written");
    assert!(read("new.md").contains("the baseline does not have it"));
    assert!(read("new.xml").contains("<testsuite"));
    let accept = ci(&project, &["accept", "--result", "new.json"]);
    assert_eq!(code(&accept), Some(0), "{}", text(&accept.stderr));
    let check = ci(&project, &["check"]);
    assert_eq!(code(&check), Some(0), "{}", text(&check.stderr));
}

#[test]
fn wrong_use_is_told_in_one_line() {
    let Some(project) = project() else {
        return;
    };
    project.write("empty.json", "");
    project.write(
        "none.toml",
        "[[workload]]\nname = \"x\"\ncommand = [\"none.erl\"]\n",
    );
    project.write(
        "fails.toml",
        "[[workload]]\nname = \"x\"\ncommand = [\"erl\", \"-noshell\", \"-eval\", \"halt(7).\"]\n",
    );
    for (arguments, expect, exit) in [
        (&["check"][..], "there is no baseline yet", 1),
        (&["run", "other.toml"], "other.toml: no such file", 1),
        (&["run", "none.toml"], "none.erl: no such file", 1),
        (&["run", "fails.toml"], "failed: exit status: 7", 1),
        (&["run", "--base", "nowhere"], "nowhere: no such folder", 1),
        (&["compare", "empty.json", "empty.json"], "not a result", 1),
        (&["accept", "--result", "empty.json"], "not a result", 1),
        (&["measure"], "unrecognized subcommand", 2),
    ] {
        let output = ci(&project, arguments);
        let told = text(&output.stderr);
        assert_eq!(code(&output), Some(exit), "{arguments:?}: {told}");
        assert!(told.contains(expect), "{arguments:?}: {told}");
        assert!(exit == 2 || told.trim_end().lines().count() == 1, "{told}");
        assert!(!project.file("beamline-baseline.json").exists());
    }
}
