//! Calls in all orders of their messages and accesses: how many there are, what is found, and what cannot be explored.

mod exploration;
mod place;

use std::fs;

use exploration::{COMMAND, are_turned_around, explore, explore_whole, explored, programs, told};
use place::{Place, errors};
use serde_json::Value;

#[test]
fn there_are_as_many_orders_as_one_can_count() {
    let Some(place) = programs() else { return };
    for (call, orders) in [
        ("one", 1),
        ("three", 6),
        ("five", 120),
        ("first", 4),
        ("twenty", 1),
        ("timeout", 2),
        ("pairs", 4),
    ] {
        for workers in ["1", "2"] {
            let (output, json) = explore(
                &place,
                &format!("orders:{call}"),
                &["--all", "--workers", workers],
            );
            assert_eq!(
                told(&json),
                (orders, true, vec![]),
                "{call}: {}",
                errors(&output)
            );
            assert_eq!(output.status.code(), Some(0));
        }
    }
}

#[test]
fn what_processes_did_that_wait_for_ever_is_turned_around() {
    let Some(place) = programs() else { return };
    let (output, json) = explore(&place, "found:two_philosophers", &["--all"]);
    let (orders, complete, findings) = told(&json);
    // Each has its left fork, or one of them has both first.
    assert_eq!((orders, complete), (3, true), "{}", errors(&output));
    assert_eq!(findings.len(), 1, "{json}");
}

#[test]
fn what_fails_in_some_order_is_found_and_happens_again() {
    let Some(place) = programs() else { return };
    for (call, options, kind, reason) in [
        ("deposits", &[][..], "exit", "{{badmatch,1},"),
        ("two_philosophers", &[], "deadlock", "found:'-dine/1-"),
        ("crash", &[], "exit", "{{badmatch,{first,2}},"),
        ("spin", &["--reductions", "100000"], "livelock", ""),
        ("left", &["--leaks"], "leak", "found:'-left/0-"),
        ("late", &[], "exit", "too_late"),
        ("halts", &[], "exit", "erlang:halt(7)"),
        ("order", &["--same-result"], "result", "[2,1]"),
        ("apart", &[], "exit", "{{badmatch,[{count,1}]},"),
    ] {
        let (output, json) = explore(
            &place,
            &format!("found:{call}"),
            &[options, &["-o", "found"]].concat(),
        );
        let (_, complete, findings) = told(&json);
        assert!(complete, "{call}: {json}{}", errors(&output));
        assert_eq!(findings.len(), 1, "{call}: {json}");
        assert_eq!(findings[0].0, kind, "{call}");
        assert!(
            findings[0].1.starts_with(reason),
            "{call}: {}",
            findings[0].1
        );
        assert_eq!(output.status.code(), Some(3), "{call}");
        let check = place.run(&[&["explore", "--check", "found"], options].concat());
        assert_eq!(check.status.code(), Some(3), "{call}: {check:?}");
        let again = place.run(&["replay", "found/finding-1.prefix"]);
        assert_eq!(again.status.code(), Some(3), "{call}: {again:?}");
    }
}

#[test]
fn whole_programs_are_run_in_every_order() {
    let Some(place) = programs() else { return };
    for (function, orders, options, found) in [
        (
            "counter",
            4,
            &[][..],
            Some(("exit", "{{badmatch,[{count,1}]},")),
        ),
        ("waits", 1, &[], Some(("deadlock", "whole:waits/0"))),
        ("halts", 2, &[], Some(("exit", "erlang:halt(3)"))),
        ("halts", 2, &["--expect", "erlang:halt(3)"], None),
        (
            "order",
            2,
            &["--same-result"],
            Some(("result", "\"[2,1]\\n\"")),
        ),
        ("prints", 2, &["--same-result"], None),
        ("late", 1, &[], Some(("exit", "oops"))),
        ("reads", 1, &[], None),
        ("server", 1, &[], None),
    ] {
        for workers in ["1", "2"] {
            let options = [&["--workers", workers, "-o", "found"], options].concat();
            let (output, json) = explore_whole(&place, function, &options);
            let (made, complete, findings) = told(&json);
            assert!(complete, "{function}: {json}{}", errors(&output));
            assert_eq!(made, orders, "{function}: {json}");
            let (kinds, reasons): (Vec<String>, Vec<String>) = findings.into_iter().unzip();
            assert_eq!(
                kinds,
                Vec::from_iter(found.map(|(kind, _)| kind)),
                "{function}"
            );
            assert!(
                reasons.iter().all(|reason| {
                    found.is_some_and(|(_, expected)| reason.starts_with(expected))
                }),
                "{function}: {reasons:?}"
            );
            assert_eq!(
                output.status.code(),
                Some(if found.is_some() { 3 } else { 0 })
            );
        }
        if found.is_some() {
            let check = place.run(&[&["explore", "--check", "found"], options].concat());
            assert_eq!(check.status.code(), Some(3), "{function}: {check:?}");
        }
    }
    // Without the end of the emulator, nothing ends the program.
    let program = ["-s", "whole", "left_waiting"];
    let (_, json) = explored(&place, &[&COMMAND[..], &program].concat());
    let (orders, complete, findings) = told(&json);
    assert_eq!((orders, complete, findings.len()), (2, true, 1), "{json}");
    assert_eq!(findings[0].0, "deadlock");
    let (_, json) = explore_whole(&place, "outside", &[]);
    let (_, complete, findings) = told(&json);
    assert!(!complete && findings.is_empty(), "{json}");
    let (_, json) = explore_whole(
        &place,
        "counter",
        &["--strategy", "pct", "--runs", "100", "-o", "found"],
    );
    assert_eq!(told(&json).2.len(), 1, "{json}");
}

/// What a chart's script reads.
fn chart(place: &Place, file: &str) -> Value {
    let page = fs::read_to_string(place.file(file)).expect("a chart");
    let (_, data) = page.split_once("id=\"data\">").expect("it has data");
    let (data, _) = data.split_once("</script>").expect("they end");
    serde_json::from_str(data).expect("JSON")
}

#[test]
fn each_finding_has_a_chart_of_its_run() {
    let Some(place) = programs() else { return };
    // Each of two requests of two clients, the two of the first process, their answers, and two ends.
    for (call, messages, reason) in [
        ("deposits", 12, "exits with {{badmatch,1},"),
        ("counter", 2, "exits with {{badmatch,[{count,1}]},"),
    ] {
        let (output, _) = explore(&place, &format!("found:{call}"), &["-o", "found"]);
        assert_eq!(output.status.code(), Some(3));
        let chart = chart(&place, "found/finding-1.html");
        let notice = chart["notice"]["text"].as_str().expect("what was found");
        assert!(notice.contains(reason), "{notice}");
        let ns = chart["messages"]["ns"].as_array().expect("messages");
        assert_eq!(ns.len(), messages, "{call}: {}", chart["messages"]);
        // Each was seen to be sent and to come.
        assert!(
            ns.iter().all(|ns| ns.as_i64().is_some_and(|ns| ns > 0)),
            "{call}: {ns:?}"
        );
        let races = chart["races"]["all"].as_array().expect("races");
        assert!(!races.is_empty(), "{call}: {}", chart["races"]);
    }
    let (output, _) = explore(&place, "orders:one", &["-o", "found"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(
        !place.file("found/finding-1.html").exists(),
        "it is of another exploration"
    );
}

#[test]
fn the_finding_of_a_whole_program_happens_again_with_what_it_prints() {
    let Some(place) = programs() else { return };
    let (output, _) = explore_whole(&place, "order", &["--same-result", "-o", "found"]);
    assert_eq!(output.status.code(), Some(3));
    let again = place.run(&["replay", "found/finding-1.prefix"]);
    assert_eq!(again.status.code(), Some(3), "{again:?}");
    assert_eq!(String::from_utf8_lossy(&again.stdout), "[2,1]\n");
}

/// More reductions than a run can make.
const ENDLESS: &str = "1000000000000000";

#[test]
fn the_time_of_an_exploration_ends_a_run_in_its_middle() {
    let Some(place) = programs() else { return };
    let options = ["--reductions", ENDLESS, "--time", "500ms"];
    for strategy in ["dpor", "random"] {
        let options = [&options[..], &["--strategy", strategy]].concat();
        let (output, json) = explore_whole(&place, "slow", &options);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert_eq!(told(&json), (0, false, vec![]), "{json}");
    }
}

#[test]
fn a_run_whose_emulator_is_killed_is_said_and_the_others_are_made() {
    let Some(place) = programs() else { return };
    for strategy in ["dpor", "random"] {
        let options = [
            "--strategy",
            strategy,
            "--runs",
            "20",
            "--reductions",
            ENDLESS,
        ];
        let (output, json) = explore_whole(&place, "killed", &options);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let (_, complete, findings) = told(&json);
        assert!(!complete && findings.is_empty(), "{json}");
        assert_eq!(
            json["not_explored"][0], "runs that end the emulator by signal 9",
            "{json}"
        );
    }
    let (output, _) = explore_whole(&place, "killed_first", &["--reductions", ENDLESS]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(
        errors(&output),
        "beamline: the emulator of the first run ended by signal 9, and told nothing\n"
    );
}

/// Each seed makes the same runs, whoever makes them; what they find is found again behind the order of their run.
#[test]
fn runs_by_chance_find_what_fails_and_it_happens_again() {
    let Some(place) = programs() else { return };
    for (strategy, call, kind, reason) in [
        ("random", "crash", "exit", "{{badmatch,{first,2}},"),
        ("pct", "counter", "exit", "{{badmatch,[{count,1}]},"),
        ("pos", "counter", "exit", "{{badmatch,[{count,1}]},"),
        ("random", "withheld", "exit", "{{badmatch,second},"),
        ("pct", "withheld", "exit", "{{badmatch,second},"),
        ("pos", "two_philosophers", "deadlock", "found:'-dine/1-"),
        ("pct", "deep", "exit", "interrupted"),
    ] {
        let call = format!("found:{call}");
        let of = |workers| {
            let options = ["--strategy", strategy, "--seed", "17", "--depth", "3"];
            let limits = ["--runs", "200", "-o", "found", "--workers", workers];
            let (output, mut json) = explore(&place, &call, &[&options[..], &limits].concat());
            assert_eq!(
                output.status.code(),
                Some(3),
                "{strategy} {call}: {output:?}"
            );
            json["time_ns"] = Value::Null;
            json
        };
        let json = of("2");
        assert_eq!(json, of("1"), "{strategy} {call}");
        let (_, complete, findings) = told(&json);
        assert!(!complete && json["runs"] == 200, "{json}");
        assert_eq!(findings.len(), 1, "{strategy} {call}: {json}");
        assert_eq!(findings[0].0, kind, "{strategy} {call}");
        assert!(
            findings[0].1.starts_with(reason),
            "{strategy} {call}: {json}"
        );
        let check = place.run(&["explore", "--check", "found"]);
        assert_eq!(check.status.code(), Some(3), "{strategy} {call}: {check:?}");
    }
}

#[test]
fn all_there_are_is_known_without_chance_only() {
    let Some(place) = programs() else { return };
    for strategy in ["pct", "pos", "random"] {
        let (output, _) = explore(&place, "orders:one", &["--strategy", strategy, "--all"]);
        assert_eq!(output.status.code(), Some(2));
        assert_eq!(
            errors(&output),
            "beamline: --all makes all runs that there are, which only --strategy dpor knows\n"
        );
    }
    let (output, _) = explore_whole(&place, "server", &["--leaks"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        errors(&output).starts_with("beamline: --leaks finds"),
        "{output:?}"
    );
}

#[test]
fn a_mended_program_passes_the_check_of_its_findings() {
    let Some(place) = programs() else { return };
    let (output, _) = explore(&place, "found:crash", &["-o", "found"]);
    assert_eq!(output.status.code(), Some(3));
    place.write(
        "found.erl",
        "-module(found).\n-export([crash/0]).\ncrash() ->\n    Me = self(),\n    \
        [spawn(fun() -> Me ! I end) || I <- [1, 2]],\n    receive _ -> ok end.\n",
    );
    place.printed(&["run", "--", "erlc", "-o", "ebin", "found.erl"]);
    let check = place.run(&["explore", "--check", "found"]);
    assert_eq!(check.status.code(), Some(0), "{check:?}");
    assert!(
        String::from_utf8_lossy(&check.stdout).contains("gone"),
        "{check:?}"
    );
}

#[test]
fn programs_of_the_literature_have_the_same_orders_on_each_engine() {
    let Some(place) = programs() else { return };
    for (call, kinds) in [
        ("readers_two", &[][..]),
        ("lastzero", &[]),
        ("indexer", &[]),
        ("filesystem", &[]),
        ("airline", &["exit"]),
        ("airline_mended", &[]),
        ("purchase", &["exit"]),
        ("ring", &[]),
        ("philosophers", &["deadlock"]),
        ("philosophers_ordered", &[]),
        ("chain", &["deadlock"]),
        ("chain_mended", &[]),
    ] {
        let call = format!("literature:{call}");
        let of = |engine| {
            let (output, json) = explore(&place, &call, &["--all", "--engine", engine]);
            let (orders, complete, findings) = told(&json);
            assert!(complete, "{call}: {json}{}", errors(&output));
            let found: Vec<String> = findings.into_iter().map(|(kind, _)| kind).collect();
            assert_eq!(found, kinds, "{call}");
            orders
        };
        assert_eq!(of("interpreter"), of("jit"), "{call}");
    }
}

#[test]
fn functions_that_are_first_compiled_in_a_run_are_no_other_runs() {
    let Some(place) = programs() else { return };
    for workers in ["1", "4"] {
        let (output, json) = explore(&place, "compiled:run", &["--workers", workers]);
        assert_eq!(told(&json), (6, true, vec![]), "{}", errors(&output));
    }
}

#[test]
fn breakpoints_that_are_set_in_a_run_are_no_other_runs() {
    let Some(place) = programs() else { return };
    for workers in ["1", "4"] {
        let (output, json) = explore(&place, "compiled:traced", &["--workers", workers]);
        assert_eq!(told(&json), (6, true, vec![]), "{}", errors(&output));
    }
}

#[test]
fn what_is_not_turned_around_is_said() {
    let Some(place) = programs() else { return };
    for (call, what) in [
        ("timers:later", "timers that go off later"),
        (
            "ends:ceases",
            "exit signals to processes that cease to trap exits",
        ),
        (
            "ends:waits_for_lost",
            "exit signals that processes wait for which have given up the link",
        ),
        (
            "ends:alive_no_more",
            "whether processes are alive that get exit signals",
        ),
        (
            "ends:told_no_more",
            "whether processes are alive that get exit signals",
        ),
        (
            "ends:looked_at",
            "process_info(_, messages) of another process",
        ),
        (
            "ends:looked_at",
            "process_info(_, status) of another process",
        ),
        (
            "ends:told_as_set",
            "process_info(_, priority) of another process",
        ),
        ("ends:told_by_all", "process_info/1 of another process"),
    ] {
        let (output, json) = explore(&place, call, &[]);
        let not_explored = json["not_explored"].as_array().cloned().unwrap_or_default();
        assert!(not_explored.contains(&what.into()), "{json}");
        assert_eq!(json["complete"], false);
        assert_eq!(told(&json).2, vec![], "{call}");
        assert!(
            String::from_utf8_lossy(&output.stdout).contains("not all there are"),
            "{output:?}"
        );
    }
}

#[test]
fn time_outs_that_are_late_are_fewer_orders_and_not_all() {
    let Some(place) = programs() else { return };
    for (call, all, late) in [
        ("orders:timeout", 2, 1),
        ("orders:three", 6, 6),
        ("timers:first", 2, 1),
        ("timers:timed", 3, 1),
        ("timers:for_nobody", 1, 1),
    ] {
        let (_, json) = explore(&place, call, &["--all"]);
        assert_eq!(told(&json), (all, true, vec![]));
        let (_, json) = explore(&place, call, &["--all", "--late-timeouts"]);
        assert_eq!(told(&json), (late, late == all, vec![]));
        let left = json["not_explored"].as_array().map_or(0, Vec::len);
        assert_eq!(left, usize::from(late < all), "{json}");
    }
}

/// Monitors, links and `exit/2`: `ci/explore/ends.erl` tells how many orders each call has.
#[test]
fn ends_and_who_is_told_of_them_are_turned_around() {
    let rows = [
        ("monitored", 2, Some(("deadlock", "ends:monitored/0"))),
        ("monitored_twice", 4, None),
        ("looked_for", 3, None),
        ("named", 2, None),
        ("answered", 2, None),
        ("given_up", 1, None),
        ("linked", 2, None),
        ("linked_late", 2, None),
        ("asked_to_end", 3, None),
        ("asked_late", 3, None),
        ("killed", 2, None),
        ("killed_between", 6, None),
        ("killed_late", 5, None),
        ("killed_in_time", 4, None),
        ("killed_or_told", 2, None),
        ("killed_by_a_link", 4, None),
        ("unlinked", 4, None),
        ("unlinked_by_the_other", 7, None),
        ("unlinked_in_time", 6, None),
        ("unlinked_at_last", 3, None),
        ("linked_by_both", 4, None),
        ("unlinked_from_nobody", 1, None),
        ("crashes_late", 3, Some(("exit", "{noproc,"))),
        ("lost", 3, None),
        ("lost_or_gone", 4, None),
        ("asked_normally", 4, None),
        ("alive", 2, None),
        ("alive_for_some", 8, None),
        ("told_fixed", 2, None),
        ("told_trapping", 4, Some(("exit", "{traps,"))),
        ("told_both", 9, None),
        ("told_name", 4, None),
        ("told_names_of_others", 4, None),
        ("told_leader", 2, None),
    ];
    are_turned_around("ends", &rows);
}

/// Timers that send messages: `ci/explore/timers.erl` tells how many orders each call has.
#[test]
fn timers_and_calls_that_cancel_them_are_turned_around() {
    let rows = [
        ("first", 2, None),
        ("cancelled", 2, None),
        ("cancelled_late", 2, Some(("exit", "late"))),
        ("two", 2, None),
        ("by_another", 2, None),
        ("read", 2, None),
        ("for_nobody", 1, None),
        ("ticks", 4, None),
        ("timed", 3, None),
        ("statem", 2, Some(("exit", "{{badmatch,too_late}"))),
        ("by_name", 2, Some(("deadlock", "timers:by_name/0"))),
        ("by_names", 7, None),
        ("has_passed", 2, None),
        ("has_passed_in_receive", 2, None),
    ];
    are_turned_around("timers", &rows);
}

/// Tables, names, persistent terms and arrays: `ci/explore/tables.erl` tells how many orders each call has.
#[test]
fn accesses_to_what_processes_share_are_turned_around() {
    let Some(place) = programs() else { return };
    for (call, orders, reason) in [
        ("readers_two", 4, None),
        ("readers_five", 32, None),
        ("lastzero_two", 5, None),
        ("lastzero_five", 64, None),
        ("indexer_eleven", 1, None),
        ("indexer_twelve", 8, None),
        ("updates", 4, Some("{badmatch,1}")),
        ("updates_mended", 2, None),
        ("pool", 4, Some("{badmatch,[1,1]}")),
        ("pool_mended", 2, None),
        ("settings", 2, Some("{badmatch,none}")),
        ("places", 4, Some("{badmatch,1}")),
        ("places_mended", 2, None),
        ("whole", 4, None),
        ("registry", 4, Some("badarg")),
        ("registry_mended", 4, None),
        ("named_late", 2, Some("{badarg,[{erlang,register,")),
        ("taken_away", 2, None),
        ("heir", 2, Some("{badarg,[{ets,insert,")),
        ("cached", 6, Some("{badmatch,2}")),
        ("started", 4, None),
        ("filesystem_thirteen", 1, None),
        ("filesystem_fifteen", 4, None),
        ("rush_hour", 5, Some("{badmatch,out}")),
        ("processes", 2, Some("{badmatch,[]}")),
        ("processes_mended", 2, None),
    ] {
        for workers in ["1", "2"] {
            let options = ["--all", "--workers", workers, "-o", "found"];
            let (output, json) = explore(&place, &format!("tables:{call}"), &options);
            let (found, complete, findings) = told(&json);
            assert!(complete, "{call}: {json}{}", errors(&output));
            assert_eq!(found, orders, "{call}: {json}");
            let reasons = findings.iter().map(|(_, reason)| reason.as_str());
            let is_told = |told: &str| reason.is_some_and(|reason| told.contains(reason));
            assert!(reasons.clone().all(is_told), "{call}: {json}");
            assert_eq!(
                findings.len(),
                usize::from(reason.is_some()),
                "{call}: {json}"
            );
        }
        if reason.is_some() {
            let check = place.run(&["explore", "--check", "found"]);
            assert_eq!(check.status.code(), Some(3), "{call}: {check:?}");
        }
    }
}

/// Libraries of OTP: what their processes do is explored, too.
#[test]
fn programs_that_use_libraries_are_explored_with_them() {
    let Some(place) = programs() else { return };
    for (call, orders, found) in [
        (
            "groups_watched",
            3,
            Some(("deadlock", "real:groups_watched/0")),
        ),
        ("transaction", 4, None),
        ("hibernates", 8, None),
        ("times_out", 2, None),
        ("pool", 4, None),
        ("pool_killed", 3, Some(("deadlock", "gen:do_call/4"))),
        ("pool_mended", 6, None),
    ] {
        let options = ["--all", "-o", "found"];
        let (output, json) = explore(&place, &format!("real:{call}"), &options);
        let found = found.map(|(kind, reason): (&str, &str)| (kind.to_owned(), reason.to_owned()));
        let told_ = (orders, true, found.iter().cloned().collect());
        assert_eq!(told(&json), told_, "{call}: {}", errors(&output));
        if found.is_some() {
            let check = place.run(&["explore", "--check", "found"]);
            assert_eq!(check.status.code(), Some(3), "{call}: {check:?}");
        }
    }
}

/// Some of what their processes do is not turned around; what is found happens again.
#[test]
fn what_fails_in_programs_that_use_libraries_is_found() {
    let Some(place) = programs() else { return };
    for (call, reason) in [
        ("idle", "{noproc,"),
        ("calls_restarted", "{noproc,"),
        ("dets_closed", "{badarg,[{dets,lookup,"),
    ] {
        let options = ["--runs", "100", "-o", "found"];
        let (output, json) = explore(&place, &format!("real:{call}"), &options);
        let (_, _, findings) = told(&json);
        let is_found = |(kind, told): &(String, String)| kind == "exit" && told.starts_with(reason);
        assert!(
            findings.iter().any(is_found),
            "{call}: {json}{}",
            errors(&output)
        );
        let check = place.run(&["explore", "--check", "found"]);
        assert_eq!(check.status.code(), Some(3), "{call}: {check:?}");
    }
}

/// Supervisors hibernate, have timers, and end others by exit signals.
#[test]
fn what_chance_finds_in_programs_with_supervisors_happens_again() {
    let Some(place) = programs() else { return };
    for call in ["restarts", "restarts_rest", "calls_restarted"] {
        for strategy in ["random", "pct", "pos"] {
            let options = ["--strategy", strategy, "--runs", "100", "-o", "found"];
            let (output, json) = explore(&place, &format!("real:{call}"), &options);
            let crashes = |(kind, reason): &(String, String)| kind == "exit" && reason == "crash";
            let said = errors(&output);
            assert!(told(&json).2.iter().any(crashes), "{call}: {json} {said}");
            assert_eq!(json["not_explored"], serde_json::json!([]), "{call}");
        }
    }
}

#[test]
fn an_exit_signal_ends_a_process_in_the_place_where_it_did() {
    let Some(place) = programs() else { return };
    for strategy in ["dpor", "pos"] {
        ends_in_each_place(&place, strategy);
    }
}

fn ends_in_each_place(place: &Place, strategy: &str) {
    let options = ["--strategy", strategy, "--runs", "100", "--same-result"];
    let options = [&options[..], &["-o", strategy]].concat();
    let (output, json) = explore(place, "ends:killed_between", &options);
    let mut results = told(&json).2;
    results.sort();
    results.dedup();
    let is_sent = |(kind, sent): &(String, String)| kind == "result" && "0123".contains(sent);
    assert!(
        results.len() == 3 && results.iter().all(is_sent),
        "{json} {}",
        errors(&output)
    );
    let prefixes =
        (1..=3).map(|n| fs::read_to_string(place.file(&format!("{strategy}/finding-{n}.prefix"))));
    let prefixes: Vec<String> = prefixes.collect::<Result<_, _>>().expect("three");
    // The number of the process depends on how many the boot makes.
    let is_its_first = |text: &str| {
        let number = text.split_once(":1)").map(|(number, _)| number);
        number.is_some_and(|number| number.parse::<u32>().is_ok())
    };
    let has_exit = |prefix: &String| prefix.split("), exit(a").skip(1).any(is_its_first);
    assert!(prefixes.iter().any(has_exit), "{prefixes:?}");
    let check = place.run(&["explore", "--check", strategy]);
    assert_eq!(check.status.code(), Some(3), "{check:?}");
}

#[test]
fn an_exploration_ends_at_its_limit() {
    let Some(place) = programs() else { return };
    let (_, json) = explore(&place, "orders:seven", &["--runs", "20"]);
    assert_eq!(json["runs"], 20);
    assert_eq!(json["complete"], false);
}

#[test]
fn what_cannot_be_explored_is_said_in_one_line() {
    let Some(place) = programs() else { return };
    let (output, _) = explore(&place, "orders:nothing", &[]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        errors(&output),
        "beamline: orders:nothing/0 is not there: the command names the folder of its .beam file, as erl -noshell -pa ebin does\n"
    );
    let output = place.run(&["explore", "--call", "orders:one", "--", "true"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        errors(&output).starts_with("beamline: the command ended, and started no emulator"),
        "{output:?}"
    );
    let output = place.run(&["explore", "--call", "orders", "--", "erl"]);
    assert_eq!(output.status.code(), Some(2));
    let output = place.run(&["explore", "--check", "nowhere"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        errors(&output).starts_with("beamline: nowhere: "),
        "{output:?}"
    );
}

#[test]
fn findings_of_another_program_or_damaged_ones_run_nothing_wrong() {
    let Some(place) = programs() else { return };
    let (output, _) = explore(&place, "found:crash", &["-o", "found"]);
    assert_eq!(output.status.code(), Some(3));
    let file = place.file("found/finding-1.prefix");
    let text = fs::read_to_string(&file).expect("a finding");
    let other = text.replace("\"function\":\"crash\"", "\"function\":\"late\"");
    fs::write(&file, other).expect("writable");
    let check = place.run(&["explore", "--check", "found"]);
    assert_eq!(check.status.code(), Some(0), "{check:?}");
    let never_sent = text.replace("receive(", "receive(l5:9), receive(");
    fs::write(&file, never_sent).expect("writable");
    let check = place.run(&["explore", "--check", "found"]);
    assert_eq!(check.status.code(), Some(1), "{check:?}");
    assert_eq!(errors(&check).lines().count(), 1, "{check:?}");
    let cut = &text[..text.len() / 3];
    fs::write(&file, cut).expect("writable");
    let check = place.run(&["explore", "--check", "found"]);
    assert_eq!(check.status.code(), Some(1), "{check:?}");
    assert_eq!(errors(&check).lines().count(), 1, "{check:?}");
}
