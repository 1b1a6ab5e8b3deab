//! Where output goes: files, links, pipes, devices and terminals.

mod made;

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use beamline_needs::{Need, skipped};

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    /// A folder with a recording, `a.ring`.
    fn new() -> Place {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let place = Place { folder };
        made::record(&place.file("a.ring"), 20);
        place
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.file(name)).expect("it was written")
    }

    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.folder.path());
        command.stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = self.command(env!("CARGO_BIN_EXE_beamline"), arguments);
        command.output().expect("it starts")
    }

    fn runs(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    /// The names of all files but the recording.
    fn names(&self) -> Vec<String> {
        let all = fs::read_dir(self.folder.path()).expect("a folder");
        let name = |entry: fs::DirEntry| entry.file_name().into_string().expect("UTF-8");
        let mut all: Vec<_> = all.map(|entry| name(entry.expect("a file"))).collect();
        all.retain(|name| name != "a.ring");
        all.sort();
        all
    }
}

const FOLDED: [&str; 5] = ["export", "a.ring", "--to", "folded", "-o"];

#[test]
fn the_target_of_a_link_is_written_and_the_link_stays() {
    let place = Place::new();
    fs::create_dir(place.file("sub")).expect("writable");
    fs::write(place.file("sub/old"), "old").expect("writable");
    let expect = place.runs(&[&FOLDED[..4], &["-o", "-"]].concat());
    for (link, to, target) in [
        ("there", "sub/old", "sub/old"),
        ("missing", "sub/new", "sub/new"),
        ("twice", "there", "sub/old"),
    ] {
        symlink(to, place.file(link)).expect("writable");
        place.runs(&[&FOLDED[..], &[link]].concat());
        assert!(place.file(link).is_symlink(), "{link}");
        assert_eq!(place.text(target), expect, "{link}");
    }
    assert_eq!(place.names(), ["missing", "sub", "there", "twice"]);
    symlink("circle", place.file("circle")).expect("writable");
    let output = place.run(&[&FOLDED[..], &["circle"]].concat());
    assert_eq!(output.status.code(), Some(1), "{output:?}");
}

#[test]
fn devices_pipes_and_descriptors_are_written_as_they_are() {
    let place = Place::new();
    let expect = place.runs(&FOLDED[..4]);
    assert!(expect.contains("m:fib"), "{expect}");
    for name in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "-"] {
        let to = |to: Stdio| {
            let words = [&FOLDED[..], &[name]].concat();
            let mut command = place.command(env!("CARGO_BIN_EXE_beamline"), &words);
            command.stdout(to).output().expect("it starts")
        };
        let piped = to(Stdio::piped());
        assert_eq!(String::from_utf8_lossy(&piped.stdout), expect, "{name}");
        // What the descriptor's file has stays: the shell has opened it so.
        fs::write(place.file("log"), "first\n").expect("writable");
        let log = File::options().append(true).open(place.file("log"));
        assert!(to(log.expect("writable").into()).status.success());
        assert_eq!(place.text("log"), format!("first\n{expect}"), "{name}");
    }
    let output = place.run(&[&FOLDED[..], &["/dev/stderr"]].concat());
    assert_eq!(String::from_utf8_lossy(&output.stderr), expect);
    place.runs(&[&FOLDED[..], &["/dev/null"]].concat());
    assert!(!Path::new("/dev/null").is_file());
    let made = place.command("mkfifo", &["pipe"]).status();
    assert!(made.is_ok_and(|status| status.success()));
    let cat = place
        .command("cat", &["pipe"])
        .stdout(Stdio::piped())
        .spawn();
    place.runs(&[&FOLDED[..], &["pipe"]].concat());
    let read = cat.and_then(|cat| cat.wait_with_output()).expect("it ends");
    assert_eq!(String::from_utf8_lossy(&read.stdout), expect);
    assert_eq!(place.names(), ["log", "pipe"]);
}

#[test]
fn a_terminal_gets_text_only() {
    let place = Place::new();
    place.runs(&["report", "a.ring", "-o", "a.profile"]);
    for (line, is_text) in [
        ("export a.ring --to perfetto", false),
        ("export a.ring --to pprof -o /dev/stdout", false),
        ("export a.profile --to pprof -o -", false),
        ("report a.profile -o /dev/stdout", false),
        ("export a.ring --to folded", true),
        ("export a.ring --to jsonl -o /dev/stdout", true),
    ] {
        let line = format!("{} {line}", env!("CARGO_BIN_EXE_beamline"));
        // A program of util-linux that gives a command a terminal.
        let script = place
            .command("script", &["-qec", &line, "typescript"])
            .output();
        let Ok(script) = script else {
            return skipped(Need::Script, "there is no program script");
        };
        let shown = String::from_utf8_lossy(&script.stdout);
        assert_eq!(script.status.success(), is_text, "{line}: {shown}");
        let is_told = shown.contains(" is no text for a terminal: give a file");
        assert_eq!(is_told, !is_text, "{line}: {shown}");
        assert!(!shown.contains('\0'), "{line}");
    }
}

#[test]
fn a_recording_is_reported_as_a_profile_is() {
    let place = Place::new();
    let calls = |text: &str| {
        let row = text.lines().find(|line| line.starts_with("m:fib/1"));
        let calls = row.and_then(|row| row.split_whitespace().nth(1));
        calls.map(str::to_owned)
    };
    for options in [
        &["--sort", "calls"][..],
        &["--sort", "function:desc"],
        &["--by", "total"],
        &["--by", "process", "--sort", "calls"],
    ] {
        let text = place.runs(&[&["report", "a.ring"], options].concat());
        assert!(text.starts_with("Nothing was lost.\n"), "{text}");
        assert_eq!(text.matches("FUNCTION ").count(), 1, "{text}");
        assert_eq!(calls(&text), Some("20".into()), "{text}");
    }
    let text = place.runs(&["report", "a.ring", "-o", "a.profile"]);
    assert!(text.contains("m:fib/1"), "{text}");
    let text = place.runs(&["report", "a.profile"]);
    assert_eq!(calls(&text), Some("20".into()), "{text}");
}
