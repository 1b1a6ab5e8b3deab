//! Explorations of programs in which several hear of one end: `ci/explore/heard.erl`.

mod exploration;
mod place;

use exploration::{are_turned_around, explore, programs, told};
use place::errors;

/// What several hear of one end, and what is given up: the orders of each call of `ci/explore/heard.erl`.
#[test]
fn an_end_is_heard_by_each_for_himself() {
    let rows = [
        ("looked_up", 2, Some(("exit", "{{badmatch,"))),
        ("looked_up_monitored", 2, Some(("exit", "{{badmatch,"))),
        ("asked", 2, Some(("exit", "not_heard"))),
        ("asked_server", 2, Some(("exit", "not_heard"))),
        ("limited", 2, None),
        ("limited_and_flushed", 2, None),
        ("limited_and_cancelled", 3, None),
        ("tidied", 3, None),
        ("monitored_again", 4, None),
        ("monitored_twice", 4, None),
        ("told_and_monitored_again", 7, None),
        ("asked_twice", 21, None),
        ("given_up_when_gone", 4, None),
        ("tidied_or_ended", 3, Some(("exit", "timed_out"))),
    ];
    are_turned_around("heard", &rows);
}

/// A message of a monitor that was given up without `flush` could also have come too late.
#[test]
fn what_a_monitor_has_told_that_was_given_up_is_not_turned_around() {
    let Some(place) = programs() else { return };
    let (output, json) = explore(&place, "heard:given_up_and_kept", &["--all"]);
    let (orders, is_all, _) = told(&json);
    assert_eq!((orders, is_all), (2, false), "{}", errors(&output));
    let why = json["not_explored"].to_string();
    assert!(why.contains("without the option flush"), "{why}");
}

/// What is found without time-outs that come early is found with them late, too; and these are not found.
#[test]
fn late_time_outs_find_what_does_not_come_of_early_ones() {
    let Some(place) = programs() else { return };
    for (call, reason) in [
        ("cleaned_up", Some("not_heard")),
        ("asked_server_in_time", Some("not_heard")),
        ("collected", None),
        ("collected_in_table", None),
        ("collected_linked", None),
    ] {
        for workers in ["1", "2", "4"] {
            let options = ["--all", "--late-timeouts", "--workers", workers];
            let (output, json) = explore(&place, &format!("heard:{call}"), &options);
            let found = told(&json).2.into_iter().map(|(_, reason)| reason);
            let found: Vec<String> = found.collect();
            let expected: Vec<&str> = reason.into_iter().collect();
            assert_eq!(found, expected, "{call}: {}", errors(&output));
        }
    }
}

#[test]
fn runs_by_chance_verify_an_exploration() {
    let Some(place) = programs() else { return };
    for call in [
        "heard:asked",
        "heard:looked_up_monitored",
        "heard:limited",
        "heard:told_and_monitored_again",
        "heard:asked_twice",
    ] {
        let (output, json) = explore(&place, call, &["--verify", "200"]);
        assert_eq!(json["complete"], true, "{call}: {json}");
        let told = String::from_utf8_lossy(&output.stdout);
        assert!(told.contains("verified by 200 runs by chance"), "{told}");
    }
}
