//! A program on a terminal, for tests.
#![allow(dead_code, reason = "each test uses some of it")]

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

/// A program on a terminal of its own.
pub(crate) struct Terminal {
    child: Child,
    to: File,
    /// Held open, as the modes of a terminal that nobody has open are lost.
    program_side: OwnedFd,
    printed: Receiver<Vec<u8>>,
    /// What was printed and not asked for yet.
    left: Vec<u8>,
}

impl Terminal {
    /// Starts a command on a terminal of 24 lines and 80 columns.
    pub(crate) fn start(made: &Command) -> Terminal {
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
        let mut command = Command::new("setsid");
        command.args(["--ctty", "--wait"]).arg(made.get_program());
        command.args(made.get_args());
        command.current_dir(made.get_current_dir().expect("it has a folder"));
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
    pub(crate) fn wait_for(&mut self, text: &str) {
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
    pub(crate) fn prints(&mut self, text: &str) {
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

    pub(crate) fn types(&mut self, keys: &str) {
        self.to.write_all(keys.as_bytes()).expect("it is open");
    }

    pub(crate) fn is_raw(&self) -> bool {
        let modes = tcgetattr(&self.program_side).expect("a terminal");
        !modes.local_modes.contains(LocalModes::ICANON)
    }

    /// Waits until the shell reads keys again.
    pub(crate) fn waits_for_raw(&self) {
        while !self.is_raw() {
            std::thread::yield_now();
        }
    }

    /// Waits for the program's end, which has this code and leaves the terminal as it was.
    pub(crate) fn ends(mut self, code: i32) {
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
