//! Opens the files that commands read, and refuses to write over them.

use std::path::Path;

use beamline_formats::profile::Profile;
use beamline_formats::ring::{Error, Recording};
use beamline_reports::flamegraph::Width;

use crate::{nodes, report};

/// Opens a recording that the caller makes `what` of. Those of a folder become one.
///
/// # Errors
/// One line: it cannot be read, or is something else.
pub(crate) fn recording(path: &Path, what: &str) -> Result<Recording, String> {
    if path.is_dir() {
        return joined(path);
    }
    if Profile::is_one(path) {
        return Err(format!(
            "{}: {what} needs a recording, and this is a profile: make one with beamline record",
            path.display()
        ));
    }
    Recording::open(path).map_err(|e| format!("{}: {e}", path.display()))
}

/// The recordings of a folder as one. What is missing in one of them is said: the one has no place for that.
fn joined(folder: &Path) -> Result<Recording, String> {
    let cluster = nodes::cluster(folder)?;
    for member in cluster.members() {
        let file = member.file.display();
        let fail = |e: Error| format!("{file}: {e}");
        let tally = member.recording.tally().map_err(fail)?;
        if let Some(lost) = tally.lost {
            report::error(&format!("{file}: {lost}"));
        }
    }
    let joined = cluster.joined();
    joined.map_err(|e| format!("{}: {e}", folder.display()))
}

/// The contents of a file.
pub(crate) enum Input {
    /// Written by `beamline record`.
    Recording(Box<Recording>),
    /// Written by `beamline profile --output`.
    Profile(Profile),
}

/// Opens a recording or reads a profile. The recordings of a folder become one.
///
/// # Errors
/// One line: it cannot be read, or is neither.
pub(crate) fn open(path: &Path) -> Result<Input, String> {
    if path.is_dir() {
        return joined(path).map(|recording| Input::Recording(Box::new(recording)));
    }
    if Profile::is_one(path) {
        return Profile::read(path).map(Input::Profile);
    }
    let recording = Recording::open(path).map_err(|e| match e {
        Error::Foreign => format!(
            "{}: neither a recording (beamline record) nor a profile (beamline profile --output)",
            path.display()
        ),
        e => format!("{}: {e}", path.display()),
    });
    recording.map(|recording| Input::Recording(Box::new(recording)))
}

/// Checks that a recording has what a picture of this width is made of. Returns one line if it has not.
pub(crate) fn check(recording: &Recording, width: Option<Width>) -> Result<(), String> {
    let width = width.unwrap_or(Width::Time);
    let lacks = match width {
        Width::Time => recording.lacks_paths(width.picture(), width.needs()),
        _ => recording.lacks(width.picture(), width.needs()),
    };
    match lacks {
        Some(line) => Err(line),
        None => Ok(()),
    }
}

/// Makes sure that no file which is read is one that will be written.
///
/// # Errors
/// One line with the first that is both.
pub(crate) fn keep<'a>(
    read: &[&Path],
    written: impl IntoIterator<Item = &'a Path>,
) -> Result<(), String> {
    let both = |written: &&Path| read.iter().any(|read| report::is_same_file(read, written));
    match written.into_iter().find(both) {
        Some(path) => Err(format!(
            "{}: this file is an input; give the output another name",
            path.display()
        )),
        None => Ok(()),
    }
}
