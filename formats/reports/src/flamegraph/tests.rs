use beamline_formats::profile::{Cost, Function, Header, Process, TracingCost};

use super::*;

fn sample() -> Profile {
    let mut profile = Profile::default();
    profile.runs.push(Header {
        kind: Type::CallTime,
        command: vec!["erl".into()],
        host: String::new(),
        otp: "29".into(),
        run_ns: 1,
        os_pid: 7,
        node: String::new(),
        processes: 2,
        patterns: Vec::new(),
        tracing: TracingCost::default(),
    });
    for (module, name) in [("json", "encode"), ("lists", "map"), ("m", "a;b")] {
        profile.functions.push(Function {
            module: module.into(),
            name: name.into(),
            arity: 2,
        });
    }
    for (pid, name) in [("<0.9.0>", "worker"), ("<0.10.0>", "")] {
        profile.processes.push(Process {
            run: 0,
            pid: pid.into(),
            name: name.into(),
            reductions: 0,
        });
    }
    for (process, parent, function, calls) in [
        (0, None, 0, 1),
        (0, Some(0), 1, 40),
        (0, Some(1), 2, 0),
        (1, None, 0, 2),
        (1, Some(3), 1, 2),
        (1, None, 2, 5),
    ] {
        profile.nodes.push(Node {
            process,
            parent,
            function,
            cost: Cost {
                calls,
                time_ns: calls * 1_500,
                ..Cost::default()
            },
            reductions: 10 * calls,
            wait_ns: 0,
        });
    }
    profile
}

fn shape(width: Width, by: By) -> Shape {
    Shape {
        by,
        ..Shape::new(width)
    }
}

#[test]
fn paths_fold() {
    for (shape, expect) in [
        (
            shape(Width::Calls, By::None),
            &[
                "json:encode/2 3",
                "json:encode/2;lists:map/2 42",
                "m:'a\\x{3b}b'/2 5",
            ][..],
        ),
        (
            shape(Width::Time, By::Process),
            &[
                "<0.10.0>;json:encode/2 3000",
                "<0.10.0>;json:encode/2;lists:map/2 3000",
                "<0.10.0>;m:'a\\x{3b}b'/2 7500",
                "<0.9.0> worker;json:encode/2 1500",
                "<0.9.0> worker;json:encode/2;lists:map/2 60000",
            ],
        ),
        (
            shape(Width::Calls, By::Name),
            &[
                "<0.10.0>;json:encode/2 2",
                "<0.10.0>;json:encode/2;lists:map/2 2",
                "<0.10.0>;m:'a\\x{3b}b'/2 5",
                "worker;json:encode/2 1",
                "worker;json:encode/2;lists:map/2 40",
            ],
        ),
        (
            shape(Width::Reductions, By::Module),
            &["json 30", "json;lists 420", "m 50"],
        ),
        (
            Shape {
                is_reversed: true,
                ..shape(Width::Calls, By::None)
            },
            &[
                "json:encode/2 3",
                "lists:map/2;json:encode/2 42",
                "m:'a\\x{3b}b'/2 5",
            ],
        ),
        (
            Shape {
                only: Some("lists:map".into()),
                ..shape(Width::Calls, By::None)
            },
            &["lists:map/2 42"],
        ),
        (
            Shape {
                only: Some("<0.9.0>".into()),
                ..shape(Width::Calls, By::None)
            },
            &["json:encode/2 1", "json:encode/2;lists:map/2 40"],
        ),
        (
            Shape {
                hide_below: vec!["json:encode/2".parse().expect("a pattern")],
                ..shape(Width::Calls, By::None)
            },
            &["json:encode/2 45", "m:'a\\x{3b}b'/2 5"],
        ),
        (shape(Width::Words, By::None), &[]),
    ] {
        assert_eq!(folded(&sample(), &shape), expect, "{shape:?}");
    }
}

#[test]
fn native_code_has_frames_of_its_own_among_modules() {
    let mut profile = sample();
    let map = profile.functions[1].clone();
    profile.natives.insert(map, Native::DirtyCpu);
    let by_module = shape(Width::Calls, By::Module);
    assert_eq!(
        folded(&profile, &by_module),
        ["json 3", "json;lists (dirty CPU) 42", "m 5"]
    );
    let mut out = Vec::new();
    draw(&profile, &drawing(by_module), &mut out).expect("drawn");
    let svg = String::from_utf8(out).expect("UTF-8");
    assert!(svg.contains("<title>lists (dirty CPU) ("), "{svg}");
    assert!(
        svg.contains("Native code on a dirty CPU scheduler</text>"),
        "{svg}"
    );
    let fill = native_frames::Look::of(Native::DirtyCpu).fill();
    // The frame, its square in the legend and what the style says of both.
    assert!(svg.matches(&fill).count() >= 3, "{svg}");
}

fn drawing(shape: Shape) -> Drawing {
    Drawing {
        shape,
        title: "a <title>".into(),
        subtitle: "below".into(),
        min_width: 0.01,
    }
}

fn svg(shape: Shape) -> Result<String, String> {
    let mut out = Vec::new();
    draw(&sample(), &drawing(shape), &mut out)?;
    Ok(String::from_utf8(out).expect("UTF-8"))
}

#[test]
fn the_drawing_holds_frames_and_units() {
    let calls = svg(Shape::new(Width::Calls)).expect("drawn");
    assert!(
        calls.contains("<title>lists:map/2 (42 calls, 84.00%)</title>"),
        "{calls}"
    );
    assert!(calls.contains("a &lt;title&gt;") && calls.contains("below"));
    let by_process = || svg(shape(Width::Time, By::Process)).expect("drawn");
    let time = by_process();
    assert!(time.contains("lists:map/2 (60 µs"), "{time}");
    assert!(time.contains("&lt;0.9.0&gt; worker"));
    assert!(time == by_process(), "not always the same");
}

#[test]
fn what_is_shown_only_is_told() {
    let only = |width, text: &str| Shape {
        only: Some(text.into()),
        ..Shape::new(width)
    };
    let text = svg(only(Width::Calls, "lists:map")).expect("drawn");
    assert!(
        text.contains("below; shown: 42 calls of 50 calls, 84.0 %"),
        "{text}"
    );
    let text = svg(only(Width::Time, "<0.9.0>")).expect("drawn");
    assert!(
        text.contains("shown: 61.50 µs of 75.00 µs, 82.0 %"),
        "{text}"
    );
    assert!(
        !svg(Shape::new(Width::Calls))
            .expect("drawn")
            .contains("shown:")
    );
}

#[test]
fn names_are_cut_in_the_script_as_in_the_picture() {
    let text = svg(Shape::new(Width::Calls)).expect("drawn");
    assert_eq!(text.matches("var txt = frameName(e, w);").count(), 2);
    assert!(
        text.contains("function shortName(name)") && text.contains("truncate_text_right = true")
    );
    assert!(text.contains("\">lists:map/2</text>"), "{text}");
}

#[test]
fn what_is_not_there_is_said() {
    let only = |text: &str| Shape {
        only: Some(text.into()),
        ..Shape::new(Width::Calls)
    };
    let hidden = |text: &str| Shape {
        hide_below: vec![text.parse().expect("a pattern")],
        ..Shape::new(Width::Calls)
    };
    for (shape, expect) in [
        (
            Shape::new(Width::Words),
            "no call path has any words, so there is nothing to draw; words come from beamline record --events \
             words, or beamline profile --type call_memory --output",
        ),
        (
            only("lists:mop"),
            "no function or process matches 'lists:mop'; similar: lists:map",
        ),
        (
            only("workers"),
            "no function or process matches 'workers'; similar: worker",
        ),
        (
            hidden("json:encod"),
            "no function matches 'json:encod'; similar: json:encode",
        ),
        (
            hidden("qqq"),
            "no function matches 'qqq', and nothing is similar",
        ),
    ] {
        assert_eq!(svg(shape).expect_err("nothing"), expect);
    }
}

#[test]
fn narrow_frames_are_left_out() {
    let wide = Drawing {
        min_width: 50.0,
        ..drawing(Shape::new(Width::Calls))
    };
    let mut out = Vec::new();
    draw(&sample(), &wide, &mut out).expect("drawn");
    let text = String::from_utf8(out).expect("UTF-8");
    assert!(
        text.contains("lists:map/2") && !text.contains("a;b"),
        "{text}"
    );
}

#[test]
fn atoms_keep_their_characters() {
    let names = [
        ("m", "a;b"),
        ("m", "\\x{3b};;"),
        ("модуль", "функция"),
        ("m", "<a&b>"),
        ("m", "it's \"x\" (1)"),
        ("Elixir.Demo", "a;b c"),
    ];
    let mut profile = sample();
    for (module, name) in names {
        let function = profile.functions.len().try_into().expect("few");
        profile.functions.push(Function {
            module: module.into(),
            name: name.into(),
            arity: 2,
        });
        profile.nodes.push(Node {
            function,
            ..profile.nodes[0]
        });
    }
    let mut out = Vec::new();
    draw(&profile, &drawing(Shape::new(Width::Calls)), &mut out).expect("drawn");
    let text = String::from_utf8(out).expect("UTF-8");
    let titles = text.split("<title>").skip(1);
    let titles: Vec<String> = titles
        .filter_map(|rest| Some(rest.split_once("</title>")?.0.rsplit_once(" (")?.0))
        .map(svg::unescape)
        .collect();
    for (module, name) in names {
        let name = beamline_formats::name::mfa(module, name, 2);
        assert!(titles.contains(&name), "{name}: {titles:?}");
    }
    // Each line of the folded text is a path of one function.
    let lines = folded(&profile, &Shape::new(Width::Calls));
    assert!(
        lines.iter().any(|line| line == "m:'a\\x{3b}b'/2 6"),
        "{lines:?}"
    );
    assert!(
        lines.iter().any(|line| line == "Demo.\"a\\x{3b}b c\"/2 1"),
        "{lines:?}"
    );
}

#[test]
fn a_chart_is_in_order_of_time() {
    let recording = crate::events::sample::varied().open();
    let draw = |shape: Shape| {
        let mut out = Vec::new();
        Chart::read(&recording, &shape)?.draw(&drawing(shape), &mut out)?;
        Ok::<String, String>(String::from_utf8(out).expect("UTF-8"))
    };
    let text = draw(shape(Width::Time, By::Process)).expect("drawn");
    // Calls of one function that come one after the other have frames of their own.
    assert_eq!(text.matches("<title>m:fib/1 (").count(), 10, "{text}");
    assert!(text.contains("&lt;0.9.0&gt; boss (175 µs"), "{text}");
    // The axis has when each process came to what stands above.
    let (_, axis) = text.split_once("<svg id=\"axis\"").expect("an axis");
    let moments: Vec<&str> = axis.split("y=\"14\">").skip(1).collect();
    assert!(
        moments.len() > 5 && moments[0].starts_with("1.00 µs<"),
        "{axis}"
    );
    assert!(text.contains("; the axis has the time"));
    let text = draw(shape(Width::Wait, By::None)).expect("drawn");
    assert!(
        text.contains("m:main/1 (") && !text.contains("m:fib/1"),
        "{text}"
    );
    let error = draw(Shape::new(Width::Calls)).expect_err("no time");
    assert!(error.contains("use --width time or wait"), "{error}");
}

#[test]
fn differences_are_found() {
    let before = sample();
    let mut after = sample();
    after.nodes[1].cost.time_ns += 60_000;
    after.nodes[1].cost.calls += 1;
    after.nodes[5].cost.time_ns = 0;
    let difference = difference_of(&[&before], &[&after]).expect("of one type");
    let [worse, .., better] = difference.functions.as_slice() else {
        panic!("two functions differ");
    };
    assert_eq!(worse.function, "lists:map/2");
    assert_eq!((worse.own, worse.calls), ([63_000, 123_000], [42, 43]));
    assert_eq!(
        (better.function.as_str(), better.own),
        ("m:'a;b'/2", [7_500, 0])
    );
    let text = difference.to_string();
    assert!(worse.perhaps && better.perhaps, "{text}");
    for expect in [
        "No function has changed for certain.",
        "Perhaps chance",
        "Time in all: 75.00 µs before, 127.50 µs after (+52.50 µs, +70.0 %)",
        "+60.00 µs  +95.2 %",
        "gone",
    ] {
        assert!(text.contains(expect), "{text}");
    }
    let narrow = difference.with_columns(Some(80)).to_string();
    assert!(
        narrow.lines().all(|line| line.chars().count() <= 80),
        "{narrow}"
    );
    assert!(narrow.contains("CHANGE") && !narrow.contains("PER CALL"));
    let mut out = Vec::new();
    let drawn = drawing(Shape::new(Width::Time));
    draw_difference(&before, &after, &drawn, of(0.0, 0.0), &mut out).expect("drawn");
    let svg = String::from_utf8(out).expect("UTF-8");
    assert!(
        svg.contains("lists:map/2 (123,000 ns, 96.47%; +47.06%)"),
        "{svg}"
    );
    let same = difference_of(&[&before], &[&before]).expect("of one type");
    assert!(same.to_string().contains("Nothing has changed."));
    after.runs[0].kind = Type::CallCount;
    let error = difference_of(&[&before], &[&after]).expect_err("other types");
    assert!(
        error.contains("call_time, and the second call_count"),
        "{error}"
    );
}

/// This threshold, whatever the width.
fn of(change: f64, share: f64) -> Threshold {
    Threshold::new(Width::Time, Some(change), Some(share))
}

fn difference_of(before: &[&Profile], after: &[&Profile]) -> Result<Difference, String> {
    let own = |profiles: &[&Profile]| -> Vec<Profile> {
        profiles.iter().map(|&profile| profile.clone()).collect()
    };
    let (before, after) = (own(before), own(after));
    Difference::of([&before, &after], None, |_| of(25.0, 1.0))
}

#[test]
fn what_is_less_than_the_threshold_is_no_change() {
    let before = sample();
    let mut after = sample();
    after.nodes[1].cost.time_ns += 10_000;
    let difference = difference_of(&[&before], &[&after]).expect("of one type");
    let text = difference.to_string();
    assert!(
        text.contains("No function has changed for certain.\n1 function differs by less than 25 %"),
        "{text}"
    );
    let mut out = Vec::new();
    let drawn = drawing(Shape::new(Width::Time));
    draw_difference(&before, &after, &drawn, of(25.0, 1.0), &mut out).expect("drawn");
    let svg = String::from_utf8(out).expect("UTF-8");
    assert!(
        !svg.contains("fill=\"rgb(255,") && svg.contains("; 0.00%"),
        "{svg}"
    );
    let all = Difference::of([&[before], &[after]], None, |_| of(10.0, 0.0));
    let text = all.expect("of one type").to_string();
    assert!(text.contains("Perhaps chance"), "{text}");
}

#[test]
fn a_function_that_takes_a_thousandth_has_changed() {
    let (mut before, mut after) = (sample(), sample());
    before.nodes[1].cost.time_ns = 50_000_000;
    after.nodes[1].cost.time_ns = 20_000;
    let difference = difference_of(&[&before], &[&after]).expect("of one type");
    let text = difference.to_string();
    assert!(
        text.contains("\nBetter\n") && text.contains("-99.9 %"),
        "{text}"
    );
    assert!(!text.contains("Perhaps"), "{text}");
    // What a busy machine may take is not enough.
    before.nodes[1].cost.time_ns = 5_000_000;
    after.nodes[1].cost.time_ns = 5_000;
    let text = difference_of(&[&before], &[&after])
        .expect("of one type")
        .to_string();
    assert!(
        text.contains("Perhaps") && !text.contains("Better"),
        "{text}"
    );
}

#[test]
fn a_function_that_moves_or_has_another_name_is_one() {
    let before = sample();
    let at = before.nodes[1].function as usize;
    for (module, name) in [("other", "map"), ("lists", "map_all")] {
        let mut after = sample();
        after.functions[at].module = module.to_owned();
        after.functions[at].name = name.to_owned();
        let text = difference_of(&[&before], &[&after])
            .expect("of one type")
            .to_string();
        let moved = format!(
            "Under another name, with about the same cost\nlists:map/2 → {module}:{name}/2\n"
        );
        assert!(text.contains(&moved), "{text}");
        assert!(!text.contains("gone") && !text.contains("new"), "{text}");
        // Its cost is compared with that under the old name.
        after.nodes[1].cost.time_ns += 20_000_000;
        let text = difference_of(&[&before], &[&after])
            .expect("of one type")
            .to_string();
        assert!(
            text.contains(&format!("{module}:{name}/2 (was lists:map/2)")),
            "{text}"
        );
    }
}

#[test]
fn time_that_more_calls_bring_is_a_change() {
    let before = sample();
    let mut after = sample();
    let node = &mut after.nodes[1].cost;
    (node.calls, node.time_ns) = (node.calls * 2, node.time_ns * 2);
    let difference = difference_of(&[&before], &[&after]).expect("of one type");
    let text = difference.to_string();
    assert!(
        text.contains("\nWorse\n") && !text.contains("Perhaps"),
        "{text}"
    );
}

#[test]
fn of_several_profiles_only_what_is_more_than_chance_is_a_change() {
    let with = |ns: [u64; 5]| {
        ns.map(|ns| {
            let mut profile = sample();
            profile.nodes[1].cost.time_ns = ns;
            profile
        })
    };
    let before = with([50_000, 60_000, 70_000, 80_000, 90_000]);
    let noisy = with([55_000, 120_000, 125_000, 130_000, 65_000]);
    let slower = with([110_000, 120_000, 125_000, 130_000, 140_000]);
    for (after, changes) in [(noisy, 0), (slower, 1)] {
        let difference = Difference::of([&before, &after], None, |_| of(25.0, 1.0));
        let difference = difference.expect("of one type").with_top(Some(1));
        let changed = difference.functions.iter().filter(|c| c.changed);
        assert_eq!(changed.count(), changes, "{difference}");
    }
    let median = typical(&before, Width::Time).expect("one of them");
    assert_eq!(median.nodes[1].cost.time_ns, 70_000);
}

#[test]
fn colours_are_by_module_and_light_enough_for_black_text() {
    assert_eq!(color("lists", "map"), color("lists", "map"));
    assert_ne!(color("lists", "map"), color("maps", "map"));
    for module in [
        "lists",
        "maps",
        "json",
        "gen_server",
        "erlang",
        "Elixir.Enum",
    ] {
        let c = color(module, "f");
        let light = 2126 * u32::from(c.r) + 7152 * u32::from(c.g) + 722 * u32::from(c.b);
        assert!(light > 10_000 * 110, "{module}: {c:?}");
    }
}
