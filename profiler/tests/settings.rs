//! What shells, `man`, terminals and `beamline.toml` have to do with the command line.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use beamline_needs::{Need, skipped};

fn beamline(folder: &Path, line: &str, environment: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_beamline"));
    for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
        command.env_remove(name);
    }
    command
        .args(line.split(' '))
        .current_dir(folder)
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .output()
        .expect("it starts")
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

fn printed(line: &str, environment: &[(&str, &str)]) -> String {
    let output = beamline(folder().path(), line, environment);
    assert!(output.status.success(), "{line}: {output:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn every_shell_has_completions() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let text = printed(&format!("completions {shell}"), &[]);
        for word in ["flamegraph", "hide-below"] {
            assert!(text.contains(word), "{shell} knows {word}");
        }
        // Not all shells complete values.
        let has_values = text.contains("call_memory") && text.contains("perfetto");
        assert!(
            has_values || ["elvish", "powershell"].contains(&shell),
            "{shell}"
        );
    }
    let folder = folder();
    let file = folder.path().join("completions");
    fs::write(&file, printed("completions bash", &[])).expect("writable");
    // What bash offers after `beamline expo`.
    let script = "source \"$1\"; COMP_WORDS=(beamline expo); COMP_CWORD=1; _beamline beamline expo beamline; \
                  echo \"${COMPREPLY[@]}\"";
    let output = Command::new("bash")
        .args(["-c", script, "bash"])
        .arg(&file)
        .output();
    match output {
        Ok(output) => assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            "export\n",
            "{output:?}"
        ),
        Err(_) => skipped(Need::Bash, "there is no bash"),
    }
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = folder();
    let output = beamline(folder.path(), "man man1", &[]);
    assert!(output.status.success(), "{output:?}");
    for page in [
        "beamline",
        "beamline-profile",
        "beamline-ci-check",
        "beamline-export",
    ] {
        let path = folder.path().join("man1").join(format!("{page}.1"));
        let text = fs::read_to_string(path).expect(page);
        assert!(text.contains(&format!(".TH {page} 1")), "{page}: {text}");
        assert!(text.contains("no\\-config"), "{page}: {text}");
    }
    assert!(printed("man", &[]).contains(".TH beamline 1"));
}

#[test]
fn the_version_names_the_releases_of_otp() {
    let text = printed("--version", &[]);
    assert_eq!(text.lines().count(), 1);
    assert!(text.starts_with("beamline "), "{text}");
    assert!(
        text.contains("Erlang/OTP 27 or later, tested with 29"),
        "{text}"
    );
}

#[test]
fn a_file_gives_options_their_defaults() {
    let folder = folder();
    let file = folder.path().join("beamline.toml");
    let tell = |line: &str| {
        let output = beamline(folder.path(), line, &[]);
        let text = [output.stdout, output.stderr].concat();
        (
            output.status.code(),
            String::from_utf8(text).expect("UTF-8"),
        )
    };
    fs::write(
        &file,
        "[profile]\ntype = \"call_time\"\n[record]\noutput = \"run.ring\"\n",
    )
    .expect("writable");
    assert!(tell("profile --help").1.contains("[default: call_time]"));
    assert!(
        tell("profile --no-config --help")
            .1
            .contains("[default: call_count]")
    );
    // The file has what the command would otherwise ask for.
    let (_, told) = tell("record --ring 1B -- x.erl");
    assert!(!told.contains("--output"), "{told}");
    let (code, told) = tell("record --no-config --ring 64MiB -- x.erl");
    assert!(code == Some(2) && told.contains("--output"), "{told}");
    for (text, expect) in [
        (
            "[profile]\n\ntpye = \"call_time\"\n",
            "beamline: beamline.toml:3: [profile] has no key tpye; did you mean type?\n",
        ),
        (
            "[profile]\ntype = \"speed\"\n",
            "beamline: beamline.toml:2: invalid value 'speed' for '--type <TYPE>' [possible values: \
             call_count, call_time, call_memory]\n",
        ),
    ] {
        fs::write(&file, text).expect("writable");
        assert_eq!(tell("profile -- x.erl"), (Some(2), expect.to_owned()));
        // Other commands do not need it.
        assert_eq!(tell("--version").0, Some(0));
    }
}

#[test]
fn colour_is_for_who_wants_it() {
    for (environment, is_coloured) in [
        (&[][..], false),
        (&[("CLICOLOR_FORCE", "1")], true),
        (&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], false),
        (&[("CLICOLOR", "0")], false),
    ] {
        let text = printed("--help", environment);
        assert_eq!(text.contains('\u{1b}'), is_coloured, "{environment:?}");
    }
}

#[test]
fn help_fits_a_terminal_of_80_columns() {
    for command in ["", "profile ", "record ", "export ", "histogram "] {
        let text = printed(&format!("{command}--help"), &[("COLUMNS", "80")]);
        let (options, _) = text.split_once("EXAMPLES").expect("there are examples");
        let long = options.lines().find(|line| line.chars().count() > 80);
        assert_eq!(long, None, "{command}");
    }
}
