//! Imports go down: every module stands on a floor, as ARCHITECTURE.md draws those of the runtime and the heads of the
//! other crates name theirs, and names only what is on the floors below it; in no crate do folders name each other in a
//! circle. The runtime's crates stand on floors of the same picture, below all modules. Tests may look anywhere.

mod paths;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use paths::{Named, names};

/// Crates outside of the runtime whose modules stand on floors.
const OTHERS: [&str; 6] = [
    "formats/settings",
    "formats",
    "formats/orders",
    "formats/reports",
    "profiler",
    "profiler/sampler",
];

/// Hooks there may be: what a lower floor asks of a higher one.
const HOOKS_MAX: usize = 10;

fn workspace() -> PathBuf {
    let ci = Path::new(env!("CARGO_MANIFEST_DIR"));
    ci.parent().expect("ci/ is in the workspace").to_owned()
}

/// What every file of a crate's `src` names of its own crate.
fn named(member: &str) -> Vec<Named> {
    let all = names(&workspace().join(member).join("src"));
    let has_one_file = modules(member).is_empty();
    assert!(
        has_one_file || !all.is_empty(),
        "{member}: its files name each other"
    );
    all
}

/// Modules by name, with the number of their floor: the highest has number 0.
type Floors = BTreeMap<String, usize>;

fn numbered<'a>(floors: impl Iterator<Item = Vec<&'a str>>) -> Floors {
    let mut numbers = BTreeMap::new();
    for (number, modules) in floors.enumerate() {
        for module in modules {
            let twice = numbers.insert(module.to_owned(), number);
            assert!(twice.is_none(), "{module} stands on two floors");
        }
    }
    numbers
}

/// The floors that ARCHITECTURE.md draws: a line each, names before two spaces. A name that ends in a slash is a crate, in
/// that folder of `runtime/`; others are modules of `runtime/src`.
fn picture() -> Floors {
    let text = fs::read_to_string(workspace().join("ARCHITECTURE.md")).expect("it is UTF-8");
    let floors = text.split("## Floors").nth(1).expect("a section Floors");
    let drawn = floors.split("```").nth(1).expect("a picture of the floors");
    let lines = drawn.lines().filter(|line| !line.trim().is_empty());
    numbered(lines.map(|line| {
        let names = line.split("  ").next().unwrap_or_default();
        names.split_whitespace().collect()
    }))
}

/// The modules of `runtime/src`.
fn floors_of_the_runtime() -> Floors {
    let names = picture().into_iter();
    names.filter(|(name, _)| !name.ends_with('/')).collect()
}

/// The crates in folders of `runtime/`.
fn floors_of_crates() -> Floors {
    let names = picture().into_iter();
    names
        .filter_map(|(name, floor)| Some((name.strip_suffix('/')?.to_owned(), floor)))
        .collect()
}

/// Where the crate `name` of the runtime is.
fn member_of(name: &str) -> String {
    format!("runtime/{name}")
}

/// The floors that the head of a crate's `lib.rs` names, from the lowest: modules in grave accents, floors between `◀`.
fn floors_in_head(member: &str) -> Floors {
    if modules(member).is_empty() {
        return Floors::new();
    }
    let lib = workspace().join(member).join("src/lib.rs");
    let head = fs::read_to_string(lib).expect("it is a library");
    let (_, floors) = head
        .split_once("only those before it:\n")
        .expect("it names its layers");
    let lines = floors.lines().map_while(|line| line.strip_prefix("//! "));
    let floors: String = lines.collect();
    let floors: Vec<&str> = floors.split('◀').collect();
    numbered(
        floors
            .iter()
            .rev()
            .map(|floor| floor.split('`').skip(1).step_by(2).collect()),
    )
}

/// The crates whose modules stand on floors.
fn floors() -> Vec<(String, Floors)> {
    let mut all = vec![("runtime".to_owned(), floors_of_the_runtime())];
    let crates = floors_of_crates().into_keys().map(|name| member_of(&name));
    let others = OTHERS.map(str::to_owned);
    for member in crates.chain(others) {
        let floors = floors_in_head(&member);
        all.push((member, floors));
    }
    all
}

/// The modules at the top of a crate.
fn modules(member: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(workspace().join(member).join("src")).expect("a crate has a src");
    let names = entries.map(|entry| entry.expect("a readable folder").file_name());
    let names = names.map(|name| name.to_string_lossy().trim_end_matches(".rs").to_owned());
    names
        .filter(|name| !["lib", "main", "tests"].contains(&name.as_str()))
        .collect()
}

#[test]
fn every_module_stands_on_a_floor() {
    for (member, floors) in floors() {
        let drawn: BTreeSet<String> = floors.into_keys().collect();
        assert_eq!(
            drawn,
            modules(&member),
            "the floors of {member} against its modules"
        );
    }
}

#[test]
fn crates_stand_below_modules() {
    let drawn = floors_of_crates();
    let folders = fs::read_dir(workspace().join("runtime")).expect("the runtime's folder");
    let folders = folders.map(|entry| entry.expect("a readable folder"));
    let crates: BTreeSet<String> = folders
        .filter(|folder| folder.path().join("Cargo.toml").is_file())
        .map(|folder| folder.file_name().to_string_lossy().into_owned())
        .collect();
    assert!(drawn.keys().eq(&crates), "{drawn:?} against {crates:?}");
    let lowest = floors_of_the_runtime().into_values().max();
    let highest = drawn.into_values().min();
    assert!(lowest < highest, "modules may name every crate");
}

/// The manifest of the crate in this folder.
fn manifest(member: &str) -> toml::Table {
    let path = workspace().join(member).join("Cargo.toml");
    let text = fs::read_to_string(path).expect("a crate has a manifest");
    text.parse().expect("cargo reads it")
}

/// The tasks that take all crates of the runtime know them by their names.
#[test]
fn crates_have_the_names_of_their_folders() {
    for name in floors_of_crates().keys() {
        let expected = format!("beamline-runtime-{}", name.replace('_', "-"));
        assert_eq!(
            manifest(&member_of(name))["package"]["name"].as_str(),
            Some(&*expected)
        );
    }
}

/// The crates of the workspace that the one in this folder depends on, without the first part of their names.
fn dependencies(member: &str) -> Vec<String> {
    let manifest = manifest(member);
    let dependencies = manifest.get("dependencies").and_then(|d| d.as_table());
    let names = dependencies.into_iter().flat_map(|table| table.keys());
    names
        .filter_map(|name| name.strip_prefix("beamline-"))
        .map(str::to_owned)
        .collect()
}

#[test]
fn crates_depend_on_what_is_below_them() {
    let floors = floors_of_crates();
    for (name, floor) in &floors {
        for other in dependencies(&member_of(name)) {
            let Some(other) = other.strip_prefix("runtime-") else {
                continue;
            };
            let other = other.replace('-', "_");
            assert!(floors[&other] > *floor, "{name} depends on {other}");
        }
    }
}

/// A change of a report builds the reports and the command, and not the runtime.
#[test]
fn the_runtime_depends_on_no_report() {
    let mut seen = BTreeSet::new();
    let crates = floors_of_crates().into_keys().map(|name| member_of(&name));
    let mut left: Vec<String> = crates.chain(["runtime".to_owned()]).collect();
    while let Some(member) = left.pop() {
        for name in dependencies(&member) {
            assert_ne!(name, "reports", "{member} depends on it");
            let member = match name.as_str() {
                "formats" => "formats".to_owned(),
                name if name.starts_with("runtime-") => continue,
                name => format!("formats/{name}"),
            };
            if seen.insert(member.clone()) {
                left.push(member);
            }
        }
    }
    assert!(seen.contains("formats/orders"), "{seen:?}");
}

#[test]
fn modules_name_what_is_below_them() {
    let mut up = BTreeSet::new();
    for (member, floors) in floors() {
        for named in named(&member) {
            let (Some(from), Some(to)) = (named.from.first(), named.path.first()) else {
                continue;
            };
            let (Some(here), Some(there)) = (floors.get(from), floors.get(to)) else {
                continue;
            };
            if from != to && there <= here {
                up.insert(format!("{}: {}", named.file, named.path.join("::")));
            }
        }
    }
    let up: Vec<_> = up.into_iter().collect();
    assert!(
        up.is_empty(),
        "these go up, or to the same floor:\n{}",
        up.join("\n")
    );
}

/// The modules that can be reached from `from`.
fn reachable<'a>(graph: &BTreeMap<&'a str, BTreeSet<&'a str>>, from: &'a str) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    let mut left = vec![from];
    while let Some(module) = left.pop() {
        for next in graph.get(module).into_iter().flatten() {
            if seen.insert(*next) {
                left.push(next);
            }
        }
    }
    seen
}

/// Where siblings name each other in a circle: of the modules at the top, and of the folders in each folder.
fn circles(member: &str) -> Vec<String> {
    let src = workspace().join(member).join("src");
    let all = named(member);
    let mut graphs: BTreeMap<&[String], BTreeMap<&str, BTreeSet<&str>>> = BTreeMap::new();
    for named in &all {
        let common = named
            .from
            .iter()
            .zip(&named.path)
            .take_while(|(a, b)| a == b)
            .count();
        let (Some(from), Some(to)) = (named.from.get(common), named.path.get(common)) else {
            continue;
        };
        let parent = &named.from[..common];
        let is_folder = |name: &str| {
            let path: PathBuf = parent.iter().map(String::as_str).chain([name]).collect();
            src.join(path).is_dir()
        };
        if parent.is_empty() && modules(member).contains(to) || is_folder(from) && is_folder(to) {
            graphs
                .entry(parent)
                .or_default()
                .entry(from)
                .or_default()
                .insert(to);
        }
    }
    let mut circles = Vec::new();
    for (parent, graph) in &graphs {
        let in_circle = graph
            .keys()
            .filter(|module| reachable(graph, module).contains(**module));
        let in_circle: Vec<_> = in_circle.copied().collect();
        if !in_circle.is_empty() {
            circles.push(format!(
                "{member}/src/{}: {}",
                parent.join("/"),
                in_circle.join(", ")
            ));
        }
    }
    circles
}

#[test]
fn nothing_is_named_in_a_circle() {
    let members = floors().into_iter().map(|(member, _)| member);
    let circles: Vec<_> = members
        .chain(["ci".to_owned()])
        .flat_map(|member| circles(&member))
        .collect();
    assert!(circles.is_empty(), "\n{}", circles.join("\n"));
}

#[test]
fn each_hook_has_its_reason() {
    let text = fs::read_to_string(workspace().join("ARCHITECTURE.md")).expect("it is UTF-8");
    let hooks = text.split("## Hooks").nth(1).expect("a section Hooks");
    let hooks = hooks.split("\n## ").next().unwrap_or_default();
    let declared = paths::statics_of_type(&workspace().join("runtime/src"), "Hook");
    for hook in &declared {
        assert!(
            hooks.contains(&format!("`{hook}`")),
            "ARCHITECTURE.md: no reason for the hook {hook}"
        );
    }
    let count = declared.len();
    assert!(
        (1..=HOOKS_MAX).contains(&count),
        "{count} hooks: {declared:?}"
    );
}
