//! `beamline html`, and its page in a browser.

mod browser;
mod made;
#[path = "made/tokens.rs"]
mod tokens;

use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::json;

use browser::Browser;
use made::{EVIL, record};
use tokens::record_tokens;

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
        self.page_of_it()
    }

    /// The same of requests with tokens.
    fn page_of_tokens(&self, requests: u64) -> String {
        record_tokens(&self.file("a.ring"), requests);
        self.page_of_it()
    }

    fn page_of_it(&self) -> String {
        let output = self.html(&["a.ring", "-o", "a.html"]);
        assert!(output.status.success(), "{output:?}");
        format!("file://{}", self.file("a.html").display())
    }
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
    fn messages_with_tokens_have_lanes_by_label() {
        let mut browser = Browser::start();
        browser.open(&Place::new().page_of_tokens(10));
        let tools = "document.querySelector('#messages .tools').textContent";
        // Four messages and a text printed for each request.
        assert!(browser.text(tools).ends_with("50 messages with a token"));
        browser.focus("messages");
        let sent = "<0.20.0> m:client/1 → <0.21.0> m:server/1, sent at 0.000001 s, in the queue 200 ns later, \
                    taken 300 ns later, label {order,0}buy";
        assert_eq!(browser.detail("messages"), sent);
        let all = browser.picture("messages");
        // To the text that is printed, and on to the next request of the label.
        browser.keys(&["ArrowRight"; 4]);
        let printed = "<0.21.0> m:server/1, printed at 0.000005 s, label {order,0}{done,ok}";
        assert_eq!(browser.detail("messages"), printed);
        browser.key("ArrowRight");
        let detail = browser.detail("messages");
        assert!(
            detail.contains("sent at 0.000021 s") && detail.contains("{order,0}buy"),
            "{detail}"
        );
        browser.key("ArrowLeft");
        assert_eq!(browser.detail("messages"), printed);
        browser.key("Enter");
        assert!(browser.text(tools).ends_with("15 messages with a token"));
        assert_eq!(browser.detail("messages"), printed);
        assert_ne!(browser.picture("messages"), all);
        browser.keys(&["End", "ArrowUp"]);
        let detail = browser.detail("messages");
        assert!(
            detail.ends_with(&format!("label {{order,0}}{EVIL}")),
            "{detail}"
        );
        browser.keys(&["Escape", "Home"]);
        assert_eq!(browser.detail("messages"), sent);
        assert_eq!(browser.picture("messages"), all);

        // One that nobody takes, of the fifth request; by its label.
        browser.value("const label = document.getElementById('message-label'); label.selectedIndex = 1; label.dispatchEvent(new Event('change'))");
        browser.value("const lanes = document.getElementById('message-lanes'); lanes.value = 'process'; lanes.dispatchEvent(new Event('change'))");
        browser.settle();
        assert!(browser.text(tools).ends_with("15 messages"));
        browser.focus("messages");
        browser.key("Escape");
        assert!(browser.text(tools).ends_with("60 messages"));
        assert_ne!(browser.picture("messages"), all);
        browser.keys(&["/", "t", "i", "c", "k", "Enter"]);
        let detail = browser.detail("messages");
        assert!(
            detail.ends_with("in the queue 100 ns latertick"),
            "{detail}"
        );

        browser.value("lanes.value = 'label'; lanes.dispatchEvent(new Event('change'))");
        browser.focus("messages");
        browser.key("Escape");
        let mut pictures = vec![all];
        for scheme in ["dark", "light"] {
            let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
            browser.call("Emulation.setEmulatedMedia", json!({"features": features}));
            browser.settle();
            pictures.push(browser.picture("messages"));
        }
        assert!(pictures[0] != pictures[1] && pictures[0] == pictures[2]);
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
