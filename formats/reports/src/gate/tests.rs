//! Tests of limits, comparisons, files of results, and outputs.

use beamline_formats::profile::{Cost, Count, Function, Node, Process, Profile};
use beamline_formats::totals::Counted;
use beamline_settings::random::Numbers;

use super::*;
use crate::flamegraph::Width;

fn workload(name: &str, reductions: u64, functions: &[(&str, u64, u64)]) -> Workload {
    Workload {
        name: name.into(),
        command: vec!["sort.erl".into(), "10".into()],
        otp: "29.1".into(),
        totals: Counted {
            reductions,
            words: 1000,
            messages: 4,
            collections: 2,
            processes: 0,
        },
        functions: functions
            .iter()
            .map(|&(function, calls, words)| FunctionCount {
                function: function.into(),
                calls,
                words,
                reductions: Some(calls * 10),
            })
            .collect(),
        ..Workload::default()
    }
}

fn results(workloads: Vec<Workload>) -> Results {
    Results::new("0.1.0".into(), Machine::default(), workloads)
}

fn soft(percent: f64) -> Option<Limit> {
    Some(Limit {
        soft: Some(Percent(percent)),
        hard: None,
    })
}

fn verdict(base: u64, new: u64, limit: Option<Limit>) -> Verdict {
    let base = results(vec![workload("w", base, &[])]);
    let new = results(vec![workload("w", new, &[])]);
    let limits = Limits {
        common: WorkloadLimits {
            reductions: limit,
            ..WorkloadLimits::default()
        },
        ..Limits::default()
    };
    let comparison = compare(&base, &new, |_| limits.clone());
    comparison.workloads[0].totals[0].verdict.clone()
}

#[test]
fn limits_judge_growth() {
    let hard = Some(Limit {
        soft: None,
        hard: Some(150),
    });
    let regression = |why: &str| Verdict::Regression(why.into());
    for (base, new, limit, expect) in [
        (100, 100, soft(0.0), Verdict::Same),
        (100, 99, soft(0.0), Verdict::Better),
        (100, 101, soft(1.0), Verdict::Allowed),
        (
            100,
            102,
            soft(1.0),
            regression("+2.00%, at most +1% allowed"),
        ),
        (
            1_000_000,
            1_000_001,
            soft(0.0),
            regression("+1.0e-4%, at most +0% allowed"),
        ),
        (0, 1, soft(50.0), regression("new, at most +50% allowed")),
        (100, 150, hard, Verdict::Allowed),
        (200, 151, hard, regression("at most 150 allowed")),
        // Where nothing is said, one percent.
        (1000, 1010, None, Verdict::Allowed),
        (1000, 1011, None, regression("+1.10%, at most +1% allowed")),
    ] {
        assert_eq!(verdict(base, new, limit), expect, "{base} → {new}");
    }
}

#[test]
fn functions_that_moved_are_told_and_gate_where_a_pattern_says() {
    let base = [("m:f/1", 5, 10), ("m:gone/0", 1, 0), ("m:same/0", 3, 3)];
    let new = [
        ("'M':'it''s'/0", 1, 0),
        ("m:f/1", 5, 12),
        ("m:same/0", 3, 3),
    ];
    let base = results(vec![workload("w", 1, &base)]);
    let new = results(vec![workload("w", 1, &new)]);
    let limits = Limits {
        functions: vec![FunctionLimits {
            pattern: "m:f".parse().unwrap(),
            calls: soft(0.0),
            words: soft(10.0),
            reductions: None,
        }],
        ..Limits::default()
    };
    let comparison = compare(&base, &new, |_| limits.clone());
    let moved: Vec<(&str, &str, u64, u64, bool)> = comparison.workloads[0]
        .functions
        .iter()
        .map(|change| {
            let function = change.function.as_deref().unwrap();
            let regression = change.verdict.is_regression();
            let metric = change.metric.name();
            (function, metric, change.base, change.new, regression)
        })
        .collect();
    assert_eq!(
        moved,
        [
            ("m:f/1", "words", 10, 12, true),
            ("'M':'it''s'/0", "reductions", 0, 10, false),
            ("m:gone/0", "reductions", 10, 0, false),
            ("'M':'it''s'/0", "calls", 0, 1, false),
            ("m:gone/0", "calls", 1, 0, false),
            ("m:f/1", "calls", 5, 5, false),
        ]
    );
    assert!(comparison.is_regression());
}

fn timed(base: &[u64], new: &[u64], interleaved: bool, limit: TimeLimit) -> TimeChange {
    let ns = |ms: &[u64]| ms.iter().map(|ms| ms * 1_000_000).collect::<Vec<_>>();
    let mut before = workload("w", 1, &[]);
    let mut after = workload("w", 1, &[]);
    before.times.runs_ns = ns(base);
    after.times.runs_ns = ns(new);
    if interleaved {
        after.times.base_runs_ns = ns(base);
    }
    let limits = Limits {
        common: WorkloadLimits {
            time: Some(limit),
            ..WorkloadLimits::default()
        },
        ..Limits::default()
    };
    let (base, mut new) = (results(vec![before]), results(vec![after]));
    new.machine.cores = usize::from(interleaved);
    let comparison = compare(&base, &new, |_| limits.clone());
    comparison.workloads[0].time.clone().unwrap()
}

#[test]
fn times_need_a_rank_test_and_an_effect() {
    let gate = TimeLimit {
        gate: true,
        ..TimeLimit::default()
    };
    let fast = [100, 101, 102, 103, 104];
    for (new, expect) in [
        (
            [120, 121, 122, 123, 124],
            Some("+19.6%, at most +5% allowed"),
        ),
        // Apart, and by too little.
        ([105, 106, 107, 105, 106], None),
        // Far, and not apart.
        ([99, 140, 141, 142, 143], None),
    ] {
        let time = timed(&fast, &new, true, gate);
        let why = match &time.verdict {
            Verdict::Regression(why) => Some(why.as_str()),
            _ => None,
        };
        assert_eq!(why, expect, "{new:?}: {time:?}");
        assert!(time.gates && time.interleaved);
    }
    let better = timed(&[120, 121, 122, 123, 124], &fast, true, gate);
    assert_eq!(better.verdict, Verdict::Better);
    // Of a baseline from the same machine type it counts, though not measured in turns.
    assert!(timed(&fast, &fast, false, gate).gates);
    assert!(!timed(&fast, &fast, true, TimeLimit::default()).gates);
    let hard = TimeLimit {
        hard_ms: Some(50),
        ..gate
    };
    assert!(timed(&fast, &fast, true, hard).verdict.is_regression());
}

/// Limits of the functions of these patterns.
fn gated(pattern: &str) -> Limits {
    Limits {
        gated: vec![pattern.parse().unwrap()],
        ..Limits::default()
    }
}

#[test]
fn functions_of_the_patterns_have_limits_unless_it_is_said_otherwise() {
    let of = |functions: &[(&str, u64, u64)]| results(vec![workload("w", 1, functions)]);
    let base = of(&[("m:f/1", 1000, 10), ("other:g/0", 5, 5)]);
    let changed = |limits: &Limits, f: (&str, u64, u64)| {
        let new = of(&[f, ("other:g/0", 50, 50)]);
        let compared = compare(&base, &new, |_| limits.clone()).workloads.remove(0);
        compared.regressions().collect::<Vec<String>>()
    };
    let free = GatedLimits {
        gate: false,
        ..GatedLimits::default()
    };
    let wide = GatedLimits {
        calls: soft(50.0).unwrap(),
        reductions: soft(50.0).unwrap(),
        ..GatedLimits::default()
    };
    let with = |functions: GatedLimits| Limits {
        common: WorkloadLimits {
            functions: Some(functions),
            ..WorkloadLimits::default()
        },
        ..gated("m")
    };
    for (limits, f, expect) in [
        (gated("m"), ("m:f/1", 1010, 10), 0),
        (gated("m"), ("m:f/1", 1450, 10), 1),
        (gated("m"), ("m:f/1", 1000, 11), 1),
        (with(wide), ("m:f/1", 1450, 11), 1),
        (with(free), ("m:f/1", 1450, 11), 0),
        (Limits::default(), ("m:f/1", 1450, 11), 0),
    ] {
        let told = changed(&limits, f);
        assert_eq!(told.len(), expect, "{limits:?} {f:?}: {told:?}");
    }
}

#[test]
fn what_loads_modules_is_nobodys() {
    let mut profile = Profile::default();
    for (module, name, arity) in [("m", "f", 1), LOADS, ("lists", "map", 2)] {
        profile.functions.push(Function {
            module: module.into(),
            name: name.into(),
            arity,
        });
    }
    profile.processes.push(Process {
        run: 0,
        pid: "<0.9.0>".into(),
        name: String::new(),
        reductions: 0,
    });
    let cost = |calls, words| Cost {
        calls,
        words,
        ..Cost::default()
    };
    // `f` calls `map`, and so does what loads a module for it.
    let nodes = [
        (None, 0, 1, 5),
        (Some(0), 1, 1, 90),
        (Some(1), 2, 30, 60),
        (Some(0), 2, 2, 8),
    ];
    for (parent, function, calls, words) in nodes {
        profile.nodes.push(Node {
            process: 0,
            parent,
            function,
            cost: cost(calls, words),
            reductions: 10 * calls,
            wait_ns: 0,
        });
    }
    for (function, calls, words) in [(0, 1, 5), (1, 1, 90), (2, 32, 68)] {
        profile.counts.push(Count {
            run: 0,
            process: Some(0),
            function,
            cost: cost(calls, words),
        });
    }
    let mut workload = Workload::default();
    workload.take_profile(&profile, |_| true);
    let functions = workload.functions.iter();
    let functions: Vec<_> = functions
        .map(|of| (of.function.as_str(), of.calls, of.words, of.reductions))
        .collect();
    let expect = [("lists:map/2", 2, 8, Some(20)), ("m:f/1", 1, 5, Some(10))];
    assert_eq!(functions, expect);
    let paths: Vec<_> = workload
        .paths
        .iter()
        .map(|path| path.path.as_str())
        .collect();
    assert_eq!(paths, ["m:f/1", "m:f/1;lists:map/2"]);
}

#[test]
fn one_change_is_one_regression() {
    let of = |reductions, functions: &[(&str, u64, u64)]| {
        let mut one = workload("w", reductions, functions);
        one.totals.words = functions.iter().map(|(_, _, words)| words).sum();
        one.paths = vec![PathCount {
            path: "m:top/0;m:step/1;m:leaf/1".into(),
            calls: 1,
            words: 0,
            reductions: 0,
        }];
        results(vec![one])
    };
    let base = of(
        10_000,
        &[
            ("m:'-step/1-fun-0-'/1", 10, 0),
            ("m:leaf/1", 100, 300),
            ("m:step/1", 50, 200),
            ("m:top/0", 1, 5),
        ],
    );
    // A step does more, in a fun too, and calls the leaf twice as often.
    let new = of(
        12_000,
        &[
            ("m:'-step/1-fun-0-'/1", 50, 0),
            ("m:leaf/1", 200, 600),
            ("m:step/1", 50, 900),
            ("m:top/0", 1, 5),
        ],
    );
    let limits = Limits {
        common: WorkloadLimits {
            words: soft(1.0),
            collections: soft(0.0),
            ..WorkloadLimits::default()
        },
        ..gated("m")
    };
    let comparison = compare(&base, &new, |_| limits.clone());
    let text = output::text(&comparison, None);
    assert!(
        text.contains("follows from m:step/1: +100.00%, at most +1% allowed"),
        "{text}"
    );
    // Nothing says where the reductions come from, which grew by more than those of functions.
    let told: Vec<String> = comparison.workloads[0].regressions().collect();
    let expect = [
        "reductions 10000 → 12000, +20.00%, at most +1% allowed",
        "m:step/1: words 200 → 900, +350.00%, at most +1% allowed",
    ];
    assert_eq!(told, expect, "{text}");
    // What the leaf does more by itself does not follow from its callers.
    let new = of(
        10_000,
        &[
            ("m:leaf/1", 200, 900),
            ("m:step/1", 50, 900),
            ("m:top/0", 1, 5),
        ],
    );
    let told = compare(&base, &new, |_| limits.clone()).workloads[0]
        .regressions()
        .count();
    assert_eq!(told, 2);
}

fn notes(comparison: &Comparison) -> Vec<(Kind, &str, bool)> {
    let notes = comparison.workloads.iter().flat_map(|w| &w.notes);
    let all = notes.chain(&comparison.notes);
    all.map(|note| (note.kind, note.what.as_str(), note.fails))
        .collect()
}

#[test]
fn what_is_missing_is_told_and_fails_as_is_said() {
    let base = [("m:gone/3", 5, 1), ("m:old/1", 7, 1), ("m:one/0", 1, 1)];
    let new = [
        ("m:-one/0-fun-0-/0", 9, 9),
        ("m:new/1", 7, 1),
        ("m:one/0", 1, 1),
    ];
    let base = results(vec![workload("w", 1, &base)]);
    let new = results(vec![workload("w", 1, &new)]);
    let entry = |pattern: &str| FunctionLimits {
        pattern: pattern.parse().unwrap(),
        calls: soft(0.0),
        words: None,
        reductions: None,
    };
    for missing in [Missing::Fail, Missing::Warn] {
        let limits = Limits {
            functions: vec![entry("m:one/0"), entry("m:onne/0")],
            common_functions: vec![entry("nobody:f")],
            missing,
            ..gated("m")
        };
        let comparison = compare(&base, &new, |_| limits.clone());
        let fails = missing == Missing::Fail;
        assert_eq!(
            notes(&comparison),
            [
                (Kind::Unused, "limit of m:onne/0", fails),
                (Kind::Gone, "m:gone/3", fails),
                (Kind::Renamed, "m:new/1", false),
                (Kind::Unused, "limit of nobody:f", fails),
            ]
        );
        assert_eq!(comparison.is_regression(), fails);
        let text = output::text(&comparison, None);
        assert!(text.contains("near it: m:one/0"), "{text}");
        assert!(text.contains("it was m:old/1 in the baseline"), "{text}");
    }
}

#[test]
fn a_function_with_a_new_name_keeps_its_limits() {
    let base = results(vec![workload("w", 1, &[("m:fib/1", 100, 0)])]);
    let new = results(vec![workload("w", 1, &[("m:fib2/1", 145, 0)])]);
    let comparison = compare(&base, &new, |_| gated("m:fib"));
    assert_eq!(notes(&comparison), [(Kind::Renamed, "m:fib2/1", false)]);
    let compared = &comparison.workloads[0];
    assert_eq!(compared.width(), Some(Width::Reductions));
    assert_eq!(compared.regressions().count(), 1, "{compared:?}");
}

#[test]
fn other_workloads_are_compared_beside_those_that_cannot_be() {
    let named = |names: &[&str]| names.iter().map(|name| workload(name, 100, &[])).collect();
    let base = results(named(&["gone", "changed", "failing", "same"]));
    let mut new: Vec<Workload> = named(&["changed", "failing", "new", "same"]);
    new[0].command.push("x".into());
    new[1].failure = Some("'x' failed: exit status: 7".into());
    new[3].totals.reductions = 200;
    let new = results(new);
    for missing in [Missing::Fail, Missing::Warn] {
        let limits = Limits {
            missing,
            ..Limits::default()
        };
        let comparison = compare(&base, &new, |_| limits.clone());
        let fails = missing == Missing::Fail;
        let kinds: Vec<(Kind, bool)> = notes(&comparison)
            .into_iter()
            .map(|(kind, _, fails)| (kind, fails))
            .collect();
        assert_eq!(
            kinds,
            [
                (Kind::Changed, fails),
                (Kind::Failed, true),
                (Kind::New, fails),
                (Kind::Gone, fails)
            ]
        );
        assert_eq!(comparison.failed(), 1);
        let text = output::text(&comparison, None);
        let expect = match fails {
            true => "\n1 regression, 3 not compared, 1 workload failed\n",
            false => "\n1 regression, 1 workload failed\n",
        };
        assert!(text.ends_with(expect), "{text}");
        let told = match fails {
            true => "NOT COMPARED: new: the baseline does not have it",
            false => "new: the baseline does not have it",
        };
        assert!(text.contains(told), "{text}");
        let bold = "**not compared**: gone: the baseline has it";
        assert_eq!(output::markdown(&comparison, &[]).contains(bold), fails);
        assert!(
            text.contains("FAILED: 'x' failed: exit status: 7"),
            "{text}"
        );
        assert!(output::junit(&comparison).contains("errors=\"1\""));
        assert!(output::markdown(&comparison, &[]).contains("**failed**"));
        assert_eq!(output::json(&comparison)["failed"], 1);
        assert!(output::github(&comparison, "f").contains("new"));
    }
}

#[test]
fn what_was_not_the_same_before_is_remarked() {
    let mut older = workload("w", 1, &[("m:f/0", 1, 1), ("n:f/0", 1, 1)]);
    older.patterns = vec!["_".parse().unwrap()];
    let base = results(vec![older]);
    let mut newer = workload("w", 1, &[("m:f/0", 1, 1)]);
    newer.otp = "29.2".into();
    newer.patterns = vec!["m".parse().unwrap()];
    let comparison = compare(&base, &results(vec![newer]), |_| gated("_"));
    assert_eq!(comparison.remarks.len(), 2, "{:?}", comparison.remarks);
    // What the new patterns do not choose is not gone.
    assert_eq!(notes(&comparison), []);
}

#[test]
fn files_that_are_no_results_are_refused() {
    let text = serde_json::to_string(&results(vec![workload("w", 1, &[("m:f/0", 1, 2)])])).unwrap();
    let read = Results::parse(&text).unwrap();
    assert_eq!(read.workloads[0].functions[0].words, 2);
    let newer = text.replace("\"version\":1", "\"version\":2");
    for (text, expect) in [
        ("", "not a result"),
        ("{}", "not a result"),
        (newer.as_str(), "version 2"),
        (&text[..text.len() / 2], "not a result"),
    ] {
        let error = Results::parse(text).unwrap_err();
        assert!(error.contains(expect), "{error}");
    }
    for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
        assert!(Results::parse(&text[..end]).is_err());
    }
}

#[test]
fn damaged_results_are_errors_or_compared() {
    let good = results(vec![workload("w", 1, &[("m:f/0", 1, 2), ("m:g/1", 3, 4)])]);
    let text = serde_json::to_string(&good).unwrap();
    let mut random = Numbers(5);
    let (mut errors, mut compared) = (0, 0);
    for _ in 0..10_000 {
        let mut bytes = text.clone().into_bytes();
        for _ in 0..=random.index(3) {
            let at = random.index(bytes.len());
            bytes[at] = match random.index(3) {
                0 => random.index(256) as u8,
                _ => b"0123456789.-e\"{}[]:,"[random.index(20)],
            };
        }
        let read = Results::parse(&String::from_utf8_lossy(&bytes));
        let told = read.map(|read| {
            let comparison = compare(&good, &read, |_| Limits::default());
            output::text(&comparison, None)
                + &output::markdown(&comparison, &[])
                + &output::junit(&comparison)
        });
        match told {
            Ok(told) => compared += usize::from(!told.is_empty()),
            Err(error) => {
                assert_eq!(error.lines().count(), 1, "{error}");
                errors += 1;
            }
        }
    }
    assert!(errors > 100 && compared > 100, "{errors} {compared}");
}

fn example() -> Comparison {
    let mut base = workload("a<b> & \"c\"", 1000, &[("m:f/1", 5, 0)]);
    let mut new = workload("a<b> & \"c\"", 1100, &[("m:f/1", 9, 0)]);
    new.outside = vec!["file x|y".into()];
    base.times.runs_ns = vec![5_000_000; 3];
    new.times.runs_ns = vec![5_100_000; 3];
    let (base, new) = (results(vec![base]), results(vec![new]));
    compare(&base, &new, |_| Limits::default())
}

#[test]
fn the_table_for_a_terminal() {
    let text = output::text(&example(), None);
    let expect = "\
a<b> & \"c\"
  reductions         1_000 →  1_100  +10.00%  REGRESSION: +10.00%, at most +1% allowed
  words              1_000 →  1_000       0%  same
  messages               4 →      4       0%  same
  collections            2 →      2       0%  same
  processes              0 →      0       0%  same
  m:f/1 reductions      50 →     90  +80.00%  allowed
  m:f/1 calls            5 →      9  +80.00%  allowed
  time, median      5.0 ms → 5.1 ms   +2.00%  same (p = 0.05), advice only, not measured in turns
  from outside: file x|y
1 regression
";
    assert_eq!(text, expect);
}

#[test]
fn a_narrow_terminal_has_verdicts_below_and_shorter_names() {
    let function = "module_with_a_name:function_with_a_longer_name/3";
    let mut base = workload("w", 1000, &[(function, 5, 0)]);
    let mut new = workload("w", 1100, &[(function, 9, 0)]);
    base.outside = Vec::new();
    new.outside = Vec::new();
    let comparison = compare(&results(vec![base]), &results(vec![new]), |_| {
        Limits::default()
    });
    let text = output::text(&comparison, Some(80));
    let expect = "\
w
  reductions                                     1_000 → 1_100  +10.00%
    REGRESSION: +10.00%, at most +1% allowed
  words                                          1_000 → 1_000       0%  same
  messages                                           4 →     4       0%  same
  collections                                        2 →     2       0%  same
  processes                                          0 →     0       0%  same
  module_with_a_name:fun…nger_name/3 reductions     50 →    90  +80.00%  allowed
  module_with_a_name:fun…_a_longer_name/3 calls      5 →     9  +80.00%  allowed
1 regression
";
    assert_eq!(text, expect);
}

#[test]
fn outputs_for_programs_are_well_formed() {
    let comparison = example();
    let picture = Picture {
        workload: "a<b> & \"c\"".into(),
        width: Width::Reductions,
        link: "a.svg".into(),
        paths: Vec::new(),
    };
    let junit = output::junit(&comparison);
    assert!(junit.contains(
        "name=\"a&lt;b&gt; &amp; &quot;c&quot;\" tests=\"8\" failures=\"1\" errors=\"0\""
    ));
    assert!(junit.contains("<failure message=\"1000 → 1100: +10.00%, at most +1% allowed\"/>"));
    let github = output::github(&comparison, "beamline.toml");
    assert_eq!(
        github,
        "::error file=beamline.toml,title=a<b> & \"c\" regressed::\
         reductions 1000 → 1100, +10.00%25, at most +1%25 allowed\n"
    );
    let json = output::json(&comparison);
    assert_eq!(json["regression"], true);
    assert_eq!(json["workloads"][0]["totals"][0]["verdict"], "regression");
    let markdown = output::markdown(&comparison, &[picture]);
    assert!(markdown.contains("| reductions | 1_000 | 1_100 | +10.00% | **regression**: +10.00%"));
    assert!(markdown.contains("file x\\|y") && markdown.contains("](a.svg)"));
    let mut results = results(vec![workload("w", 7, &[])]);
    results.workloads[0].times.runs_ns = vec![2_000_000, 3_000_000];
    let action = output::benchmark_action(&results);
    let rows = action.as_array().unwrap();
    assert_eq!((rows.len(), &rows[0]["value"]), (6, &serde_json::json!(7)));
    assert_eq!(rows[5]["value"], 2.0);
}

#[test]
fn a_picture_shows_what_has_become_more() {
    let path = |path: &str, calls, words| PathCount {
        path: path.into(),
        calls,
        words,
        reductions: calls,
    };
    let mut base = workload("w", 1, &[]);
    let mut new = workload("w", 1, &[]);
    base.paths = vec![path("m:main/0", 1, 10), path("m:main/0;m:f/1", 4, 40)];
    new.paths = vec![path("m:main/0", 1, 10), path("m:main/0;m:f/1;m:g/2", 9, 90)];
    let (base, new) = (results(vec![base]), results(vec![new]));
    for width in [Width::Words, Width::Calls, Width::Reductions] {
        let mut out = Vec::new();
        draw_difference(&base, &new, "w", width, &mut out).unwrap();
        let svg = String::from_utf8(out).unwrap();
        assert!(svg.contains("m:f/1;") || svg.contains("m:f/1 "), "{svg}");
        assert!(svg.contains("m:g/2"));
    }
    let error = draw_difference(&base, &new, "none", Width::Words, Vec::new()).unwrap_err();
    assert_eq!(error.lines().count(), 1, "{error}");
}

#[test]
fn a_diagram_shows_the_paths_that_changed_most() {
    let path = |path: &str, words| PathCount {
        path: path.into(),
        calls: 1,
        words,
        reductions: 0,
    };
    let mut base = workload("w", 1, &[]);
    let mut new = workload("w", 1, &[]);
    base.paths = vec![
        path("a:a/0;b:b/0;c:c/0;d:d/0;e:e/0", 8),
        path("a:a/0;m:'\"'/0", 9),
    ];
    new.paths = vec![
        path("a:a/0;b:b/0;c:c/0;d:d/0;e:e/0", 16),
        path("a:a/0;m:'\"'/0", 3),
    ];
    let (base, new) = (results(vec![base]), results(vec![new]));
    let picture = Picture::new(&base, &new, "w", Width::Words, "w.svg".into());
    let expect = "\
```mermaid
flowchart LR
  n0[\"b:b/0\"]
  n1[\"c:c/0\"]
  n0 --> n1
  n2[\"d:d/0\"]
  n1 --> n2
  n3[\"e:e/0<br/>8 → 16 words<br/>+100.00%\"]
  n2 --> n3
  style n3 stroke-width:4px
  n4[\"a:a/0\"]
  n5[\"m:'#34;'/0<br/>9 → 3 words<br/>-66.67%\"]
  n4 --> n5
  style n5 stroke-dasharray:5 5
```
";
    assert_eq!(picture.mermaid(), expect);
}
