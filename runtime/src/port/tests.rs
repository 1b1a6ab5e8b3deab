//! Tests of ports with real programs, which a process opens and talks to. It reports what it hears.
#![expect(unsafe_code, reason = "a message in hand is a raw word")]

use crate::sys::chance::clock::outside_now;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use super::*;
use crate::process::Outcome;
use crate::process::{Process, SpawnOptions, spawn_native};
use crate::term::{Atom, View};

const LONG: Duration = Duration::from_secs(20);

/// A process that traps exits and reports the text of each message.
struct Owner {
    pid: Pid,
    texts: Receiver<String>,
}

impl Owner {
    fn new() -> Owner {
        crate::scheduler::start();
        let (out, texts) = channel::<String>();
        let pid = spawn_native(&SpawnOptions::default(), move |p| {
            p.change_flags(|flags| flags.trap_exit = true);
            loop {
                let message = match p.peek_message() {
                    Ok(Some(message)) => message.raw(),
                    Ok(None) => {
                        p.wait();
                        return Outcome::Wait;
                    }
                    Err(exiting) => return Outcome::Exit(exiting),
                };
                p.remove_message();
                // SAFETY: T1: just attached to this heap.
                let _ = out.send(show(unsafe { Term::new(message) }));
            }
        });
        Owner { pid, texts }
    }

    /// Runs `run` in the process.
    fn run<T: Send + 'static>(&self, run: impl FnOnce(&Process) -> T + Send + 'static) -> T {
        let (out, answer) = channel();
        let signal = Signal::request(move |p: Option<&mut Process>| {
            let _ = out.send(run(p.expect("the process lives")));
        });
        deliver(self.pid, signal);
        answer.recv_timeout(LONG).expect("an answer")
    }

    fn open_sh(&self, script: &str, flags: &'static [&'static str], line: Option<i64>) -> PortId {
        let script = script.to_owned();
        self.run(move |p| {
            let name = p.tuple(&[atom("spawn"), p.string(&script)]);
            let mut options: Vec<_> = flags.iter().map(|flag| atom(flag)).collect();
            if let Some(limit) = line {
                options.push(p.tuple(&[atom("line"), Term::small(limit)]));
            }
            let opened = open::open(p, name, p.list(&options));
            opened.unwrap_or_else(|_| panic!("the port opens"))
        })
    }

    #[track_caller]
    fn hears(&self, expected: &[&str]) {
        for text in expected {
            assert_eq!(self.texts.recv_timeout(LONG).expect("a message"), *text);
        }
    }

    /// The end of `port` was the last that it heard of it.
    fn hears_no_more(&self, port: &Port) {
        // A port that leaves has this lock until all have been told.
        assert!(port.state.lock().gone);
        let mark = Signal::message(atom("mark"), self.pid);
        deliver(self.pid, mark);
        self.hears(&["mark"]);
    }

    fn send(&self, port: PortId, request: &'static str, text: &'static str) {
        let sent = self.run(move |p| {
            let request = match request {
                "command" => p.tuple(&[atom("command"), p.binary(text.as_bytes())]),
                other => atom(other),
            };
            let message = p.tuple(&[p.pid().term(), request]);
            crate::process::send_to(p, port.term(), message).is_ok()
        });
        assert!(sent);
    }
}

/// Messages as text: the port as `P`, binaries and lists as what they say.
fn show(term: Term<'_>) -> String {
    match term.view() {
        View::Atom(atom) => atom.to_string(),
        View::Small(n) => n.to_string(),
        View::Port(_) => "P".into(),
        View::Bits(bits) => String::from_utf8_lossy(&bits.bytes()).into_owned(),
        View::Cons(_) | View::Nil => {
            String::from_utf8(crate::value::iolist::to_vec(term).unwrap()).unwrap()
        }
        View::Tuple(tuple) => {
            let parts: Vec<_> = tuple.elements().iter().map(|e| show(*e)).collect();
            format!("{{{}}}", parts.join(","))
        }
        _ => "_".into(),
    }
}

#[test]
fn a_program_is_heard_to_its_end() {
    let owner = Owner::new();
    owner.open_sh(
        "sh -c 'echo one; echo two >&2'",
        &["stderr_to_stdout"],
        Some(10),
    );
    owner.hears(&[
        "{P,{data,{eol,one}}}",
        "{P,{data,{eol,two}}}",
        "{EXIT,P,normal}",
    ]);
    owner.open_sh(
        "sh -c 'printf x; exit 3'",
        &["binary", "exit_status", "eof"],
        None,
    );
    owner.hears(&["{P,{data,x}}", "{P,{exit_status,3}}", "{P,eof}"]);
    owner.open_sh("printf 'hello\\nworld'", &["exit_status"], Some(3));
    owner.hears(&[
        "{P,{data,{noeol,hel}}}",
        "{P,{data,{eol,lo}}}",
        "{P,{data,{noeol,wor}}}",
        "{P,{exit_status,0}}",
        "{P,{data,{noeol,ld}}}",
        "{EXIT,P,normal}",
    ]);
    let port = owner.open_sh("sh -c 'read x; kill -9 $$'", &["exit_status"], None);
    let last = Port::lookup(port).expect("it waits for a line");
    owner.send(port, "command", "\n");
    owner.hears(&["{P,{exit_status,137}}", "{EXIT,P,normal}"]);
    owner.hears_no_more(&last);
}

#[test]
fn a_program_answers_what_it_is_told() {
    let owner = Owner::new();
    let port = owner.open_sh("cat", &["binary"], None);
    let itself = Port::lookup(port).expect("it waits for a line");
    owner.send(port, "command", "hello");
    owner.hears(&["{P,{data,hello}}"]);
    owner.send(port, "close", "");
    owner.hears(&["{EXIT,P,normal}", "{P,closed}"]);
    owner.hears_no_more(&itself);
    assert!(Port::lookup(port).is_none());
}

#[test]
fn only_its_owner_commands_a_port() {
    let (owner, other) = (Owner::new(), Owner::new());
    let port = owner.open_sh("cat", &["binary"], None);
    other.send(port, "command", "hello");
    other.hears(&["{EXIT,P,badsig}"]);
    owner.send(port, "nonsense", "");
    owner.hears(&["{EXIT,P,badsig}"]);
    let new_owner = other.pid;
    assert!(Port::lookup(port).unwrap().connect(new_owner, true));
    other.send(port, "command", "hello");
    other.hears(&["{P,{data,hello}}"]);
    other.send(port, "close", "");
    other.hears(&["{EXIT,P,normal}", "{P,closed}"]);
    owner.hears(&["{EXIT,P,normal}"]);
}

#[test]
fn a_busy_port_makes_its_caller_wait() {
    let owner = Owner::new();
    let port = owner.open_sh("sh -c 'read x; wc -c'", &["binary"], None);
    let sent = owner.run(move |_| {
        let port = Port::lookup(port).unwrap();
        let chunk = vec![b'x'; 16 * 1024];
        let mut taken = 0;
        while port.command(chunk.clone().into(), Some(Pid(0)), false, || {}) == Ok(()) {
            taken += 1;
            assert!(taken < 1000, "a pipe is not endless");
        }
        assert_eq!(
            port.command(chunk.into(), Some(Pid(0)), false, || {}),
            Err(Refused::Busy)
        );
        // Without a caller it is taken nevertheless.
        assert_eq!(
            port.command(b"\nabc".to_vec().into(), None, false, || {}),
            Ok(())
        );
        taken
    });
    assert!(sent > 1);
    let port = Port::lookup(port).unwrap();
    let deadline = outside_now() + LONG;
    while port.state.lock().queued_bytes > 0 && outside_now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
    }
    let state = port.state.lock();
    assert!(state.queued_bytes == 0 && !state.is_busy && state.waiting.is_empty());
}

#[test]
fn a_port_ends_with_its_owner() {
    let owner = Owner::new();
    let port = owner.open_sh("cat", &[], None);
    owner.run(|p| {
        let _ = p.exit_with(Atom::term(am::kill));
    });
    let deadline = outside_now() + LONG;
    while Port::lookup(port).is_some() && outside_now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(Port::lookup(port).is_none());
}

#[test]
fn what_cannot_be_opened_says_why() {
    let owner = Owner::new();
    let reasons = owner.run(|p| {
        let open = |name: Term<'_>, options: Term<'_>| match open::open(p, name, options) {
            Ok(_) => "opened",
            Err(open::Error::Badarg) => "badarg",
            Err(open::Error::Badopt) => "badopt",
            Err(open::Error::SystemLimit) => "system_limit",
            Err(open::Error::Os(reason)) => reason,
        };
        let file = |path| p.tuple(&[atom("spawn_executable"), p.string(path)]);
        let line_and_packet = [
            p.tuple(&[atom("line"), Term::small(5)]),
            p.tuple(&[atom("packet"), Term::small(2)]),
        ];
        let args = p.tuple(&[atom("args"), Term::NIL]);
        let spawn = p.tuple(&[atom("spawn"), p.string("true")]);
        [
            open(file("/no/such/file"), Term::NIL),
            open(file("/etc/passwd"), Term::NIL),
            open(spawn, p.list(&[atom("nonsense")])),
            open(spawn, p.list(&line_and_packet)),
            open(spawn, p.list(&[args])),
            open(atom("true"), Term::NIL),
        ]
    });
    let expected = ["enoent", "eacces", "badopt", "badopt", "badarg", "badarg"];
    assert_eq!(reasons, expected);
}
