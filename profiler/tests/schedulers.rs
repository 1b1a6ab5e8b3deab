//! Schedulers: when one wakes another.

mod library;
mod place;

use place::{Place, errors};

/// Ends when two processes that compute have been on two schedulers at the same time.
const PROGRAM: &str = r#"
-module(work).
-export([main/0]).

main() ->
    Seen = atomics:new(3, []),
    Processes = [spawn_monitor(fun() -> compute(Seen, Mine, 3 - Mine) end) || Mine <- [1, 2]],
    [receive {'DOWN', Monitor, process, Process, normal} -> ok end || {Process, Monitor} <- Processes],
    io:format("shared~n"),
    halt().

compute(Seen, Mine, Other) ->
    Scheduler = erlang:system_info(scheduler_id),
    atomics:put(Seen, Mine, Scheduler),
    IsShared = not lists:member(atomics:get(Seen, Other), [0, Scheduler]),
    IsShared andalso atomics:put(Seen, 3, 1),
    case atomics:get(Seen, 3) of
        1 -> ok;
        0 -> compute(Seen, Mine, Other)
    end.
"#;

#[test]
fn two_that_compute_get_two_schedulers() {
    let Some(place) = Place::new(PROGRAM) else {
        return;
    };
    library::erlc(&place, "work.erl");
    for threshold in ["very_low", "medium", "very_high"] {
        let output = place.run(&[
            "run", "--", "erl", "+S", "2", "+swt", threshold, "+sbwt", "none", "-noshell", "-pa",
            ".", "-run", "work", "main",
        ]);
        assert!(output.status.success(), "{}", errors(&output));
        assert_eq!(String::from_utf8_lossy(&output.stdout), "shared\n");
    }
}

#[test]
fn thresholds_are_checked() {
    let Some(place) = Place::new(PROGRAM) else {
        return;
    };
    for (flag, value, why) in [
        ("+swt", "none", "scheduler wakeup threshold: none"),
        ("+sbwt", "low", "scheduler busy wait threshold: low"),
    ] {
        let output = place.run(&[
            "run", "--", "erl", flag, value, "-noshell", "-eval", "halt().",
        ]);
        assert!(!output.status.success());
        assert!(errors(&output).contains(why), "{}", errors(&output));
    }
}
