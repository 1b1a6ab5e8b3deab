//! Tells `beamline --version` the commit that it is built from, and has the program export the functions of `erl_nif.h`
//! and `erl_driver.h` for the libraries that it opens.

use std::process::Command;

/// What git prints, on one line.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let text = text.trim();
    (output.status.success() && !text.is_empty()).then(|| text.to_owned())
}

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Where there is no repository, as in a source archive, the version has no commit.
    for name in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git(&["rev-parse", "--git-path", name]) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    let commit = git(&["rev-parse", "--short=10", "HEAD"]).unwrap_or_default();
    println!("cargo::rustc-env=BEAMLINE_COMMIT={commit}");
    println!("cargo::rerun-if-changed=../runtime/exports.rs");
    for names in include!("../runtime/exports.rs") {
        println!("cargo::rustc-link-arg-bins=-Wl,--export-dynamic-symbol={names}");
    }
}
