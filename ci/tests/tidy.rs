//! What no other tool checks of the repository's files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The most lines a file may have that is written in these languages.
const LINES_MAX: [(&str, usize); 2] = [(".rs", 800), (".erl", 1000)];

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

/// Is it a source of the runtime, or of a crate in one of its folders?
fn is_of_runtime(name: &str) -> bool {
    name.starts_with("runtime/") && name.contains("/src/")
}

/// Programs see the order of some tables of the runtime.
#[test]
fn no_table_of_the_runtime_has_a_random_order() {
    let random: Vec<_> = files()
        .into_iter()
        .filter(|(name, _)| is_of_runtime(name) && name.ends_with(".rs"))
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
    let is_long = |(name, text): &(String, String)| {
        let limits = LINES_MAX.iter().find(|(end, _)| name.ends_with(end));
        limits.is_some_and(|(_, most)| text.lines().count() > *most)
    };
    let long: Vec<_> = files()
        .into_iter()
        .filter(is_long)
        .map(|(name, _)| name)
        .collect();
    assert!(long.is_empty(), "more lines than {LINES_MAX:?}: {long:?}");
}

/// Does the file have unsafe code of its own?
fn has_unsafe(text: &str) -> bool {
    let ends = ["\n#[cfg(test)]\nmod tests {", "\n#[cfg(all(test"];
    let end = ends.iter().filter_map(|end| text.find(end)).min();
    let text = &text[..end.unwrap_or(text.len())];
    let code = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    let starts = ["unsafe fn ", "unsafe impl", "unsafe {", "unsafe trait"];
    code.into_iter()
        .any(|line| starts.iter().any(|start| line.contains(start)))
}

/// The sources of the product, but for tests.
fn sources() -> impl Iterator<Item = (String, String)> {
    let folders = [
        "formats/settings/src/",
        "formats/src/",
        "formats/orders/src/",
        "formats/reports/src/",
        "profiler/src/",
    ];
    let files = files().into_iter();
    files.filter(move |(name, _)| {
        let is_test = name.ends_with("tests.rs") || name.contains("/tests/");
        let is_source = is_of_runtime(name) || folders.iter().any(|f| name.starts_with(f));
        name.ends_with(".rs") && !is_test && is_source
    })
}

#[test]
fn unsafe_code_is_in_its_folders() {
    let architecture = fs::read_to_string(workspace().join("ARCHITECTURE.md")).unwrap();
    let rule = architecture.split("- **`unsafe`** is only in").nth(1);
    let rule = rule
        .and_then(|text| text.split('.').next())
        .expect("ARCHITECTURE.md names the folders");
    let (of_runtime, of_formats) = rule.split_once("of the runtime").expect("of both crates");
    let is_named = |text: &str, file: &str| {
        let first = file.split('/').next().unwrap_or(file);
        let module = first.strip_suffix(".rs").unwrap_or(first);
        text.contains(&format!("`{module}/`")) || text.contains(&format!("`{module}`"))
    };
    let stray: Vec<_> = sources()
        .filter(|(_, text)| has_unsafe(text))
        .map(|(name, _)| name)
        .filter(|name| match name.split_once("/src/") {
            Some(("runtime", file)) => !is_named(of_runtime, file),
            Some(("formats", file)) => !is_named(of_formats, file),
            Some(("profiler/sampler", file)) => !rule.contains(&format!("`{file}`")),
            Some((folder, _)) => match folder.strip_prefix("runtime/") {
                Some(of_crate) => !is_named(of_runtime, &format!("{of_crate}/lib.rs")),
                None => true,
            },
            None => true,
        })
        .collect();
    assert!(
        stray.is_empty(),
        "unsafe code outside of its folders: {stray:?}"
    );
}

/// The labels of invariants in a text: one or two capitals and a number.
fn labels(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    words.filter(|word| {
        let letters = word.chars().take_while(char::is_ascii_uppercase).count();
        let digits = word.len() - letters;
        matches!(letters, 1 | 2)
            && matches!(digits, 1 | 2)
            && word[letters..].bytes().all(|b| b.is_ascii_digit())
    })
}

/// Where each invariant is defined: at the head of a file, as `- H1: ...` or `Invariant W1: ...`.
fn definitions() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (name, text) in sources() {
        for line in text.lines().filter_map(|line| line.strip_prefix("//! ")) {
            let rule = line
                .strip_prefix("- ")
                .or_else(|| line.strip_prefix("Invariant "));
            let Some((label, _)) = rule.and_then(|rule| rule.split_once(':')) else {
                continue;
            };
            if labels(label).eq([label]) {
                found.push((label.to_owned(), name.clone()));
            }
        }
    }
    found
}

#[test]
fn an_invariant_has_one_name_and_a_file_one_prefix() {
    let mut prefixes = std::collections::BTreeMap::new();
    let mut seen = std::collections::BTreeMap::new();
    for (label, file) in definitions() {
        let other = seen.insert(label.clone(), file.clone());
        assert!(
            other.is_none(),
            "{label} is defined in {file} and in {other:?}"
        );
        let prefix = label
            .trim_end_matches(|c: char| c.is_ascii_digit())
            .to_owned();
        let first = prefixes.entry(prefix).or_insert_with(|| file.clone());
        assert_eq!(*first, file, "{label}: another file has this prefix");
    }
    assert!(seen.len() > 30, "the invariants are found");
}

#[test]
fn what_safety_comments_cite_is_defined() {
    let defined = definitions();
    let is_defined = |label: &str| defined.iter().any(|(known, _)| known == label);
    let mut places = Vec::new();
    for (name, text) in sources() {
        let comments = text.lines().enumerate().filter_map(|(number, line)| {
            let (_, comment) = line.split_once(concat!("// SAF", "ETY: "))?;
            Some((number + 1, comment))
        });
        for (number, comment) in comments {
            for label in labels(comment).filter(|label| !is_defined(label)) {
                places.push(format!("{name}:{number}: {label}"));
            }
        }
    }
    assert!(
        places.is_empty(),
        "no such invariant:\n{}",
        places.join("\n")
    );
}

#[test]
fn a_file_with_unsafe_code_names_its_invariants() {
    let defined = definitions();
    let nameless: Vec<_> = sources()
        .filter(|(_, text)| has_unsafe(text))
        .filter(|(_, text)| {
            !labels(text).any(|label| defined.iter().any(|(known, _)| known == label))
        })
        .map(|(name, _)| name)
        .collect();
    assert!(nameless.is_empty(), "no invariant is named in {nameless:?}");
}

/// The name of a public function, constant or static that a line declares.
fn declared(line: &str) -> Option<&str> {
    let mut words = line.trim_start().strip_prefix("pub ")?.split_whitespace();
    let kind = words.find(|word| !["const", "unsafe", "async"].contains(word))?;
    let is_const = line.trim_start().starts_with("pub const ") && !["fn", "unsafe"].contains(&kind);
    let name = match kind {
        "fn" | "static" => words.next()?,
        name if is_const => name,
        _ => return None,
    };
    name.split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .next()
}

#[test]
fn declarations_are_told_from_other_lines() {
    assert_eq!(declared("    pub const fn at(x: u8) -> u8 {"), Some("at"));
    assert_eq!(declared("pub unsafe fn own<T>(it: T) {"), Some("own"));
    assert_eq!(declared("pub const LIMIT: usize = 3;"), Some("LIMIT"));
    assert_eq!(declared("pub static TABLE: Table = Table;"), Some("TABLE"));
    assert_eq!(declared("pub struct Table;"), None);
    assert_eq!(declared("pub(crate) fn inner() {}"), None);
    assert_eq!(declared("// pub fn gone() {}"), None);
}

/// The crate that a file belongs to: the folder that has its `src`, `tests` or `benches`.
fn crate_of(name: &str) -> &str {
    let folder = ["/src/", "/tests/", "/benches/"].iter();
    let ends = folder.filter_map(|folder| name.find(folder));
    ends.min().map_or(name, |end| &name[..end])
}

#[test]
fn what_is_public_is_used_elsewhere() {
    let all: Vec<_> = files()
        .into_iter()
        .filter(|(name, _)| name.ends_with(".rs"))
        .collect();
    let mut users: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (name, text) in &all {
        // A library's own program, tests and documentation use it from outside.
        let is_outside = !name.contains("/src/") || name.ends_with("/main.rs");
        let of = if is_outside { name } else { crate_of(name) };
        for line in text.lines() {
            let is_doc = line.trim_start().starts_with("//");
            let of = if is_doc { "documentation" } else { of };
            for word in line.split(|c: char| !(c.is_alphanumeric() || c == '_')) {
                users.entry(word).or_default().insert(of);
            }
        }
    }
    let mut unused = Vec::new();
    for (name, text) in sources() {
        for (number, line) in text.lines().enumerate() {
            let is_unused = |word: &&str| users[word].iter().all(|of| *of == crate_of(&name));
            if let Some(word) = declared(line).filter(is_unused) {
                unused.push(format!("{name}:{}: {word}", number + 1));
            }
        }
    }
    assert!(
        unused.is_empty(),
        "only their own crates use:\n{}\n",
        unused.join("\n")
    );
}

/// Where functions have the names of instructions and BIFs of Erlang, which say `is_` of what they branch on.
const NAMED_BY_ERLANG: [&str; 4] = [
    "runtime/src/bif/",
    "runtime/src/interp/",
    "runtime/src/jit/",
    "runtime/src/loader/load/transform/",
];

/// What a function returns, as its signature says; `None` where it has none.
fn returned(text: &str) -> Option<&str> {
    let mut depth = 0;
    let end = text.find(|c| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        depth == 0 && c == ')'
    })?;
    let rest = text[end + 1..].trim_start().strip_prefix("->")?;
    Some(rest.trim_start())
}

/// A name that begins with `is_`, `has_`, `may_` or `can_` promises an answer: what changes something has another name.
#[test]
fn predicates_return_whether_it_is_so() {
    let mut others = Vec::new();
    for (name, text) in sources() {
        let is_named_by_erlang = NAMED_BY_ERLANG
            .iter()
            .any(|folder| name.starts_with(folder));
        if is_named_by_erlang || name == "runtime/src/otp_nifs/names.rs" {
            continue;
        }
        for (at, _) in text.match_indices("fn ") {
            let of = &text[at + 3..];
            let starts = ["is_", "has_", "may_", "can_"];
            let is_test = text[..at].trim_end().ends_with("#[test]");
            if is_test || !starts.iter().any(|start| of.starts_with(start)) {
                continue;
            }
            let returns = of.find('(').and_then(|open| returned(&of[open..]));
            let answers = ["bool", "Option<bool>", "Result<bool", "impl Fn"];
            if !returns.is_some_and(|of| answers.iter().any(|answer| of.starts_with(answer))) {
                let end = of.find(['(', '<']).unwrap_or(of.len());
                others.push(format!("{name}: {}", &of[..end]));
            }
        }
    }
    assert!(others.is_empty(), "no predicates:\n{}", others.join("\n"));
}
