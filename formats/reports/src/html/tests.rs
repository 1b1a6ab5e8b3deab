//! Tests that make pages of small recordings and read them back.

use beamline_formats::ring::{Event, Group, Id, Label, NameId, SignalKind};
use serde_json::Value;

use super::*;
use crate::events::sample::{self, Sample, process, seen};

const MOST: usize = 1000;

fn html(sample: &Sample, most: usize) -> String {
    let page = Page::read(&sample.open(), "a.ring", most).expect("it is read");
    let mut out = Vec::new();
    page.write(&mut out).expect("it is written");
    String::from_utf8(out).expect("UTF-8")
}

/// What the page's script reads.
fn data(html: &str) -> Value {
    let start = "<script type=\"application/json\" id=\"data\">";
    let (_, rest) = html.split_once(start).expect("there is data");
    let (data, _) = rest.split_once("</script>").expect("it ends");
    serde_json::from_str(data).expect("JSON")
}

fn numbers(value: &Value) -> Vec<i64> {
    let list = value.as_array().expect("a list").iter();
    list.map(|number| number.as_i64().expect("a number"))
        .collect()
}

#[test]
fn the_page_has_what_happened() {
    let page = data(&html(&sample::varied(), MOST));
    assert_eq!(
        page["losses"],
        serde_json::json!([
            "Nothing was lost.",
            "The recording has no end: the emulator was killed, or is still running."
        ])
    );
    let slices = &page["slices"];
    assert_eq!(slices["missing"], "");
    assert_eq!(numbers(&slices["start"])[..3], [100, 12_900, 2_000]);
    assert_eq!(numbers(&slices["ns"])[..3], [12_400, 1_500, 7_500]);
    assert_eq!(numbers(&slices["ns"]).len(), 21);
    let collections = &page["collections"];
    assert_eq!(numbers(&collections["ns"]), [700; 10]);
    assert_eq!(numbers(&collections["major"]), [0; 10]);
    assert_eq!(numbers(&collections["reclaimed"]), [400; 10]);
    let messages = &page["messages"];
    assert_eq!(numbers(&messages["ns"]), [500, 600].repeat(10));
    assert_eq!(numbers(&messages["from"])[..2], [1, 2]);
    assert_eq!(numbers(&messages["to"])[..2], [2, 1]);
    let marks = &page["marks"];
    let groups = marks["group"].as_array().expect("a list");
    assert_eq!(groups.iter().filter(|group| *group == "system").count(), 1);
    assert_eq!(
        page["processes"]["id"],
        serde_json::json!(["<0.9.0>", "<0.10.0>"])
    );
    assert_eq!(numbers(&page["processes"]["sent"]), [10, 10]);
    assert_eq!(page["processes"]["ended_ns"][0], 202_000);
    let busy: i64 = numbers(&page["processes"]["busy_ns"]).iter().sum();
    let parts = numbers(&page["schedulers"][0]["use_ns"]);
    assert_eq!((parts.len(), parts.iter().sum::<i64>()), (240, busy));
}

#[test]
fn call_paths_have_their_widths() {
    let page = data(&html(&sample::varied(), MOST));
    let flame = &page["flame"];
    // main calls fib; the other process loops.
    assert_eq!(numbers(&flame["parent"]), [0, 1, 0]);
    let widths = flame["widths"].as_array().expect("a list");
    let width = |name: &str| {
        widths
            .iter()
            .find(|width| width["name"] == name)
            .expect(name)
    };
    assert_eq!(numbers(&width("calls")["own"]), [1, 20, 20]);
    assert_eq!(numbers(&width("calls")["total"]), [21, 20, 20]);
    assert_eq!(numbers(&width("words")["own"]), [500, 500, 66]);
    assert_eq!(numbers(&width("reductions")["total"]), [1000, 500, 630]);
    let time = width("time");
    let (own, total) = (numbers(&time["own"]), numbers(&time["total"]));
    assert_eq!(total[0], own[0] + own[1]);
    assert_eq!(total[1..], own[1..]);
}

/// Of each cell the path and what else is in a column.
fn cells(flame: &Value, width: usize) -> Vec<(usize, i64, i64)> {
    let cells = &flame["cells"];
    let (own, below) = (numbers(&cells["own"]), numbers(&cells["below"]));
    let counts = own.iter().zip(&below).enumerate();
    let paths = counts.flat_map(|(path, (own, below))| {
        let number = usize::try_from(own + below).expect("a number");
        std::iter::repeat_n(path, number)
    });
    let columns = numbers(&cells["part"]);
    let columns = columns.into_iter().zip(numbers(&cells["costs"][width]));
    let cells = paths.zip(columns);
    cells
        .map(|(path, (part, cost))| (path, part, cost))
        .collect()
}

#[test]
fn parts_of_the_time_have_all_of_the_costs() {
    let page = data(&html(&sample::varied(), MOST));
    let flame = &page["flame"];
    assert_eq!(flame["cells"]["factor"], 1);
    let widths = flame["widths"].as_array().expect("a list");
    assert_eq!(widths.len(), 5);
    for (at, width) in widths.iter().enumerate() {
        let cells = cells(flame, at);
        for (path, own) in numbers(&width["own"]).into_iter().enumerate() {
            let of_path = cells.iter().filter(|(of, _, _)| *of == path);
            let sum: i64 = of_path.map(|(_, _, cost)| cost).sum();
            assert_eq!(sum, own, "{}", width["name"]);
        }
        let own: Vec<i64> = numbers(&flame["costs"][at]["own"]);
        assert_eq!(
            own.iter().sum::<i64>(),
            numbers(&width["own"]).iter().sum::<i64>()
        );
    }
    // No part has more time than it is long, on each of two processes.
    let part_ns = page["part_ns"].as_i64().expect("a number");
    for part in 0..240 {
        let cells = cells(flame, 0).into_iter().filter(|(_, of, _)| *of == part);
        let sum: i64 = cells.map(|(_, _, cost)| cost).sum();
        assert!(sum <= 2 * part_ns, "{part}: {sum}");
    }
    // Every call is there: the longest first to be kept.
    let calls = &page["calls"];
    assert_eq!(
        (numbers(&calls["ns"]).len(), &calls["left"]),
        (41, &0.into())
    );
    assert!(numbers(&flame["is_app"]).iter().all(|is_app| *is_app == 1));
}

#[test]
fn too_many_cells_make_parts_wider() {
    let whole = data(&html(&sample::varied(), MOST));
    let page = data(&html(&sample::varied(), 2));
    let flame = &page["flame"];
    let factor = flame["cells"]["factor"].as_u64().expect("a number");
    assert!(factor > 1, "{factor}");
    let sum = |page: &Value| {
        let cells = cells(&page["flame"], 0);
        cells.iter().map(|(_, _, cost)| cost).sum::<i64>()
    };
    // A path that begins with what is left out is left out as well.
    let left = numbers(&whole["flame"]["widths"][0]["own"]);
    let times: Vec<i64> = numbers(&flame["widths"][0]["total"]);
    assert!(
        sum(&page) <= sum(&whole) && sum(&page) >= times[0],
        "{left:?}"
    );
    // Functions count what is left out.
    assert_eq!(flame["costs"], whole["flame"]["costs"]);
    assert_eq!(page["calls"]["left"], 39);
}

#[test]
fn histograms_have_sizes_over_time() {
    let page = data(&html(&sample::varied(), MOST));
    for histogram in page["histograms"].as_array().expect("a list") {
        if histogram["missing"] != "" {
            // Nothing runs on dirty schedulers.
            assert_eq!(histogram["name"], "dirty-wait");
            continue;
        }
        let sizes = &histogram["sizes"];
        let rows = histogram["rows"].as_array().expect("a list").iter();
        let count: i64 = rows
            .map(|row| row["count"].as_i64().expect("a number"))
            .sum();
        assert_eq!(
            numbers(&sizes["count"]).iter().sum::<i64>(),
            count,
            "{}",
            histogram["name"]
        );
        let buckets: i64 = numbers(&sizes["buckets"]).iter().sum();
        assert_eq!(buckets, numbers(&sizes["bucket"]).len() as i64);
    }
}

#[test]
fn what_is_too_much_is_left_out_and_counted() {
    let page = data(&html(&sample::varied(), 2));
    assert_eq!(page["slices"]["left"], 19);
    // The longest two, in order of time.
    assert_eq!(numbers(&page["slices"]["ns"]), [12_400, 97_500]);
    assert_eq!(page["slices"]["left_ns"], 7_500);
    assert_eq!(
        (&page["collections"]["left"], &page["messages"]["left"]),
        (&8.into(), &18.into())
    );
    assert_eq!(numbers(&page["messages"]["ns"]), [500, 600]);
    assert_eq!(page["flame"]["left"], 1);
    assert_eq!(numbers(&page["flame"]["parent"]).len(), 2);
    // Sums are of everything.
    assert_eq!(numbers(&page["processes"]["sent"]), [10, 10]);
}

#[test]
fn no_name_can_end_the_element_it_stands_in() {
    let mut sample = Sample::new(&[Group::Calls, Group::Returns, Group::Messages]);
    let (a, evil) = (process(9), "</script><b>&\u{2028}");
    sample.start(a, evil, Some("<!--<script>"));
    sample.call(1_000, a, evil);
    sample.write(
        1_500,
        a,
        Event::Send {
            to: Id::None,
            text: evil,
        },
    );
    sample.back(2_000, a);
    let html = html(&sample, MOST);
    assert!(
        !html.contains("</script><b>") && !html.contains("<!--"),
        "{html}"
    );
    let page = data(&html);
    let function = page["flame"]["function"][0].as_u64().expect("a number");
    assert_eq!(page["texts"][function as usize], format!("m:'{evil}'/1"));
    let escaped = escape("</title><b>&");
    assert_eq!(escaped, "&lt;/title>&lt;b>&amp;");
}

#[test]
fn what_was_not_recorded_is_said() {
    let mut sample = Sample::new(&[Group::Gc]);
    let (need, used) = (1, 2);
    sample.write(10, process(9), Event::GcMajorStart { need, used });
    let page = data(&html(&sample, MOST));
    for (part, events) in [
        ("flame", "calls,returns,gc"),
        ("slices", "scheduling,gc"),
        ("messages", "messages,gc"),
    ] {
        let missing = page[part]["missing"].as_str().expect("a text");
        // With what is there already: what is named takes the place of the usual events.
        let is_said = missing.ends_with(&format!("Record with --events {events}."));
        assert!(is_said, "{missing}");
    }
    assert_eq!(
        page["slices"]["missing"],
        "No time slices can be shown: the recording has no scheduling. Record with --events scheduling,gc."
    );
    assert_eq!(page["collections"]["missing"], "");
    let of = |name: &str| {
        let all = page["histograms"].as_array().expect("a list");
        all.iter()
            .find(|histogram| histogram["name"] == name)
            .expect(name)["missing"]
            .clone()
    };
    assert_eq!(of("gc-pause"), "the recording has no data for gc-pause");
}

#[test]
fn slices_that_do_not_end_and_messages_that_are_not_matched_are_shown() {
    let mut sample = Sample::new(&[Group::Scheduling, Group::Messages]);
    let (a, b) = (process(9), process(10));
    let text = "{[alias|#Ref<0.1.2.3>],ok}";
    sample.write(100, a, Event::Send { to: Id::None, text });
    sample.write(150, b, Event::Receive { text });
    sample.write(200, b, Event::Receive { text: "timeout" });
    sample.write(
        250,
        a,
        Event::SendToNonExisting {
            to: b,
            text: "late",
        },
    );
    sample.write(
        300,
        a,
        Event::Send {
            to: b,
            text: "never",
        },
    );
    sample.write(
        400,
        a,
        Event::In {
            function: NameId::NONE,
        },
    );
    sample.write(
        900,
        b,
        Event::In {
            function: NameId::NONE,
        },
    );
    let page = data(&html(&sample, MOST));
    assert_eq!(numbers(&page["messages"]["ns"]), [50, -2, -3, -1]);
    assert_eq!(numbers(&page["slices"]["ns"]), [500, 0]);
    let to = numbers(&page["slices"]["to"])[0] as usize;
    assert_eq!(page["texts"][to], "the end of the recording");
}

#[test]
fn the_page_asks_no_network() {
    let html = html(&sample::varied(), MOST);
    assert!(html.contains("default-src 'none'"));
    for way in [
        "http://",
        "https://",
        "fetch(",
        "XMLHttpRequest",
        "innerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
    ] {
        let found = html.replace("http://www.w3.org/2000/svg", "").contains(way);
        assert!(!found, "{way}");
    }
}

/// Two messages of one text, of which the first is taken, and something that is printed; with a message without a token
/// before them and after them, if messages are recorded.
fn tokens(has_messages: bool) -> Sample {
    let groups = [Group::Seq, Group::Messages];
    let mut sample = Sample::new(&groups[..1 + usize::from(has_messages)]);
    let (a, b) = (process(9), process(10));
    let label = sample.label("{order,7}");
    let send = |sample: &mut Sample, at, serial| {
        let (to, text, last) = (b, "x", 0);
        if has_messages {
            sample.write(at, a, Event::Send { to, text });
        }
        if serial > 0 {
            let told = Event::SeqSend {
                to,
                label,
                last,
                serial,
                text,
            };
            sample.write(at + 5, a, told);
        }
        if has_messages {
            sample.write(at + 10, b, Event::Receive { text });
        }
    };
    send(&mut sample, 100, 0);
    send(&mut sample, 200, 1);
    send(&mut sample, 300, 2);
    send(&mut sample, 400, 0);
    let taken = |serial, text| Event::SeqReceive {
        from: a,
        label,
        last: 0,
        serial,
        text,
    };
    sample.write(500, b, taken(2, "x"));
    sample.write(600, b, taken(9, "y"));
    let (last, serial, text) = (2, 3, "here");
    let printed = Event::SeqPrint {
        label,
        last,
        serial,
        text,
    };
    sample.write(700, b, printed);
    sample
}

#[test]
fn messages_with_tokens_have_their_label() {
    let label = |page: &Value| {
        let labels = numbers(&page["messages"]["label"]);
        let of = labels.iter().map(|label| match label {
            0 => String::new(),
            label => page["texts"][usize::try_from(label - 1).expect("an index")].to_string(),
        });
        of.collect::<Vec<_>>()
    };
    let order = "\"{order,7}\"";
    // When, how long to the queue, how long until it is taken.
    for (has_messages, start, ns, taken, labels) in [
        (
            false,
            &[205, 100, 295, 100][..],
            &[-1, -1, -2, -4][..],
            &[-1, 195, 0, -1][..],
            &[order, order, order, order][..],
        ),
        (
            true,
            &[100, 100, 100, 100, 200, 100],
            &[10, 10, 10, 10, -2, -4],
            &[-1, -1, 200, -1, 0, -1],
            &["", order, order, "", order, order],
        ),
    ] {
        let page = data(&html(&tokens(has_messages), MOST));
        let messages = &page["messages"];
        assert_eq!(messages["missing"], "");
        assert_eq!(messages["is_traced_only"], !has_messages);
        assert_eq!(numbers(&messages["start"]), start, "{has_messages}");
        assert_eq!(numbers(&messages["ns"]), ns, "{has_messages}");
        assert_eq!(numbers(&messages["taken"]), taken, "{has_messages}");
        assert_eq!(label(&page), labels, "{has_messages}");
    }
    let without = data(&html(&sample::varied(), MOST));
    assert!(numbers(&without["messages"]["label"]).is_empty());
    // Of those that are left out, what follows them is not told as of others.
    let few = data(&html(&tokens(true), 2));
    assert_eq!(few["messages"]["left"], 4);
    assert_eq!(numbers(&few["messages"]["taken"]), [0, -1]);
}

/// A server takes a message of each of its two clients. Where it is `whole`, the messages are recorded, and the places in
/// the code.
fn race(whole: bool) -> Sample {
    let groups = [Group::Order, Group::Sites, Group::Messages];
    let mut sample = Sample::new(&groups[..if whole { 3 } else { 1 }]);
    let server = process(9);
    sample.start(server, "server", None);
    for client in [10, 11] {
        sample.start(process(client), "client", None);
        let child = process(client);
        sample.write(client, server, Event::OrderSpawn { child });
    }
    let (function, line) = (sample.function("client"), 7);
    for (client, text) in [(10, "one"), (11, "two")] {
        let (at, from) = (10 * client, process(client));
        if whole {
            sample.write(at, from, Event::OrderSite { function, line });
        }
        sample.write(at, from, Event::OrderSent { count: 1 });
        if whole {
            let to = server;
            sample.write(at + 1, from, Event::Send { to, text });
            sample.write(at + 200, server, Event::Receive { text });
        }
    }
    let (function, line) = (sample.function("server"), 3);
    for client in [10, 11] {
        if whole {
            sample.write(400, server, Event::OrderSite { function, line });
        }
        let label = Label {
            from: client,
            number: 1,
        };
        sample.write(400, server, Event::OrderTake { label });
    }
    sample
}

#[test]
fn races_have_their_messages_and_places() {
    let page = data(&html(&race(true), MOST));
    let races = &page["races"];
    assert_eq!((&races["missing"], &races["left"]), (&"".into(), &0.into()));
    let message = |client: u32, at: u32| {
        serde_json::json!({
            "label": format!("l9.{}:1", client - 9),
            // Processes count from 1, those of the messages first.
            "from": 2 * at + 1,
            "is_end": false,
            "is_change": null,
            "site": "m:client/1, line 7",
            "at": at,
        })
    };
    let race = serde_json::json!({
        "number": 1,
        "more": 0,
        "process": 1,
        "taken": message(10, 0),
        "other": message(11, 1),
        "object": "",
        "is_end": false,
        "site": "m:server/1, line 3",
        "is_same": true,
        "has_clause": false,
        "is_of_application": true,
    });
    assert_eq!(races["all"], serde_json::json!([race]));
    assert_eq!(races["has_sites"], true);
}

#[test]
fn a_race_of_an_exit_signal_has_what_came_before_it() {
    let mut sample = Sample::new(&[Group::Order, Group::Sites]);
    let [of, by] = [9, 10].map(process);
    sample.start(of, "server", None);
    sample.start(by, "client", None);
    sample.write(100, of, Event::OrderSpawn { child: by });
    sample.write(200, of, Event::OrderSent { count: 1 });
    let (function, line) = (sample.function("stop"), 5);
    sample.write(300, by, Event::OrderSite { function, line });
    let signal = Event::OrderSignal {
        what: SignalKind::Exit as u64,
        to: of,
    };
    sample.write(300, by, signal);
    sample.write(400, of, Event::OrderEndedBy { of: by });
    let spent = Event::OrderSpent {
        reductions: 1,
        words: 1,
        ended: 1,
    };
    sample.write(400, of, spent);
    sample.write(400, of, Event::OrderExit {});
    let page = data(&html(&sample, MOST));
    let race = &page["races"]["all"][0];
    assert_eq!(race["is_end"], true, "{race}");
    assert_eq!(race["taken"]["label"], "sent l9:1");
    assert_eq!(race["other"]["label"], "exit signal");
    assert_eq!(race["other"]["site"], "m:stop/1, line 5");
}

#[test]
fn races_of_which_little_is_recorded_have_what_is_known() {
    let page = data(&html(&race(false), MOST));
    let race = &page["races"]["all"][0];
    assert_eq!(page["races"]["has_sites"], false);
    assert_eq!(
        (&race["site"], &race["is_same"]),
        (&"".into(), &Value::Null)
    );
    assert_eq!(race["other"]["at"], -1);
    let page = data(&html(&sample::varied(), MOST));
    let missing = page["races"]["missing"].as_str().expect("a text");
    assert!(
        missing.starts_with("No races can be shown: the recording has no order. "),
        "{missing}"
    );
}

#[test]
fn samples_are_numbers_of_samples_and_no_calls() {
    let page = data(&html(&seen(30, 10), MOST));
    let sampled = &page["sampled"];
    assert_eq!(
        (&sampled["rate_hz"], &sampled["samples"]),
        (&200.into(), &40.into())
    );
    assert_eq!(
        (&sampled["lost"], &sampled["stopped"]),
        (&3.into(), &"".into())
    );
    let flame = &page["flame"];
    assert_eq!(flame["missing"], "");
    let widths = flame["widths"].as_array().expect("a list");
    assert_eq!(widths.len(), 1);
    assert_eq!(widths[0]["name"], "samples");
    assert_eq!(numbers(&widths[0]["own"]), [30, 10]);
    assert_eq!(numbers(&widths[0]["total"]), [40, 10]);
    let functions = &flame["costs"][0];
    assert_eq!(numbers(&functions["total"]), [40, 10]);
    let of_paths: Vec<i64> = cells(flame, 0).iter().map(|(_, _, cost)| *cost).collect();
    assert_eq!(of_paths.iter().sum::<i64>(), 40);
    let threads = sampled["threads"].as_array().expect("a list");
    assert_eq!(threads.len(), 1);
    assert_eq!(threads[0]["name"], "scheduler 2");
    // One number for each part of the time; none of what it never did.
    let does = threads[0]["does"].as_array().expect("a list");
    let sums = does.iter().map(numbers);
    let sums: Vec<(usize, i64)> = sums.map(|of| (of.len(), of.iter().sum())).collect();
    assert_eq!(sums, [(240, 40), (0, 0), (0, 0), (0, 0)]);
    // A recording of calls is none of samples.
    assert_eq!(data(&html(&sample::varied(), MOST))["sampled"], Value::Null);
}
