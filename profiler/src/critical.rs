//! `beamline report --critical-path` prints what made the time between two calls as long as it was.

use std::path::Path;
use std::process::ExitCode;

use beamline_reports::critical::{CriticalPath, Request};

use crate::{input, report};

/// Rows of each table, unless `--top` says it.
const ROWS: usize = 20;

/// Prints the critical path of a recording, or of those of a folder.
///
/// # Errors
/// One line: the recording cannot be read, has no such path, or the file of JSON cannot be written.
pub(crate) fn run(
    file: &Path,
    request: &Request,
    options: &report::Options,
) -> Result<ExitCode, String> {
    let recording = input::recording(file, "a critical path")?;
    let path = CriticalPath::read(&recording, request);
    let path = path.map_err(|e| format!("{}: {e}", file.display()))?;
    if let Some(to) = &options.json {
        report::write_json(to, &path)?;
    }
    let view = report::view_of(options.top, ROWS);
    report::print(&path.to_text(&view))?;
    Ok(ExitCode::SUCCESS)
}
