//! A person at a terminal: the shell edits lines, and Ctrl-C opens its menu.

mod place;

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use place::Place;

/// Keys, and what OTP 29 prints for them.
const SHELL: &str = include_str!("terminal/shell.json");

/// The menu of Ctrl-C.
const MENU: &str = "\r\n\u{1b}[JBREAK: (a)bort (A)bort with dump (c)ontinue (p)roc info (i)nfo\r\n       (l)oaded (v)ersion (k)ill (D)b-tables (d)istribution\r\n";

/// A program on a terminal of its own.
struct Terminal {
    child: Child,
    to: File,
    /// Held open, as the modes of a terminal that nobody has open are lost.
    program_side: OwnedFd,
    printed: Receiver<Vec<u8>>,
    /// What was printed and not asked for yet.
    left: Vec<u8>,
}

impl Terminal {
    /// Starts `beamline` in the place, on a terminal of 24 lines and 80 columns.
    fn start(place: &Place, arguments: &[&str]) -> Terminal {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let side = openpt(flags).expect("a terminal");
        grantpt(&side).expect("it is ours");
        unlockpt(&side).expect("it is ours");
        let size = Winsize {
            ws_row: 24,
            ws_col: 80,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&side, size).expect("a terminal");
        let name = ptsname(&side, Vec::new()).expect("it has a name");
        let name = name.to_str().expect("a path");
        let open = || {
            let mut options = File::options();
            OwnedFd::from(options.read(true).write(true).open(name).expect("there"))
        };
        let program_side = open();
        let made = place.beamline(arguments);
        let mut command = Command::new("setsid");
        command.args(["--ctty", "--wait"]).arg(made.get_program());
        command.args(made.get_args()).current_dir(place.file("."));
        for (key, value) in made.get_envs() {
            match value {
                Some(value) => command.env(key, value),
                None => command.env_remove(key),
            };
        }
        let child = command
            .env("TERM", "xterm")
            .env("LC_ALL", "C.UTF-8")
            .stdin(Stdio::from(open()))
            .stdout(Stdio::from(open()))
            .stderr(Stdio::from(open()))
            .spawn()
            .expect("setsid is there");
        let to = File::from(side);
        let mut from = to.try_clone().expect("a descriptor is free");
        let (sender, printed) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // A terminal whose other side is closed gives an error.
            while let Ok(n) = from.read(&mut bytes) {
                if n == 0 || sender.send(bytes[..n].to_vec()).is_err() {
                    return;
                }
            }
        });
        Terminal {
            child,
            to,
            program_side,
            printed,
            left: Vec::new(),
        }
    }

    fn read(&mut self) {
        let more = self.printed.recv_timeout(Duration::from_secs(120));
        let printed = String::from_utf8_lossy(&self.left).into_owned();
        self.left
            .extend(more.unwrap_or_else(|_| panic!("no more than {printed:?} is printed")));
    }

    /// Waits until this has been printed, whatever was before it.
    fn wait_for(&mut self, text: &str) {
        loop {
            let found = self
                .left
                .windows(text.len())
                .position(|at| at == text.as_bytes());
            if let Some(at) = found {
                self.left.drain(..at + text.len());
                return;
            }
            self.read();
        }
    }

    /// What is printed next is this.
    fn prints(&mut self, text: &str) {
        while self.left.len() < text.len() {
            let common = self.left.iter().zip(text.as_bytes()).all(|(a, b)| a == b);
            assert!(
                common,
                "{:?} in place of {text:?}",
                String::from_utf8_lossy(&self.left)
            );
            self.read();
        }
        let printed: Vec<u8> = self.left.drain(..text.len()).collect();
        assert_eq!(String::from_utf8_lossy(&printed), text);
    }

    fn types(&mut self, keys: &str) {
        self.to.write_all(keys.as_bytes()).expect("it is open");
    }

    fn is_raw(&self) -> bool {
        let modes = tcgetattr(&self.program_side).expect("a terminal");
        !modes.local_modes.contains(LocalModes::ICANON)
    }

    /// Waits until the shell reads keys again.
    fn waits_for_raw(&self) {
        while !self.is_raw() {
            std::thread::yield_now();
        }
    }

    /// Waits for the program's end, which has this code and leaves the terminal as it was.
    fn ends(mut self, code: i32) {
        let status = self.child.wait().expect("it was started");
        assert_eq!(status.code(), Some(code));
        assert!(!self.is_raw());
    }
}

impl Drop for Terminal {
    /// A test that fails leaves no shell behind.
    fn drop(&mut self) {
        let _ = self.child.kill();
    }
}

#[test]
fn the_shell_draws_what_it_draws_in_otp() {
    let Some(place) = Place::new("-module(work).\n") else {
        return;
    };
    let steps: Vec<(String, String)> = serde_json::from_str(SHELL).expect("JSON");
    let mut terminal = Terminal::start(&place, &["run", "--", "erl"]);
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
    let mut terminal = Terminal::start(&place, &profile);
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
