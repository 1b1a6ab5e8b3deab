//! A person at a terminal: the shell edits lines, and Ctrl-C opens its menu.

mod place;
mod pty;

use place::Place;
use pty::Terminal;

/// Keys, and what OTP 29 prints for them.
const SHELL: &str = include_str!("terminal/shell.json");

/// The menu of Ctrl-C.
const MENU: &str = "\r\n\u{1b}[JBREAK: (a)bort (A)bort with dump (c)ontinue (p)roc info (i)nfo\r\n       (l)oaded (v)ersion (k)ill (D)b-tables (d)istribution\r\n";

#[test]
fn the_shell_draws_what_it_draws_in_otp() {
    let Some(place) = Place::new("-module(work).\n") else {
        return;
    };
    let steps: Vec<(String, String)> = serde_json::from_str(SHELL).expect("JSON");
    let mut terminal = Terminal::start(&place.beamline(&["run", "--", "erl"]));
    terminal.wait_for("1> ");
    for (keys, printed) in &steps {
        terminal.types(keys);
        terminal.prints(printed);
    }
    assert!(terminal.is_raw());
    terminal.types("halt(3).\r");
    terminal.wait_for("halt(3).\r\n");
    terminal.ends(3);
}

#[test]
fn a_profile_is_written_behind_the_menu_of_an_interrupt() {
    let Some(place) = Place::new("-module(work).\n") else {
        return;
    };
    let profile = [
        "profile",
        "--pattern",
        "lists:seq",
        "-o",
        "a.profile",
        "--",
        "erl",
    ];
    let mut terminal = Terminal::start(&place.beamline(&profile));
    terminal.wait_for("1> ");
    terminal.types("lists:seq(1, 3).\r");
    terminal.wait_for("[1,2,3]\r\n2> ");
    // It goes on, however often the menu is opened.
    for _ in 0..3 {
        terminal.types("\u{3}");
        terminal.wait_for(MENU);
        assert!(!terminal.is_raw());
        terminal.types("c\n");
        terminal.waits_for_raw();
    }
    terminal.types("4.\r");
    terminal.wait_for("\r\n4\r\n3> ");
    terminal.types("\u{3}");
    terminal.wait_for(MENU);
    terminal.types("v\n");
    terminal.wait_for("emulator version");
    terminal.waits_for_raw();
    terminal.types("\u{3}");
    terminal.wait_for(MENU);
    terminal.types("a\n");
    terminal.wait_for("lists:seq/2");
    terminal.ends(0);
    assert!(place.file("a.profile").exists());
}
