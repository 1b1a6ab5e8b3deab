//! Nodes talk to each other: what a program prints that starts another node, on OTP 29 and here.

mod daemon;
mod library;
mod place;
mod pty;

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use daemon::Nodes;
use place::errors;
use pty::Terminal;
use rustix::process::{Pid, Signal, kill_process};

/// What an OTP 29 prints for each function of the program.
const MAIN: &str = include_str!("nodes/main.expected");
const AGAIN: &str = include_str!("nodes/again.expected");
const TRACED: &str = include_str!("nodes/traced.expected");
const CUT: &str = include_str!("nodes/cut.expected");
const BUSY: &str = include_str!("nodes/busy.expected");
const REFERRED: &str = include_str!("nodes/referred.expected");
const MALFORMED: &str = include_str!("nodes/malformed.expected");

impl Nodes {
    /// What a call of the program prints, by a node with these arguments.
    fn printed(&self, options: &[&str], node: &[&str], code: &str) -> String {
        let mut arguments = options.to_vec();
        arguments.extend(["--", "erl", "-noshell", "-setcookie", "monster", "-pa", "."]);
        arguments.extend(node);
        let code = format!("nodes:{code}, halt().");
        arguments.extend(["-eval", &code]);
        let output = self.beamline(&arguments).output().expect("it runs");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

#[test]
fn nodes_do_to_each_other_what_otp_says() {
    let Some(nodes) = Nodes::new("nodes", "nodes") else {
        return;
    };
    let name = ["-name", "one@127.0.0.1"];
    assert_eq!(nodes.printed(&["run"], &name, "main()"), MAIN);
    let alone = ["-name", "one@127.0.0.1", "+S", "1"];
    assert_eq!(nodes.printed(&["run"], &alone, "main()"), MAIN);
}

#[test]
fn a_process_may_carry_the_connection() {
    let Some(nodes) = Nodes::new("nodes", "nodes") else {
        return;
    };
    nodes.printed(&["run"], &[], "certificates()");
    let tls = ["-proto_dist", "inet_tls", "-ssl_dist_optfile", "tls.conf"];
    let node: Vec<&str> = tls.into_iter().chain(["-name", "one@127.0.0.1"]).collect();
    assert_eq!(nodes.printed(&["run"], &node, "main()"), MAIN);
}

#[test]
fn senders_that_must_wait_lose_nothing() {
    let Some(nodes) = Nodes::new("nodes", "nodes") else {
        return;
    };
    // The least that a connection may hold.
    let name = ["-name", "one@127.0.0.1", "+zdbbl", "1"];
    assert_eq!(nodes.printed(&["run"], &name, "main()"), MAIN);
}

#[test]
fn a_node_gets_a_name_and_loses_it() {
    let Some(nodes) = Nodes::new("nodes", "nodes") else {
        return;
    };
    assert_eq!(nodes.printed(&["run"], &[], "again()"), AGAIN);
}

#[test]
fn senders_wait_for_a_node_that_stands_still_and_large_messages_let_others_pass() {
    let Some(nodes) = Nodes::new("nodes", "nodes") else {
        return;
    };
    let name = ["-name", "one@127.0.0.1"];
    assert_eq!(nodes.printed(&["run"], &name, "busy()"), BUSY);
    let set = [
        &name[..],
        &["+zdbbl", "2048", "+pad", "true", "+pad", "false"],
    ]
    .concat();
    let less = BUSY.replace("1048576", "2097152");
    assert_eq!(nodes.printed(&["run"], &set, "busy()"), less);
}

#[test]
fn an_unlink_ends_with_its_connection() {
    let Some(nodes) = Nodes::new("nodes", "nodes") else {
        return;
    };
    let name = ["-name", "one@127.0.0.1"];
    assert_eq!(nodes.printed(&["run"], &name, "cut()"), CUT);
}

#[test]
fn who_refers_to_a_node_is_found() {
    let Some(nodes) = Nodes::new("nodes", "nodes") else {
        return;
    };
    for more in [&[][..], &["+S", "1"]] {
        let node = [&["-name", "one@127.0.0.1"], more].concat();
        assert_eq!(nodes.printed(&["run"], &node, "referred()"), REFERRED);
    }
}

#[test]
fn a_halt_waits_for_another_node_as_long_as_it_may() {
    for (flags, options, code) in [
        (&[][..], "[{flush, false}]", 3),
        (&[], "[{flush_timeout, 100}]", 255),
        (&["+zhft", "100"], "[{flush_timeout, 60000}]", 255),
    ] {
        // The other node stands still after the halt, and so its name is not free.
        let Some(nodes) = Nodes::new("nodes", "nodes") else {
            return;
        };
        let node = ["run", "--", "erl", "-noshell", "-setcookie", "monster"];
        let halts = format!("nodes:halted({options}).");
        let program = ["-pa", ".", "-name", "one@127.0.0.1", "-eval", &halts];
        let arguments = [&node, flags, &program].concat();
        let output = nodes.beamline(&arguments).output().expect("it runs");
        assert_eq!(output.status.code(), Some(code), "{options}: {output:?}");
    }
}

#[test]
fn a_connection_ends_with_what_is_no_message() {
    let Some(nodes) = Nodes::new("nodes", "nodes") else {
        return;
    };
    let name = ["-name", "one@127.0.0.1"];
    assert_eq!(nodes.printed(&["run"], &name, "malformed()"), MALFORMED);
}

#[test]
fn a_terminal_has_the_shell_of_another_node() {
    let Some(nodes) = Nodes::new("nodes", "nodes") else {
        return;
    };
    let node = |name| ["run", "--", "erl", "-name", name, "-setcookie", "monster"];
    let idle = ["-noshell", "-eval", "io:format(\"up~n\")."];
    let arguments = [&node("far@127.0.0.1")[..], &idle].concat();
    let mut far = nodes.beamline(&arguments);
    let mut far = far.stdout(Stdio::piped()).spawn().expect("it starts");
    let mut line = String::new();
    let printed = far.stdout.take().expect("a pipe");
    BufReader::new(printed).read_line(&mut line).expect("text");
    assert_eq!(line, "up\n");
    let shell = ["-remsh", "far@127.0.0.1"];
    let arguments = [&node("near@127.0.0.1")[..], &shell].concat();
    let mut terminal = Terminal::start(&nodes.beamline(&arguments));
    terminal.wait_for("(far@127.0.0.1)1> ");
    terminal.types("{node(), node(group_leader())}.\r");
    terminal.wait_for("{'far@127.0.0.1','near@127.0.0.1'}\r\n(far@127.0.0.1)2> ");
    // Its modules complete a name, and its node runs what is asked.
    terminal.types("lists:rever\t");
    terminal.wait_for("se(");
    terminal.types("[1, 2]).\r");
    terminal.wait_for("[2,1]\r\n(far@127.0.0.1)3> ");
    terminal.types("\u{7}");
    terminal.wait_for(" --> ");
    terminal.types("q\r");
    terminal.ends(0);
    assert!(
        far.try_wait().expect("it was started").is_none(),
        "it lives on"
    );
    // The command passes the signal on to the emulator, which a SIGKILL of the command would leave behind.
    kill_process(Pid::from_child(&far), Signal::TERM).expect("it lives");
    far.wait().expect("it ends");
}

#[test]
fn tracers_hear_of_what_crosses_nodes() {
    let Some(nodes) = Nodes::new("nodes", "nodes") else {
        return;
    };
    let name = ["-name", "one@127.0.0.1"];
    assert_eq!(nodes.printed(&["run"], &name, "traced()"), TRACED);
}

#[test]
fn an_order_with_other_nodes_is_refused_by_name() {
    let Some(nodes) = Nodes::new("nodes", "nodes") else {
        return;
    };
    let record = ["record", "--events", "order", "-o", "run.stream", "--"];
    let node = [
        "erl",
        "-noshell",
        "-name",
        "one@127.0.0.1",
        "-eval",
        "halt().",
    ];
    let arguments: Vec<&str> = record.into_iter().chain(node).collect();
    let output = nodes.beamline(&arguments).output().expect("it runs");
    assert!(!output.status.success(), "{output:?}");
    let told = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        errors(&output)
    );
    let why = "a node whose order of messages is recorded, replayed or explored talks to no other";
    assert!(told.contains(why), "{told}");
}
