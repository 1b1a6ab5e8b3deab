//! Sockets: `socket`, and `gen_tcp` and `gen_udp` on it.

mod library;
mod place;

use place::{Place, RECORD_ORDER, errors};

/// What an OTP 29 prints for the program.
const PRINTED: &str = include_str!("sockets/sockets.txt");

fn sockets() -> Option<Place> {
    library::place_of("sockets", "sockets")
}

/// The words of a command that makes a call of the program.
fn call<'a>(options: &[&'a str], code: &'a str) -> Vec<&'a str> {
    let program = ["erl", "-noshell", "-pa", ".", "-eval", code];
    options.iter().copied().chain(program).collect()
}

#[test]
fn sockets_do_what_otp_says() {
    let Some(place) = sockets() else { return };
    let all = "sockets:main([]), halt().";
    assert_eq!(place.printed(&call(&["run", "--"], all)), PRINTED);
    let virtually = call(&["run", "--deterministic", "--"], all);
    assert_eq!(place.printed(&virtually), PRINTED);
}

#[test]
fn a_replay_opens_no_connection_and_gives_what_came() {
    let Some(place) = sockets() else { return };
    let echo = "sockets:echo(), halt().";
    let recorded = place.printed(&call(&RECORD_ORDER, echo));
    // The system gives a port by chance.
    assert!(recorded.starts_with("port "), "{recorded}");
    assert_eq!(place.printed(&["replay", "run.stream"]), recorded);
}

#[test]
fn an_exploration_refuses_sockets_by_name() {
    let Some(place) = sockets() else { return };
    let explore = ["explore", "--call", "sockets:fails", "--"];
    let output = place.run(&call(&explore, "ok."));
    let told = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        errors(&output)
    );
    assert!(told.contains("not explored: sockets"), "{told}");
}

#[test]
fn killed_processes_leave_no_socket_open() {
    let Some(place) = sockets() else { return };
    let kills = call(&["run", "--"], "sockets:kills(), halt().");
    assert_eq!(place.printed(&kills), "{0,1,1}\n");
}
