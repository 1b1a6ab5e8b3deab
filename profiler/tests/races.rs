//! Races of recorded runs, and runs in which one of them is turned around.

mod place;

use std::fs;
use std::process::Output;

use place::{Place, RECORD_ORDER, errors};

const PROGRAM: &str = "\
-module(work).
-export([main/1]).
main(_) ->
    Me = self(),
    spawn(fun() -> Me ! early end),
    spawn(fun() ->
              receive after 50 -> ok end,
              Me ! late
          end),
    io:format(\"~w~n\", [all(2)]),
    halt(4).
all(0) -> [];
all(N) ->
    receive
        Message -> [Message | all(N - 1)]
    end.
";

#[test]
fn a_race_is_found_and_turned_around() {
    let Some(place) = Place::new(PROGRAM) else {
        return;
    };
    let first = place.run(&[&RECORD_ORDER[..], &["work.erl"]].concat());
    assert_eq!(first.stdout, b"[early,late]\n", "{}", errors(&first));
    let found = place.run(&["races", "run.stream"]);
    let text = String::from_utf8_lossy(&found.stdout);
    assert_eq!(errors(&found), "");
    for line in [
        "        received in work:all/1, line 12 or later; it has a clause for the other one\n",
        "        sent in work:'-main/1-fun-0-'/1, line 5\n",
        "        the other in work:'-main/1-fun-1-'/1, line 8\n",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert!(text.contains("; --all prints "), "{text}");
    let all = place.run(&["races", "run.stream", "--all"]).stdout;
    assert!(all.len() > text.len());
    place.run(&["races", "run.stream", "--prefix", "1", "-o", "other.log"]);
    for engine in ["jit", "interpreter"] {
        let again = ["replay", "other.log", "--engine", engine, "--", "work.erl"];
        let again = place.run(&again);
        assert_eq!(again.stdout, b"[late,early]\n", "{}", errors(&again));
        assert_eq!(again.status.code(), Some(4));
    }
}

#[test]
fn races_are_told_without_running_anything() {
    let Some(place) = Place::new(PROGRAM) else {
        return;
    };
    let trace = "{p0, [spawn(p0.1), spawn(p0.2), receive(l0.1:1), timeout, receive(l0.2:1)]} % main\n\
                 {p0.1, [send(l0.1:1)]}\n{p0.2, [send(l0.2:1)]}\n";
    fs::write(place.file("a.trace"), trace).expect("writable");
    let told = place.run(&["races", "--no-replay", "a.trace"]);
    let text = "   1  p0 (main) took l0.1:1 from p0.1
      l0.2:1 from p0.2 could have come first
   2  p0 (main) timed out
      l0.2:1 from p0.2 could have come first
2 races of 2 kinds
";
    assert_eq!(String::from_utf8_lossy(&told.stdout), text);
    assert_eq!(errors(&told), "");
    let json = place.run(&["races", "--no-replay", "--json", "a.trace"]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!(json["schema"], "beamline-races");
    assert_eq!(json["races"][1]["number"], 2);
    assert_eq!(json["races"][1]["taken"], serde_json::Value::Null);
    assert_eq!(json["races"][1]["other"], "l0.2:1");
    let prefix = place.run(&["races", "--no-replay", "--prefix", "2", "a.trace"]);
    let prefix = String::from_utf8_lossy(&prefix.stdout);
    assert!(prefix.starts_with(
        "{p0, [spawn(p0.1), spawn(p0.2), receive(l0.1:1), receive(l0.2:1)]} % main\n"
    ));
    for (arguments, code, error) in [
        (
            &["--prefix", "3"][..],
            1,
            "a.trace: it has 2 races, and none is number 3",
        ),
        (&["--process", "other"], 1, "a.trace: no process is other"),
        (&["--json", "--prefix", "1"], 2, "cannot be used with"),
        (&["-o", "x"], 2, "--prefix"),
        (
            &["--prefix", "1", "-o", "a.trace"],
            1,
            "this file is an input",
        ),
    ] {
        let refused = place.run(&[&["races", "--no-replay", "a.trace"], arguments].concat());
        assert_eq!(refused.status.code(), Some(code), "{arguments:?}");
        assert!(errors(&refused).contains(error), "{}", errors(&refused));
    }
    let without = place.run(&["races", "a.trace"]);
    assert!(errors(&without).contains("without lines: give the command behind --"));
}

/// A program of `ci/races`, recorded: its place, and what it has printed.
fn recorded(program: &str, text: &str) -> Option<(Place, String)> {
    let text = text.replace(&format!("-module({program})."), "-module(work).");
    let text = text.replace("-export([main/0]).", "-export([main/0, main/1]).");
    let place = Place::new(&(text + "\nmain(_) -> main().\n"))?;
    let first = place.run(&[&RECORD_ORDER[..], &["work.erl"]].concat());
    let printed = String::from_utf8_lossy(&first.stdout).into_owned();
    Some((place, printed))
}

/// The races of a recording, as JSON: of `races`, or of `accesses`.
fn found(place: &Place, of: &str) -> Vec<serde_json::Value> {
    let found = place.run(&["races", "--json", "run.stream"]);
    assert_eq!(errors(&found), "");
    let mut json: serde_json::Value = serde_json::from_slice(&found.stdout).expect("JSON");
    serde_json::from_value(json[of].take()).expect("an array")
}

/// What a program prints that follows the log which turns a race around.
fn turned(place: &Place, race: &serde_json::Value) -> String {
    let again = follow_turned(place, race, &[]);
    assert!(
        !errors(&again).contains("cannot follow"),
        "{}",
        errors(&again)
    );
    String::from_utf8_lossy(&again.stdout).into_owned()
}

/// The replay, with these options, of the log that turns a race around.
fn follow_turned(place: &Place, race: &serde_json::Value, options: &[&str]) -> Output {
    let number = race["number"].to_string();
    let prefix = place.run(&[
        "races",
        "run.stream",
        "--prefix",
        &number,
        "-o",
        "other.log",
    ]);
    assert_eq!(errors(&prefix), "");
    place.run(&[&["replay", "other.log"], options, &["--", "work.erl"]].concat())
}

/// The processes that end with the emulator are ended by signals, which nobody knows the cause of.
#[test]
fn a_race_is_turned_around_though_the_emulator_has_stopped() {
    let program = include_str!("../../ci/races/updates.erl");
    let program = program.replace(
        "main() ->",
        "main() ->\n    work(),\n    init:stop(),\n    receive after infinity -> ok end.\n\nwork() ->",
    );
    let Some((place, printed)) = recorded("updates", &program) else {
        return;
    };
    assert_eq!(printed, "2\n");
    let all = found(&place, "accesses");
    let race = all.iter().find(|race| race["part"] == "hits");
    assert_eq!(turned(&place, race.expect("a race")), "1\n");
}

#[test]
fn a_lost_update_of_a_table_is_found_and_turned_around() {
    let program = include_str!("../../ci/races/updates.erl");
    let Some((place, printed)) = recorded("updates", program) else {
        return;
    };
    assert_eq!(printed, "2\n");
    let all = found(&place, "accesses");
    let is_of = |part: &'static str| move |race: &&serde_json::Value| race["part"] == part;
    let hits: Vec<_> = all.iter().filter(is_of("hits")).collect();
    // No access to the other key of the table, which only one process has.
    assert_eq!(all.iter().filter(is_of("own")).count(), 0);
    let race = hits.first().expect("a race");
    assert_eq!(
        (&race["kind"], &race["name"]),
        (&"ets".into(), &"counters".into())
    );
    let line =
        |access: &serde_json::Value| (access["is_change"].clone(), access["site"]["line"].clone());
    assert_eq!(line(&race["first"]), (true.into(), 19.into()));
    assert_eq!(line(&race["second"]), (false.into(), 18.into()));
    assert_eq!(hits.len(), 1, "{hits:?}");
    assert_eq!(turned(&place, race), "1\n");
    let text = place.run(&["races", "run.stream"]).stdout;
    let text = String::from_utf8_lossy(&text);
    for line in [
        " changed the key hits of the table counters (",
        ", could have come first\n",
        "        changed in work:hit/1, line 19\n        the other read in work:hit/1, line 18\n",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let without = place
        .run(&["races", "--no-replay", "run.stream", "--all"])
        .stdout;
    let without = String::from_utf8_lossy(&without);
    assert!(
        without.contains(", or an earlier one\n      it could have come first"),
        "{without}"
    );
}

#[test]
fn a_file_that_is_read_when_it_is_written_is_a_race() {
    let program = include_str!("../../ci/races/files.erl");
    let Some((place, printed)) = recorded("files", program) else {
        return;
    };
    assert_eq!(printed, "written\n<<\"new\">>\n");
    let all = found(&place, "accesses");
    let is_of_reader = |race: &&serde_json::Value| {
        race["kind"] == "file" && race["second"]["site"]["function"] == "work:read/0"
    };
    let race = all.iter().find(is_of_reader).expect("a race");
    assert_eq!(race["part"], "\"notes.txt\"");
    // What it reads now is not what it read then.
    let again = follow_turned(&place, race, &["--go-on"]);
    let printed = String::from_utf8_lossy(&again.stdout);
    assert_eq!(printed, "written\n<<>>\n", "{}", errors(&again));
    let text = place.run(&["races", "run.stream"]).stdout;
    let text = String::from_utf8_lossy(&text);
    let line = " changed the file \"notes.txt\" of the file system (";
    assert!(text.contains(line), "{text}");
}

#[test]
fn a_name_that_is_looked_up_before_it_is_registered_is_a_race() {
    let program = include_str!("../../ci/races/registry.erl");
    let Some((place, printed)) = recorded("registry", program) else {
        return;
    };
    assert_eq!(printed, "true\n");
    let all = found(&place, "accesses");
    let is_clerk = |race: &&serde_json::Value| race["kind"] == "name" && race["name"] == "clerk";
    let race = all.iter().find(is_clerk).expect("a race");
    assert_eq!(race["first"]["is_change"], true);
    assert_eq!(turned(&place, race), "false\n");
}

#[test]
fn a_process_that_was_gone_when_it_was_monitored_could_have_been_there() {
    let program = include_str!("../../ci/races/gone.erl");
    let Some((place, printed)) = recorded("gone", program) else {
        return;
    };
    assert_eq!(printed, "noproc\n");
    let all = found(&place, "races");
    let is_gone = |race: &&serde_json::Value| {
        race["is_of_application"] == true && race["taken"] == race["other"]
    };
    let race = all.iter().find(is_gone).expect("a race");
    assert_eq!(turned(&place, race), "oops\n");
    let text = place.run(&["races", "run.stream"]).stdout;
    let text = String::from_utf8_lossy(&text);
    assert!(
        text.contains(", which was gone\n      it could have been there still\n"),
        "{text}"
    );
}

#[test]
fn exit_signals_and_ends_could_have_come_earlier() {
    let program = include_str!("../../ci/races/signals.erl");
    let Some((place, printed)) = recorded("signals", program) else {
        return;
    };
    assert_eq!(printed, "[{done,stopped},normal,told,seen]\n");
    let ends = found(&place, "ends");
    let of = |fate: &str| {
        let is_it =
            |race: &&serde_json::Value| race["fate"] == fate && race["is_of_application"] == true;
        ends.iter().find(is_it).expect("a race")
    };
    assert_eq!(turned(&place, of("ended")), "[stopped,normal,told,seen]\n");
    assert_eq!(
        turned(&place, of("late")),
        "[{done,stopped},stopped,told,seen]\n"
    );
    assert_eq!(
        turned(&place, of("message")),
        "[{done,stopped},normal,failed,seen]\n"
    );
    let messages = found(&place, "races");
    let is_gone =
        |race: &&serde_json::Value| race["other_is"] == "gone" && race["is_of_application"] == true;
    let gone = messages.iter().find(is_gone).expect("a race");
    assert_eq!(
        turned(&place, gone),
        "[{done,stopped},normal,told,noproc]\n"
    );
    let text = place.run(&["races", "run.stream"]).stdout;
    let text = String::from_utf8_lossy(&text);
    for line in [
        "      it could have been gone already\n",
        ", which ended it later, could have come first\n        in work:'-stopped/0-fun-0-'/1, line 12\n",
        " came too late; it could have come first\n        the signal sent in work:'-finished/0-fun-1-'/1, line 20\n",
        " (work:server/0) began to trap exits\n      t",
        ", could have come first, and ended it\n        the signal sent in work:'-server/0-fun-0-'/0, line 30\n",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

/// Of the messages that could have come first, a receive takes those for which it has a clause.
#[test]
fn what_a_receive_has_no_clause_for_is_no_race() {
    let program = "\
-module(work).
-export([main/0]).
main() ->
    process_flag(trap_exit, true),
    Me = self(),
    Pids = [spawn_link(fun() -> Me ! {self(), N}, exit(N) end) || N <- [1, 2, 3]],
    io:format(\"~w~n\", [{[one(Pid) || Pid <- Pids], [any() || _ <- Pids]}]).
one(Pid) ->
    receive {Pid, N} when is_integer(N), N > 0 -> N end.
any() ->
    receive {'EXIT', _, N} = Message when N > 0 -> element(3, Message) after 5000 -> none end.
";
    let Some((place, printed)) = recorded("work", program) else {
        return;
    };
    assert!(printed.starts_with("{[1,2,3],["), "{printed}");
    let all = found(&place, "races");
    let own: Vec<_> = all
        .iter()
        .filter(|race| race["is_of_application"] == true)
        .collect();
    assert!(!own.is_empty(), "the ends come in any order");
    for race in own {
        assert_eq!(race["has_clause"], true, "{race}");
        assert_eq!(race["receive"]["function"], "work:any/0", "{race}");
        let other = turned(&place, race);
        assert!(other.starts_with("{[1,2,3],["), "{other}");
        assert_ne!(other, printed);
    }
}
