//! Programs with sockets of `gen_tcp` and `gen_udp` do the same in a replay, which opens none.

mod library;
mod place;

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread;

use place::{Place, RECORD_ORDER, errors};

fn ports() -> Option<Place> {
    library::place_of("net", "ports")
}

/// The words of a command that makes a call of the program.
fn call<'a>(options: &[&'a str], code: &'a str) -> Vec<&'a str> {
    let program = ["erl", "-noshell", "-pa", ".", "-eval", code];
    options.iter().copied().chain(program).collect()
}

/// A replay prints what was printed, and finds nothing that differs: it says only what it replays.
fn is_replayed(place: &Place, options: &[&str], recorded: &str) {
    let replayed = place.run(&[&["replay"], options, &["run.stream"]].concat());
    let said = errors(&replayed);
    assert!(replayed.status.success(), "{options:?}: {said}");
    assert_eq!(String::from_utf8_lossy(&replayed.stdout), recorded);
    assert_eq!(said.lines().count(), 1, "{options:?}: {said}");
}

#[test]
fn servers_and_clients_do_the_same_in_a_replay() {
    let Some(place) = ports() else { return };
    let recorded = place.printed(&call(&RECORD_ORDER, "ports:main(), halt()."));
    for line in ["large: {is,2000000}", "refused: {is,{error,econnrefused}}"] {
        assert!(recorded.contains(line), "{recorded}");
    }
    for schedulers in ["1", "2", "5"] {
        is_replayed(&place, &["--schedulers", schedulers], &recorded);
    }
    for engine in ["interpreter", "jit"] {
        is_replayed(&place, &["--engine", engine], &recorded);
    }
}

#[test]
fn a_web_server_and_its_client_do_the_same_in_a_replay() {
    let Some(place) = ports() else { return };
    let recorded = place.printed(&call(&RECORD_ORDER, "ports:web(), halt()."));
    assert!(
        recorded.contains("\"hello\\n\"") && recorded.contains("404"),
        "{recorded}"
    );
    is_replayed(&place, &[], &recorded);
}

/// Asks the server of the program, whose number it has been told.
fn ask(listener: &TcpListener) -> Vec<u8> {
    let (mut told, _) = listener.accept().expect("the program connects");
    let mut number = String::new();
    told.read_to_string(&mut number).expect("a number");
    let number: u16 = number.parse().expect("a port");
    let mut server = TcpStream::connect((Ipv4Addr::LOCALHOST, number)).expect("a server");
    server.write_all(b"question").expect("it reads");
    let mut answer = Vec::new();
    server.read_to_end(&mut answer).expect("it answers");
    answer
}

#[test]
fn a_replay_connects_to_nobody_and_needs_no_client() {
    let Some(place) = ports() else { return };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let number = listener.local_addr().expect("an address").port();
    let code = format!("ports:serves({number}), halt().");
    let recorded = thread::scope(|scope| {
        let client = scope.spawn(|| ask(&listener));
        let recorded = place.printed(&call(&RECORD_ORDER, &code));
        assert_eq!(client.join().expect("no panic"), b"answer to question");
        recorded
    });
    assert_eq!(recorded, "<<\"question\">>\n");
    is_replayed(&place, &[], &recorded);
    listener.set_nonblocking(true).expect("a socket");
    let came = listener.accept().map_err(|error| error.kind());
    assert_eq!(came.map(drop), Err(std::io::ErrorKind::WouldBlock));
}

#[test]
fn what_a_replay_would_send_is_compared() {
    let Some(place) = ports() else { return };
    place.printed(&call(&RECORD_ORDER, "ports:case_of(given_away), halt()."));
    let log = place.printed(&["trace", "--log", "run.stream"]);
    let sends = "answer(erts_internal:port_sends/1, {13, ";
    assert!(log.contains(sends), "{log}");
    let other = log.replacen(sends, "answer(erts_internal:port_sends/1, {14, ", 1);
    place.write("other.log", &other);
    let replay = call(
        &["replay", "other.log", "--"],
        "ports:case_of(given_away), halt().",
    );
    let replayed = place.run(&replay);
    let said = errors(&replayed);
    assert_eq!(replayed.status.code(), Some(1), "{said}");
    let differs = "sends to a socket differs from what it sent in the recorded run";
    assert!(said.contains(differs), "{said}");
}

#[test]
fn a_process_that_runs_free_opens_sockets() {
    let Some(place) = ports() else { return };
    let code = "ports:case_of(once), halt().";
    place.printed(&call(&RECORD_ORDER, code));
    let log = place.printed(&["trace", "--log", "run.stream"]);
    // A process of the machine, which does nothing of the program.
    let prefix = log.lines().find(|line| line.starts_with("{p2, "));
    place.write("prefix.log", prefix.expect("it has steps"));
    let replayed = place.run(&call(&["replay", "prefix.log", "--"], code));
    let printed = String::from_utf8_lossy(&replayed.stdout);
    assert_eq!(printed, "once: {is,20}\n", "{}", errors(&replayed));
}
