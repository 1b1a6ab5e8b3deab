//! Races of small traces, and what their turned logs are.

use proptest::prelude::*;

use super::super::tests::{PREFIX, TRACE, p, parsed, traces};
use super::super::{At, Site, Sites};
use super::*;

fn messages(race: &Race) -> Messages {
    match race.pair {
        Pair::Messages(both) => both,
        Pair::Accesses(_) | Pair::End(_) => panic!("messages race"),
    }
}

/// The races of a trace, each as the receiver's step, what was taken, and the other message.
fn races(text: &str) -> (Races, Vec<String>) {
    let races = parsed(text).races(&Sites::default()).expect("races");
    let line = |race: &Race| {
        let both = messages(race);
        let message = |message: Message| races.trace.message(race.process, &message);
        let taken = both.taken.map_or("timeout".into(), message);
        format!("{} {taken} {}", race.step.index(), message(both.other))
    };
    let lines = races.all.iter().map(line).collect();
    (races, lines)
}

#[test]
fn the_races_of_the_text_are_found_and_turn_into_its_prefix() {
    let (races, lines) = races(TRACE);
    assert_eq!(
        lines,
        [
            "2 l0:1 l0.2:1",
            "2 l0:1 l0.3:1",
            "4 l0.2:1 l0.3:1",
            "7 l0.2:2 l0.3:1"
        ]
    );
    assert_eq!(
        races.turned(&races.all[0]).expect("a log").to_string(),
        PREFIX
    );
}

#[test]
fn what_cannot_come_first_is_no_race() {
    for (why, text) in [
        (
            "it is the answer to what was received",
            "{p0, [spawn(p0.1), receive(l0.1:1), send(l0:1), receive(l0.1:2)]}\n\
             {p0.1, [send(l0.1:1), receive(l0:1), send(l0.1:2)]}",
        ),
        (
            "its sender was made later",
            "{p0, [spawn(p0.1), receive(l0.1:1), spawn(p0.2), receive(l0.2:1)]}\n\
             {p0.1, [send(l0.1:1)]}\n{p0.2, [send(l0.2:1)]}",
        ),
        (
            "its sender knew of it by the end of another process",
            "{p0, [spawn(p0.1), spawn(p0.2), receive(l0.1:1), send(l0:1), receive(l0.2:1)]}\n\
             {p0.1, [send(l0.1:1), receive(l0:1), exit]}\n{p0.2, [receive(t0.2:1, p0.1), send(l0.2:1)]}",
        ),
        (
            "the receive has passed it over",
            "{p0, [spawn(p0.1), spawn(p0.2), deliver(l0.2:1), deliver(l0.1:1), receive(l0.1:1), receive(l0.2:1)]}\n\
             {p0.1, [send(l0.1:1)]}\n{p0.2, [send(l0.2:1)]}",
        ),
        (
            "nobody knows what it comes from",
            "{p0, [spawn(p0.1), receive(l0.1:1), receive(t0:1)]}\n{p0.1, [send(l0.1:1)]}",
        ),
    ] {
        assert_eq!(races(text).1, Vec::<String>::new(), "{why}");
    }
}

#[test]
fn ends_and_time_outs_race_with_messages() {
    let (found, lines) = races(
        "{p0, [spawn(p0.1), spawn(p0.2), timeout, receive(l0.1:1), receive(t0:1, p0.2)]}\n\
         {p0.1, [send(l0.1:1)]}\n{p0.2, [exit]}",
    );
    assert_eq!(
        lines,
        ["2 timeout l0.1:1", "2 timeout t0:1", "4 l0.1:1 t0:1"]
    );
    let steps = "{p0, [spawn(p0.1), spawn(p0.2), timeout, receive(t0:1, p0.2)]}";
    let turned = found.turned(&found.all[2]).expect("a log");
    assert_eq!(turned.line(p(0)), steps);
}

#[test]
fn a_turned_log_has_no_process_that_depends_on_what_was_taken() {
    let (found, lines) = races(
        "{p0, [spawn(p0.1), spawn(p0.2), receive(l0.1:1), spawn(p0.3), receive(l0.2:1)]}\n\
         {p0.1, [send(l0.1:1), load(m, 2)]}\n{p0.2, [send(l0.2:1), miss(m)]}\n{p0.3, [miss(m)]}",
    );
    assert_eq!(lines, ["3 l0.1:1 l0.2:1"]);
    // One miss is left for the load to wait for.
    let turned = "{p0, [spawn(p0.1), spawn(p0.2), receive(l0.2:1)]}\n\
                  {p0.1, [send(l0.1:1), load(m, 1)]}\n{p0.2, [send(l0.2:1), miss(m)]}\n";
    assert_eq!(
        found.turned(&found.all[0]).expect("a log").to_string(),
        turned
    );
}

#[test]
fn places_in_the_code_rank_races() {
    let site = |line, is_of_application| Site {
        function: "m:f/0".into(),
        line,
        is_of_application,
    };
    let trace = parsed(TRACE);
    let sent = |from, number| Message::Sent {
        from: p(from),
        number,
    };
    let mut sites = Sites::default();
    for (message, line) in [
        (sent(0, 1), 1),
        (sent(2, 1), 2),
        (sent(2, 2), 3),
        (sent(3, 1), 3),
    ] {
        sites.insert(At::Receive(p(1), message), site(line, line == 2));
    }
    let told: Vec<_> = trace.clone().races(&sites).expect("races").all;
    let told = told.iter().map(|race| {
        (
            race.step.index(),
            race.is_of_application,
            messages(race).is_same_receive,
        )
    });
    let no = Some(false);
    assert_eq!(
        told.collect::<Vec<_>>(),
        [
            (4, true, no),
            (7, false, Some(true)),
            (2, false, no),
            (2, false, no)
        ]
    );
    // The processes of the trace, at other places.
    let other = parsed(&TRACE.replace("{p0.3, [send(l0.3:1)]}\n", ""));
    let moved = sites.of_other(&trace, &other);
    let receive = At::Receive(p(1), sent(2, 2));
    assert_eq!(moved.get(receive), Some(&site(3, false)));
}

#[test]
fn a_message_that_a_receive_has_no_clause_for_does_not_race() {
    let trace = parsed(TRACE);
    let all = trace.clone().races(&Sites::default()).expect("races").all;
    let [first, second] = [&all[0], &all[1]].map(messages);
    let mut sites = Sites::default();
    let at = At::Receive(p(1), first.taken.expect("a message"));
    sites.insert(
        at,
        Site {
            function: "m:f/0".into(),
            line: 2,
            is_of_application: true,
        },
    );
    sites.insert_clause(at, first.other, false);
    sites.insert_clause(at, second.other, true);
    let left = trace.races(&sites).expect("races").all;
    assert_eq!(left.len(), all.len() - 1);
    assert_eq!(messages(&left[0]).other, second.other);
    assert_eq!(messages(&left[0]).has_clause, Some(true));
}

#[test]
fn who_was_gone_could_have_been_there() {
    let text = "{p0, [spawn(p0.1), receive(t0:1, p0.1, gone), send(l0:1), receive(l0.1:1)]}\n\
                {p0.1, [send(l0.1:1), exit]}";
    let found = parsed(text).races(&Sites::default()).expect("races");
    let gone: Vec<_> = found
        .all
        .iter()
        .filter(|race| messages(race).is_same_message())
        .collect();
    assert_eq!(gone.len(), 1, "{:?}", found.all);
    let turned = "{p0, [spawn(p0.1), receive(t0:1, p0.1)]}\n{p0.1, [send(l0.1:1), exit]}\n";
    assert_eq!(found.turned(gone[0]).expect("a log").to_string(), turned);
    // It has been told of the end.
    let text =
        "{p0, [spawn(p0.1), receive(t0:1, p0.1), receive(t0:2, p0.1, gone)]}\n{p0.1, [exit]}";
    assert_eq!(races(text).1, Vec::<String>::new());
}

#[test]
fn an_exit_signal_comes_from_a_process_that_goes_on() {
    let text =
        "{p0, [spawn(p0.1), receive(t0:1, p0.1), send(l0:1)]}\n{p0.1, [receive(l0:1), exit]}";
    assert_eq!(races(text).1, Vec::<String>::new());
}

#[test]
fn steps_that_wait_for_each_other_are_an_error() {
    let text =
        "{p0, [spawn(p0.1), receive(l0.1:1), send(l0:1)]}\n{p0.1, [receive(l0:1), send(l0.1:1)]}";
    let error = parsed(text).races(&Sites::default()).expect_err("an error");
    assert_eq!(
        error,
        "p0 cannot receive(l0.1:1): what it needs comes after it"
    );
}

proptest! {
    #[test]
    fn every_race_turns_into_a_log_that_can_be(trace in traces()) {
        let races = trace.races(&Sites::default()).expect("races");
        for race in &races.all {
            let turned = races.turned(race).expect("a log");
            prop_assert_eq!(turned.check(), Ok(()));
            prop_assert!(turned.clone().races(&Sites::default()).is_ok());
            let taken = &turned.processes[race.process].steps;
            prop_assert_eq!(taken.last(), Some(&Step::Receive(messages(race).other)));
        }
    }
}
