//! Sockets do what they do in OTP.

mod library;
mod place;

/// Runs `main/1` of a module in `net/`, which must print what it prints on OTP 29.
fn prints(module: &str, expected: &str) {
    let Some(place) = library::place_of("net", module) else {
        return;
    };
    let printed = library::run_main(&place, module, &["run"]);
    for (ours, otp) in printed.lines().zip(expected.lines()) {
        assert_eq!(ours, otp);
    }
    assert_eq!(printed.lines().count(), expected.lines().count());
}

#[test]
fn programs_see_of_sockets_what_they_see_in_otp() {
    prints("sockets", include_str!("net/sockets.expected"));
}

#[test]
fn packets_that_are_wrong_end_as_in_otp() {
    prints("hostile", include_str!("net/hostile.expected"));
}

#[test]
fn faults_around_sockets_are_seen_as_in_otp() {
    prints("faults", include_str!("net/faults.expected"));
}
