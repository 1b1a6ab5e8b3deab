//! Which exit signals could have come earlier, and which processes could have been gone.

use super::super::super::tests::{p, parsed};
use super::*;
use SignalKind::{Demonitor, Exit, Kill, Link, Monitor, Normal, Unlink};

/// A signal: its sender, how many steps that one had made itself, what it is, and its receiver.
type Sent = (usize, usize, SignalKind, usize);

/// The races that take signals to be known, each with the log that turns it around.
fn races(text: &str, sent: &[Sent], traps: &[(usize, usize, bool)]) -> Vec<(String, String)> {
    let trace = parsed(text);
    let mut sites = Sites::default();
    for (of, steps, kind, to) in sent.iter().copied() {
        let (of, to) = (p(of), p(to));
        let own = trace.processes[of]
            .steps
            .iter()
            .filter(|step| step.is_own());
        let signal = SentSignal {
            kind,
            to,
            steps,
            is_of_end: own.take(steps).any(Step::is_exit),
            site: None,
        };
        sites.signals.insert(of, signal);
    }
    for (of, steps, traps) in traps {
        sites.signals.insert_traps(p(*of), *steps, *traps);
    }
    let races = trace.races(&sites).expect("races");
    let told = races.all.iter().filter_map(|race| {
        let name = races.trace.name(race.process);
        let what = match race.pair {
            Pair::End(end) => {
                let of = races.trace.name(end.signal.of);
                format!(
                    "{name} {} before {of}",
                    races.trace.act(race.process, end.before)
                )
            }
            Pair::Messages(both) if both.is_same_message() => {
                format!("{name} {}", races.trace.message(race.process, &both.other))
            }
            _ => return None,
        };
        Some((what, races.turned(race).expect("a log").to_string()))
    });
    told.collect()
}

const ENDED: &str = "{p0, [spawn(p0.1), spawn(p0.2)]}\n\
                     {p0.1, [send(l0.1:1), spawn(p0.1.1), spent(9, 9, signal, p0.2), exit]}\n{p0.2, [exit]}";

#[test]
fn a_signal_could_have_ended_a_process_before_its_steps() {
    let of_call = races(ENDED, &[(2, 0, Exit, 1)], &[]);
    let turned = |steps: &str| {
        format!(
            "{{p0, [spawn(p0.1), spawn(p0.2)]}}\n{{p0.1, [{steps}exit(p0.2)]}}\n{{p0.2, [exit]}}\n"
        )
    };
    assert_eq!(
        of_call,
        [(
            "p0.1 spawned p0.1.1 before p0.2".into(),
            turned("send(l0.1:1), ")
        )]
    );
    assert_eq!(
        of_call,
        races(ENDED, &[(2, 1, Exit, 1)], &[]),
        "the end of a linked process sends it"
    );
    let knows = ENDED.replace("{p0.2, [", "{p0.2, [receive(l0.1:1), ");
    assert_eq!(
        races(&knows, &[(2, 0, Exit, 1)], &[]).len(),
        1,
        "it is sent before"
    );
    assert_eq!(
        races(
            &knows.replace(" spawn(p0.1.1),", ""),
            &[(2, 1, Exit, 1)],
            &[]
        ),
        []
    );
    assert_eq!(races(ENDED, &[], &[]), [], "nobody knows where it was sent");
}

#[test]
fn a_signal_that_came_too_late_could_have_come_before_an_end() {
    let text =
        "{p0, [spawn(p0.1), spawn(p0.2)]}\n{p0.1, [send(l0.1:1), exit]}\n{p0.2, [send(l0.2:1)]}";
    let turned = text.replace(", exit]", ", exit(p0.2)]") + "\n";
    let late = ("p0.1 ended before p0.2".to_owned(), turned);
    for (what, sent, traps, is_one) in [
        (
            "it may end the process",
            &[(2, 1, Exit, 1)][..],
            &[][..],
            true,
        ),
        ("it ends nobody", &[(2, 1, Normal, 1)], &[], false),
        (
            "it is a message",
            &[(2, 1, Exit, 1)],
            &[(1, 0, true)],
            false,
        ),
        (
            "it ends who traps exits, too",
            &[(2, 1, Kill, 1)],
            &[(1, 0, true)],
            true,
        ),
        (
            "nothing is trapped any more",
            &[(2, 1, Exit, 1)],
            &[(1, 0, true), (1, 1, false)],
            true,
        ),
        (
            "the link was given up",
            &[(1, 0, Link, 2), (1, 1, Unlink, 2), (2, 1, Exit, 1)],
            &[],
            false,
        ),
    ] {
        let found = races(text, sent, traps);
        assert_eq!(found.first(), Some(&late).filter(|_| is_one), "{what}");
    }
    let told = text.replace("{p0.2, [", "{p0.2, [receive(t0.2:1, p0.1), ");
    assert_eq!(
        races(&told, &[(2, 2, Exit, 1)], &[]),
        [],
        "its sender knows of the end"
    );
    let ended = text.replace(", exit]", ", spent(9, 9, signal, p0), exit]");
    let other = [(0, 2, Exit, 1), (2, 1, Exit, 1)];
    let found = races(&ended, &other, &[]);
    assert_eq!(found.len(), 2, "another signal has ended it: {found:?}");
    assert_eq!(found[1], late);
}

#[test]
fn a_signal_could_have_come_before_exits_were_trapped() {
    let text = "{p0, [spawn(p0.1), spawn(p0.2)]}\n\
                {p0.1, [send(l0.1:1), send(l0.1:2), receive(t0.1:1, p0.2, exit)]}\n{p0.2, [exit]}";
    let turned =
        "{p0, [spawn(p0.1), spawn(p0.2)]}\n{p0.1, [send(l0.1:1), exit(p0.2)]}\n{p0.2, [exit]}\n";
    let race = (
        "p0.1 began to trap exits before p0.2".to_owned(),
        turned.to_owned(),
    );
    assert_eq!(races(text, &[(2, 1, Exit, 1)], &[(1, 1, true)]), [race]);
    assert_eq!(
        races(text, &[(2, 1, Normal, 1)], &[(1, 1, true)]),
        [],
        "it ends nobody"
    );
    let knows = text.replace("[exit]", "[receive(l0.1:2), exit]");
    assert_eq!(races(&knows, &[(2, 2, Exit, 1)], &[(1, 1, true)]), []);
}

#[test]
fn a_process_that_was_monitored_could_have_been_gone() {
    let text = "{p0, [spawn(p0.1), send(l0:1), receive(t0:1, p0.1)]}\n{p0.1, [exit]}";
    let turned = "{p0, [spawn(p0.1), send(l0:1), receive(t0:1, p0.1, gone)]}\n{p0.1, [exit]}\n";
    let race = ("p0 t0:1".to_owned(), turned.to_owned());
    assert_eq!(
        races(text, &[(0, 1, Monitor, 1)], &[]),
        std::slice::from_ref(&race)
    );
    assert_eq!(
        races(text, &[], &[]),
        [],
        "it was monitored when it was made"
    );
    let given_up = [(0, 1, Monitor, 1), (0, 1, Demonitor, 1)];
    assert_eq!(races(text, &given_up, &[]), []);
    let depends = text.replace("[exit]", "[receive(l0:1), exit]");
    assert_eq!(races(&depends, &[(0, 1, Monitor, 1)], &[]), []);
    let behind = races(&depends, &[(0, 2, Monitor, 1)], &[]);
    assert_eq!(behind.len(), 1, "what it depends on was sent before");
    let ends = "{p0.1, [spent(9, 9, signal, p0), exit]}";
    let stopped = text.replace("{p0.1, [exit]}", ends);
    let sent = [(0, 1, Monitor, 1), (0, 1, Exit, 1)];
    assert_eq!(
        races(&stopped, &sent, &[]),
        [],
        "it is stopped behind the monitor"
    );
}
