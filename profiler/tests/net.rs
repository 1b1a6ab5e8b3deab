//! Sockets do what they do in OTP.

mod library;
mod place;

use place::Place;

/// A place with the module `sockets`, made ready.
fn sockets() -> Option<Place> {
    library::place_of("net", "sockets")
}

/// What OTP 29 prints of it, but for the names of its functions' clauses.
const EXPECTED: &str = include_str!("net/sockets.expected");

#[test]
fn programs_see_of_sockets_what_they_see_in_otp() {
    let Some(place) = sockets() else { return };
    let printed = library::run_main(&place, "sockets", &["run"]);
    for (ours, otp) in printed.lines().zip(EXPECTED.lines()) {
        assert_eq!(ours, otp);
    }
    assert_eq!(printed.lines().count(), EXPECTED.lines().count());
}
