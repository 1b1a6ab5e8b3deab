//! Explorations of the programs of `ci/explore`.
#![allow(dead_code, reason = "each program of tests uses its part of it")]

use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::place::{Place, errors};

/// A folder with the programs of `ci/explore` compiled in `ebin`.
pub(crate) fn programs() -> Option<Place> {
    let place = Place::new("-module(work).\n")?;
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ci/explore");
    fs::create_dir(place.file("ebin")).expect("writable");
    let mut compile: Vec<String> = ["run", "--", "erlc", "-o", "ebin"]
        .map(str::to_owned)
        .to_vec();
    for entry in fs::read_dir(sources).expect("the programs").flatten() {
        compile.push(entry.path().display().to_string());
    }
    let compile: Vec<&str> = compile.iter().map(String::as_str).collect();
    let compiled = place.run(&compile);
    assert!(compiled.status.success(), "{}", errors(&compiled));
    Some(place)
}

pub(crate) const COMMAND: [&str; 5] = ["--", "erl", "-noshell", "-pa", "ebin"];

pub(crate) fn explore(place: &Place, call: &str, options: &[&str]) -> (Output, Value) {
    explored(place, &[&["--call", call], options, &COMMAND].concat())
}

/// Explores a whole program: a function of `ci/explore/whole.erl`.
pub(crate) fn explore_whole(place: &Place, function: &str, options: &[&str]) -> (Output, Value) {
    let program = ["-s", "whole", function, "-s", "init", "stop"];
    explored(place, &[options, &COMMAND, &program].concat())
}

pub(crate) fn explored(place: &Place, arguments: &[&str]) -> (Output, Value) {
    let json = place.file("explored.json");
    let _ = fs::remove_file(&json);
    let output = place.run(&[&["explore", "--json", "explored.json"], arguments].concat());
    let json = match json.exists() {
        true => place.json("explored.json"),
        false => Value::Null,
    };
    (output, json)
}

/// The orders of a call, whether these are all, and the kinds and reasons of what was found.
pub(crate) fn told(json: &Value) -> (u64, bool, Vec<(String, String)>) {
    let findings = json["findings"].as_array().into_iter().flatten();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let findings = findings.map(|finding| (text(&finding["kind"]), text(&finding["reason"])));
    (
        json["orders"].as_u64().unwrap_or(0),
        json["complete"] == true,
        findings.collect(),
    )
}

/// What is found in a call: its kind, and how its reason begins.
pub(crate) type Found = Option<(&'static str, &'static str)>;

/// Each call of a module has the number of orders in its row, in which this is found.
pub(crate) fn are_turned_around(module: &str, rows: &[(&str, u64, Found)]) {
    let Some(place) = programs() else { return };
    for &(call, orders, found) in rows {
        for workers in ["1", "2"] {
            let options = ["--all", "--workers", workers, "-o", "found"];
            let (output, json) = explore(&place, &format!("{module}:{call}"), &options);
            let said = errors(&output);
            let (told, is_all, findings) = told(&json);
            assert_eq!((told, is_all), (orders, true), "{call}: {said}");
            let is_it = |(kind, reason): &(String, String)| {
                found.is_some_and(|(is, begins)| kind == is && reason.starts_with(begins))
            };
            assert!(
                findings.len() == found.iter().len() && findings.iter().all(is_it),
                "{call}: {said}"
            );
        }
        // No order comes by chance that is none of these.
        let options = ["--strategy", "pos", "--runs", "200", "-o", "drawn"];
        let (output, json) = explore(&place, &format!("{module}:{call}"), &options);
        assert!(told(&json).0 <= orders, "{call}: {}", errors(&output));
        if found.is_some() {
            let check = place.run(&["explore", "--check", "found"]);
            assert_eq!(check.status.code(), Some(3), "{call}: {check:?}");
        }
    }
}
