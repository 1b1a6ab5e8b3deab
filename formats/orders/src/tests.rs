//! Traces as text, as JSON, and what is refused.

use std::path::Path;
use std::sync::Arc;

use beamline_formats::ring::{
    Anchor, Clock, Description, Event, Growing, Id, Label, Recording, Ring, RingOptions, Segment,
    Settings, WhenFull,
};
use proptest::prelude::*;

use super::*;

/// The trace (1) of the text: `p1` is `p0`, and `p3`, `p2`, `p4` are its children, in the order of its spawns.
pub(super) const TRACE: &str = "\
{p0, [spawn(p0.1), spawn(p0.2), spawn(p0.3), send(l0:1)]}
{p0.1, [deliver(l0:1), deliver(l0.2:1), receive(l0:1), send(l0.1:1), receive(l0.2:1), deliver(l0.2:2), deliver(l0.3:1), receive(l0.2:2), receive(l0.3:1)]}
{p0.2, [send(l0.2:1), deliver(l0.1:1), receive(l0.1:1), send(l0.2:2)]}
{p0.3, [send(l0.3:1)]}
";

/// The log (2) of the text.
const LOG: &str = "\
{p0, [spawn(p0.1), spawn(p0.2), spawn(p0.3), send(l0:1)]}
{p0.1, [receive(l0:1), send(l0.1:1), receive(l0.2:1), receive(l0.2:2), receive(l0.3:1)]}
{p0.2, [send(l0.2:1), receive(l0.1:1), send(l0.2:2)]}
{p0.3, [send(l0.3:1)]}
";

/// The prefix (3) of the text.
pub(super) const PREFIX: &str = "\
{p0, [spawn(p0.1), spawn(p0.2), spawn(p0.3), send(l0:1)]}
{p0.1, [receive(l0.2:1)]}
{p0.2, [send(l0.2:1)]}
{p0.3, [send(l0.3:1)]}
";

pub(super) fn parsed(text: &str) -> Trace {
    text.parse().expect("a trace")
}

/// The process at this place.
pub(super) fn p(at: usize) -> ProcessIndex {
    ProcessIndex::new(at)
}

#[test]
fn the_traces_of_the_text_are_read_and_written() {
    for text in [TRACE, LOG, PREFIX] {
        let trace = parsed(text);
        assert_eq!(trace.to_string(), text);
        assert_eq!(trace.check(), Ok(()));
    }
    assert_eq!(parsed(TRACE).log().to_string(), LOG);
}

#[test]
fn a_log_has_its_deliveries_right_before_its_receives() {
    let delivered = parsed(PREFIX).with_deliveries();
    let steps = "{p0.1, [deliver(l0.2:1), receive(l0.2:1)]}";
    assert_eq!(delivered.line(p(1)), steps);
    let trace = parsed(TRACE);
    assert_eq!(trace.clone().with_deliveries().line(p(1)), trace.line(p(1)));
}

#[test]
fn what_is_received_out_of_order_is_delivered_in_order() {
    let log = "{p0, [receive(t0:2, p0.1), receive(l0.1:2), receive(l0.1:1), receive(t0:1, p0.1)]}\n{p0.1, []}";
    let delivered = "{p0, [deliver(t0:1, p0.1), deliver(t0:2, p0.1), receive(t0:2, p0.1), deliver(l0.1:1), \
deliver(l0.1:2), receive(l0.1:2), receive(l0.1:1), receive(t0:1, p0.1)]}";
    assert_eq!(parsed(log).with_deliveries().line(p(0)), delivered);
}

#[test]
fn every_step_is_read_as_it_is_written() {
    let text = "\
{p0, [spawn(p0.1), deliver(t0:1), deliver(t0:2, p0.1), deliver(t0:3, p0.1, gone), deliver(t0:4, nobody, gone), \
deliver(t0:5, p0.1, exit), deliver(t0:6, p0.1, exit, gone), \
receive(t0:3, p0.1, gone), timeout, miss('a module'), load(lists, 7), answer(erlang:now/0, {1, 2, 3}), answer(os:getpid/0, \"17\"), \
answer('Elixir.A:b/1', #00ff), content(t0:4, {#Port<0.5>, {data, <<\"hi\">>}}), spent(7, 8, signal), exit]} % <0.0.0> init
{p0.1, [after(a0.1:3, a0:17), accesses(a0.1:9), lost(p0), spent(17, 0, signal, p0), exit(p0), after(a0.1:10, a0:17)]} % <0.9.7>
{p2, [exit(a0:3)]}
";
    let trace = parsed(text);
    assert_eq!(trace.to_string(), text);
    assert_eq!(trace.check(), Ok(()));
    assert_eq!(trace.processes[p(0)].known_as.as_deref(), Some("init"));
    let pids = [0, 1].map(|at| trace.processes[p(at)].pid);
    assert_eq!(pids, [Some(0), Some(7 << 28 | 9)]);
    assert_eq!(trace.processes[p(1)].known_as, None);
    assert_eq!(
        (trace.select("init"), trace.select("p0.1")),
        (vec![p(0)], vec![p(1)])
    );
    assert_eq!(trace.select("p1"), []);
    let loose = "% a comment\n { p0 , [ spawn( p0.1 ) , % one\n timeout ] }\n\n{p0.1, []}";
    assert_eq!(
        parsed(loose).to_string(),
        "{p0, [spawn(p0.1), timeout]}\n{p0.1, []}\n"
    );
}

#[test]
fn long_chains_of_spawns_have_short_names() {
    let mut trace = parsed("{p0, [spawn(p0.1)]}");
    for at in 1..100 {
        trace.processes[p(at)].steps.push(Step::Spawn(p(at + 1)));
        let (of, number) = (p(at), 1);
        trace.processes.push(Process {
            origin: Origin::Child { of, number },
            pid: (at % 2 == 0).then_some(1 << 28 | at as u64),
            known_as: None,
            steps: Vec::new(),
        });
    }
    assert_eq!(trace.name(p(7)), "p0.1.1.1.1.1.1.1");
    assert_eq!(trace.name(p(100)), "p0.1^100");
    assert_eq!(parsed(&trace.to_string()), trace);
    assert_eq!(trace.check(), Ok(()));
}

#[test]
fn what_is_no_trace_is_refused_with_its_place() {
    for (text, error) in [
        ("p0", "line 1, column 1: '{' is expected"),
        (
            "{q0, []}",
            "line 1, column 2: a process such as p0.4 is expected",
        ),
        (
            "{p0, [\n jump(p0.1)]}",
            "line 2, column 2: a step (spawn, send, deliver, receive, timeout, miss, load, answer, content, after, accesses, \
             lost, hears, collect, spent, exit) is expected",
        ),
        ("{p0, [exit}", "line 1, column 11: ']' is expected"),
        (
            "{p0, [miss('a)]}",
            "line 1, column 12: the end of a quoted atom is expected",
        ),
        (
            "{p0, [load(a)]}",
            "line 1, column 7: another number of arguments of load is expected",
        ),
        (
            "{p0, [answer(erlang:now/0, A)]}",
            "line 1, column 28: a term is expected",
        ),
        ("{p0, [answer(now, 1)]}", "p0 cannot answer(now, 1)"),
        ("{p0, [content(l0:1, 1)]}", "p0 cannot content(l0:1, 1)"),
        ("{p0, []}\n{p0, []}", "p0 has two lists of steps"),
        ("{p0, [send(l0.1:1)]}", "p0 cannot send(l0.1:1)"),
        ("{p0, [receive(l0:0)]}", "p0 cannot receive(l0:0)"),
        ("{p0, [receive(t0.1:1)]}", "p0 cannot receive(t0.1:1)"),
        (
            "{p0, [after(a0.1:1, a0:1)]}",
            "p0 cannot after(a0.1:1, a0:1)",
        ),
        ("{p0, [accesses(l0:1)]}", "p0 cannot accesses(l0:1)"),
        ("{p0, [spent(1, x)]}", "p0 cannot spent(1, x)"),
        ("{p0, [spent(1, 2, kill)]}", "p0 cannot spent(1, 2, kill)"),
        (
            "{p0, [spawn(p0.1^99999999999)]}",
            "p0 cannot spawn(p0.1^99999999999)",
        ),
    ] {
        assert_eq!(text.parse::<Trace>(), Err(error.to_owned()), "{text}");
    }
}

#[test]
fn what_no_run_can_do_is_refused() {
    for (text, error) in [
        (
            "{p0, [spawn(p0.2)]}",
            "p0 cannot spawn(p0.2): another child is the next one",
        ),
        (
            "{p0, [send(l0:2)]}",
            "p0 cannot send(l0:2): another sending is the next one",
        ),
        (
            "{p0, [spawn(p0.1)]}\n{p0.1, [receive(l0:1)]}",
            "p0.1 cannot receive(l0:1): nobody sends this message",
        ),
        (
            "{p0, [send(l0:1), deliver(l0:1), deliver(l0:1)]}",
            "p0 cannot deliver(l0:1): it was delivered before",
        ),
        (
            "{p0, [send(l0:1), receive(l0:1), receive(l0:1)]}",
            "p0 cannot receive(l0:1): it was received before",
        ),
        (
            "{p0, [send(l0:1), send(l0:2), deliver(l0:2), receive(l0:1)]}",
            "p0 cannot receive(l0:1): it has not been delivered",
        ),
        (
            "{p0, [spawn(p0.1), send(l0:1), receive(l0:1)]}\n{p0.1, [receive(l0:1)]}",
            "p0.1 cannot receive(l0:1): it was received before",
        ),
        (
            "{p0, [deliver(t0:1), deliver(t0:1, p0)]}",
            "p0 cannot deliver(t0:1, p0): it was delivered before",
        ),
        (
            "{p0, [receive(l0:1), send(l0:1)]}",
            "p0 cannot receive(l0:1): it sends this message later",
        ),
        (
            "{p0, [send(l0:1), send(l0:2), deliver(l0:2), deliver(l0:1)]}",
            "p0 cannot deliver(l0:1): a later message of the same sender was delivered before",
        ),
        (
            "{p0, [after(a0:4, a0.1:1), accesses(a0:3)]}\n{p0.1, []}",
            "p0 cannot accesses(a0:3): it makes a later access before",
        ),
        (
            "{p0, [after(a0:4, a0:1)]}",
            "p0 cannot after(a0:4, a0:1): it is an access of its own",
        ),
        ("{p0, [exit, timeout]}", "p0 cannot timeout: it has ended"),
        (
            "{p0, [exit, spent(1, 2)]}",
            "p0 cannot spent(1, 2): it has ended",
        ),
        (
            "{p0, [content(t0:1, a), content(t0:1, b)]}",
            "p0 cannot content(t0:1, b): it was another message before",
        ),
        ("{p0, []} % <0.1.0>", "p0 cannot be <0.1.0>"),
        (
            "{p0, [spawn(p0.1)]} % <0.0.0> init\n{p0.1, []} % <0.0.0>",
            "p0.1 cannot be <0.0.0>: p0 is",
        ),
        ("{p0, []}\n{p0.1, [timeout]}", "p0 does not spawn p0.1"),
    ] {
        assert_eq!(parsed(text).check(), Err(error.to_owned()), "{text}");
    }
}

#[test]
fn steps_of_json_are_single_steps_and_its_form_is_free() {
    let file = |step: &str| {
        let text = "{\n  \"schema\": \"beamline-trace\", \"version\": 1,\n \"processes\": ";
        format!("{text}[{{\"process\": \"p0\", \"steps\": [\"{step}\"]}}]}}")
    };
    for step in ["exit]} what", "timeout, exit", "", "jump"] {
        let error = format!("'{step}' is no step of p0");
        assert_eq!(Trace::from_json(&file(step)), Err(error));
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("trace.json");
    std::fs::write(&path, file("exit")).expect("writable");
    assert_eq!(
        Trace::load(&path).expect("a trace").to_string(),
        "{p0, [exit]}\n"
    );
    std::fs::write(&path, "").expect("writable");
    assert!(Trace::load(&path).is_err_and(|error| error.contains("no process")));
}

#[test]
fn json_of_another_format_is_refused() {
    for (text, error) in [
        (
            r#"{"schema": "other", "version": 1, "processes": []}"#,
            "its schema is \"other\", not \"beamline-trace\"",
        ),
        (
            r#"{"schema": "beamline-trace", "version": 9, "processes": []}"#,
            "its version 9 is newer than 1",
        ),
    ] {
        assert_eq!(Trace::from_json(text), Err(error.to_owned()));
    }
}

/// Traces of two processes that send to each other and to themselves, receive what has been sent, and time out.
pub(super) fn traces() -> impl Strategy<Value = Trace> {
    proptest::collection::vec((0..2usize, 0..8u8), 0..60).prop_map(|choices| {
        let mut trace = parsed("{p0, [spawn(p0.1)]}");
        let (mut sent, mut told) = ([0; 2], [0; 2]);
        let mut queues = [Vec::new(), Vec::new()];
        for (me, choice) in choices {
            let steps = &mut trace.processes[p(me)].steps;
            match choice {
                0 => {
                    sent[me] += 1;
                    let (from, number) = (p(me), sent[me]);
                    steps.push(Step::Send(number));
                    let message = Message::Sent { from, number };
                    let to = (me + sent[me] as usize) % 2;
                    trace.processes[p(to)].steps.push(Step::Deliver(message));
                    queues[to].push(message);
                }
                1 => {
                    told[me] += 1;
                    let message = Message::SystemMessage(SystemMessage {
                        number: told[me],
                        of: Some(p(1 - me)),
                        gone: told[me] % 2 == 0,
                        exit: told[me] % 3 == 0,
                        set: Set::monitor(told[me]).filter(|_| told[me] % 3 == 1),
                    });
                    steps.push(Step::Deliver(message));
                    queues[me].push(message);
                }
                2 if !queues[me].is_empty() => steps.push(Step::Receive(queues[me].remove(0))),
                5 => steps.push(Step::Answer {
                    function: "erlang:monotonic_time/0".into(),
                    value: Value::Integer(i64::from(sent[0]) - 7),
                }),
                6 => {
                    told[me] += 1;
                    let told = SystemMessage::of_nobody(told[me]);
                    let value = Value::Term(b"h\x02w\x04datak\0\x02hi".as_slice().into());
                    let number = told.number;
                    steps.push(Step::Content { number, value });
                    steps.push(Step::Deliver(Message::SystemMessage(told)));
                    queues[me].push(Message::SystemMessage(told));
                }
                7 => {
                    told[me] += 1;
                    let message = Message::SystemMessage(SystemMessage {
                        set: Set::timer(p(1 - me), told[me]),
                        ..SystemMessage::of_nobody(told[me])
                    });
                    steps.push(Step::Deliver(message));
                    queues[me].push(message);
                }
                3 => steps.push(Step::Miss("Elixir.Not.There".into())),
                _ => steps.push(Step::Timeout),
            }
        }
        trace
    })
}

proptest! {
    #[test]
    fn a_trace_is_read_as_it_is_written(mut trace in traces()) {
        for (me, process) in trace.processes.iter_mut().enumerate() {
            let other = p(1 - me);
            process.steps.push(Step::Lost(other));
            process.steps.extend(Heard::ALL.map(|(heard, _)| Step::Heard(heard, other)));
            process.steps.push(Step::Collect {
                reductions: 6,
                major: me == 0,
            });
            process.steps.push(Step::Spent(Spent {
                reductions: 7,
                words: 8,
                by_signal: true,
                of: Some(other),
                gone: me == 0,
            }));
        }
        prop_assert_eq!(trace.check(), Ok(()));
        prop_assert_eq!(&parsed(&trace.to_string()), &trace);
        let places: Vec<_> = trace.processes.indexes().collect();
        prop_assert_eq!(&Trace::from_json(&trace.to_json(&places)).expect("JSON"), &trace);
    }
}

#[test]
fn a_replay_stops_at_a_reference() {
    let trace = parsed(&format!("{TRACE}{{p0.3.1, [deliver(t0.3.1:1), receive(t0.3.1:1), after(a0.3.1:4, a0:1), exit]}}\n").replace(
        "{p0.3, [send(l0.3:1)]}",
        "{p0.3, [send(l0.3:1), spawn(p0.3.1)]}",
    ));
    let place = |name: &str| trace.select(name)[0];
    for (text, stop, says) in [
        (
            "l0.2:2",
            Stop::Send {
                from: place("p0.2"),
                number: 2,
            },
            "is about to send(l0.2:2)",
        ),
        // Behind what the file tells: the process has not ended there.
        (
            "l0.2:9",
            Stop::Send {
                from: place("p0.2"),
                number: 9,
            },
            "is about to send(l0.2:9)",
        ),
        (
            "t0.3.1:1",
            Stop::SystemMessage {
                to: place("p0.3.1"),
                number: 1,
            },
            "has got t0.3.1:1 into its queue",
        ),
        (
            "a0.3.1:3",
            Stop::Access {
                of: place("p0.3.1"),
                number: 3,
            },
            "is about to make a0.3.1:3",
        ),
        ("p0.3", Stop::Begin(place("p0.3")), "is about to begin"),
    ] {
        assert_eq!(trace.stop_at(text), Ok(stop), "{text}");
        assert_eq!(trace.stopped(stop), says);
    }
    let behind = Stop::Step(StepAt {
        process: place("p0.2"),
        step: StepIndex::new(1),
    });
    assert_eq!(trace.stopped(behind), "is about to deliver(l0.1:1)");
}

#[test]
fn what_no_run_comes_to_is_no_place_to_stop() {
    let trace =
        parsed("{p0, [spawn(p0.1), send(l0:1)]}\n{p0.1, [send(l0.1:1), accesses(a0.1:4), exit]}\n");
    for (text, why) in [
        ("l0.1:2", "p0.1 ends before: the last one is 1"),
        ("t0.1:1", "p0.1 ends before: the last one is 0"),
        ("a0.1:5", "p0.1 ends before: the last one is 4"),
        ("p0.2", "there is no process p0.2"),
        ("l0.2:1", "there is no process p0.2"),
    ] {
        assert_eq!(trace.stop_at(text), Err(why.to_owned()), "{text}");
    }
    for text in [
        "",
        "l",
        "l0",
        "l0:",
        "l0:0",
        "l0:x",
        "p0:1",
        "p",
        "x0:1",
        "é0:1",
        "l0:99999999999",
    ] {
        let wrong = trace.stop_at(text).expect_err(text);
        assert!(wrong.contains("is neither a reference"), "{wrong}");
    }
}

#[test]
fn nobody_waits_for_what_is_sent_only_behind_that() {
    let circle = "{p0, [spawn(p0.1), spawn(p0.2)]}\n{p0.1, [receive(l0.2:1), send(l0.1:1)]}\n{p0.2, [receive(l0.1:1), send(l0.2:1)]}\n";
    let wrong = "p0.1 cannot receive(l0.2:1): the message is sent only behind that";
    assert_eq!(parsed(circle).check(), Err(wrong.to_owned()));
    let other = circle.replace(
        "receive(l0.1:1), send(l0.2:1)",
        "send(l0.2:1), receive(l0.1:1)",
    );
    assert_eq!(parsed(&other).check(), Ok(()));
    let of_child = "{p0, [receive(l0.1:1), spawn(p0.1)]}\n{p0.1, [send(l0.1:1)]}\n";
    let wrong = "p0 cannot receive(l0.1:1): the message is sent only behind that";
    assert_eq!(parsed(of_child).check(), Err(wrong.to_owned()));
}

/// An empty recording of the order of messages, with two segments to write to.
fn ring_for_order(path: &Path) -> Arc<Ring> {
    let options = RingOptions {
        schedulers: 2,
        ring_bytes: 1 << 18,
        when_full: WhenFull::Stop,
        token: 77,
        clock: Clock {
            counter: false,
            ns_per_4g: 1 << 32,
            anchor: Anchor::default,
            unix_ns: 5,
        },
        description: Description {
            settings: Settings {
                events: vec!["order".into()],
                ..Settings::default()
            },
            ..Description::default()
        },
    };
    Ring::create(path, &options).expect("the ring is made")
}

/// Begins a record of this process that grows.
fn begin_growing(segment: &mut Segment, who: Id) -> Growing {
    let begun = segment.write_growing(None, || 9, who);
    begun.expect("there is room")
}

#[test]
fn messages_that_are_told_of_together_are_steps_one_by_one() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("a.ring");
    let ring = ring_for_order(&path);
    let [mut one, mut other] = [0, 1].map(|at| ring.segment(at).expect("free"));
    let (ping, pong) = (Id::Process(1), Id::Process(2));
    let label = |from, number| Label { from, number };
    one.write(1, ping, &Event::OrderSpawn { child: pong });
    other.write(2, pong, &Event::OrderTake { label: label(1, 1) });
    one.write(3, ping, &Event::OrderSendTake { label: label(2, 1) });
    other.write(4, pong, &Event::OrderSendTake { label: label(1, 2) });
    let mut pings = begin_growing(&mut one, ping);
    let mut pongs = begin_growing(&mut other, pong);
    assert!(one.grow(&mut pings) && other.grow(&mut pongs));
    one.write(9, ping, &Event::OrderTimeout {});
    let text = "{p1, [spawn(p1.1), send(l1:1), deliver(l1.1:1), receive(l1.1:1), send(l1:2), deliver(l1.1:2), receive(l1.1:2), \
                send(l1:3), deliver(l1.1:3), receive(l1.1:3), timeout, send(l1:4)]}
{p1.1, [deliver(l1:1), receive(l1:1), send(l1.1:1), deliver(l1:2), receive(l1:2), send(l1.1:2), deliver(l1:3), receive(l1:3), \
 send(l1.1:3), deliver(l1:4), receive(l1:4)]}";
    let recording = Recording::open(&path).expect("the recording is read");
    let expected: Trace = text.parse().expect("a trace");
    let read = Trace::of(&recording).expect("the order is whole");
    let steps =
        |trace: &Trace| -> Vec<_> { trace.processes.iter().map(|it| it.steps.clone()).collect() };
    assert_eq!(steps(&read), steps(&expected));
}
