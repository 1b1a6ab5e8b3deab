//! `beamline html`, and its page in a browser.

mod browser;
mod made;
#[path = "made/races.rs"]
mod races;
#[path = "made/samples.rs"]
mod samples;
#[path = "made/server.rs"]
mod server;
#[path = "made/tokens.rs"]
mod tokens;

use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::json;

use browser::Browser;
use made::{EVIL, record};
use races::record_race;
use samples::record_samples;
use server::record_server;
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

    /// The address of the page of a recording of requests with tokens.
    fn page_of_tokens(&self, requests: u64) -> String {
        record_tokens(&self.file("a.ring"), requests);
        self.page_of_it()
    }

    /// The address of the page of a recording of a race.
    fn page_of_race(&self) -> String {
        record_race(&self.file("a.ring"));
        self.page_of_it()
    }

    /// The address of the page of a recording of samples.
    fn page_of_samples(&self) -> String {
        record_samples(&self.file("a.ring"));
        self.page_of_it()
    }

    fn page_of_it(&self) -> String {
        let output = self.html(&["a.ring", "-o", "a.html"]);
        assert!(output.status.success(), "{output:?}");
        format!("file://{}", self.file("a.html").display())
    }
}

/// The parts of the page.
const PARTS: [&str; 11] = [
    "overview",
    "flame",
    "functions",
    "timeline",
    "chart",
    "messages",
    "races",
    "processes",
    "network",
    "histograms",
    "keys",
];

/// What needs a browser: `--skip in_a_browser` leaves it out.
mod in_a_browser {
    use super::*;

    #[test]
    fn the_flame_graph_is_searched_and_zoomed_with_keys() {
        let mut browser = Browser::start();
        browser.open(&Place::new().page(20));
        browser.focus("flame");
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
        assert!(browser.detail("timeline").contains(
            "Time slice at 0.000000 s, 5.95 µs, on Scheduler 1; from m:main/1 to m:main/1"
        ));
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
    fn a_race_is_shown_in_both_orders() {
        let mut browser = Browser::start();
        browser.open(&Place::new().page_of_race());
        browser.focus("messages");
        let other = "<0.11.0> m:client/1 → <0.9.0> m:server/1, sent at 0.000001 s, in the queue 50 ns later\
                     Race 1: it could have come before l9.1:1 from <0.10.0> m:client/1 Show both orders (o)";
        browser.key("ArrowDown");
        assert_eq!(browser.detail("messages"), format!("{other}{EVIL}"));
        browser.key("o");
        let drawn = "[...document.querySelectorAll('#races svg')].map((svg) => svg.getAttribute('aria-label')).join('; ')";
        assert_eq!(
            browser.text(drawn),
            "As recorded: l9.1:1, then takes l9.1:1, then l9.2:1; The other order: l9.2:1, then takes l9.2:1, then l9.1:1"
        );
        let detail = browser.detail("races");
        assert!(
            detail.contains("The same receive took the other message later.")
                && detail.contains("beamline races a.ring --prefix 1 -o other.log")
                && detail.contains(EVIL),
            "{detail}"
        );
        let back = "[...document.querySelectorAll('#races .detail button')].at(-1).click()";
        browser.value(back);
        browser.settle();
        assert_eq!(browser.detail("messages"), format!("{other}{EVIL}"));
        let rows = "document.querySelector('#races tbody').textContent";
        browser.show("races");
        assert!(browser.text(rows).contains("m:server/1, line 3"));
        browser.finish();
    }

    #[test]
    fn messages_with_tokens_have_lanes_by_label() {
        let mut browser = Browser::start();
        browser.open(&Place::new().page_of_tokens(10));
        let tools = "document.querySelector('#messages .tools').textContent";
        browser.focus("messages");
        // Four messages and a text printed for each request.
        assert!(browser.text(tools).ends_with("50 messages with a token"));
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
        browser.show("functions");
        let functions = browser.text("document.getElementById('functions').textContent");
        assert!(functions.contains(&format!("m:'{EVIL}'/1")));
        browser.show("histograms");
        let number = "document.querySelectorAll('#histograms canvas').length >= 5";
        assert_eq!(browser.value(number), true);
        let drawn = "[...document.querySelector('#histograms canvas').getContext('2d')\
                     .getImageData(0, 0, 300, 150).data].some((byte) => byte > 0)";
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

    /// The elements of a part that are wider than their place.
    fn too_wide(browser: &mut Browser, part: &str) -> String {
        browser.text(&format!(
            "[document.documentElement, ...document.querySelectorAll('#{part} *, .top *')]\
             .filter((one) => one.tagName !== 'SELECT' && one.scrollWidth > one.clientWidth && one.clientWidth > 0 \
             && getComputedStyle(one).display !== 'inline').map((one) => one.outerHTML.slice(0, 99)).join()"
        ))
    }

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
                ("slice", "canvas", 3.0),
                ("minor", "canvas", 3.0),
                ("major", "canvas", 3.0),
                ("system", "canvas", 3.0),
                ("process", "canvas", 3.0),
                ("port", "canvas", 3.0),
                ("found", "canvas", 3.0),
            ] {
                let contrast = browser.value(&format!("{CONTRAST}('{ink}', '{ground}')"));
                let is_enough = contrast.as_f64().is_some_and(|contrast| contrast >= least);
                assert!(is_enough, "{scheme}: {ink} on {ground}: {contrast}");
            }
        }
        assert_ne!(grounds[0], grounds[1]);
        for width in [360, 390, 800, 1280, 1920] {
            let metrics =
                json!({"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": false});
            browser.call("Emulation.setDeviceMetricsOverride", metrics);
            for part in PARTS {
                browser.show(part);
                assert_eq!(too_wide(&mut browser, part), "", "{part} at {width}");
            }
        }
        browser.finish();
    }

    /// The text of the row of a list in which this is.
    fn row(browser: &mut Browser, part: &str, name: &str) -> String {
        browser.text(&format!(
            "[...document.querySelectorAll('#{part} tbody tr')].map((row) => row.textContent)\
             .find((row) => row.includes('{name}')) ?? 'none'"
        ))
    }

    #[test]
    fn all_parts_follow_a_stretch_of_the_time() {
        let mut browser = Browser::start();
        browser.open(&Place::new().page(20));
        browser.focus("flame");
        let whole = browser.detail("flame");
        let picture = browser.picture("flame");
        // Somebody drags over the first half of the strip.
        let strip = browser.value(
            "(({left, top, width}) => [left, top, width])(document.getElementById('strip').getBoundingClientRect())",
        );
        let [left, top, width] = [0, 1, 2].map(|at| strip[at].as_f64().expect("a number"));
        for (kind, share) in [
            ("mousePressed", 0.0),
            ("mouseMoved", 0.3),
            ("mouseMoved", 0.5),
            ("mouseReleased", 0.5),
        ] {
            let at = json!({"type": kind, "x": left + 1.0 + share * (width - 2.0), "y": top + 9.0, "button": "left", "buttons": 1, "clickCount": 1});
            browser.call("Input.dispatchMouseEvent", at);
        }
        browser.settle();
        let stretch = browser.text("document.getElementById('stretch-text').textContent");
        assert!(
            stretch.starts_with("0.000000 s to 0.000101 s: 101.0"),
            "{stretch}"
        );
        let half = browser.detail("flame");
        assert!(half.starts_with("all: 90.94 µs") && half != whole, "{half}");
        assert_ne!(browser.picture("flame"), picture);
        browser.show("functions");
        let fib = row(&mut browser, "functions", "m:fib/1");
        assert!(
            fib.starts_with("15.04 µs") && fib.contains("20.04 µs11"),
            "{fib}"
        );
        browser.show("histograms");
        let first = browser.text("document.querySelector('#histograms .about').textContent");
        assert!(
            first.starts_with("20 of 40; half of them at most 511 ns"),
            "{first}"
        );
        let row_ = row(&mut browser, "histograms", "m:fib/1");
        assert!(row_.starts_with("10"), "{row_}");
        browser.show("processes");
        let sent = row(&mut browser, "processes", "<0.9.0>");
        assert!(sent.contains("1010"), "{sent}");
        browser.show("overview");
        let overview = row(&mut browser, "overview", "m:fib/1");
        assert!(overview.starts_with("15.04 µs"), "{overview}");
        browser.show("messages");
        let messages = browser.text("document.querySelector('#messages .tools').textContent");
        assert!(messages.ends_with("20 messages"), "{messages}");
        // With keys: the whole again, a tenth, and its end.
        browser.value("document.getElementById('strip').focus()");
        browser.key("Escape");
        browser.show("flame");
        assert_eq!(browser.detail("flame"), whole);
        browser.value("document.getElementById('strip').focus()");
        browser.key("ArrowRight");
        let tenth = browser.text("document.getElementById('stretch-text').textContent");
        assert!(tenth.starts_with("0.000000 s to 0.000020 s"), "{tenth}");
        browser.key("+");
        let less = browser.text("document.getElementById('stretch-text').textContent");
        assert!(less.starts_with("0.000005 s to 0.000015 s"), "{less}");
        browser.finish();
    }

    #[test]
    fn a_function_has_callers_callees_and_its_calls_on_the_timeline() {
        let mut browser = Browser::start();
        browser.open(&Place::new().page(20));
        browser.show("functions");
        let names = "[...document.querySelectorAll('#functions tbody .function')].map((one) => one.textContent).join()";
        let sorted = browser.text(names);
        assert_eq!(sorted, format!("m:main/1,m:fib/1,m:'{EVIL}'/1"));
        // By calls, and then the other way round.
        let calls = "[...document.querySelectorAll('#functions th button')].find((one) => one.textContent === 'Calls').click()";
        browser.value(calls);
        browser.value(calls);
        assert!(browser.text(names).starts_with("m:main/1,"));
        let order = "document.querySelector('#functions th[aria-sort=ascending]').textContent";
        assert_eq!(browser.text(order), "Calls");
        browser.choose("functions-filter", "FIB");
        assert_eq!(browser.text(names), "m:fib/1");
        let before = browser.picture("stretch");
        browser.value("document.querySelector('#functions tbody .function').click()");
        browser.settle();
        let of = |browser: &mut Browser, title: &str| {
            browser.text(&format!("document.querySelector('#one-function table[aria-label={title}] tbody').textContent"))
        };
        assert_eq!(of(&mut browser, "Callers"), "40.00 µs100.0 %20m:main/1");
        assert_eq!(
            of(&mut browser, "Callees"),
            format!("10.00 µs100.0 %20m:'{EVIL}'/1")
        );
        assert_ne!(browser.picture("stretch"), before);
        browser.value("[...document.querySelectorAll('#one-function button')].find((one) => one.textContent.includes('timeline')).click()");
        browser.settle();
        let detail = browser.detail("timeline");
        assert!(
            detail.ends_with("Call of m:fib/1 at 0.000001 s, 2.00 µs; own 1.50 µs"),
            "{detail}"
        );
        let order = "document.querySelector('#timeline select').value";
        assert_eq!(browser.text(order), "marked");
        browser.value("document.getElementById('unmark').click()");
        assert!(!browser.detail("timeline").contains("Call of"));
        assert_eq!(browser.text(order), "busy");
        browser.finish();
    }

    #[test]
    fn the_timelines_rows_follow_the_stretch() {
        let mut browser = Browser::start();
        let place = Place::new();
        record_server(&place.file("a.ring"), 30);
        browser.open(&place.page_of_it());
        browser.focus("timeline");
        let whole = browser.detail("timeline");
        assert!(whole.starts_with("<0.20.0>"), "{whole}");
        browser.set_hash("from=0&to=2");
        browser.focus("timeline");
        let begin = browser.detail("timeline");
        assert!(begin.starts_with("<0.1.0>"), "{begin}");
        browser.finish();
    }

    #[test]
    fn a_view_is_shared_by_its_address() {
        let mut browser = Browser::start();
        let address = Place::new();
        let page = address.page(20);
        browser.open(&page);
        browser.focus("flame");
        browser.keys(&["ArrowDown", "ArrowDown", "Enter"]);
        let down = browser.picture("flame");
        browser.choose("flame-direction", "up");
        let up = browser.picture("flame");
        assert_ne!(up, down);
        browser.choose("flame-kind", "inverted");
        browser.focus("flame");
        // What costs stands first, and its caller on it.
        browser.keys(&["ArrowUp"]);
        assert!(browser.detail("flame").starts_with("m:main/1: 136.90 µs"));
        browser.keys(&["ArrowRight", "ArrowUp"]);
        let caller = browser.detail("flame");
        assert!(caller.starts_with("m:main/1: 30.00 µs"), "{caller}");
        browser.key("Enter");
        browser.value("document.getElementById('strip').focus()");
        browser.key("ArrowRight");
        browser.focus("flame");
        // The address follows after a moment.
        browser.value("new Promise((done) => { const look = () => location.hash.includes('from=') ? done() : setTimeout(look, 10); look(); })");
        let hash = browser.text("location.hash");
        for part in [
            "tab=flame",
            "from=0",
            "to=24",
            "graph=inverted",
            "direction=up",
            "zoom=1.0",
        ] {
            assert!(hash.contains(part), "{part} in {hash}");
        }
        let (picture, detail) = (browser.picture("flame"), browser.detail("flame"));
        // The address opens the same view in another window.
        let mut other = Browser::start();
        other.open(&format!("{page}{hash}"));
        other.focus("flame");
        assert_eq!(
            (other.picture("flame"), other.detail("flame")),
            (picture, detail)
        );
        // Somebody changes the address.
        other.set_hash("#tab=processes");
        assert_eq!(
            other.value("document.getElementById('processes').hidden"),
            false
        );
        other.show("flame");
        assert!(other.detail("flame").starts_with("all: 176.90 µs"));
        browser.finish();
        other.finish();
    }

    #[test]
    fn the_call_chart_is_walked_with_keys() {
        let mut browser = Browser::start();
        browser.open(&Place::new().page(20));
        browser.focus("chart");
        assert_eq!(browser.detail("chart"), "<0.9.0> m:main/1: 41 calls");
        browser.key("ArrowRight");
        let all = browser.picture("chart");
        let detail = browser.detail("chart");
        assert!(
            detail.starts_with("m:main/1: called at 0.000000 s, 201.90 µs; own 141.90 µs"),
            "{detail}"
        );
        browser.key("ArrowDown");
        assert!(
            browser
                .detail("chart")
                .starts_with("m:fib/1: called at 0.000001 s, 2.00 µs; own 1.50 µs")
        );
        browser.key("ArrowDown");
        assert!(
            browser
                .detail("chart")
                .starts_with(&format!("m:'{EVIL}'/1: called at 0.000002 s, 500 ns"))
        );
        browser.keys(&["ArrowRight", "Enter"]);
        let near = browser.picture("chart");
        browser.keys(&["Escape", "ArrowUp", "ArrowUp"]);
        assert!(browser.detail("chart").starts_with("m:main/1"));
        assert!(near != all && browser.picture("chart") == all);
        browser.finish();
    }

    #[test]
    fn calls_are_paired_with_answers_and_boot_is_hidden() {
        let mut browser = Browser::start();
        let place = Place::new();
        record_server(&place.file("a.ring"), 30);
        browser.open(&place.page_of_it());
        browser.focus("messages");
        // Of the server and the four clients that it hears most of.
        let tools = "document.querySelector('#messages .tools').textContent";
        assert!(
            browser.text(tools).ends_with("40 messages"),
            "{}",
            browser.text(tools)
        );
        let detail = browser.detail("messages");
        assert!(
            detail.contains("answered 4.00 µs later Go to the answer (r)"),
            "{detail}"
        );
        browser.key("r");
        let detail = browser.detail("messages");
        assert!(
            detail.contains("the answer, 4.00 µs after the call"),
            "{detail}"
        );
        browser.choose("message-process", "0");
        assert!(browser.text(tools).ends_with("60 messages"));
        let table = "document.querySelector('#messages tbody').textContent";
        assert_eq!(
            browser.text(table),
            "304.00 µs4.00 µs4.00 µs<0.20.0> server:init/1"
        );
        let list = "[...document.querySelectorAll('#messages tbody')].at(-1)";
        let first = browser.text(&format!("{list}.rows[0].textContent"));
        assert!(
            first.starts_with("4.00 µs") && first.contains("get}"),
            "{first}"
        );
        assert_eq!(browser.value(&format!("{list}.rows.length")), 30);
        browser.value("[...document.querySelectorAll('#messages th button')].find((one) => one.textContent === 'Sent').click()");
        browser.value(&format!("{list}.querySelector('button').click()"));
        let detail = browser.detail("messages");
        assert!(detail.contains("at 0.000300 s"), "the last call: {detail}");

        browser.focus("flame");
        let hidden = browser.detail("flame");
        browser.value("document.getElementById('boot').click()");
        browser.settle();
        let all = browser.detail("flame");
        assert!(all.starts_with("all: ") && hidden != all, "{hidden}");
        browser.value("document.getElementById('boot').click()");
        browser.settle();
        assert_eq!(browser.detail("flame"), hidden);
        browser.choose("search", "init:boot");
        assert_eq!(
            browser.text("document.getElementById('found').textContent"),
            "nothing found"
        );
        browser.choose("search", "proc_lib");
        let found = browser.text("document.getElementById('found').textContent");
        // Its caller stays, though it is of a library.
        assert!(found.starts_with("1 function, 100"), "{found}");
        browser.finish();
    }

    #[test]
    fn parts_are_tabs_whose_headings_and_columns_are_seen() {
        let mut browser = Browser::start();
        browser.open(&Place::new().page(20));
        for (number, part) in (1..).zip(PARTS) {
            match number {
                1..=9 => browser.key(&format!("{number}")),
                _ => browser.show(part),
            }
            let shown = "[...document.querySelectorAll('main section')].filter((one) => !one.hidden).map((one) => one.id).join()";
            assert_eq!(browser.text(shown), part);
            let heading = format!(
                "((top, title) => title.getBoundingClientRect().top >= top.getBoundingClientRect().bottom)\
                 (document.querySelector('.top'), document.querySelector('#{part} h2'))"
            );
            assert_eq!(browser.value(&heading), true, "{part}");
            let heads = format!(
                "[...document.querySelectorAll('#{part} th')].every((one) => one.textContent.trim() !== '')"
            );
            assert_eq!(browser.value(&heads), true, "{part}");
        }
        browser.value("document.getElementById('tab-overview').click(); document.getElementById('tab-overview').focus()");
        browser.keys(&["ArrowRight", "ArrowRight"]);
        assert_eq!(browser.text("document.activeElement.id"), "tab-functions");
        browser.finish();
    }

    #[test]
    fn samples_have_shares_with_error_bars_and_no_calls() {
        let mut browser = Browser::start();
        browser.open(&Place::new().page_of_samples());
        let about = browser.text("document.getElementById('about').textContent");
        assert!(
            about.contains("100 samples at 200 Hz, sampled with"),
            "{about}"
        );
        let tabs =
            "[...document.querySelectorAll('#tabs button')].map((tab) => tab.textContent).join()";
        let parts = "Overview,Flame graph,Functions,Timeline,Processes,Keys";
        assert_eq!(browser.text(tabs), parts);
        let said = |browser: &mut Browser, part: &str| {
            browser.show(part);
            browser.text(&format!("document.getElementById('{part}').textContent"))
        };
        for part in ["overview", "functions", "timeline", "processes", "keys"] {
            let text = said(&mut browser, part);
            let calls = ["Calls", "call chart", "Messages", "can be shown"];
            let found = calls.into_iter().find(|word| text.contains(word));
            assert_eq!(found, None, "{part}: {text}");
        }
        let overview = said(&mut browser, "overview");
        for expect in [
            "100, at 200 Hz of threads that ran (made for a test); 3 lost",
            "Nobody counted calls.",
            "25.0 ± 8.4 %",
            "garbage collections",
            "(no process)",
        ] {
            assert!(overview.contains(expect), "{expect}: {overview}");
        }
        browser.focus("flame");
        assert_eq!(
            browser.detail("flame"),
            "all: 100 samples, 100.0 ± 1.8 % of all"
        );
        let main = row(&mut browser, "functions", "m:main/1");
        assert_eq!(main, " 13.0 ± 6.6 %25.0 ± 8.4 %25m:main/1");
        browser.focus("timeline");
        let whole = browser.picture("timeline");
        assert!(
            browser
                .detail("timeline")
                .starts_with("scheduler 1: 75 samples; of these Erlang code 33.3 ± "),
            "{}",
            browser.detail("timeline")
        );
        browser.keys(&["ArrowDown", "ArrowDown"]);
        let detail = browser.detail("timeline");
        assert!(
            detail.starts_with("<0.10.0>: 70 samples, 70.0 ± 8.8 % of all; most often in m:"),
            "{detail}"
        );
        // In the first half of the time there is only the server.
        browser.set_hash("tab=timeline&from=0&to=120");
        browser.key("End");
        let detail = browser.detail("timeline");
        assert!(
            detail.starts_with("(no process): 2 samples, 3.9 ± "),
            "{detail}"
        );
        assert_ne!(browser.picture("timeline"), whole);
        let metrics = json!({"width": 360, "height": 800, "deviceScaleFactor": 1, "mobile": false});
        browser.call("Emulation.setDeviceMetricsOverride", metrics);
        for part in ["overview", "flame", "functions", "timeline", "processes"] {
            browser.show(part);
            assert_eq!(too_wide(&mut browser, part), "", "{part}");
        }
        browser.finish();
    }

    #[test]
    fn a_hundred_thousand_events_are_shown() {
        let mut browser = Browser::start();
        let place = Place::new();
        browser.open(&place.page(25_000));
        browser.show("messages");
        assert!(
            browser
                .text("document.querySelector('#messages .tools').textContent")
                .ends_with("50\u{202f}000 messages")
        );
        browser.focus("timeline");
        assert!(
            browser
                .detail("timeline")
                .contains("25\u{202f}001 time slices")
        );
        browser.focus("messages");
        browser.key("End");
        assert!(browser.detail("messages").contains("sent at 0.249993"));
        let opened = browser.value("performance.getEntriesByType('navigation')[0].loadEventEnd");
        println!("it was open after {opened} ms");
        browser.finish();
    }
}
