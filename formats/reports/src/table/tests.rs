//! Tests of the table on small profiles.

use beamline_formats::profile::{Count, Function, Header, Node, Origin, Process, TracingCost};

use super::*;
use crate::sums::tests::profile as with_paths;

/// Rows are (module, function, arity, process, calls, time in µs, words).
type Line = (&'static str, &'static str, u32, u32, u64, u64, u64);

fn profile(kind: Type, pids: &[&str], lines: &[Line]) -> Profile {
    let mut profile = Profile::default();
    profile.runs.push(Header {
        kind,
        command: Vec::new(),
        host: String::new(),
        otp: String::new(),
        run_ns: 0,
        os_pid: 7,
        node: String::new(),
        processes: 0,
        patterns: Vec::new(),
        tracing: TracingCost::default(),
    });
    for pid in pids {
        profile.processes.push(Process {
            run: 0,
            pid: (*pid).to_owned(),
            name: String::new(),
            reductions: 0,
        });
    }
    for (i, &(module, name, arity, process, calls, time_us, words)) in lines.iter().enumerate() {
        profile.functions.push(Function {
            module: module.to_owned(),
            name: name.to_owned(),
            arity,
        });
        profile.counts.push(Count {
            function: u32::try_from(i).expect("few"),
            run: 0,
            process: (kind != Type::CallCount).then_some(process),
            cost: Cost {
                calls,
                time_ns: time_us * 1_000 + 999,
                words,
                ..Cost::default()
            },
        });
    }
    profile
}

fn check(profile: &Profile, by: By, sort: &str, expect: &str) {
    let sort = sort.parse().expect("a column");
    let view = View::default();
    let text = Tables {
        profile,
        by,
        sort,
        view,
    }
    .to_string();
    assert!(text == expect, "got:\n{text}\nexpected:\n{expect}");
}

// The expected texts below are tprof's own output for these numbers, OTP 29.

#[test]
fn call_count() {
    let lines = [
        ("lists", "seq_loop", 3, 0, 2501, 0, 0),
        ("lists", "seq", 2, 0, 1, 0, 0),
        ("lists", "map", 2, 0, 0, 0, 0),
    ];
    let expect = "\
FUNCTION          CALLS  [    %]
lists:seq/2           1  [ 0.04]
lists:seq_loop/3   2501  [99.96]
                         [100.0]
";
    let counted = profile(Type::CallCount, &[], &lines);
    check(&counted, By::Total, "percent", expect);
    check(&counted, By::Process, "percent", expect);
}

#[test]
fn call_time_by_process() {
    let lines = [
        ("lists", "seq", 2, 0, 1, 12, 0),
        ("lists", "seq_loop", 3, 0, 2501, 2044, 0),
    ];
    let expect = "
****** Process <0.86.0>  --  100.00% of total *** 
FUNCTION          CALLS  TIME (us)  PER CALL  [    %]
lists:seq/2           1         12     12.00  [ 0.58]
lists:seq_loop/3   2501       2044      0.82  [99.42]
                              2056            [100.0]
";
    let timed = profile(Type::CallTime, &["<0.86.0>"], &lines);
    check(&timed, By::Process, "percent", expect);
}

#[test]
fn call_memory_hides_what_allocated_nothing_and_widens_the_share() {
    let lines = [
        ("lists", "seq", 2, 0, 1, 0, 0),
        ("lists", "seq_loop", 3, 0, 2501, 0, 20_000),
    ];
    let expect = "
****** Process <0.88.0>  --  100.00% of total *** 
FUNCTION          CALLS  WORDS  PER CALL  [     %]
lists:seq_loop/3   2501  20000      8.00  [100.00]
                         20000            [ 100.0]
";
    let words = profile(Type::CallMemory, &["<0.88.0>", "<0.89.0>"], &lines);
    check(&words, By::Process, "percent", expect);
    let total = expect.split_once("*** \n").expect("a title").1;
    check(&words, By::Total, "percent", total);
}

#[test]
fn processes_are_apart_and_joined_in_total() {
    let lines = [
        ("lists", "seq", 2, 0, 2, 3, 0),
        ("erl_eval", "'", 1, 0, 1, 1, 0),
        ("lists", "seq", 2, 1, 5, 28, 0),
    ];
    let timed = profile(Type::CallTime, &["<0.90.0>", "<0.91.0>"], &lines);
    let apart = "
****** Process <0.90.0>  --  12.50% of total *** 
FUNCTION         CALLS  TIME (us)  PER CALL  [    %]
erl_eval:'\\''/1      1          1      1.00  [25.00]
lists:seq/2          2          3      1.50  [75.00]
                                4            [100.0]

****** Process <0.91.0>  --  87.50% of total *** 
FUNCTION     CALLS  TIME (us)  PER CALL  [     %]
lists:seq/2      5         28      5.60  [100.00]
                           28            [ 100.0]
";
    check(&timed, By::Process, "percent", apart);
    // The order of the tables is that of their rows, and each says what the process is.
    let mut named = timed.clone();
    named.processes[1].name = "my_server".to_owned();
    let tables = Tables {
        profile: &named,
        by: By::Process,
        sort: "percent:desc".parse().expect("a column"),
        view: View::default(),
    };
    let text = tables.to_string();
    let titles: Vec<&str> = text.lines().filter(|line| line.starts_with('*')).collect();
    let expect = [
        "****** Process <0.91.0> my_server  --  87.50% of total *** ",
        "****** Process <0.90.0>  --  12.50% of total *** ",
    ];
    assert_eq!(titles, expect);
    let joined = "\
FUNCTION         CALLS  TIME (us)  PER CALL  [    %]
lists:seq/2          7         31      4.43  [96.88]
erl_eval:'\\''/1      1          1      1.00  [ 3.13]
                               32            [100.0]
";
    check(&timed, By::Total, "percent:desc", joined);
}

#[test]
fn sorting_is_by_any_column() {
    let lines = [
        ("b", "x", 1, 0, 4, 8, 0),
        ("a", "z", 1, 0, 1, 6, 0),
        ("c", "y", 1, 0, 9, 2, 0),
    ];
    let timed = profile(Type::CallTime, &["<0.1.0>"], &lines);
    for (sort, expect) in [
        ("module", "abc"),
        ("module:desc", "cba"),
        ("function", "bca"),
        ("calls", "abc"),
        ("measurement", "cab"),
        ("time:descending", "bac"),
        ("per_call", "cba"),
        ("percent:asc", "cab"),
    ] {
        let sort = sort.parse().expect("a column");
        let tables = Tables {
            profile: &timed,
            by: By::Total,
            sort,
            view: View::default(),
        };
        let text = tables.to_string();
        let order: String = text
            .lines()
            .filter(|l| l.contains(':'))
            .map(|l| &l[..1])
            .collect();
        assert_eq!(order, expect, "{sort:?}");
    }
    assert!(
        "speed"
            .parse::<Sort>()
            .expect_err("none")
            .contains("columns are")
    );
    assert!(
        "calls:up"
            .parse::<Sort>()
            .expect_err("none")
            .contains("asc or desc")
    );
}

#[test]
fn nothing_measured_is_said() {
    for kind in [Type::CallCount, Type::CallTime, Type::CallMemory] {
        for by in [By::Total, By::Process] {
            check(
                &profile(kind, &["<0.1.0>"], &[]),
                by,
                "percent",
                "Trace is empty\n",
            );
        }
    }
    check(
        &Profile::default(),
        By::Total,
        "percent",
        "Trace is empty\n",
    );
}

#[test]
fn two_decimals_round_halves_away_from_zero() {
    for (value, expect) in [
        (3.125, "3.13"),
        (15.625, "15.63"),
        (0.005, "0.01"),
        (99.999, "100.00"),
        (0.0, "0.00"),
        (12.04, "12.04"),
    ] {
        assert_eq!(two_decimals(value), expect);
    }
}

#[test]
fn what_is_left_out_is_a_row() {
    let lines = [
        ("lists", "seq", 2, 0, 2, 30, 0),
        ("Elixir.Demo", "a_function_with_a_long_name", 2, 0, 1, 1, 0),
        ("Elixir.Demo", "f", 2, 0, 5, 28, 0),
        ("Elixir.Demo", "g", 0, 0, 1, 40, 0),
        ("maps", "map", 2, 0, 1, 1, 0),
    ];
    let mut timed = profile(Type::CallTime, &["<0.1.0>"], &lines);
    for module in ["lists", "maps"] {
        timed.origins.insert(module.to_owned(), Origin::Otp);
    }
    let table = |scope: Scope, top, columns, sort: &str| {
        let tables = Tables {
            profile: &timed,
            by: By::Total,
            sort: sort.parse().expect("a column"),
            view: View {
                scope,
                top,
                columns,
            },
        };
        tables.to_string()
    };
    let app = "\
FUNCTION                                     CALLS  TIME (us)  PER CALL  [    %]
(2 functions out of scope: see --scope all)      3         31     10.33  [31.00]
  of these, lists:seq/2                          2         30     15.00  [30.00]
  of these, maps:map/2                           1          1      1.00  [ 1.00]
(1 function more: see --top all)                 1          1      1.00  [ 1.00]
Demo.f/2                                         5         28      5.60  [28.00]
Demo.g/0                                         1         40     40.00  [40.00]
                                                          100            [100.0]
";
    let text = table(Scope::App, Some(2), None, "percent");
    assert!(text == app, "got:\n{text}\nexpected:\n{app}");
    let narrow = "\
CALLS  TIME (us)  PER CALL  [    %]  FUNCTION
    1         40     40.00  [40.00]  Demo.g/0
    5         28      5.60  [28.00]  Demo.f/2
    1          1      1.00  [ 1.00]  Demo.a_func…_long_name/2
    3         31     10.33  [31.00]  (2 function…--scope all)
    2         30     15.00  [30.00]    of these, lists:seq/2
    1          1      1.00  [ 1.00]    of these, maps:map/2
             100            [100.0]   
";
    let text = table(Scope::App, None, Some(40), "percent:desc");
    assert!(text == narrow, "got:\n{text}\nexpected:\n{narrow}");
    let pattern = "lists".parse().expect("a scope");
    let text = table(pattern, None, None, "percent");
    assert!(
        text.contains("lists:seq/2") && text.contains("(4 functions out of scope"),
        "{text}"
    );
}

#[test]
fn a_process_without_functions_in_scope_has_no_table() {
    let lines = [
        ("lists", "seq", 2, 0, 2, 3, 0),
        ("m", "f", 0, 1, 1, 1, 0),
        ("lists", "map", 2, 2, 5, 28, 0),
    ];
    let pids = ["<0.1.0>", "<0.2.0>", "<0.3.0>"];
    let mut timed = profile(Type::CallTime, &pids, &lines);
    timed.origins.insert("lists".to_owned(), Origin::Otp);
    let tables = Tables {
        profile: &timed,
        by: By::Process,
        sort: Sort::default(),
        view: View {
            scope: Scope::App,
            ..View::default()
        },
    };
    let expect = "
****** Process <0.2.0>  --  3.13% of total *** 
FUNCTION  CALLS  TIME (us)  PER CALL  [     %]
m:f/0      1          1      1.00  [100.00]
                      1            [ 100.0]

(2 processes out of scope: see --scope all)
";
    assert_eq!(tables.to_string(), expect);
}

#[test]
fn processes_of_one_kind_share_a_table() {
    let lines = [
        ("m", "f", 0, 0, 2, 3, 0),
        ("m", "f", 0, 1, 1, 1, 0),
        ("m", "g", 0, 2, 5, 4, 0),
        ("m", "f", 0, 3, 1, 2, 0),
    ];
    let pids = ["<0.1.0>", "<0.2.0>", "<0.3.0>", "<0.4.0>"];
    let mut timed = profile(Type::CallTime, &pids, &lines);
    for (at, name) in [
        (0, "m:task/1"),
        (1, "m:task/1"),
        (2, "server"),
        (3, "m:task/1"),
    ] {
        timed.processes[at].name = name.to_owned();
    }
    let expect = "
****** Process <0.3.0> server  --  40.00% of total *** 
FUNCTION  CALLS  TIME (us)  PER CALL  [     %]
m:g/0      5          4      0.80  [100.00]
                      4            [ 100.0]

****** 3 processes m:task/1  --  60.00% of total *** 
FUNCTION  CALLS  TIME (us)  PER CALL  [     %]
m:f/0      4          6      1.50  [100.00]
                      6            [ 100.0]
";
    check(&timed, By::Process, "percent", expect);
}

/// A profile of these call paths, with its counts; see [`with_paths`]. Functions named `l` are of OTP.
fn with_counts(kind: Type, rows: &[(&str, u64)]) -> Profile {
    let mut all = with_paths(rows);
    all.runs = profile(kind, &["<0.1.0>"], &[]).runs;
    all.processes = profile(kind, &["<0.1.0>"], &[]).processes;
    for (at, function) in all.functions.iter_mut().enumerate() {
        if function.name == "l" {
            function.module = "lists".into();
        }
        let own = |nodes: &[Node]| {
            let own = nodes.iter().filter(|node| node.function as usize == at);
            own.map(|node| node.cost.time_ns).sum()
        };
        all.counts.push(Count {
            function: u32::try_from(at).expect("few"),
            run: 0,
            process: Some(0),
            cost: Cost {
                calls: 2,
                time_ns: own(&all.nodes),
                ..Cost::default()
            },
        });
    }
    all.origins.insert("lists".into(), Origin::Otp);
    all
}

#[test]
fn call_paths_give_a_column_with_callees() {
    let rows = [
        ("a", 1_600),
        ("ab", 700),
        ("abl", 90_500),
        ("al", 7_300),
        ("abla", 400),
    ];
    let timed = with_counts(Type::CallTime, &rows);
    let all = "\
FUNCTION   CALLS  TIME (us)  PER CALL  [    %]  TOTAL (us)
m:b/0          2          0      0.35  [ 0.70]          91
m:a/0          2          2      1.00  [ 1.99]         100
lists:l/0      2         97     48.90  [97.31]          98
                        100            [100.0]
";
    check(&timed, By::Total, "percent", all);
    let view = View {
        scope: Scope::App,
        top: Some(1),
        columns: None,
    };
    let sort = Sort::of_view(&timed, &view);
    assert_eq!(sort.column, Column::Total);
    let tables = Tables {
        profile: &timed,
        by: By::Total,
        sort,
        view,
    };
    let app = "\
FUNCTION                                    CALLS  TIME (us)  PER CALL  [    %]  TOTAL (us)
(1 function out of scope: see --scope all)      2         97     48.90  [97.31]
  of these, lists:l/0                           2         97     48.90  [97.31]          98
(1 function more: see --top all)                2          0      0.35  [ 0.70]
m:a/0                                           2          2      1.00  [ 1.99]         100
                                                         100            [100.0]
";
    let text = tables.to_string();
    assert!(text == app, "got:\n{text}\nexpected:\n{app}");
    assert_eq!(Sort::of_view(&timed, &View::default()), Sort::default());
}

#[test]
fn without_all_call_paths_there_is_no_column_with_callees() {
    let rows = [("a", 1_600), ("ab", 700)];
    let calls = with_counts(Type::CallCount, &rows);
    assert!(!WithCallees::is_known(&calls));
    let mut merged = with_counts(Type::CallTime, &rows);
    assert!(WithCallees::is_known(&merged));
    merged.processes.push(merged.processes[0].clone());
    merged.counts.push(Count {
        process: Some(1),
        ..merged.counts[0]
    });
    assert!(!WithCallees::is_known(&merged));
}

#[test]
fn nodes_have_tables_of_their_own_also_of_calls_without_processes() {
    let of = |node: &str, pid, calls| {
        let mut profile = profile(Type::CallCount, &[], &[("m", "f", 0, 0, calls, 0, 0)]);
        (profile.runs[0].node, profile.runs[0].os_pid) = (node.to_owned(), pid);
        profile
    };
    let merged = Profile::merge([of("two@h", 8, 3), of("", 9, 1)]).expect("of one type");
    let expect = "
****** OS process 9  --  25.00% of total *** 
FUNCTION  CALLS  [     %]
m:f/0      1  [100.00]
              [ 100.0]

****** Node two@h  --  75.00% of total *** 
FUNCTION  CALLS  [     %]
m:f/0      3  [100.00]
              [ 100.0]
";
    check(&merged, By::Node, "percent", expect);
}
