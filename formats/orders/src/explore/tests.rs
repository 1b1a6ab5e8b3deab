//! Explorations of small programs, against all their schedules.

mod machine;

use std::collections::{BTreeSet, VecDeque};

use proptest::prelude::*;

use super::*;
use machine::Act::{
    self, Ask, Change, End, Kill, Link, Monitor, Read, Send, Skip, Stop, Take, TakeAfter, Trap,
    Unlink,
};
use machine::{Machine, Program};

/// The logs of all runs of an exploration, and how many runs were impossible. `workers` runs are made at once.
fn explored(program: &Program, workers: usize) -> (Vec<String>, usize) {
    let mut explorer = Explorer::new();
    let (mut logs, mut impossible) = (Vec::new(), 0);
    let mut jobs: VecDeque<Job> = VecDeque::new();
    loop {
        let next = match jobs.len() < workers {
            true => explorer.next_run(),
            false => Next::Wait,
        };
        match next {
            Next::Job(job) => {
                assert_eq!(job.prefix.check(), Ok(()), "{}", job.prefix);
                jobs.push_back(job);
                continue;
            }
            Next::Wait => {}
            Next::Done => return (logs, impossible),
        }
        let job = jobs.pop_front().expect("a run to wait for");
        match Machine::new(program).follow(&job.prefix) {
            None => {
                // An access can always come first.
                assert!(
                    job.turned.is_some(),
                    "{program:?} cannot do\n{}",
                    job.prefix
                );
                explorer.run_infeasible(&job);
                impossible += 1;
            }
            Some((run, log)) => {
                let ran = explorer.run_finished(&job, &run, |_| false);
                assert_eq!(ran, Ok(Ran::New), "{log}behind\n{}", job.prefix);
                logs.push(log);
            }
        }
    }
}

fn check(program: &Program) {
    let all = Machine::new(program).all_logs();
    check_against(program, &all.expect("few states"));
}

/// As [`check`], for a program that may have too many states.
fn check_small(program: &Program) -> Result<(), TestCaseError> {
    let all = Machine::new(program).all_logs();
    prop_assume!(all.is_some(), "too many states");
    all.iter().for_each(|all| check_against(program, all));
    Ok(())
}

/// The logs of an exploration are all that there are, each once.
fn check_against(program: &Program, all: &BTreeSet<String>) {
    for workers in [1, 3] {
        let (logs, _) = explored(program, workers);
        let once: BTreeSet<String> = logs.iter().cloned().collect();
        assert_eq!(
            once.len(),
            logs.len(),
            "an order was run twice: {program:?}"
        );
        let missing: Vec<&String> = all.difference(&once).collect();
        assert!(missing.is_empty(), "{program:?} also does\n{}", missing[0]);
    }
}

/// Each of `n` processes sends a message to the first one, which takes `taken` of them.
fn senders(n: usize, taken: usize) -> Program {
    let sender = vec![Send(0, 0)];
    let mut program = vec![sender; n + 1];
    program[0] = vec![Take(None); taken];
    program
}

#[test]
fn as_many_orders_are_run_as_there_are() {
    for (program, orders) in [
        (vec![vec![]], 1),
        (senders(1, 1), 1),
        (senders(3, 3), 6),
        (senders(5, 5), 120),
        // The others are never looked at.
        (senders(4, 1), 4),
        (senders(4, 2), 12),
        // A time-out, or the message.
        (vec![vec![TakeAfter(None)], vec![Send(0, 0)]], 2),
        // Nobody takes the message: then the receive times out.
        (vec![vec![TakeAfter(Some(1))], vec![Send(0, 0)]], 1),
        // What was sent first to the same process comes first, and so does what caused the other.
        (
            vec![vec![Take(None), Take(None)], vec![Send(0, 0), Send(0, 0)]],
            1,
        ),
        (
            vec![
                vec![Take(None), Take(None)],
                vec![Send(0, 0), Send(2, 0)],
                vec![Take(None), Send(0, 0)],
            ],
            1,
        ),
        // It is there before the receive begins.
        (vec![vec![Send(0, 0), TakeAfter(None)]], 1),
        // The second message of a sender may be taken first where the receive has no clause for the first one.
        (
            vec![
                vec![Take(Some(1)), Take(None)],
                vec![Send(0, 1)],
                vec![Send(0, 0), Send(0, 1)],
            ],
            2,
        ),
        // What is taken last comes before what another sender's first message, which is taken before it, came behind.
        (
            vec![
                vec![Take(Some(1)), Take(None)],
                vec![Send(0, 0), Send(0, 1)],
                vec![Send(0, 0)],
            ],
            2,
        ),
    ] {
        let (logs, _) = explored(&program, 1);
        assert_eq!(logs.len(), orders, "{program:?}");
        check(&program);
    }
}

#[test]
fn what_a_receive_cannot_take_is_tried_once() {
    // The first process takes messages of kind 1 only; those of kind 0 are tried in each state, but not twice.
    let program = vec![
        vec![Take(Some(1)), Take(Some(1))],
        vec![Send(0, 1)],
        vec![Send(0, 1)],
        vec![Send(0, 0)],
    ];
    let (logs, impossible) = explored(&program, 1);
    assert_eq!(logs.len(), 2);
    assert!(impossible <= 3, "{impossible} runs were impossible");
}

#[test]
fn accesses_have_as_many_orders_as_one_can_count() {
    let (get, put) = (Read(Some(1)), Change(Some(1)));
    for (program, orders) in [
        // Reads have no order, and accesses to two keys have none.
        (vec![vec![get], vec![get], vec![get]], 1),
        (vec![vec![put], vec![Change(Some(2))]], 1),
        (vec![vec![put], vec![Change(None)]], 2),
        (vec![vec![put], vec![get]], 2),
        (vec![vec![put], vec![get], vec![get]], 4),
        (vec![vec![put], vec![put], vec![put]], 6),
        // Each writes once it has read: 6 orders of 4 steps, of which those with both reads first are 4 of 2 orders.
        (vec![vec![get, put], vec![get, put]], 4),
        // The message comes after the change, and nothing can come before it.
        (vec![vec![put, Send(1, 0)], vec![Take(None), get]], 1),
        // The reader leaves the message out if it reads what was changed.
        (
            vec![vec![put], vec![Skip(1), Send(2, 0)], vec![TakeAfter(None)]],
            3,
        ),
    ] {
        let (logs, impossible) = explored(&program, 1);
        assert_eq!((logs.len(), impossible), (orders, 0), "{program:?}");
        check(&program);
    }
}

prop_compose! {
    fn act()(to in 0..3_usize, kind in 0..2_u8, what in 0..5_u8) -> Act {
        match what {
            0 | 1 => Send(to, kind),
            2 => Take(None),
            3 => Take(Some(kind)),
            _ => TakeAfter(Some(kind)),
        }
    }
}

#[test]
fn monitors_of_what_ends_have_as_many_orders_as_one_can_count() {
    check(&vec![
        vec![Change(Some(1)), End],
        vec![Change(None), Monitor(0), Take(Some(1)), End],
        vec![Send(1, 1), Change(None), End],
    ]);
    for (program, orders) in [
        // It is monitored, or it is gone.
        (vec![vec![Monitor(1), Take(None), End], vec![End]], 2),
        (vec![vec![Monitor(1), Take(Some(0)), End], vec![End]], 2),
        // Nobody looks.
        (vec![vec![End], vec![End]], 1),
        // It ends when it has been monitored for sure.
        (
            vec![
                vec![Monitor(1), Send(1, 0), Take(None)],
                vec![Take(None), End],
            ],
            1,
        ),
        // It has ended for sure.
        (
            vec![
                vec![Take(None), Take(None)],
                vec![Send(2, 0), End],
                vec![Monitor(1), Take(Some(1)), Send(0, 0)],
            ],
            2,
        ),
        // Two monitor it.
        (
            vec![
                vec![Monitor(2), Take(None)],
                vec![Monitor(2), Take(None)],
                vec![End],
            ],
            4,
        ),
        // What it has sent comes before its end.
        (
            vec![
                vec![Monitor(1), Take(None), Take(None)],
                vec![Send(0, 1), End],
            ],
            2,
        ),
    ] {
        let (logs, _) = explored(&program, 1);
        assert_eq!(logs.len(), orders, "{program:?}");
        check(&program);
    }
}

#[test]
fn exit_signals_have_as_many_orders_as_one_can_count() {
    for (program, orders) in [
        // It ends before its message, or behind it, or by itself: before the signal or behind it.
        (vec![vec![Kill(1), End], vec![Send(0, 0), End]], 4),
        // It waits, and is ended there; nobody sees when.
        (vec![vec![Kill(1), End], vec![Take(None), End]], 1),
        // It takes the message first, or does not.
        (
            vec![
                vec![Kill(2), End],
                vec![Send(2, 0), End],
                vec![Take(None), End],
            ],
            4,
        ),
        // The message was sent behind the signal.
        (
            vec![vec![Kill(1), Send(1, 0), End], vec![Take(None), End]],
            1,
        ),
        // It was sent before.
        (
            vec![vec![Send(1, 0), Kill(1), End], vec![Take(None), End]],
            4,
        ),
        // The time is over first, or not.
        (vec![vec![Kill(1), End], vec![TakeAfter(None), End]], 4),
        // The first signal ends it, in whatever place.
        (vec![vec![Kill(1), Kill(1), End], vec![Send(0, 0), End]], 7),
        // A signal comes to whoever traps exits already, or does not yet.
        (vec![vec![Kill(1), End], vec![Trap, Take(None), End]], 2),
        // One with the reason `normal` is lost to whoever does not trap exits yet.
        (vec![vec![Ask(1), End], vec![Trap, Take(None), End]], 2),
        // So is that of an end, which comes before the link, before the trap, or behind it.
        (vec![vec![Stop], vec![Link(0), Trap, Take(None), End]], 3),
        // It gives up a link that the other one makes: before or behind the end of that one, when it has heard of it in
        // time or not; or before the link, when it hears of it in time or not, or has ended. Or that one has ended
        // before it traps exits.
        (
            vec![
                vec![Trap, Unlink(1), TakeAfter(None), Stop],
                vec![Link(0), Stop],
            ],
            7,
        ),
        // It gives up such a link and does not trap exits: it is ended before the message, behind it, or not at all; or
        // when it has given up nothing.
        (
            vec![
                vec![Take(None), Unlink(1), Stop],
                vec![Link(0), End],
                vec![Send(0, 0), Stop],
            ],
            7,
        ),
        // Two processes link to each other.
        (vec![vec![Link(1), Stop], vec![Link(0), Stop]], 4),
    ] {
        check(&program);
        let (logs, _) = explored(&program, 1);
        assert_eq!(logs.len(), orders, "{program:?}");
    }
}

prop_compose! {
    fn ending_act()(is_monitor in 0..3_u8, other in any_act(), of in 0..3_usize) -> Act {
        match is_monitor {
            0 => Monitor(of),
            _ => other,
        }
    }
}

prop_compose! {
    fn signalling_act()(what in 0..8_u8, other in any_act(), of in 0..3_usize) -> Act {
        match what {
            0 => Kill(of),
            1 => Ask(of),
            2 | 3 => Link(of),
            4 => Unlink(of),
            5 => Monitor(of),
            6 => Trap,
            _ => other,
        }
    }
}

prop_compose! {
    fn any_act()(is_access: bool, other in act(), key in 0..2_u64, what in 0..9_u8) -> Act {
        match what {
            _ if !is_access => other,
            0..3 => Read(Some(key)),
            3..6 => Change(Some(key)),
            6 => Read(None),
            7 => Change(None),
            _ => Skip(key),
        }
    }
}

proptest! {
    #[test]
    fn all_orders_of_random_programs_are_run_once(
        program in proptest::collection::vec(proptest::collection::vec(act(), 0..5), 3),
    ) {
        check_small(&program)?;
    }

    #[test]
    fn all_orders_of_random_programs_with_monitors_are_run_once(
        mut program in proptest::collection::vec(proptest::collection::vec(ending_act(), 0..4), 3),
    ) {
        for (at, acts) in program.iter_mut().enumerate() {
            // Nobody monitors itself.
            acts.retain(|act| *act != Monitor(at));
            acts.push(End);
        }
        check_small(&program)?;
    }

    #[test]
    fn all_orders_of_random_programs_with_exit_signals_are_run_once(
        mut program in proptest::collection::vec(proptest::collection::vec(signalling_act(), 0..4), 3),
        fails in proptest::array::uniform3(any::<bool>()),
    ) {
        for (at, acts) in program.iter_mut().enumerate() {
            // Nobody watches itself.
            acts.retain(|act| match act {
                Monitor(of) | Kill(of) | Ask(of) | Link(of) | Unlink(of) => *of != at,
                _ => true,
            });
            // What a process does already is no change.
            let mut is_trapping = false;
            acts.retain(|act| *act != Trap || !std::mem::replace(&mut is_trapping, true));
            acts.push(if fails[at] { End } else { Stop });
        }
        check_small(&program)?;
    }

    #[test]
    fn all_orders_of_random_programs_with_accesses_are_run_once(
        program in proptest::collection::vec(proptest::collection::vec(any_act(), 0..4), 3),
    ) {
        check_small(&program)?;
    }
}
