//! Races of recorded runs, and runs in which one of them is turned around.

mod place;

use std::fs;

use place::{Place, errors};

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
    let record = ["record", "--events", "order", "-o", "run.stream", "--"];
    let first = place.run(&[&record[..], &["work.erl"]].concat());
    assert_eq!(first.stdout, b"[early,late]\n", "{}", errors(&first));
    let found = place.run(&["races", "run.stream"]);
    let text = String::from_utf8_lossy(&found.stdout);
    assert_eq!(errors(&found), "");
    for line in [
        "        received in work:all/1, line 12 or later; it took the other one later\n",
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
