//! `--events net`: what crosses sockets, in recordings and in what is made of them.

mod browser;
mod library;
mod place;

use serde_json::Value;

use browser::Browser;
use place::Place;

/// What the program says of a socket: which it is, a port, bytes that came, bytes that were sent.
struct Told {
    which: String,
    port: u64,
    bytes: [u64; 2],
}

fn told(printed: &str) -> Vec<Told> {
    let lines = printed.lines().map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |at: usize| words[at].parse().expect("a number");
        Told {
            which: words[0].to_owned(),
            port: number(1),
            bytes: [number(2), number(3)],
        }
    });
    lines.collect()
}

/// A place with a recording of the program, and what that has printed.
fn recorded() -> Option<(Place, Vec<Told>)> {
    let place = library::place_of("net", "crossing")?;
    let record = ["record", "-o", "a.ring", "--events", "net,scheduling"];
    let printed = library::run_main(&place, "crossing", &record);
    let told = told(&printed);
    assert_eq!(told.len(), 6, "{printed}");
    Some((place, told))
}

fn report(place: &Place) -> Value {
    place.printed(&["report", "--json", "a.json", "a.ring"]);
    let text = std::fs::read_to_string(place.file("a.json")).expect("it is written");
    serde_json::from_str(&text).expect("JSON")
}

/// The connection of the report that the program tells of.
fn connection<'r>(report: &'r Value, of: &Told) -> &'r Value {
    let address = format!("127.0.0.1:{}", of.port);
    let is_it = |row: &&Value| match of.which.as_str() {
        "server" => row["listener"] == format!("tcp at {address}"),
        "datagrams" => row["own"] == address,
        _ => row["peer"] == address,
    };
    let mut all = report["connections"].as_array().into_iter().flatten();
    let found = all.find(is_it);
    found.unwrap_or_else(|| panic!("{} {address}: {report}", of.which))
}

#[test]
fn a_recording_counts_what_the_program_counts() {
    let Some((place, all)) = recorded() else {
        return;
    };
    let report = report(&place);
    for of in &all {
        let row = connection(&report, of);
        let counted = [&row["in_bytes"], &row["out_bytes"]].map(Value::as_u64);
        assert_eq!(counted, of.bytes.map(Some), "{}: {row}", of.which);
        assert!(
            row["closed_ns"].is_u64() || of.which == "datagrams",
            "{row}"
        );
    }
    let clients = all.iter().filter(|of| of.which == "client");
    assert_eq!(clients.clone().count(), 2);
    for of in clients {
        let row = connection(&report, of);
        assert_eq!(
            (&row["answers"]["count"], &row["kind"]),
            (&10.into(), &"tcp".into())
        );
        let waits = row["waits"].as_array().expect("it waited");
        assert!(waits.iter().any(|of| of["what"] == "for data"), "{row}");
    }
    for of in all.iter().filter(|of| of.which == "server") {
        let row = connection(&report, of);
        assert_eq!(row["is_closed_by_peer"], true, "{row}");
        // The client has asked ten times.
        assert_eq!(row["answers"]["count"], 10, "{row}");
    }
    let refused = all.last().expect("the last line");
    assert_eq!(connection(&report, refused)["failure"], "econnrefused");
}

#[test]
fn the_report_and_the_page_name_peers() {
    let Some((place, all)) = recorded() else {
        return;
    };
    let client = format!("tcp to 127.0.0.1:{}", all[0].port);
    let text = place.printed(&["report", "a.ring"]);
    for line in [
        format!(" {client}\n"),
        format!(" clients of tcp at 127.0.0.1:{}\n", all[0].port),
        "; econnrefused\n".to_owned(),
        " for data, ".to_owned(),
    ] {
        assert!(text.contains(&line), "{line} in {text}");
    }
    let exported = place.printed(&["export", "--to", "jsonl", "a.ring"]);
    let first: Value =
        serde_json::from_str(exported.lines().next().expect("a line")).expect("JSON");
    let sockets = first["sockets"].as_object().expect("there are some");
    assert!(sockets.values().any(|of| *of == client), "{first}");
    let mut browser = Browser::start();
    place.printed(&["html", "a.ring", "-o", "a.html"]);
    let page = std::fs::canonicalize(place.file("a.html")).expect("it is written");
    browser.open(&format!("file://{}", page.display()));
    browser.show("network");
    let peers = browser.text("document.querySelector('#network table').textContent");
    assert!(peers.contains(&client), "{peers}");
    browser.choose("network-filter", &client);
    let rows = "String(document.querySelectorAll('#network-body .tools ~ .wide tbody tr').length)";
    assert_eq!(browser.text(rows), "1");
    // The process that waited has the wait in its row of the timeline.
    browser.value("document.querySelector('#network-body .tools ~ .wide td button').click()");
    browser.settle();
    let detail = browser.detail("timeline");
    assert!(
        detail.contains("Waits ") && detail.contains(&client),
        "{detail}"
    );
    browser.finish();
}

#[test]
fn nothing_is_recorded_of_sockets_that_nobody_asked_for() {
    let Some(place) = library::place_of("net", "crossing") else {
        return;
    };
    let record = ["record", "-o", "a.ring", "--events", "scheduling"];
    library::run_main(&place, "crossing", &record);
    let report = report(&place);
    assert!(report["connections"].is_null(), "{report}");
    let text = place.printed(&["report", "a.ring"]);
    assert!(!text.contains("Sockets"), "{text}");
}
