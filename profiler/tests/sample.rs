//! `beamline doctor`, and what `beamline sample` and `beamline dump` refuse. Whether samples are right, the sampler's own tests
//! find out.

use std::process::{Command, Output};

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
