//! Libraries in C for tests, compiled against the headers of the OTP at hand.
#![allow(dead_code, reason = "each program of tests uses its part of it")]

use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use beamline_needs::{Need, skipped};
use beamline_runtime_otp_home::{self as otp_home, Lookup};
use beamline_settings::chance;

use crate::place::{Place, errors};

/// The folder of OTP's header `name`; none where the OTP at hand has come without headers.
pub(crate) fn headers(name: &str) -> Option<PathBuf> {
    let home = otp_home::find(&Lookup::of_process(None));
    let folder = home.map(|home| home.root.join("usr/include"));
    let folder = folder.unwrap_or_default();
    let found = folder.join(name).is_file();
    if !found {
        let why = format!("the OTP has no {name} (Debian's package is erlang-dev)");
        skipped(Need::Headers, &why);
    }
    found.then_some(folder)
}

/// Compiles `source` to the library `name` in the place.
pub(crate) fn compile(place: &Place, headers: &Path, source: &Path, name: &str, flags: &[&str]) {
    let status = Command::new("cc")
        .args(["-std=gnu11", "-O1", "-Wall", "-fPIC", "-shared"])
        .args(flags)
        .arg("-I")
        .arg(headers)
        .arg("-o")
        .arg(place.file(name))
        .arg(source)
        .status()
        .expect("a C compiler");
    assert!(status.success(), "{}", source.display());
}

/// The names of what the program exports.
pub(crate) fn exported() -> BTreeSet<String> {
    let output = Command::new("nm")
        .args(["-D", "--defined-only", env!("CARGO_BIN_EXE_beamline")])
        .output()
        .expect("nm");
    let text = String::from_utf8_lossy(&output.stdout);
    let names = text.lines().filter_map(|line| line.split(' ').nth(2));
    names.map(str::to_owned).collect()
}

/// A place with this module, compiled, as a file of `folder` below the tests.
pub(crate) fn place_of(folder: &str, module: &str) -> Option<Place> {
    let source = tests(folder).join(format!("{module}.erl"));
    let place = Place::new(&std::fs::read_to_string(source).expect("it is there"))?;
    let file = format!("{module}.erl");
    std::fs::rename(place.file("work.erl"), place.file(&file)).expect("writable");
    erlc(&place, &file);
    Some(place)
}

/// Compiles a module in the place, unless it has been compiled before.
pub(crate) fn erlc(place: &Place, file: &str) {
    let compiled = place.file(file).with_extension("beam");
    let kept = kept(place, file);
    if std::fs::copy(&kept, &compiled).is_err() {
        place.printed(&["run", "--", "erlc", file]);
        keep(&compiled, &kept);
    }
}

/// Where the module in `file` is kept once it is compiled: the compiler takes minutes where each of its safepoints is a
/// collection.
fn kept(place: &Place, file: &str) -> PathBuf {
    let source = std::fs::read(place.file(file)).expect("it is there");
    let home = otp_home::find(&Lookup::of_process(None)).expect("a place has an OTP");
    let mut hasher = std::hash::DefaultHasher::new();
    (source, home.root).hash(&mut hasher);
    let name = format!("{file}-{:016x}.beam", hasher.finish());
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// Keeps a compiled module, for all tests that run now and later.
fn keep(compiled: &Path, kept: &Path) {
    let partial = kept.with_extension(format!("{}", chance::os_pid()));
    std::fs::copy(compiled, &partial).expect("writable");
    std::fs::rename(&partial, kept).expect("writable");
}

/// A folder below the tests.
pub(crate) fn tests(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests")
        .join(folder)
}

/// What `main/1` of `module` prints, called with the place's folder, as `options` of the command say.
pub(crate) fn run_main(place: &Place, module: &str, options: &[&str]) -> String {
    let folder = place.file(".");
    let code = format!(
        "{module}:main([{:?}]), halt().",
        folder.display().to_string()
    );
    let program = ["--", "erl", "-noshell", "-pa", ".", "-eval", &code];
    let arguments: Vec<&str> = options.iter().copied().chain(program).collect();
    let mut command = place.beamline(&arguments);
    if cfg!(feature = "gc_zeal") {
        // Each of its elements takes a collection of all of a list.
        command.env("BEAMLINE_TEST_LENGTH", "1000");
    }
    let output = command.output().expect("it starts");
    assert!(output.status.success(), "{}", errors(&output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Did the signal of this number end the program, or the emulator that it ran?
pub(crate) fn ended_by(output: &Output, signal: i32) -> bool {
    output.status.signal() == Some(signal) || output.status.code() == Some(128 + signal)
}
