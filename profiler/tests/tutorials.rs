//! The tutorials of `docs/tutorials`: their files are written, their commands run, and what they show compared.
//!
//! A code block is a file if its first line has a name, as in ```` ```erlang load.erl ````. A block of `sh` has commands,
//! and a block of `text` has lines that the commands before it print: digits, the number of spaces and what follows a
//! line's last word do not count, and a line of `...` stands for any. A command that ends in `# exit code N` fails with it.
//!
//! With `BLESS=1`, the pictures that the pages show are written from what the commands drew. Those of pages are taken with
//! Chromium.

mod browser;
mod place;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use place::Place;

fn pages() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/tutorials")
}

/// What a page has, in its order.
#[derive(Debug)]
enum Block {
    File { name: String, text: String },
    Commands(String),
    Prints(String),
}

fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let Some(info) = line.strip_prefix("```") else {
            continue;
        };
        let inside: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        let text = inside.join("\n") + "\n";
        match info.split_once(' ') {
            Some((_, name)) => blocks.push(Block::File {
                name: name.to_owned(),
                text,
            }),
            None if info == "sh" => blocks.push(Block::Commands(text)),
            None if info == "text" => blocks.push(Block::Prints(text)),
            None => {}
        }
    }
    blocks
}

/// Names of pictures that a page shows.
fn pictures(page: &str) -> Vec<&str> {
    let links = page.split("](").skip(1);
    let links = links.filter_map(|rest| rest.split(')').next());
    links.filter(|link| link.ends_with(".svg")).collect()
}

/// Pictures of a page that commands write, in light and dark: name, page, and address within it.
const VIEWS: [(&str, &str, &str); 2] = [
    ("race", "lanes.html", "tab=races&race=1"),
    ("lanes", "lanes.html", "tab=messages&messages=%3C0.79.0%3E"),
];

/// Colour schemes, and what has Chromium show a page in them.
const SCHEMES: [(&str, &str); 2] = [
    ("light", "--blink-settings=preferredColorScheme=1"),
    ("dark", "--blink-settings=preferredColorScheme=0"),
];

/// Takes a picture of what a page shows.
fn take(page: &Path, view: &str, setting: &str, picture: &Path) {
    let taken = Command::new(browser::program())
        .args(["--headless", "--no-sandbox", "--disable-gpu", setting])
        .args(["--hide-scrollbars", "--virtual-time-budget=2000"])
        .arg("--window-size=1280,720")
        .arg(format!("--screenshot={}", picture.display()))
        .arg(format!("file://{}#{view}", page.display()))
        .output()
        .expect("the browser starts");
    assert!(taken.status.success(), "{taken:?}");
}

/// A line without what differs from run to run.
fn stable(line: &str) -> String {
    let mut out = String::new();
    for c in line.chars() {
        let c = if c.is_ascii_digit() { '0' } else { c };
        let is_twice = matches!(c, '0' | ' ') && out.ends_with(c);
        if !is_twice {
            out.push(c);
        }
    }
    out.trim().to_owned()
}

/// A folder that has `beamline`.
fn bin(place: &Place) -> PathBuf {
    let bin = place.file("bin");
    fs::create_dir(&bin).expect("writable");
    let beamline = Path::new(env!("CARGO_BIN_EXE_beamline"));
    std::os::unix::fs::symlink(beamline, bin.join("beamline")).expect("writable");
    bin
}

/// What the person has typed into each shell first, as the README says.
const FIRST: &str = "eval \"$(beamline env)\"";

/// A person at a terminal who follows a page.
struct Reader {
    folder: PathBuf,
    path: std::ffi::OsString,
    home: PathBuf,
    /// What the last commands printed.
    printed: String,
}

impl Reader {
    fn new(place: &Place) -> Reader {
        let bin = bin(place);
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths([bin].into_iter().chain(std::env::split_paths(&path)));
        let folder = place.file("here");
        fs::create_dir(&folder).expect("writable");
        Reader {
            home: place.file("home"),
            folder,
            path: path.expect("a PATH"),
            printed: String::new(),
        }
    }

    fn run(&mut self, line: &str) {
        if let Some(folder) = line.strip_prefix("cd ") {
            self.folder = self.folder.join(folder);
            assert!(self.folder.is_dir(), "{line}");
            return;
        }
        let code = line.split_once("# exit code ");
        let code = code.map_or(0, |(_, code)| code.parse().expect("a number"));
        let output = Command::new("sh")
            .args(["-c", &format!("{FIRST}\n{line}")])
            .current_dir(&self.folder)
            .env("PATH", &self.path)
            .env("HOME", &self.home)
            .env_remove("XDG_DATA_HOME")
            .env("LC_ALL", "C.UTF-8")
            .output()
            .expect("there is a shell");
        assert_eq!(output.status.code(), Some(code), "{line}: {output:?}");
        self.printed
            .push_str(&String::from_utf8_lossy(&output.stdout));
    }

    fn follow(&mut self, block: &Block) {
        match block {
            Block::File { name, text } => {
                let path = self.folder.join(name);
                let folder = path.parent().expect("in a folder");
                fs::create_dir_all(folder).expect("writable");
                fs::write(path, text).expect("writable");
            }
            Block::Commands(lines) => {
                self.printed.clear();
                lines.lines().for_each(|line| self.run(line));
            }
            Block::Prints(lines) => {
                let printed: Vec<String> = self.printed.lines().map(stable).collect();
                for line in lines.lines().map(stable).filter(|line| line != "...") {
                    let is_there = printed.iter().any(|one| one.starts_with(&line));
                    assert!(is_there, "'{line}' is not printed: {}", self.printed);
                }
            }
        }
    }

    /// Compares the pictures of a page with those that were drawn, or writes them.
    fn check_pictures(&self, page: &str) {
        for name in pictures(page) {
            let drawn = fs::read_to_string(self.folder.join(name)).expect(name);
            assert!(drawn.contains("<svg"), "{name}");
            let shown = pages().join(name);
            if std::env::var_os("BLESS").is_some() {
                fs::write(&shown, &drawn).expect("writable");
            }
            let shown = fs::read_to_string(&shown).expect(name);
            // What is wide in one of them is in the other: times are not the same twice.
            for (one, other) in [(&shown, &drawn), (&drawn, &shown)] {
                let there = frames(other, 0.0);
                let missing = frames(one, 25.0);
                let missing = missing.iter().find(|frame| !there.contains(frame));
                assert_eq!(missing, None, "{name}: BLESS=1 writes it");
            }
        }
    }
}

/// Those of pages are there, as are the pages. With `BLESS=1`, takes them.
fn check_views(page: &str, folder: &Path) {
    for (name, of, view) in VIEWS {
        for (scheme, setting) in SCHEMES {
            let picture = format!("{name}-{scheme}.png");
            if !page.contains(&format!("\"{picture}\"")) {
                continue;
            }
            let (of, picture) = (folder.join(of), pages().join(picture));
            assert!(of.is_file(), "{}", of.display());
            if std::env::var_os("BLESS").is_some() {
                take(&of, view, setting, &picture);
            }
            assert!(picture.is_file(), "{}: BLESS=1 takes it", picture.display());
        }
    }
}

/// The functions of a flame graph whose frames have at least this part of it, in percent.
fn frames(svg: &str, least: f64) -> Vec<String> {
    let titles = svg.split("<title>").skip(1);
    let titles = titles.filter_map(|rest| rest.split("</title>").next());
    // The number of a process's pid is not the same on each machine.
    let titles = titles.filter(|title| !title.starts_with("&lt;"));
    let wide = titles.filter_map(|title| {
        let (name, rest) = title.split_once(" (")?;
        let percent = rest.split_once('%')?.0.rsplit([' ', ',']).next()?;
        let is_wide = percent.parse::<f64>().ok()? >= least;
        is_wide.then(|| name.to_owned())
    });
    wide.collect()
}

/// Follows a page from its beginning to its end.
fn follow(name: &str) {
    let Some(place) = Place::new("") else {
        return;
    };
    let page = fs::read_to_string(pages().join(name)).expect("the page is there");
    let blocks = blocks(&page);
    let commands = blocks
        .iter()
        .filter(|block| matches!(block, Block::Commands(_)));
    assert!(commands.count() > 1, "{name} has commands");
    let mut reader = Reader::new(&place);
    blocks.iter().for_each(|block| reader.follow(block));
    reader.check_pictures(&page);
    check_views(&page, &reader.folder);
}

/// The commands of a text whose code is indented, in their order.
fn indented(text: &str) -> Vec<String> {
    let text = text.replace("\\\n", "");
    let lines = text.lines().filter_map(|line| line.strip_prefix("    "));
    lines
        .map(|line| line.split("  #").next().unwrap_or(line).trim().to_owned())
        .collect()
}

/// Commands of the README that no test runs: they install, fetch or build, or need a running OTP or perf.
const NOT_RUN: [&str; 6] = [
    "cargo ",
    "export ",
    "eval ",
    "perf ",
    "beamline sample ",
    "beamline top ",
];

/// The programs that the README's commands name: a Mix project, with a server, a module and a test of all orders in it.
const PROGRAMS: [(&str, &str); 4] = [
    (
        "src/my_server.erl",
        "-module(my_server).\n-behaviour(gen_server).\n-export([init/1, handle_call/3, handle_cast/2]).\n\
         init(_) -> {ok, 0}.\nhandle_call(_, _, N) -> {reply, N, N + 1}.\nhandle_cast(_, N) -> {noreply, N}.\n",
    ),
    (
        "lib/my_app/parser.ex",
        "defmodule MyApp.Parser do\n  def parse(text), do: String.split(text, \",\")\nend\n",
    ),
    (
        "test/my_app_test.exs",
        "defmodule MyAppTest do\n  use ExUnit.Case\n  test \"parses\" do\n    \
         {:ok, server} = :gen_server.start_link(:my_server, [], [])\n    \
         assert 0 = :gen_server.call(server, :next)\n    \
         assert [\"a\", \"b\"] = MyApp.Parser.parse(\"a,b\")\n  end\nend\n",
    ),
    (
        "my_module.erl",
        "-module(my_module).\n-export([main/1]).\nmain(Arguments) -> io:format(\"~p~n\", [Arguments]).\n",
    ),
];

const BANK: &str = "-module(bank_test).\n-export([deposits/0]).\n\
    deposits() ->\n    Self = self(),\n    \
    Pids = [spawn(fun() -> Self ! {self(), N} end) || N <- [1, 2]],\n    \
    3 = lists:sum([receive {Pid, N} -> N end || Pid <- Pids]).\n";

#[test]
fn the_commands_of_the_readme_run() {
    if !place::has_elixir() {
        return;
    }
    let Some(place) = Place::new("") else {
        return;
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let readme = fs::read_to_string(root.join("README.md")).expect("it is there");
    let mut reader = Reader::new(&place);
    reader.run("mix new my_app");
    reader.run("cd my_app");
    for (name, text) in PROGRAMS {
        let name = name.to_owned();
        let text = text.to_owned();
        reader.follow(&Block::File { name, text });
    }
    place.write("here/bank_test.erl", BANK);
    reader.run("mkdir ebin && erlc -o ebin ../bank_test.erl");
    std::os::unix::fs::symlink(root.join("samples"), reader.folder.join("samples"))
        .expect("writable");
    for name in ["before", "after"] {
        reader.run(&format!(
            "beamline record -o {name}.stream -- my_module.erl"
        ));
    }
    let commands = indented(&readme);
    let is_run = |line: &&String| !NOT_RUN.iter().any(|one| line.starts_with(one));
    let commands: Vec<&String> = commands.iter().filter(is_run).collect();
    assert!(commands.len() > 10, "{commands:?}");
    for command in commands {
        assert!(command.starts_with("beamline "), "{command}");
        reader.run(command);
    }
}

#[test]
fn the_tutorial_of_a_mix_project_is_true() {
    if !place::has_elixir() {
        return;
    }
    follow("elixir.md");
}

#[test]
fn the_tutorial_of_a_gen_server_is_true() {
    follow("erlang.md");
}

#[test]
fn the_tutorial_of_a_web_server_is_true() {
    follow("web.md");
}

#[test]
fn the_tutorial_of_a_gate_is_true() {
    follow("gate.md");
}

#[test]
fn the_tutorial_of_two_runs_is_true() {
    follow("compare.md");
}

#[test]
fn the_tutorial_of_a_race_is_true() {
    follow("race.md");
}
