//! The choices of Algorithm 1, as a receiver makes them.

use super::*;
use crate::process::order::{Sending, Setting};

/// `p3` of Figure 1 as a log, with its parent and the two that send to it.
pub(super) const FIGURE: &str = "\
{p0, [spawn(p0.1), spawn(p0.2), spawn(p0.3), send(l0:1)]}
{p0.1, [receive(l0:1), send(l0.1:1), receive(l0.2:1), receive(l0.2:2), receive(l0.3:1)]}
{p0.2, [send(l0.2:1), receive(l0.1:1), send(l0.2:2)]}
{p0.3, [send(l0.3:1)]}
";

/// Pids of the four, in the order of their places.
pub(super) const PIDS: [Pid; 4] = [Pid(100), Pid(101), Pid(102), Pid(103)];

pub(super) fn plan(text: &str) -> Plan {
    let trace: Trace = text.parse().expect("a trace");
    let plan = Plan::new(trace.with_deliveries(), false, None);
    let followed = PIDS.into_iter().zip((0..).map(ProcessIndex::new));
    plan.indexes.write().extend(followed);
    plan
}

pub(super) fn sent(from: usize, number: u32) -> Source {
    let from = PIDS[from];
    Source::Sent(Sending { from, number })
}

impl Plan {
    fn cursor(&self, process: usize) -> Cursor {
        Cursor::new(&self.trace, ProcessIndex::new(process))
    }

    fn steps_of(&self, cursor: &Cursor) -> &[Recorded] {
        &self.trace.processes[cursor.process].steps
    }

    fn turn_of(&self, cursor: &Cursor) -> ReceiveVerdict {
        cursor.turn(self.steps_of(cursor))
    }

    fn receive(&self, cursor: &mut Cursor, at: usize) -> bool {
        let steps = self.steps_of(cursor);
        cursor.receive(steps, at).is_ok()
    }
}

#[test]
fn without_a_log_a_process_is_traced_and_runs_free() {
    let plan = plan("{p0, [spawn(p0.1), spawn(p0.2), spawn(p0.3)]}");
    let mut cursor = plan.cursor(1);
    assert!(cursor.is_over());
    assert_eq!(plan.turn_of(&cursor), ReceiveVerdict::Free);
    assert_eq!(cursor.make(&plan, Step::Send(1)), Ok(()));
    assert_eq!(cursor.make(&plan, Step::Exit), Ok(()));
}

#[test]
fn a_process_makes_the_steps_of_its_log() {
    let plan = plan(FIGURE);
    let mut cursor = plan.cursor(0);
    assert_eq!(
        cursor.make(&plan, Step::Send(1)),
        Err(Recorded::Spawn(ProcessIndex::new(1)))
    );
    for pid in &PIDS[1..] {
        assert_eq!(cursor.make(&plan, Step::Spawn(*pid)), Ok(()));
    }
    assert_eq!(cursor.make(&plan, Step::Timeout), Err(Recorded::Send(1)));
    assert_eq!(cursor.make(&plan, Step::Send(1)), Ok(()));
    assert!(cursor.is_over());
}

#[test]
fn a_message_waits_for_its_turn() {
    let plan = plan(FIGURE);
    let mut cursor = plan.cursor(1);
    let (l1, l2) = (sent(0, 1), sent(2, 1));
    assert_eq!(plan.turn_of(&cursor), ReceiveVerdict::Due);
    assert!(!plan.is(cursor.due(plan.steps_of(&cursor)).expect("l1"), &l2));
    assert!(cursor.deliver(&plan, &l1, 0));
    // The next one is due behind the next step only.
    assert_eq!(cursor.due(plan.steps_of(&cursor)), None);
    assert_eq!(plan.turn_of(&cursor), ReceiveVerdict::Wait);
    assert!(plan.receive(&mut cursor, 0));
    assert_eq!(cursor.make(&plan, Step::Send(1)), Ok(()));
    assert_eq!(plan.turn_of(&cursor), ReceiveVerdict::Due);
    assert!(cursor.deliver(&plan, &l2, 0));
    assert!(plan.receive(&mut cursor, 0));
}

#[test]
fn another_message_than_the_next_one_is_an_error() {
    let plan = plan(FIGURE);
    let mut cursor = plan.cursor(1);
    assert!(cursor.deliver(&plan, &sent(0, 1), 0));
    assert!(!cursor.deliver(&plan, &sent(3, 1), 1));
    assert!(!plan.receive(&mut cursor, 1));
}

#[test]
fn an_exit_signal_and_the_message_of_a_monitor_are_two_messages() {
    let plan = plan("{p0, [spawn(p0.1), receive(t0:1, p0.1, exit), receive(t0:2, p0.1)]}");
    let mut cursor = plan.cursor(0);
    assert_eq!(cursor.make(&plan, Step::Spawn(PIDS[1])), Ok(()));
    // It has ended before it was monitored, unlike in the recorded run: the monitor's message comes first.
    let of = Some(PIDS[1]);
    let (exit, down) = [(true, false), (false, true)]
        .map(|(is_exit, is_gone)| Source::SystemMessage {
            of,
            is_gone,
            is_exit,
            monitor: None,
        })
        .into();
    let due = cursor.due(plan.steps_of(&cursor)).expect("a message");
    assert!(!plan.is(due, &down));
    assert!(plan.is(due, &exit));
    assert!(cursor.deliver(&plan, &exit, 0));
    assert!(plan.receive(&mut cursor, 0));
    assert!(cursor.deliver(&plan, &down, 0));
    assert!(plan.receive(&mut cursor, 0));
}

#[test]
fn messages_of_timers_are_told_apart() {
    let plan = plan("{p0, [spawn(p0.1), receive(t0:1, s0.1:2), receive(t0:2)]}");
    let mut cursor = plan.cursor(0);
    assert_eq!(cursor.make(&plan, Step::Spawn(PIDS[1])), Ok(()));
    let set = |by, number| Setting { by, number };
    let steps = plan.steps_of(&cursor);
    let due = cursor.due(steps).expect("a message");
    for other in [set(PIDS[1], 1), set(PIDS[0], 2)] {
        assert!(!plan.is(due, &Source::Timer(other)));
        assert_eq!(plan.receiver_of_timer(other), None);
    }
    assert!(!plan.is(due, &Source::NOTICE));
    assert_eq!(
        plan.receiver_of_timer(set(PIDS[1], 2)),
        Some(Receiver::Process(PIDS[0]))
    );
    let timer = Source::Timer(set(PIDS[1], 2));
    assert!(cursor.deliver(&plan, &timer, 0));
    assert!(plan.receive(&mut cursor, 0));
    // A log need not say which timer it is.
    assert!(cursor.deliver(&plan, &Source::Timer(set(PIDS[1], 1)), 0));
}

#[test]
fn a_receive_times_out_where_it_did() {
    let plan = plan("{p0, [spawn(p0.1), timeout, send(l0:1), exit]}");
    let mut cursor = plan.cursor(0);
    assert_eq!(cursor.make(&plan, Step::Spawn(PIDS[1])), Ok(()));
    assert_eq!(plan.turn_of(&cursor), ReceiveVerdict::Timeout);
    assert_eq!(cursor.make(&plan, Step::Timeout), Ok(()));
    assert_eq!(cursor.make(&plan, Step::Send(1)), Ok(()));
    // A process that is to be ended by a signal waits for it.
    assert_eq!(plan.turn_of(&cursor), ReceiveVerdict::Wait);
    assert_eq!(cursor.make(&plan, Step::Exit), Ok(()));
}

#[test]
fn modules_are_missed_and_loaded_in_turn() {
    let (lists, maps) = (Atom::new("lists"), Atom::new("maps"));
    let plan = plan("{p0, [miss(lists), load(lists, 2), exit]}");
    let mut cursor = plan.cursor(0);
    let steps = plan.steps_of(&cursor);
    assert!(cursor.may_miss(steps, lists, true) && !cursor.may_miss(steps, maps, true));
    assert_eq!(cursor.make(&plan, Step::Miss(lists)), Ok(()));
    assert!(!cursor.may_miss(steps, lists, true));
    assert!(!cursor.may_load(steps, [(lists, 1)].into_iter()));
    assert!(cursor.may_load(steps, [(lists, 2)].into_iter()));
    let load = Step::Load {
        module: lists,
        misses: 2,
    };
    assert_eq!(cursor.make(&plan, load), Ok(()));
    assert!(!cursor.may_miss(steps, maps, true));
    assert!(
        cursor.may_miss(steps, maps, false),
        "the log does not say where it ends"
    );
}

#[test]
fn processes_without_a_parent_get_the_numbers_that_others_leave() {
    let text =
        "{p0, [spawn(p0.1), spawn(p0.2)]} % <0.0.0>\n{p0.1, []} % <0.1.0>\n{p0.2, []} % <0.4.0>";
    let plan = plan(text);
    let roots: Vec<_> = (0..5).map(|_| plan.next_root()).collect();
    assert_eq!(
        roots,
        [Some(Pid(0)), Some(Pid(2)), Some(Pid(3)), None, None]
    );
    let without = crate::process::order::replay::tests::plan("{p0, []}");
    assert_eq!(without.next_root(), None);
}

#[test]
fn answers_and_contents_are_found_by_their_places() {
    let text =
        "{p0, [answer(erlang:now/0, 5), content(t0:1, {a, b}), deliver(t0:1), receive(t0:1)]}";
    let plan = plan(text);
    let mut cursor = plan.cursor(0);
    let steps = plan.steps_of(&cursor);
    assert!(matches!(cursor.next(steps), Some(Recorded::Answer { .. })));
    cursor.go_on(steps);
    let due = cursor.due(steps).expect("a message");
    assert!(plan.said_outside(ProcessIndex::new(0), due).is_some());
    assert!(plan.said_outside(ProcessIndex::new(1), due).is_none());
    assert!(cursor.deliver(&plan, &Source::NOTICE, 0));
    assert!(plan.receive(&mut cursor, 0));
}

#[test]
fn ports_have_numbers_of_their_own() {
    for (ports, is_right) in [
        ([1_u64, 2], true),
        ([1, 1], false),
        ([0, 1], false),
        ([1, 1 << 40], false),
    ] {
        let [a, b] = ports;
        let open = |port| format!("answer(erts_internal:open_port/2, {port})");
        let text = format!("{{p0, [{}, {}]}}", open(a), open(b));
        let trace: Trace = text.parse().expect("a trace");
        assert_eq!(identities::check(&trace).is_ok(), is_right, "{text}");
    }
}
