//! What is printed and written: messages on standard error, data on standard output or in files.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

use beamline_formats::flamegraph::{self, Drawing, Width};
use beamline_formats::json;
use beamline_formats::profile::{AtomicFile, Profile};
use beamline_formats::table::{By, Sort, Tables};

/// Prints one line of error.
pub fn error(message: &str) {
    // Where standard error is closed there is nobody to tell.
    let _ = writeln!(io::stderr(), "beamline: {message}");
}

/// Prints one line of progress, where somebody is watching.
pub fn progress(message: &str) {
    if io::stderr().is_terminal() {
        error(message);
    }
}

/// Prints text on standard output; a reader that went away is no error.
///
/// # Errors
/// One line when standard output refuses the text otherwise.
pub fn print(text: &str) -> Result<(), String> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => Err(format!("standard output: {e}")),
        _ => Ok(()),
    }
}

/// What a report shows and where it goes.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The flame graph's title; none is the emulator's command line.
    pub title: Option<String>,
    /// The order of the table's rows.
    pub sort: Sort,
    /// One table or one for each process.
    pub by: By,
    /// Where the flame graph goes.
    pub flamegraph: Option<PathBuf>,
    /// What its widths show; none is what the profile measured.
    pub width: Option<Width>,
    /// Where the JSON goes.
    pub json: Option<PathBuf>,
    /// Where the profile itself goes.
    pub output: Option<PathBuf>,
}

/// Prints the table and writes the files asked for.
///
/// # Errors
/// One line for each thing that could not be written; the others are.
pub fn report(profile: &Profile, options: &Options) -> Result<(), Vec<String>> {
    let tables = Tables {
        profile,
        by: options.by,
        sort: options.sort,
    };
    let mut errors = Vec::new();
    errors.extend(print(&tables.to_string()).err());
    if let Some(path) = &options.flamegraph {
        errors.extend(write(path, |out| draw(profile, options, out)).err());
    }
    if let Some(path) = &options.json {
        errors.extend(write(path, |out| text(json::write(profile, out))).err());
    }
    if let Some(path) = &options.output {
        errors.extend(write(path, |out| text(profile.write(out).map(|_| ()))).err());
    }
    if errors.is_empty() {
        Ok(())
    } else {
        Err(errors)
    }
}

fn text(result: io::Result<()>) -> Result<(), String> {
    result.map_err(|e| e.to_string())
}

/// Writes a file that appears when it is whole; a device or a pipe is written as it is.
pub(crate) fn write(
    path: &Path,
    to: impl FnOnce(&mut dyn Write) -> Result<(), String>,
) -> Result<(), String> {
    let fail = |e: String| format!("{}: {e}", path.display());
    if path.exists() && !path.is_file() {
        let file = File::options().write(true).open(path);
        let mut file = BufWriter::new(file.map_err(|e| fail(e.to_string()))?);
        to(&mut file).map_err(fail)?;
        return file.flush().map_err(|e| fail(e.to_string()));
    }
    let mut file = AtomicFile::create(path).map_err(|e| fail(e.to_string()))?;
    to(&mut file).map_err(fail)?;
    file.commit().map_err(|e| fail(e.to_string()))?;
    progress(&format!("wrote {}", path.display()));
    Ok(())
}

/// Draws the flame graph.
pub(crate) fn draw(
    profile: &Profile,
    options: &Options,
    out: &mut dyn Write,
) -> Result<(), String> {
    let run = profile.runs.first().ok_or("the profile has no run")?;
    let width = options.width.unwrap_or(Width::of(run.kind));
    let processes = profile.runs.iter().map(|run| run.processes).sum::<u64>();
    let longest = profile.runs.iter().map(|run| run.run_ns).max().unwrap_or(0);
    let mut title = options.title.clone();
    let title = title.get_or_insert_with(|| run.command.join(" "));
    // A longer title leaves the picture at both sides.
    if let Some((at, _)) = title.char_indices().nth(100) {
        title.replace_range(at.., "…");
    }
    let drawing = Drawing {
        width,
        by_process: options.by == By::Process,
        title: title.clone(),
        subtitle: format!(
            "{}, OTP {}, {}.{:03} s, {processes} processes",
            run.kind.name(),
            run.otp,
            longest / 1_000_000_000,
            longest / 1_000_000 % 1_000,
        ),
    };
    flamegraph::draw(profile, &drawing, out)
}
