//! `beamline html`, and its page in a browser.

mod browser;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use beamline_formats::ring::{
    Anchor, Clock, Description, Event, Group, Id, Name, NameId, Options, Ring, Segment, Settings,
    WhenFull,
};
use serde_json::json;

use browser::Browser;

/// A name that would end the script, if it were taken for HTML.
const EVIL: &str = "</script><b>";

/// A recording that is made event by event.
struct Recorded {
    ring: std::sync::Arc<Ring>,
    segment: Segment,
    module: NameId,
}

const A: Id = Id::Process(9);
const B: Id = Id::Process(10);

impl Recorded {
    fn new(path: &Path) -> Recorded {
        let events = Group::ALL.iter().map(|group| group.name().to_owned());
        let options = Options {
            schedulers: 1,
            ring_bytes: 32 << 20,
            when_full: WhenFull::Stop,
            token: 1,
            clock: Clock {
                counter: false,
                ns_per_4g: 1 << 32,
                anchor: Anchor::default,
                unix_ns: 1_700_000_000_000_000_000,
            },
            description: Description {
                otp: "29".into(),
                command: vec!["erl".into(), EVIL.into()],
                settings: Settings {
                    events: events.collect(),
                    ..Settings::default()
                },
                ..Description::default()
            },
        };
        let ring = Ring::create(path, &options).expect("a ring");
        let segment = ring.segment(0).expect("it is free");
        let module = ring.name(Name::Atom("m"));
        Recorded {
            ring,
            segment,
            module,
        }
    }

    fn function(&self, name: &str) -> NameId {
        let (module, name, arity) = (self.module, self.ring.name(Name::Atom(name)), 1);
        self.ring.name(Name::Function {
            module,
            name,
            arity,
        })
    }

    fn write(&mut self, at_ns: u64, id: Id, event: Event<'_>) {
        assert!(self.segment.write(at_ns, id, &event), "there is room");
    }
}

/// A recording of so many rounds, of which each has a turn, a collection and two messages.
fn record(path: &Path, rounds: u64) {
    let mut to = Recorded::new(path);
    let [main, fib, evil] = ["main", "fib", EVIL].map(|name| to.function(name));
    for (id, function) in [(A, main), (B, evil)] {
        let parent = Id::None;
        to.ring.name(Name::Process {
            id,
            parent,
            function,
        });
    }
    to.write(50, A, Event::In { function: main });
    to.write(100, A, Event::Call { function: main });
    for round in 0..rounds {
        let at = 1_000 + 10_000 * round;
        to.write(at, A, Event::Call { function: fib });
        to.write(at + 1_000, A, Event::Call { function: evil });
        to.write(at + 1_500, A, Event::Return { function: evil });
        to.write(at + 2_000, A, Event::Return { function: fib });
        let text = if round == 3 { EVIL } else { "go" };
        to.write(at + 2_100, A, Event::Send { to: B, text });
        to.write(at + 2_200, B, Event::Receive { text });
        to.write(
            at + 2_300,
            A,
            Event::Send {
                to: B,
                text: "again",
            },
        );
        to.write(at + 2_400, B, Event::Receive { text: "again" });
        let (need, used, reclaimed) = (1, 2, 3);
        to.write(at + 3_000, A, Event::GcMinorStart { need, used });
        to.write(at + 4_000, A, Event::GcMinorEnd { reclaimed, used });
        let (function, messages, reductions) = (main, 0, round);
        let out = Event::Out {
            function,
            messages,
            reductions,
        };
        to.write(at + 5_000, A, out);
        to.write(at + 6_000, A, Event::In { function: main });
    }
    to.write(10_000 * rounds + 2_000, A, Event::LongGc { ms: 12 });
    to.ring.end();
}

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        let folder = tempfile::tempdir().expect("a temporary folder");
        Place { folder }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn html(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_beamline"))
            .arg("html")
            .args(arguments)
            .current_dir(self.folder.path())
            .output()
            .expect("it runs")
    }

    /// The address of the page of such a recording.
    fn page(&self, rounds: u64) -> String {
        record(&self.file("a.ring"), rounds);
        let output = self.html(&["a.ring", "-o", "a.html"]);
        assert!(output.status.success(), "{output:?}");
        format!("file://{}", self.file("a.html").display())
    }
}

#[test]
fn what_is_no_recording_is_refused_and_nothing_is_written() {
    let place = Place::new();
    record(&place.file("a.ring"), 3);
    let whole = fs::read(place.file("a.ring")).expect("there");
    fs::write(place.file("empty"), "").expect("writable");
    fs::write(place.file("foreign"), "x".repeat(9_000)).expect("writable");
    fs::write(place.file("cut"), &whole[..whole.len() / 2]).expect("writable");
    let mut newer = whole.clone();
    newer[8] = 9;
    fs::write(place.file("newer"), newer).expect("writable");
    for file in ["empty", "foreign", "cut", "newer", "no.ring"] {
        let output = place.html(&[file, "-o", "x.html"]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let text = String::from_utf8_lossy(&output.stderr);
        let is_line = text.starts_with(&format!("beamline: {file}: ")) && text.lines().count() == 1;
        assert!(is_line, "{text}");
        assert!(!place.file("x.html").exists());
    }
    let output = place.html(&["a.ring", "-o", "a.ring"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(fs::read(place.file("a.ring")).expect("there") == whole);
    let output = place.html(&["a.ring", "-o", "x.html", "--most", "0"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

/// What needs a browser: `--skip in_a_browser` leaves it out.
mod in_a_browser {
    use super::*;

    #[test]
    fn the_flame_graph_is_searched_and_zoomed_with_keys() {
        let mut browser = Browser::start();
        browser.open(&Place::new().page(20));
        assert_eq!(browser.detail("flame"), "all: 176.90 µs, 100.0 % of all");
        browser.key("/");
        assert_eq!(browser.text("document.activeElement.id"), "search");
        browser.keys(&["F", "i", "B"]);
        assert_eq!(
            browser.text("document.getElementById('found').textContent"),
            "1 function, 22.6 %"
        );
        browser.key("Enter");
        assert!(
            browser
                .detail("flame")
                .starts_with("m:fib/1: 40.00 µs, 22.6 % of all")
        );
        let (is_zoomed, before) = (
            "!document.getElementById('zoom-out').disabled",
            browser.picture("flame"),
        );
        browser.key("Enter");
        assert_eq!(browser.value(is_zoomed), true);
        assert!(
            browser
                .detail("flame")
                .contains("100.0 % of what is zoomed into")
        );
        assert_ne!(browser.picture("flame"), before);
        browser.key("ArrowDown");
        let detail = browser.detail("flame");
        assert!(
            detail.starts_with(&format!("m:'{EVIL}'/1: 10.00 µs")),
            "{detail}"
        );
        browser.keys(&["ArrowUp", "ArrowUp"]);
        assert!(browser.detail("flame").starts_with("m:main/1"));
        browser.key("Escape");
        assert_eq!(browser.value(is_zoomed), false);
        browser.key("Escape");
        assert_eq!(browser.text("document.getElementById('search').value"), "");
        browser.value("const width = document.getElementById('width'); width.value = '1'; width.dispatchEvent(new Event('change'))");
        let detail = browser.detail("flame");
        assert!(
            detail.starts_with("m:main/1: 41 calls, 100.0 % of all; own 1 call; time 176.90 µs"),
            "{detail}"
        );
        browser.finish();
    }

    #[test]
    fn timeline_and_messages_are_walked_with_keys() {
        let mut browser = Browser::start();
        browser.open(&Place::new().page(20));
        browser.focus("timeline");
        let all = browser.picture("timeline");
        browser.key("ArrowRight");
        assert!(
            browser
                .detail("timeline")
                .contains("Turn at 0.000000 s, 5.95 µs, on Scheduler 1; from m:main/1 to m:main/1")
        );
        browser.key("ArrowRight");
        assert!(
            browser
                .detail("timeline")
                .contains("Minor collection at 0.000004 s, 1.00 µs; 3 words given back, 2 in use")
        );
        browser.key("Enter");
        let near = browser.picture("timeline");
        browser.key("-");
        let wider = browser.picture("timeline");
        browser.keys(&["Escape", "ArrowUp", "ArrowDown"]);
        assert!(near != wider && near != all);
        assert_eq!(browser.picture("timeline"), all);
        browser.focus("messages");
        browser.key("ArrowDown");
        let detail = browser.detail("messages");
        assert!(
            detail.starts_with("<0.9.0> m:main/1 → <0.10.0> ")
                && detail.ends_with("in the queue 100 ns lateragain"),
            "{detail}"
        );
        browser.key("/");
        browser.keys(&["<", "/", "s", "Enter"]);
        assert!(browser.detail("messages").ends_with(EVIL));
        browser.finish();
    }

    #[test]
    fn no_name_becomes_a_part_of_the_page() {
        let mut browser = Browser::start();
        browser.open(&Place::new().page(20));
        assert_eq!(browser.value("document.scripts.length"), 2);
        assert_eq!(
            browser.value(
                "[...document.querySelectorAll('b')].filter((b) => b.textContent === '').length"
            ),
            0
        );
        assert_eq!(
            browser.text("document.querySelector('h1').textContent"),
            format!("erl {EVIL}")
        );
        let functions = browser.text("document.getElementById('overview').textContent");
        assert!(functions.contains(&format!("m:'{EVIL}'/1")));
        assert_eq!(
            browser.value("document.querySelectorAll('#histograms img').length >= 5"),
            true
        );
        let drawn = "[...document.querySelectorAll('#histograms img')].every((img) => img.complete && img.naturalWidth > 0)";
        assert_eq!(browser.value(drawn), true);
        browser.finish();
    }

    /// The contrast of two colours of the style, as WCAG 2 has it.
    const CONTRAST: &str = "((one, other) => {
        const style = getComputedStyle(document.documentElement);
        const light = (name) => {
            const hex = style.getPropertyValue(`--${name}`).trim().slice(1);
            const parts = [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16) / 255)
                .map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
            return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
        };
        const [a, b] = [light(one), light(other)];
        return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    })";

    #[test]
    fn it_is_read_in_light_and_dark_narrow_and_wide() {
        let mut browser = Browser::start();
        browser.open(&Place::new().page(20));
        let mut grounds = Vec::new();
        for scheme in ["light", "dark"] {
            let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
            browser.call("Emulation.setEmulatedMedia", json!({"features": features}));
            browser.settle();
            grounds.push(browser.text("getComputedStyle(document.body).backgroundColor"));
            for (ink, ground, least) in [
                ("ink", "ground", 7.0),
                ("ink", "raised", 7.0),
                ("ink", "canvas", 7.0),
                ("faint", "ground", 4.5),
                ("faint", "canvas", 4.5),
                ("accent", "ground", 4.5),
                ("focus", "ground", 3.0),
                ("warn-ink", "warn-ground", 4.5),
                ("turn", "canvas", 3.0),
                ("minor", "canvas", 3.0),
                ("major", "canvas", 3.0),
                ("system", "canvas", 3.0),
                ("process", "canvas", 3.0),
                ("port", "canvas", 3.0),
            ] {
                let contrast = browser.value(&format!("{CONTRAST}('{ink}', '{ground}')"));
                let is_enough = contrast.as_f64().is_some_and(|contrast| contrast >= least);
                assert!(is_enough, "{scheme}: {ink} on {ground}: {contrast}");
            }
        }
        assert_ne!(grounds[0], grounds[1]);
        for width in [360, 800, 1920] {
            let metrics =
                json!({"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": false});
            browser.call("Emulation.setDeviceMetricsOverride", metrics);
            browser.settle();
            let fits =
                "document.documentElement.scrollWidth <= document.documentElement.clientWidth";
            assert_eq!(browser.value(fits), true, "{width}");
        }
        browser.finish();
    }

    #[test]
    fn a_hundred_thousand_events_are_shown() {
        let mut browser = Browser::start();
        let place = Place::new();
        browser.open(&place.page(25_000));
        assert!(
            browser
                .text("document.querySelector('#messages .tools').textContent")
                .ends_with("50\u{202f}000 messages")
        );
        browser.focus("timeline");
        assert!(browser.detail("timeline").contains("25\u{202f}001 turns"));
        browser.focus("messages");
        browser.key("End");
        assert!(browser.detail("messages").contains("sent at 0.249993"));
        let opened = browser.value("performance.getEntriesByType('navigation')[0].loadEventEnd");
        println!("it was open after {opened} ms");
        browser.finish();
    }
}
