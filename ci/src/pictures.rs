//! `cargo xtask pictures`: makes the pictures of the README, in light and dark, as a user would.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::{binary, fetch, paths, run};

/// Options of `cargo xtask pictures`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Run this beamline binary [default: a new optimised build]
    #[arg(long, value_name = "FILE")]
    beamline: Option<PathBuf>,
    /// Take the pictures of pages with this browser
    #[arg(long, value_name = "FILE", default_value = "chromium")]
    chromium: PathBuf,
}

/// The command that the README shows; the name of the picture follows.
const FLAME_GRAPH: [&str; 12] = [
    "profile",
    "--type",
    "call_time",
    "--pattern",
    "json_service",
    "--pattern",
    "json",
    "--pattern",
    "lists",
    "--pattern",
    "maps",
    "--flamegraph",
];

/// The views of a page that there are pictures of: name, and address within the page.
const VIEWS: [(&str, &str); 2] = [
    ("page-flame", "tab=flame&boot=hidden&from=120&to=200"),
    (
        "page-timeline",
        "tab=timeline&from=120&to=200&function=gen_server_load%3Ahandle_call%2F3",
    ),
];

/// Colour schemes, and what has Chromium show a page in them.
const SCHEMES: [(&str, &str); 2] = [
    ("light", "--blink-settings=preferredColorScheme=1"),
    ("dark", "--blink-settings=preferredColorScheme=0"),
];

/// Width and height of a picture of a page.
const SIZE: &str = "1280,800";

/// Makes all pictures, under `docs`.
pub(crate) fn main(options: &Options) -> Result<()> {
    let beamline = match &options.beamline {
        Some(beamline) => beamline.canonicalize()?,
        None => binary::beamline()?,
    };
    let otp = fetch::otp()?.root;
    let docs = paths::workspace().join("docs");
    flame_graph(&beamline, &otp, &docs.join("json_service.svg"))?;
    let folder = paths::target().join("pictures");
    fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    let page = page(&beamline, &otp, &folder)?;
    for (name, view) in VIEWS {
        for (scheme, setting) in SCHEMES {
            let picture = docs.join(format!("{name}-{scheme}.png"));
            take(
                &options.chromium,
                &format!("file://{}#{view}", page.display()),
                setting,
                &picture,
            )?;
        }
    }
    Ok(())
}

/// A command of the binary in the workspace, so that titles have the names that a user sees there.
fn command(beamline: &Path, otp: &Path) -> Command {
    let mut command = Command::new(beamline);
    command
        .current_dir(paths::workspace())
        .env("BEAMLINE_OTP", otp);
    command
}

fn flame_graph(beamline: &Path, otp: &Path, picture: &Path) -> Result<()> {
    let mut profile = command(beamline, otp);
    profile.args(FLAME_GRAPH).arg(picture);
    run::output(profile.args(["--", "samples/json_service.erl"]))?;
    eprintln!("{}", picture.display());
    Ok(())
}

/// Records a server under load, and gives its page.
fn page(beamline: &Path, otp: &Path, folder: &Path) -> Result<PathBuf> {
    let recording = folder.join("run.stream");
    let page = folder.join("run.html");
    let mut record = command(beamline, otp);
    record.args(["record", "--stream", "--events"]);
    record.arg("calls,returns,messages,processes,scheduling,gc,system");
    record.arg("-o").arg(&recording);
    run::output(record.args(["--", "samples/gen_server_load.erl", "2000"]))?;
    let mut html = command(beamline, otp);
    // The page names the file as it is called here.
    html.current_dir(folder);
    run::output(html.args(["html", "run.stream", "-o", "run.html"]))?;
    Ok(page)
}

/// Takes a picture of what a page shows.
fn take(chromium: &Path, address: &str, setting: &str, picture: &Path) -> Result<()> {
    if picture.exists() {
        // One of an earlier run would pass for this run's.
        fs::remove_file(picture)?;
    }
    let mut command = Command::new(chromium);
    command.args([
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
    ]);
    command.args([setting, "--virtual-time-budget=2000"]);
    command.arg(format!("--window-size={SIZE}"));
    command.arg(format!("--screenshot={}", picture.display()));
    run::output(command.arg(address))?;
    ensure!(picture.is_file(), "{} was not made", picture.display());
    eprintln!("{}", picture.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_readme_shows_the_command_and_all_pictures() {
        let readme = fs::read_to_string(paths::workspace().join("README.md")).expect("it is there");
        let words: Vec<&str> = readme
            .split_whitespace()
            .filter(|word| *word != "\\")
            .collect();
        let shown = |words_: &[&str]| words.windows(words_.len()).any(|window| window == words_);
        assert!(
            shown(&FLAME_GRAPH) && shown(&["json_service.svg", "--", "samples/json_service.erl"])
        );
        for (name, _) in VIEWS {
            for (scheme, _) in SCHEMES {
                let picture = format!("docs/{name}-{scheme}.png");
                assert!(readme.contains(&picture), "{picture}");
                assert!(paths::workspace().join(&picture).is_file(), "{picture}");
            }
        }
    }
}
