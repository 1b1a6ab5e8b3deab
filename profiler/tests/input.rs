//! What programs read from descriptors of every kind: those that the system tells of, and those that are always ready.

mod place;

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

use place::{Place, WORK};

/// Counts the lines of standard input.
const LINES: &str = "Count = fun F(N) -> case io:get_line(\"\") of eof -> N; _ -> F(N + 1) end end, \
                     io:format(\"~p lines~n\", [Count(0)]), halt().";

/// Fifty programs that give back what they get, and one that has nothing to say.
const PROGRAMS: &str = "_ = open_port({spawn, \"cat\"}, []), \
    Ports = [open_port({spawn, \"cat\"}, [binary]) || _ <- lists:seq(1, 50)], \
    Round = fun(N) -> [P ! {self(), {command, <<N:32>>}} || P <- Ports], \
                      [receive {P, {data, <<N:32>>}} -> P end || P <- Ports] end, \
    [Ports = Round(N) || N <- lists:seq(1, 20)], \
    io:format(\"~p ports~n\", [length(Ports)]), halt().";

/// Says back each line, while every scheduler has a process that never ends.
const BUSY: &str = "Loop = fun Loop() -> Loop() end, \
    [spawn(Loop) || _ <- lists:seq(1, erlang:system_info(schedulers))], \
    Echo = fun E() -> case io:get_line(\"\") of eof -> halt(); Line -> io:put_chars(Line), E() end end, Echo().";

/// As a program runs, and as it is profiled deterministically.
const VERBS: [&[&str]; 2] = [&["run"], &["profile", "--deterministic"]];

fn command(place: &Place, verb: &[&str], expression: &str) -> Command {
    let erl = ["--", "erl", "-noshell", "-eval", expression];
    let mut command = place.beamline(&[verb, &erl].concat());
    command.stdout(Stdio::piped());
    command
}

/// Runs it to its end; whether it has printed this line.
fn prints(command: &mut Command, line: &str, write: &[&[u8]]) -> bool {
    let mut child = command.spawn().expect("it starts");
    if let Some(mut input) = child.stdin.take() {
        for bytes in write {
            input.write_all(bytes).expect("it reads");
        }
    }
    let output = child.wait_with_output().expect("it ends");
    let text = String::from_utf8_lossy(&output.stdout);
    output.status.success() && text.lines().any(|printed| printed == line)
}

#[test]
fn standard_input_is_read_to_its_end_whatever_it_is() {
    let Some(place) = Place::new(WORK) else {
        return;
    };
    place.write("lines", &"of some length\n".repeat(1000));
    for verb in VERBS {
        let open = |path| File::open(path).expect("it is there");
        let mut lines = command(&place, verb, LINES);
        let of_file = lines.stdin(open(place.file("lines")));
        assert!(prints(of_file, "1000 lines", &[]), "{verb:?}: a file");
        let of_null = lines.stdin(open("/dev/null".into()));
        assert!(prints(of_null, "0 lines", &[]), "{verb:?}: /dev/null");
        let of_pipe = lines.stdin(Stdio::piped());
        let parts: [&[u8]; 3] = [b"a\n", b"b\nc", b"\nd"];
        assert!(prints(of_pipe, "4 lines", &parts), "{verb:?}: a pipe");
    }
}

#[test]
fn many_programs_are_heard() {
    let Some(place) = Place::new(WORK) else {
        return;
    };
    for verb in VERBS {
        let mut programs = command(&place, verb, PROGRAMS);
        assert!(prints(&mut programs, "50 ports", &[]), "{verb:?}");
    }
}

#[test]
fn a_line_is_answered_while_all_schedulers_are_busy() {
    let Some(place) = Place::new(WORK) else {
        return;
    };
    for schedulers in ["1", "2"] {
        let erl = [
            "run", "--", "erl", "+S", schedulers, "-noshell", "-eval", BUSY,
        ];
        let mut busy = place.beamline(&erl);
        let mut child = busy
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut to = child.stdin.take().expect("a pipe");
        let mut from = BufReader::new(child.stdout.take().expect("a pipe"));
        for n in 0..20 {
            if n % 4 == 0 {
                // As long as it takes until nobody looks for lines but the thread that waits for the next one.
                std::thread::sleep(Duration::from_millis(25));
            }
            let (line, mut said) = (format!("{n}\n"), String::new());
            to.write_all(line.as_bytes()).expect("it reads");
            from.read_line(&mut said).expect("it answers");
            assert_eq!(said, line);
        }
        drop(to);
        assert!(child.wait().expect("it ends").success());
    }
}
