//! What no other tool checks of the repository's files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The most lines a source file may have.
const LINES_MAX: usize = 1500;

/// Files that are one long table and may have more.
const TABLES: [&str; 1] = ["runtime/src/interp/run.rs"];

fn workspace() -> PathBuf {
    let ci = Path::new(env!("CARGO_MANIFEST_DIR"));
    ci.parent().expect("ci/ is in the workspace").to_owned()
}

/// The text files of the repository: those that git knows, and that are UTF-8. Others come and go while tests run.
fn files() -> Vec<(String, String)> {
    let root = workspace();
    let listed = Command::new("git")
        .args(["ls-files", "-z"])
        .current_dir(&root)
        .output()
        .expect("git is installed");
    assert!(listed.status.success(), "this is no clone");
    let names = String::from_utf8(listed.stdout).expect("file names are UTF-8");
    let names = names.split('\0').filter(|name| !name.is_empty());
    let texts = names.filter_map(|name| {
        let text = fs::read_to_string(root.join(name)).ok()?;
        Some((name.to_owned(), text))
    });
    texts.collect()
}

/// Fails with every place where one of `banned` stands in a file that `wanted` chooses.
fn check(banned: &[&str], wanted: impl Fn(&str) -> bool, found: impl Fn(&str, &str) -> bool) {
    let mut places = Vec::new();
    for (name, text) in files() {
        if !wanted(&name) {
            continue;
        }
        for (number, line) in text.lines().enumerate() {
            for word in banned.iter().filter(|word| found(line, word)) {
                places.push(format!("{name}:{}: {word}", number + 1));
            }
        }
    }
    assert!(places.is_empty(), "\n{}\n", places.join("\n"));
}

/// `path` stands in `line` at the beginning of a path, not within one.
fn has_absolute(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        before.is_none_or(|c| !(c.is_alphanumeric() || "_-./})*]".contains(c)))
    })
}

#[test]
fn an_absolute_path_is_told_from_a_part_of_one() {
    let path = concat!("/wo", "rk/");
    assert!(has_absolute(&format!("see {path}x"), path));
    assert!(has_absolute(&format!("{path}x"), path));
    assert!(!has_absolute(&format!("src{path}x"), path));
    assert!(!has_absolute(&format!("$HOME{path}x"), path));
}

#[test]
fn no_path_of_a_machine() {
    // In pieces, so that this file passes its own test.
    let paths = [
        concat!("/wo", "rk/"),
        concat!("/re", "f/"),
        concat!("/ho", "me/"),
        concat!("/ro", "ot/"),
        concat!("/Use", "rs/"),
    ];
    // The runner's stubs of Common Test are given paths, and cases of OTP bear names like these.
    check(&paths, |name| !name.ends_with("otp29.txt"), has_absolute);
}

#[test]
fn no_package_host() {
    let hosts = [
        concat!("debian", ".org"),
        concat!("ubuntu", ".com"),
        concat!("erlang", ".org/download"),
        concat!("hex", ".pm"),
        concat!("launchpad", ".net"),
    ];
    check(
        &hosts,
        |name| name != "Cargo.lock",
        |line, host| line.contains(host),
    );
}

#[test]
fn nothing_unfinished_and_no_test_left_out() {
    let banned = [
        concat!("to", "do!("),
        concat!("unimple", "mented!("),
        concat!("#[ig", "nore"),
        concat!("db", "g!("),
    ];
    check(
        &banned,
        |name| name.ends_with(".rs"),
        |line, word| line.contains(word),
    );
}

/// Programs see the order of some tables of the runtime.
#[test]
fn no_table_of_the_runtime_has_a_random_order() {
    let random: Vec<_> = files()
        .into_iter()
        .filter(|(name, _)| name.starts_with("runtime/src/") && name.ends_with(".rs"))
        .filter(|(_, text)| has_std_table(text) && !text.contains("BuildHasherDefault"))
        .map(|(name, _)| name)
        .collect();
    assert!(
        random.is_empty(),
        "take HashMap and HashSet from crate::hash, or name a hasher: {random:?}"
    );
}

/// Does a text name the standard library's hash tables?
fn has_std_table(text: &str) -> bool {
    text.split("collections::").skip(1).any(|after| {
        let named = after.split(';').next().unwrap_or_default();
        named.contains("HashMap") || named.contains("HashSet")
    })
}

#[test]
fn tables_of_the_standard_library_are_told_from_others() {
    let lines = |lines: [&str; 2]| lines.concat();
    assert!(has_std_table(&lines([
        "use std::collections::",
        "HashMap;"
    ])));
    assert!(has_std_table(&lines([
        "use std::collections::",
        "{BTreeMap, HashSet};"
    ])));
    assert!(!has_std_table(&lines([
        "use std::collections::",
        "BTreeMap; HashMap"
    ])));
    assert!(!has_std_table("use crate::hash::HashMap;"));
}

#[test]
fn no_file_is_too_long() {
    let long: Vec<_> = files()
        .into_iter()
        .filter(|(name, _)| name.ends_with(".rs") || name.ends_with(".erl"))
        .filter(|(name, _)| !TABLES.contains(&name.as_str()))
        .map(|(name, text)| (name, text.lines().count()))
        .filter(|(_, lines)| *lines > LINES_MAX)
        .collect();
    assert!(long.is_empty(), "over {LINES_MAX} lines: {long:?}");
}
