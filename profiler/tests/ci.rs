//! `beamline ci`: a project's workloads, its baseline, a change that makes things worse.

mod place;

use std::fs;
use std::process::Output;

use place::Place;
use serde_json::Value;

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
    assert!(told.contains("1 workloads, no regression"), "{told}");
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
        ("c.md", "](pictures/work.svg)"),
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
        "wrok:step is no function of a module that was loaded; near it: work:step\n",
        "the workload called no function that its patterns match (wrok:step)\n",
    ] {
        assert!(told.contains(expect), "{told}");
    }
    assert_eq!(told.lines().count(), 2, "{told}");
}

/// The workload would fail if it ran.
#[test]
fn a_baseline_of_something_else_is_told_before_anything_runs() {
    let Some(project) = project() else {
        return;
    };
    project.write(
        "beamline.toml",
        "[[workload]]\nname = \"x\"\ncommand = [\"none.erl\"]\n",
    );
    let totals = r#"{"reductions":1,"words":1,"messages":1,"collections":1,"processes":1}"#;
    for (name, expect) in [
        ("y", "the workload x is not in the baseline"),
        (
            "x",
            "the workload x of the baseline ran 'a.erl 1', this one 'none.erl'",
        ),
    ] {
        let baseline = format!(
            r#"{{"version":1,"beamline":"0","machine":{{"processor":"","cores":1}},"workloads":[
            {{"name":"{name}","command":["a.erl","1"],"otp":"29","totals":{totals},"functions":[]}}]}}"#
        );
        project.write("beamline-baseline.json", &baseline);
        let output = ci(&project, &["check"]);
        let told = text(&output.stderr);
        assert_eq!(code(&output), Some(1), "{told}");
        assert!(told.contains(expect) && told.lines().count() == 1, "{told}");
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
