//! A browser without a window, driven through the DevTools protocol.
#![allow(dead_code, reason = "each program of tests uses its part of it")]

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

/// Names under which Chromium is on PATH: Debian's, others', Google's own.
const NAMES: [&str; 4] = [
    "chromium",
    "chromium-browser",
    "google-chrome-stable",
    "google-chrome",
];

/// What it is started with: it shows files of this machine only, and is to ask no network for anything.
/// It has no sandbox, which it would not start with as root, or in a container.
const OPTIONS: [&str; 11] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--no-default-browser-check",
    "--remote-debugging-pipe",
];

/// The browser: the one that `BEAMLINE_CHROMIUM` names, or else one on PATH.
///
/// # Panics
/// Where there is none: what cannot be tested has not passed.
pub(crate) fn program() -> PathBuf {
    if let Some(named) = std::env::var_os("BEAMLINE_CHROMIUM") {
        return named.into();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .flat_map(|folder| NAMES.map(|name| folder.join(name)))
        .find(|file| file.is_file());
    found.unwrap_or_else(|| {
        panic!(
            "these tests need Chromium: install it (Debian: apt-get install chromium), or name one in \
             BEAMLINE_CHROMIUM; `cargo test -- --skip in_a_browser` runs the others"
        )
    })
}

/// A browser without a window.
pub(crate) struct Browser {
    child: Child,
    to: ChildStdin,
    answers: Receiver<Value>,
    session: Option<String>,
    number: u64,
    /// What it told without being asked.
    told: Vec<Value>,
    _profile: tempfile::TempDir,
}

impl Drop for Browser {
    fn drop(&mut self) {
        // If it has ended already, so much the better.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Browser {
    /// Starts one, with an empty page.
    pub(crate) fn start() -> Browser {
        let profile = tempfile::tempdir().expect("a temporary folder");
        // It is spoken to through the descriptors 3 and 4.
        let mut child = Command::new("sh")
            .args([
                "-c",
                "exec 3<&0 4>&1 </dev/null >/dev/null 2>&1; exec \"$@\"",
                "sh",
            ])
            .arg(program())
            .args(OPTIONS)
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let (sender, answers) = channel();
        let (to, from) = (child.stdin.take(), child.stdout.take().expect("a pipe"));
        std::thread::spawn(move || {
            for message in BufReader::new(from).split(0) {
                let message = message.map(|message| serde_json::from_slice(&message));
                let Ok(Ok(message)) = message else { return };
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let mut browser = Browser {
            child,
            to: to.expect("a pipe"),
            answers,
            session: None,
            number: 0,
            told: Vec::new(),
            _profile: profile,
        };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let session = browser.call("Target.attachToTarget", attach);
        browser.session = session["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    fn next(&mut self) -> Value {
        let answer = self.answers.recv_timeout(Duration::from_secs(100));
        answer.expect("Chromium runs and answers")
    }

    pub(crate) fn call(&mut self, method: &str, params: Value) -> Value {
        self.number += 1;
        let mut message = json!({"id": self.number, "method": method, "params": params});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.to.write_all(&bytes).expect("it listens");
        loop {
            let mut answer = self.next();
            if answer["id"] == self.number {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].take();
            }
            self.told.push(answer);
        }
    }

    pub(crate) fn open(&mut self, address: &str) {
        self.call("Page.navigate", json!({"url": address}));
        loop {
            if let Some(at) = self
                .told
                .iter()
                .position(|told| told["method"] == "Page.loadEventFired")
            {
                self.told.remove(at);
                return self.settle();
            }
            let told = self.next();
            self.told.push(told);
        }
    }

    /// Waits until everything asked for is drawn.
    pub(crate) fn settle(&mut self) {
        let frames =
            "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))";
        self.value(frames);
    }

    /// Changes the address as a person who types it does, and waits until the page has followed: the browser
    /// tells the page after the change, and frames may be drawn between them.
    pub(crate) fn set_hash(&mut self, hash: &str) {
        let change = format!(
            "new Promise((done) => {{ addEventListener('hashchange', () => done(), {{once: true}}); location.hash = '{hash}'; }})"
        );
        self.value(&change);
        self.settle();
    }

    /// What an expression of the page is.
    pub(crate) fn value(&mut self, expression: &str) -> Value {
        let params = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let mut answer = self.call("Runtime.evaluate", params);
        assert!(
            answer["exceptionDetails"].is_null(),
            "{expression}: {answer}"
        );
        answer["result"]["value"].take()
    }

    pub(crate) fn text(&mut self, expression: &str) -> String {
        let value = self.value(expression);
        value
            .as_str()
            .unwrap_or_else(|| panic!("{expression}: {value}"))
            .to_owned()
    }

    pub(crate) fn key(&mut self, key: &str) {
        let text = match key {
            "Enter" => "\r",
            key if key.len() == 1 => key,
            _ => "",
        };
        let code = match key {
            "Enter" => 13,
            "Escape" => 27,
            "Tab" => 9,
            _ => 0,
        };
        let down =
            json!({"type": "keyDown", "key": key, "text": text, "windowsVirtualKeyCode": code});
        self.call("Input.dispatchKeyEvent", down);
        self.call(
            "Input.dispatchKeyEvent",
            json!({"type": "keyUp", "key": key}),
        );
        self.settle();
    }

    pub(crate) fn keys(&mut self, keys: &[&str]) {
        keys.iter().for_each(|key| self.key(key));
    }

    /// Shows a part of the page.
    pub(crate) fn show(&mut self, part: &str) {
        self.value(&format!("document.getElementById('tab-{part}').click()"));
        self.settle();
    }

    /// Has a field of the page be this, as if somebody had chosen or typed it.
    pub(crate) fn choose(&mut self, id: &str, value: &str) {
        self.value(&format!(
            "{{ const field = document.getElementById('{id}'); field.value = '{value}'; \
             ['input', 'change'].forEach((what) => field.dispatchEvent(new Event(what))); }}"
        ));
        self.settle();
    }

    /// Shows a part of the page, and goes to what it draws.
    pub(crate) fn focus(&mut self, part: &str) {
        self.show(part);
        self.value(&format!("document.querySelector('#{part} .view').focus()"));
        self.settle();
    }

    /// What is said below a part.
    pub(crate) fn detail(&mut self, part: &str) -> String {
        self.text(&format!(
            "document.querySelector('#{part} .detail').textContent"
        ))
    }

    /// What is drawn in a part.
    pub(crate) fn picture(&mut self, part: &str) -> String {
        self.text(&format!(
            "document.querySelector('#{part} canvas').toDataURL()"
        ))
    }

    /// Errors, warnings, and whatever was written to the console.
    fn complaints(&self) -> Vec<&Value> {
        let methods = [
            "Runtime.exceptionThrown",
            "Runtime.consoleAPICalled",
            "Log.entryAdded",
        ];
        let told = self.told.iter();
        told.filter(|told| methods.iter().any(|method| told["method"] == *method))
            .collect()
    }

    pub(crate) fn finish(self) {
        assert!(self.complaints().is_empty(), "{:?}", self.complaints());
    }
}
